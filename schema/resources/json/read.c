/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/resource_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define LABELS_EXAMPLE "{\"zone\": \"a\"}"

static int refuse_value(struct resource_violation *v, const char *field, const char *detail)
{
    snprintf(v->field, sizeof v->field, "%s", field);
    snprintf(v->detail, sizeof v->detail, "%s", detail);
    return -EINVAL;
}

/* That of a list's element: "uids[3]". */
static int refuse_element(struct resource_violation *v, const struct resource_field *f, size_t i,
                          const char *detail)
{
    char field[32];
    snprintf(field, sizeof field, "%s[%zu]", f->name, i);
    return refuse_value(v, field, detail);
}

/* ---- lists */

/* 5, or "1000-1999" */
static bool read_uid(const json_t *value, struct resource_uid_range *out)
{
    const json_int_t uid = json_integer_value(value);
    uint64_t first, last;
    if (json_is_integer(value) && uid >= 0 && uid < UINT32_MAX) {
        *out = (struct resource_uid_range){(uint32_t)uid, (uint32_t)uid};
        return true;
    }
    if (!json_is_string(value) ||
        base_parse_range(json_string_value(value), UINT32_MAX - 1, &first, &last) != 0)
        return false;
    *out = (struct resource_uid_range){(uint32_t)first, (uint32_t)last};
    return true;
}

static int read_uids(const struct resource_field *f, const json_t *array, struct resource_uids *out,
                     struct resource_violation *v)
{
    const size_t count = json_array_size(array); /* 0 of what is no array */
    if (!json_is_array(array) || count > RESOURCE_UIDS_MAX)
        return refuse_value(v, f->name, "must be an array of at most 32 uids or ranges of uids");
    for (size_t i = 0; i < count; i++)
        if (!read_uid(json_array_get(array, i), &out->range[i]))
            return refuse_element(
                v, f, i,
                "must be a uid, which is a number without quotes, or a range of them in quotes, "
                "such as \"1000-1999\"; below 4294967295");
    out->count = (uint32_t)count;
    return 0;
}

static int read_gids(const struct resource_field *f, const json_t *array, struct resource_gids *out,
                     struct resource_violation *v)
{
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count > RESOURCE_GIDS_MAX)
        return refuse_value(v, f->name, "must be an array of at most 16 GIDs");
    for (size_t i = 0; i < count; i++) {
        const char *gid = json_string_value(json_array_get(array, i));
        if (gid == NULL || base_gid_parse(gid, out->gid[i]) != 0)
            return refuse_element(v, f, i, "must be an IPv6 address");
    }
    out->count = (uint32_t)count;
    return 0;
}

/* A name of what the field refers to, of room for which there is in out. */
static bool read_name(const struct resource_field *f, const json_t *value, char *out)
{
    const char *name = json_string_value(value);
    if (name == NULL || base_parse_name(name, resource_table(f->of)->name_max) != 0)
        return false;
    memcpy(out, name, strlen(name) + 1);
    return true;
}

static const char *name_must(const struct resource_field *f, char out[RESOURCE_MUST_BYTES])
{
    const struct resource_table *of = resource_table(f->of);
    snprintf(out, RESOURCE_MUST_BYTES, "must be a %s's %s", of->name, of->called);
    return out;
}

static int read_names(const struct resource_field *f, const json_t *array,
                      struct resource_names *out, struct resource_violation *v)
{
    const struct resource_table *of = resource_table(f->of);
    const size_t count = json_array_size(array);
    char must[RESOURCE_MUST_BYTES];
    snprintf(must, sizeof must, "must be an array of at most %d %s' %ss", RESOURCE_TENANTS_MAX,
             of->plural, of->called);
    if (!json_is_array(array) || count > RESOURCE_TENANTS_MAX)
        return refuse_value(v, f->name, must);
    for (size_t i = 0; i < count; i++)
        if (!read_name(f, json_array_get(array, i), out->name[i]))
            return refuse_element(v, f, i, name_must(f, must));
    out->count = (uint32_t)count;
    return 0;
}

static int read_labels(const struct resource_field *f, json_t *object, struct resource_labels *out,
                       struct resource_violation *v)
{
    const char *key;
    char field[64];
    json_t *value;
    if (!json_is_object(object))
        return refuse_value(v, f->name, "must be an object of labels, such as " LABELS_EXAMPLE);
    json_object_foreach(object, key, value)
    {
        const char *text = json_string_value(value);
        const int status = text != NULL ? resource_labels_add(out, key, text) : -EINVAL;
        snprintf(field, sizeof field, "%s.%.20s", f->name, key);
        if (status == -ENOSPC)
            return refuse_value(v, f->name,
                                "must be at most 16 labels, of 500 characters together");
        if (status != 0)
            return refuse_value(
                v, field,
                "must be a key and a string, each of at most 63 of A-Z, a-z, 0-9, '.', '_' and "
                "'-' (a key '/' too), with a letter or digit at both ends");
    }
    return 0;
}

/* ---- single values */

static int read_choice(const struct resource_field *f, const json_t *value, unsigned *out,
                       struct resource_violation *v)
{
    const char *word = json_string_value(value);
    const int found = word != NULL ? resource_word_find(f->words, word) : -EINVAL;
    char words[RESOURCE_MUST_BYTES], must[sizeof words + 16];
    if (found >= 0) {
        *out = (unsigned)found;
        return 0;
    }
    snprintf(must, sizeof must, "must be %s", resource_words_text(f->words, "\"", words));
    return refuse_value(v, f->name, must);
}

