/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: what is in flight never exceeds them, as the device itself sees it; what is over goes
 * out in order; tenants share. */
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "world_crowd.h"

static struct world world;
static struct crowd crowd;
static struct crowd *c = &crowd;

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

/* soft moves long requests at a pace by its clock, and in bursts when this program did not run for
 * a while: who has nothing to wait with when others are served gets less then. Where that matters
 * its clock is the passes'. */
static bool by_passes;

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    if (id != CLOCK_BOOTTIME || !by_passes)
        return __real_clock_gettime(id, out);
    out->tv_sec = (time_t)(world.now_ns / BASE_NS_PER_S);
    out->tv_nsec = (long)(world.now_ns % BASE_NS_PER_S);
    return 0;
}

static uint64_t draw(uint64_t below)
{
    static uint64_t random = 42;
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    return (random >> 33) % below;
}

/* Workers of all tenants and kinds, to both nodes. */
static void join_many(uint32_t workers)
{
    static const uint32_t sizes[] = {8, 64, 1000, 4096, 12000, 1, 256, 40};
    for (uint32_t i = 0; i < workers; i++) {
        struct crowd_member *m = crowd_join(c, i % WORLD_TENANTS, 1 + i / 7 % 2, 1 + i % 13, 8);
        for (int s = 0; s < CROWD_SIZES; s++)
            m->sizes[s] = sizes[draw(8)];
        m->write = i % 3 == 0;
        m->signal_few = i % 5 == 0 && m->depth >= 4;
    }
}

static uint64_t all_done(void)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < c->members; i++)
        done += c->member[i].done;
    return done;
}

START_TEST(windows_hold_exactly_under_a_hundred_workers)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 40000, 24);
    crowd_limit(c, LANE_WINDOW_DESTINATION, 0, 30000, 16);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++)
        crowd_limit(c, LANE_WINDOW_TENANT, t, 15000 + 3000 * t, 8 + t);
    join_many(100);
    for (int i = 0; i < 3000; i++) {
        crowd_watch.per_poll = 1 + (uint32_t)draw(8);
        crowd_run(c, 1);
    }
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    ck_assert_uint_gt(crowd_watch.posts, 1000);
    ck_assert_uint_gt(crowd_window(c, LANE_WINDOW_DEVICE, 0).waits, 100);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++) {
        struct lane_window n = crowd_window(c, LANE_WINDOW_TENANT, t);
        ck_assert_uint_gt(n.waits, 100);
        ck_assert_uint_gt(n.waited_ns, 0);
        ck_assert_uint_eq(n.most_ops, n.limit_ops);
        ck_assert_uint_le(n.most_bytes, n.limit_bytes);
    }
    for (uint32_t i = 0; i < c->members; i++) {
        ck_assert_uint_gt(c->member[i].done, 0);
        ck_assert_uint_eq(c->member[i].failed, 0);
    }
    crowd_close(c);
}
END_TEST

