/* SPDX-License-Identifier: Apache-2.0 */
/* Executing work requests: at the doorbell, on the initiator's CPU, straight on the target's
 * memory.
 *
 * A request whose target does not answer (dead, unreachable, not ready) stays at the head of its
 * queue pair, with everything else behind it, until a poll finds that it can go on or that its
 * time-outs have run out. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "soft/soft.h"

/* Races with other initiators by nature, as DMA does: what is torn is for protocols above to see.
 * Aligned words are copied whole. */
__attribute__((no_sanitize("thread"))) static void copy(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n == 8 && (((uintptr_t)to | (uintptr_t)from) & 7) == 0) {
        *(volatile uint64_t *)to = *(const volatile uint64_t *)from;
        return;
    }
    memcpy(to, from, n);
}

/* ---- targets
 * -------------------------------------------------------------------------------------- */

/* What a request names: who must own the target and its number there. */
struct address {
    const uint8_t *gid;
    uint32_t qpn;
};

static struct soft_qp_shared *find_target(struct soft_qp *qp, struct address to,
                                          const struct kedge_fab_ah *ah)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    struct soft_qp_shared *t = &f->shared->qp[to.qpn & (SOFT_QPS - 1)];
    soft_owner owner = atomic_load(&t->owner);
    if (to.qpn == 0 || owner == 0 || atomic_load(&t->qpn) != to.qpn)
        return NULL;
    struct soft_context_shared *c = &f->shared->context[(uint32_t)owner - 1];
    if (!soft_context_lives(f, owner) || memcmp(c->gid, to.gid, 16) != 0)
        return NULL;
    soft_watch_add(f, owner);
    qp->target = t;
    qp->target_qpn = to.qpn;
    qp->target_owner = owner;
    qp->target_context = c;
    qp->target_ah = ah;
    return t;
}

/* The target if it would answer: alive, in a state to receive, connected to us. NULL: it keeps
 * silent. */
static struct soft_qp_shared *reach(struct soft_qp *qp, const struct kedge_fab_wr *wr,
                                    const uint8_t *dgid)
{
    struct address to = {.gid = dgid, .qpn = wr->dest_qpn};
    if (qp->base.type == KEDGE_FAB_QP_RC)
        to = (struct address){.gid = qp->shared->dest_gid, .qpn = qp->shared->dest_qpn};
    struct soft_qp_shared *t = qp->target;
    if (t == NULL || qp->target_qpn != to.qpn || qp->target_ah != wr->ah ||
        atomic_load_explicit(&t->qpn, memory_order_acquire) != to.qpn ||
        atomic_load_explicit(&qp->target_context->owner, memory_order_acquire) != qp->target_owner)
        t = find_target(qp, to, wr->ah);
    if (t == NULL)
        return NULL;
    uint32_t state = atomic_load_explicit(&t->state, memory_order_acquire);
    if (state != IBV_QPS_RTR && state != IBV_QPS_RTS)
        return NULL;
    switch (qp->base.type) {
    case KEDGE_FAB_QP_RC:
        return t->kind == SOFT_RC && t->dest_qpn == qp->base.qpn &&
                       memcmp(t->dest_gid, qp->base.pd->fab->caps.gid, 16) == 0
                   ? t
                   : NULL;
    case KEDGE_FAB_QP_DCI:
        return t->kind == SOFT_DCT && t->dc_key == wr->dc_key ? t : NULL;
    default:
        return t->kind == SOFT_UD && t->qkey == wr->qkey ? t : NULL;
    }
}

/* ---- one-sided
 * ------------------------------------------------------------------------------------ */

static uint32_t total_length(const struct kedge_fab_wr *wr)
{
    uint64_t n = 0;
    for (int i = 0; i < wr->num_sge; i++)
        n += wr->sg_list[i].length;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static unsigned needed_access(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_READ:
        return IBV_ACCESS_REMOTE_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_ACCESS_REMOTE_ATOMIC;
    default:
        return IBV_ACCESS_REMOTE_WRITE;
    }
}

/* The local side of a request: every SGE is ours, in this PD, in bounds. */
static bool local_is_sound(struct soft_qp *qp, const struct kedge_fab_wr *wr)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    uint32_t pd = ((struct soft_pd *)qp->base.pd)->id;
    bool writes = wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                  wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (wr->send_flags & IBV_SEND_INLINE)
        return true;
    for (int i = 0; i < wr->num_sge; i++)
        if (wr->sg_list[i].length > 0 && soft_mr_local(f, pd, &wr->sg_list[i], writes) == NULL)
            return false;
    return true;
}

