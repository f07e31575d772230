/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests, which go piece by piece. The thread that owns the queue pair and its CQ. */
#ifndef SOFT_PIECES_H
#define SOFT_PIECES_H

#include "soft/soft.h"

/* Requests of up to SOFT_WHOLE bytes are short, and are moved at once. Of longer ones, all queue
 * pairs of a completion queue together move SOFT_TURN bytes from poll to poll, or as many as short
 * ones did. When no short one came for SOFT_QUIET_NS, they move a byte for each SOFT_ALONE_NS since
 * then, which takes about a twentieth of that time, and SOFT_ALONE_MOST at most. */
enum {
    SOFT_WHOLE = 4096,
    SOFT_TURN = 1024,
    SOFT_QUIET_NS = 1000000,
    SOFT_ALONE_NS = 2,
    SOFT_ALONE_MOST = 1 << 21
};

/* How much the long requests of a CQ's queue pairs may move. */
struct soft_pace {
    uint32_t polls;      /* so far, while somebody waited */
    uint32_t whole;      /* bytes of requests that were moved at once, running */
    uint32_t whole_seen; /* the same when it was last looked at */
    uint64_t whole_ns;   /* when it had last grown */
    uint32_t allowed_at; /* before which poll long requests were given their allowance */
    uint32_t allowance;  /* so many bytes of it are left until that poll is over */
    uint32_t in_turns;   /* bytes of long requests that were moved, running */
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
