/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets to which descriptors were sent, whose end takes as long as their sender wants: a process
 * that has /dev/zero does not end here until the test lets it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "../../check_main.h"
#include "attach_socket.h"
#include "base/clock.h"
#include "base/fds.h"

enum { WAIT_US = 1000, WAITS = 60000, MOST = 2048, KIND_SLOW = 5 /* of /dev/zero */ };

/* ---- a kernel of before 6.16, and processes that do not end */

/* Shared with them. */
static struct shared {
    _Atomic uint32_t go_on;
    _Atomic uint32_t looks; /* of the one that hands over, at what there is to do */
} * shared;

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    enum { PASSRIGHTS = 83 };
    if (level == SOL_SOCKET && name == PASSRIGHTS) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

static bool has_slow(void)
{
    struct stat st;
    for (int fd = 0; fd < CLOSER_NUMBERS; fd++)
        if (fstat(fd, &st) == 0 && st.st_rdev == makedev(1, KIND_SLOW))
            return true;
    return false;
}

void _exit(int status)
{
    if (shared != NULL && has_slow())
        while (shared->go_on == 0)
            (void)syscall(SYS_futex, &shared->go_on, FUTEX_WAIT, 0, NULL, NULL, 0);
    (void)syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

static void let_go(void)
{
    shared->go_on = 1;
    (void)syscall(SYS_futex, &shared->go_on, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *set)
{
    struct timespec left = timeout != NULL ? *timeout : (struct timespec){0};
    if (shared != NULL)
        shared->looks++;
    return (int)syscall(SYS_ppoll, fds, count, timeout != NULL ? &left : NULL, set,
                        sizeof(uint64_t));
}

/* ---- the clock */

/* What the agent's clock says, 0: what the machine's does. How long processes have taken is counted
 * in turns of the agent, in which the machine runs them too: one that is busy with others may need
 * seconds for what ends soon. */
static uint64_t clock_ns;
static uint64_t turn_ns; /* how far a turn puts it on */

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (clock_ns == 0)
        return (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec = (time_t)(clock_ns / BASE_NS_PER_S);
    t->tv_nsec = (long)(clock_ns % BASE_NS_PER_S);
    return 0;
}

/* ---- the agent */

struct sender {
    struct attach_sockets sockets;
    struct closer_process process;
    struct closing one[MOST];
    uint32_t used, closed, refusals;
    uv_loop_t loop;
};
static struct sender *now; /* of the test */

static void on_closed(struct closing *c)
{
    (void)c;
    now->closed++;
}

static void on_refuse(struct closer *r)
{
    (void)r;
    now->refusals++;
}

static struct sender *begin(void)
{
    struct base_errbuf err = {{0}};
    struct rlimit files = {.rlim_cur = 4096, .rlim_max = 4096};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    now = calloc(1, sizeof *now);
    ck_assert_ptr_nonnull(now);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    ck_assert_msg(agentd_closer_process_start(&now->process, &err) == 0, "%s", err.text);
    ck_assert_int_gt(now->process.pid, 0);
    ck_assert_int_eq(uv_loop_init(&now->loop), 0);
    now->sockets.closer =
        (struct closer){.process = &now->process, .loop = &now->loop, .refuse = on_refuse};
    ck_assert_msg(agentd_closer_start(&now->sockets.closer, &err) == 0, "%s", err.text);
    clock_ns = base_clock_ns();
    turn_ns = BASE_NS_PER_MS;
    return now;
}

static int open_one(bool slow)
{
    const int fd = open(slow ? "/dev/zero" : "/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, CLOSER_NUMBERS); /* those below are the closers' */
    return fd;
}

static void take_fd(struct sender *s, uid_t uid, int fd)
{
    ck_assert_uint_lt(s->used, MOST);
    struct closing *c = &s->one[s->used++];
    *c = (struct closing){.fd = fd, .uid = uid, .closed = on_closed};
    agentd_closer_take(&s->sockets.closer, c);
}

static void take(struct sender *s, uid_t uid, bool slow)
{
    take_fd(s, uid, open_one(slow));
}

static void turn(struct sender *s)
{
    (void)uv_run(&s->loop, UV_RUN_NOWAIT);
    (void)usleep(WAIT_US);
    clock_ns += turn_ns;
}

static uint32_t count_of(const struct sender *s, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CLOSERS; i++)
        count += s->sockets.closer.batch[i].serial != 0 && s->sockets.closer.batch[i].uid == uid;
    return count;
}

static bool is_busy(const struct sender *s)
{
    bool busy = s->sockets.closer.first != NULL;
    for (uint32_t i = 0; i < CLOSERS; i++)
        busy |= s->sockets.closer.batch[i].serial != 0;
    return busy;
}

#define TURN_UNTIL(s, condition)                                                                   \
    do {                                                                                           \
        for (int turns = 0; turns < WAITS && !(condition); turns++)                                \
            turn(s);                                                                               \
        ck_assert(condition);                                                                      \
    } while (0)

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void end(struct sender *s)
{
    uv_walk(&s->loop, close_handle, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s->loop), 0);
    clock_ns = 0; /* it waits for a while, if anything */
    agentd_closer_stop(&s->sockets.closer);
    ck_assert_uint_eq(s->closed, s->used);
    agentd_closer_process_stop(&s->process);
    free(s);
}

/* ---- the process */

static struct closer_report hear(struct sender *s)
{
    struct closer_report report;
    for (int i = 0; i < WAITS; i++) {
        if (agentd_closer_process_hear(&s->process, &report) == 0)
            return report;
        (void)usleep(WAIT_US);
    }
    ck_abort_msg("no report comes");
}

static bool has_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0;
}

