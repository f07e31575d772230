/* SPDX-License-Identifier: Apache-2.0 */
/* A registration with a metaserver, over DC unless a test says RC: time, HTTP calls, the
 * lane and the device are the test's, and answer when it wants. */
#include "../../check_main.h"
#include "register_bed.h"
#include "register_private.h"
#include "superseded.h"

START_TEST(a_metaserver_is_told_and_its_table_known_when_its_address_is_resolved)
{
    const struct registration *r = begin();
    ck_assert_uint_eq(w.world.calls, 1);
    answer(0);
    ck_assert_int_ne(r->state, REGISTRATION_DONE);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_uint_eq(w.told, 1);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[0]);
    end();
}
END_TEST

START_TEST(why_no_address_is_had_says_whether_there_is_a_way_and_what_to_raise)
{
    const struct registration *r = begin();
    answer(0);
    resolve_with(-EHOSTUNREACH);
    ck_assert_ptr_nonnull(strstr(r->why, "its endpoint's address cannot be resolved: No route"));
    wait_for_call(2, "PUT");
    answer(1);
    resolve_with(-EAGAIN);
    ck_assert_ptr_nonnull(strstr(r->why, "hca_object"));
    end();
}
END_TEST

START_TEST(the_next_life_is_above_the_one_that_is_known_and_above_its_pools)
{
    ck_assert_uint_eq(agent_superseded_least_incarnation(0), 0);
    ck_assert_uint_eq(agent_superseded_least_incarnation(7), 7 + 4096 + 1);
    ck_assert_uint_eq(agent_superseded_least_incarnation(UINT32_MAX - 4096),
                      UINT32_MAX - 4095); /* it is a last one */
}
END_TEST

START_TEST(why_a_metaserver_refuses_the_node_says_of_what)
{
    const struct registration *r = begin();
    answer_by(0, 400,
              "{\"status\":400,\"field\":\"endpoints[0].gid\",\"detail\":\"must be unicast\"}");
    ck_assert_str_eq(r->why, "400: endpoints[0].gid: must be unicast");
    wait_for_call(2, "PUT");
    answer_by(1, 403, "{\"status\":403,\"detail\":\"the token is another node's\"}");
    ck_assert_str_eq(r->why, "403: the token is another node's");
    end();
}
END_TEST

static bool is_said_after(uint32_t call, const char *body)
{
    w.world.said = NULL;
    wait_for_call(call + 1, "PUT");
    answer_by(call, 503, body);
    return w.world.said != NULL;
}

START_TEST(a_reason_is_said_once_however_long_each_try_took)
{
    begin();
    answer_by(0, 503, "{\"detail\":\"no answer after 0 ms: refused\"}");
    ck_assert_str_eq(w.world.said, "not registered");
    ck_assert(!is_said_after(1, "{\"detail\":\"no answer after 31 ms: refused\"}"));
    ck_assert(is_said_after(2, "{\"detail\":\"no answer after 31 ms: full\"}"));
    end();
}
END_TEST

START_TEST(one_address_is_resolved_at_a_time_however_often_it_changes)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    for (int i = 0; i < 3; i++)
        agent_registrations_readdress(&w.pool);
    for (uint32_t i = 1; i < w.world.calls; i++)
        answer(i);
    while (w.resolving != NULL)
        resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[w.made - 1]);
    end();
}
END_TEST

START_TEST(one_that_is_being_resolved_when_this_nodes_own_changes_is_given_back_and_asked_for_anew)
{
    const struct registration *r = begin();
    answer(0);
    agent_registrations_readdress(&w.pool);
    resolve(); /* as begun with the former */
    ck_assert_uint_eq(w.dropped, 1);
    ck_assert_ptr_null(r->lane.ah);
    ck_assert_uint_eq(w.world.calls, 2);
    answer(1);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[1]);
    ck_assert_uint_eq(w.dropped, 1);
    end();
}
END_TEST

START_TEST(a_change_while_it_is_put_takes_the_present_address)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    agent_registrations_readdress(&w.pool); /* put again */
    ck_assert_uint_eq(w.world.calls, 2);
    w.fab.caps.sgid_index = 9;
    agent_registrations_readdress(&w.pool);
    answer(1);
    ck_assert_ptr_nonnull(w.resolving);
    ck_assert_uint_eq(w.resolving->ah.attr.grh.sgid_index, 9);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_uint_eq(w.world.calls, 2);
    end();
}
END_TEST

