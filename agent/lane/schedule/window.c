/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/window.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/path.h"
#include "schedule/fair_queue.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "schedule/window_find.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

#define OWNER(type, member, at) ((type *)(void *)((char *)(at)-offsetof(type, member)))

/* How many windows a request is in; they are entered in this order. */
enum { IN_NONE, IN_TENANT, IN_DESTINATION, IN_ALL };

enum {
    QUEUES = 1024, /* of destinations and queue pairs where somebody waits, at a time */
    FREE_OPS = 4   /* requests of a tenant, that wait at no size which was found */
};

/* ---- making */

/* A window's hot part is a cache line of its own. Memory that is zero already, and that nobody has
 * touched: most destinations are never used. */
static struct window *make_windows(uint32_t count, void **raw)
{
    const size_t line = _Alignof(struct window);
    *raw = calloc(1, count * sizeof(struct window) + line);
    return *raw == NULL ? NULL : (struct window *)(((uintptr_t)*raw + line - 1) & ~(line - 1));
}

int lane_windows_new(struct lane *l)
{
    STAILQ_INIT(&l->due_windows);
    const uint32_t tenants = l->config.max_tenants;
    const uint32_t most = l->config.max_flows + l->phys_room;
    const uint32_t queues = most < QUEUES ? most : QUEUES;
    /* For every tenant at the device, at its own, and in each queue. */
    l->turns = calloc((size_t)tenants * (queues + 2), sizeof l->turns[0]);
    l->queues = calloc(queues, sizeof l->queues[0]);
    l->search.at = calloc(WINDOW_SEARCHES, sizeof l->search.at[0]);
    l->own_windows = calloc(LANE_MAX_DESTINATIONS, sizeof l->own_windows[0]);
    l->device_window = make_windows(1, &l->raw_windows[0]);
    l->tenant_windows = make_windows(tenants, &l->raw_windows[1]);
    l->flow_windows = make_windows(l->config.max_flows, &l->raw_windows[2]);
    l->rooms = make_windows(l->phys_room, &l->raw_windows[3]);
    if (l->search.at == NULL || l->turns == NULL || l->queues == NULL || l->own_windows == NULL ||
        l->device_window == NULL || l->tenant_windows == NULL || l->flow_windows == NULL ||
        l->rooms == NULL)
        return -ENOMEM;
    TAILQ_INIT(&l->idle_queues);
    for (uint32_t i = 0; i < queues; i++)
        TAILQ_INSERT_TAIL(&l->idle_queues, &l->queues[i], by_idle);
    l->device_window->scope = LANE_WINDOW_DEVICE;
    l->device_window->tenant = l->turns;
    for (uint32_t i = 0; i < tenants; i++) {
        l->tenant_windows[i].scope = LANE_WINDOW_TENANT;
        l->tenant_windows[i].tenant = &l->turns[tenants + i];
    }
    return 0;
}

void lane_windows_free(struct lane *l)
{
    free(l->turns);
    free(l->queues);
    for (size_t i = 0; i < sizeof l->raw_windows / sizeof l->raw_windows[0]; i++)
        free(l->raw_windows[i]);
    free(l->own_windows);
    free(l->search.at);
}

static uint64_t least_of(uint64_t limit, uint64_t most)
{
    return limit != 0 && limit < most ? limit : most;
}

/* What is set and what was found, both hold. */
static uint64_t ops_limit(const struct window *n)
{
    const uint64_t set = WINDOW_GET(n->limit_ops), found = WINDOW_GET(n->found_ops);
    return set == 0 || (found != 0 && found < set) ? found : set;
}

static void look_again(struct window *n)
{
    bool wait = WINDOW_GET(n->waiting) > 0;
    n->pass_bytes = wait ? 0 : least_of(WINDOW_GET(n->limit_bytes), WINDOW_GET(n->most_bytes));
    n->pass_ops = wait ? 0 : least_of(ops_limit(n), WINDOW_GET(n->most_ops));
}

void lane_window_become_due(struct lane *l, struct window *n)
{
    if (n->due || WINDOW_GET(n->waiting) == 0)
        return;
    n->due = 1;
    STAILQ_INSERT_TAIL(&l->due_windows, n, by_due);
}

static void set_limit(struct lane *l, struct window *n, const struct window_limit *limit)
{
    /* Who sees the limit sees what went out under the former one. */
    atomic_store_explicit(&n->limit_bytes, limit->bytes, memory_order_release);
    atomic_store_explicit(&n->limit_ops, limit->ops, memory_order_release);
    look_again(n);
    lane_window_become_due(l, n);
}

