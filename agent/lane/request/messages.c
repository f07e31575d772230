/* SPDX-License-Identifier: Apache-2.0 */
#include "request/messages.h"

#include <errno.h>
#include <string.h>

#include "message_state.h"
#include "request/active.h"
#include "request/check.h"
#include "request/reply.h"
#include "schedule/large_sends.h"
#include "schedule/sends.h"
#include "schedule/vqp.h"
#include "session_state.h"

static struct wr *take_request(struct session *s, const struct operation *op,
                               const struct schema_sq_desc *d)
{
    struct wr *w = s->free_wr;
    s->free_wr = w->next;
    session_count(&s->inflight, 1);
    active_count_out(s->of, 1);
    w->session = s;
    w->flow = NULL;
    w->op = op;
    wr_part(w);
    w->kind = WR_WORKER;
    w->wr_id = d->post.wr_id;
    w->remote_addr = 0;
    w->vkey = 0;
    w->vqp = d->vqp;
    w->vqp_gen = d->vqp_gen;
    w->length = 0;
    w->special = 0;
    return w;
}

/* Whether the VQP is there, as the worker means it. */
static bool is_present(struct vqp *q, const struct schema_sq_desc *d)
{
    return q->gen == d->vqp_gen && q->state != VQP_FREE;
}

static uint32_t check_send(const struct lane *l, const struct session *s, const struct vqp *q,
                           const struct schema_sq_desc *d, const void *extra, struct wr *w)
{
    const uint32_t reason = lane_check_message(s, d, extra, w);
    if (l->messages == NULL)
        return SCHEMA_REASON_MESSAGES;
    if (reason != 0)
        return reason;
    if (w->length > SCHEMA_LARGE_MOST)
        return SCHEMA_REASON_LONG;
    if (q->messages != NULL && q->messages->to_kind == SCHEMA_SEND_TO_COUNTER &&
        (w->length != 0 || (w->remote_addr & SEND_IMM) != 0))
        return SCHEMA_REASON_DESCRIPTOR;
    return q->state == VQP_CONNECTED || q->state == VQP_CUTTING ? SCHEMA_REASON_UNADDRESSED : 0;
}

/* Too long for one receive: its pieces are as the worker names them. */
static void begin_large(const struct schema_sq_desc *d, const void *extra, struct wr *w)
{
    struct schema_sq_sges pieces = {
        .sge = {{.offset = d->post.offset, .length = d->post.length, .arena = d->post.arena}}};
    if (d->num_sge > 1)
        memcpy(&pieces, extra, sizeof pieces);
    lane_large_send_begin(w, pieces.sge, d->num_sge);
}

void lane_send_take(struct lane *l, struct session *s, const struct operation *op,
                    const struct schema_sq_desc *d, const void *extra)
{
    struct vqp *q = &s->vqps[d->vqp];
    struct wr *w = take_request(s, op, d);
    w->signaled = d->flags & SCHEMA_OP_SIGNALED;
    w->fab.sg_list = w->sge;
    w->fab.opcode = op->opcode;
    w->fab.send_flags = 0;
    w->fab.imm_data = d->post.imm;
    w->fab.key = (struct fab_key){.rkey = 0};
    w->refused = (uint8_t)check_send(l, s, q, d, extra, w);
    w->special |= SPECIAL_SEND;
    if (w->refused == 0 && w->length > SCHEMA_MESSAGE_MOST)
        begin_large(d, extra, w);
    if (!is_present(q, d)) {
        q->gen = q->state == VQP_FREE && q->messages == NULL ? d->vqp_gen : q->gen;
        COUNT(l, refused, 1);
        lane_session_complete(l, w, IBV_WC_LOC_QP_OP_ERR,
                              q->denied != 0 ? q->denied : SCHEMA_REASON_NOT_CONNECTED);
        return;
    }
    lane_vqp_submit(l, q, w);
}

struct vqp_messages *lane_receive_messages(struct lane *l, struct session *s,
                                           const struct schema_sq_desc *d)
{
    struct vqp *q = &s->vqps[d->vqp];
    if (q->state == VQP_FREE && q->messages == NULL) {
        q->gen = d->vqp_gen;
        q->session = s;
    }
    return q->gen == d->vqp_gen ? lane_messages_of(l, q) : NULL;
}

