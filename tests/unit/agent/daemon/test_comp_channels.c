/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "comp_channels.h"

enum { SESSIONS = 130, QUIET_MS = 20, GUILTY = 1, HONEST = 2, NOBODY = 0, FDS = 4096 };

static struct comp_channels *c;
/* The next so many sends take long: that much of the processor, and until it is not held. */
static _Atomic uint32_t slow_sends;
static _Atomic uint64_t burn_ns;
static _Atomic bool held;
static _Atomic uint32_t sends, at_hold;

/* Sends of one tenant alone are slow, if it is not NOBODY. */
static _Atomic uint32_t slow_tenant;
static uint32_t opening;
static _Atomic uint32_t tenant_of[FDS]; /* by the agent's end */

int __wrap_socketpair(int domain, int type, int protocol, int ends[2]);
int __real_socketpair(int domain, int type, int protocol, int ends[2]);

int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
    const int status = __real_socketpair(domain, type, protocol, ends);
    if (status == 0 && ends[0] < FDS)
        atomic_store(&tenant_of[ends[0]], opening);
    return status;
}

static bool is_slow(int fd)
{
    const uint32_t tenant = atomic_load(&slow_tenant);
    return atomic_load(&slow_sends) > 0 &&
           (tenant == NOBODY || (fd < FDS && atomic_load(&tenant_of[fd]) == tenant));
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);

static void take_long(void)
{
    const uint64_t end_ns = base_clock_thread_ns() + atomic_load(&burn_ns);
    while (base_clock_thread_ns() < end_ns)
        ;
    if (!atomic_load(&held))
        return;
    atomic_fetch_add(&at_hold, 1);
    /* Its processor time is charged, that of waking up too, however long it is held. */
    while (atomic_load(&held))
        usleep(20000);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    ck_assert_int_eq(flags & MSG_DONTWAIT, MSG_DONTWAIT);
    atomic_fetch_add(&sends, 1);
    if (is_slow(fd)) {
        atomic_fetch_sub(&slow_sends, 1);
        take_long();
    }
    return __real_send(fd, bytes, n, flags);
}

static void begin(void)
{
    struct base_errbuf err;
    atomic_store(&sends, 0);
    atomic_store(&burn_ns, 0);
    atomic_store(&held, false);
    atomic_store(&at_hold, 0);
    atomic_store(&slow_sends, 0);
    atomic_store(&slow_tenant, NOBODY);
    ck_assert_int_eq(agentd_comp_channels_new(SESSIONS, &c, &err), 0);
}

static int open_channel(uint32_t session, uint32_t tenant)
{
    struct base_errbuf err;
    int fd = -1;
    opening = tenant;
    const int status = agentd_comp_channels_open(c, session, tenant, &fd, &err);
    return status == 0 ? fd : status;
}

static bool is_readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void read_byte(int fd)
{
    char byte;
    ck_assert(is_readable(fd, 60000));
    ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
}

static void await(const _Atomic uint32_t *count, uint32_t n)
{
    const uint64_t until_ns = base_clock_ns() + 60 * BASE_NS_PER_S;
    while (atomic_load(count) < n && base_clock_ns() < until_ns)
        usleep(100);
    ck_assert_uint_ge(atomic_load(count), n);
}

START_TEST(a_channel_is_readable_once_it_is_told_and_no_other_is)
{
    begin();
    const uint32_t session[] = {0, 63, 64, SESSIONS - 1};
    int fd[4];
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_ge(fd[i] = open_channel(session[i], 1 + i), 0);
    agentd_comp_channels_tell(c, 1); /* which has none */
    for (uint32_t round = 0; round < 100; round++) {
        agentd_comp_channels_tell(c, session[round % 4]);
        read_byte(fd[round % 4]);
        for (uint32_t i = 0; i < 4; i++)
            ck_assert(!is_readable(fd[i], 0));
    }
    agentd_comp_channels_free(c);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert(is_readable(fd[i], 0));
        close(fd[i]);
    }
}
END_TEST

START_TEST(its_end_is_readable_for_ever_and_the_next_one_is_another)
{
    char byte;
    begin();
    const int first = open_channel(5, HONEST);
    const int second = open_channel(5, HONEST);
    ck_assert(is_readable(first, 10000));
    ck_assert_int_eq(recv(first, &byte, 1, MSG_DONTWAIT), 0);
    agentd_comp_channels_tell(c, 5);
    read_byte(second);
    agentd_comp_channels_close(c, 5);
    agentd_comp_channels_close(c, 5);
    ck_assert(is_readable(second, 10000));
    agentd_comp_channels_tell(c, 5);
    agentd_comp_channels_free(c);
    close(first);
    close(second);
}
END_TEST

/* Nobody sends anything to the agent, with descriptors perhaps; and what was closed by its worker,
 * or is full, is no more than that. */
