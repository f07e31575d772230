/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams, the queue pair that they go by, and the handles of those whom they are for. */
#include "receive/message_datagrams.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "fabric/grh.h"
#include "lane_state.h"
#include "message/one_note.h"
#include "message/self_news.h"
#include "message_state.h"
#include "request/reply.h"
#include "resolve/endpoint.h"
#include "resolve/flow_news.h"
#include "schedule/near_sends.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "transmit/lane_events.h"

enum {
    A_PASS = 8,       /* datagrams */
    DROPS = 64,       /* handles of before, at a look */
    FAILS_DOUBLE = 10 /* times, and a handle is asked for as seldom from then on */
};
static const uint64_t HANDLE_AGAIN_NS = 1000000;

/* ---- the queue pair */

/* Of those that come, and behind them those that go. */
static uint64_t datagram_offset(const struct lane *l, uint32_t place)
{
    const uint64_t first = (uint64_t)l->res.messages.receives * LANE_RECEIVE_BYTES;
    return place < LANE_DATAGRAMS_IN
               ? first + (uint64_t)place * LANE_DATAGRAM_ROOM
               : first + (uint64_t)LANE_DATAGRAMS_IN * LANE_DATAGRAM_ROOM +
                     (uint64_t)(place - LANE_DATAGRAMS_IN) * LANE_DATAGRAM_PLACE;
}

static uint8_t *datagram_at(const struct lane *l, uint32_t place)
{
    return (uint8_t *)l->res.messages.memory.addr + datagram_offset(l, place);
}

static struct ibv_sge piece_at(const struct lane *l, uint32_t place, uint32_t bytes)
{
    const struct lane_messages *r = &l->res.messages;
    return (struct ibv_sge){
        .addr = r->iova + datagram_offset(l, place), .length = bytes, .lkey = r->lkey};
}

/* The control side gets it, once: all that it had is back, or comes too late to be waited for. */
static void tell_broken(struct lane *l)
{
    struct messages *m = l->messages;
    m->ud_state = UD_BROKEN;
    m->ud_life = (uint8_t)((m->ud_life + 1) % ARRIVAL_LIVES); /* what comes yet is of no use */
    lane_event_push(l,
                    &(struct lane_event){.kind = LANE_EVENT_UD_BROKEN, .qp = l->res.messages.ud});
}

static void look_at_failing(struct lane *l)
{
    struct messages *m = l->messages;
    if (m->ud_state != UD_FAILING)
        return;
    const bool has_all = m->ud_in == 0 && m->send_count == LANE_DATAGRAMS_OUT;
    if (has_all || l->now_ns - m->ud_failed_ns >= l->config.bound_ns)
        tell_broken(l);
}

/* Nothing is posted on it any more. What was said and did not arrive is said again by those whom it
 * concerns. */
static void fail_qp(struct lane *l)
{
    struct messages *m = l->messages;
    if (m->ud_state != UD_WORKS)
        return;
    COUNT(l, qp_broken, 1);
    m->ud_state = UD_FAILING;
    m->ud_failed_ns = l->now_ns;
    look_at_failing(l);
}

/* Those that the queue pair does not have. */
static void post_receives(struct lane *l)
{
    struct messages *m = l->messages;
    const uint32_t n = m->ud_unposted_count;
    struct ibv_sge sge[UD_POSTED];
    struct fab_recv_wr wr[UD_POSTED], *bad;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t place = m->ud_unposted[i];
        sge[i] = piece_at(l, place, LANE_DATAGRAM_ROOM);
        wr[i] = (struct fab_recv_wr){.wr_id = ARRIVAL_WR_ID(ARRIVAL_DATAGRAM, m->ud_life, place),
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1};
    }
    const int status = fab_post_recv(l->res.messages.ud, wr, &bad);
    m->ud_in += status == 0 ? n : (uint32_t)(bad - wr);
    m->ud_unposted_count = 0;
    if (status != 0)
        fail_qp(l);
}

