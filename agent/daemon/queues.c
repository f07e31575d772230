/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's queue pairs: with DC the initiators and the target that peers reach this node by; with
 * RC a connector, which keeps them ready. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "agent/connector.h"
#include "dci.h"
#include "device.h"
#include "device_objects.h"
#include "fabric/retire.h"
#include "bounds.h"
#include "pool.h"
#include "prewarm.h"
#include "table_initiators.h"

enum { TARGET_WR = 16 };

static int call_fabric(struct agent_device *d, struct fab_ctl *ctl)
{
    return fab_call(d->fab, ctl);
}

/* ---- DC */

static int make_dci(struct pool *p, struct fab_pd *pd)
{
    struct agent_device *d = &p->device;
    struct fab_ctl c = dci_creation(p, pd);
    int status = call_fabric(d, &c);
    if (status != 0)
        return status;
    struct agent_dci *dci = dci_add(p, c.qp.x, pool_begun_ns(p));
    for (uint32_t step = 1; status == 0; step++) { /* a new one is in RESET */
        struct fab_ctl modify = {.status = 0};
        if (!dci_step(p, dci, step, &modify))
            break;
        status = call_fabric(d, &modify);
    }
    return status;
}

/* With a key of its own. 0 or -errno. */
static int target_creation(const struct pool *p, struct fab_ctl *out)
{
    const struct agent_device *d = &p->device;
    *out = (struct fab_ctl){
        .kind = FAB_CREATE_DCT,
        .dct = {
            .pd = d->pd, .cq = d->target_cq, .srq = d->srq, .access = fab_target_access(d->fab)}};
    return world_random(p->world, &out->dct.dc_key, sizeof out->dct.dc_key);
}

static int make_dct(struct pool *p)
{
    struct agent_device *d = &p->device;
    struct fab_ctl dct;
    int status = target_creation(p, &dct);
    if (status == 0)
        status = call_fabric(d, &dct);
    if (status == 0)
        d->dct = dct.dct.x;
    d->dct_mtu = fab_pd_mtu(d->pd);
    return status;
}

static int make_target(struct pool *p)
{
    struct agent_device *d = &p->device;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = TARGET_WR}};
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = d->pd, .max_wr = TARGET_WR, .max_sge = 1}};
    int status = call_fabric(d, &cq);
    if (status != 0)
        return status;
    d->target_cq = cq.cq.x;
    status = call_fabric(d, &srq);
    if (status != 0)
        return status;
    d->srq = srq.srq.x;
    return make_dct(p);
}

/* A target that is being made for a pool that has one. */
struct retarget {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
};

static void on_target(struct fab_ctl *ctl)
{
    struct pool *p = ((struct retarget *)ctl)->pool;
    struct agent_device *d = &p->device;
    const int status = ctl->status;
    p->fab_ops--;
    if (status == 0) { /* of a pool that goes nobody is to reach any */
        const bool wanted = d->dct != NULL && !p->stopping;
        fab_retire(d->fab, FAB_DESTROY_DCT, wanted ? d->dct : ctl->dct.x, &p->fab_ops);
        d->dct = wanted ? ctl->dct.x : d->dct;
        d->dct_mtu = fab_pd_mtu(d->pd);
    }
    free(ctl);
    address_step_done(p, WORLD_DEVICE_TARGET, status);
}

int queues_retarget(struct pool *p)
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

/* Number 0 is the system's, then the pool's, then the spares. */
static int make_dc(struct pool *p)
{
    const uint64_t count = (uint64_t)p->prewarm.dcis + p->prewarm.spares + 1;
    int status = make_dci(p, p->device.system_pd);
    for (uint64_t i = 1; i < count && status == 0; i++)
        status = make_dci(p, p->device.pd);
    return status == 0 ? make_target(p) : status;
}

/* ---- RC */

static int fill_random(void *world, void *bytes, size_t n)
{
    return world_random(world, bytes, n);
}

