/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver on SQLite is killed, or its disk is full, at each write of the store in turn, while
 * every kind of what it keeps is made, changed and taken away: what was acknowledged is there
 * afterwards, what was not is there as a whole or not at all, and things go on from there.
 *
 * The calls by which SQLite changes files are this program's own, which stand before the C
 * library's. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "resources_world.h"

#define EXPORTED __attribute__((visibility("default")))

/* ---- faults */

enum fault { NONE, KILLED, TORN, FULL };

static struct {
    enum fault kind;
    uint64_t
        at; /* the number of the write that meets it; those after it too, if the disk is full */
    uint64_t now; /* writes so far */
} disk;

/* Whether this write meets the fault; who is killed does not come back. */
static bool meets_fault(void)
{
    if (++disk.now < disk.at || disk.kind == NONE || (disk.kind != FULL && disk.now > disk.at))
        return false;
    if (disk.kind == KILLED)
        kill(getpid(), SIGKILL);
    return true;
}

EXPORTED ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset)
{
    bool fault = meets_fault();
    if (!fault)
        return syscall(SYS_pwrite64, fd, bytes, count, offset);
    /* A disk on which there is still some room takes a part. */
    ssize_t n = disk.kind == TORN || disk.now == disk.at
                    ? syscall(SYS_pwrite64, fd, bytes, count / 2, offset)
                    : 0;
    if (disk.kind == TORN)
        kill(getpid(), SIGKILL);
    if (n > 0)
        return n;
    errno = ENOSPC;
    return -1;
}

static int refuse(void)
{
    if (disk.kind == TORN)
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

EXPORTED int ftruncate64(int fd, off64_t length)
{
    return meets_fault() ? refuse() : (int)syscall(SYS_ftruncate, fd, length);
}

EXPORTED int fdatasync(int fd)
{
    return meets_fault() ? refuse() : (int)syscall(SYS_fdatasync, fd);
}

EXPORTED int unlink(const char *path)
{
    if (disk.kind != FULL && meets_fault())
        return refuse();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); /* for which a full disk has room */
}

/* ---- what is done */

#define NODE(incarnation, gid)                                                                     \
    "{\"incarnation\":" #incarnation ",\"endpoints\":[{\"gid\":\"fd00::" #gid "\",\"pool\":1,"     \
    "\"transports\":[\"dc\"],\"dct_number\":7,\"dc_key\":\"5be0cd19137e2179\",\"mtu\":4096}]}"
#define SECRET  ",\"secret\":\"kedge_ci_0123456789012345678901234567890123456789012\"}"
#define RESTART "restart" /* the store is closed, and opened again */
#define TICK    "tick"    /* a node's lease, or the time for which it is remembered, ends */

