/* SPDX-License-Identifier: Apache-2.0 */
/* This node's MR table: what its workers let peers use, under virtual keys. */
#include <errno.h>
#include <string.h>

#include "internal.h"

uint64_t region_wait_ns(const struct kedge_lane *l)
{
    return l->config.mr_lease_ns + l->config.mr_lease_ns / 1000 + 1;
}

static struct region *free_region(struct session *s)
{
    for (uint32_t i = 0; i < s->max_regions; i++)
        if (s->regions[i].vkey == 0)
            return &s->regions[i];
    return NULL;
}

/* A key that the table does not have yet; a full window gets another draw (design: "Metadata that
 * is READ"). */
static int put_under_a_new_key(struct kedge_lane *l, struct kedge_mr_record *r)
{
    struct kedge_table *t = l->res.mr_table;
    for (int draw = 0; draw < 16; draw++) {
        struct kedge_mr_record known;
        int status = l->random_fill(l->random_user, &r->vkey, sizeof r->vkey);
        if (status != 0)
            return status;
        const uint8_t *window =
            t->slots + (size_t)kedge_mr_home(&t->desc, r->vkey) * KEDGE_RECORD_BYTES;
        if (r->vkey == 0 || kedge_mr_find(&t->desc, window, r->vkey, &known) != -ENOENT)
            continue;
        if (kedge_table_put(t, r) >= 0)
            return 0;
    }
    return -ENOSPC;
}

int region_add(struct kedge_lane *l, struct session *s, const struct kedge_sq_desc *d,
               uint32_t *vkey, uint8_t secret[16])
{
    const uint32_t all = KEDGE_RECORD_READ | KEDGE_RECORD_WRITE | KEDGE_RECORD_ATOMIC;
    uint32_t arena = d->reg_mr.arena;
    uint64_t offset = d->reg_mr.offset, length = d->reg_mr.length;
    if (d->reg_mr.access == 0 || (d->reg_mr.access & ~all) != 0 || arena >= s->arenas ||
        length == 0 || offset > s->arena[arena].bytes || length > s->arena[arena].bytes - offset ||
        d->reg_mr.vaddr > UINT64_MAX - length)
        return -EINVAL;
    struct region *region = s->regions_used < s->max_regions ? free_region(s) : NULL;
    if (region == NULL || !quota_take(s->quota, &s->quota->mrs, s->quota->max_mrs))
        return -EDQUOT;
    struct kedge_mr_record r = {
        .tenant = s->tenant,
        .vaddr = d->reg_mr.vaddr,
        .raddr = (uintptr_t)s->arena[arena].addr + offset,
        .length = length,
        .rkey = s->arena[arena].rkey,
        .pool = l->config.pool,
        .flags = (uint16_t)(KEDGE_RECORD_LIVE | d->reg_mr.access),
    };
    int status = l->random_fill(l->random_user, r.secret, sizeof r.secret);
    if (status == 0)
        status = put_under_a_new_key(l, &r);
    if (status != 0) {
        quota_give(&s->quota->mrs);
        return status;
    }
    region->vkey = r.vkey;
    region->rkey = r.rkey;
    s->regions_used++;
    s->exported = 1;
    COUNT(l, mrs, 1);
    *vkey = r.vkey;
    memcpy(secret, r.secret, sizeof r.secret);
    return 0;
}

static void withdraw(struct kedge_lane *l, struct session *s, struct region *region)
{
    struct kedge_mr_record r = {.vkey = region->vkey};
    (void)kedge_table_remove(l->res.mr_table, &r);
    region->vkey = 0;
    s->regions_used--;
    quota_give(&s->quota->mrs);
    COUNT(l, mrs, -1);
}

int region_remove(struct kedge_lane *l, struct session *s, uint32_t vkey, uint32_t *rkey)
{
    for (uint32_t i = 0; vkey != 0 && i < s->max_regions; i++) {
        if (s->regions[i].vkey != vkey)
            continue;
        *rkey = s->regions[i].rkey;
        withdraw(l, s, &s->regions[i]);
        /* Whoever READs from here on finds nothing; the clock is read after this (next pass). */
        atomic_thread_fence(memory_order_seq_cst);
        return 0;
    }
    return -ENOENT;
}

void regions_remove_all(struct kedge_lane *l, struct session *s)
{
    for (uint32_t i = 0; i < s->max_regions && s->regions_used > 0; i++)
        if (s->regions[i].vkey != 0)
            withdraw(l, s, &s->regions[i]);
    atomic_thread_fence(memory_order_seq_cst);
}
