/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "control/config.h"
#include "liar.h"
#include "mail.h"
#include "operators.h"
#include "post_looks.h"
#include "trace.h"

enum { WHY_BYTES = 512, NODES = 2048, OUTLIVED_S = 2 };

struct arena {
    char owner[PLAY_NAME];
    const void *session;
    uint8_t *at;
    size_t bytes;
};

enum { ENDED = 256 };

/* A region whose session ended before it was given back. */
struct ended {
    const uint8_t *at; /* NULL: none */
    bool fenced, lease_only;
};

static struct {
    /* By where they are; those of one place, which are regions alone, by when they began. */
    struct place {
        const uint8_t *at;
        void *is;
    } * arena, *region;
    uint32_t arenas, arena_room, region_count, region_room;
    struct play_region *regions; /* the newest first */
    struct ended ended[ENDED];   /* the last ones */
    uint32_t ended_next;
    struct life {
        uint32_t number;
        uint64_t began_ns, suspended_ns;
    } life[NODES]; /* of nodes' agents, the present ones; until when their hosts were suspended */
    uint64_t last_id, last_identity, accesses;
    char why[WHY_BYTES]; /* empty: nothing was violated */
} ledger;

void play_ledger_init(void)
{
    memset(&ledger, 0, sizeof ledger);
    play_posts_init();
    play_mail_begin();
}

void play_ledger_fini(void)
{
    play_mail_end();
    while (ledger.regions != NULL)
        play_region_free(ledger.regions);
    while (ledger.arenas > 0)
        play_ledger_no_arena(((struct arena *)ledger.arena[0].is)->at);
    free(ledger.arena);
    free(ledger.region);
    ledger.arena = ledger.region = NULL;
    ledger.arena_room = ledger.region_room = 0;
    play_posts_fini();
}

