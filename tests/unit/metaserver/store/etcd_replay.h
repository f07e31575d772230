/* SPDX-License-Identifier: Apache-2.0 */
/* What a watch gives, carried out: so that what it was told can be held against what is stored. */
#ifndef TESTS_UNIT_METASERVER_STORE_ETCD_REPLAY_H
#define TESTS_UNIT_METASERVER_STORE_ETCD_REPLAY_H

#include "base/clock.h"
#include "etcd_watch.h"
#include "metaserver/backup.h"
#include "store_fixture.h"

struct replay {
    struct meta_store *state; /* in memory */
    uint64_t at;
    unsigned snapshots, news, errors;
    unsigned put_backs;       /* of the snapshots, those that say so */
    struct base_errbuf error; /* the last one */
    uint32_t member_count;
    struct meta_store_member members[META_STORE_MEMBERS_MAX];
};

static inline struct meta_store_etcd_config etcd_config(const char *url, const char *prefix,
                                                        const char *member)
{
    return (struct meta_store_etcd_config){.endpoints = url,
                                           .prefix = prefix,
                                           .member = member,
                                           .about = "{\"rest\": \"x\"}",
                                           .timeout_ns =
                                               30 * BASE_NS_PER_S}; /* for machines that are busy */
}

static inline struct meta_store *open_member(const char *url, const char *prefix,
                                             const char *member)
{
    const struct meta_store_etcd_config config = etcd_config(url, prefix, member);
    struct meta_store *store = NULL;
    struct base_errbuf err;
    ck_assert_msg(meta_store_etcd(&config, &store, &err) == 0, "%s", err.text);
    return store;
}

static inline struct meta_store_watch *open_watch(const char *url, const char *prefix,
                                                  const char *member)
{
    const struct meta_store_etcd_config config = etcd_config(url, prefix, member);
    struct meta_store_watch *watch = NULL;
    struct base_errbuf err;
    ck_assert_msg(meta_store_etcd_watch(&config, &watch, &err) == 0, "%s", err.text);
    return watch;
}

/* All that is in a store. */
static inline char *dump_store(struct meta_store *store)
{
    struct meta_backup_counts counts;
    struct base_errbuf err;
    struct base_text text;
    base_text_init(&text, META_BACKUP_BYTES_MAX);
    const int status = meta_backup_write(store, 1, &text, &counts, &err);
    ck_assert_msg(status == 0, "%s", err.text);
    return text.data;
}

/* Sets a resource of this name, if the last change is that one. */
static inline struct meta_store_outcome set_after(struct meta_store *store, uint64_t last,
                                                  const char *name)
{
    const struct meta_store_change c = {
        .revision = 1, .who = "me", .kind = "tenant", .name = name, .after = "{1}"};
    const struct meta_store_txn txn = {.compare = last != UINT64_MAX, .last = last, .change = &c};
    struct meta_store_outcome out;
    meta_store_commit(store, &txn, &out);
    return out;
}

static inline void expect_same(struct meta_store *a, struct meta_store *b)
{
    char *one = dump_store(a), *other = dump_store(b);
    ck_assert_str_eq(one, other);
    free(one);
    free(other);
}

/* Something of etcd's own API, for which the store has no use. */
static inline json_t *ask_etcd(const char *path, const char *body)
{
    const struct meta_store_etcd_config config = etcd_config(etcd_url(), "/raw/", "raw");
    struct meta_etcd_client *client = NULL;
    const struct meta_etcd_call call = {.path = path,
                                        .body = body,
                                        .length = strlen(body),
                                        .deadline_ns = base_clock_ns() + 30 * BASE_NS_PER_S};
    struct base_errbuf err;
    json_t *answer = NULL;
    ck_assert_int_eq(meta_etcd_client_new(&config, &client, &err), 0);
    ck_assert_msg(meta_etcd_call(client, &call, &answer, &err) == 0, "%s", err.text);
    meta_etcd_client_free(client);
    return answer;
}

