/* SPDX-License-Identifier: Apache-2.0 */
/* DC in the verbs provider, on a stand-in: posting to a DCI, its room, its errors and its repair.
 */
#include "../check_main.h"
#include "base/clock.h"
#include "dc_bed.h"
#include "dc_stand_in_streams.h"

/* A DCI that can send, and addresses. */
struct bed {
    struct dc_bed b;
    struct fab_qp *qp;
    struct fab_ah *ah;
};

static void open_bed(struct bed *x, uint32_t send_wr, uint8_t log_streams)
{
    dc_bed_open(&x->b);
    fake.log_streams = log_streams;
    x->b.f->dc.log_streams = log_streams;
    x->b.f->base.caps.transports |= FAB_DC;
    x->qp = dc_bed_dci(&x->b, send_wr);
    x->ah = dc_bed_ah(&x->b, 1);
    dc_bed_bring_up(&x->b, x->qp);
    fake.trace[0] = '\0';
}

static void close_bed(struct bed *x)
{
    dc_bed_free_ah(&x->b, x->ah);
    dc_bed_free_dci(&x->b, x->qp);
    dc_bed_close(&x->b);
}

static const struct ibv_sge one_sge = {.addr = 4096, .length = 8, .lkey = 77};

static struct fab_wr make_wr(const struct bed *x, uint64_t id, enum ibv_wr_opcode opcode)
{
    return (struct fab_wr){.wr_id = id,
                           .sg_list = &one_sge,
                           .num_sge = 1,
                           .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED,
                           .key.rkey = 55,
                           .remote_addr = 8192,
                           .ah = x->ah,
                           .dest_qpn = 300,
                           .dc_key = 0xabcdef0123456789};
}

/* A list of n writes. */
static struct fab_wr *make_list(const struct bed *x, struct fab_wr *wr, int n)
{
    for (int i = 0; i < n; i++) {
        wr[i] = make_wr(x, (uint64_t)i, IBV_WR_RDMA_WRITE);
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    }
    return wr;
}

static int count_lines(const char *line)
{
    int n = 0;
    for (const char *at = fake.trace; (at = strstr(at, line)) != NULL; at++)
        n += at == fake.trace || at[-1] == '\n';
    return n;
}

#define TO  " to ah dctn=300 key=abcdef0123456789\n"
#define SGE " sge 77:4096+8\n"

START_TEST(every_operation_is_built_addressed_and_filled)
{
    struct bed x;
    struct fab_wr *bad = NULL;
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,           IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    enum { N = sizeof opcodes / sizeof opcodes[0] };
    struct fab_wr wr[N];
    open_bed(&x, 16, 0);
    for (int i = 0; i < N; i++) {
        wr[i] = make_wr(&x, (uint64_t)(i + 1), opcodes[i]);
        wr[i].imm_data = 0x01020304;
        wr[i].compare_add = 10;
        wr[i].swap = 20;
        wr[i].next = i + 1 < N ? &wr[i + 1] : NULL;
    }
    wr[0].send_flags = 0;
    wr[2].send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    wr[3].send_flags = IBV_SEND_SOLICITED;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    expect_trace("start\n"
                 "write id=1 flags=0 rkey=55 at=8192\n" TO SGE
                 "write_imm id=2 flags=2 rkey=55 at=8192 imm=01020304\n" TO SGE
                 "read id=3 flags=3 rkey=55 at=8192\n" TO SGE "send id=4 flags=4\n" TO SGE
                 "send_imm id=5 flags=2 imm=01020304\n" TO SGE
                 "cmp_swp id=6 flags=2 rkey=55 at=8192 compare=10 swap=20\n" TO SGE
                 "fetch_add id=7 flags=2 rkey=55 at=8192 add=10\n" TO SGE "complete\n");
    close_bed(&x);
}
END_TEST

