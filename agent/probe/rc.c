/* SPDX-License-Identifier: Apache-2.0 */
/* Reliable connections: two queue pairs of this process, connected to each other. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"

enum { SMALL = 8, PIECES = 4, WRONG = 0x5a5a00, CONNECTS = 20, WAKES = 20 };

/* Whether the pair can be used: raised anew when an earlier check broke it. */
static bool is_ready(struct bed *b, struct fab_qp *qp[2], struct probe_check *c)
{
    struct bed_steps steps;
    if (!b->rc_connects) {
        probe_skip(c, "not tried: queue pairs cannot be connected (rc.connect)");
        return false;
    }
    int status = probe_bed_raise_pair(b, qp, false, &steps);
    return probe_bed_succeeded(c, "bringing the queue pairs back to RTS", status, NULL);
}

static struct bed_path path_of(struct bed *b)
{
    return (struct bed_path){.qp = &b->rc[0]};
}

/* Creates both, then times what the agent does when it connects: the state changes alone. */
static void connect_rc(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps = {.now = IBV_QPS_RESET};
    struct bed_times t = {.count = 0};
    char created[PROBE_DURATION], raised[PROBE_DURATION], what[80];
    uint64_t start = base_clock_ns(), sum[3] = {0};
    int status = probe_bed_qp_new(b, BED_INITIATOR, NULL, &b->rc[0]);
    if (status == 0)
        status = probe_bed_qp_new(b, BED_RESPONDER, NULL, &b->rc[1]);
    if (!probe_bed_succeeded(c, "creating an RC queue pair", status, NULL))
        return;
    uint64_t create_ns = (base_clock_ns() - start) / 2;
    for (unsigned i = 0; i < CONNECTS; i++) {
        start = base_clock_ns();
        status = probe_bed_raise_pair(b, b->rc, true, &steps);
        probe_bed_time(&t, (base_clock_ns() - start) / 2);
        snprintf(what, sizeof what, "moving an RC queue pair to %s",
                 probe_bed_state_name(steps.now));
        if (!probe_bed_succeeded(c, what, status, NULL))
            return;
        for (int k = 0; k < 3; k++)
            sum[k] += steps.ns[k];
    }
    b->rc_connects = true;
    probe_number(c, "create_ns", create_ns);
    probe_number(c, "raise_median_ns", probe_bed_median(&t));
    probe_number(c, "init_mean_ns", sum[0] / CONNECTS);
    probe_number(c, "rtr_mean_ns", sum[1] / CONNECTS);
    probe_number(c, "rts_mean_ns", sum[2] / CONNECTS);
    probe_ok(c, "creating a queue pair takes %s, bringing it to RTS %s",
             probe_duration(create_ns, created), probe_duration(probe_bed_median(&t), raised));
}

static void rc_read(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_read(b, &p, c);
}

static void rc_write(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_write(b, &p, c, false);
}

static void rc_inline(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_write(b, &p, c, true);
}

static void rc_merged(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_merged(b, &p, c);
}

static void rc_add(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_add(b, &p, c);
}

static void rc_swap(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_swap(b, &p, c);
}

static void rc_chain(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    if (is_ready(b, b->rc, c))
        probe_bed_try_chain(b, &p, c);
}

/* A request that takes a receive on the far side, in each round. */
static void with_receives(struct bed *b, struct probe_check *c, struct fab_qp *qp[2],
                          enum ibv_wr_opcode opcode, const char *what)
{
    struct bed_times t = {.count = 0};
    struct ibv_wc wc, got;
    struct bed_wr w;
    bool immediate = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (!is_ready(b, qp, c))
        return;
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        memset(b->near, (int)(i + 1), SMALL);
        memset(b->far, 0, SMALL);
        int64_t id = probe_bed_post_recv(b, qp[1]->srq == NULL ? qp[1] : NULL, 0, SMALL);
        if (!probe_bed_succeeded(c, "posting a receive", id < 0 ? (int)id : 0, NULL))
            return;
        probe_bed_fill(b, &w, opcode, 0, 0, SMALL);
        w.wr.imm_data = htonl(i);
        uint64_t start = base_clock_ns();
        int status = probe_bed_do(b, qp[0], &w, &wc);
        if (!probe_bed_succeeded(c, what, status, &wc))
            return;
        status = probe_bed_wait(b->far_cq, (uint64_t)id, b->wait_ns, &got);
        probe_bed_time(&t, base_clock_ns() - start);
        if (!probe_bed_succeeded(c, "its receive", status, &got))
            return;
        if (memcmp(b->near, b->far, SMALL) != 0 ||
            (immediate && (got.imm_data != htonl(i) || !(got.wc_flags & IBV_WC_WITH_IMM))) ||
            (!immediate && got.byte_len != SMALL)) {
            probe_fail(c, "send this report", "%s completed, but something else was received",
                       what);
            return;
        }
    }
    probe_bed_tell_times(c, "8 bytes, both completions", &t);
}

static void rc_write_imm(struct bed *b, struct probe_check *c)
{
    with_receives(b, c, b->rc, IBV_WR_RDMA_WRITE_WITH_IMM, "a WRITE with immediate data");
}