START_TEST(what_a_worker_does_to_its_end_is_its_own_affair)
{
    char byte;
    begin();
    const int full = open_channel(0, GUILTY), closed = open_channel(1, GUILTY),
              shut = open_channel(2, GUILTY), honest = open_channel(3, HONEST);
    ck_assert_int_eq(__real_send(full, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
    ck_assert_int_eq(errno, EPIPE);
    close(closed);
    shutdown(shut, SHUT_RDWR);
    for (uint32_t i = 1; i <= 200; i++) {
        agentd_comp_channels_tell(c, 0);
        await(&sends, i);
    }
    for (uint32_t i = 1; i < 4; i++)
        agentd_comp_channels_tell(c, i);
    read_byte(honest);
    ck_assert_int_eq(recv(full, &byte, 1, MSG_DONTWAIT), 1);
    agentd_comp_channels_free(c);
    close(full);
    close(shut);
    close(honest);
}
END_TEST

/* Whose send takes long keeps others waiting once. */
START_TEST(who_has_taken_long_is_waited_for_by_nobody_else)
{
    begin();
    const int guilty = open_channel(0, GUILTY), honest = open_channel(1, HONEST);
    atomic_store(&burn_ns, 6 * CHANNELS_FORGIVEN_US * BASE_NS_PER_US / 5);
    atomic_store(&slow_sends, 1);
    atomic_store(&held, true);
    agentd_comp_channels_tell(c, 0);
    await(&at_hold, 1);
    agentd_comp_channels_tell(c, 1);
    ck_assert(!is_readable(honest, QUIET_MS));
    atomic_store(&held, false);
    read_byte(guilty);
    read_byte(honest);
    for (uint32_t i = 2; i < 5; i++) { /* the second one, and all that follow */
        atomic_store(&slow_sends, 1);
        atomic_store(&held, true);
        agentd_comp_channels_tell(c, 0);
        await(&at_hold, i);
        for (int n = 0; n < 10; n++) {
            agentd_comp_channels_tell(c, 1);
            read_byte(honest);
        }
        atomic_store(&held, false);
        read_byte(guilty);
    }
    agentd_comp_channels_free(c);
    close(guilty);
    close(honest);
}
END_TEST

/* What nobody reads is the agent's memory, also when its end is closed. */
START_TEST(a_channel_that_nobody_reads_has_few_bytes_in_it)
{
    begin();
    const int fd = open_channel(0, GUILTY);
    char bytes[1000];
    for (uint32_t i = 1; i <= 100; i++) {
        agentd_comp_channels_tell(c, 0);
        await(&sends, i);
    }
    agentd_comp_channels_free(c);
    ck_assert_int_le(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT), 20);
    close(fd);
}
END_TEST

/* No more than its part of the time, of the processor's. */
START_TEST(who_takes_long_again_and_again_is_told_seldom)
{
    enum { LONG_MS = 4, FOR_MS = 400 };
    begin();
    const int guilty = open_channel(0, GUILTY);
    atomic_store(&slow_sends, UINT32_MAX);
    atomic_store(&burn_ns, CHANNELS_FORGIVEN_US * BASE_NS_PER_US / 2);
    agentd_comp_channels_tell(c, 0);
    read_byte(guilty);
    agentd_comp_channels_tell(c, 0);
    read_byte(guilty);
    atomic_store(&burn_ns, LONG_MS * BASE_NS_PER_MS);
    const uint64_t until_ns = base_clock_ns() + FOR_MS * BASE_NS_PER_MS;
    while (base_clock_ns() < until_ns) {
        char bytes[64];
        agentd_comp_channels_tell(c, 0);
        (void)recv(guilty, bytes, sizeof bytes, MSG_DONTWAIT);
        usleep(1000);
    }
    ck_assert_uint_le(atomic_load(&sends), 4);
    atomic_store(&burn_ns, 0);
    agentd_comp_channels_free(c);
    close(guilty);
}
END_TEST

START_TEST(whose_channels_are_slow_to_close_gets_no_more_and_others_do)
{
    enum { TRIES = 100 };
    begin();
    int fd[TRIES], n = 0, status = 0;
    const int honest = open_channel(1, HONEST);
    atomic_store(&slow_sends, 1);
    atomic_store(&burn_ns, 100 * BASE_NS_PER_MS);
    ck_assert_int_ge(fd[n++] = open_channel(0, GUILTY), 0);
    agentd_comp_channels_tell(c, 0);
    read_byte(fd[0]); /* the tenant rests now, for some seconds */
    while (n < TRIES && status >= 0) {
        status = open_channel(0, GUILTY);
        if (status >= 0)
            fd[n++] = status;
    }
    ck_assert_int_eq(status, -EAGAIN);
    ck_assert_int_le(n, CHANNELS_CLOSING + 1);
    agentd_comp_channels_tell(c, 1);
    read_byte(honest);
    const int other = open_channel(2, HONEST);
    ck_assert_int_ge(other, 0);
    agentd_comp_channels_free(c);
    while (n > 0)
        close(fd[--n]);
    close(honest);
    close(other);
}
END_TEST

/* Also of those that waited with it for the thread that all have. */
START_TEST(what_waits_when_it_has_taken_long_goes_to_the_slow_thread)
{
    enum { MORE = 10 };
    int guilty[MORE];
    begin();
    const int honest = open_channel(MORE, HONEST);
    for (uint32_t i = 0; i < MORE; i++)
        ck_assert_int_ge(guilty[i] = open_channel(i, GUILTY), 0);
    atomic_store(&slow_tenant, HONEST);
    atomic_store(&slow_sends, UINT32_MAX);
    atomic_store(&held, true);
    agentd_comp_channels_tell(c, MORE);
    await(&at_hold, 1);
    for (uint32_t i = 0; i < MORE; i++) /* which the thread finds all at once */
        agentd_comp_channels_tell(c, i);
    /* It owes so little that it rests for some 50 ms alone. */
    atomic_store(&burn_ns, (CHANNELS_FORGIVEN_US + 200) * BASE_NS_PER_US);
    atomic_store(&slow_tenant, GUILTY);
    atomic_store(&held, false);
    read_byte(honest);
    read_byte(guilty[0]);
    atomic_store(&held, true);
    await(&at_hold, 2); /* the next one, when it has rested, however many there are */
    for (int n = 0; n < 10; n++) {
        agentd_comp_channels_tell(c, MORE);
        read_byte(honest);
    }
    atomic_store(&held, false);
    for (uint32_t i = 1; i < MORE; i++)
        read_byte(guilty[i]);
    agentd_comp_channels_free(c);
    for (uint32_t i = 0; i < MORE; i++)
        close(guilty[i]);
    close(honest);
}
END_TEST

/* Whatever another session of its tenant has had, and all sessions together. */
START_TEST(a_session_has_one_by_right)
{
    int fd[SESSIONS + CHANNELS_CLOSING], n = 0, status = 0, first[SESSIONS];
    begin();
    atomic_store(&slow_sends, 1);
    atomic_store(&burn_ns, 100 * BASE_NS_PER_MS);
    ck_assert_int_ge(fd[n++] = open_channel(0, GUILTY), 0);
    agentd_comp_channels_tell(c, 0);
    read_byte(fd[0]); /* none is closed for some seconds */
    while (n < CHANNELS_CLOSING + 1 && status >= 0) {
        status = open_channel(0, GUILTY);
        if (status >= 0)
            fd[n++] = status;
    }
    ck_assert_int_eq(open_channel(0, GUILTY), -EAGAIN);
    for (uint32_t i = 1; i < SESSIONS; i++)
        ck_assert_int_ge(first[i] = open_channel(i, i % 2 == 0 ? GUILTY : HONEST), 0);
    agentd_comp_channels_free(c);
    while (n > 0)
        close(fd[--n]);
    for (uint32_t i = 1; i < SESSIONS; i++)
        close(first[i]);
}
END_TEST

/* The number of a tenant that is gone is another one's. */
START_TEST(what_a_tenant_that_is_gone_has_cost_is_not_the_next_ones)
{
    enum { OLD = 5 };
    int old[OLD];
    begin();
    for (uint32_t i = 0; i < OLD; i++)
        ck_assert_int_ge(old[i] = open_channel(i, GUILTY), 0);
    atomic_store(&slow_sends, 1);
    atomic_store(&burn_ns, 300 * BASE_NS_PER_MS);
    agentd_comp_channels_tell(c, 0);
    read_byte(old[0]); /* rests for more than a minute */
    for (uint32_t i = 0; i < OLD; i++)
        agentd_comp_channels_close(c, i);
    agentd_comp_channels_forget(c, GUILTY);
    const int next = open_channel(0, GUILTY);
    ck_assert_int_ge(next, 0);
    for (int n = 0; n < 100; n++) {
        agentd_comp_channels_tell(c, 0);
        read_byte(next);
    }
    char byte;
    for (uint32_t i = 1; i < OLD; i++) { /* which still rest */
        ck_assert_int_eq(recv(old[i], &byte, 1, MSG_DONTWAIT), -1);
        ck_assert_int_eq(errno, EAGAIN);
    }
    agentd_comp_channels_free(c);
    for (uint32_t i = 0; i < OLD; i++)
        close(old[i]);
    close(next);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_channel_is_readable_once_it_is_told_and_no_other_is)                                       \
    T(its_end_is_readable_for_ever_and_the_next_one_is_another)                                    \
    T(what_a_worker_does_to_its_end_is_its_own_affair)                                             \
    T(who_has_taken_long_is_waited_for_by_nobody_else)                                             \
    T(a_channel_that_nobody_reads_has_few_bytes_in_it)                                             \
    T(who_takes_long_again_and_again_is_told_seldom)                                               \
    T(whose_channels_are_slow_to_close_gets_no_more_and_others_do)                                 \
    T(what_waits_when_it_has_taken_long_goes_to_the_slow_thread)                                   \
    T(a_session_has_one_by_right)                                                                  \
    T(what_a_tenant_that_is_gone_has_cost_is_not_the_next_ones)

KEDGE_CHECK_MAIN("agent.daemon.comp_channels", TESTS)
