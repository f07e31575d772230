/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections, deferred requests, and sockets to listen on. */
#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct harness h;
static char out[HARNESS_ANSWER_BYTES];

static const char keep[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
static const char defer[] = "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n";

static struct http_server_stats stats_now(void)
{
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    return stats;
}

START_TEST(a_deferred_request_is_answered_later_and_others_meanwhile)
{
    size_t length;
    harness_start(&h, (struct http_server_config){.request_timeout_ms = 50, .idle_timeout_ms = 50});
    int waiting = harness_connect(&h);
    harness_send(&h, waiting, defer, strlen(defer));
    harness_run(&h, 20);
    ck_assert_uint_eq(h.deferred_count, 1);
    ck_assert_uint_eq(stats_now().deferred, 1);
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    ck_assert(!harness_receive(&h, waiting, out, &length, 200)); /* no deadline but its owner's */
    ck_assert_uint_eq(length, 0);
    ck_assert(!http_client_gone(h.deferred[0]));
    ck_assert_str_eq(h.deferred[0]->path, "/defer");
    struct http_response r = {.status = 200, .body = "{\"late\":1}", .body_length = 10};
    ck_assert_int_eq(http_reply(h.deferred[0], &r), 0);
    harness_receive(&h, waiting, out, &length, 40);
    ck_assert_ptr_nonnull(strstr(out, "{\"late\":1}"));
    ck_assert_uint_eq(stats_now().deferred, 0);
    close(waiting);
    harness_stop(&h);
    ck_assert_uint_eq(h.abandoned, 0);
}
END_TEST

START_TEST(a_handler_may_answer_an_earlier_request)
{
    size_t length;
    harness_start(&h, (struct http_server_config){0});
    int waiting = harness_connect(&h);
    harness_send(&h, waiting, defer, strlen(defer));
    harness_run(&h, 20);
    ck_assert_uint_eq(h.deferred_count, 1);
    ck_assert_int_eq(harness_ask(&h, "GET /wake HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    harness_receive(&h, waiting, out, &length, 50);
    ck_assert_ptr_nonnull(strstr(out, "woken"));
    close(waiting);
    harness_stop(&h);
}
END_TEST

START_TEST(the_owner_can_see_that_a_deferred_client_has_gone)
{
    harness_start(&h, (struct http_server_config){0});
    int fd = harness_connect(&h);
    harness_send(&h, fd, defer, strlen(defer));
    harness_run(&h, 20);
    close(fd);
    harness_run(&h, 20);
    ck_assert(http_client_gone(h.deferred[0]));
    http_reply_error(h.deferred[0], -ETIMEDOUT, NULL);
    harness_run(&h, 20);
    ck_assert_uint_eq(stats_now().open, 0);
    harness_stop(&h);
}
END_TEST

START_TEST(stopping_answers_what_is_deferred_with_503_and_tells_its_owner_once)
{
    size_t length;
    int fd[3];
    harness_start(&h, (struct http_server_config){0});
    for (int i = 0; i < 3; i++) {
        fd[i] = harness_connect(&h);
        harness_send(&h, fd[i], defer, strlen(defer));
    }
    harness_run(&h, 20);
    ck_assert_uint_eq(h.deferred_count, 3);
    harness_stop(&h);
    ck_assert_uint_eq(h.abandoned, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert(harness_receive(&h, fd[i], out, &length, 1000));
        ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 503 "));
        close(fd[i]);
    }
}
END_TEST

START_TEST(above_the_bound_a_client_is_told_503_and_idle_ones_make_room)
{
    size_t length;
    int fd[4];
    harness_start(&h, (struct http_server_config){.connections = 4});
    harness_stop_clock();
    for (int i = 0; i < 4; i++) {
        fd[i] = harness_connect(&h);
        harness_send(&h, fd[i], keep, strlen(keep));
    }
    harness_run(&h, 20);
    ck_assert_uint_eq(stats_now().open, 4);
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 503);
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    ck_assert_uint_eq(stats_now().refused, 1);
    ck_assert_uint_eq(stats_now().open, 4); /* they have only just become idle */
    harness_clock_ns += 1100 * BASE_NS_PER_MS;
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 503);
    harness_run(&h, 20);
    ck_assert_uint_eq(stats_now().open, 3);
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    harness_receive(&h, fd[0], out, &length, 20); /* the first is the one that went */
    ck_assert(harness_receive(&h, fd[0], out, &length, 1000));
    for (int i = 0; i < 4; i++)
        close(fd[i]);
    harness_stop(&h);
}
END_TEST

START_TEST(one_address_cannot_take_all_connections)
{
    size_t length;
    harness_start(&h, (struct http_server_config){.connections_per_ip = 2});
    int a = harness_connect(&h), b = harness_connect(&h), c = harness_connect(&h);
    harness_run(&h, 20);
    ck_assert(harness_receive(&h, c, out, &length, 1000));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 429 "));
    ck_assert_ptr_nonnull(strstr(out, "Retry-After: 1\r\n"));
    ck_assert_uint_eq(stats_now().open, 2);
    ck_assert_uint_eq(stats_now().refused, 1);
    ck_assert_uint_eq(stats_now().limited, 1);
    close(c);
    shutdown(a, SHUT_RDWR);
    harness_run(&h, 20);
    c = harness_connect(&h);
    harness_send(&h, c, keep, strlen(keep));
    ck_assert(!harness_receive(&h, c, out, &length, 50));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 200 "));
    close(a);
    close(b);
    close(c);
    harness_stop(&h);
}
END_TEST

/* How many were answered before one was told 429. */
static unsigned ask_until_limited(const char *text)
{
    unsigned answered = 0;
    int status;
    while ((status = harness_ask(&h, text, out)) == 200)
        ck_assert_uint_lt(answered++, 1000);
    ck_assert_int_eq(status, 429);
    ck_assert_ptr_nonnull(strstr(out, "Retry-After: "));
    ck_assert_ptr_nonnull(strstr(out, "application/problem+json"));
    return answered;
}

START_TEST(one_address_cannot_ask_without_end)
{
    harness_start(&h, (struct http_server_config){.unix_path = "/tmp/kedge-test-rate.sock",
                                                  .listen = "127.0.0.1:0",
                                                  .requests_per_second = 1,
                                                  .requests_burst = 3});
    harness_stop_clock();
    static const char get[] = "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n";
    static const char post[] =
        "POST /echo HTTP/1.1\r\nContent-Length: 3\r\n" HARNESS_CLOSE "\r\nabc";
    ck_assert_uint_eq(ask_until_limited(get), 3);
    ck_assert_uint_eq(ask_until_limited(post), 0);
    harness_clock_ns += 2 * BASE_NS_PER_S;
    ck_assert_uint_eq(ask_until_limited(get), 2);
    ck_assert_uint_eq(h.handled, 5);
    ck_assert_uint_eq(stats_now().limited, 3);
    for (int i = 0; i < 10; i++) { /* on the Unix socket nobody counts */
        size_t length;
        int fd = harness_connect_unix("/tmp/kedge-test-rate.sock");
        harness_send(&h, fd, get, strlen(get));
        harness_receive(&h, fd, out, &length, 1000);
        ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 200 "));
        close(fd);
    }
    harness_stop(&h);
}
END_TEST

START_TEST(who_has_closed_its_direction_is_answered_and_then_closed)
{
    size_t length;
    harness_start(&h, (struct http_server_config){.connections = 8});
    for (int i = 0; i < 20; i++) {
        int fd = harness_connect(&h);
        ck_assert_int_eq(send(fd, keep, strlen(keep), MSG_NOSIGNAL), (ssize_t)strlen(keep));
        if (i % 2 == 0)
            harness_run(&h, 5);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0); /* mostly seen together with the request */
        ck_assert(harness_receive(&h, fd, out, &length, 3000));
        ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 200 "));
        close(fd);
    }
    harness_run(&h, 20);
    ck_assert_uint_eq(stats_now().open, 0);
    harness_stop(&h);
}
END_TEST

