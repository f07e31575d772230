/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction of a store, and what becomes of it. */
#ifndef METASERVER_STORE_TXN_H
#define METASERVER_STORE_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "metaserver/store_fingerprint.h"
#include "metaserver/store_name.h"

#define META_STORE_EXPIRE_MAX 256 /* nodes of one transaction */
#define META_STORE_PUTS_MAX   64  /* registrations of one transaction */

struct meta_store_resource {
    const char *kind, *name; /* together its key */
    uint64_t revision;
    const char *body;
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
    uint64_t revision; /* to commit: the least that it may have */
    uint64_t time_ms;  /* since 1970 */
    const char *who, *kind, *name;
    const char *before, *after; /* as the trail shows them */
    const char *resource;       /* what is kept of it, if that is more; NULL: as after */
    uint64_t forget;            /* entries up to this revision leave the trail */
};

/* One life of a node, and those before it: what is meant for it is not done to a later one. */
struct meta_store_life {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation; /* UINT32_MAX: whichever it is */
};

/* A registration of a transaction, with its endpoints, which it takes from who had them; of a
 * shared store, from nodes that are expired alone. */
struct meta_store_put {
    const struct meta_store_node *node; /* borrowed */
    bool is_unknown; /* it is thought that nothing of the node is stored: if so, it is quicker */
    /* Out, if it was dealt with: 0, or why it was refused: -ESTALE: a later life of the node is
     * stored; of a shared store also: -ESTALE: the same incarnation of another process is stored,
     * which has not expired; -EEXIST: an endpoint is of another node, which is not expired;
     * -EUCLEAN: what is stored of it makes no sense. */
    int status;
    struct base_errbuf err; /* a sentence, if that is not 0 */
};

/* What is done as a whole or not at all, in this order. Borrowed. All zero: it is only seen whether
 * the store can be read; and whether it can be written, if the last write has failed, or if nothing
 * was written yet to a shared store. */
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
    /* One that is refused refuses all of the transaction. Several, META_STORE_PUTS_MAX of them at
     * most and of a node each, are a transaction without anything else, and each of them is done
     * or refused by itself: they have nothing in common but that they are written at once. */
    struct meta_store_put *puts;
    uint32_t put_count;
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
    /* 0; as the one registration has; -ESTALE: the owner of the name to publish does not live;
     * -EEXIST: that name is another region's, whose owner lives; -EREMCHG: another change came
     * before; -ENOSPC: the disk is full; -EROFS, -EBUSY, -EIO, -ENOMEM. Of a shared store also
     * -ETIMEDOUT: it is not known whether it was done: if it was, that is heard of as what others
     * do; -EUCLEAN: what is stored of what it is about makes no sense; -E2BIG: it is larger than
     * the store takes. */
    int status;
    struct base_errbuf err; /* a sentence, if that is not 0 */
    uint64_t revision;      /* that the change has; 0: there was none */
    uint32_t removed;       /* nodes that are forgotten */
    /* Of several registrations, so many of the first were dealt with, at least one. */
    uint32_t put_count;
    /* Of those to be expired, so many of the first were dealt with; and, a bit each, which of these
     * are not expired, since another metaserver has not said so. */
    uint32_t expire_count;
    uint64_t heard_elsewhere[META_STORE_EXPIRE_MAX / 64];
    /* Of a shared store: where it stands in what all metaservers hear (store_watch.h); 0: nothing
     * was written, or the store is not shared. */
    uint64_t at;
    /* It ended well, but nothing was written, as the last write has failed or there was none yet:
     * whether the store takes writes is not known. */
    bool unproven;
};

#endif
