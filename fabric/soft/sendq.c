/* SPDX-License-Identifier: Apache-2.0 */
/* Send queues. A request is executed at the doorbell. One whose target does not answer (dead,
 * unreachable, not ready) stays at the head of its queue pair, with everything else behind it,
 * until a poll finds that it can go on or that its time-outs have run out. */
#include "soft/sendq.h"

#include <errno.h>

#include "base/clock.h"
#include "ibta/ibta.h"
#include "soft/exec.h"
#include "soft/hazards.h"
#include "soft/unseen.h"

/* Keeps a copy, with its own SGEs and inline bytes: the caller's are borrowed for the post alone.
 */
static void keep_request(struct soft_qp *qp, const struct fab_wr *wr, uint64_t now)
{
    struct soft_pending *p = soft_pending_at(qp, qp->pending_tail++);
    p->wr = *wr;
    p->wr.next = NULL;
    /* Behind a long one, or itself one, it waits for us and for no silent peer, for as long as it
     * takes. */
    p->kept_ns = qp->waits_for == SOFT_WAIT_TURN ? UINT64_MAX : now;
    p->executed = p->late = p->overtaken = false;
    p->ahead = qp->ahead;
    if (qp->base.type != FAB_QP_RC)
        soft_gid_words(wr->ah->dgid, p->dgid);
    if (wr->num_sge > 0)
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

/* DC targets have room for all that anybody has out, and a peer has mostly. */
static bool has_room_for_all(const struct soft_qp *qp)
{
    const struct soft_qp_shared *peer = qp->targets[0].qp;
    return qp->base.type != FAB_QP_RC ||
           (peer != NULL &&
            atomic_load_explicit(&peer->max_dest_reads, memory_order_relaxed) >= qp->max_reads);
}

/* READs and atomics are out until somebody learns that they are not: a device may be as slow as
 * that. So many, up to the most that this one has out, may be before the one that is posted now. */
static void count_read(struct soft_qp *qp, const struct fab_wr *wr)
{
    if (!fab_opcode_is_answered(wr->opcode) || has_room_for_all(qp))
        return;
    const uint32_t freed = atomic_load_explicit(&qp->shared->sq_freed, memory_order_relaxed);
    while (qp->reads_over != qp->reads &&
           ((int32_t)(freed - qp->read_at[qp->reads_over % SOFT_READS]) >= 0 ||
            qp->reads - qp->reads_over >= qp->max_reads))
        qp->reads_over++;
    qp->ahead = qp->reads - qp->reads_over;
    qp->read_at[qp->reads++ % SOFT_READS] = qp->posted;
}

/* Counted from what was taken when the request was posted: everything up to it is given back with
 * it. */
static uint32_t slot_of(const struct soft_qp *qp, uint32_t pending_index)
{
    return qp->posted - (qp->pending_tail - pending_index) + 1;
}

/* ---- waiting */

static void start_waiting(struct soft_qp *qp)
{
    if (!qp->waiting)
        atomic_fetch_add(&qp->send_cq->waiting, 1);
    qp->waiting = true;
    soft_cq_await(qp);
}

static void stop_waiting(struct soft_qp *qp)
{
    if (qp->waiting)
        atomic_fetch_sub(&qp->send_cq->waiting, 1);
    qp->waiting = false;
}

static void head_is_over(struct soft_qp *qp)
{
    qp->deadline_ns = 0;
    qp->rnr_tries = 0;
    qp->waits_for = SOFT_DONE;
    soft_mr_resign(qp);
}

/* How long one request may try. */
static uint64_t span_ns(const struct soft_qp *qp)
{
    return qp->timeout == 0 ? UINT64_MAX : (4096ull << qp->timeout) * (qp->retry_cnt + 1u);
}

static bool wait_for_receive(struct soft_qp *qp, const struct fab_wr *wr, uint64_t now,
                             enum ibv_wc_status *status)
{
    uint32_t qpn = qp->base.type == FAB_QP_RC ? 0 : wr->dest_qpn & 7;
    const struct soft_target *t = &qp->targets[qpn];
    qp->deadline_ns = 0;
    if (qp->rnr_retry != 7 && qp->rnr_tries >= qp->rnr_retry) {
        *status = IBV_WC_RNR_RETRY_EXC_ERR;
        return false;
    }
    if (qp->rnr_tries < UINT32_MAX)
        qp->rnr_tries++;
    qp->next_try_ns = now + fab_ibta_rnr_ns(t->qp != NULL ? atomic_load(&t->qp->min_rnr_timer) : 1);
    return true;
}

/* The head waits: sets when to look again. False: its tries are used up, *status says how. */
static bool keep_waiting(struct soft_qp *qp, const struct fab_wr *wr, enum soft_outcome why,
                         uint64_t now, enum ibv_wc_status *status)
{
    uint64_t span = span_ns(qp), one = qp->timeout == 0 ? BASE_NS_PER_MS : 4096ull << qp->timeout;
    bool ud = qp->base.type == FAB_QP_UD;
    if (why == SOFT_WAIT_TURN) {
        qp->deadline_ns = qp->rnr_tries = 0;
        qp->next_try_ns = now;
        qp->waits_for = SOFT_WAIT_TURN;
        qp->send_cq->busy = true;
        return true;
    }
    if (why == SOFT_WAIT_RNR)
        return wait_for_receive(qp, wr, now, status);
    if (why == SOFT_WAIT_PEER)
        qp->rnr_tries = 0;
    else if (ud) /* somebody is inside the receiver's queue: not for long, or it is lost */
        span = BASE_NS_PER_MS;
    else if (fab_opcode_is_send(wr->opcode) &&
             span < BASE_NS_PER_S) /* that process may just not have been running */
        span = BASE_NS_PER_S;
    if (qp->deadline_ns == 0 || why != qp->waits_for) {
        qp->deadline_ns = span == UINT64_MAX ? UINT64_MAX : now + span;
        qp->next_try_ns = 0;
    } else if (now >= qp->deadline_ns) {
        *status = ud ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
        return false;
    }
    qp->waits_for = why;
    if (why == SOFT_WAIT_LOCK) /* and it goes on this moment, unless that process is stopped */
        qp->next_try_ns = now + 10 * BASE_NS_PER_US;
    else if (now >= qp->next_try_ns)
        qp->next_try_ns = now + one;
    return true;
}

/* Too late to touch a peer's memory, whatever has become of the peer: whoever leases memory counts
 * on fab_bound_ns(), also when our thread did not run for long. */
static bool is_late(const struct soft_qp *qp, const struct soft_pending *p, uint64_t now)
{
    uint64_t span = span_ns(qp);
    uint64_t from = p->kept_ns > qp->resumed_ns ? p->kept_ns : qp->resumed_ns;
    if (fab_opcode_is_send(p->wr.opcode) || span == UINT64_MAX || qp->waits_for == SOFT_WAIT_TURN)
        return false;                /* the last: the peer is not silent */
    if (p->wr.key.not_after_ns != 0) /* a request with a time keeps to that */
        return qp->deadline_ns != 0 && now >= qp->deadline_ns;
    return (qp->deadline_ns != 0 && now >= qp->deadline_ns) ||
           (qp->rnr_tries == 0 && now > from && now - from >= 2 * span);
}

/* ---- completing */

void soft_qp_flush(struct soft_qp *qp)
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    if (!soft_has_unseen(qp))
        stop_waiting(qp);
    head_is_over(qp);
    for (; qp->pending_head != qp->pending_tail; qp->pending_head++)
        soft_cq_push(qp, &soft_pending_at(qp, qp->pending_head)->wr, IBV_WC_WR_FLUSH_ERR,
                     slot_of(qp, qp->pending_head));
    qp->flushed = soft_rq_flush(f, qp);
    if (!qp->flushed)
        atomic_fetch_add(&f->me->attention, 1);
    uint32_t cause = atomic_exchange(&qp->shared->cause, 0);
    if (cause != 0)
        fab_events_push(&f->events, (enum ibv_event_type)(cause - 1), &qp->base);
}

