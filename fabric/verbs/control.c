/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: control operations in the order of submission, and the device's events between them.
 * One thread for all: an operation that blocks long (a neighbour that does not answer) holds up
 * those behind it, but neither the control thread nor a lane. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/verbs.h"

void verbs_signal(int efd)
{
    uint64_t one = 1;
    if (write(efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

static void clear(int efd)
{
    uint64_t count;
    if (read(efd, &count, sizeof count) < 0) {
        /* It was not signalled. */
    }
}

static int carry_out(struct verbs_fab *f, struct kedge_fab_ctl *ctl)
{
    switch (ctl->kind) {
    case KEDGE_FAB_ALLOC_PD:
        return verbs_pd_alloc(f, ctl);
    case KEDGE_FAB_FREE_PD:
        return verbs_pd_free(ctl);
    case KEDGE_FAB_REG_MR:
        return verbs_mr_register(ctl);
    case KEDGE_FAB_DEREG_MR:
        return verbs_mr_deregister(ctl);
    case KEDGE_FAB_CREATE_CHAN:
        return verbs_chan_create(f, ctl);
    case KEDGE_FAB_DESTROY_CHAN:
        return verbs_chan_destroy(ctl);
    case KEDGE_FAB_CREATE_CQ:
        return verbs_cq_create(f, ctl);
    case KEDGE_FAB_DESTROY_CQ:
        return verbs_cq_destroy(f, ctl);
    case KEDGE_FAB_CREATE_SRQ:
        return verbs_srq_create(f, ctl);
    case KEDGE_FAB_DESTROY_SRQ:
        return verbs_srq_destroy(f, ctl);
    case KEDGE_FAB_CREATE_QP:
        return verbs_qp_create(f, ctl);
    case KEDGE_FAB_MODIFY_QP:
        return verbs_qp_modify(f, ctl);
    case KEDGE_FAB_DESTROY_QP:
        return verbs_qp_destroy(f, ctl);
    case KEDGE_FAB_CREATE_AH:
        return verbs_ah_create(ctl);
    case KEDGE_FAB_DESTROY_AH:
        return verbs_ah_destroy(ctl);
    case KEDGE_FAB_FENCE_MR:
        return 0; /* caps.deadlines is false: nobody can tell what has begun in the region */
    case KEDGE_FAB_CREATE_DCT:
    case KEDGE_FAB_DESTROY_DCT:
        return -EOPNOTSUPP; /* and caps.transports lacks it */
    }
    return -EINVAL;
}

/* What an operation that succeeded made (and *balance 1) or freed (-1), else NULL and 0. */
static void *object_of(const struct kedge_fab_ctl *ctl, int *balance)
{
    *balance = 0;
    switch (ctl->kind) {
    case KEDGE_FAB_MODIFY_QP:
    case KEDGE_FAB_FENCE_MR:
    case KEDGE_FAB_CREATE_DCT:
    case KEDGE_FAB_DESTROY_DCT:
        return NULL;
    default:
        break;
    }
    bool makes = ctl->kind == KEDGE_FAB_ALLOC_PD || ctl->kind == KEDGE_FAB_REG_MR ||
                 ctl->kind == KEDGE_FAB_CREATE_CHAN || ctl->kind == KEDGE_FAB_CREATE_CQ ||
                 ctl->kind == KEDGE_FAB_CREATE_SRQ || ctl->kind == KEDGE_FAB_CREATE_QP ||
                 ctl->kind == KEDGE_FAB_CREATE_AH;
    *balance = makes ? 1 : -1;
    return ctl->pd.x; /* the first member of all of them */
}

/* With the lock held. */
static void append(struct kedge_fab_ctl ***tail, struct kedge_fab_ctl *ctl)
{
    ctl->next = NULL;
    **tail = ctl;
    *tail = &ctl->next;
}

/* The next operation, or NULL when there is none for now. With the lock held. */
static struct kedge_fab_ctl *take_one(struct verbs_fab *f)
{
    struct kedge_fab_ctl *ctl = f->paused ? NULL : f->todo;
    if (ctl == NULL)
        return NULL;
    f->todo = ctl->next;
    if (f->todo == NULL)
        f->todo_tail = &f->todo;
    return ctl;
}

static void work_off(struct verbs_fab *f)
{
    struct kedge_fab_ctl *ctl;
    int balance;
    pthread_mutex_lock(&f->lock);
    while ((ctl = take_one(f)) != NULL) {
        f->busy = true;
        pthread_mutex_unlock(&f->lock);
        int status = carry_out(f, ctl);
        pthread_mutex_lock(&f->lock);
        ctl->status = status;
        (void)object_of(ctl, &balance);
        if (status == 0)
            f->objects += (uint32_t)balance;
        append(&f->over_tail, ctl);
        f->busy = false;
        pthread_cond_signal(&f->idle);
        verbs_signal(f->ctl_efd);
    }
    pthread_mutex_unlock(&f->lock);
}

static void *worker(void *arg)
{
    struct verbs_fab *f = arg;
    for (bool stop = false; !stop;) {
        struct pollfd fds[] = {{.fd = f->wake_efd, .events = POLLIN},
                               {.fd = f->deaf ? -1 : f->context->async_fd, .events = POLLIN}};
        (void)poll(fds, 2, -1);
        clear(f->wake_efd);
        if (fds[1].revents != 0)
            verbs_events_take(f);
        work_off(f);
        pthread_mutex_lock(&f->lock);
        stop = f->stop;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

int verbs_worker_start(struct verbs_fab *f)
{
    return -pthread_create(&f->worker, NULL, worker, f);
}

void verbs_submit(struct kedge_fab *fab, struct kedge_fab_ctl *ctl)
{
    struct verbs_fab *f = verbs_of(fab);
    pthread_mutex_lock(&f->lock);
    append(&f->todo_tail, ctl);
    pthread_mutex_unlock(&f->lock);
    verbs_signal(f->wake_efd);
}

int verbs_run(struct kedge_fab *fab)
{
    struct verbs_fab *f = verbs_of(fab);
    int completed = 0, balance;
    clear(f->ctl_efd);
    pthread_mutex_lock(&f->lock);
    struct kedge_fab_ctl *list = f->over;
    f->over = NULL;
    f->over_tail = &f->over;
    pthread_mutex_unlock(&f->lock);
    for (struct kedge_fab_ctl *ctl = list, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->next = NULL;
        void *object = object_of(ctl, &balance);
        if (ctl->status == 0 && balance < 0)
            free(object);
        completed++;
        ctl->done(ctl);
    }
    return completed;
}

int verbs_worker_stop(struct verbs_fab *f)
{
    pthread_mutex_lock(&f->lock);
    f->paused = true;
    while (f->busy)
        pthread_cond_wait(&f->idle, &f->lock);
    if (f->objects != 0) {
        f->paused = false;
        pthread_mutex_unlock(&f->lock);
        verbs_signal(f->wake_efd);
        return -EBUSY;
    }
    f->stop = true;
    for (struct kedge_fab_ctl *ctl = f->todo, *next; ctl != NULL; ctl = next) {
        next = ctl->next;
        ctl->status = -ECANCELED;
        append(&f->over_tail, ctl);
    }
    f->todo = NULL;
    f->todo_tail = &f->todo;
    pthread_mutex_unlock(&f->lock);
    verbs_signal(f->wake_efd);
    pthread_join(f->worker, NULL);
    (void)verbs_run(&f->base);
    return 0;
}
