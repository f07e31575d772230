/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/tenants.h"

#include <errno.h>
#include <string.h>

void agentd_tenants_init(struct agentd_tenants *t, const struct agentd_config *config)
{
    memset(t, 0, sizeof *t);
    for (uint32_t i = 0; i < config->tenants; i++)
        t->at[i] = (struct agentd_tenant){
            .state = AGENTD_TENANT_LIVE, .config = config->tenant[i], .own = config->tenant[i]};
}

static bool has_uid(const struct agentd_tenant_config *c, uid_t uid)
{
    for (uint32_t i = 0; i < c->uid_ranges; i++)
        if (c->uids[i].first <= uid && uid <= c->uids[i].last)
            return true;
    return false;
}

int agentd_tenants_find(const struct agentd_tenants *t, uid_t uid)
{
    for (int i = 0; i < AGENTD_TENANTS; i++)
        if (t->at[i].state == AGENTD_TENANT_LIVE && has_uid(&t->at[i].config, uid))
            return i;
    return -EACCES;
}

/* A token that has expired counts as none. */
static bool has_token(const struct agentd_tenant_config *c,
                      const uint8_t sha256[KEDGE_DIGEST_BYTES], uint64_t wall_ms)
{
    bool found = false;
    for (uint32_t i = 0; i < c->tokens; i++)
        found |= kedge_digest_same(c->token[i].sha256, sha256) &
                 (c->token[i].expires_ms == 0 || wall_ms < c->token[i].expires_ms);
    return found;
}

int agentd_tenants_find_token(const struct agentd_tenants *t,
                              const uint8_t sha256[KEDGE_DIGEST_BYTES], uint64_t wall_ms)
{
    int found = -EACCES;
    for (int i = 0; i < AGENTD_TENANTS; i++)
        if (t->at[i].state == AGENTD_TENANT_LIVE && has_token(&t->at[i].config, sha256, wall_ms))
            found = i;
    return found;
}

/* ---- what the metaservers say */

static int check_pair(const struct agentd_tenant_config *a, const struct agentd_tenant_config *b,
                      const char *of_b, struct kedge_errbuf *why)
{
    uid_t uid;
    if (agentd_uids_overlap(a, b, &uid))
        return kedge_err(why, -EEXIST, "uid %u belongs to tenant %s and to %s%s: take it from one",
                         (unsigned)uid, a->name, b->name, of_b);
    if (agentd_tokens_overlap(a, b))
        return kedge_err(why, -EEXIST,
                         "one token belongs to tenant %s and to %s%s: take it from one", a->name,
                         b->name, of_b);
    if (a->id == b->id)
        return kedge_err(why, -EEXIST,
                         "the tenants' names %s and %s%s have the same hash: rename one of them",
                         a->name, b->name, of_b);
    return 0;
}

