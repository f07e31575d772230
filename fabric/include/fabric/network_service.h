/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a fab_service, as text: the same in every daemon's file. Any thread. */
#ifndef FABRIC_SERVICE_H
#define FABRIC_SERVICE_H

#include "base/error.h"
#include "fabric/fabric.h"

/* X(key, what it is when nothing is said, what it means in a line), for each setting. */
#define FAB_SERVICE_SETTINGS(X)                                                                    \
    X("service_level", "0", "of InfiniBand, 0 to 15; on Ethernet the priority, 0 to 7")            \
    X("traffic_class", "0", "0 to 255; of RoCE v2 DSCP * 4, and the two bits of ECN")              \
    X("flow_label", "auto", "1 to 1048575; auto: one for each connection")                         \
    X("udp_source_port", "auto", "of RoCE v2, 49152 to 65535; auto: as the flow label says")       \
    X("pkey_index", "0", "of InfiniBand: the partition, by its place in the port's table")         \
    X("mtu", "auto", "256, 512, 1024, 2048 or 4096 bytes at most; auto: what the port has")

/* Sets what that key names; *s is zeroed before the first. 0, or -EINVAL and what the value must
 * be, "must be a number from 0 to 15". */
int fab_service_set(struct fab_service *s, const char *key, const char *value,
                    struct base_errbuf *must);

/* "service level 3, traffic class 104, flow label auto, P_Key index 0, MTU auto". Returns out. */
enum { FAB_SERVICE_TEXT = 128 };
const char *fab_service_format(const struct fab_service *s, char out[FAB_SERVICE_TEXT]);

#endif
