/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated device is like, and what goes wrong with one (sim.h). */
#ifndef FABRIC_SIM_ATTR_H
#define FABRIC_SIM_ATTR_H

#include "fabric/fabric.h"

/* Whether an implied NAK (IBTA 9.9.2.2.1) is one of retry_cnt tries: devices differ. */
enum sim_implied {
    SIM_IMPLIED_BY_SEED,
    SIM_IMPLIED_COUNTS,
    SIM_IMPLIED_FREE, /* nothing but a time-out ends them */
};

struct sim_device_attr {
    uint32_t node;       /* below 2^20; a node may have several devices */
    uint8_t gid[16];     /* zero: one that follows from the node and the seed */
    uint32_t transports; /* of enum fab_transport; 0: all */
    struct fab_service service;
    bool is_infiniband;  /* it has a LID and no need of a GRH */
    bool keys_return;    /* the keys of a region that is gone are the next one's, as mlx5's are */
    bool numbers_return; /* so are numbers of queue pairs; and packets of their former lives have
                          * numbers that are expected, if they come before caps.time_wait_ns is over
                          */
    bool late_writes;    /* when a request is refused, WRITEs behind it may be in memory, or parts
                          * of them (caps.writes_in_order) */
    bool nameless;       /* an error is said of the oldest request of which nothing was said, and
                          * what is behind that is flushed (caps.names_culprit) */
    bool no_atomics, no_fences;
    bool resets_are_final; /* as irdma's: INIT is refused after a RESET */
    bool no_clock;
    uint8_t timeout_stretch;      /* that it claims; 0: 4, the most that IBTA allows */
    uint8_t true_stretch;         /* how long its time-outs may be; 0: within what it claims, by the
                                   * seed */
    uint64_t timeout_least_ns;    /* no time-out is shorter */
    uint32_t max_inline, max_sge; /* 0: 256, 8 */
    uint8_t max_reads;            /* READs and atomics of a queue pair at a time; 0: 16, the most */
    uint32_t max_qp, max_mr;      /* 0: 65536 each */
    enum sim_implied implied;
    int32_t clock_ppm;      /* its clock gains so many millionths on the net's time */
    uint64_t piece_ns;      /* most from one piece of a request's bytes to the next; 0: 2 us */
    uint64_t slack_ns;      /* that it claims: from a doorbell until it is seen, at most; 0: 1 us */
    uint64_t true_slack_ns; /* how long that may be; 0: within what it claims, by the seed */
    uint64_t flush_ns; /* from a queue pair's end until what is out on it is flushed, at most; 0:
                        * 20 us. Until then the data of answers may go to memory */
    uint32_t deaf_ppm; /* of queue pairs, so many of a million: they never go to ERR when they are
                        * told to (-EIO) */
};

/* What goes wrong with a device. Rates are per million, 0 = never. */
struct sim_faults {
    uint64_t control_ns;       /* most that a control operation takes; 0: 20 us; */
    uint32_t control_slow_ppm; /* of which some take up to */
    uint64_t control_slow_ns;
    uint32_t create_refused_ppm; /* creations and registrations: -ENOMEM */
    uint32_t control_error_ppm;  /* others but frees: -EIO, and nothing happens; but half of a
                                  * queue pair's changes of state are carried out */
    uint32_t post_refused_ppm;   /* fab_post_send() of a request: -ENOMEM */
    uint32_t break_ppm;          /* of requests: their queue pair breaks where it stands */
    uint32_t flush_late_ppm;     /* of queue pairs that break: flush_ns is then */
    uint64_t flush_late_ns;
};

#endif
