/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of resources, and what holds of their numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "schema/resources.h"

#define WORD_TEXT(constant, word) word,
const char *const resource_window_scopes[] = {RESOURCE_WINDOW_SCOPES(WORD_TEXT) NULL};
const char *const resource_token_scopes[] = {RESOURCE_TOKEN_SCOPES(WORD_TEXT) NULL};

/* ---- rows */

#define NARROW   false
#define WIDE     true
#define IN_ORDER false
#define LAST     true

/* Of STRUCT, which is the struct of the kind whose rows are being made. */
#define PLACE(m)                   .at = offsetof(STRUCT, m), .bytes = sizeof((STRUCT *)0)->m
#define SHOWN(title, column, text) .heading = title, .wide = column, .help = text

#define NUMBER_ROW(field, kind, least, most, ...)                                                  \
    {.name = #field,                                                                               \
     .type = kind,                                                                                 \
     .is_number = true,                                                                            \
     PLACE(numbers.field),                                                                         \
     .min = least,                                                                                 \
     .max = most,                                                                                  \
     SHOWN(__VA_ARGS__)},
#define CHOICE_ROW(field, list, place, ...)                                                        \
    {.name = #field,                                                                               \
     .type = FIELD_CHOICE,                                                                         \
     PLACE(field),                                                                                 \
     .words = list##s,                                                                             \
     .last = place,                                                                                \
     SHOWN(__VA_ARGS__)},
#define REFERENCE_ROW(field, kind, other, place, ...)                                              \
    {.name = #field,                                                                               \
     .type = kind,                                                                                 \
     PLACE(field),                                                                                 \
     .of = RESOURCE_##other,                                                                       \
     .last = place,                                                                                \
     SHOWN(__VA_ARGS__)},
#define OTHER_ROW(field, kind, place, ...)                                                         \
    {.name = #field, .type = kind, PLACE(field), .last = place, SHOWN(__VA_ARGS__)},
#define ROWS(fields)                                                                               \
    {                                                                                              \
        fields(NUMBER_ROW, CHOICE_ROW, REFERENCE_ROW, OTHER_ROW)                                   \
    }

#define STRUCT struct resource_tenant
static const struct resource_field tenant_fields[] = ROWS(TENANT_FIELDS);
#undef STRUCT
#define STRUCT struct resource_window
static const struct resource_field window_fields[] = ROWS(WINDOW_FIELDS);
#undef STRUCT
#define STRUCT struct resource_token
static const struct resource_field token_fields[] = ROWS(TOKEN_FIELDS);
#undef STRUCT
#define STRUCT struct resource_node
static const struct resource_field node_fields[] = ROWS(NODE_FIELDS);
#undef STRUCT
#define STRUCT struct resource_pool
static const struct resource_field pool_fields[] = ROWS(POOL_FIELDS);
#undef STRUCT

#define COUNT_OF(fields)   (sizeof fields / sizeof fields[0])
#define WITH_FIELDS(kind)  .fields = COUNT_OF(kind##_fields), .field = kind##_fields
#define WITH_STRUCT(kind)  .bytes = sizeof(struct resource_##kind)
#define IS_CALLED(what, n) .called = what, .name_max = n
_Static_assert(COUNT_OF(pool_fields) <= RESOURCE_FIELDS_MAX, "the one with the most");
_Static_assert(offsetof(struct resource_tenant, numbers) == 0 &&
                   offsetof(struct resource_window, numbers) == 0 &&
                   offsetof(struct resource_node, numbers) == 0 &&
                   offsetof(struct resource_pool, numbers) == 0,
               "a struct of numbers will do where numbers are meant");

static const struct resource_table tables[] = {
    [RESOURCE_TENANT] = {"tenant", "tenants", "", IS_CALLED("name", RESOURCE_TENANT_NAME_MAX),
                         WITH_STRUCT(tenant), WITH_FIELDS(tenant)},
    [RESOURCE_WINDOW] = {"window", "windows", "", IS_CALLED("name", RESOURCE_WINDOW_NAME_MAX),
                         WITH_STRUCT(window), WITH_FIELDS(window)},
    [RESOURCE_TOKEN] = {"token", "tokens", "", IS_CALLED("name", RESOURCE_TOKEN_NAME_MAX),
                        WITH_STRUCT(token), WITH_FIELDS(token), .secret = true},
    [RESOURCE_NODE] = {"node", "nodes", "/settings", IS_CALLED("id", RESOURCE_NODE_NAME_MAX),
                       WITH_STRUCT(node), WITH_FIELDS(node)},
    [RESOURCE_POOL] = {"pool", "pools", "", IS_CALLED("name", RESOURCE_POOL_NAME_MAX),
                       WITH_STRUCT(pool), WITH_FIELDS(pool)},
};

/* ---- finding */

const struct resource_table *resource_table(enum resource_kind kind)
{
    return &tables[kind];
}

const struct resource_table *resource_table_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        if (strcmp(tables[i].name, name) == 0)
            return &tables[i];
    return NULL;
}

