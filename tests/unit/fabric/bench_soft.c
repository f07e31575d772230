/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation of the soft provider costs on one core. Prints; judges nothing.
 *
 *   bench_soft [process]      "process": the target is another process, which sleeps */
#include "bed_qp.h"

enum { ROUNDS = 1 << 20, BATCH = 64 };

struct subject {
    const char *name;
    struct bed_node *node;
    struct fab_qp *qp;
    struct bed_card to;
    struct fab_ah *ah;
};

static void report(const char *name, const char *what, uint64_t start, uint64_t ops)
{
    printf("%-4s %-28s %7.1f ns/op\n", name, what, (double)(base_clock_ns() - start) / (double)ops);
}

static void one_by_one(const struct subject *s, enum ibv_wr_opcode opcode, uint32_t length,
                       const char *what)
{
    struct bed_wr b;
    struct ibv_wc wc;
    bed_fill(&b, s->node, &s->to, s->ah, opcode, 4096, 64, length);
    uint64_t start = base_clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        bed_post(s->qp, &b.wr);
        while (fab_poll(s->node->cq, 1, &wc) == 0)
            ;
    }
    report(s->name, what, start, ROUNDS);
}

static void batches(const struct subject *s, bool all_signalled, const char *what)
{
    static struct bed_wr b[BATCH];
    struct ibv_wc wc[BATCH];
    for (int i = 0; i < BATCH; i++) {
        bed_fill(&b[i], s->node, &s->to, s->ah, IBV_WR_RDMA_READ, 4096 + 64 * (uint64_t)i,
                 8192 + 64 * (uint64_t)i, 8);
        b[i].wr.next = i + 1 < BATCH ? &b[i + 1].wr : NULL;
        if (!all_signalled && i + 1 < BATCH)
            b[i].wr.send_flags = 0;
    }
    uint64_t start = base_clock_ns();
    for (int i = 0; i < ROUNDS / BATCH; i++) {
        bed_post(s->qp, &b[0].wr);
        for (int left = all_signalled ? BATCH : 1; left > 0;)
            left -= fab_poll(s->node->cq, BATCH, wc);
    }
    report(s->name, what, start, ROUNDS);
}

static void idle_poll(const struct subject *s)
{
    struct ibv_wc wc;
    uint64_t start = base_clock_ns();
    for (int i = 0; i < ROUNDS; i++)
        (void)fab_poll(s->node->cq, 1, &wc);
    report(s->name, "idle poll", start, ROUNDS);
}

static void measure(const struct subject *s)
{
    for (int warm = 0; warm < 2; warm++) {
        if (warm == 1)
            printf("--\n");
        one_by_one(s, IBV_WR_RDMA_READ, 8, "READ 8, depth 1");
        one_by_one(s, IBV_WR_RDMA_READ, 64, "READ 64, depth 1");
        one_by_one(s, IBV_WR_RDMA_READ, 1024, "READ 1024, depth 1");
        one_by_one(s, IBV_WR_RDMA_WRITE, 8, "WRITE 8, depth 1");
        one_by_one(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, "FETCH_AND_ADD, depth 1");
        batches(s, true, "READ 8, 64 signalled");
        batches(s, false, "READ 8, 64, last signalled");
        idle_poll(s);
    }
}

/* The peer, in this process or in a child that does nothing but wait for the end of the pipe. */
static struct bed_card start_peer(const char *dir, bool process, struct bed_node *peer, int *keep)
{
    struct bed_card card;
    int out[2], in[2];
    if (!process) {
        bed_open(peer, dir);
        return bed_card(peer, NULL);
    }
    BASE_ASSERT(pipe(out) == 0 && pipe(in) == 0);
    if (fork() == 0) {
        close(in[1]);
        bed_open(peer, dir);
        card = bed_card(peer, NULL);
        bed_write_full(out[1], &card, sizeof card);
        (void)!read(in[0], &card, 1);
        _exit(0);
    }
    bed_read_full(out[0], &card, sizeof card);
    *keep = in[1];
    return card;
}

int main(int argc, char **argv)
{
    char dir[64];
    struct bed_node node, peer;
    int keep = -1;
    bool process = argc > 1 && strcmp(argv[1], "process") == 0;
    bed_dir_make(dir);
    struct bed_card card = start_peer(dir, process, &peer, &keep);
    bed_open(&node, dir);
    struct subject dci = {.name = "DCI",
                          .node = &node,
                          .qp = bed_qp(&node, FAB_QP_DCI, bed_patient),
                          .to = card,
                          .ah = bed_ah(&node, card.gid)};
    measure(&dci);
    if (!process) {
        struct fab_qp *pair[2];
        bed_rc_pair(&node, &peer, bed_patient, pair);
        struct subject rc = {.name = "RC", .node = &node, .qp = pair[0], .to = card};
        measure(&rc);
    }
    bed_dir_remove(dir);
    return 0;
}
