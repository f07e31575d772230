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

static const struct {
    const char *name;
    uint32_t min, max;
} numbers[] = {
    [META_POOL_SESSIONS_AHEAD] = {"sessions_ahead", 1, META_POOL_AHEAD_MAX},
    [META_POOL_ARENAS_AHEAD] = {"arenas_ahead", 1, META_POOL_AHEAD_MAX},
    [META_POOL_AHEAD_MOST] = {"ahead_max", 1, META_POOL_AHEAD_MAX},
    [META_POOL_DCIS] = {"dcis", 2, META_POOL_DCIS_MAX},
    [META_POOL_SPARES] = {"spares", 0, META_POOL_DCIS_MAX},
    [META_POOL_QUEUE_PAIRS_AHEAD] = {"queue_pairs_ahead", 1, META_POOL_AHEAD_MAX},
    [META_POOL_CONNECTIONS] = {"connections", 1, META_POOL_CONNECTIONS_MAX},
    [META_POOL_RESPONDERS] = {"responders", 1, META_POOL_RESPONDERS_MAX},
    [META_POOL_SERVICE_LEVEL] = {"service_level", 0, 15},
    [META_POOL_TRAFFIC_CLASS] = {"traffic_class", 0, 255},
    [META_POOL_FLOW_LABEL] = {"flow_label", 1, 0xfffff},
    [META_POOL_UDP_SOURCE_PORT] = {"udp_source_port", 49152, 65535},
    [META_POOL_PKEY_INDEX] = {"pkey_index", 0, 65535},
    [META_POOL_MTU] = {"mtu", 256, 4096},
};

const char *meta_pool_number_name(enum meta_pool_number number)
{
    return numbers[number].name;
}

void meta_pool_number_bounds(enum meta_pool_number number, uint32_t *min, uint32_t *max)
{
    *min = numbers[number].min;
    *max = numbers[number].max;
}

static int refuse_field(struct meta_violation *violation, int status, const char *field,
                        const char *detail)
{
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return status;
}

/* ---- by itself ------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int validate_tenants(struct meta_pool *p, struct meta_violation *violation)
{
    char field[32];
    KEDGE_ASSERT(p->tenant_count <= META_POOL_TENANTS);
    for (uint32_t i = 0; i < p->tenant_count; i++) {
        snprintf(field, sizeof field, "tenants[%" PRIu32 "]", i);
        if (!meta_resource_is_name(p->tenants[i], META_TENANT_NAME_MAX))
            return refuse_field(violation, -EINVAL, field, "is no tenant's name");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(p->tenants[i], p->tenants[k]) == 0)
                return refuse_field(violation, -EINVAL, field, "is there twice");
    }
    qsort(p->tenants, p->tenant_count, sizeof p->tenants[0], compare_names);
    return 0;
}

int meta_pool_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    struct meta_pool *p = &resource->pool;
    const uint32_t *number = p->number, most = number[META_POOL_AHEAD_MOST];
    char detail[64];
    for (int i = 0; i < META_POOL_NUMBERS; i++) {
        if (number[i] == META_POOL_UNSAID ||
            (number[i] >= numbers[i].min && number[i] <= numbers[i].max))
            continue;
        snprintf(detail, sizeof detail, "must be a number from %" PRIu32 " to %" PRIu32,
                 numbers[i].min, numbers[i].max);
        return refuse_field(violation, -EINVAL, numbers[i].name, detail);
    }
    if (number[META_POOL_MTU] != META_POOL_UNSAID &&
        (number[META_POOL_MTU] & (number[META_POOL_MTU] - 1)) != 0)
        return refuse_field(violation, -EINVAL, "mtu", "must be 256, 512, 1024, 2048 or 4096");
    if (number[META_POOL_FLOW_LABEL] != META_POOL_UNSAID &&
        number[META_POOL_UDP_SOURCE_PORT] != META_POOL_UNSAID)
        return refuse_field(violation, -EINVAL, "udp_source_port",
                            "must not be set beside flow_label: they say the same");
    for (int i = META_POOL_SESSIONS_AHEAD; i <= META_POOL_ARENAS_AHEAD; i++)
        if (number[i] != META_POOL_UNSAID && most < number[i])
            return refuse_field(violation, -EINVAL, "ahead_max",
                                "must not be less than sessions_ahead or arenas_ahead");
    if (p->lease_ms != 0 &&
        (p->lease_ms < META_POOL_LEASE_MIN_MS || p->lease_ms > META_POOL_LEASE_MAX_MS))
        return refuse_field(violation, -EINVAL, "mr_lease_ms",
                            "must be a number from 10 to 3600000");
    if (p->grace_ms != META_POOL_NEVER && p->grace_ms > META_GRACE_MAX_MS)
        return refuse_field(violation, -EINVAL, "grace_ms", "must be at most 9007199254: 104 days");
    return validate_tenants(p, violation);
}

bool meta_pool_same(const struct meta_resource *one, const struct meta_resource *other)
{
    const struct meta_pool *a = &one->pool, *b = &other->pool;
    bool same = strcmp(a->nodes.text, b->nodes.text) == 0 && a->id == b->id &&
                memcmp(a->number, b->number, sizeof a->number) == 0 && a->lease_ms == b->lease_ms &&
                a->grace_ms == b->grace_ms && a->tenant_count == b->tenant_count;
    for (uint32_t i = 0; same && i < a->tenant_count; i++)
        same = strcmp(a->tenants[i], b->tenants[i]) == 0;
    return same;
}

/* ---- beside the others ---------------------------------------------------------------------- */

