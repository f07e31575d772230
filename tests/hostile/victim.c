/* SPDX-License-Identifier: Apache-2.0 */
/* The honest worker: a region full of the secret, whose token it prints; and WRITEs and READs of
 * bytes that say which operation they belong to, every one verified. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kedge.h>

#include "base/clock.h"
#include "hostile.h"

enum {
    REGION = 65536,
    BLOCK = 256,
    DEPTH = 16,
    WAIT_MS = 60000,
    ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

struct honest {
    struct kedge_session *owner, *s; /* of the region, on the one node; of the work, on the other */
    uint8_t *region, *memory;
    uint32_t lkey;
    struct kedge_mr *mr;
    struct kedge_vqp *q;
    struct kedge_remote remote;
};

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
    (void)sig;
    stopped = 1;
}

static void must(int status, const char *what)
{
    if (status != 0)
        hostile_fail("victim: %s: %s", what, kedge_last_error());
}

static void prepare(struct hostile *h, struct honest *v)
{
    const struct kedge_open_attr here = {.socket = h->socket};
    const struct kedge_open_attr there = {.socket = h->peer != NULL ? h->peer : h->socket};
    char token[KEDGE_TOKEN_MAX];
    uint32_t unused;
    void *memory;
    must(kedge_open(&there, &v->owner), "attaching");
    must(kedge_open(&here, &v->s), "attaching");
    must(kedge_alloc(v->owner, REGION, &memory, &unused), "memory");
    v->region = memory;
    for (size_t i = 0; i < REGION; i += 32)
        memcpy(v->region + i, HOSTILE_SECRET, 32);
    must(kedge_reg_mr(v->owner, v->region, REGION, ACCESS, &v->mr), "registering");
    must(kedge_mr_export(v->mr, token, sizeof token), "exporting");
    must(kedge_import(v->s, token, &v->remote), "importing");
    must(kedge_alloc(v->s, REGION, &memory, &v->lkey), "memory");
    v->memory = memory;
    must(kedge_vqp_create(v->s, NULL, &v->q), "a queue pair");
    must(kedge_connect(v->q, v->remote.gid), "connecting");
    puts(token);
    fflush(stdout);
}

/* The bytes of operation n: the first half of the region is worked on, the other keeps the secret.
 */
static void stamp(uint8_t *block, uint64_t n)
{
    for (size_t i = 0; i < BLOCK; i += 8) {
        uint64_t word = n * 0x9e3779b97f4a7c15ull + i;
        memcpy(block + i, &word, 8);
    }
}

static void collect(struct honest *v, unsigned count)
{
    struct ibv_wc wc[DEPTH];
    while (count > 0) {
        int n = kedge_poll(v->s, (int)count, wc);
        if (n == 0) {
            n = kedge_wait(v->s, WAIT_MS);
            if (n == 0)
                hostile_fail("victim: no completion for %d s", WAIT_MS / 1000);
            if (n > 0)
                continue;
        }
        if (n < 0)
            hostile_fail("victim: %s", kedge_last_error());
        for (int i = 0; i < n; i++)
            if (wc[i].status != IBV_WC_SUCCESS)
                hostile_fail("victim: an operation failed with status %d: %s", wc[i].status,
                             kedge_reason_str(wc[i].vendor_err));
        count -= (unsigned)n;
    }
}

static void post_all(struct honest *v, enum ibv_wr_opcode opcode, size_t local)
{
    struct ibv_sge sge[DEPTH];
    struct ibv_send_wr wr[DEPTH], *bad;
    for (unsigned i = 0; i < DEPTH; i++) {
        sge[i] = (struct ibv_sge){
            .addr = (uintptr_t)v->memory + local + i * BLOCK, .length = BLOCK, .lkey = v->lkey};
        wr[i] = (struct ibv_send_wr){
            .wr_id = i,
            .next = i + 1 < DEPTH ? &wr[i + 1] : NULL,
            .opcode = opcode,
            .send_flags = IBV_SEND_SIGNALED,
            .sg_list = &sge[i],
            .num_sge = 1,
            .wr.rdma = {.remote_addr = v->remote.addr + i * BLOCK, .rkey = v->remote.rkey}};
    }
    must(kedge_post_send(v->q, wr, &bad), "posting");
    collect(v, DEPTH);
}

static void one_round(struct honest *v, uint64_t round)
{
    enum { THERE = 0, BACK = REGION / 2 };
    uint8_t expected[BLOCK];
    for (unsigned i = 0; i < DEPTH; i++)
        stamp(v->memory + THERE + i * BLOCK, round * DEPTH + i);
    post_all(v, IBV_WR_RDMA_WRITE, THERE);
    post_all(v, IBV_WR_RDMA_READ, BACK);
    for (unsigned i = 0; i < DEPTH; i++) {
        stamp(expected, round * DEPTH + i);
        if (memcmp(v->memory + BACK + i * BLOCK, expected, BLOCK) != 0 ||
            memcmp(v->region + i * BLOCK, expected, BLOCK) != 0)
            hostile_fail("victim: round %llu, block %u has other bytes than were written",
                         (unsigned long long)round, i);
    }
    for (size_t i = REGION / 2; i < REGION; i += 32)
        if (memcmp(v->region + i, HOSTILE_SECRET, 32) != 0)
            hostile_fail("victim: somebody wrote into the region at %zu", i);
}

static void say_progress(const struct hostile *h, int fd)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%020llu\n", (unsigned long long)h->did);
    if (fd >= 0 && pwrite(fd, line, (size_t)n, 0) != n)
        hostile_fail("victim: progress: %s", strerror(errno));
}

void victim(struct hostile *h)
{
    struct honest v = {.s = NULL};
    signal(SIGTERM, on_term);
    prepare(h, &v);
    int fd = h->progress != NULL ? open(h->progress, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    for (uint64_t round = 0; !stopped && !hostile_over(h); round++) {
        one_round(&v, round);
        h->did += 2 * DEPTH;
        if (round % 16 == 0)
            say_progress(h, fd);
        if (h->rest_us > 0 || round % 64 == 0) /* others want the processors too */
            usleep(h->rest_us > 0 ? (useconds_t)h->rest_us : 1000);
    }
    must(kedge_dereg_mr(v.mr), "withdrawing the region");
    kedge_close(v.s);
    kedge_close(v.owner);
}
