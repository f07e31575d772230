/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker that posts to dead nodes costs another one of the same agent: the other READs at
 * depth 1 from a live node, now alone, now beside it, in turns, so that what else happens on the
 * machine meets both. Or beside one that guesses keys of the live node. Dead are agents that were
 * killed with a region of theirs known, and endpoints that are registered and were never there. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kedge.h>

#include "isolation.h"

enum { TURNS = 8, BYTES = 64, PATIENCE_MS = 30000, STEP_US = 200, SILENT_VQPS = 64 };
struct dead {
    struct kedge_remote region;
    struct kedge_vqp *q;
    uint32_t out; /* requests that have not completed */
    bool broken;
};

struct bad {
    struct neighbour *shared;
    struct kedge_session *s;
    struct dead dead[PERF_MAX_DEAD + SILENT_VQPS];
    uint32_t count, killed, lkey;
    const struct perf_unknown_nodes *unknown;
    uint32_t silent, turn; /* of unknown nodes */
    void *memory;
};

/* ---- the bad neighbour */

/* Takes all completions that there are; sleeps for a millisecond when there is none. */
static void settle(struct bad *b)
{
    struct ibv_wc wc[64];
    int n = kedge_poll(b->s, 64, wc);
    if (n == 0)
        (void)kedge_wait(b->s, 1);
    for (; n > 0; n = kedge_poll(b->s, 64, wc))
        for (int i = 0; i < n; i++) {
            struct dead *d = &b->dead[wc[i].wr_id];
            d->out--;
            if (wc[i].status == IBV_WC_SUCCESS)
                continue;
            d->broken = true;
            atomic_fetch_add(&b->shared->failed, 1);
        }
}

/* To the one that it was for, or to the next unknown endpoint. */
static int aim(struct bad *b, uint32_t i)
{
    struct dead *d = &b->dead[i];
    if (i >= b->killed)
        perf_unknown_gid(b->unknown, b->turn++ % b->silent, d->region.gid);
    return kedge_connect(d->q, d->region.gid);
}

/* As many as the session takes, to each in turn. */
static void post_to_all(struct bad *b)
{
    struct ibv_sge sge = {.addr = (uintptr_t)b->memory, .length = BYTES, .lkey = b->lkey};
    /* First, and with all completions taken: a connect to an unknown one waits for the lane, which
     * waits for room for completions. */
    for (uint32_t i = 0; i < b->count; i++)
        if (b->dead[i].broken && b->dead[i].out == 0)
            b->dead[i].broken = aim(b, i) != 0;
    for (uint32_t i = 0, full = 0; full < b->count; i = i + 1 == b->count ? 0 : i + 1) {
        struct dead *d = &b->dead[i];
        struct ibv_send_wr wr = {
            .wr_id = i,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_READ,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = d->region.addr, .rkey = d->region.rkey}};
        struct ibv_send_wr *bad;
        if (d->broken || kedge_post_send(d->q, &wr, &bad) != 0) {
            full++;
            continue;
        }
        full = 0;
        d->out++;
        atomic_fetch_add(&b->shared->posted, 1);
    }
}

static bool is_settled(const struct bad *b)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < b->count; i++)
        out += b->dead[i].out;
    return out == 0;
}

/* Its own CPU, if there is one beside the measuring worker's and the lanes'. */
static void leave_alone(const struct perf_options *o)
{
    cpu_set_t others;
    if (!o->pinned || sched_getaffinity(getppid(), sizeof others, &others) != 0)
        return;
    CPU_ZERO(&others);
    for (long i = 2; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPU_SETSIZE; i++)
        CPU_SET((int)i, &others);
    if (CPU_COUNT(&others) > 0)
        (void)sched_setaffinity(0, sizeof others, &others);
}

static int begin(struct bad *b, const struct perf_options *o,
                 const struct perf_unknown_nodes *unknown, char tokens[][KEDGE_TOKEN_MAX],
                 struct base_errbuf *err)
{
    uint64_t retries = 0;
    int status = perf_open(o->socket, &b->s, &retries, err);
    if (status == 0)
        status = kedge_alloc(b->s, BYTES, &b->memory, &b->lkey);
    b->unknown = unknown;
    b->silent = o->silent;
    b->killed = o->dead;
    b->count = o->dead + (o->silent < SILENT_VQPS ? o->silent : SILENT_VQPS);
    for (uint32_t i = 0; i < b->count && status == 0; i++) {
        struct dead *d = &b->dead[i];
        d->region.rkey = i + 1; /* an unknown node never says that it has none */
        if (i < b->killed)
            status = kedge_import(b->s, tokens[i], &d->region);
        if (status == 0)
            status = kedge_vqp_create(b->s, NULL, &d->q);
        if (status == 0)
            status = aim(b, i);
    }
    return status == 0 || err->text[0] != '\0' ? status
                                               : perf_failed(status, "the bad neighbour", err);
}

