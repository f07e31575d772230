/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/rounds.h"

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "schedule/batch_pace.h"
#include "schedule/room.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "schedule/wait_queue.h"
#include "schedule/window.h"
#include "session_state.h"
#include "transmit/physical_qp.h"

enum {
    RETRY_NS = 100000,
    WAITING_NS = 1000000,  /* a lane that sleeps looks as often as that */
    PARKED_LOOKS = 16,     /* at the most, each time that some are tried anyway */
    PARKED_LOOK_NS = 1000, /* each of them puts the next time off by that */
    /* In a pass, at all VQPs that wait, in lists, for room, and at windows; the same where several
     * tenants are active, and where one of those is sparse. */
    LOOKS = 128,
    LOOKS_SHARED = 16,
    LOOKS_SPARSE = 8
};

/* ---- looks */

/* Kinds of waiting that come later in a pass than: */
enum { AFTER_WINDOWS, AFTER_ROOMS, AFTER_BLOCKED, AFTER_NEWS, PARTS };

static uint32_t most_looks(const struct lane *l)
{
    if (!lane_is_shared(l))
        return LOOKS;
    return l->has_sparse ? LOOKS_SPARSE : LOOKS_SHARED;
}

/* Each kind has a part of what a pass may let go, whatever those before it have had. */
static void begin_looks(struct lane *l)
{
    const uint64_t pass = atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
    const uint32_t most = l->lets_go, part = most > PARTS ? most / PARTS : 1;
    if (l->looks_pass != pass) {
        l->looks_pass = pass;
        l->looks_left = most_looks(l);
        l->went = 0;
        l->went_most = most;
    }
    if (l->went_most < l->went + part)
        l->went_most = l->went + part;
}

/* A part is kept for each that comes later. */
static bool has_looks(const struct lane *l, uint32_t later)
{
    return l->looks_left > most_looks(l) / PARTS * later;
}

/* ---- in lists */

static void look_at(struct lane *l, struct vqp *q)
{
    BASE_ASSERT(q->session->state != SESSION_NONE);
    lane_vqp_unblock(l, q);
    COUNT(l, retried, 1);
    l->looks_left--;
    lane_vqp_go_on(l, q);
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
    begin_looks(l);
    while (has_looks(l, AFTER_BLOCKED) && l->round_left > 0) {
        uint32_t did = l->did;
        q = TAILQ_FIRST(&l->blocked.vqps);
        l->round_left--;
        look_at(l, q);
        if (l->did == did || vqp_wait_places[q->wait] != PLACE_LANE)
            continue;
        lane_wait_queue_serve(l, q);
    }
    if (l->round_left == 0)
        lane_wait_queue_end_round(l);
}

/* False: more are parked at f than may be looked at in this pass. */
static bool look_at_parked(struct lane *l, struct flow *f)
{
    if (f->news == NEWS_COMES) {
        f->news = NEWS_BEGUN;
        f->news_left = f->parked.count;
        f->news_again = 0;
    }
    while (has_looks(l, AFTER_NEWS) && f->news_left > 0 && f->parked.count > 0) {
        f->news_left--;
        look_at(l, TAILQ_FIRST(&f->parked.vqps));
    }
    return f->news_left == 0 || f->parked.count == 0;
}

/* What comes while others are looked at waits for the next round: so each has an end. A flow where
 * more are parked than there is time for goes on behind the others. */
static void look_at_news(struct lane *l)
{
    begin_looks(l);
    for (uint32_t flows = l->news_count; flows > 0 && l->news_count > 0 && has_looks(l, AFTER_NEWS);
         flows--) {
        struct flow *f = TAILQ_FIRST(&l->news);
        l->looks_left -= f->parked.count == 0; /* whoever waited there has gone by another way */
        const bool all = look_at_parked(l, f);
        if (f->news != NEWS_BEGUN) /* it went to another endpoint meanwhile */
            continue;
        if (!all) {
            TAILQ_REMOVE(&l->news, f, by_news);
            TAILQ_INSERT_TAIL(&l->news, f, by_news);
            continue;
        }
        lane_flow_take_news(l, f);
        if (f->news_again)
            lane_flow_notify(l, f);
    }
}

