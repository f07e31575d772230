/* SPDX-License-Identifier: Apache-2.0 */
/* Near messages of two tenants of one lane: each has its turns and its part, also of the receives
 * of one port. */
#include <stdio.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "vqp_state.h"

#include "message_pair.h"

/* A tenant that fills what near messages have, from many VQPs. */
enum {
    OTHER = TENANT + 1,
    FLOOD_PORT = PORT + 1,
    FLOODS = 6,
    FLOOD_BYTES = SCHEMA_MESSAGE_MOST,
    FLOOD_OUT = 24,
    ROUNDS = 300,
    BURST = 8
};

struct flood {
    struct world_worker sends, hears;
    uint64_t posted, done, room;
};

static void begin_flood(struct flood *f)
{
    *f = (struct flood){.posted = 0};
    world_attach(&w, &f->sends, 1, 2, OTHER);
    world_attach(&w, &f->hears, 1, 3, OTHER);
    ck_assert_int_eq(world_bind_port(&w, &f->hears, 3, FLOOD_PORT), 0);
    for (uint16_t v = 0; v < FLOODS; v++) {
        ck_assert_int_eq(world_connect(&w, &f->sends, v, 1), 0);
        world_send_to(&f->sends, v, SCHEMA_SEND_TO_PORT, FLOOD_PORT);
    }
}

static void hear_floods(struct flood *f)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    while (world_poll(&w, &f->sends, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        f->done++;
    }
    while (world_hear(&w, &f->hears, &e, &from, 0))
        f->room--;
    for (; f->room < 2 * FLOOD_OUT; f->room++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 0, 0, FLOOD_BYTES);
        d.vqp = 3;
        post(&f->hears, d);
    }
}

static void go_on_flooding(struct flood *f)
{
    hear_floods(f);
    for (; f->posted - f->done < FLOOD_OUT; f->posted++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, f->posted, 0, FLOOD_BYTES);
        d.vqp = (uint16_t)(f->posted % FLOODS);
        post(&f->sends, d);
    }
}

/* Passes until all of some messages of eight bytes are heard, which are more than a sparse
 * tenant's: beside such a pass takes one of the flood's. */
static uint32_t count_passes(struct flood *f)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t waited = 0, heard = 0;
    for (uint32_t i = 0; i < BURST; i++)
        post_receive(i, 8 * i, 8);
    for (uint32_t i = 0; i < 10; i++) { /* the lane has them before there is a message */
        go_on_flooding(f);
        world_run(&w, 1);
    }
    for (uint32_t i = 0; i < BURST; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    while (heard < BURST) {
        go_on_flooding(f);
        world_run(&w, 1);
        ck_assert_uint_lt(++waited, PATIENCE);
        while (world_hear(&w, &receiver, &e, &from, 0))
            heard++;
    }
    for (uint32_t i = 0; i < BURST; i++)
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    return waited;
}

/* Whoever sends one message after the other has his turn in each pass, and his part of what may
 * wait, however many VQPs another tenant has. */
START_TEST(a_tenant_with_many_vqps_keeps_nobody_waiting)
{
    struct flood f;
    uint32_t passes = 0, worst = 0;
    begin_own();
    for (uint32_t i = 0; i < 2; i++) { /* its stream is known */
        struct schema_cqe e;
        struct schema_cqe_sender from;
        post_receive(i, 0, 8);
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    }
    begin_flood(&f);
    for (uint32_t i = 0; i < 400; i++) { /* its streams are known, and go near, also those of
                                            which something was refused */
        go_on_flooding(&f);
        world_run(&w, 1);
        if (i == 200)
            world_sleep(&w, 10000000);
    }
    const uint64_t before = world_stats(&w, 1).messages_near, done = f.done;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint32_t waited = count_passes(&f);
        passes += waited;
        worst = waited > worst ? waited : worst;
    }
    const uint64_t near = world_stats(&w, 1).messages_near - before, flooded = f.done - done;
    printf("%d times eight in %u passes, at most %u each; near %lu, of the other tenant %lu\n",
           ROUNDS, passes, worst, (unsigned long)near, (unsigned long)flooded);
    ck_assert_uint_ge(flooded, ROUNDS);                    /* it is there */
    ck_assert_uint_ge(near, BURST * ROUNDS + flooded / 4); /* and much of it near */
    ck_assert_uint_le(worst, 2);
    world_detach(&w, &f.sends);
    world_detach(&w, &f.hears);
    end();
}
END_TEST

