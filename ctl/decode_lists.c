/* SPDX-License-Identifier: Apache-2.0 */
/* KEY+=VALUE and KEY-=VALUE of a field that is a list: what is there already, or not there, is no
 * mistake, so that the same may be said again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "decode_private.h"

enum { RANGES_MAX = 4 * RESOURCE_UIDS_MAX };

/* Sets of numbers, in order, no two of which touch each other. */
struct ranges {
    size_t count;
    struct {
        uint64_t first, last;
    } at[RANGES_MAX];
};

static int read_ranges(json_t *array, struct ranges *out)
{
    size_t i;
    json_t *one;
    out->count = 0;
    json_array_foreach(array, i, one)
    {
        uint64_t first = 0, last = 0;
        if (out->count == RANGES_MAX)
            return -ENOSPC;
        if (json_is_integer(one) && json_integer_value(one) >= 0)
            first = last = (uint64_t)json_integer_value(one);
        else if (!json_is_string(one) ||
                 base_parse_range(json_string_value(one), UINT32_MAX, &first, &last) != 0)
            return -EBADMSG;
        out->at[out->count].first = first;
        out->at[out->count++].last = last;
    }
    return 0;
}

static int compare_ranges(const void *a, const void *b)
{
    uint64_t x, y; /* of each the first member */
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void merge_ranges(struct ranges *r)
{
    size_t kept = 0;
    qsort(r->at, r->count, sizeof r->at[0], compare_ranges);
    for (size_t i = 0; i < r->count; i++)
        if (kept > 0 && r->at[i].first <= r->at[kept - 1].last + 1)
            r->at[kept - 1].last =
                r->at[i].last > r->at[kept - 1].last ? r->at[i].last : r->at[kept - 1].last;
        else
            r->at[kept++] = r->at[i];
    r->count = kept;
}

/* -ENOSPC: there are too many. */
static int add_range(struct ranges *r, uint64_t first, uint64_t last)
{
    if (first > last)
        return 0;
    if (r->count == RANGES_MAX)
        return -ENOSPC;
    r->at[r->count].first = first;
    r->at[r->count++].last = last;
    return 0;
}

/* What is left of each range is below and above it. */
static int take_range(struct ranges *r, uint64_t first, uint64_t last)
{
    const struct ranges all = *r;
    int status = 0;
    r->count = 0;
    for (size_t i = 0; i < all.count && status == 0; i++) {
        const uint64_t from = all.at[i].first, to = all.at[i].last;
        if (to < first || from > last) {
            status = add_range(r, from, to);
            continue;
        }
        if (from < first)
            status = add_range(r, from, first - 1);
        if (status == 0 && to > last)
            status = add_range(r, last + 1, to);
    }
    return status;
}

static json_t *write_ranges(const struct ranges *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->count; i++) {
        char text[48];
        const bool one = r->at[i].first == r->at[i].last;
        snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, r->at[i].first, r->at[i].last);
        json_array_append_new(array,
                              one ? json_integer((json_int_t)r->at[i].first) : json_string(text));
    }
    return array;
}

static int edit_uids(json_t *there, json_t *delta, bool add, json_t **out)
{
    struct ranges now, more;
    int status = read_ranges(there, &now);
    if (status == 0)
        status = read_ranges(delta, &more);
    for (size_t i = 0; status == 0 && i < more.count; i++)
        status = add ? add_range(&now, more.at[i].first, more.at[i].last)
                     : take_range(&now, more.at[i].first, more.at[i].last);
    if (status != 0)
        return status;
    merge_ranges(&now);
    *out = write_ranges(&now);
    return 0;
}

static bool has_item(json_t *array, json_t *wanted)
{
    size_t i;
    json_t *one;
    json_array_foreach(array, i, one) if (json_equal(one, wanted)) return true;
    return false;
}

static json_t *edit_names(json_t *there, json_t *delta, bool add)
{
    size_t i;
    json_t *array = json_array(), *one;
    json_array_foreach(there, i, one) if (add || !has_item(delta, one))
        json_array_append(array, one);
    json_array_foreach(delta, i, one) if (add && !has_item(array, one))
        json_array_append(array, one);
    return array;
}

int ctl_edit_list(const struct resource_field *field, json_t *root, json_t *delta, bool add,
                  struct base_errbuf *err)
{
    json_t *there = json_object_get(root, field->name), *list = NULL;
    const int status = field->type == FIELD_UIDS ? edit_uids(there, delta, add, &list) : 0;
    if (field->type != FIELD_UIDS)
        list = edit_names(there, delta, add);
    if (status == -ENOSPC)
        return base_err(err, -EINVAL, "%s would have more than %d ranges", field->name, RANGES_MAX);
    if (status != 0)
        return base_err(err, status, "the answer has %s that are none: is this a Kedge server?",
                        field->name);
    return json_object_set_new(root, field->name, list) == 0
               ? 0
               : base_err(err, -ENOMEM, "out of memory");
}
