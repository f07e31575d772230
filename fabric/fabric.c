/* SPDX-License-Identifier: Apache-2.0 */
/* The checked wrappers: what every caller goes through, so that a provider may rely on what they
 * checked. */
#include "fabric/fabric.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "fabric/provider.h"
#include "opcode.h"

enum { HOP_LIMIT = 64, FLOW_LABEL_LOW_BITS = 14, WAIT_MS = 1000 };
#define FLOW_LABEL_LOW ((1u << FLOW_LABEL_LOW_BITS) - 1)

uint32_t fab_flow_label(uint16_t udp_source_port)
{
    /* IBTA annex A17's entropy: port = 0xc000 | (low 14 bits ^ the 6 above them). */
    uint32_t low = udp_source_port & FLOW_LABEL_LOW;
    return low != 0 ? low : 1u << FLOW_LABEL_LOW_BITS | 1; /* a label of 0 is none */
}

static struct ibv_ah_attr ah_attr_of(const struct fab *fab, const struct fab_service *service,
                                     const uint8_t gid[16], uint16_t lid)
{
    const struct fab_caps *caps = &fab->caps;
    struct ibv_ah_attr attr = {.is_global = 1,
                               .port_num = caps->port_num,
                               .dlid = lid,
                               .sl = service->service_level,
                               .grh = {.hop_limit = HOP_LIMIT,
                                       .sgid_index = caps->sgid_index,
                                       .traffic_class = service->traffic_class,
                                       .flow_label = service->flow_label}};
    memcpy(attr.grh.dgid.raw, gid, sizeof attr.grh.dgid.raw);
    return attr;
}

struct ibv_ah_attr fab_address(const struct fab *fab, const uint8_t gid[16], uint16_t lid)
{
    return ah_attr_of(fab, &fab->caps.service, gid, lid);
}

struct ibv_ah_attr fab_pd_address(const struct fab_pd *pd, const uint8_t gid[16], uint16_t lid)
{
    return ah_attr_of(pd->fab, &pd->service, gid, lid);
}

bool fab_address_is_same(const struct ibv_ah_attr *a, const struct ibv_ah_attr *b)
{
    return memcmp(&a->grh.dgid, &b->grh.dgid, sizeof a->grh.dgid) == 0 && a->dlid == b->dlid &&
           a->is_global == b->is_global && a->port_num == b->port_num && a->sl == b->sl &&
           a->src_path_bits == b->src_path_bits && a->static_rate == b->static_rate &&
           a->grh.sgid_index == b->grh.sgid_index && a->grh.hop_limit == b->grh.hop_limit &&
           a->grh.traffic_class == b->grh.traffic_class && a->grh.flow_label == b->grh.flow_label;
}

enum ibv_mtu fab_pd_mtu(const struct fab_pd *pd)
{
    const enum ibv_mtu most = pd->fab->caps.mtu;
    return pd->service.mtu != 0 && pd->service.mtu < most ? pd->service.mtu : most;
}

unsigned fab_remote_access(const struct fab *fab)
{
    return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
           (fab->caps.atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0u);
}

unsigned fab_target_access(const struct fab *fab)
{
    const unsigned access = fab_remote_access(fab);
    return fab->caps.dc_atomics ? access : access & ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
}

struct ibv_qp_attr fab_init_attr(const struct fab *fab)
{
    return (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
                                .port_num = fab->caps.port_num,
                                .pkey_index = fab->caps.service.pkey_index};
}

struct ibv_qp_attr fab_pd_init_attr(const struct fab_pd *pd)
{
    struct ibv_qp_attr attr = fab_init_attr(pd->fab);
    attr.pkey_index = pd->service.pkey_index;
    return attr;
}

int fab_close(struct fab *fab)
{
    return fab->ops->close(fab);
}

void fab_submit(struct fab *fab, struct fab_ctl *ctl)
{
    BASE_ASSERT(ctl->kind >= FAB_ALLOC_PD && ctl->kind <= FAB_QUERY_QP);
    if (ctl->kind == FAB_DESTROY_QP)
        atomic_store(&ctl->qp.x->leaves, true);
    ctl->status = -EINPROGRESS;
    ctl->next = NULL;
    fab->ops->submit(fab, ctl);
}