START_TEST(what_is_given_is_not_this_processes_any_more_while_another_hangs_in_its_end)
{
    struct sender *s = begin();
    int pair[2];
    uint32_t serial;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const int given[] = {pair[1], open_one(true)};
    ck_assert_int_eq(agentd_closer_process_give(&s->process, given, 2, &serial), 0);
    struct closer_report report = hear(s);
    ck_assert(report.serial == serial && report.news == CLOSER_TAKEN && report.status == 0);
    for (int i = 0; i < 2; i++)
        ck_assert(fcntl(given[i], F_GETFD) < 0 && errno == EBADF);
    ck_assert(!has_hung_up(pair[0]));
    let_go();
    report = hear(s);
    ck_assert(report.serial == serial && report.news == CLOSER_CLOSED && report.status == 0);
    ck_assert(has_hung_up(pair[0]));
    close(pair[0]);
    end(s);
}
END_TEST

/* Deeper than a kernel of before 6.10 lets anybody send sockets in sockets. */
START_TEST(a_socket_is_closed_whatever_lies_in_it)
{
    enum { DEPTH = 5 };
    struct sender *s = begin();
    int pair[2], inner, watched;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    watched = pair[0];
    inner = pair[1];
    for (int i = 0; i < DEPTH; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        ck_assert_int_eq(base_fds_send(pair[0], "x", 1, &inner, 1), 0);
        close(pair[0]);
        close(inner);
        inner = pair[1];
    }
    ck_assert(!has_hung_up(watched));
    take_fd(s, 1, inner);
    TURN_UNTIL(s, has_hung_up(watched));
    TURN_UNTIL(s, !is_busy(s));
    close(watched);
    end(s);
}
END_TEST

START_TEST(what_cannot_be_given_is_the_callers_again)
{
    struct sender *s = begin();
    uint32_t serial;
    const int given[] = {open_one(false), 4000 /* nobody's */};
    ck_assert_int_eq(agentd_closer_process_give(&s->process, given, 2, &serial), 0);
    const struct closer_report report = hear(s);
    ck_assert(report.serial == serial && report.status == -EBADF);
    ck_assert_int_ge(fcntl(given[0], F_GETFD), 0);
    close(given[0]);
    end(s);
}
END_TEST

/* Those of the agent's former lives are among them. */
START_TEST(while_as_many_hang_as_may_it_waits_for_one_of_them_and_does_nothing)
{
    enum { FEW = 20 };
    struct sender *s = begin();
    uint32_t serial = 0;
    for (int i = 0; i <= CLOSER_CHILDREN; i++) {
        const int fd = open_one(true);
        ck_assert_int_eq(agentd_closer_process_give(&s->process, &fd, 1, &serial), 0);
        if (i == CLOSER_CHILDREN)
            break;
        const struct closer_report report = hear(s);
        ck_assert(report.serial == serial && report.news == CLOSER_TAKEN && report.status == 0);
    }
    (void)usleep(20 * WAIT_US); /* to whoever looks again and again that is a thousand looks */
    const uint32_t before = shared->looks;
    (void)usleep(100 * WAIT_US);
    ck_assert_uint_le(shared->looks - before, FEW);
    let_go();
    for (int closed = 0; closed <= CLOSER_CHILDREN;)
        closed += hear(s).news == CLOSER_CLOSED;
    end(s);
}
END_TEST

/* ---- who waits, and who is refused */

