/* SPDX-License-Identifier: Apache-2.0 */
/* Regions found by their names: what the lane is asked, and what is said of its answers. */
#include <errno.h>

#include "../check_main.h"
#include "fake_lane.h"
#include "schema/record.h"

struct fixture {
    struct fake_agent a;
    struct kedge_session *s;
};

static void setup(struct fixture *f, uint32_t features)
{
    fake_agent_start(&f->a);
    f->a.attached.features = features;
    f->s = fake_agent_open(&f->a);
}

static void teardown(struct fixture *f)
{
    kedge_close(f->s);
    fake_agent_stop(&f->a);
}

START_TEST(the_name_stands_behind_the_request_and_the_answer_says_where_the_region_is)
{
    static const struct schema_found found = {.addr = 0x1000,
                                              .length = 0x2000,
                                              .gid = {0xfd, 9},
                                              .incarnation = 5,
                                              .vkey = 0xbeef,
                                              .access = SCHEMA_RECORD_READ | SCHEMA_RECORD_ATOMIC};
    static const uint32_t lengths[] = {1, 63, 64, 65, 128, 192, 193, 255};
    struct kedge_remote remote;
    struct fixture f;
    char name[256];
    setup(&f, SCHEMA_FEATURE_LOOKUP);
    for (size_t i = 0; i < 4 * sizeof lengths / sizeof lengths[0]; i++) { /* round the ring */
        const uint32_t length = lengths[i % (sizeof lengths / sizeof lengths[0])];
        memset(name, 'a' + (int)i % 26, sizeof name);
        name[length] = '\0';
        f.a.reply = (struct schema_reply){.found = found};
        fake_agent_answer(&f.a);
        ck_assert_int_eq(kedge_lookup(f.s, name, &remote), 0);
        const struct schema_sq_desc *d = fake_agent_asked(&f.a);
        ck_assert_uint_eq(d->op, SCHEMA_OP_LOOKUP);
        ck_assert_uint_eq(d->lookup.length, length);
        ck_assert_uint_eq(d->slots, 1 + (length + 63) / 64);
        ck_assert_mem_eq(f.a.extra, name, length);
        ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
        ck_assert_uint_eq(remote.addr, 0x1000);
        ck_assert_uint_eq(remote.length, 0x2000);
        ck_assert_uint_eq(remote.rkey, 0xbeef);
        ck_assert_int_eq(remote.access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
        ck_assert_mem_eq(remote.gid, found.gid, 16);
    }
    teardown(&f);
}
END_TEST

/* Until then the answer to an import could only be yes, and nobody waits for it. */
START_TEST(what_was_imported_is_given_back_and_the_next_ones_do_not_wait)
{
    const struct kedge_remote remote = {.rkey = 0xbeef};
    struct kedge_remote out;
    char token[KEDGE_TOKEN_MAX];
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_UNIMPORT);
    struct schema_token t = {.pool = f.a.ro->pool, .access = SCHEMA_RECORD_READ, .length = 8};
    for (uint32_t i = 0; i < SCHEMA_SESSION_IMPORTS; i++) {
        t.vkey = i + 1;
        schema_token_format(&t, token);
        ck_assert_int_eq(kedge_import(f.s, token, &out), 0);
        fake_agent_answer(&f.a);
        ck_assert_uint_eq(fake_agent_asked(&f.a)->op, SCHEMA_OP_IMPORT);
    }
    f.a.reply = (struct schema_reply){.status = -EDQUOT, .reason = SCHEMA_REASON_QUOTA};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_import(f.s, token, &out), -EDQUOT); /* it was waited for */
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "kedge_unimport"));
    (void)fake_agent_asked(&f.a);
    f.a.reply = (struct schema_reply){.status = -ENOENT, .value = {256}};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_unimport(f.s, &remote), -ENOENT);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "0x0000beef"));
    (void)fake_agent_asked(&f.a);
    f.a.reply = (struct schema_reply){.value = {255}};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_unimport(f.s, &remote), 0);
    const struct schema_sq_desc *d = fake_agent_asked(&f.a);
    ck_assert_uint_eq(d->op, SCHEMA_OP_UNIMPORT);
    ck_assert_uint_eq(d->import.vkey, 0xbeef);
    ck_assert_int_eq(kedge_import(f.s, token, &out), 0); /* nobody has answered */
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 1);
    teardown(&f);
}
END_TEST

