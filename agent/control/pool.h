/* SPDX-License-Identifier: Apache-2.0 */
/* One pool of the agent: what its files share. Everything but lane_thread.c runs on the control
 * thread, in the agent's loop; the pool's lane thread is reached through the lane's two rings
 * alone.
 */
#ifndef CONTROL_POOL_H
#define CONTROL_POOL_H

#include <sys/types.h>
#include <time.h>

#include "agent/connector.h"
#include "agent/lane.h"
#include "control/config.h"
#include "control/desired.h"
#include "control/window_rebalance.h"
#include "control/tenants.h"
#include "control/lanes.h"
#include "control/world.h"
#include "base/error.h"
#include "base/http/client.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/placement.h"
#include "fabric/reuse.h"
#include "dci.h"
#include "limits.h"
#include "schema/control.h"

struct agent;
struct pool;
struct connection;

/* ---- device.c */

/* This node's regions, as peers READ them. */
struct agent_table {
    struct fab_mem memory;
    struct fab_mr *mr;
    struct schema_table table;
};

/* What a pool has of the device: protection domains, queue pairs, the MR table that peers READ. */
struct agent_device {
    struct fab *fab; /* the agent's */
    struct fab_placement placement;
    struct fab_pd *pd, *system_pd;
    struct fab_chan *chan;
    struct fab_cq *cq, *target_cq;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_mem scratch, small;
    struct fab_mr *scratch_mr, *scratch_system_mr, *small_mr;
    struct agent_table *table, *table_before;    /* before: until the lane has left it */
    bool rc;                                     /* else DC */
    struct agent_dci dci[2 * LANE_MAX_DCIS + 1]; /* number 0 is the system's */
    uint32_t dcis;
    uint64_t rest_until_ns; /* DC: the lane began with those that rest until then; 0: with others */
    enum ibv_mtu path_mtu; /* DC: of those from number 1 on: what the port has, or less where a peer
                            * has less */
    enum ibv_mtu dct_mtu;  /* DC: of the target, as its record says */
    uint32_t max_spares;   /* DC: that there is room for */
    uint32_t sq_depth;
    struct connector *connector; /* rc */
    uint32_t ud_qpn;             /* rc: the number by which it hears, as others are told */
    uint32_t mr_log2;            /* of the table's slots */
    uint64_t bound_ns;           /* of the lease rule, from the queue pairs' attributes */
};

/* device_objects.c. What an error of the device means, with the limit of locked memory where that
 * may be it. Returns status. */
int device_why(struct world *w, int status, struct base_errbuf *err);
/* Destroys x of the kind, if there is one. Blocks: for a pool's start and end. */
void device_destroy(struct agent_device *d, enum fab_ctl_kind kind, void *x);
/* pool.c. Since when no earlier life of this endpoint has had queue pairs. */
uint64_t pool_begun_ns(const struct pool *p);

/* ---- peer_setup.c: what the lane asks for to reach other nodes, nothing of which may block. */

int peer_setup_start(struct pool *p, struct base_errbuf *err);
/* WANT_PATH, DROP_PATH, QP_BROKEN, PROVED. */
void peer_setup_event(struct pool *p, const struct lane_event *e);
/* DC: makes one spare more, or has one less; prewarm_spare() follows. */
void peer_setup_spare(struct pool *p, bool more);
/* SPARE_DROPPED. */
void peer_setup_spare_dropped(struct pool *p, struct fab_qp *qp);
/* After anything that concerns connections. */
void peer_setup_step(struct pool *p);
/* Now and then: brings up what has rested, and tries again what could not be repaired. */
void peer_setup_tick(struct pool *p);
/* The port has another MTU: connections and initiators that are made from now on have it. */
void peer_setup_mtu(struct pool *p);
/* Waits for what is under way, after the loop. */
void peer_setup_stop(struct pool *p);

/* ---- table_initiators.c: rc: the queue pairs that metaservers' tables are READ through. */

