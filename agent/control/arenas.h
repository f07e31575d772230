/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that workers are lent. Control thread. */
#ifndef CONTROL_ARENAS_H
#define CONTROL_ARENAS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/work.h"
#include "fabric/fabric.h"
#include "mr_ops.h"

struct agent;
struct base_errbuf;
struct fab_mr;
struct fenced;
struct pool;

struct arena {
    struct pool *pool;
    uint64_t bytes;      /* what was asked for */
    uint64_t made_bytes; /* what it has of the host's memory, until that is free; 0: none yet */
    struct fab_mem mem;
    struct fab_mr *mr;     /* NULL while it is between owners */
    uint32_t tenant;       /* index + 1 of whose it was or is; 0: nobody's yet */
    uint32_t session;      /* that asked for it */
    bool busy;             /* a task thread has it, or it is being registered, or anew */
    bool asked;            /* when made, its session hears of it */
    bool charged;          /* its bytes count as its tenant's (tenants.h) */
    _Atomic bool unwanted; /* retired while busy: a task thread that makes it reads it */
    bool lost;             /* another registration of it cannot be given back */
    struct fenced *fenced; /* registrations of regions in it: they go before its own does */
    struct world_task task;
    struct mr_op op; /* busy: registering; or deregistering */
    struct arena *next;
};

/* One of the usual size for a tenant (its index + 1). NULL: none is ready. */
struct arena *agent_arena_take(struct pool *p, uint32_t tenant);
/* arena_room.c. Whether a session of that tenant may have one beside its first: 0; or -EDQUOT and a
 * sentence: the agent has no descriptor left for that; or likewise -EAGAIN: once those that its
 * sessions have left are freed. */
int agent_arena_check_room(const struct agent *a, uint32_t tenant, struct base_errbuf *why);
bool agent_arena_is_ready(const struct pool *p, uint32_t tenant);
/* One for a session that has one already. *out is ready, or `asked`: then arena_made() comes. */
int agent_arena_ask(struct pool *p, uint32_t tenant, uint64_t bytes, uint32_t session,
                    struct arena **out);
/* How many are kept for a tenant (its index + 1). */
uint32_t agent_arenas_kept(const struct pool *p, uint32_t tenant);
/* What registers that much of it, to be submitted: at an address that none ever had. */
struct fab_ctl agent_arena_registration(const struct arena *arena, uint64_t offset, uint64_t length,
                                        unsigned access);
/* All of it, for all that its worker may let peers do. */
struct fab_ctl agent_arena_whole(const struct arena *arena);
/* Ends what it is used for; it is used again or freed. */
void agent_arena_retire(struct arena *arena);
void agent_arenas_refill(struct pool *p);
/* When refilling makes one, unless workers have come just now; and whether there is any of those:
 */
uint64_t agent_arenas_refill_due_ns(const struct pool *p);
bool agent_arenas_are_too_many(const struct pool *p);
/* Up to so many of those that are ready beyond what is to be. */
void agent_arenas_shed(struct pool *p, uint32_t most);
/* Those that are kept for a tenant (its index + 1). */
void agent_arenas_forget(struct pool *p, uint32_t tenant);
/* After sessions have given theirs. */
void agent_arenas_stop(struct pool *p);

#endif
