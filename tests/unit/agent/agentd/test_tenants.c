/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "agentd/tenants.h"

static struct agentd_tenants t;
static struct agentd_config file;
static struct kedge_errbuf why;

static struct agentd_tenant_config tenant(const char *name, uid_t first, uid_t last)
{
    struct agentd_tenant_config c = {
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
    agentd_tenants_init(&t, &file);
}

static uint64_t set(const struct agentd_tenant_config *list, uint32_t count)
{
    uint64_t leave;
    int status = agentd_tenants_set(&t, list, count, &leave, &why);
    ck_assert_msg(status == 0, "%s", why.text);
    return leave;
}

START_TEST(what_the_metaservers_say_is_added_changed_and_taken_away)
{
    begin();
    ck_assert_int_eq(agentd_tenants_find(&t, 1500), 0);
    ck_assert_int_eq(agentd_tenants_find(&t, 2000), -EACCES);
    struct agentd_tenant_config list[2] = {tenant("a", 2000, 2000), tenant("b", 3000, 3009)};
    ck_assert_uint_eq(set(list, 2), 0);
    int a = agentd_tenants_find(&t, 2000), b = agentd_tenants_find(&t, 3009);
    ck_assert_int_gt(a, 0);
    ck_assert_int_gt(b, 0);
    ck_assert_int_ne(a, b);
    list[0].sessions = 77;
    ck_assert_uint_eq(set(list, 1), UINT64_C(1) << b); /* b is gone, a has another quota */
    ck_assert_uint_eq(t.at[a].config.sessions, 77);
    ck_assert_int_eq(agentd_tenants_find(&t, 3000), -EACCES);
    ck_assert_int_eq(t.at[b].state, AGENTD_TENANT_LEAVING);
    ck_assert_int_eq(agentd_tenants_find(&t, 1500), 0);
}
END_TEST

START_TEST(a_place_is_free_when_nothing_is_left_of_its_tenant_and_is_its_own_until_then)
{
    begin();
    struct agentd_tenant_config a = tenant("a", 2000, 2000), b = tenant("b", 3000, 3000);
    (void)set(&a, 1);
    int i = agentd_tenants_find(&t, 2000);
    t.at[i].arenas = 1;
    ck_assert_uint_eq(set(&b, 1), UINT64_C(1) << i);
    agentd_tenant_rest(&t, (uint32_t)i);
    ck_assert_int_eq(t.at[i].state, AGENTD_TENANT_LEAVING); /* its arena is not freed yet */
    ck_assert_int_ne(agentd_tenants_find(&t, 3000), i);
    struct agentd_tenant_config both[2] = {a, b};
    ck_assert_uint_eq(set(both, 2), 0); /* said again: it is what it was */
    ck_assert_int_eq(agentd_tenants_find(&t, 2000), i);
    ck_assert_uint_eq(t.at[i].arenas, 1);
    ck_assert_uint_eq(set(&b, 1), UINT64_C(1) << i);
    t.at[i].arenas = 0;
    agentd_tenant_rest(&t, (uint32_t)i);
    ck_assert_int_eq(t.at[i].state, AGENTD_TENANT_FREE);
    agentd_tenant_rest(&t, 0); /* the file's own, live: nothing happens */
    ck_assert_int_eq(agentd_tenants_find(&t, 1500), 0);
}
END_TEST

static struct agentd_tenant_config with_token(struct agentd_tenant_config c, uint8_t fill,
                                              uint64_t expires_ms)
{
    struct agentd_token *token = &c.token[c.tokens++];
    memset(token->sha256, fill, sizeof token->sha256);
    token->expires_ms = expires_ms;
    return c;
}

static int find_token(uint8_t fill, uint8_t last, uint64_t wall_ms)
{
    uint8_t hash[KEDGE_DIGEST_BYTES];
    memset(hash, fill, sizeof hash);
    hash[sizeof hash - 1] = last;
    return agentd_tenants_find_token(&t, hash, wall_ms);
}

START_TEST(a_token_finds_its_tenant_until_it_expires_or_is_said_no_more)
{
    struct agentd_tenant_config list[2] = {tenant("a", 2000, 2000), tenant("b", 3000, 3000)};
    file.tenants = 1;
    file.tenant[0] = with_token(tenant("own", 1000, 1999), 1, 0);
    agentd_tenants_init(&t, &file);
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
    agentd_tenant_rest(&t, (uint32_t)b);
}
END_TEST

START_TEST(one_token_of_two_tenants_is_refused)
{
    struct agentd_tenant_config list[2] = {with_token(tenant("a", 2000, 2000), 5, 0),
                                           with_token(tenant("b", 3000, 3000), 5, 9)};
    file.tenants = 1;
    file.tenant[0] = with_token(tenant("own", 1000, 1999), 1, 0);
    agentd_tenants_init(&t, &file);
    uint64_t leave;
    ck_assert_int_eq(agentd_tenants_set(&t, list, 2, &leave, &why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why.text, "one token belongs to tenant b and to a"));
    list[0].token[0].sha256[0]++;
    (void)set(list, 2);
    memset(list[0].token[0].sha256, 1, KEDGE_DIGEST_BYTES);
    ck_assert_int_eq(agentd_tenants_set(&t, list, 2, &leave, &why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why.text, "own of this agent's own settings"));
}
END_TEST

START_TEST(a_file_that_is_read_anew_takes_no_token_of_the_metaservers_tenants)
{
    begin();
    struct agentd_tenant_config red = with_token(tenant("red", 2000, 2000), 7, 0);
    (void)set(&red, 1);
    struct agentd_config fresh = file;
    fresh.tenant[0] = with_token(fresh.tenant[0], 7, 0);
    fresh.tenant[0].window.ops = 3;
    ck_assert_int_eq(agentd_tenants_reload(&t, &fresh, &why), -EEXIST);
    ck_assert_str_eq(why.text,
                     "one token belongs to tenant own of this agent's own settings and to "
                     "red: take it from one");
    ck_assert_uint_eq(t.at[0].config.tokens, 0);
    ck_assert_uint_eq(t.at[0].config.window.ops, 0);
    (void)set(NULL, 0); /* red is gone: then it may */
    ck_assert_int_eq(agentd_tenants_reload(&t, &fresh, &why), 0);
    ck_assert_uint_eq(t.at[0].config.tokens, 1);
    ck_assert_uint_eq(t.at[0].config.window.ops, 3);
    struct agentd_tenant_config own = tenant("own", 1000, 1000);
    (void)set(&own, 1); /* what the metaservers say of it stays in force */
    fresh.tenant[0].window.ops = 4;
    ck_assert_int_eq(agentd_tenants_reload(&t, &fresh, &why), 0);
    ck_assert_uint_eq(t.at[0].config.window.ops, 0);
    ck_assert_uint_eq(t.at[0].own.window.ops, 4);
}
END_TEST

START_TEST(the_files_own_comes_back_when_the_metaservers_say_it_no_more)
{
    begin();
    struct agentd_tenant_config own = tenant("own", 5000, 5000);
    ck_assert_uint_eq(set(&own, 1), 0);
    ck_assert_int_eq(agentd_tenants_find(&t, 1500), -EACCES);
    ck_assert_int_eq(agentd_tenants_find(&t, 5000), 0);
    ck_assert_uint_eq(set(NULL, 0), 0); /* nobody's sessions end: it goes on, as the file has it */
    ck_assert_int_eq(agentd_tenants_find(&t, 1500), 0);
    ck_assert_int_eq(agentd_tenants_find(&t, 5000), -EACCES);
}
END_TEST

START_TEST(what_cannot_be_is_refused_whole_with_the_reason)
{
    static struct agentd_tenant_config many[AGENTD_TENANTS + 1];
    uint64_t leave = 0;
    begin();
    struct agentd_tenant_config list[2] = {tenant("a", 2000, 2000), tenant("b", 1999, 2005)};
    ck_assert_int_eq(agentd_tenants_set(&t, list, 2, &leave, &why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why.text, "uid 2000"));
    ck_assert_int_eq(agentd_tenants_set(&t, &list[1], 1, &leave, &why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why.text, "uid 1999"));
    ck_assert_ptr_nonnull(strstr(why.text, "own settings"));
    list[1] = tenant("b", 9, 9);
    list[1].id = list[0].id;
    ck_assert_int_eq(agentd_tenants_set(&t, list, 2, &leave, &why), -EEXIST);
    ck_assert_ptr_nonnull(strstr(why.text, "hash"));
    for (uint32_t i = 0; i <= AGENTD_TENANTS; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", i);
        many[i] = tenant(name, 10000 + i, 10000 + i);
    }
    ck_assert_int_eq(agentd_tenants_set(&t, many, AGENTD_TENANTS, &leave, &why), -ENOSPC);
    ck_assert_int_eq(agentd_tenants_find(&t, 10000), -EACCES); /* nothing of it was taken */
    (void)set(many, AGENTD_TENANTS - 1);
    ck_assert_int_gt(agentd_tenants_find(&t, 10000 + AGENTD_TENANTS - 2), 0);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_the_metaservers_say_is_added_changed_and_taken_away)                                    \
    T(a_place_is_free_when_nothing_is_left_of_its_tenant_and_is_its_own_until_then)                \
    T(a_token_finds_its_tenant_until_it_expires_or_is_said_no_more)                                \
    T(one_token_of_two_tenants_is_refused)                                                         \
    T(a_file_that_is_read_anew_takes_no_token_of_the_metaservers_tenants)                          \
    T(the_files_own_comes_back_when_the_metaservers_say_it_no_more)                                \
    T(what_cannot_be_is_refused_whole_with_the_reason)
KEDGE_CHECK_MAIN("tenants", TESTS)
