/* SPDX-License-Identifier: Apache-2.0 */
/* verbs-data: messages, WRITEs with immediate, and batches through an agent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kedge_batch.h>
#include <kedge_msg.h>

#include "verbs_data.h"

enum { POLL = 64, PORT = 7, NAP_MS = 1, WAIT_MS = 60000, SENDING, WRITING, WAYS };

struct perf_sender {
    struct way {
        struct perf_path path; /* first */
        struct perf_sender *of;
        struct ibv_send_wr *wr;
    } way[WAYS];
    const struct perf_options *o;
    struct kedge_session *s, *peer;
    struct kedge_vqp *q, *port;
    struct kedge_remote remote;
    uint8_t *memory, *heard;
    uint32_t lkey, heard_lkey;
    struct ibv_sge *sge;
};

static const char *peer_socket(const struct perf_options *o)
{
    return o->peer_socket != NULL ? o->peer_socket : o->socket;
}

static uint64_t slots_bytes(const struct perf_options *o)
{
    return (uint64_t)perf_stride(o->size) * o->depth;
}

static int post_receive(struct perf_sender *s, uint64_t slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)s->heard + slot * perf_stride(s->o->size),
                          .length = s->o->size,
                          .lkey = s->heard_lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    return kedge_post_recv(s->port, &wr, &bad);
}

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct way *w = (struct way *)path;
    struct ibv_send_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t next = slot + 1 == path->depth ? 0 : slot + 1;
        w->wr[slot].next = i + 1 < count ? &w->wr[next] : NULL;
        slot = next;
    }
    const int status = kedge_post_send(w->of->q, &w->wr[first], &bad);
    return status == 0 ? 0 : perf_failed(status, "posting", err);
}

/* A message takes both lanes, which poll. A worker that polled as well would be a third one on the
 * two processors that guests have, and each would wait for its turn of the scheduler's. */
static int poll(struct perf_path *path, struct base_errbuf *err)
{
    struct perf_sender *s = ((struct way *)path)->of;
    struct kedge_msg m[POLL];
    struct ibv_wc wc[POLL];
    int n = kedge_pop_msgs(s->peer, POLL, m);
    for (int i = 0; i < n; i++)
        if (m[i].wc.status != IBV_WC_SUCCESS || post_receive(s, m[i].wc.wr_id) != 0)
            return perf_failed_with(&m[i].wc, "a receive", err);
    if (n >= 0)
        n = kedge_poll(s->s, POLL, wc);
    if (n == 0)
        n = kedge_wait(s->s, NAP_MS) < 0 ? -EIO : 0;
    if (n < 0)
        return perf_failed(n, "polling", err);
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return perf_failed_with(&wc[i], "a message", err);
    return n;
}

/* A session's memory of so many bytes that its peer may write to, as the other one names it. */
static int lend(struct kedge_session *owner, struct kedge_session *to, uint64_t bytes,
                uint8_t **memory, uint32_t *lkey, struct kedge_remote *remote)
{
    char token[KEDGE_TOKEN_MAX];
    struct kedge_mr *mr;
    void *at = NULL;
    int status = kedge_alloc(owner, bytes, &at, lkey);
    *memory = at;
    if (status == 0)
        status =
            kedge_reg_mr(owner, at, bytes, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, &mr);
    if (status == 0)
        status = kedge_mr_export(mr, token, sizeof token);
    return status == 0 ? kedge_import(to, token, remote) : status;
}

static int make_port(struct perf_sender *s)
{
    int status = lend(s->peer, s->s, slots_bytes(s->o), &s->heard, &s->heard_lkey, &s->remote);
    if (status == 0)
        status = kedge_vqp_create(s->peer, NULL, &s->port);
    if (status == 0)
        status = kedge_bind(s->port, PORT);
    /* Twice as many as may be out: a message may be over before its receive was seen to be. */
    for (uint32_t i = 0; i < 2 * s->o->depth && status == 0; i++)
        status = post_receive(s, i % s->o->depth);
    return status;
}

