/* SPDX-License-Identifier: Apache-2.0 */
/* The process around the lane: what its files share. Everything but lane_thread.c runs on the
 * control thread, in one libuv loop; the lane thread is reached through the lane's two rings alone.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <pthread.h>
#include <sys/types.h>
#include <time.h>
#include <uv.h>

#include "agent/connector.h"
#include "agent/lane.h"
#include "agentd/config.h"
#include "agentd/settings.h"
#include "agentd/tenants.h"
#include "base/error.h"
#include "base/http/client.h"
#include "base/log.h"
#include "base/text.h"
#include "limits.h"
#include "schema/control.h"

/* ---- device.c
 * -------------------------------------------------------------------------------------- */

struct agent_device {
    struct kedge_fab *fab;
    struct kedge_fab_pd *pd, *system_pd;
    struct kedge_fab_chan *chan;
    struct kedge_fab_cq *cq, *target_cq;
    struct kedge_fab_srq *srq;
    struct kedge_fab_dct *dct;
    struct kedge_fab_mem scratch, mr_memory;
    struct kedge_fab_mr *scratch_mr, *scratch_system_mr, *mr_mr;
    bool rc;                                              /* else DC */
    struct kedge_fab_qp *qp[2 * KEDGE_LANE_MAX_DCIS + 1]; /* DC */
    uint32_t qps;
    uint32_t max_spares; /* DC: that there is room for */
    uint32_t sq_depth;
    struct kedge_connector *connector; /* rc */
    struct kedge_table mr_table;
    uint32_t mr_log2;
    uint64_t bound_ns; /* of the lease rule, from the queue pairs' attributes */
};

struct agent;
int device_open(struct agent *a, struct kedge_errbuf *err);
/* What an error of the device means, with the limit of locked memory where that may be it. Returns
 * status. */
int device_why(int status, struct kedge_errbuf *err);
void device_close(struct agent *a);
/* device_events.c */
void device_events(uv_poll_t *poll, int status, int events);
/* Runs what was submitted until *pending is 0. */
void device_settle(struct agent_device *d, const uint32_t *pending);

/* ---- queues.c
 * -------------------------------------------------------------------------------------- */

/* The queue pairs that the pool has, as the transport wants them. */
int queues_make(struct agent *a, struct kedge_errbuf *err);
void queues_destroy(struct agent *a);
/* Destroys x of the kind, if there is one; for start and end. */
void device_destroy(struct agent_device *d, enum kedge_fab_ctl_kind kind, void *x);
/* What it takes to create a DCI, in RESET. */
struct kedge_fab_ctl queues_dci(const struct agent *a, struct kedge_fab_pd *pd);
/* The step-th change of state of a DCI from RESET (0) to RTS; false: there is none. */
bool queues_dci_step(const struct agent *a, struct kedge_fab_qp *qp, uint32_t step,
                     struct kedge_fab_ctl *ctl);

/* ---- paths.c: what the lane asks for to reach other nodes, nothing of which may block.
 * -------------------------------------------------------------------------------------- */

void paths_start(struct agent *a);
/* WANT_PATH, DROP_PATH, QP_BROKEN. */
void paths_event(struct agent *a, const struct kedge_lane_event *e);
/* DC: makes one spare more, or has one less; pool_spare() follows. */
void paths_spare(struct agent *a, bool more);
/* SPARE_DROPPED. */
void paths_spare_dropped(struct agent *a, struct kedge_fab_qp *qp);
/* After anything that concerns connections. */
void paths_step(struct agent *a);
/* Now and then: tries again what could not be repaired. */
void paths_tick(struct agent *a);
/* Waits for what is under way, after the loop. */
void paths_stop(struct agent *a);

/* ---- readers.c: rc: the queue pairs that metaservers' tables are READ through.
 * -------------------------------------------------------------------------------------- */

struct registration;
/* A metaserver's own: two, so that one can be in use while the next is made. */
struct reader {
    struct registration *registration;
    enum reader_state {
        READER_CLEANING, /* or just made */
        READER_READY,    /* in INIT */
        READER_OFFERED,  /* the metaserver is asked to connect to it */
        READER_RAISING,
        READER_UP, /* the lane's */
        READER_FAILED,
    } state;
    uint64_t again_ns; /* FAILED: when it is cleaned again */
    struct kedge_fab_qp *qp;
    uint32_t psn;
    uint8_t step; /* of what is under way */
    uint8_t reads;
    struct kedge_fab_ctl ctl;
    struct ibv_qp_attr rtr; /* while RAISING */
};

