/* SPDX-License-Identifier: Apache-2.0 */
#include "session_moves.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "agent.h"
#include "base/assert.h"
#include "base/clock.h"
#include "lane_setup.h"
#include "pools.h"
#include "windows.h"

/* A command that waits. */
struct kept {
    struct lane_command command;
    STAILQ_ENTRY(kept) next;
    bool waits;
};

struct session_move {
    struct pool *to;
    uint32_t lodger;     /* its number there */
    uint32_t tenant;     /* of whom it is counted there */
    uint64_t came_ns;    /* when it did, once it is away */
    uint64_t worked_ns;  /* when it was last seen to have posted something there, and how much it */
    uint64_t operations; /* had by then */
    bool away;           /* it is there; else it leaves its own lane */
    bool refused;        /* its lane has not let it go, for what may last */
    struct world_task hear;
    bool called;
    bool hurried;
    STAILQ_HEAD(, kept) kept;
    /* That it ends, that it has one more arena, and that an arena has another registration: each
     * comes once at most until it is answered, and is never lost. */
    struct kept end, arena, rekey[LANE_SESSION_MAX_ARENAS];
};

static uint32_t number_of(const struct agent_session *s)
{
    return (uint32_t)(s - s->pool->sessions);
}

/* ---- whose window it counts in */

static void count_lodger(struct pool *to, uint32_t tenant, int more)
{
    uint32_t *const sessions = &to->sessions_of[tenant - 1];
    *sessions += (uint32_t)more;
    to->moves.lodgers += (uint32_t)more;
    if (*sessions == (more > 0 ? 1 : 0))
        agent_windows_share_tenant(pool_endpoint(to), tenant);
}

/* ---- to and fro */

static bool find_place(const struct pool *to, uint32_t tenant, uint32_t *out)
{
    uint32_t own = 0, left = 0;
    for (uint32_t i = LANE_LODGERS; i-- > 0;) {
        if (to->moves.lodger[i] == NULL) {
            *out = i;
            left++;
        } else {
            own += to->moves.lodger[i]->move->tenant == tenant;
        }
    }
    return agent_lane_may_lodge(own, left);
}

/* One that cannot go rests too: else it would be the first to be asked each time, since it would
 * make lanes even best, and no other tenant's would ever go. */
void agent_session_move(struct agent_session *s, struct pool *to)
{
    uint32_t place = 0;
    if (s->stage != STAGE_LIVE || s->move != NULL)
        return;
    if (s->arena_asked != NULL || !find_place(to, s->tenant, &place) ||
        lane_memory_let_move(s->rings.memory) != 0) {
        agent_lane_rest_refused(&s->rest, world_now_ns(s->pool->world));
        return;
    }
    struct session_move *m = calloc(1, sizeof *m);
    if (m == NULL)
        return;
    *m = (struct session_move){.to = to, .lodger = place, .tenant = s->tenant};
    STAILQ_INIT(&m->kept);
    s->move = m;
    to->moves.lodger[place] = s;
    count_lodger(to, m->tenant, 1); /* its part of the tenant's window is told first */
    agent_pool_command(s->pool, &(struct lane_command){.kind = LANE_COMMAND_SESSION_LEAVE,
                                                       .session = number_of(s)});
}

/* One that its lane asks to stay this time, or that was not let in, is no longer kept from it than
 * once. */
static void begin_rest(struct agent_session *s, const struct session_move *m)
{
    const uint64_t now_ns = world_now_ns(s->pool->world);
    if (m->came_ns != 0)
        agent_lane_rest_begin(&s->rest, now_ns - m->came_ns, now_ns);
    else if (m->refused)
        agent_lane_rest_refused(&s->rest, now_ns);
    else
        s->rest.until_ns = now_ns + LANE_REST_MS * BASE_NS_PER_MS;
}

