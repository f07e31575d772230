/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "ibta/ibta.h"
#include "sim/sim_memory.h"
#include "sim/objects.h"

static const uint64_t MOST_NS = 20000;

/* One under way. */
struct sim_op {
    struct sim_event event;
    struct sim_device *dev;
    struct fab_ctl *ctl;
    TAILQ_ENTRY(sim_op) link;
};

/* ---- what an operation does */

static void query_address(const struct sim_device *dev, struct fab_ctl *ctl)
{
    const struct fab_caps *caps = &dev->base.caps;
    ctl->address.now =
        (struct fab_own_address){.active = !dev->down,
                                 .has_gid = memcmp(ctl->address.gid, caps->gid, 16) == 0,
                                 .sgid_index = caps->sgid_index,
                                 .lid = caps->lid};
}

static int query_clock(const struct sim_device *dev, struct fab_ctl *ctl)
{
    const struct sim_net *net = dev->net;
    const uint64_t host_ns = net->hooks.host_ns != NULL
                                 ? net->hooks.host_ns(net->hooks.user, dev->attr.node, net->now_ns)
                                 : net->now_ns;
    if (dev->attr.no_clock)
        return -EOPNOTSUPP;
    const int64_t gained = (int64_t)(net->now_ns / 1000) * dev->attr.clock_ppm / 1000;
    ctl->clock = (struct fab_clock){.before_ns = host_ns,
                                    .after_ns = host_ns,
                                    .ticks = net->now_ns + (uint64_t)gained,
                                    .hz = 1000000000,
                                    .bits = 64};
    return 0;
}

static int carry_out(struct sim_device *dev, struct fab_ctl *ctl)
{
    switch (ctl->kind) {
    case FAB_ALLOC_PD:
        return sim_pd_alloc(dev, ctl);
    case FAB_FREE_PD:
        return sim_pd_free(dev, ctl);
    case FAB_REG_MR:
        return sim_mr_register(dev, ctl);
    case FAB_DEREG_MR:
        return sim_mr_deregister(dev, ctl);
    case FAB_CREATE_CHAN:
        return sim_chan_create(dev, ctl);
    case FAB_DESTROY_CHAN:
        return sim_chan_destroy(dev, ctl);
    case FAB_CREATE_CQ:
        return sim_cq_create(dev, ctl);
    case FAB_DESTROY_CQ:
        return sim_cq_destroy(dev, ctl);
    case FAB_CREATE_SRQ:
        return sim_srq_create(dev, ctl);
    case FAB_DESTROY_SRQ:
        return sim_srq_destroy(dev, ctl);
    case FAB_CREATE_QP:
        return sim_qp_create(dev, ctl);
    case FAB_MODIFY_QP:
        return sim_qp_modify((struct sim_qp *)ctl->modify.x, &ctl->modify.attr, ctl->modify.mask);
    case FAB_DESTROY_QP:
        return sim_qp_destroy(dev, ctl);
    case FAB_CREATE_DCT:
        return sim_dct_create(dev, ctl);
    case FAB_DESTROY_DCT:
        return sim_dct_destroy(dev, ctl);
    case FAB_CREATE_AH:
        return sim_ah_create(dev, ctl);
    case FAB_DESTROY_AH:
        return sim_ah_destroy(dev, ctl);
    case FAB_QUIESCE_MR: /* nobody can tell: caps.deadlines */
        return 0;
    case FAB_QUERY_PORT:
        ctl->port.active = IBV_MTU_4096;
        ctl->port.mtu = dev->base.caps.mtu;
        return 0;
    case FAB_QUERY_ADDRESS:
        query_address(dev, ctl);
        return 0;
    case FAB_QUERY_PKEY:
        fab_ibta_find_pkey(ctl->pkey.pkey, &ctl->pkey.there, &ctl->pkey.index);
        return 0;
    case FAB_QUERY_QP:
        ctl->asked.state = fab_qp_state(ctl->asked.x);
        return 0;
    case FAB_QUERY_CLOCK:
        return query_clock(dev, ctl);
    }
    return -EINVAL;
}

enum { HALF = 500000 /* of a million */ };

