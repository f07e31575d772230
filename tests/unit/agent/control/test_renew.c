/* SPDX-License-Identifier: Apache-2.0 */
/* What is registered is kept while its lease runs, whether its metaserver answers or not. */
#include "../../check_main.h"
#include "prefer.h"
#include "publication_calls.h"
#include "register_bed.h"

enum { LEASE_MS = 30000 };

static struct registration *registered_with(uint32_t metaservers)
{
    struct registration *r = begin_with(metaservers);
    w.lease_ms = LEASE_MS;
    for (uint32_t i = 0; i < metaservers; i++) {
        wait_for_call(i + 1, "PUT");
        answer(i);
        resolve();
    }
    return r;
}

static struct registration *registered_rc(void)
{
    struct registration *r = begin_rc();
    w.lease_ms = LEASE_MS;
    answer(0);
    raise_initiator();
    return r;
}

/* The renewal that is out, or the next one. */
static uint32_t next_renewal(void)
{
    const uint32_t next = w.world.calls;
    wait_for_call(next + 1, "POST");
    return next;
}

static void ignore(uint32_t call)
{
    answer_by(call, -ETIMEDOUT, "no answer after 10000 ms");
}

START_TEST(a_renewal_without_an_answer_loses_nothing)
{
    static const int none[] = {-ETIMEDOUT, -ECONNREFUSED, -ECONNRESET, 429, 500, 503};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        const struct registration *r = registered_rc();
        const struct fab_qp *qp = r->lane.qp;
        answer_by(next_renewal(), none[i], "what went wrong");
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        ck_assert(!agent_prefer_is_sound(r));
        ck_assert_ptr_eq(w.heard.qp, qp);
        ck_assert_ptr_null(r->offered);
        prolong(next_renewal(), '1');
        ck_assert_int_eq(r->state, REGISTRATION_DONE);
        ck_assert(agent_prefer_is_sound(r));
        ck_assert_ptr_eq(w.heard.qp, qp);
        end();
    }
}
END_TEST

START_TEST(an_answer_that_says_so_loses_it)
{
    const struct registration *r = registered_with(1);
    answer_by(next_renewal(), 403, "{\"detail\":\"the token is another node's\"}");
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    ck_assert_str_eq(r->why, "403: the token is another node's");
    end();
}
END_TEST

START_TEST(one_that_has_forgotten_is_told_again_also_after_a_silence)
{
    const struct registration *r = registered_with(1);
    ignore(next_renewal());
    const uint32_t renewal = next_renewal();
    answer_with(renewal, 404);
    wait_for_call(renewal + 2, "PUT");
    answer(renewal + 1);
    ck_assert(agent_prefer_is_sound(r));
    end();
}
END_TEST

/* It is the time at which it was asked for that the metaserver's lease is no older than. */
START_TEST(the_leases_end_by_this_nodes_clock_loses_it_and_not_before)
{
    const struct registration *r = registered_with(1);
    const uint64_t begin_ns = w.world.now_ns;
    uint32_t seen = w.world.calls;
    for (int ms = 0; r->state == REGISTRATION_DONE; ms++) {
        ck_assert_int_lt(ms, 2 * LEASE_MS);
        test_world_advance(&w.world, BASE_NS_PER_MS);
        if (w.world.calls > seen)
            ignore(seen++);
    }
    const uint64_t lost_ms = (w.world.now_ns - begin_ns) / BASE_NS_PER_MS;
    ck_assert_uint_ge(lost_ms, LEASE_MS * 7 / 8);
    ck_assert_uint_lt(lost_ms, LEASE_MS);
    ck_assert_str_eq(r->why, "no answer after 10000 ms");
    wait_for_call(w.world.calls + 1, "PUT");
    end();
}
END_TEST

/* One that is out for long is not asked for twice, and counts from when it was asked for. */
START_TEST(one_renewal_is_out_at_a_time_and_counts_from_its_beginning)
{
    const struct registration *r = registered_with(1);
    const uint32_t renewal = next_renewal();
    const uint64_t asked_ns = w.world.now_ns;
    test_world_advance(&w.world, 4 * BASE_NS_PER_S);
    agent_registrations_renew(&w.agent, 0, false);
    agent_registrations_doubt(&w.agent, 0);
    test_world_advance(&w.world, BASE_NS_PER_S);
    ck_assert_uint_eq(w.world.calls, renewal + 1);
    prolong(renewal, '1');
    ck_assert_uint_eq(r->kept_ns, asked_ns + LEASE_MS * BASE_NS_PER_MS / 8 * 7);
    test_world_advance(&w.world, BASE_NS_PER_MS);
    ck_assert_uint_eq(w.world.calls, renewal + 2); /* since it was asked to, meanwhile */
    end();
}
END_TEST

