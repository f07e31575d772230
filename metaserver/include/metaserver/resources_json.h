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
 * 0, and *out is right by itself; -EINVAL and *fault: not JSON (duplicate keys, NUL, bad UTF-8, too
 * deep), an unknown field, or a value that is missing, of the wrong type or out of bounds. */
int kedge_json_setting(enum kedge_setting_kind kind, const char *name, const void *body,
                       size_t bytes, struct kedge_setting *out, struct kedge_fault *fault);

/* As above, of the store: a token may have its hash. */
int kedge_json_setting_stored(enum kedge_setting_kind kind, const char *name, const char *body,
                              struct kedge_setting *out, struct kedge_fault *fault);

/* Appends such a body; what kedge_json_setting() makes of it is the same setting. */
void kedge_json_write_body(struct kedge_text *out, const struct kedge_setting *setting);
/* Appends what the store keeps of it: a token with its hash. Never to be shown. */
void kedge_json_write_stored(struct kedge_text *out, const struct kedge_setting *setting);
/* Appends a setting as it is shown at that time (since 1970): with name and revision, and of a
 * token whether it has expired, without its hash. */
void kedge_json_write_setting(struct kedge_text *out, const struct kedge_setting *setting,
                              uint64_t wall_ms);
/* Appends a token that was just made, with its secret. */
void kedge_json_write_new_token(struct kedge_text *out, const struct kedge_setting *token,
                                const char *secret);
/* A time since 1970, such as 2026-11-21T16:33:37.554Z. Returns out. */
enum { KEDGE_JSON_TIME_BYTES = 48 };
const char *kedge_json_time(uint64_t ms, char out[KEDGE_JSON_TIME_BYTES]);
/* Appends an entry of the trail. */
void kedge_json_write_change(struct kedge_text *out, const struct kedge_setting_change *change);
/* Appends what an agent is told: first what is the same for all, then what is said of its node and
 * the pools that are for it. Of tokens only the hashes of workers'. Windows that name a node have
 * its GIDs, as far as it is registered in m. */
void kedge_json_write_document(struct kedge_text *out, const struct kedge_settings *s,
                               const struct kedge_meta *m);
void kedge_json_write_document_end(struct kedge_text *out, const struct kedge_settings *s,
                                   const char *node);

#endif
