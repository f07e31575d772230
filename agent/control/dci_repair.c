/* SPDX-License-Identifier: Apache-2.0 */
#include "dci_repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/assert.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "dci.h"
#include "due.h"
#include "fabric/retire.h"
#include "lane_setup.h"
#include "pool.h"
#include "prewarm.h"

/* One initiator that is brought up, made or destroyed: under way in the device, or among those that
 * wait. */
struct dci_op {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    enum dci_job { DCI_RAISE, DCI_MAKE, DCI_END } job;
    struct fab_qp *qp; /* RAISE, END; the pool's list has it only while it is raised */
    uint32_t step;
    uint32_t failures; /* on end */
    enum ibv_mtu most; /* of the MTU that it is to have; 0: the pool's */
    enum ibv_mtu mtu;  /* RAISE: that it gets */
    bool spare;        /* MAKE: one more; else one in the place of one that was given up */
    bool system;       /* MAKE: the system's, else one of workers */
    void (*tried)(void *user, const struct fab_qp *qp, int status); /* END; or NULL */
    bool given_up;   /* RAISE: since it began the device has been silent for too long */
    uint64_t due_ns; /* of one that waits: not before. RAISE, under way: it ought to have ended */
    struct dci_op *next;
};

static void begin_raising(struct dci_op *op);
static void begin_ending(struct dci_op *op);

static struct dci_op *dci_op_new(struct pool *p, enum dci_job job, struct fab_qp *qp)
{
    struct dci_op *op = calloc(1, sizeof *op);
    BASE_ASSERT(op != NULL); /* a few bytes: without them nothing else works either */
    op->pool = p;
    op->job = job;
    op->qp = qp;
    return op;
}

static void submit_dci_op(struct dci_op *op, void (*done)(struct fab_ctl *ctl))
{
    op->ctl.done = done;
    op->pool->fab_ops++;
    fab_submit(op->pool->device.fab, &op->ctl);
}

static void wait_until(struct dci_op *op, uint64_t due_ns)
{
    op->due_ns = due_ns;
    op->next = op->pool->repairs.waiting;
    op->pool->repairs.waiting = op;
}

static void try_later(struct dci_op *op)
{
    wait_until(op, world_now_ns(op->pool->world) + REPAIR_AGAIN_MS * BASE_NS_PER_MS);
}

/* ---- made anew */

/* Whoever makes the next one counts it: it has its place before anybody hears of it. */
static void place_new(struct dci_op *op)
{
    struct pool *p = op->pool;
    const uint64_t now_ns = world_now_ns(p->world);
    op->qp = op->ctl.qp.x;
    op->job = DCI_RAISE;
    if (op->spare)
        (void)agent_dci_add(p, op->qp, now_ns);
    else
        agent_dci_replace(p, op->system, op->qp, now_ns);
}

static void on_made(struct fab_ctl *ctl)
{
    struct dci_op *op = (struct dci_op *)ctl;
    struct pool *p = op->pool;
    const int status = ctl->status;
    p->fab_ops--;
    p->repairs.making--;
    if (status == 0)
        place_new(op);
    if (op->spare)
        agent_prewarm_spare(p, status == 0, status);
    if (status == 0)
        begin_raising(op);
    else if (!op->spare)
        try_later(op);
    else
        free(op);
}

/* Of those that were given up all that are not destroyed may still have completions to come. */
static void begin_making(struct dci_op *op)
{
    struct pool *p = op->pool;
    if (!agent_dcis_have_room(p, p->repairs.ending + p->repairs.making)) {
        if (op->spare) {
            agent_prewarm_spare(p, 0, -EBUSY);
            free(op);
        } else {
            try_later(op);
        }
        return;
    }
    op->ctl = agent_dci_creation(p, op->system ? p->device.system_pd : p->device.pd);
    p->repairs.making++;
    submit_dci_op(op, on_made);
}

void agent_dci_make_spare(struct pool *p)
{
    struct dci_op *op = dci_op_new(p, DCI_MAKE, NULL);
    op->spare = true;
    begin_making(op);
}

/* ---- given up */

static void on_ended(struct fab_ctl *ctl)
{
    struct dci_op *op = (struct dci_op *)ctl;
    struct pool *p = op->pool;
    p->fab_ops--;
    if (op->tried != NULL)
        op->tried(p, op->qp, ctl->status);
    if (ctl->status != 0) {
        try_later(op);
        return;
    }
    p->repairs.ending--;
    free(op);
}