/* One node's own is narrower than the one of each in both numbers, the other's in one of them. */
START_TEST(windows_of_different_sizes_hold_exactly_for_each_destination)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DESTINATION, 0, 30000, 16);
    crowd_limit_node(c, 1, 24100, 5);
    crowd_limit_node(c, 2, 48000, 11);
    join_many(100);
    for (int i = 0; i < 3000; i++) {
        crowd_watch.per_poll = 1 + (uint32_t)draw(8);
        crowd_run(c, 1);
    }
    const struct lane_window one = crowd_node_window(c, 1), two = crowd_node_window(c, 2);
    ck_assert_uint_eq(one.limit_bytes, 24100);
    ck_assert_uint_eq(one.limit_ops, 5);
    ck_assert_uint_eq(two.limit_bytes, 30000);
    ck_assert_uint_eq(two.limit_ops, 11);
    ck_assert_uint_eq(one.most_ops, 5);
    ck_assert_uint_eq(two.most_ops, 11);
    ck_assert_uint_le(one.most_bytes, 24100);
    ck_assert_uint_le(two.most_bytes, 30000);
    ck_assert_uint_gt(one.waits, 100);
    ck_assert_uint_gt(two.waits, 100);
    /* Taken away, one by one: the one of each holds, then none. */
    crowd_limit_node(c, 1, 0, 0);
    crowd_limit_node(c, 2, 0, 0);
    for (int i = 0; i < 100000 && (crowd_node_window(c, 1).most_ops < 16 ||
                                   crowd_node_window(c, 2).most_ops < 16);
         i++)
        crowd_run(c, 1);
    ck_assert_uint_eq(crowd_node_window(c, 1).most_ops, 16);
    ck_assert_uint_eq(crowd_node_window(c, 2).most_ops, 16);
    crowd_limit(c, LANE_WINDOW_DESTINATION, 0, 0, 0);
    crowd_run(c, 500);
    ck_assert(!crowd_node_window(c, 1).counted);
    crowd_limit_node(c, 1, 0, 3); /* the only one */
    crowd_run(c, 500);
    ck_assert(crowd_node_window(c, 1).counted);
    /* At a moment few may be out: as many passes as it takes. */
    for (int i = 0; i < 100000 && crowd_node_window(c, 2).ops <= 16; i++) {
        crowd_run(c, 1);
        ck_assert_uint_le(crowd_node_window(c, 1).ops, 3);
    }
    ck_assert_uint_gt(crowd_node_window(c, 2).ops, 16);
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* As many as there can be, of endpoints that nobody uses; each goes again. */
START_TEST(windows_of_destinations_that_are_not_in_use_hold_nobody_up)
{
    struct lane_command set = {.kind = LANE_COMMAND_WINDOW,
                               .window = {.scope = LANE_WINDOW_DESTINATION, .ops = 1}};
    crowd_open(c, &world);
    struct crowd_member *m = crowd_join(c, 1, 1, 8, 64);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < LANE_MAX_DESTINATIONS; i++) {
            memcpy(set.window.gid, &(uint64_t[2]){1, i}, sizeof set.window.gid);
            set.window.ops = round % 2 == 0;
            ck_assert_int_eq(lane_command(world.node[0].lane, &set), 0);
            crowd_run(c, 1);
        }
        ck_assert_uint_eq(crowd_node_window(c, 1).limit_ops, 0);
        ck_assert_uint_eq(crowd_node_window(c, 1).counted, round % 2 == 0);
        ck_assert_uint_eq(crowd_node_window(c, 1).waits, 0);
    }
    ck_assert_uint_gt(m->done, 100);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

START_TEST(what_the_device_does_not_take_goes_again_in_order_and_is_not_in_flight)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 40000, 24);
    crowd_limit(c, LANE_WINDOW_TENANT, 1, 15000, 8);
    join_many(60);
    for (int i = 0; i < 2000; i++) {
        crowd_watch.per_poll = 1 + (uint32_t)draw(8);
        crowd_watch.refuse_every = (uint32_t)draw(6);
        crowd_run(c, 1);
    }
    crowd_watch.per_poll = crowd_watch.refuse_every = 0;
    ck_assert_uint_gt(crowd_watch.refused, 100);
    crowd_settle(c);
    for (uint32_t i = 0; i < c->members; i++) {
        ck_assert_uint_gt(c->member[i].done, 0);
        ck_assert_uint_eq(c->member[i].failed, 0);
    }
    crowd_close(c);
}
END_TEST