static void do_atomic(const struct kedge_fab_wr *wr, uint64_t *at)
{
    uint64_t before = wr->compare_add;
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        __atomic_compare_exchange_n(at, &before, wr->swap, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    else
        before = __atomic_fetch_add(at, wr->compare_add, __ATOMIC_SEQ_CST);
    copy((uint8_t *)(uintptr_t)wr->sg_list[0].addr, (const uint8_t *)&before, 8);
}

static void move_data(const struct kedge_fab_wr *wr, uint8_t *remote)
{
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        do_atomic(wr, (uint64_t *)(void *)remote);
        return;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        uint8_t *local = (uint8_t *)(uintptr_t)wr->sg_list[i].addr;
        if (wr->opcode == IBV_WR_RDMA_READ)
            copy(local, remote, wr->sg_list[i].length);
        else
            copy(remote, local, wr->sg_list[i].length);
        remote += wr->sg_list[i].length;
    }
}

/* The responder's side refuses: on RC its queue pair breaks too (IBTA 9.9.3); a DC target does not.
 */
static enum ibv_wc_status refuse(struct soft_qp *qp, struct soft_qp_shared *t)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    if (t->kind == SOFT_RC) {
        uint32_t rts = IBV_QPS_RTS, rtr = IBV_QPS_RTR;
        if (atomic_compare_exchange_strong(&t->state, &rts, IBV_QPS_ERR) ||
            atomic_compare_exchange_strong(&t->state, &rtr, IBV_QPS_ERR)) {
            atomic_fetch_add(&qp->target_context->attention, 1);
            soft_cq_notify(f, &f->shared->cq[t->send_cq - 1], true);
            soft_cq_notify(f, &f->shared->cq[t->recv_cq - 1], true);
        }
    }
    return IBV_WC_REM_ACCESS_ERR;
}

static enum soft_outcome one_sided(struct soft_qp *qp, const struct kedge_fab_wr *wr,
                                   struct soft_qp_shared *t, uint32_t length,
                                   enum ibv_wc_status *status)
{
    unsigned access = needed_access(wr->opcode);
    uint8_t *at = NULL;
    bool atomic = access == IBV_ACCESS_REMOTE_ATOMIC;
    if (atomic && (wr->remote_addr & 7) != 0) {
        *status = refuse(qp, t) == IBV_WC_REM_ACCESS_ERR ? IBV_WC_REM_INV_REQ_ERR : *status;
        return SOFT_DONE;
    }
    if ((t->access & access) != access) {
        *status = refuse(qp, t);
        return SOFT_DONE;
    }
    if (length > 0) {
        switch (soft_mr_enter(qp, qp->target_owner, t->pd, wr->rkey, wr->remote_addr, length,
                              access, &at)) {
        case SOFT_MR_GONE:
            return SOFT_WAIT_PEER;
        case SOFT_MR_DENIED:
            *status = refuse(qp, t);
            return SOFT_DONE;
        case SOFT_MR_OK:
            move_data(wr, at);
        }
    }
    *status = IBV_WC_SUCCESS;
    return SOFT_DONE;
}

/* ---- two-sided
 * ------------------------------------------------------------------------------------ */

static enum soft_outcome two_sided(struct soft_qp *qp, const struct kedge_fab_wr *wr,
                                   const uint8_t *dgid, struct soft_qp_shared *t, uint32_t length,
                                   enum ibv_wc_status *status)
{
    bool ud = qp->base.type == KEDGE_FAB_QP_UD;
    bool write_imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct soft_message m = {
        .sg_list = wr->sg_list,
        .num_sge = write_imm ? 0 : wr->num_sge,
        .is_inline = wr->send_flags & IBV_SEND_INLINE,
        .solicited = wr->send_flags & IBV_SEND_SOLICITED,
        .length = length,
        .wc = {.opcode = write_imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
               .src_qp = qp->base.qpn},
        .grh_sgid = ud ? qp->base.pd->fab->caps.gid : NULL,
        .grh_dgid = ud ? dgid : NULL,
        .write_imm = write_imm,
    };
    if (wr->opcode != IBV_WR_SEND) {
        m.wc.wc_flags |= IBV_WC_WITH_IMM;
        m.wc.imm_data = wr->imm_data;
    }
    return soft_deliver(qp, t, qp->target_owner, &m, status);
}

