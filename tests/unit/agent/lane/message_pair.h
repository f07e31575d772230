/* SPDX-License-Identifier: Apache-2.0 */
/* A worker on node 0 whose VQP 0 sends to a port, and one on node 1 whose VQP 3 hears it. */
#ifndef UNIT_AGENT_LANE_MESSAGE_PAIR_H
#define UNIT_AGENT_LANE_MESSAGE_PAIR_H

#include <check.h>

#include "world_messages.h"

enum { TENANT = 1, PORT = 80, PATIENCE = 20000 };

static struct world w;
static struct world_worker sender, receiver;

static inline uint8_t *memory_of(const struct world_worker *k, uint64_t offset)
{
    return (uint8_t *)k->arena.addr + offset;
}

static inline void post(struct world_worker *k, struct schema_sq_desc d)
{
    world_post(k, &d);
    lane_doorbell(w.node[k->node].lane, k->id);
}

static inline void begin_of(uint32_t node, uint32_t id)
{
    world_messages = true;
    world_open(&w);
    world_attach(&w, &receiver, 1, 0, TENANT);
    world_attach(&w, &sender, node, id, TENANT);
    ck_assert_int_eq(world_bind_port(&w, &receiver, 3, PORT), 0);
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_send_to(&sender, 0, SCHEMA_SEND_TO_PORT, PORT);
}

static inline void begin(void)
{
    begin_of(0, 0);
}

/* Both are on node 1. */
static inline void begin_own(void)
{
    begin_of(1, 1);
}

static inline void end(void)
{
    world_detach(&w, &sender);
    world_detach(&w, &receiver);
    world_close(&w);
    world_messages = false;
}

static inline void post_receive(uint64_t wr_id, uint64_t offset, uint32_t length)
{
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, wr_id, offset, length);
    d.vqp = 3;
    post(&receiver, d);
}

#endif
