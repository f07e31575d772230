/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations of the bed: what is made, moved and destroyed. */
#include "bed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/limits.h"
#include "fabric/reuse.h"

enum { PATIENT_TIMEOUT = 14, PATIENT_RETRIES = 7, RD_ATOMIC = 16, /* as the agent's */ SGES = 4 };

static const char MEMLOCK_ADVICE[] =
    "raise LimitMEMLOCK (LimitMEMLOCK=infinity in the unit, or `* - memlock unlimited` in "
    "/etc/security/limits.conf and a new login), or free memory; or raise hca_object in rdma.max "
    "of this process's cgroup";

/* ---- calls */

struct call {
    struct fab_ctl ctl;
    bool done;
    struct call *next;
};
/* What the device may still answer, for as long as the process lives. */
static struct call *given_up;

static void on_done(struct fab_ctl *ctl)
{
    ((struct call *)ctl)->done = true;
}

int probe_bed_call(struct bed *b, struct fab_ctl *ctl)
{
    if (b->report->stuck)
        return -ETIMEDOUT;
    struct call *c = malloc(sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    *c = (struct call){.ctl = *ctl};
    c->ctl.done = on_done;
    fab_submit(b->fab, &c->ctl);
    const uint64_t end = base_clock_ns() + b->wait_ns;
    while (!c->done && base_clock_ns() < end) {
        struct pollfd p = {.fd = fab_ctl_fd(b->fab), .events = POLLIN};
        (void)poll(&p, 1, 100);
        (void)fab_run(b->fab);
    }
    if (!c->done) {
        b->report->stuck = true;
        c->next = given_up;
        given_up = c;
        return -ETIMEDOUT;
    }
    *ctl = c->ctl;
    free(c);
    return ctl->status;
}

unsigned probe_bed_access(const struct bed *b)
{
    return IBV_ACCESS_LOCAL_WRITE | fab_remote_access(b->fab);
}

unsigned probe_bed_target_access(const struct bed *b)
{
    return IBV_ACCESS_LOCAL_WRITE | fab_target_access(b->fab);
}

int probe_bed_register(struct bed *b, const struct fab_mem *mem, uint64_t offset, uint64_t length,
                       unsigned access, struct fab_mr **out)
{
    struct fab_ctl c = {
        .kind = FAB_REG_MR,
        .mr = {.pd = b->pd, .mem = mem, .offset = offset, .length = length, .access = access}};
    int status = fab_iova_take(&b->iova, FAB_IOVA_REGION, mem, offset, length, &c.mr.iova);
    if (status == 0)
        status = probe_bed_call(b, &c);
    if (status == 0)
        *out = c.mr.x;
    return status;
}

int probe_bed_deregister(struct bed *b, struct fab_mr *mr)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    return probe_bed_call(b, &c);
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Where nobody says what the agent asks for, since it is to begin only now: enough for us. */
static uint32_t said_or(uint64_t said, uint32_t usual)
{
    return said != 0 ? (uint32_t)said : usual;
}

/* What the agent asks for, of each that it makes; of slots and pieces no more than there are, which
 * is another check's to say. A device may have each of them, and not all in one queue pair. */
static struct fab_qp_cap cap_of(const struct bed *b, enum bed_role role)
{
    const struct fab_caps *caps = &b->fab->caps;
    const struct probe_settings *s = b->settings;
    const uint32_t slots[] = {[BED_INITIATOR] = said_or(s->rc.send_wr, BED_WR),
                              [BED_RESPONDER] = 1,
                              [BED_READER] = said_or(s->rc.send_wr, BED_WR),
                              [BED_DATAGRAMS] = said_or(s->datagrams_sent, BED_WR),
                              [BED_DCI] = said_or(s->dc.send_wr, BED_WR)};
    struct fab_qp_cap cap = {.send_wr = least_of(slots[role], caps->max_qp_wr), .send_sge = 1};
    if (role == BED_INITIATOR || role == BED_DCI) {
        cap.send_sge = least_of(said_or(s->most_sge, said_or(s->sge, SGES)), caps->max_sge);
        cap.inline_bytes = least_of(s->inline_bytes, caps->max_inline);
    }
    if (role != BED_DCI) {
        cap.recv_wr = role == BED_DATAGRAMS
                          ? least_of(said_or(s->datagrams_taken, BED_WR), caps->max_qp_wr)
                          : 1;
        cap.recv_sge = 1;
    }
    return cap;
}

static enum fab_qp_type type_of(enum bed_role role)
{
    return role == BED_DCI ? FAB_QP_DCI : role == BED_DATAGRAMS ? FAB_QP_UD : FAB_QP_RC;
}

static struct fab_ctl qp_creation(const struct bed *b, enum bed_role role, struct fab_srq *srq)
{
    struct fab_ctl c = {.kind = FAB_CREATE_QP,
                        .qp = {.pd = b->pd,
                               .type = type_of(role),
                               .send_cq = b->cq,
                               .recv_cq = b->far_cq,
                               .srq = srq,
                               .cap = cap_of(b, role),
                               .user = (void *)(uintptr_t)role}};
    if (srq != NULL)
        c.qp.cap.recv_wr = c.qp.cap.recv_sge = 0;
    return c;
}

int probe_bed_qp_new(struct bed *b, enum bed_role role, struct fab_srq *srq, struct fab_qp **out)
{
    struct fab_ctl c = qp_creation(b, role, srq);
    int status = probe_bed_call(b, &c);
    if (status == 0)
        *out = c.qp.x;
    return status;
}

static struct ibv_ah_attr address_self(const struct bed *b)
{
    return fab_address(b->fab, b->fab->caps.gid, b->fab->caps.lid);
}

int probe_bed_ah_new(struct bed *b, struct fab_ah **out)
{
    struct fab_ctl c = {.kind = FAB_CREATE_AH, .ah = {.pd = b->pd, .attr = address_self(b)}};
    int status = probe_bed_call(b, &c);
    if (status == 0)
        *out = c.ah.x;
    return status;
}

/* ---- states */

const char *probe_bed_state_name(enum ibv_qp_state state)
{
    static const char *const names[] = {
        [IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR",
        [IBV_QPS_RTS] = "RTS",     [IBV_QPS_SQD] = "SQD",   [IBV_QPS_SQE] = "SQE",
        [IBV_QPS_ERR] = "ERR"};
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "an unknown state";
}

/* The attributes that a type has to be given on its way to a state. */
static int mask_of(enum fab_qp_type type, enum ibv_qp_state state)
{
    bool rc = type == FAB_QP_RC, ud = type == FAB_QP_UD;
    switch (state) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (rc ? IBV_QP_ACCESS_FLAGS : 0) |
               (ud ? IBV_QP_QKEY : 0);
    case IBV_QPS_RTR:
        return ud   ? IBV_QP_STATE
               : rc ? IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                    : IBV_QP_STATE | IBV_QP_PATH_MTU;
    case IBV_QPS_RTS:
        return ud ? IBV_QP_STATE | IBV_QP_SQ_PSN
                  : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    default:
        return IBV_QP_STATE;
    }
}

static struct bed_far self_of(const struct bed *b, const struct fab_qp *peer, bool hasty)
{
    const struct fab_caps *caps = &b->fab->caps;
    struct bed_far self = {
        .lid = caps->lid, .qpn = peer != NULL ? peer->qpn : 0, .mtu = caps->mtu, .hasty = hasty};
    memcpy(self.gid, caps->gid, sizeof self.gid);
    return self;
}

static struct ibv_qp_attr attr_of(const struct bed *b, enum ibv_qp_state state,
                                  const struct bed_far *far)
{
    const struct fab_caps *caps = &b->fab->caps;
    const uint8_t reads = (uint8_t)least_of(RD_ATOMIC, caps->max_rd_atomic);
    return (struct ibv_qp_attr){.qp_state = state,
                                .port_num = caps->port_num,
                                .pkey_index = caps->service.pkey_index,
                                .ah_attr = fab_address(b->fab, far->gid, far->lid),
                                .qp_access_flags = probe_bed_access(b),
                                .qkey = BED_QKEY,
                                .path_mtu = far->mtu,
                                .dest_qp_num = far->qpn,
                                .max_dest_rd_atomic = reads,
                                .max_rd_atomic = reads,
                                .min_rnr_timer = 1,
                                .timeout = far->hasty ? b->settings->ack_timeout : PATIENT_TIMEOUT,
                                .retry_cnt =
                                    far->hasty ? b->settings->ack_retries : PATIENT_RETRIES,
                                .rnr_retry = 7};
}

static int to_init(struct bed *b, struct fab_qp **qp, struct bed_steps *steps)
{
    const struct bed_far self = self_of(b, NULL, false);
    struct fab_reuse r = {.fab = b->fab,
                          .qp = *qp,
                          .in_reset = fab_qp_state(*qp) == IBV_QPS_RESET,
                          .make = qp_creation(b, (enum bed_role)(uintptr_t)(*qp)->user, (*qp)->srq),
                          .init = attr_of(b, IBV_QPS_INIT, &self),
                          .mask = mask_of((*qp)->type, IBV_QPS_INIT)};
    const uint64_t start = base_clock_ns();
    struct fab_ctl c;
    steps->now = IBV_QPS_INIT;
    fab_reuse_begin(&r, &c);
    do {
        c.status = probe_bed_call(b, &c);
    } while (fab_reuse_next(&r, &c));
    *qp = r.qp;
    steps->ns[0] = base_clock_ns() - start;
    return r.status;
}

static int to_rts(struct bed *b, struct fab_qp *qp, const struct bed_far *far,
                  struct bed_steps *steps)
{
    static const enum ibv_qp_state path[] = {IBV_QPS_RTR, IBV_QPS_RTS};
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                            .modify = {.x = qp,
                                       .mask = mask_of(qp->type, path[i]),
                                       .attr = attr_of(b, path[i], far)}};
        const uint64_t start = base_clock_ns();
        steps->now = path[i];
        status = probe_bed_call(b, &c);
        steps->ns[1 + i] = base_clock_ns() - start;
    }
    return status;
}

