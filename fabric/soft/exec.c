/* SPDX-License-Identifier: Apache-2.0 */
/* Executing one work request: its target, its own memory, and then what kind it is. */
#include "soft/exec.h"

#include "base/clock.h"
#include "ibta/ibta.h"
#include "soft/deliver.h"
#include "soft/hazards.h"
#include "soft/maps.h"
#include "soft/one_sided.h"
#include "soft/soft_watch.h"
#include "soft/unseen.h"

/* ---- targets */

static bool is_reachable(enum ibv_qp_state state)
{
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
}

/* Looks a number up, and remembers what it found. NULL: nobody has it there. */
static const struct soft_target *find_target(struct soft_qp *qp, struct soft_target *cache,
                                             uint32_t qpn, const uint64_t gid[2])
{
    struct soft_fab *f = soft_of(qp->base.pd->fab);
    struct soft_qp_shared *s = &f->shared->qp[qpn & (SOFT_QPS - 1)];
    soft_owner owner = atomic_load(&s->owner);
    if (qpn == 0 || owner == 0 || soft_qpn(atomic_load(&s->ident)) != qpn)
        return NULL;
    struct soft_context_shared *c = &f->shared->context[(uint32_t)owner - 1];
    if (!soft_gid_is(c->gid, gid) || !soft_watch_add(f, owner))
        return NULL;
    *cache = (struct soft_target){
        .qp = s, .qpn = qpn, .owner = owner, .context = c, .gid = {gid[0], gid[1]}};
    return cache;
}

/* The target if it would answer: alive, in a state to receive, connected to us or given its key.
 * NULL: it keeps silent. */
static inline __attribute__((always_inline)) const struct soft_target *
reach_target(struct soft_qp *qp, const struct fab_wr *wr, const uint64_t dgid[2])
{
    bool rc = qp->base.type == FAB_QP_RC;
    uint64_t gid[2] = {rc ? atomic_load(&qp->shared->dest_gid[0]) : dgid[0],
                       rc ? atomic_load(&qp->shared->dest_gid[1]) : dgid[1]};
    uint32_t qpn = rc ? atomic_load(&qp->shared->dest_qpn) : wr->dest_qpn;
    struct soft_target *cache = &qp->targets[rc ? 0 : qpn & 7];
    const struct soft_target *t = cache;
    if (t->qp == NULL || t->qpn != qpn || t->gid[0] != gid[0] || t->gid[1] != gid[1] ||
        atomic_load_explicit(&t->context->owner, memory_order_acquire) != t->owner)
        t = find_target(qp, cache, qpn, gid);
    if (t == NULL)
        return NULL;
    uint64_t ident = atomic_load_explicit(&t->qp->ident, memory_order_acquire);
    if (soft_qpn(ident) != qpn || !is_reachable(soft_state(ident)))
        return NULL;
    uint8_t kind = atomic_load_explicit(&t->qp->kind, memory_order_relaxed);
    uint64_t mine[2];
    switch (qp->base.type) {
    case FAB_QP_RC:
        soft_gid_words(qp->base.pd->fab->caps.gid, mine);
        return kind == SOFT_RC && atomic_load(&t->qp->dest_qpn) == qp->base.qpn &&
                       soft_gid_is(t->qp->dest_gid, mine)
                   ? t
                   : NULL;
    case FAB_QP_DCI:
        return kind == SOFT_DCT && atomic_load(&t->qp->dc_key) == wr->dc_key ? t : NULL;
    default: { /* a Q_Key with its highest bit set stands for the sender's own (IBTA 10.2.5) */
        uint32_t qkey = wr->qkey & 0x80000000u ? atomic_load(&qp->shared->qkey) : wr->qkey;
        return kind == SOFT_UD && atomic_load(&t->qp->qkey) == qkey ? t : NULL;
    }
    }
}

/* ---- the local side */

static uint32_t total_length(const struct fab_wr *wr)
{
    uint64_t n = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        n += wr->sg_list[i].length;
        if (n > UINT32_MAX)
            return UINT32_MAX;
    }
    return (uint32_t)n;
}

