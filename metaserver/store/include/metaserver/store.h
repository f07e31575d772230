/* SPDX-License-Identifier: Apache-2.0 */
/* What of a metaserver survives its restart, behind one interface with several implementations.
 *
 * One thread. A call that returns 0 is durable; one that fails has changed nothing. Everything
 * blocks: a store is written when a node registers, leaves or lapses, never when it renews, and
 * when an operator changes something. Every implementation passes
 * tests/unit/metaserver/store/test_store.c. */
#ifndef METASERVER_STORE_H
#define METASERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define META_STORE_ID_BYTES       64 /* [a-z0-9][a-z0-9.-]{0,62} and NUL */
#define META_STORE_NODE_ENDPOINTS 16

/* What tells the process that registered from another one of the same incarnation: checksums of
 * what its endpoints are, 32 bits each, so that nothing gives a key away. In any order. */
struct meta_store_fingerprint {
    uint32_t identity; /* of all of them together */
    uint32_t count;    /* 0: an older metaserver stored it, which knew the identity alone */
    struct meta_store_print {
        uint32_t key;  /* of its GID and pool */
        uint32_t body; /* of all of it */
    } print[META_STORE_NODE_ENDPOINTS];
};

/* A registration. Keys and addresses of endpoints are not in it: agents bring them again. */
struct meta_store_node {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation;
    struct meta_store_fingerprint fingerprint; /* kept when it expires */
    bool expired;
    uint32_t endpoint_count; /* 0 when expired */
    struct meta_store_endpoint {
        uint8_t gid[16];
        uint16_t pool;
    } endpoint[META_STORE_NODE_ENDPOINTS];
};

/* A change of a resource, with its entry in the trail. Bodies are texts that the caller
 * understands; NULL: there was none, there is none now. Strings are borrowed. */
struct meta_store_change {
    uint64_t revision; /* above every one that is stored */
    uint64_t time_ms;  /* since 1970 */
    const char *who, *kind, *name;
    const char *before, *after; /* as the trail shows them */
    const char *resource;       /* what is kept of it, if that is more; NULL: as after */
    uint64_t forget;            /* entries up to this revision leave the trail */
};

struct meta_store_resource {
    const char *kind, *name; /* together its key */
    uint64_t revision;
    const char *body;
};

/* Called for each resource in the order of their kinds, then names, then for each entry of the
 * trail, oldest first (`forget` is 0, `resource` NULL). What is given is borrowed. Not 0: stop, and
 * return that. */
struct meta_store_visitor {
    int (*resource)(void *user, const struct meta_store_resource *resource);
    int (*change)(void *user, const struct meta_store_change *change);
    void *user;
};

struct meta_store {
    const struct meta_store_ops *ops;
};

/* One thing of a store, whatever its kind: for what brings back a backup. Borrowed. */
struct meta_store_item {
    enum meta_store_item_kind { META_STORE_NODE, META_STORE_RESOURCE, META_STORE_CHANGE } kind;
    struct meta_store_node node;
    struct meta_store_resource resource;
    struct meta_store_change change; /* `resource` and `forget` are not looked at */
};
/* 1 and the next one; 0: there is no more; or -errno, with a sentence. */
typedef int meta_store_next(void *user, struct meta_store_item *item, struct base_errbuf *err);

/* Called for each node in the order of their ids; node is borrowed. Not 0: stop, and return that.
 */
typedef int meta_store_visit(void *user, const struct meta_store_node *node);

struct meta_store_ops {
    const char *name;
    void (*close)(struct meta_store *store);
    int (*load)(struct meta_store *store, meta_store_visit *visit, void *user,
                struct base_errbuf *err);
    int (*put)(struct meta_store *store, const struct meta_store_node *node,
               struct base_errbuf *err);
    int (*expire)(struct meta_store *store, const char *const *ids, uint32_t n,
                  struct base_errbuf *err);
    int (*remove)(struct meta_store *store, const char *id, struct base_errbuf *err);
    int (*check)(struct meta_store *store, struct base_errbuf *err);
    int (*change)(struct meta_store *store, const struct meta_store_change *change,
                  struct base_errbuf *err);
    int (*load_settings)(struct meta_store *store, const struct meta_store_visitor *visitor,
                         struct base_errbuf *err);
    int (*replace)(struct meta_store *store, meta_store_next *next, void *user,
                   struct base_errbuf *err);
};

/* Frees; NULL is allowed. */
void meta_store_close(struct meta_store *store);
/* Visits every node. 0, -errno, or what visit returned. */
int meta_store_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err);
/* Writes a node and its endpoints, which it takes from whoever had them. -ESTALE: a newer
 * incarnation of it is stored; -ENOSPC: the disk is full; -EROFS, -EBUSY, -EIO with a sentence in
 * err. */
int meta_store_put(struct meta_store *store, const struct meta_store_node *node,
                   struct base_errbuf *err);
/* Marks n nodes as expired and forgets their endpoints, all or none; unknown ids are passed over.
 */
int meta_store_expire(struct meta_store *store, const char *const *ids, uint32_t n,
                      struct base_errbuf *err);
/* Forgets a node. 0 or -ENOENT, or as put. */
int meta_store_remove(struct meta_store *store, const char *id, struct base_errbuf *err);
/* 0: it can be read (for /readyz). */
int meta_store_check(struct meta_store *store, struct base_errbuf *err);

/* Sets or removes a resource and adds to the trail, both or neither. Errors as put. */
int meta_store_change(struct meta_store *store, const struct meta_store_change *change,
                      struct base_errbuf *err);
/* Visits every resource and the trail. 0, -errno, or what a visit returned. */
int meta_store_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err);

/* Forgets everything and keeps what next() brings instead, all of it or nothing. Errors as put, or
 * next()'s. */
int meta_store_replace(struct meta_store *store, meta_store_next *next, void *user,
                       struct base_errbuf *err);

/* In memory, for tests. While *fail is not 0, writes and checks fail with that errno; borrowed, may
 * be NULL. */
struct meta_store *meta_store_memory(const int *fail);
/* A file, made if it is not there, locked while open. -errno and a sentence. */
int meta_store_sqlite(const char *path, struct meta_store **out, struct base_errbuf *err);
/* The same to read what is there now, as of one moment, whoever writes to it meanwhile: nothing is
 * made, locked or changed, and what would write fails. */
int meta_store_sqlite_reader(const char *path, struct meta_store **out, struct base_errbuf *err);

#endif
