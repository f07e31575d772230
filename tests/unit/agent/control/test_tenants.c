/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "control/tenants.h"

static struct agent_tenants t;
static struct agent_config file;
static struct base_errbuf why;

static struct agent_tenant_config tenant(const char *name, uid_t first, uid_t last)
{
    struct agent_tenant_config c = {
        .id = 0, .uid_ranges = 1, .uids = {{first, last}}, .sessions = 1};
    snprintf(c.name, sizeof c.name, "%s", name);
    for (const char *p = name; *p != '\0'; p++)
        c.id = c.id * 31 + (uint8_t)*p;
    return c;
}

/* The file says "own", with uids 1000 to 1999. */
static void begin(void)
{
    file.tenants = 1;
    file.tenant[0] = tenant("own", 1000, 1999);
    agent_tenants_init(&t, &file);
}

/* -1: nobody leaves; else who does. */
static int set(const struct agent_tenant_config *list, uint32_t count)
{
    bool leave[AGENT_TENANT_SLOTS];
    int one = -1;
    (void)agent_tenants_set(&t, list, count, leave);
    ck_assert_str_eq(t.why, "");
    for (int i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (leave[i]) {
            ck_assert_int_eq(one, -1);
            one = i;
        }
    return one;
}

/* What cannot be is said in these words; whether it may be later. */
static bool set_but(const struct agent_tenant_config *list, uint32_t count, const char *sentences)
{
    bool leave[AGENT_TENANT_SLOTS];
    bool later = agent_tenants_set(&t, list, count, leave);
    ck_assert_str_eq(t.why, sentences);
    return later;
}

START_TEST(what_the_metaservers_say_is_added_changed_and_taken_away)
{
    begin();
    ck_assert_int_eq(agent_tenants_find(&t, 1500), 0);
    ck_assert_int_eq(agent_tenants_find(&t, 2000), -EACCES);
    struct agent_tenant_config list[2] = {tenant("a", 2000, 2000), tenant("b", 3000, 3009)};
    ck_assert_int_eq(set(list, 2), -1);
    int a = agent_tenants_find(&t, 2000), b = agent_tenants_find(&t, 3009);
    ck_assert_int_gt(a, 0);
    ck_assert_int_gt(b, 0);
    ck_assert_int_ne(a, b);
    list[0].sessions = 77;
    ck_assert_int_eq(set(list, 1), b); /* b is gone, a has another quota */
    ck_assert_uint_eq(t.at[a].config.sessions, 77);
    ck_assert_int_eq(agent_tenants_find(&t, 3000), -EACCES);
    ck_assert_int_eq(t.at[b].state, AGENT_TENANT_LEAVING);
    ck_assert_int_eq(agent_tenants_find(&t, 1500), 0);
}
END_TEST

START_TEST(who_may_attach_by_the_file_alone_is_refused_by_a_tenant_in_its_place_which_is_said)
{
    const char *uids = "tenant own: replaces [tenant own] of this agent's file, whose uids have no "
                       "effect: say such at the metaserver too";
    struct agent_tenant_config bare = tenant("own", 0, 0);
    begin();
    bare.uid_ranges = 0;
    ck_assert(!set_but(&bare, 1, uids));
    ck_assert_int_eq(agent_tenants_find(&t, 1500), -EACCES);
    ck_assert_int_eq(agent_tenants_reload(&t, &file, &why), 0);
    ck_assert_str_eq(t.why, uids);
    struct agent_tenant_config with = tenant("own", 1000, 1000); /* fewer are meant so */
    ck_assert_int_eq(set(&with, 1), -1);
    ck_assert(!set_but(&bare, 1, uids));
    ck_assert_int_eq(set(NULL, 0), -1); /* the file's own again */
    ck_assert_int_eq(agent_tenants_find(&t, 1500), 0);
}
END_TEST

START_TEST(a_place_is_free_when_nothing_is_left_of_its_tenant_and_is_its_own_until_then)
{
    begin();
    struct agent_tenant_config a = tenant("a", 2000, 2000), b = tenant("b", 3000, 3000);
    (void)set(&a, 1);
    int i = agent_tenants_find(&t, 2000);
    t.at[i].arenas = 1;
    ck_assert_int_eq(set(&b, 1), i);
    agent_tenants_release(&t, (uint32_t)i);
    ck_assert_int_eq(t.at[i].state, AGENT_TENANT_LEAVING); /* its arena is not freed yet */
    ck_assert_int_ne(agent_tenants_find(&t, 3000), i);
    struct agent_tenant_config both[2] = {a, b};
    ck_assert_int_eq(set(both, 2), -1); /* said again: it is what it was */
    ck_assert_int_eq(agent_tenants_find(&t, 2000), i);
    ck_assert_uint_eq(t.at[i].arenas, 1);
    ck_assert_int_eq(set(&b, 1), i);
    t.at[i].arenas = 0;
    agent_tenants_release(&t, (uint32_t)i);
    ck_assert_int_eq(t.at[i].state, AGENT_TENANT_FREE);
    agent_tenants_release(&t, 0); /* the file's own, live: nothing happens */
    ck_assert_int_eq(agent_tenants_find(&t, 1500), 0);
}
END_TEST

static struct agent_tenant_config with_token(struct agent_tenant_config c, uint8_t fill,
                                             uint64_t expires_ms)
{
    struct agent_token *token = &c.token[c.tokens++];
    memset(token->sha256, fill, sizeof token->sha256);
    token->expires_ms = expires_ms;
    return c;
}

static int find_token(uint8_t fill, uint8_t last, uint64_t wall_ms)
{
    uint8_t hash[BASE_DIGEST_BYTES];
    memset(hash, fill, sizeof hash);
    hash[sizeof hash - 1] = last;
    return agent_tenants_find_token(&t, hash, wall_ms);
}

START_TEST(a_token_finds_its_tenant_until_it_expires_or_is_not_configured_any_more)
{
    struct agent_tenant_config list[2] = {tenant("a", 2000, 2000), tenant("b", 3000, 3000)};
    file.tenants = 1;
    file.tenant[0] = with_token(tenant("own", 1000, 1999), 1, 0);
    agent_tenants_init(&t, &file);
    list[1].uid_ranges = 0; /* reached by token alone */
    list[1] = with_token(with_token(list[1], 7, 5000), 8, 0);
    (void)set(list, 2);
    int b = find_token(8, 8, 0);
    ck_assert_int_gt(b, 0);
    ck_assert_str_eq(t.at[b].config.name, "b");
    ck_assert_int_eq(find_token(1, 1, UINT64_MAX), 0);
    ck_assert_int_eq(find_token(7, 7, 4999), b);
    ck_assert_int_eq(find_token(7, 7, 5000), -EACCES);
    ck_assert_int_eq(find_token(8, 9, 0), -EACCES); /* but for one byte */
    ck_assert_int_eq(find_token(0, 0, 0), -EACCES); /* what is there where no token is */
    list[1].tokens = 1;
    (void)set(list, 2);
    ck_assert_int_eq(find_token(8, 8, 0), -EACCES);
    ck_assert_int_eq(find_token(7, 7, 0), b);
    t.at[b].arenas = 1;
    (void)set(list, 1); /* b is leaving: nobody new is of it */
    ck_assert_int_eq(find_token(7, 7, 0), -EACCES);
    t.at[b].arenas = 0;
    agent_tenants_release(&t, (uint32_t)b);
}
END_TEST

START_TEST(a_token_of_two_tenants_is_the_files_or_whose_it_was_first)
{
    struct agent_tenant_config list[2] = {with_token(tenant("a", 2000, 2000), 5, 0),
                                          with_token(tenant("b", 3000, 3000), 5, 9)};
    file.tenants = 1;
    file.tenant[0] = with_token(tenant("own", 1000, 1999), 1, 0);
    agent_tenants_init(&t, &file);
    ck_assert(
        !set_but(list, 2, "tenant b: one of its tokens belongs to tenant a: take it from one"));
    ck_assert_int_eq(find_token(5, 5, 0), agent_tenants_find(&t, 2000));
    ck_assert_int_gt(agent_tenants_find(&t, 3000), 0); /* all else of it is in force */
    list[0].token[0].sha256[0]++;
    (void)set(list, 2);
    ck_assert_int_eq(find_token(5, 5, 0), agent_tenants_find(&t, 3000));
    memset(list[0].token[0].sha256, 1, BASE_DIGEST_BYTES);
    (void)set_but(list, 2,
                  "tenant a: one of its tokens belongs to tenant own of this agent's own settings: "
                  "take it from one");
    ck_assert_int_eq(find_token(1, 1, 0), 0);
}
END_TEST

START_TEST(a_file_that_is_read_anew_takes_no_token_of_the_metaservers_tenants)
{
    begin();
    struct agent_tenant_config red = with_token(tenant("red", 2000, 2000), 7, 0);
    (void)set(&red, 1);
    struct agent_config fresh = file;
    fresh.tenant[0] = with_token(fresh.tenant[0], 7, 0);
    fresh.tenant[0].window.ops = 3;
    ck_assert_int_eq(agent_tenants_reload(&t, &fresh, &why), -EEXIST);
    ck_assert_str_eq(why.text,
                     "one token belongs to tenant own of this agent's own settings and to "
                     "red: take it from one");
    ck_assert_uint_eq(t.at[0].config.tokens, 0);
    ck_assert_uint_eq(t.at[0].config.window.ops, 0);
    fresh.tenant[0].tokens = 0;
    struct agent_tenant_config both = with_token(red, 1, 0); /* a token that the file has too */
    file.tenant[0] = with_token(file.tenant[0], 1, 0);
    agent_tenants_init(&t, &file);
    (void)set_but(&both, 1,
                  "tenant red: one of its tokens belongs to tenant own of this agent's own "
                  "settings: take it from one");
    ck_assert_int_eq(find_token(1, 1, 0), 0);
    ck_assert_int_eq(agent_tenants_reload(&t, &file, &why), 0); /* it had it: it may keep it, */
    ck_assert_int_eq(find_token(1, 1, 0), 0);
    ck_assert_int_eq(agent_tenants_reload(&t, &fresh, &why), 0); /* and lose it */
    ck_assert_int_eq(find_token(1, 1, 0), agent_tenants_find(&t, 2000));
    ck_assert_str_eq(t.why, "");
    file.tenant[0].tokens = 0;
    fresh.tenant[0] = with_token(fresh.tenant[0], 7, 0);
    (void)set(NULL, 0); /* red is gone: then it may */
    ck_assert_int_eq(agent_tenants_reload(&t, &fresh, &why), 0);
    ck_assert_uint_eq(t.at[0].config.tokens, 1);
    ck_assert_uint_eq(t.at[0].config.window.ops, 3);
    struct agent_tenant_config own = tenant("own", 1000, 1000);
    (void)set_but(&own, 1,
                  "tenant own: replaces [tenant own] of this agent's file, whose tokens have no "
                  "effect: say such at the metaserver too"); /* it stays in force */
    fresh.tenant[0].window.ops = 4;
    ck_assert_int_eq(agent_tenants_reload(&t, &fresh, &why), 0);
    ck_assert_uint_eq(t.at[0].config.window.ops, 0);
    ck_assert_uint_eq(t.at[0].own.window.ops, 4);
}
END_TEST

START_TEST(the_files_own_comes_back_when_the_metaservers_say_it_no_more)
{
    begin();
    struct agent_tenant_config own = tenant("own", 5000, 5000);
    ck_assert_int_eq(set(&own, 1), -1);
    ck_assert_int_eq(agent_tenants_find(&t, 1500), -EACCES);
    ck_assert_int_eq(agent_tenants_find(&t, 5000), 0);
    ck_assert_int_eq(set(NULL, 0), -1); /* nobody's sessions end: it goes on, as the file has it */
    ck_assert_int_eq(agent_tenants_find(&t, 1500), 0);
    ck_assert_int_eq(agent_tenants_find(&t, 5000), -EACCES);
}
END_TEST

START_TEST(a_uid_of_two_tenants_is_the_files_and_all_else_is_as_it_is_desired)
{
    begin();
    struct agent_tenant_config list[3] = {tenant("a", 2000, 2000), tenant("b", 1990, 2005),
                                          tenant("c", 4000, 4000)};
    list[1].sessions = 9;
    ck_assert(!set_but(list, 3,
                       "tenant b: uid 1990 belongs to tenant own of this agent's own settings: "
                       "take it from one; "
                       "tenant b: uid 2000 belongs to tenant a: take it from one"));
    const int b = agent_tenants_find(&t, 2005);
    ck_assert_str_eq(t.at[b].config.name, "b");
    ck_assert_uint_eq(t.at[b].config.sessions, 9);
    ck_assert_int_eq(agent_tenants_find(&t, 1990), 0);
    ck_assert_str_eq(t.at[agent_tenants_find(&t, 2000)].config.name, "a");
    ck_assert_str_eq(t.at[agent_tenants_find(&t, 4000)].config.name, "c");
    /* It clashes still, and what is taken from it is taken. */
    list[1] = tenant("b", 1990, 1999);
    (void)set_but(list, 3,
                  "tenant b: uid 1990 belongs to tenant own of this agent's own settings: take it "
                  "from one");
    ck_assert_int_eq(agent_tenants_find(&t, 2005), -EACCES);
    /* The file's own that the metaservers take the place of claims nothing. */
    const int c = agent_tenants_find(&t, 4000);
    list[2] = tenant("own", 4000, 4000);
    ck_assert_int_eq(set(list, 3), c);
    ck_assert_int_eq(agent_tenants_find(&t, 4000), 0);
    ck_assert_int_eq(agent_tenants_find(&t, 1990), b);
}
END_TEST

START_TEST(a_name_with_the_hash_of_another_gets_no_place_while_that_is_there)
{
    begin();
    struct agent_tenant_config list[3] = {tenant("a", 2000, 2000), tenant("b", 3000, 3000),
                                          tenant("c", 4000, 4000)};
    list[1].id = list[0].id;
    ck_assert(!set_but(list, 3, "tenant b: its name and a have the same hash: rename one of them"));
    ck_assert_int_eq(agent_tenants_find(&t, 3000), -EACCES);
    ck_assert_int_gt(agent_tenants_find(&t, 4000), 0);
    const int a = agent_tenants_find(&t, 2000);
    t.at[a].arenas = 1;
    ck_assert(
        set_but(&list[1], 2, "tenant b: its name and a have the same hash: rename one of them"));
    t.at[a].arenas = 0;
    agent_tenants_release(&t, (uint32_t)a);
    (void)set(&list[1], 2);
    ck_assert_int_gt(agent_tenants_find(&t, 3000), 0);
}
END_TEST

START_TEST(those_for_which_there_is_no_room_wait_for_those_that_are_leaving)
{
    static struct agent_tenant_config many[AGENT_TENANT_SLOTS];
    begin();
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", i);
        many[i] = tenant(name, 10000 + i, 10000 + i);
    }
    ck_assert_int_eq(set(many, AGENT_TENANTS), -1); /* beside the file's own */
    for (int i = 1; i <= AGENT_TENANTS; i++)
        t.at[i].arenas = 1;
    ck_assert(set_but(&many[AGENT_TENANTS], AGENT_TENANTS,
                      "tenant t127: this agent has room for 128, its own and those that are "
                      "leaving included"));
    ck_assert_int_eq(agent_tenants_find(&t, 10000), -EACCES); /* what is deleted is gone */
    ck_assert_int_gt(agent_tenants_find(&t, 10126), 0);
    ck_assert_int_eq(agent_tenants_find(&t, 10127), -EACCES);
    agent_tenants_release(&t, 1);
    ck_assert(set_but(&many[AGENT_TENANTS], AGENT_TENANTS, t.why)); /* its arena is there */
    t.at[1].arenas = 0;
    agent_tenants_release(&t, 1);
    (void)set(&many[AGENT_TENANTS], AGENT_TENANTS);
    ck_assert_int_eq(agent_tenants_find(&t, 10127), 1);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_the_metaservers_say_is_added_changed_and_taken_away)                                    \
    T(who_may_attach_by_the_file_alone_is_refused_by_a_tenant_in_its_place_which_is_said)          \
    T(a_place_is_free_when_nothing_is_left_of_its_tenant_and_is_its_own_until_then)                \
    T(a_token_finds_its_tenant_until_it_expires_or_is_not_configured_any_more)                     \
    T(a_token_of_two_tenants_is_the_files_or_whose_it_was_first)                                   \
    T(a_file_that_is_read_anew_takes_no_token_of_the_metaservers_tenants)                          \
    T(the_files_own_comes_back_when_the_metaservers_say_it_no_more)                                \
    T(a_uid_of_two_tenants_is_the_files_and_all_else_is_as_it_is_desired)                          \
    T(a_name_with_the_hash_of_another_gets_no_place_while_that_is_there)                           \
    T(those_for_which_there_is_no_room_wait_for_those_that_are_leaving)
KEDGE_CHECK_MAIN("agent.control.tenants", TESTS)
