/* SPDX-License-Identifier: Apache-2.0 */
/* Files that workers had, until they are empty. One of HANGS bytes is not emptied until the test
 * lets it: its holder keeps its lock. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "emptier.h"

enum { HANGS = 3 << 12, BYTES = 1 << 20, WAIT_MS = 60000 };

static struct shared {
    _Atomic uint32_t go_on, hang, forkless, refused;
} * shared;

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    if (shared == NULL || shared->forkless == 0)
        return __real_fork();
    shared->refused++;
    errno = EAGAIN;
    return -1;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    struct stat st;
    if ((mode & FALLOC_FL_PUNCH_HOLE) != 0 && fstat(fd, &st) == 0 && st.st_size == HANGS) {
        shared->hang++;
        while (shared->go_on == 0)
            (void)syscall(SYS_futex, &shared->go_on, FUTEX_WAIT, 0, NULL, NULL, 0);
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void let_go(void)
{
    shared->go_on = 1;
    (void)syscall(SYS_futex, &shared->go_on, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static uv_loop_t loop;
static struct emptier_process process;
static struct emptier emptier;
static struct agent_tenants tenants; /* without names */

static void begin(void)
{
    struct base_errbuf err = {""};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_msg(agentd_emptier_process_start(&process, &err) == 0, "%s", err.text);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    emptier = (struct emptier){.process = &process, .loop = &loop, .tenants = &tenants};
    ck_assert_msg(agentd_emptier_start(&emptier, &err) == 0, "%s", err.text);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    uv_close(handle, NULL);
}

static void end(void)
{
    uv_walk(&loop, close_handle, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    agentd_emptier_stop(&emptier);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    let_go();
    agentd_emptier_process_stop(&process);
    munmap(shared, sizeof *shared);
}

/* What a worker keeps, and whether the agent has heard that it is empty. */
struct kept {
    int fd;
    void *map;
    size_t bytes;
    bool done;
};

static void on_done(void *user)
{
    struct kept *k = user;
    k->done = true;
}

static void take(struct kept *k, uint32_t tenant, size_t bytes, enum base_memfd_others others)
{
    struct world_left left = {.count = 1};
    *k = (struct kept){.bytes = bytes};
    ck_assert_int_eq(base_memfd_new("kedge-test", bytes, others, &left.file[0], &k->map), 0);
    k->fd = dup(left.file[0]);
    memset(k->map, 0x5a, bytes);
    agentd_emptier_take(&emptier, tenant, &left, on_done, k);
}

static bool is_empty(const struct kept *k)
{
    struct stat st;
    ck_assert_int_eq(fstat(k->fd, &st), 0);
    return st.st_blocks == 0;
}

static void drop(struct kept *k)
{
    munmap(k->map, k->bytes);
    close(k->fd);
}

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    usleep(1000);
}

static void await(const struct kept *k)
{
    for (int i = 0; i < WAIT_MS && !k->done; i++)
        turn();
    ck_assert(k->done);
}

START_TEST(what_a_worker_keeps_is_emptied_before_the_agent_hears_that_it_is)
{
    struct kept rw, ro;
    begin();
    take(&rw, 1, BYTES, BASE_MEMFD_WRITE);
    take(&ro, 1, BYTES, BASE_MEMFD_READ);
    await(&rw);
    ck_assert(is_empty(&rw));
    await(&ro);
    ck_assert(is_empty(&ro));
    drop(&rw);
    drop(&ro);
    end();
}
END_TEST

START_TEST(who_keeps_his_file_from_being_emptied_keeps_nobody_elses)
{
    struct kept slow, behind, others[8];
    begin();
    take(&slow, 1, HANGS, BASE_MEMFD_WRITE);
    for (int i = 0; i < WAIT_MS && shared->hang == 0; i++)
        turn();
    ck_assert_uint_eq(shared->hang, 1);
    take(&behind, 1, BYTES, BASE_MEMFD_WRITE);
    for (uint32_t i = 0; i < 8; i++)
        take(&others[i], 2 + i, BYTES, BASE_MEMFD_WRITE);
    for (uint32_t i = 0; i < 8; i++) {
        await(&others[i]);
        ck_assert(is_empty(&others[i]));
        drop(&others[i]);
    }
    ck_assert(!slow.done && !behind.done);
    let_go();
    await(&slow);
    await(&behind);
    ck_assert(is_empty(&slow) && is_empty(&behind));
    drop(&slow);
    drop(&behind);
    end();
}
END_TEST

