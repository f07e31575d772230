/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this node reaches over the fabric: a few endpoints and the metaservers, proven in turn. What
 * is known of each, and since when it fails. No I/O, no clock; one thread. */
#ifndef CONTROL_REACH_H
#define CONTROL_REACH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AGENT_REACH_PEERS = 8, /* endpoints that a metaserver names */
    AGENT_REACH_METASERVERS = 8,
    AGENT_REACH_TARGETS = AGENT_REACH_PEERS + AGENT_REACH_METASERVERS,
    AGENT_REACH_NAME = 256 /* of a node, or a metaserver's URL */
};

struct agent_reach_target {
    bool used;
    bool peer;           /* else a metaserver */
    uint32_t metaserver; /* the number of a metaserver */
    uint8_t gid[16];     /* of a peer */
    char name[AGENT_REACH_NAME];
    /* What the last proof that came to an end has shown: 0, or why not (-ETIMEDOUT, ...; as of
     * LANE_EVENT_PROVED). Once known_ns or since_ns is not 0. */
    int status;
    uint64_t known_ns; /* when; 0: nothing is known */
    uint64_t since_ns; /* it fails since then; 0: it does not */
};

/* Zeroed to begin. Places of targets stay while they are targets. */
struct agent_reach {
    struct agent_reach_target at[AGENT_REACH_TARGETS];
    uint32_t next;
};

/* What a proof changed. */
enum agent_reach_news {
    AGENT_REACH_SAME,
    AGENT_REACH_KNOWN, /* it is reached, and nothing was known of it */
    AGENT_REACH_FAILS,
    AGENT_REACH_OTHER, /* it fails still, for another reason */
    AGENT_REACH_AGAIN, /* it is reached again */
    AGENT_REACH_GONE   /* there is no such endpoint any more, or metaserver for now */
};

struct agent_reach_peer {
    uint8_t gid[16];
    char name[AGENT_REACH_NAME];
};

/* The peers from now on, up to AGENT_REACH_PEERS of them: what is known of those that stay, stays.
 */
void agent_reach_peers(struct agent_reach *r, const struct agent_reach_peer *peers, uint32_t count);
void agent_reach_metaserver(struct agent_reach *r, uint32_t number, const char *url);

/* The next one to be proven, by its place; -1: there is none. */
int agent_reach_next(struct agent_reach *r);
/* A proof of the one at that place has come to its end: with 0; -EAGAIN, it could not be tried, so
 * that what was known holds, but not for longer than keep_ns; -ENOENT; or why it failed. */
enum agent_reach_news agent_reach_note(struct agent_reach *r, int place, int status,
                                       uint64_t now_ns, uint64_t keep_ns);

struct agent_reach_counts {
    uint32_t tried, failing; /* of which something is known; of those */
    uint64_t since_ns;       /* the first of them does since then; 0: none does */
};
struct agent_reach_counts agent_reach_count(const struct agent_reach *r);

/* "timeout", "unreachable", "refused", "device", as metaservers are told; "" of 0. A literal. */
const char *agent_reach_error(int status);
/* The same in words: "it does not answer". */
const char *agent_reach_why(int status);

#endif
