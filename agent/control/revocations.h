/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's hold on leases: what leases.c does and admin_leases.c shows. Control thread. */
#ifndef CONTROL_REVOCATIONS_H
#define CONTROL_REVOCATIONS_H

#include "agent.h"
#include "agent_query.h"
#include "control/lease_ids.h"
#include "bounds.h"

/* Whose they are; a copy, since a worker may end meanwhile and its session's number be another's.
 */
struct lease_owner {
    struct agent_worker_id id;
    char tenant[AGENT_NAME];
    uid_t uid;
    pid_t pid;
};

struct revocation;

/* Who may wait for the same one: each metaserver, and as many at the admin socket. */
enum { REVOCATION_ASKERS = 2 * AGENT_METASERVERS };

/* By force: an arena that gets another registration, since the present one is to go. */
struct reregistration {
    struct revocation *of;
    struct arena *arena; /* busy meanwhile; NULL: none is under way */
    uint32_t number;     /* the arena's, of its session */
    bool alone;          /* no other one was begun beside it */
    enum {
        REREGISTRATION_REGISTERING,
        REREGISTRATION_ASKED /* the lane */,
        REREGISTRATION_DEREGISTERING
    } stage;
    uint32_t tag; /* of the command to the lane */
    uint32_t fence_tag;
    struct fab_mr *mr; /* the registration to come; DEREGISTERING: the one that goes */
    struct fab_ctl ctl;
};

/* One that the operator has asked for. Of each worker one is forced at a time. */
struct revocation {
    struct pool *pool;
    struct revocation *next;
    struct asker by[REVOCATION_ASKERS]; /* who wait for it; nobody: answered, or gone */
    struct lease_owner owner;
    uint32_t tag;    /* of the command to the lane */
    uint32_t number; /* of the lease; 0: all of the worker's */
    bool force;
    enum { REVOKING, FORCING, SETTLED } stage;
    /* By force: arenas, bit i for number i. */
    uint32_t arenas; /* whose reregistration is still to begin */
    uint32_t freed;  /* whose registration is gone */
    uint32_t under_way;
    struct reregistration reregistration[LANE_SESSION_MAX_ARENAS];
    bool in_turn; /* there was no room for all the registrations beside the former ones */
    int failed;   /* why an arena has no other registration */
    uint64_t begun_ns;
    uint32_t count;
    struct lane_lease lease[2 * MRS_PER_SESSION]; /* that it takes away */
};

/* Whether the session is there and has leases to show. */
bool agent_session_has_leases(const struct agent_session *s);
void agent_session_owner(const struct agent_session *s, struct lease_owner *out);
/* Sessions of all pools have one row of places. NULL: there is none there, or no pool. */
struct agent_session *agent_session_at(const struct agent *a, uint32_t place);
/* A worker's session, or NULL: it is gone. */
struct agent_session *agent_session_of_worker(const struct agent *a,
                                              const struct agent_worker_id *id);
/* Its lease of that number. False: there is none. */
bool agent_session_find_lease(const struct agent_session *s, uint32_t number,
                              struct lane_lease *out);
/* Whether no peer can reach any of what it takes away, or one of that: its registration is gone, or
 * the lane says so. */
bool agent_revocation_is_over(const struct revocation *r);
bool agent_revocation_is_over_for(const struct revocation *r, const struct lane_lease *lease);

/* Whether anybody waits for it. */
bool agent_revocation_is_awaited(const struct revocation *r);
/* Begins to revoke a lease (by its number) or all (0) of a live session for who asks, which
 * agent_revocation_reply() answers when it is over, or takes long. What is being revoked already is
 * not begun again: who asks for it gets the same answer. -EBUSY: something else of this worker is
 * being forced; -ENOMEM. */
int agent_revocation_begin(struct asker by, struct agent_session *s, uint32_t number, bool force);

/* admin_leases.c: says what is there, at once; and begins to revoke: then the answer comes later,
 * else (false) it has been given. */
void agent_leases_look(struct agent *a, const struct held_request *request, bool leases);
bool agent_leases_revoke(struct agent *a, const struct held_request *request);
/* admin_leases.c: /v1/leases and /v1/workers, as agent_admin_take(). False: the path is none of
 * them. */
bool agent_leases_handle(struct agent *a, struct world_request *r,
                         const struct admin_request *request, bool *answered);
/* Questions of metaservers get no answer any more. */
void agent_leases_forget_asked(struct agent *a);
/* Answers all who wait for it. status: 0, and r says how far it is; or -errno. */
void agent_revocation_reply(struct revocation *r, int status);

#endif
