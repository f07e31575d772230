/* SPDX-License-Identifier: Apache-2.0 */
/* Incarnations that are taken in a life, on a disk that answers when the test wants: nobody waits
 * for it, and none is taken that it has not kept. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "agent.h"
#include "life.h"
#include "world.h"

enum { FIRST = 1000 };

static struct test_world world;
static struct agent agent;
static struct base_errbuf err;

static void begin_at(uint32_t incarnation)
{
    memset(&agent, 0, sizeof agent);
    test_world_init(&world);
    agent.world = &world.world;
    snprintf(agent.config.state_dir, sizeof agent.config.state_dir, "/state");
    agent_life_begin(&agent, incarnation);
}

static uint32_t take(void)
{
    uint32_t n = 0;
    ck_assert_int_eq(agent_life_next_incarnation(&agent, &n, &err), 0);
    ck_assert_uint_eq(n, agent_life_newest_incarnation(&agent));
    ck_assert_uint_le(n, agent.kept.last);
    return n;
}

static void is_refused(int status, const char *why)
{
    uint32_t n = 77;
    const uint32_t newest = agent_life_newest_incarnation(&agent);
    ck_assert_int_eq(agent_life_next_incarnation(&agent, &n, &err), status);
    ck_assert_msg(strstr(err.text, why) != NULL, "%s", err.text);
    ck_assert_uint_eq(n, 77);
    ck_assert_uint_eq(agent_life_newest_incarnation(&agent), newest);
}

START_TEST(nobody_waits_for_a_disk_that_takes_long)
{
    begin_at(FIRST);
    ck_assert_ptr_null(world.keeping);
    for (uint32_t i = 1; i <= INCARNATIONS_AHEAD; i++)
        ck_assert_uint_eq(take(), FIRST + i);
    ck_assert_uint_eq(world.keeping->incarnations.last, FIRST + 1 + INCARNATIONS_AHEAD);
    ck_assert_str_eq(world.keeping->incarnations.directory, "/state");
}
END_TEST

START_TEST(none_is_taken_that_the_disk_has_not_kept)
{
    begin_at(FIRST);
    for (uint32_t i = 1; i <= INCARNATIONS_AHEAD; i++)
        (void)take();
    is_refused(-EAGAIN, "the disk with /state takes long");
    test_world_end_keeping(&world, 0);
    ck_assert_uint_eq(take(), FIRST + 1 + INCARNATIONS_AHEAD);
    is_refused(-EAGAIN, "the disk with /state takes long"); /* and as many as ever are wanted */
    ck_assert_uint_eq(world.keeping->incarnations.last, FIRST + 1 + 2 * INCARNATIONS_AHEAD);
}
END_TEST

START_TEST(what_a_full_disk_does_not_keep_is_tried_again_when_one_is_wanted)
{
    begin_at(FIRST);
    for (uint32_t i = 1; i <= INCARNATIONS_AHEAD; i++) {
        (void)take();
        test_world_end_keeping(&world, -ENOSPC);
        ck_assert_ptr_null(world.keeping);
    }
    for (int i = 0; i < 3; i++) {
        is_refused(-ENOSPC, "/state: No space left on device (make room");
        test_world_end_keeping(&world, -ENOSPC);
    }
    is_refused(-ENOSPC, "(make room");
    test_world_end_keeping(&world, 0);
    for (uint32_t i = 1; i <= INCARNATIONS_AHEAD; i++)
        ck_assert_uint_eq(take(), FIRST + INCARNATIONS_AHEAD + i);
}
END_TEST

START_TEST(as_many_are_kept_ahead_as_before_when_the_disk_has_answered)
{
    begin_at(FIRST);
    for (uint32_t i = 1; i <= 5 * INCARNATIONS_AHEAD; i++) {
        ck_assert_uint_eq(take(), FIRST + i);
        test_world_end_keeping(&world, 0);
        ck_assert_uint_eq(agent.kept.last, FIRST + i + INCARNATIONS_AHEAD);
    }
}
END_TEST

START_TEST(the_last_possible_one_is_not_followed_by_the_first)
{
    begin_at(UINT32_MAX - 3);
    ck_assert_uint_eq(take(), UINT32_MAX - 2);
    ck_assert_uint_eq(take(), UINT32_MAX - 1);
    is_refused(-EOVERFLOW, "the last possible incarnation: remove it from the metaservers");
    ck_assert_ptr_null(world.keeping);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nobody_waits_for_a_disk_that_takes_long)                                                     \
    T(none_is_taken_that_the_disk_has_not_kept)                                                    \
    T(what_a_full_disk_does_not_keep_is_tried_again_when_one_is_wanted)                            \
    T(as_many_are_kept_ahead_as_before_when_the_disk_has_answered)                                 \
    T(the_last_possible_one_is_not_followed_by_the_first)
KEDGE_CHECK_MAIN("agent.control.life", TESTS)
