/* SPDX-License-Identifier: Apache-2.0 */
/* Physical queue pairs: chains of requests behind one doorbell, and what comes of them. Private to
 * agent/lane, and the lane thread's.
 *
 * What has ended is left in lane->returned, and flows whose connection broke in lane->lost_links:
 * the caller takes that before it does anything else (request/returns.h). */
#ifndef LANE_PHYSICAL_QP_H
#define LANE_PHYSICAL_QP_H

#include "lane_state.h"
#include "transmit/wr.h"

/* Something has been out for too long, and the device was told; the control side wants it anew. */
enum overdue { OVERDUE_NOT, OVERDUE_ENDED, OVERDUE_RENEWED };
enum broken { BROKEN_NOT, BROKEN, BROKEN_FAILING /* not all that is out is back yet */ };

/* A physical queue pair and what is posted on it, oldest first; wr_id of a post is (number << 32 |
 * index). With rc its place is used again for another queue pair; head and tail go on, so that a
 * late completion of the former is recognized. */
struct physical_qp {
    struct fab_qp *qp; /* NULL: the place is free */
    struct wr **ring;  /* sq_depth, a power of two */
    uint32_t head, tail;
    struct fab_wr *chain, *chain_tail; /* linked in this pass, not handed over yet */
    struct physical_qp *next_chained;
    struct flow *flow;       /* rc: whose connection it is; NULL: a metaserver's */
    uint8_t broken, chained; /* broken: enum broken */
    uint8_t overdue;         /* enum overdue: its end was asked for, nothing more is posted */
    uint8_t refusals : 7;    /* of a first request for want of room, with nothing else out */
    uint8_t connected : 1;   /* an RC connection; else a DC initiator */
    union {
        uint32_t failing_us; /* BROKEN_FAILING: since when */
        uint32_t joined_us;  /* while it works: when some came to it from another one last */
    };
    uint64_t bytes;      /* posted, and out */
    uint64_t posted;     /* in its present life: bytes, and LANE_POST_BYTES for each request */
    uint64_t pass_bytes; /* a worker's request goes up to here without another look */
    uint32_t pass_ops;   /* likewise; 0: while somebody waits for room, the depth was set, or
                            some came from another one (room.c) */
    uint16_t tenants;    /* that wait */
    uint16_t alone;      /* so many more are posted one at a time (physical_qp.c, "nameless") */
    uint64_t shared_until_ns;          /* two waited not long ago: until then, and until so much */
    uint32_t shared_until;             /* was posted */
    uint32_t depth;                    /* that may be out: sq_depth, and less while `alone` */
    TAILQ_ENTRY(physical_qp) by_crowd; /* in the lane's list while somebody waits */
};
static_assert(sizeof(struct physical_qp) == 128, "a shift to find it");

/* Of failing_us and joined_us. */
static inline uint32_t physical_qp_us(uint64_t ns)
{
    return (uint32_t)(ns / 1000);
}

/* So many may be out from now on. What goes next looks at what room there is (schedule/room.c). */
static inline void physical_qp_set_depth(struct physical_qp *p, uint32_t depth)
{
    p->depth = depth;
    p->pass_ops = 0;
}

/* Some go by it now whose WRITEs by another one may not be seen yet: for a while each request is
 * looked at closely (schedule/unseen_writes.h). */
static inline void physical_qp_join(const struct lane *l, struct physical_qp *p)
{
    if (p->broken)
        return;
    p->joined_us = physical_qp_us(l->now_ns);
    p->pass_ops = 0;
}

static inline struct wr **ring_at(const struct lane *l, const struct physical_qp *p, uint32_t index)
{
    return &p->ring[index & (l->config.sq_depth - 1)];
}

/* So often it is seen what is still out on one that broke, until it is given up after bound_ns. */
static inline uint64_t physical_qp_await_ns(const struct lane *l)
{
    return l->config.bound_ns / 8;
}

/* The index of the first request of what is chained. Requests that were merged stand in the ring
 * one behind the other, as they would apart; what the device has of them names the last one's. */
static inline uint32_t physical_qp_first_of(const struct fab_wr *chained)
{
    return (uint32_t)chained->wr_id - ((const struct wr *)(const void *)chained)->behind;
}

