/* SPDX-License-Identifier: Apache-2.0 */
/* An agent is told that other nodes do not reach it. */
#include <errno.h>

#include "../../check_main.h"
#include "address_change.h"
#include "base/clock.h"
#include "device_bed.h"
#include "due.h"
#include "proofs.h"
#include "register.h"

static const char reached[] = "{\"prove\":[]}",
                  unreached[] =
                      "{\"prove\":[],\"unreached\":{\"by\":2,\"tried_by\":3,\"for_ms\":5}}";

static void begin(void)
{
    bed_begin(POOL_COUNT);
    w.agent.config.metaservers = 1;
    w.agent.config.prove_ns = 5 * BASE_NS_PER_S;
    w.pool[0].registration[0] =
        (struct registration){.pool = &w.pool[0], .url = "http://m", .state = REGISTRATION_DONE};
    agent_proofs_tick(&w.agent);     /* it begins, and tells */
    w.agent.proofs.under_way = true; /* the lane is slow */
}

/* What the last proof of the metaserver has shown. */
static void prove(int status)
{
    (void)agent_reach_note(&w.agent.proofs.reach, 0, status, w.world.now_ns, 0);
}

/* What it is told is answered with that; the next time is half a minute later. */
static void answer(const char *body)
{
    test_world_answer(&w.world, w.world.calls - 1, 200, body);
    w.agent.address_due_ns = UINT64_MAX; /* nobody looks for another address */
    if (agent_address_due_ns(&w.agent) == DUE_NOW)
        agent_address_tick(&w.agent);
    test_world_advance(&w.world, 30 * BASE_NS_PER_S);
    const uint32_t calls = w.world.calls;
    agent_proofs_tick(&w.agent);
    ck_assert_uint_eq(w.world.calls, calls + 1);
}

static uint32_t made(void)
{
    return w.world.steps[WORLD_DEVICE_TARGET];
}

static void end_making(void)
{
    w.pool[0].registration[0].state = REGISTRATION_NONE; /* that is told elsewhere */
    for (int i = 0; i < POOL_COUNT; i++)
        agent_address_step_done(&w.pool[i], WORLD_DEVICE_TARGET, 0);
    w.pool[0].registration[0].state = REGISTRATION_DONE;
}

START_TEST(a_node_that_others_do_not_reach_makes_its_targets_anew_and_not_again_at_once)
{
    begin();
    prove(0);
    answer(reached);
    ck_assert_uint_eq(made(), 0);
    answer(unreached);
    ck_assert_uint_eq(made(), POOL_COUNT);
    ck_assert_uint_eq(w.agent.proofs.unreached.by, 2);
    end_making();
    answer(unreached); /* they have not found out yet */
    answer(unreached);
    ck_assert_uint_eq(made(), POOL_COUNT);
    answer(unreached); /* 90 s later, of which a round of proofs takes 80 s */
    ck_assert_uint_eq(made(), 2 * POOL_COUNT);
    end_making();
    answer("{\"unreached\":{\"by\":2,\"tried_by\":2,\"for_ms\":9000000000000}}");
    ck_assert(w.agent.proofs.unreached.is); /* for ever so long */
    answer(reached);
    ck_assert(!w.agent.proofs.unreached.is);
    ck_assert_uint_eq(w.agent.proofs.unreached.anew, 2);
    ck_assert_uint_eq(w.agent.endpoints, 2); /* metaservers hear of each */
}
END_TEST

/* Of those who reach it none is to have his requests end with an error for that. */
START_TEST(the_targets_before_stay_until_peers_have_read_of_the_present_ones)
{
    begin();
    prove(0);
    answer(unreached);
    for (int i = 0; i < POOL_COUNT; i++)
        ck_assert(w.pool[i].readdress.keeps);
    w.pool[0].device.bound_ns = BASE_NS_PER_S;
    end_making();
    agent_address_tick(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_FORMER], 0);
    const uint64_t due_ns = agent_address_due_ns(&w.agent);
    ck_assert_uint_eq(due_ns, w.world.now_ns + 20 * BASE_NS_PER_S);
    test_world_advance(&w.world, 20 * BASE_NS_PER_S);
    agent_address_tick(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_FORMER], POOL_COUNT - 1);
    test_world_advance(&w.world, BASE_NS_PER_S);
    agent_address_tick(&w.agent);
    agent_address_tick(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_FORMER], POOL_COUNT);
}
END_TEST

START_TEST(where_it_reaches_nothing_itself_or_has_no_port_that_is_no_help)
{
    begin();
    answer(unreached); /* nothing was proven yet */
    prove(-ETIMEDOUT);
    answer(unreached);
    prove(0);
    w.agent.address.down = true;
    answer(unreached);
    w.agent.address.down = false;
    w.agent.address.gone = true;
    answer(unreached);
    w.agent.address.gone = false;
    w.agent.readdressing = 1;
    answer(unreached);
    ck_assert_uint_eq(made(), 0);
    ck_assert(w.agent.proofs.unreached.is);
    w.agent.readdressing = 0;
    answer(unreached);
    ck_assert_uint_eq(made(), POOL_COUNT);
}
END_TEST

START_TEST(over_rc_there_is_no_target)
{
    begin();
    w.pool[0].device.rc = w.pool[1].device.rc = true;
    prove(0);
    answer(unreached);
    ck_assert_uint_eq(made(), 0);
    ck_assert(w.agent.proofs.unreached.is);
}
END_TEST

START_TEST(what_one_node_says_and_what_makes_no_sense_is_not_heeded)
{
    static const char *const bodies[] = {
        "{\"unreached\":{\"by\":1,\"tried_by\":1,\"for_ms\":5}}",
        "{\"unreached\":{\"by\":2,\"tried_by\":4,\"for_ms\":5}}",
        "{\"unreached\":{\"by\":3,\"tried_by\":2,\"for_ms\":5}}",
        "{\"unreached\":{\"by\":-2,\"tried_by\":-1,\"for_ms\":5}}",
        "{\"unreached\":{\"by\":2,\"tried_by\":2,\"for_ms\":-5}}",
        "{\"unreached\":{\"by\":4294967298,\"tried_by\":4294967298,\"for_ms\":5}}",
        "{\"unreached\":{\"by\":\"2\",\"tried_by\":true}}",
        "{\"unreached\":[2,2]}",
        "{\"unreached\":true}",
        "[]",
        "no JSON",
        ""};
    begin();
    prove(0);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        answer(bodies[i]);
    ck_assert_uint_eq(made(), 0);
    ck_assert(!w.agent.proofs.unreached.is);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_node_that_others_do_not_reach_makes_its_targets_anew_and_not_again_at_once)                \
    T(the_targets_before_stay_until_peers_have_read_of_the_present_ones)                           \
    T(where_it_reaches_nothing_itself_or_has_no_port_that_is_no_help)                              \
    T(over_rc_there_is_no_target)                                                                  \
    T(what_one_node_says_and_what_makes_no_sense_is_not_heeded)
KEDGE_CHECK_MAIN("agent.control.proofs", TESTS)