START_TEST(inline_data_lists_of_sges_and_nothing_at_all_each_have_their_setter)
{
    static const char text[] = "abcdefgh";
    struct bed x;
    struct fab_wr wr[3], *bad = NULL;
    struct ibv_sge sge[3] = {{4096, 8, 77}, {8192, 16, 78}, {0, 0, 79}};
    struct ibv_sge parts[2] = {{(uintptr_t)text, 3, 0}, {(uintptr_t)text + 3, 5, 0}};
    open_bed(&x, 16, 0);
    make_list(&x, wr, 3);
    wr[0].sg_list = parts;
    wr[0].num_sge = 2;
    wr[0].send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    wr[1].sg_list = sge;
    wr[1].num_sge = 3;
    wr[2].num_sge = 0;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    expect_trace("start\n"
                 "write id=0 flags=2 rkey=55 at=8192\n" TO " inline 2\n  'abc'\n  'defgh'\n"
                 "write id=1 flags=2 rkey=55 at=8192\n" TO
                 " sges 3\n  77:4096+8\n  78:8192+16\n  79:0+0\n"
                 "write id=2 flags=2 rkey=55 at=8192\n" TO " sges 0\n"
                 "complete\n");
    close_bed(&x);
}
END_TEST

START_TEST(a_list_is_one_doorbell_for_each_chunk)
{
    struct bed x;
    struct fab_wr wr[VERBS_CHUNK + 3], *bad = NULL;
    open_bed(&x, 64, 0);
    make_list(&x, wr, VERBS_CHUNK + 3);
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    ck_assert_int_eq(count_lines("start"), 2);
    ck_assert_int_eq(count_lines("complete"), 2);
    ck_assert_int_eq(count_lines("write "), VERBS_CHUNK + 3);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

START_TEST(a_full_queue_takes_what_fits_and_names_the_first_that_does_not)
{
    struct bed x;
    struct fab_wr wr[8], *bad = NULL;
    struct ibv_wc wc[8];
    open_bed(&x, 4, 0);
    make_list(&x, wr, 8);
    wr[0].send_flags = wr[1].send_flags = 0;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &wr[4]);
    ck_assert_int_eq(count_lines("write "), 4);
    fake_completes(((struct verbs_qp *)x.qp)->qp, 2, IBV_WC_SUCCESS);
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, 8, wc), 0);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[4], &bad), -ENOMEM); /* both unsignalled */
    ck_assert_ptr_eq(bad, &wr[4]);
    fake_completes(((struct verbs_qp *)x.qp)->qp, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, 8, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 2);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[4], &bad), -ENOMEM); /* room for three */
    ck_assert_ptr_eq(bad, &wr[7]);
    ck_assert_int_eq(count_lines("complete"), 2);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

START_TEST(what_the_device_refuses_is_refused_as_a_whole_and_not_counted)
{
    struct bed x;
    struct fab_wr wr[4], *bad = NULL;
    open_bed(&x, 4, 0);
    make_list(&x, wr, 4);
    fake.refused = "complete";
    fake.refused_errno = EFAULT;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -EFAULT);
    ck_assert_ptr_eq(bad, &wr[0]);
    fake.refused = NULL;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0); /* the four slots are there still */
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

/* libmlx5 does not say which; the lane has to know whom to blame. */
START_TEST(of_a_list_with_one_that_the_device_refuses_those_before_it_are_posted)
{
    struct bed x;
    struct fab_wr wr[6], *bad = NULL;
    open_bed(&x, 6, 0);
    make_list(&x, wr, 6);
    fake.disliked = 3;
    fake.refused_errno = EINVAL;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -EINVAL);
    ck_assert_ptr_eq(bad, &wr[3]);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[3], &bad), -EINVAL);
    ck_assert_ptr_eq(bad, &wr[3]);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[4], &bad), 0);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[4], &bad), -ENOMEM); /* one slot is left */
    ck_assert_ptr_eq(bad, &wr[5]);
    ck_assert_int_eq(fake.wrong, 0);
    fake.disliked = 0;
    close_bed(&x);
}
END_TEST

