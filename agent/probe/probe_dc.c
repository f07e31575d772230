/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic connections: a DC target of this process, and an initiator that reaches it. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "bed.h"

enum { SMALL = 8 };

static struct bed_path path_of(struct bed *b)
{
    return (struct bed_path){.qp = &b->dci, .dct = b->dct};
}

static bool is_ready(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps;
    if (b->dci == NULL || b->dct == NULL || b->ah == NULL) {
        probe_fail(c, "see above", "there is no initiator, target or address to try it with");
        return false;
    }
    if (fab_qp_state(b->dci) == IBV_QPS_RTS)
        return true;
    int status = probe_bed_raise(b, &b->dci, NULL, false, &steps);
    return probe_bed_succeeded(c, "bringing the initiator back to RTS", status, NULL);
}

static void dc_target(struct bed *b, struct probe_check *c)
{
    char took[PROBE_DURATION];
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = b->pd, .cq = b->far_cq, .srq = b->srq, .access = probe_bed_target_access(b)}};
    int status = base_random_bytes(&dct.dct.dc_key, sizeof dct.dct.dc_key);
    uint64_t start = base_clock_ns();
    if (status == 0)
        status = probe_bed_call(b, &dct);
    if (!probe_bed_succeeded(c, "creating a DC target", status, NULL))
        return;
    b->dct = dct.dct.x;
    uint64_t ns = base_clock_ns() - start;
    probe_number(c, "create_ns", ns);
    probe_number(c, "dctn", b->dct->dctn);
    probe_ok(c, "a DC target takes %s to create", probe_duration(ns, took));
}

static void dc_initiator(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps = {.now = IBV_QPS_RESET};
    char created[PROBE_DURATION], raised[PROBE_DURATION], what[80];
    uint64_t start = base_clock_ns();
    int status = probe_bed_qp_new(b, BED_DCI, NULL, &b->dci);
    uint64_t made = base_clock_ns();
    if (!probe_bed_succeeded(c, "creating a DC initiator", status, NULL))
        return;
    status = probe_bed_raise(b, &b->dci, NULL, false, &steps);
    uint64_t up = base_clock_ns();
    snprintf(what, sizeof what, "moving a DC initiator to %s", probe_bed_state_name(steps.now));
    if (!probe_bed_succeeded(c, what, status, NULL))
        return;
    status = b->ah == NULL ? probe_bed_ah_new(b, &b->ah) : 0;
    if (!probe_bed_succeeded(c, "making an address handle", status, NULL))
        return;
    probe_number(c, "create_ns", made - start);
    probe_number(c, "raise_ns", up - made);
    probe_number(c, "inline_bytes", b->dci->cap.inline_bytes);
    probe_number(c, "streams", b->fab->caps.dci_streams);
    probe_ok(c, "a DC initiator takes %s to create and %s to bring to RTS%s",
             probe_duration(made - start, created), probe_duration(up - made, raised),
             b->fab->caps.dci_streams ? "; it has streams" : "");
}

#define TRY(name, call)                                                                            \
    static void name(struct bed *b, struct probe_check *c)                                         \
    {                                                                                              \
        struct bed_path p = path_of(b);                                                            \
        if (is_ready(b, c))                                                                        \
            call;                                                                                  \
    }
TRY(dc_read, probe_bed_try_read(b, &p, c))
TRY(dc_write, probe_bed_try_write(b, &p, c, false))
TRY(dc_inline, probe_bed_try_write(b, &p, c, true))
TRY(dc_add, probe_bed_try_add(b, &p, c))
TRY(dc_swap, probe_bed_try_swap(b, &p, c))
TRY(dc_merged, probe_bed_try_merged(b, &p, c))
TRY(dc_chain, probe_bed_try_chain(b, &p, c))

static void dc_send(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    struct ibv_wc wc, got;
    struct bed_wr w;
    if (!is_ready(b, c))
        return;
    memset(b->near, 7, SMALL);
    memset(b->far, 0, SMALL);
    int64_t id = probe_bed_post_recv(b, NULL, 0, SMALL);
    if (!probe_bed_succeeded(c, "posting a receive", id < 0 ? (int)id : 0, NULL))
        return;
    probe_bed_fill(b, &w, IBV_WR_SEND, 0, 0, SMALL);
    probe_bed_address(b, &p, &w);
    int status = probe_bed_do(b, *p.qp, &w, &wc);
    if (!probe_bed_succeeded(c, "a SEND", status, &wc))
        return;
    status = probe_bed_wait(b->far_cq, (uint64_t)id, b->wait_ns, &got);
    if (!probe_bed_succeeded(c, "its receive", status, &got))
        return;
    if (got.byte_len != SMALL || memcmp(b->near, b->far, SMALL) != 0)
        probe_fail(c, "send this report", "a SEND completed, but something else was received");
    else
        probe_ok(c, "a SEND arrives at the target's shared receive queue");
}

