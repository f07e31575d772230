/* SPDX-License-Identifier: Apache-2.0 */
/* A server with TLS, and clients that are and are not to be believed. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "base/http/client.h"
#include "harness.h"
#include "harness_tls.h"

static struct harness h;
static struct harness_ca ca;
static struct http_tls *server_tls;
static struct http_client *client;
static unsigned refusals;
static char refused_why[256];

struct outcome {
    int calls, status, lines;
    size_t body_length;
    char body[1024], why[512];
};

static void done(void *user, const struct http_answer *a)
{
    struct outcome *o = user;
    o->calls++;
    o->status = a->status;
    o->body_length = a->body_length;
    snprintf(o->body, sizeof o->body, "%s", a->body);
    snprintf(o->why, sizeof o->why, "%s", a->why);
}

static void note_refusal(void *user, const char *peer, const char *why)
{
    ck_assert_ptr_eq(user, &h);
    ck_assert_ptr_nonnull(strstr(peer, "127.0.0.1:"));
    refusals++;
    snprintf(refused_why, sizeof refused_why, "%s", why);
}

static struct http_tls *load(const char *authority, const char *cert, const char *crl)
{
    struct base_errbuf err = {""};
    struct http_tls *tls = NULL;
    char name[64], key[64];
    snprintf(name, sizeof name, "%s.pem", cert != NULL ? cert : "");
    snprintf(key, sizeof key, "%s-key.pem", cert != NULL ? cert : "");
    const struct http_tls_config config = {.ca_file =
                                               authority != NULL ? harness_path(authority) : NULL,
                                           .cert_file = cert != NULL ? harness_path(name) : NULL,
                                           .key_file = cert != NULL ? harness_path(key) : NULL,
                                           .crl_file = crl != NULL ? harness_path(crl) : NULL};
    ck_assert_msg(http_tls_new(&config, &tls, &err) == 0, "%s", err.text);
    return tls;
}

/* With certificates of all clients unless `config` has others; crl: of the server, or NULL. */
static void start(struct http_server_config config, const char *crl)
{
    ca = harness_ca_new("ca");
    harness_issue(&ca, "server", (struct harness_cert){.serial = 7});
    harness_issue(&ca, "good", (struct harness_cert){.uri = "kedge://node/n1", .ip = "10.1.2.3"});
    if (crl != NULL)
        harness_revoke(&ca, "crl", 50);
    server_tls = load("ca.pem", "server", crl);
    config.tls = server_tls;
    config.refused = note_refusal;
    config.client_cert_auth = true;
    harness_start(&h, config);
    ck_assert_int_eq(http_client_new(&client), 0);
}

static void stop(void)
{
    http_client_free(client);
    harness_stop(&h);
    http_tls_free(server_tls);
    harness_ca_free(&ca);
    harness_forget_files();
}

static const char *at(const char *path)
{
    static char url[128];
    snprintf(url, sizeof url, "https://127.0.0.1:%u%s", http_server_port(h.server), path);
    return url;
}

/* Both, until a counter has come so far; for 60 s at most. */
static void drive(const int *counter, int until)
{
    const uint64_t end_ns = base_clock_ns() + 60 * BASE_NS_PER_S;
    struct pollfd p[2] = {{.fd = http_client_fd(client), .events = POLLIN},
                          {.fd = http_server_fd(h.server), .events = POLLIN}};
    while (*counter < until && base_clock_ns() < end_ns) {
        poll(p, 2, 100);
        http_client_run(client);
        http_server_run(h.server);
    }
    ck_assert_int_ge(*counter, until);
}

static int ask_as(const struct http_tls *tls, const char *path, struct outcome *o)
{
    const struct http_call call = {.url = at(path), .tls = tls, .timeout_ms = 60000};
    *o = (struct outcome){.calls = 0};
    ck_assert_int_eq(http_client_call(client, &call, done, o, NULL), 0);
    drive(&o->calls, 1);
    return o->status;
}

static int ask(const char *cert, struct outcome *o)
{
    struct http_tls *tls = load("ca.pem", cert, NULL);
    const int status = ask_as(tls, "/who", o);
    http_tls_free(tls);
    return status;
}