/* ---- tokens in bulk */

enum { BULK = 40 };
static char texts[BULK][KEDGE_TOKEN_MAX];
static const char *bulk[BULK];

static void make_bulk(const struct fixture *f)
{
    struct schema_token t = {.pool = f->a.ro->pool, .access = SCHEMA_RECORD_READ, .length = 8};
    for (uint32_t i = 0; i < BULK; i++) {
        t.vkey = i + 1;
        t.gid[15] = (uint8_t)i;
        memset(t.secret, (int)(200 - i), sizeof t.secret);
        schema_token_format(&t, texts[i]);
        bulk[i] = texts[i];
    }
}

/* What the lane finds behind the message, as many as it says. */
static void check_message(const struct fake_agent *a, uint32_t first, uint32_t count)
{
    ck_assert_uint_eq(a->asked.op, SCHEMA_OP_IMPORT_MANY);
    ck_assert_uint_eq(a->asked.import_many.count, count);
    ck_assert_uint_eq(a->asked.slots, 1 + (count * 20 + 63) / 64);
    for (uint32_t i = 0; i < count; i++) {
        struct schema_grant g;
        memcpy(&g, a->extra + i * sizeof g, sizeof g);
        ck_assert_uint_eq(g.vkey, first + i + 1);
        ck_assert_uint_eq(g.secret[0], 200 - first - i);
        ck_assert_uint_eq(g.secret[15], 200 - first - i);
    }
}

START_TEST(tokens_in_bulk_take_a_message_for_sixteen_and_wait_for_no_answer)
{
    struct kedge_remote out[BULK];
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_IMPORT_MANY);
    make_bulk(&f);
    ck_assert_int_eq(kedge_import_many(f.s, NULL, 0, NULL), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    ck_assert_int_eq(kedge_import_many(f.s, bulk, 20, out), 0); /* nobody has answered */
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 6 + 3);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_uint_eq(out[i].rkey, i + 1);
        ck_assert_uint_eq(out[i].gid[15], i);
    }
    fake_agent_answer(&f.a);
    (void)fake_agent_asked(&f.a);
    check_message(&f.a, 0, 16);
    fake_agent_answer(&f.a);
    (void)fake_agent_asked(&f.a);
    check_message(&f.a, 16, 4);
    teardown(&f);
}
END_TEST

static void *answer_all(void *argument)
{
    struct fake_agent *a = argument;
    for (uint32_t i = 0; i < 3; i++)
        (void)fake_lane_answer_one(a);
    return NULL;
}

/* 40 at a time, and one: then 16 more may not have room. */
START_TEST(tokens_for_which_there_may_be_no_room_wait_for_the_answer)
{
    struct kedge_remote out[BULK];
    struct fixture f;
    pthread_t thread;
    setup(&f, SCHEMA_FEATURE_IMPORT_MANY);
    make_bulk(&f);
    for (int i = 0; i < SCHEMA_SESSION_IMPORTS / BULK; i++) {
        ck_assert_int_eq(pthread_create(&thread, NULL, answer_all, &f.a), 0);
        ck_assert_int_eq(kedge_import_many(f.s, bulk, BULK, out), 0);
        (void)pthread_join(thread, NULL);
    }
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_import_many(f.s, bulk, 1, out), 0);
    (void)fake_agent_asked(&f.a);
    memset(out, 0xee, sizeof out);
    f.a.reply = (struct schema_reply){.status = -EDQUOT, .reason = SCHEMA_REASON_QUOTA};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_import_many(f.s, bulk, 17, out), -EDQUOT);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "kedge_unimport"));
    (void)fake_agent_asked(&f.a);
    ck_assert_uint_eq(out[0].rkey, 0xeeeeeeee);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0); /* nor was the second message sent */
    teardown(&f);
}
END_TEST

