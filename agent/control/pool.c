/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of the agent: its own, which its file says and which is there from start to end, and
 * those that metaservers say of this node, which come and go while workers run.
 *
 * One that goes takes no new workers, lets those that it has finish, and is closed when nothing of
 * it is under way any more: nothing waits for that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "base/clock.h"
#include "connection.h"
#include "control/world_log.h"
#include "due.h"
#include "lane_setup.h"
#include "life.h"
#include "peer_setup.h"
#include "pool.h"
#include "pool_end.h"
#include "pool_lanes.h"
#include "pools.h"
#include "prewarm.h"
#include "register.h"
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
    if (agent_pool_start_serve(p) != 0)
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

/* POOLS: there is none. */
static uint32_t find_place(const struct agent *a)
{
    uint32_t place = 1;
    while (place < POOLS && a->pools[place] != NULL)
        place++;
    return place;
}

/* With all of its lanes, of which none has begun: so their places are nobody else's. NULL: no
 * memory; what there is is to be closed. */
static struct pool *new_desired(struct agent *a, const struct agent_pool_config *is)
{
    struct pool *first = NULL;
    const uint32_t lanes = agent_desired_lanes(is);
    for (uint32_t i = 0; i < lanes; i++) {
        struct pool *p = pool_new(a, find_place(a), is->name);
        if (p == NULL)
            break;
        p->stage = POOL_STARTING;
        p->number = (uint16_t)is->numbers.number;
        p->mr_lease_ns = is->numbers.mr_lease_ms != RESOURCE_UNSAID
                             ? is->numbers.mr_lease_ms * BASE_NS_PER_MS
                             : a->config.mr_lease_ns;
        p->first = first;
        p->lane_number = i;
        first = i == 0 ? p : first;
        first->lanes++;
    }
    return first;
}

static void begin_lane(struct pool *p, const struct agent_pool_config *is)
{
    p->incarnation = pool_endpoint(p)->incarnation;
    agent_prewarm_init(p, is);
    agent_pool_start_begin(p);
}

static void begin_pool(struct agent *a, struct desired_pool *desired)
{
    struct base_errbuf err = {"out of memory"};
    struct pool *p = new_desired(a, &desired->is);
    if (p == NULL) {
        tell_not_made(a, desired, err.text);
        return;
    }
    if (p->lanes == agent_desired_lanes(&desired->is) && choose_incarnation(p, &err) == 0) {
        begin_lane(p, &desired->is);
        return;
    }
    tell_not_made(a, desired, err.text);
    keep_incarnation(p, false);
    agent_pool_close(p);
}

static void begin_serving(struct pool *endpoint)
{
    struct agent *a = endpoint->agent;
    const uint64_t now_ns = world_now_ns(a->world);
    world_log(a->world, BASE_LOG_INFO, "pool made", "pool=%s number=%u took_us=%llu lanes=%u",
              endpoint->name, endpoint->number,
              (unsigned long long)((now_ns - endpoint->start.begun_ns) / 1000), endpoint->lanes);
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        p->stage = POOL_RUNS;
        p->ready_ns = now_ns + READY_MS * BASE_NS_PER_MS;
    }
    agent_windows_apply(a);
    a->endpoints++;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        if (a->registering) /* else all of them begin together */
            agent_registrations_start(p);
    agent_registrations_changed(a);
}

/* One lane after another: those behind the first have its protection domains and its MR table. As
 * many as are there without waiting. NULL: all are there; else the one that is under way, or could
 * not be made. */
static struct pool *make_lanes(struct pool *endpoint, const struct agent_pool_config *is)
{
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p)) {
        if (p->start.stage == START_IDLE)
            begin_lane(p, is);
        if (!agent_pool_start_step(p) || p->start.status != 0)
            return p;
    }
    return NULL;
}

/* In one turn: no worker gets one lane of a pool that has to go for want of another. */
static struct pool *serve_lanes(struct pool *endpoint)
{
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_part(endpoint, p))
        if (agent_pool_start_serve(p) != 0)
            return p;
    return NULL;
}

static void tell_lane_not_made(struct agent *a, struct desired_pool *desired, const struct pool *p)
{
    char why[sizeof desired->why];
    if (p->first == NULL) {
        tell_not_made(a, desired, p->start.err.text);
        return;
    }
    snprintf(why, sizeof why, "lane %u of %u: %.130s", p->lane_number, pool_endpoint(p)->lanes,
             p->start.err.text);
    tell_not_made(a, desired, why);
}

/* One that is wanted, and has begun as far as it can: desired is what is said of it. */
static void step_start(struct pool *p, struct desired_pool *desired)
{
    struct agent *a = p->agent;
    const struct pool *left = make_lanes(p, &desired->is);
    if (left != NULL && !agent_pool_start_is_over(left))
        return;
    if (left == NULL)
        left = serve_lanes(p);
    keep_incarnation(p, left == NULL);
    if (left == NULL) {
        desired->why[0] = '\0';
        begin_serving(p);
        return;
    }
    if (left->start.status != -ESTALE) /* else it is begun anew at once */
        tell_lane_not_made(a, desired, left);
    agent_pool_close(p);
}

