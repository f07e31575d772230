/* SPDX-License-Identifier: Apache-2.0 */
/* What of a metaserver survives its restart, behind one interface with several implementations.
 *
 * One thread. A call that returns 0 is durable; one that fails has changed nothing. Everything
 * blocks: a store is written when a node registers, leaves or lapses, never when it renews. Every
 * implementation passes tests/unit/metaserver/test_store.c. */
#ifndef METASERVER_STORE_H
#define METASERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define KEDGE_STORE_ID_BYTES       64 /* [a-z0-9][a-z0-9.-]{0,62} and NUL */
#define KEDGE_STORE_NODE_ENDPOINTS 16

/* A registration. Keys and addresses of endpoints are not in it: agents bring them again. */
struct kedge_store_node {
    char id[KEDGE_STORE_ID_BYTES];
    uint32_t incarnation;
    uint32_t identity; /* of the process that registered: a checksum over what its endpoints are */
    bool expired;
    uint32_t endpoint_count; /* 0 when expired */
    struct kedge_store_endpoint {
        uint8_t gid[16];
        uint16_t pool;
    } endpoint[KEDGE_STORE_NODE_ENDPOINTS];
};

struct kedge_store {
    const struct kedge_store_ops *ops;
};

/* Called for each node in the order of their ids; node is borrowed. Not 0: stop, and return that.
 */
typedef int kedge_store_visit(void *user, const struct kedge_store_node *node);

struct kedge_store_ops {
    const char *name;
    void (*close)(struct kedge_store *store);
    int (*load)(struct kedge_store *store, kedge_store_visit *visit, void *user,
                struct kedge_errbuf *err);
    int (*put)(struct kedge_store *store, const struct kedge_store_node *node,
               struct kedge_errbuf *err);
    int (*expire)(struct kedge_store *store, const char *const *ids, uint32_t n,
                  struct kedge_errbuf *err);
    int (*remove)(struct kedge_store *store, const char *id, struct kedge_errbuf *err);
    int (*check)(struct kedge_store *store, struct kedge_errbuf *err);
};

/* Frees; NULL is allowed. */
void kedge_store_close(struct kedge_store *store);
/* Visits every node. 0, -errno, or what visit returned. */
int kedge_store_load(struct kedge_store *store, kedge_store_visit *visit, void *user,
                     struct kedge_errbuf *err);
/* Writes a node and its endpoints, which it takes from whoever had them. -ESTALE: a newer
 * incarnation of it is stored; -ENOSPC: the disk is full; -EROFS, -EBUSY, -EIO with a sentence in
 * err. */
int kedge_store_put(struct kedge_store *store, const struct kedge_store_node *node,
                    struct kedge_errbuf *err);
/* Marks n nodes as expired and forgets their endpoints, all or none; unknown ids are passed over.
 */
int kedge_store_expire(struct kedge_store *store, const char *const *ids, uint32_t n,
                       struct kedge_errbuf *err);
/* Forgets a node. 0 or -ENOENT, or as put. */
int kedge_store_remove(struct kedge_store *store, const char *id, struct kedge_errbuf *err);
/* 0: it can be read (for /readyz). */
int kedge_store_check(struct kedge_store *store, struct kedge_errbuf *err);

/* In memory, for tests. While *fail is not 0, writes and checks fail with that errno; borrowed, may
 * be NULL. */
struct kedge_store *kedge_store_memory(const int *fail);
/* A file, made if it is not there, locked while open. -errno and a sentence. */
int kedge_store_sqlite(const char *path, struct kedge_store **out, struct kedge_errbuf *err);

#endif
