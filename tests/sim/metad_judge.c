/* SPDX-License-Identifier: Apache-2.0 */
#include "metad_judge.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "common_looks.h"
#include "history.h"
#include "kept.h"
#include "ledger.h"
#include "lives.h"
#include "published.h"
#include "registrations.h"
#include "schema/name_record.h"
#include "schema/token.h"
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

/* Whose it is what was kept (kept.h): of a common store, and of what was removed there. */
static const char STORE[] = "store", REMOVED[] = "removed";

const char *play_metad_keeps_in(const struct play_metad *m)
{
    return m->settings.shared ? STORE : m->host->name;
}

/* ---- what the common store has, and what those who share it answer */

/* Since then its store is asked something. */
struct play_metad_question {
    struct play_metad_question *next;
    const struct play_call *call;
    uint64_t asked_ns;
};

enum { NAME = 64, BEHIND_S = 10, WENT_ON_S = 12 };

static void note_leaving(const struct play_metad *m, const char *id, bool leaves)
{
    struct meta_node_view view;
    if (meta_directory_show(m->service.directory, id, play_host_now_ns(m->host), &view) == 0)
        for (uint32_t i = 0; i < view.endpoint_count; i++)
            play_lives_left(m->settings.shared ? NULL : m->host->name, view.endpoint[i].gid,
                            leaves);
}

/* Of a transaction that was to do so: a later life stays. */
static void note_removed(const struct play_metad *m, const char *id)
{
    struct base_errbuf err;
    struct kept kept = {.id = id, .expired = true};
    (void)meta_store_load(m->service.store, find_kept, &kept, &err);
    if (kept.incarnation != 0)
        return;
    note_leaving(m, id, true);
    if (play_kept_last(STORE, id) > play_kept_last(REMOVED, id))
        play_kept_number(REMOVED, id, play_kept_last(STORE, id));
    play_kept_leaving(STORE, id);
    play_kept_left(STORE, id, true);
}

static void look_at_expiries(const struct play_metad *m, const struct meta_store_job *job)
{
    struct base_errbuf err;
    for (uint32_t i = 0; i < job->outcome.expire_count; i++) {
        struct kept kept = {.id = job->txn.expire[i].id};
        (void)meta_store_load(m->service.store, find_kept, &kept, &err);
        /* It does not live any more, and nobody had removed it before. */
        if (kept.incarnation == 0 &&
            play_kept_last(REMOVED, kept.id) < job->txn.expire[i].incarnation)
            play_common_look_expired(&job->txn.expire[i]);
    }
}

void play_metad_judge_commit(void *user, const struct meta_store_job *job)
{
    struct play_metad *m = user;
    const struct meta_store_txn *t = &job->txn;
    if (job->outcome.status != 0)
        return;
    if (m->at_commit != NULL)
        play_event_after(m->at_commit, 0);
    m->at_commit = NULL;
    for (uint32_t i = 0; i < t->remove_count; i++)
        note_removed(m, t->remove[i].id);
    const uint32_t puts = t->put_count > 1 ? job->outcome.put_count : t->put_count;
    for (uint32_t i = 0; i < puts; i++)
        if (t->puts[i].status == 0)
            play_kept_number(STORE, t->puts[i].node->id, t->puts[i].node->incarnation);
    look_at_expiries(m, job);
    if (t->change != NULL)
        play_history_changed(m->process->name, t->change->kind, t->change->name,
                             job->outcome.revision, t->change->after, play_now_ns());
    play_registrations_look(m->service.store);
    play_published_look(m->process->name, m->service.store);
}

static int return_resource(void *user, const struct meta_store_resource *r)
{
    (void)user;
    play_history_returned(r->kind, r->name, r->revision);
    return 0;
}

static int note_last(void *user, const struct meta_store_change *change)
{
    uint64_t *last = user;
    *last = change->revision;
    return 0;
}

/* What nodes have done since is not kept any more, nor what was said of them. */
void play_metad_judge_put_back(struct meta_store *store)
{
    struct base_errbuf err;
    uint64_t last = 0;
    const struct meta_store_visitor visitor = {
        .resource = return_resource, .change = note_last, .user = &last};
    play_kept_forget(STORE);
    play_kept_forget(REMOVED);
    play_registrations_look(store);
    play_published_put_back(store);
    play_history_put_back_begin();
    (void)meta_store_load_resources(store, &visitor, &err);
    play_history_put_back_end(last, play_now_ns());
}

