/* SPDX-License-Identifier: Apache-2.0 */
/* Between service.c (what happens) and rest.c (how it is said). */
#ifndef METASERVER_SERVICE_PRIVATE_H
#define METASERVER_SERVICE_PRIVATE_H

#include "base/clock.h"
#include "metaserver/service.h"

/* Between attempts at a store that fails, of what nobody asked for. */
#define META_SERVICE_PAUSE_NS (5 * BASE_NS_PER_S)

/* Of a route that says nothing else. */
#define META_SERVICE_ANSWER                                                                        \
    ((struct meta_service_answer){.status = 200, .content_type = "application/json"})

/* Takes the endpoints of nodes whose lease is over out of the table, and says so. */
void meta_service_lapse(struct meta_service *s, uint64_t now);
/* As meta_directory_check(), and counts what is refused. */
int meta_service_check(struct meta_service *s, const struct meta_registration *r,
                       struct meta_verdict *verdict);
/* What has become of a node or a certificate: *event of it, of which the time, the revision and who
 * is filled in here. Those who watch are told at the next tick. */
void meta_service_announce(struct meta_service *s, const char *node, const char *who, uint64_t now,
                           struct meta_liveness_event *event);
/* The same moment since 1970. */
uint64_t meta_service_wall_ms(const struct meta_service *s, uint64_t at);
/* Registers r, which has been found to be right, and is in the store. */
void meta_service_registered(struct meta_service *s, const struct meta_registration *r,
                             const struct meta_verdict *verdict, uint64_t now);
/* The store has no such node any more; who: for those who watch. */
void meta_service_removed(struct meta_service *s, const char *id, const char *who, uint64_t now);
/* A change of resources, as the store is given it. */
struct meta_service_change {
    struct meta_resource_change change;
    struct meta_store_change stored;
    struct base_text before, after, resource;
};
/* What was planned (x->change), into a transaction, which borrows x. 0; -ENOMEM. */
int meta_service_write_change(struct meta_service *s, struct meta_service_change *x,
                              struct meta_store_txn *txn);
/* The store has it: applies it, and tells those who watch. */
void meta_service_changed(struct meta_service *s, struct meta_service_change *x,
                          const struct meta_store_outcome *out);
/* All zero is allowed. */
void meta_service_change_fini(struct meta_service_change *x);
/* Another metaserver has made a change: applies it, unless it has been. 0; -EINVAL and a sentence:
 * it does not fit to what is known here. */
int meta_service_hear_change(struct meta_service *s, const struct meta_store_change *change,
                             struct base_errbuf *err);
/* A node is as the store says, by whomever. */
void meta_service_hear_put(struct meta_service *s, const struct meta_store_node *node,
                           uint64_t now);
/* All that the store holds of resources, in place of what is known: 0, or an error as of
 * meta_service_load(), and nothing has changed. */
int meta_service_reload_resources(struct meta_service *s, struct meta_store *store,
                                  struct base_errbuf *err);
/* A change that is applied: for the log, and those who watch. */
void meta_service_tell_change(struct meta_service *s, const struct meta_resource_change *change,
                              bool elsewhere);

/* That is known from now on, and may have been told to agents. */
void meta_service_note_revision(struct meta_service *s, uint64_t revision);
/* The store was put back, or replaced: who has names is not settled for a lease, or for a minute if
 * that is less. */
void meta_service_note_put_back(struct meta_service *s);
/* It was loaded: likewise, if the trail has a restore that no later entry says to be settled. */
void meta_service_note_loaded(struct meta_service *s);
/* Writes such an entry when that is over. */
void meta_service_settle(struct meta_service *s, uint64_t now);
uint64_t meta_service_settle_due(const struct meta_service *s);
/* If the store was put back behind what agents know: writes a revision that exceeds that. */
void meta_service_raise_revision(struct meta_service *s);
/* Again, if that has failed, and when that is due. */
void meta_service_raise_again(struct meta_service *s, uint64_t now);
uint64_t meta_service_raise_due(const struct meta_service *s);

/* Makes those tokens of what was read anew void that were known to be deleted. -ENOMEM. */
int meta_service_void_returned(struct meta_service *s, struct meta_resources *fresh,
                               uint64_t generation);
/* Deletes void tokens in the store, one after the other, when that is due. */
void meta_service_bury(struct meta_service *s, uint64_t now);
uint64_t meta_service_bury_due(const struct meta_service *s);

/* A node that was known as that is expired by now, as the store says. */
void meta_service_heard_expiry(struct meta_service *s, const struct meta_lapse *lapse,
                               uint64_t now);
/* Whether nodes that windows name have come, gone, or have other GIDs than at the last look. */
bool meta_service_refresh_window_targets(struct meta_service *s);
/* Fills s->resources from the store. */
int meta_service_load_resources(struct meta_service *s, struct base_errbuf *err);
/* A write that a client asked for has failed: counted and logged. */
void meta_service_store_failed(struct meta_service *s, const char *what, const char *name,
                               uint64_t now, const struct base_errbuf *err);

/* Something that the store holds has no room here: err says how to give it some. */
void meta_service_lacks(struct meta_service *s, const struct base_errbuf *err, uint64_t now);
/* Whether it knows all nodes that the store has, so that who is unknown is gone. */
bool meta_service_knows_nodes(const struct meta_service *s, uint64_t now);

/* How the owner of a name is; service: the struct meta_service. */
enum meta_name_life meta_service_name_life(void *service, const struct meta_store_name *name);
/* The store has it. */
void meta_service_put_name(struct meta_service *s, const struct meta_store_name *name,
                           uint64_t now);
/* All that a store holds, in place of what is known. 0, or an error as of meta_service_load(). */
int meta_service_load_names(struct meta_service *s, struct meta_store *store, uint64_t now,
                            struct base_errbuf *err);
void meta_service_hear_names(struct meta_service *s, const struct meta_store_heard *heard,
                             uint64_t now);
/* Takes names of who does not live out of the table, and begins to take back those of the dead. */
void meta_service_names_tick(struct meta_service *s, uint64_t now);
uint64_t meta_service_names_due(const struct meta_service *s);

/* Whether the store has not done what it was given last, so that nothing is likely to be written
 * here: a name that is another metaserver's, a disk that is full. It is asked again by itself. */
bool meta_service_is_read_only(const struct meta_service *s);
/* Asks a store that has failed whether it still does, and a shared one first of all. */
void meta_service_probe(struct meta_service *s, uint64_t now);
uint64_t meta_service_probe_due(const struct meta_service *s);

/* Begins what has to be written for time has passed, if anything has. */
void meta_service_tidy(struct meta_service *s, uint64_t now);
uint64_t meta_service_tidy_due(const struct meta_service *s);

#endif
