/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's requests wait for, as somebody sees it who only has the session's memory: each
 * reason that can be brought about here, one after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../check_main.h"
#include "schema/wait_reason.h"
#include "world.h"
#include "world_accomplices.h"
#include "world_fenced.h"
#include "world_held.h"

enum {
    TENANT = 1,
    OTHERS = 2, /* sessions */
    EACH = 8,   /* VQPs of a session of the world, */
    ROOM = 32,  /* requests of it in the lane, */
    SLOTS = 64, /* of its rings */
    MOST_BREAKS = 200,
    IN_VAIN = 5000 /* passes, after which nothing more comes */
};
static const uint8_t TIMEOUT = 19; /* 2 s, which a busy host does not disturb */
static const uint64_t REST_NS = 50000000;
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k, others[OTHERS];
static uint32_t vkey, other_count;
static bool holds; /* node 0's completions */

/* ---- the worker's part */

static void ring(struct world_worker *from)
{
    lane_doorbell(w->node[0].lane, from->id);
}

static void post_long(uint16_t vqp, uint32_t length)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, length, vkey, 0);
    d.vqp = vqp;
    world_post(&k, &d);
    ring(&k);
}

static void post(uint16_t vqp)
{
    post_long(vqp, 8);
}

static void post_control(struct world_worker *from, struct schema_sq_desc d)
{
    d.slots = 1;
    d.connect.tag = ++from->tag;
    world_post(from, &d);
    ring(from);
}

static void connect_to(uint32_t node)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .connect = {.pool = 1}};
    memcpy(d.connect.gid, w->node[node].fab->caps.gid, sizeof d.connect.gid);
    post_control(&k, d);
}

/* Its record is known, and so is the way there. */
static void warm(void)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    ck_assert_uint_eq(world_do(w, &k, d, LONG).status, IBV_WC_SUCCESS);
}

static void hold(void)
{
    world_hold(&w->node[0], NULL);
    holds = true;
}

static void warm_and_hold(void)
{
    warm();
    hold();
}

static void limit(enum lane_window_scope scope)
{
    const struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                                   .window = {.scope = scope, .tenant = TENANT, .ops = 1}};
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

/* One request is out, and of two more VQPs one each waits. */
static void post_three(void)
{
    for (uint16_t vqp = 0; vqp < 3; vqp++)
        post(vqp);
}

static void fill_window(enum lane_window_scope scope)
{
    warm_and_hold();
    limit(scope);
    world_run(w, 1);
    post_three();
}

/* ---- one reason each */

static void wait_at_tenant(void)
{
    fill_window(LANE_WINDOW_TENANT);
}

static void wait_at_destination(void)
{
    fill_window(LANE_WINDOW_DESTINATION);
}

static void wait_at_device(void)
{
    fill_window(LANE_WINDOW_DEVICE);
}

static void wait_for_region_record(void)
{
    hold();
    post_three();
}

static void attach_others(void)
{
    for (; other_count < OTHERS; other_count++)
        world_attach(w, &others[other_count], 0, 1 + other_count, TENANT);
}

/* A READ with each of its VQPs, of as many regions. */
static void read_regions(struct world_worker *from, uint32_t first)
{
    for (uint16_t vqp = 0; vqp < EACH; vqp++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, first + vqp, 0);
        d.vqp = vqp;
        world_post(from, &d);
    }
    ring(from);
}

/* All records that the lane has places for are being read. */
static void wait_for_region_room(void)
{
    attach_others();
    for (uint32_t i = 0; i < OTHERS; i++)
        for (uint16_t vqp = 0; vqp < EACH; vqp++)
            ck_assert_int_eq(world_connect(w, &others[i], vqp, 1), 0);
    world_run(w, EACH);
    hold();
    for (uint32_t i = 0; i < OTHERS; i++)
        read_regions(&others[i], vkey + 1 + EACH * i);
    world_run(w, 8);
    read_regions(&k, vkey + 1 + EACH * OTHERS);
}

