/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_hub.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"

enum { NODES = 256 };

/* Who has said that a node is silent. */
struct vote {
    struct meta_store_life life;
    uint32_t members; /* a bit each */
};

struct member {
    struct meta_store base; /* first */
    struct meta_store_hub *hub;
    char name[META_STORE_ID_BYTES];
    bool there, lapsed, has_snapshot, has_members;
    bool put_back;  /* the next snapshot says so */
    uint64_t next;  /* of the log, that it hears */
    uint64_t wrote; /* the last place that it has written, as far as it knows */
    bool stale;     /* the store was put back to before that, and it has not heard what is there */
    struct base_prng prng;
    uint32_t lost_percent;
};

struct meta_store_hub {
    struct meta_store *content;
    struct member member[META_STORE_MEMBERS_MAX];
    struct meta_store_heard **log; /* the i-th has the place i + 1 */
    uint64_t count;
    struct vote vote[NODES];
    uint32_t votes;
    uint64_t generation;
};

/* ---- what is there */

struct finding {
    const char *id;
    const struct meta_store_node *put; /* or whose endpoints somebody has */
    struct meta_store_node found;
    bool there;
    char owner[META_STORE_ID_BYTES]; /* of one of these endpoints; "": nobody */
};

static bool shares_endpoint(const struct meta_store_node *a, const struct meta_store_node *b)
{
    for (uint32_t i = 0; i < a->endpoint_count; i++)
        for (uint32_t k = 0; k < b->endpoint_count; k++)
            if (a->endpoint[i].pool == b->endpoint[k].pool &&
                memcmp(a->endpoint[i].gid, b->endpoint[k].gid, 16) == 0)
                return true;
    return false;
}

static int look_at_node(void *user, const struct meta_store_node *node)
{
    struct finding *f = user;
    if (strcmp(node->id, f->id) == 0) {
        f->found = *node;
        f->there = true;
    } else if (f->put != NULL && !node->expired && shares_endpoint(node, f->put))
        memcpy(f->owner, node->id, sizeof f->owner);
    return 0;
}

static struct finding find_node(struct meta_store_hub *hub, const char *id,
                                const struct meta_store_node *put)
{
    struct finding f = {.id = id, .put = put};
    struct base_errbuf err;
    const int status = meta_store_load(hub->content, look_at_node, &f, &err);
    BASE_ASSERT(status == 0);
    return f;
}

/* ---- votes */

static struct vote *find_vote(struct meta_store_hub *hub, const char *id)
{
    for (uint32_t i = 0; i < hub->votes; i++)
        if (strcmp(hub->vote[i].life.id, id) == 0)
            return &hub->vote[i];
    return NULL;
}

static void drop_vote(struct meta_store_hub *hub, const char *id)
{
    struct vote *v = find_vote(hub, id);
    if (v != NULL)
        *v = hub->vote[--hub->votes];
}

static bool counts_as_living(const struct member *m)
{
    return m->there && !m->lapsed;
}

static uint32_t living_mask(const struct meta_store_hub *hub)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++)
        mask |= (uint32_t)counts_as_living(&hub->member[i]) << i;
    return mask;
}

/* Whether all have said so by now. */
static bool is_agreed(struct member *m, const struct meta_store_life *life, uint32_t incarnation)
{
    struct meta_store_hub *hub = m->hub;
    struct vote *v = find_vote(hub, life->id);
    if (v == NULL) {
        BASE_ASSERT(hub->votes < NODES);
        v = &hub->vote[hub->votes++];
        *v = (struct vote){.life = *life};
    }
    if (v->life.incarnation != incarnation)
        v->members = 0;
    v->life.incarnation = incarnation;
    v->members |= UINT32_C(1) << (m - hub->member);
    return (living_mask(hub) & ~v->members) == 0;
}

/* ---- the log */

static void *copy_array(const void *array, size_t count, size_t bytes)
{
    void *own = count > 0 ? malloc(count * bytes) : NULL;
    BASE_ASSERT(count == 0 || own != NULL);
    if (count > 0)
        memcpy(own, array, count * bytes);
    return own;
}

static const char *copy_text(const char *text)
{
    return text == NULL ? NULL : copy_array(text, strlen(text) + 1, 1);
}

static struct meta_store_change copy_change(const struct meta_store_change *c)
{
    return (struct meta_store_change){.revision = c->revision,
                                      .time_ms = c->time_ms,
                                      .who = copy_text(c->who),
                                      .kind = copy_text(c->kind),
                                      .name = copy_text(c->name),
                                      .before = copy_text(c->before),
                                      .after = copy_text(c->after),
                                      .resource = copy_text(c->resource)};
}