void lane_window_set_found(struct lane *l, struct window *n, uint32_t ops)
{
    if (WINDOW_GET(n->found_ops) == ops)
        return;
    WINDOW_PUT(n->found_ops, ops);
    look_again(n);
    lane_window_become_due(l, n);
}

static bool is_none(const struct window_limit *limit)
{
    return (limit->bytes | limit->ops) == 0;
}

static uint64_t narrower_limit(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct own_window *own_window_of(const struct lane *l, const uint64_t gid[2])
{
    for (uint32_t i = 0; i < l->own_window_count; i++)
        if (l->own_windows[i].gid[0] == gid[0] && l->own_windows[i].gid[1] == gid[1])
            return &l->own_windows[i];
    return NULL;
}

/* What holds for the destination with its GID. */
static void limit_destination(struct lane *l, struct window *n)
{
    const uint64_t gid[2] = {WINDOW_GET(n->gid[0]), WINDOW_GET(n->gid[1])};
    const struct own_window *own = own_window_of(l, gid);
    struct window_limit limit = l->destination_limit;
    if (own != NULL)
        limit = (struct window_limit){narrower_limit(limit.bytes, own->limit.bytes),
                                      narrower_limit(limit.ops, own->limit.ops)};
    set_limit(l, n, &limit);
}

static void begin_anew(struct window *n)
{
    WINDOW_PUT(n->most_bytes, 0);
    WINDOW_PUT(n->most_ops, 0);
    WINDOW_PUT(n->waits, 0);
    WINDOW_PUT(n->waited_ns, 0);
}

void lane_window_open(struct lane *l, struct flow *f, const uint8_t gid[16])
{
    struct window *n = &l->flow_windows[f - l->flows];
    uint64_t words[2];
    memcpy(words, gid, sizeof words);
    lane_window_forget_search(l, n);
    f->window = n;
    n->scope = LANE_WINDOW_DESTINATION;
    begin_anew(n);
    WINDOW_PUT(n->gid[0], words[0]);
    WINDOW_PUT(n->gid[1], words[1]);
    limit_destination(l, n);
}

/* ---- on and off */

static bool is_limited(const struct window *n)
{
    return (WINDOW_GET(n->limit_bytes) | WINDOW_GET(n->limit_ops) | WINDOW_GET(n->found_ops)) != 0;
}

static bool are_limited(const struct lane *l)
{
    bool any = l->search.on || is_limited(l->device_window) || !is_none(&l->destination_limit) ||
               l->own_window_count > 0;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        any |= is_limited(&l->tenant_windows[i]);
    return any;
}

typedef void count_fn(struct window *n, uint64_t length, uint64_t ops);

/* What is out on a queue pair is counted for the first time, or is counted no more. */
static void count_posted(struct lane *l, const struct physical_qp *p, count_fn *count)
{
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = p->ring[i & (l->config.sq_depth - 1)];
        if (w == NULL || w->kind != WR_WORKER) /* NULL: with streams, over before older ones */
            continue;
        count(w->session->window, w->length, !w->rides);
        count(w->flow->window, w->length, !w->rides);
        count(l->device_window, w->length, !w->rides);
    }
}

static void count_all(struct lane *l, count_fn *count)
{
    for (uint32_t i = 0; i < l->phys_room; i++)
        if (l->phys[i].qp != NULL)
            count_posted(l, &l->phys[i], count);
}

static void switch_on(struct lane *l)
{
    count_all(l, window_count);
    atomic_store_explicit(&l->windows_on, 1, memory_order_release);
}

/* Nobody waits: what is in windows is out. */
static void switch_off(struct lane *l)
{
    WINDOW_PUT(l->windows_on, 0);
    count_all(l, window_uncount);
    BASE_ASSERT(WINDOW_GET(l->device_window->ops) == 0);
}

static void switch_as_needed(struct lane *l)
{
    bool on = WINDOW_GET(l->windows_on), wanted = are_limited(l);
    if (wanted && !on)
        switch_on(l);
    if (!wanted && on && l->windows_waiting == 0)
        switch_off(l);
}

void lane_windows_switch(struct lane *l)
{
    switch_as_needed(l);
}

static void set_own_window(struct lane *l, const uint64_t gid[2], const struct window_limit *limit)
{
    struct own_window *own = own_window_of(l, gid);
    if (own == NULL && is_none(limit))
        return;
    if (own == NULL) {
        BASE_ASSERT(l->own_window_count < LANE_MAX_DESTINATIONS);
        own = &l->own_windows[l->own_window_count++];
    }
    *own = (struct own_window){{gid[0], gid[1]}, *limit};
    if (is_none(limit))
        *own = l->own_windows[--l->own_window_count];
}

