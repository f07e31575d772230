/* SPDX-License-Identifier: Apache-2.0 */
/* soft moves long requests piece by piece, in turns between queue pairs: what others see of that,
 * and what deregistering and fencing do to one in the middle. Ranges that overlap. */
#include <poll.h>

#include "../check_main.h"
#include "bed_qp.h"
#include "soft/cq.h"

enum {
    LONG = 16 << 20,
    HALF = 17 << 20,
    MEM = 34 << 20,
    MOST = 2 << 20, /* that are moved from poll to poll, when nobody else wants anything, */
    SOON = 500000,  /* or these, when somebody did a millisecond ago */
    QUIET_NS = 1000000,
    BESIDE = 1024,   /* the same, beside short requests, each of which waits for it */
    GIVE_UP = 100000 /* polls */
};

struct pair {
    char dir[64];
    struct bed_node a, b;
    struct bed_card to;
    struct fab_ah *ah;
    struct fab_qp *dci[2];
};

static struct pair p;

static void open_large(struct bed_node *n)
{
    bed_open(n, p.dir);
    ck_assert_int_eq(bed_dereg(n, n->mr), 0);
    fab_mem_free(&n->mem);
    ck_assert_int_eq(fab_mem_alloc(MEM, "large", &n->mem), 0);
    n->mr = bed_reg(n, &n->mem, 0, MEM, BED_ALL_ACCESS);
}

static void pair_open(void)
{
    bed_dir_make(p.dir);
    open_large(&p.a);
    open_large(&p.b);
    p.to = bed_card(&p.b, NULL);
    p.ah = bed_ah(&p.a, p.to.gid);
    for (int i = 0; i < 2; i++)
        p.dci[i] = bed_qp(&p.a, FAB_QP_DCI, bed_patient);
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
        if (fab_poll(p.a.cq, 1, &wc) == 1 && wc.wr_id == id) {
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
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
}

START_TEST(long_requests_arrive_whole_also_over_many_sges)
{
    static const uint32_t parts[] = {1, 700000, 0, 333333};
    struct ibv_sge sge[4];
    struct bed_wr w;
    pair_open();
    for (int read = 0; read < 2; read++) {
        uint32_t length = 0;
        memset(p.a.mem.addr, 0, MEM);
        memset(p.b.mem.addr, 0, MEM);
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
    put_samples(theirs(0), LONG);
    fill(&big, 1, IBV_WR_RDMA_READ, 0, 0, LONG);
    begin(&big);
    uint64_t moved = samples_in(mine(0), LONG);
    ck_assert_uint_le(moved, 3 * MOST);
    for (uint64_t i = 0; i < 3; i++) {
        fill(&small, 100 + i, IBV_WR_RDMA_READ, HALF, 0, 8);
        bed_post(p.dci[1], &small.wr);
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 1);
        ck_assert_uint_eq(wc.wr_id, 100 + i);
        const uint64_t now = samples_in(mine(0), LONG);
        ck_assert_uint_le(now - moved, BESIDE);
        moved = now;
    }
    ck_assert_uint_lt(moved, LONG);
    (void)polls_until(1, IBV_WC_SUCCESS);
    pair_close();
}
END_TEST

/* What a short request waits for is a part of the pause that was before it: as many bytes are moved
 * as a processor moves in a twentieth of that. */
START_TEST(the_longer_no_short_request_came_the_more_is_moved_in_a_poll)
{
    struct bed_wr big, small;
    struct ibv_wc wc;
    struct soft_cq *cq;
    pair_open();
    cq = (struct soft_cq *)p.a.cq;
    put_samples(theirs(0), LONG);
    fill(&big, 1, IBV_WR_RDMA_READ, 0, 0, LONG);
    fill(&small, 2, IBV_WR_RDMA_READ, HALF, 0, 8);
    bed_post(p.dci[0], &big.wr);
    bed_post(p.dci[1], &small.wr);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 1);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0); /* this one has seen the short one */
    uint64_t moved = samples_in(mine(0), LONG), now;
    cq->pace.whole_ns = base_clock_ns() - QUIET_NS; /* as if it had come then */
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    now = samples_in(mine(0), LONG);
    ck_assert_uint_ge(now - moved, SOON);
    moved = now;
    cq->pace.whole_ns = base_clock_ns() - 1000 * (uint64_t)QUIET_NS;
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    now = samples_in(mine(0), LONG);
    ck_assert_uint_eq(now - moved, MOST);
    (void)polls_until(1, IBV_WC_SUCCESS);
    pair_close();
}
END_TEST

