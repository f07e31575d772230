/* SPDX-License-Identifier: Apache-2.0 */
/* What workers were sent and have not read (control/unread.h): who is sent no more. A connection
 * that is over lingers until its worker has read or closed its end, since the kernel counts until
 * then. */
#include <errno.h>
#include <stddef.h>

#include "agent.h"
#include "base/clock.h"
#include "bounds.h"
#include "connection.h"
#include "control/world_log.h"
#include "due.h"

enum {
    LOOKS_BEFORE = 8, /* of the tenant's, before its worker is sent more */
    LOOKS_A_TICK = 4, /* of each tenant's */
    MEASURE_S = 2,    /* what the kernel lets us send, as long as that is too little */
};

static void look_at_some(struct agent *a, uint32_t tenant, uint32_t most)
{
    const uint32_t items = a->unread.of[tenant - 1].items;
    for (uint32_t n = items < most ? items : most; n > 0; n--) {
        struct unread_item *item = agent_unread_next(&a->unread, tenant);
        struct connection *c =
            (struct connection *)((char *)item - offsetof(struct connection, unread));
        if (world_unread(a->world, c->socket))
            continue;
        agent_unread_forget(&a->unread, item);
        if (c->lingers)
            agent_connection_finish(c);
    }
}

static void measure_room(struct agent *a)
{
    struct unread *u = &a->unread;
    const bool lacked = u->lacks;
    u->wanted = (uint32_t)UNREAD_OF(a->config.max_sessions);
    u->measured_ns = world_now_ns(a->world);
    u->most = u->wanted;
    if (u->all < u->wanted)
        u->most = u->all + world_room(a->world, u->wanted - u->all);
    u->lacks = u->most < u->wanted;
    if (u->lacks && !lacked)
        world_log(a->world, BASE_LOG_WARN,
                  "workers of former lives have not read descriptors that this user sent: until "
                  "they do, or end, fewer can be sent to at a time",
                  "room=%u wanted=%u", u->most, u->wanted);
    else if (lacked && !u->lacks)
        world_log(a->world, BASE_LOG_INFO, "descriptors of former lives are unread no more",
                  "room=%u", u->most);
}

static uint64_t measure_due_ns(const struct unread *u)
{
    if (u->wanted == 0)
        return DUE_NOW;
    return due_if(u->most < u->wanted, u->measured_ns + MEASURE_S * BASE_NS_PER_S);
}

/* Nothing tells that a worker has read. */
uint64_t agent_unread_due_ns(const struct agent *a)
{
    return a->unread.all > 0 ? DUE_NOW : measure_due_ns(&a->unread);
}

void agent_unread_tick(struct agent *a)
{
    for (uint32_t i = 0; i < UNREAD_OWNERS; i++)
        look_at_some(a, i + 1, LOOKS_A_TICK);
    if (world_now_ns(a->world) >= measure_due_ns(&a->unread))
        measure_room(a);
}

static int say_kernel(struct base_errbuf *why)
{
    return base_err(
        why, -EAGAIN,
        "the kernel lets the agent's user send no more descriptors: workers, of a former "
        "life of the agent too, have not read those that they were sent (find and end "
        "them, or raise LimitNOFILE)");
}

static void say_refused(struct agent *a, uint32_t tenant)
{
    struct unread *u = &a->unread;
    uint32_t suppressed;
    u->refused++;
    if (base_log_allow(&u->limit, world_now_ns(a->world), UNREAD_LOGGED_S * BASE_NS_PER_S, 1,
                       &suppressed))
        world_log(a->world, BASE_LOG_WARN,
                  "a worker is turned away, since others have not read the descriptors that they "
                  "were sent",
                  "tenant=\"%s\" unread=%u of_all=%u most=%u suppressed=%u",
                  agent_quota_tenant(a, tenant)->name, u->of[tenant - 1].count, u->all, u->most,
                  suppressed);
}

int agent_unread_check(struct agent *a, uint32_t tenant, struct base_errbuf *why)
{
    struct unread *u = &a->unread;
    bool live[AGENT_TENANT_SLOTS];
    if (u->wanted == 0)
        measure_room(a);
    look_at_some(a, tenant, LOOKS_BEFORE);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        live[i] = a->tenants.at[i].state == AGENT_TENANT_LIVE;
    if (agent_unread_allows(u, live, tenant, SCHEMA_FD_COUNT))
        return 0;
    say_refused(a, tenant);
    if (agent_unread_allows_but_kernel(u, live, tenant, SCHEMA_FD_COUNT))
        return say_kernel(why);
    return base_err(why, -EAGAIN,
                    "workers of tenant %s have left %u descriptors that they were sent unread, and "
                    "those of others %u: until they read or close, it is sent no more",
                    agent_quota_tenant(a, tenant)->name, u->of[tenant - 1].count,
                    u->all - u->of[tenant - 1].count);
}

void agent_unread_sent(struct connection *c, uint32_t count)
{
    agent_unread_add(&c->agent->unread, &c->unread, c->tenant, count);
}

bool agent_unread_failed(struct agent *a, int status, struct base_errbuf *why)
{
    if (status != -ETOOMANYREFS)
        return false;
    a->unread.most = 0; /* until it is measured */
    a->unread.measured_ns = world_now_ns(a->world);
    return say_kernel(why) != 0;
}
