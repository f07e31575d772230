/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, as JSON: in the REST interface and in the store. schema/openapi.yaml
 * describes it. Any thread. */
#ifndef METASERVER_RESOURCES_JSON_H
#define METASERVER_RESOURCES_JSON_H

#include <stddef.h>

#include "base/text.h"
#include "metaserver/directory.h"
#include "metaserver/resources.h"

/* PUT /v1/tenants/{name} and so on: a body without name and revision.
 * 0, and *out is right by itself; -EINVAL and *violation: not JSON (duplicate keys, NUL, bad UTF-8,
 * too deep), an unknown field, or a value that is missing, of the wrong type or out of bounds. */
int meta_json_resource(enum meta_resource_kind kind, const char *name, const void *body,
                       size_t bytes, struct meta_resource *out, struct meta_violation *violation);

/* As above, of the store: a token may have its hash. */
int meta_json_resource_stored(enum meta_resource_kind kind, const char *name, const char *body,
                              struct meta_resource *out, struct meta_violation *violation);

/* Whether it is a JSON object of no more than a body's size. 0; -EINVAL and *violation. */
int meta_json_check(const char *body, struct meta_violation *violation);

/* Appends such a body; what meta_json_resource() makes of it is the same resource. */
void meta_json_write_body(struct base_text *out, const struct meta_resource *resource);
/* Appends what the store keeps of it: a token with its hash. Never to be shown. */
void meta_json_write_stored(struct base_text *out, const struct meta_resource *resource);
/* Appends a resource as it is shown at that time (since 1970): with name and revision, and of a
 * token whether it has expired, without its hash. */
void meta_json_write_resource(struct base_text *out, const struct meta_resource *resource,
                              uint64_t wall_ms);
/* Appends a token that was just made, with its secret. */
void meta_json_write_new_token(struct base_text *out, const struct meta_resource *token,
                               const char *secret);
/* A time since 1970, such as 2026-11-21T16:33:37.554Z. Returns out. */
enum { META_JSON_TIME_BYTES = 48 };
const char *meta_json_time(uint64_t ms, char out[META_JSON_TIME_BYTES]);
/* The member that is a list of that kind: "tenants". Returns out. */
enum { META_JSON_PLURAL_BYTES = 16 };
const char *meta_json_plural(enum meta_resource_kind kind, char out[META_JSON_PLURAL_BYTES]);
/* Appends an entry of the trail. */
void meta_json_write_change(struct base_text *out, const struct meta_resource_change *change);
/* Appends what an agent is told: first what is the same for all, then what is said of its node and
 * the pools that are for it, which may be in another text. Of tokens only the hashes of workers'.
 * Windows that name a node have its GIDs, as far as it is registered in m. */
void meta_json_write_document(struct base_text *out, const struct meta_resources *s,
                              const struct meta_directory *m);
void meta_json_write_document_end(struct base_text *out, const struct meta_resources *s,
                                  const char *node);

#endif
