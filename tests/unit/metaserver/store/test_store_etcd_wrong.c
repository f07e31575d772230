/* SPDX-License-Identifier: Apache-2.0 */
/* A store in etcd where something is wrong: with what is there, with etcd, or with the settings. */
#include <errno.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "etcd_replay.h"

static struct base_errbuf err;

static bool has_etcd(void)
{
    return etcd_is_there("stores in etcd where something is wrong");
}

static void put_raw(const char *key, const char *value)
{
    struct base_text body;
    base_text_init(&body, 1 << 16);
    base_text_append(&body, "{", 1);
    meta_etcd_bytes(&body, "key", key);
    if (value != NULL)
        meta_etcd_bytes(&body, "value", value);
    base_text_append(&body, "}", 1);
    json_decref(
        ask_etcd(value != NULL ? "/v3/kv/put" : "/v3/kv/deleterange", base_text_str(&body)));
    base_text_fini(&body);
}

START_TEST(values_of_somebody_else_are_refused_with_a_sentence)
{
    if (!has_etcd())
        return;
    static const char *const keys[] = {"/odd/1/nodes/n", "/odd/1/resources/tenant/t",
                                       "/odd/1/trail/00000000000000000007", "/odd/1/nodes/"};
    static const char *const values[] = {"", "[]", "{\"incarnation\":-1}", "\xff{", "{\"a\":{}"};
    struct meta_store *a = open_member(etcd_url(), "/odd/", "a");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/odd/", "a");
    struct replay r = {.at = 0};
    replay_snapshot(&r, watch, 1);
    for (int i = 0; i < 4; i++) {
        const unsigned before = r.snapshots;
        int status = 0;
        put_raw(keys[i], values[i]);
        ck_assert_int_eq(meta_store_load(a, list_one, &(struct listing){.used = 0}, &err), -EIO);
        ck_assert_msg(strstr(err.text, keys[i]) && strstr(err.text, "etcdctl"), "%s", err.text);
        for (int k = 0; k < 60 && status != -EBADMSG; k++)
            status = replay_next(&r, watch, BASE_NS_PER_S);
        ck_assert_msg(strstr(r.error.text, keys[i]) != NULL, "%s", r.error.text);
        put_raw(keys[i], NULL);
        for (int k = 0; k < 60 && r.snapshots == before; k++)
            replay_next(&r, watch, BASE_NS_PER_S);
        expect(r.state, "");
    }
    put_raw("/odd/store", "{\"id\":\"x\",\"version\":2,\"generation\":1}");
    ck_assert_int_eq(set_after(a, UINT64_MAX, "t").status, -EIO);
    put_raw("/odd/store", NULL);
    struct meta_store_outcome out = set_after(a, UINT64_MAX, "t");
    ck_assert_int_eq(out.status, -EIO);
    ck_assert_msg(strstr(out.err.text, "is gone") != NULL, "%s", out.err.text);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
}
END_TEST

/* Another cluster at the same address, as when it was begun anew without its data. */
START_TEST(another_cluster_is_refused_until_its_content_is_known)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/c/", "a");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/c/", "a");
    struct replay r = {.at = 0};
    char data[96];
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(set_after(a, UINT64_MAX, "t").status, 0);
    replay_snapshot(&r, watch, 1);
    const uint64_t at = r.at;
    snprintf(data, sizeof data, "%s/data", etcd_process.dir);
    etcd_kill();
    nftw(data, etcd_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    etcd_start();
    struct meta_store_outcome out = {.status = -EBUSY};
    for (int i = 0; i < 60 && out.status == -EBUSY; i++)
        out = set_after(a, UINT64_MAX, "t");
    ck_assert_msg(out.status == -EIO && strstr(out.err.text, "of another cluster") != NULL, "%s",
                  out.err.text);
    ck_assert_int_eq(set_after(a, UINT64_MAX, "t").status, -EIO);
    expect(a, ""); /* now it is known */
    ck_assert_int_eq(set_after(a, 0, "u").status, 0);
    replay_snapshot(&r, watch, 2);
    ck_assert_uint_eq(r.put_backs, 1);
    ck_assert_uint_lt(r.at, at);
    expect_same(r.state, a);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
}
END_TEST

