/* SPDX-License-Identifier: Apache-2.0 */
/* Two tenants of one agent, one with many workers and one with a single one, all of which READ from
 * one node as fast as they may: which part each gets. */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "reader.h"
#include "worker_group.h"

enum { READY, WARM_MS = 500, MEASURE_MS = 3000, WAIT_MS = 1000, BATCH = 64 };

struct fairness {
    const struct perf_options *o;
    char token[KEDGE_TOKEN_MAX];
};

/* A worker that keeps so many READs out. */
struct flood {
    struct perf_reader reader;
    uint32_t size, depth;
    uint64_t posted_ns[PERF_MAX_DEPTH];
};

static int post(struct flood *f, uint64_t slot, struct base_errbuf *err)
{
    f->posted_ns[slot] = base_clock_ns();
    return perf_reader_post(&f->reader, slot, slot * f->size, f->size, err);
}

/* Sleeps while nothing completes: the workers share a processor. */
static int go_on(struct flood *f, uint64_t from_ns, uint64_t to_ns, struct perf_member *member)
{
    struct ibv_wc wc[BATCH];
    int n = kedge_poll(f->reader.s, BATCH, wc), status = 0;
    if (n == 0 && (n = kedge_wait(f->reader.s, WAIT_MS)) >= 0)
        n = kedge_poll(f->reader.s, BATCH, wc);
    if (n < 0)
        return perf_failed(n, "waiting", &member->err);
    uint64_t now_ns = base_clock_ns();
    for (int i = 0; i < n && status == 0; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return perf_failed_with(&wc[i], "a READ", &member->err);
        if (now_ns >= from_ns && now_ns < to_ns)
            base_hist_record(&member->hist, now_ns - f->posted_ns[wc[i].wr_id]);
        status = post(f, wc[i].wr_id, &member->err);
    }
    return status;
}

static int attach(struct flood *f, struct base_errbuf *err)
{
    struct perf_reader *r = &f->reader;
    int status = perf_reader_attach(r, err);
    if (status != 0)
        return status;
    status = kedge_alloc(r->s, (size_t)f->size * f->depth, &r->memory, &r->lkey);
    if (status != 0)
        return perf_failed(status, "memory", err);
    status = perf_reader_import(r, err);
    return status == 0 ? perf_reader_connect(r, err) : status;
}

/* The other tenant's worker. The scheduler would share the processor that all workers have between
 * processes, 64 to 1, where what is measured is the agent's doing. So it runs at once when it is
 * woken: what a niceness of -20 gets it is a whole time slice of somebody else later (3 ms), of
 * which its requests last for a third. */
