/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "control/waiting.h"

enum { MAX_SESSIONS = 64, SHARE = 32, STRANGERS = 16, ALL = 128, MOST = 4096 };

static struct waiting room;
static struct waiter crowd[MOST];
static uint32_t used;

static void begin(void)
{
    memset(&room, 0, sizeof room);
    memset(crowd, 0, sizeof crowd);
    used = 0;
}

static struct waiter *next(uint32_t share, uid_t uid)
{
    ck_assert_uint_lt(used, MOST);
    crowd[used] = (struct waiter){.share = share, .uid = uid};
    return &crowd[used++];
}

/* One more comes, and whoever has to go for it goes. */
static int come(uint32_t share, uid_t uid)
{
    struct waiter *goes = NULL;
    int status = agent_waiting_enter(&room, MAX_SESSIONS, next(share, uid), &goes);
    if (goes != NULL)
        agent_waiting_leave(&room, goes);
    return status;
}

static uint32_t come_many(uint32_t share, uid_t uid, uint32_t times)
{
    uint32_t got = 0;
    while (times-- > 0)
        got += come(share, uid) == 0;
    return got;
}

START_TEST(strangers_of_any_number_have_one_share_together)
{
    begin();
    for (uid_t uid = 0; uid < 64; uid++)
        come_many(WAITING_SHARE_STRANGERS, uid, 20);
    ck_assert_uint_le(room.of[WAITING_SHARE_STRANGERS], STRANGERS);
    ck_assert_uint_eq(room.count, room.of[WAITING_SHARE_STRANGERS]);
    ck_assert_int_eq(come(WAITING_SHARE_TENANTS, 1000), 0);
    ck_assert_int_eq(come(WAITING_SHARE_SOCKETS, 0), 0);
}
END_TEST

START_TEST(a_strangers_uid_leaves_half_of_the_share_to_others)
{
    begin();
    struct waiter *const one = next(WAITING_SHARE_STRANGERS, 2), *goes = NULL;
    ck_assert_int_eq(agent_waiting_enter(&room, MAX_SESSIONS, one, &goes), 0);
    ck_assert_uint_eq(come_many(WAITING_SHARE_STRANGERS, 1, 100), 100);
    ck_assert_uint_eq(room.of[WAITING_SHARE_STRANGERS], 1 + STRANGERS / 2);
    ck_assert(one->in);
}
END_TEST

/* Who shows a right token may be any of them, of the same uid too. */
START_TEST(however_many_strangers_there_are_one_more_comes_in_and_has_its_time)
{
    for (uid_t uids = 1; uids < 64; uids *= 3) {
        begin();
        for (uint32_t i = 0; i < 200; i++)
            come(WAITING_SHARE_STRANGERS, i % uids);
        struct waiter *const one = next(WAITING_SHARE_STRANGERS, 0), *goes = NULL;
        ck_assert_int_eq(agent_waiting_enter(&room, MAX_SESSIONS, one, &goes), 0);
        ck_assert_ptr_nonnull(goes);
        agent_waiting_leave(&room, goes);
        for (uint32_t i = 0; i < STRANGERS / 2 - 1; i++)
            come(WAITING_SHARE_STRANGERS, i % uids);
        ck_assert(one->in);
    }
}
END_TEST

START_TEST(the_oldest_makes_room_in_its_own_share)
{
    begin();
    struct waiter *goes = NULL;
    ck_assert_int_eq(come(WAITING_SHARE_TENANTS + 1, 5), 0); /* older, and another's */
    struct waiter *const oldest = next(WAITING_SHARE_TENANTS, 5);
    ck_assert_int_eq(agent_waiting_enter(&room, MAX_SESSIONS, oldest, &goes), 0);
    ck_assert_ptr_null(goes);
    ck_assert_uint_eq(come_many(WAITING_SHARE_TENANTS, 5, SHARE - 1), SHARE - 1);
    ck_assert_uint_eq(room.of[WAITING_SHARE_TENANTS], SHARE);
    ck_assert_int_eq(
        agent_waiting_enter(&room, MAX_SESSIONS, next(WAITING_SHARE_TENANTS, 6), &goes), 0);
    ck_assert_ptr_eq(goes, oldest);
}
END_TEST

START_TEST(a_full_share_takes_one_more_and_grows_no_larger)
{
    begin();
    ck_assert_uint_eq(come_many(WAITING_SHARE_SOCKETS + 3, 7, 100), 100);
    ck_assert_uint_eq(room.count, SHARE);
    ck_assert_int_eq(come(WAITING_SHARE_SOCKETS + 4, 7), 0);
}
END_TEST

/* Tenants that all do what they may leave room for one more, whatever they hold. */
START_TEST(the_largest_share_makes_room_when_all_have_too_many)
{
    begin();
    for (uint32_t i = 0; i < 20; i++)
        come_many(WAITING_SHARE_TENANTS + i, i, SHARE);
    ck_assert_uint_eq(room.count, ALL);
    ck_assert_int_eq(come(WAITING_SHARE_SOCKETS + 9, 9), 0);
    ck_assert_uint_eq(room.of[WAITING_SHARE_SOCKETS + 9], 1);
    ck_assert_uint_eq(room.count, ALL);
}
END_TEST

START_TEST(one_that_is_being_closed_counts_and_is_given_up_by_nobody)
{
    begin();
    struct waiter *goes = NULL;
    for (uint32_t i = 0; i < SHARE; i++) {
        struct waiter *w = next(WAITING_SHARE_TENANTS, 1);
        w->stays = true;
        agent_waiting_add(&room, w);
        agent_waiting_add(&room, w); /* it is in already */
    }
    ck_assert_uint_eq(room.count, SHARE);
    ck_assert_int_eq(
        agent_waiting_enter(&room, MAX_SESSIONS, next(WAITING_SHARE_TENANTS, 1), &goes), -EAGAIN);
    agent_waiting_leave(&room, &crowd[0]);
    agent_waiting_leave(&room, &crowd[0]);
    ck_assert_uint_eq(room.count, SHARE - 1);
    ck_assert_int_eq(come(WAITING_SHARE_TENANTS, 1), 0);
}
END_TEST

START_TEST(a_share_grows_by_no_more_than_one_while_what_it_gave_up_is_being_closed)
{
    begin();
    uint32_t got = 0;
    for (int i = 0; i < 100; i++) {
        struct waiter *goes = NULL;
        got += agent_waiting_enter(&room, MAX_SESSIONS, next(WAITING_SHARE_TENANTS, 1), &goes) == 0;
        if (goes != NULL)
            goes->stays = true;
    }
    ck_assert_uint_eq(got, SHARE + 1);
    ck_assert_int_eq(come(WAITING_SHARE_TENANTS + 1, 1), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(strangers_of_any_number_have_one_share_together)                                             \
    T(a_strangers_uid_leaves_half_of_the_share_to_others)                                          \
    T(however_many_strangers_there_are_one_more_comes_in_and_has_its_time)                         \
    T(the_oldest_makes_room_in_its_own_share)                                                      \
    T(a_full_share_takes_one_more_and_grows_no_larger)                                             \
    T(the_largest_share_makes_room_when_all_have_too_many)                                         \
    T(one_that_is_being_closed_counts_and_is_given_up_by_nobody)                                   \
    T(a_share_grows_by_no_more_than_one_while_what_it_gave_up_is_being_closed)
KEDGE_CHECK_MAIN("agent.control.waiting", TESTS)
