/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions after the store was put back, or filled from a backup: some may be lost, and
 * former ones be there again. For a while names are given to those alone who had them, so that all
 * who live can say so; then the trail says that this is over, and no start begins it anew. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "rest_private.h"

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

struct settle_write {
    struct meta_write base;
    struct meta_service *s;
    struct meta_service_change x;
};

/* Another metaserver may have said so, or it was put back once more. */
static bool begin_settling(struct call *c, struct meta_write *w)
{
    struct settle_write *r = (struct settle_write *)w;
    struct meta_resource_change *change = &r->x.change;
    const uint64_t revision = find_unsettled(c->s);
    if (revision == 0 || c->now < c->s->hearing.settles_ns)
        return false;
    const uint64_t last = meta_resources_revision(c->s->resources);
    *change = (struct meta_resource_change){
        .revision = last + 1, .kind = META_RESTORE, .time_ms = c->wall_ms, .had = true};
    snprintf(change->name, sizeof change->name, "store");
    snprintf(change->who, sizeof change->who, "kedge-metad");
    change->from.kind = META_RESTORE; /* as of a revision that was raised: the entry is all of it */
    change->from.restore = (struct meta_restore){.revision = revision, .settled = true};
    snprintf(change->from.name, sizeof change->from.name, "store");
    return meta_service_write_change(c->s, &r->x, &w->job.txn) == 0;
}

static void end_settling(struct call *c, struct meta_write *w)
{
    struct settle_write *r = (struct settle_write *)w;
    if (!meta_write_is_stored(c, w)) {
        c->s->hearing.settle_at = c->now + META_SERVICE_PAUSE_NS;
        return;
    }
    r->x.change.revision = w->job.outcome.revision;
    if (r->x.change.revision > meta_resources_revision(c->s->resources) &&
        meta_resources_restore_change(c->s->resources, &r->x.change) == 0)
        meta_service_tell_change(c->s, &r->x.change, false);
}

static void free_settling(struct meta_write *w)
{
    struct settle_write *r = (struct settle_write *)w;
    r->s->hearing.settling = false;
    meta_service_change_fini(&r->x);
    free(r);
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
                                                .end = end_settling,
                                                .free = free_settling};
    if (now < meta_service_settle_due(s))
        return;
    s->hearing.unsettled = find_unsettled(s) != 0;
    struct settle_write *r = s->hearing.unsettled ? calloc(1, sizeof *r) : NULL;
    if (r == NULL)
        return; /* at another tick */
    r->base.kind = &kind;
    r->s = s;
    snprintf(r->base.id, sizeof r->base.id, "store");
    s->hearing.settling = true;
    meta_write_add(s, &r->base);
}
