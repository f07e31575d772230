/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to let a peer reach a part of memory, and to take that back so that the device
 * refuses what comes later: by a registration of that part, or by a type-1 memory window that is
 * bound to it on an RC queue pair connected to another one of this process. Not installed.
 *
 *   kedge-registrations [DEVICE]      a line for each: median, rate, keys and locked bytes */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "private.h"

enum { ROUNDS = 200, SIZES = 3, ALL = 0xf /* LOCAL_WRITE and REMOTE_* */ };
static const size_t size[SIZES] = {4 << 10, 64 << 10, 2 << 20};

struct pair {
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
};

static uint64_t now_ns(void)
{
    return base_clock_ns();
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* What the kernel counts as pinned by this process. */
static unsigned long pinned_kib(void)
{
    unsigned long kib = 0;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmPin: %lu", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return kib;
}

static void tell(const char *what, size_t bytes, uint64_t ns[ROUNDS], unsigned long kib)
{
    uint64_t sum = 0;
    for (int i = 0; i < ROUNDS; i++)
        sum += ns[i];
    qsort(ns, ROUNDS, sizeof ns[0], compare);
    printf("%-28s %5zu KiB: %8.1f us (median of %d), %7.0f a second, 1 key, %lu KiB locked\n", what,
           bytes >> 10, (double)ns[ROUNDS / 2] / 1e3, ROUNDS, 1e9 * ROUNDS / (double)sum, kib);
}

static int by_registrations(struct bench_program *p, size_t bytes)
{
    uint64_t ns[ROUNDS];
    unsigned long kib = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const unsigned long before = pinned_kib();
        uint64_t begin = now_ns();
        struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buffer, bytes, ALL);
        if (mr == NULL)
            return -errno;
        ns[i] = now_ns() - begin;
        kib = pinned_kib() - before;
        begin = now_ns();
        int status = ibv_dereg_mr(mr);
        if (status != 0)
            return -status;
        ns[i] += now_ns() - begin;
    }
    tell("registered and deregistered", bytes, ns, kib);
    return 0;
}

static int raise_one(struct bench_program *p, struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = p->port, .qp_access_flags = ALL | IBV_ACCESS_MW_BIND};
    int status =
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status != 0)
        return -status;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = p->port_attr.active_mtu,
                             .dest_qp_num = peer,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 1,
                             .ah_attr = {.port_num = p->port,
                                         .dlid = p->port_attr.lid,
                                         .is_global = 1,
                                         .grh = {.sgid_index = p->gid_index, .hop_limit = 1}}};
    memcpy(a.ah_attr.grh.dgid.raw, p->gid, 16);
    status = ibv_modify_qp(qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (status != 0)
        return -status;
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    return -ibv_modify_qp(qp, &a,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int make_pair(struct bench_program *p, struct pair *pair)
{
    pair->cq = ibv_create_cq(p->context, 16, NULL, NULL, 0);
    if (pair->cq == NULL)
        return -errno;
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = pair->cq,
            .recv_cq = pair->cq,
            .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC};
        pair->qp[i] = ibv_create_qp(p->pd, &attr);
        if (pair->qp[i] == NULL)
            return -errno;
    }
    int status = raise_one(p, pair->qp[0], pair->qp[1]->qp_num);
    return status != 0 ? status : raise_one(p, pair->qp[1], pair->qp[0]->qp_num);
}

/* Length 0 unbinds: the device refuses the key from then on. */
static int bind(struct pair *pair, struct ibv_mw *mw, struct ibv_mr *mr, size_t bytes)
{
    struct ibv_mw_bind b = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = mr,
                      .addr = bytes != 0 ? (uintptr_t)mr->addr : 0,
                      .length = bytes,
                      .mw_access_flags = bytes != 0 ? ALL & ~IBV_ACCESS_LOCAL_WRITE : 0}};
    struct ibv_wc wc;
    int n, status = ibv_bind_mw(pair->qp[0], mw, &b);
    if (status != 0)
        return -status;
    while ((n = ibv_poll_cq(pair->cq, 1, &wc)) == 0)
        ;
    return n < 0 ? -EIO : wc.status == IBV_WC_SUCCESS ? 0 : -EPROTO;
}

static int by_windows(struct bench_program *p)
{
    uint64_t ns[ROUNDS];
    struct pair pair;
    int status = make_pair(p, &pair);
    struct ibv_mr *mr =
        status == 0 ? ibv_reg_mr(p->pd, p->buffer, BENCH_BUFFER_BYTES, ALL | IBV_ACCESS_MW_BIND)
                    : NULL;
    struct ibv_mw *mw = mr != NULL ? ibv_alloc_mw(p->pd, IBV_MW_TYPE_1) : NULL;
    if (mw == NULL)
        return status != 0 ? status : -errno;
    for (int k = 0; k < SIZES && status == 0; k++) {
        const unsigned long before = pinned_kib();
        for (int i = 0; i < ROUNDS && status == 0; i++) {
            const uint64_t begin = now_ns();
            status = bind(&pair, mw, mr, size[k]);
            if (status == 0)
                status = bind(&pair, mw, mr, 0);
            ns[i] = now_ns() - begin;
        }
        if (status == 0)
            tell("window bound and unbound", size[k], ns, pinned_kib() - before);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct base_errbuf err = {.text = ""};
    const struct bench_choice choice = {.device = argc > 1 ? argv[1] : NULL};
    struct bench_program *p;
    int status = bench_program_open(&choice, false, NULL, &p, &err);
    if (status != 0) {
        fprintf(stderr, "kedge-registrations: %s\n", err.text);
        return 1;
    }
    for (int k = 0; k < SIZES && status == 0; k++)
        status = by_registrations(p, size[k]);
    if (status != 0) {
        fprintf(stderr, "kedge-registrations: registering: %s\n", strerror(-status));
        return 1;
    }
    status = by_windows(p);
    if (status != 0)
        printf("type-1 memory windows: not on this device: %s\n", strerror(-status));
    return 0;
}
