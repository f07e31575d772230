/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/agent_items.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text.h"
#include "ctl/format.h"
#include "schema/wait_reason.h"

enum { SENTENCES_BYTES = 8192 };

static const struct ctl_agent_item_kind kinds[] = {
    {"lease",
     "leases",
     15,
     {{"id", "ID", CTL_PLAIN, false},
      {"tenant", "TENANT", CTL_PLAIN, false},
      {"pid", "PID", CTL_PLAIN, false},
      {"kind", "KIND", CTL_PLAIN, false},
      {"arena", "ARENA", CTL_PLAIN, false},
      {"offset", "OFFSET", CTL_PLAIN, false},
      {"length", "LENGTH", CTL_BYTES, false},
      {"access", "ACCESS", CTL_PLAIN, false},
      {"state", "STATE", CTL_PLAIN, false},
      {"age_ms", "AGE", CTL_AGE, false},
      {"period_ms", "PERIOD", CTL_MS, true},
      {"over_in_ms", "OVER IN", CTL_AGE, true},
      {"uid", "UID", CTL_PLAIN, true},
      {"worker", "WORKER", CTL_PLAIN, true},
      {"node", "NODE", CTL_PLAIN, true}},
     false},
    {"worker",
     "workers",
     11,
     {{"id", "ID", CTL_PLAIN, false},
      {"tenant", "TENANT", CTL_PLAIN, false},
      {"uid", "UID", CTL_PLAIN, false},
      {"pid", "PID", CTL_PLAIN, false},
      {"state", "STATE", CTL_PLAIN, false},
      {"leases", "LEASES", CTL_PLAIN, false},
      {"arenas", "ARENAS", CTL_PLAIN, false},
      {"arena_bytes", "MEMORY", CTL_BYTES, false},
      {"age_ms", "AGE", CTL_AGE, false},
      {"waits", "WAITS FOR", CTL_PLAIN, false},
      {"node", "NODE", CTL_PLAIN, true}},
     false},
    {"region",
     "regions",
     7,
     {{"id", "NAME", CTL_PLAIN, false},
      {"node", "NODE", CTL_PLAIN, false},
      {"incarnation", "INCARNATION", CTL_PLAIN, true},
      {"state", "STATE", CTL_PLAIN, false},
      {"bytes", "LENGTH", CTL_BYTES, false},
      {"access", "ACCESS", CTL_PLAIN, false},
      {"for", "FOR", CTL_PLAIN, true}},
     true},
};

const struct ctl_agent_item_kind *ctl_agent_item_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- showing */

static void show_number(json_int_t n, enum ctl_unit unit, char *out, size_t size)
{
    char amount[CTL_AMOUNT_BYTES];
    const char *text = amount;
    if (n < 0 || unit == CTL_PLAIN) {
        snprintf(out, size, "%" JSON_INTEGER_FORMAT, n);
        return;
    }
    if (unit == CTL_AGE)
        text = ctl_format_age((uint64_t)n, amount);
    else if (unit == CTL_MS)
        text = ctl_format_duration((uint64_t)n, amount);
    else
        text = ctl_format_size((uint64_t)n, amount);
    snprintf(out, size, "%s", text);
}

/* How many of what: "path=3,answer=5". */
static void show_counts(json_t *object, char *out, size_t size)
{
    size_t used = 0;
    const char *word;
    json_t *count;
    json_object_foreach(object, word, count)
    {
        if (used + 1 >= size)
            return;
        if (used > 0)
            out[used++] = ',';
        used += base_copy_printable(out + used, size - used, word);
        const int more =
            snprintf(out + used, size - used, "=%" JSON_INTEGER_FORMAT, json_integer_value(count));
        used = used + (size_t)more < size ? used + (size_t)more : size - 1;
    }
}

/* An array is a list with commas. */
static void show_value(json_t *value, enum ctl_unit unit, char *out, size_t size)
{
    size_t i, used = 0;
    json_t *one;
    snprintf(out, size, "-");
    if (json_is_string(value))
        (void)base_copy_printable(out, size, json_string_value(value));
    else if (json_is_integer(value))
        show_number(json_integer_value(value), unit, out, size);
    show_counts(value, out, size);
    json_array_foreach(value, i, one)
    {
        const char *text = json_string_value(one);
        if (text == NULL || used + 1 >= size)
            continue;
        if (used > 0)
            out[used++] = ',';
        used += base_copy_printable(out + used, size - used, text);
    }
}

/* A line for each reason of which there is a sentence: an agent of another version has others. */
static char *sentences_from(json_t *waits)
{
    struct base_text t;
    const char *word;
    json_t *count;
    base_text_init(&t, SENTENCES_BYTES);
    json_object_foreach(waits, word, count)
    {
        const struct schema_wait_row *row = schema_wait_find(word);
        const json_int_t n = json_integer_value(count);
        if (row != NULL)
            base_text_printf(&t, "%s: %" JSON_INTEGER_FORMAT " %s%s: %s\n", row->word, n, row->unit,
                             n == 1 ? "" : "s, of each", row->sentence);
    }
    char *out = t.error == 0 ? strdup(base_text_str(&t)) : NULL;
    base_text_fini(&t);
    return out;
}

