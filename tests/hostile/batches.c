/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: operations of them that make no sense, sessions and queue pairs that end in their
 * middle, and lists of single bytes, posted and cancelled without an end. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "hostile.h"
#include "schema/record.h"

enum {
    ROOM = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE,
    KNOWN = 4,
    MOST = 3 * SCHEMA_BATCH_FILLED, /* descriptors of one that is known */
    STEPS = 400,                    /* of one session */
    STORM = 16,                     /* batches */
    SHORT = 4096                    /* descriptors of one byte in each */
};

struct batch {
    uint32_t number, gen;
    bool posted;
};

/* Takes all completions that there are. False: the session is over. */
static bool take_all(struct hostile *h, struct raw *r)
{
    struct schema_cqe c;
    int status;
    while ((status = raw_poll(r, &c, 0)) >= 0)
        h->errors += status != 0;
    return status != -EPIPE;
}

/* Until the ring takes a descriptor with all that may follow it. */
static bool await_room(struct hostile *h, struct raw *r)
{
    while (r->tail - atomic_load(&r->ro->sq_head) + ROOM > r->ro->sq_slots)
        if (!take_all(h, r))
            return false;
    return true;
}

/* VQP 0 goes to a region of its own: its key; 0: the session is over. */
static uint32_t open_region(struct hostile *h, struct raw *r)
{
    uint64_t value[2];
    struct schema_sq_desc reg = {.op = SCHEMA_OP_REG_MR,
                                 .reg_mr = {.access = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE}};
    raw_open(h, r);
    reg.reg_mr.length = r->arena_bytes / 2;
    return raw_connect(r) == 0 && raw_ask(r, &reg, value) == 0 ? (uint32_t)value[0] : 0;
}

/* 0 or -errno. */
static int begin_batch(struct raw *r, uint32_t count, struct batch *b)
{
    uint64_t value[2];
    struct schema_sq_desc d = {.op = SCHEMA_OP_BATCH_NEW, .batch.make = {.count = count}};
    const int status = raw_ask(r, &d, value);
    if (status == 0)
        *b = (struct batch){.number = (uint32_t)value[0], .gen = (uint32_t)value[1]};
    return status;
}

static void fill_batch(struct raw *r, const struct batch *b, uint8_t op,
                       const struct schema_batch_entry *entries, uint32_t count)
{
    uint8_t extra[SCHEMA_MAX_EXTRA] = {0};
    const uint32_t more = (count * (uint32_t)sizeof entries[0] + SCHEMA_LINE - 1) / SCHEMA_LINE;
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_BATCH_FILL,
        .slots = (uint8_t)(1 + more),
        .batch.fill = {.number = b->number, .gen = b->gen, .count = count, .op = op}};
    memcpy(extra, entries, count * sizeof entries[0]);
    raw_put(r, &d, extra, more);
}

static int ask_batch(struct raw *r, uint8_t op, const struct batch *b)
{
    struct schema_sq_desc d = {.op = op, .batch.ask = {.number = b->number, .gen = b->gen}};
    return raw_ask(r, &d, NULL);
}

static void post_batch(struct raw *r, const struct batch *b, uint16_t vqp)
{
    const struct schema_sq_desc d = {.op = SCHEMA_OP_BATCH,
                                     .slots = 1,
                                     .vqp = vqp,
                                     .batch.post = {.number = b->number, .gen = b->gen}};
    raw_put(r, &d, NULL, 0);
}

/* ---- what makes no sense */

/* One that is known, or was; now and then no such one. */
static struct batch any_batch(struct hostile *h, const struct batch known[KNOWN])
{
    struct batch b = known[hostile_random(h) % KNOWN];
    const uint64_t random = hostile_random(h);
    if (random % 8 == 0)
        b.number = (uint32_t)(random >> 32);
    if (random % 8 == 1)
        b.gen += (uint32_t)(random >> 32) % 3 - 1;
    return b;
}

/* Most would do, but for one in some dozens. */
static void fill_any(struct hostile *h, struct raw *r, const struct batch *b, uint32_t key)
{
    struct schema_batch_entry entry[SCHEMA_BATCH_FILLED];
    const uint32_t count = 1 + (uint32_t)(hostile_random(h) % SCHEMA_BATCH_FILLED);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t random = hostile_random(h);
        entry[i] = (struct schema_batch_entry){.remote_addr = random % (r->arena_bytes / 2 - 64),
                                               .offset = (random >> 20) % (r->arena_bytes / 2 - 64),
                                               .length = 1 + (random >> 56) % 64,
                                               .vkey = key};
        if (random % 37 == 0)
            hostile_fill(h, &entry[i], sizeof entry[i]);
    }
    fill_batch(r, b, hostile_random(h) % 2 ? SCHEMA_OP_READ : SCHEMA_OP_WRITE, entry, count);
}

static bool is_answer(int status)
{
    return status == 0 || status == -ENOENT || status == -EINVAL || status == -EBUSY ||
           status == -EDQUOT;
}

