/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

enum { TURNS = PERF_VERBS_TURNS, BATCH_DEPTH = 32 };

/* One side is an agent's worker, the other a program with queue pairs of its own. */
enum { AGENT, VERBS, SIDES };

static const struct {
    const char *name, *key;
    enum bench_op op;
} kinds[PERF_VERBS_KINDS] = {
    [PERF_VERBS_READ] = {"READ", "read", BENCH_OP_READ},
    [PERF_VERBS_WRITE] = {"WRITE", "write", BENCH_OP_WRITE},
    [PERF_VERBS_SEND] = {"SEND", "send", BENCH_OP_SEND},
    [PERF_VERBS_NOTIFY] = {"WRITE with immediate", "write_imm", BENCH_OP_WRITE_IMM},
    [PERF_VERBS_BATCH] = {"batch of WRITEs of 4 KiB", "batch", BENCH_OP_WRITE},
};

/* A program's, of one kind. */
struct direct {
    struct perf_path path; /* first */
    struct bench_pair *pair;
    enum bench_op op;
};

struct bed {
    const struct perf_options *o;
    struct perf_result *r;
    struct perf_worker *worker;
    struct perf_sender *sender;
    struct perf_batcher *batcher;
    struct bench_pair *pair, *blocks; /* blocks: of batches */
    struct base_clock_fast clock;
};

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct direct *d = (struct direct *)path;
    return bench_pair_post(d->pair, d->op, first, count, err);
}

static int poll(struct perf_path *path, struct base_errbuf *err)
{
    return bench_pair_poll(((struct direct *)path)->pair, err);
}

static bool holds_all(const void *memory, const struct bench_slots *s)
{
    bool good = true;
    for (uint32_t i = 0; i < s->depth; i++)
        good &= perf_pattern_holds(memory, (uint64_t)i * s->stride, s->size);
    return good;
}

/* Whole rounds of all slots, so that each holds what was sent last of it. */
static uint64_t rounded(uint64_t count, uint32_t depth)
{
    return (count + depth - 1) / depth * depth;
}

/* A program's own: from one end's memory to the other's, which is empty before. */
static int run_direct(struct bed *b, struct bench_pair *pair, const struct bench_slots *s,
                      enum bench_op op, uint64_t count, struct base_errbuf *err)
{
    struct direct d = {
        .path = {.post = post, .poll = poll, .depth = s->depth}, .pair = pair, .op = op};
    const uint64_t bytes = (uint64_t)s->depth * s->stride;
    const bool reads = op == BENCH_OP_READ;
    void *from = reads ? bench_pair_far(pair) : bench_pair_near(pair);
    void *to = reads ? bench_pair_near(pair) : bench_pair_far(pair);
    perf_pattern(from, bytes);
    memset(to, 0, bytes);
    const int status = perf_loop(&d.path, &b->clock, rounded(count, s->depth), b->r, err);
    if (status != 0)
        return status;
    return holds_all(to, s)
               ? 0
               : base_err(err, -EBADMSG, "without an agent other bytes arrived than were sent");
}

static int run_sender(struct bed *b, enum perf_verbs_kind kind, struct base_errbuf *err)
{
    const bool with_immediate = kind == PERF_VERBS_NOTIFY;
    perf_sender_clear(b->sender);
    const int status = perf_loop(perf_sender_path(b->sender, with_immediate), &b->clock,
                                 rounded(b->o->count, b->o->depth), b->r, err);
    if (status != 0)
        return status;
    return perf_sender_arrived(b->sender)
               ? 0
               : base_err(err, -EBADMSG, "messages hold other bytes than were sent");
}

static int run_agent(struct bed *b, enum perf_verbs_kind kind, struct base_errbuf *err)
{
    struct perf_options o = *b->o;
    if (kind == PERF_VERBS_SEND || kind == PERF_VERBS_NOTIFY)
        return run_sender(b, kind, err);
    o.test = kind == PERF_VERBS_WRITE ? PERF_WRITE : PERF_READ;
    return perf_worker_measure(b->worker, &o, b->r, err);
}

static struct bench_slots slots_of(const struct perf_options *o)
{
    return (struct bench_slots){.depth = o->depth, .size = o->size, .stride = perf_stride(o->size)};
}

static const struct bench_slots block_slots = {
    .depth = BATCH_DEPTH, .size = PERF_VERBS_BLOCK, .stride = PERF_VERBS_BLOCK};

/* ns: of one operation, the median; of a batch the whole. */
static int measure(struct bed *b, enum perf_verbs_kind kind, int side, double *ns, double *rate,
                   struct base_errbuf *err)
{
    const struct bench_slots slots = slots_of(b->o);
    uint64_t took_ns = 0;
    int status;
    if (kind == PERF_VERBS_BATCH) {
        status = side == AGENT
                     ? perf_batcher_run(b->batcher, &took_ns, err)
                     : run_direct(b, b->blocks, &block_slots, kinds[kind].op, b->o->count, err);
        const uint64_t done = side == AGENT ? b->o->count : b->r->hist.count;
        if (side == VERBS)
            took_ns = b->r->elapsed_ns * b->o->count / (done == 0 ? 1 : done);
        *ns = (double)took_ns;
        *rate = (double)b->o->count * 1e9 / (double)(took_ns == 0 ? 1 : took_ns);
        return status;
    }
    status = side == AGENT ? run_agent(b, kind, err)
                           : run_direct(b, b->pair, &slots, kinds[kind].op, b->o->count, err);
    *ns = (double)base_hist_percentile(&b->r->hist, 50);
    *rate = (double)b->r->hist.count * 1e9 / (double)(b->r->elapsed_ns == 0 ? 1 : b->r->elapsed_ns);
    return status;
}

