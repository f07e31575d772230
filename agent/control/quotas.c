/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants' quotas, over all pools, and the end of tenants that nobody says any more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "agent/reserve.h"
#include "arenas.h"
#include "base/clock.h"
#include "control/world_log.h"
#include "names.h"
#include "pools.h"
#include "quotas.h"
#include "sessions.h"
#include "windows.h"

static const struct {
    const char *name, *of;
} names[LANE_QUOTAS] = {
    [LANE_QUOTA_SESSIONS] = {"sessions", "workers at a time"},
    [LANE_QUOTA_MEMORY] = {"memory", "memory"},
    [LANE_QUOTA_VQPS] = {"vqps", "queue pairs"},
    [LANE_QUOTA_MRS] = {"mrs", "memory regions"},
    [LANE_QUOTA_CONTROL_OPS] = {"control_ops_per_s", "control operations per second"},
};

const char *agent_quota_name(enum lane_quota_kind which)
{
    return names[which].name;
}

const struct agent_tenant_config *agent_quota_tenant(const struct agent *a, uint32_t tenant)
{
    return &a->tenants.at[tenant - 1].config;
}

static uint32_t bound_of(uint64_t setting)
{
    return setting == 0 || setting > UINT32_MAX ? UINT32_MAX : (uint32_t)setting;
}

static bool may_come(const struct agent *a, const struct pool *p, uint32_t place)
{
    const char *pool = a->tenants.at[place].config.pool;
    if (a->tenants.at[place].state != AGENT_TENANT_LIVE)
        return false;
    return p == NULL ||
           (pool[0] == '\0' ? pool_endpoint(p) == a->pools[0] : strcmp(pool, p->name) == 0);
}

void agent_quotas_reserve(const struct agent *a, const struct pool *p, uint64_t capacity,
                          uint32_t reserved[AGENT_TENANT_SLOTS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        count += may_come(a, p, i);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        reserved[i] = may_come(a, p, i) ? lane_reserve_each(capacity, count) : 0;
}

bool agent_quotas_have_others(const struct pool *p, uint32_t tenant)
{
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        if (i != tenant - 1 && may_come(p->agent, p, i))
            return true;
    return false;
}

bool agent_quotas_are_shared(const struct pool *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        count += may_come(p->agent, p, i);
    return count > 1;
}

void agent_quotas_apply(struct pool *p)
{
    uint32_t reserved[AGENT_TENANT_SLOTS];
    if (p->first != NULL)
        return;
    agent_quotas_reserve(p->agent, p, p->config->max_mrs, reserved);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        p->quota[i].reserved_mrs = reserved[i];
        p->quota[i].max_vqps = bound_of(p->agent->tenants.at[i].config.vqps);
        p->quota[i].max_mrs = bound_of(p->agent->tenants.at[i].config.mrs);
        const uint64_t rate = p->agent->tenants.at[i].config.control_ops_per_s;
        p->quota[i].control_ops_per_s = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate;
    }
}

/* ---- what tenants have */

bool agent_session_has_tenant(const struct agent_session *s)
{
    return s->stage == STAGE_LIVE || s->stage == STAGE_ENDING;
}

/* One that was ended counts until its worker closes it, from the beginning on: else another one
 * would come in its place before it is over, and the tenant have one too many then. */
static struct quota_counted count_session(const struct agent_session *s)
{
    const bool ended = s->stage == STAGE_ENDING && s->connection != NULL;
    struct quota_counted n = {
        .tenant = s->tenant, .is_session = s->stage == STAGE_LIVE || ended, .ended = ended};
    if (!agent_session_has_tenant(s))
        return (struct quota_counted){0};
    n.has_place = true;
    n.has_arena = s->arenas > 0;
    n.arenas = s->arenas + (s->arena_asked != NULL);
    for (uint32_t i = 0; i < s->arenas; i++)
        n.bytes += s->arena[i]->bytes;
    n.bytes += s->arena_asked != NULL ? s->arena_asked->bytes : 0;
    return n;
}

/* Of sessions; what they left is known by what of the tenant's arenas they have not. */
static void add_up(struct quota_used *sum, const struct quota_counted *n)
{
    sum->sessions += n->is_session;
    sum->ended += n->ended;
    sum->bytes += n->bytes;
    sum->firsts += n->has_arena;
    sum->arenas += n->arenas;
    sum->places += n->has_place;
}

