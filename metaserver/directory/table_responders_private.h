/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the table responders: what they are, in table_responders.c; which of them pools keep,
 * in table_responders_kept.c; which have broken, in
 * table_responders_broken.c; how many there may be, in table_responders_room.c. */
#ifndef METASERVER_TABLE_RESPONDERS_PRIVATE_H
#define METASERVER_TABLE_RESPONDERS_PRIVATE_H

#include "base/clock.h"
#include "base/log.h"
#include "fabric/port.h"
#include "fabric/reuse.h"
#include "metaserver/table_responders.h"
#include "responder_index.h"

#define NONE RESPONDER_NONE

enum { TAKEN = 64 }; /* further lanes' that a first one has got, and of which agents are told */

/* For so long a pool that has got another node's gets no other one, nor a node more than it may
 * have of its own: who registers again and again, and gives up what it gets, would end all of them,
 * and each as often as it comes back. */
#define TAKE_AGAIN_NS (60 * BASE_NS_PER_S)

enum responder_state {
    FREE,
    MAKING,     /* being created and brought to INIT */
    RESTING,    /* in INIT, and what its number had before may still be under way */
    SPARE,      /* in INIT, and may be connected */
    CONNECTING, /* on its way to RTR for a request */
    READY,      /* in RTR; its request is over */
    KEPT,       /* of a lane of a node's pool */
    ENDING,     /* being destroyed */
    STATES,
};

struct responder {
    struct fab_ctl ctl; /* under way in MAKING, CONNECTING and ENDING */
    struct meta_responders *owner;
    struct fab_qp *qp;
    struct meta_responder_request *request; /* CONNECTING, READY */
    enum responder_state state;
    uint32_t next;    /* FREE, RESTING, SPARE: of the list */
    uint64_t rest_ns; /* RESTING: until then; 0: the next tick knows */
    bool sound;       /* reached INIT */
    bool unheard;     /* ENDING: its reader was not heard of, and may go on */
    uint32_t life;    /* of its number: its receive has it */
    bool broken;      /* CONNECTING, READY, KEPT: it is in ERR */
    bool told;        /* meta_responders_broken() has said that */
};

/* Its agent is told as of one that is broken, and READs no more through it. */
struct taken_responder {
    char id[META_STORE_ID_BYTES];
    uint32_t qpn;                    /* 0: none */
    bool told;                       /* meta_responders_broken() has said it */
    char taker[META_STORE_ID_BYTES]; /* another node that has got it; "": none */
    uint16_t taker_pool;
    uint32_t number; /* so many went before it */
    uint64_t at_ns;
};

TAILQ_HEAD(requests, meta_responder_request);

struct meta_responders {
    struct meta_world *world;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct responder *responders; /* capacity of them */
    struct responder_index kept;
    uint32_t capacity;      /* queue pairs at a time */
    uint32_t limit;         /* of them that pools' first lanes may have; */
    uint32_t further_limit; /* and others, half of all: but for the spares, which let one
                             * replace its own */
    uint32_t further;       /* KEPT, of these others */
    uint32_t hand;          /* where one of them was looked for last, to make room */
    uint32_t takes;         /* how often it was, and some of these: a node keeps no other's out */
    struct taken_responder taken[TAKEN];
    struct base_log_limit taken_log;
    uint32_t free, spare;           /* first of each list */
    uint32_t resting, resting_last; /* likewise, of those that were made first */
    uint32_t touched;               /* responders that were ever used */
    uint32_t in_state[STATES];
    uint32_t fresh;         /* CONNECTING, READY: for first lanes that have none yet; */
    uint32_t fresh_further; /* and for others */
    struct requests waiting, connecting, over;
    uint32_t asked;   /* in one of them */
    uint64_t numbers; /* of requests so far */
    int make_error;   /* of the last one that was to be made; until there is room again, or somebody
                       * asks */
    bool prewarming;  /* spare ones are made */
    bool stopping;
    bool news;         /* their completion queue is to be looked at */
    bool untold;       /* some are broken and not told, of which those */
    uint32_t telling;  /* before this number were looked at */
    bool went;         /* a queue pair went since the last tick */
    bool went_unheard; /* the reader of one that went was not heard of */
    uint64_t now_ns;   /* at the last tick */
    uint64_t begun_ns,
        gone_ns; /* those of the process before, and the last of ours, went by then */
    struct fab_port_watch port;
    struct meta_responders_counts count;
};

static inline uint32_t meta_responder_number(const struct responder *p)
{
    return (uint32_t)(p - p->owner->responders);
}

/* How many there are for lanes: the spares are beside these. */
static inline uint32_t meta_responders_shared(const struct meta_responders *r)
{
    return r->capacity - META_RESPONDERS_SPARES;
}

/* table_responders_kept.c */
/* The one at that place of `kept` is kept no more. unheard: its node expired or was removed, or has
 * not heard of it, and may READ still. */
void meta_responders_end_kept(struct meta_responders *r, uint32_t at, bool unheard);

/* table_responders_room.c */
/* A request that is fresh is no more, or one comes. */
void meta_responders_count_fresh(struct meta_responders *r,
                                 const struct meta_responder_request *request, int more);
/* Whether all are in use that there are for a request of a lane that has none. A first one is given
 * what others have, when it is kept. */
bool meta_responders_is_full(const struct meta_responders *r,
                             const struct meta_responder_request *request);
/* Its sentence, and -ENOSPC. */
int meta_responders_say_full(const struct meta_responders *r,
                             struct meta_responder_request *request);
/* A further lane's goes, for a first one. There must be one. */
void meta_responders_take_further(struct meta_responders *r,
                                  const struct meta_responder_request *request);
/* One goes, to make room for that request, for which the device makes none. False: none may. */
bool meta_responders_make_room(struct meta_responders *r,
                               const struct meta_responder_request *request);

/* table_responders_broken.c */
/* Its agent is to hear that it goes, for a lane of taker's. */
void meta_responder_note_taken(struct responder *p, const struct meta_responder_request *taker);
/* Whether that pool has got another node's of late. */
bool meta_responders_took_lately(const struct meta_responders *r,
                                 const struct meta_responder_request *taker);
/* It is a lane's of that node: what was said of its number is over. */
void meta_responder_note_kept(const struct responder *p, const char *id);

/* table_responders.c */
/* To a state that may follow its own. */
void meta_responder_move(struct responder *p, enum responder_state to);
/* The device destroys it; whoever waits gets what that leaves room for. */
void meta_responder_end(struct responder *p);
void meta_responders_serve(struct meta_responders *r);

#endif
