/* SPDX-License-Identifier: Apache-2.0 */
/* Names of regions kept in step with the store and with the nodes that own them: shown while their
 * owners live, and taken back when these are gone for good. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "rest_private.h"

/* ---- whose they are */

enum meta_name_life meta_service_name_life(void *service, const struct meta_store_name *name)
{
    const struct meta_service *s = service;
    struct meta_node_view view;
    if (meta_directory_show(s->directory, name->node, s->at, &view) != 0 ||
        view.incarnation > name->incarnation || view.state == META_NODE_EXPIRED)
        return META_NAME_DEAD;
    return view.state != META_NODE_LAPSED ? META_NAME_LIVE : META_NAME_AWAY;
}

void meta_service_put_name(struct meta_service *s, const struct meta_store_name *name, uint64_t now)
{
    const bool lives = meta_service_name_life(s, name) == META_NAME_LIVE;
    struct base_errbuf err;
    uint32_t suppressed;
    if (s->names == NULL)
        return;
    s->names_stale |= !lives;
    const int status = meta_names_put(s->names, name, lives);
    if (status == 0)
        return;
    base_err(&err, status,
             status == -ENOSPC ? "there is no room for a name of a region of tenant %s: raise "
                                 "max_names to what the other metaservers have"
                               : "a name of a region of tenant %s is not shown: the table has no "
                                 "room just there, or it grants nothing",
             name->tenant);
    if (status == -ENOSPC) {
        s->hearing.lacks_names = true;
        meta_service_lacks(s, &err, now);
    } else if (base_log_allow(&s->store_log, now, 10 * BASE_NS_PER_S, 10, &suppressed)) {
        meta_world_log(s->world, BASE_LOG_WARN, err.text, "suppressed=%u", suppressed);
    }
}

/* ---- what is stored */

struct loading {
    struct meta_service *s;
    uint64_t now;
};

static int load_name(void *user, const struct meta_store_name *name)
{
    const struct loading *l = user;
    meta_service_put_name(l->s, name, l->now);
    return 0;
}

static int pass_resource(void *user, const struct meta_store_resource *resource)
{
    (void)user, (void)resource;
    return 0;
}

static int pass_change(void *user, const struct meta_store_change *change)
{
    (void)user, (void)change;
    return 0;
}

int meta_service_load_names(struct meta_service *s, struct meta_store *store, uint64_t now,
                            struct base_errbuf *err)
{
    struct loading l = {s, now};
    const struct meta_store_visitor visitor = {
        .resource = pass_resource, .change = pass_change, .name = load_name, .user = &l};
    if (s->names == NULL)
        return 0;
    meta_names_begin_load(s->names);
    const int status = meta_store_load_resources(store, &visitor, err);
    if (status == 0)
        meta_names_end_load(s->names);
    return status;
}

void meta_service_hear_names(struct meta_service *s, const struct meta_store_heard *heard,
                             uint64_t now)
{
    for (uint32_t i = 0; s->names != NULL && i < heard->withdrawn_count; i++)
        meta_names_remove(s->names, &heard->withdrawn[i]);
    for (uint32_t i = 0; s->names != NULL && i < heard->published_count; i++)
        meta_service_put_name(s, &heard->published[i], now);
}

/* ---- names of who is gone */

struct names_write {
    struct meta_write base;
    struct meta_service *s;
    uint32_t count;
    struct meta_store_name dead[META_STORE_NAMES_MAX];
};

/* Of those that are dead now: since it was asked for, others may have taken them over. */
static bool begin_withdrawing(struct call *c, struct meta_write *w)
{
    struct names_write *n = (struct names_write *)w;
    if (!meta_service_knows_nodes(c->s, c->now)) {
        c->s->names_dead = true; /* perhaps */
        return false;
    }
    n->count = meta_names_sweep(c->s->names, meta_service_name_life, c->s, n->dead);
    w->job.txn = (struct meta_store_txn){.withdraw = n->dead, .withdraw_count = n->count};
    return n->count > 0;
}

static void end_withdrawing(struct call *c, struct meta_write *w)
{
    const struct names_write *n = (const struct names_write *)w;
    struct meta_service *s = c->s;
    if (w->job.outcome.status != 0) {
        s->names_dead = true;
        s->count.store_errors++;
        s->store_retry_at = c->now + META_SERVICE_PAUSE_NS;
        meta_world_log(s->world, BASE_LOG_WARN, "the store failed", "while=\"%s\" error=\"%s\"",
                       w->kind->what, w->job.outcome.err.text);
        return;
    }
    for (uint32_t i = 0; i < n->count; i++)
        meta_names_remove(s->names, &n->dead[i]);
    s->names_stale = true; /* there may be more */
}

static void free_withdrawing(struct meta_write *w)
{
    ((struct names_write *)w)->s->writes.withdrawing = false;
    free(w);
}

/* What a metaserver that does not know all nodes takes for dead may live. */
static bool may_withdraw(const struct meta_service *s)
{
    return !s->writes.withdrawing && meta_service_knows_nodes(s, s->at);
}

uint64_t meta_service_names_due(const struct meta_service *s)
{
    if (s->names == NULL || s->writes.stopping)
        return UINT64_MAX;
    if (s->names_stale)
        return 0;
    return s->names_dead && may_withdraw(s) ? s->store_retry_at : UINT64_MAX;
}

static void withdraw_dead(struct meta_service *s)
{
    static const struct meta_write_kind kind = {.what = "taking back names",
                                                .begin = begin_withdrawing,
                                                .end = end_withdrawing,
                                                .free = free_withdrawing};
    struct names_write *n = calloc(1, sizeof *n);
    if (n == NULL)
        return; /* at another tick */
    n->base.kind = &kind;
    n->s = s;
    s->names_dead = false;
    s->writes.withdrawing = true;
    meta_write_add(s, &n->base);
}

void meta_service_names_tick(struct meta_service *s, uint64_t now)
{
    struct meta_store_name dead[META_STORE_NAMES_MAX];
    if (now < meta_service_names_due(s))
        return;
    if (s->names_stale)
        s->names_dead = meta_names_sweep(s->names, meta_service_name_life, s, dead) > 0;
    s->names_stale = false;
    if (s->names_dead && may_withdraw(s) && now >= s->store_retry_at)
        withdraw_dead(s);
}
