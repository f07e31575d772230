/* SPDX-License-Identifier: Apache-2.0 */
#include "request/batch.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "request/batch_pool.h"
#include "request/batch_run.h"
#include "request/reply.h"
#include "transmit/wr.h"

static const uint8_t batch_moves[BATCH_STATES][BATCH_STATES] = {
    /* from each to the column's */
    [BATCH_FREE] = {[BATCH_FILLING] = 1},
    [BATCH_FILLING] = {[BATCH_READY] = 1, [BATCH_FREE] = 1},
    [BATCH_READY] = {[BATCH_POSTED] = 1, [BATCH_FREE] = 1},
    [BATCH_POSTED] = {[BATCH_READY] = 1},
};

enum { SLAB_PIECES = BATCH_SLAB_BYTES / (int)sizeof(struct wr) };

void lane_batch_move(struct batch *b, enum batch_state to)
{
    BASE_ASSERT(batch_moves[b->state][to]);
    b->state = (uint8_t)to;
}

struct batch *lane_batch_find(const struct session *s, uint32_t number, uint32_t gen)
{
    struct batch *b = number < SCHEMA_BATCHES ? &s->memory->batches[number] : NULL;
    return b != NULL && b->state != BATCH_FREE && b->gen == gen ? b : NULL;
}

/* ---- room */

