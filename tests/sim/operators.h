/* SPDX-License-Identifier: Apache-2.0 */
/* Operators as a simulated process on a host of its own: they change all that can be changed while
 * the cluster runs (tenants, windows, pools, tokens, nodes' settings, leases), by the REST
 * interface of each metaserver, and read it. What they change follows from the seed.
 *
 * They hold each metaserver to its word: what it has answered is what it shows from then on,
 * whatever becomes of its process; a change that it refused, or could not store, has not happened.
 * In the end they take back all that they have set.
 *
 * One thread, one of them at a time. */
#ifndef SIM_OPERATORS_H
#define SIM_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"

struct play_operators_settings {
    uint64_t seed;
    uint32_t nodes, metaservers;
    char (*node)[PLAY_NAME], (*metaserver)[PLAY_NAME]; /* names of hosts; borrowed until the end */
    void (*gid)(uint32_t number, uint8_t gid[16]);     /* of a node's endpoint */
    /* Not 0: there are so many, which share a store: all together are taken for one, each call goes
     * to any of them, and what is answered is history.h's to judge. */
    uint32_t shared;
    uint32_t tenants;  /* that the agents' files have */
    uint32_t lanes;    /* of pools that they say, at most; 0: they say nothing of them */
    uint64_t until_ns; /* then they begin to take back what they have set; nothing goes wrong from
                        * then on, and they are given some time for it */
};

enum { PLAY_TENANTS = 4 }; /* of files, and "red", which no file has */

/* "default", "blue", ...: the tenants of agents' files, by number from 0, and their uids. */
const char *play_tenant_name(uint32_t number);
uint32_t play_tenant_uid(uint32_t number); /* the first of a thousand */

struct play_operators;

/* NULL: no memory. */
struct play_operators *play_operators_start(const struct play_operators_settings *settings);
/* Whether all that they had set is taken back. */
bool play_operators_are_done(const struct play_operators *o);
/* Changes that were acknowledged. */
uint64_t play_operators_changes(const struct play_operators *o);
/* Whether something of that node may be revoked by force now, since they have asked for that. */
bool play_operators_may_force(const struct play_operators *o, uint32_t node);
/* That metaserver has lost its disk, and all that they have set there with it. */
void play_operators_lost(struct play_operators *o, uint32_t metaserver);
void play_operators_kill(struct play_operators *o);

enum { PLAY_LEASE_ID = 96 };
/* One of the leases that are listed in an answer, by chance: its "id" or "worker". False: there is
 * none. */
bool play_choose_lease(const char *answer, const char *key, struct base_prng *r,
                       char id[PLAY_LEASE_ID]);

/* ---- what a metaserver has answered of one path; for the unit test */

enum play_answered { ANSWERED_NOTHING, ANSWERED_BODY, ANSWERED_GONE, ANSWERED_UNKNOWN };

struct play_known {
    enum play_answered what;
    char body[2048]; /* of ANSWERED_BODY */
};

/* A PUT or DELETE was answered with that status (or -errno). False: it may not be answered so. */
bool play_known_change(struct play_known *k, const char *method, int status, const char *body);
/* Whether a GET may be answered with that. */
bool play_known_allows(const struct play_known *k, int status, const char *body);

/* ---- the secrets of a token that a metaserver has shown; for the unit test */

enum { PLAY_SECRET = 128 };

struct play_secret {
    char live[PLAY_SECRET]; /* the token's that there is; "": none, or nobody knows */
    char gone[PLAY_SECRET]; /* that of one which was deleted */
};

/* A PUT or DELETE of the token was answered with that status (or -errno). */
void play_secret_change(struct play_secret *s, const char *method, int status, const char *answer);
/* The metaserver has lost all its tokens: what was one is none. */
void play_secret_lost(struct play_secret *s);
/* Whether whoever shows that of a token which is live, or not, may be answered so. */
bool play_secret_allows(bool live, int status);

#endif
