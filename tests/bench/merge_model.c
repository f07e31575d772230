/* SPDX-License-Identifier: Apache-2.0 */
/* What merging and chaining come to on a card of the cost model: RDMAbox's figure 6, by an agent's
 * lane. In virtual time, so that figures are exact.
 *
 * The trace is that of its remote paging. Of its table I are how many READs there are for a WRITE
 * (13.2 million, 305 thousand), and how many of them are left where they are merged (11.0 million):
 * how often a page is followed by the next one is set so that as many are left here. READs are of a
 * page and WRITEs of its blocks of 128 KiB: so as many bytes go out as come in, as in paging they
 * must. Of the second load, SYS, it says only that it writes more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lane_bed.h"
#include "perf.h"

enum {
    PAGE = 4096,
    BLOCK = 131072,
    AREA = LANE_BED_REGION / 2, /* pages are in the first half, blocks in the second */
    PAGES = AREA / PAGE,
    BLOCKS = AREA / BLOCK,
    WORKERS = 64,
    DEPTH = 32,
    WARM_NS = 5000000,
    MILLION = 1000000,
    /* A core of the guidelines' sequencer (4.2.1) sends 7.0 million answers a second with a write
     * to the card for each, and 27.4 with one for several: 106 ns. */
    DOORBELL_NS = 106
};
_Static_assert(WORKERS *DEPTH *PAGE <= AREA, "each has pages of its own to READ into");

static const struct trace {
    const char *name, *about;
    uint32_t writes_ppm;  /* of requests */
    uint32_t goes_on_ppm; /* of READs: to the page behind that of the one before */
} traces[PERF_TRACES] = {
    {"etc", "13.2 M READs for 305 k WRITEs, as in table I", 22580, 190000},
    {"sys", "four times as many WRITEs (derived)", 85000, 190000},
};

static const struct {
    const char *name, *text;
    bool merges, chains;
} ways[PERF_MERGE_WAYS] = {
    {"single", "neither", false, false},
    {"merge", "merging alone", true, false},
    {"chain", "chaining alone", false, true},
    {"both", "both", true, true},
};

struct reader {
    const struct trace *trace;
    uint8_t *memory; /* of its pages, DEPTH of them */
    uint64_t offset; /* in the region */
    uint32_t page[DEPTH];
    uint32_t last, next; /* page, and READ */
    uint64_t reads, writes;
    uint64_t wrong; /* pages that are not what was READ */
};

/* Each page's first word is its number. A place is used again when the READ before that came into
 * it is over. */
static void choose_page(struct reader *r, struct base_prng *prng, struct schema_sq_desc *d)
{
    const uint32_t slot = r->next++ % DEPTH;
    uint32_t was;
    memcpy(&was, r->memory + (size_t)slot * PAGE, sizeof was);
    r->wrong += r->next > DEPTH && was != r->page[slot];
    r->last = base_prng_below(prng, MILLION) < r->trace->goes_on_ppm
                  ? (r->last + 1) % PAGES
                  : (uint32_t)base_prng_below(prng, PAGES);
    r->page[slot] = r->last;
    r->reads++;
    d->op = SCHEMA_OP_READ;
    d->post.remote_addr = LANE_BED_ADDRESS + (uint64_t)r->last * PAGE;
    d->post.length = PAGE;
    d->post.offset = r->offset + (uint64_t)slot * PAGE;
}

static void choose_next(struct lane_bed_worker *worker, struct base_prng *prng,
                        struct schema_sq_desc *d)
{
    struct reader *r = worker->user;
    d->flags |= SCHEMA_OP_RELAXED;
    if (base_prng_below(prng, MILLION) >= r->trace->writes_ppm) {
        choose_page(r, prng, d);
        return;
    }
    r->writes++;
    d->post.remote_addr = LANE_BED_ADDRESS + AREA + base_prng_below(prng, BLOCKS) * BLOCK;
    d->post.length = BLOCK;
    d->post.offset = AREA;
}

static int join_readers(struct lane_bed *bed, const struct trace *trace, struct reader *readers,
                        struct base_errbuf *err)
{
    int status = 0;
    for (uint32_t i = 0; i < PAGES; i++)
        memcpy(lane_bed_region(bed, 1) + (size_t)i * PAGE, &i, sizeof i);
    for (uint32_t i = 0; i < WORKERS && status == 0; i++) {
        const uint64_t offset = (uint64_t)i * DEPTH * PAGE;
        readers[i] = (struct reader){
            .trace = trace, .offset = offset, .memory = lane_bed_region(bed, 0) + offset};
        const struct lane_bed_worker w = {
            .node = 1, .depth = DEPTH, .choose = choose_next, .user = &readers[i]};
        status = lane_bed_join(bed, &w, err);
    }
    return status;
}

