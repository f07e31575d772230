/* SPDX-License-Identifier: Apache-2.0 */
/* kedge_wait_many(): what a worker says that it sleeps for, and when it goes on. The sleep is the
 * test's: in it the lane completes what it is told to, and nothing else wakes anybody. */
#include "fake_lane.h"

#include "internal.h"
#include "schema/wake.h"

enum { STEPS = 4, NO_WAKE = -1 };

static const uint8_t GID[16] = {0xfd, 1};
static struct fake_agent a;
static struct kedge_session *s;
static struct kedge_vqp *q;
static uint32_t lkey, sleeps, completed;
static void *memory;

/* In the sleep of that number: so many succeed, and then one fails; how often the worker had asked
 * to be woken for. */
static struct {
    uint32_t good, want, takes;
    bool fails, drains, answers; /* answers: takes all, and answers CONNECT */
    int status;
} step[STEPS];

int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
int __wrap_base_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    ck_assert_uint_eq(atomic_load(word), expected);
    ck_assert_uint_le(timeout_ns, 100000000);
    ck_assert_uint_lt(sleeps, STEPS);
    step[sleeps].want = atomic_load(&a.rw->want_wake);
    atomic_store(&a.rw->want_wake, 0); /* fake_lane_complete() wakes nobody */
    for (uint32_t i = 0; i < step[sleeps].good; i++)
        fake_lane_complete(&a, kedge_vqp_num(q), completed++, IBV_WC_SUCCESS);
    if (step[sleeps].fails)
        fake_lane_complete(&a, kedge_vqp_num(q), completed++, IBV_WC_REM_ACCESS_ERR);
    fake_lane_take(&a, step[sleeps].takes);
    if (step[sleeps].answers) {
        fake_lane_take(&a, fake_lane_waiting(&a) - 1);
        const uint32_t tag = fake_lane_slot(&a, 0)->connect.tag;
        fake_lane_take(&a, 1);
        a.ro->reply[tag % SCHEMA_REPLIES].value[0] = 4;
        atomic_store(&a.ro->reply[tag % SCHEMA_REPLIES].tag, tag);
    }
    if (step[sleeps].drains)
        atomic_store(&a.ro->drains, 1);
    return step[sleeps++].status;
}

static void setup(void)
{
    fake_agent_start(&a);
    memset(step, 0, sizeof step);
    ck_assert_int_eq(schema_peers_put(a.peers, 3, GID, 1, 1), 3);
    s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    ck_assert_int_eq(kedge_connect(q, GID), 0);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    sleeps = completed = 0;
}

static void teardown(void)
{
    kedge_close(s);
    fake_agent_stop(&a);
}

static void post_only(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .wr.rdma = {.remote_addr = 4096, .rkey = 1}},
                           *bad;
        ck_assert_int_eq(kedge_post_send(q, &wr, &bad), 0);
    }
}

static void post(uint32_t n)
{
    post_only(n);
    fake_lane_take(&a, fake_lane_waiting(&a));
}

static void take(int n)
{
    struct ibv_wc wc[CQ_SLOTS];
    ck_assert_int_eq(kedge_poll(s, CQ_SLOTS, wc), n);
}

START_TEST(it_says_how_many_are_missing_and_goes_on_when_they_are_there)
{
    setup();
    post(5);
    step[0].good = 1; /* woken too soon, as by an agent of before this */
    step[1].good = 4;
    ck_assert_int_eq(kedge_wait_many(s, 5, -1), 1);
    ck_assert_uint_eq(sleeps, 2);
    ck_assert_uint_eq(step[0].want, 5);
    ck_assert_uint_eq(step[1].want, 5); /* from the ring's head on, where one is already */
    ck_assert_uint_eq(atomic_load(&a.rw->want_wake), 0);
    take(5);
    post(4);
    step[2].good = 2;
    ck_assert_int_eq(kedge_wait_many(s, 2, -1), 1); /* two are still out */
    ck_assert_uint_eq(step[2].want, 2);
    take(2);
    teardown();
}
END_TEST

