/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: what the lane is asked for, and what its page says. */
#include <kedge_notify.h>

#include <pthread.h>
#include <unistd.h>

#include "message_fixture.h"

static const uint64_t NAME = 0x1234567800050003, SECRET = 0xfeedfacecafebeef;
enum { NUMBER = 3 };

static struct kedge_counter *begin(struct fixture *f)
{
    struct kedge_counter *c;
    setup_with(f, SCHEMA_FEATURE_MESSAGES | SCHEMA_FEATURE_NOTIFY);
    f->a.reply = (struct schema_reply){.value = {NAME, SECRET}};
    fake_agent_answer(&f->a);
    ck_assert_int_eq(kedge_counter_create(f->s, &c), 0);
    ck_assert_uint_eq(fake_agent_asked(&f->a)->op, SCHEMA_OP_COUNTER_NEW);
    return c;
}

static void say(struct fixture *f, uint64_t value)
{
    atomic_store(&f->a.ro->counter[NUMBER], value);
    atomic_fetch_add(&f->a.ro->raised, 1);
    fake_lane_wake(&f->a);
}

START_TEST(an_agent_of_before_is_asked_for_none)
{
    struct fixture f;
    struct kedge_counter *c = NULL;
    setup(&f);
    ck_assert_int_eq(kedge_counter_create(f.s, &c), -EOPNOTSUPP);
    ck_assert_int_eq(kedge_connect_counter(f.q, "kedge1c."), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(a_token_names_the_counter_and_sends_go_there)
{
    struct fixture f;
    char text[KEDGE_COUNTER_TOKEN_MAX], damaged[KEDGE_COUNTER_TOKEN_MAX];
    struct schema_counter_token t;
    struct kedge_counter *c = begin(&f);
    ck_assert_int_eq(kedge_counter_export(c, text, sizeof text - 1), -ENOSPC);
    ck_assert_int_eq(kedge_counter_export(c, text, sizeof text), 0);
    ck_assert_int_eq(schema_counter_token_parse(text, &t), 0);
    ck_assert(t.name == NAME && t.secret == SECRET);
    memcpy(t.gid, peer_gid, sizeof t.gid);
    schema_counter_token_format(&t, text);
    memcpy(damaged, text, sizeof text);
    damaged[20] ^= 1;
    ck_assert_int_eq(kedge_connect_counter(f.q, damaged), -EINVAL);
    ck_assert_int_eq(kedge_connect_counter(f.q, "kedge1.abc"), -EINVAL);
    struct schema_counter_token other = t;
    other.pool++;
    schema_counter_token_format(&other, damaged);
    ck_assert_int_eq(kedge_connect_counter(f.q, damaged), -EXDEV);
    ck_assert_int_eq(kedge_connect_counter(f.q, text), 0);
    struct ibv_sge sge = sge_of(&f, 0, 8);
    struct ibv_send_wr wr = send_of(&sge, 1);
    ck_assert_int_eq(post(f.q, &wr), -EINVAL);
    wr.num_sge = 0;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    ck_assert_int_eq(post(f.q, &wr), -EINVAL);
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    ck_assert_int_eq(post(f.q, &wr), -EINVAL);
    wr.opcode = IBV_WR_SEND;
    ck_assert_int_eq(post(f.q, &wr), 0);
    const struct schema_sq_desc *d = fake_lane_slot(&f.a, 1);
    ck_assert_uint_eq(d->op, SCHEMA_OP_SEND_TO);
    ck_assert_uint_eq(d->send_to.kind, SCHEMA_SEND_TO_COUNTER);
    ck_assert(d->send_to.to == NAME && d->send_to.secret == SECRET);
    teardown(&f);
}
END_TEST

static void *raise_later(void *user)
{
    struct fixture *f = user;
    usleep(20000);
    say(f, 4); /* not enough */
    usleep(20000);
    say(f, 5);
    return NULL;
}

START_TEST(who_waits_sleeps_until_it_says_as_much)
{
    struct fixture f;
    uint64_t value = 0;
    pthread_t thread;
    struct kedge_counter *c = begin(&f);
    ck_assert_int_eq(kedge_counter_wait(c, 0, 0), 1);
    ck_assert_int_eq(kedge_counter_wait(c, 1, 0), 0);
    ck_assert_int_eq(kedge_counter_wait(c, 1, 30), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, raise_later, &f), 0);
    ck_assert_int_eq(kedge_counter_wait(c, 5, 20000), 1);
    ck_assert_int_eq(kedge_counter_read(c, &value), 0);
    ck_assert_uint_eq(value, 5);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    teardown(&f);
}
END_TEST

START_TEST(who_waits_for_completions_hears_of_it_if_he_has_asked_for_notices)
{
    struct fixture f;
    struct kedge_counter *c = begin(&f);
    say(&f, 1);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    ck_assert_int_eq(kedge_session_notices(f.s), KEDGE_NOTICE_COUNTER);
    ck_assert_int_eq(kedge_session_notices(f.s), 0);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0);
    say(&f, 2);
    ck_assert_int_eq(kedge_wait(f.s, -1), 1);
    ck_assert_int_eq(kedge_wait(f.s, 0), 0); /* it is told once */
    ck_assert_int_eq(kedge_session_notices(f.s), KEDGE_NOTICE_COUNTER);
    ck_assert_int_eq(kedge_counter_wait(c, 2, 0), 1);
    teardown(&f);
}
END_TEST

START_TEST(a_session_that_is_over_says_nothing_of_its_counters)
{
    struct fixture f;
    uint64_t value = 77;
    struct kedge_counter *c = begin(&f);
    say(&f, 9);
    atomic_store(&f.a.ro->ended, SCHEMA_REASON_NODE_DRAINED);
    fake_lane_wake(&f.a);
    ck_assert_int_lt(kedge_counter_read(c, &value), 0);
    ck_assert_uint_eq(value, 77);
    ck_assert_int_lt(kedge_counter_wait(c, 10, -1), 0);
    teardown(&f);
}
END_TEST

START_TEST(one_that_is_destroyed_is_given_back)
{
    struct fixture f;
    struct kedge_counter *c = begin(&f);
    f.a.reply = (struct schema_reply){0};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_counter_destroy(c), 0);
    const struct schema_sq_desc *d = fake_agent_asked(&f.a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_COUNTER_FREE);
    ck_assert(d->counter.name == NAME);
    f.a.reply = (struct schema_reply){.value = {SCHEMA_COUNTERS, 1}}; /* makes no sense */
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_counter_create(f.s, &c), -EPROTO);
    (void)fake_agent_asked(&f.a);
    ck_assert_int_eq(kedge_counter_destroy(NULL), -EINVAL);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_of_before_is_asked_for_none)                                                        \
    T(a_token_names_the_counter_and_sends_go_there)                                                \
    T(who_waits_sleeps_until_it_says_as_much)                                                      \
    T(who_waits_for_completions_hears_of_it_if_he_has_asked_for_notices)                           \
    T(a_session_that_is_over_says_nothing_of_its_counters)                                         \
    T(one_that_is_destroyed_is_given_back)
KEDGE_CHECK_MAIN("libclient.counters", TESTS)
