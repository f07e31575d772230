/* SPDX-License-Identifier: Apache-2.0 */
/* What workers give back: several regions in a request, several requests at a time. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "schema/record.h"
#include "world.h"
#include "world_fenced.h"

enum { TENANT = 7 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static struct world world, *const w = &world;

static struct schema_sq_desc giving_back(uint32_t tag, const uint32_t *vkeys, uint32_t n)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_DEREG_MR,
                               .slots = 1,
                               .dereg_mr = {.tag = tag, .vkey = vkeys[0], .more = n - 1}};
    memcpy(d.dereg_mr.vkeys, vkeys + 1, (n - 1) * sizeof *vkeys);
    return d;
}

static bool is_answered(const struct world_worker *k, uint32_t tag)
{
    return atomic_load(&k->r->reply[tag % SCHEMA_REPLIES].tag) == tag;
}

static int status_of(const struct world_worker *k, uint32_t tag)
{
    return k->r->reply[tag % SCHEMA_REPLIES].status;
}

static void open_with_regions(struct world_worker *owner, uint32_t *vkeys, uint32_t n)
{
    world_open(w);
    world_max_mrs = 16;
    world_attach(w, owner, 1, 0, TENANT);
    world_max_mrs = 0;
    for (uint32_t i = 0; i < n; i++) {
        vkeys[i] = world_register(w, owner, 64 * i, 64, ALL);
        ck_assert_uint_ne(vkeys[i], 0);
    }
}

START_TEST(a_list_of_regions_is_given_back_in_the_time_of_one_lease_and_with_one_fence)
{
    enum { N = 6 };
    struct world_worker owner;
    uint32_t vkeys[N];
    open_with_regions(&owner, vkeys, N);
    const uint64_t before = w->now_ns, lease = w->node[1].config.mr_lease_ns;
    ck_assert_int_eq(world_ask(w, &owner, giving_back(0, vkeys, N), NULL), 0);
    ck_assert_uint_ge(w->now_ns - before, lease);
    ck_assert_uint_lt(w->now_ns - before, 2 * lease);
    ck_assert_uint_eq(w->node[1].fences, 1);
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    ck_assert_uint_eq(w->node[1].quota[TENANT % WORLD_TENANTS].mrs, 0);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(withdrawals_hold_nothing_up_and_are_answered_each_when_its_own_lease_is_over)
{
    struct world_worker owner;
    uint32_t vkeys[4];
    open_with_regions(&owner, vkeys, 4);
    const uint64_t lease = w->node[1].config.mr_lease_ns;
    const uint32_t first = owner.tag + 1, second = owner.tag + 2;
    owner.tag += 2;
    struct schema_sq_desc d = giving_back(first, vkeys, 2);
    world_post(&owner, &d);
    world_run(w, 5);
    ck_assert_int_eq(world_connect(w, &owner, 0, 0), 0); /* taken and answered meanwhile */
    world_sleep(w, lease / 2);
    d = giving_back(second, vkeys + 2, 2);
    world_post(&owner, &d);
    world_run(w, 5);
    ck_assert(!is_answered(&owner, first));
    world_sleep(w, lease / 2 + lease / 10);
    world_run(w, 10);
    ck_assert(is_answered(&owner, first));
    ck_assert_int_eq(status_of(&owner, first), 0);
    ck_assert(!is_answered(&owner, second));
    world_sleep(w, lease);
    world_run(w, 10);
    ck_assert(is_answered(&owner, second));
    ck_assert_int_eq(status_of(&owner, second), 0);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_key_that_is_none_or_named_twice_is_said_and_the_others_are_gone_all_the_same)
{
    struct world_worker owner;
    uint32_t vkeys[4];
    open_with_regions(&owner, vkeys, 4);
    const uint32_t odd[5] = {0, vkeys[0], vkeys[0] ^ 1, vkeys[1], vkeys[1]};
    ck_assert_int_eq(world_ask(w, &owner, giving_back(0, odd, 5), NULL), -ENOENT);
    ck_assert_uint_eq(world_stats(w, 1).mrs, 2);
    const uint32_t place = owner.tag + 1;
    struct schema_sq_desc d = giving_back(place, vkeys + 2, 1),
                          again = giving_back(place + 1, vkeys + 2, 1);
    world_post(&owner, &d);
    world_post(&owner, &again);
    lane_doorbell(w->node[1].lane, 0);
    world_run(w, 5);
    ck_assert(is_answered(&owner, place + 1)); /* it is being withdrawn already */
    ck_assert_int_eq(status_of(&owner, place + 1), -ENOENT);
    ck_assert(!is_answered(&owner, place));
    world_detach(w, &owner); /* while one is under way */
    world_close(w);
}
END_TEST

