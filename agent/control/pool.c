/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of the agent: its own, which its file says and which is there from start to end, and
 * those that metaservers say of this node, which come and go while workers run.
 *
 * One that goes takes no new workers, lets those that it has finish, and is closed when nothing of
 * it is under way any more: nothing waits for that. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent/connector.h"
#include "arenas.h"
#include "base/assert.h"
#include "base/clock.h"
#include "connection.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "life.h"
#include "names.h"
#include "peer_setup.h"
#include "pool.h"
#include "pool_lanes.h"
#include "pools.h"
#include "prewarm.h"
#include "qp_end.h"
#include "quotas.h"
#include "register.h"
#include "schema/peers.h"
#include "sessions.h"
#include "windows.h"

enum { MAKE_AGAIN_MS = 5000 /* one that could not be made */, READY_MS = 5000 };

static_assert(POOLS == 8, "operators read that number");

static struct pool *own_pool(const struct agent *a)
{
    return a->pools[0];
}

/* ---- made */

static struct pool *pool_new(struct agent *a, uint32_t place, const char *name)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    *p = (struct pool){
        .agent = a, .world = a->world, .config = &a->config, .place = place, .end_ns = UINT64_MAX};
    snprintf(p->name, sizeof p->name, "%s", name);
    a->pools[place] = p;
    return p;
}

/* The own one's, of that number: of which nothing that is of an endpoint is made but with the
 * first.
 */
