/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker may write, wrong. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"

enum { CUT_OFF_MS = 20000, POSTS = 64 };

void attack_ring_random(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        uint32_t slots = r.ro->sq_slots;
        hostile_fill(h, r.ring, r.rw_bytes - SCHEMA_SQ_OFFSET);
        for (int i = 0; i < 1000 && !raw_ended(&r); i++, h->did++) {
            hostile_fill(h, r.rw, sizeof *r.rw);
            if (i % 2 == 0) /* a tail that can be: its descriptors are read */
                atomic_store(&r.rw->sq_tail,
                             atomic_load(&r.ro->sq_head) + 1 + (uint32_t)hostile_random(h) % slots);
            raw_ring(&r);
        }
        if (raw_ends_within(&r, CUT_OFF_MS))
            h->cut_off++;
        else
            hostile_fail("random rings did not end the session");
        raw_close(&r);
    }
}

/* Any field random, but a descriptor that passes the first look. */
static struct schema_sq_desc formed(struct hostile *h, const struct raw *r)
{
    static const uint8_t ops[] = {SCHEMA_OP_READ, SCHEMA_OP_WRITE, SCHEMA_OP_CAS,    SCHEMA_OP_FAA,
                                  SCHEMA_OP_READ, SCHEMA_OP_BIND,  SCHEMA_OP_DESTROY};
    struct schema_sq_desc d;
    hostile_fill(h, &d, sizeof d);
    d.op = ops[hostile_random(h) % sizeof ops];
    d.flags = (uint8_t)(hostile_random(h) % 8) & (uint8_t)~SCHEMA_OP_INLINE;
    d.slots = 1;
    d.num_sge = (uint8_t)(hostile_random(h) % 2);
    d.vqp = (uint16_t)(hostile_random(h) % 4);
    d.vqp_gen = (uint16_t)(hostile_random(h) % 2);
    if (d.op <= SCHEMA_OP_FAA && hostile_random(h) % 2 == 0) { /* often inside the arena */
        d.post.arena = 0;
        d.post.offset = hostile_random(h) % r->arena_bytes;
        d.post.length = (uint32_t)(hostile_random(h) % 4096);
    } else if (d.op == SCHEMA_OP_BIND) {
        d.bind.peer_slot = (uint32_t)(hostile_random(h) % 4);
        d.bind.peer_gen = (uint32_t)(hostile_random(h) % 3);
    }
    return d;
}

static void take_completions(struct hostile *h, struct raw *r)
{
    struct schema_cqe e;
    for (int status; (status = raw_poll(r, &e, 0)) >= 0;) {
        if (status != 0) {
            h->errors++;
        } else if (e.byte_len > 0) {
            hostile_fail("nonsense succeeded: %u bytes, opcode %u", e.byte_len, e.opcode);
        }
    }
}

void attack_ring_formed(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        (void)raw_connect(&r);
        while (!raw_ended(&r) && (h->errors == 0 || !hostile_over(h))) {
            struct schema_sq_desc d = formed(h, &r);
            if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots) {
                raw_put(&r, &d, NULL, 0);
                h->did++;
            }
            take_completions(h, &r);
        }
        h->cut_off += raw_ended(&r);
        raw_close(&r);
    }
}

struct tearing {
    struct raw *r;
    _Atomic bool stop;
    uint64_t random;
};

static void *tear(void *arg)
{
    struct tearing *t = arg;
    struct hostile h = {.random = t->random};
    uint8_t *ring = t->r->ring;
    size_t bytes = t->r->rw_bytes - SCHEMA_SQ_OFFSET;
    while (!atomic_load_explicit(&t->stop, memory_order_relaxed))
        for (int i = 0; i < 256; i++)
            __atomic_store_n(&ring[hostile_random(&h) % bytes], (uint8_t)hostile_random(&h),
                             __ATOMIC_RELAXED);
    return NULL;
}