int probe_bed_raise_to(struct bed *b, struct fab_qp *qp, const struct bed_far *far,
                       struct bed_steps *steps)
{
    static const enum ibv_qp_state path[] = {IBV_QPS_RESET, IBV_QPS_INIT};
    int status = 0;
    for (int i = fab_qp_state(qp) == IBV_QPS_RESET; i < 2 && status == 0; i++) {
        struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                            .modify = {.x = qp,
                                       .mask = mask_of(qp->type, path[i]),
                                       .attr = attr_of(b, path[i], far)}};
        steps->now = path[i];
        status = probe_bed_call(b, &c);
    }
    return status != 0 ? status : to_rts(b, qp, far, steps);
}

int probe_bed_raise(struct bed *b, struct fab_qp **qp, const struct fab_qp *peer, bool hasty,
                    struct bed_steps *steps)
{
    const struct bed_far self = self_of(b, peer, hasty);
    if (*qp == NULL)
        return -ENOTCONN;
    int status = to_init(b, qp, steps);
    return status != 0 ? status : to_rts(b, *qp, &self, steps);
}

int probe_bed_raise_pair(struct bed *b, struct fab_qp *qp[2], bool force, struct bed_steps *steps)
{
    if (qp[0] == NULL || qp[1] == NULL)
        return -ENOTCONN;
    if (!force && fab_qp_state(qp[0]) == IBV_QPS_RTS && fab_qp_state(qp[1]) == IBV_QPS_RTS)
        return 0;
    /* First of all both have their numbers. */
    int status = to_init(b, &qp[1], steps);
    if (status == 0)
        status = to_init(b, &qp[0], steps);
    for (int i = 1; i >= 0 && status == 0; i--) {
        const struct bed_far self = self_of(b, qp[1 - i], false);
        status = to_rts(b, qp[i], &self, steps);
    }
    return status;
}

