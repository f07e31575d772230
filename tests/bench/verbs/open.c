/* SPDX-License-Identifier: Apache-2.0 */
/* The device, its port and its GID. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"
#include "private.h"

enum { MAX_GIDS = 256 };
static const uint8_t zero[16];

static bool link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The index in entries of the wanted GID; without one, of the first that is not `avoid`, an
 * address's rather than a link-local one. -1: there is none. */
static int find_gid(const struct ibv_gid_entry *entries, int count, bool ethernet,
                    const uint8_t wanted[16], const uint8_t avoid[16])
{
    int found = -1;
    for (int i = 0; i < count; i++) {
        const uint8_t *gid = entries[i].gid.raw;
        if (memcmp(gid, zero, 16) == 0 || entries[i].gid_index > UINT8_MAX ||
            (ethernet && entries[i].gid_type != IBV_GID_TYPE_ROCE_V2))
            continue;
        if (memcmp(wanted, zero, 16) != 0) {
            if (memcmp(gid, wanted, 16) == 0)
                return i;
            continue;
        }
        if (memcmp(gid, avoid, 16) == 0)
            continue;
        if (!link_local(gid))
            return i;
        if (found < 0)
            found = i;
    }
    return found;
}

/* The program takes the first GID that does, its peer the next, or the same where there is one. */
static int choose_gid(struct bench_program *p, const struct bench_choice *c, bool peer,
                      struct base_errbuf *err)
{
    struct ibv_gid_entry entries[MAX_GIDS];
    bool ethernet = p->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    int count = 0;
    ssize_t all = ibv_query_gid_table(p->context, entries, MAX_GIDS, 0);
    for (ssize_t i = 0; i < all; i++)
        if (entries[i].port_num == p->port)
            entries[count++] = entries[i];
    int index = find_gid(entries, count, ethernet, c->gid, zero);
    if (peer && index >= 0) {
        uint8_t own[16];
        memcpy(own, entries[index].gid.raw, 16);
        int other = find_gid(entries, count, ethernet, c->peer_gid, own);
        index = other >= 0 || memcmp(c->peer_gid, zero, 16) != 0 ? other : index;
    }
    if (index < 0)
        return base_err(err, -ENOENT,
                        "%s has no such GID (`ip addr add` makes one; `rdma link` lists ports)",
                        ibv_get_device_name(p->context->device));
    p->gid_index = (uint8_t)entries[index].gid_index;
    memcpy(p->gid, entries[index].gid.raw, 16);
    return 0;
}

static int choose_port(struct bench_program *p, struct base_errbuf *err)
{
    struct ibv_device_attr device;
    int status = ibv_query_device(p->context, &device);
    for (uint8_t port = 1; status == 0 && port <= device.phys_port_cnt; port++) {
        if (ibv_query_port(p->context, port, &p->port_attr) != 0 ||
            p->port_attr.state != IBV_PORT_ACTIVE)
            continue;
        p->port = port;
        return 0;
    }
    return base_err(err, -ENETDOWN, "no port of %s is active (is its network interface up?)",
                    ibv_get_device_name(p->context->device));
}

static int open_device(struct bench_program *p, const char *name, struct base_errbuf *err)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count), *device = NULL;
    for (int i = 0; devices != NULL && i < count && device == NULL; i++)
        if (name == NULL || strcmp(name, ibv_get_device_name(devices[i])) == 0)
            device = devices[i];
    errno = 0;
    if (device != NULL)
        p->context = ibv_open_device(device);
    int status = errno != 0 ? -errno : -EIO;
    if (devices != NULL)
        ibv_free_device_list(devices);
    if (p->context != NULL)
        return 0;
    if (device != NULL)
        return base_err(err, status, "the RDMA device cannot be opened: %s", strerror(-status));
    if (count > 0)
        return base_err(err, -ENODEV, "there is no RDMA device %.60s (`rdma link` lists them)",
                        name);
    return base_err(err, -ENODEV,
                    "there is no RDMA device on this host, so there is nothing to measure (load "
                    "its driver; without an RNIC, SoftRoCE: `modprobe rdma_rxe; rdma link add "
                    "rxe0 type rxe netdev NIC`)");
}

int bench_program_open(const struct bench_choice *c, bool peer, uint64_t *step_ns,
                       struct bench_program **out, struct base_errbuf *err)
{
    uint64_t unused[BENCH_STEPS];
    struct bench_program *p = calloc(1, sizeof *p);
    if (p == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    if (step_ns == NULL)
        step_ns = unused;
    base_clock_fast_init(&p->clock);
    p->buffer = mmap(NULL, BENCH_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p->buffer == MAP_FAILED) {
        free(p);
        return base_err(err, -ENOMEM, "out of memory");
    }
    uint64_t begin = base_clock_fast_ns(&p->clock);
    int status = open_device(p, c->device, err);
    if (status == 0)
        status = choose_port(p, err);
    if (status == 0)
        status = choose_gid(p, c, peer, err);
    uint64_t opened = base_clock_fast_ns(&p->clock);
    if (status == 0 && (p->pd = ibv_alloc_pd(p->context)) == NULL)
        status = base_err(err, -errno, "no protection domain: %s", strerror(errno));
    step_ns[BENCH_DEVICE] = opened - begin;
    step_ns[BENCH_PD] = base_clock_fast_ns(&p->clock) - opened;
    if (status != 0) {
        bench_program_close(p);
        return status;
    }
    *out = p;
    return 0;
}

void bench_program_close(struct bench_program *p)
{
    if (p == NULL)
        return;
    if (p->pd != NULL)
        (void)ibv_dealloc_pd(p->pd);
    if (p->context != NULL)
        (void)ibv_close_device(p->context);
    munmap(p->buffer, BENCH_BUFFER_BYTES);
    free(p);
}

const char *bench_program_device(const struct bench_program *p)
{
    return ibv_get_device_name(p->context->device);
}

const uint8_t *bench_program_gid(const struct bench_program *p)
{
    return p->gid;
}
