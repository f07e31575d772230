/* SPDX-License-Identifier: Apache-2.0 */
/* What events of etcd mean: those of one revision are one transaction. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_watch.h"

int meta_etcd_heard_add(struct meta_etcd_watch *w, struct meta_store_heard *heard,
                        struct base_errbuf *err)
{
    struct meta_etcd_heard *one = malloc(sizeof *one);
    if (one == NULL) {
        meta_store_heard_free(heard);
        return base_err(err, -ENOMEM, "out of memory");
    }
    one->heard = heard;
    STAILQ_INSERT_TAIL(&w->heard, one, link);
    return 0;
}

int meta_etcd_heard_members(struct meta_etcd_watch *w, struct meta_store_heard *heard,
                            struct base_errbuf *err)
{
    heard->members = calloc(w->member_count + 1, sizeof heard->members[0]);
    if (heard->members == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    heard->member_count = w->member_count;
    for (uint32_t i = 0; i < w->member_count; i++)
        heard->members[i] = w->members[i].member;
    return 0;
}

/* ---- a transaction */

/* One revision that is being put together. */
struct news {
    struct meta_etcd_watch *watch;
    struct meta_store_heard *heard;
    bool counts;                /* there is something to give */
    char *resource;             /* what is kept of the resource that changed */
    struct meta_etcd_key under; /* "PREFIX/GENERATION/" */
};

static bool add_node(struct news *n, const char *id, const char *value)
{
    struct meta_store_heard *h = n->heard;
    struct meta_etcd_node node;
    if (h->node_count == META_STORE_NEWS_NODES || !meta_etcd_read_node(id, value, &node))
        return false;
    struct meta_store_node *nodes = realloc(h->nodes, (h->node_count + 1) * sizeof h->nodes[0]);
    if (nodes == NULL)
        return false;
    h->nodes = nodes;
    h->nodes[h->node_count++] = node.node;
    return true;
}

/* Of what it was before the last life is known; UINT32_MAX where it is not. */
static bool add_removed(struct news *n, const char *id, const char *before)
{
    struct meta_store_heard *h = n->heard;
    struct meta_etcd_node was;
    struct meta_store_life life = {.incarnation = UINT32_MAX};
    if (h->removed_count == META_STORE_NEWS_NODES || strlen(id) >= sizeof life.id)
        return false;
    snprintf(life.id, sizeof life.id, "%s", id);
    if (before == NULL || !meta_etcd_read_node(id, before, &was)) {
        n->watch->wants_snapshot = true; /* compacted: which life went is not known */
        return true;
    }
    life.incarnation = was.node.incarnation;
    struct meta_store_life *removed =
        realloc(h->removed, (h->removed_count + 1) * sizeof h->removed[0]);
    if (removed == NULL)
        return false;
    h->removed = removed;
    h->removed[h->removed_count++] = life;
    return true;
}

static bool add_name(struct news *n, const char *part, const char *value,
                     struct meta_store_name **list, uint32_t *count)
{
    struct meta_store_name name, *longer;
    if (*count > META_STORE_NAMES_MAX || !meta_etcd_read_name(part, value, &name))
        return false;
    longer = realloc(*list, (*count + 1) * sizeof *longer);
    if (longer == NULL)
        return false;
    *list = longer;
    longer[(*count)++] = name;
    n->counts = true;
    return true;
}

static char *copy_text(const char *text, bool *good)
{
    char *own = text == NULL ? NULL : strdup(text);
    *good &= text == NULL || own != NULL;
    return own;
}

static bool set_change(struct news *n, const char *revision, const char *value)
{
    struct meta_store_change c = {.revision = 0}, *own = &n->heard->change;
    json_t *root = NULL;
    bool good = !n->heard->has_change && base_parse_u64(revision, 1, INT64_MAX, &c.revision) == 0 &&
                meta_etcd_read_change(value, &root, &c);
    if (good) {
        n->heard->has_change = true;
        *own = (struct meta_store_change){.revision = c.revision, .time_ms = c.time_ms};
        own->who = copy_text(c.who, &good);
        own->kind = copy_text(c.kind, &good);
        own->name = copy_text(c.name, &good);
        own->before = copy_text(c.before, &good);
        own->after = copy_text(c.after, &good);
    }
    json_decref(root);
    return good;
}

static bool set_resource(struct news *n, const char *value)
{
    struct meta_store_resource resource = {.revision = 0};
    json_t *root = NULL;
    bool good = n->resource == NULL && meta_etcd_read_resource(value, &root, &resource);
    if (good)
        n->resource = copy_text(resource.body, &good);
    json_decref(root);
    return good;
}

/* A key of the generation that counts. False: its value makes no sense. */
static bool take_own_key(struct news *n, const char *name, bool deleted, const char *value,
                         const char *before)
{
    if (strncmp(name, "nodes/", 6) == 0) {
        n->counts = true;
        return deleted ? add_removed(n, name + 6, before) : add_node(n, name + 6, value);
    }
    if (strncmp(name, "names/", 6) == 0)
        return deleted
                   ? add_name(n, name + 6, before, &n->heard->withdrawn, &n->heard->withdrawn_count)
                   : add_name(n, name + 6, value, &n->heard->published, &n->heard->published_count);
    if (deleted) /* what is forgotten of the trail, and what a change says */
        return true;
    if (strncmp(name, "trail/", 6) == 0) {
        n->counts = true;
        return set_change(n, name + 6, value);
    }
    return strncmp(name, "resources/", 10) != 0 || set_resource(n, value);
}

