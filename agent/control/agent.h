/* SPDX-License-Identifier: Apache-2.0 */
/* What is around the pools, as its files share it. Everything runs on the control thread. */
#ifndef CONTROL_AGENT_H
#define CONTROL_AGENT_H

#include "control/address.h"
#include "control/admin.h"
#include "control/clock_check.h"
#include "control/reach.h"
#include "base/random.h"
#include "control/world.h"
#include "fabric/iova.h"
#include "fabric/port.h"
#include "names.h"
#include "pool.h"
#include "worker_events.h"

/* ---- pool.c */

/* By metaservers, of this node. */
struct desired_pool {
    struct agentd_pool is;
    char why[160]; /* it could not be made; tried again at: */
    uint64_t again_ns;
};

/* The agent's own, of which that is said, before anything else runs the loop. */
int pools_start(struct agent *a, const struct agentd_pool *desired, struct base_errbuf *err);
/* Whether some of what the own one keeps ready is still being made; then: whether it can begin. */
bool pools_are_starting(const struct agent *a);
int pools_check(struct agent *a, struct base_errbuf *err);
/* What metaservers say of this node's pools, of which the own one is only adjusted. */
void pools_apply(struct agent *a, const struct agentd_desired *s);
/* Now and then, and after that: begins and ends those that are or are not said any more. */
void pools_step(struct agent *a);
/* The ones that have a lane, one after another: NULL is before the first and after the last. */
struct pool *pools_next(const struct agent *a, const struct pool *p);
/* By name, in whatever stage; NULL: there is none. */
struct pool *pools_find(const struct agent *a, const char *name);
/* Where a tenant's (its index + 1) workers belong. NULL: nowhere, and the sentence that says so. */
struct pool *pools_of_tenant(const struct agent *a, uint32_t tenant, char *text, size_t size);
/* "running": a literal. */
const char *pools_state(struct pool *p);
/* Whether its workers are to go, since the node drains or the pool is taken away. */
bool pools_drains(const struct pool *p);
/* Workers of all pools that anything is left of; sessions, in whatever stage, and what they count.
 */
uint32_t pools_workers_left(const struct agent *a);
uint32_t pools_sessions(const struct agent *a);
struct session_counts pools_count(const struct agent *a);
/* What of said pools is not so: appended to why. */
void pools_why(const struct agent *a, char *why, size_t size);
/* While the loop runs; then what they have is given back. */
void pools_end_sessions(struct agent *a, uint32_t reason);
void pools_stop(struct agent *a);

/* ---- device_events.c */

/* The fabric has some. */
void device_events(struct agent *a);
/* The port has another MTU than before. */
void device_port_changed(struct fab_port_watch *w, enum ibv_mtu before);
/* Now and then: whether it has. */
void device_tick(struct agent *a);

/* ---- address_change.c */

/* After fabric_open(). */
void address_init(struct agent *a);
/* Asks the device for it: now, or now and then. */
void address_look(struct agent *a);
void address_tick(struct agent *a);
/* The port's state, as the device says. */
void address_port(struct agent *a, bool down);
/* Why no peer can be reached: a literal, empty if the address is there and the port up. */
const char *address_why(const struct agent *a);
/* A DC target has broken by itself. */
void address_retarget(struct agent *a);
/* LANE_EVENT_READDRESSED. */
void address_readdressed(struct pool *p, const struct lane_event *e);

/* ---- clock_watch.c */

struct clock_watch {
    struct clock_check check;
    _Atomic uint32_t doubted; /* lanes read it */
    bool asked, none;         /* the device is being asked, by ctl; it has no clock */
    struct fab_ctl ctl;
    uint64_t due_ns, ask_ns; /* not before these: the next look; asking one that has none */
};

/* Before the first pool is made. */
void clock_watch_init(struct agent *a);
/* Now and then. */
void clock_watch_tick(struct agent *a);
/* Empty, unless the clock cannot be trusted; a member of the status's object;
 * and metrics. */
void clock_why(const struct agent *a, char *text, size_t size);
void clock_status(const struct agent *a, struct base_text *t);
void clock_metrics(const struct agent *a, struct base_text *t);

/* ---- register.c, registered.c, unregister.c */

/* A metaserver's URL, /v1/nodes/, the longest id and what may follow it. */
enum { METASERVER_URL_BYTES = 2 * AGENTD_TEXT + 64 };
/* A request to a metaserver, with the agent's token. url is borrowed; ms: of connecting, and of it
 * all. */
