/* SPDX-License-Identifier: Apache-2.0 */
/* Two accomplices, of whom one READs what the other's node has taken away, with a record that says
 * it is there: each such READ breaks a queue pair, and no wrong key is charged. Beside them an
 * honest worker of another tenant, whose requests go to the same node. */
#ifndef UNIT_AGENT_LANE_WORLD_ACCOMPLICES_H
#define UNIT_AGENT_LANE_WORLD_ACCOMPLICES_H

#include "world.h"

enum {
    GUILTY = 7, /* tenants */
    HONEST = 8,
    ROUNDS = 60,
    VQPS = 8,    /* of the honest one */
    WRITES = 24, /* of each round */
    LATE = 6,    /* polls, so long does a request take */
    BREAKS = 4,  /* that strangers may feel */
    SESSIONS = 5,
    LONG = 200000 /* passes */
};
#define EVENT_NS 110000000ull /* so long apart, breaks are not of one event */

struct accomplices {
    struct world *w;
    struct world_worker gone, stays, honest, guilty[SESSIONS];
    uint32_t gone_key, key, guilty_key;
    bool bound[VQPS];                     /* the honest one's */
    uint32_t posted, failed, late_failed; /* of the honest one; late: after so many breaks */
    uint32_t breaks;                      /* by the guilty, as he hears of them */
    bool out[VQPS];                       /* the honest one's, of accomplices_break_beside() */
    uint32_t passes;
};

/* Opens the world, with what world_fault says, late completions, and that time-out of queue pairs.
 */
void accomplices_open(struct accomplices *s, struct world *w, uint8_t ack_timeout);
void accomplices_close(struct accomplices *s);
/* All find their records, the peer is known to answer, and what the guilty know is taken away. */
void accomplices_warm(struct accomplices *s);
/* Of node 0's sessions. */
void accomplices_doorbells(struct world *w);
/* One request's status. */
enum ibv_wc_status accomplices_one(struct world *w, struct world_worker *k, uint8_t op,
                                   uint32_t key);
/* The honest one's VQPs are connected, those again that had an error. */
void accomplices_bind(struct accomplices *s);
/* His requests, one in each pass, so that some are on the wire whenever something else is; and
 * their completions. */
void accomplices_post(struct accomplices *s, uint8_t op);
void accomplices_take(struct accomplices *s);
/* One request of the guilty, beside the honest one's, which are WRITEs if nothing else is said. */
void accomplices_round_beside(struct accomplices *s, struct world_worker *k, uint8_t op,
                              uint8_t honest_op);
void accomplices_round(struct accomplices *s, struct world_worker *k, uint8_t op);
/* One break by k, while WRITEs of the honest one are out all the time. */
void accomplices_break_beside(struct accomplices *s, struct world_worker *k, uint32_t gone_key);

#endif
