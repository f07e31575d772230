/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of workers that goes on: one exports a region through the peer's agent, the other works on
 * it through this one. When either session ends, or the connection fails, it begins anew. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "stress.h"

enum { BYTES = 4096, WAIT_MS = 1000, ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

struct pair {
    struct kedge_session *owner, *user;
    struct kedge_mr *mr;
    uint64_t *region, *local;
    uint32_t lkey;
    struct kedge_remote to;
    struct kedge_vqp *q;
    uint64_t done, begun_anew, failed;
};

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
    (void)sig;
    stopped = 1;
}

static void end(struct pair *p)
{
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

/* One operation on all of the region. 0, or why it failed. */
static int operate(struct pair *p, enum ibv_wr_opcode opcode, const void *at)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = BYTES, .lkey = p->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = p->to.addr, .rkey = p->to.rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int n, status = kedge_post_send(p->q, &wr, &bad);
    if (status != 0)
        return status;
    while ((n = kedge_poll(p->user, 1, &wc)) == 0)
        if ((n = kedge_wait(p->user, WAIT_MS)) < 0 || stopped)
            break;
    return n < 0 ? n : n == 0 ? -ETIMEDOUT : wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

static int one_round(struct pair *p, uint64_t number)
{
    uint64_t *there = p->local, *back = p->local + BYTES / 8;
    for (int i = 0; i < BYTES / 8; i++)
        there[i] = number * 0x9e3779b97f4a7c15ull + (uint64_t)i;
    int status = operate(p, IBV_WR_RDMA_WRITE, there);
    if (status == 0)
        status = operate(p, IBV_WR_RDMA_READ, back);
    if (status == 0)
        status = kedge_session_status(p->owner);
    if (status == 0 && (memcmp(there, back, BYTES) != 0 || memcmp(there, p->region, BYTES) != 0))
        stress_fail("round %llu: other bytes than were written", (unsigned long long)number);
    return status;
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
    for (uint64_t number = 1; !stopped && !stress_over(s); number++) {
        if (p.owner == NULL && begin(&p, s) != 0) {
            usleep(2000);
            continue;
        }
        if (one_round(&p, number) == 0) {
            p.done++;
        } else {
            p.failed++;
            end(&p);
        }
        if (number % 32 == 0 || p.owner == NULL)
            say(&p, fd);
        if (number % 256 == 0)
            usleep(500); /* others want the processors too */
    }
    say(&p, fd);
    end(&p);
    printf("recover: %llu rounds right, began %llu times, %llu failures\n",
           (unsigned long long)p.done, (unsigned long long)p.begun_anew,
           (unsigned long long)p.failed);
    if (p.done == 0)
        stress_fail("nothing was ever done");
}
