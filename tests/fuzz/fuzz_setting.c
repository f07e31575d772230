/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of PUT /v1/tenants/{name} and of all else that operators set: what is believed is within
 * its bounds and says the same when it is written and read again, as the store does. And what
 * agents report. */
#include <string.h>

#include "base/assert.h"
#include "metaserver/json.h"
#include "metaserver/resources_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tenant(const struct resource_tenant *t)
{
    BASE_ASSERT(t->uids.count <= RESOURCE_UIDS_MAX);
    for (uint32_t i = 0; i < t->uids.count; i++)
        BASE_ASSERT(t->uids.range[i].first <= t->uids.range[i].last &&
                    t->uids.range[i].last < UINT32_MAX);
    BASE_ASSERT(resource_numbers_check(resource_table(RESOURCE_TENANT), &t->numbers) == NULL);
}

static void check_window(const struct resource_window *w)
{
    const bool node = w->node[0] != '\0', gid = meta_window_has_gid(w);
    BASE_ASSERT((w->scope == RESOURCE_WINDOW_TENANT) == (w->tenant[0] != '\0'));
    BASE_ASSERT(w->scope == RESOURCE_WINDOW_DESTINATION || (!node && !gid));
    BASE_ASSERT(!(node && gid) && (node || gid || w->pool[0] == '\0'));
    BASE_ASSERT(w->numbers.bytes <= RESOURCE_NUMBER_MAX && w->numbers.ops <= RESOURCE_NUMBER_MAX);
}

static void check_token(const struct meta_token *t)
{
    BASE_ASSERT(t->gids.count <= RESOURCE_GIDS_MAX);
    BASE_ASSERT((t->scope == RESOURCE_SCOPE_AGENT) == (t->node[0] != '\0'));
    BASE_ASSERT((t->scope == RESOURCE_SCOPE_AGENT) == (t->gids.count > 0));
    BASE_ASSERT((t->scope == RESOURCE_SCOPE_WORKER) == (t->tenant[0] != '\0'));
}

static void check_labels(const struct resource_labels *l)
{
    struct resource_label one, before = {.key = ""};
    int count = 0;
    BASE_ASSERT(memchr(l->text, '\0', sizeof l->text) != NULL);
    for (const char *at = l->text; resource_labels_next(at, &one); at = one.next, count++) {
        BASE_ASSERT(resource_label_is_key(one.key) && resource_label_is_value(one.value));
        BASE_ASSERT(strcmp(before.key, one.key) < 0);
        before = one;
    }
    BASE_ASSERT(count <= RESOURCE_LABELS_MAX && resource_labels_match(l, l));
}

static void check_node(const struct resource_node *n)
{
    check_labels(&n->labels);
    BASE_ASSERT(n->cordoned || (!n->draining && n->reason[0] == '\0'));
    BASE_ASSERT(n->draining || n->numbers.grace_ms == RESOURCE_UNSAID);
    for (const char *c = n->reason; *c != '\0'; c++)
        BASE_ASSERT((unsigned char)*c >= ' ');
}

static void check_pool(const struct resource_pool *p)
{
    check_labels(&p->nodes);
    BASE_ASSERT(p->numbers.dcis == RESOURCE_UNSAID ||
                (p->numbers.dcis >= 2 && p->numbers.dcis <= 32));
    BASE_ASSERT(resource_numbers_check(resource_table(RESOURCE_POOL), &p->numbers) == NULL);
    BASE_ASSERT(p->tenants.count <= RESOURCE_TENANTS_MAX);
    for (uint32_t i = 0; i < p->tenants.count; i++) {
        BASE_ASSERT(meta_resource_is_name(p->tenants.name[i], RESOURCE_TENANT_NAME_MAX));
        for (uint32_t k = 0; k < i; k++)
            BASE_ASSERT(strcmp(p->tenants.name[i], p->tenants.name[k]) != 0);
    }
}

static void check_kind(const struct meta_resource *s)
{
    switch (s->kind) {
    case META_TENANT:
        check_tenant(&s->tenant);
        return;
    case META_WINDOW:
        check_window(&s->window);
        return;
    case META_TOKEN:
        check_token(&s->token);
        return;
    case META_NODE:
        check_node(&s->node);
        return;
    case META_POOL:
        check_pool(&s->pool);
        return;
    case META_LEASE:
        BASE_ASSERT(meta_proxy_is_id(s->revocation.id));
        return;
    case META_RESTORE:
        BASE_ASSERT(s->restore.revision <= RESOURCE_NUMBER_MAX);
        return;
    case META_TRAIL_KINDS:
        return;
    }
}

/* What an agent says of it. */
static void check_report(const uint8_t *data, size_t size)
{
    struct meta_report r;
    struct meta_violation fault = {.field = ""};
    uint32_t incarnation;
    if (meta_json_report(data, size, &incarnation, &r, &fault) == 0)
        BASE_ASSERT(r.reported && memchr(r.why, '\0', sizeof r.why) != NULL);
    else
        BASE_ASSERT(fault.detail[0] != '\0');
}

static void check(enum meta_resource_kind kind, const uint8_t *data, size_t size)
{
    struct meta_resource setting, again;
    struct meta_violation fault = {.field = ""};
    struct base_text first, second;
    if (meta_json_resource(kind, "x", data, size, &setting, &fault) != 0) {
        BASE_ASSERT(fault.detail[0] != '\0');
        BASE_ASSERT(memchr(fault.field, '\0', sizeof fault.field) != NULL);
        return;
    }
    BASE_ASSERT(setting.kind == kind && strcmp(setting.name, "x") == 0);
    check_kind(&setting);
    base_text_init(&first, 1 << 16);
    base_text_init(&second, 1 << 16);
    meta_json_write_body(&first, &setting);
    BASE_ASSERT(meta_json_resource(kind, "x", first.data, first.length, &again, &fault) == 0);
    meta_json_write_body(&second, &again);
    BASE_ASSERT(strcmp(base_text_str(&first), base_text_str(&second)) == 0);
    base_text_fini(&first);
    base_text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < META_TRAIL_KINDS; kind++)
        check((enum meta_resource_kind)kind, data, size);
    check_report(data, size);
    return 0;
}
