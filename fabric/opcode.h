/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of fabric.h, one row each: what the wrappers check of one, and what a provider that
 * is a device itself does with it. Constant; any thread. */
#ifndef FABRIC_OPCODE_H
#define FABRIC_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct fab_opcode {
    bool known;
    bool in_datagrams; /* UD has it (table 37) */
    bool can_inline;
    bool is_send;
    bool takes_receive; /* at the responder: SENDs, and whatever has immediate data */
    bool is_atomic;     /* answered with the value before it */
    uint8_t bytes;      /* of its one SGE, exactly, and what its remote address is a multiple of;
                         * 0: any number, anywhere */
    uint8_t access;     /* enum ibv_access_flags: what the peer must let it do; 0: nothing */
    uint8_t completion; /* enum ibv_wc_opcode */
};

enum { FAB_OPCODES = 7 };

/* By enum ibv_wr_opcode. */
extern const struct fab_opcode fab_opcodes[FAB_OPCODES];

/* The row of any number; one that is not `known` means nothing here. */
const struct fab_opcode *fab_opcode_find(enum ibv_wr_opcode opcode);

/* -- of requests that were found to be known */

static inline const struct fab_opcode *fab_opcode_row(enum ibv_wr_opcode opcode)
{
    return &fab_opcodes[opcode];
}
static inline bool fab_opcode_is_atomic(enum ibv_wr_opcode opcode)
{
    return fab_opcode_row(opcode)->is_atomic;
}
static inline bool fab_opcode_is_send(enum ibv_wr_opcode opcode)
{
    return fab_opcode_row(opcode)->is_send;
}
static inline bool fab_opcode_takes_receive(enum ibv_wr_opcode opcode)
{
    return fab_opcode_row(opcode)->takes_receive;
}
/* Whether what comes back is written to its SGEs. */
static inline bool fab_opcode_is_answered(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ || fab_opcode_is_atomic(opcode);
}
/* Whether it may be at that remote address. */
static inline bool fab_opcode_is_aligned(enum ibv_wr_opcode opcode, uint64_t remote_addr)
{
    const uint8_t bytes = fab_opcode_row(opcode)->bytes;
    return bytes == 0 || (remote_addr & (bytes - 1u)) == 0;
}

#endif
