/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of one tenant that READ as fast as they may, through an agent whose pool has several
 * lanes: they come to one lane, and what each lane has done by and by says whether that becomes
 * even, and stays so. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "reader.h"
#include "worker_group.h"

enum {
    READY,
    STEP_MS = 100,
    MOST_STEPS = PERF_MAX_LANES_MS / STEP_MS,
    WAIT_MS = 1000,
    BATCH = 64,
    PAUSE_EVERY = 4096, /* READs; that long, so that its session sleeps */
    PAUSE_US = 200
};

/* What is counted of each lane, in this order. */
enum { POSTED, LODGERS, MOVES, REFUSED, COUNTS };
static const char *const names[COUNTS] = {
    "kedge_agent_lane_posted_total", "kedge_agent_lane_lodgers", "kedge_agent_lane_moves_total",
    "kedge_agent_lane_moves_refused_total"};

struct lanes_run {
    const struct perf_options *o;
    struct perf_lanes *found;
    char token[KEDGE_TOKEN_MAX];
};

/* ---- a worker: it keeps its READs out, and pauses now and then, so that it is polled no more */

struct stream {
    struct perf_reader reader;
    uint32_t size, depth, done;
};

static int post_read(struct stream *f, uint64_t slot, struct base_errbuf *err)
{
    const uint64_t at = slot * perf_stride(f->size);
    memset((char *)f->reader.memory + at, 0, f->size);
    return perf_reader_post(&f->reader, slot, at, f->size, err);
}

/* The data is looked at: whichever lane has brought it, it is the target's. */
static int go_on(struct stream *f, struct base_errbuf *err)
{
    struct ibv_wc wc[BATCH];
    int n = kedge_poll(f->reader.s, BATCH, wc), status = 0;
    if (n == 0 && (n = kedge_wait(f->reader.s, WAIT_MS)) >= 0)
        n = kedge_poll(f->reader.s, BATCH, wc);
    if (n < 0)
        return perf_failed(n, "waiting", err);
    for (int i = 0; i < n && status == 0; i++) {
        const char *at = (const char *)f->reader.memory + wc[i].wr_id * perf_stride(f->size);
        if (wc[i].status != IBV_WC_SUCCESS)
            return perf_failed_with(&wc[i], "a READ", err);
        if (!perf_pattern_holds(at, 0, f->size))
            return base_err(err, -EBADMSG, "a READ brought other bytes than the target's");
        if (++f->done % PAUSE_EVERY == 0)
            usleep(PAUSE_US);
        status = post_read(f, wc[i].wr_id, err);
    }
    return status;
}

static int attach_stream(struct stream *f, struct base_errbuf *err)
{
    struct perf_reader *r = &f->reader;
    int status = perf_reader_attach(r, err);
    if (status != 0)
        return status;
    status = kedge_alloc(r->s, (size_t)perf_stride(f->size) * f->depth, &r->memory, &r->lkey);
    if (status != 0)
        return perf_failed(status, "memory", err);
    status = perf_reader_import(r, err);
    return status == 0 ? perf_reader_connect(r, err) : status;
}

static int read_on(struct perf_group *group, struct perf_member *member,
                   const struct lanes_run *run)
{
    static struct stream f;
    f.reader = (struct perf_reader){.socket = run->o->socket, .token = run->token};
    f.size = run->o->size;
    f.depth = run->o->depth;
    int status = attach_stream(&f, &member->err);
    member->retries = f.reader.retries;
    if (status == 0 && (status = perf_group_rendezvous(group, READY)) != 0)
        base_err(&member->err, status, "not all workers came");
    const uint64_t to_ns = atomic_load(&group->met_ns[READY]) + run->o->count * BASE_NS_PER_MS;
    for (uint32_t i = 0; i < f.depth && status == 0; i++)
        status = post_read(&f, i, &member->err);
    while (status == 0 && base_clock_ns() < to_ns)
        status = go_on(&f, &member->err);
    perf_reader_close(&f.reader);
    return status;
}

/* ---- who looks at the lanes meanwhile */

typedef uint64_t lane_counts[COUNTS][PERF_MAX_LANES];

struct watch {
    lane_counts first, half, before, now;
    uint64_t half_ns;
    double even[MOST_STEPS]; /* of each step of the second half */
    uint32_t steps;
};

static int look(const struct lanes_run *run, lane_counts count, struct base_errbuf *err)
{
    return perf_lane_counters(run->o->admin_socket, names, COUNTS, run->o->lanes, &count[0][0],
                              err);
}

/* 1: each has done as much; as many as there are lanes: one has done all. */
static double most_to_mean(const uint64_t *before, const uint64_t *now, uint32_t lanes)
{
    uint64_t most = 0, all = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        const uint64_t posted = now[i] - before[i];
        most = posted > most ? posted : most;
        all += posted;
    }
    return all > 0 ? (double)most * lanes / (double)all : 0;
}

static void wait_until(uint64_t due_ns)
{
    const uint64_t now_ns = base_clock_ns();
    if (now_ns < due_ns)
        usleep((useconds_t)((due_ns - now_ns) / BASE_NS_PER_US));
}

/* By the half of the time all that is to move has. Each step of the other half counts by itself
 * too: what is even on the whole may go to and fro. */
