/* SPDX-License-Identifier: Apache-2.0 */
/* Who stands behind whom when sessions are given back, and who is turned away for what. */
#include "../../check_main.h"
#include "session_bed.h"

enum { A = 1, B = 2, AHEAD = 32, PLACES = 64 };

static void begin(void)
{
    session_bed_begin(PLACES, AHEAD);
    sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD);
}

static uint32_t attach(uint32_t tenant)
{
    uint32_t number;
    ck_assert_int_eq(session_take(&pool, tenant, BED_UID, 1, &connections[0], &number), 0);
    return number;
}

static uint32_t count_tasks(enum world_work work, uint32_t tenant)
{
    uint32_t n = 0;
    for (const struct world_task *t = world.tasks; t != NULL; t = t->next)
        n += t->work == work && t->tenant == tenant;
    return n;
}

START_TEST(what_a_tenant_has_left_is_taken_back_in_its_turn_and_what_nobody_had_in_the_agents)
{
    begin();
    session_bed_leave(attach(A));
    session_bed_leave(attach(B));
    ck_assert_uint_eq(count_tasks(WORLD_UNMAKE_RINGS, A), 1);
    ck_assert_uint_eq(count_tasks(WORLD_UNMAKE_RINGS, B), 1);
    session_bed_make_all();
    sessions_refill(&pool); /* the numbers that A and B had too */
    session_bed_make_all();
    pool.prewarm.sessions = pool.prewarm.arenas = 0;
    sessions_tick(&pool);
    ck_assert_uint_gt(count_tasks(WORLD_UNMAKE_RINGS, 0), 8);
    ck_assert_uint_eq(count_tasks(WORLD_UNMAKE_RINGS, A) + count_tasks(WORLD_UNMAKE_RINGS, B), 0);
    session_bed_end();
}
END_TEST

/* Each attaches and leaves at once, and what it leaves takes as long as it likes. */
START_TEST(who_comes_and_goes_waits_when_much_of_what_it_left_is_not_taken_back)
{
    uint32_t came = 0;
    begin();
    while (session_is_ready(&pool, A)) {
        session_bed_leave(attach(A));
        came++;
        ck_assert_uint_lt(came, AHEAD / 2);
    }
    ck_assert_uint_ge(came, 8);
    ck_assert(session_is_ready(&pool, B));
    const uint32_t served = bed.served;
    while (!session_is_ready(&pool, A))
        session_bed_end_task(0);
    ck_assert_uint_gt(bed.served, served); /* its worker that waits is to be served */
    session_bed_end();
}
END_TEST

static bool says(uint32_t tenant, const char *what)
{
    struct base_errbuf why = {""};
    ck_assert_int_eq(unread_check(&agent, tenant, &why), -EAGAIN);
    return strstr(why.text, what) != NULL;
}

START_TEST(who_is_sent_nothing_hears_whose_fault_that_is)
{
    session_bed_begin(PLACES, 0);
    agent.unread.wanted = agent.unread.most = 1200;
    agent.unread.of[B - 1].count = agent.unread.all = 1000;
    ck_assert(says(B, "workers of tenant"));
    agent.unread.of[B - 1].count = agent.unread.all = 10;
    agent.unread.most = 12; /* a former life's workers have the rest */
    ck_assert(says(A, "the kernel lets"));
    ck_assert(says(B, "the kernel lets"));
    agent.unread.of[B - 1].count = agent.unread.all = 1000;
    agent.unread.most = 1002;
    ck_assert(says(A, "the kernel lets"));
    ck_assert(says(B, "workers of tenant"));
    session_bed_end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_a_tenant_has_left_is_taken_back_in_its_turn_and_what_nobody_had_in_the_agents)          \
    T(who_comes_and_goes_waits_when_much_of_what_it_left_is_not_taken_back)                        \
    T(who_is_sent_nothing_hears_whose_fault_that_is)

KEDGE_CHECK_MAIN("agent.control.sessions", TESTS)
