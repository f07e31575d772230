/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory and doorbells of simulated processes: their mappings are all the same memory, since
 * they share one address space. */
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "disk.h"
#include "os_calls.h"
#include "process.h"

static const uintptr_t PAGE = 4096; /* of the machine, at least */

struct play_mapping {
    struct play_mapping *next;
    struct shared_object *object;
};

struct slot {
    struct shared_object *object; /* NULL: free */
    struct play_process *process;
    uint32_t next_free; /* index + 1 */
};

static struct {
    struct slot *at;
    uint32_t used, room, free; /* free: index + 1 of the first */
    uint32_t open;
} table;

void os_init(void)
{
    table.used = table.free = table.open = 0;
}

uint32_t os_fini(void)
{
    const uint32_t left = table.open;
    free(table.at);
    table.at = NULL;
    table.used = table.room = table.free = table.open = 0;
    return left;
}

/* ---- objects */

void shared_drop(struct shared_object *o)
{
    if (--o->refs > 0)
        return;
    if (o->memory.addr != NULL)
        munmap(o->memory.addr, o->memory.bytes);
    if (o->kind == SHARED_FILE)
        play_file_close(o->file.file);
    free(o);
}

static uint32_t take_slot(void)
{
    if (table.free != 0) {
        const uint32_t at = table.free - 1;
        table.free = table.at[at].next_free;
        return at;
    }
    if (table.used == table.room) {
        table.room = table.room == 0 ? 256 : 2 * table.room;
        table.at = realloc(table.at, table.room * sizeof *table.at);
        BASE_ASSERT(table.at != NULL);
    }
    return table.used++;
}

int shared_add(struct shared_object *o)
{
    const uint32_t at = take_slot();
    table.at[at] = (struct slot){.object = o, .process = play_process};
    table.open++;
    o->refs++;
    return OS_FIRST_FD + (int)at;
}

int shared_new(enum shared_kind kind, struct shared_object **out)
{
    struct shared_object *o = calloc(1, sizeof *o);
    if (o == NULL)
        return -1;
    o->kind = kind;
    *out = o;
    return shared_add(o);
}

static struct slot *slot_of(int fd)
{
    const uint32_t at = (uint32_t)fd - OS_FIRST_FD;
    if (fd < OS_FIRST_FD || at >= table.used || table.at[at].object == NULL)
        return NULL;
    return &table.at[at];
}

struct shared_object *shared_of(int fd)
{
    const struct slot *s = slot_of(fd);
    return s != NULL && s->process == play_process ? s->object : NULL;
}

static void close_slot(struct slot *s)
{
    struct shared_object *o = s->object;
    s->object = NULL;
    s->next_free = table.free;
    table.free = (uint32_t)(s - table.at) + 1;
    table.open--;
    if (o->kind == SHARED_SOCKET)
        os_socket_end(o->socket);
    if (o->channel.sleeper == s->process)
        o->channel.sleeper = NULL;
    shared_drop(o);
}

int os_close(int fd)
{
    struct slot *s = slot_of(fd);
    BASE_ASSERT(s != NULL && s->process == play_process); /* a descriptor is closed once */
    close_slot(s);
    return 0;
}

static void drop_descriptors(struct play_process *p)
{
    for (uint32_t i = 0; i < table.used; i++) {
        struct slot *s = &table.at[i];
        if (s->object == NULL)
            continue;
        if (s->object->bell.watcher == p)
            s->object->bell.watcher = NULL;
        if (s->process == p)
            close_slot(s);
    }
}

void os_drop_all(struct play_process *p)
{
    os_forget_sleeper(p);
    drop_descriptors(p);
    for (struct play_mapping *m = p->mappings, *next; m != NULL; m = next) {
        next = m->next;
        shared_drop(m->object);
        free(m);
    }
    p->mappings = NULL;
    os_drop_blocks(p);
}

/* ---- memory */

/* All memory here is private and anonymous: whole pages of it that are let go of are zeros. */
void shared_zero(void *at, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)at, end = begin + bytes,
                    first = (begin + PAGE - 1) & ~(PAGE - 1), last = end & ~(PAGE - 1);
    if (first >= last || madvise((void *)first, last - first, MADV_DONTNEED) != 0) {
        memset(at, 0, bytes);
        return;
    }
    memset(at, 0, first - begin);
    memset((void *)last, 0, end - last);
}

int os_memfd_create(const char *name, unsigned flags)
{
    struct shared_object *o;
    (void)name, (void)flags;
    const int fd = shared_new(SHARED_MEMORY, &o);
    if (fd < 0)
        errno = ENOMEM;
    return fd;
}

int os_ftruncate(int fd, off_t bytes)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->memory.addr == NULL);
    o->memory.bytes = (uint64_t)bytes;
    return 0;
}

/* Also what makes a file longer. A hole that is punched reads as zeros. */
int os_fallocate(int fd, int mode, off_t from, off_t bytes)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    if ((mode & FALLOC_FL_PUNCH_HOLE) && (o->memory.whole || (uint64_t)from >= o->memory.bytes)) {
        errno = EPERM;
        return -1;
    }
    if (mode & FALLOC_FL_PUNCH_HOLE) {
        const uint64_t left = o->memory.bytes - (uint64_t)from;
        shared_zero((uint8_t *)o->memory.addr + from, (size_t)bytes < left ? (size_t)bytes : left);
    } else if (o->memory.addr == NULL && (uint64_t)(from + bytes) > o->memory.bytes)
        o->memory.bytes = (uint64_t)(from + bytes);
    return 0;
}

