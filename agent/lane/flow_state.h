/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of an endpoint to which requests are out or wait: a flow. Private to
 * agent/lane, and the lane thread's. What is done with it is in resolve/; all layers ask for what
 * it says. */
#ifndef LANE_FLOW_STATE_H
#define LANE_FLOW_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "transmit/narrow.h"

struct evictor;
struct fab_ah;
struct physical_qp;
struct vqp;
struct window;

/* VQPs whose head waits, in the order of coming (wait_queue.c). */
struct vqp_list {
    TAILQ_HEAD(, vqp) vqps;
    uint32_t count;
};
TAILQ_HEAD(flow_list, flow);

static inline void vqp_list_init(struct vqp_list *list)
{
    TAILQ_INIT(&list->vqps);
    list->count = 0;
}

/* What a sign from an endpoint says of it. */
enum sign { SIGN_NONE, SIGN_LIFE, SIGN_SILENCE };

/* What has ended for so long is in its responder's memory, however a device puts off what it has
 * acknowledged (schedule/unseen_writes.h). No document says so; a NIC takes some microseconds. */
#define SEEN_NS 100000u

enum flow_news_state { NEWS_NONE, NEWS_COMES, NEWS_BEGUN /* some have been looked at */ };

/* What an endpoint's signs say of it (liveness.c, which alone moves it). */
enum liveness {
    LIVE_UNPROVEN,   /* it has shown nothing, or nothing since it was silent */
    LIVE_PROVEN,     /* the last sign from it was one of life, and no silence is fresh */
    LIVE_DISTRUSTED, /* it fell silent: until distrust_ns signs of life do not prove it */
    /* -- the same of one that owes a sign of life: until that comes one request is out to it at a
     *    time. Of those of tenants in quarantine each that is not proven owes one. */
    SUSPECT_UNPROVEN,
    SUSPECT_PROVEN,
    SUSPECT_DISTRUSTED,
    LIVENESSES
};

/* The way to an endpoint (path.c, which alone moves it). */
enum path_state {
    PATH_NONE,
    PATH_ASKED,  /* the control side makes one */
    PATH_STALE,  /* the same, since before this node's address was another: it will be of no use */
    PATH_THERE,  /* an address handle or a connection, which may be breaking */
    PATH_DRAINS, /* rc: the connection goes when nothing is out on it (`drains`) */
    PATH_STATES
};

