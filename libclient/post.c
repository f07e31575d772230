/* SPDX-License-Identifier: Apache-2.0 */
/* Posting, polling and waiting: the hot path. */
#include "internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"

enum {
    MAX_POST_SLOTS = 1 + SCHEMA_MAX_INLINE / SCHEMA_LINE,
    GIVE_CALLS = 16, /* polls in vain, for each time that a lane without a processor gets it */
};

/* A request as it goes into the ring. */
union post {
    struct schema_sq_desc d;
    struct {
        uint8_t first[SCHEMA_LINE];
        union {
            struct schema_sq_sges sges;
            uint8_t payload[SCHEMA_MAX_INLINE];
        };
    };
    uint8_t slot[MAX_POST_SLOTS][SCHEMA_LINE];
};

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
    default:
        return client_fail(-EINVAL,
                           "opcode %u is none of IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, "
                           "IBV_WR_ATOMIC_CMP_AND_SWP and IBV_WR_ATOMIC_FETCH_AND_ADD",
                           (unsigned)opcode);
    }
}

static __attribute__((cold)) int refuse_sge(const struct kedge_session *s,
                                            const struct ibv_send_wr *wr, int i)
{
    const struct ibv_sge *sge = &wr->sg_list[i];
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
static int translate_sge(const struct kedge_session *s, const struct ibv_send_wr *wr, int i,
                         struct schema_sge *to)
{
    const struct ibv_sge *from = &wr->sg_list[i];
    uint32_t arena = from->lkey - 1;
    if (arena >= CLIENT_MAX_ARENAS || s->arenas[arena].addr == NULL)
        return refuse_sge(s, wr, i);
    const struct client_arena *a = &s->arenas[arena];
    uint64_t offset = from->addr - (uintptr_t)a->addr;
    if (offset > a->bytes || from->length > a->bytes - offset)
        return refuse_sge(s, wr, i);
    *to = (struct schema_sge){.offset = offset, .length = from->length, .arena = arena};
    return 0;
}

static int gather_inline(const struct ibv_send_wr *wr, union post *p)
{
    uint32_t length = 0;
    if (p->d.op != SCHEMA_OP_WRITE)
        return client_fail_text(-EINVAL, "IBV_SEND_INLINE is for IBV_WR_RDMA_WRITE alone");
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

static int gather_sges(const struct kedge_session *s, const struct ibv_send_wr *wr, union post *p)
{
    struct schema_sge sge = {0};
    int status = 0;
    p->d.num_sge = (uint8_t)wr->num_sge;
    if (wr->num_sge == 1) {
        status = translate_sge(s, wr, 0, &sge);
        if (status != 0)
            return status;
        p->d.post.offset = sge.offset;
        p->d.post.length = sge.length;
        p->d.post.arena = sge.arena;
    } else if (wr->num_sge > 1) {
        memset(&p->sges, 0, sizeof p->sges);
        for (int i = 0; i < wr->num_sge && status == 0; i++)
            status = translate_sge(s, wr, i, &p->sges.sge[i]);
        p->d.slots = 2;
    }
    return status;
}

static __attribute__((cold)) int refuse_shape(const struct ibv_send_wr *wr, unsigned known)
{
    if ((wr->send_flags & ~known) != 0)
        return client_fail(-EINVAL,
                           "send_flags has %#x, which no request here can have: IBV_SEND_SIGNALED, "
                           "IBV_SEND_INLINE and IBV_SEND_FENCE are possible",
                           wr->send_flags & ~known);
    if (wr->num_sge > 0 && wr->num_sge <= SCHEMA_MAX_SGE)
        return client_fail(-EINVAL, "sg_list is NULL, and num_sge is %d: give as many, or 0",
                           wr->num_sge);
    return client_fail(-EINVAL, "num_sge is %d: 0 to %d are possible", wr->num_sge, SCHEMA_MAX_SGE);
}

static __attribute__((cold)) int refuse_atomic(const struct ibv_send_wr *wr)
{
    if (wr->num_sge != 1)
        return client_fail(-EINVAL, "an atomic has one SGE, of 8 bytes: num_sge is %d",
                           wr->num_sge);
    return client_fail(-EINVAL, "an atomic has one SGE, of 8 bytes: sg_list[0].length is %u",
                       wr->sg_list[0].length);
}

static int build_descriptor(const struct kedge_vqp *q, const struct ibv_send_wr *wr, union post *p)
{
    const unsigned known = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE;
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
    } else {
        p->d.post.remote_addr = wr->wr.rdma.remote_addr;
        p->d.post.vkey = wr->wr.rdma.rkey;
    }
    if ((wr->send_flags & IBV_SEND_INLINE) != 0)
        return gather_inline(wr, p);
    return gather_sges(q->session, wr, p);
}

static void post_bind(struct kedge_vqp *q)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_BIND,
                               .slots = 1,
                               .vqp = q->index,
                               .vqp_gen = q->gen,
                               .bind = {.peer_slot = q->peer_slot, .peer_gen = q->peer_gen}};
    client_ring_put(q->session, &d);
    q->bound = q->known = true;
}

