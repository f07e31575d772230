/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/fault: the layer's own structs around those of the inner provider.
 *
 * Every object has the public struct first and the inner provider's object behind it. Queue pairs
 * and CQs of the inner provider carry ours in their `user`, so that events find their way back.
 *
 * Each queue pair, each CQ and the control thread draw from a stream of random numbers of their
 * own, seeded by the plan and by how many objects were created before: what one thread does never
 * changes what another one is given. */
#ifndef FAULT_LAYER_H
#define FAULT_LAYER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "fabric/bell.h"
#include "fabric/events.h"
#include "fabric/fault.h"
#include "fabric/provider.h"
#include "fault/gone.h"
#include "fault/slow.h"
#include "fault/target.h"

enum {
    FAULT_HELD = 64, /* and with errors_first FAULT_SENT more, which one completion may become */
    FAULT_SENT = 4096,
    FAULT_CHUNK = 32,
    FAULT_UNANSWERED = 8 /* at most, by one error */
};

struct fault_stream {
    struct base_prng prng;
    uint32_t ordinal, generation; /* of the plan that it was seeded by */
};

struct fault_fab {
    struct fab base;
    struct fab *inner;
    struct fab_bell ctl;      /* when run() has something to take */
    int ctl_epfd;             /* that, and the inner provider's */
    struct fab_events events; /* our own, beside the inner provider's */
    int events_epfd;          /* of both */
    pthread_mutex_t lock;     /* submitted, srqs; the plan against the control thread */
    struct fab_ctl *submitted, **submitted_tail;
    struct fault_slow slow[FAULT_SLOWS];
    struct fault_srq *srqs;
    struct fault_plan_state {
        struct fault_plan plan;
        uint32_t generation;
    } now; /* written by the thread of the data path, under the lock */
    bool errors_first;
    bool loses_answers; /* by the plan that it was opened with: what fails may be executed, or a
                         * part of it */
    struct fault_stream control;
    uint32_t next_ordinal;   /* control thread */
    int completed;           /* control thread: in this run() */
    uint32_t objects;        /* control thread: that there are, or are being made; no channels */
    struct fault_plan clock; /* the plan that it was opened with, for its clock alone */
    uint64_t opened_ns;      /* when it was */
    uint64_t packet_life_ns; /* of the plan that it was opened with, as its clock */
    const uint64_t *now_ns;
    bool numbers_return;      /* likewise; */
    uint64_t numbers_gone_ns; /* when the last one went that may come back: control thread */
    bool resets_are_final;    /* of the plan that it was opened with */
    uint8_t timeout;          /* likewise */
    struct fault_gone gone;
    struct {
        struct fault_dct *first; /* of all */
        uint64_t file_ns;        /* when the file was made by which they broke; 0: none */
    } targets;                   /* control thread */
    _Atomic uint64_t count;
};

/* Where what was made leads, and under which plan (its generation) it was made. */
struct fault_way {
    uint8_t gid[16];
    uint32_t made_under;
};

struct fault_pd {
    struct fab_pd base;
    struct fab_pd *inner;
};

struct fault_mr {
    struct fab_mr base;
    struct fab_mr *inner;
};

struct fault_chan {
    struct fab_chan base;
    struct fab_chan *inner;
    uint32_t kept; /* of its CQs, when the device was gone: control thread */
};

/* A request that was made to fail: its address is the wr_id that the inner provider sees. Or one
 * beside the caller's, behind those that are executed and whose answers are lost: these have that
 * wr_id too (answers.c). */
struct fault_poison {
    uint64_t wr_id; /* the caller's */
    uint32_t qpn;   /* 0: not in use */
    enum ibv_wc_status status;
    uint32_t unanswered; /* so many; 0: it is the caller's own */
    bool said;           /* and their completions were given */
    uint64_t unanswered_id[FAULT_UNANSWERED];
};

/* What is handed on at a time, and whose each is. */
struct fault_list {
    struct fab_wr copy[FAULT_CHUNK + 1];
    struct fab_wr *caller[FAULT_CHUNK + 1];
    int count;
    struct fault_poison *silence; /* not NULL: the last one's answer is lost */
    uint32_t silent_more;         /* of those behind it so many's may be lost too */
    struct ibv_sge torn;          /* the part of one piece that is carried out */
};

struct fault_cq {
    struct fab_cq base;
    struct fab_cq *inner;
    struct fault_chan *chan; /* or NULL */
    /* All of the polling thread, which is also the posting thread of its queue pairs. */
    struct fault_stream stream;
    struct fault_poison *poison; /* a ring: at most one per queue pair is live, and has room here */
    uint32_t poison_room, poison_next;
    bool silent;    /* the device is gone, and nothing more was in it */
    bool armed;     /* its owner may sleep on the channel: nothing is withheld */
    uint64_t polls; /* so far */
    uint32_t held_head, held_tail, held_room;
    struct fault_held {
        struct ibv_wc wc;
        uint64_t ready_at; /* of polls */
    } * held;
};

/* A request that is out, with errors_first: its address, marked, is the wr_id that the inner
 * provider sees. */
struct fault_sent {
    struct fault_qp *qp;
    uint64_t wr_id; /* the caller's */
    uint32_t index;
};

struct fault_srq {
    struct fab_srq base;
    struct fab_srq *inner;
    struct fault_srq *next;
};

/* A former life of a queue pair, whose acknowledgements may still come. */
enum { FAULT_LIVES = 64 };
struct fault_life {
    uint32_t psn_first, count;
    uint64_t until_ns;
};

struct fault_qp {
    struct fab_qp base;
    struct fab_qp *inner;
    struct fault_stream stream;
    bool broken;               /* a request of it was made to fail, and it was not reset since */
    bool has_room;             /* the inner one has a slot more than the caller knows */
    bool over;                 /* it was put to RESET, and that is final: control thread */
    bool raised, stuck, stays; /* control thread: of one that is stuck (refusal.c) */
    struct fault_sent *sent;   /* errors_first: a ring of those of which nothing was said */
    uint32_t sent_head, sent_tail;
    _Atomic uint32_t mtu;        /* enum ibv_mtu that it was connected with; 0: none */
    struct fault_way way;        /* RC: and where to */
    _Atomic uint16_t pkey_index; /* as it was given */
    /* Late packets: the number of its next request's, this life's first, the latest former ones. */
    uint32_t psn, psn_first, lives;
    const struct fab_ah *target; /* DCI: to whom the last request went */
    uint32_t target_qpn;         /* DCI: to which of his targets that went */
    struct fault_life life[FAULT_LIVES];
};

struct fault_ah {
    struct fab_ah base;
    struct fab_ah *inner;
    struct fault_way way;
};

/* The place in the port's table at which the P_Key of a domain is, under that plan. */
static inline uint16_t fault_pkey_index(const struct fault_plan *plan, const struct fab_pd *pd)
{
    const struct fault_pd *p = (const struct fault_pd *)pd;
    return (uint16_t)(p->inner->service.pkey_index + plan->pkey_moved);
}

/* layer.c: where that leads, now. The control thread. */
struct fault_way fault_way_to(struct fault_fab *f, const struct ibv_ah_attr *attr);

static inline struct fault_fab *fault_of(const struct fab *fab)
{
    return (struct fault_fab *)fab;
}

#endif
