/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: the lane has the list, and shows in its page how each stands. */
#include "batch.h"

#include <kedge_batch.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "post.h"
#include "request.h"
#include "sender.h"

static_assert(KEDGE_BATCH_MOST == SCHEMA_BATCH_MOST && KEDGE_BATCHES == SCHEMA_BATCHES &&
                  KEDGE_WC_BATCH == SCHEMA_WC_BATCH,
              "what the header promises");

struct kedge_batch {
    struct kedge_session *session;
    struct kedge_batch *next, **link; /* in the session's list */
    uint32_t number, gen, count;
    uint32_t posted; /* so often */
};

static void link_batch(struct kedge_batch *b)
{
    struct kedge_session *s = b->session;
    b->next = s->batches;
    b->link = &s->batches;
    if (b->next != NULL)
        b->next->link = &b->next;
    s->batches = b;
}

static void free_batch(struct kedge_batch *b)
{
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
    free(b);
}

void client_batches_free(struct kedge_session *s)
{
    while (s->batches != NULL)
        free_batch(s->batches);
}

static const struct schema_batch_shown *shown_of(const struct kedge_batch *b)
{
    return &b->session->ro->batch[b->number];
}

static bool is_posted(const struct kedge_batch *b)
{
    return atomic_load_explicit(&shown_of(b)->ended, memory_order_acquire) != b->posted;
}

/* ---- preparing */

/* What the agent would refuse, with a sentence that says what. */
static int check_desc(const struct kedge_session *s, const struct kedge_batch_desc *d, size_t i)
{
    const uint32_t arena = d->local.lkey - 1;
    if (d->opcode != IBV_WR_RDMA_READ && d->opcode != IBV_WR_RDMA_WRITE)
        return client_fail(-EINVAL,
                           "descs[%zu].opcode is %u: IBV_WR_RDMA_READ and IBV_WR_RDMA_WRITE are "
                           "possible",
                           i, (unsigned)d->opcode);
    if (arena >= CLIENT_MAX_ARENAS || s->arenas[arena].addr == NULL)
        return client_fail(-EINVAL, "descs[%zu].local.lkey is %u, which is none of kedge_alloc()'s",
                           i, d->local.lkey);
    const struct client_arena *a = &s->arenas[arena];
    const uint64_t offset = d->local.addr - (uintptr_t)a->addr;
    if (d->local.length == 0 || offset > a->bytes || d->local.length > a->bytes - offset)
        return client_fail(-EINVAL,
                           "descs[%zu].local has no byte, or reaches outside of its arena: %u "
                           "bytes at %#llx, where that has %zu at %p",
                           i, d->local.length, (unsigned long long)d->local.addr, a->bytes,
                           (void *)a->addr);
    return 0;
}

static int check_all(const struct kedge_session *s, const struct kedge_batch_desc *descs, size_t n)
{
    int status = 0;
    if (n == 0 || n > KEDGE_BATCH_MOST)
        return client_fail(-EINVAL, "a batch has 1 to %d descriptors, and not %zu",
                           KEDGE_BATCH_MOST, n);
    for (size_t i = 0; i < n && status == 0; i++)
        status = check_desc(s, &descs[i], i);
    return status;
}

/* In one message: of one operation and one arena, as many as the smallest ring takes. */
static uint32_t count_alike(const struct kedge_session *s, const struct kedge_batch_desc *descs,
                            size_t n)
{
    size_t most = (size_t)s->sq_mask * SCHEMA_LINE / sizeof(struct schema_batch_entry);
    uint32_t count = 1;
    most = most < SCHEMA_BATCH_FILLED ? most : SCHEMA_BATCH_FILLED;
    most = n < most ? n : most;
    while (count < most && descs[count].opcode == descs[0].opcode &&
           descs[count].local.lkey == descs[0].local.lkey)
        count++;
    return count;
}

/* Returns how many it was, or what kept it from that. */
static int fill_some(struct kedge_batch *b, const struct kedge_batch_desc *descs, size_t n)
{
    struct kedge_session *s = b->session;
    struct schema_batch_entry entries[SCHEMA_BATCH_FILLED];
    const uint32_t count = count_alike(s, descs, n), arena = descs[0].local.lkey - 1;
    struct schema_sq_desc d = {.op = SCHEMA_OP_BATCH_FILL,
                               .batch.fill = {.number = b->number,
                                              .gen = b->gen,
                                              .count = count,
                                              .arena = arena,
                                              .op = descs[0].opcode == IBV_WR_RDMA_READ
                                                        ? SCHEMA_OP_READ
                                                        : SCHEMA_OP_WRITE}};
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct schema_batch_entry){.remote_addr = descs[i].remote_addr,
                                                 .offset = descs[i].local.addr -
                                                           (uintptr_t)s->arenas[arena].addr,
                                                 .length = descs[i].local.length,
                                                 .vkey = descs[i].rkey};
    const int status = client_tell_with(s, &d, entries, count * sizeof entries[0]);
    return status != 0 ? status : (int)count;
}

static int ask_about(struct kedge_batch *b, uint8_t op)
{
    struct client_reply unused;
    struct schema_sq_desc d = {.op = op, .batch.ask = {.number = b->number, .gen = b->gen}};
    return client_request(b->session, &d, &unused);
}

static int fill_all(struct kedge_batch *b, const struct kedge_batch_desc *descs, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int count = fill_some(b, descs + i, n - i);
        if (count < 0)
            return count;
        i += (size_t)count;
    }
    return ask_about(b, SCHEMA_OP_BATCH_READY);
}

