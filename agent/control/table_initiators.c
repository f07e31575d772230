/* SPDX-License-Identifier: Apache-2.0 */
/* With RC: the queue pairs that metaservers' endpoint tables are READ through. Made at start; a
 * registration offers one, the metaserver connects its own to it, and the lane gets it. */
#include <errno.h>
#include <string.h>

#include "agent.h"
#include "base/assert.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "device_objects.h"
#include "due.h"
#include "fabric/retire.h"
#include "bounds.h"
#include "pool.h"
#include "register.h"
#include "table_initiators.h"

/* What happens to one. Nothing but its moves assigns its state: one whose control operation is
 * under way (CLEANING, RAISING) is given no other. */
enum initiator_event {
    MADE,      /* by the pool's start: it is cleaned for the first time */
    DROPPED,   /* it is cleaned: the lane is done with it, or it is tried again */
    CLEANED,   /* that is over */
    UNCLEAN,   /* that has failed */
    OFFERED,   /* to its metaserver */
    WITHDRAWN, /* its metaserver did not connect to it */
    CONNECTED, /* its metaserver did */
    RAISED,    /* RTS; or the device has refused that: DROPPED follows */
    INITIATOR_EVENTS
};

enum { INITIATOR_STATES = INITIATOR_FAILED + 1, NEVER = INITIATOR_STATES };

#define CLEANING INITIATOR_CLEANING
#define READY    INITIATOR_READY

static const uint8_t initiator_moves[INITIATOR_STATES][INITIATOR_EVENTS] = {
    /*                   MADE, DROPPED, CLEANED, UNCLEAN, OFFERED, WITHDRAWN, CONNECTED, RAISED */
    [CLEANING] = {CLEANING, NEVER, READY, INITIATOR_FAILED, NEVER, NEVER, NEVER, NEVER},
    [READY] = {NEVER, NEVER, NEVER, NEVER, INITIATOR_OFFERED, NEVER, NEVER, NEVER},
    [INITIATOR_OFFERED] = {NEVER, NEVER, NEVER, NEVER, NEVER, READY, INITIATOR_RAISING, NEVER},
    [INITIATOR_RAISING] = {NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, INITIATOR_UP},
    [INITIATOR_UP] = {NEVER, CLEANING, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER},
    [INITIATOR_FAILED] = {NEVER, CLEANING, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER},
};

static void initiator_move(struct table_initiator *initiator, enum initiator_event event)
{
    const uint8_t to = initiator_moves[initiator->state][event];
    BASE_ASSERT(to != NEVER);
    initiator->state = (enum table_initiator_state)to;
}

static struct table_initiator *end_op(struct fab_ctl *ctl)
{
    struct table_initiator *initiator = ctl->user;
    initiator->registration->pool->fab_ops--;
    return initiator;
}

static void submit_op(struct table_initiator *initiator, void (*done)(struct fab_ctl *ctl))
{
    struct pool *p = initiator->registration->pool;
    initiator->ctl.done = done;
    initiator->ctl.user = initiator;
    p->fab_ops++;
    fab_submit(p->device.fab, &initiator->ctl);
}

static void modify_initiator(struct table_initiator *initiator, const struct ibv_qp_attr *attr,
                             int mask, void (*done)(struct fab_ctl *ctl))
{
    initiator->ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                                      .modify = {.x = initiator->qp, .attr = *attr, .mask = mask}};
    submit_op(initiator, done);
}

/* ---- cleaned: in INIT, the same one or another one */

static uint64_t time_wait_ns(const struct agent_device *d)
{
    return d->fab->caps.time_wait_ns;
}

/* Of one that is new: its number may be that of any that is gone. */
static uint64_t new_rest_ns(const struct pool *p, uint64_t since_ns)
{
    return fab_reuse_rest_ns(&p->device.fab->caps, p->agent->numbers_gone_ns, since_ns);
}

static void tell_tried(struct table_initiator *initiator, const struct fab_qp *before)
{
    void (*tried)(void *user, const struct fab_qp *qp, int status) = initiator->tried;
    const bool is_gone = before != NULL && initiator->qp == NULL;
    if (tried == NULL || (!is_gone && initiator->reuse.status == 0))
        return;
    if (is_gone)
        initiator->tried = NULL;
    tried(initiator->registration->pool, before, is_gone ? 0 : initiator->reuse.status);
}

