/* SPDX-License-Identifier: Apache-2.0 */
/* What rdmactl says of nodes and pools, and how it shows them. */
#include "../check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/nodes.h"
#include "ctl/resources.h"

static struct base_errbuf err;
static struct base_text out;
static uint64_t revision;
static bool drains;

#define NODE                                                                                       \
    "{\"name\":\"n\",\"revision\":7,\"labels\":{\"zone\":\"a\"},\"cordoned\":true,"                \
    "\"draining\":true,\"grace_ms\":5,\"reason\":\"r\"}"

static int edit(const char *body, const struct ctl_node_edit *what)
{
    base_text_reset(&out);
    return ctl_edit_node(body, body != NULL ? strlen(body) : 0, what, &out, &revision, &drains,
                         &err);
}

static int label(const char *body, const char *one, const char *other)
{
    const char *const words[] = {one, other};
    const struct ctl_node_edit what = {
        .what = CTL_NODE_LABEL, .words = words, .word_count = other != NULL ? 2 : 1};
    return edit(body, &what);
}

START_TEST(labels_are_set_and_taken_away_beside_what_else_is_set)
{
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_int_eq(label(NODE, "rack=7", "zone-"), 0);
    ck_assert_uint_eq(revision, 7);
    ck_assert_str_eq(base_text_str(&out), "{\"labels\":{\"rack\":\"7\"},\"cordoned\":true,"
                                          "\"draining\":true,\"grace_ms\":5,\"reason\":\"r\"}");
    ck_assert_int_eq(label(NULL, "a=b=c", "none-"), 0); /* the server knows what a value may be */
    ck_assert_uint_eq(revision, 0);
    ck_assert_str_eq(base_text_str(&out), "{\"labels\":{\"a\":\"b=c\"}}");
    ck_assert_int_eq(label(NODE, "my-key=", NULL), 0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"my-key\":\"\""));
    static const char *const wrong[] = {"", "-", "=", "=x", "zone", "\xff=a", "a=\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(label(NODE, wrong[i], NULL) == -EINVAL, "%s", wrong[i]);
    ck_assert_int_eq(label("{\"name\":\"n\"}", "a=b", NULL), -EBADMSG);
    ck_assert_int_eq(label("[]", "a=b", NULL), -EBADMSG);
    base_text_fini(&out);
}
END_TEST

START_TEST(cordon_drain_and_uncordon_say_all_of_a_nodes_state)
{
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_int_eq(edit(NODE, &(struct ctl_node_edit){.what = CTL_NODE_UNCORDON}), 0);
    ck_assert_str_eq(base_text_str(&out),
                     "{\"labels\":{\"zone\":\"a\"},\"cordoned\":false,\"draining\":false}");
    ck_assert_int_eq(edit(NULL, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN,
                                                        .reason = "because",
                                                        .grace_said = true,
                                                        .grace_ms = 30000}),
                     0);
    ck_assert_str_eq(base_text_str(&out), "{\"cordoned\":true,\"draining\":true,"
                                          "\"reason\":\"because\",\"grace_ms\":30000}");
    ck_assert_int_eq(edit(NULL, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN,
                                                        .reason = "because",
                                                        .grace_said = true}),
                     0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"grace_ms\":0}")); /* at once */
    static const char cordoned[] = "{\"name\":\"n\",\"revision\":3,\"cordoned\":true,"
                                   "\"reason\":\"a disk\"}";
    ck_assert_int_eq(
        edit(cordoned, &(struct ctl_node_edit){.what = CTL_NODE_CORDON, .reason = "by me"}), 0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"reason\":\"a disk\""));
    ck_assert_int_eq(
        edit(cordoned, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN, .reason = "by me"}), 0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"reason\":\"a disk\""));
    ck_assert_int_eq(edit(cordoned, &(struct ctl_node_edit){.what = CTL_NODE_CORDON,
                                                            .reason = "a fan",
                                                            .reason_said = true}),
                     0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"reason\":\"a fan\""));
    ck_assert_int_eq(edit(NODE, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN,
                                                        .reason = "\xff",
                                                        .reason_said = true}),
                     -EINVAL);
    base_text_fini(&out);
}
END_TEST