/* A few wait for each other: of those that the queue pair has then, more are left than are
 * missing, and what is said and finds none is said again. */
static void post_receive(struct lane *l, uint32_t place)
{
    struct messages *m = l->messages;
    m->ud_unposted[m->ud_unposted_count++] = place;
    if (m->ud_unposted_count == UD_POSTED)
        post_receives(l);
}
static_assert(LANE_DATAGRAMS_IN % UD_POSTED == 0 && LANE_DATAGRAMS_IN >= 4 * UD_POSTED,
              "all are posted at first, and most of them always");

void lane_datagrams_begin(struct lane *l)
{
    struct messages *m = l->messages;
    m->ud_state = UD_WORKS;
    m->ud_in = m->ud_unposted_count = 0;
    m->handle_hand = l->res.messages.peers;
    for (m->send_count = 0; m->send_count < LANE_DATAGRAMS_OUT; m->send_count++) {
        m->send_free[m->send_count] = m->send_count;
        m->handles[m->sent_by[m->send_count]].out = 0; /* what it had is of no use */
    }
    for (uint32_t i = 0; i < LANE_DATAGRAMS_IN && m->ud_state == UD_WORKS; i++)
        post_receive(l, i);
}

/* What waits of the former queue pair is of no use, and its place is the new one's. */
static void drop_former_arrivals(struct messages *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->arrived; i++) {
        const struct arrival a = m->arrivals[(m->arrival_at + i) % m->arrivals_most];
        if (arrival_kind(a.what) == ARRIVAL_RECEIVE)
            m->arrivals[(m->arrival_at + kept++) % m->arrivals_most] = a;
    }
    m->arrived = kept;
}

void lane_datagrams_ready(struct lane *l, struct fab_qp *qp)
{
    const uint32_t hand = l->messages->handle_hand;
    BASE_ASSERT(l->messages->ud_state == UD_BROKEN);
    l->res.messages.ud = qp;
    drop_former_arrivals(l->messages);
    lane_exchange_renumber(&l->messages->exchange, qp->qpn);
    lane_datagrams_begin(l);
    l->messages->handle_hand = hand;
    messages_wait(l);
}

void lane_datagrams_fatal(struct lane *l, const struct fab_qp *qp)
{
    if (l->messages != NULL && qp == l->res.messages.ud)
        fail_qp(l);
}

/* ---- what comes */

/* A VQP of ours by its stream's name. NULL: there is none any more. */
static struct vqp_messages *find_messages(struct lane *l, uint64_t name)
{
    const uint32_t session = name >> 16 & 0xffff, index = name & 0xffff;
    if (session >= l->config.max_sessions || l->sessions[session].state != SESSION_LIVE ||
        index >= l->sessions[session].max_vqps)
        return NULL;
    struct vqp_messages *t = l->sessions[session].vqps[index].messages;
    return t != NULL && t->sender.name == name ? t : NULL;
}

/* Of one of our streams. */
static void take_news(struct lane *l, const struct message_peer *c, const struct schema_note *n)
{
    struct vqp_messages *t = find_messages(l, n->stream);
    if (t != NULL && t->sender.to == c)
        lane_sends_hear(l, t, n);
}

static void take_notes(struct lane *l, struct message_peer *c, const struct schema_datagram *d)
{
    for (uint32_t i = 0; i < d->notes; i++) {
        const struct schema_note *n = &d->note[i];
        if (n->kind == SCHEMA_NOTE_ASK)
            lane_exchange_asked(&l->messages->exchange, c, n->stream);
        else if (n->kind == SCHEMA_NOTE_ENDED)
            lane_exchange_ended(&l->messages->exchange, c, n->stream, l->now_ns);
        else
            take_news(l, c, n);
    }
}

/* Who has waited for it. */
static void spread_credit(struct lane *l, const struct message_peer *c)
{
    if (c->waiters > 0 && lane_credit_left(&c->purse) > 0)
        lane_flows_notify(l, c->slot);
}

