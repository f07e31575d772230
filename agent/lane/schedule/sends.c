/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/sends.h"

#include <string.h>

#include "base/assert.h"
#include "resolve/endpoint.h"
#include "resolve/flow_news.h"
#include "resolve/liveness.h"
#include "schedule/large_sends.h"
#include "schedule/near_sends.h"
#include "schedule/send_receivers.h"
#include "schedule/wait_queue.h"
#include "schedule/window.h"
#include "schema/peers.h"
#include "session_state.h"
#include "transmit/returned.h"

enum { LOOKS = 64 /* at those that wait, at a time */ };

/* ---- making and ending */

struct vqp_messages *lane_messages_of(struct lane *l, struct vqp *q)
{
    struct messages *m = l->messages;
    const uint32_t share = q->session->tenant_slot + 1;
    if (q->messages != NULL || m == NULL || m->free_vqp == 0 ||
        !lane_places_take(&m->vqp_places, share))
        return q->messages;
    struct vqp_messages *t = &m->vqps[m->free_vqp - 1];
    m->free_vqp = t->next_free;
    *t = (struct vqp_messages){.q = q, .share = share};
    t->aside = (struct hearer_asides){
        .id = ++m->asides, .posted = &t->receives.count, .step_ns = l->now_ns};
    q->messages = t;
    if (q->index >= q->session->vqps_high)
        q->session->vqps_high = q->index + 1;
    return t;
}

static void leave_actives(struct lane *l, struct vqp_messages *t)
{
    if (t->active)
        TAILQ_REMOVE(&l->messages->actives, t, by_active);
    t->active = 0;
}

static void free_messages(struct lane *l, struct vqp_messages *t)
{
    struct messages *m = l->messages;
    lane_places_give(&m->vqp_places, t->share);
    *t = (struct vqp_messages){.next_free = m->free_vqp};
    m->free_vqp = (uint32_t)(t - m->vqps) + 1;
}

void lane_sends_unbind(struct lane *l, struct vqp_messages *t)
{
    t->port_count = 0;
    for (uint32_t n = lane_ports_unbind_all(&l->messages->ports, &t->ports); n > 0; n--)
        lane_places_give(&l->messages->port_places, t->share);
    for (uint32_t guest = t->guests; guest != 0; guest = l->messages->guests.all[guest - 1].next)
        lane_exchange_guest_gone(&l->messages->exchange, guest);
    for (uint32_t n = lane_guests_remove_all(&l->messages->guests, &t->guests); n > 0; n--)
        lane_places_give(&l->messages->guest_places, t->share);
}

void lane_sends_end(struct lane *l, struct vqp *q)
{
    struct vqp_messages *t = q->messages;
    q->list_status = IBV_WC_SUCCESS;
    if (t == NULL)
        return;
    BASE_ASSERT(t->receives.head == NULL);
    lane_sends_unbind(l, t);
    lane_large_send_end(l, q);
    lane_sender_end(&l->messages->exchange, &t->sender);
    leave_actives(l, t);
    lane_near_leave(l, t);
    queue_append(&q->session->flushing, &t->kept);
    q->kept = 0;
    q->messages = NULL;
    t->aside.id = 0;
    t->q = NULL;
    if (t->out == 0)
        free_messages(l, t);
}

/* ---- whom */

/* The name of a VQP: where it is, and what only those know whom it has written to. */
static uint64_t make_name(struct lane *l, const struct vqp *q)
{
    uint32_t random = 0;
    (void)l->random_fill(l->random_user, &random, sizeof random);
    return (uint64_t)(random | 1) << 32 | (uint64_t)(q->session->id & 0xffff) << 16 | q->index;
}

void lane_sends_forget_address(struct lane *l, struct vqp *q)
{
    struct vqp_messages *t = q->messages;
    q->list_status = IBV_WC_SUCCESS;
    if (t == NULL)
        return;
    BASE_ASSERT(t->out == 0 && q->behind == 0 && t->kept.head == NULL);
    lane_sender_end(&l->messages->exchange, &t->sender);
    leave_actives(l, t);
    t->sender = (struct stream_sender){.name = 0};
    t->near = (struct near_sends){.waits = 0};
    t->like = (struct schema_message_like){.word = {0}};
    t->roomless_ns = 0;
    t->failed = t->rewinds = t->sought = t->to_kind = 0;
    t->has_larges = t->let_go = 0;
    t->large_end = t->large_generation = 0;
}

