/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions: the shared table, the fence of deregistration, and mappings of other processes'
 * memory.
 *
 * An initiator first writes the key into its queue pair's hazard word, fences, and then looks
 * whether the key is still valid; the owner first clears the key, fences, and then looks at every
 * hazard word. One of the two sees the other: either the initiator refuses, or the owner waits
 * (hazard pointers, Michael 2004). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "soft/soft.h"

int soft_mr_register(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    struct soft_pd *pd = (struct soft_pd *)ctl->mr.pd;
    const struct kedge_fab_mem *mem = ctl->mr.mem;
    struct stat st;
    if (ctl->mr.length == 0 || ctl->mr.offset > mem->size ||
        ctl->mr.length > mem->size - ctl->mr.offset)
        return -EINVAL;
    /* As verbs: a peer that writes makes us write. */
    if ((ctl->mr.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(ctl->mr.access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    if (fstat(mem->fd, &st) != 0)
        return -errno;
    struct soft_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL)
        return -ENOMEM;
    int64_t index =
        soft_claim(f, f->shared->mr, sizeof f->shared->mr[0], SOFT_MRS, &f->shared->mr_high);
    if (index < 0) {
        free(mr);
        return (int)index;
    }
    struct soft_mr_shared *s = &f->shared->mr[index];
    if (s->salt == 0)
        (void)kedge_random_bytes(&s->salt, sizeof s->salt);
    s->salt = s->salt == UINT16_MAX ? 1 : (uint16_t)(s->salt + 1);
    s->pd = pd->id;
    s->access = (uint16_t)ctl->mr.access;
    s->pid = getpid();
    s->fd = mem->fd;
    s->ino = st.st_ino;
    s->offset = ctl->mr.offset;
    s->addr = (uintptr_t)mem->addr + ctl->mr.offset;
    s->length = ctl->mr.length;
    uint32_t key = (uint32_t)s->salt << 16 | (uint32_t)index;
    atomic_store(&s->key, key);
    *mr = (struct soft_mr){
        .base = {.pd = ctl->mr.pd, .lkey = key, .rkey = key, .addr = s->addr, .length = s->length},
        .shared = s};
    atomic_fetch_add(&pd->users, 1);
    ctl->mr.x = &mr->base;
    return 0;
}

/* Whether any living process's queue pair is inside the region. */
static bool somebody_is_inside(struct soft_fab *f, uint32_t key)
{
    uint32_t high = atomic_load(&f->shared->qp_high);
    for (uint32_t i = 0; i < high; i++) {
        struct soft_qp_shared *qp = &f->shared->qp[i];
        if (atomic_load(&qp->inside) != key)
            continue;
        soft_owner owner = atomic_load(&qp->owner);
        if (owner == 0 || !soft_owner_process_lives(f, owner))
            continue; /* died in there: it will touch nothing more */
        if (atomic_load(&qp->inside) == key)
            return true;
    }
    return false;
}

int soft_mr_deregister(struct soft_fab *f, struct kedge_fab_ctl *ctl)
{
    struct soft_mr *mr = (struct soft_mr *)ctl->mr.x;
    atomic_store(&mr->shared->key, 0);
    atomic_thread_fence(memory_order_seq_cst);
    if (somebody_is_inside(f, mr->base.rkey))
        return -EINPROGRESS;
    atomic_store(&mr->shared->owner, 0);
    atomic_fetch_sub(&((struct soft_pd *)mr->base.pd)->users, 1);
    free(mr);
    ctl->mr.x = NULL;
    return 0;
}

uint8_t *soft_mr_local(struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write)
{
    const struct soft_mr_shared *s = &f->shared->mr[sge->lkey & (SOFT_MRS - 1)];
    if (sge->lkey == 0 || atomic_load_explicit(&s->key, memory_order_acquire) != sge->lkey ||
        atomic_load_explicit(&s->owner, memory_order_relaxed) != f->owner || s->pd != pd ||
        sge->addr < s->addr || sge->length > s->length ||
        sge->addr - s->addr > s->length - sge->length ||
        (write && !(s->access & IBV_ACCESS_LOCAL_WRITE)))
        return NULL;
    return (uint8_t *)(uintptr_t)sge->addr;
}

/* Maps another process's region; it may be stopped: through /proc, so that it need do nothing. */
static int map_file(struct soft_map *map, int32_t pid, int32_t owner_fd, uint64_t ino,
                    uint64_t offset)
{
    char path[64];
    struct stat st;
    uint64_t shift = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, owner_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) != 0 || st.st_ino != ino || (uint64_t)st.st_size < offset + map->length) {
        close(fd);
        return -ESTALE;
    }
    map->bytes = map->length + shift;
    map->start =
        mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - shift));
    close(fd);
    if (map->start == MAP_FAILED)
        return -errno;
    map->base = (uint8_t *)map->start + shift;
    return 0;
}