/* What has been said to us, by whoever it names. */
static struct message_peer *hear_datagram(struct lane *l, const struct schema_datagram *d)
{
    struct message_peer *c = lane_exchange_hear(&l->messages->exchange, d, l->now_ns);
    if (c == NULL)
        return NULL;
    take_notes(l, c, d);
    spread_credit(l, c);
    return c;
}

/* We tell ourselves nothing by the device: whoever else has queue pairs of this address could say
 * so what no receiver of ours does, of what has not been taken by one. */
static void hear_other(struct lane *l, const struct schema_datagram *d)
{
    if (d->from_incarnation == l->config.incarnation &&
        memcmp(d->from_gid, l->config.gid, sizeof d->from_gid) == 0)
        return;
    struct message_peer *c = hear_datagram(l, d);
    if (c != NULL)
        lane_exchange_learn_one(c, d);
}

/* What is at `at` with its GRH: whether it is as the ones before it of whom the stream that it
 * names is sent to, and was heard. Who that is needs no other lookup. */
static bool hear_usual(struct lane *l, const uint8_t *at, uint32_t bytes)
{
    const uint8_t *d = at + FAB_GRH_BYTES;
    struct schema_note n;
    if (bytes != FAB_GRH_BYTES + SCHEMA_DATAGRAM_ONE_BYTES)
        return false;
    struct vqp_messages *t = find_messages(l, schema_datagram_word(d, SCHEMA_ONE_STREAM));
    struct message_peer *c = t != NULL ? t->sender.to : NULL;
    if (c == NULL || !fab_grh_is(at, d + SCHEMA_DATAGRAM_GID_AT, l->config.gid) ||
        !lane_exchange_hear_one(&l->messages->exchange, c, d, l->now_ns, &n))
        return false;
    lane_sends_hear(l, t, &n);
    spread_credit(l, c);
    return true;
}

static void take_datagram(struct lane *l, const struct arrival *a, uint32_t place)
{
    const uint8_t *at = datagram_at(l, place);
    struct schema_datagram d;
    if (a->has_grh && hear_usual(l, at, a->bytes))
        return;
    if (a->has_grh && a->bytes > FAB_GRH_BYTES &&
        schema_datagram_read(at + FAB_GRH_BYTES, a->bytes - FAB_GRH_BYTES, &d) == 0 &&
        fab_grh_is(at, d.from_gid, l->config.gid))
        hear_other(l, &d);
}

void lane_datagrams_take(struct lane *l, const struct arrival *a)
{
    struct messages *m = l->messages;
    const uint32_t place = arrival_place(a->what);
    if (arrival_life(a->what) != m->ud_life)
        return; /* its queue pair was given back meanwhile */
    if (!a->ended_well)
        fail_qp(l);
    if (arrival_kind(a->what) == ARRIVAL_SENT) {
        messages_sent(m, place);
    } else {
        m->ud_in--;
        if (a->ended_well)
            take_datagram(l, a, place);
        if (m->ud_state == UD_WORKS)
            post_receive(l, place);
    }
    look_at_failing(l);
}

/* ---- handles */

static void drop_handle(struct lane *l, struct peer_handle *h)
{
    if (h->ah != NULL)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.ah = h->ah});
    h->ah = NULL;
}

static void want_handle(struct lane *l, const struct message_peer *c, struct peer_handle *h)
{
    struct lane_event e = {.kind = LANE_EVENT_WANT_AH,
                           .want_ah = {.tag = (uint32_t)(h - l->messages->handles), .lid = c->lid}};
    if (h->asked || l->now_ns < h->again_ns || !lane_may_tell(l))
        return;
    h->asked = 1;
    memcpy(h->gid, c->gid, sizeof h->gid);
    memcpy(e.want_ah.gid, c->gid, sizeof e.want_ah.gid);
    lane_event_push(l, &e);
}

/* The handle of a place is its former peer's until that is another one, and of the former address
 * while that is being left; it is given back when nothing is out by it. NULL: it is asked for, or
 * will be. */
