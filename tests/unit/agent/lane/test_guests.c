/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a VQP lets in: a list of its own, in a table that all share. */
#include "message/guests.h"

#include <errno.h>
#include <stdbool.h>

#include "../../check_main.h"
#include "base/random.h"

enum { MOST = 40, LISTS = 5, TENANTS = 30, STEPS = 20000 };

static struct guests g;

START_TEST(who_is_let_in_by_one_is_a_stranger_to_another)
{
    uint32_t list[2] = {0};
    ck_assert_int_eq(lane_guests_init(&g, MOST), 0);
    ck_assert_int_eq(lane_guest_add(&g, &list[0], 7), 0);
    ck_assert_int_eq(lane_guest_add(&g, &list[0], 7), -EALREADY);
    ck_assert_uint_ne(lane_guest_find(&g, list[0], 7), 0);
    ck_assert_uint_eq(lane_guest_find(&g, list[0], 8), 0);
    ck_assert_uint_eq(lane_guest_find(&g, list[1], 7), 0);
    ck_assert_int_eq(lane_guest_remove(&g, &list[1], 7), -ENOENT);
    ck_assert_int_eq(lane_guest_remove(&g, &list[0], 7), 0);
    ck_assert_uint_eq(lane_guest_find(&g, list[0], 7), 0);
    ck_assert_uint_eq(g.used, 0);
    lane_guests_free(&g);
}
END_TEST

START_TEST(neither_a_list_nor_the_table_has_more_than_it_may)
{
    uint32_t list[LISTS] = {0};
    ck_assert_int_eq(lane_guests_init(&g, MOST), 0);
    for (uint32_t t = 1; t <= GUESTS_EACH; t++)
        ck_assert_int_eq(lane_guest_add(&g, &list[0], t), 0);
    ck_assert_int_eq(lane_guest_add(&g, &list[0], GUESTS_EACH + 1), -EDQUOT);
    for (uint32_t n = GUESTS_EACH; n < MOST; n++)
        ck_assert_int_eq(lane_guest_add(&g, &list[n / GUESTS_EACH], n + 1), 0);
    ck_assert_int_eq(lane_guest_add(&g, &list[4], 1), -EDQUOT);
    ck_assert_uint_eq(lane_guests_remove_all(&g, &list[0]), GUESTS_EACH);
    ck_assert_uint_eq(list[0], 0);
    ck_assert_int_eq(lane_guest_add(&g, &list[4], 1), 0);
    lane_guests_free(&g);
}
END_TEST

/* Held against the plainest thing that says the same. */
START_TEST(random_steps_leave_what_a_table_of_booleans_says)
{
    static bool in[LISTS][TENANTS];
    uint32_t list[LISTS] = {0}, each[LISTS] = {0}, all = 0;
    struct base_prng random;
    base_prng_seed(&random, 5);
    ck_assert_int_eq(lane_guests_init(&g, MOST), 0);
    for (int step = 0; step < STEPS; step++) {
        const uint32_t of = base_prng_below(&random, LISTS);
        const uint32_t tenant = base_prng_below(&random, TENANTS);
        bool *is_in = &in[of][tenant];
        ck_assert_int_eq(lane_guest_find(&g, list[of], tenant + 1) != 0, *is_in);
        if (base_prng_below(&random, 5) < 3) {
            const int want = *is_in                                   ? -EALREADY
                             : each[of] == GUESTS_EACH || all == MOST ? -EDQUOT
                                                                      : 0;
            ck_assert_int_eq(lane_guest_add(&g, &list[of], tenant + 1), want);
            each[of] += want == 0;
            all += want == 0;
            *is_in |= want == 0;
        } else {
            ck_assert_int_eq(lane_guest_remove(&g, &list[of], tenant + 1), *is_in ? 0 : -ENOENT);
            each[of] -= *is_in;
            all -= *is_in;
            *is_in = false;
        }
        ck_assert_uint_eq(g.used, all);
    }
    lane_guests_free(&g);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_let_in_by_one_is_a_stranger_to_another)                                               \
    T(neither_a_list_nor_the_table_has_more_than_it_may)                                           \
    T(random_steps_leave_what_a_table_of_booleans_says)
KEDGE_CHECK_MAIN("agent.lane.guests", TESTS)