static int one_from(const struct ctl_agent_item_kind *kind, json_t *object,
                    struct ctl_agent_item *out, struct base_errbuf *err)
{
    if (!json_is_string(json_object_get(object, "id")))
        return base_err(err, -EBADMSG, "the answer holds a %s without an id: is this an agent?",
                        kind->name);
    for (size_t i = 0; i < kind->columns; i++)
        show_value(json_object_get(object, kind->column[i].field), kind->column[i].unit,
                   out->cell[i], sizeof out->cell[i]);
    out->json = json_dumps(object, JSON_COMPACT);
    out->sentences = sentences_from(json_object_get(object, "waits"));
    if (out->json != NULL && out->sentences != NULL)
        return 0;
    ctl_agent_item_fini(out);
    return base_err(err, -ENOMEM, "out of memory");
}

/* ---- reading */

static int load_object(const char *body, size_t bytes, json_t **out, struct base_errbuf *err)
{
    json_error_t error;
    *out = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*out))
        return 0;
    json_decref(*out);
    return base_err(err, -EBADMSG, "the answer is no JSON object: is this an agent?");
}

static int gap_from(json_t *object, struct ctl_agent_item_gap *out, struct base_errbuf *err)
{
    const char *node = json_string_value(json_object_get(object, "node"));
    const char *why = json_string_value(json_object_get(object, "why"));
    if (node == NULL || why == NULL)
        return base_err(err, -EBADMSG, "the answer does not say which nodes were not asked");
    (void)base_copy_printable(out->node, sizeof out->node, node);
    (void)base_copy_printable(out->why, sizeof out->why, why);
    out->json = json_dumps(object, JSON_COMPACT);
    return out->json != NULL ? 0 : base_err(err, -ENOMEM, "out of memory");
}

static int page_from(const struct ctl_agent_item_kind *kind, json_t *root,
                     struct ctl_agent_item_page *out, struct base_errbuf *err)
{
    json_t *array = json_object_get(root, kind->plural);
    const char *next = json_string_value(json_object_get(root, "next_cursor"));
    json_t *unreachable = json_object_get(root, "unreachable");
    size_t count = json_array_size(array), gaps = json_array_size(unreachable);
    int status = 0;
    *out = (struct ctl_agent_item_page){.item = NULL};
    if (!json_is_array(array) || (next != NULL && strlen(next) >= sizeof out->next))
        return base_err(err, -EBADMSG, "the answer is no page of %s: is this an agent?",
                        kind->plural);
    out->item = calloc(count + 1, sizeof out->item[0]);
    out->gap = calloc(gaps + 1, sizeof out->gap[0]);
    if (out->item == NULL || out->gap == NULL)
        status = base_err(err, -ENOMEM, "out of memory");
    for (; out->gaps < gaps && status == 0; out->gaps += status == 0)
        status = gap_from(json_array_get(unreachable, out->gaps), &out->gap[out->gaps], err);
    for (; out->count < count && status == 0; out->count += status == 0)
        status = one_from(kind, json_array_get(array, out->count), &out->item[out->count], err);
    snprintf(out->next, sizeof out->next, "%s", next != NULL ? next : "");
    if (status != 0)
        ctl_agent_item_page_fini(out);
    return status;
}

int ctl_decode_agent_items(const struct ctl_agent_item_kind *kind, const char *body, size_t bytes,
                           struct ctl_agent_item_page *out, struct base_errbuf *err)
{
    json_t *root;
    int status = load_object(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = page_from(kind, root, out, err);
    json_decref(root);
    return status;
}

int ctl_decode_agent_item(const struct ctl_agent_item_kind *kind, const char *body, size_t bytes,
                          struct ctl_agent_item *out, struct base_errbuf *err)
{
    json_t *root;
    int status = load_object(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = one_from(kind, root, out, err);
    json_decref(root);
    return status;
}

int ctl_decode_revoked(const char *body, size_t bytes, struct ctl_revoked *out,
                       struct base_errbuf *err)
{
    json_t *root;
    int status = load_object(body, bytes, &root, err);
    if (status != 0)
        return status;
    status = page_from(&kinds[0], root, &out->leases, err);
    if (status == 0) {
        const char *breaks = json_string_value(json_object_get(root, "breaks"));
        out->forced = json_is_true(json_object_get(root, "forced"));
        out->over = json_is_true(json_object_get(root, "over"));
        (void)base_copy_printable(out->breaks, sizeof out->breaks, breaks);
    }
    json_decref(root);
    return status;
}

bool ctl_agent_item_is(const struct ctl_agent_item *item, const char *id)
{
    json_t *root = json_loads(item->json, 0, NULL);
    const char *own = json_string_value(json_object_get(root, "id"));
    const bool is = own != NULL && strcmp(own, id) == 0;
    json_decref(root);
    return is;
}

void ctl_agent_item_fini(struct ctl_agent_item *item)
{
    free(item->json);
    free(item->sentences);
    item->json = item->sentences = NULL;
}

void ctl_agent_item_page_fini(struct ctl_agent_item_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        ctl_agent_item_fini(&page->item[i]);
    for (size_t i = 0; i < page->gaps; i++)
        free(page->gap[i].json);
    free(page->gap);
    free(page->item);
    *page = (struct ctl_agent_item_page){.item = NULL};
}
