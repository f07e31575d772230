/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, without a store: what is refused and why, and what the trail remembers. */
#include "metaserver/resources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"

#define TRAIL 8

static struct meta_resources *s;
static struct meta_violation fault;
static struct meta_resource_change change;
static const struct meta_resource_match whatever;

static void setup(void)
{
    s = meta_resources_new(TRAIL);
    ck_assert_ptr_nonnull(s);
}

static void teardown(void)
{
    meta_resources_free(s);
}

static struct meta_resource tenant(const char *name, uint32_t first, uint32_t last)
{
    struct meta_resource t = {.kind = META_TENANT};
    snprintf(t.name, sizeof t.name, "%s", name);
    t.tenant.uids.count = 1;
    t.tenant.uids.range[0] = (struct resource_uid_range){first, last};
    t.tenant.numbers.region_names = RESOURCE_UNSAID;
    return t;
}

static struct meta_resource window(const char *name, const char *of, uint64_t bytes)
{
    struct meta_resource w = {.kind = META_WINDOW, .window.numbers.bytes = bytes};
    snprintf(w.name, sizeof w.name, "%s", name);
    snprintf(w.window.tenant, sizeof w.window.tenant, "%s", of);
    w.window.scope = of[0] != '\0' ? RESOURCE_WINDOW_TENANT : RESOURCE_WINDOW_DEVICE;
    return w;
}

static int put_if(struct meta_resource to, struct meta_resource_match match)
{
    memset(&fault, 0, sizeof fault);
    int status = meta_resources_plan_put(s, &to, &match, &change, &fault);
    if (status == 0)
        meta_resources_apply(s, &change);
    else
        ck_assert_msg(fault.detail[0] != '\0', "refused without a reason");
    return status;
}

static int put(struct meta_resource to)
{
    return put_if(to, whatever);
}

static int drop(enum meta_resource_kind kind, const char *name)
{
    int status = meta_resources_plan_remove(s, kind, name, &whatever, &change, &fault);
    if (status == 0)
        meta_resources_apply(s, &change);
    return status;
}

static uint64_t revision_of(enum meta_resource_kind kind, const char *name)
{
    const struct meta_resource *found = meta_resources_find(s, kind, name);
    return found != NULL ? found->revision : 0;
}

START_TEST(every_change_gets_the_next_revision)
{
    setup();
    ck_assert_uint_eq(meta_resources_revision(s), 0);
    ck_assert_int_eq(put(tenant("web", 1000, 1000)), 0);
    ck_assert(!change.had && change.has);
    ck_assert_int_eq(put(window("all", "", 4096)), 0);
    ck_assert_int_eq(put(tenant("web", 1000, 1001)), 0);
    ck_assert(change.had && change.has);
    ck_assert_uint_eq(change.from.tenant.uids.range[0].last, 1000);
    ck_assert_uint_eq(change.to.tenant.uids.range[0].last, 1001);
    ck_assert_uint_eq(revision_of(META_TENANT, "web"), 3);
    ck_assert_uint_eq(revision_of(META_WINDOW, "all"), 2);
    ck_assert_int_eq(drop(META_WINDOW, "all"), 0);
    ck_assert(change.had && !change.has);
    ck_assert_uint_eq(meta_resources_revision(s), 4);
    ck_assert_int_eq(drop(META_WINDOW, "all"), -ENOENT);
    ck_assert_uint_eq(meta_resources_revision(s), 4);
    teardown();
}
END_TEST

START_TEST(what_is_there_already_is_no_change)
{
    struct meta_resource t = tenant("web", 1000, 1000);
    setup();
    ck_assert_int_eq(put(t), 0);
    ck_assert_int_eq(put(t), 0);
    ck_assert_uint_eq(change.revision, 0);
    ck_assert_uint_eq(change.to.revision, 1);
    ck_assert_uint_eq(meta_resources_revision(s), 1);
    ck_assert_int_eq(put(window("w", "", 1)), 0);
    ck_assert_int_eq(put(window("w", "", 1)), 0);
    ck_assert_uint_eq(meta_resources_revision(s), 2);
    teardown();
}
END_TEST