bool lane_sends_address(struct lane *l, struct vqp *q, const struct schema_sq_desc *d)
{
    struct vqp_messages *t = lane_messages_of(l, q);
    if (t == NULL)
        return false;
    lane_sends_forget_address(l, q);
    t->sender.name = make_name(l, q);
    t->to_kind = (uint8_t)d->send_to.kind;
    t->to = d->send_to.to;
    t->secret = d->send_to.kind == SCHEMA_SEND_TO_COUNTER ? d->send_to.secret : 0;
    t->to_tenant = d->send_to.kind != SCHEMA_SEND_TO_PORT ? 0
                   : d->send_to.tenant != 0               ? (uint32_t)d->send_to.tenant
                                                          : q->session->tenant;
    return true;
}

/* The UD number in the record of an endpoint that has connections is where it hears of these: it is
 * asked there. */
static bool hears_messages(const struct lane *l, const struct peer *p)
{
    return p->ud_qpn != 0 && (!p->has_rc || l->res.messages.asks_numbers);
}

/* ---- posting */

enum vqp_wait lane_sends_may_post(struct lane *l, struct vqp *q, struct wr *w, bool *over,
                                  uint32_t *reason)
{
    struct vqp_messages *t = q->messages;
    struct stream_sender *k = &t->sender;
    if (t->rewinds)
        return WAIT_OWN;
    if (wr_is_numbered(w) && (int32_t)(w->vkey - k->out.first) < 0) {
        *over = q->outstanding == 0 && t->kept.head == NULL;
        COUNT(l, messages_sent, *over);
        return *over ? WAIT_NOTHING : WAIT_OWN;
    }
    *reason = t->failed;
    if (*reason == 0 && !hears_messages(l, &l->peers[q->peer_slot]))
        *reason = SCHEMA_REASON_MESSAGES;
    if (*reason != 0)
        return WAIT_NOTHING;
    messages_join_actives(l, t);
    enum vqp_wait wait = lane_send_find_receiver(l, q, reason);
    if (*reason == 0 && k->to != NULL && k->to->mute)
        *reason = SCHEMA_REASON_MESSAGES;
    if (wait != WAIT_NOTHING || *reason != 0)
        return wait;
    if (!wr_is_numbered(w)) {
        if (!lane_stream_out_has_room(&k->out))
            return WAIT_OWN;
        w->vkey = lane_stream_out_add(&k->out);
        w->remote_addr |= SEND_NUMBERED;
    }
    BASE_ASSERT(w->vkey == k->out.next);
    if (!lane_stream_out_may_post(&k->out, messages_clock(l)))
        return WAIT_RECEIVER;
    if (!large_sends_let(t, w))
        return WAIT_OWN;
    if (w->special & SPECIAL_LARGE) {
        if (q->behind > 0)
            return WAIT_OWN;
        wait = lane_large_send_may_post(l, q, w, messages_clock(l), reason);
        if (wait != WAIT_NOTHING || *reason != 0)
            return wait;
    }
    if (!lane_places_may_take(&l->messages->header_places, t->share))
        return WAIT_SMALL;
    const bool waited = k->wait_ns != 0;
    if (lane_exchange_has_credit(&l->messages->exchange, k, l->now_ns))
        return WAIT_NOTHING;
    k->wait_ns = waited ? k->wait_ns : messages_clock(l);
    messages_wait(l);
    return WAIT_CREDIT;
}

/* ---- coming back */

bool lane_sends_back(struct lane *l, struct wr *w, bool broke)
{
    struct messages *m = l->messages;
    struct vqp_messages *t = messages_of_wr(w);
    m->header_free[m->header_count++] = w->index;
    lane_places_give(&m->header_places, t->share);
    l->changed |= l->wanting;
    t->out--;
    lane_exchange_credit_back(&m->exchange, (uint32_t)w->fab.remote_addr,
                              (uint32_t)(w->fab.swap >> 32), (uint32_t)w->fab.swap, broke,
                              l->now_ns);
    if (t->q != NULL)
        return true;
    if (t->out == 0)
        free_messages(l, t);
    return false;
}

