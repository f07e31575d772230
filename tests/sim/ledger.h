/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation knows of workers' memory, beside all that the product knows: which regions
 * there are, what each byte of them must be, and when memory is free. Workers write down what they
 * do, the network what it carries out, and both are held against each other:
 *
 *  - no remote operation is carried out in a worker's memory outside of a region that its owner
 *    lends, from the moment on at which the owner was told that the region is gone, and none for
 *    another tenant than the region's;
 *  - nothing else is read or written there by a device than what requests of that worker's own
 *    session name;
 *  - what is READ is what was WRITTEN last, of that region and of nobody else's memory.
 *
 * A region has slots. Each is one user's at a time, whose requests there are all of one VQP, so
 * that its content is known at each moment. A slot in which the end of a request is not known (it
 * failed and may have been carried out) is nobody's any more.
 *
 * One thread. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "fabric/sim.h"
#include "process.h"

enum {
    PLAY_SLOTS = 4,
    PLAY_SLOT_BYTES = 4096, /* of content; behind all of them each has a counter for atomics */
    PLAY_COUNTER_BYTES = 64,
    PLAY_REGION_BYTES = PLAY_SLOTS * (PLAY_SLOT_BYTES + PLAY_COUNTER_BYTES),
    PLAY_TOKEN = 96
};

struct play_region;

/* One user's part of a region. */
struct play_slot {
    struct play_region *region;
    uint32_t number;
    bool taken, lost;
    uint64_t turn; /* so often it was taken */
    bool begun;    /* something has succeeded there since its VQP was connected */
    uint64_t counter;
    uint8_t content[PLAY_SLOT_BYTES];
};

struct play_region {
    struct play_region *next, **link;
    uint64_t id;
    uint32_t node, life;        /* its node's agent, and which life of that */
    char owner[PLAY_NAME];      /* its worker's name */
    uint32_t tenant, tenant_id; /* its number from 1, and what products know it by */
    uint32_t guest_id;          /* a tenant that has its token; 0: none has */
    uint8_t *at;                /* its first byte, in this process */
    uint8_t gid[16];            /* of its node */
    char token[PLAY_TOKEN];
    bool live; /* else its owner withdraws it */
    bool fenced, lease_only;
    uint64_t born_identity; /* registrations up to this number were there before it */
    uint32_t users;
    struct play_slot slot[PLAY_SLOTS];
};

void play_ledger_init(void);
void play_ledger_fini(void);

/* ---- owners */

/* From now on that memory is a worker's, until the second; outside of regions it is its alone.
 * session: as post_looks.h knows it. */
void play_ledger_arena(const struct play_process *owner, const void *session, void *at,
                       size_t bytes);
void play_ledger_no_arena(void *at);
/* A region's first content is written, and whoever finds it may use it from play_region_lend() on.
 */
struct play_region *play_region_new(uint32_t node, const char *owner, uint32_t tenant, void *at);
void play_region_lend(struct play_region *r, const uint8_t gid[16], const char *token);
/* Whether the owner of a region in this memory, which is withdrawn or whose session is over, waits
 * for its lease first. at: a registration's, of the region alone or of its arena. */
bool play_ledger_waits(const void *at, uint64_t bytes);
/* Its owner begins to withdraw it: nobody else finds it. */
void play_region_withdraw(struct play_region *r);
/* Its owner was told that it is gone; or the owner is. Who has a slot of it learns that by an error
 * alone. */
void play_region_free(struct play_region *r);

/* That node's agent begins another life: none of its regions is of that. */
void play_ledger_new_life(uint32_t node);
/* Its host, or its agent, does nothing, and hears of nothing, until then. */
void play_ledger_suspended(uint32_t node, uint64_t until_ns);

/* Up to `most` tokens of regions of other tenants that are lent. How many. */
uint32_t play_regions_of_others(uint32_t tenant, char text[][PLAY_TOKEN], uint32_t most);
/* Whoever is of that tenant may use the region with that token, from now on. */
void play_region_grant(const char *token, uint32_t tenant);

/* ---- users */

/* One of somebody else's regions of that tenant by chance, with a slot that is free: it is taken.
 * NULL: there is none. */
struct play_slot *play_slot_take(struct base_prng *r, const char *user, uint32_t tenant);
/* It is not used any more; nothing of it is in flight. */
void play_slot_give(struct play_slot *s);
/* Whether its region's node has begun another life, so long ago that nobody on the user's node
 * still knows of the former one that it has a region no more, or is about to hear that: a quarter
 * of the longest lease (1.25 s), after whatever has stood still on the user's node. */
bool play_slot_is_outlived(const struct play_slot *s, uint32_t user);
/* Whether its region is: for who has had an error. */
bool play_slot_is_gone(const struct play_slot *s);
/* Offset of its content and of its counter from the region's beginning. */
uint64_t play_slot_offset(const struct play_slot *s);
uint64_t play_slot_counter_offset(const struct play_slot *s);
/* The user posts a WRITE of that there, from byte `at` on, which it has made up. */
void play_slot_write(struct play_slot *s, struct base_prng *r, uint32_t at, uint32_t bytes,
                     void *out);

/* ---- the network */

void play_ledger_accessed(const struct sim_access *a);
void play_ledger_registered(const struct sim_region *region);
/* Whether that is memory of a region that is lent by its lease alone. */
bool play_ledger_is_lease_only(const void *at, uint32_t bytes);
/* Accesses that were looked at. */
uint64_t play_ledger_accesses(void);

/* ---- violations: what must never happen has happened, in words. The first one counts. */

void play_violation(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first one's sentence; NULL: there was none. */
const char *play_violated(void);

#endif
