/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: workers', and the lane's own READs of tables. Private to agent/lane, and the lane
 * thread's. */
#ifndef LANE_WR_H
#define LANE_WR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "schema/session.h"
#include "transmit/operation.h"

struct flow;
struct session;

/* What a worker's request needs beside being posted. All bits of wr.special have a meaning: for one
 * more it has to be of 32 bits, for which there is room behind `rides`. */
enum special {
    SPECIAL_EMPTY = 1 << 0, /* no byte is to be moved: it never reaches a queue pair */
    SPECIAL_COPY = 1 << 1, /* inline, and more than the device takes: copied to the lane's memory */
    SPECIAL_FENCE = SCHEMA_OP_FENCE,
    SPECIAL_RELAXED = SCHEMA_OP_RELAXED,
    SPECIAL_SUSPECT = 1 << 4,          /* out at an error of which nobody knows whose it was */
    SPECIAL_LISTED = SCHEMA_OP_LISTED, /* (request/lists.h) */
    SPECIAL_APART = 1 << 6,   /* what it was merged into has failed: it is merged no more */
    SPECIAL_ALIGNED = 1 << 7, /* to an address that the device can do it at */
    SPECIAL_SEND = 1 << 8,    /* a message (schedule/sends.h) */
    SPECIAL_PIECE = 1 << 9,   /* of a batch (request/batch_run.h) */
    SPECIAL_BATCH = 1 << 10,  /* stands for a whole one behind its pieces, and is never posted */
    SPECIAL_CUT = 1 << 11,    /* posted in pieces, of which it is the next (cut.h) */
    SPECIAL_DOUBT = 1 << 14,  /* that was a refusal: its region's record is not to be believed */
    SPECIAL_LARGE = 1 << 12,  /* with SEND: its payload is READ (schedule/large_sends.h) */
    SPECIAL_PULL = 1 << 13,   /* with CUT: that READ, a RECV else (receive/large.h) */
    SPECIAL_BEHIND = 1 << 15, /* no message, and went behind some that are not acknowledged */
};
static_assert(SPECIAL_FENCE == 1 << 2 && SPECIAL_RELAXED == 1 << 3 && SPECIAL_LISTED == 1 << 5,
              "each a bit of its own");

enum wr_back {
    BACK_ENDED,    /* it was out, and `ended` says how it ended */
    BACK_AGAIN,    /* it was out, nothing of it was carried out, and it goes again */
    BACK_UNPOSTED, /* it was not out, and ends so; `refused` says why */
    BACK_HELD      /* it was out, and ended as `ended` says, which waits for messages before it */
};
/* WR_SIGNAL_READ: of no use but that its completion stands for those before it. */
enum wr_kind {
    WR_WORKER,
    WR_LOOKUP_READ,
    WR_MR_READ,
    WR_PROOF_READ,
    WR_SIGNAL_READ,
    WR_RELAY_READ
};

/* A request that the lane has taken: a worker's, or its own READ of a table. Copied once from the
 * ring, it holds all it takes to post it again. */
struct wr {
    struct fab_wr fab;
    struct ibv_sge sge[SCHEMA_MAX_SGE];
    struct wr *next;         /* in a VQP's queue, or a free list */
    struct session *session; /* WR_WORKER */
    struct flow *flow;       /* whom it goes to, while posted; NULL: a metaserver */
    const struct operation *op;
    uint64_t wr_id;       /* the worker's */
    uint64_t remote_addr; /* as the region's owner names it */
    uint64_t length;
    uint32_t vkey;
    uint16_t vqp, vqp_gen;
    uint16_t stale;   /* bit i: posted with the key of arena i's former registration, which goes */
    uint16_t special; /* of enum special */
    uint8_t kind, signaled; /* kind: enum wr_kind */
    uint8_t refused; /* enum schema_reason: completes with an error when all before it are over */
    uint8_t ended;   /* enum ibv_wc_status, of an error: its queue pair's others are awaited, or it
                      * has returned so */
    uint8_t back;    /* enum wr_back, in the list of what has returned */
    /* Where it is posted (merge.h), and else 0: `ahead` of the requests that it shares its work
     * request with are before it; of the first of them, `behind` are behind it, and `pieces` of
     * fab's are its own. */
    uint8_t ahead, behind, pieces;
    uint8_t rides;  /* when it was posted last it was part of another's work request */
    uint32_t index; /* own READs: of the lookup, the cached region or the relayed READ, or the
                     * place of a WR_SIGNAL_READ; SPECIAL_COPY: its place; PULL: of the message */
    _Alignas(8) uint8_t inline_data[SCHEMA_MAX_INLINE]; /* CUT: struct cut; LARGE: large_send */
};

static_assert(offsetof(struct wr, fab) == 0, "what a queue pair has chained is a request");

/* Of its own SGEs, in `sge`. */
static inline int wr_pieces(const struct wr *w)
{
    return w->behind > 0 ? w->pieces : w->fab.num_sge;
}

/* It is part of none, and nothing of it. */
static inline void wr_part(struct wr *w)
{
    w->ahead = w->behind = w->pieces = w->rides = 0;
}

/* It is one of several in one work request. */
static inline bool wr_is_merged(const struct wr *w)
{
    return (w->ahead | w->behind) != 0;
}

/* The lines of one that is the next, and was filled long ago: they come meanwhile. */
static inline void wr_prefetch(const struct wr *w)
{
    for (size_t i = 0; i < offsetof(struct wr, inline_data); i += SCHEMA_LINE)
        __builtin_prefetch((const char *)w + i, 1);
}

struct wr_queue {
    struct wr *head, *tail;
    uint32_t count;
};

/* Requests that queue pairs have given back, the first one first (request/returns.h). */
struct returned {
    struct wr *first, **last;
};

static inline void queue_push(struct wr_queue *q, struct wr *w)
{
    w->next = NULL;
    q->count++;
    if (q->head == NULL)
        q->head = w;
    else
        q->tail->next = w;
    q->tail = w;
}

static inline void queue_push_front(struct wr_queue *q, struct wr *w)
{
    w->next = q->head;
    q->count++;
    q->head = w;
    if (q->tail == NULL || w->next == NULL)
        q->tail = w;
}

/* before: one of q's. */
static inline void queue_insert_behind(struct wr_queue *q, struct wr *before, struct wr *w)
{
    w->next = before->next;
    before->next = w;
    q->count++;
    if (q->tail == before)
        q->tail = w;
}

/* All of `from` behind those, and none is left there. */
static inline void queue_append(struct wr_queue *q, struct wr_queue *from)
{
    if (from->head == NULL)
        return;
    if (q->head == NULL)
        q->head = from->head;
    else
        q->tail->next = from->head;
    q->tail = from->tail;
    q->count += from->count;
    *from = (struct wr_queue){.head = NULL};
}

static inline struct wr *queue_pop(struct wr_queue *q)
{
    struct wr *w = q->head;
    q->head = w->next;
    q->count--;
    if (q->head == NULL)
        q->tail = NULL;
    return w;
}

#endif
