/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/tenants.h"
#include "names.h"

void agent_tenants_init(struct agent_tenants *t, const struct agent_config *config)
{
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < config->tenants; i++)
        t->at[i] = (struct agent_tenant){
            .state = AGENT_TENANT_LIVE, .config = config->tenant[i], .own = config->tenant[i]};
}

static bool has_uid(const struct agent_tenant_config *c, uid_t uid)
{
    for (uint32_t i = 0; i < c->uid_ranges; i++)
        if (c->uids[i].first <= uid && uid <= c->uids[i].last)
            return true;
    return false;
}

/* Whether what both claim is a's: the file's stand first, then who was here first. */
static bool stands_before(const struct agent_tenant *a, const struct agent_tenant *b)
{
    return a->central != b->central ? !a->central : a < b;
}

static void choose_first(const struct agent_tenants *t, int i, int *found)
{
    if (*found < 0 || stands_before(&t->at[i], &t->at[*found]))
        *found = i;
}

int agent_tenants_find(const struct agent_tenants *t, uid_t uid)
{
    int found = -EACCES;
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (t->at[i].state == AGENT_TENANT_LIVE && has_uid(&t->at[i].config, uid))
            choose_first(t, i, &found);
    return found;
}

int agent_tenants_find_replaced(const struct agent_tenants *t, uid_t uid)
{
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (t->at[i].state == AGENT_TENANT_LIVE && t->at[i].central && has_uid(&t->at[i].own, uid))
            return i;
    return -ENOENT;
}

/* A token that has expired counts as none. */
static bool has_token(const struct agent_tenant_config *c, const uint8_t sha256[BASE_DIGEST_BYTES],
                      uint64_t wall_ms)
{
    bool found = false;
    for (uint32_t i = 0; i < c->tokens; i++)
        found |= base_digest_same(c->token[i].sha256, sha256) &
                 (c->token[i].expires_ms == 0 || wall_ms < c->token[i].expires_ms);
    return found;
}

int agent_tenants_find_token(const struct agent_tenants *t, const uint8_t sha256[BASE_DIGEST_BYTES],
                             uint64_t wall_ms)
{
    int found = -EACCES;
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (t->at[i].state == AGENT_TENANT_LIVE && has_token(&t->at[i].config, sha256, wall_ms))
            choose_first(t, i, &found);
    return found;
}

bool agent_tenants_have_tokens(const struct agent_tenants *t)
{
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (t->at[i].state == AGENT_TENANT_LIVE && t->at[i].config.tokens > 0)
            return true;
    return false;
}

/* ---- what the metaservers say */

static void count_leaving(struct agent_tenants *t)
{
    t->leaving = 0;
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        t->leaving += t->at[i].state == AGENT_TENANT_LEAVING;
}

/* Adds a sentence; what has no room is cut off. */
static void add_reason(char why[AGENT_TENANTS_WHY], const char *name, const char *sentence)
{
    const size_t used = strlen(why);
    snprintf(why + used, AGENT_TENANTS_WHY - used, "%stenant %s: %s", used > 0 ? "; " : "", name,
             sentence);
}

static const char *of_whom(const struct agent_tenant *at)
{
    return at->central ? "" : " of this agent's own settings";
}

/* What `at` is said to have and does not, because `holder` has it. */
static void describe_clash(const struct agent_tenant *at, const struct agent_tenant *holder,
                           char why[AGENT_TENANTS_WHY])
{
    char text[160];
    uid_t uid;
    if (agent_uids_overlap(&at->config, &holder->config, &uid)) {
        snprintf(text, sizeof text, "uid %u belongs to tenant %s%s: take it from one",
                 (unsigned)uid, holder->config.name, of_whom(holder));
        add_reason(why, at->config.name, text);
    }
    if (agent_tokens_overlap(&at->config, &holder->config)) {
        snprintf(text, sizeof text, "one of its tokens belongs to tenant %s%s: take it from one",
                 holder->config.name, of_whom(holder));
        add_reason(why, at->config.name, text);
    }
}

/* Who may attach by the file and by nothing that is in force: its workers are refused, on each node
 * whose file has it. */
static void describe_replaced(const struct agent_tenant *at, char why[AGENT_TENANTS_WHY])
{
    char text[160];
    const bool uids = at->own.uid_ranges > 0 && at->config.uid_ranges == 0;
    const bool tokens = at->own.tokens > 0 && at->config.tokens == 0;
    if (!at->central || (!uids && !tokens))
        return;
    snprintf(text, sizeof text,
             "replaces [tenant %s] of this agent's file, whose %s have no effect: say such at "
             "the metaserver too",
             at->own.name,
             !tokens ? "uids"
             : !uids ? "tokens"
                     : "uids and tokens");
    add_reason(why, at->config.name, text);
}

static void describe_refused(struct agent_tenants *t)
{
    snprintf(t->why, sizeof t->why, "%s", t->refused);
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        describe_replaced(&t->at[i], t->why);
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        for (int k = 0; k < AGENT_TENANT_SLOTS && t->at[i].central; k++)
            if (k != i && t->at[k].state == AGENT_TENANT_LIVE &&
                stands_before(&t->at[k], &t->at[i]))
                describe_clash(&t->at[i], &t->at[k], t->why);
}

