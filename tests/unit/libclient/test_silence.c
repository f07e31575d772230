/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that stands still: its lane's sign of life stays the same. */
#include "fake_lane.h"

#include <poll.h>
#include <stdbool.h>

#include "base/clock.h"

enum { TIMEOUT_MS = 200, LONG_S = 60 };

static struct kedge_session *open_at_a_stopped_agent(struct fake_agent *a)
{
    fake_agent_start(a);
    a->timeout_ms = TIMEOUT_MS;
    return fake_agent_open(a);
}

static void says_that_it_stands_still(int status)
{
    ck_assert_int_eq(status, -EHOSTDOWN);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "the agent has not moved for 200 ms"));
}

START_TEST(a_wait_without_a_limit_ends_when_the_agent_stands_still_and_goes_on_with_it)
{
    struct fake_agent a;
    struct kedge_session *s = open_at_a_stopped_agent(&a);
    says_that_it_stands_still(kedge_wait(s, -1));
    says_that_it_stands_still(kedge_session_status(s));
    says_that_it_stands_still(kedge_wait(s, -1));
    says_that_it_stands_still(kedge_wait(s, 0));
    schema_peers_live(a.peers);
    ck_assert_int_eq(kedge_wait(s, 0), 0);
    ck_assert_int_eq(kedge_session_status(s), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(short_waits_add_up_to_that_time)
{
    struct fake_agent a;
    int status = 0;
    struct kedge_session *s = open_at_a_stopped_agent(&a);
    uint64_t end = base_clock_ns() + LONG_S * BASE_NS_PER_S;
    while ((status = kedge_wait(s, 1)) == 0)
        ck_assert_uint_lt(base_clock_ns(), end);
    says_that_it_stands_still(status);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_worker_that_polls_is_told_too)
{
    struct fake_agent a;
    struct ibv_wc wc;
    int status = 0;
    struct kedge_session *s = open_at_a_stopped_agent(&a);
    uint64_t end = base_clock_ns() + LONG_S * BASE_NS_PER_S;
    while ((status = kedge_poll(s, 1, &wc)) == 0)
        ck_assert_uint_lt(base_clock_ns(), end);
    says_that_it_stands_still(status);
    schema_peers_live(a.peers);
    for (int i = 0; i < 64; i++)
        status = kedge_poll(s, 1, &wc);
    ck_assert_int_eq(status, 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(what_is_asked_of_a_stopped_agent_ends_in_that_time_and_says_why)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    struct kedge_session *s = open_at_a_stopped_agent(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect(q, (const uint8_t[16]){0xfd, 9}), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "the agent has not moved"));
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(a_completion_that_is_there_comes_before_the_news_that_the_agent_stands_still)
{
    struct fake_agent a;
    struct ibv_wc wc;
    struct kedge_vqp *q;
    struct kedge_session *s = open_at_a_stopped_agent(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    says_that_it_stands_still(kedge_wait(s, -1));
    fake_lane_complete(&a, kedge_vqp_num(q), 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(kedge_wait(s, -1), 1);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    says_that_it_stands_still(kedge_wait(s, -1));
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* The lane sleeps, and wakes for nothing but its doorbell. */
struct sleeper {
    struct fake_agent *a;
    _Atomic bool stop;
    unsigned rings;
};

static void *sleep_until_rung(void *argument)
{
    struct sleeper *l = argument;
    while (!atomic_load(&l->stop)) {
        uint64_t count;
        struct pollfd p = {.fd = l->a->fds[SCHEMA_FD_DOORBELL], .events = POLLIN};
        if (poll(&p, 1, 10) != 1)
            continue;
        ck_assert_int_eq(read(p.fd, &count, sizeof count), sizeof count);
        l->rings += (unsigned)count;
        schema_peers_live(l->a->peers);
    }
    return NULL;
}

START_TEST(a_lane_that_sleeps_is_rung_once_in_half_that_time_and_not_taken_for_a_dead_one)
{
    enum { PATIENT_MS = 2000 }; /* the half of it is the lane's, and not a busy machine's */
    struct fake_agent a;
    pthread_t thread;
    fake_agent_start(&a);
    a.timeout_ms = PATIENT_MS;
    struct kedge_session *s = fake_agent_open(&a);
    struct sleeper lane = {.a = &a};
    ck_assert_int_eq(pthread_create(&thread, NULL, sleep_until_rung, &lane), 0);
    uint64_t begin = base_clock_ns();
    ck_assert_int_eq(kedge_wait(s, 2 * PATIENT_MS), 0);
    uint64_t ms = (base_clock_ns() - begin) / BASE_NS_PER_MS;
    atomic_store(&lane.stop, true);
    pthread_join(thread, NULL);
    ck_assert_uint_ge(lane.rings, 1);
    ck_assert_uint_le(lane.rings, ms / (PATIENT_MS / 2) + 1);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(the_time_is_the_callers_or_the_environments_and_nonsense_is_refused)
{
    struct fake_agent a;
    struct kedge_session *s = NULL;
    fake_agent_start(&a);
    setenv("KEDGE_AGENT_TIMEOUT_MS", "soon", 1);
    struct kedge_open_attr attr = {.socket = a.path};
    ck_assert_int_eq(kedge_open(&attr, &s), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "KEDGE_AGENT_TIMEOUT_MS is \"soon\""));
    setenv("KEDGE_AGENT_TIMEOUT_MS", "200", 1);
    s = fake_agent_open(&a);
    says_that_it_stands_still(kedge_wait(s, -1));
    kedge_close(s);
    close(a.connection);
    a.timeout_ms = -1; /* no limit: nothing is looked at */
    s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_wait(s, 2 * TIMEOUT_MS), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_wait_without_a_limit_ends_when_the_agent_stands_still_and_goes_on_with_it)                 \
    T(short_waits_add_up_to_that_time)                                                             \
    T(a_worker_that_polls_is_told_too)                                                             \
    T(what_is_asked_of_a_stopped_agent_ends_in_that_time_and_says_why)                             \
    T(a_completion_that_is_there_comes_before_the_news_that_the_agent_stands_still)                \
    T(a_lane_that_sleeps_is_rung_once_in_half_that_time_and_not_taken_for_a_dead_one)              \
    T(the_time_is_the_callers_or_the_environments_and_nonsense_is_refused)

KEDGE_CHECK_MAIN("libclient.silence", TESTS)
