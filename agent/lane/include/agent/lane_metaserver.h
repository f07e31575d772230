/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver, as a lane reaches it (agent/lane.h). */
#ifndef AGENT_LANE_METASERVER_H
#define AGENT_LANE_METASERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/table.h"

struct fab_ah;
struct fab_qp;

/* How to READ a metaserver's tables. */
struct lane_metaserver {
    struct fab_ah *ah; /* in the system PD; the lane's until DROP_PATH, which follows when a list
                        * comes without it */
    uint32_t dctn;
    uint64_t dc_key;
    struct fab_qp *qp; /* rc, instead: connected to it, in the system PD; the lane's until
                        * QP_BROKEN, which also follows when a list comes without it; and not again
                        * before one has come without it */
    struct schema_table_desc table;
    struct schema_table_desc names; /* log2_slots 0: it has none */
    uint32_t number;                /* the control side's: below LANE_MAX_METASERVERS */
    bool relayed; /* rc, and qp is NULL: it has given this lane none, and the pool's first lane,
                   * which it has given one, READs its tables for this one (WANT_RELAY) */
};

enum {
    LANE_RELAYS_OF_LANE = 8, /* that the first lane READs for another one at a time */
    LANE_RELAYS = 56         /* and those that it READs for all others of a pool */
};

/* A READ of a metaserver's table that the first lane posts for another one. */
struct lane_relay {
    uint64_t addr, generation; /* of the table, as rkey */
    uint64_t local;            /* the other lane's scratch memory, in the system PD */
    uint32_t rkey, lkey, bytes;
    uint32_t tag;             /* in the answer again */
    uint8_t lane, metaserver; /* the other one's number, and the metaserver's */
};

#endif