static bool is_deaf_to(const struct sim_device *dev, const struct fab_ctl *ctl)
{
    enum { MILLION = 1000000, SPREAD = 0x9e3779b1 };
    return ctl->kind == FAB_MODIFY_QP && ctl->modify.attr.qp_state == IBV_QPS_ERR &&
           ctl->modify.x->qpn * (uint32_t)SPREAD % MILLION < dev->attr.deaf_ppm;
}

/* A free never fails for the device's reasons. */
static int draw_fault(struct sim_device *dev, enum fab_ctl_kind kind)
{
    const int balance = fab_ctl_balance(kind);
    if (balance > 0)
        return sim_chance(&dev->prng, dev->faults.create_refused_ppm) ? -ENOMEM : 0;
    return balance == 0 && sim_chance(&dev->prng, dev->faults.control_error_ppm) ? -EIO : 0;
}

static void execute_op(struct sim_op *op)
{
    struct sim_device *dev = op->dev;
    struct fab_ctl *ctl = op->ctl;
    const bool deaf = is_deaf_to(dev, ctl);
    const int fault = deaf ? -EIO : draw_fault(dev, ctl->kind);
    const bool unheard =
        fault != 0 && !deaf && ctl->kind == FAB_MODIFY_QP && sim_chance(&dev->prng, HALF);
    ctl->status = fault == 0 || unheard ? carry_out(dev, ctl) : 0;
    ctl->status = fault != 0 ? fault : ctl->status;
    sim_note(dev->net, (uint64_t)ctl->kind << 32 | (uint32_t)ctl->status);
    TAILQ_REMOVE(&dev->ops, op, link);
    free(op);
    ctl->next = NULL;
    *dev->done_tail = ctl;
    dev->done_tail = &ctl->next;
    sim_ready_set(dev->net, &dev->control, true);
}

static void run_due(struct sim_event *e)
{
    execute_op((struct sim_op *)(void *)e);
}

/* ---- when */

enum { NAMES = 5 };

static void list_qp(const struct fab_qp *qp, const void *name[NAMES])
{
    const void *const all[NAMES] = {qp, qp->pd, qp->send_cq, qp->recv_cq, qp->srq};
    memcpy(name, all, sizeof all);
}

/* The objects that it needs, the one first that it changes or frees, if it does; NULL: none. */
static void list_names(const struct fab_ctl *ctl, const void *name[NAMES])
{
    memset(name, 0, NAMES * sizeof name[0]);
    switch (ctl->kind) {
    case FAB_REG_MR:
        name[0] = ctl->mr.pd;
        break;
    case FAB_CREATE_CQ:
        name[0] = ctl->cq.chan;
        break;
    case FAB_CREATE_SRQ:
        name[0] = ctl->srq.pd;
        break;
    case FAB_CREATE_QP:
        name[0] = ctl->qp.pd;
        name[1] = ctl->qp.send_cq;
        name[2] = ctl->qp.recv_cq;
        name[3] = ctl->qp.srq;
        break;
    case FAB_CREATE_DCT:
        name[0] = ctl->dct.pd;
        name[1] = ctl->dct.cq;
        name[2] = ctl->dct.srq;
        break;
    case FAB_CREATE_AH:
        name[0] = ctl->ah.pd;
        break;
    case FAB_DESTROY_QP:
    case FAB_MODIFY_QP:
        list_qp(ctl->kind == FAB_MODIFY_QP ? ctl->modify.x : ctl->qp.x, name);
        break;
    case FAB_QUERY_QP: /* its own, so that nothing comes before it that was submitted later */
        list_qp(ctl->asked.x, name);
        break;
    case FAB_DESTROY_DCT:
        name[0] = ctl->dct.x;
        name[1] = ctl->dct.x->pd;
        name[2] = ((const struct sim_dct *)ctl->dct.x)->cq;
        name[3] = ((const struct sim_dct *)ctl->dct.x)->srq;
        break;
    case FAB_DEREG_MR:
        name[0] = ctl->mr.x;
        name[1] = ctl->mr.x->pd;
        break;
    case FAB_DESTROY_CQ:
        name[0] = ctl->cq.x;
        name[1] = ((const struct sim_cq *)ctl->cq.x)->chan;
        break;
    case FAB_DESTROY_SRQ:
        name[0] = ctl->srq.x;
        name[1] = ctl->srq.x->pd;
        break;
    case FAB_DESTROY_AH:
        name[0] = ctl->ah.x;
        name[1] = ctl->ah.x->pd;
        break;
    case FAB_FREE_PD:
    case FAB_DESTROY_CHAN:
        name[0] = ctl->pd.x; /* each names its object first */
        break;
    default:
        break;
    }
}

