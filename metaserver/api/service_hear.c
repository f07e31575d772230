/* SPDX-License-Identifier: Apache-2.0 */
/* What other metaservers of the store do, put into the directory and the resources in the store's
 * order: so that all of them come to know the same. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/directory_heard.h"
#include "service_private.h"

static bool fits_here(const struct meta_hearing *h)
{
    return !h->misfits && !h->lacks_nodes && !h->lacks_names;
}

/* ---- nodes */

static void note_misfit(struct meta_service *s, const struct base_errbuf *err, uint64_t now)
{
    uint32_t suppressed;
    s->hearing.why = *err;
    s->hearing.wants_snapshot = true;
    if (base_log_allow(&s->store_log, now, 10 * BASE_NS_PER_S, 10, &suppressed))
        meta_world_log(s->world, BASE_LOG_ERROR, "what the store holds does not fit here",
                       "error=\"%s\" suppressed=%u", err->text, suppressed);
}

void meta_service_lacks(struct meta_service *s, const struct base_errbuf *err, uint64_t now)
{
    note_misfit(s, err, now);
}

void meta_service_hear_put(struct meta_service *s, const struct meta_store_node *node, uint64_t now)
{
    struct meta_directory_before before;
    struct base_errbuf err;
    if (meta_directory_hear(s->directory, node, now, &before) != 0) {
        base_err(&err, -ENOSPC,
                 "there is no room for node %s, which the other metaservers have: raise max_nodes "
                 "and max_endpoints to what they have",
                 node->id);
        s->hearing.lacks_nodes = true;
        meta_service_lacks(s, &err, now);
        return;
    }
    s->names_stale |= before.changed;
    const bool was_here = before.state == META_NODE_LIVE || before.state == META_NODE_WAITING;
    if (before.changed && s->responders != NULL && before.state == META_NODE_LIVE)
        meta_responders_drop(s->responders, node->id, NULL, 0);
    if (!before.changed || !node->expired || !was_here)
        return;
    meta_service_heard_expiry(s,
                              &(struct meta_lapse){.id = node->id,
                                                   .incarnation = node->incarnation,
                                                   .from = before.state,
                                                   .heard = before.heard},
                              now);
}

/* A later life than was meant stays. */
static void hear_removal(struct meta_service *s, const struct meta_store_life *life, uint64_t now)
{
    struct meta_node_view view;
    if (meta_directory_show(s->directory, life->id, now, &view) == 0 &&
        view.incarnation <= life->incarnation)
        meta_service_removed(s, life->id, "", now);
}

/* What comes so late that a later life has been registered here meanwhile. */
static bool is_outdated(const struct meta_service *s, const struct meta_store_node *node,
                        uint64_t now)
{
    struct meta_node_view view;
    return meta_directory_show(s->directory, node->id, now, &view) == 0 &&
           view.incarnation > node->incarnation;
}

/* ---- a snapshot */

struct ids {
    char (*id)[META_STORE_ID_BYTES]; /* in their order */
    size_t count, room;
    struct meta_service *s;
    uint64_t now;
};

static int add_id(struct ids *ids, const char *id)
{
    if (ids->count == ids->room) {
        const size_t room = ids->room == 0 ? 256 : 2 * ids->room;
        void *more = realloc(ids->id, room * sizeof *ids->id);
        if (more == NULL)
            return -ENOMEM;
        ids->id = more;
        ids->room = room;
    }
    memcpy(ids->id[ids->count++], id, sizeof *ids->id);
    return 0;
}

static int list_stored(void *user, const struct meta_store_node *node)
{
    return add_id(user, node->id);
}

static int hear_stored(void *user, const struct meta_store_node *node)
{
    const struct ids *ids = user;
    meta_service_hear_put(ids->s, node, ids->now);
    return 0;
}

/* Those that the store does not have, of whom others may have heard that they are gone. */
static int list_unknown(const struct ids *stored, struct ids *out)
{
    struct meta_node_view view;
    char after[META_STORE_ID_BYTES] = "";
    size_t at = 0;
    int status = 0;
    while (status == 0 && meta_directory_after(out->s->directory, after, out->now, &view) == 0) {
        memcpy(after, view.id, sizeof after);
        while (at < stored->count && strcmp(stored->id[at], view.id) < 0)
            at++;
        if (at == stored->count || strcmp(stored->id[at], view.id) != 0)
            status = add_id(out, view.id);
    }
    return status;
}

/* Those that are gone go first: their room may be what others need. */
static int hear_nodes(struct meta_service *s, struct meta_store *snapshot, uint64_t now,
                      struct base_errbuf *err)
{
    struct ids stored = {.s = s, .now = now}, gone = stored;
    int status = meta_store_load(snapshot, list_stored, &stored, err);
    if (status == 0)
        status = list_unknown(&stored, &gone);
    for (size_t i = 0; i < gone.count && status == 0; i++)
        meta_service_removed(s, gone.id[i], "", now);
    if (status == 0)
        status = meta_store_load(snapshot, hear_stored, &stored, err);
    free(stored.id);
    free(gone.id);
    return status == -ENOMEM ? base_err(err, status, "out of memory") : status;
}

bool meta_service_is_own_store(const struct meta_service *s, const struct meta_store *snapshot)
{
    return snapshot->id[0] == '\0' || s->store_id[0] == '\0' ||
           strcmp(snapshot->id, s->store_id) == 0;
}