/* In the place of one that goes, mostly. */
static int begin_anew(struct hostile *h, struct raw *r, struct batch *b, uint32_t count)
{
    const int status = hostile_random(h) % 16 != 0 ? ask_batch(r, SCHEMA_OP_BATCH_FREE, b) : 0;
    return status == -EPIPE || status == -EBUSY ? status : begin_batch(r, count, b);
}

/* False: the session is over. */
static bool do_any(struct hostile *h, struct raw *r, struct batch known[KNOWN], uint32_t key)
{
    static const uint8_t asks[] = {SCHEMA_OP_BATCH_READY, SCHEMA_OP_BATCH_CANCEL,
                                   SCHEMA_OP_BATCH_FREE};
    const struct batch b = any_batch(h, known);
    const uint64_t random = hostile_random(h);
    const struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1};
    int status = 0;
    if (random % 8 < 2)
        fill_any(h, r, &b, key);
    else if (random % 8 < 4)
        post_batch(r, &b, random >> 8 & 1);
    else if (random % 8 < 6)
        status = ask_batch(r, asks[(random >> 8) % 3], &b);
    else if (random % 8 < 7)
        status = begin_anew(h, r, &known[(random >> 24) % KNOWN], (random >> 8) % (MOST + 2));
    else if (random % 32 == 7)
        raw_put(r, &destroy, NULL, 0);
    else if (random % 32 == 15) /* after an error it goes on */
        status = raw_connect(r);
    h->errors += status != 0;
    if (status != -EPIPE && !is_answer(status))
        hostile_fail("batches: an answer that there is not: %d", status);
    return status != -EPIPE;
}

void attack_batches(struct hostile *h)
{
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct raw r;
        struct batch known[KNOWN] = {{.number = 0}};
        const uint32_t key = open_region(h, &r);
        bool lives = key != 0;
        for (int i = 0; lives && i < STEPS && !hostile_over(h); i++, h->did++)
            lives = await_room(h, &r) && do_any(h, &r, known, key) && take_all(h, &r);
        h->cut_off += raw_ended(&r);
        hostile_look_for_secret(r.arena, r.arena_bytes);
        raw_close(&r);
    }
}

/* ---- single bytes */

/* Each goes on where the one before it ends. */
static bool make_short(struct hostile *h, struct raw *r, uint32_t key, struct batch *b)
{
    struct schema_batch_entry entry[SCHEMA_BATCH_FILLED];
    if (begin_batch(r, SHORT, b) != 0)
        return false;
    for (uint32_t done = 0, n; done < SHORT; done += n) {
        n = SHORT - done < SCHEMA_BATCH_FILLED ? SHORT - done : SCHEMA_BATCH_FILLED;
        for (uint32_t i = 0; i < n; i++)
            entry[i] = (struct schema_batch_entry){.remote_addr = done + i,
                                                   .offset = r->arena_bytes / 2 + done + i,
                                                   .length = 1,
                                                   .vkey = key};
        if (!await_room(h, r))
            hostile_fail("batch-storm: filling ended the session");
        fill_batch(r, b, SCHEMA_OP_WRITE, entry, n);
    }
    return ask_batch(r, SCHEMA_OP_BATCH_READY, b) == 0;
}

/* Posts those that are not, and takes back one in three. */
static void storm_once(struct hostile *h, struct raw *r, struct batch *all, uint32_t count)
{
    struct schema_cqe c;
    for (uint32_t i = 0; i < count; i++) {
        struct batch *b = &all[i];
        if (!await_room(h, r))
            hostile_fail("batch-storm: the session ended");
        if (!b->posted)
            post_batch(r, b, 0);
        b->posted = true;
        if (hostile_random(h) % 3 == 0)
            (void)ask_batch(r, SCHEMA_OP_BATCH_CANCEL, b);
        b->posted = atomic_load(&r->ro->batch[b->number].begun) == 0 ||
                    atomic_load(&r->ro->batch[b->number].begun) !=
                        atomic_load(&r->ro->batch[b->number].ended);
    }
    while (raw_poll(r, &c, 0) >= 0) {
        if (c.status != 0 && c.status != IBV_WC_WR_FLUSH_ERR && c.status != IBV_WC_LOC_QP_OP_ERR)
            hostile_fail("batch-storm: a batch that is all right failed: %u", c.status);
        h->did++;
    }
}

void attack_batch_storm(struct hostile *h)
{
    struct raw r;
    struct batch all[STORM];
    uint32_t count = 0;
    const uint32_t key = open_region(h, &r);
    while (key != 0 && count < STORM && make_short(h, &r, key, &all[count]))
        count++;
    if (count == 0)
        hostile_fail("batch-storm: there is no batch to be had");
    hostile_begin(h);
    while (!hostile_over(h))
        storm_once(h, &r, all, count);
    h->cut_off += raw_ended(&r);
    raw_close(&r);
}
