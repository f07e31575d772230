/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the device, and what it can do. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "verbs/verbs_data.h"
#include "verbs/describe.h"
#include "verbs/objects.h"
#include "verbs/verbs.h"

enum { MOST_PRIORITY = 7 };

static uint32_t least_u32(uint64_t a, uint64_t b)
{
    uint64_t l = a < b ? a : b;
    return l < UINT32_MAX ? (uint32_t)l : UINT32_MAX;
}

/* What a driver says may be negative or absurd where it means "unlimited". */
static uint32_t positive_u32(int value)
{
    return value > 0 ? (uint32_t)value : 0;
}

/* Bytes in a millisecond: lanes at their speed, as numbered by IBTA's PortInfo (LinkWidthActive,
 * LinkSpeedActive and its extension). */
static uint64_t rate_of(const struct ibv_port_attr *p)
{
    static const uint64_t mbit[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
    static const uint64_t width[] = {1, 4, 8, 12, 2};
    uint64_t lanes = 1, speed = 0;
    for (unsigned i = 0; i < sizeof mbit / sizeof mbit[0]; i++)
        if (p->active_speed & 1u << i)
            speed = mbit[i];
    for (unsigned i = 0; i < sizeof width / sizeof width[0]; i++)
        if (p->active_width & 1u << i)
            lanes = width[i];
    return speed * lanes * 1000 / 8;
}

/* IBTA leaves the lifetime of a packet to the subnet manager, whose usual word is 18 (1.07 s); on
 * Ethernet nobody says it, and the kernel's connection manager takes 16 (268 ms). */
enum { LIFETIME_IB = 18, LIFETIME_ETHERNET = 16, LIFETIME_MOST = 31 };

static uint64_t time_wait_ns(const struct fab_caps *caps, const struct ibv_device_attr *d)
{
    const uint8_t delay =
        d->local_ca_ack_delay < LIFETIME_MOST ? d->local_ca_ack_delay : LIFETIME_MOST;
    return 2 * (4096ull << (caps->is_ethernet ? LIFETIME_ETHERNET : LIFETIME_IB)) +
           (4096ull << delay);
}

static void read_caps(struct fab_caps *caps, const struct verbs_choice *c,
                      const struct ibv_device_attr *d, uint32_t max_inline,
                      const struct fab_service *service)
{
    const struct ibv_port_attr *p = &c->port_attr;
    uint32_t sge_rd = positive_u32(d->max_sge_rd);
    *caps = (struct fab_caps){
        .transports = FAB_RC | FAB_UD,
        .max_qp = positive_u32(d->max_qp),
        .max_qp_wr = positive_u32(d->max_qp_wr),
        .max_sge = least_u32(positive_u32(d->max_sge), sge_rd != 0 ? sge_rd : UINT32_MAX),
        .max_inline = max_inline,
        .max_cqe = positive_u32(d->max_cqe),
        .max_srq_wr = positive_u32(d->max_srq_wr),
        .max_mr = positive_u32(d->max_mr),
        .max_mr_size = d->max_mr_size,
        .max_msg_size = p->max_msg_sz,
        .ud_payload = 128u << p->active_mtu,
        .max_rd_atomic = least_u32(
            least_u32(positive_u32(d->max_qp_rd_atom), positive_u32(d->max_qp_init_rd_atom)),
            UINT8_MAX),
        .sgid_index = c->sgid_index,
        .port_num = c->port,
        .lid = p->link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : p->lid,
        .mtu = verbs_port_mtu(p, service),
        .is_ethernet = p->link_layer == IBV_LINK_LAYER_ETHERNET,
        .atomics = d->atomic_cap != IBV_ATOMIC_NONE,
        .fences = d->vendor_id != VERBS_RXE_VENDOR,
        .posts_in_time = true,
        .huge_pages = true,
        /* An RNIC sees its doorbell within microseconds; a driver without one executes requests in
         * the kernel's own time, which is the processor's. */
        .timeout_stretch = 4,
        .timeout_least_ns = verbs_describe_timeout_least_ns(d->vendor_id, d->vendor_part_id),
        .port_rate = rate_of(p),
        .slack_ns = 10 * BASE_NS_PER_MS,
        .service = *service,
        .numa_node = verbs_describe_numa_node(c->context->device->ibdev_path),
        .comp_vectors =
            c->context->num_comp_vectors > 1 ? (uint32_t)c->context->num_comp_vectors : 1,
    };
    caps->time_wait_ns = time_wait_ns(caps, d);
    memcpy(caps->gid, c->gid, 16);
}

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

static int open_fds(struct verbs_fab *f)
{
    f->stop_efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (f->stop_efd < 0)
        return -errno;
    return set_nonblocking(f->context->async_fd);
}

/* Undoes whatever part of an open was done. */
static void tear_down(struct verbs_fab *f)
{
    if (f->stop_efd >= 0)
        close(f->stop_efd);
    if (f->context != NULL)
        (void)ibv_close_device(f->context);
    verbs_dc_unload(&f->dc);
    verbs_qpn_free(f);
    verbs_executor_fini(&f->pool);
    fab_events_fini(&f->events);
    free(f);
}

static int verbs_close(struct fab *fab)
{
    struct verbs_fab *f = verbs_of(fab);
    int status = verbs_threads_stop(f);
    if (status == 0)
        tear_down(f);
    return status;
}

static void verbs_submit(struct fab *fab, struct fab_ctl *ctl)
{
    if (ctl->kind == FAB_CREATE_DCT || ctl->kind == FAB_MODIFY_QP)
        verbs_own_address(ctl);
    verbs_executor_submit(&verbs_of(fab)->pool, ctl);
}

static int verbs_run(struct fab *fab)
{
    return verbs_executor_run(&verbs_of(fab)->pool);
}

static int verbs_ctl_fd(const struct fab *fab)
{
    return verbs_of(fab)->pool.over_efd;
}

static int verbs_event_fd(const struct fab *fab)
{
    return verbs_of(fab)->events.efd;
}

static int verbs_get_event(struct fab *fab, struct fab_event *out)
{
    return fab_events_pop(&verbs_of(fab)->events, out);
}

static const struct fab_ops verbs_ops = {
    .name = "verbs",
    .close = verbs_close,
    .submit = verbs_submit,
    .run = verbs_run,
    .ctl_fd = verbs_ctl_fd,
    .post_send = verbs_post_send,
    .post_recv = verbs_post_recv,
    .post_srq_recv = verbs_post_srq_recv,
    .poll = verbs_poll,
    .arm = verbs_arm,
    .chan_drain = verbs_chan_drain,
    .qp_state = verbs_qp_state,
    .event_fd = verbs_event_fd,
    .get_event = verbs_get_event,
};

/* What drivers would take and send into nowhere, or refuse for each queue pair without a word. */
static int check_service(const struct verbs_choice *c, const struct fab_service *s,
                         const char *name, struct base_errbuf *err)
{
    const bool ethernet = c->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    __be16 pkey = 0;
    if (ethernet && s->service_level > MOST_PRIORITY)
        return base_err(err, -EINVAL,
                        "%s: on Ethernet the service level is a priority, 0 to %d: lower "
                        "service_level in [fabric]",
                        name, MOST_PRIORITY);
    if (s->pkey_index >= c->port_attr.pkey_tbl_len)
        return base_err(err, -EINVAL,
                        "%s: port %u has %u P_Keys, and none with index %u: set pkey_index in "
                        "[fabric] to one of /sys/class/infiniband/%s/ports/%u/pkeys/",
                        name, c->port, c->port_attr.pkey_tbl_len, s->pkey_index, name, c->port);
    if (ibv_query_pkey(c->context, c->port, s->pkey_index, &pkey) == 0 && be16toh(pkey) == 0)
        return base_err(err, -EINVAL,
                        "%s: the P_Key with index %u of port %u is empty: have the subnet manager "
                        "put this port into the partition, or set pkey_index in [fabric] to one "
                        "of /sys/class/infiniband/%s/ports/%u/pkeys/ that is not 0x0000",
                        name, s->pkey_index, c->port, name, c->port);
    return 0;
}

static int start_device(struct verbs_fab *f, const struct verbs_choice *c,
                        const struct fab_service *service, struct base_errbuf *err)
{
    const char *name = ibv_get_device_name(c->context->device);
    struct ibv_device_attr device;
    uint32_t max_inline;
    int status = check_service(c, service, name, err);
    if (status != 0)
        return status;
    status = -ibv_query_device(c->context, &device);
    if (status != 0)
        return base_err(err, status, "%s does not say what it can do: %s", name, strerror(-status));
    status = verbs_probe_inline(c->context, &max_inline);
    if (status != 0)
        return base_err(err, status,
                        "%s cannot create a queue pair: %s (raise LimitMEMLOCK, or hca_object in "
                        "rdma.max of this process's cgroup? has another program taken them all? "
                        "see `rdma resource`)",
                        name, strerror(-status));
    f->rxe = device.vendor_id == VERBS_RXE_VENDOR;
    read_caps(&f->base.caps, c, &device, max_inline, service);
    verbs_describe_errors(c->context->device->ibdev_path, f->rxe, &f->base.caps);
    status = verbs_dc_load(&f->dc, f->base.caps.dc_why, sizeof f->base.caps.dc_why);
    if (status == 0)
        verbs_dc_probe(f);
    else if (verbs_describe_is_mlx5(c->context->device->ibdev_path))
        return base_err(err, status, "%s cannot be told to leave data out of its completions: %s",
                        name, f->base.caps.dc_why);
    verbs_clock_describe(f);
    f->node = verbs_events_node(c->context);
    status = open_fds(f);
    if (status == 0)
        status = verbs_threads_start(f);
    if (status != 0)
        return base_err(err, status, "%s: %s (raise LimitNOFILE?)", name, strerror(-status));
    return 0;
}

static int verbs_open(const struct fab_open_attr *attr, struct fab **out, struct base_errbuf *err)
{
    struct verbs_choice choice;
    struct verbs_fab *f = calloc(1, sizeof *f);
    if (f == NULL)
        return base_err(err, -ENOMEM, "verbs: out of memory");
    f->base.ops = &verbs_ops;
    f->stop_efd = -1;
    verbs_calls_init(&f->dc);
    f->dc.wanted_streams = attr->dci_streams;
    int status = verbs_control_init(f), events = fab_events_init(&f->events);
    status = status != 0 ? status : events; /* both are ended in any case */
    if (status != 0)
        (void)base_err(err, status, "verbs: %s (raise LimitNOFILE?)", strerror(-status));
    else
        status = verbs_select(attr, &choice, err);
    if (status == 0) {
        f->context = choice.context;
        memcpy(f->wanted_gid, attr->gid, sizeof f->wanted_gid);
        status = start_device(f, &choice, &attr->service, err);
    }
    if (status != 0) {
        tear_down(f);
        return status;
    }
    *out = &f->base;
    return 0;
}

const struct fab_provider fab_verbs = {.name = "verbs",
                                       .about = "RDMA devices, SoftRoCE included",
                                       .rdma_devices = true,
                                       .wire = true,
                                       .locks_memory = true,
                                       .open = verbs_open};
