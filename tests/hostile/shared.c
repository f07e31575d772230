/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory itself: its size, its pages, its seals; and the eventfd. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"
#include "schema/record.h"

enum { ANSWER_MS = 20000 };
static const int MEMORIES[] = {SCHEMA_FD_RW, SCHEMA_FD_RO, SCHEMA_FD_PEERS, SCHEMA_FD_ARENA};

static void must_fail(struct hostile *h, int result, const char *what)
{
    h->did++;
    if (result != -1)
        hostile_fail("%s was allowed", what);
    h->errors++;
}

void attack_resize(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    do {
        for (size_t i = 0; i < sizeof MEMORIES / sizeof MEMORIES[0]; i++) {
            int fd = r.fd[MEMORIES[i]];
            must_fail(h, ftruncate(fd, 0), "truncating shared memory");
            must_fail(h, ftruncate(fd, 1 << 30), "growing shared memory");
            must_fail(h, fallocate(fd, 0, 1 << 30, 4096), "allocating behind shared memory");
            must_fail(h, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), "sealing shared memory");
        }
    } while (!hostile_over(h));
    if (raw_connect(&r) != 0)
        hostile_fail("the session does not work after that");
    raw_close(&r);
}

static struct schema_sq_desc write_of(struct hostile *h, const struct raw *r, uint32_t vkey)
{
    uint32_t length = 1 + (uint32_t)(hostile_random(h) % 65536);
    return (struct schema_sq_desc){
        .op = hostile_random(h) % 2 ? SCHEMA_OP_READ : SCHEMA_OP_WRITE,
        .slots = 1,
        .num_sge = 1,
        .flags = SCHEMA_OP_SIGNALED,
        .post = {.length = length,
                 .offset = hostile_random(h) % (r->arena_bytes / 2 - 65536),
                 .remote_addr = hostile_random(h) % (r->arena_bytes / 2 - 65536),
                 .vkey = vkey}};
}

static void punch(const struct raw *r, int which, off_t from, uint64_t bytes)
{
    (void)fallocate(r->fd[which], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
                    (off_t)bytes - from);
}

/* Where the agent keeps what it gives away whole, which the test is told of. */
static void must_stay_whole(struct hostile *h, const struct raw *r)
{
    must_fail(
        h, fallocate(r->fd[SCHEMA_FD_ARENA], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
        "punching a hole into the arena");
    must_fail(h,
              fallocate(r->fd[SCHEMA_FD_RW], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
              "punching a hole into the rings");
    must_fail(h, madvise(r->arena, 4096, MADV_REMOVE), "giving pages of the arena back");
    must_fail(h, madvise(r->rw, 4096, MADV_REMOVE), "giving pages of the rings back");
}

/* Its own memory vanishes under its own requests: the bytes are its loss, and the agent's look at
 * the ring must live through it. */
void attack_punch(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        uint64_t value[2];
        raw_open(h, &r);
        struct schema_sq_desc reg = {
            .op = SCHEMA_OP_REG_MR,
            .reg_mr = {.offset = r.arena_bytes / 2,
                       .length = r.arena_bytes / 2,
                       .access = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC}};
        if (raw_connect(&r) != 0 || raw_ask(&r, &reg, value) != 0)
            hostile_fail("registering own memory failed");
        if (getenv("HOSTILE_WHOLE") != NULL)
            must_stay_whole(h, &r);
        for (int i = 1; !hostile_over(h) && !raw_ended(&r); i++, h->did++) {
            struct schema_cqe e;
            struct schema_sq_desc d = write_of(h, &r, (uint32_t)value[0]);
            if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots)
                raw_put(&r, &d, NULL, 0);
            if (i % 16 == 0)
                punch(&r, SCHEMA_FD_ARENA, 0, r.arena_bytes);
            if (i % 1024 == 0) /* descriptors become zeros */
                punch(&r, SCHEMA_FD_RW, SCHEMA_SQ_OFFSET, r.rw_bytes);
            while (raw_poll(&r, &e, 0) >= 0)
                h->errors += e.status != 0;
        }
        h->cut_off += raw_ended(&r);
        raw_close(&r);
    }
}

/* All that the kernel still promises to anybody, where it promises no more than there is
 * (vm.overcommit_memory=2); else nothing, since it would promise without an end. */
static void take_promises(void)
{
    char mode = '0';
    const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &mode, 1) != 1 || mode != '2')
        hostile_fail("the kernel promises more memory than there is");
    close(fd);
    for (size_t bytes = (size_t)1 << 40; bytes >= 4096;)
        if (mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
            MAP_FAILED)
            bytes /= 2;
}

/* Nothing is left for the agent, which looks at a ring whose pages are gone, and zeroes an arena of
 * which the same is true. */
