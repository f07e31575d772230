/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening, closing, crashing, what goes wrong with them, and what arrives at them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "model/nic.h"
#include "sim/sim_control.h"
#include "sim/datagram.h"
#include "sim/objects.h"
#include "sim/sim_post.h"
#include "sim/sim_qp_error.h"
#include "sim/requester.h"
#include "sim/responder.h"

enum { USUAL_INLINE = 256, USUAL_SGE = 8, USUAL_OBJECTS = 65536, USUAL_STRETCH = 4 };
static const uint64_t USUAL_SLACK_NS = 1000;

/* ---- what arrives */

static void answer_arrived(struct sim_qp *qp, struct sim_packet *p)
{
    const bool dc = qp->base.type == FAB_QP_DCI;
    if (qp->base.type != FAB_QP_UD && p->dc == dc && memcmp(p->from_gid, qp->gid, 16) == 0 &&
        (!dc || (qp->connected && p->connection == qp->connection)))
        sim_requester_answered(qp, p);
    free(p);
}

/* A packet of a former life of this queue pair's number is taken for one of now if its own number
 * falls among those that are expected. That is rare where they are drawn by chance, and here it is
 * not: who lets a number rest for time_wait_ns never sees it. */
static void match_former_life(struct sim_qp *qp, struct sim_packet *p)
{
    if (!qp->dev->attr.numbers_return || qp->base.type != FAB_QP_RC || p->sent_ns >= qp->begun_ns ||
        base_prng_below(&qp->dev->prng, 2) == 0)
        return;
    sim_tell(qp->dev->net, qp->dev->attr.node, "%s 0x%x hears of a former life of its number",
             sim_qp_name(qp), qp->base.qpn);
    if (p->kind == SIM_REQUEST)
        p->psn = qp->responder.epsn;
    else if (qp->head != qp->sent)
        p->psn = (sim_wqe_at(qp, qp->sent - 1)->psn + sim_wqe_at(qp, qp->sent - 1)->packets - 1) &
                 SIM_PSN_MASK;
}

static void on_arrival(struct sim_device *dev, struct sim_packet *p)
{
    struct sim_numbered *n = sim_table_get(&dev->qps, p->to_qpn);
    struct sim_qp *qp = n != NULL && !n->is_dct ? sim_qp_numbered(n) : NULL;
    if (qp != NULL)
        match_former_life(qp, p);
    if (p->kind == SIM_DATAGRAM && qp != NULL)
        sim_datagram_arrived(qp, p);
    else if (p->kind == SIM_REQUEST && qp != NULL && qp->base.type == FAB_QP_RC)
        sim_responder_rc(qp, p);
    else if (p->kind == SIM_REQUEST && n != NULL && n->is_dct)
        sim_responder_dc(sim_dct_numbered(n), p);
    else if (p->kind > SIM_DATAGRAM && qp != NULL)
        answer_arrived(qp, p);
    else
        free(p);
}

/* ---- the provider */

static void free_device(struct sim_device *dev)
{
    sim_objects_drop_all(dev);
    sim_wire_detach(dev);
    sim_ready_close(dev->net, &dev->control);
    sim_ready_close(dev->net, &dev->event);
    sim_table_fini(&dev->qps);
    sim_table_fini(&dev->mrs);
    model_nic_free(dev->nic);
    free(dev);
}

static int sim_close(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    if (sim_device_objects(fab) != 0)
        return -EBUSY;
    sim_control_cancel(dev, true);
    free_device(dev);
    return 0;
}

static int sim_ctl_fd(const struct fab *fab)
{
    return sim_device_of(fab)->control.fd;
}

static int sim_event_fd(const struct fab *fab)
{
    return sim_device_of(fab)->event.fd;
}

static int sim_get_event(struct fab *fab, struct fab_event *out)
{
    struct sim_device *dev = sim_device_of(fab);
    if (dev->queued_head == dev->queued_tail)
        return 0;
    *out = dev->queued[dev->queued_head++ % SIM_EVENTS];
    sim_ready_set(dev->net, &dev->event, dev->queued_head != dev->queued_tail);
    return 1;
}

static enum ibv_qp_state sim_qp_state(const struct fab_qp *qp)
{
    return ((const struct sim_qp *)qp)->state;
}

/* Its packets find it at the new address alone. */
static void sim_set_address(struct fab *fab, const uint8_t gid[16], uint8_t sgid_index,
                            uint16_t lid)
{
    struct sim_device *dev = sim_device_of(fab);
    (void)gid, (void)sgid_index, (void)lid; /* in the caps by now */
    sim_wire_detach(dev);
    BASE_ASSERT(sim_wire_attach(dev, on_arrival) == 0);
}

