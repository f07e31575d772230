/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP over one connection that is kept, with as little work for each call as there can be: what
 * lookups by READ are held against. One thread each; failures are -errno with a sentence. */
#ifndef BENCH_KEPT_HTTP_H
#define BENCH_KEPT_HTTP_H

#include <stddef.h>

#include "base/error.h"

enum { PERF_HTTP_BYTES = 32768 /* of an answer */ };

/* To http://ADDRESS:PORT. *fd is the caller's to close. */
int perf_http_open(const char *url, int *fd, struct base_errbuf *err);
/* Sends a request; body NULL: none. */
int perf_http_send(int fd, const char *method, const char *path, const char *body,
                   struct base_errbuf *err);
/* Takes the answer to one: its body, with a NUL, is at *out within `bytes`. An answer that is not
 * 2xx is -EPROTO. */
int perf_http_receive(int fd, char bytes[PERF_HTTP_BYTES], char **out, struct base_errbuf *err);
/* Both. */
int perf_http_call(int fd, const char *method, const char *path, const char *body,
                   char bytes[PERF_HTTP_BYTES], char **out, struct base_errbuf *err);

#endif
