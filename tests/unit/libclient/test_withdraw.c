/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that are given back together, and requests of which several are under way. */
#include "fake_lane.h"

#include "schema/token.h"

static const uint8_t stranger[16] = {0xfd, 9};

static void register_some(struct fake_agent *a, struct kedge_session *s, struct kedge_mr **mrs,
                          uint32_t n)
{
    void *memory;
    uint32_t lkey;
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    for (uint32_t i = 0; i < n; i++) {
        a->reply = (struct schema_reply){.value = {100 + i}};
        fake_agent_answer(a);
        ck_assert_int_eq(kedge_reg_mr(s, memory, 64, IBV_ACCESS_REMOTE_READ, &mrs[i]), 0);
        fake_agent_asked(a);
    }
}

START_TEST(a_list_of_regions_is_one_request_and_all_its_handles_end_with_it)
{
    struct fake_agent a;
    struct kedge_mr *mrs[4];
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    register_some(&a, s, mrs, 3);
    void *memory;
    uint32_t lkey;
    ck_assert_int_eq(kedge_alloc(s, 64, &memory, &lkey), 0);
    ck_assert_int_eq(kedge_reg_mr(s, memory, 64, 0, &mrs[3]), 0); /* local alone */
    a.reply = (struct schema_reply){.status = 0};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_dereg_mrs(mrs, 4), 0);
    const struct schema_sq_desc *d = fake_agent_asked(&a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_DEREG_MR);
    ck_assert_uint_eq(d->dereg_mr.vkey, 100);
    ck_assert_uint_eq(d->dereg_mr.more, 2);
    ck_assert_uint_eq(d->dereg_mr.vkeys[0], 101);
    ck_assert_uint_eq(d->dereg_mr.vkeys[1], 102);
    ck_assert_uint_eq(fake_lane_waiting(&a), 0);
    ck_assert_int_eq(kedge_dereg_mrs(NULL, 0), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(what_is_given_back_in_two_steps_is_awaited_once_and_other_requests_go_on_meanwhile)
{
    struct fake_agent a;
    struct kedge_mr *mrs[14];
    struct kedge_vqp *q;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    register_some(&a, s, mrs, 14);
    ck_assert_int_eq(kedge_dereg_mrs_begin(mrs, 13), 0); /* nobody has answered */
    ck_assert_int_eq(kedge_dereg_mrs_begin(mrs, 14), 0); /* those of before are left alone */
    ck_assert_uint_eq(fake_lane_waiting(&a), 3);         /* of 12, 1 and 1 */
    ck_assert_int_eq(kedge_mr_status(mrs[0]), -EINVAL);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), 14);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 10), 14);
    a.reply = (struct schema_reply){.status = 0};
    fake_agent_answer(&a);
    fake_agent_asked(&a);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), 2); /* the handles are all there */
    const uint32_t late = fake_lane_slot(&a, 0)->dereg_mr.tag;
    fake_lane_take(&a, 1); /* and is not answered yet */
    fake_agent_answer(&a);
    fake_agent_asked(&a);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), 1);
    ck_assert_int_eq(kedge_vqp_create(s, NULL, &q), 0);
    a.reply = (struct schema_reply){.value = {6, 11}};
    fake_agent_answer(&a);
    ck_assert_int_eq(kedge_connect(q, stranger), 0);
    fake_agent_asked(&a);
    struct schema_reply *r = &a.ro->reply[late % SCHEMA_REPLIES];
    r->status = 0;
    atomic_store(&r->tag, late);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, -1), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

/* The lane takes the request that waits first, and its answer comes when the test likes. */
static uint32_t take_request(struct fake_agent *a)
{
    const uint32_t tag = fake_lane_slot(a, 0)->dereg_mr.tag;
    fake_lane_take(a, 1);
    return tag;
}

static void answer(struct fake_agent *a, uint32_t tag)
{
    struct schema_reply *r = &a->ro->reply[tag % SCHEMA_REPLIES];
    r->status = 0;
    atomic_store(&r->tag, tag);
}

