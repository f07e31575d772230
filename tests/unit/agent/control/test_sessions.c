/* SPDX-License-Identifier: Apache-2.0 */
/* Who stands behind whom when sessions are given back, and who is turned away for what. */
#include <errno.h>

#include "../../check_main.h"
#include "base/clock.h"
#include "session_bed.h"
#include "session_moves.h"

enum { A = 1, B = 2, AHEAD = 32, PLACES = 64 };

static void begin(void)
{
    session_bed_begin(PLACES, AHEAD);
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD);
}

static uint32_t attach(uint32_t tenant)
{
    uint32_t number;
    ck_assert_int_eq(agent_session_take(&pool, tenant, BED_UID, 1, &connections[0], &number), 0);
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
    agent_sessions_refill(&pool); /* the numbers that A and B had too */
    session_bed_make_all();
    pool.prewarm.sessions = pool.prewarm.arenas = 0;
    agent_sessions_tick(&pool);
    ck_assert_uint_gt(count_tasks(WORLD_UNMAKE_RINGS, 0), 8);
    ck_assert_uint_eq(count_tasks(WORLD_UNMAKE_RINGS, A) + count_tasks(WORLD_UNMAKE_RINGS, B), 0);
    session_bed_end();
}
END_TEST

/* No lane takes anything of it meanwhile, and arenas of two tenants may be zeroed for seconds. */
START_TEST(a_session_on_its_way_to_another_lane_stands_behind_no_tenants_task)
{
    begin();
    const uint32_t number = attach(A);
    struct agent_session *s = &pool.sessions[number];
    struct pool other = {.agent = &agent,
                         .config = &agent.config,
                         .world = &world.world,
                         .first = &pool,
                         .lane_number = 1};
    s->rings.memory = lane_memory_new(4, 16, 4, 4);
    ck_assert_ptr_nonnull(s->rings.memory);
    agent_session_move(s, &other);
    ck_assert(agent_session_moves_event(
        &pool, &(struct lane_event){.kind = LANE_EVENT_SESSION_LEFT, .session = number}));
    ck_assert_uint_eq(count_tasks(WORLD_LODGE_RINGS, 0), 1);
    ck_assert_uint_eq(count_tasks(WORLD_LODGE_RINGS, A), 0);
    ck_assert_uint_eq(pool.works, 1);
    session_bed_end_task(-ENOSPC); /* there is no room for its doorbell: it stays at home */
    ck_assert_ptr_null(s->move);
    ck_assert_uint_eq(other.moves.refused, 1);
    ck_assert_uint_eq(other.moves.lodgers, 0);
    lane_memory_free(s->rings.memory);
    s->rings.memory = NULL;
    session_bed_end();
}
END_TEST

/* A tenant has as many lodgers as it may have: its next one is not asked at each look, where one of
 * another tenant's could go. */
START_TEST(a_session_for_which_there_is_no_place_in_the_other_lane_rests)
{
    enum { MAY_LODGE = LANE_LODGERS / 2 + 1, COME = MAY_LODGE + 1 };
    struct pool other = {.agent = &agent,
                         .config = &agent.config,
                         .world = &world.world,
                         .first = &pool,
                         .lane_number = 1};
    uint32_t number[COME];
    begin();
    for (uint32_t i = 0; i < COME; i++) {
        agent_sessions_refill(&pool);
        session_bed_make_all();
        number[i] = attach(A);
        struct agent_session *s = &pool.sessions[number[i]];
        s->rings.memory = lane_memory_new(4, 16, 4, 4);
        ck_assert_ptr_nonnull(s->rings.memory);
        ck_assert_uint_eq(s->rest.until_ns, 0);
        agent_session_move(s, &other);
        ck_assert_int_eq(s->move != NULL, i < MAY_LODGE);
        ck_assert_int_eq(s->rest.until_ns > world_now_ns(&world.world), i >= MAY_LODGE);
    }
    ck_assert_uint_eq(other.moves.lodgers, MAY_LODGE);
    struct agent_session *first = &pool.sessions[number[0]]; /* which hears messages, as it says */
    const struct lane_event busy = {
        .kind = LANE_EVENT_SESSION_LEFT, .session = number[0], .status = -EBUSY};
    for (uint64_t n = 1; n <= 4; n *= 2) {
        ck_assert(agent_session_moves_event(&pool, &busy));
        ck_assert_uint_eq(first->rest.until_ns - world_now_ns(&world.world),
                          n * LANE_REST_MS * BASE_NS_PER_MS);
        agent_session_move(first, &other);
    }
    for (uint32_t i = 0; i < COME; i++) {
        struct agent_session *s = &pool.sessions[number[i]];
        agent_session_moves_stop(s);
        lane_memory_free(s->rings.memory);
        s->rings.memory = NULL;
    }
    session_bed_end();
}
END_TEST

