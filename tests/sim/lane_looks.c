/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_looks.h"

#include <stdlib.h>
#include <string.h>

#include "lane_state.h"
#include "ledger.h"
#include "limit_watch.h"
#include "message_state.h"
#include "schedule/vqp.h"
#include "schema/wait_reason.h"
#include "session_state.h"
#include "transmit/physical_qp.h"

enum { COUNT_EACH = 8 /* looks: what is there is counted in one of them */ };

/* A window. */
struct window_looks {
    uint64_t gid[2];
    struct play_limit bytes, ops;
    uint64_t bytes_there, ops_there;
};

/* A tenant. */
struct tenant_looks {
    struct play_limit vqps, mrs;
    uint32_t vqps_there, mrs_there;
};

struct play_lane_looks {
    struct window_looks device, *of_tenant, *of_flow;
    struct tenant_looks *tenant;
    uint32_t tenants, flows, looks;
};

struct play_lane_looks *play_lane_looks_new(const struct lane *lane)
{
    struct play_lane_looks *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->tenants = lane->config.max_tenants;
    k->flows = lane->config.max_flows;
    k->of_tenant = calloc(k->tenants, sizeof *k->of_tenant);
    k->tenant = calloc(k->tenants, sizeof *k->tenant);
    k->of_flow = calloc(k->flows, sizeof *k->of_flow);
    if (k->of_tenant != NULL && k->tenant != NULL && k->of_flow != NULL)
        return k;
    play_lane_looks_free(k);
    return NULL;
}

void play_lane_looks_free(struct play_lane_looks *looks)
{
    free(looks->of_tenant);
    free(looks->tenant);
    free(looks->of_flow);
    free(looks);
}

/* ---- windows */

static const char *name_scope(const struct window *n)
{
    static const char *const NAMES[] = {[LANE_WINDOW_DEVICE] = "the device's window",
                                        [LANE_WINDOW_DESTINATION] = "a destination's window",
                                        [LANE_WINDOW_TENANT] = "a tenant's window"};
    return NAMES[n->scope];
}

static uint64_t limit_of(uint64_t limit)
{
    return limit == 0 ? PLAY_UNLIMITED : limit;
}

/* One request that is larger than the whole window goes alone. */
static void look_at_window(struct window_looks *k, const struct window *n, const char *who)
{
    const uint64_t gid[2] = {WINDOW_GET(n->gid[0]), WINDOW_GET(n->gid[1])};
    const uint64_t ops = WINDOW_GET(n->ops), bytes = WINDOW_GET(n->bytes);
    if (memcmp(k->gid, gid, sizeof gid) != 0)
        *k = (struct window_looks){.gid = {gid[0], gid[1]}};
    if (!play_limit_holds(&k->ops, limit_of(WINDOW_GET(n->limit_ops)), ops))
        play_violation(who, "%s is of %llu requests, and %llu are in flight", name_scope(n),
                       (unsigned long long)WINDOW_GET(n->limit_ops), (unsigned long long)ops);
    if (!play_limit_holds(&k->bytes, limit_of(WINDOW_GET(n->limit_bytes)), bytes) && ops > 1)
        play_violation(who, "%s is of %llu bytes, and %llu are in flight in %llu requests",
                       name_scope(n), (unsigned long long)WINDOW_GET(n->limit_bytes),
                       (unsigned long long)bytes, (unsigned long long)ops);
}

static void look_at_windows(struct play_lane_looks *k, const struct lane *l, uint32_t tenants,
                            const char *who)
{
    look_at_window(&k->device, l->device_window, who);
    for (uint32_t i = 0; i < tenants; i++)
        look_at_window(&k->of_tenant[i], &l->tenant_windows[i], who);
    for (uint32_t i = 0; i < flows_ever(l); i++)
        look_at_window(&k->of_flow[i], &l->flow_windows[i], who);
}

