/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/operation.h"

#include "schema/record.h"
#include "schema/session.h"

const struct operation lane_operations[OPERATIONS] = {
    [SCHEMA_OP_READ] = {.kind = OPERATION_POST,
                        .order = ORDER_OVERTAKEN,
                        .repeatable = true,
                        .merges = true,
                        .access = SCHEMA_RECORD_READ,
                        .completion = IBV_WC_RDMA_READ,
                        .opcode = IBV_WR_RDMA_READ},
    /* Done twice it can undo a later one. */
    [SCHEMA_OP_WRITE] = {.kind = OPERATION_POST,
                         .order = ORDER_HOLDS_BACK,
                         .can_inline = true,
                         .merges = true,
                         .access = SCHEMA_RECORD_WRITE,
                         .completion = IBV_WC_RDMA_WRITE,
                         .opcode = IBV_WR_RDMA_WRITE},
    [SCHEMA_OP_CAS] = {.kind = OPERATION_POST,
                       .order = ORDER_OVERTAKEN,
                       .bytes = 8,
                       .alignment = 8,
                       .access = SCHEMA_RECORD_ATOMIC,
                       .completion = IBV_WC_COMP_SWAP,
                       .opcode = IBV_WR_ATOMIC_CMP_AND_SWP},
    [SCHEMA_OP_FAA] = {.kind = OPERATION_POST,
                       .order = ORDER_OVERTAKEN,
                       .bytes = 8,
                       .alignment = 8,
                       .access = SCHEMA_RECORD_ATOMIC,
                       .completion = IBV_WC_FETCH_ADD,
                       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD},
    [SCHEMA_OP_BIND] = {.kind = OPERATION_BIND},
    [SCHEMA_OP_DESTROY] = {.kind = OPERATION_DESTROY},
    [SCHEMA_OP_CONNECT] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_REG_MR] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_DEREG_MR] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_IMPORT] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_MR_STATUS] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_LOOKUP] = {.kind = OPERATION_CONTROL, .has_name = true},
    [SCHEMA_OP_UNIMPORT] = {.kind = OPERATION_CONTROL},
    [SCHEMA_OP_IMPORT_MANY] = {.kind = OPERATION_CONTROL, .has_grants = true},
};