START_TEST(one_that_comes_too_late_aborts_the_doorbell)
{
    struct bed x;
    struct fab_wr wr[2], *bad = NULL;
    open_bed(&x, 4, 0);
    make_list(&x, wr, 2);
    wr[0].key.not_after_ns = base_clock_ns() + 3600 * BASE_NS_PER_S;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    fake.trace[0] = '\0';
    wr[1].key.not_after_ns = base_clock_ns() - 1;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -ETIME);
    ck_assert_ptr_eq(bad, &wr[0]);
    expect_trace("start\nwrite id=0 flags=2 rkey=55 at=8192\n" TO SGE
                 "write id=1 flags=2 rkey=55 at=8192\n" TO SGE "abort\n");
    wr[1].key.not_after_ns = 0;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0); /* two slots are left */
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

START_TEST(of_a_long_list_all_is_posted_in_time_or_nothing)
{
    struct bed x;
    struct fab_wr wr[VERBS_CHUNK + 8], *bad = NULL;
    open_bed(&x, 64, 0);
    make_list(&x, wr, VERBS_CHUNK + 8);
    wr[VERBS_CHUNK + 7].key.not_after_ns = base_clock_ns() - 1;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -ETIME);
    ck_assert_ptr_eq(bad, &wr[0]);
    ck_assert_int_eq(count_lines("complete\n"), 0);
    fake.trace[0] = '\0';
    wr[VERBS_CHUNK + 7].key.not_after_ns = 0;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    ck_assert_int_eq(count_lines("complete\n"), 2);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

static struct fab_wr *runs_out;

static void time_goes_by(void)
{
    runs_out->key.not_after_ns = 1;
}

START_TEST(what_has_become_late_behind_the_first_doorbell_is_not_posted)
{
    struct bed x;
    struct fab_wr wr[VERBS_CHUNK + 8], *bad = NULL;
    open_bed(&x, 64, 0);
    make_list(&x, wr, VERBS_CHUNK + 8);
    runs_out = &wr[VERBS_CHUNK + 3];
    runs_out->key.not_after_ns = base_clock_ns() + 3600 * BASE_NS_PER_S;
    fake.rung = time_goes_by;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -ETIME);
    ck_assert_ptr_eq(bad, &wr[VERBS_CHUNK]);
    ck_assert_int_eq(count_lines("complete\n"), 1);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

START_TEST(an_operation_that_is_not_known_aborts_the_doorbell)
{
    struct bed x;
    struct fab_wr wr[2], *bad = NULL;
    open_bed(&x, 4, 0);
    make_list(&x, wr, 2);
    wr[1].opcode = IBV_WR_BIND_MW;
    ck_assert_int_eq(verbs_post_send(x.qp, wr, &bad),
                     -EINVAL); /* the wrapper would not let it in */
    ck_assert_ptr_eq(bad, &wr[1]);
    expect_trace("start\nwrite id=0 flags=2 rkey=55 at=8192\n" TO SGE
                 "abort\nstart\nwrite id=0 flags=2 rkey=55 at=8192\n" TO SGE
                 "complete\nstart\nabort\n");
    close_bed(&x);
}
END_TEST

START_TEST(a_dci_that_is_not_up_takes_nothing)
{
    struct bed x;
    struct fab_wr wr, *bad = NULL;
    open_bed(&x, 4, 0);
    make_list(&x, &wr, 1);
    ck_assert_int_eq(dc_bed_move(&x.b, x.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0),
                     0);
    fake.trace[0] = '\0';
    ck_assert_int_eq(fab_post_send(x.qp, &wr, &bad), -EINVAL);
    ck_assert_ptr_eq(bad, &wr);
    expect_trace("");
    close_bed(&x);
}
END_TEST