static void begin_ending(struct dci_op *op)
{
    op->ctl = (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp = {.x = op->qp}};
    submit_dci_op(op, on_ended);
}

void agent_dci_destroy(struct pool *p, struct fab_qp *qp)
{
    p->repairs.ending++;
    begin_ending(dci_op_new(p, DCI_END, qp));
}

bool agent_dci_destroy_early(struct pool *p, struct fab_qp *qp,
                             void (*tried)(void *user, const struct fab_qp *qp, int status))
{
    const bool system = qp == p->device.dci[0].qp;
    struct dci_op *op = dci_op_new(p, DCI_END, qp);
    op->tried = tried;
    agent_dci_leave_place(p, qp);
    p->repairs.ending++;
    begin_ending(op);
    return system;
}

void agent_dci_make_other(struct pool *p, bool system, enum ibv_mtu most)
{
    struct dci_op *making = dci_op_new(p, DCI_MAKE, NULL);
    making->most = most;
    making->system = system;
    p->repairs.replaced++;
    begin_making(making);
}

/* The lane has nothing out on it, and does not have it any more. What the device may still do with
 * it is nothing that it has not had time for: it is in ERR, or was for as long as anything is
 * tried. */
static void give_up(struct pool *p, struct fab_qp *qp, enum ibv_mtu most, const char *why)
{
    const bool system = qp == p->device.dci[0].qp;
    agent_dci_leave_place(p, qp);
    p->repairs.ending++;
    world_log(p->world, BASE_LOG_ERROR,
              "the device does not bring a DC initiator back: a new one takes its place (look at "
              "the kernel's log; where that goes on, restart the agent, and if that does not help "
              "reset the device)",
              "pool=\"%s\" qpn=%u why=\"%s\" replaced=%u undestroyed=%u", p->name, qp->qpn, why,
              p->repairs.replaced + 1, p->repairs.ending);
    agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_QP_GONE, .qp = qp});
    agent_dci_make_other(p, system, most);
}

/* ---- brought up */

static bool is_outdated(struct pool *p, const struct dci_op *op)
{
    return op->mtu > p->device.path_mtu || !agent_dci_is_of_now(p, agent_dci_find(p, op->qp));
}

static void repair_failed(struct dci_op *op)
{
    struct pool *p = op->pool;
    const char *why = strerror(-op->ctl.status);
    if (++op->failures < REPAIRS_TRIED) {
        world_log(p->world, BASE_LOG_ERROR, "a queue pair cannot be repaired: it is tried again",
                  "qpn=%u error=\"%s\"", op->qp->qpn, why);
        try_later(op);
        return;
    }
    struct fab_qp *qp = op->qp;
    const enum ibv_mtu most = op->most;
    op->job = DCI_END;
    begin_ending(op); /* before the new one is made, for which there may be no room else */
    give_up(p, qp, most, why);
}

static void on_raised(struct fab_ctl *ctl)
{
    struct dci_op *op = (struct dci_op *)ctl;
    struct pool *p = op->pool;
    p->fab_ops--;
    if (op->given_up) {
        op->job = DCI_END;
        begin_ending(op);
        return;
    }
    struct agent_dci *d = agent_dci_find(p, op->qp);
    d->raising = NULL;
    if (ctl->status != 0 && !p->stopping && !p->agent->device_lost) {
        repair_failed(op);
        return;
    }
    if (ctl->status == 0 && agent_dci_step(p, d, ++op->step, ctl)) {
        d->raising = op;
        submit_dci_op(op, on_raised);
        return;
    }
    if (ctl->status == 0 && is_outdated(p, op) && !p->stopping) { /* since it began */
        begin_raising(op);
        return;
    }
    if (ctl->status == 0 && p->lane != NULL && !p->stopping) {
        /* As often as workers post to dead peers: what counts them is qp_broken. */
        world_log(p->world, BASE_LOG_DEBUG, "queue pair repaired", "qpn=%u", op->qp->qpn);
        agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_QP_READY,
                                                     .ready = {.qp = op->qp, .most = op->most}});
    }
    free(op);
}

