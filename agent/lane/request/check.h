/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a descriptor: what a worker wrote, copied, becomes a request that every device
 * takes, or a reason. Pure: it reads nothing that is shared, and keeps nothing. */
#ifndef LANE_CHECK_H
#define LANE_CHECK_H

#include <stdint.h>

#include "schema/session.h"
#include "transmit/operation.h"

struct session;
struct wr;

/* Fills *out from a descriptor of that operation and its extra slots (copies), or says what is
 * wrong: enum schema_reason. out->op is set in any case. */
uint32_t lane_check_post(const struct session *s, const struct operation *op,
                         const struct schema_sq_desc *d, const void *extra, struct wr *out);
/* How many slots the descriptor of that operation must take, or 0: malformed. */
uint32_t lane_check_slots(const struct operation *op, const struct schema_sq_desc *d);

/* The same. Most are posts that have nothing behind them. */
static inline uint32_t check_slots(const struct operation *op, const struct schema_sq_desc *d)
{
    if (op->kind == OPERATION_POST && !(d->flags & SCHEMA_OP_INLINE) && d->num_sge <= 1)
        return d->slots == 1;
    return lane_check_slots(op, d);
}

/* The same of a SEND, whose pieces are from out->sge[1] on, with one more, the header's, in
 * num_sge; and of a RECV, whose pieces are left as the worker names them: an arena's number for an
 * lkey, and an offset there. 0 or a reason. */
uint32_t lane_check_message(const struct session *s, const struct schema_sq_desc *d,
                            const void *extra, struct wr *out);

#endif
