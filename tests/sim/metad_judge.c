/* SPDX-License-Identifier: Apache-2.0 */
#include "metad_judge.h"

#include <stdio.h>
#include <string.h>

#include "kept.h"
#include "ledger.h"
#include "lives.h"
#include "schema/table.h"

enum {
    OWN_POOL = 1
}; /* of an agent's file. One that is made while it runs begins a life of its own */

struct kept {
    const char *id;
    uint32_t incarnation; /* 0: it is not there */
    bool expired;         /* one that has is there, too */
};

static int find_kept(void *user, const struct meta_store_node *node)
{
    struct kept *k = user;
    if (strcmp(node->id, k->id) == 0 && (k->expired || !node->expired))
        k->incarnation = node->incarnation;
    return 0;
}

/* Of an id, also of a node that has expired since. */
uint32_t play_metad_find_stored(void *user, const char *id)
{
    const struct play_metad *m = user;
    struct base_errbuf err;
    struct kept kept = {.id = id, .expired = true};
    (void)meta_store_load(m->service.store, find_kept, &kept, &err);
    return kept.incarnation;
}

static void judge_registered(const struct play_metad *m, const char *id)
{
    struct meta_node_view view;
    struct base_errbuf err;
    struct kept kept = {.id = id};
    if (meta_directory_show(m->service.directory, id, play_host_now_ns(m->host), &view) != 0 ||
        view.state != META_NODE_LIVE || play_kept_last(m->host->name, id) == view.incarnation)
        return;
    (void)meta_store_load(m->service.store, find_kept, &kept, &err);
    if (kept.incarnation != view.incarnation)
        play_violation(m->process->name,
                       "%s was told that incarnation %u is registered, and the store has %u", id,
                       view.incarnation, kept.incarnation);
    play_kept_number(m->host->name, id, view.incarnation);
}

/* The id of a registration that is asked for so; false: something else is. */
static bool is_of_node(const struct play_call *c, const char *method, char id[META_STORE_ID_BYTES])
{
    static const char PREFIX[] = "/v1/nodes/";
    const char *target = play_call_target(c), *rest = target + sizeof PREFIX - 1;
    if (strcmp(play_call_method(c), method) != 0 ||
        strncmp(target, PREFIX, sizeof PREFIX - 1) != 0 || strchr(rest, '/') != NULL)
        return false;
    (void)snprintf(id, META_STORE_ID_BYTES, "%.*s", (int)strcspn(rest, "?"), rest);
    return true;
}

static void note_leaving(const struct play_metad *m, const char *id, bool leaves)
{
    struct meta_node_view view;
    if (meta_directory_show(m->service.directory, id, play_host_now_ns(m->host), &view) == 0)
        for (uint32_t i = 0; i < view.endpoint_count; i++)
            play_lives_left(m->host->name, view.endpoint[i].gid, leaves);
}

void play_metad_note_asked(const struct play_metad *m, const struct play_call *c)
{
    char id[META_STORE_ID_BYTES];
    if (!is_of_node(c, "DELETE", id))
        return;
    play_kept_leaving(m->host->name, id);
    note_leaving(m, id, true);
}

void play_metad_judge_answer(const struct play_metad *m, const struct play_call *c, int status)
{
    char id[META_STORE_ID_BYTES];
    if (is_of_node(c, "PUT", id) && strchr(play_call_target(c), '?') == NULL && status / 100 == 2)
        judge_registered(m, id);
    if (is_of_node(c, "DELETE", id)) {
        play_kept_left(m->host->name, id, status / 100 == 2);
        if (status / 100 != 2)
            note_leaving(m, id, false);
    }
}

static bool is_live(const struct play_metad *m, const struct schema_endpoint_record *r)
{
    struct meta_node_view v = {.id = ""};
    char after[META_STORE_ID_BYTES] = "";
    while (meta_directory_after(m->service.directory, after, play_host_now_ns(m->host), &v) == 0) {
        for (uint32_t i = 0; i < v.endpoint_count && v.state == META_NODE_LIVE; i++)
            if (v.endpoint[i].pool == r->pool && memcmp(v.endpoint[i].gid, r->gid, 16) == 0)
                return r->pool == OWN_POOL ? v.incarnation == r->incarnation
                                           : v.incarnation <= r->incarnation;
        memcpy(after, v.id, sizeof after);
    }
    return false;
}

void play_metad_judge_table(const struct play_metad *m)
{
    const struct schema_table_desc *d = meta_directory_table(m->service.directory);
    const uint8_t *slots = m->endpoint.mem.addr;
    const size_t count = schema_table_bytes(d->log2_slots) / SCHEMA_RECORD_BYTES;
    char gid[BASE_GID_TEXT];
    for (size_t i = 0; i + SCHEMA_TABLE_SPAN <= count; i++) {
        struct schema_endpoint_record r, found;
        memcpy(&r, slots + i * SCHEMA_RECORD_BYTES, sizeof r);
        if (!(r.flags & SCHEMA_RECORD_LIVE) ||
            schema_endpoint_find(d, slots + i * SCHEMA_RECORD_BYTES, r.gid, r.pool, &found) != 0)
            continue;
        if (is_live(m, &found)) {
            play_lives_shown(m->host->name, found.gid, found.pool, found.incarnation);
            continue;
        }
        play_violation(m->process->name, "the table shows %s, incarnation %u, of no live node",
                       base_gid_format(found.gid, gid), found.incarnation);
    }
}
