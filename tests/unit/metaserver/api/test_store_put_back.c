/* SPDX-License-Identifier: Apache-2.0 */
/* A shared store that is put back to what it was before, while metaservers serve from it. */
#include "world_shared.h"

/* To nothing. */
static void put_back_to_nothing(void)
{
    struct meta_store *nothing = meta_store_memory(NULL);
    meta_store_hub_put_back(all.hub, nothing);
    meta_store_close(nothing);
}

/* Agents have heard of a revision: what comes after it must not have that number again. */
START_TEST(a_store_that_was_put_back_goes_on_above_what_was_known)
{
    struct reply reply;
    setup_all(8);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(ask(&all.metad[i], "PUT", "/v1/tenants/a",
                             i == 1 ? "{\"uids\":[1]}" : "{\"uids\":[2]}"),
                         300);
    settle_all();
    ck_assert_uint_eq(meta_resources_revision(all.metad[1].s.resources), 3);
    put_back_to_nothing();
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
    setup_all(11);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    for (int i = 0; i < METASERVERS; i++)
        refuse_twice(&all.metad[i]);
    put_back_to_nothing();
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
    struct meta_store *other = meta_store_memory(NULL);
    ck_assert_msg(meta_store_replace(other, next_of_history, &h, &err) == 0, "%s", err.text);
    meta_store_hub_put_back(all.hub, other);
    meta_store_close(other);
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

/* ---- tokens */

static struct meta_store *copy_store(void)
{
    struct meta_store *copy = meta_store_memory(NULL);
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_copy(all.metad[0].store, copy, &err), 0);
    return copy;
}

static const struct meta_token *find_token(int i, const char *name)
{
    const struct meta_resource *r = meta_resources_find(all.metad[i].s.resources, META_TOKEN, name);
    return r != NULL ? &r->token : NULL;
}

/* Nobody is let in by one of these at any time. */
static void expect_void(const char *const *names, int count)
{
    for (int step = 0; step < 1000; step++) {
        step_all();
        for (int k = 0; k < count * METASERVERS; k++) {
            const struct meta_token *t = find_token(k % METASERVERS, names[k / METASERVERS]);
            ck_assert_msg(t == NULL || meta_token_is_bare(t), "%s", names[k / METASERVERS]);
        }
    }
}

static const char *const gone[] = {"changed", "deleted"};

/* The store as it was, before two of three tokens were deleted, or changed. */
static struct meta_store *begin_with_tokens(uint64_t seed)
{
    setup_all(seed);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tokens/kept", "{\"scope\":\"admin\"}"), 201);
    for (int i = 0; i < 2; i++) {
        char path[32];
        snprintf(path, sizeof path, "/v1/tokens/%s", gone[i]);
        ck_assert_int_eq(ask(&all.metad[1], "PUT", path, "{\"scope\":\"admin\"}"), 201);
    }
    settle_all();
    struct meta_store *before = copy_store();
    ck_assert_int_eq(ask(&all.metad[2], "DELETE", "/v1/tokens/deleted", ""), 204);
    ck_assert_int_eq(ask(&all.metad[2], "PUT", "/v1/tokens/changed", "{\"scope\":\"reader\"}"),
                     200);
    settle_all();
    return before;
}

static void expect_deleted_again(void)
{
    expect_void(gone, 2);
    settle_all();
    for (int i = 0; i < METASERVERS; i++) {
        for (int k = 0; k < 2; k++)
            ck_assert_ptr_null(find_token(i, gone[k]));
        ck_assert_ptr_nonnull(find_token(i, "kept"));
        ck_assert(!meta_token_is_bare(find_token(i, "kept")));
        ck_assert_uint_gt(meta_resources_revision(all.metad[i].s.resources), 5);
    }
}

