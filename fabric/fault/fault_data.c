/* SPDX-License-Identifier: Apache-2.0 */
/* Posting and polling.
 *
 * A request that shall fail is posted as one that the inner provider must refuse on its own side: a
 * WRITE (a SEND on UD) out of memory that no key names. So it is not executed, it fails in its
 * turn, its queue pair breaks as it would, and what is behind it flushes in order; of its
 * completion only the status is changed. A datagram that shall be lost goes to a queue pair that is
 * not there. One that is executed and fails all the same: answers.c.
 *
 * With errors_first an error's completion has the name of the oldest request of which nothing was
 * said, though that was executed, and all from there on are flushed: so do libirdma and
 * libbnxt_re, which count along with completions alone. */
#include "fault/fault_data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fault/answers.h"
#include "fault/gone.h"
#include "fault/poison.h"
#include "fault/psn.h"
#include "opcode.h"

static const uint32_t nobody = 0xfffffe;

enum { LEFT_PPM = 750000 /* of what has completed one after another, when the device is gone */ };
enum { CUT_LATE_PPM = 500000 /* of what is cut so much had arrived, and the answer was cut */ };

/* ---- posting */

/* It is not executed. */
static void make_fail(struct fault_fab *f, struct fault_qp *qp, struct fab_wr *wr)
{
    struct fault_poison *poison = fault_poison_take(f, qp);
    const struct fault_plan *plan = &f->now.plan;
    poison->wr_id = wr->wr_id;
    poison->status = plan->status != IBV_WC_SUCCESS ? plan->status : IBV_WC_RETRY_EXC_ERR;
    fault_make_fail(qp, poison, wr);
}

/* Of more than one packet, of which the path takes none: neither of a WRITE, nor of a READ's
 * answer.
 */
static bool is_too_long(const struct fault_plan *plan, const struct fault_qp *qp,
                        const struct fab_wr *wr)
{
    const enum ibv_mtu most =
        plan->hop != 0 && (plan->mtu == 0 || plan->hop < plan->mtu) ? plan->hop : plan->mtu;
    uint64_t length = 0;
    if (most == 0 || atomic_load_explicit(&qp->mtu, memory_order_relaxed) <= most)
        return false;
    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    return length > 128u << most;
}

static bool is_cut(const struct fault_plan_state *now, const struct fault_qp *qp,
                   const struct fab_wr *wr)
{
    const struct fault_plan *plan = &now->plan;
    const struct fault_way *way =
        wr->ah != NULL ? &((const struct fault_ah *)wr->ah)->way : &qp->way;
    if (plan->moved && way->made_under == now->generation)
        return false;
    return plan->cuts && memcmp(way->gid, plan->cut, sizeof plan->cut) == 0 &&
           (plan->cut_while[0] == '\0' || access(plan->cut_while, F_OK) == 0);
}

/* It is in another partition than its domain: of what it sends nothing arrives. */
static bool is_astray(const struct fault_plan *plan, const struct fault_qp *qp)
{
    return plan->pkey_gone ||
           (plan->pkey_moved != 0 && atomic_load_explicit(&qp->pkey_index, memory_order_relaxed) !=
                                         fault_pkey_index(plan, qp->base.pd));
}

static const uint64_t sent_mark = 1ull << 63;

/* Its number for the inner provider, which says where it stands. */
static void note_sent(struct fault_qp *qp, struct fab_wr *wr)
{
    struct fault_sent *sent = &qp->sent[qp->sent_tail % FAULT_SENT];
    *sent = (struct fault_sent){.qp = qp, .wr_id = wr->wr_id, .index = qp->sent_tail++};
    wr->wr_id = sent_mark | (uintptr_t)sent;
}

