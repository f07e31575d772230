/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions in a store, and all of them as one line. */
#ifndef TESTS_UNIT_METASERVER_STORE_NAMES_FIXTURE_H
#define TESTS_UNIT_METASERVER_STORE_NAMES_FIXTURE_H

#include "store_fixture.h"

/* Names of regions, as one line. */
static inline int list_name(void *user, const struct meta_store_name *x)
{
    struct listing *l = user;
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s/%s=%s:%u:%s ",
                                x->tenant, x->name, x->node, x->incarnation, x->grant);
    return 0;
}

static inline int skip_setting(void *user, const struct meta_store_resource *x)
{
    (void)user, (void)x;
    return 0;
}

static inline int skip_change(void *user, const struct meta_store_change *x)
{
    (void)user, (void)x;
    return 0;
}

static inline void expect_names(struct meta_store *store, const char *text)
{
    struct listing l = {.text = ""};
    const struct meta_store_visitor visitor = {skip_setting, skip_change, &l, list_name};
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_load_resources(store, &visitor, &err), 0);
    ck_assert_str_eq(l.text, text);
}

static inline struct meta_store_name named(const char *tenant, const char *name, const char *node,
                                           uint32_t incarnation, const char *grant)
{
    struct meta_store_name n = {.incarnation = incarnation};
    snprintf(n.tenant, sizeof n.tenant, "%s", tenant);
    snprintf(n.name, sizeof n.name, "%s", name);
    snprintf(n.node, sizeof n.node, "%s", node);
    snprintf(n.grant, sizeof n.grant, "%s", grant);
    return n;
}

static inline int publish(struct meta_store *store, struct meta_store_name name)
{
    struct meta_store_outcome out;
    return meta_store_commit(store, &(struct meta_store_txn){.publish = &name}, &out);
}

static inline int withdraw(struct meta_store *store, const struct meta_store_name *names,
                           uint32_t n)
{
    struct meta_store_outcome out;
    const struct meta_store_txn txn = {.withdraw = names, .withdraw_count = n};
    return meta_store_commit(store, &txn, &out);
}

#endif
