/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: creating, moving, destroying, asking. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/objects.h"
#include "verbs/verbs.h"

enum { MOST_TIMEOUT = 31, FLOW_LABEL_MASK = 0xfffff };

/* The page of a number's entry exists from now on. 0 or -ENOMEM. */
static int make_qpn(struct verbs_fab *f, uint32_t qpn)
{
    _Atomic(struct verbs_qpn *) *page = &f->qpn_page[(qpn / VERBS_QPN_PAGE) % VERBS_QPN_PAGE];
    if (atomic_load(page) != NULL)
        return 0;
    struct verbs_qpn *made = calloc(VERBS_QPN_PAGE, sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    struct verbs_qpn *none = NULL;
    if (!atomic_compare_exchange_strong(page, &none, made))
        free(made); /* another worker was first */
    return 0;
}

static int check_caps(const struct fab_caps *caps, const struct fab_qp_cap *cap)
{
    return cap->send_wr > caps->max_qp_wr || cap->recv_wr > caps->max_qp_wr ||
                   cap->send_sge > caps->max_sge || cap->recv_sge > caps->max_sge ||
                   cap->inline_bytes > caps->max_inline
               ? -EINVAL
               : 0;
}

static uint32_t power_of_two(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

static void use_all(struct verbs_qp *q, bool use)
{
    uint32_t step = use ? 1 : UINT32_MAX;
    atomic_fetch_add(&((struct verbs_pd *)q->base.pd)->users, step);
    atomic_fetch_add(&((struct verbs_cq *)q->base.send_cq)->users, step);
    atomic_fetch_add(&((struct verbs_cq *)q->base.recv_cq)->users, step);
    if (q->base.srq != NULL)
        atomic_fetch_add(&((struct verbs_srq *)q->base.srq)->users, step);
}

/* Nothing is queued, and nothing of what was is polled from now on: another life of the number. */
static void begin_life(struct verbs_fab *f, struct verbs_qp *q)
{
    const uint64_t epoch = atomic_fetch_add(&f->epoch, 1) + 1;
    q->posted = q->freed = q->marked = q->seen = 0;
    q->life = epoch << 32;
    if (q->ring != NULL)
        verbs_ring_begin(q->qpn, epoch);
    atomic_store(&q->qpn->word, epoch << VERBS_EPOCH_SHIFT);
}

/* It is gone, and what has its number next may be none of ours, as a DC target. Another queue pair
 * may have it by now, whose life stays. */
static void end_life(struct verbs_fab *f, const struct verbs_qp *q)
{
    const uint64_t epoch = atomic_fetch_add(&f->epoch, 1) + 1;
    uint64_t word = atomic_load(&q->qpn->word);
    while ((uint32_t)(word >> VERBS_EPOCH_SHIFT) == (uint32_t)(q->life >> 32) &&
           !atomic_compare_exchange_weak(&q->qpn->word, &word, epoch << VERBS_EPOCH_SHIFT))
        ;
}

/* Nothing of what it did is polled from now on. */
static void forget_completions(const struct verbs_qp *q)
{
    verbs_filter_purge(q->base.send_cq, q->base.qpn);
    if (q->base.recv_cq != q->base.send_cq)
        verbs_filter_purge(q->base.recv_cq, q->base.qpn);
}

static int create_qp(struct verbs_fab *f, struct fab_ctl *ctl, struct ibv_qp_init_attr *attr,
                     struct verbs_qp **out)
{
    bool dci = ctl->qp.type == FAB_QP_DCI;
    struct ibv_pd *pd = ((struct verbs_pd *)ctl->qp.pd)->pd;
    errno = 0;
    struct ibv_qp *made = dci ? verbs_dci_make(f, pd, attr) : verbs_plain_qp_make(f, pd, attr);
    if (made == NULL)
        return errno != 0 ? -errno : -ENOMEM;
    uint32_t marks = power_of_two(attr->cap.max_send_wr);
    struct verbs_qp *q = calloc(1, sizeof *q + marks * sizeof q->mark[0]);
    if (q == NULL) {
        (void)f->dc.calls.destroy_qp(made);
        return -ENOMEM;
    }
    q->qp = made;
    if (dci) {
        q->ex = f->dc.calls.qp_to_qp_ex(made);
        q->dv = f->dc.calls.dv_qp_ex(q->ex);
        q->log_streams = f->dc.log_streams;
    }
    q->mask = marks - 1;
    pthread_mutex_init(&q->asked, NULL);
    made->qp_context = q;
    *out = q;
    return 0;
}

/* rxe makes a receive queue larger than it says at creation. */
static void read_recv_room(struct verbs_qp *q)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    if (q->base.srq == NULL && q->base.type != FAB_QP_DCI &&
        ibv_query_qp(q->qp, &attr, IBV_QP_CAP, &init) == 0 &&
        init.cap.max_recv_wr > q->base.cap.recv_wr)
        q->base.cap.recv_wr = init.cap.max_recv_wr;
}

int verbs_qp_create(struct verbs_fab *f, struct fab_ctl *ctl)
{
    const struct fab_qp_cap *cap = &ctl->qp.cap;
    struct verbs_srq *srq = (struct verbs_srq *)ctl->qp.srq;
    struct verbs_qp *q = NULL;
    if (ctl->qp.type == FAB_QP_DCI && !(f->base.caps.transports & FAB_DC))
        return -EOPNOTSUPP;
    int status = check_caps(&f->base.caps, cap);
    if (status != 0)
        return status;
    struct ibv_qp_init_attr attr = {.send_cq = ((struct verbs_cq *)ctl->qp.send_cq)->cq,
                                    .recv_cq = ((struct verbs_cq *)ctl->qp.recv_cq)->cq,
                                    .srq = srq != NULL ? srq->srq : NULL,
                                    .cap = {.max_send_wr = cap->send_wr,
                                            .max_recv_wr = cap->recv_wr,
                                            .max_send_sge = cap->send_sge,
                                            .max_recv_sge = cap->recv_sge,
                                            .max_inline_data = cap->inline_bytes},
                                    .qp_type = ctl->qp.type == FAB_QP_RC ? IBV_QPT_RC : IBV_QPT_UD};
    status = create_qp(f, ctl, &attr, &q);
    if (status != 0)
        return status;
    status = make_qpn(f, q->qp->qp_num);
    if (status == 0 && q->log_streams != 0)
        status = verbs_ring_make(verbs_qpn_find(f, q->qp->qp_num), q->mask + 1);
    if (status != 0) {
        (void)f->dc.calls.destroy_qp(q->qp);
        free(q);
        return status;
    }
    q->base = (struct fab_qp){.pd = ctl->qp.pd,
                              .type = ctl->qp.type,
                              .qpn = q->qp->qp_num,
                              .send_cq = ctl->qp.send_cq,
                              .recv_cq = ctl->qp.recv_cq,
                              .srq = ctl->qp.srq,
                              .cap = {.send_wr = attr.cap.max_send_wr,
                                      .recv_wr = attr.cap.max_recv_wr,
                                      .send_sge = attr.cap.max_send_sge,
                                      .recv_sge = attr.cap.max_recv_sge,
                                      .inline_bytes = attr.cap.max_inline_data},
                              .user = ctl->qp.user};
    read_recv_room(q);
    q->qpn = verbs_qpn_find(f, q->base.qpn);
    q->ring = q->log_streams != 0 ? atomic_load(&q->qpn->ring) : NULL;
    atomic_store(&q->state, IBV_QPS_RESET);
    begin_life(f, q);
    use_all(q, true);
    ctl->qp.x = &q->base;
    return 0;
}

/* rxe takes 7 retries for "without end", as 7 RNR retries are: one less keeps within the bound that
 * leases count on. And its time-outs are what their number says, where the bound allows for four
 * times that, as RNICs may take: two more use it up, for where RDMA is the processor's work a host
 * that is busy is silent for longer than an RNIC (in guests 0.5 s were seen). */
static void suit_rxe(struct ibv_qp_attr *attr, int mask)
{
    if ((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt == 7)
        attr->retry_cnt = 6;
    if ((mask & IBV_QP_TIMEOUT) && attr->timeout != 0 && attr->timeout <= MOST_TIMEOUT - 2)
        attr->timeout += 2;
}

/* The device's context has the number as a power of two, to which mlx5's driver rounds it up: a
 * peer that takes 12 READs at a time would be sent 16, and refuse the 13th. */
static void round_reads_down(struct ibv_qp_attr *attr)
{
    while ((attr->max_rd_atomic & (attr->max_rd_atomic - 1)) != 0)
        attr->max_rd_atomic &= (uint8_t)(attr->max_rd_atomic - 1);
}

/* Drivers send all connections without a flow label from one UDP port, or from ports of their own
 * choice. One for each connection, of both ends' numbers, has the network spread them over equal
 * paths, and those of one connection over one (as librdmacm and rdma_calc_flow_label() do). */
static void choose_flow_label(struct ibv_ah_attr *address, uint32_t own, uint32_t peer)
{
    uint64_t label = (uint64_t)own * peer;
    label ^= label >> 20;
    label ^= label >> 40;
    if (address->grh.flow_label == 0)
        address->grh.flow_label = (uint32_t)label & FLOW_LABEL_MASK;
}

static int change_qp(struct verbs_fab *f, struct verbs_qp *q, struct ibv_qp_attr *attr, int mask)
{
    if (q->base.type == FAB_QP_DCI)
        return -verbs_dci_modify(f, q->base.pd, q->qp, attr, mask);
    if ((mask & IBV_QP_AV) && f->base.caps.is_ethernet)
        choose_flow_label(&attr->ah_attr, q->base.qpn, attr->dest_qp_num);
    return -f->dc.calls.modify_qp(q->qp, attr, mask);
}

int verbs_qp_modify(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_qp *q = (struct verbs_qp *)ctl->modify.x;
    struct ibv_qp_attr attr = ctl->modify.attr;
    if ((ctl->modify.mask & IBV_QP_AV) && !f->base.caps.is_ethernet && attr.ah_attr.dlid == 0)
        return -EINVAL;
    if (f->rxe)
        suit_rxe(&attr, ctl->modify.mask);
    if (ctl->modify.mask & IBV_QP_MAX_QP_RD_ATOMIC)
        round_reads_down(&attr);
    int status = change_qp(f, q, &attr, ctl->modify.mask);
    if (status != 0 || !(ctl->modify.mask & IBV_QP_STATE))
        return status;
    if (ctl->modify.attr.qp_state == IBV_QPS_RESET) {
        forget_completions(q);
        begin_life(f, q);
        fab_events_purge(&f->events, &q->base);
    }
    atomic_store(&q->state, ctl->modify.attr.qp_state);
    return 0;
}

static void set_going(struct verbs_qp *q, bool going)
{
    pthread_mutex_lock(&q->asked);
    q->going = going;
    pthread_mutex_unlock(&q->asked);
}

int verbs_qp_destroy(struct verbs_fab *f, struct fab_ctl *ctl)
{
    struct verbs_qp *q = (struct verbs_qp *)ctl->qp.x;
    set_going(q, true);
    int status = verbs_destroyed(&f->base, -f->dc.calls.destroy_qp(q->qp));
    if (status != 0) {
        set_going(q, false);
        return status;
    }
    forget_completions(q);
    end_life(f, q);
    use_all(q, false);
    fab_events_purge(&f->events, &q->base);
    pthread_mutex_destroy(&q->asked);
    return 0;
}

/* Whoever has it may ask while a worker destroys it. A device that does not answer keeps this one
 * waiting, and no other. */
static enum ibv_qp_state ask_device(struct verbs_fab *f, struct verbs_qp *q)
{
    enum ibv_qp_state state = IBV_QPS_ERR;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    pthread_mutex_lock(&q->asked);
    if (!q->going && f->dc.calls.query_qp(q->qp, &attr, IBV_QP_STATE, &init) == 0)
        state = attr.qp_state;
    pthread_mutex_unlock(&q->asked);
    return state;
}

enum ibv_qp_state verbs_qp_state(const struct fab_qp *qp)
{
    struct verbs_qp *q = (struct verbs_qp *)(uintptr_t)qp; /* its lock alone changes */
    enum ibv_qp_state set = (enum ibv_qp_state)atomic_load(&q->state);
    if (set == IBV_QPS_RESET || set == IBV_QPS_INIT || set == IBV_QPS_ERR)
        return set; /* no peer and no request moves it out of these */
    if (qp->type != FAB_QP_UD && q->log_streams == 0 && (verbs_failed_of(q->qpn) & VERBS_BROKEN))
        return IBV_QPS_ERR; /* with streams others go on first */
    return ask_device(verbs_of(qp->pd->fab), q);
}

int verbs_probe_inline(struct ibv_context *context, uint32_t *bytes)
{
    static const uint32_t sizes[] = {1024, 512, 400, 256, 220, 128, 101, 96, 64, 48, 32, 0};
    int status = -EIO;
    errno = 0;
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = pd != NULL ? ibv_create_cq(context, 2, NULL, NULL, 0) : NULL;
    for (size_t i = 0; cq != NULL && i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ibv_qp_init_attr attr = {.send_cq = cq,
                                        .recv_cq = cq,
                                        .cap = {.max_send_wr = 1,
                                                .max_recv_wr = 1,
                                                .max_send_sge = 1,
                                                .max_recv_sge = 1,
                                                .max_inline_data = sizes[i]},
                                        .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = ibv_create_qp(pd, &attr);
        if (qp == NULL)
            continue;
        *bytes = attr.cap.max_inline_data;
        status = -ibv_destroy_qp(qp);
        break;
    }
    if (status != 0 && errno != 0)
        status = -errno;
    if (cq != NULL)
        (void)ibv_destroy_cq(cq);
    if (pd != NULL)
        (void)ibv_dealloc_pd(pd);
    return status;
}
