/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../check_main.h"
#include "base/notify.h"

static char name[64];

/* A supervisor's socket, of a name that begins with '/' or '@', and the environment that says so.
 */
static int supervise(char first, const char *watchdog_usec)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(name, sizeof name, "%ctmp/kedge-notify-%d", first, (int)getpid());
    memcpy(at.sun_path, name, strlen(name));
    if (first == '@')
        at.sun_path[0] = '\0';
    else
        (void)unlink(name);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    if (watchdog_usec != NULL)
        ck_assert_int_eq(setenv("WATCHDOG_USEC", watchdog_usec, 1), 0);
    base_notify_init();
    return fd;
}

static void part(int fd)
{
    base_notify_fini();
    close(fd);
    if (name[0] == '/')
        (void)unlink(name);
}

/* The next datagram; empty when there is none. */
static const char *heard(int fd)
{
    static char text[1024];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

START_TEST(what_the_daemon_says_reaches_the_supervisor_at_a_path_and_at_an_abstract_name)
{
    for (int i = 0; i < 2; i++) {
        int fd = supervise("/@"[i], NULL);
        base_notify_ready("node a");
        ck_assert_str_eq(heard(fd), "READY=1\nSTATUS=node a");
        base_notify_status("beginning anew");
        ck_assert_str_eq(heard(fd), "STATUS=beginning anew");
        base_notify_stopping();
        ck_assert_str_eq(heard(fd), "STOPPING=1\nSTATUS=stopping");
        ck_assert_str_eq(heard(fd), "");
        part(fd);
    }
}
END_TEST

START_TEST(a_reload_carries_the_monotonic_time)
{
    struct timespec t;
    uint64_t usec, before;
    int fd = supervise('/', NULL);
    clock_gettime(CLOCK_MONOTONIC, &t);
    before = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    base_notify_reloading();
    ck_assert_int_eq(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%" SCNu64, &usec), 1);
    ck_assert_uint_ge(usec, before);
    ck_assert_uint_lt(usec, before + 60 * 1000000ull);
    part(fd);
}
END_TEST

START_TEST(children_do_not_get_the_supervisors_address)
{
    int fd = supervise('/', "1000000");
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    part(fd);
}
END_TEST

START_TEST(a_sign_of_life_is_given_twice_in_the_supervisors_patience_and_not_at_each_tick)
{
    int fd = supervise('/', "1000000"), signs = 0;
    for (uint64_t ms = 0; ms < 2000; ms += 100) {
        base_notify_tick(5000000000ull + ms * 1000000);
        const char *text = heard(fd);
        ck_assert(text[0] == '\0' || strcmp(text, "WATCHDOG=1") == 0);
        signs += text[0] != '\0';
    }
    ck_assert_int_eq(signs, 4);
    part(fd);
}
END_TEST

START_TEST(who_asks_when_the_next_tick_is_due_gives_as_many_signs_of_life)
{
    int fd = supervise('/', "1000000"), signs = 0;
    const uint64_t begun_ns = 5000000000ull;
    ck_assert_uint_le(base_notify_due_ns(), begun_ns);
    for (uint64_t ns = begun_ns; ns < begun_ns + 2000000000; ns = base_notify_due_ns()) {
        base_notify_tick(ns);
        ck_assert_str_eq(heard(fd), "WATCHDOG=1");
        signs++;
    }
    ck_assert_int_eq(signs, 4);
    part(fd);
    ck_assert_uint_eq(base_notify_due_ns(), UINT64_MAX);
    fd = supervise('/', NULL);
    ck_assert_uint_eq(base_notify_due_ns(), UINT64_MAX);
    part(fd);
}
END_TEST

START_TEST(no_sign_of_life_is_given_when_nobody_waits_for_one_of_this_process)
{
    static const char *const nonsense[] = {"", "-1", "1s", "99999999999999999999", "0"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        int fd = supervise('/', nonsense[i]);
        base_notify_tick(1);
        ck_assert_str_eq(heard(fd), "");
        part(fd);
    }
    ck_assert_int_eq(setenv("WATCHDOG_PID", "1", 1), 0);
    int fd = supervise('/', "1000000");
    base_notify_tick(1);
    ck_assert_str_eq(heard(fd), "");
    part(fd);
}
END_TEST

START_TEST(a_supervisor_without_room_costs_no_time_and_hears_the_newest_word_later)
{
    char last[1024] = "";
    int fd = supervise('/', NULL), taken = 0;
    for (int i = 0; i < 100000; i++) /* more than any queue holds; nobody reads meanwhile */
        base_notify_status("much is said");
    base_notify_ready("at last");
    ck_assert_uint_eq(base_notify_due_ns(), 0);
    for (const char *text; (text = heard(fd))[0] != '\0'; taken++)
        ck_assert_str_eq(text, "STATUS=much is said");
    ck_assert_int_lt(taken, 100000);
    base_notify_tick(1);
    snprintf(last, sizeof last, "%s", heard(fd));
    ck_assert_str_eq(last, "READY=1\nSTATUS=at last");
    ck_assert_uint_eq(base_notify_due_ns(), UINT64_MAX);
    base_notify_tick(2);
    ck_assert_str_eq(heard(fd), "");
    part(fd);
}
END_TEST

START_TEST(a_long_status_is_cut_and_nothing_else)
{
    char status[2 * BASE_NOTIFY_TEXT];
    memset(status, 'x', sizeof status - 1);
    status[sizeof status - 1] = '\0';
    int fd = supervise('/', NULL);
    base_notify_ready(status);
    ck_assert_uint_eq(strlen(heard(fd)), BASE_NOTIFY_TEXT - 1);
    part(fd);
}
END_TEST

/* All of it is survived, with and without the address; the supervisor may also be gone. */
START_TEST(without_a_supervisor_nothing_happens)
{
    static char endless[300];
    memset(endless, '/', sizeof endless - 1);
    const char *const addresses[] = {
        NULL, "", "@", "/", "relative", "vsock:2:1234", "/nobody/is/here", endless};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        if (addresses[i] != NULL)
            ck_assert_int_eq(setenv("NOTIFY_SOCKET", addresses[i], 1), 0);
        ck_assert_int_eq(setenv("WATCHDOG_USEC", "1000000", 1), 0);
        base_notify_init();
        ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
        ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
        base_notify_ready("nobody hears");
        base_notify_reloading();
        base_notify_tick(1);
        base_notify_stopping();
        base_notify_fini();
    }
}
END_TEST

#define TESTS(RUN)                                                                                 \
    RUN(what_the_daemon_says_reaches_the_supervisor_at_a_path_and_at_an_abstract_name)             \
    RUN(a_reload_carries_the_monotonic_time)                                                       \
    RUN(children_do_not_get_the_supervisors_address)                                               \
    RUN(a_sign_of_life_is_given_twice_in_the_supervisors_patience_and_not_at_each_tick)            \
    RUN(who_asks_when_the_next_tick_is_due_gives_as_many_signs_of_life)                            \
    RUN(no_sign_of_life_is_given_when_nobody_waits_for_one_of_this_process)                        \
    RUN(a_supervisor_without_room_costs_no_time_and_hears_the_newest_word_later)                   \
    RUN(a_long_status_is_cut_and_nothing_else)                                                     \
    RUN(without_a_supervisor_nothing_happens)

KEDGE_CHECK_MAIN("notify", TESTS)