static int make_sender(struct perf_sender *s)
{
    void *at = NULL;
    int status = kedge_alloc(s->s, slots_bytes(s->o), &at, &s->lkey);
    s->memory = at;
    if (status == 0)
        status = kedge_vqp_create(s->s, NULL, &s->q);
    return status == 0 ? kedge_connect_port(s->q, s->remote.gid, PORT) : status;
}

static void fill_requests(struct perf_sender *s)
{
    static const enum ibv_wr_opcode opcodes[WAYS] = {
        [SENDING] = IBV_WR_SEND, [WRITING] = IBV_WR_RDMA_WRITE_WITH_IMM};
    const uint32_t stride = perf_stride(s->o->size);
    for (uint32_t i = 0; i < s->o->depth; i++)
        s->sge[i] =
            (struct ibv_sge){(uintptr_t)s->memory + (uint64_t)i * stride, s->o->size, s->lkey};
    for (int k = SENDING; k < WAYS; k++)
        for (uint32_t i = 0; i < s->o->depth; i++)
            s->way[k].wr[i] = (struct ibv_send_wr){
                .wr_id = i,
                .sg_list = &s->sge[i],
                .num_sge = 1,
                .opcode = opcodes[k],
                .send_flags = IBV_SEND_SIGNALED,
                .wr.rdma = {.remote_addr = s->remote.addr + (uint64_t)i * stride,
                            .rkey = s->remote.rkey}};
}

static int allocate(struct perf_sender *s)
{
    bool good = (s->sge = calloc(s->o->depth, sizeof *s->sge)) != NULL;
    for (int k = SENDING; k < WAYS; k++) {
        s->way[k].of = s;
        s->way[k].path = (struct perf_path){.post = post, .poll = poll, .depth = s->o->depth};
        s->way[k].wr = calloc(s->o->depth, sizeof *s->way[k].wr);
        good &= s->way[k].wr != NULL;
    }
    return good ? 0 : -ENOMEM;
}

int perf_sender_new(const struct perf_options *o, struct perf_result *r, struct perf_sender **out,
                    struct base_errbuf *err)
{
    struct kedge_session_info info;
    struct perf_sender *s = calloc(1, sizeof *s);
    if (s == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    s->o = o;
    int status = allocate(s) != 0 ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = perf_open(o->socket, &s->s, &r->retries, err);
    if (status == 0)
        status = perf_open(peer_socket(o), &s->peer, &r->retries, err);
    if (status == 0) {
        kedge_session_query(s->peer, &info);
        if (2 * o->depth > info.max_recvs)
            status = base_err(err, -EINVAL,
                              info.max_recvs == 0
                                  ? "agents of verbs-data need messages = yes in [pool]%.0u"
                                  : "--depth is at most %u here",
                              info.max_recvs / 2);
    }
    if (status == 0 && ((status = make_port(s)) != 0 || (status = make_sender(s)) != 0))
        status = perf_failed(status, "connecting to a port", err);
    if (status != 0) {
        perf_sender_free(s);
        return status;
    }
    fill_requests(s);
    perf_pattern(s->memory, slots_bytes(o));
    *out = s;
    return 0;
}

void perf_sender_free(struct perf_sender *s)
{
    if (s == NULL)
        return;
    kedge_close(s->s);
    kedge_close(s->peer);
    for (int k = SENDING; k < WAYS; k++)
        free(s->way[k].wr);
    free(s->sge);
    free(s);
}

struct perf_path *perf_sender_path(struct perf_sender *s, bool with_immediate)
{
    return &s->way[with_immediate ? WRITING : SENDING].path;
}

void perf_sender_clear(struct perf_sender *s)
{
    memset(s->heard, 0, slots_bytes(s->o));
}

bool perf_sender_arrived(const struct perf_sender *s)
{
    bool good = true;
    for (uint32_t i = 0; i < s->o->depth; i++)
        good &= perf_pattern_holds(s->heard, (uint64_t)i * perf_stride(s->o->size), s->o->size);
    return good;
}

/* ---- batches */

enum { BLOCK = PERF_VERBS_BLOCK, BLOCKS = PERF_VERBS_BLOCKS, BATCH_BYTES = BLOCK * BLOCKS };

struct perf_batcher {
    struct kedge_session *s, *peer;
    struct kedge_vqp *q;
    struct kedge_batch *batch;
    struct kedge_remote remote;
    uint8_t *memory, *target;
    uint32_t lkey;
    uint64_t count;
};

static int prepare(struct perf_batcher *b)
{
    struct kedge_batch_desc *d = calloc(b->count, sizeof *d);
    if (d == NULL)
        return -ENOMEM;
    for (uint64_t i = 0; i < b->count; i++) {
        const uint64_t at = i % BLOCKS * BLOCK;
        d[i] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_WRITE,
            .rkey = b->remote.rkey,
            .local = {.addr = (uintptr_t)b->memory + at, .length = BLOCK, .lkey = b->lkey},
            .remote_addr = b->remote.addr + at};
    }
    const int status = kedge_batch_prepare(b->s, d, b->count, &b->batch);
    free(d);
    return status;
}

