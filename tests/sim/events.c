/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#include <stdlib.h>

#include "base/assert.h"

/* When it is due is here too, so that events that are only compared are not looked at. */
struct place {
    uint64_t due_ns, serial;
    struct play_event *event;
};

static struct {
    struct play_source source;
    uint64_t now_ns, serial, count;
    struct place *heap; /* from 1 on */
    uint32_t set, room;
} queue;

void play_events_init(const struct play_source *source)
{
    queue.source = *source;
    queue.now_ns = queue.serial = queue.count = 0;
    queue.set = 0;
}

void play_events_fini(void)
{
    free(queue.heap);
    queue.heap = NULL;
    queue.set = queue.room = 0;
}

uint64_t play_now_ns(void)
{
    return queue.now_ns;
}

uint64_t play_events_count(void)
{
    return queue.count;
}

/* ---- the heap */

static bool is_before(const struct place *a, const struct place *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static struct place place_of(struct play_event *e)
{
    return (struct place){.due_ns = e->due_ns, .serial = e->serial, .event = e};
}

static void put_event(const struct place *p, uint32_t place)
{
    queue.heap[place] = *p;
    p->event->place = place;
}

static void sift_up(const struct place p, uint32_t place)
{
    for (; place > 1 && is_before(&p, &queue.heap[place / 2]); place /= 2)
        put_event(&queue.heap[place / 2], place);
    put_event(&p, place);
}

static void sift_down(const struct place p, uint32_t place)
{
    for (uint32_t child; (child = 2 * place) <= queue.set; place = child) {
        if (child < queue.set && is_before(&queue.heap[child + 1], &queue.heap[child]))
            child++;
        if (!is_before(&queue.heap[child], &p))
            break;
        put_event(&queue.heap[child], place);
    }
    put_event(&p, place);
}

static void make_room(void)
{
    if (queue.set + 1 < queue.room)
        return;
    queue.room = queue.room == 0 ? 1024 : 2 * queue.room;
    queue.heap = realloc(queue.heap, queue.room * sizeof(struct place));
    BASE_ASSERT(queue.heap != NULL);
}

static void leave_heap(struct play_event *e)
{
    const struct place last = queue.heap[queue.set--];
    const uint32_t place = e->place;
    e->place = 0;
    if (last.event == e)
        return;
    if (place > 1 && is_before(&last, &queue.heap[place / 2]))
        sift_up(last, place);
    else
        sift_down(last, place);
}

/* ---- events */

static void leave_owner(struct play_event *e)
{
    if (e->link == NULL)
        return;
    *e->link = e->next;
    if (e->next != NULL)
        e->next->link = e->link;
    e->link = NULL;
}

static void join_owner(struct play_event *e)
{
    if (e->owner == NULL)
        return;
    e->next = e->owner->events;
    if (e->next != NULL)
        e->next->link = &e->next;
    e->link = &e->owner->events;
    e->owner->events = e;
}

void play_event_cancel(struct play_event *e)
{
    if (e->place == 0)
        return;
    leave_heap(e);
    leave_owner(e);
}

void play_event_at(struct play_event *e, uint64_t due_ns)
{
    play_event_cancel(e);
    if (due_ns == PLAY_NEVER)
        return;
    e->due_ns = due_ns > queue.now_ns ? due_ns : queue.now_ns;
    e->serial = queue.serial++;
    make_room();
    sift_up(place_of(e), ++queue.set);
    join_owner(e);
}

void play_event_after(struct play_event *e, uint64_t ns)
{
    play_event_at(e, queue.now_ns + ns);
}

bool play_event_is_set(const struct play_event *e)
{
    return e->place != 0;
}

void play_events_cancel_of(struct play_owner *owner)
{
    while (owner->events != NULL)
        play_event_cancel(owner->events);
}

void play_events_delay_of(struct play_owner *owner, uint64_t ns)
{
    for (struct play_event *e = owner->events; e != NULL; e = e->next) {
        e->due_ns += ns;
        sift_down(place_of(e), e->place);
    }
    if (owner->paused_until_ns > queue.now_ns)
        owner->paused_until_ns += ns;
}

/* ---- running */

static void run_source(uint64_t until_ns)
{
    queue.source.run_until(queue.source.user, until_ns);
    queue.now_ns = until_ns;
}

static bool is_held_up(const struct play_event *e)
{
    return e->owner != NULL && e->owner->paused_until_ns > e->due_ns;
}

static void happen_now(struct play_event *e)
{
    if (is_held_up(e)) {
        play_event_at(e, e->owner->paused_until_ns);
        return;
    }
    play_event_cancel(e);
    queue.count++;
    e->happen(e->user);
}

/* What the source lets happen may set an event that is due earlier: it is looked at again. */
bool play_events_step(uint64_t until_ns)
{
    const uint64_t own = queue.set > 0 ? queue.heap[1].due_ns : PLAY_NEVER;
    const uint64_t other = queue.source.next_due(queue.source.user);
    if ((own < other ? own : other) > until_ns || (own == PLAY_NEVER && other == PLAY_NEVER)) {
        if (until_ns != PLAY_NEVER)
            run_source(until_ns);
        return false;
    }
    if (other <= own) {
        run_source(other);
        return true;
    }
    if (own > queue.now_ns)
        run_source(own);
    happen_now(queue.heap[1].event);
    return true;
}