static void wait_for_path(void)
{
    w->away[1] = true;
    post_three();
}

/* Of the connections that there may be each has something out. */
static void wait_for_path_room(void)
{
    hold();
    for (uint16_t node = 0; node < WORLD_NODES; node++)
        post(node);
}

/* An error ends in its turn. */
static void wait_for_own(void)
{
    warm_and_hold();
    post(0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, WORLD_ARENA, 8, vkey, 0);
    world_post(&k, &d);
}

static void wait_for_endpoint_record(void)
{
    warm();
    w->now_ns += 2 * w->node[0].config.node_lease_ns;
    hold();
    post_three();
}

/* It owes an answer. */
static void wait_for_sign(void)
{
    warm_and_hold();
    post(0);
    world_run(w, 2);
    world_run(w, 3000);
    post(1);
    post(2);
}

/* Two nodes at a time, of which one tenant has one. */
static void wait_for_node_room(void)
{
    hold();
    post(0);
    world_run(w, 1);
    post(3);
}

static void wait_for_queue_pair(void)
{
    warm();
    world_lose_dcis(w, 0);
    post_three();
}

static void wait_for_queue_pair_room(void)
{
    warm_and_hold();
    for (uint16_t vqp = 0; vqp < 3; vqp++)
        post_long(vqp, 4096);
}

static void wait_for_inline_memory(void)
{
    static const uint8_t payload[SCHEMA_MAX_INLINE];
    warm_and_hold();
    for (uint16_t vqp = 0; vqp < EACH; vqp++) {
        struct schema_sq_desc d =
            world_rw(SCHEMA_OP_WRITE, 1, 0, SCHEMA_MAX_INLINE, vkey, 8ull * vqp);
        d.vqp = vqp;
        d.flags |= SCHEMA_OP_INLINE;
        d.slots = 3;
        world_post(&k, &d);
        for (int i = 0; i < 2; i++)
            world_post(&k, (const void *)(payload + i * SCHEMA_LINE));
    }
    ring(&k);
}

/* A quarter of a MiB of a session goes in a pass. */
static void wait_for_pass(void)
{
    warm();
    for (uint16_t vqp = 0; vqp < EACH; vqp++)
        post_long(vqp, WORLD_ARENA);
}

static void wait_for_connect(void)
{
    hold();
    connect_to(2);
    post(0);
}

static void wait_for_register(void)
{
    w->node[0].hold = true;
    post_control(
        &k, (struct schema_sq_desc){
                .op = SCHEMA_OP_REG_MR,
                .reg_mr = {.length = 4096, .vaddr = 0x10000, .access = ALL | SCHEMA_REG_FENCED}});
}

/* 32 of all sessions go in a pass where their tenant is alone, and of a session 16 in a row. */
static void wait_for_control(void)
{
    const struct schema_sq_desc d = {.op = SCHEMA_OP_MR_STATUS};
    attach_others();
    world_run(w, 2);
    for (uint32_t i = 0; i < OTHERS; i++)
        for (uint32_t n = 0; n < 20; n++)
            post_control(&others[i], d);
    post_control(&k, d);
    post_control(&k, d);
}

static void wait_for_rebind(void)
{
    warm_and_hold();
    post(0);
    const struct schema_sq_desc again = {.op = SCHEMA_OP_BIND, .slots = 1};
    world_post(&k, &again);
}

static void wait_for_places(void)
{
    warm_and_hold();
    for (int i = 0; i < ROOM + 3; i++)
        post(0);
}

static void wait_to_be_polled(void)
{
    warm();
    post_three();
}

/* As many completions as its ring has places for, and three requests more. */
static void wait_for_completion_room(void)
{
    warm();
    for (int i = 0; i < SLOTS; i++) {
        post(0);
        world_run(w, 4);
    }
    post_three();
}

/* The lane makes no pass. */
static void wait_in_ring(void)
{
    warm();
    world_run(w, 1);
    post_three();
}

