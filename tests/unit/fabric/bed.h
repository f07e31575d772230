/* SPDX-License-Identifier: Apache-2.0 */
/* A test bed for the soft provider: a device directory of its own, and nodes on it with one of each
 * object. Every failure aborts the test where it happened. */
#ifndef TESTS_UNIT_FABRIC_BED_H
#define TESTS_UNIT_FABRIC_BED_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dirent.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "fabric/fabric.h"

#define BED_ALL_ACCESS                                                                             \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |                   \
     IBV_ACCESS_REMOTE_ATOMIC)
enum { BED_KEY = 0x5eed, BED_QKEY = 0x1111, BED_MEM = 1 << 20 };

/* What a node tells another, in a pipe or in shared memory. */
struct bed_card {
    uint8_t gid[16];
    uint32_t dctn, qpn, rkey;
    uint64_t addr;
};

struct bed_node {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_chan *chan;
    struct fab_cq *cq;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_mem mem;
    struct fab_mr *mr;
};

static inline void bed_dir_make(char dir[64])
{
    snprintf(dir, 64, "/dev/shm/kedge-test-XXXXXX");
    BASE_ASSERT(mkdtemp(dir) != NULL);
}

/* How many files of the device directory have names that begin so. */
static inline int bed_dir_count(const char *dir, const char *prefix)
{
    int n = 0;
    DIR *d = opendir(dir);
    BASE_ASSERT(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static inline void bed_dir_remove(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    (void)rmdir(dir);
}

/* Runs a control operation that must succeed. */
static inline void bed_do(struct fab *fab, struct fab_ctl *ctl)
{
    int status = fab_call(fab, ctl);
    if (status != 0)
        fprintf(stderr, "control operation %d: %s\n", ctl->kind, strerror(-status));
    BASE_ASSERT(status == 0);
}

static inline struct fab_mr *bed_reg(struct bed_node *n, const struct fab_mem *mem, uint64_t offset,
                                     uint64_t length, unsigned access)
{
    struct fab_ctl ctl = {
        .kind = FAB_REG_MR,
        .mr = {.pd = n->pd, .mem = mem, .offset = offset, .length = length, .access = access}};
    bed_do(n->fab, &ctl);
    return ctl.mr.x;
}

static inline int bed_dereg(struct bed_node *n, struct fab_mr *mr)
{
    struct fab_ctl ctl = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    return fab_call(n->fab, &ctl);
}

/* A CQ of cqe entries on the node's channel. */
static inline struct fab_cq *bed_cq(struct bed_node *n, uint32_t cqe)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe, .chan = n->chan}};
    bed_do(n->fab, &ctl);
    return ctl.cq.x;
}

/* Opens a node with a PD, a channel, a CQ, an SRQ, a DC target, and a registered MiB. */
static inline void bed_open(struct bed_node *n, const char *dir)
{
    struct base_errbuf err = {.text = ""};
    int status = fab_soft.open(&(struct fab_open_attr){.device = dir}, &n->fab, &err);
    if (status != 0)
        fprintf(stderr, "%s\n", err.text);
    BASE_ASSERT(status == 0);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    bed_do(n->fab, &pd);
    n->pd = pd.pd.x;
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    bed_do(n->fab, &chan);
    n->chan = chan.chan.x;
    n->cq = bed_cq(n, 1024);
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ, .srq = {.pd = n->pd, .max_wr = 64, .max_sge = 4}};
    bed_do(n->fab, &srq);
    n->srq = srq.srq.x;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {
            .pd = n->pd, .cq = n->cq, .srq = n->srq, .dc_key = BED_KEY, .access = BED_ALL_ACCESS}};
    bed_do(n->fab, &dct);
    n->dct = dct.dct.x;
    BASE_ASSERT(fab_mem_alloc(BED_MEM, "bed", &n->mem) == 0);
    n->mr = bed_reg(n, &n->mem, 0, BED_MEM, BED_ALL_ACCESS);
}

