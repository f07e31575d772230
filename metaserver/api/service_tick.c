/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver does by itself: it begins with what the store holds, and does what is due. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/service.h"
#include "service_private.h"

struct loading {
    struct meta_service *s;
    uint64_t now;
};

static int load_one(void *user, const struct meta_store_node *node)
{
    struct loading *l = user;
    return meta_directory_restore(l->s->directory, node, l->now);
}

int meta_service_load(struct meta_service *s, uint64_t now, struct base_errbuf *err)
{
    struct loading l = {s, now};
    err->text[0] = '\0';
    s->at = now;
    int status = meta_store_load(s->store, load_one, &l, err);
    memcpy(s->store_id, s->store->id, sizeof s->store_id);
    s->hearing.generation = s->store->generation;
    if (status == -ENOSPC)
        return base_err(
            err, status,
            "the store holds more nodes or endpoints than max_endpoints allows: raise it");
    if (status == -EEXIST)
        return base_err(err, status,
                        "the store names one endpoint twice: restore it from a backup");
    if (status == 0 && s->resources != NULL)
        status = meta_service_load_resources(s, err);
    if (status == 0)
        status = meta_service_load_names(s, s->store, now, err);
    if (status == 0 && s->resources != NULL)
        meta_service_note_loaded(s);
    return status;
}

/* By what it is answered then an agent hears which queue pairs have broken. One that follows
 * another metaserver hears it when it renews its lease. */
static void ask_for_renewals(struct meta_service *s)
{
    const char *id;
    if (s->responders == NULL)
        return;
    while ((id = meta_responders_broken(s->responders)) != NULL)
        meta_watch_ask_renewal(s, id);
}

/* Whether any client waits for what it has asked for: it may hang up, and nothing tells. */
static bool has_clients(const struct meta_service *s)
{
    return s->writes.first != NULL || !LIST_EMPTY(&s->proxies) || s->queries.count > 0;
}

uint64_t meta_service_due(const struct meta_service *s)
{
    const bool targets_changed =
        s->window_targets != 0 && s->targets_as_of != meta_directory_changes(s->directory);
    if (has_clients(s) || targets_changed)
        return 0;
    const uint64_t parts[] = {meta_directory_due(s->directory), meta_watches_due(s),
                              meta_service_tidy_due(s),         meta_service_raise_due(s),
                              meta_service_names_due(s),        meta_service_bury_due(s),
                              meta_service_settle_due(s),       meta_service_probe_due(s)};
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        due = parts[i] < due ? parts[i] : due;
    return due;
}

void meta_service_tick(struct meta_service *s, uint64_t now, uint64_t wall_ms)
{
    meta_service_at(s, now, wall_ms);
    meta_service_lapse(s, now);
    if (s->resources != NULL && meta_service_refresh_window_targets(s))
        meta_watches_wake(s);
    ask_for_renewals(s);
    meta_watches_beat(s, now);
    meta_service_tidy(s, now);
    meta_service_names_tick(s, now);
    meta_service_raise_again(s, now);
    meta_service_bury(s, now);
    meta_service_settle(s, now);
    meta_service_probe(s, now);
}