static void copy_directory(const char *from, const char *to)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        execlp("cp", "cp", "-r", from, to, NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* The same cluster with what it had before, as after a restore by somebody who keeps its token. */
START_TEST(an_etcd_that_was_put_back_is_not_written_to_by_who_knows_more)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/back/", "a");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/back/", "a");
    struct replay r = {.at = 0};
    char data[96], copy[96];
    ck_assert_int_eq(set_after(a, 0, "t").status, 0);
    replay_snapshot(&r, watch, 1);
    snprintf(data, sizeof data, "%s/data", etcd_process.dir);
    snprintf(copy, sizeof copy, "%s/copy", etcd_process.dir);
    etcd_kill();
    copy_directory(data, copy);
    etcd_start();
    struct meta_store_outcome out = {.status = -EBUSY};
    for (int i = 0; i < 60 && out.status == -EBUSY; i++)
        out = set_after(a, 1, "u");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    replay_until(&r, watch, out.at);
    ck_assert_uint_eq(r.snapshots, 1);
    etcd_kill();
    nftw(data, etcd_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    copy_directory(copy, data);
    etcd_start();
    out.status = -EBUSY;
    for (int i = 0; i < 60 && out.status == -EBUSY; i++)
        out = set_after(a, UINT64_MAX, "v");
    ck_assert_msg(out.status == -EIO && strstr(out.err.text, "was put back") != NULL, "%s",
                  out.err.text);
    /* Nor does who asks whether it can be written again make it so. */
    meta_store_commit(a, &(struct meta_store_txn){.compare = false}, &out);
    ck_assert_msg(out.status == -EIO && strstr(out.err.text, "was put back") != NULL, "%d %s",
                  out.status, out.err.text);
    ck_assert_int_eq(set_after(a, UINT64_MAX, "v").status, -EIO);
    replay_snapshot(&r, watch, 2);
    ck_assert_uint_eq(r.put_backs, 1);
    atomic_store(&a->relearn, true); /* as who has heard it does */
    meta_store_commit(a, &(struct meta_store_txn){.compare = false}, &out);
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    expect_settings(a, "tenant/t:1:{1} 1@0:me:tenant/t:->{1} ");
    expect_same(r.state, a);
    ck_assert_int_eq(set_after(a, 1, "w").status, 0);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
}
END_TEST

/* And has gone on beyond what was known before the watch reads all anew, as it does when the
 * revision that it goes on from is compacted (etcdutl snapshot restore --mark-compacted). */
