/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_lane.h"
#include "internal.h"

static const uint8_t peer_gid[16] = {0xfd, 1};

struct fixture {
    struct fake_agent a;
    struct kedge_session *s;
    struct kedge_vqp *q;
    uint8_t *memory;
    uint32_t lkey;
};

/* A session with a VQP that is connected to the peer in slot 3. */
static void setup(struct fixture *f)
{
    void *memory;
    fake_agent_start(&f->a);
    ck_assert_int_eq(schema_peers_put(f->a.peers, 3, peer_gid, 1, 1), 3);
    f->s = fake_agent_open(&f->a);
    ck_assert_int_eq(kedge_vqp_create(f->s, f, &f->q), 0);
    ck_assert_int_eq(kedge_connect(f->q, peer_gid), 0);
    ck_assert_int_eq(kedge_alloc(f->s, 4096, &memory, &f->lkey), 0);
    f->memory = memory;
}

static void teardown(struct fixture *f)
{
    kedge_close(f->s);
    fake_agent_stop(&f->a);
}

static struct ibv_send_wr wr_of(struct ibv_sge *sge, int n)
{
    return (struct ibv_send_wr){.wr_id = 0x1122334455667788,
                                .opcode = IBV_WR_RDMA_READ,
                                .send_flags = IBV_SEND_SIGNALED,
                                .sg_list = sge,
                                .num_sge = n,
                                .wr.rdma = {.remote_addr = 0x7f0000001000, .rkey = 0xabcd}};
}

static struct ibv_sge sge_of(const struct fixture *f, uint64_t offset, uint32_t length)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)f->memory + offset, .length = length, .lkey = f->lkey};
}

static int post(struct fixture *f, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int status = kedge_post_send(f->q, wr, &bad);
    ck_assert_ptr_eq(bad, status == 0 ? NULL : wr);
    return status;
}

START_TEST(a_known_peer_connects_without_a_descriptor_and_binds_once_at_the_first_post)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 64, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 2);
    const struct schema_sq_desc *d = fake_lane_slot(&f.a, 0);
    ck_assert_uint_eq(d->op, SCHEMA_OP_BIND);
    ck_assert_uint_eq(d->slots & SCHEMA_SLOTS_COUNT, 1);
    ck_assert_uint_eq(d->bind.peer_slot, 3);
    ck_assert_uint_eq(d->bind.peer_gen, 1);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->op, SCHEMA_OP_READ);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->op, SCHEMA_OP_READ);
    ck_assert_int_eq(kedge_connect(f.q, peer_gid), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 3)->op, SCHEMA_OP_BIND);
    teardown(&f);
}
END_TEST

START_TEST(each_byte_of_a_posted_read_and_of_an_atomic_is_as_the_schema_says)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 64, 100);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    wr.send_flags |= IBV_SEND_FENCE;
    ck_assert_int_eq(post(&f, &wr), 0);
    struct schema_sq_desc want = {.op = SCHEMA_OP_READ,
                                  .flags = SCHEMA_OP_SIGNALED | SCHEMA_OP_FENCE,
                                  .num_sge = 1,
                                  .slots = 1,
                                  .post = {.wr_id = 0x1122334455667788,
                                           .remote_addr = 0x7f0000001000,
                                           .vkey = 0xabcd,
                                           .length = 100,
                                           .offset = 64}};
    ck_assert_mem_eq(fake_lane_slot(&f.a, 1), &want, sizeof want);
    ck_assert_uint_eq(f.lkey, 1); /* arena 0 */
    sge.length = 8;
    wr = wr_of(&sge, 1);
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.send_flags = 0;
    wr.wr.atomic.remote_addr = 16;
    wr.wr.atomic.compare_add = 5;
    wr.wr.atomic.swap = 6;
    wr.wr.atomic.rkey = 9;
    ck_assert_int_eq(post(&f, &wr), 0);
    const struct schema_sq_desc *d = fake_lane_slot(&f.a, 2);
    ck_assert_uint_eq(d->op, SCHEMA_OP_CAS);
    ck_assert_uint_eq(d->flags, 0);
    ck_assert_uint_eq(d->post.compare_add, 5);
    ck_assert_uint_eq(d->post.swap, 6);
    ck_assert_uint_eq(d->post.vkey, 9);
    ck_assert_uint_eq(d->post.remote_addr, 16);
    f.memory[64] = 0x5a; /* the arena is one memory for both */
    ck_assert_uint_eq(f.a.arena[64], 0x5a);
    teardown(&f);
}
END_TEST

