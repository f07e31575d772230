/* SPDX-License-Identifier: Apache-2.0 */
/* The device says that a queue pair is in ERR before the completions of what was out on it have
 * come: those tell what became of each, and until then the device has its memory. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world_deaf.h"
#include "world_trio.h"

enum { LONG = 20000 /* passes */, LATE = 60 /* polls */, TOO_LATE = 5000 };

/* Times what a lane that runs may be late by. */
enum { BOUND_NS = 40000000, SLEEP_NS = 500000 };

static struct world world;
static struct world *w = &world;

static void each(void (*act)(struct world *w, uint32_t node, struct fab_qp *qp))
{
    struct world_node *n = &w->node[0];
    if (w->rc)
        act(w, 0, n->last_link);
    for (uint32_t i = 0; i < n->res.dcis; i++)
        act(w, 0, n->res.dci[i]);
}

/* Carried out, all of it, before the queue pair broke. */
START_TEST(what_ended_well_before_the_event_is_reported_so_and_nothing_goes_again)
{
    struct world_trio s;
    world_trio_open(w, &s);
    const _Atomic uint64_t *counter = s.owner.arena.addr;
    world_delay(w, LATE);
    world_trio_post(w, &s);
    each(world_break);
    each(world_fatal);
    ck_assert_uint_eq(world_done(w, &s.writer, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &s.adder, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &s.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*counter, 1);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    world_run(w, LATE);
    ck_assert_uint_eq(w->node[0].broken, w->rc ? 1 : WORLD_DCIS); /* and it is repaired */
    world_delay(w, 0);
    world_warm(w, &s.writer, s.key);
    world_trio_close(w, &s);
}
END_TEST

START_TEST(what_is_flushed_is_the_devices_until_it_says_so)
{
    struct world_trio s;
    world_trio_open(w, &s);
    world_delay(w, LATE);
    each(world_break);
    world_trio_post(w, &s);
    each(world_fatal);
    world_run(w, LATE / 2);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    ck_assert_uint_eq(world_done(w, &s.writer, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.adder, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 1);
    world_trio_close(w, &s);
}
END_TEST

/* What comes after all, of a life that is over, is nobody's. */
START_TEST(a_queue_pair_that_gives_nothing_back_is_given_up_after_so_long_as_a_request_may_take)
{
    struct world_trio s;
    world_trio_open(w, &s);
    world_delay(w, TOO_LATE);
    each(world_break);
    world_trio_post(w, &s);
    each(world_fatal);
    const uint64_t begun_ns = w->now_ns;
    ck_assert_uint_eq(world_done(w, &s.writer, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s.adder, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_ge(w->now_ns - begun_ns, w->node[0].config.bound_ns);
    ck_assert_uint_eq(world_done(w, &s.reader, 3 * TOO_LATE).status, IBV_WC_SUCCESS);
    world_warm(w, &s.reader, s.key);
    world_trio_close(w, &s);
}
END_TEST

/* The host stands still after so long, and with it its device and whoever tells that to end a queue
 * pair: of that time the device had nothing, and what it has it may yet write to. */
static void stop_host(uint64_t after_ns, uint64_t for_ns)
{
    struct world_trio s;
    world_bound_ns = BOUND_NS;
    world_mr_lease_ns[2] = 2 * BOUND_NS; /* the third node's, which has none of its own in these */
    world_trio_open(w, &s);
    world_delay(w, TOO_LATE);
    each(world_break);
    world_trio_post(w, &s);
    each(world_fatal);
    for (uint64_t ns = 0; ns < after_ns; ns += SLEEP_NS)
        world_sleep(w, SLEEP_NS);
    w->now_ns += for_ns;
    const uint64_t goes_on_ns = w->now_ns;
    const uint64_t rest_ns = BOUND_NS - after_ns;
    while (w->now_ns < goes_on_ns + rest_ns - SLEEP_NS) {
        world_sleep(w, SLEEP_NS);
        ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
    }
    for (int i = 0; i < BOUND_NS / SLEEP_NS; i++)
        world_sleep(w, SLEEP_NS);
    ck_assert_uint_eq(world_done(w, &s.writer, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    (void)world_done(w, &s.adder, TOO_LATE / 2);
    world_delay(w, 0);
    world_trio_close(w, &s);
}

START_TEST(a_queue_pair_is_not_given_up_for_the_time_in_which_its_host_stood_still)
{
    stop_host(SLEEP_NS, 10ull * BOUND_NS);
}
END_TEST

/* As long as it is waited for: no more than that has gone by. */
START_TEST(a_queue_pair_is_not_given_up_for_a_stop_that_is_no_longer_than_bound)
{
    stop_host(SLEEP_NS, BOUND_NS);
}
END_TEST

START_TEST(a_queue_pair_is_not_given_up_for_a_stop_that_ends_before_its_time_is_over)
{
    stop_host(BOUND_NS / 4, BOUND_NS / 8 * 5);
}
END_TEST

START_TEST(a_queue_pair_is_waited_for_anew_after_a_stop_in_which_times_wrap)
{
    stop_host(SLEEP_NS, 1000ull * (1ull << 32) + BOUND_NS / 2);
}
END_TEST

/* What is posted is told to end, since it has been out for too long. Returns how long it took until
 * all of it but the READ had ended. */
static uint64_t end_overdue(struct world_trio *s)
{
    world_end_overdue = true;
    world_trio_open(w, s);
    world_end_overdue = false;
    world_delay(w, TOO_LATE);
    world_trio_post(w, s);
    const uint64_t begun_ns = w->now_ns;
    ck_assert_uint_eq(world_done(w, &s->writer, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &s->adder, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_ge(world_stats(w, 0).qp_overdue, 1);
    return w->now_ns - begun_ns;
}

/* Told to end, since what is out has been so for too long: the device may be deaf to that too, or
 * refuse it, and sends no event. */
START_TEST(a_queue_pair_that_was_told_to_end_and_gives_nothing_back_is_given_up_too)
{
    struct world_trio s;
    ck_assert_uint_ge(end_overdue(&s), w->node[0].config.bound_ns);
    world_delay(w, 0);
    ck_assert_uint_eq(world_done(w, &s.reader, 3 * TOO_LATE).status, IBV_WC_SUCCESS);
    world_warm(w, &s.reader, s.key);
    world_trio_close(w, &s);
}
END_TEST

/* ---- libraries that take nothing more for a queue pair in ERR, as bnxt_re's */

/* Node 0's: it takes two READs, the first of which finds a record that is being written, and the
 * second of which breaks the queue pair. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    struct fab_qp *qp;
    uint64_t taken[2];
    uint32_t took, refused;
    bool tells, told;
} device;

static int post_to_device(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    if (device.qp != NULL && qp != device.qp)
        return device.real->post_send(qp, wr, bad);
    device.qp = qp;
    for (; wr != NULL; wr = wr->next) {
        if (device.took == 2) {
            device.refused++;
            *bad = wr;
            return -EINVAL;
        }
        device.taken[device.took++] = wr->wr_id;
    }
    return 0;
}

static int poll_device(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (!device.tells || device.told || n < 2)
        return device.real->poll(cq, n, wc);
    device.told = true;
    wc[0] = (struct ibv_wc){.wr_id = device.taken[0], .status = IBV_WC_SUCCESS};
    wc[1] = (struct ibv_wc){.wr_id = device.taken[1], .status = IBV_WC_REM_ACCESS_ERR};
    return 2;
}

static void ask_for(struct world_worker *k, uint64_t which)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    memcpy(d.connect.gid, &which, sizeof which);
    d.connect.tag = ++k->tag;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
}

START_TEST(what_has_failed_is_not_waited_for_when_the_device_refused_what_was_chained_behind_it)
{
    static struct world_worker asker[2];
    struct world_node *n = &w->node[0];
    world_open(w);
    memset(&device, 0, sizeof device);
    for (uint32_t i = 0; i < 2; i++)
        world_attach(w, &asker[i], 0, i, 1);
    device.real = n->fab->ops;
    device.ops = *device.real;
    device.ops.post_send = post_to_device;
    device.ops.poll = poll_device;
    n->fab->ops = &device.ops;
    memset(n->scratch.addr, 1, n->scratch.size); /* odd sequences */
    for (uint32_t i = 0; i < 2; i++)
        ask_for(&asker[i], i + 1);
    world_run(w, 3);
    ck_assert_uint_eq(device.took, 2);
    device.tells = true;
    world_run(w, 3);
    ck_assert_uint_eq(device.refused, 1);
    ck_assert_uint_eq(n->broken, 1);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0); /* it was none of its own fault */
    n->fab->ops = device.real;
    for (uint32_t i = 0; i < 2; i++)
        world_detach(w, &asker[i]);
    world_close(w);
}
END_TEST

/* ---- devices that answer the first of two READs late, whose record is being written still, and
 * the second never */

static struct {
    uint64_t answers_ns;         /* the first, that long after it was posted */
    uint64_t posted_ns;          /* 0: nothing was */
    uint64_t taken[3], answered; /* by wr_id; of them, so many */
    uint32_t took;
    bool outlived; /* the first answer came when the end was asked for */
    bool late;     /* something was posted when the control side was asked for an end */
} slow;

static int post_to_slow(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    if (device.qp != NULL && qp != device.qp)
        return device.real->post_send(qp, wr, bad);
    device.qp = qp;
    slow.posted_ns = slow.posted_ns != 0 ? slow.posted_ns : w->now_ns;
    slow.late |= world_stats(w, 0).qp_overdue > 0;
    for (; wr != NULL; wr = wr->next) {
        ck_assert_uint_lt(slow.took, 3);
        slow.taken[slow.took++] = wr->wr_id;
    }
    return 0;
}

static int poll_slow(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    const bool is_first = slow.answered == 0, ends = world_stats(w, 0).qp_overdue > 0;
    if (slow.answered == slow.took ||
        (is_first ? w->now_ns < slow.posted_ns + slow.answers_ns : !ends))
        return device.real->poll(cq, n, wc);
    slow.outlived |= is_first && ends;
    wc[0] = (struct ibv_wc){.wr_id = slow.taken[slow.answered++],
                            .status = is_first ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR};
    return 1;
}

/* By then it may be destroyed. The answer comes at any time, and so with the lane's last look at
 * completions before it asks. */
START_TEST(nothing_is_posted_on_a_queue_pair_any_more_when_the_control_side_is_asked_to_end_it)
{
    static struct world_worker asker[2];
    uint32_t sooner = 0, later = 0;
    for (uint64_t us = 150; us <= 200; us++) { /* about the node's bound */
        struct world_node *n = &w->node[0];
        world_end_overdue = true;
        world_open(w);
        world_end_overdue = false;
        memset(&device, 0, sizeof device);
        memset(&slow, 0, sizeof slow);
        slow.answers_ns = us * 1000;
        for (uint32_t i = 0; i < 2; i++)
            world_attach(w, &asker[i], 0, i, 1);
        device.real = n->fab->ops;
        device.ops = *device.real;
        device.ops.post_send = post_to_slow;
        device.ops.poll = poll_slow;
        n->fab->ops = &device.ops;
        memset(n->scratch.addr, 1, n->scratch.size); /* odd sequences */
        for (uint32_t i = 0; i < 2; i++)
            ask_for(&asker[i], i + 1);
        for (uint32_t i = 0; i < LONG && n->broken == 0; i++)
            world_run(w, 1);
        ck_assert_uint_eq(n->broken, 1);
        ck_assert(!slow.late);
        sooner += !slow.outlived;
        later += slow.outlived;
        n->fab->ops = device.real;
        for (uint32_t i = 0; i < 2; i++)
            world_detach(w, &asker[i]);
        world_close(w);
    }
    ck_assert_uint_gt(sooner, 0);
    ck_assert_uint_gt(later, 0);
}
END_TEST

/* Nor put to ERR: so it was destroyed, and nobody waits for what never comes. */
START_TEST(what_is_out_on_a_queue_pair_that_was_destroyed_ends_at_once)
{
    struct world_trio s;
    world_deaf = true;
    ck_assert_uint_le(end_overdue(&s), w->node[0].config.bound_ns);
    world_deaf = false;
    world_delay(w, 0);
    ck_assert_uint_eq(world_done(w, &s.reader, 3 * TOO_LATE).status, IBV_WC_SUCCESS);
    world_warm(w, &s.reader, s.key);
    world_warm(w, &s.writer, s.key);
    world_trio_close(w, &s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_ended_well_before_the_event_is_reported_so_and_nothing_goes_again)                      \
    T(what_is_flushed_is_the_devices_until_it_says_so)                                             \
    T(a_queue_pair_that_gives_nothing_back_is_given_up_after_so_long_as_a_request_may_take)        \
    T(a_queue_pair_is_not_given_up_for_the_time_in_which_its_host_stood_still)                     \
    T(a_queue_pair_is_not_given_up_for_a_stop_that_is_no_longer_than_bound)                        \
    T(a_queue_pair_is_not_given_up_for_a_stop_that_ends_before_its_time_is_over)                   \
    T(a_queue_pair_is_waited_for_anew_after_a_stop_in_which_times_wrap)                            \
    T(a_queue_pair_that_was_told_to_end_and_gives_nothing_back_is_given_up_too)                    \
    T(what_has_failed_is_not_waited_for_when_the_device_refused_what_was_chained_behind_it)        \
    T(nothing_is_posted_on_a_queue_pair_any_more_when_the_control_side_is_asked_to_end_it)         \
    T(what_is_out_on_a_queue_pair_that_was_destroyed_ends_at_once)
KEDGE_CHECK_MAIN("agent.lane.fatal", TESTS)
