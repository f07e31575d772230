/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are accepted in the order of their numbers, executed in any order that IBTA 9.5 (table
 * 79) leaves open, and answered in the order of acceptance. */
#include "sim/responder.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "ibta/ibta.h"
#include "sim/execute.h"
#include "sim/sim_model.h"
#include "sim/sim_qp_error.h"

static const uint64_t USUAL_DELAY_NS = 2000;

/* Until a request is begun, and from piece to piece. */
static uint64_t draw_delay(const struct sim_exec *x)
{
    struct sim_device *dev = x->r->dev;
    if (x->stalls)
        return sim_upto(&dev->prng, dev->net->stall_ns / x->pieces);
    return sim_upto(&dev->prng, dev->attr.piece_ns != 0 ? dev->attr.piece_ns : USUAL_DELAY_NS);
}

static bool is_answered(const struct sim_packet *p)
{
    return fab_opcode_is_answered(p->opcode);
}

/* READs and atomics of one requester that there is room for. A DC target is told of none by verbs:
 * its device has as many for each initiator as an initiator may ever have out. */
static uint32_t room_for_reads(const struct sim_responder *r)
{
    return r->qp != NULL ? r->qp->max_dest_reads : SIM_MAX_READS;
}

static bool needs_receive(const struct sim_packet *p)
{
    return fab_opcode_takes_receive(p->opcode);
}

/* ---- answers */

static void send_answer(struct sim_responder *r, struct sim_packet *p)
{
    if (r->ended) {
        free(p);
        return;
    }
    p->dc = r->dct != NULL;
    p->connection = r->connection;
    sim_wire_send(r->dev, p,
                  r->dev->nic != NULL ? sim_model_answers(r->dev, p) : r->dev->net->now_ns);
}

static void send_short(struct sim_responder *r, enum sim_packet_kind kind, uint32_t psn,
                       enum sim_nak code)
{
    struct sim_packet *p = sim_packet_new(r->dev, kind, r->gid, r->qpn, 0);
    p->psn = psn & SIM_PSN_MASK;
    p->packets = 1;
    p->code = code;
    p->rnr_timer = r->qp != NULL ? r->qp->min_rnr_timer : 1;
    send_answer(r, p);
}

static void send_atomic(struct sim_responder *r, uint32_t psn, uint64_t before)
{
    struct sim_packet *p = sim_packet_new(r->dev, SIM_ATOMIC_ANSWER, r->gid, r->qpn, 8);
    p->psn = psn;
    p->packets = 1;
    p->mtu = 8;
    memcpy(p->data, &before, 8);
    send_answer(r, p);
}

static uint32_t last_psn(const struct sim_packet *p)
{
    return p->psn + (is_answered(p) ? p->of - p->at : p->packets) - 1;
}

/* It is refused: an RC queue pair breaks with it (9.9.3); of a DC target the connection is over. */
static void send_refusal(struct sim_responder *r, const struct sim_exec *x)
{
    const enum ibv_event_type event = x->own_fault                ? IBV_EVENT_QP_FATAL
                                      : x->code == SIM_NAK_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
                                                                  : IBV_EVENT_QP_REQ_ERR;
    send_short(r, SIM_NAK, x->packet->psn + x->skip, x->code);
    if (r->qp != NULL) {
        sim_qp_to_err(r->qp, &event); /* its queue is cleared */
        return;
    }
    sim_responder_clear(r);
}

static void take_out(struct sim_responder *r, struct sim_exec *x)
{
    TAILQ_REMOVE(&r->queue, x, link);
    r->answering -= is_answered(x->packet);
    r->fresh -= is_answered(x->packet) && !x->again;
}

