/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver that has too much to do says when to come again: it is heeded, and not taken for one
 * that is silent. */
#include "../../check_main.h"
#include "prefer.h"
#include "register_bed.h"

enum { LEASE_MS = 30000 };

static struct registration *registered_with(uint32_t metaservers)
{
    struct registration *r = begin_with(metaservers);
    w.lease_ms = LEASE_MS;
    for (uint32_t i = 0; i < metaservers; i++) {
        wait_for_call(i + 1, "PUT");
        answer(i);
        resolve();
    }
    return r;
}

/* The renewal that is out, or the next one. */
static uint32_t next_renewal(void)
{
    const uint32_t next = w.world.calls;
    wait_for_call(next + 1, "POST");
    return next;
}

/* Milliseconds until it is put again, having been told to come after so many seconds. */
static uint64_t wait_after(uint32_t call, uint32_t after_s)
{
    const uint64_t from_ns = w.world.now_ns;
    w.world.retry_after_s = after_s;
    answer_by(call, 429, "{\"detail\":\"1024 registrations wait: come again in time\"}");
    while (w.world.calls == call + 1)
        test_world_advance(&w.world, BASE_NS_PER_MS);
    ck_assert_str_eq(w.world.call[call + 1].method, "PUT");
    return (w.world.now_ns - from_ns) / BASE_NS_PER_MS;
}

/* What one is told many are told: each comes at a moment of its own, and in time. */
START_TEST(one_that_is_put_off_comes_again_when_it_was_told_and_no_later_for_that)
{
    uint64_t least = UINT64_MAX, most = 0;
    struct registration *r = begin();
    for (uint32_t i = 0; i < 32; i++) {
        const uint64_t ms = wait_after(i, 3);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    ck_assert_uint_ge(least, 3000);
    ck_assert_uint_lt(most, 3000 + 1000 + 750);
    ck_assert_uint_gt(most - least, 500);
    ck_assert_ptr_nonnull(strstr(r->why, "429: 1024 registrations wait"));
    ck_assert_uint_eq(r->backoff_ms, BACKOFF_MS);
    ck_assert_uint_lt(wait_after(32, UINT32_MAX), RETRY_AFTER_MAX_S * 1250 + 1000);
    answer(33);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    end();
}
END_TEST

/* It is there, and has too much to do: that is no reason to ask others first. */
START_TEST(one_that_says_when_to_come_again_is_not_silent)
{
    const struct registration *r = registered_with(2);
    w.world.retry_after_s = 2;
    const uint32_t renewal = next_renewal();
    const uint64_t from_ns = w.world.now_ns;
    answer_by(renewal, 429, "{\"detail\":\"too much at once\"}");
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert(agent_prefer_is_sound(r));
    w.world.retry_after_s = 0;
    while (w.world.call[w.world.calls - 1].user != (const void *)r || w.world.calls <= renewal + 1)
        test_world_advance(&w.world, BASE_NS_PER_MS);
    ck_assert_uint_ge(w.world.now_ns - from_ns, 2 * BASE_NS_PER_S);
    ck_assert_uint_lt(w.world.now_ns - from_ns, 4 * BASE_NS_PER_S);
    end();
}
END_TEST

/* Whatever it says: the lease ends when it ends. */
START_TEST(one_that_says_later_for_ever_is_lost_with_its_lease)
{
    const struct registration *r = registered_with(1);
    const uint64_t begin_ns = w.world.now_ns;
    uint32_t seen = w.world.calls;
    w.world.retry_after_s = 3600;
    while (r->state == REGISTRATION_DONE) {
        ck_assert_uint_lt(w.world.now_ns - begin_ns, 2 * LEASE_MS * BASE_NS_PER_MS);
        test_world_advance(&w.world, BASE_NS_PER_MS);
        if (w.world.calls > seen)
            answer_by(seen++, 429, "{}");
    }
    ck_assert_str_eq(r->why, "it answers 429");
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(one_that_is_put_off_comes_again_when_it_was_told_and_no_later_for_that)                      \
    T(one_that_says_when_to_come_again_is_not_silent)                                              \
    T(one_that_says_later_for_ever_is_lost_with_its_lease)
KEDGE_CHECK_MAIN("agent.control.put_off", TESTS)
