/* SPDX-License-Identifier: Apache-2.0 */
/* Between routes.c (what there is, and who may), rest.c (what is said; nodes), put.c (registering,
 * which may be answered later), rest_settings.c (what operators set) and rest_watch.c (what agents
 * are told of it, and the trail). */
#ifndef METASERVER_REST_PRIVATE_H
#define METASERVER_REST_PRIVATE_H

#include "metaserver/access.h"
#include "service_private.h"

/* One request on its way through. */
struct call {
    struct kedge_service *s;
    const struct kedge_service_request *request; /* NULL: it is answered later */
    uint64_t now;
    struct kedge_text *body;
    struct kedge_service_answer *answer;
    enum kedge_setting_kind kind;  /* of the route, if it is about settings */
    char id[KEDGE_STORE_ID_BYTES]; /* of the path; "" if the route has none */
    struct kedge_caller caller;
    char who[KEDGE_SETTING_WHO_BYTES]; /* that is, for the trail */
};

enum rest_problem {
    REST_MALFORMED,
    REST_NO_VALID_TOKEN,
    REST_FORBIDDEN,
    REST_NO_ROUTE,
    REST_NO_NODE,
    REST_REGISTER_AGAIN,
    REST_NO_TENANT,
    REST_NO_WINDOW,
    REST_NO_TOKEN,
    REST_NO_POOL,
    REST_NOTHING_SET,
    REST_METHOD,
    REST_STALE,
    REST_TAKEN,
    REST_UID_TAKEN,
    REST_POOL_TAKEN,
    REST_FIXED,
    REST_DANGLING,
    REST_IN_USE,
    REST_GONE,
    REST_CHANGED,
    REST_TOO_LARGE,
    REST_MEDIA_TYPE,
    REST_READER,
    REST_FULL,
    REST_STORE,
    REST_NO_QUEUE_PAIR,
    REST_WATCHES,
};

/* Opens the problem; more members may follow, then rest_end_problem(). detail may be NULL. */
void rest_begin_problem(struct call *c, enum rest_problem p, const char *detail);
void rest_end_problem(struct call *c);
void rest_problem(struct call *c, enum rest_problem p, const char *detail);
/* A problem with a field ("": none). */
void rest_problem_of(struct call *c, enum rest_problem p, const char *field, const char *detail);
/* Another scope is needed: its name, and a sentence. */
void rest_forbidden(struct call *c, const char *scope, const struct kedge_fault *fault);
void rest_stale(struct call *c, uint32_t known);
/* Whether there is a JSON body; else the answer has been given. */
bool rest_has_json(struct call *c);

/* REST_MALFORMED. */
void rest_malformed(struct call *c, const char *field, const char *detail);

/* What every list has: how many at most, and after which name it goes on ("" for the first). Else
 * the answer has been given. */
struct rest_page {
    uint64_t limit;
    char after[KEDGE_STORE_ID_BYTES];
};
bool rest_read_page(struct call *c, struct rest_page *out);
/* Appends the cursor of a page that ended with `last`. */
void rest_next_cursor(struct call *c, const char *last);

/* Finds the request's route, sees whether the caller may, and has it answered. */
void rest_route(struct call *c);

void rest_list_nodes(struct call *c);
void rest_get_node(struct call *c);
void rest_delete_node(struct call *c);
void rest_renew_node(struct call *c);
/* PUT /v1/nodes/{id}/applied. */
void rest_put_applied(struct call *c);
void rest_get_health(struct call *c);
void rest_get_ready(struct call *c);
void rest_get_metrics(struct call *c);
void rest_get_version(struct call *c);

/* Of c->kind; of nodes what is said of them, as far as anything is. */
void rest_list_settings(struct call *c);
void rest_get_setting(struct call *c);
void rest_put_setting(struct call *c);
void rest_delete_setting(struct call *c);

void rest_get_configuration(struct call *c);
void rest_list_events(struct call *c);

/* PUT /v1/nodes/{id}. */
void rest_put_node(struct call *c);

#endif
