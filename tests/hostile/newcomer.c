/* SPDX-License-Identifier: Apache-2.0 */
/* Honest workers that come and go: what they get is clean and theirs alone, and what they leave
 * behind is the secret, which everybody looks for in what he gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"

enum { SECRET_BYTES = 32, ATTACHES = 100000, PAUSE_US = 20000 };

static void fill_with_secret(uint8_t *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += SECRET_BYTES)
        memcpy(memory + i, HOSTILE_SECRET, SECRET_BYTES);
}

static void look_whether_it_is_there(const uint8_t *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += SECRET_BYTES)
        if (memcmp(memory + i, HOSTILE_SECRET, SECRET_BYTES) != 0)
            hostile_fail("newcomer: somebody wrote into its arena at %llu", (unsigned long long)i);
}

void newcomer(struct hostile *h)
{
    do {
        struct raw r;
        raw_open(h, &r); /* fails if the arena is not clean */
        fill_with_secret(r.arena, r.arena_bytes);
        if (raw_connect(&r) != 0)
            hostile_fail("newcomer: its session does not work");
        const int found = h->node != NULL ? raw_find_node(&r, h->node) : 0;
        if (found != 0)
            hostile_fail("newcomer: no %s: %s", h->node, strerror(-found));
        usleep(2000);
        look_whether_it_is_there(r.arena, r.arena_bytes);
        if (raw_ended(&r))
            hostile_fail("newcomer: its session was ended");
        h->did++;
        raw_close(&r);
    } while (!hostile_over(h));
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void attacher(struct hostile *h)
{
    static uint64_t took_ns[ATTACHES];
    do {
        struct raw r;
        const uint64_t begin = base_clock_ns();
        const int status = raw_try(h->socket, &r);
        if (status != 0)
            hostile_fail("attacher: %s", strerror(-status));
        took_ns[h->did++] = base_clock_ns() - begin;
        raw_close(&r);
        usleep(PAUSE_US);
    } while (!hostile_over(h) && h->did < ATTACHES);
    qsort(took_ns, h->did, sizeof took_ns[0], compare_ns);
    printf("p90 %llu ns\nmost %llu ns\n", (unsigned long long)took_ns[h->did * 9 / 10],
           (unsigned long long)took_ns[h->did - 1]);
}
