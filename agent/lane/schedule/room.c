/* SPDX-License-Identifier: Apache-2.0 */
/* Room in a queue pair: tenants take turns for it by bytes, and of a tenant its VQPs, as at
 * windows, with no window set. One tenant alone fills the queue pair, and keeps its turn for a few
 * requests at a time.
 *
 * A queue pair is first in, first out: who has filled it is served first, however fair the turns
 * are behind it. So while two tenants wait for one, and a little longer, only a part of it is
 * filled: as much as keeps the device busy.
 *
 * It also bounds what is out by bytes, so that a healthy backlog is over long before it would be
 * ended as overdue.
 *
 * Invariant: a queue pair where somebody waits is in the lane's list, which each pass goes through.
 */
#include "schedule/room.h"

#include <stddef.h>

#include "base/assert.h"
#include "lane_state.h"
#include "schedule/fair_queue.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "schedule/window.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

#define OWNER(type, member, at) ((type *)(void *)((char *)(at)-offsetof(type, member)))

enum {
    ALONE_TURN = 8,   /* requests */
    SHORT = 8192,     /* bytes: of longer ones a doorbell is nothing, and 8 are not merged */
    FULL_PART = 8,    /* ALONE_TURN is this part of a queue pair, or less */
    SHARED_PART = 4,  /* of the queue pair's slots: one of so many */
    SHARED_OPS = 32,  /* the least that this part is */
    SHARED_DEPTHS = 8 /* in times its slots: with SHARED_MOST_NS */
};
static const uint64_t SHARED_NS = 20000000; /* after two waited there it is shared for so long */
/* And beyond that until as much was posted as SHARED_DEPTHS says, for so long at most. */
static const uint64_t SHARED_MOST_NS = 1000000000;
static const uint64_t SHARED_BYTES = 4 << 20; /* where the port's rate is not known */
static const uint64_t SHARED_LEAST = 1 << 18;

static struct window *room_of(const struct lane *l, const struct physical_qp *p)
{
    return &l->rooms[p - l->phys];
}

/* By the time, and for a while by the requests: the lane may get little of its processor. */
static bool is_shared(const struct lane *l, const struct physical_qp *p)
{
    return l->now_ns < p->shared_until_ns || (l->now_ns < p->shared_until_ns + SHARED_MOST_NS &&
                                              (int32_t)(p->shared_until - p->tail) > 0);
}

static uint32_t most_ops(const struct lane *l, const struct physical_qp *p)
{
    const uint32_t all = l->config.sq_depth;
    if (p->depth < all)
        return p->depth;
    const uint32_t part = all / SHARED_PART > SHARED_OPS ? all / SHARED_PART : SHARED_OPS;
    return part < all && is_shared(l, p) ? part : all;
}

/* Shared: what the port carries in a tenth of a millisecond. */
static uint64_t most_bytes(const struct lane *l, const struct physical_qp *p)
{
    uint64_t shared = l->config.port_rate == 0 ? SHARED_BYTES : l->config.port_rate / 10;
    shared = shared < SHARED_LEAST ? SHARED_LEAST : shared;
    return shared < l->most_bytes && is_shared(l, p) ? shared : l->most_bytes;
}

static bool fits_room(const struct lane *l, const struct physical_qp *p, uint64_t length)
{
    return p->tail - p->head < most_ops(l, p) &&
           (p->bytes == 0 || p->bytes + length <= most_bytes(l, p));
}

/* As long as what was acknowledged elsewhere may not be seen, and the part of a microsecond. */
static bool was_joined(const struct lane *l, const struct physical_qp *p)
{
    return physical_qp_us(l->now_ns) - p->joined_us <= SEEN_NS / 1000;
}

static void look_again(const struct lane *l, struct physical_qp *p)
{
    const bool wait = WINDOW_GET(room_of(l, p)->waiting) > 0 || was_joined(l, p);
    p->pass_ops = wait ? 0 : most_ops(l, p);
    p->pass_bytes = wait ? 0 : most_bytes(l, p);
}

void lane_rooms_init(struct lane *l)
{
    const uint32_t parts =
        (l->config.rc | l->config.hybrid ? l->config.max_links : 0) + l->res.dcis;
    l->most_bytes = l->config.most_bytes == 0 ? UINT64_MAX / 2 : l->config.most_bytes / parts;
    for (uint32_t i = 0; i < l->phys_room; i++)
        look_again(l, &l->phys[i]);
}