START_TEST(ten_thousand_connections_are_survived_and_leave_nothing_behind)
{
    enum { ATTEMPTS = 10000, HELD = 400 };
    static int held[HELD];
    harness_start(&h, (struct http_server_config){.connections = 64});
    for (int i = 0; i < HELD; i++)
        held[i] = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        int *slot = &held[i % HELD];
        if (*slot >= 0)
            close(*slot);
        *slot = harness_connect(&h);
        if (i % 3 == 0)
            send(*slot, keep, strlen(keep), MSG_NOSIGNAL);
        http_server_run(h.server);
        ck_assert_uint_le(stats_now().open, 64);
    }
    for (int i = 0; i < HELD; i++)
        close(held[i]);
    harness_run(&h, 50);
    ck_assert_uint_eq(stats_now().open, 0);
    ck_assert_uint_eq(stats_now().accepted, ATTEMPTS);
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    harness_stop(&h);
}
END_TEST

START_TEST(running_out_of_descriptors_refuses_and_does_not_spin)
{
    enum { MOST = 256 };
    struct rlimit old, low;
    int filler[MOST], fillers = 0, clients[4];
    harness_start(&h, (struct http_server_config){0});
    for (int i = 0; i < 4; i++)
        clients[i] = harness_connect(&h);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = MOST;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (fillers < MOST && (filler[fillers] = dup(0)) >= 0)
        fillers++;
    struct pollfd p = {.fd = http_server_fd(h.server), .events = POLLIN};
    int rounds = 0;
    for (; rounds < 200 && poll(&p, 1, 20) > 0; rounds++)
        http_server_run(h.server);
    ck_assert_int_lt(rounds, 100);
    while (fillers > 0)
        close(filler[--fillers]);
    setrlimit(RLIMIT_NOFILE, &old);
    ck_assert_uint_eq(stats_now().refused, 4);
    ck_assert_int_eq(harness_ask(&h, "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n", out), 200);
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    harness_stop(&h);
}
END_TEST

