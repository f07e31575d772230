/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/soft_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "ibta/ibta.h"
#include "model/nic.h"
#include "soft/chan.h"
#include "soft/poll.h"
#include "soft/sendq.h"

enum { OUT = 1 << 16 /* requests that are out of all queue pairs: what is more is not counted */ };

struct soft_model_qp {
    struct model_qp qp;
    uint32_t slot;    /* of the queue pair */
    uint64_t last_ns; /* when its last completion is due: they keep their order */
    uint64_t *due_ns; /* by send slot, as `posted` counts */
    uint32_t mask;
    uint32_t target; /* of the last request: a DC target's number */
    uint64_t target_gid[2];
};

/* A request that the card has, and until when. */
struct soft_model_out {
    uint64_t due_ns;
    const struct soft_model_qp *qp;
    uint32_t slot, bytes;
};

struct soft_model {
    struct model_nic *nic;
    pthread_mutex_t lock; /* all below, and the card */
    struct soft_model_qp *qp[SOFT_QPS];
    struct soft_model_out out[OUT];
    uint32_t head, tail;
};

/* ---- making and freeing */

int soft_model_init(struct soft_fab *f, const char *preset, struct base_errbuf *err)
{
    const struct model_preset *p = fab_model_find(preset);
    if (p == NULL)
        return base_err(err, -EINVAL, "soft device: there is no model \"%.40s\", but %s", preset,
                        fab_model_names());
    f->model = calloc(1, sizeof *f->model);
    if (f->model != NULL && (f->model->nic = model_nic_new(p)) == NULL) {
        free(f->model);
        f->model = NULL;
    }
    if (f->model == NULL)
        return base_err(err, -ENOMEM, "soft device: out of memory");
    pthread_mutex_init(&f->model->lock, NULL);
    f->base.model = model_nic_facts(f->model->nic);
    if (!fab_model_has_dc(p)) {
        f->base.caps.transports &= ~(uint32_t)FAB_DC;
        snprintf(f->base.caps.dc_why, sizeof f->base.caps.dc_why,
                 "the card whose times it has (model = %s) has none", preset);
    }
    return 0;
}

void soft_model_fini(struct soft_fab *f)
{
    if (f->model == NULL)
        return;
    pthread_mutex_destroy(&f->model->lock);
    model_nic_free(f->model->nic);
    free(f->model);
}