/* Our own request failed: the queue pair is broken, and what is behind it flushed. */
static void break_own(struct soft_qp *qp)
{
    atomic_store(&qp->shared->ident, soft_ident(qp->base.qpn, IBV_QPS_ERR));
    soft_mr_leave(qp);
    soft_qp_flush(qp);
}

/* Executes the head now, or says what became of it before. False: it goes on waiting. */
static bool try_head(struct soft_qp *qp, struct soft_pending *p, enum ibv_wc_status *status)
{
    uint64_t now = base_clock_ns();
    if (p->executed) {
        *status = p->status;
        return true;
    }
    if (qp->rnr_tries > 0 && now < qp->next_try_ns)
        return false;
    *status = IBV_WC_RETRY_EXC_ERR;
    if (is_late(qp, p, now))
        return true;
    bool waited = qp->rnr_tries > 0 || qp->waits_for == SOFT_WAIT_TURN;
    qp->ahead = p->ahead;
    enum soft_outcome outcome = soft_execute(qp, &p->wr, p->dgid, status);
    if (outcome != SOFT_DONE && keep_waiting(qp, &p->wr, outcome, now, status))
        return false;
    if (waited) /* and what is behind it, for its sake, also if this thread stood still in it */
        qp->resumed_ns = base_clock_ns();
    /* "Not executed, nor what is behind it" would be wrong of one that was overtaken. */
    if (*status == IBV_WC_RESP_TIMEOUT_ERR && p->overtaken)
        *status = IBV_WC_RETRY_EXC_ERR;
    return true;
}

