/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's table of futexes, which all processes share. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "hostile.h"
#include "schema/record.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

enum { SOME = 16, MANY = 200, WORDS = FUTEX_WAITV_MAX, LOOKS = 5, PAYLOAD = 8 };

/* Threads that wait for one word, each so often as it can at a time, until it is 1. */
static struct {
    _Atomic uint32_t *word;
    uint32_t value;
    _Atomic bool stop;
} crowd;

static void *stand_there(void *arg)
{
    struct futex_waitv waits[WORDS];
    (void)arg;
    for (int i = 0; i < WORDS; i++)
        waits[i] = (struct futex_waitv){
            .val = crowd.value, .uaddr = (uintptr_t)crowd.word, .flags = FUTEX_32};
    while (!atomic_load(&crowd.stop))
        (void)syscall(SYS_futex_waitv, waits, WORDS, 0, NULL, CLOCK_MONOTONIC);
    return NULL;
}

static int gather(pthread_t *thread, int most, _Atomic uint32_t *word)
{
    pthread_attr_t attr;
    int threads = 0;
    crowd.word = word;
    crowd.value = atomic_load(word);
    atomic_store(&crowd.stop, false);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 65536);
    while (threads < most && pthread_create(&thread[threads], &attr, stand_there, NULL) == 0)
        threads++;
    usleep(500000);
    return threads;
}

static void disperse(pthread_t *thread, int threads)
{
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < threads; i++)
        while (pthread_tryjoin_np(thread[i], NULL) != 0) {
            (void)base_futex_wake(crowd.word, UINT32_MAX);
            usleep(100);
        }
}

static uint64_t time_wake(_Atomic uint32_t *word)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < LOOKS; i++) {
        const uint64_t begin = base_clock_ns();
        (void)base_futex_wake(word, 1);
        const uint64_t took = base_clock_ns() - begin;
        least = took < least ? took : least;
    }
    return least;
}

/* A word of its own that the kernel keeps in the same bucket as that for which a worker waits:
 * while some wait for the latter it takes longest to find that nobody waits for the former. */
static _Atomic uint32_t *find_neighbour(const struct raw *r)
{
    static pthread_t thread[SOME];
    _Atomic uint32_t *const words = (_Atomic uint32_t *)(void *)r->arena, *found = words;
    uint64_t most = 0;
    const int threads = gather(thread, SOME, (_Atomic uint32_t *)(uintptr_t)&r->ro->wake);
    for (uint32_t i = 0; i < 8192 && i < r->arena_bytes / 8; i++) {
        const uint64_t took = time_wake(&words[i]);
        found = took > most ? &words[i] : found;
        most = took > most ? took : most;
    }
    disperse(thread, threads);
    return found;
}

/* Whoever wakes its worker has the kernel look through tens of thousands who wait for something
 * else. */
void attack_crowded_bucket(struct hostile *h)
{
    static pthread_t thread[MANY];
    struct raw r;
    uint64_t value[2], most_ns;
    raw_open(h, &r);
    struct schema_sq_desc reg = {.op = SCHEMA_OP_REG_MR,
                                 .reg_mr = {.length = 4096, .access = SCHEMA_RECORD_WRITE}};
    if (raw_connect(&r) != 0 || raw_ask(&r, &reg, value) != 0)
        hostile_fail("registering own memory failed");
    const int threads = gather(thread, MANY, find_neighbour(&r));
    most_ns = time_wake((_Atomic uint32_t *)(uintptr_t)&r.ro->wake);
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_WRITE,
        .slots = 1,
        .num_sge = 1,
        .flags = SCHEMA_OP_SIGNALED,
        .post = {.vkey = (uint32_t)value[0], .length = PAYLOAD, .offset = 65536}};
    atomic_store(&r.rw->want_wake, 1);
    hostile_begin(h);
    while (!hostile_over(h)) {
        struct schema_cqe e;
        if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots)
            raw_put(&r, &d, NULL, 0);
        while (raw_poll(&r, &e, 0) >= 0)
            h->did++;
    }
    disperse(thread, threads);
    raw_close(&r);
    printf("to wake its worker takes %llu us\n", (unsigned long long)(most_ns / BASE_NS_PER_US));
}
