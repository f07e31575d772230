/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibta/ibta.h"

/* ---- completions */

static void wake_owner(struct sim_cq *cq, bool solicited)
{
    if (cq->chan == NULL || cq->armed == SIM_DISARMED ||
        (cq->armed == SIM_ARMED_SOLICITED && !solicited))
        return;
    cq->armed = SIM_DISARMED;
    sim_ready_set(cq->dev->net, &cq->chan->ready, true);
}

void sim_cq_kill(struct sim_cq *cq)
{
    if (cq->dead)
        return;
    cq->dead = true;
    sim_tell(cq->dev->net, cq->dev->attr.node, "a completion queue of %u overflows", cq->base.cqe);
    sim_device_tell(cq->dev, IBV_EVENT_CQ_ERR, &cq->base);
    sim_event_set(cq->dev->net, &cq->overflow, cq->dev->net->now_ns);
    wake_owner(cq, true);
}

/* Those whose time has come can be polled, in their order. */
static void show_due(struct sim_cq *cq)
{
    const uint64_t now = cq->dev->net->now_ns;
    bool any = false, solicited = false;
    for (; cq->shown != cq->tail; cq->shown++) {
        const struct sim_cqe *e = &cq->ring[cq->shown % cq->base.cqe];
        if (e->seen_ns > now) {
            if (cq->show.is == SIM_EVENT_UNSET)
                sim_event_set(cq->dev->net, &cq->show, e->seen_ns);
            break;
        }
        any = true;
        solicited |= e->solicited;
    }
    if (any)
        wake_owner(cq, solicited);
}

void sim_cq_show(struct sim_event *e)
{
    show_due((struct sim_cq *)(void *)((char *)e - offsetof(struct sim_cq, show)));
}

void sim_cq_push(struct sim_cq *cq, const struct sim_cqe *e, bool solicited)
{
    if (cq->dead)
        return;
    if (cq->tail - cq->head == cq->base.cqe) {
        sim_cq_kill(cq);
        return;
    }
    sim_note(cq->dev->net, (uint64_t)e->wc.status << 32 | e->wc.qp_num);
    struct sim_cqe *put = &cq->ring[cq->tail++ % cq->base.cqe];
    *put = *e;
    put->solicited = solicited || e->wc.status != IBV_WC_SUCCESS;
    if (e->wc.status != IBV_WC_SUCCESS)
        fab_ibta_scramble(&put->wc);
    show_due(cq);
}

void sim_cq_void(struct sim_cq *cq, const void *owner)
{
    for (uint32_t i = cq->head; i != cq->tail; i++)
        if (cq->ring[i % cq->base.cqe].owner == owner)
            cq->ring[i % cq->base.cqe].owner = NULL;
}

int sim_cq_take(struct sim_cq *cq, int n, struct ibv_wc *wc)
{
    int taken = 0;
    if (cq->dead)
        return -EIO;
    for (; taken < n && cq->head != cq->shown; cq->head++) {
        const struct sim_cqe *e = &cq->ring[cq->head % cq->base.cqe];
        if (e->owner == NULL)
            continue;
        if (e->freed != NULL)
            *e->freed = e->slots;
        wc[taken++] = e->wc;
    }
    return taken;
}

int sim_cq_arm(struct fab_cq *base, bool solicited_only)
{
    struct sim_cq *cq = (struct sim_cq *)base;
    if (cq->chan == NULL)
        return -EINVAL;
    cq->armed = solicited_only ? SIM_ARMED_SOLICITED : SIM_ARMED;
    return 0;
}

void sim_chan_drain(struct fab_chan *base)
{
    struct sim_chan *chan = (struct sim_chan *)base;
    sim_ready_set(sim_device_of(base->fab)->net, &chan->ready, false);
}

/* ---- receives */

int sim_rq_init(struct sim_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
    *rq = (struct sim_rq){.max_wr = max_wr, .max_sge = max_sge};
    rq->ring = calloc(max_wr, sizeof rq->ring[0]);
    rq->sges = calloc((size_t)max_wr * max_sge + 1, sizeof rq->sges[0]);
    if (rq->ring == NULL || rq->sges == NULL) {
        sim_rq_fini(rq);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < max_wr; i++)
        rq->ring[i].sge = rq->sges + (size_t)i * max_sge;
    return 0;
}

void sim_rq_fini(struct sim_rq *rq)
{
    free(rq->ring);
    free(rq->sges);
    *rq = (struct sim_rq){.ring = NULL};
}

int sim_rq_post(struct sim_rq *rq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    for (; wr != NULL; wr = wr->next) {
        const bool sound = wr->num_sge >= 0 && (uint32_t)wr->num_sge <= rq->max_sge &&
                           (wr->num_sge == 0 || wr->sg_list != NULL);
        if (!sound || rq->tail - rq->head == rq->max_wr) {
            *bad = wr;
            return sound ? -ENOMEM : -EINVAL;
        }
        struct sim_rqe *e = &rq->ring[rq->tail++ % rq->max_wr];
        e->wr_id = wr->wr_id;
        e->num_sge = (uint32_t)wr->num_sge;
        if (wr->num_sge > 0)
            memcpy(e->sge, wr->sg_list, (size_t)wr->num_sge * sizeof e->sge[0]);
    }
    return 0;
}

const struct sim_rqe *sim_rq_take(struct sim_rq *rq)
{
    return rq->head != rq->tail ? &rq->ring[rq->head++ % rq->max_wr] : NULL;
}
