/* SPDX-License-Identifier: Apache-2.0 */
#include "../check_main.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/manifest.h"
#include "ctl/yaml.h"

static struct base_errbuf err;

/* The documents, as JSON. */
static const char *read_yaml(const char *text)
{
    static char out[4096];
    json_t *documents;
    ck_assert_msg(ctl_yaml_read(text, strlen(text), &documents, &err) == 0, "%s", err.text);
    char *json = json_dumps(documents, JSON_COMPACT);
    snprintf(out, sizeof out, "%s", json);
    free(json);
    json_decref(documents);
    return out;
}

static const char *print_yaml(const char *json)
{
    static char out[4096];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ctl_yaml_print(json, file), 0);
    rewind(file);
    out[fread(out, 1, sizeof out - 1, file)] = '\0';
    fclose(file);
    return out;
}

START_TEST(what_json_has_is_read)
{
    ck_assert_str_eq(read_yaml("kind: tenant\nname: web\nuids: [1000, 2000-2999]\nx: {a: true}\n"),
                     "[{\"kind\":\"tenant\",\"name\":\"web\",\"uids\":[1000,\"2000-2999\"],"
                     "\"x\":{\"a\":true}}]");
    ck_assert_str_eq(read_yaml("a: 1\n---\n- 'true'\n- \"7\"\n- null\n- ~\n-\n"),
                     "[{\"a\":1},[\"true\",\"7\",null,null,null]]");
    ck_assert_str_eq(read_yaml("[no, yes, on, 0x10, 010, 1e3, 1.5, -0, -5, 9999999999999999999]"),
                     "[[\"no\",\"yes\",\"on\",\"0x10\",\"010\",\"1e3\",\"1.5\",0,-5,"
                     "\"9999999999999999999\"]]");
    ck_assert_str_eq(read_yaml(""), "[]");
    ck_assert_str_eq(read_yaml("# nothing\n---\n"), "[null]");
}
END_TEST

START_TEST(what_could_grow_is_refused)
{
    static const char *const wrong[][2] = {
        {"a: &x [1, 2]\nb: *x\n", "line 1: anchors and aliases are not taken"},
        {"a: 1\nb: *x\n", "anchors and aliases"},
        {"*x : 1\n", ""},
        {"a: !!str 5\n", "line 1: tags are not taken"},
        {"!foo {a: 1}\n", "tags are not taken"},
        {"a: 1\nb: 2\na: 3\n", "line 3: a key is there twice"},
        {"[1]: 2\n", "a key must be a text"},
        {"a: \"x\\0y\"\n", "NUL"},
        {"a: [1\n", ""},
        {"\ta: 1\n", ""},
        {"a: \xff\n", ""},
        {"%YAML 3.0\n---\na: 1\n", ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *documents;
        ck_assert_msg(ctl_yaml_read(wrong[i][0], strlen(wrong[i][0]), &documents, &err) == -EINVAL,
                      "%s", wrong[i][0]);
        ck_assert_msg(strstr(err.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0], err.text);
    }
}
END_TEST

START_TEST(depth_and_documents_have_a_bound)
{
    struct base_text t;
    json_t *documents;
    base_text_init(&t, 1 << 20);
    for (int i = 0; i < CTL_YAML_DEPTH; i++)
        base_text_append(&t, "[", 1);
    for (int i = 0; i < CTL_YAML_DEPTH; i++)
        base_text_append(&t, "]", 1);
    ck_assert_int_eq(ctl_yaml_read(base_text_str(&t), t.length, &documents, &err), 0);
    json_decref(documents);
    base_text_reset(&t);
    for (int i = 0; i < 500000; i++)
        base_text_append(&t, "[", 1);
    ck_assert_int_eq(ctl_yaml_read(base_text_str(&t), t.length, &documents, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "too deep"));
    base_text_reset(&t);
    for (int i = 0; i <= CTL_YAML_DOCUMENTS; i++)
        base_text_printf(&t, "--- 1\n");
    ck_assert_int_eq(ctl_yaml_read(base_text_str(&t), t.length, &documents, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "too many documents"));
    base_text_fini(&t);
}
END_TEST

START_TEST(what_is_printed_is_read_back)
{
    static const char json[] =
        "{\"a\":\"no\",\"b\":\"5\",\"c\":\"x: y\",\"d\":\"\",\"e\":[1,-2,true,null,\"\"],"
        "\"f\":{},\"g\":[],\"h\":\"1000-1999\",\"i\":\"a\\nb\\u001b[1m\",\"j\":\"fd00::17\","
        "\"k\":\"*x\",\"l\":\"\xc3\xa4\",\"m\":\"-\",\"n\":[{\"o\":[\"p\"]}],\"true\":\"~\"}";
    char wanted[sizeof json + 64];
    snprintf(wanted, sizeof wanted, "[%s]", json);
    json_t *root = json_loads(wanted, 0, NULL);
    char *form = json_dumps(root, JSON_COMPACT);
    const char *text = print_yaml(json);
    ck_assert_msg(strcmp(read_yaml(text), form) == 0, "%s", text);
    for (const char *at = text; *at != '\0'; at++) /* it may go to a terminal */
        ck_assert(*at == '\n' || (*at >= ' ' && *at <= '~'));
    free(form);
    json_decref(root);
    ck_assert_str_eq(print_yaml("{\"name\":\"web\",\"uids\":[5,\"7-9\"]}"),
                     "---\nname: web\nuids:\n- 5\n- \"7-9\"\n");
    ck_assert_int_eq(ctl_yaml_print("{", stdout), -EBADMSG);
}
END_TEST

START_TEST(files_may_be_yaml)
{
    struct ctl_manifest m = {.item = NULL};
    static const char text[] = "kind: tenant\nname: web\nmemory_bytes: 4GiB\n"
                               "---\n"
                               "- {kind: pool, name: gold, nodes: {zone: a}}\n"
                               "---\n"
                               "format_version: 1\ntenants:\n- name: db\n  revision: 4\n";
    ck_assert_msg(ctl_manifest_read(&m, text, strlen(text), &err) == 0, "%s", err.text);
    ck_assert_uint_eq(m.count, 3);
    ck_assert_str_eq(m.item[0].body, "{\"memory_bytes\":4294967296}");
    ck_assert_str_eq(m.item[1].name, "gold");
    ck_assert_uint_eq(m.item[2].revision, 4);
    ck_assert_int_eq(ctl_manifest_read(&m, "kind: tenant\nname: web\n", 23, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "there twice"));
    ck_assert_int_eq(ctl_manifest_read(&m, "just words", 10, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "not JSON, and as YAML no mapping"));
    ctl_manifest_fini(&m);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(what_json_has_is_read)                                                                       \
    X(what_could_grow_is_refused)                                                                  \
    X(depth_and_documents_have_a_bound)                                                            \
    X(what_is_printed_is_read_back)                                                                \
    X(files_may_be_yaml)
KEDGE_CHECK_MAIN("ctl.yaml", TESTS)
