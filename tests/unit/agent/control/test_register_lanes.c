/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of two lanes with RC, and a metaserver that does not have the further one. */
#include "../../check_main.h"
#include "pool_lanes.h"
#include "prefer.h"
#include "register_bed.h"
#include "relays.h"

enum { A = 1, WORKERS = 100 };

/* As metaservers answered that knew no lanes (commit fce584fa^). */
#define OLDER                                                                                      \
    "{\"status\":400,\"field\":\"reader.lane\",\"detail\":\"unknown "                              \
    "field\",\"code\":\"malformed\"}"

/* The further lane is w.other; its first call is the last one. */
static struct registration *begin_lanes(void)
{
    begin_rc();
    w.agent.config.lanes = 2;
    w.pool.stage = POOL_CLOSING; /* what it registers is no matter here */
    w.pool.lane = (struct lane *)&w.pool;
    w.other.agent = &w.agent;
    w.other.config = &w.agent.config;
    w.other.device = w.pool.device;
    w.other.first = &w.pool;
    w.other.lane_number = w.other.place = 1;
    w.other.lane = (struct lane *)&w.other;
    w.agent.pools[1] = &w.other;
    struct registration *r = &w.other.registration[0];
    static struct fab_qp qp[2];
    for (int i = 0; i < 2; i++)
        r->initiator[i] =
            (struct table_initiator){.registration = r, .qp = &qp[i], .state = INITIATOR_READY};
    agent_registrations_start(&w.other);
    ck_assert_ptr_nonnull(r->offered);
    return r;
}

/* How many of those that come one after the other get the further lane. */
static uint32_t come(void)
{
    uint32_t further = 0;
    w.pool.count.live = w.other.count.live = 0;
    w.pool.sessions_of[A - 1] = w.other.sessions_of[A - 1] = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct pool *p = agent_lanes_choose(&w.pool, A);
        ck_assert(p == &w.pool || p == &w.other);
        p->count.live++;
        p->sessions_of[A - 1]++;
        further += p == &w.other;
    }
    return further;
}

START_TEST(a_lane_that_an_older_metaserver_does_not_know_gets_no_workers)
{
    struct registration *r = begin_lanes();
    ck_assert_uint_eq(come(), WORKERS / 2); /* none has either yet */
    answer(0);
    raise_initiator();
    answer_by(1, 400, OLDER);
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    ck_assert_msg(strstr(r->why, "older version, which knows no lanes") != NULL, "%s", r->why);
    ck_assert_str_eq(w.world.said, "not registered");
    ck_assert_uint_eq(come(), 0);
    wait_for_call(3, "PUT"); /* it may have been upgraded */
    answer_with(2, 200);
    raise_initiator();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_uint_eq(come(), WORKERS / 2);
    end();
}
END_TEST

START_TEST(a_lane_for_which_there_is_no_queue_pair_gets_no_workers)
{
    struct registration *r = begin_lanes();
    answer(0);
    raise_initiator();
    answer_by(1, 503, "{\"status\":503,\"detail\":\"all 0 queue pairs\"}");
    ck_assert_str_eq(r->why, "503: all 0 queue pairs");
    ck_assert_uint_eq(come(), 0);
    w.pool.registration[0].state = REGISTRATION_LOST; /* none has the first one either: as before */
    ck_assert_uint_eq(come(), WORKERS / 2);
    w.pool.registration[0].state = REGISTRATION_DONE;
    end();
}
END_TEST

/* Its endpoint's registrations hold for it. */
START_TEST(with_dc_each_lane_gets_workers)
{
    begin_lanes();
    answer(0);
    raise_initiator();
    answer_by(1, 400, OLDER);
    w.other.device.rc = w.pool.device.rc = false;
    ck_assert_uint_eq(come(), WORKERS / 2);
    w.other.device.rc = w.pool.device.rc = true;
    end();
}
END_TEST

