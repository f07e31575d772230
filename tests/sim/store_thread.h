/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a simulated metaserver's store (metaserver/store/worker.c): jobs are carried out
 * one after another, each at some moment of the time that its disk takes, while the process goes
 * on. A crash finds one done, not done, or in the middle. One thread. */
#ifndef SIM_STORE_THREAD_H
#define SIM_STORE_THREAD_H

#include "events.h"
#include "inbox.h"
#include "metaserver/store_job.h"

struct play_store_thread {
    struct meta_store *store;
    struct play_inbox *inbox;
    struct meta_store_jobs waiting; /* the first is under way */
    struct play_event carry_out, end;
    struct play_post done;
    void (*was_done)(void *user); /* after the done() of each */
    void *user;
};

/* The store is borrowed. */
void play_store_thread_init(struct play_store_thread *t, struct meta_store *store,
                            struct play_inbox *inbox, void (*was_done)(void *user), void *user);
/* As struct meta_world_ops has it. */
void play_store_thread_submit(struct play_store_thread *t, struct meta_store_job *job);
/* Of a process that is killed: it has come to that moment in what was under way. */
void play_store_thread_crash(struct play_store_thread *t);

#endif
