/* SPDX-License-Identifier: Apache-2.0 */
/* Posting: the hot path. */
#include "post.h"

#include <errno.h>
#include <string.h>

#include "post_list.h"
#include "sender.h"

static int operation_of(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_READ:
        return SCHEMA_OP_READ;
    case IBV_WR_RDMA_WRITE:
        return SCHEMA_OP_WRITE;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return SCHEMA_OP_CAS;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return SCHEMA_OP_FAA;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        return SCHEMA_OP_SEND;
    default:
        return client_fail(-EINVAL,
                           "opcode %u is none of IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, "
                           "IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP, "
                           "IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND and IBV_WR_SEND_WITH_IMM",
                           (unsigned)opcode);
    }
}

static __attribute__((cold)) int refuse_sge(const struct kedge_session *s,
                                            const struct ibv_sge *list, int i)
{
    const struct ibv_sge *sge = &list[i];
    const uint32_t arena = sge->lkey - 1;
    if (arena >= CLIENT_MAX_ARENAS || s->arenas[arena].addr == NULL)
        return client_fail(-EINVAL, "sg_list[%d].lkey is %u, which is none of kedge_alloc()'s", i,
                           sge->lkey);
    return client_fail(
        -EINVAL,
        "sg_list[%d] reaches outside of its arena: it has %u bytes at %#llx, and the "
        "arena of lkey %u has %zu at %p",
        i, sge->length, (unsigned long long)sge->addr, sge->lkey, s->arenas[arena].bytes,
        (void *)s->arenas[arena].addr);
}

/* The user's (address, lkey) of SGE i as the arena's (offset, index). */
static int translate_sge(const struct kedge_session *s, const struct ibv_sge *list, int i,
                         struct schema_sge *to)
{
    const struct ibv_sge *from = &list[i];
    uint32_t arena = from->lkey - 1;
    if (arena >= CLIENT_MAX_ARENAS || s->arenas[arena].addr == NULL)
        return refuse_sge(s, list, i);
    const struct client_arena *a = &s->arenas[arena];
    uint64_t offset = from->addr - (uintptr_t)a->addr;
    if (offset > a->bytes || from->length > a->bytes - offset)
        return refuse_sge(s, list, i);
    *to = (struct schema_sge){.offset = offset, .length = from->length, .arena = arena};
    return 0;
}

static int gather_inline(const struct ibv_send_wr *wr, union client_post *p)
{
    uint32_t length = 0;
    if (p->d.op != SCHEMA_OP_WRITE && p->d.op != SCHEMA_OP_SEND)
        return client_fail_text(-EINVAL, "IBV_SEND_INLINE is for WRITEs and SENDs alone");
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        if (sge->length > SCHEMA_MAX_INLINE - length)
            return client_fail(-EINVAL,
                               "inline data has at most %d bytes: with sg_list[%d] it would have "
                               "%llu",
                               SCHEMA_MAX_INLINE, i, (unsigned long long)length + sge->length);
        memcpy(p->payload + length, (const void *)(uintptr_t)sge->addr, sge->length);
        length += sge->length;
    }
    uint32_t slots = (length + SCHEMA_LINE - 1) / SCHEMA_LINE;
    memset(p->payload + length, 0, slots * SCHEMA_LINE - length);
    p->d.flags |= SCHEMA_OP_INLINE;
    p->d.post.length = length;
    p->d.slots = (uint8_t)(1 + slots);
    return 0;
}

static inline int gather_sges(const struct kedge_session *s, const struct ibv_sge *list, int n,
                              union client_post *p)
{
    struct schema_sge sge = {0};
    int status = 0;
    p->d.num_sge = (uint8_t)n;
    if (n == 1) {
        status = translate_sge(s, list, 0, &sge);
        if (status != 0)
            return status;
        p->d.post.offset = sge.offset;
        p->d.post.length = sge.length;
        p->d.post.arena = sge.arena;
    } else if (n > 1) {
        memset(&p->sges, 0, sizeof p->sges);
        for (int i = 0; i < n && status == 0; i++)
            status = translate_sge(s, list, i, &p->sges.sge[i]);
        p->d.slots = 2;
    }
    return status;
}

int client_gather(const struct kedge_session *s, const struct ibv_sge *list, int n,
                  union client_post *p)
{
    return gather_sges(s, list, n, p);
}