struct registration;
/* A metaserver's own: two, so that one can be in use while the next is made. */
struct table_initiator {
    struct registration *registration;
    enum table_initiator_state {
        INITIATOR_CLEANING, /* or just made; qp may be NULL meanwhile, and while FAILED */
        INITIATOR_READY,    /* in INIT */
        INITIATOR_OFFERED,  /* the metaserver is asked to connect to it */
        INITIATOR_RAISING,
        INITIATOR_UP, /* the lane's */
        INITIATOR_FAILED,
    } state;
    uint64_t again_ns; /* FAILED: when it is cleaned again */
    uint64_t rest_ns;  /* READY, and not offered before: packets of its former life may come in */
    struct fab_qp *qp;
    uint32_t psn;
    uint8_t step; /* of what is under way */
    uint8_t reads;
    struct fab_ctl ctl;
    struct fab_reuse reuse; /* while CLEANING */
    struct ibv_qp_attr rtr; /* while RAISING */
};

/* What a metaserver says of its end. */
struct table_initiator_peer {
    uint8_t gid[16];
    uint32_t qpn, psn;
    uint16_t lid;
    enum ibv_mtu mtu; /* the path's */
    uint8_t reads;    /* that it may have out at a time */
};

int table_initiators_make(struct pool *p);
/* One to offer, with a new PSN; NULL: none is ready yet. */
struct table_initiator *table_initiator_offer(struct registration *r);
/* None is, but one only rests: in how many milliseconds it has; else 0. */
uint64_t table_initiator_rests_ms(const struct registration *r);
/* The metaserver did not connect to it. */
void table_initiator_withdraw(struct table_initiator *initiator);
/* It is up, and of no use. */
void table_initiator_drop(struct table_initiator *initiator);
/* It did; initiator_up() follows. */
void table_initiator_raise(struct table_initiator *initiator,
                           const struct table_initiator_peer *peer);
/* Now and then: brings up what has rested, and tries again what could not be repaired. */
void table_initiators_tick(struct pool *p);
/* The lane is done with a queue pair. False: it is no reader's. */
bool table_initiator_done(struct pool *p, const struct fab_qp *qp);
void table_initiators_stop(struct pool *p);

/* ---- register.c */

enum registration_state {
    REGISTRATION_NONE,
    REGISTRATION_ASKING,
    REGISTRATION_DONE,
    REGISTRATION_LOST
};

struct registration {
    struct pool *pool;
    const char *url;
    struct table_initiator initiator[2]; /* rc */
    struct table_initiator *offered;     /* rc: while ASKING */
    enum registration_state state;
    struct world_timer timer; /* the next renewal, or the next try */
    uint64_t lease_ms, backoff_ms;
    uint64_t looked_ns; /* when that was brought forward last; 0: never */
    uint32_t endpoints; /* of the own pool: agent->endpoints when they were put last */
    bool announcing;    /* they are being put without a reader */
    bool putting;       /* they are being put with one, or its address; one at a time */
    bool readdressed;   /* and what comes of that was begun with this node's former address */
    char why[512];      /* of the last failure; empty once registered */
    bool unsaid;        /* that is not in the log yet */
    bool telling;       /* what is in force, which has this hash (0: it has not been told): */
    uint64_t told, tell_ns;
    struct base_log_limit log;
    uint8_t gid[16];       /* of the metaserver's endpoint */
    struct fab_ah *before; /* of its address before this one, until the lane gives it back */
    bool resolving;        /* its address, by: */
    struct fab_ctl resolve;
    struct lane_metaserver lane; /* ah in the system PD, once done */
};

/* Begins to register with every metaserver: all endpoints of the node, and this pool's reader;
 * needs agent->incarnation. */
void registrations_start(struct pool *p);
/* rc: the queue pair through which a metaserver's table is READ is ready, or is not; or it has
 * broken. */
void registration_initiator_up(struct registration *r, struct table_initiator *initiator,
                               int status);