static int start_lane(struct agent *a, uint32_t number, const struct agent_pool_config *desired,
                      struct base_errbuf *err)
{
    struct pool *p = pool_new(a, number, a->config.pool);
    if (p == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    p->first = number > 0 ? own_pool(a) : NULL;
    p->lane_number = number;
    p->number = (uint16_t)a->config.pool_number;
    p->incarnation = a->incarnation;
    p->mr_lease_ns = a->config.mr_lease_ns;
    agent_prewarm_init(p, desired);
    agent_pool_start_begin(p);
    while (!agent_pool_start_step(p))
        world_settle(p->world, p);
    if (p->start.status != 0)
        return base_err(err, p->start.status, "%s", p->start.err.text);
    p->stage = POOL_RUNS;
    return 0;
}

int agent_pools_start(struct agent *a, const struct agent_pool_config *desired,
                      struct base_errbuf *err)
{
    int status = start_lane(a, 0, desired, err);
    for (uint32_t i = 1; i < a->config.lanes && status == 0; i++)
        status = start_lane(a, i, desired, err);
    return status;
}

bool agent_pools_are_starting(const struct agent *a)
{
    bool making = false;
    for (const struct pool *p = own_pool(a); p != NULL; p = agent_pools_next_lane(own_pool(a), p))
        making |= agent_sessions_are_making(p);
    return making;
}

int agent_pools_check(struct agent *a, struct base_errbuf *err)
{
    int status = 0;
    for (struct pool *p = own_pool(a); p != NULL && status == 0;
         p = agent_pools_next_lane(own_pool(a), p))
        status = agent_lanes_have_homes(p) ? agent_sessions_check(p, err) : 0;
    return status;
}

/* ---- given back */

/* ---- the end of one, in steps: each when nothing that the ones before have begun is under way */

static void end_talks(struct pool *p)
{
    p->stopping = true;
    agent_registrations_stop(p);
    agent_peer_setup_stop(p);
}

static void end_lane(struct pool *p)
{
    const bool served = p->lane != NULL;
    agent_dci_repairs_stop(p);
    agent_pool_stop_lane(p);
    agent_qp_ends_stop(p);
    if (served && p->device.connector != NULL)
        connector_leave(p->device.connector);
    agent_sessions_stop(p);
}

/* Some may have been registering when their sessions ended. */
static void end_arenas(struct pool *p)
{
    agent_arenas_stop(p);
}

static void end_objects(struct pool *p)
{
    agent_sessions_free(p);
    if (p->start.stage != START_RETIRING) /* else that is done */
        (void)world_device(p->world, WORLD_DEVICE_RETIRE, p, NULL);
}

static void end_memory(struct pool *p)
{
    (void)world_device(p->world, WORLD_DEVICE_CLOSE, p, NULL);
    agent_pool_start_fini(p);
    struct world_task release = {.work = WORLD_FREE_PEERS, .peers = &p->peers};
    world_run_here(p->world, &release);
}

static void (*const END[])(struct pool *p) = {end_talks, end_lane, end_arenas, end_objects,
                                              end_memory};
enum { ENDS = sizeof END / sizeof END[0] };

/* As many as can be done without waiting. False: some are left. */
static bool end_on(struct pool *p)
{
    while (p->ended < ENDS && p->fab_ops == 0)
        END[p->ended++](p);
    return p->ended == ENDS;
}

/* All but its memory. Blocks, for the agent's end. */
static void give_back(struct pool *p)
{
    while (!end_on(p))
        world_settle(p->world, p);
}

/* What is counted for ever is not less for its end. */
static void keep_counts(struct pool *p)
{
    agent_session_counts_add(&p->agent->gone, &p->count);
    for (uint32_t i = 0; i < AGENT_TENANT_SLOTS; i++)
        agent_quotas_add(&p->agent->quotas_before[i], &p->quota[i]);
}

/* One that is quiet, or could not be made: nobody waits for what the device has of it. */
static void close_pool(struct pool *p)
{
    struct agent *a = p->agent;
    p->stage = POOL_ENDING;
    p->stopping = true;
    if (p->works > 0 || p->calls > 0 || !end_on(p))
        return;
    if (p->left_ns != 0) /* else it never was one */
        world_log(a->world, BASE_LOG_INFO, "pool closed", "pool=%s", p->name);
    keep_counts(p);
    a->pools[p->place] = NULL;
    free(p);
    agent_windows_apply(a);
}

void agent_pools_end_sessions(struct agent *a, uint32_t reason)
{
    for (struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        for (uint64_t i = 0; p->sessions != NULL && i < a->config.max_sessions; i++)
            agent_session_release(p, (uint32_t)i, reason);
}

/* A lane carries out sessions of others (session_moves.h), and may wait long for what it has out of
 * them: so no lane is stepped any more before memory of any session goes. */
static void stop_stepping(struct agent *a)
{
    for (uint32_t i = 0; i < POOLS; i++)
        if (a->pools[i] != NULL) {
            a->pools[i]->stopping = true;
            world_lane_stop(a->world, &a->pools[i]->stepping);
        }
}

void agent_pools_stop(struct agent *a)
{
    stop_stepping(a);
    for (uint32_t i = POOLS; i-- > 0;) {
        struct pool *p = a->pools[i];
        if (p == NULL)
            continue;
        give_back(p);
        free(p);
        a->pools[i] = NULL;
    }
}

/* ---- as metaservers say */

/* Its place among them; or count: it is not said. */
static uint32_t find_desired(const struct agent *a, const struct pool *p)
{
    uint32_t i = 0;
    while (i < a->desired.count && (strcmp(a->desired.at[i].is.name, p->name) != 0 ||
                                    a->desired.at[i].is.numbers.number != p->number))
        i++;
    return i;
}

static bool is_wanted(const struct agent *a, const struct desired_pool *desired)
{
    return desired->is.numbers.number != RESOURCE_UNSAID &&
           desired->is.numbers.number != own_pool(a)->number &&
           strcmp(desired->is.name, own_pool(a)->name) != 0;
}

/* Peers forget what they have learnt of a former life of it by a later incarnation, which the next
 * start of the agent will be above too. */
static int choose_incarnation(struct pool *p, struct base_errbuf *err)
{
    struct agent *a = p->agent;
    const bool had = (a->had[p->number / 8] >> (p->number & 7) & 1) != 0;
    const bool spare = a->unused > a->incarnation; /* the node may have another one since */
    p->incarnation = had && spare ? a->unused : a->incarnation;
    if (!had || spare)
        return 0;
    return agent_life_next_incarnation(a, &p->incarnation, err);
}

/* One that could not be made was seen by nobody: the next that needs an incarnation gets its. So
 * tries, of which there may be one every few seconds for as long as it is said, use up none. */
static void keep_incarnation(struct pool *p, bool made)
{
    struct agent *a = p->agent;
    if (made)
        a->had[p->number / 8] |= (uint8_t)(1u << (p->number & 7));
    if (p->incarnation > a->incarnation)
        a->unused = made ? 0 : p->incarnation;
}

/* It is tried again, and said. */
static void tell_not_made(struct agent *a, struct desired_pool *desired, const char *why)
{
    if (strncmp(desired->why, why, sizeof desired->why - 1) != 0)
        world_log(a->world, BASE_LOG_ERROR, "a pool cannot be made: it is tried again",
                  "pool=%s why=\"%s\"", desired->is.name, why);
    snprintf(desired->why, sizeof desired->why, "%.159s", why);
    desired->again_ns = world_now_ns(a->world) + MAKE_AGAIN_MS * BASE_NS_PER_MS;
}

static void begin_pool(struct agent *a, struct desired_pool *desired, uint32_t place)
{
    struct base_errbuf err = {"out of memory"};
    struct pool *p = pool_new(a, place, desired->is.name);
    if (p == NULL) {
        tell_not_made(a, desired, err.text);
        return;
    }
    p->number = (uint16_t)desired->is.numbers.number;
    p->mr_lease_ns = desired->is.numbers.mr_lease_ms != RESOURCE_UNSAID
                         ? desired->is.numbers.mr_lease_ms * BASE_NS_PER_MS
                         : a->config.mr_lease_ns;
    agent_prewarm_init(p, &desired->is);
    if (choose_incarnation(p, &err) == 0) {
        agent_pool_start_begin(p);
        return;
    }
    tell_not_made(a, desired, err.text);
    keep_incarnation(p, false);
    close_pool(p);
}

static void begin_serving(struct pool *p)
{
    struct agent *a = p->agent;
    const uint64_t now_ns = world_now_ns(a->world);
    p->stage = POOL_RUNS;
    world_log(a->world, BASE_LOG_INFO, "pool made", "pool=%s number=%u took_us=%llu", p->name,
              p->number, (unsigned long long)((now_ns - p->start.begun_ns) / 1000));
    p->ready_ns = now_ns + READY_MS * BASE_NS_PER_MS;
    agent_windows_apply(a);
    a->endpoints++;
    if (a->registering) /* else all of them begin together */
        agent_registrations_start(p);
    agent_registrations_changed(a);
}

/* One that is wanted, and has begun as far as it can: desired is what is said of it. */
static void step_start(struct pool *p, struct desired_pool *desired)
{
    struct agent *a = p->agent;
    if (!agent_pool_start_step(p))
        return;
    const int status = p->start.status;
    keep_incarnation(p, status == 0);
    if (status == 0) {
        desired->why[0] = '\0';
        begin_serving(p);
        return;
    }
    if (status != -ESTALE) /* else it is begun anew at once */
        tell_not_made(a, desired, p->start.err.text);
    close_pool(p);
}

static bool some_pool_starts(const struct agent *a)
{
    for (uint32_t i = 1; i < POOLS; i++)
        if (a->pools[i] != NULL && a->pools[i]->stage == POOL_STARTING)
            return true;
    return false;
}

/* POOLS: there is none. */
static uint32_t find_place(const struct agent *a)
{
    uint32_t place = 1;
    while (place < POOLS && a->pools[place] != NULL)
        place++;
    return place;
}

static uint64_t making_due_ns(const struct agent *a, const struct desired_pool *desired)
{
    const bool may_begin = is_wanted(a, desired) && find_place(a) < POOLS &&
                           agent_pools_find(a, desired->is.name) == NULL && !some_pool_starts(a);
    return due_if(may_begin, desired->again_ns);
}

/* One after another: each gives back an incarnation that it could not use. */
static void make_wanted(struct agent *a)
{
    const uint64_t now = world_now_ns(a->world);
    for (uint32_t i = 0; i < a->desired.count; i++)
        if (now >= making_due_ns(a, &a->desired.at[i]))
            begin_pool(a, &a->desired.at[i], find_place(a));
}

/* What is said of it now, elsewhere; of one that is deleted what was said last holds. */
static uint64_t grace_of(const struct pool *p)
{
    const struct agent *a = p->agent;
    for (uint32_t i = 0; i < a->desired.others; i++)
        if (strcmp(a->desired.other[i].name, p->name) == 0 &&
            a->desired.other[i].numbers.number == p->number)
            return a->desired.other[i].numbers.grace_ms;
    return p->prewarm.desired.numbers.grace_ms;
}

static void choose_end(struct pool *p)
{
    const uint64_t grace_ms = grace_of(p);
    p->prewarm.desired.numbers.grace_ms = grace_ms;
    p->end_ns = grace_ms == RESOURCE_UNSAID ? UINT64_MAX : p->left_ns + grace_ms * BASE_NS_PER_MS;
}

static void leave_pool(struct pool *p)
{
    p->stage = POOL_LEAVING;
    p->left_ns = world_now_ns(p->world);
    choose_end(p);
    agent_sessions_drain(p, true);
    world_log(p->world, BASE_LOG_INFO, "a pool goes: no new workers, and those that it has finish",
              "pool=%s workers=%u", p->name, agent_sessions_left(p));
}

/* Nobody is left in it. */
static void begin_closing(struct pool *p)
{
    p->stage = POOL_CLOSING;
    p->stopping = true;
    agent_registrations_stop(p);
    p->agent->endpoints++;
    agent_registrations_changed(p->agent);
    agent_sessions_let_go(p);
    agent_attach_give_up(p);
    (void)world_device(p->world, WORLD_DEVICE_LEAVE, p, NULL);
}

static bool is_quiet(const struct pool *p)
{
    const struct session_counts *c = &p->count;
    return p->works == 0 && p->fab_ops == 0 && p->calls == 0 && c->making == 0 && c->live == 0 &&
           c->ending == 0 && p->leases.list == NULL;
}

/* One that is not said (any more). */
static void step_out(struct pool *p)
{
    if (p->stage == POOL_RUNS)
        leave_pool(p);
    if (p->stage == POOL_LEAVING && grace_of(p) != p->prewarm.desired.numbers.grace_ms)
        choose_end(p);
    if (p->stage == POOL_LEAVING && world_now_ns(p->world) >= p->end_ns) {
        p->end_ns = UINT64_MAX;
        world_log(p->world, BASE_LOG_WARN,
                  "a pool goes: the workers that are left have had their time",
                  "pool=%s workers=%u", p->name, agent_sessions_left(p));
        agent_sessions_end_all(p, SCHEMA_REASON_POOL);
    }
    if (p->stage == POOL_LEAVING && agent_sessions_left(p) == 0)
        begin_closing(p);
    if (p->stage == POOL_STARTING)
        keep_incarnation(p, false);
    if (p->stage == POOL_STARTING || p->stage == POOL_ENDING ||
        (p->stage == POOL_CLOSING && is_quiet(p)))
        close_pool(p);
}

/* What it keeps ready is as said: as much is made of it as is missing. */
static void keep_ready(struct pool *p, const struct agent_pool_config *desired)
{
    agent_prewarm_apply(p, desired);
    agent_sessions_refill(p);
    agent_peer_setup_step(p);
}

/* What a step does for a pool that operators want, and that has begun. */
static void step_in(struct pool *p, const struct agent_pool_config *desired)
{
    if (p->stage == POOL_LEAVING) {
        p->stage = POOL_RUNS;
        agent_sessions_drain(p, agent_pools_drains(p));
        world_log(p->world, BASE_LOG_INFO, "a pool that was to go stays", "pool=%s", p->name);
    }
    if (memcmp(&p->prewarm.desired, desired, sizeof *desired) != 0)
        keep_ready(p, desired);
}

/* Which operators say, come and go. */
static bool is_said_elsewhere(const struct pool *p)
{
    return p != NULL && pool_endpoint(p) != own_pool(p->agent);
}

static void step_pools(struct agent *a)
{
    for (uint32_t i = 1; i < POOLS && !a->stopping; i++) {
        struct pool *p = a->pools[i];
        if (!is_said_elsewhere(p))
            continue;
        const uint32_t at = find_desired(a, p);
        struct desired_pool *desired = at < a->desired.count ? &a->desired.at[at] : NULL;
        if (desired == NULL || p->stage == POOL_CLOSING || p->stage == POOL_ENDING)
            step_out(p);
        else if (p->stage == POOL_STARTING)
            step_start(p, desired);
        else
            step_in(p, &desired->is);
    }
}

static uint64_t leaving_due_ns(const struct pool *p)
{
    const bool is_over = agent_sessions_left(p) == 0;
    const bool is_news = grace_of(p) != p->prewarm.desired.numbers.grace_ms;
    return is_over || is_news ? DUE_NOW : p->end_ns;
}

/* What tasks and the device do for one that comes or goes is looked at each time. */
static uint64_t step_due_ns(const struct agent *a, const struct pool *p)
{
    const uint32_t at = find_desired(a, p);
    const bool is_said = at < a->desired.count;
    if (p->stage == POOL_RUNS)
        return due_if(!is_said || memcmp(&p->prewarm.desired, &a->desired.at[at].is,
                                         sizeof p->prewarm.desired) != 0,
                      DUE_NOW);
    return p->stage == POOL_LEAVING && !is_said ? leaving_due_ns(p) : DUE_NOW;
}

uint64_t agent_pools_due_ns(const struct agent *a)
{
    uint64_t due_ns = DUE_NEVER;
    if (a->stopping)
        return DUE_NEVER;
    for (uint32_t i = 1; i < POOLS; i++)
        if (is_said_elsewhere(a->pools[i]))
            due_ns = due_first(due_ns, step_due_ns(a, a->pools[i]));
    for (uint32_t i = 0; i < a->desired.count; i++)
        due_ns = due_first(due_ns, making_due_ns(a, &a->desired.at[i]));
    return due_ns;
}

void agent_pools_step(struct agent *a)
{
    step_pools(a);
    if (!a->stopping)
        make_wanted(a);
}

void agent_pools_step_starting(struct agent *a)
{
    if (some_pool_starts(a))
        agent_pools_step(a);
}

void agent_pools_apply(struct agent *a, const struct agent_desired *s)
{
    const struct agent_pool_config mine = agent_desired_pool(s, own_pool(a)->name);
    for (struct pool *p = own_pool(a); p != NULL; p = agent_pools_next_lane(own_pool(a), p))
        keep_ready(p, &mine);
    a->desired.count = s->pools;
    for (uint32_t i = 0; i < s->pools; i++)
        a->desired.at[i] = (struct desired_pool){.is = s->pool[i]};
    a->desired.others = s->other_pools;
    memcpy(a->desired.other, s->other_pool, s->other_pools * sizeof s->other_pool[0]);
    agent_pools_step(a);
}
