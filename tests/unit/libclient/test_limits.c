/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that may do less than others: each call of libkedge then says why it failed, and leaves
 * nothing behind. What it asks the kernel for is refused one after another, by what the linker puts
 * in the place of the calls. The agent is another process. */
#include "fake_agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct {
    uint32_t left; /* calls until one is refused; 0: none is */
    uint32_t made;
    int error;
} refusal;

static bool is_refused(void)
{
    refusal.made++;
    if (refusal.left == 0 || --refusal.left > 0)
        return false;
    errno = refusal.error;
    return true;
}

#define REFUSABLE(type, failure, name, parameters, ...)                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return is_refused() ? (failure) : __real_##name(__VA_ARGS__);                              \
    }
REFUSABLE(void *, NULL, calloc, (size_t n, size_t bytes), n, bytes)
REFUSABLE(void *, MAP_FAILED, mmap, (void *at, size_t n, int p, int f, int fd, off_t o), at, n, p,
          f, fd, o)
REFUSABLE(int, -1, madvise, (void *at, size_t n, int advice), at, n, advice)
REFUSABLE(int, -1, socket, (int family, int type, int protocol), family, type, protocol)
REFUSABLE(int, -1, setsockopt, (int fd, int l, int o, const void *v, socklen_t n), fd, l, o, v, n)
REFUSABLE(int, -1, connect, (int fd, const struct sockaddr *a, socklen_t n), fd, a, n)
REFUSABLE(ssize_t, -1, sendmsg, (int fd, const struct msghdr *m, int flags), fd, m, flags)
REFUSABLE(ssize_t, -1, recvmsg, (int fd, struct msghdr *m, int flags), fd, m, flags)
REFUSABLE(int, -1, fcntl, (int fd, int command, long argument), fd, command, argument)
REFUSABLE(int, -1, fstat, (int fd, struct stat *out), fd, out)
REFUSABLE(int, -1, poll, (struct pollfd * p, nfds_t n, int ms), p, n, ms)
REFUSABLE(ssize_t, -1, write, (int fd, const void *bytes, size_t n), fd, bytes, n)

/* ---- the agent */

static const uint8_t peer[16] = {0xfd, 9};

/* The client may have given up meanwhile. */
static void send_answer(int connection, struct schema_control_header *h, uint32_t tag,
                        uint16_t type, uint32_t size, const int *fds, unsigned count)
{
    *h = (struct schema_control_header){.magic = SCHEMA_CONTROL_MAGIC,
                                        .version = SCHEMA_CONTROL_VERSION,
                                        .type = type,
                                        .tag = tag,
                                        .size = size};
    const int status = base_fds_send(connection, h, size, fds, count);
    ck_assert_msg(status == 0 || status == -EPIPE, "%s", strerror(-status));
}

static uint32_t arenas; /* of a connection, beside the one that it was given at first */

static void answer(int connection, const struct schema_control_header *h, struct fake_agent *a)
{
    struct schema_control_arena_ok arena = {.bytes = ARENA_BYTES, .arena = arenas + 1};
    struct schema_control_resolved node = {.pool = 1};
    if (h->type == SCHEMA_CONTROL_ATTACH) {
        send_answer(connection, &a->attached.h, h->tag, SCHEMA_CONTROL_ATTACHED, sizeof a->attached,
                    a->fds, a->send_fds);
    } else if (h->type == SCHEMA_CONTROL_ARENA) {
        const struct schema_control_arena *ask = (const struct schema_control_arena *)h;
        arenas++;
        if (ask->bytes > ARENA_BYTES) /* which cannot be mapped: its memory is not so large */
            arena.bytes = ask->bytes;
        send_answer(connection, &arena.h, h->tag, SCHEMA_CONTROL_ARENA_OK, sizeof arena,
                    a->fds + SCHEMA_FD_ARENA, 1);
    } else {
        memcpy(node.gid, peer, 16);
        send_answer(connection, &node.h, h->tag, SCHEMA_CONTROL_RESOLVED, sizeof node, NULL, 0);
    }
}