void registration_initiator_lost(struct registration *r);
/* So many of the pool's lookups have found no metaserver that answers, since it began: when there
 * are more than before, it asks soon whether those that have it were started again. */
void registrations_note_lookups(struct pool *p, uint64_t failed);
/* The lane gives an address handle back, which may be a metaserver's; the caller destroys it. */
void registrations_take_back(struct pool *p, const struct fab_ah *ah);
/* This node's address is another: metaservers' tables are READ on paths that are made anew. */
void registrations_readdress(struct pool *p);
/* Nothing is begun any more; what is under way (pool->calls) ends by itself. */
void registrations_stop(struct pool *p);

/* ---- arenas.c */

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
    struct fab_ctl ctl; /* busy: registering; or deregistering */
    struct arena *next;
};

/* One of the usual size for a tenant (its index + 1). NULL: none is ready. */
struct arena *arena_take(struct pool *p, uint32_t tenant);
bool arena_is_ready(const struct pool *p, uint32_t tenant);
/* One for a session that has one already. *out is ready, or `asked`: then arena_made() comes. */
int arena_ask(struct pool *p, uint32_t tenant, uint64_t bytes, uint32_t session,
              struct arena **out);
/* What registers that much of it, to be submitted: at an address that none ever had. */
struct fab_ctl arena_registration(const struct arena *arena, uint64_t offset, uint64_t length,
                                  unsigned access);
/* All of it, for all that its worker may let peers do. */
struct fab_ctl arena_whole(const struct arena *arena);
/* Ends what it is used for; it is used again or freed. */
void arena_retire(struct arena *arena);
void arenas_refill(struct pool *p);
/* Up to so many of those that are ready beyond what is to be. */
void arenas_shed(struct pool *p, uint32_t most);
/* Those that are kept for a tenant (its index + 1). */
void arenas_forget(struct pool *p, uint32_t tenant);
/* After sessions have given theirs. */
void arenas_stop(struct pool *p);

/* ---- dedicated_mrs.c: regions with registrations of their own */

/* The arena is registered: what its regions will want is made ahead, where they want it. */
void fenced_ahead(struct arena *arena);
/* WANT_MR, WANT_DEREG. */
void fenced_event(struct pool *p, const struct lane_event *e);
/* Its session is over, or it is retired: all that is registered in it goes. When that is so, an
 * arena that was retired meanwhile is retired. */
void fenced_drop(struct arena *arena);

/* ---- sessions.c */

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
    struct connection *connection; /* or NULL: it is gone */
    bool held;                     /* over, but for its worker, which has not closed it yet */
    struct world_task task;        /* while MAKING or UNMAKING */
};

/* Workers that wait for a session to be made (admit.c). */
struct attach_queue {
    struct connection *first; /* as they came */
    uint32_t count;
    uint32_t last_tenant; /* that had a turn */
    uint64_t served_ns;   /* when the last one was, or the first one came */
    uint64_t each_ns;     /* from one to the next, of late; 0: not known */
};

struct session_counts {
    uint32_t ready, making, live, ending;
    uint32_t arenas, arenas_ahead;
    uint64_t arena_bytes;         /* registered or between owners */
    uint64_t attached, not_ahead; /* not_ahead: had to be made while a worker waited */
    uint64_t attached_ahead;      /* of those that attached: nothing had to be */
    uint64_t recycled;
    uint64_t faults; /* sessions that the lane ended */
};

void session_counts_add(struct session_counts *sum, const struct session_counts *c);
int sessions_start(struct pool *p, struct base_errbuf *err);
/* Whether some of what is kept ready is still being made; then, as the agent begins, whether there
 * is any: 0, or -errno and a sentence. */
bool sessions_are_making(const struct pool *p);
int sessions_check(struct pool *p, struct base_errbuf *err);
/* A session for a tenant (its index + 1), which its quotas allow: 0 and its number, with arena 0.
 * -EAGAIN: none is ready. */
