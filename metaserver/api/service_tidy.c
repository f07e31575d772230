/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be written though nobody asks for it: nodes expire, and are forgotten; and tokens
 * that came back with a shared store that was put back are void, and are deleted again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "metaserver/directory_heard.h"
#include "rest_private.h"

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
    for (uint32_t i = 0; i < t->expire_count && c->s->hearing.shared; i++)
        meta_directory_vote(c->s->directory, &t->expire[i]);
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
        s->store_retry_at = c->now + META_SERVICE_PAUSE_NS;
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

/* ---- tokens that were deleted, and have come back: void as soon as they are read, and deleted
 * again */

struct bury_write {
    struct meta_write base;
    struct meta_service *s;
    struct meta_service_change x;
};

static const struct meta_resource *find_void(const struct meta_service *s)
{
    const struct meta_resource *t = meta_resources_after(s->resources, META_TOKEN, "");
    while (t != NULL && !meta_token_is_bare(&t->token))
        t = meta_resources_after(s->resources, META_TOKEN, t->name);
    return t;
}

/* Another metaserver may have done it. */
static bool begin_burying(struct call *c, struct meta_write *w)
{
    struct bury_write *b = (struct bury_write *)w;
    const struct meta_resource_match match = {.any = true};
    struct meta_resource_change *change = &b->x.change;
    struct meta_violation violation;
    const struct meta_resource *token = find_void(c->s);
    if (token == NULL)
        c->s->hearing.voided = 0;
    if (token == NULL || meta_resources_plan_remove(c->s->resources, META_TOKEN, token->name,
                                                    &match, change, &violation) != 0)
        return false;
    change->time_ms = c->wall_ms;
    snprintf(change->who, sizeof change->who, "kedge-metad");
    return meta_service_write_change(c->s, &b->x, &w->job.txn) == 0;
}

static void end_burying(struct call *c, struct meta_write *w)
{
    if (meta_write_is_stored(c, w))
        meta_service_changed(c->s, &((struct bury_write *)w)->x, &w->job.outcome);
    else
        c->s->hearing.bury_at = c->now + META_SERVICE_PAUSE_NS;
}

static void free_burying(struct meta_write *w)
{
    struct bury_write *b = (struct bury_write *)w;
    struct meta_service *s = b->s;
    s->hearing.burying = false;
    meta_service_change_fini(&b->x);
    free(b);
    meta_service_bury(s, s->at);
}

uint64_t meta_service_bury_due(const struct meta_service *s)
{
    const struct meta_hearing *h = &s->hearing;
    return h->voided == 0 || h->burying || s->writes.stopping ? UINT64_MAX : h->bury_at;
}

void meta_service_bury(struct meta_service *s, uint64_t now)
{
    static const struct meta_write_kind kind = {.what = "deleting a token again",
                                                .begin = begin_burying,
                                                .end = end_burying,
                                                .free = free_burying};
    if (now < meta_service_bury_due(s))
        return;
    struct bury_write *b = calloc(1, sizeof *b);
    if (b == NULL)
        return; /* at another tick */
    b->base.kind = &kind;
    b->s = s;
    s->hearing.burying = true;
    meta_write_add(s, &b->base);
}

/* Of what was read anew, before anybody is let in by it. */
static void void_tokens(struct meta_service *s, const struct meta_known *k,
                        struct meta_resources *fresh)
{
    const uint32_t count = meta_known_void(k, fresh);
    if (count == 0)
        return;
    s->hearing.voided += count;
    meta_world_log(s->world, BASE_LOG_WARN,
                   "tokens that were deleted or changed have come back with the store: they are "
                   "void, and are deleted again",
                   "tokens=%" PRIu32 " known=%" PRIu64, count, k->revision);
}

int meta_service_known(const struct meta_service *s, struct meta_known *out)
{
    const uint64_t last = meta_resources_revision(s->resources);
    if (meta_known_of(s->resources, out) != 0)
        return -ENOMEM;
    snprintf(out->store, sizeof out->store, "%s", s->store_id);
    out->generation = s->hearing.generation;
    out->revision = last > s->hearing.revision ? last : s->hearing.revision;
    return 0;
}

int meta_service_void_returned(struct meta_service *s, struct meta_resources *fresh,
                               uint64_t generation)
{
    struct meta_known k;
    if (generation > s->hearing.generation) /* an operator has replaced it, and has said so */
        return 0;
    const int status = meta_service_known(s, &k);
    if (status == 0)
        void_tokens(s, &k, fresh);
    meta_known_fini(&k);
    return status;
}

void meta_service_remember(struct meta_service *s, const struct meta_known *k)
{
    if (strcmp(k->store, s->store_id) != 0 || s->hearing.generation > k->generation) {
        meta_world_log(s->world, BASE_LOG_WARN,
                       "the store is another one than this metaserver knew, or was restored: what "
                       "was known of tokens is void",
                       "store=%s knew=%s", s->store_id, k->store);
        meta_service_note_put_back(s);
        return;
    }
    void_tokens(s, k, s->resources);
    s->hearing.generation = k->generation;
    if (s->hearing.revision < k->revision)
        s->hearing.revision = k->revision;
    meta_service_raise_revision(s);
}