/* ---- one port */

enum {
    GUEST_OUT = 16,
    ASKERS = 5,
    ASKS = 2000,
    ASK = 2000, /* bytes of a message, of which one of these has so many out */
    DEEP = 6,
    WARM = 1000,
    ROOM = 64 /* receives */
};

struct port_story {
    struct world_worker guest;
    uint64_t posted, done, received, heard;
    uint32_t waits[ASKERS], out[ASKERS], worst; /* passes since one of it was taken */
    uint64_t asks;
};

/* A guest of the port, and some of its owner's VQPs, whose streams are known. */
static void begin_port(struct port_story *s)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    *s = (struct port_story){.posted = 0};
    begin_own();
    world_attach(&w, &s->guest, 1, 2, OTHER);
    ck_assert_int_eq(world_connect(&w, &s->guest, 0, 1), 0);
    const struct schema_sq_desc grant = {
        .op = SCHEMA_OP_PORT_GRANT, .vqp = 3, .bind_port = {.tenant = OTHER}};
    ck_assert_int_eq(world_ask(&w, &receiver, grant, NULL), 0);
    post(&s->guest, (struct schema_sq_desc){
                        .op = SCHEMA_OP_SEND_TO,
                        .slots = 1,
                        .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT, .tenant = TENANT}});
    for (uint16_t v = 0; v < ASKERS; v++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, v, 0, 8);
        d.vqp = v;
        if (v > 0) {
            ck_assert_int_eq(world_connect(&w, &sender, v, 1), 0);
            world_send_to(&sender, v, SCHEMA_SEND_TO_PORT, PORT);
        }
        post_receive(v, 0, 8);
        post(&sender, d);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, v);
    }
}

/* There are receives enough, and the guest has always more to send. */
static void run_port(struct port_story *s, uint32_t length)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (; s->received - s->heard < ROOM; s->received++)
        post_receive(s->received, 0, WORLD_ARENA);
    for (; s->posted - s->done < GUEST_OUT; s->posted++)
        post(&s->guest, world_message(SCHEMA_OP_SEND, s->posted, 0, length));
    world_run(&w, 1);
    while (world_poll(&w, &s->guest, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        s->done++;
    }
    while (world_hear(&w, &receiver, &e, &from, 0))
        s->heard++;
}

/* Each of so many has some out, which are more than it has of a turn: it always waits. */
static void ask_port(struct port_story *s, uint32_t askers)
{
    struct schema_cqe e;
    for (uint16_t v = 0; v < askers; v++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, v, 0, ASK);
        d.vqp = v;
        for (; s->out[v] < DEEP; s->out[v]++)
            post(&sender, d);
        s->waits[v]++;
        s->worst = s->waits[v] > s->worst ? s->waits[v] : s->worst;
    }
    while (world_poll(&w, &sender, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        s->waits[e.wr_id] = 0;
        s->out[e.wr_id]--;
        s->asks++;
    }
}

static void expect_turns(uint32_t length, uint32_t askers, uint32_t most)
{
    struct port_story s;
    begin_port(&s);
    for (uint32_t i = 0; i < WARM; i++)
        run_port(&s, length);
    const uint64_t before = world_stats(&w, 1).messages_near, done = s.done;
    while (s.asks < ASKS) {
        run_port(&s, length);
        ask_port(&s, askers);
        ck_assert_uint_le(s.worst, most);
    }
    printf("%u bytes, %u VQPs: at most %u passes; near %lu, the guest's %lu\n", length, askers,
           s.worst, (unsigned long)(world_stats(&w, 1).messages_near - before),
           (unsigned long)(s.done - done));
    ck_assert_uint_ge(s.done - done, ASKS / 4);
    world_detach(&w, &s.guest);
    end();
}

