/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "schema/resources/node.h"
#include "schema/resources/token.h"

struct node_numbers {
    NODE_FIELDS(RESOURCE_MEMBER, RESOURCE_NO_MEMBER)
};

#define NARROW false
#define WIDE   true

#define ROW_OTHER(name, type, heading, column, help)                                               \
    {#name, type, false, 0, 0, 0, heading, column, help},
#define ROW_IN(numbers, name, type, min, max, heading, column, help)                               \
    {#name, type, true, offsetof(struct numbers, name), min, max, heading, column, help},
#define ROW_NONE(...)
#define ROW_OF_TENANT(...) ROW_IN(tenant_numbers, __VA_ARGS__)
#define ROW_OF_WINDOW(...) ROW_IN(window_numbers, __VA_ARGS__)
#define ROW_OF_NODE(...)   ROW_IN(node_numbers, __VA_ARGS__)
#define ROW_OF_POOL(...)   ROW_IN(pool_numbers, __VA_ARGS__)

static const struct resource_field tenant_fields[] = {TENANT_FIELDS(ROW_OF_TENANT, ROW_OTHER)};
static const struct resource_field window_fields[] = {WINDOW_FIELDS(ROW_OF_WINDOW, ROW_OTHER)};
static const struct resource_field token_fields[] = {TOKEN_FIELDS(ROW_NONE, ROW_OTHER)};
static const struct resource_field node_fields[] = {NODE_FIELDS(ROW_OF_NODE, ROW_OTHER)};
static const struct resource_field pool_fields[] = {POOL_FIELDS(ROW_OF_POOL, ROW_OTHER)};

#define COUNT_OF(fields) (sizeof fields / sizeof fields[0])
_Static_assert(COUNT_OF(pool_fields) <= RESOURCE_FIELDS_MAX, "the one with the most");

static const struct resource_table tables[] = {
    [RESOURCE_TENANT] = {"tenant", "tenants", "", false, COUNT_OF(tenant_fields), tenant_fields},
    [RESOURCE_WINDOW] = {"window", "windows", "", false, COUNT_OF(window_fields), window_fields},
    [RESOURCE_TOKEN] = {"token", "tokens", "", true, COUNT_OF(token_fields), token_fields},
    [RESOURCE_NODE] = {"node", "nodes", "/settings", false, COUNT_OF(node_fields), node_fields},
    [RESOURCE_POOL] = {"pool", "pools", "", false, COUNT_OF(pool_fields), pool_fields},
};

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

uint64_t *resource_number(const struct resource_field *f, void *numbers)
{
    return (uint64_t *)(void *)((char *)numbers + f->at);
}

uint64_t resource_number_of(const struct resource_field *f, const void *numbers)
{
    uint64_t value;
    memcpy(&value, (const char *)numbers + f->at, sizeof value);
    return value;
}

void resource_numbers_clear(const struct resource_table *t, void *numbers)
{
    for (size_t i = 0; i < t->fields; i++)
        if (t->field[i].is_number)
            *resource_number(&t->field[i], numbers) =
                t->field[i].type == FIELD_COUNT ? RESOURCE_UNSAID : 0;
}

bool resource_number_is_right(const struct resource_field *f, uint64_t value)
{
    const uint64_t none = f->type == FIELD_COUNT ? RESOURCE_UNSAID : 0;
    return value == none || (value >= f->min && value <= f->max);
}

const char *resource_number_must(const struct resource_field *f, char out[RESOURCE_MUST_BYTES])
{
    const bool may_be_0 = f->type != FIELD_COUNT;
    if (may_be_0 && f->min > 1)
        snprintf(out, RESOURCE_MUST_BYTES, "must be 0 or at least %" PRIu64, f->min);
    else if (may_be_0)
        snprintf(out, RESOURCE_MUST_BYTES, "must be at most %" PRIu64, f->max);
    else
        snprintf(out, RESOURCE_MUST_BYTES, "must be a number from %" PRIu64 " to %" PRIu64, f->min,
                 f->max);
    return out;
}

const struct resource_field *resource_numbers_check(const struct resource_table *t,
                                                    const void *numbers)
{
    for (size_t i = 0; i < t->fields; i++)
        if (t->field[i].is_number &&
            !resource_number_is_right(&t->field[i], resource_number_of(&t->field[i], numbers)))
            return &t->field[i];
    return NULL;
}

void resource_numbers_write(struct base_text *out, const struct resource_table *t,
                            const void *numbers)
{
    for (size_t i = 0; i < t->fields; i++) {
        const struct resource_field *f = &t->field[i];
        const uint64_t value = f->is_number ? resource_number_of(f, numbers) : RESOURCE_UNSAID;
        if (f->is_number && (f->type != FIELD_COUNT || value != RESOURCE_UNSAID))
            base_json_u64(out, f->name, value);
    }
}