int client_refuse_sges(int n, int most)
{
    if (n > 0 && n <= most)
        return client_fail(-EINVAL, "sg_list is NULL, and num_sge is %d: give as many, or 0", n);
    return client_fail(-EINVAL, "num_sge is %d: 0 to %d are possible", n, most);
}

static __attribute__((cold)) int refuse_shape(const struct ibv_send_wr *wr, unsigned known)
{
    if ((wr->send_flags & ~known) != 0)
        return client_fail(-EINVAL,
                           "send_flags has %#x, which no request here can have: IBV_SEND_SIGNALED, "
                           "IBV_SEND_INLINE, IBV_SEND_FENCE and KEDGE_SEND_RELAXED are possible",
                           wr->send_flags & ~known);
    return client_refuse_sges(wr->num_sge, SCHEMA_MAX_SGE);
}

static __attribute__((cold)) int refuse_atomic(const struct ibv_send_wr *wr)
{
    if (wr->num_sge != 1)
        return client_fail(-EINVAL, "an atomic has one SGE, of 8 bytes: num_sge is %d",
                           wr->num_sge);
    return client_fail(-EINVAL, "an atomic has one SGE, of 8 bytes: sg_list[0].length is %u",
                       wr->sg_list[0].length);
}

/* Of a SEND: whether it goes somewhere, and is no larger than one can be. */
static int check_send(const struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;
    if ((q->session->features & SCHEMA_FEATURE_MESSAGES) == 0)
        return client_fail_text(-EOPNOTSUPP, CLIENT_NO_MESSAGES);
    if (q->to_kind == 0)
        return client_fail_text(-EDESTADDRREQ,
                                "the queue pair's SENDs go nowhere: name a port "
                                "(kedge_connect_port), or take a message's own (kedge_pop_msgs)");
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    if (q->to_kind == SCHEMA_SEND_TO_COUNTER && (bytes != 0 || wr->opcode != IBV_WR_SEND))
        return client_fail_text(-EINVAL, "what raises a counter is an IBV_WR_SEND without a byte");
    const uint64_t most =
        q->session->features & SCHEMA_FEATURE_LARGE ? SCHEMA_LARGE_MOST : SCHEMA_MESSAGE_MOST;
    if (bytes > most)
        return client_fail(-EMSGSIZE,
                           "a SEND has at most %llu bytes, and this one %llu: WRITE what is "
                           "larger, or have the receiver READ it",
                           (unsigned long long)most, (unsigned long long)bytes);
    if (wr->num_sge > SCHEMA_SEND_SGES && (wr->send_flags & IBV_SEND_INLINE) == 0)
        return client_refuse_sges(wr->num_sge, SCHEMA_SEND_SGES);
    return 0;
}

/* It may, and need not: an agent that does not know it is not told. */
static uint8_t relaxed_flag(const struct kedge_session *s)
{
    return s->features & SCHEMA_FEATURE_RELAXED ? SCHEMA_OP_RELAXED : 0;
}

int client_post_build(const struct kedge_vqp *q, const struct ibv_send_wr *wr, union client_post *p)
{
    const unsigned known =
        IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE | KEDGE_SEND_RELAXED;
    int op = operation_of(wr->opcode);
    if (op < 0)
        return op;
    if ((wr->send_flags & ~known) != 0 || wr->num_sge < 0 || wr->num_sge > SCHEMA_MAX_SGE ||
        (wr->sg_list == NULL && wr->num_sge != 0))
        return refuse_shape(wr, known);
    p->d = (struct schema_sq_desc){
        .op = (uint8_t)op,
        .flags = (uint8_t)((wr->send_flags & IBV_SEND_SIGNALED ? SCHEMA_OP_SIGNALED : 0) |
                           (wr->send_flags & IBV_SEND_FENCE ? SCHEMA_OP_FENCE : 0)),
        .slots = 1,
        .vqp = q->index,
        .vqp_gen = q->gen,
        .post = {.wr_id = wr->wr_id}};
    if (op == SCHEMA_OP_CAS || op == SCHEMA_OP_FAA) {
        if (wr->num_sge != 1 || wr->sg_list[0].length != 8)
            return refuse_atomic(wr);
        p->d.post.remote_addr = wr->wr.atomic.remote_addr;
        p->d.post.vkey = wr->wr.atomic.rkey;
        p->d.post.compare_add = wr->wr.atomic.compare_add;
        p->d.post.swap = op == SCHEMA_OP_CAS ? wr->wr.atomic.swap : 0;
    } else if (op == SCHEMA_OP_SEND) {
        const int status = check_send(q, wr);
        if (status != 0)
            return status;
        if (wr->opcode == IBV_WR_SEND_WITH_IMM) {
            p->d.flags |= SCHEMA_OP_IMM;
            p->d.post.imm = wr->imm_data;
        }
    } else {
        p->d.post.remote_addr = wr->wr.rdma.remote_addr;
        p->d.post.vkey = wr->wr.rdma.rkey;
        if ((wr->send_flags & KEDGE_SEND_RELAXED) != 0)
            p->d.flags |= relaxed_flag(q->session);
    }
    if ((wr->send_flags & IBV_SEND_INLINE) != 0)
        return gather_inline(wr, p);
    return gather_sges(q->session, wr->sg_list, wr->num_sge, p);
}