static void begin_raising(struct dci_op *op)
{
    struct pool *p = op->pool;
    struct agent_dci *d = agent_dci_find(p, op->qp);
    const uint64_t rests_ns = agent_dci_rests_ns(p, d);
    op->step = 0;
    op->mtu = p->device.path_mtu;
    if (op->most != 0 && op->most < op->mtu)
        op->mtu = op->most;
    d->mtu = op->mtu;
    if (rests_ns != 0) {
        wait_until(op, rests_ns);
        return;
    }
    op->ctl = (struct fab_ctl){.status = 0};
    op->due_ns = world_now_ns(p->world) + REPAIR_SILENT_MS * BASE_NS_PER_MS;
    (void)agent_dci_step(p, d, 0, &op->ctl);
    d->raising = op;
    submit_dci_op(op, on_raised);
}

static void raise_at_most(struct pool *p, struct fab_qp *qp, enum ibv_mtu most)
{
    struct dci_op *op = dci_op_new(p, DCI_RAISE, qp);
    op->most = most;
    begin_raising(op);
}

void agent_dci_raise(struct pool *p, struct fab_qp *qp)
{
    raise_at_most(p, qp, 0);
}

/* The first of those for endpoints that take less is told. */
static void note_narrow(struct pool *p, enum ibv_mtu most)
{
    struct agent_device *d = &p->device;
    if (most == 0 || (d->narrow_mtu != 0 && most >= d->narrow_mtu))
        return;
    world_log(p->world, BASE_LOG_WARN,
              "an endpoint takes shorter packets: some DC initiators have a smaller MTU, for such "
              "endpoints and silent ones",
              "pool=\"%s\" mtu=%u before=%u dcis=%u", p->name, 128u << most,
              d->narrow_mtu != 0 ? 128u << d->narrow_mtu : 128u << d->path_mtu, p->prewarm.dcis);
    d->narrow_mtu = most;
}

void agent_dci_repair(struct pool *p, struct fab_qp *qp, uint64_t posted, enum ibv_mtu most)
{
    note_narrow(p, most);
    agent_dci_end_life(p, agent_dci_find(p, qp), posted);
    raise_at_most(p, qp, most);
}

/* ---- in time */

static void begin_job(struct dci_op *op)
{
    if (op->job == DCI_RAISE)
        begin_raising(op);
    else if (op->job == DCI_MAKE)
        begin_making(op);
    else
        begin_ending(op);
}

/* Those on which the device has been silent for so long that it may be so for ever. */
static void give_up_silent(struct pool *p)
{
    const uint64_t now_ns = world_now_ns(p->world);
    for (uint32_t i = 0; i < p->device.dcis; i++) {
        struct dci_op *op = p->device.dci[i].raising;
        if (op == NULL || now_ns < op->due_ns || p->stopping || p->agent->device_lost)
            continue;
        op->given_up = true;
        give_up(p, op->qp, op->most, "the device does not answer");
    }
}

uint64_t agent_dci_repairs_due_ns(const struct pool *p)
{
    uint64_t due_ns = DUE_NEVER;
    for (const struct dci_op *op = p->repairs.waiting; op != NULL; op = op->next)
        due_ns = due_first(due_ns, op->due_ns);
    for (uint32_t i = 0; i < p->device.dcis && !p->stopping && !p->agent->device_lost; i++)
        if (p->device.dci[i].raising != NULL)
            due_ns = due_first(due_ns, p->device.dci[i].raising->due_ns);
    return due_ns;
}

void agent_dci_repairs_tick(struct pool *p)
{
    const uint64_t now_ns = world_now_ns(p->world);
    struct dci_op *op = p->repairs.waiting;
    p->repairs.waiting = NULL;
    for (struct dci_op *next; op != NULL; op = next) {
        next = op->next;
        if (now_ns >= op->due_ns)
            begin_job(op);
        else
            wait_until(op, op->due_ns);
    }
    give_up_silent(p);
}

void agent_dci_repairs_stop(struct pool *p)
{
    struct dci_op *op = p->repairs.waiting;
    p->repairs.waiting = NULL;
    for (struct dci_op *next; op != NULL; op = next) {
        next = op->next;
        if (op->job == DCI_END)
            fab_retire(p->device.fab, FAB_DESTROY_QP, op->qp, &p->fab_ops);
        free(op);
    }
}
