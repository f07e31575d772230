/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says to a metaserver in registering, and what it is answered, as JSON. */
#ifndef DAEMON_REGISTER_JSON_H
#define DAEMON_REGISTER_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;
struct table_initiator;
struct table_initiator_peer;
struct registration;
struct metaserver_standing;

/* The body of a PUT: the node's endpoints, and as "reader" the table initiator of this pool, unless
 * it is NULL. To be freed; NULL: no memory. */
char *agent_register_json_describe(const struct pool *p, const struct table_initiator *initiator);
/* The answer to that: how to READ that metaserver's table, which goes to r->answered, and to peer;
 * r->lane stays as it is. NULL; or why it is no such answer, a literal, and r is as it was. */
const char *agent_register_json_understand(struct registration *r, const char *body,
                                           struct table_initiator_peer *peer);
/* What it says of itself in the answer to a registration or a renewal. */
struct metaserver_standing agent_register_json_standing(const char *body);
/* Whether the answer to a renewal, or to a PUT, is of the table that r->answered has: a metaserver
 * that was started again has another one. */
bool agent_register_json_is_of_table(const struct registration *r, const char *body);
/* Whether the answer to a renewal says that the metaserver's queue pair of that number has broken.
 */
bool agent_register_json_is_broken(const char *body, uint32_t qpn);
/* Of a metaserver's refusal, a text with room for size bytes: puts this node's GID into it, since
 * one to which no token was shown does not know for which GID such is to be made; and says what
 * follows where an older one does not know lanes. */
void agent_register_json_explain(const struct registration *r, char *why, size_t size);
/* An integer of 0 to max. False: there is none, and out is as it was. */
bool agent_register_json_number(const json_t *object, const char *key, uint64_t max, uint64_t *out);

#endif
