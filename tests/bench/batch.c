/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what a batch of small descriptors brings, beside one of the same bytes in descriptors of
 * 1 MiB, in turns; and what another worker's READs take while one is posted after the other. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge_batch.h>

#include "perf.h"

enum {
    REGION = 16 << 20, /* descriptors go round it */
    LARGE = 1 << 20,
    TURNS = PERF_BATCH_TURNS,
    READS = 2000, /* at a time */
    WAIT_MS = 60000
};
static const uint64_t READ_NS = 300000000; /* for so long, each turn */

struct batcher {
    const struct perf_options *o;
    struct kedge_session *owner, *s;
    struct kedge_vqp *q;
    struct kedge_remote remote;
    uint8_t *memory, *target;
    uint32_t lkey;
    struct kedge_batch *small, *large;
    /* beside: a thread posts one after the other; how many ended meanwhile, and how long that took
     */
    _Atomic bool stop;
    uint64_t rounds, rounds_ns;
    int status;
    char why[256];
};

static int open_owner(struct batcher *b, char *token, struct perf_result *r,
                      struct base_errbuf *err)
{
    const int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory = NULL;
    int status = perf_open(b->o->peer_socket, &b->owner, &r->retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(b->owner, REGION, &memory, &lkey);
    b->target = memory;
    if (status == 0)
        status = kedge_reg_mr(b->owner, memory, REGION, access, &mr);
    if (status == 0)
        status = kedge_mr_export(mr, token, KEDGE_TOKEN_MAX);
    return status == 0 ? 0 : perf_failed(status, "the target's memory", err);
}

static int open_batcher(struct batcher *b, const char *token, struct perf_result *r,
                        struct base_errbuf *err)
{
    void *memory = NULL;
    int status = perf_open(b->o->socket, &b->s, &r->retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(b->s, REGION, &memory, &b->lkey);
    b->memory = memory;
    if (status == 0)
        status = kedge_import(b->s, token, &b->remote);
    if (status == 0)
        status = kedge_vqp_create(b->s, NULL, &b->q);
    if (status == 0)
        status = kedge_connect(b->q, b->remote.gid);
    return status == 0 ? 0 : perf_failed(status, "a worker's beginning", err);
}

/* WRITEs that are adjacent, and go round the region. */
static int prepare(struct batcher *b, uint64_t n, uint32_t size, struct kedge_batch **out,
                   struct base_errbuf *err)
{
    struct kedge_batch_desc *d = calloc(n, sizeof *d);
    if (d == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = i * size % (REGION / size * size);
        d[i] = (struct kedge_batch_desc){
            .opcode = IBV_WR_RDMA_WRITE,
            .rkey = b->remote.rkey,
            .local = {.addr = (uintptr_t)b->memory + at, .length = size, .lkey = b->lkey},
            .remote_addr = b->remote.addr + at};
    }
    const int status = kedge_batch_prepare(b->s, d, n, out);
    free(d);
    return status == 0 ? 0 : perf_failed(status, "preparing", err);
}

static int carry_out(struct batcher *b, struct kedge_batch *batch, uint64_t *ns,
                     struct base_errbuf *err)
{
    struct ibv_wc wc;
    const uint64_t begin = base_clock_ns();
    int n = kedge_batch_post(b->q, batch, 1);
    if (n != 0)
        return perf_failed(n, "posting", err);
    while ((n = kedge_poll(b->s, 1, &wc)) == 0)
        if ((n = kedge_wait(b->s, WAIT_MS)) <= 0)
            return perf_failed(n == 0 ? -ETIMEDOUT : n, "waiting", err);
    *ns = base_clock_ns() - begin;
    if (n < 0)
        return perf_failed(n, "polling", err);
    return wc.status == IBV_WC_SUCCESS ? 0 : perf_failed_with(&wc, "a batch", err);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double values[TURNS])
{
    qsort(values, TURNS, sizeof values[0], by_value);
    return values[TURNS / 2];
}

/* The one first, then the other. */
static int measure_rates(struct batcher *b, struct perf_batches *out, struct base_errbuf *err)
{
    const double bytes = (double)b->o->count * b->o->size;
    double rate[2][TURNS], ratio[TURNS];
    uint64_t ns = 0;
    int status = carry_out(b, b->small, &ns, err); /* with READs of records */
    for (int turn = 0; turn < TURNS && status == 0; turn++) {
        for (int i = 0; i < 2 && status == 0; i++) {
            const int which = (turn + i) % 2;
            status = carry_out(b, which == 0 ? b->small : b->large, &ns, err);
            rate[which][turn] = bytes / (double)ns;
        }
        ratio[turn] = rate[0][turn] / rate[1][turn];
    }
    if (status != 0)
        return status;
    out->small_gb_per_s = median(rate[0]);
    out->large_gb_per_s = median(rate[1]);
    out->ratio = median(ratio);
    return memcmp(b->memory, b->target, bytes < REGION ? (size_t)bytes : REGION) == 0
               ? 0
               : base_err(err, -EBADMSG, "other bytes than were written");
}

static void *post_on(void *user)
{
    struct batcher *b = user;
    struct base_errbuf err = {.text = ""};
    uint64_t ns;
    while (!atomic_load(&b->stop) && b->status == 0) {
        b->status = carry_out(b, b->small, &ns, &err);
        if (atomic_load(&b->stop)) /* the rest of it was carried out alone */
            break;
        b->rounds++;
        b->rounds_ns += ns;
    }
    snprintf(b->why, sizeof b->why, "%s", err.text);
    return NULL;
}

static int read_some(struct perf_worker *w, const struct perf_options *o,
                     struct perf_result *scratch, double *p50, double *p99, struct base_errbuf *err)
{
    const uint64_t begin = base_clock_ns();
    int status = 0;
    base_hist_reset(&scratch->hist);
    while (status == 0 && base_clock_ns() - begin < READ_NS)
        status = perf_worker_measure(w, o, scratch, err);
    *p50 = (double)base_hist_percentile(&scratch->hist, 50);
    *p99 = (double)base_hist_percentile(&scratch->hist, 99);
    return status;
}

/* Between two batches the thread sleeps. Where this process has a real-time priority it needs one
 * above this thread's, which never does, and may have the same processor. */
static int start_posting(struct batcher *b, pthread_t *thread)
{
    struct sched_param at;
    pthread_attr_t attr;
    int policy;
    (void)pthread_attr_init(&attr);
    if (pthread_getschedparam(pthread_self(), &policy, &at) == 0 &&
        (policy == SCHED_FIFO || policy == SCHED_RR)) {
        at.sched_priority++;
        (void)pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
        (void)pthread_attr_setschedpolicy(&attr, policy);
        (void)pthread_attr_setschedparam(&attr, &at);
    }
    const int status = pthread_create(thread, &attr, post_on, b);
    (void)pthread_attr_destroy(&attr);
    return -status;
}

/* READs alone and beside, in turns. */
static int read_beside(struct batcher *b, struct perf_worker *w, const struct perf_options *o,
                       struct perf_result *scratch, struct perf_batches *out,
                       struct base_errbuf *err)
{
    double p50[2][TURNS], p99[2][TURNS], ratio[TURNS];
    int status = 0;
    for (int turn = 0; turn < TURNS && status == 0; turn++) {
        pthread_t thread;
        status = read_some(w, o, scratch, &p50[0][turn], &p99[0][turn], err);
        if (status != 0)
            return status;
        atomic_store(&b->stop, false);
        if (start_posting(b, &thread) != 0)
            return base_err(err, -EAGAIN, "no thread");
        status = read_some(w, o, scratch, &p50[1][turn], &p99[1][turn], err);
        atomic_store(&b->stop, true);
        pthread_join(thread, NULL);
        if (status == 0 && b->status != 0)
            status = base_err(err, b->status, "%s", b->why);
        ratio[turn] = p99[1][turn] / p99[0][turn];
    }
    if (status != 0)
        return status;
    out->alone_p50_ns = median(p50[0]);
    out->beside_p50_ns = median(p50[1]);
    out->alone_p99_ns = median(p99[0]);
    out->beside_p99_ns = median(p99[1]);
    out->p99_ratio = median(ratio);
    out->rounds = b->rounds;
    if (b->rounds > 0)
        out->beside_gb_per_s =
            (double)b->rounds * (double)b->o->count * b->o->size / (double)b->rounds_ns;
    return 0;
}

static int measure_beside(struct batcher *b, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_options o = *b->o;
    struct perf_worker *w = NULL;
    struct perf_result *scratch = calloc(1, sizeof *scratch);
    int status = scratch == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    o.test = PERF_READ;
    o.depth = 1;
    o.size = 8;
    o.count = READS;
    if (status == 0)
        status = perf_worker_new(&o, r, &w, err);
    if (status == 0)
        status = read_beside(b, w, &o, scratch, &r->batches, err);
    perf_worker_free(w);
    free(scratch);
    return status;
}

int perf_batch(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct batcher b = {.o = o};
    char token[KEDGE_TOKEN_MAX];
    const uint64_t bytes = o->count * o->size;
    uint64_t begin = 0;
    int status = open_owner(&b, token, r, err);
    if (status == 0)
        status = open_batcher(&b, token, r, err);
    if (status == 0) {
        perf_pattern(b.memory, REGION);
        begin = base_clock_ns();
        status = prepare(&b, o->count, o->size, &b.small, err);
        r->batches.prepare_ns = base_clock_ns() - begin;
    }
    if (status == 0)
        status = prepare(&b, bytes < LARGE ? 1 : bytes / LARGE, LARGE, &b.large, err);
    if (status == 0)
        status = measure_rates(&b, &r->batches, err);
    if (status == 0)
        status = measure_beside(&b, r, err);
    r->verified = status == 0;
    kedge_close(b.s);
    kedge_close(b.owner);
    return status;
}

void perf_batch_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_batches *b = &r->batches;
    if (!o->json) {
        printf("batch: %llu adjacent WRITEs of %u bytes, in turns with as many bytes in WRITEs of "
               "1 MiB; all bytes compared\n"
               "%.2f and %.2f GB/s: %.3f times that; prepared in %.2f ms\n"
               "READs of 8 bytes of another worker, without and beside: p50 %.0f and %.0f ns, p99 "
               "%.0f and %.0f ns, %.2f times that\n"
               "beside them %llu batches ended, with %.2f GB/s\n",
               (unsigned long long)o->count, o->size, b->small_gb_per_s, b->large_gb_per_s,
               b->ratio, (double)b->prepare_ns / 1e6, b->alone_p50_ns, b->beside_p50_ns,
               b->alone_p99_ns, b->beside_p99_ns, b->p99_ratio, (unsigned long long)b->rounds,
               b->beside_gb_per_s);
        return;
    }
    struct base_text t;
    base_text_init(&t, 1024);
    base_text_printf(
        &t,
        "{\"test\":\"batch\",\"size\":%u,\"count\":%llu,\"verified\":%s,"
        "\"prepare_ns\":%llu,\"gb_per_s\":%.3f,\"large_gb_per_s\":%.3f,"
        "\"ratio\":%.3f,\"beside\":{\"batches\":%llu,\"gb_per_s\":%.3f,\"alone_p50_ns\":%.0f,"
        "\"p50_ns\":%.0f,\"alone_p99_ns\":%.0f,\"p99_ns\":%.0f,\"p99_ratio\":%.3f},",
        o->size, (unsigned long long)o->count, r->verified ? "true" : "false",
        (unsigned long long)b->prepare_ns, b->small_gb_per_s, b->large_gb_per_s, b->ratio,
        (unsigned long long)b->rounds, b->beside_gb_per_s, b->alone_p50_ns, b->beside_p50_ns,
        b->alone_p99_ns, b->beside_p99_ns, b->p99_ratio);
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}