static struct wr *pop_kept(struct vqp_messages *t)
{
    struct wr *w = queue_pop(&t->kept);
    t->q->kept--;
    t->bad -= w->back == BACK_HELD && w->ended != IBV_WC_SUCCESS;
    return w;
}

/* All before it are over. */
static void end_held(struct lane *l, struct vqp_messages *t, struct wr *w)
{
    const enum ibv_wc_status status = (enum ibv_wc_status)w->ended;
    request_over(l, w, status, reason_of_end(status));
    if (status != IBV_WC_SUCCESS)
        lane_vqp_fail(l, t->q);
}

/* Those that are acknowledged are over, and what was held behind these. */
static void drain_kept(struct lane *l, struct vqp_messages *t)
{
    const bool any = t->kept.head != NULL;
    while (t->kept.head != NULL) {
        if (t->kept.head->back == BACK_HELD) {
            end_held(l, t, pop_kept(t));
            continue;
        }
        if ((int32_t)(t->kept.head->vkey - t->sender.out.first) >= 0)
            break;
        COUNT(l, messages_sent, 1);
        request_over(l, pop_kept(t), IBV_WC_SUCCESS, 0);
    }
    if (t->sender.out.first == t->sender.out.end)
        leave_actives(l, t);
    if (any && vqp_names_flow(t->q))
        lane_flow_notify(l, t->q->flow);
}

/* Whether a SEND with that number comes behind what is kept there. */
static bool is_before(const struct wr *kept, uint32_t number)
{
    return kept->back == BACK_HELD || (int32_t)(kept->vkey - number) < 0;
}

/* Most often it is the last. */
static void insert_kept(struct vqp_messages *t, struct wr *w)
{
    struct wr *before = NULL;
    if (t->kept.tail != NULL && is_before(t->kept.tail, w->vkey)) {
        queue_push(&t->kept, w);
        return;
    }
    for (struct wr *at = t->kept.head; at != NULL && is_before(at, w->vkey); at = at->next)
        before = at;
    if (before == NULL) {
        queue_push_front(&t->kept, w);
        return;
    }
    queue_insert_behind(&t->kept, before, w);
}

/* Newest first, so that the oldest is the first of the queue. */
static void take_kept_back(struct lane *l, struct vqp_messages *t)
{
    struct wr *reversed = NULL, *next;
    for (struct wr *w = t->kept.head; w != NULL; w = next) {
        next = w->next;
        w->next = reversed;
        reversed = w;
    }
    t->kept = (struct wr_queue){.head = NULL};
    t->q->kept = 0;
    t->rewinds = 0;
    t->bad = 0;
    for (struct wr *w = reversed; w != NULL; w = next) {
        next = w->next;
        lane_vqp_take_back(l, t->q, w);
    }
}

void lane_sends_rewind(struct lane *l, struct vqp_messages *t)
{
    t->rewinds = 1;
    lane_near_leave(l, t);
    drain_kept(l, t);
    if (t->out + t->q->behind > 0 || !t->rewinds) /* ended: what was held had failed */
        return;
    take_kept_back(l, t);
    if (vqp_names_flow(t->q))
        lane_flow_notify(l, t->q->flow);
}

void lane_sends_go_on(struct lane *l, struct vqp_messages *t)
{
    if (t->rewinds)
        lane_sends_rewind(l, t);
    else
        drain_kept(l, t);
}

/* Most often its acknowledgement is still to come: then nothing else can go on for it. */
void lane_sends_keep(struct lane *l, struct wr *w)
{
    struct vqp_messages *t = messages_of_wr(w);
    insert_kept(t, w);
    t->q->kept++;
    if (t->rewinds || t->q->queue.head != NULL || t->kept.head->back == BACK_HELD ||
        (int32_t)(t->kept.head->vkey - t->sender.out.first) < 0)
        lane_sends_go_on(l, t);
}

struct wr *lane_sends_take_before(struct vqp_messages *t, const struct wr *w)
{
    const bool is_none = t->kept.head == NULL || (t->kept.head->special & SPECIAL_LARGE) ||
                         ((w->special & SPECIAL_SEND) && !is_before(t->kept.head, w->vkey));
    return is_none ? NULL : pop_kept(t);
}

