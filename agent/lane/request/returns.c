/* SPDX-License-Identifier: Apache-2.0 */
#include "request/returns.h"

#include <errno.h>

#include "lane_state.h"
#include "request/batch_run.h"
#include "request/cutting.h"
#include "request/reply.h"
#include "request/revoke.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "resolve/lookup.h"
#include "resolve/path.h"
#include "resolve/prove.h"
#include "resolve/region_cache.h"
#include "resolve/signal_read.h"
#include "schedule/batch_pace.h"
#include "schedule/large_sends.h"
#include "schedule/sends.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "schedule/window_pass.h"
#include "session_state.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/returned.h"
#include "transmit/small.h"
#include "transmit/wr.h"

/* A worker's request is out no more: its windows, its flow and its VQP no longer count it. */
static inline void unpost_worker(struct lane *l, struct wr *w, enum sign sign, bool done)
{
    struct vqp *q = &w->session->vqps[w->vqp];
    windows_leave(l, w, done); /* first: that may be the end of its flow's connection */
    if (--q->outstanding == 0 && q->wait != WAIT_NOTHING && vqp_is_listed(q))
        lane_flow_notify(l, w->flow);
    flow_completed(l, w->flow, sign);
}

/* A refusal is a sign of life too; a flush says nothing. */
static enum sign sign_of(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR  ? SIGN_SILENCE
           : status == IBV_WC_WR_FLUSH_ERR ? SIGN_NONE
                                           : SIGN_LIFE;
}

/* Some, of however many: the others in the next pass. */
static void answer_lookups(struct lane *l)
{
    struct lookup_answer a;
    struct session *s;
    while ((s = lane_lookup_tell_next(l, &a)) != NULL)
        lane_session_reply_lookup(l, s, &a);
    l->did += lookups_have_ended(&l->lookups);
}

/* One that the lane asked for itself. */
static void finish_own(struct lane *l, struct wr *w, enum ibv_wc_status status)
{
    if (w->flow != NULL)
        flow_completed(l, w->flow, sign_of(status));
    if (w->kind == WR_LOOKUP_READ)
        lane_lookup_done(l, w->index, status);
    else if (w->kind == WR_PROOF_READ)
        lane_proof_done(l, status);
    else if (w->kind == WR_SIGNAL_READ)
        lane_signal_read_done(l, w, status);
    else if (w->kind == WR_RELAY_READ)
        lane_relay_done(l, w, status);
    else
        lane_remote_done(l, w, status);
    lane_own_read_give(l, w);
    l->changed |= l->wanting;
    if (lookups_have_ended(&l->lookups))
        answer_lookups(l);
}

static inline void complete_request(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                    uint32_t reason)
{
    if (w->stale)
        lane_arena_unused(l, w);
    lane_session_complete(l, w, status, reason);
}

/* As complete_request(), of what did not end well. */
static __attribute__((noinline)) void end_request(struct lane *l, struct wr *w,
                                                  enum ibv_wc_status status, uint32_t reason)
{
    if (w->stale)
        lane_arena_unused(l, w);
    batch_or_complete(l, w, status, reason);
}

/* The next piece goes, before all else of its VQP, unless that was destroyed. False: it is done. */
static bool end_piece(struct lane *l, struct wr *w)
{
    struct vqp *q = vqp_of(w);
    unpost_worker(l, w, SIGN_LIFE, true);
    lane_vqp_piece_is_back(q);
    if (!lane_cut_next(l, w) || q->state == VQP_FREE) {
        end_request(l, w, IBV_WC_SUCCESS, 0);
        return false;
    }
    if (w->stale)
        lane_arena_rekey(l, w);
    lane_vqp_take_back(l, q, w);
    return false;
}

/* It went behind SENDs: what these are to say comes before what it has to. */
static void end_behind(struct lane *l, struct wr *w)
{
    struct vqp_messages *t = lane_sends_by_is_back(w);
    unpost_worker(l, w, SIGN_LIFE, true);
    if (w->stale)
        lane_arena_unused(l, w);
    if (t != NULL && t->kept.head != NULL) {
        lane_sends_hold(l, t, w, IBV_WC_SUCCESS);
        return;
    }
    request_over(l, w, IBV_WC_SUCCESS, 0);
    if (t != NULL)
        lane_sends_go_on(l, t);
}

/* It may be kept, be part of something, or take more than most to give back. False: it is done
 * with. */
static __attribute__((noinline)) bool end_special(struct lane *l, struct wr *w)
{
    if (w->special & SPECIAL_CUT)
        return end_piece(l, w);
    if (w->special & SPECIAL_COPY)
        lane_small_give(l, w);
    if (w->special & SPECIAL_PIECE) {
        lane_batch_pace_back(l, w, true);
        unpost_worker(l, w, SIGN_LIFE, true);
        end_request(l, w, IBV_WC_SUCCESS, 0);
        return false;
    }
    if (w->special & SPECIAL_BEHIND) {
        end_behind(l, w);
        return false;
    }
    if (!(w->special & SPECIAL_SEND) || !lane_sends_back(l, w, false))
        return true;
    if (w->stale)
        lane_arena_rekey(l, w);
    unpost_worker(l, w, SIGN_LIFE, true);
    lane_sends_keep(l, w);
    return false;
}

