/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver shows of this life of the node, asked for when its store may have been put back
 * to what it was before: a name that is there again, of a region that has it no more, is taken
 * back, by its grant's digest, so that one that is published meanwhile stays. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "bounds.h"
#include "due.h"
#include "metaserver_call.h"
#include "publication_calls.h"
#include "register.h"

enum {
    PAGE = 32,
    PAGES_MAX = 64,
    STRANGE_LISTS = 16, /* so often in vain for tenants of which nothing is known here, yet */
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

/* Of that tenant's name, which nobody here has. NULL: there is no room now beside what is kept for
 * others; or *strange: the tenant is not here, or not yet. */
static struct publication *add_orphan(struct agent *a, const char *tenant, const char *reader,
                                      const char *name, bool *strange)
{
    struct publication *p = NULL;
    uint32_t slot = 0;
    while (slot < AGENT_TENANT_SLOTS && (a->tenants.at[slot].state == AGENT_TENANT_FREE ||
                                         strcmp(a->tenants.at[slot].config.name, tenant) != 0))
        slot++;
    *strange = slot == AGENT_TENANT_SLOTS;
    if (*strange || !agent_publications_have_room(a, slot + 1))
        return NULL;
    struct publications_account *t = agent_publications_account(a, a->tenants.at[slot].config.id);
    if (t != NULL)
        (void)agent_publication_add(a, tenant, reader, name, t, &p);
    return p;
}

/* False: it cannot be dealt with now, or something of it is out, which may say otherwise: it is to
 * be looked at again. */
static bool take_item(struct publications_listing *l, const json_t *item)
{
    struct agent *a = l->agent;
    const char *tenant = json_string_value(json_object_get(item, "tenant")),
               *reader = json_string_value(json_object_get(item, "for")),
               *name = json_string_value(json_object_get(item, "name"));
    char own[BASE_DIGEST_NAME], digest[BASE_DIGEST_NAME];
    reader = reader != NULL ? reader : "";
    if (!agent_publication_read_digest(item, digest) || tenant == NULL || name == NULL ||
        strlen(tenant) >= AGENT_NAME || strlen(reader) >= AGENT_NAME ||
        schema_name_check(name) != 0)
        return true;
    struct publication *p = agent_publication_find(a, tenant, reader, name);
    bool strange = false;
    if (p == NULL)
        p = add_orphan(a, tenant, reader, name, &strange);
    l->strange |= strange;
    if (p == NULL)
        return strange;
    if (agent_publication_digest(p, own) && strcmp(own, digest) == 0)
        return true;
    struct publication_at *at = &p->at[l->metaserver];
    if (at->asking)
        return false;
    at->has = PUBLICATION_OTHER;
    at->absent = false;
    at->incarnation = a->incarnation;
    at->next_ns = 0;
    memcpy(at->digest, digest, sizeof at->digest);
    return true;
}

static void ask_again(struct publications_listing *l)
{
    struct world *w = l->agent->world;
    uint32_t random = 0;
    l->backoff_ms = l->backoff_ms == 0                   ? BACKOFF_MS
                    : l->backoff_ms * 2 < BACKOFF_MAX_MS ? l->backoff_ms * 2
                                                         : BACKOFF_MAX_MS;
    (void)world_random(w, &random, sizeof random); /* else none */
    l->next_ns =
        world_now_ns(w) + (l->backoff_ms - random % (l->backoff_ms / 2 + 1)) * BASE_NS_PER_MS;
    l->wanted = true;
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
    if (more) {
        l->wanted = true;
    } else if (l->missed || (l->strange && ++l->strange_lists < STRANGE_LISTS)) {
        l->anew = true;
        ask_again(l);
    } else {
        l->backoff_ms = 0;
    }
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
        ask_again(l);
    agent_publications_turn(l->agent);
}

static void begin_list(struct agent *a, uint32_t metaserver)
{
    struct publications_listing *l = &a->publications.listing[metaserver];
    char url[METASERVER_URL_BYTES + QUERY_BYTES];
    if (l->anew || l->incarnation != a->incarnation) {
        l->cursor[0] = '\0';
        l->pages = 0;
        l->missed = l->strange = false;
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
        ask_again(l);
}

/* What has never been published is nowhere. */
void agent_publications_list(struct agent *a, uint32_t metaserver)
{
    struct publications_listing *l = &a->publications.listing[metaserver];
    if (a->publications.begun == 0 || !agent_publications_know_digests(a, metaserver))
        return;
    l->wanted = l->anew = true;
    l->next_ns = 0;
    l->strange_lists = 0;
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
