/* SPDX-License-Identifier: Apache-2.0 */
/* Rings full of control operations, of several sessions: what a lane is to do for one tenant in a
 * pass must not grow with what its workers ask for, nor what stands before others at the device. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"
#include "schema/record.h"

enum {
    SESSIONS = 8,
    REGIONS = 256,
    REGION = 64,
    CROWD = 120, /* sessions of one tenant, or as many as it may have */
    ASKED = 16,  /* at once, of a session */
    LEAST = 20,
    MOST = 10000 /* of the honest worker */
};

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

/* As many tokens that nobody gave as there can be in a message, as often as single ones. */
static void put_bulk(struct hostile *h, struct raw *r)
{
    struct schema_grant grants[SCHEMA_IMPORTS_AT_ONCE];
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT_MANY,
                               .slots = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE};
    static_assert(sizeof grants == SCHEMA_MAX_EXTRA, "all slots behind it");
    hostile_fill(h, grants, sizeof grants);
    d.import_many.tag = ++r->tag;
    d.import_many.count = SCHEMA_IMPORTS_AT_ONCE;
    raw_put(r, &d, grants, d.slots - 1);
}

static void fill_ring(struct hostile *h, struct raw *r, uint8_t op, const uint32_t vkey[REGIONS])
{
    const uint32_t most = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE;
    while (r->tail - atomic_load(&r->ro->sq_head) + most <= r->ro->sq_slots) {
        struct schema_sq_desc d = next_of(h, op, vkey);
        if (op == SCHEMA_OP_IMPORT && hostile_random(h) % 2 == 0) {
            put_bulk(h, r);
            h->did++;
            continue;
        }
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

/* Of many sessions, each of which always has a registration under way, and others behind that. Who
 * has no more regions ends and comes again. */
static void ask_for_regions(struct hostile *h, struct raw *r)
{
    for (uint32_t asked = 0; asked < ASKED; asked++) {
        struct schema_sq_desc d = {
            .op = SCHEMA_OP_REG_MR,
            .slots = 1,
            .reg_mr = {.offset = asked * REGION, .length = REGION, .access = SCHEMA_RECORD_READ}};
        d.connect.tag = ++r->tag;
        raw_put(r, &d, NULL, 0);
        h->did++;
    }
}

static bool is_answered(const struct raw *r)
{
    return atomic_load(&r->ro->reply[r->tag % SCHEMA_REPLIES].tag) == r->tag;
}

void attack_regions(struct hostile *h)
{
    static struct raw r[CROWD];
    int sessions = 0;
    for (int tries = 0; sessions < CROWD && tries < 3; tries++) {
        if (raw_try(h->socket, &r[sessions]) != 0) { /* or those ahead are being made */
            usleep(100000);
            continue;
        }
        tries = 0;
        ask_for_regions(h, &r[sessions++]);
    }
    if (sessions == 0)
        hostile_fail("the agent has had no session");
    while (!hostile_over(h)) {
        for (int i = 0; i < sessions; i++) {
            if (raw_ended(&r[i]))
                hostile_fail("asking for regions ended the session");
            if (!is_answered(&r[i]))
                continue;
            if (r[i].tag + ASKED > REGIONS) {
                raw_close(&r[i]);
                raw_open(h, &r[i]);
            }
            ask_for_regions(h, &r[i]);
        }
        usleep(1000);
    }
    while (sessions > 0)
        raw_close(&r[--sessions]);
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Registers a region of its own at the device and gives it back, one at a time, LEAST times or
 * more.
 */
void registrar(struct hostile *h)
{
    static uint64_t took_ns[MOST];
    struct raw r;
    raw_open(h, &r);
    while (h->did < LEAST || (!hostile_over(h) && h->did < MOST)) {
        uint64_t value[2];
        struct schema_sq_desc reg = {
            .op = SCHEMA_OP_REG_MR,
            .reg_mr = {.length = REGION, .access = SCHEMA_RECORD_READ | SCHEMA_REG_FENCED}};
        const uint64_t begin = base_clock_ns();
        int status = raw_ask(&r, &reg, value);
        took_ns[h->did++] = base_clock_ns() - begin;
        if (status != 0)
            hostile_fail("registrar: %s", strerror(-status));
        struct schema_sq_desc back = {.op = SCHEMA_OP_DEREG_MR,
                                      .dereg_mr = {.vkey = (uint32_t)value[0]}};
        if ((status = raw_ask(&r, &back, NULL)) != 0)
            hostile_fail("registrar: giving back: %s", strerror(-status));
    }
    raw_close(&r);
    qsort(took_ns, h->did, sizeof took_ns[0], compare_ns);
    printf("p50 %llu ns, p90 %llu ns\n", (unsigned long long)took_ns[h->did / 2],
           (unsigned long long)took_ns[h->did * 9 / 10]);
}
