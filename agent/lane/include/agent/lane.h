/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: what carries requests from workers' rings to the fabric and completions back (design:
 * "From a worker's call to the wire"). No I/O of its own, no clock, no randomness, no thread:
 * stepped with the time, it reaches the network through the fabric alone, and sim or daemon own it.
 *
 * One thread steps a lane. The control side talks to it through two bounded rings: commands in,
 * events out; these two calls (lane_command, lane_event) are the control thread's,
 * everything else is the lane thread's. Ownership of what a command carries passes to the lane
 * until the event that answers it.
 *
 * Invariants: a malformed request never reaches a physical queue pair; a physical send queue never
 * overflows; no request is posted under a record whose lease is over; nothing a worker writes is
 * believed before it was copied. */
#ifndef AGENT_LANE_H
#define AGENT_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "schema/session.h"
#include "schema/table.h"

struct lane;

enum {
    LANE_MAX_DCIS = 32,
    LANE_MAX_METASERVERS = 8,
    LANE_SESSION_MAX_ARENAS = 16,
    LANE_MAX_DESTINATIONS = 256, /* that have windows of their own */
    LANE_PATHS = 1024,           /* WANT_PATHs that are not answered, at a time */
};

struct lane_quota;

struct lane_config {
    uint32_t max_sessions;
    uint32_t max_peers;              /* known endpoints */
    uint32_t max_flows;              /* endpoints with requests out or waiting at one time */
    uint32_t max_tenants;            /* of all sessions */
    uint32_t max_mrs;                /* regions of all sessions */
    const struct lane_quota *quotas; /* of all max_tenants tenants, borrowed, for max_mrs;
                                      * NULL: no tenant has a reserve of those */
    uint32_t mr_cache;               /* remote regions known at one time, a power of two */
    uint32_t sq_depth;               /* of each DCI */
    uint32_t guess_budget; /* wrong virtual keys of one session before it ends; one a second more */
    uint32_t max_grants;   /* imports of one session */
    uint64_t spin_ns;      /* how long a silent session is polled before it goes to sleep: about
                              what a wake-up costs (RDMAbox counts 120 polls instead) */
    uint64_t suspect_ns;   /* an endpoint that was silent for longer while it had requests is
                              suspect: beside the time for what is out at the port's rate */
    uint64_t port_rate;    /* bytes in a millisecond; 0: not known */
    uint64_t most_bytes;   /* out on all queue pairs at a time, so that what is healthy ends long
                              before bound_ns; 0: no limit. A request that is larger than its queue
                              pair's part goes when nothing else is out there */
    uint64_t lookup_timeout_ns; /* of all metaservers together: at least as long as the device
                                 * repeats a READ */
    uint64_t lookup_hedge_ns;   /* a metaserver that is silent for so long keeps nobody from asking
                                 * the next one beside it */
    uint64_t path_patience_ns;  /* what is posted waits for a path for at least so long, whoever was
                                 * refused one before it */
    uint64_t node_lease_ns;     /* how long an endpoint record is believed */
    uint64_t mr_lease_ns;       /* how long an MR record is believed */
    uint64_t bound_ns,
        slack_ns;       /* of the lease rule; mr_lease_ns > bound_ns + slack_ns, asserted */
    bool rc;            /* peers are reached through RC connections, one each; else through DC */
    uint32_t max_links; /* rc: connections at a time, of max_flows endpoints */
    bool deadlines;     /* the device keeps to not_after_ns, and now_ns is of the same clock */
    bool posts_in_time; /* else, it looks at that last of all before its doorbell */
    bool end_overdue;   /* it does not keep them: end a queue pair before a request in it is out
                         * for longer than bound_ns; the device's time is now_ns's */
    bool own_regions;   /* the device keeps no deadlines: an ordinary region has a registration of
                         * its own, which goes when its lease is over */
    /* Not 0: this host's clock cannot be trusted, so that only regions which hardware guards are
     * reached, and what was READ before is not believed afterwards. Borrowed, written by the
     * control side at any time; NULL: it always can. */
    const _Atomic uint32_t *clock_doubted;
    bool streams;                        /* a DCI serves several targets at a time */
    bool names_culprit, writes_in_order; /* as of the device (fabric.h) */
    uint8_t gid[16];
    uint16_t pool;
    uint32_t incarnation;
};

