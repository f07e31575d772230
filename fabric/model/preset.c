/* SPDX-License-Identifier: Apache-2.0 */
/* The cards. Each figure's source, and what is derived, is in docs/fabric.md; the tests of
 * tests/unit/fabric/test_model_presets.c hold each card to what its paper measured end to end.
 *
 * Derived is what no paper says, and what was chosen so that an end result of theirs comes out. */
#include "model/preset.h"

#include <string.h>

enum { PCIE3_LANE_KB_PER_S = 984600 };
#define PCIE3(lanes) ((lanes)*PCIE3_LANE_KB_PER_S / 1000)

static const struct model_preset presets[] = {
    {
        /* Three cards of that name: RFP's of 40 Gb/s; RDMAbox's, inflight_bytes; the design
         * guidelines' of 56 Gb/s, which is faster: atomics, pcie_read_ps and inflight_ops. */
        .name = "connectx-3",
        .about = "ConnectX-3, 40 Gb/s, as RFP measured it, with figures of two others",
        .pcie_bytes_per_us = PCIE3(8),
        .request_header = 26,
        .completion_header = 22,
        .completion_bytes = 128,
        .pcie_read_ps = 370000, /* derived */
        .pcie_write_ps = 60000, /* derived */
        .pus = 4,               /* derived */
        .pu_ps = 752000,        /* derived */
        /* derived */
        .out_ps = {[MODEL_READ] = 430000,
                   [MODEL_WRITE] = 430000,
                   [MODEL_ATOMIC] = 430000,
                   [MODEL_SEND] = 430000},
        .busy_qps = 4,       /* derived */
        .busy_qp_ps = 55000, /* derived */
        /* derived */
        .inflight_ops = {[MODEL_READ] = 128,
                         [MODEL_WRITE] = 128, /* no paper has a figure of any but READs */
                         [MODEL_ATOMIC] = 128,
                         [MODEL_SEND] = 128},
        .inflight_bytes = 7 << 20,
        .miss_ps = 370000, /* derived */
        .piece_ps = 88810, /* derived */
        /* ATOMIC and SEND: derived */
        .in_ps = {[MODEL_READ] = 88810,
                  [MODEL_WRITE] = 88810,
                  [MODEL_ATOMIC] = 88810,
                  [MODEL_SEND] = 88810},
        .in_empty_send_ps = 88810, /* derived */
        .atomic_slots = 1,
        .atomic_ps = 370000,
        .qp_cache = 256,           /* derived */
        .wire_bytes_per_us = 3400, /* derived */
        .packet_bytes = 2048,      /* derived */
        .packet_header = 56,       /* derived */
        .wire_ps = 60000,          /* derived */
    },
    {
        .name = "connectx-4",
        .about = "ConnectX-4, 100 Gb/s, as KRCore measured it",
        .pcie_bytes_per_us = PCIE3(16),
        .request_header = 26,
        .completion_header = 22,
        .completion_bytes = 128,
        .pcie_read_ps = 446000,  /* derived */
        .pcie_write_ps = 223000, /* derived */
        .pus = 20,               /* derived */
        .pu_ps = 120000,         /* derived */
        /* derived */
        .out_ps = {[MODEL_READ] = 11364,
                   [MODEL_WRITE] = 6369,
                   [MODEL_ATOMIC] = 11364,
                   [MODEL_SEND] = 6369},
        /* derived */
        .inflight_ops = {[MODEL_READ] = 7168, [MODEL_ATOMIC] = 7168},
        .miss_ps = 446000, /* derived */
        .piece_ps = 7246,  /* derived */
        .has_dc = true,
        .reconnect_ps = 90000, /* derived */
        /* ATOMIC and SEND: derived */
        .in_ps = {[MODEL_READ] = 7246,
                  [MODEL_WRITE] = 6897,
                  [MODEL_ATOMIC] = 19231,
                  [MODEL_SEND] = 12195},
        /* likewise */
        .in_dc_ps = {[MODEL_READ] = 8475,
                     [MODEL_WRITE] = 7576,
                     [MODEL_ATOMIC] = 20460,
                     [MODEL_SEND] = 13424},
        .in_empty_send_ps = 8197, /* derived */
        .atomic_slots = 4096,     /* derived */
        .atomic_ps = 446000,      /* derived */
        .qp_cache = 1024,         /* derived */
        .wire_bytes_per_us = 12500,
        .packet_bytes = 4096,   /* derived */
        .packet_header = 56,    /* derived */
        .wire_ps = 545000,      /* derived */
        .dc_latency_ps = 80000, /* derived */
    },
    {
        .name = "connect-ib",
        .about = "Connect-IB, 2 x 56 Gb/s, as the design guidelines measured it",
        .pcie_bytes_per_us = PCIE3(16),
        .request_header = 26,
        .completion_header = 22,
        .completion_bytes = 128,
        .pcie_read_ps = 446000,  /* derived */
        .pcie_write_ps = 223000, /* derived */
        .pus = 20,               /* derived */
        .pu_ps = 120000,         /* derived */
        /* WRITE and ATOMIC: derived */
        .out_ps = {[MODEL_READ] = 11364,
                   [MODEL_WRITE] = 6369,
                   [MODEL_ATOMIC] = 11364,
                   [MODEL_SEND] = 6369},
        /* derived */
        .inflight_ops = {[MODEL_READ] = 7168, [MODEL_ATOMIC] = 7168},
        .miss_ps = 446000, /* derived */
        .piece_ps = 8224,  /* derived */
        .has_dc = true,
        .reconnect_ps = 90000, /* derived */
        .in_ps = {[MODEL_READ] = 8224,
                  [MODEL_WRITE] = 8197,
                  [MODEL_ATOMIC] = 19231,
                  [MODEL_SEND] = 12195},
        /* derived */
        .in_dc_ps = {[MODEL_READ] = 9453,
                     [MODEL_WRITE] = 9426,
                     [MODEL_ATOMIC] = 20460,
                     [MODEL_SEND] = 13424},
        .in_empty_send_ps = 8197,
        .atomic_slots = 4096,
        .atomic_ps = 446000,
        .qp_cache = 256, /* derived */
        .wire_bytes_per_us = 14000,
        .packet_bytes = 4096,   /* derived */
        .packet_header = 56,    /* derived */
        .wire_ps = 545000,      /* derived */
        .dc_latency_ps = 80000, /* derived */
    },
};

const struct model_preset *fab_model_find(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

const char *fab_model_names(void)
{
    return "connectx-3, connectx-4 or connect-ib";
}

bool fab_model_has_dc(const struct model_preset *preset)
{
    return preset->has_dc;
}

const char *fab_model_name(const struct model_preset *preset)
{
    return preset->name;
}