/* Tokens that are others, and more or fewer, when they are read again. */
static void put_torn_bulk(struct hostile *h, struct raw *r)
{
    uint8_t grants[SCHEMA_MAX_EXTRA];
    struct schema_sq_desc d = {.op = SCHEMA_OP_IMPORT_MANY,
                               .slots = 1 + SCHEMA_MAX_EXTRA / SCHEMA_LINE};
    hostile_fill(h, grants, sizeof grants);
    d.import_many.tag = ++r->tag;
    d.import_many.count = SCHEMA_IMPORTS_AT_ONCE;
    if (r->tail - atomic_load(&r->ro->sq_head) + d.slots <= r->ro->sq_slots)
        raw_put(r, &d, grants, d.slots - 1);
}

void attack_ring_torn(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        pthread_t thread;
        raw_open(h, &r);
        (void)raw_connect(&r);
        struct tearing t = {.r = &r, .random = hostile_random(h) | 1};
        if (pthread_create(&thread, NULL, tear, &t) != 0)
            hostile_fail("no thread");
        uint64_t end = base_clock_ns() + CUT_OFF_MS * BASE_NS_PER_MS;
        while (!raw_ended(&r) && base_clock_ns() < end) {
            struct schema_sq_desc d = formed(h, &r);
            if (h->did % 8 == 0)
                put_torn_bulk(h, &r);
            else if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots)
                raw_put(&r, &d, NULL, 0);
            struct schema_cqe e;
            while (raw_poll(&r, &e, 0) >= 0) {
            }
            h->did++;
        }
        h->cut_off += raw_ended(&r);
        atomic_store(&t.stop, true);
        pthread_join(thread, NULL);
        raw_close(&r);
    }
}

void attack_indices(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        uint32_t slots = r.ro->sq_slots;
        uint32_t wrong[] = {slots + 1, 1u << 31, UINT32_MAX - 1, UINT32_MAX - slots};
        uint32_t jump = wrong[hostile_random(h) % 4];
        if (jump == slots + 1 || hostile_random(h) % 2 == 0) {
            atomic_store(&r.rw->sq_tail, jump);
            raw_ring(&r);
        } else { /* completions that were never there are said to be polled */
            (void)raw_connect(&r);
            atomic_store(&r.rw->cq_head, jump);
            struct schema_sq_desc d = {
                .op = SCHEMA_OP_READ, .slots = 1, .flags = SCHEMA_OP_SIGNALED};
            for (uint32_t i = 0; i < 8 * r.ro->cq_slots && !raw_ended(&r); i++) {
                while (r.tail - atomic_load(&r.ro->sq_head) >= slots && !raw_ended(&r)) {
                }
                raw_put(&r, &d, NULL, 0);
            }
        }
        h->did++;
        if (!raw_ends_within(&r, CUT_OFF_MS))
            hostile_fail("an index that jumped by %u did not end the session", jump);
        h->cut_off++;
        raw_close(&r);
    }
}

void attack_never_polls(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    (void)raw_connect(&r);
    struct schema_sq_desc d = {.op = SCHEMA_OP_READ, .slots = 1, .flags = SCHEMA_OP_SIGNALED};
    while (!hostile_over(h) && !raw_ended(&r)) {
        if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots) {
            raw_put(&r, &d, NULL, 0);
            h->did++;
        }
    }
    uint32_t most = 2 * r.ro->cq_slots + r.ro->sq_slots;
    if (h->did > most)
        hostile_fail("%llu requests were taken without one completion polled",
                     (unsigned long long)h->did);
    if (raw_ended(&r))
        hostile_fail("not polling is no crime");
    /* And when it polls at last, everything is there. */
    struct schema_cqe e;
    for (uint64_t i = 0; i < h->did; i++)
        if (raw_poll(&r, &e, CUT_OFF_MS) < 0)
            hostile_fail("completion %llu of %llu never came", (unsigned long long)i,
                         (unsigned long long)h->did);
    raw_close(&r);
}
