/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/usual_messages.h"

#include "receive/port_admission.h"
#include "request/reply.h"
#include "vqp_state.h"

static struct usual_stream *usual_at(struct messages *m, uint64_t stream)
{
    return &m->usual[(stream ^ stream >> 32) % USUAL_STREAMS];
}

/* It is open, of that peer's account, and this one is next. */
static inline bool stream_is_next(const struct messages *m, const struct usual_stream *u,
                                  uint32_t number)
{
    const struct stream_receiver *r = u->stream;
    return r->name == u->like.word[SCHEMA_LIKE_STREAM] && (r->failed | r->reads) == 0 &&
           number == r->in.next &&
           m->exchange.config.incarnation == u->like.word[SCHEMA_LIKE_NUMBER] >> 32;
}

/* Its port is still the hearer's, or its name is; and it takes so much now. */
static inline bool hearer_takes(const struct lane *l, const struct usual_stream *u, uint32_t length)
{
    const struct messages *m = l->messages;
    struct vqp_messages *t = u->hearer;
    if (t->q == NULL || t->sender.name != u->hearer_name || u->unbound != m->ports.unbound)
        return false;
    struct session *s = t->q->session;
    return s->state == SESSION_LIVE && lane_admission_has_receive(l, t, u->stream) &&
           receive_holds(t->receives.head, length) && lane_session_has_two_places(s);
}

bool lane_usual_take(struct lane *l, const struct arrival *a, const uint8_t *at)
{
    struct messages *m = l->messages;
    uint32_t length, credit, number;
    if (a->bytes < SCHEMA_MESSAGE_BYTES)
        return false;
    const struct usual_stream *u = usual_at(m, schema_message_word(at, SCHEMA_LIKE_STREAM));
    if (u->hearer == NULL || !schema_message_is_like(&u->like, at, &length, &credit, &number) ||
        length != a->bytes - SCHEMA_MESSAGE_BYTES || !stream_is_next(m, u, number) ||
        !hearer_takes(l, u, length))
        return false;
    struct stream_receiver *r = u->stream;
    struct message_peer *c = r->from;
    if (!lane_credit_arrive_next(&m->exchange.bank, &c->account,
                                 (uint32_t)u->like.word[SCHEMA_LIKE_CREDIT], credit))
        return false;
    c->arrived++;
    c->heard_ns = r->heard_ns = l->now_ns;
    struct wr *receive = queue_pop(&u->hearer->receives);
    receive_copy(receive->session, receive, at + SCHEMA_MESSAGE_BYTES, length);
    receive->length = length;
    lane_session_deliver(l, receive, false, 0, &u->sender);
    lane_exchange_took(&m->exchange, r);
    COUNT(l, messages_received, 1);
    return true;
}

void lane_usual_learn(struct lane *l, const struct schema_message *m, struct stream_receiver *r,
                      const struct vqp *q, const struct schema_cqe_sender *sender)
{
    if ((m->with_imm | m->parts | m->of_write) != 0 || lane_admission_is_foreign(q, m->from_tenant))
        return;
    *usual_at(l->messages, m->stream) =
        (struct usual_stream){.like = schema_message_like_of(m),
                              .sender = *sender,
                              .stream = r,
                              .hearer = q->messages,
                              .hearer_name = q->messages->sender.name,
                              .unbound = l->messages->ports.unbound};
}
