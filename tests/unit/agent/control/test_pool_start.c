/* SPDX-License-Identifier: Apache-2.0 */
/* Pools that metaservers say, while they begin: the device is the test's, and answers when it wants
 * to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "life.h"
#include "base/clock.h"
#include "pool.h"
#include "pool_lanes.h"
#include "pools.h"
#include "world.h"

static struct {
    struct test_world world;
    struct agent agent;
    struct pool own;
    struct fab fab;
    struct agent_desired desired;
    bool retires_slowly;
} w;

/* What has begun is the test's to end. */
static void count_step(enum world_device_step step, struct pool *p)
{
    p->fab_ops += step == WORLD_DEVICE_OPEN || (step == WORLD_DEVICE_RETIRE && w.retires_slowly);
}

static void say_pool(const char *name, uint64_t number)
{
    struct agent_pool_config *p = &w.desired.pool[w.desired.pools++];
    memset(p, 0xff, sizeof *p); /* nothing is said of it but: */
    snprintf(p->name, sizeof p->name, "%s", name);
    p->numbers.number = number;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.world.stepped = count_step;
    w.agent.world = w.own.world = &w.world.world;
    w.agent.fab = &w.fab;
    agent_life_begin(&w.agent, 100);
    w.agent.config.mr_lease_ns = BASE_NS_PER_S;
    w.agent.config.max_mrs = 64;
    w.agent.config.max_peers = 64;
    snprintf(w.agent.config.pool, sizeof w.agent.config.pool, "default");
    snprintf(w.own.name, sizeof w.own.name, "default");
    w.own.agent = &w.agent;
    w.own.config = &w.agent.config;
    w.agent.pools[0] = &w.own;
    say_pool("batch", 7);
}

static void apply(void)
{
    agent_pools_apply(&w.agent, &w.desired);
}

/* The MR table's, and the peer table. */
static void end_memory(int status, int status_of_peers)
{
    test_world_end_task(&w.world, status);
    agent_pools_step(&w.agent);
    if (w.world.tasks == NULL)
        return;
    ck_assert_int_eq(w.world.tasks->work, WORLD_MAKE_PEERS);
    test_world_end_task(&w.world, status_of_peers);
}

/* The device has begun with it, and says nothing. */
static struct pool *begun(const char *name)
{
    struct pool *p = agent_pools_find(&w.agent, name);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(p->stage, POOL_STARTING);
    if (p->start.stage == START_MEMORY) {
        end_memory(0, 0);
        agent_pools_step(&w.agent);
    }
    ck_assert_uint_eq(p->fab_ops, 1);
    p->device.fab = &w.fab;
    p->device.opening.is_under_way = true;
    p->device.opening.ctl.kind = FAB_CREATE_QP;
    return p;
}

static void answer(struct pool *p, int status, const char *text)
{
    struct base_errbuf err = {""};
    snprintf(err.text, sizeof err.text, "%s", text);
    p->fab_ops--;
    p->device.opening.is_under_way = false;
    agent_pool_device_opened(p, status, &err);
    agent_pools_step_starting(&w.agent);
}

static const char *why(void)
{
    static char text[512];
    text[0] = '\0';
    agent_pools_why(&w.agent, text, sizeof text);
    return text;
}

START_TEST(a_pool_that_begins_has_no_lane_and_what_takes_long_is_said)
{
    begin();
    apply();
    ck_assert_ptr_null(begun("batch")->lane);
    ck_assert_str_eq(agent_pools_state(begun("batch")), "starting");
    ck_assert_ptr_null(agent_pools_next(&w.agent, NULL));
    ck_assert_str_eq(why(), "");
    test_world_advance(&w.world, 4 * BASE_NS_PER_S);
    ck_assert_str_eq(why(), "pool batch: the device has been creating a queue pair for long, and "
                            "the pool begins when that is over (see dmesg)");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 1);
}
END_TEST

