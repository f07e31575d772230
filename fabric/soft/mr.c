/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions as their owner sees them: the shared table, and waiting until every thread has
 * left a region (hazards.h says how each side sees the other). */
#include "soft/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "ibta/ibta.h"
#include "soft/context.h"
#include "soft/soft.h"
#include "soft/soft_tables.h"

struct soft_mr {
    struct fab_mr base;
    struct soft_mr_shared *shared;
};

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
    if (!fab_ibta_takes_region(ctl))
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
           atomic_load(&qp->unseen) == key ||
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
            continue; /* a process that died in there will touch nothing more */
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

/* The queue pairs that were inside at the beginning, and how often each had left by then: one that
 * goes in and out all the time is over with what it did before. One that is in the middle of a long
 * request goes on as long as its time lasts, and no further: its thread looks at the clock once it
 * has seen that somebody quiesces the region, which it does after it has said that it is inside;
 * and here the clock is read before anybody is looked for inside. */
struct quiesce {
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

static uint64_t read_clock_first(void)
{
    uint64_t now_ns = base_clock_ns();
    atomic_thread_fence(memory_order_seq_cst);
    return now_ns;
}

static int begin_quiesce(struct soft_fab *f, struct fab_ctl *ctl)
{
    uint32_t high = atomic_load(&f->shared->qp_high);
    struct soft_mr_shared *s = &f->shared->mr[ctl->quiesce.rkey & (SOFT_MRS - 1)];
    struct quiesce *q = calloc(1, sizeof *q + high * sizeof q->in[0]);
    if (q == NULL)
        return -EINPROGRESS;           /* tried again */
    atomic_fetch_add(&s->quiesces, 1); /* of whatever has the key by now: it costs a look */
    const uint64_t now_ns = read_clock_first();
    for (uint32_t i = 0; i < high; i++) {
        uint32_t left =
            atomic_load(&f->shared->qp[i].left); /* before the look: it may leave after */
        if (!is_inside(f, i, ctl->quiesce.rkey, now_ns))
            continue;
        q->in[q->count].qp = i;
        q->in[q->count++].left = left;
    }
    ctl->quiesce.progress = q;
    return 0;
}

int soft_mr_quiesce(struct soft_fab *f, struct fab_ctl *ctl)
{
    if (ctl->quiesce.progress == NULL) {
        int status = begin_quiesce(f, ctl);
        if (status != 0)
            return status;
    }
    struct quiesce *q = ctl->quiesce.progress;
    const uint64_t now_ns = read_clock_first();
    while (q->count > 0) {
        uint32_t i = q->in[q->count - 1].qp;
        if (atomic_load(&f->shared->qp[i].left) == q->in[q->count - 1].left &&
            is_inside(f, i, ctl->quiesce.rkey, now_ns))
            return -EINPROGRESS;
        q->count--;
    }
    free(q);
    ctl->quiesce.progress = NULL;
    return 0;
}
