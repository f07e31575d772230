/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this node reaches over the fabric: a few endpoints and the metaservers, proven in turn. What
 * is known of each, and since when it fails. No I/O, no clock; one thread. */
#ifndef CONTROL_REACH_H
#define CONTROL_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AGENTD_REACH_PEERS = 8, /* endpoints that a metaserver names */
    AGENTD_REACH_METASERVERS = 8,
    AGENTD_REACH_TARGETS = AGENTD_REACH_PEERS + AGENTD_REACH_METASERVERS,
    AGENTD_REACH_NAME = 256 /* of a node, or a metaserver's URL */
};

struct agentd_reach_target {
    bool used;
    bool peer;           /* else a metaserver */
    uint32_t metaserver; /* the number of a metaserver */
    uint8_t gid[16];     /* of a peer */
    char name[AGENTD_REACH_NAME];
    /* What the last proof that came to an end has shown: 0, or why not (-ETIMEDOUT, ...; as of
     * LANE_EVENT_PROVED). Once known_ns or since_ns is not 0. */
    int status;
    uint64_t known_ns; /* when; 0: nothing is known */
    uint64_t since_ns; /* it fails since then; 0: it does not */
};

/* Zeroed to begin. Places of targets stay while they are targets. */
struct agentd_reach {
    struct agentd_reach_target at[AGENTD_REACH_TARGETS];
    uint32_t next;
};

/* What a proof changed. */
enum agentd_reach_news {
    AGENTD_REACH_SAME,
    AGENTD_REACH_KNOWN, /* it is reached, and nothing was known of it */
    AGENTD_REACH_FAILS,
    AGENTD_REACH_OTHER, /* it fails still, for another reason */
    AGENTD_REACH_AGAIN, /* it is reached again */
    AGENTD_REACH_GONE   /* there is no such endpoint any more, or metaserver for now */
};

struct agentd_reach_peer {
    uint8_t gid[16];
    char name[AGENTD_REACH_NAME];
};

/* The peers from now on, up to AGENTD_REACH_PEERS of them: what is known of those that stay, stays.
 */
void agentd_reach_peers(struct agentd_reach *r, const struct agentd_reach_peer *peers,
                        uint32_t count);
void agentd_reach_metaserver(struct agentd_reach *r, uint32_t number, const char *url);

/* The next one to be proven, by its place; -1: there is none. */
int agentd_reach_next(struct agentd_reach *r);
/* A proof of the one at that place has come to its end: with 0; -EAGAIN, it could not be tried, so
 * that what was known holds, but not for longer than keep_ns; -ENOENT; or why it failed. */
enum agentd_reach_news agentd_reach_note(struct agentd_reach *r, int place, int status,
                                         uint64_t now_ns, uint64_t keep_ns);

struct agentd_reach_counts {
    uint32_t tried, failing; /* of which something is known; of those */
    uint64_t since_ns;       /* the first of them does since then; 0: none does */
};
struct agentd_reach_counts agentd_reach_count(const struct agentd_reach *r);

/* "timeout", "unreachable", "refused", "device", as metaservers are told; "" of 0. A literal. */
const char *agentd_reach_error(int status);
/* The same in words: "it does not answer". */
const char *agentd_reach_why(int status);

#endif
