/* SPDX-License-Identifier: Apache-2.0 */
/* The port of the stand-in: its table of P_Keys. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_PORT_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_PORT_H

#include <endian.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum { FAKE_PKEYS = 8 };

static struct {
    uint16_t count, at[FAKE_PKEYS];
} fake_pkeys;

static int fake_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
    (void)context, (void)port;
    *out = (struct ibv_port_attr){.pkey_tbl_len = fake_pkeys.count};
    return 0;
}

static int fake_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *out)
{
    (void)context, (void)port;
    if (index >= fake_pkeys.count)
        return -1;
    *out = htobe16(fake_pkeys.at[index]);
    return 0;
}

#define FAKE_PORT_CALLS .query_port = fake_query_port, .query_pkey = fake_query_pkey

#endif