/* Executes one request, or says what it waits for. */
static enum soft_outcome execute(struct soft_qp *qp, const struct kedge_fab_wr *wr,
                                 const uint8_t *dgid, enum ibv_wc_status *status)
{
    bool ud = qp->base.type == KEDGE_FAB_QP_UD;
    uint32_t length = total_length(wr);
    if (length > (ud ? (uint32_t)SOFT_UD_PAYLOAD : 1u << 30)) {
        *status = IBV_WC_LOC_LEN_ERR;
        return SOFT_DONE;
    }
    if (!local_is_sound(qp, wr)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return SOFT_DONE;
    }
    struct soft_qp_shared *t = reach(qp, wr, dgid);
    *status = IBV_WC_SUCCESS;
    if (t == NULL)
        return ud ? SOFT_DONE : SOFT_WAIT_PEER; /* a datagram to nobody is sent all the same */
    if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
        return two_sided(qp, wr, dgid, t, length, status);
    enum soft_outcome outcome = one_sided(qp, wr, t, length, status);
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && outcome == SOFT_DONE &&
        *status == IBV_WC_SUCCESS)
        return two_sided(qp, wr, dgid, t, length, status);
    return outcome;
}

/* ---- queues
 * --------------------------------------------------------------------------------------- */

static struct soft_pending *pending_at(struct soft_qp *qp, uint32_t index)
{
    return &qp->pending[index & (qp->pending_room - 1)];
}

/* Keeps a copy, with its own SGEs and inline bytes: the caller's are borrowed for the post alone.
 */
static void keep(struct soft_qp *qp, const struct kedge_fab_wr *wr)
{
    struct soft_pending *p = pending_at(qp, qp->pending_tail++);
    p->wr = *wr;
    p->wr.next = NULL;
    if (wr->ah != NULL)
        memcpy(p->dgid, wr->ah->dgid, 16);
    memcpy(p->sge, wr->sg_list, (size_t)wr->num_sge * sizeof p->sge[0]);
    p->wr.sg_list = p->sge;
    if (wr->send_flags & IBV_SEND_INLINE) {
        uint8_t *to = p->inline_data;
        for (int i = 0; i < wr->num_sge; i++) {
            memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
            p->sge[i].addr = (uintptr_t)to;
            to += wr->sg_list[i].length;
        }
    }
}

/* Counted from what was taken when the request was posted: everything up to it is given back with
 * it. */
static uint32_t slot_of(const struct soft_qp *qp, uint32_t pending_index)
{
    return qp->posted - (qp->pending_tail - pending_index) + 1;
}

void soft_qp_flush(struct soft_qp *qp)
{
    if (qp->waiting)
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    qp->waiting = false;
    qp->deadline_ns = 0;
    qp->rnr_tries = 0;
    for (; qp->pending_head != qp->pending_tail; qp->pending_head++) {
        struct kedge_fab_wr wr = pending_at(qp, qp->pending_head)->wr;
        wr.send_flags |= IBV_SEND_SIGNALED; /* errors complete all */
        soft_cq_push(qp, &wr, IBV_WC_WR_FLUSH_ERR, slot_of(qp, qp->pending_head));
    }
    soft_rq_flush(soft_of(qp->base.pd->fab), qp);
    qp->flushed = true;
}

void soft_qp_break(struct soft_qp *qp)
{
    atomic_store(&qp->shared->state, IBV_QPS_ERR);
    soft_mr_leave(qp);
    soft_qp_flush(qp);
}

/* A request is over: its completion if it has one, and the end of the queue pair if it failed. */
static void complete(struct soft_qp *qp, const struct kedge_fab_wr *wr, enum ibv_wc_status status,
                     uint32_t freed)
{
    struct kedge_fab_wr copy_of = *wr;
    if (status != IBV_WC_SUCCESS)
        copy_of.send_flags |= IBV_SEND_SIGNALED;
    soft_cq_push(qp, &copy_of, status, freed);
}

