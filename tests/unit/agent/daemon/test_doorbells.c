/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "doorbells.h"

enum { SESSIONS = 16 };

static const uint64_t MS = BASE_NS_PER_MS;
static struct doorbells d;
static int epfd, bell[SESSIONS];
static uint64_t now_ns;

/* The kernel's, but that who adds or removes may have to wait there, as it may for strangers. */
static _Atomic bool held, waits;

int epoll_ctl(int at, int op, int fd, struct epoll_event *event)
{
    if (op != EPOLL_CTL_MOD && atomic_load(&held)) {
        atomic_store(&waits, true);
        while (atomic_load(&held))
            usleep(100);
    }
    return (int)syscall(SYS_epoll_ctl, at, op, fd, event);
}

static void begin(void)
{
    now_ns = 1000 * MS;
    epfd = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_ge(epfd, 0);
    ck_assert_int_eq(agentd_doorbells_init(&d, epfd, SESSIONS), 0);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        bell[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        ck_assert_int_eq(agentd_doorbells_watch(&d, i, bell[i]), 0);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < SESSIONS; i++) {
        agentd_doorbells_unwatch(&d, i);
        close(bell[i]);
    }
    ck_assert_uint_eq(doorbells_due(&d), UINT64_MAX);
    agentd_doorbells_fini(&d);
    close(epfd);
}

static void ring(uint32_t session)
{
    const uint64_t one = 1;
    ck_assert_int_eq(write(bell[session], &one, sizeof one), sizeof one);
}

/* How many doorbells were heard, all of them false, or not. */
static int hear_for(bool something)
{
    struct epoll_event event[SESSIONS];
    const int n = epoll_wait(epfd, event, SESSIONS, 0);
    for (int i = 0; i < n; i++)
        if (something)
            agentd_doorbells_note_true(&d, (uint32_t)event[i].data.u64);
        else
            agentd_doorbells_note_false(&d, (uint32_t)event[i].data.u64, now_ns);
    agentd_doorbells_hear_again(&d, now_ns);
    return n;
}

static int hear(void)
{
    return hear_for(false);
}

START_TEST(who_rings_without_an_end_is_heard_a_few_times_and_then_now_and_then)
{
    enum { S = 2 };
    int heard = 0;
    begin();
    for (int us = 0; us < S * 1000000; us += 100, now_ns += MS / 10) {
        ring(0);
        heard += hear();
    }
    ck_assert_int_ge(heard, S * 1000 / DOORBELLS_DEAF_MS);
    ck_assert_int_le(heard, DOORBELLS_FALSE + 3 * S * 1000 / DOORBELLS_DEAF_MS);
    ring(1);
    ck_assert_int_eq(hear(), 1); /* and others as before */
    end();
}
END_TEST

START_TEST(who_rings_for_nothing_now_and_then_is_always_heard)
{
    begin();
    for (int i = 0; i < 100; i++, now_ns += DOORBELLS_FORGET_MS * MS) {
        ring(0);
        ck_assert_int_eq(hear(), 1);
    }
    end();
}
END_TEST

/* The second one's write comes after the look that the first one has caused, which found both. */
START_TEST(who_rings_twice_and_is_seen_once_is_always_heard)
{
    begin();
    for (int i = 0; i < 100; i++, now_ns += MS / 10) {
        ring(0);
        ck_assert_int_eq(hear_for(true), 1);
        ring(0);
        ck_assert_int_eq(hear_for(false), 1);
    }
    end();
}
END_TEST

START_TEST(what_was_rung_meanwhile_is_told_once_and_the_next_one_is_heard)
{
    begin();
    for (int i = 0; i <= DOORBELLS_FALSE; i++) {
        ring(0);
        ck_assert_int_eq(hear(), 1);
    }
    ring(0);
    ck_assert_int_eq(hear(), 0);
    ck_assert_uint_eq(doorbells_due(&d), now_ns + DOORBELLS_DEAF_MS * MS);
    now_ns += DOORBELLS_DEAF_MS * MS;
    ck_assert_int_eq(hear(), 0); /* it is watched again, */
    ck_assert_int_eq(hear(), 1); /* and tells */
    ck_assert_int_eq(hear(), 0);
    ring(0);
    ck_assert_int_eq(hear(), 1);
    end();
}
END_TEST

