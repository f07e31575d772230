/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that a VQP has posted and sets aside for streams that it hears, so that their senders
 * let WRITEs and READs go behind messages that are not acknowledged (docs/messages.md#order).
 * Private to agent/lane, and the lane thread's. Pure: times are given.
 *
 * What is set aside for a stream are the numbers before `until`: each finds a receive for TERM
 * times a step at least from when that was said, and for one step more at the most, whatever
 * becomes of its sender; and from when one was refused since its worker had no room for what it
 * says of it, or dropped, as what stands behind that may be there.
 *
 * A sender that keeps as many as it may, and uses none, would keep others waiting again and again.
 * So when a message of another one finds no receive but such as are set aside, the VQP is *scarce*
 * of receives for a time: nothing more is set aside for anybody, and what is goes in its time.
 *
 * Invariant: for streams together no more is set aside than is posted, or is taken by a large
 * message of theirs that is READ. */
#ifndef LANE_SET_ASIDE_H
#define LANE_SET_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

enum { ASIDE_TERM = 3, ASIDE_STEPS = ASIDE_TERM + 1, ASIDE_MOST = 0xffff /* of one stream */ };
/* Steps for which a VQP is scarce of receives: several times as long as others may wait once. */
enum { ASIDE_SCARCE = 4 * ASIDE_STEPS };

/* Of a VQP that hears. */
struct hearer_asides {
    uint64_t id; /* of its VQP's, which is no other's; 0: nobody hears here */
    const uint32_t *posted;
    uint32_t step;
    uint32_t all;                /* of all streams, in all steps that count */
    uint32_t count[ASIDE_STEPS]; /* by the step in which it was last said */
    uint64_t step_ns;            /* when the present one began */
    uint32_t scarce_step;        /* in which somebody last found none, where is_scarce */
    bool is_scarce;
};

/* Of a stream. */
struct stream_aside {
    struct hearer_asides *by; /* who hears it, or did: with another id it is nobody's */
    uint64_t id;
    uint32_t until, step;
    bool was_kept; /* since that was said last */
};

/* How many it has of those from `next` on. */
uint32_t lane_aside_has(const struct stream_aside *a, uint32_t next);
/* It is heard by s from now on. What it had elsewhere is given back. */
void lane_aside_hear(struct stream_aside *a, struct hearer_asides *s, uint32_t next);
/* The number `next` has taken a receive; whether it was one of those or not. */
void lane_aside_took(struct stream_aside *a, uint32_t next);
/* It has none any more: nothing else of it is taken. */
void lane_aside_drop(struct stream_aside *a, uint32_t next);
/* As many as are right are set aside for it, and no fewer than before; or nothing is done. */
void lane_aside_extend(struct stream_aside *a, uint32_t next);
/* How many it has of those from `next` on that its sender may be told of now: of such as were set
 * aside in a former step it is not said again, as the sender counts from when it hears of them. */
uint32_t lane_aside_says(const struct stream_aside *a, uint32_t next);
/* What it has it keeps for as long again. */
void lane_aside_renew(struct stream_aside *a, uint32_t next);
/* Likewise, but once for what was said last: its sender can bring that about as often as he likes.
 */
void lane_aside_keep(struct stream_aside *a, uint32_t next);
/* A message of a stream that may have some has found none but what is set aside for others. */
void lane_set_aside_missed(struct hearer_asides *s);
/* What was said too long ago is void: a step takes step_ns. */
void lane_set_aside_go_on(struct hearer_asides *s, uint64_t now_ns, uint64_t step_ns);
/* Whether that stream's next message may take one of those that are posted. */
static inline bool lane_set_aside_lets(const struct hearer_asides *s, const struct stream_aside *a,
                                       uint32_t next)
{
    return *s->posted > s->all || (a->by == s && lane_aside_has(a, next) > 0);
}

#endif
