/* SPDX-License-Identifier: Apache-2.0 */
/* What operators set, kept in step with the store. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "metaserver/resources_json.h"
#include "rest_private.h"
#include "metaserver/window_targets.h"

#define BODY_BYTES 8192 /* more than a resource takes */

struct loading {
    struct meta_service *s;
    struct meta_violation violation;
    /* Pools of a store that is older than their numbers. */
    uint32_t numberless;
    bool those;    /* this time them alone */
    uint32_t anew; /* that have another number than the one that their name stands for */
    uint32_t foreign;
    char name[RESOURCE_POOLS_MAX][RESOURCE_POOL_NAME_MAX + 1];
};

/* Like what meta_json_write_stored() has made, or meta_json_write_body() for the trail. */
static int decode_resource(const char *kind, const char *name, const char *body,
                           struct meta_resource *out, struct meta_violation *violation)
{
    enum meta_resource_kind k;
    int status = meta_resource_kind_parse(kind, &k);
    if (status != 0) {
        snprintf(violation->detail, sizeof violation->detail, "unknown kind");
        return status;
    }
    return meta_json_resource_stored(k, name, body, out, violation);
}

/* Its name's number may be that of another, whose name comes before it. */
static int restore_numberless(struct loading *l, struct meta_resource *pool)
{
    pool->pool.numbers.number = meta_pool_free_id(l->s->resources, pool->name);
    int status = meta_resources_restore(l->s->resources, pool, &l->violation);
    if (status == 0 && pool->pool.numbers.number != meta_pool_id(pool->name))
        memcpy(l->name[l->anew++], pool->name, strlen(pool->name) + 1); /* it is valid */
    return status;
}

static int load_setting(void *user, const struct meta_store_resource *stored)
{
    struct loading *l = user;
    struct meta_resource resource;
    int status =
        decode_resource(stored->kind, stored->name, stored->body, &resource, &l->violation);
    if (status != 0)
        return status;
    if (resource.kind >= META_RESOURCE_KINDS) {
        snprintf(l->violation.detail, sizeof l->violation.detail,
                 "leases and restores are no settings");
        return -EINVAL;
    }
    if (resource.kind == META_TOKEN && meta_token_is_bare(&resource.token)) {
        snprintf(l->violation.detail, sizeof l->violation.detail, "token %.63s has no hash",
                 resource.name);
        return -EINVAL;
    }
    resource.revision = stored->revision;
    const bool numberless =
        resource.kind == META_POOL && resource.pool.numbers.number == RESOURCE_UNSAID;
    if (l->those)
        return numberless ? restore_numberless(l, &resource) : 0;
    l->numberless += numberless;
    return numberless ? 0 : meta_resources_restore(l->s->resources, &resource, &l->violation);
}

static int load_side(const struct meta_store_change *stored, const char *body, bool *there,
                     struct meta_resource *out, struct meta_violation *violation)
{
    *there = body != NULL;
    return body == NULL ? 0 : decode_resource(stored->kind, stored->name, body, out, violation);
}

static int load_sides(const struct meta_store_change *stored, struct meta_resource_change *c,
                      struct meta_violation *violation)
{
    int status = load_side(stored, stored->before, &c->had, &c->from, violation);
    if (status == 0)
        status = load_side(stored, stored->after, &c->has, &c->to, violation);
    return status;
}

/* A newer metaserver may write entries of a kind, or with a member, that is not known here. They
 * say what has happened, and nothing follows from that: they are shown as they are. */
static int load_foreign(struct loading *l, const struct meta_store_change *stored,
                        struct meta_resource_change *c, struct meta_violation *violation)
{
    struct meta_foreign_entry entry = {stored->kind, stored->name, stored->before, stored->after};
    const char *const sides[] = {stored->before, stored->after};
    *violation = (struct meta_violation){.detail = ""};
    for (size_t i = 0; i < 2; i++)
        if (sides[i] != NULL && meta_json_check(sides[i], violation) != 0)
            return -EINVAL;
    c->had = c->has = false;
    c->foreign = &entry;
    l->foreign++;
    return meta_resources_restore_change(l->s->resources, c);
}

