/* SPDX-License-Identifier: Apache-2.0 */
/* What a notification adds to the WRITEs before it, from their doorbell until the sender knows that
 * the counter was raised, or the receive ended: in turns with the same WRITEs alone. Of one worker,
 * that writes to itself through its agent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kedge_notify.h>

#include "perf.h"

enum { TURNS = PERF_NOTIFY_TURNS, LIST = PERF_NOTIFY_LIST, WARM = 200, PORT = 1 };

static const struct {
    const char *name;
    enum perf_notify beside;
    uint32_t writes;
} kinds[PERF_NOTIFIES] = {
    [PERF_WRITE_ALONE] = {"write", PERF_WRITE_ALONE, 1},
    [PERF_WRITE_COUNTED] = {"write_counted", PERF_WRITE_ALONE, 1},
    [PERF_WRITE_IMM] = {"write_imm", PERF_WRITE_ALONE, 1},
    [PERF_LIST_ALONE] = {"list", PERF_LIST_ALONE, LIST},
    [PERF_LIST_COUNTED] = {"list_counted", PERF_LIST_ALONE, LIST},
};

struct notifier {
    const struct perf_options *o;
    struct kedge_session *s;
    struct kedge_counter *counter;
    struct kedge_vqp *raises, *sends, *hears;
    uint8_t *from, *to;
    uint32_t lkey, to_lkey, rkey;
    uint64_t raised;
    struct ibv_send_wr wr[LIST + 1];
    struct ibv_sge sge[LIST];
};

/* ---- making */

static int lend_memory(struct notifier *n)
{
    const size_t bytes = (size_t)LIST * perf_stride(n->o->size);
    struct kedge_mr *mr;
    void *at = NULL;
    int status = kedge_alloc(n->s, bytes, &at, &n->lkey);
    n->from = at;
    if (status == 0)
        status = kedge_alloc(n->s, bytes, &at, &n->to_lkey);
    n->to = at;
    if (status == 0)
        status = kedge_reg_mr(n->s, n->to, bytes, IBV_ACCESS_REMOTE_WRITE, &mr);
    if (status == 0)
        n->rkey = kedge_mr_rkey(mr);
    if (status == 0)
        perf_pattern(n->from, bytes);
    return status;
}

static int make_ways(struct notifier *n)
{
    char token[KEDGE_COUNTER_TOKEN_MAX];
    struct kedge_session_info info;
    kedge_session_query(n->s, &info);
    int status = kedge_counter_create(n->s, &n->counter);
    if (status == 0)
        status = kedge_counter_export(n->counter, token, sizeof token);
    if (status == 0)
        status = kedge_vqp_create(n->s, NULL, &n->raises);
    if (status == 0)
        status = kedge_connect_counter(n->raises, token);
    if (status == 0)
        status = kedge_vqp_create(n->s, NULL, &n->hears);
    if (status == 0)
        status = kedge_bind(n->hears, PORT);
    if (status == 0)
        status = kedge_vqp_create(n->s, NULL, &n->sends);
    if (status == 0)
        status = kedge_connect_port(n->sends, info.gid, PORT);
    return status;
}

/* So many WRITEs, of which the last is signalled; or a SEND behind them. */
static void make_list(struct notifier *n, uint32_t writes, bool counted)
{
    const uint32_t stride = perf_stride(n->o->size);
    for (uint32_t i = 0; i < writes; i++) {
        n->sge[i] =
            (struct ibv_sge){(uintptr_t)n->from + (uint64_t)i * stride, n->o->size, n->lkey};
        n->wr[i] = (struct ibv_send_wr){
            .opcode = IBV_WR_RDMA_WRITE,
            .sg_list = &n->sge[i],
            .num_sge = 1,
            .next = i + 1 < writes || counted ? &n->wr[i + 1] : NULL,
            .wr.rdma = {.remote_addr = (uintptr_t)n->to + (uint64_t)i * stride, .rkey = n->rkey}};
    }
    n->wr[writes] = (struct ibv_send_wr){.opcode = IBV_WR_SEND};
    n->wr[counted ? writes : writes - 1].send_flags = IBV_SEND_SIGNALED;
}

/* ---- measuring */

static int post(struct notifier *n, enum perf_notify kind)
{
    struct ibv_recv_wr receive = {.wr_id = 0};
    struct ibv_send_wr *bad;
    int status = 0;
    make_list(n, kinds[kind].writes, kind == PERF_WRITE_COUNTED || kind == PERF_LIST_COUNTED);
    switch (kind) {
    case PERF_WRITE_COUNTED:
    case PERF_LIST_COUNTED:
        return kedge_post_notify(n->raises, n->wr, &bad);
    case PERF_WRITE_IMM:
        n->wr[0].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        status = kedge_post_recv(n->hears, &receive, NULL);
        return status != 0 ? status : kedge_post_send(n->sends, n->wr, &bad);
    default:
        return kedge_post_send(n->raises, n->wr, &bad);
    }
}