void play_violation(const char *who, const char *format, ...)
{
    char text[WHY_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (play_liar_has_worker(who)) { /* it may see anything */
        play_trace(who, "%s", text);
        return;
    }
    play_trace(who, "VIOLATION: %s", text);
    if (ledger.why[0] == '\0')
        (void)snprintf(ledger.why, sizeof ledger.why, "%.40s: %.460s", who, text);
}

const char *play_violated(void)
{
    return ledger.why[0] != '\0' ? ledger.why : NULL;
}

/* ---- places */

/* How many begin there or before. */
static uint32_t count_until(const struct place *places, uint32_t count, const uint8_t *at)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (places[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_place(struct place **places, uint32_t *count, uint32_t *room, const uint8_t *at,
                      void *is)
{
    const uint32_t to = count_until(*places, *count, at);
    if (*count == *room) {
        *room = *room == 0 ? 64 : 2 * *room;
        *places = realloc(*places, *room * sizeof **places);
        BASE_ASSERT(*places != NULL);
    }
    memmove(*places + to + 1, *places + to, (*count - to) * sizeof **places);
    (*places)[to] = (struct place){.at = at, .is = is};
    ++*count;
}

static void drop_place(struct place *places, uint32_t *count, const uint8_t *at, const void *is)
{
    uint32_t from = count_until(places, *count, at);
    while (from > 0 && places[from - 1].at == at && places[from - 1].is != is)
        from--;
    BASE_ASSERT(from > 0 && places[from - 1].is == is);
    memmove(places + from - 1, places + from, (*count - from) * sizeof *places);
    --*count;
}

/* ---- owners */

void play_ledger_arena(const struct play_process *owner, const void *session, void *at,
                       size_t bytes)
{
    struct arena *a = malloc(sizeof *a);
    BASE_ASSERT(a != NULL);
    *a = (struct arena){.session = session, .at = at, .bytes = bytes};
    (void)snprintf(a->owner, sizeof a->owner, "%s", owner->name);
    add_place(&ledger.arena, &ledger.arenas, &ledger.arena_room, at, a);
}

void play_ledger_no_arena(void *at)
{
    const uint32_t until = count_until(ledger.arena, ledger.arenas, at);
    BASE_ASSERT(until > 0 && ledger.arena[until - 1].at == at);
    struct arena *a = ledger.arena[until - 1].is;
    drop_place(ledger.arena, &ledger.arenas, at, a);
    free(a);
}

uint64_t play_slot_offset(const struct play_slot *s)
{
    return (uint64_t)s->number * PLAY_SLOT_BYTES;
}

uint64_t play_slot_counter_offset(const struct play_slot *s)
{
    return PLAY_SLOTS * PLAY_SLOT_BYTES + (uint64_t)s->number * PLAY_COUNTER_BYTES;
}

/* No two regions begin with the same bytes, and none with zeros. */
static void fill_slot(struct play_slot *s)
{
    struct base_prng r;
    base_prng_seed(&r, s->region->id * PLAY_SLOTS + s->number);
    for (size_t i = 0; i < PLAY_SLOT_BYTES; i += 8) {
        const uint64_t word = base_prng_next(&r);
        memcpy(s->content + i, &word, 8);
    }
    s->counter = base_prng_next(&r);
    memcpy(s->region->at + play_slot_offset(s), s->content, PLAY_SLOT_BYTES);
    memcpy(s->region->at + play_slot_counter_offset(s), &s->counter, sizeof s->counter);
}

/* What is registered apart goes with its own registration, else with its arena's. */
static bool is_registered_so(const uint8_t *region, bool lease_only, const uint8_t *at,
                             uint64_t bytes)
{
    return lease_only ? at <= region && region + PLAY_REGION_BYTES <= at + bytes : at == region;
}

static void note_ended(const struct play_region *r)
{
    ledger.ended[ledger.ended_next++ % ENDED] =
        (struct ended){.at = r->at, .fenced = r->fenced, .lease_only = r->lease_only};
}

/* Another region begins there. */
static void forget_ended(const uint8_t *at)
{
    for (uint32_t i = 0; i < ENDED; i++)
        if (ledger.ended[i].at == at)
            ledger.ended[i].at = NULL;
}

static struct life *life_of(uint32_t node)
{
    BASE_ASSERT(node < NODES);
    return &ledger.life[node];
}

void play_ledger_new_life(uint32_t node)
{
    struct life *l = life_of(node);
    play_posts_new_life(node);
    l->number++;
    l->began_ns = play_now_ns();
}

void play_ledger_suspended(uint32_t node, uint64_t until_ns)
{
    struct life *l = life_of(node);
    l->suspended_ns = until_ns > l->suspended_ns ? until_ns : l->suspended_ns;
}

bool play_slot_is_outlived(const struct play_slot *s, uint32_t user)
{
    const struct life *l = life_of(s->region->node), *of_user = life_of(user);
    const uint64_t heard_ns =
        l->began_ns > of_user->suspended_ns ? l->began_ns : of_user->suspended_ns;
    return s->region->life != l->number && play_now_ns() > heard_ns + OUTLIVED_S * BASE_NS_PER_S;
}

struct play_region *play_region_new(uint32_t node, const char *owner, uint32_t tenant, void *at)
{
    struct play_region *r = calloc(1, sizeof *r);
    BASE_ASSERT(r != NULL);
    forget_ended(at);
    r->id = ++ledger.last_id;
    r->born_identity = ledger.last_identity;
    r->node = node;
    r->life = life_of(node)->number;
    (void)snprintf(r->owner, sizeof r->owner, "%s", owner);
    r->tenant = tenant;
    r->tenant_id = agent_tenant_id(play_tenant_name(tenant - 1));
    r->at = at;
    for (uint32_t i = 0; i < PLAY_SLOTS; i++) {
        r->slot[i].region = r;
        r->slot[i].number = i;
        fill_slot(&r->slot[i]);
    }
    r->next = ledger.regions;
    if (r->next != NULL)
        r->next->link = &r->next;
    r->link = &ledger.regions;
    ledger.regions = r;
    add_place(&ledger.region, &ledger.region_count, &ledger.region_room, r->at, r);
    return r;
}

void play_region_lend(struct play_region *r, const uint8_t gid[16], const char *token)
{
    memcpy(r->gid, gid, sizeof r->gid);
    (void)snprintf(r->token, sizeof r->token, "%s", token);
    r->live = true;
}

void play_region_withdraw(struct play_region *r)
{
    r->live = false;
}

bool play_ledger_waits(const void *at, uint64_t bytes)
{
    for (const struct play_region *r = ledger.regions; r != NULL; r = r->next)
        if (!r->live && !r->fenced && r->token[0] != '\0' &&
            is_registered_so(r->at, r->lease_only, at, bytes))
            return true;
    for (uint32_t i = 0; i < ENDED; i++) {
        const struct ended *e = &ledger.ended[i];
        if (e->at != NULL && !e->fenced && is_registered_so(e->at, e->lease_only, at, bytes))
            return true;
    }
    return false;
}

/* Users have pointers to its slots: it goes with the last of them. */
static void drop_region(struct play_region *r)
{
    if (r->users == 0 && r->link == NULL)
        free(r);
}

void play_region_free(struct play_region *r)
{
    if (r->live)
        note_ended(r);
    r->live = false;
    drop_place(ledger.region, &ledger.region_count, r->at, r);
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    r->link = NULL;
    drop_region(r);
}

uint32_t play_regions_of_others(uint32_t tenant, char text[][PLAY_TOKEN], uint32_t most)
{
    uint32_t count = 0;
    for (const struct play_region *r = ledger.regions; r != NULL && count < most; r = r->next)
        if (r->live && r->tenant != tenant)
            (void)snprintf(text[count++], PLAY_TOKEN, "%s", r->token);
    return count;
}

void play_region_grant(const char *token, uint32_t tenant)
{
    for (struct play_region *r = ledger.regions; r != NULL; r = r->next)
        if (r->live && strcmp(r->token, token) == 0)
            r->guest_id = agent_tenant_id(play_tenant_name(tenant - 1));
}

/* ---- users */

static struct play_slot *free_slot(struct play_region *r)
{
    for (uint32_t i = 0; i < PLAY_SLOTS; i++)
        if (!r->slot[i].taken && !r->slot[i].lost)
            return &r->slot[i];
    return NULL;
}

static bool may_use(struct play_region *r, const char *user, uint32_t tenant)
{
    return r->live && r->tenant == tenant && strcmp(r->owner, user) != 0 && free_slot(r) != NULL;
}

struct play_slot *play_slot_take(struct base_prng *random, const char *user, uint32_t tenant)
{
    uint32_t count = 0;
    for (struct play_region *r = ledger.regions; r != NULL; r = r->next)
        count += may_use(r, user, tenant);
    if (count == 0)
        return NULL;
    uint64_t which = base_prng_below(random, count);
    for (struct play_region *r = ledger.regions; r != NULL; r = r->next) {
        if (!may_use(r, user, tenant) || which-- > 0)
            continue;
        struct play_slot *s = free_slot(r);
        s->taken = true;
        s->turn++;
        s->begun = false;
        r->users++;
        return s;
    }
    return NULL;
}

bool play_slot_is_gone(const struct play_slot *s)
{
    return s->region->link == NULL;
}

void play_slot_give(struct play_slot *s)
{
    struct play_region *r = s->region;
    s->taken = false;
    r->users--;
    drop_region(r);
}

void play_slot_write(struct play_slot *s, struct base_prng *r, uint32_t at, uint32_t bytes,
                     void *out)
{
    for (uint32_t i = 0; i < bytes; i += 8) {
        const uint64_t word = base_prng_next(r);
        memcpy(s->content + at + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
    memcpy(out, s->content + at, bytes);
}

/* ---- the network */

/* No two overlap: what has some of those bytes begins before their end, last of all. */
static const struct arena *arena_at(const uint8_t *at, uint32_t bytes)
{
    const uint32_t until = bytes > 0 ? count_until(ledger.arena, ledger.arenas, at + bytes - 1) : 0;
    const struct arena *a = until > 0 ? ledger.arena[until - 1].is : NULL;
    return a != NULL && at < a->at + a->bytes ? a : NULL;
}

/* The newest of those that have all of them. */
static const struct play_region *region_at(const uint8_t *at, uint32_t bytes)
{
    const struct play_region *newest = NULL;
    for (uint32_t i = count_until(ledger.region, ledger.region_count, at);
         i > 0 && at < ledger.region[i - 1].at + PLAY_REGION_BYTES; i--) {
        const struct play_region *r = ledger.region[i - 1].is;
        if (at + bytes <= r->at + PLAY_REGION_BYTES && (newest == NULL || r->id > newest->id))
            newest = r;
    }
    return newest;
}

static const char *const KINDS[] = {"READ", "WRITE", "atomic"};

static void look_at_remote(const struct arena *a, const struct sim_access *access)
{
    const struct play_region *r = region_at(access->at, access->bytes);
    const char *wrong = r == NULL ? play_mail_read(access) : NULL;
    if (wrong != NULL)
        play_violation(
            a->owner,
            "a %s of node %u was carried out %s: %u bytes at %llu of its arena, by key 0x%x",
            KINDS[access->kind], access->initiator, wrong, access->bytes,
            (unsigned long long)((uint8_t *)access->at - a->at), access->key);
    if (r == NULL)
        return;
    play_order_written(access);
    if (!r->lease_only && access->identity <= r->born_identity)
        play_violation(a->owner,
                       "a %s of node %u is carried out in region %llu by a registration that is "
                       "older than that",
                       KINDS[access->kind], access->initiator, (unsigned long long)r->id);
    enum play_posted post = play_posts_reach(access, r->tenant_id);
    if (post == PLAY_POST_NONE && r->guest_id != 0)
        post = play_posts_reach(access, r->guest_id);
    if (post != PLAY_POST_OUT)
        play_violation(a->owner, "a %s of node %u is carried out in region %llu, %s",
                       KINDS[access->kind], access->initiator, (unsigned long long)r->id,
                       post == PLAY_POST_NONE ? "and nobody of that tenant has asked for it"
                                              : "and was before, by an earlier post");
}

/* Its own node's device gathers what is sent from there, or scatters what has come. */
static void look_at_own(const struct arena *a, const struct sim_access *access)
{
    static const char *const FAULTS[] = {[PLAY_POST_NONE] = "which no request of its own names",
                                         [PLAY_POST_OVER] =
                                             "which a request names that is over, or out anew"};
    const enum play_posted post = play_posts_own(access, a->session);
    if (post != PLAY_POST_OUT)
        play_violation(a->owner, "its device %s %u bytes at %llu of its arena, %s",
                       access->kind == SIM_READ ? "sends" : "fills", access->bytes,
                       (unsigned long long)((uint8_t *)access->at - a->at), FAULTS[post]);
}

void play_ledger_accessed(const struct sim_access *access)
{
    const struct arena *a = arena_at(access->at, access->bytes);
    if (a == NULL) /* an agent's own */
        return;
    ledger.accesses++;
    if (access->remote)
        look_at_remote(a, access);
    else
        look_at_own(a, access);
}

bool play_ledger_is_lease_only(const void *at, uint32_t bytes)
{
    const struct play_region *r = region_at(at, bytes);
    return r != NULL && r->lease_only;
}

void play_ledger_registered(const struct sim_region *region)
{
    ledger.last_identity = region->identity;
}

uint64_t play_ledger_accesses(void)
{
    return ledger.accesses;
}
