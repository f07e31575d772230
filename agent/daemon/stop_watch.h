/* SPDX-License-Identifier: Apache-2.0 */
/* That an agent which is to end does, whatever hangs meanwhile: its device, a task, or the control
 * thread while the agent begins or serves. A thread ends the process so long after it was told to,
 * or after agentd_stop_watch_begin(). The kernel takes back what it has then.
 *
 * SIGTERM and SIGINT are blocked on all threads, and nobody ever takes them: so none is lost, at
 * whatever moment it comes, and each life of an agent in this process sees that it was told. Who
 * makes the first thread has blocked them before. */
#ifndef DAEMON_STOP_WATCH_H
#define DAEMON_STOP_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct closer;
struct fab;

/* What it does at a time. */
struct stop_step {
    const char *during;    /* a literal, as "opening the device", for a sentence */
    const struct fab *fab; /* that it may wait for meanwhile, or NULL */
    struct closer *closer; /* what it has goes before the process does; NULL: somebody else may
                            * have it in hand */
};

struct stop_watch {
    int told_fd;      /* readable from when it was told on: never read it */
    uint32_t most_ms; /* for so long it may end */
    int change;       /* private, as is all below: wakes the thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    uint64_t end_ns;      /* UINT64_MAX: it does not end */
    struct stop_step step;
};

/* Control thread, all of them, but for agentd_stop_watch_told(). 0; or -errno and a sentence. Stays
 * until the process ends. */
int agentd_stop_watch_init(struct stop_watch *w, uint32_t most_ms, struct base_errbuf *err);
/* The signal by which it was told to end, or 0. Any thread. */
int agentd_stop_watch_told(void);
/* It ends from now on, if it was told or not. */
void agentd_stop_watch_begin(struct stop_watch *w);
/* It ended in time, and begins anew, unless it was told. */
void agentd_stop_watch_end(struct stop_watch *w);
/* What it does from now on. Does not return once the process ends. */
void agentd_stop_watch_step(struct stop_watch *w, struct stop_step step);

#endif
