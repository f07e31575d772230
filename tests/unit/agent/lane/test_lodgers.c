/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that lodge, and what they are called home for (lodger_bed.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/phase.h"
#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h"
#include "lodger_bed.h"
#include "session_state.h"
#include "vqp_state.h"
#include "world_messages.h"

enum { SLOTS = 16 };

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

START_TEST(another_lane_posts_for_a_session)
{
    setup();
    go_away();
    const uint64_t before = world_stats(&world, HOME).posted;
    for (uint64_t id = 10; id < 30; id++)
        expect_word(id);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before);
    ck_assert_uint_ge(world_stats(&world, OTHER).posted, 20);
    call_back(false);
    for (int i = 0; i < 100 && where != AT_HOME; i++)
        run(1);
    expect_word(31);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before + 1);
    teardown();
}
END_TEST

/* WRITEs a number to a slot, and READs it from there behind that: the READ brings that number, and
 * completions come in order, while the session goes to and fro at any moment. */
START_TEST(nothing_is_lost_repeated_or_reordered_while_it_moves)
{
    enum { ROUNDS = 30000, MOVES = 300 };
    setup();
    seed = 7;
    uint8_t *memory = k.arena.addr;
    uint64_t posted = 0, done = 0;
    while ((done < ROUNDS || moves < MOVES) && done < 20 * ROUNDS) {
        while (posted - done < SLOTS / 2 && draw(4) != 0) {
            const uint64_t slot = posted % SLOTS;
            memcpy(memory + slot * WORD, &posted, WORD);
            post_word(SCHEMA_OP_WRITE, 2 * posted, slot * WORD, slot * WORD);
            post_word(SCHEMA_OP_READ, 2 * posted + 1, 2048 + slot * WORD, slot * WORD);
            posted++;
        }
        if (where == AT_HOME && draw(3) == 0)
            leave_home();
        else if (where == AWAY && draw(6) == 0)
            call_back(false);
        while (done < posted && draw(5) != 0) {
            struct schema_cqe e = take_completion(20000);
            ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, 2 * done);
            e = take_completion(20000);
            ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(e.wr_id, 2 * done + 1);
            uint64_t brought;
            memcpy(&brought, memory + 2048 + done % SLOTS * WORD, WORD);
            ck_assert_uint_eq(brought, done);
            done++;
        }
        run(draw(3));
    }
    ck_assert_uint_ge(moves, MOVES);
    ck_assert_uint_gt(world_stats(&world, HOME).posted, ROUNDS / 10);
    ck_assert_uint_gt(world_stats(&world, OTHER).posted, ROUNDS / 10);
    while (done < posted) {
        (void)take_completion(20000);
        (void)take_completion(20000);
        done++;
    }
    teardown();
}
END_TEST

/* What it has WRITTEN at home ended there, and nobody at the responder need see it yet: what it
 * posts elsewhere goes by another queue pair, and is not ahead of that; nor when it is back. */
START_TEST(what_it_wrote_is_seen_before_what_it_posts_at_another_lane)
{
    enum { SEEDS = 16, ROUNDS = 8 };
    for (uint32_t i = 0; i < SEEDS; i++) {
        char order[32];
        snprintf(order, sizeof order, "unseen-writes:%u", i);
        setenv("KEDGE_SOFT_ORDER", order, 1);
        setup();
        uint8_t *memory = k.arena.addr;
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            memcpy(memory, &round, WORD);
            post_word(SCHEMA_OP_WRITE, 2 * round, 0, 0);
            ck_assert_int_eq(take_completion(20000).status, IBV_WC_SUCCESS);
            const enum where before = where;
            before == AT_HOME ? leave_home() : call_back(false);
            for (int n = 0; n < 100 && (where == before || where == LEAVES); n++)
                run(1);
            ck_assert_int_eq(where, before == AT_HOME ? AWAY : AT_HOME);
            post_word(SCHEMA_OP_READ, 2 * round + 1, 2048, 0);
            ck_assert_int_eq(take_completion(20000).status, IBV_WC_SUCCESS);
            ck_assert_mem_eq(memory + 2048, memory, WORD);
        }
        teardown();
        unsetenv("KEDGE_SOFT_ORDER");
    }
}
END_TEST

