/* SPDX-License-Identifier: Apache-2.0 */
/* What the soft provider's operations do, and what they refuse, as hardware would. */
#include "../check_main.h"
#include "bed_qp.h"

/* Two nodes of one process, with a DCI and an RC pair from a to b. */
struct pair {
    char dir[64];
    struct bed_node a, b;
    struct bed_card to;
    struct fab_ah *ah;
    struct fab_qp *dci, *rc[2];
};

static void pair_open(struct pair *p, struct bed_patience patience)
{
    bed_dir_make(p->dir);
    bed_open(&p->a, p->dir);
    bed_open(&p->b, p->dir);
    p->to = bed_card(&p->b, NULL);
    p->ah = bed_ah(&p->a, p->to.gid);
    p->dci = bed_qp(&p->a, FAB_QP_DCI, patience);
    bed_rc_pair(&p->a, &p->b, patience, p->rc);
}

static void pair_close(struct pair *p)
{
    bed_qp_free(p->dci);
    bed_qp_free(p->rc[0]);
    bed_qp_free(p->rc[1]);
    bed_ah_free(p->ah);
    bed_close(&p->a);
    bed_close(&p->b);
    bed_dir_remove(p->dir);
}

static void fill(struct pair *p, struct bed_wr *w, enum ibv_wr_opcode opcode, uint64_t local,
                 uint64_t remote, uint32_t length)
{
    bed_fill(w, &p->a, &p->to, p->ah, opcode, local, remote, length);
}

static struct fab_qp *initiator(struct pair *p, int i)
{
    return i == 0 ? p->dci : p->rc[0];
}

START_TEST(reads_writes_and_atomics_move_what_they_should)
{
    static const uint32_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4096, 300001};
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_patient);
    uint8_t *mine = p.a.mem.addr, *theirs = p.b.mem.addr;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (uint64_t shift = 0; shift < 3; shift++) {
            uint32_t n = lengths[i];
            for (uint32_t k = 0; k < n + 8; k++) {
                mine[k] = (uint8_t)(k * 7 + i + 1);
                theirs[k] = mine[500000 + k] = 0xee;
            }
            fill(&p, &w, IBV_WR_RDMA_WRITE, shift, 3, n);
            ck_assert_int_eq(bed_post_wait(initiator(&p, (int)i & 1), &w.wr), IBV_WC_SUCCESS);
            ck_assert_mem_eq(theirs + 3, mine + shift, n);
            ck_assert_uint_eq(theirs[2], 0xee);
            ck_assert_uint_eq(theirs[3 + n], 0xee);
            fill(&p, &w, IBV_WR_RDMA_READ, 500000 + shift, 3, n);
            bed_post(initiator(&p, (int)i & 1), &w.wr);
            struct ibv_wc wc = bed_wait(p.a.cq);
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.byte_len, n);
            ck_assert_mem_eq(mine + 500000 + shift, theirs + 3, n);
            ck_assert_uint_eq(mine[500000 + shift + n], 0xee);
        }
    uint64_t *word = (uint64_t *)(void *)theirs, *before = (uint64_t *)(void *)mine;
    *word = 40;
    fill(&p, &w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
    w.wr.compare_add = 2;
    ck_assert_int_eq(bed_post_wait(p.dci, &w.wr), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*before, 40);
    ck_assert_uint_eq(*word, 42);
    fill(&p, &w, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, 8);
    w.wr.compare_add = 42;
    w.wr.swap = 5;
    ck_assert_int_eq(bed_post_wait(p.rc[0], &w.wr), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*before, 42);
    ck_assert_uint_eq(*word, 5);
    pair_close(&p);
}
END_TEST

/* Posts one bad request and one good one behind it: the first fails so, the second is flushed. */
static void fails_and_flushes(struct pair *p, struct fab_qp *qp, struct bed_wr *w,
                              enum ibv_wc_status status)
{
    struct bed_wr behind;
    fill(p, &behind, IBV_WR_RDMA_WRITE, 0, 0, 8);
    behind.wr.send_flags = 0;
    behind.wr.wr_id = 2;
    w->wr.next = &behind.wr;
    bed_post(qp, &w->wr);
    struct ibv_wc wc = bed_wait(p->a.cq);
    ck_assert_int_eq(wc.status, status);
    ck_assert_uint_eq(wc.wr_id, 1);
    wc = bed_wait(p->a.cq);
    ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.wr_id, 2);
    ck_assert_int_eq(fab_qp_state(qp), IBV_QPS_ERR);
}