static void change_address(uint32_t call)
{
    agent_registrations_readdress(&w.pool);
    ck_assert_uint_eq(w.world.calls, call + 1);
    answer(call);
}

/* However often it changes: the lane may be using the one before, until it says so. */
START_TEST(a_former_handle_is_destroyed_when_the_lane_gives_it_back_and_none_is_made_before)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    change_address(1);
    resolve();
    ck_assert_ptr_eq(r->lane.ah, &w.ah[1]);
    change_address(2);
    ck_assert_ptr_null(w.resolving);
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    ck_assert_uint_eq(w.dropped, 0);
    give_back(&w.ah[0]);
    ck_assert_uint_eq(w.dropped, 1);
    wait_for_call(4, "PUT");
    answer(3);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[2]);
    ck_assert_uint_eq(w.dropped, 1);
    end();
}
END_TEST

START_TEST(over_rc_a_queue_pair_that_was_offered_under_the_former_address_is_offered_anew)
{
    struct registration *r = begin_rc();
    agent_registrations_readdress(&w.pool);
    answer(0);
    ck_assert_uint_eq(w.raised, 0); /* the metaserver has connected to an address that is gone */
    ck_assert_uint_eq(w.world.calls, 2);
    ck_assert_ptr_nonnull(r->offered);
    end();
}
END_TEST

/* The answer to a renewal may be under way while the wire is cut, and the queue pair breaks. */
START_TEST(a_late_renewal_does_not_keep_a_lost_one_from_being_put_anew)
{
    static const int late[] = {200, 404, 403, 500};
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        struct registration *r = begin_rc();
        answer(0);
        raise_initiator();
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        agent_registrations_doubt(&w.agent, 0);
        wait_for_call(2, "POST");
        agent_registration_initiator_lost(r);
        answer_with(1, late[i]);
        ck_assert_int_ne(r->state, REGISTRATION_DONE);
        wait_for_call(3, "PUT");
        ck_assert_ptr_nonnull(r->offered);
        answer(2);
        raise_initiator();
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        ck_assert_ptr_nonnull(r->lane.qp);
        end();
    }
}
END_TEST

static const struct fab_qp *retired; /* that the lane was told of last */

static void hear_retired(const struct lane_command *command)
{
    if (command->kind == LANE_COMMAND_QP_RETIRE)
        retired = command->qp;
    tell_lane(command);
}

static void renew(uint32_t call, const char *broken)
{
    char body[128];
    snprintf(body, sizeof body, "{\"generation\":\"0000000000000001\"%s}\n", broken);
    agent_registrations_renew(&w.agent, 0, false);
    wait_for_call(call + 1, "POST");
    answer_by(call, 200, body);
}

/* Its READs would end by their time-outs alone, and all lookups that come meanwhile. */
START_TEST(a_queue_pair_whose_other_end_broke_is_given_up_and_another_is_made_meanwhile)
{
    struct registration *r = begin_rc();
    answer(0); /* of number 9 */
    raise_initiator();
    struct fab_qp *former = r->lane.qp;
    w.world.lane_told = hear_retired;
    retired = NULL;
    renew(1, "");
    renew(2, ",\"broken_qpns\":[8,10]");
    renew(3, ",\"broken_qpns\":9");
    renew(4, ",\"broken_qpns\":[\"9\",null]");
    ck_assert_ptr_null(retired);
    ck_assert_uint_eq(w.world.calls, 5);
    renew(5, ",\"broken_qpns\":[8,9]");
    ck_assert_ptr_eq(retired, former);
    ck_assert_uint_eq(w.world.calls, 7);
    ck_assert_str_eq(w.world.call[6].method, "PUT");
    ck_assert_ptr_nonnull(r->offered);
    (void)agent_table_initiator_done(&w.pool, former); /* its lane is done with it */
    ck_assert_int_eq(r->state, REGISTRATION_DONE);     /* since another is on its way */
    ck_assert_ptr_null(w.heard.qp);
    w.raising = NULL; /* the former one's, which takes its time */
    answer(6);
    raise_initiator();
    ck_assert_ptr_nonnull(w.heard.qp);
    ck_assert_ptr_ne(w.heard.qp, former);
    end();
}
END_TEST

