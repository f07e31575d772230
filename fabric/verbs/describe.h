/* SPDX-License-Identifier: Apache-2.0 */
/* Private to fabric/verbs: devices, ports and GIDs in the words of fabric/devices.h. Any thread. */
#ifndef VERBS_DESCRIBE_H
#define VERBS_DESCRIBE_H

#include "fabric/devices.h"

/* Each fills its part of *out, whose device is set; a port's needs the port as well. ibdev_path is
 * the device's in sysfs, as libibverbs gives it (struct ibv_device). */
void verbs_describe_driver(const char *ibdev_path, struct fab_candidate *out);
/* Whether Kedge does not use devices of this one's driver: then the reason and what to do instead
 * is in why. Asked before the device is opened. */
bool verbs_describe_refusal(const struct fab_candidate *device, char *why, size_t size);
/* Whether libmlx5 is what libibverbs loads for it. */
bool verbs_describe_is_mlx5(const char *ibdev_path);
/* names_culprit and writes_in_order. */
void verbs_describe_errors(const char *ibdev_path, bool is_rxe, struct fab_caps *caps);
/* caps.timeout_least_ns: 0 where nothing is known. */
uint64_t verbs_describe_timeout_least_ns(uint32_t vendor, uint32_t part);
void verbs_describe_device(const struct ibv_device_attr *device, struct fab_candidate *out);
void verbs_describe_port(const struct ibv_port_attr *port, struct fab_candidate *out);
/* Of the device in sysfs; -1: it says none. */
int verbs_describe_numa_node(const char *ibdev_path);
void verbs_describe_gid(const struct ibv_gid_entry *entry, struct fab_candidate *out);

#endif