/* Also where some are complete at each poll. */
START_TEST(a_long_request_goes_on_beside_short_ones_without_end)
{
    struct bed_wr big, small;
    struct ibv_wc wc;
    int polls = 0;
    pair_open();
    fill(&big, 1, IBV_WR_RDMA_READ, 0, 0, LONG / 8);
    fill(&small, 2, IBV_WR_RDMA_READ, HALF, 0, 8);
    bed_post(p.dci[0], &big.wr);
    do {
        bed_post(p.dci[1], &small.wr);
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 1);
        ck_assert_int_lt(polls++, LONG / BESIDE);
    } while (wc.wr_id == 2);
    while (fab_poll(p.a.cq, 1, &wc) == 1)
        ;
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
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    const uint64_t one = samples_in(mine(0), LONG), other = samples_in(mine(HALF), LONG);
    ck_assert_uint_gt(one, 0);
    ck_assert_uint_gt(other, 0);
    ck_assert_uint_le(one > other ? one - other : other - one, MOST);
    ck_assert_uint_ne(bed_wait(p.a.cq).wr_id, bed_wait(p.a.cq).wr_id);
    pair_close();
}
END_TEST

/* Two that wait among many that do not: a poll looks at those two. The many are made before them
 * and after, so that no end of a list is near to both. */
START_TEST(polls_look_at_those_that_wait_and_at_no_others)
{
    enum { MANY = 32, POLLS = 50 };
    struct fab_qp *many[2 * MANY];
    struct bed_wr w[2];
    struct ibv_wc wc;
    pair_open();
    for (int i = 0; i < 2 * MANY; i++)
        many[i] = bed_qp(&p.a, FAB_QP_DCI, bed_patient);
    for (uint64_t i = 0; i < 2; i++) {
        fill(&w[i], 1 + i, IBV_WR_RDMA_READ, i * HALF, 0, LONG);
        bed_post(i == 0 ? p.dci[0] : many[MANY], &w[i].wr);
    }
    for (int i = 0; i < POLLS; i++) { /* beside short ones, so that they take long */
        struct bed_wr small;
        fill(&small, 3, IBV_WR_RDMA_READ, 2 * HALF - 8, 0, 8);
        bed_post(p.dci[1], &small.wr);
        ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 1);
    }
    const struct soft_cq *cq = (const struct soft_cq *)p.a.cq;
    ck_assert_uint_ge(cq->looked, POLLS / 2);
    ck_assert_uint_le(cq->looked, 2 * (POLLS + 2));
    ck_assert_uint_ne(bed_wait(p.a.cq).wr_id, bed_wait(p.a.cq).wr_id);
    for (int i = 0; i < 2 * MANY; i++)
        bed_qp_free(many[i]);
    pair_close();
}
END_TEST

/* Whoever would sleep on the channel now is told not to, and woken if he does. */
START_TEST(who_sleeps_while_a_long_request_is_moved_is_woken_at_once)
{
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open();
    fill(&w, 1, IBV_WR_RDMA_READ, 0, 0, LONG);
    ck_assert(!fab_is_busy(p.a.cq));
    bed_post(p.dci[0], &w.wr);
    do {
        ck_assert(fab_is_busy(p.a.cq));
        ck_assert_int_eq(fab_arm(p.a.cq, false), 0);
        struct pollfd channel = {.fd = p.a.chan->fd, .events = POLLIN};
        ck_assert_int_eq(poll(&channel, 1, 60000), 1);
        fab_chan_drain(p.a.chan);
    } while (fab_poll(p.a.cq, 1, &wc) == 0);
    ck_assert(!fab_is_busy(p.a.cq));
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
    struct fab_qp *hasty = bed_qp(&p.a, FAB_QP_DCI, bed_hasty); /* 2 ms */
    for (uint64_t i = 0; i < MANY; i++) {
        fill(&w[i], 1 + i, IBV_WR_RDMA_READ, 0, 0, i % 3 == 2 ? 8 : LONG);
        bed_post(hasty, &w[i].wr);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t until = base_clock_ns() + 20 * BASE_NS_PER_MS;
        while (base_clock_ns() < until)
            ;
        (void)polls_until(1 + i, IBV_WC_SUCCESS);
    }
    bed_qp_free(hasty);
    pair_close();
}
END_TEST

