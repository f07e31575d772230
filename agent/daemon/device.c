/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "schema/peers.h"

static const struct kedge_fab_provider *const providers[] = {&kedge_fab_soft};

/* One control operation; what it is, for the sentence. */
static int call(struct agentd_device *d, struct kedge_fab_ctl *ctl, const char *what,
                struct kedge_errbuf *err)
{
    int status = kedge_fab_call(d->fab, ctl);
    if (status == 0)
        return 0;
    const char *way_out = status == -ENOMEM ? "raise LimitMEMLOCK, or lower what [pool] asks for"
                                            : "lower what [pool] asks for";
    return kedge_err(err, status, "%s failed: %s (%s)", what, strerror(-status), way_out);
}

static int open_fabric(struct agentd_device *d, const struct agentd_config *c,
                       struct kedge_errbuf *err)
{
    struct kedge_fab_open_attr attr = {.device = c->device[0] != '\0' ? c->device : NULL};
    int status = kedge_err(err, -EINVAL,
                           "there is no fabric provider \"%.60s\": set provider = soft",
                           c->provider);
    memcpy(attr.gid, c->gid, sizeof attr.gid);
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        if (strcmp(providers[i]->name, c->provider) == 0)
            status = providers[i]->open(&attr, &d->fab, err);
    if (status == 0 && !(d->fab->caps.transports & KEDGE_FAB_DC))
        status = kedge_err(err, -EOPNOTSUPP,
                           "the device has no DC transport, which agents need: set provider = soft "
                           "or another device");
    return status;
}

static int check_lease(struct agentd_device *d, const struct agentd_config *c,
                       struct kedge_errbuf *err)
{
    d->bound_ns = kedge_fab_bound_ns(AGENTD_TIMEOUT, AGENTD_RETRIES);
    d->slack_ns = d->fab->caps.slack_ns;
    if (c->mr_lease_ns > d->bound_ns + d->slack_ns)
        return 0;
    return kedge_err(err, -EINVAL,
                     "mr_lease is too short for this device, on which an operation can take %llu "
                     "us: set it to %llums or more",
                     (unsigned long long)((d->bound_ns + d->slack_ns) / KEDGE_NS_PER_US),
                     (unsigned long long)((d->bound_ns + d->slack_ns) / KEDGE_NS_PER_MS + 1));
}

static int make_base(struct agentd_device *d, const struct agentd_config *c,
                     struct kedge_errbuf *err)
{
    struct kedge_fab_ctl pd = {.kind = KEDGE_FAB_ALLOC_PD}, system_pd = pd;
    struct kedge_fab_ctl chan = {.kind = KEDGE_FAB_CREATE_CHAN};
    int status = call(d, &pd, "allocating the pool's protection domain", err);
    d->pd = status == 0 ? pd.pd.x : NULL;
    if (status == 0)
        status = call(d, &system_pd, "allocating the system's protection domain", err);
    d->system_pd = status == 0 ? system_pd.pd.x : NULL;
    if (status == 0)
        status = call(d, &chan, "creating a completion channel", err);
    if (status != 0)
        return status;
    d->chan = chan.chan.x;
    uint32_t cqe = (uint32_t)(c->dcis + c->spares + 1) * AGENTD_SQ_DEPTH;
    struct kedge_fab_ctl cq = {.kind = KEDGE_FAB_CREATE_CQ, .cq = {.cqe = cqe, .chan = d->chan}};
    status = call(d, &cq, "creating the completion queue", err);
    if (status != 0)
        return status;
    d->cq = cq.cq.x;
    struct kedge_fab_ctl dct_cq = {.kind = KEDGE_FAB_CREATE_CQ, .cq = {.cqe = 4}};
    status = call(d, &dct_cq, "creating the DC target's completion queue", err);
    d->dct_cq = status == 0 ? dct_cq.cq.x : NULL;
    return status;
}

static int make_target(struct agentd_device *d, struct kedge_errbuf *err)
{
    struct kedge_fab_ctl srq = {.kind = KEDGE_FAB_CREATE_SRQ,
                                .srq = {.pd = d->pd, .max_wr = 1, .max_sge = 1}};
    int status = call(d, &srq, "creating a shared receive queue", err);
    if (status != 0)
        return status;
    d->srq = srq.srq.x;
    struct kedge_fab_ctl dct = {.kind = KEDGE_FAB_CREATE_DCT,
                                .dct = {.pd = d->pd,
                                        .cq = d->dct_cq,
                                        .srq = d->srq,
                                        .access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_ATOMIC}};
    status = kedge_random_bytes(&dct.dct.dc_key, sizeof dct.dct.dc_key);
    if (status != 0)
        return kedge_err(err, status, "there are no random numbers: %s", strerror(-status));
    status = call(d, &dct, "creating the DC target", err);
    d->dct = status == 0 ? dct.dct.x : NULL;
    return status;
}