/* One of each flow in turn. */
static void look_at_some(struct lane *l)
{
    const uint32_t parked = l->waiting - l->blocked.count - l->served.count - l->batching.count;
    uint32_t n = 0;
    begin_looks(l);
    for (;
         n < parked && n < PARKED_LOOKS && has_looks(l, AFTER_BLOCKED) && !TAILQ_EMPTY(&l->parking);
         n++) {
        struct flow *f = TAILQ_FIRST(&l->parking);
        look_at(l, TAILQ_FIRST(&f->parked.vqps));
        if (TAILQ_FIRST(&l->parking) != f)
            continue;
        TAILQ_REMOVE(&l->parking, f, by_parked);
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    }
    l->park_ns = l->now_ns + RETRY_NS + (uint64_t)n * PARKED_LOOK_NS;
}

void lane_rounds_retry(struct lane *l)
{
    if (l->rejoins)
        lane_quarantined_flows_rejoin(l);
    /* News first: a path that has come is used before somebody else takes it for himself. */
    if (l->news_count > 0)
        look_at_news(l);
    if (is_in_round(l) || (l->blocked.count > 0 && (l->changed || l->now_ns >= l->retry_ns)))
        look_at_blocked(l);
    if (l->now_ns >= l->park_ns)
        look_at_some(l);
}

/* ---- for room in a queue pair */

/* They look for another queue pair, some in each pass. */
static void scatter_room(struct lane *l, struct physical_qp *p)
{
    struct vqp *q;
    for (; has_looks(l, AFTER_ROOMS) && (q = lane_room_first(l, p)) != NULL; l->looks_left--)
        lane_vqp_wait_for(l, q, WAIT_PASS);
    l->changed = 1;
}

static bool may_serve_rooms(const struct lane *l)
{
    return has_looks(l, AFTER_ROOMS) && l->went < l->went_most;
}

/* While there is room: some may post elsewhere, or nothing. */
static void serve_room(struct lane *l, struct physical_qp *p)
{
    struct vqp *q;
    if (!physical_qp_works(p)) {
        scatter_room(l, p);
        return;
    }
    while (physical_qp_works(p) && (q = lane_room_first(l, p)) != NULL) {
        if (!may_serve_rooms(l)) {
            l->did++; /* so that the lane does not sleep while more may go on */
            return;
        }
        if (!lane_room_begin_turn(l, p, q))
            return;
        COUNT(l, retried, 1);
        l->looks_left--;
        lane_vqp_go_on(l, q);
        l->turn_vqp = NULL;
        l->turn_room = NULL;
    }
}

/* Each once. Those for which no look is left come first in the next pass. */
static void serve_rooms(struct lane *l)
{
    struct physical_qp *p;
    begin_looks(l);
    for (uint32_t n = l->crowded; n > 0 && (p = TAILQ_FIRST(&l->crowd)) != NULL; n--) {
        if (!may_serve_rooms(l)) {
            l->did++;
            return;
        }
        l->looks_left--; /* whether there is room or not */
        TAILQ_REMOVE(&l->crowd, p, by_crowd);
        TAILQ_INSERT_TAIL(&l->crowd, p, by_crowd);
        serve_room(l, p);
    }
}

/* ---- at windows */

/* False: no look is left for the next. */
static bool serve_window(struct lane *l, struct window *n)
{
    struct vqp *q;
    while ((q = lane_window_next(l, n)) != NULL) {
        if (!has_looks(l, AFTER_WINDOWS) || l->went >= l->went_most)
            return false;
        COUNT(l, retried, 1);
        l->looks_left--;
        lane_window_begin_turn(l, q);
        lane_vqp_go_on(l, q);
        l->turn_wr = NULL;
    }
    return true;
}

/* One where more may go on than there are looks for goes on behind the others. */
static void serve_windows(struct lane *l)
{
    struct window *n;
    begin_looks(l);
    while ((n = lane_windows_take_due(l)) != NULL) {
        if (!serve_window(l, n)) {
            lane_window_become_due(l, n);
            break;
        }
    }
    lane_windows_end_round(l);
}

/* ---- all */

void lane_rounds_serve(struct lane *l)
{
    if (!TAILQ_EMPTY(&l->crowd))
        serve_rooms(l);
    if (!STAILQ_EMPTY(&l->due_windows))
        serve_windows(l);
}

uint64_t lane_rounds_due(const struct lane *l)
{
    if (!STAILQ_EMPTY(&l->due_windows))
        return l->now_ns;
    if (l->waiting == 0 && TAILQ_EMPTY(&l->crowd))
        return LANE_NEVER;
    if (l->news_count > 0 || l->rejoins || is_in_round(l) || (l->changed && l->blocked.count > 0) ||
        batch_pace_goes_on(l))
        return l->now_ns;
    return l->now_ns + WAITING_NS;
}
