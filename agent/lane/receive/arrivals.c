/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/arrivals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fabric/grh.h"
#include "message_state.h"
#include "request/reply.h"
#include "resolve/flow_news.h"
#include "schedule/sends.h"
#include "schedule/vqp.h"
#include "session_state.h"
#include "transmit/lane_events.h"

enum {
    SWEEP = 16,          /* peers, in a millisecond */
    RNR_WAIT_US = 200,   /* for who finds no buffer posted */
    DATAGRAMS_A_PASS = 8 /* datagrams, in a pass */
};

/* ---- memory */

static uint64_t receive_offset(uint32_t place)
{
    return (uint64_t)place * LANE_RECEIVE_BYTES;
}

static uint64_t datagram_offset(const struct lane *l, uint32_t place)
{
    return receive_offset(l->res.messages.receives) + (uint64_t)place * LANE_DATAGRAM_PLACE;
}

static uint8_t *memory_at(const struct lane *l, uint64_t offset)
{
    return (uint8_t *)l->res.messages.memory.addr + offset;
}

static struct ibv_sge piece_at(const struct lane *l, uint64_t offset, uint32_t bytes)
{
    const struct lane_messages *r = &l->res.messages;
    return (struct ibv_sge){.addr = r->iova + offset, .length = bytes, .lkey = r->lkey};
}

static void post_receive(struct lane *l, uint32_t place)
{
    const struct ibv_sge sge = piece_at(l, receive_offset(place), LANE_RECEIVE_BYTES);
    struct fab_recv_wr wr = {
        .wr_id = ARRIVAL_WR_ID(ARRIVAL_RECEIVE, place), .sg_list = &sge, .num_sge = 1};
    struct fab_recv_wr *bad;
    if (fab_post_srq_recv(l->res.messages.srq, &wr, &bad) == 0)
        lane_exchange_posted(&l->messages->exchange, 1);
}

static void post_datagram_receive(struct lane *l, uint32_t place)
{
    const struct ibv_sge sge = piece_at(l, datagram_offset(l, place), LANE_DATAGRAM_PLACE);
    struct fab_recv_wr wr = {
        .wr_id = ARRIVAL_WR_ID(ARRIVAL_DATAGRAM, place), .sg_list = &sge, .num_sge = 1};
    struct fab_recv_wr *bad;
    (void)fab_post_recv(l->res.messages.ud, &wr, &bad);
}

/* ---- making */

static int make_exchange(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    const struct lane_config *c = &l->config;
    struct exchange_config config = {.incarnation = c->incarnation,
                                     .pool = c->pool,
                                     .lid = l->res.fab->caps.lid,
                                     .qpn = r->ud->qpn,
                                     .qkey = r->ud_qkey,
                                     .peers = r->peers,
                                     .receivers = r->streams,
                                     .bound_ns = c->bound_ns + c->slack_ns,
                                     .ask_ns = r->ask_ns,
                                     .idle_ns = 100 * r->ask_ns,
                                     .forget_ns = 60000000000};
    memcpy(config.gid, c->gid, sizeof config.gid);
    const int status = lane_exchange_init(&l->messages->exchange, &config, 0);
    return status == 0 ? lane_ports_init(&l->messages->ports, r->ports, 0) : status;
}

static int make_places(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    struct messages *m = l->messages;
    m->vqp_room = r->vqps;
    m->vqps = calloc(r->vqps, sizeof m->vqps[0]);
    m->arrival_room = r->receives + LANE_DATAGRAMS_IN + LANE_DATAGRAMS_OUT;
    m->arrivals = calloc(m->arrival_room, sizeof m->arrivals[0]);
    m->header_free = calloc(LANE_HEADERS, sizeof m->header_free[0]);
    m->ah = calloc(r->peers, sizeof m->ah[0]);
    m->ah_asked = calloc(r->peers, sizeof m->ah_asked[0]);
    if (m->vqps == NULL || m->arrivals == NULL || m->header_free == NULL || m->ah == NULL ||
        m->ah_asked == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i + 1 < r->vqps; i++)
        m->vqps[i].next_free = i + 2;
    m->free_vqp = 1;
    while (m->header_count < LANE_HEADERS) {
        m->header_free[m->header_count] = m->header_count;
        m->header_count++;
    }
    while (m->send_count < LANE_DATAGRAMS_OUT) {
        m->send_free[m->send_count] = m->send_count;
        m->send_count++;
    }
    return 0;
}