static inline struct bed_card bed_card(const struct bed_node *n, const struct fab_qp *qp)
{
    struct bed_card card = {.dctn = n->dct->dctn,
                            .qpn = qp != NULL ? qp->qpn : 0,
                            .rkey = n->mr->rkey,
                            .addr = n->mr->addr};
    memcpy(card.gid, n->fab->caps.gid, 16);
    return card;
}

static inline void bed_close(struct bed_node *n)
{
    BASE_ASSERT(bed_dereg(n, n->mr) == 0);
    struct fab_ctl ops[] = {{.kind = FAB_DESTROY_DCT, .dct = {.x = n->dct}},
                            {.kind = FAB_DESTROY_SRQ, .srq = {.x = n->srq}},
                            {.kind = FAB_DESTROY_CQ, .cq = {.x = n->cq}},
                            {.kind = FAB_DESTROY_CHAN, .chan = {.x = n->chan}},
                            {.kind = FAB_FREE_PD, .pd = {.x = n->pd}}};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        bed_do(n->fab, &ops[i]);
    BASE_ASSERT(fab_close(n->fab) == 0);
    fab_mem_free(&n->mem);
}

static inline struct fab_qp *bed_qp_new(struct bed_node *n, enum fab_qp_type type,
                                        struct fab_cq *cq)
{
    struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                          .qp = {.pd = n->pd,
                                 .type = type,
                                 .send_cq = cq,
                                 .recv_cq = cq,
                                 .cap = {.send_wr = 128,
                                         .recv_wr = type == FAB_QP_DCI ? 0 : 16,
                                         .send_sge = 4,
                                         .recv_sge = type == FAB_QP_DCI ? 0 : 4,
                                         .inline_bytes = 64}}};
    bed_do(n->fab, &ctl);
    return ctl.qp.x;
}

static inline void bed_modify(struct fab_qp *qp, struct ibv_qp_attr attr, int mask)
{
    struct fab_ctl ctl = {.kind = FAB_MODIFY_QP,
                          .modify = {.x = qp, .attr = attr, .mask = mask | IBV_QP_STATE}};
    bed_do(qp->pd->fab, &ctl);
}

/* How a queue pair waits: 4.096 us << timeout, retry_cnt + 1 times. */
struct bed_patience {
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
};
static const struct bed_patience bed_patient = {
    .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
static const struct bed_patience bed_hasty = {
    .timeout = 8, .retry_cnt = 1, .rnr_retry = 1, .min_rnr_timer = 1};

/* From RESET to RTS; peer is for RC alone. */
static inline void bed_connect(struct fab_qp *qp, const struct bed_card *peer,
                               struct bed_patience p)
{
    bool rc = qp->type == FAB_QP_RC, ud = qp->type == FAB_QP_UD;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = qp->pd->fab->caps.port_num,
                            .qkey = BED_QKEY,
                            .qp_access_flags = BED_ALL_ACCESS};
    bed_modify(qp, a,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | (rc ? IBV_QP_ACCESS_FLAGS : 0) |
                   (ud ? IBV_QP_QKEY : 0));
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_4096,
                             .max_dest_rd_atomic = 16,
                             .min_rnr_timer = p.min_rnr_timer,
                             .ah_attr = {.is_global = 1, .port_num = 1}};
    if (rc) {
        a.dest_qp_num = peer->qpn;
        memcpy(a.ah_attr.grh.dgid.raw, peer->gid, 16);
    }
    bed_modify(qp, a,
               ud   ? 0
               : rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                    : IBV_QP_PATH_MTU);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = p.timeout,
                             .retry_cnt = p.retry_cnt,
                             .rnr_retry = p.rnr_retry,
                             .max_rd_atomic = 16};
    bed_modify(qp, a,
               ud ? IBV_QP_SQ_PSN
                  : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline struct fab_qp *bed_qp(struct bed_node *n, enum fab_qp_type type,
                                    struct bed_patience p)
{
    struct fab_qp *qp = bed_qp_new(n, type, n->cq);
    bed_connect(qp, NULL, p);
    return qp;
}

/* A connected pair of RC queue pairs. */
static inline void bed_rc_pair(struct bed_node *a, struct bed_node *b, struct bed_patience p,
                               struct fab_qp *qp[2])
{
    qp[0] = bed_qp_new(a, FAB_QP_RC, a->cq);
    qp[1] = bed_qp_new(b, FAB_QP_RC, b->cq);
    struct bed_card card[2] = {bed_card(a, qp[0]), bed_card(b, qp[1])};
    bed_connect(qp[0], &card[1], p);
    bed_connect(qp[1], &card[0], p);
}

static inline void bed_qp_free(struct fab_qp *qp)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_QP, .qp = {.x = qp}};
    bed_do(qp->pd->fab, &ctl);
}