START_TEST(no_token_that_was_deleted_lives_again_when_the_store_is_put_back)
{
    struct meta_store *before = begin_with_tokens(12);
    meta_store_hub_put_back(all.hub, before);
    meta_store_close(before);
    for (int i = 0; i < METASERVERS; i++) /* as the loop does when it has heard that */
        while (meta_resources_revision(all.metad[i].s.resources) == 5)
            step_all();
    for (int i = 0; i < METASERVERS; i++)
        meta_service_tick(&all.metad[i].s, all.now, all.now / BASE_NS_PER_MS);
    expect_deleted_again();
    expect_all_the_same(12);
    /* One of that name can be made again, and is another one. */
    ck_assert_int_eq(ask(&all.metad[1], "PUT", "/v1/tokens/deleted", "{\"scope\":\"admin\"}"), 201);
    settle_all();
    ck_assert(!meta_token_is_bare(find_token(0, "deleted")));
    teardown_all();
}
END_TEST

static void restart_all(void)
{
    for (int i = 0; i < METASERVERS; i++)
        close_metad(&all.metad[i]);
    for (int i = 0; i < METASERVERS; i++)
        open_metad(&all.metad[i], i, MAX_NODES, (uint64_t)i);
}

/* One of three remembers: the others' disks were lost. */
START_TEST(nor_when_it_was_put_back_while_no_metaserver_ran)
{
    struct meta_known known;
    struct meta_store *before = begin_with_tokens(13);
    ck_assert_int_eq(meta_service_known(&all.metad[1].s, &known), 0);
    meta_store_hub_put_back(all.hub, before);
    meta_store_close(before);
    restart_all();
    ck_assert(!meta_token_is_bare(find_token(1, "deleted")));
    meta_service_remember(&all.metad[1].s, &known);
    for (int k = 0; k < 2; k++)
        ck_assert(meta_token_is_bare(find_token(1, gone[k])));
    meta_service_tick(&all.metad[1].s, all.now, all.now / BASE_NS_PER_MS);
    settle_all();
    expect_deleted_again();
    expect_all_the_same(13);
    meta_known_fini(&known);
    teardown_all();
}
END_TEST

/* What an operator restores is what he wants, and is told of. */
START_TEST(a_backup_that_is_restored_brings_back_what_it_holds)
{
    struct base_errbuf err;
    struct meta_known known;
    struct meta_store *before = begin_with_tokens(14);
    ck_assert_int_eq(meta_service_known(&all.metad[1].s, &known), 0);
    ck_assert_int_eq(meta_store_copy(before, all.metad[0].store, &err), 0);
    settle_all();
    ck_assert(!meta_token_is_bare(find_token(0, "deleted")));
    restart_all();
    meta_service_remember(&all.metad[1].s, &known);
    ck_assert(!meta_token_is_bare(find_token(1, "deleted")));
    settle_all();
    meta_known_fini(&known);
    meta_store_close(before);
    teardown_all();
}
END_TEST

/* ---- names of regions */

static bool renewal_says(int i, const char *what)
{
    struct reply reply;
    begin_ask(&all.metad[i], "POST", "/v1/nodes/n1/renew", "{\"incarnation\":5}", &reply);
    ck_assert_int_eq(reply.status, 200);
    return strstr(reply.body, what) != NULL;
}

static void publish(int i, int name, int status)
{
    struct reply reply;
    put_name(&all.metad[i], 1, 5, 1, name, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, status);
}

static void take_back(int i, const char *name)
{
    struct reply reply;
    struct base_text body;
    struct meta_service_answer answer;
    const struct meta_service_request request = {.method = "DELETE",
                                                 .path = "/v1/nodes/n1/regions",
                                                 .parameter = {[META_PARAMETER_INCARNATION] = "5",
                                                               [META_PARAMETER_TENANT] = "web",
                                                               [META_PARAMETER_NAME] = name},
                                                 .token = &reply,
                                                 .shown = {.local = true}};
    base_text_init(&body, 4096);
    meta_service_handle(&all.metad[i].s, &request, all.now, &body, &answer);
    reply = (struct reply){.status = answer.status};
    base_text_fini(&body);
    settle_all();
    ck_assert_int_eq(reply.status, 204);
}