static void reset_dci(struct pair *p)
{
    bed_modify(p->dci, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
    bed_connect(p->dci, NULL, bed_hasty);
}

START_TEST(a_dc_target_refuses_and_lives_on)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_hasty);
    struct fab_mr *readable = bed_reg(&p.b, &p.b.mem, 0, 4096, IBV_ACCESS_REMOTE_READ);
    fill(&p, &w, IBV_WR_RDMA_WRITE, 0, 0, 8);
    w.wr.key.rkey = readable->rkey;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, BED_MEM - 7, 8);
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, UINT64_MAX - p.to.addr - 3, 8);
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.key.rkey ^= 1u << 16;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.key.rkey = p.a.mr->rkey; /* another node's */
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8);
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_INV_REQ_ERR);
    reset_dci(&p);
    uint32_t old = readable->rkey;
    ck_assert_int_eq(bed_dereg(&p.b, readable), 0);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.key.rkey = old;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    ck_assert_int_eq(bed_post_wait(p.dci, &w.wr), IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

START_TEST(a_region_of_another_domain_is_refused)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_hasty);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    bed_do(p.b.fab, &pd);
    struct bed_node other = p.b;
    other.pd = pd.pd.x;
    struct fab_mr *mr = bed_reg(&other, &p.b.mem, 0, 4096, BED_ALL_ACCESS);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.key.rkey = mr->rkey;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(bed_dereg(&other, mr), 0);
    bed_do(p.b.fab, &(struct fab_ctl){.kind = FAB_FREE_PD, .pd = {.x = other.pd}});
    pair_close(&p);
}
END_TEST

START_TEST(a_local_fault_is_a_protection_error)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_hasty);
    fill(&p, &w, IBV_WR_RDMA_READ, BED_MEM - 4, 0, 8);
    fails_and_flushes(&p, p.dci, &w, IBV_WC_LOC_PROT_ERR);
    fill(&p, &w, IBV_WR_RDMA_WRITE, 0, 0, 8);
    w.sge.lkey = p.b.mr->lkey; /* of another node */
    fails_and_flushes(&p, p.rc[0], &w, IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(fab_qp_state(p.rc[1]), IBV_QPS_RTS);
    pair_close(&p);
}
END_TEST

START_TEST(an_access_error_breaks_both_ends_of_rc)
{
    struct pair p;
    struct bed_wr w;
    struct fab_event event;
    pair_open(&p, bed_hasty);
    ck_assert_int_eq(bed_recv(&p.b, p.rc[1], 77, 0, 64), 0);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, BED_MEM, 8);
    fails_and_flushes(&p, p.rc[0], &w, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(fab_qp_state(p.rc[1]), IBV_QPS_ERR);
    struct ibv_wc wc = bed_wait(p.b.cq);
    ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.wr_id, 77);
    ck_assert_int_eq(fab_get_event(p.b.fab, &event), 1);
    ck_assert_int_eq(event.type, IBV_EVENT_QP_ACCESS_ERR);
    ck_assert_ptr_eq(event.qp, p.rc[1]);
    ck_assert_int_eq(fab_get_event(p.b.fab, &event), 0);
    ck_assert_int_eq(fab_get_event(p.a.fab, &event), 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_wrong_dc_key_is_met_with_silence)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_hasty);
    uint64_t start = base_clock_ns();
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.dc_key = BED_KEY + 1;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ge(base_clock_ns() - start, (4096ull << bed_hasty.timeout) * 2);
    reset_dci(&p);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.dest_qpn ^= 1u << 20;
    fails_and_flushes(&p, p.dci, &w, IBV_WC_RETRY_EXC_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(what_waited_too_long_is_never_executed)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open(&p, bed_hasty);
    uint64_t *theirs = p.b.mem.addr, *mine = p.a.mem.addr;
    struct fab_qp *late = bed_qp_new(&p.b, FAB_QP_RC, p.b.cq);
    struct fab_qp *qp = bed_qp_new(&p.a, FAB_QP_RC, p.a.cq);
    struct bed_card to_late = bed_card(&p.b, late), to_qp = bed_card(&p.a, qp);
    bed_connect(qp, &to_late, bed_hasty);
    *mine = 1;
    *theirs = 0;
    fill(&p, &w, IBV_WR_RDMA_WRITE, 0, 0, 8);
    bed_post(qp, &w.wr); /* the peer is in RESET */
    usleep((unsigned)(fab_bound_ns(&p.a.fab->caps, bed_hasty.timeout, bed_hasty.retry_cnt) / 1000) +
           1000);
    bed_connect(late, &to_qp, bed_hasty);
    while (fab_poll(p.a.cq, 1, &wc) == 0)
        ;
    ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(*theirs, 0);
    bed_qp_free(qp);
    bed_qp_free(late);
    pair_close(&p);
}
END_TEST

