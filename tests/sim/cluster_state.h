/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of the cluster now, between cluster.c and faults.c. */
#ifndef SIM_CLUSTER_STATE_H
#define SIM_CLUSTER_STATE_H

#include "cluster.h"
#include "control/config.h"
#include "fabric/sim.h"

struct sim_net;
struct play_agent;
struct play_agent_settings;
struct play_metad;
struct play_operators;
struct play_clients;
struct play_intruder;

/* A host. NULL: that is not there now. */
struct node {
    struct play_host host;
    struct play_agent *agent;
    struct play_metad *metad;
    struct play_worker *worker[CLUSTER_WORKERS];
    uint32_t off; /* so many faults keep its power off */
    struct play_event begin, begin_workers;
    struct play_intruder *intruder; /* a hostile worker; NULL: there is none here */
    uint64_t gone_ns;               /* since when there is no agent on it; 0: there is one */
    uint64_t behind_ns;             /* since when it has not heard what is set; 0: it has */
    uint64_t suspended_ns;          /* until when it was last suspended */
    uint64_t overflowed_ns; /* since when a completion queue of its process is in error; 0: none */
    uint64_t silent_ns;     /* since when its agent may hear that its target broke; 0: it did not */
    uint64_t thawed_ns;     /* until when its clocks last stood still */
    uint64_t steered_ns;    /* since when its agent could see that its clock is slewed */
    uint32_t steered_life;  /* that agent's incarnation */
    uint64_t doubted_ns;    /* since when its agent doubts its clock; 0: it does not */
    struct cluster_memory {
        const struct play_agent *of; /* NULL: nobody has looked */
        uint32_t pools;              /* as many as it ever had */
        uint64_t began_ns, bytes;    /* since it had these; that it had at the most, when young */
    } memory;
    struct cluster_stop {
        uint64_t over_ns; /* 0: there was none, or it was looked at */
        uint32_t life;    /* the incarnation of its agent that trusted its clock until then */
    } stop;
};

struct cluster {
    struct play_cluster_settings settings;
    struct base_prng random;
    struct sim_net *net;
    struct node *node; /* agents' first */
    uint32_t count;
    bool rc;
    uint32_t mix; /* of agents' transports, where they are hybrid (cluster_transports.c) */
    bool herds;   /* workers do something at once, now and then */
    uint32_t queue_pairs_ahead;
    bool batches;                  /* its workers post some */
    struct sim_device_attr device; /* what all devices are like */
    struct agent_limits window;
    struct sim_link good_link; /* of all, when nothing is wrong */
    uint64_t packet_life_ns;   /* of its network */
    uint64_t broke_ns;         /* when a connection broke last; 0: none did */
    bool suspends;             /* hosts are suspended with their devices, now and then */
    uint64_t calm_ns;          /* nothing goes wrong from some time before that on */
    uint64_t faults;           /* that have happened */
    struct play_event supervise, herd;
    struct play_worker_counts gone;   /* of workers that have ended */
    uint32_t tenants;                 /* of agents' files: workers are of them by turns */
    bool intruders;                   /* there are some, of one more tenant */
    char (*name)[PLAY_NAME];          /* of each host, for: */
    struct play_operators *operators; /* NULL: there are none */
    struct play_clients *clients;     /* of a store that all share; NULL: there are none */
    uint64_t changes;                 /* that they made */
};

extern struct cluster cluster;

enum {
    CLUSTER_FIRST_S = 5,  /* until something goes wrong */
    CLUSTER_CALM_S = 90,  /* in the end nothing does for so long */
    CLUSTER_LEASE_S = 15, /* of nodes */
    CLUSTER_GONE_S = 15   /* after so long nothing of workers that are gone is left in agents */
};

/* cluster_looks.c. One that has no agent: metaservers show it as live for its lease, and not for
 * long after that. Every second. */
void cluster_look_at_dead(struct node *n);
/* In the calm end: its agent has heard what the metaserver says that it follows. Every second. */
void cluster_look_at_follower(struct node *n);
/* No worker has been there for CLUSTER_GONE_S. */
void cluster_look_at_agents(void);

/* Its agent or metaserver ends, when a completion queue of its device has overflowed. An agent has
 * another DC target when the one before broke. Every second. */
void cluster_look_at_device(struct node *n);
/* Its clocks stand still from now until then. */
void cluster_note_stop(struct node *n, uint64_t until_ns);
/* Its agent has not much more memory than when it was young, whatever one that lies says to it.
 * Every second. */
void cluster_look_at_memory(struct node *n);
/* Its agent doubts a clock that was stopped or is slewed. Every second. */
void cluster_look_at_clock(struct node *n);
/* Whether its agent has doubted its clock for so long that nothing is out under a lease alone. */
bool cluster_doubts_clock(const struct node *n);

/* cluster_devices.c: cluster.device follows from the seed. */
void cluster_choose_devices(void);

/* cluster_transports.c: what cluster.mix is; and of an agent that begins now on that host. */
void cluster_choose_transports(void);
void cluster_give_transport(uint32_t number, struct play_agent_settings *s);

/* cluster_faults.c: those that its seed plans, but for what is left out. */
void cluster_begin_faults(struct play_cluster_result *result);

/* cluster_hooks.c */
struct sim_hooks cluster_hooks(void);

/* cluster_operators.c */
void cluster_choose_people(void);
void cluster_begin_operators(void);
void cluster_end_operators(void);

struct node *cluster_node(uint32_t number);
/* The host of the metaserver that has that place in the list of its agent. */
uint32_t cluster_metaserver_of(const struct node *n, uint32_t place);
/* Of a host's device. */
void cluster_gid(uint32_t number, uint8_t gid[16]);

/* So many millionths its clock is off, at most. */
static inline uint32_t cluster_clock_ppm(uint32_t number)
{
    return number < cluster.settings.nodes ? cluster.settings.clock_ppm : CLUSTER_CLOCK_PPM;
}
/* All that it has none of. */
void cluster_start_all(struct node *n);
void cluster_start_agent(struct node *n);
void cluster_start_metad(struct node *n);
void cluster_start_worker(struct node *n, uint32_t number);
/* Of one that is about to go: what it has counted. */
void cluster_note_worker(struct play_worker *w);

#endif
