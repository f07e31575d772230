/* SPDX-License-Identifier: Apache-2.0 */
/* Several tenants whose requests break queue pairs: what all of them together may cost others has a
 * bound, too. */
#include "../../check_main.h"
#include "world_accomplices.h"

enum {
    BANDS = 3,   /* tenants who break queue pairs: all but the honest one's */
    FELT = 16,   /* breaks that count as one */
    ALIVE = 100, /* passes, in which a request is answered unless it waits */
    MANY_BREAKS = 200,
    ROUNDS_OF_TWO = 5
};
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint8_t TIMEOUT = 19; /* 2 s, which a busy host does not disturb */
static const uint64_t SECOND = 1000000000, MS = 1000000;
static const uint64_t REST_NS = 50000000;

static struct world world;
static struct world *w = &world;

/* Of one tenant: who READs what the other one's node has taken away. */
struct band {
    struct world_worker gone, reader;
    uint32_t key;
    bool out;
};

static void open_bands(struct accomplices *s, struct band band[BANDS])
{
    accomplices_open(s, w, TIMEOUT);
    accomplices_warm(s);
    for (uint32_t i = 0; i < BANDS; i++) {
        const uint32_t tenant = HONEST + 1 + i;
        band[i].out = false;
        world_attach(w, &band[i].gone, 1, 2 + i, tenant);
        world_attach(w, &band[i].reader, 0, SESSIONS + 1 + i, tenant);
        band[i].key = world_register(w, &band[i].gone, 0, 4096, ALL);
        ck_assert_int_eq(world_connect(w, &band[i].reader, 0, 1), 0);
        ck_assert_int_eq(accomplices_one(w, &band[i].reader, SCHEMA_OP_READ, band[i].key),
                         IBV_WC_SUCCESS);
        world_take_away(w, &band[i].gone);
    }
}

static void close_bands(struct accomplices *s, struct band band[BANDS])
{
    for (uint32_t i = 0; i < BANDS; i++) {
        world_detach(w, &band[i].reader);
        world_detach(w, &band[i].gone);
    }
    accomplices_close(s);
}

/* One READ of each that has none out, one after the other, while they do not wait. How many broke a
 * queue pair. */
static uint32_t break_in_turn(struct band band[BANDS])
{
    uint32_t breaks = 0;
    struct schema_cqe e;
    for (uint32_t i = 0; i < BANDS; i++) {
        struct band *b = &band[i];
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 9, 0, 8, b->key, 0);
        if (!b->out) {
            ck_assert_int_eq(world_connect(w, &b->reader, 0, 1), 0);
            world_post(&b->reader, &d);
        }
        b->out = !world_poll(w, &b->reader, &e, ALIVE);
        breaks += !b->out && e.status == IBV_WC_REM_ACCESS_ERR;
    }
    return breaks;
}

START_TEST(several_tenants_break_no_more_queue_pairs_of_their_own_than_twice_as_many_as_one)
{
    enum { SECONDS = 5, OF_ONE = FELT + 20 * SECONDS };
    struct accomplices s;
    struct band band[BANDS];
    uint32_t breaks = 0;
    open_bands(&s, band);
    for (const uint64_t end_ns = w->now_ns + SECONDS * SECOND; w->now_ns < end_ns;) {
        const uint32_t more = break_in_turn(band);
        breaks += more;
        if (more == 0)
            world_sleep(w, 5 * MS);
    }
    ck_assert_uint_ge(breaks, OF_ONE / 2);
    ck_assert_msg(breaks <= 2 * OF_ONE, "%u breaks by %d tenants", breaks, BANDS);
    const uint64_t before = w->now_ns; /* nobody else waits for them */
    ck_assert_int_eq(accomplices_one(w, &s.honest, SCHEMA_OP_WRITE, s.key), IBV_WC_SUCCESS);
    ck_assert_uint_lt(w->now_ns - before, REST_NS / 10);
    close_bands(&s, band);
}
END_TEST

/* With errors that have no names each is found out by itself. */
START_TEST(several_tenants_break_together_no_more_under_strangers_than_one_may)
{
    struct accomplices s;
    struct band band[BANDS];
    open_bands(&s, band);
    for (uint32_t i = 0; i < BANDS; i++)
        for (uint32_t n = 0; n < MANY_BREAKS && world_stats(w, 0).tenants_quarantined <= i; n++)
            accomplices_break_beside(&s, &band[i].reader, band[i].key);
    ck_assert_uint_eq(world_stats(w, 0).tenants_quarantined, BANDS);
    ck_assert(!w->node[0].quarantined[HONEST % WORLD_TENANTS]);
    ck_assert_msg(s.breaks <= BREAKS * FELT + BANDS, "%u breaks", s.breaks);
    close_bands(&s, band);
}
END_TEST

/* Each costs a rest, which is seen by its tenant's name. */
START_TEST(who_breaks_two_at_a_time_waits_for_both)
{
    struct accomplices s;
    struct world_worker far;
    const uint32_t slot = GUILTY % WORLD_TENANTS;
    world_max_links = 8;
    accomplices_open(&s, w, TIMEOUT);
    world_attach(w, &far, 2, 0, GUILTY);
    const uint32_t far_key = world_register(w, &far, 0, 4096, ALL);
    accomplices_warm(&s);
    ck_assert_int_eq(world_connect(w, &s.guilty[1], 0, 2), 0);
    ck_assert_int_eq(accomplices_one(w, &s.guilty[1], SCHEMA_OP_READ, far_key), IBV_WC_SUCCESS);
    world_take_away(w, &far);
    for (uint32_t i = 0; i < MANY_BREAKS && world_stats(w, 0).tenants_quarantined == 0; i++)
        accomplices_break_beside(&s, &s.guilty[0], s.gone_key);
    world_sleep(w, SECOND);
    ck_assert_uint_eq(world_stats(w, 0).tenants_resting, 0);
    const uint64_t since = w->now_ns, rests = lane_rests(w->node[0].lane, slot);
    for (int i = 0; i < ROUNDS_OF_TWO; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            const struct schema_sq_desc d =
                world_rw(SCHEMA_OP_READ, 9, 0, 8, k == 0 ? s.gone_key : far_key, 0);
            ck_assert_int_eq(world_connect(w, &s.guilty[k], 0, 1 + k), 0);
            world_post(&s.guilty[k], &d);
        }
        for (uint32_t k = 0; k < 2; k++)
            ck_assert_uint_eq(world_done(w, &s.guilty[k], LONG).status, IBV_WC_REM_ACCESS_ERR);
    }
    ck_assert_uint_eq(world_stats(w, 0).tenants_resting, 1);
    ck_assert_uint_gt(lane_rests(w->node[0].lane, slot), rests);
    ck_assert_uint_eq(lane_rests(w->node[0].lane, HONEST % WORLD_TENANTS), 0);
    ck_assert_uint_ge(w->now_ns - since, (2 * ROUNDS_OF_TWO - 2) * REST_NS);
    world_sleep(w, SECOND);
    ck_assert_uint_eq(world_stats(w, 0).tenants_resting, 0);
    world_detach(w, &far);
    accomplices_close(&s);
    world_max_links = 0;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(several_tenants_break_no_more_queue_pairs_of_their_own_than_twice_as_many_as_one)            \
    T(several_tenants_break_together_no_more_under_strangers_than_one_may)                         \
    T(who_breaks_two_at_a_time_waits_for_both)
KEDGE_CHECK_MAIN("agent.lane.together", TESTS)
