/* SPDX-License-Identifier: Apache-2.0 */
#include "common_looks.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ledger.h"
#include "metaserver/resources_json.h"

enum {
    NODES = 64,     /* that are looked at */
    DIFFERS_S = 10, /* so long one may have something else than the store that it hears */
    HEARD_S = 12,   /* who has heard of a node for so long has said so */
    WORDS = 160,
    BODY_BYTES = 8192 /* more than a resource takes */
};

static struct seen {
    const struct play_metad *m; /* NULL: there is none */
    uint64_t differs_ns;        /* since when it has something else; 0: it has not */
    uint32_t nodes;
    struct {
        struct meta_store_life life;
        uint64_t live_ns; /* since when it shows that life as live */
    } node[NODES];
} seen[COMMON_MEMBERS];

void play_common_looks_begin(void)
{
    memset(seen, 0, sizeof seen);
}

/* ---- whether it has what the store has */

struct comparison {
    const struct play_metad *m;
    uint32_t nodes, resources, names;
    char words[WORDS]; /* what is otherwise; "": nothing */
};

static bool has_endpoints(const struct meta_node_view *v, const struct meta_store_node *n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->endpoint_count; i++)
        for (uint32_t k = 0; k < v->endpoint_count; k++)
            found += v->endpoint[k].pool == n->endpoint[i].pool &&
                     memcmp(v->endpoint[k].gid, n->endpoint[i].gid, 16) == 0;
    return found == n->endpoint_count && v->endpoint_count == n->endpoint_count;
}

static int compare_node(void *user, const struct meta_store_node *n)
{
    struct comparison *c = user;
    struct meta_node_view v = {.incarnation = 0};
    c->nodes++;
    const bool is =
        meta_directory_show(c->m->service.directory, n->id, play_host_now_ns(c->m->host), &v) == 0;
    if (!is || v.incarnation != n->incarnation || n->expired != (v.state == META_NODE_EXPIRED))
        (void)snprintf(c->words, WORDS, "node %s with incarnation %u%s, and it has %u%s", n->id,
                       n->incarnation, n->expired ? ", expired" : "", is ? v.incarnation : 0,
                       is && v.state == META_NODE_EXPIRED ? ", expired" : "");
    else if (!n->expired && !has_endpoints(&v, n))
        (void)snprintf(c->words, WORDS, "node %s with %u endpoints, and it has other ones (%u)",
                       n->id, n->endpoint_count, v.endpoint_count);
    return 0;
}

static bool holds_same(const struct meta_resource *is, const struct meta_store_resource *stored)
{
    struct base_text text;
    base_text_init(&text, BODY_BYTES);
    meta_json_write_stored(&text, is);
    const bool same = strcmp(base_text_str(&text), stored->body) == 0;
    base_text_fini(&text);
    return same;
}

static int compare_resource(void *user, const struct meta_store_resource *r)
{
    struct comparison *c = user;
    enum meta_resource_kind kind;
    c->resources++;
    const struct meta_resource *is =
        meta_resource_kind_parse(r->kind, &kind) == 0
            ? meta_resources_find(c->m->service.resources, kind, r->name)
            : NULL;
    if (is == NULL || is->revision != r->revision)
        (void)snprintf(c->words, WORDS, "%s %s with revision %llu, and it has %llu", r->kind,
                       r->name, (unsigned long long)r->revision,
                       (unsigned long long)(is != NULL ? is->revision : 0));
    else if (!holds_same(is, r))
        (void)snprintf(c->words, WORDS, "%s %s with revision %llu, and it has other contents",
                       r->kind, r->name, (unsigned long long)r->revision);
    return 0;
}

