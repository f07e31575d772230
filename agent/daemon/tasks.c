/* SPDX-License-Identifier: Apache-2.0 */
#include "tasks.h"

#include <signal.h>
#include <string.h>

/* What tenants want never keeps the agent's own from beginning. */
static const struct tenant_queue_bound BOUND = {
    .of_agent = TASK_THREADS, .of_tenant = TASKS_OF_TENANT, .of_tenants = TASKS_OF_TENANTS};

/* Where nothing may begin nobody is woken: while a tenant waits for its own turn each task that
 * ends would wake a thread in vain, which the control thread stands behind. */
static void wake_idle(struct tasks *s)
{
    if (agent_tenant_queue_may_begin(&s->by_tenant, &BOUND))
        (void)pthread_cond_signal(&s->more);
}

/* NULL: nothing may begin now. Who takes one wakes the thread that takes the next. */
static struct world_task *take_next(struct tasks *s)
{
    struct tenant_queue_item *item = agent_tenant_queue_begin(&s->by_tenant, &BOUND);
    if (item == NULL)
        return NULL;
    wake_idle(s);
    return TENANT_QUEUE_IN(struct world_task, turn, item);
}

/* With the lock open while it runs. */
static void run_task(struct tasks *s, struct world_task *t)
{
    const uint32_t owner = t->tenant;
    (void)pthread_mutex_unlock(&s->lock);
    t->status = s->runs[t->work](t);
    (void)pthread_mutex_lock(&s->lock);
    agent_tenant_queue_end(&s->by_tenant, owner);
    t->next = NULL;
    *s->done_last = t;
    s->done_last = &t->next;
    (void)pthread_cond_signal(&s->over);
    (void)pthread_mutex_unlock(&s->lock);
    agentd_wake_up(&s->wake);
    (void)pthread_mutex_lock(&s->lock);
}

static void *run_thread(void *argument)
{
    struct tasks *s = argument;
    (void)pthread_mutex_lock(&s->lock);
    for (struct world_task *t;;) {
        while ((t = take_next(s)) == NULL && !(s->stop && s->by_tenant.waiting == 0))
            (void)pthread_cond_wait(&s->more, &s->lock);
        if (t == NULL)
            break;
        run_task(s, t);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Each is heard of with the lock open: it may submit another one. */
static void hear_done(void *user)
{
    struct tasks *s = user;
    (void)pthread_mutex_lock(&s->lock);
    struct world_task *list = s->done;
    s->done = NULL;
    s->done_last = &s->done;
    (void)pthread_mutex_unlock(&s->lock);
    for (struct world_task *t = list, *next; t != NULL; t = next) {
        next = t->next;
        s->out--;
        if (t->left.count > 0)
            agentd_emptier_take(s->emptier, t->tenant, &t->left, t->done, t->user);
        else
            t->done(t->user);
    }
}

static void end_threads(struct tasks *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_cond_broadcast(&s->more);
    (void)pthread_mutex_unlock(&s->lock);
    for (; s->threads > 0; s->threads--)
        (void)pthread_join(s->thread[s->threads - 1], NULL);
}

/* Signals are the control thread's. */
static int make_threads(struct tasks *s)
{
    int status = 0;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (status == 0 && s->threads < TASK_THREADS) {
        status = -pthread_create(&s->thread[s->threads], NULL, run_thread, s);
        s->threads += status == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

int agentd_tasks_start(struct tasks *s, const task_run runs[WORLD_WORKS], struct emptier *emptier,
                       uv_loop_t *loop, struct base_errbuf *err)
{
    *s = (struct tasks){.runs = runs, .emptier = emptier, .done_last = &s->done};
    int status = agentd_wake_init(&s->wake, loop, hear_done, s, err);
    if (status != 0)
        return status;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->more, NULL);
    (void)pthread_cond_init(&s->over, NULL);
    status = make_threads(s);
    if (status != 0)
        return base_err(err, status, "no thread can be made: %s (raise TasksMax?)",
                        strerror(-status));
    return 0;
}

void agentd_tasks_submit(struct tasks *s, struct world_task *t)
{
    s->out++;
    (void)pthread_mutex_lock(&s->lock);
    agent_tenant_queue_join(&s->by_tenant, &t->turn, t->tenant, false);
    wake_idle(s);
    (void)pthread_mutex_unlock(&s->lock);
}

void agentd_tasks_stop(struct tasks *s)
{
    while (s->out > 0) {
        (void)pthread_mutex_lock(&s->lock);
        while (s->done == NULL)
            (void)pthread_cond_wait(&s->over, &s->lock);
        (void)pthread_mutex_unlock(&s->lock);
        hear_done(s);
    }
    end_threads(s);
    agentd_wake_fini(&s->wake);
}
