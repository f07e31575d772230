/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be written because time has passed, and nobody asks for: nodes expire, and are
 * forgotten. */
#include <stdlib.h>

#include "base/clock.h"
#include "metaserver/directory_heard.h"
#include "rest_private.h"

#define STORE_PAUSE (5 * BASE_NS_PER_S) /* between our own attempts at a store that fails */

struct tidy_write {
    struct meta_write base;
    struct meta_service *s;
    uint32_t expire_count, remove_count;
    struct meta_store_life expire[META_STORE_EXPIRE_MAX], remove[1];
};

/* Of what is there now: since it was asked for, one may have come back. */
static bool begin_tidying(struct call *c, struct meta_write *w)
{
    struct tidy_write *t = (struct tidy_write *)w;
    t->expire_count = meta_directory_lapsed(c->s->directory, t->expire, META_STORE_EXPIRE_MAX);
    t->remove_count = meta_directory_forgettable(c->s->directory, c->now, t->remove, 1);
    w->job.txn = (struct meta_store_txn){.expire = t->expire,
                                         .expire_count = t->expire_count,
                                         .remove = t->remove,
                                         .remove_count = t->remove_count};
    return t->expire_count + t->remove_count > 0;
}

/* Those that the store did not deal with are asked for again at the next tick. */
static void settle_expired(struct meta_service *s, const struct tidy_write *t, uint64_t now)
{
    const struct meta_store_outcome *out = &t->base.job.outcome;
    for (uint32_t i = 0; i < out->expire_count; i++)
        if (out->heard_elsewhere[i / 64] >> i % 64 & 1)
            meta_directory_heard_elsewhere(s->directory, &t->expire[i], now);
        else
            meta_directory_expire(s->directory, &t->expire[i], now);
}

/* What nobody asked for is said once, and tried again later. */
static void end_tidying(struct call *c, struct meta_write *w)
{
    const struct tidy_write *t = (const struct tidy_write *)w;
    struct meta_service *s = c->s;
    if (w->job.outcome.status != 0) {
        s->count.store_errors++;
        s->store_retry_at = c->now + STORE_PAUSE;
        meta_world_log(s->world, BASE_LOG_WARN, "the store failed", "while=\"%s\" error=\"%s\"",
                       t->expire_count > 0 ? "expiring" : "forgetting", w->job.outcome.err.text);
        return;
    }
    settle_expired(s, t, c->now);
    for (uint32_t i = 0; i < t->remove_count; i++)
        meta_directory_forget(s->directory, &t->remove[i]);
    s->names_stale = true;
}

static void free_tidying(struct meta_write *w)
{
    ((struct tidy_write *)w)->s->writes.tidying = false;
    free(w);
}

/* Who shares a store says that a node is silent when it has listened for as long as a lease, as one
 * that lives there: agents may have come to the others alone until then, and after an outage of the
 * store nobody lives there at first. */
static uint64_t has_say_from(const struct meta_service *s)
{
    if (!s->hearing.shared)
        return 0;
    return s->hearing.member_ns == 0 ? UINT64_MAX : s->hearing.member_ns + s->node_lease_ns;
}

uint64_t meta_service_tidy_due(const struct meta_service *s)
{
    struct meta_store_life any;
    if (s->writes.tidying || s->writes.stopping)
        return UINT64_MAX;
    uint64_t due = meta_directory_lapsed(s->directory, &any, 1) > 0
                       ? 0
                       : meta_directory_next_forgettable(s->directory);
    const uint64_t heard = has_say_from(s);
    due = due > heard ? due : heard;
    return due > s->store_retry_at ? due : s->store_retry_at;
}

void meta_service_tidy(struct meta_service *s, uint64_t now)
{
    static const struct meta_write_kind kind = {
        .what = "tidying", .begin = begin_tidying, .end = end_tidying, .free = free_tidying};
    if (now < meta_service_tidy_due(s))
        return;
    struct tidy_write *t = calloc(1, sizeof *t);
    if (t == NULL)
        return; /* at another tick */
    t->base.kind = &kind;
    t->s = s;
    s->writes.tidying = true;
    meta_write_add(s, &t->base);
}
