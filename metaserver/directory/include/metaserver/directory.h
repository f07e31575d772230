/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver knows of nodes and endpoints, and who may say what: no I/O, no clock, no
 * thread.
 *
 * One thread. Times are nanoseconds of one clock that never goes back, given by the caller. Nothing
 * grows: all memory is taken in meta_directory_new(). What must survive a restart is written by the
 * caller (service.h) before it calls what changes it here; what the table holds does not survive,
 * agents bring it again.
 *
 * The states of a node:
 *
 * - waiting: known from the store; its agent has to register again before its endpoints can be
 *   read.
 * - live: registered here; its endpoints are in the table until its lease ends.
 * - lapsed: its lease ended, and its endpoints are out of the table; the store does not know yet.
 * - expired: the store knows it too; kept for its incarnation until it is forgotten.
 *
 * Invariant: the table holds endpoints of live nodes alone; what it does not hold of theirs, and of
 * nodes that wait, is AWAITED there, where its span has room to say so; a (GID, pool) belongs to
 * one node. */
#ifndef METASERVER_DIRECTORY_H
#define METASERVER_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/reach.h"
#include "metaserver/store.h"
#include "schema/table.h"

enum meta_node_state {
    META_NODE_FREE, /* no node */
    META_NODE_WAITING,
    META_NODE_LIVE,
    META_NODE_LAPSED,
    META_NODE_EXPIRED,
};

/* "waiting", ...: a literal. */
const char *meta_node_state_name(enum meta_node_state state);

struct meta_directory_limits {
    uint32_t max_nodes;     /* 1..2^24 */
    uint32_t max_endpoints; /* 1..2^24; the table is made for as many */
    uint64_t node_lease_ns; /* a node that is silent for longer lapses */
    uint64_t forget_ns;     /* an expired node is forgotten after this */
};

/* What an agent says of its node. Records have key, flags and incarnation set; seq and crc are
 * ignored. */
struct meta_registration {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation;    /* > 0 */
    uint32_t endpoint_count; /* 1..META_STORE_NODE_ENDPOINTS, keys distinct */
    struct schema_endpoint_record endpoint[META_STORE_NODE_ENDPOINTS];
};

/* What meta_directory_check() found out. */
struct meta_verdict {
    bool created;                    /* no node of that id was known */
    bool write;                      /* the store has to be written before apply */
    uint32_t known_incarnation;      /* -ESTALE: the one that the node must exceed */
    uint32_t endpoint;               /* -EEXIST, -ENOSPC: index of the one that is refused */
    char owner[META_STORE_ID_BYTES]; /* -EEXIST: whose it is */
    /* With an id: this expired node is to be forgotten first, to make room. */
    struct meta_store_life evict;
};

enum { META_REPORT_WHY_BYTES = 256 };

/* What an agent says of the configuration that it follows. Of its registration, and as soft: gone
 * when the node's lease ends, or this process. */
struct meta_report {
    bool reported;                   /* else it has said nothing */
    uint64_t revision;               /* in force */
    uint64_t seen;                   /* the newest that it was told */
    uint32_t sessions;               /* workers that it has; UINT32_MAX: it does not say */
    char why[META_REPORT_WHY_BYTES]; /* what it cannot do; "": it does all */
};

/* A node as it is shown: never keys, never addresses. */
struct meta_node_view {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation;
    enum meta_node_state state;
    uint64_t expires_in_ns;       /* waiting, live; else 0 */
    struct meta_report report;    /* of one that is live */
    struct meta_reach_view reach; /* likewise */
    uint32_t endpoint_count;
    struct {
        uint8_t gid[16];
        uint16_t pool;
        uint16_t flags;       /* enum schema_record_flag; 0 while waiting */
        uint16_t mtu;         /* bytes; 0 while waiting */
        uint32_t incarnation; /* the node's, or one of its own; 0 while waiting */
    } endpoint[META_STORE_NODE_ENDPOINTS];
};

struct meta_directory_counts {
    uint32_t nodes, waiting, live, expired; /* lapsed count as expired */
    uint32_t endpoints;                     /* owned */
    uint32_t published;                     /* in the table */
    uint32_t awaited;                       /* whose agents have not registered them here yet */
    uint32_t max_endpoints;                 /* that it is made for */
};

struct meta_directory;

/* memory: zeroed, schema_table_bytes(schema_table_log2_slots(max_endpoints)), borrowed until free.
 * NULL: no memory. */
struct meta_directory *meta_directory_new(const struct meta_directory_limits *limits, void *memory,
                                          uint64_t seed, uint64_t generation);
void meta_directory_free(struct meta_directory *m);
/* Before all else: other metaservers of the store may hear of a node that lapses here. So its
 * endpoints stay its own, out of the table, until it expires. */