static _Noreturn void serve(struct fake_agent *a)
{
    for (;;) {
        union {
            struct schema_control_header h;
            uint8_t bytes[SCHEMA_CONTROL_MAX_BYTES];
        } m;
        size_t bytes;
        unsigned count;
        const int connection = accept(a->listener, NULL, NULL);
        arenas = 0;
        while (base_fds_recv(connection, &m, sizeof m, &bytes, NULL, 0, &count) == 0) {
            struct pollfd gone = {.fd = connection, .events = POLLRDHUP};
            if (poll(&gone, 1, 0) == 0)
                answer(connection, &m.h, a);
        }
        close(connection);
    }
}

static pid_t begin_serving(struct fake_agent *a)
{
    fake_agent_start(a);
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_ge(schema_peers_put(a->peers, 0, peer, 1, 1), 0);
    atomic_store(&a->ro->doorbell, 1);
    const pid_t agent = fork();
    ck_assert_int_ge(agent, 0);
    if (agent == 0)
        serve(a);
    a->connection = -1;
    return agent;
}

static void end_serving(struct fake_agent *a, pid_t agent)
{
    kill(agent, SIGKILL);
    ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
    fake_agent_stop(a);
}

/* ---- the worker */

static uint32_t count_lines(const char *path, const char *with)
{
    char line[512];
    uint32_t lines = 0;
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL)
        lines += strstr(line, with) != NULL;
    fclose(f);
    return lines;
}

static uint32_t count_fds(void)
{
    uint32_t count = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

/* A reason goes with each failure. */
static bool worked(int status)
{
    ck_assert_int_le(status, 0);
    ck_assert(status == 0 || strlen(kedge_last_error()) > 0);
    return status == 0;
}

/* All that asks the kernel for something. False: some of it failed. */
static bool live_a_life(const struct fake_agent *a)
{
    const struct kedge_open_attr attr = {.socket = a->path};
    struct ibv_sge sge = {.length = 8};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1}, *bad;
    struct kedge_session *s = NULL;
    struct kedge_vqp *q;
    struct kedge_mr *mr;
    void *one, *two;
    if (!worked(kedge_open(&attr, &s))) {
        ck_assert_ptr_null(s);
        return false;
    }
    bool all = worked(kedge_alloc(s, ARENA_BYTES, &one, &sge.lkey));
    sge.addr = (uintptr_t)one;
    all = all && worked(kedge_alloc(s, ARENA_BYTES, &two, &sge.lkey)); /* of another arena */
    sge.addr = all ? (uintptr_t)two : 0;
    all = all && worked(kedge_reg_mr(s, two, 64, 0, &mr));
    all = all && worked(kedge_vqp_create(s, NULL, &q));
    all = all && worked(kedge_connect_node(q, "node7"));
    all = all && worked(kedge_post_send(q, &wr, &bad));
    all = all && worked(kedge_session_status(s));
    kedge_close(s);
    return all;
}

START_TEST(whatever_the_kernel_refuses_is_said_and_nothing_is_left)
{
    static const int errors[] = {ENOMEM, EMFILE, EPERM, ENOSYS};
    struct fake_agent a;
    const pid_t agent = begin_serving(&a);
    ck_assert(live_a_life(&a));
    refusal.made = 0;
    ck_assert(live_a_life(&a));
    const uint32_t calls = refusal.made, fds = count_fds(),
                   maps = count_lines("/proc/self/maps", "memfd:");
    ck_assert_uint_gt(calls, 30);
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        uint32_t failed = 0;
        for (uint32_t n = 1; n <= calls; n++) {
            refusal.left = n;
            refusal.error = errors[e];
            failed += !live_a_life(&a);
            refusal.left = 0;
            ck_assert_msg(count_fds() == fds, "call %u of %u: %u descriptors, not %u", n, calls,
                          count_fds(), fds);
            ck_assert_uint_eq(count_lines("/proc/self/maps", "memfd:"), maps);
        }
        ck_assert_uint_gt(failed, calls / 2);
    }
    ck_assert(live_a_life(&a));
    end_serving(&a, agent);
}
END_TEST

