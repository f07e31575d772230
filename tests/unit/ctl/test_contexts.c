/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/contexts.h"
#include "ctl/options.h"

static struct base_errbuf err;
static struct ctl_contexts all;

static int parse(const char *text)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    ck_assert_ptr_nonnull(file);
    err.text[0] = '\0';
    int status = ctl_contexts_parse(file, "/etc/x", &all, &err);
    fclose(file);
    return status;
}

START_TEST(a_file_is_read)
{
    ck_assert_int_eq(parse("# ours\n[rdmactl]\ncurrent = prod\n"
                           "[context prod]\nserver = https://meta:7480\ntoken_file = /a b/token\n"
                           "[context here]\nagent_socket = /run/a.sock\noutput = wide\n"),
                     0);
    ck_assert_str_eq(all.current, "prod");
    ck_assert_uint_eq(all.count, 2);
    ck_assert_str_eq(all.item[0].server, "https://meta:7480");
    ck_assert_str_eq(all.item[0].token_file, "/a b/token");
    ck_assert_str_eq(all.item[0].output, "");
    const struct ctl_context *here = ctl_contexts_find(&all, "here");
    ck_assert_ptr_nonnull(here);
    ck_assert_str_eq(ctl_context_value(here, 2), "/run/a.sock");
    ck_assert_str_eq(ctl_context_value(here, 3), "wide");
    ck_assert_ptr_null(ctl_contexts_find(&all, "pro"));
}
END_TEST

START_TEST(what_is_wrong_is_said_with_file_and_line)
{
    const struct {
        const char *text, *says;
    } wrong[] = {
        {"server = http://a\n", "/etc/x:1: there are [rdmactl] and [context NAME], not []"},
        {"\n[contexts a]\nserver = http://a\n", "/etc/x:2: there are [rdmactl]"},
        {"[rdmactl]\n[contexts a]\n", "/etc/x:2: there are [rdmactl]"},
        {"[context ]\nserver = http://a\n", "/etc/x:1: \"\" is no context's name"},
        {"[context a b]\nserver = http://a\n", "/etc/x:1: \"a b\" is no context's name"},
        {"[context none]\nserver = http://a\n", "is not \"none\""},
        {"[context a2345678901234567890123456789012345678901]\nserver = http://a\n",
         "is no context's name"},
        {"[context a]\nserver = meta:7480\n", "/etc/x:2: server must be a URL"},
        {"[context a]\nserver =\n", "/etc/x:2: server has no value"},
        {"[context a]\nserver = http://a\nserver = http://b\n", "/etc/x:3: server of a is said"},
        {"[context a]\nserver = http://a\n  http://b\n", "/etc/x:3: server of a is said twice"},
        {"[context a]\ntoken = kedge_x\n", "/etc/x:2: \"token\" sets nothing of a context"},
        {"[context a]\ntoken_file = ~/t\n", "/etc/x:2: token_file must be an absolute path"},
        {"[context a]\nagent_socket = a.sock\n", "absolute path, not \"a.sock\""},
        {"[context a]\noutput = xml\n", "/etc/x:2: output must be table, wide, json or yaml"},
        {"[context a]\nserver here\n", "/etc/x:2: neither a [section] nor a key = value"},
        {"[context a\nserver = http://a\n", "/etc/x:1: neither"},
        {"[rdmactl]\ncolour = red\n", "/etc/x:2: [rdmactl] has current, not \"colour\""},
        {"[rdmactl]\ncurrent = a\ncurrent = b\n", "/etc/x:3: current is said twice"},
        {"[rdmactl]\ncurrent = a b\n", "/etc/x:2: \"a b\" is no context's name"},
        {"[context a]\nserver = http://\x7f\n", "/etc/x:2: server may not hold"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(parse(wrong[i].text) == -EINVAL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "\"%s\" lacks \"%s\"", err.text,
                      wrong[i].says);
        ck_assert_ptr_eq(strstr(err.text, "/etc/x:"), err.text);
    }
}
END_TEST

START_TEST(there_is_a_bound_on_how_many)
{
    static char text[CTL_CONTEXTS_MAX * 64 + 64];
    size_t used = 0;
    for (int i = 0; i <= CTL_CONTEXTS_MAX; i++) {
        ck_assert_int_eq(used == 0 ? 0 : parse(text), 0);
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "[context c%d]\noutput=json\n", i);
    }
    ck_assert_int_eq(parse(text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "at most"));
}
END_TEST

START_TEST(what_is_printed_reads_back)
{
    static struct ctl_contexts before;
    char text[4096] = "";
    ck_assert_int_eq(parse("[context b]\nserver = http://b\noutput=json\n[rdmactl]\ncurrent=zz\n"
                           "[context a]\ntoken_file = /t\nserver=unix:/s\nagent_socket=/x\n"),
                     0);
    before = all;
    FILE *file = fmemopen(text, sizeof text, "w");
    ck_assert_int_eq(ctl_contexts_print(&before, file), 0);
    fclose(file);
    ck_assert_int_eq(parse(text), 0);
    ck_assert_uint_eq(all.count, 2);
    ck_assert_str_eq(all.current, "zz");
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(all.item[i].name, before.item[i].name);
        for (size_t k = 0; k < CTL_CONTEXT_KEYS; k++)
            ck_assert_str_eq(ctl_context_value(&all.item[i], k),
                             ctl_context_value(&before.item[i], k));
    }
}
END_TEST

