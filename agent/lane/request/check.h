/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a descriptor: what a worker wrote, copied, becomes a request that every device
 * takes, or a reason. Pure: it reads nothing that is shared, and keeps nothing. */
#ifndef LANE_CHECK_H
#define LANE_CHECK_H

#include <stdint.h>

#include "schema/session.h"

struct operation;
struct session;
struct wr;

/* Fills *out from a descriptor of that operation and its extra slots (copies), or says what is
 * wrong: enum schema_reason. out->op is set in any case. */
uint32_t lane_check_post(const struct session *s, const struct operation *op,
                         const struct schema_sq_desc *d, const void *extra, struct wr *out);
/* How many slots the descriptor of that operation must take, or 0: malformed. */
uint32_t lane_check_slots(const struct operation *op, const struct schema_sq_desc *d);

#endif
