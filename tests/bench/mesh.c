/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that all connect to each other, as the burst compute nodes of a store do. Each is a
 * process, waits without spinning, imports all others' regions in bulk, connects to each, and READs
 * eight bytes from it; the READs go out together. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <kedge.h>

#include "perf.h"
#include "worker_group.h"

enum { WORD = 8, BETWEEN = 64 };
enum { EXPORTED, DONE };

static uint64_t word_of(uint32_t worker)
{
    return 0x6b65646765000000ull + worker;
}

/* Takes `wanted` completions or more, as they come, adding them to *done; all must be successes. */
static int collect(struct kedge_session *s, uint32_t wanted, uint32_t *done, uint32_t posted,
                   struct base_errbuf *err)
{
    struct ibv_wc wc[64];
    const uint32_t enough = *done + wanted;
    while (*done < enough) {
        int n = kedge_poll(s, 64, wc);
        if (n == 0) {
            n = kedge_wait_many(s, (int)(enough - *done), PERF_PATIENCE_MS);
            if (n == 0)
                return base_err(err, -ETIMEDOUT, "%u of %u READs completed", *done, posted);
            if (n > 0)
                continue;
        }
        if (n < 0)
            return perf_failed(n, "polling", err);
        for (int i = 0; i < n; i++)
            if (wc[i].status != IBV_WC_SUCCESS)
                return perf_failed_with(&wc[i], "a READ", err);
        *done += (uint32_t)n;
    }
    return 0;
}

struct member {
    struct kedge_session *s;
    uint8_t *memory; /* a word to be read, then one for each other worker */
    uint32_t lkey;
};

/* remotes: by worker. */
static int import_others(struct member *m, const struct perf_group *group, uint32_t me,
                         uint32_t workers, struct kedge_remote *remotes, struct base_errbuf *err)
{
    static const char *tokens[PERF_MAX_WORKERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < workers; i++)
        if (i != me)
            tokens[count++] = group->token[i];
    const int status = kedge_import_many(m->s, tokens, count, remotes);
    if (status != 0)
        return perf_failed(status, "importing", err);
    for (uint32_t i = workers - 1; i > me; i--)
        remotes[i] = remotes[i - 1];
    return 0;
}

/* What one connect takes is in the member's histogram. */
static int connect_others(struct member *m, struct perf_group *group, uint32_t me, uint32_t workers,
                          const struct kedge_remote *remotes, struct kedge_vqp **vqps,
                          struct base_errbuf *err)
{
    for (uint32_t i = 0; i < workers; i++) {
        if (i == me)
            continue;
        int status = kedge_vqp_create(m->s, NULL, &vqps[i]);
        if (status != 0)
            return perf_failed(status, "a VQP to another worker", err);
        const uint64_t begin = base_clock_fast_ns(&group->clock);
        status = kedge_connect(vqps[i], remotes[i].gid);
        if (status != 0)
            return perf_failed(status, "connecting", err);
        base_hist_record(&group->member[me].hist, base_clock_fast_ns(&group->clock) - begin);
    }
    return 0;
}

static int meet_others(struct member *m, struct perf_group *group, uint32_t me, uint32_t workers,
                       struct base_errbuf *err)
{
    static struct kedge_vqp *vqps[PERF_MAX_WORKERS];
    static struct kedge_remote remotes[PERF_MAX_WORKERS];
    uint32_t posted = 0, done = 0;
    int status = import_others(m, group, me, workers, remotes, err);
    if (status == 0)
        status = connect_others(m, group, me, workers, remotes, vqps, err);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < workers && status == 0; i++) {
        if (i == me)
            continue;
        struct ibv_sge sge = {
            .addr = (uintptr_t)m->memory + (i + 1) * BETWEEN, .length = WORD, .lkey = m->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = remotes[i].addr,
                                             .rkey = remotes[i].rkey}},
                           *bad;
        /* Full is full of requests that the lane has not taken, or of completions. */
        while ((status = kedge_post_send(vqps[i], &wr, &bad)) == -ENOMEM && posted > done) {
            status = collect(m->s, (posted - done + 1) / 2, &done, posted, err);
            if (status != 0)
                return status;
        }
        if (status != 0)
            return perf_failed(status, "posting", err);
        posted++;
    }
    return status != 0 ? status : collect(m->s, posted - done, &done, posted, err);
}

