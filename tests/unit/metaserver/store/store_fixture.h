/* SPDX-License-Identifier: Apache-2.0 */
/* A store of any kind, and what is in it as one line. */
#ifndef TESTS_UNIT_METASERVER_STORE_FIXTURE_H
#define TESTS_UNIT_METASERVER_STORE_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../check_main.h"
#include "etcd_process.h"
#include "metaserver/store.h"
#include "metaserver/store_hub.h"

enum kind { MEMORY, SQLITE, HUB, ETCD, KINDS };

struct fixture {
    char dir[64], path[96];
    struct meta_store *store;
    struct meta_store_hub *hub; /* that it is a member of; else NULL */
};

static inline struct meta_store *open_sqlite(const char *path)
{
    struct meta_store *store = NULL;
    struct base_errbuf err;
    ck_assert_msg(meta_store_sqlite(path, &store, &err) == 0, "%s", err.text);
    return store;
}

static inline struct meta_store *open_memory(const char *path)
{
    (void)path;
    return meta_store_memory(NULL);
}

/* The path is the prefix of its keys, which nobody else has. */
static inline struct meta_store *open_etcd(const char *path)
{
    struct meta_store *store = NULL;
    struct base_errbuf err;
    const struct meta_store_etcd_config config = {
        .endpoints = etcd_url(), .prefix = path, .member = "only"};
    ck_assert_msg(meta_store_etcd(&config, &store, &err) == 0, "%s", err.text);
    return store;
}

/* Whether stores of that kind can be made here. */
static inline bool has_kind(enum kind kind)
{
    return kind != ETCD || etcd_is_there("a store in etcd");
}

static inline void setup(struct fixture *f, enum kind kind)
{
    static struct meta_store *(*const open_of[KINDS])(const char *) = {
        [MEMORY] = open_memory, [SQLITE] = open_sqlite, [ETCD] = open_etcd};
    f->hub = kind == HUB ? meta_store_hub_new() : NULL;
    snprintf(f->dir, sizeof f->dir, "/tmp/kedge-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/metad.db", f->dir);
    f->store = f->hub != NULL ? meta_store_hub_open(f->hub, "only") : open_of[kind](f->path);
}

static inline void teardown(struct fixture *f)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock"};
    meta_store_close(f->store);
    if (f->hub != NULL)
        meta_store_hub_free(f->hub);
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(f->dir), 0);
}

/* Whether it is one that several metaservers share: an endpoint is its owner's while that lives. */
static inline bool is_shared(const struct meta_store *store)
{
    return strcmp(store->ops->name, "etcd") == 0 || strcmp(store->ops->name, "hub") == 0;
}

static inline struct meta_store_node node(const char *id, uint32_t incarnation, int endpoints,
                                          int first)
{
    struct meta_store_node n = {
        .incarnation = incarnation,
        .fingerprint = {.identity = 0xfedcba98, .count = (uint32_t)endpoints},
        .endpoint_count = (uint32_t)endpoints};
    snprintf(n.id, sizeof n.id, "%s", id);
    for (int i = 0; i < endpoints; i++) {
        n.endpoint[i].gid[0] = 0xfd;
        n.endpoint[i].gid[15] = (uint8_t)(first + i);
        n.endpoint[i].pool = 7;
        n.fingerprint.print[i] =
            (struct meta_store_print){0xfd000000 + (uint32_t)(first + i), incarnation};
    }
    return n;
}

/* All that is stored, as one line. */
struct listing {
    char text[4096];
    size_t used;
};

static inline int list_one(void *user, const struct meta_store_node *n)
{
    struct listing *l = user;
    l->used +=
        (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s:%u:%08x%s", n->id,
                         n->incarnation, n->fingerprint.identity, n->expired ? ":expired" : "");
    for (uint32_t i = 0; i < n->endpoint_count; i++)
        l->used +=
            (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, ":%02x.%02x/%u",
                             n->endpoint[i].gid[0], n->endpoint[i].gid[15], n->endpoint[i].pool);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, " ");
    return 0;
}

static inline void expect(struct meta_store *store, const char *text)
{
    struct listing l = {.text = ""};
    struct base_errbuf err;
    ck_assert_int_eq(meta_store_load(store, list_one, &l, &err), 0);
    ck_assert_str_eq(l.text, text);
}

static inline void put(struct meta_store *store, struct meta_store_node n)
{
    struct base_errbuf err;
    ck_assert_msg(meta_store_put(store, &n, &err) == 0, "%s", err.text);
}

/* Settings and the trail, as one line. */
static inline int list_setting(void *user, const struct meta_store_resource *x)
{
    struct listing *l = user;
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s/%s:%llu:%s ",
                                x->kind, x->name, (unsigned long long)x->revision, x->body);
    return 0;
}

static inline int list_change(void *user, const struct meta_store_change *x)
{
    struct listing *l = user;
    l->used += (size_t)snprintf(
        l->text + l->used, sizeof l->text - l->used, "%llu@%llu:%s:%s/%s:%s>%s ",
        (unsigned long long)x->revision, (unsigned long long)x->time_ms, x->who, x->kind, x->name,
        x->before != NULL ? x->before : "-", x->after != NULL ? x->after : "-");
    return x->revision == 99 ? -EXDEV : 0;
}

static inline int list_settings(struct meta_store *store, struct listing *l)
{
    const struct meta_store_visitor visitor = {
        .resource = list_setting, .change = list_change, .user = l};
    struct base_errbuf err;
    *l = (struct listing){.text = ""};
    return meta_store_load_resources(store, &visitor, &err);
}

static inline void expect_settings(struct meta_store *store, const char *text)
{
    struct listing l;
    ck_assert_int_eq(list_settings(store, &l), 0);
    ck_assert_str_eq(l.text, text);
}

static inline int change(struct meta_store *store, uint64_t revision, const char *kind,
                         const char *name, const char *before, const char *after, uint64_t forget)
{
    struct base_errbuf err;
    const struct meta_store_change c = {.revision = revision,
                                        .time_ms = revision * 10,
                                        .who = "me",
                                        .kind = kind,
                                        .name = name,
                                        .before = before,
                                        .after = after,
                                        .forget = forget};
    return meta_store_change(store, &c, &err);
}

#endif
