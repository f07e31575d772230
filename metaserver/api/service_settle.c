/* SPDX-License-Identifier: Apache-2.0 */
/* What a store that was put back, or filled from a backup, asks for, and what the trail says of it.
 *
 * Agents have heard of revisions that the store does not have any more: what comes must not be
 * taken for that, so it has greater ones. Names of regions may be lost, and former ones be there
 * again: for a while names are given to those alone who had them, so that all who live can say so;
 * then the trail says that this is over, and no start begins it anew. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "rest_private.h"

/* ---- an entry of the trail, of the store */

struct restore_write {
    struct meta_write base;
    bool *is_written;   /* of the service: whether there is one of this kind */
    uint64_t *again_at; /* of the service: when another one is due, if this one fails */
    struct meta_service_change x;
};

/* Nothing is kept of it but the entry: it has no "after". */
static bool write_restore(struct call *c, struct meta_write *w, uint64_t revision,
                          struct meta_restore restore)
{
    struct restore_write *r = (struct restore_write *)w;
    struct meta_resource_change *change = &r->x.change;
    *change = (struct meta_resource_change){
        .revision = revision, .kind = META_RESTORE, .time_ms = c->wall_ms, .had = true};
    snprintf(change->name, sizeof change->name, "store");
    snprintf(change->who, sizeof change->who, "kedge-metad");
    change->from.kind = META_RESTORE;
    change->from.restore = restore;
    snprintf(change->from.name, sizeof change->from.name, "store");
    return meta_service_write_change(c->s, &r->x, &w->job.txn) == 0;
}

static void end_restore(struct call *c, struct meta_write *w)
{
    struct restore_write *r = (struct restore_write *)w;
    if (!meta_write_is_stored(c, w)) {
        *r->again_at = c->now + META_SERVICE_PAUSE_NS;
        return;
    }
    r->x.change.revision = w->job.outcome.revision;
    if (r->x.change.revision > meta_resources_revision(c->s->resources) &&
        meta_resources_restore_change(c->s->resources, &r->x.change) == 0)
        meta_service_tell_change(c->s, &r->x.change, false);
}

static void free_restore(struct meta_write *w)
{
    struct restore_write *r = (struct restore_write *)w;
    *r->is_written = false;
    meta_service_change_fini(&r->x);
    free(r);
}

/* Without memory: at another tick. */
static void add_restore(struct meta_service *s, const struct meta_write_kind *kind,
                        bool *is_written, uint64_t *again_at)
{
    struct restore_write *r = calloc(1, sizeof *r);
    if (r == NULL)
        return;
    r->base.kind = kind;
    r->is_written = is_written;
    r->again_at = again_at;
    snprintf(r->base.id, sizeof r->base.id, "store");
    *is_written = true;
    meta_write_add(s, &r->base);
}

/* ---- revisions that agents have heard of, and that the store does not have any more */

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

/* As a restore from a backup does. */
static bool begin_raising(struct call *c, struct meta_write *w)
{
    const uint64_t last = meta_resources_revision(c->s->resources);
    return must_raise(c->s) &&
           write_restore(c, w, c->s->hearing.revision + 1, (struct meta_restore){.revision = last});
}

static void begin_raise(struct meta_service *s)
{
    static const struct meta_write_kind kind = {.what = "raising the revision",
                                                .begin = begin_raising,
                                                .end = end_restore,
                                                .free = free_restore};
    add_restore(s, &kind, &s->hearing.raising, &s->hearing.raise_at);
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
    meta_service_note_put_back(s);
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

/* ---- names of regions: who had them is heard first */

/* Longer than agents take to hear of it, by a renewal or by their streams: one that has lost a
 * stream notices after 15 s, and tries again at least every 10 s. */
#define SETTLE_MAX_NS (60 * BASE_NS_PER_S)

/* Whether agents renew their leases too seldom to hear of it in time, unless they are asked to. */
static bool must_ask(const struct meta_service *s)
{
    return s->node_lease_ns > SETTLE_MAX_NS;
}

void meta_service_note_put_back(struct meta_service *s)
{
    const uint64_t settles_ns = s->at + (must_ask(s) ? SETTLE_MAX_NS : s->node_lease_ns);
    if (s->names == NULL || s->hearing.settles_ns == settles_ns) /* it was noted at this moment */
        return;
    s->hearing.names_anew++;
    s->hearing.settles_ns = settles_ns;
    s->hearing.unsettled = s->resources != NULL;
    if (must_ask(s)) {
        s->hearing.ask_until_ns = settles_ns;
        meta_watches_ask_renewals(s);
    }
}

/* The revision of the last one that nothing says to be over; 0: there is none. */
static uint64_t find_unsettled(const struct meta_service *s)
{
    uint64_t revision = 0;
    for (const struct meta_resource_change *c = meta_resources_change_after(s->resources, 0);
         c != NULL; c = meta_resources_change_after(s->resources, c->revision))
        if (c->kind == META_RESTORE)
            revision = c->had && c->from.restore.settled ? 0 : c->revision;
    return revision;
}

void meta_service_note_loaded(struct meta_service *s)
{
    if (find_unsettled(s) != 0)
        meta_service_note_put_back(s);
}

/* ---- it is over */

/* Another metaserver may have said so, or it was put back once more. */
static bool begin_settling(struct call *c, struct meta_write *w)
{
    const uint64_t revision = find_unsettled(c->s);
    return revision != 0 && c->now >= c->s->hearing.settles_ns &&
           write_restore(c, w, meta_resources_revision(c->s->resources) + 1,
                         (struct meta_restore){.revision = revision, .settled = true});
}

uint64_t meta_service_settle_due(const struct meta_service *s)
{
    const struct meta_hearing *h = &s->hearing;
    if (!h->unsettled || h->settling || s->writes.stopping)
        return UINT64_MAX;
    return h->settles_ns > h->settle_at ? h->settles_ns : h->settle_at;
}

void meta_service_settle(struct meta_service *s, uint64_t now)
{
    static const struct meta_write_kind kind = {.what = "saying that names are settled",
                                                .begin = begin_settling,
                                                .end = end_restore,
                                                .free = free_restore};
    if (now < meta_service_settle_due(s))
        return;
    s->hearing.unsettled = find_unsettled(s) != 0;
    if (s->hearing.unsettled)
        add_restore(s, &kind, &s->hearing.settling, &s->hearing.settle_at);
}
