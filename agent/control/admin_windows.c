/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, in the status and in the metrics. */
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "base/text.h"
#include "names.h"
#include "pools.h"
#include "windows.h"

enum { DESTINATIONS_SHOWN = 64 /* of those where something is in flight or has waited */ };

/* Everything that there is of one window, named once for status and metrics. */
enum field {
    LIMIT_BYTES,
    LIMIT_OPS,
    FOUND_OPS,
    IN_FLIGHT_BYTES,
    IN_FLIGHT_OPS,
    MOST_BYTES,
    MOST_OPS,
    WAITING,
    WAITS,
    WAITED,
    FIELDS
};
static const struct {
    const char *json, *metric, *help;
} fields[FIELDS] = {
    [LIMIT_BYTES] = {"limit_bytes", "kedge_agent_window_limit_bytes",
                     "Most bytes that may be in flight; 0: no limit."},
    [LIMIT_OPS] = {"limit_ops", "kedge_agent_window_limit_operations",
                   "Most work requests that may be in flight; 0: no limit."},
    [FOUND_OPS] =
        {"found_ops", "kedge_agent_window_found_operations",
         "Most work requests that may be in flight, as window_policy has found; 0: no limit."},
    [IN_FLIGHT_BYTES] = {"in_flight_bytes", "kedge_agent_window_in_flight_bytes",
                         "Bytes in flight; counted while any window has a limit."},
    [IN_FLIGHT_OPS] = {"in_flight_ops", "kedge_agent_window_in_flight_operations",
                       "Work requests in flight; counted while any window has a limit."},
    [MOST_BYTES] = {"most_bytes", "kedge_agent_window_most_bytes",
                    "Most bytes that were in flight so far."},
    [MOST_OPS] = {"most_ops", "kedge_agent_window_most_operations",
                  "Most work requests that were in flight so far."},
    [WAITING] = {"waiting", "kedge_agent_window_waiting",
                 "Virtual queue pairs whose first request waits for the window."},
    [WAITS] = {"waits", "kedge_agent_window_waits_total", "Requests that waited for a window."},
    [WAITED] = {"waited_ns", "kedge_agent_window_wait_seconds_total",
                "How long requests waited for a window, first in their queue pair."},
};

static void values_of(const struct lane_window *n, uint64_t value[FIELDS])
{
    const uint64_t all[FIELDS] = {n->limit_bytes, n->limit_ops,  n->found_ops, n->bytes,
                                  n->ops,         n->most_bytes, n->most_ops,  n->waiting,
                                  n->waits,       n->waited_ns};
    memcpy(value, all, sizeof all);
}

/* No limit, and what is not counted, is null. */
static void print_window(struct base_text *t, const struct lane_window *n)
{
    uint64_t value[FIELDS];
    values_of(n, value);
    for (int i = 0; i < FIELDS; i++) {
        bool limit = i == LIMIT_BYTES || i == LIMIT_OPS || i == FOUND_OPS;
        bool counted = i == IN_FLIGHT_BYTES || i == IN_FLIGHT_OPS;
        if ((limit && value[i] == 0) || (counted && !n->counted))
            base_json_null(t, fields[i].json);
        else
            base_json_u64(t, fields[i].json, value[i]);
    }
    base_json_object_end(t);
}

/* Of all lanes: the limit is what all of them hold; the most of each need not have been at one
 * time.
 */
static void add_window(struct lane_window *sum, const struct lane_window *n)
{
    sum->found_ops += n->found_ops;
    sum->bytes += n->bytes;
    sum->ops += n->ops;
    sum->most_bytes += n->most_bytes;
    sum->most_ops += n->most_ops;
    sum->waiting += n->waiting;
    sum->waits += n->waits;
    sum->waited_ns += n->waited_ns;
    sum->counted |= n->counted;
}

static struct lane_window of_all(const struct agent *a, enum lane_window_scope scope,
                                 uint32_t number, struct agent_limits most)
{
    struct lane_window n, sum = {.limit_bytes = most.bytes, .limit_ops = most.ops};
    bool unbounded = false;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        if (lane_window(p->lane, scope, number, &n)) {
            add_window(&sum, &n);
            unbounded |= n.found_ops == 0;
        }
    if (unbounded) /* one lane lets out what it likes, so that the sum says nothing */
        sum.found_ops = 0;
    return sum;
}

