/* SPDX-License-Identifier: Apache-2.0 */
/* MR leases, from both sides: for how long a record is believed, and when memory is free. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "fabric/provider.h"
#include "world.h"

enum { TENANT = 7 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;

START_TEST(a_withdrawn_key_is_refused_and_its_owner_waits_for_the_whole_lease)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);

    uint64_t before = w->now_ns;
    struct schema_sq_desc withdraw = {.op = SCHEMA_OP_DEREG_MR, .dereg_mr = {.vkey = vkey}};
    ck_assert_int_eq(world_ask(w, &owner, withdraw, NULL), 0);
    ck_assert_uint_ge(w->now_ns - before, w->node[1].config.mr_lease_ns);
    /* Long before, the initiator had to ask again, and found nothing. */
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(the_wait_counts_from_a_clock_that_is_read_after_the_withdrawal)
{
    struct world_worker owner, k;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const uint64_t lease = w->node[1].config.mr_lease_ns;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_DEREG_MR, .slots = 1, .dereg_mr = {.tag = ++owner.tag, .vkey = vkey}};
    world_post(&owner, &d);
    lane_doorbell(w->node[1].lane, 0);
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    world_sleep(w, 2 * lease); /* the lane stood still: a peer may have READ the record just before
                                  it went, at the end of that */
    ck_assert_uint_ne(atomic_load(&owner.r->reply[owner.tag % SCHEMA_REPLIES].tag), owner.tag);
    world_sleep(w, lease - 10000);
    ck_assert_uint_ne(atomic_load(&owner.r->reply[owner.tag % SCHEMA_REPLIES].tag), owner.tag);
    world_sleep(w, lease / 100);
    world_run(w, 10);
    ck_assert_uint_eq(atomic_load(&owner.r->reply[owner.tag % SCHEMA_REPLIES].tag), owner.tag);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(a_lease_that_is_over_is_renewed_by_a_read_before_the_next_post)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    for (uint64_t reads = 1; reads <= 3; reads++) {
        world_post(&k, &d);
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(world_stats(w, 0).mr_reads, reads);
        world_sleep(w, w->node[0].config.mr_lease_ns);
    }
    world_unpair(w, &owner, &k);
}
END_TEST

static const struct fab_ops *device_ops;
static bool device_refuses, device_is_silent; /* completions do not come */
static uint64_t device_pauses_ns;             /* between the lane's clock and the doorbell */
static struct fab_qp *device_lost;            /* what is posted there is never heard of again */
static struct fab_wr *device_kept;            /* what was lost last */

static int post_or_refuse(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    *bad = wr;
    if (qp == device_lost) {
        device_kept = wr;
        return 0;
    }
    for (struct fab_wr *i = wr; i != NULL; i = i->next) {
        if (i->key.not_after_ns != 0 && w->now_ns + device_pauses_ns > i->key.not_after_ns)
            return -ETIME;
        i->key.not_after_ns = 0; /* soft would keep it, by a clock that is not the test's */
    }
    return device_refuses ? -ENOMEM : device_ops->post_send(qp, wr, bad);
}

static int poll_or_nothing(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    return device_is_silent && cq == w->node[0].cq ? 0 : device_ops->poll(cq, n, wc);
}

/* Node 0's device does so from now on. */
static void get_in_its_way(void)
{
    static struct fab_ops ops;
    device_ops = w->node[0].fab->ops;
    ops = *device_ops;
    ops.post_send = post_or_refuse;
    ops.poll = poll_or_nothing;
    w->node[0].fab->ops = &ops;
}

/* One READ at a time for so long, each of which completes in the pass that takes it. */
static void read_without_a_pause(struct world_worker *k, const struct schema_sq_desc *d,
                                 uint64_t ns)
{
    const uint64_t end_ns = w->now_ns + ns;
    struct schema_cqe e;
    while (w->now_ns < end_ns) {
        world_post(k, d);
        ck_assert(world_poll(w, k, &e, 1));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        w->now_ns += 50000;
    }
}

