/* SPDX-License-Identifier: Apache-2.0 */
#include "metaserver/store_worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"

struct meta_store_worker {
    struct meta_store *store;
    pthread_t thread;
    int fd;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work, settled;
    struct meta_store_jobs waiting, over;
    bool busy; /* with one that is in neither list */
    bool ends;
};

/* The next one; NULL: the worker ends. Called, and returns, with the lock. */
static struct meta_store_job *wait_for_job(struct meta_store_worker *w)
{
    while (STAILQ_EMPTY(&w->waiting) && !w->ends)
        pthread_cond_wait(&w->work, &w->lock);
    struct meta_store_job *job = STAILQ_FIRST(&w->waiting);
    if (job != NULL)
        STAILQ_REMOVE_HEAD(&w->waiting, link);
    w->busy = job != NULL;
    return job;
}

static void *carry_out_jobs(void *user)
{
    struct meta_store_worker *w = user;
    struct meta_store_job *job;
    const uint64_t one = 1;
    pthread_mutex_lock(&w->lock);
    while ((job = wait_for_job(w)) != NULL) {
        pthread_mutex_unlock(&w->lock);
        meta_store_commit(w->store, &job->txn, &job->outcome);
        pthread_mutex_lock(&w->lock);
        STAILQ_INSERT_TAIL(&w->over, job, link);
        w->busy = false;
        /* It blocks, or fails, when nobody has read it 2^64 times. */
        (void)!write(w->fd, &one, sizeof one);
        pthread_cond_signal(&w->settled);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Its owner's thread takes the signals. */
static int start_thread(struct meta_store_worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&w->thread, NULL, carry_out_jobs, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int init_locks(struct meta_store_worker *w)
{
    pthread_condattr_t attr;
    int error = pthread_mutex_init(&w->lock, NULL);
    if (error == 0)
        error = pthread_cond_init(&w->work, NULL);
    if (error == 0)
        error = pthread_condattr_init(&attr);
    if (error != 0)
        return -error;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    error = pthread_cond_init(&w->settled, &attr);
    pthread_condattr_destroy(&attr);
    return -error;
}

int meta_store_worker_new(struct meta_store *store, struct meta_store_worker **out,
                          struct base_errbuf *err)
{
    struct meta_store_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    w->store = store;
    STAILQ_INIT(&w->waiting);
    STAILQ_INIT(&w->over);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int status = w->fd < 0 ? -errno : init_locks(w);
    if (status == 0)
        status = start_thread(w);
    if (status != 0) {
        if (w->fd >= 0)
            close(w->fd);
        free(w);
        return base_err(err, status, "the store's thread cannot begin: %s", strerror(-status));
    }
    *out = w;
    return 0;
}

void meta_store_worker_free(struct meta_store_worker *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    BASE_ASSERT(!w->busy && STAILQ_EMPTY(&w->waiting) && STAILQ_EMPTY(&w->over));
    w->ends = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->settled);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    close(w->fd);
    free(w);
}

void meta_store_worker_submit(struct meta_store_worker *w, struct meta_store_job *job)
{
    pthread_mutex_lock(&w->lock);
    STAILQ_INSERT_TAIL(&w->waiting, job, link);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

int meta_store_worker_fd(const struct meta_store_worker *w)
{
    return w->fd;
}

unsigned meta_store_worker_run(struct meta_store_worker *w)
{
    struct meta_store_jobs over = STAILQ_HEAD_INITIALIZER(over);
    struct meta_store_job *job;
    unsigned count = 0;
    uint64_t times;
    (void)!read(w->fd, &times, sizeof times);
    pthread_mutex_lock(&w->lock);
    STAILQ_CONCAT(&over, &w->over);
    pthread_mutex_unlock(&w->lock);
    while ((job = STAILQ_FIRST(&over)) != NULL) {
        STAILQ_REMOVE_HEAD(&over, link);
        job->done(job);
        count++;
    }
    return count;
}

int meta_store_worker_settle(struct meta_store_worker *w, uint64_t timeout_ns)
{
    struct timespec end;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const uint64_t ns = (uint64_t)end.tv_nsec + timeout_ns;
    end.tv_sec += (time_t)(ns / BASE_NS_PER_S);
    end.tv_nsec = (long)(ns % BASE_NS_PER_S);
    pthread_mutex_lock(&w->lock);
    while (error == 0 && (w->busy || !STAILQ_EMPTY(&w->waiting)))
        error = pthread_cond_timedwait(&w->settled, &w->lock, &end);
    pthread_mutex_unlock(&w->lock);
    return -error;
}
