/* SPDX-License-Identifier: Apache-2.0 */
/* Each test has a process that is to end, and does not by itself. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "fabric/fabric.h"
#include "stop_watch.h"

enum { MOST_MS = 50, LONG_MS = 60000, WELL = 7 };

static struct stop_watch watch;
static int ready[2];

static void block_stops(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* It is ready for whatever the test does to it. */
static void be_ready(void)
{
    if (write(ready[1], "x", 1) != 1)
        _exit(99);
}

static void begin(uint32_t most_ms)
{
    struct base_errbuf err;
    block_stops();
    if (agentd_stop_watch_init(&watch, most_ms, &err) != 0)
        _exit(98);
}

static _Noreturn void hang(void)
{
    for (;;)
        (void)pause();
}

static pid_t fork_to(void (*live)(void))
{
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(30);
        live();
        _exit(97);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    return pid;
}

/* What it ended with. */
static int await_end(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "it ended by a signal: %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void hang_at_once(void)
{
    begin(MOST_MS);
    be_ready();
    hang();
}

START_TEST(one_that_hangs_before_it_hears_anything_ends_when_it_is_told_to)
{
    const int told[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        const pid_t pid = fork_to(hang_at_once);
        (void)kill(pid, told[i]);
        ck_assert_int_eq(await_end(pid), EXIT_SUCCESS);
    }
}
END_TEST

static void end_and_hang(void)
{
    static struct fab fab;
    begin(MOST_MS);
    agentd_stop_watch_step(&watch, (struct stop_step){.during = "the test", .fab = &fab});
    agentd_stop_watch_begin(&watch);
    be_ready();
    hang();
}

START_TEST(one_that_ends_by_itself_and_hangs_ends_with_a_failure)
{
    ck_assert_int_eq(await_end(fork_to(end_and_hang)), EXIT_FAILURE);
}
END_TEST

static void begin_anew(void)
{
    begin(MOST_MS);
    for (int i = 0; i < 3; i++) {
        agentd_stop_watch_begin(&watch);
        agentd_stop_watch_end(&watch);
    }
    (void)usleep(4 * MOST_MS * 1000);
    be_ready();
    _exit(agentd_stop_watch_told() == 0 ? WELL : 96);
}

START_TEST(one_that_ended_in_time_begins_anew)
{
    ck_assert_int_eq(await_end(fork_to(begin_anew)), WELL);
}
END_TEST

/* Told while nobody looks: between two lives. */
static void be_told_between(void)
{
    begin(LONG_MS);
    agentd_stop_watch_begin(&watch);
    agentd_stop_watch_end(&watch);
    be_ready();
    while (agentd_stop_watch_told() == 0)
        (void)usleep(1000);
    for (int i = 0; i < 2; i++) { /* each life hears it, and that takes it from nobody */
        agentd_stop_watch_begin(&watch);
        agentd_stop_watch_end(&watch);
    }
    _exit(agentd_stop_watch_told() == SIGTERM ? WELL : 96);
}

START_TEST(that_it_was_told_to_end_is_never_lost)
{
    const pid_t pid = fork_to(be_told_between);
    (void)kill(pid, SIGTERM);
    ck_assert_int_eq(await_end(pid), WELL);
}
END_TEST

/* Another life does not give it more time. */
static void be_told_and_begin_anew(void)
{
    begin(MOST_MS);
    be_ready();
    while (agentd_stop_watch_told() == 0)
        (void)usleep(1000);
    for (;;) {
        agentd_stop_watch_begin(&watch);
        (void)usleep(1000);
        agentd_stop_watch_end(&watch);
    }
}

START_TEST(one_that_was_told_to_end_has_no_more_time_in_another_life)
{
    const pid_t pid = fork_to(be_told_and_begin_anew);
    (void)kill(pid, SIGTERM);
    ck_assert_int_eq(await_end(pid), EXIT_SUCCESS);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_hangs_before_it_hears_anything_ends_when_it_is_told_to)                             \
    T(one_that_ends_by_itself_and_hangs_ends_with_a_failure)                                       \
    T(one_that_ended_in_time_begins_anew)                                                          \
    T(that_it_was_told_to_end_is_never_lost)                                                       \
    T(one_that_was_told_to_end_has_no_more_time_in_another_life)

KEDGE_CHECK_MAIN("agent.daemon.stop_watch", TESTS)
