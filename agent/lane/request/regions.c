/* SPDX-License-Identifier: Apache-2.0 */
/* This node's MR table: what its workers let peers use, under virtual keys. */
#include <errno.h>
#include <string.h>

#include "lane_state.h"
#include "request/lease_moves.h"
#include "request/mr_shares.h"
#include "request/region.h"
#include "session_state.h"

/* Stretched by as much as a clock may be wrong, and while this host's is in doubt by an eighth
 * more: it may run too fast, by a tenth at most, since the kernel slews no faster
 * (clock_adjtime(2)). */
uint64_t lane_region_wait_ns(const struct lane *l)
{
    const uint64_t wait_ns = l->config.mr_lease_ns + l->config.mr_lease_ns / 1000 + 1;
    return l->lease_now_ns == LANE_NEVER ? wait_ns + wait_ns / 8 : wait_ns;
}

uint32_t lane_region_places(const struct session *s)
{
    return atomic_load_explicit(&s->memory->regions_high, memory_order_relaxed);
}

/* ---- shown to whoever asks, on other threads */

enum { WORDS = 6, GRANT_WORDS = 4 };

void lane_region_show(struct region *region)
{
    const struct lane_lease *e = &region->lease;
    const uint64_t word[WORDS] = {e->state | (uint64_t)e->revoked << 8 | (uint64_t)e->fenced << 9 |
                                      (uint64_t)e->own << 10 | (uint64_t)e->number << 32,
                                  e->arena | (uint64_t)e->access << 32,
                                  e->offset,
                                  e->length,
                                  e->born_ns,
                                  e->due_ns};
    uint32_t seq = atomic_load_explicit(&region->shown_seq, memory_order_relaxed);
    atomic_store_explicit(&region->shown_seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < WORDS; i++)
        atomic_store_explicit(&region->shown_word[i], word[i], memory_order_relaxed);
    atomic_store_explicit(&region->shown_seq, seq + 2, memory_order_release);
}

uint32_t lane_leases(const struct lane_memory *memory)
{
    return atomic_load_explicit(&memory->regions_high, memory_order_acquire);
}

/* Before the lease is shown to be LIVE. Whoever reads it there and then sees these. */
static void show_grant(struct region *region, uint64_t vaddr, const uint8_t secret[16])
{
    uint64_t word[GRANT_WORDS] = {region->vkey, vaddr};
    memcpy(&word[2], secret, 16);
    for (int i = 0; i < GRANT_WORDS; i++)
        atomic_store_explicit(&region->grant_word[i], word[i], memory_order_relaxed);
}