/* A guest that has another large one for each receive keeps nobody from the port: what the owner's
 * own VQPs send comes between two of them, of each of these, wherever their turns fall. */
START_TEST(who_sends_large_ones_without_end_leaves_receives_to_others)
{
    static const uint32_t lengths[] = {20000, 30000, 46000, 62000, WORLD_ARENA};
    for (uint32_t i = 0; i < 5; i++) {
        expect_turns(lengths[i], 1, 8);
        for (uint32_t askers = 2; askers <= ASKERS; askers++)
            expect_turns(lengths[i], askers, 100);
    }
}
END_TEST

/* Who finds the receive another's each time that it is looked at goes by the device in the end,
 * which takes that receive. */
START_TEST(nobody_waits_for_ever_behind_one_that_is_being_copied)
{
    struct port_story s;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_port(&s);
    struct lane *l = w.node[1].lane;
    struct vqp_messages *other = l->sessions[sender.id].vqps[0].messages;
    post_receive(1, 0, 100);
    world_run(&w, 1);
    other->near.mark = (uint32_t)(other - l->messages->vqps) + 1;
    l->sessions[receiver.id].vqps[3].messages->receives.head->vkey = other->near.mark;
    other->near.done = 1; /* as if it had begun, and its turn never came */
    const uint64_t before = world_stats(&w, 1).messages_near;
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 2, 0, 100);
    d.vqp = 1;
    post(&sender, d);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.byte_len, 100);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(&w, 1).messages_near, before);
    other->near.done = 0;
    world_detach(&w, &s.guest);
    end();
}
END_TEST

/* ---- what may wait */

static void post_floods(struct flood *f, uint32_t each, uint32_t length)
{
    for (uint32_t i = 0; i < each * FLOODS; i++, f->posted++) {
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, f->posted, 0, length);
        d.vqp = (uint16_t)(f->posted % FLOODS);
        post(&f->sends, d);
    }
}

/* A tenant has no more than its share also where some of each of its VQPs wait before it has that,
 * and each may have more. */
START_TEST(many_vqps_that_have_begun_have_one_share)
{
    enum { EACH = 4, SHARE = 192 * 1024 };
    struct flood f;
    uint64_t most = 0;
    begin_own();
    begin_flood(&f);
    for (uint32_t i = 0; i < 3; i++) { /* its streams are known */
        post_floods(&f, 1, 8);
        for (uint32_t n = 0; n < 300 && f.done < f.posted; n++) {
            world_run(&w, 1);
            hear_floods(&f);
        }
        world_sleep(&w, 10000000); /* also those of which something was refused */
    }
    ck_assert_uint_eq(f.done, f.posted);
    post_floods(&f, 1, 8);
    post_floods(&f, EACH, FLOOD_BYTES);
    for (uint32_t n = 0; n < 1000 && f.done < f.posted; n++) {
        world_run(&w, 1);
        hear_floods(&f);
        const uint64_t bytes = w.node[1].lane->messages->nears.bytes;
        most = bytes > most ? bytes : most;
    }
    printf("of six VQPs %lu bytes wait at the most\n", (unsigned long)most);
    ck_assert_uint_eq(f.done, f.posted);
    ck_assert_uint_ge(most, SHARE / 2);
    ck_assert_uint_le(most, SHARE + FLOOD_BYTES);
    world_detach(&w, &f.sends);
    world_detach(&w, &f.hears);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_tenant_with_many_vqps_keeps_nobody_waiting)                                                \
    T(who_sends_large_ones_without_end_leaves_receives_to_others)                                  \
    T(nobody_waits_for_ever_behind_one_that_is_being_copied)                                       \
    T(many_vqps_that_have_begun_have_one_share)
KEDGE_CHECK_MAIN("agent.lane.near_turns", TESTS)