/* Nothing of it was carried out: it goes again, unless its VQP was destroyed, so that nobody waits
 * for it. */
static void go_again(struct lane *l, struct wr *w)
{
    struct vqp *q = vqp_of(w);
    if (w->special & SPECIAL_COPY)
        lane_small_give(l, w);
    if (w->special & SPECIAL_CUT)
        lane_vqp_piece_is_back(q);
    if (w->special & SPECIAL_PIECE)
        lane_batch_pace_back(l, w, false);
    unpost_worker(l, w, SIGN_NONE, false);
    struct vqp_messages *t = w->special & SPECIAL_BEHIND ? lane_sends_by_is_back(w) : NULL;
    const bool is_of_stream = (w->special & SPECIAL_SEND) && lane_sends_back(l, w, true);
    if (q->state == VQP_FREE) {
        end_request(l, w, IBV_WC_WR_FLUSH_ERR, 0);
        return;
    }
    if (w->stale)
        lane_arena_rekey(l, w);
    lane_vqp_take_back(l, q, w);
    vqp_lost_answered(q);
    if (is_of_stream)
        lane_sends_lost(l, w);
    if (t != NULL)
        lane_sends_go_on(l, t);
    COUNT(l, reposted, 1);
}

/* What was sent before it, and is not acknowledged, ends before it does. That the peer is silent
 * holds for the first of them. */
static enum ibv_wc_status end_before(struct lane *l, struct vqp_messages *t, const struct wr *w,
                                     enum ibv_wc_status status)
{
    for (struct wr *before; (before = lane_sends_take_before(t, w)) != NULL;) {
        const bool is_silent = status == IBV_WC_RETRY_EXC_ERR;
        request_over(l, before, is_silent ? status : IBV_WC_WR_FLUSH_ERR,
                     is_silent ? 0 : SCHEMA_REASON_UNDER_WAY);
        status = is_silent ? IBV_WC_WR_FLUSH_ERR : status;
    }
    return (w->special & SPECIAL_LARGE) ? lane_large_sends_fail_before(messages_of_wr(w), w, status)
                                        : status;
}

/* It may be READ yet: it ends with its queue, which is in error now, when it is not any more. Until
 * none is out it is kept with those before it, and others that failed, by their numbers. */
static void hold_large(struct lane *l, struct wr *w, enum ibv_wc_status status)
{
    struct vqp *q = vqp_of(w);
    lane_large_send_fail(w, status);
    if (w->stale)
        lane_arena_unused(l, w);
    lane_sends_keep(l, w);
    lane_vqp_fail(l, q);
}

/* Of a VQP with messages, which were sent before it: not before these are over. What a peer has
 * refused is no word of those before it, which may be acknowledged yet. */
static void end_in_turn(struct lane *l, struct vqp_messages *t, struct wr *w,
                        enum ibv_wc_status status, bool waits)
{
    if (w->stale)
        lane_arena_unused(l, w);
    if (waits) {
        lane_sends_hold(l, t, w, status);
        return;
    }
    request_over(l, w, status, reason_of_end(status));
    lane_vqp_fail(l, t->q);
}

/* It was out, and did not end well. */
static void finish_badly(struct lane *l, struct wr *w, enum ibv_wc_status status)
{
    const bool again = w->back == BACK_AGAIN;
    w->back = BACK_ENDED;
    if (!(w->special & SPECIAL_SEND) &&
        ((w->special & SPECIAL_DOUBT) || status == IBV_WC_REM_ACCESS_ERR))
        lane_remote_doubt(l, w);
    w->special &= (uint16_t)~SPECIAL_DOUBT;
    if (again) {
        go_again(l, w);
        return;
    }
    if (w->special & SPECIAL_COPY)
        lane_small_give(l, w);
    const enum sign sign = sign_of(status);
    const bool is_kept = (w->special & SPECIAL_SEND) && lane_sends_back(l, w, true);
    struct vqp_messages *t = is_kept                         ? messages_of_wr(w)
                             : (w->special & SPECIAL_BEHIND) ? lane_sends_by_is_back(w)
                                                             : NULL;
    const bool waits = t != NULL && t->kept.head != NULL && status != IBV_WC_RETRY_EXC_ERR &&
                       (!is_kept || t->bad > 0);
    if (t != NULL && !waits)
        status = end_before(l, t, w, status);
    if (w->special & SPECIAL_CUT)
        lane_vqp_piece_is_back(vqp_of(w));
    if (w->special & SPECIAL_PIECE)
        lane_batch_pace_back(l, w, false);
    unpost_worker(l, w, sign, false);
    if (is_kept && (w->special & SPECIAL_LARGE)) {
        hold_large(l, w, status);
        return;
    }
    if (t == NULL) {
        end_request(l, w, status, reason_of_end(status));
        lane_vqp_fail(l, &w->session->vqps[w->vqp]);
        return;
    }
    end_in_turn(l, t, w, status, waits);
}

