/* SPDX-License-Identifier: Apache-2.0 */
/* The order that a responder may take. A READ or an atomic may be overtaken by what was posted
 * behind it, unless that is a READ or has a fence (IBTA 9.5, table 79); completions keep their
 * order. So when a READ is refused, what is flushed behind it may have been executed. A device that
 * places data in the order in which packets come may have a WRITE overtaken by WRITEs too, and by
 * no SEND: when a receive has ended, what was written before is to be relied on (the same section).
 * That a WRITE is acknowledged before it is seen is unseen.h's. Asked for by KEDGE_SOFT_ORDER
 * (fabric.h), or it never happens here. */
#include "soft/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "soft/exec.h"

enum { MOST_POLLS = 4 /* that a READ or an atomic is held back for */ };

int soft_order_init(struct soft_order *order, struct base_errbuf *err)
{
    const char *text = getenv("KEDGE_SOFT_ORDER");
    if (text == NULL || *text == '\0')
        return 0;
    order->writes = strncmp(text, "late-writes:", 12) == 0;
    order->unseen = strncmp(text, "unseen-writes:", 14) == 0;
    order->late = order->writes || strncmp(text, "late:", 5) == 0;
    if ((!order->late && !order->unseen) ||
        base_parse_u64(strchr(text, ':') + 1, 0, UINT64_MAX, &order->seed) != 0)
        return base_err(err, -EINVAL,
                        "KEDGE_SOFT_ORDER = %s: must be late:SEED, late-writes:SEED or "
                        "unseen-writes:SEED, such as late:7",
                        text);
    return 0;
}

void soft_order_begin(struct soft_order *order, struct soft_qp *qp)
{
    struct base_prng mix;
    qp->late_order = order->late && qp->base.type != FAB_QP_UD;
    qp->late_writes = qp->late_order && order->writes;
    base_prng_seed(&mix, order->seed);
    base_prng_seed(&qp->order, base_prng_next(&mix) ^ (uint64_t)++order->queue_pairs << 32);
}

static bool is_write(const struct fab_wr *wr)
{
    return wr->opcode < IBV_WR_RDMA_READ; /* or SEND; the atomics' numbers come after */
}

static bool is_send(const struct fab_wr *wr)
{
    return is_write(wr) && wr->opcode != IBV_WR_RDMA_WRITE;
}

/* Of two to one target: whether a responder may carry out `last` before p. */
static bool may_overtake(const struct fab_wr *p, const struct fab_wr *last)
{
    return !is_write(p) || (is_write(last) && !is_send(last));
}

static bool can_be_late(const struct soft_qp *qp, const struct fab_wr *wr)
{
    return !is_write(wr) || (qp->late_writes && wr->opcode == IBV_WR_RDMA_WRITE);
}

bool soft_order_holds_back(struct soft_qp *qp, const struct fab_wr *wr)
{
    if (!can_be_late(qp, wr) || base_prng_below(&qp->order, 2) == 0)
        return false;
    qp->held_polls = (uint32_t)base_prng_below(&qp->order, MOST_POLLS);
    return true;
}

/* A DCI begins with a target when it is done with the one before. */
static bool is_one_target(const struct soft_qp *qp, const struct soft_pending *a,
                          const struct soft_pending *b)
{
    return qp->base.type == FAB_QP_RC ||
           (a->wr.dest_qpn == b->wr.dest_qpn && memcmp(a->dgid, b->dgid, sizeof a->dgid) == 0);
}

static bool is_long(const struct fab_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes > SOFT_WHOLE;
}

void soft_order_overtake(struct soft_qp *qp)
{
    struct soft_pending *last = soft_pending_at(qp, qp->pending_tail - 1);
    if (last->wr.opcode == IBV_WR_RDMA_READ || (last->wr.send_flags & IBV_SEND_FENCE) ||
        qp->moved > 0 || is_long(&last->wr) || base_prng_below(&qp->order, 4) == 0)
        return;
    for (uint32_t i = qp->pending_head; i != qp->pending_tail - 1; i++) {
        const struct soft_pending *p = soft_pending_at(qp, i);
        if (!p->executed &&
            (!p->late || !is_one_target(qp, p, last) || !may_overtake(&p->wr, &last->wr)))
            return;
    }
    qp->ahead = last->ahead;
    if (soft_execute(qp, &last->wr, last->dgid, &last->status) != SOFT_DONE)
        return;
    last->executed = true;
    for (uint32_t i = qp->pending_head; i != qp->pending_tail - 1; i++)
        soft_pending_at(qp, i)->overtaken = true;
}
