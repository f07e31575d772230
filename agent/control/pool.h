/* SPDX-License-Identifier: Apache-2.0 */
/* One pool of the agent, or one of several lanes of it: what its files share. Its lane is stepped
 * by a thread of its own and reached through two rings; everything else is of the control thread.
 */
#ifndef CONTROL_POOL_H
#define CONTROL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "address_change.h"
#include "agent/lane.h"
#include "base/latency.h"
#include "base/log.h"
#include "control/config.h"
#include "control/lane_choice.h"
#include "control/lanes.h"
#include "control/prewarm_share.h"
#include "control/tenants.h"
#include "control/window_rebalance.h"
#include "control/world.h"
#include "dci_repair.h"
#include "device_objects.h"
#include "leases.h"
#include "pkey_watch.h"
#include "pool_start.h"
#include "prewarm.h"
#include "register.h"
#include "session_moves.h"
#include "sessions.h"

struct agent;
struct agent_config;
struct arena;
struct control_op;
struct fencing;
struct lane;
struct world;

enum { POOLS = 8 }; /* of one agent, and further lanes of any: each has a thread */

/* A protection domain and all that workers are lent of it: kept apart from other pools' by the
 * device, and by a lane thread of its own. The first one is the agent's own, as its file says; the
 * others come and go as metaservers say.
 *
 * Each may have further lanes, which are such structs too (pool_lanes.h): with
 * sessions, arenas, initiators, a completion queue and a table of peers of its own, and without
 * what is of the endpoint, which the first has for all of them: protection domains, target, MR
 * table, registrations, quotas, the record. With RC each has registrations too, since metaservers'
 * tables are READ through a connection that is one lane's alone. They begin and end with their
 * pool. */
struct pool {
    struct agent *agent;
    struct world *world;               /* the agent's */
    const struct agent_config *config; /* the agent's */
    uint32_t place;                    /* in agent->pools; 0: the own one */
    struct pool *first; /* of a further lane: that of its pool, whose endpoint it is of; or NULL */
    uint32_t lane_number; /* 0: it is the first */
    uint32_t lanes; /* of the first one of a pool that operators say: so many were made of it */
    char name[AGENT_TEXT];
    uint16_t number;      /* in records and handshakes */
    uint32_t incarnation; /* the agent's; a later one if the number has had a pool in this life */
    uint64_t mr_lease_ns;
    enum pool_stage {
        POOL_RUNS,
        POOL_LEAVING,  /* takes no new workers; those that it has may finish, until end_ns */
        POOL_CLOSING,  /* nobody has anything of it: what is under way ends */
        POOL_ENDING,   /* and this is what the device has of it */
        POOL_STARTING, /* before it runs: the device makes what it has of it, and it has no lane */
    } stage;
    uint32_t ended;    /* steps of its end that are done */
    uint64_t ready_ns; /* RUNS: when workers get it, registered or not; 0: they do */
    uint64_t left_ns;  /* LEAVING: since when; */
    uint64_t end_ns;   /* and when its workers have had their time; UINT64_MAX: never */
    bool stopping;     /* nothing is begun any more */
    uint32_t works;    /* tasks that are under way */
    uint32_t fab_ops;  /* control operations of the device that are under way */
    uint32_t calls;    /* of metaservers that are under way */
    struct pool_start start;
    struct agent_device device;
    struct pkey_watch pkeys;
    struct readdress readdress;
    struct lane *lane;
    uint64_t lookups_failed; /* of it, as agent_registrations_note_lookups() was told last */
    struct world_peers peers;
    struct world_lane stepping; /* of it */
    /* register.c */
    struct registration registration[LANE_MAX_METASERVERS];
    /* sessions.c */
    struct agent_session *sessions;
    struct agent_sessions sessions_empty, sessions_ready;
    struct base_latency attach_latency; /* admit.c: of workers that got a session */
    /* A tenant's workers are in one pool, but for those that it had before it was moved. */
    struct lane_quota quota[AGENT_TENANT_SLOTS]; /* of all lanes: pool_quota() */
    bool quarantined[AGENT_TENANT_SLOTS];        /* agent_quotas_apart() */
    uint32_t unmaking[AGENT_TENANT_SLOTS];       /* sessions that a tenant has had */
    struct session_counts count;
    uint32_t sessions_of[AGENT_TENANT_SLOTS]; /* those that each tenant has (quotas.c) */
    struct lane_rate {
        uint64_t per_s; /* requests of workers, of late */
        uint64_t posted, looked_ns;
    } lane_rate;                 /* pool_lanes.c */
    struct lane_balance balance; /* likewise, of all lanes: the first one's */
    struct session_moves moves;
    bool sessions_failed; /* the last one that was made ahead */
    uint64_t taken_ns;    /* when a worker last got a session */
    struct base_log_limit fault_log, unheld_log;
    /* arenas.c */
    void (*arena_made)(struct pool *p, struct arena *arena, int status); /* that was asked for */
    struct arena *arenas_ahead;                                          /* nobody's yet */
    struct arena *arenas_of[AGENT_TENANT_SLOTS]; /* a tenant's, zeroed and registered anew; */
    uint32_t arenas_of_all;                      /* so many of all */
    uint32_t arenas_making;
    int arenas_status;            /* of the last one that was made ahead */
    struct fencing *fences_again; /* that the device did not carry out */
    struct base_log_limit fence_log;
    uint64_t arenas_after_ns; /* failed: when the next one is made */
    struct base_log_limit arena_log;
    /* windows.c */
    struct agent_share share;                                 /* of the device's window */
    struct agent_destination own_windows[AGENT_DESTINATIONS]; /* as the lane has them */
    uint32_t own_window_count;
    uint32_t own_windows_left; /* destinations for which there was no room */
    /* prewarm.c, leases.c */
    struct prewarm prewarm;
    struct prewarm_share sessions_share, arenas_share; /* of those that are ready */
    struct attach_queue queue;
    struct leases leases;
    struct dci_repairs repairs;
    /* peer_setup.c */
    struct base_log_limit mtu_log, address_log;
    struct world_watch handshakes;
    struct world_timer handshakes_timer;
    struct base_log_limit overdue_log;
    struct base_log_limit end_log; /* of queue pairs that the device does not end */
    struct qp_end *ends;           /* qp_end.c */
};

/* What is of the endpoint, of which this is a lane: itself, or the first one. */
static inline struct pool *pool_endpoint(const struct pool *p)
{
    return p->first != NULL ? p->first : (struct pool *)p;
}

/* By whose registrations its lane knows the metaservers: its own, or those of its endpoint. */
static inline struct pool *pool_registered(const struct pool *p)
{
    return p->device.rc ? (struct pool *)p : pool_endpoint(p);
}

/* Whether it is a lane of the agent's own pool, which its file says. */
static inline bool pool_is_own(const struct pool *p)
{
    return pool_endpoint(p)->place == 0;
}

/* It has begun, and does not end: no timer of one that ends is set again. NULL: there is none. */
static inline bool pool_has_begun(const struct pool *p)
{
    return p != NULL && p->stage != POOL_STARTING && !p->stopping;
}

/* What a tenant (its index) has of the pool, in all of its lanes. */
static inline struct lane_quota *pool_quota(const struct pool *p, uint32_t tenant)
{
    return &pool_endpoint(p)->quota[tenant];
}

/* Since when no earlier life of this endpoint has had queue pairs. */
uint64_t agent_pool_begun_ns(const struct pool *p);

#endif
