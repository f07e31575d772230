/* SPDX-License-Identifier: Apache-2.0 */
#include "publications.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/reserve.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "due.h"
#include "pool.h"
#include "publication_calls.h"
#include "quotas.h"
#include "sessions.h"

enum wait_kind { WAIT_PUBLISH, WAIT_UNPUBLISH };

/* A worker that waits. */
struct publications_wait {
    struct publications_wait *next;
    enum wait_kind kind;
    struct publication *of; /* PUBLISH */
    uint32_t serial, vkey;  /* UNPUBLISH: whose, and of which region */
    char name[SCHEMA_NAME_MAX + 1];
    uint64_t end_ns;
    publications_done *done;
    void *user;
};

static uint64_t now_of(const struct agent *a)
{
    return world_now_ns(a->world);
}

void agent_publications_note_due(struct agent *a, uint64_t due_ns)
{
    a->publications.due_ns = due_first(a->publications.due_ns, due_ns);
}

/* ---- those who wait */

static struct publications_wait *add_wait(struct agent *a, enum wait_kind kind,
                                          publications_done *done, void *user)
{
    struct publications_wait *w = calloc(1, sizeof *w);
    if (w == NULL) {
        done(user, -ENOMEM, "the agent is out of memory");
        return NULL;
    }
    w->kind = kind;
    w->done = done;
    w->user = user;
    w->end_ns = now_of(a) + RESOLVE_MS * BASE_NS_PER_MS;
    w->next = a->publications.waits;
    a->publications.waits = w;
    return w;
}

/* why: not the wait's own. */
static void end_wait(struct agent *a, struct publications_wait *w, int status, const char *why)
{
    struct publications_wait **at = &a->publications.waits;
    const struct publications_wait ended = *w;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
    ended.done(ended.user, status, why);
}

static struct publications_wait *find_wait(const struct publication *p)
{
    struct publications_wait *w = p->agent->publications.waits;
    while (w != NULL && w->of != p)
        w = w->next;
    return w;
}

/* ---- one publication */

struct publication *agent_publication_find(const struct agent *a, const char *tenant,
                                           const char *reader, const char *name)
{
    struct publication *p = a->publications.first;
    while (p != NULL && (strcmp(p->name, name) != 0 || strcmp(p->tenant, tenant) != 0 ||
                         strcmp(p->reader, reader) != 0))
        p = p->next;
    return p;
}

static void ask_anew(struct publication *p)
{
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++)
        p->at[i].settled = false;
}

/* From now on it is to go wherever it is. Whoever waits for it is told that. */
static void take_back(struct publication *p, int status, const char *why)
{
    struct publications_wait *w = find_wait(p);
    p->session = NULL;
    ask_anew(p);
    for (uint32_t i = 0; i < p->agent->config.metaservers; i++) {
        struct publication_at *at = &p->at[i];
        at->backoff_ms = at->next_ns = 0;
        if (at->has == PUBLICATION_NOTHING && at->uncertain_ns > now_of(p->agent)) {
            at->has = PUBLICATION_OTHER; /* it may be there again by then */
            at->absent = true;
            at->next_ns = at->uncertain_ns;
        }
    }
    agent_publications_note_due(p->agent, DUE_NOW);
    if (w != NULL)
        end_wait(p->agent, w, status, why);
}

void agent_publication_refuse(struct publication *p, int status, const char *why)
{
    char text[PUBLICATIONS_WHY + 64];
    snprintf(text, sizeof text, "%s", why);
    p->agent->publications.refused++;
    take_back(p, status, text);
}

void agent_publication_lose(struct publication *p, const char *why)
{
    p->agent->publications.lost++;
    world_log(p->agent->world, BASE_LOG_WARN,
              "a name of a worker's region is another region's by now",
              "tenant=%s name=\"%s\" why=\"%s\"", p->tenant, p->name, why);
    take_back(p, -EEXIST, why);
}

/* Whether its region is still one that others may use. */
static bool is_lent(const struct publication *p)
{
    struct lane_lease now;
    return lane_lease(p->session->rings.memory, p->place, &now) && now.number == p->lease.number &&
           now.state == LANE_LEASE_LIVE && !now.revoked;
}

