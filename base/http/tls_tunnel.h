/* SPDX-License-Identifier: Apache-2.0 */
/* TLS before libmicrohttpd: a tunnel has a client's connection at one end and a pair of sockets at
 * the other, of which libmicrohttpd has one and sees plain HTTP. (Its own TLS runs without a pause
 * as long as a handshake is not over.) The server's thread.
 *
 * Who has shown which certificate is looked at when there is a request: a handshake ends well
 * whatever is shown, and whose certificate is not believed is answered 403 with a sentence. An
 * alert says less, and is lost when the client has sent its request already. */
#ifndef BASE_HTTP_TLS_TUNNEL_H
#define BASE_HTTP_TLS_TUNNEL_H

#include "server_private.h"

/* Of all connections of a server. 0 or -errno. */
int http_tunnels_new(struct http_server *s, struct http_tunnels **out);
/* After libmicrohttpd's daemon. NULL is allowed, here and in run(). */
void http_tunnels_free(struct http_tunnels *all);
/* Borrowed: watch it for reading. */
int http_tunnels_fd(const struct http_tunnels *all);
/* Carries what can be carried now. */
void http_tunnels_run(struct http_tunnels *all);
/* A turn of the server begins, in which a few handshakes are gone on with. NULL is allowed. */
void http_tunnels_begin_turn(struct http_tunnels *all);

/* Takes a client's connection. What is to be given to libmicrohttpd; or -1, and it is closed. */
int http_tunnel_new(struct http_tunnels *all, int wire);
/* A connection of libmicrohttpd's begins: finds its tunnel, if it has one. Returns the network's
 * end of it, -1 once there is none. */
int http_tunnel_join(struct http_connection *c);
/* And ends. */
void http_tunnel_leave(struct http_connection *c);

/* ---- tls_peer.c: what is believed of who is at the other end */

enum { HTTP_TLS_WHY = 160 };
struct http_tls_peer {
    uint64_t checked; /* the reading of the files by which it was looked at; 0: it was not */
    bool shown;       /* a certificate */
    struct http_certificate certificate;
    char why[HTTP_TLS_WHY]; /* it is not believed; "": it is, or none is needed */
};
/* Of its session. */
struct gnutls_session_int *http_tunnel_session(const struct http_tunnel *t);
struct http_tls_peer *http_tunnel_peer(struct http_tunnel *t);
/* Once there was a request: why its client is refused, borrowed as long as the connection is; NULL:
 * it is not. */
const char *http_tls_check(struct http_connection *c);
/* After that. */
const struct http_certificate *http_tls_certificate(const struct http_connection *c);

#endif
