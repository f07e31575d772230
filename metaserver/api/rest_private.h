/* SPDX-License-Identifier: Apache-2.0 */
/* Between routes.c (what there is, and who may) and those that answer: rest.c (nodes),
 * rest_daemon.c, node_register.c (registering, which may be answered later), rest_resources.c (what
 * operators set), rest_watch.c (what agents are told of it, and the trail) and agent_proxy.c
 * (workers and leases). What they share is in problems.c, which calls none of them; none of them
 * calls routes.c.
 */
#ifndef METASERVER_REST_PRIVATE_H
#define METASERVER_REST_PRIVATE_H

#include "metaserver/access.h"
#include "service_private.h"
#include "writes.h"

/* One request on its way through. */
struct call {
    struct meta_service *s;
    const struct meta_service_request *request; /* NULL: it is answered later */
    uint64_t now, wall_ms;                      /* of its answer */
    struct base_text *body;
    struct meta_service_answer *answer;
    enum meta_resource_kind kind;      /* of the route, if it is about resources */
    char id[META_STORE_ID_BYTES];      /* of the path; "" if the route has none */
    char of_node[META_PROXY_ID_BYTES]; /* the second id of the path: of what the node has */
    struct meta_caller caller;
    char who[META_RESOURCE_WHO_BYTES]; /* that is, for the trail */
};

enum meta_rest_problem {
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
    REST_NO_LEASE,
    REST_NO_WORKER,
    REST_NO_REGION,
    REST_NO_QUESTION,
    REST_NOTHING_SET,
    REST_METHOD,
    REST_STALE,
    REST_TAKEN,
    REST_NAME_TAKEN,
    REST_QUOTA,
    REST_UID_TAKEN,
    REST_POOL_TAKEN,
    REST_FIXED,
    REST_DANGLING,
    REST_IN_USE,
    REST_BUSY,
    REST_GONE,
    REST_CHANGED,
    REST_TOO_LARGE,
    REST_MEDIA_TYPE,
    REST_READER,
    REST_FULL,
    REST_STORE,
    REST_TABLE,
    REST_CROWDED,
    REST_STORM,
    REST_NAMES_WAIT,
    REST_NO_QUEUE_PAIR,
    REST_WATCHES,
    REST_BEHIND,
    REST_SETTLING,
    REST_ASKS,
    REST_UNREACHABLE,
    REST_LATE,
    REST_SENSELESS,
};

/* "unknown-lease": what its type ends with. */
const char *meta_rest_problem_name(enum meta_rest_problem p);
/* The answer. detail may be NULL. */
void meta_rest_problem(struct call *c, enum meta_rest_problem p, const char *detail);
/* A problem with a field ("": none). */
void meta_rest_problem_of(struct call *c, enum meta_rest_problem p, const char *field,
                          const char *detail);
/* Another scope is needed: its name, and a sentence. */
void meta_rest_forbidden(struct call *c, const char *scope, const struct meta_violation *violation);
/* A name of a region is another region's, whose owner lives; NULL: of which it is not known. */
/* It is not what is to be taken back; known: what the node has under that name, or NULL. */
void meta_rest_not_published(struct call *c, const struct meta_store_name *known);
/* The member "digest" of what says whose a name is: of its grant, which whoever has that knows. */
void meta_rest_write_digest(struct call *c, const struct meta_store_name *name);
void meta_rest_name_taken(struct call *c, const struct meta_store_name *known);
void meta_rest_stale(struct call *c, uint32_t known);
/* Whether there is a JSON body, of at most META_JSON_MAX_BYTES, or as many as are said; else the
 * answer has been given. */
bool meta_rest_has_json(struct call *c);
bool meta_rest_has_json_of(struct call *c, size_t most);

/* REST_MALFORMED. */
void meta_rest_malformed(struct call *c, const char *field, const char *detail);

/* What every list has: how many at most, and after which name it goes on ("" for the first). Else
 * the answer has been given. */