bool session_is_ready(const struct pool *p, uint32_t tenant);
int session_take(struct pool *p, uint32_t tenant, uid_t uid, pid_t pid, struct connection *c,
                 uint32_t *number);
/* The lane hears of it: once, before anything else happens to it. */
void session_begin(struct pool *p, uint32_t number);
/* Gives it one more arena; the answer is an event (worker_events.h). 0; or -errno and a sentence.
 */
int session_more(struct pool *p, uint32_t number, uint64_t bytes, struct base_errbuf *why);
/* Its worker is gone, or all of this ends. */
void session_release(struct pool *p, uint32_t number, uint32_t reason);
/* Events of the lane, and refilling what is kept ahead. */
void sessions_event(struct pool *p, const struct lane_event *e);
void sessions_refill(struct pool *p);
/* Now and then: refills when it is due. */
void sessions_tick(struct pool *p);
/* After a worker has its answer: refills early when little is left. */
void sessions_taken(struct pool *p);
/* Of a tenant (its index + 1) that nobody says any more. */
void sessions_end_tenant(struct pool *p, uint32_t tenant);
void sessions_end_all(struct pool *p, uint32_t reason);
/* Says so to all workers, or that they may stay; those that sleep are woken. */
void sessions_drain(struct pool *p, bool drains);
/* Those that anything is still in flight of, or believed; not those whose worker has only not
 * closed them yet. */
uint32_t sessions_left(const struct pool *p);
/* Those that are over but for their workers, which have not closed them: they have had their time.
 */
void sessions_let_go(struct pool *p);
void sessions_stop(struct pool *p);

/* ---- leases.c: those that the operator revokes */

struct revocation;
struct leases {
    struct revocation *list; /* under way */
    uint32_t tag;
    uint64_t revoked, forced; /* leases; arenas */
};

/* REVOKED, ARENA_RENEWED. */
void leases_event(struct pool *p, const struct lane_event *e);
/* Now and then: answers who has waited for long. */
void leases_tick(struct pool *p);
/* After the lane thread has ended, before arenas are retired. */
void leases_stop(struct pool *p);

/* ---- prewarm.c */

enum { POOL_SECONDS = 60 };

struct prewarm {
    struct agentd_pool desired;       /* by metaservers; its name is empty if they say nothing */
    uint32_t sessions, arenas;        /* that are to be kept ready now */
    uint32_t dcis;                    /* of this start */
    struct fab_service service;       /* likewise */
    uint32_t connections, responders; /* likewise; rc */
    uint32_t spares;                  /* that there are */
    bool sparing;                     /* one more or less is under way */
    int spare_status;                 /* of the last one */
    uint64_t spare_ns;                /* after which the next one is tried */
    uint32_t taken[POOL_SECONDS];     /* workers that came in each second of the last minute: */
    uint64_t second;                  /* the last of which this is */
    uint32_t demand;                  /* the most of them */
    char why[240];                    /* what is not in force of what is said; empty: all is */
};

/* Before the device is opened: what is said, for the own pool when the agent ended. */
void prewarm_init(struct pool *p, const struct agentd_pool *desired);
/* The device cannot be opened with that: as the agent's own settings say. */
void prewarm_own(struct pool *p);
/* Whether the device is opened with anything but those. */
bool prewarm_is_desired(const struct pool *p);
void prewarm_apply(struct pool *p, const struct agentd_pool *desired);
/* Whether anything but the device's is said of it. */
bool prewarm_has_own_service(const struct pool *p);
/* The largest MTU of its queue pairs now. */
enum ibv_mtu prewarm_mtu(const struct pool *p);
/* A worker got a session. */
void prewarm_taken(struct pool *p);
void prewarm_tick(struct pool *p);
/* A spare more or less: there is (1, -1), or there is not (0) for this reason. */
void prewarm_spare(struct pool *p, int change, int status);
/* Members of the status's `pool`. */
void prewarm_status(const struct pool *p, struct base_text *t);

