/* SPDX-License-Identifier: Apache-2.0 */
/* The initiators' ends: asking, until the peer has answered or said nothing for long; raising the
 * queue pair; telling the peer when it is over. */
#include <errno.h>
#include <string.h>

#include "internal.h"

enum {
    TOLD_AT_ONCE = 32,
    SPEAKS = 2 /* tries after which a peer is one that does not answer */
};

static const uint8_t out_moves[6][6] = {
    [OUT_FREE] = {[OUT_QUEUED] = 1},
    [OUT_QUEUED] = {[OUT_ASKING] = 1, [OUT_FREE] = 1},
    [OUT_ASKING] = {[OUT_RAISING] = 1, [OUT_LEAVING] = 1},
    [OUT_RAISING] = {[OUT_UP] = 1, [OUT_LEAVING] = 1},
    [OUT_UP] = {[OUT_LEAVING] = 1},
    [OUT_LEAVING] = {[OUT_FREE] = 1},
};

static void out_move(struct outgoing *o, enum out_state to)
{
    BASE_ASSERT(out_moves[o->state][to]);
    o->c->stats.outgoing += to == OUT_UP;
    o->c->stats.outgoing -= o->state == OUT_UP;
    o->c->busy += to != OUT_UP && to != OUT_FREE;
    o->c->busy -= o->state != OUT_UP && o->state != OUT_FREE;
    o->c->broken -= o->broken == END_BROKEN;
    o->broken = END_WHOLE;
    o->state = (uint8_t)to;
}

static void send_handshake(struct outgoing *o, struct schema_handshake h)
{
    h.nonce = o->nonce;
    h.to_incarnation = o->peer.incarnation;
    connector_datagram_send(o->c, o->peer.gid, o->peer.lid, o->peer.ud_qpn, o->peer.ud_qkey, h);
}

/* When the next try is, each later than the one before. */
static void schedule_retry(struct outgoing *o)
{
    uint32_t doublings = o->tries < CONNECT_MOST_DOUBLINGS ? o->tries : CONNECT_MOST_DOUBLINGS;
    o->next_ns = o->c->now_ns + (o->c->config.retry_ns << doublings);
    o->tries++;
    connector_due(o->c, o->next_ns);
}

static void send_request(struct outgoing *o)
{
    send_handshake(o, (struct schema_handshake){.kind = SCHEMA_HANDSHAKE_REQUEST,
                                                .qpn = o->slot->qp->qpn,
                                                .psn = o->psn});
    o->c->stats.requests++;
    schedule_retry(o);
}

/* The peer may hold a queue pair for it. */
static void say_bye(struct outgoing *o)
{
    o->slot = NULL;
    o->tries = 0;
    out_move(o, OUT_LEAVING);
    send_handshake(o, (struct schema_handshake){.kind = SCHEMA_HANDSHAKE_BYE});
    schedule_retry(o);
}

/* What was posted may be repeated until its queue pair is destroyed, or else for as long as any
 * request is. The peer's does not rest for that after a BYE, so that it hears none before. */
static void say_bye_late(struct outgoing *o)
{
    const struct connector_config *config = &o->c->config;
    o->slot = NULL;
    o->tries = 0;
    out_move(o, OUT_LEAVING);
    o->next_ns =
        o->c->now_ns + fab_bound_ns(&o->c->res.fab->caps, config->timeout, config->retry_cnt);
}

static void leave_slot(struct outgoing *o)
{
    if (o->state == OUT_UP)
        connector_slot_leave(o->slot);
    else
        connector_slot_return(o->slot);
    say_bye(o);
}

static void fail_outgoing(struct outgoing *o, int status)
{
    struct connector_event e = {.tag = o->tag, .status = status};
    o->c->stats.failed++;
    if (status == -ETIMEDOUT)
        connector_datagram_forget(o->c, o->peer.gid);
    connector_event_push(o->c, &e);
    leave_slot(o);
}

/* ---- asking */

/* A free one, or of those that only say good-bye the one that has done so most often. Never NULL:
 * there are more than can be asked for and be up at a time. */
