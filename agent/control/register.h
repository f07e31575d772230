/* SPDX-License-Identifier: Apache-2.0 */
/* The node and its pools at the metaservers (register.c, register_turn.c, renew.c,
 * registered.c, unregister.c).
 * Control thread. */
#ifndef CONTROL_REGISTER_H
#define CONTROL_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "base/http/client.h"
#include "base/log.h"
#include "control/config.h"
#include "control/world.h"
#include "fabric/fabric.h"
#include "nearness.h"
#include "table_initiators.h"

struct agent;
struct fab_ah;
struct pool;

enum registration_state {
    REGISTRATION_NONE,
    REGISTRATION_ASKING,
    REGISTRATION_DONE,
    REGISTRATION_LOST
};

/* What a metaserver says of itself, when it registers this node and when it renews that. */
struct metaserver_standing {
    bool behind;            /* not all that others have written to its store is there */
    bool read_only;         /* its store does not take what it writes */
    uint64_t names_anew;    /* how often its store was put back, with its names of regions */
    uint64_t names_version; /* what it takes of names of regions: REST_NAMES_VERSION */
    char store[33];         /* of a store that several share; "": it is its own */
    char zone[64];          /* "": it says none */
};

/* What a metaserver answers to a registration. */
struct registration_answer {
    uint64_t lease_ms;
    uint32_t dctn;
    uint64_t dc_key;
    struct schema_table_desc table;
    struct schema_table_desc names; /* log2_slots 0: an older metaserver, which has none */
};

struct registration {
    struct pool *pool;
    const char *url;
    struct table_initiator initiator[2]; /* rc */
    struct table_initiator *offered;     /* rc: while ASKING */
    enum registration_state state;
    struct world_timer timer; /* the next renewal, or the next try */
    uint64_t backoff_ms;
    uint64_t late_ms; /* likewise after a call that was not answered in time; 0: it answers */
    bool late;        /* the last one was not */
    uint64_t turn_ns; /* while none has the pool: it is the others' turn from then on */
    bool waits;       /* for another one's turn to end */
    uint64_t put_ns, asked_ns; /* when it was put last, and a renewal asked for */
    uint64_t kept_ns;          /* DONE: its lease runs until then, as far as this node can know */
    bool renewing, renew_soon; /* a renewal is out; and another one is to follow it */
    char quiet[160];           /* DONE: why nothing was heard since; "": it has answered */
    struct metaserver_standing standing;
    struct nearness nearness;
    struct registration_answer answered; /* goes to lane with the way there, once there is one */
    uint64_t looked_ns;                  /* when that was brought forward last; 0: never */
    uint32_t endpoints; /* of the own pool: agent->endpoints when they were put last */
    bool announcing;    /* they are being put without an initiator */
    bool putting;       /* they are being put with one, or its address; one at a time */
    bool readdressed;   /* and what comes of that was begun with this node's former address */
    bool held;          /* they are to be put when this node has all that it says of its address */
    char why[512];      /* of the last failure; empty once registered */
    bool unsaid;        /* that is not in the log yet */
    bool telling;       /* what is in force is being told */
    uint64_t told;      /* the hash of what was told; 0: nothing was */
    uint64_t tell_ns;   /* when it is told next, at the earliest */
    struct base_log_limit log, registered_log;
    bool said_registered;       /* of the last time that it was */
    struct ibv_ah_attr address; /* that lane.ah leads to; all 0: none that may be kept */
    struct fab_ah *before;      /* of its address before this one, until all lanes give it back */
    uint32_t before_lanes;      /* that have not */
    uint64_t resolved_ns;       /* when its address last was */
    bool resolving;             /* `resolve` is under way */
    struct fab_ctl resolve;
    struct lane_metaserver lane; /* in force; ah in the system PD, once done */
};

/* Begins to register with every metaserver, one of them first: all endpoints of the node, and this
 * pool's table initiators; needs agent->incarnation. */
void agent_registrations_start(struct pool *p);
/* rc: the queue pair through which a metaserver's table is READ is ready, or is not; or it has
 * broken. */
void agent_registration_initiator_up(struct registration *r, struct table_initiator *initiator,
                                     int status);
void agent_registration_initiator_lost(struct registration *r);
/* Lookups of the pool's lanes that have found no metaserver that answers: when there are more than
 * before, it asks soon whether those that have it were started again, and with DC has
 * their addresses resolved anew. */
void agent_registrations_note_lookups(struct pool *p);
/* The fabric does not lead to that metaserver: with DC its address is resolved anew. */
void agent_registrations_unreached(struct agent *a, uint32_t metaserver);
/* A lane gives an address handle back, which may be a metaserver's. Whether the caller destroys it:
 * no other lane of its pool has it any more. */
bool agent_registrations_take_back(struct pool *p, const struct fab_ah *ah);
/* This node's address is another: metaservers' tables are READ on paths that are made anew. */
void agent_registrations_readdress(struct pool *p);
/* Nothing is begun any more; what is under way (pool->calls) ends by itself. */
void agent_registrations_stop(struct pool *p);

/* Asks that one now whether it still has this node, rather than at the next renewal. */
void agent_registrations_doubt(struct agent *a, uint32_t metaserver);
/* Of all pools, likewise: it has asked for that, of this agent or of many. */
void agent_registrations_renew(struct agent *a, uint32_t metaserver, bool of_many);
/* How many metaservers have the pool now; and how many have the node with all its pools. */
uint32_t agent_registrations_count(const struct pool *p);
uint32_t agent_registrations_done(const struct agent *a);
/* What is to be said of that metaserver: how the own pool is registered there; if that is in order,
 * how another one is not. */
const struct registration *agent_registrations_find(const struct agent *a, uint32_t metaserver);
/* One that no metaserver has, and that each has refused or left without an answer; or NULL. */
const struct pool *agent_registrations_missed(const struct agent *a);
/* The node has other endpoints than before: the metaservers are told. */
void agent_registrations_changed(struct agent *a);
/* A warning when others may read the file that was just found to hold a token; one until they may
 * not. */
void agent_registrations_look_at_token(struct agent *a);
/* The node goes: metaservers that have it are asked to forget it, which a->unregistering counts,
 * and each has grace_ms to answer. */
void agent_registrations_leave(struct agent *a, unsigned grace_ms);

#endif
