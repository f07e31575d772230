/* SPDX-License-Identifier: Apache-2.0 */
/* What open.c and program.c share. */
#ifndef BENCH_VERBS_PRIVATE_H
#define BENCH_VERBS_PRIVATE_H

#include <infiniband/verbs.h>

#include "base/clock.h"
#include "program.h"

struct bench_program {
    struct base_clock_fast clock;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_port_attr port_attr;
    uint8_t port, gid_index;
    uint8_t gid[16];
    void *buffer; /* BENCH_BUFFER_BYTES, touched */
};

#endif
