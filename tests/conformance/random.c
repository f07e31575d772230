/* SPDX-License-Identifier: Apache-2.0 */
/* A differential test: random lists of requests, carried out by the device and by a model that is
 * no more than two arrays of bytes. */
#include <arpa/inet.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"

enum {
    WINDOW = 2048, /* of b, that one-sided requests hit; small, so that they overlap */
    INBOX = 65536, /* of b, where receives lie: one slot each */
    SLOT = 512,    /* of a: each request of a list has its own */
    BATCH = 12,
    BATCHES = 150,
    SEEDS = 6,
};

/* 17 s, so that nothing is sent again because the machine was busy: on rxe a fenced READ or atomic
 * would hang then (deviations.c). Between queue pairs of one device nothing is lost. */
static const struct rc_options patient = {.timeout = 22};

struct model {
    struct base_prng prng;
    bool apart; /* of requests of one list to the same bytes the device keeps no order */
    uint8_t window[WINDOW];
    uint8_t local[BATCH * SLOT];
    uint8_t inbox[SLOT];
};

/* What one request of the list is, for the comparison afterwards. */
struct step {
    struct ibv_sge sge[4];
    bool receives; /* consumes a receive of b */
    uint32_t length;
    bool bad;
};

static uint64_t below(struct model *m, uint64_t bound)
{
    return base_prng_below(&m->prng, bound);
}

/* Where in the window a request of so many bytes goes. */
static uint64_t place(struct model *m, int slot, uint64_t length)
{
    const uint64_t part = WINDOW / BATCH / 8 * 8;
    return m->apart ? (uint64_t)slot * part + below(m, part - length + 1)
                    : below(m, WINDOW - length + 1);
}

static uint32_t gather(const struct model *m, const struct link *l, const struct fab_wr *wr,
                       uint8_t *out)
{
    uint32_t n = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(out + n, m->local + (wr->sg_list[i].addr - (uintptr_t)l->a->bytes),
               wr->sg_list[i].length);
        n += wr->sg_list[i].length;
    }
    return n;
}

/* The model carries the request out. */
static void apply(struct model *m, const struct link *l, const struct fab_wr *wr, struct step *s)
{
    uint64_t at = wr->remote_addr - l->b->mr->addr, word, before;
    uint8_t bytes[SLOT];
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        s->length = gather(m, l, wr, bytes);
        memcpy(m->window + at, bytes, s->length);
        break;
    case IBV_WR_RDMA_READ:
        for (int i = 0; i < wr->num_sge; i++) {
            memcpy(m->local + (wr->sg_list[i].addr - (uintptr_t)l->a->bytes), m->window + at,
                   wr->sg_list[i].length);
            at += wr->sg_list[i].length;
        }
        break;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
        s->length = gather(m, l, wr, m->inbox);
        break;
    default: /* atomics */
        memcpy(&before, m->window + at, 8);
        word = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? before + wr->compare_add
               : before == wr->compare_add               ? wr->swap
                                                         : before;
        memcpy(m->window + at, &word, 8);
        memcpy(m->local + (wr->sg_list[0].addr - (uintptr_t)l->a->bytes), &before, 8);
        break;
    }
}

/* Random SGEs within the slot, one after the other with gaps. Returns the bytes. */
static uint32_t random_sges(struct model *m, const struct link *l, int slot, struct step *s,
                            struct fab_wr *wr, uint32_t most)
{
    uint32_t most_sge = l->qp->cap.send_sge < 4 ? l->qp->cap.send_sge : 4;
    uint32_t at = 0, total = 0;
    wr->sg_list = s->sge;
    wr->num_sge = (int)below(m, most_sge + 1);
    for (int i = 0; i < wr->num_sge; i++) {
        uint32_t length = (uint32_t)below(m, most / 4 + 1);
        at += (uint32_t)below(m, 16);
        s->sge[i] = sge_of(l->a, (uint64_t)slot * SLOT + at, length);
        at += length;
        total += length;
    }
    return total;
}

static struct fab_wr random_wr(struct model *m, const struct link *l, int slot, struct step *s)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_READ,     IBV_WR_RDMA_READ,           IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    enum ibv_wr_opcode opcode = opcodes[below(m, sizeof opcodes / sizeof opcodes[0])];
    struct fab_wr wr = make_wr(l, (uint64_t)slot, opcode, NULL, 0);
    *s = (struct step){.receives = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
                                   opcode == IBV_WR_RDMA_WRITE_WITH_IMM};
    wr.imm_data = htonl((uint32_t)slot);
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        uint64_t at = place(m, slot, 8) & ~(uint64_t)7;
        s->sge[0] = sge_of(l->a, (uint64_t)slot * SLOT + below(m, 8) * 8, 8);
        wr.sg_list = s->sge;
        wr.num_sge = 1;
        wr.remote_addr = l->b->mr->addr + at;
        memcpy(&wr.compare_add, m->window + at, 8); /* often matches */
        wr.swap = base_prng_next(&m->prng);
        return wr;
    }
    bool is_inline = opcode != IBV_WR_RDMA_READ && below(m, 4) == 0;
    uint32_t most = is_inline ? l->qp->cap.inline_bytes : 400;
    most = m->apart && most > 128 ? 128 : most;
    uint32_t length = random_sges(m, l, slot, s, &wr, most);
    wr.remote_addr = l->b->mr->addr + place(m, slot, length);
    if (is_inline)
        wr.send_flags |= IBV_SEND_INLINE;
    return wr;
}