static void set_destinations(struct lane *l, const uint8_t which[16],
                             const struct window_limit *limit)
{
    uint64_t gid[2];
    memcpy(gid, which, sizeof gid);
    const bool each = (gid[0] | gid[1]) == 0;
    if (each)
        l->destination_limit = *limit;
    else
        set_own_window(l, gid, limit);
    for (uint32_t i = 0; i < flows_ever(l); i++) {
        struct window *n = &l->flow_windows[i];
        if (l->flows[i].used &&
            (each || (WINDOW_GET(n->gid[0]) == gid[0] && WINDOW_GET(n->gid[1]) == gid[1])))
            limit_destination(l, n);
    }
}

void lane_windows_set(struct lane *l, const struct lane_command *c)
{
    const struct window_limit limit = {c->window.bytes, c->window.ops};
    switch (c->window.scope) {
    case LANE_WINDOW_DEVICE:
        set_limit(l, l->device_window, &limit);
        break;
    case LANE_WINDOW_TENANT:
        BASE_ASSERT(c->window.tenant < l->config.max_tenants);
        if (c->window.anew)
            begin_anew(&l->tenant_windows[c->window.tenant]);
        set_limit(l, &l->tenant_windows[c->window.tenant], &limit);
        break;
    case LANE_WINDOW_DESTINATION:
        set_destinations(l, c->window.gid, &limit);
        break;
    }
    switch_as_needed(l);
}

/* ---- waiting */

static struct tenant_turn *tenant_at(const struct window *n, const struct session *s)
{
    return &n->tenant[n->scope == LANE_WINDOW_TENANT ? 0 : s->tenant_slot];
}

bool lane_window_has_queue(struct lane *l, struct window *n)
{
    if (n->tenant != NULL)
        return true;
    struct window_queue *queue = TAILQ_FIRST(&l->idle_queues);
    if (queue == NULL)
        return false;
    if (queue->of != NULL)
        queue->of->tenant = NULL;
    queue->of = n;
    n->tenant = &l->turns[(size_t)(2 + (queue - l->queues)) * l->config.max_tenants];
    return true;
}

/* NULL: its turns are its own for ever. */
static struct window_queue *queue_of(const struct lane *l, const struct window *n)
{
    const size_t turns = (size_t)(n->tenant - l->turns) / l->config.max_tenants;
    return turns < 2 ? NULL : &l->queues[turns - 2];
}

void lane_window_waits(struct lane *l, struct window *n, int more)
{
    const uint64_t before = WINDOW_GET(n->waiting), after = before + (uint64_t)more;
    struct window_queue *queue = before == 0 || after == 0 ? queue_of(l, n) : NULL;
    WINDOW_PUT(n->waiting, after);
    if (queue == NULL)
        return;
    if (before == 0)
        TAILQ_REMOVE(&l->idle_queues, queue, by_idle);
    else
        TAILQ_INSERT_TAIL(&l->idle_queues, queue, by_idle);
}

static enum vqp_wait window_wait(const struct window *n)
{
    static const uint8_t waits[LANE_WINDOW_SCOPES] = {[LANE_WINDOW_TENANT] = WAIT_TENANT_WINDOW,
                                                      [LANE_WINDOW_DESTINATION] =
                                                          WAIT_DESTINATION_WINDOW,
                                                      [LANE_WINDOW_DEVICE] = WAIT_DEVICE_WINDOW};
    return (enum vqp_wait)waits[n->scope];
}

static void join_window(struct lane *l, struct window *n, struct vqp *q)
{
    struct tenant_turn *t = tenant_at(n, q->session);
    lane_vqp_wait_move(q, window_wait(n));
    q->window = n;
    q->session->window->within += q->in > IN_NONE;
    flow_hold(q);
    q->wait_ns = l->now_ns;
    lane_fair_queue_join(&t->vqps, &q->turn);
    if (!t->turn.waits)
        lane_fair_queue_join(&n->turns, &t->turn);
    lane_window_waits(l, n, 1);
    l->windows_waiting++;
    WINDOW_ADD(n->waits, 1);
    COUNT(l, window_waits[n->scope], 1);
    look_again(n);
}

