/* SPDX-License-Identifier: Apache-2.0 */
#include "world_crowd.h"

#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

enum { REGION = 16384, SLOT = 64, VQP = 0 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE;

struct crowd_watch crowd_watch;
static struct crowd *crowd;

/* ---- the watch */

static void add(struct crowd_load *load, uint64_t bytes)
{
    load->bytes += bytes;
    load->ops++;
}

static void take(struct crowd_load *load, uint64_t bytes)
{
    ck_assert_uint_ge(load->bytes, bytes);
    ck_assert_uint_ge(load->ops, 1);
    load->bytes -= bytes;
    load->ops--;
}

/* After a post of so many bytes. One that is larger than all goes alone. */
static void hold_to(const struct crowd_load *load, const struct crowd_load *max, uint64_t bytes)
{
    if (max->ops != 0)
        ck_assert_uint_le(load->ops, max->ops);
    if (max->bytes != 0 && load->bytes > max->bytes)
        ck_assert_uint_eq(load->bytes, bytes);
}

static uint64_t narrower(uint64_t a, uint64_t b)
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

static struct crowd_load max_of_node(uint32_t node)
{
    const struct crowd_load *each = &crowd_watch.max_each, *own = &crowd_watch.max_own[node];
    return (struct crowd_load){narrower(each->bytes, own->bytes), narrower(each->ops, own->ops)};
}

/* Whose memory it is that the request READs into or WRITEs from. */
static bool describe(const struct fab_wr *wr, struct crowd_posted *out)
{
    for (uint32_t i = 0; i < crowd->members; i++) {
        const struct crowd_member *m = &crowd->member[i];
        const uint64_t from = m->k.arena_mr != NULL ? m->k.arena_mr->addr : 0;
        const uint64_t at = wr->sg_list[0].addr;
        if (from == 0 || at < from || at >= from + WORLD_ARENA)
            continue;
        out->tenant = m->tenant;
        out->node = m->node;
        return true;
    }
    return false;
}

static void watch_one(const struct fab_wr *wr)
{
    struct crowd_watch *c = &crowd_watch;
    uint64_t phys = wr->wr_id >> 32;
    ck_assert_uint_lt(phys, CROWD_PHYS);
    struct crowd_posted *p = &c->ring[phys][c->tail[phys]++ % WORLD_SQ_DEPTH];
    *p = (struct crowd_posted){.wr_id = wr->wr_id};
    p->own = wr->sg_list[0].lkey == c->w->node[0].res.scratch_lkey ||
             wr->sg_list[0].lkey == c->w->node[0].res.scratch_system_lkey;
    if (p->own)
        return;
    for (int i = 0; i < wr->num_sge; i++)
        p->bytes += wr->sg_list[i].length;
    ck_assert(describe(wr, p));
    add(&c->device, p->bytes);
    add(&c->tenant[p->tenant], p->bytes);
    add(&c->node[p->node], p->bytes);
    hold_to(&c->device, &c->max_device, p->bytes);
    if (!c->over_tenant[p->tenant])
        hold_to(&c->tenant[p->tenant], &c->max_tenant[p->tenant], p->bytes);
    const struct crowd_load max = max_of_node(p->node);
    if (!c->over_node[p->node])
        hold_to(&c->node[p->node], &max, p->bytes);
    c->posts++;
    c->full += c->max_device.ops != 0 && c->device.ops == c->max_device.ops;
}

/* Of every so many lists the device takes the first one alone, or none. */
static struct fab_wr *refused_of(struct fab_wr *wr)
{
    struct crowd_watch *c = &crowd_watch;
    if (c->refuse_every == 0 || ++c->lists % c->refuse_every != 0)
        return NULL;
    struct fab_wr *from = c->lists / c->refuse_every % 2 != 0 ? wr->next : wr;
    c->refused += from != NULL;
    return from;
}

static int post(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    const bool lane = qp->send_cq == crowd_watch.w->node[0].cq; /* else a handshake, with rc */
    struct fab_wr *refused = lane ? refused_of(wr) : NULL;
    for (const struct fab_wr *one = wr; lane && one != refused; one = one->next)
        watch_one(one);
    *bad = refused;
    if (refused == wr)
        return -ENOMEM;
    if (refused != NULL)
        wr->next = NULL;
    ck_assert_int_eq(crowd_watch.real->post_send(qp, wr, bad), 0);
    if (refused == NULL)
        return 0;
    wr->next = *bad = refused;
    return -ENOMEM;
}

static void forget_oldest(uint64_t phys)
{
    struct crowd_watch *c = &crowd_watch;
    const struct crowd_posted *p = &c->ring[phys][c->head[phys]++ % WORLD_SQ_DEPTH];
    if (p->own)
        return;
    take(&c->device, p->bytes);
    take(&c->tenant[p->tenant], p->bytes);
    take(&c->node[p->node], p->bytes);
}

/* A completion stands for all before it. After an error those behind it are the device's until the
 * last of them has come back. */
static void watch_completion(const struct ibv_wc *wc)
{
    struct crowd_watch *c = &crowd_watch;
    uint64_t phys = wc->wr_id >> 32;
    bool known = false;
    for (uint32_t i = c->head[phys]; i != c->tail[phys]; i++)
        known |= c->ring[phys][i % WORLD_SQ_DEPTH].wr_id == wc->wr_id;
    if (!known)
        return;
    while (!c->failing[phys] && c->ring[phys][c->head[phys] % WORLD_SQ_DEPTH].wr_id != wc->wr_id)
        forget_oldest(phys);
    c->failing[phys] |= wc->status != IBV_WC_SUCCESS;
    if (!c->failing[phys])
        forget_oldest(phys);
    else if (c->ring[phys][(c->tail[phys] - 1) % WORLD_SQ_DEPTH].wr_id == wc->wr_id)
        while (c->head[phys] != c->tail[phys])
            forget_oldest(phys);
    c->failing[phys] &= c->head[phys] != c->tail[phys];
}

static int poll_some(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    if (cq != crowd_watch.w->node[0].cq)
        return crowd_watch.real->poll(cq, n, wc);
    int most = (int)crowd_watch.per_poll;
    int got = crowd_watch.real->poll(cq, most != 0 && most < n ? most : n, wc);
    for (int i = 0; i < got; i++)
        watch_completion(&wc[i]);
    return got;
}

static void watch(struct world *w)
{
    struct crowd_watch *c = &crowd_watch;
    *c = (struct crowd_watch){.fab = w->node[0].fab, .real = w->node[0].fab->ops, .w = w};
    c->ops = *c->real;
    c->ops.post_send = post;
    c->ops.poll = poll_some;
    c->fab->ops = &c->ops;
}

/* ---- the crowd */

void crowd_open(struct crowd *c, struct world *w)
{
    memset(c, 0, sizeof *c);
    c->w = w;
    crowd = c;
    world_open(w);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++)
        for (uint32_t n = 1; n < WORLD_NODES; n++) {
            world_attach(w, &c->owner[t][n], n, t, t);
            c->vkey[t][n] = world_register(w, &c->owner[t][n], 0, REGION, ALL);
            ck_assert_uint_ne(c->vkey[t][n], 0);
        }
    watch(w);
}

