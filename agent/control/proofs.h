/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the fabric leads to other nodes, proved now and then. Control thread. */
#ifndef CONTROL_PROOFS_H
#define CONTROL_PROOFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "control/config.h"
#include "control/reach.h"
#include "control/unreached.h"

struct agent;
struct base_text;
struct lane_event;
struct pool;

struct proofs {
    struct agent_reach reach;
    struct agent_unreached unreached;
    struct base_prng random;
    bool begun, under_way; /* under_way: a proof of one target is */
    int place;             /* of that target */
    uint8_t gid[16];       /* of that target */
    uint32_t tag;
    uint64_t due_ns;                     /* the next one */
    uint64_t tell_ns[AGENT_METASERVERS]; /* when each metaserver is told (again) */
    uint32_t telling;                    /* bit i: metaserver i is being told */
};

/* Now and then: proves the next way, tells metaservers. */
void agent_proofs_tick(struct agent *a);
uint64_t agent_proofs_due_ns(const struct agent *a);
/* LANE_EVENT_PROVED. */
void agent_proofs_event(struct pool *p, const struct lane_event *e);
/* That metaserver may have forgotten what it was told. */
void agent_proofs_forgotten(struct agent *a, uint32_t metaserver);
/* A member of the status's object; and metrics. */
void agent_proofs_status(const struct agent *a, struct base_text *t);
void agent_proofs_metrics(const struct agent *a, struct base_text *t);

#endif