static inline void replay_news(struct replay *r, const struct meta_store_heard *h)
{
    ck_assert_ptr_nonnull(r->state);
    for (uint32_t i = 0; i < h->removed_count; i++) {
        struct meta_store_outcome out;
        const struct meta_store_txn txn = {.remove = &h->removed[i], .remove_count = 1};
        ck_assert_int_eq(meta_store_commit(r->state, &txn, &out), 0);
        ck_assert_uint_le(out.removed, 1);
    }
    for (uint32_t i = 0; i < h->node_count; i++)
        put(r->state, h->nodes[i]);
    for (uint32_t i = 0; i < h->withdrawn_count + h->published_count; i++) {
        const bool gone = i < h->withdrawn_count;
        const struct meta_store_txn txn = {.withdraw = gone ? &h->withdrawn[i] : NULL,
                                           .withdraw_count = gone,
                                           .publish =
                                               gone ? NULL : &h->published[i - h->withdrawn_count]};
        struct meta_store_outcome out;
        ck_assert_int_eq(meta_store_commit(r->state, &txn, &out), 0);
    }
    if (h->has_change) {
        struct meta_store_outcome out;
        const struct meta_store_txn txn = {.change = &h->change};
        ck_assert_int_eq(meta_store_commit(r->state, &txn, &out), 0);
        ck_assert_uint_eq(out.revision, h->change.revision); /* none came before */
    }
}

static inline void replay_one(struct replay *r, struct meta_store_heard *h)
{
    switch (h->kind) {
    case META_STORE_HEARD_SNAPSHOT:
        meta_store_close(r->state);
        r->state = h->snapshot;
        h->snapshot = NULL;
        r->snapshots++;
        r->put_backs += h->put_back;
        break;
    case META_STORE_HEARD_NEWS:
        ck_assert_uint_gt(h->at, r->at);
        replay_news(r, h);
        r->news++;
        break;
    case META_STORE_HEARD_MEMBERS:
        ck_assert_uint_ge(h->at, r->at);
        break;
    }
    r->at = h->at;
    if (h->kind != META_STORE_HEARD_NEWS) {
        r->member_count = h->member_count;
        memcpy(r->members, h->members, h->member_count * sizeof h->members[0]);
    }
    meta_store_heard_free(h);
}

/* One next(): what it returned. */
static inline int replay_next(struct replay *r, struct meta_store_watch *watch, uint64_t timeout_ns)
{
    struct meta_store_heard *heard = NULL;
    const int status = meta_store_watch_next(watch, timeout_ns, &heard, &r->error);
    if (status == 1)
        replay_one(r, heard);
    r->errors += status < 0;
    return status;
}

/* Until it has given so many snapshots. */
static inline void replay_snapshot(struct replay *r, struct meta_store_watch *watch, unsigned count)
{
    for (int i = 0; i < 120 && r->snapshots < count; i++)
        replay_next(r, watch, BASE_NS_PER_S);
    ck_assert_msg(r->snapshots == count, "%s", r->error.text);
}

/* It hears that there is nothing. */
static inline void replay_nothing(struct replay *r, struct meta_store_watch *watch,
                                  uint64_t timeout_ns)
{
    int status = -EBUSY;
    for (int i = 0; i < 120 && status < 0; i++)
        status = replay_next(r, watch, timeout_ns);
    ck_assert_msg(status == 0, "%d: %s", status, r->error.text);
}

/* Until it has come to this place, or for so long that this is a failure. */
static inline void replay_until(struct replay *r, struct meta_store_watch *watch, uint64_t at)
{
    const uint64_t end = base_clock_ns() + 60 * BASE_NS_PER_S;
    while (r->at < at && base_clock_ns() < end)
        replay_next(r, watch, 100 * BASE_NS_PER_MS);
    ck_assert_msg(r->at >= at, "stands at %llu, not %llu: %s", (unsigned long long)r->at,
                  (unsigned long long)at, r->error.text);
}

#endif
