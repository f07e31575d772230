/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from one worker of a lane to another one, which no device carries: as those that one
 * does, but for that. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "vqp_state.h"
#include "message_pair.h"

enum {
    OTHER = TENANT + 1,
    ROOM = 32768,
    PAGE = 4096,
    BUFFER = 64,
    BUFFERS = 32,
    WARM = 100,
    STEPS = 400,
    SEEDS = 20,
    PATIENT = 19 /* a time-out of the device of 14 s, whatever else the host does meanwhile */
};

static uint64_t random_state;

static uint32_t random_below(uint32_t most)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % most;
}

static uint64_t near_now(void)
{
    return world_stats(&w, 1).messages_near;
}

/* Its last message hears nothing of a device, if it may. */
static void send_one(struct world_worker *k, struct schema_sq_desc d)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    post_receive(d.post.wr_id, 0, BUFFER);
    post(k, d);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, d.post.wr_id);
    e = world_done(&w, k, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.wr_id, d.post.wr_id);
}

static void begin_near(void)
{
    begin_own();
    send_one(&sender, world_message(SCHEMA_OP_SEND, WARM, 0, 8));
    ck_assert_uint_eq(near_now(), 0); /* its stream was not known yet */
    send_one(&sender, world_message(SCHEMA_OP_SEND, WARM + 1, 0, 8));
    ck_assert_uint_eq(near_now(), 1);
}

START_TEST(messages_of_all_sizes_come_without_a_device)
{
    static const uint32_t lengths[] = {0, 1, 8, 63, 64, 65, 4096, SCHEMA_MESSAGE_MOST};
    begin_near();
    const struct lane_stats before = world_stats(&w, 1);
    for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct schema_cqe e;
        struct schema_cqe_sender from;
        for (uint32_t b = 0; b < lengths[i]; b++)
            memory_of(&sender, 16384)[b] = (uint8_t)(b * 7 + i);
        memset(memory_of(&receiver, 0), 0xee, SCHEMA_MESSAGE_MOST + 1);
        post_receive(i, 0, SCHEMA_MESSAGE_MOST);
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 70 + i, 16384, lengths[i]);
        d.flags |= i % 2 ? SCHEMA_OP_IMM : 0;
        d.post.imm = 1000 + i;
        post(&sender, d);
        world_run(&w, 1);
        ck_assert(world_hear(&w, &receiver, &e, &from, 0)); /* in that pass */
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.byte_len, lengths[i]);
        ck_assert_uint_eq(e.with_imm, i % 2);
        ck_assert(!(i % 2) || e.imm == 1000 + i);
        ck_assert_uint_eq(from.tenant, TENANT);
        ck_assert_mem_eq(from.gid, w.node[1].fab->caps.gid, 16);
        ck_assert_mem_eq(memory_of(&receiver, 0), memory_of(&sender, 16384), lengths[i]);
        ck_assert_uint_eq(memory_of(&receiver, 0)[lengths[i]], 0xee);
        ck_assert_uint_eq(world_done(&w, &sender, 0).wr_id, 70 + i);
    }
    const struct lane_stats after = world_stats(&w, 1);
    ck_assert_uint_eq(after.messages_near - before.messages_near, 8);
    ck_assert_uint_eq(after.messages_received - before.messages_received, 8);
    ck_assert_uint_eq(after.messages_sent - before.messages_sent, 8);
    ck_assert_uint_eq(after.posted, before.posted);
    ck_assert_uint_eq(after.credits_granted, before.credits_granted);
    end();
}
END_TEST

START_TEST(where_the_lane_is_told_so_all_go_by_the_device)
{
    world_by_device = true;
    begin_own();
    for (uint32_t i = 0; i < 50; i++)
        send_one(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    ck_assert_uint_eq(near_now(), 0);
    ck_assert_uint_ge(world_stats(&w, 1).posted, 50);
    end();
    world_by_device = false;
}
END_TEST

/* ---- what is not as it is most often */

START_TEST(without_a_receive_it_waits_as_others_do)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_near();
    for (uint32_t i = 0; i < 3; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 8 * i, 8));
    for (uint64_t i = 0; i < 3; i++)
        memcpy(memory_of(&sender, 8 * i), &i, 8);
    ck_assert(!world_poll(&w, &sender, &e, 1000));
    ck_assert_uint_ge(world_stats(&w, 1).messages_refused, 1);
    for (uint32_t i = 0; i < 3; i++)
        post_receive(i, 8 * i, 8);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_mem_eq(memory_of(&receiver, 8 * i), &i, 8);
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, i);
    }
    ck_assert_uint_eq(near_now(), 1);
    world_sleep(&w, 10000000);
    for (uint32_t i = 0; i < 40; i++) /* and then as before */
        send_one(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    ck_assert_uint_ge(near_now(), 20);
    end();
}
END_TEST

