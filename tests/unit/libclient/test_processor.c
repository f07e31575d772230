/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says of where it runs, and what it does where the lane runs there too. The
 * processor's number and the sleep are the test's. */
#include "fake_lane.h"

enum { HERE = 2, THERE = 4, MANY = 1000, MOST = 4 /* sleeps in vain for what was posted */ };

static const uint8_t peer_gid[16] = {0xfd, 1};
static int cpu, status_of_sleep;
static uint32_t sleeps;
static uint64_t patience_ns; /* of the last one */
static struct fake_agent a;

int __wrap_sched_getcpu(void);
int __wrap_sched_getcpu(void)
{
    return cpu;
}

/* Is what who waits for the lane has said by then. */
int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    ck_assert_uint_eq(atomic_load(word), expected);
    ck_assert_uint_eq(atomic_load(&a.rw->want_wake), 1);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), (uint32_t)cpu + 1);
    ck_assert_uint_le(timeout_ns, 100000000);
    sleeps++;
    patience_ns = timeout_ns;
    return status_of_sleep;
}

static struct kedge_session *s;
static struct kedge_vqp *q;
static void *memory;
static uint32_t lkey;

static void setup(int lane_cpu)
{
    fake_agent_start(&a);
    cpu = HERE;
    status_of_sleep = -ETIMEDOUT;
    atomic_store(&a.ro->lane_cpu, (uint32_t)lane_cpu + 1);
    ck_assert_int_eq(schema_peers_put(a.peers, 3, peer_gid, 1, 1), 3);
    s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect(q, peer_gid), 0);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    sleeps = 0;
}

static void teardown(void)
{
    kedge_close(s);
    fake_agent_stop(&a);
}

static int try_to_post(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = 4096, .rkey = 1}},
                       *bad;
    return kedge_post_send(q, &wr, &bad);
}

static void post(void)
{
    ck_assert_int_eq(try_to_post(), 0);
}

static void poll_in_vain(int times)
{
    struct ibv_wc wc;
    for (int i = 0; i < times; i++)
        ck_assert_int_eq(kedge_poll(s, 1, &wc), 0);
}

START_TEST(a_worker_that_polls_in_vain_says_where_it_runs_and_when_it_has_moved)
{
    setup(THERE);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), 0);
    poll_in_vain(1);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), HERE + 1);
    cpu = THERE + 1;
    poll_in_vain(100);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), THERE + 2);
    cpu = -1;
    poll_in_vain(100);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), 0);
    ck_assert_uint_eq(sleeps, 0);
    teardown();
}
END_TEST

/* The lane may answer before the call returns, where both have one processor. */
START_TEST(a_worker_that_rings_says_so_before)
{
    uint64_t rings;
    setup(THERE);
    atomic_store(&a.ro->doorbell, 1);
    post();
    ck_assert_int_eq(read(a.fds[SCHEMA_FD_DOORBELL], &rings, sizeof rings), sizeof rings);
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), HERE + 1);
    teardown();
}
END_TEST

START_TEST(a_worker_that_waits_says_so_before_it_sleeps)
{
    setup(THERE);
    status_of_sleep = 0;
    ck_assert_int_eq(kedge_wait(s, 1), 0);
    ck_assert_uint_gt(sleeps, 0);
    teardown();
}
END_TEST

START_TEST(beside_a_lane_elsewhere_or_one_that_does_not_say_where_a_poll_never_sleeps)
{
    for (int lane_cpu = -1; lane_cpu <= THERE; lane_cpu += THERE + 1) {
        setup(lane_cpu);
        post();
        poll_in_vain(MANY);
        ck_assert_uint_eq(sleeps, 0);
        cpu = -1; /* nor where the worker cannot tell */
        poll_in_vain(MANY);
        ck_assert_uint_eq(sleeps, 0);
        teardown();
    }
}
END_TEST

