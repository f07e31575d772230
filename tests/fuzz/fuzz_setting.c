/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of PUT /v1/tenants/{name} and of all else that operators set: what is believed is within
 * its bounds and says the same when it is written and read again, as the store does. And what
 * agents report. */
#include <string.h>

#include "base/assert.h"
#include "metaserver/json.h"
#include "metaserver/resources_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tenant(const struct kedge_tenant *t)
{
    KEDGE_ASSERT(t->uid_count <= KEDGE_TENANT_UIDS);
    for (uint32_t i = 0; i < t->uid_count; i++)
        KEDGE_ASSERT(t->uids[i].first <= t->uids[i].last && t->uids[i].last < UINT32_MAX);
    KEDGE_ASSERT(t->sessions <= KEDGE_SETTING_NUMBER_MAX && t->vqps <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->mrs <= KEDGE_SETTING_NUMBER_MAX && t->window_ops <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->window_bytes <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->control_ops_per_s <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->memory_bytes == 0 || (t->memory_bytes >= KEDGE_TENANT_MEMORY_MIN &&
                                          t->memory_bytes <= KEDGE_SETTING_NUMBER_MAX));
}

static void check_window(const struct kedge_window *w)
{
    const bool node = w->node[0] != '\0', gid = kedge_window_has_gid(w);
    KEDGE_ASSERT((w->scope == KEDGE_WINDOW_TENANT) == (w->tenant[0] != '\0'));
    KEDGE_ASSERT(w->scope == KEDGE_WINDOW_DESTINATION || (!node && !gid));
    KEDGE_ASSERT(!(node && gid) && (node || gid || w->pool[0] == '\0'));
    KEDGE_ASSERT(w->bytes <= KEDGE_SETTING_NUMBER_MAX && w->ops <= KEDGE_SETTING_NUMBER_MAX);
}

static void check_token(const struct kedge_token *t)
{
    KEDGE_ASSERT(t->gid_count <= KEDGE_TOKEN_GIDS);
    KEDGE_ASSERT((t->scope == KEDGE_SCOPE_AGENT) == (t->node[0] != '\0'));
    KEDGE_ASSERT((t->scope == KEDGE_SCOPE_AGENT) == (t->gid_count > 0));
    KEDGE_ASSERT((t->scope == KEDGE_SCOPE_WORKER) == (t->tenant[0] != '\0'));
}

static void check_labels(const struct kedge_labels *l)
{
    struct kedge_label one, before = {.key = ""};
    int count = 0;
    KEDGE_ASSERT(memchr(l->text, '\0', sizeof l->text) != NULL);
    for (const char *at = l->text; kedge_labels_next(at, &one); at = one.next, count++) {
        KEDGE_ASSERT(kedge_label_is_key(one.key) && kedge_label_is_value(one.value));
        KEDGE_ASSERT(strcmp(before.key, one.key) < 0);
        before = one;
    }
    KEDGE_ASSERT(count <= KEDGE_LABELS_MAX && kedge_labels_match(l, l));
}

static void check_node(const struct kedge_node *n)
{
    check_labels(&n->labels);
    KEDGE_ASSERT(n->cordoned || (!n->draining && n->reason[0] == '\0'));
    KEDGE_ASSERT(n->draining || n->grace_ms == 0);
    for (const char *c = n->reason; *c != '\0'; c++)
        KEDGE_ASSERT((unsigned char)*c >= ' ');
}

static void check_pool(const struct kedge_pool *p)
{
    check_labels(&p->nodes);
    for (int i = 0; i < KEDGE_POOL_NUMBERS; i++) {
        uint32_t min, max;
        kedge_pool_number_bounds((enum kedge_pool_number)i, &min, &max);
        KEDGE_ASSERT(p->number[i] == KEDGE_POOL_UNSAID ||
                     (p->number[i] >= min && p->number[i] <= max));
    }
    KEDGE_ASSERT(p->lease_ms == 0 || (p->lease_ms >= KEDGE_POOL_LEASE_MIN_MS &&
                                      p->lease_ms <= KEDGE_POOL_LEASE_MAX_MS));
    KEDGE_ASSERT(p->grace_ms == KEDGE_POOL_NEVER || p->grace_ms <= KEDGE_GRACE_MAX_MS);
    KEDGE_ASSERT(p->tenant_count <= KEDGE_POOL_TENANTS);
    for (uint32_t i = 0; i < p->tenant_count; i++) {
        KEDGE_ASSERT(kedge_setting_is_name(p->tenants[i], KEDGE_TENANT_NAME_MAX));
        for (uint32_t k = 0; k < i; k++)
            KEDGE_ASSERT(strcmp(p->tenants[i], p->tenants[k]) != 0);
    }
}

static void check_kind(const struct kedge_setting *s)
{
    switch (s->kind) {
    case KEDGE_TENANT:
        check_tenant(&s->tenant);
        return;
    case KEDGE_WINDOW:
        check_window(&s->window);
        return;
    case KEDGE_TOKEN:
        check_token(&s->token);
        return;
    case KEDGE_NODE:
        check_node(&s->node);
        return;
    case KEDGE_POOL:
        check_pool(&s->pool);
        return;
    case KEDGE_LEASE:
        KEDGE_ASSERT(kedge_held_is_id(s->revocation.id));
        return;
    case KEDGE_TRAIL_KINDS:
        return;
    }
}

/* What an agent says of it. */
static void check_report(const uint8_t *data, size_t size)
{
    struct kedge_meta_report r;
    struct kedge_fault fault = {.field = ""};
    uint32_t incarnation;
    if (kedge_json_report(data, size, &incarnation, &r, &fault) == 0)
        KEDGE_ASSERT(r.reported && memchr(r.why, '\0', sizeof r.why) != NULL);
    else
        KEDGE_ASSERT(fault.detail[0] != '\0');
}

static void check(enum kedge_setting_kind kind, const uint8_t *data, size_t size)
{
    struct kedge_setting setting, again;
    struct kedge_fault fault = {.field = ""};
    struct kedge_text first, second;
    if (kedge_json_setting(kind, "x", data, size, &setting, &fault) != 0) {
        KEDGE_ASSERT(fault.detail[0] != '\0');
        KEDGE_ASSERT(memchr(fault.field, '\0', sizeof fault.field) != NULL);
        return;
    }
    KEDGE_ASSERT(setting.kind == kind && strcmp(setting.name, "x") == 0);
    check_kind(&setting);
    kedge_text_init(&first, 1 << 16);
    kedge_text_init(&second, 1 << 16);
    kedge_json_write_body(&first, &setting);
    KEDGE_ASSERT(kedge_json_setting(kind, "x", first.data, first.length, &again, &fault) == 0);
    kedge_json_write_body(&second, &again);
    KEDGE_ASSERT(strcmp(kedge_text_str(&first), kedge_text_str(&second)) == 0);
    kedge_text_fini(&first);
    kedge_text_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < KEDGE_TRAIL_KINDS; kind++)
        check((enum kedge_setting_kind)kind, data, size);
    check_report(data, size);
    return 0;
}
