/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of hand-overs of its processor (request/handover.h). Private to agent/lane,
 * and the lane thread's. */
#ifndef LANE_HANDOVER_STATE_H
#define LANE_HANDOVER_STATE_H

#include <stdint.h>

struct handover {
    uint32_t cpu;      /* where the lane's thread runs, + 1; 0: nobody has said */
    uint32_t out;      /* requests of all sessions in the lane: the sum of session.inflight */
    uint32_t wants;    /* whose worker was answered there since, + 1; 0: nobody's */
    uint32_t given;    /* to whom it was handed last, + 1; 0: that is judged already */
    uint64_t given_ns; /* when */
    uint64_t rest_ns;  /* before which nobody gets it */
};

/* Of a session. */
struct handover_account {
    uint32_t shown_cpu; /* the lane's, as its worker was told last */
    uint32_t rights;    /* hand-overs on end that harmed nobody */
    uint32_t harms;     /* those that did, lately */
    uint64_t rest_ns;   /* before which it gets none */
};

#endif