START_TEST(a_place_that_is_in_use_or_a_list_that_is_too_long_ends_the_session_and_no_other)
{
    struct world_worker owner, beside;
    uint32_t vkeys[4];
    for (int kind = 0; kind < 2; kind++) {
        open_with_regions(&owner, vkeys, 4);
        world_attach(w, &beside, 1, 1, TENANT);
        uint32_t other = world_register(w, &beside, 0, 64, ALL);
        struct schema_sq_desc d = giving_back(7, vkeys, 2);
        d.dereg_mr.more = kind == 0 ? 1 : SCHEMA_DEREG_MORE + 1;
        world_post(&owner, &d);
        world_run(w, 5);
        if (kind == 0) {
            ck_assert_uint_eq(atomic_load(&owner.r->ended), 0);
            d = giving_back(7 + SCHEMA_REPLIES, vkeys + 2, 2);
            world_post(&owner, &d);
            world_run(w, 5);
        }
        ck_assert_uint_eq(atomic_load(&owner.r->ended), SCHEMA_REASON_DESCRIPTOR);
        ck_assert_int_eq(world_ask(w, &beside, giving_back(0, &other, 1), NULL), 0);
        world_detach(w, &beside);
        world_detach(w, &owner);
        world_close(w);
    }
}
END_TEST

START_TEST(regions_of_all_kinds_go_together_and_registrations_of_their_own_a_few_at_a_time)
{
    enum { N = 10 };
    static const uint32_t kinds[N] = {
        [3] = SCHEMA_REG_LEASE_ONLY, [5] = SCHEMA_REG_FENCED, [8] = SCHEMA_REG_LEASE_ONLY};
    struct world_worker owner;
    struct world_node *node = &w->node[1];
    uint32_t vkeys[N];
    world_own_regions = true;
    open_with_regions(&owner, vkeys, 0);
    for (uint32_t i = 0; i < N; i++) {
        vkeys[i] = world_register(w, &owner, 64 * i, 64, ALL | kinds[i]);
        ck_assert_uint_ne(vkeys[i], 0);
    }
    const uint64_t lease = node->config.mr_lease_ns;
    const uint32_t tag = ++owner.tag;
    struct schema_sq_desc d = giving_back(tag, vkeys, N);
    world_post(&owner, &d);
    lane_doorbell(node->lane, owner.id);
    world_run(w, 5);
    ck_assert_uint_eq(node->let_go, 1); /* the fenced one's, which waits for no lease */
    ck_assert_uint_eq(world_stats(w, 1).mrs, 0);
    node->hold = true;
    world_sleep(w, lease + lease / 10);
    world_run(w, 5);
    ck_assert_uint_eq(node->held, 5);
    ck_assert(!is_answered(&owner, tag));
    world_fenced_go_on(w, node);
    world_run(w, 20);
    ck_assert(is_answered(&owner, tag));
    ck_assert_int_eq(status_of(&owner, tag), 0);
    ck_assert_uint_eq(node->let_go, N - 2);
    ck_assert_uint_eq(node->fences, 1);
    ck_assert_uint_eq(world_fenced_count(node), 0);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

START_TEST(a_worker_that_sleeps_is_woken_by_a_withdrawals_end_and_by_a_revocation)
{
    struct world_worker owner;
    uint32_t vkeys[2];
    open_with_regions(&owner, vkeys, 2);
    const struct schema_sq_desc d = giving_back(7, vkeys, 1);
    world_post(&owner, &d);
    world_run(w, 5);
    const uint32_t before = atomic_load(&owner.r->wake);
    atomic_store(&owner.w->want_wake, 1);
    world_run(w, 5);
    ck_assert_uint_eq(atomic_load(&owner.r->wake), before);
    world_sleep(w, w->node[1].config.mr_lease_ns * 2);
    world_run(w, 10);
    ck_assert(is_answered(&owner, 7));
    ck_assert_uint_eq(atomic_load(&owner.r->wake), before + 1);
    const struct lane_command c = {
        .kind = LANE_COMMAND_REVOKE, .session = owner.id, .revoke = {.tag = 1, .number = 2}};
    ck_assert_int_eq(lane_command(w->node[1].lane, &c), 0);
    world_run(w, 3);
    ck_assert_uint_eq(atomic_load(&owner.r->revoked), 1);
    ck_assert_uint_eq(atomic_load(&owner.r->wake), before + 2);
    atomic_store(&owner.w->want_wake, 0);
    world_detach(w, &owner);
    world_close(w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_list_of_regions_is_given_back_in_the_time_of_one_lease_and_with_one_fence)                 \
    T(withdrawals_hold_nothing_up_and_are_answered_each_when_its_own_lease_is_over)                \
    T(regions_of_all_kinds_go_together_and_registrations_of_their_own_a_few_at_a_time)             \
    T(a_key_that_is_none_or_named_twice_is_said_and_the_others_are_gone_all_the_same)              \
    T(a_worker_that_sleeps_is_woken_by_a_withdrawals_end_and_by_a_revocation)                      \
    T(a_place_that_is_in_use_or_a_list_that_is_too_long_ends_the_session_and_no_other)

KEDGE_CHECK_MAIN("agent.lane.withdraw", TESTS)
