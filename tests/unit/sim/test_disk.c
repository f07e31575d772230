/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated disk keeps what was synced, whatever becomes of the power, and loses some of the rest
 * in some of the cases. */
#include <errno.h>
#include <string.h>

#include "../check_main.h"
#include "disk.h"

enum { SEEDS = 200, BYTES = 3000 };

static void put_text(struct play_disk *d, const char *name, const char *text, bool sync)
{
    struct play_file *f;
    ck_assert_int_eq(play_file_open(d, name, true, &f), 0);
    ck_assert_int_eq(play_file_cut(f, 0), 0);
    ck_assert_int_eq(play_file_write(f, 0, text, strlen(text)), 0);
    if (sync)
        ck_assert_int_eq(play_file_sync(f), 0);
    play_file_close(f);
}

static bool has_text(struct play_disk *d, const char *name, const char *text)
{
    char got[64];
    size_t n;
    struct play_file *f;
    if (play_file_open(d, name, false, &f) != 0)
        return false;
    ck_assert_int_eq(play_file_read(f, 0, got, sizeof got, &n), 0);
    play_file_close(f);
    return n == strlen(text) && memcmp(got, text, n) == 0;
}

START_TEST(what_was_synced_outlives_the_power)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct play_disk *d = play_disk_new(seed, 0);
        put_text(d, "a", "first", true);
        ck_assert_int_eq(play_disk_sync_names(d), 0);
        put_text(d, "a.new", "second", true);
        ck_assert_int_eq(play_disk_rename(d, "a.new", "a"), 0);
        ck_assert(has_text(d, "a", "second"));
        ck_assert(!play_disk_has(d, "a.new"));
        ck_assert_int_eq(play_disk_sync_names(d), 0);
        play_disk_power_cut(d);
        ck_assert(has_text(d, "a", "second"));
        ck_assert(!play_disk_has(d, "a.new"));
        play_disk_free(d);
    }
}
END_TEST

START_TEST(a_name_that_was_not_synced_is_the_former_file_or_the_new_one)
{
    int former = 0, new = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct play_disk *d = play_disk_new(seed, 0);
        put_text(d, "a", "first", true);
        ck_assert_int_eq(play_disk_sync_names(d), 0);
        put_text(d, "a.new", "second", true);
        ck_assert_int_eq(play_disk_rename(d, "a.new", "a"), 0);
        play_disk_power_cut(d);
        former += has_text(d, "a", "first");
        new += has_text(d, "a", "second");
        play_disk_free(d);
    }
    ck_assert_int_eq(former + new, SEEDS);
    ck_assert_int_gt(former, 0);
    ck_assert_int_gt(new, 0);
}
END_TEST

/* A sector whole or not at all; the first byte tells which were written. */
START_TEST(bytes_that_were_not_synced_are_kept_lost_or_torn)
{
    int kept = 0, lost = 0, torn = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint8_t bytes[BYTES], got[BYTES];
        struct play_file *f;
        size_t n;
        struct play_disk *d = play_disk_new(seed, 0);
        ck_assert_int_eq(play_file_open(d, "a", true, &f), 0);
        memset(bytes, 1, sizeof bytes);
        ck_assert_int_eq(play_file_write(f, 0, bytes, sizeof bytes), 0);
        ck_assert_int_eq(play_file_sync(f), 0);
        ck_assert_int_eq(play_disk_sync_names(d), 0);
        memset(bytes, 2, sizeof bytes);
        ck_assert_int_eq(play_file_write(f, 0, bytes, sizeof bytes), 0);
        play_file_close(f);
        play_disk_power_cut(d);
        ck_assert_int_eq(play_file_open(d, "a", false, &f), 0);
        ck_assert_int_eq(play_file_read(f, 0, got, sizeof got, &n), 0);
        ck_assert_uint_eq(n, sizeof got);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(got[i], got[i / 512 * 512]);
        memset(bytes, 1, sizeof bytes);
        const bool is_first = memcmp(got, bytes, n) == 0;
        memset(bytes, 2, sizeof bytes);
        const bool is_second = memcmp(got, bytes, n) == 0;
        lost += is_first;
        kept += is_second;
        torn += !is_first && !is_second;
        play_file_close(f);
        play_disk_free(d);
    }
    ck_assert_int_gt(kept, 0);
    ck_assert_int_gt(lost, 0);
    ck_assert_int_gt(torn, 0);
}
END_TEST

START_TEST(a_full_disk_takes_no_more_bytes)
{
    struct play_disk *d = play_disk_new(1, 0);
    struct play_file *f;
    put_text(d, "a", "first", true);
    play_disk_set_full(d, true);
    ck_assert_int_eq(play_file_open(d, "b", true, &f), -ENOSPC);
    ck_assert_int_eq(play_file_open(d, "a", true, &f), 0);
    ck_assert_int_eq(play_file_write(f, 5, "more", 4), -ENOSPC);
    play_disk_set_full(d, false);
    ck_assert_int_eq(play_file_write(f, 5, "more", 4), 0);
    play_file_close(f);
    ck_assert(has_text(d, "a", "firstmore"));
    play_disk_free(d);
}
END_TEST

START_TEST(behind_its_last_moment_nothing_happens)
{
    struct play_disk *d = play_disk_new(1, 0);
    struct play_file *f;
    size_t n;
    char got[4];
    put_text(d, "a", "abc", true);
    ck_assert_int_eq(play_file_open(d, "a", false, &f), 0);
    play_disk_fail_after(d, 1);
    ck_assert_int_eq(play_file_write(f, 0, "x", 1), 0);
    ck_assert_int_eq(play_file_write(f, 1, "y", 1), -EIO);
    ck_assert_int_eq(play_file_sync(f), -EIO);
    ck_assert_int_eq(play_disk_rename(d, "a", "b"), -EIO);
    ck_assert_int_eq(play_disk_remove(d, "a"), -EIO);
    ck_assert_int_eq(play_file_read(f, 0, got, sizeof got, &n), -EIO);
    play_disk_recover(d);
    play_file_close(f);
    ck_assert(has_text(d, "a", "xbc"));
    play_disk_free(d);
}
END_TEST

#define TESTS(TEST)                                                                                \
    TEST(what_was_synced_outlives_the_power)                                                       \
    TEST(a_name_that_was_not_synced_is_the_former_file_or_the_new_one)                             \
    TEST(bytes_that_were_not_synced_are_kept_lost_or_torn)                                         \
    TEST(a_full_disk_takes_no_more_bytes)                                                          \
    TEST(behind_its_last_moment_nothing_happens)

KEDGE_CHECK_MAIN("sim.disk", TESTS)
