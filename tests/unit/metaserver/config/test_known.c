/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver remembers of a store, and by which it knows a token that came back. */
#include "metaserver/known.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"

static struct meta_resources *make_tokens(const char *const *names, const uint64_t *revisions,
                                          int count)
{
    struct meta_resources *s = meta_resources_new(8);
    for (int i = 0; i < count; i++) {
        struct meta_resource t = {.kind = META_TOKEN, .revision = revisions[i]};
        struct meta_violation violation;
        t.token.scope = RESOURCE_SCOPE_READER;
        t.token.hash[0] = 1;
        snprintf(t.name, sizeof t.name, "%s", names[i]);
        ck_assert_int_eq(meta_resources_restore(s, &t, &violation), 0);
    }
    return s;
}

static bool is_void(const struct meta_resources *s, const char *name)
{
    return meta_token_is_bare(&meta_resources_find(s, META_TOKEN, name)->token);
}

START_TEST(what_is_written_is_read_and_knows_which_tokens_came_back)
{
    static const char *const had[] = {"b", "a.1", "c"};
    static const uint64_t when[] = {3, 9, 4};
    static const char *const has[] = {"a.1", "b", "c", "gone", "new"};
    static const uint64_t since[] = {9, 2, 4, 7, 12};
    struct meta_resources *s = make_tokens(had, when, 3), *back = make_tokens(has, since, 5);
    struct meta_known written, known;
    struct base_errbuf err;
    struct base_text text;
    meta_resources_void_token(s, "c"); /* as it is about to be deleted again */
    ck_assert_int_eq(meta_known_of(s, &written), 0);
    snprintf(written.store, sizeof written.store, "0123456789abcdef0123456789abcdef");
    written.generation = 2;
    written.revision = 11;
    base_text_init(&text, META_KNOWN_TEXT_MAX);
    meta_known_write(&text, &written);
    ck_assert_str_eq(base_text_str(&text),
                     "{\"store\":\"0123456789abcdef0123456789abcdef\",\"generation\":2,"
                     "\"revision\":11,\"tokens\":{\"a.1\":9,\"b\":3}}\n");
    ck_assert_msg(meta_known_read(text.data, text.length, &known, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(known.revision, 11);
    ck_assert_uint_eq(known.generation, 2);
    ck_assert_str_eq(known.store, written.store);
    ck_assert_uint_eq(meta_known_void(&known, back), 3);
    ck_assert(!is_void(back, "a.1"));
    ck_assert(is_void(back, "b")); /* it was changed since */
    ck_assert(is_void(back, "c"));
    ck_assert(is_void(back, "gone"));
    ck_assert(!is_void(back, "new")); /* nobody here can know it */
    meta_known_fini(&written);
    meta_known_fini(&known);
    base_text_fini(&text);
    meta_resources_free(s);
    meta_resources_free(back);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":-2,\"tokens\":{}}",
        "{\"store\":\"a\",\"revision\":2,\"tokens\":{}}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2,\"tokens\":{\"t\":0}}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2,\"tokens\":{\"t\":\"1\"}}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2,\"tokens\":{\"\":1}}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2,\"tokens\":{\"t\":1,\"t\":2}}",
        "{\"store\":\"a\",\"generation\":1,\"revision\":2,\"tokens\":{},\"more\":1}",
        "{\"store\":\"0123456789abcdef0123456789abcdef0\",\"generation\":1,\"revision\":2,"
        "\"tokens\":{}}",
    };
    struct meta_known known;
    struct base_errbuf err;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(meta_known_read(texts[i], strlen(texts[i]), &known, &err) == -EINVAL, "%s",
                      texts[i]);
        ck_assert_str_eq(err.text, "it makes no sense");
        meta_known_fini(&known);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_written_is_read_and_knows_which_tokens_came_back)                                    \
    T(what_makes_no_sense_is_refused)
KEDGE_CHECK_MAIN("metaserver known", TESTS)
