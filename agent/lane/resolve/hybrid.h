/* SPDX-License-Identifier: Apache-2.0 */
/* A pool with both: DC leads to every endpoint that has it, and connections beside it to those that
 * most goes to. Private to agent/lane, and the lane thread's.
 *
 * A connection beside DC is a flow of its own, the *second* of its endpoint's *twins*; the first
 * has the window, and is held while there is a second. The peer's slot names the one that is used
 * now. So what is posted finds it where it finds any flow, and a VQP goes from one to the other as
 * from any flow to another: when nothing of it is out, which keeps its order (schedule/vqp.c). No
 * request pays for it.
 *
 * Which endpoints get one is seen in samples, once a millisecond, of what is out
 * (link_choice.h). */
#ifndef LANE_HYBRID_H
#define LANE_HYBRID_H

#include <stdbool.h>
#include <stdint.h>

struct flow;
struct lane;

/* With config.hybrid. */
int lane_hybrid_new(struct lane *l);
void lane_hybrid_free(struct lane *l);
/* Once a millisecond: takes samples; has connections made, and gives up others. */
void lane_hybrid_look(struct lane *l);

/* One is made beside first for that tenant, if it can be now, and is free to be had. */
void lane_hybrid_begin(struct lane *l, struct flow *first, uint32_t tenant_slot);
/* The second has its connection: from now on it is used. */
void lane_hybrid_linked(struct lane *l, struct flow *second);
/* It is used no more, and goes when nothing is out on it. failed: another one is not made for a
 * while. */
void lane_hybrid_leave(struct lane *l, struct flow *second, bool failed);
/* Its connection is gone. With others beside it, it goes on, and has another one made when a VQP
 * wants that: a peer ends those that nothing comes by, and that may be the second alone. */
void lane_hybrid_lost(struct lane *l, struct flow *second);
/* A flow goes, whichever: it is idle. */
void lane_hybrid_dropped(struct lane *l, struct flow *f);

#endif