static uint64_t operations_of(const struct world_worker *k)
{
    return w.node[k->node].lane->sessions[k->id].memory->shown.operations;
}

START_TEST(one_that_goes_by_the_device_after_all_counts_once)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_near();
    const uint64_t before = operations_of(&sender);
    post(&sender, world_message(SCHEMA_OP_SEND, 1, 0, 8));
    world_run(&w, 1); /* there is no receive for it as yet */
    post_receive(2, 0, 8);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, 1);
    ck_assert_uint_eq(near_now(), 1); /* that of before */
    ck_assert_uint_eq(world_stats(&w, 1).messages_refused, 0);
    ck_assert_uint_eq(operations_of(&sender) - before, 1);
    end();
}
END_TEST

START_TEST(one_that_is_too_long_fails_at_both_ends)
{
    begin_near();
    post_receive(1, 0, 8);
    memset(memory_of(&receiver, 0), 0xee, 16);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 9));
    struct schema_cqe e = world_done(&w, &receiver, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_LEN_ERR);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_LONG);
    ck_assert_uint_eq(memory_of(&receiver, 0)[0], 0xee);
    end();
}
END_TEST

static void destroy(struct world_worker *k, uint16_t vqp)
{
    post(k, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = vqp});
}

/* Whoever's ring the lane looks at first. */
START_TEST(a_hearer_that_goes_in_the_same_pass_hears_or_refuses)
{
    begin_near();
    struct schema_cqe e;
    struct schema_cqe_sender from;
    post_receive(1, 0, 8);
    world_run(&w, 10);
    destroy(&receiver, 3);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    world_run(&w, 100);
    const bool heard = world_hear(&w, &receiver, &e, &from, 0);
    e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_eq(e.status, heard ? (uint32_t)IBV_WC_SUCCESS : (uint32_t)IBV_WC_REM_OP_ERR);
    end();
}
END_TEST

START_TEST(a_sender_that_goes_in_the_same_pass_leaves_nothing)
{
    enum { MANY = 4 };
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t heard = 0;
    begin_near();
    for (uint32_t i = 0; i < MANY; i++)
        post_receive(i, 0, 8);
    world_run(&w, 10);
    for (uint32_t i = 0; i < MANY; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, 8));
    destroy(&sender, 0);
    world_run(&w, 100);
    while (world_hear(&w, &receiver, &e, &from, 0))
        ck_assert_uint_eq(e.wr_id, heard++);
    ck_assert_uint_le(heard, MANY);
    ck_assert(!world_poll(&w, &sender, &e, 0) || e.wr_id == 0);
    ck_assert(TAILQ_EMPTY(&w.node[1].lane->messages->nears.waiting));
    ck_assert_uint_eq(w.node[1].lane->messages->nears.bytes, 0);
    end();
}
END_TEST

START_TEST(sessions_end_with_messages_that_wait)
{
    begin_near();
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 0, 0, 8);
    ck_assert_int_eq(world_connect(&w, &sender, 1, 1), 0);
    world_send_to(&sender, 1, SCHEMA_SEND_TO_PORT, PORT);
    d.vqp = 1;
    send_one(&sender, d);
    for (uint32_t i = 0; i < 12; i++)
        post_receive(i, 0, SCHEMA_MESSAGE_MOST);
    world_run(&w, 1);
    d.post.length = SCHEMA_MESSAGE_MOST;
    for (uint32_t i = 0; i < 12; i++) {
        d.vqp = i % 2;
        post(&sender, d);
    }
    world_run(&w, 1);
    ck_assert_uint_gt(w.node[1].lane->messages->nears.bytes, 0);
    end();
}
END_TEST

