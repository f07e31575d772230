/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/http/client.h"

enum { LOOK_EVERY_MS = 5000 };

int meta_tls_open(const struct meta_config *config, struct http_tls **out, struct base_errbuf *err)
{
    const struct http_tls_config files = {.ca_file = config->trusted_ca_file,
                                          .cert_file = config->cert_file,
                                          .key_file = config->key_file,
                                          .crl_file = config->client_crl_file};
    *out = NULL;
    return config->cert_file[0] == '\0' || config->listen[0] == '\0'
               ? 0
               : http_tls_new(&files, out, err);
}

static void log_useless_etcd(const char *why)
{
    base_log(BASE_LOG_ERROR, "etcd's client certificate is of no use: etcd is not reached with it",
             "of=%s reason=\"%s\"", meta_certificate_name(META_CERTIFICATE_ETCD), why);
}

static void log_read_again(const struct http_tls *tls, enum meta_certificate_use of)
{
    base_log(BASE_LOG_INFO, "certificates are read again", "of=%s expires_s=%" PRId64,
             meta_certificate_name(of), http_tls_expiry(tls));
}

/* Each sentence is logged once. */
static void read_etcd(struct meta_tls_watch *w)
{
    const struct http_tls_config files = {.cert_file = w->etcd_files->store_cert,
                                          .key_file = w->etcd_files->store_key};
    struct base_errbuf why = {""};
    const int status = http_tls_new(&files, &w->etcd, &why);
    if (status != 0 && strcmp(why.text, w->etcd_why.text) != 0)
        log_useless_etcd(why.text);
    else if (status == 0 && w->etcd_why.text[0] != '\0')
        log_read_again(w->etcd, META_CERTIFICATE_ETCD);
    w->etcd_why = why;
}

void meta_tls_open_etcd(struct meta_tls_watch *w, const struct meta_config *config)
{
    if (!config->store_shared || config->store_cert[0] == '\0')
        return;
    w->etcd_files = config;
    read_etcd(w);
}

static void look_at(struct meta_tls_watch *w, struct http_tls *tls, enum meta_certificate_use of)
{
    const uint64_t wall_ms = base_clock_wall_ms(), now_ns = base_clock_ns();
    struct base_errbuf why;
    if (tls == NULL)
        return;
    const int status = http_tls_look(tls, &why);
    if (status < 0 && of == META_CERTIFICATE_ETCD)
        log_useless_etcd(why.text);
    else if (status < 0)
        base_log(BASE_LOG_ERROR,
                 "newer certificates are refused, and what was there before still holds",
                 "of=%s reason=\"%s\"", meta_certificate_name(of), why.text);
    if (status > 0)
        log_read_again(tls, of);
    if (http_tls_warn(tls, (int64_t)(wall_ms / 1000), &why))
        base_log(BASE_LOG_WARN, "the certificate expires", "of=%s reason=\"%s\"",
                 meta_certificate_name(of), why.text);
    meta_service_at(w->service, now_ns, wall_ms);
    meta_service_certificate(w->service, of, http_tls_expiry(tls), HTTP_TLS_SOON_S, now_ns);
}

static void look_at_files(struct meta_tls_watch *w)
{
    if (w->etcd_files != NULL && w->etcd == NULL)
        read_etcd(w);
    look_at(w, w->etcd, META_CERTIFICATE_ETCD);
    look_at(w, w->tls, META_CERTIFICATE_API);
    if (w->tls != NULL)
        http_server_recheck(w->server);
}

static void on_timer(uv_timer_t *timer)
{
    look_at_files(timer->data);
}

static void on_hangup(uv_signal_t *sig, int number)
{
    (void)number;
    look_at_files(sig->data);
}

int meta_tls_watch_start(struct meta_tls_watch *w, uv_loop_t *loop)
{
    w->timer.data = w->hangup.data = w;
    look_at_files(w);
    int status = uv_timer_init(loop, &w->timer);
    if (status == 0 && (w->tls != NULL || w->etcd_files != NULL))
        status = uv_timer_start(&w->timer, on_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
    if (status == 0)
        status = uv_signal_init(loop, &w->hangup);
    return status == 0 ? uv_signal_start(&w->hangup, on_hangup, SIGHUP) : status;
}

void meta_tls_refused(struct meta_tls_watch *w, const char *peer, const char *why)
{
    uint32_t suppressed;
    w->service->count.tls_refused++;
    if (base_log_allow(&w->log, base_clock_ns(), 10 * BASE_NS_PER_S, 10, &suppressed))
        base_log(BASE_LOG_WARN, "a client was refused", "client=\"%s\" why=\"%s\" suppressed=%u",
                 peer, why, suppressed);
}

void meta_tls_say_plain(const struct meta_config *config)
{
    char url[META_CONFIG_TEXT_BYTES + 8];
    snprintf(url, sizeof url, "http://%s", config->listen);
    if (config->listen[0] == '\0' || config->cert_file[0] != '\0' || http_url_is_private(url))
        return;
    base_log(BASE_LOG_WARN,
             config->allow_plain_tokens
                 ? "whoever is on the way to the port sees tokens, and can use them: set cert_file "
                   "and key_file"
                 : "there is no TLS on the port, so that no token is taken there: set cert_file "
                   "and key_file; or say allow_plain_tokens = yes, where nobody listens",
             "listen=\"%s\" allow_plain_tokens=%s", config->listen,
             config->allow_plain_tokens ? "yes" : "no");
}
