/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that metaservers say, followed. Control thread. */
#ifndef CONTROL_FOLLOW_H
#define CONTROL_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/config.h"
#include "control/desired.h"
#include "control/work.h"
#include "control/world.h"

struct agent;

enum { DESIRED_WHY = 240 };

struct desired_save {
    struct agent *agent;
    char *text; /* while it is under way */
    struct world_task task;
};

/* Of one metaserver whose streams have ended: it alone is left alone for longer each time. */
struct follow_pause {
    uint64_t try_ns, backoff_ms; /* 0: none has */
};

struct follow {
    uint32_t metaserver; /* that is watched, or the first that may be next */
    uint64_t call;       /* 0: none */
    uint64_t move_ns;    /* when another one is watched at the soonest */
    struct follow_pause pause[AGENT_METASERVERS];
    bool begun;
    uint64_t looked_ns; /* when it looked last */
    bool was_idle;      /* whether its pools were then */
    uint64_t described; /* a hash of what was to be told then */
    uint64_t seen;      /* the revision that came last; 0: none did */
    uint64_t applied;   /* the one in force; 0: none */
    char store[33];     /* that it is a revision of, if several metaservers share that; else "" */
    uint64_t older_ns, stale_ns; /* since when none but older ones came; and on this stream */
    struct agent_limits window, destination_window;        /* of it */
    struct agent_window_config own_windows[AGENT_WINDOWS]; /* of it, for one destination each */
    uint32_t own_window_count;
    char why[DESIRED_WHY]; /* what was seen is not; empty: it is, but for what is its tenants' and
                            * pools' to say */
    char *pending;         /* that is in force but for tenants for which there was no room */
    uint64_t again_ns;
    struct desired_save save;
    char *unsaved;    /* the newest document in force that waits to be kept */
    int save_status;  /* of the last one that was to be kept */
    uint64_t save_ns; /* save_status is not 0: when that one is tried again */
};

/* What was in force when the agent ended: first what the device is opened with, then, after
 * agent_sessions_start(), all of it. */
struct agent_pool_config agent_follow_read(struct agent *a);
void agent_follow_load(struct agent *a);
/* False, or why what is in force is not what an agent begins with next. */
bool agent_follow_unkept_why(const struct agent *a, char *why, size_t bytes);
/* The URL of the metaserver whose settings it follows now; "": of none. The agent's. */
const char *agent_follow_metaserver(const struct agent *a);
/* After agent_registrations_start(). */
void agent_follow_start(struct agent *a);
/* Whether it is time for anything; after all else, since it may be of that. */
void agent_follow_tick(struct agent *a);
uint64_t agent_follow_due_ns(const struct agent *a);
/* Before agent_registrations_stop(); fini after the loop. */
void agent_follow_stop(struct agent *a);
void agent_follow_fini(struct agent *a);

#endif
