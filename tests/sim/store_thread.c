/* SPDX-License-Identifier: Apache-2.0 */
#include "store_thread.h"

#include "disk.h"
#include "process.h"

static struct play_disk *disk_of(const struct play_store_thread *t)
{
    return t->inbox->process->host->disk;
}

/* What it takes until a job is written, and again until that is known. */
static uint64_t draw_time(const struct play_store_thread *t)
{
    return play_disk_time(disk_of(t)) / 2;
}

static void commit_first(struct play_store_thread *t)
{
    struct meta_store_job *job = STAILQ_FIRST(&t->waiting);
    struct play_process *before = play_process_enter(t->inbox->process);
    (void)meta_store_commit(t->store, &job->txn, &job->outcome);
    play_process_leave(before);
}

static void carry_out(void *user)
{
    struct play_store_thread *t = user;
    commit_first(t);
    play_event_after(&t->end, draw_time(t));
}

static void end_job(void *user)
{
    struct play_store_thread *t = user;
    play_inbox_put(t->inbox, &t->done);
}

static void hear_done(void *user)
{
    struct play_store_thread *t = user;
    struct meta_store_job *job = STAILQ_FIRST(&t->waiting);
    STAILQ_REMOVE_HEAD(&t->waiting, link);
    if (!STAILQ_EMPTY(&t->waiting))
        play_event_after(&t->carry_out, draw_time(t));
    job->done(job);
    t->was_done(t->user);
}

void play_store_thread_submit(struct play_store_thread *t, struct meta_store_job *job)
{
    if (STAILQ_EMPTY(&t->waiting))
        play_event_after(&t->carry_out, draw_time(t));
    STAILQ_INSERT_TAIL(&t->waiting, job, link);
}

void play_store_thread_crash(struct play_store_thread *t)
{
    struct play_disk *d = disk_of(t);
    if (!play_event_is_set(&t->carry_out))
        return;
    play_disk_fail_after(d, play_disk_moment(d));
    commit_first(t);
    play_disk_recover(d);
}

void play_store_thread_init(struct play_store_thread *t, struct meta_store *store,
                            struct play_inbox *inbox, void (*was_done)(void *user), void *user)
{
    struct play_owner *of = &inbox->process->owner;
    *t = (struct play_store_thread){.store = store,
                                    .inbox = inbox,
                                    .carry_out = {.happen = carry_out, .user = t, .owner = of},
                                    .end = {.happen = end_job, .user = t, .owner = of},
                                    .done = {.run = hear_done, .user = t},
                                    .was_done = was_done,
                                    .user = user};
    STAILQ_INIT(&t->waiting);
}
