/* SPDX-License-Identifier: Apache-2.0 */
/* The lane shows completions, and takes requests, by their phases: for as long as who has published
 * them is kept from its processor there the tail is behind, and nothing waits for that. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 1 };

static struct world world;
static struct world *w = &world;
static struct world_worker k;

static void nothing_waits(void)
{
    static const uint32_t none[SCHEMA_WAITS];
    uint32_t count[SCHEMA_WAITS];
    lane_waits(k.memory, true, count);
    ck_assert_mem_eq(count, none, sizeof count);
}

START_TEST(what_was_taken_ahead_of_a_tail_waits_for_nothing)
{
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    world_run(w, 8);
    nothing_waits();
    k.w->cq_head = k.r->cq_tail + 3;
    nothing_waits();
    k.w->cq_head = k.r->cq_tail;
    k.w->sq_tail = k.r->sq_head - 1;
    nothing_waits();
    k.w->sq_tail = k.r->sq_head;
    world_detach(w, &k);
    world_close(w);
}
END_TEST

#define TESTS(T) T(what_was_taken_ahead_of_a_tail_waits_for_nothing)
KEDGE_CHECK_MAIN("agent.lane.waits_ahead", TESTS)
