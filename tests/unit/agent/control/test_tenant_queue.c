/* SPDX-License-Identifier: Apache-2.0 */
#include "control/tenant_queue.h"

#include <string.h>

#include "../../check_main.h"

enum { A = 1, B = 2, MANY = 1000 };

static const struct tenant_queue_bound BOUND = {.of_agent = 2, .of_tenant = 4, .of_tenants = 6};

static struct tenant_queue queue;
static struct tenant_queue_item of_a[MANY], of_b[MANY], of_agent[MANY];

static void begin(void)
{
    memset(&queue, 0, sizeof queue);
    memset(of_a, 0, sizeof of_a);
    memset(of_b, 0, sizeof of_b);
    memset(of_agent, 0, sizeof of_agent);
}

static void join_all(struct tenant_queue_item item[], uint32_t count, uint32_t owner)
{
    for (uint32_t i = 0; i < count; i++)
        agent_tenant_queue_join(&queue, &item[i], owner, false);
}

static uint32_t begin_all(void)
{
    uint32_t n = 0;
    while (agent_tenant_queue_begin(&queue, &BOUND) != NULL)
        n++;
    return n;
}

START_TEST(one_owner_has_no_more_under_way_than_it_may)
{
    begin();
    join_all(of_a, MANY, A);
    ck_assert_uint_eq(begin_all(), 4);
    agent_tenant_queue_end(&queue, A);
    ck_assert(agent_tenant_queue_may_begin(&queue, &BOUND));
    ck_assert_ptr_eq(agent_tenant_queue_begin(&queue, &BOUND),
                     &of_a[4]); /* in the order of coming */
    ck_assert(!agent_tenant_queue_may_begin(&queue, &BOUND));
    ck_assert_ptr_null(agent_tenant_queue_begin(&queue, &BOUND));
    ck_assert_uint_eq(queue.of[A].waiting, MANY - 5);
    ck_assert_uint_eq(queue.waiting, MANY - 5);
}
END_TEST

START_TEST(who_comes_later_is_next_however_many_another_has_waiting)
{
    begin();
    join_all(of_a, MANY, A);
    (void)begin_all();
    join_all(of_b, 1, B);
    ck_assert_ptr_eq(agent_tenant_queue_begin(&queue, &BOUND), &of_b[0]);
}
END_TEST

START_TEST(all_tenants_together_have_a_bound_and_the_agent_one_of_its_own)
{
    begin();
    join_all(of_a, MANY, A);
    join_all(of_b, MANY, B);
    ck_assert_uint_eq(begin_all(), 6);
    ck_assert_uint_eq(queue.of[A].running, 3);
    ck_assert_uint_eq(queue.of[B].running, 3);
    join_all(of_agent, MANY, 0);
    ck_assert_uint_eq(begin_all(), 2);
    agent_tenant_queue_end(&queue, 0);
    ck_assert_ptr_eq(agent_tenant_queue_begin(&queue, &BOUND), &of_agent[2]);
    agent_tenant_queue_end(&queue, A);
    agent_tenant_queue_end(&queue, A);
    ck_assert_uint_eq(begin_all(), 2); /* one each */
    ck_assert_uint_eq(queue.of[B].running, 4);
}
END_TEST

START_TEST(what_has_to_be_done_soon_comes_first_in_the_order_of_coming)
{
    begin();
    join_all(of_a, 2, A);
    agent_tenant_queue_join(&queue, &of_a[2], A, true);
    agent_tenant_queue_join(&queue, &of_a[3], A, true);
    agent_tenant_queue_join(&queue, &of_a[4], A, false);
    agent_tenant_queue_leave(&queue, &of_a[3]);
    agent_tenant_queue_join(&queue, &of_a[5], A, true);
    static const int order[] = {2, 5, 0, 1, 4};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (i == 4)
            agent_tenant_queue_end(&queue, A);
        ck_assert_ptr_eq(agent_tenant_queue_begin(&queue, &BOUND), &of_a[order[i]]);
    }
    ck_assert_uint_eq(queue.waiting, 0);
}
END_TEST

START_TEST(whoever_leaves_leaves_the_order_of_the_others)
{
    begin();
    join_all(of_a, 5, A);
    agent_tenant_queue_leave(&queue, &of_a[0]);
    agent_tenant_queue_leave(&queue, &of_a[2]);
    agent_tenant_queue_leave(&queue, &of_a[4]);
    ck_assert_uint_eq(queue.waiting, 2);
    agent_tenant_queue_join(&queue, &of_a[0], A, false); /* it comes again, as the last one */
    static const int order[] = {1, 3, 0};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        ck_assert_ptr_eq(agent_tenant_queue_begin(&queue, &BOUND), &of_a[order[i]]);
    ck_assert_ptr_null(agent_tenant_queue_begin(&queue, &BOUND));
    ck_assert(!of_a[2].waits);
}
END_TEST

static bool is_not(const void *user, uint32_t owner)
{
    return owner != *(const uint32_t *)user;
}

START_TEST(who_may_not_now_is_passed_over_and_keeps_its_place)
{
    const uint32_t a = A, nobody = TENANT_QUEUE_OWNERS;
    begin();
    join_all(of_a, 2, A);
    join_all(of_b, 2, B);
    ck_assert_ptr_eq(agent_tenant_queue_next(&queue, is_not, &a), &of_b[0]);
    ck_assert_ptr_eq(agent_tenant_queue_next(&queue, is_not, &nobody),
                     &of_a[0]); /* none has had one */
    agent_tenant_queue_take(&queue, &of_a[0]);
    ck_assert_ptr_eq(agent_tenant_queue_next(&queue, is_not, &nobody), &of_b[0]);
    agent_tenant_queue_take(&queue, &of_b[0]);
    agent_tenant_queue_take(&queue, &of_b[1]);
    ck_assert_ptr_eq(agent_tenant_queue_next(&queue, is_not, &nobody), &of_a[1]);
    ck_assert_ptr_null(agent_tenant_queue_next(&queue, is_not, &a));
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_owner_has_no_more_under_way_than_it_may)                                                 \
    T(who_comes_later_is_next_however_many_another_has_waiting)                                    \
    T(all_tenants_together_have_a_bound_and_the_agent_one_of_its_own)                              \
    T(what_has_to_be_done_soon_comes_first_in_the_order_of_coming)                                 \
    T(whoever_leaves_leaves_the_order_of_the_others)                                               \
    T(who_may_not_now_is_passed_over_and_keeps_its_place)

KEDGE_CHECK_MAIN("agent.control.tenant_queue", TESTS)