static void quit_window(struct lane *l, struct vqp *q)
{
    struct window *n = q->window;
    struct tenant_turn *t = tenant_at(n, q->session);
    lane_vqp_wait_move(q, WAIT_NOTHING);
    q->window = NULL;
    q->session->window->within -= q->in > IN_NONE;
    flow_release(q);
    lane_fair_queue_leave(&t->vqps, &q->turn);
    if (fair_queue_first(&t->vqps) == NULL)
        lane_fair_queue_leave(&n->turns, &t->turn);
    lane_window_waits(l, n, -1);
    l->windows_waiting--;
    WINDOW_ADD(n->waited_ns, l->now_ns - q->wait_ns);
    COUNT(l, window_waited_ns[n->scope], l->now_ns - q->wait_ns);
    look_again(n);
}

/* ---- in and out */

bool lane_windows_are_full(const struct lane *l, const struct vqp *q)
{
    return l->windows_waiting > 0 &&
           (WINDOW_GET(l->device_window->waiting) > 0 || WINDOW_GET(q->flow->window->waiting) > 0 ||
            WINDOW_GET(q->session->window->waiting) > 0);
}

/* One that is larger than the window goes alone: messages without a payload are out as others are.
 */
static bool fits_bytes(const struct window *n, uint64_t length)
{
    const uint64_t limit = WINDOW_GET(n->limit_bytes), bytes = WINDOW_GET(n->bytes);
    const bool is_empty = bytes == 0 && WINDOW_GET(n->ops) == 0;
    return limit == 0 || is_empty || (bytes <= limit && length <= limit - bytes);
}

static bool fits_window(const struct window *n, uint64_t length)
{
    const uint64_t limit = ops_limit(n);
    return (limit == 0 || WINDOW_GET(n->ops) < limit) && fits_bytes(n, length);
}

/* What was found is for who has much out: a size that is tried, or that somebody has made the lane
 * find, keeps nobody waiting for a stranger's long requests who has little. What is set holds. */
static bool may_pass_found(const struct window *n, const struct vqp *q)
{
    const uint64_t set = WINDOW_GET(n->limit_ops);
    const struct window *t = q->session->window;
    const uint64_t own = vqp_wait_places[q->wait] != PLACE_WINDOW && q->in > IN_NONE;
    return WINDOW_GET(n->found_ops) != 0 && WINDOW_GET(n->limit_bytes) == 0 &&
           (set == 0 || WINDOW_GET(n->ops) < set) &&
           WINDOW_GET(t->ops) - t->within - own < FREE_OPS;
}

static void mark_most(struct window *n)
{
    uint64_t bytes = WINDOW_GET(n->bytes), ops = WINDOW_GET(n->ops);
    if (bytes > WINDOW_GET(n->most_bytes))
        WINDOW_PUT(n->most_bytes, bytes);
    if (ops > WINDOW_GET(n->most_ops))
        WINDOW_PUT(n->most_ops, ops);
    look_again(n);
}

static void charge_window(struct window *n, struct vqp *q, uint64_t length)
{
    struct tenant_turn *t = tenant_at(n, q->session);
    uint64_t cost = length + WINDOW_REQUEST_COST;
    lane_fair_queue_serve(&n->turns, &t->turn, cost);
    lane_fair_queue_serve(&t->vqps, &q->turn, cost);
}

/* ---- with another's work request */

/* One that waited somewhere would have been counted where it was already. */
static bool may_ride(const struct lane *l, const struct vqp *q, const struct wr *w)
{
    const struct physical_qp *p = flow_phys(l, q->flow);
    return p != NULL && physical_qp_takes_along(l, p, w) &&
           (q->in > IN_NONE || fits_bytes(q->session->window, w->length)) &&
           (q->in > IN_TENANT || fits_bytes(q->flow->window, w->length)) &&
           fits_bytes(l->device_window, w->length);
}

/* Where others wait its bytes are of its turns. */
static void ride_along(struct vqp *q, const struct wr *w, struct window *const in_order[IN_ALL])
{
    for (uint8_t i = 0; i < IN_ALL; i++) {
        struct window *n = in_order[i];
        if (i < q->in) {
            WINDOW_ADD(n->ops, -1);
            continue;
        }
        if (n->tenant != NULL && WINDOW_GET(n->waiting) > 0)
            charge_window(n, q, w->length);
        window_count(n, w->length, 0);
        mark_most(n);
    }
    q->in = IN_NONE;
}

/* ---- in, and out */

