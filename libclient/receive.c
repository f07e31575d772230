/* SPDX-License-Identifier: Apache-2.0 */
#include "receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message_tables.h"
#include "post.h"
#include "sender.h"

int client_messages_check(struct kedge_session *s)
{
    const int status = client_usable(s);
    if (status == 0 && client_receives_most(s) == 0)
        return client_fail_text(-EOPNOTSUPP, CLIENT_NO_MESSAGES);
    return status;
}

int client_messages_make(struct kedge_session *s)
{
    if (s->messages != NULL)
        return 0;
    const uint32_t most = client_receives_most(s);
    struct client_messages *m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->most = most;
        m->place = calloc(most, sizeof *m->place);
        m->aside = calloc(s->cq_mask + 1, sizeof *m->aside);
    }
    if (m == NULL || m->place == NULL || m->aside == NULL) {
        client_messages_free(m);
        return client_fail_text(-ENOMEM, "no memory for receives");
    }
    s->messages = m;
    return 0;
}

/* ---- posting */

/* The place that the next one takes; there is one. */
static uint32_t next_place(const struct client_messages *m)
{
    return m->free != 0 ? m->free - 1 : m->fresh;
}

static void take_place(struct kedge_vqp *q, const struct ibv_recv_wr *wr, uint32_t length)
{
    struct client_messages *m = q->session->messages;
    const uint32_t place = next_place(m);
    struct client_receive *r = &m->place[place];
    if (m->free != 0)
        m->free = r->next;
    else
        m->fresh++;
    *r = (struct client_receive){.wr_id = wr->wr_id,
                                 .length = length,
                                 .round = r->round,
                                 .vqp = q->index,
                                 .vqp_gen = q->gen,
                                 .state = RECEIVE_POSTED};
    m->held++;
    q->receives++;
}

static uint64_t cookie_of(const struct client_messages *m, uint32_t place)
{
    return (uint64_t)m->place[place].round << 32 | place;
}

/* Of all its pieces: false where that is more than a length can be. */
static bool add_lengths(const struct ibv_recv_wr *wr, uint32_t *length)
{
    uint64_t sum = 0;
    for (int i = 0; i < wr->num_sge; i++)
        sum += wr->sg_list[i].length;
    *length = (uint32_t)sum;
    return sum <= UINT32_MAX;
}

static int post_one(struct kedge_vqp *q, const struct ibv_recv_wr *wr)
{
    struct kedge_session *s = q->session;
    struct client_messages *m = s->messages;
    union client_post p;
    uint32_t length;
    if (wr->num_sge < 0 || wr->num_sge > SCHEMA_MAX_SGE ||
        (wr->sg_list == NULL && wr->num_sge != 0))
        return client_refuse_sges(wr->num_sge, SCHEMA_MAX_SGE);
    if (!add_lengths(wr, &length))
        return client_fail_text(-EINVAL, "the pieces of sg_list have 4 GiB together, or more");
    if (m->held == m->most)
        return client_fail(
            -ENOMEM, "the session has %u receives, posted or not popped yet: pop first", m->most);
    p.d = (struct schema_sq_desc){.op = SCHEMA_OP_RECV,
                                  .slots = 1,
                                  .vqp = q->index,
                                  .vqp_gen = q->gen,
                                  .post = {.wr_id = cookie_of(m, next_place(m))}};
    int status = client_gather(s, wr->sg_list, wr->num_sge, &p);
    if (status == 0)
        status = client_post_put(q, &p);
    if (status != 0)
        return status;
    q->known = true;
    take_place(q, wr, length);
    return 0;
}

int kedge_post_recv(struct kedge_vqp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    if (client_is_null(q)) {
        if (bad != NULL)
            *bad = wr;
        return -EINVAL;
    }
    struct kedge_session *s = q->session;
    int status = client_messages_check(s);
    if (status == 0)
        status = client_messages_make(s);
    if (status == 0 && s->dying_vqps != 0)
        client_ring_bury(s);
    const uint32_t before = s->sq_tail;
    for (; status == 0 && wr != NULL; wr = wr->next) {
        status = post_one(q, wr);
        if (status != 0)
            break;
    }
    if (s->sq_tail != before)
        client_ring_publish(s);
    if (status != 0 && bad != NULL)
        *bad = wr;
    return status;
}

