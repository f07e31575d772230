/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane asks for to reach other nodes: address handles and repaired initiators with DC,
 * connections with RC. All of it is submitted to the fabric and goes on when it is done: resolving
 * a neighbour may block for seconds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "dci.h"
#include "dci_repair.h"
#include "fabric/limits.h"
#include "fabric/retire.h"
#include "lane_setup.h"
#include "bounds.h"
#include "peer_setup.h"
#include "prewarm.h"
#include "proofs.h"
#include "qp_end.h"
#include "register.h"
#include "table_initiators.h"

/* One operation under way, and what the lane hears when it is done. */
struct control_op {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    struct lane_command command;
};

static struct control_op *control_op_new(struct pool *p)
{
    struct control_op *e = calloc(1, sizeof *e);
    BASE_ASSERT(e != NULL); /* a few bytes: without them nothing else works either */
    e->pool = p;
    return e;
}

static void submit_control_op(struct control_op *e, void (*done)(struct fab_ctl *ctl))
{
    e->ctl.done = done;
    e->pool->fab_ops++;
    fab_submit(e->pool->device.fab, &e->ctl);
}

static void end_overdue(struct pool *p, struct fab_qp *qp)
{
    uint32_t suppressed;
    if (base_log_allow(&p->overdue_log, world_now_ns(p->world), FAULTS_LOGGED_S * BASE_NS_PER_S,
                       FAULTS_LOGGED, &suppressed))
        world_log(p->world, BASE_LOG_WARN,
                  "a queue pair is ended: a request has been out for as long as any may take",
                  "qpn=%u suppressed=%u", qp->qpn, suppressed);
    agent_qp_end_at_once(p, qp);
}

/* ---- DC */

/* The lane gets it: behind the word that the initiators are to be brought up anew, if they are
 * (lower_path_mtu()), so that nothing goes there in packets that are too long. */
static void give_address(struct control_op *e)
{
    struct pool *p = e->pool;
    if (p->lane != NULL && !p->stopping)
        agent_pool_command(p, &e->command);
    else if (e->command.path.path.ah != NULL)
        fab_retire(p->device.fab, FAB_DESTROY_AH, e->command.path.path.ah, &p->fab_ops);
    free(e);
}

/* Whoever waits for it hears that the endpoint is not reached, and not that it is the own device
 * that makes no more of them. */
