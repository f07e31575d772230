/* SPDX-License-Identifier: Apache-2.0 */
/* Files that workers had, until they are empty: by processes (emptier_process.h), of which a tenant
 * has one at a time. Who keeps that one has nobody else wait. Control thread. */
#ifndef DAEMON_EMPTIER_H
#define DAEMON_EMPTIER_H

#include <stdbool.h>
#include <uv.h>

#include "base/log.h"
#include "control/tenant_queue.h"
#include "control/work.h"
#include "emptier_process.h"

struct emptying;

struct emptier {
    struct emptier_process *process; /* the caller's */
    uv_loop_t *loop;
    const struct agent_tenants *tenants; /* whose names the log says when their files take long */
    uv_poll_t reports;
    uv_timer_t again, slow;
    struct emptier_owner {
        struct emptying *first, **last; /* those that wait, the oldest first */
        struct emptying *batch;         /* what its process has */
        uint32_t serial;                /* of that; 0: it has none */
        uint64_t since_ns;              /* it has that */
        bool said;                      /* that it takes long */
    } of[TENANT_QUEUE_OWNERS];
    struct base_log_limit limit, slow_limit;
    bool gone; /* the process is; or this has ended: files are closed as they are */
};

/* With the process, loop and tenants set, and all else 0. 0; or -errno and a sentence. */
int agentd_emptier_start(struct emptier *e, struct base_errbuf *err);
/* Takes what is left of a task, and empties and closes it; then calls done(user), if that is not
 * NULL, perhaps at once. */
void agentd_emptier_take(struct emptier *e, uint32_t tenant, const struct world_left *left,
                         void (*done)(void *user), void *user);
/* After its loop: done() is called for all, emptied or not, and for what comes later at once. */
void agentd_emptier_stop(struct emptier *e);

#endif
