/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver shows of this life of the node, asked for when its store may have been put back
 * to what it was before: a name that is there again, of a region that has it no more, is taken
 * back, by its grant's digest, so that one that is published meanwhile stays. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "due.h"
#include "metaserver_call.h"
#include "publication_calls.h"
#include "register.h"

enum {
    PAGE = 32,
    PAGES_MAX = 64,
    CROWDED_MAX_MS = 300000, /* the longest pause before a list of which nothing finds room */
    LIST_AGAIN_MS = 1000,    /* at least, whatever the metaserver says of its store */
    QUERY_BYTES = sizeof((struct publications_listing *)NULL)->cursor + 64
};

static const struct registration *registration_of(const struct agent *a, uint32_t metaserver)
{
    return &a->pools[0]->registration[metaserver];
}

bool agent_publications_know_digests(const struct agent *a, uint32_t metaserver)
{
    return registration_of(a, metaserver)->standing.names_version >= 2;
}

/* Names that this metaserver says to have, that nobody here has, and that are being taken back. */
static uint32_t count_returned(const struct publications_listing *l)
{
    uint32_t n = 0;
    for (const struct publication *p = l->agent->publications.first; p != NULL; p = p->next)
        n += p->account == NULL && p->at[l->metaserver].has != PUBLICATION_NOTHING;
    return n;
}

/* Of a name which nobody here has. NULL: there is no room for it now. */
static struct publication *add_returned(struct publications_listing *l, const char *tenant,
                                        const char *reader, const char *name)
{
    struct publication *p = agent_publication_find(l->agent, tenant, reader, name);
    if (p != NULL && (p->account != NULL || p->at[l->metaserver].has != PUBLICATION_NOTHING))
        return p;
    if (count_returned(l) >= PUBLICATIONS_RETURNED ||
        (p == NULL && agent_publication_add(l->agent, tenant, reader, name, NULL, &p) != 0)) {
        l->crowded++;
        return NULL;
    }
    l->took = true;
    return p;
}

/* False: something of it is out, which may say otherwise: it is to be looked at again. */
static bool take_item(struct publications_listing *l, const json_t *item)
{
    const char *tenant = json_string_value(json_object_get(item, "tenant")),
               *reader = json_string_value(json_object_get(item, "for")),
               *name = json_string_value(json_object_get(item, "name"));
    char own[BASE_DIGEST_NAME], digest[BASE_DIGEST_NAME];
    reader = reader != NULL ? reader : "";
    if (!agent_publication_read_digest(item, digest) || tenant == NULL || name == NULL ||
        strlen(tenant) >= AGENT_NAME || strlen(reader) >= AGENT_NAME ||
        schema_name_check(name) != 0)
        return true;
    struct publication *p = add_returned(l, tenant, reader, name);
    if (p == NULL || (agent_publication_digest(p, own) && strcmp(own, digest) == 0))
        return true;
    struct publication_at *at = &p->at[l->metaserver];
    if (at->asking)
        return false;
    if (at->has == PUBLICATION_NOTHING || strcmp(at->digest, digest) != 0)
        at->next_ns = 0; /* else it goes by how the last try ended */
    at->has = PUBLICATION_OTHER;
    at->absent = false;
    at->incarnation = l->agent->incarnation;
    memcpy(at->digest, digest, sizeof at->digest);
    return true;
}

static void ask_again(struct publications_listing *l, uint64_t most_ms)
{
    struct world *w = l->agent->world;
    uint32_t random = 0;
    l->backoff_ms = l->backoff_ms == 0            ? BACKOFF_MS
                    : l->backoff_ms * 2 < most_ms ? l->backoff_ms * 2
                                                  : most_ms;
    (void)world_random(w, &random, sizeof random); /* else none */
    l->next_ns =
        world_now_ns(w) + (l->backoff_ms - random % (l->backoff_ms / 2 + 1)) * BASE_NS_PER_MS;
    l->wanted = true;
}

static void note_crowd(struct publications_listing *l)
{
    struct world *w = l->agent->world;
    const bool begins = l->crowded > 0 && !l->took && !l->is_stuck;
    uint32_t suppressed;
    l->without_room = l->crowded;
    l->is_stuck = l->crowded > 0 && !l->took;
    if (begins && base_log_allow(&l->log, world_now_ns(w), 600 * BASE_NS_PER_S, 2, &suppressed))
        world_log(w, BASE_LOG_WARN,
                  "a metaserver has names for this node which nobody here has, and does not take "
                  "back those that it was asked to: it is asked for them less and less often",
                  "metaserver=\"%s\" names=%" PRIu32 " room=%d suppressed=%" PRIu32,
                  registration_of(l->agent, l->metaserver)->url, l->crowded, PUBLICATIONS_RETURNED,
                  suppressed);
}

