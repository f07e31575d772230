/* SPDX-License-Identifier: Apache-2.0 */
#include "world_batch.h"

#include <check.h>
#include <stdatomic.h>
#include <string.h>

enum { VADDR = 0x10000, SLOTS = 64, PATIENCE = 1000 };

struct schema_batch_entry world_entry(uint64_t offset, uint32_t length, uint32_t vkey,
                                      uint64_t remote_offset)
{
    return (struct schema_batch_entry){
        .remote_addr = VADDR + remote_offset, .offset = offset, .length = length, .vkey = vkey};
}

int world_batch_new(struct world *w, struct world_worker *k, uint32_t count,
                    struct world_batch *out)
{
    const struct schema_sq_desc d = {.op = SCHEMA_OP_BATCH_NEW, .batch.make = {.count = count}};
    struct schema_reply reply;
    const int status = world_ask(w, k, d, &reply);
    if (status == 0)
        *out = (struct world_batch){
            .worker = k, .number = (uint32_t)reply.value[0], .gen = (uint32_t)reply.value[1]};
    return status;
}

static void wait_for_room(struct world *w, struct world_worker *k, uint32_t slots)
{
    for (int i = 0; i < PATIENCE && k->sq_tail - atomic_load(&k->r->sq_head) + slots > SLOTS; i++) {
        lane_doorbell(w->node[k->node].lane, k->id);
        world_run(w, 1);
    }
    ck_assert_uint_le(k->sq_tail - atomic_load(&k->r->sq_head) + slots, SLOTS);
}

static void fill_some(struct world *w, const struct world_batch *b, uint8_t op,
                      const struct schema_batch_entry *entries, uint32_t count)
{
    struct schema_sq_desc slot[1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE] = {
        {.op = SCHEMA_OP_BATCH_FILL,
         .batch.fill = {
             .number = b->number, .gen = b->gen, .count = count, .arena = b->arena, .op = op}}};
    const uint32_t slots =
        1 + (count * (uint32_t)sizeof entries[0] + SCHEMA_LINE - 1) / SCHEMA_LINE;
    slot[0].slots = (uint8_t)slots;
    memcpy(&slot[1], entries, count * sizeof entries[0]);
    wait_for_room(w, b->worker, slots);
    for (uint32_t i = 0; i < slots; i++)
        world_post(b->worker, &slot[i]);
}

void world_batch_fill(struct world *w, const struct world_batch *b, uint8_t op,
                      const struct schema_batch_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += SCHEMA_BATCH_FILLED)
        fill_some(w, b, op, entries + i,
                  count - i < SCHEMA_BATCH_FILLED ? count - i : SCHEMA_BATCH_FILLED);
    wait_for_room(w, b->worker, SLOTS);
}

int world_batch_ask(struct world *w, const struct world_batch *b, uint8_t op,
                    struct schema_reply *out)
{
    const struct schema_sq_desc d = {.op = op, .batch.ask = {.number = b->number, .gen = b->gen}};
    return world_ask(w, b->worker, d, out);
}

struct world_batch world_batch_make(struct world *w, struct world_worker *k, uint8_t op,
                                    const struct schema_batch_entry *entries, uint32_t count)
{
    struct world_batch b;
    ck_assert_int_eq(world_batch_new(w, k, count, &b), 0);
    world_batch_fill(w, &b, op, entries, count);
    ck_assert_int_eq(world_batch_ask(w, &b, SCHEMA_OP_BATCH_READY, NULL), 0);
    return b;
}

void world_batch_post(struct world *w, const struct world_batch *b, uint64_t wr_id, uint16_t vqp,
                      uint16_t vqp_gen)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_BATCH,
        .slots = 1,
        .vqp = vqp,
        .vqp_gen = vqp_gen,
        .batch.post = {.wr_id = wr_id, .number = b->number, .gen = b->gen}};
    world_post(b->worker, &d);
    lane_doorbell(w->node[b->worker->node].lane, b->worker->id);
}

const struct schema_batch_shown *world_batch_shown(const struct world_batch *b)
{
    return &b->worker->r->batch[b->number];
}
