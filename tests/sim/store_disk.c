/* SPDX-License-Identifier: Apache-2.0 */
#include "store_disk.h"

#include "base/assert.h"
#include "process.h"
#include "random.h"

static uint64_t draw_time(struct play_store_disk *disk)
{
    return base_prng_below(&disk->random, disk->sync_most_ns / 2 + 1);
}

/* What is kept is no process's. */
static void carry_out(void *user)
{
    struct play_store_user *u = user;
    struct meta_store_job *job = STAILQ_FIRST(&u->waiting);
    (void)meta_store_commit(u->disk->kept, &job->txn, &job->outcome);
    play_event_after(&u->end, draw_time(u->disk));
}

static void end_job(void *user)
{
    struct play_store_user *u = user;
    play_inbox_put(u->inbox, &u->done);
}

static void hear_done(void *user)
{
    struct play_store_user *u = user;
    struct meta_store_job *job = STAILQ_FIRST(&u->waiting);
    STAILQ_REMOVE_HEAD(&u->waiting, link);
    if (!STAILQ_EMPTY(&u->waiting))
        play_event_after(&u->carry_out, draw_time(u->disk));
    job->done(job);
    u->was_done(u->user);
}

void play_store_submit(struct play_store_user *u, struct meta_store_job *job)
{
    if (STAILQ_EMPTY(&u->waiting))
        play_event_after(&u->carry_out, draw_time(u->disk));
    STAILQ_INSERT_TAIL(&u->waiting, job, link);
}

void play_store_open(struct play_store_user *u, struct play_store_disk *disk,
                     struct play_inbox *inbox, void (*was_done)(void *user), void *user)
{
    struct play_owner *of = &inbox->process->owner;
    *u = (struct play_store_user){.disk = disk,
                                  .inbox = inbox,
                                  .carry_out = {.happen = carry_out, .user = u, .owner = of},
                                  .end = {.happen = end_job, .user = u, .owner = of},
                                  .done = {.run = hear_done, .user = u},
                                  .was_done = was_done,
                                  .user = user};
    STAILQ_INIT(&u->waiting);
}

void play_store_disk_init(struct play_store_disk *disk, uint64_t seed, uint64_t number)
{
    *disk = (struct play_store_disk){.sync_most_ns = 4000000,
                                     .random = play_random_of(seed, "store", number)};
    disk->kept = meta_store_memory(&disk->fail);
    BASE_ASSERT(disk->kept != NULL);
}

void play_store_disk_fini(struct play_store_disk *disk)
{
    meta_store_close(disk->kept);
    disk->kept = NULL;
}