static struct lane_window of_device(const struct agent *a)
{
    return of_all(a, LANE_WINDOW_DEVICE, 0, agent_windows_device(a));
}

static struct lane_window of_tenant(const struct agent *a, uint32_t i)
{
    return of_all(a, LANE_WINDOW_TENANT, i, a->tenants.at[i].config.window);
}

static bool is_worth_showing(const struct lane_window *n)
{
    return n->ops > 0 || n->waiting > 0 || n->waits > 0;
}

static void print_destinations(const struct pool *p, struct base_text *t, uint32_t *shown)
{
    struct lane_window n;
    char gid[BASE_GID_TEXT];
    for (uint32_t i = 0; i < lane_destinations(p->lane) && *shown < DESTINATIONS_SHOWN; i++) {
        if (!lane_window(p->lane, LANE_WINDOW_DESTINATION, i, &n) || !is_worth_showing(&n))
            continue;
        base_json_object(t, NULL);
        base_json_string(t, "gid", base_gid_format(n.gid, gid));
        base_json_string(t, "pool", p->name);
        base_json_u64(t, "lane", p->lane_number);
        print_window(t, &n);
        ++*shown;
    }
}

/* ---- windows that name a destination */

/* Why a window holds for nobody here, or not for all that it names. */
static void explain_window(const struct agent *a, const struct agent_window_config *w, char *why,
                           size_t size)
{
    uint32_t pools = 0, left = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        if (w->pool[0] != '\0' && strcmp(w->pool, p->name) != 0)
            continue;
        pools++;
        if (p->first != NULL) /* all lanes have the same ones */
            continue;
        left += p->own_windows_left;
    }
    if (w->gids == 0)
        snprintf(why, size, "no node %s is registered: nobody is held to it until one is", w->node);
    else if (pools == 0)
        snprintf(why, size, "this node has no pool %s", w->pool);
    else if (left > 0)
        snprintf(why, size, "more than %d destinations have windows of their own: %u have not",
                 AGENT_DESTINATIONS, left);
    else
        why[0] = '\0';
}

static void print_number(struct base_text *t, const char *name, uint64_t limit)
{
    base_json_u64_or_null(t, name, limit, 0);
}

static void print_word(struct base_text *t, const char *name, const char *word)
{
    base_json_string(t, name, word[0] != '\0' ? word : NULL);
}

static void print_named(const struct agent *a, const struct agent_window_config *w,
                        struct base_text *t)
{
    char gid[BASE_GID_TEXT], why[160];
    base_json_object(t, NULL);
    base_json_string(t, "name", w->name);
    print_word(t, "node", w->node);
    print_word(t, "pool", w->pool);
    print_number(t, fields[LIMIT_BYTES].json, w->most.bytes);
    print_number(t, fields[LIMIT_OPS].json, w->most.ops);
    base_json_array(t, "gids");
    for (uint32_t i = 0; i < w->gids; i++)
        base_json_string(t, NULL, base_gid_format(w->gid[i], gid));
    base_json_array_end(t);
    explain_window(a, w, why, sizeof why);
    base_json_string(t, "why", why);
    base_json_object_end(t);
}

static void named_metrics(const struct agent *a, struct base_text *t)
{
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < a->follow.own_window_count; i++)
        unknown += a->follow.own_windows[i].gids == 0;
    base_metric_one(t, "kedge_agent_windows_named", BASE_METRIC_GAUGE,
                    "Windows that are for one destination alone.", a->follow.own_window_count);
    base_metric_one(t, "kedge_agent_windows_unknown", BASE_METRIC_GAUGE,
                    "Of them, those whose node is not registered.", unknown);
}

/* ---- all of them */

void agent_windows_lane_status(const struct pool *p, struct base_text *t)
{
    struct lane_window n;
    (void)lane_window(p->lane, LANE_WINDOW_DEVICE, 0, &n);
    base_json_object(t, "device_window");
    print_window(t, &n);
}