static inline void finish_request(struct lane *l, struct wr *w, enum ibv_wc_status status)
{
    if (w->kind != WR_WORKER) {
        finish_own(l, w, status);
    } else if (status == IBV_WC_SUCCESS) {
        if ((w->special &
             (SPECIAL_COPY | SPECIAL_SEND | SPECIAL_PIECE | SPECIAL_CUT | SPECIAL_BEHIND)) &&
            !end_special(l, w))
            return;
        unpost_worker(l, w, SIGN_LIFE, true);
        complete_request(l, w, status, 0);
    } else {
        finish_badly(l, w, status);
    }
}

/* None comes to the list meanwhile: what these ask for is posted later. */
static void take_requests(struct lane *l)
{
    struct wr *next;
    for (struct wr *w = returned_take_all(l); w != NULL; w = next) {
        const enum ibv_wc_status status = (enum ibv_wc_status)w->ended;
        next = w->next;
        w->ended = 0;
        if (w->back == BACK_UNPOSTED) {
            w->back = BACK_ENDED;
            batch_or_complete(l, w, status, w->refused);
        } else {
            finish_request(l, w, status);
        }
    }
}

/* What was made with a connection that broke comes before what was out on it. */
static void take_links(struct lane *l)
{
    struct flow *f;
    while ((f = l->lost_links) != NULL) {
        l->lost_links = f->next_lost;
        lane_flow_lost_link(l, f);
    }
}

void lane_returns_take(struct lane *l)
{
    if (l->lost_links != NULL)
        take_links(l);
    take_requests(l);
    if (lookups_have_ended(&l->lookups))
        answer_lookups(l);
    if (l->silenced)
        lane_signal_reads_post(l);
}

/* All up to this one have ended well, and each is over before the next is looked at. */
static inline void complete_up_to(struct lane *l, struct physical_qp *p, uint32_t index)
{
    while (p->head != index + 1)
        finish_request(l, physical_qp_take_oldest(l, p), IBV_WC_SUCCESS);
    if (p->overdue && p->head == p->tail) {
        lane_physical_qp_emptied(l, p);
        lane_returns_take(l);
    }
}

static __attribute__((noinline)) void take_message_completion(struct lane *l,
                                                              const struct ibv_wc *wc)
{
    if (wc->wr_id >> 32 != UINT32_MAX || l->messages == NULL)
        return;
    if (messages_take(l->messages, wc))
        messages_wait(l);
}

uint32_t lane_returns_poll(struct lane *l)
{
    struct ibv_wc wc[LANE_POLLED];
    int n = fab_poll(l->res.cq, LANE_POLLED, wc);
    for (int i = 0; i < n; i++) {
        struct physical_qp *p = &l->phys[wc[i].wr_id >> 32];
        uint32_t index = (uint32_t)wc[i].wr_id;
        if (wc[i].wr_id >> 32 >= l->phys_room || index - p->head >= p->tail - p->head) {
            take_message_completion(l, &wc[i]); /* or of before a break: it was dealt with then */
            continue;
        }
        if (p->broken | l->config.streams | (wc[i].status != IBV_WC_SUCCESS)) {
            lane_physical_qp_complete(l, p, index, wc[i].status);
            lane_returns_take(l);
            continue;
        }
        complete_up_to(l, p, index);
    }
    if (n > 0 && l->starved)
        l->changed = 1;
    return n > 0 ? (uint32_t)n : 0;
}

/* Where a pass takes more than it completes, queue pairs fill up, and each request waits for room
 * in a queue first, which takes longer than to post it. */
uint32_t lane_returns_poll_more(struct lane *l)
{
    uint32_t polled = LANE_POLLED, all = polled;
    while (polled == LANE_POLLED && all < LANE_TAKEN && !lane_is_shared(l) && !l->messages_due) {
        polled = lane_returns_poll(l);
        all += polled;
    }
    return all;
}

void lane_returns_ring(struct lane *l)
{
    if (l->chained != NULL)
        lane_physical_qp_ring(l);
    if (returns_wait(l))
        lane_returns_take(l);
}

void lane_returns_poll_all(struct lane *l)
{
    lane_physical_qp_ring(l); /* no list breaks that is not posted yet */
    if (l->returned.first != NULL)
        lane_returns_take(l);
    for (uint32_t polled; (polled = lane_returns_poll(l)) > 0;)
        l->did += polled;
}
