/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "resources_private.h"

struct meta_resources {
    uint64_t revision;
    struct {
        char *items; /* by name; each of its kind's bytes */
        uint32_t count;
    } of[META_RESOURCE_KINDS];
    struct meta_resource_change *trail; /* a ring */
    uint32_t trail_size, trail_first, trail_count;
};

static int validate_tenant(struct meta_resource *resource, struct meta_violation *violation);
static int validate_window(struct meta_resource *resource, struct meta_violation *violation);
static int validate_revocation(struct meta_resource *resource, struct meta_violation *violation);
static int validate_restore(struct meta_resource *resource, struct meta_violation *violation);

static const struct kind {
    const char *name;
    size_t bytes; /* that one takes */
    uint32_t room;
    uint32_t name_max; /* characters */
    int (*validate)(struct meta_resource *resource, struct meta_violation *violation);
} kinds[] = {
#define UP_TO(member)                                                                              \
    (offsetof(struct meta_resource, member) + sizeof((struct meta_resource *)0)->member)
    [META_TENANT] = {"tenant", UP_TO(tenant), RESOURCE_TENANTS_MAX, RESOURCE_TENANT_NAME_MAX,
                     validate_tenant},
    [META_WINDOW] = {"window", UP_TO(window), RESOURCE_WINDOWS_MAX, RESOURCE_WINDOW_NAME_MAX,
                     validate_window},
    [META_TOKEN] = {"token", UP_TO(token), META_TOKENS_MAX, RESOURCE_TOKEN_NAME_MAX,
                    meta_token_validate},
    [META_NODE] = {"node", UP_TO(node), META_NODE_SPECS_MAX, RESOURCE_NODE_NAME_MAX,
                   meta_node_spec_validate},
    [META_POOL] = {"pool", UP_TO(pool), RESOURCE_POOLS_MAX, RESOURCE_POOL_NAME_MAX,
                   meta_pool_validate},
    [META_LEASE] = {"lease", UP_TO(revocation), 0, RESOURCE_NODE_NAME_MAX, validate_revocation},
    [META_RESTORE] = {"restore", UP_TO(restore), 0, META_RESOURCE_NAME_BYTES - 1, validate_restore},
#undef UP_TO
};

const char *meta_resource_kind_name(enum meta_resource_kind kind)
{
    return kinds[kind].name;
}

uint32_t meta_resource_name_max(enum meta_resource_kind kind)
{
    return kinds[kind].name_max;
}

int meta_resource_kind_parse(const char *name, enum meta_resource_kind *out)
{
    for (int i = 0; i < META_TRAIL_KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *out = (enum meta_resource_kind)i;
            return 0;
        }
    return -EINVAL;
}

struct meta_resources *meta_resources_new(uint32_t trail)
{
    struct meta_resources *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    BASE_ASSERT(trail >= 1);
    s->trail_size = trail;
    s->trail = calloc(trail, sizeof *s->trail);
    bool all = s->trail != NULL;
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++) {
        BASE_ASSERT(kinds[kind].bytes % _Alignof(struct meta_resource) == 0);
        s->of[kind].items = calloc(kinds[kind].room, kinds[kind].bytes);
        all &= s->of[kind].items != NULL;
    }
    if (all)
        return s;
    meta_resources_free(s);
    return NULL;
}

void meta_resources_free(struct meta_resources *s)
{
    if (s == NULL)
        return;
    for (int kind = 0; kind < META_RESOURCE_KINDS; kind++)
        free(s->of[kind].items);
    for (uint32_t i = 0; s->trail != NULL && i < s->trail_size; i++)
        free(s->trail[i].foreign);
    free(s->trail);
    free(s);
}

uint32_t meta_resources_trail_size(const struct meta_resources *s)
{
    return s->trail_size;
}

uint64_t meta_resources_revision(const struct meta_resources *s)
{
    return s->revision;
}

uint32_t meta_resources_count(const struct meta_resources *s, enum meta_resource_kind kind)
{
    return s->of[kind].count;
}

/* A resource that is kept has memory behind it for its own kind alone (a token's takes a seventh of
 * a pool's): this copies it, an assignment does not. */
static void copy_resource(struct meta_resource *to, const struct meta_resource *from)
{
    memcpy(to, from, kinds[from->kind].bytes);
}

static struct meta_resource *item_at(const struct meta_resources *s, enum meta_resource_kind kind,
                                     uint32_t at)
{
    return (struct meta_resource *)(void *)(s->of[kind].items + at * kinds[kind].bytes);
}

