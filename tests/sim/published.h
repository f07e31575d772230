/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions as a store that several metaservers share has had them, and whether what
 * metaservers and workers come to know of them could be so (docs/leases.md#names). What is not so
 * is a violation. One thread. */
#ifndef SIM_PUBLISHED_H
#define SIM_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "metaserver/store.h"

/* calm_ns: from then on nothing goes wrong, nor has for long. */
void play_published_begin(uint64_t calm_ns);
void play_published_end(void);

/* The store has carried something out for that metaserver just now (behind registrations.h's look):
 * a name has one owner, and another one only when that is dead or has given it back. */
void play_published_look(const char *who, struct meta_store *store);
/* The store was put back: what was so before may be so again, and nobody has done it. */
void play_published_put_back(struct meta_store *store);
/* In the calm end no name is there of who is dead, or has given it back. Every second. */
void play_published_look_at_rest(void);

/* A region as workers know it. */
struct play_published_region {
    uint8_t gid[16];
    uint32_t key; /* 0: any */
};

/* A worker, or a metaserver that answers, has it that this region has that name; asked for it then.
 * space: the tenant's, or that of a name for another one (schema/name_record.h). */
void play_published_given(const char *who, const char *space, const char *name,
                          const struct play_published_region *r, uint64_t asked_ns);
/* Likewise that it has it no more: at some moment meanwhile it had it not. */
void play_published_taken_back(const char *who, const char *space, const char *name,
                               const struct play_published_region *r, uint64_t asked_ns);
/* Its owner gives that region back, or is no more: its names are to go. */
void play_published_forsaken(const struct play_published_region *r);
/* A worker of that host has looked up a name: found it (r), or not (r NULL). */
void play_published_looked_up(const char *who, uint32_t host, const char *space, const char *name,
                              const struct play_published_region *r, uint64_t asked_ns);
/* That host's agent begins another life, which knows nothing of what the one before has used. */
void play_published_new_life(uint32_t host);

#endif