START_TEST(windows_change_under_load_and_hold_from_that_pass_on)
{
    crowd_open(c, &world);
    join_many(60);
    for (int round = 0; round < 300; round++) {
        enum lane_window_scope scope = (enum lane_window_scope)draw(LANE_WINDOW_SCOPES);
        uint64_t bytes = draw(3) == 0 ? 0 : 1 + draw(60000);
        uint64_t ops = draw(3) == 0 ? 0 : 1 + draw(30);
        crowd_watch.per_poll = 1 + (uint32_t)draw(8);
        if (scope == LANE_WINDOW_DESTINATION && draw(3) != 0)
            crowd_limit_node(c, 1 + (uint32_t)draw(2), bytes, ops);
        else
            crowd_limit(c, scope, (uint32_t)draw(WORLD_TENANTS), bytes, ops);
        if (round % 50 == 49) { /* none at all: nothing is counted; then again */
            crowd_limit(c, LANE_WINDOW_DEVICE, 0, 0, 0);
            crowd_limit(c, LANE_WINDOW_DESTINATION, 0, 0, 0);
            crowd_limit_node(c, 1, 0, 0);
            crowd_limit_node(c, 2, 0, 0);
            for (uint32_t t = 0; t < WORLD_TENANTS; t++)
                crowd_limit(c, LANE_WINDOW_TENANT, t, 0, 0);
            for (int n = 0; n < 64 && crowd_window(c, LANE_WINDOW_DEVICE, 0).counted; n++)
                crowd_run(c, 1); /* in each some of those who waited go on */
            ck_assert(!crowd_window(c, LANE_WINDOW_DEVICE, 0).counted);
            ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_DEVICE, 0).waiting, 0);
        }
        uint64_t done = all_done();
        /* The device moves a KiB of a long request in a pass while short ones come too. */
        for (int n = 0; n < 10 && all_done() == done; n++)
            crowd_run(c, 30);
        ck_assert_uint_gt(all_done(), done);
    }
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

START_TEST(a_request_larger_than_the_window_goes_alone_and_is_not_starved)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 2000, 0);
    struct crowd_member *large = crowd_join(c, 1, 1, 2, 12000);
    for (int i = 0; i < 20; i++)
        crowd_join(c, 2, 1, 4, 100);
    crowd_watch.per_poll = 3;
    for (int i = 0; i < 20000 && large->done <= 10; i++)
        crowd_run(c, 10);
    ck_assert_uint_gt(large->done, 10);
    ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_DEVICE, 0).most_bytes, 12000);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* ---- what ends otherwise */

static void limit_all(uint64_t bytes, uint64_t ops)
{
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, bytes, ops);
    crowd_limit(c, LANE_WINDOW_DESTINATION, 0, bytes * 3 / 4, ops * 3 / 4);
    for (uint32_t t = 0; t < WORLD_TENANTS; t++)
        crowd_limit(c, LANE_WINDOW_TENANT, t, bytes / 2, ops / 2);
}

START_TEST(sessions_that_end_with_requests_waiting_and_out_leave_every_window)
{
    crowd_open(c, &world);
    limit_all(20000, 12);
    join_many(40);
    crowd_watch.per_poll = 2;
    for (uint32_t i = 0; i < 30; i++) {
        crowd_run(c, 20);
        crowd_leave(c, &c->member[i * 7 % 40]);
    }
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* They wait at the device's window, in their destination's, and their turn comes before their end
 * does: nothing of them keeps the flow, which goes to another endpoint meanwhile. */
START_TEST(whose_turn_comes_when_his_session_has_ended_leaves_every_window)
{
    enum { MANY = 20 };
    world_max_flows = 1;
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 0, 1);
    for (int i = 0; i < MANY; i++)
        crowd_join(c, 1, 1, 1, 512);
    struct crowd_member *other = crowd_join(c, 2, 2, 1, 512);
    other->quiet = true;
    crowd_run(c, 50);
    ck_assert_uint_gt(crowd_window(c, LANE_WINDOW_DEVICE, 0).waiting, MANY / 2);
    for (int i = 0; i < MANY; i++) {
        const struct lane_command end = {.kind = LANE_COMMAND_SESSION_END,
                                         .session = c->member[i].k.id,
                                         .reason = SCHEMA_REASON_CLOSED};
        c->member[i].quiet = true;
        ck_assert_int_eq(lane_command(world.node[0].lane, &end), 0);
    }
    for (int i = 0; i < MANY && crowd_window(c, LANE_WINDOW_DEVICE, 0).waiting > 0; i++)
        crowd_run(c, 1);
    ck_assert_uint_gt(world_stats(&world, 0).vqps, MANY / 2); /* their ends have not come yet */
    ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_TENANT, 1).ops, 0);
    other->quiet = false;
    crowd_run(c, 20);
    ck_assert_uint_gt(other->done, 0);
    ck_assert_uint_eq(crowd_node_window(c, 2).ops, crowd_watch.node[2].ops);
    crowd_settle(c);
    crowd_close(c);
    world_max_flows = 0;
}
END_TEST

