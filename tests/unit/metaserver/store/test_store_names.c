/* SPDX-License-Identifier: Apache-2.0 */
/* What every store must do with names of regions, run on each of them. */
#include <errno.h>
#include <string.h>

#include "names_fixture.h"

static void gives_a_name_to_one_region_while_its_owner_lives(struct meta_store *s)
{
    const struct meta_store_life b = {"b", 2};
    struct base_errbuf err;
    put(s, node("a", 1, 1, 1));
    put(s, node("b", 2, 1, 2));
    ck_assert_int_eq(publish(s, named("t", "x", "b", 2, "g1")), 0);
    ck_assert_int_eq(publish(s, named("t", "x", "b", 2, "g1")), 0); /* it has it */
    ck_assert_int_eq(publish(s, named("t", "x", "a", 1, "g2")), -EEXIST);
    ck_assert_int_eq(publish(s, named("t", "x", "b", 2, "g3")), -EEXIST);
    ck_assert_int_eq(publish(s, named("u", "x", "a", 1, "g4")), 0);
    expect_names(s, "t/x=b:2:g1 u/x=a:1:g4 ");
    ck_assert_int_eq(meta_store_expire(s, &b, 1, &err), 0);
    ck_assert_int_eq(publish(s, named("t", "x", "a", 1, "g2")), 0);
    expect_names(s, "t/x=a:1:g2 u/x=a:1:g4 ");
    /* A later life of its own node is another owner than the one before. */
    put(s, node("a", 3, 1, 1));
    ck_assert_int_eq(publish(s, named("u", "x", "a", 3, "g5")), 0);
    put(s, node("b", 3, 1, 2));
    ck_assert_int_eq(publish(s, named("u", "x", "b", 3, "g6")), -EEXIST);
    ck_assert_int_eq(meta_store_remove(s, "a", &err), 0);
    ck_assert_int_eq(publish(s, named("u", "x", "b", 3, "g6")), 0);
    expect_names(s, "t/x=a:1:g2 u/x=b:3:g6 ");
}

static void publishes_for_nobody_who_does_not_live(struct meta_store *s)
{
    const struct meta_store_life a = {"a", 2};
    struct base_errbuf err;
    ck_assert_int_eq(publish(s, named("t", "x", "a", 2, "g")), -ESTALE);
    put(s, node("a", 2, 1, 1));
    ck_assert_int_eq(publish(s, named("t", "x", "a", 1, "g")), -ESTALE);
    ck_assert_int_eq(publish(s, named("t", "x", "a", 3, "g")), 0); /* an endpoint's own */
    ck_assert_int_eq(publish(s, named("t", "x", "a", 2, "g")), -EEXIST);
    const struct meta_store_name made_anew = named("t", "x", "a", 3, "g");
    ck_assert_int_eq(withdraw(s, &made_anew, 1), 0);
    ck_assert_int_eq(meta_store_expire(s, &a, 1, &err), 0);
    ck_assert_int_eq(publish(s, named("t", "x", "a", 2, "g")), -ESTALE);
    expect_names(s, "");
}

static void takes_back_the_names_that_are_meant_alone(struct meta_store *s)
{
    const struct meta_store_name gone[] = {
        named("t", "x", "a", 1, "g"), named("t", "y", "a", 1, "another"),
        named("t", "z", "b", 1, "g"), named("t", "unknown", "a", 1, "g")};
    struct meta_store_name most = named("t", "", "a", 1, "g");
    put(s, node("a", 1, 1, 1));
    ck_assert_int_eq(publish(s, named("t", "z", "a", 1, "g")), 0);
    ck_assert_int_eq(publish(s, named("t", "x", "a", 1, "g")), 0);
    ck_assert_int_eq(publish(s, named("t", "y", "a", 1, "g")), 0);
    ck_assert_int_eq(withdraw(s, gone, 4), 0);
    expect_names(s, "t/y=a:1:g t/z=a:1:g ");
    memset(most.name, '\xff',
           sizeof most.name - 1); /* whoever gives names checks what is in them */
    memset(most.tenant, 't', sizeof most.tenant - 1);
    memset(most.grant, 'g', sizeof most.grant - 1);
    memcpy(most.name, "a/%/\xc3\xa4", 6);
    memset(most.name + 6, '/', sizeof most.name - 7);
    ck_assert_int_eq(publish(s, most), 0);
    ck_assert_int_eq(withdraw(s, &most, 1), 0);
    expect_names(s, "t/y=a:1:g t/z=a:1:g ");
}

START_TEST(every_store_keeps_the_contract_of_names)
{
    static void (*const rules[])(struct meta_store *) = {
        gives_a_name_to_one_region_while_its_owner_lives,
        publishes_for_nobody_who_does_not_live,
        takes_back_the_names_that_are_meant_alone,
    };
    for (enum kind kind = MEMORY; kind < KINDS && has_kind(kind); kind++) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            struct fixture f;
            setup(&f, kind);
            rules[i](f.store);
            teardown(&f);
        }
    }
}
END_TEST

#define TESTS(T) T(every_store_keeps_the_contract_of_names)
KEDGE_CHECK_MAIN("metaserver store names", TESTS)
