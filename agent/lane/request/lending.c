/* SPDX-License-Identifier: Apache-2.0 */
#include "request/lending.h"

#include <errno.h>

#include "message_state.h"
#include "request/dedicated_mr.h"
#include "request/mr_shares.h"
#include "request/reg_mr.h"
#include "request/region.h"
#include "request/withdraw.h"
#include "session_state.h"

static const uint64_t AGAIN_NS = 10000000; /* after one that was refused */

static struct schema_sq_desc describe_arena(const struct session *s, uint32_t arena)
{
    return (struct schema_sq_desc){.op = SCHEMA_OP_REG_MR,
                                   .reg_mr = {.arena = arena,
                                              .length = s->arena[arena].bytes,
                                              .access = SCHEMA_RECORD_READ | REGION_LENT}};
}

/* Its senders are tried again. */
static void note_change(struct lane *l)
{
    l->changed = 1;
    l->did++;
}

static void refuse_lending(struct lane *l, struct session *s, uint32_t reason)
{
    s->lending.wants = 0;
    s->lending.refused = reason;
    s->lending.again_ns = l->now_ns + AGAIN_NS;
    note_change(l);
}

static uint32_t reason_of(int status)
{
    return status == -EDQUOT   ? SCHEMA_REASON_QUOTA_MRS
           : status == -ENOSPC ? SCHEMA_REASON_MRS
                               : SCHEMA_REASON_REGISTER;
}

static void take_region(struct lane *l, struct session *s, uint32_t arena, struct region *region)
{
    s->lending.region[arena] = region;
    s->lending.vkey[arena] = region->vkey;
    note_change(l);
}

/* 0; -EINPROGRESS: a registration is awaited, or what the worker has asked for has to come first;
 * else -errno. */
static int lend_arena(struct lane *l, struct session *s, uint32_t arena)
{
    const struct schema_sq_desc d = describe_arena(s, arena);
    const struct lane_arena at = {.rkey = s->arena[arena].rkey, .iova = s->arena[arena].iova};
    uint8_t secret[16];
    uint32_t vkey;
    if (s->registering.place != NULL || s->registering.held || (s->forced_arenas >> arena & 1) != 0)
        return -EINPROGRESS;
    struct region *region = s->regions_used < s->max_regions ? lane_region_place(s) : NULL;
    if (region == NULL)
        return -EDQUOT;
    if (!lane_mr_shares_leave_room(l, s))
        return -ENOSPC;
    if (!lane_mr_share_take(l, s))
        return -EDQUOT;
    if (lane_region_has_own(l, &d)) {
        s->lending.place = region;
        s->lending.awaited = arena;
        s->lending.tag = lane_dedicated_ask(l, s, &d);
        return -EINPROGRESS;
    }
    const int status = lane_region_publish(l, s, region, &d, &at, &vkey, secret);
    if (status == 0)
        take_region(l, s, arena, region);
    return status;
}

static void lend_wanted(struct lane *l, struct session *s)
{
    struct lending *n = &s->lending;
    for (uint32_t i = 0; i < s->arenas && n->wants != 0; i++) {
        if ((n->wants >> i & 1) == 0)
            continue;
        const int status = lending_has(n, i) ? 0 : lend_arena(l, s, i);
        if (status == -EINPROGRESS)
            return;
        if (status != 0) {
            refuse_lending(l, s, reason_of(status));
            return;
        }
        n->wants &= ~(1u << i);
    }
}

/* False: it has nothing more to do. */
static bool go_on(struct lane *l, struct session *s)
{
    struct lending *n = &s->lending;
    if (s->state != SESSION_LIVE)
        return false;
    if (n->tag != 0 || n->withdraws) /* whose end lists it again */
        return false;
    if (n->ends) {
        n->withdraws = 1;
        lane_withdrawal_of_lent(l, s);
        return n->wants != 0 && !n->withdraws;
    }
    lend_wanted(l, s);
    return n->wants != 0 && n->tag == 0;
}

void lane_lendings_go_on(struct lane *l)
{
    struct messages *m = l->messages;
    struct session *last = TAILQ_LAST(&m->lendings, lending_list);
    for (struct session *s = last; s != NULL && !TAILQ_EMPTY(&m->lendings);) {
        struct session *first = TAILQ_FIRST(&m->lendings);
        TAILQ_REMOVE(&m->lendings, first, by_lending);
        first->lending.listed = 0;
        if (go_on(l, first))
            messages_list_lending(l, first);
        if (first == last)
            return;
    }
}

bool lane_lending_ready(struct lane *l, struct session *s, const struct lane_command *c)
{
    struct lending *n = &s->lending;
    const struct schema_sq_desc d = describe_arena(s, n->awaited);
    const struct lane_arena at = {.rkey = c->mr.rkey, .iova = c->mr.iova};
    struct region *region = n->place;
    uint8_t secret[16];
    uint32_t vkey;
    int status = c->mr.status;
    n->tag = 0;
    n->place = NULL;
    if (status != 0)
        lane_mr_share_give(l, s);
    else
        status = lane_region_publish(l, s, region, &d, &at, &vkey, secret);
    if (status == 0)
        take_region(l, s, n->awaited, region);
    else
        refuse_lending(l, s, reason_of(status));
    messages_list_lending(l, s);
    if (s->registering.held && (s->forced_arenas >> s->registering.asked.reg_mr.arena & 1) == 0) {
        const struct schema_sq_desc asked = s->registering.asked; /* which may be written anew */
        s->registering.held = false;
        lane_region_register(l, s, &asked);
    }
    return status == 0 || c->mr.status != 0;
}

void lane_lending_gone(struct lane *l, struct session *s)
{
    struct lending *n = &s->lending;
    n->gone++;
    n->ends = n->withdraws = 0;
    for (uint32_t i = 0; i < LANE_SESSION_MAX_ARENAS; i++)
        n->region[i] = NULL;
    if (n->wants != 0)
        messages_list_lending(l, s);
    note_change(l);
}

void lane_lending_forget(struct lane *l, struct session *s)
{
    if (s->lending.listed)
        TAILQ_REMOVE(&l->messages->lendings, s, by_lending);
    s->lending.listed = 0;
}