static void look_at_regions(struct agent *a)
{
    for (struct publication *p = a->publications.first; p != NULL; p = p->next)
        if (p->session != NULL && !is_lent(p))
            take_back(p, -EACCES, "the region was revoked, or given back");
    a->publications.look_ns = now_of(a) + PUBLICATIONS_LOOK_MS * BASE_NS_PER_MS;
}

/* ---- what follows from a change */

/* Whether who waits for a publication is to be told. */
static bool is_published(const struct publication *p, uint64_t end_ns, int *status)
{
    const uint64_t now = now_of(p->agent);
    *status = 0;
    if (p->decided)
        return !agent_publication_is_wanting(p, true) || now >= end_ns;
    *status = p->status;
    return now >= end_ns || !agent_publication_has_judge(p);
}

static bool is_meant(const struct publications_wait *w, const struct publication *p)
{
    return p->serial == w->serial && p->grant.vkey == w->vkey &&
           (w->name[0] == '\0' || strcmp(w->name, p->name) == 0);
}

/* Whether who waits for names to go is to be told. */
static bool is_unpublished(const struct agent *a, const struct publications_wait *w, int *status)
{
    bool left = false, wanting = false;
    for (const struct publication *p = a->publications.first; p != NULL; p = p->next)
        if (p->session == NULL && is_meant(w, p)) {
            wanting |= agent_publication_is_wanting(p, true);
            for (uint32_t i = 0; i < a->config.metaservers; i++)
                left |= p->at[i].has != PUBLICATION_NOTHING && !p->at[i].absent;
        }
    *status = left ? -EHOSTUNREACH : 0;
    return !wanting || now_of(a) >= w->end_ns;
}

static void refuse_undecided(struct publication *p, int status)
{
    char text[PUBLICATIONS_WHY + 64];
    snprintf(text, sizeof text, "no metaserver has taken the name: %s", p->why);
    agent_publication_refuse(p, status, text);
}

/* Tells one who is to be told; false: there is none. */
static bool tell_one(struct agent *a)
{
    for (struct publications_wait *w = a->publications.waits; w != NULL; w = w->next) {
        struct publication *p = w->of;
        int status;
        if (w->kind == WAIT_UNPUBLISH) {
            if (is_unpublished(a, w, &status)) {
                end_wait(a, w, status, "a metaserver has not answered: the name goes when it does");
                return true;
            }
        } else if (is_published(p, w->end_ns, &status)) {
            if (status != 0) {
                refuse_undecided(p, status);
                return true;
            }
            p->established = true;
            end_wait(a, w, 0, "");
            return true;
        }
        agent_publications_note_due(a, w->end_ns);
    }
    return false;
}

