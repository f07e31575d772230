/* SPDX-License-Identifier: Apache-2.0 */
/* What every store must do, run on each of them; then what SQLite alone does. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metaserver/store.h"
#include "names_fixture.h"

static int find_process(void *user, const struct meta_store_node *n)
{
    struct meta_store_node *wanted = user;
    if (strcmp(n->id, wanted->id) == 0)
        wanted->fingerprint = n->fingerprint;
    return 0;
}

/* Of the node with that id, if it is there. */
static struct meta_store_fingerprint meta_fingerprint_of(struct meta_store *store, const char *id)
{
    struct meta_store_node n = node(id, 1, 0, 0);
    struct base_errbuf err;
    n.fingerprint.identity = 0;
    ck_assert_int_eq(meta_store_load(store, find_process, &n, &err), 0);
    return n.fingerprint;
}

/* ---- conformance */

static void lists_in_order(struct meta_store *s)
{
    put(s, node("b", 5, 2, 1));
    put(s, node("a.1", 4294967295, 0, 0));
    put(s, node("a", 1, 1, 9));
    expect(s, "a:1:fedcba98:fd.09/7 a.1:4294967295:fedcba98 b:5:fedcba98:fd.01/7:fd.02/7 ");
}

static void replaces_a_node_and_its_endpoints(struct meta_store *s)
{
    put(s, node("n", 5, 3, 1));
    put(s, node("n", 6, 1, 2));
    expect(s, "n:6:fedcba98:fd.02/7 ");
}

static void refuses_an_older_incarnation_and_changes_nothing(struct meta_store *s)
{
    struct meta_store_node old = node("n", 4, 2, 5);
    struct base_errbuf err;
    put(s, node("n", 5, 1, 1));
    ck_assert_int_eq(meta_store_put(s, &old, &err), -ESTALE);
    expect(s, "n:5:fedcba98:fd.01/7 ");
    put(s, node("n", 5, 1, 2));
    expect(s, "n:5:fedcba98:fd.02/7 ");
}

static void moves_an_endpoint_to_who_has_it_last(struct meta_store *s)
{
    put(s, node("a", 1, 2, 1));
    put(s, node("b", 1, 1, 2));
    expect(s, "a:1:fedcba98:fd.01/7 b:1:fedcba98:fd.02/7 ");
}

/* Of those who share a store one may not know yet what another one has just stored. */
static void leaves_an_endpoint_to_who_has_it_until_that_expires(struct meta_store *s)
{
    const struct meta_store_life a = {"a", 1};
    struct meta_store_node b = node("b", 1, 1, 2), again = node("a", 1, 2, 1);
    struct base_errbuf err;
    put(s, node("a", 1, 2, 1));
    ck_assert_int_eq(meta_store_put(s, &b, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "is node a's, which is alive") != NULL, "%s", err.text);
    expect(s, "a:1:fedcba98:fd.01/7:fd.02/7 ");
    ck_assert_int_eq(meta_store_expire(s, &a, 1, &err), 0);
    put(s, b);
    expect(s, "a:1:fedcba98:expired b:1:fedcba98:fd.02/7 ");
    ck_assert_int_eq(meta_store_put(s, &again, &err), -EEXIST);
    put(s, node("a", 1, 1, 1));
    /* What goes with b is not a's, and what goes with a not b's. */
    ck_assert_int_eq(meta_store_remove(s, "a", &err), 0);
    again = node("c", 1, 1, 2);
    ck_assert_int_eq(meta_store_put(s, &again, &err), -EEXIST);
    put(s, node("d", 1, 1, 1));
    expect(s, "b:1:fedcba98:fd.02/7 d:1:fedcba98:fd.01/7 ");
}

static void moves_endpoints(struct meta_store *s)
{
    if (is_shared(s))
        leaves_an_endpoint_to_who_has_it_until_that_expires(s);
    else
        moves_an_endpoint_to_who_has_it_last(s);
}