static bool some_pool_starts(const struct agent *a)
{
    for (uint32_t i = 1; i < POOLS; i++)
        if (a->pools[i] != NULL && a->pools[i]->stage == POOL_STARTING)
            return true;
    return false;
}

static uint64_t making_due_ns(const struct agent *a, const struct desired_pool *desired)
{
    const bool may_begin = is_wanted(a, desired) &&
                           agent_pools_room(a) >= agent_desired_lanes(&desired->is) &&
                           agent_pools_find(a, desired->is.name) == NULL && !some_pool_starts(a);
    return due_if(may_begin, desired->again_ns);
}

/* One after another: each gives back an incarnation that it could not use. */
static void make_wanted(struct agent *a)
{
    const uint64_t now = world_now_ns(a->world);
    for (uint32_t i = 0; i < a->desired.count; i++)
        if (now >= making_due_ns(a, &a->desired.at[i]))
            begin_pool(a, &a->desired.at[i]);
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

/* In all of its lanes. */
static uint32_t workers_left(const struct pool *endpoint)
{
    uint32_t n = 0;
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        n += agent_sessions_left(p);
    return n;
}

static void leave_pool(struct pool *endpoint)
{
    const uint64_t now_ns = world_now_ns(endpoint->world);
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        p->stage = POOL_LEAVING;
        p->left_ns = now_ns;
        agent_sessions_drain(p, true);
    }
    choose_end(endpoint);
    world_log(endpoint->world, BASE_LOG_INFO,
              "a pool goes: no new workers, and those that it has finish", "pool=%s workers=%u",
              endpoint->name, workers_left(endpoint));
}

/* Nobody is left in it. */
static void begin_closing(struct pool *endpoint)
{
    struct agent *a = endpoint->agent;
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        p->stage = POOL_CLOSING;
        p->stopping = true;
        agent_registrations_stop(p);
    }
    a->endpoints++;
    agent_registrations_changed(a);
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        agent_sessions_let_go(p);
        agent_attach_give_up(p);
        (void)world_device(p->world, WORLD_DEVICE_LEAVE, p, NULL);
    }
}

static bool lane_is_quiet(const struct pool *p)
{
    const struct session_counts *c = &p->count;
    return p->works == 0 && p->fab_ops == 0 && p->calls == 0 && c->making == 0 && c->live == 0 &&
           c->ending == 0 && p->leases.list == NULL;
}

static bool is_quiet(const struct pool *endpoint)
{
    bool quiet = true;
    for (const struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        quiet &= lane_is_quiet(p);
    return quiet;
}

static void end_workers(struct pool *endpoint)
{
    endpoint->end_ns = UINT64_MAX;
    world_log(endpoint->world, BASE_LOG_WARN,
              "a pool goes: the workers that are left have had their time", "pool=%s workers=%u",
              endpoint->name, workers_left(endpoint));
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p))
        agent_sessions_end_all(p, SCHEMA_REASON_POOL);
}

/* One that is not said (any more). */
static void step_out(struct pool *p)
{
    if (p->stage == POOL_RUNS)
        leave_pool(p);
    if (p->stage == POOL_LEAVING && grace_of(p) != p->prewarm.desired.numbers.grace_ms)
        choose_end(p);
    if (p->stage == POOL_LEAVING && world_now_ns(p->world) >= p->end_ns)
        end_workers(p);
    if (p->stage == POOL_LEAVING && workers_left(p) == 0)
        begin_closing(p);
    if (p->stage == POOL_STARTING)
        keep_incarnation(p, false);
    if (p->stage == POOL_STARTING || p->stage == POOL_ENDING ||
        (p->stage == POOL_CLOSING && is_quiet(p)))
        agent_pool_close(p);
}

/* What it keeps ready is as said: as much is made of it as is missing. */
static void keep_ready(struct pool *p, const struct agent_pool_config *desired)
{
    agent_prewarm_apply(p, desired);
    agent_sessions_refill(p);
    agent_peer_setup_step(p);
}

static void keep_pool(struct pool *endpoint)
{
    for (struct pool *p = endpoint; p != NULL; p = agent_pools_next_lane(endpoint, p)) {
        p->stage = POOL_RUNS;
        agent_sessions_drain(p, agent_pools_drains(p));
    }
    world_log(endpoint->world, BASE_LOG_INFO, "a pool that was to go stays", "pool=%s",
              endpoint->name);
}

/* What a step does for a pool that operators want, and that has begun. */
static void step_in(struct pool *p, const struct agent_pool_config *desired)
{
    if (p->stage == POOL_LEAVING)
        keep_pool(p);
    if (memcmp(&p->prewarm.desired, desired, sizeof *desired) == 0)
        return;
    for (struct pool *l = p; l != NULL; l = agent_pools_next_lane(p, l))
        keep_ready(l, desired);
}

/* Which operators say, come and go, each with all of its lanes. */
static bool is_said_elsewhere(const struct pool *p)
{
    return p != NULL && p->first == NULL && p != own_pool(p->agent);
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
    const bool is_over = workers_left(p) == 0;
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
