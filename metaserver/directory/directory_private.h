/* SPDX-License-Identifier: Apache-2.0 */
/* Between directory.c, directory_heard.c and directory_reach.c: the directory's own structs. */
#ifndef METASERVER_DIRECTORY_PRIVATE_H
#define METASERVER_DIRECTORY_PRIVATE_H

#include "index.h"
#include "metaserver/directory.h"

#define NONE UINT32_MAX

/* Nodes are linked in the order in which they fall due, since each list has one period. */
enum list { LEASED, UNSAVED, SAVED, LISTS };

struct node {
    char id[META_STORE_ID_BYTES];
    uint32_t incarnation;
    struct meta_store_fingerprint fingerprint;
    enum meta_node_state state;
    bool elsewhere; /* waiting, or lapsed out of that: another metaserver hears of it */
    /* The store may have heard that nothing is heard of it here: until it registers here, which
     * says the contrary. */
    bool voted;
    uint32_t endpoints;  /* first of its chain */
    uint32_t prev, next; /* of its list; free nodes: next alone */
    uint64_t since;      /* registered, renewed, restored or expired at */
    struct meta_report report;
};

struct endpoint {
    uint8_t gid[16];
    uint16_t pool;
    uint32_t node;
    uint32_t next; /* of the node's chain, or of the free ones */
    int64_t slot;  /* in the table; -1: not published */
};

struct meta_directory {
    struct meta_directory_limits limits;
    bool shared;
    struct schema_table table;
    struct node *nodes;
    struct endpoint *endpoints;
    struct meta_index by_id, by_key;
    struct meta_reach *reach;
    uint32_t free_node, free_endpoint;
    uint64_t changes; /* of endpoints */
    struct {
        uint32_t first, last;
    } lists[LISTS];
    uint32_t in_state[META_NODE_EXPIRED + 1];
};

/* NULL: there is none. */
struct node *meta_directory_find_node(const struct meta_directory *m, const char *id);
struct endpoint *meta_directory_find_endpoint(const struct meta_directory *m, const uint8_t gid[16],
                                              uint16_t pool);
/* The only one that changes a node's state; also puts it at the end of its list, as of now. */
void meta_directory_move_node(struct meta_directory *m, struct node *n, enum meta_node_state to,
                              uint64_t now);
/* There is none of that id, and room. */
struct node *meta_directory_add_node(struct meta_directory *m, const char *id);
/* There is none of that key, and room. */
struct endpoint *meta_directory_add_endpoint(struct meta_directory *m, struct node *n,
                                             const uint8_t gid[16], uint16_t pool);
/* Takes an endpoint out of the table, of its node and of the index; *link is what points to it. */
void meta_directory_drop_endpoint(struct meta_directory *m, uint32_t *link);
void meta_directory_drop_endpoints(struct meta_directory *m, struct node *n);
/* The table says of those of its endpoints that it does not hold that they are awaited. */
void meta_directory_await_endpoints(struct meta_directory *m, const struct node *n);
/* 0: it is live, and this one; else as meta_directory_renew(). */
int meta_directory_check_live(const struct node *n, uint32_t incarnation, uint32_t *known);

#endif