/* Of one that says the same over and over, and takes nothing back, nothing is to be hoped soon. */
static void end_list(struct publications_listing *l)
{
    note_crowd(l);
    if (l->missed || l->crowded > 0) {
        l->anew = true;
        ask_again(l, l->missed || l->took ? BACKOFF_MAX_MS : CROWDED_MAX_MS);
    } else {
        l->backoff_ms = 0;
    }
}

static void take_page(struct publications_listing *l, const char *body)
{
    json_t *root = json_loads(body, JSON_REJECT_DUPLICATES, NULL), *item;
    const char *cursor = json_string_value(json_object_get(root, "next_cursor"));
    const bool more = cursor != NULL && strlen(cursor) < sizeof l->cursor && ++l->pages < PAGES_MAX;
    size_t i;
    json_array_foreach(json_object_get(root, "regions"), i, item) l->missed |= !take_item(l, item);
    snprintf(l->cursor, sizeof l->cursor, "%s", more ? cursor : "");
    json_decref(root);
    if (more)
        l->wanted = true;
    else
        end_list(l);
}

static void on_listed(void *user, const struct http_answer *answer)
{
    struct publications_listing *l = user;
    l->asking = false;
    if (l->agent->stopping)
        return;
    if (l->incarnation != l->agent->incarnation)
        l->wanted = true; /* that was said of another life */
    else if (answer->status == 200 && !l->anew)
        take_page(l, answer->body);
    else if (answer->status < 0 || answer->status == 408 || answer->status == 429 ||
             answer->status >= 500)
        ask_again(l, BACKOFF_MAX_MS);
    agent_publications_turn(l->agent);
}

static void begin_list(struct agent *a, uint32_t metaserver)
{
    struct publications_listing *l = &a->publications.listing[metaserver];
    char url[METASERVER_URL_BYTES + QUERY_BYTES];
    if (l->anew || l->incarnation != a->incarnation) {
        l->cursor[0] = '\0';
        l->pages = 0;
        l->missed = l->took = false;
        l->crowded = 0;
        l->begun_ns = world_now_ns(a->world);
    }
    l->anew = false;
    const bool next = l->cursor[0] != '\0';
    snprintf(url, sizeof url, "%s/v1/nodes/%s/regions?incarnation=%u&limit=%u%s%s",
             registration_of(a, metaserver)->url, a->config.node, a->incarnation, PAGE,
             next ? "&cursor=" : "", l->cursor);
    l->agent = a;
    l->metaserver = metaserver;
    l->incarnation = a->incarnation;
    l->wanted = false;
    const struct http_call c = agent_metaserver_call(a, NULL, url, CALL_MS);
    l->asking = world_call(a->world, &c, on_listed, l, NULL) == 0;
    if (!l->asking)
        ask_again(l, BACKOFF_MAX_MS);
}

/* What has never been published is nowhere. One whose list found no room is asked no sooner for
 * saying that its store was put back once more. */
void agent_publications_list(struct agent *a, uint32_t metaserver)
{
    struct publications_listing *l = &a->publications.listing[metaserver];
    if (a->publications.begun == 0 || !agent_publications_know_digests(a, metaserver))
        return;
    l->wanted = l->anew = true;
    if (l->begun_ns != 0)
        l->next_ns = due_last(l->next_ns, l->begun_ns + LIST_AGAIN_MS * BASE_NS_PER_MS);
    agent_publications_note_due(a, DUE_NOW);
}

bool agent_publications_are_listed(const struct agent *a)
{
    for (uint32_t i = 0; i < a->config.metaservers; i++)
        if (a->publications.listing[i].wanted)
            return true;
    return false;
}

void agent_publications_list_begin(struct agent *a)
{
    const uint64_t now = world_now_ns(a->world);
    for (uint32_t i = 0; i < a->config.metaservers; i++) {
        const struct publications_listing *l = &a->publications.listing[i];
        if (!l->wanted || l->asking || registration_of(a, i)->state != REGISTRATION_DONE)
            continue;
        if (l->next_ns > now)
            agent_publications_note_due(a, l->next_ns);
        else
            begin_list(a, i);
    }
}