START_TEST(one_text_that_is_no_token_is_named_and_nothing_is_imported)
{
    struct kedge_remote out[BULK] = {{.rkey = 0}};
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_IMPORT_MANY);
    make_bulk(&f);
    texts[19][20] ^= 1;
    ck_assert_int_eq(kedge_import_many(f.s, bulk, BULK, out), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "texts[19]: the text is no region's token"));
    bulk[3] = NULL;
    ck_assert_int_eq(kedge_import_many(f.s, bulk, BULK, out), -EINVAL);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "texts[3] is NULL"));
    make_bulk(&f);
    struct schema_token t = {.pool = (uint16_t)(f.a.ro->pool + 1), .length = 8};
    schema_token_format(&t, texts[7]);
    ck_assert_int_eq(kedge_import_many(f.s, bulk, BULK, out), -EXDEV);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "texts[7]: the region is in pool number 2"));
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    ck_assert_uint_eq(out[0].rkey, 0);
    teardown(&f);
}
END_TEST

START_TEST(an_agent_that_knows_no_bulk_is_asked_for_one_after_the_other)
{
    struct kedge_remote out[BULK];
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_UNIMPORT);
    make_bulk(&f);
    ck_assert_int_eq(kedge_import_many(f.s, bulk, 5, out), 0);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(fake_lane_slot(&f.a, i)->op, SCHEMA_OP_IMPORT);
        ck_assert_uint_eq(fake_lane_slot(&f.a, i)->import.vkey, i + 1);
        ck_assert_uint_eq(out[i].rkey, i + 1);
    }
    teardown(&f);
}
END_TEST

START_TEST(an_agent_that_knows_no_way_back_is_not_asked)
{
    const struct kedge_remote remote = {.rkey = 0xbeef};
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_TENANTS);
    ck_assert_int_eq(kedge_unimport(f.s, &remote), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(each_refusal_has_a_sentence_and_leaves_the_remote_as_it_was)
{
    static const struct {
        int status;
        uint32_t reason;
        const char *says;
    } refusals[] = {{-ENOENT, 0, "no region of this session's tenant is published as \"kv/1\""},
                    {-EXDEV, 0, "the region \"kv/1\" is in another pool"},
                    {-EAGAIN, 0, "looks up as much as it can already, and not \"kv/1\""},
                    {-EOPNOTSUPP, 0, "the metaservers are older"},
                    {-EHOSTUNREACH, SCHEMA_REASON_LOOKUP, "no metaserver answered"},
                    {-EDQUOT, SCHEMA_REASON_QUOTA_CONTROL_OPS, "control operations"}};
    struct kedge_remote remote = {.rkey = 7};
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_LOOKUP);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        f.a.reply =
            (struct schema_reply){.status = refusals[i].status, .reason = refusals[i].reason};
        fake_agent_answer(&f.a);
        ck_assert_int_eq(kedge_lookup(f.s, "kv/1", &remote), refusals[i].status);
        fake_agent_asked(&f.a);
        ck_assert_msg(strstr(kedge_last_error(), refusals[i].says) != NULL, "%s",
                      kedge_last_error());
        ck_assert_uint_eq(remote.rkey, 7);
    }
    teardown(&f);
}
END_TEST