/* A map of what the slot describes, or NULL: the key is no longer valid, or its process is gone. */
static struct soft_map *map_region(struct soft_fab *f, const struct soft_mr_shared *s, uint32_t key)
{
    struct soft_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    *map = (struct soft_map){.key = key,
                             .pd = s->pd,
                             .owner = atomic_load(&s->owner),
                             .access = s->access,
                             .addr = s->addr,
                             .length = s->length,
                             .base = (uint8_t *)(uintptr_t)s->addr};
    int32_t pid = s->pid, fd = s->fd;
    uint64_t ino = s->ino, offset = s->offset;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&s->key) != key ||
        (pid != f->me->pid && map_file(map, pid, fd, ino, offset) != 0)) {
        free(map);
        return NULL;
    }
    pthread_mutex_lock(&f->lock);
    map->next = f->maps;
    f->maps = map;
    pthread_mutex_unlock(&f->lock);
    atomic_store(&f->map_of[key & (SOFT_MRS - 1)], map);
    return map;
}

enum soft_mr_status soft_mr_enter(struct soft_qp *qp, soft_owner owner, uint32_t pd, uint32_t key,
                                  uint64_t addr, uint64_t length, unsigned access, uint8_t **at)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    const struct soft_mr_shared *s = &f->shared->mr[key & (SOFT_MRS - 1)];
    if (key == 0)
        return SOFT_MR_DENIED;
    if (qp->held != key) {
        qp->held = key;
        atomic_store_explicit(&qp->shared->inside, key, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&s->key, memory_order_acquire) != key) {
            soft_mr_leave(qp);
            return SOFT_MR_DENIED;
        }
    }
    struct soft_map *map =
        atomic_load_explicit(&f->map_of[key & (SOFT_MRS - 1)], memory_order_acquire);
    if (map == NULL || map->key != key)
        map = map_region(f, s, key);
    if (map == NULL)
        return SOFT_MR_GONE;
    if (map->owner != owner || map->pd != pd || (map->access & access) != access ||
        addr < map->addr || length > map->length || addr - map->addr > map->length - length)
        return SOFT_MR_DENIED;
    *at = map->base + (addr - map->addr);
    return SOFT_MR_OK;
}

void soft_mr_leave(struct soft_qp *qp)
{
    if (qp->held != 0) {
        qp->held = 0;
        atomic_store_explicit(&qp->shared->inside, 0, memory_order_release);
    }
}

/* A mapping may go when its key is no longer valid, and no thread of ours went in while it was. */
void soft_map_sweep(struct soft_fab *f, bool all)
{
    struct soft_map *stale = NULL;
    pthread_mutex_lock(&f->lock);
    for (struct soft_map **link = &f->maps, *map; (map = *link) != NULL;) {
        uint32_t index = map->key & (SOFT_MRS - 1);
        bool gone = all;
        if (!gone && atomic_load(&f->shared->mr[index].key) != map->key) {
            atomic_thread_fence(memory_order_seq_cst);
            gone = !somebody_is_inside(f, map->key);
        }
        if (!gone) {
            link = &map->next;
            continue;
        }
        *link = map->next;
        (void)atomic_compare_exchange_strong(&f->map_of[index], &(struct soft_map *){map}, NULL);
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