static int order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double values[TURNS])
{
    qsort(values, TURNS, sizeof values[0], order_doubles);
    return values[TURNS / 2];
}

/* Both sides of a turn behind each other, each first in every second one. */
static int measure_kind(struct bed *b, enum perf_verbs_kind kind, struct base_errbuf *err)
{
    struct perf_verbs_ratio *out = &b->r->verbs_data[kind];
    double ns[SIDES][TURNS], rate[SIDES][TURNS], ratio[TURNS], rates[TURNS];
    int status = 0;
    for (int turn = -1; turn < TURNS && status == 0; turn++) {
        const int at = turn < 0 ? 0 : turn; /* the one before the first warms up */
        for (int i = 0; i < SIDES && status == 0; i++) {
            const int side = (at + i) % SIDES;
            status = measure(b, kind, side, &ns[side][at], &rate[side][at], err);
        }
        ratio[at] = ns[AGENT][at] / ns[VERBS][at];
        rates[at] = rate[AGENT][at] / rate[VERBS][at];
    }
    if (status != 0)
        return status;
    out->agent_ns = median_of(ns[AGENT]);
    out->verbs_ns = median_of(ns[VERBS]);
    out->agent_per_second = median_of(rate[AGENT]);
    out->verbs_per_second = median_of(rate[VERBS]);
    out->rate_ratio = median_of(rates);
    out->ratio = median_of(ratio); /* which sorts them */
    out->least_ratio = ratio[0];
    out->most_ratio = ratio[TURNS - 1];
    return 0;
}

static int open_bed(struct bed *b, struct base_errbuf *err)
{
    const struct bench_slots slots = slots_of(b->o);
    base_clock_fast_init(&b->clock);
    int status = perf_worker_new(b->o, b->r, &b->worker, err);
    if (status == 0)
        status = perf_sender_new(b->o, b->r, &b->sender, err);
    if (status == 0)
        status = perf_batcher_new(b->o, b->r, &b->batcher, err);
    if (status == 0)
        status = bench_pair_open(&b->o->verbs, &slots, &b->pair, err);
    return status == 0 ? bench_pair_open(&b->o->verbs, &block_slots, &b->blocks, err) : status;
}

int perf_verbs_data(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct bed b = {.o = o, .r = r};
    int status = open_bed(&b, err);
    for (int k = 0; k < PERF_VERBS_KINDS && status == 0; k++)
        status = measure_kind(&b, (enum perf_verbs_kind)k, err);
    r->verified = status == 0;
    bench_pair_close(b.blocks);
    bench_pair_close(b.pair);
    perf_batcher_free(b.batcher);
    perf_sender_free(b.sender);
    perf_worker_free(b.worker);
    return status;
}

static void report_as_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t,
                     "{\"test\":\"%s\",\"provider\":\"verbs\",\"size\":%u,\"depth\":%u,"
                     "\"count\":%llu,\"turns\":%d,\"verified\":%s,",
                     o->name, o->size, o->depth, (unsigned long long)o->count, TURNS,
                     r->verified ? "true" : "false");
    for (int k = 0; k < PERF_VERBS_KINDS; k++) {
        const struct perf_verbs_ratio *v = &r->verbs_data[k];
        base_text_printf(&t,
                         "\"%s\":{\"p50_ns\":%.0f,\"direct_p50_ns\":%.0f,\"ratio\":%.3f,"
                         "\"least_ratio\":%.3f,\"most_ratio\":%.3f,\"per_second\":%.0f,"
                         "\"direct_per_second\":%.0f,\"rate_ratio\":%.3f},",
                         kinds[k].key, v->agent_ns, v->verbs_ns, v->ratio, v->least_ratio,
                         v->most_ratio, v->agent_per_second, v->verbs_per_second, v->rate_ratio);
    }
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_verbs_data_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->json) {
        report_as_json(o, r);
        return;
    }
    printf("verbs-data: %u bytes, depth %u, %llu of each in %d turns; all bytes compared\n"
           "%-26s %12s %12s %22s %12s %12s %6s\n",
           o->size, o->depth, (unsigned long long)o->count, TURNS, "p50 in us; a second", "agent",
           "verbs", "times as long", "agent/s", "verbs/s", "part");
    for (int k = 0; k < PERF_VERBS_KINDS; k++) {
        const struct perf_verbs_ratio *v = &r->verbs_data[k];
        printf("%-26s %12.1f %12.1f %6.2f (%5.2f to %5.2f) %12.0f %12.0f %6.2f\n", kinds[k].name,
               v->agent_ns / 1e3, v->verbs_ns / 1e3, v->ratio, v->least_ratio, v->most_ratio,
               v->agent_per_second, v->verbs_per_second, v->rate_ratio);
    }
}
