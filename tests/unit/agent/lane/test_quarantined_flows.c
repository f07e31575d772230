/* SPDX-License-Identifier: Apache-2.0 */
/* Of the flows of a tenant in quarantine a pass looks at a few, however many there are, and a
 * bucket has those of few endpoints. */
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "resolve/flow_news.h"
#include "resolve/quarantined_flows.h"

enum { PEERS = 16384, TENANTS = 4, MANY = 1000, CROWDED = 64 /* slots so far apart */ };

static struct lane *l;
static struct flow flows[PEERS];

static void begin(void)
{
    memset(flows, 0, sizeof flows);
    l = calloc(1, sizeof *l);
    ck_assert_ptr_nonnull(l);
    l->config.max_peers = PEERS;
    l->config.max_tenants = TENANTS;
    l->culprits = calloc(TENANTS, sizeof l->culprits[0]);
    ck_assert_ptr_nonnull(l->culprits);
    TAILQ_INIT(&l->news);
    ck_assert_int_eq(lane_quarantined_flows_new(l), 0);
}

static void end(void)
{
    lane_quarantined_flows_free(l);
    free(l->culprits);
    free(l);
}

/* With a VQP that waits there. */
static void add_flow(uint32_t slot, uint32_t tenant_slot)
{
    struct flow *f = &flows[slot];
    f->peer_slot = slot;
    f->tenant_slot = tenant_slot;
    f->quarantined = 1;
    vqp_list_init(&f->parked);
    f->parked.count = 1;
    lane_quarantined_flow_link(l, f);
}

static uint32_t news_of(uint32_t tenant_slot)
{
    const struct flow *f;
    uint32_t count = 0;
    TAILQ_FOREACH(f, &l->news, by_news)
        count += f->tenant_slot == tenant_slot;
    return count;
}

START_TEST(of_many_flows_of_a_tenant_a_few_look_again_in_a_pass_and_all_in_the_end)
{
    begin();
    for (uint32_t i = 0; i < MANY; i++)
        add_flow(i, 1);
    lane_quarantine_let_rejoin(l, 1);
    uint32_t before = 0;
    for (uint32_t pass = 0; l->rejoins; pass++) {
        ck_assert_uint_lt(pass, MANY);
        lane_quarantined_flows_rejoin(l);
        ck_assert_uint_le(l->news_count - before, QUARANTINED_LOOKS);
        before = l->news_count;
    }
    ck_assert_uint_eq(l->news_count, MANY);
    end();
}
END_TEST

START_TEST(a_tenant_with_one_flow_does_not_wait_for_one_with_many)
{
    begin();
    for (uint32_t i = 0; i < MANY; i++)
        add_flow(i, i % 3);
    add_flow(MANY, 3);
    for (uint32_t i = 0; i < TENANTS; i++)
        lane_quarantine_let_rejoin(l, i);
    for (uint32_t pass = 0; pass < TENANTS; pass++) {
        for (uint32_t i = 0; i < 3; i++)
            lane_quarantine_let_rejoin(l, i); /* again and again */
        lane_quarantined_flows_rejoin(l);
    }
    ck_assert_uint_eq(news_of(3), 1);
    end();
}
END_TEST

START_TEST(one_that_goes_meanwhile_is_not_looked_at)
{
    begin();
    for (uint32_t i = 0; i < QUARANTINED_OF_EACH + 2; i++)
        add_flow(i, 1);
    lane_quarantine_let_rejoin(l, 1);
    lane_quarantined_flows_rejoin(l);
    lane_quarantined_flow_unlink(l, &flows[QUARANTINED_OF_EACH]);
    lane_quarantined_flows_rejoin(l);
    ck_assert_uint_eq(flows[QUARANTINED_OF_EACH].news, NEWS_NONE);
    ck_assert_uint_eq(flows[QUARANTINED_OF_EACH + 1].news, NEWS_COMES);
    for (uint32_t i = 0; i < QUARANTINED_OF_EACH + 2; i++)
        if (i != QUARANTINED_OF_EACH)
            lane_quarantined_flow_unlink(l, &flows[i]);
    ck_assert_uint_eq(l->quarantined.count, 0);
    while (l->rejoins)
        lane_quarantined_flows_rejoin(l);
    end();
}
END_TEST

START_TEST(a_bucket_has_the_flows_of_few_endpoints_whichever_a_tenant_uses)
{
    uint32_t most = 0;
    begin();
    for (uint32_t slot = 0; slot < PEERS; slot += CROWDED)
        add_flow(slot, 1);
    for (uint32_t slot = 0; slot < PEERS; slot++) {
        uint32_t count = 0;
        for (const struct flow *f = *quarantined_bucket(&l->quarantined, slot); f != NULL;
             f = f->next_quarantined)
            count++;
        most = count > most ? count : most;
    }
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_le(most, QUARANTINED_SLOTS);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_many_flows_of_a_tenant_a_few_look_again_in_a_pass_and_all_in_the_end)                     \
    T(a_tenant_with_one_flow_does_not_wait_for_one_with_many)                                      \
    T(one_that_goes_meanwhile_is_not_looked_at)                                                    \
    T(a_bucket_has_the_flows_of_few_endpoints_whichever_a_tenant_uses)
KEDGE_CHECK_MAIN("agent.lane.quarantined_flows", TESTS)
