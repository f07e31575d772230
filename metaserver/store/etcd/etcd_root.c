/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a store in etcd, and reading all of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "etcd_private.h"

enum { PAGE_KEYS = 512 };

/* ---- which store it is */

int meta_etcd_say_gone(const struct meta_etcd_place *p, struct base_errbuf *err)
{
    return base_err(err, -EIO,
                    "the store %.120sstore in etcd is gone, or never was there: look at prefix and "
                    "endpoints in [store]; if somebody has deleted it, restart the metaservers to "
                    "begin with an empty one, and restore a backup",
                    p->prefix);
}

/* Nobody has one there: makes it. */
static int make_root(struct meta_etcd_client *c, const struct meta_etcd_place *p,
                     uint64_t deadline_ns, struct base_errbuf *err)
{
    struct meta_etcd_root root = {.generation = 1};
    struct meta_etcd_answer answer = {.root = NULL};
    struct meta_etcd_key key;
    struct meta_etcd_txn t;
    struct base_text value;
    int status = meta_etcd_draw(root.id, err);
    if (status != 0)
        return status;
    meta_etcd_txn_init(&t);
    base_text_init(&value, META_ETCD_KEY_BYTES);
    meta_etcd_write_root(&value, &root);
    meta_etcd_key(&key, p, "store", "");
    meta_etcd_compare(&t, key.text, 0);
    meta_etcd_put(&t, key.text, base_text_str(&value), 0);
    status = meta_etcd_txn_send(c, &t, deadline_ns, false, &answer, err);
    json_decref(answer.root);
    base_text_fini(&value);
    meta_etcd_txn_fini(&t);
    return status;
}

int meta_etcd_find_root(struct meta_etcd_client *c, const struct meta_etcd_place *p, bool make,
                        uint64_t deadline_ns, struct meta_etcd_root *out, struct base_errbuf *err)
{
    struct meta_etcd_key key;
    struct meta_etcd_txn t;
    int status = 0;
    meta_etcd_key(&key, p, "store", "");
    meta_etcd_txn_init(&t);
    meta_etcd_range(&t, key.text);
    for (int tries = 0; tries < 2; tries++) {
        struct meta_etcd_answer answer = {.root = NULL};
        struct meta_etcd_kv kv = {.key = NULL};
        status = meta_etcd_txn_send(c, &t, deadline_ns, false, &answer, err);
        const int found = status == 0 ? meta_etcd_answer_kv(&answer, 0, &kv) : 0;
        if (found == 1)
            status = meta_etcd_read_root(&kv, out, err);
        else if (found < 0)
            status = meta_etcd_refuse_value(key.text, err);
        else if (status == 0 && make && tries == 0)
            status = make_root(c, p, deadline_ns, err);
        else if (status == 0)
            status = meta_etcd_say_gone(p, err);
        meta_etcd_kv_fini(&kv);
        json_decref(answer.root);
        if (status != 0 || found == 1)
            break;
    }
    meta_etcd_txn_fini(&t);
    return status;
}

/* ---- all that is in it */

/* Goes through the ranges, page by page. */
struct reading {
    struct meta_etcd_extent *x;
    bool keys_only;
    unsigned range;
    struct meta_etcd_key next, end;
    uint32_t limit;
    bool last_page;
    json_t *page, *root; /* root: what an item borrows from */
    size_t at;
    struct meta_etcd_kv kv;
    char kind[META_ETCD_KEY_BYTES], name[META_ETCD_KEY_BYTES];
};

static const char *const ranges[] = {"nodes/", "resources/", "trail/", "names/"};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

static void begin_range(struct reading *r)
{
    meta_etcd_key_under(&r->next, r->x->place, r->x->generation, ranges[r->range], "");
    meta_etcd_key_end(&r->end, r->next.text);
    r->last_page = false;
}

/* A smaller page, if one would be larger than an answer may be. */
static int ask_page(struct reading *r, struct base_errbuf *err)
{
    int status;
    json_decref(r->page);
    r->page = NULL;
    r->at = 0;
    do {
        const struct meta_etcd_page page = {.key = r->next.text,
                                            .end = r->end.text,
                                            .revision = r->x->revision,
                                            .limit = r->limit,
                                            .keys_only = r->keys_only};
        status = meta_etcd_range_send(r->x->client, &page, base_clock_ns() + r->x->timeout_ns,
                                      &r->page, err);
    } while (status == -EMSGSIZE && (r->limit /= 2) > 0);
    if (status != 0)
        return status;
    if (r->x->revision == 0)
        r->x->revision = meta_etcd_number(json_object_get(r->page, "header"), "revision");
    r->last_page = !json_is_true(json_object_get(r->page, "more"));
    return 0;
}

