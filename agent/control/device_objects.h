/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool has of the device. Control thread. */
#ifndef CONTROL_DEVICE_OBJECTS_H
#define CONTROL_DEVICE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "base/error.h"
#include "dci.h"
#include "fabric/fabric.h"
#include "fabric/placement.h"
#include "fabric/series.h"
#include "message_objects.h"
#include "schema/table.h"

struct connector;
struct fab;
struct fab_chan;
struct fab_cq;
struct fab_dct;
struct fab_mr;
struct fab_pd;
struct fab_srq;
struct world;

/* This node's regions, as peers READ them. */
struct agent_table {
    struct fab_mem memory;
    struct fab_mr *mr;
    _Atomic uint8_t *owners; /* of its slots, where several lanes write; or NULL */
    /* Each lane's, on lines of its own. */
    struct agent_table_lane {
        _Alignas(64) struct schema_table table;
    } lane[LANE_POOL_LANES];
};

/* How far it has come to be made. */
struct device_opening {
    struct fab_ctl ctl; /* the operation that is under way, or the last one */
    struct fab_series series;
    bool is_under_way;
    struct base_errbuf err; /* why it could not be */
};

/* What a pool has of the device: protection domains, queue pairs, the MR table that peers READ. */
struct agent_device {
    struct fab *fab; /* the agent's */
    struct device_opening opening;
    struct fab_placement placement;
    struct fab_pd *pd, *system_pd;
    struct fab_chan *chan;
    struct fab_cq *cq, *target_cq;
    struct fab_srq *srq; /* of the target: of messages, where there are some */
    struct agent_message_objects messages;
    struct fab_dct *dct;
    struct fab_dct *dct_before; /* of the same address, for peers that have not heard; or NULL */
    struct fab_mem scratch, small;
    struct fab_mr *scratch_mr, *scratch_system_mr, *small_mr;
    struct agent_table *table, *table_before;    /* before: until the lane has left it */
    bool rc;                                     /* else DC */
    bool hybrid;                                 /* not rc: with connections beside it */
    struct agent_dci dci[2 * LANE_MAX_DCIS + 1]; /* number 0 is the system's */
    uint32_t dcis;
    uint32_t addresses;     /* that the port has had, while this was open */
    uint64_t rest_until_ns; /* DC: the lane began with those that rest until then; 0: with others */
    enum ibv_mtu path_mtu;  /* DC: of those from number 1 on: what the port has; but for */
    enum ibv_mtu narrow_mtu; /* those for endpoints that take less; 0: none yet */
    enum ibv_mtu dct_mtu;    /* DC: of the target, as its record says */
    uint32_t max_spares;     /* DC: that there is room for */
    uint32_t sq_depth;
    struct connector *connector; /* rc, hybrid */
    uint32_t ud_qpn;             /* rc: the number by which it hears, as others are told */
    uint32_t mr_log2;            /* of the table's slots */
    uint64_t bound_ns;           /* of the lease rule, from the queue pairs' attributes */
    uint64_t leaves_ns;          /* while all of it is destroyed: for so long after each queue pair
                                  * has gone others may still send to its number */
};

/* What an error of the device means, with the limit of locked memory or of the rdma cgroup where
 * that may be it. Returns status. */
int agent_device_why(struct world *w, int status, struct base_errbuf *err);

#endif