static void take_away(struct quota_used *sum, const struct quota_counted *n)
{
    sum->sessions -= n->is_session;
    sum->ended -= n->ended;
    sum->bytes -= n->bytes;
    sum->firsts -= n->has_arena;
    sum->arenas -= n->arenas;
    sum->places -= n->has_place;
}

/* A lane's first one of a tenant, or its last, has that tenant's window shared otherwise. */
static void note_in_lane(struct pool *p, const struct quota_counted *before,
                         const struct quota_counted *now)
{
    const uint32_t tenant = now->tenant != 0 ? now->tenant : before->tenant;
    if (now->has_place == before->has_place)
        return;
    uint32_t *const sessions = &p->sessions_of[tenant - 1];
    *sessions += now->has_place ? 1 : -1u;
    if (*sessions == (now->has_place ? 1 : 0))
        agent_windows_share_tenant(pool_endpoint(p), tenant);
}

void agent_quotas_note(struct agent_session *s)
{
    struct agent *a = s->pool->agent;
    const struct quota_counted before = s->counted;
    if (before.tenant != 0)
        take_away(&a->of_sessions[before.tenant - 1], &before);
    s->counted = count_session(s);
    if (s->counted.tenant != 0)
        add_up(&a->of_sessions[s->counted.tenant - 1], &s->counted);
    note_in_lane(s->pool, &before, &s->counted);
}

/* In all pools: a tenant that was given to another one may have workers in both. */
static struct quota_used used_by(const struct agent *a, uint32_t tenant)
{
    const struct quota_used *sum = &a->of_sessions[tenant - 1];
    const uint64_t bytes = a->tenants.at[tenant - 1].arena_bytes;
    return (struct quota_used){.sessions = sum->sessions,
                               .ended = sum->ended,
                               .bytes = bytes,
                               .bytes_left = bytes - sum->bytes,
                               .firsts = sum->firsts,
                               .arenas = sum->arenas,
                               .places = sum->places};
}

static void say_miscounted(const struct agent *a, uint32_t tenant, const struct quota_used *is)
{
    const struct quota_used *was = &a->of_sessions[tenant - 1];
    world_log(
        a->world, BASE_LOG_ERROR,
        "what a tenant's sessions have was counted wrong, and is counted anew: this is a fault "
        "of the agent, please report it",
        "tenant=\"%s\" sessions=%llu counted=%llu ended=%llu counted=%llu bytes=%llu "
        "counted=%llu arenas=%llu counted=%llu",
        agent_quota_tenant(a, tenant)->name, (unsigned long long)is->sessions,
        (unsigned long long)was->sessions, (unsigned long long)is->ended,
        (unsigned long long)was->ended, (unsigned long long)is->bytes,
        (unsigned long long)was->bytes, (unsigned long long)is->firsts,
        (unsigned long long)was->firsts);
}

bool agent_quotas_recount(struct agent *a)
{
    struct quota_used sums[AGENT_TENANT_SLOTS] = {0};
    bool right = true;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint64_t i = 0; i < p->config->max_sessions; i++) {
            struct quota_counted *n = &p->sessions[i].counted;
            *n = count_session(&p->sessions[i]);
            if (n->tenant != 0)
                add_up(&sums[n->tenant - 1], n);
        }
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++) {
        if (memcmp(&sums[i], &a->of_sessions[i], sizeof sums[i]) == 0)
            continue;
        right = false;
        say_miscounted(a, i + 1, &sums[i]);
        a->of_sessions[i] = sums[i];
    }
    return right;
}

void agent_quotas_used(const struct agent *a, struct quota_used used[AGENT_TENANT_SLOTS])
{
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        used[i] = used_by(a, i + 1);
}

/* ---- what is refused */

static uint64_t quota_of(const struct agent_tenant_config *t, enum lane_quota_kind which)
{
    const uint64_t all[LANE_QUOTAS] = {
        [LANE_QUOTA_SESSIONS] = t->sessions,
        [LANE_QUOTA_MEMORY] = t->memory,
        [LANE_QUOTA_VQPS] = t->vqps,
        [LANE_QUOTA_MRS] = t->mrs,
        [LANE_QUOTA_CONTROL_OPS] = t->control_ops_per_s,
    };
    return all[which];
}