static uint64_t take_question(struct play_metad *m, const struct play_call *c)
{
    struct play_metad_question **at = &m->questions, *q;
    while ((q = *at) != NULL && q->call != c)
        at = &q->next;
    if (q == NULL)
        return 0;
    const uint64_t asked_ns = q->asked_ns;
    *at = q->next;
    free(q);
    return asked_ns;
}

void play_metad_judge_end(struct play_metad *m)
{
    for (struct play_metad_question *q = m->questions, *next; q != NULL; q = next) {
        next = q->next;
        free(q);
    }
    m->questions = NULL;
    if (m->settings.shared)
        play_common_look_away(m);
}

static void note_question(struct play_metad *m, const struct play_call *c)
{
    (void)take_question(m, c); /* of one that nobody waited for any more */
    struct play_metad_question *q = calloc(1, sizeof *q);
    BASE_ASSERT(q != NULL);
    *q = (struct play_metad_question){m->questions, c, play_now_ns()};
    m->questions = q;
}

/* Kind and name of the resource that is asked for. */
static bool is_of_resource(const struct play_call *c, char kind[NAME], char name[NAME])
{
    static const char *const KINDS[] = {"window", "pool", "token", "tenant"};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        char prefix[NAME];
        const int length = snprintf(prefix, sizeof prefix, "/v1/%ss/", KINDS[i]);
        const char *target = play_call_target(c), *rest = target + length;
        if (strncmp(target, prefix, (size_t)length) != 0 || strpbrk(rest, "/?") != NULL)
            continue;
        (void)snprintf(kind, NAME, "%s", KINDS[i]);
        (void)snprintf(name, NAME, "%s", rest);
        return true;
    }
    return false;
}

/* What it says that it knows. One whose host stood still has not had its time to learn. */
static uint64_t knows_since(const struct play_metad *m)
{
    const uint64_t now_ns = play_now_ns(), behind_ns = BEHIND_S * BASE_NS_PER_S;
    const bool went_on = m->process->owner.paused_until_ns + WENT_ON_S * BASE_NS_PER_S > now_ns ||
                         m->host->clock_at_ns + WENT_ON_S * BASE_NS_PER_S > now_ns;
    return went_on || now_ns <= behind_ns ||
                   meta_service_is_behind(&m->service, play_host_now_ns(m->host))
               ? 0
               : now_ns - behind_ns;
}

static void judge_shared(const struct play_metad *m, const struct play_call *c,
                         const struct meta_service_answer *answer, const char *body,
                         uint64_t asked_ns)
{
    char kind[NAME], name[NAME];
    if (!is_of_resource(c, kind, name))
        return;
    struct play_history_answer a = {.who = m->process->name,
                                    .life = m->life,
                                    .method = play_call_method(c),
                                    .kind = kind,
                                    .name = name,
                                    .status = answer->status,
                                    .revision = answer->revision,
                                    .body = body,
                                    .asked_ns = asked_ns,
                                    .now_ns = play_now_ns(),
                                    .since_ns = knows_since(m)};
    a.asked = play_call_body(c, &a.asked_bytes);
    play_history_judge(&a);
}

/* ---- names of regions */

/* What is asked to be published, and for which space. */
static bool read_publication(const struct play_call *c, char space[META_STORE_ID_BYTES],
                             char name[META_STORE_NAME_BYTES], struct play_published_region *out)
{
    size_t bytes;
    const char *body = play_call_body(c, &bytes);
    json_t *root = json_loadb(body, bytes, 0, NULL);
    const char *tenant = json_string_value(json_object_get(root, "tenant")),
               *reader = json_string_value(json_object_get(root, "for")),
               *called = json_string_value(json_object_get(root, "name")),
               *grant = json_string_value(json_object_get(root, "grant"));
    struct schema_token token;
    const bool read = tenant != NULL && called != NULL && grant != NULL &&
                      schema_name_space(tenant, reader != NULL ? reader : "", space) == 0 &&
                      schema_token_parse(grant, &token) == 0;
    if (read) {
        (void)snprintf(name, META_STORE_NAME_BYTES, "%s", called);
        out->key = token.vkey;
        memcpy(out->gid, token.gid, sizeof out->gid);
    }
    json_decref(root);
    return read;
}

