/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of whom nodes reach. One thread. */
#ifndef METASERVER_REACH_JSON_H
#define METASERVER_REACH_JSON_H

#include <stddef.h>

#include "base/text.h"
#include "metaserver/directory_reach.h"
#include "metaserver/violation.h"

/* PUT /v1/nodes/{id}/reach. pool: of the endpoints that the agent tries. 0; -EINVAL and *violation.
 */
int meta_reach_json_decode(const void *body, size_t bytes, uint32_t *incarnation, uint16_t *pool,
                           struct meta_reach_claims *out, struct meta_violation *violation);
/* The answer to it: whom to try, and that others do not reach it; NULL: they do, or nobody knows.
 */
void meta_reach_json_answer(struct base_text *out, const struct meta_reach_peer *peers,
                            uint32_t count, const struct meta_reach_unreached *unreached);
/* A member of a node's object; nothing where nothing is known. */
void meta_reach_json_write(struct base_text *out, const struct meta_directory *m,
                           const struct meta_reach_view *view);

#endif
