/* SPDX-License-Identifier: Apache-2.0 */
/* How many calls registrations cost in etcd, of nodes of which their metaserver knows nothing: a
 * guess that nothing is stored of them saves a call where it is right, and costs one where not. */
#include <errno.h>

#include "etcd_replay.h"
#include "etcd_unkind.h"

enum {
    BATCHES = 70,
    FEW = 8, /* calls that are for learning: of the first, and of who asks again now and then */
    READ = 1,
    OWNERS = 1, /* who had the endpoints */
    WRITE = 1,
};

static struct unkind proxy; /* kind: it counts */
static struct meta_store *store;

static void begin(const char *prefix)
{
    (void)etcd_url();
    unkind_begin(&proxy, etcd_process.port, 1);
    store = open_member(proxy.url, prefix, "a");
    put(store, node("first", 1, 0, 0)); /* before that nothing is guessed */
}

static void end(void)
{
    meta_store_close(store);
    unkind_end(&proxy);
}

/* Calls that the registration of one node takes, which has that endpoint. */
static unsigned count_calls(const char *name, int number)
{
    const unsigned before = proxy.requests;
    char id[16];
    snprintf(id, sizeof id, "%s%03d", name, number);
    const struct meta_store_node n = node(id, 1, 1, number);
    struct meta_store_put registration = {.node = &n, .is_unknown = true};
    const struct meta_store_txn txn = {.puts = &registration, .put_count = 1};
    struct meta_store_outcome out;
    ck_assert_msg(meta_store_commit(store, &txn, &out) == 0, "%s", out.err.text);
    ck_assert_int_eq(registration.status, 0);
    return proxy.requests - before;
}

/* Of as many, each by itself. */
static unsigned count_all(const char *name, int first)
{
    unsigned calls = 0;
    for (int i = 0; i < BATCHES; i++)
        calls += count_calls(name, first + i);
    return calls;
}

static void expire_all(const char *name)
{
    struct meta_store_life life = {.incarnation = 1};
    struct base_errbuf err;
    for (int i = 0; i < BATCHES; i++) {
        snprintf(life.id, sizeof life.id, "%s%03d", name, i);
        ck_assert_msg(meta_store_expire(store, &life, 1, &err) == 0, "%s", err.text);
    }
}

START_TEST(who_is_stored_nowhere_costs_one_call)
{
    if (!etcd_is_there("calls of registrations in etcd"))
        return;
    begin("/calls/");
    ck_assert_uint_eq(count_all("n", 0), BATCHES * WRITE);
    end();
}
END_TEST

/* Their endpoints are others', who are gone. */
START_TEST(nodes_that_come_back_under_new_ids_are_not_guessed_for_long)
{
    if (!etcd_is_there("calls of registrations in etcd"))
        return;
    begin("/again/");
    (void)count_all("old", 0);
    expire_all("old");
    const unsigned calls = count_all("new", 0);
    printf("%u calls for %d batches\n", calls, BATCHES);
    ck_assert_uint_ge(calls, BATCHES * (READ + OWNERS + WRITE));
    ck_assert_uint_le(calls, BATCHES * (READ + OWNERS + WRITE) + FEW);
    end();
}
END_TEST

/* As of what another metaserver has written just before. */
START_TEST(guesses_come_back_when_they_are_right_again)
{
    if (!etcd_is_there("calls of registrations in etcd"))
        return;
    begin("/right/");
    (void)count_all("m", 0);
    ck_assert_uint_le(count_all("m", 0), BATCHES * READ + FEW); /* there is nothing to write */
    (void)count_all("p", BATCHES);
    ck_assert_uint_eq(count_calls("q", 2 * BATCHES), WRITE);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_stored_nowhere_costs_one_call)                                                        \
    T(nodes_that_come_back_under_new_ids_are_not_guessed_for_long)                                 \
    T(guesses_come_back_when_they_are_right_again)
KEDGE_CHECK_MAIN("metaserver store etcd_guess", TESTS)
