/* SPDX-License-Identifier: Apache-2.0 */
/* The same operations without Kedge: a DCI of our own, and a DC target in another process, which
 * sleeps. Objects are not freed one by one: both processes end, and the device directory with them,
 * which is what soft promises to survive. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "fabric/fabric.h"
#include "perf.h"

enum {
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
    POLL = 64,
    TIMEOUT = 14, /* 4.096 us << 14 */
};

/* What the target tells. */
struct card {
    uint8_t gid[16];
    uint64_t dc_key, addr;
    uint32_t dctn, rkey;
    int status;
    struct base_errbuf err;
};

/* One side. */
struct side {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_mem mem;
    struct fab_mr *mr;
};

struct direct {
    struct perf_path path; /* first */
    struct side side;
    struct fab_qp *dci;
    struct fab_wr *wr;
    struct ibv_sge *sge;
};

static int call(struct fab *fab, struct fab_ctl *ctl, const char *what, struct base_errbuf *err)
{
    int status = fab_call(fab, ctl);
    return status == 0 ? 0 : base_err(err, status, "%s failed: %s", what, strerror(-status));
}

static int side_open(struct side *s, const char *dir, const char *model, uint64_t bytes,
                     uint32_t cqe, struct base_errbuf *err)
{
    const struct fab_open_attr attr = {.device = dir, .model = model};
    int status = fab_soft.open(&attr, &s->fab, err);
    if (status != 0)
        return status;
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe}};
    if ((status = call(s->fab, &pd, "a protection domain", err)) != 0 ||
        (status = call(s->fab, &cq, "a completion queue", err)) != 0)
        return status;
    s->pd = pd.pd.x;
    s->cq = cq.cq.x;
    status = fab_mem_alloc(bytes, "kedge-perf", &s->mem);
    if (status != 0)
        return base_err(err, status, "%llu bytes of memory: %s", (unsigned long long)bytes,
                        strerror(-status));
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = s->pd, .mem = &s->mem, .length = s->mem.size, .access = ACCESS}};
    status = call(s->fab, &mr, "registering memory", err);
    s->mr = mr.mr.x;
    return status;
}

static int target_open(struct side *s, const char *dir, uint64_t bytes, struct card *card,
                       struct base_errbuf *err)
{
    uint64_t key;
    int status = side_open(s, dir, NULL, bytes, 16, err);
    if (status == 0)
        status = base_random_bytes(&key, sizeof key);
    if (status != 0)
        return status;
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = s->pd, .max_wr = 16, .max_sge = 1}};
    if ((status = call(s->fab, &srq, "an SRQ", err)) != 0)
        return status;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = s->pd, .cq = s->cq, .srq = srq.srq.x, .dc_key = key, .access = ACCESS}};
    if ((status = call(s->fab, &dct, "a DC target", err)) != 0)
        return status;
    perf_pattern(s->mem.addr, bytes);
    memcpy(card->gid, s->fab->caps.gid, 16);
    card->dc_key = key;
    card->dctn = dct.dct.x->dctn;
    card->addr = s->mr->addr;
    card->rkey = s->mr->rkey;
    return 0;
}

/* The target's process: tells its card, then sleeps until its parent closes the pipe. */
static _Noreturn void target_main(const char *dir, uint64_t bytes, int tell, int wait_for)
{
    static struct side s;
    struct card card = {.status = 0};
    char end;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    card.status = target_open(&s, dir, bytes, &card, &card.err);
    if (write(tell, &card, sizeof card) == (ssize_t)sizeof card)
        (void)!read(wait_for, &end, 1);
    _exit(0);
}

static int start_target(const char *dir, uint64_t bytes, pid_t *pid, int *keep, struct card *card,
                        struct base_errbuf *err)
{
    int tell[2], end[2];
    if (pipe2(tell, O_CLOEXEC) != 0 || pipe2(end, O_CLOEXEC) != 0)
        return base_err(err, -errno, "a pipe: %s", strerror(errno));
    *pid = fork();
    if (*pid < 0)
        return base_err(err, -errno, "fork: %s", strerror(errno));
    if (*pid == 0) {
        close(end[1]);
        target_main(dir, bytes, tell[1], end[0]);
    }
    close(tell[1]);
    close(end[0]);
    *keep = end[1];
    ssize_t got = read(tell[0], card, sizeof *card);
    close(tell[0]);
    if (got != (ssize_t)sizeof *card)
        return base_err(err, -EIO, "the target process ended before it was ready");
    return card->status == 0 ? 0 : base_err(err, card->status, "target: %s", card->err.text);
}

static int dci_modify(struct fab_qp *qp, struct ibv_qp_attr attr, int mask, struct base_errbuf *err)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = qp, .attr = attr, .mask = mask | IBV_QP_STATE}};
    return call(qp->pd->fab, &ctl, "a DCI's change of state", err);
}

static int dci_open(struct direct *d, struct base_errbuf *err)
{
    struct fab_ctl qp = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = d->side.pd,
               .type = FAB_QP_DCI,
               .send_cq = d->side.cq,
               .recv_cq = d->side.cq,
               .cap = {.send_wr = d->path.depth, .send_sge = 1, .inline_bytes = 0}}};
    int status = call(d->side.fab, &qp, "a DCI", err);
    if (status != 0)
        return status;
    d->dci = qp.qp.x;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = d->side.fab->caps.port_num};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_4096,
                              .ah_attr = {.is_global = 1, .port_num = init.port_num}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = TIMEOUT,
                              .retry_cnt = 7,
                              .rnr_retry = 7,
                              .max_rd_atomic = 16};
    status = dci_modify(d->dci, init, IBV_QP_PKEY_INDEX | IBV_QP_PORT, err);
    if (status == 0)
        status = dci_modify(d->dci, rtr, IBV_QP_PATH_MTU, err);
    if (status == 0)
        status = dci_modify(d->dci, rts,
                            IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC,
                            err);
    return status;
}