static int load_change(void *user, const struct meta_store_change *stored)
{
    struct loading *l = user;
    struct meta_resource_change c = {.revision = stored->revision, .time_ms = stored->time_ms};
    struct meta_violation violation = {.detail = ""};
    int status;
    snprintf(c.who, sizeof c.who, "%s", stored->who);
    snprintf(c.name, sizeof c.name, "%s", stored->name);
    if (meta_resource_kind_parse(stored->kind, &c.kind) != 0)
        c.kind = META_UNKNOWN;
    if (c.kind == META_UNKNOWN || load_sides(stored, &c, &violation) != 0)
        status = load_foreign(l, stored, &c, &violation);
    else
        status = meta_resources_restore_change(l->s->resources, &c);
    if (status != 0)
        l->violation = violation;
    if (status != 0 && l->violation.detail[0] == '\0')
        snprintf(l->violation.detail, sizeof l->violation.detail,
                 "the trail has a gap at revision %" PRIu64, stored->revision);
    return status;
}

static int pass_change(void *user, const struct meta_store_change *stored)
{
    (void)user, (void)stored;
    return 0;
}

/* Once those that have numbers are there. */
static int load_numberless(struct loading *l, struct base_errbuf *err)
{
    const struct meta_store_visitor visitor = {
        .resource = load_setting, .change = pass_change, .user = l};
    l->those = true;
    return l->numberless > 0 ? meta_store_load_resources(l->s->store, &visitor, err) : 0;
}

static const char *name_of_number(const struct meta_service *s, uint16_t id)
{
    const struct meta_resource *pool = meta_resources_after(s->resources, META_POOL, "");
    while (pool != NULL && pool->pool.numbers.number != id)
        pool = meta_resources_after(s->resources, META_POOL, pool->name);
    return pool != NULL ? pool->name : "";
}

struct number_write {
    struct meta_write base;
    struct meta_service_change x;
};

/* It has the number already, and nobody can see what was stored: it is the change that is kept. */
static bool begin_numbering(struct call *c, struct meta_write *w)
{
    struct number_write *n = (struct number_write *)w;
    const struct meta_resource *pool = meta_resources_find(c->s->resources, META_POOL, w->id);
    const struct meta_resource_match match = {.any = true};
    struct meta_violation violation;
    struct meta_resource_change *change = &n->x.change;
    if (pool == NULL ||
        meta_resources_plan_put(c->s->resources, pool, &match, change, &violation) != 0)
        return false; /* it was deleted meanwhile */
    change->from.pool.numbers.number = RESOURCE_UNSAID;
    change->revision = change->to.revision = meta_resources_revision(c->s->resources) + 1;
    change->time_ms = c->wall_ms;
    snprintf(change->who, sizeof change->who, "kedge-metad");
    return meta_service_write_change(c->s, &n->x, &w->job.txn) == 0;
}

static void end_numbering(struct call *c, struct meta_write *w)
{
    if (meta_write_is_stored(c, w))
        meta_service_changed(c->s, &((struct number_write *)w)->x, &w->job.outcome);
}

static void free_numbering(struct meta_write *w)
{
    meta_service_change_fini(&((struct number_write *)w)->x);
    free(w);
}

/* Written down, since it is not to change when the pool goes whose number the name stands for. A
 * store that cannot be written is no reason not to start: then it is chosen again next time. */
static int keep_number(struct meta_service *s, const char *name)
{
    static const struct meta_write_kind kind = {.what = "changing a setting",
                                                .begin = begin_numbering,
                                                .end = end_numbering,
                                                .free = free_numbering};
    const struct meta_resource *pool = meta_resources_find(s->resources, META_POOL, name);
    struct number_write *n = calloc(1, sizeof *n);
    if (n == NULL)
        return -ENOMEM;
    meta_world_log(s->world, BASE_LOG_WARN,
                   "a pool of an older store has a number of its own now: the one that its name "
                   "stands for is another pool's",
                   "pool=%s number=%u instead_of=%u which_has=%s", name,
                   (unsigned)pool->pool.numbers.number, (unsigned)meta_pool_id(name),
                   name_of_number(s, meta_pool_id(name)));
    n->base.kind = &kind;
    snprintf(n->base.id, sizeof n->base.id, "%s", name);
    meta_write_add(s, &n->base);
    return 0;
}

