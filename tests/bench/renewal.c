/* SPDX-License-Identifier: Apache-2.0 */
/* What the renewing of records costs a worker that never pauses: READs of regions that are lent for
 * as short as their node can, in turns with READs of regions that are lent for so long that none is
 * renewed, so that what else happens on the machine meets both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "counters.h"
#include "perf.h"

enum { TURNS = 9, SHORT = 0, LONG = 1, KINDS = 2 };

/* Of the agent that READs. */
struct counts {
    uint64_t reads, renewals, endpoints;
};

static int count(const struct perf_options *o, struct counts *out, struct base_errbuf *err)
{
    static const char *const names[] = {"kedge_agent_lane_mr_reads_total",
                                        "kedge_agent_lane_mr_renewals_total",
                                        "kedge_agent_lane_endpoint_reads_total"};
    uint64_t value[3];
    bool all;
    int status = perf_counters(o->admin_socket, names, 3, value, &all, err);
    if (status == 0 && !all)
        status = base_err(err, -ENOENT, "the agent does not count renewals: is it an older one?");
    *out = (struct counts){.reads = value[0], .renewals = value[1], .endpoints = value[2]};
    return status;
}

struct turn {
    uint64_t p50_ns, p99_ns, p999_ns;
};

/* The short leases run out before it, so that it begins with a READ of each record, and waits for
 * no other if all goes well. */