/* It is at home, and hears what has waited. */
static void end_move(struct agent_session *s)
{
    struct session_move *m = s->move;
    struct kept *k;
    s->move = NULL;
    m->to->moves.lodger[m->lodger] = NULL;
    count_lodger(m->to, m->tenant, -1);
    begin_rest(s, m);
    STAILQ_FOREACH(k, &m->kept, next)
        agent_pool_command(s->pool, &k->command);
    free(m);
}

static void come_back(struct agent_session *s)
{
    agent_pool_command(s->pool, &(struct lane_command){.kind = LANE_COMMAND_SESSION_BACK,
                                                       .session = number_of(s)});
    end_move(s);
}

static void enter_lane(struct agent_session *s)
{
    struct session_move *m = s->move;
    struct lane_command c = agent_session_describe(s);
    c.kind = LANE_COMMAND_LODGER_ADD;
    c.add.id = m->lodger;
    m->away = true;
    m->came_ns = m->worked_ns = world_now_ns(s->pool->world);
    agent_pool_command(m->to, &c);
}

/* ---- its doorbell, which one lane hears at a time */

static void hear_at_home(struct agent_session *s)
{
    struct pool *home = s->pool;
    world_lane_unwatch(home->world, &s->move->to->stepping, &s->rings);
    s->rings.lodges = NULL;
    (void)world_lane_watch(home->world, &home->stepping, number_of(s), &s->rings);
}

static void on_heard(void *session)
{
    struct agent_session *s = session;
    struct session_move *m = s->move;
    struct pool *home = s->pool;
    home->works--;
    if (m->hear.status != 0) {
        s->rings.lodges = NULL;
        m->to->moves.refused++;
        come_back(s);
        return;
    }
    world_lane_unwatch(home->world, &home->stepping, &s->rings);
    (void)world_lane_watch(home->world, &m->to->stepping, s->rings.lodger, &s->rings);
    if (!m->called) {
        enter_lane(s);
        return;
    }
    hear_at_home(s);
    come_back(s);
}

/* That may wait for strangers (daemon/doorbells.h), and no lane takes anything of it until then: so
 * it is the agent's own task, and does not stand behind what tenants want, as arenas that are
 * zeroed. */
static void begin_hearing(struct agent_session *s)
{
    struct session_move *m = s->move;
    s->rings.lodges = &m->to->stepping;
    s->rings.lodger = (uint32_t)s->pool->config->max_sessions + m->lodger;
    s->pool->works++;
    m->hear = (struct world_task){
        .work = WORLD_LODGE_RINGS, .rings = &s->rings, .done = on_heard, .user = s};
    world_run(s->pool->world, &m->hear);
}

/* ---- what lanes say */

static void on_left(struct agent_session *s, int status)
{
    struct session_move *m = s->move;
    if (status != 0) {
        m->to->moves.refused += status != -ECANCELED;
        m->refused = status == -EBUSY;
        end_move(s);
    } else if (m->called) {
        come_back(s);
    } else {
        begin_hearing(s);
    }
}

/* One that has to wait until its lane has looked its endpoints up is not refused. */
static void on_lodger_left(struct agent_session *s, int status)
{
    struct session_move *m = s->move;
    const bool looked_up = status == -EAGAIN && !s->awaits_lookups;
    s->awaits_lookups = looked_up;
    if (status != 0)
        m->came_ns = 0;
    m->to->moves.refused += status != 0 && !looked_up;
    m->to->moves.moved += status == 0;
    hear_at_home(s);
    come_back(s);
}

void agent_session_call_home(struct agent_session *s, bool hurry)
{
    struct session_move *m = s->move;
    if (m == NULL || (m->called && (m->hurried || !hurry)))
        return;
    m->called = true;
    m->hurried |= hurry;
    if (m->away)
        agent_pool_command(m->to, &(struct lane_command){.kind = LANE_COMMAND_LODGER_RETURN,
                                                         .session = m->lodger,
                                                         .hurry = hurry});
}

