/* SPDX-License-Identifier: Apache-2.0 */
/* What the device says by itself: a queue pair is in ERR, the port went down, the device is gone.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "address_change.h"
#include "agent.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "device_events.h"
#include "due.h"
#include "lane_setup.h"
#include "peer_setup.h"
#include "pools.h"

/* Nothing goes on without it, and only a new process gets rid of what is left of it. */
static void give_up(struct agent *a, const char *what)
{
    world_log(a->world, BASE_LOG_ERROR, "the device cannot be used any more", "why=\"%s\"", what);
    a->device_lost = true;
    world_stop(a->world);
}

/* ---- a queue pair in ERR: its state is asked here, since that may be a command to the firmware,
 * and not by the lane; and not by a call, for which all workers would wait */

struct qp_question {
    struct fab_ctl ctl; /* first */
    struct agent *agent;
    struct fab_qp *qp;
    bool again; /* it had another event meanwhile */
    struct qp_question *next;
};

static void ask_state(struct agent *a, struct fab_qp *qp);

static void forget_question(struct qp_question *q)
{
    struct qp_question **link = &q->agent->questions;
    while (*link != q)
        link = &(*link)->next;
    *link = q->next;
    free(q);
}

/* An event may be of a life that is over, as the state says then. A queue pair that is repaired,
 * used again or destroyed meanwhile has that done behind this, and goes to its lane behind this
 * command. */
static void on_state(struct fab_ctl *ctl)
{
    const struct qp_question q = *(struct qp_question *)ctl;
    struct agent *a = q.agent;
    const bool broken = ctl->status != 0 || ctl->asked.state == IBV_QPS_ERR;
    forget_question((struct qp_question *)ctl);
    if (a->stopping || a->device_lost || q.ctl.status == -ECANCELED)
        return;
    if (!broken) {
        if (q.again && !atomic_load(&q.qp->leaves))
            ask_state(a, q.qp);
        return;
    }
    const struct lane_command c = {.kind = LANE_COMMAND_QP_FATAL, .qp = q.qp};
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        agent_pool_command(p, &c); /* the lane that has it knows it */
        agent_peer_setup_fatal(p, q.qp);
    }
}

/* One question about each at a time: there are no more of them than queue pairs. */
static void ask_state(struct agent *a, struct fab_qp *qp)
{
    struct qp_question *q = a->questions;
    while (q != NULL && q->qp != qp)
        q = q->next;
    if (q != NULL) {
        q->again = true;
        return;
    }
    q = calloc(1, sizeof *q);
    if (q == NULL) /* what is posted there ends by its time */
        return;
    *q = (struct qp_question){
        .ctl = {.kind = FAB_QUERY_QP, .done = on_state, .asked.x = qp}, .agent = a, .qp = qp};
    q->next = a->questions;
    a->questions = q;
    fab_submit(a->fab, &q->ctl);
}

static void one_event(struct agent *a, const struct fab_event *e)
{
    switch (e->type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: /* of one with an SRQ there may be no other */
        a->qp_events++;
        if (e->qp == NULL) { /* a DC target, which only what is fatal ends */
            if (e->type == IBV_EVENT_QP_FATAL)
                agent_address_retarget(a);
            return;
        }
        ask_state(a, e->qp);
        return;
    case IBV_EVENT_PORT_ERR:
        agent_address_port(a, true);
        agent_address_look(a);
        return;
    case IBV_EVENT_PORT_ACTIVE:
        agent_address_port(a, false);
        agent_address_look(a);
        return;
    case IBV_EVENT_DEVICE_FATAL:
        give_up(a, "it was removed, or its driver gave up");
        return;
    case IBV_EVENT_CQ_ERR:
        give_up(a, "a completion queue overflowed or broke");
        return;
    case IBV_EVENT_SRQ_ERR:
        give_up(a, "a queue of shared receives broke, and with it what peers reach this node by");
        return;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        world_log(a->world, BASE_LOG_INFO, "the port's addresses have changed",
                  "device=\"%s\" type=%d", a->config.device, (int)e->type);
        agent_address_look(a);
        return;
    default:
        world_log(a->world, BASE_LOG_INFO, "device event", "type=%d", (int)e->type);
        return;
    }
}

void agent_device_port_changed(struct fab_port_watch *w, enum ibv_mtu before)
{
    struct agent *a = w->user;
    world_log(a->world, BASE_LOG_WARN,
              "the port has another MTU: connections that are made or fail from now on have it",
              "device=\"%s\" mtu=%u before=%u", a->config.device, 128u << w->mtu, 128u << before);
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        agent_peer_setup_mtu(p);
}

static uint64_t undestroyed_due_ns(const struct agent *a)
{
    const struct base_log_limit *limit = &a->undestroyed_log;
    return due_if(a->fab->undestroyed != a->undestroyed_told,
                  limit->used == 0 ? DUE_NOW : limit->since_ns + FAULTS_LOGGED_S * BASE_NS_PER_S);
}

uint64_t agent_device_due_ns(const struct agent *a)
{
    return a->device_lost ? DUE_NEVER
                          : due_first(undestroyed_due_ns(a), fab_port_watch_due_ns(&a->port));
}

/* A pool that is made anew every few seconds may leave some each time. */
static void tell_undestroyed(struct agent *a)
{
    if (a->fab->undestroyed == a->undestroyed_told ||
        !base_log_allow(&a->undestroyed_log, world_now_ns(a->world),
                        FAULTS_LOGGED_S * BASE_NS_PER_S, 1, NULL))
        return;
    a->undestroyed_told = a->fab->undestroyed;
    world_log(a->world, BASE_LOG_ERROR,
              "the device refuses to destroy objects: they are there until this agent ends "
              "(restart it when the device makes no more)",
              "objects=%u", a->fab->undestroyed);
}

void agent_device_tick(struct agent *a)
{
    if (a->device_lost)
        return;
    tell_undestroyed(a);
    fab_port_watch_tick(&a->port, world_now_ns(a->world));
}

void agent_device_events(struct agent *a)
{
    struct fab_event e;
    while (!a->device_lost && fab_get_event(a->fab, &e))
        one_event(a, &e);
}
