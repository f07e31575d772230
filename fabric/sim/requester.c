/* SPDX-License-Identifier: Apache-2.0 */
/* Go back N (IBTA 9.7): requests are numbered by packets, the answer to a READ takes as many as its
 * packets will be, and whatever is not answered in time is sent again from the oldest on. */
#include "sim/requester.h"

#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"
#include "sim/sim_model.h"
#include "sim/sim_qp_error.h"

static bool is_answered(const struct sim_wqe *w)
{
    return fab_opcode_is_answered(w->opcode);
}

static struct sim_on_behalf own_behalf(const struct sim_qp *qp, const struct sim_wqe *w)
{
    return (struct sim_on_behalf){
        .node = qp->dev->attr.node, .qpn = qp->base.qpn, .wr_id = w->wr_id};
}

/* ---- the end of requests */

static void break_qp(struct sim_qp *qp)
{
    sim_qp_to_err(qp, NULL); /* the completion says it */
}

static void hear_news(struct sim_qp *qp)
{
    qp->tries = 0;
    qp->repeats = false;
}

/* Completes what is over, in order. False: one had failed, and the queue pair is broken. */
static bool complete_head(struct sim_qp *qp)
{
    for (; qp->head != qp->tail; qp->head++) {
        struct sim_wqe *w = sim_wqe_at(qp, qp->head);
        if (w->failed) {
            const enum ibv_wc_status status = w->status;
            if (qp->dev->attr.nameless) {
                qp->head = qp->told;
                w = sim_wqe_at(qp, qp->head);
            }
            qp->told = ++qp->head;
            sim_tell(qp->dev->net, qp->dev->attr.node, "%s 0x%x: a request fails with status %d",
                     sim_qp_name(qp), qp->base.qpn, (int)status);
            sim_wqe_complete(qp, w, status);
            break_qp(qp);
            return false;
        }
        if (!w->done)
            break;
        sim_wqe_complete(qp, w, IBV_WC_SUCCESS);
        if (w->flags & IBV_SEND_SIGNALED)
            qp->told = qp->head + 1;
        hear_news(qp);
        qp->rnr_tries = 0;
    }
    if ((int32_t)(qp->next - qp->head) < 0) /* what was to be sent again is over by now */
        qp->next = qp->head;
    return true;
}

static void fail_wqe(struct sim_wqe *w, enum ibv_wc_status status)
{
    w->failed = true;
    w->status = status;
}

/* ---- time */

static uint64_t draw_timeout(struct sim_qp *qp)
{
    const uint64_t one = 4096ull << qp->timeout;
    const uint64_t stretch = qp->dev->stretch;
    const uint64_t least = qp->dev->attr.timeout_least_ns;
    /* Most are what they say, and some as long as the device may take. */
    const uint64_t drawn = base_prng_below(&qp->dev->prng, 4) != 0
                               ? one
                               : one + sim_upto(&qp->dev->prng, one * (stretch - 1));
    return drawn > least ? drawn : least;
}

static void arm_timer(struct sim_qp *qp)
{
    struct sim_net *net = qp->dev->net;
    if (qp->waits == SIM_WAITS_RECEIVER || qp->state == IBV_QPS_ERR)
        return;
    if (qp->head == qp->sent || qp->timeout == 0)
        sim_event_cancel(net, &qp->timer);
    else
        sim_event_set(net, &qp->timer, net->now_ns + draw_timeout(qp));
}

/* ---- sending */

/* What is given to the peer as the request's data, as it is in memory now. False: a SGE is not
 * sound any more. */
static bool gather_data(struct sim_qp *qp, const struct sim_wqe *w, struct sim_packet *p)
{
    const struct sim_on_behalf whose = own_behalf(qp, w);
    if (w->flags & IBV_SEND_INLINE) {
        memcpy(p->data, w->inline_data + w->got * qp->mtu, p->bytes);
        return true;
    }
    return sim_sges_read(qp->dev, qp->base.pd, w->sge, w->num_sge, w->got * qp->mtu, p->data,
                         p->bytes, &whose);
}

static const uint8_t *peer_gid(const struct sim_qp *qp, const struct sim_wqe *w)
{
    return qp->base.type == FAB_QP_RC ? qp->gid : w->dgid;
}

