/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_late.h"

#include <errno.h>

void meta_store_late_init(struct meta_store_late *l, struct meta_store *store, uint64_t seed)
{
    *l = (struct meta_store_late){.store = store, .most_steps = 8};
    base_prng_seed(&l->random, seed);
    STAILQ_INIT(&l->waiting);
    STAILQ_INIT(&l->over);
}

static void delay_job(struct meta_store_late *l, struct meta_store_jobs *list,
                      struct meta_store_job *job)
{
    job->due = l->step + 1 + base_prng_below(&l->random, l->most_steps);
    STAILQ_INSERT_TAIL(list, job, link);
}

void meta_store_late_submit(struct meta_store_late *l, struct meta_store_job *job)
{
    l->under_way++;
    delay_job(l, &l->waiting, job);
}

/* One that is due, whichever came first; NULL: none is. */
static struct meta_store_job *take_due(struct meta_store_late *l, struct meta_store_jobs *list)
{
    struct meta_store_job *job, *chosen = NULL;
    uint64_t count = 0;
    STAILQ_FOREACH(job, list, link) {
        if (job->due <= l->step && base_prng_below(&l->random, ++count) == 0)
            chosen = job;
    }
    if (chosen != NULL)
        STAILQ_REMOVE(list, chosen, meta_store_job, link);
    return chosen;
}

static void carry_out(struct meta_store_late *l, struct meta_store_job *job)
{
    if (base_prng_below(&l->random, 100) >= l->fail_percent) {
        meta_store_commit(l->store, &job->txn, &job->outcome);
        return;
    }
    job->outcome = (struct meta_store_outcome){.status = -EIO};
    base_err(&job->outcome.err, -EIO, "the seed says that the store fails");
}

void meta_store_late_step(struct meta_store_late *l)
{
    struct meta_store_job *job;
    l->step++;
    if (l->stands_still)
        return;
    while ((job = take_due(l, &l->waiting)) != NULL) {
        carry_out(l, job);
        delay_job(l, &l->over, job);
    }
    while ((job = take_due(l, &l->over)) != NULL) {
        l->under_way--;
        job->done(job);
    }
}