/* Which would end the session, if it were. */
START_TEST(an_older_agent_is_not_asked)
{
    struct kedge_remote remote;
    struct fixture f;
    setup(&f, SCHEMA_FEATURE_PUBLISH);
    ck_assert_int_eq(kedge_lookup(f.s, "n", &remote), -EOPNOTSUPP);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "is of before names of regions"));
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(what_is_no_name_is_not_asked_for)
{
    struct kedge_remote remote;
    struct fixture f;
    char longest[257];
    setup(&f, SCHEMA_FEATURE_LOOKUP);
    memset(longest, 'a', sizeof longest);
    longest[256] = '\0';
    const char *const none[] = {"", "a\n", "\xff", "\x7f", longest};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        ck_assert_int_eq(kedge_lookup(f.s, none[i], &remote), -EINVAL);
        ck_assert_ptr_nonnull(strstr(kedge_last_error(), "1 to 255 bytes"));
    }
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

START_TEST(another_tenants_name_stands_before_the_name)
{
    struct kedge_remote remote;
    struct fixture f;
    char tenant[32], name[256], said[300];
    setup(&f, SCHEMA_FEATURE_LOOKUP | SCHEMA_FEATURE_TENANTS);
    memset(tenant, 't', sizeof tenant);
    memset(name, 'n', sizeof name);
    for (uint32_t first = 1; first <= 31; first += 10) {
        const uint32_t second = 255 - 8 * (first - 1);
        tenant[first] = name[second] = '\0';
        f.a.reply = (struct schema_reply){.found = {.vkey = 5}};
        fake_agent_answer(&f.a);
        ck_assert_int_eq(kedge_lookup_of(f.s, tenant, name, &remote), 0);
        const struct schema_sq_desc *d = fake_agent_asked(&f.a);
        ck_assert_uint_eq(d->lookup.owner, first);
        ck_assert_uint_eq(d->lookup.length, second);
        ck_assert_uint_eq(d->slots, 1 + (first + second + 63) / 64);
        snprintf(said, sizeof said, "%s%s", tenant, name);
        ck_assert_mem_eq(f.a.extra, said, first + second);
        ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
        tenant[first] = 't', name[second] = 'n';
    }
    f.a.reply = (struct schema_reply){.status = -ENOENT};
    fake_agent_answer(&f.a);
    ck_assert_int_eq(kedge_lookup_of(f.s, "red", "n", &remote), -ENOENT);
    (void)fake_agent_asked(&f.a);
    ck_assert_ptr_nonnull(strstr(kedge_last_error(), "red has published no region as \"n\""));
    tenant[31] = '\0';
    const char *const none[] = {"", "a,b", "a\n", "tttttttttttttttttttttttttttttttt"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_int_eq(kedge_lookup_of(f.s, none[i], "n", &remote), -EINVAL);
    ck_assert_int_eq(kedge_lookup_of(f.s, "red", "", &remote), -EINVAL);
    teardown(&f);
    setup(&f, SCHEMA_FEATURE_LOOKUP);
    ck_assert_int_eq(kedge_lookup_of(f.s, "red", "n", &remote), -EOPNOTSUPP);
    ck_assert_uint_eq(fake_lane_waiting(&f.a), 0);
    teardown(&f);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(the_name_stands_behind_the_request_and_the_answer_says_where_the_region_is)                  \
    T(what_was_imported_is_given_back_and_the_next_ones_do_not_wait)                               \
    T(tokens_in_bulk_take_a_message_for_sixteen_and_wait_for_no_answer)                            \
    T(tokens_for_which_there_may_be_no_room_wait_for_the_answer)                                   \
    T(one_text_that_is_no_token_is_named_and_nothing_is_imported)                                  \
    T(an_agent_that_knows_no_bulk_is_asked_for_one_after_the_other)                                \
    T(an_agent_that_knows_no_way_back_is_not_asked)                                                \
    T(each_refusal_has_a_sentence_and_leaves_the_remote_as_it_was)                                 \
    T(an_older_agent_is_not_asked)                                                                 \
    T(what_is_no_name_is_not_asked_for)                                                            \
    T(another_tenants_name_stands_before_the_name)
KEDGE_CHECK_MAIN("libclient.lookup", TESTS)