/* An error that breaks the initiator, the repair, and that it works again. */
static void check_break(struct bed *b, struct probe_check *c, struct bed_wr *w, const char *what,
                        enum ibv_wc_status expected)
{
    struct bed_path p = path_of(b);
    struct bed_steps steps;
    struct ibv_wc wc;
    char silent[PROBE_DURATION], repaired[PROBE_DURATION];
    memset(b->far, 1, SMALL);
    memset(b->near, 2, SMALL);
    uint64_t start = base_clock_ns();
    int status = probe_bed_do(b, *p.qp, w, &wc);
    uint64_t answered = base_clock_ns();
    if (!probe_bed_succeeded(c, what, status, NULL))
        return;
    if (b->far[0] != 1 || wc.status == IBV_WC_SUCCESS) {
        probe_fail(c, "do not use this device", "%s was carried out", what);
        return;
    }
    status = probe_bed_raise(b, p.qp, NULL, false, &steps);
    uint64_t raised = base_clock_ns();
    if (!probe_bed_succeeded(c, "bringing the broken initiator back to RTS", status, NULL))
        return;
    int got = wc.status;
    unsigned vendor = wc.vendor_err;
    probe_bed_fill(b, w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    probe_bed_address(b, &p, w);
    status = probe_bed_do(b, *p.qp, w, &wc);
    if (!probe_bed_succeeded(c, "a WRITE after the repair", status, &wc))
        return;
    probe_number(c, "wc_status", (uint64_t)got);
    probe_number(c, "vendor_err", vendor);
    probe_number(c, "answer_ns", answered - start);
    probe_number(c, "repair_ns", raised - answered);
    probe_duration(answered - start, silent);
    probe_duration(raised - answered, repaired);
    if ((enum ibv_wc_status)got == expected)
        probe_ok(c, "%s ends with %s after %s; the initiator is repaired in %s and works", what,
                 probe_bed_wc_name((enum ibv_wc_status)got), silent, repaired);
    else
        probe_warn(c, "send this report: Kedge treats both alike, but should know",
                   "%s ends with %s after %s, where %s was expected; the initiator is repaired in "
                   "%s and works",
                   what, probe_bed_wc_name((enum ibv_wc_status)got), silent,
                   probe_bed_wc_name(expected), repaired);
}

static void dc_wrong_dc_key(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    struct bed_wr w;
    if (!is_ready(b, c))
        return;
    probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    probe_bed_address(b, &p, &w);
    w.wr.dc_key ^= 1;
    check_break(b, c, &w, "a WRITE with a wrong DC key", IBV_WC_RETRY_EXC_ERR);
}

static void dc_wrong_rkey(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    struct bed_wr w;
    if (!is_ready(b, c))
        return;
    probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    probe_bed_address(b, &p, &w);
    w.wr.key.rkey ^= 0x5a5a00;
    check_break(b, c, &w, "a WRITE with a wrong remote key", IBV_WC_REM_ACCESS_ERR);
}

/* A number that no target has. */
static void dc_silent(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    struct bed_steps steps;
    struct bed_wr w;
    if (!is_ready(b, c))
        return;
    int status = probe_bed_raise(b, p.qp, NULL, true, &steps);
    if (!probe_bed_succeeded(c, "bringing the initiator to RTS", status, NULL))
        return;
    probe_bed_fill(b, &w, IBV_WR_RDMA_READ, 0, 0, SMALL);
    probe_bed_address(b, &p, &w);
    w.wr.dest_qpn ^= 0x800000;
    probe_bed_try_silence(b, c, p.qp, NULL, &w);
}

void probe_dc(struct bed *b)
{
    static const struct bed_case cases[] = {
        {"dc.target", PROBE_FOR_DC, dc_target},
        {"dc.initiator", PROBE_FOR_DC, dc_initiator},
        {"dc.read", PROBE_FOR_DC, dc_read},
        {"dc.write", PROBE_FOR_DC, dc_write},
        {"dc.write_inline", PROBE_FOR_DC, dc_inline},
        {"dc.send", PROBE_FOR_DC, dc_send},
        {"dc.fetch_add", PROBE_FOR_DC, dc_add},
        {"dc.cmp_swap", PROBE_FOR_DC, dc_swap},
        {"dc.merged", PROBE_FOR_NOTHING, dc_merged},
        {"dc.list", PROBE_FOR_DC, dc_chain},
        {"dc.wrong_key", PROBE_FOR_DC, dc_wrong_rkey},
        {"dc.wrong_dc_key", PROBE_FOR_DC, dc_wrong_dc_key},
        {"dc.silent_peer", PROBE_FOR_NOTHING, dc_silent},
    };
    bool has = (b->fab->caps.transports & FAB_DC) != 0;
    struct probe_check *c = probe_begin(b->report, "dc", PROBE_FOR_DC);
    if (!has) {
        probe_skip(c, "no DC: %s; Kedge uses RC there", b->report->no_dc);
        return;
    }
    probe_ok(c, "the device has dynamic connections (DC)%s",
             b->fab->caps.dci_streams ? ", with streams" : "");
    probe_bed_run(b, cases, sizeof cases / sizeof cases[0]);
}
