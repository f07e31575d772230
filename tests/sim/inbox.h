/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread of a simulated process is to do next, in the order in which it came: the loop of
 * a daemon. One thread. */
#ifndef SIM_INBOX_H
#define SIM_INBOX_H

#include <stdbool.h>
#include <stdint.h>

struct play_process;

/* Embedded in what it is for. Queued once at a time. */
struct play_post {
    void (*run)(void *user);
    void *user;
    bool queued;
    struct play_post *next, **link;
};

struct play_inbox {
    struct play_process *process;
    void (*turned)(void *user); /* after each; NULL: nothing */
    void *user;
    bool waits; /* its process, for a post */
    struct play_post *first, **last;
};

void play_inbox_init(struct play_inbox *inbox, struct play_process *process);
/* Nothing if it is queued. From anywhere: its process goes on. */
void play_inbox_put(struct play_inbox *inbox, struct play_post *post);
/* Nothing if it is not queued. */
void play_inbox_take_back(struct play_inbox *inbox, struct play_post *post);
/* In the process: does the first, or waits for one until then. False: it was that time. */
bool play_inbox_step(struct play_inbox *inbox, uint64_t until_ns);

#endif