static bool has_name(int i, const char *name)
{
    return meta_names_find(all.metad[i].s.names, "web", name) != NULL;
}

/* What was published since is lost, and what was taken back is there again: agents hear at each
 * metaserver that they are to say again what they have. Another snapshot says nothing. */
START_TEST(agents_hear_that_names_are_others_since_the_store_was_put_back)
{
    struct reply reply;
    setup_all(16);
    for (int i = 0; i < METASERVERS; i++) {
        put_node(&all.metad[i], 1, 5, 1, &reply);
        settle_all();
        ck_assert_int_lt(reply.status, 300);
    }
    publish(0, 1, 201);
    struct meta_store *before = copy_store();
    all.metad[2].cut_off = true; /* it hears of the next one by a snapshot alone */
    publish(1, 2, 201);
    for (int i = 0; i < METASERVERS; i++) {
        meta_store_hub_compact(all.metad[i].store);
        all.metad[i].cut_off = false;
        settle_all();
        ck_assert(has_name(i, "x1") && has_name(i, "x2") && !renewal_says(i, "names_anew"));
    }
    meta_store_hub_put_back(all.hub, before);
    settle_all();
    for (int i = 0; i < METASERVERS; i++)
        ck_assert(has_name(i, "x1") && !has_name(i, "x2") && renewal_says(i, "\"names_anew\":1"));
    all.again = true;
    publish(2, 2, 201);
    take_back(0, "x1");
    meta_store_hub_put_back(all.hub, before);
    settle_all();
    for (int i = 0; i < METASERVERS; i++)
        ck_assert(has_name(i, "x1") && renewal_says(i, "\"names_anew\":2"));
    expect_all_the_same(16);
    meta_store_close(before);
    teardown_all();
}
END_TEST

static void publish_of(int i, int node, int name, int status)
{
    struct reply reply;
    put_name(&all.metad[i], node, 5, node, name, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, status);
    if (status == 503)
        ck_assert(strstr(reply.body, "urn:kedge:problem:settling") != NULL);
}

/* For a lease nobody else is given a name that its owner may have had, and whose owner has not said
 * so yet; nor is one that has taken it over since refused for good, by whom it is not any more. */
START_TEST(names_of_a_store_that_was_put_back_wait_for_who_had_them)
{
    struct reply reply;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        setup_all(seed);
        for (int i = 0; i < METASERVERS; i++)
            for (int node = 1; node <= 2; node++) {
                put_node(&all.metad[i], node, 5, node, &reply);
                settle_all();
            }
        publish_of(0, 1, 1, 201);
        struct meta_store *before = copy_store();
        take_back(1, "x1"); /* which the other one gets */
        publish_of(1, 2, 1, 201);
        publish_of(2, 1, 2, 201);
        meta_store_hub_put_back(all.hub, before);
        settle_all();
        const int at = (int)(seed % METASERVERS);
        publish_of(at, 2, 2, 503); /* a newcomer, before its owner has said so */
        publish_of(at, 2, 3, 503);
        publish_of(at, 2, 1, 409);
        all.again = true;
        publish_of(at, 2, 1, 503); /* as its owner, of what is another one's again */
        publish_of(at, 1, 2, 201);
        all.again = false;
        take_back((at + 1) % METASERVERS, "x1");
        all.again = true;
        publish_of(at, 2, 1, 201);
        all.again = false;
        const uint64_t end_ns = all.now + LEASE;
        while (all.now < end_ns) {
            all.now += LEASE / 4;
            for (int i = 0; i < METASERVERS; i++)
                for (int node = 1; node <= 2; node++) {
                    put_node(&all.metad[i], node, 5, node, &reply);
                    settle_all();
                }
        }
        publish_of(at, 2, 2, 409);
        publish_of(at, 2, 3, 201);
        expect_all_the_same(seed);
        meta_store_close(before);
        teardown_all();
    }
}
END_TEST