/* Each attaches and leaves at once, and what it leaves takes as long as it likes. */
START_TEST(rings_that_are_lent_and_not_held_are_said_where_others_are_held)
{
    for (int held = 0; held < 2; held++) {
        session_bed_begin(PLACES, AHEAD);
        agent_sessions_refill(&pool);
        for (uint32_t i = 0; i < PLACES; i++)
            pool.sessions[i].rings.hold = held != 0 ? 3 : -EMFILE;
        world.said = NULL;
        session_bed_make_all();
        ck_assert_uint_eq(pool.count.ready, AHEAD);
        if (held != 0)
            ck_assert_ptr_null(world.said);
        else
            ck_assert_ptr_nonnull(strstr(world.said, "its pages cannot be held"));
        session_bed_end();
    }
}
END_TEST

START_TEST(who_comes_and_goes_waits_when_much_of_what_it_left_is_not_taken_back)
{
    uint32_t came = 0;
    begin();
    while (agent_session_is_ready(&pool, A)) {
        session_bed_leave(attach(A));
        came++;
        ck_assert_uint_lt(came, AHEAD / 2);
    }
    ck_assert_uint_ge(came, 8);
    ck_assert(agent_session_is_ready(&pool, B));
    const uint32_t served = bed.served;
    while (!agent_session_is_ready(&pool, A))
        session_bed_end_task(0);
    ck_assert_uint_gt(bed.served, served); /* its worker that waits is to be served */
    session_bed_end();
}
END_TEST

/* Who had it would have it in his hand how long zeroing takes. */
START_TEST(an_arena_with_holes_is_not_lent_again_and_either_is_its_tenants_task)
{
    for (int holes = 0; holes < 2; holes++) {
        session_bed_begin(PLACES, AHEAD);
        bed.holes = holes != 0;
        agent_sessions_refill(&pool);
        session_bed_make_all();
        session_bed_leave(attach(A));
        ck_assert_uint_eq(count_tasks(WORLD_ZERO_ARENA, A), !holes);
        ck_assert_uint_eq(count_tasks(WORLD_FREE_ARENA, A), holes);
        session_bed_make_all();
        ck_assert_uint_eq(agent_arenas_kept(&pool, A), !holes);
        session_bed_end();
    }
}
END_TEST

START_TEST(an_arena_that_cannot_be_deregistered_is_nobodys_and_stays_the_hosts)
{
    begin();
    const uint32_t number = attach(A);
    const uint64_t bytes = pool.count.arena_bytes;
    bed.dereg_status = -EIO;
    session_bed_leave(number);
    ck_assert_uint_eq(count_tasks(WORLD_ZERO_ARENA, 0) + count_tasks(WORLD_FREE_ARENA, 0), 0);
    session_bed_make_all();
    ck_assert_uint_eq(agent.tenants.at[A - 1].arena_bytes + agent.tenants.at[A - 1].arenas, 0);
    ck_assert_uint_eq(agent_arenas_kept(&pool, A), 0);
    ck_assert_uint_eq(pool.count.arena_bytes, bytes);
    bed.dereg_status = 0;
    session_bed_end();
    ck_assert_uint_eq(pool.count.arenas, 1);
}
END_TEST

