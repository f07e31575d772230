/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>

#include "../check_main.h"
#include "base/heap.h"
#include "base/random.h"

enum { MANY = 60, STEPS = 100000 };

static struct base_heap heap;
static struct base_heap_node node[MANY];
static bool in[MANY];

static const struct base_heap_node *find_least(void)
{
    const struct base_heap_node *least = NULL;
    for (int i = 0; i < MANY; i++)
        if (in[i] && (least == NULL || node[i].key < least->key ||
                      (node[i].key == least->key && node[i].order < least->order)))
            least = &node[i];
    return least;
}

START_TEST(the_least_is_first_whoever_comes_and_goes)
{
    struct base_prng random;
    base_prng_seed(&random, 11);
    for (uint64_t step = 0; step < STEPS; step++) {
        const uint64_t i = base_prng_below(&random, MANY);
        if (in[i]) {
            base_heap_take_out(&heap, &node[i]);
        } else {
            node[i].key = base_prng_below(&random, 20); /* many are the same */
            node[i].order = step;
            base_heap_add(&heap, &node[i]);
        }
        in[i] = !in[i];
        ck_assert_ptr_eq(heap.first, find_least());
    }
}
END_TEST

START_TEST(all_come_out_in_order_and_may_go_in_again)
{
    for (int times = 0; times < 2; times++) {
        for (uint64_t i = 0; i < MANY; i++) {
            node[i].key = i * 7 % 10;
            node[i].order = i;
            base_heap_add(&heap, &node[i]);
        }
        for (uint64_t n = 0; n < MANY; n++) {
            struct base_heap_node *first = heap.first;
            ck_assert_ptr_nonnull(first);
            ck_assert_uint_eq(first->key, n / (MANY / 10));
            base_heap_take_out(&heap, first);
            if (heap.first != NULL)
                ck_assert(heap.first->key > first->key || heap.first->order > first->order);
        }
        ck_assert_ptr_null(heap.first);
    }
}
END_TEST

/* Each goes below the one before it: a chain, which a recursion would follow. */
START_TEST(a_million_that_come_in_falling_order_need_no_stack)
{
    enum { MILLION = 1000000 };
    struct base_heap_node *all = calloc(MILLION, sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (uint64_t i = 0; i < MILLION; i++) {
        all[i].key = MILLION - i;
        base_heap_add(&heap, &all[i]);
    }
    for (uint64_t i = MILLION; i > 0; i--) {
        ck_assert_ptr_eq(heap.first, &all[i - 1]);
        base_heap_take_out(&heap, &all[i - 1]);
    }
    free(all);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_least_is_first_whoever_comes_and_goes)                                                   \
    T(all_come_out_in_order_and_may_go_in_again)                                                   \
    T(a_million_that_come_in_falling_order_need_no_stack)
KEDGE_CHECK_MAIN("what comes first of many", TESTS)