/* What the lane uses of the fabric; made by the control side, borrowed while the lane lives. All
 * DCIs are in RTS, complete on `cq`, and have room for sq_depth; the system DCI (metaserver READs)
 * completes on cq too. With rc there are none: connections come with PATH_READY, and one for each
 * metaserver with METASERVERS; they complete on cq and have room for sq_depth too. */
struct lane_device_objects {
    struct fab *fab;
    struct fab_cq *cq; /* room for every send slot of every queue pair below */
    struct fab_pd *pd;
    struct fab_qp *dci[LANE_MAX_DCIS];
    uint32_t dcis; /* in use; the last is the probing one, for suspect endpoints */
    struct fab_qp *spare[LANE_MAX_DCIS];
    uint32_t spares;
    uint32_t max_spares;          /* that there may be at a time: more come with QP_READY */
    struct fab_qp *system_dci;    /* in the system PD; NULL with rc */
    struct fab_mem scratch;       /* for what the lane itself READs */
    uint32_t scratch_lkey;        /* in pd */
    uint32_t scratch_system_lkey; /* in the system PD */
    /* For inline data beyond the device's max_inline, where that is less than SCHEMA_MAX_INLINE:
     * places of so many bytes, and how pd's queue pairs name the first. */
    struct fab_mem small;
    uint64_t small_iova;
    uint32_t small_lkey;
    void *peers; /* formatted: schema/peers.h; max_peers slots */
    struct schema_table
        *mr_table; /* this node's, registered for remote READ; the lane is its writer */
};

/* 0, or -ENOMEM/-EINVAL. config is copied. seed: for virtual keys' draws in simulation; the daemon
 * gives random() a source of its own through lane_set_random(). */
int lane_new(const struct lane_config *config, const struct lane_device_objects *resources,
             struct lane **out);
void lane_free(struct lane *lane);
/* At the end, when no thread steps it any more: one of the address handles that it still holds, for
 * the control side to destroy, or NULL. */
struct fab_ah *lane_take_ah(struct lane *lane);
/* Where virtual keys and secrets come from: fills bytes; 0 or -errno. Must be set before the first
 * step. */
void lane_set_random(struct lane *lane, int (*fill)(void *user, void *bytes, size_t n), void *user);

/* One pass: commands, completions, rings, posts. now_ns grows. Returns how much it did (0:
 * nothing). Makes no call that can block; of system calls only futex wakes, and those through
 * wake(). */
uint32_t lane_step(struct lane *lane, uint64_t now_ns);
/* Called by the lane to wake a worker that sleeps on its session's `wake` word. */
void lane_set_wake(struct lane *lane, void (*wake)(void *user, _Atomic uint32_t *word), void *user);
/* Before sleeping: sets every session's doorbell flag, fences, arms the CQ, looks once more at all.
 * UINT64_MAX or the time (of now_ns's clock) of the next thing that is due; 0: there is work, do
 * not sleep. */
uint64_t lane_prepare_sleep(struct lane *lane, uint64_t now_ns);
/* The doorbell of a session was rung: it is polled again. */
void lane_doorbell(struct lane *lane, uint32_t session);

/* ---- control side
 * ---------------------------------------------------------------------------------- */

/* Registered memory that a worker may use. */
struct lane_arena {
    uint64_t iova; /* where its registration has its first byte; the lane touches none of them */
    uint64_t bytes;
    uint32_t lkey, rkey; /* real */
};

/* A tenant's quotas; sessions and memory are the control side's to bound. */
enum lane_quota_kind {
    LANE_QUOTA_SESSIONS,
    LANE_QUOTA_MEMORY,
    LANE_QUOTA_VQPS,
    LANE_QUOTA_MRS,
    LANE_QUOTA_CONTROL_OPS,
    LANE_QUOTAS
};

/* What a tenant has of what lanes give out, and may have at most; shared by the sessions and lanes
 * that it has. The control side's memory, while any of its sessions lives. */
