/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as those who use them see them: our own, and other processes', which are mapped here.
 *
 * Each is looked at while its key is in the queue pair's hazard words (hazards.c). */
#include "soft/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "soft/hazards.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* Linux 5.6 */
#endif

#define NEEDS_WRITING (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

bool soft_mr_is_local(const struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write)
{
    const struct soft_mr_shared *s = &f->shared->mr[sge->lkey & (SOFT_MRS - 1)];
    return sge->lkey != 0 && atomic_load_explicit(&s->key, memory_order_acquire) == sge->lkey &&
           atomic_load_explicit(&s->owner, memory_order_relaxed) == f->owner && s->pd == pd &&
           sge->addr >= s->addr && sge->length <= s->length &&
           sge->addr - s->addr <= s->length - sge->length &&
           (!write || (s->access & IBV_ACCESS_LOCAL_WRITE));
}

/* A region of a peer as we know it, mapped: what its slot said while its key was valid, so that
 * checks and copy agree even if the slot is used again meanwhile. Lanes find it by slot; the
 * control thread unmaps it when it is stale and no queue pair is inside. */
struct soft_map {
    uint32_t key, pd;
    uint64_t identity;
    soft_owner owner;
    unsigned access;
    uint64_t addr, length;
    uint8_t *base; /* of the region's first byte */
    void *start;   /* of the mapping, or NULL in the owner's own process */
    size_t bytes;
    struct soft_map *next; /* in the list of all */
};

/* A file that is kept whole nobody opens for writing (base_memfd_keep_whole()): this is the
 * description that its owner has. */
static int copy_descriptor(const struct soft_mr_shared *s)
{
    const int process = base_pidfd_open(s->pid);
    if (process < 0)
        return process;
    const long fd = syscall(SYS_pidfd_getfd, process, s->fd, 0);
    const int status = fd < 0 ? -errno : (int)fd;
    close(process);
    return status == -EBADF ? -ESRCH : status;
}

static int open_file(const struct soft_mr_shared *s, bool write)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", s->pid, s->fd);
    const int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    const int status = errno == EPERM && write ? copy_descriptor(s) : -errno;
    return status == -ENOENT || status == -ESRCH ? -ESTALE : status;
}

/* Maps another process's region. That process may be stopped: it is asked nothing. */
static int map_file(struct soft_map *map, const struct soft_mr_shared *s)
{
    struct stat st;
    bool write = map->access & NEEDS_WRITING; /* a memfd may be sealed against it */
    uint64_t shift = s->offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    int fd = open_file(s, write);
    if (fd < 0)
        return fd;
    /* Its number may be another file's by now, and its pid another process's. */
    if (fstat(fd, &st) != 0 || st.st_ino != s->ino || (uint32_t)st.st_dev != s->dev ||
        (uint64_t)st.st_size < s->offset + map->length) {
        close(fd);
        return -ESTALE;
    }
    map->bytes = map->length + shift;
    map->start = mmap(NULL, map->bytes, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
                      (off_t)(s->offset - shift));
    int status = map->start == MAP_FAILED ? -errno : 0;
    close(fd);
    if (status != 0)
        return status;
    map->base = (uint8_t *)map->start + shift;
    return 0;
}

/* A map of what the slot describes; the hazard is set, so that the slot stays what it is as long as
 * its owner lives. NULL and -ESTALE: its process is gone; or another -errno. */
