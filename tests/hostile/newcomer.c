/* SPDX-License-Identifier: Apache-2.0 */
/* Honest workers that come and go: what they get is clean and theirs alone, and what they leave
 * behind is the secret, which everybody looks for in what he gets. */
#include <string.h>
#include <unistd.h>

#include "hostile.h"

enum { SECRET_BYTES = 32 };

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