/* Of what is executed, from the oldest on. */
static void send_answers(struct sim_responder *r)
{
    uint32_t acked = 0;
    bool acks = false;
    for (struct sim_exec *x; (x = TAILQ_FIRST(&r->queue)) != NULL && x->done;) {
        if (x->refused) {
            send_refusal(r, x);
            return;
        }
        take_out(r, x);
        /* A READ's answer acknowledges what is before it, and that of one that came twice nothing
         * that came meanwhile. */
        if (!is_answered(x->packet)) {
            acks = true;
            acked = last_psn(x->packet);
        } else if (acks && sim_psn_ahead(last_psn(x->packet), acked) > 0) {
            acks = false;
        }
        if (x->packet->opcode == IBV_WR_RDMA_READ) {
            send_answer(r, x->answer);
            x->answer = NULL;
        } else if (is_answered(x->packet)) {
            send_atomic(r, x->packet->psn, x->before);
        }
        sim_exec_free(x);
    }
    if (acks)
        send_short(r, SIM_ACK, acked, SIM_NAK_GAP);
    if (TAILQ_EMPTY(&r->queue) && r->owes) {
        r->owes = false;
        send_short(r, SIM_NAK, r->epsn, r->owed);
    }
}

/* A NAK says that all before it was executed: it waits until that is so. */
static void owe_nak(struct sim_responder *r, enum sim_nak code)
{
    r->owes = true;
    r->owed = code;
    if (TAILQ_EMPTY(&r->queue))
        send_answers(r);
}

/* ---- the order */

/* Whether `behind` may be executed before `first` is (IBTA 9.5): what comes behind a READ or an
 * atomic may, unless it is a READ; had it a fence, it was not sent. */
static bool may_overtake(const struct sim_exec *behind, const struct sim_exec *first)
{
    const struct sim_packet *b = behind->packet, *f = first->packet;
    return is_answered(f) && b->opcode != IBV_WR_RDMA_READ;
}

static bool is_blocked(const struct sim_exec *x)
{
    const struct sim_exec *y;
    TAILQ_FOREACH(y, &x->r->queue, link) {
        if (y == x)
            break;
        if (!y->done && !may_overtake(x, y))
            return true;
    }
    return false;
}

/* Such a device has placed what came before it knew. */
static void drop_behind(struct sim_exec *x)
{
    struct sim_responder *r = x->r;
    for (struct sim_exec *y; (y = TAILQ_NEXT(x, link)) != NULL;) {
        if (r->dev->attr.late_writes && !y->done && base_prng_below(&r->dev->prng, 4) != 0)
            sim_exec_place(y);
        take_out(r, y);
        if (y->promised)
            (r->qp != NULL ? sim_rq_of(r->qp) : &r->dct->srq->rq)->promised--;
        sim_exec_free(y);
    }
    r->refusing = true;
    r->owes = false;
}

static void save_atomic(struct sim_responder *r, const struct sim_exec *x)
{
    const uint32_t i = r->atomics_next++ % SIM_MAX_READS;
    r->atomics[i].is = true;
    r->atomics[i].psn = x->packet->psn;
    r->atomics[i].before = x->before;
}

/* Carries out a piece of it, now that its time has come. True: it is over. */
static bool run_one(struct sim_exec *x)
{
    x->ripe = true;
    if (!x->begun && is_blocked(x))
        return false;
    x->ripe = false;
    sim_exec_step(x);
    if (!x->done) {
        sim_event_set(x->r->dev->net, &x->event, x->r->dev->net->now_ns + draw_delay(x));
        return false;
    }
    if (x->refused)
        drop_behind(x);
    else if (fab_opcode_is_atomic(x->packet->opcode))
        save_atomic(x->r, x);
    return true;
}

/* Those that waited for another one alone. */
static void run_ripe(struct sim_responder *r)
{
    bool again = true;
    while (again) {
        struct sim_exec *x;
        again = false;
        TAILQ_FOREACH(x, &r->queue, link) {
            if (x->ripe && !x->done && run_one(x)) {
                again = true;
                break;
            }
        }
    }
    send_answers(r);
}

static void free_responder(struct sim_responder *r)
{
    sim_responder_clear(r);
    LIST_REMOVE(r, link);
    free(r);
}

