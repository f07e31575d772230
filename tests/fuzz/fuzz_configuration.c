/* SPDX-License-Identifier: Apache-2.0 */
/* What a metaserver tells an agent of its configuration: what is believed is within the bounds of
 * the agent's tables and ends its texts. */
#include <stdlib.h>
#include <string.h>

#include "control/desired.h"
#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
    BASE_ASSERT(memchr(text, '\0', size) != NULL);
}

static void check_pools(const struct agent_desired *s)
{
    BASE_ASSERT(s->pools <= AGENT_POOLS);
    for (uint32_t i = 0; i < s->pools; i++) {
        const struct agent_pool_config *p = &s->pool[i];
        check_text(p->name, sizeof p->name);
        struct agent_pool_config found = agent_desired_pool(s, p->name);
        BASE_ASSERT(strcmp(found.name, p->name) == 0 && found.numbers.number == p->numbers.number);
        BASE_ASSERT(p->numbers.grace_ms == RESOURCE_UNSAID ||
                    p->numbers.grace_ms < UINT64_MAX / 1000000);
        BASE_ASSERT(resource_numbers_check(resource_table(RESOURCE_POOL), &p->numbers) == NULL);
        for (uint32_t k = 0; k < i; k++)
            BASE_ASSERT(strcmp(s->pool[k].name, p->name) != 0 &&
                        (p->numbers.number == RESOURCE_UNSAID ||
                         s->pool[k].numbers.number != p->numbers.number));
    }
}

static void check_window(const struct agent_window_config *w)
{
    check_text(w->name, sizeof w->name);
    check_text(w->tenant, sizeof w->tenant);
    check_text(w->node, sizeof w->node);
    check_text(w->pool, sizeof w->pool);
    BASE_ASSERT(w->most.bytes != 0 || w->most.ops != 0);
    BASE_ASSERT(w->gids <= AGENT_WINDOW_GIDS && (w->one || w->gids == 0));
    BASE_ASSERT(w->scope == RESOURCE_WINDOW_DESTINATION || !w->one);
}

static void check_destinations(const struct agent_desired *s)
{
    static struct agent_destination found[AGENT_DESTINATIONS];
    uint32_t left;
    uint32_t count = agent_desired_destinations(s->window, s->windows, "default", found, &left);
    BASE_ASSERT(count <= AGENT_DESTINATIONS && (left == 0 || count == AGENT_DESTINATIONS));
    for (uint32_t i = 0; i < count; i++) {
        BASE_ASSERT(found[i].most.bytes != 0 || found[i].most.ops != 0);
        for (uint32_t k = 0; k < i; k++)
            BASE_ASSERT(memcmp(found[i].gid, found[k].gid, sizeof found[i].gid) != 0);
    }
}

static void check(const struct agent_desired *s)
{
    BASE_ASSERT(s->tenants <= AGENT_TENANTS && s->windows <= AGENT_WINDOWS);
    for (uint32_t i = 0; i < s->tenants; i++) {
        const struct agent_tenant_config *t = &s->tenant[i];
        check_text(t->name, sizeof t->name);
        check_text(t->pool, sizeof t->pool);
        BASE_ASSERT(t->name[0] != '\0' && t->uid_ranges <= AGENT_UID_RANGES);
        for (uint32_t k = 0; k < t->uid_ranges; k++)
            BASE_ASSERT(t->uids[k].first <= t->uids[k].last && t->uids[k].last < UINT32_MAX);
        BASE_ASSERT(t->tokens <= AGENT_TOKENS);
        BASE_ASSERT(t->sessions > 0 && t->memory > 0);
        (void)agent_desired_window(s, RESOURCE_WINDOW_TENANT, t->name);
    }
    for (uint32_t i = 0; i < s->windows; i++)
        check_window(&s->window[i]);
    check_destinations(s);
    BASE_ASSERT(s->node.cordoned || !s->node.draining);
    BASE_ASSERT(s->node.grace_ms == RESOURCE_UNSAID || s->node.grace_ms < UINT64_MAX / 1000000);
    check_text(s->node.reason, sizeof s->node.reason);
    for (const char *c = s->node.reason; *c != '\0'; c++)
        BASE_ASSERT((unsigned char)*c >= ' ');
    check_pools(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent_desired *s = malloc(sizeof *s);
    struct base_errbuf why = {.text = ""};
    BASE_ASSERT(s != NULL);
    if (agent_desired_decode((const char *)data, size, s, &why) == 0)
        check(s);
    else
        BASE_ASSERT(why.text[0] != '\0');
    free(s);
    return 0;
}