static void on_cleaned(struct fab_ctl *ctl)
{
    struct table_initiator *initiator = end_op(ctl);
    struct pool *p = initiator->registration->pool;
    const uint64_t now_ns = world_now_ns(p->world);
    const struct fab_qp *before = initiator->qp;
    const bool more = fab_reuse_next(&initiator->reuse, ctl);
    initiator->qp = initiator->reuse.qp;
    tell_tried(initiator, before);
    if (initiator->qp == NULL && p->agent->numbers_gone_ns < now_ns)
        p->agent->numbers_gone_ns = now_ns;
    if (p->stopping)
        return;
    if (more) {
        submit_op(initiator, on_cleaned);
        return;
    }
    if (initiator->reuse.anew)
        initiator->rest_ns = new_rest_ns(p, now_ns);
    if (initiator->reuse.status == 0) {
        initiator->failures = 0;
        initiator_move(initiator, CLEANED);
        return;
    }
    world_log(p->world, BASE_LOG_ERROR, "a queue pair cannot be repaired: it is tried again",
              "qpn=%u error=\"%s\"", initiator->qp != NULL ? initiator->qp->qpn : 0,
              strerror(-initiator->reuse.status));
    initiator->failures++;
    initiator_move(initiator, UNCLEAN);
    initiator->again_ns = now_ns + REPAIR_AGAIN_MS * BASE_NS_PER_MS;
}