/* The next pair: 1, or 0 at the end of all. */
static int next_kv(struct reading *r, struct base_errbuf *err)
{
    meta_etcd_kv_fini(&r->kv);
    for (;;) {
        json_t *kvs = json_object_get(r->page, "kvs");
        if (r->at < json_array_size(kvs)) {
            if (!meta_etcd_kv_read(json_array_get(kvs, r->at++), &r->kv) ||
                strlen(r->kv.key) + 2 > sizeof r->next.text)
                return meta_etcd_refuse_value(r->next.text, err);
            /* "\x01" is the least that names of ours may go on with. */
            snprintf(r->next.text, sizeof r->next.text, "%s\x01", r->kv.key);
            r->x->digest += meta_etcd_digest(r->kv.key, r->kv.mod_revision);
            return 1;
        }
        if (r->page != NULL && r->last_page) {
            json_decref(r->page);
            r->page = NULL;
            if (++r->range == RANGES)
                return 0;
            begin_range(r);
        }
        const int status = ask_page(r, err);
        if (status != 0)
            return status;
        if (!r->last_page && json_array_size(json_object_get(r->page, "kvs")) == 0)
            return base_err(err, -EBADMSG, "etcd at %.200s says that there is more, and gives none",
                            meta_etcd_endpoint(r->x->client));
    }
}

static bool take_item(struct reading *r, const char *name, struct meta_store_item *item)
{
    struct meta_etcd_node node;
    const char *slash = strchr(name, '/');
    switch (r->range) {
    case 0:
        item->kind = META_STORE_NODE;
        if (!meta_etcd_read_node(name, r->kv.value, &node))
            return false;
        item->node = node.node;
        return true;
    case 1:
        item->kind = META_STORE_RESOURCE;
        item->resource = (struct meta_store_resource){.kind = r->kind, .name = r->name};
        return slash != NULL && strchr(slash + 1, '/') == NULL &&
               meta_etcd_name_of(name, r->kind, sizeof r->kind) &&
               meta_etcd_name_of(slash + 1, r->name, sizeof r->name) &&
               meta_etcd_read_resource(r->kv.value, &r->root, &item->resource);
    case 3:
        item->kind = META_STORE_NAME;
        return meta_etcd_read_name(name, r->kv.value, &item->name);
    default:
        item->kind = META_STORE_CHANGE;
        item->change = (struct meta_store_change){.revision = 0};
        return strlen(name) == 20 && strspn(name, "0123456789") == 20 &&
               base_parse_u64(name, 1, INT64_MAX, &item->change.revision) == 0 &&
               meta_etcd_read_change(r->kv.value, &r->root, &item->change);
    }
}

static int next_item(void *user, struct meta_store_item *item, struct base_errbuf *err)
{
    struct reading *r = user;
    struct meta_etcd_key begin;
    const int status = next_kv(r, err);
    json_decref(r->root);
    r->root = NULL;
    if (status != 1)
        return status;
    meta_etcd_key_under(&begin, r->x->place, r->x->generation, ranges[r->range], "");
    if (strncmp(r->kv.key, begin.text, strlen(begin.text)) != 0 ||
        !take_item(r, r->kv.key + strlen(begin.text), item))
        return meta_etcd_refuse_value(r->kv.key, err);
    return 1;
}

uint64_t meta_etcd_digest(const char *key, uint64_t mod_revision)
{
    uint64_t sum = 0;
    for (; *key != '\0'; key++)
        sum = base_hash_u64(sum, (unsigned char)*key);
    return base_hash_u64(sum, mod_revision);
}

int meta_etcd_read_all(struct meta_etcd_extent *x, struct meta_store **out, struct base_errbuf *err)
{
    struct reading *r = calloc(1, sizeof *r);
    struct meta_store *memory = r != NULL && out != NULL ? meta_store_memory(NULL) : NULL;
    int status = 1;
    if (r == NULL || (out != NULL && memory == NULL)) {
        free(r);
        return base_err(err, -ENOMEM, "out of memory");
    }
    r->x = x;
    r->keys_only = out == NULL;
    r->limit = PAGE_KEYS;
    x->digest = 0;
    begin_range(r);
    if (out != NULL)
        status = meta_store_replace(memory, next_item, r, err);
    else
        while (status == 1)
            status = next_kv(r, err);
    json_decref(r->page);
    json_decref(r->root);
    meta_etcd_kv_fini(&r->kv);
    free(r);
    if (status != 0)
        meta_store_close(memory);
    else if (out != NULL)
        *out = memory;
    return status;
}