START_TEST(uids_are_put_in_order_and_belong_to_one_tenant)
{
    setup();
    struct meta_resource t = tenant("a", 2000, 2999);
    t.tenant.uids.count = 2;
    t.tenant.uids.range[1] = (struct resource_uid_range){1000, 1000};
    ck_assert_int_eq(put(t), 0);
    const struct meta_resource *found = meta_resources_find(s, META_TENANT, "a");
    ck_assert_uint_eq(found->tenant.uids.range[0].first, 1000);
    ck_assert_uint_eq(found->tenant.uids.range[1].first, 2000);
    ck_assert_int_eq(put(tenant("b", 2500, 2500)), -EEXIST);
    ck_assert_str_eq(fault.field, "uids[0]");
    ck_assert_ptr_nonnull(strstr(fault.detail, "uid 2500 belongs to tenant a"));
    ck_assert_int_eq(put(tenant("b", 0, 2000)), -EEXIST);
    ck_assert_int_eq(put(tenant("b", 3000, 3000)), 0);
    ck_assert_int_eq(put(tenant("a", 1, 1)), 0);
    ck_assert_int_eq(put(tenant("b", 2000, 2999)), 0);
    t.tenant.uids.range[1].first = t.tenant.uids.range[1].last = 2999;
    ck_assert_int_eq(put(t), -EINVAL);
    ck_assert_str_eq(fault.field, "uids[1]");
    ck_assert_int_eq(put(tenant("c", 5, 4)), -EINVAL);
    ck_assert_int_eq(put(tenant("c", 5, UINT32_MAX)), -EINVAL);
    teardown();
}
END_TEST

START_TEST(values_out_of_bounds_are_named)
{
    setup();
    struct meta_resource t = tenant("a", 1, 1), w = window("w", "", 1);
    t.tenant.numbers.vqps = RESOURCE_NUMBER_MAX;
    ck_assert_int_eq(put(t), 0);
    t.tenant.numbers.vqps++;
    ck_assert_int_eq(put(t), -EINVAL);
    ck_assert_str_eq(fault.field, "vqps");
    t = tenant("a", 1, 1);
    t.tenant.numbers.memory_bytes = 65535;
    ck_assert_int_eq(put(t), -EINVAL);
    ck_assert_str_eq(fault.field, "memory_bytes");
    w.window.numbers.ops = RESOURCE_NUMBER_MAX + 1;
    ck_assert_int_eq(put(w), -EINVAL);
    ck_assert_str_eq(fault.field, "ops");
    w = window("w", "a", 1);
    w.window.scope = RESOURCE_WINDOW_DESTINATION;
    ck_assert_int_eq(put(w), -EINVAL);
    ck_assert_str_eq(fault.field, "tenant");
    w = window("w", "", 1);
    w.window.scope = RESOURCE_WINDOW_TENANT;
    ck_assert_int_eq(put(w), -EINVAL);
    static const char *const names[] = {
        "", "A", "-a", "a_b", "a/b", "a b", "a23456789a123456789a123456789a12"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_int_eq(put(tenant(names[i], 9, 9)), -EINVAL);
        ck_assert_str_eq(fault.field, "name");
    }
    ck_assert_int_eq(put(tenant("a23456789a123456789a123456789a1", 9, 9)), 0);
    ck_assert_uint_eq(meta_resources_revision(s), 2);
    teardown();
}
END_TEST

START_TEST(a_tenant_that_a_window_refers_to_stays)
{
    setup();
    ck_assert_int_eq(put(window("w", "web", 1)), -ENOENT);
    ck_assert_str_eq(fault.field, "tenant");
    ck_assert_int_eq(put(tenant("web", 1, 1)), 0);
    ck_assert_int_eq(put(window("w", "web", 1)), 0);
    ck_assert_int_eq(drop(META_TENANT, "web"), -EBUSY);
    ck_assert_ptr_nonnull(strstr(fault.detail, "window w refers to it"));
    ck_assert_int_eq(put(window("w", "", 1)), 0);
    ck_assert_int_eq(drop(META_TENANT, "web"), 0);
    teardown();
}
END_TEST

