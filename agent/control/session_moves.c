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
    bool is_ours; /* one of the move's own two */
};

struct session_move {
    struct pool *to;
    uint32_t lodger;  /* its number there */
    uint64_t came_ns; /* when it did, once it is away */
    bool away;        /* it is there; else it leaves its own lane */
    bool called;
    bool hurried;
    STAILQ_HEAD(, kept) kept;
    /* That it ends, and that it has one more arena: each comes once at most, and is never lost. */
    struct kept end, arena;
};

static uint32_t number_of(const struct agent_session *s)
{
    return (uint32_t)(s - s->pool->sessions);
}

/* ---- whose window it counts in */

static void count_lodger(struct agent_session *s, struct pool *to, int more)
{
    uint32_t *const sessions = &to->sessions_of[s->tenant - 1];
    *sessions += (uint32_t)more;
    to->moves.lodgers += (uint32_t)more;
    if (*sessions == (more > 0 ? 1 : 0))
        agent_windows_share_tenant(pool_endpoint(to), s->tenant);
}

/* ---- to and fro */

static bool find_place(const struct pool *to, uint32_t *out)
{
    for (uint32_t i = 0; i < LANE_LODGERS; i++)
        if (to->moves.lodger[i] == NULL) {
            *out = i;
            return true;
        }
    return false;
}

void agent_session_move(struct agent_session *s, struct pool *to)
{
    uint32_t place;
    if (s->stage != STAGE_LIVE || s->move != NULL || s->arena_asked != NULL ||
        !find_place(to, &place) || lane_memory_let_move(s->rings.memory) != 0)
        return;
    struct session_move *m = calloc(1, sizeof *m);
    if (m == NULL)
        return;
    *m = (struct session_move){.to = to, .lodger = place};
    STAILQ_INIT(&m->kept);
    s->move = m;
    to->moves.lodger[place] = s;
    count_lodger(s, to, 1); /* its part of the tenant's window is told first */
    agent_pool_command(s->pool, &(struct lane_command){.kind = LANE_COMMAND_SESSION_LEAVE,
                                                       .session = number_of(s)});
}

static void free_kept(struct session_move *m)
{
    struct kept *k;
    while ((k = STAILQ_FIRST(&m->kept)) != NULL) {
        STAILQ_REMOVE_HEAD(&m->kept, next);
        if (!k->is_ours)
            free(k);
    }
}

/* One that did not go, or was not let in, is no longer kept from it than once. */
static void begin_rest(struct agent_session *s, const struct session_move *m)
{
    const uint64_t now_ns = world_now_ns(s->pool->world);
    if (m->came_ns != 0)
        agent_lane_rest_begin(&s->rest, now_ns - m->came_ns, now_ns);
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
    count_lodger(s, m->to, -1);
    begin_rest(s, m);
    STAILQ_FOREACH(k, &m->kept, next)
        agent_pool_command(s->pool, &k->command);
    free_kept(m);
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
    m->came_ns = world_now_ns(s->pool->world);
    agent_pool_command(m->to, &c);
}

static void on_left(struct agent_session *s, int status)
{
    struct session_move *m = s->move;
    if (status != 0) {
        m->to->moves.refused += status != -ECANCELED;
        end_move(s);
    } else if (m->called) {
        come_back(s);
    } else {
        enter_lane(s);
    }
}

void agent_session_moves_event(struct pool *p, const struct lane_event *e)
{
    if (e->kind == LANE_EVENT_SESSION_LEFT) {
        on_left(&p->sessions[e->session], e->status);
        return;
    }
    struct agent_session *s = p->moves.lodger[e->session];
    s->move->came_ns = e->status == 0 ? s->move->came_ns : 0;
    p->moves.refused += e->status != 0;
    p->moves.moved += e->status == 0;
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

struct pool *agent_session_is_at(const struct agent_session *s)
{
    return s->move != NULL ? s->move->to : s->pool;
}

/* ---- what waits */

static struct kept *find_room(struct session_move *m, const struct lane_command *c)
{
    struct kept *own = c->kind == LANE_COMMAND_SESSION_END ? &m->end
                       : c->kind == LANE_COMMAND_ARENA_ADD ? &m->arena
                                                           : NULL;
    if (own == NULL)
        return malloc(sizeof *own);
    BASE_ASSERT(!own->is_ours);
    return own;
}

/* Without memory the lane hears of it now: an operator is told that there is no such session. */
void agent_session_command(struct pool *p, const struct lane_command *c)
{
    struct session_move *m = p->sessions[c->session].move;
    struct kept *k = m != NULL ? find_room(m, c) : NULL;
    if (k == NULL) {
        agent_pool_command(p, c);
        return;
    }
    *k = (struct kept){.command = *c, .is_ours = k == &m->end || k == &m->arena};
    STAILQ_INSERT_TAIL(&m->kept, k, next);
    agent_session_call_home(&p->sessions[c->session], c->kind == LANE_COMMAND_SESSION_END);
}

void agent_session_moves_stop(struct agent_session *s)
{
    if (s->move == NULL)
        return;
    free_kept(s->move);
    free(s->move);
    s->move = NULL;
}