static void wait_for_answer(void)
{
    warm_and_hold();
    post_three();
}

/* ---- what lets it go on, where that is not what the device holds back */

static void refuse_path(void)
{
    const struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                                   .path = {.flow = w->node[0].wanted_flow, .status = -ETIMEDOUT}};
    w->away[1] = false;
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
}

static void give_registration(void)
{
    world_fenced_go_on(w, &w->node[0]);
}

static void stay(void)
{
}

static const struct row {
    enum schema_wait why;
    uint32_t count; /* at least */
    unsigned passes;
    void (*begin)(void);
    void (*end)(void); /* NULL: the device gives back what it holds */
    uint64_t most_bytes;
    uint32_t max_flows;
    bool no_inline, rc;
} rows[] = {
    {.why = SCHEMA_WAIT_TENANT_WINDOW, .count = 2, .passes = 2, .begin = wait_at_tenant},
    {.why = SCHEMA_WAIT_DESTINATION_WINDOW, .count = 2, .passes = 2, .begin = wait_at_destination},
    {.why = SCHEMA_WAIT_DEVICE_WINDOW, .count = 2, .passes = 2, .begin = wait_at_device},
    {.why = SCHEMA_WAIT_REGION, .count = 3, .passes = 8, .begin = wait_for_region_record},
    {.why = SCHEMA_WAIT_ASKING_REGION, .count = 1, .passes = 8, .begin = wait_for_region_room},
    {.why = SCHEMA_WAIT_PATH, .count = 3, .passes = 4, .begin = wait_for_path, .end = refuse_path},
    {.why = SCHEMA_WAIT_ASKING_PATH,
     .count = 1,
     .passes = 8,
     .begin = wait_for_path_room,
     .rc = true},
    {.why = SCHEMA_WAIT_OWN, .count = 1, .passes = 2, .begin = wait_for_own},
    {.why = SCHEMA_WAIT_RECORD, .count = 3, .passes = 4, .begin = wait_for_endpoint_record},
    {.why = SCHEMA_WAIT_SIGN, .count = 2, .passes = 2, .begin = wait_for_sign},
    {.why = SCHEMA_WAIT_FLOW, .count = 1, .passes = 4, .begin = wait_for_node_room, .max_flows = 2},
    {.why = SCHEMA_WAIT_QP, .count = 3, .passes = 2, .begin = wait_for_queue_pair, .end = stay},
    {.why = SCHEMA_WAIT_ROOM,
     .count = 2,
     .passes = 2,
     .begin = wait_for_queue_pair_room,
     .most_bytes = 3 * 4096},
    {.why = SCHEMA_WAIT_SMALL,
     .count = 1,
     .passes = 2,
     .begin = wait_for_inline_memory,
     .no_inline = true},
    {.why = SCHEMA_WAIT_PASS, .count = 1, .passes = 1, .begin = wait_for_pass},
    {.why = SCHEMA_WAIT_CONNECT, .count = 2, .passes = 4, .begin = wait_for_connect},
    {.why = SCHEMA_WAIT_REGISTER,
     .count = 1,
     .passes = 4,
     .begin = wait_for_register,
     .end = give_registration},
    {.why = SCHEMA_WAIT_CONTROL, .count = 1, .passes = 1, .begin = wait_for_control},
    {.why = SCHEMA_WAIT_BIND, .count = 1, .passes = 2, .begin = wait_for_rebind},
    {.why = SCHEMA_WAIT_PLACES, .count = 3, .passes = 2, .begin = wait_for_places},
    {.why = SCHEMA_WAIT_UNPOLLED, .count = 3, .passes = 2, .begin = wait_for_completion_room},
    {.why = SCHEMA_WAIT_TURN, .count = 3, .passes = 0, .begin = wait_in_ring},
    {.why = SCHEMA_WAIT_ANSWER, .count = 3, .passes = 2, .begin = wait_for_answer},
    {.why = SCHEMA_WAIT_POLL, .count = 3, .passes = 20, .begin = wait_to_be_polled},
};