static int finish(struct notifier *n, enum perf_notify kind, struct base_errbuf *err)
{
    struct kedge_msg m;
    struct ibv_wc wc;
    uint64_t value = 0;
    int got;
    while ((got = kedge_poll(n->s, 1, &wc)) == 0)
        ;
    if (got < 0)
        return perf_failed(got, "polling", err);
    if (wc.status != IBV_WC_SUCCESS)
        return perf_failed_with(&wc, kinds[kind].name, err);
    if (kind == PERF_WRITE_IMM) /* which was there before its sender knew */
        return kedge_pop_msgs(n->s, 1, &m) == 1 && m.wc.status == IBV_WC_SUCCESS
                   ? 0
                   : base_err(err, -EBADMSG, "a WRITE with immediate ended, and no receive");
    if (kind != PERF_WRITE_COUNTED && kind != PERF_LIST_COUNTED)
        return 0;
    n->raised++;
    return kedge_counter_read(n->counter, &value) == 0 && value == n->raised
               ? 0
               : base_err(err, -EBADMSG, "the counter says %llu after %llu lists",
                          (unsigned long long)value, (unsigned long long)n->raised);
}

static int measure(struct notifier *n, enum perf_notify kind, uint64_t count, double *p50_ns,
                   struct perf_result *r, struct base_errbuf *err)
{
    struct base_clock_fast clock;
    int status = 0;
    base_clock_fast_init(&clock);
    base_hist_reset(&r->hist);
    for (uint64_t i = 0; i < count && status == 0; i++) {
        const uint64_t begun = base_clock_fast_ns(&clock);
        status = post(n, kind);
        if (status != 0)
            return perf_failed(status, "posting", err);
        status = finish(n, kind, err);
        base_hist_record(&r->hist, base_clock_fast_ns(&clock) - begun);
    }
    *p50_ns = (double)base_hist_percentile(&r->hist, 50);
    return status;
}

static int order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void take_medians(double p50[PERF_NOTIFIES][TURNS], struct perf_notified *out)
{
    for (int k = 0; k < PERF_NOTIFIES; k++) {
        double ratio[TURNS], sorted[TURNS];
        for (int t = 0; t < TURNS; t++)
            ratio[t] = p50[k][t] / p50[kinds[k].beside][t];
        memcpy(sorted, p50[k], sizeof sorted);
        qsort(sorted, TURNS, sizeof sorted[0], order_doubles);
        qsort(ratio, TURNS, sizeof ratio[0], order_doubles);
        out[k] = (struct perf_notified){.p50_ns = sorted[TURNS / 2],
                                        .ratio = ratio[TURNS / 2],
                                        .least_ratio = ratio[0],
                                        .most_ratio = ratio[TURNS - 1]};
    }
}

static int take_turns(struct notifier *n, struct perf_result *r, struct base_errbuf *err)
{
    double p50[PERF_NOTIFIES][TURNS], unused;
    int status = 0;
    for (int turn = -1; turn < TURNS && status == 0; turn++)
        for (int k = 0; k < PERF_NOTIFIES && status == 0; k++)
            status = measure(n, (enum perf_notify)k, turn < 0 ? WARM : n->o->count,
                             turn < 0 ? &unused : &p50[k][turn], r, err);
    if (status != 0)
        return status;
    take_medians(p50, r->notified);
    r->verified = true;
    for (uint32_t i = 0; i < LIST; i++)
        r->verified &= perf_pattern_holds(n->to, (uint64_t)i * perf_stride(n->o->size), n->o->size);
    return r->verified ? 0 : base_err(err, -EBADMSG, "the target holds other bytes than were sent");
}

int perf_notify(const struct perf_options *o, struct perf_result *r, struct base_errbuf *err)
{
    static struct notifier n;
    n.o = o;
    int status = perf_open(o->socket, &n.s, &r->retries, err);
    if (status != 0)
        return status;
    status = lend_memory(&n);
    if (status == 0)
        status = make_ways(&n);
    status =
        status != 0 ? perf_failed(status, "a counter and a port", err) : take_turns(&n, r, err);
    kedge_close(n.s);
    return status;
}

/* ---- reporting */

static void print_all(const struct perf_options *o, const struct perf_result *r)
{
    printf("notify of %u bytes, a list has %d WRITEs, medians of %d turns:\n", o->size, LIST,
           TURNS);
    for (int k = 0; k < PERF_NOTIFIES; k++) {
        const struct perf_notified *x = &r->notified[k];
        printf("  %-14s p50 %.3f us, %.2f times (%.2f to %.2f) %s\n", kinds[k].name,
               x->p50_ns / 1e3, x->ratio, x->least_ratio, x->most_ratio,
               kinds[kinds[k].beside].name);
    }
}

void perf_notify_report(const struct perf_options *o, const struct perf_result *r)
{
    struct base_text t;
    if (!o->json) {
        print_all(o, r);
        return;
    }
    base_text_init(&t, 2048);
    base_text_printf(&t,
                     "{\"test\":\"notify\",\"provider\":\"soft\",\"size\":%u,\"list\":%d,"
                     "\"verified\":%s,\"turns\":%d,",
                     o->size, LIST, r->verified ? "true" : "false", TURNS);
    for (int k = 0; k < PERF_NOTIFIES; k++) {
        const struct perf_notified *x = &r->notified[k];
        base_text_printf(&t,
                         "\"%s\":{\"p50_ns\":%.0f,\"ratio\":%.3f,\"least_ratio\":%.3f,"
                         "\"most_ratio\":%.3f},",
                         kinds[k].name, x->p50_ns, x->ratio, x->least_ratio, x->most_ratio);
    }
    base_text_printf(&t, "\"pinned\":%s,", o->pinned ? "true" : "false");
    perf_report_machine(&t);
    base_text_printf(&t, "}");
    puts(base_text_str(&t));
    base_text_fini(&t);
}
