/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct entry {
    struct meta_store_name name;
    struct schema_name_record record; /* key, and what it grants */
    bool shown;
    bool loaded; /* since the last load has begun */
};

struct meta_names {
    uint32_t max, count;
    uint64_t version;      /* of the list, and of what of it is shown */
    struct entry *entries; /* max of them */
    struct entry *
        *order; /* the first count in the order of their names, then those that are free */
    struct entry **of_nodes; /* the first count, in the order of their nodes, then their names */
    struct schema_table table;
};

struct meta_names *meta_names_new(uint32_t max, void *memory, uint64_t seed, uint64_t generation)
{
    struct meta_names *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    BASE_ASSERT(max >= 1 && max <= META_NAMES_MAX);
    n->max = max;
    n->entries = calloc(max, sizeof *n->entries);
    n->order = calloc(max, sizeof *n->order);
    n->of_nodes = calloc(max, sizeof *n->of_nodes);
    if (n->entries == NULL || n->order == NULL || n->of_nodes == NULL) {
        meta_names_free(n);
        return NULL;
    }
    for (uint32_t i = 0; i < max; i++)
        n->order[i] = &n->entries[i];
    schema_table_init(&n->table, SCHEMA_TABLE_NAMES, memory, schema_table_log2_slots(max), seed,
                      generation);
    return n;
}

void meta_names_free(struct meta_names *n)
{
    if (n == NULL)
        return;
    free(n->entries);
    free(n->order);
    free(n->of_nodes);
    free(n);
}

const struct schema_table_desc *meta_names_table(const struct meta_names *n)
{
    return &n->table.desc;
}

uint32_t meta_names_count(const struct meta_names *n)
{
    return n->count;
}

/* ---- their order */

static int compare_pair(const struct entry *e, const char *tenant, const char *name)
{
    const int order = strcmp(e->name.tenant, tenant);
    return order != 0 ? order : strcmp(e->name.name, name);
}

