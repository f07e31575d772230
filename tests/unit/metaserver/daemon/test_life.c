/* SPDX-License-Identifier: Apache-2.0 */
/* Which process had a metaserver's data_dir before this one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "life.h"

static char dir[] = "/tmp/kedge-life-XXXXXX", life[META_STORE_ETCD_LIFE_BYTES],
            former[META_STORE_ETCD_FORMER_BYTES];
static struct base_errbuf err;

enum { SAID = META_STORE_ETCD_LIFE_BYTES + META_STORE_ETCD_FORMER_BYTES };

/* A process that begins a life and ends; what it says. */
static int live_once(char said[SAID])
{
    int fds[2], status;
    ck_assert_int_eq(pipe(fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        status = meta_life_begin(dir, life, former, &err);
        if (status == 0)
            dprintf(fds[1], "%s %s", life, former);
        _exit(-status);
    }
    close(fds[1]);
    const ssize_t got = read(fds[0], said, SAID - 1);
    said[got > 0 ? got : 0] = '\0';
    close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void write_file(const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/member-life", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_process_knows_the_one_before_it)
{
    char first[SAID], second[SAID], path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(live_once(first), 0);
    ck_assert_uint_eq(strlen(first), META_STORE_ETCD_LIFE_BYTES); /* and a blank: none before */
    ck_assert_int_eq(live_once(second), 0);
    ck_assert_uint_eq(strlen(second), 2 * META_STORE_ETCD_LIFE_BYTES - 1);
    ck_assert_int_eq(strncmp(second + META_STORE_ETCD_LIFE_BYTES, first, 32), 0);
    ck_assert_int_ne(strncmp(second, first, 32), 0);
    write_file("0123456789abcdef0123456789ABCDEF"); /* no life */
    ck_assert_int_eq(live_once(first), 0);
    ck_assert_uint_eq(strlen(first), META_STORE_ETCD_LIFE_BYTES);
    write_file("0123"); /* a part of one */
    ck_assert_int_eq(meta_life_begin(dir, life, former, &err), 0);
    ck_assert_str_eq(former, "");
    ck_assert_int_eq(live_once(first), EBUSY); /* it is ours as long as we live */
    snprintf(path, sizeof path, "%s/member-life", dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/dev/null", path), 0);
    ck_assert_int_eq(live_once(first), ELOOP);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* A process that ended before etcd answered it never had the name, which one before it has. */
START_TEST(a_process_knows_those_before_the_one_before_it)
{
    char said[SAID], lives[3 * META_STORE_ETCD_FORMER][META_STORE_ETCD_LIFE_BYTES];
    char path[64];
    const int count = sizeof lives / sizeof lives[0];
    memset(strrchr(dir, '-') + 1, 'X', 6);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(live_once(said), 0);
        snprintf(lives[i], sizeof lives[i], "%.32s", said);
        const int known = i < META_STORE_ETCD_FORMER ? i : META_STORE_ETCD_FORMER;
        const char *at = said + META_STORE_ETCD_LIFE_BYTES;
        for (int j = 1; j <= known; j++, at += META_STORE_ETCD_LIFE_BYTES)
            ck_assert_int_eq(strncmp(at, lives[i - j], 32), 0);
        ck_assert_uint_eq(strlen(said), META_STORE_ETCD_LIFE_BYTES * (known + 1) - (known != 0));
    }
    snprintf(said, sizeof said, "%s 0123", lives[0]); /* a part of one behind it */
    write_file(said);
    ck_assert_int_eq(live_once(said), 0);
    ck_assert_str_eq(said + META_STORE_ETCD_LIFE_BYTES, lives[0]);
    snprintf(path, sizeof path, "%s/member-life", dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_process_knows_the_one_before_it)                                                           \
    T(a_process_knows_those_before_the_one_before_it)
KEDGE_CHECK_MAIN("metaserver daemon life", TESTS)
