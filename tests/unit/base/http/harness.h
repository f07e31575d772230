/* SPDX-License-Identifier: Apache-2.0 */
/* A server and raw clients, driven by the test's own thread. */
#ifndef TESTS_UNIT_BASE_HTTP_HARNESS_H
#define TESTS_UNIT_BASE_HTTP_HARNESS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "base/http/server.h"

enum { HARNESS_DEFERRED_MAX = 64, HARNESS_ANSWER_BYTES = 1 << 16 };

#define HARNESS_CLOSE "Host: x\r\nConnection: close\r\n"

struct harness {
    struct http_server *server;
    struct http_server_config config;
    struct http_request *deferred[HARNESS_DEFERRED_MAX];
    unsigned deferred_count;
    unsigned abandoned;
    unsigned handled;
    size_t body_length; /* of the last request */
    int reply_status;   /* of the last http_reply() */
    /* /stream: pieces[0 .. told) are there; after the last one it ends. */
    const char *const *pieces;
    unsigned told, count;
    size_t piece_bytes; /* of each, instead of up to its NUL */
    unsigned streams, over;
    struct http_request *stream; /* the last one */
};

/* What the server's clock says, 0: what the machine's does. Rates and deadlines are tested with a
 * clock that stands still until the test sets it: a busy machine may keep this program from running
 * for longer than any of them. */
extern uint64_t harness_clock_ns;
void harness_stop_clock(void);
enum { HARNESS_DEAR_MS = 200 }; /* what "/dear" takes of the thread */

/* The address that connects; NULL: 127.0.0.1. */
extern const char *harness_from;

/* /echo: the body. /queries: all parameters. /defer: later. /wake: answers the last deferred, too.
 * /none: forgets to answer. /who: its certificate. /bad-header, /bad-status, /big, /error, /stream,
 * /tell. Everything else: what was asked. */
enum http_verdict harness_handle(void *user, struct http_request *r);

/* With handle, abandon and user set here, and any port where no address is named. */
void harness_start(struct harness *h, struct http_server_config config);
void harness_stop(struct harness *h);

/* Lets the server work for a moment, or until it has nothing to do for wait_ms. */
void harness_run(struct harness *h, int wait_ms);

int harness_connect(struct harness *h);
int harness_connect_unix(const char *path);

/* Sends all of it while the server runs; stops when the server closes. */
void harness_send(struct harness *h, int fd, const char *bytes, size_t length);

/* Reads until the server closes (true) or is silent for silence_ms (false). Only waits in which
 * nothing was to be done count as silence, and not the time in which this program did not run. out
 * is NUL-terminated; what does not fit is counted in *length alone. */
bool harness_receive(struct harness *h, int fd, char *out, size_t *length, int silence_ms);

/* One connection, one request, the answer. Returns the HTTP status, 0 without an answer. */
int harness_ask(struct harness *h, const char *request, char *out);

#endif
