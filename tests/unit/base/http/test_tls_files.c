/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <time.h>

#include "base/http/client.h"
#include "harness.h"
#include "harness_tls.h"

static struct harness_ca ca;

static void setup(void)
{
    ca = harness_ca_new("ca");
    harness_issue(&ca, "one", (struct harness_cert){.ends_s = 3600});
    harness_issue(&ca, "two", (struct harness_cert){.ends_s = 7200});
}

static void teardown(void)
{
    harness_ca_free(&ca);
    harness_forget_files();
}

static struct http_tls *open_tls(void)
{
    struct base_errbuf err = {""};
    struct http_tls *tls = NULL;
    const struct http_tls_config config = {.ca_file = harness_path("ca.pem"),
                                           .cert_file = harness_path("one.pem"),
                                           .key_file = harness_path("one-key.pem")};
    ck_assert_msg(http_tls_new(&config, &tls, &err) == 0, "%s", err.text);
    return tls;
}

/* As an operator does it who has no rename(). */
static void copy_file(const char *from, const char *to, long at_most)
{
    char bytes[4096];
    struct stat st;
    FILE *f = fopen(harness_path(from), "r");
    ck_assert_ptr_nonnull(f);
    size_t length = fread(bytes, 1, sizeof bytes, f);
    ck_assert_int_eq(fstat(fileno(f), &st), 0);
    fclose(f);
    if (at_most >= 0 && length > (size_t)at_most)
        length = (size_t)at_most;
    harness_write(harness_path(to), bytes, length, st.st_mode & 0777);
}

static int refuse(struct http_tls_config config, struct base_errbuf *err)
{
    struct http_tls *tls = NULL;
    int status = http_tls_new(&config, &tls, err);
    ck_assert_ptr_null(tls);
    return status;
}

START_TEST(what_is_no_pair_or_open_to_others_is_refused_with_the_file_s_name)
{
    setup();
    struct base_errbuf err;
    ck_assert_int_eq(refuse((struct http_tls_config){.cert_file = harness_path("one.pem"),
                                                     .key_file = harness_path("two-key.pem")},
                            &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "two-key.pem is not that of the certificate in"));
    ck_assert_int_eq(refuse((struct http_tls_config){.cert_file = harness_path("one.pem")}, &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "one.pem is set without its key"));
    ck_assert_int_eq(refuse((struct http_tls_config){.ca_file = harness_path("one-key.pem")}, &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "there is no authority's certificate in"));
    ck_assert_int_eq(refuse((struct http_tls_config){.ca_file = harness_path("none.pem")}, &err),
                     -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot be read: No such file"));
    ck_assert_int_eq(refuse((struct http_tls_config){.ca_file = "/tmp"}, &err), -EINVAL);
    ck_assert_int_eq(refuse((struct http_tls_config){.crl_file = harness_path("ca.pem")}, &err),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "of no use without the authority"));
    ck_assert_int_eq(chmod(harness_path("one-key.pem"), 0644), 0);
    ck_assert_int_eq(refuse((struct http_tls_config){.cert_file = harness_path("one.pem"),
                                                     .key_file = harness_path("one-key.pem")},
                            &err),
                     -EACCES);
    ck_assert_ptr_nonnull(strstr(err.text, "chmod 640 or 600 it"));
    teardown();
}
END_TEST

START_TEST(a_pair_that_is_half_there_is_refused_once_and_taken_when_it_is_whole)
{
    setup();
    struct base_errbuf err = {""};
    struct http_tls *tls = open_tls();
    const int64_t first = http_tls_expiry(tls);
    ck_assert_int_eq(http_tls_look(tls, &err), 0);
    copy_file("two.pem", "one.pem", -1); /* and not yet its key */
    ck_assert_int_eq(http_tls_look(tls, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "one.pem"));
    ck_assert_int_eq(http_tls_look(tls, &err), 0);
    ck_assert_int_eq(http_tls_expiry(tls), first);
    copy_file("two-key.pem", "one-key.pem", 60);
    ck_assert_int_eq(http_tls_look(tls, &err), -EINVAL);
    copy_file("two-key.pem", "one-key.pem", -1);
    ck_assert_int_eq(http_tls_look(tls, &err), 1);
    ck_assert_int_eq(http_tls_expiry(tls), first + 3600);
    ck_assert_int_eq(http_tls_look(tls, &err), 0);
    ck_assert_int_eq(unlink(harness_path("one-key.pem")), 0);
    ck_assert_int_eq(http_tls_look(tls, &err), -ENOENT);
    copy_file("two-key.pem", "one-key.pem", -1);
    ck_assert_int_eq(http_tls_look(tls, &err), 0); /* the same again */
    http_tls_free(tls);
    teardown();
}
END_TEST

START_TEST(one_that_is_over_does_not_take_the_place_of_one_that_holds)
{
    setup();
    struct base_errbuf err = {""};
    struct http_tls *tls = open_tls();
    harness_issue(&ca, "one", (struct harness_cert){.ends_s = -60});
    ck_assert_int_eq(http_tls_look(tls, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "has expired already"));
    http_tls_free(tls);
    teardown();
}
END_TEST

