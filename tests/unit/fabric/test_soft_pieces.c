/* SPDX-License-Identifier: Apache-2.0 */
/* soft moves long requests piece by piece, in turns between queue pairs: what others see of that,
 * and what deregistering and fencing do to one in the middle. Ranges that overlap. */
#include "../check_main.h"
#include "bed.h"

enum { LONG = 256 * 1024, HALF = BED_MEM / 2, GIVE_UP = 100000 /* polls */ };

struct pair {
    char dir[64];
    struct bed_node a, b;
    struct bed_card to;
    struct kedge_fab_ah *ah;
    struct kedge_fab_qp *dci[2];
};

static struct pair p;

static void pair_open(void)
{
    bed_dir_make(p.dir);
    bed_open(&p.a, p.dir);
    bed_open(&p.b, p.dir);
    p.to = bed_card(&p.b, NULL);
    p.ah = bed_ah(&p.a, p.to.gid);
    for (int i = 0; i < 2; i++)
        p.dci[i] = bed_qp(&p.a, KEDGE_FAB_QP_DCI, bed_patient);
}

static void pair_close(void)
{
    bed_qp_free(p.dci[0]);
    bed_qp_free(p.dci[1]);
    bed_ah_free(p.ah);
    bed_close(&p.a);
    bed_close(&p.b);
    bed_dir_remove(p.dir);
}

static void fill(struct bed_wr *w, uint64_t id, enum ibv_wr_opcode opcode, uint64_t local,
                 uint64_t remote, uint32_t length)
{
    bed_fill(w, &p.a, &p.to, p.ah, opcode, local, remote, length);
    w->wr.wr_id = id;
}

static uint8_t *mine(uint64_t at)
{
    return (uint8_t *)p.a.mem.addr + at;
}

static uint8_t *theirs(uint64_t at)
{
    return (uint8_t *)p.b.mem.addr + at;
}

static uint8_t sample(uint64_t i)
{
    return (uint8_t)(i * 2654435761u >> 13 | 1);
}

static void put_samples(uint8_t *at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        at[i] = sample(i);
}

static uint64_t samples_in(const uint8_t *at, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && at[i] == sample(i))
        i++;
    return i;
}

static uint64_t count_of(const uint8_t *at, uint64_t n, uint8_t what)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += at[i] == what;
    return count;
}

/* Polls until the request of that number completes; how often. */
static int polls_until(uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    for (int polls = 1; polls < GIVE_UP; polls++)
        if (kedge_fab_poll(p.a.cq, 1, &wc) == 1 && wc.wr_id == id) {
            ck_assert_int_eq(wc.status, status);
            return polls;
        }
    ck_abort_msg("it does not complete");
    return 0;
}

/* Some of a request is done, and more is not. */
static void begin(struct bed_wr *w)
{
    struct ibv_wc wc;
    bed_post(p.dci[0], &w->wr);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(kedge_fab_poll(p.a.cq, 1, &wc), 0);
}

START_TEST(long_requests_arrive_whole_also_over_many_sges)
{
    static const uint32_t parts[] = {1, 70000, 0, 33333};
    struct ibv_sge sge[4];
    struct bed_wr w;
    pair_open();
    for (int read = 0; read < 2; read++) {
        uint32_t length = 0;
        memset(p.a.mem.addr, 0, BED_MEM);
        memset(p.b.mem.addr, 0, BED_MEM);
        fill(&w, 1, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0, 17, 0);
        for (int i = 0; i < 4; i++) {
            sge[i] = (struct ibv_sge){
                .addr = p.a.mr->addr + length, .length = parts[i], .lkey = p.a.mr->lkey};
            length += parts[i];
        }
        w.wr.sg_list = sge;
        w.wr.num_sge = 4;
        put_samples(read ? theirs(17) : mine(0), length);
        bed_post(p.dci[0], &w.wr);
        (void)polls_until(1, IBV_WC_SUCCESS);
        const uint8_t *end = read ? mine(0) : theirs(17);
        ck_assert_uint_eq(samples_in(end, length), length);
        ck_assert_uint_eq(end[length], 0);
    }
    pair_close();
}
END_TEST

START_TEST(a_short_request_is_done_while_a_long_one_of_another_queue_pair_is_moved)
{
    struct bed_wr big, small;
    struct ibv_wc wc;
    pair_open();
    fill(&big, 1, IBV_WR_RDMA_READ, 0, 0, LONG);
    begin(&big);
    for (uint64_t i = 0; i < 8; i++) {
        fill(&small, 100 + i, IBV_WR_RDMA_READ, HALF, 0, 8);
        bed_post(p.dci[1], &small.wr);
        ck_assert_int_eq(kedge_fab_poll(p.a.cq, 1, &wc), 1);
        ck_assert_uint_eq(wc.wr_id, 100 + i);
    }
    ck_assert_int_gt(polls_until(1, IBV_WC_SUCCESS), 8);
    pair_close();
}
END_TEST

