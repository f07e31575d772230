/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a session has imported, and those that it gives back. */
#include <errno.h>
#include <stdbool.h>

#include "../../check_main.h"
#include "world.h"

enum { TENANT = 1 };

static struct world world;
static struct world *w = &world;
static struct world_worker k;

static int ask(uint8_t op, uint32_t which, struct schema_reply *reply)
{
    struct schema_sq_desc d = {.op = op, .import = {.vkey = 100 + which}};
    d.import.secret[0] = (uint8_t)which;
    d.import.secret[15] = (uint8_t)(which >> 8);
    return world_ask(w, &k, d, reply);
}

/* In whatever order they are given back, the others are there, and there is room for as many. */
START_TEST(grants_are_given_back_and_others_take_their_place)
{
    enum { DIFFERENT = 64, STEPS = 4000 };
    bool has[DIFFERENT] = {false};
    uint32_t count = 0;
    uint64_t random = 1;
    struct schema_reply reply;
    world_open(w);
    const uint32_t most = w->node[0].config.max_grants;
    ck_assert_uint_lt(most, DIFFERENT);
    world_attach(w, &k, 0, 0, TENANT);
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint32_t which = (uint32_t)(random >> 33) % DIFFERENT;
        if (random >> 63 != 0) {
            const bool fits = has[which] || count < most;
            ck_assert_int_eq(ask(SCHEMA_OP_IMPORT, which, NULL), fits ? 0 : -EDQUOT);
            count += fits && !has[which];
            has[which] |= fits;
        } else {
            ck_assert_int_eq(ask(SCHEMA_OP_UNIMPORT, which, &reply), has[which] ? 0 : -ENOENT);
            count -= has[which];
            has[which] = false;
            ck_assert_uint_eq(reply.value[0], count);
        }
    }
    world_detach(w, &k);
    world_close(w);
}
END_TEST

#define TESTS(T) T(grants_are_given_back_and_others_take_their_place)
KEDGE_CHECK_MAIN("agent.lane.grants", TESTS)
