/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a responder executes, in how many pieces, and what a checker is told of it. */
#include "../check_main.h"
#include "sim_link.h"

struct two {
    struct sim_net *net;
    struct bed_node a, b;
    struct bed_link l;
    /* Noted by hooks: */
    uint32_t reads, writes, atomics, local;
    uint32_t after_end; /* accesses to a region that was deregistered */
    uint64_t ended[64];
    uint32_t ends, begins;
    char order[64];
    uint32_t ordered;
};

static void on_access(void *user, const struct sim_access *a)
{
    struct two *t = user;
    if (!a->remote) {
        t->local++;
        return;
    }
    t->reads += a->kind == SIM_READ;
    t->writes += a->kind == SIM_WRITE;
    t->atomics += a->kind == SIM_ATOMIC;
    if (t->ordered < sizeof t->order - 1)
        t->order[t->ordered++] = a->kind == SIM_READ ? 'r' : a->kind == SIM_WRITE ? 'w' : 'a';
    for (uint32_t i = 0; i < t->ends; i++)
        t->after_end += t->ended[i] == a->identity;
    ck_assert(a->node == 1 && a->initiator == 0);
    ck_assert_ptr_eq(a->at, t->b.bytes + (a->addr - t->b.mr->addr));
}

static void on_begin(void *user, const struct sim_region *r)
{
    struct two *t = user;
    t->begins++;
    ck_assert_uint_eq(r->length, BED_BYTES);
}

static void on_end(void *user, const struct sim_region *r)
{
    struct two *t = user;
    if (t->ends < 64)
        t->ended[t->ends++] = r->identity;
}

static void two_open(struct two *t, uint64_t seed, bool late_writes)
{
    const struct sim_hooks hooks = {
        .user = t, .accessed = on_access, .registered = on_begin, .deregistered = on_end};
    const struct sim_device_attr attr = {.node = 1, .late_writes = late_writes};
    memset(t, 0, sizeof *t);
    t->net = sim_net_new(seed, &hooks, 0);
    bed_open(&t->a, t->net, 0);
    bed_open_with(&t->b, t->net, &attr);
    bed_link(&t->l, &t->a, &t->b, FAB_QP_RC);
}

static void two_close(struct two *t)
{
    bed_unlink(&t->l);
    bed_close(&t->a);
    bed_close(&t->b);
    sim_net_free(t->net);
}

static void post_one(struct two *t, enum ibv_wr_opcode opcode, uint32_t remote, uint32_t bytes,
                     unsigned flags)
{
    struct bed_request r = bed_request(&t->l, 0, opcode, 0, remote, bytes);
    r.wr.send_flags |= flags;
    ck_assert_int_eq(bed_post(&t->l, &r), 0);
}

/* Of 200 seeds, how many execute the second of two requests first. */
static uint32_t count_overtaken(enum ibv_wr_opcode first, enum ibv_wr_opcode second, unsigned flags,
                                bool late_writes)
{
    uint32_t count = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        static struct two t;
        two_open(&t, seed, late_writes);
        const char f = first == IBV_WR_RDMA_READ ? 'r' : first == IBV_WR_RDMA_WRITE ? 'w' : 'a';
        post_one(&t, first, 0, 8, 0);
        post_one(&t, second, 64, 8, flags);
        (void)bed_wait(&t.a);
        (void)bed_wait(&t.a);
        ck_assert_uint_eq(t.ordered, 2);
        count += first == second ? 0 : t.order[0] != f;
        two_close(&t);
    }
    return count;
}

START_TEST(a_read_and_an_atomic_may_be_overtaken_and_a_fence_forbids_it)
{
    const enum ibv_wr_opcode read = IBV_WR_RDMA_READ, write = IBV_WR_RDMA_WRITE;
    const enum ibv_wr_opcode add = IBV_WR_ATOMIC_FETCH_AND_ADD;
    ck_assert_uint_gt(count_overtaken(read, write, 0, false), 10);
    ck_assert_uint_gt(count_overtaken(read, add, 0, false), 10);
    ck_assert_uint_gt(count_overtaken(add, write, 0, false), 10);
    ck_assert_uint_eq(count_overtaken(add, read, 0, false), 0);
    ck_assert_uint_eq(count_overtaken(write, read, 0, false), 0);
    ck_assert_uint_eq(count_overtaken(write, add, 0, false), 0);
    ck_assert_uint_eq(count_overtaken(read, write, IBV_SEND_FENCE, false), 0);
    ck_assert_uint_eq(count_overtaken(write, read, 0, true), 0);
}
END_TEST

