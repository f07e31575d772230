/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "../check_main.h"
#include "base/spsc.h"

START_TEST(elements_come_out_in_the_order_in_which_they_went_in)
{
    struct base_spsc *ring;
    uint64_t out;
    ck_assert_int_eq(base_spsc_new(4, sizeof out, &ring), 0);
    for (uint64_t i = 0; i < 1000; i += 3) { /* so that the indices wrap at every offset */
        for (uint64_t k = 0; k < 3; k++)
            ck_assert_int_eq(base_spsc_push(ring, &(uint64_t){i + k}), 0);
        ck_assert_uint_eq(base_spsc_count(ring), 3);
        for (uint64_t k = 0; k < 3; k++) {
            ck_assert_int_eq(base_spsc_pop(ring, &out), 0);
            ck_assert_uint_eq(out, i + k);
        }
    }
    base_spsc_free(ring);
}
END_TEST

START_TEST(a_full_ring_and_an_empty_one_say_so_and_stay_whole)
{
    struct base_spsc *ring;
    char out = 'x';
    ck_assert_int_eq(base_spsc_new(3, 1, &ring), 0);
    ck_assert_int_eq(base_spsc_pop(ring, &out), -EAGAIN);
    for (char c = 'a'; c < 'e'; c++)
        ck_assert_int_eq(base_spsc_push(ring, &c), 0);
    ck_assert_int_eq(base_spsc_push(ring, "e"), -EAGAIN);
    ck_assert_uint_eq(base_spsc_count(ring), 4);
    for (char c = 'a'; c < 'e'; c++) {
        ck_assert_int_eq(base_spsc_pop(ring, &out), 0);
        ck_assert_int_eq(out, c);
    }
    ck_assert_int_eq(base_spsc_pop(ring, &out), -EAGAIN);
    base_spsc_free(ring);
    base_spsc_free(NULL);
}
END_TEST

START_TEST(shapes_out_of_range_are_refused)
{
    struct base_spsc *ring;
    ck_assert_int_eq(base_spsc_new(0, 8, &ring), -EINVAL);
    ck_assert_int_eq(base_spsc_new((1u << 24) + 1, 8, &ring), -EINVAL);
    ck_assert_int_eq(base_spsc_new(8, 0, &ring), -EINVAL);
    ck_assert_int_eq(base_spsc_new(8, 4097, &ring), -EINVAL);
}
END_TEST

enum { WORDS = 5, ROUNDS = 500000 };

struct element {
    uint64_t word[WORDS]; /* all the same: a torn one shows */
};

static void *produce(void *arg)
{
    struct base_spsc *ring = arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct element e = {{i, i, i, i, i}};
        while (base_spsc_push(ring, &e) != 0)
            sched_yield();
    }
    return NULL;
}

START_TEST(two_threads_lose_tear_and_reorder_nothing)
{
    struct base_spsc *ring;
    pthread_t producer;
    ck_assert_int_eq(base_spsc_new(64, sizeof(struct element), &ring), 0);
    ck_assert_int_eq(pthread_create(&producer, NULL, produce, ring), 0);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct element e;
        while (base_spsc_pop(ring, &e) != 0)
            sched_yield();
        for (int w = 0; w < WORDS; w++)
            if (e.word[w] != i)
                ck_abort_msg("word %d of element %lu is %lu", w, (unsigned long)i,
                             (unsigned long)e.word[w]);
        if (base_spsc_count(ring) > 64)
            ck_abort_msg("more elements than there is room");
    }
    pthread_join(producer, NULL);
    ck_assert_uint_eq(base_spsc_count(ring), 0);
    base_spsc_free(ring);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(elements_come_out_in_the_order_in_which_they_went_in)                                        \
    T(a_full_ring_and_an_empty_one_say_so_and_stay_whole)                                          \
    T(shapes_out_of_range_are_refused)                                                             \
    T(two_threads_lose_tear_and_reorder_nothing)
KEDGE_CHECK_MAIN("base spsc", TESTS)
