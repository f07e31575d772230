/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker pays for: attaching, connecting, reading and writing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "perf.h"

enum { POLL = 64, OPEN_S = 120, ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

int perf_failed(int status, const char *what, struct base_errbuf *err)
{
    return base_err(err, status, "%s failed: %s", what, kedge_last_error());
}

int perf_failed_with(const struct ibv_wc *wc, const char *what, struct base_errbuf *err)
{
    const bool refused = wc->vendor_err != 0;
    return base_err(err, -EIO, "%s failed: %s%s%s", what, kedge_wc_status_str(wc->status),
                    refused ? ": " : "", refused ? kedge_reason_str(wc->vendor_err) : "");
}

int perf_open(const char *socket, struct kedge_session **out, uint64_t *retries,
              struct base_errbuf *err)
{
    uint32_t retry_ms = 0;
    const struct kedge_open_attr attr = {.socket = socket, .retry_ms = &retry_ms};
    const uint64_t until = base_clock_ns() + OPEN_S * BASE_NS_PER_S;
    int status = kedge_open(&attr, out);
    while (status == -EAGAIN && base_clock_ns() < until) {
        (*retries)++;
        usleep(retry_ms * 1000);
        status = kedge_open(&attr, out);
    }
    return status == 0 ? 0 : perf_failed(status, "attaching", err);
}

int perf_attach(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    uint32_t retry_ms = 0;
    const struct kedge_open_attr attr = {.socket = o->socket, .retry_ms = &retry_ms};
    struct base_clock_fast clock;
    base_clock_fast_init(&clock);
    base_hist_reset(&r->hist);
    uint64_t first = base_clock_fast_ns(&clock), last = first;
    while (r->hist.count < o->count) {
        struct kedge_session *s;
        uint64_t begin = base_clock_fast_ns(&clock);
        int status = kedge_open(&attr, &s);
        uint64_t end = base_clock_fast_ns(&clock);
        if (status == -EAGAIN && end - last < OPEN_S * BASE_NS_PER_S) {
            r->retries++; /* it makes them in the background */
            usleep(retry_ms * 1000);
            continue;
        }
        if (status != 0)
            return perf_failed(status, "attaching", err);
        base_hist_record(&r->hist, end - begin);
        kedge_close(s);
        last = end;
    }
    r->elapsed_ns = base_clock_fast_ns(&clock) - first;
    return 0;
}

/* Connects q count times; to the peer, or each time to another unknown endpoint. */
static int connect_all(struct kedge_vqp *q, const struct perf_options *o, const uint8_t peer[16],
                       const struct perf_unknown_nodes *unknown, struct perf_result *r,
                       struct base_errbuf *err)
{
    struct base_clock_fast clock;
    uint8_t gid[16];
    memcpy(gid, peer, 16);
    base_clock_fast_init(&clock);
    base_hist_reset(&r->hist);
    uint64_t first = base_clock_fast_ns(&clock);
    for (uint64_t i = 0; i < o->count; i++) {
        if (!o->cached)
            perf_unknown_gid(unknown, i, gid);
        uint64_t begin = base_clock_fast_ns(&clock);
        int status = kedge_connect(q, gid);
        base_hist_record(&r->hist, base_clock_fast_ns(&clock) - begin);
        if (status != 0)
            return perf_failed(status, "connecting", err);
    }
    r->elapsed_ns = base_clock_fast_ns(&clock) - first;
    return 0;
}

int perf_connect(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    const char *peer_socket = o->peer_socket != NULL ? o->peer_socket : o->socket;
    struct kedge_session *s = NULL, *peer = NULL;
    struct kedge_session_info info;
    struct kedge_vqp *q;
    struct perf_unknown_nodes unknown = {.registered = 0};
    int status = perf_open(o->socket, &s, &r->retries, err);
    if (status == 0)
        status = perf_open(peer_socket, &peer, &r->retries, err);
    if (status != 0)
        goto out;
    kedge_session_query(peer, &info);
    status = kedge_vqp_create(s, NULL, &q);
    if (status == 0)
        status = kedge_connect(q, info.gid); /* wakes the lane, and makes the peer a known one */
    if (status != 0) {
        perf_failed(status, "the first connection", err);
        goto out;
    }
    if (!o->cached)
        status = perf_unknown_nodes_add(o, info.gid, &unknown, err);
    if (status == 0)
        status = connect_all(q, o, info.gid, &unknown, r, err);
    perf_unknown_nodes_remove(o, &unknown);
out:
    kedge_close(peer);
    kedge_close(s);
    return status;
}

struct perf_worker {
    struct perf_path path; /* first */
    struct kedge_session *s, *peer;
    struct kedge_vqp *q;
    struct kedge_remote remote[PERF_MAX_REGIONS]; /* the same memory under so many keys, in turn */
    uint32_t regions, region;
    void *memory, *peer_memory;
    uint32_t lkey;
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;
};

static uint32_t next_key(struct perf_worker *w)
{
    w->region = w->region + 1 == w->regions ? 0 : w->region + 1;
    return w->remote[w->region].rkey;
}

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct perf_worker *w = (struct perf_worker *)path;
    struct ibv_send_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t next = slot + 1 == path->depth ? 0 : slot + 1;
        w->wr[slot].next = &w->wr[next];
        w->wr[slot].wr.rdma.rkey = next_key(w);
        slot = next;
    }
    w->wr[slot].wr.rdma.rkey = next_key(w);
    w->wr[slot].next = NULL;
    int status = kedge_post_send(w->q, &w->wr[first], &bad);
    return status == 0 ? 0 : perf_failed(status, "posting", err);
}