enum { RAISE_BYTES = 96 };
/* ": rdmactl tenant set web sessions=... raises it" */
static const char *describe_raise(const struct agent *a, uint32_t tenant,
                                  enum lane_quota_kind which, char out[RAISE_BYTES])
{
    const char *of = agent_quota_tenant(a, tenant)->name;
    if (a->tenants.at[tenant - 1].central)
        snprintf(out, RAISE_BYTES, ": rdmactl tenant set %s %s=... raises it", of,
                 which == LANE_QUOTA_MEMORY ? "memory_bytes" : names[which].name);
    else
        snprintf(out, RAISE_BYTES, ": `%s` in [tenant %s] of the agent's file raises it",
                 names[which].name, of);
    return out;
}

static int say_over(const struct pool *p, uint32_t tenant, enum lane_quota_kind which,
                    struct base_errbuf *why)
{
    const struct agent_tenant_config *t = agent_quota_tenant(p->agent, tenant);
    char more[120] = "";
    const bool counted = which == LANE_QUOTA_SESSIONS || which == LANE_QUOTA_MEMORY;
    const uint64_t ended = counted ? used_by(p->agent, tenant).ended : 0;
    if (which == LANE_QUOTA_CONTROL_OPS)
        snprintf(more, sizeof more, ": try again in a moment");
    else if (ended > 0)
        snprintf(more, sizeof more,
                 ": %llu of its sessions have ended, and count until their processes close them",
                 (unsigned long long)ended);
    else
        (void)describe_raise(p->agent, tenant, which, more);
    return base_err(why, -EDQUOT, "tenant %s has used up its quota of %s (%s), which is %llu%s%s",
                    t->name, names[which].of, names[which].name,
                    (unsigned long long)quota_of(t, which),
                    which == LANE_QUOTA_MEMORY ? " bytes" : "", more);
}

int agent_quota_refuse(struct pool *p, uint32_t tenant, enum lane_quota_kind which,
                       struct base_errbuf *why)
{
    pool_quota(p, tenant - 1)->refused[which]++;
    return say_over(p, tenant, which, why);
}

int agent_quota_ask(struct pool *p, uint32_t tenant, struct base_errbuf *why)
{
    if (lane_quota_ask(pool_quota(p, tenant - 1), world_now_ns(p->world)))
        return 0;
    return say_over(p, tenant, LANE_QUOTA_CONTROL_OPS, why);
}

void agent_quotas_add(struct quota_counts *sum, const struct lane_quota *quota)
{
    sum->control_ops += quota->control_ops;
    for (int which = 0; which < LANE_QUOTAS; which++)
        sum->refused[which] += quota->refused[which];
}

int agent_quota_say_arena(const struct agent *a, uint32_t tenant, uint64_t bytes,
                          struct base_errbuf *why)
{
    const struct agent_tenant_config *t = agent_quota_tenant(a, tenant);
    char raise[RAISE_BYTES];
    return base_err(why, -EDQUOT,
                    "an arena of %llu bytes is more than tenant %s may have in all: its quota of "
                    "memory (memory) is %llu bytes%s",
                    (unsigned long long)bytes, t->name, (unsigned long long)t->memory,
                    describe_raise(a, tenant, LANE_QUOTA_MEMORY, raise));
}

int agent_quota_check(struct pool *p, uint32_t tenant, uint64_t more_sessions, uint64_t more_bytes,
                      struct base_errbuf *why)
{
    const struct agent_tenant_config *t = agent_quota_tenant(p->agent, tenant);
    const struct quota_used used = used_by(p->agent, tenant);
    if (used.sessions + more_sessions > t->sessions)
        return agent_quota_refuse(p, tenant, LANE_QUOTA_SESSIONS, why);
    if (used.bytes <= t->memory && more_bytes <= t->memory - used.bytes)
        return 0;
    if (used.bytes - used.bytes_left + more_bytes > t->memory) {
        const int status = agent_quota_refuse(p, tenant, LANE_QUOTA_MEMORY, why);
        return more_bytes <= t->memory ? status
                                       : agent_quota_say_arena(p->agent, tenant, more_bytes, why);
    }
    pool_quota(p, tenant - 1)->refused[LANE_QUOTA_MEMORY]++;
    return base_err(why, -EAGAIN,
                    "%llu bytes that sessions of tenant %s have left are being given back, and "
                    "count to its quota of memory (memory) until then: try again in a moment",
                    (unsigned long long)used.bytes_left, t->name);
}

