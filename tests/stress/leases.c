/* SPDX-License-Identifier: Apache-2.0 */
/* Remote workers, who READ and WRITE whatever they have heard of, and the whole of it. */
#include "leases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    BLOCK = 32, /* words of one operation */
    DEPTH = 16,
    OLD = 8,   /* tokens that a remote worker remembers */
    KEPT = 64, /* tokens that it keeps for long, */
    KEPT_MS = 4000,
    DEAD_MS = 2000, /* after which the keys of who died must be gone, agents that are stopped
                       meanwhile included */
    WAIT_MS = 30000,
};

/* ---- remote workers */

struct remote {
    const struct stress *stress;
    struct board *b;
    struct kedge_session *s;
    uint64_t *memory; /* DEPTH blocks to write, DEPTH to read into */
    uint32_t lkey;
    uint64_t random;
    struct offer old[OLD];
    struct offer kept[KEPT]; /* in turn */
    uint64_t keeps, keep_ns; /* so many so far; when the next one is */
};

static void reopen(struct remote *r)
{
    const struct kedge_open_attr attr = {.socket = r->stress->socket};
    void *memory;
    int status;
    kedge_close(r->s);
    while ((status = kedge_open(&attr, &r->s)) == -EAGAIN || status == -ETIMEDOUT)
        usleep(1000);
    if (status != 0 || kedge_alloc(r->s, (size_t)2 * DEPTH * BLOCK * 8, &memory, &r->lkey) != 0)
        stress_fail("a remote worker: %s", kedge_last_error());
    r->memory = memory;
    atomic_fetch_add(&r->b->reopened, 1);
}

/* One that was kept for KEPT_MS, once. Generation 0: none has been. They are of different times, so
 * that the owners of some were killed. */
static struct offer take_kept(struct remote *r)
{
    uint64_t now = base_clock_ns();
    if (now < r->keep_ns)
        return (struct offer){.generation = 0};
    struct offer *slot = &r->kept[r->keeps++ % KEPT], kept = *slot;
    *slot = r->old[stress_random(&r->random) % OLD];
    r->keep_ns = now + KEPT_MS * BASE_NS_PER_MS / KEPT;
    return kept;
}

/* Mostly a new offer, else an old one, whose region is gone most likely. */
static struct offer choose(struct remote *r)
{
    struct offer kept = take_kept(r);
    if (kept.generation != 0)
        return kept;
    struct offer *known = &r->old[stress_random(&r->random) % OLD];
    if (known->generation != 0 && stress_random(&r->random) % 4 == 0)
        return *known;
    for (;;) {
        uint64_t i = stress_random(&r->random) % OWNERS, k = stress_random(&r->random) % REGIONS;
        uint32_t seq = atomic_load(&r->b->slot[i][k].seq);
        atomic_thread_fence(memory_order_seq_cst);
        *known = r->b->slot[i][k].offer;
        atomic_thread_fence(memory_order_seq_cst);
        if (seq != 0 && seq % 2 == 0 && atomic_load(&r->b->slot[i][k].seq) == seq)
            return *known;
        if (atomic_load(&r->b->stop))
            return (struct offer){.generation = 0};
    }
}

static int post(struct remote *r, struct kedge_vqp *q, const struct kedge_remote *to,
                uint64_t generation)
{
    struct ibv_sge sge[2 * DEPTH];
    struct ibv_send_wr wr[2 * DEPTH], *bad;
    for (int i = 0; i < 2 * DEPTH; i++) {
        uint64_t at = stress_random(&r->random) % (WORDS - BLOCK) * 8;
        uint64_t *local = r->memory + (size_t)i * BLOCK;
        const bool write = i < DEPTH;
        for (int k = 0; k < BLOCK; k++)
            local[k] = write ? leases_word(generation, stress_random(&r->random)) : 0;
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)local, .length = BLOCK * 8, .lkey = r->lkey};
        wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                     .next = i + 1 < 2 * DEPTH ? &wr[i + 1] : NULL,
                                     .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .wr.rdma = {.remote_addr = to->addr + at, .rkey = to->rkey}};
    }
    return kedge_post_send(q, wr, &bad);
}

/* What a READ brought is of the region that was asked for. */
static void check_read(const struct remote *r, uint64_t slot, uint64_t generation)
{
    const uint64_t *words = r->memory + slot * BLOCK;
    for (int k = 0; k < BLOCK; k++)
        if (words[k] >> 32 != generation)
            stress_fail("a READ of region %llu brought a word of region %llu (%016llx)",
                        (unsigned long long)generation, (unsigned long long)(words[k] >> 32),
                        (unsigned long long)words[k]);
}

/* Its owner was told that it is free, or died with it long ago. */
static bool is_gone(struct remote *r, uint64_t generation)
{
    const struct region_facts *facts = &r->b->region[generation];
    uint64_t died = atomic_load(&facts->dead_ns);
    bool dead = died != 0 && base_clock_ns() - died > DEAD_MS * BASE_NS_PER_MS;
    atomic_fetch_add(&r->b->dead, dead);
    atomic_fetch_add(&r->b->past_revoked, atomic_load(&facts->revoked));
    return dead || atomic_load(&facts->free);
}

static void count(struct remote *r, const struct ibv_wc *wc, uint64_t generation, bool gone)
{
    if (wc->status != IBV_WC_SUCCESS) {
        atomic_fetch_add(&r->b->refused, 1);
        atomic_fetch_add(&r->b->past, gone);
    } else if (gone) {
        stress_fail("an operation on region %llu succeeded after its owner was told that it is "
                    "free, or had been dead for long",
                    (unsigned long long)generation);
    } else if (wc->wr_id >= DEPTH) {
        check_read(r, wc->wr_id, generation);
        atomic_fetch_add(&r->b->reads, 1);
    } else {
        atomic_fetch_add(&r->b->writes, 1);
    }
}