void agent_session_moves_look(struct pool *p, uint64_t now_ns)
{
    for (uint32_t i = 0; p->moves.lodgers > 0 && i < LANE_LODGERS; i++) {
        struct agent_session *s = p->moves.lodger[i];
        uint64_t operations, bytes;
        if (s == NULL || !s->move->away)
            continue;
        struct session_move *m = s->move;
        lane_posted_of(s->rings.memory, &operations, &bytes);
        if (operations != m->operations)
            m->worked_ns = now_ns;
        m->operations = operations;
        if (now_ns - m->worked_ns > LANE_IDLE_MS * BASE_NS_PER_MS)
            agent_session_call_home(s, false);
    }
}

struct pool *agent_session_is_at(const struct agent_session *s)
{
    return s->move != NULL ? s->move->to : s->pool;
}

/* ---- what waits */

static struct kept *place_of(struct session_move *m, const struct lane_command *c)
{
    BASE_ASSERT(c->kind == LANE_COMMAND_SESSION_END || c->kind == LANE_COMMAND_ARENA_ADD ||
                c->kind == LANE_COMMAND_ARENA_REREGISTER);
    return c->kind == LANE_COMMAND_SESSION_END ? &m->end
           : c->kind == LANE_COMMAND_ARENA_ADD ? &m->arena
                                               : &m->rekey[c->reregister.number];
}

/* Of its regions, which are at home, with all that peers believe of them. */
static bool is_of_regions(const struct lane_command *c)
{
    return c->kind == LANE_COMMAND_REVOKE || c->kind == LANE_COMMAND_FENCED ||
           c->kind == LANE_COMMAND_FORCE_LATE || c->kind == LANE_COMMAND_FORCE_OVER;
}

/* What it posts names the arena too: the lane that has it goes over to the other registration, and
 * then its own lane does. */
static void tell_lodger(const struct session_move *m, const struct agent_session *s,
                        const struct lane_command *c)
{
    struct lane_command there = *c;
    there.session = s->rings.lodger;
    agent_pool_command(m->to, &there);
}

void agent_session_command(struct pool *p, const struct lane_command *c)
{
    struct agent_session *s = &p->sessions[c->session];
    struct session_move *m = s->move;
    if (m == NULL || is_of_regions(c)) {
        agent_pool_command(p, c);
        return;
    }
    struct kept *k = place_of(m, c);
    BASE_ASSERT(!k->waits);
    *k = (struct kept){.command = *c, .waits = true};
    STAILQ_INSERT_TAIL(&m->kept, k, next);
    if (m->away && c->kind == LANE_COMMAND_ARENA_REREGISTER)
        tell_lodger(m, s, c);
    else
        agent_session_call_home(s, c->kind == LANE_COMMAND_SESSION_END);
}

/* Also when it had left, and has heard of it at home. */
static void on_rekeyed(struct pool *p, const struct lane_event *e)
{
    const uint32_t lodger = e->session - (uint32_t)p->config->max_sessions;
    struct agent_session *s = p->moves.lodger[lodger];
    for (uint32_t i = 0; s != NULL && i < LANE_SESSION_MAX_ARENAS; i++) {
        struct kept *k = &s->move->rekey[i];
        if (!k->waits || k->command.reregister.tag != e->answer.tag)
            continue;
        k->waits = false;
        STAILQ_REMOVE(&s->move->kept, k, kept, next);
        agent_pool_command(s->pool, &k->command);
    }
}

/* ---- events */

bool agent_session_moves_event(struct pool *p, const struct lane_event *e)
{
    switch (e->kind) {
    case LANE_EVENT_SESSION_LEFT:
        on_left(&p->sessions[e->session], e->status);
        return true;
    case LANE_EVENT_LODGER_LEFT:
        on_lodger_left(p->moves.lodger[e->session], e->status);
        return true;
    case LANE_EVENT_ARENA_REREGISTERED:
        if (e->session < p->config->max_sessions)
            return false;
        on_rekeyed(p, e);
        return true;
    default:
        return false;
    }
}

void agent_session_moves_stop(struct agent_session *s)
{
    if (s->move == NULL)
        return;
    free(s->move);
    s->move = NULL;
    s->rings.lodges = NULL;
}