static int make_batch(struct kedge_session *s, const struct kedge_batch_desc *descs, size_t n,
                      struct kedge_batch *b)
{
    struct client_reply reply;
    struct schema_sq_desc d = {.op = SCHEMA_OP_BATCH_NEW, .batch.make = {.count = (uint32_t)n}};
    int status = client_request(s, &d, &reply);
    if (status != 0)
        return status;
    if (reply.value[0] >= SCHEMA_BATCHES)
        return client_fail_text(-EPROTO, "the agent's answer makes no sense");
    *b = (struct kedge_batch){.session = s,
                              .number = (uint32_t)reply.value[0],
                              .gen = (uint32_t)reply.value[1],
                              .count = (uint32_t)n};
    status = fill_all(b, descs, n);
    if (status != 0) { /* whoever refused it has freed it; else its place is free again */
        d = (struct schema_sq_desc){.op = SCHEMA_OP_BATCH_FREE,
                                    .batch.ask = {.number = b->number, .gen = b->gen}};
        (void)client_ask(s, &d);
    }
    return status;
}

static int check_agent(const struct kedge_session *s)
{
    if ((s->features & SCHEMA_FEATURE_BATCHES) != 0)
        return 0;
    return client_fail_text(-EOPNOTSUPP, "this host's agent is of before batches: run a newer "
                                         "kedge-agentd, or post the requests one by one");
}

int kedge_batch_prepare(struct kedge_session *s, const struct kedge_batch_desc *descs, size_t n,
                        struct kedge_batch **out)
{
    if (client_is_null(s) || client_is_null(descs) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status == 0)
        status = check_agent(s);
    if (status == 0)
        status = check_all(s, descs, n);
    if (status != 0)
        return status;
    struct kedge_batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return client_fail_text(-ENOMEM, "no memory for a batch");
    status = make_batch(s, descs, n, b);
    if (status != 0) {
        free(b);
        return status;
    }
    link_batch(b);
    *out = b;
    return 0;
}

/* ---- posting */

static int post_batch(struct kedge_vqp *q, const struct kedge_batch *b, uint64_t wr_id)
{
    union client_post p;
    p.d =
        (struct schema_sq_desc){.op = SCHEMA_OP_BATCH,
                                .slots = 1,
                                .vqp = q->index,
                                .vqp_gen = q->gen,
                                .batch.post = {.wr_id = wr_id, .number = b->number, .gen = b->gen}};
    const int status = client_post_put(q, &p);
    if (status != 0)
        return status;
    q->out++;
    q->session->processor.out++;
    client_ring_publish(q->session);
    return 0;
}

int kedge_batch_post(struct kedge_vqp *q, struct kedge_batch *b, uint64_t wr_id)
{
    if (client_is_null(q) || client_is_null(b))
        return -EINVAL;
    struct kedge_session *s = q->session;
    int status = client_usable(s);
    if (status == 0 && b->session != s)
        status = client_fail_text(-EINVAL, "the batch and the queue pair are of two sessions");
    if (status == 0 && is_posted(b))
        status = client_fail_text(-EBUSY, "the batch is posted, and not over: poll, or cancel it");
    if (status == 0 && s->dying_vqps != 0)
        client_ring_bury(s);
    if (status == 0 && q->state != CLIENT_VQP_CONNECTED)
        status = client_sender_connect(q);
    if (status == 0)
        status = post_batch(q, b, wr_id);
    if (status == 0)
        b->posted++;
    return status;
}

/* ---- how it stands */

int kedge_batch_status(struct kedge_batch *b, struct kedge_batch_state *out)
{
    if (client_is_null(b) || client_is_null(out))
        return -EINVAL;
    const struct schema_batch_shown *shown = shown_of(b);
    struct kedge_batch_state is = {.posted = is_posted(b), .count = b->count, .failed = b->count};
    const uint32_t begun = atomic_load_explicit(&shown->begun, memory_order_acquire);
    if (begun == b->posted) /* else it has not been looked at yet */
        is.done = atomic_load_explicit(&shown->done, memory_order_relaxed);
    if (!is.posted) {
        const uint32_t why = atomic_load_explicit(&shown->why, memory_order_relaxed);
        const uint32_t failed = atomic_load_explicit(&shown->failed, memory_order_relaxed);
        is.failed = failed < b->count ? failed : b->count;
        is.status = (enum ibv_wc_status)(why & 0xff);
        is.vendor_err = why >> 8;
    }
    const int status = client_usable(b->session); /* else these may be zeros */
    if (status == 0)
        *out = is;
    return status;
}

int kedge_batch_cancel(struct kedge_batch *b)
{
    if (client_is_null(b))
        return -EINVAL;
    const int status = client_usable(b->session);
    return status != 0 || !is_posted(b) ? status : ask_about(b, SCHEMA_OP_BATCH_CANCEL);
}

int kedge_batch_destroy(struct kedge_batch *b)
{
    if (client_is_null(b))
        return -EINVAL;
    int status = client_usable(b->session);
    if (status == 0 && is_posted(b))
        return client_fail_text(-EBUSY, "the batch is posted, and not over: poll, or cancel it");
    if (status == 0)
        status = ask_about(b, SCHEMA_OP_BATCH_FREE);
    if (status != -EPERM && status != -ETIMEDOUT && status != -EBUSY)
        free_batch(b);
    return status;
}