START_TEST(what_is_not_a_read_or_a_write_takes_it_home)
{
    setup();
    go_away();
    expect_word(10);
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .slots = 1,
        .reg_mr = {.length = 4096, .vaddr = 0x20000, .access = SCHEMA_RECORD_READ, .tag = ++k.tag}};
    world_post(&k, &d);
    post_word(SCHEMA_OP_READ, 11, 0, 0);
    const struct schema_cqe e = take_completion(20000);
    ck_assert_uint_eq(e.wr_id, 11);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(atomic_load(&k.r->reply[k.tag % SCHEMA_REPLIES].tag), k.tag);
    ck_assert_int_eq(k.r->reply[k.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_eq(world_stats(&world, HOME).mrs, 1);
    ck_assert_uint_eq(world_stats(&world, OTHER).mrs, 0);
    go_away(); /* its region stays at home */
    expect_word(12);
    teardown();
}
END_TEST

START_TEST(one_that_falls_silent_sleeps_where_it_lodges_and_wakes_there)
{
    enum { PAUSES = 200 };
    setup();
    go_away();
    const uint64_t before = world_stats(&world, HOME).posted;
    for (uint64_t id = 10; id < 10 + PAUSES; id++) {
        for (int i = 0; i < 1000 && atomic_load(&k.r->doorbell) == 0; i++) {
            world.now_ns += 10000;
            run(1);
        }
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
        expect_word(id);
    }
    ck_assert_int_eq(where, AWAY);
    ck_assert_uint_eq(moves, 0);
    ck_assert_uint_eq(world_stats(&world, HOME).posted, before);
    teardown();
}
END_TEST

/* As when it hands its processor over. */
START_TEST(a_lane_that_sleeps_keeps_its_lodgers)
{
    setup();
    go_away();
    for (uint64_t id = 10; id < 40; id++) {
        (void)lane_prepare_sleep(world.node[OTHER].lane, world.now_ns);
        ck_assert_uint_eq(atomic_load(&k.r->doorbell), 1);
        expect_word(id);
        ck_assert_int_eq(where, AWAY);
    }
    (void)lane_prepare_sleep(world.node[OTHER].lane, world.now_ns);
    call_back(false); /* asleep, it goes when it is asked to, and is polled at home */
    for (int i = 0; i < 100 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    expect_word(40);
    ck_assert_uint_eq(moves, 1);
    teardown();
}
END_TEST

START_TEST(a_hostile_lodger_ends_at_home)
{
    setup();
    go_away();
    atomic_store(&k.w->sq_tail, k.sq_tail + 1000);
    for (int i = 0; i < 1000 && world.node[HOME].faults == 0; i++)
        run(1);
    ck_assert_uint_eq(world.node[HOME].faults, 1);
    ck_assert_uint_eq(world.node[HOME].last_reason, SCHEMA_REASON_RING);
    ck_assert_uint_eq(world.node[OTHER].faults, 0);
    ck_assert_uint_eq(atomic_load(&k.r->ended), SCHEMA_REASON_RING);
    teardown();
}
END_TEST

START_TEST(whatever_it_writes_into_its_ring_ends_no_other)
{
    for (uint32_t round = 0; round < 60; round++) {
        setup();
        seed = round;
        go_away();
        for (int i = 0; i < 40; i++) {
            struct schema_sq_desc *ring = (void *)((uint8_t *)k.w + SCHEMA_SQ_OFFSET);
            struct schema_sq_desc *d = &ring[k.sq_tail & 63];
            for (uint32_t at = 0; at < SCHEMA_LINE; at++)
                ((uint8_t *)d)[at] = (uint8_t)draw(draw(2) ? 256 : 30);
            d->slots &= SCHEMA_SLOTS_COUNT;
            schema_sq_publish(k.w, ring, 63, k.sq_tail, k.sq_tail + 1);
            k.sq_tail++;
            if (draw(4) == 0 && where == AWAY)
                call_back(false);
            else if (draw(4) == 0 && where == AT_HOME && world.node[HOME].faults == 0)
                leave_home();
            k.cq_head = atomic_load(&k.r->cq_tail);
            atomic_store(&k.w->cq_head, k.cq_head);
            run(draw(4));
        }
        for (int i = 0; i < 20000 && (!is_quiet() || where == LEAVES); i++)
            run(1);
        teardown();
    }
}
END_TEST

/* What it had queued goes no more, and its lane ends it when it is back. */
START_TEST(a_session_that_ends_is_called_back_at_once)
{
    setup();
    go_away();
    for (uint64_t id = 10; id < 26; id++)
        post_word(SCHEMA_OP_READ, id, 0, 0);
    run(1);
    call_back(true);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    teardown();
}
END_TEST

START_TEST(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)
{
    where = AT_HOME;
    seen_lefts = seen_lodgers = moves = refusals = 0;
    vkey = world_pair(&world, &owner, &k, TENANT, SCHEMA_RECORD_READ);
    expect_word(1);
    other_mr = register_anew(OTHER);
    leave_home();
    for (int i = 0; i < 100; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[OTHER].lodger_left.status, -EAGAIN);
    expect_word(2);
    go_away();
    expect_word(3);
    ck_assert_uint_gt(world_stats(&world, OTHER).posted, 0);
    teardown();
}
END_TEST

/* A VQP of an earlier life of its endpoint goes on with no later one. */
START_TEST(an_endpoint_that_restarts_meanwhile_ends_its_vqps)
{
    setup();
    go_away();
    expect_word(10);
    world_restart_node(&world, OWNER);
    bool failed = false;
    for (uint64_t id = 11; id < 14 && !failed; id++) {
        post_word(SCHEMA_OP_READ, id, 0, 0);
        failed = take_completion(200000).status != IBV_WC_SUCCESS;
    }
    ck_assert(failed);
    call_back(false);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    post_word(SCHEMA_OP_READ, 20, 0, 0);
    ck_assert_int_ne(take_completion(20000).status, IBV_WC_SUCCESS);
    teardown();
}
END_TEST

START_TEST(one_that_waits_by_descriptor_stays)
{
    setup();
    atomic_store(&k.w->armed, 1);
    leave_home();
    run(10);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    atomic_store(&k.w->armed, 0);
    go_away();
    atomic_store(&k.w->armed, 1); /* and goes home when it begins to */
    expect_word(10);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    ck_assert_int_eq(where, AT_HOME);
    teardown();
}
END_TEST

/* Its lane carries messages: it goes as long as it has none. */
START_TEST(one_that_may_hear_messages_stays)
{
    world_messages = true;
    setup();
    go_away();
    expect_word(10);
    call_back(false);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    const struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 11, 0, 64);
    world_post(&k, &d);
    expect_word(12);
    leave_home();
    run(20);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    expect_word(13);
    const struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = d.vqp};
    world_post(&k, &destroy);
    for (int i = 0; i < 1000 && !is_quiet(); i++)
        run(1);
    teardown();
    world_messages = false;
}
END_TEST

