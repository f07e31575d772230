/* SPDX-License-Identifier: Apache-2.0 */
#include "world_accomplices.h"

#include <check.h>

static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

void accomplices_doorbells(struct world *w)
{
    for (uint32_t id = 0; id <= SESSIONS; id++)
        lane_doorbell(w->node[0].lane, id);
}

void accomplices_open(struct accomplices *s, struct world *w, uint8_t ack_timeout)
{
    *s = (struct accomplices){.w = w};
    world_fault.seed = 1;
    world_fault.delay_ppm = 1000000;
    world_fault.delay_polls = LATE;
    world_ack_timeout = ack_timeout;
    world_open(w);
    world_attach(w, &s->gone, 1, 0, GUILTY);
    world_attach(w, &s->stays, 1, 1, HONEST);
    for (uint32_t i = 0; i < SESSIONS; i++)
        world_attach(w, &s->guilty[i], 0, i, GUILTY);
    world_attach(w, &s->honest, 0, SESSIONS, HONEST);
    s->gone_key = world_register(w, &s->gone, 0, 4096, ALL);
    s->key = world_register(w, &s->stays, 0, 4096, ALL);
}

void accomplices_close(struct accomplices *s)
{
    struct world *w = s->w;
    world_detach(w, &s->honest);
    for (uint32_t i = 0; i < SESSIONS; i++)
        world_detach(w, &s->guilty[i]);
    world_detach(w, &s->stays);
    world_detach(w, &s->gone);
    world_close(w);
    world_fault = (struct fault_plan){0};
}

enum ibv_wc_status accomplices_one(struct world *w, struct world_worker *k, uint8_t op,
                                   uint32_t key)
{
    struct schema_sq_desc d = world_rw(op, 1, 0, 8, key, 0);
    world_post(k, &d);
    return (enum ibv_wc_status)world_done(w, k, LONG).status;
}

void accomplices_warm(struct accomplices *s)
{
    struct world *w = s->w;
    for (uint32_t i = 0; i < SESSIONS; i++) {
        ck_assert_int_eq(world_connect(w, &s->guilty[i], 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &s->guilty[i], SCHEMA_OP_READ, s->gone_key),
                         IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(world_connect(w, &s->honest, 0, 1), 0);
    s->bound[0] = true;
    ck_assert_int_eq(accomplices_one(w, &s->honest, SCHEMA_OP_READ, s->key), IBV_WC_SUCCESS);
    world_take_away(w, &s->gone);
}

void accomplices_bind(struct accomplices *s)
{
    struct world *w = s->w;
    for (uint16_t vqp = 0; vqp < VQPS; vqp++)
        if (!s->bound[vqp])
            ck_assert_int_eq(world_connect(w, &s->honest, vqp, 1), 0);
}

void accomplices_post(struct accomplices *s, uint8_t op)
{
    struct world *w = s->w;
    for (uint16_t i = 0; i < WRITES; i++) {
        struct schema_sq_desc d = world_rw(op, i, 0, 8, s->key, 64 * (i % VQPS));
        d.vqp = i % VQPS;
        world_post(&s->honest, &d);
        accomplices_doorbells(w);
        world_run(w, 1);
    }
    s->posted += WRITES;
}

void accomplices_take(struct accomplices *s)
{
    struct world *w = s->w;
    for (int i = 0; i < WRITES; i++) {
        const struct schema_cqe e = world_done(w, &s->honest, LONG);
        s->bound[e.vqp] = e.status == IBV_WC_SUCCESS;
        s->failed += e.status != IBV_WC_SUCCESS;
        s->late_failed += e.status != IBV_WC_SUCCESS && s->breaks >= BREAKS;
    }
}

void accomplices_round_beside(struct accomplices *s, struct world_worker *k, uint8_t op,
                              uint8_t honest_op)
{
    struct world *w = s->w;
    world_sleep(w, EVENT_NS);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    accomplices_bind(s);
    world_run(w, 3);
    struct schema_sq_desc d = world_rw(op, 9, 0, 8, s->gone_key, 0);
    world_post(k, &d);
    accomplices_post(s, honest_op);
    accomplices_take(s);
    const struct schema_cqe e = world_done(w, k, LONG);
    ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    s->breaks += e.status == IBV_WC_REM_ACCESS_ERR;
}

void accomplices_round(struct accomplices *s, struct world_worker *k, uint8_t op)
{
    accomplices_round_beside(s, k, op, SCHEMA_OP_WRITE);
}

/* One WRITE of each of his VQPs, of which one goes in a pass. */
static void keep_busy(struct accomplices *s)
{
    struct world *w = s->w;
    const uint16_t vqp = (uint16_t)(s->passes++ % VQPS);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, vqp, 0, 8, s->key, 64 * vqp);
    struct schema_cqe e;
    while (world_poll(w, &s->honest, &e, 0)) {
        s->out[e.vqp] = false;
        s->bound[e.vqp] = e.status == IBV_WC_SUCCESS;
        s->failed += e.status != IBV_WC_SUCCESS;
    }
    if (s->out[vqp])
        return;
    if (!s->bound[vqp])
        ck_assert_int_eq(world_connect(w, &s->honest, vqp, 1), 0);
    s->bound[vqp] = s->out[vqp] = true;
    d.vqp = vqp;
    world_post(&s->honest, &d);
    s->posted++;
}

void accomplices_break_beside(struct accomplices *s, struct world_worker *k, uint32_t gone_key)
{
    struct world *w = s->w;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, gone_key, 0);
    struct schema_cqe e;
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    world_post(k, &d);
    do {
        keep_busy(s);
        accomplices_doorbells(w);
        world_run(w, 1);
    } while (!world_poll(w, k, &e, 0));
    s->breaks += e.status == IBV_WC_REM_ACCESS_ERR;
}