/* Adds our copy of a request to the list, with the inner address handle. */
static struct fab_wr *add_copy(struct fault_fab *f, struct fault_qp *qp, struct fab_wr *wr,
                               struct fault_list *list)
{
    const int at = list->count++;
    struct fab_wr *copy = &list->copy[at];
    *copy = *wr;
    copy->next = NULL;
    if (at > 0)
        copy[-1].next = copy;
    list->caller[at] = wr;
    if (f->errors_first && qp->base.type != FAB_QP_UD)
        note_sent(qp, copy);
    if (wr->ah != NULL)
        copy->ah = ((const struct fault_ah *)wr->ah)->inner;
    return copy;
}

/* Of a request that may be made to fail now: whether its answer is lost, and not itself. */
static bool loses_answer(struct fault_fab *f, struct fault_qp *qp, bool cut)
{
    const uint32_t share = cut ? CUT_LATE_PPM : f->now.plan.answer_loss_ppm;
    return qp->has_room && share > 0 && fault_hits(&f->now, &qp->stream, share);
}

/* Of a request that may be made to fail now: whether it fails in the middle. */
static bool is_torn(struct fault_fab *f, struct fault_qp *qp, const struct fab_wr *wr)
{
    return qp->has_room && f->now.plan.torn_ppm > 0 && !f->errors_first && wr->num_sge > 0 &&
           (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_RDMA_WRITE) &&
           fault_hits(&f->now, &qp->stream, f->now.plan.torn_ppm);
}

/* The last that was added is carried out up to a place, and behind it stands one that fails in its
 * name. */
static void tear_last(struct fault_fab *f, struct fault_qp *qp, struct fault_list *list)
{
    const int at = list->count++;
    struct fab_wr *part = &list->copy[at - 1], *rest = &list->copy[at];
    struct fault_poison *poison = fault_poison_take(f, qp);
    *rest = *part;
    part->next = rest;
    list->caller[at] = list->caller[at - 1];
    poison->wr_id = part->wr_id;
    poison->status = f->now.plan.status != IBV_WC_SUCCESS ? f->now.plan.status : IBV_WC_REM_OP_ERR;
    fault_make_fail(qp, poison, rest);
    part->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    if (part->num_sge > 1) {
        part->num_sge = 1 + (int)base_prng_below(&qp->stream.prng, (uint64_t)part->num_sge - 1);
        return;
    }
    list->torn = part->sg_list[0];
    list->torn.length = (uint32_t)base_prng_below(&qp->stream.prng, list->torn.length);
    part->sg_list = &list->torn;
    part->num_sge = list->torn.length > 0;
}

/* And what the plan does to it. */
static void add_request(struct fault_fab *f, struct fault_qp *qp, struct fab_wr *wr,
                        struct fault_list *list)
{
    const struct fault_plan *plan = &f->now.plan;
    if (list->silence != NULL && fault_silence_goes_on(qp, list, wr)) {
        (void)add_copy(f, qp, wr, list);
        (void)fault_psn_is_late(f, qp, wr);
        fault_silence_join(list);
        return;
    }
    fault_silence_end(qp, list);
    struct fab_wr *copy = add_copy(f, qp, wr, list);
    bool too_long = is_too_long(plan, qp, wr), cut = is_cut(&f->now, qp, wr);
    const bool astray = is_astray(plan, qp);
    if (fault_psn_is_late(f, qp, wr)) { /* complete, and never executed */
        copy->opcode = IBV_WR_RDMA_WRITE;
        copy->send_flags &= ~(unsigned)IBV_SEND_INLINE;
        copy->num_sge = 0;
        fault_count_one(f);
        return;
    }
    bool fails = fault_hits(&f->now, &qp->stream, plan->completion_error_ppm);
    bool is_lost = fault_hits(&f->now, &qp->stream, plan->loss_ppm);
    const bool may_fail = !qp->broken && fab_qp_state(qp->inner) == IBV_QPS_RTS;
    if (may_fail && (fails || too_long || (astray && qp->base.type != FAB_QP_UD)))
        make_fail(f, qp, copy);
    else if (qp->base.type == FAB_QP_UD) {
        if (!is_lost && !cut && !astray)
            return;
        copy->dest_qpn = nobody;
        fault_count_one(f);
    } else if (may_fail && loses_answer(f, qp, cut))
        fault_silence_begin(f, qp, list);
    else if (may_fail && cut)
        make_fail(f, qp, copy);
    else if (may_fail && is_torn(f, qp, wr))
        tear_last(f, qp, list);
}

