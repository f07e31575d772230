/* SPDX-License-Identifier: Apache-2.0 */
/* A bound on what one thread does and cannot stop doing, as waiting for a device: a thread beside
 * it that ends the process when it takes too long. Begun and ended on one thread. */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct base_deadline {
    pthread_t thread;
    pthread_mutex_t lock; /* over */
    pthread_cond_t change;
    bool runs, over;
    uint64_t end_ns;
    void (*late)(void *user);
    void *user;
};

/* Unless it was ended within timeout_ns, late() is called on a thread of its own, and ends the
 * process: by _exit(), since what destructors and exit handlers would do belongs to the thread that
 * is late. Without memory for a thread nobody watches. */
void base_deadline_begin(struct base_deadline *d, uint64_t timeout_ns, void (*late)(void *user),
                         void *user);
/* It was in time: late() is not called any more. Does not return once it has been. */
void base_deadline_end(struct base_deadline *d);

#endif