START_TEST(who_asks_for_what_is_being_given_back_is_told_to_come_again)
{
    struct base_errbuf why;
    begin();
    const uint32_t one = attach(A), other = attach(A), number = attach(B);
    agent.config.max_sessions = 0; /* no arenas beside first ones */
    ck_assert_int_eq(agent_arena_check_room(&agent, A, &why), -EDQUOT);
    ck_assert_int_eq(agent_arena_check_room(&agent, B, &why), -EDQUOT);
    agent.config.max_sessions = PLACES;
    for (int i = 0; agent_arena_check_room(&agent, A, &why) == 0; i++) {
        ck_assert_int_lt(i, 4 * PLACES);
        agent.tenants.at[A - 1].arenas++; /* of one that is being freed */
    }
    ck_assert_int_eq(agent_arena_check_room(&agent, A, &why), -EAGAIN);
    agent.tenants.at[A - 1].arenas = 2;
    world.memory_most = (pool.count.arena_bytes + MIB) / 7 * 8;
    ck_assert_int_eq(agent_quota_check_host(&agent, 2 * MIB, &why), -ENOMEM);
    session_bed_leave(one);
    session_bed_leave(other);
    ck_assert_int_eq(agent_quota_check_host(&agent, 2 * MIB, &why), -EAGAIN);
    session_bed_make_all();
    session_bed_leave(number);
    session_bed_end();
}
END_TEST

static struct schema_control_error answered;

static int hear_answer(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                       const struct world_lent *lent)
{
    (void)w, (void)s, (void)lent;
    ck_assert_uint_eq(bytes, sizeof answered);
    memcpy(&answered, message, sizeof answered);
    return 0;
}

static bool close_socket(struct world *w, struct world_socket *s)
{
    (void)w, (void)s;
    return false;
}

static const struct world_socket_ops SOCKET_OPS = {.reply = hear_answer, .close = close_socket};

static uint32_t handed_over;

static int hear_session(struct world *w, struct world_socket *s, const void *message, size_t bytes,
                        const struct world_lent *lent)
{
    const struct schema_control_header *h = message;
    (void)w, (void)s, (void)bytes;
    handed_over += h->type == SCHEMA_CONTROL_ATTACHED && lent != NULL;
    return 0;
}

static bool nothing_is_unread(struct world *w, struct world_socket *s)
{
    (void)w, (void)s;
    return false;
}

static const struct world_socket_ops SESSION_OPS = {
    .reply = hear_session, .unread = nothing_is_unread, .close = close_socket};

/* A worker of B that is refused: when it is to come again, in ms; 0: it was not told. */
static uint32_t refuse_b(void)
{
    const struct schema_control_attach m = {.h = {.type = SCHEMA_CONTROL_ATTACH}};
    const struct attach_peer peer = {.uid = BED_UID + 1};
    struct connection *c = agent_attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    agent_connection_attach(c, &m);
    ck_assert_int_eq(answered.h.type, SCHEMA_CONTROL_ERROR);
    ck_assert_int_eq(answered.status, -EAGAIN);
    free(c);
    return answered.retry_ms;
}

START_TEST(who_finds_all_sessions_taken_comes_again_soon_if_some_are_ending)
{
    enum { FEW = 4 };
    uint32_t number[FEW];
    session_bed_begin(FEW, FEW);
    world.world.sockets = &SOCKET_OPS;
    agent.unread.wanted = agent.unread.most = 1200;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    agent.tenants.at[1].state = agent.tenants.at[2].state = AGENT_TENANT_FREE;
    for (int i = 0; i < FEW; i++)
        number[i] = attach(A); /* alone, it may have all */
    agent.tenants.at[1].state = AGENT_TENANT_LIVE;
    ck_assert_uint_eq(refuse_b(), 0);
    ck_assert_ptr_nonnull(strstr(answered.text, "raise max_sessions"));
    session_bed_event(number[0], LANE_EVENT_SESSION_OVER, 0); /* its worker has it still */
    ck_assert_uint_eq(refuse_b(), 0);
    agent_session_release(&pool, number[1], 0);
    ck_assert_uint_gt(refuse_b(), 0);
    ck_assert_ptr_nonnull(strstr(answered.text, "try again in a moment"));
    session_bed_end();
}
END_TEST