START_TEST(a_client_is_known_by_the_names_in_its_certificate)
{
    struct outcome o;
    start((struct http_server_config){.listen = NULL}, NULL);
    ck_assert_int_eq(ask("good", &o), 200);
    ck_assert_str_eq(o.body, "good|kedge://node/n1|1 ::ffff:10.1.2.3|exposed=0");
    harness_issue(&ca, "plain", (struct harness_cert){.uri = "https://example", .ip = "fd00::1"});
    ck_assert_int_eq(ask("plain", &o), 200);
    ck_assert_str_eq(o.body, "plain||1 fd00::1|exposed=0");
    ck_assert_uint_eq(refusals, 0);
    stop();
}
END_TEST

START_TEST(who_is_not_to_be_believed_is_refused_and_told_why)
{
    static const struct {
        const char *name;
        struct harness_cert spec;
        bool foreign;
        const char *why;
    } rows[] = {
        {"expired", {.begins_s = -7200, .ends_s = -3600}, false, "has expired: renew it"},
        {"early", {.begins_s = 3600, .ends_s = 7200}, false, "is not valid yet"},
        {"foreign", {.serial = 2}, true, "is of no authority in this server's trusted_ca_file"},
        {"revoked", {.serial = 50}, false, "has been revoked"},
        {"server-only", {.server_only = true}, false, "is not for clients"},
        {"two",
         {.uri = "kedge://node/a", .second_uri = "kedge://node/b"},
         false,
         "names two nodes"},
    };
    struct outcome o;
    start((struct http_server_config){.listen = NULL}, "crl.pem");
    struct harness_ca other = harness_ca_new("ca2");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        harness_issue(rows[i].foreign ? &other : &ca, rows[i].name, rows[i].spec);
        ck_assert_msg(ask(rows[i].name, &o) == 403, "%s: %d %s", rows[i].name, o.status, o.why);
        ck_assert_msg(strstr(o.body, rows[i].why) != NULL, "%s: %s", rows[i].name, o.body);
        ck_assert_msg(strstr(refused_why, rows[i].why) != NULL, "%s", refused_why);
        ck_assert_uint_eq(refusals, i + 1);
    }
    ck_assert_int_eq(ask(NULL, &o), 403);
    ck_assert_ptr_nonnull(strstr(o.body, "wants a certificate of each client"));
    ck_assert_uint_eq(h.handled, 0);
    harness_issue(&ca, "expired", (struct harness_cert){.ends_s = 3600}); /* renewed */
    ck_assert_int_eq(ask("expired", &o), 200);
    harness_ca_free(&other);
    stop();
}
END_TEST

START_TEST(a_client_without_one_is_let_in_where_none_has_to_be_shown)
{
    struct outcome o;
    start((struct http_server_config){.listen = NULL}, NULL);
    harness_stop(&h);
    h.config.client_cert_auth = false;
    harness_start(&h, h.config);
    ck_assert_int_eq(ask(NULL, &o), 200);
    ck_assert_str_eq(o.body, "(none)||0 |exposed=0");
    ck_assert_int_eq(ask("good", &o), 200);
    harness_issue(&ca, "good", (struct harness_cert){.ends_s = -60});
    ck_assert_int_eq(ask("good", &o), 403); /* who shows one is held to it */
    stop();
}
END_TEST

START_TEST(a_server_that_is_not_to_be_believed_is_sent_nothing)
{
    struct base_errbuf err = {""};
    struct outcome o;
    start((struct http_server_config){.listen = NULL}, NULL);
    struct harness_ca other = harness_ca_new("ca2");
    struct http_tls *foreign = load("ca2.pem", NULL, NULL), *own = load("ca.pem", "good", NULL);
    ck_assert_int_eq(ask_as(foreign, "/", &o), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(o.why, "the server's certificate is not believed"));
    harness_revoke(&ca, "revoked", 7);
    struct http_tls *knowing = load("ca.pem", "good", "revoked.pem");
    ck_assert_int_eq(ask_as(knowing, "/", &o), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(o.why, "revoked"));
    /* At its start it takes one that is over; who has a newer one puts it there. */
    harness_stop(&h);
    http_tls_free(server_tls);
    harness_issue(&ca, "server", (struct harness_cert){.begins_s = -7200, .ends_s = -3600});
    server_tls = load("ca.pem", "server", NULL);
    h.config.tls = server_tls;
    harness_start(&h, h.config);
    ck_assert_int_eq(ask_as(own, "/", &o), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(o.why, "expired"));
    ck_assert_uint_eq(h.handled, 0);
    harness_issue(&ca, "server", (struct harness_cert){.ends_s = 3600});
    ck_assert_int_eq(http_tls_look(server_tls, &err), 1);
    ck_assert_int_eq(ask_as(own, "/", &o), 200);
    http_tls_free(foreign);
    http_tls_free(own);
    http_tls_free(knowing);
    harness_ca_free(&other);
    stop();
}
END_TEST

