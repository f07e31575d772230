/* SPDX-License-Identifier: Apache-2.0 */
/* Names of workers' regions, at metaservers that are late, lose requests or answers, refuse, forget
 * and are started again. Time, the lane's leases and the metaservers are the test's. */
#include "publication_calls.h"
#include "world_publications.h"

/* ---- one after the other */

START_TEST(it_is_published_when_each_metaserver_shows_it_and_the_first_one_decides)
{
    begin(2);
    publish(0, 0, "kv/0");
    ck_assert_ptr_nonnull(find_call(0));
    ck_assert_ptr_null(find_call(1)); /* not before the first has decided */
    serve(0);
    ck_assert_ptr_nonnull(find_call(1));
    ck_assert_uint_eq(w.said[0].count, 0);
    serve(1);
    HEARS(0, 1, 0);
    publish(0, 0, "kv/0"); /* it has it */
    HEARS(0, 2, 0);
    publish(0, 1, "kv/0");
    HEARS(0, 3, -EEXIST);
    publish(1, 0, "kv/0");
    HEARS(1, 1, -EEXIST);
    ck_assert_str_eq(w.said[1].why, "it is of a region of another worker of this node (pid 40)");
    ck_assert_uint_eq(agent_publications_of(&w.session[0], vkey_of(0, 0)), 1);
    unpublish(0, 0, "kv/1");
    HEARS(0, 4, -ENOENT);
    unpublish(0, 0, "kv/0");
    serve(0);
    ck_assert_uint_eq(w.said[0].count, 4);
    serve(1);
    HEARS(0, 5, 0);
    ck_assert(w.shown[0][0] == 0 && w.shown[1][0] == 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(one_that_another_metaserver_gives_to_another_is_taken_back_at_the_first)
{
    begin(2);
    w.shown[1][0] = 1;
    publish(0, 0, "kv/0");
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    serve(1);
    HEARS(0, 1, -EEXIST);
    ck_assert_str_eq(w.said[0].why, "it is so");
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(refusals_have_their_own_errors)
{
    static const struct {
        int answer, status;
    } rows[] = {{403, -EDQUOT}, {507, -ENOSPC}, {421, -EOPNOTSUPP}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(1);
        publish(0, 0, "kv/0");
        answer_call(find_call(0), rows[i].answer);
        HEARS(0, 1, rows[i].status);
        ck_assert_uint_eq(w.agent.publications.count, 0);
        end();
    }
    begin(1);
    publish(0, 0, "");
    HEARS(0, 1, -EINVAL);
    publish(0, 0, "a\nb");
    HEARS(0, 2, -EINVAL);
    agent_publish(&w.session[0], vkey_of(1, 0), "kv/0", "", on_said, &w.session[0]);
    HEARS(0, 3, -ENOENT); /* another session's */
    w.state[0][0] = LANE_LEASE_REVOKED;
    publish(0, 0, "kv/0");
    HEARS(0, 4, -EACCES);
    w.pool.registration[0].state = REGISTRATION_LOST;
    publish(0, 1, "kv/0");
    HEARS(0, 5, -EHOSTUNREACH);
    end();
}
END_TEST

START_TEST(a_metaserver_that_does_not_answer_is_asked_again_until_its_worker_has_waited_long_enough)
{
    begin(2);
    publish(0, 0, "kv/0");
    for (int i = 0; i < 3; i++) {
        answer_call(find_call(0), 500);
        ck_assert_ptr_nonnull(find_call(1)); /* the next one is asked meanwhile */
        answer_call(find_call(1), -ECONNREFUSED);
        pass_time(800);
    }
    ck_assert_uint_eq(w.said[0].count, 0);
    pass_time(RESOLVE_MS);
    ck_assert_uint_eq(w.said[0].count, 1);
    ck_assert(w.said[0].status == -ETIMEDOUT || w.said[0].status == -EHOSTUNREACH);
    /* What it may have been given all the same is taken back. */
    pass_time(1000);
    for (int i = 0; i < 40; i++, pass_time(1000))
        serve(0), serve(1);
    ck_assert(w.shown[0][0] == 0 && w.shown[1][0] == 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(one_that_is_silent_keeps_nobody_from_what_another_has_decided)
{
    begin(2);
    publish(0, 0, "kv/0");
    serve(0);
    answer_call(find_call(1), -ETIMEDOUT);
    HEARS(0, 1, 0);
    pass_time(1000);
    serve(1); /* and is told when it answers */
    ck_assert_uint_eq(w.shown[1][0], vkey_of(0, 0));
    end_session(0);
    pass_time(1000);
    serve(0);
    answer_call(find_call(1), -ETIMEDOUT);
    publish(1, 0, "kv/0"); /* somebody else's turn here: the one that answers decides */
    serve(0);
    ck_assert_uint_eq(w.said[1].count, 0);
    answer_call(find_call(1), -ETIMEDOUT);
    HEARS(1, 1, 0);
    pass_time(20000);
    serve(1);
    ck_assert(w.shown[0][0] == vkey_of(1, 0) && w.shown[1][0] == vkey_of(1, 0));
    end();
}
END_TEST

START_TEST(a_metaserver_that_was_started_again_is_told_again)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    w.shown[0][0] = 0;
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    /* Another life of the node: what it had is nobody's. */
    w.shown[0][0] = 0;
    w.agent.incarnation++;
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    /* Another one has it since: for long, and it is lost. */
    w.shown[0][0] = 1;
    agent_publications_registered(&w.agent, 0, 0);
    for (int i = 0; i < 5; i++, pass_time(1000))
        serve(0);
    ck_assert_uint_eq(w.agent.publications.count, 1);
    for (int i = 0; i < 10; i++, pass_time(1000))
        serve(0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    ck_assert_uint_eq(w.agent.publications.lost, 1);
    end();
}
END_TEST

/* A store that was put back has a former region of this life under the name: that goes first. */
START_TEST(a_former_region_of_its_own_node_keeps_no_name_from_another_one)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    unpublish(0, 0, "kv/0");
    serve(0);
    w.said[0].count = 0;
    publish(0, 1, "kv/0");
    serve(0);
    HEARS(0, 1, 0);
    w.shown[0][0] = vkey_of(0, 0);
    agent_publications_registered(&w.agent, 0, 0);
    for (int i = 0; i < 5; i++, pass_time(1000))
        serve(0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 1));
    ck_assert_uint_eq(w.agent.publications.lost, 0);
    w.shown[0][1] = vkey_of(0, 0); /* and before its worker has heard that it is published */
    publish(0, 1, "kv/1");
    for (int i = 0; i < 5; i++, pass_time(1000))
        serve(0);
    HEARS(0, 2, 0);
    ck_assert_uint_eq(w.shown[0][1], vkey_of(0, 1));
    end();
}
END_TEST

/* They are nobody's any more, and no call of any worker would name them: the list does. */
START_TEST(names_that_are_there_again_since_a_store_was_put_back_are_taken_back)
{
    for (int named = 0; named < 2; named++) {
        begin(2);
        know_digests();
        publish(0, 0, "kv/0");
        serve(0), serve(1);
        unpublish(0, 0, "kv/0");
        serve(0), serve(1);
        if (named == 1) { /* beside one that stays, and under a name that has another region now */
            publish(1, 0, "kv/1");
            serve(0), serve(1);
            publish(2, 0, NAME[2]);
            serve(0), serve(1);
        }
        ck_assert_uint_eq(w.agent.publications.count, named * 2);
        ck_assert_uint_eq(agent_publications_due_ns(&w.agent) == DUE_NEVER, named == 0);
        w.shown[0][0] = vkey_of(0, 0);
        w.shown[0][2] = vkey_of(3, 0);
        agent_publications_registered(&w.agent, 0, 0);
        pass_time(100);
        answer_call(find_call(0), -ETIMEDOUT);
        for (int i = 0; i < 10; i++, pass_time(1000))
            serve(0);
        ck_assert_uint_eq(w.shown[0][0], 0);
        ck_assert_uint_eq(w.shown[0][1], named == 1 ? vkey_of(1, 0) : 0);
        ck_assert_uint_eq(w.shown[0][2], named == 1 ? vkey_of(2, 0) : 0);
        ck_assert_uint_eq(w.agent.publications.count, named * 2);
        ck_assert_uint_eq(w.agent.publications.lost, 0);
        end();
    }
}
END_TEST

/* It waits as long as its worker does, and one that has it says so. */
START_TEST(a_name_that_may_be_anothers_is_asked_for_again_while_its_worker_waits)
{
    begin(1);
    know_digests();
    publish(0, 0, "kv/0");
    ck_assert(!find_call(0)->again);
    for (int i = 0; i < 3; i++) {
        answer_call(find_call(0), 503);
        pass_time(1000);
    }
    serve(0);
    HEARS(0, 1, 0);
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(100);
    ck_assert(find_call(0)->again || w.call[1].again);
    for (int i = 0; i < 20; i++, pass_time(1000)) /* for longer than another one's name is let be */
        for (struct call *c; (c = find_call(0)) != NULL;)
            answer_call(c, c->lists ? 200 : 503);
    ck_assert_uint_eq(w.agent.publications.lost, 0);
    publish(1, 0, "kv/1");
    for (int i = 0; i < 400; i++, pass_time(20))
        for (struct call *c; (c = find_call(0)) != NULL;)
            answer_call(c, 503);
    HEARS(1, 1, -EAGAIN);
    ck_assert_ptr_nonnull(strstr(w.said[1].why, "was put back"));
    end();
}
END_TEST

/* The other one may have begun since, and does not know that its store was put back. */
START_TEST(while_one_says_that_names_settle_no_other_one_decides)
{
    for (int i = 0; i < 4; i++) {
        const uint32_t knows = i % 2, other = 1 - knows;
        const bool dies = i >= 2;
        begin(2);
        publish(0, 0, "kv/0");
        if (knows == 1) /* it is asked since the first one has begun just now */
            answer_call(find_call(0), -ECONNREFUSED);
        for (int k = 0; k < 100; k++, pass_time(20)) {
            ck_assert_ptr_null(find_call(other));
            if (find_call(knows) != NULL)
                answer_call(find_call(knows), 503);
        }
        ck_assert_uint_eq(w.said[0].count, 0);
        if (dies) /* nobody knows who had it any more, when it may be asked again */
            w.pool.registration[knows].state = REGISTRATION_LOST;
        for (int k = 0; k < 80; k++, pass_time(20))
            serve(dies ? other : knows);
        serve(other);
        HEARS(0, 1, 0);
        ck_assert_uint_eq(w.shown[other][0], vkey_of(0, 0));
        ck_assert_uint_eq(w.shown[knows][0], dies ? 0 : vkey_of(0, 0));
        end();
    }
}
END_TEST

/* Names that are there again are taken back whatever the tenant has here by now, and whether it is
 * here at all. */
START_TEST(names_that_are_there_again_are_taken_back_whosever_they_were)
{
    for (int known = 0; known < 2; known++) {
        begin(1);
        know_digests();
        w.agent.publications.begun = 1;
        if (known == 0)
            w.agent.tenants.at[0].state = AGENT_TENANT_FREE;
        else
            w.agent.publications.account[0] =
                (struct publications_account){.tenant = 5, .count = PUBLICATIONS_MOST};
        w.shown[0][0] = vkey_of(0, 0);
        w.returned = 3 * PUBLICATIONS_RETURNED; /* in parts */
        agent_publications_registered(&w.agent, 0, 0);
        for (int i = 0; i < 1000; i++, pass_time(20))
            serve(0);
        ck_assert_uint_eq(w.returned, 0);
        ck_assert_uint_eq(w.shown[0][0], 0);
        ck_assert_uint_eq(w.agent.publications.count, 0);
        ck_assert_uint_eq(w.agent.publications.listing[0].without_room, 0);
        end();
    }
}
END_TEST

/* A worker publishes what a metaserver says to have, while it is asked to take that back. */
START_TEST(a_name_that_is_there_again_is_a_workers_when_it_wants_it)
{
    begin(1);
    know_digests();
    w.agent.publications.begun = 1;
    w.shown[0][0] = vkey_of(0, 0);
    agent_publications_registered(&w.agent, 0, 0);
    pass_time(20);
    answer_call(find_call(0), 200);
    ck_assert_uint_eq(w.agent.publications.listing[0].out, 1);
    publish(0, 0, NAME[0]);
    ck_assert_uint_eq(w.agent.publications.account[0].count +
                          w.agent.publications.account[2 * AGENT_TENANT_SLOTS - 1].count,
                      1);
    for (int k = 0; k < 100; k++, pass_time(20))
        serve(0);
    HEARS(0, 1, 0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 0));
    ck_assert_uint_eq(w.agent.publications.listing[0].out + w.agent.publications.out, 0);
    end();
}
END_TEST

START_TEST(a_region_that_is_given_back_or_revoked_has_its_name_no_more)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    w.state[0][0] = LANE_LEASE_NONE; /* which nobody tells */
    pass_time(PUBLICATIONS_LOOK_MS + 100);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    publish(0, 1, "kv/0");
    serve(0);
    w.state[0][1] = LANE_LEASE_REVOKED;
    agent_publications_look(&w.agent);
    pass_time(20);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    ck_assert_uint_eq(w.agent.publications.count, 0);
    end();
}
END_TEST

START_TEST(a_session_a_tenant_and_a_second_have_so_many)
{
    char name[16];
    uint32_t n = 0;
    begin(1);
    for (; w.said[0].status == 0; n++) {
        snprintf(name, sizeof name, "n%u", n);
        publish(0, 0, name);
        for (struct call *c; (c = find_call(0)) != NULL;)
            answer_call(c, 201);
        ck_assert_uint_eq(w.said[0].count, n + 1);
    }
    ck_assert_uint_eq(n, PUBLICATIONS_OF_SESSION + 1);
    ck_assert_int_eq(w.said[0].status, -EDQUOT);
    for (n = 0; w.said[1].status == 0; n++) { /* it is asked for and given up, over and over */
        publish(1, 0, "kv/0");
        if (w.said[1].count == 0)
            answer_call(find_call(0), 403);
        w.said[1].status = w.said[1].status == -EDQUOT ? 0 : w.said[1].status;
        w.said[1].count = 0;
    }
    ck_assert_int_eq(w.said[1].status, -EAGAIN);
    ck_assert_uint_le(n, PUBLICATIONS_PER_S);
    end();
}
END_TEST

START_TEST(so_many_are_asked_at_a_time_and_who_waits_is_told_when_the_session_ends)
{
    uint32_t out = 0;
    begin(1);
    for (uint32_t i = 0; i < SESSIONS; i++)
        publish(i, 0, NAME[i]);
    for (struct call *c = w.call; c < w.call + CALLS; c++)
        out += c->out;
    ck_assert_uint_eq(out, SESSIONS);
    ck_assert_uint_eq(w.agent.publications.out, SESSIONS);
    end_session(0);
    HEARS(0, 1, -ECANCELED);
    answer_call(find_call(0), -ETIMEDOUT); /* it may come into force yet */
    pass_time(1000);
    serve(0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    w.shown[0][0] = vkey_of(0, 0); /* as it does */
    pass_time(CALL_MS);
    serve(0);
    pass_time(1000);
    ck_assert_uint_eq(w.shown[0][0], 0);
    end();
}
END_TEST

START_TEST(a_name_for_another_tenant_is_another_name)
{
    begin(1);
    publish(0, 0, "kv/0");
    serve(0);
    HEARS(0, 1, 0);
    w.shown[0][0] = 0; /* this metaserver does not tell one space from another */
    publish_for(0, 1, "kv/0", "db");
    ck_assert_str_eq(w.reader, "db");
    serve(0);
    HEARS(0, 2, 0);
    ck_assert_uint_eq(w.shown[0][0], vkey_of(0, 1));
    publish_for(1, 0, "kv/0", "db");
    HEARS(1, 1, -EEXIST);
    publish_for(1, 0, "kv/0", "web");
    HEARS(1, 2, -EINVAL);
    ck_assert_ptr_nonnull(strstr(w.said[1].why, "own tenant"));
    publish_for(1, 0, "kv/0", "d,b");
    HEARS(1, 3, -EINVAL);
    ck_assert_uint_eq(w.agent.publications.count, 2);
    unpublish(0, 1, ""); /* as its library does, which the query names */
    serve(0);
    HEARS(0, 3, 0);
    ck_assert_uint_eq(w.shown[0][0], 0);
    ck_assert_uint_eq(w.agent.publications.count, 1);
    w.reader[0] = '\0';
    end();
}
END_TEST

START_TEST(a_tenant_has_as_many_on_a_node_as_its_quota_says)
{
    begin(1);
    w.agent.tenants.at[0].config.region_names = 2;
    publish(0, 0, "kv/0");
    serve(0);
    publish(1, 0, "kv/1");
    serve(0);
    publish(2, 0, NAME[2]);
    HEARS(2, 1, -EDQUOT);
    ck_assert_ptr_nonnull(strstr(w.said[2].why, "have 2 names on this node"));
    w.agent.tenants.at[0].config.region_names = 3;
    publish(2, 0, NAME[2]);
    serve(0);
    HEARS(2, 2, 0);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(it_is_published_when_each_metaserver_shows_it_and_the_first_one_decides)                     \
    T(one_that_another_metaserver_gives_to_another_is_taken_back_at_the_first)                     \
    T(refusals_have_their_own_errors)                                                              \
    T(a_metaserver_that_does_not_answer_is_asked_again_until_its_worker_has_waited_long_enough)    \
    T(one_that_is_silent_keeps_nobody_from_what_another_has_decided)                               \
    T(a_metaserver_that_was_started_again_is_told_again)                                           \
    T(a_former_region_of_its_own_node_keeps_no_name_from_another_one)                              \
    T(names_that_are_there_again_since_a_store_was_put_back_are_taken_back)                        \
    T(a_name_that_may_be_anothers_is_asked_for_again_while_its_worker_waits)                       \
    T(while_one_says_that_names_settle_no_other_one_decides)                                       \
    T(names_that_are_there_again_are_taken_back_whosever_they_were)                                \
    T(a_name_that_is_there_again_is_a_workers_when_it_wants_it)                                    \
    T(a_region_that_is_given_back_or_revoked_has_its_name_no_more)                                 \
    T(a_session_a_tenant_and_a_second_have_so_many)                                                \
    T(so_many_are_asked_at_a_time_and_who_waits_is_told_when_the_session_ends)                     \
    T(a_name_for_another_tenant_is_another_name)                                                   \
    T(a_tenant_has_as_many_on_a_node_as_its_quota_says)
KEDGE_CHECK_MAIN("agent.control.publications", TESTS)