int lane_messages_new(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    if (r->srq == NULL)
        return 0;
    if (r->receives == 0 || r->receives > LANE_RECEIVES_MOST ||
        r->memory.size < lane_messages_bytes(r->receives) || l->config.max_sessions > 1 << 16)
        return -EINVAL;
    l->messages = calloc(1, sizeof *l->messages);
    if (l->messages == NULL)
        return -ENOMEM;
    TAILQ_INIT(&l->messages->actives);
    const int status = make_places(l);
    return status == 0 ? make_exchange(l) : status;
}

void lane_messages_begin(struct lane *l)
{
    const struct lane_messages *r = &l->res.messages;
    uint64_t random[2] = {0};
    (void)l->random_fill(l->random_user, random, sizeof random);
    lane_exchange_seed(&l->messages->exchange, random[0]);
    l->messages->ports.seed = random[1];
    for (uint32_t i = 0; i < r->receives; i++)
        post_receive(l, i);
    for (uint32_t i = 0; i < LANE_DATAGRAMS_IN; i++)
        post_datagram_receive(l, i);
}

void lane_messages_free(struct lane *l)
{
    struct messages *m = l->messages;
    if (m == NULL)
        return;
    lane_exchange_free(&m->exchange);
    lane_ports_free(&m->ports);
    free(m->vqps);
    free(m->arrivals);
    free(m->header_free);
    free(m->ah);
    free(m->ah_asked);
    free(m);
    l->messages = NULL;
}

/* ---- messages */

/* By what a header says: which VQP of a worker's hears it. NULL: none, or none of that tenant. */
static struct vqp *find_vqp(struct lane *l, const struct schema_message *m)
{
    uint32_t session = m->to >> 16 & 0xffff;
    uint32_t index = m->to & 0xffff;
    if (m->kind == SCHEMA_MESSAGE_TO_PORT) {
        const struct port *port =
            lane_port_find(&l->messages->ports, m->to_tenant, (uint32_t)m->to);
        if (port == NULL)
            return NULL;
        session = port->session;
        index = port->vqp;
    }
    if (session >= l->config.max_sessions)
        return NULL;
    struct session *s = &l->sessions[session];
    if (s->state != SESSION_LIVE || s->tenant != m->from_tenant || index >= s->max_vqps)
        return NULL;
    struct vqp *q = &s->vqps[index];
    if (q->messages == NULL ||
        (m->kind == SCHEMA_MESSAGE_TO_VQP && q->messages->sender.name != m->to))
        return NULL;
    return q;
}

static uint64_t count_room(const struct wr *receive)
{
    uint64_t room = 0;
    for (int i = 0; i < receive->fab.num_sge; i++)
        room += receive->sge[i].length;
    return room;
}

/* The worker's memory, at which nobody can keep us waiting. */
static void copy_payload(const struct session *s, const struct wr *receive, const uint8_t *from,
                         uint32_t bytes)
{
    for (int i = 0; bytes > 0; i++) {
        const struct ibv_sge *sge = &receive->sge[i];
        const uint32_t part = bytes < sge->length ? bytes : sge->length;
        memcpy(s->touch[sge->lkey] + sge->addr, from, part);
        from += part;
        bytes -= part;
    }
}