/* A device under an rdma cgroup's limit says EAGAIN, which to a worker is to come again. */
START_TEST(a_device_without_room_is_no_memory_to_who_attaches_and_who_wants_an_arena)
{
    const struct schema_control_attach m = {.h = {.type = SCHEMA_CONTROL_ATTACH}};
    const struct attach_peer peer = {.uid = BED_UID + 1};
    struct base_errbuf why;
    begin();
    world.world.sockets = &SOCKET_OPS;
    agent.unread.wanted = agent.unread.most = 1200;
    const uint32_t number = attach(A);
    bed.reg_status = -EAGAIN;
    ck_assert_int_eq(agent_session_add_arena(&pool, number, 4 * MIB, &why), 0);
    session_bed_make_all();
    ck_assert_int_eq(bed.arena_status, -ENOMEM);
    pool.count.ready = 0; /* nothing is ready for who comes */
    struct connection *c = agent_attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    agent_connection_attach(c, &m);
    agent_attach_failed(&pool, -EAGAIN);
    ck_assert_int_eq(answered.h.type, SCHEMA_CONTROL_ERROR);
    ck_assert_int_eq(answered.status, -ENOMEM);
    free(c);
    pool.count.ready = AHEAD - 1;
    bed.reg_status = 0;
    session_bed_make_all();
    session_bed_end();
}
END_TEST

/* A worker whose ATTACH says that it was sent so long ago, and of that time left then, and which
 * finds no session: after how many ms it is answered. That it is told when to come again is looked
 * at too. 5 s and more: it was not. */
static uint32_t count_wait(uint64_t age_ns, uint32_t left_ms)
{
    const struct attach_peer peer = {.uid = BED_UID + 1};
    const struct schema_control_attach m = {
        .h = {.type = SCHEMA_CONTROL_ATTACH}, .sent_ns = world.now_ns - age_ns, .left_ms = left_ms};
    uint32_t ms = 0;
    memset(&answered, 0, sizeof answered);
    struct connection *c = agent_attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    agent_connection_attach(c, &m);
    agent_attach_watched(c, 0, NULL);
    for (test_world_advance(&world, 0); answered.h.type == 0 && ms < 5000; ms++)
        test_world_advance(&world, BASE_NS_PER_MS);
    ck_assert_int_eq(answered.h.type, SCHEMA_CONTROL_ERROR);
    ck_assert_int_eq(answered.status, -EAGAIN);
    ck_assert_uint_gt(answered.retry_ms, 0);
    ck_assert_uint_eq(pool.queue.by_tenant.waiting, 0);
    agent_attach_closed(c);
    return ms;
}

static void begin_with_none(void)
{
    session_bed_begin(PLACES, 0);
    world.world.sockets = &SOCKET_OPS;
    agent.unread.wanted = agent.unread.most = 1200;
    world.now_ns = 100 * BASE_NS_PER_S;
}

START_TEST(who_waits_is_answered_before_he_gives_up_however_late_he_was_read)
{
    const uint64_t s = BASE_NS_PER_S;
    begin_with_none();
    ck_assert_uint_eq(count_wait(0, 5000), 4000);
    ck_assert_uint_eq(count_wait(s, 5000), 3000);
    ck_assert_uint_eq(count_wait(3 * s + s / 2, 5000), 500);
    ck_assert_uint_eq(count_wait(0, 1800), 800); /* it had to wait until it was connected */
    ck_assert_uint_eq(count_wait(s, 2500), 500);
    ck_assert_uint_eq(count_wait(4 * s, 5000), 0);
    ck_assert_uint_eq(count_wait(5 * s, 5000), 0);
    ck_assert_uint_eq(count_wait(0, 0), 0);
    session_bed_make_all(); /* what was begun for them */
    session_bed_end();
}
END_TEST

START_TEST(what_a_worker_says_of_its_time_and_cannot_be_keeps_nobody_longer_than_any)
{
    const uint64_t s = BASE_NS_PER_S;
    begin_with_none();
    ck_assert_uint_eq(count_wait(0, UINT32_MAX), 4000);
    ck_assert_uint_eq(count_wait(99 * s, UINT32_MAX), 4000);
    ck_assert_uint_eq(count_wait(-1ull, 5000), 4000); /* from the future */
    ck_assert_uint_eq(count_wait(-3600 * s, 5000), 4000);
    ck_assert_uint_eq(count_wait(3600 * s, 5000), 4000); /* another clock */
    ck_assert_uint_eq(count_wait(100 * s, 2000), 1000);
    ck_assert_uint_eq(count_wait(UINT64_MAX / 2, UINT32_MAX), 4000);
    session_bed_make_all();
    session_bed_end();
}
END_TEST

