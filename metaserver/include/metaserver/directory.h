/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver knows of nodes and endpoints, and who may say what: no I/O, no clock, no
 * thread.
 *
 * One thread. Times are nanoseconds of one clock that never goes back, given by the caller. Nothing
 * grows: all memory is taken in kedge_meta_new(). What must survive a restart is written by the
 * caller (service.h) between kedge_meta_check() and kedge_meta_apply(); what the table holds does
 * not survive, agents bring it again.
 *
 * A node is
 *   waiting   known from the store; its agent has to register again before its endpoints can be
 * read live      registered here; its endpoints are in the table until its lease ends lapsed    its
 * lease ended, and the store does not know it yet; its endpoints are out of the table expired   the
 * store knows it too; kept for its incarnation until it is forgotten Invariant: the table holds
 * exactly the endpoints of the live nodes; a (GID, pool) belongs to one node. */
#ifndef METASERVER_DIRECTORY_H
#define METASERVER_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/reach.h"
#include "metaserver/store.h"
#include "schema/table.h"

enum kedge_meta_state {
    KEDGE_META_FREE, /* no node */
    KEDGE_META_WAITING,
    KEDGE_META_LIVE,
    KEDGE_META_LAPSED,
    KEDGE_META_EXPIRED,
};

/* "waiting", ...: a literal. */
const char *kedge_meta_state_name(enum kedge_meta_state state);

struct kedge_meta_limits {
    uint32_t max_nodes;     /* 1..2^24 */
    uint32_t max_endpoints; /* 1..2^24; the table is made for as many */
    uint64_t node_lease_ns; /* a node that is silent for longer lapses */
    uint64_t forget_ns;     /* an expired node is forgotten after this */
};

/* What an agent says of its node. Records have key, flags and incarnation set; seq and crc are
 * ignored. */
struct kedge_meta_registration {
    char id[KEDGE_STORE_ID_BYTES];
    uint32_t incarnation;    /* > 0 */
    uint32_t endpoint_count; /* 1..KEDGE_STORE_NODE_ENDPOINTS, keys distinct */
    struct kedge_endpoint_record endpoint[KEDGE_STORE_NODE_ENDPOINTS];
};

/* What kedge_meta_check() found out. */
struct kedge_meta_verdict {
    bool created;                     /* no node of that id was known */
    bool write;                       /* the store has to be written before apply */
    uint32_t known_incarnation;       /* -ESTALE: the one that the node must exceed */
    uint32_t endpoint;                /* -EEXIST, -ENOSPC: index of the one that is refused */
    char owner[KEDGE_STORE_ID_BYTES]; /* -EEXIST: whose it is */
    char evict[KEDGE_STORE_ID_BYTES]; /* not empty: remove this expired node first, to make room */
};

enum { KEDGE_META_WHY_BYTES = 256 };

/* What an agent says of the configuration that it follows. Of its registration, and as soft: gone
 * when the node's lease ends, or this process. */
struct kedge_meta_report {
    bool reported;                  /* else it has said nothing */
    uint64_t revision;              /* in force */
    uint64_t seen;                  /* the newest that it was told */
    uint32_t sessions;              /* workers that it has; UINT32_MAX: it does not say */
    char why[KEDGE_META_WHY_BYTES]; /* what it cannot do; "": it does all */
};

/* A node as it is shown: never keys, never addresses. */
struct kedge_meta_view {
    char id[KEDGE_STORE_ID_BYTES];
    uint32_t incarnation;
    enum kedge_meta_state state;
    uint64_t expires_in_ns;          /* waiting, live; else 0 */
    struct kedge_meta_report report; /* of one that is live */
    struct kedge_reach_view reach;   /* likewise */
    uint32_t endpoint_count;
    struct {
        uint8_t gid[16];
        uint16_t pool;
        uint16_t flags; /* enum kedge_record_flag; 0 while waiting */
        uint16_t mtu;   /* bytes; 0 while waiting */
    } endpoint[KEDGE_STORE_NODE_ENDPOINTS];
};

struct kedge_meta_counts {
    uint32_t nodes, waiting, live, expired; /* lapsed count as expired */
    uint32_t endpoints;                     /* owned */
    uint32_t published;                     /* in the table */
};

struct kedge_meta;

/* memory: zeroed, kedge_table_bytes(kedge_table_log2_slots(max_endpoints)), borrowed until free.
 * NULL: no memory. */
struct kedge_meta *kedge_meta_new(const struct kedge_meta_limits *limits, void *memory,
                                  uint64_t seed, uint64_t generation);
void kedge_meta_free(struct kedge_meta *m);

/* The table's description, with the address that it has here and no rkey. Borrowed. */
const struct kedge_table_desc *kedge_meta_table(const struct kedge_meta *m);
struct kedge_meta_counts kedge_meta_count(const struct kedge_meta *m);

/* At start: what the store knows. A node that was registered waits for its agent for one lease.
 * 0, -ENOSPC (a limit is smaller than the store's contents), -EEXIST (the store contradicts
 * itself). */
