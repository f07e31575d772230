/* SPDX-License-Identifier: Apache-2.0 */
/* kedge-metad's certificates: read at the start, and again on SIGHUP and when their files change,
 * while it serves; and when they end, of which those hear who scrape or watch it. That which etcd
 * is shown is read by whoever calls etcd, for each connection: here it is only looked at. The
 * loop's thread. */
#ifndef METASERVER_TLS_WATCH_H
#define METASERVER_TLS_WATCH_H

#include <uv.h>

#include "base/http/server.h"
#include "base/log.h"
#include "metaserver/config_file.h"
#include "metaserver/service.h"

/* Zeroed to begin. */
struct meta_tls_watch {
    uv_timer_t timer;
    uv_signal_t hangup;
    struct http_tls *tls;  /* owned; NULL: there is none */
    struct http_tls *etcd; /* owned; NULL: etcd is shown none, or none of use yet */
    /* Borrowed; NULL: etcd is shown none. */
    const struct meta_config *etcd_files;
    struct base_errbuf etcd_why;  /* why those were of no use when they were read last; "": were */
    struct http_server *server;   /* borrowed */
    struct meta_service *service; /* borrowed */
    struct base_log_limit log;
};

/* As the settings say; *out NULL: no TLS. 0 or -errno and a sentence. */
int meta_tls_open(const struct meta_config *config, struct http_tls **out, struct base_errbuf *err);
/* Those that etcd is shown, into w->etcd. Where they are of no use that is logged, and they are
 * read again until they are; what becomes of calls to etcd its client says. config is borrowed for
 * as long as w is used. */
void meta_tls_open_etcd(struct meta_tls_watch *w, const struct meta_config *config);
/* Looks now and then, and on SIGHUP, until its handles are closed. 0 or libuv's -errno. */
int meta_tls_watch_start(struct meta_tls_watch *w, uv_loop_t *loop);
/* Of the server: what a client was refused for. */
void meta_tls_refused(struct meta_tls_watch *w, const char *peer, const char *why);
/* What everybody on the way may read, and who is told so. */
void meta_tls_say_plain(const struct meta_config *config);

#endif