START_TEST(who_was_read_late_and_finds_a_session_has_it)
{
    const struct attach_peer peer = {.uid = BED_UID};
    const struct schema_control_attach m = {.h = {.type = SCHEMA_CONTROL_ATTACH}};
    struct lane_memory *memory = lane_memory_new(1, 1, 1, 1);
    begin();
    for (uint32_t i = 0; i < PLACES; i++)
        pool.sessions[i].rings.memory = memory; /* of whichever it gets */
    world.world.sockets = &SESSION_OPS;
    agent.unread.wanted = agent.unread.most = 1200;
    handed_over = 0;
    struct connection *c = agent_attach_connected(&agent, NULL, &peer);
    ck_assert_ptr_nonnull(c);
    agent_connection_attach(c, &m);
    ck_assert_uint_eq(handed_over, 1);
    agent_connection_close(c);
    agent_attach_closed(c);
    for (uint32_t i = 0; i < PLACES; i++)
        pool.sessions[i].rings.memory = NULL;
    lane_memory_free(memory);
    session_bed_end();
}
END_TEST

/* Four of what are to be ready fit into fifteen sixteenths, of which none is another's memory. */
START_TEST(what_is_made_ahead_leaves_the_host_some_of_its_memory)
{
    enum { FIT = 4 };
    struct base_errbuf why;
    session_bed_begin(PLACES, AHEAD);
    world.memory_most = (uint64_t)FIT * 2 * MIB / 15 * 16 + MIB;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.ready, AHEAD);
    ck_assert_uint_eq(pool.count.arenas_ahead, FIT);
    ck_assert_int_eq(agent_sessions_check(&pool, &why), 0);
    world.memory_most = 0; /* there is more now */
    world.now_ns += 10 * BASE_NS_PER_S;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.arenas_ahead, AHEAD);
    session_bed_end();
}
END_TEST

START_TEST(a_host_without_memory_for_one_arena_is_said_at_the_start)
{
    struct base_errbuf why;
    session_bed_begin(PLACES, AHEAD);
    world.memory_most = MIB;
    agent_sessions_refill(&pool);
    session_bed_make_all();
    ck_assert_uint_eq(pool.count.arenas_ahead, 0);
    ck_assert_int_eq(agent_sessions_check(&pool, &why), -ENOMEM);
    ck_assert_ptr_nonnull(strstr(why.text, "this host has no room for an arena of 2097152 bytes"));
    session_bed_end();
}
END_TEST

/* As long as its lane has something to wait for, it has ended and keeps its place. */
static uint32_t come_and_go(uint32_t tenant, uint32_t most)
{
    struct base_errbuf why;
    uint32_t times = 0;
    bool soon = false;
    while (times < most && agent_session_check_room(&agent, tenant, &soon, &why) == 0) {
        agent_sessions_refill(&pool);
        session_bed_make_all();
        agent_session_release(&pool, attach(tenant), 0);
        times++;
    }
    ck_assert(soon || times == most);
    return times;
}

START_TEST(who_comes_and_goes_leaves_each_other_tenant_its_part_of_all_sessions)
{
    enum { ALL = 24, PART = ALL / 2 / BED_TENANTS, SMALL = 2 };
    struct base_errbuf why;
    bool soon;
    session_bed_begin(ALL, 1);
    agent.tenants.at[2].config.sessions = SMALL; /* no more is kept for it */
    agent.tenants.at[0].config.memory = 1024 * MIB;
    ck_assert_uint_eq(come_and_go(A, ALL), ALL - PART - SMALL);
    ck_assert_uint_eq(come_and_go(B, PART), PART);
    ck_assert_int_eq(agent_session_check_room(&agent, B, &soon, &why), -EAGAIN);
    ck_assert(agent_quotas_recount(&agent));
    for (uint32_t i = 0; i < ALL; i++)
        if (pool.sessions[i].stage == STAGE_ENDING)
            session_bed_event(i, LANE_EVENT_SESSION_OVER, 0);
    ck_assert_int_eq(agent_session_check_room(&agent, B, &soon, &why),
                     -EAGAIN); /* not taken back yet */
    ck_assert(soon);
    ck_assert(agent_quotas_recount(&agent));
    session_bed_make_all();
    ck_assert_int_eq(agent_session_check_room(&agent, A, &soon, &why), 0);
    ck_assert_uint_eq(agent.of_sessions[0].places + agent.of_sessions[1].places, 0);
    session_bed_end();
}
END_TEST

