/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "../check_main.h"

/* A hierarchy of control groups as the kernel shows it; each test is a process of its own. */
static char root[64], membership[96];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void begin(const char *groups)
{
    snprintf(root, sizeof root, "/tmp/kedge-memory-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(membership, sizeof membership, "%s/membership", root);
    write_file(membership, groups);
}

/* path: "" is the root. max: NULL leaves the file out, as the kernel does at the real root. */
static void group(const char *path, const char *max)
{
    char name[160];
    snprintf(name, sizeof name, "%s%s", root, path);
    ck_assert(path[0] == '\0' || mkdir(name, 0700) == 0);
    if (max == NULL)
        return;
    snprintf(name, sizeof name, "%s%s/memory.max", root, path);
    write_file(name, max);
}

static uint64_t found(void)
{
    return base_memory_group(membership, root);
}

static void end(void)
{
    static const char *const names[] = {
        "/a/b/memory.max", "/a/b", "/a/memory.max", "/a", "/memory.max", "/membership", ""};
    char name[160];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s%s", root, names[i]);
        (void)remove(name);
    }
}

START_TEST(the_own_group_bounds)
{
    begin("0::/a/b\n");
    group("/a", "max\n");
    group("/a/b", "1073741824\n");
    ck_assert_uint_eq(found(), 1073741824);
    end();
}
END_TEST

START_TEST(a_group_above_bounds_when_it_says_less)
{
    begin("0::/a/b\n");
    group("", NULL);
    group("/a", "4096\n");
    group("/a/b", "8192\n");
    ck_assert_uint_eq(found(), 4096);
    end();
}
END_TEST

START_TEST(the_root_of_a_namespace_bounds)
{
    begin("0::/\n");
    group("", "12288\n");
    ck_assert_uint_eq(found(), 12288);
    end();
}
END_TEST

START_TEST(a_group_outside_of_the_namespace_leaves_its_root)
{
    begin("0::/../a\n");
    group("", "12288\n");
    group("/a", "4096\n");
    ck_assert_uint_eq(found(), 12288);
    end();
}
END_TEST

START_TEST(a_group_of_version_1_is_not_looked_at)
{
    begin("4:memory:/a\n1:name=systemd:/a\n");
    group("/a", "4096\n");
    ck_assert_uint_eq(found(), UINT64_MAX);
    end();
}
END_TEST

START_TEST(beside_groups_of_version_1_that_of_version_2_counts)
{
    begin("4:memory:/\n0::/a\n");
    group("/a", "4096\n");
    ck_assert_uint_eq(found(), 4096);
    end();
}
END_TEST

START_TEST(what_is_missing_or_makes_no_sense_is_no_bound)
{
    begin("0::/a/b\n");
    ck_assert_uint_eq(found(), UINT64_MAX);
    group("/a", "");
    group("/a/b", "4096 bytes\n");
    ck_assert_uint_eq(found(), UINT64_MAX);
    ck_assert_uint_eq(base_memory_group("/nowhere/cgroup", root), UINT64_MAX);
    end();
}
END_TEST

START_TEST(this_process_has_no_more_than_the_machine)
{
    struct sysinfo host;
    bool of_group;
    ck_assert_int_eq(sysinfo(&host), 0);
    const uint64_t most = base_memory_most(&of_group),
                   all = (uint64_t)host.totalram * host.mem_unit;
    ck_assert_uint_gt(most, 0);
    ck_assert(of_group ? most < all : most == all);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(the_own_group_bounds)                                                                        \
    X(a_group_above_bounds_when_it_says_less)                                                      \
    X(the_root_of_a_namespace_bounds)                                                              \
    X(a_group_outside_of_the_namespace_leaves_its_root)                                            \
    X(a_group_of_version_1_is_not_looked_at)                                                       \
    X(beside_groups_of_version_1_that_of_version_2_counts)                                         \
    X(what_is_missing_or_makes_no_sense_is_no_bound)                                               \
    X(this_process_has_no_more_than_the_machine)
KEDGE_CHECK_MAIN("memory", TESTS)
