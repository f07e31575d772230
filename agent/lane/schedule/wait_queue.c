/* SPDX-License-Identifier: Apache-2.0 */
/* VQPs whose head waits, other than at a window (window.c) or for room in a queue pair (room.c).
 *
 * Who waits for what others have too (a place to READ into, a connection) stands in the lane's one
 * list, which is looked at as a whole when some of that comes back. Who waits for its
 * own endpoint alone (its record, a path, a region's record, that it answers, its own completions)
 * is parked at the flow: thousands that wait for the silent cost nobody else anything. Only news of
 * that endpoint lets them go on, and whatever is news says so with flow_notify(); that some are
 * tried now and then all the same is for what time alone changes, as when an endpoint becomes
 * suspect.
 *
 * Thousands may wait, of one tenant too, and others' requests stand still while they are looked at:
 * a pass looks at some, and the next one goes on where it ended.
 *
 * Invariant: a VQP with a queue is in one of these lists, or waits at a window or for room. Of a
 * round no more is left than are blocked: those who leave by other ways leave it too. */
#include "base/assert.h"
#include "internal.h"

enum {
    RETRY_NS = 100000,
    WAITING_NS = 1000000,  /* a lane that sleeps looks as often as that */
    PARKED_LOOKS = 16,     /* at the most, each time that some are tried anyway */
    PARKED_LOOK_NS = 1000, /* each of them puts the next time off by that */
    LOOKS = 128            /* in a pass at those of whom there is news, and at the blocked */
};

void wait_queue_init(struct lane *l)
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
    if (l->round_left > l->blocked.count)
        l->round_left = l->blocked.count;
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

void vqp_wait(struct lane *l, struct vqp *q)
{
    struct flow *f = q->flow;
    f->felt |= f->broken_by != q->session->tenant_slot + 1;
    windows_desert(l, q);
    vqp_unblock(l, q);
    if (f->parked.count == 0)
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    join_list(l, &f->parked, q);
}

void vqp_wake(struct lane *l, struct vqp *q)
{
    vqp_wait(l, q);
    flow_notify(l, q->flow);
}

void flow_notify(struct lane *l, struct flow *f)
{
    f->news_again = 1;
    if (f->news != NEWS_NONE || f->parked.count == 0)
        return;
    f->news = NEWS_COMES;
    TAILQ_INSERT_TAIL(&l->news, f, by_news);
    l->news_count++;
}

static void take_news(struct lane *l, struct flow *f)
{
    if (f->news == NEWS_NONE)
        return;
    f->news = NEWS_NONE;
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

/* Some are still to be looked at, or those of them who have had something to be put back. */
static bool is_in_round(const struct lane *l)
{
    return l->round_left > 0 || l->served.count > 0;
}

/* Who has had something waits behind those who have not, to the end of the round. */
static void look_at_blocked(struct lane *l)
{
    struct vqp *q;
    if (!is_in_round(l)) {
        l->changed = l->starved = l->wanting = 0;
        l->retry_ns = l->now_ns + RETRY_NS;
        l->round_left = l->blocked.count;
    }
    for (uint32_t n = LOOKS; n > 0 && l->round_left > 0; n--) {
        uint32_t did = l->did;
        q = TAILQ_FIRST(&l->blocked.vqps);
        l->round_left--;
        look_at(l, q);
        if (l->did == did || q->waits != &l->blocked)
            continue;
        vqp_unblock(l, q);
        join_list(l, &l->served, q);
    }
    if (l->round_left > 0)
        return;
    while ((q = TAILQ_FIRST(&l->served.vqps)) != NULL) {
        vqp_unblock(l, q);
        join_list(l, &l->blocked, q);
    }
}

/* False: more are parked at f than may be looked at in this pass. */
static bool look_at_parked(struct lane *l, struct flow *f, uint32_t *looks)
{
    if (f->news == NEWS_COMES) {
        f->news = NEWS_BEGUN;
        f->news_left = f->parked.count;
        f->news_again = 0;
    }
    for (; *looks > 0 && f->news_left > 0 && f->parked.count > 0; --*looks) {
        f->news_left--;
        look_at(l, TAILQ_FIRST(&f->parked.vqps));
    }
    return f->news_left == 0 || f->parked.count == 0;
}

/* What comes while others are looked at waits for the next round: so each has an end. A flow where
 * more are parked than there is time for goes on behind the others. */
static void look_at_news(struct lane *l)
{
    uint32_t looks = LOOKS;
    for (uint32_t flows = l->news_count; flows > 0 && l->news_count > 0 && looks > 0; flows--) {
        struct flow *f = TAILQ_FIRST(&l->news);
        const bool all = look_at_parked(l, f, &looks);
        if (f->news != NEWS_BEGUN) /* it went to another endpoint meanwhile */
            continue;
        if (!all) {
            TAILQ_REMOVE(&l->news, f, by_news);
            TAILQ_INSERT_TAIL(&l->news, f, by_news);
            continue;
        }
        take_news(l, f);
        if (f->news_again)
            flow_notify(l, f);
    }
}

/* One of each flow in turn. */
static void look_at_some(struct lane *l)
{
    const uint32_t parked = l->waiting - l->blocked.count - l->served.count;
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
    if (is_in_round(l) || (l->blocked.count > 0 && (l->changed || l->now_ns >= l->retry_ns)))
        look_at_blocked(l);
    if (l->now_ns >= l->park_ns)
        look_at_some(l);
}

uint64_t vqps_due(const struct lane *l)
{
    if (!STAILQ_EMPTY(&l->due_windows))
        return l->now_ns;
    if (l->waiting == 0 && TAILQ_EMPTY(&l->crowd))
        return LANE_NEVER;
    if (l->news_count > 0 || is_in_round(l) || (l->changed && l->blocked.count > 0))
        return l->now_ns;
    return l->now_ns + WAITING_NS;
}
