/* SPDX-License-Identifier: Apache-2.0 */
/* What a card is like: one row of a table. Costs are in picoseconds, since a card that serves 138
 * million requests a second takes 7.2 ns for each. */
#ifndef MODEL_PRESET_H
#define MODEL_PRESET_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/model.h"

enum model_kind { MODEL_READ, MODEL_WRITE, MODEL_ATOMIC, MODEL_SEND, MODEL_KINDS };

enum { MODEL_MAX_PUS = 32, MODEL_PAGE = 4096 };

struct model_preset {
    const char *name, *about;
    /* PCIe, each way. */
    uint32_t pcie_bytes_per_us;
    uint32_t request_header, completion_header; /* bytes of a TLP besides its data */
    uint32_t completion_bytes;                  /* that the answer to a DMA read is cut into */
    uint32_t pcie_read_ps;                      /* there and back */
    uint32_t pcie_write_ps;                     /* one way: a doorbell, or a CQE */
    /* Out-bound: a queue pair is bound to one of so many processing units, behind which all share
     * an engine. */
    uint32_t pus, pu_ps;
    uint32_t out_ps[MODEL_KINDS];
    uint32_t busy_qps, busy_qp_ps; /* queue pairs with something out that cost nothing, and what
                                    * each more costs each request; 0: nothing does */
    uint32_t inflight_ops[MODEL_KINDS]; /* with more requests out than that it stands still for
                                         * WQEs of that kind; 0: never. No count of what its cache
                                         * has room for: that is less */
    uint64_t inflight_bytes;            /* the same of bytes, for their pages' addresses */
    uint32_t miss_ps;                   /* for which it stands still, to fetch one of these again */
    uint32_t piece_ps; /* that the engine takes more for each piece but the first */
    bool has_dc;
    uint32_t dc_latency_ps; /* that a request of a DCI takes more */
    uint32_t reconnect_ps;  /* that one to another target takes besides */
    /* In-bound. */
    uint32_t in_ps[MODEL_KINDS];    /* for a connected queue pair, or a datagram */
    uint32_t in_dc_ps[MODEL_KINDS]; /* for a DC target */
    uint32_t in_empty_send_ps;      /* a SEND without payload */
    uint32_t atomic_slots;          /* addresses that are locked each for itself, by their last
                                     * bits */
    uint32_t atomic_ps;             /* for which a lock is held */
    uint32_t qp_cache;              /* queue pairs whose contexts it keeps; 0: of all */
    /* The wire. */
    uint32_t wire_bytes_per_us, packet_bytes, packet_header;
    uint32_t wire_ps; /* one way, with what is fixed at both ends */
};

#endif