START_TEST(an_end_that_is_near_is_said_once_a_day_and_again_when_it_has_come)
{
    setup();
    struct base_errbuf err = {""};
    struct http_tls *tls = open_tls();
    const int64_t end = http_tls_expiry(tls);
    ck_assert(!http_tls_warn(tls, end - HTTP_TLS_SOON_S - 1, &err));
    ck_assert(http_tls_warn(tls, end - HTTP_TLS_SOON_S, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "one.pem expires at 2"));
    ck_assert(!http_tls_warn(tls, end - HTTP_TLS_SOON_S + 3600, &err));
    ck_assert(http_tls_warn(tls, end - HTTP_TLS_SOON_S + 24 * 3600, &err));
    ck_assert(http_tls_warn(tls, end - 10, &err));
    ck_assert(http_tls_warn(tls, end, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "has expired at"));
    ck_assert(!http_tls_warn(tls, end + 10, &err));
    http_tls_free(tls);
    teardown();
}
END_TEST

START_TEST(a_url_is_private_by_tls_or_loopback_alone)
{
    static const char *const hidden[] = {"https://10.0.0.1:7480",      "HTTPS://a.example/v1",
                                         "http://127.0.0.1:7480",      "http://127.9.9.9",
                                         "http://localhost:7480",      "http://[::1]:7480/v1",
                                         "http://[::ffff:127.0.0.1]:1"};
    static const char *const open[] = {"http://10.0.0.1:7480",
                                       "http://127.0.0.1.example:7480",
                                       "http://localhost.example",
                                       "http://127.0.0.1@10.0.0.1/",
                                       "http://[::2]:7480",
                                       "http://0.0.0.0:7480",
                                       "nonsense",
                                       ""};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        ck_assert_msg(http_url_is_private(hidden[i]), "%s", hidden[i]);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        ck_assert_msg(!http_url_is_private(open[i]), "%s", open[i]);
}
END_TEST

START_TEST(a_url_is_of_loopback_whatever_its_scheme)
{
    static const char *const own[] = {"https://127.0.0.1:2379", "http://localhost:2379",
                                      "https://[::1]:2379"};
    static const char *const others[] = {"https://10.0.0.1:2379", "http://10.0.0.1:2379",
                                         "https://etcd.example", "http://0.0.0.0:1", ""};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        ck_assert_msg(http_url_is_loopback(own[i]), "%s", own[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!http_url_is_loopback(others[i]), "%s", others[i]);
}
END_TEST

START_TEST(a_token_is_not_sent_where_others_see_it_unless_that_is_allowed)
{
    struct base_errbuf err;
    struct http_result result = {0};
    struct http_call call = {
        .url = "http://0.0.0.0:1/v1", .token = "secret", .connect_timeout_ms = 1};
    ck_assert_int_eq(http_call(&call, &result, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "say https://"));
    call.allow_plain_token = true;
    ck_assert_int_ne(http_call(&call, &result, &err), -EPERM);
    call.allow_plain_token = false;
    call.unix_path = "/nowhere";
    ck_assert_int_ne(http_call(&call, &result, &err), -EPERM);
    call = (struct http_call){.url = "http://0.0.0.0:1/v1", .connect_timeout_ms = 1};
    ck_assert_int_ne(http_call(&call, &result, &err), -EPERM);
}
END_TEST

START_TEST(the_own_certificate_is_read_as_a_server_reads_it)
{
    struct http_certificate own = {.uri = "as before"};
    struct base_errbuf err = {""};
    struct http_tls *tls = NULL;
    setup();
    tls = open_tls();
    ck_assert_int_eq(http_tls_own(tls, &own), 0);
    ck_assert_str_eq(own.uri, "");
    ck_assert_int_eq(own.expires_s, http_tls_expiry(tls));
    harness_issue(&ca, "one", (struct harness_cert){.uri = "kedge://node/n1", .ip = "192.0.2.1"});
    ck_assert_int_eq(http_tls_look(tls, &err), 1);
    ck_assert_int_eq(http_tls_own(tls, &own), 0);
    ck_assert_str_eq(own.uri, "kedge://node/n1");
    ck_assert_uint_eq(own.ips, 1);
    ck_assert_mem_eq(own.ip[0] + 10, "\xff\xff\300\0\2\1", 6);
    harness_issue(&ca, "one",
                  (struct harness_cert){.uri = "kedge://node/n1", .second_uri = "kedge://node/n2"});
    ck_assert_int_eq(http_tls_look(tls, &err), 1);
    ck_assert_int_eq(http_tls_own(tls, &own), -EINVAL);
    http_tls_free(tls);
    const struct http_tls_config none = {.ca_file = harness_path("ca.pem")};
    ck_assert_int_eq(http_tls_new(&none, &tls, &err), 0);
    ck_assert_int_eq(http_tls_own(tls, &own), -ENOENT);
    http_tls_free(tls);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_no_pair_or_open_to_others_is_refused_with_the_file_s_name)                           \
    T(a_pair_that_is_half_there_is_refused_once_and_taken_when_it_is_whole)                        \
    T(one_that_is_over_does_not_take_the_place_of_one_that_holds)                                  \
    T(an_end_that_is_near_is_said_once_a_day_and_again_when_it_has_come)                           \
    T(the_own_certificate_is_read_as_a_server_reads_it)                                            \
    T(a_url_is_private_by_tls_or_loopback_alone)                                                   \
    T(a_url_is_of_loopback_whatever_its_scheme)                                                    \
    T(a_token_is_not_sent_where_others_see_it_unless_that_is_allowed)
KEDGE_CHECK_MAIN("http tls files", TESTS)