static int read_reference(const struct resource_field *f, const json_t *value, char *out,
                          struct resource_violation *v)
{
    char must[RESOURCE_MUST_BYTES];
    return read_name(f, value, out) ? 0 : refuse_value(v, f->name, name_must(f, must));
}

static int read_gid(const struct resource_field *f, const json_t *value, uint8_t out[16],
                    struct resource_violation *v)
{
    static const uint8_t none[16];
    const char *text = json_string_value(value);
    uint8_t gid[16];
    if (text == NULL || base_gid_parse(text, gid) != 0 || memcmp(gid, none, sizeof none) == 0 ||
        gid[0] == 0xff)
        return refuse_value(v, f->name, "must be a unicast IPv6 address");
    memcpy(out, gid, sizeof gid);
    return 0;
}

static int read_text(const struct resource_field *f, const json_t *value, char *out,
                     struct resource_violation *v)
{
    char must[RESOURCE_MUST_BYTES];
    if (json_is_string(value) && json_string_length(value) < f->bytes) {
        memcpy(out, json_string_value(value), json_string_length(value) + 1);
        return 0;
    }
    snprintf(must, sizeof must, "must be a string of at most %zu bytes", f->bytes - 1);
    return refuse_value(v, f->name, must);
}

/* "2027-01-31T00:00:00Z", whole, of the years 1970 to 9999: ms since 1970. */
static bool parse_time(const char *text, uint64_t *out)
{
    struct tm tm = {.tm_isdst = 0};
    char again[32];
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (end == NULL || *end != '\0')
        return false;
    const time_t seconds = timegm(&tm);
    /* strptime() lets blanks, short numbers and a 31st of February pass. */
    if (seconds <= 0 || gmtime_r(&seconds, &tm) == NULL ||
        strftime(again, sizeof again, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0 || strcmp(again, text) != 0)
        return false;
    *out = (uint64_t)seconds * 1000;
    return true;
}

static int read_time(const struct resource_field *f, const json_t *value, uint64_t *out,
                     struct resource_violation *v)
{
    if (json_is_string(value) && parse_time(json_string_value(value), out))
        return 0;
    return refuse_value(v, f->name, "must be a time in UTC such as \"2027-01-31T00:00:00Z\"");
}

static int read_bool(const struct resource_field *f, const json_t *value, bool *out,
                     struct resource_violation *v)
{
    *out = json_is_true(value);
    return json_is_boolean(value) ? 0 : refuse_value(v, f->name, "must be true or false");
}

static int read_number(const struct resource_field *f, const json_t *value, uint64_t *out,
                       struct resource_violation *v)
{
    const bool may_be_0 = f->type == FIELD_BOUND || f->type == FIELD_SIZE;
    const uint64_t min = may_be_0 ? 0 : f->min;
    const json_int_t number = json_integer_value(value);
    char must[RESOURCE_MUST_BYTES];
    if (json_is_integer(value) && number >= 0 && (uint64_t)number >= min &&
        (uint64_t)number <= f->max) {
        *out = (uint64_t)number;
        return 0;
    }
    snprintf(must, sizeof must, "must be an integer from %" PRIu64 " to %" PRIu64, min, f->max);
    return refuse_value(v, f->name, must);
}

/* ---- fields */

static int read_field(const struct resource_field *f, json_t *value, void *out,
                      struct resource_violation *v)
{
    switch (f->type) {
    case FIELD_UIDS:
        return read_uids(f, value, out, v);
    case FIELD_SELECTOR:
    case FIELD_LABELS:
        return read_labels(f, value, out, v);
    case FIELD_CHOICE:
        return read_choice(f, value, out, v);
    case FIELD_REFERENCE:
        return read_reference(f, value, out, v);
    case FIELD_GID:
        return read_gid(f, value, out, v);
    case FIELD_TEXT:
        return read_text(f, value, out, v);
    case FIELD_REFERENCES:
        return read_names(f, value, out, v);
    case FIELD_GIDS:
        return read_gids(f, value, out, v);
    case FIELD_TIME:
        return read_time(f, value, out, v);
    case FIELD_BOOL:
        return read_bool(f, value, out, v);
    case FIELD_BOUND:
    case FIELD_SIZE:
    case FIELD_COUNT:
    case FIELD_POWER:
    case FIELD_PERIOD:
        return read_number(f, value, out, v);
    }
    return refuse_value(v, f->name, "is of no known type");
}

/* That something is for every node is said, and does not come of saying nothing. */
static int refuse_missing(const struct resource_table *t, const struct resource_field *f,
                          struct resource_violation *v)
{
    char must[sizeof v->detail];
    snprintf(must, sizeof must,
             "is missing: say which nodes have the %s, by labels such as " LABELS_EXAMPLE
             ", or {} for all",
             t->name);
    return refuse_value(v, f->name, must);
}

int resource_read(const struct resource_table *t, json_t *object, uint32_t types, bool stored,
                  void *out, struct resource_violation *violation)
{
    const struct resource_field *f = NULL;
    int status = 0;
    resource_clear(t, out);
    while (status == 0 && (f = resource_field_next(t, f)) != NULL) {
        json_t *value = json_object_get(object, f->name);
        if ((types & RESOURCE_TYPE(f->type)) == 0)
            continue;
        if (value != NULL || f->type == FIELD_CHOICE)
            status = read_field(f, value, (char *)out + f->at, violation);
        else if (f->type == FIELD_SELECTOR && !stored)
            status = refuse_missing(t, f, violation);
    }
    return status;
}
