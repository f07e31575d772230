/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of one process, and sessions' memory of each, made one behind the other: no line of memory
 * has words of two of them. calloc() is wrapped, so that nothing that they allocate is missed. */
#include "../../check_main.h"
#include "own_lines.h"
#include "world.h"

#undef calloc

enum { LANES = 3, PIECES = 4096 };

static struct piece {
    uintptr_t first, last; /* lines */
    size_t bytes;
    uint32_t lane;
} pieces[PIECES];
static uint32_t count, now; /* now: whose is made, from 1; 0: nobody's */

void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    void *at = __real_calloc(n, size);
    const size_t bytes = n * size;
    if (now == 0 || at == NULL)
        return at;
    ck_assert_uint_lt(count, PIECES);
    ck_assert_uint_gt(bytes, LANE_LINE_BYTES); /* all of it asks through lane_calloc() */
    pieces[count++] = (struct piece){
        .first = (uintptr_t)at / LANE_LINE_BYTES,
        .last = ((uintptr_t)at + bytes - LANE_LINE_BYTES - 1) / LANE_LINE_BYTES,
        .bytes = bytes,
        .lane = now,
    };
    return at;
}

static void check_pieces(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct piece *a = &pieces[i], *b = &pieces[k];
            most = a->bytes > most ? a->bytes : most;
            if (a->lane != b->lane)
                ck_assert_msg(a->last < b->first || b->last < a->first,
                              "lanes %u and %u have words in one line", a->lane, b->lane);
        }
    ck_assert_uint_gt(count, LANES * 20);
    ck_assert_uint_gt(most, 10000);
}

START_TEST(no_line_has_words_of_two_lanes)
{
    static struct world w;
    struct lane *lane[LANES];
    struct lane_memory *memory[LANES][2];
    world_open(&w);
    count = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        now = i + 1;
        ck_assert_int_eq(lane_new(&w.node[0].config, &w.node[0].res, &lane[i]), 0);
    }
    for (uint32_t k = 0; k < 2; k++) /* by turns, as workers come */
        for (uint32_t i = 0; i < LANES; i++) {
            now = i + 1;
            memory[i][k] = lane_memory_new(8, 8, 4, 4);
            ck_assert_ptr_nonnull(memory[i][k]);
        }
    now = 0;
    check_pieces();
    for (uint32_t i = 0; i < LANES; i++) {
        lane_memory_free(memory[i][0]);
        lane_memory_free(memory[i][1]);
        lane_free(lane[i]);
    }
    world_close(&w);
}
END_TEST

#define TESTS(T) T(no_line_has_words_of_two_lanes)
KEDGE_CHECK_MAIN("agent.lane.own_lines", TESTS)
