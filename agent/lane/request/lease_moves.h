/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a lease, and what moves it from one to another: nothing else assigns them. Lane
 * thread. */
#ifndef LANE_LEASE_MOVES_H
#define LANE_LEASE_MOVES_H

#include "agent/lane.h"

enum lease_event {
    LEASE_PUBLISHED, /* its record is in the table */
    LEASE_WITHDRAWN, /* its record is gone from there: nobody who looks from now on finds it */
    LEASE_LET_GO,    /* its time is over, or is waited for no more: its registration's end, or a
                      * fence, has begun */
    LEASE_GONE,      /* that is over: no peer reaches it, and its worker does not know yet */
    LEASE_RETURNED,  /* its worker gives it back: without a registration of its own it waits for a
                      * time and a fence of its worker's, whatever the operator has begun */
    LEASE_ENDED,     /* its session has, and all that was begun for that */
    LEASE_FREED,     /* its place is free */
    LEASE_EVENTS
};

/* Asserts that this may happen in the state that it is in. */
void lane_lease_move(struct lane_lease *lease, enum lease_event event);

#endif
