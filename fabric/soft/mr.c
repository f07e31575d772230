/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions: the shared table, the fence of deregistration, and mappings of other processes'
 * memory.
 *
 * An initiator first writes the keys into its queue pair's hazard words, fences, and then looks
 * whether they are still valid; the owner first clears a key, fences, and then looks at every
 * hazard word. One of the two sees the other: either the initiator refuses, or the owner waits
 * (hazard pointers, Michael 2004). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "soft/soft.h"

/* Of memory and address, as uverbs compares them. */
#define PAGE_BYTES    4096u
#define NEEDS_WRITING (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* The key of the slot's next region, or once more the one of its last. */
static uint32_t choose_key(struct soft_mr_shared *s, uint32_t index, bool again)
{
    if (again)
        return (uint32_t)s->salt << 16 | index;
    if (s->salt == 0)
        (void)base_random_bytes(&s->salt, sizeof s->salt);
    s->salt = (uint16_t)(s->salt % (UINT16_MAX - 1) + 1); /* never 0, nor SOFT_ANY_KEY's */
    return (uint32_t)s->salt << 16 | index;
}

static bool is_sound(const struct fab_ctl *ctl)
{
    const struct fab_mem *mem = ctl->mr.mem;
    const uint64_t at = (uintptr_t)mem->addr + ctl->mr.offset, iova = ctl->mr.iova;
    if (ctl->mr.length == 0 || ctl->mr.offset > mem->size ||
        ctl->mr.length > mem->size - ctl->mr.offset)
        return false;
    /* As verbs: a peer that writes makes us write. */
    if ((ctl->mr.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(ctl->mr.access & IBV_ACCESS_LOCAL_WRITE))
        return false;
    return iova == 0 || ((iova ^ at) % PAGE_BYTES == 0 && iova <= UINT64_MAX - ctl->mr.length);
}

/* A slot of the table, and whether its next region has the keys of its last. -ENOSPC. */
static int64_t claim_slot(struct soft_fab *f, bool *again)
{
    struct soft_shared *shared = f->shared;
    const int64_t wanted = soft_keys_next(&f->keys);
    const uint32_t from = wanted >= 0 ? (uint32_t)wanted : atomic_load(&shared->mr_hint) % SOFT_MRS;
    int64_t index = soft_claim(f, shared->mr, sizeof shared->mr[0], sizeof shared->mr[0], SOFT_MRS,
                               from, &shared->mr_high);
    *again = wanted >= 0 && index == wanted;
    if (index >= 0 && !*again)
        atomic_store(&shared->mr_hint, (uint32_t)index + 1);
    return index;
}

int soft_mr_register(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_pd *pd = (struct soft_pd *)ctl->mr.pd;
    const struct fab_mem *mem = ctl->mr.mem;
    struct stat st;
    bool again;
    if (!is_sound(ctl))
        return -EINVAL;
    if (fstat(mem->fd, &st) != 0)
        return -errno;
    struct soft_mr *mr = calloc(1, sizeof *mr);
    if (mr == NULL)
        return -ENOMEM;
    int64_t index = claim_slot(f, &again);
    if (index < 0) {
        free(mr);
        return (int)index;
    }
    const uint64_t at = (uintptr_t)mem->addr + ctl->mr.offset;
    struct soft_mr_shared *s = &f->shared->mr[index];
    atomic_store(&s->identity, atomic_fetch_add(&f->shared->mr_identity, 1) + 1);
    s->pd = pd->id;
    s->access = (uint16_t)ctl->mr.access;
    s->pid = getpid();
    s->fd = mem->fd;
    s->dev = (uint32_t)st.st_dev;
    s->ino = st.st_ino;
    s->offset = ctl->mr.offset;
    s->addr = ctl->mr.iova != 0 ? ctl->mr.iova : at;
    s->shift = at - s->addr;
    s->length = ctl->mr.length;
    uint32_t key = choose_key(s, (uint32_t)index, again);
    atomic_store(&s->key, key);
    *mr = (struct soft_mr){
        .base = {.pd = ctl->mr.pd, .lkey = key, .rkey = key, .addr = s->addr, .length = s->length},
        .shared = s};
    atomic_fetch_add(&pd->users, 1);
    ctl->mr.x = &mr->base;
    return 0;
}

static bool names_key(const struct soft_qp_shared *qp, uint32_t key)
{
    uint32_t local = atomic_load(&qp->inside_local);
    return atomic_load(&qp->inside) == key || local == key;
}

/* Likewise, or in the middle of a request: at that time by the clock, read before. */
static bool begins_in(const struct soft_qp_shared *qp, uint32_t key, uint64_t now_ns)
{
    return names_key(qp, key) || atomic_load(&qp->middle_local) == key ||
           (atomic_load(&qp->middle) == key && now_ns <= atomic_load(&qp->middle_until_ns));
}

/* Whether any living process's queue pair is inside the region, or any of ours in several. */
static bool somebody_is_inside(struct soft_fab *f, uint32_t key)
{
    uint32_t high = atomic_load(&f->shared->qp_high);
    for (uint32_t i = 0; i < high; i++) {
        struct soft_qp_shared *qp = &f->shared->qp[i];
        soft_owner owner = atomic_load(&qp->owner);
        if (owner == f->owner && atomic_load(&qp->inside_local) == SOFT_ANY_KEY)
            return true;
        if (!names_key(qp, key) || owner == 0 || !soft_owner_process_lives(f, owner))
            continue; /* who died in there will touch nothing more */
        if (names_key(qp, key))
            return true;
    }
    return false;
}

int soft_mr_deregister(struct soft_fab *f, struct fab_ctl *ctl)
{
    struct soft_mr *mr = (struct soft_mr *)ctl->mr.x;
    atomic_store(&mr->shared->key, 0);
    atomic_thread_fence(memory_order_seq_cst);
    if (somebody_is_inside(f, mr->base.rkey))
        return -EINPROGRESS;
    soft_keys_give(&f->keys, mr->base.rkey & (SOFT_MRS - 1));
    atomic_store(&mr->shared->owner, 0);
    atomic_fetch_add(&f->shared->mr_retired, 1);
    atomic_fetch_sub(&((struct soft_pd *)mr->base.pd)->users, 1);
    free(mr);
    ctl->mr.x = NULL;
    return 0;
}

/* Who was inside at the beginning, and how often each had left by then: a queue pair that goes in
 * and out all the time is over with what it did before. Who is in the middle of a long request goes
 * on as long as its time lasts, and no further: it looks at the clock once it has seen that there
 * was a fence, which it does after it has said that it is inside; and here the clock is read before
 * anybody is looked for inside. */
struct fence {
    uint32_t count;
    struct {
        uint32_t qp, left;
    } in[];
};

static bool is_inside(struct soft_fab *f, uint32_t i, uint32_t key, uint64_t now_ns)
{
    struct soft_qp_shared *qp = &f->shared->qp[i];
    soft_owner owner = atomic_load(&qp->owner);
    return begins_in(qp, key, now_ns) && owner != 0 && soft_owner_process_lives(f, owner);
}

static uint64_t fence_clock(void)
{
    uint64_t now_ns = base_clock_ns();
    atomic_thread_fence(memory_order_seq_cst);
    return now_ns;
}

static int begin_fence(struct soft_fab *f, struct fab_ctl *ctl)
{
    uint32_t high = atomic_load(&f->shared->qp_high);
    struct soft_mr_shared *s = &f->shared->mr[ctl->fence.rkey & (SOFT_MRS - 1)];
    struct fence *fence = calloc(1, sizeof *fence + high * sizeof fence->in[0]);
    if (fence == NULL)
        return -EINPROGRESS;         /* tried again */
    atomic_fetch_add(&s->fences, 1); /* of whatever has the key by now: it costs a look */
    const uint64_t now_ns = fence_clock();
    for (uint32_t i = 0; i < high; i++) {
        uint32_t left =
            atomic_load(&f->shared->qp[i].left); /* before the look: it may leave after */
        if (!is_inside(f, i, ctl->fence.rkey, now_ns))
            continue;
        fence->in[fence->count].qp = i;
        fence->in[fence->count++].left = left;
    }
    ctl->fence.progress = fence;
    return 0;
}

int soft_mr_fence(struct soft_fab *f, struct fab_ctl *ctl)
{
    if (ctl->fence.progress == NULL) {
        int status = begin_fence(f, ctl);
        if (status != 0)
            return status;
    }
    struct fence *fence = ctl->fence.progress;
    const uint64_t now_ns = fence_clock();
    while (fence->count > 0) {
        uint32_t i = fence->in[fence->count - 1].qp;
        if (atomic_load(&f->shared->qp[i].left) == fence->in[fence->count - 1].left &&
            is_inside(f, i, ctl->fence.rkey, now_ns))
            return -EINPROGRESS;
        fence->count--;
    }
    free(fence);
    ctl->fence.progress = NULL;
    return 0;
}

bool soft_mr_is_local(const struct soft_fab *f, uint32_t pd, const struct ibv_sge *sge, bool write)
{
    const struct soft_mr_shared *s = &f->shared->mr[sge->lkey & (SOFT_MRS - 1)];
    return sge->lkey != 0 && atomic_load_explicit(&s->key, memory_order_acquire) == sge->lkey &&
           atomic_load_explicit(&s->owner, memory_order_relaxed) == f->owner && s->pd == pd &&
           sge->addr >= s->addr && sge->length <= s->length &&
           sge->addr - s->addr <= s->length - sge->length &&
           (!write || (s->access & IBV_ACCESS_LOCAL_WRITE));
}

/* Maps another process's region. That process may be stopped: /proc asks nothing of it. */
static int map_file(struct soft_map *map, const struct soft_mr_shared *s)
{
    char path[64];
    struct stat st;
    bool write = map->access & NEEDS_WRITING; /* a memfd may be sealed against it */
    uint64_t shift = s->offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", s->pid, s->fd);
    int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? -ESTALE : -errno;
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
    uint64_t one = 1;
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
    if (map->start != NULL && write(f->ctl_efd, &one, sizeof one) < 0) {
        /* Full, and so readable: the control thread will look for stale mappings now and then. */
    }
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
    soft_hold(qp, key, qp->held_local);
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

void soft_mr_step_out(struct soft_qp *qp)
{
    if (qp->moved == 0) {
        soft_mr_leave(qp);
        return;
    }
    qp->held = qp->held_local = 0;
    atomic_store_explicit(&qp->shared->inside, 0, memory_order_release);
    atomic_store_explicit(&qp->shared->inside_local, 0, memory_order_release);
}

void soft_mr_pause(struct soft_qp *qp, const struct fab_key *key, uint32_t moved)
{
    struct soft_qp_shared *s = qp->shared;
    if (qp->moved == 0) {
        atomic_store(&s->middle_until_ns, key->not_after_ns != 0 ? key->not_after_ns : UINT64_MAX);
        atomic_store(&s->middle, qp->held);
        atomic_store(&s->middle_local, qp->held_local);
    }
    qp->moved = moved;
    soft_mr_step_out(qp);
}

void soft_mr_resign(struct soft_qp *qp)
{
    struct soft_qp_shared *s = qp->shared;
    if (qp->moved == 0)
        return;
    qp->moved = 0;
    atomic_store(&s->middle, 0);
    atomic_store(&s->middle_local, 0);
    soft_mr_leave(qp);
    atomic_fetch_add(&s->left, 1); /* also if it was not inside just now */
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