static void expires_several_and_keeps_their_incarnations(struct meta_store *s)
{
    /* Of b another life is meant than the one that is there. */
    const struct meta_store_life ids[] = {
        {"a", 1}, {"unknown", UINT32_MAX}, {"b", 1}, {"c", UINT32_MAX}};
    struct base_errbuf err;
    put(s, node("a", 1, 1, 1));
    put(s, node("b", 2, 1, 2));
    put(s, node("c", 3, 1, 3));
    ck_assert_int_eq(meta_store_expire(s, ids, 4, &err), 0);
    expect(s, "a:1:fedcba98:expired b:2:fedcba98:fd.02/7 c:3:fedcba98:expired ");
    put(s, node("a", 1, 1, 1));
    expect(s, "a:1:fedcba98:fd.01/7 b:2:fedcba98:fd.02/7 c:3:fedcba98:expired ");
}

static void keeps_what_tells_processes_apart_when_a_node_expires(struct meta_store *s)
{
    const struct meta_store_life ids[] = {{"a", 7}};
    struct base_errbuf err;
    put(s, node("a", 7, 0, 0));
    ck_assert_uint_eq(meta_fingerprint_of(s, "a").count, 0);
    put(s, node("a", 7, META_STORE_NODE_ENDPOINTS, 1));
    put(s, node("a", 7, 2, 8));
    ck_assert_int_eq(meta_store_expire(s, ids, 1, &err), 0);
    struct meta_store_fingerprint p = meta_fingerprint_of(s, "a");
    ck_assert_uint_eq(p.identity, 0xfedcba98);
    ck_assert_uint_eq(p.count, 2);
    ck_assert_uint_eq(p.print[0].key, 0xfd000008);
    ck_assert_uint_eq(p.print[1].key, 0xfd000009);
    ck_assert_uint_eq(p.print[1].body, 7);
    expect(s, "a:7:fedcba98:expired ");
}

static void removes_a_node_with_its_endpoints(struct meta_store *s)
{
    struct base_errbuf err;
    put(s, node("a", 1, 2, 1));
    put(s, node("b", 1, 0, 0));
    ck_assert_int_eq(meta_store_remove(s, "a", &err), 0);
    ck_assert_int_eq(meta_store_remove(s, "a", &err), -ENOENT);
    expect(s, "b:1:fedcba98 ");
    put(s, node("b", 1, 2, 1));
    expect(s, "b:1:fedcba98:fd.01/7:fd.02/7 ");
}

static void holds_the_longest_names_and_most_endpoints(struct meta_store *s)
{
    struct meta_store_node n = node("", 1, META_STORE_NODE_ENDPOINTS, 1), got;
    memset(n.id, 'x', META_STORE_ID_BYTES - 1);
    put(s, n);
    struct listing l = {.text = ""};
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_load(s, list_one, &l, &err), 0);
    ck_assert_int_eq(strncmp(l.text, n.id, 63), 0);
    ck_assert_ptr_nonnull(strstr(l.text, "fd.10/7 "));
    got = n;
    ck_assert_int_eq(meta_store_remove(s, got.id, &err), 0);
}

static int stop_at_once(void *user, const struct meta_store_node *n)
{
    (void)n;
    ++*(int *)user;
    return -ENOSPC;
}

static void stops_loading_when_told(struct meta_store *s)
{
    int visits = 0;
    struct base_errbuf err;
    put(s, node("a", 1, 1, 1));
    put(s, node("b", 1, 1, 2));
    ck_assert_int_eq(meta_store_load(s, stop_at_once, &visits, &err), -ENOSPC);
    ck_assert_int_eq(visits, 1);
}

static void keeps_settings_and_the_newest_of_their_changes(struct meta_store *s)
{
    struct listing l;
    expect_settings(s, "");
    ck_assert_int_eq(change(s, 1, "window", "a", NULL, "{1}", 0), 0);
    ck_assert_int_eq(change(s, 2, "tenant", "b", NULL, "{2}", 0), 0);
    ck_assert_int_eq(change(s, 3, "tenant", "a", NULL, "{3}", 0), 0);
    ck_assert_int_eq(change(s, 4, "window", "a", "{1}", "{4}", 0), 0);
    expect_settings(s, "tenant/a:3:{3} tenant/b:2:{2} window/a:4:{4} 1@10:me:window/a:->{1} "
                       "2@20:me:tenant/b:->{2} 3@30:me:tenant/a:->{3} 4@40:me:window/a:{1}>{4} ");
    ck_assert_int_eq(change(s, 5, "tenant", "a", "{3}", NULL, 3), 0);
    expect_settings(s, "tenant/b:2:{2} window/a:4:{4} 4@40:me:window/a:{1}>{4} "
                       "5@50:me:tenant/a:{3}>- ");
    ck_assert_int_eq(change(s, 99, "tenant", "b", "{2}", NULL, 98), 0);
    ck_assert_int_eq(list_settings(s, &l), -EXDEV);
    expect(s, "");
}

