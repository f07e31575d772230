/* SPDX-License-Identifier: Apache-2.0 */
#include "message_objects.h"

#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "bounds.h"
#include "control/world_log.h"
#include "due.h"
#include "fabric/retire.h"
#include "lane_setup.h"
#include "message_receives.h"
#include "pool.h"
#include "register.h"

static uint32_t lower_of(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

bool agent_messages_are_for_workers(const struct pool *p)
{
    return p->device.messages.receives != 0 && p->world->keeps_whole;
}

/* ---- making */

static struct fab_ctl ud_creation(const struct pool *p)
{
    const struct agent_device *d = &p->device;
    return (struct fab_ctl){.kind = FAB_CREATE_QP,
                            .qp = {.pd = d->pd,
                                   .type = FAB_QP_UD,
                                   .send_cq = d->cq,
                                   .recv_cq = d->cq,
                                   .cap = {.send_wr = LANE_DATAGRAMS_OUT,
                                           .recv_wr = LANE_DATAGRAMS_IN,
                                           .send_sge = 1,
                                           .recv_sge = 1}}};
}

enum { UD_STEPS = 3 };

/* To INIT, RTR, RTS. */
static struct fab_ctl ud_step(const struct pool *p, uint32_t step)
{
    static const struct {
        enum ibv_qp_state state;
        int mask;
    } steps[UD_STEPS] = {
        {IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
        {IBV_QPS_RTR, 0},
        {IBV_QPS_RTS, IBV_QP_SQ_PSN},
    };
    const struct agent_message_objects *m = &p->device.messages;
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP, .modify = {.x = m->ud}};
    ctl.modify.attr = fab_pd_init_attr(p->device.pd);
    ctl.modify.attr.qp_state = steps[step].state;
    ctl.modify.attr.qkey = m->qkey;
    ctl.modify.mask = IBV_QP_STATE | steps[step].mask;
    return ctl;
}

/* Its memory, before anything of the device is made of it. */
static int begin_making(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    const uint32_t receives = agent_messages_receives(p);
    int status = world_random(p->world, &m->qkey, sizeof m->qkey);
    m->qkey &= 0x7fffffff; /* the high bit is the kernel's own */
    if (status == 0)
        status = fab_mem_alloc_for(p->device.fab, lane_messages_bytes(receives), "kedge-messages",
                                   &m->memory);
    return status;
}

/* Where it hears: those ask its connector that have no other way to know. */
static void tell_peers(const struct pool *p)
{
    const struct agent_message_objects *m = &p->device.messages;
    if (p->device.connector != NULL)
        connector_set_messages(p->device.connector, m->qpn, m->qkey);
}

int agent_messages_make(void *pool, uint32_t over, struct fab_ctl *ctl)
{
    enum { MEMORY, QUEUE_PAIR, FIRST_STEP };
    struct pool *p = pool;
    struct agent_message_objects *m = &p->device.messages;
    int status;
    switch (over) {
    case MEMORY:
        if (agent_messages_receives(p) == 0)
            return 0;
        status = begin_making(p);
        *ctl = (struct fab_ctl){.kind = FAB_REG_MR,
                                .mr = {.pd = p->device.pd,
                                       .mem = &m->memory,
                                       .length = m->memory.size,
                                       .access = IBV_ACCESS_LOCAL_WRITE}};
        return status == 0 ? 1 : status;
    case QUEUE_PAIR:
        m->mr = ctl->mr.x;
        *ctl = ud_creation(p);
        return 1;
    case FIRST_STEP:
        m->ud = ctl->qp.x;
        m->qpn = m->ud->qpn;
        break;
    }
    if (over < FIRST_STEP + UD_STEPS) {
        *ctl = ud_step(p, over - FIRST_STEP);
        return 1;
    }
    m->receives = agent_messages_receives(p);
    tell_peers(p);
    return 0;
}

/* ---- its end */

void agent_messages_retire(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    fab_retire(p->device.fab, FAB_DESTROY_QP, m->ud, &p->fab_ops);
    fab_retire(p->device.fab, FAB_DEREG_MR, m->mr, &p->fab_ops);
    m->ud = NULL;
    m->mr = NULL;
}

void agent_messages_close(struct pool *p)
{
    fab_mem_free(&p->device.messages.memory);
}

/* ---- the lane's */

/* A word comes as soon as an acknowledgement does, and the lane that it comes from may sleep. Most
 * devices take a quarter of the longest that a time-out may be: who asks then, in vain, has spent a
 * datagram. */
static uint64_t ask_ns(const struct pool *p)
{
    const uint64_t timeout_ns =
        fab_timeout_ns(&p->device.fab->caps, (uint8_t)p->config->ack_timeout);
    const uint64_t least_ns = MESSAGE_ASK_MS * BASE_NS_PER_MS;
    return timeout_ns / 4 > least_ns ? timeout_ns / 4 : least_ns;
}

/* As many, each twice as late as the one before, as all of them take longer than a queue pair
 * repeats a request, and than a lane stands still on a busy host. No more: whose peer has gone
 * waits for as long, and of a wire's time-outs nine were more than two minutes. */
static uint32_t count_questions(const struct pool *p)
{
    const uint64_t bound_ns =
        fab_bound_ns(&p->device.fab->caps, (uint8_t)p->config->ack_timeout, ACK_RETRIES);
    const uint64_t least_ns = MESSAGE_SILENCE_MS * BASE_NS_PER_MS;
    const uint64_t silence_ns = bound_ns > least_ns ? bound_ns : least_ns;
    uint32_t n = MESSAGE_QUESTIONS;
    while (n < MESSAGE_QUESTIONS_MOST && (ask_ns(p) << (n + 1)) - ask_ns(p) < silence_ns)
        n++;
    return n;
}

/* Longer than receives are set aside for a stream, which is twice the bound at the most
 * (message/set_aside.h): another one that is told RNR meanwhile finds them when they are given
 * back. On a wire that is more than the least. */
static uint64_t refused_ns(const struct pool *p)
{
    const uint64_t least_ns = MESSAGE_REFUSED_MS * BASE_NS_PER_MS;
    const uint64_t aside_ns = 5 * (p->device.bound_ns + p->device.fab->caps.slack_ns) / 2;
    return aside_ns > least_ns ? aside_ns : least_ns;
}

struct lane_messages agent_messages_describe(const struct pool *p)
{
    const struct agent_device *d = &p->device;
    const struct agent_message_objects *m = &d->messages;
    const struct agent_config *c = p->config;
    if (m->receives == 0)
        return (struct lane_messages){.srq = NULL};
    const uint32_t vqps = lower_of(c->max_sessions * c->max_vqps, MESSAGE_VQPS);
    return (struct lane_messages){.srq = d->srq,
                                  .ud = m->ud,
                                  .ud_qkey = m->qkey,
                                  .receives = m->receives,
                                  .memory = m->memory,
                                  .iova = m->mr->addr,
                                  .lkey = m->mr->lkey,
                                  .peers = lower_of(c->max_peers, MESSAGE_PEERS),
                                  .streams = vqps,
                                  .vqps = vqps,
                                  .ports = vqps,
                                  .ask_ns = ask_ns(p),
                                  .questions = count_questions(p),
                                  .refused_ns = refused_ns(p),
                                  .asks_numbers = d->connector != NULL};
}

/* One address handle that is being made. */
struct handle_op {
    struct fab_ctl ctl; /* first */
    struct pool *pool;
    uint32_t tag;
};

static void on_handle(struct fab_ctl *ctl)
{
    const struct handle_op op = *(struct handle_op *)ctl;
    struct pool *p = op.pool;
    struct fab_ah *ah = op.ctl.status == 0 ? op.ctl.ah.x : NULL;
    p->fab_ops--;
    free(ctl);
    if (p->lane == NULL || p->stopping) {
        fab_retire(p->device.fab, FAB_DESTROY_AH, ah, &p->fab_ops);
        return;
    }
    agent_pool_command(
        p, &(struct lane_command){.kind = LANE_COMMAND_AH_READY, .ah = {.tag = op.tag, .ah = ah}});
}

void agent_messages_want_ah(struct pool *p, const struct lane_event *e)
{
    struct handle_op *op = calloc(1, sizeof *op);
    BASE_ASSERT(op != NULL); /* a few bytes: without them nothing else works either */
    op->pool = p;
    op->tag = e->want_ah.tag;
    op->ctl = (struct fab_ctl){
        .kind = FAB_CREATE_AH,
        .done = on_handle,
        .ah = {.pd = p->device.pd,
               .attr = fab_pd_address(p->device.pd, e->want_ah.gid, e->want_ah.lid)}};
    p->fab_ops++;
    fab_submit(p->device.fab, &op->ctl);
}

void agent_messages_want_number(struct pool *p, const struct lane_event *e)
{
    struct connector_peer peer = {.incarnation = e->want_number.incarnation,
                                  .ud_qpn = e->want_number.ud_qpn,
                                  .ud_qkey = e->want_number.ud_qkey,
                                  .lid = e->want_number.lid};
    memcpy(peer.gid, e->want_number.gid, sizeof peer.gid);
    if (!p->stopping)
        connector_ask_messages(p->device.connector, &peer);
}

void agent_messages_tell_numbers(struct pool *p)
{
    struct connector_told t;
    while (connector_told(p->device.connector, &t)) {
        struct lane_command c = {
            .kind = LANE_COMMAND_NUMBER,
            .number = {.incarnation = t.incarnation, .qpn = t.qpn, .qkey = t.qkey}};
        memcpy(c.number.gid, t.gid, sizeof c.number.gid);
        agent_pool_command(p, &c);
    }
}

/* ---- a UD queue pair that broke */

static void go_on_repairing(struct fab_ctl *ctl);

static void submit_repair(struct pool *p)
{
    struct ud_repair *r = &p->device.messages.repair;
    r->ctl.done = go_on_repairing;
    r->ctl.user = p;
    r->is_out = true;
    p->fab_ops++;
    fab_submit(p->device.fab, &r->ctl);
}

/* From any state to INIT, if need be as another one. */
static void begin_repair(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    struct ud_repair *r = &m->repair;
    const struct fab_ctl init = ud_step(p, 0);
    r->outdated = r->refused = false;
    r->step = 0;
    r->reuse = (struct fab_reuse){.fab = p->device.fab,
                                  .qp = m->ud,
                                  .given_up = r->failures >= REPAIRS_TRIED,
                                  .make = ud_creation(p),
                                  .init = init.modify.attr,
                                  .mask = init.modify.mask};
    fab_reuse_begin(&r->reuse, &r->ctl);
    submit_repair(p);
}

static void repair_failed(struct pool *p, int status)
{
    struct ud_repair *r = &p->device.messages.repair;
    if (r->failures++ == 0)
        world_log(p->world, BASE_LOG_ERROR,
                  "the queue pair of messages' datagrams cannot be repaired, so that messages of "
                  "this pool stand still: it is tried again",
                  "pool=\"%s\" error=\"%s\"", p->name, strerror(-status));
    r->again_ns = world_now_ns(p->world) + REPAIR_AGAIN_MS * BASE_NS_PER_MS;
}

/* Where RESET is final it has another number now. */
static void end_repair(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    m->repair.failures = 0;
    m->repair.is_under_way = false;
    m->repair.again_ns = world_now_ns(p->world) + REPAIR_REST_MS * BASE_NS_PER_MS;
    agent_pool_command(p, &(struct lane_command){.kind = LANE_COMMAND_UD_READY, .qp = m->ud});
    if (m->ud->qpn == m->qpn)
        return;
    m->qpn = m->ud->qpn;
    if (p->device.connector != NULL) { /* it is in no record */
        tell_peers(p);
        return;
    }
    p->agent->endpoints++;
    agent_registrations_changed(p->agent);
}

static void go_on_repairing(struct fab_ctl *ctl)
{
    struct pool *p = ctl->user;
    struct agent_message_objects *m = &p->device.messages;
    struct ud_repair *r = &m->repair;
    bool more = false;
    p->fab_ops--;
    r->is_out = false;
    int status = ctl->status;
    if (r->step == 0) {
        more = fab_reuse_next(&r->reuse, ctl);
        m->ud = r->reuse.qp;
        status = r->reuse.status;
    }
    if (p->lane == NULL || p->stopping || p->agent->device_lost)
        return;
    if (more) {
        submit_repair(p);
    } else if (status != 0) {
        repair_failed(p, status);
    } else if (r->outdated) {
        begin_repair(p);
    } else if (++r->step < UD_STEPS) {
        *ctl = ud_step(p, r->step);
        submit_repair(p);
    } else {
        end_repair(p);
    }
}

/* One that breaks each time that it is brought up has no more of the device than that. */
void agent_messages_ud_broken(struct pool *p, struct fab_qp *qp)
{
    struct agent_message_objects *m = &p->device.messages;
    BASE_ASSERT(qp == m->ud && !m->repair.is_under_way);
    m->repair.is_under_way = true;
    if (m->repair.refused || world_now_ns(p->world) >= m->repair.again_ns)
        begin_repair(p);
}

/* ---- the P_Key has another place */

/* It may be in ERR all the same: then its lane says so. */
static void on_put_to_err(struct fab_ctl *ctl)
{
    struct pool *p = ctl->user;
    struct ud_repair *r = &p->device.messages.repair;
    p->fab_ops--;
    r->refused = ctl->status != 0 && !r->is_under_way;
    r->again_ns =
        r->refused ? world_now_ns(p->world) + REPAIR_AGAIN_MS * BASE_NS_PER_MS : r->again_ns;
    free(ctl);
}

static void put_to_err(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    struct fab_ctl *ctl = calloc(1, sizeof *ctl);
    BASE_ASSERT(ctl != NULL); /* a few bytes: without them nothing else works either */
    *ctl = (struct fab_ctl){
        .kind = FAB_MODIFY_QP,
        .done = on_put_to_err,
        .user = p,
        .modify = {.x = m->ud, .attr = {.qp_state = IBV_QPS_ERR}, .mask = IBV_QP_STATE}};
    m->repair.refused = false;
    p->fab_ops++;
    fab_submit(p->device.fab, ctl);
}

/* All that it had comes back then, and the lane says so. One that is being repaired begins anew. */
void agent_messages_repartition(struct pool *p)
{
    struct agent_message_objects *m = &p->device.messages;
    if (m->receives == 0)
        return;
    m->repair.outdated = m->repair.is_under_way;
    if (!m->repair.is_under_way)
        put_to_err(p);
}

/* ---- in time */

void agent_messages_tick(struct pool *p)
{
    const struct ud_repair *r = &p->device.messages.repair;
    if (world_now_ns(p->world) < agent_messages_due_ns(p))
        return;
    if (r->is_under_way)
        begin_repair(p);
    else if (r->refused)
        put_to_err(p);
}

uint64_t agent_messages_due_ns(const struct pool *p)
{
    const struct ud_repair *r = &p->device.messages.repair;
    const bool waits = r->refused || (r->is_under_way && !r->is_out);
    return due_if(waits && !p->stopping && !p->agent->device_lost, r->again_ns);
}

/* ---- what is said of it */

uint64_t agent_messages_bytes(const struct pool *p)
{
    return p->device.messages.memory.size;
}

void agent_messages_status(const struct pool *p, struct base_text *t)
{
    base_json_object(t, "messages");
    base_json_bool(t, "for_workers", agent_messages_are_for_workers(p));
    base_json_u64(t, "receives", p->device.messages.receives);
    base_json_u64(t, "memory_bytes", agent_messages_bytes(p));
    base_json_object_end(t);
}
