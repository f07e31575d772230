/* SPDX-License-Identifier: Apache-2.0 */
/* What a window is for (RDMAbox's admission control), on a card of the cost model: throughput
 * against the number of workers that post, without a window and with each of several. A worker
 * takes some time of its own for each request, and has no more than so many out; what finds the
 * window full waits in the order of coming. In virtual time, so that figures are exact. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/random.h"
#include "model_bed.h"
#include "perf.h"

static const uint32_t some_windows[PERF_WINDOWS] = {0, 8, 16, 32, 56, 112, 224};
static const uint32_t some_workers[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64};

enum { POINTS = sizeof some_workers / sizeof some_workers[0], BATCH = 64 };
_Static_assert((int)POINTS <= (int)PERF_POINTS, "there is room for them");

struct worker {
    struct base_heap_node node; /* of when its next request is ready; first */
    STAILQ_ENTRY(worker) link; /* of those whose next request waits for the window, once for each */
    uint32_t out;              /* its requests that are posted, or wait */
    uint32_t waiting;          /* of these: for the window */
    bool stopped;              /* its next one is ready, and too many are out */
};

struct run {
    const struct perf_options *o;
    struct perf_bed bed;
    struct worker *workers;
    struct base_heap ready;
    struct base_prng prng;
    uint64_t serial;
    uint64_t window_ops, window_bytes; /* 0: none */
    uint64_t ops, bytes;               /* that are in flight */
    uint64_t completed;
    STAILQ_HEAD(, worker) queue; /* of whose requests wait, each worker once */
};

/* Exponential, with the mean that was asked for. */
static uint64_t draw_work(struct run *r)
{
    const double u = (double)(base_prng_next(&r->prng) >> 11) * 0x1p-53;
    return (uint64_t)(-log(1 - u) * (double)r->o->work_ns);
}

static void begin_work(struct run *r, struct worker *w)
{
    w->node = (struct base_heap_node){.key = sim_net_now(r->bed.net) + draw_work(r),
                                      .order = ++r->serial};
    base_heap_add(&r->ready, &w->node);
}

static bool window_has_room(const struct run *r)
{
    return r->ops == 0 || ((r->window_ops == 0 || r->ops < r->window_ops) &&
                           (r->window_bytes == 0 || r->bytes + r->o->size <= r->window_bytes));
}

static int post_request(struct run *r, struct worker *w, struct base_errbuf *err)
{
    const uint32_t me = (uint32_t)(w - r->workers);
    const struct perf_bed_node *n = r->bed.node;
    struct ibv_sge sge = {.addr = n[0].mr->addr, .length = r->o->size, .lkey = n[0].mr->lkey};
    struct fab_wr wr = {.wr_id = me,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_WRITE,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = n[1].mr->rkey,
                        .remote_addr = n[1].mr->addr},
                  *bad;
    const int status = fab_post_send(n[0].qp[me % r->bed.qps], &wr, &bad);
    if (status != 0)
        return base_err(err, status, "posting: %s", strerror(-status));
    r->ops++;
    r->bytes += r->o->size;
    return 0;
}

/* A worker's next request is ready: it goes, or waits, and the worker goes on. */
static int submit_request(struct run *r, struct worker *w, struct base_errbuf *err)
{
    int status = 0;
    if (w->out == r->o->depth) {
        w->stopped = true;
        return 0;
    }
    w->out++;
    if (STAILQ_EMPTY(&r->queue) && window_has_room(r))
        status = post_request(r, w, err);
    else if (w->waiting++ == 0)
        STAILQ_INSERT_TAIL(&r->queue, w, link);
    begin_work(r, w);
    return status;
}

/* Workers take turns. */
static int admit_waiting(struct run *r, struct base_errbuf *err)
{
    int status = 0;
    while (status == 0 && !STAILQ_EMPTY(&r->queue) && window_has_room(r)) {
        struct worker *w = STAILQ_FIRST(&r->queue);
        STAILQ_REMOVE_HEAD(&r->queue, link);
        if (--w->waiting > 0)
            STAILQ_INSERT_TAIL(&r->queue, w, link);
        status = post_request(r, w, err);
    }
    return status;
}

