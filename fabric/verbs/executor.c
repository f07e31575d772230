/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/executor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/provider.h"

static void clear_queue(struct verbs_queue *q)
{
    q->first = NULL;
    q->end = &q->first;
}

int verbs_executor_init(struct verbs_executor *p)
{
    for (int i = 0; i < VERBS_LENGTHS; i++)
        clear_queue(&p->todo[i]);
    clear_queue(&p->over);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_condattr_t of_idle;
    pthread_condattr_init(&of_idle);
    pthread_condattr_setclock(&of_idle, CLOCK_MONOTONIC); /* base_clock_ns()'s */
    pthread_cond_init(&p->idle, &of_idle);
    pthread_condattr_destroy(&of_idle);
    p->over_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return p->over_efd >= 0 ? 0 : -errno;
}

void verbs_executor_fini(struct verbs_executor *p)
{
    if (p->over_efd >= 0)
        close(p->over_efd);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
}

/* ---- which one is next */

static bool needs_object(const struct verbs_needs *n, const void *object)
{
    for (int i = 0; i < VERBS_NEEDS; i++)
        if (n->with[i] == object)
            return true;
    return n->own == object;
}

static bool needs_collide(const struct verbs_needs *a, const struct verbs_needs *b)
{
    return (a->own != NULL && needs_object(b, a->own)) ||
           (b->own != NULL && needs_object(a, b->own));
}

static struct verbs_needs needs_of(const struct verbs_executor *p, const struct fab_ctl *ctl)
{
    struct verbs_needs n = {.own = NULL};
    p->needs(ctl, &n);
    return n;
}

/* With the lock held. */
static bool collides_with(const struct verbs_executor *p, const struct verbs_needs *n,
                          const struct verbs_queue *q)
{
    for (const struct fab_ctl *ctl = q->first; ctl != NULL; ctl = ctl->next) {
        struct verbs_needs other = needs_of(p, ctl);
        if (needs_collide(n, &other))
            return true;
    }
    return false;
}

static bool may_begin(const struct verbs_executor *p, const struct verbs_needs *n,
                      const struct verbs_needs *earlier, int count)
{
    static const uint32_t most[VERBS_LENGTHS] = {[VERBS_SHORT] = VERBS_WORKERS,
                                                 [VERBS_PINS] = VERBS_PINNING,
                                                 [VERBS_RESOLVES] = VERBS_RESOLVING,
                                                 [VERBS_ASKS] = VERBS_ASKING,
                                                 [VERBS_DRAINS] = VERBS_DRAINING};
    const uint32_t away = p->busy - p->of_length[VERBS_SHORT];
    if (p->of_length[n->length] == most[n->length] ||
        (n->length != VERBS_SHORT && away + 1 == VERBS_WORKERS))
        return false;
    for (uint32_t i = 0; i < p->busy; i++)
        if (needs_collide(n, &p->running[i]))
            return false;
    for (int i = 0; i < count; i++)
        if (needs_collide(n, &earlier[i]))
            return false;
    return true;
}

static bool collides_before(const struct verbs_executor *p, const struct verbs_needs *n, int length)
{
    for (int i = 0; i < length; i++)
        if (collides_with(p, n, &p->todo[i]))
            return true;
    return false;
}

/* Takes out the first operation of a queue that may begin, or NULL when there is none for now. What
 * stands in a queue before it and is needed too is of earlier: no later operation is put there
 * (queue_op()). With the lock held. */
static struct fab_ctl *take_from(struct verbs_executor *p, int length, struct verbs_needs *needs)
{
    struct verbs_queue *q = &p->todo[length];
    struct verbs_needs seen[VERBS_LOOKAHEAD];
    struct fab_ctl **link = &q->first;
    for (int i = 0; i < VERBS_LOOKAHEAD && *link != NULL; i++) {
        struct fab_ctl *ctl = *link;
        seen[i] = needs_of(p, ctl);
        if (!may_begin(p, &seen[i], seen, i) || collides_before(p, &seen[i], length)) {
            link = &ctl->next;
            continue;
        }
        *link = ctl->next;
        if (*link == NULL)
            q->end = link;
        *needs = seen[i];
        needs->ctl = ctl;
        return ctl;
    }
    return NULL;
}

static struct fab_ctl *take_one(struct verbs_executor *p, struct verbs_needs *needs)
{
    struct fab_ctl *ctl = NULL;
    for (int i = 0; i < VERBS_LENGTHS && ctl == NULL && !p->paused; i++)
        ctl = take_from(p, i, needs);
    return ctl;
}

/* ---- the workers */

/* With the lock held. */
static void append_op(struct verbs_queue *q, struct fab_ctl *ctl)
{
    ctl->next = NULL;
    *q->end = ctl;
    q->end = &ctl->next;
}

