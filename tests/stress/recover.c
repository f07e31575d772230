/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of workers that goes on: one exports a region through the peer's agent, the other works on
 * it through this one. When the connection fails it connects again, when either session has ended
 * it begins anew; what it had exported before must be refused from then on. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "stress.h"

enum {
    BYTES = 4096,
    WAIT_MS = 1000,
    PATIENCE_MS = 30000,
    PAST = 16,
    PAST_TRIES = 4, /* of each, as a session may guess so many wrong keys */
    /* Before the first try and between two: its owner may have left without a word. */
    PAST_MS = 2000,
    ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

/* An export of before: whatever restarted since then, it is refused. */
struct past {
    struct kedge_remote to;
    uint64_t since_ns, next_ns; /* when it ended, when it is tried next */
    int tries;                  /* that are left */
};

struct pair {
    struct kedge_session *owner, *user;
    struct kedge_mr *mr;
    uint64_t *region, *local;
    uint32_t lkey;
    struct kedge_remote to;
    struct kedge_vqp *q, *past_q;
    uint64_t done, begun_anew, failed, refused;
    char why[320]; /* the last request that failed */
    struct past past[PAST];
};

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
    (void)sig;
    stopped = 1;
}

static void end(struct pair *p)
{
    if (p->owner != NULL && p->user != NULL && p->to.rkey != 0) {
        struct past *oldest = &p->past[0];
        for (int i = 0; i < PAST; i++)
            if (p->past[i].since_ns < oldest->since_ns)
                oldest = &p->past[i];
        uint64_t now = base_clock_ns();
        *oldest = (struct past){.to = p->to,
                                .since_ns = now,
                                .next_ns = now + PAST_MS * BASE_NS_PER_MS,
                                .tries = PAST_TRIES};
    }
    p->to.rkey = 0;
    kedge_close(p->owner);
    kedge_close(p->user);
    p->owner = p->user = NULL;
}

static int begin(struct pair *p, const struct stress *s)
{
    const struct kedge_open_attr here = {.socket = s->socket}, there = {.socket = s->peer};
    char token[KEDGE_TOKEN_MAX];
    uint32_t unused;
    void *region, *local;
    int status = kedge_open(&there, &p->owner);
    if (status == 0)
        status = kedge_open(&here, &p->user);
    if (status == 0)
        status = kedge_alloc(p->owner, BYTES, &region, &unused);
    if (status == 0)
        status = kedge_reg_mr(p->owner, region, BYTES, ACCESS, &p->mr);
    if (status == 0)
        status = kedge_mr_export(p->mr, token, sizeof token);
    if (status == 0)
        status = kedge_import(p->user, token, &p->to);
    if (status == 0)
        status = kedge_alloc(p->user, 2 * BYTES, &local, &p->lkey);
    if (status == 0)
        status = kedge_vqp_create(p->user, NULL, &p->q);
    if (status == 0)
        status = kedge_vqp_create(p->user, NULL, &p->past_q);
    if (status == 0)
        status = kedge_connect(p->q, p->to.gid);
    if (status != 0) {
        end(p);
        return status;
    }
    p->region = region;
    p->local = local;
    p->begun_anew++;
    return 0;
}

/* One operation on all of a region. 0, or why it failed. */
static int operate(struct pair *p, struct kedge_vqp *q, const struct kedge_remote *to,
                   enum ibv_wr_opcode opcode, const void *at)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = BYTES, .lkey = p->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = to->addr, .rkey = to->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int n, status = kedge_post_send(q, &wr, &bad);
    if (status != 0)
        return status;
    uint64_t end = base_clock_ns() + PATIENCE_MS * BASE_NS_PER_MS;
    while ((n = kedge_poll(p->user, 1, &wc)) == 0) {
        (void)kedge_wait(p->user, WAIT_MS); /* what it has to say, the next poll says too */
        if (base_clock_ns() > end)
            stress_fail("a request did not complete within %d s", PATIENCE_MS / 1000);
    }
    if (n < 0 || wc.status == IBV_WC_SUCCESS)
        return n < 0 ? n : 0;
    (void)snprintf(p->why, sizeof p->why, "%s: %s", kedge_wc_status_str(wc.status),
                   kedge_reason_str(wc.vendor_err));
    return -EIO;
}