static int take_completions(struct run *r, struct base_errbuf *err)
{
    struct ibv_wc wc[BATCH];
    int n, status = 0;
    while ((n = fab_poll(r->bed.node[0].cq, BATCH, wc)) > 0)
        for (int i = 0; i < n; i++) {
            struct worker *w = &r->workers[wc[i].wr_id];
            if (wc[i].status != IBV_WC_SUCCESS)
                return base_err(err, -EIO, "a WRITE ended with status %d", (int)wc[i].status);
            r->ops--;
            r->bytes -= r->o->size;
            r->completed++;
            w->out--;
            if (w->stopped) {
                w->stopped = false;
                status = submit_request(r, w, err);
            }
            if (status != 0)
                return status;
        }
    return n < 0 ? base_err(err, n, "polling failed") : admit_waiting(r, err);
}

static int go_until(struct run *r, uint64_t completed, struct base_errbuf *err)
{
    int status = 0;
    while (status == 0 && r->completed < completed) {
        struct base_heap_node *first = r->ready.first;
        if (first != NULL && first->key < sim_net_next_due(r->bed.net)) {
            sim_net_run_until(r->bed.net, first->key);
            base_heap_take_out(&r->ready, first);
            status = submit_request(r, (struct worker *)(void *)first, err);
        } else if (!sim_net_step(r->bed.net)) {
            return base_err(err, -EIO, "nothing happens any more");
        }
        if (status == 0)
            status = take_completions(r, err);
    }
    return status;
}

static int measure_point(const struct perf_options *o, uint32_t workers, uint64_t ops,
                         uint64_t bytes, struct perf_window_point *out, struct base_errbuf *err)
{
    struct run r = {.o = o, .window_ops = ops, .window_bytes = bytes};
    const uint32_t each = (workers + o->qps - 1) / o->qps * o->depth;
    if (each > PERF_BED_SLOTS)
        return base_err(err, -EINVAL, "%u workers with %u out need more than %d slots of %u QPs",
                        workers, o->depth, PERF_BED_SLOTS, o->qps);
    int status =
        perf_bed_open(&r.bed, fab_model_find(o->model), o->seed, o->qps, each, o->size, err);
    if (status != 0)
        return status;
    STAILQ_INIT(&r.queue);
    base_prng_seed(&r.prng, o->seed);
    perf_pattern(r.bed.node[0].mem.addr, o->size);
    r.workers = calloc(workers, sizeof r.workers[0]);
    if (r.workers == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < workers && status == 0; i++)
        begin_work(&r, &r.workers[i]);
    /* Until what goes on goes on as it will. */
    if (status == 0)
        status = go_until(&r, o->count / 2 + (uint64_t)workers * o->depth, err);
    const uint64_t begun_ns = sim_net_now(r.bed.net), before = r.completed;
    if (status == 0)
        status = go_until(&r, before + o->count, err);
    const double seconds = (double)(sim_net_now(r.bed.net) - begun_ns) / 1e9;
    if (status == 0 && !perf_pattern_holds(r.bed.node[1].mem.addr, 0, o->size))
        status = base_err(err, -EIO, "the target's bytes are not those that were written");
    if (status == 0)
        *out = (struct perf_window_point){.per_second = (double)(r.completed - before) / seconds,
                                          .counters = *perf_bed_counters(&r.bed)};
    free(r.workers);
    perf_bed_close(&r.bed);
    return status;
}

int perf_window(const struct perf_options *o, struct perf_result *res, struct base_errbuf *err)
{
    struct perf_window *w = &res->window;
    int status = 0;
    if (o->lane)
        return perf_window_lane(o, res, err);
    w->windows = o->windows ? 2 : PERF_WINDOWS;
    for (uint32_t k = 0; k < w->windows; k++)
        w->ops[k] = !o->windows ? some_windows[k] : k > 0 ? o->window_ops : 0;
    for (uint32_t i = 0; i < POINTS && some_workers[i] <= o->workers && status == 0; i++) {
        w->workers[w->points++] = some_workers[i];
        for (uint32_t k = 0; k < w->windows && status == 0; k++)
            status = measure_point(o, some_workers[i], w->ops[k], k > 0 ? o->window_bytes : 0,
                                   &w->point[i][k], err);
    }
    return status;
}

/* ---- what it came to */

struct summary {
    uint32_t peak;    /* the place of the most without a window, */
    double peak_rate; /* which is this; */
    double last_rate; /* and with all workers; */
    uint32_t best;    /* the window that is best with all workers, */
    double best_rate; /* which has this then, */
    double best_peak; /* and this at most */
};

