/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous events: a thread takes them from the device, so that a CQ that overflowed is dead
 * for its lane at once, and keeps them for the control thread. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/verbs.h"

/* An event for the control thread. Without memory or room it is dropped: the completions say it
 * too. */
static void push(struct verbs_fab *f, enum ibv_event_type type, void *object)
{
    uint64_t one = 1;
    struct verbs_event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return;
    e->event.type = type;
    e->event.qp = object; /* or cq, srq: one union */
    pthread_mutex_lock(&f->lock);
    bool room = f->event_count < VERBS_EVENTS;
    if (room) {
        f->event_count++;
        *f->events_tail = e;
        f->events_tail = &e->next;
    }
    pthread_mutex_unlock(&f->lock);
    if (!room)
        free(e);
    else if (write(f->event_efd, &one, sizeof one) < 0) {
        /* Full, and so readable. */
    }
}

static void handle(struct verbs_fab *f, const struct ibv_async_event *e)
{
    struct verbs_cq *cq;
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        cq = e->element.cq->cq_context;
        atomic_store(&cq->dead, true);
        push(f, e->event_type, &cq->base);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        push(f, e->event_type, e->element.qp->qp_context);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        push(f, e->event_type, e->element.srq->srq_context);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        if (e->element.port_num == f->base.caps.port_num)
            push(f, e->event_type, NULL);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        push(f, e->event_type, NULL);
        break;
    default: /* of objects that we do not make */
        break;
    }
}

bool verbs_events_take(struct verbs_fab *f)
{
    struct ibv_async_event e;
    while (ibv_get_async_event(f->context, &e) == 0) {
        handle(f, &e);
        ibv_ack_async_event(&e); /* destroying an object waits for that */
    }
    if (errno == EAGAIN || errno == EINTR)
        return true;
    push(f, IBV_EVENT_DEVICE_FATAL, NULL); /* the driver is gone */
    return false;
}

void verbs_events_purge(struct verbs_fab *f, const void *object)
{
    struct verbs_event *gone = NULL;
    pthread_mutex_lock(&f->lock);
    struct verbs_event **link = &f->events;
    for (struct verbs_event *e; (e = *link) != NULL;) {
        if (e->event.qp != object) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        e->next = gone;
        gone = e;
        f->event_count--;
    }
    f->events_tail = link;
    pthread_mutex_unlock(&f->lock);
    for (struct verbs_event *next; gone != NULL; gone = next) {
        next = gone->next;
        free(gone);
    }
}

void verbs_events_free(struct verbs_fab *f)
{
    for (struct verbs_event *e = f->events, *next; e != NULL; e = next) {
        next = e->next;
        free(e);
    }
}

int verbs_get_event(struct kedge_fab *fab, struct kedge_fab_event *out)
{
    struct verbs_fab *f = verbs_of(fab);
    uint64_t count;
    pthread_mutex_lock(&f->lock);
    struct verbs_event *e = f->events;
    if (e != NULL) {
        f->event_count--;
        f->events = e->next;
        if (f->events == NULL)
            f->events_tail = &f->events;
    }
    if (f->events == NULL && read(f->event_efd, &count, sizeof count) < 0) {
        /* Nothing was signalled. */
    }
    pthread_mutex_unlock(&f->lock);
    if (e == NULL)
        return 0;
    *out = e->event;
    free(e);
    return 1;
}