static struct meta_store_heard *copy_heard(const struct meta_store_heard *h)
{
    struct meta_store_heard *own = copy_array(h, 1, sizeof *h);
    own->nodes = copy_array(h->nodes, h->node_count, sizeof *h->nodes);
    own->removed = copy_array(h->removed, h->removed_count, sizeof *h->removed);
    own->withdrawn = copy_array(h->withdrawn, h->withdrawn_count, sizeof *h->withdrawn);
    own->published = copy_array(h->published, h->published_count, sizeof *h->published);
    if (h->has_change)
        own->change = copy_change(&h->change);
    return own;
}

static uint64_t add_to_log(struct meta_store_hub *hub, struct meta_store_heard *h)
{
    hub->log = realloc(hub->log, (hub->count + 1) * sizeof *hub->log);
    BASE_ASSERT(hub->log != NULL);
    hub->log[hub->count++] = h;
    return h->at = hub->count;
}

/* ---- transactions */

struct doing {
    struct vote vote[NODES]; /* as they were: who is refused has said nothing */
    uint32_t votes;
    struct meta_store_life expire[META_STORE_EXPIRE_MAX];
    struct meta_store_node nodes[META_STORE_EXPIRE_MAX + META_STORE_PUTS_MAX];
    struct meta_store_life removed[META_STORE_EXPIRE_MAX];
    uint32_t expire_count, node_count, removed_count;
};

static void decide_expiries(struct member *m, const struct meta_store_txn *txn, struct doing *d,
                            struct meta_store_outcome *out)
{
    for (uint32_t i = 0; i < txn->expire_count; i++) {
        struct finding f = find_node(m->hub, txn->expire[i].id, NULL);
        if (!f.there || f.found.expired || f.found.incarnation > txn->expire[i].incarnation)
            continue;
        if (!is_agreed(m, &txn->expire[i], f.found.incarnation)) {
            out->heard_elsewhere[i / 64] |= UINT64_C(1) << i % 64;
            continue;
        }
        d->expire[d->expire_count++] = txn->expire[i];
        f.found.expired = true;
        f.found.endpoint_count = 0;
        d->nodes[d->node_count++] = f.found;
        drop_vote(m->hub, txn->expire[i].id);
    }
}

static void decide_removals(struct member *m, const struct meta_store_txn *txn, struct doing *d)
{
    for (uint32_t i = 0; i < txn->remove_count; i++) {
        const struct finding f = find_node(m->hub, txn->remove[i].id, NULL);
        if (f.there && f.found.incarnation <= txn->remove[i].incarnation)
            d->removed[d->removed_count++] = txn->remove[i];
    }
}

static bool is_same_node(const struct meta_store_node *a, const struct meta_store_node *b)
{
    return a->incarnation == b->incarnation && a->expired == b->expired &&
           a->endpoint_count == b->endpoint_count &&
           memcmp(a->endpoint, b->endpoint, a->endpoint_count * sizeof a->endpoint[0]) == 0 &&
           a->fingerprint.identity == b->fingerprint.identity &&
           a->fingerprint.count == b->fingerprint.count;
}

static void tell_all(struct meta_store_hub *hub, const struct doing *d,
                     const struct meta_store_txn *txn, struct meta_store_outcome *out)
{
    const struct meta_store_change *change = txn->change;
    struct meta_store_heard *h = calloc(1, sizeof *h);
    BASE_ASSERT(h != NULL);
    h->kind = META_STORE_HEARD_NEWS;
    h->node_count = d->node_count;
    h->nodes = copy_array(d->nodes, d->node_count, sizeof d->nodes[0]);
    h->removed_count = d->removed_count;
    h->removed = copy_array(d->removed, d->removed_count, sizeof d->removed[0]);
    h->has_change = change != NULL;
    if (change != NULL) {
        h->change = copy_change(change);
        h->change.revision = out->revision;
    }
    h->withdrawn_count = txn->withdraw_count;
    h->withdrawn = copy_array(txn->withdraw, txn->withdraw_count, sizeof *txn->withdraw);
    h->published_count = txn->publish != NULL;
    h->published = copy_array(txn->publish, h->published_count, sizeof *txn->publish);
    out->at = add_to_log(hub, h);
}

/* False: it is refused, or is there already. */
static bool has_to_put(struct meta_store_hub *hub, struct meta_store_put *put)
{
    const struct meta_store_node *node = put->node;
    const struct finding f = find_node(hub, node->id, node);
    if (f.owner[0] != '\0')
        put->status = base_err(&put->err, -EEXIST, "an endpoint of %s is node %s's, which is alive",
                               node->id, f.owner);
    else if (f.there && !f.found.expired && f.found.incarnation == node->incarnation &&
             !meta_store_fingerprint_matches(&f.found.fingerprint, &node->fingerprint))
        put->status =
            base_err(&put->err, -ESTALE, "another process has registered as %s", node->id);
    if (put->status != 0)
        return false;
    drop_vote(hub, node->id);
    return !f.there || !is_same_node(&f.found, node);
}

