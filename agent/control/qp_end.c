/* SPDX-License-Identifier: Apache-2.0 */
#include "qp_end.h"

#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "base/assert.h"
#include "base/clock.h"
#include "bounds.h"
#include "control/world_log.h"
#include "dci_repair.h"
#include "lane_setup.h"
#include "pool.h"
#include "table_initiators.h"

/* One, until it is in ERR; or until it is destroyed and its lane has said QP_BROKEN. */
struct qp_end {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    struct fab_qp *qp; /* DESTROYED: to be compared alone */
    enum { END_BY_ERR, END_BY_DESTROYING, END_DESTROYED } state;
    uint32_t refused; /* ERR was, so often */
    bool broken;      /* BY_ERR: its lane does not have it any more */
    bool told;        /* BY_DESTROYING: that the device refuses that too */
    bool connected;   /* it is a connection's; else DC */
    bool system;      /* DC, once it is not BY_ERR: whose place it had */
    struct qp_end *next;
};

static void forget_end(struct qp_end *e)
{
    struct qp_end **link = &e->pool->ends;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    free(e);
}

/* Whose lane has not said QP_BROKEN. NULL: none. */
static struct qp_end *find_end(const struct pool *p, const struct fab_qp *qp)
{
    struct qp_end *e = p->ends;
    while (e != NULL && (e->qp != qp || e->broken))
        e = e->next;
    return e;
}

static bool may_say(struct pool *p, uint32_t *suppressed)
{
    return base_log_allow(&p->end_log, world_now_ns(p->world), FAULTS_LOGGED_S * BASE_NS_PER_S,
                          FAULTS_LOGGED, suppressed);
}

static void on_tried(void *user, const struct fab_qp *qp, int status)
{
    struct pool *p = user;
    struct qp_end *e = find_end(p, qp);
    uint32_t suppressed;
    if (e == NULL || e->state != END_BY_DESTROYING)
        return;
    if (status != 0) {
        if (!e->told && may_say(p, &suppressed)) { /* it is tried each second */
            world_log(
                p->world, BASE_LOG_ERROR,
                "the device neither ends a queue pair nor destroys it: what is out on it may be "
                "carried out late (restart the agent)",
                "pool=\"%s\" qpn=%u error=\"%s\" suppressed=%u", p->name, qp->qpn,
                strerror(-status), suppressed);
            e->told = true;
        }
        return;
    }
    e->state = END_DESTROYED;
    if (p->lane != NULL && !p->stopping)
        agent_pool_command(p,
                           &(struct lane_command){.kind = LANE_COMMAND_QP_DESTROYED, .qp = e->qp});
}

static void destroy_early(struct qp_end *e, int status)
{
    struct pool *p = e->pool;
    uint32_t suppressed;
    if (may_say(p, &suppressed))
        world_log(
            p->world, BASE_LOG_ERROR,
            "the device does not end a queue pair: it is destroyed, and another takes its place",
            "pool=\"%s\" qpn=%u error=\"%s\" suppressed=%u", p->name, e->qp->qpn, strerror(-status),
            suppressed);
    e->state = END_BY_DESTROYING;
    if (!e->connected)
        e->system = agent_dci_destroy_early(p, e->qp, on_tried);
    else if (p->device.hybrid || !agent_table_initiator_destroy(p, e->qp, on_tried))
        connector_destroy(p->device.connector, e->qp, world_now_ns(p->world), on_tried, p);
}

static void put_to_err(struct qp_end *e);

static void on_put(struct fab_ctl *ctl)
{
    struct qp_end *e = (struct qp_end *)ctl;
    const struct pool *p = e->pool;
    e->pool->fab_ops--;
    if (ctl->status == 0 || e->broken || p->stopping || p->agent->device_lost)
        forget_end(e);
    else if (++e->refused < QP_ENDS_TRIED)
        put_to_err(e);
    else
        destroy_early(e, ctl->status);
}

static void put_to_err(struct qp_end *e)
{
    e->ctl = (struct fab_ctl){
        .kind = FAB_MODIFY_QP,
        .done = on_put,
        .modify = {.x = e->qp, .attr = {.qp_state = IBV_QPS_ERR}, .mask = IBV_QP_STATE}};
    e->pool->fab_ops++;
    fab_submit(e->pool->device.fab, &e->ctl);
}

void agent_qp_end_at_once(struct pool *p, struct fab_qp *qp)
{
    struct qp_end *e = calloc(1, sizeof *e);
    BASE_ASSERT(e != NULL); /* a few bytes: without them nothing else works either */
    e->pool = p;
    e->qp = qp;
    e->connected = qp->type == FAB_QP_RC;
    e->next = p->ends;
    p->ends = e;
    put_to_err(e);
}

bool agent_qp_end_broken(struct pool *p, const struct lane_event *event)
{
    struct qp_end *e = find_end(p, event->broken.qp);
    if (e == NULL)
        return false;
    if (e->state == END_BY_ERR) {
        e->broken = true;
        return false;
    }
    const bool undestroyed = e->state == END_BY_DESTROYING; /* the lane waits no longer */
    const bool system = e->system, connected = e->connected;
    forget_end(e);
    if (connected || p->stopping)
        return true;
    if (undestroyed)
        agent_pool_command(
            p, &(struct lane_command){.kind = LANE_COMMAND_QP_GONE, .qp = event->broken.qp});
    agent_dci_make_other(p, system, event->broken.most);
    return true;
}

void agent_qp_ends_stop(struct pool *p)
{
    while (p->ends != NULL)
        forget_end(p->ends);
}