START_TEST(what_is_there_is_waited_for_without_a_sleep)
{
    setup();
    post(3);
    for (int i = 0; i < 3; i++)
        fake_lane_complete(&a, kedge_vqp_num(q), completed++, IBV_WC_SUCCESS);
    for (int n = 1; n <= 3; n++)
        ck_assert_int_eq(kedge_wait_many(s, n, -1), 1);
    ck_assert_int_eq(kedge_wait_many(s, 100, -1), 1); /* no more are out */
    ck_assert_uint_eq(sleeps, 0);
    take(3);
    teardown();
}
END_TEST

START_TEST(more_than_is_out_is_waited_for_no_longer_than_for_all_that_is)
{
    setup();
    post(3);
    step[0].good = 3;
    ck_assert_int_eq(kedge_wait_many(s, 1000000, -1), 1);
    ck_assert_uint_eq(step[0].want, 3);
    ck_assert_uint_eq(sleeps, 1);
    take(3);
    ck_assert_int_eq(kedge_wait_many(s, 7, 0), 0); /* of nothing it is one */
    step[1].status = 0;
    step[1].drains = true;
    ck_assert_int_eq(kedge_session_notices(s), 0);
    ck_assert_int_eq(kedge_wait_many(s, 7, -1), 1);
    ck_assert_uint_eq(step[1].want, 1);
    teardown();
}
END_TEST

START_TEST(one_that_failed_ends_the_wait)
{
    setup();
    post(5);
    step[0].good = 1;
    step[0].fails = true;
    ck_assert_int_eq(kedge_wait_many(s, 5, -1), 1);
    ck_assert_uint_eq(sleeps, 1);
    take(2);
    step[1].good = 3;
    ck_assert_int_eq(kedge_wait_many(s, 3, -1), 1);
    take(3);
    teardown();
}
END_TEST

/* It is not told with completions, behind which it might be overlooked. */
START_TEST(a_notice_ends_the_wait_and_is_told_when_nothing_else_is_there)
{
    setup();
    ck_assert_int_eq(kedge_session_notices(s), 0);
    post(3);
    step[0].good = 1;
    step[0].drains = true;
    ck_assert_int_eq(kedge_wait_many(s, 3, -1), 1);
    take(1);
    ck_assert_int_eq(kedge_wait_many(s, 2, -1), 1);
    take(0);
    ck_assert_int_eq(kedge_session_notices(s), KEDGE_NOTICE_DRAIN);
    ck_assert_uint_eq(sleeps, 1);
    step[1].good = 2; /* and once */
    ck_assert_int_eq(kedge_wait_many(s, 2, -1), 1);
    ck_assert_uint_eq(sleeps, 2);
    teardown();
}
END_TEST

START_TEST(when_the_time_is_over_fewer_may_be_there)
{
    setup();
    post(3);
    step[0].good = 2;
    step[0].status = -ETIMEDOUT;
    ck_assert_int_eq(kedge_wait_many(s, 3, 0), 0);
    ck_assert_uint_eq(sleeps, 0);
    fake_lane_complete(&a, kedge_vqp_num(q), completed++, IBV_WC_SUCCESS);
    ck_assert_int_eq(kedge_wait_many(s, 3, 0), 0);
    take(1);
    ck_assert_int_eq(kedge_wait_many(s, 0, 0), -EINVAL);
    ck_assert_int_eq(kedge_wait_many(s, -1, 0), -EINVAL);
    teardown();
}
END_TEST

START_TEST(what_came_before_the_end_can_be_taken)
{
    setup();
    post(3);
    fake_lane_complete(&a, kedge_vqp_num(q), completed++, IBV_WC_SUCCESS);
    atomic_store(&a.ro->ended, SCHEMA_REASON_RING);
    ck_assert_int_eq(kedge_wait_many(s, 3, -1), 1);
    take(1);
    ck_assert_int_lt(kedge_wait_many(s, 2, -1), 0);
    ck_assert_uint_eq(sleeps, 0);
    teardown();
}
END_TEST