/* It is the next one of its stream. */
static void deliver_message(struct lane *l, struct stream_receiver *h,
                            const struct schema_message *m, const uint8_t *payload)
{
    struct exchange *x = &l->messages->exchange;
    struct vqp *q = find_vqp(l, m);
    if (q == NULL) {
        lane_exchange_fail(x, h, IBV_WC_REM_OP_ERR);
        return;
    }
    struct session *s = q->session;
    struct wr *receive = q->messages->receives.head;
    if (receive == NULL || !lane_session_has_two_places(s)) {
        COUNT(l, messages_refused, 1);
        lane_exchange_refuse(x, h, RNR_WAIT_US);
        return;
    }
    (void)queue_pop(&q->messages->receives);
    if (m->length > count_room(receive)) {
        lane_exchange_fail(x, h, IBV_WC_REM_INV_REQ_ERR);
        lane_session_complete(l, receive, IBV_WC_LOC_LEN_ERR, SCHEMA_REASON_LONG);
        return;
    }
    struct schema_cqe_sender sender = {
        .incarnation = h->from->incarnation, .tenant = m->from_tenant, .vqp = m->stream};
    memcpy(sender.gid, h->from->gid, sizeof sender.gid);
    copy_payload(s, receive, payload, m->length);
    receive->length = m->length;
    lane_session_deliver(l, receive, m->with_imm, m->imm, &sender);
    lane_exchange_took(x, h);
    COUNT(l, messages_received, 1);
}

static void take_message(struct lane *l, const struct arrival *a, uint32_t place)
{
    struct exchange *x = &l->messages->exchange;
    const uint8_t *at = memory_at(l, receive_offset(place));
    struct schema_message m;
    if (!a->ended_well || schema_message_read(at, a->bytes, &m) != 0) {
        lane_exchange_stray(x);
    } else {
        struct stream_receiver *h = lane_exchange_arrive(x, &m, l->now_ns);
        if (h != NULL)
            deliver_message(l, h, &m, at + SCHEMA_MESSAGE_BYTES);
    }
    post_receive(l, place);
}

/* ---- datagrams */

/* A VQP of ours by its name, of that life of an endpoint. NULL: there is none any more. */
static struct vqp_messages *find_messages(struct lane *l, const struct message_peer *c,
                                          uint64_t name)
{
    const uint32_t session = name >> 16 & 0xffff, index = name & 0xffff;
    if (session >= l->config.max_sessions || l->sessions[session].state != SESSION_LIVE ||
        index >= l->sessions[session].max_vqps)
        return NULL;
    struct vqp_messages *t = l->sessions[session].vqps[index].messages;
    return t != NULL && t->sender.name == name && t->sender.to == c ? t : NULL;
}

static void take_notes(struct lane *l, struct message_peer *c, const struct schema_datagram *d)
{
    for (uint32_t i = 0; i < d->notes; i++) {
        const struct schema_note *n = &d->note[i];
        if (n->kind == SCHEMA_NOTE_ASK) {
            lane_exchange_asked(&l->messages->exchange, c, n->stream);
            continue;
        }
        struct vqp_messages *t = find_messages(l, c, n->stream);
        if (t != NULL)
            lane_sends_hear(l, t, n);
    }
}

static void take_datagram(struct lane *l, const struct arrival *a, uint32_t place)
{
    const uint8_t *at = memory_at(l, datagram_offset(l, place));
    struct schema_datagram d;
    if (a->ended_well && a->has_grh && a->bytes > FAB_GRH_BYTES &&
        schema_datagram_read(at + FAB_GRH_BYTES, a->bytes - FAB_GRH_BYTES, &d) == 0 &&
        fab_grh_is(at, d.from_gid, l->config.gid)) {
        struct message_peer *c = lane_exchange_hear(&l->messages->exchange, &d, l->now_ns);
        if (c != NULL) {
            take_notes(l, c, &d);
            if (c->waiters > 0 && lane_credit_left(&c->purse) > 0)
                lane_flows_notify(l, c->slot);
        }
    }
    post_datagram_receive(l, place);
}

static void want_ah(struct lane *l, const struct message_peer *c, uint32_t place)
{
    struct lane_event e = {.kind = LANE_EVENT_WANT_AH, .want_ah = {.tag = place, .lid = c->lid}};
    if (l->messages->ah_asked[place])
        return;
    l->messages->ah_asked[place] = 1;
    memcpy(e.want_ah.gid, c->gid, sizeof e.want_ah.gid);
    lane_event_push(l, &e);
}