static struct summary sum_up(const struct perf_window *w)
{
    struct summary s = {.peak_rate = 0};
    for (uint32_t i = 0; i < w->points; i++)
        if (w->point[i][0].per_second > s.peak_rate) {
            s.peak = i;
            s.peak_rate = w->point[i][0].per_second;
        }
    s.last_rate = w->point[w->points - 1][0].per_second;
    for (uint32_t k = 1; k < w->windows; k++)
        if (w->point[w->points - 1][k].per_second > s.best_rate) {
            s.best = k;
            s.best_rate = w->point[w->points - 1][k].per_second;
        }
    for (uint32_t i = 0; i < w->points; i++)
        if (w->point[i][s.best].per_second > s.best_peak)
            s.best_peak = w->point[i][s.best].per_second;
    return s;
}

static void print_json(const struct perf_options *o, const struct perf_window *w,
                       const struct summary *s)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t,
                     "{\"test\":\"window\",\"modelled\":\"%s\",\"size\":%u,\"depth\":%u,"
                     "\"queue_pairs\":%u,\"work_ns\":%llu,\"seed\":%llu,\"count\":%llu,"
                     "\"peak_workers\":%u,\"peak_per_second\":%.0f,\"last_per_second\":%.0f,"
                     "\"best_window_ops\":%u,\"best_per_second\":%.0f,\"fall\":%.3f,"
                     "\"gain\":%.3f,\"gain_of_peaks\":%.3f,\"points\":[",
                     o->model, o->size, o->depth, o->qps, (unsigned long long)o->work_ns,
                     (unsigned long long)o->seed, (unsigned long long)o->count, w->workers[s->peak],
                     s->peak_rate, s->last_rate, w->ops[s->best], s->best_rate,
                     s->last_rate / s->peak_rate, s->best_rate / s->last_rate,
                     s->best_peak / s->peak_rate);
    for (uint32_t i = 0; i < w->points; i++)
        for (uint32_t k = 0; k < w->windows; k++) {
            const struct perf_window_point *p = &w->point[i][k];
            base_text_printf(&t,
                             "%s{\"workers\":%u,\"window_ops\":%u,\"window_bytes\":%llu,"
                             "\"per_second\":%.0f,\"most_ops\":%llu,\"most_bytes\":%llu,"
                             "\"work_requests\":%llu,\"doorbells\":%llu,\"misses\":%llu}",
                             i + k > 0 ? "," : "", w->workers[i], w->ops[k],
                             (unsigned long long)(k > 0 ? o->window_bytes : 0), p->per_second,
                             (unsigned long long)p->counters.most_ops,
                             (unsigned long long)p->counters.most_bytes,
                             (unsigned long long)p->counters.work_requests,
                             (unsigned long long)p->counters.doorbells,
                             (unsigned long long)p->counters.wqe_misses);
        }
    base_text_printf(&t, "]}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

static void print_head(const struct perf_options *o, const struct perf_window *w)
{
    printf("modelled: %s\n"
           "window: WRITEs of %u bytes by %u queue pairs, thousands a second; a worker takes %.1f "
           "us for each, and has %u out at most\n"
           "workers   no window",
           o->model, o->size, o->qps, (double)o->work_ns / 1e3, o->depth);
    for (uint32_t k = 1; k < w->windows; k++)
        if (w->ops[k] > 0)
            printf("%9u", w->ops[k]);
        else
            printf(" %llu bytes", (unsigned long long)o->window_bytes);
    puts("");
}

void perf_window_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_window *w = &r->window;
    if (o->lane) {
        perf_window_lane_report(o, r);
        return;
    }
    const struct summary s = sum_up(w);
    if (o->json) {
        print_json(o, w, &s);
        return;
    }
    print_head(o, w);
    for (uint32_t i = 0; i < w->points; i++) {
        printf("%7u", w->workers[i]);
        for (uint32_t k = 0; k < w->windows; k++)
            printf("%*.2f", k == 0 ? 12 : 9, w->point[i][k].per_second / 1e3);
        puts("");
    }
    printf("without a window: the most with %u workers, %.0f a second; with %u, %.0f, which is "
           "%.1f %% of it; with the best window %.0f, %+.1f %%, and %+.1f %% from most to most\n",
           w->workers[s.peak], s.peak_rate, w->workers[w->points - 1], s.last_rate,
           100 * s.last_rate / s.peak_rate, s.best_rate, 100 * (s.best_rate / s.last_rate - 1),
           100 * (s.best_peak / s.peak_rate - 1));
}