bool agentd_dci_step(struct kedge_fab_qp *qp, int step, struct kedge_fab_ctl *ctl)
{
    static const struct {
        enum ibv_qp_state state;
        int mask;
    } steps[] = {{IBV_QPS_RESET, 0},
                 {IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
                 {IBV_QPS_RTR, IBV_QP_PATH_MTU},
                 {IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC}};
    const struct kedge_fab_caps *caps = &qp->pd->fab->caps;
    if (step < 0 || (size_t)step >= sizeof steps / sizeof steps[0])
        return false;
    ctl->kind = KEDGE_FAB_MODIFY_QP;
    ctl->modify.x = qp;
    ctl->modify.attr = (struct ibv_qp_attr){.qp_state = steps[step].state,
                                            .port_num = caps->port_num,
                                            .path_mtu = caps->mtu,
                                            .timeout = AGENTD_TIMEOUT,
                                            .retry_cnt = AGENTD_RETRIES,
                                            .rnr_retry = AGENTD_RETRIES,
                                            .max_rd_atomic = (uint8_t)caps->max_rd_atomic};
    ctl->modify.mask = steps[step].mask | IBV_QP_STATE;
    return true;
}

static int make_dci(struct agentd_device *d, struct kedge_fab_pd *pd, struct kedge_errbuf *err)
{
    const struct kedge_fab_caps *caps = &d->fab->caps;
    uint32_t sge = caps->max_sge < KEDGE_MAX_SGE ? caps->max_sge : KEDGE_MAX_SGE;
    uint32_t in = caps->max_inline < KEDGE_MAX_INLINE ? caps->max_inline : KEDGE_MAX_INLINE;
    struct kedge_fab_ctl qp = {
        .kind = KEDGE_FAB_CREATE_QP,
        .qp = {.pd = pd,
               .type = KEDGE_FAB_QP_DCI,
               .send_cq = d->cq,
               .recv_cq = d->cq,
               .cap = {.send_wr = AGENTD_SQ_DEPTH, .send_sge = sge, .inline_bytes = in}}};
    int status = call(d, &qp, "creating a DC initiator", err);
    if (status != 0)
        return status;
    d->qp[d->qps++] = qp.qp.x;
    struct kedge_fab_ctl modify = {.kind = KEDGE_FAB_MODIFY_QP};
    for (int step = 1; status == 0 && agentd_dci_step(qp.qp.x, step, &modify); step++)
        status = call(d, &modify, "bringing a DC initiator to RTS", err);
    return status;
}

static int reg(struct agentd_device *d, struct kedge_fab_pd *pd, const struct kedge_fab_mem *mem,
               unsigned access, struct kedge_fab_mr **out, struct kedge_errbuf *err)
{
    struct kedge_fab_ctl mr = {
        .kind = KEDGE_FAB_REG_MR,
        .mr = {.pd = pd, .mem = mem, .length = mem->size, .access = access}};
    int status = call(d, &mr, "registering the agent's tables", err);
    *out = status == 0 ? mr.mr.x : NULL;
    return status;
}

static int make_memory(struct agentd_device *d, const struct agentd_config *c, uint32_t incarnation,
                       struct kedge_errbuf *err)
{
    uint32_t log2 = kedge_table_log2_slots((uint32_t)c->max_mrs);
    int status = kedge_fab_mem_alloc(kedge_table_bytes(log2), "kedge-mrs", &d->table_mem);
    if (status == 0)
        status = kedge_fab_mem_alloc(AGENTD_SCRATCH * KEDGE_TABLE_WINDOW_BYTES, "kedge-scratch",
                                     &d->scratch);
    if (status != 0)
        return kedge_err(err, status, "no memory for the table of regions (%s): lower max_mrs",
                         strerror(-status));
    /* As kedge_mr_table_desc() implies it for those who READ. */
    kedge_table_init(&d->table, KEDGE_TABLE_MRS, d->table_mem.addr, log2,
                     kedge_hash_gid(d->fab->caps.gid, c->pool_number, incarnation), incarnation);
    status = reg(d, d->pd, &d->table_mem, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
                 &d->table_mr, err);
    if (status == 0)
        status = reg(d, d->pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_mr, err);
    if (status == 0)
        status = reg(d, d->system_pd, &d->scratch, IBV_ACCESS_LOCAL_WRITE, &d->scratch_system_mr,
                     err);
    return status;
}

static int make_peers(struct agentd_device *d, const struct agentd_config *c,
                      struct kedge_errbuf *err)
{
    uint64_t seed;
    d->peers_bytes = kedge_peers_bytes((uint32_t)c->max_peers);
    int status = kedge_random_bytes(&seed, sizeof seed);
    if (status == 0)
        status = kedge_memfd_new("kedge-peers", d->peers_bytes, true, &d->peers_fd, &d->peers);
    if (status == 0 && fallocate(d->peers_fd, 0, 0, (off_t)d->peers_bytes) != 0)
        status = -errno;
    if (status != 0)
        return kedge_err(err, status, "no memory for the peer table (%s): lower max_peers",
                         strerror(-status));
    kedge_peers_format(d->peers, (uint32_t)c->max_peers, seed);
    return 0;
}

int agentd_device_init(struct agentd_device *d, const struct agentd_config *config,
                       uint32_t incarnation, struct kedge_errbuf *err)
{
    *d = (struct agentd_device){.peers_fd = -1};
    int status = open_fabric(d, config, err);
    if (status == 0)
        status = check_lease(d, config, err);
    if (status == 0)
        status = make_base(d, config, err);
    if (status == 0)
        status = make_target(d, err);
    for (uint64_t i = 0; i < config->dcis + config->spares && status == 0; i++)
        status = make_dci(d, d->pd, err);
    if (status == 0)
        status = make_dci(d, d->system_pd, err);
    if (status == 0)
        status = make_memory(d, config, incarnation, err);
    if (status == 0)
        status = make_peers(d, config, err);
    return status;
}

void agentd_device_resources(struct agentd_device *d, const struct agentd_config *config,
                             struct kedge_lane_resources *out)
{
    *out = (struct kedge_lane_resources){.fab = d->fab,
                                         .cq = d->cq,
                                         .pd = d->pd,
                                         .dcis = (uint32_t)config->dcis,
                                         .spares = (uint32_t)config->spares,
                                         .system_dci = d->qp[d->qps - 1],
                                         .scratch = d->scratch,
                                         .scratch_lkey = d->scratch_mr->lkey,
                                         .scratch_system_lkey = d->scratch_system_mr->lkey,
                                         .peers = d->peers,
                                         .mr_table = &d->table};
    for (uint32_t i = 0; i < out->dcis; i++)
        out->dci[i] = d->qp[i];
    for (uint32_t i = 0; i < out->spares; i++)
        out->spare[i] = d->qp[out->dcis + i];
}

void agentd_ah_attr(const struct kedge_fab *fab, const uint8_t gid[16], struct ibv_ah_attr *out)
{
    *out = (struct ibv_ah_attr){.is_global = 1, .port_num = fab->caps.port_num};
    out->grh.sgid_index = fab->caps.sgid_index;
    out->grh.hop_limit = 64;
    memcpy(out->grh.dgid.raw, gid, 16);
}

static void undo(struct agentd_device *d, struct kedge_fab_ctl *ctl, const char *what)
{
    int status = kedge_fab_call(d->fab, ctl);
    if (status != 0)
        kedge_log(KEDGE_LOG_WARN, "closing the fabric", "object=\"%s\" error=\"%s\"", what,
                  strerror(-status));
}

#define UNDO(d, object, operation, member)                                                         \
    if ((d)->object != NULL)                                                                       \
    undo((d), &(struct kedge_fab_ctl){.kind = (operation), .member.x = (d)->object}, #object)

void agentd_device_fini(struct agentd_device *d)
{
    while (d->qps > 0) {
        d->qps--;
        UNDO(d, qp[d->qps], KEDGE_FAB_DESTROY_QP, qp);
    }
    UNDO(d, dct, KEDGE_FAB_DESTROY_DCT, dct);
    UNDO(d, srq, KEDGE_FAB_DESTROY_SRQ, srq);
    UNDO(d, dct_cq, KEDGE_FAB_DESTROY_CQ, cq);
    UNDO(d, cq, KEDGE_FAB_DESTROY_CQ, cq);
    UNDO(d, chan, KEDGE_FAB_DESTROY_CHAN, chan);
    UNDO(d, table_mr, KEDGE_FAB_DEREG_MR, mr);
    UNDO(d, scratch_mr, KEDGE_FAB_DEREG_MR, mr);
    UNDO(d, scratch_system_mr, KEDGE_FAB_DEREG_MR, mr);
    UNDO(d, pd, KEDGE_FAB_FREE_PD, pd);
    UNDO(d, system_pd, KEDGE_FAB_FREE_PD, pd);
    kedge_fab_mem_free(&d->table_mem);
    kedge_fab_mem_free(&d->scratch);
    if (d->peers != NULL)
        munmap(d->peers, d->peers_bytes);
    if (d->peers_fd >= 0)
        close(d->peers_fd);
    if (d->fab != NULL && kedge_fab_close(d->fab) != 0)
        kedge_log(KEDGE_LOG_WARN, "closing the fabric", "object=device error=busy");
    *d = (struct agentd_device){.peers_fd = -1};
}
