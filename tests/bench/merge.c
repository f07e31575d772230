/* SPDX-License-Identifier: Apache-2.0 */
/* What merging saves a device: how many work requests WRITEs of several workers to one region are,
 * by what the agent counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge.h>

#include "base/random.h"
#include "counters.h"
#include "perf.h"

enum { ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, POLL = 64, PATIENCE_S = 60 };

static const char *const order_names[PERF_ORDERS] = {
    [PERF_RUNS] = "runs", [PERF_STRIPES] = "stripes", [PERF_RANDOM] = "random"};
static const char *const order_texts[PERF_ORDERS] = {[PERF_RUNS] =
                                                         "each worker its own run, relaxed",
                                                     [PERF_STRIPES] = "workers in turn, in order",
                                                     [PERF_RANDOM] = "at random, relaxed"};

struct writer {
    struct kedge_session *s;
    struct kedge_vqp *q;
    struct kedge_remote remote;
    uint8_t *memory;
    uint32_t lkey, done;
};

struct writers {
    const struct perf_options *o;
    struct kedge_session *owner;
    uint8_t *target;
    struct writer *at;
    struct ibv_send_wr *wr;
    struct ibv_sge *sge;
    uint32_t *block; /* a permutation of all blocks */
};

static uint64_t blocks_of(const struct perf_options *o)
{
    return (uint64_t)o->workers * o->depth;
}

/* ---- workers */

