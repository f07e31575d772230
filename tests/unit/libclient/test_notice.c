/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker hears beside completions, also while it sleeps. */
#include "fake_lane.h"

#include <poll.h>

static struct fake_agent a;

/* Says it when the worker sleeps, and not before. */
static void say_asleep(void (*say)(void))
{
    while (atomic_load(&a.rw->want_wake) == 0)
        poll(NULL, 0, 1);
    say();
    fake_lane_wake(&a);
}

static void begin_drain(void)
{
    atomic_store(&a.ro->drains, 1);
}

static void take_region(void)
{
    atomic_fetch_add(&a.ro->revoked, 1);
}

/* What the worker has asked for is answered. */
static void answer_one(void)
{
    const uint32_t tag = fake_lane_slot(&a, 0)->dereg_mr.tag;
    fake_lane_take(&a, 1);
    a.ro->reply[tag % SCHEMA_REPLIES].status = 0;
    atomic_store(&a.ro->reply[tag % SCHEMA_REPLIES].tag, tag);
}

static void *tell(void *say)
{
    say_asleep(*(void (**)(void))say);
    return NULL;
}

/* The worker sleeps, is woken, and hears this once. */
static void hears(struct kedge_session *s, void (*say)(void), int notices)
{
    pthread_t thread;
    struct ibv_wc wc;
    ck_assert_int_eq(kedge_wait(s, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, tell, &say), 0);
    ck_assert_int_eq(kedge_wait(s, -1), 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(kedge_poll(s, 1, &wc), 0);
    ck_assert_int_eq(kedge_wait(s, 0), 0);
    ck_assert_int_eq(kedge_session_notices(s), notices);
}

START_TEST(who_sleeps_hears_once_that_the_node_drains_and_again_when_it_does_so_again)
{
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    begin_drain();
    ck_assert_int_eq(kedge_wait(s, 0), 0); /* who has not asked hears of completions alone */
    atomic_store(&a.ro->drains, 0);
    ck_assert_int_eq(kedge_session_notices(s), 0);
    hears(s, begin_drain, KEDGE_NOTICE_DRAIN);
    ck_assert_int_eq(kedge_session_notices(s), KEDGE_NOTICE_DRAIN);
    atomic_store(&a.ro->drains, 0);
    ck_assert_int_eq(kedge_session_notices(s), 0);
    hears(s, begin_drain, KEDGE_NOTICE_DRAIN);
    atomic_store(&a.ro->ended, SCHEMA_REASON_NODE_DRAINED);
    ck_assert_int_eq(kedge_session_notices(s), -EPIPE);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(who_sleeps_hears_of_each_revocation)
{
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_session_notices(s), 0);
    for (int i = 0; i < 2; i++) {
        hears(s, take_region, KEDGE_NOTICE_REVOKED);
        ck_assert_int_eq(kedge_session_notices(s), 0);
    }
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(who_sleeps_hears_when_all_that_it_gives_back_is_gone)
{
    struct kedge_mr *mrs[2];
    void *memory;
    uint32_t lkey;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    for (uint32_t i = 0; i < 2; i++) {
        a.reply = (struct schema_reply){.value = {100 + i}};
        fake_agent_answer(&a);
        ck_assert_int_eq(kedge_reg_mr(s, memory, 64, IBV_ACCESS_REMOTE_READ, &mrs[i]), 0);
        fake_agent_asked(&a);
    }
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(kedge_dereg_mrs_begin(&mrs[i], 1), 0);
    answer_one();
    ck_assert_int_eq(kedge_session_notices(s), 0); /* one is left */
    hears(s, answer_one, KEDGE_NOTICE_WITHDRAWN);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), 0);
    ck_assert_int_eq(kedge_session_notices(s), 0);
    ck_assert_int_eq(kedge_wait(s, 0), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_sleeps_hears_once_that_the_node_drains_and_again_when_it_does_so_again)                  \
    T(who_sleeps_hears_of_each_revocation)                                                         \
    T(who_sleeps_hears_when_all_that_it_gives_back_is_gone)

KEDGE_CHECK_MAIN("libclient.notice", TESTS)
