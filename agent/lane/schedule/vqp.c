/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual queue pairs: each behaves as a reliable connection. Requests leave in order; one that
 * cannot go yet (its key is being looked up, its peer is silent, a queue is full) holds back those
 * behind it, and no other VQP's. */
#include "schedule/vqp.h"

#include "base/assert.h"
#include "schema/peers.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/liveness.h"
#include "resolve/lookup.h"
#include "resolve/path.h"
#include "resolve/region_cache.h"
#include "schedule/batch_pace.h"
#include "schedule/refusal_status.h"
#include "schedule/large_sends.h"
#include "schedule/near_sends.h"
#include "schedule/room.h"
#include "schedule/sends.h"
#include "schedule/turn_bytes.h"
#include "schedule/usual.h"
#include "schedule/wait.h"
#include "schedule/wait_queue.h"
#include "schedule/unseen_writes.h"
#include "schedule/window.h"
#include "schedule/window_pass.h"
#include "session_state.h"
#include "transmit/cut.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"
#include "transmit/returned.h"
#include "transmit/small.h"
#include "transmit/wr.h"

enum { GO_MOST = 64 /* of a VQP's queue at a time */ };

/* How long a request waits for a flow, beside twice the time that one may be out. */
static const uint64_t FLOWLESS_NS = 1000000000;

static void enter_error(struct lane *l, struct vqp *q)
{
    if (q->state == VQP_FREE || q->state == VQP_ERROR)
        return;
    lane_vqp_move(q, VQP_ERROR);
    if (q->messages != NULL)
        lane_sends_stop(l, q->messages);
}

/* w is the first of its queue again. */
static void put_back(struct vqp *q, struct wr *w)
{
    queue_push_front(&q->queue, w);
    session_count(&q->session->memory->shown.queued, 1);
}

void lane_vqp_piece_is_back(struct vqp *q)
{
    q->cut = 0;
    if (q->state == VQP_CUTTING)
        lane_vqp_move(q, VQP_CONNECTED);
}

void lane_vqp_take_back(struct lane *l, struct vqp *q, struct wr *w)
{
    lane_vqp_unblock(l, q);
    put_back(q, w);
    lane_vqp_wake(l, q);
}

void lane_vqp_fail(struct lane *l, struct vqp *q)
{
    enter_error(l, q);
    if (q->queue.head != NULL)
        lane_vqp_wake(l, q);
}

/* w, the first of its queue, is over and is not out: it may be in windows, having waited there. */
static void end_first(struct lane *l, struct vqp *q, struct wr *w, enum ibv_wc_status status,
                      uint32_t reason)
{
    lane_windows_desert(l, q);
    request_over(l, w, status, reason);
}

/* A batch's marker has its turn when all before it is over. A piece of one that was cancelled goes
 * no more, which is no error of its VQP's. */
static __attribute__((noinline)) enum vqp_wait pass_batch(struct lane *l, struct vqp *q,
                                                          struct wr *w)
{
    const bool marker = w->special & SPECIAL_BATCH;
    if (marker && q->outstanding > 0)
        return WAIT_OWN;
    end_first(l, q, w, marker ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, w->refused);
    return WAIT_NOTHING;
}

/* Why: not with a reason that says that it was never sent, if a copy of it may be there, or come.
 * What its receiver has answered of it is the end of it there. */
static uint32_t reason_told(const struct vqp *q, const struct wr *w, uint32_t reason)
{
    const bool is_answer = reason == SCHEMA_REASON_PORT || reason == SCHEMA_REASON_LONG;
    return !is_answer && wr_is_numbered(w) && lane_sends_was_posted(q->messages, w) ? 0 : reason;
}

/* An error completes after everything before it, as on a real queue pair. */
static enum vqp_wait refuse_request(struct lane *l, struct vqp *q, struct wr *w, uint32_t reason)
{
    if ((w->special & SPECIAL_BATCH) || w->refused == SCHEMA_REASON_CANCELLED)
        return pass_batch(l, q, w);
    w->refused = (uint8_t)reason;
    if (q->outstanding > 0 || q->kept > 0)
        return WAIT_OWN;
    if (lane_large_send_holds(l, q, w))
        return WAIT_LENDING;
    COUNT(l, refused, 1);
    end_first(l, q, w, refusal_status(reason), reason_told(q, w, reason));
    enter_error(l, q);
    return WAIT_NOTHING;
}