static struct fab_ah *find_handle(struct lane *l, const struct message_peer *c)
{
    const uint32_t place = lane_exchange_place(&l->messages->exchange, c);
    struct peer_handle *h = &l->messages->handles[place];
    const bool is_anothers = !h->asked && memcmp(h->gid, c->gid, sizeof c->gid) != 0;
    const bool is_former = h->ah != NULL && place >= l->messages->handle_hand;
    if ((is_anothers || is_former) && h->out > 0)
        return NULL;
    if (is_anothers || is_former)
        drop_handle(l, h);
    if (is_anothers) {
        h->fails = 0;
        h->again_ns = 0;
    }
    if (h->ah == NULL)
        want_handle(l, c, h);
    return h->ah;
}

/* Of a peer that cannot be resolved it is asked for again, each time later. */
void lane_datagrams_take_ah(struct lane *l, uint32_t tag, struct fab_ah *ah)
{
    struct messages *m = l->messages;
    BASE_ASSERT(m != NULL && tag < l->res.messages.peers && m->handles[tag].asked);
    struct peer_handle *h = &m->handles[tag];
    const bool is_former = h->asked == HANDLE_ASKED_BEFORE;
    h->asked = 0;
    h->ah = ah;
    if (is_former)
        drop_handle(l, h);
    if (ah == NULL) {
        h->again_ns = l->now_ns + (HANDLE_AGAIN_NS << h->fails);
        h->fails += h->fails < FAILS_DOUBLE;
        return;
    }
    h->fails = 0;
    messages_wait(l);
}

struct fab_ah *lane_datagrams_give_ah(struct lane *l)
{
    struct messages *m = l->messages;
    for (uint32_t i = 0; m != NULL && i < l->res.messages.peers; i++) {
        struct fab_ah *ah = m->handles[i].ah;
        m->handles[i].ah = NULL;
        if (ah != NULL)
            return ah;
    }
    return NULL;
}

/* All are of the former address. Those that are asked for come yet, and are not used. */
void lane_datagrams_readdress(struct lane *l)
{
    struct messages *m = l->messages;
    m->handle_hand = 0;
    for (uint32_t i = 0; i < l->res.messages.peers; i++)
        if (m->handles[i].asked)
            m->handles[i].asked = HANDLE_ASKED_BEFORE;
}

/* A few at a time, as paths are (resolve/readdress.c). */
static void drop_former_handles(struct lane *l)
{
    struct messages *m = l->messages;
    for (int n = 0; n < DROPS && m->handle_hand < l->res.messages.peers && lane_may_tell(l) &&
                    m->handles[m->handle_hand].out == 0;
         n++)
        drop_handle(l, &m->handles[m->handle_hand++]);
}

/* ---- numbers */

/* Which is in no record where that has connections: asked for while somebody here sends to it, each
 * time later, for as long as those are patient. */
static void want_number(struct lane *l, struct message_peer *c)
{
    if (c->senders == 0 || !l->res.messages.asks_numbers || l->now_ns < c->number_ns ||
        !lane_may_tell(l))
        return;
    const struct peer *p = &l->peers[c->slot];
    struct lane_event e = {.kind = LANE_EVENT_WANT_NUMBER,
                           .want_number = {.incarnation = c->incarnation,
                                           .ud_qpn = p->ud_qpn,
                                           .ud_qkey = p->ud_qkey,
                                           .lid = p->lid}};
    memcpy(e.want_number.gid, c->gid, sizeof e.want_number.gid);
    c->number_ns = l->now_ns + (HANDLE_AGAIN_NS << c->number_asks);
    c->number_asks += c->number_asks < FAILS_DOUBLE;
    lane_event_push(l, &e);
}

/* What it has said by datagram since is as new. */
void lane_datagrams_take_number(struct lane *l, const struct lane_command *command)
{
    struct message_peer *c = lane_exchange_find(&l->messages->exchange, command->number.gid,
                                                command->number.incarnation);
    if (c == NULL || c->qpn != 0)
        return;
    c->mute = command->number.qpn == 0;
    c->qpn = command->number.qpn;
    c->qkey = command->number.qkey;
    c->number_asks = 0;
    if (c->mute && c->senders > 0)
        lane_flows_notify(l, c->slot);
    messages_wait(l);
}