struct http_call metaserver_call(const struct agent *a, const char *method, const char *url,
                                 uint32_t ms);
/* Asks that one now whether it still has this node, rather than at the next renewal. */
void registrations_doubt(struct agent *a, uint32_t metaserver);
/* How many metaservers have the pool now; and how many have the node with all its pools. */
uint32_t registrations_of(const struct pool *p);
uint32_t registrations_done(const struct agent *a);
/* What is to be said of that metaserver: how the own pool is registered there; if that is in order,
 * how another one is not. */
const struct registration *registrations_with(const struct agent *a, uint32_t metaserver);
/* One that no metaserver has, and that each has refused or left without an answer; or NULL. */
const struct pool *registrations_missed(const struct agent *a);
/* The node has other endpoints than before: the metaservers are told. */
void registrations_changed(struct agent *a);
/* A warning when others may read the file that was just found to hold a token; one until they may
 * not. */
void registrations_look_at_token(struct agent *a);
/* The node goes: metaservers that have it are asked to forget it, which a->unregistering counts,
 * and each has grace_ms to answer. */
void registrations_leave(struct agent *a, unsigned grace_ms);

/* ---- quotas.c */

/* What a tenant has that its quotas of sessions and memory bound. */
struct quota_used {
    uint64_t sessions;
    uint64_t ended;      /* of these: they are over, and their workers' processes have them still */
    uint64_t bytes;      /* of arenas, from the asking until they are freed; of these: */
    uint64_t bytes_left; /* no session has them any more */
};
/* Of all pools, of each tenant. */
void quotas_used(const struct agent *a, struct quota_used used[AGENTD_TENANT_SLOTS]);
/* A tenant's settings in force (its index + 1). */
const struct agentd_tenant_config *quota_tenant(const struct agent *a, uint32_t tenant);
/* As in the settings: a literal. */
const char *quota_name(enum lane_quota_kind which);
/* Whether it may have as much more, counted over all pools: 0; or -EDQUOT, which is counted, and a
 * sentence; or likewise -EAGAIN: once what its sessions have left is freed, which takes no more
 * than moments. */
int quota_check(struct pool *p, uint32_t tenant, uint64_t more_sessions, uint64_t more_bytes,
                struct base_errbuf *why);
/* Whether the host, and the agent's control group, has room for as much more of arenas, whatever
 * quotas say: 0; or -ENOMEM and a sentence. */
int quota_check_host(const struct agent *a, uint64_t more_bytes, struct base_errbuf *why);
/* Whether it may ask for something now: as quota_check(). Its workers' requests to the lane are of
 * the same budget. */
int quota_ask(struct pool *p, uint32_t tenant, struct base_errbuf *why);
/* Counts a refusal: -EDQUOT and the sentence. */
int quota_refuse(struct pool *p, uint32_t tenant, enum lane_quota_kind which,
                 struct base_errbuf *why);
/* A lane has put a tenant apart from others, or does so no more (agent/lane.h): logged. */
void quotas_apart(struct pool *p, const struct lane_event *e);
/* What of a tenant is counted for ever. */
struct quota_counts {
    uint64_t control_ops, refused[LANE_QUOTAS];
};
void quotas_add(struct quota_counts *sum, const struct lane_quota *quota);
/* What of a capacity is reserved for each tenant that there is now (agent/reserve.h); of a pool's
 * for each that is the pool's. NULL: of the agent's. */
void quotas_reserve(const struct agent *a, const struct pool *p, uint64_t capacity,
                    uint32_t reserved[AGENTD_TENANT_SLOTS]);
/* After a change of tenants: their quotas hold for whatever is asked for from now on. */
void quotas_apply(struct pool *p);
/* Whether what it has counts to its tenant. */
bool session_has_tenant(const struct agent_session *s);

/* ---- tenant_end.c */

/* Now and then: tenants that nobody says any more, and of which nothing is left in any pool. */
void tenants_rest(struct agent *a);

/* ---- dedicated_mrs.c: of all pools (pool.h has the rest) */

struct fenced_counts {
    uint32_t now; /* registrations of fenced regions that there are, or that come or go; of: */
    uint32_t of[AGENTD_TENANT_SLOTS];
    uint32_t own;   /* of any regions, likewise */
    uint32_t ahead; /* that are nobody's yet */
    uint64_t registered, refused, failed;
    uint64_t drawn; /* regions that had one made ahead */
    struct base_log_limit log;
};

/* ---- leases.c: of all pools */