START_TEST(one_that_cannot_be_made_is_said_and_tried_again)
{
    begin();
    apply();
    answer(begun("batch"), -ENOSPC, "the device is full");
    ck_assert_str_eq(why(), "pool batch: the device is full");
    ck_assert_ptr_null(agent_pools_find(&w.agent, "batch"));
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 1);
    agent_pools_step(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 1);
    test_world_advance(&w.world, 6 * BASE_NS_PER_S);
    agent_pools_step(&w.agent);
    (void)begun("batch");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 2);
}
END_TEST

START_TEST(one_that_is_given_up_goes_when_the_device_answers)
{
    begin();
    apply();
    struct pool *p = begun("batch");
    w.desired.pools = 0;
    apply();
    ck_assert_str_eq(why(), "");
    ck_assert_ptr_eq(agent_pools_find(&w.agent, "batch"), p);
    ck_assert(p->stopping);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 0); /* it still has an operation out */
    p->fab_ops = 0;
    agent_pools_step(&w.agent);
    ck_assert_ptr_null(agent_pools_find(&w.agent, "batch"));
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 1);
}
END_TEST

START_TEST(what_cannot_be_as_said_is_made_as_the_file_says_when_the_rest_has_gone)
{
    begin();
    w.desired.pool[0].numbers.dcis = 99;
    apply();
    struct pool *p = begun("batch");
    ck_assert_uint_eq(p->prewarm.dcis, 99);
    answer(p, -ENOSPC, "the device is full");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 1); /* nothing was there to wait for */
    ck_assert_uint_eq(begun("batch")->prewarm.dcis, 0);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 2);
    answer(p, -ENOSPC, "the device is still full"); /* once is enough */
    ck_assert_str_eq(why(), "pool batch: the device is still full");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 2);
}
END_TEST

START_TEST(what_goes_for_another_try_goes_once)
{
    begin();
    w.retires_slowly = true;
    w.desired.pool[0].numbers.dcis = 99;
    apply();
    struct pool *p = begun("batch");
    answer(p, -ENOSPC, "the device is full");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    w.desired.pools = 0;
    apply();
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 0);
    p->fab_ops--;
    agent_pools_step(&w.agent);
    ck_assert_ptr_null(agent_pools_find(&w.agent, "batch"));
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 1);
}
END_TEST

START_TEST(one_that_was_made_for_another_address_is_made_anew_at_once)
{
    begin();
    apply();
    w.agent.address_news++;
    answer(begun("batch"), 0, "");
    (void)begun("batch");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 2);
    w.agent.port.mtu = IBV_MTU_512;
    answer(begun("batch"), 0, "");
    (void)begun("batch");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 3);
    ck_assert_str_eq(why(), "");
}
END_TEST

/* Metaservers refuse a node of which a pool has an earlier one. */
START_TEST(no_pool_gets_an_incarnation_below_the_nodes)
{
    begin();
    w.agent.had[0] |= 1 << 7; /* a pool of that number ran before */
    apply();
    const uint32_t former = begun("batch")->incarnation;
    ck_assert_uint_gt(former, 100);
    ck_assert_int_eq(agent_life_next_incarnation(&w.agent, &w.agent.incarnation, NULL), 0);
    ck_assert_uint_gt(w.agent.incarnation, former);
    w.agent.address_news++; /* the node has another name */
    answer(begun("batch"), 0, "");
    ck_assert_uint_gt(begun("batch")->incarnation, w.agent.incarnation);
}
END_TEST

START_TEST(nor_does_one_that_is_made_when_another_was_begun_before_the_node_had_its_own)
{
    begin();
    apply();
    ck_assert_uint_eq(begun("batch")->incarnation, 100);
    ck_assert_int_eq(agent_life_next_incarnation(&w.agent, &w.agent.incarnation, NULL), 0);
    answer(begun("batch"), -ENOSPC, "the device is full");
    w.desired.pools = 0;
    w.agent.had[1] |= 1;
    say_pool("again", 8);
    apply();
    ck_assert_uint_gt(begun("again")->incarnation, w.agent.incarnation);
}
END_TEST