/* What a metaserver says of its end. */
struct reader_peer {
    uint8_t gid[16];
    uint32_t qpn, psn;
    uint16_t lid;
    enum ibv_mtu mtu; /* the path's */
    uint8_t reads;    /* that it may have out at a time */
};

int readers_make(struct agent *a);
/* One to offer, with a new PSN; NULL: none is ready yet. */
struct reader *reader_offer(struct registration *r);
/* The metaserver did not connect to it. */
void reader_withdraw(struct reader *reader);
/* It did; reader_up() follows. */
void reader_raise(struct reader *reader, const struct reader_peer *peer);
/* Now and then: tries again what could not be repaired. */
void readers_tick(struct agent *a);
/* The lane is done with a queue pair. False: it is no reader's. */
bool reader_done(struct agent *a, const struct kedge_fab_qp *qp);
void readers_stop(struct agent *a);

/* ---- register.c
 * ------------------------------------------------------------------------------------ */

enum registration_state {
    REGISTRATION_NONE,
    REGISTRATION_ASKING,
    REGISTRATION_DONE,
    REGISTRATION_LOST
};

struct registration {
    struct agent *agent;
    const char *url;
    struct reader reader[2]; /* rc */
    struct reader *offered;  /* rc: while ASKING */
    enum registration_state state;
    uv_timer_t timer; /* the next renewal, or the next try */
    uint64_t lease_ms, backoff_ms;
    char why[160]; /* of the last failure; empty once registered */
    bool telling;  /* what is in force, which has this hash (0: it has not been told): */
    uint64_t told, tell_ns;
    struct kedge_log_limit log;
    uint8_t gid[16];             /* of the metaserver's endpoint */
    struct kedge_fab_ah *before; /* of its address before this one, or NULL */
    bool resolving;              /* its address, by: */
    struct kedge_fab_ctl resolve;
    struct kedge_lane_metaserver lane; /* ah in the system PD, once done */
};

/* A request to a metaserver, with the agent's token. url is borrowed; ms: of connecting, and of it
 * all. */
struct kedge_http_call metaserver_call(const struct agent *a, const char *method, const char *url,
                                       uint32_t ms);

/* Begins to register with every metaserver; needs agent->http_client, ->device and ->incarnation.
 */
int registrations_start(struct agent *a, struct kedge_errbuf *err);
/* rc: the queue pair through which a metaserver's table is READ is ready, or is not; or it has
 * broken. */
void registration_reader_up(struct registration *r, struct reader *reader, int status);
void registration_reader_lost(struct registration *r);
/* Unregisters as far as that goes within `grace_ms`, then closes its timers. */
void registrations_stop(struct agent *a, unsigned grace_ms);
/* Asks the metaservers for a node by name: done(user, status, gid, pool) once, later. */
void registrations_resolve(struct agent *a, const char *name,
                           void (*done)(void *user, int status, const uint8_t gid[16],
                                        uint16_t pool),
                           void *user);
/* ---- arenas.c
 * -------------------------------------------------------------------------------------- */

struct arena {
    struct agent *agent;
    uint64_t bytes; /* what was asked for */
    struct kedge_fab_mem mem;
    struct kedge_fab_mr *mr; /* NULL while it is between owners */
    uint32_t tenant;         /* index + 1 of whose it was or is; 0: nobody's yet */
    uint32_t session;        /* that asked for it */
    bool busy;               /* a work thread has it, or it is being registered, or anew */
    bool asked;              /* when made, its session hears of it */
    bool unwanted;           /* retired while busy */
    bool lost;               /* another registration of it cannot be given back */
    int status;              /* of the work */
    uv_work_t work;
    struct kedge_fab_ctl ctl; /* busy: registering; or deregistering */
    struct arena *next;
};

/* One of the usual size for a tenant (its index + 1), made now if none is ready. */
int arena_take(struct agent *a, uint32_t tenant, struct arena **out);
/* One for a session that has one already. *out is ready, or `asked`: then session_arena() comes. */
int arena_ask(struct agent *a, uint32_t tenant, uint64_t bytes, uint32_t session,
              struct arena **out);
/* What registers it, to be submitted. */
struct kedge_fab_ctl arena_registration(const struct arena *arena);
/* Ends what it is used for; it is used again or freed. */
void arena_retire(struct arena *arena);
void arenas_refill(struct agent *a);
/* Up to so many of those that are ready beyond what is to be. */
void arenas_shed(struct agent *a, uint32_t most);
/* Those that are kept for a tenant (its index + 1). */
void arenas_forget(struct agent *a, uint32_t tenant);
/* After sessions have given theirs. */
void arenas_stop(struct agent *a);