/* Chooses agent->serial: 0 or -errno. */
int leases_start(struct agent *a);
/* A request of the admin socket gets no answer any more. */
void leases_forget_request(struct pool *p, const struct world_request *r);

/* ---- agent_query.c */

/* A line of the stream that is a question of the metaserver that we follow. */
void agent_query_take(struct agent *a, const char *line, size_t length);
/* Forgets those that have no answer yet: there is nobody to tell any more. */
void agent_query_stop(struct agent *a);
void agent_query_metrics(const struct agent *a, struct base_text *t);

/* ---- memory_reclaim.c */

/* Now and then: once a second, if sessions have left something. */
void memory_reclaim(struct agent *a);

/* ---- follow.c */

enum { DESIRED_WHY = 240 };

struct desired_save {
    struct agent *agent;
    char *text; /* while it is under way */
    struct world_task task;
};

struct follow {
    uint32_t metaserver; /* that is watched, or is next */
    uint64_t call;       /* 0: none */
    struct world_timer timer;
    uint64_t seen;                                    /* the revision that came last; 0: none did */
    uint64_t applied;                                 /* the one in force; 0: none */
    struct agentd_limits window, destination_window;  /* of it */
    struct agentd_window own_windows[AGENTD_WINDOWS]; /* of it, for one destination each */
    uint32_t own_window_count;
    char why[DESIRED_WHY]; /* what was seen is not; empty: it is, but for what is its tenants' and
                            * pools' to say */
    char *pending;         /* that is in force but for tenants for which there was no room */
    uint64_t try_ns, again_ns, backoff_ms;
    struct desired_save save;
    char *unsaved; /* the newest document in force that waits to be kept */
};

/* What was in force when the agent ended: first what the device is opened with, then, after
 * sessions_start(), all of it. */
struct agentd_pool follow_read(struct agent *a);
void follow_load(struct agent *a);
/* After registrations_start(). */
void follow_start(struct agent *a);
/* Before registrations_stop(); fini after the loop. */
void follow_stop(struct agent *a);
void follow_fini(struct agent *a);

/* ---- node.c */

struct node_state {
    struct agentd_node desired;
    uint64_t end_ns; /* draining: when the sessions that are left are ended; UINT64_MAX: never */
};

void node_apply(struct agent *a, const struct agentd_node *desired);
/* Now and then: ends what has had its time. */
void node_tick(struct agent *a);
/* Whether no new workers are taken, and the sentence that says so. */
bool node_refuses(const struct agent *a, char *text, size_t size);
/* A member of the status's object; and metrics. */
void node_status(const struct agent *a, struct base_text *t);
void node_metrics(const struct agent *a, struct base_text *t);

/* ---- applied_report.c */

/* What was seen of the settings and is not in force; empty: nothing. */
void desired_why(const struct agent *a, char why[DESIRED_WHY]);
void desired_metrics(const struct agent *a, struct base_text *t);
/* Now and then, and at once when something has changed that metaservers are told. */
void report_step(struct agent *a);

/* ---- proofs.c */

struct proofs {
    struct agentd_reach reach;
    struct base_prng random;
    bool begun, under_way; /* under_way: of the target at this place, with this GID: */
    int place;
    uint8_t gid[16];
    uint32_t tag;
    uint64_t due_ns;                      /* the next one */
    uint64_t tell_ns[AGENTD_METASERVERS]; /* when each metaserver is told (again) */
    uint32_t telling;                     /* bit i: metaserver i is being told */
};

/* Now and then: proves the next way, tells metaservers. */
void proofs_tick(struct agent *a);
/* LANE_EVENT_PROVED. */
void proofs_event(struct pool *p, const struct lane_event *e);
/* That metaserver may have forgotten what it was told. */
void proofs_forgotten(struct agent *a, uint32_t metaserver);
/* A member of the status's object; and metrics. */
void proofs_status(const struct agent *a, struct base_text *t);
void proofs_metrics(const struct agent *a, struct base_text *t);

/* ---- attach.c */

/* Before the first pool: hears from then on what becomes of sessions (worker_events.h). */
void attach_init(struct agent *a);
/* admit.c. The pool goes, and who waits with it. */
void attach_give_up(struct pool *p);

/* ---- windows.c */