/* Of an earlier connection nothing is left. */
static void free_if_over(struct sim_responder *r)
{
    if (r->ended && TAILQ_EMPTY(&r->queue))
        free_responder(r);
}

static void run_due(struct sim_event *e)
{
    struct sim_exec *x = (struct sim_exec *)(void *)e;
    struct sim_responder *r = x->r;
    if (run_one(x)) {
        run_ripe(r);
        free_if_over(r);
    }
}

/* ---- acceptance */

static void enqueue_request(struct sim_responder *r, struct sim_packet *p, uint32_t skip,
                            bool again)
{
    struct sim_exec *x = calloc(1, sizeof *x);
    BASE_ASSERT(x != NULL);
    x->event = (struct sim_event){.happen = run_due, .device = r->dev};
    x->r = r;
    x->packet = p;
    x->again = again;
    x->skip = skip;
    x->bytes = p->opcode == IBV_WR_RDMA_READ     ? p->length - p->at * p->mtu
               : fab_opcode_is_atomic(p->opcode) ? 8
                                                 : p->bytes - skip * p->mtu;
    if (p->bytes <= skip * p->mtu && !is_answered(p))
        x->bytes = 0;
    if (needs_receive(p) && !again) {
        x->promised = true;
        (r->qp != NULL ? sim_rq_of(r->qp) : &r->dct->srq->rq)->promised++;
    }
    sim_exec_plan(x);
    TAILQ_INSERT_TAIL(&r->queue, x, link);
    r->answering += is_answered(p);
    r->fresh += is_answered(p) && !again;
    if (r->fresh > room_for_reads(r)) {
        sim_exec_refuse_many(x);
        r->refusing = true;
        send_answers(r);
        return;
    }
    if (r->dev->nic != NULL)
        sim_event_set(r->dev->net, &x->event,
                      sim_model_serves(r->dev, r->qp != NULL ? &r->qp->model : &r->dct->model, p));
    else if (base_prng_below(&r->dev->prng, 2) == 0)
        sim_event_set(r->dev->net, &x->event, r->dev->net->now_ns + draw_delay(x));
    else if (run_one(x))
        run_ripe(r);
}

/* Of an atomic that stands behind others in the queue, and was answered before them. */
static void let_go_of_room(struct sim_responder *r, uint32_t psn)
{
    struct sim_exec *x;
    TAILQ_FOREACH(x, &r->queue, link) {
        if (x->packet->psn == psn && is_answered(x->packet) && !x->again) {
            x->again = true;
            r->fresh--;
        }
    }
}

/* What was accepted before. */
static void repeat_answer(struct sim_responder *r, struct sim_packet *p)
{
    if (p->opcode == IBV_WR_RDMA_READ) {
        /* A READ is executed anew (9.7.5.1.3) if there is room for one more. */
        if (r->answering < room_for_reads(r))
            enqueue_request(r, p, 0, true);
        else
            free(p);
        return;
    }
    if (!fab_opcode_is_atomic(p->opcode)) {
        if (TAILQ_EMPTY(&r->queue))
            send_short(r, SIM_ACK, r->epsn - 1, SIM_NAK_GAP);
    } else {
        for (uint32_t i = 0; i < SIM_MAX_READS; i++)
            if (r->atomics[i].is && r->atomics[i].psn == p->psn) {
                send_atomic(r, p->psn, r->atomics[i].before);
                let_go_of_room(r, p->psn);
                break;
            }
    }
    free(p);
}

/* Something before that packet is missing: it is said once. */
static void find_gap(struct sim_responder *r)
{
    if (!r->told_gap)
        owe_nak(r, SIM_NAK_GAP);
    r->told_gap = true;
}

