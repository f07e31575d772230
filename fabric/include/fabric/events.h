/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's asynchronous events, until the control thread takes them. For providers; callers see
 * fab_event_fd() and fab_get_event().
 *
 * Any thread may call any function but init and fini. Bounded: what has no room is dropped, as it
 * is without memory; the completions say it too. */
#ifndef FABRIC_EVENTS_H
#define FABRIC_EVENTS_H

#include <pthread.h>

#include "fabric/fabric.h"

enum {
    FAB_EVENTS = 4096,     /* that wait to be taken, of objects */
    FAB_EVENTS_SPARE = 64, /* more places, for the port's and the device's */
};

/* Whether such an event is of the device or of its port, and of no object: those must not be lost,
 * however many the objects have. Any thread. */
bool fab_event_is_of_device(enum ibv_event_type type);

struct fab_queued_event;

struct fab_events {
    pthread_mutex_t lock; /* what follows, but for efd */
    struct fab_queued_event *first, **tail;
    uint32_t count;
    int efd; /* readable while there are events; -1: init failed */
};

/* 0 or -errno; to be ended in either case. */
int fab_events_init(struct fab_events *q);
/* What was not taken is lost. */
void fab_events_fini(struct fab_events *q);
/* object: the public struct of the queue pair, CQ or SRQ; NULL for the port's, the device's and a
 * DC target's. */
void fab_events_push(struct fab_events *q, enum ibv_event_type type, void *object);
/* Forgets the events of an object that goes. */
void fab_events_purge(struct fab_events *q, const void *object);
/* 1 and the oldest event, or 0. */
int fab_events_pop(struct fab_events *q, struct fab_event *out);

#endif
