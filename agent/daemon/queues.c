/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's queue pairs: with DC the initiators and the target that peers reach this node by; with
 * RC a connector, which keeps them ready. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "base/assert.h"
#include "dci.h"
#include "device.h"
#include "device_objects.h"
#include "fabric/retire.h"
#include "bounds.h"
#include "message_receives.h"
#include "pool.h"
#include "prewarm.h"
#include "table_initiators.h"

enum { TARGET_WR = 16 };

/* ---- DC */

/* Number 0 is the system's, then the pool's, then the spares. Each is created, in RESET, and
 * brought up. */
int agentd_queues_make_initiators(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    enum { OPERATIONS = 4 };
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    const uint32_t number = over / OPERATIONS, step = over % OPERATIONS;
    if (step == 1)
        (void)agent_dci_add(p, ctl->qp.x, agent_pool_begun_ns(p));
    if (step != 0) {
        *ctl = (struct fab_ctl){.status = 0};
        const bool there_is = agent_dci_step(p, &d->dci[number], step, ctl);
        BASE_ASSERT(there_is);
        return 1;
    }
    if (number == p->prewarm.dcis + p->prewarm.spares + 1)
        return 0;
    *ctl = agent_dci_creation(p, number == 0 ? d->system_pd : d->pd);
    return 1;
}

/* With a key of its own, or that of the one that there is, by which metaservers tell this process
 * from another one. 0 or -errno. */
static int target_creation(const struct pool *p, struct fab_ctl *out)
{
    const struct agent_device *d = &p->device;
    *out = (struct fab_ctl){.kind = FAB_CREATE_DCT,
                            .dct = {.pd = d->pd,
                                    .cq = agent_messages_receives(p) != 0 ? d->cq : d->target_cq,
                                    .srq = d->srq,
                                    .access = fab_target_access(d->fab)}};
    if (d->dct == NULL)
        return world_random(p->world, &out->dct.dc_key, sizeof out->dct.dc_key);
    out->dct.dc_key = d->dct->dc_key;
    return 0;
}

static struct fab_ctl srq_creation(const struct pool *p)
{
    const uint32_t receives = agent_messages_receives(p);
    return (struct fab_ctl){
        .kind = FAB_CREATE_SRQ,
        .srq = {.pd = p->device.pd, .max_wr = receives != 0 ? receives : TARGET_WR, .max_sge = 1}};
}

int agentd_queues_make_target(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    int status = 0;
    switch (over) {
    case 0:
        *ctl = (struct fab_ctl){.kind = FAB_CREATE_CQ, .cq = {.cqe = TARGET_WR}};
        return 1;
    case 1:
        d->target_cq = ctl->cq.x;
        *ctl = srq_creation(p);
        return 1;
    case 2:
        d->srq = ctl->srq.x;
        status = target_creation(p, ctl);
        return status == 0 ? 1 : status;
    default:
        d->dct = ctl->dct.x;
        d->dct_mtu = fab_pd_mtu(d->pd);
        return 0;
    }
}

/* A target that is being made for a pool that has one. */
struct retarget {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
};

void agentd_queues_leave_former(struct pool *p)
{
    fab_retire(p->device.fab, FAB_DESTROY_DCT, p->device.dct_before, &p->fab_ops);
    p->device.dct_before = NULL;
}

/* Of a pool that goes nobody is to reach any. */
static void take_target(struct pool *p, struct fab_dct *dct)
{
    struct agent_device *d = &p->device;
    if (d->dct == NULL || p->stopping) {
        fab_retire(d->fab, FAB_DESTROY_DCT, dct, &p->fab_ops);
        return;
    }
    agentd_queues_leave_former(p);
    d->dct_before = d->dct;
    d->dct = dct;
    d->dct_mtu = fab_pd_mtu(d->pd);
    if (!p->readdress.keeps)
        agentd_queues_leave_former(p);
}

static void on_target(struct fab_ctl *ctl)
{
    struct pool *p = ((struct retarget *)ctl)->pool;
    const int status = ctl->status;
    p->fab_ops--;
    if (status == 0)
        take_target(p, ctl->dct.x);
    free(ctl);
    agent_address_step_done(p, WORLD_DEVICE_TARGET, status);
}

int agentd_queues_retarget(struct pool *p)
{
    struct retarget *r = p->device.dct != NULL ? calloc(1, sizeof *r) : NULL;
    if (r == NULL)
        return p->device.dct != NULL ? -ENOMEM : -ECANCELED;
    int status = target_creation(p, &r->ctl);
    if (status != 0) {
        free(r);
        return status;
    }
    r->pool = p;
    r->ctl.done = on_target;
    p->fab_ops++;
    fab_submit(p->device.fab, &r->ctl);
    return 0;
}

/* ---- RC */

static int fill_random(void *world, void *bytes, size_t n)
{
    return world_random(world, bytes, n);
}

