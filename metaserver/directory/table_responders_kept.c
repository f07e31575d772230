/* SPDX-License-Identifier: Apache-2.0 */
/* Which responders pools of nodes keep, and when these go. */
#include <string.h>

#include "base/assert.h"
#include "table_responders_private.h"

/* Its responder, which belongs to no request any more. */
static struct responder *take_responder(struct meta_responders *r,
                                        struct meta_responder_request *request)
{
    BASE_ASSERT(request->status == 0 && request->responder != NONE);
    struct responder *p = &r->responders[request->responder];
    BASE_ASSERT(p->state == READY && p->request == request);
    p->request = NULL;
    request->responder = NONE;
    if (request->fresh)
        meta_responders_count_fresh(r, request, -1);
    return p;
}

static bool is_further(const struct meta_responders *r, const struct responder *p)
{
    return r->kept.owner[meta_responder_number(p)].lane != 0;
}

/* It is kept no more. */
static void end_one(struct responder *p)
{
    p->owner->further -= is_further(p->owner, p);
    meta_responder_end(p);
}

void meta_responders_end_kept(struct meta_responders *r, uint32_t at, bool unheard)
{
    struct responder *p = &r->responders[meta_responder_index_take(&r->kept, at)];
    p->unheard = unheard;
    end_one(p);
}

/* No agent has so many lanes: who says so loses its own. */
static void bound_node(struct meta_responders *r, const char *id, const struct responder *newest)
{
    const struct responder_owner *owner;
    const uint32_t first = meta_responder_index_place(&r->kept, id);
    uint32_t at = first;
    while ((owner = meta_responder_index_at(&r->kept, at)) != NULL && strcmp(owner->id, id) == 0)
        at++;
    if (at - first <= META_RESPONDERS_OF_NODE)
        return;
    owner = meta_responder_index_at(&r->kept, first);
    const bool is_newest = owner == &r->kept.owner[meta_responder_number(newest)];
    end_one(&r->responders[meta_responder_index_take(&r->kept, is_newest ? first + 1 : first)]);
}

void meta_responders_keep(struct meta_responders *r, struct meta_responder_request *request)
{
    struct responder *p = take_responder(r, request);
    uint32_t former = meta_responder_index_put(&r->kept, request->id, request->peer.pool,
                                               request->peer.lane, meta_responder_number(p));
    meta_responder_move(p, KEPT);
    r->further += is_further(r, p);
    r->untold |= p->broken;
    meta_responder_note_kept(p, request->id);
    if (former != NONE)
        end_one(&r->responders[former]);
    bound_node(r, request->id, p);
    if (r->in_state[KEPT] > meta_responders_shared(r) && r->further > 0)
        meta_responders_take_further(r, request);
    meta_responders_serve(r);
}

void meta_responders_discard(struct meta_responders *r, struct meta_responder_request *request)
{
    meta_responder_end(take_responder(r, request));
    meta_responders_serve(r);
}

static bool is_among(const uint16_t *pools, uint32_t count, uint16_t pool)
{
    while (count > 0 && pools[count - 1] != pool)
        count--;
    return count > 0;
}

bool meta_responders_has(const struct meta_responders *r, const char *id)
{
    const struct responder_owner *owner =
        meta_responder_index_at(&r->kept, meta_responder_index_place(&r->kept, id));
    return owner != NULL && strcmp(owner->id, id) == 0;
}

void meta_responders_drop(struct meta_responders *r, const char *id, const uint16_t *but,
                          uint32_t count)
{
    const struct responder_owner *owner;
    uint32_t at = meta_responder_index_place(&r->kept, id);
    while ((owner = meta_responder_index_at(&r->kept, at)) != NULL && strcmp(owner->id, id) == 0)
        if (is_among(but, count, owner->pool))
            at++;
        else
            meta_responders_end_kept(r, at, but == NULL);
}

void meta_responders_sweep(struct meta_responders *r, bool (*live)(void *user, const char *id),
                           void *user)
{
    const struct responder_owner *owner;
    uint32_t at = 0;
    while ((owner = meta_responder_index_at(&r->kept, at)) != NULL)
        if (live(user, owner->id))
            at++;
        else
            meta_responders_end_kept(r, at, true);
}

struct meta_responders_counts meta_responders_count(const struct meta_responders *r)
{
    struct meta_responders_counts count = r->count;
    count.kept = r->in_state[KEPT];
    count.spare = r->in_state[SPARE];
    count.resting = r->in_state[RESTING];
    count.all = r->capacity - r->in_state[FREE];
    count.asked = r->asked;
    return count;
}
