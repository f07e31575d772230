/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of the REST interface: bodies into plain structs, and nothing of jansson beyond this
 * file. schema/openapi.yaml describes it. Any thread. */
#ifndef METASERVER_JSON_H
#define METASERVER_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "metaserver/directory.h"
#include "metaserver/violation.h"
#include "metaserver/table_responders.h"

#define KEDGE_JSON_MAX_BYTES        65536       /* of a body */
#define KEDGE_JSON_MAX_ANSWER_BYTES (256 << 10) /* of an agent's: a worker's leases fit */

/* [a-z0-9][a-z0-9.-]{0,62} */
bool kedge_json_is_id(const char *id);

/* PUT /v1/nodes/{id}. reader->qpn is 0 when there is none. 0; -EINVAL and *fault: not JSON
 * (duplicate keys, NUL, bad UTF-8, too deep), an unknown field, or a value that is missing, of the
 * wrong type or out of bounds. */
int kedge_json_registration(const char *id, const void *body, size_t bytes,
                            struct kedge_meta_registration *out, struct kedge_reader_peer *reader,
                            struct kedge_fault *fault);
/* POST /v1/nodes/{id}/renew. As above. */
int kedge_json_renewal(const void *body, size_t bytes, uint32_t *incarnation,
                       struct kedge_fault *fault);
/* PUT /v1/nodes/{id}/applied. As above. */
int kedge_json_report(const void *body, size_t bytes, uint32_t *incarnation,
                      struct kedge_meta_report *out, struct kedge_fault *fault);

#endif
