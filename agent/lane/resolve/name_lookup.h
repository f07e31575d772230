/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: a region is found by its name, with one READ of a metaserver's table of
 * names (lookup.h). The lane thread's. */
#ifndef LANE_NAME_LOOKUP_H
#define LANE_NAME_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "resolve/lookup.h"
#include "schema/session.h"

struct lane;
struct lane_metaserver;
struct session;

/* Whether it has a table of names: older ones have none. */
bool lane_metaserver_has_names(const struct lane_metaserver *m);
/* Looks up what a worker has written: `owner` bytes of a tenant's name (0: its own), then `length`
 * of the region's. -EINPROGRESS: session s gets a reply later; -EINVAL: it is no name; -EOPNOTSUPP:
 * no metaserver has a table of names; else as lane_lookup_start(). */
int lane_name_lookup(struct lane *l, struct session *s, const void *bytes, uint32_t owner,
                     uint32_t length);
/* Where its record is in that metaserver's table. */
struct lookup_span lane_name_span(const struct lane_metaserver *m, struct lookup_name *name);
/* What a copy of that span says: 0 and its record; -EXDEV: the region is in another pool; -ENOENT;
 * -ESTALE: of an earlier life of its owner than this node knows, so that metaserver is behind;
 * -EAGAIN: it was being written. */
int lane_name_look_into(struct lane *l, const struct lane_metaserver *m, struct lookup_name *name,
                        const void *span, struct schema_name_record *out);
/* 0 and what s is told of a record that was found, which s may use from now on; -EDQUOT: the region
 * is another tenant's, and s has as many of those as it may. */
int lane_name_grant(struct lane *l, struct session *s, const struct schema_name_record *r,
                    struct schema_found *out);

#endif
