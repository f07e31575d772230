/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/merge.h"

#include <assert.h>
#include <string.h>

#include "flow_state.h"
#include "lane_state.h"
#include "session_state.h"
#include "transmit/blame.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"
#include "vqp_state.h"

enum {
    /* Each of several is over when all are: so the first waits for the last, for as long as its
     * port takes for so many bytes (5 us at 100 Gb/s, 52 at 10). Beyond some ten KiB a device is
     * as fast with several work requests as with one. */
    MERGED_BYTES = 64 * 1024,
    MERGED_MOST = 64, /* requests */
    /* Packets of one that begins at a multiple of it are cut at such, so that an aligned word which
     * one packet had alone is in one still: readers of pointers and locks rely on that. */
    WHOLE_BYTES = 8
};
/* What only merging may have caused: a device, or a peer's, that does not take what it says. Then
 * requests that nothing else ails are not lost or late again and again for its sake. */
static const uint64_t REST_NS = 10000000000;

/* What this device says of itself, whoever the peer. */
static bool is_local(enum ibv_wc_status status)
{
    return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
           status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_ACCESS_ERR;
}

/* ---- whether */

static bool is_of_one_kind(const struct wr *a, const struct wr *b)
{
    return a->kind == WR_WORKER && b->kind == WR_WORKER && b->op->merges && a->op == b->op &&
           ((a->fab.send_flags ^ b->fab.send_flags) & IBV_SEND_INLINE) == 0;
}

/* Of one record, of which both have seen the same. */
static bool is_to_one_region(const struct wr *a, const struct wr *b)
{
    return a->flow == b->flow && a->vkey == b->vkey && a->fab.key.rkey == b->fab.key.rkey &&
           a->fab.ah == b->fab.ah && a->fab.dest_qpn == b->fab.dest_qpn &&
           a->fab.dc_key == b->fab.dc_key;
}

/* On a queue pair where requests go one at a time an error is to name its request. */
static bool may_merge(const struct lane *l, const struct physical_qp *p)
{
    return l->config.merge_sges > 0 && l->now_ns >= l->merges.rest_until_ns &&
           p->depth == l->config.sq_depth;
}

/* Inline bytes are copied by the CPU in any case, as long as the device takes all of them so: to
 * registered memory they would be copied once more. */
static uint64_t most_bytes(const struct lane *l, const struct wr *w)
{
    const struct fab_caps *caps = &l->res.fab->caps;
    if (w->fab.send_flags & IBV_SEND_INLINE)
        return caps->max_inline < SCHEMA_MAX_INLINE ? caps->max_inline : SCHEMA_MAX_INLINE;
    return caps->max_msg_size < MERGED_BYTES ? caps->max_msg_size : MERGED_BYTES;
}

/* ---- pieces */

static bool share_bytes(const struct ibv_sge *a, const struct ibv_sge *b)
{
    return a->lkey == b->lkey && a->addr < b->addr + b->length && b->addr < a->addr + a->length;
}

/* Two READs to the same memory end with what the later one brings; of one READ nobody says which of
 * its pieces is written last. */
static bool writes_twice(const struct wr *lead, const struct wr *w)
{
    for (int i = 0; i < w->fab.num_sge; i++)
        for (int k = 0; k < lead->fab.num_sge; k++)
            if (share_bytes(&w->sge[i], &lead->fab.sg_list[k]))
                return true;
    return false;
}

/* w's first piece begins where the last one of those before it ends. */
static bool goes_on(const struct wr *lead, const struct wr *w)
{
    const struct ibv_sge *last = &lead->fab.sg_list[lead->fab.num_sge - 1];
    return last->lkey == w->sge[0].lkey && last->addr + last->length == w->sge[0].addr;
}

static_assert(SCHEMA_MAX_SGE <= LANE_MERGE_SGES, "room for the first one's");

static uint64_t pass_of(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.passes, memory_order_relaxed);
}

/* What a former pass took is posted. */
static bool has_list(const struct lane *l, const struct wr *lead)
{
    return lead->behind > 0 || l->merges.lists < LANE_MERGE_LISTS || l->merges.pass != pass_of(l);
}

/* There is one. */
static void take_list(struct lane *l, struct wr *lead)
{
    if (lead->behind > 0)
        return;
    if (l->merges.pass != pass_of(l))
        l->merges.lists = 0;
    l->merges.pass = pass_of(l);
    struct merge_list *list = &l->merges.list[l->merges.lists++];
    memcpy(list->sge, lead->sge, (size_t)lead->fab.num_sge * sizeof list->sge[0]);
    lead->pieces = (uint8_t)lead->fab.num_sge;
    lead->fab.sg_list = list->sge;
}

static struct merge_list *list_of(const struct wr *lead)
{
    return (struct merge_list *)(uintptr_t)lead->fab.sg_list; /* of l->merges */
}

/* The bytes of one work request have no order, and a VQP's requests have one. */
static bool keeps_order(const struct lane *l, const struct physical_qp *p, const struct wr *lead,
                        const struct wr *w)
{
    if (w->special & SPECIAL_RELAXED)
        return true;
    for (uint32_t i = 0; i <= lead->behind; i++)
        if (vqp_of(*ring_at(l, p, p->tail - 1 - i)) == vqp_of(w))
            return false;
    return true;
}