static uint32_t slabs_for(uint32_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

/* Of so many descriptors. Returns how many slabs it takes. */
static uint32_t size_batch(struct batch *b, uint32_t count)
{
    b->count = count;
    b->pieces = count < BATCH_PIECES ? count : BATCH_PIECES;
    return slabs_for(count, BATCH_SLAB_DESCS) + slabs_for(b->pieces, SLAB_PIECES);
}

/* Its pieces are in the first slabs, its descriptors in those behind. */
static void make_pieces(const struct batch_pool *p, struct batch *b)
{
    uint32_t slab = b->slabs.first;
    b->free_piece = NULL;
    for (uint32_t i = 0; i < b->pieces; i++) {
        if (i > 0 && i % SLAB_PIECES == 0)
            slab = p->next[slab];
        struct wr *w = (struct wr *)batch_slab(p, slab) + i % SLAB_PIECES;
        w->next = b->free_piece;
        b->free_piece = w;
    }
    b->first = p->next[slab];
}

static struct batch *find_free(const struct session *s, uint32_t *number)
{
    for (uint32_t i = 0; i < SCHEMA_BATCHES; i++)
        if (s->memory->batches[i].state == BATCH_FREE) {
            *number = i;
            return &s->memory->batches[i];
        }
    return NULL;
}

static int make_batch(struct lane *l, struct session *s, uint32_t count, uint32_t *number)
{
    struct batch *b = find_free(s, number);
    if (count == 0 || count > SCHEMA_BATCH_MOST)
        return -EINVAL;
    if (b == NULL)
        return -EDQUOT;
    *b = (struct batch){.gen = b->gen + 1, .failed = SCHEMA_BATCH_NONE};
    if (!lane_batch_pool_take(&l->batches, s->tenant_slot, size_batch(b, count), &b->slabs)) {
        COUNT(l, batches_refused, 1);
        return -EDQUOT;
    }
    make_pieces(&l->batches, b);
    b->at.slab = b->first;
    lane_batch_move(b, BATCH_FILLING);
    return 0;
}

static void free_batch(struct lane *l, struct session *s, struct batch *b)
{
    lane_batch_move(b, BATCH_FREE);
    lane_batch_pool_give(&l->batches, s->tenant_slot, &b->slabs);
}

void lane_batches_forget(struct lane *l, struct session *s)
{
    for (uint32_t i = 0; i < SCHEMA_BATCHES; i++)
        if (s->memory->batches[i].state != BATCH_FREE)
            free_batch(l, s, &s->memory->batches[i]);
}

/* ---- filling */

/* What a request would be refused for, too, whatever else there is. */
static uint32_t check_entry(const struct lane *l, const struct session *s,
                            const struct schema_sq_desc *d, const struct schema_batch_entry *e)
{
    const uint32_t arena = d->batch.fill.arena, op = d->batch.fill.op;
    if ((op != SCHEMA_OP_READ && op != SCHEMA_OP_WRITE) || e->length == 0)
        return SCHEMA_REASON_DESCRIPTOR;
    if (arena >= s->arenas || e->offset > s->arena[arena].bytes ||
        e->length > s->arena[arena].bytes - e->offset || e->length > l->res.fab->caps.max_msg_size)
        return SCHEMA_REASON_LOCAL_RANGE;
    return 0;
}

void lane_batch_fill(struct lane *l, struct session *s, const struct schema_sq_desc *d,
                     const void *entries)
{
    struct batch *b = lane_batch_find(s, d->batch.fill.number, d->batch.fill.gen);
    if (b == NULL || b->state != BATCH_FILLING)
        return; /* BATCH_READY says so */
    for (uint32_t i = 0; i < d->batch.fill.count && b->bad == 0; i++) {
        struct schema_batch_entry e;
        memcpy(&e, (const uint8_t *)entries + i * sizeof e, sizeof e);
        b->bad = batch_is_whole(b) ? SCHEMA_REASON_BATCH : (uint8_t)check_entry(l, s, d, &e);
        if (b->bad != 0) {
            b->failed = b->at.index;
            return;
        }
        *batch_desc_at(&l->batches, &b->at) =
            (struct batch_desc){.remote_addr = e.remote_addr,
                                .offset = e.offset,
                                .length = e.length,
                                .vkey = e.vkey,
                                .op = (uint8_t)d->batch.fill.op,
                                .arena = (uint8_t)d->batch.fill.arena};
        batch_advance(&l->batches, &b->at);
    }
}

/* ---- questions */

static void begin_batch(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    uint32_t number = 0;
    const int status = make_batch(l, s, d->batch.make.count, &number);
    if (status != 0) {
        lane_session_reply(l, s, status, status == -EDQUOT ? SCHEMA_REASON_BATCHES : 0, 0, 0, NULL);
        return;
    }
    const struct batch *b = &s->memory->batches[number];
    struct schema_batch_shown *shown = &s->ro->batch[number];
    atomic_store_explicit(&shown->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&shown->ended, 0, memory_order_relaxed);
    atomic_store_explicit(&shown->done, 0, memory_order_relaxed);
    atomic_store_explicit(&shown->failed, SCHEMA_BATCH_NONE, memory_order_relaxed);
    atomic_store_explicit(&shown->why, 0, memory_order_relaxed);
    lane_session_reply(l, s, 0, 0, number, b->gen, NULL);
}

/* -EINVAL: it is gone, and what was wrong with it is said. */
static void end_filling(struct lane *l, struct session *s, struct batch *b)
{
    const uint32_t bad = b->bad != 0          ? b->bad
                         : !batch_is_whole(b) ? (uint32_t)SCHEMA_REASON_BATCH
                                              : 0;
    const uint32_t which = b->bad != 0 ? b->failed : b->at.index;
    if (bad != 0)
        free_batch(l, s, b);
    else
        lane_batch_move(b, BATCH_READY);
    lane_session_reply(l, s, bad != 0 ? -EINVAL : 0, bad, which, 0, NULL);
}

void lane_batch_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    if (d->op == SCHEMA_OP_BATCH_NEW) {
        begin_batch(l, s, d);
        return;
    }
    int status = 0;
    struct batch *b = lane_batch_find(s, d->batch.ask.number, d->batch.ask.gen);
    if (b == NULL || (d->op == SCHEMA_OP_BATCH_READY && b->state != BATCH_FILLING)) {
        status = -ENOENT;
    } else if (d->op == SCHEMA_OP_BATCH_READY) {
        end_filling(l, s, b);
        return;
    } else if (d->op == SCHEMA_OP_BATCH_CANCEL) {
        lane_batch_cancel(l, s, b);
    } else if (b->state == BATCH_POSTED) {
        status = -EBUSY;
    } else {
        free_batch(l, s, b);
    }
    lane_session_reply(l, s, status, 0, 0, 0, NULL);
}