int fab_ctl_balance(enum fab_ctl_kind kind)
{
    switch (kind) {
    case FAB_ALLOC_PD:
    case FAB_REG_MR:
    case FAB_CREATE_CHAN:
    case FAB_CREATE_CQ:
    case FAB_CREATE_SRQ:
    case FAB_CREATE_QP:
    case FAB_CREATE_DCT:
    case FAB_CREATE_AH:
        return 1;
    case FAB_MODIFY_QP:
    case FAB_QUIESCE_MR:
    case FAB_QUERY_PORT:
    case FAB_QUERY_ADDRESS:
    case FAB_QUERY_CLOCK:
    case FAB_QUERY_PKEY:
    case FAB_QUERY_QP:
        return 0;
    default:
        return -1;
    }
}

void fab_set_address(struct fab *fab, const uint8_t gid[16], uint8_t sgid_index, uint16_t lid)
{
    memcpy(fab->caps.gid, gid, sizeof fab->caps.gid);
    fab->caps.sgid_index = sgid_index;
    fab->caps.lid = lid;
    if (fab->ops->set_address != NULL)
        fab->ops->set_address(fab, gid, sgid_index, lid);
}

void fab_set_pkey_index(struct fab_pd *pd, uint16_t index)
{
    pd->service.pkey_index = index;
}

int fab_run(struct fab *fab)
{
    return fab->ops->run(fab);
}

int fab_ctl_fd(const struct fab *fab)
{
    return fab->ops->ctl_fd(fab);
}

void fab_wait(struct fab *fab)
{
    struct pollfd fd = {.events = POLLIN};
    if (fab->ops->wait != NULL) {
        fab->ops->wait(fab);
        return;
    }
    fd.fd = fab_ctl_fd(fab);
    (void)poll(&fd, 1, WAIT_MS);
}

int fab_mem_alloc_for(struct fab *fab, size_t size, const char *name, struct fab_mem *out)
{
    return fab->ops->mem_alloc != NULL ? fab->ops->mem_alloc(fab, size, out)
                                       : fab_mem_alloc(size, name, out);
}

/* The caller's user pointer holds a flag while a synchronous call runs. */
static void call_done(struct fab_ctl *ctl)
{
    *(bool *)ctl->user = true;
}

const char *fab_ctl_name(uint32_t kind)
{
    static const char *const names[] = {
        [FAB_ALLOC_PD] = "making a protection domain",
        [FAB_FREE_PD] = "freeing a protection domain",
        [FAB_REG_MR] = "registering memory",
        [FAB_DEREG_MR] = "deregistering memory",
        [FAB_CREATE_CHAN] = "creating a completion channel",
        [FAB_DESTROY_CHAN] = "destroying a completion channel",
        [FAB_CREATE_CQ] = "creating a completion queue",
        [FAB_DESTROY_CQ] = "destroying a completion queue",
        [FAB_CREATE_SRQ] = "creating a shared receive queue",
        [FAB_DESTROY_SRQ] = "destroying a shared receive queue",
        [FAB_CREATE_QP] = "creating a queue pair",
        [FAB_MODIFY_QP] = "moving a queue pair",
        [FAB_DESTROY_QP] = "destroying a queue pair",
        [FAB_CREATE_DCT] = "creating a DC target",
        [FAB_DESTROY_DCT] = "destroying a DC target",
        [FAB_CREATE_AH] = "creating an address handle",
        [FAB_DESTROY_AH] = "destroying an address handle",
        [FAB_QUERY_QP] = "asking for a queue pair's state",
    };
    return kind < sizeof names / sizeof names[0] && names[kind] != NULL ? names[kind]
                                                                        : "an operation";
}

int fab_call(struct fab *fab, struct fab_ctl *ctl)
{
    void *user = ctl->user;
    void (*done)(struct fab_ctl *) = ctl->done;
    bool over = false;
    ctl->user = &over;
    ctl->done = call_done;
    atomic_store(&fab->waits_for, ctl->kind);
    fab_submit(fab, ctl);
    fab_run(fab);
    while (!over) {
        fab_wait(fab);
        fab_run(fab);
    }
    atomic_store(&fab->waits_for, 0);
    ctl->user = user;
    ctl->done = done;
    return ctl->status;
}