void lane_sends_lost(struct lane *l, struct wr *w)
{
    struct vqp_messages *t = messages_of_wr(w);
    lane_stream_out_lost(&t->sender.out, w->vkey);
    vqp_lost_send(t->q);
    if (t->rewinds) /* which may have waited for this one */
        lane_sends_rewind(l, t);
}

/* ---- what goes behind */

/* Each that is not acknowledged finds a receive that is set aside for it, or needs none. */
static bool are_sure(const struct lane *l, const struct vqp_messages *t)
{
    const struct stream_sender *k = &t->sender;
    if (t->to_kind == SCHEMA_SEND_TO_COUNTER)
        return k->known;
    return (int32_t)(k->sure - k->out.next) >= 0 && l->now_ns < k->sure_ns;
}

bool lane_sends_let_by(struct lane *l, struct vqp *q, struct wr *w)
{
    struct vqp_messages *t = q->messages;
    const bool is_first = q->kept == 0 && t->out == 0;
    const bool is_apart =
        w->refused != 0 || (w->special & (SPECIAL_PIECE | SPECIAL_BATCH | SPECIAL_CUT)) != 0;
    if (is_first && q->behind == 0)
        return true;
    if (!is_first && t->sender.to != NULL && !is_apart && t->to_kind != SCHEMA_SEND_TO_COUNTER)
        lane_sender_is_before(&l->messages->exchange, t->sender.to, l->now_ns);
    if (is_apart || t->rewinds || t->bad > 0 || t->near.waits ||
        (!is_first && (t->sender.out.one_by_one || large_sends_before(t, t->sender.out.next) > 0 ||
                       !are_sure(l, t)))) {
        lane_windows_desert(l, q);
        return false;
    }
    w->special |= SPECIAL_BEHIND;
    return true;
}

struct vqp_messages *lane_sends_by_is_back(struct wr *w)
{
    struct vqp *q = vqp_of(w);
    w->special &= (uint16_t)~SPECIAL_BEHIND;
    BASE_ASSERT(q->behind > 0);
    q->behind--;
    return q->gen == w->vqp_gen ? q->messages : NULL;
}

void lane_sends_hold(struct lane *l, struct vqp_messages *t, struct wr *w,
                     enum ibv_wc_status status)
{
    w->back = BACK_HELD;
    w->ended = (uint8_t)status;
    t->bad += status != IBV_WC_SUCCESS;
    queue_push(&t->kept, w);
    t->q->kept++;
    lane_sends_go_on(l, t);
}

/* ---- what is heard */

void lane_sends_stop(struct lane *l, struct vqp_messages *t)
{
    leave_actives(l, t);
    lane_sender_stop(&l->messages->exchange, &t->sender);
    lane_sends_rewind(l, t);
}

static void fail_sends(struct lane *l, struct vqp_messages *t, uint32_t reason)
{
    if (t->failed == 0)
        t->failed = (uint8_t)reason;
    if (reason == SCHEMA_REASON_PEER_DOWN && t->sender.to != NULL)
        t->sender.to->qpn = 0; /* both ends may have another at once: it is found anew */
    lane_sends_stop(l, t);
    if (!vqp_names_flow(t->q))
        return;
    if (reason == SCHEMA_REASON_PEER_DOWN) /* or it has another life, and other queue pairs */
        lane_flow_look_up_again(l, t->q->flow);
    lane_flow_notify(l, t->q->flow);
}

static uint32_t reason_of(uint8_t status)
{
    switch ((enum ibv_wc_status)status) {
    case IBV_WC_REM_INV_REQ_ERR:
        return SCHEMA_REASON_LONG;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return SCHEMA_REASON_RECEIVER;
    default:
        return SCHEMA_REASON_PORT;
    }
}

