/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as resources: what is right by itself, and beside the other pools. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "resources_private.h"

static int refuse_field(struct meta_violation *violation, int status, const char *field,
                        const char *detail)
{
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return status;
}

/* ---- by itself */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int validate_tenants(struct resource_pool *p, struct meta_violation *violation)
{
    char field[32];
    BASE_ASSERT(p->tenants.count <= RESOURCE_TENANTS_MAX);
    for (uint32_t i = 0; i < p->tenants.count; i++) {
        snprintf(field, sizeof field, "tenants[%" PRIu32 "]", i);
        if (!meta_resource_is_name(p->tenants.name[i], RESOURCE_TENANT_NAME_MAX))
            return refuse_field(violation, -EINVAL, field, "is no tenant's name");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(p->tenants.name[i], p->tenants.name[k]) == 0)
                return refuse_field(violation, -EINVAL, field, "is there twice");
    }
    qsort(p->tenants.name, p->tenants.count, sizeof p->tenants.name[0], compare_names);
    return 0;
}

int meta_pool_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    struct resource_pool *p = &resource->pool;
    const struct pool_numbers *n = &p->numbers;
    const int status = meta_numbers_validate(resource->kind, n, violation);
    if (status != 0)
        return status;
    if (n->flow_label != RESOURCE_UNSAID && n->udp_source_port != RESOURCE_UNSAID)
        return refuse_field(violation, -EINVAL, "udp_source_port",
                            "must not be set beside flow_label: they say the same");
    if ((n->sessions_ahead != RESOURCE_UNSAID && n->ahead_max < n->sessions_ahead) ||
        (n->arenas_ahead != RESOURCE_UNSAID && n->ahead_max < n->arenas_ahead))
        return refuse_field(violation, -EINVAL, "ahead_max",
                            "must not be less than sessions_ahead or arenas_ahead");
    return validate_tenants(p, violation);
}

/* ---- beside the others */

uint16_t meta_pool_id(const char *name)
{
    return (uint16_t)(2 + base_crc32c(0, name, strlen(name)) % (UINT16_MAX - 1));
}

static bool is_taken(const struct meta_resources *s, uint16_t id)
{
    bool taken = false;
    for (uint32_t i = 0; i < meta_resources_count(s, META_POOL); i++)
        taken |= meta_resources_at(s, META_POOL, i)->pool.numbers.number == id;
    return taken;
}

uint16_t meta_pool_free_id(const struct meta_resources *s, const char *name)
{
    uint16_t id = meta_pool_id(name);
    while (is_taken(s, id))
        id = id < UINT16_MAX ? (uint16_t)(id + 1) : 2;
    return id;
}

static bool has_tenant(const struct resource_pool *p, const char *tenant)
{
    return bsearch(tenant, p->tenants.name, p->tenants.count, sizeof p->tenants.name[0],
                   compare_names) != NULL;
}

const struct meta_resource *meta_resources_pool_of(const struct meta_resources *s,
                                                   const char *tenant)
{
    const struct meta_resource *pool = NULL;
    const char *after = "";
    while ((pool = meta_resources_after(s, META_POOL, after)) != NULL) {
        if (has_tenant(&pool->pool, tenant))
            return pool;
        after = pool->name;
    }
    return NULL;
}

static int choose_number(const struct meta_resources *s, const struct meta_resource *to,
                         uint64_t *number, struct meta_violation *violation)
{
    const struct meta_resource *there = meta_resources_find(s, META_POOL, to->name);
    char detail[128];
    *number = to->pool.numbers.number != RESOURCE_UNSAID ? to->pool.numbers.number
              : there != NULL                            ? there->pool.numbers.number
                                                         : meta_pool_id(to->name);
    if (there == NULL || there->pool.numbers.number == *number)
        return 0;
    snprintf(detail, sizeof detail,
             "is %" PRIu64 " as long as the pool is there: delete it, and create it anew",
             there->pool.numbers.number);
    return refuse_field(violation, -EPERM, "number", detail);
}

static int check_pair(const struct meta_resource *to, uint64_t number,
                      const struct meta_resource *other, struct meta_violation *violation)
{
    char field[32], detail[160];
    if (number == other->pool.numbers.number) {
        snprintf(detail, sizeof detail,
                 "%" PRIu64 " is that of pool %.31s: choose another `number`", number, other->name);
        return refuse_field(violation, -EEXIST, "number", detail);
    }
    for (uint32_t i = 0; i < to->pool.tenants.count; i++) {
        if (!has_tenant(&other->pool, to->pool.tenants.name[i]))
            continue;
        snprintf(field, sizeof field, "tenants[%" PRIu32 "]", i);
        snprintf(detail, sizeof detail,
                 "tenant %.31s is in pool %.31s: take it from that one first",
                 to->pool.tenants.name[i], other->name);
        return refuse_field(violation, -EEXIST, field, detail);
    }
    return 0;
}

int meta_pool_check(const struct meta_resources *s, const struct meta_resource *to,
                    uint64_t *number, struct meta_violation *violation)
{
    const struct meta_resource *other;
    const char *after = "";
    int status = choose_number(s, to, number, violation);
    while (status == 0 && (other = meta_resources_after(s, META_POOL, after)) != NULL) {
        after = other->name;
        if (strcmp(other->name, to->name) != 0)
            status = check_pair(to, *number, other, violation);
    }
    return status;
}
