/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a simulated cluster, and when: a list that follows from the seed alone, so
 * that one fault can be left out and all others stay. One thread. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum play_fault_kind {
    FAULT_KILL_AGENT, /* and it begins again when that is over */
    FAULT_STOP_AGENT, /* likewise, but it is asked to end */
    FAULT_KILL_METAD,
    FAULT_KILL_WORKER,
    FAULT_POWER_OFF,   /* a host: all on it is killed, and its disk loses what was not synced */
    FAULT_PAUSE_AGENT, /* the process alone */
    FAULT_PAUSE_METAD,
    FAULT_PAUSE_WORKER,
    FAULT_SUSPEND_HOST, /* with its device, and its clocks or not */
    FAULT_CUT_LINK,     /* of the fabric: from one to another, or both ways */
    FAULT_CUT_CALLS,    /* of a node and a metaserver: requests, answers, or both */
    FAULT_BAD_LINK,     /* packets are lost, late and repeated */
    FAULT_BAD_CALLS,    /* of all: requests and answers are lost or reset */
    FAULT_PORT_DOWN,
    FAULT_BREAK_QP,
    FAULT_OVERFLOW_CQ, /* or it breaks: the device is of no use to its process any more */
    FAULT_BAD_DEVICE,  /* control operations are slow or fail */
    FAULT_CLOCK_SPEED,
    FAULT_CLOCK_STEER, /* it is slewed, further than leases allow for */
    FAULT_CLOCK_STEP,  /* the time of day */
    FAULT_DISK_FULL,
    FAULT_DISK_SLOW,
    FAULT_BREAK_TARGET, /* a DC target of an agent's; half of the time nothing says so */
    FAULT_CUT_STORE,    /* of a metaserver and the store that all share: one way or both */
    FAULT_DEAF,         /* it hears nothing of that store, which carries out what it asks for */
    FAULT_SLOW_STORE,   /* what it asks for takes its time, and what it hears is late */
    FAULT_LOSE_ANSWERS, /* of that store */
    FAULT_COMPACT,      /* what it has not heard cannot be told any more */
    FAULT_NO_QUORUM,    /* the store answers nobody */
    FAULT_PUT_BACK,     /* in the end the store is as it was in the beginning */
    FAULT_KINDS
};

struct play_fault {
    enum play_fault_kind kind;
    uint64_t at_ns, lasts_ns;
    uint32_t node, other; /* hosts; other: SIM_ANY_NODE, or not looked at */
    uint32_t worker;
    bool hard;       /* the host's disk is lost, with what is killed; or both ways */
    uint64_t amount; /* of what may be more or less */
    bool left_out;
};

/* Faults of a cluster (shared: whose metaservers share a store) with so many nodes, metaservers and
 * workers a node, which begin in this time and are over by its end. The caller's, count in *count;
 * NULL: no memory. */
struct play_fault *play_faults_plan(uint64_t seed, uint32_t nodes, uint32_t metaservers,
                                    uint32_t workers, bool shared, uint64_t from_ns,
                                    uint64_t until_ns, uint32_t *count);
/* They happen, each at its time, to the cluster that there is (cluster_state.h). */
void play_faults_begin(const struct play_fault *faults, uint32_t count);
void play_faults_end(void);
/* "kill_agent": a literal. */
const char *play_fault_name(enum play_fault_kind kind);

#endif
