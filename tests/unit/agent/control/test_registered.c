/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of the metaservers that have a node with two pools: the states are the test's. */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "pool.h"
#include "register.h"

static struct agent agent;
static struct pool pools[2];
static char lane; /* they have one each, and nobody looks into it */

static void begin(uint32_t metaservers)
{
    memset(&agent, 0, sizeof agent);
    memset(pools, 0, sizeof pools);
    agent.config.metaservers = metaservers;
    for (uint32_t i = 0; i < 2; i++) {
        struct pool *p = &pools[i];
        agent.pools[i] = p;
        *p = (struct pool){.agent = &agent, .config = &agent.config, .place = i};
        p->lane = (struct lane *)(void *)&lane;
        p->stage = POOL_RUNS;
        for (uint32_t m = 0; m < metaservers; m++)
            p->registration[m] = (struct registration){.pool = p, .state = REGISTRATION_DONE};
    }
}

static void lose(uint32_t pool, uint32_t metaserver)
{
    struct registration *r = &pools[pool].registration[metaserver];
    r->state = REGISTRATION_LOST;
    snprintf(r->why, sizeof r->why, "it is gone");
}

START_TEST(a_metaserver_has_the_node_if_it_has_all_its_pools)
{
    begin(2);
    ck_assert_uint_eq(agent_registrations_done(&agent), 2);
    ck_assert_ptr_eq(agent_registrations_find(&agent, 1), &pools[0].registration[1]);
    lose(1, 1);
    ck_assert_uint_eq(agent_registrations_done(&agent), 1);
    ck_assert_uint_eq(agent_registrations_count(&pools[0]), 2);
    ck_assert_uint_eq(agent_registrations_count(&pools[1]), 1);
    ck_assert_ptr_eq(agent_registrations_find(&agent, 0), &pools[0].registration[0]);
    ck_assert_ptr_eq(agent_registrations_find(&agent, 1), &pools[1].registration[1]);
    lose(0, 1); /* the own one is said first */
    ck_assert_ptr_eq(agent_registrations_find(&agent, 1), &pools[0].registration[1]);
    pools[1].registration[1].state = REGISTRATION_ASKING; /* again: what it lacked holds */
    pools[0].registration[1].state = REGISTRATION_DONE;
    ck_assert_uint_eq(agent_registrations_done(&agent), 1);
}
END_TEST

START_TEST(a_pool_that_no_metaserver_has_is_missed)
{
    begin(2);
    ck_assert_ptr_null(agent_registrations_missed(&agent));
    lose(1, 0);
    ck_assert_ptr_null(agent_registrations_missed(&agent));
    lose(1, 1);
    ck_assert_ptr_eq(agent_registrations_missed(&agent), &pools[1]);
    lose(0, 0);
    lose(0, 1);
    ck_assert_ptr_eq(agent_registrations_missed(&agent), &pools[0]);
}
END_TEST

START_TEST(a_pool_that_comes_or_goes_is_not_missed)
{
    begin(1);
    pools[1].registration[0].state = REGISTRATION_ASKING;
    ck_assert_uint_eq(agent_registrations_done(&agent), 1);
    ck_assert_ptr_null(agent_registrations_missed(&agent));
    lose(1, 0);
    ck_assert_ptr_nonnull(agent_registrations_missed(&agent));
    pools[1].stage = POOL_LEAVING;
    ck_assert_uint_eq(agent_registrations_done(&agent), 1);
    ck_assert_ptr_null(agent_registrations_missed(&agent));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_metaserver_has_the_node_if_it_has_all_its_pools)                                           \
    T(a_pool_that_no_metaserver_has_is_missed)                                                     \
    T(a_pool_that_comes_or_goes_is_not_missed)
KEDGE_CHECK_MAIN("agent.control.registered", TESTS)