/* ---- looked at */

static void open_for(const struct row *row)
{
    world_mr_lease_ns[1] = 1000000000;
    world_most_bytes = row->most_bytes;
    world_max_flows = row->max_flows;
    world_fault = (struct fault_plan){.seed = row->no_inline, .less_inline = row->no_inline};
    ck_assert_int_eq(setenv("KEDGE_TEST_TRANSPORT", row->rc ? "rc" : "dc", 1), 0);
    other_count = 0;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    vkey = world_register(w, &owner, 0, WORLD_ARENA, ALL);
    for (uint16_t vqp = 0; vqp < EACH; vqp++) {
        const uint32_t node = row->rc ? vqp % WORLD_NODES : vqp == 3 ? 2 : 1;
        if (row->why != SCHEMA_WAIT_CONNECT || node != 2)
            ck_assert_int_eq(world_connect(w, &k, vqp, node), 0);
    }
    world_run(w, 8);
}

static uint32_t count_of(enum schema_wait why)
{
    uint32_t count[SCHEMA_WAITS];
    lane_waits(k.memory, true, count);
    return count[why];
}

/* All that is counted, in words: what a test says when it fails. */
static const char *all_counts(void)
{
    static char text[1000];
    size_t used = 0;
    text[0] = '\0';
    for (int i = SCHEMA_WAIT_NOTHING + 1; i < SCHEMA_WAITS; i++)
        if (count_of((enum schema_wait)i) > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s=%u",
                                     schema_waits[i].word, count_of((enum schema_wait)i));
    return text;
}

static void let_go(const struct row *row)
{
    struct schema_cqe e;
    if (row->end != NULL)
        row->end();
    if (holds)
        world_give();
    while (world_poll(w, &k, &e, IN_VAIN))
        ;
}

static void close_all(void)
{
    if (holds)
        world_held_end();
    holds = false;
    for (uint32_t i = 0; i < other_count; i++)
        world_detach(w, &others[i]);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}

static void look_at(const struct row *row)
{
    open_for(row);
    ck_assert_str_eq(all_counts(), "");
    row->begin();
    world_run(w, row->passes);
    ck_assert_msg(count_of(row->why) >= row->count, "%s: of %u at least:%s",
                  schema_waits[row->why].word, row->count, all_counts());
    let_go(row);
    if (row->end != stay)
        ck_assert_str_eq(all_counts(), "");
    close_all();
}

START_TEST(each_reason_is_shown_while_it_holds)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        look_at(&rows[i]);
}
END_TEST

