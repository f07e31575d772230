/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: as many as there are, guesses at those of others, and lists that nothing ends. */
#include <errno.h>
#include <stdatomic.h>

#include "hostile.h"

enum { GUESSES = 64, LIST = 8 };

/* All that its session may have, and one more. Returns how many. */
static uint32_t take_counters(struct hostile *h, struct raw *r, uint64_t *name)
{
    uint32_t n = 0;
    uint64_t value[2];
    struct schema_sq_desc d = {.op = SCHEMA_OP_COUNTER_NEW};
    while (n <= SCHEMA_COUNTERS && raw_ask(r, &d, value) == 0) {
        *name = value[0];
        n++;
        h->did++;
    }
    if (n > SCHEMA_COUNTERS)
        hostile_fail("counters: a session has %u", n);
    return n;
}

/* A list whose WRITEs name no region, and, now and then, nothing behind them. */
static void put_list(struct hostile *h, struct raw *r)
{
    for (uint32_t i = 0; i < LIST; i++) {
        const struct schema_sq_desc write = {
            .op = SCHEMA_OP_WRITE,
            .flags = SCHEMA_OP_LISTED,
            .num_sge = 1,
            .slots = 1,
            .post = {.length = 8, .vkey = (uint32_t)hostile_random(h)}};
        if (hostile_random(h) % 4 == 0)
            raw_put(r, &write, NULL, 0);
    }
}

/* Near one of its own, as others' may be. One that is raised is another worker's. */
static bool guess(struct hostile *h, struct raw *r, uint64_t name)
{
    const uint64_t near = (name & ~(uint64_t)0xffffffff) | hostile_random(h) % (64 << 16);
    const struct schema_sq_desc to = {
        .op = SCHEMA_OP_SEND_TO,
        .slots = 1,
        .send_to = {.kind = SCHEMA_SEND_TO_COUNTER, .to = near, .secret = hostile_random(h)}};
    const struct schema_sq_desc send = {
        .op = SCHEMA_OP_SEND, .flags = SCHEMA_OP_SIGNALED | SCHEMA_OP_LISTED, .slots = 1};
    struct schema_cqe c;
    if (raw_connect(r) != 0)
        return false;
    raw_put(r, &to, NULL, 0);
    put_list(h, r);
    raw_put(r, &send, NULL, 0);
    const int status = raw_poll(r, &c, 10000);
    if (status == 0)
        hostile_fail("counters: another one's was raised by a guess");
    if (status == -ETIMEDOUT)
        hostile_fail("counters: a guess has no end");
    h->did++;
    h->errors++;
    return status != -EPIPE;
}

void attack_counters(struct hostile *h)
{
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct raw r;
        uint64_t name = 0;
        raw_open(h, &r);
        const uint32_t had = take_counters(h, &r, &name);
        for (int i = 0; i < GUESSES && !hostile_over(h) && guess(h, &r, name); i++)
            ;
        struct schema_sq_desc d = {.op = SCHEMA_OP_COUNTER_FREE, .counter = {.name = name}};
        if (had > 0 && !raw_ended(&r) && raw_ask(&r, &d, NULL) == 0 && raw_ask(&r, &d, NULL) == 0)
            hostile_fail("counters: one was given back twice");
        h->cut_off += raw_ended(&r);
        raw_close(&r); /* with all the others */
    }
}