/* All metaservers begin after it: who remembers more than the store has knows it. */
START_TEST(names_wait_too_where_the_store_was_put_back_while_none_ran)
{
    struct reply reply;
    struct meta_known known;
    setup_all(18);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    ck_assert_int_eq(meta_service_known(&all.metad[1].s, &known), 0);
    put_back_to_nothing();
    restart_all();
    meta_service_remember(&all.metad[1].s, &known);
    settle_all();
    put_node(&all.metad[1], 1, 5, 1, &reply);
    settle_all();
    publish(1, 1, 503);
    all.again = true;
    publish(1, 1, 201);
    meta_known_fini(&known);
    teardown_all();
}
END_TEST

/* One that begins when another one has raised the revision already finds nothing put back. */
START_TEST(names_wait_too_at_one_that_begins_after_others_have_found_it)
{
    struct reply reply;
    setup_all(19);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    settle_all();
    close_metad(&all.metad[2]);
    all.metad[2].dead = true;
    put_back_to_nothing();
    settle_all();
    ck_assert_uint_eq(count_restores(&all.metad[0]), 1);
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/b", "{\"uids\":[2]}"), 201);
    put_node(&all.metad[0], 1, 5, 1, &reply);
    settle_all();
    /* The restore is not the last change any more. */
    all.now += LEASE / 2;
    open_metad(&all.metad[2], 2, MAX_NODES, 2);
    settle_all();
    put_node(&all.metad[2], 1, 5, 1, &reply);
    settle_all();
    publish(2, 1, 503);
    all.again = true;
    publish(2, 1, 201);
    close_metad(&all.metad[2]);
    all.now += LEASE;
    all.metad[2].dead = true;
    tick_all(); /* and the others say that it is over */
    open_metad(&all.metad[2], 2, MAX_NODES, 3);
    settle_all();
    all.again = false;
    put_node(&all.metad[2], 1, 6, 1, &reply);
    settle_all();
    put_name(&all.metad[2], 1, 6, 1, 2, &reply);
    settle_all();
    ck_assert_int_eq(reply.status, 201);
    teardown_all();
}
END_TEST

/* What an operator restores from a backup has no names; nor does it go by what was known. */
START_TEST(names_wait_too_where_a_backup_was_restored)
{
    struct reply reply;
    struct base_errbuf err;
    struct meta_known known;
    for (int remembers = 0; remembers < 2; remembers++) {
        struct meta_store_item restore = {.kind = META_STORE_CHANGE,
                                          .change = {.revision = 7,
                                                     .time_ms = 1,
                                                     .who = "uid 0",
                                                     .kind = "restore",
                                                     .name = "store",
                                                     .after = "{\"revision\":1}"}};
        struct other_history h = {.items = {restore}, .count = remembers == 0};
        setup_all(20);
        ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
        settle_all();
        ck_assert_int_eq(meta_service_known(&all.metad[1].s, &known), 0);
        all.now += 2 * LEASE; /* the metaservers begin long after it */
        for (int i = 0; i < METASERVERS; i++)
            close_metad(&all.metad[i]);
        struct meta_store *store = meta_store_hub_open(all.hub, "operator");
        ck_assert_msg(meta_store_replace(store, next_of_history, &h, &err) == 0, "%s", err.text);
        meta_store_close(store);
        for (int i = 0; i < METASERVERS; i++)
            open_metad(&all.metad[i], i, MAX_NODES, (uint64_t)i);
        if (remembers)
            meta_service_remember(&all.metad[1].s, &known);
        settle_all();
        put_node(&all.metad[1], 1, 5, 1, &reply);
        settle_all();
        publish(1, 1, 503);
        all.again = true;
        publish(1, 1, 201);
        all.again = false;
        meta_known_fini(&known);
        teardown_all();
    }
}
END_TEST

