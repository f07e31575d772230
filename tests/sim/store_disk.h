/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated metaserver's store keeps on its host's disk: the real one in memory
 * (metaserver/store/memory.c), which outlives the process. Jobs are carried out one after another,
 * each at some moment of the time that it takes: a crash finds it done, or not done. One thread. */
#ifndef SIM_STORE_DISK_H
#define SIM_STORE_DISK_H

#include "base/random.h"
#include "events.h"
#include "inbox.h"
#include "metaserver/store.h"

struct play_store_disk {
    struct meta_store *kept; /* for who only reads, too */
    int fail;                /* errno of each write from now on; 0: none */
    uint64_t sync_most_ns;   /* what a write takes, at most */
    struct base_prng random;
    struct play_store_user *user; /* the process that has it open */
};

/* A process that has it open. */
struct play_store_user {
    struct play_store_disk *disk;
    struct play_inbox *inbox;
    struct meta_store_jobs waiting; /* the first is under way */
    struct play_event carry_out, end;
    struct play_post done;
    void (*was_done)(void *user); /* after the done() of each */
    void *user;
};

void play_store_disk_init(struct play_store_disk *disk, uint64_t seed, uint64_t number);
void play_store_disk_fini(struct play_store_disk *disk);
void play_store_open(struct play_store_user *u, struct play_store_disk *disk,
                     struct play_inbox *inbox, void (*was_done)(void *user), void *user);
/* As struct meta_world_ops has it. */
void play_store_submit(struct play_store_user *u, struct meta_store_job *job);

#endif