/* Each waits for those before it, and that takes longer than a silent peer is given. */
START_TEST(who_stands_behind_long_ones_is_not_given_up_either)
{
    enum { MANY = 100, ROUNDS = 50 };
    static const struct bed_patience none = {.timeout = 1, .min_rnr_timer = 1};
    struct bed_wr w;
    pair_open();
    struct fab_qp *hasty = bed_qp(&p.a, FAB_QP_DCI, none);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < MANY; i++) {
            fill(&w, i, IBV_WR_RDMA_READ, i * 16000, i * 16000, 16000);
            bed_post(hasty, &w.wr);
        }
        for (uint64_t i = 0; i < MANY; i++) {
            struct ibv_wc wc = bed_wait(p.a.cq);
            ck_assert_uint_eq(wc.wr_id, i);
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        }
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
    struct fab_mr *mr = bed_reg(&p.b, &p.b.mem, HALF, LONG, BED_ALL_ACCESS);
    memset(mine(0), 'n', LONG);
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    w.wr.key =
        (struct fab_key){.rkey = mr->rkey, .not_after_ns = base_clock_ns() + 3600 * BASE_NS_PER_S};
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

static void note_done(struct fab_ctl *ctl)
{
    *(bool *)ctl->user = true;
}

static struct fab_ctl fence_ctl;
static bool fence_done;

static void begin_fence(struct bed_node *n, uint32_t rkey)
{
    fence_done = false;
    fence_ctl = (struct fab_ctl){
        .kind = FAB_QUIESCE_MR, .quiesce = {.rkey = rkey}, .done = note_done, .user = &fence_done};
    fab_submit(n->fab, &fence_ctl);
    (void)fab_run(n->fab);
}

/* Its time ends in the middle, and nobody polls meanwhile: the fence waits as long, and then it
 * goes no further. */
static void is_fenced_until_late(enum ibv_wr_opcode opcode, enum ibv_wc_status status)
{
    struct bed_wr w;
    pair_open();
    memset(mine(0), 'n', LONG);
    fill(&w, 1, opcode, 0, 0, LONG);
    w.wr.key.not_after_ns = base_clock_ns() + BASE_NS_PER_S; /* the beginning takes less */
    begin(&w);
    begin_fence(&p.b, p.b.mr->rkey);
    while (!fence_done)
        (void)fab_run(p.b.fab);
    ck_assert_uint_gt(base_clock_ns(), w.wr.key.not_after_ns);
    memset(theirs(0), 'o', LONG);
    (void)polls_until(1, status);
    if (opcode == IBV_WR_RDMA_WRITE)
        ck_assert_uint_eq(count_of(theirs(0), LONG, 'o'), LONG);
    pair_close();
}

START_TEST(a_write_that_is_late_after_a_fence_in_the_middle_goes_no_further)
{
    is_fenced_until_late(IBV_WR_RDMA_WRITE, IBV_WC_REM_OP_ERR);
}
END_TEST

START_TEST(a_read_that_is_late_after_a_fence_in_the_middle_may_begin_anew)
{
    is_fenced_until_late(IBV_WR_RDMA_READ, IBV_WC_RESP_TIMEOUT_ERR);
}
END_TEST

/* not_after_ns: or 0. */
static void is_seen_out(struct bed_node *fencing, uint64_t not_after_ns)
{
    struct bed_wr w;
    memset(mine(0), 'n', LONG);
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    w.wr.key.not_after_ns = not_after_ns;
    begin(&w);
    begin_fence(fencing, fencing->mr->rkey);
    ck_assert(!fence_done);
    (void)polls_until(1, IBV_WC_SUCCESS);
    ck_assert_uint_eq(count_of(theirs(0), LONG, 'n'), LONG);
    begin(&w); /* a later one is none of its business */
    (void)fab_run(fencing->fab);
    ck_assert(fence_done);
    (void)polls_until(1, IBV_WC_SUCCESS);
}

START_TEST(a_fence_sees_out_a_request_that_has_time_or_needs_none)
{
    pair_open();
    is_seen_out(&p.b, 0);
    is_seen_out(&p.b, base_clock_ns() + 3600 * BASE_NS_PER_S);
    pair_close();
}
END_TEST

