/* SPDX-License-Identifier: Apache-2.0 */
/* The responders' ends: a queue pair for whoever asks, until he says good-bye, begins a new life,
 * or turns out to be gone. */
#include <errno.h>
#include <string.h>

#include "internal.h"

enum {
    ASKED_AT_ONCE = 8,
    OF_NODE = 8, /* that a node may have whatever it leaves to others: one for each of its lanes */
};
static const uint64_t ASK_NS = 200000000; /* between two questions */

static const uint8_t in_moves[4][4] = {
    [IN_FREE] = {[IN_RAISING] = 1},
    [IN_RAISING] = {[IN_UP] = 1, [IN_FREE] = 1},
    [IN_UP] = {[IN_BROKEN] = 1, [IN_FREE] = 1},
    [IN_BROKEN] = {[IN_FREE] = 1},
};

static void in_move(struct incoming *n, enum in_state to)
{
    BASE_ASSERT(in_moves[n->state][to]);
    n->c->stats.incoming += to == IN_UP;
    n->c->stats.incoming -= n->state == IN_UP;
    n->state = (uint8_t)to;
    n->c->in_due_ns = 0;
}

static void let_go(struct incoming *n)
{
    n->slot = NULL;
    in_move(n, IN_FREE);
}

static void retire_incoming(struct incoming *n)
{
    connector_slot_leave(n->slot);
    let_go(n);
}

static void accept_request(struct incoming *n)
{
    struct schema_handshake h = connector_answer(&n->request, SCHEMA_HANDSHAKE_ACCEPT);
    h.qpn = n->slot->qp->qpn;
    h.psn = n->psn;
    connector_reply(n->c, &n->request, h);
}

static void refuse_request(struct connector *c, const struct schema_handshake *h,
                           enum schema_handshake_reason reason)
{
    struct schema_handshake answer = connector_answer(h, SCHEMA_HANDSHAKE_REFUSE);
    answer.reason = (uint8_t)reason;
    c->stats.refused++;
    connector_reply(c, h, answer);
}

static bool is_of(const struct incoming *n, const struct schema_handshake *h)
{
    return n->state != IN_FREE && memcmp(n->request.from_gid, h->from_gid, 16) == 0;
}

static struct incoming *find_incoming(struct connector *c, const struct schema_handshake *h)
{
    for (uint32_t i = 0; i < c->config.responders; i++) {
        struct incoming *n = &c->in[i];
        if (is_of(n, h) && n->request.nonce == h->nonce &&
            n->request.from_incarnation == h->from_incarnation)
            return n;
    }
    return NULL;
}

/* The initiator has said good-bye to it, as far as is remembered: so what asks for it is late, or
 * came twice, and would keep a queue pair from others until it had rested. */
static bool was_left(const struct connector *c, const struct schema_handshake *h)
{
    for (uint32_t i = 0; i < c->config.responders; i++) {
        const struct incoming *n = &c->in[i];
        if (n->state == IN_FREE && n->left && n->request.nonce == h->nonce &&
            n->request.from_incarnation == h->from_incarnation &&
            memcmp(n->request.from_gid, h->from_gid, 16) == 0)
            return true;
    }
    return false;
}

/* It is there, and hears by this number, which may be another one than before. */
static void note_heard(struct incoming *n, const struct schema_handshake *h)
{
    n->heard_ns = n->c->now_ns;
    n->request.ud_qpn = h->ud_qpn;
    n->request.ud_qkey = h->ud_qkey;
}

/* ---- requests */

static void on_rtr(void *user, int status)
{
    struct incoming *n = user;
    n->heard_ns = n->c->now_ns;
    if (status != 0 || n->flushed) {
        refuse_request(n->c, &n->request, SCHEMA_HANDSHAKE_FAILED);
        connector_datagram_forget(n->c, n->request.from_gid);
        retire_incoming(n);
        return;
    }
    in_move(n, IN_UP);
    n->c->stats.accepted++;
    accept_request(n);
}

/* Without messages it takes no SEND: this comes back when the queue pair goes to ERR, on devices
 * too that have no event for that (rxe). Where it cannot be posted the initiator's time-outs alone
 * tell, and with messages the device's event does (connector_fatal()). */