struct lane_quota {
    _Atomic uint32_t vqps, mrs;
    _Atomic uint64_t refused[LANE_QUOTAS]; /* what was asked for beyond them */
    _Atomic uint32_t max_vqps, max_mrs;    /* UINT32_MAX: no bound; of what is asked from now on */
    _Atomic uint32_t reserved_mrs;         /* of the lane's max_mrs: agent/reserve.h */
    _Atomic uint64_t control_ops;          /* so far */
    _Atomic uint32_t control_ops_per_s;    /* 0: no bound; as many at once as in a second */
    _Atomic uint64_t control_due_ns;       /* quota.c's alone */
};

/* A control operation: whatever a worker asks for beside data operations, be it of a lane (to look
 * up an endpoint; to connect a queue pair; to register, deregister or import a region, or to ask
 * whether it was revoked) or of the control side. All of a tenant's share one budget. False: it is
 * used up, which is counted as refused; try again later. now_ns: of lane_step()'s clock. Any
 * thread. */
bool lane_quota_ask(struct lane_quota *quota, uint64_t now_ns);

/* What a lane keeps for one session. The control side makes it, off the lane's thread since that
 * takes system calls and page faults; it is the lane's from SESSION_ADD to SESSION_OVER. NULL: no
 * memory. Any thread. */
struct lane_memory;
struct lane_memory *lane_memory_new(uint32_t max_grants, uint32_t max_inflight, uint32_t max_vqps,
                                    uint32_t max_mrs);
void lane_memory_free(struct lane_memory *memory);

/* How to reach an endpoint: an address handle with DC, a connection with rc. */
struct lane_path {
    struct fab_ah *ah;
    struct fab_qp *qp;
};

/* A session as the lane sees it. Mappings are the control side's until LANE_EVENT_SESSION_OVER. */
struct lane_session {
    uint32_t id; /* below max_sessions, not in use; names it in commands and events */
    struct schema_session_rw *rw;
    struct schema_session_ro *ro; /* filled in: geometry, tenant, gid; doorbell set */
    uint32_t tenant;
    uint32_t tenant_slot; /* below max_tenants: which window and whose turn it is */
    uint32_t max_vqps, max_inflight, max_mrs;
    struct lane_quota *quota;   /* the tenant's, borrowed */
    struct lane_memory *memory; /* for these numbers and the lane's max_grants */
    struct lane_arena arena;    /* number 0 */
};

enum lane_command_kind {
    LANE_COMMAND_SESSION_ADD = 1,
    LANE_COMMAND_SESSION_END, /* -> SESSION_OVER when drained, withdrawn and the lease is over */
    LANE_COMMAND_ARENA_ADD,   /* -> ARENA_ADDED */
    LANE_COMMAND_PATH_READY,  /* answers WANT_PATH; path empty: status says why */
    LANE_COMMAND_QP_READY,    /* answers QP_BROKEN: a DCI in RTS for the spares; or one more of them
                               */
    LANE_COMMAND_SPARE_DROP,  /* one spare less -> SPARE_DROPPED */
    LANE_COMMAND_QP_FATAL,    /* this queue pair was found in ERR after everything that the control
                               * side has told of it before: so said of its present life. One that
                               * the lane does not have, or has given back, is left alone */
    LANE_COMMAND_QP_REBUILD,  /* this DCI is to be brought up anew: nothing more is posted on it,
                               * and QP_BROKEN follows when what is out has come back. One that the
                               * lane does not have is left alone */
    LANE_COMMAND_FENCED,      /* answers WANT_FENCE: session and tag */
    LANE_COMMAND_REVOKE,      /* the operator withdraws a session's regions -> REVOKED */
    LANE_COMMAND_ARENA_REREGISTER, /* an arena has another registration -> ARENA_RENEWED */
    LANE_COMMAND_FORCE_LATE,  /* after a REVOKE by force: that takes long. A REG_MR that waits for
                               * another registration is refused; the next one waits again */
    LANE_COMMAND_FORCE_OVER,  /* after a REVOKE by force: none of its arenas gets another
                               * registration any more */
    LANE_COMMAND_MR_READY,    /* answers WANT_MR: status, and why not: reason */
    LANE_COMMAND_MR_GONE,     /* answers WANT_DEREG: no device reaches it any more. Neither is said
                               * of a session whose SESSION_OVER was taken */
    LANE_COMMAND_METASERVERS, /* replaces the list, nearest first */
    LANE_COMMAND_READDRESS,   /* this node's address is another: whatever was made with the former
                               * is given back, and asked for anew -> READDRESSED */
    LANE_COMMAND_WINDOW, /* changes how much may be in flight from now on; none is set before */
    LANE_COMMAND_PROVE,  /* one READ, to see whether an endpoint or a metaserver is reached ->
                          * PROVED; one at a time */
};