/* An etcd that was emptied, and in which somebody else has begun: nothing of it is believed, so
 * that what is known of the former one is there when that comes back. */
static void refuse_snapshot(struct meta_service *s, const struct meta_store *snapshot, uint64_t now)
{
    struct base_errbuf err;
    base_err(&err, -EREMCHG,
             "the store is another one by now (%.32s, and not %.32s): was etcd emptied, or made "
             "anew? Put the former one back, or begin this metaserver again if that is meant",
             snapshot->id, s->store_id);
    s->hearing.misfits = true;
    note_misfit(s, &err, now);
}

static void hear_snapshot(struct meta_service *s, const struct meta_store_heard *heard,
                          uint64_t now)
{
    struct meta_store *snapshot = heard->snapshot;
    struct base_errbuf err = {.text = ""};
    if (!meta_service_is_own_store(s, snapshot)) {
        refuse_snapshot(s, snapshot, now);
        return;
    }
    s->hearing.lacks_nodes = s->hearing.lacks_names = false;
    int status = hear_nodes(s, snapshot, now, &err);
    if (status == 0 && s->resources != NULL)
        status = meta_service_reload_resources(s, snapshot, &err);
    if (status == 0)
        status = meta_service_load_names(s, snapshot, now, &err);
    if (heard->put_back)
        meta_service_note_put_back(s);
    s->hearing.misfits = status != 0;
    s->hearing.wants_snapshot &= status != 0 || !fits_here(&s->hearing);
    if (status != 0)
        note_misfit(s, &err, now);
    else if (s->resources != NULL)
        meta_service_raise_revision(s);
}

/* ---- all of it */

static void hear_members(struct meta_hearing *h, const struct meta_store_heard *heard, uint64_t now)
{
    bool lives = false;
    for (uint32_t i = 0; i < heard->member_count; i++)
        lives |= strcmp(heard->members[i].name, h->self.name) == 0;
    if (!lives)
        h->member_ns = 0;
    else if (h->member_ns == 0)
        h->member_ns = now;
    h->member_count =
        heard->member_count < META_STORE_MEMBERS_MAX ? heard->member_count : META_STORE_MEMBERS_MAX;
    if (h->member_count > 0)
        memcpy(h->member, heard->members, h->member_count * sizeof h->member[0]);
}

static void hear_change(struct meta_service *s, const struct meta_store_change *change,
                        uint64_t now)
{
    struct base_errbuf err;
    if (s->resources == NULL || s->hearing.misfits ||
        meta_service_hear_change(s, change, &err) == 0)
        return;
    s->hearing.misfits = true;
    note_misfit(s, &err, now);
}

void meta_service_hear(struct meta_service *s, const struct meta_store_heard *heard, uint64_t now)
{
    struct meta_hearing *h = &s->hearing;
    h->things++;
    if (fits_here(h))
        h->why.text[0] = '\0';
    switch (heard->kind) {
    case META_STORE_HEARD_SNAPSHOT:
        h->why.text[0] = '\0';
        hear_snapshot(s, heard, now);
        hear_members(h, heard, now);
        break;
    case META_STORE_HEARD_NEWS:
        for (uint32_t i = 0; i < heard->removed_count; i++)
            hear_removal(s, &heard->removed[i], now);
        for (uint32_t i = 0; i < heard->node_count; i++)
            if (!is_outdated(s, &heard->nodes[i], now))
                meta_service_hear_put(s, &heard->nodes[i], now);
        meta_service_hear_names(s, heard, now);
        if (heard->has_change)
            hear_change(s, &heard->change, now);
        break;
    case META_STORE_HEARD_MEMBERS:
        hear_members(h, heard, now);
        break;
    }
}

void meta_service_hear_nothing(struct meta_service *s, const struct base_errbuf *why, uint64_t now)
{
    struct meta_hearing *h = &s->hearing;
    const bool was_heard = h->why.text[0] == '\0';
    if (why == NULL) {
        h->heard_ns = now;
        if (!fits_here(h))
            return;
        h->why.text[0] = '\0';
        if (!was_heard)
            meta_world_log(s->world, BASE_LOG_INFO, "the store is heard again", "revision=%" PRIu64,
                           meta_resources_revision(s->resources));
        return;
    }
    if (was_heard)
        meta_world_log(s->world, BASE_LOG_WARN, "the store cannot be heard", "error=\"%s\"",
                       why->text);
    if (fits_here(h))
        h->why = *why;
}

static bool is_heard(const struct meta_hearing *h, uint64_t now)
{
    return h->heard_ns != 0 && now <= h->heard_ns + META_SERVICE_BEHIND_NS;
}

bool meta_service_is_behind(const struct meta_service *s, uint64_t now)
{
    return s->hearing.shared && (!fits_here(&s->hearing) || !is_heard(&s->hearing, now));
}

const char meta_service_open_to_all[] =
    "whoever reaches etcd may write the store, tokens too: have etcd ask for certificates or "
    "passwords, and set cert_file or user in [store]";

bool meta_service_is_open_to_all(const struct meta_service *s)
{
    return s->hearing.shared && s->hearing.shown_nothing && s->hearing.heard_ns != 0;
}

bool meta_service_knows_nodes(const struct meta_service *s, uint64_t now)
{
    const struct meta_hearing *h = &s->hearing;
    return !h->shared || (!h->misfits && !h->lacks_nodes && is_heard(h, now));
}
