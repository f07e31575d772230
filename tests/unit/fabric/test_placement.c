/* SPDX-License-Identifier: Apache-2.0 */
/* Where lanes run. */
#include <errno.h>

#include "../check_main.h"
#include "fabric/placement.h"

static cpu_set_t cpus(const char *text)
{
    cpu_set_t set;
    ck_assert_int_eq(fab_parse_cpus(text, &set), 0);
    return set;
}

static struct fab_placement place(const char *allowed, const char *beside, uint64_t cpu,
                                  uint32_t lane, uint32_t vectors)
{
    const cpu_set_t a = cpus(allowed), b = cpus(beside);
    return fab_place(&a, &b, cpu, lane, vectors);
}

static bool runs_on(const struct fab_placement *p, const char *text)
{
    const cpu_set_t set = cpus(text);
    return p->bound && CPU_EQUAL(&p->cpus, &set);
}

START_TEST(lists_of_cpus_are_read_as_the_kernel_writes_them)
{
    static const char *const wrong[] = {"a", "1-", "3-1", "1,,2", "99999", "1 2", "-1"};
    cpu_set_t set = cpus("0-2,8,10-11\n");
    ck_assert_int_eq(CPU_COUNT(&set), 6);
    ck_assert(CPU_ISSET(2, &set) && CPU_ISSET(8, &set) && CPU_ISSET(11, &set));
    ck_assert(!CPU_ISSET(3, &set) && !CPU_ISSET(9, &set));
    set = cpus("\n"); /* of a node with memory alone */
    ck_assert_int_eq(CPU_COUNT(&set), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(fab_parse_cpus(wrong[i], &set) == -EINVAL, "%s", wrong[i]);
}
END_TEST

START_TEST(a_lane_runs_beside_its_device)
{
    struct fab_placement p = place("0-15", "8-15", FAB_ANY_CPU, 0, 1);
    ck_assert(runs_on(&p, "8-15") && p.beside);
    p = place("0-3,10-11", "8-15", FAB_ANY_CPU, 0, 1); /* as far as it may */
    ck_assert(runs_on(&p, "10-11") && p.beside);
}
END_TEST

START_TEST(a_lane_is_not_bound_where_that_changes_nothing_or_cannot_be)
{
    struct fab_placement p = place("0-3", "0-3", FAB_ANY_CPU, 0, 1); /* one node */
    ck_assert(!p.bound && p.beside);
    p = place("0-3", "", FAB_ANY_CPU, 0, 1); /* nobody knows where the device is */
    ck_assert(!p.bound && !p.beside);
    p = place("0-3", "8-15", FAB_ANY_CPU, 0, 1); /* it may run on no CPU there */
    ck_assert(!p.bound && !p.beside);
}
END_TEST

START_TEST(what_the_operator_says_goes_before)
{
    struct fab_placement p = place("0-15", "8-15", 3, 0, 1);
    ck_assert(runs_on(&p, "3") && !p.beside);
    p = place("0-15", "8-15", 9, 0, 1);
    ck_assert(runs_on(&p, "9") && p.beside);
}
END_TEST

START_TEST(lanes_of_one_device_take_its_completion_vectors_in_turns)
{
    for (uint32_t lane = 0; lane < 10; lane++)
        ck_assert_uint_eq(place("0", "0", FAB_ANY_CPU, lane, 4).comp_vector, lane % 4);
    ck_assert_uint_eq(place("0", "0", FAB_ANY_CPU, 3, 0).comp_vector, 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(lists_of_cpus_are_read_as_the_kernel_writes_them)                                            \
    T(a_lane_runs_beside_its_device)                                                               \
    T(a_lane_is_not_bound_where_that_changes_nothing_or_cannot_be)                                 \
    T(what_the_operator_says_goes_before)                                                          \
    T(lanes_of_one_device_take_its_completion_vectors_in_turns)

KEDGE_CHECK_MAIN("fabric.placement", TESTS)