const struct meta_resource *meta_resources_at(const struct meta_resources *s,
                                              enum meta_resource_kind kind, uint32_t i)
{
    BASE_ASSERT(i < s->of[kind].count);
    return item_at(s, kind, i);
}

/* How many names are below this one: its index, or where it belongs. */
static uint32_t place_of(const struct meta_resources *s, enum meta_resource_kind kind,
                         const char *name)
{
    uint32_t at = 0, end = s->of[kind].count;
    while (at < end) {
        uint32_t middle = at + (end - at) / 2;
        if (strcmp(item_at(s, kind, middle)->name, name) < 0)
            at = middle + 1;
        else
            end = middle;
    }
    return at;
}

const struct meta_resource *meta_resources_find(const struct meta_resources *s,
                                                enum meta_resource_kind kind, const char *name)
{
    uint32_t at = place_of(s, kind, name);
    return at < s->of[kind].count && strcmp(item_at(s, kind, at)->name, name) == 0
               ? item_at(s, kind, at)
               : NULL;
}

const struct meta_resource *meta_resources_after(const struct meta_resources *s,
                                                 enum meta_resource_kind kind, const char *after)
{
    uint32_t at = place_of(s, kind, after);
    if (at < s->of[kind].count && strcmp(item_at(s, kind, at)->name, after) == 0)
        at++;
    return at < s->of[kind].count ? item_at(s, kind, at) : NULL;
}

/* ---- what is right by itself */

static int refuse_field(struct meta_violation *violation, int status, const char *field,
                        const char *detail)
{
    snprintf(violation->field, sizeof violation->field, "%s", field);
    snprintf(violation->detail, sizeof violation->detail, "%s", detail);
    return status;
}