static const struct agentd_tenant_config *named(const struct agentd_tenant_config *list,
                                                uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* The place that has the name already, else one that is free, else NULL. */
static struct agentd_tenant *place_of(struct agentd_tenants *t, const char *name)
{
    struct agentd_tenant *place = NULL;
    for (int i = 0; i < AGENTD_TENANTS; i++) {
        struct agentd_tenant *at = &t->at[i];
        if (at->state != AGENTD_TENANT_FREE && strcmp(at->config.name, name) == 0)
            return at;
        if (at->state == AGENTD_TENANT_FREE && place == NULL)
            place = at;
    }
    return place;
}

/* Of those that are not in the list, some are the file's own, and stay or come back. */
static int check(const struct agentd_tenants *t, const struct agentd_tenant_config *list,
                 uint32_t count, struct kedge_errbuf *why)
{
    uint32_t places = count;
    int status = 0;
    for (uint32_t i = 0; i < count && status == 0; i++)
        for (uint32_t k = 0; k < i && status == 0; k++)
            status = check_pair(&list[i], &list[k], "", why);
    for (int k = 0; k < AGENTD_TENANTS && status == 0; k++) {
        const struct agentd_tenant *at = &t->at[k];
        if (at->state == AGENTD_TENANT_FREE || named(list, count, at->config.name) != NULL)
            continue;
        places++;
        for (uint32_t i = 0; i < count && status == 0 && at->own.name[0] != '\0'; i++)
            status = check_pair(&list[i], &at->own, " of this agent's own settings", why);
    }
    if (status == 0 && places > AGENTD_TENANTS)
        return kedge_err(why, -ENOSPC,
                         "an agent has room for %d tenants, its own and those that are leaving "
                         "included",
                         AGENTD_TENANTS);
    return status;
}

/* Back to what the file says, or to nothing. */
static bool unsay(struct agentd_tenant *at)
{
    at->central = false;
    if (at->own.name[0] != '\0') {
        at->config = at->own;
        return false;
    }
    at->state = AGENTD_TENANT_LEAVING;
    at->config.uid_ranges = at->config.tokens = 0;
    return true;
}

int agentd_tenants_set(struct agentd_tenants *t, const struct agentd_tenant_config *list,
                       uint32_t count, uint64_t *leave, struct kedge_errbuf *why)
{
    int status = check(t, list, count, why);
    if (status != 0)
        return status;
    *leave = 0;
    for (int i = 0; i < AGENTD_TENANTS; i++)
        if (t->at[i].central && named(list, count, t->at[i].config.name) == NULL &&
            unsay(&t->at[i]))
            *leave |= UINT64_C(1) << i;
    for (uint32_t i = 0; i < count; i++) {
        struct agentd_tenant *at = place_of(t, list[i].name);
        at->state = AGENTD_TENANT_LIVE;
        at->central = true;
        at->config = list[i];
    }
    return 0;
}

/* ---- what the file says anew */

/* What the file says of it; NULL: it is no tenant of the file, or no more. */
static const struct agentd_tenant_config *own_of(const struct agentd_tenant *at,
                                                 const struct agentd_config *fresh)
{
    return at->own.name[0] != '\0' ? named(fresh->tenant, fresh->tenants, at->own.name) : NULL;
}

static void take(struct agentd_tenant *at, const struct agentd_tenant_config *own)
{
    at->own.window = own->window;
    agentd_take_tokens(&at->own, own);
    if (at->central)
        return;
    at->config.window = own->window;
    agentd_take_tokens(&at->config, own);
}

/* Those of one that the metaservers say are not in force; and of two of the file its parser knows.
 */
static int check_tokens(const struct agentd_tenants *t, const struct agentd_tenant *at,
                        const struct agentd_tenant_config *own, struct kedge_errbuf *why)
{
    for (int i = 0; own != NULL && !at->central && i < AGENTD_TENANTS; i++)
        if (t->at[i].central && agentd_tokens_overlap(own, &t->at[i].config))
            return kedge_err(why, -EEXIST,
                             "one token belongs to tenant %s of this agent's own settings and to "
                             "%s: take it from one",
                             own->name, t->at[i].config.name);
    return 0;
}

int agentd_tenants_reload(struct agentd_tenants *t, const struct agentd_config *fresh,
                          struct kedge_errbuf *why)
{
    for (int i = 0; i < AGENTD_TENANTS; i++)
        if (check_tokens(t, &t->at[i], own_of(&t->at[i], fresh), why) != 0)
            return -EEXIST;
    for (int i = 0; i < AGENTD_TENANTS; i++) {
        const struct agentd_tenant_config *own = own_of(&t->at[i], fresh);
        if (own != NULL)
            take(&t->at[i], own);
    }
    return 0;
}

void agentd_tenant_rest(struct agentd_tenants *t, uint32_t index)
{
    struct agentd_tenant *at = &t->at[index];
    if (at->state == AGENTD_TENANT_LEAVING && at->arenas == 0)
        *at = (struct agentd_tenant){.state = AGENTD_TENANT_FREE};
}