/* What a window is of; each request is in one of each. */
enum lane_window_scope {
    LANE_WINDOW_DEVICE,
    LANE_WINDOW_DESTINATION, /* an endpoint */
    LANE_WINDOW_TENANT,
};
enum { LANE_WINDOW_SCOPES = 3 };

/* How to READ a metaserver's endpoint table. */
struct lane_metaserver {
    struct fab_ah
        *ah; /* in the system PD; the control side keeps it until the lane got another list */
    uint32_t dctn;
    uint64_t dc_key;
    struct fab_qp *qp; /* rc, instead: connected to it, in the system PD; the lane's until
                        * QP_BROKEN, which also follows when a list comes without it; and not again
                        * before one has come without it */
    struct schema_table_desc table;
    uint32_t number; /* the control side's, of this metaserver */
};

/* PROVE of an endpoint, and not of a metaserver. */
#define LANE_PROVE_ENDPOINT UINT32_MAX

struct lane_command {
    enum lane_command_kind kind;
    uint32_t session;
    union {
        struct lane_session add;
        uint32_t reason; /* SESSION_END: enum schema_reason */
        struct lane_arena arena;
        struct {
            uint32_t flow;
            struct lane_path path;
            int status;
        } path;
        struct fab_qp *qp;
        uint32_t tag;
        struct {
            uint32_t tag;    /* in the answer again */
            uint32_t number; /* of a lease; 0: all that are in: */
            uint32_t arenas; /* bit i: number i */
            bool own;   /* and all with registrations of their own, which `arenas` leaves out */
            bool force; /* of these the registration goes at once. For each of `arenas` an
                         * ARENA_RENEW follows, or FORCE_OVER for all; until then REG_MRs there,
                         * for regions without a registration of their own, wait */
        } revoke;
        struct {
            uint32_t tag; /* of the event */
            uint32_t rkey;
            uint64_t iova;   /* of the region's first byte */
            uint32_t reason; /* enum schema_reason, with status */
            int status;
        } mr;
        struct {
            uint32_t tag; /* in the answer again */
            uint32_t number, lkey, rkey;
            uint64_t iova;
        } renew;
        struct {
            enum lane_window_scope scope;
            uint32_t tenant; /* TENANT: its slot */
            uint8_t gid[16]; /* DESTINATION: this one's own, beside the one of each, the narrower
                              * of both holds; at most LANE_MAX_DESTINATIONS at a time.
                              * All zero: the one of each */
            uint64_t bytes, ops; /* 0: no limit */
            bool anew; /* TENANT: the slot is for another one now; nothing is in flight of it */
        } window;
        struct {
            uint8_t gid[16];
            uint32_t incarnation;
            /* NULL: peers know the node by the same name. Else that is another one, which tells
             * another place for the MR table: this one, empty, registered and borrowed as the
             * first; regions go over to it with their keys. */
            struct schema_table *mr_table;
        } readdress;
        struct {
            uint32_t count;
            struct lane_metaserver at[LANE_MAX_METASERVERS];
        } metaservers;
        struct {
            uint32_t tag;        /* in the answer again */
            uint32_t metaserver; /* its number, or LANE_PROVE_ENDPOINT: */
            uint8_t gid[16];     /* of the lane's pool */
            uint64_t fresh_ns;   /* what has answered to others' requests within that is proven */
        } prove;
    };
};