/* ops: 0, where it is part of another's work request. */
static void count_request(struct window_looks *k, uint64_t bytes, uint64_t ops)
{
    k->ops_there += ops;
    k->bytes_there += bytes;
}

/* What is out, as its queue pairs know it. */
static void count_posted(struct play_lane_looks *k, const struct lane *l)
{
    for (uint32_t i = 0; i < l->phys_room; i++) {
        const struct physical_qp *p = &l->phys[i];
        for (uint32_t at = p->head; p->qp != NULL && at != p->tail; at++) {
            const struct wr *w = *ring_at(l, p, at);
            if (w == NULL || w->kind != WR_WORKER)
                continue;
            count_request(&k->device, w->length, !w->rides);
            count_request(&k->of_tenant[w->session->tenant_slot], w->length, !w->rides);
            count_request(&k->of_flow[w->flow->window - l->flow_windows], w->length, !w->rides);
        }
    }
}

/* The first request of a VQP that waits at a window is in those before that one. */
static void count_waiting(struct play_lane_looks *k, const struct lane *l, const struct session *s)
{
    for (uint32_t i = 0; i < s->vqps_high; i++) {
        const struct vqp *q = &s->vqps[i];
        if (q->in > 0)
            count_request(&k->of_tenant[s->tenant_slot], q->wants, 1);
        if (q->in > 1)
            count_request(&k->of_flow[q->flow->window - l->flow_windows], q->wants, 1);
    }
}

static void compare_window(struct window_looks *k, const struct window *n, const char *who)
{
    const uint64_t ops = WINDOW_GET(n->ops), bytes = WINDOW_GET(n->bytes);
    if (ops != k->ops_there || bytes != k->bytes_there)
        play_violation(who, "%s counts %llu requests of %llu bytes, and there are %llu of %llu",
                       name_scope(n), (unsigned long long)ops, (unsigned long long)bytes,
                       (unsigned long long)k->ops_there, (unsigned long long)k->bytes_there);
    k->ops_there = k->bytes_there = 0;
}

static void recount_windows(struct play_lane_looks *k, const struct lane *l, const char *who)
{
    count_posted(k, l);
    for (uint32_t i = 0; i < lane_session_places(l); i++)
        if (l->sessions[i].state != SESSION_NONE && l->sessions[i].state != SESSION_AWAY)
            count_waiting(k, l, &l->sessions[i]);
    compare_window(&k->device, l->device_window, who);
    for (uint32_t i = 0; i < k->tenants; i++)
        compare_window(&k->of_tenant[i], &l->tenant_windows[i], who);
    for (uint32_t i = 0; i < flows_ever(l); i++)
        compare_window(&k->of_flow[i], &l->flow_windows[i], who);
}

/* ---- quotas */

static uint64_t bound_of(uint32_t most)
{
    return most == UINT32_MAX ? PLAY_UNLIMITED : most;
}

static void look_at_quotas(struct play_lane_looks *k, const struct lane *l, uint32_t tenants,
                           const char *who)
{
    for (uint32_t i = 0; i < tenants; i++) {
        const struct lane_quota *q = &l->config.quotas[i];
        if (!play_limit_holds(&k->tenant[i].vqps, bound_of(q->max_vqps), q->vqps))
            play_violation(who, "a tenant has %u VQPs, and a quota of %u", q->vqps, q->max_vqps);
        if (!play_limit_holds(&k->tenant[i].mrs, bound_of(q->max_mrs), q->mrs))
            play_violation(who, "a tenant has %u regions, and a quota of %u", q->mrs, q->max_mrs);
    }
}

/* A region is its tenant's from when it is asked for, and no more when it is withdrawn. Virtual
 * queue pairs on which its lane READs large messages no worker has made. */