static uint64_t processor_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* This process's so far, and, where they are ours, the agents'. */
static void count_used(struct perf_member *member, const struct perf_options *o, bool end)
{
    struct rusage used;
    clockid_t clock;
    (void)getrusage(RUSAGE_SELF, &used);
    member->faults = (uint64_t)used.ru_minflt - (end ? member->faults : 0);
    member->sleeps = (uint64_t)used.ru_nvcsw - (end ? member->sleeps : 0);
    member->used_ns = processor_ns(CLOCK_PROCESS_CPUTIME_ID) - (end ? member->used_ns : 0);
    for (size_t i = 0; i < 2; i++)
        if (o->agent_pid[i] > 0 && clock_getcpuclockid(o->agent_pid[i], &clock) == 0)
            member->agents_ns[end] += processor_ns(clock);
}

static int worker_run(struct perf_group *group, uint32_t me, const void *user)
{
    const struct perf_options *o = user;
    struct perf_member *member = &group->member[me];
    struct member m = {.s = NULL};
    struct kedge_mr *mr;
    void *memory;
    uint64_t word = word_of(me);
    const char *peer = o->peer_socket != NULL ? o->peer_socket : o->socket;
    int status = perf_open(me % 2 == 0 ? o->socket : peer, &m.s, &member->retries, &member->err);
    if (status != 0)
        return status;
    count_used(member, o, false);
    member->begin_ns = base_clock_ns();
    status = kedge_alloc(m.s, (o->workers + 1) * BETWEEN, &memory, &m.lkey);
    if (status != 0)
        return perf_failed(status, "memory", &member->err);
    m.memory = memory;
    memcpy(memory, &word, WORD);
    status = kedge_reg_mr(m.s, memory, WORD, IBV_ACCESS_REMOTE_READ, &mr);
    if (status == 0)
        status = kedge_mr_export(mr, group->token[me], sizeof group->token[me]);
    if (status != 0)
        return perf_failed(status, "exporting", &member->err);
    status = perf_group_rendezvous(group, EXPORTED);
    if (status != 0)
        return base_err(&member->err, status, "not all workers came");
    status = meet_others(&m, group, me, o->workers, &member->err);
    member->end_ns = base_clock_ns();
    count_used(member, o, true);
    for (uint32_t i = 0; i < o->workers && status == 0; i++) {
        memcpy(&word, m.memory + (i + 1) * BETWEEN, WORD);
        if (i != me && word != word_of(i))
            status = base_err(&member->err, -EBADMSG, "worker %u read wrong bytes from %u", me, i);
    }
    if (status == 0 && perf_group_rendezvous(group, DONE) != 0)
        status = base_err(&member->err, -ECANCELED, "not all workers finished");
    kedge_close(m.s);
    return status;
}

int perf_mesh(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    struct perf_group *group;
    int status = perf_group_new(o->workers, &group, err);
    if (status != 0)
        return status;
    /* Those with the last attach and the last completion. */
    const struct perf_member *begin = &group->member[0], *end = begin;
    perf_group_run(group, worker_run, o);
    base_hist_reset(&r->hist);
    for (uint32_t i = 0; i < o->workers; i++) {
        const struct perf_member *member = &group->member[i];
        base_hist_merge(&r->hist, &member->hist);
        r->retries += member->retries;
        r->faults += member->faults;
        r->sleeps += member->sleeps;
        r->workers_ns += member->used_ns;
        if (member->begin_ns > begin->begin_ns)
            begin = member;
        if (member->end_ns > end->end_ns)
            end = member;
    }
    if (end->end_ns > begin->begin_ns) {
        r->elapsed_ns = end->end_ns - begin->begin_ns;
        r->agents_ns = end->agents_ns[1] - begin->agents_ns[0];
    }
    (void)perf_group_judge(group, &status, err);
    r->verified = status == 0;
    perf_group_free(group);
    return status;
}
