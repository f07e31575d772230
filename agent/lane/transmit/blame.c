/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/blame.h"

#include "flow_state.h"
#include "lane_state.h"
#include "transmit/operation.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"
#include "transmit/wr.h"
#include "vqp_state.h"

/* The lane stood still between looking at its clock and the doorbell, and the device has seen to it
 * that nothing came of it: all of it goes again, under leases that are looked at anew. */
static bool is_late(const struct lane *l, enum ibv_wc_status status)
{
    return l->config.deadlines && status == IBV_WC_RESP_TIMEOUT_ERR;
}

/* One that is to blame ends with its own status. Not one that was flushed: then the device or the
 * queue pair gave up, and nobody knows how far it was. */
static bool is_culprit(const struct lane *l, const struct wr *w)
{
    const enum ibv_wc_status status = (enum ibv_wc_status)w->ended;
    return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && !is_late(l, status);
}

/* One of several in a work request, which is to blame: nobody knows which of them. That the peer is
 * silent holds for all. */
static bool is_part_of_culprit(const struct lane *l, const struct wr *w)
{
    return wr_is_merged(w) && is_culprit(l, w) && w->ended != IBV_WC_RETRY_EXC_ERR;
}

/* The peer has refused a request. */
static bool is_refusal(enum ibv_wc_status status)
{
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
           status == IBV_WC_REM_OP_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR;
}

static bool holds_back(const struct wr *w)
{
    return w->op->order == ORDER_HOLDS_BACK;
}

bool lane_blame_is_nameless(const struct lane *l, const struct physical_qp *p)
{
    const struct wr *first = *ring_at(l, p, p->head);
    return !l->config.names_culprit && !l->config.streams &&
           p->tail - p->head > first->behind + 1u && is_culprit(l, first) &&
           first->ended != IBV_WC_RETRY_EXC_ERR;
}

/* Whether both go to the same life of an endpoint. A tenant in quarantine, and a proof, has a flow
 * of its own to it. Metaservers have none, and with DC one queue pair for all. */
static bool is_same_target(const struct wr *a, const struct wr *b)
{
    const struct flow *f = a->flow, *g = b->flow;
    if (f == NULL && g == NULL)
        return a->fab.ah == b->fab.ah && a->fab.dest_qpn == b->fab.dest_qpn;
    return f == g ||
           (f != NULL && g != NULL && f->peer_slot == g->peer_slot && f->peer_gen == g->peer_gen);
}

/* Who is to blame for what became of w: the first that is out; with streams, each of which may have
 * had an error, one to the same peer rather than another. NULL: nobody. */
static const struct wr *find_blamed(const struct lane *l, const struct physical_qp *p,
                                    const struct wr *w)
{
    const struct wr *first = *ring_at(l, p, p->head), *any = NULL;
    if (!l->config.streams)
        return is_culprit(l, first) && !lane_blame_is_nameless(l, p) ? first : NULL;
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *c = *ring_at(l, p, i);
        if (c == NULL || !is_culprit(l, c))
            continue;
        if (is_same_target(c, w))
            return c;
        any = any != NULL ? any : c;
    }
    return any;
}

bool lane_blame_loses(const struct lane *l, const struct physical_qp *p, const struct wr *w)
{
    const struct wr *failed = find_blamed(l, p, w);
    if (w->kind != WR_WORKER)
        return true; /* the lane asks again by itself */
    if (is_late(l, (enum ibv_wc_status)(*ring_at(l, p, p->head))->ended))
        return false;
    if (is_part_of_culprit(l, w)) /* of a WRITE as much may be in memory as was not refused */
        return !w->op->repeatable;
    if (failed == NULL)
        return !w->op->repeatable || (w->special & SPECIAL_SUSPECT);
    const enum ibv_wc_status status = (enum ibv_wc_status)failed->ended;
    if (!is_part_of_culprit(l, failed) && (w == failed || vqp_of(w) == vqp_of(failed)))
        return true;                /* a reliable connection ends with its first error */
    if (!is_same_target(w, failed)) /* with streams several targets are served at a time */
        return l->config.streams && !w->op->repeatable;
    if (p->flow != NULL && is_refusal(status) && holds_back(failed))
        return !l->config.writes_in_order && holds_back(w);
    return status == IBV_WC_RETRY_EXC_ERR || !w->op->repeatable;
}

enum ibv_wc_status lane_blame_end_of(const struct lane *l, const struct physical_qp *p,
                                     const struct wr *w)
{
    const struct wr *failed = find_blamed(l, p, w);
    /* The key that all of them name was refused, unless the error has no name; of any other one
     * merging may be the cause. */
    if (is_part_of_culprit(l, w))
        return w->ended == IBV_WC_REM_ACCESS_ERR && failed != NULL ? IBV_WC_REM_ACCESS_ERR
                                                                   : IBV_WC_WR_FLUSH_ERR;
    if (is_culprit(l, w) && (l->config.streams || w == failed))
        return (enum ibv_wc_status)w->ended;
    return failed != NULL && failed->ended == IBV_WC_RETRY_EXC_ERR && is_same_target(w, failed)
               ? IBV_WC_RETRY_EXC_ERR
               : IBV_WC_WR_FLUSH_ERR;
}

void lane_blame_tenants(struct lane *l, const struct physical_qp *p)
{
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w == NULL || !is_culprit(l, w) || find_blamed(l, p, w) != w)
            continue;
        if (!is_part_of_culprit(l, w) || w->ended == IBV_WC_REM_ACCESS_ERR)
            lane_quarantine_blame(l, p, w);
    }
}
