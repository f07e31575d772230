/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of nodes and pools, as JSON. Any thread. */
#ifndef METASERVER_NODE_JSON_H
#define METASERVER_NODE_JSON_H

#include "base/text.h"
#include "json_read.h"
#include "metaserver/directory.h"
#include "metaserver/resources.h"

/* 0, or -EINVAL and the fault. */
int node_json_decode(const struct json_at *at, json_t *root, struct kedge_node *out);
int pool_json_decode(const struct json_at *at, json_t *root, struct kedge_pool *out);

/* Append members, without braces. */
void node_json_write(struct kedge_text *out, const struct kedge_node *node);
void pool_json_write(struct kedge_text *out, const struct kedge_pool *pool);

#endif
