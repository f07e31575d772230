/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are kept from their processor in the middle of a call on memory that they were
 * given, by others of the same process: whoever waits for what they hold there waits as long. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hostile.h"
#include "schema/record.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static const size_t HUGE_PAGE = 2u << 20;

enum { HOGS = 4, SESSIONS = 8, OUT = 4, STOOD_MS = 10000 };

static cpu_set_t all;       /* processors that this process may have */
static _Atomic bool over;   /* the hogs leave */
static _Atomic pid_t idler; /* the thread that they keep from its processor, or 0 */

/* All of them on one processor: the first that this process may have. */
static void gather(void)
{
    cpu_set_t one;
    int cpu = 0;
    if (!CPU_COUNT(&all))
        return;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void *hog(void *user)
{
    gather();
    while (!over)
        (void)getppid();
    return user;
}

static void become_idle(void)
{
    const struct sched_param none = {0};
    gather();
    idler = gettid();
    (void)sched_setscheduler(0, SCHED_IDLE, &none);
}

/* The starved thread may end what it is in, wherever there is a processor for it: the process
 * cannot end before that. */
static void release(void)
{
    over = true;
    if (idler != 0 && CPU_COUNT(&all))
        (void)sched_setaffinity(idler, sizeof all, &all);
}

static void begin_thread(void *(*run)(void *user), void *user)
{
    pthread_t thread;
    if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof all, &all) != 0)
        CPU_ZERO(&all);
    if (pthread_create(&thread, NULL, run, user) != 0 || pthread_detach(thread) != 0)
        hostile_fail("no thread");
}

/* ---- holes in the memory of a session */

static void punch_all(int fd, uint64_t bytes, void *map)
{
    (void)fallocate(fd, 0, 0, (off_t)bytes);
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
    (void)madvise(map, bytes, MADV_REMOVE);
}

static void *punch_for_ever(void *user)
{
    const struct raw *r = user;
    become_idle();
    for (;;)
        punch_all(r->fd[SCHEMA_FD_ARENA], r->arena_bytes, r->arena);
    return NULL;
}

static void read_somewhere(struct hostile *h, struct raw *r, uint32_t vkey)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_READ,
        .slots = 1,
        .num_sge = 1,
        .flags = SCHEMA_OP_SIGNALED,
        .post = {.length = 8,
                 .offset = hostile_random(h) % (r->arena_bytes / 4096) * 4096,
                 .vkey = vkey}};
    raw_put(r, &d, NULL, 0);
}

/* The lane copies into pages that a starved thread would take away. */
void attack_idle_punch(struct hostile *h)
{
    static struct raw r;
    uint64_t value[2];
    uint32_t out = 0;
    raw_open(h, &r);
    struct schema_sq_desc reg = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.length = 65536, .access = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE}};
    if (raw_connect(&r) != 0 || raw_ask(&r, &reg, value) != 0)
        hostile_fail("registering own memory failed");
    begin_thread(punch_for_ever, &r);
    for (int i = 0; i < HOGS; i++)
        begin_thread(hog, NULL);
    for (uint64_t last = base_clock_ns(); !hostile_over(h);) {
        struct schema_cqe e;
        if (raw_ended(&r))
            hostile_fail("the session has ended");
        for (; out < OUT; out++)
            read_somewhere(h, &r, (uint32_t)value[0]);
        for (; raw_poll(&r, &e, 0) >= 0; out--, h->did++)
            last = base_clock_ns();
        if (base_clock_ns() - last > STOOD_MS * BASE_NS_PER_MS)
            hostile_fail("the lane stands still");
        usleep(20);
    }
    release();
    raw_close(&r);
}

/* ---- huge pages of the memory of a session */

enum { MAPPINGS = 60000, PAGE = 4096, CALLS = 3, LONGER = 30 };

static _Atomic uint32_t calls; /* that have come back */
static char *often;

/* The kernel looks at each mapping of a page that is to go into a huge one, and ends its turn
 * between two of them. */
static void map_often(int fd)
{
    often = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (often == MAP_FAILED)
        hostile_fail("mmap: %s", strerror(errno));
    for (size_t i = 0; i < MAPPINGS; i++)
        if (mmap(often + i * PAGE, PAGE, i % 2 != 0 ? PROT_READ : PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_POPULATE | MAP_FIXED, fd, 0) == MAP_FAILED)
            return;
}