int perf_batcher_new(const struct perf_options *o, struct perf_result *r, struct perf_batcher **out,
                     struct base_errbuf *err)
{
    struct perf_batcher *b = calloc(1, sizeof *b);
    uint32_t target_lkey;
    void *at = NULL;
    if (b == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    b->count = o->count;
    int status = perf_open(o->socket, &b->s, &r->retries, err);
    if (status == 0)
        status = perf_open(peer_socket(o), &b->peer, &r->retries, err);
    if (status != 0)
        goto out;
    status = lend(b->peer, b->s, BATCH_BYTES, &b->target, &target_lkey, &b->remote);
    if (status == 0)
        status = kedge_alloc(b->s, BATCH_BYTES, &at, &b->lkey);
    b->memory = at;
    if (status == 0)
        status = kedge_vqp_create(b->s, NULL, &b->q);
    if (status == 0)
        status = kedge_connect(b->q, b->remote.gid);
    if (status == 0)
        perf_pattern(b->memory, BATCH_BYTES);
    if (status == 0)
        status = prepare(b);
    if (status != 0)
        status = perf_failed(status, "preparing a batch", err);
out:
    if (status == 0)
        *out = b;
    else
        perf_batcher_free(b);
    return status;
}

void perf_batcher_free(struct perf_batcher *b)
{
    if (b == NULL)
        return;
    kedge_close(b->s);
    kedge_close(b->peer);
    free(b);
}

int perf_batcher_run(struct perf_batcher *b, uint64_t *ns, struct base_errbuf *err)
{
    const uint64_t bytes = (b->count < BLOCKS ? b->count : BLOCKS) * BLOCK;
    struct ibv_wc wc;
    memset(b->target, 0, BATCH_BYTES);
    const uint64_t begin = base_clock_ns();
    int n = kedge_batch_post(b->q, b->batch, 1);
    if (n != 0)
        return perf_failed(n, "posting", err);
    while ((n = kedge_poll(b->s, 1, &wc)) == 0)
        if ((n = kedge_wait(b->s, WAIT_MS)) <= 0)
            return perf_failed(n == 0 ? -ETIMEDOUT : n, "waiting", err);
    *ns = base_clock_ns() - begin;
    if (n < 0)
        return perf_failed(n, "polling", err);
    if (wc.status != IBV_WC_SUCCESS)
        return perf_failed_with(&wc, "a batch", err);
    return memcmp(b->memory, b->target, bytes) == 0
               ? 0
               : base_err(err, -EBADMSG, "a batch left other bytes than were written");
}