static void judge_published(const struct play_metad *m, const struct play_call *c,
                            const struct meta_service_answer *answer, uint64_t asked_ns)
{
    static const char NODES[] = "/v1/nodes/", REGIONS[] = "/regions";
    const char *target = play_call_target(c), *rest = target + sizeof NODES - 1;
    char space[META_STORE_ID_BYTES], name[META_STORE_NAME_BYTES];
    struct play_published_region r;
    if (answer->status / 100 != 2 || strcmp(play_call_method(c), "PUT") != 0 ||
        strncmp(target, NODES, sizeof NODES - 1) != 0 ||
        strcmp(rest + strcspn(rest, "/"), REGIONS) != 0 || !read_publication(c, space, name, &r))
        return;
    play_published_given(m->process->name, space, name, &r, asked_ns);
}

/* ---- registrations */

/* Others may have written a later life of it, or have removed it, meanwhile; or the store was put
 * back. What needs no write is answered with what is known here, which is what the store had when
 * all of it was heard last: so one that stood still, or cannot hear the store, confirms what that
 * does not have any more. */
static void judge_shared_registered(const struct play_metad *m, const char *id,
                                    uint32_t incarnation, uint64_t asked_ns)
{
    const uint64_t knows_ns = m->common.knows_ns;
    if (!play_registrations_was(id, incarnation, knows_ns < asked_ns ? knows_ns : asked_ns))
        play_violation(m->process->name,
                       "%s was told that incarnation %u is registered, and the store did not have "
                       "it as alive meanwhile",
                       id, incarnation);
}

static void judge_registered(const struct play_metad *m, const char *id, uint64_t asked_ns)
{
    struct meta_node_view view;
    struct base_errbuf err;
    struct kept kept = {.id = id};
    if (m->settings.shared) {
        if (meta_directory_show(m->service.directory, id, play_host_now_ns(m->host), &view) == 0 &&
            view.state == META_NODE_LIVE)
            judge_shared_registered(m, id, view.incarnation, asked_ns);
        return;
    }
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

void play_metad_note_asked(struct play_metad *m, const struct play_call *c)
{
    char id[META_STORE_ID_BYTES];
    if (m->settings.shared)
        note_question(m, c);
    if (m->settings.shared || !is_of_node(c, "DELETE", id))
        return;
    play_kept_leaving(m->host->name, id);
    note_leaving(m, id, true);
}

void play_metad_judge_answer(struct play_metad *m, const struct play_call *c,
                             const struct meta_service_answer *answer, const char *body)
{
    char id[META_STORE_ID_BYTES];
    const int status = answer->status;
    const uint64_t asked_ns = m->settings.shared ? take_question(m, c) : 0;
    if (m->settings.shared)
        judge_shared(m, c, answer, body, asked_ns);
    if (m->settings.shared)
        judge_published(m, c, answer, asked_ns);
    if (is_of_node(c, "PUT", id) && strchr(play_call_target(c), '?') == NULL && status / 100 == 2)
        judge_registered(m, id, asked_ns);
    if (is_of_node(c, "DELETE", id) && !m->settings.shared) {
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

/* Who READs what a node has, and what is not there yet, is not told that it is not. */
static void judge_awaited(const struct play_metad *m)
{
    const struct schema_table_desc *d = meta_directory_table(m->service.directory);
    struct meta_node_view v;
    char after[META_STORE_ID_BYTES] = "", gid[BASE_GID_TEXT];
    while (meta_directory_after(m->service.directory, after, m->service.at, &v) == 0) {
        memcpy(after, v.id, sizeof after);
        for (uint32_t i = 0; v.state == META_NODE_WAITING && i < v.endpoint_count; i++) {
            struct schema_endpoint_record found;
            const size_t home = schema_endpoint_home(d, v.endpoint[i].gid, v.endpoint[i].pool);
            const uint8_t *span =
                (const uint8_t *)m->endpoint.mem.addr + home * SCHEMA_RECORD_BYTES;
            if (schema_endpoint_find(d, span, v.endpoint[i].gid, v.endpoint[i].pool, &found) ==
                -ENOENT)
                play_violation(m->process->name, "the table says that %s is nobody's, which %s has",
                               base_gid_format(v.endpoint[i].gid, gid), v.id);
        }
    }
}

void play_metad_judge_table(const struct play_metad *m)
{
    const struct schema_table_desc *d = meta_directory_table(m->service.directory);
    const uint8_t *slots = m->endpoint.mem.addr;
    const size_t count = schema_table_bytes(d->log2_slots) / SCHEMA_RECORD_BYTES;
    char gid[BASE_GID_TEXT];
    judge_awaited(m);
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