/* Sends a request, or what is left of one of which a part was answered. False: it failed. */
static bool send_request(struct sim_qp *qp, struct sim_wqe *w)
{
    const bool answered = is_answered(w);
    const bool rc = qp->base.type == FAB_QP_RC;
    struct sim_packet *p =
        sim_packet_new(qp->dev, SIM_REQUEST, peer_gid(qp, w), rc ? qp->dest_qpn : w->dest_qpn,
                       answered ? 0 : w->length - w->got * qp->mtu);
    if (!answered && !gather_data(qp, w, p)) {
        free(p);
        fail_wqe(w, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    p->from_qpn = qp->base.qpn;
    p->dc = !rc;
    p->connection = qp->connection;
    p->first_psn = qp->first_psn;
    p->dc_key = w->dc_key;
    p->psn = (w->psn + w->got) & SIM_PSN_MASK;
    p->packets = answered ? 1 : w->packets - w->got;
    p->at = w->got;
    p->of = w->packets;
    p->mtu = qp->mtu;
    p->opcode = w->opcode;
    p->wr_id = w->wr_id;
    p->solicited = (w->flags & IBV_SEND_SOLICITED) != 0;
    p->imm = w->imm;
    p->rkey = w->rkey;
    p->length = w->length;
    p->remote_addr = w->remote_addr;
    p->compare_add = w->compare_add;
    p->swap = w->swap;
    if (qp->dev->nic != NULL)
        sim_model_send(qp, w, p);
    else
        sim_wire_send(qp->dev, p, qp->dev->net->now_ns);
    return true;
}

/* Whether a DCI is connected to where this request goes; if it is free to, it is then: by a
 * connection that is later than all before, also those of a former DCI with its number. */
static bool is_connected(struct sim_qp *qp, const struct sim_wqe *w)
{
    if (qp->base.type == FAB_QP_RC)
        return true;
    if (qp->connected && qp->dest_qpn == w->dest_qpn && qp->dc_key == w->dc_key &&
        memcmp(qp->gid, w->dgid, 16) == 0)
        return true;
    if (qp->head != qp->sent) /* it serves one target after the other */
        return false;
    qp->connected = qp->reconnects = true;
    qp->connection = ++qp->dev->net->connections;
    qp->first_psn = qp->psn = (uint32_t)base_prng_next(&qp->dev->prng) & SIM_PSN_MASK;
    qp->dest_qpn = w->dest_qpn;
    qp->dc_key = w->dc_key;
    memcpy(qp->gid, w->dgid, 16);
    return true;
}

/* Gives the request its numbers, if it may go now. False: not yet, or it failed. */
static bool begin_wqe(struct sim_qp *qp, struct sim_wqe *w)
{
    const bool answered = is_answered(w);
    if (w->failed || !is_connected(qp, w) || (qp->reads > 0 && (w->flags & IBV_SEND_FENCE)) ||
        (answered && qp->reads >= qp->max_reads))
        return false;
    if (!(w->flags & IBV_SEND_INLINE) &&
        !sim_sges_are_sound(qp->dev, qp->base.pd, w->sge, w->num_sge,
                            answered ? IBV_ACCESS_LOCAL_WRITE : 0)) {
        fail_wqe(w, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    w->psn = qp->psn;
    w->packets = fab_opcode_is_atomic(w->opcode) ? 1 : sim_packets_of(w->length, qp->mtu);
    qp->psn = (qp->psn + w->packets) & SIM_PSN_MASK;
    qp->reads += answered;
    qp->sent++;
    return true;
}

void sim_requester_go_on(struct sim_qp *qp)
{
    const enum ibv_event_type fatal = IBV_EVENT_QP_FATAL;
    const bool idle = qp->head == qp->sent;
    while (qp->state == IBV_QPS_RTS && qp->waits == SIM_WAITS_ANSWER && qp->next != qp->tail) {
        struct sim_wqe *w = sim_wqe_at(qp, qp->next);
        if (qp->next == qp->sent && !begin_wqe(qp, w))
            break;
        if (sim_chance(&qp->dev->prng, qp->dev->faults.break_ppm)) {
            sim_qp_to_err(qp, &fatal);
            return;
        }
        if (!w->done && !send_request(qp, w))
            break;
        qp->next++;
    }
    if (qp->state == IBV_QPS_RTS && complete_head(qp) && (idle || qp->timer.is == SIM_EVENT_UNSET))
        arm_timer(qp);
}

/* From the request at `from` on, all is sent again. */
static void go_back(struct sim_qp *qp, uint32_t from)
{
    sim_tell(qp->dev->net, qp->dev->attr.node, "%s 0x%x sends again from packet %u",
             sim_qp_name(qp), qp->base.qpn, sim_wqe_at(qp, from)->psn);
    qp->next = from;
}

/* Something behind a READ or an atomic is answered, and that one is not: it is asked for again from
 * there on (IBTA 9.9.2.2.1, implied NAK), which is one more try with some devices. Once: what else
 * is on the way has been asked for before, and asked for again for each of these it would multiply.
 * With others it is none, and each answer to a later request has it asked for again: these go on
 * for as long as there are such requests. */
static void go_back_implied(struct sim_qp *qp, uint32_t from, uint32_t psn)
{
    const bool counts = !qp->dev->implied_free;
    if (qp->repeats && (counts || sim_psn_ahead(psn, qp->repeats_psn) < 0))
        return;
    qp->repeats = true;
    qp->repeats_psn = qp->psn;
    if (counts && qp->tries++ >= qp->retry_cnt)
        fail_wqe(sim_wqe_at(qp, from), IBV_WC_RETRY_EXC_ERR);
    else
        go_back(qp, from);
}

void sim_requester_timer(struct sim_event *e)
{
    struct sim_qp *qp = (struct sim_qp *)(void *)((char *)e - offsetof(struct sim_qp, timer));
    if (qp->state == IBV_QPS_ERR) {
        sim_qp_flush_due(qp);
        return;
    }
    if (qp->waits == SIM_WAITS_RECEIVER) {
        qp->waits = SIM_WAITS_ANSWER;
        sim_requester_go_on(qp);
        return;
    }
    qp->repeats = false;
    if (qp->tries++ < qp->retry_cnt) {
        go_back(qp, qp->head);
        sim_requester_go_on(qp);
        return;
    }
    fail_wqe(sim_wqe_at(qp, qp->head), IBV_WC_RETRY_EXC_ERR);
    (void)complete_head(qp);
}

/* ---- answers */

/* All before `psn` was executed, so that WRITEs and SENDs are over, perhaps but for their end.
 * False: a READ or an atomic at *at is not. */
static bool finish_before(struct sim_qp *qp, uint32_t psn, uint32_t *at)
{
    for (*at = qp->head; *at != qp->sent; ++*at) {
        struct sim_wqe *w = sim_wqe_at(qp, *at);
        const int32_t ahead = sim_psn_ahead(psn, w->psn);
        if (ahead < (int32_t)w->packets) {
            if (!is_answered(w) && ahead > (int32_t)w->got) {
                w->got = (uint32_t)ahead;
                hear_news(qp);
            }
            return true;
        }
        if (is_answered(w) && !w->done)
            return false;
        w->done = true;
    }
    return true;
}

/* Which request the packet number is of; `sent`: of none. */
static uint32_t find_wqe(const struct sim_qp *qp, uint32_t psn)
{
    uint32_t i = qp->head;
    for (; i != qp->sent; i++) {
        const struct sim_wqe *w = sim_wqe_at(qp, i);
        const int32_t ahead = sim_psn_ahead(psn, w->psn);
        if (ahead >= 0 && ahead < (int32_t)w->packets)
            break;
    }
    return i;
}

static void make_progress(struct sim_qp *qp)
{
    if (complete_head(qp)) {
        arm_timer(qp);
        sim_requester_go_on(qp);
    }
}

static void take_ack(struct sim_qp *qp, uint32_t psn)
{
    uint32_t at;
    if (!finish_before(qp, psn + 1, &at))
        go_back_implied(qp, at, psn);
    make_progress(qp);
}

static void wait_for_receiver(struct sim_qp *qp, struct sim_wqe *w, uint8_t code)
{
    struct sim_net *net = qp->dev->net;
    qp->tries = 0; /* it answers */
    if (qp->rnr_retry != 7 && qp->rnr_tries >= qp->rnr_retry) {
        fail_wqe(w, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    qp->rnr_tries++;
    qp->waits = SIM_WAITS_RECEIVER;
    sim_event_set(net, &qp->timer, net->now_ns + fab_ibta_rnr_ns(code));
}

static void take_nak(struct sim_qp *qp, const struct sim_packet *p)
{
    static const enum ibv_wc_status status[] = {[SIM_NAK_INVALID] = IBV_WC_REM_INV_REQ_ERR,
                                                [SIM_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
                                                [SIM_NAK_FAILED] = IBV_WC_REM_OP_ERR};
    uint32_t at;
    struct sim_wqe *w = sim_wqe_at(qp, find_wqe(qp, p->psn));
    if (p->code == SIM_NAK_GAP && qp->waits == SIM_WAITS_RECEIVER)
        return; /* of what was behind the one that waits */
    if (!finish_before(qp, p->psn, &at)) {
        go_back_implied(qp, at, p->psn);
        make_progress(qp);
        return;
    }
    go_back(qp, at);
    if (!complete_head(qp))
        return;
    if (p->code == SIM_NAK_NOT_READY)
        wait_for_receiver(qp, w, p->rnr_timer);
    else if (p->code != SIM_NAK_GAP)
        fail_wqe(w, status[p->code]);
    else if (qp->tries++ >= qp->retry_cnt) /* one more of these tries (9.9.2.1.1) */
        fail_wqe(w, IBV_WC_RETRY_EXC_ERR);
    make_progress(qp);
}

/* Data of a READ or an atomic. What is in order goes to memory at once. */
static void take_data(struct sim_qp *qp, const struct sim_packet *p, uint32_t i)
{
    struct sim_wqe *w = sim_wqe_at(qp, i);
    const struct sim_on_behalf whose = own_behalf(qp, w);
    const uint32_t from = (uint32_t)sim_psn_ahead(p->psn, w->psn);
    uint32_t at;
    if (!is_answered(w) || w->done)
        return;
    if (!finish_before(qp, w->psn, &at) || from > w->got) {
        go_back_implied(qp, from > w->got && at == i ? i : at, p->psn);
        sim_requester_go_on(qp);
        return;
    }
    const uint32_t skip = (w->got - from) * qp->mtu, end = from + p->packets;
    if (end <= w->got)
        return;
    if (p->bytes > skip &&
        !sim_sges_write(qp->dev, qp->base.pd, w->sge, w->num_sge, w->got * qp->mtu, p->data + skip,
                        p->bytes - skip, &whose))
        fail_wqe(w, IBV_WC_LOC_PROT_ERR);
    w->got = end < w->packets ? end : w->packets;
    w->done = w->got == w->packets;
    hear_news(qp);
    if (w->done && qp->reads > 0)
        qp->reads--;
    if (p->cut && !w->done && !w->failed)
        go_back(qp, i); /* what comes behind the gap tells of it */
    make_progress(qp);
}

/* Behind the end of its queue pair a request is the device's until it is flushed: what is on its
 * way into memory may arrive there, in any order, and nobody hears of it. */
static void take_data_late(struct sim_qp *qp, const struct sim_packet *p, uint32_t i)
{
    const struct sim_wqe *w = sim_wqe_at(qp, i);
    const struct sim_on_behalf whose = own_behalf(qp, w);
    const uint32_t from = (uint32_t)sim_psn_ahead(p->psn, w->psn);
    if (!is_answered(w) || w->done || w->failed || base_prng_below(&qp->dev->prng, 4) == 0)
        return;
    sim_tell(qp->dev->net, qp->dev->attr.node, "%s 0x%x is in ERR, and takes an answer",
             sim_qp_name(qp), qp->base.qpn);
    (void)sim_sges_write(qp->dev, qp->base.pd, w->sge, w->num_sge, from * qp->mtu, p->data,
                         p->bytes, &whose);
}

void sim_requester_answered(struct sim_qp *qp, const struct sim_packet *p)
{
    const uint32_t i = find_wqe(qp, p->psn);
    if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) || i == qp->sent)
        return; /* of nothing that is out: late, or twice */
    if (qp->state == IBV_QPS_ERR) {
        if (p->kind == SIM_READ_ANSWER || p->kind == SIM_ATOMIC_ANSWER)
            take_data_late(qp, p, i);
        return;
    }
    switch (p->kind) {
    case SIM_ACK:
        take_ack(qp, p->psn);
        return;
    case SIM_NAK:
        take_nak(qp, p);
        return;
    default:
        take_data(qp, p, i);
        return;
    }
}
