/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as JSON: resources_json.c's part about them. Any thread. */
#ifndef METASERVER_TOKEN_JSON_H
#define METASERVER_TOKEN_JSON_H

#include "base/text.h"
#include "metaserver/json_read.h"
#include "metaserver/resources.h"

/* Of a token of that name. A client may say its secret, of which the hash is kept; stored: the hash
 * itself may be there instead, as only the store has it. 0, or as meta_json_bad(). */
int meta_token_json_decode(const struct json_at *at, json_t *root, const char *name, bool stored,
                           struct meta_token *t);
/* Appends the members as the store has them: with the hash. */
void meta_token_json_write_stored(struct base_text *out, const struct meta_token *t);
/* Appends the member of a tenant's that says its workers' tokens, as agents are to know them;
 * nothing if it has none. all: meta_resources_worker_tokens(). */
void meta_token_json_write_for_agents(struct base_text *out,
                                      const struct meta_resource *const all[], uint32_t count,
                                      const char *tenant);

#endif