struct crowd_member *crowd_join(struct crowd *c, uint32_t tenant, uint32_t node, uint32_t depth,
                                uint32_t size)
{
    ck_assert_uint_lt(c->members, CROWD_MAX);
    uint32_t id = c->members++;
    struct crowd_member *m = &c->member[id];
    *m = (struct crowd_member){.tenant = tenant, .node = node, .depth = depth};
    for (int i = 0; i < CROWD_SIZES; i++)
        m->sizes[i] = size;
    world_attach(c->w, &m->k, 0, id, tenant);
    ck_assert_int_eq(world_connect(c->w, &m->k, VQP, node), 0);
    return m;
}

static void post_one(struct crowd *c, struct crowd_member *m)
{
    uint64_t wr_id = m->posted++;
    uint32_t vkey = m->vkey != 0 ? m->vkey : c->vkey[m->tenant][m->node];
    struct schema_sq_desc d = world_rw(m->write ? SCHEMA_OP_WRITE : SCHEMA_OP_READ, wr_id, SLOT,
                                       m->sizes[wr_id % CROWD_SIZES], vkey, 0);
    if (m->signal_few && wr_id % 4 != 3)
        d.flags &= (uint8_t)~SCHEMA_OP_SIGNALED;
    world_post(&m->k, &d);
}

