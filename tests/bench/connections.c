/* SPDX-License-Identifier: Apache-2.0 */
/* What several connections for each peer come to (connections_per_peer), on a card of the cost
 * model, in virtual time: an agent's lane with RC, whose workers all go to one endpoint. A card
 * binds a queue pair to one of its processing units, and takes no more READs of it at a time than
 * the peer serves, so that one connection has a limit of its own (fabric/model/nic.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lane_bed.h"
#include "perf.h"

enum {
    WORKERS = 64,
    DEPTH = 8,
    PAGE = 4096,
    BLOCK = 131072,
    BLOCK_PPM = 22580, /* of requests to pages and blocks, as in RDMAbox's table I */
    MILLION = 1000000
};

static const uint32_t counts[PERF_CONNECTION_COUNTS] = {1, 2, 4, 8};
static const enum lane_window_policy policies[PERF_CONNECTION_WINDOWS] = {LANE_WINDOW_STATIC,
                                                                          LANE_WINDOW_LADDER};

static void read_word(struct lane_bed_worker *worker, struct base_prng *prng,
                      struct schema_sq_desc *d)
{
    (void)worker, (void)prng;
    d->op = SCHEMA_OP_READ;
    d->post.length = 8;
}

static void write_word(struct lane_bed_worker *worker, struct base_prng *prng,
                       struct schema_sq_desc *d)
{
    (void)worker, (void)prng;
    d->post.length = 8;
}

/* Not adjacent, so that nothing is merged: each page is one of a worker's own, at random. */
static void read_page(struct lane_bed_worker *worker, struct base_prng *prng,
                      struct schema_sq_desc *d)
{
    const uint64_t at = (uint64_t)worker->id + WORKERS * base_prng_below(prng, 32);
    d->op = SCHEMA_OP_READ;
    d->post.remote_addr = LANE_BED_ADDRESS + at * PAGE;
    d->post.length = PAGE;
    d->post.offset = at * PAGE;
}

static void page_or_block(struct lane_bed_worker *worker, struct base_prng *prng,
                          struct schema_sq_desc *d)
{
    if (base_prng_below(prng, MILLION) >= BLOCK_PPM) {
        read_page(worker, prng, d);
        return;
    }
    d->post.remote_addr = LANE_BED_ADDRESS + LANE_BED_REGION / 2 + (uint64_t)worker->id * BLOCK;
    d->post.length = BLOCK;
    d->post.offset = LANE_BED_REGION / 2;
}
_Static_assert(LANE_BED_REGION / 2 == WORKERS * BLOCK && WORKERS * 32 * PAGE <= LANE_BED_REGION / 2,
               "each worker has pages and a block of its own");

static const struct load {
    const char *name, *about;
    lane_bed_choose_fn *choose;
} loads[PERF_CONNECTION_LOADS] = {
    {"words-read", "READs of 8 bytes", read_word},
    {"words-written", "WRITEs of 8 bytes", write_word},
    {"pages", "READs of 4 KiB", read_page},
    {"paging", "of these one in 44 is a WRITE of 128 KiB", page_or_block},
};

static uint64_t requests_of(const struct lane_bed *bed)
{
    uint64_t requests = 0;
    for (uint32_t i = 0; i < bed->workers; i++)
        requests += bed->worker[i].requests;
    return requests;
}

/* Half of the time is not counted: a window finds its size in it. */
static int run_load(const struct perf_options *o, const struct load *l, uint32_t connections,
                    enum lane_window_policy policy, double *per_second, struct base_errbuf *err)
{
    const struct lane_bed_kind kind = {.policy = policy, .connections = connections};
    const uint64_t run_ns = o->count * MILLION;
    struct lane_bed *bed = malloc(sizeof *bed);
    if (bed == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = lane_bed_open(bed, fab_model_find(o->model), o->seed, 1, &kind, err);
    if (status != 0) {
        free(bed);
        return status;
    }
    for (uint32_t i = 0; i < WORKERS && status == 0; i++) {
        const struct lane_bed_worker w = {.node = 1, .depth = DEPTH, .choose = l->choose};
        status = lane_bed_join(bed, &w, err);
    }
    if (status == 0)
        status = lane_bed_run(bed, run_ns, err);
    const uint64_t before = requests_of(bed);
    if (status == 0)
        status = lane_bed_run(bed, run_ns, err);
    *per_second = (double)(requests_of(bed) - before) * 1e9 / (double)run_ns;
    if (status == 0 && bed->linked != connections)
        status = base_err(err, -EIO, "the lane has made %u connections, not %u", bed->linked,
                          connections);
    lane_bed_close(bed);
    free(bed);
    return status;
}

int perf_connections(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    int status = 0;
    for (int i = 0; i < PERF_CONNECTION_LOADS; i++)
        for (int p = 0; p < PERF_CONNECTION_WINDOWS; p++)
            for (int k = 0; k < PERF_CONNECTION_COUNTS && status == 0; k++)
                status = run_load(o, &loads[i], counts[k], policies[p],
                                  &r->linked[i][p].per_second[k], err);
    r->verified = status == 0;
    return status;
}

/* ---- what it came to */

static void print_json(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    base_text_init(&t, 2048);
    base_text_printf(&t, "{\"test\":\"connections\",\"modelled\":\"%s\",\"seed\":%llu", o->model,
                     (unsigned long long)o->seed);
    for (int i = 0; i < PERF_CONNECTION_LOADS; i++) {
        base_text_printf(&t, ",\"%s\":{", loads[i].name);
        for (int p = 0; p < PERF_CONNECTION_WINDOWS; p++) {
            base_text_printf(&t, "%s\"%s\":{", p > 0 ? "," : "",
                             policies[p] == LANE_WINDOW_STATIC ? "none" : "ladder");
            for (int k = 0; k < PERF_CONNECTION_COUNTS; k++)
                base_text_printf(&t, "%s\"%u\":%.0f", k > 0 ? "," : "", counts[k],
                                 r->linked[i][p].per_second[k]);
            base_text_printf(&t, "}");
        }
        base_text_printf(&t, "}");
    }
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_connections_report(const struct perf_options *o, const struct perf_result *r)
{
    if (o->json) {
        print_json(o, r);
        return;
    }
    printf("modelled: %s\nconnections: of a lane to one endpoint, %d workers with %d requests out "
           "each; thousands a second, and of one connection's\n%-14s %-9s",
           o->model, WORKERS, DEPTH, "load", "window");
    for (int k = 0; k < PERF_CONNECTION_COUNTS; k++)
        printf("%18u", counts[k]);
    puts("");
    for (int i = 0; i < PERF_CONNECTION_LOADS; i++)
        for (int p = 0; p < PERF_CONNECTION_WINDOWS; p++) {
            const double *of = r->linked[i][p].per_second;
            printf("%-14s %-9s", loads[i].name,
                   policies[p] == LANE_WINDOW_STATIC ? "none" : "ladder");
            for (int k = 0; k < PERF_CONNECTION_COUNTS; k++)
                printf("%10.1f %5.0f %%", of[k] / 1e3, 100 * of[k] / of[0]);
            puts("");
        }
    for (int i = 0; i < PERF_CONNECTION_LOADS; i++)
        printf("%s: %s\n", loads[i].name, loads[i].about);
}
