/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates, keys and authorities of TLS, as files say them: for a client and for a server.
 *
 * They are read and checked when they are made, and again when the files have changed: what is half
 * written, or no pair, is refused, and what was there stays. TLS 1.2 at least. Belongs to one
 * thread, with the clients and the server that use it; reading blocks on the files. */
#ifndef BASE_HTTP_TLS_H
#define BASE_HTTP_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct http_tls;

enum { HTTP_CERTIFICATE_TEXT = 256, HTTP_CERTIFICATE_IPS = 16 };
/* What a client has shown and is believed. */
struct http_certificate {
    char name[HTTP_CERTIFICATE_TEXT];     /* its common name, for people */
    char uri[HTTP_CERTIFICATE_TEXT];      /* "kedge:...", of its subject's other names; "": none */
    uint8_t ip[HTTP_CERTIFICATE_IPS][16]; /* likewise; IPv4 as ::ffff:a.b.c.d */
    unsigned ips;
    int64_t expires_s; /* since 1970 */
};

/* All PEM. NULL or "": none. Borrowed for the call of new(). */
struct http_tls_config {
    const char *ca_file;   /* whom to believe (a client: the system's; a server: it asks no client
                            * for a certificate) */
    const char *cert_file; /* the own certificate, those between it and the authority behind it;
                            * with key_file (a client: it shows none) */
    const char *key_file;
    const char *crl_file; /* what the authority has revoked; with ca_file */
};

/* Reads the files. 0 and *out (http_tls_free() it), or -errno and a sentence that names the file:
 * -EINVAL: what is in them; -EACCES: everybody may read the key; -ENOENT, ...: it cannot be read.
 */
int http_tls_new(const struct http_tls_config *config, struct http_tls **out,
                 struct base_errbuf *err);
/* Connections that were made with it go on. NULL is allowed. */
void http_tls_free(struct http_tls *tls);

/* Reads the files again if they have changed. 0: nothing is new; 1: what is in them counts from the
 * next connection on; or -errno and a sentence, once for each: what was there before stays. Call it
 * every few seconds. */
int http_tls_look(struct http_tls *tls, struct base_errbuf *err);

/* What the own certificate says of itself, as a server reads it that is shown it. 0 and *out;
 * -ENOENT: there is none; -EINVAL: no server takes it, as it has two URIs of Kedge's, or more
 * addresses than HTTP_CERTIFICATE_IPS. */
int http_tls_own(const struct http_tls *tls, struct http_certificate *out);
/* When the first of the own certificates ends, in seconds since 1970; 0: there is none. */
int64_t http_tls_expiry(const struct http_tls *tls);
/* Whether that is worth a word now: a sentence in err, at most once a day, from HTTP_TLS_SOON_S
 * before it on and after it. wall_s: since 1970. */
enum { HTTP_TLS_SOON_S = 14 * 24 * 3600 };
bool http_tls_warn(struct http_tls *tls, int64_t wall_s, struct base_errbuf *err);

#endif