/* What some device does not take, and rxe says so at the post: mlx4's driver has to
 * write another number for a piece of length 0, irdma's reads the first piece of a list that has
 * none. */
static bool is_disliked(const struct fab_caps *caps, const struct fab_qp *qp,
                        const struct fab_wr *wr)
{
    const bool has_atomics = qp->type == FAB_QP_DCI ? caps->dc_atomics : caps->atomics;
    uint64_t bytes = 0;
    bool empty = false;
    if (fab_opcode_takes_receive(wr->opcode))
        return false;
    for (int i = 0; i < wr->num_sge; i++) {
        bytes += wr->sg_list[i].length;
        empty |= wr->sg_list[i].length == 0;
    }
    if ((fab_opcode_is_atomic(wr->opcode) && !has_atomics) ||
        !fab_opcode_is_aligned(wr->opcode, wr->remote_addr))
        return true;
    return empty || bytes == 0 || bytes > caps->max_msg_size ||
           ((wr->send_flags & IBV_SEND_FENCE) && !caps->fences);
}

/* The device refuses the request itself, at the post. */
static bool is_refused(struct fault_fab *f, struct fault_qp *qp, const struct fab_wr *wr)
{
    const bool hit =
        f->now.plan.refuse_ppm != 0 && fault_hits(&f->now, &qp->stream, f->now.plan.refuse_ppm);
    if (!hit && !(f->now.plan.picky && is_disliked(&f->base.caps, &qp->base, wr)))
        return false;
    fault_count_one(f);
    return true;
}

/* What was not posted of the list is not out. */
static void take_back(const struct fault_fab *f, struct fault_qp *qp, const struct fault_list *list,
                      int from)
{
    for (int i = from; f->errors_first && i < list->count; i++)
        qp->sent_tail -= i == 0 || list->caller[i] != list->caller[i - 1];
}

enum { UNHEARD_PPM = 500000 /* of what is posted after the device is gone so much is taken */ };

/* As a driver's library may, which writes a doorbell that leads nowhere: taken, and never heard of.
 */
static int post_to_gone(const struct fault_fab *f, struct fault_qp *qp, struct fab_wr *wr,
                        struct fab_wr **bad)
{
    if (fault_hits(&f->now, &qp->stream, UNHEARD_PPM))
        return 0;
    *bad = wr;
    return -EIO;
}

int fault_post_send(struct fab_qp *base, struct fab_wr *wr, struct fab_wr **bad)
{
    struct fault_qp *qp = (struct fault_qp *)base;
    struct fault_fab *f = fault_of(base->pd->fab);
    struct fab_wr *refused = NULL;
    if (fault_is_gone(f))
        return post_to_gone(f, qp, wr, bad);
    if (fault_hits(&f->now, &qp->stream, f->now.plan.post_error_ppm)) {
        fault_count_one(f);
        *bad = wr;
        return -ENOMEM;
    }
    while (wr != NULL) {
        struct fault_list list;
        bool stop = false;
        list.count = 0;
        list.silence = NULL;
        for (; wr != NULL && list.count < FAULT_CHUNK; wr = wr->next) {
            stop = is_refused(f, qp, wr);
            if (stop)
                break;
            add_request(f, qp, wr, &list);
        }
        fault_silence_end(qp, &list);
        int status = list.count > 0 ? fab_post_send(qp->inner, list.copy, &refused) : 0;
        if (status != 0) {
            const int at = (int)(refused - list.copy);
            take_back(f, qp, &list, at);
            *bad = list.caller[at];
            return status;
        }
        if (stop) {
            *bad = wr;
            return -EINVAL;
        }
    }
    return 0;
}

