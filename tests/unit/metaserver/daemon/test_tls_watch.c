/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of a metaserver are watched while it serves. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../base/http/harness_tls.h"
#include "../../check_main.h"
#include "start_check.h"
#include "tls_watch.h"

static struct meta_service service;
static struct meta_config config;
static struct meta_tls_watch w;
static uv_loop_t loop;

static int64_t expiry_s(void)
{
    return service.certificate[META_CERTIFICATE_ETCD].expires_s;
}

/* As an operator does who need not wait for the next look. */
static void hang_up(void)
{
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
    uv_run(&loop, UV_RUN_ONCE);
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static void end(void)
{
    uv_close((uv_handle_t *)&w.timer, on_closed);
    uv_close((uv_handle_t *)&w.hangup, on_closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    http_tls_free(w.etcd);
    meta_liveness_free(service.liveness);
    harness_forget_files();
}

START_TEST(a_certificate_for_etcd_that_is_wrong_at_the_start_is_taken_when_it_is_mended)
{
    struct harness_ca ca = harness_ca_new("ca");
    harness_issue(&ca, "etcd", (struct harness_cert){.ends_s = -60});
    harness_issue(&ca, "other", (struct harness_cert){.ends_s = 86400 * 100});
    config.store_shared = true;
    snprintf(config.store_cert, sizeof config.store_cert, "%s", harness_path("etcd.pem"));
    snprintf(config.store_key, sizeof config.store_key, "%s", harness_path("other-key.pem"));
    service.liveness = meta_liveness_new(16, 1);
    w.service = &service;
    meta_tls_open_etcd(&w, &config);
    ck_assert_ptr_null(w.etcd);
    ck_assert_ptr_nonnull(strstr(w.etcd_why.text, "is not that of the certificate in"));
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(meta_tls_watch_start(&w, &loop), 0);
    ck_assert(uv_is_active((uv_handle_t *)&w.timer)); /* which looks where nobody hangs up */
    ck_assert_int_eq(expiry_s(), 0);
    hang_up();
    ck_assert_ptr_null(w.etcd);
    /* The pair is one, and is over: it is watched, and the next one is taken for it. */
    snprintf(config.store_key, sizeof config.store_key, "%s", harness_path("etcd-key.pem"));
    hang_up();
    ck_assert_ptr_nonnull(w.etcd);
    ck_assert_str_eq(w.etcd_why.text, "");
    const int64_t over_s = expiry_s();
    ck_assert_int_gt(over_s, 0);
    harness_issue(&ca, "etcd", (struct harness_cert){.ends_s = 86400 * 200});
    hang_up();
    ck_assert_int_gt(expiry_s(), over_s + 86400 * 199);
    harness_ca_free(&ca);
    end();
}
END_TEST

START_TEST(who_shows_etcd_no_certificate_looks_at_none)
{
    struct harness_ca ca = harness_ca_new("ca");
    config = (struct meta_config){.store_shared = true};
    w.service = &service;
    service.liveness = meta_liveness_new(16, 1);
    meta_tls_open_etcd(&w, &config);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(meta_tls_watch_start(&w, &loop), 0);
    ck_assert(!uv_is_active((uv_handle_t *)&w.timer));
    hang_up();
    ck_assert_ptr_null(w.etcd);
    ck_assert_int_eq(expiry_s(), 0);
    harness_ca_free(&ca);
    end();
}
END_TEST

START_TEST(an_etcd_on_a_network_that_is_shown_nothing_is_told_apart)
{
    static const struct {
        const char *endpoints, *user, *cert;
        bool is;
    } at[] = {
        {"http://127.0.0.1:2379", "", "", false},
        {"http://127.0.0.1:2379, https://localhost:1", "", "", false},
        {"http://192.0.2.1:2379", "", "", true},
        {"https://etcd.example:2379", "", "", true},
        {"http://127.0.0.1:2379, http://192.0.2.1:2379", "", "", true},
        {"http://127.0.0.1:2379,http://192.0.2.1:2379,", "", "", true},
        {"http://192.0.2.1:2379", "u", "", false},
        {"https://192.0.2.1:2379", "", "/c", false},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        config = (struct meta_config){.store_shared = true};
        snprintf(config.store_endpoints, sizeof config.store_endpoints, "%s", at[i].endpoints);
        snprintf(config.store_user, sizeof config.store_user, "%s", at[i].user);
        snprintf(config.store_cert, sizeof config.store_cert, "%s", at[i].cert);
        ck_assert_msg(meta_start_shows_etcd_nothing(&config) == at[i].is, "%zu", i);
        config.store_shared = false;
        ck_assert(!meta_start_shows_etcd_nothing(&config));
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_certificate_for_etcd_that_is_wrong_at_the_start_is_taken_when_it_is_mended)                \
    T(who_shows_etcd_no_certificate_looks_at_none)                                                 \
    T(an_etcd_on_a_network_that_is_shown_nothing_is_told_apart)
KEDGE_CHECK_MAIN("metaserver tls watch", TESTS)