/* What a backup brings back, until it is told to fail. */
struct items {
    unsigned at, fails_at;
};

static int next_item(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    struct items *i = user;
    switch (++i->at == i->fails_at ? 0 : i->at) {
    case 0:
        return base_err(err, -EBADMSG, "there is no more");
    case 1:
        *item = (struct meta_store_item){.kind = META_STORE_NODE, .node = node("n", 3, 1, 9)};
        return 1;
    case 2:
        *item = (struct meta_store_item){.kind = META_STORE_RESOURCE,
                                         .resource = {"tenant", "z", 7, "{7}"}};
        return 1;
    case 3:
        *item = (struct meta_store_item){.kind = META_STORE_CHANGE,
                                         .change = {.revision = 7,
                                                    .time_ms = 70,
                                                    .who = "me",
                                                    .kind = "tenant",
                                                    .name = "z",
                                                    .after = "{7}"}};
        return 1;
    case 4:
        *item =
            (struct meta_store_item){.kind = META_STORE_NAME, .name = named("t", "x", "n", 3, "g")};
        return 1;
    default:
        return 0;
    }
}

static void is_replaced_as_a_whole_or_not_at_all(struct meta_store *s)
{
    struct base_errbuf err;
    put(s, node("a", 1, 1, 1));
    ck_assert_int_eq(change(s, 1, "tenant", "t", NULL, "{1}", 0), 0);
    ck_assert_int_eq(publish(s, named("t", "old", "a", 1, "g")), 0);
    for (unsigned at = 1; at <= 5; at++) {
        struct items fails = {.fails_at = at};
        ck_assert_int_eq(meta_store_replace(s, next_item, &fails, &err), -EBADMSG);
        expect(s, "a:1:fedcba98:fd.01/7 ");
        expect_settings(s, "tenant/t:1:{1} 1@10:me:tenant/t:->{1} ");
        expect_names(s, "t/old=a:1:g ");
    }
    struct items all = {.fails_at = 0};
    ck_assert_int_eq(meta_store_replace(s, next_item, &all, &err), 0);
    expect(s, "n:3:fedcba98:fd.09/7 ");
    expect_names(s, "t/x=n:3:g ");
    expect_settings(s, "tenant/z:7:{7} 7@70:me:tenant/z:->{7} ");
    ck_assert_int_eq(change(s, 8, "tenant", "z", "{7}", NULL, 0), 0);
}

START_TEST(every_store_keeps_the_contract)
{
    static void (*const rules[])(struct meta_store *) = {
        lists_in_order,
        replaces_a_node_and_its_endpoints,
        refuses_an_older_incarnation_and_changes_nothing,
        moves_endpoints,
        expires_several_and_keeps_their_incarnations,
        keeps_what_tells_processes_apart_when_a_node_expires,
        removes_a_node_with_its_endpoints,
        holds_the_longest_names_and_most_endpoints,
        stops_loading_when_told,
        keeps_settings_and_the_newest_of_their_changes,
        is_replaced_as_a_whole_or_not_at_all,
    };
    for (enum kind kind = MEMORY; kind < KINDS && has_kind(kind); kind++) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            struct fixture f;
            setup(&f, kind);
            rules[i](f.store);
            teardown(&f);
        }
    }
}
END_TEST

/* ---- SQLite */