static void rc_send(struct bed *b, struct probe_check *c)
{
    with_receives(b, c, b->rc, IBV_WR_SEND, "a SEND");
}

static void rc_srq(struct bed *b, struct probe_check *c)
{
    int status = probe_bed_qp_new(b, BED_INITIATOR, NULL, &b->rc_srq[0]);
    if (status == 0)
        status = probe_bed_qp_new(b, BED_RESPONDER, b->srq, &b->rc_srq[1]);
    if (probe_bed_succeeded(c, "creating a queue pair on a shared receive queue", status, NULL))
        with_receives(b, c, b->rc_srq, IBV_WR_SEND, "a SEND to a shared receive queue");
}

static void rc_sges(struct bed *b, struct probe_check *c)
{
    struct ibv_sge sge[PIECES];
    struct bed_wr w;
    struct ibv_wc wc;
    if (!is_ready(b, b->rc, c))
        return;
    uint32_t pieces = b->rc[0]->cap.send_sge < PIECES ? b->rc[0]->cap.send_sge : PIECES;
    if (pieces < 2) {
        probe_skip(c, "the device takes one piece of memory in a request");
        return;
    }
    memset(b->far, 0, PIECES * SMALL);
    probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, 0);
    for (uint32_t i = 0; i < pieces; i++) { /* every other block, backwards */
        uint32_t at = 2 * (pieces - 1 - i) * SMALL;
        memset(b->near + at, (int)i + 1, SMALL);
        sge[i] = (struct ibv_sge){
            .addr = b->near_mr->addr + at, .length = SMALL, .lkey = b->near_mr->lkey};
    }
    w.wr.sg_list = sge;
    w.wr.num_sge = (int)pieces;
    int status = probe_bed_do(b, b->rc[0], &w, &wc);
    if (!probe_bed_succeeded(c, "a WRITE of several pieces", status, &wc))
        return;
    for (uint32_t i = 0; i < pieces * SMALL; i++)
        if (b->far[i] != i / SMALL + 1) {
            probe_fail(c, "send this report",
                       "a WRITE of %u pieces completed, but the bytes are not in order", pieces);
            return;
        }
    probe_number(c, "pieces", pieces);
    probe_ok(c, "%u pieces of memory in one WRITE", pieces);
}

/* A wrong key must be refused, must break the queue pair, and must not last. */
static void rc_bad_key(struct bed *b, struct probe_check *c)
{
    struct bed_wr w;
    struct ibv_wc wc;
    if (!is_ready(b, b->rc, c))
        return;
    memset(b->far, 1, SMALL);
    memset(b->near, 2, SMALL);
    probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    w.wr.key.rkey ^= WRONG;
    int status = probe_bed_do(b, b->rc[0], &w, &wc);
    if (!probe_bed_succeeded(c, "a WRITE with a wrong key", status, NULL))
        return;
    probe_number(c, "wc_status", wc.status);
    probe_number(c, "vendor_err", wc.vendor_err);
    if (b->far[0] != 1)
        probe_fail(c, "do not use this device", "a WRITE with a wrong key was carried out");
    else if (wc.status != IBV_WC_REM_ACCESS_ERR)
        probe_fail(c, "send this report", "a WRITE with a wrong key completed with %s, not %s",
                   probe_bed_wc_name(wc.status), probe_bed_wc_name(IBV_WC_REM_ACCESS_ERR));
    else
        probe_ok(c, "a WRITE with a wrong key is refused, and the queue pair is in %s then",
                 probe_bed_state_name(fab_qp_state(b->rc[0])));
}

/* That of a metaserver's table, which is there with each metaserver. */
static void rc_reader(struct bed *b, struct probe_check *c)
{
    struct fab_qp *pair[2] = {NULL, NULL};
    struct bed_steps steps = {.now = IBV_QPS_RESET};
    char what[80];
    int status = probe_bed_qp_new(b, BED_READER, NULL, &pair[0]);
    if (status == 0)
        status = probe_bed_qp_new(b, BED_RESPONDER, NULL, &pair[1]);
    bool ok =
        probe_bed_succeeded(c, "creating an RC queue pair for a metaserver's table", status, NULL);
    if (ok) {
        status = probe_bed_raise_pair(b, pair, true, &steps);
        snprintf(what, sizeof what, "moving it to %s", probe_bed_state_name(steps.now));
        ok = probe_bed_succeeded(c, what, status, NULL);
    }
    for (int i = 0; i < 2; i++) {
        struct fab_ctl drop = {.kind = FAB_DESTROY_QP, .qp = {.x = pair[i]}};
        if (pair[i] != NULL &&
            !probe_bed_succeeded(c, "destroying it", probe_bed_call(b, &drop), NULL))
            ok = false;
    }
    if (ok)
        probe_ok(c, "the queue pair for a metaserver's table can be made and connected");
}