const struct resource_table *resource_table_of_list(const char *plural)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        if (strcmp(tables[i].plural, plural) == 0)
            return &tables[i];
    return NULL;
}

const struct resource_field *resource_field_find(const struct resource_table *t, const char *name)
{
    for (size_t i = 0; i < t->fields; i++)
        if (strcmp(t->field[i].name, name) == 0)
            return &t->field[i];
    return NULL;
}

const struct resource_field *resource_field_next(const struct resource_table *t,
                                                 const struct resource_field *f)
{
    const struct resource_field *end = t->field + t->fields;
    const bool behind = f != NULL && f->last;
    for (const struct resource_field *at = f != NULL ? f + 1 : t->field; at < end; at++)
        if (at->last == behind)
            return at;
    for (const struct resource_field *at = t->field; at < end && !behind; at++)
        if (at->last)
            return at;
    return NULL;
}

bool resource_field_is_required(const struct resource_field *f)
{
    return f->type == FIELD_CHOICE || f->type == FIELD_SELECTOR;
}

int resource_word_find(const char *const *words, const char *word)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -EINVAL;
}

const char *resource_words_text(const char *const *words, const char *quote,
                                char out[RESOURCE_MUST_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; words[i] != NULL && used < RESOURCE_MUST_BYTES; i++) {
        const char *between = i == 0 ? "" : words[i + 1] != NULL ? ", " : " or ";
        used += (size_t)snprintf(out + used, RESOURCE_MUST_BYTES - used, "%s%s%s%s", between, quote,
                                 words[i], quote);
    }
    return out;
}

/* ---- numbers */

uint64_t *resource_number(const struct resource_field *f, void *numbers)
{
    return (uint64_t *)(void *)((char *)numbers + f->at);
}

static uint64_t number_of_field(const struct resource_field *f, const void *numbers)
{
    uint64_t value;
    memcpy(&value, (const char *)numbers + f->at, sizeof value);
    return value;
}

/* What stands for none, or for left out. */
static uint64_t none_of(const struct resource_field *f)
{
    const bool may_be_0 = f->type == FIELD_BOUND || f->type == FIELD_SIZE;
    return may_be_0 ? 0 : RESOURCE_UNSAID;
}

void resource_numbers_clear(const struct resource_table *t, void *numbers)
{
    for (size_t i = 0; i < t->fields; i++)
        if (t->field[i].is_number)
            *resource_number(&t->field[i], numbers) = none_of(&t->field[i]);
}

bool resource_number_is_right(const struct resource_field *f, uint64_t value)
{
    if (value == none_of(f))
        return true;
    return value >= f->min && value <= f->max &&
           (f->type != FIELD_POWER || (value & (value - 1)) == 0);
}

/* "must be 256, 512 or 1024" */
static void say_powers(const struct resource_field *f, char out[RESOURCE_MUST_BYTES])
{
    size_t used = (size_t)snprintf(out, RESOURCE_MUST_BYTES, "must be %" PRIu64, f->min);
    for (uint64_t n = 2 * f->min; n <= f->max && used < RESOURCE_MUST_BYTES; n *= 2)
        used += (size_t)snprintf(out + used, RESOURCE_MUST_BYTES - used, "%s%" PRIu64,
                                 2 * n <= f->max ? ", " : " or ", n);
}

const char *resource_number_must(const struct resource_field *f, char out[RESOURCE_MUST_BYTES])
{
    const bool may_be_0 = none_of(f) == 0;
    if (f->type == FIELD_POWER)
        say_powers(f, out);
    else if (may_be_0 && f->min > 1)
        snprintf(out, RESOURCE_MUST_BYTES, "must be 0 or at least %" PRIu64, f->min);
    else if (may_be_0)
        snprintf(out, RESOURCE_MUST_BYTES, "must be at most %" PRIu64, f->max);
    else
        snprintf(out, RESOURCE_MUST_BYTES, "must be an integer from %" PRIu64 " to %" PRIu64,
                 f->min, f->max);
    return out;
}

const struct resource_field *resource_numbers_check(const struct resource_table *t,
                                                    const void *numbers)
{
    for (size_t i = 0; i < t->fields; i++)
        if (t->field[i].is_number &&
            !resource_number_is_right(&t->field[i], number_of_field(&t->field[i], numbers)))
            return &t->field[i];
    return NULL;
}
