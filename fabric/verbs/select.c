/* SPDX-License-Identifier: Apache-2.0 */
/* Which device, which port, which GID. On Ethernet a GID of RoCE v2, the kind that is routed; an
 * address's before a link-local one, which no other host can be told to use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "verbs/verbs.h"

enum { MAX_GIDS = 1024, MAX_REASON = 256 };

/* Why the devices that were looked at did not do, for the sentence. */
struct reasons {
    char text[MAX_REASON];
    int status;
};

static void add_reason(struct reasons *r, int status, const char *device, const char *why)
{
    size_t at = strlen(r->text);
    snprintf(r->text + at, sizeof r->text - at, "%s%s%s%s", at != 0 ? "; " : "", device,
             device[0] != '\0' ? ": " : "", why);
    r->status = status;
}

/* The names of all devices, for the sentence. */
static void list_names(struct ibv_device **devices, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; devices[i] != NULL && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i != 0 ? ", " : "",
                               ibv_get_device_name(devices[i]));
}

/* 0: of no use. A global address is worth more than a link-local one. */
static int worth(const struct ibv_gid_entry *e, bool ethernet, const uint8_t wanted[16])
{
    static const uint8_t zero[16];
    if (memcmp(e->gid.raw, zero, sizeof zero) == 0 ||
        (ethernet && e->gid_type != IBV_GID_TYPE_ROCE_V2) || e->gid_index > UINT8_MAX)
        return 0;
    if (memcmp(wanted, zero, sizeof zero) != 0)
        return memcmp(e->gid.raw, wanted, sizeof zero) == 0;
    return ethernet && e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

/* The first of the most useful GIDs of a port. 0 or -ENOENT. */
static int choose_gid(struct verbs_choice *c, const uint8_t wanted[16])
{
    int best = 0;
    struct ibv_gid_entry *entries = calloc(MAX_GIDS, sizeof *entries);
    if (entries == NULL)
        return -ENOMEM;
    ssize_t n = ibv_query_gid_table(c->context, entries, MAX_GIDS, 0);
    for (ssize_t i = 0; i < n; i++) {
        if (entries[i].port_num != c->port)
            continue;
        int w = worth(&entries[i], c->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET, wanted);
        if (w <= best)
            continue;
        best = w;
        memcpy(c->gid, entries[i].gid.raw, 16);
        c->sgid_index = (uint8_t)entries[i].gid_index;
    }
    free(entries);
    return best != 0 ? 0 : -ENOENT;
}

/* One open device: 0 when a port of it does. */
static int choose_port(struct verbs_choice *c, const struct kedge_fab_open_attr *attr,
                       const char *name, struct reasons *r)
{
    struct ibv_device_attr device;
    char why[120];
    int status = ibv_query_device(c->context, &device);
    if (status != 0) {
        add_reason(r, -status, name, "the device does not answer");
        return -status;
    }
    int first = attr->port != 0 ? attr->port : 1;
    int last = attr->port != 0 ? attr->port : device.phys_port_cnt;
    status = -ENOENT;
    for (int port = first; port <= last; port++) {
        if (port > device.phys_port_cnt ||
            ibv_query_port(c->context, (uint8_t)port, &c->port_attr) != 0) {
            snprintf(why, sizeof why, "it has no port %d, but %d", port, device.phys_port_cnt);
            add_reason(r, -ENOENT, name, why);
            continue;
        }
        c->port = (uint8_t)port;
        if (c->port_attr.state != IBV_PORT_ACTIVE) {
            snprintf(why, sizeof why, "port %d is %s (is its network interface up?)", port,
                     ibv_port_state_str(c->port_attr.state));
            add_reason(r, status = -ENETDOWN, name, why);
            continue;
        }
        if (choose_gid(c, attr->gid) == 0)
            return 0;
        snprintf(why, sizeof why,
                 "port %d has no such RoCE v2 GID (an address makes one: `ip addr add`; `rdma "
                 "link` and show_gids list them)",
                 port);
        add_reason(r, status = -ENOENT, name, why);
    }
    return status;
}

static int try_device(struct ibv_device *device, const struct kedge_fab_open_attr *attr,
                      struct verbs_choice *c, struct reasons *r)
{
    const char *name = ibv_get_device_name(device);
    char why[120];
    if (device->transport_type != IBV_TRANSPORT_IB) {
        add_reason(r, -ENOTSUP, name, "it is neither InfiniBand nor RoCE");
        return -ENOTSUP;
    }
    c->context = ibv_open_device(device);
    if (c->context == NULL) {
        int status = errno != 0 ? -errno : -EIO;
        snprintf(why, sizeof why, "cannot be opened: %s (may this user use /dev/infiniband?)",
                 strerror(-status));
        add_reason(r, status, name, why);
        return status;
    }
    int status = choose_port(c, attr, name, r);
    if (status != 0) {
        (void)ibv_close_device(c->context);
        c->context = NULL;
    }
    return status;
}

int verbs_select(const struct kedge_fab_open_attr *attr, struct verbs_choice *out,
                 struct kedge_errbuf *err)
{
    struct reasons r = {.status = -ENODEV};
    struct verbs_choice c = {.context = NULL};
    char names[200];
    int count = 0;
    bool found = false;
    errno = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    if (devices == NULL || count == 0) {
        if (devices != NULL)
            ibv_free_device_list(devices);
        return kedge_err(err, -ENODEV,
                         "there is no RDMA device on this host (load its driver; without an RNIC, "
                         "SoftRoCE: `modprobe rdma_rxe; rdma link add rxe0 type rxe netdev NIC`)");
    }
    list_names(devices, names, sizeof names);
    for (int i = 0; i < count && c.context == NULL; i++) {
        if (attr->device != NULL && strcmp(attr->device, ibv_get_device_name(devices[i])) != 0)
            continue;
        found = true;
        (void)try_device(devices[i], attr, &c, &r);
    }
    ibv_free_device_list(devices);
    if (!found)
        return kedge_err(err, -ENODEV, "there is no RDMA device called %.60s; there are: %s",
                         attr->device, names);
    if (c.context == NULL)
        return kedge_err(err, r.status, "no RDMA port can be used: %s", r.text);
    *out = c;
    return 0;
}