START_TEST(a_busy_worker_never_waits_for_a_record_to_be_read_again)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const uint64_t node_lease_ns = w->node[0].config.node_lease_ns;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    const struct lane_stats before = world_stats(w, 0);
    read_without_a_pause(&k, &d, 2 * node_lease_ns);
    const struct lane_stats after = world_stats(w, 0);
    ck_assert_uint_ge(after.mr_reads - before.mr_reads, 2 * node_lease_ns / 1000000);
    ck_assert_uint_eq(after.mr_renewals - before.mr_renewals, after.mr_reads - before.mr_reads);
    ck_assert_uint_ge(after.endpoint_reads - before.endpoint_reads, 2);

    get_in_its_way(); /* nor while no metaserver answers */
    device_lost = w->rc ? w->node[0].metaserver_qp : w->node[0].res.system_dci;
    read_without_a_pause(&k, &d, 2 * node_lease_ns);
    ck_assert_uint_gt(world_stats(w, 0).endpoint_reads, after.endpoint_reads);
    ck_assert_uint_gt(world_stats(w, 0).lookups_failed, 0);
    device_lost = NULL;
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(what_the_device_refused_is_posted_under_a_lease_that_is_looked_at_anew)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    get_in_its_way();
    device_refuses = true;
    world_post(&k, &d);
    ck_assert(!world_poll(w, &k, &e, 5));
    ck_assert_uint_eq(world_stats(w, 0).mr_reads, 1);
    world_sleep(w, w->node[0].config.mr_lease_ns);
    ck_assert_uint_gt(world_stats(w, 0).mr_reads, 1);
    device_refuses = false;
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(what_comes_to_the_doorbell_when_its_lease_is_over_is_posted_under_another)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    world_posts_in_time = true;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_posts_in_time = false;
    const struct lane_config *c = &w->node[0].config;
    const uint64_t usable_ns = c->mr_lease_ns - c->bound_ns - c->slack_ns;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, vkey, 0);
    get_in_its_way();
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    device_pauses_ns = usable_ns / 2; /* not for longer than it is lent */
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    const uint64_t reads = world_stats(w, 0).mr_reads;
    device_pauses_ns = usable_ns + 1;
    world_post(&k, &d);
    ck_assert(!world_poll(w, &k, &e, 5));
    ck_assert_uint_gt(world_stats(w, 0).reposted, 0);
    world_sleep(w, usable_ns); /* what it is lent anew for is too short for such a lane as well */
    ck_assert(!world_poll(w, &k, &e, 5));
    ck_assert_uint_gt(world_stats(w, 0).mr_reads, reads); /* tables are READ whenever it comes */
    device_pauses_ns = 0;
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

/* Passes for a WRITE that goes by another queue pair than the one before it, which is to be seen
 * first (schedule/unseen_writes.h). */
enum { MOVES = 200 };

START_TEST(what_is_out_for_longer_than_any_request_may_take_ends_with_its_queue_pair)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    world_end_overdue = true;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    world_end_overdue = false;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    get_in_its_way();
    device_is_silent = true;
    world_post(&k, &d);
    world_run(w, 5);
    world_sleep(w, w->node[0].config.bound_ns - 40000);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 0);
    world_sleep(w, w->node[0].config.bound_ns / 8);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 1);
    world_post(&k, &d); /* finds no room there */
    world_run(w, 5);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    device_is_silent = false;
    for (int i = 0; i < 2; i++) { /* one was carried out in time, the other goes elsewhere */
        ck_assert(world_poll(w, &k, &e, MOVES));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 1);
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

/* A pair on a device that keeps no deadlines, in the way of which the test is, under a lease that
 * lasts. */
static void pair_without_deadlines(struct world_worker *owner, struct world_worker *k,
                                   struct schema_sq_desc *d)
{
    struct schema_cqe e;
    world_end_overdue = true;
    world_mr_lease_ns[1] = world_mr_lease_ns[2] = 60 * BASE_NS_PER_S;
    *d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, world_pair(w, owner, k, TENANT, ALL), 0);
    world_mr_lease_ns[1] = world_mr_lease_ns[2] = 0;
    world_end_overdue = false;
    get_in_its_way();
    world_post(k, d);
    ck_assert(world_poll(w, k, &e, 50));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
}

/* The pass takes it. When that was. */
static uint64_t post_now(struct world_worker *k, const struct schema_sq_desc *d)
{
    const uint64_t posted = world_stats(w, 0).posted;
    world_post(k, d);
    lane_doorbell(w->node[0].lane, k->id);
    world_run(w, 1);
    ck_assert_uint_eq(world_stats(w, 0).posted, posted + 1);
    return w->now_ns;
}

/* The device says what it did, and what was broken is repaired: the next is carried out. */
static void hear_of_it(struct world_worker *k, const struct schema_sq_desc *d)
{
    struct schema_cqe e;
    device_is_silent = false;
    for (int i = 0; i < 2; i++) {
        ck_assert(world_poll(w, k, &e, MOVES));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        if (i == 0)
            world_post(k, d);
    }
}

