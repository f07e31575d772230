/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the soft device: who may, and what is said to who may not. */
#include <fcntl.h>

#include "../check_main.h"
#include "bed.h"

static int try_open(const char *dir, const uint8_t gid[16], struct fab **out, char text[512])
{
    struct fab_open_attr attr = {.device = dir};
    struct base_errbuf err = {.text = ""};
    if (gid != NULL)
        memcpy(attr.gid, gid, 16);
    int status = fab_soft.open(&attr, out, &err);
    memcpy(text, err.text, sizeof err.text);
    return status;
}

START_TEST(a_gid_is_taken_once_at_a_time)
{
    char dir[64], text[512];
    struct fab *a, *b;
    const uint8_t gid[16] = {0xfd, 1, [15] = 7};
    bed_dir_make(dir);
    ck_assert_int_eq(try_open(dir, gid, &a, text), 0);
    ck_assert_int_eq(try_open(dir, gid, &b, text), -EADDRINUSE);
    ck_assert_ptr_nonnull(strstr(text, "has this GID already"));
    ck_assert_int_eq(fab_close(a), 0);
    ck_assert_int_eq(try_open(dir, gid, &a, text), 0);
    ck_assert_int_eq(fab_close(a), 0);
    bed_dir_remove(dir);
}
END_TEST

START_TEST(a_zero_gid_is_chosen_at_random)
{
    char dir[64], text[512];
    struct fab *a, *b;
    bed_dir_make(dir);
    ck_assert_int_eq(try_open(dir, NULL, &a, text), 0);
    ck_assert_int_eq(try_open(dir, NULL, &b, text), 0);
    ck_assert_uint_eq(a->caps.gid[0], 0xfd);
    ck_assert_mem_ne(a->caps.gid, b->caps.gid, 16);
    ck_assert_int_eq(fab_close(a), 0);
    ck_assert_int_eq(fab_close(b), 0);
    bed_dir_remove(dir);
}
END_TEST

START_TEST(a_directory_that_others_may_enter_is_refused)
{
    char dir[64], text[512];
    struct fab *fab;
    bed_dir_make(dir);
    ck_assert_int_eq(chmod(dir, 0750), 0);
    ck_assert_int_eq(try_open(dir, NULL, &fab, text), -EACCES);
    ck_assert_ptr_nonnull(strstr(text, "mode 0700"));
    bed_dir_remove(dir);
}
END_TEST

START_TEST(a_directory_whose_parent_is_missing_is_named)
{
    char text[512];
    struct fab *fab;
    ck_assert_int_eq(try_open("/dev/shm/kedge-none/device", NULL, &fab, text), -ENOENT);
    ck_assert_ptr_nonnull(strstr(text, "cannot make /dev/shm/kedge-none/device"));
}
END_TEST

START_TEST(a_file_of_another_version_is_left_alone)
{
    char dir[64], path[80], text[512];
    struct fab *fab;
    bed_dir_make(dir);
    snprintf(path, sizeof path, "%s/device", dir);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    ck_assert_int_eq(ftruncate(fd, 12345), 0);
    ck_assert_int_eq(try_open(dir, NULL, &fab, text), -EPROTO);
    ck_assert_ptr_nonnull(strstr(text, "another version"));
    close(fd);
    bed_dir_remove(dir);
}
END_TEST

START_TEST(closing_refuses_while_objects_are_left)
{
    char dir[64];
    struct bed_node n;
    bed_dir_make(dir);
    bed_open(&n, dir);
    ck_assert_int_eq(fab_close(n.fab), -EBUSY);
    bed_close(&n);
    ck_assert_int_eq(bed_dir_count(dir, "chan."), 0);
    bed_dir_remove(dir);
}
END_TEST

START_TEST(what_is_in_use_is_busy)
{
    char dir[64];
    struct bed_node n;
    bed_dir_make(dir);
    bed_open(&n, dir);
    struct fab_ctl ops[] = {{.kind = FAB_DESTROY_SRQ, .srq = {.x = n.srq}},
                            {.kind = FAB_DESTROY_CQ, .cq = {.x = n.cq}},
                            {.kind = FAB_DESTROY_CHAN, .chan = {.x = n.chan}},
                            {.kind = FAB_FREE_PD, .pd = {.x = n.pd}}};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        ck_assert_int_eq(fab_call(n.fab, &ops[i]), -EBUSY);
    bed_close(&n);
    bed_dir_remove(dir);
}
END_TEST

static void count_cancelled(struct fab_ctl *ctl)
{
    if (ctl->status == -ECANCELED)
        ++*(int *)ctl->user;
}

START_TEST(closing_cancels_what_was_only_submitted)
{
    char dir[64], text[512];
    struct fab *fab;
    int cancelled = 0;
    bed_dir_make(dir);
    ck_assert_int_eq(try_open(dir, NULL, &fab, text), 0);
    struct fab_ctl ctl = {.kind = FAB_ALLOC_PD, .done = count_cancelled, .user = &cancelled};
    fab_submit(fab, &ctl);
    ck_assert_int_eq(fab_close(fab), 0);
    ck_assert_int_eq(cancelled, 1);
    bed_dir_remove(dir);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_gid_is_taken_once_at_a_time)                                                               \
    T(a_zero_gid_is_chosen_at_random)                                                              \
    T(a_directory_that_others_may_enter_is_refused)                                                \
    T(a_directory_whose_parent_is_missing_is_named)                                                \
    T(a_file_of_another_version_is_left_alone)                                                     \
    T(closing_refuses_while_objects_are_left)                                                      \
    T(what_is_in_use_is_busy)                                                                      \
    T(closing_cancels_what_was_only_submitted)

KEDGE_CHECK_MAIN("fabric.soft_open", TESTS)