static bool is_kept(const char *name)
{
    return strncmp(name, "nodes/", 6) == 0 || strncmp(name, "trail/", 6) == 0 ||
           strncmp(name, "resources/", 10) == 0 || strncmp(name, "names/", 6) == 0;
}

static int take_event(struct news *n, json_t *event, struct base_errbuf *err)
{
    struct meta_etcd_watch *w = n->watch;
    struct meta_etcd_kv kv, before = {.key = NULL};
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *was = meta_etcd_get(event, "prev_kv");
    const size_t prefix = strlen(w->place.prefix), under = strlen(n->under.text);
    bool good = true;
    if (!meta_etcd_kv_read(json_object_get(event, "kv"), &kv))
        return base_err(err, -EBADMSG, "a watch of etcd at %.200s gives an event without a key",
                        meta_etcd_endpoint(w->client));
    const bool deleted = type != NULL && strcmp(type, "DELETE") == 0;
    const bool had = was != NULL && meta_etcd_kv_read(was, &before);
    if (strncmp(kv.key, w->place.prefix, prefix) != 0) {
        good = true; /* not asked for */
    } else if (strcmp(kv.key + prefix, "store") == 0) {
        w->wants_snapshot = true;
    } else if (strncmp(kv.key + prefix, "by/", 3) == 0) {
        n->counts = true;
    } else if (strncmp(kv.key + prefix, "members/", 8) == 0) {
        w->asked_ns = 0; /* who they are is asked for, and at once */
    } else if (strncmp(kv.key, n->under.text, under) == 0) {
        const char *name = kv.key + under;
        if (is_kept(name) && had)
            w->digest -= meta_etcd_digest(kv.key, before.mod_revision);
        if (is_kept(name) && !deleted)
            w->digest += meta_etcd_digest(kv.key, kv.mod_revision);
        good = take_own_key(n, name, deleted, kv.value, had ? before.value : NULL);
    }
    const int status = good ? 0 : meta_etcd_refuse_value(kv.key, err);
    meta_etcd_kv_fini(&kv);
    meta_etcd_kv_fini(&before);
    return status;
}

/* What a resource keeps is told with the change that set it. */
static void close_news(struct news *n)
{
    struct meta_store_heard *h = n->heard;
    if (h->has_change && h->change.after != NULL && n->resource != NULL &&
        strcmp(n->resource, h->change.after) != 0) {
        h->change.resource = n->resource;
        n->resource = NULL;
    }
    free(n->resource);
}

/* Events first .. last - 1, which are of one revision. */
static int take_revision(struct meta_etcd_watch *w, json_t *events, size_t first, size_t last,
                         uint64_t revision, struct base_errbuf *err)
{
    struct news n = {.watch = w, .heard = calloc(1, sizeof *n.heard)};
    int status = n.heard == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status != 0)
        return status;
    n.heard->kind = META_STORE_HEARD_NEWS;
    n.heard->at = revision;
    meta_etcd_key_under(&n.under, &w->place, w->root.generation, "", "");
    for (size_t i = first; i < last && status == 0; i++)
        status = take_event(&n, json_array_get(events, i), err);
    close_news(&n);
    if (status == 0 && !w->wants_snapshot) {
        w->at = revision;
        if (w->resume < revision)
            w->resume = revision;
        if (n.counts)
            return meta_etcd_heard_add(w, n.heard, err);
    }
    meta_store_heard_free(n.heard);
    return status;
}

static uint64_t revision_of(json_t *events, size_t i)
{
    json_t *kv = json_object_get(json_array_get(events, i), "kv");
    return meta_etcd_number(kv, "mod_revision");
}

/* Those that were given are passed over: a watch of 3.4 may give some again. */
static int take_events(struct meta_etcd_watch *w, json_t *events, struct base_errbuf *err)
{
    const size_t count = json_array_size(events);
    int status = 0;
    for (size_t first = 0, last; first < count && status == 0 && !w->wants_snapshot; first = last) {
        const uint64_t revision = revision_of(events, first);
        for (last = first + 1; last < count && revision_of(events, last) == revision;)
            last++;
        if (revision > w->at)
            status = take_revision(w, events, first, last, revision, err);
    }
    return status;
}

int meta_etcd_news_take(struct meta_etcd_watch *w, json_t *response, struct base_errbuf *err)
{
    json_t *events = json_object_get(response, "events");
    if (json_is_true(json_object_get(response, "canceled"))) {
        const char *why = json_string_value(meta_etcd_get(response, "cancel_reason"));
        /* A new one says what is wrong with it, if something is. */
        w->wants_snapshot |= meta_etcd_number(response, "compact_revision") > 0;
        return base_err(err, -EBUSY, "etcd at %.200s has cancelled the watch: %.200s",
                        meta_etcd_endpoint(w->client), why != NULL ? why : "it does not say why");
    }
    if (w->parts == NULL && !json_is_true(json_object_get(response, "fragment")))
        return take_events(w, events, err);
    if (w->parts == NULL)
        w->parts = json_array();
    if (w->parts == NULL || json_array_extend(w->parts, events) != 0)
        return json_array_size(events) == 0 ? 0 : base_err(err, -ENOMEM, "out of memory");
    if (json_is_true(json_object_get(response, "fragment")))
        return 0;
    const int status = take_events(w, w->parts, err);
    json_decref(w->parts);
    w->parts = NULL;
    return status;
}
