/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../check_main.h"
#include "incarnation.h"
#include "life.h"

static char dir[64], path[96];
static struct base_errbuf err;

enum { LIFE = 1 + INCARNATIONS_AHEAD /* that are kept for one */ };

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-inc-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/incarnation", dir);
}

static void remove_dir(void)
{
    unlink(path);
    rmdir(dir);
}

static void put(const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static uint32_t next(uint64_t wall_s, uint32_t at_least, int expect_lost)
{
    uint32_t n = 0;
    bool lost = !expect_lost; /* it is always said */
    ck_assert_int_eq(agentd_incarnation_next(dir, wall_s, at_least, &n, &lost, &err), 0);
    ck_assert_int_eq(lost, expect_lost);
    return n;
}

START_TEST(the_first_is_the_wall_clocks)
{
    make_dir();
    ck_assert_uint_eq(next(1000, 0, 0), 1000);
    remove_dir();
}
END_TEST

START_TEST(each_start_has_a_larger_one_even_when_the_clock_runs_back)
{
    make_dir();
    ck_assert_uint_eq(next(1000, 0, 0), 1000);
    ck_assert_uint_eq(next(1000, 0, 0), 1000 + LIFE);
    ck_assert_uint_eq(next(5, 0, 0), 1000 + 2 * LIFE);
    ck_assert_uint_eq(next(2000, 0, 0), 2000);
    remove_dir();
}
END_TEST

/* Whether they were taken or not: who was killed cannot say. */
START_TEST(what_was_kept_for_a_life_is_no_later_ones)
{
    make_dir();
    ck_assert_uint_eq(next(1000, 0, 0), 1000);
    ck_assert_int_eq(agentd_incarnation_keep(dir, 1300), 0);
    ck_assert_uint_eq(next(1000, 0, 0), 1301);
    remove_dir();
    ck_assert_int_eq(agentd_incarnation_keep(dir, 1300), -ENOENT);
}
END_TEST

START_TEST(what_a_metaserver_knows_is_passed)
{
    make_dir();
    ck_assert_uint_eq(next(1000, 7001, 0), 7001);
    ck_assert_uint_eq(next(1000, 0, 0), 7001 + LIFE);
    remove_dir();
}
END_TEST

START_TEST(garbage_and_torn_files_are_told_and_replaced)
{
    static const char *const bad[] = {"", "12", "x\n", "-1\n", "99999999999\n", "0\n", "1\n2\n"};
    make_dir();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(bad[i]);
        ck_assert_uint_eq(next(500, 0, 1), 500);
        ck_assert_uint_eq(next(500, 0, 0), 500 + LIFE);
    }
    remove_dir();
}
END_TEST

START_TEST(a_missing_directory_is_a_sentence_with_the_way_out)
{
    uint32_t n;
    bool lost;
    ck_assert_int_eq(agentd_incarnation_next("/nowhere/at/all", 1, 0, &n, &lost, &err), -ENOENT);
    ck_assert(strstr(err.text, "/nowhere/at/all") != NULL);
    ck_assert(strstr(err.text, "set state_dir") != NULL);
}
END_TEST

START_TEST(the_last_one_is_refused_instead_of_beginning_again)
{
    uint32_t n;
    bool lost;
    make_dir();
    put("4294967294\n");
    ck_assert_int_eq(agentd_incarnation_next(dir, 1, 0, &n, &lost, &err), -EOVERFLOW);
    remove_dir();
}
END_TEST

START_TEST(one_agent_at_a_time_has_the_directory)
{
    int first, second;
    make_dir();
    ck_assert_int_eq(agentd_state_lock(dir, 0, &first, &err), 0);
    ck_assert_int_eq(agentd_state_lock(dir, 0, &second, &err), -EBUSY);
    ck_assert(strstr(err.text, "in use by another agent: stop that one") != NULL);
    ck_assert_uint_eq(next(1000, 0, 0), 1000); /* its own */
    close(first);
    ck_assert_int_eq(agentd_state_lock(dir, 0, &second, &err), 0);
    close(second);
    remove_dir();
    ck_assert_int_eq(agentd_state_lock(dir, 0, &first, &err), -ENOENT);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_first_is_the_wall_clocks)                                                                \
    T(each_start_has_a_larger_one_even_when_the_clock_runs_back)                                   \
    T(what_was_kept_for_a_life_is_no_later_ones)                                                   \
    T(what_a_metaserver_knows_is_passed)                                                           \
    T(garbage_and_torn_files_are_told_and_replaced)                                                \
    T(a_missing_directory_is_a_sentence_with_the_way_out)                                          \
    T(the_last_one_is_refused_instead_of_beginning_again)                                          \
    T(one_agent_at_a_time_has_the_directory)

KEDGE_CHECK_MAIN("agent.daemon.incarnation", TESTS)
