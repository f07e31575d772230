/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "service_private.h"

static bool is_live(void *user, const char *id)
{
    const struct meta_service *s = user;
    struct meta_node_view view;
    return meta_directory_show(s->directory, id, 0, &view) == 0 && view.state == META_NODE_LIVE;
}

/* ---- liveness */

void meta_service_at(struct meta_service *s, uint64_t now, uint64_t wall_ms)
{
    s->at = now;
    s->at_wall_ms = wall_ms;
}

uint64_t meta_service_wall_ms(const struct meta_service *s, uint64_t at)
{
    return at >= s->at ? s->at_wall_ms + (at - s->at) / BASE_NS_PER_MS
                       : s->at_wall_ms - (s->at - at) / BASE_NS_PER_MS;
}

void meta_service_announce(struct meta_service *s, const char *node, const char *who, uint64_t now,
                           struct meta_liveness_event *event)
{
    if (s->liveness == NULL)
        return;
    event->time_ms = meta_service_wall_ms(s, now);
    event->revision = s->resources != NULL ? meta_resources_revision(s->resources) : 0;
    snprintf(event->node, sizeof event->node, "%s", node);
    snprintf(event->who, sizeof event->who, "%s", who);
    meta_liveness_add(s->liveness, event);
}

/* before: what the node was until now. */
static void announce_live(struct meta_service *s, const struct meta_node_view *before,
                          const struct meta_registration *r, uint64_t now)
{
    if (before->state == META_NODE_LIVE && before->incarnation == r->incarnation)
        return;
    meta_service_announce(s, r->id, "", now,
                          &(struct meta_liveness_event){.incarnation = r->incarnation,
                                                        .state = META_LIVENESS_LIVE,
                                                        .from = before->state,
                                                        .from_incarnation = before->incarnation});
}

struct lapsing {
    struct meta_service *s;
    uint64_t now;
};

static void announce_lapse(void *user, const struct meta_lapse *lapse)
{
    const struct lapsing *l = user;
    if (lapse->elsewhere)
        return;
    l->s->count.expiries++;
    const bool heard = lapse->from == META_NODE_LIVE;
    meta_service_announce(l->s, lapse->id, "", l->now,
                          &(struct meta_liveness_event){
                              .incarnation = lapse->incarnation,
                              .state = META_LIVENESS_EXPIRED,
                              .from = lapse->from,
                              .from_incarnation = lapse->incarnation,
                              .heard_ms = heard ? meta_service_wall_ms(l->s, lapse->heard) : 0});
}

void meta_service_heard_expiry(struct meta_service *s, const struct meta_lapse *lapse, uint64_t now)
{
    announce_lapse(&(struct lapsing){s, now}, lapse);
}

void meta_service_lapse(struct meta_service *s, uint64_t now)
{
    const uint64_t before = s->count.expiries;
    uint32_t lapsed =
        meta_directory_lapse(s->directory, now, announce_lapse, &(struct lapsing){s, now});
    if (lapsed == 0)
        return;
    s->names_stale = true;
    if (s->responders != NULL)
        meta_responders_sweep(s->responders, is_live, s);
    if (s->count.expiries != before)
        meta_world_log(s->world, BASE_LOG_INFO, "nodes expired", "count=%" PRIu64,
                       s->count.expiries - before);
}

/* ---- what clients ask for */

void meta_service_store_failed(struct meta_service *s, const char *what, const char *name,
                               uint64_t now, const struct base_errbuf *err)
{
    uint32_t suppressed;
    s->count.store_errors++;
    if (base_log_allow(&s->store_log, now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(s->world, BASE_LOG_ERROR, "the store failed",
                       "while=\"%s\" name=%s error=\"%s\" suppressed=%u", what, name, err->text,
                       suppressed);
}

int meta_service_check(struct meta_service *s, const struct meta_registration *r,
                       struct meta_verdict *verdict)
{
    int status = meta_directory_check(s->directory, r, verdict);
    s->count.stale += status == -ESTALE;
    s->count.taken += status == -EEXIST;
    s->count.full += status == -ENOSPC;
    return status;
}

/* Of pools that the node no longer has; of a life before all. */
static void drop_readers(struct meta_service *s, const struct meta_registration *r,
                         const struct meta_verdict *verdict)
{
    uint16_t pools[META_STORE_NODE_ENDPOINTS];
    uint32_t count = verdict->known_incarnation == r->incarnation ? r->endpoint_count : 0;
    for (uint32_t i = 0; i < count; i++)
        pools[i] = r->endpoint[i].pool;
    meta_responders_drop(s->responders, r->id, pools, count);
}

void meta_service_registered(struct meta_service *s, const struct meta_registration *r,
                             const struct meta_verdict *verdict, uint64_t now)
{
    struct meta_node_view before = {.state = META_NODE_FREE};
    (void)meta_directory_show(s->directory, r->id, now, &before);
    meta_directory_apply(s->directory, r, now);
    s->names_stale |= before.state != META_NODE_LIVE || before.incarnation != r->incarnation;
    announce_live(s, &before, r, now);
    if (s->responders != NULL)
        drop_readers(s, r, verdict);
    s->count.registrations++;
    if (verdict->write)
        meta_world_log(s->world, BASE_LOG_INFO, "node registered",
                       "node=%s incarnation=%u endpoints=%u", r->id, r->incarnation,
                       r->endpoint_count);
}

void meta_service_removed(struct meta_service *s, const char *id, const char *who, uint64_t now)
{
    struct meta_node_view view;
    if (meta_directory_show(s->directory, id, 0, &view) != 0)
        return;
    (void)meta_directory_remove(s->directory, id);
    s->names_stale = true;
    meta_service_announce(s, id, who, now,
                          &(struct meta_liveness_event){.incarnation = view.incarnation,
                                                        .state = META_LIVENESS_REMOVED,
                                                        .from = view.state,
                                                        .from_incarnation = view.incarnation});
    if (s->responders != NULL)
        meta_responders_drop(s->responders, id, NULL, 0);
    s->count.removals++;
    meta_world_log(s->world, BASE_LOG_INFO, "node removed", "node=%s", id);
}