static void count_session(struct tenant_looks *k, const struct session *s)
{
    for (uint32_t i = 0; i < s->vqps_high && i < s->max_vqps; i++)
        k->vqps_there += s->vqps[i].state != VQP_FREE;
    for (uint32_t i = 0; i < lane_region_places(s); i++)
        k->mrs_there += s->regions[i].lease.state == LANE_LEASE_LIVE;
    k->mrs_there += (s->registering.place != NULL) + (s->lending.tag != 0);
}

static void recount_quotas(struct play_lane_looks *k, const struct lane *l, const char *who)
{
    for (uint64_t i = 0; i < l->config.max_sessions; i++)
        if (l->sessions[i].state != SESSION_NONE)
            count_session(&k->tenant[l->sessions[i].tenant_slot], &l->sessions[i]);
    for (uint32_t i = 0; i < k->tenants; i++) {
        struct tenant_looks *t = &k->tenant[i];
        const struct lane_quota *q = &l->config.quotas[i];
        const bool several = l->res.mr_table->owners != NULL; /* lanes, which have one quota */
        const bool enough = q->vqps >= t->vqps_there && q->mrs >= t->mrs_there;
        if (!enough || (!several && (q->vqps != t->vqps_there || q->mrs != t->mrs_there)))
            play_violation(
                who, "a tenant's quota counts %u VQPs and %u regions, and there are %u and %u",
                q->vqps, q->mrs, t->vqps_there, t->mrs_there);
        t->vqps_there = t->mrs_there = 0;
    }
}

/* ---- what operators are shown */

static void recount_waits(const struct session *s, const char *who)
{
    const struct session_shown *shown = &s->memory->shown;
    uint32_t there[VQP_WAITS] = {0}, queued = 0;
    for (uint32_t i = 0; i < s->vqps_high; i++) {
        there[s->vqps[i].wait]++;
        queued += s->vqps[i].queue.count;
    }
    for (int why = WAIT_NOTHING + 1; why < VQP_WAITS; why++)
        if (there[why] != atomic_load(&shown->waits[why]))
            play_violation(who, "a worker is shown with %u VQPs that wait for %s, and has %u",
                           atomic_load(&shown->waits[why]), schema_waits[why].word, there[why]);
    if (queued != atomic_load(&shown->queued))
        play_violation(who, "a worker is shown with %u requests in queues, and has %u",
                       atomic_load(&shown->queued), queued);
}

static void recount_all_waits(const struct lane *l, const char *who)
{
    for (uint64_t i = 0; i < l->config.max_sessions; i++)
        if (l->sessions[i].state != SESSION_NONE)
            recount_waits(&l->sessions[i], who);
}

/* ---- credits */

/* What peers were promised, whatever they say: that is no more than they were granted and is not
 * over, and together what the lane counts. */
static void recount_credits(const struct exchange *x, const char *who)
{
    uint32_t promised = 0;
    for (uint32_t i = 0; i < x->config.peers; i++) {
        const struct credit_account *a = &x->all[i].account;
        if (a->promised > a->granted - a->window.first)
            play_violation(who, "a peer is promised %u receives, and is granted %u that are open",
                           a->promised, a->granted - a->window.first);
        promised += a->promised;
    }
    if (promised != x->bank.promised)
        play_violation(who, "a lane has promised %u receives, and counts %u", promised,
                       x->bank.promised);
}

/* ---- all */

void play_lane_look(struct play_lane_looks *looks, const struct lane *lane, uint32_t tenants,
                    const char *who)
{
    const bool counts = looks->looks++ % COUNT_EACH == 0;
    const uint32_t most = counts || tenants > looks->tenants ? looks->tenants : tenants;
    look_at_quotas(looks, lane, most, who);
    if (counts) {
        recount_quotas(looks, lane, who);
        recount_all_waits(lane, who);
        if (lane->messages != NULL)
            recount_credits(&lane->messages->exchange, who);
    }
    if (!WINDOW_GET(lane->windows_on))
        return;
    look_at_windows(looks, lane, most, who);
    if (counts)
        recount_windows(looks, lane, who);
}