static inline struct fab_ah *bed_ah(struct bed_node *n, const uint8_t gid[16])
{
    struct fab_ctl ctl = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = n->pd, .attr = {.is_global = 1, .port_num = n->fab->caps.port_num}}};
    memcpy(ctl.ah.attr.grh.dgid.raw, gid, 16);
    bed_do(n->fab, &ctl);
    return ctl.ah.x;
}

static inline void bed_ah_free(struct fab_ah *ah)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_AH, .ah = {.x = ah}};
    bed_do(ah->pd->fab, &ctl);
}

/* A request from `local` (an offset in n's memory) to `remote` (an offset in the peer's). */
struct bed_wr {
    struct fab_wr wr;
    struct ibv_sge sge;
};

static inline void bed_fill(struct bed_wr *b, const struct bed_node *n, const struct bed_card *to,
                            struct fab_ah *ah, enum ibv_wr_opcode opcode, uint64_t local,
                            uint64_t remote, uint32_t length)
{
    b->sge = (struct ibv_sge){.addr = n->mr->addr + local, .length = length, .lkey = n->mr->lkey};
    b->wr = (struct fab_wr){.wr_id = 1,
                            .sg_list = &b->sge,
                            .num_sge = 1,
                            .opcode = opcode,
                            .send_flags = IBV_SEND_SIGNALED,
                            .key.rkey = to->rkey,
                            .remote_addr = to->addr + remote,
                            .ah = ah,
                            .dest_qpn = to->dctn};
    b->wr.dc_key = BED_KEY;
}

static inline void bed_post(struct fab_qp *qp, struct fab_wr *wr)
{
    struct fab_wr *bad;
    int status = fab_post_send(qp, wr, &bad);
    if (status != 0)
        fprintf(stderr, "post_send: %s\n", strerror(-status));
    BASE_ASSERT(status == 0);
}

/* Waits for one completion, ten seconds at most. */
static inline struct ibv_wc bed_wait(struct fab_cq *cq)
{
    struct ibv_wc wc;
    uint64_t start = base_clock_ns();
    for (;;) {
        int n = fab_poll(cq, 1, &wc);
        BASE_ASSERT(n >= 0);
        if (n == 1)
            return wc;
        BASE_ASSERT(base_clock_ns() - start < 10 * BASE_NS_PER_S);
    }
}

static inline enum ibv_wc_status bed_post_wait(struct fab_qp *qp, struct fab_wr *wr)
{
    bed_post(qp, wr);
    return bed_wait(qp->send_cq).status;
}

/* A receive of length bytes at an offset of the node's memory. */
static inline int bed_recv(struct bed_node *n, struct fab_qp *qp, uint64_t wr_id, uint64_t offset,
                           uint32_t length)
{
    struct ibv_sge sge = {.addr = n->mr->addr + offset, .length = length, .lkey = n->mr->lkey};
    struct fab_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return qp != NULL ? fab_post_recv(qp, &wr, &bad) : fab_post_srq_recv(n->srq, &wr, &bad);
}

static inline void bed_read_full(int fd, void *buffer, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = read(fd, (char *)buffer + done, n - done);
        BASE_ASSERT(r > 0);
        done += (size_t)r;
    }
}

static inline void bed_write_full(int fd, const void *buffer, size_t n)
{
    BASE_ASSERT(write(fd, buffer, n) == (ssize_t)n);
}

#endif