/* In force: what the file says and what the metaservers say, both hold. */
struct agentd_limits windows_device(const struct agent *a);
struct agentd_limits windows_destination(const struct agent *a);
/* Those that are for one destination each hold from the next windows_apply() on. */
void windows_take(struct agent *a, const struct agentd_desired *s);
/* Tells the lanes what the settings say, and what is in force of each tenant. */
void windows_apply(struct agent *a);
/* Each tick: the parts of the device's window go to the lanes that have something to do. */
void windows_rebalance(struct agent *a);
/* A tenant (its index + 1) of which nothing is left: what was counted of it. */
void windows_forget_tenant(struct agent *a, uint32_t tenant);
/* The file has been read again; of what has changed in it windows and tenants' tokens alone come
 * into force. 0; or -errno and a sentence: all stays as it was. */
int windows_reload(struct agent *a, const struct agentd_config *fresh, struct base_errbuf *err);

/* ---- admin.c */

/* Before anything is asked, and after that. */
void admin_init(struct agent *a);
void admin_fini(struct agent *a);
/* 405. */
void admin_refuse_method(struct agent *a, struct world_request *r, const char *allow);
/* admin_windows.c: a member of the status's object; and metrics. */
void windows_status(struct agent *a, struct base_text *t);
/* Of a pool's object: its lane's part of the device's window. */
void windows_pool_status(const struct pool *p, struct base_text *t);
void windows_metrics(struct agent *a, struct base_text *t);

/* ---- all of it */

/* agent.c. Now and then (TICK_MS): all that is looked at so. */
void agent_tick(struct agent *a);
/* The fabric has control operations that are done. */
void agent_run_fabric(struct agent *a);

struct agent {
    struct agentd_config config;
    const char *config_path; /* NULL: there is none */
    struct world *world;
    uint32_t incarnation;
    uint32_t min_incarnation; /* ours must exceed it; 0: any will do */
    uint32_t superseded_by;   /* one that a metaserver knows, and ours does not exceed; 0: none */
    uint32_t restarted_for_mask; /* bit i: metaserver i has made this agent begin anew */
    bool stopping, terminated, device_lost;
    struct address address; /* as the device says */
    bool address_asked;     /* it is being asked, by: */
    struct fab_ctl address_ctl;
    uint64_t address_due_ns, address_news; /* when it is again; changes so far */
    struct clock_watch clock;
    uint64_t qp_events; /* queue pairs that the device said are in ERR */
    uint64_t started_ns;
    struct fab *fab;
    struct fab_port_watch port; /* of fab */
    struct fab_iova iova;       /* of all pools\' registrations that peers reach */
    bool rc;                    /* the transport; else DC */
    /* pool.c */
    struct pool *pools[POOLS]; /* the first one is the own */
    struct {
        uint32_t count;
        struct desired_pool at[AGENTD_POOLS];
        uint32_t others; /* that this node has not */
        struct agentd_pool other[AGENTD_POOLS];
    } desired;
    uint8_t had[(UINT16_MAX + 1) / 8]; /* bit i: number i has had a pool in this life */
    uint32_t unused; /* the latest incarnation, of a pool that could not be made; 0: none */
    /* register.c */
    bool registering;       /* pools that are made do so too */
    bool was_registered;    /* some metaserver has had the node in this life */
    bool token_is_open;     /* others may read token_file, which was said */
    uint32_t endpoints;     /* how often the node's have changed */
    uint32_t unregistering; /* metaservers that have not answered yet */
    uint64_t arenas_coming; /* bytes of those that workers have asked for and that are being made */
    struct names names;     /* that workers ask for */
    /* sessions.c, leases.c */
    struct agentd_tenants tenants;
    uint32_t serial;  /* of the worker that attached last; from a random number on, so that an id of
                       * before a restart is nobody's */
    uint64_t refused; /* workers */
    uint64_t deferred;          /* of them, those that were told to come again later */
    struct session_counts gone; /* of pools that are no more: what is counted for ever */
    struct quota_counts quotas_before[AGENTD_TENANT_SLOTS]; /* likewise */
    uint32_t unmade; /* sessions, since memory was reclaimed */
    uint64_t reclaimed_ns;
    struct world_task reclaim;
    bool reclaiming;
    struct fenced_counts fenced;
    /* follow.c, node.c */
    struct follow follow;
    struct node_state node;
    struct proofs proofs;
    /* agent_query.c */
    struct {
        struct agent_query *list;
        uint32_t count;
        uint64_t questions, unanswered;
    } asked;
    /* attach.c */
    struct base_log_limit watch_limit, token_limit, crowd_limit;
    uint64_t wrong_tokens;
    const struct worker_events *worker_events; /* of all sessions: attach.c hears them */
    struct connection *connections;
    struct waiting waiting;
    uint64_t crowded; /* connections that made room, or found none */
    /* admin.c */
    struct base_text answer;
};

#endif