/* A server that should not start. Returns its error; the sentence is in err. */
static int refuse(const char *listen, const char *unix_path, struct base_errbuf *err)
{
    struct http_server *server;
    struct http_server_config config = {.listen = listen,
                                        .unix_path = unix_path,
                                        .program = "kedge-metad",
                                        .setting = "`listen` in /etc/kedge/metad.conf",
                                        .handle = harness_handle};
    err->text[0] = '\0';
    int status = http_server_new(&config, &server, err);
    ck_assert_int_lt(status, 0);
    return status;
}

START_TEST(an_address_that_cannot_be_listened_on_is_explained)
{
    static const char *const malformed[] = {
        "",          "127.0.0.1",       "127.0.0.1:", ":80",         "::1:7480",   "[::1]",
        "host:7480", "127.0.0.1:65536", "[]:1",       "[1.2.3.4]:1", "1.2.3.4:-1", "[::1]x:1"};
    struct base_errbuf err;
    char address[64], expected[200];
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        ck_assert_msg(refuse(malformed[i], NULL, &err) == -EINVAL, "%s", malformed[i]);
    ck_assert_ptr_nonnull(strstr(err.text, "it must look like 127.0.0.1:7480"));
    ck_assert_int_eq(refuse("192.0.2.1:7480", NULL, &err), -EADDRNOTAVAIL);
    harness_start(&h, (struct http_server_config){0});
    snprintf(address, sizeof address, "127.0.0.1:%u", http_server_port(h.server));
    snprintf(expected, sizeof expected,
             "cannot listen on %s: address in use (another kedge-metad? stop it, or change "
             "`listen` in /etc/kedge/metad.conf)",
             address);
    ck_assert_int_eq(refuse(address, NULL, &err), -EADDRINUSE);
    ck_assert_str_eq(err.text, expected);
    harness_stop(&h);
    ck_assert_int_eq(refuse(NULL, NULL, &err), -EINVAL);
}
END_TEST

START_TEST(a_unix_socket_serves_with_its_mode_and_goes_with_the_server)
{
    char path[64];
    size_t length;
    struct stat st;
    snprintf(path, sizeof path, "/tmp/kedge-http-%d", (int)getpid());
    harness_start(&h, (struct http_server_config){.unix_path = path, .unix_mode = 0660});
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    int fd = harness_connect_unix(path);
    harness_send(&h, fd, keep, strlen(keep));
    harness_receive(&h, fd, out, &length, 50);
    ck_assert_ptr_nonnull(strstr(out, "peer=unix local=1}"));
    close(fd);
    harness_stop(&h);
    ck_assert_int_eq(stat(path, &st), -1);
}
END_TEST

START_TEST(a_stale_socket_is_replaced_but_neither_a_living_one_nor_a_file)
{
    char path[64];
    struct base_errbuf err;
    struct stat st;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "/tmp/kedge-stale-%d", (int)getpid());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale);
    harness_start(&h, (struct http_server_config){.unix_path = path});
    ck_assert_int_eq(refuse(NULL, path, &err), -EADDRINUSE);
    ck_assert_int_eq(stat(path, &st), 0); /* the loser leaves the winner's file alone */
    harness_stop(&h);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(refuse(NULL, path, &err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, "no socket"));
    ck_assert_int_eq(stat(path, &st), 0);
    close(file);
    unlink(path);
    ck_assert_int_eq(refuse(NULL, "/tmp/no-such-directory/kedge", &err), -ENOENT);
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(refuse(NULL, longer, &err), -ENAMETOOLONG);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_deferred_request_is_answered_later_and_others_meanwhile)                                   \
    T(a_handler_may_answer_an_earlier_request)                                                     \
    T(the_owner_can_see_that_a_deferred_client_has_gone)                                           \
    T(stopping_answers_what_is_deferred_with_503_and_tells_its_owner_once)                         \
    T(above_the_bound_a_client_is_told_503_and_idle_ones_make_room)                                \
    T(one_address_cannot_take_all_connections)                                                     \
    T(one_address_cannot_ask_without_end)                                                          \
    T(who_has_closed_its_direction_is_answered_and_then_closed)                                    \
    T(ten_thousand_connections_are_survived_and_leave_nothing_behind)                              \
    T(running_out_of_descriptors_refuses_and_does_not_spin)                                        \
    T(an_address_that_cannot_be_listened_on_is_explained)                                          \
    T(a_unix_socket_serves_with_its_mode_and_goes_with_the_server)                                 \
    T(a_stale_socket_is_replaced_but_neither_a_living_one_nor_a_file)
KEDGE_CHECK_MAIN("http connections", TESTS)