/* ---- sessions.c
 * ------------------------------------------------------------------------------------ */

enum stage { STAGE_EMPTY, STAGE_MAKING, STAGE_READY, STAGE_LIVE, STAGE_ENDING, STAGE_UNMAKING };

/* One session's memory and descriptors; its number is its index. */
struct agent_session {
    struct agent *agent;
    enum stage stage;
    int rw_fd, ro_fd, doorbell;
    struct kedge_session_rw *rw;
    struct kedge_session_ro *ro;
    struct kedge_lane_memory *memory;
    struct arena *arena[KEDGE_SESSION_MAX_ARENAS];
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
    uv_work_t work;                /* while MAKING or UNMAKING */
    int status;                    /* of the work */
};

struct session_counts {
    uint32_t ready, making, live, ending;
    uint32_t arenas, arenas_ahead;
    uint64_t arena_bytes;                  /* registered or between owners */
    uint64_t attached, refused, not_ahead; /* not_ahead: had to be made while a worker waited */
    uint64_t attached_ahead;               /* of those that attached: nothing had to be */
    uint64_t recycled;
    uint64_t faults; /* sessions that the lane ended */
};

int sessions_start(struct agent *a, struct kedge_errbuf *err);
/* A session for a tenant (its index + 1): 0 and its number, with arena 0; or -EDQUOT, -EAGAIN,
 * -ENOMEM. */
int session_take(struct agent *a, uint32_t tenant, uid_t uid, pid_t pid, struct connection *c,
                 uint32_t *number);
/* The lane hears of it: once, before anything else happens to it. */
void session_begin(struct agent *a, uint32_t number);
/* Gives it one more arena; the answer comes as connection_arena(). 0 or -errno. */
int session_more(struct agent *a, uint32_t number, uint64_t bytes);
/* The arena that a session asked for is made, or is not. */
void session_arena(struct agent *a, struct arena *arena, int status);
/* Its worker is gone, or all of this ends. */
void session_release(struct agent *a, uint32_t number, uint32_t reason);
/* Events of the lane, and refilling what is kept ahead. */
void sessions_event(struct agent *a, const struct kedge_lane_event *e);
void sessions_refill(struct agent *a);
/* Now and then: refills when it is due. */
void sessions_tick(struct agent *a);
/* After a worker has its answer: refills early when little is left. */
void sessions_taken(struct agent *a);
/* After a change of tenants: their quotas hold for whatever is asked for from now on. */
void sessions_quotas(struct agent *a);
/* Of a tenant (its index + 1) that nobody says any more. */
void sessions_end_tenant(struct agent *a, uint32_t tenant);
void sessions_end_all(struct agent *a, uint32_t reason);
/* Those that anything is still in flight of, or believed; not those whose worker has only not
 * closed them yet. */
uint32_t sessions_left(const struct agent *a);
/* Live sessions of a tenant (its index + 1). */
uint32_t sessions_of_tenant(const struct agent *a, uint32_t tenant);
void sessions_stop(struct agent *a);

/* ---- trim.c
 * ---------------------------------------------------------------------------------------- */

/* Now and then: once a second, if sessions have left something. */
void memory_trim(struct agent *a);

/* ---- follow.c
 * -------------------------------------------------------------------------------------- */

struct settings_save {
    struct agent *agent;
    char *text; /* while it is under way */
    size_t length;
    int status;
    uv_work_t work;
};

struct follow {
    uint32_t metaserver; /* that is watched, or is next */
    uint64_t call;       /* 0: none */
    uv_timer_t timer;
    uint64_t seen;                                   /* the revision that came last; 0: none did */
    uint64_t applied;                                /* the one in force; 0: none */
    struct agentd_limits window, destination_window; /* of it */
    char why[240];                                   /* what was seen is not; empty: it is */
    char *pending;                                   /* a document that may fit later */
    uint64_t try_ns, again_ns, backoff_ms;
    struct settings_save save;
    char *unsaved; /* the newest document in force that waits to be written */
};

/* What was in force when the agent ended: first what the device is opened with, then, after
 * sessions_start(), all of it. */
void follow_read(struct agent *a);
void follow_load(struct agent *a);
/* After registrations_start(). */
void follow_start(struct agent *a);
/* Before registrations_stop(); fini after the loop. */
void follow_stop(struct agent *a);
void follow_fini(struct agent *a);

/* ---- leases.c: those that the operator revokes
 * -------------------------------------------------------------------------------------- */