START_TEST(a_fence_of_the_initiators_own_memory_sees_it_out_too)
{
    pair_open();
    is_seen_out(&p.a, 0);
    is_seen_out(&p.a, base_clock_ns() + 3600 * BASE_NS_PER_S);
    pair_close();
}
END_TEST

static void to_state(struct fab_qp *qp, enum ibv_qp_state state)
{
    bed_modify(qp, (struct ibv_qp_attr){.qp_state = state}, 0);
}

/* Whoever takes the queue pair away in the middle ends the request for fences too. */
START_TEST(a_queue_pair_that_is_reset_or_destroyed_in_the_middle_is_out_of_the_region)
{
    struct bed_wr w;
    pair_open();
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    for (int i = 0; i < 2; i++) {
        begin(&w);
        begin_fence(&p.b, p.b.mr->rkey);
        ck_assert(!fence_done);
        if (i == 0) {
            to_state(p.dci[0], IBV_QPS_RESET);
            bed_connect(p.dci[0], NULL, bed_patient);
        } else {
            bed_qp_free(p.dci[0]);
        }
        (void)fab_run(p.b.fab);
        ck_assert(fence_done);
    }
    p.dci[0] = bed_qp(&p.a, FAB_QP_DCI, bed_patient);
    begin(&w);
    (void)polls_until(1, IBV_WC_SUCCESS);
    pair_close();
}
END_TEST

START_TEST(a_queue_pair_that_breaks_in_the_middle_is_flushed_whole)
{
    struct bed_wr w;
    struct ibv_wc wc;
    pair_open();
    fill(&w, 1, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    begin(&w);
    fill(&w, 2, IBV_WR_RDMA_WRITE, 0, 0, LONG);
    bed_post(p.dci[0], &w.wr);
    memset(theirs(0), 'o', LONG);
    to_state(p.dci[0], IBV_QPS_ERR);
    for (uint64_t id = 1; id <= 2; id++) {
        wc = bed_wait(p.a.cq);
        ck_assert_uint_eq(wc.wr_id, id);
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    ck_assert_uint_eq(count_of(theirs(0), LONG, 'o'), LONG);
    begin_fence(&p.b, p.b.mr->rkey);
    ck_assert(fence_done);
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
    memset(p.a.mem.addr, 0, 4 * 4096 + (size_t)length);
    for (uint64_t i = 0; i < length; i++) {
        *mine(local + i) = sample(i);
        *mine(remote + i) = sample(i * 31);
    }
    for (uint64_t i = 0; i < length; i++)
        seen[*mine(local + i)] = seen[*mine(remote + i)] = 1;
    struct fab_ah *ah = bed_ah(&p.a, self.gid);
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
    static const uint32_t lengths[] = {8, 9, 64, 100, 1024, 5000, MOST + MOST / 2}; /* two pieces */
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
    T(the_longer_no_short_request_came_the_more_is_moved_in_a_poll)                                \
    T(a_long_request_goes_on_beside_short_ones_without_end)                                        \
    T(who_sleeps_while_a_long_request_is_moved_is_woken_at_once)                                   \
    T(long_requests_of_two_queue_pairs_take_turns)                                                 \
    T(polls_look_at_those_that_wait_and_at_no_others)                                              \
    T(who_waits_for_a_turn_is_not_given_up)                                                        \
    T(who_stands_behind_long_ones_is_not_given_up_either)                                          \
    T(a_region_that_is_deregistered_in_the_middle_ends_the_request_there)                          \
    T(a_write_that_is_late_after_a_fence_in_the_middle_goes_no_further)                            \
    T(a_read_that_is_late_after_a_fence_in_the_middle_may_begin_anew)                              \
    T(a_fence_sees_out_a_request_that_has_time_or_needs_none)                                      \
    T(a_fence_of_the_initiators_own_memory_sees_it_out_too)                                        \
    T(a_queue_pair_that_is_reset_or_destroyed_in_the_middle_is_out_of_the_region)                  \
    T(a_queue_pair_that_breaks_in_the_middle_is_flushed_whole)                                     \
    T(overlapping_ranges_of_ones_own_memory_harm_nothing_else)

KEDGE_CHECK_MAIN("fabric.soft_pieces", TESTS)
