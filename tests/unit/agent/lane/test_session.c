/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of sessions and VQPs while their requests are out: nothing of them may stay. */
#include <stdatomic.h>

#include "../../check_main.h"
#include "world.h"
#include "world_rc.h"

enum { TENANT = 7, WRONG_KEY = 12345 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

/* An owner on node 1 with a region of 4 KiB, and a worker on node 0 that has READ it. */
static struct schema_sq_desc pair(struct world_worker *owner, struct world_worker *k)
{
    struct schema_cqe e;
    world_open(w);
    world_attach(w, owner, 1, 0, TENANT);
    world_attach(w, k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, owner, 0, 4096, ALL);
    ck_assert_uint_ne(vkey, 0);
    ck_assert_int_eq(world_connect(w, k, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(k, &d);
    ck_assert(world_poll(w, k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    return d;
}

START_TEST(one_guess_too_many_behind_a_request_that_is_out_ends_the_session_whole)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    struct schema_sq_desc good = pair(&owner, &k), wrong = good;
    wrong.post.vkey = WRONG_KEY;
    for (uint32_t i = 0; i < w->node[0].config.guess_budget; i++) {
        for (int again = 0; again < 3; again++) { /* what is known to be unknown costs nothing */
            ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
            world_post(&k, &wrong);
            ck_assert(world_poll(w, &k, &e, 500));
            ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
        }
        wrong.post.vkey++;
    }
    ck_assert_uint_eq(k.r->ended, 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    good.vqp = 1;
    world_post(&k, &wrong);
    lane_doorbell(w->node[0].lane, 0);
    world_run(w,
              1); /* its key is READ: refused in the next pass, after the good one has gone out */
    world_post(&k, &good);
    ck_assert_uint_eq(k.r->ended, 0);
    world_run(w, 50);
    ck_assert_uint_eq(k.r->ended, SCHEMA_REASON_GUESSES);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_uint_eq(w->node[0].over, 1);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

/* What stands behind the request that breaks the queue pair is posted again, unless nobody waits
 * for it any more. */
static void break_under(struct world_worker *k, const struct schema_sq_desc *bad,
                        const struct schema_sq_desc *good, const struct schema_sq_desc *last)
{
    struct world_worker late;
    world_attach(w, &late, 0, 1, TENANT);
    ck_assert_int_eq(world_connect(w, &late, 0, 1), 0);
    world_post(k, bad);
    world_post(&late, good);
    world_post(&late, last); /* in the same pass, and so before anything is polled */
    lane_doorbell(w->node[0].lane, 0);
    lane_doorbell(w->node[0].lane, 1);
    uint64_t reposted = world_stats(w, 0).reposted;
    world_run(w, 50);
    ck_assert_uint_ge(world_stats(w, 0).qp_broken, 1);
    ck_assert_uint_eq(world_stats(w, 0).reposted, reposted);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    world_detach(w, &late);
}

START_TEST(a_queue_pair_that_breaks_under_what_has_ended_posts_nothing_of_it_again)
{
    for (int which = 0; which < 2; which++) {
        struct world_worker owner, gone, k;
        struct schema_sq_desc good = pair(&owner, &k), bad;
        struct schema_sq_desc last = {.op = which == 0 ? SCHEMA_OP_DESTROY : 99, .slots = 1};
        world_attach(w, &gone, 1, 1, TENANT);
        uint32_t vkey = world_register(w, &gone, 0, 64, ALL);
        bad = world_rw(SCHEMA_OP_READ, 2, 0, 8, vkey, 0);
        struct schema_cqe e;
        world_post(&k, &bad);
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        /* Behind the lane's back: it believes the key, the fabric does not. */
        world_take_away(w, &gone);
        break_under(&k, &bad, &good, &last);
        ck_assert_uint_eq(w->node[0].over, 1);
        world_detach(w, &k);
        world_detach(w, &gone);
        world_detach(w, &owner);
        ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
        ck_assert_uint_eq(world_stats(w, 0).vqps, 0);
        world_close(w);
    }
}
END_TEST

/* Of one session: as much as a turn has, or one request. */
START_TEST(a_worker_that_asks_for_much_gets_it_in_many_passes)
{
    enum { BYTES = 48 * 1024, REQUESTS = 16, PASSES = 2000 };
    struct world_worker owner, k;
    struct schema_cqe e;
    (void)pair(&owner, &k);
    uint32_t vkey = world_register(w, &owner, 0, WORLD_ARENA, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, BYTES, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50)); /* the key is known now */
    for (int i = 0; i < REQUESTS; i++)
        world_post(&k, &d);
    lane_doorbell(w->node[0].lane, 0);
    for (int i = 0; i < PASSES; i++) {
        uint64_t posted = world_stats(w, 0).posted;
        world_run(w, 1);
        posted = world_stats(w, 0).posted - posted;
        ck_assert_uint_le(posted * BYTES, 256 * 1024);
    }
    for (int i = 0; i < REQUESTS; i++) {
        ck_assert(world_poll(w, &k, &e, 1));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_tenants_quota_bounds_all_its_sessions_and_comes_back)
{
    struct world_worker one, two;
    struct schema_cqe e;
    struct schema_reply reply;
    world_open(w);
    struct lane_quota *quota = &w->node[0].quota[TENANT % WORLD_TENANTS];
    quota->max_vqps = 1;
    quota->max_mrs = 1;
    world_attach(w, &one, 0, 0, TENANT);
    world_attach(w, &two, 0, 1, TENANT);
    struct schema_sq_desc reg = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.length = 64, .vaddr = 0x10000, .access = SCHEMA_RECORD_READ}};
    ck_assert_int_eq(world_ask(w, &one, reg, &reply), 0);
    struct schema_reply refused;
    ck_assert_int_eq(world_ask(w, &two, reg, &refused), -EDQUOT);
    ck_assert_uint_eq(refused.reason, SCHEMA_REASON_QUOTA_MRS);
    ck_assert_uint_eq(refused.value[0], 1);
    ck_assert_int_eq(world_connect(w, &one, 0, 1), 0);
    ck_assert_int_eq(world_connect(w, &two, 0, 1), 0); /* a bind has no answer: its posts do */
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 7, 0, 8, 1, 0);
    world_post(&two, &d);
    ck_assert(world_poll(w, &two, &e, 50));
    ck_assert_uint_eq(e.wr_id, 7);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_QUOTA_VQPS);
    ck_assert_uint_eq(quota->refused[LANE_QUOTA_MRS], 1);
    ck_assert_uint_eq(quota->refused[LANE_QUOTA_VQPS], 1);
    world_detach(w, &one);
    ck_assert_uint_eq(quota->vqps, 0);
    ck_assert_uint_eq(quota->mrs, 0);
    ck_assert_int_eq(world_ask(w, &two, reg, &reply), 0);
    ck_assert_int_eq(world_connect(w, &two, 0, 1), 0);
    d.post.vkey = (uint32_t)reply.value[0] + 1;
    world_post(&two, &d);
    ck_assert(world_poll(w, &two, &e, 200));
    ck_assert_uint_ne(e.vendor_err, SCHEMA_REASON_QUOTA_VQPS);
    world_detach(w, &two);
    world_close(w);
}
END_TEST

START_TEST(a_request_that_is_longer_than_the_device_can_never_reaches_a_queue_pair)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    world_cut_bytes = 8192;
    struct schema_sq_desc d = pair(&owner, &k);
    world_cut_bytes = 0;
    uint64_t posted = world_stats(w, 0).posted;
    w->node[0].fab->caps.max_msg_size = 8192; /* and it would go in pieces */
    d.post.length = 8193;
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_LOCAL_RANGE);
    ck_assert_uint_eq(world_stats(w, 0).posted, posted);
    world_detach(w, &k);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_guess_too_many_behind_a_request_that_is_out_ends_the_session_whole)                      \
    T(a_queue_pair_that_breaks_under_what_has_ended_posts_nothing_of_it_again)                     \
    T(a_request_that_is_longer_than_the_device_can_never_reaches_a_queue_pair)                     \
    T(a_worker_that_asks_for_much_gets_it_in_many_passes)                                          \
    T(a_tenants_quota_bounds_all_its_sessions_and_comes_back)
KEDGE_CHECK_MAIN("agent.lane.session", TESTS)