static const struct fab_ops sim_ops = {
    .name = "sim",
    .close = sim_close,
    .submit = sim_submit,
    .run = sim_run,
    .ctl_fd = sim_ctl_fd,
    .wait = sim_wait,
    .mem_alloc = sim_mem_alloc,
    .post_send = sim_post_send,
    .post_recv = sim_post_recv,
    .post_srq_recv = sim_post_srq_recv,
    .poll = sim_poll,
    .arm = sim_cq_arm,
    .chan_drain = sim_chan_drain,
    .qp_state = sim_qp_state,
    .event_fd = sim_event_fd,
    .get_event = sim_get_event,
    .set_address = sim_set_address,
};

static uint32_t value_or(uint32_t value, uint32_t usual)
{
    return value != 0 ? value : usual;
}

static struct fab_caps caps_of(const struct sim_net *net, const struct sim_device_attr *attr)
{
    struct fab_caps caps = {
        .transports = value_or(attr->transports, FAB_RC | FAB_UD | FAB_DC),
        .max_qp = value_or(attr->max_qp, USUAL_OBJECTS),
        .max_qp_wr = SIM_MAX_WR,
        .max_sge = value_or(attr->max_sge, USUAL_SGE),
        .max_inline = value_or(attr->max_inline, USUAL_INLINE),
        .max_cqe = SIM_MAX_CQE,
        .max_srq_wr = SIM_MAX_WR,
        .max_mr = value_or(attr->max_mr, USUAL_OBJECTS),
        .max_mr_size = 1ull << 40,
        .max_msg_size = 1ull << 30,
        .ud_payload = SIM_DATAGRAM_BYTES,
        .max_rd_atomic = value_or(attr->max_reads, SIM_MAX_READS),
        .port_num = 1,
        .lid = attr->is_infiniband ? (uint16_t)(attr->node % 0xbfff + 1) : 0,
        .mtu = IBV_MTU_4096,
        .is_ethernet = !attr->is_infiniband,
        .atomics = !attr->no_atomics,
        .dc_atomics = !attr->no_atomics,
        .fences = !attr->no_fences,
        .names_culprit = !attr->nameless,
        .writes_in_order = !attr->late_writes,
        .posts_in_time = true,
        .timeout_stretch = value_or(attr->timeout_stretch, USUAL_STRETCH),
        .timeout_least_ns = attr->timeout_least_ns,
        .time_wait_ns = 2 * net->packet_life_ns,
        .slack_ns = attr->slack_ns != 0 ? attr->slack_ns : USUAL_SLACK_NS,
        .service = attr->service,
        .numa_node = -1,
        .comp_vectors = 1,
    };
    if (net->model != NULL && !fab_model_has_dc(net->model))
        caps.transports &= ~(uint32_t)FAB_DC;
    if (attr->service.mtu != 0 && attr->service.mtu < caps.mtu)
        caps.mtu = attr->service.mtu;
    return caps;
}

/* Of the node and the seed, so that it is the same when the node starts again. */
static void make_gid(const struct sim_net *net, uint32_t node, uint8_t gid[16])
{
    const uint64_t words[2] = {base_hash_u64(net->seed, 3), base_hash_u64(node, net->seed)};
    memcpy(gid, words, 16);
    gid[0] = 0xfd;
}

/* How it behaves, within what it may. Half of the devices are as slow as they claim, others are
 * anything between that and quick; but for one that was told to be otherwise, be its claim true or
 * not. */
static void choose_ways(struct sim_device *dev)
{
    const struct fab_caps *claimed = &dev->base.caps;
    const bool slow = base_prng_below(&dev->prng, 2) == 0;
    const uint64_t stretch = 1 + base_prng_below(&dev->prng, claimed->timeout_stretch);
    const uint64_t slack_ns = sim_upto(&dev->prng, claimed->slack_ns);
    const bool implied_free = base_prng_below(&dev->prng, 2) == 0;
    dev->implied_free = dev->attr.implied == SIM_IMPLIED_BY_SEED
                            ? implied_free
                            : dev->attr.implied == SIM_IMPLIED_FREE;
    dev->stretch =
        value_or(dev->attr.true_stretch, slow ? claimed->timeout_stretch : (uint32_t)stretch);
    dev->slack_ns = dev->attr.true_slack_ns != 0 ? dev->attr.true_slack_ns
                    : slow                       ? claimed->slack_ns
                                                 : slack_ns;
}