static int become_other(struct base_errbuf *err)
{
    const struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        return base_err(err, -errno, "real-time scheduling of the single worker: %s",
                        strerror(errno));
    if (setgroups(0, NULL) != 0 || setgid(PERF_OTHER_UID) != 0 || setuid(PERF_OTHER_UID) != 0)
        return base_err(err, -errno, "becoming uid %d: %s", PERF_OTHER_UID, strerror(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of uid has cleared it */
    return 0;
}

static int worker_run(struct perf_group *group, uint32_t me, const void *user)
{
    static struct flood f;
    const struct fairness *all = user;
    struct perf_member *member = &group->member[me];
    f.reader = (struct perf_reader){.socket = all->o->socket, .token = all->token};
    f.size = all->o->size;
    f.depth = all->o->depth;
    int status = me == group->workers - 1 ? become_other(&member->err) : 0;
    if (status == 0)
        status = attach(&f, &member->err);
    member->retries = f.reader.retries;
    if (status == 0 && (status = perf_group_rendezvous(group, READY)) != 0)
        base_err(&member->err, status, "not all workers came");
    uint64_t from_ns = atomic_load(&group->met_ns[READY]) + WARM_MS * BASE_NS_PER_MS;
    uint64_t to_ns = from_ns + MEASURE_MS * BASE_NS_PER_MS;
    for (uint32_t i = 0; i < f.depth && status == 0; i++)
        status = post(&f, i, &member->err);
    while (status == 0 && base_clock_ns() < to_ns)
        status = go_on(&f, from_ns, to_ns, member);
    perf_reader_close(&f.reader);
    return status;
}

static int share_out(const struct perf_group *group, struct perf_result *r, struct base_errbuf *err)
{
    int status;
    base_hist_reset(&r->hist);
    base_hist_reset(&r->alone);
    (void)perf_group_judge(group, &status, err);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < group->workers; i++) {
        const struct perf_member *member = &group->member[i];
        base_hist_merge(i + 1 == group->workers ? &r->alone : &r->hist, &member->hist);
        r->retries += member->retries;
    }
    r->elapsed_ns = MEASURE_MS * BASE_NS_PER_MS;
    return 0;
}

static int open_target(const struct perf_options *o, struct kedge_session **s,
                       char token[KEDGE_TOKEN_MAX], struct base_errbuf *err)
{
    uint64_t retries = 0;
    struct kedge_mr *mr;
    uint32_t lkey;
    void *memory;
    int status = perf_open(o->peer_socket, s, &retries, err);
    if (status != 0)
        return status;
    status = kedge_alloc(*s, o->size, &memory, &lkey);
    if (status == 0)
        status = kedge_reg_mr(*s, memory, o->size, IBV_ACCESS_REMOTE_READ, &mr);
    if (status == 0)
        status = kedge_mr_export(mr, token, KEDGE_TOKEN_MAX);
    return status == 0 ? 0 : perf_failed(status, "exporting the target's memory", err);
}

int perf_fairness(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct fairness all = {.o = o};
    struct kedge_session *target = NULL;
    struct perf_group *group;
    if (geteuid() != 0)
        return base_err(err, -EPERM,
                        "fairness is of two tenants, which are two uids: run it as root");
    int status = open_target(o, &target, all.token, err);
    if (status == 0 && (status = perf_group_new(o->workers + 1, &group, err)) == 0) {
        perf_group_run(group, worker_run, &all);
        status = share_out(group, r, err);
        perf_group_free(group);
    }
    kedge_close(target);
    return status;
}

static double per_second(const struct perf_options *o, const struct base_hist *h,
                         const struct perf_result *r)
{
    return (double)h->count * o->size / ((double)r->elapsed_ns / 1e9);
}

static void as_json(const struct perf_options *o, const struct perf_result *r, double many,
                    double one)
{
    struct base_text t;
    base_text_init(&t, 4096);
    base_text_printf(&t,
                     "{\"test\":\"fairness\",\"workers\":%u,\"size\":%u,\"depth\":%u,"
                     "\"window_ops\":%u,\"window_bytes\":%llu,\"many_bytes_per_second\":%.0f,"
                     "\"one_bytes_per_second\":%.0f,\"share_of_one\":%.4f,"
                     "\"one_p50_ns\":%llu,\"one_p99_ns\":%llu,",
                     o->workers, o->size, o->depth, o->window_ops,
                     (unsigned long long)o->window_bytes, many, one, one / (many + one),
                     (unsigned long long)base_hist_percentile(&r->alone, 50),
                     (unsigned long long)base_hist_percentile(&r->alone, 99));
    /* As of all tests: here of the many. */
    base_text_printf(&t,
                     "\"count\":%llu,\"retries\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu,"
                     "\"elapsed_ns\":%llu,\"per_second\":%.0f,\"pinned\":%s,",
                     (unsigned long long)r->hist.count, (unsigned long long)r->retries,
                     (unsigned long long)base_hist_percentile(&r->hist, 50),
                     (unsigned long long)base_hist_percentile(&r->hist, 99),
                     (unsigned long long)r->elapsed_ns, many / o->size,
                     o->pinned ? "true" : "false");
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}

void perf_fairness_report(const struct perf_options *o, const struct perf_result *r)
{
    double many = per_second(o, &r->hist, r), one = per_second(o, &r->alone, r);
    if (o->json) {
        as_json(o, r, many, one);
        return;
    }
    printf(
        "fairness: READs of %u bytes, depth %u, windows of %u requests and %llu bytes (0: none): "
        "%u workers of one tenant %.0f MB/s, 1 of another %.0f MB/s, which is %.1f %% of all; "
        "p50 of the many %.0f us, of the one %.0f us\n",
        o->size, o->depth, o->window_ops, (unsigned long long)o->window_bytes, o->workers,
        many / 1e6, one / 1e6, 100 * one / (many + one),
        (double)base_hist_percentile(&r->hist, 50) / 1e3,
        (double)base_hist_percentile(&r->alone, 50) / 1e3);
}