/* ---- the file */

/* A directory of the test's own, which is then where contexts are. */
static const char *own_directory(void)
{
    static char directory[] = "/tmp/kedge-contexts-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("XDG_CONFIG_HOME", directory, 1);
    return directory;
}

static int add(void *user, struct ctl_contexts *contexts, struct base_errbuf *why)
{
    struct ctl_context *c = &contexts->item[contexts->count++];
    *c = (struct ctl_context){.name = ""};
    snprintf(c->name, sizeof c->name, "%s", (const char *)user);
    return ctl_context_set(c, "server", "http://a", why);
}

static int refuse(void *user, struct ctl_contexts *contexts, struct base_errbuf *why)
{
    (void)user;
    contexts->count = 0;
    return base_err(why, -ENOSPC, "no");
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

START_TEST(a_change_makes_the_file_for_its_user_alone)
{
    char first[] = "first", second[] = "second", path[200];
    const char *directory = own_directory();
    snprintf(path, sizeof path, "%s/kedge/rdmactl.conf", directory);
    umask(0);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    ck_assert_uint_eq(all.count, 0);
    ck_assert_str_eq(all.path, path);
    ck_assert_int_eq(ctl_contexts_change(add, first, &err), 0);
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert_int_eq(ctl_contexts_change(add, second, &err), 0);
    ck_assert_int_eq(ctl_contexts_change(refuse, NULL, &err), -ENOSPC);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    ck_assert_uint_eq(all.count, 2);
    ck_assert_int_eq(unlink(path), 0);
    path[strlen(path) - strlen("/rdmactl.conf")] = '\0';
    ck_assert_uint_eq(mode_of(path), 0700);
    ck_assert_msg(rmdir(path) == 0, "what was written beside it is left there");
    rmdir(directory);
}
END_TEST

START_TEST(a_symbolic_link_stays_one)
{
    char first[] = "first", link[200], target[200];
    const char *directory = own_directory();
    struct stat st;
    snprintf(target, sizeof target, "%s/dotfile", directory);
    snprintf(link, sizeof link, "%s/kedge", directory);
    ck_assert_int_eq(mkdir(link, 0700), 0);
    snprintf(link, sizeof link, "%s/kedge/rdmactl.conf", directory);
    ck_assert_int_eq(close(open(target, O_CREAT | O_WRONLY, 0644)), 0);
    ck_assert_int_eq(symlink(target, link), 0);
    ck_assert_int_eq(ctl_contexts_change(add, first, &err), 0);
    ck_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert_uint_eq(mode_of(target), 0600);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    ck_assert_uint_eq(all.count, 1);
    unlink(link);
    unlink(target);
    *strrchr(link, '/') = '\0';
    rmdir(link);
    rmdir(directory);
}
END_TEST

START_TEST(what_others_could_have_written_is_refused)
{
    char first[] = "first", path[200];
    const char *directory = own_directory();
    snprintf(path, sizeof path, "%s/kedge/rdmactl.conf", directory);
    ck_assert_int_eq(ctl_contexts_change(add, first, &err), 0);
    const mode_t bad[] = {0620, 0602, 0666};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(chmod(path, bad[i]), 0);
        ck_assert_int_eq(ctl_contexts_read(&all, &err), -EACCES);
        ck_assert_ptr_nonnull(strstr(err.text, "chmod go-w"));
        ck_assert_int_eq(ctl_contexts_change(add, first, &err), -EACCES);
    }
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    if (geteuid() == 0) { /* only root can give a file away */
        ck_assert_int_eq(chown(path, 12345, (gid_t)-1), 0);
        ck_assert_int_eq(ctl_contexts_read(&all, &err), -EACCES);
        ck_assert_ptr_nonnull(strstr(err.text, "uid 12345's"));
    } else {
        puts("skip: that a file of somebody else is refused (only root can give one away)");
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* it does not wait for a writer either */
    ck_assert_int_eq(ctl_contexts_read(&all, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "no regular file"));
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(directory);
}
END_TEST

START_TEST(without_a_place_there_are_none)
{
    char first[] = "first";
    unsetenv("HOME");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    ck_assert_uint_eq(all.count, 0);
    ck_assert_str_eq(all.path, "");
    ck_assert_int_eq(ctl_contexts_change(add, first, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "set XDG_CONFIG_HOME or HOME"));
    setenv("HOME", "/home/x", 1);
    ck_assert_int_eq(ctl_contexts_read(&all, &err), 0);
    ck_assert_str_eq(all.path, "/home/x/.config/kedge/rdmactl.conf");
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_file_is_read)                                                                              \
    X(what_is_wrong_is_said_with_file_and_line)                                                    \
    X(there_is_a_bound_on_how_many)                                                                \
    X(what_is_printed_reads_back)                                                                  \
    X(a_change_makes_the_file_for_its_user_alone)                                                  \
    X(a_symbolic_link_stays_one)                                                                   \
    X(what_others_could_have_written_is_refused)                                                   \
    X(without_a_place_there_are_none)
KEDGE_CHECK_MAIN("ctl.contexts", TESTS)