static void tell_limit(struct pool *p, int status)
{
    uint32_t suppressed;
    if (fab_limit_advice(status)[0] != '\0' &&
        base_log_allow(&p->address_log, world_now_ns(p->world), FAULTS_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        world_log(p->world, BASE_LOG_ERROR, "the device makes no more address handles",
                  "pool=\"%s\" error=\"%s\" advice=\"%s\" suppressed=%u", p->name,
                  strerror(-status), fab_limit_advice(status), suppressed);
}

static void on_address(struct fab_ctl *ctl)
{
    struct control_op *e = (struct control_op *)ctl;
    e->pool->fab_ops--;
    tell_limit(e->pool, ctl->status);
    e->command.path.status = ctl->status;
    e->command.path.path.ah = ctl->status == 0 ? ctl->ah.x : NULL;
    give_address(e);
}

/* An initiator sends all its targets packets of one length, so that all of them take what the
 * smallest takes: each is brought up anew when nothing is out on it. */
static void lower_path_mtu(struct pool *p, enum ibv_mtu mtu, const char *why)
{
    struct agent_device *d = &p->device;
    if (mtu >= d->path_mtu)
        return;
    world_log(p->world, BASE_LOG_WARN, "DC initiators are brought up anew with a smaller MTU",
              "pool=\"%s\" mtu=%u before=%u why=\"%s\"", p->name, 128u << mtu, 128u << d->path_mtu,
              why);
    d->path_mtu = mtu;
    for (uint32_t i = 1; i < d->dcis; i++) {
        struct lane_command c = {.kind = LANE_COMMAND_QP_REBUILD, .qp = d->dci[i].qp};
        if (d->dci[i].qp != NULL && d->dci[i].mtu > mtu)
            agent_pool_command(p, &c);
    }
}

/* A DC target answers READs with packets as long as its own MTU, whatever the initiator has: those
 * that this port does not take would be lost, and each such READ break an initiator for all. */
static bool answers_too_long(struct pool *p, const struct lane_event *wanted)
{
    const enum ibv_mtu theirs = wanted->want_path.mtu, ours = p->agent->port.active;
    char gid[BASE_GID_TEXT];
    uint32_t suppressed;
    if (theirs <= ours)
        return false;
    if (base_log_allow(&p->mtu_log, world_now_ns(p->world), FAULTS_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        world_log(p->world, BASE_LOG_WARN,
                  "an endpoint answers READs in longer packets than this port takes: set mtu in "
                  "[fabric] of its node to what all ports take, and restart its agent",
                  "gid=%s its_mtu=%u mtu=%u suppressed=%u",
                  base_gid_format(wanted->want_path.gid, gid), 128u << theirs, 128u << ours,
                  suppressed);
    return true;
}

static void make_address(struct pool *p, const struct lane_event *wanted)
{
    struct control_op *e = control_op_new(p);
    e->command =
        (struct lane_command){.kind = LANE_COMMAND_PATH_READY, .path.flow = wanted->want_path.flow};
    if (answers_too_long(p, wanted)) {
        e->command.path.status = -EMSGSIZE;
        give_address(e);
        return;
    }
    e->ctl = (struct fab_ctl){
        .kind = FAB_CREATE_AH,
        .ah = {.pd = p->device.pd,
               .attr = fab_pd_address(p->device.pd, wanted->want_path.gid, wanted->want_path.lid)}};
    submit_control_op(e, on_address);
}

void agent_peer_setup_spare(struct pool *p, bool more)
{
    if (!more) {
        agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_SPARE_DROP});
        return;
    }
    agent_dci_make_spare(p);
}

void agent_peer_setup_spare_dropped(struct pool *p, struct fab_qp *qp)
{
    agent_prewarm_spare(p, qp != NULL ? -1 : 0,
                        -EAGAIN); /* all of them may be in use or being repaired */
    if (qp == NULL)
        return;
    agent_dci_remove(p, qp);
    agent_dci_destroy(p, qp);
}

/* ---- RC */

static void connect_to(struct pool *p, const struct lane_event *e)
{
    struct connector_peer peer = {.incarnation = e->want_path.incarnation,
                                  .ud_qpn = e->want_path.ud_qpn,
                                  .ud_qkey = e->want_path.ud_qkey,
                                  .lid = e->want_path.lid};
    memcpy(peer.gid, e->want_path.gid, 16);
    connector_connect(p->device.connector, &peer, e->want_path.flow);
}

static void done_with(struct pool *p, struct fab_qp *qp)
{
    if (p->device.hybrid || !agent_table_initiator_done(p, qp))
        connector_drop(p->device.connector, qp, world_now_ns(p->world));
}

static void on_message(void *user)
{
    agent_peer_setup_step(user);
}

/* Where RESET is final, the queue pair of handshakes that broke is another one now. */
static void tell_number(struct pool *p)
{
    struct agent_device *d = &p->device;
    const uint32_t qpn = connector_ud_qpn(d->connector);
    if (qpn == d->ud_qpn)
        return;
    if (p->first != NULL) { /* those that it talks to hear it from its connector */
        d->ud_qpn = qpn;
        return;
    }
    world_log(p->world, BASE_LOG_INFO,
              "handshakes have another queue pair: the metaservers are told",
              "pool=\"%s\" qpn=%u before=%u", p->name, qpn, d->ud_qpn);
    d->ud_qpn = qpn;
    p->agent->endpoints++;
    agent_registrations_changed(p->agent);
}

void agent_peer_setup_step(struct pool *p)
{
    struct connector_event e;
    if (p->device.connector == NULL || p->stopping)
        return;
    const uint64_t now = world_now_ns(p->world);
    const uint64_t due = connector_step(p->device.connector, now);
    while (connector_event(p->device.connector, &e)) {
        struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                                 .path = {.flow = e.tag, .path.qp = e.qp, .status = e.status}};
        agent_pool_command(p, &c);
    }
    for (struct fab_qp *qp; (qp = connector_broken(p->device.connector)) != NULL;)
        agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_QP_RETIRE, .qp = qp});
    agent_messages_tell_numbers(p);
    tell_number(p);
    if (due == UINT64_MAX)
        world_timer_clear(p->world, &p->handshakes_timer);
    else
        world_timer_at(p->world, &p->handshakes_timer, due > now ? due : now);
}

