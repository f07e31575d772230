/* SPDX-License-Identifier: Apache-2.0 */
/* What servers answer, from JSON to plain structs. With decode_resources.c and
 * decode_probe.c the one place of rdmactl that knows jansson. Any thread. Fields that are unknown
 * are ignored, so that newer servers can be asked. */
#ifndef CTL_DECODE_H
#define CTL_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    CTL_ID_BYTES = 64,
    CTL_WORD_BYTES = 64,
    CTL_MAX_ENDPOINTS = 16, /* of a node; what a server sends beyond is not shown */
    CTL_TEXT_BYTES = 256,
    CTL_LABELS_BYTES = 1024,
    CTL_PAIR_BYTES = 640,
    CTL_PATH_BYTES = 128,
    CTL_MAX_PAIRS = 4096,
    CTL_MAX_ITEMS = 20, /* of a list, in pairs */
    CTL_MAX_NESTING = 8,
};

struct ctl_endpoint {
    char gid[CTL_WORD_BYTES];
    char transports[CTL_WORD_BYTES]; /* "dc,rc"; "" if unknown */
    uint64_t pool, mtu;              /* mtu 0: unknown */
};

enum { CTL_MAX_TOWARDS = 17, CTL_ERROR_BYTES = 16 };

/* How a node's fabric works. */
struct ctl_fabric {
    char state[CTL_ERROR_BYTES]; /* "": nothing is said */
    bool says_for;
    uint64_t for_ms, tried, tried_by, failed_by;
    char by[CTL_ID_BYTES]; /* the only one that has tried it, which does not reach it; "": none */
    size_t failing;
    struct {
        bool table; /* the metaserver's; else a node's */
        char node[CTL_ID_BYTES], error[CTL_ERROR_BYTES];
        uint64_t for_ms;
    } towards[CTL_MAX_TOWARDS];
};

struct ctl_node {
    char id[CTL_ID_BYTES];
    char state[CTL_WORD_BYTES];
    uint64_t incarnation, expires_in_ms;
    bool cordoned, draining;
    bool says_grace;       /* of draining; else it is for ever */
    uint64_t grace_ms;     /* says_grace */
    uint64_t set_revision; /* of what is set of it; 0: unknown, or nothing is */
    char reason[CTL_TEXT_BYTES];
    char labels[CTL_LABELS_BYTES]; /* "key=value,..." */
    bool reported;                 /* its agent has said something of its configuration */
    bool behind, says_sessions;
    uint64_t revision, seen, sessions; /* in force; that it was told; workers that it has */
    char why[CTL_TEXT_BYTES];          /* what it cannot do */
    struct ctl_fabric fabric;
    size_t endpoints;
    struct ctl_endpoint endpoint[CTL_MAX_ENDPOINTS];
};

/* Owns its nodes. */
struct ctl_nodes {
    struct ctl_node *node;
    size_t count;
};

/* One page: appends to *nodes; next (size bytes) is the next page's cursor, "" at the end. 0, or
 * -EBADMSG, -ENOMEM; then *nodes is as it was. */
int ctl_decode_nodes(const char *body, size_t bytes, struct ctl_nodes *nodes, char *next,
                     size_t size, struct base_errbuf *err);
void ctl_nodes_fini(struct ctl_nodes *nodes);
/* One node. 0 or -EBADMSG. */
int ctl_decode_node(const char *body, size_t bytes, struct ctl_node *out, struct base_errbuf *err);

/* Any document as a list of paths and values: "pools[0].vqps" = "3". Of a list with more than
 * CTL_MAX_ITEMS there are the first ones, and "pools.count", which is how many it has. */
struct ctl_pair {
    char path[CTL_PATH_BYTES];
    char value[CTL_PAIR_BYTES]; /* sentences are there too */
};
struct ctl_pairs {
    struct ctl_pair *pair; /* owned */
    size_t count;
};
int ctl_decode_pairs(const char *body, size_t bytes, struct ctl_pairs *out,
                     struct base_errbuf *err);
void ctl_pairs_fini(struct ctl_pairs *pairs);
/* The value at a path, or NULL. Borrowed. */
const char *ctl_pairs_find(const struct ctl_pairs *pairs, const char *path);

/* The sentence of a problem+json: its field if it has one, and its detail, else its title; "" when
 * the body is none. */
void ctl_decode_problem(const char *body, size_t bytes, char *out, size_t size);

#endif
