/* SPDX-License-Identifier: Apache-2.0 */
/* How much of what comes from other nodes a step takes. */
#include <check.h>

#include "../../check_main.h"
#include "world.h"

/* Nine nodes ask one at once, under a name that it had before, so that each message is counted.
 * Returns how many do. */
static uint64_t ask_all_at_once(struct world *w, uint32_t each)
{
    struct connector_peer before = peer_of(w, 0);
    uint64_t sent = 0;
    before.incarnation = 99;
    for (uint32_t i = 1; i < NODES; i++) {
        sent -= stats_of(w, i).requests;
        for (uint32_t t = 0; t < each; t++)
            connector_connect(w->node[i].c, &before, t);
        (void)node_step(w, i);
        sent += stats_of(w, i).requests;
    }
    return sent;
}

START_TEST(a_step_takes_as_many_messages_as_it_may_and_asks_for_another)
{
    enum { EACH = 20 };
    struct world w = {0};
    for (int i = 1; i < NODES; i++)
        w.node[i].config.handshakes = w.node[i].config.ahead = EACH;
    world_open(&w, NODES);
    for (uint32_t i = 1; i < NODES; i++) { /* they know where it is */
        ask(&w, i, 0, WANTED);
        ck_assert_int_eq(await(&w, i, WANTED), 0);
    }
    world_run(&w, 10);
    const uint64_t sent = ask_all_at_once(&w, EACH);
    ck_assert_uint_gt(sent, 2 * CONNECTOR_TAKES);
    for (uint64_t taken = 0; taken < sent;) {
        const uint64_t due_ns = node_step(&w, 0), now = stats_of(&w, 0).refused;
        ck_assert_uint_le(now - taken, CONNECTOR_TAKES);
        ck_assert(now == sent || due_ns <= w.now_ns);
        taken = now;
    }
    for (int steps = 0; node_step(&w, 0) <= w.now_ns; steps++) /* its answers were sent */
        ck_assert_int_lt(steps, 10);
    world_close(&w);
}
END_TEST

#define TESTS(T) T(a_step_takes_as_many_messages_as_it_may_and_asks_for_another)
KEDGE_CHECK_MAIN("agent.connect.messages", TESTS)