START_TEST(long_requests_of_two_queue_pairs_take_turns)
{
    struct bed_wr w[2];
    struct ibv_wc wc;
    pair_open();
    put_samples(theirs(0), LONG);
    for (uint64_t i = 0; i < 2; i++) {
        fill(&w[i], 1 + i, IBV_WR_RDMA_READ, i * HALF, 0, LONG);
        bed_post(p.dci[i], &w[i].wr);
    }
    for (int i = 0; i < 17; i++)
        ck_assert_int_eq(kedge_fab_poll(p.a.cq, 1, &wc), 0);
    const uint64_t one = samples_in(mine(0), LONG), other = samples_in(mine(HALF), LONG);
    ck_assert_uint_gt(one, 0);
    ck_assert_uint_gt(other, 0);
    ck_assert_uint_le(one > other ? one - other : other - one, 16384);
    ck_assert_uint_ne(bed_wait(p.a.cq).wr_id, bed_wait(p.a.cq).wr_id);
    pair_close();
}
END_TEST

/* However long it takes until its turn, also when the thread stands still: the peer is not silent.
 */
START_TEST(who_waits_for_a_turn_is_not_given_up)
{
    enum { MANY = 6 };
    struct bed_wr w[MANY];
    pair_open();
    struct kedge_fab_qp *hasty = bed_qp(&p.a, KEDGE_FAB_QP_DCI, bed_hasty); /* 2 ms */
    for (uint64_t i = 0; i < MANY; i++) {
        fill(&w[i], 1 + i, IBV_WR_RDMA_READ, 0, 0, i % 3 == 2 ? 8 : LONG);
        bed_post(hasty, &w[i].wr);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t until = kedge_clock_ns() + 20 * KEDGE_NS_PER_MS;
        while (kedge_clock_ns() < until)
            ;
        (void)polls_until(1 + i, IBV_WC_SUCCESS);
    }
    bed_qp_free(hasty);
    pair_close();
}
END_TEST

