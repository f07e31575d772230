/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver says of its table of names in the answer to a registration. */
#include "../../check_main.h"
#include "register_bed.h"

#define NAMES(fields) ",\"names\":{" fields "}"
#define GOOD                                                                                       \
    "\"addr\":\"0000000000002000\",\"rkey\":6,\"log2_slots\":7,\"seed\":\"000000000000000a\","     \
    "\"generation\":\"0000000000000001\",\"version\":1"

static const struct registration *register_with(const char *more)
{
    const struct registration *r = begin();
    answer_more(0, 200, '1', more);
    resolve();
    ck_assert_int_eq(r->state, REGISTRATION_DONE);
    ck_assert_uint_eq(r->lane.table.addr, 0x1000);
    return r;
}

START_TEST(its_table_of_names_is_the_lanes_beside_that_of_endpoints)
{
    const struct schema_table_desc *d = &register_with(NAMES(GOOD))->lane.names;
    ck_assert_uint_eq(d->kind, SCHEMA_TABLE_NAMES);
    ck_assert_uint_eq(d->addr, 0x2000);
    ck_assert_uint_eq(d->rkey, 6);
    ck_assert_uint_eq(d->log2_slots, 7);
    ck_assert_uint_eq(d->seed, 10);
    ck_assert_uint_eq(d->generation, 1);
    end();
}
END_TEST

/* Endpoints are looked up there all the same. */
START_TEST(one_that_is_older_or_says_nonsense_has_no_names)
{
    static const char *const others[] = {
        "",
        ",\"names\":null",
        ",\"names\":[]",
        NAMES(""),
        NAMES("\"addr\":\"0000000000002000\",\"rkey\":6,\"log2_slots\":31,"
              "\"seed\":\"000000000000000a\",\"generation\":\"0000000000000001\",\"version\":1"),
        NAMES("\"addr\":\"0000000000002000\",\"rkey\":6,\"log2_slots\":0,"
              "\"seed\":\"000000000000000a\",\"generation\":\"0000000000000001\",\"version\":1"),
        NAMES("\"addr\":\"0000000000002000\",\"rkey\":-1,\"log2_slots\":7,"
              "\"seed\":\"000000000000000a\",\"generation\":\"0000000000000001\",\"version\":1"),
        NAMES("\"addr\":\"2000\",\"rkey\":6,\"log2_slots\":7,"
              "\"seed\":\"000000000000000a\",\"generation\":\"0000000000000001\",\"version\":1"),
        NAMES("\"addr\":\"0000000000002000\",\"rkey\":6,\"log2_slots\":7,"
              "\"seed\":\"000000000000000a\",\"generation\":\"0000000000000001\",\"version\":2"),
        NAMES("\"addr\":\"0000000000002000\",\"rkey\":6,\"log2_slots\":7,"
              "\"seed\":\"000000000000000a\",\"version\":1")};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_uint_eq(register_with(others[i])->lane.names.log2_slots, 0);
        end();
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(its_table_of_names_is_the_lanes_beside_that_of_endpoints)                                    \
    T(one_that_is_older_or_says_nonsense_has_no_names)
KEDGE_CHECK_MAIN("agent.control.register_names", TESTS)
