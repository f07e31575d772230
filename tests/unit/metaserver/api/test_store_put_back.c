/* SPDX-License-Identifier: Apache-2.0 */
/* A shared store that is put back to what it was before, while metaservers serve from it. */
#include "shared_world.h"

static int no_more(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    (void)user, (void)item, (void)err;
    return 0;
}

/* Agents have heard of a revision: what comes after it must not have that number again. */
START_TEST(a_store_that_was_put_back_goes_on_above_what_was_known)
{
    struct base_errbuf err;
    struct reply reply;
    setup_all(8);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(ask(&all.metad[i], "PUT", "/v1/tenants/a",
                             i == 1 ? "{\"uids\":[1]}" : "{\"uids\":[2]}"),
                         300);
    settle_all();
    ck_assert_uint_eq(meta_resources_revision(all.metad[1].s.resources), 3);
    ck_assert_int_eq(meta_store_replace(all.metad[0].store, no_more, NULL, &err), 0);
    settle_all();
    ck_assert_int_eq(ask(&all.metad[1], "GET", "/v1/tenants/a", ""), 404);
    ck_assert_uint_gt(meta_resources_revision(all.metad[1].s.resources), 3);
    begin_ask(&all.metad[2], "PUT", "/v1/tenants/b", "{\"uids\":[2]}", &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    ck_assert_uint_gt(reply.revision, 4);
    expect_all_the_same(8);
    teardown_all();
}
END_TEST

/* One of which nothing that it is given comes to pass, twice. */
static void refuse_twice(struct metad *m)
{
    uint64_t seed = 0;
    bool refuses = false;
    while (!refuses) {
        struct base_prng prng;
        base_prng_seed(&prng, ++seed);
        refuses = true;
        for (int i = 0; i < 2; i++) {
            (void)base_prng_below(&prng, 100);
            refuses &= base_prng_below(&prng, 2) == 0;
        }
    }
    meta_store_hub_lose(m->store, seed, 100);
}

START_TEST(a_revision_that_could_not_be_raised_is_raised_later)
{
    struct base_errbuf err;
    setup_all(11);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    for (int i = 0; i < METASERVERS; i++)
        refuse_twice(&all.metad[i]);
    ck_assert_int_eq(meta_store_replace(all.metad[0].store, no_more, NULL, &err), 0);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        ck_assert_uint_eq(meta_resources_revision(all.metad[i].s.resources), 0);
        ck_assert_uint_gt(meta_service_due(&all.metad[i].s), all.now);
        ck_assert_uint_lt(meta_service_due(&all.metad[i].s), all.now + 10 * BASE_NS_PER_S);
        meta_store_hub_lose(all.metad[i].store, 1, 0);
    }
    tick_all();
    ck_assert_uint_eq(meta_resources_revision(all.metad[0].s.resources), 0);
    all.now += 10 * BASE_NS_PER_S;
    tick_all();
    ck_assert_uint_gt(meta_resources_revision(all.metad[0].s.resources), 1);
    expect_all_the_same(11);
    teardown_all();
}
END_TEST

/* What is put in place of a store: changes of tenants, each of a revision of its own from 1 on, and
 * one tenant that they left. */
struct other_history {
    struct meta_store_item items[8];
    int count, given;
};

static int next_of_history(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    struct other_history *h = user;
    (void)err;
    if (h->given == h->count)
        return 0;
    *item = h->items[h->given++];
    return 1;
}

static void add_change(struct other_history *h, const struct meta_resource_change *as,
                       const char *name, const char *before, const char *after)
{
    struct meta_store_item *item = &h->items[h->count++];
    *item = (struct meta_store_item){.kind = META_STORE_CHANGE};
    item->change = (struct meta_store_change){.revision = as->revision,
                                              .time_ms = as->time_ms,
                                              .who = as->who,
                                              .kind = "tenant",
                                              .name = name,
                                              .before = before,
                                              .after = after};
}

/* It has gone on to the number that was known, by other changes, of which the last one looks as the
 * one that had it. */
START_TEST(a_store_that_was_put_back_and_went_on_to_the_same_revision_is_found_out)
{
    static const char first[] = "{\"uids\":[1]}", last[] = "{\"uids\":[2]}";
    struct other_history h = {.count = 0};
    struct base_errbuf err;
    setup_all(10);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/b", "{\"uids\":[1]}"), 201);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[2]}"), 201);
    settle_all();
    const struct meta_resources *known = all.metad[1].s.resources;
    h.items[h.count++] = (struct meta_store_item){
        .kind = META_STORE_RESOURCE,
        .resource = {.kind = "tenant", .name = "a", .revision = 2, .body = last}};
    h.items[h.count++] = (struct meta_store_item){
        .kind = META_STORE_RESOURCE,
        .resource = {.kind = "tenant", .name = "c", .revision = 1, .body = first}};
    add_change(&h, meta_resources_change_after(known, 0), "c", NULL, first);
    add_change(&h, meta_resources_change_after(known, 1), "a", NULL, last);
    ck_assert_msg(meta_store_replace(all.metad[0].store, next_of_history, &h, &err) == 0, "%s",
                  err.text);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        ck_assert_int_eq(ask(&all.metad[i], "GET", "/v1/tenants/b", ""), 404);
        ck_assert_int_eq(ask(&all.metad[i], "GET", "/v1/tenants/c", ""), 200);
        ck_assert_uint_eq(count_restores(&all.metad[i]), 1);
    }
    ck_assert_uint_eq(meta_resources_revision(all.metad[0].s.resources), 3);
    expect_all_the_same(10);
    teardown_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_store_that_was_put_back_goes_on_above_what_was_known)                                      \
    T(a_revision_that_could_not_be_raised_is_raised_later)                                         \
    T(a_store_that_was_put_back_and_went_on_to_the_same_revision_is_found_out)
KEDGE_CHECK_MAIN("metaserver store put back", TESTS)