static _Noreturn void be_bad(const struct perf_options *o, struct neighbour *shared,
                             const struct perf_unknown_nodes *unknown,
                             char tokens[][KEDGE_TOKEN_MAX])
{
    static struct bad b;
    b.shared = shared;
    leave_alone(o);
    if (o->wrong_keys)
        wrong_keys_run(o, shared);
    atomic_store(&shared->status, begin(&b, o, unknown, tokens, &shared->err));
    while (atomic_load(&shared->status) == 0 && kedge_session_status(b.s) == 0) {
        int mode = atomic_load(&shared->mode);
        if (mode == OVER)
            _exit(0);
        if (mode == BUSY)
            post_to_all(&b);
        if (mode == BUSY || !is_settled(&b))
            settle(&b);
        else
            usleep(STEP_US);
        atomic_store(&shared->now, mode == IDLE && !is_settled(&b) ? BUSY : mode);
    }
    if (shared->err.text[0] == '\0')
        perf_failed(-EPIPE, "the session", &shared->err);
    _exit(1);
}

/* ---- the nodes that die */

/* Workers of theirs export a region each; then they are killed. */
static int kill_agents(const struct perf_options *o, char tokens[][KEDGE_TOKEN_MAX],
                       struct perf_result *r, struct base_errbuf *err)
{
    struct kedge_session *s[PERF_MAX_DEAD] = {NULL};
    int status = 0;
    for (uint32_t i = 0; i < o->dead && status == 0; i++) {
        struct kedge_mr *mr;
        uint32_t lkey;
        void *memory;
        status = perf_open(o->more_socket[i], &s[i], &r->retries, err);
        if (status != 0)
            break;
        status = kedge_alloc(s[i], BYTES, &memory, &lkey);
        if (status == 0)
            status = kedge_reg_mr(s[i], memory, BYTES, IBV_ACCESS_REMOTE_READ, &mr);
        if (status == 0)
            status = kedge_mr_export(mr, tokens[i], KEDGE_TOKEN_MAX);
        if (status != 0)
            perf_failed(status, "a region of a node that is to die", err);
    }
    for (uint32_t i = 0; i < o->dead; i++) {
        (void)kill(o->more_pid[i], SIGKILL); /* --local reaps it */
        kedge_close(s[i]);
    }
    return status;
}

/* ---- the turns */

static int reach(struct neighbour *n, pid_t pid, enum mode mode, struct base_errbuf *err)
{
    uint64_t end = base_clock_ns() + PATIENCE_MS * BASE_NS_PER_MS;
    uint64_t failed = atomic_load(&n->failed);
    atomic_store(&n->mode, mode);
    while (atomic_load(&n->now) != (int)mode ||
           (mode == BUSY && atomic_load(&n->failed) == failed)) {
        if (waitpid(pid, NULL, WNOHANG) == pid || base_clock_ns() > end)
            return base_err(err, -EIO, "the bad neighbour is gone: %.400s", n->err.text);
        usleep(STEP_US);
    }
    return 0;
}

static int take_turns(const struct perf_options *o, struct neighbour *n, pid_t pid,
                      struct perf_result *r, struct base_errbuf *err)
{
    static struct perf_result turn;
    struct perf_worker *w = NULL;
    struct perf_options some = *o;
    some.count = (o->count + TURNS - 1) / TURNS;
    base_hist_reset(&r->hist);
    base_hist_reset(&r->alone);
    int status = perf_worker_new(o, r, &w, err);
    for (int i = 0; i < 2 * TURNS && status == 0; i++) {
        bool alone = i % 2 == 0;
        status = reach(n, pid, alone ? IDLE : BUSY, err);
        if (status == 0)
            status = perf_worker_measure(w, &some, &turn, err);
        if (status == 0)
            base_hist_merge(alone ? &r->alone : &r->hist, &turn.hist);
        r->elapsed_ns += alone ? 0 : turn.elapsed_ns;
    }
    perf_worker_free(w);
    return status;
}

int perf_isolation(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static char tokens[PERF_MAX_DEAD][KEDGE_TOKEN_MAX];
    struct perf_unknown_nodes unknown = {.registered = 0};
    struct perf_options few = *o;
    struct neighbour *n =
        mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n == MAP_FAILED)
        return base_err(err, -ENOMEM, "out of memory");
    few.count = o->silent;
    int status = o->wrong_keys ? 0 : perf_unknown_nodes_add(&few, NULL, &unknown, err);
    if (status == 0 && !o->wrong_keys)
        status = kill_agents(o, tokens, r, err);
    pid_t pid = status == 0 ? fork() : 0;
    if (status == 0 && pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_bad(o, n, &unknown, tokens);
    }
    if (status == 0 && pid < 0)
        status = base_err(err, -errno, "fork: %s", strerror(errno));
    if (status == 0) {
        status = take_turns(o, n, pid, r, err);
        atomic_store(&n->mode, OVER);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    r->bad_posted = atomic_load(&n->posted);
    r->bad_failed = atomic_load(&n->failed);
    r->verified = status == 0;
    if (!o->wrong_keys)
        perf_unknown_nodes_remove(o, &unknown);
    munmap(n, sizeof *n);
    return status;
}