int kedge_meta_restore(struct kedge_meta *m, const struct kedge_store_node *node, uint64_t now);

/* Whether r may register; changes nothing. 0; -ESTALE: an older incarnation, or the same one of
 * another process; -EEXIST: an endpoint is another node's; -ENOSPC: an endpoint's window, the
 * endpoints or (with endpoint == UINT32_MAX) the nodes are full. */
int kedge_meta_check(const struct kedge_meta *m, const struct kedge_meta_registration *r,
                     struct kedge_meta_verdict *verdict);
/* What the store must hold of r. */
void kedge_meta_durable(const struct kedge_meta_registration *r, struct kedge_store_node *out);
/* Registers r, which the last call has found to be right (evict done): cannot fail. */
void kedge_meta_apply(struct kedge_meta *m, const struct kedge_meta_registration *r, uint64_t now);

/* Prolongs the lease. 0; -ENOENT: no such node; -EUNATCH: it has to register (again); -ESTALE: an
 * older incarnation than *known. */
int kedge_meta_renew(struct kedge_meta *m, const char *id, uint32_t incarnation, uint64_t now,
                     uint32_t *known);
/* Keeps what the agent of a live node says. 0, or as kedge_meta_renew(). */
int kedge_meta_report(struct kedge_meta *m, const char *id, uint32_t incarnation,
                      const struct kedge_meta_report *report, uint32_t *known);
/* What an agent says of one endpoint that it tried to reach. */
struct kedge_meta_tried {
    uint8_t gid[16];
    uint16_t pool;
    enum kedge_reach_error error;
    uint64_t for_ns;
};
struct kedge_meta_reach {
    bool has_table; /* this metaserver's table was tried: */
    struct kedge_reach_tried table;
    uint32_t count;
    struct kedge_meta_tried tried[KEDGE_REACH_TARGETS];
};
/* Keeps what the agent of a live node says of whom it reaches; of endpoints that are no live
 * node's, nothing. As kedge_meta_report(). */
int kedge_meta_reach(struct kedge_meta *m, const char *id, uint32_t incarnation,
                     const struct kedge_meta_reach *said, uint64_t now, uint32_t *known);
/* Whom the agent of a node is to try: of the live nodes that come next after its id (and again from
 * the first on) the endpoints of that pool, so that each node is tried by as many others. Returns
 * how many; looks at a bounded number of nodes. */
struct kedge_meta_peer {
    char id[KEDGE_STORE_ID_BYTES];
    uint8_t gid[16];
};
uint32_t kedge_meta_reach_peers(const struct kedge_meta *m, const char *id, uint16_t pool,
                                struct kedge_meta_peer out[KEDGE_REACH_PEERS]);
/* The id of a node in a kedge_reach_view. Borrowed until the next change. */
const char *kedge_meta_reach_name(const struct kedge_meta *m, uint32_t node);
struct kedge_reach_counts kedge_meta_reach_count(const struct kedge_meta *m);
/* How many live nodes do not have this revision in force, as far as they have said. */
uint32_t kedge_meta_behind(const struct kedge_meta *m, uint64_t revision);
/* Takes a node out, its endpoints first. 0 or -ENOENT. */
int kedge_meta_remove(struct kedge_meta *m, const char *id);

/* A node whose lease is over. */
struct kedge_meta_lapse {
    const char *id;
    uint32_t incarnation;
    enum kedge_meta_state from; /* live, or waiting: then its agent was not heard of here */
    uint64_t heard;             /* when it was heard of, or when the node was restored */
};

/* Takes the endpoints of every node whose lease is over out of the table. Returns how many nodes
 * lapsed; each is shown to `each` (NULL: it is not), for the call alone. */
uint32_t kedge_meta_lapse(struct kedge_meta *m, uint64_t now,
                          void (*each)(void *user, const struct kedge_meta_lapse *lapse),
                          void *user);
/* The nodes that lapsed and are not yet durable: up to n ids, borrowed until the next call that
 * changes. */
uint32_t kedge_meta_lapsed(const struct kedge_meta *m, const char **ids, uint32_t n);
/* The store has the first n of them. */
void kedge_meta_expire(struct kedge_meta *m, uint32_t n, uint64_t now);
/* The nodes that expired long enough ago to be removed: up to n ids, borrowed likewise. */
uint32_t kedge_meta_forgettable(const struct kedge_meta *m, uint64_t now, const char **ids,
                                uint32_t n);
/* When the next node lapses; UINT64_MAX: never. */
uint64_t kedge_meta_next(const struct kedge_meta *m);

/* The node with this id: 0 or -ENOENT. */
int kedge_meta_show(const struct kedge_meta *m, const char *id, uint64_t now,
                    struct kedge_meta_view *out);
/* The first node whose id is greater than `after` ("" for the first): 0 or -ENOENT. */
int kedge_meta_after(const struct kedge_meta *m, const char *after, uint64_t now,
                     struct kedge_meta_view *out);

#endif
