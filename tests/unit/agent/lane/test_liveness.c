/* SPDX-License-Identifier: Apache-2.0 */
/* What an endpoint's signs say of it. */
#include "../../check_main.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/liveness.h"

static struct lane lane;
static struct peer peer;
static struct flow flow, own;

static void begin(void)
{
    lane = (struct lane){.now_ns = 1, .peers = &peer};
    peer = (struct peer){.flow = &flow};
    flow = own = (struct flow){.used = 1};
    TAILQ_INIT(&lane.news);
    vqp_list_init(&flow.parked);
}

static void hear(enum sign sign)
{
    lane_flow_heard(&lane, &flow, sign);
}

static uint64_t count_suspects(void)
{
    return atomic_load_explicit(&lane.counters.suspects, memory_order_relaxed);
}

START_TEST(a_sign_of_life_proves_and_a_flush_says_nothing)
{
    begin();
    hear(SIGN_NONE);
    ck_assert_int_eq(flow.liveness, LIVE_UNPROVEN);
    hear(SIGN_LIFE);
    ck_assert_int_eq(flow.liveness, LIVE_PROVEN);
    hear(SIGN_NONE);
    ck_assert_int_eq(flow.liveness, LIVE_PROVEN);
}
END_TEST

START_TEST(a_silence_is_one_doubt_while_a_record_is_believed)
{
    begin();
    peer.expires_ns = 100;
    hear(SIGN_LIFE);
    hear(SIGN_SILENCE);
    ck_assert_uint_eq(peer.expires_ns, lane.now_ns);
    ck_assert_uint_eq(atomic_load(&lane.counters.lookups_again), 1);
    hear(SIGN_SILENCE); /* it is asked for already */
    ck_assert_uint_eq(atomic_load(&lane.counters.lookups_again), 1);
}
END_TEST

START_TEST(after_a_silence_signs_of_life_prove_nothing_until_it_is_long_ago)
{
    begin();
    hear(SIGN_LIFE);
    hear(SIGN_SILENCE);
    hear(SIGN_LIFE);
    ck_assert_int_eq(flow.liveness, LIVE_DISTRUSTED);
    lane_flow_forgive(&lane, &flow);
    ck_assert_int_eq(flow.liveness, LIVE_DISTRUSTED);
    lane.now_ns = flow.distrust_ns;
    lane_flow_forgive(&lane, &flow);
    ck_assert_int_eq(flow.liveness, LIVE_UNPROVEN);
    hear(SIGN_LIFE);
    ck_assert_int_eq(flow.liveness, LIVE_PROVEN);
}
END_TEST

START_TEST(who_owes_a_sign_of_life_owes_it_until_it_comes)
{
    begin();
    hear(SIGN_LIFE);
    lane_flow_suspect(&lane, &flow);
    lane_flow_suspect(&lane, &flow);
    ck_assert(flow_is_suspect(&flow) && flow_is_proven(&flow));
    ck_assert_uint_eq(count_suspects(), 1);
    hear(SIGN_SILENCE);
    ck_assert(flow_is_suspect(&flow) && flow_is_distrusted(&flow));
    lane.now_ns = flow.distrust_ns;
    lane_flow_forgive(&lane, &flow);
    ck_assert(flow_is_suspect(&flow) && !flow_is_distrusted(&flow));
    ck_assert_uint_eq(count_suspects(), 1);
    hear(SIGN_LIFE);
    ck_assert_int_eq(flow.liveness, LIVE_PROVEN);
    ck_assert_uint_eq(count_suspects(), 0);
}
END_TEST

START_TEST(in_quarantine_a_flow_begins_with_what_is_known_and_owes_a_sign_unless_proven)
{
    static const struct {
        enum liveness own, begins;
    } cases[] = {{LIVE_UNPROVEN, SUSPECT_UNPROVEN},
                 {LIVE_PROVEN, LIVE_PROVEN},
                 {SUSPECT_PROVEN, LIVE_PROVEN},
                 {LIVE_DISTRUSTED, SUSPECT_DISTRUSTED},
                 {SUSPECT_DISTRUSTED, SUSPECT_DISTRUSTED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        own.liveness = (uint8_t)cases[i].own;
        lane_flow_inherit(&lane, &flow, &own);
        ck_assert_int_eq(flow.liveness, cases[i].begins);
    }
    begin();
    flow.rc = 1; /* on a connection of its own it is in nobody's way */
    lane_flow_inherit(&lane, &flow, &own);
    ck_assert_int_eq(flow.liveness, LIVE_UNPROVEN);
}
END_TEST

START_TEST(what_another_flow_has_heard_proves_and_forgives_no_silence)
{
    begin();
    lane_flow_vouch(&lane, &flow);
    ck_assert_int_eq(flow.liveness, LIVE_PROVEN);
    hear(SIGN_SILENCE);
    lane_flow_vouch(&lane, &flow);
    ck_assert_int_eq(flow.liveness, LIVE_DISTRUSTED);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_sign_of_life_proves_and_a_flush_says_nothing)                                              \
    T(a_silence_is_one_doubt_while_a_record_is_believed)                                           \
    T(after_a_silence_signs_of_life_prove_nothing_until_it_is_long_ago)                            \
    T(who_owes_a_sign_of_life_owes_it_until_it_comes)                                              \
    T(in_quarantine_a_flow_begins_with_what_is_known_and_owes_a_sign_unless_proven)                \
    T(what_another_flow_has_heard_proves_and_forgives_no_silence)
KEDGE_CHECK_MAIN("agent.lane.liveness", TESTS)