START_TEST(with_dc_no_queue_pair_of_a_table_breaks)
{
    begin();
    answer(0);
    resolve();
    w.world.lane_told = hear_retired;
    retired = NULL;
    renew(1, ",\"broken_qpns\":[0,9]");
    ck_assert_ptr_null(retired);
    end();
}
END_TEST

/* And the other way round: what fails while it is put withdraws what was offered. */
START_TEST(one_that_is_lost_while_it_is_put_is_put_anew)
{
    struct registration *r = begin_rc();
    answer(0);
    raise_initiator();
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    answer_with(1, 404); /* forgotten: put, and goes on as it was meanwhile */
    ck_assert_uint_eq(w.world.calls, 3);
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(4, "POST");
    answer_with(3, 403);
    ck_assert_ptr_null(r->offered);
    answer(2);
    ck_assert_uint_eq(w.world.calls, 5);
    ck_assert_ptr_nonnull(r->offered);
    answer(4);
    raise_initiator();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    end();
}
END_TEST

/* A metaserver that was restarted has the node again as soon as one of its pools has put it. */
START_TEST(a_renewal_by_a_metaserver_with_another_table_puts_it_again)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    prolong(1, '1');
    ck_assert_uint_eq(w.world.calls, 2); /* that one is READ here */
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(3, "POST");
    prolong(2, '2');
    ck_assert_uint_eq(w.world.calls, 4);
    ck_assert_str_eq(w.world.call[3].method, "PUT");
    const uint32_t told = w.told;
    answer_of_table(3, 200, '2');
    ck_assert_uint_eq(w.told, told + 1);
    ck_assert_uint_eq(r->lane.table.generation, 2);
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(5, "POST");
    prolong(4, '2');
    ck_assert_uint_eq(w.world.calls, 5);
    end();
}
END_TEST

/* Its address or its P_Key has moved, and its target with it. */
START_TEST(a_renewal_by_a_metaserver_with_another_target_puts_it_again)
{
    begin();
    answer(0);
    resolve();
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    prolong_of(1, '1', 8);
    ck_assert_uint_eq(w.world.calls, 3);
    ck_assert_str_eq(w.world.call[2].method, "PUT");
    end();
}
END_TEST

/* A queue pair of its own leads to the table. */
START_TEST(over_rc_a_metaserver_with_another_target_is_read_as_before)
{
    const struct registration *r = begin_rc();
    answer(0);
    raise_initiator();
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    prolong_of(1, '1', 8);
    ck_assert_uint_eq(w.world.calls, 2);
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    end();
}
END_TEST

/* A subnet manager gives a port another LID; its GID stays. */
START_TEST(a_metaserver_whose_lid_changed_is_resolved_anew_and_one_whose_address_stays_is_not)
{
    static const uint16_t lids[] = {5, 6, 6};
    const struct registration *r = begin();
    w.lid = 5;
    answer(0);
    resolve();
    ck_assert_uint_eq(w.made, 1);
    for (uint32_t i = 1; i < 3; i++) {
        agent_registrations_doubt(&w.agent, 0);
        wait_for_call(2 * i, "POST");
        prolong(2 * i - 1, (char)('1' + i));
        w.lid = lids[i];
        answer_of_table(2 * i, 200, (char)('1' + i));
        if (w.resolving != NULL)
            resolve();
        ck_assert_uint_eq(w.made, 2);
        ck_assert_ptr_eq(r->lane.ah, &w.ah[1]);
    }
    end();
}
END_TEST

/* The node's endpoints, without a reader: that, too, may be the first that a restarted one hears.
 */
START_TEST(endpoints_that_change_in_another_table_are_put_again_with_all)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    w.agent.endpoints++;
    agent_registrations_changed(&w.agent);
    ck_assert_uint_eq(w.world.calls, 2);
    answer_of_table(1, 200, '1');
    ck_assert_uint_eq(w.world.calls, 2);
    w.agent.endpoints++;
    agent_registrations_changed(&w.agent);
    ck_assert_uint_eq(w.world.calls, 3);
    answer_of_table(2, 201, '2');
    ck_assert_uint_eq(w.world.calls, 4);
    answer_of_table(3, 200, '2');
    ck_assert_uint_eq(r->lane.table.generation, 2);
    end();
}
END_TEST