bool meta_resource_is_name(const char *name, uint32_t max)
{
    return base_parse_name(name, max) == 0;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct resource_uid_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

int meta_numbers_validate(enum meta_resource_kind kind, const void *numbers,
                          struct meta_violation *violation)
{
    char must[RESOURCE_MUST_BYTES];
    const struct resource_field *wrong =
        resource_numbers_check(resource_table((enum resource_kind)kind), numbers);
    return wrong == NULL
               ? 0
               : refuse_field(violation, -EINVAL, wrong->name, resource_number_must(wrong, must));
}

static int validate_tenant(struct meta_resource *resource, struct meta_violation *violation)
{
    struct resource_tenant *t = &resource->tenant;
    char field[64];
    BASE_ASSERT(t->uids.count <= RESOURCE_UIDS_MAX);
    for (uint32_t i = 0; i < t->uids.count; i++) {
        snprintf(field, sizeof field, "uids[%" PRIu32 "]", i);
        /* (uid_t)-1 means nobody in particular in every system call. */
        if (t->uids.range[i].first > t->uids.range[i].last || t->uids.range[i].last == UINT32_MAX)
            return refuse_field(violation, -EINVAL, field,
                                "must be a uid below 4294967295, or a range of them such as "
                                "\"1000-1999\"");
        for (uint32_t k = 0; k < i; k++)
            if (t->uids.range[i].first <= t->uids.range[k].last &&
                t->uids.range[k].first <= t->uids.range[i].last)
                return refuse_field(violation, -EINVAL, field, "has a uid that an earlier one has");
    }
    qsort(t->uids.range, t->uids.count, sizeof t->uids.range[0], compare_ranges);
    return meta_numbers_validate(resource->kind, &t->numbers, violation);
}

bool meta_window_has_gid(const struct resource_window *w)
{
    static const uint8_t none[sizeof w->gid];
    return memcmp(w->gid, none, sizeof none) != 0;
}

/* Which one, of windows that are for one destination alone. */
static int validate_destination(const struct resource_window *w, struct meta_violation *violation)
{
    const bool node = w->node[0] != '\0', gid = meta_window_has_gid(w), pool = w->pool[0] != '\0';
    if (w->scope != RESOURCE_WINDOW_DESTINATION && (node || gid || pool))
        return refuse_field(violation, -EINVAL,
                            node  ? "node"
                            : gid ? "gid"
                                  : "pool",
                            "is for the scope destination alone");
    if (node && gid)
        return refuse_field(violation, -EINVAL, "gid",
                            "names the destination, as node does: say one of them");
    if (pool && !node && !gid)
        return refuse_field(violation, -EINVAL, "pool",
                            "is for a window that names a node or a gid");
    if (node && !meta_resource_is_name(w->node, sizeof w->node - 1))
        return refuse_field(violation, -EINVAL, "node", "is no node's id");
    if (pool && !meta_resource_is_name(w->pool, RESOURCE_POOL_NAME_MAX))
        return refuse_field(violation, -EINVAL, "pool", "is no pool's name");
    return 0;
}

static int validate_window(struct meta_resource *resource, struct meta_violation *violation)
{
    const struct resource_window *w = &resource->window;
    if (w->scope == RESOURCE_WINDOW_TENANT && w->tenant[0] == '\0')
        return refuse_field(violation, -EINVAL, "tenant", "is missing: the scope is a tenant");
    if (w->scope != RESOURCE_WINDOW_TENANT && w->tenant[0] != '\0')
        return refuse_field(violation, -EINVAL, "tenant", "is for the scope tenant alone");
    if (w->tenant[0] != '\0' && !meta_resource_is_name(w->tenant, RESOURCE_TENANT_NAME_MAX))
        return refuse_field(violation, -EINVAL, "tenant", "is no tenant's name");
    int status = validate_destination(w, violation);
    return status == 0 ? meta_numbers_validate(resource->kind, &w->numbers, violation) : status;
}

bool meta_proxy_is_id(const char *id)
{
    size_t length = strlen(id);
    return length >= 1 && length < META_PROXY_ID_BYTES && strspn(id, "0123456789abcdef-") == length;
}

static int validate_revocation(struct meta_resource *resource, struct meta_violation *violation)
{
    return meta_proxy_is_id(resource->revocation.id)
               ? 0
               : refuse_field(violation, -EINVAL, "", "names neither a lease nor a worker");
}

static int validate_restore(struct meta_resource *resource, struct meta_violation *violation)
{
    return resource->restore.revision <= RESOURCE_NUMBER_MAX
               ? 0
               : refuse_field(violation, -EINVAL, "revision", "must be at most 9007199254740992");
}

int meta_resource_validate(struct meta_resource *resource, struct meta_violation *violation)
{
    const struct kind *kind = &kinds[resource->kind];
    char detail[160];
    if (meta_resource_is_name(resource->name, kind->name_max))
        return kind->validate(resource, violation);
    snprintf(detail, sizeof detail,
             "a %s's name is 1 to %" PRIu32
             " of a-z, 0-9, '.' and '-', and begins with a letter or digit",
             kind->name, kind->name_max);
    return refuse_field(violation, -EINVAL, "name", detail);
}

/* ---- plans */

static bool is_same(const struct meta_resource *a, const struct meta_resource *b)
{
    return resource_same(resource_table((enum resource_kind)a->kind), &a->tenant, &b->tenant) &&
           (a->kind != META_TOKEN ||
            memcmp(a->token.hash, b->token.hash, sizeof a->token.hash) == 0);
}

static int check_match(const struct meta_resource *there, const struct meta_resource_match *match,
                       struct meta_violation *violation)
{
    char detail[128];
    bool found = false;
    if (match->absent && there != NULL)
        return refuse_field(violation, -EREMCHG, "If-None-Match",
                            "there is one of that name already");
    if (!match->any && !match->listed)
        return 0;
    if (there == NULL)
        return refuse_field(violation, -EREMCHG, "If-Match", "there is none of that name");
    for (uint32_t i = 0; i < match->count; i++)
        found |= match->revision[i] == there->revision;
    if (match->any || found)
        return 0;
    snprintf(detail, sizeof detail,
             "it has been changed: its revision is %" PRIu64 "; get it, and change that one",
             there->revision);
    return refuse_field(violation, -EREMCHG, "If-Match", detail);
}

/* Whose is a uid of t: a tenant other than `name`. */
static int check_uids(const struct meta_resources *s, const struct meta_resource *to,
                      struct meta_violation *violation)
{
    char field[64], detail[128];
    for (uint32_t n = 0; n < s->of[META_TENANT].count; n++) {
        const struct meta_resource *other = item_at(s, META_TENANT, n);
        if (strcmp(other->name, to->name) == 0)
            continue;
        for (uint32_t i = 0; i < to->tenant.uids.count; i++)
            for (uint32_t k = 0; k < other->tenant.uids.count; k++) {
                const struct resource_uid_range *a = &to->tenant.uids.range[i],
                                                *b = &other->tenant.uids.range[k];
                if (a->first > b->last || b->first > a->last)
                    continue;
                snprintf(field, sizeof field, "uids[%" PRIu32 "]", i);
                snprintf(detail, sizeof detail,
                         "uid %" PRIu32 " belongs to tenant %.31s: take it from that one first",
                         a->first > b->first ? a->first : b->first, other->name);
                return refuse_field(violation, -EEXIST, field, detail);
            }
    }
    return 0;
}

static int check_references(const struct meta_resources *s, const struct meta_resource *to,
                            struct meta_violation *violation)
{
    if (to->kind == META_TENANT)
        return check_uids(s, to, violation);
    if (to->kind == META_TOKEN)
        return meta_token_check(s, to, violation);
    if (to->kind == META_WINDOW && to->window.scope == RESOURCE_WINDOW_TENANT &&
        meta_resources_find(s, META_TENANT, to->window.tenant) == NULL)
        return refuse_field(violation, -ENOENT, "tenant",
                            "there is no such tenant: create it first");
    return 0;
}

static void begin_change(const struct meta_resources *s, enum meta_resource_kind kind,
                         const char *name, const struct meta_resource *there,
                         struct meta_resource_change *out)
{
    *out = (struct meta_resource_change){.revision = s->revision + 1, .kind = kind};
    snprintf(out->name, sizeof out->name, "%s", name);
    out->had = there != NULL;
    if (there != NULL)
        copy_resource(&out->from, there);
}

int meta_resources_plan_put(const struct meta_resources *s, const struct meta_resource *to,
                            const struct meta_resource_match *match,
                            struct meta_resource_change *out, struct meta_violation *violation)
{
    struct meta_resource wanted = *to;
    int status = meta_resource_validate(&wanted, violation);
    if (status != 0)
        return status;
    const struct meta_resource *there = meta_resources_find(s, to->kind, to->name);
    status = check_match(there, match, violation);
    if (status == 0) /* in the order that the client knows */
        status = to->kind == META_POOL
                     ? meta_pool_check(s, to, &wanted.pool.numbers.number, violation)
                     : check_references(s, to, violation);
    if (status == 0 && there == NULL && s->of[to->kind].count == kinds[to->kind].room) {
        char detail[64];
        snprintf(detail, sizeof detail, "there are %" PRIu32 " already: delete one",
                 kinds[to->kind].room);
        status = refuse_field(violation, -ENOSPC, "", detail);
    }
    if (status != 0)
        return status;
    begin_change(s, to->kind, to->name, there, out);
    out->has = true;
    out->to = wanted;
    if (there != NULL && is_same(there, &wanted))
        out->revision = 0;
    out->to.revision = out->revision != 0 ? out->revision : there->revision;
    return 0;
}

int meta_resources_plan_remove(const struct meta_resources *s, enum meta_resource_kind kind,
                               const char *name, const struct meta_resource_match *match,
                               struct meta_resource_change *out, struct meta_violation *violation)
{
    char detail[160];
    const struct meta_resource *there = meta_resources_find(s, kind, name);
    int status = check_match(there, match, violation);
    if (status != 0)
        return status;
    if (there == NULL)
        return refuse_field(violation, -ENOENT, "", "");
    for (uint32_t i = 0; kind == META_TENANT && i < s->of[META_WINDOW].count; i++) {
        const struct meta_resource *w = item_at(s, META_WINDOW, i);
        if (strcmp(w->window.tenant, name) != 0)
            continue;
        snprintf(detail, sizeof detail, "window %.63s refers to it: delete that one first",
                 w->name);
        return refuse_field(violation, -EBUSY, "", detail);
    }
    const struct meta_resource *token = kind == META_TENANT ? meta_token_of(s, name) : NULL;
    if (token != NULL) {
        snprintf(detail, sizeof detail, "token %.63s refers to it: delete that one first",
                 token->name);
        return refuse_field(violation, -EBUSY, "", detail);
    }
    begin_change(s, kind, name, there, out);
    return 0;
}

void meta_resources_plan_revocation(const struct meta_resources *s, const char *node,
                                    const struct meta_revocation *revocation,
                                    struct meta_resource_change *out)
{
    const struct meta_resource from = {.kind = META_LEASE, .revocation = *revocation};
    begin_change(s, META_LEASE, node, &from, out);
    snprintf(out->from.name, sizeof out->from.name, "%s", node);
}

/* ---- changing */

static void set_item(struct meta_resources *s, const struct meta_resource *to)
{
    uint32_t at = place_of(s, to->kind, to->name), *count = &s->of[to->kind].count;
    if (at == *count || strcmp(item_at(s, to->kind, at)->name, to->name) != 0) {
        BASE_ASSERT(*count < kinds[to->kind].room);
        memmove(item_at(s, to->kind, at + 1), item_at(s, to->kind, at),
                (*count - at) * kinds[to->kind].bytes);
        ++*count;
    }
    copy_resource(item_at(s, to->kind, at), to);
}

static void unset_item(struct meta_resources *s, enum meta_resource_kind kind, const char *name)
{
    uint32_t at = place_of(s, kind, name), *count = &s->of[kind].count;
    BASE_ASSERT(at < *count && strcmp(item_at(s, kind, at)->name, name) == 0);
    --*count;
    memmove(item_at(s, kind, at), item_at(s, kind, at + 1), (*count - at) * kinds[kind].bytes);
}

static void add_to_trail(struct meta_resources *s, const struct meta_resource_change *change)
{
    if (s->trail_count == s->trail_size) {
        s->trail_first = (s->trail_first + 1) % s->trail_size;
        s->trail_count--;
    }
    struct meta_resource_change *entry =
        &s->trail[(s->trail_first + s->trail_count++) % s->trail_size];
    free(entry->foreign);
    *entry = *change;
    if (change->kind == META_TOKEN) {
        memset(entry->from.token.hash, 0, sizeof entry->from.token.hash);
        memset(entry->to.token.hash, 0, sizeof entry->to.token.hash);
    }
    s->revision = change->revision;
}

void meta_resources_apply(struct meta_resources *s, const struct meta_resource_change *change)
{
    if (change->revision == 0)
        return;
    BASE_ASSERT(change->revision == s->revision + 1);
    if (change->has)
        set_item(s, &change->to);
    else if (change->kind != META_LEASE)
        unset_item(s, change->kind, change->name);
    add_to_trail(s, change);
}

void meta_resources_void_token(struct meta_resources *s, const char *name)
{
    struct meta_resource *token = item_at(s, META_TOKEN, place_of(s, META_TOKEN, name));
    BASE_ASSERT(strcmp(token->name, name) == 0);
    memset(token->token.hash, 0, sizeof token->token.hash);
}

uint64_t meta_resources_forgets(const struct meta_resources *s)
{
    return s->trail_count == s->trail_size ? s->trail[s->trail_first].revision : 0;
}

int meta_resources_restore(struct meta_resources *s, const struct meta_resource *resource,
                           struct meta_violation *violation)
{
    const struct meta_resource_match match = {.absent = true};
    struct meta_resource_change change;
    int status = meta_resources_plan_put(s, resource, &match, &change, violation);
    if (status != 0)
        return status;
    change.to.revision = resource->revision;
    set_item(s, &change.to);
    if (resource->revision > s->revision)
        s->revision = resource->revision;
    return 0;
}

int meta_resources_restore_change(struct meta_resources *s,
                                  const struct meta_resource_change *change)
{
    uint64_t last = s->trail_count == 0
                        ? change->revision - 1
                        : s->trail[(s->trail_first + s->trail_count - 1) % s->trail_size].revision;
    uint64_t revision = s->revision;
    const bool leaves_out = change->kind == META_RESTORE || change->kind == META_UNKNOWN;
    struct meta_resource_change own = *change;
    if (change->revision == 0 ||
        !(leaves_out ? change->revision > last : change->revision == last + 1))
        return -EINVAL;
    if (change->foreign != NULL && meta_foreign_copy(change->foreign, &own.foreign) != 0)
        return -ENOMEM;
    add_to_trail(s, &own);
    s->revision = revision > change->revision ? revision : change->revision;
    return 0;
}

/* ---- the trail */

/* Revisions of the trail rise by one, but for a restore's, which leaves out some, and for what is
 * not known. */
const struct meta_resource_change *meta_resources_change_after(const struct meta_resources *s,
                                                               uint64_t revision)
{
    uint32_t from = 0, to = s->trail_count;
    while (from < to) {
        const uint32_t at = from + (to - from) / 2;
        if (s->trail[(s->trail_first + at) % s->trail_size].revision > revision)
            to = at;
        else
            from = at + 1;
    }
    return from < s->trail_count ? &s->trail[(s->trail_first + from) % s->trail_size] : NULL;
}

/* One that a restore has left out is of a life that is over: what it stood for is not known. */
bool meta_resources_trail_has(const struct meta_resources *s, uint64_t revision)
{
    if (revision >= s->revision)
        return revision == s->revision;
    if (s->trail_count == 0 || revision + 1 < s->trail[s->trail_first].revision)
        return false;
    return meta_resources_change_after(s, revision)->revision == revision + 1 ||
           meta_resources_change_after(s, revision - 1)->revision == revision;
}