START_TEST(a_handle_that_is_to_be_given_back_again_ends_with_no_other_call)
{
    struct fake_agent a;
    struct kedge_mr *mrs[2];
    uint32_t tag[2];
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    register_some(&a, s, mrs, 2);
    ck_assert_int_eq(kedge_dereg_mr(mrs[0]), -ETIMEDOUT); /* nobody has answered */
    tag[0] = take_request(&a);
    answer(&a, tag[0]);
    ck_assert_int_eq(kedge_session_notices(s), 0); /* nothing that was begun is over */
    ck_assert_int_eq(kedge_dereg_mrs_begin(&mrs[1], 1), 0);
    tag[1] = take_request(&a);
    answer(&a, tag[1]);
    ck_assert_int_eq(kedge_session_notices(s), KEDGE_NOTICE_WITHDRAWN);
    ck_assert_int_eq(kedge_dereg_mrs_wait(s, 0), 0);
    ck_assert_int_eq(kedge_dereg_mr(mrs[0]), 0); /* which is still there */
    ck_assert_uint_eq(fake_lane_waiting(&a), 0);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(regions_that_are_given_back_one_by_one_leave_a_place_for_other_requests)
{
    struct fake_agent a;
    struct kedge_mr *mrs[SCHEMA_REPLIES];
    struct schema_token t = {.pool = 1, .vkey = 5, .length = 8};
    struct kedge_remote remote;
    char token[KEDGE_TOKEN_MAX];
    uint32_t first = 0;
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    register_some(&a, s, mrs, SCHEMA_REPLIES);
    for (uint32_t i = 0; i < SCHEMA_REPLIES - 1; i++) {
        ck_assert_int_eq(kedge_dereg_mrs_begin(&mrs[i], 1), 0);
        const uint32_t tag = take_request(&a);
        first = i == 0 ? tag : first;
    }
    ck_assert_int_eq(kedge_dereg_mrs_begin(&mrs[SCHEMA_REPLIES - 1], 1), -ETIMEDOUT);
    schema_token_format(&t, token);
    ck_assert_int_eq(kedge_import(s, token, &remote), 0);
    answer(&a, take_request(&a));
    answer(&a, first);
    ck_assert_int_eq(kedge_dereg_mrs_begin(&mrs[SCHEMA_REPLIES - 1], 1), 0);
    ck_assert_uint_eq(fake_lane_waiting(&a), 1);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

START_TEST(more_requests_than_there_are_places_for_answers_wait_for_one)
{
    struct fake_agent a;
    struct schema_token t = {.pool = 1, .vkey = 5, .length = 8};
    struct kedge_remote remote;
    char token[KEDGE_TOKEN_MAX];
    fake_agent_start(&a);
    struct kedge_session *s = fake_agent_open(&a);
    for (uint32_t i = 0; i < SCHEMA_REPLIES; i++) {
        t.vkey = 5 + i;
        schema_token_format(&t, token);
        ck_assert_int_eq(kedge_import(s, token, &remote), 0); /* nobody has answered */
        if (i == 0)
            a.asked = *fake_lane_slot(&a, 0);
        fake_lane_take(&a, 1);
    }
    schema_token_format(&t, token);
    ck_assert_int_eq(kedge_import(s, token, &remote), -ETIMEDOUT);
    atomic_store(&a.ro->reply[a.asked.import.tag % SCHEMA_REPLIES].tag, a.asked.import.tag);
    ck_assert_int_eq(kedge_import(s, token, &remote), 0);
    ck_assert_uint_eq(fake_lane_waiting(&a), 1);
    kedge_close(s);
    fake_agent_stop(&a);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_list_of_regions_is_one_request_and_all_its_handles_end_with_it)                            \
    T(what_is_given_back_in_two_steps_is_awaited_once_and_other_requests_go_on_meanwhile)          \
    T(a_handle_that_is_to_be_given_back_again_ends_with_no_other_call)                             \
    T(regions_that_are_given_back_one_by_one_leave_a_place_for_other_requests)                     \
    T(more_requests_than_there_are_places_for_answers_wait_for_one)

KEDGE_CHECK_MAIN("libclient.withdraw", TESTS)