/* How many slots put_bind() is to take before the next post. */
static uint32_t bind_slots(const struct kedge_vqp *q)
{
    return q->bound || q->state != CLIENT_VQP_CONNECTED ? 0 : q->to_kind == 0 ? 1 : 2;
}

static __attribute__((noinline)) void put_bind(struct kedge_vqp *q)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_BIND,
                               .slots = 1,
                               .vqp = q->index,
                               .vqp_gen = q->gen,
                               .bind = {.peer_slot = q->peer_slot, .peer_gen = q->peer_gen}};
    client_ring_put(q->session, &d);
    q->bound = q->known = true;
    if (q->to_kind == 0)
        return;
    d.op = SCHEMA_OP_SEND_TO;
    memset(d.bytes, 0, sizeof d.bytes);
    d.send_to.kind = q->to_kind;
    d.send_to.to = q->to;
    d.send_to.tenant = q->to_kind == SCHEMA_SEND_TO_PORT ? q->to_tenant : 0;
    d.send_to.secret = q->to_kind == SCHEMA_SEND_TO_COUNTER ? q->secret : 0;
    client_ring_put(q->session, &d);
}

static __attribute__((cold, noinline)) int refuse_full(struct kedge_vqp *q, uint32_t slots)
{
    struct kedge_session *s = q->session;
    /* The smallest ring has room for the largest SEND only when these two are gone. */
    if (slots > s->sq_mask + 1 && client_ring_room(s, bind_slots(q)))
        put_bind(q);
    const int status = client_idle(s);
    return status != 0 ? status
                       : client_fail_text(-ENOMEM, "the submission ring is full: poll first");
}

static inline int put_post(struct kedge_vqp *q, const union client_post *p)
{
    struct kedge_session *s = q->session;
    const uint32_t first = q->bound ? 0 : bind_slots(q);
    if (!client_ring_room(s, first + p->d.slots))
        return refuse_full(q, first + p->d.slots);
    if (first > 0)
        put_bind(q);
    for (uint32_t i = 0; i < p->d.slots; i++)
        client_ring_put(s, p->slot[i]);
    return 0;
}

int client_post_put(struct kedge_vqp *q, const union client_post *p)
{
    return put_post(q, p);
}

static int post_one(struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    union client_post p;
    int status = 0;
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        status = client_notify_put(q, wr);
    } else {
        status = client_post_build(q, wr, &p);
        if (status == 0)
            status = put_post(q, &p);
    }
    if (status == 0 && (wr->send_flags & IBV_SEND_SIGNALED) != 0) {
        q->out++;
        q->session->processor.out++;
    }
    return status;
}

int client_post_begin(struct kedge_vqp *q)
{
    struct kedge_session *s = q->session;
    int status = client_usable(s);
    if (status == 0 && s->dying_vqps != 0)
        client_ring_bury(s);
    if (status == 0 && q->state != CLIENT_VQP_CONNECTED)
        status = client_sender_connect(q);
    return status;
}

int kedge_post_send(struct kedge_vqp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (client_is_null(q)) {
        if (bad != NULL)
            *bad = wr;
        return -EINVAL;
    }
    struct kedge_session *s = q->session;
    int status = client_post_begin(q);
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
