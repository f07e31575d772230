/* SPDX-License-Identifier: Apache-2.0 */
/* What is not begun after its deadline, and the fence that sees out what was begun before. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

static void fence(struct node *n, uint32_t rkey)
{
    struct fab_ctl c = {.kind = FAB_QUIESCE_MR, .quiesce = {.rkey = rkey}};
    ck_assert_int_eq(fab_call(n->fab, &c), 0);
}

START_TEST(a_request_after_its_deadline_is_not_executed)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 64);
    struct fab_wr in_time = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    struct fab_wr late = make_wr(&p.l, 2, IBV_WR_RDMA_WRITE, &sge, 128);
    struct fab_wr behind = make_wr(&p.l, 3, IBV_WR_RDMA_WRITE, &sge, 256);
    memset(p.a.bytes, 0x11, 64);
    memset(p.b.bytes, 0xee, 512);
    in_time.key.not_after_ns = now_ns() + 3600 * BASE_NS_PER_S;
    late.key.not_after_ns = now_ns() - 1;
    in_time.next = &late;
    late.next = &behind;
    bool keeps = p.a.fab->caps.deadlines;
    if (p.a.fab->caps.posts_in_time) {
        ck_assert_int_eq(link_post(&p.l, &in_time), -ETIME); /* all go by one doorbell, or none */
        expect_silence(p.a.cq);
        late.key.not_after_ns = 0;
    }
    ck_assert_int_eq(link_post(&p.l, &in_time), 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 2, keeps ? IBV_WC_RESP_TIMEOUT_ERR : IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 3, keeps ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
    ck_assert_uint_eq(p.b.bytes[0], 0x11);
    ck_assert_uint_eq(p.b.bytes[128], keeps ? 0xee : 0x11);
    ck_assert_uint_eq(p.b.bytes[256], keeps ? 0xee : 0x11);
    pair_close(&p);
}
END_TEST

START_TEST(a_fence_is_over_when_nobody_is_inside)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 64);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    fence(&p.b, p.b.mr->rkey);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    fence(&p.b, p.b.mr->rkey);
    fence(&p.b, p.b.mr->rkey ^ 0x10000);       /* of nothing, or of what is gone */
    ck_assert_int_eq(link_post(&p.l, &wr), 0); /* the region is as usable as before */
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

/* What is asked of the host's clock is asked of it: that it goes on, and as fast. */
START_TEST(the_devices_clock_goes_on_as_the_hosts_does)
{
    enum { MS = 200, MOST_MS = 20 };
    struct fab_ctl c = {.kind = FAB_QUERY_CLOCK};
    struct node n;
    node_open(&n);
    int status = fab_call(n.fab, &c);
    if (status == 0) {
        const struct fab_clock a = c.clock;
        pause_us(MS * 1000);
        ck_assert_int_eq(fab_call(n.fab, &c), 0);
        const struct fab_clock b = c.clock;
        ck_assert(a.hz == b.hz && a.bits == b.bits && a.bits >= 32 && a.bits <= 64);
        ck_assert(a.before_ns <= a.after_ns && a.after_ns <= b.before_ns);
        const uint64_t mask = a.bits == 64 ? UINT64_MAX : (1ull << a.bits) - 1;
        const uint64_t ns =
            (uint64_t)((unsigned __int128)((b.ticks - a.ticks) & mask) * BASE_NS_PER_S / a.hz);
        ck_assert_uint_ge(ns + MOST_MS * BASE_NS_PER_MS, b.before_ns - a.after_ns);
        ck_assert_uint_le(ns, b.after_ns - a.before_ns + MOST_MS * BASE_NS_PER_MS);
    } else {
        ck_assert_int_eq(status, -EOPNOTSUPP); /* then nobody can tell */
    }
    node_close(&n);
}
END_TEST

void add_deadlines(Suite *suite)
{
    TCase *t = conf_case(suite, "deadlines");
    tcase_add_loop_test(t, a_request_after_its_deadline_is_not_executed, 0, 2);
    tcase_add_loop_test(t, a_fence_is_over_when_nobody_is_inside, 0, 2);
    tcase_add_test(t, the_devices_clock_goes_on_as_the_hosts_does);
}