START_TEST(an_error_breaks_the_dci_and_a_repair_empties_it)
{
    struct bed x;
    struct fab_wr wr[4], *bad = NULL;
    struct ibv_wc wc[4];
    open_bed(&x, 4, 0);
    make_list(&x, wr, 4);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
        fake_completes(((struct verbs_qp *)x.qp)->qp, 2, IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(fab_poll(&x.b.vcq.base, 4, wc), 2);
        ck_assert_int_eq(wc[0].status, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc[1].status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(fab_qp_state(x.qp), IBV_QPS_ERR);
        fake.trace[0] = '\0';
        dc_bed_bring_up(&x.b, x.qp);
        expect_trace("dci RESET\n"
                     "dci INIT port=2 pkey=0 access=0\n"
                     "dci RTR mtu=5 sl=0 tclass=0 label=0\n"
                     "dci RTS timeout=14 retry=7 rnr=7 reads=8\n");
        ck_assert_int_eq(fab_qp_state(x.qp), IBV_QPS_RTS);
    }
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0); /* all four slots */
    close_bed(&x);
}
END_TEST

START_TEST(in_err_requests_go_one_by_one_so_that_the_first_refused_is_known)
{
    struct bed x;
    struct fab_wr wr[6], *bad = NULL;
    struct ibv_wc wc[4];
    open_bed(&x, 4, 0);
    make_list(&x, wr, 6);
    ck_assert_int_eq(fab_post_send(x.qp, &wr[5], &bad), 0);
    fake_completes(((struct verbs_qp *)x.qp)->qp, 1, IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, 4, wc), 1);
    fake.trace[0] = '\0';
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), -ENOMEM);
    ck_assert_ptr_eq(bad, &wr[4]); /* the device itself has four */
    ck_assert_int_eq(count_lines("start"), 5);
    ck_assert_int_eq(count_lines("complete"), 5);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

START_TEST(a_target_has_one_stream_and_targets_spread_over_all)
{
    enum { LOG = 2, TARGETS = 40 };
    struct bed x;
    struct fab_wr wr, *bad = NULL;
    int used[(1 << LOG) + 1] = {0};
    open_bed(&x, 64, LOG);
    for (uint32_t t = 0; t < TARGETS; t++) {
        unsigned stream[2];
        for (int i = 0; i < 2; i++) {
            wr = make_wr(&x, 1, i == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND);
            wr.dest_qpn = 1000 + t;
            fake.trace[0] = '\0';
            ck_assert_int_eq(fab_post_send(x.qp, &wr, &bad), 0);
            fake_completes(((struct verbs_qp *)x.qp)->qp, 1, IBV_WC_SUCCESS);
            ck_assert_int_eq(fab_poll(&x.b.vcq.base, 1, &(struct ibv_wc){0}), 1);
            const char *at = strstr(fake.trace, " stream=");
            ck_assert_ptr_nonnull(at);
            stream[i] = (unsigned)strtoul(at + strlen(" stream="), NULL, 10);
        }
        ck_assert_uint_eq(stream[0], stream[1]);
        ck_assert_uint_ge(stream[0], 1);
        ck_assert_uint_le(stream[0], 1u << LOG);
        used[stream[0]]++;
    }
    for (int i = 1; i <= 1 << LOG; i++)
        ck_assert_int_gt(used[i], 0);
    ck_assert_int_eq(fake.wrong, 0);
    close_bed(&x);
}
END_TEST

/* Requests to several targets, one of which refuses; every other is completed once, in its
 * target's order, and while others may go on nobody says that the DCI is in ERR. */