int soft_model_qp_begin(struct soft_fab *f, struct soft_qp *qp)
{
    struct soft_model *m = f->model;
    if (m == NULL)
        return 0;
    struct soft_model_qp *q = calloc(1, sizeof *q);
    if (q == NULL || (q->due_ns = calloc(qp->pending_room, sizeof q->due_ns[0])) == NULL) {
        free(q);
        return -ENOMEM;
    }
    q->mask = qp->pending_room - 1;
    q->slot = (uint32_t)(qp->shared - f->shared->qp);
    pthread_mutex_lock(&m->lock);
    model_qp_begin(m->nic, &q->qp);
    m->qp[q->slot] = qp->model = q;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

void soft_model_qp_end(struct soft_fab *f, struct soft_qp *qp)
{
    struct soft_model *m = f->model;
    if (m == NULL || qp->model == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    model_qp_end(m->nic, &qp->model->qp);
    m->qp[qp->model->slot] = NULL;
    pthread_mutex_unlock(&m->lock);
    free(qp->model->due_ns);
    free(qp->model);
}

/* ---- posting */

static enum model_kind kind_of(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ         ? MODEL_READ
           : fab_opcode_is_atomic(opcode)     ? MODEL_ATOMIC
           : fab_opcode_takes_receive(opcode) ? MODEL_SEND
                                              : MODEL_WRITE;
}

static bool goes_elsewhere(struct soft_model_qp *q, const struct fab_wr *wr)
{
    uint64_t gid[2];
    soft_gid_words(wr->ah->dgid, gid);
    if (q->target == wr->dest_qpn && q->target_gid[0] == gid[0] && q->target_gid[1] == gid[1])
        return false;
    q->target = wr->dest_qpn;
    q->target_gid[0] = gid[0];
    q->target_gid[1] = gid[1];
    return true;
}

static struct model_request request_of(const struct soft_qp *qp, const struct fab_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return (struct model_request){.kind = kind_of(wr->opcode),
                                  .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
                                  .sges = (uint32_t)wr->num_sge,
                                  .inlined = (wr->send_flags & IBV_SEND_INLINE) != 0,
                                  .signalled = (wr->send_flags & IBV_SEND_SIGNALED) != 0,
                                  .datagram = qp->base.type == FAB_QP_UD,
                                  .dc = qp->base.type == FAB_QP_DCI,
                                  .remote_addr = wr->remote_addr};
}

/* Of what is over the card is rid. A queue pair that has gone took its own with it. */
static void retire_requests(struct soft_model *m, uint64_t now_ns)
{
    for (; m->head != m->tail; m->head++) {
        const struct soft_model_out *o = &m->out[m->head % OUT];
        if (o->due_ns > now_ns)
            return;
        struct soft_model_qp *q = m->qp[o->slot];
        if (q == o->qp)
            model_over(m->nic, &q->qp, o->bytes);
    }
}

/* A request, of which the card has the WQE at has_ns. */
static void charge_request(struct soft_model *m, struct soft_qp *qp, const struct fab_wr *wr,
                           uint32_t posted, uint64_t now_ns, uint64_t has_ns)
{
    struct soft_model_qp *q = qp->model;
    struct model_request r = request_of(qp, wr);
    r.reconnects = r.dc && goes_elsewhere(q, wr);
    const bool counts = m->tail - m->head < OUT;
    if (counts)
        model_take(m->nic, &q->qp, r.bytes);
    uint64_t at = model_unit(m->nic, &q->qp, has_ns, &r);
    at = model_send(m->nic, now_ns, at, &r);
    if (!r.datagram)
        at += model_far_side_ns(model_nic_preset(m->nic), &r);
    at = model_complete(m->nic, now_ns, at, &r);
    q->last_ns = at > q->last_ns ? at : q->last_ns;
    q->due_ns[posted & q->mask] = q->last_ns;
    if (counts)
        m->out[m->tail++ % OUT] = (struct soft_model_out){
            .due_ns = q->last_ns, .qp = q, .slot = q->slot, .bytes = r.bytes};
}

int soft_modelled_post(struct fab_qp *base, struct fab_wr *wr, struct fab_wr **bad)
{
    struct soft_qp *qp = (struct soft_qp *)base;
    struct soft_model *m = soft_of(base->pd->fab)->model;
    const uint32_t before = qp->posted;
    const int status = soft_post_send(base, wr, bad);
    const uint32_t count = qp->posted - before;
    if (count == 0)
        return status;
    const uint64_t now_ns = base_clock_ns();
    uint64_t wqe_bytes = 0;
    uint32_t i = 0;
    for (const struct fab_wr *w = wr; i < count; w = w->next, i++) {
        const struct model_request r = request_of(qp, w);
        wqe_bytes += model_wqe_bytes(&r);
    }
    pthread_mutex_lock(&m->lock);
    retire_requests(m, now_ns);
    const uint64_t has_ns = model_doorbell(m->nic, now_ns, count, wqe_bytes);
    for (i = 0; i < count; wr = wr->next)
        charge_request(m, qp, wr, before + ++i, now_ns, has_ns);
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* ---- polling */

/* When it can be polled. Of a queue pair that has gone the queue drops it. */
static uint64_t due_of(const struct soft_model *m, const struct soft_fab *f,
                       const struct soft_cqe *e)
{
    const struct soft_model_qp *q = m->qp[e->qp - f->shared->qp];
    return q != NULL ? q->due_ns[e->freed & q->mask] : 0;
}

/* How many of the next n are due; *next_ns: when the one behind them is, or UINT64_MAX. */
static int count_due(struct soft_cq *cq, int n, uint64_t *next_ns)
{
    const struct soft_fab *f = soft_of(cq->base.fab);
    struct soft_model *m = f->model;
    const uint64_t now_ns = base_clock_ns();
    int due = 0;
    *next_ns = UINT64_MAX;
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = cq->head; i != cq->tail && due < n; i++, due++) {
        const uint64_t due_ns = due_of(m, f, &cq->ring[i & (cq->room - 1)]);
        if (due_ns > now_ns) {
            *next_ns = due_ns;
            break;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return due;
}

static void wake_when_due(struct soft_cq *cq)
{
    uint64_t next_ns;
    if (cq->chan == NULL || cq->head == cq->tail ||
        (atomic_load(&cq->shared->armed) & 3) == SOFT_NOT_ARMED)
        return;
    if (count_due(cq, 1, &next_ns) > 0)
        soft_chan_wake(cq->chan);
    else
        soft_chan_set_timer(cq->chan, next_ns);
}

int soft_modelled_poll(struct fab_cq *base, int n, struct ibv_wc *wc)
{
    struct soft_cq *cq = (struct soft_cq *)base;
    uint64_t next_ns;
    const int taken =
        soft_poll_sends(base, n, cq->head != cq->tail ? count_due(cq, n, &next_ns) : 0, wc);
    wake_when_due(cq);
    return taken;
}

int soft_modelled_arm(struct fab_cq *base, bool solicited_only)
{
    const int status = soft_arm(base, solicited_only);
    if (status == 0)
        wake_when_due((struct soft_cq *)base);
    return status;
}
