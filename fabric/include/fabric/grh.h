/* SPDX-License-Identifier: Apache-2.0 */
/* The 40 bytes in front of a datagram that was received (wc_flags IBV_WC_GRH), and whom they name.
 *
 * A device writes them from the packet, whose source address the sender's device wrote: of all that
 * a datagram says of its sender this alone is not the sender's own word. Pure. */
#ifndef FABRIC_GRH_H
#define FABRIC_GRH_H

#include <stdbool.h>
#include <stdint.h>

enum { FAB_GRH_BYTES = 40 };

/* Whether it came from one GID to another. The form is an IPv6 header's (8.3); between two IPv4
 * addresses, over RoCE v2, the last 20 bytes are an IPv4 header, and before it is anything (annex
 * A17.4.5.2). */
bool fab_grh_is(const uint8_t grh[FAB_GRH_BYTES], const uint8_t from[16], const uint8_t to[16]);

#endif
