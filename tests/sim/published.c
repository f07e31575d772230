/* SPDX-License-Identifier: Apache-2.0 */
#include "published.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "events.h"
#include "ledger.h"
#include "registrations.h"
#include "schema/token.h"

enum {
    LATE_S = 60,     /* so long who is behind may show what is not so any more */
    LATE_CALM_S = 5, /* or if nothing has gone wrong for long */
    GONE_S = 30      /* so long what is to go may stay there then */
};

/* A name of a region, in the store from one moment to another. */
struct period {
    struct period *next;
    struct meta_store_name name;
    struct play_published_region region;
    uint64_t from_ns, until_ns; /* PLAY_NEVER: it is there */
    uint16_t pool;              /* of the region's endpoint, which has an incarnation of its own */
    bool seen;                  /* at this look */
    bool returned;              /* it is there since the store was put back */
};

/* A region whose names are to go. */
struct forsaken {
    struct forsaken *next;
    struct play_published_region region;
    uint64_t at_ns;
};

/* What the agent of a host has been told of an endpoint. */
struct used {
    struct used *next;
    uint32_t host, incarnation;
    uint16_t pool;
    uint8_t gid[16];
};

static struct {
    struct period *periods; /* the last one first */
    struct forsaken *forsaken;
    struct used *used;
    uint64_t calm_ns, put_back_ns;
} all;

void play_published_begin(uint64_t calm_ns)
{
    memset(&all, 0, sizeof all);
    all.calm_ns = calm_ns;
}