int meta_service_load_resources(struct meta_service *s, struct base_errbuf *err)
{
    struct loading l = {.s = s};
    const struct meta_store_visitor visitor = {
        .resource = load_setting, .change = load_change, .user = &l};
    err->text[0] = '\0';
    int status = meta_store_load_resources(s->store, &visitor, err);
    if (status == 0)
        status = load_numberless(&l, err);
    uint64_t last = meta_resources_revision(s->resources);
    if (status == 0 && last > 0 && meta_resources_change_after(s->resources, last - 1) == NULL) {
        snprintf(l.violation.detail, sizeof l.violation.detail, "the trail lacks its last entry");
        status = -EINVAL;
    }
    if (status == 0 && l.foreign > 0)
        meta_world_log(s->world, BASE_LOG_WARN,
                       "the trail has entries of a newer kedge-metad, which are shown as they are",
                       "entries=%" PRIu32, l.foreign);
    for (uint32_t i = 0; i < l.anew && status == 0; i++)
        status = keep_number(s, l.name[i]);
    if (status == 0 || err->text[0] != '\0')
        return status;
    return base_err(
        err, status,
        "what the store holds of tenants, windows and tokens does not fit (%.64s: %.150s): "
        "restore it from a backup",
        l.violation.field, l.violation.detail);
}

static const char *body_of(struct base_text *text, bool there, const struct meta_resource *resource)
{
    if (!there)
        return NULL;
    meta_json_write_body(text, resource);
    return base_text_str(text);
}

int meta_service_write_change(struct meta_service *s, struct meta_service_change *x,
                              struct meta_store_txn *txn)
{
    const struct meta_resource_change *change = &x->change;
    meta_service_change_fini(x); /* of a former turn */
    base_text_init(&x->before, BODY_BYTES);
    base_text_init(&x->after, BODY_BYTES);
    base_text_init(&x->resource, BODY_BYTES);
    if (change->has)
        meta_json_write_stored(&x->resource, &change->to);
    x->stored = (struct meta_store_change){
        .revision = change->revision,
        .time_ms = change->time_ms,
        .who = change->who,
        .kind = meta_resource_kind_name(change->kind),
        .name = change->name,
        .before = body_of(&x->before, change->had, &change->from),
        .after = body_of(&x->after, change->has, &change->to),
        .resource = change->has ? base_text_str(&x->resource) : NULL,
        .forget = meta_resources_forgets(s->resources),
    };
    *txn = (struct meta_store_txn){
        .compare = true, .last = meta_resources_revision(s->resources), .change = &x->stored};
    return x->before.error != 0  ? x->before.error
           : x->after.error != 0 ? x->after.error
                                 : x->resource.error;
}

void meta_service_change_fini(struct meta_service_change *x)
{
    base_text_fini(&x->before);
    base_text_fini(&x->after);
    base_text_fini(&x->resource);
}

bool meta_service_refresh_window_targets(struct meta_service *s)
{
    const uint64_t before = s->window_targets;
    s->window_targets = meta_window_targets_hash(s->resources, s->directory);
    s->targets_as_of = meta_directory_changes(s->directory);
    return s->window_targets != before;
}

void meta_service_tell_change(struct meta_service *s, const struct meta_resource_change *change,
                              bool elsewhere)
{
    meta_world_log(
        s->world, BASE_LOG_INFO, "setting changed",
        "kind=%s name=%s revision=%" PRIu64 " what=%s who=\"%s\"%s",
        change->foreign != NULL ? change->foreign->kind : meta_resource_kind_name(change->kind),
        change->name, change->revision,
        change->kind == META_LEASE
            ? (change->from.revocation.failed[0] == '\0' ? "revoking" : "not revoked")
        : change->kind == META_RESTORE ? (change->from.restore.settled ? "settled" : "put back")
        : !change->had                 ? "created"
        : change->has                  ? "replaced"
                                       : "deleted",
        change->who, elsewhere ? " by=\"another metaserver\"" : "");
    meta_service_note_revision(s, change->revision);
    (void)meta_service_refresh_window_targets(s);
    meta_watches_wake(s);
}

void meta_service_changed(struct meta_service *s, struct meta_service_change *x,
                          const struct meta_store_outcome *out)
{
    struct meta_resource_change *change = &x->change;
    change->revision = out->revision;
    if (change->has)
        change->to.revision = out->revision;
    if (change->revision != meta_resources_revision(s->resources) + 1) {
        /* It is known by another way, or the store was put back since: it says itself what it has.
         */
        s->hearing.wants_snapshot |= change->revision > meta_resources_revision(s->resources);
        return;
    }
    meta_resources_apply(s->resources, change);
    s->count.changes++;
    meta_service_tell_change(s, change, false);
}

/* ---- what other metaservers change */

