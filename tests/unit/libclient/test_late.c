/* SPDX-License-Identifier: Apache-2.0 */
/* A worker on a host that is slow, or that gets no processor itself: what it tells the agent of its
 * time, and what it makes of an answer that it reads late. The clock goes on by as much as the test
 * likes wherever a call takes long. */
#include "fake_agent.h"

#include <poll.h>
#include <time.h>

#include "base/clock.h"

enum { LONGEST_TICK_NS = 10 * BASE_NS_PER_MS };

static uint64_t passed_ns;   /* that the test has let pass */
static uint64_t connects_ns; /* that connecting takes */
static uint64_t stops_ns;    /* between sending and looking for the answer, which has come then */
static __thread bool worker;
static struct schema_control_attach got;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    const int status = __real_clock_gettime(clock, out);
    out->tv_sec += (time_t)(passed_ns / BASE_NS_PER_S);
    return status;
}

int __real_connect(int fd, const struct sockaddr *at, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *at, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *at, socklen_t bytes)
{
    const int status = __real_connect(fd, at, bytes);
    passed_ns += connects_ns;
    return status;
}

int __real_base_fds_send(int socket, const void *message, size_t bytes, const int *fds,
                         unsigned count);
int __wrap_base_fds_send(int socket, const void *message, size_t bytes, const int *fds,
                         unsigned count);
int __wrap_base_fds_send(int socket, const void *message, size_t bytes, const int *fds,
                         unsigned count)
{
    struct pollfd answer = {.fd = socket, .events = POLLIN};
    if (worker)
        memcpy(&got, message, sizeof got);
    const int status = __real_base_fds_send(socket, message, bytes, fds, count);
    if (worker && stops_ns > 0) {
        ck_assert_int_eq(poll(&answer, 1, 60000), 1);
        passed_ns += stops_ns;
    }
    return status;
}

static int try_open(struct fake_agent *a, struct kedge_session **out)
{
    worker = true;
    const int status = fake_agent_try_open(a, out);
    worker = false;
    return status;
}

START_TEST(an_attach_says_when_it_was_sent_and_how_long_its_worker_still_waits)
{
    struct fake_agent a;
    struct kedge_session *s = NULL;
    fake_agent_start(&a);
    const uint64_t before = base_clock_ns();
    ck_assert_int_eq(try_open(&a, &s), 0);
    ck_assert_uint_ge(got.sent_ns, before);
    ck_assert_uint_le(got.sent_ns, base_clock_ns());
    ck_assert_uint_le(got.left_ms, 5000);
    kedge_close(s);
    connects_ns = 3 * BASE_NS_PER_S; /* of the five */
    ck_assert_int_eq(try_open(&a, &s), 0);
    ck_assert_uint_le(got.left_ms, 2000);
    ck_assert_uint_gt(got.left_ms, 0);
    ck_assert_uint_ge(got.sent_ns, before + connects_ns);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(an_answer_that_has_come_is_one_however_late_its_worker_looks)
{
    struct fake_agent a;
    struct kedge_session *s = NULL;
    fake_agent_start(&a);
    stops_ns = 60 * BASE_NS_PER_S;
    ck_assert_int_eq(try_open(&a, &s), 0);
    kedge_close(s);
    a.error.status = -EAGAIN;
    ck_assert_int_eq(try_open(&a, &s), -EAGAIN);
    fake_agent_stop(&a);
}
END_TEST

/* It answers nothing. */
static void *accept_alone(void *argument)
{
    struct fake_agent *a = argument;
    a->connection = accept(a->listener, NULL, NULL);
    return NULL;
}

START_TEST(when_the_time_is_over_nobody_is_waited_for)
{
    struct fake_agent a;
    struct kedge_session *s = NULL;
    fake_agent_start(&a);
    const struct kedge_open_attr attr = {.socket = a.path};
    connects_ns = 4 * BASE_NS_PER_S;
    ck_assert_int_eq(pthread_create(&a.thread, NULL, accept_alone, &a), 0);
    const uint64_t before = base_clock_ns();
    ck_assert_int_eq(kedge_open(&attr, &s), -ETIMEDOUT);
    /* The kernel counts a socket's time in ticks, of which the first is a part of one. */
    ck_assert_uint_ge(base_clock_ns() - before, 5 * BASE_NS_PER_S - LONGEST_TICK_NS);
    pthread_join(a.thread, NULL);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_attach_says_when_it_was_sent_and_how_long_its_worker_still_waits)                         \
    T(an_answer_that_has_come_is_one_however_late_its_worker_looks)                                \
    T(when_the_time_is_over_nobody_is_waited_for)
KEDGE_CHECK_MAIN("late", TESTS)
