/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: what a lane keeps of lookups (lookup.c). The lane thread's. */
#ifndef LANE_LOOKUP_H
#define LANE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

struct lane;
struct lane_metaserver;
struct session;
struct wr;

enum { LANE_LOOKUPS = 64, LANE_LOOKUP_BUCKETS = 64, LANE_LOOKUP_READS = 2 * LANE_LOOKUPS };

LIST_HEAD(lookup_list, lookup);
LIST_HEAD(lookup_read_list, lookup_read);
LIST_HEAD(lookup_waiters, session);

/* What those who wait are told. */
struct lookup_answer {
    int status;
    uint32_t slot, gen;
};

/* An endpoint that is looked up: at one metaserver, and when that is silent, at the next beside it.
 */
struct lookup {
    uint8_t next;           /* metaserver to ask */
    uint8_t absent, behind; /* some metaserver does not know it, or an earlier life of it */
    uint8_t crowded;        /* it is known, and there was no room for it yet */
    uint32_t tenant;        /* its place + 1 whose worker wants it; 0: the lane does */
    uint8_t gid[16];
    uint64_t deadline_ns, hedge_ns; /* it ends; the next metaserver is asked */
    uint64_t read_ns;               /* when the READ was posted that is looked at */
    struct lookup_waiters waiters;  /* whose CONNECT this answers */
    struct lookup_read_list reads;  /* under way */
    struct lookup_answer answer;    /* when it has ended */
    LIST_ENTRY(lookup) in_use;      /* or among those that have ended, or are free */
    LIST_ENTRY(lookup) in_bucket;
};

/* A READ of a metaserver's table. */
struct lookup_read {
    uint8_t metaserver; /* its place in the lane's list; NO_METASERVER: it is in that no more */
    uint8_t tries;
    uint32_t scratch;
    uint64_t read_ns;
    struct lookup *lookup;       /* NULL: that is over */
    LIST_ENTRY(lookup_read) one; /* of its lookup, or of those that are free */
};

/* All that are under way are found by what they look for, in a table that nobody outside can crowd
 * a bucket of, so that what one more costs does not grow with them. */
struct lookups {
    struct lookup all[LANE_LOOKUPS];
    struct lookup_read all_reads[LANE_LOOKUP_READS];
    struct lookup_list used, ended, free, bucket[LANE_LOOKUP_BUCKETS];
    struct lookup_read_list free_reads;
    uint64_t answer_pass; /* in which so many of `ended` may still be told: */
    uint32_t answers_left;
};

/* What the lane has heard of a metaserver lately. */
struct silence {
    uint64_t until_ns, last_ns; /* it is not asked before; for how long that was */
    uint64_t heard_ns;          /* when it answered last; 0: not yet */
};

/* 0 and slot and gen; -EINPROGRESS: session s gets a reply later; else -errno. */
int peer_connect(struct lane *l, struct session *s, const uint8_t gid[16], uint32_t *slot,
                 uint32_t *gen);
void lookups_init(struct lane *l);
void lookup_done(struct lane *l, struct wr *w, enum ibv_wc_status status);
/* The list of metaservers is another one than this, which has room for all that there can be: a
 * READ of one that is not in it any more, or whose table is another now, says nothing. */
void lookups_metaservers(struct lane *l, const struct lane_metaserver *before);
void lookups_due(struct lane *l);
/* When that is to be called; NEVER: nothing is looked up. */
uint64_t lookups_next(const struct lane *l);
void lookups_forget(struct session *s);
/* The next session whose CONNECT has its answer, which waits no longer; NULL: there is none. */
struct session *lookup_next_answered(struct lane *l, struct lookup_answer *out);
/* Whether that endpoint is being looked up. */
bool lookup_is_under_way(struct lane *l, const uint8_t gid[16]);
/* Whether a metaserver may be asked: it has not just been silent, and there is one. */
bool lookup_may_ask(const struct lane *l, uint32_t metaserver);
bool lookup_has_whom_to_ask(const struct lane *l);
/* What an answer of that metaserver to another READ of its table says of it. */
void lookup_heard(struct lane *l, uint32_t metaserver, enum ibv_wc_status answer);
/* Whether the peer's record may be used now; asks for a new one before it is too old. Else
 * peers[slot].refreshing says whether a new one is under way. */
bool peer_is_fresh(struct lane *l, uint32_t slot);

#endif
