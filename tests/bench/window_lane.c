/* SPDX-License-Identifier: Apache-2.0 */
/* What windows of a lane come to, on cards of the cost model: in five loads without one, with each
 * of several sizes that somebody sets, and with those that find their size; and which part one
 * worker has beside another tenant's many. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lane_bed.h"
#include "perf.h"

enum {
    MS = 1000000,
    US = 1000,
    SLOW_BYTES_PER_US = 150, /* of the slow node's link */
    SET_PARTS = 8,           /* of the time that a size is looked for: what is set finds nothing */
    SLOW_NODE = 2
};

static const uint32_t sizes[] = {8, 16, 24, 32, 48, 64, 96, 128};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct load {
    const char *name, *about;
    uint32_t nodes, workers, size, depth;
    uint64_t work_ns, on_ns, off_ns;
    uint32_t late; /* of the workers: so many begin in the middle */
    bool slow;     /* one node's link is */
    uint64_t warm_ns, run_ns;
};

static const struct load loads[PERF_LANE_LOADS] = {
    {"large", "64 workers write 128 KiB, as RDMAbox's", 4, 64, 131072, 32, 290 * US, 0, 0, 0, false,
     200 * MS, 600 * MS},
    {"small", "64 workers write 512 bytes", 8, 64, 512, 32, 10 * US, 0, 0, 0, false, 200 * MS,
     300 * MS},
    {"unlike", "32 workers write 16 KiB, half of them to a slow node", 2, 32, 16384, 16, 0, 0, 0, 0,
     true, 200 * MS, 600 * MS},
    {"doubles", "8 workers write 4 KiB, and in the middle 56 more begin", 4, 64, 4096, 32, 10 * US,
     0, 0, 56, false, 0, 600 * MS},
    {"bursts", "64 workers write 4 KiB for 7 ms, and rest for 5", 4, 64, 4096, 32, 10 * US, 7 * MS,
     5 * MS, 0, false, 204 * MS, 600 * MS},
};

struct tried {
    enum lane_window_policy policy;
    uint32_t device, destination;
};

static int join_workers(struct lane_bed *bed, const struct load *l, uint64_t run_ns,
                        struct base_errbuf *err)
{
    int status = 0;
    for (uint32_t i = 0; i < l->workers && status == 0; i++) {
        const struct lane_bed_worker w = {.node = 1 + i % l->nodes,
                                          .size = l->size,
                                          .depth = l->depth,
                                          .work_ns = l->work_ns,
                                          .on_ns = l->on_ns,
                                          .off_ns = l->off_ns,
                                          .begins_ns = i >= l->workers - l->late ? run_ns / 2 : 0};
        status = lane_bed_join(bed, &w, err);
    }
    return status;
}

static uint64_t bytes_of(const struct lane_bed *bed)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < bed->workers; i++)
        bytes += bed->worker[i].bytes;
    return bytes;
}