static int take_piece(void *user, int status, const char *bytes, size_t length)
{
    struct outcome *o = user;
    (void)status, (void)bytes, (void)length;
    o->lines++;
    return 0;
}

START_TEST(who_is_revoked_meanwhile_loses_its_stream_and_its_connection)
{
    static const char *const pieces[] = {"a\n", "b\n"};
    struct base_errbuf err = {""};
    struct outcome o, watching = {.calls = 0}, other = {.calls = 0};
    start((struct http_server_config){.listen = NULL}, "crl.pem");
    harness_issue(&ca, "later", (struct harness_cert){.serial = 51});
    struct http_tls *tls = load("ca.pem", "later", NULL), *good = load("ca.pem", "good", NULL);
    struct http_call call = {
        .url = at("/stream"), .tls = tls, .timeout_ms = UINT32_MAX, .on_data = take_piece};
    h.pieces = pieces;
    h.count = 2;
    h.told = 1;
    ck_assert_int_eq(http_client_call(client, &call, done, &watching, NULL), 0);
    drive(&watching.lines, 1);
    call.tls = good;
    ck_assert_int_eq(http_client_call(client, &call, done, &other, NULL), 0);
    drive(&other.lines, 1);
    ck_assert_int_eq(ask_as(tls, "/", &o), 200); /* on a connection that is kept */
    const unsigned connections = (unsigned)http_server_port(h.server) > 0 ? 3 : 0;
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.accepted, connections);
    harness_revoke(&ca, "crl", 51);
    ck_assert_int_eq(http_tls_look(server_tls, &err), 1);
    http_server_recheck(h.server);
    drive(&watching.calls, 1);
    ck_assert_ptr_nonnull(strstr(refused_why, "\"later\" has been revoked"));
    ck_assert_int_eq(other.calls, 0);
    ck_assert_int_eq(ask_as(tls, "/", &o), 403);
    http_server_stats(h.server, &stats);
    ck_assert_uint_eq(stats.accepted, connections);
    ck_assert_int_eq(ask_as(good, "/tell", &o), 200);
    drive(&other.calls, 1);
    http_tls_free(tls);
    http_tls_free(good);
    stop();
}
END_TEST

START_TEST(a_client_that_renews_its_certificate_shows_the_new_one)
{
    struct base_errbuf err = {""};
    struct outcome o;
    start((struct http_server_config){.listen = NULL}, NULL);
    struct http_tls *tls = load("ca.pem", "good", NULL);
    ck_assert_int_eq(ask_as(tls, "/who", &o), 200);
    harness_issue(&ca, "good", (struct harness_cert){.uri = "kedge://node/n2"});
    ck_assert_int_eq(ask_as(tls, "/who", &o), 200);
    ck_assert_ptr_nonnull(strstr(o.body, "kedge://node/n1"));
    ck_assert_int_eq(http_tls_look(tls, &err), 1);
    ck_assert_int_eq(ask_as(tls, "/who", &o), 200);
    ck_assert_ptr_nonnull(strstr(o.body, "kedge://node/n2"));
    http_tls_free(tls);
    stop();
}
END_TEST

static struct http_who know_nobody(void *user, const struct http_request *request)
{
    (void)user, (void)request;
    return (struct http_who){.rank = HTTP_ANONYMOUS};
}

/* It waits, and does not turn round and round: that something has come late makes it busy once. */
static void expect_rest(void)
{
    struct pollfd p = {.fd = http_server_fd(h.server), .events = POLLIN};
    unsigned turns = 0;
    while (turns < 1000 && poll(&p, 1, 20) > 0) {
        http_server_run(h.server);
        turns++;
    }
    ck_assert_uint_lt(turns, 1000);
}