/* Retry timers of RNR NAKs, in units of 10 us (IBTA table 45). */
static uint64_t rnr_timer_ns(uint8_t code)
{
    static const uint32_t units[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return units[code & 31] * 10 * KEDGE_NS_PER_US;
}

/* The head waits: when to look again, and whether its tries are used up (then *status). */
static bool keep_waiting(struct soft_qp *qp, enum soft_outcome why, enum ibv_wc_status *status)
{
    uint64_t now = kedge_clock_ns();
    if (!qp->waiting) {
        qp->waiting = true;
        atomic_fetch_add(&qp->send_cq->waiting, 1);
    }
    if (why == SOFT_WAIT_LOCK) { /* somebody else is delivering there this moment */
        qp->next_try_ns = now;
        return true;
    }
    if (why == SOFT_WAIT_RNR) {
        qp->deadline_ns = 0;
        if (qp->rnr_tries > 0 && now < qp->next_try_ns)
            return true;
        if (qp->rnr_retry != 7 && qp->rnr_tries > qp->rnr_retry) {
            *status = IBV_WC_RNR_RETRY_EXC_ERR;
            return false;
        }
        qp->rnr_tries++;
        qp->next_try_ns = now + rnr_timer_ns(qp->target != NULL ? qp->target->min_rnr_timer : 1);
        return true;
    }
    if (qp->deadline_ns == 0) {
        uint64_t one = 4096ull << qp->timeout;
        qp->deadline_ns = qp->timeout == 0 ? UINT64_MAX : now + one * (qp->retry_cnt + 1u);
        qp->next_try_ns = now + (qp->timeout == 0 ? KEDGE_NS_PER_MS : one);
        return true;
    }
    if (now >= qp->deadline_ns) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return false;
    }
    if (now >= qp->next_try_ns)
        qp->next_try_ns = now + (qp->timeout == 0 ? KEDGE_NS_PER_MS : 4096ull << qp->timeout);
    return true;
}

/* Goes on from the head until something waits. */
void soft_qp_progress(struct soft_qp *qp)
{
    uint32_t state = atomic_load(&qp->shared->state);
    while (state == IBV_QPS_RTS && qp->pending_head != qp->pending_tail) {
        struct soft_pending *p = pending_at(qp, qp->pending_head);
        enum ibv_wc_status status;
        if (qp->rnr_tries > 0 && kedge_clock_ns() < qp->next_try_ns)
            break;
        enum soft_outcome outcome = execute(qp, &p->wr, p->dgid, &status);
        if (outcome != SOFT_DONE && keep_waiting(qp, outcome, &status))
            break;
        qp->deadline_ns = 0;
        qp->rnr_tries = 0;
        uint32_t freed = slot_of(qp, qp->pending_head++);
        struct kedge_fab_wr wr = p->wr;
        complete(qp, &wr, status, freed);
        if (status != IBV_WC_SUCCESS) {
            soft_qp_break(qp);
            return;
        }
    }
    soft_mr_leave(qp);
    if (qp->pending_head == qp->pending_tail && qp->waiting) {
        qp->waiting = false;
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    }
}

/* At the doorbell, with nothing before it. */
static void execute_now(struct soft_qp *qp, const struct kedge_fab_wr *wr)
{
    enum ibv_wc_status status;
    enum soft_outcome outcome = execute(qp, wr, wr->ah != NULL ? wr->ah->dgid : NULL, &status);
    if (outcome != SOFT_DONE) {
        keep(qp, wr);
        (void)keep_waiting(qp, outcome, &status);
        soft_cq_timer(qp->send_cq);
        return;
    }
    if (status == IBV_WC_SUCCESS) {
        soft_cq_push(qp, wr, status, qp->posted);
        return;
    }
    complete(qp, wr, status, qp->posted);
    soft_qp_break(qp);
}

int soft_post_send(struct kedge_fab_qp *base, struct kedge_fab_wr *wr, struct kedge_fab_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    int result = 0;
    for (; wr != NULL; wr = wr->next) {
        uint32_t state = atomic_load_explicit(&qp->shared->state, memory_order_acquire);
        uint32_t freed = atomic_load_explicit(&qp->shared->sq_freed, memory_order_relaxed);
        result = state != IBV_QPS_RTS && state != IBV_QPS_ERR ? -EINVAL
                 : qp->posted - freed >= qp->base.cap.send_wr ? -ENOMEM
                                                              : 0;
        if (result != 0) {
            *bad = wr;
            break;
        }
        qp->posted++;
        if (state == IBV_QPS_ERR) {
            keep(qp, wr);
            soft_qp_flush(qp);
        } else if (qp->pending_head != qp->pending_tail) {
            keep(qp, wr);
        } else {
            execute_now(qp, wr);
        }
    }
    soft_mr_leave(qp);
    return result;
}
