/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests, which go piece by piece. The thread that owns the queue pair and its CQ. */
#ifndef SOFT_PIECES_H
#define SOFT_PIECES_H

#include "soft/soft.h"

enum {
    SOFT_WHOLE = 4096, /* bytes of a request that is moved at once */
    SOFT_TURN = 1024,  /* that longer ones of all queue pairs move from poll to poll, or as many
                        * as the others did, */
    SOFT_QUIET_NS = 1000000,  /* or more, if there was no other one for so long: a byte for each */
    SOFT_ALONE_NS = 2,        /* of these since, about a twentieth of what it takes to move them, */
    SOFT_ALONE_MOST = 1 << 21 /* and no more than these */
};

/* How much the long requests of a CQ's queue pairs may move. */
struct soft_pace {
    uint32_t polls;      /* so far, while somebody waited */
    uint32_t whole;      /* bytes of requests that were moved at once, running; */
    uint32_t whole_seen; /* as it was when it was last looked at, */
    uint64_t whole_ns;   /* and when it had grown */
    uint32_t allowed_at; /* before which poll long ones were given their allowance: */
    uint32_t allowance;  /* so many bytes more may be moved until that is over */
};

/* How many bytes long requests may still move until the next poll is over: few, for the sake of
 * short ones, and more where there are none. */
uint32_t soft_allowance(struct soft_pace *pace);
/* Moves the next piece of a request of `length` bytes, more than SOFT_WHOLE, its regions being
 * held. remote: its whole memory at the peer, mapped. DONE with *status, or WAIT_TURN. */
enum soft_outcome soft_move_in_turns(struct soft_qp *qp, const struct fab_wr *wr, uint8_t *remote,
                                     uint32_t length, enum ibv_wc_status *status);
/* Whether its time is over, if it has one; then *status. In the middle a READ may begin anew, while
 * of a WRITE a part is done. */
bool soft_has_no_time(const struct soft_qp *qp, const struct fab_wr *wr,
                      enum ibv_wc_status *status);

#endif
