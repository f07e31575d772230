/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct fab_queued_event {
    struct fab_event event;
    struct fab_queued_event *next;
};

int fab_events_init(struct fab_events *q)
{
    *q = (struct fab_events){.first = NULL};
    q->tail = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    q->efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return q->efd >= 0 ? 0 : -errno;
}

static void free_all(struct fab_queued_event *e)
{
    for (struct fab_queued_event *next; e != NULL; e = next) {
        next = e->next;
        free(e);
    }
}

void fab_events_fini(struct fab_events *q)
{
    free_all(q->first);
    if (q->efd >= 0)
        close(q->efd);
    pthread_mutex_destroy(&q->lock);
}

bool fab_event_is_of_device(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return true;
    default:
        return false;
    }
}

void fab_events_push(struct fab_events *q, enum ibv_event_type type, void *object)
{
    uint64_t one = 1;
    struct fab_queued_event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return;
    e->event.type = type;
    e->event.qp = object; /* or cq, srq: one union */
    pthread_mutex_lock(&q->lock);
    const uint32_t spare = fab_event_is_of_device(type) ? FAB_EVENTS_SPARE : 0;
    const bool room = q->count < FAB_EVENTS + spare;
    if (room) {
        q->count++;
        *q->tail = e;
        q->tail = &e->next;
        if (write(q->efd, &one, sizeof one) < 0) {
            /* Full, and so readable. */
        }
    }
    pthread_mutex_unlock(&q->lock);
    if (!room)
        free(e);
}

/* Nothing is left: nor is the fd readable. With the lock held. */
static void quiet_fd(struct fab_events *q)
{
    uint64_t count;
    if (q->first == NULL && read(q->efd, &count, sizeof count) < 0) {
        /* It was not signalled. */
    }
}

void fab_events_purge(struct fab_events *q, const void *object)
{
    struct fab_queued_event *gone = NULL;
    pthread_mutex_lock(&q->lock);
    struct fab_queued_event **link = &q->first;
    for (struct fab_queued_event *e; (e = *link) != NULL;) {
        if (e->event.qp != object) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        e->next = gone;
        gone = e;
        q->count--;
    }
    q->tail = link;
    quiet_fd(q);
    pthread_mutex_unlock(&q->lock);
    free_all(gone);
}

int fab_events_pop(struct fab_events *q, struct fab_event *out)
{
    pthread_mutex_lock(&q->lock);
    struct fab_queued_event *e = q->first;
    if (e != NULL) {
        q->count--;
        q->first = e->next;
        if (q->first == NULL)
            q->tail = &q->first;
    }
    quiet_fd(q);
    pthread_mutex_unlock(&q->lock);
    if (e == NULL)
        return 0;
    *out = e->event;
    free(e);
    return 1;
}