static struct outgoing *free_one(struct connector *c)
{
    struct outgoing *best = NULL;
    for (uint32_t i = 0; i < c->outs; i++) {
        struct outgoing *o = &c->out[i];
        if (o->state == OUT_FREE)
            return o;
        if (o->state == OUT_LEAVING && (best == NULL || o->tries > best->tries))
            best = o;
    }
    BASE_ASSERT(best != NULL);
    out_move(best, OUT_FREE);
    return best;
}

void connector_connect(struct connector *c, const struct connector_peer *peer, uint32_t tag)
{
    BASE_ASSERT(c->wanted < c->config.wanted);
    struct outgoing *o = free_one(c);
    c->wanted++;
    *o = (struct outgoing){.c = c, .tag = tag, .peer = *peer};
    out_move(o, OUT_QUEUED);
    *c->queue_tail = o;
    c->queue_tail = &o->next;
}

static bool draw_nonce(struct outgoing *o)
{
    struct connector *c = o->c;
    if (c->fill(c->fill_user, &o->nonce, sizeof o->nonce) != 0 ||
        c->fill(c->fill_user, &o->psn, sizeof o->psn) != 0)
        return false;
    o->nonce |= o->nonce == 0;
    o->psn &= 0xffffff;
    return true;
}

/* One more handshake, if a queue pair is ready. */
static bool start_one(struct connector *c)
{
    struct outgoing *o = c->queue;
    struct slot *slot = connector_slot_take(&c->initiators);
    if (slot == NULL)
        return false;
    c->queue = o->next;
    if (c->queue == NULL)
        c->queue_tail = &c->queue;
    o->slot = slot;
    o->began_ns = o->heard_ns = c->now_ns;
    bool drawn = draw_nonce(o);
    out_move(o, OUT_ASKING);
    if (drawn)
        send_request(o);
    else
        fail_outgoing(o, -EIO);
    return true;
}

static void ask_again(struct outgoing *o)
{
    struct connector *c = o->c;
    if (c->now_ns - o->heard_ns >= c->config.silence_ns)
        fail_outgoing(o, o->full ? -EBUSY : -ETIMEDOUT);
    else if (c->now_ns - o->began_ns >= CONNECT_PATIENCE * c->config.silence_ns)
        fail_outgoing(o, -EBUSY);
    else
        send_request(o);
}

static void say_bye_again(struct outgoing *o)
{
    if (o->tries >= CONNECT_BYES) {
        out_move(o, OUT_FREE); /* it will ask some day, or begin anew */
        return;
    }
    send_handshake(o, (struct schema_handshake){.kind = SCHEMA_HANDSHAKE_BYE});
    schedule_retry(o);
}

/* A peer that does not answer does not keep those behind it waiting: it is not counted. */
static bool is_under_way(const struct outgoing *o)
{
    return o->state == OUT_RAISING || (o->state == OUT_ASKING && o->tries <= SPEAKS);
}

void connector_outgoing_renumbered(struct connector *c)
{
    c->untold = CONNECT_TELLS * c->outs;
    c->tell_ns = 0;
}

/* Those of a connection that is up, who would ask after it by the former number: a few at a time,
 * and each once at a time. Who misses all of it takes it for gone, and is asked anew. */
static void tell_number(struct connector *c)
{
    uint32_t told = 0;
    if (c->untold == 0)
        return;
    if (c->now_ns >= c->tell_ns) {
        do {
            struct outgoing *o = &c->out[--c->untold % c->outs];
            if (o->state != OUT_UP)
                continue;
            send_handshake(o, (struct schema_handshake){.kind = SCHEMA_HANDSHAKE_USED});
            told++;
        } while (told < TOLD_AT_ONCE && c->untold % c->outs != 0);
        c->tell_ns = c->now_ns + c->config.retry_ns;
    }
    if (c->untold > 0)
        connector_due(c, c->tell_ns);
}

void connector_outgoing_step(struct connector *c)
{
    tell_number(c);
    c->asking = 0;
    for (uint32_t i = 0; c->busy > 0 && i < c->outs; i++) {
        struct outgoing *o = &c->out[i];
        bool is_due = c->now_ns >= o->next_ns;
        if (o->state == OUT_ASKING && is_due)
            ask_again(o);
        else if (o->state == OUT_LEAVING && is_due)
            say_bye_again(o);
        else if (o->state == OUT_ASKING || o->state == OUT_LEAVING)
            connector_due(c, o->next_ns);
        c->asking += is_under_way(o);
    }
    while (c->queue != NULL && c->asking < c->config.handshakes && start_one(c))
        c->asking++;
}

