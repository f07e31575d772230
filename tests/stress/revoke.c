/* SPDX-License-Identifier: Apache-2.0 */
/* An operator who revokes leases, by force too, under remote readers and writers.
 *
 * Owners write the time into their regions without a pause, so that what a READ brings says when it
 * was executed: never after the operator was told that nobody reaches the region. Remote WRITEs are
 * watched for by the owners. Beside them somebody works on a region of the same node that is not
 * revoked, and the owners on it too, from memory that is being taken away from peers: they have no
 * failure at all. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "stress.h"

enum {
    OWNERS = 2,
    USERS = 3,
    REGIONS = 4, /* of an owner, in one arena */
    WORDS = 64,  /* of a region: 0 is the time, the others are written by peers */
    DEPTH = 16,
    PER_LIFE = 1024,
    LIVES = 1024,
    WAIT_MS = 30000,
    WATCH_MS = 5, /* memory that nobody reaches */
    ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

struct offer {
    uint64_t lease; /* index into board.revoked_ns; 0: none */
    struct kedge_remote to;
};

struct slot {
    _Atomic uint32_t seq; /* odd while it is written */
    struct offer offer;
};

/* Shared by all the processes. */
struct board {
    _Atomic bool stop, stop_steady;
    _Atomic uint64_t lives;
    _Atomic uint64_t reads, writes, refused, own, steady, deregistered, noticed, died, reopened;
    struct {
        _Atomic uint64_t pid_life; /* pid << 32 | number of its life */
        struct slot region[REGIONS];
    } owner[OWNERS];
    struct slot steady_region; /* lease 1: never revoked */
    /* Of a life and a number of its leases: when the operator was told. */
    _Atomic uint64_t revoked_ns[LIVES * PER_LIFE];
};

static void publish(struct slot *s, const struct offer *offer)
{
    uint32_t seq = atomic_load(&s->seq);
    atomic_store(&s->seq, seq + 1);
    atomic_thread_fence(memory_order_seq_cst);
    s->offer = *offer;
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&s->seq, seq + 2);
}

static bool look(struct slot *s, struct offer *out)
{
    uint32_t seq = atomic_load(&s->seq);
    atomic_thread_fence(memory_order_seq_cst);
    *out = s->offer;
    atomic_thread_fence(memory_order_seq_cst);
    return seq != 0 && seq % 2 == 0 && atomic_load(&s->seq) == seq && out->lease != 0;
}

/* ---- requests */

struct user {
    struct board *b;
    struct kedge_session *s;
    struct kedge_vqp *q;
    uint64_t *local;
    uint32_t lkey;
    uint64_t random;
    const char *why; /* of the last failure */
};

/* A list of requests for 8 bytes each, waited for: the first status that is not 0, or -errno: the
 * session has ended. */
static int do_list(struct user *u, enum ibv_wr_opcode opcode, uint64_t *local, uint64_t remote,
                   uint32_t rkey, int count)
{
    struct ibv_sge sge = {.addr = (uintptr_t)local, .length = 8, .lkey = u->lkey};
    struct ibv_send_wr wr[DEPTH], *bad;
    struct ibv_wc wc;
    int status = 0;
    for (int i = 0; i < count; i++)
        wr[i] = (struct ibv_send_wr){.next = i + 1 < count ? &wr[i + 1] : NULL,
                                     .opcode = opcode,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .sg_list = &sge,
                                     .num_sge = 1,
                                     .wr.rdma = {.remote_addr = remote, .rkey = rkey}};
    int n = kedge_post_send(u->q, wr, &bad);
    for (int left = count; left > 0 && n >= 0; left -= n) {
        while ((n = kedge_poll(u->s, 1, &wc)) == 0)
            if (kedge_wait(u->s, WAIT_MS) == 0)
                stress_fail("no completion for %d s", WAIT_MS / 1000);
        if (n > 0 && status == 0 && wc.status != IBV_WC_SUCCESS) {
            status = (int)wc.status;
            u->why = kedge_reason_str(wc.vendor_err);
        }
    }
    if (n < 0)
        u->why = kedge_last_error();
    return n < 0 ? n : status;
}

