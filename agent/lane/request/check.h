/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a descriptor: what a worker wrote, copied, becomes a request that every device
 * takes, or a reason. Pure: it reads nothing that is shared, and keeps nothing. */
#ifndef LANE_CHECK_H
#define LANE_CHECK_H

#include <assert.h>
#include <stdint.h>

#include "schema/session.h"

struct operation;
struct session;
struct wr;

/* What a worker's request needs beside being posted. */
enum special {
    SPECIAL_EMPTY = 1 << 0, /* no byte is to be moved: it never reaches a queue pair */
    SPECIAL_COPY = 1 << 1, /* inline, and more than the device takes: copied to the lane's memory */
    SPECIAL_FENCE = SCHEMA_OP_FENCE,
    SPECIAL_SUSPECT = 1 << 4, /* out at an error of which nobody knows whose it was */
    SPECIAL_DOUBT = 1 << 5,   /* that was a refusal: its region's record is not to be believed */
    SPECIAL_ALIGNED = 1 << 3, /* to an address that the device can do it at */
};
static_assert(SPECIAL_FENCE == 1 << 2, "a bit of its own");

/* Fills *out from a descriptor of that operation and its extra slots (copies), or says what is
 * wrong: enum schema_reason. out->op is set in any case. */
uint32_t check_post(const struct session *s, const struct operation *op,
                    const struct schema_sq_desc *d, const void *extra, struct wr *out);
/* How many slots the descriptor of that operation must take, or 0: malformed. */
uint32_t check_slots(const struct operation *op, const struct schema_sq_desc *d);

#endif
