/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of batches. Private to agent/lane, and the lane thread's. What is done with
 * them is in request/batch.h and request/batch_run.h.
 *
 * All memory of them is one piece of the agent's, taken when the lane is made, in slabs of one
 * size. A batch has some for its descriptors and some for its pieces, which are the requests that
 * it has in the lane at a time. */
#ifndef LANE_BATCH_STATE_H
#define LANE_BATCH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/op.h"

struct wr;

enum {
    BATCH_SLAB_BYTES = 16384,
    BATCH_PIECES = 64, /* of one batch, at a time */
};
#define BATCH_NO_SLAB UINT32_MAX

/* By a tenant that waits. */
struct batch_claim {
    uint32_t tenant; /* its place + 1; 0: nobody's */
    uint64_t until_ns;
};

enum { BATCH_TRIPS = 16 };

/* How long a piece takes to a peer and back from when the port has carried it: the least that
 * was seen of late, in this span of time and in the one before it. Peers whose places in the table
 * of peers differ by a multiple of BATCH_TRIPS have one together. */
struct batch_trip {
    uint64_t least_ns[2]; /* 0: none has come back */
    uint64_t until_ns;    /* of the present span */
    uint64_t out;         /* of that peer's pieces, as batch_pace has it of all */
    /* Of each of these bytes in batch_pace.load: the more the nearer the peer is. 0: none has come
     * back, and it counts as one of the usual time. */
    uint32_t weight;
};

/* One piece at a time is. */
struct batch_timed {
    const struct wr *wr; /* NULL: none */
    uint64_t carried_ns; /* when the port is done with it */
};

/* What others stand behind (schedule/batch_pace.h). */
struct batch_pace {
    uint64_t out;                   /* bytes of pieces that are posted, and of each what it costs */
    uint64_t posted, others;        /* pieces so far; requests of others when it was looked last */
    uint64_t beside_until_ns;       /* until when pieces are short for their sake */
    uint64_t *served;               /* by tenant's place: `posted` at its last piece */
    struct batch_claim next, after; /* whose the next piece is, and the one after it */
    uint8_t opens;                  /* pieces may go now, at the end of a pass */
    uint64_t load;       /* of `out`, each peer's bytes times their weight (batch_trip) */
    uint64_t port_ns;    /* when the port is done with all that is posted */
    uint64_t nearest_ns; /* the least of all trips of late; 0: none is known */
    struct batch_timed timed;
    struct batch_trip trip[BATCH_TRIPS];
};

struct batch_pool {
    uint8_t *memory;
    uint32_t *next; /* of each slab: the next one of its batch, or of those that are free */
    uint32_t slabs, free, first_free;
    uint32_t *used; /* by tenant's place: slabs */
    uint64_t pass;  /* the last one that pieces were made in */
    uint32_t made;  /* of how many descriptors, in that one */
    struct batch_pace pace;
};

/* What a worker has listed, as it was checked when it came. */
struct batch_desc {
    uint64_t remote_addr, offset;
    uint32_t length, vkey;
    uint8_t op, arena; /* op: enum schema_op */
    uint8_t zero[6];
};

/* A list of them. */
struct batch_slabs {
    uint32_t first, last, count;
};

enum batch_state { BATCH_FREE, BATCH_FILLING, BATCH_READY, BATCH_POSTED, BATCH_STATES };

/* Where the next descriptor is. */
struct batch_at {
    uint32_t index, slab;
    uint32_t begun; /* posted: so many bytes of it pieces have had */
};

struct batch {
    uint8_t state; /* enum batch_state, moved by batch_move() alone */
    uint8_t cancelled;
    uint8_t over;           /* its marker is, and pieces are out yet */
    uint8_t status, reason; /* how the first that failed did; else 0 */
    uint8_t bad;            /* filling: enum schema_reason of the first that is none */
    uint32_t gen;
    uint32_t count; /* descriptors */
    /* Those of its pieces, and behind them those of its descriptors, of which this is the first. */
    struct batch_slabs slabs;
    uint32_t first;
    uint32_t pieces, out;  /* how many there are; of these, that are queued or posted */
    struct batch_at at;    /* filling: the end; posted: what no piece has had yet */
    uint32_t done, failed; /* descriptors; the first that failed, or that is none */
    struct wr *free_piece;
    struct wr *marker; /* posted: what stands for it in its VQP's queue */
};

static inline bool batch_is_whole(const struct batch *b)
{
    return b->at.index == b->count;
}

#endif