static const struct step {
    const char *method, *path, *json;
    int status;
} steps[] = {
    {"PUT", "/v1/nodes/n1", NODE(5, 1), 201},
    {"PUT", "/v1/nodes/n2", NODE(5, 2), 201},
    {"PUT", "/v1/tenants/web", "{\"uids\":[5,\"7-9\"]}", 201},
    {"PUT", "/v1/windows/w", "{\"scope\":\"tenant\",\"tenant\":\"web\",\"ops\":7}", 201},
    {"PUT", "/v1/tokens/ci", "{\"scope\":\"reader\"" SECRET, 201},
    {"PUT", "/v1/nodes/n1/settings", "{\"labels\":{\"zone\":\"a\"}}", 201},
    {"PUT", "/v1/pools/p", "{\"nodes\":{\"zone\":\"a\"},\"spares\":2}", 201},
    {RESTART, NULL, NULL, 0},
    {"PUT", "/v1/nodes/n1", NODE(6, 3), 200},
    {"PUT", "/v1/tenants/web", "{\"uids\":[5],\"sessions\":3}", 200},
    {"PUT", "/v1/windows/w", "{\"scope\":\"device\",\"bytes\":7}", 200},
    {"PUT", "/v1/tokens/ci", "{\"scope\":\"operator\"}", 200},
    {"PUT", "/v1/nodes/n1/settings", "{\"cordoned\":true,\"reason\":\"a disk\"}", 200},
    {"PUT", "/v1/pools/p", "{\"nodes\":{},\"spares\":3}", 200},
    {"DELETE", "/v1/nodes/n2", "", 204},
    {"DELETE", "/v1/pools/p", "", 204},
    {"DELETE", "/v1/nodes/n1/settings", "", 204},
    {"DELETE", "/v1/tokens/ci", "", 204},
    {RESTART, NULL, NULL, 0},
    {"DELETE", "/v1/windows/w", "", 204},
    {"DELETE", "/v1/tenants/web", "", 204},
    {"PUT", "/v1/tenants/a", "{\"uids\":[1]}", 201},
    {"PUT", "/v1/tenants/b", "{\"uids\":[2]}", 201}, /* the trail forgets its oldest entry */
    {TICK, NULL, NULL, 0},
    {TICK, NULL, NULL, 0},
    {RESTART, NULL, NULL, 0},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

static char directory[64], path[96];

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock"};
    for (int i = 0; i < 4; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static void begin(void)
{
    disk.kind = NONE;
    /* A metaserver's tables have room for all that may ever come: tens of megabytes, of which a
     * little is used. The kernel's memory is zero without being touched. The C library would keep
     * what is freed for the next metaserver, and fill it with zeroes, hundreds of times. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    base_log_init("test", BASE_LOG_ERROR);
    snprintf(directory, sizeof directory, "/dev/shm/kedge-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/metad.db", directory);
    memory = aligned_alloc(64, schema_table_bytes(schema_table_log2_slots(16)));
    base_text_init(&body, 4 << 20);
}

static void end(void)
{
    disk.kind = NONE;
    remove_files();
    ck_assert_int_eq(rmdir(directory), 0);
    base_text_fini(&body);
    free(memory);
}

/* The store, and a metaserver on it. While the disk is full there may be none, and a sentence says
 * why. */
static bool open_all(void)
{
    struct meta_store *store = NULL;
    struct base_errbuf err;
    now = BASE_NS_PER_S;
    if (meta_store_sqlite(path, &store, &err) != 0) {
        ck_assert_msg(disk.kind == FULL && strstr(err.text, "is full") != NULL, "write %llu: %s",
                      (unsigned long long)disk.at, err.text);
        return false;
    }
    open_service(store);
    return true;
}

static void close_all(void)
{
    close_service();
    meta_store_close(s.store);
}

/* Does a step. False: it was refused, because the disk is full. */
static bool take(const struct step *step)
{
    if (strcmp(step->method, RESTART) == 0) {
        close_all();
        return open_all();
    }
    if (strcmp(step->method, TICK) == 0) {
        uint64_t errors = s.count.store_errors;
        now += 1001 * BASE_NS_PER_S;
        meta_service_tick(&s, now, 0);
        settle();
        return s.count.store_errors == errors;
    }
    request.shown.local = true;
    int status = ask(step->method, step->path, step->json);
    ck_assert_msg(status == step->status || (status == 503 && disk.kind == FULL), "%s %s: %d %s",
                  step->method, step->path, status, base_text_str(&body));
    ck_assert_msg(status != 503 || says("is full: make room"), "write %llu: %s",
                  (unsigned long long)disk.at, base_text_str(&body));
    return status == step->status;
}

/* ---- what is there */

enum { TEXT = 8192 };

static int list_node(void *user, const struct meta_store_node *n)
{
    char *end = strchr(user, '\0');
    snprintf(end, TEXT - strlen(user), "%s %u %08x/%u %08x %d %u %02x\n", n->id, n->incarnation,
             n->fingerprint.identity, n->fingerprint.count, n->fingerprint.print[0].body,
             n->expired, n->endpoint_count, n->endpoint[0].gid[15]);
    return 0;
}

static int list_setting(void *user, const struct meta_store_resource *x)
{
    char *end = strchr(user, '\0');
    snprintf(end, TEXT - strlen(user), "%s/%s %llu %s\n", x->kind, x->name,
             (unsigned long long)x->revision, x->body);
    return 0;
}

static int list_change(void *user, const struct meta_store_change *x)
{
    char *end = strchr(user, '\0');
    snprintf(end, TEXT - strlen(user), "%llu %s %s %s %s>%s\n", (unsigned long long)x->revision,
             x->who, x->kind, x->name, x->before != NULL ? x->before : "-",
             x->after != NULL ? x->after : "-");
    return 0;
}

/* All that is stored. */
static void list(struct meta_store *store, char text[TEXT])
{
    const struct meta_store_visitor visitor = {
        .resource = list_setting, .change = list_change, .user = text};
    struct base_errbuf err;
    text[0] = '\0';
    ck_assert_int_eq(meta_store_load(store, list_node, text, &err), 0);
    ck_assert_int_eq(meta_store_load_resources(store, &visitor, &err), 0);
    ck_assert_uint_lt(strlen(text), TEXT - 1);
}

/* All that is shown. */
static void show(char text[2 * TEXT])
{
    static const char *const paths[] = {"/v1/nodes",  "/v1/tenants", "/v1/windows",
                                        "/v1/tokens", "/v1/pools",   "/v1/events"};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        request.shown.local = true;
        ck_assert_int_eq(ask("GET", paths[i], ""), 200);
        snprintf(strchr(text, '\0'), 2 * TEXT - strlen(text), "%s", base_text_str(&body));
    }
    ck_assert_uint_lt(strlen(text), 2 * TEXT - 1);
}

/* What is stored after each step when nothing goes wrong; [0]: before the first. And how many
 * writes that takes. */
static char after[STEPS + 1][TEXT];

static uint64_t rehearse(void)
{
    begin();
    disk.now = 0;
    ck_assert(open_all());
    list(s.store, after[0]);
    for (int i = 0; i < STEPS; i++) {
        ck_assert(take(&steps[i]));
        list(s.store, after[i + 1]);
    }
    close_all();
    uint64_t writes = disk.now;
    end();
    ck_assert_str_eq(after[0], "");
    ck_assert_ptr_nonnull(strstr(after[STEPS], "tenant/b "));
    ck_assert_ptr_null(strstr(after[STEPS], "\n1 uid 7 tenant web"));
    ck_assert_uint_ge(writes, 5 * STEPS); /* else they are not the ones that SQLite makes */
    return writes;
}

/* ---- killed */

static _Atomic int *acknowledged; /* steps; shared with the one that is killed */

/* Another process does all steps. Whether it was killed on the way. */
static bool killed_at(enum fault kind, uint64_t at)
{
    int status;
    atomic_store(acknowledged, 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        disk.kind = kind;
        disk.at = at;
        disk.now = 0;
        if (!open_all())
            _exit(1);
        for (int i = 0; i < STEPS; i++) {
            if (!take(&steps[i]))
                _exit(1);
            atomic_store(acknowledged, i + 1);
        }
        close_all();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL), "%d",
                  status);
    return status != 0;
}

/* The address sanitizer takes ten times as long, and sees the same code at one write as at another:
 * it has each fifth, the release build all. */
#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

static void kill_at_each_write(enum fault kind)
{
    static char found[TEXT];
    uint64_t writes = rehearse(), at = 1;
    acknowledged =
        mmap(NULL, sizeof *acknowledged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(acknowledged, MAP_FAILED);
    for (bool killed = true; killed; at += STRIDE) {
        begin();
        killed = killed_at(kind, at);
        int done = atomic_load(acknowledged);
        ck_assert(open_all());
        list(s.store, found);
        if (strcmp(found, after[done]) != 0) { /* then what was under way is there, as a whole */
            ck_assert_int_lt(done, STEPS);
            ck_assert_msg(strcmp(found, after[done + 1]) == 0, "write %llu, after step %d: %s",
                          (unsigned long long)at, done, found);
            done++;
        }
        for (; done < STEPS; done++)
            ck_assert(take(&steps[done]));
        list(s.store, found);
        ck_assert_str_eq(found, after[STEPS]);
        close_all();
        end();
    }
    /* Each of them was met, and one more that never came. */
    ck_assert_uint_gt(at, writes + STRIDE);
    ck_assert_uint_le(at, writes + 2 * STRIDE);
    munmap(acknowledged, sizeof *acknowledged);
}

START_TEST(who_is_killed_at_any_write_has_kept_what_it_acknowledged)
{
    kill_at_each_write(KILLED);
}
END_TEST

START_TEST(who_is_killed_in_the_middle_of_any_write_has_kept_it_too)
{
    kill_at_each_write(TORN);
}
END_TEST

/* ---- full */

/* Does a step while the disk may be full, and again when there is room. Whether it was full. */
static bool take_or_wait(int i)
{
    static char found[TEXT], before[2 * TEXT], shown[2 * TEXT];
    const bool asked = steps[i].path != NULL, restarts = strcmp(steps[i].method, RESTART) == 0;
    if (asked)
        show(before);
    if (take(&steps[i]))
        return false;
    if (asked) { /* it goes on, and nothing has changed */
        show(shown);
        ck_assert_str_eq(shown, before);
    }
    if (!restarts) {
        list(s.store, found);
        ck_assert_str_eq(found, after[i]);
    }
    disk.kind = NONE; /* somebody made room */
    ck_assert(restarts ? open_all() : take(&steps[i]));
    return true;
}

START_TEST(who_has_no_room_at_any_write_says_so_and_goes_on_when_there_is)
{
    static char found[TEXT];
    uint64_t writes = rehearse(), refused = 0;
    for (uint64_t at = 1; at <= writes; at += STRIDE) {
        begin();
        disk.kind = FULL;
        disk.at = at;
        disk.now = 0;
        if (!open_all()) {
            disk.kind = NONE;
            refused++;
            ck_assert(open_all());
        }
        for (int i = 0; i < STEPS; i++) {
            refused += take_or_wait(i);
            list(s.store, found);
            ck_assert_msg(strcmp(found, after[i + 1]) == 0, "write %llu, after step %d: %s",
                          (unsigned long long)at, i, found);
        }
        close_all();
        end();
    }
    /* But for those that only tidy up, behind what was kept already. */
    ck_assert_uint_ge(refused, writes / STRIDE / 2);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_killed_at_any_write_has_kept_what_it_acknowledged)                                    \
    T(who_is_killed_in_the_middle_of_any_write_has_kept_it_too)                                    \
    T(who_has_no_room_at_any_write_says_so_and_goes_on_when_there_is)
KEDGE_CHECK_MAIN("metaserver store writes", TESTS)