/* A machine that was suspended asks, before it takes its lease for over. */
START_TEST(a_lease_that_ran_out_while_nobody_asked_is_asked_about_first)
{
    const struct registration *r = registered_with(1);
    w.world.now_ns += 10 * LEASE_MS * BASE_NS_PER_MS;
    const uint32_t renewal = next_renewal();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    prolong(renewal, '1');
    ck_assert(agent_prefer_is_sound(r));
    w.world.now_ns += 10 * LEASE_MS * BASE_NS_PER_MS;
    ignore(next_renewal());
    ck_assert_int_eq(r->state, REGISTRATION_LOST);
    end();
}
END_TEST

START_TEST(who_is_silent_is_asked_last_until_it_answers)
{
    const struct registration *r = registered_with(3);
    ck_assert_uint_eq(w.listed, 3);
    static const uint32_t told[] = {3, 4, 5};
    wait_for_call(6, "POST");
    ignore(told[0]);
    ck_assert_uint_eq(w.list[0], 1);
    ck_assert_uint_eq(w.list[1], 2);
    ck_assert_uint_eq(w.list[2], 0);
    ignore(told[1]);
    ck_assert_uint_eq(w.list[0], 2);
    prolong(told[2], '1');
    uint32_t again;
    do
        prolong(again = next_renewal(), '1');
    while (w.world.call[again].user != r);
    ck_assert_uint_eq(w.list[0], 0);
    end();
}
END_TEST

START_TEST(endpoints_that_a_silent_one_was_not_told_it_is_told_when_it_answers)
{
    const struct registration *r = registered_with(1);
    w.agent.endpoints++;
    agent_registrations_changed(&w.agent);
    ignore(1);
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    const uint32_t renewal = next_renewal();
    prolong(renewal, '1');
    wait_for_call(renewal + 2, "PUT");
    answer_with(renewal + 1, 200);
    ck_assert_uint_eq(r->endpoints, w.agent.endpoints);
    end();
}
END_TEST

static void renew_saying(uint32_t metaserver, const char *more)
{
    char body[160];
    agent_registrations_renew(&w.agent, metaserver, false);
    const uint32_t call = next_renewal();
    ck_assert_ptr_eq(w.world.call[call].user, &w.pool.registration[metaserver]);
    snprintf(body, sizeof body, "{\"generation\":\"0000000000000001\"%s}", more);
    answer_by(call, 200, body);
}

/* What a metaserver's stream asks for without end, and whatever it answers. */
START_TEST(what_lines_ask_for_comes_once_a_second_at_most_and_is_not_lost)
{
    registered_with(1);
    uint32_t calls = w.world.calls;
    const uint32_t before = calls;
    for (int ms = 0; ms < 9000; ms++) {
        agent_registrations_renew(&w.agent, 0, ms % 2);
        test_world_advance(&w.world, BASE_NS_PER_MS);
        if (w.world.calls > calls)
            prolong(calls++, '1');
    }
    ck_assert_uint_ge(calls - before, 8);
    ck_assert_uint_le(calls - before, 10);
    end();
}
END_TEST