static struct meta_resource token(const char *name, enum resource_token_scope scope, const char *of)
{
    struct meta_resource t = {.kind = META_TOKEN, .token = {.scope = scope, .hash = {1}}};
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.token.tenant, sizeof t.token.tenant, "%s", of);
    return t;
}

START_TEST(a_workers_token_is_of_a_tenant_which_stays)
{
    setup();
    ck_assert_int_eq(put(token("t", RESOURCE_SCOPE_WORKER, "")), -EINVAL);
    ck_assert_str_eq(fault.field, "tenant");
    ck_assert_int_eq(put(token("t", RESOURCE_SCOPE_READER, "web")), -EINVAL);
    ck_assert_str_eq(fault.field, "tenant");
    ck_assert_int_eq(put(token("t", RESOURCE_SCOPE_WORKER, "web")), -ENOENT);
    ck_assert_str_eq(fault.field, "tenant");
    ck_assert_int_eq(put(tenant("web", 1, 1)), 0);
    ck_assert_int_eq(put(tenant("other", 2, 2)), 0);
    ck_assert_int_eq(put(token("t", RESOURCE_SCOPE_WORKER, "web")), 0);
    ck_assert_int_eq(drop(META_TENANT, "web"), -EBUSY);
    ck_assert_ptr_nonnull(strstr(fault.detail, "token t refers to it"));
    uint64_t revision = meta_resources_revision(s);
    ck_assert_int_eq(put(token("t", RESOURCE_SCOPE_WORKER, "other")), 0);
    ck_assert_uint_eq(meta_resources_revision(s), revision + 1);
    ck_assert_int_eq(drop(META_TENANT, "web"), 0);
    ck_assert_int_eq(drop(META_TOKEN, "t"), 0);
    ck_assert_int_eq(drop(META_TENANT, "other"), 0);
    teardown();
}
END_TEST

START_TEST(a_tenant_has_so_many_tokens)
{
    const struct meta_resource *all[META_WORKER_TOKENS_MAX];
    char name[16];
    setup();
    ck_assert_int_eq(put(tenant("web", 1, 1)), 0);
    ck_assert_int_eq(put(tenant("other", 2, 2)), 0);
    ck_assert_int_eq(put(token("reader", RESOURCE_SCOPE_READER, "")), 0);
    for (int i = 0; i < META_TENANT_TOKENS; i++) {
        snprintf(name, sizeof name, "t%02d", i);
        ck_assert_int_eq(put(token(name, RESOURCE_SCOPE_WORKER, "web")), 0);
    }
    ck_assert_int_eq(put(token("more", RESOURCE_SCOPE_WORKER, "web")), -ENOSPC);
    ck_assert_int_eq(put(token("more", RESOURCE_SCOPE_WORKER, "other")), 0);
    ck_assert_int_eq(put(token("more", RESOURCE_SCOPE_WORKER, "web")), -ENOSPC);
    ck_assert_int_eq(put(token("t00", RESOURCE_SCOPE_WORKER, "web")), 0); /* it is one of them */
    ck_assert_uint_eq(meta_resources_worker_tokens(s, all), META_TENANT_TOKENS + 1);
    ck_assert_str_eq(all[0]->name, "more");
    ck_assert_str_eq(all[16]->name, "t15");
    teardown();
}
END_TEST