void agent_peer_setup_fatal(struct pool *p, const struct fab_qp *qp)
{
    if (p->device.connector == NULL || p->stopping)
        return;
    connector_fatal(p->device.connector, qp, world_now_ns(p->world));
    agent_peer_setup_step(p);
}

int agent_peer_setup_start(struct pool *p, struct base_errbuf *err)
{
    for (uint32_t i = 0; p->device.rest_until_ns != 0 && i < p->device.dcis; i++)
        agent_dci_raise(p, p->device.dci[i].qp);
    if (p->device.connector == NULL)
        return 0;
    p->handshakes_timer = (struct world_timer){.fired = on_message, .user = p};
    p->handshakes = (struct world_watch){.ready = on_message, .user = p};
    int status = world_watch(p->world, &p->handshakes, connector_fd(p->device.connector), err);
    if (status == 0)
        agent_peer_setup_step(p);
    return status;
}

/* ---- either */

void agent_peer_setup_event(struct pool *p, const struct lane_event *e)
{
    switch (e->kind) {
    case LANE_EVENT_WANT_PATH:
        if (e->want_path.rc)
            connect_to(p, e);
        else
            make_address(p, e);
        return;
    case LANE_EVENT_DROP_PATH:
        if (e->path.qp != NULL) {
            done_with(p, e->path.qp);
        } else {
            if (agent_registrations_take_back(p, e->path.ah))
                fab_retire(p->device.fab, FAB_DESTROY_AH, e->path.ah, &p->fab_ops);
        }
        return;
    case LANE_EVENT_QP_OVERDUE:
        end_overdue(p, e->qp);
        return;
    case LANE_EVENT_QP_RETIRED:
        agent_qp_end_at_once(p, e->qp);
        return;
    case LANE_EVENT_PROVED:
        agent_proofs_event(p, e);
        return;
    default: /* LANE_EVENT_QP_BROKEN */
        if (agent_qp_end_broken(p, e))
            return;
        if (e->broken.qp->type == FAB_QP_RC)
            done_with(p, e->broken.qp);
        else
            agent_dci_repair(p, e->broken.qp, e->broken.posted, e->broken.most);
        return;
    }
}

/* With DC the target stays as it is, and its READ responses as long as they were. */
void agent_peer_setup_mtu(struct pool *p)
{
    const enum ibv_mtu mtu = agent_prewarm_mtu(p);
    if (p->device.connector != NULL)
        connector_set_mtu(p->device.connector, mtu);
    if (p->device.rc)
        return;
    lower_path_mtu(p, mtu, "the port takes no longer packets");
    if (p->agent->port.active < p->device.dct_mtu)
        world_log(p->world, BASE_LOG_ERROR,
                  "this node's DC target answers READs in longer packets than its port takes: "
                  "restart the agent",
                  "pool=\"%s\" mtu=%u", p->name, 128u << mtu);
}

/* Those that are being brought up find out themselves. */
static void rebuild_former(struct pool *p)
{
    const struct agent_device *d = &p->device;
    for (uint32_t i = 0; i < d->dcis; i++) {
        struct lane_command c = {.kind = LANE_COMMAND_QP_REBUILD, .qp = d->dci[i].qp};
        if (d->dci[i].qp != NULL && !agent_dci_is_of_now(p, &d->dci[i]))
            agent_pool_command(p, &c);
    }
}

void agent_peer_setup_repartition(struct pool *p)
{
    if (p->device.connector != NULL)
        connector_repartition(p->device.connector, world_now_ns(p->world));
    agent_messages_repartition(p);
    rebuild_former(p);
}

/* A queue pair keeps the entry of the kernel's table of GIDs that it was brought up with, which is
 * not free for another address while it does. */
void agent_peer_setup_readdress(struct pool *p)
{
    p->device.addresses++;
    rebuild_former(p);
}

void agent_peer_setup_stop(struct pool *p)
{
    world_unwatch(p->world, &p->handshakes);
    world_timer_clear(p->world, &p->handshakes_timer);
}