static int post_one(struct kedge_vqp *q, const struct ibv_send_wr *wr)
{
    struct kedge_session *s = q->session;
    union post p;
    int status = build_descriptor(q, wr, &p);
    if (status != 0)
        return status;
    if (!client_ring_room(s, p.d.slots + (q->bound ? 0u : 1u))) {
        status = client_idle(s);
        return status != 0 ? status
                           : client_fail_text(-ENOMEM, "the submission ring is full: poll first");
    }
    if (!q->bound)
        post_bind(q);
    for (uint32_t i = 0; i < p.d.slots; i++)
        client_ring_put(s, p.slot[i]);
    if ((wr->send_flags & IBV_SEND_SIGNALED) != 0) {
        q->out++;
        s->processor.out++;
    }
    return 0;
}

int kedge_post_send(struct kedge_vqp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (client_is_null(q)) {
        if (bad != NULL)
            *bad = wr;
        return -EINVAL;
    }
    struct kedge_session *s = q->session;
    uint32_t before = s->sq_tail;
    int status = client_usable(s);
    if (status == 0 && s->dying_vqps != 0) {
        client_ring_bury(s);
        before = s->sq_tail;
    }
    if (status == 0 && q->state != CLIENT_VQP_CONNECTED)
        status = client_fail_text(-ENOTCONN, "the queue pair is not connected");
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

/* ---- completions */

/* Whether there is one to look at. */
static bool has_cqe(struct kedge_session *s)
{
    if (s->cq_head != s->cq_tail_seen)
        return true;
    const uint32_t tail = atomic_load_explicit(&s->ro->cq_tail, memory_order_acquire);
    if (tail - s->cq_head > s->cq_mask + 1) /* makes no sense: the session is over */
        return false;
    s->cq_tail_seen = tail;
    return s->cq_head != tail;
}

/* Of a VQP that still exists. */
static struct kedge_vqp *owner_of(struct kedge_session *s, const struct schema_cqe *c)
{
    return kedge_vqp_find(s, c->vqp | (uint32_t)c->vqp_gen << 16);
}

static int poll_some(struct kedge_session *s, int n, struct ibv_wc *wc)
{
    uint32_t before = s->cq_head;
    int count = 0;
    while (count < n && has_cqe(s)) {
        struct schema_cqe c = s->cq[s->cq_head & s->cq_mask];
        s->cq_head++;
        struct kedge_vqp *q = owner_of(s, &c);
        if (q == NULL)
            continue;
        if (q->out > 0) { /* else it failed without a flag */
            q->out--;
            s->processor.out--;
        }
        wc[count++] = (struct ibv_wc){.wr_id = c.wr_id,
                                      .status = c.status,
                                      .opcode = c.opcode,
                                      .vendor_err = c.vendor_err,
                                      .byte_len = c.byte_len,
                                      .qp_num = kedge_vqp_num(q)};
    }
    if (count > 0 && client_is_taken_back(s)) /* these may be zeros */
        return 0;
    if (s->cq_head != before)
        atomic_store_explicit(&s->rw->cq_head, s->cq_head, memory_order_release);
    return count;
}

static bool has_any_cqe(struct kedge_session *s, uint32_t unused)
{
    (void)unused;
    return has_cqe(s);
}

/* Of a call that found nothing. A few on end are what a lane takes that has a processor. */
static void poll_in_vain(struct kedge_session *s)
{
    if (++s->processor.polls % GIVE_CALLS != 1)
        return;
    client_say_processor(s);
    if (s->processor.polls > 1 && s->processor.out > 0 && client_shares_processor(s))
        client_give_processor(s, has_any_cqe);
}

int kedge_poll(struct kedge_session *s, int n, struct ibv_wc *wc)
{
    if (client_is_null(s) || (n > 0 && client_is_null(wc)))
        return -EINVAL;
    if (*s->alive == 0)
        return client_usable(s);
    if (n < 0)
        return client_fail_text(-EINVAL, "a negative number of completions");
    int count = poll_some(s, n, wc);
    if (count > 0 || n == 0) {
        s->idle = s->processor.polls = 0;
        return count;
    }
    int status = client_usable(s);
    if (status == 0)
        status = client_idle(s);
    if (status == 0) {
        poll_in_vain(s);
        return 0;
    }
    count = poll_some(s, n, wc); /* what came before the end */
    return count > 0 ? count : status;
}

static bool has_completion(struct kedge_session *s, uint32_t unused)
{
    (void)unused;
    uint32_t before = s->cq_head;
    bool found = false;
    while (!found && has_cqe(s)) {
        found = owner_of(s, &s->cq[s->cq_head & s->cq_mask]) != NULL;
        s->cq_head += !found;
    }
    if (found && client_is_taken_back(s))
        return false;
    if (s->cq_head != before)
        atomic_store_explicit(&s->rw->cq_head, s->cq_head, memory_order_release);
    return found;
}

/* Or else something to hear: it is told with that. */
static bool has_something(struct kedge_session *s, uint32_t unused)
{
    return has_completion(s, unused) || client_has_notice(s);
}

static bool take_something(struct kedge_session *s)
{
    if (has_completion(s, 0))
        return true;
    if (!client_has_notice(s))
        return false;
    client_told(s);
    return true;
}

int kedge_wait(struct kedge_session *s, int timeout_ms)
{
    if (client_is_null(s))
        return -EINVAL;
    uint64_t until =
        timeout_ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
    if (*s->alive == 0)
        return client_usable(s);
    for (;;) {
        if (take_something(s))
            return 1;
        int status = client_usable(s);
        if (status == 0)
            status = client_sleep(s, has_something, 0, until);
        if (status == 0)
            continue;
        if (take_something(s))
            return 1;
        return status == -ETIMEDOUT ? 0 : status;
    }
}
