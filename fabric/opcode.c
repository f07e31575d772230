/* SPDX-License-Identifier: Apache-2.0 */
#include "opcode.h"

const struct fab_opcode fab_opcodes[FAB_OPCODES] = {
    [IBV_WR_RDMA_WRITE] = {.known = true,
                           .can_inline = true,
                           .access = IBV_ACCESS_REMOTE_WRITE,
                           .completion = IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {.known = true,
                                    .can_inline = true,
                                    .takes_receive = true,
                                    .access = IBV_ACCESS_REMOTE_WRITE,
                                    .completion = IBV_WC_RDMA_WRITE},
    [IBV_WR_SEND] = {.known = true,
                     .in_datagrams = true,
                     .can_inline = true,
                     .is_send = true,
                     .takes_receive = true,
                     .completion = IBV_WC_SEND},
    [IBV_WR_SEND_WITH_IMM] = {.known = true,
                              .in_datagrams = true,
                              .can_inline = true,
                              .is_send = true,
                              .takes_receive = true,
                              .completion = IBV_WC_SEND},
    [IBV_WR_RDMA_READ] = {.known = true,
                          .access = IBV_ACCESS_REMOTE_READ,
                          .completion = IBV_WC_RDMA_READ},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {.known = true,
                                   .is_atomic = true,
                                   .bytes = 8,
                                   .access = IBV_ACCESS_REMOTE_ATOMIC,
                                   .completion = IBV_WC_COMP_SWAP},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {.known = true,
                                     .is_atomic = true,
                                     .bytes = 8,
                                     .access = IBV_ACCESS_REMOTE_ATOMIC,
                                     .completion = IBV_WC_FETCH_ADD},
};

const struct fab_opcode *fab_opcode_find(enum ibv_wr_opcode opcode)
{
    static const struct fab_opcode unknown;
    return (unsigned)opcode < FAB_OPCODES ? &fab_opcodes[opcode] : &unknown;
}
