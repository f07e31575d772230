/* SPDX-License-Identifier: Apache-2.0 */
#include "doorbells.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/lanes.h"
#include "control/work.h"

enum { AGAIN_AT_ONCE = 8 };

int agentd_doorbells_init(struct doorbells *d, int epfd, uint32_t count)
{
    *d = (struct doorbells){.epfd = epfd, .count = count, .due_ns = UINT64_MAX};
    TAILQ_INIT(&d->deaf);
    d->of = calloc(count, sizeof *d->of);
    if (d->of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        d->of[i].fd = -1;
    (void)pthread_mutex_init(&d->lock, NULL);
    return 0;
}

void agentd_doorbells_fini(struct doorbells *d)
{
    if (d->of == NULL)
        return;
    (void)pthread_mutex_destroy(&d->lock);
    free(d->of);
    d->of = NULL;
}

static int control_epoll(const struct doorbells *d, const struct doorbell *bell, int fd, int op,
                         bool heard)
{
    struct epoll_event event = {.events = heard ? EPOLLIN | EPOLLET : 0,
                                .data.u64 = (uint64_t)(bell - d->of)};
    return epoll_ctl(d->epfd, op, fd, &event) == 0 ? 0 : -errno;
}

/* The lane's thread only changes what it hears, which touches the epoll's own lock alone. */
static void hear_bell(const struct doorbells *d, const struct doorbell *bell, bool heard)
{
    (void)control_epoll(d, bell, bell->fd, EPOLL_CTL_MOD, heard);
}

static void note_due(struct doorbells *d)
{
    const struct doorbell *first = TAILQ_FIRST(&d->deaf);
    atomic_store_explicit(&d->due_ns, first != NULL ? first->until_ns : UINT64_MAX,
                          memory_order_relaxed);
}

static void end_deaf(struct doorbells *d, struct doorbell *bell)
{
    if (!bell->deaf)
        return;
    bell->deaf = false;
    TAILQ_REMOVE(&d->deaf, bell, link);
    note_due(d);
}

/* Adding may wait for strangers (agentd_doorbells_hear_rings()): without the lock, or as long as
 * somebody keeps it waiting the lane could do nothing about who rings without an end. What it hears
 * before it knows the descriptor it takes as it is. */
int agentd_doorbells_watch(struct doorbells *d, uint32_t session, int fd)
{
    struct doorbell *bell = &d->of[session];
    const int status = control_epoll(d, bell, fd, EPOLL_CTL_ADD, true);
    if (status != 0)
        return status;
    (void)pthread_mutex_lock(&d->lock);
    bell->fd = fd;
    bell->muted = false;
    atomic_store_explicit(&bell->falses, 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&d->lock);
    return 0;
}

void agentd_doorbells_unwatch(struct doorbells *d, uint32_t session)
{
    struct doorbell *bell = &d->of[session];
    (void)pthread_mutex_lock(&d->lock);
    const int fd = bell->fd;
    end_deaf(d, bell);
    bell->fd = -1;
    (void)pthread_mutex_unlock(&d->lock);
    if (fd >= 0)
        (void)control_epoll(d, bell, fd, EPOLL_CTL_DEL, false);
}

void agentd_doorbells_mute(struct doorbells *d, uint32_t session, bool muted)
{
    struct doorbell *bell = &d->of[session];
    (void)pthread_mutex_lock(&d->lock);
    if (bell->fd >= 0 && bell->muted != muted) {
        end_deaf(d, bell);
        bell->muted = muted;
        atomic_store_explicit(&bell->falses, 0, memory_order_relaxed);
        hear_bell(d, bell, !muted);
    }
    (void)pthread_mutex_unlock(&d->lock);
}

int agentd_doorbells_hear_rings(struct world_rings *r)
{
    struct doorbells *d = r->lane != NULL ? r->lane->doorbells : NULL;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    if (d == NULL)
        return 0;
    r->heard = epoll_create1(EPOLL_CLOEXEC);
    if (r->heard < 0 || epoll_ctl(r->heard, EPOLL_CTL_ADD, r->doorbell, &event) != 0)
        return -errno;
    return agentd_doorbells_watch(d, r->session, r->heard);
}

void agentd_doorbells_unhear_rings(struct world_rings *r)
{
    if (r->heard < 0)
        return;
    if (r->lane->doorbells != NULL)
        agentd_doorbells_unwatch(r->lane->doorbells, r->session);
    close(r->heard);
    r->heard = -1;
}

int agentd_doorbells_lodge_rings(const struct world_rings *r)
{
    struct doorbells *d = r->lodges->doorbells;
    return d != NULL && r->heard >= 0 ? agentd_doorbells_watch(d, r->lodger, r->heard) : 0;
}

/* True: more than are forgiven. */
static bool count_false(struct doorbell *bell, uint64_t now_ns)
{
    uint32_t falses = atomic_load_explicit(&bell->falses, memory_order_relaxed);
    const uint64_t since_ns = atomic_load_explicit(&bell->false_ns, memory_order_relaxed);
    if (falses == 0 || now_ns - since_ns > DOORBELLS_FORGET_MS * BASE_NS_PER_MS) {
        falses = 0;
        atomic_store_explicit(&bell->false_ns, now_ns, memory_order_relaxed);
    }
    atomic_store_explicit(&bell->falses, ++falses, memory_order_relaxed);
    return falses > DOORBELLS_FALSE;
}

/* Nothing is lost where the control thread has the lock: whoever goes on ringing is met again. */
void agentd_doorbells_note_false(struct doorbells *d, uint32_t session, uint64_t now_ns)
{
    struct doorbell *bell = &d->of[session];
    if (session >= d->count || !count_false(bell, now_ns) || pthread_mutex_trylock(&d->lock) != 0)
        return;
    if (bell->fd >= 0 && !bell->deaf && !bell->muted) {
        hear_bell(d, bell, false);
        bell->deaf = true;
        bell->until_ns = now_ns + DOORBELLS_DEAF_MS * BASE_NS_PER_MS;
        TAILQ_INSERT_TAIL(&d->deaf, bell, link);
        note_due(d);
    }
    (void)pthread_mutex_unlock(&d->lock);
}

void agentd_doorbells_note_true(struct doorbells *d, uint32_t session)
{
    if (session < d->count)
        atomic_store_explicit(&d->of[session].falses, 0, memory_order_relaxed);
}

/* One that was ever rung tells of it at once, which is forgiven; the next one is not. */
void agentd_doorbells_hear_again(struct doorbells *d, uint64_t now_ns)
{
    if (now_ns < doorbells_due(d) || pthread_mutex_trylock(&d->lock) != 0)
        return;
    for (int i = 0; i < AGAIN_AT_ONCE && now_ns >= doorbells_due(d); i++) {
        struct doorbell *bell = TAILQ_FIRST(&d->deaf);
        end_deaf(d, bell);
        atomic_store_explicit(&bell->falses, DOORBELLS_FALSE - 1, memory_order_relaxed);
        atomic_store_explicit(&bell->false_ns, now_ns, memory_order_relaxed);
        hear_bell(d, bell, true);
    }
    (void)pthread_mutex_unlock(&d->lock);
}
