/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/unseen.h"

#include "soft/copy.h"
#include "soft/hazards.h"
#include "soft/maps.h"

enum { MOST_POLLS = 16 /* until the first one is seen */, NEXT_POLLS = 4 /* and each other */ };

static void draw_polls(struct soft_qp *qp, uint32_t most)
{
    qp->unseen->polls = (uint32_t)base_prng_below(&qp->order, most);
}

static void see_next(struct soft_qp *qp)
{
    struct soft_unseen *u = qp->unseen;
    const uint32_t i = u->first++;
    uint8_t *at;
    if (soft_mr_enter(qp, u->owner, u->pd, u->key, u->of[i].to, u->of[i].bytes,
                      IBV_ACCESS_REMOTE_WRITE, &at) == SOFT_MR_OK) {
        atomic_thread_fence(memory_order_release);
        soft_copy(at, u->data + u->of[i].at, u->of[i].bytes);
    }
    qp->vendor_err = 0; /* nobody hears of it */
    draw_polls(qp, NEXT_POLLS);
    if (soft_has_unseen(qp))
        return;
    u->first = u->count = u->used = 0;
    atomic_store(&qp->shared->unseen, 0);
    atomic_fetch_add(&qp->shared->left, 1);
}

void soft_unseen_end(struct soft_qp *qp)
{
    if (!soft_has_unseen(qp))
        return;
    while (soft_has_unseen(qp))
        see_next(qp);
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
    see_next(qp);
    soft_mr_step_out(qp);
}

/* A WRITE that can be kept, and goes where those that are unseen do. */
static bool may_join(const struct soft_qp *qp, const struct fab_wr *wr, uint32_t length)
{
    const struct soft_unseen *u = qp->unseen;
    return wr->opcode == IBV_WR_RDMA_WRITE && wr->key.rkey == u->key && u->count < UNSEEN_MOST &&
           length <= SOFT_WHOLE && length <= UNSEEN_BYTES - u->used;
}

/* Those that are kept are of one region, and seen in their order. What goes to another target, and
 * is no WRITE, makes nothing seen. */
void soft_unseen_before(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                        uint32_t length)
{
    const struct soft_unseen *u = qp->unseen;
    if (!soft_has_unseen(qp))
        return;
    const bool is_target = u->qpn == t->qpn && u->gid[0] == t->gid[0] && u->gid[1] == t->gid[1];
    if (is_target ? !may_join(qp, wr, length) : wr->opcode == IBV_WR_RDMA_WRITE)
        soft_unseen_end(qp);
}

bool soft_unseen_keep(struct soft_qp *qp, const struct fab_wr *wr, const struct soft_target *t,
                      uint32_t length)
{
    struct soft_unseen *u = qp->unseen;
    if (wr->opcode != IBV_WR_RDMA_WRITE || length > SOFT_WHOLE)
        return false;
    if (!soft_has_unseen(qp)) {
        if (base_prng_below(&qp->order, 4) == 0)
            return false;
        draw_polls(qp, MOST_POLLS);
        u->qpn = t->qpn;
        u->gid[0] = t->gid[0];
        u->gid[1] = t->gid[1];
        u->owner = t->owner;
        u->pd = atomic_load_explicit(&t->qp->pd, memory_order_relaxed);
        u->key = wr->key.rkey;
        atomic_store(&qp->shared->unseen, u->key); /* while it is held: nobody misses it */
    }
    const uint32_t i = u->count++;
    u->of[i].to = wr->remote_addr;
    u->of[i].at = u->used;
    u->of[i].bytes = length;
    for (int k = 0; k < wr->num_sge; k++) {
        soft_copy(u->data + u->used, soft_local_at(soft_of(qp->base.pd->fab), wr, k),
                  wr->sg_list[k].length);
        u->used += wr->sg_list[k].length;
    }
    return true;
}