static int run_load(const struct perf_options *o, const struct load *l, const struct tried *t,
                    struct perf_lane_point *out, struct base_errbuf *err)
{
    struct lane_bed *bed = malloc(sizeof *bed);
    const struct lane_bed_kind kind = {.policy = t->policy};
    struct lane_window window;
    const uint32_t parts = t->policy == LANE_WINDOW_STATIC ? SET_PARTS : 1;
    const uint64_t run_ns = l->run_ns / parts;
    if (bed == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = lane_bed_open(bed, fab_model_find(o->model), o->seed, l->nodes, &kind, err);
    if (status != 0) {
        free(bed);
        return status;
    }
    if (l->slow) {
        struct sim_link link = sim_link_get(bed->net, 0, SLOW_NODE);
        link.bytes_per_us = SLOW_BYTES_PER_US;
        status = sim_link_set(bed->net, 0, SLOW_NODE, &link);
    }
    lane_bed_limit(bed, t->device, t->destination);
    if (status == 0)
        status = join_workers(bed, l, run_ns, err);
    if (status == 0)
        status = lane_bed_run(bed, l->warm_ns / parts, err);
    const uint64_t before = bytes_of(bed);
    if (status == 0)
        status = lane_bed_run(bed, run_ns, err);
    (void)lane_window(bed->lane, LANE_WINDOW_DEVICE, 0, &window);
    *out = (struct perf_lane_point){.gb_per_s = (double)(bytes_of(bed) - before) / (double)run_ns,
                                    .device_ops = t->device,
                                    .destination_ops = t->destination,
                                    .found_ops = (uint32_t)window.found_ops};
    lane_bed_close(bed);
    free(bed);
    return status;
}

static int run_all(const struct perf_options *o, const struct load *l, struct perf_lane_load *out,
                   struct base_errbuf *err)
{
    struct perf_lane_point p;
    const struct tried none = {.policy = LANE_WINDOW_STATIC};
    int status = run_load(o, l, &none, &out->none, err);
    out->best = out->none;
    for (uint32_t i = 0; i < 2 * SIZES && status == 0; i++) {
        struct tried t = {.policy = LANE_WINDOW_STATIC};
        *(i < SIZES ? &t.device : &t.destination) = sizes[i % SIZES];
        status = run_load(o, l, &t, &p, err);
        if (status == 0 && p.gb_per_s > out->best.gb_per_s)
            out->best = p;
    }
    for (enum lane_window_policy q = LANE_WINDOW_LADDER; q < LANE_WINDOW_POLICIES && status == 0;
         q++) {
        const struct tried t = {.policy = q};
        status = run_load(o, l, &t, &out->found[q], err);
    }
    return status;
}

/* One worker of a tenant beside 64 of another, all as fast as they may. */
static int run_beside(const struct perf_options *o, enum lane_window_policy policy, double *part,
                      struct base_errbuf *err)
{
    const struct lane_bed_kind kind = {.policy = policy};
    struct lane_bed *bed = malloc(sizeof *bed);
    if (bed == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = lane_bed_open(bed, fab_model_find(o->model), o->seed, 4, &kind, err);
    if (status != 0) {
        free(bed);
        return status;
    }
    for (uint32_t i = 0; i < 65 && status == 0; i++) {
        const struct lane_bed_worker w = {
            .tenant = i == 0, .node = 1 + i % 4, .size = 65536, .depth = 32};
        status = lane_bed_join(bed, &w, err);
    }
    if (status == 0)
        status = lane_bed_run(bed, 700 * MS, err);
    *part = (double)bed->worker[0].bytes / (double)bytes_of(bed);
    lane_bed_close(bed);
    free(bed);
    return status;
}

static bool is_asked(const struct perf_options *o, int load)
{
    return o->load == NULL || strcmp(o->load, loads[load].name) == 0;
}

const char *perf_window_loads(void)
{
    return "large, small, unlike, doubles or bursts";
}

bool perf_window_has_load(const char *name)
{
    for (int i = 0; i < PERF_LANE_LOADS; i++)
        if (strcmp(name, loads[i].name) == 0)
            return true;
    return false;
}

int perf_window_lane(const struct perf_options *o, struct perf_result *res, struct base_errbuf *err)
{
    struct perf_lane_windows *w = &res->lane_windows;
    int status = 0;
    for (int i = 0; i < PERF_LANE_LOADS && status == 0; i++)
        if (is_asked(o, i))
            status = run_all(o, &loads[i], &w->load[i], err);
    for (enum lane_window_policy p = LANE_WINDOW_STATIC; p < LANE_WINDOW_POLICIES && status == 0;
         p++)
        status = run_beside(o, p, &w->beside[p], err);
    return status;
}

/* ---- what it came to */

static double part_of(const struct perf_lane_load *l, enum lane_window_policy p)
{
    return 100 * l->found[p].gb_per_s / l->best.gb_per_s;
}

static void print_json(const struct perf_options *o, const struct perf_lane_windows *w)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t, "{\"test\":\"window\",\"lane\":true,\"modelled\":\"%s\",\"seed\":%llu",
                     o->model, (unsigned long long)o->seed);
    for (int i = 0; i < PERF_LANE_LOADS; i++) {
        const struct perf_lane_load *l = &w->load[i];
        if (!is_asked(o, i))
            continue;
        base_text_printf(&t,
                         ",\"%s\":{\"none_gb_per_s\":%.3f,\"best_gb_per_s\":%.3f,"
                         "\"best_device_ops\":%u,\"best_destination_ops\":%u",
                         loads[i].name, l->none.gb_per_s, l->best.gb_per_s, l->best.device_ops,
                         l->best.destination_ops);
        for (enum lane_window_policy p = LANE_WINDOW_LADDER; p < LANE_WINDOW_POLICIES; p++)
            base_text_printf(&t, ",\"%s\":{\"gb_per_s\":%.3f,\"of_best\":%.3f,\"found_ops\":%u}",
                             p == LANE_WINDOW_LADDER ? "ladder" : "delay", l->found[p].gb_per_s,
                             part_of(l, p) / 100, l->found[p].found_ops);
        base_text_printf(&t, "}");
    }
    base_text_printf(&t, ",\"beside\":{\"none\":%.3f,\"ladder\":%.3f,\"delay\":%.3f}}",
                     w->beside[LANE_WINDOW_STATIC], w->beside[LANE_WINDOW_LADDER],
                     w->beside[LANE_WINDOW_DELAY]);
    puts(base_text_str(&t));
    base_text_fini(&t);
}

static void print_load(const struct load *of, const struct perf_lane_load *l)
{
    printf("%-8s %9.3f %9.3f %12s %3u %9.3f %7.1f %% %9.3f %7.1f %%\n", of->name, l->none.gb_per_s,
           l->best.gb_per_s,
           l->best.device_ops != 0        ? "device"
           : l->best.destination_ops != 0 ? "destination"
                                          : "none",
           l->best.device_ops + l->best.destination_ops, l->found[LANE_WINDOW_LADDER].gb_per_s,
           part_of(l, LANE_WINDOW_LADDER), l->found[LANE_WINDOW_DELAY].gb_per_s,
           part_of(l, LANE_WINDOW_DELAY));
}

void perf_window_lane_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_lane_windows *w = &r->lane_windows;
    if (o->json) {
        print_json(o, w);
        return;
    }
    printf("modelled: %s\nwindows of a lane, GB/s\n"
           "load     no window  best set, of              ladder   of best      delay   of best\n",
           o->model);
    for (int i = 0; i < PERF_LANE_LOADS; i++)
        if (is_asked(o, i))
            print_load(&loads[i], &w->load[i]);
    for (int i = 0; i < PERF_LANE_LOADS; i++)
        if (is_asked(o, i))
            printf("%s: %s\n", loads[i].name, loads[i].about);
    printf("a worker's part beside another tenant's 64: no window %.1f %%, ladder %.1f %%, delay "
           "%.1f %%\n",
           100 * w->beside[LANE_WINDOW_STATIC], 100 * w->beside[LANE_WINDOW_LADDER],
           100 * w->beside[LANE_WINDOW_DELAY]);
}