START_TEST(requests_that_are_refused_or_flushed_leave_every_window)
{
    struct schema_sq_desc destroy = {.op = SCHEMA_OP_DESTROY, .slots = 1};
    crowd_open(c, &world);
    limit_all(20000, 12);
    join_many(40);
    crowd_watch.per_poll = 2;
    for (uint32_t i = 0; i < 40; i++) {
        struct crowd_member *m = &c->member[i];
        crowd_run(c, 10);
        if (i % 4 == 0) /* beyond the region: an error, and all behind it is flushed */
            m->sizes[2] = 20000;
        if (i % 4 == 1) /* the session ends when it has guessed too often */
            m->vkey = 12345;
        if (i % 4 == 2) {
            m->quiet = true;
            world_post(&m->k, &destroy);
        }
    }
    crowd_run(c, 500);
    for (uint32_t i = 0; i < 40; i++)
        if (i % 4 == 3)
            ck_assert_uint_eq(c->member[i].failed, 0);
    ck_assert_uint_gt(world_stats(&world, 0).refused, 10);
    for (uint32_t i = 0; i < 40; i++) /* what a VQP that was destroyed had out completes unseen */
        c->member[i].quiet = true;
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* Memory goes behind the lane's back: the device refuses, queue pairs break, and what others had on
 * them is posted again. */
START_TEST(queue_pairs_that_break_give_back_what_they_carried_once)
{
    crowd_open(c, &world);
    limit_all(40000, 20);
    join_many(40);
    crowd_watch.per_poll = 3;
    for (uint32_t t = 0; t < 2; t++) {
        crowd_run(c, 200);
        struct fab_ctl drop = {.kind = FAB_DEREG_MR, .mr = {.x = c->owner[t][1].arena_mr}};
        ck_assert_int_eq(fab_call(world.node[1].fab, &drop), 0);
        c->owner[t][1].arena_mr = NULL;
    }
    crowd_run(c, 3000);
    ck_assert_uint_gt(world_stats(&world, 0).qp_broken, 2);
    ck_assert_uint_gt(world_stats(&world, 0).reposted, 0);
    uint64_t done = 0;
    for (uint32_t i = 0; i < 40; i++)
        if (c->member[i].tenant >= 2)
            done += c->member[i].bytes;
    ck_assert_uint_gt(done, 0);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

START_TEST(requests_that_wait_for_a_node_that_died_fail_and_hold_up_no_other)
{
    crowd_open(c, &world);
    limit_all(20000, 12);
    join_many(40);
    crowd_watch.per_poll = 3;
    crowd_run(c, 200);
    world_restart_node(&world, 2);
    crowd_run(c, 100);
    uint64_t failed = 0;
    for (int i = 0; i < 100000 && failed == 0; i++) { /* a time-out of the device is in real time */
        crowd_run(c, 10);
        for (uint32_t k = 0; k < 40; k++)
            failed += c->member[k].failed;
    }
    ck_assert_uint_gt(failed, 0);
    for (uint32_t i = 0; i < 40; i++)
        if (c->member[i].node == 1)
            ck_assert_uint_eq(c->member[i].failed, 0);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* ---- fairness */

static uint64_t bytes_of(uint32_t tenant)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->members; i++)
        if (c->member[i].tenant == tenant)
            bytes += c->member[i].bytes;
    return bytes;
}

static void forget_bytes(void)
{
    for (uint32_t i = 0; i < c->members; i++)
        c->member[i].bytes = 0;
}

/* Passes until so many more are done: how many those take for long requests is soft's affair, which
 * goes by the time of the process. */
static void run_until_done(uint64_t more)
{
    const uint64_t before = all_done();
    for (int i = 0; i < 20000 && all_done() - before < more; i++)
        crowd_run(c, 10);
    ck_assert_uint_ge(all_done() - before, more);
}

/* Within a twentieth of each other. */
static void about(uint64_t a, uint64_t b)
{
    ck_assert_uint_gt(a, 0);
    ck_assert_uint_le(a, b + b / 20);
    ck_assert_uint_le(b, a + a / 20);
}

static const struct {
    enum lane_window_scope scope;
    uint64_t bytes, ops;
    uint32_t large, small; /* requests of the many and of the one */
} shared[] = {
    {LANE_WINDOW_DEVICE, 0, 16, 1024, 1024},      {LANE_WINDOW_DEVICE, 65536, 0, 4096, 4096},
    {LANE_WINDOW_DESTINATION, 0, 16, 1024, 1024}, {LANE_WINDOW_DESTINATION, 65536, 32, 8192, 8192},
    {LANE_WINDOW_DEVICE, 32768, 0, 16384, 2048},
};

START_TEST(a_tenant_with_64_workers_gets_no_more_than_one_with_1)
{
    for (size_t k = 0; k < sizeof shared / sizeof shared[0]; k++) {
        crowd_open(c, &world);
        crowd_limit(c, shared[k].scope, 0, shared[k].bytes, shared[k].ops);
        for (int i = 0; i < 64; i++)
            crowd_join(c, 1, 1, 8, shared[k].large);
        crowd_join(c, 2, 1, 31, shared[k].small);
        crowd_watch.per_poll = 4;
        run_until_done(500);
        forget_bytes();
        run_until_done(10000);
        if (shared[k].large == shared[k].small)
            about(bytes_of(1), bytes_of(2));
        else /* the smaller ones count for a little more than their bytes */
            ck_assert_uint_gt(bytes_of(2) * 5, bytes_of(1) * 4);
        crowd_settle(c);
        crowd_close(c);
    }
}
END_TEST

START_TEST(who_asks_for_less_than_its_share_gets_all_of_it_at_once)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_DEVICE, 0, 0, 16);
    for (int i = 0; i < 64; i++)
        crowd_join(c, 1, 1, 8, 512);
    struct crowd_member *modest = crowd_join(c, 2, 1, 1, 512);
    crowd_watch.per_poll = 4;
    crowd_run(c, 300);
    uint64_t before = modest->done;
    crowd_run(c, 3000);
    /* 16 are in flight when it comes, and 4 of them end in a pass: it is posted in the next, and
     * its completion is among the last of those. */
    ck_assert_uint_ge(modest->done - before, 3000 / 8);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