START_TEST(an_etcd_that_was_put_back_and_went_on_is_told_as_such)
{
    if (!has_etcd())
        return;
    struct meta_store *a = open_member(etcd_url(), "/on/", "a");
    struct meta_store_watch *watch = open_watch(etcd_url(), "/on/", "a");
    struct replay r = {.at = 0};
    char data[96], copy[96];
    ck_assert_int_eq(set_after(a, 0, "t").status, 0);
    replay_snapshot(&r, watch, 1);
    snprintf(data, sizeof data, "%s/data", etcd_process.dir);
    snprintf(copy, sizeof copy, "%s/before", etcd_process.dir);
    etcd_kill();
    copy_directory(data, copy);
    etcd_start();
    struct meta_store_outcome out = {.status = -EBUSY};
    for (int i = 0; i < 60 && out.status == -EBUSY; i++)
        out = set_after(a, 1, "u");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    replay_until(&r, watch, out.at);
    const uint64_t end = base_clock_ns() + 2 * BASE_NS_PER_S;
    while (base_clock_ns() < end) /* it asks for the last revision each second */
        replay_next(&r, watch, 100 * BASE_NS_PER_MS);
    ck_assert_uint_eq(r.snapshots, 1);
    etcd_kill();
    nftw(data, etcd_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    copy_directory(copy, data);
    etcd_start();
    struct meta_store *b = open_member(etcd_url(), "/other/", "b");
    struct meta_store_outcome other = {.status = -EBUSY};
    for (int i = 0; i < 60 && other.status == -EBUSY; i++)
        other = set_after(b, UINT64_MAX, "v");
    meta_store_close(b);
    for (int i = 0; i < 20; i++)
        put_raw("/elsewhere", "x");
    meta_store_watch_ask(watch);
    replay_snapshot(&r, watch, 2);
    ck_assert_uint_gt(r.at, out.at);
    ck_assert_uint_eq(r.put_backs, 1);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
}
END_TEST

static struct meta_store *open_user(const char *file)
{
    struct meta_store_etcd_config config = etcd_config(etcd_url(), "/user/", "a");
    struct meta_store *store = NULL;
    config.user = "root";
    config.password_file = file;
    return meta_store_etcd(&config, &store, &err) == 0 ? store : NULL;
}

START_TEST(a_user_shows_a_password_that_nobody_else_may_read)
{
    if (!has_etcd())
        return;
    char file[96];
    (void)etcd_url();
    snprintf(file, sizeof file, "%s/password", etcd_process.dir);
    FILE *f = fopen(file, "w");
    fputs("secret\n", f);
    fclose(f);
    chmod(file, 0644);
    ck_assert_ptr_null(open_user(file));
    ck_assert_msg(strstr(err.text, "chmod 600") != NULL, "%s", err.text);
    chmod(file, 0600);
    struct meta_store *a = open_user(file), *nobody = open_member(etcd_url(), "/user/", "b");
    ck_assert_ptr_nonnull(a);
    put(a, node("n", 1, 1, 1)); /* etcd wants no user yet */
    json_decref(ask_etcd("/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"secret\"}"));
    json_decref(ask_etcd("/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}"));
    json_decref(ask_etcd("/v3/auth/enable", "{}"));
    struct meta_store_outcome out = set_after(nobody, UINT64_MAX, "t");
    ck_assert_int_eq(out.status, -EROFS);
    ck_assert_msg(strstr(out.err.text, "set user and password_file") != NULL, "%s", out.err.text);
    put(a, node("n", 2, 1, 1));
    struct meta_store_watch *watch = NULL;
    struct meta_store_etcd_config config = etcd_config(etcd_url(), "/user/", "a");
    struct replay r = {.at = 0};
    config.user = "root";
    config.password_file = file;
    ck_assert_int_eq(meta_store_etcd_watch(&config, &watch, &err), 0);
    replay_snapshot(&r, watch, 1);
    /* A token that etcd does not know any more: it forgets all when it begins anew. */
    etcd_kill();
    etcd_start();
    out.status = -EBUSY;
    for (int i = 0; i < 60 && out.status == -EBUSY; i++)
        out = set_after(a, UINT64_MAX, "t");
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    replay_until(&r, watch, out.at);
    ck_assert_uint_eq(r.snapshots, 1);
    f = fopen(file, "w");
    fputs("wrong\n", f);
    fclose(f);
    struct meta_store *wrong = open_user(file);
    out = set_after(wrong, UINT64_MAX, "t");
    ck_assert_int_eq(out.status, -EROFS);
    ck_assert_msg(strstr(out.err.text, "etcdctl user passwd") != NULL, "%s", out.err.text);
    meta_store_watch_close(watch);
    meta_store_close(r.state);
    meta_store_close(a);
    meta_store_close(nobody);
    meta_store_close(wrong);
}
END_TEST

/* As a backup does with a prefix that is wrong. */
START_TEST(who_only_reads_makes_no_store_and_writes_to_none)
{
    if (!has_etcd())
        return;
    struct meta_store_etcd_config config = etcd_config(etcd_url(), "/read/", "a");
    struct meta_store *reader = NULL;
    config.to_read = true;
    ck_assert_int_eq(meta_store_etcd(&config, &reader, &err), 0);
    ck_assert_int_eq(meta_store_load(reader, list_one, &(struct listing){.used = 0}, &err), -EIO);
    ck_assert_msg(strstr(err.text, "never was there") != NULL, "%s", err.text);
    ck_assert_int_eq(meta_store_load(reader, list_one, &(struct listing){.used = 0}, &err), -EIO);
    struct meta_store *a = open_member(etcd_url(), "/read/", "a");
    put(a, node("n", 1, 1, 1));
    ck_assert_int_eq(set_after(reader, UINT64_MAX, "t").status, -EROFS);
    ck_assert_int_eq(meta_store_copy(a, reader, &err), -EROFS);
    expect_same(reader, a);
    meta_store_close(reader);
    meta_store_close(a);
}
END_TEST

/* As etcd says by itself when its quota is used up. */
static void set_full(bool full)
{
    json_decref(ask_etcd("/v3/maintenance/alarm",
                         full ? "{\"action\":\"ACTIVATE\",\"alarm\":\"NOSPACE\"}"
                              : "{\"action\":\"DEACTIVATE\",\"alarm\":\"NOSPACE\"}"));
}

/* Whether it is known afterwards that the store takes writes. */
static bool proves_by_putting(struct meta_store *store, const struct meta_store_node *n)
{
    struct meta_store_put one = {.node = n};
    struct meta_store_outcome out;
    meta_store_commit(store, &(struct meta_store_txn){.puts = &one, .put_count = 1}, &out);
    ck_assert_msg(out.status == 0, "%s", out.err.text);
    return !out.unproven;
}

static int ask_whether_it_writes(struct meta_store *store)
{
    struct meta_store_outcome out;
    meta_store_commit(store, &(struct meta_store_txn){.compare = false}, &out);
    ck_assert_msg(out.status == 0 || strstr(out.err.text, "etcd is full") != NULL, "%s",
                  out.err.text);
    ck_assert(!out.unproven);
    return out.status;
}

START_TEST(a_store_takes_writes_again_when_it_has_taken_one)
{
    if (!has_etcd())
        return;
    const struct meta_store_node n = node("n", 1, 1, 1);
    struct meta_store *a = open_member(etcd_url(), "/full/", "a");
    ck_assert(proves_by_putting(a, &n));
    ck_assert(proves_by_putting(a, &n)); /* nothing was written, and nothing is in doubt */
    set_full(true);
    struct meta_store *b = open_member(etcd_url(), "/full/", "b");
    ck_assert(!proves_by_putting(b, &n));
    ck_assert_int_eq(ask_whether_it_writes(b), -ENOSPC);
    ck_assert_int_eq(set_after(a, UINT64_MAX, "t").status, -ENOSPC);
    ck_assert(!proves_by_putting(a, &n));
    ck_assert_int_eq(ask_whether_it_writes(a), -ENOSPC);
    set_full(false);
    ck_assert(!proves_by_putting(a, &n));
    ck_assert_int_eq(ask_whether_it_writes(a), 0);
    ck_assert(proves_by_putting(a, &n));
    ck_assert_int_eq(ask_whether_it_writes(b), 0);
    meta_store_close(a);
    meta_store_close(b);
}
END_TEST

/* Somebody has damaged what is stored of one node, or a resource is larger than etcd takes. */
START_TEST(what_is_wrong_with_one_thing_says_nothing_of_the_store)
{
    if (!has_etcd())
        return;
    const struct meta_store_node n = node("n", 2, 1, 1);
    const struct meta_store_life life = {.id = "n", .incarnation = 2};
    struct meta_store *a = open_member(etcd_url(), "/one/", "a");
    char *large = calloc(1, (2 << 20) - 100);
    put(a, node("m", 1, 1, 2));
    put_raw("/one/1/nodes/n", "[]");
    ck_assert_int_eq(meta_store_put(a, &n, &err), -EUCLEAN);
    ck_assert_msg(strstr(err.text, "etcdctl del KEY") != NULL, "%s", err.text);
    ck_assert_int_eq(meta_store_expire(a, &life, 1, &err), -EUCLEAN);
    ck_assert_msg(strstr(err.text, "etcdctl del KEY") != NULL, "%s", err.text);
    memset(large, 'x', (2 << 20) - 101);
    ck_assert_int_eq(change(a, 1, "tenant", "t", NULL, large, 0), -E2BIG);
    ck_assert(!a->fails);
    free(large);
    meta_store_close(a);
}
END_TEST

/* They are written many to a transaction. */
START_TEST(a_node_that_nobody_can_read_keeps_no_other_from_expiring)
{
    if (!has_etcd())
        return;
    const struct meta_store_life lapsed[] = {{"bad", 1}, {"good", 1}, {"worse", 1}, {"late", 1}};
    const struct meta_store_life forgotten = {"old", 1}, lost = {"worse", 1};
    struct meta_store_txn txn = {.expire = lapsed, .expire_count = 4};
    struct meta_store_outcome out;
    struct meta_store *a = open_member(etcd_url(), "/damaged/", "a");
    put(a, node("good", 1, 1, 1));
    put(a, node("late", 2, 1, 2)); /* came back meanwhile */
    put(a, node("old", 1, 1, 3));
    put_raw("/damaged/1/nodes/bad", "[]");
    put_raw("/damaged/1/nodes/worse", "");
    ck_assert_msg(meta_store_commit(a, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.expire_count, 4);
    ck_assert_uint_eq(out.heard_elsewhere[0], 1 | 4); /* is looked at again after a lease */
    const struct meta_store_node again = node("bad", 2, 1, 9);
    ck_assert_int_eq(meta_store_put(a, &again, &err), -EUCLEAN); /* it is as it was */
    /* Also beside one that is forgotten; and what is to be forgotten, and cannot be read, beside
     * those that expire. */
    txn = (struct meta_store_txn){
        .expire = lapsed, .expire_count = 1, .remove = &forgotten, .remove_count = 1};
    ck_assert_msg(meta_store_commit(a, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.removed, 1);
    txn = (struct meta_store_txn){
        .expire = lapsed, .expire_count = 2, .remove = &lost, .remove_count = 1};
    ck_assert_msg(meta_store_commit(a, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_uint_eq(out.removed, 0);
    /* Where there is nothing else to do, that is what is said. */
    txn.expire_count = 1;
    ck_assert_int_eq(meta_store_commit(a, &txn, &out), -EUCLEAN);
    ck_assert_msg(strstr(out.err.text, "etcdctl del KEY") != NULL, "%s", out.err.text);
    ck_assert(!a->fails);
    put_raw("/damaged/1/nodes/bad", NULL);
    put_raw("/damaged/1/nodes/worse", NULL);
    expect(a, "good:1:fedcba98:expired late:2:fedcba98:fd.02/7 ");
    meta_store_close(a);
}
END_TEST

/* What answers each connection with that; "": it closes without a word; NULL: it says nothing. */
static pid_t answer_with(const char *text, int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a) | listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    *port = ntohs(a.sin_port);
    const pid_t parent = getpid(), child = fork();
    if (child != 0) {
        close(fd);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) {
        char request[4096];
        const int one = accept(fd, NULL, NULL);
        if (text == NULL)
            continue;
        (void)!read(one, request, sizeof request);
        (void)!write(one, text, strlen(text));
        shutdown(one, SHUT_WR);
        while (read(one, request, sizeof request) >
               0) /* else it is reset, and what was said lost */
            ;
        close(one);
    }
    _exit(0);
}

/* What a store says whose endpoints are these. */
static void expect_words(const char *endpoints, uint64_t timeout_ns, const char *words)
{
    struct meta_store_etcd_config config = etcd_config(endpoints, "/k/", "a");
    struct meta_store *store = NULL;
    config.timeout_ns = timeout_ns;
    ck_assert_int_eq(meta_store_etcd(&config, &store, &err), 0);
    ck_assert_int_lt(meta_store_load(store, list_one, &(struct listing){.used = 0}, &err), 0);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
    meta_store_close(store);
}

START_TEST(what_speaks_otherwise_is_told_how)
{
    static const struct {
        const char *text, *scheme, *says;
    } wrong[] = {
        {"HTTP/1.0 400 Bad Request\r\n\r\nCommonName of client sending a request against gateway "
         "will be ignored and not used as expected\n",
         "http", "certificate without a common name"},
        {"HTTP/1.0 400 Bad Request\r\n\r\nsay it otherwise\001\nso", "http",
         "HTTP status 400: say it otherwise"},
        {"HTTP/1.0 503 x\r\n\r\n{\"error\":\"connection closed\",\"code\":14}", "http",
         "(clientAuth)"},
        {"", "http", "an etcd with TLS is https://"},
        {"HTTP/1.0 400 Bad Request\r\n\r\n", "https", "an etcd without TLS is http://"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char url[64];
        int port;
        const pid_t child = answer_with(wrong[i].text, &port);
        snprintf(url, sizeof url, "%s://127.0.0.1:%d", wrong[i].scheme, port);
        /* a handshake takes its time where everything is watched */
        expect_words(url, (wrong[i].scheme[4] == 's' ? 20 : 1) * BASE_NS_PER_S, wrong[i].says);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}
END_TEST

/* The one that runs lacks the other, whichever is asked last. */
START_TEST(of_several_endpoints_the_one_that_is_late_is_named)
{
    char urls[128], late[64];
    int port;
    const pid_t child = answer_with(NULL, &port);
    const int down = etcd_free_port();
    snprintf(late, sizeof late, "http://127.0.0.1:%d does not answer in time", port);
    for (int i = 0; i < 2; i++) {
        snprintf(urls, sizeof urls, "http://127.0.0.1:%d,http://127.0.0.1:%d", i == 0 ? port : down,
                 i == 0 ? down : port);
        expect_words(urls, 4 * BASE_NS_PER_S, late);
        ck_assert_msg(strstr(err.text, "no endpoint of 2 does it") != NULL, "%s", err.text);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

START_TEST(settings_that_make_no_sense_are_refused_with_a_sentence)
{
    static const struct {
        const char *endpoints, *member, *prefix, *user, *says;
    } wrong[] = {
        {"", "a", "/k/", NULL, "no endpoint"},
        {"127.0.0.1:2379", "a", "/k/", NULL, "write http://HOST:PORT"},
        {"http://a:1,ftp://b", "a", "/k/", NULL, "\"ftp://b\" is no endpoint"},
        {"http://u:p@a:1", "a", "/k/", NULL, "is no endpoint"},
        {"http://a:1", "A b", "/k/", NULL, "none of 1 to 63 characters"},
        {"http://a:1", NULL, "/k/", NULL, "none of 1 to 63 characters"},
        {"http://a:1", "a", "/\x01/", NULL, "other characters"},
        {"http://a:1", "a", "/k/", "root", "are set together"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct meta_store_etcd_config config =
            etcd_config(wrong[i].endpoints, wrong[i].prefix, wrong[i].member);
        struct meta_store *store = NULL;
        struct meta_store_watch *watch = NULL;
        config.user = wrong[i].user;
        ck_assert_int_eq(meta_store_etcd(&config, &store, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i].says) != NULL, "%s", err.text);
        ck_assert_int_eq(meta_store_etcd_watch(&config, &watch, &err), -EINVAL);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(values_of_somebody_else_are_refused_with_a_sentence)                                         \
    T(another_cluster_is_refused_until_its_content_is_known)                                       \
    T(an_etcd_that_was_put_back_is_not_written_to_by_who_knows_more)                               \
    T(an_etcd_that_was_put_back_and_went_on_is_told_as_such)                                       \
    T(a_user_shows_a_password_that_nobody_else_may_read)                                           \
    T(who_only_reads_makes_no_store_and_writes_to_none)                                            \
    T(a_store_takes_writes_again_when_it_has_taken_one)                                            \
    T(what_is_wrong_with_one_thing_says_nothing_of_the_store)                                      \
    T(a_node_that_nobody_can_read_keeps_no_other_from_expiring)                                    \
    T(what_speaks_otherwise_is_told_how)                                                           \
    T(of_several_endpoints_the_one_that_is_late_is_named)                                          \
    T(settings_that_make_no_sense_are_refused_with_a_sentence)
KEDGE_CHECK_MAIN("metaserver store etcd wrong", TESTS)