static void add_inline(struct lane *l, struct wr *lead, const struct wr *w)
{
    take_list(l, lead);
    struct merge_list *list = list_of(lead);
    if (lead->behind == 0) {
        memcpy(list->inline_data, lead->inline_data, lead->length);
        list->sge[0].addr = (uintptr_t)list->inline_data;
    }
    memcpy(list->inline_data + list->sge[0].length, w->inline_data, w->length);
    list->sge[0].length += w->length;
}

/* There are as many SGEs as a work request may have, and a READ's are each to other memory. */
static bool pieces_fit(const struct lane *l, const struct wr *lead, const struct wr *w)
{
    const int joins = goes_on(lead, w), all = lead->fab.num_sge + w->fab.num_sge - joins;
    return all <= (int)l->config.merge_sges &&
           (w->fab.opcode != IBV_WR_RDMA_READ || !writes_twice(lead, w));
}

static void add_pieces(struct lane *l, struct wr *lead, const struct wr *w)
{
    const int joins = goes_on(lead, w), all = lead->fab.num_sge + w->fab.num_sge - joins;
    take_list(l, lead);
    struct ibv_sge *list = list_of(lead)->sge;
    if (joins)
        list[lead->fab.num_sge - 1].length += w->sge[0].length;
    memcpy(&list[lead->fab.num_sge], &w->sge[joins],
           (size_t)(w->fab.num_sge - joins) * sizeof list[0]);
    lead->fab.num_sge = all;
}

/* Of one VQP's stream in order, without a look at anything else. */
static bool is_behind_its_own(const struct wr *last, const struct wr *w)
{
    return last->session == w->session && last->vqp == w->vqp && !(w->special & SPECIAL_RELAXED);
}

/* ---- all */

bool lane_merge_takes(const struct lane *l, const struct physical_qp *p, const struct wr *w)
{
    const struct wr *last = *ring_at(l, p, p->tail - 1);
    const struct wr *lead = (const struct wr *)(const void *)p->chain_tail;
    if (is_behind_its_own(last, w) || !may_merge(l, p) || !is_of_one_kind(last, w) ||
        ((last->special | w->special) & ~(SPECIAL_RELAXED | SPECIAL_PIECE | SPECIAL_LISTED)) != 0 ||
        !is_to_one_region(last, w) || last->session->tenant_slot != w->session->tenant_slot)
        return false;
    const uint64_t bytes = w->fab.remote_addr + w->length - lead->fab.remote_addr;
    return lead->fab.remote_addr % WHOLE_BYTES == 0 && bytes <= most_bytes(l, w) &&
           lead->behind + 1 != MERGED_MOST && l->now_ns >= w->flow->apart_until_ns &&
           keeps_order(l, p, lead, w) &&
           ((w->fab.send_flags & IBV_SEND_INLINE) || pieces_fit(l, lead, w)) && has_list(l, lead);
}

bool lane_merge(struct lane *l, struct physical_qp *p, struct wr *w)
{
    struct wr *lead = (struct wr *)(void *)p->chain_tail;
    if (!lane_merge_takes(l, p, w))
        return false;
    (w->fab.send_flags & IBV_SEND_INLINE ? add_inline : add_pieces)(l, lead, w);
    w->rides = 1;
    w->ahead = ++lead->behind;
    lead->fab.wr_id = (lead->fab.wr_id & ~(uint64_t)UINT32_MAX) | p->tail;
    if (w->signaled | l->config.streams)
        lead->fab.send_flags |= IBV_SEND_SIGNALED;
    if (w->fab.key.not_after_ns < lead->fab.key.not_after_ns)
        lead->fab.key.not_after_ns = w->fab.key.not_after_ns;
    COUNT(l, merged, 1);
    return true;
}

void lane_merge_undo(struct wr *w)
{
    if (w->behind > 0) {
        w->fab.sg_list = w->sge;
        w->fab.num_sge = w->pieces;
    }
    w->ahead = w->behind = 0;
}

/* An error without a name may be any other's to the same peer. That a peer is silent may be for the
 * length of what is merged, where something on the way takes shorter packets than both ports. */
static void begin_rest(struct lane *l, const struct physical_qp *p, struct flow *f,
                       enum ibv_wc_status status)
{
    uint64_t *until_ns = is_local(status) && !lane_blame_is_nameless(l, p)
                             ? &l->merges.rest_until_ns
                             : &f->apart_until_ns;
    *until_ns = l->now_ns + REST_NS;
}

void lane_merge_failed(struct lane *l, struct physical_qp *p, uint32_t first,
                       enum ibv_wc_status status)
{
    const struct wr *lead = *ring_at(l, p, first);
    if (lead->behind == 0 || status == IBV_WC_WR_FLUSH_ERR ||
        (l->config.deadlines && status == IBV_WC_RESP_TIMEOUT_ERR))
        return;
    if (status != IBV_WC_REM_ACCESS_ERR)
        begin_rest(l, p, lead->flow, status);
    if (status == IBV_WC_RETRY_EXC_ERR)
        return;
    COUNT(l, merged_failed, 1);
    for (uint32_t i = first; i != first + lead->behind + 1; i++)
        (*ring_at(l, p, i))->special |=
            status == IBV_WC_REM_ACCESS_ERR ? SPECIAL_APART | SPECIAL_DOUBT : SPECIAL_APART;
}