START_TEST(conditions_are_kept_to)
{
    const struct meta_resource_match absent = {.absent = true}, any = {.any = true},
                                     first = {.listed = true, .count = 1, .revision = {1}},
                                     either = {.listed = true, .count = 2, .revision = {7, 2}},
                                     none = {.listed = true};
    setup();
    ck_assert_int_eq(put_if(tenant("a", 1, 1), any), -EREMCHG);
    ck_assert_str_eq(fault.field, "If-Match");
    ck_assert_int_eq(put_if(tenant("a", 1, 1), first), -EREMCHG);
    ck_assert_int_eq(put_if(tenant("a", 1, 1), absent), 0);
    ck_assert_int_eq(put_if(tenant("a", 2, 2), absent), -EREMCHG);
    ck_assert_str_eq(fault.field, "If-None-Match");
    ck_assert_int_eq(put_if(tenant("a", 2, 2), first), 0);
    ck_assert_int_eq(put_if(tenant("a", 3, 3), first), -EREMCHG);
    ck_assert_ptr_nonnull(strstr(fault.detail, "its revision is 2"));
    ck_assert_int_eq(put_if(tenant("a", 2, 2), none), -EREMCHG);
    ck_assert_int_eq(put_if(tenant("a", 3, 3), either), 0);
    ck_assert_int_eq(put_if(tenant("a", 4, 4), any), 0);
    ck_assert_int_eq(meta_resources_plan_remove(s, META_TENANT, "a", &first, &change, &fault),
                     -EREMCHG);
    ck_assert_int_eq(meta_resources_plan_remove(s, META_TENANT, "b", &any, &change, &fault),
                     -EREMCHG);
    ck_assert_int_eq(meta_resources_plan_remove(s, META_TENANT, "a", &any, &change, &fault), 0);
    ck_assert_uint_eq(revision_of(META_TENANT, "a"), 4);
    teardown();
}
END_TEST

START_TEST(there_is_room_for_so_many_and_they_are_listed_by_name)
{
    char name[32], last[META_RESOURCE_NAME_BYTES] = "";
    uint32_t n = 0;
    setup();
    for (uint32_t i = 0; i < RESOURCE_TENANTS_MAX; i++) {
        snprintf(name, sizeof name, "t%u", (i * 37) % RESOURCE_TENANTS_MAX);
        ck_assert_int_eq(put(tenant(name, i, i)), 0);
    }
    ck_assert_int_eq(put(tenant("more", 5000, 5000)), -ENOSPC);
    ck_assert_int_eq(put(tenant("t1", 5000, 5000)), 0);
    for (const struct meta_resource *t = NULL;
         (t = meta_resources_after(s, META_TENANT, last)) != NULL; n++) {
        ck_assert_int_lt(strcmp(last, t->name), 0);
        snprintf(last, sizeof last, "%s", t->name);
    }
    ck_assert_uint_eq(n, RESOURCE_TENANTS_MAX);
    ck_assert_int_eq(drop(META_TENANT, "t7"), 0);
    ck_assert_int_eq(put(tenant("more", 6000, 6000)), 0);
    teardown();
}
END_TEST

START_TEST(the_trail_keeps_the_newest_and_knows_what_is_gone)
{
    setup();
    ck_assert(meta_resources_trail_has(s, 0));
    ck_assert(!meta_resources_trail_has(s, 1));
    ck_assert_ptr_null(meta_resources_change_after(s, 0));
    for (uint64_t i = 1; i <= 20; i++) {
        struct meta_resource w = window("w", "", i);
        ck_assert_int_eq(meta_resources_plan_put(s, &w, &whatever, &change, &fault), 0);
        ck_assert_uint_eq(meta_resources_forgets(s), i > TRAIL ? i - TRAIL : 0);
        meta_resources_apply(s, &change);
        ck_assert_uint_eq(meta_resources_change_after(s, i - 1)->to.window.numbers.bytes, i);
    }
    ck_assert(!meta_resources_trail_has(s, 11));
    ck_assert(meta_resources_trail_has(s, 12));
    ck_assert(meta_resources_trail_has(s, 20));
    ck_assert(!meta_resources_trail_has(s, 21));
    ck_assert_uint_eq(meta_resources_change_after(s, 0)->revision, 13);
    ck_assert_uint_eq(meta_resources_change_after(s, 15)->revision, 16);
    ck_assert_ptr_null(meta_resources_change_after(s, 20));
    teardown();
}
END_TEST

/* What a revision stood for that was used after the backup, and before the restore, is not known.
 */