/* Its requests have broken a queue pair under a stranger's, and another one. */
START_TEST(the_rest_of_a_tenant_is_shown)
{
    struct accomplices s;
    uint32_t count[SCHEMA_WAITS];
    accomplices_open(&s, w, TIMEOUT);
    accomplices_warm(&s);
    for (uint32_t i = 0; i < MOST_BREAKS && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_break_beside(&s, &s.guilty[0], s.gone_key);
    ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
    ck_assert_int_eq(accomplices_one(w, &s.guilty[0], SCHEMA_OP_READ, s.gone_key),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(world_connect(w, &s.guilty[0], 0, 1), 0);
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, s.guilty_key, 0);
    world_post(&s.guilty[0], &d);
    accomplices_doorbells(w);
    world_run(w, 4);
    lane_waits(s.guilty[0].memory, true, count);
    ck_assert_uint_eq(count[SCHEMA_WAIT_REST], 1);
    w->now_ns += REST_NS;
    (void)world_done(w, &s.guilty[0], LONG);
    lane_waits(s.guilty[0].memory, true, count);
    ck_assert_uint_eq(count[SCHEMA_WAIT_REST], 0);
    accomplices_close(&s);
}
END_TEST

/* A worker may write anything where it says how far it is. */
START_TEST(what_a_worker_writes_is_shown_as_no_more_than_its_rings_hold)
{
    open_for(&rows[0]);
    k.w->sq_tail = k.r->sq_head + 1000000000;
    k.w->cq_head = k.r->cq_tail + SLOTS + 3;
    ck_assert_uint_eq(count_of(SCHEMA_WAIT_POLL), SLOTS);
    ck_assert_uint_eq(count_of(SCHEMA_WAIT_UNPOLLED), SLOTS);
    k.w->sq_tail = k.r->sq_head - 1; /* taken by phases, ahead of the tails */
    k.w->cq_head = k.r->cq_tail + 3;
    ck_assert_str_eq(all_counts(), "");
    k.w->sq_tail = k.r->sq_head;
    k.w->cq_head = k.r->cq_tail;
    close_all();
}
END_TEST

/* Whoever touches it may be kept waiting: it cannot be touched here at all. */
START_TEST(a_ring_that_its_worker_may_punch_holes_in_is_not_touched)
{
    uint32_t count[SCHEMA_WAITS];
    open_for(&rows[0]);
    wait_for_answer();
    world_run(w, 2);
    ck_assert_int_eq(mprotect(k.rw.addr, k.rw.size, PROT_NONE), 0);
    lane_waits(k.memory, false, count);
    ck_assert_int_eq(mprotect(k.rw.addr, k.rw.size, PROT_READ | PROT_WRITE), 0);
    ck_assert_uint_eq(count[SCHEMA_WAIT_ANSWER], 3);
    ck_assert_uint_eq(count[SCHEMA_WAIT_POLL], 0);
    let_go(&rows[0]);
    close_all();
}
END_TEST

/* Of what the lane has not begun with, and of what is over. */
START_TEST(a_session_that_is_not_there_waits_for_nothing)
{
    struct lane_memory *memory = lane_memory_new(1, 1, 1, 1);
    uint32_t count[SCHEMA_WAITS] = {0};
    count[SCHEMA_WAIT_TURN] = 7;
    lane_waits(memory, true, count);
    for (int why = 0; why < SCHEMA_WAITS; why++)
        ck_assert_uint_eq(count[why], 0);
    lane_memory_free(memory);

    const struct lane_command end = {
        .kind = LANE_COMMAND_SESSION_END, .session = 0, .reason = SCHEMA_REASON_CLOSED};
    open_for(&rows[0]);
    warm();
    world_run(w, 1);
    post_three();
    ck_assert_int_eq(lane_command(w->node[0].lane, &end), 0);
    for (int i = 0; i < LONG && atomic_load(&k.r->ended) == 0; i++)
        (void)lane_step(w->node[0].lane, w->now_ns += 1000);
    ck_assert_str_eq(all_counts(), "");
    close_all();
}
END_TEST

START_TEST(what_was_posted_is_counted_for_its_session)
{
    uint64_t operations, bytes, more, more_bytes;
    struct lane_memory *memory = lane_memory_new(1, 1, 1, 1);
    lane_posted_of(memory, &operations, &bytes);
    ck_assert_uint_eq(operations + bytes, 0);
    lane_memory_free(memory);
    open_for(&rows[0]);
    warm();
    lane_posted_of(k.memory, &operations, &bytes);
    post_three();
    world_run(w, 2);
    lane_posted_of(k.memory, &more, &more_bytes);
    ck_assert_uint_eq(more, operations + 3);
    ck_assert_uint_gt(more_bytes, bytes);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_was_posted_is_counted_for_its_session)                                                  \
    T(each_reason_is_shown_while_it_holds)                                                         \
    T(the_rest_of_a_tenant_is_shown)                                                               \
    T(what_a_worker_writes_is_shown_as_no_more_than_its_rings_hold)                                \
    T(a_ring_that_its_worker_may_punch_holes_in_is_not_touched)                                    \
    T(a_session_that_is_not_there_waits_for_nothing)
KEDGE_CHECK_MAIN("agent.lane.waits", TESTS)