/* Each agent has a moment of its own, and what is asked once more meanwhile puts it off no more. */
START_TEST(what_many_are_asked_for_together_does_not_come_together)
{
    static const struct {
        unsigned lease_ms, within_ms;
    } rows[] = {{86400000, 15000}, {40000, 10000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t least_ms = UINT64_MAX, most_ms = 0;
        for (int agent = 0; agent < 20; agent++) {
            struct registration *r = registered_with(1);
            r->answered.lease_ms = rows[i].lease_ms;
            world_timer_after(&w.world.world, &r->timer, rows[i].lease_ms / 3 * BASE_NS_PER_MS);
            w.world.random = (uint64_t)agent + 1;
            agent_registrations_renew(&w.agent, 0, true);
            const uint64_t due_ns = world_timer_due_ns(&r->timer),
                           ms = (due_ns - w.world.now_ns) / BASE_NS_PER_MS;
            least_ms = ms < least_ms ? ms : least_ms;
            most_ms = ms > most_ms ? ms : most_ms;
            agent_registrations_renew(&w.agent, 0, true);
            ck_assert_uint_le(world_timer_due_ns(&r->timer), due_ns);
            end();
        }
        ck_assert_uint_lt(least_ms, rows[i].within_ms / 4);
        ck_assert_uint_gt(most_ms, rows[i].within_ms / 4 * 3);
        ck_assert_uint_lt(most_ms, rows[i].within_ms);
    }
}
END_TEST

/* Which renewal says how often names turned out to be others: what is published is told again. */
START_TEST(what_is_published_is_told_again_when_names_are_others)
{
    struct publication p = {.agent = &w.agent};
    registered_with(2);
    struct publication_at *at = p.at;
    for (uint32_t i = 0; i < 2; i++)
        at[i] = (struct publication_at){.of = &p, .has = PUBLICATION_THIS};
    w.agent.publications.first = &p;
    renew_saying(0, "");
    ck_assert(!at[0].again);
    renew_saying(0, ",\"names_anew\":3");
    ck_assert(at[0].again && !at[1].again);
    ck_assert_uint_eq(agent_publications_due_ns(&w.agent), 0);
    at[0].again = false;
    renew_saying(0, ",\"names_anew\":3");
    renew_saying(1, "");
    ck_assert(!at[0].again && !at[1].again);
    renew_saying(0, ""); /* it was started again, and says so by its table */
    ck_assert(at[0].again);
    w.agent.publications.first = NULL;
    end();
}
END_TEST

static void expect_order(uint32_t first, uint32_t second, uint32_t third)
{
    ck_assert_uint_eq(w.listed, 3);
    ck_assert_uint_eq(w.list[0], first);
    ck_assert_uint_eq(w.list[1], second);
    ck_assert_uint_eq(w.list[2], third);
}

START_TEST(who_is_behind_its_store_is_asked_after_those_that_are_not_until_it_is_not)
{
    registered_with(3);
    expect_order(0, 1, 2);
    renew_saying(0, ",\"behind\":true");
    expect_order(1, 2, 0);
    ck_assert(!agent_prefer_may_follow(&w.pool, 0) && agent_prefer_may_follow(&w.pool, 1));
    renew_saying(1, ",\"behind\":true");
    expect_order(2, 0, 1);
    renew_saying(2, ",\"behind\":true"); /* then anyone is better than nobody */
    expect_order(0, 1, 2);
    ck_assert(agent_prefer_may_follow(&w.pool, 0));
    renew_saying(1, "");
    expect_order(1, 0, 2);
    end();
}
END_TEST

START_TEST(who_writes_nothing_is_asked_after_those_that_do_until_it_does)
{
    registered_with(3);
    renew_saying(0, ",\"read_only\":true");
    expect_order(1, 2, 0);
    renew_saying(0, ",\"read_only\":false,\"of_a_later_version\":{}");
    expect_order(0, 1, 2);
    end();
}
END_TEST

START_TEST(one_of_this_nodes_zone_is_asked_first_unless_it_is_behind_or_silent)
{
    registered_with(3);
    snprintf(w.agent.config.zone, sizeof w.agent.config.zone, "rack7");
    renew_saying(0, ",\"zone\":\"rack1\"");
    renew_saying(2, ",\"zone\":\"rack7\"");
    expect_order(2, 0, 1);
    renew_saying(2, ",\"zone\":\"rack7\",\"behind\":true");
    expect_order(0, 1, 2);
    renew_saying(2, ",\"zone\":\"rack7\"");
    expect_order(2, 0, 1);
    agent_registrations_renew(&w.agent, 2, false);
    ignore(next_renewal());
    expect_order(0, 1, 2);
    end();
}
END_TEST

START_TEST(the_label_zone_is_this_nodes_zone_where_its_file_says_none)
{
    struct agent_node_config node = {.zone = "rack7"};
    registered_with(3);
    renew_saying(0, ",\"zone\":\"rack1\"");
    renew_saying(2, ",\"zone\":\"rack7\"");
    expect_order(0, 1, 2);
    w.pool.lane = (struct lane *)&w.pool; /* there is one */
    agent_node_apply(&w.agent, &node);
    expect_order(2, 0, 1);
    node.zone[0] = '\0'; /* the label is taken away */
    agent_node_apply(&w.agent, &node);
    expect_order(0, 1, 2);
    snprintf(w.agent.config.zone, sizeof w.agent.config.zone, "rack1");
    snprintf(node.zone, sizeof node.zone, "rack7");
    agent_node_apply(&w.agent, &node);
    expect_order(0, 1, 2); /* as the file has it */
    w.pool.lane = NULL;
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_renewal_without_an_answer_loses_nothing)                                                   \
    T(an_answer_that_says_so_loses_it)                                                             \
    T(one_that_has_forgotten_is_told_again_also_after_a_silence)                                   \
    T(the_leases_end_by_this_nodes_clock_loses_it_and_not_before)                                  \
    T(one_renewal_is_out_at_a_time_and_counts_from_its_beginning)                                  \
    T(a_lease_that_ran_out_while_nobody_asked_is_asked_about_first)                                \
    T(who_is_silent_is_asked_last_until_it_answers)                                                \
    T(who_is_behind_its_store_is_asked_after_those_that_are_not_until_it_is_not)                   \
    T(what_lines_ask_for_comes_once_a_second_at_most_and_is_not_lost)                              \
    T(what_many_are_asked_for_together_does_not_come_together)                                     \
    T(what_is_published_is_told_again_when_names_are_others)                                       \
    T(who_writes_nothing_is_asked_after_those_that_do_until_it_does)                               \
    T(one_of_this_nodes_zone_is_asked_first_unless_it_is_behind_or_silent)                         \
    T(the_label_zone_is_this_nodes_zone_where_its_file_says_none)                                  \
    T(endpoints_that_a_silent_one_was_not_told_it_is_told_when_it_answers)
KEDGE_CHECK_MAIN("agent.control.renew", TESTS)