static int compare_name(void *user, const struct meta_store_name *n)
{
    struct comparison *c = user;
    const struct meta_store_name *is = meta_names_find(c->m->service.names, n->tenant, n->name);
    c->names++;
    if (is == NULL || !meta_store_name_equals(is, n))
        (void)snprintf(c->words, WORDS,
                       "\"%.16s\" of %.40s as a region's of %.32s, and it has %.32s's", n->name,
                       n->tenant, n->node, is != NULL ? is->node : "nobody");
    return 0;
}

static int pass_over(void *user, const struct meta_store_change *change)
{
    (void)user, (void)change;
    return 0;
}

static void compare_counts(struct comparison *c)
{
    const struct meta_service *s = &c->m->service;
    uint32_t resources = 0;
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++)
        resources += meta_resources_count(s->resources, (enum meta_resource_kind)kind);
    const uint32_t nodes = meta_directory_count(s->directory).nodes;
    if (c->words[0] == '\0' && (nodes != c->nodes || resources != c->resources))
        (void)snprintf(c->words, WORDS, "%u nodes and %u settings, and it has %u and %u", c->nodes,
                       c->resources, nodes, resources);
    if (c->words[0] == '\0' && meta_names_count(s->names) != c->names)
        (void)snprintf(c->words, WORDS, "%u names of regions, and it has %u", c->names,
                       meta_names_count(s->names));
}

static void compare(struct comparison *c)
{
    struct base_errbuf err;
    struct play_process *before = play_process_enter(NULL);
    const struct meta_store_visitor visitor = {
        .resource = compare_resource, .change = pass_over, .name = compare_name, .user = c};
    (void)meta_store_load(c->m->service.store, compare_node, c, &err);
    (void)meta_store_load_resources(c->m->service.store, &visitor, &err);
    compare_counts(c);
    play_process_leave(before);
}

static void look_at_contents(struct seen *s)
{
    struct comparison c = {.m = s->m};
    compare(&c);
    if (c.words[0] == '\0')
        s->differs_ns = 0;
    else if (s->differs_ns == 0)
        s->differs_ns = play_now_ns();
    else if (play_now_ns() > s->differs_ns + DIFFERS_S * BASE_NS_PER_S)
        play_violation(s->m->process->name, "for %d s it has not had what the store has: %s",
                       DIFFERS_S, c.words);
}

/* ---- what it makes of what it hears */

static uint32_t find_incarnation(const struct play_metad *m, const char *id)
{
    struct meta_node_view v;
    const int status = meta_directory_show(m->service.directory, id, play_host_now_ns(m->host), &v);
    return status == 0 ? v.incarnation : 0;
}

static int count_node(void *user, const struct meta_store_node *node)
{
    (void)node;
    ++*(uint32_t *)user;
    return 0;
}

/* Nothing of it is under way then, so that it has what is stored and nothing else. */
static void look_at_snapshot(const struct play_metad *m, struct meta_store *snapshot)
{
    struct base_errbuf err;
    uint32_t stored = 0;
    const uint32_t is = meta_directory_count(m->service.directory).nodes;
    (void)meta_store_load(snapshot, count_node, &stored, &err);
    if (is != stored)
        play_violation(m->process->name, "it is told of all %u nodes that are stored, and has %u",
                       stored, is);
}

void play_common_hear(struct play_metad *m, const struct meta_store_heard *heard)
{
    uint32_t before[META_STORE_NEWS_NODES];
    const bool news = heard->kind == META_STORE_HEARD_NEWS && heard->removed_count == 0;
    for (uint32_t i = 0; news && i < heard->node_count; i++)
        before[i] = find_incarnation(m, heard->nodes[i].id);
    meta_service_hear(&m->service, heard, play_host_now_ns(m->host));
    if (heard->kind == META_STORE_HEARD_SNAPSHOT)
        look_at_snapshot(m, heard->snapshot);
    for (uint32_t i = 0; news && i < heard->node_count; i++)
        if (find_incarnation(m, heard->nodes[i].id) < before[i])
            play_violation(m->process->name, "it shows an earlier life of %s than %u",
                           heard->nodes[i].id, before[i]);
}

