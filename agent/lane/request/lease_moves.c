/* SPDX-License-Identifier: Apache-2.0 */
#include "request/lease_moves.h"

#include "base/assert.h"

enum { LEASE_STATES = LANE_LEASE_REVOKED + 1, NEVER = LEASE_STATES };

#define NONE        LANE_LEASE_NONE
#define LIVE        LANE_LEASE_LIVE
#define WITHDRAWING LANE_LEASE_WITHDRAWING
#define WAITING     LANE_LEASE_WAITING
#define REVOKED     LANE_LEASE_REVOKED

/* What peers can find is freed by no way around its withdrawal, and its time begins once. */
static const uint8_t lease_moves[LEASE_STATES][LEASE_EVENTS] = {
    /*           PUBLISHED, WITHDRAWN, LET_GO, GONE, RETURNED, ENDED, FREED */
    [NONE] = {LIVE, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER},
    [LIVE] = {NEVER, WITHDRAWING, NEVER, NEVER, NEVER, NEVER, NEVER},
    [WITHDRAWING] = {NEVER, NEVER, WAITING, NEVER, WITHDRAWING, WITHDRAWING, NONE},
    [WAITING] = {NEVER, NEVER, NEVER, REVOKED, WITHDRAWING, WITHDRAWING, NONE},
    [REVOKED] = {NEVER, NEVER, NEVER, NEVER, NEVER, WITHDRAWING, NONE},
};

void lane_lease_move(struct lane_lease *lease, enum lease_event event)
{
    const uint8_t to = lease_moves[lease->state][event];
    BASE_ASSERT(to != NEVER);
    lease->state = (enum lane_lease_state)to;
}