/* The only session that A may have, which the agent has ended. */
static uint32_t begin_with_ended(void)
{
    session_bed_begin(PLACES, 1);
    agent_sessions_refill(&pool);
    session_bed_make_all();
    agent.tenants.at[A - 1].config.sessions = 1;
    const uint32_t number = attach(A);
    agent_sessions_end_all(&pool, SCHEMA_REASON_TENANT);
    return number;
}

/* Its worker may leave it open for as long as it likes; another one that came meanwhile would be
 * one too many then. */
START_TEST(a_session_that_was_ended_counts_until_its_worker_closes_it)
{
    struct base_errbuf why;
    const uint32_t number = begin_with_ended();
    ck_assert_int_eq(agent_quota_check(&pool, A, 1, 0, &why), -EDQUOT);
    ck_assert_ptr_nonnull(strstr(why.text, "1 of its sessions have ended"));
    session_bed_event(number, LANE_EVENT_SESSION_OVER, 0);
    ck_assert_int_eq(agent_quota_check(&pool, A, 1, 0, &why), -EDQUOT);
    agent_session_release(&pool, number, 0);
    ck_assert_int_eq(agent_quota_check(&pool, A, 1, 0, &why), 0);
    ck_assert(agent_quotas_recount(&agent));
    session_bed_end();
}
END_TEST

/* Closed while its lane has something to wait for. */
START_TEST(a_session_that_was_ended_and_closed_counts_no_more_though_it_is_not_over)
{
    struct base_errbuf why;
    const uint32_t number = begin_with_ended();
    agent_session_release(&pool, number, 0);
    ck_assert_int_eq(agent_quota_check(&pool, A, 1, 0, &why), 0);
    ck_assert(agent_quotas_recount(&agent));
    session_bed_event(number, LANE_EVENT_SESSION_OVER, 0);
    session_bed_end();
}
END_TEST

static bool says(uint32_t tenant, const char *what)
{
    struct base_errbuf why = {""};
    ck_assert_int_eq(agent_unread_check(&agent, tenant, &why), -EAGAIN);
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
    T(a_session_on_its_way_to_another_lane_stands_behind_no_tenants_task)                          \
    T(a_session_for_which_there_is_no_place_in_the_other_lane_rests)                               \
    T(rings_that_are_lent_and_not_held_are_said_where_others_are_held)                             \
    T(who_comes_and_goes_waits_when_much_of_what_it_left_is_not_taken_back)                        \
    T(an_arena_with_holes_is_not_lent_again_and_either_is_its_tenants_task)                        \
    T(an_arena_that_cannot_be_deregistered_is_nobodys_and_stays_the_hosts)                         \
    T(who_asks_for_what_is_being_given_back_is_told_to_come_again)                                 \
    T(a_device_without_room_is_no_memory_to_who_attaches_and_who_wants_an_arena)                   \
    T(what_is_made_ahead_leaves_the_host_some_of_its_memory)                                       \
    T(a_host_without_memory_for_one_arena_is_said_at_the_start)                                    \
    T(who_finds_all_sessions_taken_comes_again_soon_if_some_are_ending)                            \
    T(who_waits_is_answered_before_he_gives_up_however_late_he_was_read)                           \
    T(what_a_worker_says_of_its_time_and_cannot_be_keeps_nobody_longer_than_any)                   \
    T(who_was_read_late_and_finds_a_session_has_it)                                                \
    T(who_comes_and_goes_leaves_each_other_tenant_its_part_of_all_sessions)                        \
    T(a_session_that_was_ended_counts_until_its_worker_closes_it)                                  \
    T(a_session_that_was_ended_and_closed_counts_no_more_though_it_is_not_over)                    \
    T(who_is_sent_nothing_hears_whose_fault_that_is)

KEDGE_CHECK_MAIN("agent.control.sessions", TESTS)
