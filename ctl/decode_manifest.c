/* SPDX-License-Identifier: Apache-2.0 */
/* What `apply` reads: files that people write, and what `get` and `list` print with -o json. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/manifest.h"
#include "ctl/yaml.h"
#include "decode_private.h"

enum { WHERE_BYTES = 64 };

/* What `get` and `list` show of a node beside what is set of it. */
static const char *const of_nodes[] = {"id",        "incarnation", "state", "expires_in_ms",
                                       "endpoints", "applied",     "fabric"};

static int check_version(json_t *object, const char *where, struct base_errbuf *err)
{
    json_t *version = json_object_get(object, "format_version");
    if (version == NULL || json_integer_value(version) == 1)
        return 0;
    return base_err(err, -EINVAL, "%s has a format_version that this rdmactl does not know", where);
}

/* Whose it is: its own words, or those of the list that it stands in. */
static int read_identity(json_t *object, const struct resource_table *kind, const char *where,
                         struct ctl_manifest_item *out, struct base_errbuf *err)
{
    const char *of = json_string_value(json_object_get(object, "kind"));
    const char *name = json_string_value(json_object_get(object, "name"));
    json_t *revision = json_object_get(object, "revision");
    if (of != NULL && kind != NULL && strcmp(of, kind->name) != 0)
        return base_err(err, -EINVAL, "%s is a %.40s among %s", where, of, kind->plural);
    if (of != NULL)
        kind = resource_table_find(of);
    if (name == NULL && kind != NULL && strcmp(kind->name, "node") == 0)
        name = json_string_value(json_object_get(object, "id"));
    if (of != NULL && kind == NULL)
        return base_err(err, -EINVAL,
                        "%s: there is no kind \"%.40s\": say tenant, window, node or pool", where,
                        of);
    if (kind == NULL)
        return base_err(err, -EINVAL, "%s has no kind, which is tenant, window, node or pool",
                        where);
    if (name == NULL)
        return base_err(err, -EINVAL, "%s has no name", where);
    if (revision != NULL && json_integer_value(revision) < 1)
        return base_err(err, -EINVAL, "%s: revision must be that of a get or a list", where);
    if (kind->secret && revision == NULL)
        return base_err(err, -EINVAL,
                        "%s is a %s without the revision of one that is there, and the secret of "
                        "a new one nobody would see: rdmactl %s create makes one",
                        where, kind->name, kind->name);
    out->kind = kind;
    out->revision = revision != NULL ? (uint64_t)json_integer_value(revision) : 0;
    out->name = strdup(name);
    return out->name != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
}

static int read_body(json_t *object, struct ctl_manifest_item *item, const char *where,
                     struct base_errbuf *err)
{
    static const char *const identity[] = {"kind", "name", "revision", "format_version"};
    const bool node = strcmp(item->kind->name, "node") == 0;
    struct base_errbuf why;
    const char *key;
    json_t *rest = json_copy(object), *value;
    for (size_t i = 0; i < sizeof identity / sizeof identity[0]; i++)
        json_object_del(rest, identity[i]);
    for (size_t i = 0; node && i < sizeof of_nodes / sizeof of_nodes[0]; i++)
        json_object_del(rest, of_nodes[i]);
    json_object_foreach(rest, key, value) item->strange |=
        resource_field_find(item->kind, key) == NULL;
    int status = ctl_json_units(item->kind, rest, &why);
    if (status != 0)
        base_err(err, status, "%s: %.300s", where, why.text);
    item->body = status == 0 ? json_dumps(rest, JSON_COMPACT) : NULL;
    json_decref(rest);
    if (status != 0)
        return status;
    return item->body != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
}

/* -EINVAL: it is there already; two would be set one after the other, and the first be lost. */
static int note_item(struct ctl_manifest *m, const struct ctl_manifest_item *item,
                     const char *where, struct base_errbuf *err)
{
    char key[CTL_ID_BYTES + 32];
    if (snprintf(key, sizeof key, "%s %s", item->kind->name, item->name) >= (int)sizeof key)
        return base_err(err, -EINVAL, "%s: a %s's name has 1 to %d characters", where,
                        item->kind->name, CTL_ID_BYTES - 1);
    if (m->known == NULL)
        m->known = json_object();
    if (json_object_get(m->known, key) != NULL)
        return base_err(err, -EINVAL, "%s: %s is there twice", where, key);
    return json_object_set_new(m->known, key, json_true()) == 0
               ? 0
               : base_err(err, -ENOMEM, "out of memory");
}