static int open_writer(struct writers *w, struct writer *one, const char *socket, const char *token,
                       struct perf_result *r, struct base_errbuf *err)
{
    void *memory;
    int status = perf_open(socket, &one->s, &r->retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(one->s, (size_t)w->o->depth * w->o->size, &memory, &one->lkey);
    one->memory = memory;
    if (status == 0)
        status = kedge_import(one->s, token, &one->remote);
    if (status == 0)
        status = kedge_vqp_create(one->s, NULL, &one->q);
    if (status == 0)
        status = kedge_connect(one->q, one->remote.gid);
    return status == 0 ? 0 : perf_failed(status, "a worker's beginning", err);
}

static void close_writers(struct writers *w)
{
    for (uint32_t i = 0; w->at != NULL && i < w->o->workers; i++)
        kedge_close(w->at[i].s);
    kedge_close(w->owner);
    free(w->at);
    free(w->wr);
    free(w->sge);
    free(w->block);
}

static int open_writers(struct writers *w, const char *socket, struct perf_result *r,
                        struct base_errbuf *err)
{
    const struct perf_options *o = w->o;
    const size_t bytes = blocks_of(o) * o->size;
    char token[KEDGE_TOKEN_MAX];
    struct kedge_mr *mr;
    uint32_t lkey;
    void *target;
    w->at = calloc(o->workers, sizeof *w->at);
    w->wr = calloc(o->depth, sizeof *w->wr);
    w->sge = calloc(o->depth, sizeof *w->sge);
    w->block = calloc(blocks_of(o), sizeof *w->block);
    if (w->at == NULL || w->wr == NULL || w->sge == NULL || w->block == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = perf_open(o->peer_socket, &w->owner, &r->retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(w->owner, bytes, &target, &lkey);
    if (status == 0)
        status = kedge_reg_mr(w->owner, target, bytes, ACCESS, &mr);
    if (status == 0)
        status = kedge_mr_export(mr, token, sizeof token);
    if (status != 0)
        return perf_failed(status, "the target's memory", err);
    w->target = target;
    for (uint32_t i = 0; i < o->workers && status == 0; i++)
        status = open_writer(w, &w->at[i], socket, token, r, err);
    return status;
}

/* ---- a round: each worker posts depth WRITEs, and all are awaited */

static void choose_blocks(struct writers *w, enum perf_order order, struct base_prng *prng)
{
    const uint32_t depth = w->o->depth, workers = w->o->workers;
    for (uint32_t i = 0; i < workers; i++)
        for (uint32_t k = 0; k < depth; k++)
            w->block[i * depth + k] = order == PERF_STRIPES ? k * workers + i : i * depth + k;
    for (uint64_t n = blocks_of(w->o); order == PERF_RANDOM && n > 1; n--) {
        const uint64_t other = base_prng_below(prng, n);
        const uint32_t last = w->block[n - 1];
        w->block[n - 1] = w->block[other];
        w->block[other] = last;
    }
}

static int post_writes(struct writers *w, uint32_t me, enum perf_order order, uint32_t first,
                       uint32_t count, struct base_errbuf *err)
{
    struct writer *one = &w->at[me];
    const uint32_t size = w->o->size;
    struct ibv_send_wr *bad;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t slot = first + k;
        w->sge[k] =
            (struct ibv_sge){(uintptr_t)one->memory + (uint64_t)slot * size, size, one->lkey};
        w->wr[k] = (struct ibv_send_wr){
            .wr_id = slot,
            .sg_list = &w->sge[k],
            .num_sge = 1,
            .next = k + 1 < count ? &w->wr[k + 1] : NULL,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED | (order != PERF_STRIPES ? KEDGE_SEND_RELAXED : 0),
            .wr.rdma = {.remote_addr =
                            one->remote.addr + (uint64_t)w->block[me * w->o->depth + slot] * size,
                        .rkey = one->remote.rkey}};
    }
    const int status = kedge_post_send(one->q, w->wr, &bad);
    return status == 0 ? 0 : perf_failed(status, "posting", err);
}

static int await_writes(struct writers *w, uint32_t me, uint32_t count, struct base_errbuf *err)
{
    struct writer *one = &w->at[me];
    struct ibv_wc wc[POLL];
    const uint64_t end_ns = base_clock_ns() + PATIENCE_S * BASE_NS_PER_S;
    for (one->done = 0; one->done < count;) {
        const int n = kedge_poll(one->s, POLL, wc);
        if (n < 0)
            return perf_failed(n, "polling", err);
        for (int i = 0; i < n; i++)
            if (wc[i].status != IBV_WC_SUCCESS)
                return perf_failed_with(&wc[i], "a WRITE", err);
        one->done += (uint32_t)n;
        if (n == 0 && base_clock_ns() > end_ns)
            return base_err(err, -ETIMEDOUT, "nothing completed for %d s", PATIENCE_S);
    }
    return 0;
}

static int check_target(const struct writers *w, uint64_t round, struct base_errbuf *err)
{
    const uint32_t size = w->o->size, depth = w->o->depth;
    for (uint64_t i = 0; i < blocks_of(w->o); i++) {
        const uint8_t *bytes = w->target + (uint64_t)w->block[i] * size;
        if (memcmp(bytes, w->at[i / depth].memory + (i % depth) * size, size) != 0)
            return base_err(err, -EBADMSG,
                            "block %u has other bytes than were written in round "
                            "%llu",
                            w->block[i], (unsigned long long)round);
    }
    return 0;
}

static int write_round(struct writers *w, enum perf_order order, uint64_t round,
                       struct base_prng *prng, struct base_errbuf *err)
{
    int status = 0;
    choose_blocks(w, order, prng);
    for (uint32_t i = 0; i < w->o->workers; i++)
        for (uint64_t k = 0; k < (uint64_t)w->o->depth * w->o->size; k += 8) {
            const uint64_t word = base_prng_next(prng);
            memcpy(w->at[i].memory + k, &word, 8);
        }
    /* In order, so that who goes on where another ends comes behind it. */
    const uint32_t step = order == PERF_STRIPES ? 1 : w->o->depth;
    for (uint32_t first = 0; first < w->o->depth && status == 0; first += step)
        for (uint32_t i = 0; i < w->o->workers && status == 0; i++)
            status = post_writes(w, i, order, first, step, err);
    for (uint32_t i = 0; i < w->o->workers && status == 0; i++)
        status = await_writes(w, i, w->o->depth, err);
    return status == 0 ? check_target(w, round, err) : status;
}

static int count_requests(const struct perf_options *o, uint64_t *out, struct base_errbuf *err)
{
    static const char *const names[] = {"kedge_agent_lane_work_requests_total"};
    bool all;
    const int status = perf_counters(o->admin_socket, names, 1, out, &all, err);
    return status != 0 ? status
           : all       ? 0
                       : base_err(err, -ENOTSUP, "the agent does not count work requests");
}

static int measure_order(struct writers *w, enum perf_order order, struct perf_merged *out,
                         struct base_errbuf *err)
{
    struct base_prng prng;
    uint64_t before, after;
    base_prng_seed(&prng, 1);
    int status = write_round(w, order, 0, &prng, err); /* with READs of records, and the like */
    if (status == 0)
        status = count_requests(w->o, &before, err);
    for (uint64_t round = 1; round <= w->o->count && status == 0; round++)
        status = write_round(w, order, round, &prng, err);
    if (status == 0)
        status = count_requests(w->o, &after, err);
    if (status == 0)
        *out = (struct perf_merged){.writes = blocks_of(w->o) * w->o->count,
                                    .work_requests = after - before};
    return status;
}

int perf_merge(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct writers w = {.o = o};
    if (o->model != NULL)
        return perf_merge_model(o, r, err);
    int status = open_writers(&w, o->socket, r, err);
    for (int k = 0; k < PERF_ORDERS && status == 0; k++)
        status = measure_order(&w, (enum perf_order)k, &r->merged[k], err);
    close_writers(&w);
    if (status == 0)
        status = perf_merge_apart(o, r, err);
    r->verified = status == 0;
    return status;
}

/* ---- what it came to */

static double ratio_of(const struct perf_merged *m)
{
    return m->work_requests > 0 ? (double)m->writes / (double)m->work_requests : 0;
}

static void print_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 1024);
    base_text_printf(&t,
                     "{\"test\":\"merge\",\"size\":%u,\"workers\":%u,\"depth\":%u,"
                     "\"verified\":%s,",
                     o->size, o->workers, o->depth, r->verified ? "true" : "false");
    for (int k = 0; k < PERF_ORDERS; k++)
        base_text_printf(&t, "\"%s\":{\"writes\":%llu,\"work_requests\":%llu,\"ratio\":%.2f},",
                         order_names[k], (unsigned long long)r->merged[k].writes,
                         (unsigned long long)r->merged[k].work_requests, ratio_of(&r->merged[k]));
    base_text_printf(&t,
                     "\"apart\":{\"off_p50_ns\":%.0f,\"on_p50_ns\":%.0f,\"p50_ratio\":%.3f,"
                     "\"off_p99_ns\":%.0f,\"on_p99_ns\":%.0f,\"p99_ratio\":%.3f},",
                     r->apart.off_p50_ns, r->apart.on_p50_ns, r->apart.p50_ratio,
                     r->apart.off_p99_ns, r->apart.on_p99_ns, r->apart.p99_ratio);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_merge_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->model != NULL) {
        perf_merge_model_report(o, r);
        return;
    }
    if (o->json) {
        print_json(o, r);
        return;
    }
    printf(
        "merge: WRITEs of %u bytes by %u workers, %u of each at a time, to one region; all bytes "
        "compared\n",
        o->size, o->workers, o->depth);
    for (int k = 0; k < PERF_ORDERS; k++)
        printf("%-34s %9llu WRITEs, %9llu work requests: %.1f to one\n", order_texts[k],
               (unsigned long long)r->merged[k].writes,
               (unsigned long long)r->merged[k].work_requests, ratio_of(&r->merged[k]));
    printf("READs that are not merged, merge = no and yes in turns: p50 %.0f and %.0f ns, %.3f "
           "times that; p99 %.0f and %.0f ns, %.3f\n",
           r->apart.off_p50_ns, r->apart.on_p50_ns, r->apart.p50_ratio, r->apart.off_p99_ns,
           r->apart.on_p99_ns, r->apart.p99_ratio);
}