/* grant: of GRANT_WORDS, or NULL. */
static bool read_lease(const struct region *region, struct lane_lease *out, uint64_t *grant)
{
    uint64_t word[WORDS];
    uint32_t seq;
    do {
        seq = atomic_load_explicit(&region->shown_seq, memory_order_acquire);
        for (int i = 0; i < WORDS; i++)
            word[i] = atomic_load_explicit(&region->shown_word[i], memory_order_relaxed);
        for (int i = 0; grant != NULL && i < GRANT_WORDS; i++)
            grant[i] = atomic_load_explicit(&region->grant_word[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
    } while (seq % 2 != 0 || atomic_load_explicit(&region->shown_seq, memory_order_relaxed) != seq);
    *out = (struct lane_lease){.state = (enum lane_lease_state)(word[0] & 0xff),
                               .revoked = (word[0] >> 8 & 1) != 0,
                               .fenced = (word[0] >> 9 & 1) != 0,
                               .own = (word[0] >> 10 & 1) != 0,
                               .number = (uint32_t)(word[0] >> 32),
                               .arena = (uint32_t)word[1],
                               .access = (uint32_t)(word[1] >> 32),
                               .offset = word[2],
                               .length = word[3],
                               .born_ns = word[4],
                               .due_ns = word[5]};
    return out->state != LANE_LEASE_NONE;
}

bool lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out)
{
    return read_lease(&memory->regions[index], out, NULL);
}

bool lane_lease_grant(const struct lane_memory *memory, uint32_t index, struct lane_lease *lease,
                      struct lane_grant *out)
{
    uint64_t word[GRANT_WORDS];
    const bool there = read_lease(&memory->regions[index], lease, word);
    out->vkey = (uint32_t)word[0];
    out->vaddr = word[1];
    memcpy(out->secret, &word[2], sizeof out->secret);
    return there;
}

/* ---- coming */

/* Keys are random: as they are, they are spread over the buckets. */
static uint32_t *bucket_of(const struct session *s, const struct region *region)
{
    return &s->memory->region_first[region->vkey & s->memory->region_mask];
}

static void take_place(struct session *s, const struct region *region)
{
    const uint32_t place = (uint32_t)(region - s->regions);
    uint32_t *first = bucket_of(s, region);
    s->memory->regions_taken[place / 64] |= 1ull << place % 64;
    s->memory->region_next[place] = *first;
    *first = place + 1;
}

static void give_place(struct session *s, const struct region *region)
{
    const uint32_t place = (uint32_t)(region - s->regions);
    uint32_t *at = bucket_of(s, region);
    s->memory->regions_taken[place / 64] &= ~(1ull << place % 64);
    while (*at != place + 1)
        at = &s->memory->region_next[*at - 1];
    *at = s->memory->region_next[place];
}

/* The first one that is free: places that were never used are memory that nobody has touched. */
struct region *lane_region_place(struct session *s)
{
    const uint32_t high = lane_region_places(s);
    for (uint32_t i = 0; i < high; i += 64) {
        const uint64_t taken = s->memory->regions_taken[i / 64];
        const uint32_t place = taken == UINT64_MAX ? high : i + (uint32_t)__builtin_ctzll(~taken);
        if (place < high)
            return &s->regions[place];
    }
    if (high == s->max_regions)
        return NULL;
    atomic_store_explicit(&s->memory->regions_high, high + 1, memory_order_release);
    return &s->regions[high];
}

/* What lanes of one pool write to one table are keys of its own for each: which of them it is
 * stands in the upper bits. */
static uint32_t key_of_lane(const struct schema_table *t, uint32_t drawn)
{
    enum { LANE_BITS = 3 };
    static_assert(LANE_POOL_LANES == 1 << LANE_BITS, "a lane's number stands there");
    return t->owners == NULL ? drawn : drawn >> LANE_BITS | (t->writer - 1u) << (32 - LANE_BITS);
}

/* A key that the table does not have yet; a full span gets another draw
 * (docs/metaserver.md#tables-that-are-read). */
static int put_under_a_new_key(struct lane *l, struct schema_mr_record *r)
{
    struct schema_table *t = l->res.mr_table;
    for (int draw = 0; draw < 16; draw++) {
        int status = l->random_fill(l->random_user, &r->vkey, sizeof r->vkey);
        if (status != 0)
            return status;
        r->vkey = key_of_lane(t, r->vkey);
        if (r->vkey == 0 || schema_table_get(t, r, NULL))
            continue;
        if (schema_table_put(t, r) >= 0)
            return 0;
    }
    return -ENOSPC;
}

bool lane_region_has_own(const struct lane *l, const struct schema_sq_desc *d)
{
    return (d->reg_mr.access & SCHEMA_REG_FENCED) != 0 ||
           (l->config.own_regions && (d->reg_mr.access & SCHEMA_REG_LEASE_ONLY) == 0);
}

/* Whether hardware refuses what comes too late for it, whatever the clock of who sends it says: its
 * own registration is gone by then, or the device keeps to the deadline of each request. */
static uint16_t backed_flag(const struct lane *l, const struct schema_sq_desc *d)
{
    return lane_region_has_own(l, d) || l->config.deadlines ? SCHEMA_RECORD_BACKED : 0;
}

int lane_region_publish(struct lane *l, struct session *s, struct region *region,
                        const struct schema_sq_desc *d, const struct lane_arena *at, uint32_t *vkey,
                        uint8_t secret[16])
{
    const bool fenced = (d->reg_mr.access & SCHEMA_REG_FENCED) != 0;
    const uint32_t arena = d->reg_mr.arena, access = d->reg_mr.access & REGION_ACCESS;
    const uint64_t offset = d->reg_mr.offset, length = d->reg_mr.length;
    struct schema_mr_record r = {
        .tenant = (d->reg_mr.access & REGION_LENT) != 0 ? REGION_NOBODYS : s->tenant,
        .vaddr = d->reg_mr.vaddr,
        .raddr = at->iova,
        .length = length,
        .rkey = at->rkey,
        .pool = l->config.pool,
        .flags = (uint16_t)(SCHEMA_RECORD_LIVE | access | backed_flag(l, d) |
                            schema_record_lease_flags(l->config.mr_lease_ns)),
    };
    int status = l->random_fill(l->random_user, r.secret, sizeof r.secret);
    if (status == 0)
        status = put_under_a_new_key(l, &r);
    if (status != 0) {
        lane_mr_share_give(l, s);
        return status;
    }
    region->vkey = r.vkey;
    take_place(s, region);
    region->rkey = r.rkey;
    region->hurried = false;
    lane_lease_move(&region->lease, LEASE_PUBLISHED);
    region->lease = (struct lane_lease){.state = region->lease.state,
                                        .own = lane_region_has_own(l, d),
                                        .fenced = fenced,
                                        .number = ++s->registered,
                                        .arena = arena,
                                        .access = access,
                                        .offset = offset,
                                        .length = length,
                                        .born_ns = l->now_ns};
    show_grant(region, r.vaddr, r.secret);
    lane_region_show(region);
    s->regions_used++;
    s->exported |= !fenced;
    COUNT(l, mrs, 1);
    *vkey = r.vkey;
    memcpy(secret, r.secret, sizeof r.secret);
    return 0;
}

/* ---- going */

void lane_region_withdraw(struct lane *l, struct session *s, struct region *region)
{
    struct schema_mr_record r = {.vkey = region->vkey};
    (void)schema_table_remove(l->res.mr_table, &r);
    lane_lease_move(&region->lease, LEASE_WITHDRAWN);
    lane_mr_share_give(l, s);
    COUNT(l, mrs, -1);
}

void lane_region_free(struct session *s, struct region *region)
{
    give_place(s, region);
    region->vkey = 0;
    region->by = 0;
    lane_lease_move(&region->lease, LEASE_FREED);
    region->lease = (struct lane_lease){.state = region->lease.state};
    lane_region_show(region);
    s->regions_used--;
}

struct region *lane_region_find(const struct session *s, uint32_t vkey)
{
    const struct lane_memory *m = s->memory;
    for (uint32_t i = m->region_first[vkey & m->region_mask]; i != 0; i = m->region_next[i - 1])
        if (s->regions[i - 1].vkey == vkey)
            return &s->regions[i - 1];
    return NULL;
}

void lane_region_remove(struct lane *l, struct session *s, struct region *region, uint32_t place)
{
    struct withdrawal *w = &s->memory->withdrawals[place];
    if (region->lease.state == LANE_LEASE_REVOKED) {
        lane_region_free(s, region);
        return;
    }
    if (region->lease.state == LANE_LEASE_LIVE)
        lane_region_withdraw(l, s, region);
    region->by = (uint8_t)(place + 1);
    w->left++;
    if (region->lease.own && region->lease.state == LANE_LEASE_WAITING) {
        region->hurried = true; /* the end that the operator has begun is this one's */
    } else if (region_waits(region)) {
        w->lent++;
        region->lease.due_ns = 0; /* what the operator has begun, too: its worker waits for a time
                                     of its own */
        region->tag = 0;
    }
    if (!region->lease.own)
        lane_lease_move(&region->lease, LEASE_RETURNED);
    else if (region->lease.state == LANE_LEASE_WITHDRAWING)
        s->own_withdrawn++;
    lane_region_show(region);
}

int lane_region_status(const struct session *s, uint32_t vkey)
{
    const struct region *region = lane_region_find(s, vkey);
    if (region == NULL)
        return -ENOENT;
    return region->lease.revoked ? -EACCES : 0;
}

void lane_region_end(struct lane *l, struct session *s, struct region *region)
{
    if (region->lease.state == LANE_LEASE_NONE)
        return;
    if (region->lease.state == LANE_LEASE_LIVE)
        lane_region_withdraw(l, s, region);
    lane_lease_move(&region->lease, LEASE_ENDED);
    region->lease.due_ns = 0;
    region->by = 0;
    lane_region_show(region);
}

void lane_region_show_end(struct region *region, uint64_t due_ns)
{
    if (region->lease.state == LANE_LEASE_NONE)
        return;
    region->lease.due_ns = due_ns;
    lane_region_show(region);
}

/* ---- to another table, since this node's name is another */

/* Its record goes over with its key; nobody who READs the former table renews a lease by it. */
static bool move_region(struct lane *l, struct schema_table *to, const struct region *region)
{
    struct schema_table *from = l->res.mr_table;
    const struct schema_mr_record key = {.vkey = region->vkey};
    struct schema_mr_record r;
    if (!schema_table_get(from, &key, &r))
        return false;
    (void)schema_table_remove(from, &r);
    return schema_table_put(to, &r) >= 0;
}

uint32_t lane_regions_move(struct lane *l, struct schema_table *to)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < l->config.max_sessions; i++) {
        struct session *s = &l->sessions[i];
        for (uint32_t k = 0; s->state != SESSION_NONE && k < lane_region_places(s); k++)
            if (s->regions[k].lease.state == LANE_LEASE_LIVE)
                lost += !move_region(l, to, &s->regions[k]);
    }
    l->res.mr_table = to;
    return lost;
}