void attack_promises(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    if (raw_connect(&r) != 0)
        hostile_fail("the session does not work");
    punch(&r, SCHEMA_FD_ARENA, 0, r.arena_bytes);
    take_promises();
    punch(&r, SCHEMA_FD_RW, 0, r.rw_bytes);
    raw_ring(&r);
    if (!raw_ends_within(&r, ANSWER_MS))
        hostile_fail("the session goes on without its ring");
    h->did++;
    h->cut_off++;
    usleep(500000); /* while its arena is zeroed */
    close(r.socket);
    usleep(500000);
}

/* The same memory at another address, and in its place first nothing, then the arena: the agent has
 * mappings of its own, and wakes nobody there. */
void attack_remap(struct hostile *h)
{
    while (!hostile_over(h)) {
        struct raw r;
        raw_open(h, &r);
        uint8_t *old = (uint8_t *)r.rw;
        atomic_store(&r.rw->want_wake, 1);
        if (raw_connect(&r) != 0)
            hostile_fail("the session does not work");
        void *moved =
            mmap(NULL, r.rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd[SCHEMA_FD_RW], 0);
        if (moved == MAP_FAILED || munmap(old, r.rw_bytes) != 0 ||
            mmap(old, r.rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 r.fd[SCHEMA_FD_ARENA], 0) != old)
            hostile_fail("remapping own memory: %s", strerror(errno));
        r.rw = moved;
        r.ring = (uint8_t *)moved + SCHEMA_SQ_OFFSET;
        if (raw_connect(&r) != 0)
            hostile_fail("the session does not work from another address");
        hostile_fill(h, old, r.rw_bytes); /* now its arena */
        if (raw_connect(&r) != 0)
            hostile_fail("bytes in the arena harm the rings");
        if (mmap(moved, r.rw_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) != moved)
            hostile_fail("mapping nothing: %s", strerror(errno));
        /* All of it goes while a tail that is wrong stands in the shared page. */
        uint32_t tail = r.tail + r.ro->sq_slots + 1;
        if (pwrite(r.fd[SCHEMA_FD_RW], &tail, sizeof tail, 0) != sizeof tail)
            hostile_fail("writing own memory: %s", strerror(errno));
        raw_ring(&r);
        if (!raw_ends_within(&r, ANSWER_MS))
            hostile_fail("a tail written through the descriptor was not seen");
        h->cut_off++;
        h->did++;
        munmap(old, r.rw_bytes);
        raw_close(&r);
    }
}

static void try_to_write(struct hostile *h, int fd, uint64_t bytes, const void *mapped)
{
    char path[64], byte = 'x';
    must_fail(h, (int)pwrite(fd, &byte, 1, 0), "writing what the agent alone may write");
    must_fail(h,
              mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0,
              "mapping it writable");
    must_fail(h, mprotect((void *)(uintptr_t)mapped, bytes, PROT_READ | PROT_WRITE),
              "making the mapping writable");
    must_fail(h, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
              "punching a hole into it");
    must_fail(h, fchmod(fd, 0777), "making it everybody's");
    /* A description of its own for the same file could write: the file's mode must hold, or the
     * seal. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again < 0) {
        h->errors++;
        return;
    }
    must_fail(h, (int)pwrite(again, &byte, 1, 0), "writing it through another descriptor");
    must_fail(
        h, mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED ? -1 : 0,
        "mapping it writable through another descriptor");
    close(again);
}

void attack_write_read_only(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    do {
        try_to_write(h, r.fd[SCHEMA_FD_RO], r.ro_bytes, r.ro);
        try_to_write(h, r.fd[SCHEMA_FD_PEERS], r.peers_bytes, r.peers);
    } while (!hostile_over(h));
    if (raw_connect(&r) != 0)
        hostile_fail("the session does not work after that");
    raw_close(&r);
}

void attack_doorbell(struct hostile *h)
{
    struct raw r;
    raw_open(h, &r);
    int fd = r.fd[SCHEMA_FD_DOORBELL];
    uint64_t most = UINT64_MAX - 1;
    int flags = fcntl(fd, F_GETFL);
    if (write(fd, &most, sizeof most) != sizeof most && errno != EAGAIN)
        hostile_fail("the eventfd could not be filled: %s", strerror(errno));
    /* The flag belongs to the open file, which the agent shares. */
    if (fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        hostile_fail("F_SETFL: %s", strerror(errno));
    while (!hostile_over(h)) {
        uint64_t value;
        (void)fcntl(fd, F_SETFL, flags);
        (void)!read(fd, &value, sizeof value);
        (void)!write(fd, &most, sizeof most);
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        struct schema_sq_desc d = {.op = SCHEMA_OP_DESTROY, .slots = 1};
        atomic_store(&r.rw->sq_tail, r.tail); /* no bell of ours: it is full */
        memcpy(r.ring + (size_t)(r.tail & (r.ro->sq_slots - 1)) * SCHEMA_LINE, &d, sizeof d);
        if (r.tail - atomic_load(&r.ro->sq_head) < r.ro->sq_slots)
            r.tail++;
        h->did++;
        usleep(100);
    }
    raw_close(&r);
}
