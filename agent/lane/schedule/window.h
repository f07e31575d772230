/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: how much may be in flight of the device, to each destination, of each tenant (RDMAbox's
 * admission control, for more than one tenant). A destination can have limits of its own beside
 * those of each; its window has the narrower of both.
 *
 * The lane thread's; others may read what is _Atomic. A worker's request enters its tenant's
 * window, then its destination's, then the device's, before it is posted, and leaves all three when
 * it is over, however it ended. What counts is bytes and work requests, which is what a device has
 * to do with: a request that becomes part of the work request that is chained last is no other one
 * (merge.h), and waits for no room of these. Where it may not enter, its VQP waits in that window's
 * queue, within those before, so that nothing is tried again that has not come nearer; VQPs that
 * wait for something else are in no window. The lane's own READs of tables are in none and never
 * wait: workers' requests wait for them.
 *
 * Of those that wait at a window tenants take turns by bytes, and of a tenant its VQPs. The order
 * within a VQP is kept: only its first request waits here, the others behind it.
 *
 * While no window at all has a limit nothing is counted, so that an operator who wants none pays a
 * branch; what is out when the first is set is counted then.
 *
 * Invariants: what is in flight never grows beyond the limit, but for a request larger than the
 * whole window, which goes alone (else it would wait for ever). Where somebody waits, something is
 * in flight, or the window is in the list of those to be looked at: in this pass as far as its
 * looks go, of which each costs others time, and in the next. */
#ifndef LANE_WINDOW_H
#define LANE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "schedule/wait.h"
#include "schedule/window_find.h"
#include "window_state.h"

/* What a request costs in turns beside its bytes: about what a device could transfer meanwhile. */
enum { WINDOW_REQUEST_COST = 256 };

STAILQ_HEAD(window_list, window);

/* The turns of one destination, or of one room, of which there are many more. */
struct window_queue {
    struct window *of; /* whose they are, or were last; NULL: nobody's yet */
    TAILQ_ENTRY(window_queue) by_idle;
};
TAILQ_HEAD(window_queue_list, window_queue);

/* 0: none. */
struct window_limit {
    uint64_t bytes, ops;
};

/* A destination's own limit, whether it is in use or not. */
struct own_window {
    uint64_t gid[2];
    struct window_limit limit;
};

static inline bool window_passes(const struct window *n, uint64_t length)
{
    return WINDOW_GET(n->bytes) + length <= n->pass_bytes && WINDOW_GET(n->ops) < n->pass_ops;
}

/* ops: work requests, of which one that is part of another's has none. */
static inline void window_count(struct window *n, uint64_t length, uint64_t ops)
{
    WINDOW_ADD(n->bytes, length);
    WINDOW_ADD(n->ops, ops);
}

static inline void window_uncount(struct window *n, uint64_t length, uint64_t ops)
{
    WINDOW_ADD(n->bytes, -length);
    WINDOW_ADD(n->ops, -ops);
}

static inline void window_note_done(struct window *n, uint64_t length, uint64_t ops)
{
    n->done_work += length + WINDOW_REQUEST_COST;
    n->done_ops += ops;
}

struct lane_command;
struct lane;
struct vqp;
struct wr;
struct flow;

/* -ENOMEM. */
int lane_windows_new(struct lane *l);
void lane_windows_free(struct lane *l);
/* A flow begins: the window of its endpoint. */
void lane_window_open(struct lane *l, struct flow *f, const uint8_t gid[16]);
/* LANE_COMMAND_WINDOW: also while more than that is in flight; then nothing goes until it is less.
 */
void lane_windows_set(struct lane *l, const struct lane_command *c);
/* So many requests beside what is set; 0: as many as that says. */
void lane_window_set_found(struct lane *l, struct window *n, uint32_t ops);
/* Sizes are found from now on, or not any more (window_find.c). */
void lane_windows_switch(struct lane *l);

/* Whether somebody waits at one of them already, so that q waits for its turn. */
bool lane_windows_are_full(const struct lane *l, const struct vqp *q);
/* w, the first request of q, enters the windows that it is not in yet. NOTHING: it is in all.
 * WINDOW: q waits for it there. Else what q is to wait for. That is windows_enter() and
 * windows_leave(), in window_pass.h, where nobody waits. */
enum vqp_wait lane_windows_enter_slowly(struct lane *l, struct vqp *q, struct wr *w);
/* Somebody waits somewhere, and w has left its windows. */
void lane_windows_left(struct lane *l, const struct wr *w);
/* The first request of q waits for something else now, or is over without having been posted: q
 * waits at no window, and that request is in none. */
void lane_windows_desert(struct lane *l, struct vqp *q);
/* A destination or a room has turns from when somebody waits there until another one needs them.
 * What tenants were served there before says nothing after that. False: there are none, since at
 * all that have them somebody waits. */
bool lane_window_has_queue(struct lane *l, struct window *n);
/* A VQP more waits there, or one less. */
void lane_window_waits(struct lane *l, struct window *n, int more);

/* A round (rounds.c). A window that is due is taken; it becomes so again if somebody is left whom
 * there was no time for. */
struct window *lane_windows_take_due(struct lane *l);
void lane_window_become_due(struct lane *l, struct window *n);
/* The least served tenant's least served VQP, if its request fits, or becomes part of the work
 * request that is chained last. What comes next may not overtake
 * one that is larger: that would wait for ever. Else NULL. */
struct vqp *lane_window_next(const struct lane *l, const struct window *n);
/* q, which waits at a window, does so no more, and may go on there: it is its turn until
 * lane->turn_wr is set to NULL. */
void lane_window_begin_turn(struct lane *l, struct vqp *q);
void lane_windows_end_round(struct lane *l);

#endif