static int make_rc(struct pool *p, struct base_errbuf *err)
{
    const struct agentd_config *c = p->config;
    struct agent_device *d = &p->device;
    struct connector_config config = {
        .pool = p->number,
        .incarnation = p->incarnation,
        .initiators = (uint32_t)(p->prewarm.connections + c->queue_pairs_ahead),
        .responders = p->prewarm.responders,
        .ahead = (uint32_t)c->queue_pairs_ahead,
        .first = p->place == 0 ? 0 : 1, /* of other pools workers attach meanwhile, and wait */
        .wanted = LANE_PATHS,
        .handshakes = HANDSHAKES,
        .sq_depth = RC_SQ_DEPTH,
        .sge = dci_sges(&d->fab->caps),
        .inline_bytes = dci_inline_bytes(&d->fab->caps),
        .mtu = d->path_mtu,
        .timeout = (uint8_t)c->ack_timeout,
        .retry_cnt = ACK_RETRIES,
        .rnr_retry = RNR_RETRIES,
        .retry_ns = HANDSHAKE_RETRY_MS * 1000000ull,
        .silence_ns = HANDSHAKE_SILENT_S * 1000000000ull,
        .idle_ns = RESPONDER_IDLE_S * 1000000000ull,
        .begun_ns = pool_begun_ns(p),
        .gone_ns = &p->agent->numbers_gone_ns,
        .ops = &p->fab_ops,
    };
    struct connector_resources r = {
        .fab = d->fab, .pd = d->pd, .system_pd = d->system_pd, .cq = d->cq};
    int status = connector_new(&config, &r, fill_random, p->world, &d->connector, err);
    if (status != 0)
        return status;
    d->ud_qpn = connector_ud_qpn(d->connector);
    return table_initiators_make(p);
}

/* ---- either */

/* Send queues that complete on the lane's CQ. */
static uint64_t queue_pairs(const struct pool *p, bool rc)
{
    const struct agentd_config *c = p->config;
    return rc ? p->prewarm.connections + c->queue_pairs_ahead + 2 * c->metaservers
              : (uint64_t)p->prewarm.dcis + p->prewarm.spares + 1;
}

/* For so many spares there is room in the completion queue, so that more can come. */
static void reserve_spares(struct pool *p)
{
    struct agent_device *d = &p->device;
    const uint64_t room = d->fab->caps.max_cqe / d->sq_depth, others = p->prewarm.dcis + 1;
    d->max_spares = p->prewarm.spares;
    if (!d->rc && room > others + d->max_spares)
        d->max_spares = room - others < LANE_MAX_DCIS ? (uint32_t)(room - others) : LANE_MAX_DCIS;
}

static int make_cq(struct pool *p, struct base_errbuf *err)
{
    struct agent_device *d = &p->device;
    reserve_spares(p);
    const uint64_t more = d->rc ? 0 : d->max_spares - p->prewarm.spares;
    const uint64_t cqe = (queue_pairs(p, d->rc) + more) * d->sq_depth;
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    if (cqe > d->fab->caps.max_cqe)
        return base_err(err, -EINVAL,
                        "the device's completion queues have room for %u, and %llu queue pairs "
                        "need %llu: lower %s in [pool]",
                        d->fab->caps.max_cqe, (unsigned long long)queue_pairs(p, d->rc),
                        (unsigned long long)cqe, d->rc ? "connections" : "dcis or spares");
    int status = call_fabric(d, &chan);
    if (status != 0)
        return status;
    d->chan = chan.chan.x;
    struct fab_ctl cq = {
        .kind = FAB_CREATE_CQ,
        .cq = {.cqe = (uint32_t)cqe, .chan = d->chan, .comp_vector = d->placement.comp_vector}};
    status = call_fabric(d, &cq);
    if (status == 0)
        d->cq = cq.cq.x;
    return status;
}

int queues_make(struct pool *p, struct base_errbuf *err)
{
    struct agent_device *d = &p->device;
    d->sq_depth = d->rc ? RC_SQ_DEPTH : SQ_DEPTH;
    d->path_mtu = prewarm_mtu(p);
    int status = make_cq(p, err);
    if (status != 0)
        return status;
    return d->rc ? make_rc(p, err) : make_dc(p);
}

void queues_retire(struct pool *p)
{
    struct agent_device *d = &p->device;
    uint32_t *ops = &p->fab_ops;
    if (d->connector != NULL)
        connector_retire(d->connector);
    for (uint32_t i = 0; i < d->dcis; i++)
        fab_retire(d->fab, FAB_DESTROY_QP, d->dci[i].qp, ops);
    fab_retire(d->fab, FAB_DESTROY_DCT, d->dct, ops);
    fab_retire(d->fab, FAB_DESTROY_SRQ, d->srq, ops);
    fab_retire(d->fab, FAB_DESTROY_CQ, d->target_cq, ops);
    fab_retire(d->fab, FAB_DESTROY_CQ, d->cq, ops);
    fab_retire(d->fab, FAB_DESTROY_CHAN, d->chan, ops);
}