/* Some of the first of several, each by itself; nobody sees what is between them. */
static int put_several(struct member *m, const struct meta_store_txn *txn, struct doing *d,
                       struct meta_store_outcome *out)
{
    const uint32_t most = txn->put_count;
    out->put_count = m->lost_percent > 0 ? 1 + (uint32_t)base_prng_below(&m->prng, most) : most;
    for (uint32_t i = 0; i < out->put_count; i++) {
        struct meta_store_put *put = &txn->puts[i];
        if (!has_to_put(m->hub, put))
            continue;
        put->status = meta_store_put(m->hub->content, put->node, &put->err);
        if (put->status == 0)
            d->nodes[d->node_count++] = *put->node;
    }
    if (d->node_count > 0)
        tell_all(m->hub, d, txn, out);
    return 0;
}

static int carry_out(struct member *m, struct meta_store_txn txn, struct doing *d,
                     struct meta_store_outcome *out)
{
    struct meta_store_hub *hub = m->hub;
    if (txn.put_count > 1)
        return put_several(m, &txn, d, out);
    if (txn.put_count == 1) {
        const bool puts = has_to_put(hub, txn.puts);
        out->err = txn.puts->err;
        if (txn.puts->status != 0)
            return txn.puts->status;
        if (puts)
            d->nodes[d->node_count++] = *txn.puts->node;
        txn.put_count = puts;
    }
    txn.expire = d->expire;
    txn.expire_count = d->expire_count;
    struct meta_store_outcome own;
    const int status = meta_store_commit(hub->content, &txn, &own);
    out->err = own.err;
    out->revision = own.revision;
    out->removed = own.removed;
    if (status == 0 && (d->node_count + d->removed_count + txn.withdraw_count > 0 ||
                        txn.change != NULL || txn.publish != NULL))
        tell_all(hub, d, &txn, out);
    return status;
}

static int hub_commit(struct meta_store *store, const struct meta_store_txn *txn,
                      struct meta_store_outcome *out)
{
    struct member *m = (struct member *)store;
    const bool lost = base_prng_below(&m->prng, 100) < m->lost_percent;
    if (lost && base_prng_below(&m->prng, 2) == 0)
        return base_err(&out->err, -ETIMEDOUT, "the store's answer was lost");
    if (m->stale)
        return base_err(&out->err, -EIO, "the store was put back, and is not known");
    struct doing *d = calloc(1, sizeof *d);
    BASE_ASSERT(d != NULL);
    d->votes = m->hub->votes;
    memcpy(d->vote, m->hub->vote, sizeof d->vote);
    decide_expiries(m, txn, d, out);
    decide_removals(m, txn, d);
    const int status = carry_out(m, *txn, d, out);
    out->expire_count = status == 0 ? txn->expire_count : 0;
    if (status != 0) {
        m->hub->votes = d->votes;
        memcpy(m->hub->vote, d->vote, sizeof d->vote);
    } else if (out->at != 0)
        m->wrote = out->at;
    free(d);
    if (!lost || status != 0)
        return status;
    *out = (struct meta_store_outcome){.revision = 0};
    return base_err(&out->err, -ETIMEDOUT, "the store's answer was lost");
}

static int hub_load(struct meta_store *store, meta_store_visit *visit, void *user,
                    struct base_errbuf *err)
{
    store->generation = ((struct member *)store)->hub->generation;
    return meta_store_load(((struct member *)store)->hub->content, visit, user, err);
}

static int hub_load_resources(struct meta_store *store, const struct meta_store_visitor *visitor,
                              struct base_errbuf *err)
{
    return meta_store_load_resources(((struct member *)store)->hub->content, visitor, err);
}

static int hub_check(struct meta_store *store, bool write, struct base_errbuf *err)
{
    (void)store, (void)write, (void)err;
    return 0;
}

static void tell_members(struct meta_store_hub *hub)
{
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++)
        hub->member[i].has_members = false;
}

/* Everything is another than before. */
static void tell_all_anew(struct meta_store_hub *hub)
{
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++) {
        struct member *m = &hub->member[i];
        m->put_back |= m->has_snapshot;
        m->has_snapshot = false;
    }
    hub->votes = 0;
}

static int hub_replace(struct meta_store *store, meta_store_next *next, void *user,
                       struct base_errbuf *err)
{
    struct meta_store_hub *hub = ((struct member *)store)->hub;
    const int status = meta_store_replace(hub->content, next, user, err);
    if (status != 0)
        return status;
    hub->generation++;
    tell_all_anew(hub);
    return 0;
}

static void hub_close(struct meta_store *store)
{
    struct member *m = (struct member *)store;
    m->there = false;
    tell_members(m->hub);
}

/* ---- all of it */