static void post_receive(struct incoming *n)
{
    if (n->c->res.srq != NULL)
        return;
    struct fab_recv_wr wr = {.wr_id = n->life}, *bad;
    (void)fab_post_recv(n->slot->qp, &wr, &bad);
}

static void take_request(struct connector *c, const struct schema_handshake *h, struct slot *slot)
{
    struct incoming *n = c->in;
    while (n->state != IN_FREE) /* as many as there are queue pairs */
        n++;
    *n = (struct incoming){
        .c = c, .request = *h, .slot = slot, .heard_ns = c->now_ns, .life = ++c->lives};
    in_move(n, IN_RAISING);
    if (c->fill(c->fill_user, &n->psn, sizeof n->psn) != 0) {
        refuse_request(c, h, SCHEMA_HANDSHAKE_FAILED);
        retire_incoming(n);
        return;
    }
    n->psn &= 0xffffff;
    const struct slot_change rtr = connector_slot_rtr(c, h);
    post_receive(n);
    connector_datagram_expect(c, h->from_gid, h->lid); /* the answer's way, meanwhile */
    connector_slot_raise(slot, &rtr, NULL, on_rtr, n);
}

/* What an earlier life of the initiator has left. False: the message is of an earlier life. */
static bool is_newest_life(struct connector *c, const struct schema_handshake *h)
{
    for (uint32_t i = 0; i < c->config.responders; i++) {
        struct incoming *n = &c->in[i];
        if (!is_of(n, h) || n->request.from_incarnation == h->from_incarnation)
            continue;
        if (n->request.from_incarnation > h->from_incarnation)
            return false;
        c->stats.reclaimed++;
        retire_incoming(n);
    }
    return true;
}

static void ask_used(struct incoming *n)
{
    connector_reply(n->c, &n->request, connector_answer(&n->request, SCHEMA_HANDSHAKE_ASK_USED));
    n->asks++;
    n->next_ns = n->c->now_ns + ASK_NS;
    n->c->in_due_ns = 0;
}

/* A node with as many as its lanes may need has no more than it leaves to others: so one with
 * several connections for each, or one that lies, takes half of them at most, and who has none
 * finds one. */
static bool has_its_share(const struct connector *c, const struct schema_handshake *h)
{
    uint32_t own = 0, left = 0;
    for (uint32_t i = 0; i < c->config.responders; i++) {
        own += is_of(&c->in[i], h);
        left += c->in[i].state == IN_FREE;
    }
    return own >= OF_NODE && own > left;
}

/* None is left: some of those that were heard of longest ago may be gone. In turns, so that all are
 * asked if the first are still there. */
static void look_for_gone(struct connector *c)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < c->config.responders && asked < ASKED_AT_ONCE; i++) {
        struct incoming *n = &c->in[c->in_hand];
        c->in_hand = (c->in_hand + 1) % c->config.responders;
        if (n->state == IN_UP && n->asks == 0) {
            ask_used(n);
            asked++;
        }
    }
}

/* ---- who was told to WAIT. It asks again, each time later than the one before, so that queue
 * pairs would go by chance, and to newcomers first: it is remembered, and answered in its turn. */

static struct waiter *find_waiter(struct connector *c, const struct schema_handshake *h)
{
    for (uint32_t i = 0; i < c->waiters; i++) {
        const struct schema_handshake *r = &c->waiter[i].request;
        if (r->nonce == h->nonce && memcmp(r->from_gid, h->from_gid, 16) == 0)
            return &c->waiter[i];
    }
    return NULL;
}

static void forget_waiter(struct connector *c, struct waiter *w)
{
    const size_t behind = (size_t)(&c->waiter[--c->waiters] - w);
    memmove(w, w + 1, behind * sizeof *w);
}

/* Who has not asked for twice as long as anybody lets pass is not there any more. */
static bool is_silent(const struct connector *c, const struct waiter *w)
{
    return c->now_ns - w->heard_ns > c->config.retry_ns << (CONNECT_MOST_DOUBLINGS + 1);
}

/* Where all places are taken: that of one that is not there any more, or else of the newest of
 * those whose peer had others, if that of who comes has none. NULL: it asks again. */