static int take_steps(struct watch *w, const struct lanes_run *run, struct base_errbuf *err)
{
    const uint32_t lanes = run->o->lanes, steps = (uint32_t)run->o->count / STEP_MS;
    const uint64_t begun_ns = base_clock_ns();
    for (uint32_t i = 0; i + 1 < steps; i++) {
        memcpy(w->before, w->now, sizeof w->before);
        wait_until(begun_ns + (i + 1) * STEP_MS * BASE_NS_PER_MS);
        const int status = look(run, w->now, err);
        if (status != 0)
            return status;
        const double even = most_to_mean(w->before[POSTED], w->now[POSTED], lanes);
        if (i == 0)
            run->found->at_first = even;
        if (i == steps / 2) {
            memcpy(w->half, w->now, sizeof w->half);
            w->half_ns = base_clock_ns();
        } else if (i > steps / 2) {
            w->even[w->steps++] = even;
        }
    }
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(struct watch *w, const struct lanes_run *run)
{
    struct perf_lanes *found = run->found;
    const uint32_t lanes = run->o->lanes;
    const double s = (double)(base_clock_ns() - w->half_ns) / BASE_NS_PER_S;
    for (uint32_t i = 0; i < lanes; i++) {
        found->per_second[i] = (double)(w->now[POSTED][i] - w->half[POSTED][i]) / s;
        found->lodgers[i] = w->now[LODGERS][i];
        found->moves += w->now[MOVES][i] - w->first[MOVES][i];
        found->moves_late += w->now[MOVES][i] - w->half[MOVES][i];
        found->refused += w->now[REFUSED][i] - w->first[REFUSED][i];
    }
    qsort(w->even, w->steps, sizeof w->even[0], compare_doubles);
    found->even = most_to_mean(w->half[POSTED], w->now[POSTED], lanes);
    found->even_median = w->even[w->steps / 2];
    found->even_worst = w->even[w->steps - 1];
}

static int watch_lanes(struct perf_group *group, struct perf_member *member,
                       const struct lanes_run *run)
{
    static struct watch w;
    int status = look(run, w.first, &member->err);
    if (status != 0)
        return status;
    if ((status = perf_group_rendezvous(group, READY)) != 0)
        return base_err(&member->err, status, "not all workers came");
    memcpy(w.now, w.first, sizeof w.now);
    status = take_steps(&w, run, &member->err);
    if (status == 0)
        sum_up(&w, run);
    return status;
}

static int run_member(struct perf_group *group, uint32_t me, const void *user)
{
    const struct lanes_run *run = user;
    struct perf_member *member = &group->member[me];
    return me + 1 == group->workers ? watch_lanes(group, member, run) : read_on(group, member, run);
}

/* ---- all */

static int judge_group(const struct perf_group *group, struct perf_result *r,
                       struct base_errbuf *err)
{
    int status;
    (void)perf_group_judge(group, &status, err);
    for (uint32_t i = 0; i < group->workers; i++)
        r->retries += group->member[i].retries;
    r->verified = status == 0;
    return status;
}

int perf_lanes(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_target target = {.s = NULL};
    struct perf_group *group;
    struct lanes_run run = {.o = o};
    run.found =
        mmap(NULL, sizeof *run.found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.found == MAP_FAILED)
        return base_err(err, -ENOMEM, "out of memory");
    int status = perf_target_open(o, &target, &r->retries, err);
    if (status == 0) {
        memcpy(run.token, target.token, sizeof run.token);
        status = perf_group_new(o->workers + 1, &group, err);
    }
    if (status == 0) {
        perf_group_run(group, run_member, &run);
        status = judge_group(group, r, err);
        perf_group_free(group);
    }
    r->lanes = *run.found;
    munmap(run.found, sizeof *run.found);
    perf_target_close(&target);
    return status;
}

static void report_as_json(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_lanes *f = &r->lanes;
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t,
                     "{\"test\":\"lanes\",\"lanes\":%u,\"workers\":%u,\"depth\":%u,"
                     "\"count\":%llu,\"max_to_mean\":{\"at_first\":%.3f,\"later\":%.3f,"
                     "\"median\":%.3f,\"worst\":%.3f},\"moves\":%llu,\"moves_late\":%llu,"
                     "\"moves_refused\":%llu,\"of_lane\":[",
                     o->lanes, o->workers, o->depth, (unsigned long long)o->count, f->at_first,
                     f->even, f->even_median, f->even_worst, (unsigned long long)f->moves,
                     (unsigned long long)f->moves_late, (unsigned long long)f->refused);
    for (uint32_t i = 0; i < o->lanes; i++)
        base_text_printf(&t, "%s{\"per_second\":%.0f,\"lodgers\":%llu}", i > 0 ? "," : "",
                         f->per_second[i], (unsigned long long)f->lodgers[i]);
    base_text_printf(&t, "],\"verified\":%s,", r->verified ? "true" : "false");
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_lanes_report(const struct perf_options *o, const struct perf_result *r)
{
    const struct perf_lanes *f = &r->lanes;
    if (o->json) {
        report_as_json(o, r);
        return;
    }
    printf("lanes: %u workers of one tenant, READs of 8 bytes, depth %u, for %llu ms. What the "
           "busiest of %u lanes has posted, of their mean:\n"
           "  %.2f in the first 0.1 s; in the second half %.2f (median of its tenths of a second "
           "%.2f, worst %.2f)\n",
           o->workers, o->depth, (unsigned long long)o->count, o->lanes, f->at_first, f->even,
           f->even_median, f->even_worst);
    for (uint32_t i = 0; i < o->lanes; i++)
        printf("  lane %u: %.0f a second there, %llu sessions of others\n", i, f->per_second[i],
               (unsigned long long)f->lodgers[i]);
    printf("  sessions that went home: %llu, in the second half %llu; that stayed where they were "
           "to leave: %llu\n",
           (unsigned long long)f->moves, (unsigned long long)f->moves_late,
           (unsigned long long)f->refused);
}