/* Goes on from the head until something waits. */
void soft_qp_progress(struct soft_qp *qp)
{
    soft_unseen_poll(qp);
    while (soft_state(atomic_load(&qp->shared->ident)) == IBV_QPS_RTS &&
           qp->pending_head != qp->pending_tail) {
        struct soft_pending *p = soft_pending_at(qp, qp->pending_head);
        enum ibv_wc_status status;
        if (p->late && qp->held_polls > 0) {
            qp->held_polls--;
            break;
        }
        if (!try_head(qp, p, &status))
            break;
        head_is_over(qp);
        uint32_t freed = slot_of(qp, qp->pending_head++);
        soft_cq_push(qp, &p->wr, status, freed);
        if (status != IBV_WC_SUCCESS) {
            break_own(qp);
            return;
        }
    }
    soft_mr_step_out(qp);
    if (qp->pending_head == qp->pending_tail && !soft_has_unseen(qp))
        stop_waiting(qp);
}

/* Held back, with nothing before it, so that what comes next may overtake it. Its time has come:
 * a lane that sleeps is woken at once. */
static void hold_back(struct soft_qp *qp, const struct fab_wr *wr)
{
    const uint64_t now = base_clock_ns();
    keep_request(qp, wr, now);
    soft_pending_at(qp, qp->pending_tail - 1)->late = true;
    qp->next_try_ns = now;
    start_waiting(qp);
    soft_cq_timer(qp->send_cq);
}

/* At the doorbell, with nothing before it. */
static void execute_now(struct soft_qp *qp, const struct fab_wr *wr)
{
    enum ibv_wc_status status;
    uint64_t dgid[2] = {0};
    if (wr->ah != NULL && qp->base.type != FAB_QP_RC)
        soft_gid_words(wr->ah->dgid, dgid);
    enum soft_outcome outcome = soft_execute(qp, wr, dgid, &status);
    if (outcome != SOFT_DONE) {
        uint64_t now = base_clock_ns();
        if (keep_waiting(qp, wr, outcome, now, &status)) {
            keep_request(qp, wr, now);
            start_waiting(qp);
            soft_cq_timer(qp->send_cq);
            return;
        }
        head_is_over(qp);
    }
    soft_cq_push(qp, wr, status, qp->posted);
    if (status != IBV_WC_SUCCESS)
        break_own(qp);
    if (soft_has_unseen(qp) && !qp->waiting) { /* it is polled until all is seen */
        start_waiting(qp);
        soft_cq_timer(qp->send_cq);
    }
}

int soft_post_send(struct fab_qp *base, struct fab_wr *wr, struct fab_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    int result = 0;
    for (; wr != NULL; wr = wr->next) {
        enum ibv_qp_state state =
            soft_state(atomic_load_explicit(&qp->shared->ident, memory_order_acquire));
        uint32_t freed = atomic_load_explicit(&qp->shared->sq_freed, memory_order_relaxed);
        result = state != IBV_QPS_RTS && state != IBV_QPS_ERR ? -EINVAL
                 : qp->posted - freed >= qp->base.cap.send_wr ? -ENOMEM
                                                              : 0;
        if (result != 0) {
            *bad = wr;
            break;
        }
        qp->posted++;
        count_read(qp, wr);
        if (state == IBV_QPS_ERR) {
            keep_request(qp, wr, 0);
            soft_qp_flush(qp);
        } else if (qp->pending_head != qp->pending_tail) {
            keep_request(qp, wr, base_clock_ns());
            if (qp->late_order)
                soft_order_overtake(qp);
        } else if (qp->late_order && soft_order_holds_back(qp, wr)) {
            hold_back(qp, wr);
        } else {
            execute_now(qp, wr);
        }
    }
    soft_mr_leave(qp);
    return result;
}