START_TEST(the_life_that_follows_counts_from_when_numbers_of_queue_pairs_went)
{
    static struct agent next;
    begin();
    w.agent.superseded_by = 200;
    w.agent.restarted_for_mask = 2;
    w.agent.numbers_gone_ns = 77;
    agent_life_begin_anew(&next, &w.agent);
    ck_assert_uint_eq(next.min_incarnation, 200);
    ck_assert_uint_eq(next.restarted_for_mask, 2);
    ck_assert_uint_eq(next.numbers_gone_ns, 77);
    ck_assert_ptr_null(next.pools[0]);
}
END_TEST

static void memory_fails(int status, int status_of_peers, const char *sentence)
{
    agent_pools_step(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 0);
    end_memory(status, status_of_peers);
    agent_pools_step(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 0);
    ck_assert_ptr_nonnull(strstr(why(), sentence));
    ck_assert_ptr_null(agent_pools_find(&w.agent, "batch"));
    test_world_advance(&w.world, 6 * BASE_NS_PER_S);
    agent_pools_step(&w.agent);
}

START_TEST(the_memory_that_it_takes_is_made_beside_the_loop)
{
    begin();
    apply();
    memory_fails(-ENOMEM, 0, "pool batch: the memory of the MR table cannot be made");
    memory_fails(0, -EMFILE, "pool batch: the peer table cannot be made: Too many open files");
    w.desired.pools = 0; /* given up while it is being made */
    apply();
    ck_assert_ptr_nonnull(agent_pools_find(&w.agent, "batch"));
    test_world_end_task(&w.world, 0);
    agent_pools_step(&w.agent);
    ck_assert_ptr_nonnull(agent_pools_find(&w.agent, "batch"));
    test_world_end_task(&w.world, 0);
    agent_pools_step(&w.agent);
    ck_assert_ptr_null(agent_pools_find(&w.agent, "batch"));
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 0);
}
END_TEST

START_TEST(several_begin_one_after_another)
{
    begin();
    say_pool("more", 8);
    apply();
    (void)begun("batch");
    agent_pools_step(&w.agent);
    ck_assert_ptr_null(agent_pools_find(&w.agent, "more"));
    ck_assert_str_eq(why(), "");
    test_world_advance(&w.world, 4 * BASE_NS_PER_S);
    ck_assert_ptr_nonnull(
        strstr(why(), "pool more: pool batch is being made, and it comes after that"));
    answer(begun("batch"), -ENOSPC, "the device is full");
    (void)begun("more");
}
END_TEST

/* Of its tenant's workers: what they are told, and the pool that they get. */
static int told(const char *pool)
{
    struct base_errbuf text = {""};
    struct pool *p = NULL;
    struct agent_tenant_config *t = &w.agent.tenants.at[0].config;
    snprintf(t->name, sizeof t->name, "guests");
    snprintf(t->pool, sizeof t->pool, "%s", pool);
    const int status = agent_pools_of_tenant(&w.agent, 1, &p, &text);
    ck_assert(status == 0 ? p != NULL : p == NULL && text.text[0] != '\0');
    return status;
}

/* ---- lanes */

static void say_lanes(const char *name, uint64_t number, uint64_t lanes)
{
    say_pool(name, number);
    w.desired.pool[w.desired.pools - 1].numbers.lanes = lanes;
}