/* The key of the local region, if it is one. */
static uint32_t local_key(const struct fab_wr *wr)
{
    uint32_t key = 0;
    if (wr->send_flags & IBV_SEND_INLINE)
        return 0;
    for (int i = 0; i < wr->num_sge; i++) {
        if (i > 0 && wr->sg_list[i].lkey != key)
            return SOFT_ANY_KEY;
        key = wr->sg_list[i].lkey;
    }
    return key;
}

/* Every SGE is ours, in this PD, in bounds. */
static bool local_is_sound(const struct soft_qp *qp, const struct fab_wr *wr)
{
    const struct soft_fab *f = soft_of(qp->base.pd->fab);
    bool writes = fab_opcode_is_answered(wr->opcode);
    if (wr->send_flags & IBV_SEND_INLINE)
        return true;
    for (int i = 0; i < wr->num_sge; i++)
        if (wr->sg_list[i].length > 0 &&
            !soft_mr_is_local(f, soft_pd_of(qp), &wr->sg_list[i], writes))
            return false;
    return true;
}

/* ---- two-sided */

static enum soft_outcome two_sided(struct soft_qp *qp, const struct fab_wr *wr,
                                   const uint64_t dgid[2], const struct soft_target *t,
                                   uint32_t length, enum ibv_wc_status *status)
{
    bool write_imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct soft_message m = {
        .wr = wr,
        .length = length,
        .arrival = {.opcode = write_imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                    .src_qp = qp->base.qpn},
        .grh_dgid = qp->base.type == FAB_QP_UD ? dgid : NULL,
        .write_imm = write_imm,
    };
    if (wr->opcode != IBV_WR_SEND) {
        m.arrival.wc_flags = IBV_WC_WITH_IMM;
        m.arrival.imm_data = wr->imm_data;
    }
    return soft_deliver(qp, t, &m, status);
}

/* The clock is read after the regions are held: from then on QUIESCE_MR of their owner waits for
 * us, and before that it is the deadline that keeps us out. */
static bool is_too_late(struct soft_qp *qp, const struct fab_wr *wr)
{
    if (qp->moved > 0) /* asked when it began (pieces.c) */
        return false;
    if (qp->held_ns == 0)
        qp->held_ns = base_clock_ns();
    return qp->held_ns > wr->key.not_after_ns;
}

/* Apart, so that who keeps nothing unseen pays a comparison. */
static __attribute__((noinline)) void see_before(struct soft_qp *qp, const struct fab_wr *wr,
                                                 const uint64_t dgid[2], uint32_t length)
{
    const struct soft_target *behind = reach_target(qp, wr, dgid);
    if (behind != NULL)
        soft_unseen_before(qp, wr, behind, length);
}

enum soft_outcome soft_execute(struct soft_qp *qp, const struct fab_wr *wr, const uint64_t dgid[2],
                               enum ibv_wc_status *status)
{
    bool ud = qp->base.type == FAB_QP_UD;
    uint32_t length = total_length(wr);
    if (length > (ud ? (uint32_t)SOFT_UD_PAYLOAD : 1u << 30)) {
        *status = IBV_WC_LOC_LEN_ERR;
        return SOFT_DONE;
    }
    if (soft_has_unseen(qp))
        see_before(qp, wr, dgid, length);
    /* Both regions behind one barrier; a message's own is known only when its receive is. */
    soft_mr_hold(qp, fab_opcode_is_send(wr->opcode) ? qp->held : wr->key.rkey, local_key(wr));
    if (!local_is_sound(qp, wr)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return SOFT_DONE;
    }
    if (wr->key.not_after_ns != 0 && is_too_late(qp, wr)) {
        *status = IBV_WC_RESP_TIMEOUT_ERR;
        return SOFT_DONE;
    }
    const struct soft_target *t = reach_target(qp, wr, dgid);
    *status = IBV_WC_SUCCESS;
    if (t == NULL)
        return ud ? SOFT_DONE : SOFT_WAIT_PEER; /* a datagram to nobody is sent all the same */
    if (!fab_opcode_takes_receive(wr->opcode))
        return soft_one_sided(qp, wr, t, length, status);
    enum soft_outcome outcome = two_sided(qp, wr, dgid, t, length, status);
    return ud && outcome != SOFT_WAIT_LOCK ? SOFT_DONE : outcome;
}
