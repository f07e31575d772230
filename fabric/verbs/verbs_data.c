/* SPDX-License-Identifier: Apache-2.0 */
/* Posting, polling, arming: the lane's thread. Requests are rewritten as verbs' own, on the stack.
 */
#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "verbs/verbs_data.h"
#include "verbs/verbs_late.h"
#include "verbs/verbs.h"

/* ---- the send queue's slots */

/* With streams: all before the oldest that is out. */
static void take_back_in_ring(struct verbs_qp *q)
{
    const struct verbs_ring *r = q->ring;
    while (q->freed != q->posted &&
           atomic_load_explicit(&r->slot[q->freed & r->mask].id, memory_order_acquire) == 0)
        q->freed++;
}

/* Takes in what was polled since. */
static void take_back(struct verbs_qp *q)
{
    if (q->ring != NULL) {
        take_back_in_ring(q);
        return;
    }
    uint32_t more = (verbs_completed_of(q->qpn) - q->seen) & VERBS_COMPLETED;
    for (; q->seen != q->marked && more > 0; more--)
        q->freed = q->mark[q->seen++ & q->mask];
}

static uint32_t room_in(struct verbs_qp *q, uint32_t wanted)
{
    uint32_t room = q->base.cap.send_wr - (q->posted - q->freed);
    if (room < wanted) {
        take_back(q);
        room = q->base.cap.send_wr - (q->posted - q->freed);
    }
    return room;
}

/* In ERR everything completes, and the device knows best what is free, but with streams. */
static bool is_counted(const struct verbs_qp *q, uint32_t state)
{
    return q->ring != NULL || (state != IBV_QPS_ERR && verbs_failed_of(q->qpn) == 0);
}

static void count_posted(struct verbs_qp *q, const struct fab_wr *wr, int n)
{
    for (; n > 0; n--, wr = wr->next) {
        q->posted++;
        if (wr->send_flags & IBV_SEND_SIGNALED)
            q->mark[q->marked++ & q->mask] = q->posted;
    }
}

/* ---- sends */

/* rxe completes a datagram that is too long as if it had been sent. */
static bool datagram_fits(const struct verbs_qp *q, const struct fab_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes <= q->base.pd->fab->caps.ud_payload;
}

static void translate_wr(const struct verbs_qp *q, const struct fab_wr *wr, struct ibv_send_wr *out)
{
    out->wr_id = wr->wr_id;
    out->next = NULL;
    out->sg_list = (struct ibv_sge *)(uintptr_t)wr->sg_list; /* read only, but not const there */
    out->num_sge = wr->num_sge;
    out->opcode = wr->opcode;
    out->send_flags = wr->send_flags;
    out->imm_data = wr->imm_data;
    if (q->base.type == FAB_QP_UD) {
        out->wr.ud.ah = ((const struct verbs_ah *)wr->ah)->ah;
        out->wr.ud.remote_qpn = wr->dest_qpn;
        out->wr.ud.remote_qkey = wr->qkey;
    } else if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        out->wr.atomic.remote_addr = wr->remote_addr;
        out->wr.atomic.compare_add = wr->compare_add;
        out->wr.atomic.swap = wr->swap;
        out->wr.atomic.rkey = wr->key.rkey;
    } else {
        out->wr.rdma.remote_addr = wr->remote_addr;
        out->wr.rdma.rkey = wr->key.rkey;
    }
}