/* ---- making and destroying all of it */

/* Of all queue pairs of ours, those between two nodes among them. */
static uint32_t count_sends(const struct bed *b)
{
    return 8 * cap_of(b, BED_INITIATOR).send_wr + 2 * cap_of(b, BED_DCI).send_wr +
           2 * cap_of(b, BED_DATAGRAMS).send_wr + BED_WR;
}

static int make_queues(struct bed *b, const char **what)
{
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    *what = "making a completion channel";
    int status = probe_bed_call(b, &chan);
    if (status != 0)
        return status;
    b->chan = chan.chan.x;
    struct fab_ctl cq = {
        .kind = FAB_CREATE_CQ,
        .cq = {.cqe = least_of(count_sends(b), b->fab->caps.max_cqe), .chan = b->chan}};
    *what = "making a completion queue";
    status = probe_bed_call(b, &cq);
    if (status != 0)
        return status;
    b->cq = cq.cq.x;
    struct fab_ctl far = {.kind = FAB_CREATE_CQ,
                          .cq = {.cqe = least_of(10 * BED_WR + 2 * cap_of(b, BED_DATAGRAMS).recv_wr,
                                                 b->fab->caps.max_cqe)}};
    status = probe_bed_call(b, &far);
    if (status != 0)
        return status;
    b->far_cq = far.cq.x;
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = b->pd, .max_wr = BED_WR, .max_sge = 1}};
    *what = "making a shared receive queue";
    status = probe_bed_call(b, &srq);
    if (status == 0)
        b->srq = srq.srq.x;
    return status;
}

