/* SPDX-License-Identifier: Apache-2.0 */
/* A record that is whole is told from one that is not, as the tables write them. */
#include <stdarg.h>
#include <string.h>

#include "../check_main.h"
#include "ledger.h"
#include "process.h"
#include "torn_watch.h"

static int violations;
struct play_process *play_process;

void play_violation(const char *who, const char *format, ...)
{
    (void)who, (void)format;
    violations++;
}

START_TEST(each_word_of_another_record_makes_it_torn)
{
    enum { LOG2_SLOTS = 4, WORD = 8 };
    static _Alignas(64) uint8_t slots[(16 + SCHEMA_TABLE_SPAN) * SCHEMA_RECORD_BYTES];
    struct schema_table t;
    struct schema_mr_record r = {.vkey = 7, .flags = SCHEMA_RECORD_LIVE}, found;
    schema_table_init(&t, SCHEMA_TABLE_MRS, slots, LOG2_SLOTS, 1, 5);
    const int64_t slot = schema_table_put(&t, &r);
    ck_assert_int_ge(slot, 0);
    uint8_t *at = slots + (size_t)slot * SCHEMA_RECORD_BYTES, before[SCHEMA_RECORD_BYTES];
    memcpy(before, at, sizeof before);
    ck_assert(play_record_is_whole(at, 5));
    ck_assert(!play_record_is_whole(at, 6));
    memset((uint8_t *)&r + WORD, 0xa5, sizeof r - WORD);
    r.vkey = 7;
    r.flags = SCHEMA_RECORD_LIVE;
    (void)schema_table_put(&t, &r);
    ck_assert(play_record_is_whole(at, 5));
    for (size_t i = 0; i < SCHEMA_RECORD_BYTES; i += WORD) {
        uint8_t torn[SCHEMA_RECORD_BYTES];
        memcpy(torn, at, sizeof torn);
        memcpy(torn + i, before + i, WORD);
        const bool whole = memcmp(torn, at, sizeof torn) == 0;
        ck_assert_int_eq(play_record_is_whole(torn, 5), whole);
        violations = 0;
        play_record_judge(&t.desc, torn);
        ck_assert_int_eq(violations, !whole);
    }
    violations = 0;
    const size_t home = (size_t)schema_mr_home(&t.desc, 7) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_mr_find(&t.desc, slots + home, 7, &found), 0);
    ck_assert_int_eq(violations, 0);
}
END_TEST

#define TESTS(TEST) TEST(each_word_of_another_record_makes_it_torn)

KEDGE_CHECK_MAIN("sim.torn", TESTS)