START_TEST(sqlite_keeps_everything_over_closing_and_killing)
{
    struct fixture f;
    setup(&f, SQLITE);
    put(f.store, node("a", 1, 1, 1));
    meta_store_close(f.store);
    pid_t child = fork();
    if (child == 0) {
        struct base_errbuf err;
        struct meta_store *store = NULL;
        struct meta_store_node n = node("b", 2, 1, 2);
        int bad = meta_store_sqlite(f.path, &store, &err) != 0 ||
                  meta_store_put(store, &n, &err) != 0 ||
                  change(store, 1, "tenant", "t", NULL, "{1}", 0) != 0;
        _exit(bad); /* without closing: as killed */
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    f.store = open_sqlite(f.path);
    expect(f.store, "a:1:fedcba98:fd.01/7 b:2:fedcba98:fd.02/7 ");
    expect_settings(f.store, "tenant/t:1:{1} 1@10:me:tenant/t:->{1} ");
    teardown(&f);
}
END_TEST

START_TEST(sqlite_keeps_a_second_metaserver_out)
{
    struct fixture f;
    struct meta_store *second = NULL;
    struct base_errbuf err;
    setup(&f, SQLITE);
    ck_assert_int_eq(meta_store_sqlite(f.path, &second, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "in use by another metaserver"));
    ck_assert_ptr_null(second);
    teardown(&f);
}
END_TEST

/* Another process in a transaction holds byte 120 of the -shm file: WAL_WRITE_LOCK of SQLite's WAL
 * format. */
START_TEST(sqlite_that_is_locked_refuses_a_write_and_changes_nothing)
{
    struct fixture f;
    struct base_errbuf err;
    struct meta_store_node n = node("b", 1, 1, 2);
    char shm[128], byte;
    int ready[2], done[2], status;
    setup(&f, SQLITE);
    put(f.store, node("a", 1, 1, 1));
    snprintf(shm, sizeof shm, "%s-shm", f.path);
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 1};
        int fd = open(shm, O_RDWR);
        byte = fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
        _exit(write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 1);
    ck_assert_int_eq(meta_store_put(f.store, &n, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "locked by another program"));
    ck_assert_int_eq(meta_store_remove(f.store, "a", &err), -EBUSY);
    ck_assert_int_eq(change(f.store, 1, "tenant", "t", NULL, "{1}", 0), -EBUSY);
    expect_settings(f.store, "");
    expect(f.store, "a:1:fedcba98:fd.01/7 ");
    ck_assert_int_eq(write(done[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    put(f.store, n);
    teardown(&f);
}
END_TEST

/* Nobody who does it makes the trail's half of a change fail. */
START_TEST(sqlite_changes_a_setting_with_its_entry_or_not_at_all)
{
    struct fixture f;
    struct base_errbuf err;
    setup(&f, SQLITE);
    ck_assert_int_eq(change(f.store, 1, "tenant", "t", NULL, "{1}", 0), 0);
    struct meta_store_change c = {
        .revision = 2, .kind = "tenant", .name = "t", .before = "{1}", .after = "{2}"};
    ck_assert_int_lt(meta_store_change(f.store, &c, &err), 0);
    c.after = NULL;
    ck_assert_int_lt(meta_store_change(f.store, &c, &err), 0);
    expect_settings(f.store, "tenant/t:1:{1} 1@10:me:tenant/t:->{1} ");
    ck_assert_int_eq(change(f.store, 2, "tenant", "t", "{1}", NULL, 1), 0);
    expect_settings(f.store, "2@20:me:tenant/t:{1}>- ");
    teardown(&f);
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n = read(in, bytes, sizeof bytes);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(write(out, bytes, (size_t)n), n);
    close(in);
    close(out);
}

/* As whoever copies metad.db alone, without its log. */
START_TEST(a_copy_of_the_file_alone_brings_back_nothing_that_was_deleted)
{
    struct fixture f, copied;
    struct meta_store *reader = NULL;
    struct base_errbuf err;
    setup(&f, SQLITE);
    setup(&copied, SQLITE);
    meta_store_close(copied.store);
    ck_assert_int_eq(change(f.store, 1, "token", "t", NULL, "{1}", 0), 0);
    ck_assert_int_eq(change(f.store, 2, "token", "u", NULL, "{2}", 0), 0);
    ck_assert_int_eq(change(f.store, 3, "token", "t", "{1}", NULL, 2), 0);
    copy_file(f.path, copied.path);
    copied.store = open_sqlite(copied.path);
    expect_settings(copied.store, "token/u:2:{2} 3@30:me:token/t:{1}>- ");
    teardown(&copied);
    /* Who reads meanwhile is not waited for: the next change makes up for it. */
    setup(&copied, SQLITE);
    meta_store_close(copied.store);
    ck_assert_int_eq(meta_store_sqlite_reader(f.path, &reader, &err), 0);
    expect_settings(reader, "token/u:2:{2} 3@30:me:token/t:{1}>- ");
    ck_assert_int_eq(change(f.store, 4, "token", "u", "{2}", NULL, 3), 0);
    expect_settings(reader, "token/u:2:{2} 3@30:me:token/t:{1}>- "); /* as of one moment */
    meta_store_close(reader);
    ck_assert_int_eq(change(f.store, 5, "token", "v", NULL, "{5}", 4), 0);
    copy_file(f.path, copied.path);
    copied.store = open_sqlite(copied.path);
    expect_settings(copied.store, "token/v:5:{5} 5@50:me:token/v:->{5} ");
    teardown(&copied);
    teardown(&f);
}
END_TEST

START_TEST(a_reader_needs_a_store_and_changes_nothing)
{
    struct fixture f;
    struct meta_store *reader = NULL;
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_sqlite_reader("/tmp/no-such-directory/metad.db", &reader, &err),
                     -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "set data_dir"));
    setup(&f, SQLITE);
    put(f.store, node("a", 1, 1, 1));
    ck_assert_int_eq(meta_store_sqlite_reader(f.path, &reader, &err), 0);
    expect(reader, "a:1:fedcba98:fd.01/7 ");
    ck_assert_int_ne(change(reader, 1, "tenant", "t", NULL, "{1}", 0), 0);
    meta_store_close(reader);
    expect_settings(f.store, "");
    teardown(&f);
}
END_TEST

START_TEST(a_store_is_idle_when_nobody_has_it_to_write)
{
    struct fixture f;
    struct meta_store *reader = NULL, *other = NULL;
    struct base_errbuf err;
    setup(&f, SQLITE);
    ck_assert_int_eq(meta_store_sqlite_reader(f.path, &reader, &err), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(meta_store_check_idle(reader, &err), -EBUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "stop it and try again"));
    }
    ck_assert_int_eq(meta_store_check_idle(f.store, &err), 0); /* that is itself */
    meta_store_close(f.store);
    f.store = NULL;
    for (int i = 0; i < 2; i++) { /* the second one as if it was brought here, without its lock */
        char lock[128];
        ck_assert_int_eq(meta_store_check_idle(reader, &err), 0);
        ck_assert_int_eq(meta_store_sqlite(f.path, &other, &err), -EBUSY);
        meta_store_close(reader);
        snprintf(lock, sizeof lock, "%s-lock", f.path);
        ck_assert_int_eq(unlink(lock), 0);
        ck_assert_int_eq(meta_store_sqlite_reader(f.path, &reader, &err), 0);
    }
    meta_store_close(reader);
    f.store = open_sqlite(f.path);
    teardown(&f);
}
END_TEST