/* Posts the first requests of a list, VERBS_CHUNK at most, and moves *wr behind them. */
static int post_chunk(struct verbs_qp *q, struct fab_wr **wr, bool counted)
{
    struct ibv_send_wr chunk[VERBS_CHUNK], *bad = NULL;
    struct fab_wr *first = *wr, *w = first;
    uint32_t room = counted ? room_in(q, VERBS_CHUNK) : UINT32_MAX;
    int n = 0, status = 0;
    for (; w != NULL && n < VERBS_CHUNK; w = w->next) {
        if ((uint32_t)n == room) {
            status = -ENOMEM;
            break;
        }
        if (q->base.type == FAB_QP_UD && !datagram_fits(q, w)) {
            status = -EINVAL;
            break;
        }
        translate_wr(q, w, &chunk[n]);
        if (n > 0)
            chunk[n - 1].next = &chunk[n];
        n++;
    }
    if (verbs_is_late(first)) {
        status = -ETIME;
        n = 0;
    }
    int refused = n > 0 ? ibv_post_send(q->qp, chunk, &bad) : 0;
    /* Who names none has taken all of them: librxe, whose doorbell alone failed. They go with the
     * next one; posted again they would be executed twice. */
    if (refused != 0 && bad != NULL) {
        status = -refused;
        n = (int)(bad - chunk);
    }
    if (counted)
        count_posted(q, first, n);
    for (w = first; n > 0; n--)
        w = w->next;
    *wr = w;
    return status;
}

/* One by one, so that the first that the device does not take is known. */
static int post_dci_singly(struct verbs_qp *q, struct fab_wr **wr, int n, bool counted)
{
    for (; n > 0; n--) {
        int status = verbs_dci_post(q, *wr, 1);
        if (status != 0)
            return status;
        if (counted)
            count_posted(q, *wr, 1);
        *wr = (*wr)->next;
    }
    return 0;
}

/* Likewise, for a DCI. libmlx5 takes the requests of one doorbell together or not at all, and does
 * not say which one it did not like: so what is not counted goes one by one, and what was refused
 * once more. */
static int post_dci_chunk(struct verbs_qp *q, struct fab_wr **wr, bool counted)
{
    struct fab_wr *w = *wr;
    uint32_t room = counted ? room_in(q, VERBS_CHUNK) : 1;
    int n = 0;
    for (; w != NULL && n < VERBS_CHUNK && (uint32_t)n < room; w = w->next)
        n++;
    int status = n > 0 ? verbs_dci_post(q, *wr, n) : -ENOMEM;
    if (status != 0 && status != -ETIME && n > 1)
        return post_dci_singly(q, wr, n, counted);
    if (status != 0)
        return status;
    if (counted)
        count_posted(q, *wr, n);
    *wr = w;
    return 0;
}

int verbs_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    struct verbs_qp *q = (struct verbs_qp *)qp;
    uint32_t state = atomic_load_explicit(&q->state, memory_order_relaxed);
    int status = state < IBV_QPS_RTS ? -EINVAL : 0;
    bool counted = is_counted(q, state);
    while (status == 0 && wr != NULL)
        status = q->ex != NULL ? post_dci_chunk(q, &wr, counted) : post_chunk(q, &wr, counted);
    if (status != 0)
        *bad = wr;
    return status;
}

/* ---- receives */

struct recv_chunk {
    struct ibv_recv_wr wr[VERBS_CHUNK];
    int n;
};

/* As many of a list as fit. */
static void translate_receives(struct recv_chunk *c, struct fab_recv_wr *wr)
{
    c->n = 0;
    for (; wr != NULL && c->n < VERBS_CHUNK; wr = wr->next, c->n++) {
        c->wr[c->n] = (struct ibv_recv_wr){.wr_id = wr->wr_id,
                                           .sg_list = (struct ibv_sge *)(uintptr_t)wr->sg_list,
                                           .num_sge = wr->num_sge};
        if (c->n > 0)
            c->wr[c->n - 1].next = &c->wr[c->n];
    }
}

/* To the queue pair, or to the SRQ. */
static int post_receives(struct ibv_qp *qp, struct ibv_srq *srq, struct fab_recv_wr *wr,
                         struct fab_recv_wr **bad)
{
    while (wr != NULL) {
        struct recv_chunk c;
        struct ibv_recv_wr *refused = NULL;
        translate_receives(&c, wr);
        int status = srq != NULL ? ibv_post_srq_recv(srq, c.wr, &refused)
                                 : ibv_post_recv(qp, c.wr, &refused);
        int n = status == 0 ? c.n : refused != NULL ? (int)(refused - c.wr) : 0;
        for (; n > 0; n--)
            wr = wr->next;
        if (status != 0) {
            *bad = wr;
            return -status;
        }
    }
    return 0;
}