/* Two WRITEs to one place: the later one's bytes stay, whatever the device. */
START_TEST(writes_that_succeed_are_in_order)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        static struct two t;
        two_open(&t, seed, seed % 2 == 0);
        ck_assert(t.b.fab->caps.writes_in_order == (seed % 2 != 0));
        for (uint32_t i = 1; i <= 2; i++) {
            struct bed_request r = bed_request(&t.l, i, IBV_WR_RDMA_WRITE, 64 * i, 4096, 64);
            memset(t.a.bytes + 64 * i, (int)i, 64);
            ck_assert_int_eq(bed_post(&t.l, &r), 0);
        }
        (void)bed_wait(&t.a);
        (void)bed_wait(&t.a);
        for (int i = 0; i < 64; i++)
            ck_assert_uint_eq(t.b.bytes[4096 + i], 2);
        two_close(&t);
    }
}
END_TEST

/* Of 200 seeds, in how many a WRITE has changed memory that stands behind a request that is
 * refused; all of it, or some. */
static uint32_t count_placed(enum ibv_wr_opcode opcode, bool late_writes)
{
    uint32_t placed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        static struct two t;
        two_open(&t, seed, late_writes);
        struct bed_request refused = bed_request(&t.l, 0, opcode, 0, 0, 8);
        struct bed_request behind = bed_request(&t.l, 1, IBV_WR_RDMA_WRITE, 64, 4096, 64);
        refused.wr.key.rkey++;
        memset(t.a.bytes + 64, 7, 64);
        ck_assert_int_eq(bed_post(&t.l, &refused), 0);
        ck_assert_int_eq(bed_post(&t.l, &behind), 0);
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_REM_ACCESS_ERR);
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_WR_FLUSH_ERR);
        for (int i = 0; i < 64; i++)
            if (t.b.bytes[4096 + i] == 7) {
                placed++;
                break;
            }
        two_close(&t);
    }
    return placed;
}

START_TEST(behind_a_write_that_is_refused_others_may_be_in_memory_where_the_device_says_so)
{
    ck_assert_uint_eq(count_placed(IBV_WR_RDMA_WRITE, false), 0);
    ck_assert_uint_gt(count_placed(IBV_WR_RDMA_WRITE, true), 20);
    ck_assert_uint_gt(count_placed(IBV_WR_RDMA_READ, false), 20);
    ck_assert_uint_gt(count_placed(IBV_WR_RDMA_READ, true), 20);
}
END_TEST

/* Three WRITEs, of which the last is refused and the first is over, both without a word: it is the
 * first that fails, by what the device says. */
START_TEST(a_nameless_device_says_an_error_of_the_oldest)
{
    const struct sim_device_attr attr = {.node = 0, .nameless = true};
    struct two t = {.net = sim_net_new(1, NULL, 0)};
    bed_open_with(&t.a, t.net, &attr);
    bed_open(&t.b, t.net, 1);
    bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
    ck_assert(!t.a.fab->caps.names_culprit && t.b.fab->caps.names_culprit);
    for (uint32_t i = 0; i < 4; i++) {
        struct bed_request r = bed_request(&t.l, i, IBV_WR_RDMA_WRITE, 0, 64 * i, 8);
        r.wr.send_flags = i == 0 || i == 3 ? IBV_SEND_SIGNALED : 0;
        r.wr.key.rkey += i == 3;
        ck_assert_int_eq(bed_post(&t.l, &r), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        const struct ibv_wc wc = bed_wait(&t.a);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, i == 0   ? IBV_WC_SUCCESS
                                    : i == 1 ? IBV_WC_REM_ACCESS_ERR
                                             : IBV_WC_WR_FLUSH_ERR);
    }
    two_close(&t);
}
END_TEST

/* What changes while it is read is torn, at borders of 8 bytes; what is of 8 bytes is not. */
START_TEST(a_read_of_what_changes_meanwhile_is_torn_between_words)
{
    uint32_t torn = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        static struct two t;
        uint64_t words[8];
        two_open(&t, seed, false);
        post_one(&t, IBV_WR_RDMA_READ, 0, sizeof words, 0);
        struct ibv_wc wc;
        for (uint8_t tick = 0; fab_poll(t.a.cq, 1, &wc) == 0; tick++) {
            memset(t.b.bytes, tick, sizeof words);
            ck_assert(sim_net_step(t.net));
        }
        memcpy(words, t.a.bytes, sizeof words);
        for (int i = 0; i < 8; i++)
            ck_assert_uint_eq(words[i], (words[i] & 0xff) * 0x0101010101010101ull);
        for (int i = 1; i < 8; i++)
            if (words[i] != words[0]) {
                torn++;
                break;
            }
        two_close(&t);
    }
    ck_assert_uint_gt(torn, 10);
    ck_assert_uint_lt(torn, 90);
}
END_TEST