/* ---- what the peer says */

/* Ours, of this peer and the incarnation that it was asked as; or NULL. It hears by this number
 * now. */
static struct outgoing *find_outgoing(struct connector *c, const struct schema_handshake *h)
{
    for (uint32_t i = 0; i < c->outs; i++) {
        struct outgoing *o = &c->out[i];
        if (o->state > OUT_QUEUED && o->nonce == h->nonce &&
            memcmp(o->peer.gid, h->from_gid, 16) == 0) {
            o->peer.ud_qpn = h->ud_qpn;
            o->peer.ud_qkey = h->ud_qkey;
            return o;
        }
    }
    return NULL;
}

static void on_raised(void *user, int status)
{
    struct outgoing *o = user;
    struct connector_event e = {.tag = o->tag, .qp = o->slot->qp};
    if (status != 0) {
        connector_datagram_forget(o->c, o->peer.gid);
        fail_outgoing(o, status == -EHOSTUNREACH || status == -ETIMEDOUT ? -EHOSTUNREACH : -EIO);
        return;
    }
    out_move(o, OUT_UP);
    o->c->stats.connected++;
    connector_event_push(o->c, &e);
}

static struct slot_change to_rts(const struct outgoing *o, const struct schema_handshake *answer)
{
    const struct connector_config *config = &o->c->config;
    const uint32_t own = o->c->res.fab->caps.max_rd_atomic;
    return (struct slot_change){
        .attr = {.qp_state = IBV_QPS_RTS,
                 .timeout = config->timeout,
                 .retry_cnt = config->retry_cnt,
                 .rnr_retry = config->rnr_retry,
                 .sq_psn = o->psn,
                 .max_rd_atomic = answer->rd_atomic > own ? (uint8_t)own : answer->rd_atomic},
        .mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC};
}

void connector_outgoing_accepted(struct connector *c, const struct schema_handshake *h)
{
    struct outgoing *o = find_outgoing(c, h);
    if (o == NULL) { /* given up, or of a life before this one: it holds a queue pair for nobody */
        c->stats.dropped++;
        connector_reply(c, h, connector_answer(h, SCHEMA_HANDSHAKE_BYE));
        return;
    }
    if (o->state != OUT_ASKING) /* repeated */
        return;
    const struct slot_change rtr = connector_slot_rtr(c, h), rts = to_rts(o, h);
    out_move(o, OUT_RAISING);
    connector_slot_raise(o->slot, &rtr, &rts, on_raised, o);
}

void connector_outgoing_must_wait(struct connector *c, const struct schema_handshake *h)
{
    struct outgoing *o = find_outgoing(c, h);
    if (o != NULL && o->state == OUT_ASKING)
        o->heard_ns = c->now_ns;
    else
        c->stats.dropped++;
}

void connector_outgoing_refused(struct connector *c, const struct schema_handshake *h)
{
    struct outgoing *o = find_outgoing(c, h);
    if (o == NULL || o->state != OUT_ASKING)
        c->stats.dropped++;
    else if (h->reason == SCHEMA_HANDSHAKE_STALE)
        fail_outgoing(o, -ESTALE);
    else if (h->reason == SCHEMA_HANDSHAKE_FULL)
        o->full = 1; /* asked again: it looks for some that are not used any more */
    else
        fail_outgoing(o, -EIO);
}

void connector_outgoing_gone(struct connector *c, const struct schema_handshake *h)
{
    struct outgoing *o = find_outgoing(c, h);
    if (o != NULL && o->state == OUT_LEAVING)
        out_move(o, OUT_FREE);
}

void connector_outgoing_asked(struct connector *c, const struct schema_handshake *h)
{
    const struct outgoing *o = find_outgoing(c, h);
    const bool is_late = o != NULL && o->state == OUT_LEAVING && o->tries == 0; /* its BYE */
    const bool used = o != NULL && (o->state != OUT_LEAVING || is_late);
    connector_reply(c, h, connector_answer(h, used ? SCHEMA_HANDSHAKE_USED : SCHEMA_HANDSHAKE_BYE));
}

