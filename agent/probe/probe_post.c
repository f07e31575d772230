/* SPDX-License-Identifier: Apache-2.0 */
/* The bed's data path: requests, completions, and how long they took. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"

void probe_bed_fill(struct bed *b, struct bed_wr *w, enum ibv_wr_opcode opcode, uint64_t near,
                    uint64_t far, uint32_t length)
{
    *w = (struct bed_wr){
        .sge = {.addr = b->near_mr->addr + near, .length = length, .lkey = b->near_mr->lkey},
        .wr = {.wr_id = b->next_id++,
               .num_sge = 1,
               .opcode = opcode,
               .send_flags = IBV_SEND_SIGNALED,
               .key.rkey = b->far_mr->rkey,
               .remote_addr = b->far_mr->addr + far}};
    w->wr.sg_list = &w->sge;
}

void probe_bed_address(const struct bed *b, const struct bed_path *path, struct bed_wr *w)
{
    if (path->dct == NULL)
        return;
    w->wr.ah = b->ah;
    w->wr.dest_qpn = path->dct->dctn;
    w->wr.dc_key = path->dct->dc_key;
}

int probe_bed_post(struct fab_qp *qp, struct bed_wr *w)
{
    struct fab_wr *bad;
    return fab_post_send(qp, &w->wr, &bad);
}

int64_t probe_bed_post_recv(struct bed *b, struct fab_qp *qp, uint64_t far, uint32_t length)
{
    struct ibv_sge sge = {.addr = b->far_mr->addr + far, .length = length, .lkey = b->far_mr->lkey};
    struct fab_recv_wr wr = {.wr_id = b->next_id++, .sg_list = &sge, .num_sge = 1}, *bad;
    int status = qp != NULL ? fab_post_recv(qp, &wr, &bad) : fab_post_srq_recv(b->srq, &wr, &bad);
    return status != 0 ? status : (int64_t)wr.wr_id;
}

int probe_bed_wait(struct fab_cq *cq, uint64_t wr_id, uint64_t wait_ns, struct ibv_wc *out)
{
    const uint64_t end = base_clock_ns() + wait_ns;
    struct ibv_wc wc;
    for (;;) {
        int n = fab_poll(cq, 1, &wc);
        if (n < 0)
            return n;
        if (n == 1 && wc.wr_id == wr_id) {
            *out = wc;
            return 0;
        }
        if (n == 0 && base_clock_ns() >= end)
            return -ETIMEDOUT;
    }
}

int probe_bed_do(struct bed *b, struct fab_qp *qp, struct bed_wr *w, struct ibv_wc *out)
{
    int status = probe_bed_post(qp, w);
    return status != 0 ? status : probe_bed_wait(b->cq, w->wr.wr_id, b->wait_ns, out);
}

/* ---- durations */

void probe_bed_time(struct bed_times *t, uint64_t ns)
{
    if (t->count < BED_ROUNDS)
        t->ns[t->count++] = ns;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t probe_bed_median(struct bed_times *t)
{
    if (t->count == 0)
        return 0;
    qsort(t->ns, t->count, sizeof t->ns[0], compare_times);
    return t->ns[t->count / 2];
}

void probe_bed_tell_times(struct probe_check *c, const char *what, struct bed_times *t)
{
    char median[PROBE_DURATION], most[PROBE_DURATION];
    uint64_t middle = probe_bed_median(t), max = t->count > 0 ? t->ns[t->count - 1] : 0;
    probe_number(c, "rounds", t->count);
    probe_number(c, "median_ns", middle);
    probe_number(c, "p99_ns", t->count > 0 ? t->ns[(t->count - 1) * 99 / 100] : 0);
    probe_number(c, "max_ns", max);
    probe_ok(c, "%s: %s (median of %u; at most %s)", what, probe_duration(middle, median), t->count,
             probe_duration(max, most));
}

void probe_bed_run(struct bed *b, const struct bed_case *cases, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct probe_check *c = probe_begin(b->report, cases[i].name, cases[i].need);
        if (b->report->stuck)
            probe_skip(c, "not tried: the device no longer answers");
        else
            cases[i].run(b, c);
    }
}