/* ---- of whom it hears */

static void look_at_node(struct seen *s, const struct meta_node_view *v)
{
    uint32_t i = 0;
    while (i < s->nodes && strcmp(s->node[i].life.id, v->id) != 0)
        i++;
    if (i == NODES)
        return;
    if (i == s->nodes)
        memcpy(s->node[s->nodes++].life.id, v->id, sizeof v->id);
    const bool went_on = v->state == META_NODE_LIVE && s->node[i].live_ns != 0 &&
                         s->node[i].life.incarnation == v->incarnation;
    if (!went_on)
        s->node[i].live_ns = v->state == META_NODE_LIVE ? play_now_ns() : 0;
    s->node[i].life.incarnation = v->incarnation;
}

static void look_at_nodes(struct seen *s)
{
    struct meta_node_view v;
    char after[META_STORE_ID_BYTES] = "";
    while (meta_directory_after(s->m->service.directory, after, play_host_now_ns(s->m->host), &v) ==
           0) {
        look_at_node(s, &v);
        memcpy(after, v.id, sizeof after);
    }
}

static bool shows_live(const struct play_metad *m, const struct meta_store_life *life)
{
    struct meta_node_view v;
    return m->ready &&
           meta_directory_show(m->service.directory, life->id, play_host_now_ns(m->host), &v) ==
               0 &&
           v.state == META_NODE_LIVE && v.incarnation == life->incarnation;
}

void play_common_look_expired(const struct meta_store_life *life)
{
    for (uint32_t i = 0; i < COMMON_MEMBERS; i++) {
        const struct seen *s = &seen[i];
        for (uint32_t k = 0; s->m != NULL && k < s->nodes; k++)
            if (strcmp(s->node[k].life.id, life->id) == 0 && s->node[k].live_ns != 0 &&
                s->node[k].life.incarnation == life->incarnation && play_common_lives(i) &&
                shows_live(s->m, life) &&
                play_now_ns() > s->node[k].live_ns + HEARD_S * BASE_NS_PER_S)
                play_violation(s->m->process->name,
                               "%s is expired, and it has heard of it for %d s", life->id, HEARD_S);
    }
}

/* What it once said holds against a node as soon as the others hear nothing of it. */
static void look_at_votes(const struct seen *s)
{
    for (uint32_t k = 0; k < s->nodes; k++)
        if (s->node[k].live_ns != 0 && shows_live(s->m, &s->node[k].life) &&
            play_now_ns() > s->node[k].live_ns + HEARD_S * BASE_NS_PER_S &&
            meta_store_hub_has_vote(s->m->common.store, &s->node[k].life))
            play_violation(s->m->process->name,
                           "the store has of it that %s is silent, and it has heard of it for %d s",
                           s->node[k].life.id, HEARD_S);
}

/* ---- */

static bool hears_all(const struct play_metad *m)
{
    const struct play_common_road *r = play_common_road(m->settings.number);
    return !r->cut_there && !r->cut_back && !r->deaf && r->slow_ns == 0 && r->lost_percent == 0 &&
           !meta_service_is_behind(&m->service, play_host_now_ns(m->host));
}

void play_common_look_at(struct play_metad *m)
{
    struct seen *s = &seen[m->settings.number];
    const bool runs = m->ready && !m->told_to_stop && m->common.store != NULL &&
                      m->process->owner.paused_until_ns < play_now_ns();
    if (s->m != m)
        *s = (struct seen){.m = m};
    if (!runs) { /* it may be anywhere */
        s->nodes = 0;
        s->differs_ns = 0;
        return;
    }
    look_at_nodes(s);
    look_at_votes(s);
    if (hears_all(m))
        look_at_contents(s);
    else
        s->differs_ns = 0;
}

void play_common_look_away(const struct play_metad *m)
{
    struct seen *s = &seen[m->settings.number];
    if (s->m == m)
        s->m = NULL;
}