static int make_memory(struct bed *b, const char **what)
{
    uint64_t random;
    *what = "getting a MiB of memory";
    int status = fab_mem_alloc((size_t)2 * BED_HALF, "kedge-probe", &b->mem);
    if (status != 0)
        return status;
    b->near = b->mem.addr;
    b->far = b->near + BED_HALF;
    *what = "registering memory";
    status = base_random_bytes(&random, sizeof random);
    if (status != 0)
        return status;
    fab_iova_init(&b->iova, random);
    status = probe_bed_register(b, &b->mem, 0, BED_HALF, IBV_ACCESS_LOCAL_WRITE, &b->near_mr);
    if (status == 0)
        status =
            probe_bed_register(b, &b->mem, BED_HALF, BED_HALF, probe_bed_access(b), &b->far_mr);
    return status;
}

bool probe_bed_open(struct bed *b, struct fab *fab, const struct probe_settings *s,
                    struct probe_report *report)
{
    struct probe_check *c = probe_begin(report, "objects", PROBE_FOR_RC);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    const char *what = "making a protection domain";
    *b = (struct bed){.fab = fab,
                      .settings = s,
                      .report = report,
                      .wait_ns = (s->wait_ms != 0 ? s->wait_ms : 20000) * BASE_NS_PER_MS,
                      .next_id = 1,
                      .mem = {.fd = -1}};
    int status = probe_bed_call(b, &pd);
    if (status == 0) {
        b->pd = pd.pd.x;
        status = make_queues(b, &what);
    }
    if (status == 0)
        status = make_memory(b, &what);
    if (probe_bed_succeeded(c, what, status, NULL))
        probe_ok(c, "protection domain, channel, completion queues, SRQ and memory can be made");
    return status == 0;
}

static bool destroy_object(struct bed *b, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    if (x == NULL)
        return true;
    c.pd.x = x; /* every kind names its object first */
    return probe_bed_call(b, &c) == 0;
}

void probe_bed_close(struct bed *b)
{
    struct fab_qp *qp[] = {b->rc[0],  b->rc[1], b->rc_srq[0], b->rc_srq[1], b->lonely,
                           b->silent, b->ud[0], b->ud[1],     b->dci};
    bool ok = true;
    if (b->report
            ->stuck) /* every further call would hang; the kernel cleans up after the process */
        return;
    for (size_t i = 0; i < sizeof qp / sizeof qp[0]; i++)
        ok = destroy_object(b, FAB_DESTROY_QP, qp[i]) && ok;
    ok = destroy_object(b, FAB_DESTROY_DCT, b->dct) && ok;
    ok = destroy_object(b, FAB_DESTROY_AH, b->ah) && ok;
    ok = destroy_object(b, FAB_DEREG_MR, b->near_mr) && ok;
    ok = destroy_object(b, FAB_DEREG_MR, b->far_mr) && ok;
    ok = destroy_object(b, FAB_DESTROY_SRQ, b->srq) && ok;
    ok = destroy_object(b, FAB_DESTROY_CQ, b->cq) && ok;
    ok = destroy_object(b, FAB_DESTROY_CQ, b->far_cq) && ok;
    ok = destroy_object(b, FAB_DESTROY_CHAN, b->chan) && ok;
    ok = destroy_object(b, FAB_FREE_PD, b->pd) && ok;
    struct probe_check *c = probe_begin(b->report, "destroying", PROBE_FOR_RC);
    if (!ok) {
        probe_fail(c, "look at the kernel's log (dmesg) for the device's driver",
                   "what was made for the checks could not be destroyed%s",
                   b->report->stuck ? ": the device does not answer" : "");
        return; /* the memory may be registered still */
    }
    fab_mem_free(&b->mem);
    probe_ok(c, "everything that was made could be destroyed");
}