void play_published_end(void)
{
    for (struct period *p = all.periods, *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    for (struct forsaken *f = all.forsaken, *next; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    for (struct used *u = all.used, *next; u != NULL; u = next) {
        next = u->next;
        free(u);
    }
    memset(&all, 0, sizeof all);
}

static bool is_region(const struct play_published_region *is, const struct play_published_region *r)
{
    return memcmp(is->gid, r->gid, sizeof r->gid) == 0 && (r->key == 0 || r->key == is->key);
}

static bool is_named(const struct period *p, const char *space, const char *name)
{
    return strcmp(p->name.name, name) == 0 && strcmp(p->name.tenant, space) == 0;
}

/* ---- the store */

static struct period *find_present(const struct meta_store_name *name)
{
    struct period *p = all.periods;
    while (p != NULL && (p->until_ns != PLAY_NEVER || !meta_store_name_equals(&p->name, name)))
        p = p->next;
    return p;
}

static int look_at_name(void *user, const struct meta_store_name *name)
{
    struct period *p = find_present(name);
    struct schema_token grant = {.vkey = 0};
    const bool *returned = user;
    if (p == NULL) {
        p = calloc(1, sizeof *p);
        BASE_ASSERT(p != NULL && schema_token_parse(name->grant, &grant) == 0);
        *p = (struct period){.next = all.periods,
                             .name = *name,
                             .region.key = grant.vkey,
                             .pool = grant.pool,
                             .from_ns = play_now_ns(),
                             .until_ns = PLAY_NEVER,
                             .returned = *returned};
        memcpy(p->region.gid, grant.gid, sizeof grant.gid);
        all.periods = p;
    }
    p->seen = true;
    return 0;
}

static int pass_resource(void *user, const struct meta_store_resource *resource)
{
    (void)user, (void)resource;
    return 0;
}

static int pass_change(void *user, const struct meta_store_change *change)
{
    (void)user, (void)change;
    return 0;
}

static void load_names(struct meta_store *store, bool returned)
{
    struct base_errbuf err;
    const struct meta_store_visitor visitor = {
        .resource = pass_resource, .change = pass_change, .name = look_at_name, .user = &returned};
    for (struct period *p = all.periods; p != NULL; p = p->next)
        p->seen = false;
    const int status = meta_store_load_resources(store, &visitor, &err);
    BASE_ASSERT(status == 0);
}

/* Of one that is there no more at this look: whoever has the name now was given it while its owner
 * lived. Nothing else is done by a transaction that gives a name. */
static void judge_owner(const char *who, const struct period *was)
{
    for (const struct period *is = all.periods; is != NULL; is = is->next)
        if (is->until_ns == PLAY_NEVER && is != was && is->seen &&
            is_named(is, was->name.tenant, was->name.name) &&
            play_registrations_lives(was->name.node, was->name.incarnation))
            play_violation(who, "\"%s\" of %s is given to %s, and %s lives, which has it",
                           was->name.name, was->name.tenant, is->name.node, was->name.node);
}

void play_published_look(const char *who, struct meta_store *store)
{
    load_names(store, false);
    for (struct period *p = all.periods; p != NULL; p = p->next) {
        if (p->seen || p->until_ns != PLAY_NEVER)
            continue;
        judge_owner(who, p);
        p->until_ns = play_now_ns();
    }
}

void play_published_put_back(struct meta_store *store)
{
    all.put_back_ns = play_now_ns();
    load_names(store, true);
    for (struct period *p = all.periods; p != NULL; p = p->next)
        if (!p->seen && p->until_ns == PLAY_NEVER)
            p->until_ns = play_now_ns();
}

/* ---- what is to go */

void play_published_forsaken(const struct play_published_region *r)
{
    struct forsaken *f = calloc(1, sizeof *f);
    BASE_ASSERT(f != NULL);
    *f = (struct forsaken){.next = all.forsaken, .region = *r, .at_ns = play_now_ns()};
    all.forsaken = f;
}

static bool was_forsaken(const struct period *p, uint64_t before_ns)
{
    for (const struct forsaken *f = all.forsaken; f != NULL; f = f->next)
        if (f->at_ns < before_ns && is_region(&p->region, &f->region))
            return true;
    return false;
}

/* A name that came back with the store is only given up by its owner's agent, or by its death
 * (docs/leases.md#names): that is all that is said of it. */
void play_published_look_at_rest(void)
{
    const uint64_t before_ns = play_now_ns() - GONE_S * BASE_NS_PER_S;
    if (play_now_ns() < all.calm_ns)
        return;
    for (const struct period *p = all.periods; p != NULL; p = p->next) {
        if (p->until_ns != PLAY_NEVER || p->returned)
            continue;
        const uint64_t gone_ns = play_registrations_gone_ns(p->name.node, p->name.incarnation);
        if (gone_ns != 0 && gone_ns < before_ns)
            play_violation("store", "\"%s\" of %s is %s's, which has been dead for %d s",
                           p->name.name, p->name.tenant, p->name.node, GONE_S);
        if (was_forsaken(p, before_ns))
            play_violation("store", "\"%s\" of %s is there, and was given back %d s ago",
                           p->name.name, p->name.tenant, GONE_S);
    }
}

/* ---- what is answered */

/* Whether it had the name (or another one had it) at some moment from then on. */
static const struct period *find_period(const char *space, const char *name,
                                        const struct play_published_region *r, uint64_t from_ns)
{
    for (const struct period *p = all.periods; p != NULL; p = p->next)
        if (p->until_ns >= from_ns && is_named(p, space, name) && is_region(&p->region, r))
            return p;
    return NULL;
}

void play_published_given(const char *who, const char *space, const char *name,
                          const struct play_published_region *r, uint64_t asked_ns)
{
    if (find_period(space, name, r, asked_ns) == NULL)
        play_violation(who, "\"%s\" of %s is said to be given, and it was not meanwhile", name,
                       space);
}

/* It was there all the time, in one period or in several that follow each other at once. */
static bool had_throughout(const char *space, const char *name,
                           const struct play_published_region *r, uint64_t from_ns)
{
    uint64_t since_ns = PLAY_NEVER;
    for (const struct period *p = all.periods; p != NULL; p = p->next)
        if (is_named(p, space, name) && is_region(&p->region, r) && p->until_ns >= since_ns)
            since_ns = p->from_ns;
    return since_ns < from_ns;
}

void play_published_taken_back(const char *who, const char *space, const char *name,
                               const struct play_published_region *r, uint64_t asked_ns)
{
    if (had_throughout(space, name, r, asked_ns))
        play_violation(who, "\"%s\" of %s is said to be taken back, and was there throughout", name,
                       space);
}

static void note_used(const char *who, uint32_t host, const struct period *p)
{
    struct used *u = all.used;
    while (u != NULL &&
           (u->host != host || u->pool != p->pool || memcmp(u->gid, p->region.gid, 16) != 0))
        u = u->next;
    if (u == NULL) {
        u = calloc(1, sizeof *u);
        BASE_ASSERT(u != NULL);
        *u = (struct used){.next = all.used, .host = host, .pool = p->pool};
        memcpy(u->gid, p->region.gid, 16);
        all.used = u;
    }
    if (p->name.incarnation < u->incarnation)
        play_violation(who,
                       "\"%s\" is found of incarnation %u of %s, and its agent has used %u already",
                       p->name.name, p->name.incarnation, p->name.node, u->incarnation);
    u->incarnation = p->name.incarnation;
}

void play_published_new_life(uint32_t host)
{
    for (struct used **at = &all.used, *u; (u = *at) != NULL;) {
        if (u->host != host) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        free(u);
    }
}

static bool is_calm(uint64_t asked_ns)
{
    return asked_ns > all.calm_ns + LATE_CALM_S * BASE_NS_PER_S;
}

/* Whoever asks finds what has been there for long, if its owner lives. */
static void judge_missed(const char *who, const char *space, const char *name, uint64_t asked_ns)
{
    const uint64_t since_ns = asked_ns - LATE_CALM_S * BASE_NS_PER_S;
    if (!is_calm(asked_ns))
        return;
    for (const struct period *p = all.periods; p != NULL; p = p->next)
        if (p->until_ns == PLAY_NEVER && p->from_ns < since_ns && is_named(p, space, name) &&
            play_registrations_lived(p->name.node, p->name.incarnation, since_ns))
            play_violation(who, "\"%s\" of %s is not found, and has been %s's for %d s", name,
                           space, p->name.node, LATE_CALM_S);
}

void play_published_looked_up(const char *who, uint32_t host, const char *space, const char *name,
                              const struct play_published_region *r, uint64_t asked_ns)
{
    if (r == NULL) {
        judge_missed(who, space, name, asked_ns);
        return;
    }
    const uint64_t late_ns = (is_calm(asked_ns) ? LATE_CALM_S : LATE_S) * BASE_NS_PER_S;
    const struct period *p =
        find_period(space, name, r, asked_ns > late_ns ? asked_ns - late_ns : 0);
    if (p == NULL)
        play_violation(who, "\"%s\" of %s is found, and it has not been that for %llu s", name,
                       space, (unsigned long long)(late_ns / BASE_NS_PER_S));
    else
        note_used(who, host, p);
}
