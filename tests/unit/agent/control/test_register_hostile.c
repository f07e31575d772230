/* SPDX-License-Identifier: Apache-2.0 */
/* A registration with what answers at a metaserver's URL, and means no good. */
#include "../../check_main.h"
#include "register_bed.h"

/* By whoever answers at its URL. */
START_TEST(a_lease_that_no_metaserver_gives_is_refused_with_a_sentence)
{
    static const unsigned wrong[] = {1, 99, 24 * 3600 * 1000 + 1, UINT32_MAX};
    const struct registration *r = begin();
    for (uint32_t i = 0; i < 4; i++) {
        w.lease_ms = wrong[i];
        answer(i);
        ck_assert_int_eq(r->state, REGISTRATION_LOST);
        ck_assert_ptr_nonnull(strstr(r->why, "its node_lease is none of 100ms to 1d"));
        wait_for_call(i + 2, "PUT");
    }
    w.lease_ms = 100;
    answer(4);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    end();
}
END_TEST

/* Which says so each time, and refuses the next one. */
START_TEST(a_metaserver_that_forgets_the_node_all_the_time_does_not_fill_the_log)
{
    unsigned registered = 0, lost = 0;
    const struct registration *r = begin();
    const uint64_t began_ns = w.world.now_ns;
    w.lease_ms = 200;
    for (uint32_t call = 0; call < 60; call++) {
        w.world.said = NULL;
        if (call % 2 == 0) {
            answer(call);
            if (w.resolving != NULL)
                resolve();
            ck_assert_int_eq(r->state, REGISTRATION_DONE);
            registered += w.world.said != NULL;
            wait_for_call(call + 2, "POST");
        } else {
            answer_by(call, 403, "{\"detail\":\"the token is another node's\"}");
            lost += w.world.said != NULL;
            wait_for_call(call + 2, "PUT");
        }
    }
    const uint64_t minutes = (w.world.now_ns - began_ns) / (60 * BASE_NS_PER_S) + 1;
    ck_assert_uint_le(registered, 8 * minutes);
    ck_assert_uint_le(lost, 12 * minutes);
    ck_assert_uint_ge(registered, 8);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_lease_that_no_metaserver_gives_is_refused_with_a_sentence)                                 \
    T(a_metaserver_that_forgets_the_node_all_the_time_does_not_fill_the_log)
KEDGE_CHECK_MAIN("agent.control.register_hostile", TESTS)