/* Whose targets and tables may be of the former address, and its incarnation of the new one. */
START_TEST(nothing_is_put_while_this_nodes_address_changes)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    w.agent.readdressing = 1;
    w.agent.endpoints++; /* a pool comes or goes */
    agent_registrations_changed(&w.agent);
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    answer_with(1, 404); /* forgotten */
    test_world_advance(&w.world, 10 * BASE_NS_PER_S);
    ck_assert_uint_eq(w.world.calls, 2);
    w.agent.readdressing = 0;
    agent_registrations_changed(&w.agent);
    ck_assert_uint_eq(w.world.calls, 3); /* once, with all of it */
    ck_assert_str_eq(w.world.call[2].method, "PUT");
    ck_assert(!r->announcing);
    answer(2);
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    agent_registrations_changed(&w.agent);
    ck_assert_uint_eq(w.world.calls, 3);
    end();
}
END_TEST

/* Another pool of the agent, which registers too. */
static struct registration *begin_other(void)
{
    w.other.agent = &w.agent;
    w.other.config = &w.agent.config;
    w.other.device.fab = &w.fab;
    w.agent.pools[1] = &w.other;
    agent_registrations_start(&w.other);
    return &w.other.registration[0];
}

static void both_are_registered(void)
{
    (void)begin();
    answer(0);
    resolve();
    (void)begin_other();
    answer(1);
    resolve();
    ck_assert_int_eq(w.other.registration[0].state, REGISTRATION_DONE);
    ck_assert_uint_eq(w.world.calls, 2);
}

/* A table, and the way to the metaserver that has it, are in force together: as long as there is no
 * way to the one that answered last, the lane has the one before. */
START_TEST(a_table_to_which_there_is_no_way_yet_is_not_the_lanes)
{
    const struct registration *r = begin();
    answer(0);
    resolve();
    agent_registrations_readdress(&w.pool);
    answer_of_table(1, 200, '2');
    ck_assert_ptr_nonnull(w.resolving);
    ck_assert_uint_eq(r->lane.table.generation, 1);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[0]);
    resolve_with(-EHOSTUNREACH);
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    ck_assert_uint_eq(r->lane.table.generation, 1);
    ck_assert_ptr_eq(r->lane.ah, &w.ah[0]);
    wait_for_call(3, "PUT");
    answer_of_table(2, 200, '2');
    resolve();
    ck_assert_uint_eq(w.heard.table.generation, 2);
    ck_assert_ptr_eq(w.heard.ah, &w.ah[1]);
    end();
}
END_TEST

START_TEST(over_rc_a_table_whose_queue_pair_is_not_up_is_not_the_lanes)
{
    struct registration *r = begin_rc();
    answer(0);
    raise_initiator();
    const struct fab_qp *before = r->lane.qp;
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(2, "POST");
    prolong(1, '2');
    answer_of_table(2, 200, '2');
    ck_assert_uint_eq(r->lane.table.generation, 1);
    ck_assert_ptr_eq(r->lane.qp, before);
    agent_registrations_doubt(&w.agent, 0); /* by the one that is on its way: nothing more is put */
    wait_for_call(4, "POST");
    prolong(3, '2');
    ck_assert_uint_eq(w.world.calls, 4);
    raise_initiator();
    ck_assert_uint_eq(w.heard.table.generation, 2);
    ck_assert_ptr_eq(w.heard.qp, r->lane.qp);
    ck_assert_ptr_ne(w.heard.qp, before);
    end();
}
END_TEST

/* Renewals, by which each would learn it, come after a third of a lease. */
START_TEST(when_one_pool_learns_that_a_metaserver_was_started_again_the_others_ask_soon)
{
    both_are_registered();
    agent_registrations_doubt(&w.agent, 0);
    wait_for_call(3, "POST");
    prolong(2, '2');
    ck_assert_uint_eq(w.world.calls, 4);
    answer_of_table(3, 200, '2');
    wait_for_call(5, "POST");
    ck_assert_ptr_eq(w.world.call[4].user, &w.other.registration[0]);
    prolong(4, '2');
    wait_for_call(6, "PUT");
    ck_assert_ptr_eq(w.world.call[5].user, &w.other.registration[0]);
    answer_of_table(5, 200, '2');
    ck_assert_uint_eq(w.other.registration[0].lane.table.generation, 2);
    test_world_advance(&w.world, 2 * LOOK_SOON_MS * BASE_NS_PER_MS); /* and nobody asks again */
    ck_assert_uint_eq(w.world.calls, 6);
    end();
}
END_TEST

