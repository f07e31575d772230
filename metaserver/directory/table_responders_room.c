/* SPDX-License-Identifier: Apache-2.0 */
/* How many table responders first and further lanes may have, and which go where there are too few.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "table_responders_private.h"

void meta_responders_count_fresh(struct meta_responders *r,
                                 const struct meta_responder_request *request, int more)
{
    *(request->peer.lane == 0 ? &r->fresh : &r->fresh_further) += (uint32_t)more;
}

/* ---- who makes room: the node that asks, as far as it has what can go; for a first lane others,
 * of what their further ones have */

/* A further lane of that node: the last in its order. */
static uint32_t find_own_further(const struct meta_responders *r, const char *id)
{
    const struct responder_owner *owner;
    uint32_t best = NONE;
    for (uint32_t at = meta_responder_index_place(&r->kept, id);
         (owner = meta_responder_index_at(&r->kept, at)) != NULL && strcmp(owner->id, id) == 0;
         at++)
        best = owner->lane != 0 ? at : best;
    return best;
}

enum { LOOKS = 512 }; /* at those of some nodes, if any of these has one */

/* Of the node that has the most of them, of those that are looked at: the last in its order. */
static uint32_t choose_further(struct meta_responders *r)
{
    const uint32_t count = r->in_state[KEPT];
    const struct responder_owner *before = NULL;
    uint32_t best = NONE, most = 0, own = 0, n = 0;
    for (; n < count && (n < LOOKS || best == NONE); n++) {
        const uint32_t at = (r->hand + n) % count;
        const struct responder_owner *owner = meta_responder_index_at(&r->kept, at);
        if (before == NULL || strcmp(owner->id, before->id) != 0)
            own = 0;
        before = owner;
        own += owner->lane != 0;
        if (owner->lane != 0 && own > most) {
            most = own;
            best = at;
        }
    }
    r->hand = count > 0 ? (r->hand + n) % count : 0;
    return best;
}

void meta_responders_take_further(struct meta_responders *r,
                                  const struct meta_responder_request *request)
{
    uint32_t suppressed, at = find_own_further(r, request->id);
    if (at == NONE)
        at = choose_further(r);
    const struct responder_owner *owner = meta_responder_index_at(&r->kept, at);
    if (base_log_allow(&r->taken_log, r->now_ns, 10 * BASE_NS_PER_S, 3, &suppressed))
        meta_world_log(r->world, BASE_LOG_WARN,
                       "a further lane's queue pair goes, for a first one: the device has too few",
                       "node=%s pool=%u lane=%u for=%s suppressed=%u", owner->id, owner->pool,
                       owner->lane, request->id, suppressed);
    meta_responder_note_taken(&r->responders[owner - r->kept.owner], request);
    r->count.taken++;
    meta_responders_end_kept(r, at, true); /* its agent READs until it hears of that */
}

/* Whether a first lane's request may have what a further one has. */
static bool may_take(const struct meta_responders *r, const struct meta_responder_request *request)
{
    return find_own_further(r, request->id) != NONE || !meta_responders_took_lately(r, request);
}

/* The one that the request replaces goes first: its agent has given it up. */
bool meta_responders_make_room(struct meta_responders *r,
                               const struct meta_responder_request *request)
{
    const uint32_t former =
        meta_responder_index_find(&r->kept, request->id, request->peer.pool, request->peer.lane);
    if (former != NONE)
        meta_responders_end_kept(r, former, false);
    else if (request->peer.lane == 0 && r->further > 0 && may_take(r, request))
        meta_responders_take_further(r, request);
    else
        return false;
    return true;
}

/* ---- how many there may be */

/* First lanes that have one, or are to. */
static uint32_t count_first(const struct meta_responders *r)
{
    return r->in_state[KEPT] - r->further + r->fresh;
}

/* How many others may: no more than there is room for beside first ones. */
static uint32_t further_room(const struct meta_responders *r)
{
    const uint32_t first = count_first(r), all = meta_responders_shared(r);
    const uint32_t left = first < all ? all - first : 0;
    return left < r->further_limit ? left : r->further_limit;
}

/* Whether one more needs what a further one has, or is to have. */
static bool is_crowded(const struct meta_responders *r)
{
    return count_first(r) + r->further + r->fresh_further >= meta_responders_shared(r);
}

bool meta_responders_is_full(const struct meta_responders *r,
                             const struct meta_responder_request *request)
{
    if (request->peer.lane != 0)
        return r->further + r->fresh_further >= further_room(r);
    return count_first(r) >= r->limit || (is_crowded(r) && !may_take(r, request));
}

int meta_responders_say_full(const struct meta_responders *r,
                             struct meta_responder_request *request)
{
    if (request->peer.lane == 0 && count_first(r) < r->limit && r->further > 0)
        return base_err(&request->err, -ENOSPC,
                        "this pool, or too many of its node, got a queue pair of another node's "
                        "further lane of late, and there is none left: ask again in a minute");
    return base_err(&request->err, -ENOSPC,
                    "all %" PRIu32
                    " queue pairs that this metaserver has for %s are in use: remove "
                    "nodes that are gone, or raise max_endpoints if the device has more",
                    request->peer.lane == 0 ? r->limit : further_room(r),
                    request->peer.lane == 0 ? "readers" : "further lanes");
}
