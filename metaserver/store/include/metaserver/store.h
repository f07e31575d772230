/* SPDX-License-Identifier: Apache-2.0 */
/* What of a metaserver survives its restart, behind one interface with several implementations.
 *
 * One thread at a time. A call that returns 0 is durable; one that fails has changed nothing.
 * Everything blocks: a metaserver that serves has its store on a thread of its own
 * (store_worker.h), and submits jobs to it (metaserver/world.h). A store is written when a node
 * registers, leaves or lapses, never when it renews, and when an operator changes something. Every
 * implementation passes tests/unit/metaserver/store/test_store.c. */
#ifndef METASERVER_STORE_H
#define METASERVER_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "metaserver/store_txn.h"

/* Called for each resource in the order of their kinds, then names, then for each name of a region,
 * in their order (NULL: these are passed over), then for each entry of the trail, oldest first
 * (`forget` is 0, `resource` NULL). What is given is borrowed. Not 0: stop, and return that. */
struct meta_store_visitor {
    int (*resource)(void *user, const struct meta_store_resource *resource);
    int (*change)(void *user, const struct meta_store_change *change);
    void *user;
    int (*name)(void *user, const struct meta_store_name *name);
};

struct meta_store {
    const struct meta_store_ops *ops;
    char id[33];         /* of a shared store, when it has been loaded: the same at all; else "" */
    uint64_t generation; /* likewise: how often it was replaced as a whole, by whoever restores */
    char prefix[128];    /* of the keys of a shared store, since it was opened; else "" */
    /* Of a shared store, set on any thread: what is known of it is void, it was heard anew. */
    atomic_bool relearn;
    bool shared;  /* by several metaservers: what was written is said to be somewhere (`at`) */
    bool fails;   /* the last write has failed, and so whoever asks is told until one succeeds */
    bool untried; /* nothing was written yet: whoever asks is told whether it can be */
};

/* One thing of a store, whatever its kind: for what brings back a backup. Borrowed. */
struct meta_store_item {
    enum meta_store_item_kind {
        META_STORE_NODE,
        META_STORE_RESOURCE,
        META_STORE_CHANGE,
        META_STORE_NAME,
    } kind;
    struct meta_store_node node;
    struct meta_store_resource resource;
    struct meta_store_change change; /* `resource` and `forget` are not looked at */
    struct meta_store_name name;
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
    /* write: something is written, too, that changes nothing. */
    int (*check)(struct meta_store *store, bool write, struct base_errbuf *err);
    int (*commit)(struct meta_store *store, const struct meta_store_txn *txn,
                  struct meta_store_outcome *out);
    int (*load_resources)(struct meta_store *store, const struct meta_store_visitor *visitor,
                          struct base_errbuf *err);
    int (*replace)(struct meta_store *store, meta_store_next *next, void *user,
                   struct base_errbuf *err);
    /* NULL: whoever has it is alone with it. */
    int (*check_idle)(struct meta_store *store, struct base_errbuf *err);
};

/* Frees; NULL is allowed. */
void meta_store_close(struct meta_store *store);
/* Visits every node. 0, -errno, or what visit returned. */
int meta_store_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err);
/* Visits every resource and the trail. 0, -errno, or what a visit returned. */
int meta_store_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err);
/* Whether a transaction ended so because of what is stored of what it is about, or of its own size:
 * that says nothing of whether the store takes others. */
bool meta_store_is_refusal(int status);
/* Carries it out. Returns out->status. */
int meta_store_commit(struct meta_store *store, const struct meta_store_txn *txn,
                      struct meta_store_outcome *out);

/* Transactions of one thing each, for who may wait. Errors as above. */
int meta_store_put(struct meta_store *store, const struct meta_store_node *node,
                   struct base_errbuf *err);
int meta_store_expire(struct meta_store *store, const struct meta_store_life *lives, uint32_t n,
                      struct base_errbuf *err);
/* -ENOENT: there is no such node. */
int meta_store_remove(struct meta_store *store, const char *id, struct base_errbuf *err);
int meta_store_change(struct meta_store *store, const struct meta_store_change *change,
                      struct base_errbuf *err);

/* Forgets everything and keeps what next() brings instead, all of it or nothing. Errors as commit,
 * or next()'s. */
int meta_store_replace(struct meta_store *store, meta_store_next *next, void *user,
                       struct base_errbuf *err);

/* That no metaserver has the store that was opened to be read, as whoever takes it elsewhere wants
 * it: 0; -EBUSY and a sentence that says who has it, or how else that is not known. None begins
 * with a file that was found to be idle until it is closed here; of others it is what holds now, as
 * it is of a file that never had a lock and to which the caller can give none: it is another
 * user's, or its directory cannot be written. */
int meta_store_check_idle(struct meta_store *store, struct base_errbuf *err);

/* Puts all that is in one store in place of what is in another, of whatever kind, all of it or
 * nothing. Errors as of load and replace. */
int meta_store_copy(struct meta_store *from, struct meta_store *to, struct base_errbuf *err);

/* In memory, for tests. While *fail is an errno, writes and checks fail with it; while it is less
 * than 0, with what it is then, whatever writes: what only reads succeeds. Borrowed, may be NULL.
 */
struct meta_store *meta_store_memory(const int *fail);
/* A file, made if it is not there, locked while open. -errno and a sentence. */
int meta_store_sqlite(const char *path, struct meta_store **out, struct base_errbuf *err);
/* The same to read what is there now, as of one moment, whoever writes to it meanwhile: nothing is
 * made, locked or changed (but for the lock of meta_store_check_idle()), and what would write
 * fails. */
int meta_store_sqlite_reader(const char *path, struct meta_store **out, struct base_errbuf *err);

#endif