START_TEST(what_stays_out_ends_soon_before_bound_is_over_whenever_it_was_posted)
{
    struct world_worker owner, k;
    struct schema_sq_desc d;
    pair_without_deadlines(&owner, &k, &d);
    const uint64_t bound_ns = w->node[0].config.bound_ns;
    for (unsigned i = 0; i < 16; i++) {
        world_run(w, i);                              /* further into a period */
        w->now_ns += i % 2 * 10 * bound_ns + i * 300; /* and without a look for long */
        device_is_silent = true;
        const uint64_t posted_ns = post_now(&k, &d);
        while (world_stats(w, 0).qp_overdue == i) {
            world_run(w, 1);
            ck_assert_uint_le(w->now_ns, posted_ns + bound_ns);
        }
        ck_assert_uint_ge(w->now_ns, posted_ns + bound_ns * 28 / 32);
        hear_of_it(&k, &d);
    }
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

/* Has an endpoint that the lane does not know looked up: a READ that the device loses. */
static void ask_in_vain(struct world_worker *k)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT,
                               .slots = 1,
                               .connect = {.tag = ++k->tag, .pool = w->node[2].config.pool}};
    memcpy(d.connect.gid, w->node[2].fab->caps.gid, sizeof d.connect.gid);
    device_lost = w->rc ? w->node[0].metaserver_qp : w->node[0].res.system_dci;
    world_post(k, &d);
    lane_doorbell(w->node[0].lane, k->id);
    world_run(w, 1);
    ck_assert_ptr_nonnull(device_kept);
}

START_TEST(what_stays_out_ends_too_in_a_lane_that_has_completions_in_every_pass)
{
    struct world_worker owner, other, k;
    struct schema_sq_desc d;
    struct schema_cqe e;
    struct fab_wr *bad;
    pair_without_deadlines(&owner, &k, &d);
    const uint64_t bound_ns = w->node[0].config.bound_ns;
    world_attach(w, &other, 0, 1, TENANT);
    for (int i = 0; w->hybrid && i < 1000; i++) { /* until it has the way that it keeps */
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, MOVES));
    }
    ask_in_vain(&other);
    const uint64_t posted_ns = w->now_ns;
    while (world_stats(w, 0).qp_overdue == 0) {
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 1));
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_le(w->now_ns, posted_ns + bound_ns);
    }
    ck_assert_uint_ge(w->now_ns, posted_ns + bound_ns * 28 / 32);
    ck_assert_int_eq(device_ops->post_send(device_lost, device_kept, &bad), 0); /* is flushed */
    device_lost = NULL;
    world_run(w, 50);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 1);
    w->node[0].fab->ops = device_ops;
    world_detach(w, &other);
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(what_was_carried_out_while_the_lane_stood_still_is_not_taken_for_out)
{
    struct world_worker owner, k;
    struct schema_sq_desc d;
    pair_without_deadlines(&owner, &k, &d);
    device_is_silent = true;
    (void)post_now(&k, &d);
    w->now_ns += 2 * w->node[0].config.bound_ns;
    hear_of_it(&k, &d);
    ck_assert_uint_eq(world_stats(w, 0).qp_overdue, 0);
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(a_lane_that_sleeps_wakes_to_end_what_stays_out)
{
    struct world_worker owner, k;
    struct schema_sq_desc d;
    pair_without_deadlines(&owner, &k, &d);
    struct lane *lane = w->node[0].lane;
    const uint64_t bound_ns = w->node[0].config.bound_ns;
    uint32_t did = 0;
    device_is_silent = true;
    const uint64_t posted_ns = post_now(&k, &d);
    while (world_stats(w, 0).qp_overdue == 0) {
        const uint64_t due_ns = lane_prepare_sleep(lane, w->now_ns);
        ck_assert_uint_le(due_ns, posted_ns + bound_ns);
        w->now_ns = due_ns > w->now_ns ? due_ns : w->now_ns + 1;
        did = lane_step(lane, w->now_ns);
    }
    ck_assert_uint_gt(did, 0); /* so that the control side is told */
    ck_assert_uint_ge(w->now_ns, posted_ns + bound_ns * 28 / 32);
    const uint64_t given_up_ns = lane_prepare_sleep(lane, w->now_ns);
    ck_assert_uint_eq(given_up_ns, w->now_ns + bound_ns / 8); /* it looks what is back by then */
    hear_of_it(&k, &d);
    world_sleep(w, bound_ns / 8);                                       /* one look, for nothing */
    ck_assert_uint_eq(lane_prepare_sleep(lane, w->now_ns), UINT64_MAX); /* nothing is out */
    w->node[0].fab->ops = device_ops;
    world_unpair(w, &owner, &k);
}
END_TEST

START_TEST(a_record_is_believed_for_its_owners_lease_whatever_ones_own_is)
{
    static const uint64_t mine[] = {4000000, 1000000}, theirs[] = {1000000, 4000000};
    struct world_worker owner, k;
    struct schema_cqe e;
    for (int i = 0; i < 2; i++) {
        world_mr_lease_ns[0] = mine[i];
        world_mr_lease_ns[1] = theirs[i];
        uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
        const uint64_t usable = theirs[i] - w->node[0].config.bound_ns - w->node[0].config.slack_ns;
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        world_sleep(w, usable / 2); /* not yet in its last third */
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(world_stats(w, 0).mr_reads, 1);
        world_sleep(w, usable / 2 + 1);
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        ck_assert_uint_eq(world_stats(w, 0).mr_reads, 2);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        world_unpair(w, &owner, &k);
    }
    world_mr_lease_ns[0] = world_mr_lease_ns[1] = 0;
}
END_TEST

START_TEST(a_region_whose_lease_is_shorter_than_a_request_may_take_is_refused)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    world_open(w);
    world_attach(w, &owner, 1, 0, TENANT);
    world_attach(w, &k, 0, 0, TENANT);
    uint32_t vkey = world_register(w, &owner, 0, 4096, ALL);
    /* As if its device were much faster than this one's. */
    struct schema_mr_record r;
    struct schema_table *t = &w->node[1].mr_table;
    ck_assert_int_eq(
        schema_mr_find(&t->desc,
                       t->slots + (size_t)schema_mr_home(&t->desc, vkey) * SCHEMA_RECORD_BYTES,
                       vkey, &r),
        0);
    r.flags &= 0x3f;
    ck_assert_int_ge(schema_table_put(t, &r), 0);
    ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    world_post(&k, &d);
    ck_assert(world_poll(w, &k, &e, 50));
    ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_LEASE);
    world_unpair(w, &owner, &k);
}
END_TEST