/* Puts these bytes into the file; a writer (NULL: that is not asked) and a reader are refused with
 * these words. */
static void expect_maker(const struct fixture *f, off_t at, const char bytes[4], const char *writer,
                         const char *reader)
{
    struct meta_store *store = NULL;
    struct base_errbuf err = {""};
    const int fd = open(f->path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, bytes, 4, at), 4);
    close(fd);
    ck_assert_int_lt(meta_store_sqlite_reader(f->path, &store, &err), 0);
    ck_assert_msg(strstr(err.text, reader) != NULL, "%s", err.text);
    if (writer == NULL)
        return;
    ck_assert_int_lt(meta_store_sqlite(f->path, &store, &err), 0);
    ck_assert_msg(strstr(err.text, writer) != NULL, "%s", err.text);
}

START_TEST(who_reads_hears_of_another_versions_file_what_who_writes_does)
{
    enum { USER_VERSION = 60, APPLICATION = 68 }; /* in the head of SQLite's file format, 1.3 */
    struct fixture f;
    setup(&f, SQLITE);
    meta_store_close(f.store);
    f.store = NULL;
    expect_maker(&f, USER_VERSION, "\0\0\0\x01", NULL, "older kedge-metad (version 1");
    expect_maker(&f, USER_VERSION, "\0\0\0\x63", "newer kedge-metad (version 99",
                 "newer kedge-metad (version 99");
    expect_maker(&f, APPLICATION, "else", "another program's", "another program's");
    teardown(&f);
}
END_TEST