struct revocation;
struct leases {
    struct revocation *list; /* under way */
    uint32_t serial;         /* of the worker that attached last; from a random number on, so that
                              * an id of before a restart is nobody's */
    uint32_t tag;
    uint64_t revoked, forced; /* leases; arenas */
};

/* 0 or -errno. */
int leases_start(struct agent *a);
/* REVOKED, ARENA_RENEWED. */
void leases_event(struct agent *a, const struct kedge_lane_event *e);
/* Now and then: answers who has waited for long. */
void leases_tick(struct agent *a);
struct kedge_http_request;
/* The admin socket's `abandon`. */
void leases_abandon(void *user, struct kedge_http_request *request);
/* After the lane thread has ended, before arenas are retired. */
void leases_stop(struct agent *a);

/* ---- pool.c
 * ---------------------------------------------------------------------------------------- */

enum { POOL_SECONDS = 60 };

struct pool_state {
    struct agentd_pool said;      /* by metaservers; its name is empty if they say nothing */
    uint32_t sessions, arenas;    /* that are to be kept ready now */
    uint32_t dcis;                /* of this start */
    uint32_t spares;              /* that there are */
    bool sparing;                 /* one more or less is under way */
    int spare_status;             /* of the last one */
    uint64_t spare_ns;            /* after which the next one is tried */
    uint32_t taken[POOL_SECONDS]; /* workers that came in each second of the last minute: */
    uint64_t second;              /* the last of which this is */
    uint32_t demand;              /* the most of them */
    char why[240];                /* what is not in force of what is said; empty: all is */
};

/* Before the device is opened: what was said when the agent ended. */
void pool_init(struct agent *a, const struct agentd_pool *said);
/* The device cannot be opened with that: as the agent's own settings say. */
void pool_own(struct agent *a);
void pool_apply(struct agent *a, const struct agentd_pool *said);
/* A worker got a session. */
void pool_taken(struct agent *a);
void pool_tick(struct agent *a);
/* A spare more or less: there is (1, -1), or there is not (0) for this reason. */
void pool_spare(struct agent *a, int change, int status);
/* Members of the status's `pool`; and metrics. */
void pool_status(const struct agent *a, struct kedge_text *t);
void pool_metrics(const struct agent *a, struct kedge_text *t);

/* ---- node.c
 * ---------------------------------------------------------------------------------------- */

struct node_state {
    struct agentd_node said;
    uint64_t end_ns; /* draining: when the sessions that are left are ended; UINT64_MAX: never */
};

void node_apply(struct agent *a, const struct agentd_node *said);
/* Now and then: ends what has had its time. */
void node_tick(struct agent *a);
/* Whether no new workers are taken, and the sentence that says so. */
bool node_refuses(const struct agent *a, char *text, size_t size);
/* A member of the status's object, with a comma before; and metrics. */
void node_status(const struct agent *a, struct kedge_text *t);
void node_metrics(const struct agent *a, struct kedge_text *t);

/* ---- report.c
 * -------------------------------------------------------------------------------------- */

/* Now and then, and at once when something has changed that metaservers are told. */
void report_step(struct agent *a);

/* ---- attach.c
 * -------------------------------------------------------------------------------------- */

int attach_listen(struct agent *a, struct kedge_errbuf *err);
void attach_stop(struct agent *a);
void connection_close(struct connection *c);
/* We have ended the session: the worker is told by its socket, and closes it when it is done with
 * what it got. */
void connection_end(struct connection *c);
/* We are ending it: nothing that its worker sends is heard any more. */
void connection_mute(struct connection *c);
void connection_arena(struct connection *c, int status, const struct arena *arena, uint32_t number);

/* ---- interrupt.c
 * ----------------------------------------------------------------------------------- */

/* What comes with a worker's messages may block whoever closes it, for as long as the worker wants
 * (a TCP socket that lingers); a signal ends that wait. Between begin and end the control thread
 * gets one each millisecond: only around calls that may be interrupted. */
int interrupt_init(struct agent *a, struct kedge_errbuf *err);
void interrupt_begin(struct agent *a);
void interrupt_end(struct agent *a);
void interrupt_fini(struct agent *a);

/* ---- lane_thread.c
 * --------------------------------------------------------------------------------- */

int lane_thread_start(struct agent *a, struct kedge_errbuf *err);
void lane_thread_stop(struct agent *a);
/* The lane thread watches this session's doorbell from now on / no longer. Any thread. */
int lane_thread_watch(struct agent *a, uint32_t session, int doorbell);
void lane_thread_unwatch(struct agent *a, int doorbell);
/* Gives the lane a command and wakes it; waits for room in the ring without end only in theory. */
void lane_thread_command(struct agent *a, const struct kedge_command *command);