/* Nobody waits for the rest of it. */
START_TEST(a_region_that_is_deregistered_in_the_middle_ends_the_request_there)
{
    struct bed_wr w;
    pair_open();
    struct kedge_fab_mr *mr = bed_reg(&p.b, &p.b.mem, HALF, LONG, BED_ALL_ACCESS);
    memset(mine(0), 'n', LONG);
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    w.wr.key = (struct kedge_fab_key){.rkey = mr->rkey,
                                      .not_after_ns = kedge_clock_ns() + 3600 * KEDGE_NS_PER_S};
    w.wr.remote_addr = mr->addr;
    begin(&w);
    ck_assert_uint_eq(*theirs(HALF), 'n');
    ck_assert_int_eq(bed_dereg(&p.b, mr), 0);
    memset(theirs(HALF), 'o', LONG);
    (void)polls_until(1, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(count_of(theirs(HALF), LONG, 'o'), LONG);
    pair_close();
}
END_TEST

static int fence(struct bed_node *n, uint32_t rkey)
{
    struct kedge_fab_ctl ctl = {.kind = KEDGE_FAB_FENCE_MR, .fence = {.rkey = rkey}};
    return kedge_fab_call(n->fab, &ctl);
}

static void is_fenced_in_the_middle(enum ibv_wr_opcode opcode, bool late, enum ibv_wc_status status)
{
    struct bed_wr w;
    pair_open();
    memset(mine(0), 'n', LONG);
    fill(&w, 1, opcode, 0, 0, LONG);
    w.wr.key.not_after_ns =
        kedge_clock_ns() + (late ? 20 * KEDGE_NS_PER_MS : 3600 * KEDGE_NS_PER_S);
    begin(&w);
    while (late && kedge_clock_ns() <= w.wr.key.not_after_ns)
        ;
    ck_assert_int_eq(fence(&p.b, p.b.mr->rkey), 0); /* and nobody polls meanwhile */
    memset(theirs(0), 'o', LONG);
    (void)polls_until(1, status);
    if (late && opcode == IBV_WR_RDMA_WRITE)
        ck_assert_uint_eq(count_of(theirs(0), LONG, 'o'), LONG);
    pair_close();
}

START_TEST(a_late_write_that_is_fenced_in_the_middle_goes_no_further)
{
    is_fenced_in_the_middle(IBV_WR_RDMA_WRITE, true, IBV_WC_REM_OP_ERR);
}
END_TEST

START_TEST(a_late_read_that_is_fenced_in_the_middle_may_begin_anew)
{
    is_fenced_in_the_middle(IBV_WR_RDMA_READ, true, IBV_WC_RESP_TIMEOUT_ERR);
}
END_TEST

START_TEST(who_has_time_left_goes_on_after_a_fence_for_others)
{
    is_fenced_in_the_middle(IBV_WR_RDMA_WRITE, false, IBV_WC_SUCCESS);
    is_fenced_in_the_middle(IBV_WR_RDMA_READ, false, IBV_WC_SUCCESS);
}
END_TEST

static void note_done(struct kedge_fab_ctl *ctl)
{
    *(bool *)ctl->user = true;
}

START_TEST(a_fence_sees_out_a_request_without_a_time)
{
    struct bed_wr w;
    bool done = false;
    pair_open();
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    begin(&w);
    struct kedge_fab_ctl ctl = {.kind = KEDGE_FAB_FENCE_MR,
                                .fence = {.rkey = p.b.mr->rkey},
                                .done = note_done,
                                .user = &done};
    kedge_fab_submit(p.b.fab, &ctl);
    (void)kedge_fab_run(p.b.fab);
    ck_assert(!done);
    (void)polls_until(1, IBV_WC_SUCCESS);
    (void)kedge_fab_run(p.b.fab);
    ck_assert(done);
    pair_close();
}
END_TEST

/* What verbs leave undefined: here the destination then holds whatever the source did meanwhile,
 * and nothing else is touched. */
static void overlaps(enum ibv_wr_opcode opcode, uint64_t local, uint64_t remote, uint32_t length)
{
    struct bed_wr w;
    struct bed_card self = bed_card(&p.a, NULL);
    uint64_t seen[256] = {0};
    const uint64_t to = opcode == IBV_WR_RDMA_READ ? local : remote;
    uint64_t strange = 0;
    memset(p.a.mem.addr, 0, 4 * 4096 + length);
    for (uint64_t i = 0; i < length; i++) {
        *mine(local + i) = sample(i);
        *mine(remote + i) = sample(i * 31);
    }
    for (uint64_t i = 0; i < length; i++)
        seen[*mine(local + i)] = seen[*mine(remote + i)] = 1;
    struct kedge_fab_ah *ah = bed_ah(&p.a, self.gid);
    bed_fill(&w, &p.a, &self, ah, opcode, local, remote, length);
    bed_post(p.dci[0], &w.wr);
    (void)polls_until(1, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < length; i++)
        strange += seen[*mine(to + i)] == 0;
    ck_assert_uint_eq(strange, 0);
    const uint64_t end = (local > remote ? local : remote) + length;
    ck_assert_uint_eq(count_of(mine(end), 64, 0), 64);
    ck_assert_uint_eq(count_of(mine((local < remote ? local : remote) - 64), 64, 0), 64);
    bed_ah_free(ah);
}

START_TEST(overlapping_ranges_of_ones_own_memory_harm_nothing_else)
{
    static const uint32_t lengths[] = {8, 9, 64, 100, 1024, 5000, LONG};
    static const uint32_t shifts[] = {0, 1, 7, 8, 63, 4096};
    pair_open();
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++)
            for (int write = 0; write < 2; write++) {
                const enum ibv_wr_opcode op = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
                overlaps(op, 4096, 4096 + shifts[s], lengths[l]);
                overlaps(op, 4096 + shifts[s], 4096, lengths[l]);
            }
    pair_close();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(long_requests_arrive_whole_also_over_many_sges)                                              \
    T(a_short_request_is_done_while_a_long_one_of_another_queue_pair_is_moved)                     \
    T(long_requests_of_two_queue_pairs_take_turns)                                                 \
    T(who_waits_for_a_turn_is_not_given_up)                                                        \
    T(a_region_that_is_deregistered_in_the_middle_ends_the_request_there)                          \
    T(a_late_write_that_is_fenced_in_the_middle_goes_no_further)                                   \
    T(a_late_read_that_is_fenced_in_the_middle_may_begin_anew)                                     \
    T(who_has_time_left_goes_on_after_a_fence_for_others)                                          \
    T(a_fence_sees_out_a_request_without_a_time)                                                   \
    T(overlapping_ranges_of_ones_own_memory_harm_nothing_else)

KEDGE_CHECK_MAIN("fabric.soft_pieces", TESTS)