static void free_gone(struct agent *a)
{
    for (struct publication **at = &a->publications.first, *p; (p = *at) != NULL;) {
        if (!agent_publication_is_gone(p)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        if (p->account != NULL)
            p->account->count--;
        a->publications.count--;
        free(p);
    }
}

void agent_publications_turn(struct agent *a)
{
    bool any = false;
    if (a->stopping)
        return;
    a->publications.due_ns = DUE_NEVER;
    for (struct publication *p = a->publications.first; p != NULL; p = p->next) {
        agent_publication_forget_former(p);
        any |= p->session != NULL;
    }
    agent_publication_calls_begin(a);
    agent_publications_list_begin(a);
    while (tell_one(a))
        ;
    free_gone(a);
    if (any)
        agent_publications_note_due(a, a->publications.look_ns);
}

/* ---- budgets */

/* That of a tenant, by its id. NULL: so many have come and gone that none is free. */
static struct publications_account *find_account(struct agent *a, uint32_t id)
{
    struct publications_account *spare = NULL;
    for (size_t i = 0; i < sizeof a->publications.account / sizeof a->publications.account[0];
         i++) {
        struct publications_account *t = &a->publications.account[i];
        if (t->tenant == id)
            return t;
        if (t->count == 0 && t->whole_ns <= now_of(a))
            spare = t;
    }
    if (spare != NULL)
        *spare = (struct publications_account){.tenant = id};
    return spare;
}

/* For one more name of a tenant (its index + 1), beside what is kept for others. */
static bool have_room(const struct agent *a, uint32_t tenant)
{
    uint32_t has[AGENT_TENANT_SLOTS + 1] = {0}, reserved[AGENT_TENANT_SLOTS + 1] = {0};
    agent_quotas_reserve(a, NULL, PUBLICATIONS_MOST, reserved);
    for (size_t i = 0; i < sizeof a->publications.account / sizeof a->publications.account[0];
         i++) {
        const struct publications_account *t = &a->publications.account[i];
        uint32_t slot = 0;
        while (slot < AGENT_TENANT_SLOTS && (a->tenants.at[slot].state == AGENT_TENANT_FREE ||
                                             a->tenants.at[slot].config.id != t->tenant))
            slot++;
        has[slot] += t->count;
    }
    return lane_reserve_allows(PUBLICATIONS_MOST, has, reserved, AGENT_TENANT_SLOTS + 1,
                               tenant - 1);
}

static bool is_too_soon(struct agent *a, struct publications_account *t)
{
    const uint64_t now = now_of(a);
    uint32_t tenants = 0;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        tenants += a->tenants.at[i].state == AGENT_TENANT_LIVE;
    const uint64_t from_ns = t->whole_ns > now ? t->whole_ns : now;
    const uint64_t then_ns =
        from_ns + (tenants > 0 ? tenants : 1) * BASE_NS_PER_S / PUBLICATIONS_PER_S;
    if (then_ns > now + BASE_NS_PER_S)
        return true;
    t->whole_ns = then_ns;
    return false;
}

static uint32_t count_of_session(const struct agent_session *s)
{
    uint32_t n = 0;
    for (const struct publication *p = s->pool->agent->publications.first; p != NULL; p = p->next)
        n += p->session == s;
    return n;
}

/* One more of that tenant's: 0; or -errno and a sentence. */
static int check_budget(struct agent_session *s, bool is_new, struct publications_account *t,
                        struct base_errbuf *why)
{
    struct agent *a = s->pool->agent;
    const uint64_t said = agent_quota_tenant(a, s->tenant)->region_names,
                   most = said != 0 ? said : PUBLICATIONS_OF_TENANT;
    if (t == NULL || is_too_soon(a, t))
        return base_err(why, -EAGAIN,
                        "the tenant's workers publish too many names: try again in a second");
    if (count_of_session(s) >= PUBLICATIONS_OF_SESSION)
        return base_err(why, -EDQUOT, "a session has %d names at most", PUBLICATIONS_OF_SESSION);
    if (!is_new)
        return 0;
    if (t->count >= most)
        return base_err(why, -EDQUOT,
                        "the tenant's workers have %" PRIu64 " names on this node, some of which "
                        "may be being taken back: there can be no more (region_names)",
                        most);
    if (!have_room(a, s->tenant))
        return base_err(why, -ENOSPC,
                        "this node's agent has room for %d names, a part of it kept for others",
                        PUBLICATIONS_MOST);
    return 0;
}

/* ---- what workers ask for */

/* The region's lease and grant. 0; -ENOENT; or -EACCES: it was revoked. */
static int find_region(const struct agent_session *s, uint32_t vkey, struct publication *out)
{
    for (uint32_t i = 0; i < lane_leases(s->rings.memory); i++) {
        if (!lane_lease_grant(s->rings.memory, i, &out->lease, &out->grant) ||
            out->grant.vkey != vkey)
            continue;
        out->place = i;
        return out->lease.revoked ? -EACCES : out->lease.state == LANE_LEASE_LIVE ? 0 : -ENOENT;
    }
    return -ENOENT;
}

int agent_publication_add(struct agent *a, const char *tenant, const char *reader, const char *name,
                          struct publications_account *t, struct publication **out)
{
    struct publication *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    p->agent = a;
    p->account = t;
    snprintf(p->tenant, sizeof p->tenant, "%s", tenant);
    snprintf(p->reader, sizeof p->reader, "%s", reader);
    snprintf(p->name, sizeof p->name, "%s", name);
    for (uint32_t i = 0; i < AGENT_METASERVERS; i++)
        p->at[i].of = p;
    p->next = a->publications.first;
    a->publications.first = p;
    a->publications.count++;
    if (t != NULL)
        t->count++;
    *out = p;
    return 0;
}

/* What a metaserver has said to have becomes a worker's. */
static void take_over(struct publication *p, struct publications_account *t)
{
    p->account = t;
    t->count++;
}

/* A name that is nobody's, or is being taken back, gets another region. */
static void give_name(struct publication *p, struct agent_session *s,
                      const struct publication *region)
{
    p->session = s;
    p->serial = s->serial;
    p->pool = s->pool->number;
    p->life++;
    p->place = region->place;
    p->lease = region->lease;
    p->grant = region->grant;
    p->decided = p->established = false;
    for (uint32_t i = 0; i < AGENT_METASERVERS; i++) {
        struct publication_at *at = &p->at[i];
        if (at->has != PUBLICATION_NOTHING)
            at->has = PUBLICATION_OTHER;
        at->unknowing = false;
        at->refused_ns = at->settles_ns = at->next_ns = at->backoff_ms = 0;
    }
}

/* Somebody here has it: 0: it is that region; or -EEXIST and a sentence. */
static int check_owner(const struct publication *p, const struct agent_session *s, uint32_t vkey,
                       struct base_errbuf *why)
{
    if (p->session == s && p->grant.vkey == vkey)
        return 0;
    if (p->session == s)
        return base_err(why, -EEXIST, "it is of another region of this worker: unpublish it first");
    return base_err(why, -EEXIST, "it is of a region of another worker of this node (pid %d)",
                    (int)p->session->pid);
}

/* *out: the name's, which is that region's. 0; or -errno and a sentence. */
static int claim_name(struct agent_session *s, uint32_t vkey, const char *name, const char *reader,
                      struct publication **out, struct base_errbuf *why)
{
    struct agent *a = s->pool->agent;
    const struct agent_tenant_config *tenant = agent_quota_tenant(a, s->tenant);
    struct publication region = {.life = 0}, *p;
    char space[SCHEMA_NAME_SPACE_BYTES];
    if (schema_name_space(tenant->name, reader, space) != 0)
        return base_err(why, -EINVAL, "what it is published for is no tenant's name");
    if (strcmp(tenant->name, reader) == 0)
        return base_err(why, -EINVAL, "%s is the worker's own tenant: kedge_publish() is for that",
                        reader);
    int status = find_region(s, vkey, &region);
    if (status != 0)
        return base_err(why, status, "%s",
                        status == -EACCES ? "the region was revoked by the operator"
                                          : "the session has no such region that others may use");
    p = agent_publication_find(a, tenant->name, reader, name);
    if (p != NULL && p->session != NULL) {
        *out = p;
        return check_owner(p, s, vkey, why);
    }
    const bool is_new = p == NULL || p->account == NULL;
    struct publications_account *t = is_new ? find_account(a, tenant->id) : p->account;
    status = check_budget(s, is_new, t, why);
    if (status == 0 && p == NULL)
        status = agent_publication_add(a, tenant->name, reader, name, t, &p);
    else if (status == 0 && is_new)
        take_over(p, t);
    if (status == -ENOMEM)
        return base_err(why, status, "the agent is out of memory");
    if (status != 0)
        return status;
    give_name(p, s, &region);
    *out = p;
    return 0;
}

void agent_publish(struct agent_session *s, uint32_t vkey, const char *name, const char *reader,
                   publications_done *done, void *user)
{
    struct agent *a = s->pool->agent;
    struct publication *p = NULL;
    struct base_errbuf why = {""};
    int status;
    a->publications.begun++;
    if (schema_name_check(name) != 0)
        status = base_err(&why, -EINVAL,
                          "a name has 1 to 255 bytes of UTF-8 without control characters");
    else
        status = claim_name(s, vkey, name, reader, &p, &why);
    if (status != 0) {
        a->publications.refused++;
        done(user, status, why.text);
        return;
    }
    struct publications_wait *w = add_wait(a, WAIT_PUBLISH, done, user);
    if (w == NULL) {
        if (!p->established)
            take_back(p, -ENOMEM, "");
        return;
    }
    if (a->publications.look_ns == 0)
        a->publications.look_ns = now_of(a) + PUBLICATIONS_LOOK_MS * BASE_NS_PER_MS;
    w->of = p;
    w->serial = s->serial;
    p->end_ns = w->end_ns;
    p->status = -EHOSTUNREACH;
    snprintf(p->why, sizeof p->why, "no metaserver has this node's pool");
    ask_anew(p);
    agent_publications_turn(a);
}

void agent_unpublish(struct agent_session *s, uint32_t vkey, const char *name,
                     publications_done *done, void *user)
{
    struct agent *a = s->pool->agent;
    struct publications_wait which = {.serial = s->serial, .vkey = vkey};
    bool found = false;
    snprintf(which.name, sizeof which.name, "%s", name);
    for (struct publication *p = a->publications.first; p != NULL; p = p->next) {
        if (p->session != s || !is_meant(&which, p))
            continue;
        found = true;
        take_back(p, -ECANCELED, "it was unpublished");
    }
    if (!found && name[0] != '\0') {
        done(user, -ENOENT, "the region is not published under that name");
        return;
    }
    struct publications_wait *w = add_wait(a, WAIT_UNPUBLISH, done, user);
    if (w == NULL)
        return;
    w->serial = which.serial;
    w->vkey = vkey;
    memcpy(w->name, which.name, sizeof w->name);
    agent_publications_turn(a);
}

uint32_t agent_publications_of(const struct agent_session *s, uint32_t vkey)
{
    uint32_t n = 0;
    for (const struct publication *p = s->pool->agent->publications.first; p != NULL; p = p->next)
        n += p->session == s && p->grant.vkey == vkey;
    return n;
}

/* ---- what happens */

static struct publications_wait *find_wait_of(const struct agent *a, uint32_t serial)
{
    struct publications_wait *w = a->publications.waits;
    while (w != NULL && w->serial != serial)
        w = w->next;
    return w;
}

void agent_publications_end(struct agent_session *s)
{
    static const char WHY[] = "the session is over";
    struct agent *a = s->pool->agent;
    struct publications_wait *w;
    for (struct publication *p = a->publications.first; p != NULL; p = p->next)
        if (p->session == s)
            take_back(p, -ECANCELED, WHY);
    while ((w = find_wait_of(a, s->serial)) != NULL)
        end_wait(a, w, -ECANCELED, WHY);
}

void agent_publications_look(struct agent *a)
{
    if (a->publications.first == NULL)
        return;
    a->publications.look_ns = DUE_NOW;
    agent_publications_note_due(a, DUE_NOW);
}

void agent_publications_registered(struct agent *a, uint32_t metaserver, uint32_t place)
{
    agent_publications_list(a, metaserver);
    for (struct publication *p = a->publications.first; p != NULL; p = p->next) {
        struct publication_at *at = &p->at[metaserver];
        if (place != 0 && (p->session == NULL || pool_endpoint(p->session->pool)->place != place))
            continue;
        at->again = at->doubted = true;
        at->unknowing = false;
        at->backoff_ms = 0;
        if (at->refused_ns == 0)
            at->next_ns = 0;
        agent_publications_note_due(a, DUE_NOW);
    }
}

uint64_t agent_publications_due_ns(const struct agent *a)
{
    return a->publications.first == NULL && a->publications.waits == NULL &&
                   !agent_publications_are_listed(a)
               ? DUE_NEVER
               : a->publications.due_ns;
}

void agent_publications_tick(struct agent *a)
{
    const uint64_t now = now_of(a);
    if (now < agent_publications_due_ns(a))
        return;
    if (now >= a->publications.look_ns)
        look_at_regions(a);
    agent_publications_turn(a);
}

void agent_publications_stop(struct agent *a)
{
    while (a->publications.waits != NULL)
        end_wait(a, a->publications.waits, -ECANCELED, "the agent ends");
    for (struct publication *p; (p = a->publications.first) != NULL;) {
        a->publications.first = p->next;
        free(p);
    }
    a->publications = (struct publications){.first = NULL};
}