static int take_object(struct ctl_manifest *m, json_t *object, const struct resource_table *kind,
                       const char *where, struct base_errbuf *err)
{
    struct ctl_manifest_item item = {.body = NULL};
    if (!json_is_object(object))
        return base_err(err, -EINVAL, "%s is no object", where);
    int status = check_version(object, where, err);
    if (status == 0)
        status = read_identity(object, kind, where, &item, err);
    if (status == 0)
        status = note_item(m, &item, where, err);
    if (status == 0)
        status = read_body(object, &item, where, err);
    struct ctl_manifest_item *grown =
        status == 0 ? realloc(m->item, (m->count + 1) * sizeof *grown) : NULL;
    if (status == 0 && grown == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    if (status != 0) {
        free(item.name);
        free(item.body);
        return status;
    }
    m->item = grown;
    m->item[m->count++] = item;
    return 0;
}

static int take_array(struct ctl_manifest *m, json_t *array, const struct resource_table *kind,
                      struct base_errbuf *err)
{
    char where[WHERE_BYTES];
    json_t *object;
    size_t i;
    int status = 0;
    json_array_foreach(array, i, object)
    {
        snprintf(where, sizeof where, "%s[%zu]", kind != NULL ? kind->plural : "", i);
        status = take_object(m, object, kind, where, err);
        if (status != 0)
            break;
    }
    return status;
}

/* {"format_version":1,"tenants":[...]}, as `list` prints it; of several kinds if somebody has put
 * them together. */
static int take_lists(struct ctl_manifest *m, json_t *root, struct base_errbuf *err)
{
    const char *key;
    json_t *value;
    int status = check_version(root, "it", err);
    json_object_foreach(root, key, value)
    {
        const struct resource_table *kind = resource_table_of_list(key);
        if (status != 0)
            break;
        if (strcmp(key, "format_version") == 0)
            continue;
        status = kind != NULL && json_is_array(value)
                     ? take_array(m, value, kind, err)
                     : base_err(err, -EINVAL,
                                "%.60s is no list of a kind that can be set: tenants, windows, "
                                "nodes and pools are",
                                key);
    }
    return status;
}

static bool is_list(json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) if (json_is_array(value) &&
                                              resource_table_of_list(key) !=
                                                  NULL) return json_object_get(root, "kind") ==
            NULL &&
        json_object_get(root, "name") == NULL;
    return false;
}

/* Somebody's lists, of which none has the name of one. What says of whom it is is a resource that
 * has a list in it, as a node has its endpoints. */
static int refuse_lists(json_t *root, struct base_errbuf *err)
{
    const char *key;
    json_t *value;
    if (json_object_get(root, "kind") != NULL || json_object_get(root, "name") != NULL ||
        json_object_get(root, "id") != NULL)
        return 0;
    json_object_foreach(root, key, value)
    {
        if (json_is_array(value))
            return base_err(err, -EINVAL,
                            "%.60s is no list of a kind that can be set: tenants, windows, nodes "
                            "and pools are",
                            key);
    }
    return 0;
}

/* where: what errors call the object, if it is one. */
static int take_root(struct ctl_manifest *m, json_t *root, const char *where,
                     struct base_errbuf *err)
{
    if (json_is_array(root))
        return take_array(m, root, NULL, err);
    if (is_list(root))
        return take_lists(m, root, err);
    const int status = refuse_lists(root, err);
    return status == 0 ? take_object(m, root, NULL, where, err) : status;
}

/* One object, or a list, in each document; a document may be empty. */
static int take_yaml(struct ctl_manifest *m, const char *text, size_t bytes,
                     struct base_errbuf *err)
{
    struct base_errbuf why;
    char where[WHERE_BYTES] = "the object";
    json_t *documents, *root;
    size_t i;
    int status = ctl_yaml_read(text, bytes, &documents, &why);
    if (status != 0)
        return base_err(err, status, "not JSON, and as YAML wrong: %.300s", why.text);
    json_array_foreach(documents, i, root)
    {
        if (json_is_null(root))
            continue;
        if (json_array_size(documents) > 1)
            snprintf(where, sizeof where, "document %zu", i + 1);
        if (!json_is_object(root) && !json_is_array(root))
            status = base_err(err, -EINVAL, "not JSON, and as YAML no mapping and no list");
        else
            status = take_root(m, root, where, err);
        if (status != 0)
            break;
    }
    json_decref(documents);
    return status;
}

int ctl_manifest_read(struct ctl_manifest *m, const char *text, size_t bytes,
                      struct base_errbuf *err)
{
    json_error_t error;
    size_t at = 0;
    if (bytes == 0)
        return base_err(err, -EINVAL, "it is empty");
    while (at < bytes && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    if (at < bytes && text[at] != '{' && text[at] != '[')
        return take_yaml(m, text, bytes, err);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return base_err(err, -EINVAL, "not JSON: line %d, column %d: %.100s", error.line,
                        error.column, error.text);
    const int status = take_root(m, root, "the object", err);
    json_decref(root);
    return status;
}

void ctl_manifest_fini(struct ctl_manifest *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->item[i].name);
        free(m->item[i].body);
    }
    free(m->item);
    json_decref(m->known);
    *m = (struct ctl_manifest){.item = NULL};
}
