/* SPDX-License-Identifier: Apache-2.0 */
/* Resources as a whole: left out, written, compared. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json_writer.h"
#include "base/printable.h"
#include "schema/resources.h"

void resource_clear(const struct resource_table *t, void *resource)
{
    memset(resource, 0, t->bytes);
    resource_numbers_clear(t, resource);
}

/* ---- writing */

/* 5, or "1000-1999" */
static void write_uids(struct base_text *out, const char *key, const struct resource_uids *uids)
{
    base_json_array(out, key);
    for (uint32_t i = 0; i < uids->count; i++) {
        const struct resource_uid_range *one = &uids->range[i];
        char range[sizeof "4294967295-4294967295"];
        snprintf(range, sizeof range, "%" PRIu32 "-%" PRIu32, one->first, one->last);
        if (one->first == one->last)
            base_json_u64(out, NULL, one->first);
        else
            base_json_string(out, NULL, range);
    }
    base_json_array_end(out);
}

static void write_gids(struct base_text *out, const char *key, const struct resource_gids *gids)
{
    char gid[BASE_GID_TEXT];
    if (gids->count == 0)
        return;
    base_json_array(out, key);
    for (uint32_t i = 0; i < gids->count; i++)
        base_json_string(out, NULL, base_gid_format(gids->gid[i], gid));
    base_json_array_end(out);
}

static void write_names(struct base_text *out, const char *key, const struct resource_names *names)
{
    if (names->count == 0)
        return;
    base_json_array(out, key);
    for (uint32_t i = 0; i < names->count; i++)
        base_json_string(out, NULL, names->name[i]);
    base_json_array_end(out);
}

static void write_labels(struct base_text *out, const char *key,
                         const struct resource_labels *labels)
{
    struct resource_label one;
    base_json_object(out, key);
    for (const char *at = labels->text; resource_labels_next(at, &one); at = one.next)
        base_json_string(out, one.key, one.value); /* nothing in keys needs an escape */
    base_json_object_end(out);
}

static void write_gid(struct base_text *out, const char *key, const uint8_t gid[16])
{
    static const uint8_t none[16];
    char text[BASE_GID_TEXT];
    if (memcmp(gid, none, sizeof none) != 0)
        base_json_string(out, key, base_gid_format(gid, text));
}

static void write_time(struct base_text *out, const char *key, uint64_t ms)
{
    char text[32] = "";
    struct tm tm;
    const time_t seconds = (time_t)(ms / 1000);
    if (ms == 0)
        return;
    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    base_json_string(out, key, text);
}

static void write_number(struct base_text *out, const struct resource_field *f, uint64_t value)
{
    if (value != RESOURCE_UNSAID) /* bounds never are */
        base_json_u64(out, f->name, value);
}

static void write_field(struct base_text *out, const struct resource_field *f, const void *at)
{
    switch (f->type) {
    case FIELD_UIDS:
        write_uids(out, f->name, at);
        return;
    case FIELD_SELECTOR:
    case FIELD_LABELS:
        write_labels(out, f->name, at);
        return;
    case FIELD_CHOICE:
        base_json_string(out, f->name, f->words[*(const unsigned *)at]);
        return;
    case FIELD_REFERENCE:
    case FIELD_TEXT:
        if (*(const char *)at != '\0')
            base_json_string(out, f->name, at);
        return;
    case FIELD_GID:
        write_gid(out, f->name, at);
        return;
    case FIELD_REFERENCES:
        write_names(out, f->name, at);
        return;
    case FIELD_GIDS:
        write_gids(out, f->name, at);
        return;
    case FIELD_TIME:
        write_time(out, f->name, *(const uint64_t *)at);
        return;
    case FIELD_BOOL:
        base_json_bool(out, f->name, *(const bool *)at);
        return;
    case FIELD_BOUND:
    case FIELD_SIZE:
    case FIELD_COUNT:
    case FIELD_POWER:
    case FIELD_PERIOD:
        write_number(out, f, *(const uint64_t *)at);
        return;
    }
}

void resource_write(struct base_text *out, const struct resource_table *t, const void *resource)
{
    const struct resource_field *f = NULL;
    while ((f = resource_field_next(t, f)) != NULL)
        write_field(out, f, (const char *)resource + f->at);
}

/* ---- comparing */

static bool same_uids(const struct resource_uids *a, const struct resource_uids *b)
{
    return a->count == b->count &&
           memcmp(a->range, b->range, a->count * sizeof a->range[0]) == 0; /* without padding */
}

static bool same_names(const struct resource_names *a, const struct resource_names *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = strcmp(a->name[i], b->name[i]) == 0;
    return same;
}

static bool same_gids(const struct resource_gids *a, const struct resource_gids *b)
{
    return a->count == b->count && memcmp(a->gid, b->gid, a->count * sizeof a->gid[0]) == 0;
}

static bool same_field(const struct resource_field *f, const void *a, const void *b)
{
    switch (f->type) {
    case FIELD_UIDS:
        return same_uids(a, b);
    case FIELD_REFERENCES:
        return same_names(a, b);
    case FIELD_GIDS:
        return same_gids(a, b);
    case FIELD_SELECTOR:
    case FIELD_LABELS:
    case FIELD_REFERENCE:
    case FIELD_TEXT:
        return strcmp(a, b) == 0; /* labels are a text too */
    case FIELD_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case FIELD_CHOICE:
    case FIELD_GID:
    case FIELD_TIME:
    case FIELD_BOUND:
    case FIELD_SIZE:
    case FIELD_COUNT:
    case FIELD_POWER:
    case FIELD_PERIOD:
        return memcmp(a, b, f->bytes) == 0;
    }
    return false;
}

bool resource_same(const struct resource_table *t, const void *a, const void *b)
{
    bool same = true;
    for (size_t i = 0; same && i < t->fields; i++)
        same = same_field(&t->field[i], (const char *)a + t->field[i].at,
                          (const char *)b + t->field[i].at);
    return same;
}

const char *resource_node_check(const struct resource_node *node, const char **detail)
{
    const struct {
        bool wrong;
        const char *field, *detail;
    } rules[] = {
        {node->draining && !node->cordoned, "cordoned",
         "must be true: a node that is draining takes no workers"},
        {node->numbers.grace_ms != RESOURCE_UNSAID && !node->draining, "grace_ms",
         "is for a node that is draining"},
        {node->reason[0] != '\0' && !node->cordoned, "reason", "is for a node that is cordoned"},
        {!base_is_printable(node->reason), "reason", "must have no control characters"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].wrong) {
            *detail = rules[i].detail;
            return rules[i].field;
        }
    return NULL;
}