enum lane_event_kind {
    LANE_EVENT_SESSION_OVER = 1,   /* session: nothing of it is in flight or believed any more;
                                    * exported tells whether peers ever had a key to its arenas */
    LANE_EVENT_SESSION_FAULT,      /* the lane has ended it (reason); the control side closes the
                                    * socket; SESSION_OVER    follows without a command */
    LANE_EVENT_ARENA_ADDED,        /* arena: its number, or status */
    LANE_EVENT_WANT_PATH,          /* make one to gid in pd, answer PATH_READY with the same flow */
    LANE_EVENT_DROP_PATH,          /* path: no longer used: destroy it, disconnect it */
    LANE_EVENT_WANT_FENCE,         /* fence the registration with that rkey, answer FENCED */
    LANE_EVENT_REVOKED,            /* no peer finds those regions any more; what believes them ends
                                    * with the lease. -ENOENT: there is no such session or lease */
    LANE_EVENT_ARENA_REREGISTERED, /* nothing here uses the former registration any more: deregister
                                    * it, answer FENCED with fence_tag. -ENOENT: the session is
                                    * gone; -EBUSY: one of an arena at a time */
    LANE_EVENT_WANT_MR,            /* register that part of an arena for remote access, answer
                                    * MR_READY. At SESSION_OVER all that a session has goes, before
                                    * its arenas do: nothing is asked for any more */
    LANE_EVENT_WANT_DEREG,         /* deregister what such an answer brought, answer MR_GONE */
    LANE_EVENT_QP_OVERDUE,         /* qp: bring it to ERR at once. QP_BROKEN follows */
    LANE_EVENT_QP_RETIRED,         /* the same of one that is in order, and of no use any more */
    LANE_EVENT_SPARE_DROPPED,      /* qp: no longer used: destroy it; NULL: none is left to drop */
    LANE_EVENT_READDRESSED, /* the former MR table is empty, and used no more. reason: regions
                             * for whose keys the new one had no room, which no peer finds */
    LANE_EVENT_TENANT_QUARANTINED, /* apart: whose requests have broken queue pairs under those of
                                    * others again and again, and have some of their own from now
                                    * on; or have so no more */
    LANE_EVENT_PROVED,             /* proved: 0: it answers; -ETIMEDOUT: it does not; -EHOSTUNREACH:
                                    * no path could be made to it; -EREMOTEIO: it refused; -EIO: the
                                    * own device did; -ENOENT: the metaservers know it no more, or
                                    * the lane knows no such metaserver; -EAGAIN: it could not be
                                    * tried now */
    LANE_EVENT_QP_BROKEN,          /* qp: with DC reset and bring back to RTS, answer QP_READY; with
                                    * rc the lane is done with that connection */
};

struct lane_event {
    enum lane_event_kind kind;
    uint32_t session;
    union {
        uint32_t reason;
        struct {
            uint32_t number;
            int status;
        } arena;
        struct {
            uint32_t flow, incarnation;
            uint8_t gid[16];
            uint32_t ud_qpn, ud_qkey; /* rc */
            enum ibv_mtu mtu;         /* of its DC target, by its record: what that answers with */
            uint16_t lid;
        } want_path;
        struct {
            uint32_t rkey, tag;
            uint32_t arena; /* WANT_DEREG: its number */
        } fence;
        struct {
            uint32_t tag;
            uint32_t arena;  /* its number */
            uint32_t access; /* enum schema_record_flag */
            bool fenced;
            uint64_t offset, length;
        } want_mr;
        struct {
            uint32_t tag;
            int status;
            uint32_t taken;     /* leases that were live until now */
            uint32_t fence_tag; /* RENEWED */
            uint32_t last; /* RENEWED: leases in that arena with larger numbers have the new one */
        } answer;
        struct {
            uint32_t tag;
            int status;
        } proved;
        struct lane_path path;
        struct fab_qp *qp;
        struct {
            uint32_t tenant; /* slot */
            bool begins;
            bool named; /* else it is so with several tenants, of whom one has broken them */
        } quarantined;
    };
};

/* 0, or -EAGAIN: the ring is full, try after the lane's next pass. */
int lane_command(struct lane *lane, const struct lane_command *command);
/* 1 and an event, or 0. */
int lane_event(struct lane *lane, struct lane_event *out);
/* Whether there is one: for the thread that steps the lane, so that it wakes the control side. */
bool lane_has_events(const struct lane *lane);

/* Counters, monotonic unless said otherwise; each is written by the lane with relaxed stores, read
 * by anybody. */