static struct waiter *find_place(struct connector *c, bool has_others)
{
    struct waiter *most = NULL;
    for (uint32_t i = 0; i < c->waiters; i++) {
        struct waiter *w = &c->waiter[i];
        if (is_silent(c, w))
            return w;
        if (!has_others && w->others > 0 && (most == NULL || w->others >= most->others))
            most = w;
    }
    return most;
}

/* A peer that says more than its part asks again, as all do where there is no room. So who has one
 * address, or a few, keeps nobody out; whose datagrams come from as many as there are places, and
 * again and again, has others get queue pairs by chance. */
static void remember_waiter(struct connector *c, const struct schema_handshake *h)
{
    struct waiter *w = find_waiter(c, h);
    uint32_t of_peer = 0;
    if (w != NULL) {
        w->request = *h;
        w->heard_ns = c->now_ns;
        return;
    }
    for (uint32_t i = 0; i < c->waiters; i++)
        of_peer += memcmp(c->waiter[i].request.from_gid, h->from_gid, 16) == 0;
    if (of_peer == CONNECT_WAITERS_EACH)
        return;
    if (c->waiters == CONNECT_WAITERS) {
        w = find_place(c, of_peer > 0);
        if (w == NULL)
            return;
        forget_waiter(c, w);
    }
    c->waiter[c->waiters++] =
        (struct waiter){.request = *h, .heard_ns = c->now_ns, .others = (uint8_t)of_peer};
}

void connector_incoming_serve(struct connector *c)
{
    while (c->waiters > 0 && c->responders.ready > 0) {
        const struct waiter w = c->waiter[0];
        forget_waiter(c, &c->waiter[0]);
        if (!is_silent(c, &w))
            connector_incoming_request(c, &w.request);
    }
}

void connector_incoming_request(struct connector *c, const struct schema_handshake *h)
{
    struct incoming *known = find_incoming(c, h);
    if (c->config.responders == 0) { /* nobody is told of it who could ask */
        c->stats.dropped++;
        return;
    }
    if (known != NULL) { /* repeated: answered as before */
        note_heard(known, h);
        if (known->state == IN_UP)
            accept_request(known);
        else if (known->state == IN_BROKEN)
            refuse_request(c, h, SCHEMA_HANDSHAKE_FAILED);
        else
            connector_reply(c, h, connector_answer(h, SCHEMA_HANDSHAKE_WAIT));
        return;
    }
    if (h->to_incarnation != c->config.incarnation) {
        refuse_request(c, h, SCHEMA_HANDSHAKE_STALE);
        return;
    }
    if (was_left(c, h) || !is_newest_life(c, h)) {
        c->stats.dropped++;
        return;
    }
    const bool is_full = has_its_share(c, h);
    struct slot *slot = is_full ? NULL : connector_slot_take(&c->responders);
    if (slot != NULL) {
        take_request(c, h, slot);
    } else if (!is_full && connector_slots_may_come(&c->responders)) {
        remember_waiter(c, h);
        connector_reply(c, h, connector_answer(h, SCHEMA_HANDSHAKE_WAIT));
    } else {
        look_for_gone(c);
        refuse_request(c, h, SCHEMA_HANDSHAKE_FULL);
    }
}

void connector_incoming_bye(struct connector *c, const struct schema_handshake *h)
{
    struct incoming *n = find_incoming(c, h);
    struct waiter *w = find_waiter(c, h);
    if (w != NULL)
        forget_waiter(c, w);
    if (n != NULL) {
        retire_incoming(n);
        n->left = true;
    }
    connector_reply(c, h, connector_answer(h, SCHEMA_HANDSHAKE_GONE));
}

/* ---- where the lane hears of messages. Nothing is kept of a question, on either side. */

void connector_set_messages(struct connector *c, uint32_t qpn, uint32_t qkey)
{
    c->messages_qpn = qpn;
    c->messages_qkey = qkey;
}

/* Of another life of this endpoint nothing is said. */
void connector_messages_asked(struct connector *c, const struct schema_handshake *h)
{
    if (h->to_incarnation != c->config.incarnation) {
        c->stats.dropped++;
        return;
    }
    struct schema_handshake answer = connector_answer(h, SCHEMA_HANDSHAKE_MESSAGES);
    answer.messages_qpn = c->messages_qpn;
    answer.messages_qkey = c->messages_qkey;
    connector_reply(c, h, answer);
}