int sim_device_open(struct sim_net *net, const struct sim_device_attr *attr, struct fab **out,
                    struct base_errbuf *err)
{
    static const uint8_t none[16];
    if (attr->node >= 1u << 20)
        return base_err(err, -EINVAL, "simulated device: node %u is not below 2^20", attr->node);
    if (attr->max_reads > SIM_MAX_READS)
        return base_err(err, -EINVAL, "simulated device: %u READs at a time are more than %d",
                        attr->max_reads, SIM_MAX_READS);
    struct sim_device *dev = calloc(1, sizeof *dev);
    if (dev == NULL)
        return base_err(err, -ENOMEM, "simulated device: out of memory");
    dev->base = (struct fab){.ops = &sim_ops, .caps = caps_of(net, attr)};
    dev->net = net;
    if (net->model != NULL && (dev->nic = model_nic_new(net->model)) == NULL) {
        free(dev);
        return base_err(err, -ENOMEM, "simulated device: out of memory");
    }
    dev->base.model = dev->nic != NULL ? model_nic_facts(dev->nic) : NULL;
    dev->attr = *attr;
    dev->done_tail = &dev->done;
    TAILQ_INIT(&dev->ops);
    for (int kind = 0; kind < SIM_KINDS; kind++)
        LIST_INIT(&dev->objects[kind]);
    /* Each draws from numbers of its own. */
    base_prng_seed(&dev->prng,
                   base_hash_u64(attr->node << 8 ^ (uint64_t)net->devices++ << 32, net->seed));
    choose_ways(dev);
    if (memcmp(attr->gid, none, 16) != 0)
        memcpy(dev->base.caps.gid, attr->gid, 16);
    else
        make_gid(net, attr->node, dev->base.caps.gid);
    const int status = sim_wire_attach(dev, on_arrival);
    if (status != 0) {
        model_nic_free(dev->nic);
        free(dev);
        return base_err(err, status, "simulated device: another one has this GID");
    }
    sim_ready_open(net, attr->node, &dev->control);
    sim_ready_open(net, attr->node, &dev->event);
    *out = &dev->base;
    return 0;
}

/* ---- what goes wrong */

void sim_device_set_faults(struct fab *fab, const struct sim_faults *faults)
{
    sim_device_of(fab)->faults = *faults;
}

void sim_device_crash(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    sim_tell(dev->net, dev->attr.node, "its device is gone");
    sim_control_cancel(dev, false);
    free_device(dev);
}

void sim_device_suspend(struct fab *fab, bool suspended)
{
    struct sim_device *dev = sim_device_of(fab);
    dev->frozen.suspended = suspended;
    if (!suspended)
        sim_events_thaw(dev->net, dev);
}

void sim_device_set_port(struct fab *fab, bool up)
{
    struct sim_device *dev = sim_device_of(fab);
    if (dev->down != up)
        return;
    dev->down = !up;
    sim_tell(dev->net, dev->attr.node, "its port is %s", up ? "up" : "down");
    sim_device_tell(dev, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL);
}

bool sim_device_break_qp(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    struct sim_object *o;
    struct sim_qp *chosen = NULL;
    const enum ibv_event_type fatal = IBV_EVENT_QP_FATAL;
    uint64_t seen = 0;
    uint32_t out = 0;
    LIST_FOREACH(o, &dev->objects[SIM_QP], link) {
        struct sim_qp *qp = o->self;
        if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS)
            continue;
        if (qp->tail - qp->head > out)
            seen = 0;
        if (qp->tail - qp->head < out || base_prng_below(&dev->prng, ++seen) != 0)
            continue;
        out = qp->tail - qp->head;
        chosen = qp;
    }
    if (chosen != NULL)
        sim_qp_to_err(chosen, &fatal);
    return chosen != NULL;
}

bool sim_device_break_target(struct fab *fab, bool tells)
{
    struct sim_device *dev = sim_device_of(fab);
    struct sim_object *o;
    struct sim_dct *chosen = NULL;
    uint64_t seen = 0;
    LIST_FOREACH(o, &dev->objects[SIM_DCT], link) {
        struct sim_dct *dct = o->self;
        if (!dct->silent && base_prng_below(&dev->prng, ++seen) == 0)
            chosen = dct;
    }
    if (chosen == NULL)
        return false;
    chosen->silent = true;
    sim_tell(dev->net, dev->attr.node, "target 0x%x breaks%s", chosen->base.dctn,
             tells ? "" : ", and nothing says so");
    if (tells)
        sim_device_tell(dev, IBV_EVENT_QP_FATAL, NULL);
    return true;
}

bool sim_target_is_silent(const struct fab_dct *dct)
{
    return ((const struct sim_dct *)dct)->silent;
}

bool sim_device_overflow_cq(struct fab *fab)
{
    struct sim_device *dev = sim_device_of(fab);
    struct sim_object *o;
    struct sim_cq *chosen = NULL;
    uint64_t seen = 0;
    LIST_FOREACH(o, &dev->objects[SIM_CQ], link) {
        if (base_prng_below(&dev->prng, ++seen) == 0)
            chosen = o->self;
    }
    if (chosen != NULL)
        sim_cq_kill(chosen);
    return chosen != NULL;
}
