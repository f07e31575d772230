/* SPDX-License-Identifier: Apache-2.0 */
/* What takes long and asks nobody, done beside the control thread: memory that is made, zeroed and
 * given back, files that are written. */
#ifndef DAEMON_TASKS_H
#define DAEMON_TASKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wake.h"

enum { TASK_THREADS = 4 };

struct task {
    void (*run)(void *user);  /* on a task thread */
    void (*done)(void *user); /* then, on the control thread: the task is its owner's again */
    void *user;
    struct task *next;
};

struct tasks {
    pthread_t thread[TASK_THREADS];
    uint32_t threads;
    pthread_mutex_t lock;
    pthread_cond_t more, over;
    struct wake wake;
    uint32_t out;               /* the control thread's: submitted, and not yet heard of */
    struct task *first, **last; /* under the lock, as are these: to do, in order */
    struct task *done, **done_last;
    bool stop;
};

/* Control thread, all of them. 0 or -errno. */
int tasks_start(struct tasks *s, uv_loop_t *loop, struct base_errbuf *err);
/* `t` stays until its done(). Tasks begin in this order. */
void tasks_submit(struct tasks *s, struct task *t, void (*run)(void *user),
                  void (*done)(void *user), void *user);
/* When the loop has ended: waits for what is out, and for what that submits when it is done; then
 * for the threads. Also after a start that failed, and if *s is all 0. */
void tasks_stop(struct tasks *s);

#endif