/* One that waits to hear what came before it lets those pass that are of something else. */
START_TEST(who_waits_to_hear_keeps_nobody_else_waiting)
{
    struct reply reply, same, ready, node;
    setup_all(17);
    settle_all();
    all.metad[1].cut_off = true;
    ck_assert_int_eq(ask(&all.metad[0], "PUT", "/v1/tenants/web", "{\"uids\":[5]}"), 201);
    begin_ask(&all.metad[1], "PUT", "/v1/tenants/other", "{\"uids\":[6]}", &reply);
    begin_ask(&all.metad[1], "PUT", "/v1/tenants/other", "{\"uids\":[7]}", &same);
    begin_ask(&all.metad[1], "GET", "/readyz", "", &ready);
    put_node(&all.metad[1], 3, 5, 3, &node);
    for (int i = 0; i < 500 && ready.status == META_SERVICE_LATER; i++)
        step_all();
    ck_assert_int_ne(ready.status, META_SERVICE_LATER);
    ck_assert_ptr_null(strstr(ready.body, "has not answered"));
    for (int i = 0; i < 6000 && node.status == META_SERVICE_LATER; i++)
        step_all();
    ck_assert_int_eq(node.status, 201);
    ck_assert(reply.status == META_SERVICE_LATER && same.status == META_SERVICE_LATER);
    all.metad[1].cut_off = false;
    settle_all();
    ck_assert(reply.status == 201 && same.status == 200);
    expect_all_the_same(17);
    teardown_all();
}
END_TEST

/* Somebody has begun another one where it was: it is not taken for what this one's has become. */
START_TEST(another_store_is_not_believed)
{
    struct reply reply;
    struct meta_store *other = meta_store_memory(NULL);
    struct meta_service *s;
    setup_all(15);
    s = &all.metad[1].s;
    ck_assert_int_eq(ask(&all.metad[1], "PUT", "/v1/tenants/a", "{\"uids\":[1]}"), 201);
    put_node(&all.metad[1], 1, 5, 1, &reply);
    settle_all();
    snprintf(s->store_id, sizeof s->store_id, "one");
    snprintf(other->id, sizeof other->id, "another");
    const struct meta_store_heard heard = {.kind = META_STORE_HEARD_SNAPSHOT, .snapshot = other};
    meta_service_hear(s, &heard, all.now);
    ck_assert(meta_service_is_behind(s, all.now));
    ck_assert_ptr_nonnull(strstr(s->hearing.why.text, "another one by now"));
    ck_assert_uint_eq(meta_directory_count(s->directory).nodes, 1);
    ck_assert_int_eq(ask(&all.metad[1], "GET", "/v1/tenants/a", ""), 200);
    ck_assert_uint_eq(meta_resources_revision(s->resources), 1);
    meta_store_hub_compact(all.metad[1].store); /* the former one, of which the hub says no id */
    settle_all();
    ck_assert(!meta_service_is_behind(s, all.now));
    expect_all_the_same(15);
    meta_store_close(other);
    teardown_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_store_that_was_put_back_goes_on_above_what_was_known)                                      \
    T(a_revision_that_could_not_be_raised_is_raised_later)                                         \
    T(a_store_that_was_put_back_and_went_on_to_the_same_revision_is_found_out)                     \
    T(no_token_that_was_deleted_lives_again_when_the_store_is_put_back)                            \
    T(nor_when_it_was_put_back_while_no_metaserver_ran)                                            \
    T(agents_hear_that_names_are_others_since_the_store_was_put_back)                              \
    T(names_of_a_store_that_was_put_back_wait_for_who_had_them)                                    \
    T(names_wait_too_where_the_store_was_put_back_while_none_ran)                                  \
    T(names_wait_too_at_one_that_begins_after_others_have_found_it)                                \
    T(names_wait_too_where_a_backup_was_restored)                                                  \
    T(who_waits_to_hear_keeps_nobody_else_waiting)                                                 \
    T(another_store_is_not_believed)                                                               \
    T(a_backup_that_is_restored_brings_back_what_it_holds)
KEDGE_CHECK_MAIN("metaserver store put back", TESTS)
