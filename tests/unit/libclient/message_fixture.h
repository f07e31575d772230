/* SPDX-License-Identifier: Apache-2.0 */
/* A session of an agent with messages, and what its lane says of receives. */
#ifndef TESTS_UNIT_LIBCLIENT_MESSAGE_FIXTURE_H
#define TESTS_UNIT_LIBCLIENT_MESSAGE_FIXTURE_H

#include "fake_lane.h"

enum { PORT = 7, MOST = SQ_SLOTS / 4 /* receives of a session */ };

static const uint8_t peer_gid[16] = {0xfd, 1}, other_gid[16] = {0xfd, 2};

struct fixture {
    struct fake_agent a;
    struct kedge_session *s;
    struct kedge_vqp *q; /* not connected */
    uint8_t *memory;
    uint32_t lkey;
};

static inline void setup_with(struct fixture *f, uint32_t features)
{
    void *memory;
    fake_agent_start(&f->a);
    f->a.attached.features = features | SCHEMA_FEATURE_PHASES;
    ck_assert_int_eq(schema_peers_put(f->a.peers, 3, peer_gid, 1, 1), 3);
    ck_assert_int_eq(schema_peers_put(f->a.peers, 4, other_gid, 1, 1), 4);
    f->s = fake_agent_open(&f->a);
    ck_assert_int_eq(kedge_vqp_create(f->s, NULL, &f->q), 0);
    ck_assert_int_eq(kedge_alloc(f->s, 32768, &memory, &f->lkey), 0);
    f->memory = memory;
}

static inline void setup(struct fixture *f)
{
    setup_with(f, SCHEMA_FEATURE_MESSAGES);
}

static inline void teardown(struct fixture *f)
{
    kedge_close(f->s);
    fake_agent_stop(&f->a);
}

static inline void take_all(struct fixture *f)
{
    fake_lane_take(&f->a, fake_lane_waiting(&f->a));
}

static inline void bind_port(struct fixture *f)
{
    f->a.reply = (struct schema_reply){0};
    fake_agent_answer(&f->a);
    ck_assert_int_eq(kedge_bind(f->q, PORT), 0);
    (void)fake_agent_asked(&f->a);
}

static inline struct ibv_sge sge_of(const struct fixture *f, uint64_t offset, uint32_t length)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)f->memory + offset, .length = length, .lkey = f->lkey};
}

static inline struct ibv_send_wr send_of(struct ibv_sge *sge, int n)
{
    return (struct ibv_send_wr){.wr_id = 55,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED,
                                .sg_list = sge,
                                .num_sge = n};
}

static inline int post(struct kedge_vqp *q, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    const int status = kedge_post_send(q, wr, &bad);
    ck_assert_ptr_eq(bad, status == 0 ? NULL : wr);
    return status;
}

/* A receive of so many bytes. Returns the wr_id that the lane has of it. */
static inline uint64_t receive(struct fixture *f, struct kedge_vqp *q, uint64_t wr_id,
                               uint32_t length)
{
    struct ibv_sge sge = sge_of(f, 0, length);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    const uint32_t before = fake_lane_waiting(&f->a);
    ck_assert_int_eq(kedge_post_recv(q, &wr, &bad), 0);
    const struct schema_sq_desc *d = fake_lane_slot(&f->a, fake_lane_waiting(&f->a) - 1);
    ck_assert_uint_ge(fake_lane_waiting(&f->a), before + 1);
    ck_assert_uint_eq(d->op, SCHEMA_OP_RECV);
    const uint64_t cookie = d->post.wr_id;
    take_all(f);
    return cookie;
}

/* ---- the lane's completions */

static inline struct schema_cqe *cqe_at(struct fixture *f, uint32_t index)
{
    struct schema_cqe *ring = (struct schema_cqe *)((uint8_t *)f->a.ro + SCHEMA_CQ_OFFSET);
    return &ring[index % CQ_SLOTS];
}

static inline struct schema_cqe received(const struct kedge_vqp *q, uint64_t cookie,
                                         uint32_t length)
{
    const uint32_t num = kedge_vqp_num(q);
    return (struct schema_cqe){.wr_id = cookie,
                               .byte_len = length,
                               .vqp = (uint16_t)num,
                               .vqp_gen = (uint16_t)(num >> 16),
                               .opcode = IBV_WC_RECV,
                               .extra = 1};
}

static inline struct schema_cqe_sender sender_of(const uint8_t gid[16], uint64_t vqp)
{
    struct schema_cqe_sender from = {.incarnation = 1, .tenant = 9, .vqp = vqp};
    memcpy(from.gid, gid, sizeof from.gid);
    return from;
}

/* from: NULL: one place. */
static inline void put(struct fixture *f, struct schema_cqe c, const struct schema_cqe_sender *from)
{
    const uint32_t tail = atomic_load(&f->a.ro->cq_tail);
    *cqe_at(f, tail) = c;
    if (from != NULL)
        memcpy(cqe_at(f, tail + 1), from, sizeof *from);
    schema_cq_publish(f->a.ro, cqe_at(f, 0), CQ_SLOTS - 1, tail, tail + (from != NULL ? 2 : 1));
    fake_lane_wake(&f->a);
}

static inline void message(struct fixture *f, const struct kedge_vqp *q, uint64_t cookie,
                           uint64_t vqp)
{
    const struct schema_cqe_sender from = sender_of(peer_gid, vqp);
    put(f, received(q, cookie, 8), &from);
}

static inline struct kedge_msg pop_one(struct fixture *f)
{
    struct kedge_msg msg;
    ck_assert_int_eq(kedge_pop_msgs(f->s, 1, &msg), 1);
    return msg;
}

static inline bool all_was_taken(struct fixture *f)
{
    return atomic_load(&f->a.rw->cq_head) == atomic_load(&f->a.ro->cq_tail);
}

#endif