/* The handle of a place is its former peer's until that is another one. */
static struct fab_ah *find_ah(struct lane *l, const struct message_peer *c)
{
    const uint32_t place = (uint32_t)(c - l->messages->exchange.all);
    struct fab_ah *ah = l->messages->ah[place];
    if (ah != NULL && memcmp(ah->dgid, c->gid, sizeof c->gid) == 0)
        return ah;
    if (ah != NULL) {
        l->messages->ah[place] = NULL;
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.ah = ah});
    }
    want_ah(l, c, place);
    return NULL;
}

static void send_datagram(struct lane *l, struct message_peer *c, struct fab_ah *ah)
{
    struct messages *m = l->messages;
    const uint32_t place = m->send_free[--m->send_count];
    const uint64_t offset = datagram_offset(l, LANE_DATAGRAMS_IN + place);
    struct schema_datagram d;
    lane_exchange_say(&m->exchange, c, &d);
    const struct ibv_sge sge =
        piece_at(l, offset, (uint32_t)schema_datagram_write(&d, memory_at(l, offset)));
    struct fab_wr wr = {.wr_id = ARRIVAL_WR_ID(ARRIVAL_SENT, place),
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED,
                        .ah = ah,
                        .dest_qpn = c->qpn,
                        .qkey = c->qkey};
    struct fab_wr *bad;
    if (fab_post_send(l->res.messages.ud, &wr, &bad) != 0)
        m->send_free[m->send_count++] = place; /* as one that was lost */
    COUNT(l, datagrams_sent, 1);
}

/* Those for whom there is no handle wait behind the others. */
static void say_all(struct lane *l)
{
    struct messages *m = l->messages;
    struct message_peer *c;
    int n = 0;
    while (n < DATAGRAMS_A_PASS && m->send_count > 0 &&
           (c = lane_exchange_due(&m->exchange)) != NULL) {
        struct fab_ah *ah = c->qpn != 0 ? find_ah(l, c) : NULL;
        n++;
        if (ah != NULL)
            send_datagram(l, c, ah);
        else
            lane_exchange_put_off(&m->exchange, c);
        if (ah == NULL)
            return; /* until its handle comes, or the next look */
    }
    if (n == DATAGRAMS_A_PASS)
        messages_wait(l);
}

/* ---- */

static void set_gauges(struct lane *l)
{
    const struct exchange *x = &l->messages->exchange;
#define SET(what, value)                                                                           \
    atomic_store_explicit(&l->counters.what, (uint64_t)(value), memory_order_relaxed)
    SET(messages_stray, x->strays);
    SET(receives_posted, x->bank.posted);
    SET(credits_granted, x->bank.promised);
    SET(message_peers, x->used);
#undef SET
}

void lane_arrivals_go_on(struct lane *l)
{
    struct messages *m = l->messages;
    l->messages_due = 0;
    for (uint32_t i = 0; i < m->arrived; i++) {
        const struct arrival *a = &m->arrivals[i];
        const uint32_t place = a->what & 0xffffff;
        switch ((enum arrival_kind)(a->what >> 24)) {
        case ARRIVAL_RECEIVE:
            take_message(l, a, place);
            break;
        case ARRIVAL_DATAGRAM:
            take_datagram(l, a, place);
            break;
        case ARRIVAL_SENT:
            m->send_free[m->send_count++] = place;
            break;
        }
    }
    l->did += m->arrived;
    m->arrived = 0;
    say_all(l);
    set_gauges(l);
}

void lane_arrivals_look(struct lane *l)
{
    lane_sends_look(l);
    lane_exchange_sweep(&l->messages->exchange, l->now_ns, SWEEP);
    say_all(l);
    set_gauges(l);
}

void lane_arrivals_take_ah(struct lane *l, uint32_t tag, struct fab_ah *ah)
{
    struct messages *m = l->messages;
    BASE_ASSERT(m != NULL && tag < l->res.messages.peers && m->ah_asked[tag]);
    m->ah_asked[tag] = 0;
    m->ah[tag] = ah;
    messages_wait(l);
}

struct fab_ah *lane_arrivals_give_ah(struct lane *l)
{
    struct messages *m = l->messages;
    for (uint32_t i = 0; m != NULL && i < l->res.messages.peers; i++) {
        struct fab_ah *ah = m->ah[i];
        m->ah[i] = NULL;
        if (ah != NULL)
            return ah;
    }
    return NULL;
}