START_TEST(an_agent_that_does_not_know_of_relaxed_requests_is_not_told)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 64, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    wr.send_flags |= KEDGE_SEND_RELAXED;
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->flags, SCHEMA_OP_SIGNALED);
    f.s->features = SCHEMA_FEATURE_RELAXED;
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 2)->flags, SCHEMA_OP_SIGNALED | SCHEMA_OP_RELAXED);
    teardown(&f);
}
END_TEST

START_TEST(several_sges_go_into_the_next_slot_and_inline_data_into_the_following_ones)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge[4];
    for (uint32_t i = 0; i < 4; i++)
        sge[i] = sge_of(&f, 128 * i, i + 1);
    struct ibv_send_wr wr = wr_of(sge, 4);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->num_sge, 4);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 1)->slots & SCHEMA_SLOTS_COUNT, 2);
    const struct schema_sq_sges *sges = (const void *)fake_lane_slot(&f.a, 2);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(sges->sge[i].offset, 128 * i);
        ck_assert_uint_eq(sges->sge[i].length, i + 1);
        ck_assert_uint_eq(sges->sge[i].arena, 0);
    }
    fake_lane_take(&f.a, 3);
    /* Inline: from any memory, without an lkey; three SGEs, 70 bytes. */
    uint8_t bytes[70];
    for (uint8_t i = 0; i < 70; i++)
        bytes[i] = i;
    for (int i = 0; i < 3; i++)
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)bytes + 30u * (unsigned)i,
                                  .length = i == 2 ? 10 : 30};
    wr = wr_of(sge, 3);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE;
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->flags, SCHEMA_OP_INLINE);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->slots & SCHEMA_SLOTS_COUNT, 3);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->post.length, 70);
    ck_assert_mem_eq(fake_lane_slot(&f.a, 1), bytes, 64);
    ck_assert_mem_eq(fake_lane_slot(&f.a, 2), bytes + 64, 6);
    teardown(&f);
}
END_TEST

START_TEST(a_full_ring_refuses_with_the_first_request_that_did_not_fit_and_wraps_when_taken)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr[SQ_SLOTS + 1], *bad = NULL;
    for (uint64_t i = 0; i <= SQ_SLOTS; i++) {
        wr[i] = wr_of(&sge, 1);
        wr[i].wr_id = i;
        wr[i].next = i < SQ_SLOTS ? &wr[i + 1] : NULL;
    }
    ck_assert_int_eq(kedge_post_send(f.q, wr, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &wr[SQ_SLOTS - 1]); /* BIND has one slot */
    ck_assert_uint_eq(fake_lane_waiting(&f.a), SQ_SLOTS);
    ck_assert_int_eq(kedge_post_send(f.q, bad, &bad), -ENOMEM);
    for (uint64_t i = 0; i < SQ_SLOTS - 1; i++)
        ck_assert_uint_eq(fake_lane_slot(&f.a, (uint32_t)i + 1)->post.wr_id, i);
    fake_lane_take(&f.a, SQ_SLOTS);
    for (uint64_t i = 0; i < 1000; i++) {
        wr[SQ_SLOTS].wr_id = i;
        ck_assert_int_eq(post(&f, &wr[SQ_SLOTS]), 0);
        ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->post.wr_id, i);
        fake_lane_take(&f.a, 1);
    }
    teardown(&f);
}
END_TEST