START_TEST(a_peer_that_comes_in_time_is_reached)
{
    struct pair p;
    struct bed_wr w[2];
    struct ibv_wc wc;
    pair_open(&p, bed_patient);
    uint64_t *theirs = p.b.mem.addr, *mine = p.a.mem.addr;
    struct fab_qp *late = bed_qp_new(&p.b, FAB_QP_RC, p.b.cq);
    struct fab_qp *qp = bed_qp_new(&p.a, FAB_QP_RC, p.a.cq);
    struct bed_card to_late = bed_card(&p.b, late), to_qp = bed_card(&p.a, qp);
    bed_connect(qp, &to_late, bed_patient);
    for (unsigned i = 0; i < 2; i++) {
        mine[i] = i + 1;
        fill(&p, &w[i], IBV_WR_RDMA_WRITE, 8 * i, 0, 8);
        w[i].wr.wr_id = i;
        bed_post(qp, &w[i].wr);
    }
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    bed_connect(late, &to_qp, bed_patient);
    for (unsigned i = 0; i < 2; i++) {
        wc = bed_wait(p.a.cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, i);
    }
    ck_assert_uint_eq(*theirs, 2);
    bed_qp_free(qp);
    bed_qp_free(late);
    pair_close(&p);
}
END_TEST

START_TEST(sends_find_receives_in_order)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_patient);
    uint8_t *mine = p.a.mem.addr, *theirs = p.b.mem.addr;
    for (int i = 0; i < 2; i++) {
        bool dc = i == 0;
        memset(theirs, 0, 4096);
        ck_assert_int_eq(bed_recv(&p.b, dc ? NULL : p.rc[1], 1, 0, 100), 0);
        ck_assert_int_eq(bed_recv(&p.b, dc ? NULL : p.rc[1], 2, 100, 100), 0);
        memset(mine, 'x', 60);
        fill(&p, &w, IBV_WR_SEND, 0, 0, 60);
        bed_post(initiator(&p, i), &w.wr);
        memset(mine, 'y', 10);
        fill(&p, &w, IBV_WR_SEND_WITH_IMM, 0, 0, 10);
        w.wr.send_flags |= IBV_SEND_INLINE;
        w.wr.imm_data = 0x01020304;
        bed_post(initiator(&p, i), &w.wr);
        struct ibv_wc wc = bed_wait(p.b.cq);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, 1);
        ck_assert_uint_eq(wc.byte_len, 60);
        ck_assert_uint_eq(wc.qp_num, dc ? p.b.dct->dctn : p.rc[1]->qpn);
        wc = bed_wait(p.b.cq);
        ck_assert_uint_eq(wc.wr_id, 2);
        ck_assert_uint_eq(wc.imm_data, 0x01020304);
        ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
        ck_assert_uint_eq(theirs[59], 'x');
        ck_assert_uint_eq(theirs[60], 0);
        ck_assert_uint_eq(theirs[100], 'y');
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(bed_wait(p.a.cq).status, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_send_waits_for_a_receive_or_gives_up)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open(&p, bed_hasty);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 8);
    fails_and_flushes(&p, p.dci, &w, IBV_WC_RNR_RETRY_EXC_ERR);
    struct bed_patience for_ever = bed_hasty;
    for_ever.rnr_retry = 7;
    struct fab_qp *rc[2];
    bed_rc_pair(&p.a, &p.b, for_ever, rc);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 8);
    bed_post(rc[0], &w.wr);
    for (uint64_t start = base_clock_ns(); base_clock_ns() - start < 20 * BASE_NS_PER_MS;)
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    ck_assert_int_eq(bed_recv(&p.b, rc[1], 5, 0, 8), 0);
    ck_assert_int_eq(bed_wait(p.a.cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(bed_wait(p.b.cq).status, IBV_WC_SUCCESS);
    struct bed_patience never = bed_patient;
    never.rnr_retry = 0;
    bed_modify(p.dci, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
    bed_connect(p.dci, NULL, never);
    bed_post(p.dci, &w.wr);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 1); /* at once */
    ck_assert_int_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
    bed_qp_free(rc[0]);
    bed_qp_free(rc[1]);
    pair_close(&p);
}
END_TEST

START_TEST(a_write_with_immediate_writes_when_there_is_a_receive)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open(&p, bed_patient);
    uint64_t *theirs = p.b.mem.addr, *mine = p.a.mem.addr;
    *mine = 9;
    *theirs = 0;
    fill(&p, &w, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 8);
    w.wr.imm_data = 11;
    bed_post(p.dci, &w.wr);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    ck_assert_uint_eq(*theirs, 0);
    struct fab_recv_wr recv = {.wr_id = 3}, *bad;
    ck_assert_int_eq(fab_post_srq_recv(p.b.srq, &recv, &bad), 0);
    ck_assert_int_eq(bed_wait(p.a.cq).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*theirs, 9);
    wc = bed_wait(p.b.cq);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(wc.byte_len, 8);
    ck_assert_uint_eq(wc.imm_data, 11);
    pair_close(&p);
}
END_TEST