void meta_directory_share(struct meta_directory *m);

/* The table's description, with the address that it has here and no rkey. Borrowed. */
const struct schema_table_desc *meta_directory_table(const struct meta_directory *m);
struct meta_directory_counts meta_directory_count(const struct meta_directory *m);

/* At start: what the store knows. A node that was registered waits for its agent for one lease.
 * 0, -ENOSPC (a limit is smaller than the store's contents), -EEXIST (the store contradicts
 * itself). */
int meta_directory_restore(struct meta_directory *m, const struct meta_store_node *node,
                           uint64_t now);

/* Whether r may register; changes nothing. 0; -ESTALE: an older incarnation, or the same one of
 * another process; -EEXIST: an endpoint is another node's; -ENOSPC: an endpoint's span, the
 * endpoints or (with endpoint == UINT32_MAX) the nodes are full. */
int meta_directory_check(const struct meta_directory *m, const struct meta_registration *r,
                         struct meta_verdict *verdict);
/* What registrations take that are to be applied together, each right by itself, of other nodes
 * with other endpoints: zeroed to begin. */
struct meta_directory_room {
    uint32_t nodes, endpoints; /* new ones */
};
/* Adds what a node takes; false: with it there is no room, and nothing is added. */
bool meta_directory_take_room(const struct meta_directory *m, const struct meta_store_node *node,
                              struct meta_directory_room *room);
/* What the store must hold of r. */
void meta_directory_durable(const struct meta_registration *r, struct meta_store_node *out);
/* Registers r, which the last call has found to be right (with nothing to evict): cannot fail. */
void meta_directory_apply(struct meta_directory *m, const struct meta_registration *r,
                          uint64_t now);

/* Prolongs the lease. 0; -ENOENT: no such node; -EUNATCH: it has to register (again); -ESTALE: an
 * older incarnation than *known. */
int meta_directory_renew(struct meta_directory *m, const char *id, uint32_t incarnation,
                         uint64_t now, uint32_t *known);
/* Keeps what the agent of a live node says. 0, or as meta_directory_renew(). */
int meta_directory_report(struct meta_directory *m, const char *id, uint32_t incarnation,
                          const struct meta_report *report, uint32_t *known);
/* How many live nodes do not have this revision in force, as far as they have said. */
uint32_t meta_directory_count_behind(const struct meta_directory *m, uint64_t revision);
/* Takes a node out, its endpoints first. 0 or -ENOENT. */
int meta_directory_remove(struct meta_directory *m, const char *id);

/* A node whose lease is over. */
struct meta_lapse {
    const char *id;
    uint32_t incarnation;
    enum meta_node_state from; /* live, or waiting: then its agent was not heard of here */
    uint64_t heard;            /* when it was heard of, or when the node was restored */
    bool elsewhere;            /* another metaserver of the store has heard of it */
};

/* Takes the endpoints of every node whose lease is over out of the table. Returns how many nodes
 * lapsed; each is shown to `each` (NULL: it is not), for the call alone. */
uint32_t meta_directory_lapse(struct meta_directory *m, uint64_t now,
                              void (*each)(void *user, const struct meta_lapse *lapse), void *user);
/* The nodes that lapsed and are not yet durable: up to n of them. */
uint32_t meta_directory_lapsed(const struct meta_directory *m, struct meta_store_life *lives,
                               uint32_t n);
/* The store has it that this life is over. Nothing, if the node has another one by now. */
void meta_directory_expire(struct meta_directory *m, const struct meta_store_life *life,
                           uint64_t now);
/* The nodes that expired long enough ago to be forgotten: up to n of them. */
uint32_t meta_directory_forgettable(const struct meta_directory *m, uint64_t now,
                                    struct meta_store_life *lives, uint32_t n);
/* The store has forgotten it. Nothing, if the node has another life by now. */
void meta_directory_forget(struct meta_directory *m, const struct meta_store_life *life);
/* When the next node lapses; when meta_directory_lapse() has anything to do, which also forgets
 * what nodes have said of others; when the next one can be forgotten. UINT64_MAX: never. */
uint64_t meta_directory_next_lapse(const struct meta_directory *m);
uint64_t meta_directory_due(const struct meta_directory *m);
uint64_t meta_directory_next_forgettable(const struct meta_directory *m);
/* How often a node has got or lost an endpoint so far. */
uint64_t meta_directory_changes(const struct meta_directory *m);

/* The node with this id: 0 or -ENOENT. */
int meta_directory_show(const struct meta_directory *m, const char *id, uint64_t now,
                        struct meta_node_view *out);
/* The first node whose id is greater than `after` ("" for the first): 0 or -ENOENT. */
int meta_directory_after(const struct meta_directory *m, const char *after, uint64_t now,
                         struct meta_node_view *out);

#endif