START_TEST(what_is_not_said_of_a_drain_that_goes_on_stays)
{
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_int_eq(edit(NODE, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN, .reason = "by me"}),
                     0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"grace_ms\":5"));
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"reason\":\"r\""));
    ck_assert_int_eq(edit(NODE, &(struct ctl_node_edit){.what = CTL_NODE_DRAIN,
                                                        .reason = "by me",
                                                        .grace_said = true,
                                                        .grace_ms = 9}),
                     0);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"grace_ms\":9"));
    ck_assert_int_eq(edit(NODE, &(struct ctl_node_edit){.what = CTL_NODE_CORDON,
                                                        .reason = "because",
                                                        .reason_said = true}),
                     0);
    ck_assert(drains);
    ck_assert_str_eq(base_text_str(&out),
                     "{\"labels\":{\"zone\":\"a\"},\"cordoned\":true,"
                     "\"draining\":true,\"grace_ms\":5,\"reason\":\"because\"}");
    /* A cordon that is no drain has no grace for one that comes later. */
    static const char cordoned[] = "{\"name\":\"n\",\"revision\":3,\"cordoned\":true,"
                                   "\"draining\":false,\"grace_ms\":0,\"reason\":\"a disk\"}";
    ck_assert_int_eq(
        edit(cordoned, &(struct ctl_node_edit){.what = CTL_NODE_CORDON, .reason = "by me"}), 0);
    ck_assert(!drains);
    ck_assert_ptr_nonnull(strstr(base_text_str(&out), "\"draining\":false"));
    base_text_fini(&out);
}
END_TEST

static int set(const char *kind, const char *body, const char *word)
{
    base_text_reset(&out);
    return ctl_edit_resource(resource_table_find(kind), body, body != NULL ? strlen(body) : 0,
                             &word, 1, &out, &revision, &err);
}

/* What a pool's column shows; @field is the name in the pool's table, so that a new column moves
 * none. */
static const char *shown(const struct ctl_resource *s, const char *field)
{
    const struct resource_table *t = resource_table_find("pool");
    const struct resource_field *f = resource_field_find(t, field);
    ck_assert_msg(f != NULL, "a pool has no %s", field);
    return s->value[f - t->field];
}