START_TEST(a_receive_that_is_too_short_is_the_senders_error_too)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_hasty);
    ck_assert_int_eq(bed_recv(&p.b, p.rc[1], 5, 0, 7), 0);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 8);
    fails_and_flushes(&p, p.rc[0], &w, IBV_WC_REM_INV_REQ_ERR);
    struct ibv_wc wc = bed_wait(p.b.cq);
    ck_assert_int_eq(wc.status, IBV_WC_LOC_LEN_ERR);
    ck_assert_int_eq(fab_qp_state(p.rc[1]), IBV_QPS_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(datagrams_bring_their_header_or_are_lost)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open(&p, bed_patient);
    struct fab_qp *from = bed_qp(&p.a, FAB_QP_UD, bed_patient);
    struct fab_qp *to = bed_qp(&p.b, FAB_QP_UD, bed_patient);
    uint8_t *theirs = p.b.mem.addr;
    memset(p.a.mem.addr, 'z', 64);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 64);
    w.wr.dest_qpn = to->qpn;
    w.wr.dc_key = 0;
    w.wr.qkey = BED_QKEY;
    ck_assert_int_eq(bed_post_wait(from, &w.wr), IBV_WC_SUCCESS); /* no receive: lost */
    ck_assert_int_eq(bed_recv(&p.b, to, 4, 0, 200), 0);
    w.wr.qkey = BED_QKEY + 1;
    ck_assert_int_eq(bed_post_wait(from, &w.wr), IBV_WC_SUCCESS); /* wrong key: lost */
    w.wr.qkey = BED_QKEY;
    ck_assert_int_eq(bed_post_wait(from, &w.wr), IBV_WC_SUCCESS);
    wc = bed_wait(p.b.cq);
    ck_assert_uint_eq(wc.byte_len, 104);
    ck_assert_uint_eq(wc.src_qp, from->qpn);
    ck_assert_uint_eq(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
    ck_assert_mem_eq(theirs + 8, p.a.fab->caps.gid, 16);
    ck_assert_mem_eq(theirs + 24, p.b.fab->caps.gid, 16);
    ck_assert_uint_eq(theirs[40], 'z');
    ck_assert_int_eq(fab_poll(p.b.cq, 1, &wc), 0);
    fill(&p, &w, IBV_WR_SEND, 0, 0, p.a.fab->caps.ud_payload + 1);
    w.wr.dest_qpn = to->qpn;
    ck_assert_int_eq(bed_post_wait(from, &w.wr), IBV_WC_LOC_LEN_ERR);
    bed_qp_free(from);
    bed_qp_free(to);
    pair_close(&p);
}
END_TEST

