/* SPDX-License-Identifier: Apache-2.0 */
/* Between rest.c (routes, and most of what is said) and put.c (registering, which may be answered
 * later). */
#ifndef METASERVER_REST_PRIVATE_H
#define METASERVER_REST_PRIVATE_H

#include "service_private.h"

/* One request on its way through. */
struct call {
    struct kedge_service *s;
    const struct kedge_service_request *request; /* NULL: it is answered later */
    uint64_t now;
    struct kedge_text *body;
    struct kedge_service_answer *answer;
    char id[KEDGE_STORE_ID_BYTES]; /* of the path; "" if the route has none */
};

enum rest_problem {
    REST_MALFORMED,
    REST_NO_ROUTE,
    REST_NO_NODE,
    REST_REGISTER_AGAIN,
    REST_METHOD,
    REST_STALE,
    REST_TAKEN,
    REST_TOO_LARGE,
    REST_MEDIA_TYPE,
    REST_READER,
    REST_FULL,
    REST_STORE,
    REST_NO_QUEUE_PAIR,
};

/* Opens the problem; more members may follow, then rest_end_problem(). detail may be NULL. */
void rest_begin_problem(struct call *c, enum rest_problem p, const char *detail);
void rest_end_problem(struct call *c);
void rest_problem(struct call *c, enum rest_problem p, const char *detail);
/* A problem with a field ("": none). */
void rest_problem_of(struct call *c, enum rest_problem p, const char *field, const char *detail);
void rest_stale(struct call *c, uint32_t known);
/* Whether there is a JSON body; else the answer has been given. */
bool rest_has_json(struct call *c);

/* PUT /v1/nodes/{id}. */
void rest_put_node(struct call *c);

#endif