struct lane_stats {
    uint64_t passes, sleeps;
    uint64_t posted, completed, failed, refused; /* worker requests */
    uint64_t doorbells;                          /* linked lists handed to the fabric */
    uint64_t endpoint_reads, mr_reads;           /* READs of metaservers' and of peers' tables */
    uint64_t mr_renewals;                        /* of those, while requests went on */
    uint64_t lookups_failed;
    uint64_t lookups_compared; /* with an endpoint that was asked for: what finding one costs */
    uint64_t shares_compared;  /* tenants whose part of the MR table was looked at */
    uint64_t proofs, proofs_failed; /* READs that were to prove a way; ways that were not */
    uint64_t wrong_keys;
    uint64_t control_pauses; /* times that a tenant's control operations waited for its budget */
    uint64_t qp_broken, qp_overdue, reposted;
    uint64_t posts_refused; /* requests that the device did not take as they were */
    uint64_t retried;       /* looks at virtual queue pairs whose requests wait */
    uint64_t paths_failed, links_evicted;
    uint64_t quarantined; /* times that a tenant was put apart from others */
    uint64_t links, sessions, vqps, peers, flows, inflight, mrs, suspects, tenants_quarantined,
        tenants_resting; /* gauges */
    /* By enum lane_window_scope: requests that had to wait at such a window, and how long they
     * did, of those that do no more. */
    uint64_t window_waits[LANE_WINDOW_SCOPES], window_waited_ns[LANE_WINDOW_SCOPES];
};
void lane_stats(const struct lane *lane, struct lane_stats *out);
/* How often the requests of the tenant in that place have had to wait since they had broken queue
 * pairs. Likewise. */
uint64_t lane_rests(const struct lane *lane, uint32_t tenant);

/* ---- leases: what workers let peers use, as an operator sees it
 * ---------------------------------------------------------------------------------------------- */

enum lane_lease_state {
    LANE_LEASE_NONE,
    LANE_LEASE_LIVE,
    LANE_LEASE_WITHDRAWING, /* not to be found any more; believed until its time is over */
    LANE_LEASE_WAITING,     /* nothing begins in it any more; what had begun is waited for */
    LANE_LEASE_REVOKED,     /* no peer reaches it: its worker has not deregistered it yet */
};

struct lane_lease {
    enum lane_lease_state state;
    bool revoked;     /* by the operator */
    bool own;         /* with a registration of its own */
    bool fenced;      /* and nobody waits a period for its end */
    uint32_t number;  /* of its session's registrations, from 1 */
    uint32_t arena;   /* number */
    uint32_t access;  /* enum schema_record_flag: READ, WRITE, ATOMIC */
    uint64_t offset;  /* in the arena */
    uint64_t length;  /* bytes */
    uint64_t born_ns; /* of lane_step()'s clock */
    uint64_t due_ns;  /* WITHDRAWING: when its time is over; 0: not counted yet */
};

/* Of a session's memory, while the control side has not freed it: how many places for leases were
 * ever used (from 0), and what is in one of them now. False: nothing. Any thread. */
uint32_t lane_leases(const struct lane_memory *memory);
bool lane_lease(const struct lane_memory *memory, uint32_t index, struct lane_lease *out);

/* How a window stands. Written as the counters are, so that one of these numbers may be a request
 * ahead of another; but where it is counted, with a limit comes what
 * was in flight when it came into force, or later. */
struct lane_window {
    bool counted; /* false: no window of the lane has a limit, and nothing is counted */
    uint64_t limit_bytes, limit_ops; /* 0: none */
    uint64_t bytes, ops;             /* of workers' requests, in flight */
    uint64_t most_bytes, most_ops;   /* in flight so far */
    uint64_t waiting;                /* VQPs whose first request waits here now */
    uint64_t waits, waited_ns;       /* as in the counters */
    uint8_t gid[16];                 /* of a destination */
};
/* number: of a tenant, its slot; of a destination, any below lane_destinations(); of the
 * device, 0. False: no such destination is in use. Any thread. */
bool lane_window(const struct lane *lane, enum lane_window_scope scope, uint32_t number,
                 struct lane_window *out);
/* How many places for destinations were ever used. Any thread. */
uint32_t lane_destinations(const struct lane *lane);

#endif
