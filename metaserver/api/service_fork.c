/* SPDX-License-Identifier: Apache-2.0 */
/* A shared store that was put back to what it was before: agents have heard of revisions that it
 * does not have any more, and what comes must not be taken for that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rest_private.h"

#define RAISE_PAUSE (5 * BASE_NS_PER_S) /* between attempts at a store that fails */

/* Whether what comes next could have a revision that agents know, of something else. */
static bool must_raise(const struct meta_service *s)
{
    const uint64_t last = meta_resources_revision(s->resources);
    return last < s->hearing.revision || (s->hearing.forked && last == s->hearing.revision);
}

void meta_service_note_revision(struct meta_service *s, uint64_t revision)
{
    if (revision <= s->hearing.revision)
        return;
    s->hearing.revision = revision;
    s->hearing.forked = false;
}

struct raise_write {
    struct meta_write base;
    struct meta_service *s;
    struct meta_service_change x;
};

/* As a restore from a backup does: what agents have heard of must not be taken for what comes. */
static bool begin_raising(struct call *c, struct meta_write *w)
{
    struct raise_write *r = (struct raise_write *)w;
    const uint64_t last = meta_resources_revision(c->s->resources);
    struct meta_resource_change *change = &r->x.change;
    if (!must_raise(c->s))
        return false;
    *change = (struct meta_resource_change){.revision = c->s->hearing.revision + 1,
                                            .kind = META_RESTORE,
                                            .time_ms = c->wall_ms,
                                            .had = true};
    snprintf(change->name, sizeof change->name, "store");
    snprintf(change->who, sizeof change->who, "kedge-metad");
    change->from.kind = META_RESTORE; /* nothing is kept of it but the entry: it has no "after" */
    change->from.restore.revision = last;
    memcpy(change->from.name, change->name, sizeof change->from.name);
    return meta_service_write_change(c->s, &r->x, &w->job.txn) == 0;
}

static void end_raising(struct call *c, struct meta_write *w)
{
    struct raise_write *r = (struct raise_write *)w;
    if (!meta_write_is_stored(c, w)) {
        c->s->hearing.raise_at = c->now + RAISE_PAUSE;
        return;
    }
    r->x.change.revision = w->job.outcome.revision;
    if (r->x.change.revision > meta_resources_revision(c->s->resources) &&
        meta_resources_restore_change(c->s->resources, &r->x.change) == 0)
        meta_service_tell_change(c->s, &r->x.change, false);
}

static void free_raising(struct meta_write *w)
{
    struct raise_write *r = (struct raise_write *)w;
    r->s->hearing.raising = false;
    meta_service_change_fini(&r->x);
    free(r);
}

static void begin_raise(struct meta_service *s)
{
    static const struct meta_write_kind kind = {.what = "raising the revision",
                                                .begin = begin_raising,
                                                .end = end_raising,
                                                .free = free_raising};
    struct raise_write *r = calloc(1, sizeof *r);
    if (r == NULL)
        return; /* at another tick */
    r->base.kind = &kind;
    r->s = s;
    snprintf(r->base.id, sizeof r->base.id, "store");
    s->hearing.raising = true;
    meta_write_add(s, &r->base);
}

void meta_service_raise_revision(struct meta_service *s)
{
    if (!must_raise(s) || s->hearing.raising)
        return;
    meta_world_log(s->world, BASE_LOG_WARN,
                   "the store was put back to an older state: its next revision will exceed what "
                   "was known",
                   "revision=%" PRIu64 " known=%" PRIu64, meta_resources_revision(s->resources),
                   s->hearing.revision);
    begin_raise(s);
}

uint64_t meta_service_raise_due(const struct meta_service *s)
{
    if (s->resources == NULL || s->hearing.raising || s->writes.stopping || !must_raise(s))
        return UINT64_MAX;
    return s->hearing.raise_at;
}

/* One that the store has refused. */
void meta_service_raise_again(struct meta_service *s, uint64_t now)
{
    if (now >= meta_service_raise_due(s))
        begin_raise(s);
}
