/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a lane's thread polls on or sleeps after a pass (RDMAbox, IV-B and Algorithm 3).
 *
 * Asleep it waits for events. When one has come it polls, until so many polls on end have found
 * nothing: what comes with short gaps costs no event each, and what comes with long ones costs one
 * and those polls. A poll is a pass of the lane. No clock, no I/O; one thread. */
#ifndef AGENT_POLLING_H
#define AGENT_POLLING_H

#include <stdbool.h>
#include <stdint.h>

enum polling_mode {
    POLLING_ADAPTIVE, /* as above */
    POLLING_BUSY,     /* it never sleeps */
    POLLING_EVENT,    /* it sleeps at the first poll that finds nothing */
};

struct polling {
    enum polling_mode mode;
    uint32_t max_retry; /* ADAPTIVE: polls on end that find nothing before it sleeps, beside one */
    uint32_t empty;     /* so many there were; at most max_retry + 1 are counted */
};

/* A pass was made, and did something or nothing. True: the thread is to sleep now. Once it is so,
 * it remains so until a pass does something, as the one does that an event was for. */
static inline bool polling_sleeps(struct polling *p, bool worked)
{
    if (worked) {
        p->empty = 0;
        return false;
    }
    if (p->mode == POLLING_BUSY)
        return false;
    if (p->empty <= p->max_retry)
        p->empty++;
    return p->mode == POLLING_EVENT || p->empty > p->max_retry;
}

/* Whether it hands its processor over to a worker that needs it there (lane_hands_over()). */
static inline bool polling_hands_over(const struct polling *p)
{
    return p->mode == POLLING_ADAPTIVE;
}

/* It sleeps now for that reason: where it is woken for nothing it sleeps again after one poll. */
static inline void polling_end(struct polling *p)
{
    p->empty = p->max_retry + 1;
}

#endif