static int take_turn(struct perf_worker *w, const struct perf_options *o, int kind,
                     struct turn *turn, struct perf_result *r, struct base_errbuf *err)
{
    static struct perf_result measured;
    struct perf_turns *all = &r->turns[kind];
    struct counts before, after;
    const uint64_t begins = kind == SHORT ? o->regions : 0;
    usleep(2 * 1000 * o->lease_ms);
    int status = count(o, &before, err);
    if (status == 0)
        status = perf_worker_measure(w, o, &measured, err);
    if (status == 0)
        status = count(o, &after, err);
    if (status != 0)
        return status;
    const uint64_t renewals = after.renewals - before.renewals;
    const uint64_t anew = after.reads - before.reads - renewals;
    all->renewals += renewals;
    all->waits += anew > begins ? anew - begins : 0;
    all->endpoints += after.endpoints - before.endpoints;
    all->max_ns = measured.hist.max > all->max_ns ? measured.hist.max : all->max_ns;
    *turn = (struct turn){.p50_ns = base_hist_percentile(&measured.hist, 50),
                          .p99_ns = base_hist_percentile(&measured.hist, 99),
                          .p999_ns = base_hist_percentile(&measured.hist, 99.9)};
    base_hist_merge(kind == SHORT ? &r->hist : &r->alone, &measured.hist);
    r->elapsed_ns += kind == SHORT ? measured.elapsed_ns : 0;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median(uint64_t value[TURNS])
{
    qsort(value, TURNS, sizeof value[0], compare);
    return value[TURNS / 2];
}

static void sum_up(const struct turn turn[TURNS], struct perf_turns *out)
{
    uint64_t p50_ns[TURNS], p99_ns[TURNS], p999_ns[TURNS];
    for (int i = 0; i < TURNS; i++) {
        p50_ns[i] = turn[i].p50_ns;
        p99_ns[i] = turn[i].p99_ns;
        p999_ns[i] = turn[i].p999_ns;
    }
    out->p50_ns = median(p50_ns);
    out->p99_ns = median(p99_ns);
    out->p999_ns = median(p999_ns);
}

/* A comparison of what it says it is. */
static int check(const struct perf_result *r, struct base_errbuf *err)
{
    if (r->turns[SHORT].renewals == 0)
        return base_err(err, -ENODATA, "no record was renewed: raise --count");
    if (r->turns[LONG].renewals + r->turns[LONG].waits > 0)
        return base_err(err, -ENODATA,
                        "records that are lent for long were READ again: lower --count");
    return 0;
}

int perf_renewal(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct turn turn[KINDS][TURNS];
    static struct perf_result warm;
    struct perf_options some[KINDS] = {*o, *o};
    struct perf_worker *w[KINDS] = {NULL, NULL};
    base_hist_reset(&r->hist);
    base_hist_reset(&r->alone);
    int status = 0;
    for (int kind = 0; kind < KINDS && status == 0; kind++) {
        some[kind].count = (o->count + KINDS * TURNS - 1) / (KINDS * TURNS);
        if (kind == LONG)
            some[kind].peer_socket = o->more_socket[0];
        status = perf_worker_new(&some[kind], r, &w[kind], err);
        if (status == 0)
            status = perf_worker_measure(w[kind], &some[kind], &warm, err);
    }
    for (int i = 0; i < KINDS * TURNS && status == 0; i++) {
        const int kind = i % KINDS;
        status = take_turn(w[kind], &some[kind], kind, &turn[kind][i / KINDS], r, err);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        perf_worker_free(w[kind]);
        sum_up(turn[kind], &r->turns[kind]);
    }
    r->verified = status == 0;
    return status == 0 ? check(r, err) : status;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

static void add(struct base_text *t, const char *name, const struct perf_turns *k)
{
    base_text_printf(t,
                     "\"%s\":{\"p50_ns\":%llu,\"p99_ns\":%llu,\"p999_ns\":%llu,\"max_ns\":%llu,"
                     "\"renewals\":%llu,\"waits\":%llu,\"endpoint_reads\":%llu},",
                     name, (unsigned long long)k->p50_ns, (unsigned long long)k->p99_ns,
                     (unsigned long long)k->p999_ns, (unsigned long long)k->max_ns,
                     (unsigned long long)k->renewals, (unsigned long long)k->waits,
                     (unsigned long long)k->endpoints);
}

static void as_json(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_turns *with = &r->turns[SHORT], *without = &r->turns[LONG];
    const double seconds = (double)r->elapsed_ns / 1e9;
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t,
                     "{\"test\":\"renewal\",\"verified\":true,\"size\":%u,\"depth\":%u,"
                     "\"regions\":%u,\"lease_ms\":%u,\"turns\":%d,",
                     o->size, o->depth, o->regions, o->lease_ms, TURNS);
    add(&t, "with", with);
    add(&t, "without", without);
    base_text_printf(&t, "\"p50_ratio\":%.3f,\"p99_ratio\":%.3f,\"p999_ratio\":%.3f,",
                     ratio(with->p50_ns, without->p50_ns), ratio(with->p99_ns, without->p99_ns),
                     ratio(with->p999_ns, without->p999_ns));
    /* As of all tests: here of the turns with renewals, all together. */
    base_text_printf(
        &t,
        "\"count\":%llu,\"retries\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,"
        "\"elapsed_ns\":%llu,\"per_second\":%.0f,\"pinned\":%s,",
        (unsigned long long)r->hist.count, (unsigned long long)r->retries,
        (unsigned long long)base_hist_percentile(&r->hist, 50),
        (unsigned long long)base_hist_percentile(&r->hist, 99), (unsigned long long)r->elapsed_ns,
        seconds > 0 ? (double)r->hist.count / seconds : 0, o->pinned ? "true" : "false");
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_renewal_report(const struct perf_options *o, const struct perf_result *r)
{
    static const char *const names[KINDS] = {"with renewals", "without"};
    if (o->json) {
        as_json(o, r);
        return;
    }
    printf("renewal: READs of %u bytes, depth %u, of %u region(s) lent for %u ms, in turns with "
           "such lent for long; medians of %d turns each:\n",
           o->size, o->depth, o->regions, o->lease_ms, TURNS);
    for (int i = 0; i < KINDS; i++) {
        const struct perf_turns *k = &r->turns[i];
        printf("  %-14s p50 %.3f us, p99 %.3f us, p99.9 %.3f us (%llu READs, %llu records renewed, "
               "%llu waited for)\n",
               names[i], (double)k->p50_ns / 1e3, (double)k->p99_ns / 1e3, (double)k->p999_ns / 1e3,
               (unsigned long long)(i == SHORT ? r->hist.count : r->alone.count),
               (unsigned long long)k->renewals, (unsigned long long)k->waits);
    }
    printf("  ratio          p50 %.2f, p99 %.2f, p99.9 %.2f\n",
           ratio(r->turns[SHORT].p50_ns, r->turns[LONG].p50_ns),
           ratio(r->turns[SHORT].p99_ns, r->turns[LONG].p99_ns),
           ratio(r->turns[SHORT].p999_ns, r->turns[LONG].p999_ns));
}