/* That it READs a message which is in no memory of the sender's, its receiver may say for ever. */
void lane_sends_hear(struct lane *l, struct vqp_messages *t, const struct schema_note *n)
{
    const struct schema_note taken = {n->stream, n->number, .kind = SCHEMA_NOTE_TAKEN};
    uint8_t failed = 0;
    if (n->kind == SCHEMA_NOTE_READS && !lane_large_send_is_first(t))
        n = &taken;
    const uint32_t before = t->sender.out.next;
    COUNT(l, messages_rnr, n->kind == SCHEMA_NOTE_REFUSED);
    const int over = lane_sender_hear(&t->sender, n, messages_clock(l), &failed);
    if (over < 0)
        return; /* its peer's agent says what cannot be */
    if (over > 0)
        large_sends_progress(t, messages_clock(l));
    lane_sender_hear_aside(&l->messages->exchange, &t->sender, n);
    if (failed != 0) {
        lane_large_send_let_go(t);
        fail_sends(l, t, reason_of(failed));
        return;
    }
    if ((int32_t)(t->sender.out.next - before) < 0)
        lane_sends_rewind(l, t);
    else
        lane_sends_go_on(l, t);
}

/* A sender that gets no credit has an end as others have: its peer says nothing, or gives none; or
 * there is no room here to know it. */
static uint32_t find_creditless(const struct lane *l, const struct vqp_messages *t,
                                const struct stream_patience *patience)
{
    const struct stream_sender *k = &t->sender;
    const uint64_t most_ns = lane_stream_patience_ns(patience), clock_ns = messages_clock(l);
    if (t->roomless_ns != 0 && clock_ns - t->roomless_ns >= patience->refused_ns)
        return SCHEMA_REASON_ENDPOINTS;
    if (k->wait_ns == 0)
        return 0;
    const uint64_t waits_ns = clock_ns - k->wait_ns;
    if (waits_ns >= most_ns && l->now_ns - k->to->heard_ns >= most_ns)
        return SCHEMA_REASON_PEER_DOWN;
    return waits_ns >= most_ns && waits_ns >= patience->refused_ns ? SCHEMA_REASON_RECEIVER : 0;
}

static void look_at(struct lane *l, struct vqp_messages *t)
{
    const struct lane_messages *r = &l->res.messages;
    const struct stream_patience patience = {
        .ask_ns = r->ask_ns, .questions = r->questions, .refused_ns = r->refused_ns};
    const uint32_t creditless = find_creditless(l, t, &patience);
    const bool is_late = lane_large_send_is_late(l, t, messages_clock(l));
    if (creditless != 0 || is_late) {
        fail_sends(l, t, creditless != 0 ? creditless : SCHEMA_REASON_RECEIVER);
        return;
    }
    lane_send_seek_receiver(l, t, &patience);
    uint64_t due_ns;
    switch (lane_stream_out_look(&t->sender.out, &patience, messages_clock(l), &due_ns)) {
    case STREAM_WAITS:
        if (t->q->queue.head != NULL && vqp_names_flow(t->q))
            lane_flow_notify(l, t->q->flow);
        return;
    case STREAM_ASKS:
        lane_sender_ask(&l->messages->exchange, &t->sender);
        messages_wait(l);
        return;
    case STREAM_GONE:
        fail_sends(l, t, SCHEMA_REASON_PEER_DOWN);
        return;
    case STREAM_STARVED:
        fail_sends(l, t, SCHEMA_REASON_RECEIVER);
        return;
    }
}

void lane_sends_look(struct lane *l)
{
    struct messages *m = l->messages;
    struct vqp_messages *last = TAILQ_LAST(&m->actives, active_vqps);
    (void)messages_clock(l); /* each time, so that it knows how long the lane was away */
    for (int n = 0; n < LOOKS && !TAILQ_EMPTY(&m->actives); n++) {
        struct vqp_messages *t = TAILQ_FIRST(&m->actives);
        TAILQ_REMOVE(&m->actives, t, by_active);
        TAILQ_INSERT_TAIL(&m->actives, t, by_active);
        const bool ends = t == last;
        look_at(l, t);
        if (ends)
            return;
    }
}

void lane_sends_readdress(struct lane *l)
{
    struct messages *m = l->messages;
    for (uint32_t i = 0; i < m->vqp_count; i++) {
        struct vqp_messages *t = &m->vqps[i];
        if (t->q == NULL || t->sender.name == 0)
            continue;
        if (t->sender.out.posted != t->sender.out.first) {
            fail_sends(l, t, SCHEMA_REASON_STALE_PEER);
            continue;
        }
        lane_sender_address(&m->exchange, &t->sender, NULL);
        t->sender.name = make_name(l, t->q);
        t->sender.known = 0;
        lane_sender_unsure(&t->sender);
    }
}
