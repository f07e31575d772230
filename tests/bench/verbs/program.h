/* SPDX-License-Identifier: Apache-2.0 */
/* A careful program that uses verbs without Kedge: what it does until its first READ of a peer that
 * it has not met, each step timed; and that peer. This is what Kedge is compared with, so it calls
 * libibverbs itself and nothing of fabric/.
 *
 * The two agree over TCP, as programs do, and overlap their changes to RTR, as perftest does. The
 * peer keeps all it has ready, but for its queue pair's change to RTR, which needs the other's
 * number. One thread; failures are -errno with a sentence. */
#ifndef BENCH_VERBS_PROGRAM_H
#define BENCH_VERBS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum bench_step {
    BENCH_DEVICE, /* list of devices, open, port, GID */
    BENCH_PD,
    BENCH_CQ,
    BENCH_MR, /* BENCH_BUFFER_BYTES that were touched before */
    BENCH_QP,
    BENCH_INIT,
    BENCH_EXCHANGE, /* TCP: connect, send what the peer has to know, receive the same of it */
    BENCH_RTR,
    BENCH_RTS,
    BENCH_READY, /* until the peer says that it is in RTR too */
    BENCH_READ,  /* the first, of 8 bytes, from its doorbell to its completion */
    BENCH_STEPS
};

/* What an agent's arena has by default, so that registering compares. */
enum { BENCH_BUFFER_BYTES = 2 << 20 };

/* For a table's first column. */
const char *bench_step_name(enum bench_step step);
/* For JSON: a name without blanks. */
const char *bench_step_key(enum bench_step step);

/* Which device and GIDs; zero or NULL: the first that does. Without a peer's GID that is another
 * one of the device where it has one. Borrowed strings. */
struct bench_choice {
    const char *device;
    uint8_t gid[16], peer_gid[16];
};

/* An open device with a PD. */
struct bench_program;
/* Opens it for the program, or, with `peer`, for its peer. Sets step_ns[BENCH_DEVICE], [BENCH_PD]
 * (NULL is allowed). *out is the caller's. -ENODEV: there is no such device. */
int bench_program_open(const struct bench_choice *c, bool peer, uint64_t *step_ns,
                       struct bench_program **out, struct base_errbuf *err);
/* NULL is allowed. */
void bench_program_close(struct bench_program *p);
/* Borrowed until closed. */
const char *bench_program_device(const struct bench_program *p);
const uint8_t *bench_program_gid(const struct bench_program *p);

/* Everything from the CQ to the first READ, whose bytes are looked at, with the peer that listens
 * on this TCP port of 127.0.0.1; sets the other steps' times, and the peer's GID. Gives back all
 * that it made, untimed. */
int bench_program_connect(struct bench_program *p, uint16_t port, uint64_t step_ns[BENCH_STEPS],
                          uint8_t peer_gid[16], struct base_errbuf *err);
/* The peer: serves one program after the other, which connect to listen_fd, and writes a line to
 * told_fd each time that it is prepared for the next. Returns only with a failure. */
int bench_program_serve(struct bench_program *p, int listen_fd, int told_fd,
                        struct base_errbuf *err);

#endif