/* A VQP that has posted nothing is bound to an endpoint, and not to one of its lives: it goes on
 * with the present one, as if it had been connected only now. */
static bool follow_peer(struct lane *l, struct vqp *q, uint32_t gen)
{
    if (q->begun || !lane_peer_is_same(l, q->peer_slot, q->peer_gen))
        return false;
    lane_windows_desert(l, q);
    vqp_forget_flow(q);
    q->peer_gen = gen;
    return true;
}

/* A flow of a tenant in quarantine, and a connection beside DC, count in the endpoint's one window.
 */
static void open_window(struct lane *l, struct flow *f)
{
    struct flow *own = f->quarantined ? f->own : flow_first(f);
    if (own->window == NULL)
        lane_window_open(l, own, lane_peer_shared(l, own->peer_slot)->gid);
    f->window = own->window;
}

/* It named no flow, or one that went to another endpoint meanwhile. All that is out ends within
 * bound_ns, so that whoever waits for much longer waits in vain. 0 or a reason. */
static uint32_t take_flow(struct lane *l, struct vqp *q)
{
    struct flow *before = q->flow;
    q->flow = lane_flow_take(l, q);
    if (q->flow != NULL) {
        COUNT(l, transfers, flow_is_other_way(q->flow, before));
        open_window(l, q->flow);
        q->flowless_ns = 0;
        return 0;
    }
    if (q->flowless_ns == 0)
        q->flowless_ns = l->now_ns;
    if (l->now_ns - q->flowless_ns <= FLOWLESS_NS + 2 * l->config.bound_ns)
        return 0;
    q->flowless_ns = 0;
    return SCHEMA_REASON_ENDPOINTS;
}

/* Whether its flow is the one to be used: where its tenant is in quarantine, that one's own. */
static bool has_flow(const struct vqp *q, const struct flow *present)
{
    const struct flow *f = q->flow;
    if (!q->session->quarantined || f == NULL)
        return f != NULL && (f == present || flow_is_sibling_of(f, present, q->pin));
    return f->quarantined && f->peer_slot == q->peer_slot && f->peer_gen == q->peer_gen &&
           f->tenant_slot == q->session->tenant_slot;
}

/* From or to one of a tenant in quarantine, or from DC to a connection and back, only when nothing
 * of it is out, which keeps its order. 0 or a reason; then *wait. */
static uint32_t find_flow(struct lane *l, struct vqp *q, struct flow *present, enum vqp_wait *wait)
{
    uint32_t reason = 0;
    if (!has_flow(q, present)) {
        if (q->outstanding > 0 && q->flow != NULL &&
            (q->flow->quarantined != q->session->quarantined ||
             flow_is_other_way(q->flow, present))) {
            *wait = WAIT_OWN;
            return 0;
        }
        if (vqp_is_unseen(l, q, present)) {
            if (!vqp_names_flow(q)) /* who waits holds the flow that it names */
                vqp_forget_flow(q);
            *wait = WAIT_PASS;
            return 0;
        }
        lane_windows_desert(l, q);
        reason = take_flow(l, q);
    }
    if (q->flow != NULL && lane_quarantine_waits(l, q))
        *wait = WAIT_REST;
    else if (q->session->quarantined && !lane_quarantine_is_ready(l))
        *wait = WAIT_INITIATOR;
    return reason;
}

/* Its head has waited for a path for as long as a queue pair that is connected would have tried. */
static bool has_waited(const struct lane *l, const struct vqp *q)
{
    return l->config.path_patience_ns == 0 ||
           (q->path_ns != 0 && l->now_ns - q->path_ns >= l->config.path_patience_ns);
}

/* A path that could not be made is the failure of who has waited for it: who came late has a time
 * of his own, and another one is asked for. Then *wait. */