START_TEST(handshakes_that_do_not_end_keep_nobody_out_and_are_ended)
{
    enum { ROOM = 8, SILENT = 40 };
    struct outcome o;
    int fd[SILENT];
    char scrap[4096];
    size_t length;
    start((struct http_server_config){.connections = ROOM,
                                      .identify = know_nobody,
                                      .handshake_timeout_ms = 60000},
          NULL);
    for (int i = 0; i < SILENT; i++) {
        fd[i] = harness_connect(&h);
        if (i % 2 == 1) /* the begin of a hello, and no more of it */
            harness_send(&h, fd[i], "\x16\x03\x01\x02\x00\x01", 6);
        harness_run(&h, 1);
    }
    expect_rest();
    ck_assert_int_eq(ask("good", &o), 200);
    struct http_server_stats stats;
    http_server_stats(h.server, &stats);
    ck_assert_uint_le(stats.open, ROOM + 1);
    ck_assert_uint_ge(stats.dropped, SILENT - ROOM);
    harness_stop_clock();
    harness_clock_ns += 60001 * BASE_NS_PER_MS;
    harness_run(&h, 1);
    http_server_run(h.server);
    harness_clock_ns = 0;
    for (int i = 0; i < SILENT; i++) {
        ck_assert(harness_receive(&h, fd[i], scrap, &length, 3000));
        close(fd[i]);
    }
    http_server_stats(h.server, &stats);
    ck_assert_uint_ge(stats.handshakes_failed, SILENT);
    stop();
}
END_TEST

