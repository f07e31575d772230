/* SPDX-License-Identifier: Apache-2.0 */
/* What cutting long requests is for: READs of 8 bytes of one tenant on a connection where another
 * READs as much as a neighbour may, on a card of the cost model, in virtual time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lane_bed.h"
#include "perf.h"

enum { SMALL = 8, WORK_NS = 20000, WARM_NS = 2000000, MILLION = 1000000, LARGE_OUT = 2 };

static const uint32_t sizes[PERF_CUT_SIZES] = {65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
static const uint32_t cuts[PERF_CUTS] = {0, 1 << 18, 1 << 20};

static void choose_large(struct lane_bed_worker *worker, struct base_prng *prng,
                         struct schema_sq_desc *d)
{
    (void)prng;
    d->op = SCHEMA_OP_READ;
    d->post.length = worker->size;
}

static void choose_small(struct lane_bed_worker *worker, struct base_prng *prng,
                         struct schema_sq_desc *d)
{
    (void)prng;
    d->op = SCHEMA_OP_READ;
    d->post.length = worker->size;
    d->post.remote_addr += 4096;
}

static int run_beside(const struct perf_options *o, uint32_t size, uint32_t cut,
                      struct perf_cut_point *out, struct base_errbuf *err)
{
    const struct lane_bed_kind kind = {.policy = LANE_WINDOW_STATIC,
                                       .cut_bytes = cut,
                                       .region = (uint64_t)sizes[PERF_CUT_SIZES - 1]};
    struct lane_bed *bed = malloc(sizeof *bed);
    struct base_hist *hist = calloc(1, sizeof *hist);
    int status = bed == NULL || hist == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0)
        status = lane_bed_open(bed, fab_model_find(o->model), o->seed, 1, &kind, err);
    if (status == 0) {
        const struct lane_bed_worker small = {.tenant = 1,
                                              .node = 1,
                                              .size = SMALL,
                                              .depth = 1,
                                              .work_ns = WORK_NS,
                                              .choose = choose_small,
                                              .latency = hist};
        const struct lane_bed_worker large = {
            .node = 1, .size = size, .depth = LARGE_OUT, .choose = choose_large};
        status = lane_bed_join(bed, &small, err);
        if (status == 0 && size > 0)
            status = lane_bed_join(bed, &large, err);
        if (status == 0)
            status = lane_bed_run(bed, WARM_NS, err);
        base_hist_reset(hist);
        const uint64_t before = bed->worker[1].bytes;
        if (status == 0)
            status = lane_bed_run(bed, o->count * MILLION, err);
        *out = (struct perf_cut_point){.p50_ns = base_hist_percentile(hist, 50),
                                       .p99_ns = base_hist_percentile(hist, 99),
                                       .gb_per_s = (double)(bed->worker[1].bytes - before) /
                                                   (double)(o->count * MILLION)};
        lane_bed_close(bed);
    }
    free(bed);
    free(hist);
    return status;
}

int perf_cut(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    int status = run_beside(o, 0, 0, &r->cut.alone, err);
    for (int i = 0; i < PERF_CUT_SIZES; i++)
        for (int k = 0; k < PERF_CUTS && status == 0; k++)
            status = run_beside(o, sizes[i], cuts[k], &r->cut.beside[i][k], err);
    r->verified = status == 0;
    return status;
}

/* ---- what it came to */

static void print_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 2048);
    base_text_printf(&t,
                     "{\"test\":\"cut\",\"modelled\":\"%s\",\"seed\":%llu,\"alone_p50_ns\":%llu,"
                     "\"alone_p99_ns\":%llu,\"beside\":[",
                     o->model, (unsigned long long)o->seed, (unsigned long long)r->cut.alone.p50_ns,
                     (unsigned long long)r->cut.alone.p99_ns);
    for (int i = 0; i < PERF_CUT_SIZES; i++)
        for (int k = 0; k < PERF_CUTS; k++) {
            const struct perf_cut_point *p = &r->cut.beside[i][k];
            base_text_printf(&t,
                             "%s{\"size\":%u,\"cut_bytes\":%u,\"p50_ns\":%llu,\"p99_ns\":%llu,"
                             "\"gb_per_s\":%.3f}",
                             i + k > 0 ? "," : "", sizes[i], cuts[k], (unsigned long long)p->p50_ns,
                             (unsigned long long)p->p99_ns, p->gb_per_s);
        }
    base_text_printf(&t, "]}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_cut_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->json) {
        print_json(o, r);
        return;
    }
    printf("modelled: %s\ncut: READs of %d bytes, p50 and p99 in us, beside another tenant's of so "
           "many KiB, %d at a time; GB/s of these\nalone: %.1f %.1f\n"
           "   KiB              as one         pieces of 256 KiB           pieces of 1 MiB\n",
           o->model, SMALL, LARGE_OUT, (double)r->cut.alone.p50_ns / 1e3,
           (double)r->cut.alone.p99_ns / 1e3);
    for (int i = 0; i < PERF_CUT_SIZES; i++) {
        printf("%6u", sizes[i] / 1024);
        for (int k = 0; k < PERF_CUTS; k++) {
            const struct perf_cut_point *p = &r->cut.beside[i][k];
            printf(" %9.1f %9.1f %5.2f", (double)p->p50_ns / 1e3, (double)p->p99_ns / 1e3,
                   p->gb_per_s);
        }
        puts("");
    }
}
