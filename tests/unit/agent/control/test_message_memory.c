/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lane is let write what messages bring: in no memory whose worker could keep it waiting.
 */
#include "../../check_main.h"
#include "session_bed.h"

static struct lane_command told; /* the last that gave it an arena */

static void hear(const struct lane_command *command)
{
    if (command->kind == LANE_COMMAND_SESSION_ADD || command->kind == LANE_COMMAND_ARENA_ADD)
        told = *command;
}

static void begin(bool messages)
{
    session_bed_begin(4, 2);
    world.lane_told = hear;
    pool.device.messages.receives = messages ? 16 : 0;
}

/* A worker's session, and one more arena; whether the lane may write to each. */
static void give_two(bool *first, bool *second)
{
    struct base_errbuf why;
    uint32_t number;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_int_eq(agent_session_take(&pool, 1, BED_UID, 1, &connections[0], &number), 0);
    struct lane_memory *memory = lane_memory_new(1, 1, 1, 1);
    ck_assert_ptr_nonnull(memory);
    pool.sessions[number].rings.memory = memory;
    agent_session_begin(&pool, number);
    ck_assert_int_eq(told.kind, LANE_COMMAND_SESSION_ADD);
    *first = told.touch == (uint8_t *)&bed.memory;
    ck_assert(*first || told.touch == NULL);
    ck_assert_int_eq(agent_session_add_arena(&pool, number, 4 * MIB, &why), 0);
    session_bed_make_all();
    ck_assert_int_eq(told.kind, LANE_COMMAND_ARENA_ADD);
    *second = told.touch == (uint8_t *)&bed.memory;
    ck_assert(*second || told.touch == NULL);
    session_bed_event(number, LANE_EVENT_ARENA_ADDED, 0);
    ck_assert_int_eq(bed.arena_status, 0);
    pool.sessions[number].rings.memory = NULL;
    lane_memory_free(memory);
    session_bed_end();
}

START_TEST(a_lane_with_messages_may_write_to_arenas_in_which_nobody_punches_holes)
{
    bool first, second;
    begin(true);
    give_two(&first, &second);
    ck_assert(first && second);
}
END_TEST

START_TEST(and_to_no_others)
{
    bool first, second;
    begin(true);
    bed.holes = true;
    give_two(&first, &second);
    ck_assert(!first && !second);
    begin(true);
    world.world.keeps_whole = false; /* nor where some of this host's would be */
    give_two(&first, &second);
    ck_assert(!first && !second);
}
END_TEST

START_TEST(one_without_messages_writes_to_none)
{
    bool first, second;
    begin(false);
    give_two(&first, &second);
    ck_assert(!first && !second);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lane_with_messages_may_write_to_arenas_in_which_nobody_punches_holes)                      \
    T(and_to_no_others)                                                                            \
    T(one_without_messages_writes_to_none)
KEDGE_CHECK_MAIN("agent.control.message_memory", TESTS)