/* Completions come in the order of posting, each once. */
static void harvest(struct crowd_member *m)
{
    const struct schema_cqe *ring = (const void *)((const uint8_t *)m->k.r + SCHEMA_CQ_OFFSET);
    while (m->k.cq_head != atomic_load(&m->k.r->cq_tail)) {
        const struct schema_cqe *e = &ring[m->k.cq_head++ & 63];
        if (e->status == IBV_WC_SUCCESS) {
            ck_assert_uint_ge(e->wr_id, m->done);
            if (!m->signal_few)
                ck_assert_uint_eq(e->wr_id, m->done);
            for (; m->done <= e->wr_id; m->done++)
                m->bytes += m->sizes[m->done % CROWD_SIZES];
        } else {
            m->failed++;
            ck_assert_uint_ge(e->wr_id, m->done);
            m->done = e->wr_id + 1;
        }
    }
    atomic_store(&m->k.w->cq_head, m->k.cq_head);
}

static void run_member(struct crowd *c, struct crowd_member *m)
{
    if (m->k.r == NULL || m->k.r->ended != 0)
        return;
    harvest(m);
    if (m->quiet)
        return;
    while (m->posted - m->done < m->depth)
        post_one(c, m);
    lane_doorbell(c->w->node[0].lane, m->k.id);
}

void crowd_run(struct crowd *c, unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        for (uint32_t k = 0; k < c->members; k++)
            run_member(c, &c->member[k]);
        world_run(c->w, 1);
        crowd_check(c);
    }
}

void crowd_leave(struct crowd *c, struct crowd_member *m)
{
    uint32_t over = c->w->node[0].over;
    struct lane_command end = {
        .kind = LANE_COMMAND_SESSION_END, .session = m->k.id, .reason = SCHEMA_REASON_CLOSED};
    ck_assert_int_eq(lane_command(c->w->node[0].lane, &end), 0);
    for (int i = 0; i < 5000 && c->w->node[0].over == over; i++)
        crowd_run(c, 1);
    world_detach(c->w, &m->k);
    m->k = (struct world_worker){.r = NULL};
}

static bool is_empty(const struct lane_window *n)
{
    return n->bytes == 0 && n->ops == 0 && n->waiting == 0;
}

/* What is out ends by soft's time, which is the real one, and passes are run until it does; what
 * waits in the lane may wait for the test's, which goes on by more than passes take when nothing
 * else has happened for long: who has broken queue pairs rests for up to 10 s. */
static void settle_requests(struct crowd *c)
{
    enum { LONG = 1000 /* passes */, PATIENCE = 400 /* times so many without an end */ };
    static const uint64_t REST_NS = 50000000;
    uint64_t left = world_stats(c->w, 0).inflight;
    for (int idle = 0; left > 0 && idle < PATIENCE; idle++) {
        crowd_run(c, LONG);
        const uint64_t now = world_stats(c->w, 0).inflight;
        if (now < left)
            idle = -1;
        else
            c->w->now_ns += REST_NS;
        left = now;
    }
}

void crowd_settle(struct crowd *c)
{
    for (uint32_t i = 0; i < c->members; i++)
        c->member[i].quiet = true;
    settle_requests(c);
    crowd_run(c, 2);
    ck_assert_uint_eq(world_stats(c->w, 0).inflight, 0);
    ck_assert_uint_eq(crowd_watch.device.ops, 0);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++) {
        struct lane_window n = crowd_window(c, LANE_WINDOW_TENANT, t);
        ck_assert(is_empty(&n));
    }
    struct lane_window n = crowd_window(c, LANE_WINDOW_DEVICE, 0);
    ck_assert(is_empty(&n));
    for (uint32_t f = 0; f < c->w->node[0].config.max_flows; f++)
        if (lane_window(c->w->node[0].lane, LANE_WINDOW_DESTINATION, f, &n))
            ck_assert(is_empty(&n));
}

