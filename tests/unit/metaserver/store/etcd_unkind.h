/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy before etcd that is as unkind as a network, a cluster without a leader and the bugs of
 * etcd's versions may be: by a seed it loses answers of what was done, refuses what was not, and of
 * watches it cuts, silences, repeats and loses what they say. A thread for each connection, which
 * takes one request, unless connections are kept. */
#ifndef TESTS_UNIT_METASERVER_STORE_ETCD_UNKIND_H
#define TESTS_UNIT_METASERVER_STORE_ETCD_UNKIND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/random.h"

enum unkind_fault {
    UNKIND_LOSE = 1 << 0,   /* it is done, and nobody hears of it */
    UNKIND_DENY = 1 << 1,   /* it is done, and said to have timed out */
    UNKIND_REFUSE = 1 << 2, /* it is not done: there is no leader */
    UNKIND_CUT = 1 << 3,    /* a watch ends, within a line or behind it */
    UNKIND_SILENT = 1 << 4, /* a watch says nothing any more */
    UNKIND_REPEAT = 1 << 5, /* a watch says a thing twice */
    UNKIND_DROP = 1 << 6,   /* a watch loses a thing (etcd #17529) */
    UNKIND_ERROR = 1 << 7,  /* a watch ends with an error */
    UNKIND_LATE = 1 << 8,   /* what is to be done comes to pass later, and nobody hears of it */
    /* Of these two the first write alone, and nothing is answered from then on. */
    UNKIND_VANISH = 1 << 9, /* it is done */
    UNKIND_HOLD = 1 << 10,  /* it is kept, until it is let go */
    UNKIND_WAIT = 1 << 11,  /* a write is kept until it is let go, and then done and answered */
    /* Of connections that are kept, the first write alone; from then on etcd is too busy. */
    UNKIND_END = 1 << 12,   /* it is done, and the connection ends without an answer */
    UNKIND_TWICE = 1 << 13, /* it is done, done again, and the second answer is given */
};

struct unkind {
    int listener, port, target;
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock; /* random */
    struct base_prng random;
    _Atomic unsigned faults, percent; /* of requests, and of lines of a watch */
    _Atomic unsigned requests, streams, faulted;
    _Atomic int under_way;
    _Atomic bool waits;               /* one is kept */
    _Atomic bool keeps;               /* connections, for many requests */
    _Atomic bool busy;                /* nothing is done */
    _Atomic bool gone;                /* nothing is answered */
    _Atomic bool lets_go, has_let_go; /* what is kept */
    _Atomic bool over;
    const char *_Atomic lapse; /* JSON with which leases are renewed; NULL: etcd's */
};

/* Before an etcd at this port of ours. Kind, until it is told which faults it is to have. */
void unkind_begin(struct unkind *u, int target, uint64_t seed);
void unkind_end(struct unkind *u);

#endif