/* The device has begun with that lane: the ones before it are made. */
static struct pool *begun_lane(const char *name, uint32_t number)
{
    struct pool *p = agent_pools_find(&w.agent, name);
    ck_assert_ptr_nonnull(p);
    for (uint32_t i = 0; i < number; i++) {
        p = agent_pools_next_part(pool_endpoint(p), p);
        ck_assert_ptr_nonnull(p);
    }
    ck_assert_uint_eq(p->lane_number, number);
    ck_assert_int_eq(p->stage, POOL_STARTING);
    if (p->start.stage == START_MEMORY) { /* its peer table: the MR table is the first one's */
        ck_assert_int_eq(w.world.tasks->work, WORLD_MAKE_PEERS);
        test_world_end_task(&w.world, 0);
        agent_pools_step(&w.agent);
    }
    ck_assert_uint_eq(p->fab_ops, 1);
    p->device.fab = &w.fab;
    p->device.opening.is_under_way = true;
    p->device.opening.ctl.kind = FAB_CREATE_QP;
    return p;
}

static uint32_t count_of(const char *name)
{
    uint32_t n = 0;
    struct pool *first = agent_pools_find(&w.agent, name);
    for (struct pool *p = first; p != NULL; p = agent_pools_next_part(first, p))
        n++;
    return n;
}

START_TEST(lanes_are_made_one_after_another_and_none_serves_before_all_are_there)
{
    begin();
    w.desired.pools = 0;
    test_world_advance(&w.world, 100 * BASE_NS_PER_S); /* the host has run for long */
    say_lanes("gold", 9, 3);
    apply();
    struct pool *first = begun("gold");
    ck_assert_int_eq(told("gold"), -EAGAIN);
    ck_assert_uint_eq(agent_lanes_count(first), 3);
    ck_assert_uint_eq(count_of("gold"), 3);
    ck_assert_uint_eq(agent_pools_room(&w.agent), 4); /* their places are nobody else's */
    answer(first, 0, "");
    struct pool *second = begun_lane("gold", 1);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 2);
    ck_assert_uint_eq(second->incarnation, first->incarnation);
    ck_assert_uint_eq(second->number, 9);
    ck_assert_ptr_eq(pool_endpoint(second), first);
    test_world_advance(&w.world, 2 * BASE_NS_PER_S); /* no lane takes long */
    answer(second, 0, "");
    test_world_advance(&w.world, 2 * BASE_NS_PER_S);
    ck_assert_ptr_null(agent_pools_next(&w.agent, NULL));
    ck_assert_str_eq(agent_pools_state(first), "starting");
    ck_assert_int_eq(told("gold"), -EAGAIN);
    w.agent.address_news++;
    answer(begun_lane("gold", 2), 0, "");
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 3);
    (void)begun("gold"); /* all of them are made anew */
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_OPEN], 4);
    ck_assert_uint_eq(count_of("gold"), 3);
    ck_assert_str_eq(why(), "");
}
END_TEST

static uint32_t closed[POOLS], closes; /* numbers of lanes, in order */

static void note_closed(enum world_device_step step, struct pool *p)
{
    if (step == WORLD_DEVICE_CLOSE)
        closed[closes++] = p->lane_number;
    count_step(step, p);
}

START_TEST(where_one_lane_cannot_be_made_all_go_and_the_first_goes_last)
{
    begin();
    w.desired.pools = closes = 0;
    say_lanes("gold", 9, 3);
    say_pool("batch", 7);
    apply();
    answer(begun("gold"), 0, "");
    w.world.stepped = note_closed;
    answer(begun_lane("gold", 1), -ENOSPC, "the device is full");
    ck_assert_str_eq(why(), "pool gold: lane 1 of 3: the device is full");
    ck_assert_uint_eq(count_of("gold"), 0);
    ck_assert_uint_eq(closes, 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(closed[i], 2 - i);
    answer(begun("batch"), -ENOSPC, "the device is full"); /* it has had its turn */
    test_world_advance(&w.world, 6 * BASE_NS_PER_S);
    agent_pools_step(&w.agent);
    (void)begun("gold");
    ck_assert_uint_eq(count_of("gold"), 3);
}
END_TEST

START_TEST(a_pool_that_is_given_up_between_two_lanes_goes_with_all)
{
    begin();
    w.desired.pools = 0;
    say_lanes("gold", 9, 2);
    apply();
    answer(begun("gold"), 0, "");
    struct pool *second = begun_lane("gold", 1);
    w.desired.pools = 0;
    apply();
    ck_assert_uint_eq(count_of("gold"), 2);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_RETIRE], 0); /* one has an operation out */
    second->fab_ops = 0;
    agent_pools_step(&w.agent);
    ck_assert_uint_eq(count_of("gold"), 0);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 2);
    ck_assert_uint_eq(agent_pools_room(&w.agent), 7);
}
END_TEST