int fault_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    if (fault_is_gone(fault_of(qp->pd->fab))) {
        *bad = wr;
        return -EIO;
    }
    return fab_post_recv(((struct fault_qp *)qp)->inner, wr, bad);
}

int fault_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    if (fault_is_gone(fault_of(srq->pd->fab))) {
        *bad = wr;
        return -EIO;
    }
    return fab_post_srq_recv(((struct fault_srq *)srq)->inner, wr, bad);
}

/* ---- polling */

/* Of one that was made to fail, or whose answer is lost; else NULL. */
static struct fault_poison *poison_of(const struct fault_cq *cq, const struct ibv_wc *wc)
{
    const uint64_t first = (uintptr_t)cq->poison;
    if (wc->wr_id < first || wc->wr_id >= first + cq->poison_room * sizeof cq->poison[0])
        return NULL;
    struct fault_poison *poison = &cq->poison[(wc->wr_id - first) / sizeof cq->poison[0]];
    return poison->qpn != 0 && poison->qpn == wc->qp_num ? poison : NULL;
}

/* Gives a request that was made to fail its own number back, and its status if it failed by that.
 */
static void restore_wc(const struct fault_cq *cq, struct ibv_wc *wc)
{
    struct fault_poison *poison = wc->status != IBV_WC_SUCCESS ? poison_of(cq, wc) : NULL;
    if (poison == NULL)
        return;
    wc->wr_id = poison->wr_id;
    if (wc->status == IBV_WC_LOC_PROT_ERR)
        wc->status = poison->status;
    poison->qpn = 0;
}

static void hold_wc(struct fault_fab *f, struct fault_cq *cq, const struct ibv_wc *wc)
{
    struct fault_held *held = &cq->held[cq->held_tail++ % cq->held_room];
    bool late = fault_hits(&f->now, &cq->stream, f->now.plan.delay_ppm);
    *held = (struct fault_held){.wc = *wc, .ready_at = cq->polls};
    if (late && !cq->armed) {
        held->ready_at += f->now.plan.delay_polls;
        fault_count_one(f);
    }
}

/* One completion, or with errors_first what becomes of it. */
static void hold_named(struct fault_fab *f, struct fault_cq *cq, struct ibv_wc *wc)
{
    if (!f->errors_first || !(wc->wr_id & sent_mark)) {
        hold_wc(f, cq, wc);
        return;
    }
    const struct fault_sent *last = (const struct fault_sent *)(wc->wr_id & ~sent_mark);
    struct fault_qp *qp = last->qp;
    const uint32_t end = last->index + 1;
    if (wc->status == IBV_WC_SUCCESS)
        qp->sent_head = last->index; /* it stands for those before */
    else
        fault_count_one(f);
    for (; qp->sent_head != end; qp->sent_head++) {
        wc->wr_id = qp->sent[qp->sent_head % FAULT_SENT].wr_id;
        hold_wc(f, cq, wc);
        if (wc->status != IBV_WC_SUCCESS)
            wc->status = IBV_WC_WR_FLUSH_ERR;
    }
}

/* Those whose answers are lost, once: the first error among them is the first one's. */
static void hold_unanswered(struct fault_fab *f, struct fault_cq *cq, struct fault_poison *poison,
                            struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS || poison->said)
        return;
    poison->said = true;
    wc->status = poison->status;
    for (uint32_t i = 0; i < poison->unanswered; i++) {
        wc->wr_id = poison->unanswered_id[i];
        hold_named(f, cq, wc);
        wc->status = IBV_WC_WR_FLUSH_ERR;
    }
}

/* What becomes of one completion of the inner provider's. */
static void hold_all(struct fault_fab *f, struct fault_cq *cq, struct ibv_wc *wc)
{
    struct fault_poison *poison = f->loses_answers ? poison_of(cq, wc) : NULL;
    if (poison != NULL && poison->unanswered > 0) {
        hold_unanswered(f, cq, poison, wc);
        return;
    }
    restore_wc(cq, wc);
    hold_named(f, cq, wc);
}