static const struct agent_tenant_config *find_named(const struct agent_tenant_config *list,
                                                    uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* The place that has the name already, else one that is free, else NULL. */
static struct agent_tenant *place_of(struct agent_tenants *t, const char *name)
{
    struct agent_tenant *place = NULL;
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++) {
        struct agent_tenant *at = &t->at[i];
        if (at->state != AGENT_TENANT_FREE && strcmp(at->config.name, name) == 0)
            return at;
        if (at->state == AGENT_TENANT_FREE && place == NULL)
            place = at;
    }
    return place;
}

/* Back to what the file says, or to nothing. */
static bool unsay_tenant(struct agent_tenant *at)
{
    at->central = false;
    if (at->own.name[0] != '\0') {
        at->config = at->own;
        return false;
    }
    at->state = AGENT_TENANT_LEAVING;
    at->config.uid_ranges = at->config.tokens = 0;
    return true;
}

/* Its workers would be taken for those of another tenant, on this node and on others. */
static const struct agent_tenant *with_hash(const struct agent_tenants *t, uint32_t id)
{
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (t->at[i].state != AGENT_TENANT_FREE && t->at[i].config.id == id)
            return &t->at[i];
    return NULL;
}

/* The place of one that may have none yet; NULL: it gets none now, which is said. */
static struct agent_tenant *find_place(struct agent_tenants *t,
                                       const struct agent_tenant_config *desired, bool *later)
{
    char text[160];
    struct agent_tenant *place = place_of(t, desired->name);
    const struct agent_tenant *same = with_hash(t, desired->id);
    if (place != NULL && (place->state != AGENT_TENANT_FREE || same == NULL))
        return place;
    if (same != NULL)
        snprintf(text, sizeof text, "its name and %s have the same hash: rename one of them",
                 same->config.name);
    else
        snprintf(text, sizeof text,
                 "this agent has room for %d, its own and those that are leaving included",
                 AGENT_TENANT_SLOTS);
    *later |= same == NULL || same->state == AGENT_TENANT_LEAVING;
    add_reason(t->refused, desired->name, text);
    return NULL;
}

bool agent_tenants_set(struct agent_tenants *t, const struct agent_tenant_config *list,
                       uint32_t count, bool leave[AGENT_TENANT_SLOTS])
{
    bool later = false;
    t->refused[0] = '\0';
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        leave[i] = t->at[i].central && find_named(list, count, t->at[i].config.name) == NULL &&
                   unsay_tenant(&t->at[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct agent_tenant *at = find_place(t, &list[i], &later);
        if (at == NULL)
            continue;
        at->state = AGENT_TENANT_LIVE;
        at->central = true;
        at->config = list[i];
    }
    count_leaving(t);
    describe_refused(t);
    return later;
}

/* ---- what the file says anew */

/* What the file says of it; NULL: it is no tenant of the file, or no more. */
static const struct agent_tenant_config *own_of(const struct agent_tenant *at,
                                                const struct agent_config *fresh)
{
    return at->own.name[0] != '\0' ? find_named(fresh->tenant, fresh->tenants, at->own.name) : NULL;
}

static void take_own(struct agent_tenant *at, const struct agent_tenant_config *own)
{
    at->own.window = own->window;
    agent_tenant_config_take_tokens(&at->own, own);
    if (at->central)
        return;
    at->config.window = own->window;
    agent_tenant_config_take_tokens(&at->config, own);
}

/* Those of a tenant of which the metaservers' settings are in force are not; and of two of the file
 * its parser knows. What the file has had stays its tenant's, so that a token can be taken away
 * whatever the others are. */
static int check_tokens(const struct agent_tenants *t, const struct agent_tenant *at,
                        const struct agent_tenant_config *own, struct base_errbuf *why)
{
    struct agent_tenant_config one = {.tokens = 1};
    for (uint32_t k = 0; own != NULL && !at->central && k < own->tokens; k++) {
        one.token[0] = own->token[k];
        if (agent_tokens_overlap(&one, &at->own))
            continue;
        for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
            if (t->at[i].central && agent_tokens_overlap(&one, &t->at[i].config))
                return base_err(why, -EEXIST,
                                "one token belongs to tenant %s of this agent's own settings and "
                                "to %s: take it from one",
                                own->name, t->at[i].config.name);
    }
    return 0;
}

int agent_tenants_reload(struct agent_tenants *t, const struct agent_config *fresh,
                         struct base_errbuf *why)
{
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (check_tokens(t, &t->at[i], own_of(&t->at[i], fresh), why) != 0)
            return -EEXIST;
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++) {
        const struct agent_tenant_config *own = own_of(&t->at[i], fresh);
        if (own != NULL)
            take_own(&t->at[i], own);
    }
    describe_refused(t);
    return 0;
}

void agent_tenants_release(struct agent_tenants *t, uint32_t index)
{
    struct agent_tenant *at = &t->at[index];
    if (at->state == AGENT_TENANT_LEAVING && at->arenas == 0)
        *at = (struct agent_tenant){.state = AGENT_TENANT_FREE};
    count_leaving(t);
}