int verbs_post_recv(struct fab_qp *qp, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    struct verbs_qp *q = (struct verbs_qp *)qp;
    if (atomic_load_explicit(&q->state, memory_order_relaxed) == IBV_QPS_RESET) {
        *bad = wr;
        return -EINVAL;
    }
    return post_receives(q->qp, NULL, wr, bad);
}

int verbs_post_srq_recv(struct fab_srq *srq, struct fab_recv_wr *wr, struct fab_recv_wr **bad)
{
    return post_receives(NULL, ((struct verbs_srq *)srq)->srq, wr, bad);
}

/* ---- completions */

/* What the word of a number becomes by a completion. */
static uint64_t counted_in(uint64_t word, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) /* whether of a send or a receive, it does not say */
        return word | (uint64_t)VERBS_SOME_FAILED << VERBS_FAILED_SHIFT |
               (wc->status != IBV_WC_WR_FLUSH_ERR ? (uint64_t)VERBS_BROKEN << VERBS_FAILED_SHIFT
                                                  : 0);
    if (wc->opcode & IBV_WC_RECV)
        return word;
    return (word & ~(uint64_t)VERBS_COMPLETED) | ((word + 1) & VERBS_COMPLETED);
}

/* False: it is of a life that the number had before the poll ended, and nobody waits for it. */
static bool note_completion(struct verbs_fab *f, struct ibv_wc *wc, uint64_t epoch)
{
    struct verbs_qpn *n = verbs_qpn_find(f, wc->qp_num);
    if (n == NULL)
        return true;
    /* Before the word: a life begins with this, so that it is never the one before the word's. */
    const uint64_t ringed = atomic_load_explicit(&n->ringed, memory_order_acquire);
    uint64_t word = atomic_load_explicit(&n->word, memory_order_relaxed);
    do {
        if (word >> VERBS_EPOCH_SHIFT > epoch || ringed > word >> VERBS_EPOCH_SHIFT)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&n->word, &word, counted_in(word, wc),
                                                    memory_order_relaxed, memory_order_relaxed));
    return ringed < word >> VERBS_EPOCH_SHIFT || ringed == 0 || verbs_ring_complete(n, wc);
}

/* What the device has to say, *got of it; how many of that are left for who waits. */
static int poll_once(struct verbs_cq *c, int n, struct ibv_wc *wc, int *got)
{
    const uint64_t epoch = atomic_load_explicit(&c->fab->epoch, memory_order_acquire);
    int kept = 0;
    *got = c->kept != NULL ? verbs_filter_poll(c, n, wc) : ibv_poll_cq(c->cq, n, wc);
    for (int i = 0; i < *got; i++)
        if (note_completion(c->fab, &wc[i], epoch) && kept++ != i)
            wc[kept - 1] = wc[i];
    return kept;
}

/* Who is given none sleeps, on a CQ that was armed: so behind completions that are nobody's it goes
 * on, to the end of as many as there is room for. */
int verbs_poll(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    struct verbs_cq *c = (struct verbs_cq *)cq;
    if (atomic_load_explicit(&c->dead, memory_order_relaxed))
        return -EIO;
    int kept = 0, got = n > 0;
    for (uint32_t seen = 0; kept == 0 && got > 0 && seen <= c->base.cqe; seen += (uint32_t)got)
        kept = poll_once(c, n, wc, &got);
    return got >= 0 ? kept : -EIO;
}

int verbs_arm(struct fab_cq *cq, bool solicited_only)
{
    struct verbs_cq *c = (struct verbs_cq *)cq;
    return c->chan != NULL ? -ibv_req_notify_cq(c->cq, solicited_only) : -EINVAL;
}

void verbs_chan_drain(struct fab_chan *chan)
{
    struct ibv_comp_channel *c = ((struct verbs_chan *)chan)->chan;
    struct ibv_cq *cq;
    void *context;
    while (ibv_get_cq_event(c, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1); /* destroying the CQ waits for that */
}