START_TEST(malformed_requests_are_refused_and_put_nothing_into_the_ring)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    char want[200];
#define SAYS(sentence) ck_assert_str_eq(kedge_last_error(), sentence)
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        sge = sge_of(&f, 0, 8);                                                                    \
        wr = wr_of(&sge, 1);                                                                       \
        change;                                                                                    \
        ck_assert_int_eq(post(&f, &wr), -EINVAL);                                                  \
    } while (0)
    REFUSED(wr.opcode = IBV_WR_LOCAL_INV);
    SAYS("opcode 7 is none of IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, "
         "IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND and "
         "IBV_WR_SEND_WITH_IMM");
    REFUSED(wr.num_sge = 5);
    REFUSED(wr.num_sge = -1);
    REFUSED(wr.sg_list = NULL);
    ck_assert_str_eq(kedge_last_error(), "sg_list is NULL, and num_sge is 1: give as many, or 0");
    REFUSED(wr.sg_list = NULL; wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD);
    REFUSED(wr.sg_list = NULL; wr.opcode = IBV_WR_RDMA_WRITE; wr.send_flags |= IBV_SEND_INLINE);
    REFUSED(wr.send_flags |= IBV_SEND_SOLICITED);
    SAYS("send_flags has 0x4, which no request here can have: IBV_SEND_SIGNALED, "
         "IBV_SEND_INLINE, IBV_SEND_FENCE and KEDGE_SEND_RELAXED are possible");
    REFUSED(wr.send_flags |= IBV_SEND_INLINE);
    SAYS("IBV_SEND_INLINE is for WRITEs and SENDs alone");
    REFUSED(sge.lkey = 0);
    REFUSED(sge.lkey = 2);
    SAYS("sg_list[0].lkey is 2, which is none of kedge_alloc()'s");
    REFUSED(sge.addr--);
    REFUSED(sge.length = ARENA_BYTES + 1);
    snprintf(want, sizeof want,
             "sg_list[0] reaches outside of its arena: it has 65537 bytes at %p, and the arena of "
             "lkey 1 has 65536 at %p",
             (void *)f.memory, (void *)f.memory);
    SAYS(want);
    struct ibv_sge two[2] = {sge_of(&f, 0, 8), sge_of(&f, 0, 8)};
    REFUSED(two[1].lkey = 9; wr.sg_list = two; wr.num_sge = 2);
    SAYS("sg_list[1].lkey is 9, which is none of kedge_alloc()'s");
    REFUSED(sge.addr += ARENA_BYTES - 7);
    REFUSED(wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; sge.length = 4);
    SAYS("an atomic has one SGE, of 8 bytes: sg_list[0].length is 4");
    REFUSED(wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; wr.num_sge = 0);
    SAYS("an atomic has one SGE, of 8 bytes: num_sge is 0");
    REFUSED(wr.opcode = IBV_WR_RDMA_WRITE; wr.send_flags = IBV_SEND_INLINE; sge.length = 129);
    SAYS("inline data has at most 128 bytes: with sg_list[0] it would have 129");
#undef REFUSED
#undef SAYS
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    struct kedge_vqp *unconnected;
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &unconnected), 0);
    struct ibv_send_wr *bad;
    ck_assert_int_eq(kedge_post_send(unconnected, &wr, &bad), -ENOTCONN);
    teardown(&f);
}
END_TEST

START_TEST(the_doorbell_is_rung_only_if_the_lane_sleeps)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    uint64_t rung;
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(read(f.a.fds[SCHEMA_FD_DOORBELL], &rung, sizeof rung), -1);
    atomic_store(&f.a.ro->doorbell, 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(read(f.a.fds[SCHEMA_FD_DOORBELL], &rung, sizeof rung), sizeof rung);
    ck_assert_uint_eq(rung, 1);
    teardown(&f);
}
END_TEST

/* How often since it was looked at last. */
static uint64_t count_rings(struct fixture *f)
{
    uint64_t rung;
    return read(f->a.fds[SCHEMA_FD_DOORBELL], &rung, sizeof rung) == sizeof rung ? rung : 0;
}

