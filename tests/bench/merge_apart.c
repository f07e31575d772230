/* SPDX-License-Identifier: Apache-2.0 */
/* What merging costs those that cannot be merged: READs at addresses that are not adjacent, by an
 * agent that merges and one that does not (merge = no), in turns. */
#include <errno.h>
#include <stdlib.h>

#include "perf.h"

enum { TURNS = 31, COUNT = 5000, DEPTH = 8 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values)
{
    double sorted[TURNS];
    for (int i = 0; i < TURNS; i++)
        sorted[i] = values[i];
    qsort(sorted, TURNS, sizeof sorted[0], by_value);
    return sorted[TURNS / 2];
}

struct side {
    struct perf_options o;
    struct perf_worker *w;
    double p50[TURNS], p99[TURNS];
};

static int take_turn(struct side *s, int turn, struct perf_result *scratch, struct base_errbuf *err)
{
    base_hist_reset(&scratch->hist);
    const int status = perf_worker_measure(s->w, &s->o, scratch, err);
    s->p50[turn] = (double)base_hist_percentile(&scratch->hist, 50);
    s->p99[turn] = (double)base_hist_percentile(&scratch->hist, 99);
    return status;
}

static void conclude(const struct side *side, struct perf_apart *out)
{
    double p50[TURNS], p99[TURNS];
    for (int i = 0; i < TURNS; i++) {
        p50[i] = side[1].p50[i] / side[0].p50[i];
        p99[i] = side[1].p99[i] / side[0].p99[i];
    }
    *out = (struct perf_apart){.off_p50_ns = median(side[0].p50),
                               .on_p50_ns = median(side[1].p50),
                               .off_p99_ns = median(side[0].p99),
                               .on_p99_ns = median(side[1].p99),
                               .p50_ratio = median(p50),
                               .p99_ratio = median(p99)};
}

int perf_merge_apart(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct side side[2] = {{.o = *o}, {.o = *o}}; /* without merging, and with */
    struct perf_result *scratch = calloc(1, sizeof *scratch);
    int status = scratch == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    side[0].o.socket = o->more_socket[0];
    for (int i = 0; i < 2 && status == 0; i++) {
        side[i].o.test = PERF_READ;
        side[i].o.depth = DEPTH;
        side[i].o.count = COUNT;
        status = perf_worker_new(&side[i].o, r, &side[i].w, err);
    }
    for (int turn = 0; turn < TURNS && status == 0; turn++)
        for (int i = 0; i < 2 && status == 0; i++) /* the one first, then the other */
            status = take_turn(&side[(turn + i) % 2], turn, scratch, err);
    if (status == 0)
        conclude(side, &r->apart);
    for (int i = 0; i < 2; i++)
        perf_worker_free(side[i].w);
    free(scratch);
    return status;
}
