/* SPDX-License-Identifier: Apache-2.0 */
/* The threads beside the control thread on which the tasks of control/world.h are done. */
#ifndef DAEMON_TASKS_H
#define DAEMON_TASKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/tenant_queue.h"
#include "control/world.h"
#include "emptier.h"
#include "wake.h"

enum {
    TASK_THREADS = 4,
    TASKS_OF_TENANTS = 2, /* as many of tenants' run at a time */
    TASKS_OF_TENANT = 1   /* as many of one's run at a time */
};

/* Does one on a task thread: 0 or -errno. */
typedef int (*task_run)(struct world_task *t);

/* task_runs.c: how each work is done. What a worker may have still is left in task->left. */
extern const task_run TASK_RUNS[WORLD_WORKS];
/* And what is left emptied and closed, where no worker can keep anybody waiting: in tests. */
void agentd_task_empty_left(struct world_task *t);

struct tasks {
    const task_run *runs;
    struct emptier *emptier; /* of what tasks leave */
    pthread_t thread[TASK_THREADS];
    uint32_t threads;
    pthread_mutex_t lock;
    pthread_cond_t more, over;
    struct wake wake;
    uint32_t out; /* the control thread's: submitted, and not yet heard of */
    struct tenant_queue
        by_tenant; /* under the lock, as are these: of what is to be done, and runs */
    struct world_task *done, **done_last;
    bool stop;
};

/* Control thread, all of them. runs: of each work, and they stay, as does the emptier, which may be
 * NULL where they leave nothing. 0 or -errno. */
int agentd_tasks_start(struct tasks *s, const task_run runs[WORLD_WORKS], struct emptier *emptier,
                       uv_loop_t *loop, struct base_errbuf *err);
/* As world_run(). */
void agentd_tasks_submit(struct tasks *s, struct world_task *t);
/* When the loop and the emptier have ended: waits for what is out, and for what that submits when
 * it is done; then for the threads. Also after a start that failed, and if *s is all 0. */
void agentd_tasks_stop(struct tasks *s);

#endif