/* Also of a long request that is in the middle of it, and of one that is on its way. */
START_TEST(nothing_is_accessed_after_a_deregistration_is_done)
{
    uint32_t cut_short = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        static struct two t;
        two_open(&t, seed, false);
        memset(t.a.bytes, 7, 4096);
        post_one(&t, IBV_WR_RDMA_WRITE, 0, 4096, 0);
        post_one(&t, IBV_WR_RDMA_READ, 0, 4096, 0);
        bed_pass(t.net, 2000 + seed * 40);
        bed_free(&t.b, FAB_DEREG_MR, t.b.mr);
        uint8_t then[4096];
        memcpy(then, t.b.bytes, sizeof then);
        struct ibv_wc wc = bed_wait(&t.a);
        while (sim_net_step(t.net))
            ;
        ck_assert_uint_eq(t.after_end, 0);
        ck_assert_mem_eq(then, t.b.bytes, sizeof then);
        cut_short += then[0] != then[4095];
        ck_assert(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR);
        t.b.mr = bed_register(&t.b);
        two_close(&t);
    }
    ck_assert_uint_gt(cut_short, 5);
}
END_TEST

START_TEST(a_checker_sees_every_access_and_every_registration)
{
    static struct two t;
    two_open(&t, 1, false);
    ck_assert_uint_eq(t.begins, 2);
    post_one(&t, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0);
    post_one(&t, IBV_WR_RDMA_WRITE, 8, 8, 0);
    post_one(&t, IBV_WR_RDMA_READ, 16, 8, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_SUCCESS);
    ck_assert(t.reads == 1 && t.writes == 1 && t.atomics == 1);
    ck_assert_uint_eq(t.local, 3); /* the atomic's and the READ's answer, and what was written */
    ck_assert_uint_eq(t.ends, 0);
    two_close(&t);
    ck_assert_uint_eq(t.ends, 2);
}
END_TEST

/* Of 200 READs of a line that its owner writes anew in the middle of each, how many bring some of
 * both. */
static uint32_t count_torn(uint32_t stall_ppm)
{
    uint32_t torn = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        static struct two t;
        two_open(&t, seed, false);
        sim_net_stall_reads(t.net, stall_ppm, 20000000);
        memset(t.b.bytes, 1, 1024);
        post_one(&t, IBV_WR_RDMA_READ, 0, 1024, 0);
        const uint64_t until_ns = sim_net_now(t.net) + 5000000;
        while (sim_net_next_due(t.net) < until_ns && sim_net_step(t.net))
            ;
        memset(t.b.bytes, 2, 1024);
        (void)bed_wait(&t.a);
        for (uint32_t i = 0; i + 64 <= 1024; i += 64)
            torn += memcmp(t.a.bytes + i, t.a.bytes + i + 8, 56) != 0;
        for (uint32_t i = 0; i < 1024; i += 8)
            ck_assert_int_eq(memcmp(t.a.bytes + i, t.a.bytes + i + 1, 7), 0);
        two_close(&t);
    }
    return torn;
}

START_TEST(a_read_that_stalls_brings_words_of_before_and_after_in_one_line)
{
    ck_assert_uint_eq(count_torn(0), 0);
    ck_assert_uint_gt(count_torn(1000000), 100);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_read_that_stalls_brings_words_of_before_and_after_in_one_line)                             \
    T(a_read_and_an_atomic_may_be_overtaken_and_a_fence_forbids_it)                                \
    T(writes_that_succeed_are_in_order)                                                            \
    T(behind_a_write_that_is_refused_others_may_be_in_memory_where_the_device_says_so)             \
    T(a_nameless_device_says_an_error_of_the_oldest)                                               \
    T(a_read_of_what_changes_meanwhile_is_torn_between_words)                                      \
    T(nothing_is_accessed_after_a_deregistration_is_done)                                          \
    T(a_checker_sees_every_access_and_every_registration)

KEDGE_CHECK_MAIN("fabric.sim_order", TESTS)