uint16_t meta_pool_id(const char *name)
{
    return (uint16_t)(2 + kedge_crc32c(0, name, strlen(name)) % (UINT16_MAX - 1));
}

static bool is_taken(const struct meta_resources *s, uint16_t id)
{
    bool taken = false;
    for (uint32_t i = 0; i < meta_resources_count(s, META_POOL); i++)
        taken |= meta_resources_at(s, META_POOL, i)->pool.id == id;
    return taken;
}

uint16_t meta_pool_free_id(const struct meta_resources *s, const char *name)
{
    uint16_t id = meta_pool_id(name);
    while (is_taken(s, id))
        id = id < UINT16_MAX ? (uint16_t)(id + 1) : 2;
    return id;
}

static bool has_tenant(const struct meta_pool *p, const char *tenant)
{
    return bsearch(tenant, p->tenants, p->tenant_count, sizeof p->tenants[0], compare_names) !=
           NULL;
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

static int choose_id(const struct meta_resources *s, const struct meta_resource *to, uint16_t *id,
                     struct meta_violation *violation)
{
    const struct meta_resource *there = meta_resources_find(s, META_POOL, to->name);
    char detail[128];
    *id = to->pool.id != 0 ? to->pool.id : there != NULL ? there->pool.id : meta_pool_id(to->name);
    if (there == NULL || there->pool.id == *id)
        return 0;
    snprintf(detail, sizeof detail,
             "is %" PRIu16 " as long as the pool is there: delete it, and create it anew",
             there->pool.id);
    return refuse_field(violation, -EPERM, "number", detail);
}

static int check_pair(const struct meta_resource *to, uint16_t id,
                      const struct meta_resource *other, struct meta_violation *violation)
{
    char field[32], detail[160];
    if (id == other->pool.id) {
        snprintf(detail, sizeof detail,
                 "%" PRIu16 " is that of pool %.31s: choose another `number`", id, other->name);
        return refuse_field(violation, -EEXIST, "number", detail);
    }
    for (uint32_t i = 0; i < to->pool.tenant_count; i++) {
        if (!has_tenant(&other->pool, to->pool.tenants[i]))
            continue;
        snprintf(field, sizeof field, "tenants[%" PRIu32 "]", i);
        snprintf(detail, sizeof detail,
                 "tenant %.31s is in pool %.31s: take it from that one first", to->pool.tenants[i],
                 other->name);
        return refuse_field(violation, -EEXIST, field, detail);
    }
    return 0;
}

int meta_pool_check(const struct meta_resources *s, const struct meta_resource *to, uint16_t *id,
                    struct meta_violation *violation)
{
    const struct meta_resource *other;
    const char *after = "";
    int status = choose_id(s, to, id, violation);
    while (status == 0 && (other = meta_resources_after(s, META_POOL, after)) != NULL) {
        after = other->name;
        if (strcmp(other->name, to->name) != 0)
            status = check_pair(to, *id, other, violation);
    }
    return status;
}