/* Of arenas that no session has any more. */
static uint64_t bytes_left_by_all(const struct agent *a)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        left += used_by(a, i + 1).bytes_left;
    return left;
}

/* What the host has no more of for arenas. */
static uint64_t message_bytes_of_all(const struct agent *a)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < POOLS; i++)
        bytes += a->pools[i] != NULL ? a->pools[i]->device.messages.memory.size : 0;
    return bytes;
}

/* A tenant without a bound could have the kernel look for memory until it ends processes: a memfd
 * is allocated whole, and has none of a tmpfs' limits. Its pages count to the agent's own control
 * group, whose processes go first when that has no more. */
static int check_host(const struct agent *a, const struct host_memory *m, bool first,
                      uint64_t more_bytes, struct base_errbuf *why)
{
    const uint64_t most = m->most / 16 * (first ? 15 : 14);
    const uint64_t have =
        agent_pools_count(a).arena_bytes + a->arenas_coming + message_bytes_of_all(a);
    if (have <= most && more_bytes <= most - have)
        return 0;
    const uint64_t left = bytes_left_by_all(a);
    if (left > 0 && have - left <= most && more_bytes <= most - (have - left))
        return base_err(why, -EAGAIN,
                        "%llu bytes that sessions have left are being given back to this host, "
                        "which has no room before: try again in a moment",
                        (unsigned long long)left);
    return base_err(why, -ENOMEM,
                    "this host has no room for an arena of %llu bytes: all of the agent's take "
                    "%llu, and %s of %s, %llu, is the most",
                    (unsigned long long)more_bytes, (unsigned long long)have,
                    first ? "fifteen sixteenths" : "seven eighths",
                    m->of_group ? "what the agent's control group may use (memory.max)"
                                : "its memory",
                    (unsigned long long)most);
}

int agent_quota_check_host(const struct agent *a, uint64_t more_bytes, struct base_errbuf *why)
{
    struct host_memory m;
    m.most = world_memory_most(a->world, &m.of_group);
    return check_host(a, &m, false, more_bytes, why);
}

int agent_quota_check_host_first(struct agent *a, uint64_t more_bytes, struct base_errbuf *why)
{
    const uint64_t now = world_now_ns(a->world);
    struct host_memory *m = &a->host_memory;
    if (m->most == 0 || now - m->read_ns >= BASE_NS_PER_S) {
        m->most = world_memory_most(a->world, &m->of_group);
        m->read_ns = now;
    }
    return check_host(a, m, true, more_bytes, why);
}

/* No more often than a tenant is forgiven, which takes most of a minute. */
void agent_quotas_apart(struct pool *p, const struct lane_event *e)
{
    const char *tenant = agent_quota_tenant(p->agent, e->quarantined.tenant + 1)->name;
    p->quarantined[e->quarantined.tenant] = e->quarantined.begins;
    if (e->quarantined.begins && !e->quarantined.named)
        world_log(
            p->world, BASE_LOG_WARN,
            "a request of one of several tenants was refused by its peer again and again, and "
            "the device does not say whose: from now on those of each go through queue pairs "
            "of their own",
            "tenant=\"%s\" pool=\"%s\"", tenant, p->name);
    else if (e->quarantined.begins)
        world_log(p->world, BASE_LOG_WARN,
                  "requests of a tenant's workers were refused by their peers again and again, and "
                  "broke queue pairs under requests of others: from now on they go through some of "
                  "their own",
                  "tenant=\"%s\" pool=\"%s\"", tenant, p->name);
    else
        world_log(p->world, BASE_LOG_INFO, "a tenant's requests go with those of others again",
                  "tenant=\"%s\" pool=\"%s\"", tenant, p->name);
}
