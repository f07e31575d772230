/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose memory the agent has taken back: its worker reads zeros there, now or in the
 * middle of a look. */
#include "fake_lane.h"

#include <time.h>

static const uint8_t nobody[16] = {0xfe, 0x80, 9};

/* As the agent does when it takes the memory of a session back. */
static void take_back(struct fake_agent *a)
{
    atomic_store(&a->ro->magic, 0);
    ck_assert_int_eq(base_memfd_empty(a->fds[SCHEMA_FD_RO]), 0);
    ck_assert_int_eq(base_memfd_empty(a->fds[SCHEMA_FD_RW]), 0);
}

static void expect_gone(struct kedge_session *s, struct kedge_vqp *q)
{
    static const char GONE[] = "the agent closed the session or is gone: open another";
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ}, *bad;
    struct kedge_session_info info;
    struct ibv_wc wc;
    ck_assert_int_eq(kedge_poll(s, 1, &wc), -EPIPE);
    ck_assert_str_eq(kedge_last_error(), GONE);
    ck_assert_int_eq(kedge_wait(s, -1), -EPIPE);
    ck_assert_int_eq(kedge_session_notices(s), -EPIPE);
    ck_assert_int_eq(kedge_session_status(s), -EPIPE);
    ck_assert_int_eq(kedge_post_send(q, &wr, &bad), -EPIPE);
    ck_assert_int_eq(kedge_connect(q, nobody), -EPIPE);
    ck_assert_str_eq(kedge_last_error(), GONE);
    kedge_session_query(s, &info);
    ck_assert_uint_eq(info.gid[0], 0xfd);
}

START_TEST(zeros_in_a_session_that_was_taken_back_are_its_end_and_no_completion)
{
    /* How many completions were read before: the ring's index is at each distance from 0. */
    for (uint32_t polled = 0; polled < 6; polled++) {
        struct fake_agent a;
        struct kedge_vqp *q;
        struct ibv_wc wc;
        fake_agent_start(&a);
        struct kedge_session *s = fake_agent_open(&a);
        ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
        ck_assert_uint_eq(kedge_vqp_num(q), 0); /* as in a completion that is zeros */
        for (uint32_t i = 0; i < polled; i++) {
            fake_lane_complete(&a, kedge_vqp_num(q), 4, IBV_WC_SUCCESS);
            ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
        }
        take_back(&a);
        expect_gone(s, q);
        kedge_close(s);
        fake_agent_stop(&a);
    }
}
END_TEST

/* Between the indices lie as many as there are numbers. */
START_TEST(who_waits_for_completions_of_a_session_that_was_taken_back_looks_through_no_ring)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    struct ibv_wc wc;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    for (uint32_t i = 0; i < 6; i++) {
        fake_lane_complete(&a, kedge_vqp_num(q), 4, IBV_WC_SUCCESS);
        ck_assert_int_eq(kedge_poll(s, 1, &wc), 1);
    }
    kedge_vqp_destroy(q);
    take_back(&a);
    const clock_t begin = clock();
    ck_assert_int_eq(kedge_wait(s, -1), -EPIPE);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), -EPIPE);
    ck_assert_int_lt(clock() - begin, CLOCKS_PER_SEC);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* The completion's slot is gone and its index was read before. */
START_TEST(a_completion_whose_slot_is_taken_back_under_the_reader_is_none)
{
    struct fake_agent a;
    struct kedge_vqp *q;
    struct ibv_wc wc;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    fake_lane_complete(&a, kedge_vqp_num(q), 4, IBV_WC_SUCCESS);
    fake_lane_complete(&a, kedge_vqp_num(q), 5, IBV_WC_SUCCESS);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 1); /* and knows of the second */
    take_back(&a);
    expect_gone(s, q);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* Is answered, and the session taken back, before the worker looks. */
static void *answer_and_take_back(void *argument)
{
    struct fake_agent *a = argument;
    while (fake_lane_waiting(a) == 0)
        usleep(10);
    const uint32_t tag = fake_lane_slot(a, 0)->connect.tag;
    take_back(a);
    /* What a worker reads that has seen the tag just before. */
    atomic_store(&a->ro->reply[tag % SCHEMA_REPLIES].tag, tag);
    atomic_fetch_add(&a->ro->wake, 1);
    base_futex_wake(&a->ro->wake, 1);
    return NULL;
}

START_TEST(an_answer_that_is_taken_back_under_the_reader_is_none)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    ck_assert_int_eq(pthread_create(&a.thread, NULL, answer_and_take_back, &a), 0);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 4096, IBV_ACCESS_REMOTE_READ, &mr), -EPIPE);
    pthread_join(a.thread, NULL);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(who_waits_for_news_of_a_session_that_was_taken_back_hears_of_its_end)
{
    struct fake_agent a;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    atomic_store(&a.ro->revoked, 1);
    ck_assert_int_eq(kedge_session_notices(s), KEDGE_NOTICE_REVOKED);
    take_back(&a);
    ck_assert_int_eq(kedge_wait(s, -1), -EPIPE);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

int __real_client_usable(struct kedge_session *s);
int __wrap_client_usable(struct kedge_session *s);

static struct fake_agent *taken_next; /* when a session has been looked at */

int __wrap_client_usable(struct kedge_session *s)
{
    const int status = __real_client_usable(s);
    if (taken_next != NULL)
        take_back(taken_next);
    taken_next = NULL;
    return status;
}

START_TEST(a_region_of_a_session_that_is_taken_back_under_the_reader_is_not_live)
{
    struct fake_agent a;
    struct kedge_mr *mr;
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 4096, &memory, &lkey), 0);
    a.reply = (struct schema_reply){.value = {5}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 4096, IBV_ACCESS_REMOTE_READ, &mr), 0);
    (void)fake_agent_asked(&a);
    ck_assert_int_eq(kedge_mr_status(mr), 0);
    taken_next = &a;
    ck_assert_int_eq(kedge_mr_status(mr), -EPIPE);
    ck_assert_ptr_null(taken_next); /* it was, within the call */
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(zeros_in_a_session_that_was_taken_back_are_its_end_and_no_completion)                        \
    T(who_waits_for_completions_of_a_session_that_was_taken_back_looks_through_no_ring)            \
    T(a_completion_whose_slot_is_taken_back_under_the_reader_is_none)                              \
    T(an_answer_that_is_taken_back_under_the_reader_is_none)                                       \
    T(who_waits_for_news_of_a_session_that_was_taken_back_hears_of_its_end)                        \
    T(a_region_of_a_session_that_is_taken_back_under_the_reader_is_not_live)
KEDGE_CHECK_MAIN("libclient taken back", TESTS)