START_TEST(a_receive_that_is_too_short_for_a_datagram_breaks_its_queue_pair)
{
    struct pair p;
    struct bed_wr w;
    pair_open(&p, bed_patient);
    struct fab_qp *from = bed_qp(&p.a, FAB_QP_UD, bed_patient);
    struct fab_qp *to = bed_qp(&p.b, FAB_QP_UD, bed_patient);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 64);
    w.wr.dest_qpn = to->qpn;
    w.wr.dc_key = 0;
    w.wr.qkey = BED_QKEY;
    ck_assert_int_eq(bed_recv(&p.b, to, 4, 0, 103), 0);
    ck_assert_int_eq(bed_post_wait(from, &w.wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(bed_wait(p.b.cq).status, IBV_WC_LOC_LEN_ERR);
    ck_assert_int_eq(fab_qp_state(to), IBV_QPS_ERR);
    ck_assert_int_eq(fab_qp_state(from), IBV_QPS_RTS);
    bed_qp_free(from);
    bed_qp_free(to);
    pair_close(&p);
}
END_TEST

START_TEST(resetting_drops_what_is_queued_and_completed)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open(&p, bed_patient);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    bed_post(p.dci, &w.wr); /* completed, not polled */
    ck_assert_int_eq(bed_recv(&p.b, p.rc[1], 1, 0, 8), 0);
    fill(&p, &w, IBV_WR_SEND, 0, 0, 8);
    bed_post(p.rc[0], &w.wr); /* arrived, not polled */
    reset_dci(&p);
    bed_modify(p.rc[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
    bed_modify(p.rc[1], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    ck_assert_int_eq(fab_poll(p.b.cq, 1, &wc), 0);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(bed_post_wait(p.dci, &w.wr), IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

/* A peer breaks it: its own next poll says so, or a reset before that keeps it from being said. */
START_TEST(resetting_drops_the_events_of_the_life_before)
{
    struct pair p;
    struct bed_wr w;
    struct ibv_wc wc;
    struct fab_event e;
    for (int polled = 0; polled < 2; polled++) {
        pair_open(&p, bed_patient);
        fill(&p, &w, IBV_WR_RDMA_WRITE, 0, 0, 8);
        w.wr.key.rkey ^= 0xff00;
        ck_assert_int_eq(bed_post_wait(p.rc[0], &w.wr), IBV_WC_REM_ACCESS_ERR);
        if (polled) {
            (void)fab_poll(p.b.cq, 1, &wc);
            bed_modify(p.rc[1], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
        } else {
            bed_modify(p.rc[1], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
            (void)fab_poll(p.b.cq, 1, &wc);
        }
        ck_assert_int_eq(fab_get_event(p.b.fab, &e), 0);
        pair_close(&p);
    }
}
END_TEST

START_TEST(a_send_queue_has_the_room_it_was_given)
{
    struct pair p;
    struct bed_wr w;
    struct fab_wr *bad;
    pair_open(&p, bed_patient);
    fill(&p, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    w.wr.send_flags = 0;
    for (uint32_t i = 0; i + 1 < p.dci->cap.send_wr; i++)
        bed_post(p.dci, &w.wr);
    w.wr.send_flags = IBV_SEND_SIGNALED;
    bed_post(p.dci, &w.wr);
    ck_assert_int_eq(fab_post_send(p.dci, &w.wr, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &w.wr);
    ck_assert_int_eq(bed_wait(p.a.cq).status, IBV_WC_SUCCESS); /* gives all slots back */
    for (uint32_t i = 0; i < p.dci->cap.send_wr; i++)
        bed_post(p.dci, &w.wr);
    ck_assert_int_eq(fab_post_send(p.dci, &w.wr, &bad), -ENOMEM);
    pair_close(&p);
}
END_TEST

/* Of n bytes from there on, how many are `what`. */
static uint64_t count_of(const uint8_t *at, uint64_t n, uint8_t what)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += at[i] == what;
    return count;
}

/* A READ of a's own memory onto itself, or a WRITE. */
static void overlap(struct pair *p, struct fab_ah *ah, enum ibv_wr_opcode opcode, uint64_t local,
                    uint64_t remote, uint32_t length)
{
    struct bed_card self = bed_card(&p->a, NULL);
    struct bed_wr w;
    uint8_t *mine = p->a.mem.addr, *to = mine + (opcode == IBV_WR_RDMA_READ ? local : remote);
    const uint64_t first = local < remote ? local : remote, last = local + remote - first;
    bool seen[256] = {false};
    uint64_t strange = 0;
    memset(mine, 0, last + length + 64);
    for (uint64_t i = first; i < last + length; i++)
        mine[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
    for (uint64_t i = first; i < last + length; i++)
        seen[mine[i]] = true;
    bed_fill(&w, &p->a, &self, ah, opcode, local, remote, length);
    ck_assert_int_eq(bed_post_wait(p->dci, &w.wr), IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < length; i++)
        strange += !seen[to[i]];
    ck_assert_uint_eq(strange, 0);
    ck_assert_uint_eq(count_of(mine, first, 0), first);
    ck_assert_uint_eq(count_of(mine + last + length, 64, 0), 64);
}

START_TEST(overlapping_ranges_of_ones_own_memory_harm_nothing_else)
{
    static const uint32_t lengths[] = {8, 9, 64, 100, 5000}, shifts[] = {0, 1, 7, 8, 63, 4096};
    struct pair p;
    pair_open(&p, bed_patient);
    struct fab_ah *ah = bed_ah(&p.a, p.a.fab->caps.gid);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
            overlap(&p, ah, IBV_WR_RDMA_READ, 64, 64 + shifts[s], lengths[l]);
            overlap(&p, ah, IBV_WR_RDMA_READ, 64 + shifts[s], 64, lengths[l]);
            overlap(&p, ah, IBV_WR_RDMA_WRITE, 64, 64 + shifts[s], lengths[l]);
            overlap(&p, ah, IBV_WR_RDMA_WRITE, 64 + shifts[s], 64, lengths[l]);
        }
    bed_ah_free(ah);
    pair_close(&p);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(reads_writes_and_atomics_move_what_they_should)                                              \
    T(a_dc_target_refuses_and_lives_on)                                                            \
    T(a_region_of_another_domain_is_refused)                                                       \
    T(a_local_fault_is_a_protection_error)                                                         \
    T(an_access_error_breaks_both_ends_of_rc)                                                      \
    T(a_wrong_dc_key_is_met_with_silence)                                                          \
    T(what_waited_too_long_is_never_executed)                                                      \
    T(a_peer_that_comes_in_time_is_reached)                                                        \
    T(sends_find_receives_in_order)                                                                \
    T(a_send_waits_for_a_receive_or_gives_up)                                                      \
    T(a_write_with_immediate_writes_when_there_is_a_receive)                                       \
    T(a_receive_that_is_too_short_is_the_senders_error_too)                                        \
    T(datagrams_bring_their_header_or_are_lost)                                                    \
    T(a_receive_that_is_too_short_for_a_datagram_breaks_its_queue_pair)                            \
    T(resetting_drops_what_is_queued_and_completed)                                                \
    T(resetting_drops_the_events_of_the_life_before)                                               \
    T(a_send_queue_has_the_room_it_was_given)                                                      \
    T(overlapping_ranges_of_ones_own_memory_harm_nothing_else)

KEDGE_CHECK_MAIN("fabric.soft_data", TESTS)
