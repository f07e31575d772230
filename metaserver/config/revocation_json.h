/* SPDX-License-Identifier: Apache-2.0 */
/* Revocations of leases, which the trail alone has, as JSON: resources_json.c's part about them.
 * Any thread. */
#ifndef METASERVER_REVOCATION_JSON_H
#define METASERVER_REVOCATION_JSON_H

#include "base/text.h"
#include "metaserver/json_read.h"
#include "metaserver/resources.h"

/* 0, or -EINVAL and the violation. */
int meta_revocation_json_decode(const struct json_at *at, json_t *root,
                                struct meta_revocation *out);
/* Appends members, without braces. */
void meta_revocation_json_write(struct base_text *out, const struct meta_revocation *r);

#endif