/* Another lane hears it, that has the number 5 for it, and then this one again. */
START_TEST(a_doorbell_is_heard_by_one_lane_at_a_time)
{
    struct doorbells there;
    struct epoll_event event[2];
    const int epfd_there = epoll_create1(EPOLL_CLOEXEC);
    begin();
    ck_assert_int_eq(agentd_doorbells_init(&there, epfd_there, SESSIONS), 0);
    for (int move = 0; move < 3; move++) {
        for (int n = 0; n <= DOORBELLS_FALSE; n++) { /* and deaf at that, which is forgotten */
            ring(0);
            ck_assert_int_eq(hear(), 1);
        }
        ck_assert_int_eq(agentd_doorbells_watch(&there, 5, bell[0]), 0);
        (void)epoll_wait(epfd_there, event, 2, 0); /* what was rung before */
        agentd_doorbells_mute(&d, 0, true);
        for (int n = 0; n < 100; n++) {
            ring(0);
            ck_assert_int_eq(hear(), 0);
            ck_assert_int_eq(epoll_wait(epfd_there, event, 2, 0), 1);
            ck_assert_uint_eq(event[0].data.u64, 5);
        }
        now_ns += DOORBELLS_DEAF_MS * MS;
        ck_assert_int_eq(hear(), 0);
        ck_assert_int_eq(hear(), 0);
        ring(0);
        agentd_doorbells_unwatch(&there, 5);
        agentd_doorbells_mute(&d, 0, false);
        ck_assert_int_eq(hear_for(true), 1); /* nothing is lost between them */
        ck_assert_int_eq(hear(), 0);
        ring(0);
        ck_assert_int_eq(hear_for(true), 1);
    }
    ck_assert_int_eq(epoll_wait(epfd_there, event, 2, 0), 0);
    agentd_doorbells_fini(&there);
    close(epfd_there);
    end();
}
END_TEST

START_TEST(a_session_that_ends_while_it_is_not_heard_is_never_watched_again)
{
    begin();
    for (uint32_t i = 0; i < 2; i++)
        for (int n = 0; n <= DOORBELLS_FALSE; n++) {
            ring(i);
            ck_assert_int_eq(hear(), 1);
        }
    agentd_doorbells_unwatch(&d, 0);
    const int other = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC); /* what has its number next */
    ck_assert_int_eq(dup2(other, bell[0]), bell[0]);
    now_ns += DOORBELLS_DEAF_MS * MS;
    ck_assert_int_eq(hear(), 0);
    ck_assert_int_eq(hear(), 1); /* the other one's */
    close(other);
    ck_assert_int_eq(agentd_doorbells_watch(&d, 0, bell[0]), 0); /* the next session begins anew */
    ck_assert_int_eq(hear(), 1);
    for (int n = 0; n < DOORBELLS_FALSE; n++) {
        ring(0);
        ck_assert_int_eq(hear(), 1);
    }
    end();
}
END_TEST

static void *watch_last(void *nothing)
{
    (void)nothing;
    ck_assert_int_eq(agentd_doorbells_watch(&d, SESSIONS - 1, bell[SESSIONS - 1]), 0);
    return NULL;
}

static void *unwatch_last(void *nothing)
{
    (void)nothing;
    agentd_doorbells_unwatch(&d, SESSIONS - 1);
    return NULL;
}

/* As long as that waits in the kernel. */
static void is_deaf_beside(void *(*task)(void *))
{
    pthread_t thread;
    atomic_store(&waits, false);
    atomic_store(&held, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, task, NULL), 0);
    while (!atomic_load(&waits))
        usleep(100);
    for (int n = 0; n <= DOORBELLS_FALSE; n++) {
        ring(0);
        ck_assert_int_eq(hear(), 1);
    }
    ring(0);
    ck_assert_int_eq(hear(), 0);
    now_ns += DOORBELLS_DEAF_MS * MS;
    ck_assert_int_eq(hear(), 0);
    ck_assert_int_eq(hear(), 1); /* and is heard again in time */
    now_ns += DOORBELLS_FORGET_MS * MS + 1;
    atomic_store(&held, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(who_rings_without_an_end_is_not_heard_either_while_a_task_waits_for_the_kernel)
{
    begin();
    is_deaf_beside(unwatch_last);
    is_deaf_beside(watch_last);
    end();
}
END_TEST

START_TEST(many_at_once_are_all_heard_again)
{
    begin();
    for (int n = 0; n <= DOORBELLS_FALSE; n++) {
        for (uint32_t i = 0; i < SESSIONS; i++)
            ring(i);
        ck_assert_int_eq(hear(), SESSIONS);
    }
    now_ns += DOORBELLS_DEAF_MS * MS;
    int heard = 0;
    for (int i = 0; i < SESSIONS; i++)
        heard += hear();
    ck_assert_int_eq(heard, SESSIONS);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_rings_without_an_end_is_heard_a_few_times_and_then_now_and_then)                         \
    T(who_rings_for_nothing_now_and_then_is_always_heard)                                          \
    T(who_rings_twice_and_is_seen_once_is_always_heard)                                            \
    T(what_was_rung_meanwhile_is_told_once_and_the_next_one_is_heard)                              \
    T(a_doorbell_is_heard_by_one_lane_at_a_time)                                                   \
    T(a_session_that_ends_while_it_is_not_heard_is_never_watched_again)                            \
    T(who_rings_without_an_end_is_not_heard_either_while_a_task_waits_for_the_kernel)              \
    T(many_at_once_are_all_heard_again)
KEDGE_CHECK_MAIN("agent.daemon.doorbells", TESTS)