static int post(struct perf_path *path, uint32_t first, uint32_t count, struct base_errbuf *err)
{
    struct direct *d = (struct direct *)path;
    struct fab_wr *bad;
    uint32_t slot = first;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t next = slot + 1 == path->depth ? 0 : slot + 1;
        d->wr[slot].next = &d->wr[next];
        slot = next;
    }
    d->wr[slot].next = NULL;
    int status = fab_post_send(d->dci, &d->wr[first], &bad);
    return status == 0 ? 0 : base_err(err, status, "posting failed: %s", strerror(-status));
}

static int poll(struct perf_path *path, struct base_errbuf *err)
{
    struct ibv_wc wc[POLL];
    int n = fab_poll(((struct direct *)path)->side.cq, POLL, wc);
    if (n < 0)
        return base_err(err, n, "the completion queue overflowed");
    for (int i = 0; i < n; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return base_err(err, -EIO, "an operation failed with status %d", wc[i].status);
    return n;
}

static void requests(struct direct *d, const struct perf_options *o, const struct card *to,
                     struct fab_ah *ah, enum ibv_wr_opcode opcode)
{
    uint32_t stride = perf_stride(o->size);
    for (uint32_t i = 0; i < o->depth; i++) {
        d->sge[i] = (struct ibv_sge){.addr = d->side.mr->addr + (uint64_t)i * stride,
                                     .length = o->size,
                                     .lkey = d->side.mr->lkey};
        d->wr[i] = (struct fab_wr){.wr_id = i,
                                   .sg_list = &d->sge[i],
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .key.rkey = to->rkey,
                                   .remote_addr = to->addr + (uint64_t)i * stride,
                                   .ah = ah,
                                   .dest_qpn = to->dctn};
        d->wr[i].dc_key = to->dc_key;
    }
}

/* Warms up, measures, then looks at the bytes: what was read, or, read back, what was written. */
static int run(struct direct *d, const struct perf_options *o, const struct card *to,
               struct perf_result *r, struct base_errbuf *err)
{
    static struct perf_result unused;
    struct base_clock_fast clock;
    const bool write = o->test == PERF_WRITE;
    uint64_t bytes = (uint64_t)perf_stride(o->size) * o->depth;
    struct fab_ctl ah = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = d->side.pd, .attr = {.is_global = 1, .port_num = d->side.fab->caps.port_num}}};
    memcpy(ah.ah.attr.grh.dgid.raw, to->gid, 16);
    int status = call(d->side.fab, &ah, "an address handle", err);
    if (status != 0)
        return status;
    base_clock_fast_init(&clock);
    if (write)
        perf_pattern(d->side.mem.addr, bytes);
    requests(d, o, to, ah.ah.x, write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ);
    status = perf_loop(&d->path, &clock, o->depth + o->count / 10, &unused, err);
    if (status == 0)
        status = perf_loop(&d->path, &clock, o->count, r, err);
    if (status == 0 && write) {
        memset(d->side.mem.addr, 0, bytes);
        requests(d, o, to, ah.ah.x, IBV_WR_RDMA_READ);
        status = perf_loop(&d->path, &clock, o->depth, &unused, err);
    }
    for (uint32_t i = 0; i < o->depth && status == 0 && i < o->count; i++)
        if (!perf_pattern_holds(d->side.mem.addr, (uint64_t)i * perf_stride(o->size), o->size))
            status = base_err(err, -EBADMSG, "slot %u holds other bytes than the target's", i);
    r->verified = status == 0;
    struct fab_ctl gone = {.kind = FAB_DESTROY_AH, .ah = {.x = ah.ah.x}};
    (void)fab_call(d->side.fab, &gone); /* nothing else points at it */
    return status;
}

static void remove_directory(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    (void)rmdir(dir);
}

int perf_direct(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct direct d;
    static struct card card;
    char dir[] = "/dev/shm/kedge-perf-XXXXXX";
    uint64_t bytes = (uint64_t)perf_stride(o->size) * o->depth;
    pid_t target = -1;
    int keep = -1;
    d.path = (struct perf_path){.post = post, .poll = poll, .depth = o->depth};
    d.wr = calloc(o->depth, sizeof *d.wr);
    d.sge = calloc(o->depth, sizeof *d.sge);
    int status = d.wr == NULL || d.sge == NULL ? base_err(err, -ENOMEM, "out of memory") : 0;
    if (status == 0 && mkdtemp(dir) == NULL)
        status = base_err(err, -errno, "a directory in /dev/shm: %s", strerror(errno));
    if (status != 0)
        goto out_memory;
    status = start_target(dir, bytes, &target, &keep, &card, err);
    if (status == 0)
        status = side_open(&d.side, dir, o->model, bytes, o->depth, err);
    if (status == 0)
        status = dci_open(&d, err);
    if (status == 0 && o->spin)
        status = perf_spinner_start(err);
    if (status == 0)
        status = run(&d, o, &card, r, err);
    if (status == 0 && o->spin)
        perf_spinner_stop();
    if (keep >= 0)
        close(keep);
    if (target > 0)
        waitpid(target, NULL, 0);
    remove_directory(dir);
out_memory:
    free(d.wr);
    free(d.sge);
    return status;
}
