/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/decode.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

static int load_object(const char *body, size_t bytes, json_t **out, struct base_errbuf *err)
{
    json_error_t error;
    *out = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL)
        return base_err(err, -EBADMSG, "the answer is not JSON (%.100s): is this a Kedge server?",
                        error.text);
    if (json_is_object(*out))
        return 0;
    json_decref(*out);
    return base_err(err, -EBADMSG, "the answer is no JSON object: is this a Kedge server?");
}

/* ---- values; texts go to terminals */

static void read_word(json_t *object, const char *name, char *out, size_t size)
{
    (void)base_copy_printable(out, size, json_string_value(json_object_get(object, name)));
}

static uint64_t read_number(json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

static void endpoint_from(json_t *object, struct ctl_endpoint *e)
{
    size_t i, used = 0;
    json_t *name;
    memset(e, 0, sizeof *e);
    read_word(object, "gid", e->gid, sizeof e->gid);
    e->pool = read_number(object, "pool");
    e->mtu = read_number(object, "mtu");
    json_array_foreach(json_object_get(object, "transports"), i, name)
    {
        if (!json_is_string(name) || used >= sizeof e->transports - 1)
            continue;
        used += base_copy_printable(e->transports + used, sizeof e->transports - used,
                                    used > 0 ? "," : "");
        used += base_copy_printable(e->transports + used, sizeof e->transports - used,
                                    json_string_value(name));
    }
}

/* A line of key=value. */
static void labels_from(json_t *object, char *out, size_t size)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    out[0] = '\0';
    json_object_foreach(object, key, value)
    {
        const char *text = json_string_value(value);
        char one[2 * CTL_WORD_BYTES + 2];
        if (text == NULL || strpbrk(key, ",=") != NULL || strpbrk(text, ",=") != NULL)
            continue; /* no Kedge server says that */
        snprintf(one, sizeof one, "%s%.63s=%.63s", used > 0 ? "," : "", key, text);
        if (used + strlen(one) >= size)
            return;
        used += base_copy_printable(out + used, size - used, one);
    }
}

static void settings_from(json_t *object, struct ctl_node *n)
{
    json_t *applied = json_object_get(object, "applied");
    labels_from(json_object_get(object, "labels"), n->labels, sizeof n->labels);
    n->cordoned = json_is_true(json_object_get(object, "cordoned"));
    n->draining = json_is_true(json_object_get(object, "draining"));
    n->says_grace = json_is_integer(json_object_get(object, "grace_ms"));
    n->grace_ms = read_number(object, "grace_ms");
    read_word(object, "reason", n->reason, sizeof n->reason);
    n->reported = json_is_object(applied);
    n->behind = json_is_true(json_object_get(applied, "behind"));
    n->revision = read_number(applied, "revision");
    n->seen = read_number(applied, "seen");
    n->says_sessions = json_is_integer(json_object_get(applied, "sessions"));
    n->sessions = read_number(applied, "sessions");
    read_word(applied, "why", n->why, sizeof n->why);
}

static void fabric_from(json_t *object, struct ctl_fabric *f)
{
    size_t i;
    json_t *one;
    read_word(object, "state", f->state, sizeof f->state);
    f->says_for = json_is_integer(json_object_get(object, "for_ms"));
    f->for_ms = read_number(object, "for_ms");
    f->tried = read_number(object, "tried");
    f->tried_by = read_number(object, "tried_by");
    f->failed_by = read_number(object, "failed_by");
    read_word(object, "not_reached_by", f->by, sizeof f->by);
    json_array_foreach(json_object_get(object, "failing"), i, one)
    {
        if (f->failing == CTL_MAX_TOWARDS)
            continue;
        f->towards[f->failing].table = json_is_true(json_object_get(one, "table"));
        read_word(one, "node", f->towards[f->failing].node, CTL_ID_BYTES);
        read_word(one, "error", f->towards[f->failing].error, CTL_ERROR_BYTES);
        f->towards[f->failing++].for_ms = read_number(one, "for_ms");
    }
}

static int node_from(json_t *object, struct ctl_node *n, struct base_errbuf *err)
{
    size_t i;
    json_t *endpoint;
    memset(n, 0, sizeof *n);
    if (!json_is_string(json_object_get(object, "id")) ||
        !json_is_string(json_object_get(object, "state")))
        return base_err(err, -EBADMSG, "the answer holds a node without id or state");
    read_word(object, "id", n->id, sizeof n->id);
    read_word(object, "state", n->state, sizeof n->state);
    n->incarnation = read_number(object, "incarnation");
    n->expires_in_ms = read_number(object, "expires_in_ms");
    settings_from(object, n);
    fabric_from(json_object_get(object, "fabric"), &n->fabric);
    json_array_foreach(json_object_get(object, "endpoints"), i, endpoint)
    {
        if (n->endpoints < CTL_MAX_ENDPOINTS)
            endpoint_from(endpoint, &n->endpoint[n->endpoints++]);
    }
    return 0;
}