START_TEST(more_files_than_a_process_can_have_are_emptied_in_turns)
{
    enum { FILES = 3 * EMPTIER_BATCH };
    struct kept slow, k[FILES];
    begin();
    take(&slow, 1, HANGS, BASE_MEMFD_WRITE);
    for (int i = 0; i < FILES; i++)
        take(&k[i], 1, 4096, BASE_MEMFD_WRITE);
    let_go();
    await(&slow);
    for (int i = 0; i < FILES; i++) {
        await(&k[i]);
        ck_assert(is_empty(&k[i]));
        drop(&k[i]);
    }
    drop(&slow);
    end();
}
END_TEST

/* As long as this user, or this host, has as many processes as it may. */
START_TEST(what_no_process_can_be_made_for_is_emptied_later_and_counts_until_then)
{
    struct kept slow, k;
    begin();
    take(&slow, 1, HANGS, BASE_MEMFD_WRITE);
    for (int i = 0; i < WAIT_MS && shared->hang == 0; i++)
        turn();
    shared->forkless = 1;
    take(&k, 2, BYTES, BASE_MEMFD_WRITE);
    for (int i = 0; i < WAIT_MS && shared->refused < 3; i++)
        turn();
    ck_assert_uint_ge(shared->refused, 3);
    ck_assert(!k.done);
    let_go(); /* what has a process is said to be empty all the same */
    await(&slow);
    shared->forkless = 0;
    await(&k);
    ck_assert(is_empty(&k));
    drop(&slow);
    drop(&k);
    end();
}
END_TEST

START_TEST(its_process_ends_with_the_agent_also_when_it_can_make_no_other)
{
    struct kept k;
    int how;
    begin();
    shared->forkless = 1;
    take(&k, 1, BYTES, BASE_MEMFD_WRITE);
    for (int i = 0; i < WAIT_MS && shared->refused < 3; i++)
        turn();
    ck_assert_int_eq(shutdown(process.fd, SHUT_RDWR), 0);
    ck_assert_int_eq(waitpid(process.pid, &how, 0), process.pid);
    ck_assert_int_eq(how, 0);
    await(&k);
    drop(&k);
    process.pid = 0;
    end();
    close(process.fd);
}
END_TEST

START_TEST(nobody_waits_for_it_when_the_agent_ends)
{
    struct kept slow, behind, late;
    begin();
    take(&slow, 1, HANGS, BASE_MEMFD_WRITE);
    take(&behind, 1, BYTES, BASE_MEMFD_WRITE);
    agentd_emptier_stop(&emptier);
    ck_assert(slow.done && behind.done);
    take(&late, 2, BYTES, BASE_MEMFD_WRITE);
    ck_assert(late.done);
    drop(&slow);
    drop(&behind);
    drop(&late);
    end();
}
END_TEST

START_TEST(without_its_process_files_are_closed_as_they_are)
{
    struct kept slow, behind, late;
    begin();
    take(&slow, 1, HANGS, BASE_MEMFD_WRITE);
    take(&behind, 1, BYTES, BASE_MEMFD_WRITE);
    ck_assert_int_eq(kill(process.pid, SIGKILL), 0);
    await(&slow);
    await(&behind);
    take(&late, 2, BYTES, BASE_MEMFD_WRITE);
    ck_assert(late.done);
    drop(&slow);
    drop(&behind);
    drop(&late);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_a_worker_keeps_is_emptied_before_the_agent_hears_that_it_is)                            \
    T(who_keeps_his_file_from_being_emptied_keeps_nobody_elses)                                    \
    T(more_files_than_a_process_can_have_are_emptied_in_turns)                                     \
    T(what_no_process_can_be_made_for_is_emptied_later_and_counts_until_then)                      \
    T(its_process_ends_with_the_agent_also_when_it_can_make_no_other)                              \
    T(nobody_waits_for_it_when_the_agent_ends)                                                     \
    T(without_its_process_files_are_closed_as_they_are)

KEDGE_CHECK_MAIN("agent.daemon.emptier", TESTS)
