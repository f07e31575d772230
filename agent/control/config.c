/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a configuration once it is there: daemon/config_file.c reads it. */
#include <string.h>

#include "control/config.h"
#include "schema/record.h"

uint32_t agent_tenant_id(const char *name)
{
    return schema_tenant_number(name);
}

static uint64_t narrower_limit(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

struct agent_limits agent_limits_narrower(struct agent_limits a, struct agent_limits b)
{
    return (struct agent_limits){.bytes = narrower_limit(a.bytes, b.bytes),
                                 .ops = narrower_limit(a.ops, b.ops)};
}

bool agent_uids_overlap(const struct agent_tenant_config *a, const struct agent_tenant_config *b,
                        uid_t *uid)
{
    for (uint32_t i = 0; i < a->uid_ranges; i++)
        for (uint32_t k = 0; k < b->uid_ranges; k++)
            if (a->uids[i].first <= b->uids[k].last && b->uids[k].first <= a->uids[i].last) {
                *uid = a->uids[i].first > b->uids[k].first ? a->uids[i].first : b->uids[k].first;
                return true;
            }
    return false;
}

bool agent_tokens_overlap(const struct agent_tenant_config *a, const struct agent_tenant_config *b)
{
    for (uint32_t i = 0; i < a->tokens; i++)
        for (uint32_t k = 0; k < b->tokens; k++)
            if (base_digest_same(a->token[i].sha256, b->token[k].sha256))
                return true;
    return false;
}

static const struct agent_tenant_config *same_name(const struct agent_config *c, const char *name)
{
    for (uint32_t i = 0; i < c->tenants; i++)
        if (strcmp(c->tenant[i].name, name) == 0)
            return &c->tenant[i];
    return NULL;
}

void agent_tenant_config_take_tokens(struct agent_tenant_config *to,
                                     const struct agent_tenant_config *from)
{
    memcpy(to->token, from->token, sizeof to->token);
    to->tokens = from->tokens;
}

bool agent_config_update(struct agent_config *c, const struct agent_config *from)
{
    c->window = from->window;
    c->window_policy = from->window_policy;
    c->destination_window = from->destination_window;
    for (uint32_t i = 0; i < c->tenants; i++) {
        const struct agent_tenant_config *t = same_name(from, c->tenant[i].name);
        if (t == NULL)
            continue;
        c->tenant[i].window = t->window;
        agent_tenant_config_take_tokens(&c->tenant[i], t);
    }
    /* Both were zeroed before they were filled in. */
    return memcmp(c, from, sizeof *c) != 0;
}