START_TEST(on_the_lanes_processor_a_poll_gives_it_up_a_few_times_for_what_was_posted)
{
    setup(HERE);
    for (uint32_t i = 1; i <= 3; i++) {
        post();
        poll_in_vain(MANY);
        ck_assert_uint_eq(sleeps, i * MOST);
        ck_assert_uint_eq(atomic_load(&a.rw->want_wake), 0);
    }
    status_of_sleep = 0; /* it is woken each time */
    post();
    poll_in_vain(MANY);
    ck_assert_uint_gt(sleeps, 10 * MOST);
    teardown();
}
END_TEST

/* A short one sets the kernel's clock, and a long one is for a lane that answers. */
START_TEST(it_gives_it_up_for_long_where_the_last_time_was_not_in_vain)
{
    enum { SHORT_NS = 100000, LONG_NS = 10000000, ONE = 17 /* polls, the last of which sleeps */ };
    static const struct {
        int status;
        uint64_t next_ns;
    } sleep[] = {{-ETIMEDOUT, SHORT_NS}, {0, LONG_NS},           {-EAGAIN, LONG_NS},
                 {-EINTR, LONG_NS},      {-ETIMEDOUT, SHORT_NS}, {-EAGAIN, SHORT_NS}};
    setup(HERE);
    post();
    status_of_sleep = sleep[0].status;
    poll_in_vain(ONE);
    ck_assert_uint_eq(patience_ns, SHORT_NS);
    for (size_t i = 1; i < sizeof sleep / sizeof sleep[0]; i++) {
        const uint32_t before = sleeps;
        post();
        status_of_sleep = sleep[i].status;
        poll_in_vain(ONE - 1);
        ck_assert_uint_eq(sleeps, before + 1);
        ck_assert_uint_eq(patience_ns, sleep[i - 1].next_ns);
    }
    teardown();
}
END_TEST

/* Calls that post in vain are none of those. */
START_TEST(a_loop_that_finds_the_ring_full_says_where_it_runs_and_lets_the_lane_take_from_it)
{
    setup(HERE);
    while (try_to_post() == 0)
        ;
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), 0);
    for (int i = 0; i < MANY; i++) {
        poll_in_vain(1);
        ck_assert_int_eq(try_to_post(), -ENOMEM);
        if (i < 16)
            ck_assert_uint_eq(sleeps, 0);
    }
    ck_assert_uint_eq(atomic_load(&a.rw->cpu), HERE + 1);
    ck_assert_uint_eq(sleeps, MOST);
    teardown();
}
END_TEST

/* What one of several sessions of a thread has in flight costs the others' calls nothing. */
START_TEST(a_poll_for_nothing_never_sleeps)
{
    struct ibv_wc wc;
    setup(HERE);
    poll_in_vain(MANY);
    post();
    fake_lane_take(&a, fake_lane_waiting(&a));
    fake_lane_complete(&a, kedge_vqp_num(q), 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    poll_in_vain(MANY);
    post();
    kedge_vqp_destroy(q); /* its completions are nobody's */
    poll_in_vain(MANY);
    ck_assert_uint_eq(sleeps, 0);
    teardown();
}
END_TEST

START_TEST(what_is_there_is_taken_without_a_sleep)
{
    struct ibv_wc wc;
    setup(HERE);
    for (int i = 0; i < MANY; i++) {
        post();
        fake_lane_take(&a, fake_lane_waiting(&a));
        fake_lane_complete(&a, kedge_vqp_num(q), 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    }
    ck_assert_uint_eq(sleeps, 0);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_worker_that_polls_in_vain_says_where_it_runs_and_when_it_has_moved)                        \
    T(a_worker_that_rings_says_so_before)                                                          \
    T(a_worker_that_waits_says_so_before_it_sleeps)                                                \
    T(beside_a_lane_elsewhere_or_one_that_does_not_say_where_a_poll_never_sleeps)                  \
    T(on_the_lanes_processor_a_poll_gives_it_up_a_few_times_for_what_was_posted)                   \
    T(it_gives_it_up_for_long_where_the_last_time_was_not_in_vain)                                 \
    T(a_loop_that_finds_the_ring_full_says_where_it_runs_and_lets_the_lane_take_from_it)           \
    T(a_poll_for_nothing_never_sleeps)                                                             \
    T(what_is_there_is_taken_without_a_sleep)

KEDGE_CHECK_MAIN("libclient.processor", TESTS)