/* An endpoint that is used now. */
struct flow {
    uint8_t used;
    uint8_t liveness;   /* enum liveness */
    uint8_t path;       /* enum path_state */
    uint8_t doubted;    /* it did not answer: dead, unless its record tells of another life */
    uint8_t pathless;   /* dead because no path could be made: not for a VQP that has not waited for
                           one */
    uint8_t news;       /* enum flow_news_state: the VQPs in its list are to be looked at */
    uint8_t news_again; /* and once more, since something happened after that had begun */
    uint8_t quarantined; /* its tenant's alone, beside the endpoint's own (quarantine.c) */
    uint8_t rc;          /* its path is a connection, and not an address handle */
    uint8_t second;      /* hybrid: the connection beside its twin's DC (hybrid.h) */
    uint8_t narrow;      /* DC: its endpoint takes shorter packets than the pool's are */
    uint8_t apart;       /* it is narrow or quarantined, and has another initiator than most */
    uint32_t news_left;  /* so many of them, when that has begun */
    uint32_t peer_slot, peer_gen;
    uint32_t tenant_slot; /* whose first request took it */
    uint32_t holds;       /* VQPs that wait with it, and flows in quarantine */
    uint32_t outstanding; /* posted */
    uint16_t dci;         /* index into lane->dci */
    uint8_t wrote;        /* BEGUN_WROTE: WRITEs were posted since wrote_ns */
    uint64_t since_ns;    /* when it last gave a sign of life, or began to owe one */
    uint64_t heard_ns;    /* when it last gave a sign of life; 0: it has not, or was silent since */
    uint64_t distrust_ns;
    uint64_t used_ns;  /* when something was last posted to it */
    uint64_t wrote_ns; /* DC: when WRITEs to it had ended last, or later */
    uint64_t moved_ns; /* when it took another DCI soon after a WRITE; rc: heard_ns when it lost its
                          link */
    uint64_t apart_until_ns;  /* nothing that goes to it is merged before (merge.h) */
    uint64_t doubted_ns;      /* since when */
    uint64_t dead_ns;         /* and for how long it is dead then */
    uint64_t dead_until_ns;   /* it does not answer: what is posted until then fails */
    struct fab_ah *ah;        /* DC */
    struct physical_qp *link; /* rc: its connection */
    struct evictor *drains; /* rc: that goes when nothing is out on it, as this one says; or NULL */
    uint64_t linked_ns;     /* rc: since when it has that */
    uint32_t alone;         /* rc: of its next connection's, so many go one at a time */
    struct unseen_wait waits; /* rc: as a DC initiator's place has it (transmit/narrow.h) */
    uint32_t alone_hit;       /* lane_quarantine_who_is_hit(), by the error that had no name */
    uint32_t broken_by; /* rc: the tenant's place + 1 whose request broke its last one; or 0 */
    uint8_t felt;       /* and another's VQP has been parked here since */
    uint8_t outdated;  /* DC: what `ah` leads to may be where the endpoint was: it goes when nothing
                        * is out */
    uint32_t made_for; /* rc: the place + 1 of the tenant that asked for its connection; or 0 */
    struct window *window;  /* NULL: it is only now taken; its first VQP opens it */
    struct vqp_list parked; /* VQPs that wait for news of this endpoint alone */
    TAILQ_ENTRY(flow) by_news, by_parked;
    struct flow *next_free;
    struct flow
        *next_lost; /* rc: its connection broke, which it is to be told (lane->lost_links) */
    struct flow *next_quarantined; /* in its bucket */
    TAILQ_ENTRY(flow) by_tenant;   /* in quarantine: of its tenant's */
    struct flow *own;              /* in quarantine: the endpoint's own, which it holds */
    struct flow *twin; /* hybrid: the same endpoint's other one; it is held by the second */
    /* Several connections for each endpoint: of one beside the first of them that one, which it
     * holds, and who has the next; of the first of them (hybrid: the second) the list of these. */
    struct flow *lead, *siblings;
    uint32_t pin;      /* which of them it is, from 1 on */
    uint8_t barred;    /* it could not be made: the first is used instead, until */
    uint64_t asked_ns; /* when it was last asked for, or barred */
};

static inline bool flow_path_is_asked(const struct flow *f)
{
    return f->path == PATH_ASKED || f->path == PATH_STALE;
}

/* Nothing is out on it, waits with it, or is asked about it. */
static inline bool flow_is_idle(const struct flow *f)
{
    return f->holds == 0 && f->outstanding == 0 && !flow_path_is_asked(f);
}

/* The one by which an endpoint is known: of its window, and of its samples. */
static inline struct flow *flow_first(struct flow *f)
{
    struct flow *lead = f->lead != NULL ? f->lead : f;
    return lead->second ? lead->twin : lead;
}

/* Whether they are two ways to one endpoint in one life: a VQP that has something out on the one
 * waits before it goes by the other. Either may be NULL. */
static inline bool flow_is_other_way(struct flow *a, struct flow *b)
{
    return a != NULL && b != NULL && a != b && flow_first(a) == flow_first(b);
}

/* hybrid: a connection beside DC, the second or one that is beside that. */
static inline bool flow_is_beside_dc(const struct flow *f)
{
    return f->lead != NULL ? f->lead->second : f->second;
}

/* Whether a VQP that is pinned to that one of several goes on with f, while its endpoint's first is
 * that. f may be another endpoint's by now, or nobody's. */
static inline bool flow_is_sibling_of(const struct flow *f, const struct flow *first, uint32_t pin)
{
    return f->lead != NULL && f->lead == first && f->pin == pin && !f->barred;
}

static inline bool flow_is_suspect(const struct flow *f)
{
    return f->liveness >= SUSPECT_UNPROVEN;
}

static inline bool flow_is_distrusted(const struct flow *f)
{
    return f->liveness == LIVE_DISTRUSTED || f->liveness == SUSPECT_DISTRUSTED;
}

static inline bool flow_is_proven(const struct flow *f)
{
    return f->liveness == LIVE_PROVEN || f->liveness == SUSPECT_PROVEN;
}

#endif
