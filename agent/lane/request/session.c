/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: how they begin and end, and what the lane keeps of them. */
#include "request/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lane_state.h"
#include "request/active.h"
#include "request/control_ops.h"
#include "request/dedicated_mr.h"
#include "request/ending.h"
#include "request/lodgers.h"
#include "request/lending.h"
#include "request/region.h"
#include "request/revoke.h"
#include "request/withdraw.h"
#include "resolve/lookup.h"
#include "schedule/vqp.h"
#include "schema/wake.h"
#include "session_state.h"
#include "transmit/lane_events.h"

/* ---- life */

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
    m->vqps = calloc(max_vqps + LANE_OWN_VQPS, sizeof m->vqps[0]);
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
    for (uint32_t i = 0; i < max_vqps + LANE_OWN_VQPS; i++)
        m->vqps[i].index = i;
    return m;
}

void lane_memory_set_tenant(struct lane_memory *m, const char *name)
{
    memcpy(m->tenant, name, strnlen(name, LANE_TENANT_NAME)); /* behind which there are zeros */
}

int lane_memory_let_move(struct lane_memory *m)
{
    if (m->handed == NULL)
        m->handed = calloc(1, sizeof *m->handed);
    return m->handed != NULL ? 0 : -ENOMEM;
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
    free(m->handed);
    free(m);
}

static void show_session(const struct session *s, const struct lane_session *add)
{
    struct session_shown *shown = &add->memory->shown;
    shown->rw = add->rw;
    shown->ro = add->ro;
    shown->sq_slots = add->sq_slots;
    shown->cq_slots = add->cq_slots;
    shown->max_inflight = add->max_inflight;
    atomic_store_explicit(&shown->inflight, &s->inflight, memory_order_release);
}

/* A request names its VQP by 16 bits. */
static uint32_t count_places(uint32_t max_vqps)
{
    return max_vqps <= UINT16_MAX + 1 - LANE_OWN_VQPS ? max_vqps + LANE_OWN_VQPS : max_vqps;
}

void lane_session_fill(struct lane *l, struct session *s, const struct lane_session *add)
{
    const struct session begun = {
        .state = SESSION_LIVE,
        .look = LOOK_TAIL,
        .id = s->id,
        .rw = add->rw,
        .ro = add->ro,
        .ring = (const uint8_t *)add->rw + SCHEMA_SQ_OFFSET,
        .cqes = (struct schema_cqe *)((uint8_t *)add->ro + SCHEMA_CQ_OFFSET),
        .sq_mask = add->sq_slots - 1,
        .room_kept = add->sq_slots - schema_room_awaited(add->sq_slots),
        .cq_mask = add->cq_slots - 1,
        .tenant = add->tenant,
        .tenant_slot = add->tenant_slot,
        .quarantined = l->culprits[add->tenant_slot].quarantined,
        .of = &l->actives[add->tenant_slot],
        .window = &l->tenant_windows[add->tenant_slot],
        .max_vqps = add->max_vqps,
        .vqp_places = count_places(add->max_vqps),
        .max_regions = add->max_mrs,
        .quota = add->quota,
        .memory = add->memory,
        .arenas = 1,
        .caps = &l->res.caps,
    };
    session_fill(s, &begun);
    s->arena[0] = add->arena;
    s->free_wr = add->memory->free_wr;
    s->vqps = add->memory->vqps;
    s->regions = add->memory->regions;
    s->grants = add->memory->grants;
    show_session(s, add);
}

int lane_session_add(struct lane *l, const struct lane_session *add)
{
    if (add->memory == NULL || add->id >= l->config.max_sessions ||
        add->tenant_slot >= l->config.max_tenants || l->sessions[add->id].state != SESSION_NONE)
        return -EINVAL;
    struct session *s = &l->sessions[add->id];
    add->memory->grant_seed = l->seed;
    lane_session_fill(l, s, add);
    COUNT(l, sessions, 1);
    lane_session_activate(l, s);
    return 0;
}

void lane_session_end(struct lane *l, struct session *s, uint32_t reason, bool fault)
{
    if (s->state != SESSION_LIVE && s->state != SESSION_DOOMED)
        return;
    if (s->leaves || s->lodger) {
        lane_session_leave_is_off(l, s, reason);
        if (s->lodger)
            return;
    }
    s->state = SESSION_ENDING;
    s->end = END_BEGUN;
    s->ends_for = reason;
    s->ends_by_fault = fault;
    lane_control_forget(l, s);
    session_hold(s, 0);
    lane_lookup_wait_no_more(l, s);
    lane_revocations_forget(l, s);
    lane_dedicated_forget(l, s);
    lane_lending_forget(l, s);
    lane_session_leave_due(l, s);
    lane_ending_join(l, s);
}

void lane_sessions_end_doomed(struct lane *l)
{
    struct session *doomed;
    while ((doomed = l->doomed) != NULL) {
        l->doomed = doomed->next_doomed;
        lane_session_end(l, doomed, doomed->doomed, true);
    }
}

enum {
    DUE_LOOKS = 64, /* at sessions, in a pass */
    DUE = 4,        /* of which so many have regions that go on */
    DUE_SHARED = 1
};

/* Of a session of which nothing more is to be waited for here. */
static bool is_over(struct lane *l, struct session *s)
{
    if (s->state == SESSION_ENDING)
        return lane_ending_is_due(l, s);
    if (s->leaves)
        return lane_session_has_left(l, s);
    return l->now_ns >= s->due_ns && !lane_withdrawals_go_on(l, s);
}

void lane_sessions_due(struct lane *l)
{
    uint32_t left = lane_is_shared(l) ? DUE_SHARED : DUE;
    for (uint32_t n = l->due_count < DUE_LOOKS ? l->due_count : DUE_LOOKS; n > 0 && left > 0; n--) {
        struct session *s = TAILQ_FIRST(&l->due);
        left -= s->state == SESSION_LIVE && l->now_ns >= s->due_ns;
        lane_session_leave_due(l, s);
        if (!is_over(l, s))
            lane_session_join_due(l, s);
        else
            l->did++;
    }
    l->did += left == 0; /* others may be due too */
}