static int do_one(struct user *u, enum ibv_wr_opcode opcode, uint64_t *local, uint64_t remote,
                  uint32_t rkey)
{
    return do_list(u, opcode, local, remote, rkey, 1);
}

static bool connect_to(struct user *u, const uint8_t gid[16])
{
    if (u->q == NULL && kedge_vqp_create(u->s, NULL, &u->q) != 0)
        return false;
    return kedge_connect(u->q, gid) == 0;
}

static void open_at(struct user *u, const char *socket, size_t words)
{
    const struct kedge_open_attr attr = {.socket = socket};
    void *memory;
    int status;
    u->q = NULL;
    kedge_close(u->s);
    while ((status = kedge_open(&attr, &u->s)) == -EAGAIN || status == -ETIMEDOUT)
        usleep(1000);
    if (status != 0 || kedge_alloc(u->s, words * 8, &memory, &u->lkey) != 0)
        stress_fail("a worker: %s", kedge_last_error());
    u->local = memory;
}

/* What must never fail: a READ. A WRITE may end as one that perhaps was carried out, behind
 * another's request to what was revoked by force; the report says so. */
static void work_steadily(struct user *u, const char *who, bool write)
{
    struct offer steady;
    if (!look(&u->b->steady_region, &steady))
        return;
    if (u->q == NULL && !connect_to(u, steady.to.gid))
        stress_fail("%s cannot connect: %s", who, kedge_last_error());
    const uint64_t at = steady.to.addr + 8 + 8 * (stress_random(&u->random) % (WORDS - 1));
    int status = do_list(u, write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, u->local, at,
                         steady.to.rkey, DEPTH);
    if (write && status == IBV_WC_WR_FLUSH_ERR) {
        if (!connect_to(u, steady.to.gid))
            stress_fail("%s cannot connect: %s", who, kedge_last_error());
        return;
    }
    if (status != 0)
        stress_fail("%s, whose region nobody revoked, had status %d: %s", who, status, u->why);
}

/* ---- owners */

struct owned {
    struct kedge_mr *mr;
    volatile uint64_t *words;
    uint64_t lease;
    uint64_t told_ns;     /* when it was seen that the operator was told */
    uint64_t kept[WORDS]; /* and what was in it then */
};

struct owner {
    struct user u; /* its own requests, from the same arena */
    uint64_t life, number;
    bool gives_back; /* by itself now and then, and waits for the period */
    struct owned region[REGIONS];
};

static bool offer_region(struct owner *o, struct board *b, int me, int i)
{
    struct owned *r = &o->region[i];
    struct kedge_session_info info;
    int status =
        kedge_reg_mr(o->u.s, (void *)(uintptr_t)r->words, (size_t)WORDS * 8, ACCESS, &r->mr);
    if (status != 0)
        return false;
    r->lease = o->life * PER_LIFE + ++o->number;
    r->told_ns = 0;
    struct offer offer = {.lease = r->lease,
                          .to = {.addr = (uintptr_t)r->words,
                                 .length = (uint64_t)WORDS * 8,
                                 .rkey = kedge_mr_rkey(r->mr)}};
    kedge_session_query(o->u.s, &info);
    memcpy(offer.to.gid, info.gid, 16);
    publish(me < 0 ? &b->steady_region : &b->owner[me].region[i], &offer);
    return true;
}

/* No WRITE is executed from then on. */
static void watch_words(struct owned *r)
{
    for (int i = 1; i < WORDS; i++)
        if (r->words[i] != r->kept[i])
            stress_fail("word %d of lease %llu was written after the operator was told that nobody "
                        "reaches it",
                        i, (unsigned long long)r->lease);
}

/* False: the session has ended. */
static bool give_back(struct owner *o, struct board *b, int me, int i)
{
    struct owned *r = &o->region[i];
    int status;
    while ((status = kedge_dereg_mr(r->mr)) == -ETIMEDOUT)
        usleep(1000);
    if (status == -EPIPE)
        return false;
    if (status != 0)
        stress_fail("deregistering: %s", kedge_last_error());
    atomic_fetch_add(&b->deregistered, 1);
    if (r->told_ns != 0)
        watch_words(r);
    return offer_region(o, b, me, i);
}

