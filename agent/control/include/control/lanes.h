/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the world (control/world.h) that lanes and their device are: a lane is stepped there,
 * by a thread of its own or by a simulation, and what blocks on the device is done there. Control
 * thread, but for world_wake() and world_lane_tell(). */
#ifndef CONTROL_LANES_H
#define CONTROL_LANES_H

#include <errno.h>
#include <stdatomic.h>

#include "agent/polling.h"
#include "control/world.h"

struct doorbells;
struct fab;
struct fab_chan;
struct fab_placement;
struct lane;
struct lane_command;
struct pool;

/* A lane that is stepped, embedded in what it is of; all set by that before it starts. */
struct world_lane {
    struct lane *lane;
    struct fab_chan *chan;                 /* that wakes it */
    const struct fab_placement *placement; /* the CPUs where it is stepped */
    uint64_t cpu;                          /* `lane_cpu` of the settings, for a sentence */
    struct polling polling;                /* when it sleeps: as it begins */
    void (*news)(void *user);              /* the lane has events; on the control thread */
    void *user;
    void *of_world;              /* the world's own */
    struct doorbells *doorbells; /* likewise: that it hears; NULL: it hears them otherwise */
};

/* What is made of a pool's device objects and goes. Nobody waits for the device, which may take as
 * long as it likes: the pool's fab_ops count what is under way. A target is drained first, which
 * takes seconds, and a region ends when no peer is in it any more. */
enum world_device_step {
    WORLD_DEVICE_OPEN,   /* protection domains, queue pairs and the MR table. Begun, if 0:
                          * agent_pool_device_opened() says when it is over, and how, and never
                          * before the call is; or a sentence */
    WORLD_DEVICE_LEAVE,  /* DC: no peer reaches it any more: its targets go; never fails */
    WORLD_DEVICE_RETIRE, /* all that there is of them goes, when nothing else is under way and the
                          * lane is no more; never fails */
    WORLD_DEVICE_CLOSE,  /* then: their memory; never fails */
    /* Begun, if 0: agent_address_step_done() says when it is over, and how, and never before the
     * call is.
     */
    WORLD_DEVICE_TARGET, /* DC: another target, of the present address; the former one goes, or
                          * becomes the one before where the pool's readdress.keeps says so */
    WORLD_DEVICE_TABLE,  /* another MR table, for the present name; the present one becomes the one
                          * before. To make its memory blocks for some ms */
    WORLD_DEVICE_FORMER, /* DC: the target before goes; never fails */
    WORLD_DEVICE_DROP    /* the table before goes, which the lane has left; never fails */
};

struct world_lane_ops {
    /* Begins to step it. 0; or -errno and a sentence: then stop() is still to be called. */
    int (*start)(struct world *w, struct world_lane *l, struct base_errbuf *err);
    /* Blocks until it is stepped no more: its news are not told either. Nothing for one that never
     * began. */
    void (*stop)(struct world *w, struct world_lane *l);
    /* As lane_command(), and it wakes. Blocks while a lane's ring is full, which it empties in each
     * step. Of a lane that is stopped, and not freed yet, nobody takes it. */
    void (*command)(struct world *w, struct world_lane *l, const struct lane_command *command);
    /* Its session of that number has this doorbell, from now on or no longer: each once, but for
     * those that it has when it is stopped. With rings->lodges, after WORLD_LODGE_RINGS, a lodger
     * has it, behind all max_sessions, and its own lane has it no longer; one that is back has it
     * again there. 0 or -errno: never of one that lodges, or is back. */
    int (*watch)(struct world *w, struct world_lane *l, uint32_t session,
                 const struct world_rings *rings);
    void (*unwatch)(struct world *w, struct world_lane *l, const struct world_rings *rings);
    /* Wakes a worker that sleeps on this word of its rings, as lane_set_wake() says. Any thread. */
    uint64_t (*wake)(struct world *w, _Atomic uint32_t *word);
    /* The session gets a completion channel, and one that it has ends. 0 and *fd, the worker's end,
     * which is for world_lent.channel; or -errno and a sentence. NULL: this world has none. */
    int (*channel)(struct world *w, struct world_lane *l, uint32_t session, uint32_t tenant,
                   int *fd, struct base_errbuf *err);
    /* The worker's end, of the one that the session has, is readable for ever. */
    void (*channel_end)(struct world *w, struct world_lane *l, uint32_t session);
    /* That tenant has no session any more, and its number may be another's: of what its channels
     * have cost nothing is kept against that one. */
    void (*channels_forget)(struct world *w, struct world_lane *l, uint32_t tenant);
    /* It becomes readable soon, as lane_set_tell() says; nothing if there is none. Any thread. */
    void (*tell)(struct world *w, struct world_lane *l, uint32_t session);
    /* 0 or -errno; err: OPEN's, else NULL. */
    int (*device)(struct world *w, enum world_device_step step, struct pool *p,
                  struct base_errbuf *err);
    /* Blocks: runs the fabric's control operations until none of the pool's is under way. For the
     * agent's start and its end. */
    void (*settle)(struct world *w, struct pool *p);
    /* How much memory may be locked for devices, in bytes; UINT64_MAX: no limit. */
    uint64_t (*lock_limit)(struct world *w);
};

static inline int world_lane_start(struct world *w, struct world_lane *l, struct base_errbuf *err)
{
    return w->lanes->start(w, l, err);
}

static inline void world_lane_stop(struct world *w, struct world_lane *l)
{
    w->lanes->stop(w, l);
}

static inline void world_lane_command(struct world *w, struct world_lane *l,
                                      const struct lane_command *command)
{
    w->lanes->command(w, l, command);
}

static inline int world_lane_watch(struct world *w, struct world_lane *l, uint32_t session,
                                   const struct world_rings *rings)
{
    return w->lanes->watch(w, l, session, rings);
}

static inline void world_lane_unwatch(struct world *w, struct world_lane *l,
                                      const struct world_rings *rings)
{
    w->lanes->unwatch(w, l, rings);
}

static inline uint64_t world_wake(struct world *w, _Atomic uint32_t *word)
{
    return w->lanes->wake(w, word);
}

static inline int world_lane_channel(struct world *w, struct world_lane *l, uint32_t session,
                                     uint32_t tenant, int *fd, struct base_errbuf *err)
{
    return w->lanes->channel != NULL ? w->lanes->channel(w, l, session, tenant, fd, err)
                                     : base_err(err, -EOPNOTSUPP, "there are no channels here");
}

static inline void world_lane_channel_end(struct world *w, struct world_lane *l, uint32_t session)
{
    if (w->lanes->channel_end != NULL)
        w->lanes->channel_end(w, l, session);
}

static inline void world_lane_channels_forget(struct world *w, struct world_lane *l,
                                              uint32_t tenant)
{
    if (w->lanes->channels_forget != NULL)
        w->lanes->channels_forget(w, l, tenant);
}

static inline void world_lane_tell(struct world *w, struct world_lane *l, uint32_t session)
{
    if (w->lanes->tell != NULL)
        w->lanes->tell(w, l, session);
}

static inline int world_device(struct world *w, enum world_device_step step, struct pool *p,
                               struct base_errbuf *err)
{
    return w->lanes->device(w, step, p, err);
}

static inline void world_settle(struct world *w, struct pool *p)
{
    w->lanes->settle(w, p);
}

static inline uint64_t world_lock_limit(struct world *w)
{
    return w->lanes->lock_limit(w);
}

#endif
