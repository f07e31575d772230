/* SPDX-License-Identifier: Apache-2.0 */
/* An agent as metaservers see one: the real control core registers it, renews it and follows its
 * settings, through the real HTTP client, each with connections of its own. There are no workers,
 * and its device is a stand-in that resolves whatever it is asked. Many are in a process, on one
 * thread. */
#ifndef BENCH_AGENTS_HOST_H
#define BENCH_AGENTS_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/http/tls.h"

struct host;

struct host_config {
    const char *const *url; /* of metaservers, borrowed */
    uint32_t urls;
    struct http_tls *tls;   /* borrowed; NULL: none */
    const char *token_file; /* borrowed; NULL: none */
};

/* The agent of that number, with an id and a GID of its own. Borrows config. NULL and a sentence.
 */
struct host *host_new(const struct host_config *config, uint32_t number, struct base_errbuf *err);
void host_free(struct host *h);

/* Readable when host_run() has something to do. */
int host_fd(const struct host *h);
void host_run(struct host *h);
/* What is due by now. */
void host_tick(struct host *h);
/* When that is wanted next, as of the last host_run() or host_tick(), which alone change it. */
uint64_t host_due_ns(const struct host *h);

/* Whether that metaserver has it. */
bool host_is_registered(const struct host *h, uint32_t metaserver);
bool host_follows(const struct host *h);
/* PUTs of the node so far, at all metaservers. */
uint32_t host_puts(const struct host *h);

#endif