static bool look_after(struct owner *o, struct board *b, int me, int i)
{
    struct owned *r = &o->region[i];
    char token[KEDGE_TOKEN_MAX];
    const uint64_t now = base_clock_ns();
    r->words[0] = now;
    if (r->told_ns != 0) {
        watch_words(r);
        return now - r->told_ns < WATCH_MS * BASE_NS_PER_MS || give_back(o, b, me, i);
    }
    if (atomic_load(&b->revoked_ns[r->lease]) != 0) {
        for (int k = 0; k < WORDS; k++)
            r->kept[k] = r->words[k];
        r->told_ns = now;
        int status = kedge_mr_status(r->mr);
        if (status == -EPIPE)
            return false;
        if (status != -EACCES || kedge_mr_export(r->mr, token, sizeof token) != -EACCES)
            stress_fail("the owner of a revoked lease hears %d: %s", status, kedge_last_error());
        atomic_fetch_add(&b->noticed, 1);
    } else if (o->gives_back && stress_random(&o->u.random) % 20000 == 0) {
        return give_back(o, b, me, i); /* whatever the operator is about */
    }
    return true;
}

static void own(const struct stress *s, struct board *b, int me, uint64_t random)
{
    struct owner o = {.u = {.b = b, .random = random}, .life = atomic_fetch_add(&b->lives, 1)};
    o.gives_back = !s->forced;
    uint64_t end = base_clock_ns() + (500 + stress_random(&o.u.random) % 6000) * BASE_NS_PER_MS;
    if (o.life >= LIVES)
        stress_fail("too many lives");
    atomic_store(&b->owner[me].pid_life, (uint64_t)getpid() << 32 | o.life);
    open_at(&o.u, s->peer, (size_t)(REGIONS + 1) * WORDS);
    for (int i = 0; i < REGIONS; i++) {
        o.region[i].words = o.u.local + (size_t)(i + 1) * WORDS;
        if (!offer_region(&o, b, me, i))
            stress_fail("registering: %s", kedge_last_error());
    }
    while (!atomic_load(&b->stop) && base_clock_ns() < end && o.number < PER_LIFE - REGIONS - 1) {
        for (int i = 0; i < REGIONS; i++)
            if (!look_after(&o, b, me, i))
                stress_fail("an owner's session has ended: %s", kedge_last_error());
        work_steadily(&o.u, "an owner", false);
        atomic_fetch_add(&b->own, 1);
    }
    if (stress_random(&o.u.random) % 2 == 0)
        kill(getpid(), SIGKILL);
    kedge_close(o.u.s);
}

/* Whose one region nobody revokes. */
static void own_steadily(const struct stress *s, struct board *b)
{
    struct owner o = {.u = {.b = b, .random = 1}};
    open_at(&o.u, s->peer, WORDS);
    o.region[0].words = o.u.local;
    if (!offer_region(&o, b, -1, 0))
        stress_fail("registering: %s", kedge_last_error());
    while (!atomic_load(&b->stop_steady)) {
        if (kedge_mr_status(o.region[0].mr) != 0)
            stress_fail("a lease that nobody revoked is revoked: %s", kedge_last_error());
        usleep(1000);
    }
    kedge_close(o.u.s);
}

/* ---- remote workers */

/* Its status; a refusal is what was to come. */
static bool went(struct user *u, int status)
{
    if (status == IBV_WC_SUCCESS)
        return true;
    if (status > 0 && status != IBV_WC_REM_ACCESS_ERR && status != IBV_WC_WR_FLUSH_ERR)
        stress_fail("a request to a region that was revoked had status %d", status);
    atomic_fetch_add(&u->b->refused, 1);
    return false;
}

static bool read_and_write(struct user *u, const struct offer *offer)
{
    const uint64_t at = offer->to.addr + 8 + 8 * (stress_random(&u->random) % (WORDS - 1));
    u->local[1] = stress_random(&u->random);
    int status = do_one(u, IBV_WR_RDMA_WRITE, &u->local[1], at, offer->to.rkey);
    if (!went(u, status))
        return false;
    atomic_fetch_add(&u->b->writes, 1);
    u->local[0] = 0;
    status = do_one(u, IBV_WR_RDMA_READ, u->local, offer->to.addr, offer->to.rkey);
    if (!went(u, status))
        return false;
    const uint64_t told = atomic_load(&u->b->revoked_ns[offer->lease]);
    if (told != 0 && u->local[0] > told)
        stress_fail("a READ brought what was written %llu us after the operator was told that "
                    "nobody reaches lease %llu",
                    (unsigned long long)((u->local[0] - told) / 1000),
                    (unsigned long long)offer->lease);
    atomic_fetch_add(&u->b->reads, 1);
    return true;
}

