/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by their JSON: what they are sorted by, and what of them is compared. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/rows.h"

enum { MEMBERS_TEXT = 400, NAME_BYTES = 64 };

/* What a row is sorted by. */
struct key {
    size_t row; /* its place before */
    enum { KEY_NUMBER, KEY_TEXT, KEY_NONE } type;
    double number;
    char *text; /* owned */
};

/* "fabric.state" of an object; borrowed, or NULL. */
static json_t *find_member(json_t *object, const char *path)
{
    if (*path == '\0')
        return NULL;
    while (object != NULL && *path != '\0') {
        char name[NAME_BYTES];
        const size_t length = strcspn(path, ".");
        if (length >= sizeof name)
            return NULL;
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        object = json_object_get(object, name);
        path += length + (path[length] == '.');
    }
    return object;
}

static int make_key(json_t *value, struct key *out)
{
    const char *text = json_string_value(value);
    out->type = KEY_NUMBER;
    if (json_is_number(value))
        out->number = json_number_value(value);
    else if (json_is_boolean(value))
        out->number = json_is_true(value);
    else if (json_is_array(value) || json_is_object(value))
        out->number =
            (double)(json_is_array(value) ? json_array_size(value) : json_object_size(value));
    else
        out->type = text != NULL ? KEY_TEXT : KEY_NONE;
    out->text = text != NULL ? strdup(text) : NULL;
    return text != NULL && out->text == NULL ? -ENOMEM : 0;
}

static int compare_keys(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    int order = 0;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (a->type == KEY_NUMBER)
        order = (a->number > b->number) - (a->number < b->number);
    else if (a->type == KEY_TEXT)
        order = strcmp(a->text, b->text);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

static int compare_back(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    const bool bare = a->type == KEY_NONE || b->type == KEY_NONE; /* those stay last */
    return bare ? compare_keys(a, b) : compare_keys(b, a);
}

/* Which members there are, by those of one row. */
static int no_such_member(const char *by, const char *json, struct base_errbuf *err)
{
    char names[MEMBERS_TEXT] = "";
    const char *key;
    json_t *root = json_loads(json, 0, NULL), *value;
    size_t used = 0;
    json_object_foreach(root, key, value)
    {
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used > 0 ? ", " : "", key);
    }
    json_decref(root);
    return base_err(err, -EINVAL, "--sort-by: no row has \"%.60s\", but %s", by, names);
}

static int make_keys(const struct ctl_rows *rows, const char *by, struct key *keys, bool *any)
{
    int status = 0;
    for (size_t i = 0; i < rows->count && status == 0; i++) {
        json_t *root = json_loads(rows->row[i].json, 0, NULL);
        json_t *value = find_member(root, by);
        keys[i].row = i;
        status = make_key(value, &keys[i]);
        *any |= value != NULL;
        json_decref(root);
    }
    return status;
}

int ctl_rows_sort(struct ctl_rows *rows, const char *by, struct base_errbuf *err)
{
    const bool back = by[0] == '-';
    if (rows->count == 0)
        return 0;
    struct key *keys = calloc(rows->count + 1, sizeof *keys);
    struct ctl_row *sorted = calloc(rows->count + 1, sizeof *sorted);
    bool any = false;
    by += back;
    int status = keys != NULL && sorted != NULL ? make_keys(rows, by, keys, &any) : -ENOMEM;
    if (status != 0)
        base_err(err, status, "out of memory");
    else if (!any)
        status = no_such_member(by, rows->row[0].json, err);
    if (status == 0) {
        qsort(keys, rows->count, sizeof *keys, back ? compare_back : compare_keys);
        for (size_t i = 0; i < rows->count; i++)
            sorted[i] = rows->row[keys[i].row];
        memcpy(rows->row, sorted, rows->count * sizeof *sorted);
    }
    for (size_t i = 0; keys != NULL && i < rows->count; i++)
        free(keys[i].text);
    free(keys);
    free(sorted);
    return status;
}

/* ---- compared */

static bool is_clock(const char *key)
{
    static const char *const ends[] = {"age_ms", "uptime_ms", "for_ms", "_in_ms", "ms_ago"};
    const size_t length = strlen(key);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (length >= strlen(ends[i]) && strcmp(key + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* Nested no deeper than jansson reads. */
static void drop_clocks(json_t *value)
{
    void *next;
    const char *key;
    json_t *one;
    size_t i;
    json_object_foreach_safe(value, next, key, one)
    {
        if (is_clock(key))
            json_object_del(value, key);
        else
            drop_clocks(one);
    }
    json_array_foreach(value, i, one) drop_clocks(one);
}

char *ctl_row_steady(const char *json)
{
    json_t *root = json_loads(json, 0, NULL);
    drop_clocks(root);
    char *text = json_is_object(root) ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(root);
    return text;
}