static uint32_t find_dead(struct lane *l, struct vqp *q, enum vqp_wait *wait)
{
    if (!q->flow->pathless || has_waited(l, q)) {
        q->path_ns = 0;
        return SCHEMA_REASON_PEER_DOWN;
    }
    if (q->path_ns == 0)
        q->path_ns = l->now_ns;
    *wait = WAIT_PATH;
    return 0;
}

static uint32_t find_path(struct lane *l, struct vqp *q, enum vqp_wait *wait)
{
    if (lane_flow_has_path(l, q->flow, q->session)) {
        q->path_ns = 0;
        return 0;
    }
    if (l->now_ns < q->flow->dead_until_ns) /* which is known only now */
        return find_dead(l, q, wait);
    if (q->path_ns == 0)
        q->path_ns = l->now_ns;
    *wait = flow_path_is_asked(q->flow) ? WAIT_PATH : WAIT_ASKING_PATH;
    return 0;
}

/* Whether its peer's record may be used now. */
static inline bool is_fresh(struct lane *l, const struct vqp *q)
{
    const struct peer *p = &l->peers[q->peer_slot];
    /* Not subtracted: the host may not have run for so long. */
    return p->expires_ns > l->now_ns + p->renew_us * 1000ull ||
           lane_peer_refresh(l, q->peer_slot, q->session->tenant_slot + 1);
}

/* The peer that the VQP was bound to is still the one in its slot, and known well enough to be
 * used. 0, a reason, or 0 with *wait: it waits. */
static uint32_t peer_state(struct lane *l, struct vqp *q, enum vqp_wait *wait)
{
    const struct schema_peer *shared =
        q->peer_slot < l->config.max_peers ? lane_peer_shared(l, q->peer_slot) : NULL;
    if (shared == NULL || !shared->valid || !l->peers[q->peer_slot].used)
        return SCHEMA_REASON_STALE_PEER;
    if (shared->gen != q->peer_gen && !follow_peer(l, q, shared->gen))
        return SCHEMA_REASON_STALE_PEER;
    struct flow *present = l->peers[q->peer_slot].flow;
    if (q->flow == NULL || q->flow != present || l->tenants_quarantined + l->tenants_resting > 0) {
        const uint32_t reason = find_flow(l, q, present, wait);
        if (reason != 0 || *wait != WAIT_NOTHING)
            return reason;
    }
    if (q->flow == NULL)
        *wait = WAIT_FLOW;
    else if (l->now_ns < q->flow->dead_until_ns)
        return find_dead(l, q, wait);
    else if (!is_fresh(l, q))
        *wait = l->peers[q->peer_slot].refreshing ? WAIT_RECORD : WAIT_ASKING_RECORD;
    else
        return find_path(l, q, wait);
    return 0;
}

/* Not where the turns at a window, or for room, see to that. */
static bool has_turn(struct lane *l, const struct vqp *q, const struct wr *w)
{
    struct session *s = q->session;
    const uint64_t bytes = w->length;
    if (bytes <= TURN_FREE)
        return true;
    turn_begin(l, s);
    return s->turn_bytes == 0 || s->turn_bytes + bytes <= TURN_BYTES ||
           lane_windows_are_full(l, q) || room_is_turn(l, q);
}

/* NOTHING, and *over: it is over; else it may be posted as it is now. */
static enum vqp_wait try_special(struct lane *l, struct vqp *q, struct wr *w, bool *over)
{
    if ((w->special & SPECIAL_ALIGNED) && w->fab.remote_addr % w->op->alignment != 0) {
        *over = true;
        return refuse_request(l, q, w, SCHEMA_REASON_ALIGNMENT);
    }
    if (w->special & SPECIAL_EMPTY) {
        if (q->outstanding > 0 || q->kept > 0)
            return WAIT_OWN;
        end_first(l, q, w, IBV_WC_SUCCESS, 0);
        *over = true;
        return WAIT_NOTHING;
    }
    if ((w->special & SPECIAL_FENCE) && !q->session->caps->fences) {
        if (q->outstanding > 0)
            return WAIT_OWN;
        w->fab.send_flags &= ~(unsigned)IBV_SEND_FENCE; /* nothing of its queue pair is out */
    }
    return (w->special & SPECIAL_COPY) && !lane_small_take(l, w) ? WAIT_SMALL : WAIT_NOTHING;
}