START_TEST(a_port_of_another_tenant_lets_in_whom_it_names_and_until_it_ends)
{
    struct world_worker guest;
    struct schema_cqe e;
    const struct schema_sq_desc grant = {
        .op = SCHEMA_OP_PORT_GRANT, .vqp = 3, .bind_port = {.tenant = OTHER}};
    struct schema_sq_desc revoke = grant;
    revoke.op = SCHEMA_OP_PORT_REVOKE;
    begin_near();
    world_attach(&w, &guest, 1, 2, OTHER);
    ck_assert_int_eq(world_connect(&w, &guest, 0, 1), 0);
    ck_assert_int_eq(world_ask(&w, &receiver, grant, NULL), 0);
    post(&guest, (struct schema_sq_desc){
                     .op = SCHEMA_OP_SEND_TO,
                     .slots = 1,
                     .send_to = {.kind = SCHEMA_SEND_TO_PORT, .to = PORT, .tenant = TENANT}});
    for (uint32_t i = 0; i < 3; i++)
        send_one(&guest, world_message(SCHEMA_OP_SEND, i, 0, 8));
    ck_assert_uint_eq(near_now(), 1 + 2);
    ck_assert_int_eq(world_ask(&w, &receiver, revoke, NULL), 0);
    post_receive(9, 0, 8);
    post(&guest, world_message(SCHEMA_OP_SEND, 3, 0, 8));
    e = world_done(&w, &guest, PATIENCE);
    ck_assert_uint_eq(e.status, IBV_WC_REM_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PORT);
    ck_assert_uint_eq(world_stats(&w, 1).messages_unadmitted, 1);
    ck_assert(!world_poll(&w, &receiver, &e, 100));
    ck_assert_uint_eq(near_now(), 1 + 2);
    world_detach(&w, &guest);
    end();
}
END_TEST

/* Of which its worker writes and reads the same bytes. */
START_TEST(a_vqp_that_sends_to_its_own_port_hears_it)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint64_t before;
    begin();
    ck_assert_int_eq(world_connect(&w, &receiver, 3, 1), 0);
    world_send_to(&receiver, 3, SCHEMA_SEND_TO_PORT, PORT);
    for (uint32_t i = 0; i < 20; i++) {
        uint8_t was[64];
        for (uint32_t b = 0; b < sizeof was; b++)
            was[b] = memory_of(&receiver, 128)[b] = (uint8_t)(i + b);
        before = near_now();
        post_receive(i, 128 + i, 64);
        struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 100 + i, 128, 64);
        d.vqp = 3;
        post(&receiver, d);
        ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(world_done(&w, &receiver, PATIENCE).wr_id, 100 + i);
        ck_assert(near_now() == before || memcmp(memory_of(&receiver, 128 + i), was, 64) == 0);
    }
    ck_assert_uint_eq(near_now(), 19);
    end();
}
END_TEST

START_TEST(counters_are_raised_until_they_are_given_back)
{
    struct schema_reply reply;
    begin_own();
    const struct schema_session_ro *page = receiver.ro.addr;
    ck_assert_int_eq(
        world_ask(&w, &receiver, (struct schema_sq_desc){.op = SCHEMA_OP_COUNTER_NEW}, &reply), 0);
    const uint64_t name = reply.value[0];
    ck_assert_int_eq(world_connect(&w, &sender, 0, 1), 0);
    world_post(&sender, &(struct schema_sq_desc){.op = SCHEMA_OP_SEND_TO,
                                                 .slots = 1,
                                                 .send_to = {.kind = SCHEMA_SEND_TO_COUNTER,
                                                             .to = name,
                                                             .secret = reply.value[1]}});
    for (uint64_t n = 1; n <= 20; n++) {
        post(&sender, world_message(SCHEMA_OP_SEND, n, 0, 0));
        ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(atomic_load(&page->counter[schema_counter_number(name)]), n);
    }
    ck_assert_uint_eq(near_now(), 19);
    ck_assert_int_eq(
        world_ask(&w, &receiver,
                  (struct schema_sq_desc){.op = SCHEMA_OP_COUNTER_FREE, .counter = {.name = name}},
                  NULL),
        0);
    post(&sender, world_message(SCHEMA_OP_SEND, 21, 0, 0));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_REM_OP_ERR);
    end();
}
END_TEST

/* By the device nobody is this lane: not from its address either, where others have queue pairs. */
START_TEST(who_says_to_be_the_lane_itself_acknowledges_nothing)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    begin_near();
    const struct lane *l = w.node[1].lane;
    const struct stream_sender *k = &l->sessions[sender.id].vqps[0].messages->sender;
    post(&sender, world_message(SCHEMA_OP_SEND, 7, 0, 8));
    world_run(&w, 100);
    ck_assert_uint_eq(k->out.posted - k->out.first, 1);
    struct schema_datagram d = {
        .pool = l->config.pool,
        .from_incarnation = l->config.incarnation,
        .to_incarnation = l->config.incarnation,
        .qpn = k->to->qpn,
        .qkey = k->to->qkey,
        .notes = 1,
        .note = {{.stream = k->name, .number = k->out.posted, .kind = SCHEMA_NOTE_TAKEN}}};
    memcpy(d.from_gid, l->config.gid, sizeof d.from_gid);
    world_stranger_says(&w, 1, 1, (uint32_t)schema_datagram_write(&d, world_stranger_memory(1)));
    ck_assert(!world_poll(&w, &sender, &e, 100));
    post_receive(3, 0, 8);
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, 7);
    end();
}
END_TEST