START_TEST(a_burst_rings_once_for_what_the_lane_has_not_taken)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    atomic_store(&f.a.ro->doorbell, 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    /* It may have heard of that by an earlier ring, and have slept again. */
    fake_lane_take(&f.a, 2); /* the VQP's first post has a BIND before it */
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    fake_lane_take(&f.a, 1); /* of what stood before the ring */
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 0);
    fake_lane_take(&f.a, fake_lane_waiting(&f.a));
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    teardown(&f);
}
END_TEST

/* The lane left it in the ring since there was no room for its completion, and sleeps. */
START_TEST(who_has_made_room_for_completions_rings_again)
{
    struct fixture f;
    struct ibv_wc wc;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    fake_lane_take(&f.a, fake_lane_waiting(&f.a));
    fake_lane_complete(&f.a, kedge_vqp_num(f.q), 1, IBV_WC_SUCCESS);
    atomic_store(&f.a.ro->doorbell, 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    teardown(&f);
}
END_TEST

/* More than half of all indices lie between two rings. */
START_TEST(a_ring_of_long_ago_is_no_reason_not_to_ring)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    atomic_store(&f.a.ro->doorbell, 1);
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    atomic_store(&f.a.ro->doorbell, 0);
    for (uint32_t part = 0; part < 2; part++) { /* as if so many had been posted meanwhile */
        f.s->sq_tail += UINT32_C(0x60000000);
        f.s->sq_head_seen = f.s->sq_tail - SQ_SLOTS;
        atomic_store(&f.a.rw->sq_tail, f.s->sq_tail);
        atomic_store(&f.a.ro->sq_head, f.s->sq_tail);
        ck_assert_int_eq(post(&f, &wr), 0);
    }
    atomic_store(&f.a.ro->doorbell, 1);
    fake_lane_take(&f.a, fake_lane_waiting(&f.a));
    ck_assert_int_eq(post(&f, &wr), 0);
    ck_assert_uint_eq(count_rings(&f), 1);
    teardown(&f);
}
END_TEST

START_TEST(completions_come_in_order_and_their_room_is_given_back)
{
    struct fixture f;
    struct ibv_wc wc[CQ_SLOTS];
    setup(&f);
    uint32_t num = kedge_vqp_num(f.q);
    ck_assert_int_eq(kedge_poll(f.s, CQ_SLOTS, wc), 0);
    for (uint64_t i = 0; i < 5 * CQ_SLOTS; i += CQ_SLOTS) {
        for (uint64_t k = 0; k < CQ_SLOTS; k++)
            fake_lane_complete(&f.a, num, i + k, k == 2 ? IBV_WC_REM_ACCESS_ERR : 0);
        ck_assert_int_eq(kedge_poll(f.s, 3, wc), 3);
        ck_assert_int_eq(kedge_poll(f.s, CQ_SLOTS, wc + 3), CQ_SLOTS - 3);
        for (uint64_t k = 0; k < CQ_SLOTS; k++) {
            ck_assert_uint_eq(wc[k].wr_id, i + k);
            ck_assert_uint_eq(wc[k].qp_num, num);
            ck_assert_ptr_eq(kedge_vqp_find(f.s, wc[k].qp_num), f.q);
            ck_assert_uint_eq(wc[k].status, k == 2 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
        }
        ck_assert_uint_eq(atomic_load(&f.a.rw->cq_head), atomic_load(&f.a.ro->cq_tail));
    }
    teardown(&f);
}
END_TEST

START_TEST(completions_of_a_destroyed_queue_pair_are_dropped_and_its_number_changes)
{
    struct fixture f;
    struct ibv_wc wc;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    uint32_t old = kedge_vqp_num(f.q);
    ck_assert_int_eq(post(&f, &wr), 0);
    fake_lane_take(&f.a, 2);
    kedge_vqp_destroy(f.q);
    ck_assert_ptr_null(kedge_vqp_find(f.s, old));
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_DESTROY);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->vqp_gen, old >> 16);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &f.q), 0);
    ck_assert_uint_eq(kedge_vqp_num(f.q), old + (1u << 16));
    fake_lane_complete(&f.a, old, 1, 0);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    fake_lane_complete(&f.a, old, 2, 0);
    fake_lane_complete(&f.a, kedge_vqp_num(f.q), 3, 0);
    ck_assert_int_eq(kedge_wait(f.s, 0), 1);
    ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 1);
    ck_assert_uint_eq(wc.wr_id, 3);
    teardown(&f);
}
END_TEST

