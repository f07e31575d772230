/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: WRITEs of a VQP that a message behind them ends (docs/messages.md#notifications). The
 * WRITEs have no completion, and how the first of them has failed says the message's. Private to
 * agent/lane, and the lane thread's.
 *
 * A VQP's requests end in order, so that one list is open there at a time: what has failed is kept
 * from then until its message ends, which is flushed, or until the VQP is connected anew. */
#ifndef LANE_LISTS_H
#define LANE_LISTS_H

#include "vqp_state.h"

/* w, of a list, has failed. False: it has no completion. Else its completion says the following,
 * which may be changed: a WRITE's opcode says that the message was not sent. */
bool lane_list_fail(struct vqp *q, const struct wr *w, enum ibv_wc_status *status, uint32_t *reason,
                    uint8_t *opcode);

#endif
