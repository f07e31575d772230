/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks do to memory that a worker has too. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../check_main.h"
#include "../../collapse.h"
#include "base/fds.h"
#include "schema/session.h"
#include "tasks.h"

enum { SLOTS = 256 };

static struct world_rings rings;

/* A worker's own descriptors and mappings. */
struct worker {
    int rw_fd, ro_fd;
    struct schema_session_rw *rw;
    const struct schema_session_ro *ro;
};

static void make(struct worker *w)
{
    void *map;
    rings = (struct world_rings){.sq_slots = SLOTS,
                                 .cq_slots = SLOTS,
                                 .max_vqps = 4,
                                 .max_inflight = 16,
                                 .max_mrs = 4,
                                 .max_grants = 4};
    struct world_task t = {.work = WORLD_MAKE_RINGS, .rings = &rings};
    ck_assert_int_eq(TASK_RUNS[t.work](&t), 0);
    rings.ro->magic = SCHEMA_SESSION_MAGIC;
    *w = (struct worker){.rw_fd = dup(rings.rw_fd), .ro_fd = dup(rings.ro_fd)};
    ck_assert_int_eq(base_memfd_map(w->rw_fd, SCHEMA_SESSION_RW_BYTES(SLOTS), true, true, &map), 0);
    w->rw = map;
    ck_assert_int_eq(base_memfd_map(w->ro_fd, SCHEMA_SESSION_RO_BYTES(SLOTS), false, true, &map),
                     0);
    w->ro = map;
    memset(w->rw, 0x5a, SCHEMA_SESSION_RW_BYTES(SLOTS));
}

static void unmake(bool let_go)
{
    struct world_task t = {
        .work = WORLD_UNMAKE_RINGS, .rings = &rings, .let_go = let_go, .tenant = 1};
    ck_assert_int_eq(TASK_RUNS[t.work](&t), 0);
    ck_assert_uint_eq(t.left.count, let_go ? 2 : 0);
    agentd_task_empty_left(&t);
    ck_assert_ptr_null(rings.rw);
}

static int64_t blocks_of(const struct worker *w)
{
    struct stat rw, ro;
    ck_assert_int_eq(fstat(w->rw_fd, &rw), 0);
    ck_assert_int_eq(fstat(w->ro_fd, &ro), 0);
    return rw.st_blocks + ro.st_blocks;
}

static void leave(struct worker *w)
{
    munmap(w->rw, SCHEMA_SESSION_RW_BYTES(SLOTS));
    munmap((void *)(uintptr_t)w->ro, SCHEMA_SESSION_RO_BYTES(SLOTS));
    close(w->rw_fd);
    close(w->ro_fd);
}

START_TEST(who_keeps_what_he_was_lent_keeps_no_page_of_it)
{
    struct worker w;
    make(&w);
    ck_assert_int_ge(blocks_of(&w),
                     (SCHEMA_SESSION_RW_BYTES(SLOTS) + SCHEMA_SESSION_RO_BYTES(SLOTS)) / 512);
    unmake(true);
    ck_assert_int_eq(blocks_of(&w), 0);
    ck_assert_uint_eq(atomic_load(&w.ro->magic), 0);
    ck_assert_uint_eq(atomic_load(&w.rw->sq_tail), 0);
    leave(&w);
}
END_TEST

START_TEST(who_outlives_the_agent_reads_there_why_his_session_ended)
{
    struct worker w;
    make(&w);
    atomic_store(&rings.ro->ended, 7);
    unmake(false);
    ck_assert_uint_eq(atomic_load(&w.ro->magic), SCHEMA_SESSION_MAGIC);
    ck_assert_uint_eq(atomic_load(&w.ro->ended), 7);
    leave(&w);
}
END_TEST

static void is_held(int file, size_t bytes, int possible)
{
    ck_assert_int_eq(possible != 0 || collapse_try(file, bytes) != 0, 1);
}

START_TEST(nobody_makes_huge_pages_of_what_a_lane_reads_and_writes)
{
    struct worker w;
    struct world_peers peers = {.bytes = 3 << 20};
    struct world_task t = {.work = WORLD_MAKE_PEERS, .peers = &peers};
    const int possible = collapse_possible();
    if (possible != 0)
        printf("skip: huge pages of what a lane uses: %s\n", strerror(-possible));
    make(&w);
    const int hold = rings.hold;
    ck_assert_int_ge(hold, 0);
    is_held(w.rw_fd, SCHEMA_SESSION_RW_BYTES(SLOTS), possible);
    is_held(w.ro_fd, SCHEMA_SESSION_RO_BYTES(SLOTS), possible);
    unmake(true);
    ck_assert_int_eq(fcntl(hold, F_GETFD), -1);
    leave(&w);
    ck_assert_int_eq(TASK_RUNS[t.work](&t), 0);
    const int held = peers.hold;
    ck_assert_int_ge(held, 0);
    is_held(peers.fd, peers.bytes, possible);
    t.work = WORLD_FREE_PEERS;
    ck_assert_int_eq(TASK_RUNS[t.work](&t), 0);
    ck_assert_int_eq(fcntl(held, F_GETFD), -1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_keeps_what_he_was_lent_keeps_no_page_of_it)                                              \
    T(who_outlives_the_agent_reads_there_why_his_session_ended)                                    \
    T(nobody_makes_huge_pages_of_what_a_lane_reads_and_writes)
KEDGE_CHECK_MAIN("agent.daemon.task_runs", TESTS)