static int one_round(struct pair *p, uint64_t number)
{
    uint64_t *there = p->local, *back = p->local + BYTES / 8;
    for (int i = 0; i < BYTES / 8; i++)
        there[i] = number * 0x9e3779b97f4a7c15ull + (uint64_t)i;
    int status = operate(p, p->q, &p->to, IBV_WR_RDMA_WRITE, there);
    if (status == 0)
        status = operate(p, p->q, &p->to, IBV_WR_RDMA_READ, back);
    if (status == 0)
        status = kedge_session_status(p->owner);
    if (status == 0 && (memcmp(there, back, BYTES) != 0 || memcmp(there, p->region, BYTES) != 0))
        stress_fail("round %llu: other bytes than were written", (unsigned long long)number);
    return status;
}

/* Their nodes have restarted, or their workers left: other bytes may be there by now. */
static void try_past(struct pair *p)
{
    uint64_t now = base_clock_ns();
    for (int i = 0; i < PAST; i++) {
        struct past *t = &p->past[i];
        if (t->tries == 0 || now < t->next_ns)
            continue;
        t->tries--;
        t->next_ns = now + PAST_MS * BASE_NS_PER_MS;
        if (kedge_connect(p->past_q, t->to.gid) == 0 &&
            operate(p, p->past_q, &t->to, IBV_WR_RDMA_READ, p->local) == 0)
            stress_fail("a READ under a key of before was served");
        if (kedge_session_status(p->user) != 0)
            return;
        p->refused++;
    }
}

/* Whether a key of before was not tried yet, however few rounds a slow machine does meanwhile. */
static bool past_untried(const struct pair *p)
{
    for (int i = 0; i < PAST; i++)
        if (p->past[i].tries == PAST_TRIES)
            return true;
    return false;
}

/* What is left after a failure goes on. */
static void mend(struct pair *p)
{
    p->failed++;
    if (kedge_session_status(p->owner) != 0 || kedge_session_status(p->user) != 0)
        end(p);
    else
        (void)kedge_connect(p->q, p->to.gid); /* the next round tells whether that helped */
    usleep(1000);
}

static void say(const struct pair *p, int fd)
{
    char line[96];
    int n = snprintf(line, sizeof line, "%020llu %020llu\n", (unsigned long long)p->done,
                     (unsigned long long)p->begun_anew);
    if (fd >= 0 && pwrite(fd, line, (size_t)n, 0) != n)
        stress_fail("progress: %s", strerror(errno));
}

void stress_recover(struct stress *s)
{
    struct pair p = {.done = 0};
    int fd = s->progress != NULL ? open(s->progress, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    signal(SIGTERM, on_term);
    for (uint64_t number = 1; (!stopped || past_untried(&p)) && !stress_over(s); number++) {
        if (p.owner == NULL && begin(&p, s) != 0) {
            usleep(2000);
            continue;
        }
        if (one_round(&p, number) == 0) {
            p.done++;
        } else {
            mend(&p);
        }
        if (number % 32 == 0 || p.owner == NULL)
            say(&p, fd);
        if (number % 16 == 0 && p.owner != NULL)
            try_past(&p);
        if (number % 256 == 0)
            usleep(500); /* others want the processors too */
    }
    say(&p, fd);
    end(&p);
    printf("recover: %llu rounds right, began %llu times, %llu failures, %llu keys of before "
           "refused\n",
           (unsigned long long)p.done, (unsigned long long)p.begun_anew,
           (unsigned long long)p.failed, (unsigned long long)p.refused);
    if (p.why[0] != '\0')
        printf("recover: the last request that failed: %s\n", p.why);
    if (p.done == 0)
        stress_fail("nothing was ever done");
}