int os_fcntl(int fd, int command, ...)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL);
    if (command == F_GETFL)
        return O_RDWR; /* files are not told apart by this here */
    if (command == F_DUPFD_CLOEXEC)
        return os_eventfd(0, 0); /* which only keeps a place until the agent's comes */
    BASE_ASSERT(command == F_ADD_SEALS || command == F_GET_SEALS);
    if (command == F_ADD_SEALS) {
        o->memory.sealed = true;
        return 0;
    }
    return o->memory.sealed ? F_SEAL_SHRINK | F_SEAL_GROW : 0;
}

int os_fstat(int fd, struct stat *out)
{
    const struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    *out = (struct stat){.st_size = (off_t)o->memory.bytes};
    return 0;
}

int os_fstatfs(int fd, struct statfs *out)
{
    const struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    *out = (struct statfs){0};
    return 0;
}

/* That of sockets fails: nothing is left unread here. */
int os_ioctl(int fd, unsigned long request, ...)
{
    struct shared_object *o = shared_of(fd);
    va_list args;
    if (request != FS_IOC_SETFLAGS) {
        errno = ENOTTY;
        return -1;
    }
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    va_start(args, request);
    o->memory.whole = (*va_arg(args, const int *) & FS_IMMUTABLE_FL) != 0;
    va_end(args);
    return 0;
}

/* Nobody makes huge pages here. */
int os_base_hold_new(const struct iovec *maps, unsigned count)
{
    struct shared_object *o;
    (void)maps, (void)count;
    const int fd = shared_new(SHARED_MEMORY, &o);
    return fd >= 0 ? fd : -EMFILE;
}

/* Users are not told apart here. */
int os_fchmod(int fd, mode_t mode)
{
    const struct shared_object *o = shared_of(fd);
    (void)mode;
    BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
    return 0;
}

static struct shared_object *memory_of(int fd, size_t bytes)
{
    struct shared_object *o;
    if (fd >= 0) {
        o = shared_of(fd);
        BASE_ASSERT(o != NULL && o->kind == SHARED_MEMORY);
        o->refs++;
        return o;
    }
    o = calloc(1, sizeof *o);
    if (o != NULL)
        *o = (struct shared_object){.kind = SHARED_MEMORY, .refs = 1, .memory.bytes = bytes};
    return o;
}

void *os_mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t from)
{
    struct shared_object *o = memory_of(fd, bytes);
    struct play_mapping *m = malloc(sizeof *m);
    (void)addr, (void)protection, (void)flags, (void)from;
    BASE_ASSERT(o != NULL && m != NULL && play_process != NULL && bytes <= o->memory.bytes);
    if (o->memory.addr == NULL) {
        o->memory.addr = mmap(NULL, o->memory.bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        BASE_ASSERT(o->memory.addr != MAP_FAILED);
    }
    *m = (struct play_mapping){.next = play_process->mappings, .object = o};
    play_process->mappings = m;
    return o->memory.addr;
}

int os_munmap(void *addr, size_t bytes)
{
    struct play_mapping **at = &play_process->mappings, *m;
    (void)bytes;
    while (*at != NULL && (*at)->object->memory.addr != addr)
        at = &(*at)->next;
    m = *at;
    BASE_ASSERT(m != NULL);
    *at = m->next;
    shared_drop(m->object);
    free(m);
    return 0;
}

/* That a forked child finds a page wiped: nobody forks here. */
int os_madvise(void *addr, size_t bytes, int advice)
{
    (void)addr, (void)bytes, (void)advice;
    return 0;
}

/* ---- doorbells */

int os_eventfd(unsigned initial, int flags)
{
    struct shared_object *o;
    (void)initial, (void)flags;
    const int fd = shared_new(SHARED_BELL, &o);
    if (fd < 0)
        errno = ENOMEM;
    return fd;
}

void shared_ring(struct shared_object *o)
{
    if (o->bell.watcher != NULL)
        o->bell.rung(o->bell.user, o->bell.number);
    else
        o->bell.was_rung = true;
}

void os_bell_watch(int fd, void (*rung)(void *user, uint32_t number), void *user, uint32_t number)
{
    struct shared_object *o = shared_of(fd);
    BASE_ASSERT(o != NULL && o->kind == SHARED_BELL);
    BASE_ASSERT((rung != NULL) != (o->bell.rung != NULL)); /* once each */
    o->bell.rung = rung;
    o->bell.user = user;
    o->bell.number = number;
    o->bell.watcher = rung != NULL ? play_process : NULL;
    if (rung != NULL && o->bell.was_rung)
        rung(user, number);
    if (rung != NULL)
        o->bell.was_rung = false;
}

void os_bells_leave(const void *user)
{
    for (uint32_t i = 0; i < table.used; i++) {
        struct shared_object *o = table.at[i].object;
        if (o != NULL && o->bell.watcher != NULL && o->bell.user == user)
            o->bell.watcher = NULL;
    }
}
