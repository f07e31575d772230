/* SPDX-License-Identifier: Apache-2.0 */
/* VQPs whose head waits, other than at a window (window.c) or for room in a queue pair (room.c).
 *
 * Who waits for what others have too (a place to READ into, a connection) stands in the lane's one
 * list, which is looked at as a whole when some of that comes back. Who waits for its
 * own endpoint alone (its record, a path, a region's record, that it answers, its own completions)
 * is parked at the flow: thousands that wait for the silent cost nobody else anything. Only news of
 * that endpoint lets them go on, and whatever is news says so with flow_news(); that some are tried
 * now and then all the same is for what time alone changes, as when an endpoint becomes suspect.
 *
 * Invariant: a VQP with a queue is in one of these lists, or waits at a window or for room. */
#include "base/assert.h"
#include "internal.h"

enum {
    RETRY_NS = 100000,
    WAITING_NS = 1000000, /* a lane that sleeps looks as often as that */
    PARKED_LOOKS = 16,    /* at the most, each time that some are tried anyway */
    PARKED_LOOK_NS = 1000 /* each of them puts the next time off by that */
};

void blocked_init(struct lane *l)
{
    vqp_list_init(&l->blocked);
    vqp_list_init(&l->served);
    TAILQ_INIT(&l->news);
    TAILQ_INIT(&l->parking);
    TAILQ_INIT(&l->crowd);
}

/* ---- in and out
 * ------------------------------------------------------------------------------------------ */

static void join_list(struct lane *l, struct vqp_list *list, struct vqp *q)
{
    BASE_ASSERT(q->waits == NULL && q->window == NULL && q->room == NULL);
    TAILQ_INSERT_TAIL(&list->vqps, q, waiting);
    list->count++;
    l->waiting++;
    q->waits = list;
    flow_hold(q);
}

static bool is_parked(const struct vqp *q)
{
    return q->flow != NULL && q->waits == &q->flow->parked;
}

void vqp_unblock(struct lane *l, struct vqp *q)
{
    if (q->waits == NULL)
        return;
    TAILQ_REMOVE(&q->waits->vqps, q, waiting);
    q->waits->count--;
    l->waiting--;
    flow_release(q);
    if (is_parked(q) && q->waits->count == 0)
        TAILQ_REMOVE(&l->parking, q->flow, by_parked);
    q->waits = NULL;
}

void vqp_block(struct lane *l, struct vqp *q)
{
    windows_desert(l, q);
    join_list(l, &l->blocked, q);
}

void vqp_park(struct lane *l, struct vqp *q)
{
    struct flow *f = q->flow;
    windows_desert(l, q);
    vqp_unblock(l, q);
    if (f->parked.count == 0)
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    join_list(l, &f->parked, q);
}

void vqp_wake(struct lane *l, struct vqp *q)
{
    vqp_park(l, q);
    flow_news(l, q->flow);
}

void flow_news(struct lane *l, struct flow *f)
{
    if (f->news || f->parked.count == 0)
        return;
    f->news = 1;
    TAILQ_INSERT_TAIL(&l->news, f, by_news);
    l->news_count++;
}

static void take_news(struct lane *l, struct flow *f)
{
    if (!f->news)
        return;
    f->news = 0;
    TAILQ_REMOVE(&l->news, f, by_news);
    l->news_count--;
}

void flow_forget_parked(struct lane *l, struct flow *f)
{
    BASE_ASSERT(f->parked.count == 0);
    take_news(l, f);
}

/* ---- looking
 * -------------------------------------------------------------------------------------------- */

static void look_at(struct lane *l, struct vqp *q)
{
    BASE_ASSERT(q->session->state == SESSION_LIVE);
    vqp_unblock(l, q);
    COUNT(l, retried, 1);
    vqp_go_on(l, q);
}

/* Who has had something waits behind those who have not. */
static void look_at_blocked(struct lane *l)
{
    struct vqp *q;
    l->changed = l->starved = l->wanting = 0;
    l->retry_ns = l->now_ns + RETRY_NS;
    for (uint32_t n = l->blocked.count; n > 0 && l->blocked.count > 0; n--) {
        uint32_t did = l->did;
        q = TAILQ_FIRST(&l->blocked.vqps);
        look_at(l, q);
        if (l->did == did || q->waits != &l->blocked)
            continue;
        vqp_unblock(l, q);
        join_list(l, &l->served, q);
    }
    while ((q = TAILQ_FIRST(&l->served.vqps)) != NULL) {
        vqp_unblock(l, q);
        join_list(l, &l->blocked, q);
    }
}

/* What comes while others are looked at waits for the next round: so each has an end. */
static void look_at_news(struct lane *l)
{
    for (uint32_t flows = l->news_count; flows > 0 && l->news_count > 0; flows--) {
        struct flow *f = TAILQ_FIRST(&l->news);
        take_news(l, f);
        for (uint32_t n = f->parked.count; n > 0 && f->parked.count > 0; n--)
            look_at(l, TAILQ_FIRST(&f->parked.vqps));
    }
}

/* One of each flow in turn. */
static void look_at_some(struct lane *l)
{
    const uint32_t parked = l->waiting - l->blocked.count;
    uint32_t n = 0;
    for (; n < parked && n < PARKED_LOOKS && !TAILQ_EMPTY(&l->parking); n++) {
        struct flow *f = TAILQ_FIRST(&l->parking);
        look_at(l, TAILQ_FIRST(&f->parked.vqps));
        if (TAILQ_FIRST(&l->parking) != f)
            continue;
        TAILQ_REMOVE(&l->parking, f, by_parked);
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    }
    l->park_ns = l->now_ns + RETRY_NS + (uint64_t)n * PARKED_LOOK_NS;
}

void vqps_retry(struct lane *l)
{
    /* News first: a path that has come is used before somebody else takes it for himself. */
    if (l->news_count > 0)
        look_at_news(l);
    if (l->blocked.count > 0 && (l->changed || l->now_ns >= l->retry_ns))
        look_at_blocked(l);
    if (l->now_ns >= l->park_ns)
        look_at_some(l);
}

uint64_t vqps_due(const struct lane *l)
{
    if (l->waiting == 0 && TAILQ_EMPTY(&l->crowd))
        return LANE_NEVER;
    if (l->news_count > 0 || (l->changed && l->blocked.count > 0))
        return l->now_ns;
    return l->now_ns + WAITING_NS;
}
