/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver remembers of stores is there when it begins on one of them again. */
#include "known_file.h"

#include <sys/stat.h>
#include <fcntl.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../check_main.h"

static char dir[64];

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/kedge-known-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

/* Removes what is there: how many files that was. */
static int empty_directory(void)
{
    char path[512];
    int count = 0;
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        count += unlink(path) == 0;
    }
    closedir(d);
    ck_assert_int_eq(rmdir(dir), 0);
    return count;
}

/* As when a metaserver begins on that store, hears of that revision, and ends. */
static void run_on(const char *store, uint64_t revision)
{
    struct meta_known_file *f;
    struct base_errbuf err;
    struct base_text text;
    struct meta_known known = {.revision = revision};
    char path[128];
    snprintf(known.store, sizeof known.store, "%s", store);
    ck_assert_int_eq(meta_known_file_new(dir, &f, &err), 0);
    base_text_init(&text, META_KNOWN_TEXT_MAX);
    meta_known_write(&text, &known);
    meta_known_file_write(f, strdup(base_text_str(&text)));
    base_text_fini(&text);
    meta_known_file_free(f);
    /* in that order, however coarse the clock of files is */
    const struct timespec at[2] = {{.tv_sec = (time_t)revision}, {.tv_sec = (time_t)revision}};
    snprintf(path, sizeof path, "%s/store-known.json", dir);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, at, 0), 0);
}

/* What is known when it begins there; 0: nothing. */
static uint64_t known_of(const char *store)
{
    struct meta_known known;
    struct base_errbuf err;
    const int status = meta_known_file_read(dir, store, &known, &err);
    uint64_t revision = 0;
    ck_assert_msg(status == 0 || status == -ENOENT, "%s", err.text);
    if (status == 0 && strcmp(known.store, store) == 0)
        revision = known.revision;
    if (status == 0)
        meta_known_fini(&known);
    return revision;
}

START_TEST(who_begins_on_another_store_once_forgets_nothing_of_the_former_one)
{
    setup();
    ck_assert_uint_eq(known_of("aa"), 0);
    run_on("aa", 5);
    ck_assert_uint_eq(known_of("aa"), 5);
    ck_assert_uint_eq(known_of("bb"), 0);
    run_on("bb", 9);
    ck_assert_uint_eq(known_of("aa"), 5);
    run_on("aa", 6);
    ck_assert_uint_eq(known_of("bb"), 9);
    ck_assert_uint_eq(known_of("bb"), 9); /* it was killed before it wrote anything */
    ck_assert_uint_eq(known_of("aa"), 6);
    run_on("aa", 7);
    ck_assert_uint_eq(known_of("aa"), 7);
    ck_assert_int_eq(empty_directory(), 3);
}
END_TEST

START_TEST(the_store_that_is_begun_on_is_not_the_one_to_be_forgotten)
{
    char store[2] = "0";
    setup();
    for (int i = 1; i <= 9; i++) { /* the last one of them is in force, and eight are kept */
        store[0] = (char)('0' + i);
        ck_assert_uint_eq(known_of(store), 0);
        run_on(store, (uint64_t)i);
    }
    ck_assert_uint_eq(known_of("1"), 1);
    ck_assert_int_le(empty_directory(), 9);
}
END_TEST

START_TEST(so_many_stores_are_remembered_and_no_id_leads_elsewhere)
{
    char store[16];
    setup();
    for (int i = 1; i < 40; i++) {
        snprintf(store, sizeof store, "%x", (unsigned)i);
        ck_assert_uint_eq(known_of(store), 0);
        run_on(store, (uint64_t)i);
    }
    ck_assert_uint_eq(known_of("26"), 38);
    ck_assert_uint_eq(known_of("1"), 0);
    run_on("../../elsewhere", 4);
    ck_assert_uint_eq(known_of("26"), 38);
    ck_assert_int_le(empty_directory(), 10);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_begins_on_another_store_once_forgets_nothing_of_the_former_one)                          \
    T(the_store_that_is_begun_on_is_not_the_one_to_be_forgotten)                                   \
    T(so_many_stores_are_remembered_and_no_id_leads_elsewhere)
KEDGE_CHECK_MAIN("metaserver known file", TESTS)
