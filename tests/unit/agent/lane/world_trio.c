/* SPDX-License-Identifier: Apache-2.0 */
#include "world_trio.h"

#include <check.h>
#include <string.h>

enum { TENANT = 7, LONG = 200000 /* passes */ };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

void world_delay(struct world *w, uint32_t polls)
{
    const struct fault_plan plan = {
        .seed = 1, .delay_ppm = polls == 0 ? 0 : 1000000, .delay_polls = polls};
    fault_set_plan(w->node[0].fab, &plan);
}

void world_warm(struct world *w, struct world_worker *k, uint32_t key)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, key, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    for (int i = 0; i < 2; i++) { /* the second time the peer is known to answer */
        world_post(k, &d);
        ck_assert_uint_eq(world_done(w, k, LONG).status, IBV_WC_SUCCESS);
    }
}

void world_trio_open(struct world *w, struct world_trio *t)
{
    world_fault = (struct fault_plan){.seed = 1};
    world_ack_timeout = 19;                                 /* 2 s: a busy host may not disturb */
    world_mr_lease_ns[0] = world_mr_lease_ns[1] = 50000000; /* no record is READ in between */
    world_open(w);
    world_attach(w, &t->owner, 1, 0, TENANT);
    world_attach(w, &t->writer, 0, 0, TENANT);
    world_attach(w, &t->adder, 0, 1, TENANT);
    world_attach(w, &t->reader, 0, 2, TENANT);
    t->key = world_register(w, &t->owner, 0, 4096, ALL);
    world_warm(w, &t->writer, t->key);
    world_warm(w, &t->adder, t->key);
    world_warm(w, &t->reader, t->key);
}

void world_trio_close(struct world *w, struct world_trio *t)
{
    world_delay(w, 0);
    world_detach(w, &t->reader);
    world_detach(w, &t->adder);
    world_detach(w, &t->writer);
    world_detach(w, &t->owner);
    world_close(w);
    world_fault = (struct fault_plan){0};
    memset(world_mr_lease_ns, 0, sizeof world_mr_lease_ns);
}

void world_trio_post(struct world *w, struct world_trio *t)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 2, 0, 8, t->key, 128);
    world_post(&t->writer, &d);
    d = world_rw(SCHEMA_OP_FAA, 3, 64, 8, t->key, 0);
    d.post.compare_add = 1;
    world_post(&t->adder, &d);
    d = world_rw(SCHEMA_OP_READ, 4, 0, 8, t->key, 0);
    world_post(&t->reader, &d);
    for (uint32_t id = 0; id < 3; id++)
        lane_doorbell(w->node[0].lane, id);
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
}
