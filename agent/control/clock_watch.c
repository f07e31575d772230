/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at this host's clocks and the device's now and then, and tells lanes, log, status and
 * metrics what follows from it (clock_check.c decides). */
#include <errno.h>
#include <stdatomic.h>

#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "clock_watch.h"
#include "control/world_log.h"
#include "due.h"
#include "fabric/port.h"
#include "bounds.h"
#include "pools.h"

enum { WHY_BYTES = 320 };
static const uint64_t ASK_AGAIN_NS = BASE_NS_PER_S;

static uint64_t shortest_lease_ns(const struct agent *a)
{
    uint64_t ns = a->config.mr_lease_ns;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        ns = p->mr_lease_ns < ns ? p->mr_lease_ns : ns;
    return ns;
}

void agent_clock_watch_init(struct agent *a)
{
    agent_clock_check_init(&a->clock.check, a->config.mr_lease_ns);
    atomic_store(&a->clock.doubted, 0);
}

/* What has changed since `before` is said, and holds in the lanes' next passes. */
static void act_on_state(struct agent *a, enum clock_state before)
{
    const struct clock_check *c = &a->clock.check;
    char why[WHY_BYTES];
    atomic_store(&a->clock.doubted, c->state == CLOCK_DOUBTED);
    if (c->state == before)
        return;
    agent_clock_check_why(c, why, sizeof why);
    if (c->state == CLOCK_DOUBTED)
        world_log(a->world, BASE_LOG_ERROR,
                  "this host's clock cannot be trusted: requests go only to regions that hardware "
                  "guards, until it has agreed for a while",
                  "reason=\"%s\"", why);
    else if (before == CLOCK_DOUBTED && c->lie != CLOCK_STEERED && c->state == CLOCK_UNKNOWN)
        world_log(a->world, BASE_LOG_WARN,
                  "this host's clock is used again, since the device that contradicted it cannot "
                  "say its time any more",
                  "clock=%s lies=%llu reason=\"%s\"", agent_clock_check_name(c),
                  (unsigned long long)c->lies, why);
    else if (before == CLOCK_DOUBTED)
        world_log(a->world, BASE_LOG_INFO, "this host's clock is used again", "clock=%s lies=%llu",
                  agent_clock_check_name(c), (unsigned long long)c->lies);
    else if (c->state == CLOCK_UNKNOWN)
        world_log(
            a->world, BASE_LOG_INFO, "this host's clock beside the device's",
            "clock=%s reason=\"the device has not said its time for %llu s: it, this agent or "
            "this host stood still; nothing is refused for that, and nothing is to be done "
            "unless it stays so (clock.state in rdmactl agent status)\"",
            agent_clock_check_name(c), (unsigned long long)(CLOCK_SILENT_NS / BASE_NS_PER_S));
    else
        world_log(a->world, BASE_LOG_INFO, "this host's clock beside the device's", "clock=%s",
                  agent_clock_check_name(c));
}

static void on_seen(struct fab_ctl *ctl)
{
    struct agent *a = ctl->user;
    const enum clock_state before = a->clock.check.state;
    a->clock.asked = false;
    a->clock.none = ctl->status == -EOPNOTSUPP;
    a->clock.ask_ns = world_now_ns(a->world) + (a->clock.none ? ASK_AGAIN_NS : 0);
    if (a->stopping)
        return;
    if (ctl->status == 0)
        agent_clock_check_device(&a->clock.check, &ctl->clock);
    else
        agent_clock_check_gone(&a->clock.check, world_now_ns(a->world));
    act_on_state(a, before);
}

static void look_at_kernel(struct agent *a)
{
    const enum clock_state before = a->clock.check.state;
    struct world_clocks now;
    world_clocks(a->world, &now);
    const struct clock_look look = {
        .before_ns = now.before_ns, .after_ns = now.after_ns, .other_ns = now.raw_ns};
    agent_clock_check_kernel(&a->clock.check, &look, world_now_ns(a->world));
    act_on_state(a, before);
}

/* One that has no clock is asked again where its answer matters: it had one, or could end a doubt.
 */
static bool should_ask(const struct agent *a, uint64_t now)
{
    const struct clock_check *c = &a->clock.check;
    if (a->clock.asked || now < a->clock.ask_ns)
        return false;
    return !a->clock.none || c->heard_ns != 0 || c->state == CLOCK_DOUBTED;
}

/* While there are workers, whose requests a doubt holds up; and while it is being found out whether
 * there is one. Nobody but they goes by leases: until the first one comes, when it is looked at at
 * once, it does as seldom as the port, so that the looks of the last two leases are there then. */
static bool looks_often(const struct agent *a)
{
    const struct clock_watch *c = &a->clock;
    return !agent_pools_are_idle(a) || c->check.state == CLOCK_DOUBTED ||
           (c->check.state == CLOCK_UNKNOWN && !c->none);
}

uint64_t agent_clock_watch_due_ns(const struct agent *a)
{
    const struct clock_watch *c = &a->clock;
    if (a->device_lost)
        return DUE_NEVER;
    if (c->looked_ns == 0)
        return DUE_NOW;
    return looks_often(a) ? c->looked_ns + CLOCK_LOOK_MS * BASE_NS_PER_MS
                          : fab_port_next_look_ns(c->looked_ns);
}

void agent_clock_watch_tick(struct agent *a)
{
    const uint64_t now = world_now_ns(a->world);
    if (now < agent_clock_watch_due_ns(a))
        return;
    a->clock.looked_ns = now;
    a->clock.check.lease_ns = shortest_lease_ns(a);
    look_at_kernel(a);
    if (!should_ask(a, now))
        return;
    a->clock.asked = true;
    a->clock.ctl = (struct fab_ctl){.kind = FAB_QUERY_CLOCK, .done = on_seen, .user = a};
    fab_submit(a->fab, &a->clock.ctl);
}

void agent_clock_why(const struct agent *a, char *text, size_t size)
{
    char why[WHY_BYTES];
    text[0] = '\0';
    if (a->clock.check.state != CLOCK_DOUBTED)
        return;
    agent_clock_check_why(&a->clock.check, why, sizeof why);
    snprintf(text, size,
             "this host's clock cannot be trusted, so that requests to regions with "
             "KEDGE_MR_LEASE_ONLY, or of older agents, are refused: %s",
             why);
}

void agent_clock_status(const struct agent *a, struct base_text *t)
{
    const struct clock_check *c = &a->clock.check;
    char why[WHY_BYTES];
    agent_clock_check_why(c, why, sizeof why);
    base_json_object(t, "clock");
    base_json_string(t, "state", agent_clock_check_name(c));
    base_json_bool(t, "device_clock", !a->clock.none);
    base_json_u64(t, "lies", c->lies);
    base_json_string(t, "why", c->state == CLOCK_DOUBTED ? why : "");
    base_json_object_end(t);
}

void agent_clock_metrics(const struct agent *a, struct base_text *t)
{
    const struct clock_check *c = &a->clock.check;
    base_metric_one(t, "kedge_agent_clock_doubted", BASE_METRIC_GAUGE,
                    "Whether this host's clock cannot be trusted: only regions that hardware "
                    "guards are reached. The status says why.",
                    c->state == CLOCK_DOUBTED);
    base_metric_one(t, "kedge_agent_clock_trusted", BASE_METRIC_GAUGE,
                    "Whether the device's own clock agrees with this host's.",
                    c->state == CLOCK_TRUSTED);
    base_metric_one(t, "kedge_agent_clock_lies_total", BASE_METRIC_COUNTER,
                    "How often this host's clock came to be doubted.", c->lies);
}
