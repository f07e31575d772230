/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests: each goes piece by piece, in turns with those of other queue pairs, so that one
 * does not hold up the thread that all of them share. In between it holds no region, so that nobody
 * has to wait for it, whose process may be stopped: once the region is deregistered the next piece
 * is refused. QUIESCE_MR waits for the rest of it, or until its time is over, after which no piece
 * follows. */
#include "soft/pieces.h"

#include "base/clock.h"
#include "soft/copy.h"
#include "soft/hazards.h"
#include "soft/maps.h"

enum { CACHE_LINE = 64 };

typedef void act_fn(uint8_t *to, const uint8_t *from, size_t n);

/* With n bytes of a request, from `at` on: over its SGEs. */
static void each_part(const struct soft_fab *f, const struct fab_wr *wr, uint8_t *remote,
                      uint32_t at, uint32_t n, act_fn *act)
{
    uint32_t begin = 0; /* of the SGE, in the request */
    for (int i = 0; n > 0 && i < wr->num_sge; i++) {
        const uint32_t length = wr->sg_list[i].length;
        if (at - begin < length) {
            const uint32_t room = length - (at - begin), part = n < room ? n : room;
            uint8_t *local = soft_local_at(f, wr, i) + (at - begin);
            if (wr->opcode == IBV_WR_RDMA_READ)
                act(local, remote + at, part);
            else
                act(remote + at, local, part);
            at += part;
            n -= part;
        }
        begin += length;
    }
}

static void move_part(const struct soft_fab *f, const struct fab_wr *wr, uint8_t *remote,
                      uint32_t at, uint32_t n)
{
    atomic_thread_fence(memory_order_release);
    each_part(f, wr, remote, at, n, soft_copy);
    atomic_thread_fence(memory_order_acquire);
}

/* Its cache lines are asked for, and nobody waits for them. */
static void ask_for(uint8_t *to, const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += CACHE_LINE) {
        __builtin_prefetch(from + i, 0, 2);
        __builtin_prefetch(to + i, 1, 2);
    }
}

/* A short request that is posted meanwhile waits for the piece that is being moved. Most of its
 * time would be that of its memory: that comes until the next poll. */
static void prepare_part(const struct soft_fab *f, const struct fab_wr *wr, uint8_t *remote,
                         uint32_t at, uint32_t left)
{
    each_part(f, wr, remote, at, left < SOFT_TURN ? left : SOFT_TURN, ask_for);
}

/* Its time is over. In the middle a READ may begin anew, while of a WRITE a part is done. */
bool soft_has_no_time(const struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status *status)
{
    if (wr->key.not_after_ns == 0 || base_clock_ns() <= wr->key.not_after_ns)
        return false;
    *status = qp->moved == 0 || wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RESP_TIMEOUT_ERR
                                                               : IBV_WC_REM_OP_ERR;
    return true;
}

/* A late request goes no further when its region was quiesced since its first piece. */
static bool is_quiesced(const struct soft_qp *qp, const struct fab_wr *wr,
                        enum ibv_wc_status *status)
{
    const struct soft_fab *f = soft_of(qp->base.pd->fab);
    return qp->moved != 0 && wr->key.not_after_ns != 0 &&
           atomic_load(&f->shared->mr[wr->key.rkey & (SOFT_MRS - 1)].quiesces) != qp->quiesces &&
           soft_has_no_time(qp, wr, status);
}

/* The first of several: asked once more, now that it is known how often the region was quiesced
 * before.
 */
static bool begins_late(struct soft_qp *qp, const struct fab_wr *wr, enum ibv_wc_status *status)
{
    const struct soft_fab *f = soft_of(qp->base.pd->fab);
    qp->quiesces = atomic_load(&f->shared->mr[wr->key.rkey & (SOFT_MRS - 1)].quiesces);
    return soft_has_no_time(qp, wr, status);
}

/* What long requests may move until the next poll when no short one came for quiet_ns. A short one
 * that comes now waits for it, which takes about a twentieth of the pause that it made itself. */
static uint32_t quiet_allowance(uint64_t quiet_ns)
{
    const uint64_t bytes = quiet_ns / SOFT_ALONE_NS;
    if (quiet_ns < SOFT_QUIET_NS)
        return SOFT_TURN;
    return bytes < SOFT_ALONE_MOST ? (uint32_t)bytes : SOFT_ALONE_MOST;
}

/* Asked for only while there are long requests, so that others pay for no clock. */
uint32_t soft_allowance(struct soft_pace *p)
{
    if (p->allowed_at == p->polls)
        return p->allowance;
    if (p->whole != p->whole_seen) {
        const uint32_t bytes = p->whole - p->whole_seen;
        p->whole_seen = p->whole;
        p->whole_ns = base_clock_ns();
        p->allowance = bytes > SOFT_TURN ? bytes : SOFT_TURN;
    } else {
        p->allowance = quiet_allowance(base_clock_ns() - p->whole_ns);
    }
    p->allowed_at = p->polls;
    return p->allowance;
}

enum soft_outcome soft_move_in_turns(struct soft_qp *qp, const struct fab_wr *wr, uint8_t *remote,
                                     uint32_t length, enum ibv_wc_status *status)
{
    struct soft_cq *cq = qp->send_cq;
    if (is_quiesced(qp, wr, status))
        return SOFT_DONE;
    const uint32_t left = length - qp->moved, room = soft_allowance(&cq->pace);
    const uint32_t n = left < room ? left : room;
    if (n < left && qp->moved == 0 && begins_late(qp, wr, status))
        return SOFT_DONE;
    move_part(soft_of(qp->base.pd->fab), wr, remote, qp->moved, n);
    cq->pace.allowance -= n;
    cq->pace.in_turns += n;
    if (n == left)
        return SOFT_DONE;
    if (n > 0) {
        prepare_part(soft_of(qp->base.pd->fab), wr, remote, qp->moved + n, left - n);
        soft_mr_pause(qp, &wr->key, qp->moved + n);
    }
    return SOFT_WAIT_TURN;
}
