/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of the REST interface: bodies into plain structs, and nothing of jansson beyond this
 * file. schema/openapi.yaml describes it. Any thread. */
#ifndef METASERVER_JSON_H
#define METASERVER_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "metaserver/directory.h"
#include "metaserver/table_responders.h"
#include "metaserver/violation.h"

#define META_JSON_MAX_ANSWER_BYTES (256 << 10) /* of an agent's body: a worker's leases fit */

/* [a-z0-9][a-z0-9.-]{0,62} */
bool meta_json_is_id(const char *id);

/* PUT /v1/nodes/{id}. initiator->qpn is 0 when there is none. 0; -EINVAL and *violation: not JSON
 * (duplicate keys, NUL, bad UTF-8, too deep), an unknown field, or a value that is missing, of the
 * wrong type or out of bounds. */
int meta_json_registration(const char *id, const void *body, size_t bytes,
                           struct meta_registration *out, struct meta_responder_peer *initiator,
                           struct meta_violation *violation);
/* POST /v1/nodes/{id}/renew. As above. */
int meta_json_renewal(const void *body, size_t bytes, uint32_t *incarnation,
                      struct meta_violation *violation);
/* PUT /v1/nodes/{id}/applied. As above. */
int meta_json_report(const void *body, size_t bytes, uint32_t *incarnation, struct meta_report *out,
                     struct meta_violation *violation);
/* What a metaserver says of itself to others: fields that are no short text are "". */
struct meta_json_about {
    char version[64], url[256];
};
void meta_json_about(const char *json, struct meta_json_about *out);

#endif
