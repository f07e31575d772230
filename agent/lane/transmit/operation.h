/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a worker's ring, one row each: all that the lane has to know of one, from the
 * check of its descriptor to what becomes of it when its queue pair breaks. Constant. */
#ifndef LANE_OPERATION_H
#define LANE_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "schema/op.h"

enum operation_kind {
    OPERATION_UNKNOWN,
    OPERATION_POST,    /* goes to the fabric; has a completion */
    OPERATION_BIND,    /* of a VQP; without an answer */
    OPERATION_DESTROY, /* likewise */
    OPERATION_CONTROL, /* answered by its tag */
    OPERATION_SEND,    /* as a post, but for what it needs of its peer */
    OPERATION_RECEIVE, /* has a completion, and goes nowhere */
    OPERATION_ADDRESS, /* of a VQP; without an answer */
    OPERATION_BATCH,   /* stands for many posts; has a completion */
    OPERATION_FILL,    /* of a batch; without an answer */
};

/* What a peer that refuses a post (a NAK) has carried out, and will, of those behind it on the same
 * RC connection (IBTA 9.5, table 79). */
enum operation_order {
    ORDER_OVERTAKEN,  /* any but READs, before the refusal: they may have been carried out */
    ORDER_HOLDS_BACK, /* nothing; but for WRITEs and SENDs, if the peer's device places these out
                       * of order (struct lane_config, writes_in_order) */
};

struct operation {
    uint8_t kind; /* enum operation_kind */
    /* -- of posts */
    uint8_t order;      /* enum operation_order */
    bool repeatable;    /* to carry it out twice is to carry it out once: whatever became of it, it
                         * may go again */
    bool can_inline;    /* its data can be in the ring */
    bool merges;        /* with the next of its kind, where that goes on at the next byte */
    uint8_t bytes;      /* of its one SGE, exactly; 0: any number, in any number of SGEs */
    uint8_t alignment;  /* of the remote address, in the region's name and on the device; a device
                         * that asks for one may also lack the operation (fab_caps.atomics) */
    uint16_t access;    /* enum schema_record_flag: what the peer's region must let it do. A post
                         * that names a region needs its rkey: 0 would be one that names none */
    uint8_t completion; /* enum ibv_wc_opcode */
    uint8_t begun;      /* enum vqp_begun: what its VQP is when it was the last */
    enum ibv_wr_opcode opcode;
    /* -- of those that are answered */
    bool has_name;    /* lookup.owner and lookup.length bytes of one follow the descriptor */
    bool has_grants;  /* import_many.count of them do */
    bool has_entries; /* batch.fill.count of them do */
};

enum { OPERATIONS = SCHEMA_OP_PORT_REVOKE + 1 /* the last of enum schema_op */ };

/* By enum schema_op. */
extern const struct operation lane_operations[OPERATIONS];

/* The row of a number that a worker wrote; its kind is UNKNOWN if it means nothing. */
static inline const struct operation *operation_of(uint8_t op)
{
    return &lane_operations[op < OPERATIONS ? op : 0];
}

#endif
