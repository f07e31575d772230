/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_order.h"

#include "base/assert.h"

void meta_store_order_init(struct meta_store_order *o,
                           void (*hear)(void *user, const struct meta_store_heard *heard),
                           void *user)
{
    *o = (struct meta_store_order){.hear = hear, .user = user};
    STAILQ_INIT(&o->over);
    STAILQ_INIT(&o->heard);
}

static void drop_first(struct meta_store_order *o)
{
    struct meta_store_heard *first = STAILQ_FIRST(&o->heard);
    STAILQ_REMOVE_HEAD(&o->heard, link);
    meta_store_heard_free(first);
}

void meta_store_order_fini(struct meta_store_order *o)
{
    BASE_ASSERT(o->with_store == 0 && STAILQ_EMPTY(&o->over));
    while (!STAILQ_EMPTY(&o->heard))
        drop_first(o);
}

static void end_job(struct meta_store_job *job)
{
    struct meta_store_order *o = job->order;
    BASE_ASSERT(o->with_store > 0);
    o->with_store--;
    job->due = UINT64_MAX; /* the next run says from when on */
    STAILQ_INSERT_TAIL(&o->over, job, link);
}

void meta_store_order_add(struct meta_store_order *o, struct meta_store_job *job)
{
    job->order = o;
    job->tell = job->done;
    job->done = end_job;
    o->with_store++;
}

void meta_store_order_put(struct meta_store_order *o, struct meta_store_heard *heard)
{
    STAILQ_INSERT_TAIL(&o->heard, heard, link);
}

static void tell_first(struct meta_store_order *o)
{
    struct meta_store_job *job = STAILQ_FIRST(&o->over);
    STAILQ_REMOVE_HEAD(&o->over, link);
    job->done = job->tell;
    job->done(job);
}

static void hear_first(struct meta_store_order *o)
{
    const struct meta_store_heard *heard = STAILQ_FIRST(&o->heard);
    o->reached = heard->at;
    o->hear(o->user, heard);
    drop_first(o);
}

/* Whether what is first to be heard is what that job has done. */
static bool is_own(const struct meta_store_heard *heard, const struct meta_store_job *job)
{
    return heard->kind == META_STORE_HEARD_NEWS && heard->at == job->outcome.at;
}

/* What was done before that is told of first: it was done to something else. */
static bool was_put_back(const struct meta_store_order *o, const struct meta_store_heard *next)
{
    return next->kind == META_STORE_HEARD_SNAPSHOT && next->at < o->reached;
}

/* Whether all that comes before that job has been heard, as far as it will be. */
static bool is_its_turn(const struct meta_store_order *o, const struct meta_store_job *job,
                        const struct meta_store_heard *next)
{
    return job->outcome.at <= o->reached || o->now >= job->due ||
           (next != NULL && (next->at > job->outcome.at || was_put_back(o, next)));
}

bool meta_store_order_run(struct meta_store_order *o, uint64_t now)
{
    o->now = now;
    for (;;) {
        struct meta_store_job *job = STAILQ_FIRST(&o->over);
        const struct meta_store_heard *next = STAILQ_FIRST(&o->heard);
        if (job != NULL && job->due == UINT64_MAX)
            job->due = now + META_STORE_ORDER_NS;
        if (job != NULL && next != NULL && is_own(next, job)) {
            o->reached = next->at;
            drop_first(o);
            tell_first(o);
            return true;
        }
        if (job != NULL && is_its_turn(o, job, next)) {
            tell_first(o);
            return true;
        }
        if (next == NULL || (job == NULL && o->with_store > 0))
            return false;
        hear_first(o);
    }
}

bool meta_store_order_is_idle(const struct meta_store_order *o)
{
    return STAILQ_EMPTY(&o->heard);
}
