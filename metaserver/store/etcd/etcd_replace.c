/* SPDX-License-Identifier: Apache-2.0 */
/* Another content in place of all that there is. It is more than a transaction holds: so it is
 * written as a generation of its own, which nobody looks at, and one transaction makes that the one
 * that counts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "etcd_private.h"

enum {
    BATCH_OPS = META_ETCD_OPS_MAX - 4 - META_STORE_NODE_ENDPOINTS,
    BATCH_BYTES = 512 << 10, /* in base64; etcd takes 1.5 MiB as bytes */
    SWEPT = 64,              /* generations before it that may have been left */
};

struct replacing {
    struct meta_etcd_store *store;
    struct meta_etcd_txn txn;
    uint64_t generation, last, last_before; /* last_before: etcd's revision of it */
    struct base_errbuf *err;
};

/* Sends what has been gathered, if the store is still what it was at the start. */
static int send_batch(struct replacing *r)
{
    struct meta_etcd_store *s = r->store;
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_key key;
    if (r->txn.ops == 0)
        return 0;
    meta_etcd_key(&key, &s->place, "store", "");
    meta_etcd_compare(&r->txn, key.text, s->root.mod_revision);
    /* Nobody but us writes there: sent twice it does no harm. */
    int status = meta_etcd_txn_send(s->client, &r->txn, base_clock_ns() + s->timeout_ns, false,
                                    &answer, r->err);
    if (status == 0 && !answer.succeeded)
        status = base_err(r->err, -EBUSY,
                          "somebody else has replaced the store %.120s in etcd meanwhile",
                          s->place.prefix);
    json_decref(answer.root);
    meta_etcd_txn_reset(&r->txn);
    return status;
}

static void put_text(struct replacing *r, const struct meta_etcd_key *key, struct base_text *text)
{
    if (text->error != 0)
        r->txn.success.error = text->error;
    meta_etcd_put(&r->txn, key->text, base_text_str(text), 0);
    base_text_reset(text);
}

static void add_node(struct replacing *r, const struct meta_store_node *node,
                     struct base_text *text)
{
    const struct meta_etcd_place *p = &r->store->place;
    const struct meta_etcd_node n = {.node = *node};
    struct meta_etcd_key key;
    meta_etcd_write_node(text, &n);
    meta_etcd_key_under(&key, p, r->generation, "nodes/", node->id);
    put_text(r, &key, text);
    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        meta_etcd_write_owner(text, node->id);
        meta_etcd_key_endpoint(&key, p, r->generation, &node->endpoint[i]);
        put_text(r, &key, text);
    }
}

static int add_item(struct replacing *r, const struct meta_store_item *item, struct base_text *text)
{
    const struct meta_etcd_place *p = &r->store->place;
    const struct meta_store_resource *own = &item->resource;
    struct meta_etcd_key key;
    int status = 0;
    switch (item->kind) {
    case META_STORE_NODE:
        add_node(r, &item->node, text);
        break;
    case META_STORE_RESOURCE:
        status = meta_etcd_key_resource(&key, p, r->generation, own->kind, own->name, r->err);
        meta_etcd_write_resource(text, own->revision, own->body);
        put_text(r, &key, text);
        break;
    case META_STORE_CHANGE:
        meta_etcd_write_change(text, &item->change);
        meta_etcd_key_trail(&key, p, r->generation, item->change.revision);
        put_text(r, &key, text);
        r->last = item->change.revision > r->last ? item->change.revision : r->last;
        break;
    case META_STORE_NAME:
        meta_etcd_write_name(text, &item->name);
        meta_etcd_key_name(&key, p, r->generation, &item->name);
        put_text(r, &key, text);
        break;
    }
    if (status == 0 && (r->txn.ops > BATCH_OPS || r->txn.success.length > BATCH_BYTES))
        status = send_batch(r);
    return status;
}

/* A number for the generation that nobody else uses, and what the last change is now. */
static int claim_generation(struct replacing *r)
{
    struct meta_etcd_store *s = r->store;
    const uint64_t deadline_ns = base_clock_ns() + s->timeout_ns;
    struct meta_etcd_key store, claimed, last;
    int status = -EAGAIN;
    meta_etcd_key(&claimed, &s->place, "claimed", "");
    meta_etcd_key(&store, &s->place, "store", "");
    while (status == -EAGAIN) {
        struct meta_etcd_answer answer = {.root = NULL};
        struct meta_etcd_kv kv = {.key = NULL}, before = {.key = NULL};
        char digits[24];
        uint64_t number = 0;
        status = meta_etcd_find_root(s->client, &s->place, true, deadline_ns, &s->root, r->err);
        meta_etcd_key_under(&last, &s->place, s->root.generation, "last", "");
        meta_etcd_txn_reset(&r->txn);
        meta_etcd_range(&r->txn, claimed.text);
        meta_etcd_range(&r->txn, last.text);
        if (status == 0)
            status = meta_etcd_txn_send(s->client, &r->txn, deadline_ns, false, &answer, r->err);
        if (status == 0 &&
            (meta_etcd_answer_kv(&answer, 0, &kv) < 0 ||
             (kv.key != NULL && base_parse_u64(kv.value, 1, INT64_MAX - 1, &number) != 0)))
            status = meta_etcd_refuse_value(claimed.text, r->err);
        if (status == 0)
            (void)meta_etcd_answer_kv(&answer, 1, &before);
        r->last_before = before.mod_revision;
        r->generation = (number > s->root.generation ? number : s->root.generation) + 1;
        snprintf(digits, sizeof digits, "%" PRIu64, r->generation);
        json_decref(answer.root);
        answer.root = NULL;
        meta_etcd_txn_reset(&r->txn);
        meta_etcd_compare(&r->txn, claimed.text, kv.mod_revision);
        meta_etcd_compare(&r->txn, store.text, s->root.mod_revision);
        meta_etcd_put(&r->txn, claimed.text, digits, 0);
        if (status == 0)
            status = meta_etcd_txn_send(s->client, &r->txn, deadline_ns, true, &answer, r->err);
        /* Whoever has claimed it, if it is not known: the next number is free. */
        if ((status == 0 && !answer.succeeded) ||
            (status == -ETIMEDOUT && base_clock_ns() < deadline_ns))
            status = -EAGAIN;
        json_decref(answer.root);
        meta_etcd_kv_fini(&kv);
        meta_etcd_kv_fini(&before);
    }
    meta_etcd_txn_reset(&r->txn);
    return status;
}

