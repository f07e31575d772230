/* SPDX-License-Identifier: Apache-2.0 */
/* The net's own: its time, what is to happen, its story, and the descriptors that are none. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <sys/queue.h>

#include "base/heap.h"
#include "base/random.h"
#include "fabric/sim.h"
#include "sim/sim_table.h"

struct sim_device;

/* Something that is to happen, embedded in what it is about. Zeroed is one that is not set. */
struct sim_event {
    struct base_heap_node node; /* by when, and in which order they were set */
    void (*happen)(struct sim_event *e);
    struct sim_device *device; /* whose, or NULL: it waits while that is suspended */
    enum { SIM_EVENT_UNSET, SIM_EVENT_SET, SIM_EVENT_FROZEN } is; /* frozen: with its device */
    struct sim_event *next_frozen;
};

/* What a descriptor stands for. */
struct sim_ready {
    int fd;
    uint32_t node;
    bool readable;
};

struct sim_net {
    uint64_t seed, now_ns, serial, events, hash;
    uint64_t packet_life_ns;
    uint64_t poll_ns;     /* that a poll takes */
    uint32_t stall_ppm;   /* so many READs in a million stand still */
    uint64_t stall_ns;    /* for so long at most */
    uint64_t identities;  /* of registrations so far */
    uint32_t connections; /* of DCIs so far */
    struct sim_hooks hooks;
    const struct model_preset *model; /* of devices that are opened from now on, or NULL */
    bool ring_each; /* a card of the model is charged a doorbell for each request of a list */
    struct sim_link usual; /* where none was set */
    struct base_heap heap; /* of what is to happen */
    int next_fd;
    uint32_t devices; /* opened so far */
    struct sim_table fds;
    struct sim_table gids;  /* struct sim_place, by the GID's hash (wire.h) */
    struct sim_table ways;  /* struct sim_way, by from and to */
    struct sim_table links; /* struct sim_link, likewise, as they were set */
};

void sim_event_set(struct sim_net *net, struct sim_event *e, uint64_t due_ns);
/* Nothing if it is not set. */
void sim_event_cancel(struct sim_net *net, struct sim_event *e);
/* The next one, which is not set any more; NULL: there is none. */
struct sim_event *sim_event_take(struct sim_net *net);
/* What the device was frozen in goes on from now. */
void sim_events_thaw(struct sim_net *net, struct sim_device *device);

void sim_ready_open(struct sim_net *net, uint32_t node, struct sim_ready *r);
void sim_ready_close(struct sim_net *net, struct sim_ready *r);
/* Readable, or no longer; tells of it when it becomes so. */
void sim_ready_set(struct sim_net *net, struct sim_ready *r, bool readable);

/* Adds to the hash of all that happened. */
void sim_note(struct sim_net *net, uint64_t what);
/* A line of the story, if somebody listens. */
void sim_tell(struct sim_net *net, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 0 .. most. */
static inline uint64_t sim_upto(struct base_prng *p, uint64_t most)
{
    return most == UINT64_MAX ? base_prng_next(p) : base_prng_below(p, most + 1);
}
/* With a chance of so many in a million. Draws nothing for 0. */
static inline bool sim_chance(struct base_prng *p, uint32_t ppm)
{
    return ppm != 0 && base_prng_below(p, 1000000) < ppm;
}

/* A device, as far as the net knows it: the first of struct sim_device. */
struct sim_frozen {
    bool suspended;
    struct sim_event *first, **last; /* what would have happened meanwhile */
};

#endif
