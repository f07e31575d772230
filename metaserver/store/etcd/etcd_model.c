/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"

int meta_etcd_refuse_value(const char *key, struct base_errbuf *err)
{
    return base_err(err, -EBADMSG,
                    "the key %.200s in etcd has a value that no kedge-metad of this version wrote: "
                    "look at it (`etcdctl get KEY`), and delete it (`etcdctl del KEY`) or restore "
                    "a backup",
                    key);
}

int meta_etcd_refuse_thing(const char *key, struct base_errbuf *err)
{
    (void)meta_etcd_refuse_value(key, err);
    return -EUCLEAN;
}

static json_t *parse_value(const char *value)
{
    json_error_t error;
    json_t *root = json_loads(value, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

static bool read_number(json_t *root, const char *name, uint64_t max, uint64_t *out)
{
    json_t *value = json_object_get(root, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool copy_text(json_t *value, char *out, size_t room)
{
    const char *text = json_string_value(value);
    if (text == NULL || *text == '\0' || strlen(text) >= room)
        return false;
    snprintf(out, room, "%s", text);
    return true;
}

/* ---- the store itself */

void meta_etcd_write_root(struct base_text *t, const struct meta_etcd_root *root)
{
    base_json_object(t, NULL);
    base_json_string(t, "id", root->id);
    base_json_u64(t, "version", META_ETCD_FORMAT);
    base_json_u64(t, "generation", root->generation);
    base_json_object_end(t);
}

int meta_etcd_read_root(const struct meta_etcd_kv *kv, struct meta_etcd_root *out,
                        struct base_errbuf *err)
{
    struct meta_etcd_root read = {.mod_revision = kv->mod_revision};
    uint64_t version = 0;
    json_t *root = parse_value(kv->value);
    const bool versioned = read_number(root, "version", UINT32_MAX, &version) && version > 0;
    const bool whole = copy_text(json_object_get(root, "id"), read.id, sizeof read.id) &&
                       read_number(root, "generation", INT64_MAX, &read.generation) &&
                       read.generation > 0;
    json_decref(root);
    if (versioned && version > META_ETCD_FORMAT)
        return base_err(err, -EPROTO,
                        "the store %.200s in etcd was made by a newer kedge-metad (version "
                        "%" PRIu64 ", this one knows %d): run that one",
                        kv->key, version, META_ETCD_FORMAT);
    if (!versioned || !whole)
        return meta_etcd_refuse_value(kv->key, err);
    *out = read;
    return 0;
}

/* ---- nodes */

static void write_endpoints(struct base_text *t, const char *name,
                            const struct meta_store_endpoint *e, uint32_t count)
{
    char gid[33];
    base_json_array(t, name);
    for (uint32_t i = 0; i < count; i++) {
        base_json_array(t, NULL);
        base_json_string(t, NULL, base_hex_encode(e[i].gid, sizeof e[i].gid, gid));
        base_json_u64(t, NULL, e[i].pool);
        base_json_array_end(t);
    }
    base_json_array_end(t);
}

void meta_etcd_write_node(struct base_text *t, const struct meta_etcd_node *n)
{
    const struct meta_store_fingerprint *p = &n->node.fingerprint;
    base_json_object(t, NULL);
    base_json_u64(t, "incarnation", n->node.incarnation);
    base_json_bool(t, "expired", n->node.expired);
    base_json_u64(t, "identity", p->identity);
    base_json_array(t, "prints");
    for (uint32_t i = 0; i < p->count; i++) {
        base_json_array(t, NULL);
        base_json_u64(t, NULL, p->print[i].key);
        base_json_u64(t, NULL, p->print[i].body);
        base_json_array_end(t);
    }
    base_json_array_end(t);
    write_endpoints(t, "endpoints", n->node.endpoint, n->node.endpoint_count);
    if (n->former_count > 0)
        write_endpoints(t, "former", n->former, n->former_count);
    base_json_object_end(t);
}

static bool read_u32(json_t *value, uint64_t max, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_prints(json_t *array, struct meta_store_fingerprint *p)
{
    if (!json_is_array(array) || json_array_size(array) > META_STORE_NODE_ENDPOINTS)
        return false;
    for (; p->count < json_array_size(array); p->count++) {
        json_t *pair = json_array_get(array, p->count);
        uint64_t key, body;
        if (json_array_size(pair) != 2 || !read_u32(json_array_get(pair, 0), UINT32_MAX, &key) ||
            !read_u32(json_array_get(pair, 1), UINT32_MAX, &body))
            return false;
        p->print[p->count] = (struct meta_store_print){(uint32_t)key, (uint32_t)body};
    }
    return true;
}

static bool read_endpoints(json_t *array, struct meta_store_endpoint *e, uint32_t *count)
{
    if (!json_is_array(array) || json_array_size(array) > META_STORE_NODE_ENDPOINTS)
        return false;
    for (*count = 0; *count < json_array_size(array); ++*count) {
        json_t *pair = json_array_get(array, *count), *gid = json_array_get(pair, 0);
        uint64_t pool;
        if (json_array_size(pair) != 2 || json_string_length(gid) != 32 ||
            base_hex_decode(json_string_value(gid), e[*count].gid, 16) != 0 ||
            !read_u32(json_array_get(pair, 1), UINT16_MAX, &pool))
            return false;
        e[*count].pool = (uint16_t)pool;
    }
    return true;
}

bool meta_etcd_read_node(const char *id, const char *value, struct meta_etcd_node *out)
{
    json_t *root = parse_value(value), *former = json_object_get(root, "former");
    json_t *expired = json_object_get(root, "expired");
    uint64_t incarnation = 0, identity = 0;
    *out = (struct meta_etcd_node){.former_count = 0};
    const bool good =
        meta_etcd_name_of(id, out->node.id, sizeof out->node.id) && strcmp(id, out->node.id) == 0 &&
        read_number(root, "incarnation", UINT32_MAX, &incarnation) && incarnation > 0 &&
        read_number(root, "identity", UINT32_MAX, &identity) && json_is_boolean(expired) &&
        read_prints(json_object_get(root, "prints"), &out->node.fingerprint) &&
        read_endpoints(json_object_get(root, "endpoints"), out->node.endpoint,
                       &out->node.endpoint_count) &&
        (former == NULL || read_endpoints(former, out->former, &out->former_count));
    out->node.incarnation = (uint32_t)incarnation;
    out->node.fingerprint.identity = (uint32_t)identity;
    out->node.expired = json_is_true(expired);
    json_decref(root);
    return good && (!out->node.expired || out->node.endpoint_count == 0);
}

/* ---- votes, members, owners */

void meta_etcd_write_silent(struct base_text *t, const struct meta_etcd_silent *s)
{
    base_json_object(t, NULL);
    base_json_u64(t, "incarnation", s->incarnation);
    base_json_array(t, "by");
    for (uint32_t i = 0; i < s->count; i++) {
        base_json_array(t, NULL);
        base_json_string(t, NULL, s->by[i].name);
        base_json_string(t, NULL, s->by[i].life);
        base_json_array_end(t);
    }
    base_json_array_end(t);
    base_json_object_end(t);
}

bool meta_etcd_read_silent(const char *value, struct meta_etcd_silent *out)
{
    json_t *root = parse_value(value), *by = json_object_get(root, "by");
    uint64_t incarnation = 0;
    *out = (struct meta_etcd_silent){.count = 0};
    bool good = json_is_array(by) && json_array_size(by) <= META_STORE_MEMBERS_MAX &&
                read_number(root, "incarnation", UINT32_MAX, &incarnation);
    out->incarnation = (uint32_t)incarnation;
    for (size_t i = 0; good && i < json_array_size(by); i++) {
        json_t *pair = json_array_get(by, i);
        struct meta_etcd_vote *vote = &out->by[out->count++];
        good = copy_text(json_array_get(pair, 0), vote->name, sizeof vote->name) &&
               copy_text(json_array_get(pair, 1), vote->life, sizeof vote->life);
    }
    json_decref(root);
    return good;
}

void meta_etcd_write_member(struct base_text *t, const char *life, const char *about)
{
    base_json_object(t, NULL);
    base_json_string(t, "life", life);
    base_json_raw(t, "about", about);
    base_json_object_end(t);
}

bool meta_etcd_read_member(const char *name, const char *value, struct meta_etcd_member *out)
{
    json_t *root = parse_value(value);
    char *about = json_dumps(json_object_get(root, "about"), JSON_COMPACT | JSON_ENCODE_ANY);
    *out = (struct meta_etcd_member){.life = ""};
    bool good = base_parse_name(name, META_STORE_ID_BYTES - 1) == 0 && about != NULL &&
                strlen(about) < sizeof out->member.about &&
                copy_text(json_object_get(root, "life"), out->life, sizeof out->life);
    if (good) {
        snprintf(out->member.name, sizeof out->member.name, "%s", name);
        snprintf(out->member.about, sizeof out->member.about, "%s", about);
    }
    free(about);
    json_decref(root);
    return good;
}

void meta_etcd_write_owner(struct base_text *t, const char *id)
{
    base_json_object(t, NULL);
    base_json_string(t, "node", id);
    base_json_object_end(t);
}

bool meta_etcd_read_owner(const char *value, char out[META_STORE_ID_BYTES])
{
    json_t *root = parse_value(value);
    const bool good = copy_text(json_object_get(root, "node"), out, META_STORE_ID_BYTES);
    json_decref(root);
    return good;
}

/* ---- resources and the trail */

void meta_etcd_write_resource(struct base_text *t, uint64_t revision, const char *body)
{
    base_json_object(t, NULL);
    base_json_u64(t, "revision", revision);
    base_json_string(t, "body", body);
    base_json_object_end(t);
}

bool meta_etcd_read_resource(const char *value, json_t **root, struct meta_store_resource *out)
{
    *root = parse_value(value);
    out->body = json_string_value(json_object_get(*root, "body"));
    return out->body != NULL && read_number(*root, "revision", INT64_MAX, &out->revision);
}

void meta_etcd_write_change(struct base_text *t, const struct meta_store_change *c)
{
    base_json_object(t, NULL);
    base_json_u64(t, "time_ms", c->time_ms);
    base_json_string(t, "who", c->who != NULL ? c->who : "");
    base_json_string(t, "kind", c->kind);
    base_json_string(t, "name", c->name);
    base_json_string(t, "before", c->before);
    base_json_string(t, "after", c->after);
    base_json_object_end(t);
}

bool meta_etcd_read_change(const char *value, json_t **root, struct meta_store_change *out)
{
    *root = parse_value(value);
    out->who = json_string_value(json_object_get(*root, "who"));
    out->kind = json_string_value(json_object_get(*root, "kind"));
    out->name = json_string_value(json_object_get(*root, "name"));
    out->before = json_string_value(json_object_get(*root, "before"));
    out->after = json_string_value(json_object_get(*root, "after"));
    return out->who != NULL && out->kind != NULL && out->name != NULL &&
           (out->before != NULL || out->after != NULL) &&
           read_number(*root, "time_ms", INT64_MAX, &out->time_ms);
}

/* ---- names of regions */

void meta_etcd_write_name(struct base_text *t, const struct meta_store_name *name)
{
    base_json_object(t, NULL);
    base_json_string(t, "node", name->node);
    base_json_u64(t, "incarnation", name->incarnation);
    base_json_string(t, "grant", name->grant);
    base_json_object_end(t);
}

bool meta_etcd_read_name(const char *part, const char *value, struct meta_store_name *out)
{
    const char *slash = strchr(part, '/');
    uint64_t incarnation = 0;
    *out = (struct meta_store_name){.incarnation = 0};
    if (slash == NULL || strchr(slash + 1, '/') != NULL ||
        !meta_etcd_name_of(part, out->tenant, sizeof out->tenant) ||
        !meta_etcd_name_of(slash + 1, out->name, sizeof out->name))
        return false;
    if (value == NULL)
        return true;
    json_t *root = parse_value(value);
    const bool good = copy_text(json_object_get(root, "node"), out->node, sizeof out->node) &&
                      copy_text(json_object_get(root, "grant"), out->grant, sizeof out->grant) &&
                      read_number(root, "incarnation", UINT32_MAX, &incarnation);
    out->incarnation = (uint32_t)incarnation;
    json_decref(root);
    return good && incarnation > 0;
}
