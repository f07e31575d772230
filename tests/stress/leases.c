/* SPDX-License-Identifier: Apache-2.0 */
/* Every word of a region carries the region's generation in its upper half, whoever writes it. So a
 * word of another generation, wherever it turns up, is an operation that was executed under a key
 * that had been withdrawn. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "stress.h"

enum {
    OWNERS = 4,
    REMOTES = 3,
    WORDS = 4096, /* of a region */
    BLOCK = 32,   /* words of one operation */
    DEPTH = 16,
    OLD = 8, /* tokens that a remote worker remembers */
    GENERATIONS = 1 << 20,
    KEPT = 64, /* tokens that it keeps for long, */
    KEPT_MS = 4000,
    DEAD_MS = 2000, /* after which the keys of who died must be gone, agents that are stopped
                       meanwhile included */
    ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
    WAIT_MS = 30000,
};
#define FREE_WORD 0xfeeefeeeull /* generation 0 */

struct offer {
    uint64_t generation;
    char token[KEDGE_TOKEN_MAX];
};

/* Shared by all the processes. */
struct board {
    _Atomic uint64_t generations;
    _Atomic bool stop;
    _Atomic uint64_t regions, reused, watched, died, reads, writes, refused, reopened, past, dead;
    _Atomic bool free[GENERATIONS];        /* their owner was told so */
    _Atomic uint64_t dead_ns[GENERATIONS]; /* when their owner had died with them */
    struct {
        _Atomic uint32_t seq; /* odd while it is written */
        struct offer offer;
    } slot[OWNERS];
};

static uint64_t word(uint64_t generation, uint64_t low)
{
    return generation << 32 | (uint32_t)low;
}

/* ---- owners */

struct owner {
    struct kedge_session *s;
    struct kedge_mr *mr;
    volatile uint64_t *memory;
    uint64_t generation;
};

static void check_words(const volatile uint64_t *memory, uint64_t generation, const char *when)
{
    for (int i = 0; i < WORDS; i++)
        if (memory[i] >> 32 != generation)
            stress_fail("%s, word %d of region %llu is of region %llu (%016llx)", when, i,
                        (unsigned long long)generation, (unsigned long long)(memory[i] >> 32),
                        (unsigned long long)memory[i]);
}

static void publish(struct board *b, int number, const struct offer *offer)
{
    uint32_t seq = atomic_load(&b->slot[number].seq);
    atomic_store(&b->slot[number].seq, seq + 1);
    atomic_thread_fence(memory_order_seq_cst);
    b->slot[number].offer = *offer;
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&b->slot[number].seq, seq + 2);
}

/* False: the session has ended (its agent was stopped or killed, say). */
static bool offer_region(struct owner *o, struct board *b, int number, int more_access)
{
    struct offer offer;
    o->generation = atomic_fetch_add(&b->generations, 1) + 1;
    for (int i = 0; i < WORDS; i++)
        o->memory[i] = word(o->generation, (uint64_t)i);
    int status =
        kedge_reg_mr(o->s, (void *)(uintptr_t)o->memory, WORDS * 8, ACCESS | more_access, &o->mr);
    if (status == -ETIMEDOUT || status == -EPIPE)
        return false;
    if (status != 0 || kedge_mr_export(o->mr, offer.token, sizeof offer.token) != 0)
        stress_fail("registering: %s", kedge_last_error());
    offer.generation = o->generation;
    publish(b, number, &offer);
    atomic_fetch_add(&b->regions, 1);
    return true;
}

/* From here on the memory is the owner's alone. */
static void use_for_itself(struct owner *o, struct board *b, uint64_t *random)
{
    check_words(o->memory, o->generation, "after withdrawing");
    for (int i = 0; i < WORDS; i++)
        o->memory[i] = FREE_WORD;
    uint64_t end = kedge_clock_ns() + stress_random(random) % (20 * KEDGE_NS_PER_MS);
    do {
        usleep(500);
        check_words(o->memory, 0, "in memory that was free");
        atomic_fetch_add(&b->watched, 1);
    } while (kedge_clock_ns() < end);
}