static void use(const struct stress *s, struct board *b, uint64_t random)
{
    struct user u = {.b = b, .random = random};
    open_at(&u, s->socket, WORDS);
    while (!atomic_load(&b->stop)) {
        struct offer offer;
        if (!look(&b->owner[stress_random(&u.random) % OWNERS]
                       .region[stress_random(&u.random) % REGIONS],
                  &offer))
            continue;
        bool right = connect_to(&u, offer.to.gid);
        for (int i = 0; right && i < 1000 && !atomic_load(&b->stop); i++)
            right = read_and_write(&u, &offer);
        if (kedge_session_status(u.s) != 0) { /* too many wrong keys */
            open_at(&u, s->socket, WORDS);
            atomic_fetch_add(&b->reopened, 1);
        }
    }
    kedge_close(u.s);
}

static void use_steadily(const struct stress *s, struct board *b, uint64_t random)
{
    struct user u = {.b = b, .random = random};
    open_at(&u, s->socket, WORDS);
    while (!atomic_load(&b->stop)) {
        work_steadily(&u, "a worker beside", s->writes && stress_random(&u.random) % 2 == 0);
        atomic_fetch_add(&b->steady, 1);
    }
    kedge_close(u.s);
}

/* ---- the operator */

struct operator_counts {
    uint64_t revoked, forced, workers, leases, gone;
};

/* The worker's id, by its pid, as the JSON of `worker list` has it. False: it is not there. */
static bool find_worker(const struct stress *s, char *out, uint64_t pid, char id[64])
{
    char wanted[40];
    if (stress_ctl(s, out, (const char *const[STRESS_WORDS]){"-ojson", "worker", "list"}) != 0)
        stress_fail("rdmactl worker list: %s", out);
    snprintf(wanted, sizeof wanted, "\"pid\":%llu,", (unsigned long long)pid);
    const char *at = strstr(out, wanted), *begin = NULL;
    for (const char *next = out;
         at != NULL && (next = strstr(next, "\"id\":\"")) != NULL && next < at; next++)
        begin = next + 6;
    return begin != NULL && sscanf(begin, "%63[^\"]", id) == 1;
}

/* All that the answer names: nobody reaches them from before now on. */
static void mark(struct board *b, const char *answer, const char *worker, uint64_t life,
                 struct operator_counts *n)
{
    char prefix[80];
    const uint64_t now = base_clock_ns();
    snprintf(prefix, sizeof prefix, "{\"id\":\"%s-", worker);
    for (const char *at = answer; (at = strstr(at, prefix)) != NULL;) {
        at += strlen(prefix);
        uint64_t lease = life * PER_LIFE + strtoull(at, NULL, 10), none = 0;
        n->leases += atomic_compare_exchange_strong(&b->revoked_ns[lease], &none, now);
    }
}

static void revoke_something(struct stress *s, struct board *b, char *out,
                             struct operator_counts *n)
{
    const uint64_t owner = stress_random(&s->random) % OWNERS;
    const uint64_t pid_life = atomic_load(&b->owner[owner].pid_life);
    const bool force = s->forced || stress_random(&s->random) % 2 == 0;
    const bool all = stress_random(&s->random) % 8 == 0;
    char id[64], lease[100];
    struct offer offer;
    if (pid_life == 0 || !find_worker(s, out, pid_life >> 32, id))
        return;
    if (!look(&b->owner[owner].region[stress_random(&s->random) % REGIONS], &offer) ||
        offer.lease / PER_LIFE != (uint32_t)pid_life)
        return;
    snprintf(lease, sizeof lease, "%s%s-%llu", all ? "--worker=" : "", id,
             (unsigned long long)(offer.lease % PER_LIFE));
    if (all)
        *strrchr(lease, '-') = '\0';
    int code = stress_ctl(s, out,
                          (const char *const[STRESS_WORDS]){"-ojson", "lease", "revoke", lease,
                                                            force ? "--force" : NULL});
    if (code == 3 || code == 5) { /* it ended, or was deregistered, at that moment */
        n->gone++;
        return;
    }
    if (code != 0)
        stress_fail("rdmactl lease revoke %s%s: exit %d, %s", lease, force ? " --force" : "", code,
                    out);
    mark(b, out, id, (uint32_t)pid_life, n);
    n->revoked++;
    n->forced += force;
    n->workers += all;
}

