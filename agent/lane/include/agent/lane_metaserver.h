/* SPDX-License-Identifier: Apache-2.0 */
/* A metaserver, as a lane reaches it (agent/lane.h). */
#ifndef AGENT_LANE_METASERVER_H
#define AGENT_LANE_METASERVER_H

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
};

#endif