/* ---- order */

struct story {
    uint64_t posted, done;  /* of the sender */
    uint64_t sent, heard;   /* messages: their numbers are in them */
    uint64_t written, seen; /* the word that was written last; of these so many are there */
    uint64_t written_before[STEPS];
    uint32_t receives;
};

static uint64_t word_at(struct world_worker *k, uint64_t offset)
{
    uint64_t word;
    memcpy(&word, memory_of(k, offset), 8);
    return word;
}

static void post_something(struct story *s, uint32_t key)
{
    enum { WORDS = 1024 };
    const uint64_t at = 8 * (s->posted % WORDS), says = s->written + 1;
    switch (random_below(8)) {
    case 0: /* a WRITE, which each message behind it is preceded by */
        memcpy(memory_of(&sender, at), &says, 8);
        s->written = says;
        post(&sender, world_rw(SCHEMA_OP_WRITE, s->posted++, at, 8, key, ROOM + 8 * says));
        return;
    case 1: /* a READ */
        post(&sender, world_rw(SCHEMA_OP_READ, s->posted++, 16384 + at, 8, key, ROOM));
        return;
    default:
        s->written_before[s->sent] = s->written;
        memcpy(memory_of(&sender, at), &s->sent, 8);
        s->sent++;
        post(&sender, world_message(SCHEMA_OP_SEND, s->posted++, at, 8));
    }
}

static void hear_some(struct story *s)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    while (world_hear(&w, &receiver, &e, &from, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(word_at(&receiver, BUFFER * (e.wr_id % BUFFERS)), s->heard);
        for (; s->seen < s->written_before[s->heard]; s->seen++)
            ck_assert_uint_eq(word_at(&receiver, ROOM + 8 * (s->seen + 1)), s->seen + 1);
        s->heard++;
        s->receives--;
    }
    while (world_poll(&w, &sender, &e, 0)) {
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.wr_id, s->done++);
    }
}

static void tell_story(uint64_t seed, uint64_t *near, uint64_t *others)
{
    static struct story s;
    const uint8_t timeout = world_ack_timeout;
    uint64_t buffers = 0;
    char order[32];
    (void)snprintf(order, sizeof order, "%s:%llu", seed % 2 ? "late-writes" : "unseen-writes",
                   (unsigned long long)seed);
    (void)setenv("KEDGE_SOFT_ORDER", order, 1);
    s = (struct story){.posted = 0};
    random_state = seed;
    world_ack_timeout = PATIENT;
    begin_near();
    memset(memory_of(&receiver, ROOM), 0, PAGE);
    const uint32_t key =
        world_register(&w, &receiver, ROOM, PAGE, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    while (s.sent < STEPS || s.done < s.posted || s.heard < s.sent) {
        for (uint32_t n = random_below(10); n > 0 && s.sent < STEPS && s.posted - s.done < 40; n--)
            post_something(&s, key);
        for (uint32_t n = random_below(s.sent < STEPS ? 9 : 20); n > 0 && s.receives < BUFFERS / 2;
             n--, s.receives++, buffers++)
            post_receive(buffers, BUFFER * (buffers % BUFFERS), BUFFER);
        world_run(&w, random_below(4));
        if (random_below(20) == 0)
            world_sleep(&w, 5000000); /* after which what was refused goes near again */
        hear_some(&s);
    }
    const struct lane_stats stats = world_stats(&w, 1);
    *near += stats.messages_near;
    *others += stats.messages_received - stats.messages_near;
    end();
    world_ack_timeout = timeout;
    (void)unsetenv("KEDGE_SOFT_ORDER");
}

START_TEST(what_goes_near_and_what_does_not_comes_in_order)
{
    uint64_t near = 0, others = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        tell_story(seed, &near, &others);
    ck_assert_uint_gt(near, STEPS);
    ck_assert_uint_gt(others, STEPS);
}
END_TEST

/* The WRITE is over, which says less than a receive that has ended behind it: so the message goes
 * by the device again, though nothing of its VQP is out and nothing of its stream went before. */
START_TEST(behind_a_write_it_goes_by_the_device_also_when_that_lost_it)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    world_fault = (struct fault_plan){.seed = 1};
    begin_near();
    const uint32_t key =
        world_register(&w, &receiver, ROOM, PAGE, SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE);
    post(&sender, world_rw(SCHEMA_OP_WRITE, 1, 0, 8, key, ROOM));
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).status, IBV_WC_SUCCESS);
    post_receive(1, 0, BUFFER);
    world_run(&w, 10);
    const struct lane_stats before = world_stats(&w, 1);
    const struct fault_plan breaks = {
        .seed = 1, .completion_error_ppm = 1000000, .status = IBV_WC_WR_FLUSH_ERR};
    fault_set_plan(w.node[1].fab, &breaks);
    post(&sender, world_message(SCHEMA_OP_SEND, 2, 0, 8));
    for (unsigned i = 0; world_stats(&w, 1).reposted == before.reposted; i++) {
        ck_assert_uint_lt(i, PATIENCE);
        world_run(&w, 1);
    }
    fault_set_plan(w.node[1].fab, &(struct fault_plan){.seed = 1});
    ck_assert(world_hear(&w, &receiver, &e, &from, PATIENCE));
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(world_done(&w, &sender, PATIENCE).wr_id, 2);
    ck_assert_uint_eq(world_stats(&w, 1).messages_near, before.messages_near);
    end();
    world_fault.seed = 0;
}
END_TEST

