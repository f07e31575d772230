/* SPDX-License-Identifier: Apache-2.0 */
/* Regions with registrations of their own: KEDGE_MR_FENCED, and all but KEDGE_MR_LEASE_ONLY on a
 * device that keeps no deadlines.
 *
 * Of these the registration itself goes before the memory is its owner's, so that the device
 * refuses whatever comes later, from a machine that stood still too. An ordinary one's goes when
 * its lease is over, and nobody is refused who could know better; a fenced one's at once. The
 * control side makes and ends the registrations, since that may block; the worker's next requests
 * stand behind its own. */
#include "request/dedicated_mr.h"

#include <errno.h>

#include "base/assert.h"
#include "lane_state.h"
#include "request/lease_moves.h"
#include "request/lending.h"
#include "request/mr_shares.h"
#include "request/region.h"
#include "request/reply.h"
#include "session_state.h"
#include "transmit/lane_events.h"

uint32_t lane_dedicated_ask(struct lane *l, const struct session *s, const struct schema_sq_desc *d)
{
    const uint32_t tag = ++l->fences;
    l->did++; /* so that the control side hears of it */
    lane_event_push(
        l, &(struct lane_event){.kind = LANE_EVENT_WANT_MR,
                                .session = s->id,
                                .want_mr = {.tag = tag,
                                            .arena = d->reg_mr.arena,
                                            .access = d->reg_mr.access & 0xffff,
                                            .fenced = (d->reg_mr.access & SCHEMA_REG_FENCED) != 0,
                                            .offset = d->reg_mr.offset,
                                            .length = d->reg_mr.length}});
    return tag;
}

void lane_dedicated_want(struct lane *l, struct session *s, struct region *place,
                         const struct schema_sq_desc *d)
{
    s->registering.place = place;
    s->registering.asked = *d;
    s->registering.tag = lane_dedicated_ask(l, s, d);
}

static void want_dereg(struct lane *l, struct session *s, uint32_t arena, uint32_t rkey,
                       uint32_t tag)
{
    l->did++; /* so that the control side hears of it */
    s->deregging++;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_WANT_DEREG,
                                            .session = s->id,
                                            .fence = {.rkey = rkey, .tag = tag, .arena = arena}});
}

void lane_dedicated_ready(struct lane *l, const struct lane_command *c)
{
    struct session *s = &l->sessions[c->session];
    uint32_t vkey = 0;
    uint8_t secret[16] = {0};
    if (s->state != SESSION_LIVE) /* it has ended meanwhile: the control side ends this too */
        return;
    if (c->mr.tag == s->lending.tag) {
        if (!lane_lending_ready(l, s, c))
            want_dereg(l, s, s->lending.awaited, c->mr.rkey, ++l->fences);
        return;
    }
    struct region *place = s->registering.place;
    BASE_ASSERT(place != NULL && s->registering.tag == c->mr.tag);
    s->registering.place = NULL;
    if (c->mr.status != 0) {
        lane_mr_share_give(l, s);
        lane_session_reply(l, s, c->mr.status, c->mr.reason, 0, 0, NULL);
        return;
    }
    const struct schema_sq_desc *d = &s->registering.asked;
    const struct lane_arena at = {.rkey = c->mr.rkey, .iova = c->mr.iova};
    int status = lane_region_publish(l, s, place, d, &at, &vkey, secret);
    if (status != 0)
        want_dereg(l, s, d->reg_mr.arena, c->mr.rkey, ++l->fences);
    lane_session_reply(l, s, status, 0, vkey, 0, secret);
}

void lane_dedicated_let_go(struct lane *l, struct session *s, struct region *region)
{
    if (region->by != 0 && region->lease.state == LANE_LEASE_WITHDRAWING)
        s->own_withdrawn--;
    lane_lease_move(&region->lease, LEASE_LET_GO);
    region->tag = ++l->fences;
    lane_region_show(region);
    want_dereg(l, s, region->lease.arena, region->rkey, region->tag);
}

void lane_dedicated_forget(struct lane *l, struct session *s)
{
    if (s->registering.place != NULL)
        lane_mr_share_give(l, s);
    if (s->lending.tag != 0)
        lane_mr_share_give(l, s);
    s->lending.tag = 0;
    s->registering.place = NULL;
    s->registering.held = false;
}