/* One worker's life; the next one of the same tenant gets the same memory. */
static void own(const struct stress *s, struct board *b, int number, uint64_t random)
{
    const struct kedge_open_attr attr = {.socket = s->peer};
    struct owner o = {.mr = NULL};
    void *memory;
    uint32_t lkey;
    int status;
    while ((status = kedge_open(&attr, &o.s)) == -EAGAIN)
        usleep(1000);
    if (status != 0 || kedge_alloc(o.s, WORDS * 8, &memory, &lkey) != 0)
        stress_fail("an owner: %s", kedge_last_error());
    o.memory = memory;
    for (int i = 0; i < WORDS; i++)
        if (o.memory[i] != 0)
            stress_fail("a new worker's memory has %016llx in word %d",
                        (unsigned long long)o.memory[i], i);
    for (unsigned lives = (unsigned)(stress_random(&random) % 4); !atomic_load(&b->stop); lives--) {
        if (!offer_region(&o, b, number, s->fenced ? KEDGE_MR_FENCED : 0))
            break;
        usleep((useconds_t)(stress_random(&random) % 10000));
        if (lives == 0)
            break; /* with its region in use: its agent withdraws it */
        while ((status = kedge_dereg_mr(o.mr)) == -ETIMEDOUT)
            usleep(1000);
        if (status != 0)
            break;
        atomic_fetch_add(&b->reused, 1);
        atomic_store(&b->free[o.generation % GENERATIONS], true);
        use_for_itself(&o, b, &random);
    }
    if (stress_random(&random) % 2 == 0)
        kill(getpid(), SIGKILL);
    kedge_close(o.s);
}

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
    uint64_t now = kedge_clock_ns();
    if (now < r->keep_ns)
        return (struct offer){.generation = 0};
    struct offer *slot = &r->kept[r->keeps++ % KEPT], kept = *slot;
    *slot = r->old[stress_random(&r->random) % OLD];
    r->keep_ns = now + KEPT_MS * KEDGE_NS_PER_MS / KEPT;
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
        uint64_t i = stress_random(&r->random) % OWNERS;
        uint32_t seq = atomic_load(&r->b->slot[i].seq);
        atomic_thread_fence(memory_order_seq_cst);
        *known = r->b->slot[i].offer;
        atomic_thread_fence(memory_order_seq_cst);
        if (seq != 0 && seq % 2 == 0 && atomic_load(&r->b->slot[i].seq) == seq)
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
            local[k] = write ? word(generation, stress_random(&r->random)) : 0;
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
    uint64_t died = atomic_load(&r->b->dead_ns[generation % GENERATIONS]);
    bool dead = died != 0 && kedge_clock_ns() - died > DEAD_MS * KEDGE_NS_PER_MS;
    atomic_fetch_add(&r->b->dead, dead);
    return dead || atomic_load(&r->b->free[generation % GENERATIONS]);
}

/* gone: it was so already before the first post. 0, or the session has ended. */
static int collect(struct remote *r, uint64_t generation, bool gone)
{
    struct ibv_wc wc[DEPTH];
    for (int left = 2 * DEPTH; left > 0;) {
        int n = kedge_poll(r->s, DEPTH, wc);
        if (n == 0)
            n = kedge_wait(r->s, WAIT_MS) == 0 ? -ETIMEDOUT : 0;
        if (n == -ETIMEDOUT)
            stress_fail("no completion for %d s", WAIT_MS / 1000);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS) {
                atomic_fetch_add(&r->b->refused, 1);
                atomic_fetch_add(&r->b->past, gone);
            } else if (gone) {
                stress_fail("an operation on region %llu succeeded after its owner was told that "
                            "it is free, or had been dead for long",
                            (unsigned long long)generation);
            } else if (wc[i].wr_id >= DEPTH) {
                check_read(r, wc[i].wr_id, generation);
                atomic_fetch_add(&r->b->reads, 1);
            } else {
                atomic_fetch_add(&r->b->writes, 1);
            }
        }
        left -= n;
    }
    return 0;
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
            uint64_t refused = atomic_load(&b->refused);
            bool gone = is_gone(&r, offer.generation);
            status = post(&r, q, &to, offer.generation);
            if (status == 0)
                status = collect(&r, offer.generation, gone);
            if (atomic_load(&b->refused) != refused) /* perhaps ours: the queue pair is in error */
                break;
        }
        if (status != 0)
            reopen(&r);
        else
            kedge_vqp_destroy(q);
    }
    kedge_close(r.s);
}

/* ---- all of them */

static void be(const struct stress *s, void *board, int number, uint64_t random)
{
    struct board *b = board;
    if (number < OWNERS)
        own(s, b, number, random);
    else
        use_others(s, b, random);
}

static bool has_seen_all(const struct board *b)
{
    return b->past > 0 && b->dead > 0 && b->reused > 0 && b->watched > 0 && b->reads > 0 &&
           b->writes > 0 && b->refused > 0;
}

void stress_leases(struct stress *s)
{
    pid_t pid[OWNERS + REMOTES];
    struct board *b = stress_share(sizeof *b);
    for (int i = 0; i < OWNERS + REMOTES; i++)
        pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
    for (int left = OWNERS + REMOTES; left > 0;) {
        int status, i = 0;
        pid_t over = waitpid(-1, &status, WNOHANG);
        if (stress_over_when(s, has_seen_all(b)))
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
        if (i < OWNERS) /* what it took back itself, it has marked */
            atomic_store(&b->dead_ns[b->slot[i].offer.generation % GENERATIONS], kedge_clock_ns());
        if (atomic_load(&b->stop))
            left--;
        else
            pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
    }
    printf("leases: %llu regions, %llu withdrawn and used again, %llu looks at free memory, %llu "
           "owners killed, %llu READs and %llu WRITEs right, %llu refused (%llu of them were "
           "posted when the region was gone), %llu times keys of owners that were long dead, %llu "
           "sessions\n",
           (unsigned long long)b->regions, (unsigned long long)b->reused,
           (unsigned long long)b->watched, (unsigned long long)b->died,
           (unsigned long long)b->reads, (unsigned long long)b->writes,
           (unsigned long long)b->refused, (unsigned long long)b->past, (unsigned long long)b->dead,
           (unsigned long long)b->reopened);
    if (!has_seen_all(b))
        stress_fail("something never happened");
}
