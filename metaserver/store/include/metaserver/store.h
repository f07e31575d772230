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
#include "metaserver/store_fingerprint.h"
#include "metaserver/store_name.h"

#define META_STORE_EXPIRE_MAX 256 /* nodes of one transaction */

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
    uint64_t revision; /* to commit: the least that it may have */
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
    /* Of a shared store, set on any thread: what is known of it is void, it was heard anew. */
    atomic_bool relearn;
    bool fails; /* the last write has failed, and so whoever asks is told until one succeeds */
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

/* One life of a node, and those before it: what is meant for it is not done to a later one. */
struct meta_store_life {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation; /* UINT32_MAX: whichever it is */
};

/* What is done as a whole or not at all, in this order. Borrowed. All zero: it is only seen whether
 * the store can be read; and if the last write has failed, whether it can be written again. */
struct meta_store_txn {
    /* Only if `last` is the revision of the last change that is stored; by itself: whether it is.
     */
    bool compare;
    uint64_t last;                        /* 0: there is none */
    const struct meta_store_life *remove; /* nodes that are forgotten; unknown ones, and those of */
    uint32_t remove_count;                /* a later life, are passed over */
    /* Nodes that this metaserver hears nothing of: they are expired from now on, and their
     * endpoints are forgotten; likewise. Of a shared store: as soon as each metaserver that lives
     * when it is done has said so. META_STORE_EXPIRE_MAX of them at most. */
    const struct meta_store_life *expire;
    uint32_t expire_count;
    /* With its endpoints, which it takes from who had them; of a shared store, from nodes that are
     * expired alone. */
    const struct meta_store_node *put;
    /* A resource that is set or removed, if it is one, and the entry in the trail. */
    const struct meta_store_change *change;
    /* Names that are taken back, META_STORE_NAMES_MAX of them at most: what is not stored just so
     * is passed over. Then one that a living node is given: another one than those; as the store
     * holds it already, or which nobody has who is alive. */
    const struct meta_store_name *withdraw;
    uint32_t withdraw_count;
    const struct meta_store_name *publish;
};

struct meta_store_outcome {
    /* 0; -ESTALE: a later life of the node to put is stored, or the owner of the name to publish
     * does not live; -EEXIST: that name is another region's, whose owner lives; -EREMCHG: another
     * change came before;
     * -ENOSPC: the disk is full; -EROFS, -EBUSY, -EIO, -ENOMEM. Of a shared store also: -ESTALE:
     * the same incarnation of another process is stored, which has not expired; -EEXIST: an
     * endpoint is of another node, which is not expired; -ETIMEDOUT: it is not known whether it
     * was done: if it was, that is heard of as what others do. */
    int status;
    struct base_errbuf err; /* a sentence, if that is not 0 */
    uint64_t revision;      /* that the change has; 0: there was none */
    uint32_t removed;       /* nodes that are forgotten */
    /* Of those to be expired, so many of the first were dealt with; and, a bit each, which of these
     * are not expired, since another metaserver has not said so. */
    uint32_t expire_count;
    uint64_t heard_elsewhere[META_STORE_EXPIRE_MAX / 64];
    /* Of a shared store: where it stands in what all metaservers hear (store_watch.h); 0: nothing
     * was written, or the store is not shared. */
    uint64_t at;
};

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
};

/* Frees; NULL is allowed. */
void meta_store_close(struct meta_store *store);
/* Visits every node. 0, -errno, or what visit returned. */
int meta_store_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err);
/* Visits every resource and the trail. 0, -errno, or what a visit returned. */
int meta_store_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err);
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
 * made, locked or changed, and what would write fails. */
int meta_store_sqlite_reader(const char *path, struct meta_store **out, struct base_errbuf *err);

#endif