static void an_error_in_a_stream(uint64_t seed)
{
    enum { LOG = 2, REQUESTS = 12, TARGETS = 4 };
    struct bed x;
    struct fab_wr wr[REQUESTS], *bad = NULL;
    struct ibv_wc wc[REQUESTS];
    bool over[REQUESTS] = {false};
    uint64_t last_of[TARGETS] = {0};
    int good = 0, flushed = 0;
    open_bed(&x, 64, LOG);
    make_list(&x, wr, REQUESTS);
    for (uint32_t i = 0; i < REQUESTS; i++)
        wr[i].dest_qpn = 1000 + i % TARGETS;
    ck_assert_int_eq(fab_post_send(x.qp, wr, &bad), 0);
    struct ibv_qp *device = ((struct verbs_qp *)x.qp)->qp;
    fake_stream_fails(device, (uint32_t)(seed % REQUESTS), IBV_WC_REM_ACCESS_ERR, seed);
    for (int polls = 0; flushed + good < REQUESTS - 1; polls++) {
        ck_assert_int_lt(polls, 100);
        int n = fab_poll(&x.b.vcq.base, REQUESTS, wc);
        for (int i = 0; i < n; i++) {
            ck_assert(!over[wc[i].wr_id]);
            over[wc[i].wr_id] = true;
            good += wc[i].status == IBV_WC_SUCCESS;
            flushed += wc[i].status == IBV_WC_WR_FLUSH_ERR;
            if (wc[i].status == IBV_WC_SUCCESS) {
                ck_assert_uint_ge(wc[i].wr_id, last_of[wc[i].wr_id % TARGETS]);
                last_of[wc[i].wr_id % TARGETS] = wc[i].wr_id;
            }
        }
        ck_assert_int_eq(fab_qp_state(x.qp), device->state);
    }
    ck_assert_int_eq(fab_qp_state(x.qp), IBV_QPS_ERR);
    close_bed(&x);
}

START_TEST(an_error_in_one_stream_breaks_the_dci_after_others_have_gone_on)
{
    for (uint64_t seed = 1; seed <= 50; seed++)
        an_error_in_a_stream(seed);
}
END_TEST

START_TEST(the_stand_in_refuses_requests_that_are_built_wrongly)
{
    struct bed x;
    open_bed(&x, 4, 0);
    struct ibv_qp_ex *ex = ((struct verbs_qp *)x.qp)->ex;
    struct mlx5dv_qp_ex *dv = ((struct verbs_qp *)x.qp)->dv;
    ck_assert_int_eq(fake.wrong, 0);
    ex->wr_send(ex); /* not inside */
    ck_assert_int_eq(fake.wrong, 1);
    ex->wr_start(ex);
    ex->wr_set_sge(ex, 1, 2, 3); /* nothing is built */
    ck_assert_int_eq(fake.wrong, 2);
    ex->wr_send(ex);
    ex->wr_set_sge(ex, 1, 2, 3);
    ex->wr_set_sge(ex, 1, 2, 3); /* twice */
    ck_assert_int_eq(fake.wrong, 3);
    ex->wr_send(ex); /* the one before has no address */
    ck_assert_int_eq(fake.wrong, 4);
    dv->wr_set_dc_addr_stream(dv, NULL, 1, 2, 3); /* there are none */
    ck_assert_int_eq(fake.wrong, 5);
    ex->wr_start(ex); /* once more */
    ck_assert_int_eq(fake.wrong, 6);
    ex->wr_abort(ex);
    ck_assert_int_eq(ex->wr_complete(ex), EINVAL); /* it is over */
    ck_assert_int_eq(fake.wrong, 7);
    close_bed(&x);
}
END_TEST

/* More than one DCI's ring holds: each is heard of. */
START_TEST(completions_of_several_dcis_wait_in_one_queue)
{
    enum { DCIS = 4, WRS = 64 };
    struct bed x;
    struct fab_qp *dci[DCIS];
    struct fab_wr wr[WRS], *bad = NULL;
    struct ibv_wc wc[WRS];
    uint32_t heard[DCIS * WRS] = {0}, all = 0;
    open_bed(&x, WRS, 0);
    for (int d = 0; d < DCIS; d++) {
        dci[d] = dc_bed_dci(&x.b, WRS);
        dc_bed_bring_up(&x.b, dci[d]);
        make_list(&x, wr, WRS);
        for (int i = 0; i < WRS; i++)
            wr[i].wr_id = (uint64_t)(WRS * d + i);
        ck_assert_int_eq(fab_post_send(dci[d], wr, &bad), 0);
        fake.trace[0] = '\0';
    }
    for (int d = 0; d < DCIS; d++)
        fake_completes(((struct verbs_qp *)dci[d])->qp, WRS, IBV_WC_SUCCESS);
    for (int n; (n = fab_poll(&x.b.vcq.base, WRS, wc)) > 0; all += (uint32_t)n)
        for (int i = 0; i < n; i++)
            heard[wc[i].wr_id]++;
    ck_assert_uint_eq(all, DCIS * WRS);
    for (int i = 0; i < DCIS * WRS; i++)
        ck_assert_uint_eq(heard[i], 1);
    for (int d = 0; d < DCIS; d++)
        dc_bed_free_dci(&x.b, dci[d]);
    close_bed(&x);
}
END_TEST

