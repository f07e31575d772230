/* SPDX-License-Identifier: Apache-2.0 */
#include "socket_costs.h"

#include <stddef.h>

#include "base/clock.h"

static uint64_t greater_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void agentd_socket_costs_init(struct socket_costs *r, uint64_t usual_ns)
{
    *r = (struct socket_costs){
        .long_ns = greater_of(COSTS_LONG_US * BASE_NS_PER_US, COSTS_LONG_TIMES * usual_ns),
        .calls = COSTS_CALLS};
    r->forgiven_ns =
        greater_of(COSTS_FORGIVEN_MS * BASE_NS_PER_MS, COSTS_FORGIVEN_LONG * r->long_ns);
}

static const struct socket_cost *find_cost(const struct socket_costs *r, uid_t uid,
                                           uint32_t listener)
{
    for (const struct socket_cost *c = r->at; c < r->at + r->known; c++)
        if (c->uid == uid && c->listener == listener)
            return c;
    return NULL;
}

/* What is owed by now. */
static uint64_t debt_at(const struct socket_cost *c, uint64_t now_ns)
{
    const uint64_t paid_ns = (now_ns - c->asof_ns) / COSTS_PART;
    return c->debt_ns > paid_ns ? c->debt_ns - paid_ns : 0;
}

static struct socket_cost *make_cost(struct socket_costs *r, uid_t uid, uint32_t listener,
                                     uint64_t now_ns)
{
    struct socket_cost *least = r->at;
    for (struct socket_cost *c = r->at; c < r->at + r->known; c++)
        if (debt_at(c, now_ns) < debt_at(least, now_ns))
            least = c;
    if (r->known < COSTS_KNOWN)
        least = &r->at[r->known++];
    *least = (struct socket_cost){.uid = uid, .listener = listener, .asof_ns = now_ns};
    return least;
}

bool agentd_socket_costs_charge(struct socket_costs *r, uid_t uid, uint32_t listener,
                                uint64_t cpu_ns, uint64_t now_ns)
{
    const uint64_t most_ns = r->forgiven_ns + COSTS_REST_MOST_S * BASE_NS_PER_S / COSTS_PART;
    if (cpu_ns < r->long_ns)
        return agentd_socket_costs_rests(r, uid, listener, now_ns);
    struct socket_cost *c = (struct socket_cost *)(uintptr_t)find_cost(r, uid, listener);
    if (c == NULL)
        c = make_cost(r, uid, listener, now_ns);
    const uint64_t owed_ns = debt_at(c, now_ns), debt_ns = owed_ns + cpu_ns;
    c->calls = owed_ns == 0 ? 1 : c->calls + (c->calls < r->calls);
    c->debt_ns = debt_ns < most_ns ? debt_ns : most_ns;
    c->asof_ns = now_ns;
    if (c->debt_ns > r->forgiven_ns && c->calls == r->calls)
        c->rest_until_ns = now_ns + (c->debt_ns - r->forgiven_ns) * COSTS_PART;
    return c->rest_until_ns > now_ns;
}

bool agentd_socket_costs_rests(const struct socket_costs *r, uid_t uid, uint32_t listener,
                               uint64_t now_ns)
{
    const struct socket_cost *c = find_cost(r, uid, listener);
    return c != NULL && c->rest_until_ns > now_ns;
}

uint32_t agentd_socket_costs_resting(const struct socket_costs *r, uint32_t listener,
                                     uint64_t now_ns, uid_t uids[COSTS_KNOWN])
{
    uint32_t count = 0;
    for (const struct socket_cost *c = r->at; c < r->at + r->known; c++)
        if (c->listener == listener && c->rest_until_ns > now_ns)
            uids[count++] = c->uid;
    return count;
}