START_TEST(virtual_queue_pairs_of_one_tenant_share_its_window)
{
    crowd_open(c, &world);
    crowd_limit(c, LANE_WINDOW_TENANT, 1, 32768, 0);
    for (int i = 0; i < 8; i++)
        crowd_join(c, 1, 1, 8, i < 4 ? 2048 : 8192);
    struct crowd_member *other = crowd_join(c, 2, 1, 8, 2048);
    crowd_watch.per_poll = 4;
    run_until_done(500);
    forget_bytes();
    run_until_done(10000);
    uint64_t small = 0, large = 0;
    for (int i = 0; i < 8; i++)
        *(i < 4 ? &small : &large) += c->member[i].bytes;
    for (int i = 0; i < 8; i++) /* each its part, whatever the size of its requests */
        ck_assert_uint_gt(c->member[i].bytes * 10, small + large);
    ck_assert_uint_gt(small * 5, large * 4);
    ck_assert_uint_gt(large * 5, small * 4);
    ck_assert_uint_gt(other->bytes, 0);
    ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_TENANT, 2).waits, 0);
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

/* Where no window is what limits them, queue pairs have no room for all. */
START_TEST(who_waits_for_room_in_a_queue_pair_is_not_starved)
{
    static const uint32_t sizes[] = {64, 16000}; /* of the large ones a pass takes a part */
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t most = 0;
        crowd_open(c, &world);
        by_passes = true;
        for (int i = 0; i < 30; i++)
            crowd_join(c, 1, 1, 30, sizes[k]);
        crowd_watch.per_poll = 4;
        run_until_done(500); /* who came first had the queue pair for himself */
        forget_bytes();
        run_until_done(10000);
        for (int i = 0; i < 30; i++)
            most = c->member[i].bytes > most ? c->member[i].bytes : most;
        for (int i = 0; i < 30; i++)
            ck_assert_uint_gt(c->member[i].bytes * 2, most);
        crowd_watch.per_poll = 0;
        crowd_settle(c);
        crowd_close(c);
        by_passes = false;
    }
}
END_TEST

