/* SPDX-License-Identifier: Apache-2.0 */
/* The one queue of events of a simulation, and its time: what is due first happens first, and of
 * what is due at the same time what was set first. Beside it stands another source of events, the
 * simulated network, which is asked when it is due and goes first at equal times.
 *
 * An event is embedded in what it is for, and set at most once at a time. One thread. Invariant:
 * time never goes back. */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define PLAY_NEVER UINT64_MAX

/* Whose events may be held up or ended together. All zero: nothing is set. */
struct play_owner {
    struct play_event *events;
    uint64_t paused_until_ns; /* what is due before happens then */
};

struct play_event {
    void (*happen)(void *user);
    void *user;
    struct play_owner *owner; /* NULL: it is the simulation's own */
    uint64_t due_ns, serial;  /* private from here on */
    uint32_t place;           /* in the heap, from 1; 0: it is not set */
    struct play_event *next, **link;
};

/* The other source. */
struct play_source {
    uint64_t (*next_due)(void *user);
    /* Lets everything happen that is due until then, and makes it that time. */
    void (*run_until)(void *user, uint64_t until_ns);
    void *user;
};

/* It is 0 then. */
void play_events_init(const struct play_source *source);
void play_events_fini(void);
uint64_t play_now_ns(void);
/* How many of the queue's have happened. */
uint64_t play_events_count(void);

/* One that is set is set anew. Not before now. */
void play_event_at(struct play_event *e, uint64_t due_ns);
void play_event_after(struct play_event *e, uint64_t ns);
/* Nothing if it is not set. */
void play_event_cancel(struct play_event *e);
bool play_event_is_set(const struct play_event *e);
void play_events_cancel_of(struct play_owner *owner);
/* All that is set of it is due later by so much, the end of its pause too. */
void play_events_delay_of(struct play_owner *owner, uint64_t ns);

/* Lets the first event happen. False, and nothing: it is due after until_ns, or there is none; then
 * it is until_ns, unless that is PLAY_NEVER. */
bool play_events_step(uint64_t until_ns);

#endif