static uint64_t requests_of(const struct lane_bed *bed)
{
    uint64_t requests = 0;
    for (uint32_t i = 0; i < bed->workers; i++)
        requests += bed->worker[i].requests;
    return requests;
}

static int run_way(const struct perf_options *o, const struct trace *trace, int way,
                   struct perf_merge_way *out, struct base_errbuf *err)
{
    const struct lane_bed_kind kind = {.policy = LANE_WINDOW_STATIC,
                                       .apart = !ways[way].merges,
                                       .ring_each = !ways[way].chains,
                                       .doorbell_ns = DOORBELL_NS};
    struct lane_bed *bed = malloc(sizeof *bed);
    struct reader *readers = calloc(WORKERS, sizeof readers[0]);
    int status = -ENOMEM;
    if (bed == NULL || readers == NULL) {
        free(bed);
        free(readers);
        return base_err(err, -ENOMEM, "out of memory");
    }
    status = lane_bed_open(bed, fab_model_find(o->model), o->seed, 1, &kind, err);
    if (status == 0) {
        status = join_readers(bed, trace, readers, err);
        if (status == 0)
            status = lane_bed_run(bed, WARM_NS, err);
        const struct fab_model_counters before = *lane_bed_counters(bed);
        const uint64_t done = requests_of(bed);
        if (status == 0)
            status = lane_bed_run(bed, o->count * MILLION, err);
        const struct fab_model_counters *after = lane_bed_counters(bed);
        *out = (struct perf_merge_way){.requests = requests_of(bed) - done,
                                       .work_requests = after->work_requests - before.work_requests,
                                       .doorbells = after->doorbells - before.doorbells};
        out->per_second = (double)out->requests * 1e3 / (double)o->count;
        lane_bed_close(bed);
    }
    for (uint32_t i = 0; i < WORKERS && status == 0; i++)
        if (readers[i].wrong > 0)
            status = base_err(err, -EBADMSG, "%llu READs brought other bytes than the page has",
                              (unsigned long long)readers[i].wrong);
    free(bed);
    free(readers);
    return status;
}

int perf_merge_model(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    int status = 0;
    for (int t = 0; t < PERF_TRACES; t++)
        for (int way = 0; way < PERF_MERGE_WAYS && status == 0; way++)
            status = run_way(o, &traces[t], way, &r->merge_ways[t][way], err);
    r->verified = status == 0;
    return status;
}

/* ---- what it came to */

static double gain_of(const struct perf_merge_way *w, const struct perf_merge_way *to)
{
    return w->per_second / to->per_second - 1;
}

static void print_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 2048);
    base_text_printf(&t, "{\"test\":\"merge\",\"modelled\":\"%s\",\"seed\":%llu,\"verified\":%s",
                     o->model, (unsigned long long)o->seed, r->verified ? "true" : "false");
    for (int k = 0; k < PERF_TRACES; k++) {
        base_text_printf(&t, ",\"%s\":{", traces[k].name);
        for (int way = 0; way < PERF_MERGE_WAYS; way++) {
            const struct perf_merge_way *w = &r->merge_ways[k][way];
            base_text_printf(&t,
                             "%s\"%s\":{\"per_second\":%.0f,\"requests\":%llu,"
                             "\"work_requests\":%llu,\"doorbells\":%llu,\"gain\":%.3f}",
                             way > 0 ? "," : "", ways[way].name, w->per_second,
                             (unsigned long long)w->requests, (unsigned long long)w->work_requests,
                             (unsigned long long)w->doorbells, gain_of(w, &r->merge_ways[k][0]));
        }
        base_text_printf(&t, "}");
    }
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_merge_model_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->json) {
        print_json(o, r);
        return;
    }
    printf("modelled: %s\nmerge: pages that %d workers READ and blocks that they write, %d of each "
           "at a time\n",
           o->model, WORKERS, DEPTH);
    for (int k = 0; k < PERF_TRACES; k++) {
        printf(
            "%s: %s\n                 thousands a second           requests to a work request, to "
            "a doorbell\n",
            traces[k].name, traces[k].about);
        for (int way = 0; way < PERF_MERGE_WAYS; way++) {
            const struct perf_merge_way *w = &r->merge_ways[k][way];
            printf("%-16s %18.1f %+9.1f %% %26.2f %14.2f\n", ways[way].text, w->per_second / 1e3,
                   100 * gain_of(w, &r->merge_ways[k][0]),
                   (double)w->requests / (double)w->work_requests,
                   (double)w->requests / (double)w->doorbells);
        }
    }
}