/* Each lane has a part of the limit, where there is one. */
void agent_windows_pool_status(const struct pool *endpoint, struct base_text *t)
{
    struct lane_window n, sum = {.limit_ops = 0};
    bool unbounded = false;
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        (void)lane_window(p->lane, LANE_WINDOW_DEVICE, 0, &n);
        add_window(&sum, &n);
        sum.limit_bytes += n.limit_bytes;
        sum.limit_ops += n.limit_ops;
        unbounded |= n.found_ops == 0;
    }
    if (unbounded)
        sum.found_ops = 0;
    base_json_object(t, "device_window");
    print_window(t, &sum);
}

void agent_windows_status(struct agent *a, struct base_text *t)
{
    struct lane_window n = of_device(a);
    uint32_t shown = 0;
    base_json_object(t, "windows");
    base_json_string(t, "policy", lane_window_policy_name(a->config.window_policy));
    base_json_object(t, "device");
    print_window(t, &n);
    base_json_array(t, "tenants");
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (a->tenants.at[i].state == AGENT_TENANT_FREE)
            continue;
        base_json_object(t, NULL);
        base_json_string(t, "tenant", a->tenants.at[i].config.name);
        n = of_tenant(a, i);
        print_window(t, &n);
    }
    base_json_array_end(t);
    base_json_array(t, "destinations");
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        print_destinations(p, t, &shown);
    base_json_array_end(t);
    base_json_array(t, "named");
    for (uint32_t i = 0; i < a->follow.own_window_count; i++)
        print_named(a, &a->follow.own_windows[i], t);
    base_json_array_end(t);
    base_json_object_end(t);
}

static void print_sample(struct base_text *t, enum field field,
                         const struct base_metric_label *labels, size_t count, uint64_t value)
{
    if (field == WAITED)
        base_metric_double(t, fields[field].metric, labels, count, (double)value / 1e9);
    else
        base_metric_u64(t, fields[field].metric, labels, count, value);
}

/* Destinations are too many for a time series each: their limit, and what waits for all of them. */
static bool sum_destinations(struct agent *a, enum field field, uint64_t *out)
{
    struct lane_stats s;
    struct lane_window n;
    if (field == LIMIT_BYTES || field == LIMIT_OPS) {
        const struct agent_limits each = agent_windows_destination(a);
        *out = field == LIMIT_BYTES ? each.bytes : each.ops;
        return true;
    }
    *out = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p)) {
        lane_stats(p->lane, &s);
        if (field == WAITS)
            *out += s.window_waits[LANE_WINDOW_DESTINATION];
        else if (field == WAITED)
            *out += s.window_waited_ns[LANE_WINDOW_DESTINATION];
        for (uint32_t i = 0; field == WAITING && i < lane_destinations(p->lane); i++)
            if (lane_window(p->lane, LANE_WINDOW_DESTINATION, i, &n))
                *out += n.waiting;
    }
    return field == WAITING || field == WAITS || field == WAITED;
}

void agent_windows_metrics(struct agent *a, struct base_text *t)
{
    struct lane_window n;
    uint64_t value[FIELDS], sum;
    for (int f = 0; f < FIELDS; f++) {
        struct base_metric_label labels[] = {{"scope", "device"}, {"tenant", ""}};
        base_metric_head(t, fields[f].metric,
                         f == WAITS || f == WAITED ? BASE_METRIC_COUNTER : BASE_METRIC_GAUGE,
                         fields[f].help);
        n = of_device(a);
        values_of(&n, value);
        print_sample(t, f, labels, 1, value[f]);
        labels[0].value = "destination";
        if (sum_destinations(a, f, &sum))
            print_sample(t, f, labels, 1, sum);
        labels[0].value = "tenant";
        for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
            if (a->tenants.at[i].state == AGENT_TENANT_FREE)
                continue;
            labels[1].value = a->tenants.at[i].config.name;
            n = of_tenant(a, i);
            values_of(&n, value);
            print_sample(t, f, labels, 2, value[f]);
        }
    }
    named_metrics(a, t);
}