/* ---- ending */

/* The place of a receive of q's that may have ended so; NULL: it makes no sense. */
static struct client_receive *find_receive(const struct kedge_session *s, const struct kedge_vqp *q,
                                           const struct schema_cqe *c)
{
    const uint32_t place = (uint32_t)c->wr_id;
    if (s->messages == NULL || place >= s->messages->fresh)
        return NULL;
    struct client_receive *r = &s->messages->place[place];
    const bool posted = r->state == RECEIVE_POSTED && r->round == c->wr_id >> 32 &&
                        r->vqp == q->index && r->vqp_gen == q->gen;
    const bool fits = c->byte_len <= r->length || c->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const bool good = c->status != IBV_WC_SUCCESS || (c->extra != 0 && fits);
    return posted && good ? r : NULL;
}

static bool say_nonsense(struct kedge_session *s)
{
    if (s->ended == 0) {
        s->ended = -EPROTO;
        s->end_reason = SCHEMA_REASON_NONE;
    }
    return false;
}

bool client_receive_take(struct kedge_session *s, uint32_t there)
{
    const struct schema_cqe c = s->cq[s->cq_head & s->cq_mask];
    const uint32_t places = c.extra != 0 ? 2 : 1;
    struct schema_cqe_sender from = {0};
    if (places > there)
        return say_nonsense(s);
    if (places > 1)
        memcpy(&from, &s->cq[(s->cq_head + 1) & s->cq_mask], sizeof from);
    if (client_is_taken_back(s))
        return false;
    const struct kedge_vqp *q = kedge_vqp_find(s, c.vqp | (uint32_t)c.vqp_gen << 16);
    struct client_receive *r = q != NULL ? find_receive(s, q, &c) : NULL;
    if (q != NULL && r == NULL)
        return say_nonsense(s);
    s->cq_head += places;
    if (q == NULL)
        return true;
    struct client_messages *m = s->messages;
    r->state = RECEIVE_ENDED;
    r->c = c;
    r->from = from;
    r->next = 0;
    *(m->last != 0 ? &m->place[m->last - 1].next : &m->first) = (uint32_t)(r - m->place) + 1;
    m->last = (uint32_t)(r - m->place) + 1;
    m->ended++;
    return true;
}

/* Where an answer goes. Of a VQP that is connected it is the VQP itself. */
static struct kedge_vqp *answer_by(struct kedge_session *s, struct kedge_vqp *q,
                                   const struct client_receive *r)
{
    if (r->c.status != IBV_WC_SUCCESS)
        return NULL;
    return q->state == CLIENT_VQP_CONNECTED ? q : client_sender_vqp(s, &r->from);
}

void client_receive_pop(struct kedge_session *s, struct kedge_msg *out)
{
    struct client_messages *m = s->messages;
    struct client_receive *r = &m->place[m->first - 1];
    struct kedge_vqp *q = &s->vqps[r->vqp]; /* it is there, or this would not be */
    const bool good = r->c.status == IBV_WC_SUCCESS, has_imm = good && r->c.with_imm != 0;
    const bool of_write = good && r->c.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    m->first = r->next;
    m->last = m->first != 0 ? m->last : 0;
    m->ended--;
    q->receives--;
    *out = (struct kedge_msg){.wc = {.wr_id = r->wr_id,
                                     .status = r->c.status,
                                     .opcode = of_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                     .vendor_err = r->c.vendor_err,
                                     .byte_len = good ? r->c.byte_len : 0,
                                     .imm_data = has_imm ? r->c.imm : 0,
                                     .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0,
                                     .qp_num = kedge_vqp_num(q)},
                              .tenant = r->from.tenant,
                              .from = answer_by(s, q, r)};
    client_receive_free(m, r);
}
