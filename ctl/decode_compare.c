/* SPDX-License-Identifier: Apache-2.0 */
/* Two resources beside each other, each read and written again by its kind's table, so that what
 * means the same looks the same. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "ctl/compare.h"
#include "decode_private.h"
#include "schema/resource_read.h"

/* ---- one form for what means the same */

/* resource is of the kind's struct. 0, -EINVAL or -ENOMEM. */
static int read_whole(const struct resource_table *kind, json_t *object, bool stored,
                      void *resource, struct base_errbuf *err)
{
    struct resource_violation v;
    char must[RESOURCE_MUST_BYTES];
    if (resource_read(kind, object, RESOURCE_TYPES_ALL, stored, resource, &v) != 0)
        return base_err(err, stored ? -EBADMSG : -EINVAL, "%s: %s", v.field, v.detail);
    const struct resource_field *wrong = resource_numbers_check(kind, resource);
    return wrong == NULL ? 0
                         : base_err(err, stored ? -EBADMSG : -EINVAL, "%s: %s", wrong->name,
                                    resource_number_must(wrong, must));
}

static int check_node(const struct resource_table *kind, const void *resource,
                      struct base_errbuf *err)
{
    const char *detail, *field = NULL;
    if (kind == resource_table(RESOURCE_NODE))
        field = resource_node_check(resource, &detail);
    return field == NULL ? 0 : base_err(err, -EINVAL, "%s: %s", field, detail);
}

/* Unknown fields would be refused by a server of this version. A token's secret is no field. */
static int check_fields(const struct resource_table *kind, json_t *object, struct base_errbuf *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const bool shown =
            kind->secret && (strcmp(key, "secret") == 0 || strcmp(key, "expired") == 0);
        if (!shown && resource_field_find(kind, key) == NULL)
            return base_err(err, -EINVAL, "%.60s: unknown field: see rdmactl explain %s", key,
                            kind->name);
    }
    return 0;
}

/* json NULL: all left out. 0 and *out, -EINVAL, -EBADMSG or -ENOMEM. */
static int load_canonical(const struct resource_table *kind, const char *json, bool stored,
                          json_t **out, struct base_errbuf *err)
{
    void *resource = malloc(kind->bytes);
    json_t *object = NULL;
    struct base_text t;
    int status = json != NULL ? ctl_json_load(json, strlen(json), &object, err) : 0;
    if (status != 0)
        object = NULL;
    base_text_init(&t, CTL_BODY_BYTES);
    if (status == 0 && resource == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    if (status == 0 && !stored)
        status = check_fields(kind, object, err);
    if (status == 0 && object != NULL)
        status = read_whole(kind, object, stored, resource, err);
    if (status == 0 && !stored)
        status = check_node(kind, resource, err);
    if (status == 0 && object != NULL) {
        base_json_object(&t, NULL);
        resource_write(&t, kind, resource);
        base_json_object_end(&t);
    }
    if (status == 0)
        *out = object == NULL ? json_object() : json_loads(base_text_str(&t), 0, NULL);
    if (status == 0 && *out == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    base_text_fini(&t);
    json_decref(object);
    free(resource);
    return status;
}

/* ---- beside each other */

static bool has_item(json_t *array, json_t *wanted)
{
    size_t i;
    json_t *one;
    json_array_foreach(array, i, one) if (json_equal(one, wanted)) return true;
    return false;
}

/* Whether a value is what is meant when none is said. */
static bool is_default(const struct resource_field *f, json_t *value)
{
    if (value == NULL || json_is_false(value))
        return true;
    if (json_is_integer(value))
        return json_integer_value(value) == 0 && (f->type == FIELD_BOUND || f->type == FIELD_SIZE);
    if (f->type == FIELD_SELECTOR) /* {} is all nodes, which has to be said */
        return false;
    return (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

/* Lists are sets. */
static bool is_same(const struct resource_field *f, json_t *a, json_t *b)
{
    size_t i;
    json_t *one;
    if (is_default(f, a) || is_default(f, b))
        return is_default(f, a) && is_default(f, b);
    if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b))
        return json_equal(a, b);
    json_array_foreach(a, i, one) if (!has_item(b, one)) return false;
    return true;
}

static int add_change(struct ctl_changes *c, const struct resource_field *f, json_t *before,
                      json_t *after, struct base_errbuf *err)
{
    char *shown = malloc(CTL_VALUE_BYTES);
    struct ctl_change *one = &c->change[c->count++];
    *one = (struct ctl_change){.field = f};
    if (shown != NULL) {
        ctl_show_value(before, f, shown, CTL_VALUE_BYTES);
        one->before = strdup(shown);
        ctl_show_value(after, f, shown, CTL_VALUE_BYTES);
        one->after = strdup(shown);
    }
    free(shown);
    one->before_json =
        before != NULL ? json_dumps(before, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("null");
    one->after_json =
        after != NULL ? json_dumps(after, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("null");
    return one->before != NULL && one->after != NULL && one->before_json != NULL &&
                   one->after_json != NULL
               ? 0
               : base_err(err, -ENOMEM, "out of memory");
}

/* What stays as it is where it is left out. */
static bool keeps_value(const struct resource_table *kind, const struct resource_field *f,
                        json_t *after)
{
    return after == NULL && kind == resource_table(RESOURCE_POOL) && strcmp(f->name, "number") == 0;
}

int ctl_wanted_check(const struct resource_table *kind, const char *wanted, struct base_errbuf *err)
{
    json_t *whole = NULL;
    const int status = load_canonical(kind, wanted, false, &whole, err);
    json_decref(whole);
    return status;
}

int ctl_compare(const struct resource_table *kind, const char *there, const char *wanted,
                struct ctl_changes *out, struct base_errbuf *err)
{
    json_t *before = NULL, *after = NULL;
    struct ctl_changes c = {.count = 0};
    int status = load_canonical(kind, wanted, false, &after, err);
    if (status == 0)
        status = load_canonical(kind, there, true, &before, err);
    for (size_t i = 0; i < kind->fields && status == 0; i++) {
        const struct resource_field *f = &kind->field[i];
        json_t *a = json_object_get(before, f->name), *b = json_object_get(after, f->name);
        if (!keeps_value(kind, f, b) && !is_same(f, a, b))
            status = add_change(&c, f, a, b, err);
    }
    json_decref(before);
    json_decref(after);
    if (status == 0)
        *out = c;
    else
        ctl_changes_fini(&c);
    return status;
}

void ctl_changes_fini(struct ctl_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->change[i].before);
        free(changes->change[i].after);
        free(changes->change[i].before_json);
        free(changes->change[i].after_json);
    }
    changes->count = 0;
}
