/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of PUT /v1/tenants/{name}, /v1/windows/{name} and /v1/tokens/{name}: what is believed is
 * within its bounds and says the same when it is written and read again, as the store does. */
#include <string.h>

#include "base/assert.h"
#include "metaserver/settings_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tenant(const struct kedge_tenant *t)
{
    KEDGE_ASSERT(t->uid_count <= KEDGE_TENANT_UIDS);
    for (uint32_t i = 0; i < t->uid_count; i++)
        KEDGE_ASSERT(t->uids[i].first <= t->uids[i].last && t->uids[i].last < UINT32_MAX);
    KEDGE_ASSERT(t->sessions <= KEDGE_SETTING_NUMBER_MAX && t->vqps <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->mrs <= KEDGE_SETTING_NUMBER_MAX && t->window_ops <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->window_bytes <= KEDGE_SETTING_NUMBER_MAX);
    KEDGE_ASSERT(t->memory_bytes == 0 || (t->memory_bytes >= KEDGE_TENANT_MEMORY_MIN &&
                                          t->memory_bytes <= KEDGE_SETTING_NUMBER_MAX));
}

static void check_window(const struct kedge_window *w)
{
    KEDGE_ASSERT((w->scope == KEDGE_WINDOW_TENANT) == (w->tenant[0] != '\0'));
    KEDGE_ASSERT(w->bytes <= KEDGE_SETTING_NUMBER_MAX && w->ops <= KEDGE_SETTING_NUMBER_MAX);
}

static void check_token(const struct kedge_token *t)
{
    KEDGE_ASSERT(t->gid_count <= KEDGE_TOKEN_GIDS);
    KEDGE_ASSERT((t->scope == KEDGE_SCOPE_AGENT) == (t->node[0] != '\0'));
    KEDGE_ASSERT((t->scope == KEDGE_SCOPE_AGENT) == (t->gid_count > 0));
    KEDGE_ASSERT(kedge_token_is_bare(t)); /* clients have no say in that */
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
    if (kind == KEDGE_TENANT)
        check_tenant(&setting.tenant);
    else if (kind == KEDGE_TOKEN)
        check_token(&setting.token);
    else
        check_window(&setting.window);
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
    check(KEDGE_TENANT, data, size);
    check(KEDGE_WINDOW, data, size);
    check(KEDGE_TOKEN, data, size);
    return 0;
}