/* ---- who pays */

/* Of whoever sends much no more is copied in a pass than of what comes by the device, and who sends
 * little beside it has its turn. */
START_TEST(a_pass_copies_no_more_than_of_others)
{
    enum { MANY = 20 };
    struct world_worker other;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    uint32_t heard = 0, most = 0, passes = 0, small = 0;
    begin_near();
    world_attach(&w, &other, 1, 2, TENANT);
    ck_assert_int_eq(world_connect(&w, &other, 0, 1), 0);
    world_send_to(&other, 0, SCHEMA_SEND_TO_PORT, PORT);
    send_one(&other, world_message(SCHEMA_OP_SEND, 0, 0, 8));
    for (uint32_t i = 0; i < MANY + 1; i++)
        post_receive(i, 0, SCHEMA_MESSAGE_MOST);
    world_run(&w, 1);
    for (uint32_t i = 0; i < MANY; i++)
        post(&sender, world_message(SCHEMA_OP_SEND, i, 0, SCHEMA_MESSAGE_MOST));
    post(&other, world_message(SCHEMA_OP_SEND, 0, 0, 8));
    for (; heard < MANY + 1; passes++) {
        uint32_t now = 0;
        ck_assert_uint_lt(passes, PATIENCE);
        world_run(&w, 1);
        while (world_hear(&w, &receiver, &e, &from, 0)) {
            now++;
            if (e.byte_len == 8)
                small = passes;
        }
        heard += now;
        most = now > most ? now : most;
    }
    ck_assert_uint_le(most, 2); /* 16 KiB, and the rest of a message */
    ck_assert_uint_le(small, 3);
    ck_assert_uint_ge(near_now(), 1 + MANY);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(messages_of_all_sizes_come_without_a_device)                                                 \
    T(where_the_lane_is_told_so_all_go_by_the_device)                                              \
    T(without_a_receive_it_waits_as_others_do)                                                     \
    T(one_that_goes_by_the_device_after_all_counts_once)                                           \
    T(one_that_is_too_long_fails_at_both_ends)                                                     \
    T(a_hearer_that_goes_in_the_same_pass_hears_or_refuses)                                        \
    T(a_sender_that_goes_in_the_same_pass_leaves_nothing)                                          \
    T(sessions_end_with_messages_that_wait)                                                        \
    T(a_port_of_another_tenant_lets_in_whom_it_names_and_until_it_ends)                            \
    T(a_vqp_that_sends_to_its_own_port_hears_it)                                                   \
    T(counters_are_raised_until_they_are_given_back)                                               \
    T(who_says_to_be_the_lane_itself_acknowledges_nothing)                                         \
    T(what_goes_near_and_what_does_not_comes_in_order)                                             \
    T(behind_a_write_it_goes_by_the_device_also_when_that_lost_it)                                 \
    T(a_pass_copies_no_more_than_of_others)
KEDGE_CHECK_MAIN("agent.lane.near", TESTS)
