/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/send_receivers.h"

#include "lane_state.h"
#include "message_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow_news.h"
#include "resolve/liveness.h"
#include "resolve/lookup.h"
#include "schedule/sends.h"
#include "session_state.h"
#include "vqp_state.h"

enum { SOUGHT_MOST = 3 };

/* By its record, or since that was READ anew; else it is asked (receive/message_datagrams.c). */
static void find_number(const struct peer *p, struct message_peer *c)
{
    if (c->qpn != 0 || p->has_rc)
        return;
    c->qpn = p->ud_qpn;
    c->qkey = p->ud_qkey;
}

enum vqp_wait lane_send_find_receiver(struct lane *l, struct vqp *q, uint32_t *reason)
{
    struct vqp_messages *t = q->messages;
    const struct schema_peer *shared = lane_peer_shared(l, q->peer_slot);
    const struct peer *p = &l->peers[q->peer_slot];
    struct stream_sender *k = &t->sender;
    if (k->to != NULL && k->to->incarnation == shared->incarnation && !k->to->over) {
        find_number(p, k->to);
        return WAIT_NOTHING;
    }
    if (k->to != NULL && k->out.posted != k->out.first) {
        *reason = SCHEMA_REASON_STALE_PEER;
        return WAIT_NOTHING;
    }
    struct message_peer *c =
        lane_exchange_know(&l->messages->exchange, shared->gid, shared->incarnation, l->now_ns);
    if (c == NULL) {
        t->roomless_ns = t->roomless_ns != 0 ? t->roomless_ns : messages_clock(l);
        return WAIT_CREDIT;
    }
    if (c->qpn == 0)
        c->lid = p->lid;
    find_number(p, c);
    c->slot = q->peer_slot;
    t->roomless_ns = 0;
    k->known = 0;
    lane_sender_unsure(k);
    lane_sender_address(&l->messages->exchange, k, c);
    return WAIT_NOTHING;
}

/* Since when it has waited, for credit or for a word of what has gone; 0: it does not. */
static uint64_t waits_since(const struct stream_sender *k)
{
    return k->wait_ns != 0 ? k->wait_ns : k->out.next != k->out.first ? k->out.heard_ns : 0;
}

void lane_send_seek_receiver(struct lane *l, struct vqp_messages *t,
                             const struct stream_patience *patience)
{
    struct stream_sender *k = &t->sender;
    const uint64_t most_ns = lane_stream_patience_ns(patience), since_ns = waits_since(k);
    if (since_ns == 0 || !vqp_names_flow(t->q) || l->now_ns - k->to->heard_ns < most_ns / 2) {
        t->sought = 0;
        return;
    }
    if (t->sought < SOUGHT_MOST &&
        messages_clock(l) - since_ns >= most_ns - (most_ns >> (t->sought + 1))) {
        t->sought++;
        k->to->qpn = 0;
        k->to->ask_ns = 0;
        if (k->wait_ns == 0)
            lane_sender_ask(&l->messages->exchange, k);
        lane_flow_look_up_again(l, t->q->flow);
        lane_flow_notify(l, t->q->flow);
    }
    /* Nothing may be left to be posted, by which its record would be READ. */
    if (k->to->qpn == 0 && lane_peer_refresh(l, t->q->peer_slot, t->q->session->tenant_slot + 1))
        find_number(&l->peers[t->q->peer_slot], k->to);
}