/* Fails one request of the list in one of several ways; what is expected of it. */
static enum ibv_wc_status spoil(struct model *m, const struct link *l, struct fab_wr *wr,
                                struct step *s)
{
    s->bad = true;
    s->receives = false;
    wr->opcode = below(m, 2) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
    wr->sg_list = s->sge;
    wr->num_sge = 1;
    s->sge[0] = sge_of(l->a, 0, 16);
    switch (below(m, 3)) {
    case 0:
        wr->key.rkey ^= 0x5a5a00;
        return IBV_WC_REM_ACCESS_ERR;
    case 1:
        wr->remote_addr = l->b->mr->addr + NODE_BYTES - 15;
        return IBV_WC_REM_ACCESS_ERR;
    default:
        s->sge[0].addr = (uintptr_t)l->a->bytes + NODE_BYTES - 15;
        return IBV_WC_LOC_PROT_ERR;
    }
}

static void compare(const struct model *m, const struct link *l)
{
    ck_assert(memcmp(l->b->bytes, m->window, WINDOW) == 0);
    ck_assert(memcmp(l->a->bytes, m->local, sizeof m->local) == 0);
}

/* One list; sometimes with a bad request in it. */
static void run_batch(struct model *m, struct link *l)
{
    struct step steps[BATCH];
    struct fab_wr wr[BATCH];
    int n = 1 + (int)below(m, BATCH), bad = below(m, 8) == 0 ? (int)below(m, (uint64_t)n) : n;
    enum ibv_wc_status bad_status = IBV_WC_SUCCESS;
    bool fence = false;
    for (size_t i = 0; i < sizeof m->local; i += 8) {
        uint64_t random = base_prng_next(&m->prng);
        memcpy(m->local + i, &random, 8);
    }
    memcpy(l->a->bytes, m->local, sizeof m->local);
    for (int i = 0; i < n; i++) {
        wr[i] = random_wr(m, l, i, &steps[i]);
        if (i == bad)
            bad_status = spoil(m, l, &wr[i], &steps[i]);
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
        wr[i].send_flags |= fence ? IBV_SEND_FENCE : 0; /* READs and atomics are passed without */
        fence |= wr[i].opcode == IBV_WR_RDMA_READ || wr[i].opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
        if (i < n - 1 && below(m, 2))
            wr[i].send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
        struct ibv_sge in = sge_of(l->b, INBOX + (uint64_t)i * SLOT, SLOT);
        if (steps[i].receives && i < bad)
            link_post_recv(l, (uint64_t)i, &in, 1);
    }
    ck_assert_int_eq(link_post(l, wr), 0);
    for (int i = 0; i < n; i++) {
        if (i < bad)
            apply(m, l, &wr[i], &steps[i]);
        if ((wr[i].send_flags & IBV_SEND_SIGNALED) || i >= bad)
            expect_wc(l->a->cq, (uint64_t)i,
                      i < bad    ? IBV_WC_SUCCESS
                      : i == bad ? bad_status
                                 : IBV_WC_WR_FLUSH_ERR);
        if (!steps[i].receives || i >= bad)
            continue;
        struct ibv_wc wc = expect_wc(l->b->cq, (uint64_t)i, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.byte_len, steps[i].length);
        ck_assert_int_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), wr[i].opcode != IBV_WR_SEND);
        ck_assert(wr[i].opcode == IBV_WR_SEND || ntohl(wc.imm_data) == (uint32_t)i);
        if (wr[i].opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
            ck_assert(memcmp(l->b->bytes + INBOX + (size_t)i * SLOT, m->inbox, steps[i].length) ==
                      0);
    }
    compare(m, l);
    if (bad < n)
        link_repair(l, &patient);
}

START_TEST(random_requests_do_what_the_model_does)
{
    static struct model m;
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i / SEEDS], &patient, NULL, __func__))
        return;
    memset(&m, 0, sizeof m);
    m.apart = !p.a.fab->caps.writes_in_order;
    base_prng_seed(&m.prng, (uint64_t)_i);
    const int batches = conf_is_short() ? BATCHES / 3 : BATCHES;
    for (int i = 0; i < batches; i++)
        run_batch(&m, &p.l);
    expect_silence(p.a.cq);
    expect_silence(p.b.cq);
    pair_close(&p);
}
END_TEST

void add_random(Suite *suite)
{
    TCase *t = conf_case(suite, "random");
    tcase_add_loop_test(t, random_requests_do_what_the_model_does, 0, 2 * SEEDS);
}