/* ---- all of them */

enum { STEADY_OWNER = OWNERS, STEADY_USER, FIRST_USER, PROCESSES = FIRST_USER + USERS };

static void be(const struct stress *s, void *board, int number, uint64_t random)
{
    struct board *b = board;
    if (number < OWNERS)
        own(s, b, number, random);
    else if (number == STEADY_OWNER)
        own_steadily(s, b);
    else if (number == STEADY_USER)
        use_steadily(s, b, random);
    else
        use(s, b, random);
}

/* Those that ended; owners begin again. Returns how many run. */
static int reap(struct stress *s, struct board *b, pid_t pid[PROCESSES])
{
    int left = 0, status;
    for (int i = 0; i < PROCESSES; i++) {
        if (pid[i] == 0 || waitpid(pid[i], &status, WNOHANG) != pid[i]) {
            left += pid[i] != 0;
            continue;
        }
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && i < OWNERS;
        if (status != 0 && !killed)
            stress_fail("process %d ended with status %d", i, status);
        pid[i] = 0;
        atomic_fetch_add(&b->died, killed);
        if (!atomic_load(&b->stop) && i < OWNERS) {
            pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
            left++;
        }
    }
    return left;
}

static bool has_seen_all(const struct stress *s, const struct board *b,
                         const struct operator_counts *n)
{
    return n->forced > 0 && (s->forced || n->forced < n->revoked) && n->leases > 0 &&
           b->noticed > 0 && b->reads > 0 && b->writes > 0 && b->refused > 0 && b->own > 0 &&
           b->steady > 0;
}

static void report(const struct stress *s, const struct board *b, const struct operator_counts *n)
{
    printf("revoke: %llu revocations (%llu by force, %llu of all that a worker had) took %llu "
           "leases, %llu came too late; %llu owners noticed, %llu withdrawals, %llu owners killed; "
           "%llu READs and %llu WRITEs, %llu refused, %llu sessions more; untouched: %llu requests "
           "of the owners, %llu of a worker beside\n",
           (unsigned long long)n->revoked, (unsigned long long)n->forced,
           (unsigned long long)n->workers, (unsigned long long)n->leases,
           (unsigned long long)n->gone, (unsigned long long)b->noticed,
           (unsigned long long)b->deregistered, (unsigned long long)b->died,
           (unsigned long long)b->reads, (unsigned long long)b->writes,
           (unsigned long long)b->refused, (unsigned long long)b->reopened,
           (unsigned long long)b->own, (unsigned long long)b->steady);
    if (!has_seen_all(s, b, n))
        stress_fail("something never happened");
}

void stress_revoke(struct stress *s)
{
    pid_t pid[PROCESSES];
    struct operator_counts n = {.revoked = 0};
    char *out = malloc(STRESS_OUTPUT);
    struct board *b = stress_share(sizeof *b);
    if (out == NULL)
        stress_fail("no memory");
    atomic_store(&b->lives, 1); /* 0 is the steady one */
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = stress_spawn(s, b, i, stress_random(&s->random), be);
    while (!stress_over_when(s, has_seen_all(s, b, &n))) {
        revoke_something(s, b, out, &n);
        (void)reap(s, b, pid);
        usleep(10000);
    }
    atomic_store(&b->stop, true);
    while (reap(s, b, pid) > 1)
        usleep(1000);
    atomic_store(&b->stop_steady, true); /* last: the others work on its region */
    while (reap(s, b, pid) > 0)
        usleep(1000);
    report(s, b, &n);
    free(out);
}