START_TEST(without_a_window_a_tenant_with_64_workers_gets_no_more_than_one_with_1)
{
    static const uint32_t sizes[] = {64, 1024, 4096, 8192};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        crowd_open(c, &world);
        by_passes = sizes[k] > 4096; /* which soft does not move at once, but at a pace */
        for (int i = 0; i < 64; i++)
            crowd_join(c, 1, 1, 8, sizes[k]);
        crowd_join(c, 2, 1, 31, sizes[k]);
        crowd_watch.per_poll = 4;
        run_until_done(500);
        forget_bytes();
        run_until_done(10000);
        ck_assert_uint_gt(bytes_of(2) * 100, (bytes_of(1) + bytes_of(2)) * (by_passes ? 43 : 45));
        ck_assert_uint_eq(crowd_window(c, LANE_WINDOW_DEVICE, 0).limit_ops, 0);
        crowd_watch.per_poll = 0;
        crowd_settle(c);
        crowd_close(c);
        by_passes = false;
    }
}
END_TEST

/* It has the queue pair full, with the lane's own READs beside, whatever others did before. */
START_TEST(a_tenant_that_is_alone_has_all_the_room_there_is)
{
    crowd_open(c, &world);
    for (int i = 0; i < 32; i++)
        crowd_join(c, 1, 1, 8, 64);
    struct crowd_member *other = crowd_join(c, 2, 1, 31, 64);
    crowd_watch.per_poll = 4;
    crowd_run(c, 300);
    ck_assert_uint_le(crowd_watch.device.ops, WORLD_SQ_DEPTH / 2);
    other->quiet = true;
    crowd_run(c, 300);
    world_sleep(&world, 30000000);
    uint64_t full = 0;
    for (int i = 0; i < 100; i++) {
        crowd_run(c, 1);
        full += crowd_watch.device.ops >= WORLD_SQ_DEPTH - 8;
    }
    ck_assert_uint_gt(full, 90);
    crowd_watch.per_poll = 0;
    crowd_settle(c);
    crowd_close(c);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(windows_hold_exactly_under_a_hundred_workers)                                                \
    T(windows_of_different_sizes_hold_exactly_for_each_destination)                                \
    T(windows_of_destinations_that_are_not_in_use_hold_nobody_up)                                  \
    T(what_the_device_does_not_take_goes_again_in_order_and_is_not_in_flight)                      \
    T(windows_change_under_load_and_hold_from_that_pass_on)                                        \
    T(a_request_larger_than_the_window_goes_alone_and_is_not_starved)                              \
    T(sessions_that_end_with_requests_waiting_and_out_leave_every_window)                          \
    T(whose_turn_comes_when_his_session_has_ended_leaves_every_window)                             \
    T(requests_that_are_refused_or_flushed_leave_every_window)                                     \
    T(queue_pairs_that_break_give_back_what_they_carried_once)                                     \
    T(requests_that_wait_for_a_node_that_died_fail_and_hold_up_no_other)                           \
    T(a_tenant_with_64_workers_gets_no_more_than_one_with_1)                                       \
    T(who_asks_for_less_than_its_share_gets_all_of_it_at_once)                                     \
    T(virtual_queue_pairs_of_one_tenant_share_its_window)                                          \
    T(who_waits_for_room_in_a_queue_pair_is_not_starved)                                           \
    T(without_a_window_a_tenant_with_64_workers_gets_no_more_than_one_with_1)                      \
    T(a_tenant_that_is_alone_has_all_the_room_there_is)
KEDGE_CHECK_MAIN("agent.lane.windows", TESTS)