static bool changes_object(enum fab_ctl_kind kind)
{
    return fab_ctl_balance(kind) < 0 || kind == FAB_MODIFY_QP;
}

static bool is_named(const void *object, const void *const name[NAMES])
{
    for (int i = 0; i < NAMES; i++)
        if (name[i] == object)
            return true;
    return false;
}

/* Whether one of the two changes or frees what the other one needs: then they are in order. */
static bool must_wait(const struct fab_ctl *a, const struct fab_ctl *b)
{
    const void *of_a[NAMES], *of_b[NAMES];
    const bool a_changes = changes_object(a->kind), b_changes = changes_object(b->kind);
    if (!a_changes && !b_changes)
        return false;
    list_names(a, of_a);
    list_names(b, of_b);
    return (a_changes && is_named(of_a[0], of_b)) || (b_changes && is_named(of_b[0], of_a));
}

void sim_submit(struct fab *fab, struct fab_ctl *ctl)
{
    struct sim_device *dev = sim_device_of(fab);
    const struct sim_faults *f = &dev->faults;
    uint64_t from = dev->net->now_ns;
    struct sim_op *op = calloc(1, sizeof *op), *before;
    BASE_ASSERT(op != NULL);
    *op = (struct sim_op){.event = {.happen = run_due, .device = dev}, .dev = dev, .ctl = ctl};
    TAILQ_FOREACH(before, &dev->ops, link) {
        if (before->event.node.key >= from && must_wait(before->ctl, ctl))
            from = before->event.node.key;
    }
    uint64_t takes = sim_upto(&dev->prng, f->control_ns != 0 ? f->control_ns : MOST_NS);
    if (sim_chance(&dev->prng, f->control_slow_ppm))
        takes += sim_upto(&dev->prng, f->control_slow_ns);
    TAILQ_INSERT_TAIL(&dev->ops, op, link);
    sim_event_set(dev->net, &op->event, from + takes);
}

int sim_run(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    struct fab_ctl *ctl = dev->done, *next;
    int completed = 0;
    dev->done = NULL;
    dev->done_tail = &dev->done;
    sim_ready_set(dev->net, &dev->control, false);
    for (; ctl != NULL; ctl = next, completed++) {
        next = ctl->next;
        ctl->next = NULL;
        ctl->done(ctl);
    }
    return completed;
}

void sim_wait(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    struct sim_op *op, *first = NULL;
    if (dev->done != NULL)
        return;
    TAILQ_FOREACH(op, &dev->ops, link) {
        if (first == NULL || op->event.node.key < first->event.node.key ||
            (op->event.node.key == first->event.node.key &&
             op->event.node.order < first->event.node.order))
            first = op;
    }
    BASE_ASSERT(first != NULL); /* or it would be waited for ever */
    const uint64_t ns = first->event.node.key - dev->net->now_ns;
    sim_event_cancel(dev->net, &first->event);
    execute_op(first);
    if (dev->net->hooks.waited != NULL)
        dev->net->hooks.waited(dev->net->hooks.user, dev->attr.node, ns);
}

void sim_control_cancel(struct sim_device *dev, bool tells)
{
    for (struct sim_op *op; (op = TAILQ_FIRST(&dev->ops)) != NULL;) {
        struct fab_ctl *ctl = op->ctl;
        TAILQ_REMOVE(&dev->ops, op, link);
        sim_event_cancel(dev->net, &op->event);
        free(op);
        if (!tells) /* its memory may be gone as well */
            continue;
        ctl->status = -ECANCELED;
        ctl->next = NULL;
        *dev->done_tail = ctl;
        dev->done_tail = &ctl->next;
    }
    if (tells)
        (void)sim_run(&dev->base);
}
