/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane of its pool a worker gets, what part of a bound a lane has, and
 * which session goes to another lane when lanes have become uneven. Pure. */
#ifndef CONTROL_LANE_CHOICE_H
#define CONTROL_LANE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "control/config.h"

enum {
    /* Workers of one tenant stay together, so that what they send to one node can be merged, until
     * their lane has so many sessions more than another one. */
    LANE_TOGETHER = 4,
    /* Requests in a second that are no reason to leave a lane, and what it has more than another
     * one's is. */
    LANE_LITTLE = 20000,
    LANE_TIMES_MORE = 2,
    /* Looks on end at which one lane has so much more to do than another one that a session goes
     * there: what is so for a moment is no reason. */
    LANE_UNEVEN_LOOKS = 3,
    LANE_REST_MS = 1000,
    LANE_REST_DOUBLINGS = 6,
    /* A lodger that has posted nothing for so long has no reason to be where it is: it goes home,
     * and makes room for another one. */
    LANE_IDLE_MS = 10000,
    /* Connections that each lane may have, if the pool may: workers of each lane go to all nodes,
     * and a part of a bound that suffices for one lane would be given up and made anew all the
     * time. */
    LANE_CONNECTIONS_LEAST = 64,
};

/* What a lane has to do. */
struct lane_load {
    uint32_t sessions;  /* that it has, and workers that wait for one */
    uint32_t of_tenant; /* of these, those of the tenant whose worker comes */
    uint64_t rate;      /* requests in a second, of late */
};

/* The number of the lane for one more worker of that tenant; count: 1 or more. */
uint32_t agent_lane_choose(const struct lane_load *lane, uint32_t count);

/* From which lane a session goes, and where; zeroed to begin with. */
struct lane_balance {
    uint32_t from, to;
    uint32_t looks;     /* on end that it was so */
    uint64_t gap;       /* requests in a second that `from` has more, at the last one */
    uint64_t looked_ns; /* the caller's: when it looked at sessions last */
};

/* One more look at lanes of which only the rates count. Whether one has had so much more to do than
 * another, by half and by LANE_LITTLE at least, at LANE_UNEVEN_LOOKS on end. The caller sets looks
 * to 0 when a session has gone, since what is seen next is of before. */
bool agent_lanes_are_uneven(struct lane_balance *b, const struct lane_load *lane, uint32_t count);
/* Whether both lanes are more even when a session with that rate goes than when one with the rate
 * `best` does (0: none), and by a quarter of the gap at least: so no session goes to and fro, and
 * one that is alone with what it has to do stays. */
bool agent_lanes_would_be_even(const struct lane_balance *b, uint64_t rate, uint64_t best);

/* Whether one more session of a tenant may lodge in a lane where it has `own` lodgers and `left`
 * places are free: it has no more than it leaves to others, so that whoever comes finds one. */
bool agent_lane_may_lodge(uint32_t own, uint32_t left);

/* When a session that was in another lane may go to one again: LANE_REST_MS after it is back, and
 * twice as long after each further stay that was no longer than that, up to 2^LANE_REST_DOUBLINGS
 * times: for who comes home at once, since his worker falls silent again and again, lanes are not
 * more even, and each time he waits for all that he has out. */
struct lane_rest {
    uint64_t until_ns;
    uint32_t brief;   /* stays on end that were */
    uint32_t refused; /* times on end that it could not go */
};
void agent_lane_rest_begin(struct lane_rest *r, uint64_t stayed_ns, uint64_t now_ns);
/* It could not go, for what may last: LANE_REST_MS, and twice as long each time on end, likewise.
 * So a few that never can, and would make lanes even best, keep others from it a while only. */
void agent_lane_rest_refused(struct lane_rest *r, uint64_t now_ns);

/* How many connections each of so many lanes may have where the pool's bound is `all`: as large a
 * part as the others; with RC alone, where nothing goes without one, LANE_CONNECTIONS_LEAST at the
 * least, or `all` where that is less. So together they have no more than `all`, rounded up for each
 * lane, or that many times LANE_CONNECTIONS_LEAST. */
uint32_t agent_lane_connections(uint32_t all, uint32_t lanes, bool rc_alone);

/* The part that number `number` of `parts` has of a bound: together they have all of it, and more
 * only where each would have less than one. 0 is no bound. */
struct agent_limits agent_limits_part(struct agent_limits all, uint32_t parts, uint32_t number);

#endif
