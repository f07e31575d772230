/* SPDX-License-Identifier: Apache-2.0 */
/* A shared store in memory: for tests and simulations of several metaservers. It does what
 * store.h and store_watch.h say of a shared one, and tells of everything as late as its user asks.
 * One thread. */
#ifndef METASERVER_STORE_HUB_H
#define METASERVER_STORE_HUB_H

#include "metaserver/store_watch.h"

struct meta_store_hub;

/* NULL: no memory, as of the others here. */
struct meta_store_hub *meta_store_hub_new(void);
/* All of its stores are closed. */
void meta_store_hub_free(struct meta_store_hub *hub);

/* The store of a metaserver of that name, which lives from now on until it is closed. */
struct meta_store *meta_store_hub_open(struct meta_store_hub *hub, const char *member);
/* What that metaserver has not heard yet, one thing: first a snapshot. The caller's; NULL: there is
 * nothing more. */
struct meta_store_heard *meta_store_hub_hear(struct meta_store *store);
/* As if that metaserver had been away for too long: a snapshot comes next. */
void meta_store_hub_compact(struct meta_store *store);
/* Whether that metaserver has said that this life of a node is silent, and it stands. */
bool meta_store_hub_has_vote(struct meta_store *store, const struct meta_store_life *life);
/* As if that metaserver's lease was over, from now on or no longer: it does not count as living,
 * and reads and writes as before. */
void meta_store_hub_lapse(struct meta_store *store, bool lapsed);
/* As if it was put back to what it held before, as another store has it, and to half of the places
 * that it had by now; who has written behind that is refused (-EIO) until it has heard what is
 * there. An operator's restore is meta_store_replace(). */
void meta_store_hub_put_back(struct meta_store_hub *hub, struct meta_store *to);
/* From now on so many of what that metaserver submits have no answer (-ETIMEDOUT), by the seed:
 * half of them are done. */
void meta_store_hub_lose(struct meta_store *store, uint64_t seed, uint32_t percent);

#endif
