/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated hosts and the processes on them. A process has one thread that may block (a fiber),
 * events, memory and descriptors (os.h); all of that is gone at once when it is killed, as
 * anything is that a crash leaves behind.
 *
 * One thread. Invariant: play_process is that process whose code runs, or NULL. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/random.h"
#include "events.h"

struct fab;
struct play_fd;
struct play_block;
struct play_mapping;
struct play_disk;

enum { PLAY_NAME = 32 };

/* A machine: its clock runs at its own speed, and its disk outlives its processes. It may be
 * stopped as a whole, by a hypervisor, which stops its clock too or does not. */
struct play_host {
    char name[PLAY_NAME];
    uint32_t number;         /* as the network has it: its node */
    int32_t clock_ppm;       /* its crystal gains so many millionths, */
    int32_t steer_ppm;       /* and its clock so many more, since somebody slews it */
    uint64_t clock_began_ns; /* what its clock says at clock_at_ns of the simulation's, */
    uint64_t raw_began_ns;   /* the one that nobody slews, */
    uint64_t wall_ms;        /* and the time of day */
    uint64_t clock_at_ns;    /* until then it stands still */
    uint64_t still_until_ns; /* nothing on it runs; in the past: it does */
    struct play_disk *disk;
    struct play_process *processes;
};

/* Its clock at a time of the simulation; and the first time of the simulation at which its clock
 * says that or more. */
uint64_t play_host_ns(const struct play_host *h, uint64_t now_ns);
uint64_t play_host_due(const struct play_host *h, uint64_t host_ns);
uint64_t play_host_now_ns(const struct play_host *h);
/* Its clock that nobody slews. */
uint64_t play_host_raw_ns(const struct play_host *h);
uint64_t play_host_wall_ms(const struct play_host *h);
/* From now on its crystal, and so all of its clocks, gain so many millionths. */
void play_host_set_speed(struct play_host *h, int32_t ppm);
/* From now on its clock is slewed by so many, as by chrony. */
void play_host_steer(struct play_host *h, int32_t ppm);
/* Nothing on it runs until then. stops_clock: nor do its clocks, of which nothing on it learns, and
 * what was to happen in it comes later by so much. */
void play_host_suspend(struct play_host *h, uint64_t until_ns, bool stops_clock);
/* From now on its time of day is so much later (or earlier, but not before 1970). */
void play_host_step_wall(struct play_host *h, int64_t ms);
/* It was booted so long ago: its clock says that now, and it is not suspended. No process is there.
 */
void play_host_boot(struct play_host *h, uint64_t ns);

struct play_process {
    struct play_owner owner;
    struct play_host *host;
    char name[PLAY_NAME]; /* "node-b/agentd" */
    struct play_fiber *fiber;
    struct play_event wake;
    struct base_prng random; /* its keys and its luck */
    struct base_prng moves;  /* from one of its host's processors to the other */
    int cpu;
    bool waits, woken;
    bool ended;           /* its main() has returned */
    bool spins;           /* it looks at the clock in loops: reading that takes time */
    uint32_t clock_reads; /* since it last waited */
    uid_t uid;
    const void *sleeps_on; /* os.h's from here on */
    struct play_process *next_sleeper;
    struct play_block *blocks;
    uint64_t bytes; /* in blocks */
    struct play_mapping *mappings;
    void (*killed)(struct play_process *p, void *user); /* before all of it goes */
    void *user;
    struct play_process *next, **link; /* on its host */
};

extern struct play_process *play_process;

/* It begins to run soon, or when its host is not suspended any more. name is appended to the
 * host's. NULL: no memory. */
struct play_process *play_process_new(struct play_host *host, const char *name, uint64_t seed,
                                      void (*main)(void *user), void *user);
/* All that it has goes at once; then *p. From the simulation alone, not from a process. */
void play_process_kill(struct play_process *p);
/* It does not run until then: a SIGSTOP, a debugger, no processor. */
void play_process_pause(struct play_process *p, uint64_t until_ns);

/* Of the process that runs: waits until it is woken or (of the simulation) that time. Returns false
 * when the time was reached. */
bool play_process_wait(uint64_t until_ns);
/* It goes on, if it waits, or its next wait ends at once. */
void play_process_wake(struct play_process *p);
/* Of the process that runs. */
void play_process_sleep(uint64_t ns);

/* Calls of the process's code from the simulation: play_process is p until the second. */
struct play_process *play_process_enter(struct play_process *p);
void play_process_leave(struct play_process *before);

#endif