static struct soft_map *map_region(struct soft_fab *f, const struct soft_mr_shared *s, uint32_t key,
                                   int *status)
{
    struct soft_map *map = calloc(1, sizeof *map);
    *status = map == NULL ? -ENOMEM : 0;
    if (map == NULL)
        return NULL;
    struct soft_mr_shared seen = {.pd = s->pd,
                                  .access = s->access,
                                  .pid = s->pid,
                                  .fd = s->fd,
                                  .dev = s->dev,
                                  .ino = s->ino,
                                  .offset = s->offset,
                                  .addr = s->addr,
                                  .length = s->length,
                                  .shift = s->shift};
    const uint64_t identity = atomic_load(&s->identity);
    *map = (struct soft_map){.key = key,
                             .pd = seen.pd,
                             .identity = identity,
                             .owner = atomic_load(&s->owner),
                             .access = seen.access,
                             .addr = seen.addr,
                             .length = seen.length,
                             .base = (uint8_t *)(uintptr_t)(seen.addr + seen.shift)};
    if (seen.pid != atomic_load(&f->me->pid))
        *status = map_file(map, &seen);
    atomic_thread_fence(memory_order_seq_cst);
    if (*status == 0 && (atomic_load(&s->key) != key || atomic_load(&s->identity) != identity)) {
        /* its process died, and the slot is reused */
        if (map->start != NULL)
            munmap(map->start, map->bytes);
        *status = -ESTALE;
    }
    if (*status != 0) {
        free(map);
        return NULL;
    }
    pthread_mutex_lock(&f->lock);
    map->next = f->maps;
    f->maps = map;
    pthread_mutex_unlock(&f->lock);
    atomic_store(&f->map_of[key & (SOFT_MRS - 1)], map);
    if (map->start != NULL) /* the control thread will look for stale mappings now and then */
        fab_bell_ring(&f->ctl);
    return map;
}

enum soft_mr_status soft_mr_enter(struct soft_qp *qp, soft_owner owner, uint32_t pd, uint32_t key,
                                  uint64_t addr, uint64_t length, unsigned access, uint8_t **at)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    uint32_t index = key & (SOFT_MRS - 1);
    const struct soft_mr_shared *s = &f->shared->mr[index];
    int status;
    if (key == 0)
        return SOFT_MR_DENIED;
    soft_mr_hold(qp, key, qp->held_local);
    if (atomic_load_explicit(&s->key, memory_order_acquire) != key)
        return soft_context_lives(f, owner) ? SOFT_MR_DENIED : SOFT_MR_GONE;
    struct soft_map *map = atomic_load_explicit(&f->map_of[index], memory_order_acquire);
    /* The key is valid and held, so that the slot is this one region's for now. */
    if (map == NULL || map->identity != atomic_load_explicit(&s->identity, memory_order_relaxed)) {
        map = map_region(f, s, key, &status);
        if (map == NULL) {
            qp->vendor_err = (uint32_t)-status;
            return status == -ESTALE ? SOFT_MR_GONE : SOFT_MR_FAILED;
        }
    }
    if (map->owner != owner || map->pd != pd || (map->access & access) != access ||
        addr < map->addr || length > map->length || addr - map->addr > map->length - length)
        return SOFT_MR_DENIED;
    *at = map->base + (addr - map->addr);
    return SOFT_MR_OK;
}

/* Whether one of our own lanes is in there: nobody else uses our mappings. */
static bool we_are_inside(const struct soft_fab *f, uint32_t key)
{
    uint32_t high = atomic_load(&f->shared->qp_high);
    for (uint32_t i = 0; i < high; i++)
        if (atomic_load(&f->qp_of[i]) != NULL && atomic_load(&f->shared->qp[i].inside) == key)
            return true;
    return false;
}

/* A mapping may go when its region is gone, nobody finds it here any more, and no thread of ours
 * went in while it was there. One that goes in now, its key having come back, finds none. */
void soft_map_sweep(struct soft_fab *f, bool all)
{
    struct soft_map *stale = NULL;
    uint32_t retired = atomic_load(&f->shared->mr_retired);
    if (retired == f->swept && !all)
        return;
    f->swept = retired;
    pthread_mutex_lock(&f->lock);
    for (struct soft_map **link = &f->maps, *map; (map = *link) != NULL;) {
        uint32_t index = map->key & (SOFT_MRS - 1);
        bool gone = all;
        struct soft_mr_shared *s = &f->shared->mr[index];
        if (!gone &&
            (atomic_load(&s->key) != map->key || atomic_load(&s->identity) != map->identity)) {
            (void)atomic_compare_exchange_strong(&f->map_of[index], &(struct soft_map *){map},
                                                 NULL);
            atomic_thread_fence(memory_order_seq_cst);
            gone = !we_are_inside(f, map->key);
            f->swept -= gone ? 0 : 1; /* look again */
        }
        if (!gone) {
            link = &map->next;
            continue;
        }
        *link = map->next;
        map->next = stale;
        stale = map;
    }
    pthread_mutex_unlock(&f->lock);
    for (struct soft_map *next; stale != NULL; stale = next) {
        next = stale->next;
        if (stale->start != NULL)
            munmap(stale->start, stale->bytes);
        free(stale);
    }
}
