/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of nodes and pools, as JSON. Any thread. */
#ifndef METASERVER_NODE_JSON_H
#define METASERVER_NODE_JSON_H

#include "base/text.h"
#include "metaserver/json_read.h"
#include "metaserver/resources.h"

/* 0, or -EINVAL and the violation. */
int meta_node_json_decode(const struct json_at *at, json_t *root, struct meta_node_spec *out);
/* stored: it may lack `nodes`, which requests have to say. */
int meta_pool_json_decode(const struct json_at *at, json_t *root, bool stored,
                          struct meta_pool *out);

/* Append members, without braces. */
void meta_node_json_write(struct base_text *out, const struct meta_node_spec *node);
void meta_pool_json_write(struct base_text *out, const struct meta_pool *pool);

#endif