START_TEST(a_pool_that_is_lost_tries_again_soon_when_another_one_is_registered)
{
    both_are_registered();
    struct registration *r = &w.other.registration[0];
    agent_registrations_readdress(&w.other);
    answer_with(2, 500);
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    world_timer_after(&w.world.world, &r->timer, 3600 * BASE_NS_PER_S); /* after many tries */
    agent_registrations_readdress(&w.pool);
    answer(3);
    resolve();
    wait_for_call(5, "PUT");
    ck_assert_ptr_eq(w.world.call[4].user, r);
    answer(4);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    end();
}
END_TEST

START_TEST(a_pool_whose_lookups_find_no_metaserver_asks_soon_once)
{
    both_are_registered();
    agent_registrations_note_failed(&w.pool, 0);
    for (uint64_t failed = 1; failed <= 20; failed++)
        agent_registrations_note_failed(&w.other, failed);
    wait_for_call(3, "POST");
    ck_assert_ptr_eq(w.world.call[2].user, &w.other.registration[0]);
    prolong(2, '1');
    for (int i = 0; i < 2 * LOOK_SOON_MS; i++) {
        agent_registrations_note_failed(&w.other, 20);
        test_world_advance(&w.world, 1 * BASE_NS_PER_MS);
    }
    ck_assert_uint_eq(w.world.calls, 3);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(why_no_address_is_had_says_whether_there_is_a_way_and_what_to_raise)                         \
    T(the_next_life_is_above_the_one_that_is_known_and_above_its_pools)                            \
    T(why_a_metaserver_refuses_the_node_says_of_what)                                              \
    T(a_metaserver_is_told_and_its_table_known_when_its_address_is_resolved)                       \
    T(a_reason_is_said_once_however_long_each_try_took)                                            \
    T(one_address_is_resolved_at_a_time_however_often_it_changes)                                  \
    T(one_that_is_being_resolved_when_this_nodes_own_changes_is_given_back_and_asked_for_anew)     \
    T(a_change_while_it_is_put_takes_the_present_address)                                          \
    T(a_former_handle_is_destroyed_when_the_lane_gives_it_back_and_none_is_made_before)            \
    T(over_rc_a_queue_pair_that_was_offered_under_the_former_address_is_offered_anew)              \
    T(a_late_renewal_does_not_keep_a_lost_one_from_being_put_anew)                                 \
    T(a_queue_pair_whose_other_end_broke_is_given_up_and_another_is_made_meanwhile)                \
    T(with_dc_no_queue_pair_of_a_table_breaks)                                                     \
    T(one_that_is_lost_while_it_is_put_is_put_anew)                                                \
    T(a_renewal_by_a_metaserver_with_another_target_puts_it_again)                                 \
    T(over_rc_a_metaserver_with_another_target_is_read_as_before)                                  \
    T(a_renewal_by_a_metaserver_with_another_table_puts_it_again)                                  \
    T(a_metaserver_whose_lid_changed_is_resolved_anew_and_one_whose_address_stays_is_not)          \
    T(nothing_is_put_while_this_nodes_address_changes)                                             \
    T(endpoints_that_change_in_another_table_are_put_again_with_all)                               \
    T(a_table_to_which_there_is_no_way_yet_is_not_the_lanes)                                       \
    T(over_rc_a_table_whose_queue_pair_is_not_up_is_not_the_lanes)                                 \
    T(when_one_pool_learns_that_a_metaserver_was_started_again_the_others_ask_soon)                \
    T(a_pool_that_is_lost_tries_again_soon_when_another_one_is_registered)                         \
    T(a_pool_whose_lookups_find_no_metaserver_asks_soon_once)
KEDGE_CHECK_MAIN("agent.control.register", TESTS)