struct meta_store_hub *meta_store_hub_new(void)
{
    struct meta_store_hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL)
        return NULL;
    hub->content = meta_store_memory(NULL);
    BASE_ASSERT(hub->content != NULL);
    return hub;
}

void meta_store_hub_free(struct meta_store_hub *hub)
{
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++)
        BASE_ASSERT(!hub->member[i].there);
    for (uint64_t i = 0; i < hub->count; i++)
        meta_store_heard_free(hub->log[i]);
    free(hub->log);
    meta_store_close(hub->content);
    free(hub);
}

struct meta_store *meta_store_hub_open(struct meta_store_hub *hub, const char *member)
{
    static const struct meta_store_ops ops = {
        .name = "hub",
        .close = hub_close,
        .load = hub_load,
        .check = hub_check,
        .commit = hub_commit,
        .load_resources = hub_load_resources,
        .replace = hub_replace,
    };
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++) {
        struct member *m = &hub->member[i];
        if (m->there || (m->name[0] != '\0' && strcmp(m->name, member) != 0))
            continue;
        *m = (struct member){.base = {.ops = &ops, .shared = true}, .hub = hub, .there = true};
        snprintf(m->name, sizeof m->name, "%s", member);
        for (uint32_t k = 0; k < hub->votes; k++) /* what a former life has said is void */
            hub->vote[k].members &= ~(UINT32_C(1) << i);
        tell_members(hub);
        return &m->base;
    }
    return NULL;
}

static void list_members(const struct meta_store_hub *hub, struct meta_store_heard *h)
{
    h->members = calloc(META_STORE_MEMBERS_MAX, sizeof *h->members);
    BASE_ASSERT(h->members != NULL);
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++)
        if (counts_as_living(&hub->member[i]))
            memcpy(h->members[h->member_count++].name, hub->member[i].name, META_STORE_ID_BYTES);
}

/* All that is there, in place of what was not heard. */
static struct meta_store_heard *take_snapshot(struct member *m)
{
    struct meta_store_hub *hub = m->hub;
    struct meta_store_heard *h = calloc(1, sizeof *h);
    struct base_errbuf err;
    BASE_ASSERT(h != NULL);
    h->kind = META_STORE_HEARD_SNAPSHOT;
    h->at = m->next = hub->count;
    h->put_back = m->put_back;
    m->stale = m->put_back = false;
    h->snapshot = meta_store_memory(NULL);
    const int status = meta_store_copy(hub->content, h->snapshot, &err);
    BASE_ASSERT(status == 0);
    h->snapshot->generation = hub->generation;
    list_members(hub, h);
    m->has_snapshot = m->has_members = true;
    return h;
}

struct meta_store_heard *meta_store_hub_hear(struct meta_store *store)
{
    struct member *m = (struct member *)store;
    if (!m->has_snapshot)
        return take_snapshot(m);
    if (!m->has_members) {
        struct meta_store_heard *h = calloc(1, sizeof *h);
        BASE_ASSERT(h != NULL);
        h->kind = META_STORE_HEARD_MEMBERS;
        h->at = m->next;
        list_members(m->hub, h);
        m->has_members = true;
        return h;
    }
    return m->next < m->hub->count ? copy_heard(m->hub->log[m->next++]) : NULL;
}

void meta_store_hub_compact(struct meta_store *store)
{
    ((struct member *)store)->has_snapshot = false;
}

bool meta_store_hub_has_vote(struct meta_store *store, const struct meta_store_life *life)
{
    const struct member *m = (struct member *)store;
    const struct vote *v = find_vote(m->hub, life->id);
    return v != NULL && v->life.incarnation == life->incarnation &&
           (v->members >> (m - m->hub->member) & 1) != 0;
}

void meta_store_hub_lapse(struct meta_store *store, bool lapsed)
{
    struct member *m = (struct member *)store;
    if (m->lapsed == lapsed)
        return;
    m->lapsed = lapsed;
    tell_members(m->hub);
}

void meta_store_hub_put_back(struct meta_store_hub *hub, struct meta_store *to)
{
    struct base_errbuf err;
    const int status = meta_store_copy(to, hub->content, &err);
    BASE_ASSERT(status == 0);
    for (const uint64_t left = hub->count / 2; hub->count > left;)
        meta_store_heard_free(hub->log[--hub->count]);
    for (uint32_t i = 0; i < META_STORE_MEMBERS_MAX; i++) {
        struct member *m = &hub->member[i];
        m->stale = m->there && m->wrote > hub->count;
        m->wrote = 0;
    }
    tell_all_anew(hub);
}

void meta_store_hub_lose(struct meta_store *store, uint64_t seed, uint32_t percent)
{
    struct member *m = (struct member *)store;
    base_prng_seed(&m->prng, seed);
    m->lost_percent = percent;
}