/* ---- windows.c
 * ------------------------------------------------------------------------------------- */

/* In force: what the file says and what the metaservers say, both hold. */
struct agentd_limits windows_device(const struct agent *a);
struct agentd_limits windows_destination(const struct agent *a);
/* Tells the lane what the settings say, and what is in force of each tenant. */
void windows_apply(struct agent *a);
/* A tenant (its index + 1) of which nothing is left: what was counted of it. */
void windows_forget_tenant(struct agent *a, uint32_t tenant);
/* Reads the file again; of what has changed in it the windows alone come into force. */
void windows_reload(struct agent *a);

/* ---- admin.c
 * --------------------------------------------------------------------------------------- */

int admin_listen(struct agent *a, struct kedge_errbuf *err);
void admin_stop(struct agent *a);
void admin_refuse_method(struct kedge_http_request *request, const char *allow);
/* admin_windows.c: a member of the status's object, with a comma before; and metrics. */
void windows_status(struct agent *a, struct kedge_text *t);
void windows_metrics(struct agent *a, struct kedge_text *t);
/* admin_leases.c */
void leases_metrics(struct agent *a, struct kedge_text *t);

/* ---- all of it
 * ------------------------------------------------------------------------------------- */

struct kedge_http_client;
struct kedge_http_server;

struct agent {
    struct agentd_config config;
    const char *config_path; /* NULL: there is none */
    uv_loop_t loop;
    uint32_t incarnation;
    uint32_t above;     /* an incarnation that ours must exceed; 0: none */
    uint32_t outrun_by; /* one that a metaserver knows, and ours is not above; 0: none */
    uint32_t heeded;    /* bit i: metaserver i has made this agent begin anew */
    bool stopping, terminated, device_lost;
    bool port_down;     /* as the device says */
    uint64_t qp_events; /* queue pairs that the device said are in ERR */
    uint64_t started_ns;
    struct agent_device device;
    struct kedge_lane *lane;
    void *peers; /* the workers' read-only table */
    int peers_fd;
    uint64_t peers_bytes;
    /* lane_thread.c */
    pthread_t thread;
    bool thread_runs;
    int lane_epfd, lane_kick, events_efd;
    _Atomic bool lane_stop, lane_asleep;
    /* register.c */
    struct kedge_http_client *http_client;
    uv_poll_t http_poll;
    struct registration registration[KEDGE_LANE_MAX_METASERVERS];
    uint32_t unregistering; /* metaservers that have not answered yet */
    uint32_t questions;     /* names that are being asked for */
    /* sessions.c */
    struct agent_session *sessions;
    struct arena *arenas_ahead; /* nobody's yet */
    struct agentd_tenants tenants;
    struct kedge_lane_quota quota[AGENTD_TENANTS];
    struct arena *arenas_of[AGENTD_TENANTS]; /* a tenant's, zeroed and registered anew */
    uint32_t arenas_making;
    bool arenas_failed, sessions_failed; /* the last one that was made ahead */
    uint64_t taken_ns;                   /* when a worker last got a session */
    uint64_t arenas_after_ns;            /* failed: when the next one is made */
    uint32_t unmade;                     /* sessions, since memory was trimmed */
    uint64_t trimmed_ns;
    uv_work_t trim; /* under way: its data is not NULL */
    struct session_counts count;
    struct kedge_log_limit fault_log, arena_log, overdue_log;
    /* leases.c */
    struct leases leases;
    /* follow.c */
    struct follow follow;
    struct node_state node;
    struct pool_state pool;
    /* interrupt.c */
    timer_t interrupt_timer;
    bool interrupt_made;
    /* attach.c */
    int listen_fd;
    uv_poll_t listen_poll;
    uv_timer_t accept_again;
    struct kedge_log_limit accept_limit;
    struct connection *connections;
    uint32_t connection_count;
    /* admin.c */
    struct kedge_http_server *admin;
    uv_poll_t admin_poll;
    struct kedge_text answer;
    uint32_t fab_ops; /* control operations of arenas, paths and readers that are under way */
    /* paths.c */
    struct errand *unrepaired; /* tried again at: */
    uint64_t repair_ns;
    uv_poll_t handshakes_poll;
    uv_timer_t handshakes_timer;
    /* main.c */
    uv_poll_t events_poll, control_poll, fabric_events_poll;
    uv_timer_t tick;
    uv_signal_t term, interrupt, hangup;
};

#endif