enum {
    REST_LOOKS = 500
}; /* things that a page looks at and does not want: it ends then, and its
    * cursor says where, so that no filter makes a turn as long as the list */
struct rest_page {
    uint64_t limit;
    char after[META_STORE_ID_BYTES];
};
bool meta_rest_read_page(struct call *c, struct rest_page *out);
/* Its parts, for cursors that are not names: how many; and the text of the cursor, "" without one.
 */
enum { REST_CURSOR_BYTES = 384 };
/* What agents may say of names of regions, beside what the first metaservers that kept some took:
 * `digest`, `again`, and GET of a node's. */
enum { REST_NAMES_VERSION = 2 };
bool meta_rest_read_limit(struct call *c, uint64_t *out);
bool meta_rest_read_cursor(struct call *c, char out[REST_CURSOR_BYTES]);
void meta_rest_bad_cursor(struct call *c);
/* Appends the cursor of a page that ended with `last`, which is shorter than REST_CURSOR_BYTES. */
void meta_rest_next_cursor(struct call *c, const char *last);

/* Of this metaserver, in the answers to registrations and renewals: behind, store, zone. */
void meta_rest_write_standing(struct call *c);
void meta_rest_list_nodes(struct call *c);
void meta_rest_get_node(struct call *c);
void meta_rest_delete_node(struct call *c);
void meta_rest_renew_node(struct call *c);
/* PUT /v1/nodes/{id}/applied. */
void meta_rest_put_applied(struct call *c);
/* PUT /v1/nodes/{id}/reach. */
void meta_rest_put_reach(struct call *c);
/* Names of regions: PUT and DELETE /v1/nodes/{id}/regions, and the list of all. */
void meta_rest_put_region(struct call *c);
void meta_rest_delete_region(struct call *c);
void meta_rest_list_regions(struct call *c);
void meta_rest_list_node_regions(struct call *c);
/* Instead of its list (rest_watch.c). */
void meta_rest_watch_regions(struct call *c);
/* Which list of names that is: of which life of a metaserver. */
void meta_rest_names_position(const struct meta_service *s, char out[TRAIL_POSITION_BYTES]);
void meta_rest_get_health(struct call *c);
void meta_rest_get_ready(struct call *c);
void meta_rest_get_metrics(struct call *c);
void meta_rest_get_version(struct call *c);
void meta_rest_list_metaservers(struct call *c);

/* Of c->kind; of nodes what is said of them, as far as anything is. */
void meta_rest_list_resources(struct call *c);
void meta_rest_get_resource(struct call *c);
void meta_rest_put_resource(struct call *c);
void meta_rest_delete_resource(struct call *c);

void meta_rest_get_configuration(struct call *c);
void meta_rest_list_events(struct call *c);
/* Appends a member: after which event of a node a watch goes on from here. */
void meta_rest_write_position(struct call *c);

/* What agents are asked for: workers and leases; and PUT /v1/nodes/{id}/answers/{query}. */
void meta_rest_list_leases(struct call *c);
void meta_rest_get_lease(struct call *c);
void meta_rest_delete_leases(struct call *c); /* of a worker */
void meta_rest_delete_lease(struct call *c);
void meta_rest_list_workers(struct call *c);
void meta_rest_get_worker(struct call *c);
void meta_rest_get_agent_status(struct call *c);
void meta_rest_put_answer(struct call *c);
/* Answers those clients whose query has ended; of all nodes, asks the next one. */
void meta_rest_proxy_advance(struct meta_service *s, uint64_t now);

/* The store does not end: answers those clients. */
void meta_rest_proxy_abandon(struct meta_service *s, uint64_t now);

/* PUT /v1/nodes/{id}. */
void meta_rest_put_node(struct call *c);
/* Goes on with those whose queue pair is ready, or refuses them. */
void meta_rest_register_advance(struct meta_service *s, uint64_t now);

#endif
