/* SPDX-License-Identifier: Apache-2.0 */
/* What was read from the files of TLS: tls.c makes it, the client's and the server's side use it.
 */
#ifndef BASE_HTTP_TLS_PRIVATE_H
#define BASE_HTTP_TLS_PRIVATE_H

#include <gnutls/gnutls.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/http/tls.h"

enum http_tls_file { HTTP_TLS_CA, HTTP_TLS_CERT, HTTP_TLS_KEY, HTTP_TLS_CRL, HTTP_TLS_FILES };

/* One reading that was in order. Constant; who counts in `users` may go on using it when there is a
 * newer one. */
struct http_tls_loaded {
    unsigned users;
    uint64_t number;                     /* of readings; the first is 1 */
    gnutls_datum_t file[HTTP_TLS_FILES]; /* data NULL: there is none */
    gnutls_certificate_credentials_t credentials;
    int64_t expiry_s; /* 0: no certificate */
};

struct http_tls {
    char *path[HTTP_TLS_FILES]; /* owned; NULL: none */
    struct stat seen[HTTP_TLS_FILES];
    bool unsettled; /* a file was so new that it may have changed unseen since */
    struct http_tls_loaded *now;
    char refused[sizeof((struct base_errbuf *)0)->text]; /* the last sentence about newer files */
    int64_t warned_s;
};

struct http_tls_loaded *http_tls_hold(const struct http_tls *tls);
/* NULL is allowed. */
void http_tls_release(struct http_tls_loaded *loaded);

#endif