/* The place of a name, or where it belongs. */
static uint32_t place_of_pair(const struct meta_names *n, const char *tenant, const char *name,
                              bool *found)
{
    uint32_t low = 0, high = n->count;
    *found = false;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const int order = compare_pair(n->order[middle], tenant, name);
        *found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Likewise in the order of nodes, among the first count of them. */
static uint32_t place_of_node(const struct meta_names *n, uint32_t count, const char *node,
                              const char *tenant, const char *name, bool *found)
{
    uint32_t low = 0, high = count;
    *found = false;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const struct entry *e = n->of_nodes[middle];
        int order = strcmp(e->name.node, node);
        order = order != 0 ? order : compare_pair(e, tenant, name);
        *found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct meta_store_name *meta_names_find(const struct meta_names *n, const char *tenant,
                                              const char *name)
{
    bool found;
    const uint32_t at = place_of_pair(n, tenant, name, &found);
    return found ? &n->order[at]->name : NULL;
}

const struct meta_store_name *meta_names_after(const struct meta_names *n, const char *tenant,
                                               const char *name)
{
    bool found;
    const uint32_t at = place_of_pair(n, tenant, name, &found) + found;
    return at < n->count ? &n->order[at]->name : NULL;
}

const struct meta_store_name *meta_names_after_of_node(const struct meta_names *n, const char *node,
                                                       const char *tenant, const char *name)
{
    bool found;
    const uint32_t at = place_of_node(n, n->count, node, tenant, name, &found) + found;
    return at < n->count && strcmp(n->of_nodes[at]->name.node, node) == 0 ? &n->of_nodes[at]->name
                                                                          : NULL;
}

/* A comma comes before all that tenants' names are made of: a tenant's spaces are together. */
uint32_t meta_names_of_tenant(const struct meta_names *n, const char *tenant)
{
    char owner[SCHEMA_NAME_SPACE_BYTES];
    bool found;
    const uint32_t first = place_of_pair(n, tenant, "", &found);
    uint32_t low = first, high = n->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        (void)schema_name_owner(n->order[middle]->name.tenant, owner);
        if (strcmp(owner, tenant) == 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

uint32_t meta_names_of_node(const struct meta_names *n, const char *node)
{
    bool found;
    const uint32_t first = place_of_node(n, n->count, node, "", "", &found);
    uint32_t low = first, high = n->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (strcmp(n->of_nodes[middle]->name.node, node) == 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

uint32_t meta_names_max(const struct meta_names *n)
{
    return n->max;
}

uint64_t meta_names_version(const struct meta_names *n)
{
    return n->version;
}

/* ---- the table */

/* Whether its span has a slot that is its own, or free. */
static bool has_slot(const struct meta_names *n, const uint8_t key[16])
{
    const uint8_t *at =
        n->table.slots + (size_t)schema_name_home(&n->table.desc, key) * SCHEMA_NAME_RECORD_BYTES;
    for (unsigned i = 0; i < SCHEMA_TABLE_SPAN; i++, at += SCHEMA_NAME_RECORD_BYTES) {
        const struct schema_name_record *r = (const struct schema_name_record *)at;
        if (!(r->flags & SCHEMA_RECORD_LIVE) || memcmp(r->key, key, sizeof r->key) == 0)
            return true;
    }
    return false;
}

static void hide_entry(struct meta_names *n, struct entry *e)
{
    if (e->shown)
        (void)schema_table_remove(&n->table, &e->record);
    n->version += e->shown;
    e->shown = false;
}

static int show_entry(struct meta_names *n, struct entry *e)
{
    if (schema_table_put(&n->table, &e->record) < 0)
        return -EXFULL;
    n->version++;
    e->shown = true;
    return 0;
}

int meta_names_check(const struct meta_names *n, const struct meta_store_name *name)
{
    uint8_t key[16];
    bool found;
    (void)place_of_pair(n, name->tenant, name->name, &found);
    schema_name_key(&n->table.desc, name->tenant, name->name, key);
    return (found || n->count < n->max) && has_slot(n, key) ? 0 : -ENOSPC;
}

/* ---- changing */

/* Beside count others. */
static void add_to_node(struct meta_names *n, struct entry *e, uint32_t count)
{
    bool found;
    const uint32_t at = place_of_node(n, count, e->name.node, e->name.tenant, e->name.name, &found);
    memmove(&n->of_nodes[at + 1], &n->of_nodes[at], (count - at) * sizeof n->of_nodes[0]);
    n->of_nodes[at] = e;
}

static void remove_from_node(struct meta_names *n, const struct entry *e)
{
    bool found;
    const uint32_t at =
        place_of_node(n, n->count, e->name.node, e->name.tenant, e->name.name, &found);
    BASE_ASSERT(found && n->of_nodes[at] == e);
    memmove(&n->of_nodes[at], &n->of_nodes[at + 1], (n->count - 1 - at) * sizeof n->of_nodes[0]);
}

static struct entry *add_entry(struct meta_names *n, uint32_t at,
                               const struct meta_store_name *name)
{
    struct entry *e = n->order[n->count];
    memmove(&n->order[at + 1], &n->order[at], (n->count - at) * sizeof n->order[0]);
    n->order[at] = e;
    e->name = *name;
    e->shown = false;
    add_to_node(n, e, n->count);
    n->count++;
    return e;
}

int meta_names_put(struct meta_names *n, const struct meta_store_name *name, bool shown)
{
    char owner[SCHEMA_NAME_SPACE_BYTES];
    struct schema_token grant;
    uint8_t key[16];
    bool found;
    const uint32_t at = place_of_pair(n, name->tenant, name->name, &found);
    if (schema_token_parse(name->grant, &grant) != 0)
        return -EINVAL;
    if (!found && n->count == n->max)
        return -ENOSPC;
    struct entry *e = found ? n->order[at] : add_entry(n, at, name);
    e->loaded = true;
    if (found && meta_store_name_equals(&e->name, name) && e->shown == shown)
        return 0; /* nobody reads it torn for nothing */
    schema_name_key(&n->table.desc, name->tenant, name->name, key);
    (void)schema_name_owner(name->tenant, owner);
    n->version++;
    if (strcmp(e->name.node, name->node) != 0) {
        remove_from_node(n, e);
        memcpy(e->name.node, name->node, sizeof e->name.node);
        add_to_node(n, e, n->count - 1);
    }
    e->name = *name;
    e->record =
        schema_name_record_make(key, name->incarnation, schema_tenant_number(owner), &grant);
    if (shown)
        return show_entry(n, e);
    hide_entry(n, e);
    return 0;
}

static void remove_at(struct meta_names *n, uint32_t at)
{
    struct entry *e = n->order[at];
    hide_entry(n, e);
    remove_from_node(n, e);
    n->version++;
    n->count--;
    memmove(&n->order[at], &n->order[at + 1], (n->count - at) * sizeof n->order[0]);
    n->order[n->count] = e;
}

void meta_names_remove(struct meta_names *n, const struct meta_store_name *name)
{
    bool found;
    const uint32_t at = place_of_pair(n, name->tenant, name->name, &found);
    if (found && (name->node[0] == '\0' || meta_store_name_equals(&n->order[at]->name, name)))
        remove_at(n, at);
}

void meta_names_begin_load(struct meta_names *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        n->order[i]->loaded = false;
}

/* From the end, so that few move. */
void meta_names_end_load(struct meta_names *n)
{
    for (uint32_t i = n->count; i-- > 0;)
        if (!n->order[i]->loaded)
            remove_at(n, i);
}

uint32_t meta_names_sweep(struct meta_names *n,
                          enum meta_name_life (*life)(void *user,
                                                      const struct meta_store_name *name),
                          void *user, struct meta_store_name *dead)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        struct entry *e = n->order[i];
        const enum meta_name_life is = life(user, &e->name);
        if (is != META_NAME_LIVE)
            hide_entry(n, e);
        else if (!e->shown)
            (void)show_entry(n, e); /* without room at another sweep */
        if (is == META_NAME_DEAD && dead != NULL && count < META_STORE_NAMES_MAX)
            dead[count++] = e->name;
    }
    return count;
}