/* Descriptors that cannot be received do not come with an error, but are left out. */
START_TEST(who_may_open_too_few_descriptors_is_told_so)
{
    struct fake_agent a;
    struct rlimit limit, before;
    const pid_t agent = begin_serving(&a);
    const int next = dup(0);
    ck_assert_int_ge(next, 0);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (rlim_t more = 0; more <= SCHEMA_FD_COUNT; more++) {
        struct kedge_session *s = NULL;
        const struct kedge_open_attr attr = {.socket = a.path};
        limit = (struct rlimit){.rlim_cur = (rlim_t)next + more, .rlim_max = before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const int status = kedge_open(&attr, &s);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_int_eq(status, -EMFILE);
        ck_assert_ptr_null(s);
        ck_assert_msg(strstr(kedge_last_error(), "RLIMIT_NOFILE") != NULL, "%s",
                      kedge_last_error());
        const int free_one = dup(0);
        ck_assert_int_eq(free_one, next);
        close(free_one);
    }
    ck_assert(live_a_life(&a));
    end_serving(&a, agent);
}
END_TEST

/* Else it would be this session's, and count, and nobody could have it. */
START_TEST(an_arena_for_which_there_is_no_descriptor_is_not_asked_for)
{
    struct fake_agent a;
    struct rlimit before, limit;
    struct kedge_session *s = NULL;
    void *one, *two;
    uint32_t first, lkey;
    const pid_t agent = begin_serving(&a);
    const struct kedge_open_attr attr = {.socket = a.path};
    ck_assert_int_eq(kedge_open(&attr, &s), 0);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &one, &first), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    ck_assert_int_ge(next, 0);
    close(next);
    limit = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &two, &lkey), -EMFILE);
        ck_assert_ptr_nonnull(strstr(kedge_last_error(), "RLIMIT_NOFILE"));
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &two, &lkey), 0);
    ck_assert_uint_eq(lkey, first + 1); /* the next one that was asked for */
    kedge_close(s);
    end_serving(&a, agent);
}
END_TEST

/* It is the session's all the same. */
START_TEST(an_arena_that_cannot_be_mapped_is_tried_again_and_no_other_is_asked_for)
{
    struct fake_agent a;
    const pid_t agent = begin_serving(&a);
    const struct kedge_open_attr attr = {.socket = a.path};
    const uint32_t fds = count_fds();
    uint32_t unmapped = 0;
    for (uint32_t n = 1; n <= 12; n++) {
        struct kedge_session *s = NULL;
        void *one, *two;
        uint32_t first, lkey;
        ck_assert_int_eq(kedge_open(&attr, &s), 0);
        ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &one, &first), 0);
        refusal.left = n;
        refusal.error = ENOMEM;
        const int status = kedge_alloc(s, ARENA_BYTES, &two, &lkey);
        refusal.left = 0;
        if (status == -ENOMEM && strstr(kedge_last_error(), "arena") != NULL) {
            unmapped++;
            ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &two, &lkey), 0);
            ck_assert_uint_eq(lkey, first + 1);
        }
        kedge_close(s);
        ck_assert_uint_eq(count_fds(), fds);
    }
    ck_assert_uint_ge(unmapped, 2); /* the memory, and what is kept of it */
    end_serving(&a, agent);
}
END_TEST

/* As whoever tries less when much is not to be had. */
START_TEST(beside_a_large_arena_that_cannot_be_mapped_a_small_one_is_asked_for)
{
    struct fake_agent a;
    const pid_t agent = begin_serving(&a);
    const struct kedge_open_attr attr = {.socket = a.path};
    const uint32_t fds = count_fds();
    struct kedge_session *s = NULL;
    void *one, *two;
    uint32_t first, lkey;
    ck_assert_int_eq(kedge_open(&attr, &s), 0);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &one, &first), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(kedge_alloc(s, (size_t)4 * ARENA_BYTES, &two, &lkey), 0);
    ck_assert_int_ne(kedge_alloc(s, (size_t)3 * ARENA_BYTES, &two, &lkey), 0);
    ck_assert_int_eq(kedge_alloc(s, ARENA_BYTES, &two, &lkey), 0);
    ck_assert_uint_eq(lkey, first + 2); /* the large one was asked for once */
    kedge_close(s);
    ck_assert_uint_eq(count_fds(), fds);
    end_serving(&a, agent);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(whatever_the_kernel_refuses_is_said_and_nothing_is_left)                                     \
    T(who_may_open_too_few_descriptors_is_told_so)                                                 \
    T(an_arena_for_which_there_is_no_descriptor_is_not_asked_for)                                  \
    T(an_arena_that_cannot_be_mapped_is_tried_again_and_no_other_is_asked_for)                     \
    T(beside_a_large_arena_that_cannot_be_mapped_a_small_one_is_asked_for)
KEDGE_CHECK_MAIN("libclient limits", TESTS)
