/* SPDX-License-Identifier: Apache-2.0 */
/* What operators changed, when nodes came and went, and what became of certificates, in one order:
 * that of revisions, and of one revision first the change, then what became of nodes until the
 * next. One thread. */
#ifndef METASERVER_TRAIL_H
#define METASERVER_TRAIL_H

#include "base/text.h"
#include "metaserver/liveness.h"
#include "metaserver/resources.h"

/* What of the trail is wanted. Events of nodes and of certificates are kinds beside enum
 * meta_resource_kind's. */
enum { META_WATCH_LIVENESS = META_UNKNOWN + 1, META_WATCH_CERTIFICATE };
struct meta_watch_filter {
    uint32_t kinds;                      /* a bit each; 0: all */
    char name[META_RESOURCE_NAME_BYTES]; /* "": whatever */
};

/* After which entry one goes on. */
struct trail_place {
    uint64_t revision, position;
};

/* One entry: the other one is NULL. Borrowed until the next change or event. */
struct trail_entry {
    const struct meta_resource_change *change;
    const struct meta_liveness_event *event;
};

/* "tenant,liveness": 0, or -EINVAL. */
int meta_trail_parse_kinds(const char *text, uint32_t *kinds);

/* Where the trail ends now. liveness may be NULL. */
struct trail_place meta_trail_end(const struct meta_resources *s, const struct meta_liveness *l);
/* Whether all that a filter wants after a place is still there. */
bool meta_trail_has(const struct meta_resources *s, const struct meta_liveness *l,
                    const struct meta_watch_filter *filter, const struct trail_place *place);
/* Goes on to the next entry that is wanted, past *looks others at most, which are counted down
 * (NULL: past as many as there are). False: there is none, and the place is the end; or *looks is
 * 0, and the place is how far it has come. */
bool meta_trail_next(const struct meta_resources *s, const struct meta_liveness *l,
                     const struct meta_watch_filter *filter, uint32_t *looks,
                     struct trail_place *place, struct trail_entry *out);

/* "0123456789abcdef-17": which life of a metaserver, and where in it. */
enum { TRAIL_POSITION_BYTES = 40 };
void meta_trail_write_position(uint64_t generation, uint64_t position,
                               char out[TRAIL_POSITION_BYTES]);
/* 0; -EINVAL: it is no such text. */
int meta_trail_parse_position(const char *text, uint64_t *generation, uint64_t *position);

/* Appends an entry as JSON. */
void meta_trail_write(struct base_text *out, const struct meta_liveness *l,
                      const struct trail_entry *entry);

#endif