static void take_request(struct sim_responder *r, struct sim_packet *p)
{
    const uint32_t packets = is_answered(p) ? p->of - p->at : p->packets;
    const int32_t ahead = sim_psn_ahead(p->psn, r->epsn);
    const bool cut = p->cut;
    if (r->refusing) {
        free(p);
        return;
    }
    if (ahead > 0) {
        find_gap(r);
        free(p);
        return;
    }
    if (ahead + (int32_t)packets <= 0) {
        repeat_answer(r, p);
        return;
    }
    if (ahead < 0 && is_answered(p)) { /* of a former life: no requester asks for half of one */
        free(p);
        return;
    }
    const struct sim_rq *rq = r->qp != NULL ? sim_rq_of(r->qp) : &r->dct->srq->rq;
    if (needs_receive(p) && (p->at + p->packets < p->of || rq == NULL || !sim_rq_has_one(rq))) {
        if (p->at + p->packets == p->of)
            owe_nak(r, SIM_NAK_NOT_READY);
        else if (cut)
            find_gap(r);
        free(p); /* of one that is cut off nothing is taken */
        return;
    }
    r->told_gap = r->owes = false;
    r->epsn = (r->epsn + packets + (uint32_t)ahead) & SIM_PSN_MASK;
    enqueue_request(r, p, (uint32_t)-ahead, false);
    if (cut && !r->refusing)
        find_gap(r);
}

/* ---- whose it is */

void sim_responder_begin(struct sim_qp *qp, uint32_t psn)
{
    struct sim_responder *r = &qp->responder;
    *r = (struct sim_responder){
        .dev = qp->dev, .qp = qp, .qpn = qp->dest_qpn, .epsn = psn & SIM_PSN_MASK};
    memcpy(r->gid, qp->gid, 16);
    TAILQ_INIT(&r->queue);
}

/* An RC packet names its sender by the GID alone, and by its number. */
void sim_responder_rc(struct sim_qp *qp, struct sim_packet *p)
{
    if ((qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) || p->dc ||
        memcmp(p->from_gid, qp->gid, 16) != 0) {
        free(p);
        return;
    }
    take_request(&qp->responder, p);
}

/* What was accepted of an earlier connection is executed all the same, and nobody hears of it. */
static struct sim_responder *begin_connection(struct sim_dct *dct, const struct sim_packet *p)
{
    struct sim_responder *r = calloc(1, sizeof *r);
    BASE_ASSERT(r != NULL);
    *r = (struct sim_responder){.dev = dct->dev,
                                .dct = dct,
                                .qpn = p->from_qpn,
                                .connection = p->connection,
                                .first_psn = p->first_psn,
                                .epsn = p->first_psn};
    memcpy(r->gid, p->from_gid, 16);
    TAILQ_INIT(&r->queue);
    LIST_INSERT_HEAD(&dct->responders, r, link);
    return r;
}

/* The connection that the packet is of; NULL: an earlier one than there is. */
static struct sim_responder *find_connection(struct sim_dct *dct, const struct sim_packet *p)
{
    const uint64_t key = base_hash_gid(p->from_gid, p->from_qpn, 5);
    struct sim_responder *r = sim_table_get(&dct->by_initiator, key);
    BASE_ASSERT(r == NULL || (r->qpn == p->from_qpn && memcmp(r->gid, p->from_gid, 16) == 0));
    if (r != NULL && (int32_t)(p->connection - r->connection) <= 0)
        return r->connection == p->connection ? r : NULL;
    if (r != NULL) {
        r->ended = true;
        free_if_over(r);
    }
    r = begin_connection(dct, p);
    sim_table_put(&dct->by_initiator, key, r);
    return r;
}

void sim_responder_dc(struct sim_dct *dct, struct sim_packet *p)
{
    struct sim_responder *r = NULL;
    if (p->dc && p->dc_key == dct->base.dc_key && !dct->silent)
        r = find_connection(dct, p);
    if (r == NULL) {
        free(p);
        return;
    }
    take_request(r, p);
}

void sim_responder_free_all(struct sim_dct *dct)
{
    struct sim_responder *r;
    while ((r = LIST_FIRST(&dct->responders)) != NULL)
        free_responder(r);
    sim_table_fini(&dct->by_initiator);
}