static void signal_over(struct verbs_executor *p)
{
    uint64_t one = 1;
    if (write(p->over_efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

/* Of a queue pair that is to go: whoever has asked hears -ECANCELED. With the lock held. */
static void cancel_questions(struct verbs_executor *p, const struct fab_qp *qp)
{
    struct verbs_queue *q = &p->todo[VERBS_ASKS];
    struct fab_ctl *list = q->first, *next;
    clear_queue(q);
    for (; list != NULL; list = next) {
        next = list->next;
        const bool asks = list->kind == FAB_QUERY_QP && list->asked.x == qp;
        if (asks)
            list->status = -ECANCELED;
        append_op(asks ? &p->over : q, list);
        if (asks)
            signal_over(p);
    }
}

/* To its queue. With the lock held. */
static void queue_op(struct verbs_executor *p, struct fab_ctl *ctl)
{
    if (ctl->kind == FAB_DESTROY_QP)
        cancel_questions(p, ctl->qp.x);
    const struct verbs_needs n = needs_of(p, ctl);
    int last = VERBS_LENGTHS - 1;
    while (last > (int)n.length && !collides_with(p, &n, &p->todo[last]))
        last--;
    append_op(&p->todo[last], ctl);
}

/* With the lock held. */
static void end_running(struct verbs_executor *p, const struct verbs_needs *n)
{
    uint32_t i = 0;
    while (p->running[i].ctl != n->ctl)
        i++;
    p->running[i] = p->running[--p->busy];
    p->of_length[n->length]--;
}

/* With the lock held. */
static bool is_anything_queued(const struct verbs_executor *p)
{
    for (int i = 0; i < VERBS_LENGTHS; i++)
        if (p->todo[i].first != NULL)
            return true;
    return false;
}

static void *run_worker(void *arg)
{
    struct verbs_executor *p = arg;
    struct verbs_needs needs;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct fab_ctl *ctl = take_one(p, &needs);
        if (ctl == NULL) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        p->running[p->busy++] = needs;
        p->of_length[needs.length]++;
        if (is_anything_queued(p)) /* each wakes one more, and what waits for this one is its own to
                                      take: no thread is woken for nothing */
            pthread_cond_signal(&p->work);
        pthread_mutex_unlock(&p->lock);
        int status = p->carry_out(p->of, ctl);
        pthread_mutex_lock(&p->lock);
        end_running(p, &needs);
        ctl->status = status;
        if (status == 0)
            p->objects += (uint32_t)fab_ctl_balance(ctl->kind);
        append_op(&p->over, ctl);
        signal_over(p);
        if (p->busy == 0)
            pthread_cond_broadcast(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void end_threads(struct verbs_executor *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (; p->threads > 0; p->threads--)
        pthread_join(p->thread[p->threads - 1], NULL);
}

int verbs_executor_start(struct verbs_executor *p)
{
    for (; p->threads < VERBS_WORKERS; p->threads++) {
        int status = pthread_create(&p->thread[p->threads], NULL, run_worker, p);
        if (status == 0)
            continue;
        end_threads(p);
        return -status;
    }
    return 0;
}

/* ---- the control thread */

void verbs_executor_submit(struct verbs_executor *p, struct fab_ctl *ctl)
{
    pthread_mutex_lock(&p->lock);
    queue_op(p, ctl);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

int verbs_executor_run(struct verbs_executor *p)
{
    uint64_t count;
    int completed = 0;
    if (read(p->over_efd, &count, sizeof count) < 0) {
        /* It was not signalled. */
    }
    pthread_mutex_lock(&p->lock);
    struct fab_ctl *list = p->over.first;
    clear_queue(&p->over);
    pthread_mutex_unlock(&p->lock);
    for (struct fab_ctl *ctl = list, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->next = NULL;
        if (ctl->status == 0 && fab_ctl_balance(ctl->kind) < 0)
            free(ctl->pd.x); /* the object: the first member of all of them */
        completed++;
        ctl->done(ctl);
    }
    return completed;
}

/* With the lock held. */
static void cancel_queue(struct verbs_executor *p, struct verbs_queue *q)
{
    for (struct fab_ctl *ctl = q->first, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->status = -ECANCELED;
        append_op(&p->over, ctl);
    }
    clear_queue(q);
}

/* False: something still does. With the lock held. */
static bool await_idle(struct verbs_executor *p)
{
    const uint64_t most_ns = p->stop_ns != 0 ? p->stop_ns : FAB_CLOSE_MS * BASE_NS_PER_MS;
    const uint64_t end_ns = base_clock_ns() + most_ns;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / BASE_NS_PER_S),
                                 .tv_nsec = (long)(end_ns % BASE_NS_PER_S)};
    while (p->busy != 0)
        if (pthread_cond_timedwait(&p->idle, &p->lock, &end) == ETIMEDOUT)
            return p->busy == 0;
    return true;
}

int verbs_executor_stop(struct verbs_executor *p)
{
    pthread_mutex_lock(&p->lock);
    p->paused = true;
    if (!await_idle(p)) {
        pthread_mutex_unlock(&p->lock);
        return -ETIMEDOUT;
    }
    if (p->objects != 0) {
        p->paused = false;
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
        return -EBUSY;
    }
    for (int i = 0; i < VERBS_LENGTHS; i++)
        cancel_queue(p, &p->todo[i]);
    pthread_mutex_unlock(&p->lock);
    end_threads(p);
    (void)verbs_executor_run(p);
    return 0;
}