static int new_connector(struct pool *p, struct base_errbuf *err)
{
    const struct agent_config *c = p->config;
    struct agent_device *d = &p->device;
    struct connector_config config = {
        .pool = p->number,
        .incarnation = p->incarnation,
        .initiators = (uint32_t)(agent_prewarm_connections(p) + c->queue_pairs_ahead),
        .responders = p->first == NULL ? p->prewarm.responders : 0, /* of all lanes */
        .ahead = (uint32_t)c->queue_pairs_ahead,
        .first = pool_is_own(p) ? 0 : 1, /* another one begins with these, and serves meanwhile */
        .wanted = LANE_PATHS,
        .handshakes = HANDSHAKES,
        .sq_depth = RC_SQ_DEPTH,
        .sge = agent_dci_sges(&d->fab->caps),
        .inline_bytes = agent_dci_inline_bytes(&d->fab->caps),
        .mtu = d->path_mtu,
        .timeout = (uint8_t)c->ack_timeout,
        .retry_cnt = ACK_RETRIES,
        .rnr_retry = RNR_RETRIES,
        .retry_ns = HANDSHAKE_RETRY_MS * 1000000ull,
        .silence_ns = HANDSHAKE_SILENT_S * 1000000000ull,
        .idle_ns = RESPONDER_IDLE_S * 1000000000ull,
        .drain_ns = RESPONDER_DRAIN_MS * 1000000ull,
        .begun_ns = agent_pool_begun_ns(p),
        .gone_ns = &p->agent->numbers_gone_ns,
        .ops = &p->fab_ops,
    };
    struct connector_resources r = {.fab = d->fab,
                                    .pd = d->pd,
                                    .system_pd = d->system_pd,
                                    .cq = d->cq,
                                    .srq = agent_messages_receives(p) != 0 ? d->srq : NULL};
    return connector_new(&config, &r, fill_random, p->world, &d->connector, err);
}

int agentd_queues_make_srq(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    if (over > 0) {
        p->device.srq = ctl->srq.x;
        return 0;
    }
    *ctl = srq_creation(p);
    return agent_messages_receives(p) != 0;
}

int agentd_queues_make_connector(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    struct base_errbuf *err = &d->opening.err;
    const int status = over == 0 ? new_connector(p, err) : 0;
    const int next = status == 0 ? connector_make(d->connector, ctl, err) : status;
    if (next == 0)
        d->ud_qpn = connector_ud_qpn(d->connector);
    return next;
}

/* ---- either */

/* Send queues that complete on the lane's CQ. */
static uint64_t queue_pairs(const struct pool *p)
{
    const struct agent_config *c = p->config;
    const struct agent_device *d = &p->device;
    const uint64_t connections =
        d->rc || d->hybrid ? agent_prewarm_connections(p) + c->queue_pairs_ahead : 0;
    return connections +
           (d->rc ? 2 * c->metaservers : (uint64_t)p->prewarm.dcis + p->prewarm.spares + 1);
}

/* For so many spares there is room in the completion queue, so that more can come. */
static void reserve_spares(struct pool *p)
{
    struct agent_device *d = &p->device;
    const uint64_t most = d->fab->caps.max_cqe, messages = agent_messages_completions(p);
    const uint64_t room = (most > messages ? most - messages : 0) / d->sq_depth;
    d->max_spares = p->prewarm.spares;
    const uint64_t others = queue_pairs(p) - d->max_spares;
    if (!d->rc && room > others + d->max_spares)
        d->max_spares = room - others < LANE_MAX_DCIS ? (uint32_t)(room - others) : LANE_MAX_DCIS;
}

void agentd_queues_reckon(struct pool *p)
{
    struct agent_device *d = &p->device;
    d->sq_depth = d->rc || d->hybrid ? RC_SQ_DEPTH : SQ_DEPTH;
    d->path_mtu = agent_prewarm_mtu(p);
    reserve_spares(p);
}

int agentd_queues_make_cq(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    struct agent_device *d = &p->device;
    const uint64_t more = d->rc ? 0 : d->max_spares - p->prewarm.spares;
    const uint64_t cqe = (queue_pairs(p) + more) * d->sq_depth;
    const uint64_t all = cqe + agent_messages_completions(p);
    switch (over) {
    case 0:
        if (all > d->fab->caps.max_cqe)
            return base_err(&d->opening.err, -EDOM,
                            "the device's completion queues have room for %u, and %llu queue pairs "
                            "need %llu: lower %s in [pool]",
                            d->fab->caps.max_cqe, (unsigned long long)queue_pairs(p),
                            (unsigned long long)all,
                            d->rc || d->hybrid ? "connections" : "dcis or spares");
        *ctl = (struct fab_ctl){.kind = FAB_CREATE_CHAN};
        return 1;
    case 1:
        d->chan = ctl->chan.x;
        *ctl = (struct fab_ctl){
            .kind = FAB_CREATE_CQ,
            .cq = {.cqe = (uint32_t)all, .chan = d->chan, .comp_vector = d->placement.comp_vector}};
        return 1;
    default:
        d->cq = ctl->cq.x;
        return 0;
    }
}

void agentd_queues_retire(struct pool *p)
{
    struct agent_device *d = &p->device;
    uint32_t *ops = &p->fab_ops;
    if (d->connector != NULL)
        connector_retire(d->connector);
    for (uint32_t i = 0; i < d->dcis; i++)
        fab_retire(d->fab, FAB_DESTROY_QP, d->dci[i].qp, ops);
    agentd_queues_leave_former(p);
    fab_retire(d->fab, FAB_DESTROY_DCT, d->dct, ops);
    fab_retire(d->fab, FAB_DESTROY_SRQ, d->srq, ops);
    fab_retire(d->fab, FAB_DESTROY_CQ, d->target_cq, ops);
    fab_retire(d->fab, FAB_DESTROY_CQ, d->cq, ops);
    fab_retire(d->fab, FAB_DESTROY_CHAN, d->chan, ops);
}