START_TEST(pools_have_numbers_that_may_be_none_and_labels_of_nodes)
{
    static const char pool[] = "{\"name\":\"p\",\"revision\":2,\"nodes\":{\"zone\":\"a\"},"
                               "\"spares\":0}";
    struct ctl_resource s;
    base_text_init(&out, CTL_BODY_BYTES);
    ck_assert_int_eq(set("pool", pool, "spares="), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{\"zone\":\"a\"}}");
    ck_assert_int_eq(set("pool", pool, "nodes=zone=b,rack=7"), 0);
    ck_assert_str_eq(base_text_str(&out),
                     "{\"nodes\":{\"zone\":\"b\",\"rack\":\"7\"},\"spares\":0}");
    ck_assert_int_eq(set("pool", pool, "nodes=all"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{},\"spares\":0}");
    static const char all[] = "{\"name\":\"p\",\"revision\":2,\"nodes\":{}}";
    ck_assert_int_eq(set("pool", all, "tenants=web,batch"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{},\"tenants\":[\"web\",\"batch\"]}");
    ck_assert_int_eq(set("pool", all, "lanes=2"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{},\"lanes\":2}");
    ck_assert_int_eq(
        set("pool", "{\"name\":\"p\",\"revision\":2,\"nodes\":{},\"lanes\":2}", "lanes="), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{}}");
    ck_assert_int_eq(set("pool", all, "grace_ms=0"), 0);
    ck_assert_str_eq(base_text_str(&out), "{\"nodes\":{},\"grace_ms\":0}");
    static const char *const wrong[] = {"nodes=zone", "nodes=zone=a,zone=b", "nodes=a=b,",
                                        "nodes=,a=b", "spares=many",         "mr_lease=5",
                                        "nodes=",     "nodes=all,a=b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(set("pool", all, wrong[i]) == -EINVAL, "%s", wrong[i]);
    ck_assert_int_eq(set("pool", NULL, "spares=1"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "nodes=all"));
    ck_assert_int_eq(ctl_decode_resource(resource_table_find("pool"), all, strlen(all), &s, &err),
                     0);
    ck_assert_str_eq(shown(&s, "nodes"), "all");
    ctl_resource_fini(&s);
    static const char full[] = "{\"name\":\"p\",\"revision\":2,\"nodes\":{\"zone\":\"a\"},"
                               "\"number\":513,\"lanes\":3,\"spares\":0,\"mr_lease_ms\":50,"
                               "\"tenants\":[\"web\",\"batch\"]}";
    ck_assert_int_eq(ctl_decode_resource(resource_table_find("pool"), full, strlen(full), &s, &err),
                     0);
    ck_assert_str_eq(shown(&s, "nodes"), "zone=a");
    ck_assert_str_eq(shown(&s, "tenants"), "web,batch");
    ck_assert_str_eq(shown(&s, "number"), "513");
    ck_assert_str_eq(shown(&s, "lanes"), "3");
    ck_assert_str_eq(shown(&s, "sessions_ahead"), "-");
    ck_assert_str_eq(shown(&s, "spares"), "0");
    ck_assert_str_eq(shown(&s, "mr_lease_ms"), "50ms");
    ck_assert_str_eq(shown(&s, "grace_ms"), "-");
    ctl_resource_fini(&s);
    base_text_fini(&out);
}
END_TEST

START_TEST(labels_that_no_server_says_are_not_shown)
{
    struct ctl_node n;
    struct base_text t;
    static const char odd[] = "{\"id\":\"a\",\"state\":\"live\",\"labels\":{\"a,b\":\"c\","
                              "\"d\":\"e,f\",\"g\":1,\"h=\":\"i\",\"k\":\"\\u001b\"}}";
    ck_assert_int_eq(ctl_decode_node(odd, strlen(odd), &n, &err), 0);
    ck_assert_str_eq(n.labels, "k=?");
    base_text_init(&t, 4096);
    ctl_node_json(&t, &n);
    ck_assert_ptr_nonnull(strstr(base_text_str(&t), "\"labels\":{\"k\":\"?\"}"));
    base_text_fini(&t);
}
END_TEST

START_TEST(how_a_nodes_fabric_works_is_said_in_words)
{
    static const struct {
        const char *fabric, *list, *get;
    } nodes[] = {
        {"\"state\":\"undecided\",\"for_ms\":12000,\"tried\":2,\"failing\":[{\"node\":\"b\","
         "\"error\":\"timeout\",\"for_ms\":12000}],\"tried_by\":1,\"failed_by\":1,"
         "\"not_reached_by\":\"b\"",
         "undecided: this node or b",
         "undecided for 12s: between this node and b, and no other node has tried"},
        {"\"state\":\"undecided\",\"for_ms\":200000,\"tried\":0,\"failing\":[],\"tried_by\":1,"
         "\"failed_by\":1,\"not_reached_by\":\"c\"",
         "undecided: this node or c",
         "undecided for 3m20s: between this node and c, and no other node has tried"},
        {"\"state\":\"unreachable\",\"for_ms\":1500,\"tried\":0,\"failing\":[],\"tried_by\":3,"
         "\"failed_by\":2",
         "unreachable by 2 of 3", "unreachable by 2 of 3 for 1.5s"},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        char json[512], text[CTL_FABRIC_TEXT];
        struct ctl_node n;
        struct base_text t;
        snprintf(json, sizeof json, "{\"id\":\"a\",\"state\":\"live\",\"fabric\":{%s}}",
                 nodes[i].fabric);
        ck_assert_int_eq(ctl_decode_node(json, strlen(json), &n, &err), 0);
        ck_assert_str_eq(ctl_fabric_text(&n.fabric, false, text), nodes[i].list);
        ck_assert_str_eq(ctl_fabric_text(&n.fabric, true, text), nodes[i].get);
        base_text_init(&t, 4096);
        ctl_node_json(&t, &n);
        ck_assert_msg(strstr(base_text_str(&t), nodes[i].fabric) != NULL, "%s", base_text_str(&t));
        base_text_fini(&t);
    }
}
END_TEST

#define TESTS(T)                                                                                   \
    T(labels_are_set_and_taken_away_beside_what_else_is_set)                                       \
    T(cordon_drain_and_uncordon_say_all_of_a_nodes_state)                                          \
    T(what_is_not_said_of_a_drain_that_goes_on_stays)                                              \
    T(pools_have_numbers_that_may_be_none_and_labels_of_nodes)                                     \
    T(labels_that_no_server_says_are_not_shown)                                                    \
    T(how_a_nodes_fabric_works_is_said_in_words)
KEDGE_CHECK_MAIN("ctl.nodes", TESTS)