/* gone: it was so already before the first post. 0; 1: it failed, and with it the queue pair; or
 * the session has ended. */
static int collect(struct remote *r, struct failed_list *list, bool gone)
{
    struct ibv_wc wc[DEPTH];
    int failed = 0;
    for (int left = 2 * DEPTH; left > 0;) {
        int n = kedge_poll(r->s, DEPTH, wc);
        if (n == 0)
            n = kedge_wait(r->s, WAIT_MS) == 0 ? -ETIMEDOUT : 0;
        if (n == -ETIMEDOUT)
            stress_fail("no completion for %d s", WAIT_MS / 1000);
        if (n < 0)
            return n;
        list->polled_ns = base_clock_ns();
        for (int i = 0; i < n; i++) {
            count(r, &wc[i], list->generation, gone);
            if (failed && wc[i].status != IBV_WC_WR_FLUSH_ERR)
                stress_fail("status %d behind a failure on the same queue pair", (int)wc[i].status);
            if (!failed && wc[i].status != IBV_WC_SUCCESS)
                leases_failed(r->stress, r->b, &wc[i], wc[i].wr_id < DEPTH, list);
            failed |= wc[i].status != IBV_WC_SUCCESS;
        }
        left -= n;
    }
    return failed;
}

static void use_others(const struct stress *s, struct board *b, uint64_t random)
{
    struct remote r = {.stress = s, .b = b, .random = random};
    reopen(&r);
    while (!atomic_load(&b->stop)) {
        struct offer offer = choose(&r);
        struct kedge_remote to;
        struct kedge_vqp *q;
        if (offer.generation == 0)
            break;
        int status = kedge_import(r.s, offer.token, &to);
        if (status == 0)
            status = kedge_vqp_create(r.s, NULL, &q);
        if (status == 0)
            status = kedge_connect(q, to.gid);
        for (int i = 0; i < 8 && status == 0; i++) {
            bool gone = is_gone(&r, offer.generation);
            struct failed_list list = {.generation = offer.generation,
                                       .posted_ns = base_clock_ns()};
            status = post(&r, q, &to, offer.generation);
            if (status == 0)
                status = collect(&r, &list, gone);
        }
        /* Too many wrong keys; too many tokens; an agent that stands still. */
        if (status < 0 && status != -EACCES && status != -EDQUOT && status != -ETIMEDOUT)
            stress_fail("a remote worker: %s", kedge_last_error());
        if (status < 0)
            reopen(&r);
        else
            kedge_vqp_destroy(q);
    }
    kedge_close(r.s);
}

/* ---- all of them */

enum { OPERATOR = OWNERS + REMOTES, PROCESSES };

static void be(const struct stress *s, void *board, int number, uint64_t random)
{
    struct board *b = board;
    if (number < OWNERS)
        leases_own(s, b, number, random);
    else if (number == OPERATOR)
        leases_operate(s, b, random);
    else
        use_others(s, b, random);
}

static bool has_seen_all(const struct stress *s, const struct board *b)
{
    return (s->rdmactl == NULL || leases_operator_has_seen_all(s, b)) && b->past > 0 &&
           b->dead > 0 && b->reused > 0 && b->watched > 0 && b->reads > 0 && b->writes > 0 &&
           b->refused > 0;
}

static void report(const struct stress *s, const struct board *b)
{
    printf("leases: %llu regions, %llu withdrawn and used again, %llu looks at free memory, %llu "
           "owners killed, %llu READs and %llu WRITEs right, %llu refused (%llu of them were "
           "posted when the region was gone), %llu times keys of owners that were long dead, %llu "
           "sessions\n",
           (unsigned long long)b->regions, (unsigned long long)b->reused,
           (unsigned long long)b->watched, (unsigned long long)b->died,
           (unsigned long long)b->reads, (unsigned long long)b->writes,
           (unsigned long long)b->refused, (unsigned long long)b->past, (unsigned long long)b->dead,
           (unsigned long long)b->reopened);
    if (s->rdmactl != NULL)
        leases_operator_report(b);
    leases_judge(s, b);
    if (!has_seen_all(s, b))
        stress_fail("something never happened");
}

/* What it took back itself, it has marked. */
static void mark_dead(struct board *b, int owner)
{
    for (int i = 0; i < REGIONS; i++)
        atomic_store(&b->region[b->slot[owner][i].offer.generation].dead_ns, base_clock_ns());
}

void stress_leases(struct stress *s)
{
    const int processes = s->rdmactl != NULL ? PROCESSES : OPERATOR;
    pid_t pid[PROCESSES];
    struct board *b = stress_share(sizeof *b);
    for (int i = 0; i < processes; i++)
        pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
    for (int left = processes; left > 0;) {
        int status, i = 0;
        pid_t over = waitpid(-1, &status, WNOHANG);
        if (stress_over_when(s, has_seen_all(s, b)))
            atomic_store(&b->stop, true);
        if (over <= 0) {
            usleep(500);
            continue;
        }
        if (status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
            stress_fail("a worker ended with status %d", status);
        atomic_fetch_add(&b->died, WIFSIGNALED(status) != 0);
        while (pid[i] != over)
            i++;
        if (i < OWNERS)
            mark_dead(b, i);
        if (atomic_load(&b->stop))
            left--;
        else
            pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
    }
    report(s, b);
}
