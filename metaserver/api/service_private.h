/* SPDX-License-Identifier: Apache-2.0 */
/* Between service.c (what happens) and rest.c (how it is said). */
#ifndef METASERVER_SERVICE_PRIVATE_H
#define METASERVER_SERVICE_PRIVATE_H

#include "metaserver/service.h"

/* Of a route that says nothing else. */
#define META_SERVICE_ANSWER                                                                        \
    ((struct meta_service_answer){.status = 200, .content_type = "application/json"})

/* Notes which time it is, by both clocks. */
void meta_service_at(struct meta_service *s, uint64_t now, uint64_t wall_ms);
/* Takes the endpoints of nodes whose lease is over out of the table, and says so. */
void meta_service_lapse(struct meta_service *s, uint64_t now);
/* As meta_directory_check(), and counts what is refused. */
int meta_service_check(struct meta_service *s, const struct meta_registration *r,
                       struct meta_verdict *verdict);
/* As meta_directory_check(), or -EROFS and a sentence: the store refused, nothing happened. */
int meta_service_register(struct meta_service *s, const struct meta_registration *r, uint64_t now,
                          struct meta_verdict *verdict, struct base_errbuf *err);
/* who: for those who watch. 0, -ENOENT, or -EROFS as above. */
int meta_service_remove(struct meta_service *s, const char *id, const char *who, uint64_t now,
                        struct base_errbuf *err);
/* Stores and applies what was planned, and tells those who watch. 0, or -EROFS as above. */
int meta_service_change(struct meta_service *s, const struct meta_resource_change *change,
                        uint64_t now, struct base_errbuf *err);
/* Whether nodes that windows name have come, gone, or have other GIDs than at the last look. */
bool meta_service_refresh_window_targets(struct meta_service *s);
/* Fills s->resources from the store. */
int meta_service_load_resources(struct meta_service *s, uint64_t now, struct base_errbuf *err);
/* A write that a client asked for has failed: counted and logged. Returns -EROFS. */
int meta_service_store_failed(struct meta_service *s, const char *what, const char *name,
                              uint64_t now, const struct base_errbuf *err);

#endif
