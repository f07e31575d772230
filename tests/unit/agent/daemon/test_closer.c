/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to which descriptors were sent, whose end takes as long as their sender wants:
 * close() here waits with those of the slow ones until the test lets it go on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../check_main.h"
#include "attach_socket.h"

enum { FIRST_SLOW = 100, WAIT_US = 1000, WAITS = 60000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static _Atomic uint32_t being_closed;
static bool go_on;
static uv_loop_t loop;

int close(int fd)
{
    (void)pthread_mutex_lock(&lock);
    being_closed += fd >= FIRST_SLOW;
    while (fd >= FIRST_SLOW && !go_on)
        (void)pthread_cond_wait(&change, &lock);
    (void)pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_close, fd);
}

static struct attach_sockets *begin(void)
{
    struct attach_sockets *a = calloc(1, sizeof *a);
    struct base_errbuf err = {{0}};
    ck_assert_ptr_nonnull(a);
    being_closed = 0;
    go_on = false;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    a->loop = &loop;
    ck_assert_msg(closer_start(&a->closer, &loop, &err) == 0, "%s", err.text);
    for (int i = 0; i < 2; i++)
        a->listener[i].of = a;
    return a;
}

static void take(struct listener *at, uid_t uid, bool slow)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, slow ? FIRST_SLOW : 3);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(closer_take(at, fd, uid, NULL), 0);
}

static void run_until(struct attach_sockets *a, const uint32_t *count, uint32_t value)
{
    for (int i = 0; i < WAITS && *count != value; i++) {
        (void)uv_run(a->loop, UV_RUN_NOWAIT);
        (void)usleep(WAIT_US);
    }
    ck_assert_uint_eq(*count, value);
}

static void let_go(void)
{
    (void)pthread_mutex_lock(&lock);
    go_on = true;
    (void)pthread_cond_broadcast(&change);
    (void)pthread_mutex_unlock(&lock);
}

static void end(struct attach_sockets *a)
{
    let_go();
    run_until(a, &a->listener[0].closing, 0);
    run_until(a, &a->listener[1].closing, 0);
    uv_close((uv_handle_t *)&a->closer.news.poll, NULL);
    (void)uv_run(a->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(a->loop), 0);
    closer_stop(&a->closer);
    free(a);
}

START_TEST(a_uid_whose_connections_take_long_to_close_keeps_no_other_uid_waiting)
{
    struct attach_sockets *a = begin();
    for (int i = 0; i < 100; i++)
        take(&a->listener[0], 1, true);
    take(&a->listener[1], 2, false);
    run_until(a, &a->listener[1].closing, 0);
    ck_assert_uint_eq(a->listener[0].closing, 100);
    end(a);
}
END_TEST

START_TEST(a_uid_never_has_all_threads)
{
    struct attach_sockets *a = begin();
    for (int i = 0; i < 100; i++)
        take(&a->listener[0], 1, true);
    for (int i = 0; i < 10; i++)
        take(&a->listener[0], 2, true);
    for (int i = 0; i < WAITS && being_closed < CLOSERS; i++)
        (void)usleep(WAIT_US);
    ck_assert_uint_eq(being_closed, CLOSERS);
    uint32_t of_first = 0;
    (void)pthread_mutex_lock(&a->closer.lock);
    for (int i = 0; i < CLOSERS; i++)
        of_first += a->closer.busy[i] && a->closer.uid[i] == 1;
    (void)pthread_mutex_unlock(&a->closer.lock);
    ck_assert_uint_eq(of_first, CLOSERS_OF_UID);
    end(a);
}
END_TEST

START_TEST(only_the_listener_where_they_come_has_too_many)
{
    struct attach_sockets *a = begin();
    for (int i = 0; i < CLOSING_STRANGERS; i++) {
        ck_assert(!closer_is_full(&a->listener[0]));
        take(&a->listener[0], 1, true);
    }
    ck_assert(closer_is_full(&a->listener[0]));
    ck_assert(!closer_is_full(&a->listener[1]));
    let_go();
    run_until(a, &a->listener[0].closing, 0);
    ck_assert(!closer_is_full(&a->listener[0]));
    end(a);
}
END_TEST

START_TEST(all_listeners_together_have_as_many_as_one_would)
{
    struct attach_sockets *a = begin();
    a->listeners = 2;
    for (int i = 0; i < CLOSING_STRANGERS / 2; i++) {
        ck_assert(!closer_is_full(&a->listener[0]));
        take(&a->listener[0], 1, true);
    }
    ck_assert(closer_is_full(&a->listener[0]));
    ck_assert(!closer_is_full(&a->listener[1]));
    a->listeners = 1 + AGENTD_TENANTS; /* one of each tenant */
    for (int i = 0; i < CLOSING_LEAST; i++) {
        ck_assert(!closer_is_full(&a->listener[1]));
        take(&a->listener[1], 1, true);
    }
    if (CLOSING_STRANGERS / (1 + AGENTD_TENANTS) <= CLOSING_LEAST)
        ck_assert(closer_is_full(&a->listener[1]));
    end(a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_uid_whose_connections_take_long_to_close_keeps_no_other_uid_waiting)                       \
    T(a_uid_never_has_all_threads)                                                                 \
    T(only_the_listener_where_they_come_has_too_many)                                              \
    T(all_listeners_together_have_as_many_as_one_would)
KEDGE_CHECK_MAIN("closer", TESTS)