/* One of its queue pair is withheld, among those up to `end`. */
static bool is_behind(const struct fault_cq *cq, uint32_t qpn, uint32_t end)
{
    for (uint32_t at = cq->held_head; at != end; at++)
        if (cq->held[at % cq->held_room].wc.qp_num == qpn)
            return true;
    return false;
}

/* Nothing orders the completions of two queue pairs: who is withheld holds up its own alone. */
static int take_held(struct fault_cq *cq, int n, struct ibv_wc *wc)
{
    int taken = 0;
    uint32_t end = cq->held_head; /* of those that stay */
    for (uint32_t at = cq->held_head; at != cq->held_tail; at++) {
        const struct fault_held held = cq->held[at % cq->held_room];
        const bool is_due = cq->armed || cq->polls >= held.ready_at;
        if (taken < n && is_due && !is_behind(cq, held.wc.qp_num, end))
            wc[taken++] = held.wc;
        else
            cq->held[end++ % cq->held_room] = held;
    }
    cq->held_tail = end;
    return taken;
}

/* Moves completions into held, each with the poll that may return it. -EIO as poll. The inner
 * provider has then given their send slots back: while a completion is withheld, a caller who posts
 * more than it has slots for is refused later than usual. */
static int fill_held(struct fault_fab *f, struct fault_cq *cq)
{
    const uint32_t used = cq->held_tail - cq->held_head;
    const bool one_becomes_many = f->errors_first || f->loses_answers;
    struct ibv_wc wc[FAULT_HELD];
    int room = used >= FAULT_HELD ? 0 : one_becomes_many ? 1 : (int)(FAULT_HELD - used);
    int got = room > 0 ? fab_poll(cq->inner, room, wc) : 0;
    for (int i = 0; i < got; i++)
        hold_all(f, cq, &wc[i]);
    return got;
}

static int poll_present(struct fault_fab *f, struct fault_cq *cq, int n, struct ibv_wc *wc)
{
    int got = 0;
    if (f->now.plan.delay_ppm == 0 && cq->held_head == cq->held_tail && !f->errors_first &&
        !f->loses_answers) {
        got = fab_poll(cq->inner, n, wc);
        for (int i = 0; i < got; i++)
            restore_wc(cq, &wc[i]);
    } else {
        int status = fill_held(f, cq);
        if (status < 0)
            return status;
        got = take_held(cq, n, wc);
        cq->polls++;
    }
    if (got > 0)
        cq->armed = false;
    return got;
}

/* What the device had completed is in memory and stays there; the rest never comes. */
static int poll_left(struct fault_fab *f, struct fault_cq *cq, int n, struct ibv_wc *wc)
{
    int got = 0;
    while (got < n && !cq->silent) {
        const int one =
            fault_hits(&f->now, &cq->stream, LEFT_PPM) ? poll_present(f, cq, 1, &wc[got]) : 0;
        cq->silent = one <= 0;
        got += one > 0;
    }
    return got;
}

int fault_poll(struct fab_cq *base, int n, struct ibv_wc *wc)
{
    struct fault_cq *cq = (struct fault_cq *)base;
    struct fault_fab *f = fault_of(base->fab);
    return fault_is_gone(f) ? poll_left(f, cq, n, wc) : poll_present(f, cq, n, wc);
}

/* From here on its owner may sleep on the channel, and would never poll a withheld completion free:
 * so those are due, and none is withheld before the next poll that returns something. */
int fault_arm(struct fab_cq *base, bool solicited_only)
{
    struct fault_cq *cq = (struct fault_cq *)base;
    if (fault_is_gone(fault_of(base->fab)))
        return 0;
    int status = fab_arm(cq->inner, solicited_only);
    if (status == 0)
        cq->armed = true;
    return status;
}

bool fault_is_busy(const struct fab_cq *base)
{
    return !fault_is_gone(fault_of(base->fab)) &&
           fab_is_busy(((const struct fault_cq *)base)->inner);
}