START_TEST(a_queue_pair_destroyed_while_the_ring_is_full_is_buried_later)
{
    struct fixture f;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    while (post(&f, &wr) == 0)
        ;
    uint32_t old = kedge_vqp_num(f.q);
    kedge_vqp_destroy(f.q);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), SQ_SLOTS);
    struct kedge_vqp *q[MAX_VQPS];
    for (int i = 0; i < MAX_VQPS - 1; i++)
        ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q[i]), 0);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q[3]), -EMFILE);
    fake_lane_take(&f.a, SQ_SLOTS);
    ck_assert_int_eq(kedge_vqp_create(f.s, NULL, &q[3]), 0);
    ck_assert_uint_eq(kedge_vqp_num(q[3]), old + (1u << 16));
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 1);
    ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->op, SCHEMA_OP_DESTROY);
    teardown(&f);
}
END_TEST

/* One of before phases is shown none, which it would take for slots; nor does it publish by any. */
START_TEST(an_agent_of_before_phases_is_asked_and_answers_by_the_tails_alone)
{
    struct fixture f;
    struct ibv_wc wc;
    setup(&f);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = wr_of(&sge, 1);
    struct schema_cqe *ring = (struct schema_cqe *)((uint8_t *)f.a.ro + SCHEMA_CQ_OFFSET);
    const uint32_t num = kedge_vqp_num(f.q);
    f.s->features &= ~(uint32_t)SCHEMA_FEATURE_PHASES;
    for (uint32_t i = 0; i < 5 * SQ_SLOTS; i++) {
        ck_assert_int_eq(post(&f, &wr), 0);
        for (uint32_t n = fake_lane_waiting(&f.a); n > 0; n--) {
            ck_assert_uint_eq(fake_lane_slot(&f.a, 0)->slots, 1);
            fake_lane_take(&f.a, 1);
        }
        ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 0);
        const uint32_t tail = atomic_load(&f.a.ro->cq_tail);
        ring[tail % CQ_SLOTS] =
            (struct schema_cqe){.wr_id = i, .vqp = (uint16_t)num, .vqp_gen = (uint16_t)(num >> 16)};
        atomic_store(&f.a.ro->cq_tail, tail + 1);
        ck_assert_int_eq(kedge_poll(f.s, 1, &wc), 1);
        ck_assert_uint_eq(wc.wr_id, i);
    }
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_known_peer_connects_without_a_descriptor_and_binds_once_at_the_first_post)                 \
    T(each_byte_of_a_posted_read_and_of_an_atomic_is_as_the_schema_says)                           \
    T(an_agent_that_does_not_know_of_relaxed_requests_is_not_told)                                 \
    T(several_sges_go_into_the_next_slot_and_inline_data_into_the_following_ones)                  \
    T(a_full_ring_refuses_with_the_first_request_that_did_not_fit_and_wraps_when_taken)            \
    T(malformed_requests_are_refused_and_put_nothing_into_the_ring)                                \
    T(the_doorbell_is_rung_only_if_the_lane_sleeps)                                                \
    T(a_burst_rings_once_for_what_the_lane_has_not_taken)                                          \
    T(who_has_made_room_for_completions_rings_again)                                               \
    T(a_ring_of_long_ago_is_no_reason_not_to_ring)                                                 \
    T(completions_come_in_order_and_their_room_is_given_back)                                      \
    T(completions_of_a_destroyed_queue_pair_are_dropped_and_its_number_changes)                    \
    T(a_queue_pair_destroyed_while_the_ring_is_full_is_buried_later)                               \
    T(an_agent_of_before_phases_is_asked_and_answers_by_the_tails_alone)
KEDGE_CHECK_MAIN("libclient post", TESTS)