/* It is addressed, and has entered all that it had to. */
static inline void chain_request(struct lane *l, struct vqp *q, struct physical_qp *p, struct wr *w)
{
    flow_posted(l, q->flow, 1);
    q->outstanding++;
    turn_count(q->session, w->length);
    session_count_posted(&q->session->memory->shown, 1, w->length);
    lane_physical_qp_chain(l, p, w);
    COUNT(l, posted, 1);
}

/* Likewise, and it is no SEND. */
static void post_request(struct lane *l, struct vqp *q, struct physical_qp *p, struct wr *w)
{
    vqp_posted(l, q, w->op->begun);
    q->flow->wrote |= w->op->begun;
    chain_request(l, q, p, w);
}

/* On a queue pair in error. */
static enum vqp_wait flush_request(struct lane *l, struct vqp *q, struct wr *w)
{
    if (q->outstanding > 0 || q->kept > 0)
        return WAIT_OWN;
    if (lane_large_send_holds(l, q, w))
        return WAIT_LENDING;
    const bool was_out = w->back == BACK_HELD || wr_is_numbered(w);
    if (w->special & SPECIAL_LARGE)
        end_first(l, q, w, lane_large_send_status(w), lane_large_send_reason(w));
    else
        end_first(l, q, w, IBV_WC_WR_FLUSH_ERR,
                  was_out ? SCHEMA_REASON_UNDER_WAY : SCHEMA_REASON_BEHIND);
    return WAIT_NOTHING;
}

/* The last of what a request waits for, and it goes. */
static enum vqp_wait enter_windows(struct lane *l, struct vqp *q, struct physical_qp *p,
                                   struct wr *w)
{
    if (!lane_physical_qp_has_room(p)) {
        const enum vqp_wait wait = lane_room_enter(l, q, p, w);
        if (wait != WAIT_NOTHING)
            return wait;
    }
    flow_address(l, q->flow, q->peer_slot, w);
    return windows_enter(l, q, w);
}

/* To another VQP of this lane. */
static enum vqp_wait go_near(struct lane *l, struct vqp *q, struct wr *w)
{
    lane_windows_desert(l, q);
    if (!turn_takes(l, q->session, near_length(w)))
        return WAIT_PASS;
    lane_near_post(l, q, w);
    return WAIT_NOTHING;
}

/* A message. What was posted before it is before it on its queue pair. */
static __attribute__((noinline)) enum vqp_wait try_send(struct lane *l, struct vqp *q, struct wr *w)
{
    enum vqp_wait wait = WAIT_NOTHING;
    uint32_t reason = w->refused;
    bool over = false;
    const bool usual = peer_is_usual(l, q);
    if (reason == 0 && !usual)
        reason = peer_state(l, q, &wait);
    if (reason == 0 && wait == WAIT_NOTHING)
        wait = lane_sends_may_post(l, q, w, &over, &reason);
    if (reason != 0)
        return q->kept > 0 ? WAIT_OWN : refuse_request(l, q, w, reason);
    if (over) /* acknowledged where it waited to go again */
        end_first(l, q, w, IBV_WC_SUCCESS, 0);
    if (over || wait != WAIT_NOTHING)
        return wait;
    const enum near_way way = usual && near_takes(w)    ? lane_near_ask(l, q)
                              : q->messages->near.waits ? NEAR_WAITS
                                                        : NEAR_BY_DEVICE;
    if (way != NEAR_BY_DEVICE)
        return way == NEAR_GOES ? go_near(l, q, w) : WAIT_OWN;
    if (!(usual && flow_goes(l, q->flow)) && lane_flow_is_stuck(l, q->flow))
        return WAIT_SIGN;
    if (message_is_ahead(l, q)) /* by the initiator that was chosen just now, too */
        return WAIT_NEWS;
    struct physical_qp *p = flow_phys(l, q->flow);
    if (!room_passes(p, w->length) && (wait = lane_room_enter(l, q, p, w)) != WAIT_NOTHING)
        return wait;
    if (!has_turn(l, q, w))
        return WAIT_PASS;
    if ((wait = enter_windows(l, q, p, w)) != WAIT_NOTHING)
        return wait;
    lane_sends_post(l, q, w);
    vqp_sent(q, 1);
    chain_request(l, q, p, w);
    return WAIT_NOTHING;
}