START_TEST(a_device_that_takes_long_for_a_further_lane_is_said)
{
    begin();
    w.desired.pools = 0;
    say_lanes("gold", 9, 2);
    apply();
    answer(begun("gold"), 0, "");
    (void)begun_lane("gold", 1);
    ck_assert_str_eq(why(), "");
    test_world_advance(&w.world, 4 * BASE_NS_PER_S);
    ck_assert_str_eq(why(), "pool gold: the device has been creating a queue pair for long, and "
                            "the pool begins when that is over (see dmesg)");
}
END_TEST

/* Whoever asks for more than there is room for has none, and takes nobody else's. */
START_TEST(a_pool_whose_lanes_have_no_room_says_so_and_harms_no_other)
{
    begin();
    w.desired.pools = 0;
    say_lanes("gold", 9, 5);
    say_lanes("silver", 10, 3);
    say_lanes("tin", 11, 2);
    apply();
    for (uint32_t i = 0; i < 4; i++)
        answer(i == 0 ? begun("gold") : begun_lane("gold", i), 0, "");
    (void)begun_lane("gold", 4);
    ck_assert_str_eq(why(), "pool silver: lanes 3: there is room for 2, of 8 pools and further "
                            "lanes: lower lanes, or delete a pool");
    ck_assert_int_eq(told("silver"), -EBUSY);
    ck_assert_int_eq(told("tin"), -EAGAIN);
    w.agent.address_news++;
    answer(begun_lane("gold", 4), 0, "");
    struct pool *gold = begun("gold"); /* anew, with as many places */
    ck_assert_uint_eq(count_of("gold"), 5);
    w.desired.pools = 0;
    say_lanes("silver", 10, 3);
    say_lanes("tin", 11, 2);
    say_lanes("lead", 12, 8);
    apply();
    ck_assert_uint_eq(count_of("gold"), 5); /* which has an operation out */
    ck_assert_uint_eq(count_of("silver"), 0);
    ck_assert_uint_eq(count_of("tin"), 2); /* there is room for it beside that */
    gold->fab_ops = 0;
    agent_pools_step(&w.agent);
    ck_assert_uint_eq(count_of("gold"), 0);
    ck_assert_str_eq(why(), "pool lead: lanes 8: there is room for 5, of 8 pools and further "
                            "lanes: lower lanes, or delete a pool");
    answer(begun("tin"), -ENOSPC, "the device is full");
    ck_assert_uint_eq(count_of("silver"), 3);
}
END_TEST

/* kedge_open(3) asks again after -EAGAIN alone; -EBUSY sends a worker to another host. */
START_TEST(workers_of_one_that_comes_are_told_to_come_again)
{
    begin();
    say_pool("more", 8);
    apply();
    struct pool *p = begun("batch");
    ck_assert_int_eq(told("default"), 0);
    ck_assert_int_eq(told("batch"), -EAGAIN);
    ck_assert_int_eq(told("more"), -EAGAIN); /* it has not begun */
    ck_assert_int_eq(told("unsaid"), -EBUSY);
    ck_assert(agent_pools_any_pending(&w.agent));

    w.agent.address_news++; /* it is made anew, when what there is of it is gone */
    w.retires_slowly = true;
    answer(p, 0, "");
    ck_assert_int_eq(p->stage, POOL_ENDING);
    ck_assert_int_eq(told("batch"), -EAGAIN);
    p->fab_ops = 0;
    agent_pools_step(&w.agent);
    ck_assert_int_eq(told("batch"), -EAGAIN);
}
END_TEST

