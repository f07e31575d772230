/* SPDX-License-Identifier: Apache-2.0 */
/* Whom nodes reach over the fabric, as their agents say, and whom to blame for what fails: a
 * condition that is shown, by which nothing expires.
 *
 * No I/O, no clock; one thread. Nodes are numbers, the caller's. Nothing grows: each node has one
 * report, of a few targets, which is forgotten when it is not repeated, and counts at each target
 * once; so that an agent, whatever it says, changes the picture of its own node and is one voice
 * about others.
 *
 * A node that fails towards all that it tried has no voice. Of the others, at least two and more
 * than half of those that have tried must fail towards a target: then the target is unreachable,
 * and nobody is said to fail because of it. Where nothing was heard of the target's agent when it
 * should have been, though of another one it was, one is enough. Where a node is the only one that
 * has tried a target, as of two nodes each is, and neither is late, nobody can tell which of them
 * it is, unless the target says itself that it reaches nothing: both are undecided. */
#ifndef METASERVER_REACH_H
#define METASERVER_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    META_REACH_TARGETS = 16, /* of a report */
    META_REACH_PEERS = 8     /* that an agent is told to try */
};
#define META_REACH_KEEP_NS UINT64_C(120000000000) /* a report that is not repeated */

enum meta_reach_error {
    META_REACH_OK,
    META_REACH_TIMEOUT,     /* it does not answer */
    META_REACH_UNREACHABLE, /* there is no path to it */
    META_REACH_REFUSED,     /* it refuses to be READ */
    META_REACH_DEVICE,      /* the reporting node's own device does */
    META_REACH_ERRORS
};
/* "timeout", ...: a literal. */
const char *meta_reach_error_name(enum meta_reach_error error);

/* One target of a report. */
struct meta_reach_tried {
    uint32_t node;
    enum meta_reach_error error;
    uint64_t for_ns; /* it fails for so long already */
};

struct meta_reach_report {
    struct meta_reach_tried table; /* this metaserver's; its node says nothing */
    bool has_table;
    uint32_t count;
    struct meta_reach_tried tried[META_REACH_TARGETS];
};

enum meta_reach_state {
    META_REACH_STATE_UNKNOWN, /* nothing is known of it */
    META_REACH_STATE_OK,
    META_REACH_STATE_UNDECIDED,  /* it or another one does not reach the other: which, nobody knows
                                  */
    META_REACH_STATE_FAILING,    /* it fails towards others that are not to blame */
    META_REACH_STATE_UNREACHABLE /* it is to blame that others fail towards it */
};
/* "unknown", ...: a literal. */
const char *meta_reach_state_name(enum meta_reach_state state);

/* How a node is shown. */
struct meta_reach_view {
    enum meta_reach_state state;
    uint64_t for_ns;  /* UNDECIDED, FAILING, UNREACHABLE: for so long */
    uint32_t tried;   /* by it, the table included */
    uint32_t failing; /* of them, those that it fails towards and that are not to blame */
    struct meta_reach_tried towards[META_REACH_TARGETS + 1];
    bool table;         /* the last of these is the metaserver's table */
    uint32_t tried_by;  /* nodes with a voice that have tried it */
    uint32_t failed_by; /* of them, those that fail towards it */
    bool has_by;        /* UNDECIDED: one node fails towards it, and no other has tried it */
    uint32_t by;        /* has_by: which one */
};

struct meta_reach;

/* For nodes 0 .. nodes - 1, whose agents are late when nothing was heard of them for late_ns. NULL:
 * no memory. */
struct meta_reach *meta_reach_new(uint32_t nodes, uint64_t late_ns);
void meta_reach_free(struct meta_reach *r); /* NULL is allowed */

/* What a node says, in place of what it has said. Targets that are the node itself, or come twice,
 * are left out. */
void meta_reach_put(struct meta_reach *r, uint32_t node, const struct meta_reach_report *report,
                    uint64_t now);
/* Its agent was heard of: it has registered, or renewed. */
void meta_reach_seen(struct meta_reach *r, uint32_t node, uint64_t now);
/* The node is gone, or has another life: what it has said, and what was said of it, is void. */
void meta_reach_drop(struct meta_reach *r, uint32_t node);
/* Forgets what is too old. Bounded by what is. */
void meta_reach_expire(struct meta_reach *r, uint64_t now);
/* When that forgets the next one; UINT64_MAX: there is none. */
uint64_t meta_reach_next_expiry(const struct meta_reach *r);

void meta_reach_show(const struct meta_reach *r, uint32_t node, uint64_t now,
                     struct meta_reach_view *out);

/* How many fail towards a node, of how many with a voice that have tried it. */
struct meta_reach_unreached {
    uint32_t by, tried_by;
    uint64_t for_ns;
};
/* Whether two and more fail towards a node, and most of those with a voice that have tried it. One
 * alone is never enough, however late its agent is, since the node acts on it. */
bool meta_reach_is_unreached(const struct meta_reach *r, uint32_t node, uint64_t now,
                             struct meta_reach_unreached *out);

struct meta_reach_counts {
    uint32_t unreachable;               /* nodes that two and more do not reach */
    uint32_t table_tried, table_failed; /* nodes that have tried the table, and fail */
    bool table_blamed;                  /* two and more fail, and most that tried */
};
struct meta_reach_counts meta_reach_count(const struct meta_reach *r);

#endif