START_TEST(a_uid_whose_descriptors_never_end_is_refused_and_no_other_uid_waits)
{
    struct sender *s = begin();
    for (int i = 0; i < 100; i++)
        take(s, 1, true);
    TURN_UNTIL(s, agentd_closer_refuses(&s->sockets.closer, 1));
    TURN_UNTIL(s, s->closed == 100); /* others have them, and this process none */
    take(s, 2, false);
    TURN_UNTIL(s, s->closed == 101);
    TURN_UNTIL(s, count_of(s, 2) == 0);
    ck_assert(!agentd_closer_refuses(&s->sockets.closer, 2));
    ck_assert_uint_eq(s->refusals, 1);
    let_go();
    TURN_UNTIL(s, !agentd_closer_refuses(&s->sockets.closer, 1));
    ck_assert_uint_eq(s->refusals, 2);
    ck_assert(!is_busy(s));
    end(s);
}
END_TEST

START_TEST(a_flood_is_refused_before_a_second_is_over_and_takes_few_processes)
{
    struct sender *s = begin();
    uint32_t waiting = 0;
    take(s, 1, true);
    while (!agentd_closer_refuses(&s->sockets.closer, 1) && waiting++ < CLOSER_QUEUE_OF_UID)
        take(s, 1, true);
    ck_assert(agentd_closer_refuses(&s->sockets.closer, 1));
    for (int i = 0; i < BACKLOG; i++) /* who had connected already */
        take(s, 1, true);
    TURN_UNTIL(s, s->closed == s->used);
    ck_assert_uint_le(count_of(s, 1), 2 + (CLOSER_QUEUE_OF_UID + BACKLOG) / CLOSER_BATCH);
    end(s);
}
END_TEST

START_TEST(a_uid_has_a_part_of_all_processes)
{
    struct sender *s = begin();
    for (int i = 0; i < WAITS && count_of(s, 1) < CLOSERS_OF_UID; i++) {
        if (s->sockets.closer.first == NULL)
            take(s, 1, true);
        turn(s);
    }
    take(s, 1, true);
    take(s, 2, false);
    TURN_UNTIL(s, count_of(s, 2) == 0 && s->closed == s->used - 1);
    for (int i = 0; i < 3 * CLOSER_NEXT_MS; i++)
        turn(s);
    ck_assert_uint_eq(count_of(s, 1), CLOSERS_OF_UID);
    ck_assert_uint_eq(s->closed, s->used - 1);
    let_go();
    TURN_UNTIL(s, s->closed == s->used);
    end(s);
}
END_TEST

START_TEST(what_ends_soon_is_never_refused)
{
    struct sender *s = begin();
    turn_ns = 0;
    for (int i = 0; i < 1000; i++) {
        take(s, 1, false);
        turn(s);
        /* However long the machine takes for one, or what waits would be a crowd. */
        TURN_UNTIL(s, s->used - s->closed < CLOSER_QUEUE_OF_UID / 2);
    }
    TURN_UNTIL(s, !is_busy(s));
    ck_assert_uint_eq(s->refusals, 0);
    ck_assert_uint_eq(s->closed, 1000);
    end(s);
}
END_TEST

START_TEST(the_end_waits_for_nobody)
{
    struct sender *s = begin();
    for (int i = 0; i < 50; i++)
        take(s, 1, true);
    ck_assert_uint_lt(s->closed, 50);
    end(s);
}
END_TEST

/* ---- of listeners */

static void check_part(struct sender *s, uint32_t listeners, uint32_t part)
{
    struct listener *l = &s->sockets.listener[0];
    s->sockets.listeners = listeners;
    l->of = &s->sockets;
    l->closing = part - 1;
    ck_assert(!agentd_listener_is_full(l));
    l->closing = part;
    ck_assert(agentd_listener_is_full(l));
}

START_TEST(all_listeners_together_have_as_many_as_one_would)
{
    struct sender *s = begin();
    check_part(s, 1, CLOSING_STRANGERS);
    check_part(s, 2, CLOSING_STRANGERS / 2);
    check_part(s, CLOSING_STRANGERS / CLOSING_LEAST + 1, CLOSING_LEAST);
    end(s);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_given_is_not_this_processes_any_more_while_another_hangs_in_its_end)                 \
    T(a_socket_is_closed_whatever_lies_in_it)                                                      \
    T(while_as_many_hang_as_may_it_waits_for_one_of_them_and_does_nothing)                         \
    T(what_cannot_be_given_is_the_callers_again)                                                   \
    T(a_uid_whose_descriptors_never_end_is_refused_and_no_other_uid_waits)                         \
    T(a_flood_is_refused_before_a_second_is_over_and_takes_few_processes)                          \
    T(a_uid_has_a_part_of_all_processes)                                                           \
    T(what_ends_soon_is_never_refused)                                                             \
    T(the_end_waits_for_nobody)                                                                    \
    T(all_listeners_together_have_as_many_as_one_would)
KEDGE_CHECK_MAIN("agent.daemon.closer", TESTS)