START_TEST(workers_of_one_that_cannot_begin_are_sent_elsewhere)
{
    begin();
    say_pool("more", 8);
    apply();
    (void)begun("batch");
    test_world_advance(&w.world, 4 * BASE_NS_PER_S);
    ck_assert_int_eq(told("batch"), -EBUSY);
    ck_assert_int_eq(told("more"), -EBUSY);
    ck_assert(!agent_pools_any_pending(&w.agent));
    answer(begun("batch"), -ENOSPC, "the device is full");
    ck_assert_int_eq(told("batch"), -EBUSY);
    ck_assert_int_eq(told("more"), -EAGAIN);
    answer(begun("more"), -ENOSPC, "the device is full");
    ck_assert(!agent_pools_any_pending(&w.agent));
    test_world_advance(&w.world, 6 * BASE_NS_PER_S);
    agent_pools_step(&w.agent);
    (void)begun("batch");
    ck_assert_int_eq(told("batch"), -EBUSY); /* it is tried again */
}
END_TEST

/* ---- the end of all */

static void expect_none_stepped(enum world_device_step step, struct pool *p)
{
    (void)step, (void)p;
    ck_assert_uint_eq(w.world.lanes_stopped, 2);
}

/* One carries out sessions of the other, whichever goes first. */
START_TEST(no_lane_is_stepped_any_more_when_the_first_is_taken_apart)
{
    begin();
    w.world.stepped = expect_none_stepped;
    for (uint32_t i = 0; i < 2; i++) {
        struct pool *p = w.agent.pools[i] = calloc(1, sizeof *p);
        ck_assert_ptr_nonnull(p);
        p->agent = &w.agent;
        p->world = w.agent.world;
        p->config = &w.agent.config;
        p->place = p->lane_number = i;
        p->first = i > 0 ? w.agent.pools[0] : NULL;
        p->stepping.of_world = &w;
    }
    agent_pools_stop(&w.agent);
    ck_assert_uint_eq(w.world.steps[WORLD_DEVICE_CLOSE], 2);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_pool_that_begins_has_no_lane_and_what_takes_long_is_said)                                  \
    T(one_that_cannot_be_made_is_said_and_tried_again)                                             \
    T(one_that_is_given_up_goes_when_the_device_answers)                                           \
    T(what_cannot_be_as_said_is_made_as_the_file_says_when_the_rest_has_gone)                      \
    T(what_goes_for_another_try_goes_once)                                                         \
    T(one_that_was_made_for_another_address_is_made_anew_at_once)                                  \
    T(no_pool_gets_an_incarnation_below_the_nodes)                                                 \
    T(nor_does_one_that_is_made_when_another_was_begun_before_the_node_had_its_own)                \
    T(the_life_that_follows_counts_from_when_numbers_of_queue_pairs_went)                          \
    T(the_memory_that_it_takes_is_made_beside_the_loop)                                            \
    T(several_begin_one_after_another)                                                             \
    T(workers_of_one_that_comes_are_told_to_come_again)                                            \
    T(workers_of_one_that_cannot_begin_are_sent_elsewhere)                                         \
    T(lanes_are_made_one_after_another_and_none_serves_before_all_are_there)                       \
    T(where_one_lane_cannot_be_made_all_go_and_the_first_goes_last)                                \
    T(a_pool_that_is_given_up_between_two_lanes_goes_with_all)                                     \
    T(a_device_that_takes_long_for_a_further_lane_is_said)                                         \
    T(a_pool_whose_lanes_have_no_room_says_so_and_harms_no_other)                                  \
    T(no_lane_is_stepped_any_more_when_the_first_is_taken_apart)
KEDGE_CHECK_MAIN("agent.control.pool_start", TESTS)
