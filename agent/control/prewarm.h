/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool keeps ready, as its file and metaservers say. Control thread. */
#ifndef CONTROL_PREWARM_H
#define CONTROL_PREWARM_H

#include <stdbool.h>
#include <stdint.h>

#include "control/config.h"
#include "control/desired.h"
#include "fabric/fabric.h"

struct agent_pool_config;
struct base_text;
struct pool;

/* For so long what workers asked for says how much is kept ready: rdmactl(1), docs/control.md and
 * the help of a metric say it too (unit.agent.control.prewarm). */
enum { POOL_SECONDS = 60 };

struct prewarm {
    struct agent_pool_config desired; /* by metaservers; its name is empty if they say nothing */
    uint32_t sessions, arenas;        /* that are to be kept ready now */
    uint32_t dcis;                    /* of this start */
    struct fab_service service;       /* likewise */
    uint32_t connections, responders; /* likewise; rc; of them */
    uint32_t spares;                  /* that there are */
    bool sparing;                     /* one more or less is under way */
    int spare_status;                 /* of the last one */
    uint64_t spare_ns;                /* after which the next one is tried */
    uint32_t taken[POOL_SECONDS];     /* workers that came in each of the last seconds */
    uint64_t second;                  /* the last one of `taken` */
    uint32_t demand;                  /* the most of `taken` */
    struct prewarm_reasons {          /* of what is not in force, those that change by themselves */
        uint32_t sessions, spares;
        int spare_status;
        bool failed;
    } reasons;     /* as `why` was said for */
    char why[480]; /* what is not in force of what is said; empty: all is */
};

/* Before the device is opened: what is said, for the own pool when the agent ended. */
void agent_prewarm_init(struct pool *p, const struct agent_pool_config *desired);
/* The device cannot be opened with that: as the agent's own settings say. */
void agent_prewarm_own(struct pool *p);
/* Whether the device is opened with anything but those. */
bool agent_prewarm_is_desired(const struct pool *p);
void agent_prewarm_apply(struct pool *p, const struct agent_pool_config *desired);
/* RC, hybrid: how many connections this lane may have. Once the device is open. */
uint32_t agent_prewarm_connections(const struct pool *p);
/* Whether anything but the device's is said of it. */
bool agent_prewarm_has_own_service(const struct pool *p);
/* The largest MTU of its queue pairs now. */
enum ibv_mtu agent_prewarm_mtu(const struct pool *p);
/* When it is quiet: nobody has got a session for QUIET_MS by then. */
uint64_t agent_prewarm_quiet_ns(const struct pool *p);
/* Of `kept` sessions or arenas that are to be ready, how many are made now. Until it is quiet half
 * of them, which is what a worker that comes finds: the processors have what those that have come
 * do first. All, where several tenants may come: one that has taken less than another finds as many
 * as it may take. */
uint32_t agent_prewarm_now(const struct pool *p, uint32_t kept);
/* A worker got a session. */
void agent_prewarm_taken(struct pool *p);
void agent_prewarm_tick(struct pool *p);
uint64_t agent_prewarm_due_ns(const struct pool *p);
/* A spare more or less: there is (1, -1), or there is not (0) for this reason. */
void agent_prewarm_spare(struct pool *p, int change, int status);
/* Members of the status's `pool`. */
void agent_prewarm_status(const struct pool *p, struct base_text *t);

#endif