/* Passes until the request has completed, well. */
static unsigned passes_of(struct world_worker *k, const struct schema_sq_desc *d)
{
    struct schema_cqe e;
    unsigned passes = 1;
    world_post(k, d);
    while (!world_poll(w, k, &e, 1))
        ck_assert_uint_lt(passes++, 50);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    return passes;
}

START_TEST(a_lease_in_use_is_renewed_before_it_is_over_and_no_request_waits_for_it)
{
    struct world_worker owner, k;
    struct schema_cqe e;
    uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const struct lane_config *c = &w->node[0].config;
    const uint64_t usable = c->mr_lease_ns - c->bound_ns - c->slack_ns;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0);
    (void)passes_of(&k, &d);
    const unsigned usual = passes_of(&k, &d);
    const uint64_t reads = world_stats(w, 0).mr_reads;
    for (int i = 0; i < 200; i++) {
        world_sleep(w, usable / 20);
        ck_assert_uint_eq(passes_of(&k, &d), usual);
    }
    /* Ten times the usable time, in each of which it is READ again once, after two thirds. */
    ck_assert_uint_ge(world_stats(w, 0).mr_reads - reads, 10);
    ck_assert_uint_le(world_stats(w, 0).mr_reads - reads, 15);

    /* The renewal finds that it is gone: nothing more is posted under what was left of it. */
    struct schema_table *t = &w->node[1].mr_table;
    ck_assert_int_ge(schema_table_remove(t, &(struct schema_mr_record){.vkey = vkey}), 0);
    for (int i = 0; i < 20; i++) {
        world_post(&k, &d);
        ck_assert(world_poll(w, &k, &e, 50));
        if (e.status != IBV_WC_SUCCESS)
            break;
        world_sleep(w, usable / 20);
    }
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_VKEY);
    world_unpair(w, &owner, &k);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_withdrawn_key_is_refused_and_its_owner_waits_for_the_whole_lease)                          \
    T(the_wait_counts_from_a_clock_that_is_read_after_the_withdrawal)                              \
    T(a_lease_that_is_over_is_renewed_by_a_read_before_the_next_post)                              \
    T(a_busy_worker_never_waits_for_a_record_to_be_read_again)                                     \
    T(what_the_device_refused_is_posted_under_a_lease_that_is_looked_at_anew)                      \
    T(what_comes_to_the_doorbell_when_its_lease_is_over_is_posted_under_another)                   \
    T(what_is_out_for_longer_than_any_request_may_take_ends_with_its_queue_pair)                   \
    T(what_stays_out_ends_soon_before_bound_is_over_whenever_it_was_posted)                        \
    T(what_stays_out_ends_too_in_a_lane_that_has_completions_in_every_pass)                        \
    T(what_was_carried_out_while_the_lane_stood_still_is_not_taken_for_out)                        \
    T(a_lane_that_sleeps_wakes_to_end_what_stays_out)                                              \
    T(a_record_is_believed_for_its_owners_lease_whatever_ones_own_is)                              \
    T(a_region_whose_lease_is_shorter_than_a_request_may_take_is_refused)                          \
    T(a_lease_in_use_is_renewed_before_it_is_over_and_no_request_waits_for_it)
KEDGE_CHECK_MAIN("agent.lane.leases", TESTS)
