/* SPDX-License-Identifier: Apache-2.0 */
/* The memory and descriptors of workers that are attached, or will be. Control thread. */
#ifndef CONTROL_SESSIONS_H
#define CONTROL_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "agent/lane.h"
#include "control/lane_choice.h"
#include "control/lanes.h"
#include "control/tenant_queue.h"
#include "control/work.h"
#include "quotas.h"

struct arena;
struct agent;
struct base_errbuf;
struct connection;
struct lane_event;
struct pool;
struct session_move;

enum stage { STAGE_EMPTY, STAGE_MAKING, STAGE_READY, STAGE_LIVE, STAGE_ENDING, STAGE_UNMAKING };

/* One session's memory and descriptors; its number is its index. */
struct agent_session {
    struct pool *pool;
    enum stage stage;
    struct world_rings rings;
    struct arena *arena[LANE_SESSION_MAX_ARENAS];
    uint32_t arenas;
    struct arena *arena_asked; /* being made, or given to the lane and not answered yet */
    bool over;                 /* but for that answer */
    uint32_t tenant;
    uint32_t serial; /* of its worker, among all of this agent's life */
    uint64_t attached_ns;
    uid_t uid;
    pid_t pid;
    struct connection *connection;       /* or NULL: it is gone */
    bool held;                           /* over, but for its worker, which has not closed it yet */
    struct quota_counted counted;        /* quotas.c */
    struct session_move *move;           /* session_moves.c; NULL: it is in its lane */
    struct lane_rest rest;               /* since it was last back from another */
    bool awaits_lookups;                 /* likewise: the lane looks up what it did not know */
    uint64_t operations;                 /* pool_lanes.c: so far, when it was last looked at */
    struct world_task task;              /* while MAKING or UNMAKING */
    TAILQ_ENTRY(agent_session) by_stage; /* while EMPTY or READY: of its pool's */
};
TAILQ_HEAD(agent_sessions, agent_session);

/* Workers that wait for a session to be made (admit.c). */
struct attach_queue {
    struct tenant_queue by_tenant; /* of tenants, by connection */
    uint64_t served_ns;            /* when the last one was, or the first one came */
    uint64_t each_ns;              /* from one to the next, of late; 0: not known */
};

struct session_counts {
    uint32_t ready, making, live, ending;
    uint32_t held; /* of those that are ending */
    uint32_t arenas, arenas_ahead;
    uint64_t arena_bytes;         /* registered or between owners */
    uint64_t attached, not_ahead; /* not_ahead: had to be made while a worker waited */
    uint64_t attached_ahead;      /* of those that attached: nothing had to be */
    uint64_t recycled;
    uint64_t faults; /* sessions that the lane ended */
};

void agent_session_counts_add(struct session_counts *sum, const struct session_counts *c);
int agent_sessions_start(struct pool *p, struct base_errbuf *err);
/* Whether some of what is kept ready is still being made; then, as the agent begins, whether there
 * is any: 0, or -errno and a sentence. */
bool agent_sessions_are_making(const struct pool *p);
int agent_sessions_check(struct pool *p, struct base_errbuf *err);
/* A session for a tenant (its index + 1), which its quotas allow: 0 and its number, with arena 0.
 * -EAGAIN: none is ready. One that is has to wait too while too many that its tenant has had are
 * still being taken back. */
bool agent_session_is_ready(const struct pool *p, uint32_t tenant);
int agent_session_take(struct pool *p, uint32_t tenant, uid_t uid, pid_t pid, struct connection *c,
                       uint32_t *number);
/* session_room.c. Whether one more worker of that tenant may have a session, or wait for one, so
 * that every other one finds its part of them: 0; or -EAGAIN, a sentence, and whether it may
 * soon, since some that have ended are being taken back. */
int agent_session_check_room(const struct agent *a, uint32_t tenant, bool *soon,
                             struct base_errbuf *why);
/* The lane hears of it: once, before anything else happens to it. */
void agent_session_begin(struct pool *p, uint32_t number);
/* As its lane is told of it, but for `touch`. */
struct lane_command agent_session_describe(const struct agent_session *s);
struct lane_arena agent_arena_describe(const struct arena *arena);
/* Gives it one more arena; the answer is an event (worker_events.h). 0; or -errno and a sentence.
 */
int agent_session_add_arena(struct pool *p, uint32_t number, uint64_t bytes,
                            struct base_errbuf *why);
/* Gives it a completion channel in place of the one that it may have: 0 and the worker's end
 * (world_lent.channel); or -errno and a sentence. */
int agent_session_add_channel(struct pool *p, uint32_t number, int *fd, struct base_errbuf *why);
/* Its worker is gone, or all of this ends. */
void agent_session_release(struct pool *p, uint32_t number, uint32_t reason);
/* Events of the lane about sessions. */
void agent_sessions_event(struct pool *p, const struct lane_event *e);
/* Begins to make one that is EMPTY; gives back one of those that are READY, of which there is one.
 */
void agent_session_make(struct agent_session *s);
void agent_session_shed(struct pool *p);
/* sessions_refill.c. What is missing of what is kept ready is made. */
void agent_sessions_refill(struct pool *p);
/* Now and then: refills when it is due. */
void agent_sessions_tick(struct pool *p);
uint64_t agent_sessions_due_ns(const struct pool *p);
/* After a worker has its answer: refills early when little is left. */
void agent_sessions_taken(struct pool *p);
/* Of a tenant (its index + 1) that nobody says any more. */
void agent_sessions_end_tenant(struct pool *p, uint32_t tenant);
void agent_sessions_end_all(struct pool *p, uint32_t reason);
/* Says so to all workers, or that they may stay; those that sleep are woken. */
void agent_sessions_drain(struct pool *p, bool drains);
/* Those that anything is still in flight of, or believed; not those whose worker has only not
 * closed them yet. */
uint32_t agent_sessions_left(const struct pool *p);
/* Those that are over but for their workers, which have not closed them: they have had their time.
 */
void agent_sessions_let_go(struct pool *p);
/* At a pool's end: all of them are over; when nothing of them is under way any more, their memory.
 */
void agent_sessions_stop(struct pool *p);
void agent_sessions_free(struct pool *p);

#endif
