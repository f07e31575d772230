/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/grh.h"

#include <string.h>

enum {
    FROM = 8,
    TO = 24,
    IPV4 = 20, /* where that header is */
    IPV4_FROM = IPV4 + 12,
    IPV4_TO = IPV4 + 16,
    IPV4_FIRST = 4 << 4 | 5 /* the version, and five words: RoCE has no options */
};

static bool is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    return memcmp(gid, mapped, sizeof mapped) == 0;
}

/* Either form is taken between IPv4 addresses, since RoCE v1 has the other one; a packet of one
 * form never reads as the other with the receiver's own address at its place, unless that is how
 * the receiver's address is in both. */
bool fab_grh_is(const uint8_t grh[FAB_GRH_BYTES], const uint8_t from[16], const uint8_t to[16])
{
    if (is_ipv4(from) && is_ipv4(to) && grh[IPV4] == IPV4_FIRST &&
        memcmp(grh + IPV4_FROM, from + 12, 4) == 0 && memcmp(grh + IPV4_TO, to + 12, 4) == 0)
        return true;
    return grh[0] >> 4 == 6 && memcmp(grh + FROM, from, 16) == 0 && memcmp(grh + TO, to, 16) == 0;
}