/* No piece goes where not all that is left may. */
static bool may_reach_rest(struct lane *l, struct vqp *q, struct wr *w, uint32_t *reason)
{
    const uint64_t left = cut_of(w)->left;
    w->length += left;
    const enum remote_answer answer = lane_remote_resolve(l, q, w, reason);
    w->length -= left;
    return answer != REMOTE_REFUSED;
}

/* It may be posted but for the windows. */
static __attribute__((noinline)) enum vqp_wait post_piece(struct lane *l, struct vqp *q,
                                                          struct physical_qp *p, struct wr *w)
{
    const uint64_t left = cut_of(w)->left;
    uint32_t reason;
    if (!may_reach_rest(l, q, w, &reason))
        return refuse_request(l, q, w, reason);
    flow_address(l, q->flow, q->peer_slot, w);
    const enum vqp_wait wait = windows_enter(l, q, w);
    if (wait != WAIT_NOTHING)
        return wait;
    post_request(l, q, p, w);
    if ((q->cut = left > 0) && q->state == VQP_CONNECTED)
        lane_vqp_move(q, VQP_CUTTING);
    return WAIT_NOTHING;
}

/* It may be posted but for what others stand behind, and the windows. */
static __attribute__((noinline)) enum vqp_wait post_of_batch(struct lane *l, struct vqp *q,
                                                             struct physical_qp *p, struct wr *w)
{
    enum vqp_wait wait = lane_batch_pace_ask(l, w);
    uint32_t reason;
    if (wait != WAIT_NOTHING)
        return wait;
    if (cut_of(w)->left > 0 && !may_reach_rest(l, q, w, &reason))
        return refuse_request(l, q, w, reason);
    flow_address(l, q->flow, q->peer_slot, w);
    wait = windows_enter(l, q, w);
    if (wait != WAIT_NOTHING)
        return wait;
    post_request(l, q, p, w);
    lane_batch_pace_posted(l, w);
    return WAIT_NOTHING;
}

/* It has ended, and came back to the queue with SENDs before it that went again. */
static enum vqp_wait end_requeued(struct lane *l, struct vqp *q, struct wr *w)
{
    const enum ibv_wc_status status = (enum ibv_wc_status)w->ended;
    if (q->outstanding > 0 || q->kept > 0)
        return WAIT_OWN;
    end_first(l, q, w, status, reason_of_end(status));
    if (status != IBV_WC_SUCCESS)
        enter_error(l, q);
    return WAIT_NOTHING;
}

/* Of a VQP that is in error, or that sends messages: what is not one waits until those before it
 * are acknowledged, unless they are sure of their receives. */
static __attribute__((noinline)) bool try_apart(struct lane *l, struct vqp *q, struct wr *w,
                                                enum vqp_wait *wait)
{
    if (q->state == VQP_ERROR)
        *wait = flush_request(l, q, w);
    else if (w->back == BACK_HELD)
        *wait = end_requeued(l, q, w);
    else if (q->cut || q->messages->bad > 0)
        *wait = WAIT_OWN;
    else if (w->special & SPECIAL_SEND)
        *wait = try_send(l, q, w);
    else if (!lane_sends_let_by(l, q, w))
        *wait = WAIT_OWN;
    else
        return false;
    return true;
}

/* NOTHING: w is posted, or over. Else what q waits for: at a window, or for room, it is in the
 * queue for that, and in the windows before; else in no window. */
