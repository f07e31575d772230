/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/node_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"

/* ---- reading -------------------------------------------------------------------------------- */

static int decode_labels(const struct json_at *at, json_t *root, const char *name,
                         struct meta_labels *out)
{
    json_t *object = json_object_get(root, name), *value;
    const char *key;
    if (object == NULL)
        return 0;
    if (!json_is_object(object))
        return meta_json_bad(at, name, "must be an object of labels, such as {\"zone\": \"a\"}");
    json_object_foreach(object, key, value)
    {
        struct json_at inner = {.violation = at->violation};
        const char *text = json_string_value(value);
        snprintf(inner.prefix, sizeof inner.prefix, "%s.", name);
        switch (text != NULL ? meta_labels_add(out, key, text) : -EINVAL) {
        case 0:
            break;
        case -ENOSPC:
            return meta_json_bad(at, name, "must be at most 16 labels, of 500 characters together");
        default:
            return meta_json_bad(
                &inner, key,
                "must be a key and a string, each of at most 63 of A-Z, a-z, 0-9, '.', '_' and "
                "'-' (a key '/' too), with a letter or digit at both ends");
        }
    }
    return 0;
}

static int decode_bool(const struct json_at *at, json_t *root, const char *name, bool *out)
{
    json_t *value = json_object_get(root, name);
    if (value != NULL && !json_is_boolean(value))
        return meta_json_bad(at, name, "must be true or false");
    *out = json_is_true(value);
    return 0;
}

int meta_node_json_decode(const struct json_at *at, json_t *root, struct meta_node_spec *out)
{
    int status = meta_json_only_fields(at, root, resource_table(RESOURCE_NODE));
    if (status == 0)
        status = decode_labels(at, root, "labels", &out->labels);
    if (status == 0)
        status = decode_bool(at, root, "cordoned", &out->cordoned);
    if (status == 0)
        status = decode_bool(at, root, "draining", &out->draining);
    if (status == 0)
        status =
            meta_json_number(at, root, "grace_ms", false, 0, RESOURCE_NUMBER_MAX, &out->grace_ms);
    return status == 0 ? meta_json_text(at, root, "reason", out->reason, sizeof out->reason)
                       : status;
}

static int decode_tenants(const struct json_at *at, json_t *root, struct meta_pool *out)
{
    json_t *array = json_object_get(root, "tenants"), *one;
    char field[32];
    size_t i;
    if (array == NULL)
        return 0;
    if (!json_is_array(array) || json_array_size(array) > META_POOL_TENANTS)
        return meta_json_bad(at, "tenants", "must be an array of at most 64 tenants' names");
    json_array_foreach(array, i, one)
    {
        const char *name = json_string_value(one);
        snprintf(field, sizeof field, "tenants[%zu]", i);
        if (name == NULL || !meta_resource_is_name(name, META_TENANT_NAME_MAX))
            return meta_json_bad(at, field, "must be a tenant's name");
        snprintf(out->tenants[i], sizeof out->tenants[i], "%s", name);
    }
    out->tenant_count = (uint32_t)json_array_size(array);
    return 0;
}

/* That a pool is on every node is said, and does not come of saying nothing. What is stored may be
 * of before that. */
static int check_nodes(const struct json_at *at, json_t *root, bool stored)
{
    return stored || json_object_get(root, "nodes") != NULL
               ? 0
               : meta_json_bad(at, "nodes",
                               "is missing: say which nodes have the pool, by labels such as "
                               "{\"zone\": \"a\"}, or {} for all");
}

int meta_pool_json_decode(const struct json_at *at, json_t *root, bool stored,
                          struct meta_pool *out)
{
    const struct resource_table *table = resource_table(RESOURCE_POOL);
    int status = meta_json_only_fields(at, root, table);
    if (status == 0)
        status = check_nodes(at, root, stored);
    if (status == 0)
        status = decode_labels(at, root, "nodes", &out->nodes);
    if (status == 0)
        status = meta_json_numbers(at, root, table, &out->numbers);
    return status == 0 ? decode_tenants(at, root, out) : status;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Nothing in labels needs an escape. */
static void write_labels(struct base_text *out, const char *key, const struct meta_labels *labels)
{
    struct meta_label one;
    base_json_object(out, key);
    for (const char *at = labels->text; meta_labels_next(at, &one); at = one.next)
        base_json_string(out, one.key, one.value);
    base_json_object_end(out);
}

void meta_node_json_write(struct base_text *out, const struct meta_node_spec *node)
{
    write_labels(out, "labels", &node->labels);
    base_json_bool(out, "cordoned", node->cordoned);
    base_json_bool(out, "draining", node->draining);
    if (node->grace_ms != 0)
        base_json_u64(out, "grace_ms", node->grace_ms);
    if (node->reason[0] != '\0')
        base_json_string(out, "reason", node->reason);
}

void meta_pool_json_write(struct base_text *out, const struct meta_pool *pool)
{
    write_labels(out, "nodes", &pool->nodes);
    resource_numbers_write(out, resource_table(RESOURCE_POOL), &pool->numbers);
    if (pool->tenant_count == 0)
        return;
    base_json_array(out, "tenants");
    for (uint32_t i = 0; i < pool->tenant_count; i++)
        base_json_string(out, NULL, pool->tenants[i]);
    base_json_array_end(out);
}
