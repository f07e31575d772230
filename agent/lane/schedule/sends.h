/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs of a VQP: in its queue, out, and kept until they are acknowledged (docs/messages.md). What
 * the fabric loses, repeats and reorders its stream does not. Private to agent/lane, and the lane
 * thread's.
 *
 * Others go behind SENDs that are not acknowledged where each of these is sure of a receive, so
 * that they are carried out when a queue pair of their own would, and are over when those before
 * them are.
 *
 * Invariant: a VQP's requests are kept, out, or in its queue, and in its order if one reads these
 * one behind the other; what is kept begins with a SEND. None goes without a credit. */
#ifndef LANE_SENDS_H
#define LANE_SENDS_H

#include "lane_state.h"
#include "message_state.h"
#include "schedule/vqp.h"

enum { MESSAGES_AWAY_NS = 10000000 /* a lane that runs looks more often than that */ };
/* The time by which patience with peers is measured: while the lane itself stood still little of it
 * went by, so that what has come meanwhile is heard first; and none while it can hear nobody, since
 * its own queue pair is to be repaired. It never goes back. */
static inline uint64_t messages_clock(const struct lane *l)
{
    struct messages *m = l->messages;
    const uint64_t since_ns = l->now_ns - m->looked_ns;
    if (since_ns == 0)
        return l->now_ns - m->away_ns;
    const uint64_t counts_ns = m->ud_state != UD_WORKS ? 0 : MESSAGES_AWAY_NS;
    if (m->looked_ns != 0 && since_ns > counts_ns)
        m->away_ns += since_ns - counts_ns;
    m->looked_ns = l->now_ns;
    return l->now_ns - m->away_ns;
}

/* It waits for a word. */
static inline void messages_join_actives(struct lane *l, struct vqp_messages *t)
{
    if (!t->active)
        TAILQ_INSERT_TAIL(&l->messages->actives, t, by_active);
    t->active = 1;
}

/* q's; made if it has none. NULL: there is no room, or no messages. */
struct vqp_messages *lane_messages_of(struct lane *l, struct vqp *q);
/* Its VQP goes: what it kept goes to its session's list of what is to be flushed. Its receives have
 * gone there already. */
void lane_sends_end(struct lane *l, struct vqp *q);
/* Its VQP hears no port any more, and whom it let in there nobody does. */
void lane_sends_unbind(struct lane *l, struct vqp_messages *t);
/* Whom q's SENDs go to from now on. Nothing of it is out, kept or queued. False: no room. */
bool lane_sends_address(struct lane *l, struct vqp *q, const struct schema_sq_desc *d);
/* Nobody, from now on: likewise. */
void lane_sends_forget_address(struct lane *l, struct vqp *q);

/* Whether w, the head of q's queue, a SEND, may go now: with its header, and a credit left for it.
 * NOTHING, and *over: it is acknowledged already. 0 or *reason: it is refused. */
enum vqp_wait lane_sends_may_post(struct lane *l, struct vqp *q, struct wr *w, bool *over,
                                  uint32_t *reason);
/* It goes: takes the credit. */
void lane_sends_post(struct lane *l, struct vqp *q, struct wr *w);
/* w is not out any more, and its header's place is free. broke: its queue pair did, so that it may
 * be under way yet. It was the VQP's: whether that is still there. */
bool lane_sends_back(struct lane *l, struct wr *w, bool broke);
/* It ended well, and is kept until it is acknowledged. */
void lane_sends_keep(struct lane *l, struct wr *w);
/* w, of t's VQP, has failed: the next one that went before it and is kept, which is so no more.
 * NULL: none is left, but for large ones, which may be READ yet. */
struct wr *lane_sends_take_before(struct vqp_messages *t, const struct wr *w);
/* Nothing came of it, and it is in its VQP's queue again: it is the next one to go. */
void lane_sends_lost(struct lane *l, struct wr *w);
/* Those that are kept come before the queue again, as soon as none is out. */
void lane_sends_rewind(struct lane *l, struct vqp_messages *t);
/* Whether w, which is none, may go although SENDs before it are not acknowledged, or what went
 * behind such is out. It is in no window else. */
bool lane_sends_let_by(struct lane *l, struct vqp *q, struct wr *w);
/* One that went so is not out any more. NULL: its VQP has gone meanwhile, or has no messages. */
struct vqp_messages *lane_sends_by_is_back(struct wr *w);
/* It, or a SEND behind one that is held so, has ended with that status, which it says when what is
 * kept before it is over. */
void lane_sends_hold(struct lane *l, struct vqp_messages *t, struct wr *w,
                     enum ibv_wc_status status);
/* Something of t's VQP is back, and is not kept. */
void lane_sends_go_on(struct lane *l, struct vqp_messages *t);
/* Its VQP is in error: nothing more is asked for. */
void lane_sends_stop(struct lane *l, struct vqp_messages *t);
/* What its receiver says. */
void lane_sends_hear(struct lane *l, struct vqp_messages *t, const struct schema_note *n);
/* This endpoint is another one: a stream is of one life of both, and those that have begun end. */
void lane_sends_readdress(struct lane *l);
/* Some of those that wait for a word, now and then. */
void lane_sends_look(struct lane *l);

/* Of a SEND, in its remote_addr, which it has no other use for. */
enum {
    SEND_NUMBERED = 1 << 0,
    SEND_IMM = 1 << 1,
    SEND_INLINE = 1 << 2,
    SEND_OF_WRITE = 1 << 3,
    SEND_WRITTEN_SHIFT = 32 /* OF_WRITE: from here on that WRITE's bytes */
};

static inline struct vqp_messages *messages_of_wr(const struct wr *w)
{
    return (struct vqp_messages *)(uintptr_t)w->fab.compare_add;
}
/* A SEND that has a number, which is w->vkey. */
static inline bool wr_is_numbered(const struct wr *w)
{
    return (w->special & SPECIAL_SEND) && (w->remote_addr & SEND_NUMBERED);
}
/* One that is numbered has gone, once at least. */
static inline bool lane_sends_was_posted(const struct vqp_messages *t, const struct wr *w)
{
    return (int32_t)(w->vkey - t->sender.out.posted) < 0;
}

#endif