/* Of an earlier life, and twice, it is as one that is not known, and one that was heard. */
void connector_outgoing_broken(struct connector *c, const struct schema_handshake *h)
{
    struct outgoing *o = find_outgoing(c, h);
    if (o == NULL) { /* it holds a queue pair for nobody */
        c->stats.dropped++;
        connector_reply(c, h, connector_answer(h, SCHEMA_HANDSHAKE_BYE));
        return;
    }
    if (o->state != OUT_UP || o->broken != END_WHOLE ||
        h->from_incarnation != o->peer.incarnation) {
        c->stats.dropped++;
        return;
    }
    o->broken = END_BROKEN;
    c->broken++;
}

struct fab_qp *connector_broken(struct connector *c)
{
    for (uint32_t i = 0; c->broken > 0 && i < c->outs; i++)
        if (c->out[i].broken == END_BROKEN) {
            c->out[i].broken = END_TOLD;
            c->broken--;
            return c->out[i].slot->qp;
        }
    return NULL;
}

void connector_leave(struct connector *c)
{
    for (uint32_t i = 0; i < c->outs; i++)
        if (c->out[i].state == OUT_UP)
            leave_slot(&c->out[i]);
    connector_datagrams_take(c);
}

static struct outgoing *connection_of(struct connector *c, const struct fab_qp *qp)
{
    const struct slot *slot = connector_slot_of(&c->initiators, qp);
    uint32_t i = 0;
    while (c->out[i].state != OUT_UP || c->out[i].slot != slot)
        BASE_ASSERT(++i < c->outs);
    return &c->out[i];
}

void connector_drop(struct connector *c, struct fab_qp *qp, uint64_t now_ns)
{
    c->now_ns = now_ns; /* it rests from now on, and not from when somebody last looked */
    leave_slot(connection_of(c, qp));
}

void connector_destroy(struct connector *c, struct fab_qp *qp, uint64_t now_ns,
                       void (*tried)(void *user, const struct fab_qp *qp, int status), void *user)
{
    c->now_ns = now_ns;
    struct outgoing *o = connection_of(c, qp);
    connector_slot_destroy(o->slot, tried, user);
    say_bye_late(o);
}

/* ---- where lanes hear of messages: who hears nothing asks again */

/* Nobody else knows it, so that an answer is one to a question. */
static bool draw_ask_nonce(struct connector *c)
{
    if (c->ask_nonce == 0 && c->fill(c->fill_user, &c->ask_nonce, sizeof c->ask_nonce) != 0)
        return false;
    c->ask_nonce |= c->ask_nonce == 0;
    return true;
}

void connector_ask_messages(struct connector *c, const struct connector_peer *peer)
{
    if (!draw_ask_nonce(c))
        return;
    connector_datagram_send(c, peer->gid, peer->lid, peer->ud_qpn, peer->ud_qkey,
                            (struct schema_handshake){.kind = SCHEMA_HANDSHAKE_ASK_MESSAGES,
                                                      .to_incarnation = peer->incarnation,
                                                      .nonce = c->ask_nonce});
}

void connector_messages_told(struct connector *c, const struct schema_handshake *h)
{
    if (c->ask_nonce == 0 || h->nonce != c->ask_nonce ||
        h->to_incarnation != c->config.incarnation ||
        c->told_tail - c->told_head == CONNECTOR_TOLD) {
        c->stats.dropped++;
        return;
    }
    struct connector_told *t = &c->told[c->told_tail++ % CONNECTOR_TOLD];
    *t = (struct connector_told){
        .incarnation = h->from_incarnation, .qpn = h->messages_qpn, .qkey = h->messages_qkey};
    memcpy(t->gid, h->from_gid, sizeof t->gid);
}

int connector_told(struct connector *c, struct connector_told *out)
{
    if (c->told_head == c->told_tail)
        return 0;
    *out = c->told[c->told_head++ % CONNECTOR_TOLD];
    return 1;
}
