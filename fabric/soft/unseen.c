/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/unseen.h"

#include <sched.h>

#include "opcode.h"
#include "soft/chan.h"
#include "soft/copy.h"
#include "soft/cq.h"
#include "soft/hazards.h"
#include "soft/locks.h"
#include "soft/maps.h"

enum {
    MOST_POLLS = 16, /* until the first one is seen */
    NEXT_POLLS = 4,  /* and each other */
    TRIES = 10000    /* for a lock that others have for a moment, where no poll follows */
};

static void draw_polls(struct soft_qp *qp, uint32_t most)
{
    qp->unseen->polls = (uint32_t)base_prng_below(&qp->order, most);
}

static void see_write(struct soft_qp *qp, const struct soft_unseen_one *one)
{
    const struct soft_unseen *u = qp->unseen;
    uint8_t *at;
    if (soft_mr_enter(qp, u->owner, u->pd, u->key, one->to, one->bytes, IBV_ACCESS_REMOTE_WRITE,
                      &at) == SOFT_MR_OK) {
        atomic_thread_fence(memory_order_release);
        soft_copy(at, u->data + one->at, one->bytes);
    }
    qp->vendor_err = 0; /* nobody hears of it */
}

/* False: somebody has the CQ's lock. */
static bool see_receive(struct soft_qp *qp, const struct soft_unseen_one *one)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    if (atomic_load(&one->cq->owner) != qp->unseen->owner)
        return true;
    if (soft_cq_trylock(f, one->cq) != 0)
        return false;
    if (atomic_load(&one->cq->owner) == qp->unseen->owner)
        (void)soft_cq_append(one->cq, &one->arrival);
    soft_unlock(&one->cq->lock);
    soft_cq_notify(f, one->cq, one->solicited || atomic_load(&one->cq->overflow) != 0);
    return true;
}

/* False: not yet. */
static bool see_next(struct soft_qp *qp)
{
    struct soft_unseen *u = qp->unseen;
    const struct soft_unseen_one *one = &u->of[u->first];
    if (one->cq == NULL)
        see_write(qp, one);
    else if (!see_receive(qp, one))
        return false;
    u->first++;
    draw_polls(qp, NEXT_POLLS);
    if (soft_has_unseen(qp))
        return true;
    u->first = u->count = u->used = u->key = 0;
    atomic_store(&qp->shared->unseen, 0);
    atomic_fetch_add(&qp->shared->left, 1);
    return true;
}

/* Of a receive whose CQ is locked by a process that is stopped nobody hears. */
static void lose_next(struct soft_qp *qp)
{
    qp->unseen->of[qp->unseen->first].cq = NULL;
    qp->unseen->of[qp->unseen->first].bytes = 0;
}

void soft_unseen_end(struct soft_qp *qp)
{
    if (!soft_has_unseen(qp))
        return;
    for (uint32_t tries = 0; soft_has_unseen(qp);) {
        if (see_next(qp))
            continue;
        (void)sched_yield();
        if (++tries % TRIES == 0)
            lose_next(qp);
    }
    soft_mr_step_out(qp);
}

void soft_unseen_poll(struct soft_qp *qp)
{
    if (!soft_has_unseen(qp))
        return;
    if (qp->unseen->polls > 0) {
        qp->unseen->polls--;
        return;
    }
    (void)see_next(qp);
    soft_mr_step_out(qp);
}

/* A SEND, or a WRITE that can be kept, and goes where those that are unseen do. */
static bool may_join(const struct soft_qp *qp, const struct fab_wr *wr, uint32_t length)
{
    const struct soft_unseen *u = qp->unseen;
    if (u->count == UNSEEN_MOST)
        return false;
    return fab_opcode_is_send(wr->opcode) ||
           (wr->opcode == IBV_WR_RDMA_WRITE && (u->key == 0 || wr->key.rkey == u->key) &&
            length <= SOFT_WHOLE && length <= UNSEEN_BYTES - u->used);
}

static bool is_of_target(const struct soft_unseen *u, const struct soft_target *t)
{
    return u->qpn == t->qpn && u->gid[0] == t->gid[0] && u->gid[1] == t->gid[1];
}

/* Those that are kept are of one region, and seen in their order. What goes to another target, and
 * is no WRITE, makes nothing seen. */
void soft_unseen_before(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                        uint32_t length)
{
    const struct soft_unseen *u = qp->unseen;
    if (!soft_has_unseen(qp))
        return;
    if (is_of_target(u, t) ? !may_join(qp, wr, length) : wr->opcode == IBV_WR_RDMA_WRITE)
        soft_unseen_end(qp);
}

/* There are none. False: what was to be the first is seen at once. */
static bool begin_with(struct soft_qp *qp, const struct soft_target *t)
{
    struct soft_unseen *u = qp->unseen;
    if (base_prng_below(&qp->order, 4) == 0)
        return false;
    draw_polls(qp, MOST_POLLS);
    u->qpn = t->qpn;
    u->gid[0] = t->gid[0];
    u->gid[1] = t->gid[1];
    u->owner = t->owner;
    u->pd = atomic_load_explicit(&t->qp->pd, memory_order_relaxed);
    return true;
}

bool soft_unseen_keep_receive(struct soft_qp *qp, const struct soft_message *m,
                              const struct soft_target *t, struct soft_cq_shared *cq)
{
    struct soft_unseen *u = qp->unseen;
    if (u == NULL || qp->base.type == FAB_QP_UD || m->write_imm ||
        (soft_has_unseen(qp) ? !is_of_target(u, t) : !begin_with(qp, t)))
        return false;
    u->of[u->count++] =
        (struct soft_unseen_one){.cq = cq,
                                 .arrival = m->arrival,
                                 .solicited = (m->wr->send_flags & IBV_SEND_SOLICITED) != 0};
    return true;
}

bool soft_unseen_keep(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                      uint32_t length)
{
    struct soft_unseen *u = qp->unseen;
    if (wr->opcode != IBV_WR_RDMA_WRITE || length > SOFT_WHOLE)
        return false;
    if (!soft_has_unseen(qp) && !begin_with(qp, t))
        return false;
    if (u->key == 0) {
        u->key = wr->key.rkey;
        atomic_store(&qp->shared->unseen, u->key); /* while it is held: nobody misses it */
    }
    u->of[u->count++] =
        (struct soft_unseen_one){.to = wr->remote_addr, .at = u->used, .bytes = length};
    for (int k = 0; k < wr->num_sge; k++) {
        soft_copy(u->data + u->used, soft_local_at(soft_of(qp->base.pd->fab), wr, k),
                  wr->sg_list[k].length);
        u->used += wr->sg_list[k].length;
    }
    return true;
}