START_TEST(a_completion_queue_that_overflows_is_dead_for_its_lane)
{
    enum { ROOM = 5, WRS = 8 };
    struct bed x;
    struct fab_wr wr[WRS], *bad = NULL;
    struct ibv_wc wc[WRS];
    struct ibv_async_event told;
    struct fab_event event;
    open_bed(&x, WRS, 0);
    x.b.cq.cqe = ROOM;
    ck_assert_int_eq(fab_post_send(x.qp, make_list(&x, wr, WRS), &bad), 0);
    fake_completes(((struct verbs_qp *)x.qp)->qp, ROOM, IBV_WC_SUCCESS);
    ck_assert(!fake_cq_event(&told));
    fake_completes(((struct verbs_qp *)x.qp)->qp, 1, IBV_WC_SUCCESS);
    ck_assert(fake_cq_event(&told));
    /* Until the event is heard what is there is polled; what was lost does not come. */
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, WRS, wc), ROOM);
    ck_assert_uint_eq(wc[ROOM - 1].wr_id, ROOM - 1);
    fake_completes(((struct verbs_qp *)x.qp)->qp, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, WRS, wc), 0);
    verbs_events_handle(x.b.f, &told);
    ck_assert_int_eq(fab_poll(&x.b.vcq.base, WRS, wc), -EIO);
    ck_assert_int_eq(fab_events_pop(&x.b.f->events, &event), 1);
    ck_assert(event.type == IBV_EVENT_CQ_ERR && event.cq == &x.b.vcq.base);
    close_bed(&x);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_operation_is_built_addressed_and_filled)                                               \
    T(inline_data_lists_of_sges_and_nothing_at_all_each_have_their_setter)                         \
    T(a_list_is_one_doorbell_for_each_chunk)                                                       \
    T(a_full_queue_takes_what_fits_and_names_the_first_that_does_not)                              \
    T(what_the_device_refuses_is_refused_as_a_whole_and_not_counted)                               \
    T(of_a_list_with_one_that_the_device_refuses_those_before_it_are_posted)                       \
    T(one_that_comes_too_late_aborts_the_doorbell)                                                 \
    T(of_a_long_list_all_is_posted_in_time_or_nothing)                                             \
    T(what_has_become_late_behind_the_first_doorbell_is_not_posted)                                \
    T(an_operation_that_is_not_known_aborts_the_doorbell)                                          \
    T(a_dci_that_is_not_up_takes_nothing)                                                          \
    T(an_error_breaks_the_dci_and_a_repair_empties_it)                                             \
    T(in_err_requests_go_one_by_one_so_that_the_first_refused_is_known)                            \
    T(a_target_has_one_stream_and_targets_spread_over_all)                                         \
    T(an_error_in_one_stream_breaks_the_dci_after_others_have_gone_on)                             \
    T(completions_of_several_dcis_wait_in_one_queue)                                               \
    T(a_completion_queue_that_overflows_is_dead_for_its_lane)                                      \
    T(the_stand_in_refuses_requests_that_are_built_wrongly)

KEDGE_CHECK_MAIN("fabric.verbs_dc_post", TESTS)