static bool send_is_sound(const struct fab_qp *qp, const struct fab_wr *wr)
{
    const struct fab_opcode *o = fab_opcode_find(wr->opcode);
    if (!o->known || (qp->type == FAB_QP_UD && !o->in_datagrams) || wr->num_sge < 0 ||
        (uint32_t)wr->num_sge > qp->cap.send_sge || (wr->num_sge > 0 && wr->sg_list == NULL))
        return false;
    if (qp->type != FAB_QP_RC && wr->ah == NULL)
        return false;
    if (o->bytes != 0)
        return wr->num_sge == 1 && wr->sg_list[0].length == o->bytes &&
               !(wr->send_flags & IBV_SEND_INLINE);
    if (wr->send_flags & IBV_SEND_INLINE) {
        uint64_t bytes = 0;
        for (int i = 0; i < wr->num_sge; i++)
            bytes += wr->sg_list[i].length;
        return o->can_inline && bytes <= qp->cap.inline_bytes;
    }
    return true;
}

int fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    BASE_ASSERT(wr != NULL && bad != NULL);
    for (struct fab_wr *w = wr, *last = NULL; w != NULL; last = w, w = w->next) {
        if (send_is_sound(qp, w))
            continue;
        if (last != NULL) { /* those before it are posted */
            last->next = NULL;
            int status = qp->pd->fab->ops->post_send(qp, wr, bad);
            last->next = w;
            if (status != 0)
                return status;
        }
        *bad = w;
        return -EINVAL;
    }
    return qp->pd->fab->ops->post_send(qp, wr, bad);
}

int fab_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    BASE_ASSERT(wr != NULL && bad != NULL);
    if (qp->srq != NULL || qp->type == FAB_QP_DCI) {
        *bad = wr;
        return -EINVAL;
    }
    return qp->pd->fab->ops->post_recv(qp, wr, bad);
}

int fab_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    BASE_ASSERT(wr != NULL && bad != NULL);
    return srq->pd->fab->ops->post_srq_recv(srq, wr, bad);
}

int fab_poll(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    return cq->fab->ops->poll(cq, n, wc);
}

int fab_arm(struct fab_cq *cq, bool solicited_only)
{
    return cq->fab->ops->arm(cq, solicited_only);
}

bool fab_is_busy(const struct fab_cq *cq)
{
    return cq->fab->ops->is_busy != NULL && cq->fab->ops->is_busy(cq);
}

void fab_chan_drain(struct fab_chan *chan)
{
    chan->fab->ops->chan_drain(chan);
}

enum ibv_qp_state fab_qp_state(const struct fab_qp *qp)
{
    return qp->pd->fab->ops->qp_state(qp);
}

int fab_event_fd(const struct fab *fab)
{
    return fab->ops->event_fd(fab);
}

bool fab_event_is_of_qp(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
        return true;
    default:
        return false;
    }
}

int fab_get_event(struct fab *fab, struct fab_event *out)
{
    struct fab_event event;
    while (fab->ops->get_event(fab, &event) == 1) {
        if (fab_event_is_of_qp(event.type) && event.qp != NULL && atomic_load(&event.qp->leaves))
            continue;
        *out = event;
        return 1;
    }
    return 0;
}

uint64_t fab_timeout_ns(const struct fab_caps *caps, uint8_t timeout)
{
    const uint64_t asked_ns = (4096ull << (timeout & 31)) * caps->timeout_stretch;
    if (timeout == 0)
        return UINT64_MAX;
    return asked_ns > caps->timeout_least_ns ? asked_ns : caps->timeout_least_ns;
}

uint64_t fab_bound_ns(const struct fab_caps *caps, uint8_t timeout, uint8_t retry_cnt)
{
    if (timeout == 0)
        return UINT64_MAX;
    return 2 * (retry_cnt + 1u) * fab_timeout_ns(caps, timeout);
}