static inline struct wr *physical_qp_take_oldest(const struct lane *l, struct physical_qp *p)
{
    struct wr *w = *ring_at(l, p, p->head++);
    p->bytes -= w->length;
    return w;
}

/* Whether more may be posted on it: it is in order, and its end was not asked for. */
static inline bool physical_qp_works(const struct physical_qp *p)
{
    return !p->broken && !p->overdue;
}

/* Whether what is out on it ends without a completion, since the device took but the first part of
 * a list: the last of that part is not signalled, and nothing is chained behind it. */
bool lane_physical_qp_is_silent(const struct lane *l, const struct physical_qp *p);
static inline bool lane_physical_qp_has_room(const struct physical_qp *p)
{
    return p != NULL && physical_qp_works(p) && p->tail - p->head < p->depth;
}
void lane_physical_qp_chain(struct lane *l, struct physical_qp *p, struct wr *w);
void lane_physical_qp_ring(struct lane *l);
/* A completion that stands for itself alone, or tells of an error. */
void lane_physical_qp_complete(struct lane *l, struct physical_qp *p, uint32_t index,
                               enum ibv_wc_status status);
/* Nothing is out on it any more, and something about it is not as usual. */
void lane_physical_qp_emptied(struct lane *l, struct physical_qp *p);
/* rc: a place for a connected queue pair; there is one for each that may be. */
struct physical_qp *lane_physical_qp_open(struct lane *l, struct fab_qp *qp, struct flow *f);
/* rc: the place is free; the caller says what becomes of the queue pair. Nothing is out on it. */
void lane_physical_qp_close(struct lane *l, struct physical_qp *p);
/* It takes no more, and what is out on it comes back from the device; not for ever
 * (inflight_timeout.c). */
void lane_physical_qp_await(struct lane *l, struct physical_qp *p);
/* Likewise of one that was awaited already: for another bound_ns. */
void lane_physical_qp_await_longer(struct lane *l, struct physical_qp *p);
/* The control side gets it back. What the device still has of it, if there is anything, ends or
 * goes elsewhere, although the device may carry it out yet. */
void lane_physical_qp_abandon(struct lane *l, struct physical_qp *p);
/* The device says that this queue pair is in ERR: not waited for until somebody posts. What is out
 * on it comes back first. */
void lane_physical_qp_fatal(struct lane *l, const struct fab_qp *qp);
/* Nothing more is posted on it; the control side gets it when nothing is out. */
void lane_physical_qp_rebuild(struct lane *l, const struct fab_qp *qp);

/* ---- chaining: what nearly all requests go through is to cost no call */

/* Whether w goes on where the last one that is chained ends. */
static inline bool physical_qp_goes_on(const struct lane *l, const struct physical_qp *p,
                                       const struct wr *w)
{
    const struct wr *last = *ring_at(l, p, p->tail - 1);
    return last->fab.remote_addr + last->length == w->fab.remote_addr;
}

/* Whether w, posted now, would be no work request of its own. */
static inline bool physical_qp_takes_along(const struct lane *l, const struct physical_qp *p,
                                           const struct wr *w)
{
    return p->chain != NULL && physical_qp_goes_on(l, p, w) && lane_merge_takes(l, p, w);
}

static inline void physical_qp_name(const struct lane *l, const struct physical_qp *p, struct wr *w)
{
    w->fab.wr_id = (uint64_t)(p - l->phys) << 32 | p->tail;
    w->fab.next = NULL;
}

/* The first of a chain. */
static inline void physical_qp_begin_chain(struct lane *l, struct physical_qp *p, struct wr *w)
{
    physical_qp_name(l, p, w);
    p->chain = p->chain_tail = &w->fab;
    if (p->chained)
        return;
    p->chained = 1;
    p->next_chained = l->chained;
    l->chained = p;
}

/* Another one, with a work request of its own. */
static inline void physical_qp_link(const struct lane *l, struct physical_qp *p, struct wr *w)
{
    physical_qp_name(l, p, w);
    p->chain_tail->next = &w->fab;
    p->chain_tail = &w->fab;
}

#endif