/* The checks before it have used the pair more than once. */
static void rc_reuse(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps;
    char took[PROBE_DURATION];
    if (!is_ready(b, b->rc, c))
        return;
    uint64_t start = base_clock_ns();
    int status = probe_bed_raise_pair(b, b->rc, true, &steps);
    uint64_t ns = (base_clock_ns() - start) / 2;
    if (!probe_bed_succeeded(c, "using a queue pair again", status, NULL))
        return;
    probe_number(c, "reuse_ns", ns);
    if (b->fab->resets_are_final)
        probe_warn(c,
                   "nothing has to be done: the agent makes others in their place, ahead of time",
                   "queue pairs cannot be reused, since RESET is final to this device; another one "
                   "in its place takes %s",
                   probe_duration(ns, took));
    else
        probe_ok(c, "queue pairs can be reused, which takes %s", probe_duration(ns, took));
}

static void rc_repair(struct bed *b, struct probe_check *c)
{
    struct bed_path p = path_of(b);
    struct bed_steps steps;
    char took[PROBE_DURATION];
    if (!is_ready(b, b->rc, c)) /* whatever state the wrong key left */
        return;
    rc_bad_key(b, c);
    if (c->result != PROBE_OK)
        return;
    c->numbers = 0;
    uint64_t start = base_clock_ns();
    int status = probe_bed_raise_pair(b, b->rc, true, &steps);
    uint64_t ns = base_clock_ns() - start;
    if (!probe_bed_succeeded(c, "bringing the broken queue pairs back to RTS", status, NULL))
        return;
    probe_bed_try_write(b, &p, c, false);
    if (c->result != PROBE_OK)
        return;
    c->numbers = 0;
    probe_number(c, "repair_ns", ns);
    probe_ok(c, "a broken pair works again after %s, INIT, RTR, RTS, which takes %s",
             b->fab->resets_are_final ? "its making anew" : "RESET", probe_duration(ns, took));
}

/* Until the CQ's channel is readable; what an agent that sleeps waits for. */
static bool measure_wake(struct bed *b, struct probe_check *c, struct bed_times *t)
{
    struct pollfd p = {.fd = b->chan->fd, .events = POLLIN};
    struct ibv_wc wc;
    struct bed_wr w;
    fab_chan_drain(b->chan);
    while (fab_poll(b->cq, 1, &wc) > 0)
        ;
    int status = fab_arm(b->cq, false);
    if (!probe_bed_succeeded(c, "arming a completion queue", status, NULL))
        return false;
    probe_bed_fill(b, &w, IBV_WR_RDMA_READ, 0, 0, SMALL);
    uint64_t start = base_clock_ns();
    status = probe_bed_post(b->rc[0], &w);
    if (!probe_bed_succeeded(c, "posting a READ", status, NULL))
        return false;
    int n = poll(&p, 1, (int)(b->wait_ns / BASE_NS_PER_MS));
    probe_bed_time(t, base_clock_ns() - start);
    status = probe_bed_wait(b->cq, w.wr.wr_id, b->wait_ns, &wc);
    if (!probe_bed_succeeded(c, "a READ", status, &wc))
        return false;
    if (n == 1)
        return true;
    probe_fail(c, "look at the interrupts of the device: /proc/interrupts, irqbalance",
               "an armed completion queue had a completion, but its channel did not wake");
    return false;
}

static void rc_wake(struct bed *b, struct probe_check *c)
{
    struct bed_times t = {.count = 0};
    if (!is_ready(b, b->rc, c))
        return;
    for (unsigned i = 0; i < WAKES; i++)
        if (!measure_wake(b, c, &t))
            return;
    fab_chan_drain(b->chan);
    probe_bed_tell_times(c, "a READ whose completion wakes a sleeper", &t);
}

void probe_rc(struct bed *b)
{
    static const struct bed_case cases[] = {
        {"rc.connect", PROBE_FOR_RC, connect_rc},
        {"rc.read", PROBE_FOR_RC, rc_read},
        {"rc.write", PROBE_FOR_RC, rc_write},
        {"rc.write_inline", PROBE_FOR_RC, rc_inline},
        {"rc.write_imm", PROBE_FOR_RC, rc_write_imm},
        {"rc.send", PROBE_FOR_RC, rc_send},
        {"rc.srq_receive", PROBE_FOR_RC, rc_srq},
        {"rc.fetch_add", PROBE_FOR_RC, rc_add},
        {"rc.cmp_swap", PROBE_FOR_RC, rc_swap},
        {"rc.pieces", PROBE_FOR_RC, rc_sges},
        {"rc.merged", PROBE_FOR_NOTHING, rc_merged},
        {"rc.list", PROBE_FOR_RC, rc_chain},
        {"rc.wake", PROBE_FOR_RC, rc_wake},
        {"rc.addresses", PROBE_FOR_RC, probe_bed_try_addresses},
        {"rc.wrong_key", PROBE_FOR_RC, rc_bad_key},
        {"rc.repair", PROBE_FOR_RC, rc_repair},
        {"rc.metaserver", PROBE_FOR_RC, rc_reader},
        {"rc.reuse", PROBE_FOR_NOTHING, rc_reuse},
    };
    probe_bed_run(b, cases, sizeof cases / sizeof cases[0]);
}
