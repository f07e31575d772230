/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers carry out, what each operation needs, and the thread that hears the device. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "verbs/objects.h"
#include "verbs/verbs.h"

static int carry_out(void *of, struct fab_ctl *ctl)
{
    struct verbs_fab *f = of;
    switch (ctl->kind) {
    case FAB_ALLOC_PD:
        return verbs_pd_alloc(f, ctl);
    case FAB_FREE_PD:
        return verbs_pd_free(ctl);
    case FAB_REG_MR:
        return verbs_mr_register(ctl);
    case FAB_DEREG_MR:
        return verbs_mr_deregister(ctl);
    case FAB_CREATE_CHAN:
        return verbs_chan_create(f, ctl);
    case FAB_DESTROY_CHAN:
        return verbs_chan_destroy(ctl);
    case FAB_CREATE_CQ:
        return verbs_cq_create(f, ctl);
    case FAB_DESTROY_CQ:
        return verbs_cq_destroy(f, ctl);
    case FAB_CREATE_SRQ:
        return verbs_srq_create(f, ctl);
    case FAB_DESTROY_SRQ:
        return verbs_srq_destroy(f, ctl);
    case FAB_CREATE_QP:
        return verbs_qp_create(f, ctl);
    case FAB_MODIFY_QP:
        return verbs_qp_modify(f, ctl);
    case FAB_DESTROY_QP:
        return verbs_qp_destroy(f, ctl);
    case FAB_CREATE_AH:
        return verbs_ah_create(f, ctl);
    case FAB_DESTROY_AH:
        return verbs_ah_destroy(f, ctl);
    case FAB_QUIESCE_MR:
        return 0; /* caps.deadlines is false: nobody can tell what has begun in the region */
    case FAB_CREATE_DCT:
        return verbs_dct_create(f, ctl);
    case FAB_DESTROY_DCT:
        return verbs_dct_destroy(f, ctl);
    case FAB_QUERY_PORT:
        return verbs_port_query(f, ctl);
    case FAB_QUERY_ADDRESS:
        return verbs_address_query(f, ctl);
    case FAB_QUERY_PKEY:
        return verbs_pkey_query(f, ctl);
    case FAB_QUERY_QP:
        ctl->asked.state = verbs_qp_state(ctl->asked.x);
        return 0;
    case FAB_QUERY_CLOCK:
        return verbs_clock_query(f, ctl);
    }
    return -EINVAL;
}

static void needs_qp(const struct fab_qp *q, struct verbs_needs *out)
{
    out->own = q;
    out->with[0] = q->pd;
    out->with[1] = q->send_cq;
    out->with[2] = q->recv_cq;
    out->with[3] = q->srq;
}

/* What it makes is nobody's yet; a query of the port needs nothing. */
static void needs_to_create(const struct fab_ctl *ctl, struct verbs_needs *out)
{
    switch (ctl->kind) {
    case FAB_REG_MR:
        out->with[0] = ctl->mr.pd;
        out->length = VERBS_PINS;
        break;
    case FAB_CREATE_CQ:
        out->with[0] = ctl->cq.chan;
        break;
    case FAB_CREATE_SRQ:
        out->with[0] = ctl->srq.pd;
        break;
    case FAB_CREATE_QP:
        out->with[0] = ctl->qp.pd;
        out->with[1] = ctl->qp.send_cq;
        out->with[2] = ctl->qp.recv_cq;
        out->with[3] = ctl->qp.srq;
        break;
    case FAB_CREATE_AH:
        out->with[0] = ctl->ah.pd;
        out->length = VERBS_RESOLVES;
        break;
    case FAB_CREATE_DCT:
        out->with[0] = ctl->dct.pd;
        out->with[1] = ctl->dct.cq;
        out->with[2] = ctl->dct.srq;
        break;
    default:
        break;
    }
}

/* An operation's objects are there until it is over, so that they may be looked into here. */
void verbs_needs_of(const struct fab_ctl *ctl, struct verbs_needs *out)
{
    switch (ctl->kind) {
    case FAB_FREE_PD:
    case FAB_DESTROY_CHAN:
        out->own = ctl->pd.x; /* or chan.x: one union */
        break;
    case FAB_DEREG_MR:
        out->own = ctl->mr.x;
        out->with[0] = ctl->mr.x->pd;
        out->length = VERBS_PINS;
        break;
    case FAB_DESTROY_CQ:
        out->own = ctl->cq.x;
        out->with[0] = ((const struct verbs_cq *)ctl->cq.x)->chan;
        break;
    case FAB_DESTROY_SRQ:
        out->own = ctl->srq.x;
        out->with[0] = ctl->srq.x->pd;
        break;
    case FAB_MODIFY_QP:
        needs_qp(ctl->modify.x, out);
        out->length = (ctl->modify.mask & IBV_QP_AV) != 0 ? VERBS_RESOLVES : VERBS_SHORT;
        break;
    case FAB_DESTROY_QP:
        needs_qp(ctl->qp.x, out);
        break;
    case FAB_QUERY_QP: /* of the life that it has when it is submitted */
        needs_qp(ctl->asked.x, out);
        out->length = VERBS_ASKS;
        break;
    case FAB_DESTROY_AH:
        out->own = ctl->ah.x;
        out->with[0] = ctl->ah.x->pd;
        break;
    case FAB_DESTROY_DCT:
        out->own = ctl->dct.x;
        out->with[0] = ctl->dct.x->pd;
        out->with[1] = ((const struct verbs_dct *)ctl->dct.x)->cq;
        out->with[2] = ((const struct verbs_dct *)ctl->dct.x)->srq;
        out->length = VERBS_DRAINS;
        break;
    default:
        needs_to_create(ctl, out);
        break;
    }
}

/* ---- the thread that hears */

enum { LOOK_MS = 1000 };

static void *hear_events(void *arg)
{
    struct verbs_fab *f = arg;
    for (bool deaf = false; !atomic_load(&f->stop);) {
        struct pollfd fds[] = {{.fd = f->stop_efd, .events = POLLIN},
                               {.fd = deaf ? -1 : f->context->async_fd, .events = POLLIN}};
        (void)poll(fds, 2, deaf ? -1 : LOOK_MS);
        if (fds[1].revents != 0)
            deaf = !verbs_events_take(f);
        deaf = deaf || verbs_events_removed(f);
    }
    return NULL;
}

static void stop_hearing(struct verbs_fab *f)
{
    uint64_t one = 1;
    atomic_store(&f->stop, true);
    if (write(f->stop_efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
    pthread_join(f->hears, NULL);
}

/* ---- all of them */

int verbs_threads_start(struct verbs_fab *f)
{
    int status = -pthread_create(&f->hears, NULL, hear_events, f);
    if (status != 0)
        return status;
    status = verbs_executor_start(&f->pool);
    if (status != 0)
        stop_hearing(f);
    return status;
}

int verbs_threads_stop(struct verbs_fab *f)
{
    int status = verbs_executor_stop(&f->pool);
    if (status == 0)
        stop_hearing(f);
    return status;
}

int verbs_control_init(struct verbs_fab *f)
{
    f->pool.carry_out = carry_out;
    f->pool.needs = verbs_needs_of;
    f->pool.of = f;
    return verbs_executor_init(&f->pool);
}
