/* SPDX-License-Identifier: Apache-2.0 */
/* What a message takes from its doorbell until its receiver has it and its sender knows, between
 * two VQPs of one worker; in turns with a SEND on the fabric itself, whose receives are posted as
 * often; a large one's with a READ of as much. */
#include "send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge_msg.h>

#include "ucx.h"

enum { POLL = 64, PORT = 1 };

static struct {
    struct perf_path path; /* first */
    struct kedge_session *s;
    struct kedge_vqp *q, *port;
    uint8_t *memory, *heard;
    uint32_t lkey, heard_lkey, size;
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;
} w;

static int post_receive(uint32_t slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)w.heard + (uint64_t)slot * perf_stride(w.size),
                          .length = w.size,
                          .lkey = w.heard_lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    return kedge_post_recv(w.port, &wr, &bad);
}

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct ibv_send_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t next = slot + 1 == path->depth ? 0 : slot + 1;
        w.wr[slot].next = &w.wr[next];
        slot = next;
    }
    w.wr[slot].next = NULL;
    const int status = kedge_post_send(w.q, &w.wr[first], &bad);
    return status == 0 ? 0 : perf_failed(status, "posting", err);
}

/* What has come behind what has gone: whose sender knows is there, and its receive is posted again
 * before the next one goes. */
static int poll(struct perf_path *path, struct base_errbuf *err)
{
    struct kedge_msg m[POLL];
    struct ibv_wc wc[POLL];
    (void)path;
    const int n = kedge_poll(w.s, POLL, wc);
    const int heard = n >= 0 ? kedge_pop_msgs(w.s, POLL, m) : 0;
    if (n < 0 || heard < 0)
        return perf_failed(n < 0 ? n : heard, "polling", err);
    for (int i = 0; i < heard; i++)
        if (m[i].wc.status != IBV_WC_SUCCESS || post_receive((uint32_t)m[i].wc.wr_id) != 0)
            return perf_failed_with(&m[i].wc, "a receive", err);
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return perf_failed_with(&wc[i], "a message", err);
    return n;
}

static int prepare(const struct perf_options *o, struct base_errbuf *err)
{
    const uint32_t stride = perf_stride(o->size);
    const size_t bytes = (size_t)stride * o->depth;
    struct kedge_session_info info;
    void *at;
    kedge_session_query(w.s, &info);
    if (o->depth > info.max_recvs)
        return base_err(err, -EINVAL, "--depth is at most %u here", info.max_recvs);
    int status = kedge_alloc(w.s, bytes, &at, &w.heard_lkey);
    w.heard = at;
    if (status == 0)
        status = kedge_vqp_create(w.s, NULL, &w.port);
    if (status == 0)
        status = kedge_bind(w.port, PORT);
    for (uint32_t i = 0; i < o->depth && status == 0; i++)
        status = post_receive(i);
    if (status == 0)
        status = kedge_alloc(w.s, bytes, &at, &w.lkey);
    w.memory = at;
    if (status == 0)
        status = kedge_vqp_create(w.s, NULL, &w.q);
    if (status == 0)
        status = kedge_connect_port(w.q, info.gid, PORT);
    if (status != 0)
        return perf_failed(status, "connecting to a port", err);
    perf_pattern(w.memory, bytes);
    for (uint32_t i = 0; i < o->depth; i++) {
        w.sge[i] = (struct ibv_sge){(uintptr_t)w.memory + (uint64_t)i * stride, o->size, w.lkey};
        w.wr[i] = (struct ibv_send_wr){.wr_id = i,
                                       .sg_list = &w.sge[i],
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED};
    }
    return 0;
}

static bool holds_all(const struct perf_options *o, const void *memory)
{
    bool good = true;
    for (uint32_t i = 0; i < o->depth; i++)
        good &= perf_pattern_holds(memory, (uint64_t)i * perf_stride(o->size), o->size);
    return good;
}

static int order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double take_median(const double *of)
{
    double sorted[PERF_SEND_TURNS];
    memcpy(sorted, of, sizeof sorted);
    qsort(sorted, PERF_SEND_TURNS, sizeof sorted[0], order_doubles);
    return sorted[PERF_SEND_TURNS / 2];
}