void lane_receive_take(struct lane *l, struct session *s, const struct operation *op,
                       const struct schema_sq_desc *d, const void *extra)
{
    struct vqp_messages *t = lane_receive_messages(l, s, d);
    struct wr *w = take_request(s, op, d);
    uint32_t reason = t != NULL ? 0 : SCHEMA_REASON_MESSAGES;
    w->signaled = 1;
    if (reason == 0)
        reason = lane_check_message(s, d, extra, w);
    for (int i = 0; reason == 0 && i < w->fab.num_sge; i++)
        if (w->sge[i].lkey >= s->arenas || s->touch[w->sge[i].lkey] == NULL)
            reason = SCHEMA_REASON_DEVICE;
    if (reason != 0) {
        COUNT(l, refused, 1);
        lane_session_complete(l, w, IBV_WC_LOC_QP_OP_ERR, reason);
        return;
    }
    queue_push(&t->receives, w);
}

void lane_send_address(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    struct vqp *q = &s->vqps[d->vqp];
    const bool knows_kind =
        ((d->send_to.kind == SCHEMA_SEND_TO_VQP || d->send_to.kind == SCHEMA_SEND_TO_COUNTER) &&
         d->send_to.to != 0) ||
        (d->send_to.kind == SCHEMA_SEND_TO_PORT && d->send_to.to <= UINT32_MAX);
    if (l->messages != NULL && knows_kind)
        (void)lane_vqp_address(l, q, d);
}

/* A session that ends keeps nobody from its ports for as long as that takes: its worker may have
 * begun anew already. */
static void take_from_ending(struct lane *l, uint32_t tenant, uint32_t number)
{
    const struct port *there = lane_port_find(&l->messages->ports, tenant, number);
    const struct session *s = there != NULL ? &l->sessions[there->session] : NULL;
    if (s != NULL && s->state == SESSION_ENDING)
        lane_sends_unbind(l, s->vqps[there->vqp].messages);
}

int lane_port_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    struct vqp_messages *t = lane_receive_messages(l, s, d);
    if (l->messages == NULL)
        return -EOPNOTSUPP;
    if (t == NULL)
        return -EDQUOT;
    struct messages *m = l->messages;
    take_from_ending(l, s->tenant, d->bind_port.port);
    if (t->port_count == PORTS_EACH || !lane_places_take(&m->port_places, t->share))
        return -EDQUOT;
    const int status = lane_port_bind(&m->ports, s->tenant, d->bind_port.port, s->id, d->vqp);
    if (status != 0)
        lane_places_give(&m->port_places, t->share);
    else
        lane_port_join(&m->ports, s->tenant, d->bind_port.port, &t->ports);
    t->port_count += status == 0;
    return status;
}

/* NULL: the VQP hears no port, or is another one than the worker means. */
static struct vqp_messages *find_hearer(const struct session *s, const struct schema_sq_desc *d)
{
    const struct vqp *q = &s->vqps[d->vqp];
    return q->gen == d->vqp_gen && q->messages != NULL && q->messages->port_count > 0 ? q->messages
                                                                                      : NULL;
}

bool lane_port_has_guest(const struct lane *l, const struct session *s,
                         const struct schema_sq_desc *d)
{
    const struct vqp_messages *t = l->messages != NULL ? find_hearer(s, d) : NULL;
    return t != NULL && lane_guest_find(&l->messages->guests, t->guests, d->bind_port.tenant) != 0;
}

int lane_port_guest_ask(struct lane *l, struct session *s, const struct schema_sq_desc *d)
{
    const uint32_t tenant = d->bind_port.tenant;
    struct messages *m = l->messages;
    if (m == NULL)
        return -EOPNOTSUPP;
    struct vqp_messages *t = find_hearer(s, d);
    if (t == NULL)
        return -ENOTCONN;
    if (tenant == 0 || tenant == s->tenant)
        return -EINVAL;
    if (d->op == SCHEMA_OP_PORT_GRANT && !lane_places_take(&m->guest_places, t->share))
        return -EDQUOT;
    const uint32_t guest = lane_guest_find(&m->guests, t->guests, tenant);
    const int status = d->op == SCHEMA_OP_PORT_GRANT
                           ? lane_guest_add(&m->guests, &t->guests, tenant)
                           : lane_guest_remove(&m->guests, &t->guests, tenant);
    if (status == 0 && d->op == SCHEMA_OP_PORT_REVOKE)
        lane_exchange_guest_gone(&m->exchange, guest);
    if ((status == 0) == (d->op == SCHEMA_OP_PORT_REVOKE))
        lane_places_give(&m->guest_places, t->share);
    return status;
}

void lane_receives_flush(struct lane *l, struct vqp *q)
{
    (void)l;
    if (q->messages != NULL)
        queue_append(&q->session->flushing, &q->messages->receives);
}