static struct fab_ctl initiator_creation(const struct agent_device *d)
{
    return (struct fab_ctl){
        .kind = FAB_CREATE_QP,
        .qp = {.pd = d->system_pd,
               .type = FAB_QP_RC,
               .send_cq = d->cq,
               .recv_cq = d->cq,
               .cap = {.send_wr = d->sq_depth, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
}

static void clean_initiator(struct table_initiator *initiator, bool is_new)
{
    const struct agent_device *d = &initiator->registration->pool->device;
    initiator_move(initiator, is_new ? MADE : DROPPED);
    initiator->reuse = (struct fab_reuse){.fab = d->fab,
                                          .qp = initiator->qp,
                                          .in_reset = is_new,
                                          .given_up = initiator->failures >= REPAIRS_TRIED,
                                          .make = initiator_creation(d),
                                          .init = fab_pd_init_attr(d->system_pd),
                                          .mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                                  IBV_QP_ACCESS_FLAGS};
    fab_reuse_begin(&initiator->reuse, &initiator->ctl);
    submit_op(initiator, on_cleaned);
}

/* Each is cleaned while the next one is made. */
int agent_table_initiators_make(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    struct pool *p = pool;
    if (over > 0) {
        struct registration *r = &p->registration[(over - 1) / 2];
        struct table_initiator *initiator = &r->initiator[(over - 1) % 2];
        r->pool = p;
        *initiator = (struct table_initiator){
            .registration = r, .qp = ctl->qp.x, .rest_ns = new_rest_ns(p, agent_pool_begun_ns(p))};
        if (!p->stopping && !p->agent->stopping)
            clean_initiator(initiator, true);
    }
    if (over == 2 * p->config->metaservers)
        return 0;
    *ctl = initiator_creation(&p->device);
    return 1;
}

/* ---- connected: RTR, RTS */

struct table_initiator *agent_table_initiator_offer(struct registration *r)
{
    const uint64_t now = world_now_ns(r->pool->world);
    for (int i = 0; i < 2; i++) {
        struct table_initiator *initiator = &r->initiator[i];
        if (initiator->state != INITIATOR_READY || now < initiator->rest_ns ||
            world_random(r->pool->world, &initiator->psn, sizeof initiator->psn) != 0)
            continue;
        initiator->psn &= 0xffffff;
        initiator_move(initiator, OFFERED);
        return initiator;
    }
    return NULL;
}

uint64_t agent_table_initiator_rests_ms(const struct registration *r)
{
    const uint64_t now = world_now_ns(r->pool->world);
    uint64_t least = 0;
    for (int i = 0; i < 2; i++) {
        const struct table_initiator *initiator = &r->initiator[i];
        if (initiator->state != INITIATOR_READY)
            continue;
        const uint64_t ms =
            initiator->rest_ns > now ? (initiator->rest_ns - now) / BASE_NS_PER_MS + 1 : 1;
        least = least == 0 || ms < least ? ms : least;
    }
    return least;
}

void agent_table_initiator_withdraw(struct table_initiator *initiator)
{
    initiator_move(initiator, WITHDRAWN);
}

static void on_raised(struct fab_ctl *ctl)
{
    struct table_initiator *initiator = end_op(ctl);
    struct registration *r = initiator->registration;
    const struct pool *p = r->pool;
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = (uint8_t)p->config->ack_timeout,
                              .retry_cnt = ACK_RETRIES,
                              .rnr_retry = RNR_RETRIES,
                              .sq_psn = initiator->psn,
                              .max_rd_atomic = initiator->reads};
    if (p->stopping)
        return;
    if (ctl->status == 0 && initiator->step++ == 0) {
        modify_initiator(initiator, &rts,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                         on_raised);
        return;
    }
    initiator_move(initiator, RAISED);
    const int status = ctl->status;
    if (status != 0)
        clean_initiator(initiator, false);
    agent_registration_initiator_up(r, initiator, status);
}

void agent_table_initiator_raise(struct table_initiator *initiator,
                                 const struct table_initiator_peer *peer)
{
    const struct fab *fab = initiator->registration->pool->device.fab;
    const struct fab_pd *system = initiator->registration->pool->device.system_pd;
    const struct fab_caps *caps = &fab->caps;
    const enum ibv_mtu own = initiator->registration->pool->agent->port.mtu;
    initiator_move(initiator, CONNECTED);
    initiator->step = 0;
    initiator->reads =
        caps->max_rd_atomic < peer->reads ? (uint8_t)caps->max_rd_atomic : peer->reads;
    initiator->rtr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                          .path_mtu = peer->mtu < own ? peer->mtu : own,
                                          .dest_qp_num = peer->qpn,
                                          .rq_psn = peer->psn,
                                          .max_dest_rd_atomic = 1, /* nobody reads here */
                                          .min_rnr_timer = 12,
                                          .pkey_index = system->service.pkey_index,
                                          .ah_attr = fab_address(fab, peer->gid, peer->lid)};
    /* The P_Key may have moved since it went to INIT. */
    modify_initiator(initiator, &initiator->rtr,
                     (system->pkey != 0 ? IBV_QP_PKEY_INDEX : 0) | IBV_QP_STATE | IBV_QP_AV |
                         IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                     on_raised);
}

/* ---- over */

void agent_table_initiator_drop(struct table_initiator *initiator)
{
    const struct pool *p = initiator->registration->pool;
    initiator->rest_ns = world_now_ns(p->world) + time_wait_ns(&p->device);
    clean_initiator(initiator, false);
}

const struct table_initiator *agent_table_initiator_of(const struct registration *r,
                                                       const struct fab_qp *qp)
{
    for (int k = 0; k < 2 && qp != NULL; k++)
        if (r->initiator[k].qp == qp)
            return &r->initiator[k];
    return NULL;
}

/* NULL: it is no table initiator's. */
static struct table_initiator *find_initiator(struct pool *p, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        for (int k = 0; k < 2; k++)
            if (p->registration[i].initiator[k].qp == qp)
                return &p->registration[i].initiator[k];
    return NULL;
}

static bool leave_initiator(struct table_initiator *initiator, const struct fab_qp *qp)
{
    if (initiator == NULL)
        return false;
    agent_table_initiator_drop(initiator);
    if (initiator->registration->lane.qp == qp)
        agent_registration_initiator_lost(initiator->registration);
    return true;
}

bool agent_table_initiator_done(struct pool *p, const struct fab_qp *qp)
{
    return leave_initiator(find_initiator(p, qp), qp);
}

/* As one that could not be cleaned again and again. */
bool agent_table_initiator_destroy(struct pool *p, const struct fab_qp *qp,
                                   void (*tried)(void *user, const struct fab_qp *qp, int status))
{
    struct table_initiator *initiator = find_initiator(p, qp);
    if (initiator == NULL)
        return false;
    initiator->failures = REPAIRS_TRIED;
    initiator->tried = tried;
    return leave_initiator(initiator, qp);
}

uint64_t agent_table_initiators_due_ns(const struct pool *p)
{
    uint64_t due_ns = DUE_NEVER;
    for (uint32_t i = 0; i < p->config->metaservers && !p->agent->device_lost; i++)
        for (int k = 0; k < 2; k++) {
            const struct table_initiator *initiator = &p->registration[i].initiator[k];
            if (initiator->state == INITIATOR_FAILED)
                due_ns = due_first(due_ns, initiator->again_ns);
        }
    return due_ns;
}

void agent_table_initiators_tick(struct pool *p)
{
    const uint64_t now = world_now_ns(p->world);
    for (uint32_t i = 0; i < p->config->metaservers && !p->agent->device_lost; i++)
        for (int k = 0; k < 2; k++) {
            struct table_initiator *initiator = &p->registration[i].initiator[k];
            if (initiator->state == INITIATOR_FAILED && now >= initiator->again_ns)
                clean_initiator(initiator, false);
        }
}

void agent_table_initiators_stop(struct pool *p)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        for (int k = 0; k < 2; k++) {
            fab_retire(p->device.fab, FAB_DESTROY_QP, p->registration[i].initiator[k].qp,
                       &p->fab_ops);
            p->registration[i].initiator[k].qp = NULL;
        }
}