/* ---- what is said */

/* NULL: it cannot be told anything yet. */
static struct fab_ah *find_way(struct lane *l, struct message_peer *c)
{
    if (c->qpn == 0)
        want_number(l, c);
    return c->qpn != 0 ? find_handle(l, c) : NULL;
}

/* All that c is due to be told. Returns how many bytes. */
static uint32_t write_news(struct lane *l, struct message_peer *c, uint8_t *out)
{
    struct exchange *x = &l->messages->exchange;
    struct schema_datagram d;
    lane_exchange_set_aside(x, c, l->now_ns);
    if (lane_exchange_say_one(x, c, out))
        return SCHEMA_DATAGRAM_ONE_BYTES;
    lane_exchange_say(x, c, &d);
    return (uint32_t)schema_datagram_write(&d, out);
}

static void send_datagram(struct lane *l, struct message_peer *c, struct fab_ah *ah)
{
    struct messages *m = l->messages;
    const uint32_t place = m->send_free[--m->send_count];
    const uint32_t at = LANE_DATAGRAMS_IN + place;
    const struct ibv_sge sge = piece_at(l, at, write_news(l, c, datagram_at(l, at)));
    struct fab_wr wr = {.wr_id = ARRIVAL_WR_ID(ARRIVAL_SENT, m->ud_life, place),
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED,
                        .ah = ah,
                        .dest_qpn = c->qpn,
                        .qkey = c->qkey};
    struct fab_wr *bad;
    const int status = fab_post_send(l->res.messages.ud, &wr, &bad);
    COUNT(l, datagrams_sent, 1);
    if (status == 0) {
        m->sent_by[place] = lane_exchange_place(&m->exchange, c);
        m->handles[m->sent_by[place]].out++;
        return;
    }
    m->send_free[m->send_count++] = place; /* as one that was lost */
    if (status != -ENOMEM && status != -EAGAIN)
        fail_qp(l);
}

/* Needs no datagram, and is heard in the same pass. */
static __attribute__((noinline)) void say_all_to_self(struct lane *l, struct message_peer *c)
{
    struct schema_datagram d;
    lane_exchange_say_self(&l->messages->exchange, c, l->now_ns, &d);
    (void)hear_datagram(l, &d);
}

static void say_to_self(struct lane *l, struct message_peer *c)
{
    struct schema_note n;
    lane_exchange_set_aside(&l->messages->exchange, c, l->now_ns);
    if (!lane_exchange_tell_self(&l->messages->exchange, c, l->now_ns)) {
        say_all_to_self(l, c);
        return;
    }
    while (lane_exchange_take_note(c, &n))
        take_news(l, c, &n);
    spread_credit(l, c);
}

/* Those for whom there is no handle wait behind the others, until it comes, or the next look. */
void lane_datagrams_say(struct lane *l)
{
    struct messages *m = l->messages;
    struct message_peer *c;
    int n = 0, sent = 0;
    for (; n < A_PASS && m->ud_state == UD_WORKS && m->send_count > 0; n++) {
        if ((c = lane_exchange_due(&m->exchange)) == NULL)
            break;
        if (message_peer_is_self(l, c)) {
            say_to_self(l, c);
            sent++;
            continue;
        }
        struct fab_ah *ah = find_way(l, c);
        if (sent == 0 && ah != NULL && sessions_have_news(l))
            lane_sessions_publish(l); /* what workers wait for comes before that */
        if (ah != NULL)
            send_datagram(l, c, ah);
        else
            lane_exchange_put_off(&m->exchange, c);
        sent += ah != NULL;
    }
    if (n == A_PASS && sent > 0)
        messages_wait(l);
}

void lane_datagrams_look(struct lane *l)
{
    look_at_failing(l);
    if (l->messages->handle_hand < l->res.messages.peers)
        drop_former_handles(l);
}