/* ---- */

void connector_incoming_retire(struct connector *c)
{
    for (uint32_t i = 0; i < c->config.responders; i++)
        if (c->in[i].state != IN_FREE)
            retire_incoming(&c->in[i]);
}

void connector_incoming_used(struct connector *c, const struct schema_handshake *h)
{
    struct incoming *n = find_incoming(c, h);
    if (n == NULL) {
        c->stats.dropped++;
        return;
    }
    note_heard(n, h);
    if (n->state != IN_BROKEN)
        n->asks = 0;
}

/* ---- those that broke */

/* Where the device has told the initiator why, that one is about to say good-bye, and knows more
 * than this says: so not at once. */
static void break_incoming(struct incoming *n)
{
    struct connector *c = n->c;
    n->flushed = true;
    if (n->state != IN_UP)
        return;
    in_move(n, IN_BROKEN);
    n->asks = 0;
    n->next_ns = c->now_ns + c->config.retry_ns / 4;
}

/* By its life, since what completes may be of one that is over. */
static void note_flushed(struct connector *c, uint64_t life)
{
    for (uint32_t i = 0; i < c->config.responders; i++)
        if (c->in[i].state != IN_FREE && c->in[i].life == life) {
            break_incoming(&c->in[i]);
            return;
        }
}

void connector_fatal(struct connector *c, const struct fab_qp *qp, uint64_t now_ns)
{
    c->now_ns = now_ns;
    for (uint32_t i = 0; i < c->config.responders; i++)
        if (c->in[i].state != IN_FREE && c->in[i].slot->qp == qp)
            break_incoming(&c->in[i]);
}

void connector_incoming_take(struct connector *c)
{
    struct ibv_wc wc[CONNECTOR_TAKES];
    (void)fab_arm(c->responder_cq, false);
    const int n = fab_poll(c->responder_cq, CONNECTOR_TAKES, wc);
    for (int i = 0; i < n; i++)
        note_flushed(c, wc[i].wr_id);
    if (n == CONNECTOR_TAKES)
        connector_due(c, c->now_ns);
}

/* Says it, each time later than the one before; or leaves the initiator to its time-outs. Returns
 * when the next time is. */
static uint64_t warn_initiator(struct incoming *n)
{
    struct connector *c = n->c;
    if (c->now_ns < n->next_ns)
        return n->next_ns;
    if (n->asks == CONNECT_WARNS) {
        c->stats.reclaimed++;
        connector_slot_reclaim(n->slot);
        let_go(n);
        return CONNECT_NEVER;
    }
    c->stats.broken += n->asks == 0;
    connector_reply(c, &n->request, connector_answer(&n->request, SCHEMA_HANDSHAKE_BROKEN));
    n->next_ns = c->now_ns + (c->config.retry_ns << n->asks++);
    return n->next_ns;
}

/* ---- those that say nothing */

/* Asks, or gives up, when it is time. Returns when the next time is. */
static uint64_t look_after(struct incoming *n)
{
    struct connector *c = n->c;
    const uint64_t due = n->asks == 0 ? n->heard_ns + c->config.idle_ns : n->next_ns;
    if (c->now_ns < due)
        return due;
    if (n->asks < CONNECT_ASKS) {
        ask_used(n);
        return n->next_ns;
    }
    c->stats.reclaimed++;
    connector_slot_reclaim(n->slot);
    let_go(n);
    return CONNECT_NEVER;
}

void connector_incoming_step(struct connector *c)
{
    if (c->now_ns >= c->in_due_ns) { /* 0: something has changed */
        uint64_t next = CONNECT_NEVER;
        for (uint32_t i = 0; i < c->config.responders; i++) {
            uint64_t due = c->in[i].state == IN_UP       ? look_after(&c->in[i])
                           : c->in[i].state == IN_BROKEN ? warn_initiator(&c->in[i])
                                                         : CONNECT_NEVER;
            next = due < next ? due : next;
        }
        c->in_due_ns = next;
    }
    connector_due(c, c->in_due_ns);
}