/* ---- lane_setup.c */

/* Makes the lane, and has it stepped. 0; or -errno and a sentence. */
int pool_start_lane(struct pool *p, struct base_errbuf *err);
/* When its device objects are still there. */
void pool_stop_lane(struct pool *p);
/* Gives the lane a command, and wakes it. */
void pool_command(struct pool *p, const struct lane_command *command);

/* ---- all of it */

enum { POOLS = 8 }; /* of one agent: each has a thread */

/* A protection domain and all that workers are lent of it: kept apart from other pools' by the
 * device, and by a lane thread of its own. The first one is the agent's own, as its file says; the
 * others come and go as metaservers say. */
struct pool {
    struct agent *agent;
    struct world *world;                /* the agent's */
    const struct agentd_config *config; /* the agent's */
    uint32_t place;                     /* in agent->pools; 0: the own one */
    char name[AGENTD_TEXT];
    uint16_t number;      /* in records and handshakes */
    uint32_t incarnation; /* the agent's; a later one if the number has had a pool in this life */
    uint64_t mr_lease_ns;
    enum pool_stage {
        POOL_RUNS,
        POOL_LEAVING, /* takes no new workers; those that it has may finish, until end_ns */
        POOL_CLOSING, /* nobody has anything of it: what is under way ends */
    } stage;
    uint64_t ready_ns; /* RUNS: when workers get it, registered or not; 0: they do */
    uint64_t left_ns;  /* LEAVING: since when; */
    uint64_t end_ns;   /* and when its workers have had their time; UINT64_MAX: never */
    bool stopping;     /* nothing is begun any more */
    uint32_t works;    /* tasks, */
    uint32_t fab_ops;  /* control operations of the device, */
    uint32_t calls;    /* and of metaservers, under way */
    struct agent_device device;
    struct lane *lane;
    uint64_t lookups_failed; /* of it, as registrations_note_lookups() was told last */
    struct world_peers peers;
    struct world_lane stepping; /* of it */
    /* register.c */
    struct registration registration[LANE_MAX_METASERVERS];
    /* sessions.c */
    struct agent_session *sessions;
    /* A tenant's workers are in one pool, but for those that it had before it was moved. */
    struct lane_quota quota[AGENTD_TENANT_SLOTS];
    bool quarantined[AGENTD_TENANT_SLOTS]; /* quotas_apart() */
    struct session_counts count;
    bool sessions_failed; /* the last one that was made ahead */
    uint64_t taken_ns;    /* when a worker last got a session */
    struct base_log_limit fault_log;
    /* arenas.c */
    void (*arena_made)(struct pool *p, struct arena *arena, int status); /* that was asked for */
    struct arena *arenas_ahead;                                          /* nobody's yet */
    struct arena *arenas_of[AGENTD_TENANT_SLOTS]; /* a tenant's, zeroed and registered anew */
    uint32_t arenas_making;
    int arenas_status;            /* of the last one that was made ahead */
    struct fencing *fences_again; /* that the device did not carry out */
    struct base_log_limit fence_log;
    uint64_t arenas_after_ns; /* failed: when the next one is made */
    struct base_log_limit arena_log;
    /* windows.c */
    struct agentd_share share;                                  /* of the device's window */
    struct agentd_destination own_windows[AGENTD_DESTINATIONS]; /* as the lane has them */
    uint32_t own_window_count;
    uint32_t own_windows_left; /* destinations for which there was no room */
    /* prewarm.c, leases.c */
    struct prewarm prewarm;
    struct attach_queue queue;
    struct leases leases;
    /* peer_setup.c */
    struct control_op *unraised; /* initiators that rest, or that the device could not repair */
    struct control_op *unpathed; /* addresses that wait for all initiators' MTU to be path_mtu */
    struct base_log_limit mtu_log;
    struct world_watch handshakes;
    struct world_timer handshakes_timer;
    struct base_log_limit overdue_log;
};

#endif
