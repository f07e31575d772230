/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <string.h>

#include "ctl/resources.h"
#include "ctl/since.h"

static struct base_errbuf err;

/* The body that a word makes of what is there. */
static const char *edit(const char *kind, const char *there, const char *word)
{
    static char text[512];
    struct base_text out;
    uint64_t revision;
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_msg(ctl_edit_resource(resource_table_find(kind), there,
                                    there != NULL ? strlen(there) : 0, &word, 1, &out, &revision,
                                    &err) == 0,
                  "%s", err.text);
    snprintf(text, sizeof text, "%s", base_text_str(&out));
    base_text_fini(&out);
    return text;
}

START_TEST(uids_are_added_as_a_set)
{
    static const char there[] = "{\"name\":\"t\",\"revision\":4,\"uids\":[5,\"10-19\"]}";
    ck_assert_str_eq(edit("tenant", there, "uids+=30"), "{\"uids\":[5,\"10-19\",30]}");
    ck_assert_str_eq(edit("tenant", there, "uids+=20-29,6"), "{\"uids\":[\"5-6\",\"10-29\"]}");
    ck_assert_str_eq(edit("tenant", there, "uids+=12,5"), "{\"uids\":[5,\"10-19\"]}");
    ck_assert_str_eq(edit("tenant", NULL, "uids+=7"), "{\"uids\":[7]}");
}
END_TEST

START_TEST(uids_are_taken_out_of_ranges)
{
    static const char there[] = "{\"name\":\"t\",\"revision\":4,\"uids\":[5,\"10-19\"]}";
    ck_assert_str_eq(edit("tenant", there, "uids-=15"), "{\"uids\":[5,\"10-14\",\"16-19\"]}");
    ck_assert_str_eq(edit("tenant", there, "uids-=0-9,19"), "{\"uids\":[\"10-18\"]}");
    ck_assert_str_eq(edit("tenant", there, "uids-=99"), "{\"uids\":[5,\"10-19\"]}");
    ck_assert_str_eq(edit("tenant", there, "uids-=0-4294967294"), "{\"uids\":[]}");
}
END_TEST

START_TEST(names_are_added_once)
{
    static const char there[] = "{\"revision\":4,\"nodes\":{},\"tenants\":[\"a\",\"b\"]}";
    ck_assert_str_eq(edit("pool", there, "tenants+=b,c"),
                     "{\"nodes\":{},\"tenants\":[\"a\",\"b\",\"c\"]}");
    ck_assert_str_eq(edit("pool", there, "tenants-=a,x"), "{\"nodes\":{},\"tenants\":[\"b\"]}");
}
END_TEST

START_TEST(what_is_no_list_has_no_parts)
{
    static const char *const wrong[][2] = {{"sessions+=5", "sessions is no list"},
                                           {"uids+=", "uids must be uids"},
                                           {"uids-=9-5", "uids must be uids"},
                                           {"+=5", "sets nothing of a tenant"},
                                           {"uidz+=5", "sets nothing of a tenant"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct base_text out;
        uint64_t revision;
        base_text_init(&out, CTL_BODY_BYTES);
        ck_assert_int_eq(ctl_edit_resource(resource_table_find("tenant"), NULL, 0, &wrong[i][0], 1,
                                           &out, &revision, &err),
                         -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i][1]) != NULL, "%s", err.text);
        base_text_fini(&out);
    }
}
END_TEST

START_TEST(ranges_have_a_bound)
{
    struct base_text there, out;
    uint64_t revision;
    const char *word = "uids-=1";
    base_text_init(&there, CTL_BODY_BYTES);
    base_text_init(&out, CTL_BODY_BYTES);
    base_text_printf(&there, "{\"revision\":1,\"uids\":[0");
    for (int i = 1; i < 500; i++)
        base_text_printf(&there, ",%d", 2 * i);
    base_text_printf(&there, "]}");
    ck_assert_int_eq(ctl_edit_resource(resource_table_find("tenant"), base_text_str(&there),
                                       there.length, &word, 1, &out, &revision, &err),
                     -EINVAL);
    base_text_fini(&there);
    base_text_fini(&out);
}
END_TEST

START_TEST(a_time_becomes_the_beginning_of_an_events)
{
    char out[CTL_SINCE_BYTES];
    static const char *const right[][2] = {
        {"2027-01-31T00:00:00Z", "2027-01-31T00:00:00.000"},
        {"2027-01-31T00:00:00.25Z", "2027-01-31T00:00:00.250"},
        {"2027-01-31T00:30:00.123456+01:00", "2027-01-30T23:30:00.123"},
        {"2027-01-31T00:00:00-00:30", "2027-01-31T00:30:00.000"},
        {"2027-01-31", "2027-01-31T00:00:00.000"},
        {"1900-01-01T00:00:00Z", "1970-01-01T00:00:00.000"},
    };
    static const char *const wrong[] = {"",
                                        "yesterday",
                                        "2027-01-3x",
                                        "2027-13-31",
                                        "2027-01-31T00:00:00",
                                        "2027-01-31T00:00:00+1:00",
                                        "2027-01-31T00:00:00Zx",
                                        "2027-13-31T00:00:00Z",
                                        "-5m",
                                        "2027-01-31T00:00:00.Z"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_msg(ctl_since_parse(right[i][0], out, &err) == 0, "%s", err.text);
        ck_assert_str_eq(out, right[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(ctl_since_parse(wrong[i], out, &err) == -EINVAL, "%s", wrong[i]);
    ck_assert_int_eq(ctl_since_parse("10m", out, &err), 0);
    ck_assert_int_eq(ctl_since_parse("1w2d", out, &err), 0);
    ck_assert_int_eq(ctl_since_parse("292y", out, &err), -EINVAL);
    ck_assert_int_eq(ctl_since_parse("100000d", out, &err), 0); /* before 1970 */
    ck_assert_str_eq(out, "1970-01-01T00:00:00.000");
}
END_TEST

#define TESTS(X)                                                                                   \
    X(uids_are_added_as_a_set)                                                                     \
    X(uids_are_taken_out_of_ranges)                                                                \
    X(names_are_added_once)                                                                        \
    X(what_is_no_list_has_no_parts)                                                                \
    X(ranges_have_a_bound)                                                                         \
    X(a_time_becomes_the_beginning_of_an_events)
KEDGE_CHECK_MAIN("ctl.lists", TESTS)