/* Makes the new generation the one that counts. */
static int switch_generation(struct replacing *r)
{
    struct meta_etcd_store *s = r->store;
    const uint64_t deadline_ns = base_clock_ns() + s->timeout_ns;
    struct meta_etcd_root root = s->root, now;
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_key key;
    struct base_text text;
    meta_etcd_key(&key, &s->place, "store", "");
    meta_etcd_compare(&r->txn, key.text, s->root.mod_revision);
    root.generation = r->generation;
    base_text_init(&text, META_ETCD_KEY_BYTES);
    meta_etcd_write_root(&text, &root);
    put_text(r, &key, &text);
    base_text_fini(&text);
    meta_etcd_key_under(&key, &s->place, s->root.generation, "last", "");
    meta_etcd_compare(&r->txn, key.text, r->last_before);
    int status = meta_etcd_txn_send(s->client, &r->txn, deadline_ns, true, &answer, r->err);
    const bool refused = status == 0 && !answer.succeeded;
    json_decref(answer.root);
    /* What is there says whether it was done; until it is read, it is not known. */
    const uint64_t later_ns = base_clock_ns() + s->timeout_ns;
    if (status == 0 || status == -ETIMEDOUT) {
        const int read = meta_etcd_find_root(s->client, &s->place, false, later_ns, &now, r->err);
        if (read != 0)
            return status == -ETIMEDOUT ? -ETIMEDOUT : read;
        status = now.generation == r->generation ? 0 : -EBUSY;
        s->root = now;
    }
    if (status == -EBUSY)
        base_err(r->err, status, "%s while the store %.120s in etcd was being replaced: try again",
                 refused ? "somebody has changed a resource" : "etcd has not answered",
                 s->place.prefix);
    return status;
}

/* What nobody looks at any more. What is left of it now is taken by the next one that is replaced.
 */
static void sweep_generations(struct replacing *r, uint64_t first, uint64_t last)
{
    struct meta_etcd_store *s = r->store;
    struct meta_etcd_key begin, end;
    struct base_errbuf none;
    for (uint64_t g = last; g >= first && last - g < SWEPT; g--) {
        struct meta_etcd_answer answer = {.root = NULL};
        meta_etcd_txn_reset(&r->txn);
        meta_etcd_key_under(&begin, &s->place, g, "", "");
        meta_etcd_key_end(&end, begin.text);
        meta_etcd_delete_range(&r->txn, begin.text, end.text);
        const int status = meta_etcd_txn_send(s->client, &r->txn, base_clock_ns() + s->timeout_ns,
                                              false, &answer, &none);
        json_decref(answer.root);
        if (status != 0)
            return;
    }
}

static void add_last(struct replacing *r)
{
    struct meta_etcd_key key;
    char digits[24];
    if (r->last == 0)
        return;
    snprintf(digits, sizeof digits, "%" PRIu64, r->last);
    meta_etcd_key_under(&key, &r->store->place, r->generation, "last", "");
    meta_etcd_put(&r->txn, key.text, digits, 0);
}

int meta_etcd_replace(struct meta_store *store, meta_store_next *next, void *user,
                      struct base_errbuf *err)
{
    struct replacing r = {.store = (struct meta_etcd_store *)store, .err = err};
    struct meta_store_item item;
    struct base_text text;
    int more = 0;
    meta_etcd_txn_init(&r.txn);
    base_text_init(&text, META_ETCD_VALUE_BYTES);
    meta_etcd_forget_cluster(r.store->client);
    int status = claim_generation(&r);
    const bool claimed = status == 0;
    while (status == 0 && (more = next(user, &item, err)) == 1)
        status = add_item(&r, &item, &text);
    const bool whole = status == 0 && more == 0;
    if (whole) {
        add_last(&r);
        status = send_batch(&r);
    }
    if (whole && status == 0)
        status = switch_generation(&r);
    if (whole && status == 0)
        sweep_generations(&r, 1, r.generation - 1);
    else if (claimed && status != -ETIMEDOUT)
        sweep_generations(&r, r.generation, r.generation);
    meta_etcd_txn_fini(&r.txn);
    base_text_fini(&text);
    return status != 0 ? meta_etcd_status(status) : more;
}