static int poll(struct perf_path *path, struct base_errbuf *err)
{
    struct ibv_wc wc[POLL];
    int n = kedge_poll(((struct perf_worker *)path)->s, POLL, wc);
    if (n < 0)
        return perf_failed(n, "polling", err);
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return perf_failed_with(&wc[i], "an operation", err);
    return n;
}

static void requests(struct perf_worker *w, const struct perf_options *o, enum ibv_wr_opcode opcode)
{
    uint32_t stride = perf_stride(o->size);
    for (uint32_t i = 0; i < o->depth; i++) {
        w->sge[i] = (struct ibv_sge){.addr = (uintptr_t)w->memory + (uint64_t)i * stride,
                                     .length = o->size,
                                     .lkey = w->lkey};
        w->wr[i] =
            (struct ibv_send_wr){.wr_id = i,
                                 .sg_list = &w->sge[i],
                                 .num_sge = 1,
                                 .opcode = opcode,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma.remote_addr = w->remote[0].addr + (uint64_t)i * stride};
    }
}

/* Regions of the target with the pattern, all of the same memory, imported here. */
static int lend(struct perf_worker *w, uint64_t bytes, struct base_errbuf *err)
{
    char token[KEDGE_TOKEN_MAX];
    struct kedge_mr *mr;
    int status = 0;
    for (uint32_t i = 0; i < w->regions && status == 0; i++) {
        status = kedge_reg_mr(w->peer, w->peer_memory, bytes, ACCESS, &mr);
        if (status == 0)
            status = kedge_mr_export(mr, token, sizeof token);
        if (status == 0)
            status = kedge_import(w->s, token, &w->remote[i]);
    }
    return status == 0 ? 0 : perf_failed(status, "exporting and importing a region", err);
}

/* The target's side, and this one's: memory, a VQP that is connected. */
static int prepare(struct perf_worker *w, const struct perf_options *o, struct base_errbuf *err)
{
    uint64_t bytes = (uint64_t)perf_stride(o->size) * o->depth;
    uint32_t peer_lkey;
    int status = kedge_alloc(w->peer, bytes, &w->peer_memory, &peer_lkey);
    if (status != 0)
        return perf_failed(status, "the target's memory", err);
    perf_pattern(w->peer_memory, bytes);
    status = lend(w, bytes, err);
    if (status != 0)
        return status;
    status = kedge_alloc(w->s, bytes, &w->memory, &w->lkey);
    if (status == 0)
        status = kedge_vqp_create(w->s, NULL, &w->q);
    if (status == 0)
        status = kedge_connect(w->q, w->remote[0].gid);
    return status == 0 ? 0 : perf_failed(status, "connecting", err);
}

struct perf_path *perf_worker_path(struct perf_worker *w)
{
    return &w->path;
}

struct kedge_session *perf_worker_session(const struct perf_worker *w)
{
    return w->s;
}

int perf_worker_measure(struct perf_worker *w, const struct perf_options *o, struct perf_result *r,
                        struct base_errbuf *err)
{
    static struct perf_result unused;
    struct base_clock_fast clock;
    const bool write = o->test == PERF_WRITE;
    uint64_t bytes = (uint64_t)perf_stride(o->size) * o->depth;
    base_clock_fast_init(&clock);
    if (write) {
        perf_pattern(w->memory, bytes);
        memset(w->peer_memory, 0, bytes);
    }
    requests(w, o, write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ);
    int status = perf_loop(&w->path, &clock, o->depth + o->count / 10, &unused, err);
    if (status == 0)
        status = perf_loop(&w->path, &clock, o->count, r, err);
    const void *written = write ? w->peer_memory : w->memory;
    for (uint32_t i = 0; i < o->depth && status == 0; i++)
        if (!perf_pattern_holds(written, (uint64_t)i * perf_stride(o->size), o->size))
            status = base_err(err, -EBADMSG, "slot %u holds other bytes than were sent", i);
    r->verified = status == 0;
    return status;
}

int perf_worker_new(const struct perf_options *o, struct perf_result *r, struct perf_worker **out,
                    struct base_errbuf *err)
{
    struct kedge_session_info info;
    struct perf_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    w->regions = o->regions;
    w->path = (struct perf_path){.post = post, .poll = poll, .depth = o->depth};
    w->wr = calloc(o->depth, sizeof *w->wr);
    w->sge = calloc(o->depth, sizeof *w->sge);
    int status = w->wr == NULL || w->sge == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = perf_open(o->socket, &w->s, &r->retries, err);
    if (status == 0)
        status = perf_open(o->peer_socket != NULL ? o->peer_socket : o->socket, &w->peer,
                           &r->retries, err);
    if (status == 0) {
        kedge_session_query(w->s, &info);
        if (o->depth > info.max_inflight)
            status = base_err(err, -EINVAL, "--depth is at most %u here (max_inflight in [pool])",
                              info.max_inflight);
    }
    if (status == 0)
        status = prepare(w, o, err);
    if (status == 0)
        *out = w;
    else
        perf_worker_free(w);
    return status;
}

void perf_worker_free(struct perf_worker *w)
{
    if (w == NULL)
        return;
    kedge_close(w->s);
    kedge_close(w->peer);
    free(w->wr);
    free(w->sge);
    free(w);
}

int perf_one_sided(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_worker *w = NULL;
    int status = perf_worker_new(o, r, &w, err);
    if (status == 0)
        status = perf_worker_measure(w, o, r, err);
    perf_worker_free(w);
    return status;
}