static enum vqp_wait try_post(struct lane *l, struct vqp *q, struct wr *w)
{
    enum vqp_wait wait = WAIT_NOTHING;
    uint32_t reason = w->refused;
    bool over = false;
    if (q->state != VQP_CONNECTED && try_apart(l, q, w, &wait))
        return wait;
    if (reason == 0)
        reason = peer_state(l, q, &wait);
    if (reason != 0)
        return refuse_request(l, q, w, reason);
    if (wait != WAIT_NOTHING)
        return wait;
    if (lane_flow_is_stuck(l, q->flow))
        return WAIT_SIGN;
    if (request_is_ahead(l, q)) /* by the initiator that was chosen just now, too */
        return WAIT_PASS;
    struct physical_qp *p = flow_phys(l, q->flow);
    if (!room_passes(p, w->length) && (wait = lane_room_enter(l, q, p, w)) != WAIT_NOTHING)
        return wait;
    if (!has_turn(l, q, w))
        return WAIT_PASS;
    switch (lane_remote_resolve(l, q, w, &reason)) {
    case REMOTE_READING:
        return WAIT_REGION;
    case REMOTE_WAIT:
        return WAIT_ASKING_REGION;
    case REMOTE_REFUSED:
        return refuse_request(l, q, w, reason);
    case REMOTE_OK:
        break;
    }
    /* Resolving may have taken the last slot. */
    if (!lane_physical_qp_has_room(p) && (wait = lane_room_enter(l, q, p, w)) != WAIT_NOTHING)
        return wait;
    if (w->special != 0) {
        wait = try_special(l, q, w, &over);
        if (over || wait != WAIT_NOTHING)
            return wait;
        if (w->special & SPECIAL_CUT)
            return post_piece(l, q, p, w);
        if (w->special & SPECIAL_PIECE)
            return post_of_batch(l, q, p, w);
    }
    flow_address(l, q->flow, q->peer_slot, w);
    if ((wait = windows_enter(l, q, w)) != WAIT_NOTHING) {
        if (w->special & SPECIAL_COPY)
            lane_small_give(l, w);
        return wait;
    }
    post_request(l, q, p, w);
    q->behind += (w->special & SPECIAL_BEHIND) != 0;
    return WAIT_NOTHING;
}

/* w is the first again. At a window or for room it waits already. */
static void wait_with(struct lane *l, struct vqp *q, struct wr *w, enum vqp_wait why)
{
    put_back(q, w);
    if (q->wait == WAIT_NOTHING)
        lane_vqp_wait_for(l, q, why);
}

void lane_vqp_submit(struct lane *l, struct vqp *q, struct wr *w)
{
    if (q->queue.head != NULL) {
        queue_push(&q->queue, w);
        session_count(&q->session->memory->shown.queued, 1);
        return;
    }
    const enum vqp_wait why = try_post(l, q, w);
    if (why != WAIT_NOTHING)
        wait_with(l, q, w, why);
}

/* Some, so that others have theirs in between, also where nothing is posted: what is queued behind
 * a refusal ends at once. One in any case, so that each who is looked at comes nearer. */
void lane_vqp_go_on(struct lane *l, struct vqp *q)
{
    if (q->session->state != SESSION_LIVE) {
        /* Its end takes the queue with it; till then nothing holds the flow, or may count there. */
        lane_windows_desert(l, q);
        return;
    }
    for (uint32_t n = 0; q->queue.head != NULL; n++) {
        /* In a turn for room one more is tried: it joins those who wait there again. */
        if (n == GO_MOST || (n > 0 && l->went >= l->went_most + room_is_turn(l, q))) {
            const bool piece = q->queue.head->special & SPECIAL_PIECE;
            lane_vqp_wait_for(l, q, piece ? WAIT_BATCHES : WAIT_PASS);
            return;
        }
        /* Before it is tried in vain, which takes as long as to post it. */
        if (n > 0 && (q->queue.head->special & SPECIAL_PIECE) &&
            !lane_batch_pace_has_room(l, q->queue.head)) {
            lane_vqp_wait_for(l, q, WAIT_BATCHES);
            return;
        }
        struct wr *w = queue_pop(&q->queue);
        session_count(&q->session->memory->shown.queued, -1);
        if (q->queue.head != NULL)
            wr_prefetch(q->queue.head);
        const uint64_t length = w->length;
        const enum vqp_wait why = try_post(l, q, w);
        if (why != WAIT_NOTHING) {
            wait_with(l, q, w, why);
            return;
        }
        l->did++;
        l->went++;
        if (l->turn_vqp == q)
            lane_room_charge(l, q, length);
    }
}
