/* SPDX-License-Identifier: Apache-2.0 */
/* To which life of which endpoint a stream's messages go, and where that is heard. Private to
 * agent/lane, and the lane thread's. */
#ifndef LANE_SEND_RECEIVERS_H
#define LANE_SEND_RECEIVERS_H

#include <stdint.h>

#include "message/message_stream.h"
#include "schedule/wait.h"

struct lane;
struct vqp;
struct vqp_messages;

/* The life of the endpoint that q is bound to. WAIT_CREDIT: there is no room to know it now. What
 * another life has had of the stream nobody can tell, so that it ends: *reason. */
enum vqp_wait lane_send_find_receiver(struct lane *l, struct vqp *q, uint32_t *reason);
/* Who hears nothing may have had its peer's number before that changed: who is not known there is
 * not told, nor who has another number himself since. So it is looked up anew when half of its
 * patience is over, half of the rest, and once more. */
void lane_send_seek_receiver(struct lane *l, struct vqp_messages *t,
                             const struct stream_patience *patience);

#endif