START_TEST(plain_http_at_the_port_of_tls_is_closed_at_once)
{
    static const char request[] = "GET / HTTP/1.1\r\n" HARNESS_CLOSE "\r\n";
    char out[HARNESS_ANSWER_BYTES];
    size_t length;
    start((struct http_server_config){.listen = NULL}, NULL);
    int fd = harness_connect(&h);
    harness_send(&h, fd, request, sizeof request - 1);
    ck_assert(harness_receive(&h, fd, out, &length, 5000));
    ck_assert_ptr_null(strstr(out, "HTTP"));
    ck_assert_uint_eq(h.handled, 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(the_unix_socket_stays_plain)
{
    static const char request[] = "GET /who HTTP/1.1\r\n" HARNESS_CLOSE "\r\n";
    char out[HARNESS_ANSWER_BYTES], path[HARNESS_PATH];
    size_t length;
    snprintf(path, sizeof path, "%s", harness_path("sock"));
    start((struct http_server_config){.listen = "127.0.0.1:0", .unix_path = path}, NULL);
    int fd = harness_connect_unix(path);
    harness_send(&h, fd, request, sizeof request - 1);
    ck_assert(harness_receive(&h, fd, out, &length, 5000));
    ck_assert_ptr_nonnull(strstr(out, "(none)||0 |exposed=0"));
    close(fd);
    stop();
}
END_TEST

START_TEST(what_the_server_answers_by_itself_comes_through_tls)
{
    static char body[3 << 20];
    struct outcome o = {.calls = 0};
    start((struct http_server_config){.body_bytes = 1 << 16}, NULL);
    struct http_tls *tls = load("ca.pem", "good", NULL);
    memset(body, 'x', sizeof body);
    const struct http_call call = {.method = "PUT",
                                   .url = at("/echo"),
                                   .tls = tls,
                                   .body = body,
                                   .body_length = 1 << 17,
                                   .timeout_ms = 60000};
    ck_assert_int_eq(http_client_call(client, &call, done, &o, NULL), 0);
    drive(&o.calls, 1);
    ck_assert_msg(o.status == 413, "%d %s", o.status, o.why);
    ck_assert_int_eq(ask_as(tls, "/big", &o), 200);
    ck_assert_uint_eq(o.body_length, 3u << 20);
    ck_assert_int_eq(ask_as(tls, "/bad%zz", &o), 400);
    http_tls_free(tls);
    stop();
}
END_TEST

/* ---- a client that speaks TLS as it likes */

struct raw {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static int shake_hands(struct raw *r)
{
    const uint64_t end_ns = base_clock_ns() + 30 * BASE_NS_PER_S;
    int code;
    do {
        code = gnutls_handshake(r->session);
        harness_run(&h, 1);
    } while (code < 0 && gnutls_error_is_fatal(code) == 0 && base_clock_ns() < end_ns);
    return code;
}

static int connect_raw(struct raw *r, const char *priorities)
{
    const int on = 1;
    r->fd = harness_connect(&h);
    ck_assert_int_eq(setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    ck_assert_int_eq(gnutls_certificate_allocate_credentials(&r->credentials), 0);
    ck_assert_int_eq(gnutls_certificate_set_x509_key_file(r->credentials, harness_path("good.pem"),
                                                          harness_path("good-key.pem"),
                                                          GNUTLS_X509_FMT_PEM),
                     0);
    ck_assert_int_eq(gnutls_init(&r->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
    ck_assert_int_eq(gnutls_priority_set_direct(r->session, priorities, NULL), 0);
    gnutls_credentials_set(r->session, GNUTLS_CRD_CERTIFICATE, r->credentials);
    gnutls_transport_set_int(r->session, r->fd);
    return shake_hands(r);
}

static void close_raw(struct raw *r)
{
    gnutls_deinit(r->session);
    gnutls_certificate_free_credentials(r->credentials);
    close(r->fd);
    harness_run(&h, 1);
}

START_TEST(old_versions_and_renegotiation_are_refused)
{
    struct raw r;
    start((struct http_server_config){.listen = NULL}, NULL);
    ck_assert_int_lt(connect_raw(&r, "LEGACY:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0"), 0);
    close_raw(&r);
    ck_assert_int_eq(connect_raw(&r, "NORMAL:-VERS-ALL:+VERS-TLS1.3"), 0);
    close_raw(&r);
    ck_assert_int_eq(connect_raw(&r, "NORMAL:-VERS-ALL:+VERS-TLS1.2"), 0);
    ck_assert_int_lt(shake_hands(&r), 0);
    close_raw(&r);
    stop();
}
END_TEST

START_TEST(a_request_that_is_not_whole_in_time_is_told_so_through_tls)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: ";
    struct raw r;
    char out[4096] = "";
    ssize_t n = GNUTLS_E_AGAIN;
    start((struct http_server_config){.request_timeout_ms = 30000,
                                      .handshake_timeout_ms = 1000000000},
          NULL);
    ck_assert_int_eq(connect_raw(&r, "NORMAL"), 0);
    ck_assert_int_gt((int)gnutls_record_send(r.session, request, sizeof request - 1), 0);
    harness_stop_clock();
    for (int i = 0; i < 30000 && n == GNUTLS_E_AGAIN; i++) {
        harness_run(&h, 1);
        harness_clock_ns += 30001 * BASE_NS_PER_MS;
        http_server_run(h.server);
        n = gnutls_record_recv(r.session, out, sizeof out - 1);
    }
    harness_clock_ns = 0;
    ck_assert_msg(strstr(out, "HTTP/1.1 408 ") != NULL, "%zd %s", n, out);
    close_raw(&r);
    stop();
}
END_TEST

START_TEST(an_answer_that_its_client_takes_late_comes_whole_and_costs_nothing_meanwhile)
{
    static const char request[] = "GET /big HTTP/1.1\r\n" HARNESS_CLOSE "\r\n";
    struct raw r;
    char out[4096];
    size_t total = 0;
    ssize_t n = GNUTLS_E_AGAIN;
    start((struct http_server_config){.stream_timeout_ms = 600000, .idle_timeout_ms = 600000},
          NULL);
    ck_assert_int_eq(connect_raw(&r, "NORMAL"), 0);
    ck_assert_int_gt((int)gnutls_record_send(r.session, request, sizeof request - 1), 0);
    while (h.handled == 0)
        harness_run(&h, 1);
    expect_rest();
    for (int idle = 0; idle < 5000 && n != 0;) {
        n = gnutls_record_recv(r.session, out, sizeof out);
        idle = n == GNUTLS_E_AGAIN ? idle + 1 : 0;
        total += n > 0 ? (size_t)n : 0;
        if (n < 0)
            harness_run(&h, 1);
    }
    ck_assert_msg(n == 0 && total > 3u << 20, "%zd %zu", n, total);
    close_raw(&r);
    stop();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_client_is_known_by_the_names_in_its_certificate)                                           \
    T(who_is_not_to_be_believed_is_refused_and_told_why)                                           \
    T(a_client_without_one_is_let_in_where_none_has_to_be_shown)                                   \
    T(a_server_that_is_not_to_be_believed_is_sent_nothing)                                         \
    T(who_is_revoked_meanwhile_loses_its_stream_and_its_connection)                                \
    T(a_client_that_renews_its_certificate_shows_the_new_one)                                      \
    T(handshakes_that_do_not_end_keep_nobody_out_and_are_ended)                                    \
    T(plain_http_at_the_port_of_tls_is_closed_at_once)                                             \
    T(the_unix_socket_stays_plain)                                                                 \
    T(what_the_server_answers_by_itself_comes_through_tls)                                         \
    T(old_versions_and_renegotiation_are_refused)                                                  \
    T(a_request_that_is_not_whole_in_time_is_told_so_through_tls)                                  \
    T(an_answer_that_its_client_takes_late_comes_whole_and_costs_nothing_meanwhile)
KEDGE_CHECK_MAIN("http tls", TESTS)