/* A large message was sent, and its VQP is gone; what was lent for it is there yet, of which the
 * lane that has lent it hears. */
START_TEST(one_that_lends_stays)
{
    enum { LARGE = 3 * SCHEMA_MESSAGE_MOST, VQP = 1 };
    world_messages = true;
    setup();
    ck_assert_int_eq(world_connect(&world, &k, VQP, OWNER), 0);
    world_send_to(&k, VQP, SCHEMA_SEND_TO_PORT, 80); /* at which nobody hears */
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 11, 0, LARGE);
    d.vqp = VQP;
    world_post(&k, &d);
    struct schema_cqe e = take_completion(20000);
    ck_assert_uint_eq(e.wr_id, 11);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    const struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = VQP};
    world_post(&k, &destroy);
    expect_word(12);
    ck_assert_ptr_null(world.node[HOME].lane->sessions[k.id].vqps[VQP].messages);
    ck_assert_ptr_nonnull(world.node[HOME].lane->sessions[k.id].lending.region[0]);
    leave_home();
    run(20);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_uint_eq(refusals, 1);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    expect_word(13);
    teardown();
    world_messages = false;
}
END_TEST

/* What READs them for it is a VQP of its lane's. */
START_TEST(one_that_has_heard_large_messages_stays)
{
    world_messages = true;
    setup();
    struct session *s = &world.node[HOME].lane->sessions[k.id];
    s->vqps_high = s->max_vqps + 1;
    leave_home();
    run(20);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    teardown();
    world_messages = false;
}
END_TEST

START_TEST(one_with_a_counter_stays)
{
    setup();
    k.memory->counters[3].name = 1;
    world_messages = false; /* which a lane without messages does not look at */
    go_away();
    call_back(false);
    for (int i = 0; i < 1000 && where != AT_HOME; i++)
        run(1);
    k.memory->counters[3].name = 0;
    teardown();
    world_messages = true;
    setup();
    k.memory->counters[3].name = 1;
    leave_home();
    run(20);
    ck_assert_int_eq(where, AT_HOME);
    ck_assert_int_eq(world.node[HOME].left.status, -EBUSY);
    k.memory->counters[3].name = 0; /* given back */
    go_away();
    expect_word(10);
    teardown();
    world_messages = false;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(another_lane_posts_for_a_session)                                                            \
    T(nothing_is_lost_repeated_or_reordered_while_it_moves)                                        \
    T(what_it_wrote_is_seen_before_what_it_posts_at_another_lane)                                  \
    T(what_is_not_a_read_or_a_write_takes_it_home)                                                 \
    T(one_that_falls_silent_sleeps_where_it_lodges_and_wakes_there)                                \
    T(a_lane_that_sleeps_keeps_its_lodgers)                                                        \
    T(a_hostile_lodger_ends_at_home)                                                               \
    T(whatever_it_writes_into_its_ring_ends_no_other)                                              \
    T(a_session_that_ends_is_called_back_at_once)                                                  \
    T(an_endpoint_that_the_other_lane_does_not_know_is_looked_up_first)                            \
    T(an_endpoint_that_restarts_meanwhile_ends_its_vqps)                                           \
    T(one_that_waits_by_descriptor_stays)                                                          \
    T(one_that_may_hear_messages_stays)                                                            \
    T(one_that_lends_stays)                                                                        \
    T(one_that_has_heard_large_messages_stays)                                                     \
    T(one_with_a_counter_stays)
KEDGE_CHECK_MAIN("agent.lane.lodgers", TESTS)
