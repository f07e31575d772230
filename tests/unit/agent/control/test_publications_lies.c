/* SPDX-License-Identifier: Apache-2.0 */
/* Names of workers' regions, at metaservers that lie, or answer late on purpose. */
#include "publication_calls.h"
#include "world_publications.h"

/* What a metaserver says to have takes the room of its own such names, and nothing else. */
START_TEST(a_metaserver_that_lies_takes_no_room_of_workers_or_of_another_one)
{
    begin(2);
    know_digests();
    snprintf(w.agent.tenants.at[0].config.name, AGENT_NAME, "any"); /* whose names it says */
    w.agent.tenants.at[0].config.region_names = 2;
    w.agent.publications.begun = 1;
    w.returned = 300;
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(20);
    answer_call(find_call(0), 200);
    ck_assert_uint_eq(w.agent.publications.count, PUBLICATIONS_RETURNED);
    for (int i = 0; i < 10; i++, pass_time(1000)) /* which it does not answer */
        ck_assert_uint_eq(w.agent.publications.out, 0);
    snprintf(w.agent.tenants.at[0].config.name, AGENT_NAME, "web");
    for (uint32_t i = 0; i < 3; i++) {
        publish(i, 0, NAME[i]);
        if (i == 2)
            break;
        for (int k = 0; k < 300 && w.said[i].count == 0; k++, pass_time(20)) {
            for (struct call *c = w.call; c < w.call + CALLS; c++)
                if (c->out && c->metaserver == 0 && c->puts)
                    answer_call(c, -ECONNREFUSED);
            serve(1);
        }
        HEARS(i, 1, 0);
    }
    HEARS(2, 1, -EDQUOT);
    w.shown[1][2] = vkey_of(3, 1); /* and the other one's is taken back */
    agent_publications_registered(&w.agent, 1, 0);
    for (int k = 0; k < 100; k++, pass_time(20))
        serve(1);
    ck_assert_uint_eq(w.shown[1][2], 0);
    end();
}
END_TEST

/* It neither takes back what it says to have, nor says anything else. */
START_TEST(a_list_of_which_nothing_finds_room_is_asked_for_less_and_less)
{
    begin(1);
    know_digests();
    w.agent.publications.begun = 1;
    w.returned = 100;
    agent_publications_registered(&w.agent, 0, 0);
    for (int i = 0; i < 2 * 600; i++, pass_time(500))
        for (struct call *c; (c = find_call(0)) != NULL;)
            answer_call(c, c->lists ? 200 : 500);
    ck_assert_uint_ge(w.lists, 8); /* in ten minutes */
    ck_assert_uint_le(w.lists, 30);
    ck_assert_uint_eq(w.agent.publications.listing[0].without_room, 100 - PUBLICATIONS_RETURNED);
    for (int i = 0; i < 1000; i++, pass_time(500))
        serve(0);
    ck_assert_uint_eq(w.returned, 0);
    ck_assert_uint_eq(w.agent.publications.listing[0].without_room, 0);
    end();
}
END_TEST

/* It has a former region of this node's, it says, which it takes back whenever it is told to. */
START_TEST(a_metaserver_that_lies_is_asked_seldom)
{
    for (int known = 0; known < 2; known++) {
        begin(1);
        if (known == 1)
            know_digests();
        publish(0, 0, "kv/0");
        serve(0);
        HEARS(0, 1, 0);
        agent_publications_registered(&w.agent, 0, 0);
        pass_time(20);
        w.calls = 0;
        for (int i = 0; i < 3000; i++, pass_time(20))
            for (struct call *c; (c = find_call(0)) != NULL;) {
                w.shown[0][0] = vkey_of(3, (uint32_t)i % 2);
                answer_call(c, c->lists                   ? 200
                               : c->puts                  ? 409
                               : known == 1 && i % 3 == 0 ? 404
                                                          : 204);
            }
        ck_assert_uint_ge(w.calls, 10);
        ck_assert_uint_le(w.calls, 60); /* in a minute */
        serve(0);
        for (int i = 0; i < 20; i++, pass_time(1000))
            serve(0);
        ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0)); /* and has it when it speaks the truth */
        end();
    }
}
END_TEST

/* Each of its renewals says that its store was put back, and its lists name what nobody here has:
 * so many that there is no room for them, or none. */
START_TEST(a_metaserver_that_lies_of_its_store_is_asked_seldom_too)
{
    for (int many = 0; many < 2; many++) {
        begin(1);
        know_digests();
        w.agent.publications.begun = 1;
        w.returned = many == 0 ? 0 : 100;
        for (int i = 0; i < 3000; i++, pass_time(20)) {
            for (struct call *c; (c = find_call(0)) != NULL;)
                answer_call(c, c->lists ? 200 : 500);
            agent_publications_registered(&w.agent, 0, 0);
        }
        ck_assert_uint_ge(w.lists, 3); /* in a minute */
        ck_assert_uint_le(w.lists, many == 0 ? 61 : 20);
        for (int i = 0; i < 1000; i++, pass_time(500))
            serve(0);
        ck_assert_uint_eq(w.returned, 0); /* it is heard when it speaks the truth */
        end();
    }
}
END_TEST

/* All that workers have is put there once more, and it does not answer. */
START_TEST(a_metaserver_that_is_slow_leaves_calls_for_another)
{
    char name[16];
    uint32_t out[METASERVERS] = {0};
    begin(2);
    for (uint32_t n = 0; n < 2 * PUBLICATIONS_OUT; n++) {
        snprintf(name, sizeof name, "n%u", n);
        publish(0, 0, name);
        for (uint32_t i = 0; i < METASERVERS; i++)
            for (struct call *c; (c = find_call(i)) != NULL;)
                answer_call(c, 201);
        HEARS(0, n + 1, 0);
    }
    for (uint32_t i = 0; i < METASERVERS; i++) {
        agent_publications_registered(&w.agent, i, 0);
        pass_time(20);
    }
    for (const struct call *c = w.call; c < w.call + CALLS; c++)
        out[c->metaserver] += c->out;
    ck_assert_uint_eq(out[0], PUBLICATIONS_OUT / 2);
    ck_assert_uint_eq(out[1], PUBLICATIONS_OUT / 2);
    for (struct call *c; (c = find_call(0)) != NULL || (c = find_call(1)) != NULL;)
        answer_call(c, 201);
    ck_assert_uint_eq(w.agent.publications.out, 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_metaserver_that_lies_takes_no_room_of_workers_or_of_another_one)                           \
    T(a_list_of_which_nothing_finds_room_is_asked_for_less_and_less)                               \
    T(a_metaserver_that_lies_is_asked_seldom)                                                      \
    T(a_metaserver_that_lies_of_its_store_is_asked_seldom_too)                                     \
    T(a_metaserver_that_is_slow_leaves_calls_for_another)

KEDGE_CHECK_MAIN("agent.control.publications_lies", TESTS)