enum vqp_wait lane_windows_enter_slowly(struct lane *l, struct vqp *q, struct wr *w)
{
    struct window *const in_order[IN_ALL] = {q->session->window, q->flow->window, l->device_window};
    if (may_ride(l, q, w)) {
        ride_along(q, w, in_order);
        return WAIT_NOTHING;
    }
    while (q->in < IN_ALL) {
        struct window *n = in_order[q->in];
        bool has_turn = l->turn_window == n && l->turn_wr == w;
        const bool queues = WINDOW_GET(n->waiting) > 0 && is_limited(n);
        if (((queues && !has_turn) || !fits_window(n, w->length)) && !may_pass_found(n, q)) {
            q->wants = w->length;
            if (lane_window_has_queue(l, n)) {
                join_window(l, n, q);
                return window_wait(n);
            }
            lane_windows_desert(l, q);
            return WAIT_TURNS;
        }
        if (has_turn)
            charge_window(n, q, w->length);
        window_count(n, w->length, 1);
        mark_most(n);
        q->in++;
    }
    q->in = IN_NONE; /* it is not the first any more */
    return WAIT_NOTHING;
}

static void uncount_request(struct lane *l, struct window *n, uint64_t length)
{
    window_uncount(n, length, 1);
    lane_window_become_due(l, n);
}

/* The last one first: who goes on there is in the others already. */
void lane_windows_left(struct lane *l, const struct wr *w)
{
    lane_window_become_due(l, l->device_window);
    lane_window_become_due(l, w->flow->window);
    lane_window_become_due(l, w->session->window);
}

void lane_windows_desert(struct lane *l, struct vqp *q)
{
    if (vqp_wait_places[q->wait] == PLACE_WINDOW) {
        lane_window_become_due(l, q->window); /* who is next may be smaller */
        quit_window(l, q);
    }
    if (q->in > IN_DESTINATION)
        uncount_request(l, l->device_window, q->wants);
    if (q->in > IN_TENANT)
        uncount_request(l, q->flow->window, q->wants);
    if (q->in > IN_NONE)
        uncount_request(l, q->session->window, q->wants);
    q->in = IN_NONE;
}

struct window *lane_windows_take_due(struct lane *l)
{
    struct window *n = STAILQ_FIRST(&l->due_windows);
    if (n == NULL)
        return NULL;
    STAILQ_REMOVE_HEAD(&l->due_windows, by_due);
    n->due = 0;
    return n;
}

struct vqp *lane_window_next(const struct lane *l, const struct window *n)
{
    if (fair_queue_first(&n->turns) == NULL)
        return NULL;
    const struct tenant_turn *t = OWNER(struct tenant_turn, turn, fair_queue_first(&n->turns));
    struct vqp *q = OWNER(struct vqp, turn, fair_queue_first(&t->vqps));
    return fits_window(n, q->wants) || may_pass_found(n, q) || may_ride(l, q, q->queue.head) ? q
                                                                                             : NULL;
}

void lane_window_begin_turn(struct lane *l, struct vqp *q)
{
    l->turn_window = q->window;
    l->turn_wr = q->queue.head;
    quit_window(l, q);
}

void lane_windows_end_round(struct lane *l)
{
    switch_as_needed(l); /* the last who waited has gone on */
}

bool lane_window(const struct lane *l, enum lane_window_scope scope, uint32_t number,
                 struct lane_window *out)
{
    const struct window *n = scope == LANE_WINDOW_DEVICE   ? l->device_window
                             : scope == LANE_WINDOW_TENANT ? &l->tenant_windows[number]
                                                           : &l->flow_windows[number];
    uint64_t gid[2] = {WINDOW_GET(n->gid[0]), WINDOW_GET(n->gid[1])};
    const struct window_limit limit = {
        .bytes = atomic_load_explicit(&n->limit_bytes, memory_order_acquire),
        .ops = atomic_load_explicit(&n->limit_ops, memory_order_acquire)};
    const bool counted = atomic_load_explicit(&l->windows_on, memory_order_acquire);
    *out = (struct lane_window){.counted = counted,
                                .limit_bytes = limit.bytes,
                                .limit_ops = limit.ops,
                                .found_ops = WINDOW_GET(n->found_ops),
                                .bytes = WINDOW_GET(n->bytes),
                                .ops = WINDOW_GET(n->ops),
                                .most_bytes = WINDOW_GET(n->most_bytes),
                                .most_ops = WINDOW_GET(n->most_ops),
                                .waiting = WINDOW_GET(n->waiting),
                                .waits = WINDOW_GET(n->waits),
                                .waited_ns = WINDOW_GET(n->waited_ns)};
    memcpy(out->gid, gid, sizeof gid);
    return scope != LANE_WINDOW_DESTINATION || (gid[0] | gid[1]) != 0;
}
