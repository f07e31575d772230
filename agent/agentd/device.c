/* SPDX-License-Identifier: Apache-2.0 */
/* The device and all that is made on it ahead of time: two protection domains, queue pairs, the DC
 * target that peers reach this node by, the MR table that they READ. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/random.h"
#include "daemon.h"
#include "fabric/providers.h"

enum { SCRATCH_WINDOWS = 256, TARGET_WR = 16 };

static int call(struct agent_device *d, struct kedge_fab_ctl *ctl)
{
    return kedge_fab_call(d->fab, ctl);
}

static int alloc_pd(struct agent_device *d, struct kedge_fab_pd **out)
{
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_ALLOC_PD};
    int status = call(d, &c);
    if (status == 0)
        *out = c.pd.x;
    return status;
}

static int reg_mr(struct agent_device *d, struct kedge_fab_pd *pd, const struct kedge_fab_mem *mem,
                  unsigned access, struct kedge_fab_mr **out)
{
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_REG_MR,
                              .mr = {.pd = pd, .mem = mem, .length = mem->size, .access = access}};
    int status = call(d, &c);
    if (status == 0)
        *out = c.mr.x;
    return status;
}

int device_raise_dci(struct agent_device *d, struct kedge_fab_qp *qp)
{
    static const struct {
        enum ibv_qp_state state;
        int mask;
    } steps[] = {
        {IBV_QPS_RESET, 0},
        {IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
        {IBV_QPS_RTR, IBV_QP_PATH_MTU},
        {IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct kedge_fab_ctl c = {.kind = KEDGE_FAB_MODIFY_QP, .modify = {.x = qp}};
        c.modify.attr = (struct ibv_qp_attr){.qp_state = steps[i].state,
                                             .port_num = d->fab->caps.port_num,
                                             .path_mtu = d->fab->caps.mtu,
                                             .timeout = ACK_TIMEOUT,
                                             .retry_cnt = ACK_RETRIES,
                                             .rnr_retry = RNR_RETRIES,
                                             .max_rd_atomic = 16};
        c.modify.mask = IBV_QP_STATE | steps[i].mask;
        int status = call(d, &c);
        if (status != 0)
            return status;
    }
    return 0;
}

static int make_dci(struct agent *a, struct kedge_fab_pd *pd)
{
    struct agent_device *d = &a->device;
    struct kedge_fab_ctl c = {.kind = KEDGE_FAB_CREATE_QP,
                              .qp = {.pd = pd,
                                     .type = KEDGE_FAB_QP_DCI,
                                     .send_cq = d->cq,
                                     .recv_cq = d->cq,
                                     .cap = {.send_wr = (uint32_t)SQ_DEPTH,
                                             .send_sge = KEDGE_MAX_SGE,
                                             .inline_bytes = KEDGE_MAX_INLINE}}};
    int status = call(d, &c);
    if (status != 0)
        return status;
    d->qp[d->qps++] = c.qp.x;
    return device_raise_dci(d, c.qp.x);
}

/* Number 0 is the system's, then the pool's, then the spares. */
static int make_queues(struct agent *a)
{
    struct agent_device *d = &a->device;
    uint64_t count = a->config.dcis + a->config.spares + 1;
    struct kedge_fab_ctl chan = {.kind = KEDGE_FAB_CREATE_CHAN};
    int status = call(d, &chan);
    if (status != 0)
        return status;
    d->chan = chan.chan.x;
    struct kedge_fab_ctl cq = {.kind = KEDGE_FAB_CREATE_CQ,
                               .cq = {.cqe = (uint32_t)(count * SQ_DEPTH), .chan = d->chan}};
    status = call(d, &cq);
    if (status != 0)
        return status;
    d->cq = cq.cq.x;
    status = make_dci(a, d->system_pd);
    for (uint64_t i = 1; i < count && status == 0; i++)
        status = make_dci(a, d->pd);
    return status;
}

static int make_target(struct agent *a)
{
    struct agent_device *d = &a->device;
    struct kedge_fab_ctl cq = {.kind = KEDGE_FAB_CREATE_CQ, .cq = {.cqe = TARGET_WR}};
    struct kedge_fab_ctl srq = {.kind = KEDGE_FAB_CREATE_SRQ,
                                .srq = {.pd = d->pd, .max_wr = TARGET_WR, .max_sge = 1}};
    int status = call(d, &cq);
    if (status != 0)
        return status;
    d->target_cq = cq.cq.x;
    status = call(d, &srq);
    if (status != 0)
        return status;
    d->srq = srq.srq.x;
    struct kedge_fab_ctl dct = {.kind = KEDGE_FAB_CREATE_DCT,
                                .dct = {.pd = d->pd,
                                        .cq = d->target_cq,
                                        .srq = d->srq,
                                        .access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_ATOMIC}};
    status = kedge_random_bytes(&dct.dct.dc_key, sizeof dct.dct.dc_key);
    if (status == 0)
        status = call(d, &dct);
    if (status == 0)
        d->dct = dct.dct.x;
    return status;
}

