/* SPDX-License-Identifier: Apache-2.0 */
/* Rings full of control operations, of several sessions: what a lane is to do for one tenant in a
 * pass must not grow with what its workers ask for. */
#include <stdatomic.h>
#include <string.h>

#include "hostile.h"
#include "schema/record.h"

enum { SESSIONS = 8, REGIONS = 256, REGION = 64 };

static void register_all(struct raw *r, uint32_t vkey[REGIONS])
{
    for (uint32_t i = 0; i < REGIONS; i++) {
        uint64_t value[2];
        struct schema_sq_desc d = {
            .op = SCHEMA_OP_REG_MR,
            .reg_mr = {.offset = i * REGION, .length = REGION, .access = SCHEMA_RECORD_READ}};
        if (raw_ask(r, &d, value) != 0) /* a session may have fewer */
            return;
        vkey[i] = (uint32_t)value[0];
    }
}

/* What it asks for next: of nodes that do not exist, tokens that nobody gave, its own regions. */
static struct schema_sq_desc next_of(struct hostile *h, uint8_t op, const uint32_t vkey[REGIONS])
{
    struct schema_sq_desc d = {.op = op, .slots = 1};
    if (op == SCHEMA_OP_CONNECT) {
        hostile_fill(h, d.connect.gid, sizeof d.connect.gid);
    } else if (op == SCHEMA_OP_IMPORT) {
        d.import.vkey = (uint32_t)hostile_random(h);
        hostile_fill(h, d.import.secret, sizeof d.import.secret);
    } else {
        d.dereg_mr.vkey = vkey[hostile_random(h) % REGIONS];
    }
    return d;
}

static void fill_ring(struct hostile *h, struct raw *r, uint8_t op, const uint32_t vkey[REGIONS])
{
    while (r->tail - atomic_load(&r->ro->sq_head) < r->ro->sq_slots) {
        struct schema_sq_desc d = next_of(h, op, vkey);
        if (op == SCHEMA_OP_CONNECT)
            d.connect.pool = r->ro->pool;
        d.connect.tag = ++r->tag; /* in the same place for all of them */
        raw_put(r, &d, NULL, 0);
        h->did++;
    }
}

static void ask_on(struct hostile *h, uint8_t op)
{
    static struct raw r[SESSIONS];
    static uint32_t vkey[SESSIONS][REGIONS];
    for (int i = 0; i < SESSIONS; i++) {
        raw_open(h, &r[i]);
        if (op == SCHEMA_OP_MR_STATUS)
            register_all(&r[i], vkey[i]);
    }
    while (!hostile_over(h))
        for (int i = 0; i < SESSIONS; i++) {
            fill_ring(h, &r[i], op, vkey[i]);
            if (raw_ended(&r[i]))
                hostile_fail("asking ended the session");
        }
    for (int i = 0; i < SESSIONS; i++)
        raw_close(&r[i]);
}

void attack_connects(struct hostile *h)
{
    ask_on(h, SCHEMA_OP_CONNECT);
}

void attack_imports(struct hostile *h)
{
    ask_on(h, SCHEMA_OP_IMPORT);
}

void attack_statuses(struct hostile *h)
{
    ask_on(h, SCHEMA_OP_MR_STATUS);
}