/* By the first one, until it has a metaserver of its own; and again when it loses that. */
START_TEST(the_first_lane_reads_for_one_that_no_metaserver_has)
{
    struct registration *r = begin_lanes();
    const uint32_t told = w.told;
    answer(0);
    raise_initiator();
    ck_assert_uint_eq(w.told, told + 2); /* both */
    ck_assert_uint_eq(w.listed, 1);
    ck_assert(w.heard.relayed && w.heard.qp == NULL);
    ck_assert_uint_eq(w.heard.table.generation, 1);
    answer_with(1, 200);
    raise_initiator();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert(!w.heard.relayed && w.heard.qp != NULL);
    r->lane.qp = NULL; /* it broke */
    agent_prefer_tell_lane(&w.other);
    ck_assert(w.heard.relayed && w.heard.qp == NULL);
    w.pool.registration[0].lane.qp = NULL; /* and so did the first one's */
    agent_prefer_tell_lane(&w.pool);
    ck_assert_uint_eq(w.listed, 0);
    end();
}
END_TEST

/* What lanes were told of relayed READs. */
enum { RELAYED = 3 };
static struct lane_command said[RELAYED + 1];
static uint32_t said_count;

static void hear_relays(const struct lane_command *c)
{
    ck_assert_uint_le(said_count, RELAYED);
    said[said_count++] = *c;
}

START_TEST(what_a_lane_wants_goes_to_the_first_one_and_back)
{
    static struct fab_mr scratch = {.lkey = 9};
    static char memory[4 * LANE_SCRATCH_BYTES];
    begin_lanes();
    w.world.lane_told = hear_relays;
    said_count = 0;
    w.other.device.scratch_system_mr = &scratch;
    w.other.device.scratch.addr = memory;
    for (uint32_t i = 0; i < RELAYED; i++)
        agent_relays_want(&w.other, &(struct lane_event){.kind = LANE_EVENT_WANT_RELAY,
                                                         .want_relay = {.addr = 64,
                                                                        .generation = 3,
                                                                        .rkey = 7,
                                                                        .bytes = 1024,
                                                                        .place = 2,
                                                                        .tag = i,
                                                                        .metaserver = 1}});
    ck_assert_uint_eq(said_count, RELAYED);
    for (uint32_t i = 0; i < RELAYED; i++) {
        ck_assert_int_eq(said[i].kind, LANE_COMMAND_RELAY);
        ck_assert_uint_eq(said[i].relay.tag, i);
        ck_assert_uint_eq(said[i].relay.lane, 1);
        ck_assert_uint_eq(said[i].relay.metaserver, 1);
        ck_assert_uint_eq(said[i].relay.lkey, 9);
        ck_assert_uint_eq(said[i].relay.local, (uintptr_t)&memory[2 * LANE_SCRATCH_BYTES]);
    }
    said_count = 0;
    for (uint32_t i = 0; i < RELAYED; i++)
        agent_relays_answer(
            &w.pool, &(struct lane_event){.kind = LANE_EVENT_RELAYED,
                                          .relayed = {.lane = 1, .tag = i, .status = (int)i}});
    ck_assert_uint_eq(said_count, RELAYED);
    for (uint32_t i = 0; i < RELAYED; i++) {
        ck_assert_int_eq(said[i].kind, LANE_COMMAND_RELAY_DONE);
        ck_assert_uint_eq(said[i].relayed.tag, i);
        ck_assert_int_eq(said[i].relayed.status, (int)i);
    }
    w.world.lane_told = tell_lane;
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lane_that_an_older_metaserver_does_not_know_gets_no_workers)                               \
    T(a_lane_for_which_there_is_no_queue_pair_gets_no_workers)                                     \
    T(with_dc_each_lane_gets_workers)                                                              \
    T(the_first_lane_reads_for_one_that_no_metaserver_has)                                         \
    T(what_a_lane_wants_goes_to_the_first_one_and_back)
KEDGE_CHECK_MAIN("agent.control.register_lanes", TESTS)
