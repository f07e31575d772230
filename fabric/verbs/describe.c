/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/describe.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/verbs.h"

static void read_driver(const char *ibdev_path, char out[static 32])
{
    char path[320], target[256];
    snprintf(path, sizeof path, "%.256s/device/driver", ibdev_path);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(out, 32, "%.31s", slash != NULL ? slash + 1 : target);
}

void verbs_describe_driver(const char *ibdev_path, struct fab_candidate *out)
{
    read_driver(ibdev_path, out->driver);
}

/* mlx4's driver takes the size of the pages that a registration is translated by, up to 2 GiB, from
 * where its memory is in the process and in the host, and lets it begin at whatever I/O virtual
 * address it is told: one that differs from the process's below that size leads to physical memory
 * that is not the region's (mlx4_ib_reg_user_mr and mlx4_ib_umem_calc_optimal_mtt_size of Linux).
 * Addresses that peers are given may differ so: they go by the region's size (fabric/iova.h). */
bool verbs_describe_refusal(const struct fab_candidate *device, char *why, size_t size)
{
    if (strcmp(device->driver, "mlx4_core") != 0)
        return false;
    snprintf(
        why, size,
        "with mlx4 (ConnectX-3 and before) a region at an address of its own may lead to "
        "memory that is not its own: set `device` in [fabric] to one of another driver, or use "
        "SoftRoCE");
    return true;
}

bool verbs_describe_is_mlx5(const char *ibdev_path)
{
    char driver[32] = "";
    read_driver(ibdev_path, driver);
    return strncmp(driver, "mlx5_core", strlen("mlx5_core")) == 0; /* or mlx5_core.sf */
}

/* What libraries and devices are known to do, by their source or their maker's words. libmlx5 and
 * librxe take the request from the completion itself; libirdma and libbnxt_re take the oldest of
 * which they have said nothing yet. rxe's responder takes one packet after the other, and none
 * behind one that it has refused. ConnectX from 5 on can place the data of WRITEs in the order in
 * which packets come (out-of-order data placement, for adaptive routing), and of other devices
 * nobody has said that they do not. */
void verbs_describe_errors(const char *ibdev_path, bool is_rxe, struct fab_caps *caps)
{
    caps->names_culprit = is_rxe || verbs_describe_is_mlx5(ibdev_path);
    caps->writes_in_order = is_rxe;
}

void verbs_describe_device(const struct ibv_device_attr *device, struct fab_candidate *out)
{
    snprintf(out->firmware, sizeof out->firmware, "%s", device->fw_ver);
    out->vendor_id = device->vendor_id;
    out->part_id = device->vendor_part_id;
    if (out->driver[0] == '\0' && device->vendor_id == VERBS_RXE_VENDOR)
        snprintf(out->driver, sizeof out->driver, "rdma_rxe");
}

void verbs_describe_port(const struct ibv_port_attr *port, struct fab_candidate *out)
{
    char path[160];
    snprintf(out->link_layer, sizeof out->link_layer, "%s",
             port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    snprintf(out->state, sizeof out->state, "%s", ibv_port_state_str(port->state));
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/rate", out->device, out->port);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, out->rate, sizeof out->rate - 1);
    close(fd);
    out->rate[n > 0 ? n : 0] = '\0';
    out->rate[strcspn(out->rate, "\n")] = '\0';
}

/* ConnectX and ConnectX-2 wait for about half a second at the least, unless their firmware was
 * built with another value (RAMCloud's notes on its NICs); 2^17 is the number that says as much.
 * rxe waits for whole ticks of the kernel, one at least (rxe_qp_from_attr()), of which the first
 * may be any part, and which are 10 ms long at the most. */
uint64_t verbs_describe_timeout_least_ns(uint32_t vendor, uint32_t part)
{
    enum { CONNECTX_FIRST = 25408, CONNECTX_2_LAST = 26999 }; /* parts */
    static const uint64_t TICK_NS = 10000000;
    if (vendor == VERBS_RXE_VENDOR)
        return 2 * TICK_NS;
    if (vendor == VERBS_MELLANOX_VENDOR && part >= CONNECTX_FIRST && part <= CONNECTX_2_LAST)
        return 4096ull << 17;
    return 0;
}

int verbs_describe_numa_node(const char *ibdev_path)
{
    char path[320], text[16] = "";
    long node = -1;
    snprintf(path, sizeof path, "%.256s/device/numa_node", ibdev_path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fgets(text, sizeof text, file) != NULL)
        node = strtol(text, NULL, 10);
    (void)fclose(file);
    return node >= 0 && node < 4096 ? (int)node : -1;
}

void verbs_describe_gid(const struct ibv_gid_entry *entry, struct fab_candidate *out)
{
    out->gid_index = (int)entry->gid_index;
    memcpy(out->gid, entry->gid.raw, 16);
    snprintf(out->gid_kind, sizeof out->gid_kind, "%s",
             entry->gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
             : entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                       : "InfiniBand");
    if (entry->ndev_ifindex == 0 || if_indextoname(entry->ndev_ifindex, out->netdev) == NULL)
        out->netdev[0] = '\0';
}
