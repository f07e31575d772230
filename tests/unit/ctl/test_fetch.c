/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several metaservers is asked, and that no change is sent twice. Those here never answer:
 * what they were sent waits in their sockets. */
#include "../check_main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/fetch.h"

enum {
    ANSWER_MS = 1500,
    CLOSED_MS = 60000, /* where a process that has to run first closes the connection */
};

static struct ctl_servers servers;
static struct base_errbuf err;

/* A socket of 127.0.0.1, and in the list by its port. listens: connections wait in it. */
static int add_server(bool listens)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    ck_assert(!listens || listen(fd, 8) == 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    snprintf(servers.url[servers.count++], CTL_SERVER_BYTES, "http://127.0.0.1:%u",
             ntohs(at.sin_port));
    return fd;
}

static void begin(void)
{
    servers = (struct ctl_servers){.count = 0};
    err.text[0] = '\0';
}

static int call_within(const char *method, unsigned timeout_ms)
{
    const struct ctl_options o = {.servers = &servers};
    const struct ctl_request r = {.method = method, .path = "/v1/x", .timeout_ms = timeout_ms};
    struct http_result result;
    return ctl_call_server(&o, &r, &result, &err);
}

static int call(const char *method)
{
    return call_within(method, ANSWER_MS);
}

/* Whether it was sent something since it was last looked at. */
static bool was_sent(int fd)
{
    char text[4096];
    const int one = accept(fd, NULL, NULL);
    if (one < 0)
        return false;
    const ssize_t n = recv(one, text, sizeof text, MSG_DONTWAIT);
    close(one);
    return n > 0;
}

static bool says(const char *text)
{
    return strstr(err.text, text) != NULL;
}

START_TEST(where_nobody_listens_the_next_is_asked_for_changes_too)
{
    begin();
    const int a = add_server(false), b = add_server(true);
    ck_assert_int_eq(call("PUT"), -ETIMEDOUT);
    ck_assert(was_sent(b));
    ck_assert_uint_eq(servers.at, 1);
    ck_assert_msg(says("whether it was done is not known"), "%s", err.text);
    ck_assert(!says("none of the"));
    close(a);
    close(b);
}
END_TEST

START_TEST(a_change_whose_answer_is_lost_is_not_sent_to_another)
{
    begin();
    const int a = add_server(true), b = add_server(true);
    ck_assert_int_eq(call("PUT"), -ETIMEDOUT);
    ck_assert(was_sent(a) && !was_sent(b));
    ck_assert_int_eq(call("DELETE"), -ETIMEDOUT);
    ck_assert(was_sent(a) && !was_sent(b));
    ck_assert_uint_eq(servers.at, 0);
    close(a);
    close(b);
}
END_TEST

START_TEST(what_only_reads_is_asked_of_each_once)
{
    begin();
    const int a = add_server(true), b = add_server(true);
    ck_assert_int_eq(call("GET"), -ETIMEDOUT);
    ck_assert(was_sent(a) && was_sent(b));
    ck_assert(!was_sent(a) && !was_sent(b));
    ck_assert_msg(says("none of the 2 metaservers can be asked"), "%s", err.text);
    close(a);
    close(b);
}
END_TEST

START_TEST(who_closes_instead_of_answering_may_have_done_it)
{
    begin();
    const int a = add_server(true), b = add_server(true);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char text[4096];
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        int one;
        while ((one = accept(a, (struct sockaddr *)&from, &length)) < 0)
            usleep(1000);
        _exit(recv(one, text, sizeof text, 0) > 0 ? 0 : 1);
    }
    close(a);
    ck_assert_int_eq(call_within("POST", CLOSED_MS), -ECONNRESET);
    ck_assert(!was_sent(b));
    ck_assert_msg(says("whether it was done is not known"), "%s", err.text);
    int ended;
    ck_assert_int_eq(waitpid(child, &ended, 0), child);
    ck_assert_int_eq(ended, 0);
    close(b);
}
END_TEST

START_TEST(one_that_is_alone_is_told_of_as_ever)
{
    begin();
    const int a = add_server(false);
    ck_assert_int_eq(call("PUT"), -ECONNREFUSED);
    ck_assert_msg(!says("none of the") && !says("not known"), "%s", err.text);
    close(a);
}
END_TEST

START_TEST(a_token_is_for_all_of_them_or_for_none)
{
    const struct ctl_options o = {.servers = &servers, .token = "kedge_x"};
    struct ctl_target target;
    begin();
    const int a = add_server(true);
    snprintf(servers.url[servers.count++], CTL_SERVER_BYTES, "http://192.0.2.1:1");
    ck_assert_int_eq(ctl_target_of(&o, "/v1/x", &target, &err), -EPERM);
    ck_assert_msg(says("http://192.0.2.1:1"), "%s", err.text);
    close(a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(where_nobody_listens_the_next_is_asked_for_changes_too)                                      \
    T(a_change_whose_answer_is_lost_is_not_sent_to_another)                                        \
    T(what_only_reads_is_asked_of_each_once)                                                       \
    T(who_closes_instead_of_answering_may_have_done_it)                                            \
    T(one_that_is_alone_is_told_of_as_ever)                                                        \
    T(a_token_is_for_all_of_them_or_for_none)

KEDGE_CHECK_MAIN("ctl.fetch", TESTS)
