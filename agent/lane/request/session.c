/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: how they begin and end, and what the lane keeps of them. */
#include "request/session.h"

#include <errno.h>
#include <stdlib.h>

#include "lane_state.h"
#include "request/active.h"
#include "request/control_ops.h"
#include "request/dedicated_mr.h"
#include "request/region.h"
#include "request/revoke.h"
#include "request/withdraw.h"
#include "resolve/lookup.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/events.h"

/* ---- life
 * -------------------------------------------------------------------------------------------- */

/* A power of two. */
static uint32_t buckets_for(uint32_t n)
{
    uint32_t buckets = 16;
    while (buckets < n)
        buckets *= 2;
    return buckets;
}

static int make_buckets(struct lane_memory *m, uint32_t max_grants, uint32_t max_mrs)
{
    m->region_mask = buckets_for(max_mrs) - 1;
    m->grant_mask = buckets_for(max_grants) - 1;
    m->regions_taken = calloc(max_mrs / 64 + 1, sizeof m->regions_taken[0]);
    m->region_first = calloc(m->region_mask + 1, sizeof m->region_first[0]);
    m->region_next = calloc(max_mrs, sizeof m->region_next[0]);
    m->grant_first = calloc(m->grant_mask + 1, sizeof m->grant_first[0]);
    m->grant_next = calloc(max_grants, sizeof m->grant_next[0]);
    return m->regions_taken == NULL || m->region_first == NULL || m->region_next == NULL ||
                   m->grant_first == NULL || m->grant_next == NULL
               ? -ENOMEM
               : 0;
}

struct lane_memory *lane_memory_new(uint32_t max_grants, uint32_t max_inflight, uint32_t max_vqps,
                                    uint32_t max_mrs)
{
    struct lane_memory *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->wrs = calloc(max_inflight, sizeof m->wrs[0]);
    m->vqps = calloc(max_vqps, sizeof m->vqps[0]);
    m->regions = calloc(max_mrs, sizeof m->regions[0]);
    m->grants = calloc(max_grants, sizeof m->grants[0]);
    if (m->wrs == NULL || m->vqps == NULL || m->regions == NULL || m->grants == NULL ||
        make_buckets(m, max_grants, max_mrs) != 0) {
        lane_memory_free(m);
        return NULL;
    }
    for (uint32_t i = max_inflight; i > 0; i--) {
        m->wrs[i - 1].next = m->free_wr;
        m->free_wr = &m->wrs[i - 1];
    }
    for (uint32_t i = 0; i < max_vqps; i++)
        m->vqps[i].index = i;
    return m;
}

void lane_memory_free(struct lane_memory *m)
{
    if (m == NULL)
        return;
    free(m->wrs);
    free(m->vqps);
    free(m->regions);
    free(m->grants);
    free(m->regions_taken);
    free(m->region_first);
    free(m->region_next);
    free(m->grant_first);
    free(m->grant_next);
    free(m);
}

int session_add(struct lane *l, const struct lane_session *add)
{
    if (add->memory == NULL || add->id >= l->config.max_sessions ||
        add->tenant_slot >= l->config.max_tenants || l->sessions[add->id].state != SESSION_NONE)
        return -EINVAL;
    struct session *s = &l->sessions[add->id];
    *s = (struct session){
        .state = SESSION_LIVE,
        .id = add->id,
        .rw = add->rw,
        .ro = add->ro,
        .ring = (const uint8_t *)add->rw + SCHEMA_SQ_OFFSET,
        .cqes = (struct schema_cqe *)((uint8_t *)add->ro + SCHEMA_CQ_OFFSET),
        .sq_mask = add->ro->sq_slots - 1,
        .cq_mask = add->ro->cq_slots - 1,
        .max_inflight = add->max_inflight,
        .tenant = add->tenant,
        .tenant_slot = add->tenant_slot,
        .quarantined = l->culprits[add->tenant_slot].quarantined,
        .window = &l->tenant_windows[add->tenant_slot],
        .max_vqps = add->max_vqps,
        .max_regions = add->max_mrs,
        .quota = add->quota,
        .memory = add->memory,
        .arenas = 1,
        .caps = &l->res.fab->caps,
    };
    s->arena[0] = add->arena;
    s->free_wr = add->memory->free_wr;
    s->vqps = add->memory->vqps;
    s->regions = add->memory->regions;
    s->grants = add->memory->grants;
    COUNT(l, sessions, 1);
    session_activate(l, s);
    return 0;
}

void session_end(struct lane *l, struct session *s, uint32_t reason, bool fault)
{
    if (s->state != SESSION_LIVE && s->state != SESSION_DOOMED)
        return;
    s->state = SESSION_ENDING;
    control_forget(l, s);
    s->control_op = 0;
    lookups_forget(s);
    for (uint32_t i = 0; i < s->max_vqps; i++)
        vqp_destroy(l, &s->vqps[i]);
    revocations_forget(l, s);
    dedicated_forget(l, s);
    withdrawals_forget(s);
    regions_remove_all(l, s);
    atomic_store_explicit(&s->ro->ended, reason, memory_order_release);
    atomic_fetch_add_explicit(&s->ro->wake, 1, memory_order_release);
    l->wake(l->wake_user, &s->ro->wake);
    if (fault)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_FAULT,
                                                .session = s->id,
                                                .reason = reason});
    session_await(l, s);
}

void sessions_end_doomed(struct lane *l)
{
    struct session *doomed;
    while ((doomed = l->doomed) != NULL) {
        l->doomed = doomed->next_doomed;
        session_end(l, doomed, doomed->doomed, true);
    }
}

static void forget_session(struct lane *l, struct session *s)
{
    l->stalled_count -= s->stalled;
    for (struct session **at = &l->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == s) {
            *at = s->next_dirty;
            break;
        }
    session_deactivate(l, s);
    COUNT(l, sessions, -1);
    regions_free_all(s);
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_SESSION_OVER, .session = s->id});
    *s = (struct session){.id = s->id};
}

/* Deregistrations and ends whose time has come; in a pass of the lane the first thing, so that the
 * clock was read after what was withdrawn in the one before. */
void sessions_due(struct lane *l)
{
    for (struct session **at = &l->due; *at != NULL;) {
        struct session *s = *at;
        const bool ending = s->state == SESSION_ENDING;
        if (ending && s->due_ns == 0) {
            s->due_ns = l->now_ns + (s->exported ? region_wait_ns(l) : 0);
            regions_show_due(s, s->due_ns);
        }
        if (l->now_ns < s->due_ns || (ending && s->inflight > 0) ||
            (!ending && withdrawals_go_on(l, s))) {
            at = &s->next_due;
            continue;
        }
        *at = s->next_due;
        s->in_due = 0;
        l->did++;
        if (ending)
            forget_session(l, s);
    }
}