void crowd_limit(struct crowd *c, enum lane_window_scope scope, uint32_t tenant, uint64_t bytes,
                 uint64_t ops)
{
    struct lane_command set = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = scope, .tenant = tenant, .bytes = bytes, .ops = ops}};
    struct crowd_load *max = scope == LANE_WINDOW_DEVICE   ? &crowd_watch.max_device
                             : scope == LANE_WINDOW_TENANT ? &crowd_watch.max_tenant[tenant]
                                                           : &crowd_watch.max_each;
    *max = (struct crowd_load){bytes, ops};
    if (scope == LANE_WINDOW_TENANT)
        crowd_watch.over_tenant[tenant] = true;
    if (scope == LANE_WINDOW_DESTINATION)
        memset(crowd_watch.over_node, true, sizeof crowd_watch.over_node);
    ck_assert_int_eq(lane_command(c->w->node[0].lane, &set), 0);
}

void crowd_limit_node(struct crowd *c, uint32_t node, uint64_t bytes, uint64_t ops)
{
    struct lane_command set = {
        .kind = LANE_COMMAND_WINDOW,
        .window = {.scope = LANE_WINDOW_DESTINATION, .bytes = bytes, .ops = ops}};
    memcpy(set.window.gid, c->w->node[node].fab->caps.gid, sizeof set.window.gid);
    crowd_watch.max_own[node] = (struct crowd_load){bytes, ops};
    crowd_watch.over_node[node] = true;
    ck_assert_int_eq(lane_command(c->w->node[0].lane, &set), 0);
}

static bool find_node_window(const struct crowd *c, uint32_t node, struct lane_window *out)
{
    for (uint32_t f = 0; f < c->w->node[0].config.max_flows; f++)
        if (lane_window(c->w->node[0].lane, LANE_WINDOW_DESTINATION, f, out) &&
            memcmp(out->gid, c->w->node[node].fab->caps.gid, sizeof out->gid) == 0)
            return true;
    return false;
}

struct lane_window crowd_node_window(const struct crowd *c, uint32_t node)
{
    struct lane_window n;
    ck_assert(find_node_window(c, node, &n));
    return n;
}

struct lane_window crowd_window(const struct crowd *c, enum lane_window_scope scope,
                                uint32_t number)
{
    struct lane_window n;
    (void)lane_window(c->w->node[0].lane, scope, number, &n);
    return n;
}

/* What is in a tenant's or destination's window is what the device has, or a little more: that
 * waits at the device's. Returns whether that is within the limit. */
static bool is_within(const struct lane_window *n, const struct crowd_load *seen)
{
    if (!n->counted)
        return true;
    ck_assert_uint_ge(n->bytes, seen->bytes);
    ck_assert_uint_ge(n->ops, seen->ops);
    return (n->limit_bytes == 0 || n->bytes <= n->limit_bytes) &&
           (n->limit_ops == 0 || n->ops <= n->limit_ops);
}

void crowd_check(const struct crowd *c)
{
    struct crowd_watch *seen = &crowd_watch;
    struct lane_window n = crowd_window(c, LANE_WINDOW_DEVICE, 0);
    if (n.counted) {
        ck_assert_uint_eq(n.bytes, seen->device.bytes);
        ck_assert_uint_eq(n.ops, seen->device.ops);
    }
    for (uint32_t t = 0; t < WORLD_TENANTS; t++) {
        n = crowd_window(c, LANE_WINDOW_TENANT, t);
        if (is_within(&n, &seen->tenant[t]))
            seen->over_tenant[t] = false;
    }
    for (uint32_t i = 1; i < WORLD_NODES; i++)
        if (find_node_window(c, i, &n) && is_within(&n, &seen->node[i]))
            seen->over_node[i] = false;
}

void crowd_close(struct crowd *c)
{
    crowd_watch.fab->ops = crowd_watch.real;
    for (uint32_t i = 0; i < c->members; i++)
        if (c->member[i].k.r != NULL)
            world_detach(c->w, &c->member[i].k);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++)
        for (uint32_t n = 1; n < WORLD_NODES; n++)
            world_detach(c->w, &c->owner[t][n]);
    world_close(c->w);
}