/* Whole messages of each slot's turn, so that what is in a place is that slot's. */
static int take_turns(const struct perf_options *o, struct perf_path *direct, struct perf_result *r,
                      struct base_errbuf *err)
{
    struct base_clock_fast clock;
    double p50[PERF_SENDS][PERF_SEND_TURNS], rate[PERF_SENDS][PERF_SEND_TURNS];
    double ratio[PERF_SEND_TURNS];
    const uint64_t count = (o->count + o->depth - 1) / o->depth * o->depth;
    int status = 0;
    base_clock_fast_init(&clock);
    for (int turn = -1; turn < PERF_SEND_TURNS && status == 0; turn++) {
        for (int k = 0; k < PERF_SENDS && status == 0; k++) {
            status = perf_loop(k == PERF_SEND_DIRECT ? direct : &w.path, &clock, count, r, err);
            if (turn < 0) /* which warms up */
                continue;
            p50[k][turn] = (double)base_hist_percentile(&r->hist, 50);
            rate[k][turn] = (double)count * 1e9 / (double)r->elapsed_ns;
        }
        if (turn >= 0)
            ratio[turn] = p50[PERF_SEND_AGENT][turn] / p50[PERF_SEND_DIRECT][turn];
    }
    for (int k = 0; k < PERF_SENDS && status == 0; k++) {
        r->sent.p50_ns[k] = take_median(p50[k]);
        r->sent.per_second[k] = take_median(rate[k]);
    }
    if (status != 0)
        return status;
    r->sent.ratio = take_median(ratio);
    qsort(ratio, PERF_SEND_TURNS, sizeof ratio[0], order_doubles);
    r->sent.least_ratio = ratio[0];
    r->sent.most_ratio = ratio[PERF_SEND_TURNS - 1];
    r->verified = holds_all(o, w.heard) && holds_all(o, perf_send_direct_heard());
    return r->verified ? 0 : base_err(err, -EBADMSG, "a receive holds other bytes than were sent");
}

int perf_send(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_path *direct = NULL;
    w.size = o->size;
    w.path = (struct perf_path){.post = post, .poll = poll, .depth = o->depth};
    w.wr = calloc(o->depth, sizeof *w.wr);
    w.sge = calloc(o->depth, sizeof *w.sge);
    int status = w.wr == NULL || w.sge == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = perf_open(o->socket, &w.s, &r->retries, err);
    if (status == 0)
        status = prepare(o, err);
    if (status == 0)
        status = perf_send_direct(o, o->local_device, &direct, err);
    if (status == 0)
        status = take_turns(o, direct, r, err);
    kedge_close(w.s);
    free(w.wr);
    free(w.sge);
    return status;
}

void perf_send_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_sent *s = &r->sent;
    const char *direct = perf_send_is_large(o) ? "READ" : "SEND";
    const bool is_near = perf_send_is_near(o);
    if (!o->json) {
        printf(
            "send of %u bytes, depth %u, %s, in %d turns with %ss on the fabric itself: p50 %.3f "
            "us for %.3f us, %.2f times (%.2f to %.2f); %.0f and %.0f per second\n",
            o->size, o->depth, is_near ? "near (by no device)" : "by the device", PERF_SEND_TURNS,
            direct, s->p50_ns[PERF_SEND_AGENT] / 1e3, s->p50_ns[PERF_SEND_DIRECT] / 1e3, s->ratio,
            s->least_ratio, s->most_ratio, s->per_second[PERF_SEND_AGENT],
            s->per_second[PERF_SEND_DIRECT]);
        if (o->ucx)
            perf_ucx_report(o, &r->ucx, NULL);
        return;
    }
    struct base_text t;
    base_text_init(&t, 2048);
    base_text_printf(
        &t,
        "{\"test\":\"send\",\"provider\":\"soft\",\"size\":%u,\"depth\":%u,\"near\":%s,"
        "\"direct\":\"%s\",\"verified\":%s,\"turns\":%d,\"p50_ns\":%.0f,\"direct_p50_ns\":%.0f,"
        "\"ratio\":%.3f,\"least_ratio\":%.3f,\"most_ratio\":%.3f,\"per_second\":%.0f,"
        "\"direct_per_second\":%.0f,\"pinned\":%s,",
        o->size, o->depth, is_near ? "true" : "false", direct, r->verified ? "true" : "false",
        PERF_SEND_TURNS, s->p50_ns[PERF_SEND_AGENT], s->p50_ns[PERF_SEND_DIRECT], s->ratio,
        s->least_ratio, s->most_ratio, s->per_second[PERF_SEND_AGENT],
        s->per_second[PERF_SEND_DIRECT], o->pinned ? "true" : "false");
    if (o->ucx)
        perf_ucx_report(o, &r->ucx, &t);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}