/* Whether it can follow what is known here; `to` becomes what is to be kept. */
static int check_heard(struct meta_service *s, struct meta_resource_change *c,
                       struct meta_violation *violation)
{
    const struct meta_resource_match match = {.any = c->had, .absent = !c->had};
    struct meta_resource_change planned;
    if (c->kind >= META_RESOURCE_KINDS)
        return 0;
    int status = c->has ? meta_resources_plan_put(s->resources, &c->to, &match, &planned, violation)
                        : meta_resources_plan_remove(s->resources, c->kind, c->name, &match,
                                                     &planned, violation);
    if (status == 0 && c->has)
        c->to = planned.to;
    return status;
}

/* Into what can be applied: with what a token's trail leaves out. */
static int decode_heard(struct meta_service *s, const struct meta_store_change *stored,
                        struct meta_resource_change *c, struct meta_violation *violation)
{
    int status = load_sides(stored, c, violation);
    if (status == 0 && c->has && c->kind < META_RESOURCE_KINDS && stored->resource != NULL)
        status = decode_resource(stored->kind, stored->name, stored->resource, &c->to, violation);
    if (status == 0)
        status = check_heard(s, c, violation);
    if (c->has)
        c->to.revision = stored->revision;
    return status;
}

/* One that stands for itself, and from which nothing follows here. */
static int keep_entry(struct meta_service *s, const struct meta_store_change *stored,
                      struct meta_violation *violation)
{
    struct loading l = {.s = s};
    const int status = load_change(&l, stored);
    *violation = l.violation;
    return status;
}

int meta_service_hear_change(struct meta_service *s, const struct meta_store_change *stored,
                             struct base_errbuf *err)
{
    struct meta_resource_change c = {.revision = stored->revision, .time_ms = stored->time_ms};
    struct meta_violation violation = {.detail = ""};
    const uint64_t last = meta_resources_revision(s->resources);
    int status = 0;
    if (stored->revision <= last)
        return 0;
    snprintf(c.who, sizeof c.who, "%s", stored->who);
    snprintf(c.name, sizeof c.name, "%s", stored->name);
    const bool known = meta_resource_kind_parse(stored->kind, &c.kind) == 0;
    if (!known || c.kind == META_RESTORE)
        status = keep_entry(s, stored, &violation);
    else if (stored->revision != last + 1) {
        status = -EINVAL;
        snprintf(violation.detail, sizeof violation.detail, "revision %" PRIu64 " is missing",
                 last + 1);
    } else
        status = decode_heard(s, stored, &c, &violation);
    if (status != 0)
        return base_err(err, -EINVAL,
                        "another metaserver's change %" PRIu64 " of %.31s %.63s does not fit to "
                        "what is known here (%.63s %.100s): upgrade or restart this one",
                        stored->revision, stored->kind, stored->name, violation.field,
                        violation.detail);
    if (known && c.kind != META_RESTORE) {
        meta_resources_apply(s->resources, &c);
        meta_service_tell_change(s, &c, true);
    } else {
        meta_service_note_revision(s, stored->revision);
        meta_watches_wake(s);
    }
    return 0;
}

int meta_service_reload_resources(struct meta_service *s, struct meta_store *store,
                                  struct base_errbuf *err)
{
    struct meta_resources *was = s->resources;
    struct meta_store *own = s->store;
    struct meta_resources *fresh = meta_resources_new(meta_resources_trail_size(was));
    if (fresh == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    s->resources = fresh;
    s->store = store;
    int status = meta_service_load_resources(s, err);
    s->store = own;
    s->resources = was;
    if (status == 0 && s->hearing.shared &&
        meta_service_void_returned(s, fresh, store->generation) != 0)
        status = base_err(err, -ENOMEM, "out of memory");
    if (status == 0 && s->hearing.generation < store->generation) /* less is an old snapshot */
        s->hearing.generation = store->generation;
    const enum meta_resources_relation relation =
        status == 0 ? meta_resources_compare(was, fresh) : META_RESOURCES_SAME;
    if (relation == META_RESOURCES_SAME) {
        meta_resources_free(fresh);
        return status;
    }
    s->hearing.forked |= relation == META_RESOURCES_FORKED;
    if (s->hearing.revision < meta_resources_revision(was))
        s->hearing.revision = meta_resources_revision(was);
    s->resources = fresh;
    meta_resources_free(was);
    meta_world_log(s->world, BASE_LOG_INFO, "settings were read anew", "revision=%" PRIu64,
                   meta_resources_revision(fresh));
    (void)meta_service_refresh_window_targets(s);
    meta_watches_wake(s);
    return 0;
}