/* The first huge page of a file, whose mapping may be longer than that. */
static char *map_huge(int fd, uint64_t bytes)
{
    char *room = mmap(NULL, 2 * HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        hostile_fail("mmap: %s", strerror(errno));
    char *at = room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
    if (mmap(at, HUGE_PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != at)
        hostile_fail("mmap: %s", strerror(errno));
    for (uint64_t i = 0; i < bytes && i < HUGE_PAGE; i += 4096)
        (void)*(volatile char *)(at + i);
    return at;
}

static void *collapse_for_ever(void *user)
{
    const struct raw *r = user;
    char *rw = map_huge(r->fd[SCHEMA_FD_RW], r->rw_bytes);
    char *ro = map_huge(r->fd[SCHEMA_FD_RO], r->ro_bytes);
    char *peers = map_huge(r->fd[SCHEMA_FD_PEERS], r->peers_bytes);
    for (int i = 0; i < HOGS; i++)
        begin_thread(hog, NULL);
    become_idle();
    for (;; calls++) {
        (void)madvise(rw, HUGE_PAGE, MADV_COLLAPSE);
        (void)madvise(ro, HUGE_PAGE, MADV_COLLAPSE);
        (void)madvise(peers, HUGE_PAGE, MADV_COLLAPSE);
    }
    return NULL;
}

/* The lane reads its ring, whose page a starved thread has taken from all who map it: other
 * sessions of the lane are answered all the same, of which this has one. */
void attack_idle_collapse(struct hostile *h)
{
    static struct raw r, other;
    raw_open(h, &r);
    raw_open(h, &other);
    map_often(r.fd[SCHEMA_FD_RW]);
    begin_thread(collapse_for_ever, &r);
    /* Starved, it is in its first calls all the time: longer than others take. */
    const uint64_t end_ns = base_clock_ns() + LONGER * h->ms * BASE_NS_PER_MS;
    for (bool last = false; !last;) {
        struct schema_sq_desc d = {.op = SCHEMA_OP_MR_STATUS};
        last = hostile_over(h) && (calls >= CALLS || base_clock_ns() >= end_ns);
        raw_ring(&r);
        if (raw_ask(&other, &d, NULL) == -EPIPE) /* it fails when the lane stands still */
            hostile_fail("the session has ended");
        h->did++;
        usleep(100);
    }
    release();
    raw_close(&other);
    raw_close(&r);
    /* Not by the starved thread, if that is the process's last one. */
    (void)munmap(often, (size_t)MAPPINGS * PAGE);
}

/* ---- the lock of files whose session is over */

static void *lock_for_ever(void *user)
{
    const struct raw *r = user;
    static uint8_t bytes[1 << 20];
    become_idle();
    for (;;) {
        (void)!pwrite(r->fd[SCHEMA_FD_ARENA], bytes, sizeof bytes, 0);
        (void)fallocate(r->fd[SCHEMA_FD_ARENA], 0, 0, sizeof bytes);
        (void)fallocate(r->fd[SCHEMA_FD_ARENA], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        sizeof bytes);
    }
    return NULL;
}

static _Noreturn void keep_locks(struct raw *r, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int i = 0; i < SESSIONS; i++) {
        close(r[i].socket);
        begin_thread(lock_for_ever, &r[i]);
    }
    for (int i = 0; i < HOGS; i++)
        begin_thread(hog, NULL);
    for (;;)
        pause();
}

/* Workers leave, and a child keeps the locks of what they had: the agent takes it back all the
 * same, for others, who wait for nothing of it. */
void attack_idle_lock(struct hostile *h)
{
    static struct raw r[SESSIONS];
    const pid_t self = getpid();
    for (int i = 0; i < SESSIONS; i++)
        raw_open(h, &r[i]);
    const pid_t child = fork();
    if (child == 0)
        keep_locks(r, self);
    if (child < 0)
        hostile_fail("fork: %s", strerror(errno));
    usleep(100000);
    for (int i = 0; i < SESSIONS; i++, h->did++)
        raw_close(&r[i]);
    while (!hostile_over(h))
        usleep(10000);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}