START_TEST(a_restores_entry_leaves_out_revisions_which_the_trail_does_not_have)
{
    struct meta_resource_change c = {.kind = META_WINDOW, .name = "w", .had = true};
    setup();
    for (c.revision = 5; c.revision < 8; c.revision++)
        ck_assert_int_eq(meta_resources_restore_change(s, &c), 0);
    c = (struct meta_resource_change){.kind = META_RESTORE, .name = "store", .has = true};
    c.to.kind = META_RESTORE;
    c.revision = 7;
    ck_assert_int_eq(meta_resources_restore_change(s, &c), -EINVAL);
    c.revision = 1000;
    ck_assert_int_eq(meta_resources_restore_change(s, &c), 0);
    ck_assert_uint_eq(meta_resources_revision(s), 1000);
    struct meta_resource w = window("w", "", 9);
    ck_assert_int_eq(meta_resources_plan_put(s, &w, &whatever, &change, &fault), 0);
    ck_assert_uint_eq(meta_resources_forgets(s), 0);
    meta_resources_apply(s, &change);
    static const uint64_t has[] = {4, 5, 6, 7, 999, 1000, 1001}, lacks[] = {3, 8, 9, 998, 1002};
    for (size_t i = 0; i < sizeof has / sizeof has[0]; i++)
        ck_assert_msg(meta_resources_trail_has(s, has[i]), "%zu", i);
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++)
        ck_assert_msg(!meta_resources_trail_has(s, lacks[i]), "%zu", i);
    ck_assert_uint_eq(meta_resources_change_after(s, 6)->revision, 7);
    ck_assert_uint_eq(meta_resources_change_after(s, 7)->revision, 1000);
    ck_assert_uint_eq(meta_resources_change_after(s, 1000)->revision, 1001);
    ck_assert_ptr_null(meta_resources_change_after(s, 1001));
    teardown();
}
END_TEST

START_TEST(what_was_stored_is_restored_with_its_revisions)
{
    struct meta_resource t = tenant("web", 1, 1), w = window("w", "web", 9);
    struct meta_resource_change c = {.kind = META_WINDOW, .name = "w", .had = true};
    t.revision = 3;
    w.revision = 5;
    setup();
    ck_assert_int_eq(meta_resources_restore(s, &w, &fault), -ENOENT);
    ck_assert_int_eq(meta_resources_restore(s, &t, &fault), 0);
    ck_assert_int_eq(meta_resources_restore(s, &t, &fault), -EREMCHG);
    ck_assert_int_eq(meta_resources_restore(s, &w, &fault), 0);
    ck_assert_int_eq(meta_resources_restore_change(s, &c), -EINVAL);
    for (c.revision = 4; c.revision <= 6; c.revision++)
        ck_assert_int_eq(meta_resources_restore_change(s, &c), 0);
    ck_assert_int_eq(meta_resources_restore_change(s, &c), 0);
    c.revision = 9;
    ck_assert_int_eq(meta_resources_restore_change(s, &c), -EINVAL);
    ck_assert_uint_eq(meta_resources_revision(s), 7);
    ck_assert_uint_eq(revision_of(META_WINDOW, "w"), 5);
    ck_assert(meta_resources_trail_has(s, 3) && !meta_resources_trail_has(s, 2));
    ck_assert_int_eq(put(window("w", "", 9)), 0);
    ck_assert_uint_eq(meta_resources_revision(s), 8);
    teardown();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(every_change_gets_the_next_revision)                                                         \
    T(what_is_there_already_is_no_change)                                                          \
    T(uids_are_put_in_order_and_belong_to_one_tenant)                                              \
    T(values_out_of_bounds_are_named)                                                              \
    T(a_tenant_that_a_window_refers_to_stays)                                                      \
    T(a_workers_token_is_of_a_tenant_which_stays)                                                  \
    T(a_tenant_has_so_many_tokens)                                                                 \
    T(conditions_are_kept_to)                                                                      \
    T(there_is_room_for_so_many_and_they_are_listed_by_name)                                       \
    T(the_trail_keeps_the_newest_and_knows_what_is_gone)                                           \
    T(a_restores_entry_leaves_out_revisions_which_the_trail_does_not_have)                         \
    T(what_was_stored_is_restored_with_its_revisions)
KEDGE_CHECK_MAIN("metaserver settings", TESTS)