int ctl_decode_nodes(const char *body, size_t bytes, struct ctl_nodes *nodes, char *next,
                     size_t size, struct base_errbuf *err)
{
    json_t *root;
    int status = load_object(body, bytes, &root, err);
    if (status != 0)
        return status;
    json_t *array = json_object_get(root, "nodes");
    size_t count = json_array_size(array);
    const char *cursor = json_string_value(json_object_get(root, "next_cursor"));
    if (!json_is_array(array) || (cursor != NULL && strlen(cursor) >= size))
        status = base_err(err, -EBADMSG, "the answer is no page of nodes");
    struct ctl_node *grown = NULL;
    if (status == 0) {
        grown = realloc(nodes->node, (nodes->count + count + 1) * sizeof *grown);
        status = grown == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    }
    if (grown != NULL)
        nodes->node = grown;
    for (size_t i = 0; i < count && status == 0; i++)
        status = node_from(json_array_get(array, i), &nodes->node[nodes->count + i], err);
    if (status == 0) {
        nodes->count += count;
        snprintf(next, size, "%s", cursor != NULL ? cursor : "");
    }
    json_decref(root);
    return status;
}

void ctl_nodes_fini(struct ctl_nodes *nodes)
{
    free(nodes->node);
    *nodes = (struct ctl_nodes){.node = NULL};
}

int ctl_decode_node(const char *body, size_t bytes, struct ctl_node *out, struct base_errbuf *err)
{
    struct ctl_node node;
    json_t *root;
    int status = load_object(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = node_from(root, &node, err);
    if (status == 0)
        *out = node;
    json_decref(root);
    return status;
}

static void pair_value(json_t *value, char *out, size_t size)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        (void)base_copy_printable(out, size, json_string_value(value));
        break;
    case JSON_INTEGER:
        snprintf(out, size, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(out, size, "%g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(out, size, "%s", json_is_true(value) ? "true" : "false");
        break;
    default:
        snprintf(out, size, "-");
    }
}

static int pairs_add(struct ctl_pairs *pairs, const char *path, json_t *value, int depth);

static int pairs_add_list(struct ctl_pairs *pairs, const char *path, json_t *list, int depth)
{
    const size_t count = json_array_size(list);
    char inner[CTL_PATH_BYTES * 2];
    int status = 0;
    for (size_t i = 0; i < count && i < CTL_MAX_ITEMS && status == 0; i++) {
        snprintf(inner, sizeof inner, "%s[%zu]", path, i);
        inner[CTL_PATH_BYTES - 1] = '\0';
        status = pairs_add(pairs, inner, json_array_get(list, i), depth + 1);
    }
    if (count <= CTL_MAX_ITEMS || status != 0)
        return status;
    json_t *number = json_integer((json_int_t)count);
    snprintf(inner, sizeof inner, "%s.count", path);
    inner[CTL_PATH_BYTES - 1] = '\0';
    status = number != NULL ? pairs_add(pairs, inner, number, depth + 1) : -ENOMEM;
    json_decref(number);
    return status;
}

static int pairs_add(struct ctl_pairs *pairs, const char *path, json_t *value, int depth)
{
    char inner[CTL_PATH_BYTES * 2];
    const char *key;
    json_t *child;
    int status = 0;
    if (depth > CTL_MAX_NESTING || pairs->count >= CTL_MAX_PAIRS)
        return -EBADMSG;
    if (json_is_object(value)) {
        json_object_foreach(value, key, child)
        {
            snprintf(inner, sizeof inner, "%s%s%.100s", path, path[0] != '\0' ? "." : "", key);
            inner[CTL_PATH_BYTES - 1] = '\0';
            if (status == 0)
                status = pairs_add(pairs, inner, child, depth + 1);
        }
        return status;
    }
    if (json_is_array(value))
        return pairs_add_list(pairs, path, value, depth);
    struct ctl_pair *pair = &pairs->pair[pairs->count++];
    (void)base_copy_printable(pair->path, sizeof pair->path, path);
    pair_value(value, pair->value, sizeof pair->value);
    return 0;
}

int ctl_decode_pairs(const char *body, size_t bytes, struct ctl_pairs *out, struct base_errbuf *err)
{
    struct ctl_pairs pairs = {.pair = calloc(CTL_MAX_PAIRS, sizeof(struct ctl_pair))};
    json_t *root;
    if (pairs.pair == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    int status = load_object(body, bytes, &root, err);
    if (status == 0) {
        status = pairs_add(&pairs, "", root, 0);
        if (status != 0)
            base_err(err, status, "the answer is larger than rdmactl shows: use -o json");
        json_decref(root);
    }
    if (status == 0)
        *out = pairs;
    else
        free(pairs.pair);
    return status;
}

void ctl_pairs_fini(struct ctl_pairs *pairs)
{
    free(pairs->pair);
    *pairs = (struct ctl_pairs){.pair = NULL};
}

const char *ctl_pairs_find(const struct ctl_pairs *pairs, const char *path)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->pair[i].path, path) == 0)
            return pairs->pair[i].value;
    return NULL;
}

void ctl_decode_problem(const char *body, size_t bytes, char *out, size_t size)
{
    char line[512];
    json_t *root = json_loadb(body, bytes, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "detail"));
    const char *field = json_string_value(json_object_get(root, "field"));
    if (text == NULL)
        text = json_string_value(json_object_get(root, "title"));
    snprintf(line, sizeof line, "%.60s%s%s", text != NULL && field != NULL ? field : "",
             text != NULL && field != NULL ? ": " : "", text != NULL ? text : "");
    (void)base_copy_printable(out, size, line);
    json_decref(root);
}
