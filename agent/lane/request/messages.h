/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks for messages: SEND, RECV, and whom they are for (docs/messages.md). Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_REQUEST_MESSAGES_H
#define LANE_REQUEST_MESSAGES_H

#include "lane_state.h"

struct operation;

void lane_send_take(struct lane *l, struct session *s, const struct operation *op,
                    const struct schema_sq_desc *d, const void *extra);
void lane_receive_take(struct lane *l, struct session *s, const struct operation *op,
                       const struct schema_sq_desc *d, const void *extra);
/* The messages of the VQP of a RECV; it need not be connected. NULL: it is another one, or there is
 * no room. */
struct vqp_messages *lane_receive_messages(struct lane *l, struct session *s,
                                           const struct schema_sq_desc *d);
/* SEND_TO; nothing of the VQP is out or waits. */
void lane_send_address(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* Of a VQP. 0 or -errno. */
int lane_port_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d);
/* PORT_GRANT and PORT_REVOKE: 0 or -errno; and whether there is something that the latter ends. */
int lane_port_guest_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d);
bool lane_port_has_guest(const struct lane *l, const struct session *s,
                         const struct schema_sq_desc *d);
/* Before a VQP is destroyed. */
void lane_receives_flush(struct lane *l, struct vqp *q);

#endif