static int make_memory(struct agent *a)
{
    struct agent_device *d = &a->device;
    d->mr_log2 = kedge_table_log2_slots((uint32_t)a->config.max_mrs);
    int status = kedge_fab_mem_alloc(SCRATCH_WINDOWS * KEDGE_TABLE_WINDOW_BYTES, "kedge-scratch",
                                     &d->scratch);
    if (status == 0)
        status =
            kedge_fab_mem_alloc(kedge_table_bytes(d->mr_log2), "kedge-mr-table", &d->mr_memory);
    if (status == 0)
        status = reg_mr(d, d->pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_mr);
    if (status == 0)
        status =
            reg_mr(d, d->system_pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_system_mr);
    if (status == 0)
        status = reg_mr(d, d->pd, &d->mr_memory, IBV_ACCESS_REMOTE_READ, &d->mr_mr);
    return status;
}

/* The seed and the generation are what peers will work out from this node's endpoint record. */
static void init_mr_table(struct agent *a)
{
    struct agent_device *d = &a->device;
    struct kedge_endpoint_record r = {.pool = (uint16_t)a->config.pool_number,
                                      .incarnation = a->incarnation,
                                      .udqpn_slots = d->mr_log2 << 24};
    memcpy(r.gid, d->fab->caps.gid, sizeof r.gid);
    struct kedge_table_desc desc = kedge_mr_table_desc(&r);
    kedge_table_init(&d->mr_table, KEDGE_TABLE_MRS, d->mr_memory.addr, d->mr_log2, desc.seed,
                     desc.generation);
}

/* The limit that bites most users first, named before it does. */
static int explain(int status, struct kedge_errbuf *err)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (status == -ENOMEM)
        return kedge_err(err, status,
                         "making queue pairs and memory failed: out of memory (locked memory is "
                         "limited to %llu KiB: "
                         "raise LimitMEMLOCK; /dev/shm must have room for the arenas)",
                         (unsigned long long)(limit.rlim_cur / 1024));
    return kedge_err(err, status,
                     "making queue pairs and memory failed: %s (lower dcis, spares or "
                     "max_mrs in [pool])",
                     strerror(-status));
}

int device_open(struct agent *a, struct kedge_errbuf *err)
{
    struct agent_device *d = &a->device;
    struct kedge_fab_open_attr attr = {.device =
                                           a->config.device[0] != '\0' ? a->config.device : NULL,
                                       .port = (uint8_t)a->config.port};
    const struct kedge_fab_provider *provider = kedge_fab_provider_find(a->config.provider, err);
    memcpy(attr.gid, a->config.gid, sizeof attr.gid);
    int status = provider != NULL ? provider->open(&attr, &d->fab, err) : -EINVAL;
    if (status != 0)
        return status;
    if (!(d->fab->caps.transports & KEDGE_FAB_DC))
        return kedge_err(err, -ENOTSUP,
                         "this device has no DC transport, and Kedge needs it so far");
    status = alloc_pd(d, &d->pd);
    if (status == 0)
        status = alloc_pd(d, &d->system_pd);
    if (status == 0)
        status = make_queues(a);
    if (status == 0)
        status = make_target(a);
    if (status == 0)
        status = make_memory(a);
    if (status != 0)
        return explain(status, err);
    init_mr_table(a);
    d->bound_ns = kedge_fab_bound_ns(ACK_TIMEOUT, ACK_RETRIES);
    uint64_t least = d->bound_ns + d->fab->caps.slack_ns;
    if (a->config.mr_lease_ns <= least)
        return kedge_err(err, -EINVAL,
                         "mr_lease is too short for this device: a posted operation may still be "
                         "executed for %llu ms "
                         "(set mr_lease in [pool] to %llums or more)",
                         (unsigned long long)(least / 1000000),
                         (unsigned long long)(least / 1000000 + 1));
    return 0;
}

static void destroy(struct agent_device *d, enum kedge_fab_ctl_kind kind, void *x)
{
    struct kedge_fab_ctl c = {.kind = kind};
    if (x == NULL)
        return;
    c.pd.x = x; /* every kind names its object first */
    (void)call(d, &c);
}

void device_close(struct agent *a)
{
    struct agent_device *d = &a->device;
    if (d->fab == NULL)
        return;
    for (uint32_t i = 0; i < d->qps; i++)
        destroy(d, KEDGE_FAB_DESTROY_QP, d->qp[i]);
    destroy(d, KEDGE_FAB_DESTROY_DCT, d->dct);
    destroy(d, KEDGE_FAB_DESTROY_SRQ, d->srq);
    destroy(d, KEDGE_FAB_DESTROY_CQ, d->target_cq);
    destroy(d, KEDGE_FAB_DESTROY_CQ, d->cq);
    destroy(d, KEDGE_FAB_DESTROY_CHAN, d->chan);
    destroy(d, KEDGE_FAB_DEREG_MR, d->scratch_mr);
    destroy(d, KEDGE_FAB_DEREG_MR, d->scratch_system_mr);
    destroy(d, KEDGE_FAB_DEREG_MR, d->mr_mr);
    kedge_fab_mem_free(&d->scratch);
    kedge_fab_mem_free(&d->mr_memory);
    destroy(d, KEDGE_FAB_FREE_PD, d->pd);
    destroy(d, KEDGE_FAB_FREE_PD, d->system_pd);
    (void)kedge_fab_close(d->fab);
    *d = (struct agent_device){0};
}
