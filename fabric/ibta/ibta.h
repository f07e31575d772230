/* SPDX-License-Identifier: Apache-2.0 */
/* What the InfiniBand specification says in tables, for providers that are devices themselves
 * (soft, sim), and of regions for verbs too, since not every driver holds them to it. Pure. */
#ifndef IBTA_IBTA_H
#define IBTA_IBTA_H

#include "fabric/fabric.h"
#include "fabric/grh.h"
#include "opcode.h"

/* Whether verbs takes such a move: the states, and the attributes that it wants and allows
 * (10.3.1, table 91; for DCIs as mlx5's kernel driver has them). */
bool fab_ibta_allows_move(enum fab_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                          int mask);
/* Whether the values of those attributes can be meant, but for the address: what the port and the
 * device have, as rxe's driver (rxe_qp_chk_attr) and mlx5's (mlx5_ib_modify_qp) hold them to it. */
bool fab_ibta_takes_values(const struct fab_pd *pd, const struct ibv_qp_attr *attr, int mask);
/* Whether REG_MR can be meant: a piece of its memory that is not empty, access that makes sense
 * (who lets peers write writes himself), and an address at which any driver leads there and no
 * further (iova.h). */
bool fab_ibta_takes_region(const struct fab_ctl *ctl);
/* Whether an address has the service of its domain: a network whose switches drop what is in no
 * priority of theirs takes no other. */
bool fab_ibta_serves(const struct fab_pd *pd, const struct ibv_ah_attr *address);
/* Which P_Key a device of our own has at the place that the domain's service names, and where it
 * has one: its table is the default, and behind that one for each place. None where an Ethernet
 * port's only one is meant (annex A16.4.1). */
uint16_t fab_ibta_pkey(const struct fab_pd *pd);
void fab_ibta_find_pkey(uint16_t pkey, bool *there, uint16_t *index);
/* Of an error a completion says its request, its status, the vendor's code and its queue pair, and
 * nothing else that can be relied on (ibv_poll_cq(3); libmlx5 leaves the rest as the caller's array
 * had it): anything is there then, which these numbers alone decide. */
void fab_ibta_scramble(struct ibv_wc *wc);
/* How long a requester waits that was told to with that code (table 45). */
uint64_t fab_ibta_rnr_ns(uint8_t code);
/* The GRH before a datagram of so many bytes, with immediate data or without, as IPv6 has it (8.3):
 * its PayLen counts what comes behind it, from the BTH up to and with the ICRC (8.3.4). On Ethernet
 * it is an IPv4 header between two such addresses (grh.h), behind what reads as the other form. */
void fab_ibta_make_grh(uint8_t grh[FAB_GRH_BYTES], const struct fab_caps *caps,
                       const uint8_t from[16], const uint8_t to[16], uint32_t bytes, bool imm);

#endif
