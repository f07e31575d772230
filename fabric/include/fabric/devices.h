/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA devices of this host as the verbs provider sees them: each port, each GID, which of them
 * it would open, and why none of the others. For people: `kedge-agentd --probe` prints it.
 *
 * The list and the provider's own choice come from one function, so that they agree. In the library
 * kedge_fabric_verbs, which kedge_fabric_providers brings along. */
#ifndef FABRIC_DEVICES_H
#define FABRIC_DEVICES_H

#include "fabric/fabric.h"

/* One GID; or a port without any (gid_index -1); or a device none of whose ports was looked at
 * (port 0). */
struct fab_candidate {
    char device[64];
    char driver[32];   /* the kernel's; "" if it does not say */
    char firmware[64]; /* "" if the device was not opened, or does not say */
    uint32_t vendor_id, part_id;
    uint8_t port;
    char link_layer[16]; /* "Ethernet", "InfiniBand" */
    char state[24];      /* "PORT_ACTIVE" */
    char rate[48];       /* as the kernel says it: "100 Gb/sec (4X EDR)" */
    int gid_index;
    uint8_t gid[16];
    char gid_kind[16]; /* "RoCE v2", "RoCE v1", "InfiniBand" */
    char netdev[16];   /* the GID's network interface, or "" */
    bool chosen;
    char why[200]; /* a sentence without a full stop: why it was chosen, or was not */
};

struct fab_devices {
    struct fab_candidate *item; /* owned: fab_devices_fini() */
    uint32_t count;
    bool incomplete; /* memory ran out; the choice is right all the same */
};

/* Opens every device in turn and closes it again. 0, and one of the list is chosen; or what opening
 * would fail with, and its sentence. *out is filled in either case. Any thread; blocks. */
int fab_devices_list(const struct fab_open_attr *attr, struct fab_devices *out,
                     struct base_errbuf *err);
void fab_devices_fini(struct fab_devices *devices);

#endif