static void join_room(struct lane *l, struct physical_qp *p, struct vqp *q)
{
    struct window *room = room_of(l, p);
    struct tenant_turn *t = &room->tenant[q->session->tenant_slot];
    lane_vqp_wait_move(q, WAIT_ROOM);
    q->room = p;
    flow_hold(q);
    lane_fair_queue_join(&t->vqps, &q->turn);
    if (!t->turn.waits) {
        lane_fair_queue_join(&room->turns, &t->turn);
        p->tenants++;
    }
    if (p->tenants > 1) {
        p->shared_until_ns = l->now_ns + SHARED_NS;
        p->shared_until = p->tail + SHARED_DEPTHS * l->config.sq_depth;
    }
    if (WINDOW_GET(room->waiting) == 0) {
        TAILQ_INSERT_TAIL(&l->crowd, p, by_crowd);
        l->crowded++;
    }
    lane_window_waits(l, room, 1);
    look_again(l, p);
}

void lane_room_quit(struct lane *l, struct vqp *q)
{
    struct physical_qp *p = q->room;
    struct window *room = room_of(l, p);
    struct tenant_turn *t = &room->tenant[q->session->tenant_slot];
    lane_vqp_wait_move(q, WAIT_NOTHING);
    q->room = NULL;
    flow_release(q);
    lane_fair_queue_leave(&t->vqps, &q->turn);
    if (fair_queue_first(&t->vqps) == NULL) {
        lane_fair_queue_leave(&room->turns, &t->turn);
        p->tenants--;
    }
    lane_window_waits(l, room, -1);
    if (WINDOW_GET(room->waiting) == 0) {
        TAILQ_REMOVE(&l->crowd, p, by_crowd);
        l->crowded--;
    }
    look_again(l, p);
}

/* Of its tenant, whatever comes of it. */
static void charge_tenant(const struct lane *l, const struct physical_qp *p, const struct vqp *q,
                          uint64_t length)
{
    struct window *room = room_of(l, p);
    struct tenant_turn *t = &room->tenant[q->session->tenant_slot];
    lane_fair_queue_serve(&room->turns, &t->turn, length + WINDOW_REQUEST_COST);
}

void lane_room_charge(const struct lane *l, struct vqp *q, uint64_t length)
{
    const struct window *room = room_of(l, l->turn_room);
    if (WINDOW_GET(room->waiting) == 0)
        return; /* and its queue may be another's by now */
    struct tenant_turn *t = &room->tenant[q->session->tenant_slot];
    lane_fair_queue_serve(&t->vqps, &q->turn, length + WINDOW_REQUEST_COST);
}

enum vqp_wait lane_room_enter(struct lane *l, struct vqp *q, struct physical_qp *p,
                              const struct wr *w)
{
    if (p == NULL || !physical_qp_works(p))
        return WAIT_QP;
    const bool has_turn = l->turn_room == p && l->turn_vqp == q && l->turn_left > 0;
    if ((has_turn || WINDOW_GET(room_of(l, p)->waiting) == 0) && fits_room(l, p, w->length)) {
        look_again(l, p); /* its time of being shared may be over */
        if (has_turn) {
            l->turn_left--;
            charge_tenant(l, p, q, w->length);
        }
        return WAIT_NOTHING;
    }
    lane_windows_desert(l, q);
    q->wants = w->length;
    if (!lane_window_has_queue(l, room_of(l, p)))
        return WAIT_TURNS;
    join_room(l, p, q);
    return WAIT_ROOM;
}

struct vqp *lane_room_first(const struct lane *l, const struct physical_qp *p)
{
    const struct window *room = room_of(l, p);
    if (fair_queue_first(&room->turns) == NULL)
        return NULL;
    const struct tenant_turn *t = OWNER(struct tenant_turn, turn, fair_queue_first(&room->turns));
    return OWNER(struct vqp, turn, fair_queue_first(&t->vqps));
}

/* One tenant alone waits for a queue pair that has much out: what is short goes when there is room
 * for several, which then are one doorbell, and may be one work request. The device lacks nothing
 * meanwhile. */
static bool fills_later(const struct lane *l, const struct physical_qp *p, const struct vqp *q)
{
    return p->tenants == 1 && q->wants <= SHORT && most_ops(l, p) >= ALONE_TURN * FULL_PART &&
           p->tail - p->head > most_ops(l, p) - ALONE_TURN;
}

bool lane_room_begin_turn(struct lane *l, struct physical_qp *p, struct vqp *q)
{
    if (!fits_room(l, p, q->wants) || fills_later(l, p, q))
        return false;
    const uint32_t may_go = l->went_most - l->went;
    l->turn_left = p->tenants > 1 ? 1 : may_go < ALONE_TURN ? may_go : ALONE_TURN;
    lane_room_quit(l, q);
    l->turn_vqp = q;
    l->turn_room = p;
    return true;
}
