/* SPDX-License-Identifier: Apache-2.0 */
/* Between service.c (what happens) and rest.c (how it is said). */
#ifndef METASERVER_SERVICE_PRIVATE_H
#define METASERVER_SERVICE_PRIVATE_H

#include "metaserver/service.h"

/* Of a route that says nothing else. */
#define KEDGE_SERVICE_ANSWER                                                                       \
    ((struct kedge_service_answer){.status = 200, .content_type = "application/json"})

/* Notes which time it is, by both clocks. */
void kedge_service_at(struct kedge_service *s, uint64_t now, uint64_t wall_ms);
/* Takes the endpoints of nodes whose lease is over out of the table, and says so. */
void kedge_service_lapse(struct kedge_service *s, uint64_t now);
/* As kedge_meta_check(), and counts what is refused. */
int kedge_service_check(struct kedge_service *s, const struct kedge_meta_registration *r,
                        struct kedge_meta_verdict *verdict);
/* As kedge_meta_check(), or -EROFS and a sentence: the store refused, nothing happened. */
int kedge_service_register(struct kedge_service *s, const struct kedge_meta_registration *r,
                           uint64_t now, struct kedge_meta_verdict *verdict,
                           struct kedge_errbuf *err);
/* who: for those who watch. 0, -ENOENT, or -EROFS as above. */
int kedge_service_remove(struct kedge_service *s, const char *id, const char *who, uint64_t now,
                         struct kedge_errbuf *err);
/* Stores and applies what was planned, and tells those who watch. 0, or -EROFS as above. */
int kedge_service_change(struct kedge_service *s, const struct kedge_setting_change *change,
                         uint64_t now, struct kedge_errbuf *err);
/* Whether nodes that windows name have come, gone, or have other GIDs than at the last look. */
bool kedge_service_look_at_places(struct kedge_service *s);
/* Fills s->settings from the store. */
int kedge_service_load_settings(struct kedge_service *s, uint64_t now, struct kedge_errbuf *err);
/* A write that a client asked for has failed: counted and logged. Returns -EROFS. */
int kedge_service_store_failed(struct kedge_service *s, const char *what, const char *name,
                               uint64_t now, const struct kedge_errbuf *err);

#endif