START_TEST(sqlite_files_are_for_their_owner_alone)
{
    struct fixture f;
    struct stat st;
    char wal[128];
    umask(022);
    setup(&f, SQLITE);
    put(f.store, node("a", 1, 1, 1));
    ck_assert_int_eq(stat(f.path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    snprintf(wal, sizeof wal, "%s-wal", f.path);
    ck_assert_int_eq(stat(wal, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    teardown(&f);
}
END_TEST

START_TEST(sqlite_says_what_is_wrong_with_its_file)
{
    static const char rubbish[8192] = "this is no database, but it is long enough to look at";
    struct fixture f;
    struct meta_store *store = NULL;
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_sqlite("/nonexistent/metad.db", &store, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "is missing: make it"));
    setup(&f, SQLITE);
    meta_store_close(f.store);
    int fd = open(f.path, O_WRONLY | O_TRUNC);
    ck_assert_int_eq(write(fd, rubbish, sizeof rubbish), sizeof rubbish);
    close(fd);
    ck_assert_int_eq(meta_store_sqlite(f.path, &store, &err), -EIO);
    ck_assert_ptr_nonnull(strstr(err.text, "damaged or is no database"));
    f.store = NULL;
    teardown(&f);
}
END_TEST

static int refused_with; /* what writing a file fails with; 0: it does not */

static ssize_t write_at(int fd, const void *bytes, size_t length, off_t at)
{
    if (refused_with == 0)
        return pwrite(fd, bytes, length, at);
    errno = refused_with;
    return -1;
}

/* SQLite writes with one of them. Offsets are of 64 bits where this is built. */
static void let_writes_be_refused(bool on)
{
    static const char *const calls[] = {"pwrite", "pwrite64"};
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            vfs->xSetSystemCall(vfs, calls[i], on ? (sqlite3_syscall_ptr)write_at : NULL),
            SQLITE_OK);
}

START_TEST(sqlite_says_that_there_is_no_room_however_the_kernel_says_it)
{
    static const int errors[] = {ENOSPC, EDQUOT};
    struct fixture f;
    struct base_errbuf err;
    setup(&f, SQLITE);
    let_writes_be_refused(true);
    for (int i = 0; i < 2; i++) {
        const struct meta_store_node n = node("a", 1, 1, 1);
        refused_with = errors[i];
        ck_assert_int_eq(meta_store_put(f.store, &n, &err), -ENOSPC);
        ck_assert_ptr_nonnull(strstr(err.text, "is full: make room there"));
        refused_with = 0;
        expect(f.store, "");
    }
    let_writes_be_refused(false);
    put(f.store, node("a", 1, 1, 1));
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_store_keeps_the_contract)                                                              \
    T(sqlite_keeps_everything_over_closing_and_killing)                                            \
    T(sqlite_keeps_a_second_metaserver_out)                                                        \
    T(sqlite_that_is_locked_refuses_a_write_and_changes_nothing)                                   \
    T(sqlite_changes_a_setting_with_its_entry_or_not_at_all)                                       \
    T(a_copy_of_the_file_alone_brings_back_nothing_that_was_deleted)                               \
    T(a_store_is_idle_when_nobody_has_it_to_write)                                                 \
    T(a_reader_needs_a_store_and_changes_nothing)                                                  \
    T(who_reads_hears_of_another_versions_file_what_who_writes_does)                               \
    T(sqlite_files_are_for_their_owner_alone)                                                      \
    T(sqlite_says_what_is_wrong_with_its_file)                                                     \
    T(sqlite_says_that_there_is_no_room_however_the_kernel_says_it)
KEDGE_CHECK_MAIN("metaserver store", TESTS)