/* ---- errors */

static const char *advice_of_status(int status)
{
    switch (-status) {
    case ENOMEM:
    case EAGAIN:
        return fab_limit_advice(status);
    case ETIMEDOUT:
        return "look at the kernel's log (dmesg) for the device's driver, and reset the device";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "the GID's address has no route here: give its network interface an address and "
               "bring it up, or set another `gid` in [fabric], of those listed above";
    case EINVAL:
        return "the GID or the port may not do: set another `gid` or `port` in [fabric], of those "
               "listed above; look at the kernel's log (dmesg)";
    case EACCES:
    case EPERM:
        return "run this as the agent's user, with read and write access to "
               "/dev/infiniband/uverbs*";
    default:
        return "look at the kernel's log (dmesg), and send this report";
    }
}

const char *probe_bed_wc_name(enum ibv_wc_status status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error (LOC_LEN_ERR)",
        [IBV_WC_LOC_QP_OP_ERR] = "local queue pair operation error (LOC_QP_OP_ERR)",
        [IBV_WC_LOC_PROT_ERR] = "local protection error (LOC_PROT_ERR)",
        [IBV_WC_WR_FLUSH_ERR] = "flushed after another error (WR_FLUSH_ERR)",
        [IBV_WC_REM_INV_REQ_ERR] = "the far side calls the request invalid (REM_INV_REQ_ERR)",
        [IBV_WC_REM_ACCESS_ERR] = "the far side refuses access (REM_ACCESS_ERR)",
        [IBV_WC_REM_OP_ERR] = "the far side cannot do it (REM_OP_ERR)",
        [IBV_WC_RETRY_EXC_ERR] = "the far side does not answer (RETRY_EXC_ERR)",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "the far side has no receive posted (RNR_RETRY_EXC_ERR)",
        [IBV_WC_GENERAL_ERR] = "a general error (GENERAL_ERR)"};
    if ((size_t)status < sizeof names / sizeof names[0] && names[status] != NULL)
        return names[status];
    return "another error";
}

bool probe_bed_succeeded(struct probe_check *c, const char *what, int status,
                         const struct ibv_wc *wc)
{
    if (status != 0) {
        struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
        char locked[PROBE_DURATION];
        (void)getrlimit(RLIMIT_MEMLOCK, &limit);
        if (status == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
            probe_fail(c, MEMLOCK_ADVICE, "%s failed: %s (locked memory is limited to %s)", what,
                       strerror(-status), probe_size(limit.rlim_cur, locked));
        else
            probe_fail(c, advice_of_status(status), "%s failed: %s", what, strerror(-status));
        return false;
    }
    if (wc == NULL || wc->status == IBV_WC_SUCCESS)
        return true;
    probe_fail(c,
               wc->status == IBV_WC_RETRY_EXC_ERR
                   ? "does the device reach itself by this GID? try another one (`gid` in "
                     "[fabric]); a firewall must let UDP port 4791 (RoCE v2) through"
                   : "send this report",
               "%s completed with status %d, %s, vendor's code 0x%x", what, (int)wc->status,
               probe_bed_wc_name(wc->status), wc->vendor_err);
    probe_number(c, "wc_status", wc->status);
    probe_number(c, "vendor_err", wc->vendor_err);
    return false;
}