/* Those of a VQP that is gone are nobody's, and the worker goes to sleep again. */
START_TEST(completions_of_a_destroyed_queue_pair_do_not_count)
{
    struct kedge_vqp *old;
    setup();
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &old), 0);
    const uint32_t num = kedge_vqp_num(old);
    kedge_vqp_destroy(old);
    post(2);
    fake_lane_complete(&a, num, 99, IBV_WC_SUCCESS);
    fake_lane_complete(&a, num, 99, IBV_WC_REM_ACCESS_ERR);
    step[0].good = 2;
    ck_assert_int_eq(kedge_wait_many(s, 2, -1), 1);
    ck_assert_uint_eq(sleeps, 1);
    ck_assert_uint_eq(step[0].want, 4);
    take(2);
    teardown();
}
END_TEST

/* The lane shows several by the first one's phase, and is to say so in the tail. */
START_TEST(what_was_shown_counts_while_the_tail_is_behind)
{
    struct ibv_wc wc;
    setup();
    post(3);
    struct schema_cqe *ring = (struct schema_cqe *)((uint8_t *)a.ro + SCHEMA_CQ_OFFSET);
    const uint32_t tail = atomic_load(&a.ro->cq_tail), num = kedge_vqp_num(q);
    for (uint32_t i = 0; i < 3; i++)
        ring[(tail + i) % CQ_SLOTS] = (struct schema_cqe){
            .wr_id = completed++, .vqp = (uint16_t)num, .vqp_gen = (uint16_t)(num >> 16)};
    schema_cq_publish(a.ro, ring, CQ_SLOTS - 1, tail, tail + 3);
    atomic_store(&a.ro->cq_tail, tail);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    ck_assert_int_eq(kedge_wait_many(s, 2, -1), 1);
    ck_assert_uint_eq(sleeps, 0);
    atomic_store(&a.ro->cq_tail, tail + 3);
    take(2);
    teardown();
}
END_TEST

/* Of half the ring, although a slot would do: who has much to say sleeps the less often. */
START_TEST(who_finds_the_ring_full_says_for_how_much_room_it_sleeps)
{
    static const uint8_t other[16] = {0xfd, 2};
    setup();
    post_only(SQ_SLOTS - 1); /* and a BIND */
    ck_assert_uint_eq(fake_lane_waiting(&a), SQ_SLOTS);
    step[0].takes = SQ_SLOTS / 2;
    step[1].answers = true;
    ck_assert_int_eq(kedge_connect(q, other), 0);
    ck_assert_uint_eq(sleeps, 2);
    ck_assert_uint_eq(step[0].want, SCHEMA_WAKE_ROOM | SQ_SLOTS / 2);
    ck_assert_uint_eq(step[1].want, schema_wake_for_answer(1));
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_says_how_many_are_missing_and_goes_on_when_they_are_there)                                \
    T(what_is_there_is_waited_for_without_a_sleep)                                                 \
    T(more_than_is_out_is_waited_for_no_longer_than_for_all_that_is)                               \
    T(one_that_failed_ends_the_wait)                                                               \
    T(a_notice_ends_the_wait_and_is_told_when_nothing_else_is_there)                               \
    T(when_the_time_is_over_fewer_may_be_there)                                                    \
    T(what_came_before_the_end_can_be_taken)                                                       \
    T(completions_of_a_destroyed_queue_pair_do_not_count)                                          \
    T(what_was_shown_counts_while_the_tail_is_behind)                                              \
    T(who_finds_the_ring_full_says_for_how_much_room_it_sleeps)

KEDGE_CHECK_MAIN("libclient.wait_many", TESTS)
