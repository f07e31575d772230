/* SPDX-License-Identifier: Apache-2.0 */
/* What Kedge relies on beyond single requests: messages of many packets, what becomes of what
 * stands behind a refused request, and several targets behind one DC initiator. */
#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "bed.h"

enum { SMALL = 8, BEHIND = 3, WRITES = 16, WRONG_KEY = 0x5a5a00 };

static struct bed_path rc_path(struct bed *b)
{
    return (struct bed_path){.qp = &b->rc[0]};
}

static struct bed_path dc_path(struct bed *b)
{
    return (struct bed_path){.qp = &b->dci, .dct = b->dct};
}

/* In RTS, whatever the checks before have left. */
static bool is_ready(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    struct bed_steps steps;
    if (*p->qp == NULL || (p->dct == NULL ? !b->rc_connects : b->ah == NULL)) {
        probe_skip(c, "not tried: there is no queue pair for it, see above");
        return false;
    }
    int status = p->dct == NULL ? probe_bed_raise_pair(b, b->rc, true, &steps)
                                : probe_bed_raise(b, p->qp, NULL, false, &steps);
    return probe_bed_succeeded(c, "bringing the queue pair to RTS", status, NULL);
}

/* ---- many packets */

static void fill_bytes(uint8_t *bytes, uint32_t length, uint32_t seed)
{
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 24);
}

static void check_largest(struct bed *b, const struct bed_path *p, struct probe_check *c)
{
    static const enum ibv_wr_opcode both[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE};
    const struct fab_caps *caps = &b->fab->caps;
    const uint32_t bytes = caps->max_msg_size < BED_HALF ? (uint32_t)caps->max_msg_size : BED_HALF;
    char size[PROBE_DURATION], most[PROBE_DURATION];
    struct bed_wr w;
    struct ibv_wc wc;
    if (!is_ready(b, p, c))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t *from = i == 0 ? b->far : b->near, *to = i == 0 ? b->near : b->far;
        const char *what = i == 0 ? "a READ of many packets" : "a WRITE of many packets";
        fill_bytes(from, bytes, i + 1);
        memset(to, 0, bytes);
        probe_bed_fill(b, &w, both[i], 0, 0, bytes);
        probe_bed_address(b, p, &w);
        int status = probe_bed_do(b, *p->qp, &w, &wc);
        if (!probe_bed_succeeded(c, what, status, &wc))
            return;
        if (memcmp(from, to, bytes) != 0) {
            probe_fail(c, "send this report", "%s completed, but the bytes are not those sent",
                       what);
            return;
        }
    }
    probe_number(c, "bytes", bytes);
    probe_number(c, "mtu_bytes", 128u << caps->mtu);
    probe_number(c, "max_msg_bytes", caps->max_msg_size);
    probe_size(bytes, size);
    probe_size(caps->max_msg_size, most);
    probe_ok(c, "READ and WRITE of %s in packets of %u bytes; the device takes messages of %s",
             size, 128u << caps->mtu, most);
}

/* ---- behind an error */

/* A WRITE that is good, one that its target refuses, and one behind it, with one doorbell. What
 * Kedge repeats elsewhere, because it was not executed, must not have been. */
static void error_behind(struct bed *b, const struct bed_path *p, const struct bed_path *behind,
                         struct probe_check *c)
{
    struct bed_wr w[BEHIND];
    struct ibv_wc wc[BEHIND];
    if (!is_ready(b, p, c))
        return;
    memset(b->far, 1, BEHIND * SMALL);
    memset(b->near, 2, BEHIND * SMALL);
    for (unsigned i = 0; i < BEHIND; i++) {
        probe_bed_fill(b, &w[i], IBV_WR_RDMA_WRITE, i * SMALL, i * SMALL, SMALL);
        probe_bed_address(b, i == 2 ? behind : p, &w[i]);
        w[i].wr.next = i + 1 < BEHIND ? &w[i + 1].wr : NULL;
    }
    w[1].wr.key.rkey ^= WRONG_KEY;
    int status = probe_bed_post(*p->qp, &w[0]);
    for (unsigned i = 0; i < BEHIND && status == 0; i++)
        status = probe_bed_wait(b->cq, w[i].wr.wr_id, b->wait_ns, &wc[i]);
    if (!probe_bed_succeeded(c, "a WRITE, one with a wrong key, and one behind it", status, NULL))
        return;
    probe_number(c, "first_status", wc[0].status);
    probe_number(c, "refused_status", wc[1].status);
    probe_number(c, "behind_status", wc[2].status);
    if (wc[0].status != IBV_WC_SUCCESS || b->far[0] != 2)
        probe_fail(c, "send this report", "a WRITE ahead of one that was refused ended with %s",
                   probe_bed_wc_name(wc[0].status));
    else if (wc[1].status == IBV_WC_SUCCESS || b->far[SMALL] != 1)
        probe_fail(c, "do not use this device", "a WRITE with a wrong key was carried out");
    else if (wc[2].status == IBV_WC_SUCCESS || b->far[2 * SMALL] != 1)
        probe_fail(c, "do not use this device",
                   "a WRITE behind one that was refused was carried out (%s): Kedge would "
                   "execute it twice",
                   probe_bed_wc_name(wc[2].status));
    else
        probe_ok(c, "what stands behind a refused WRITE%s is not carried out: %s",
                 behind->dct != p->dct ? ", to another target," : "",
                 probe_bed_wc_name(wc[2].status));
}

/* ---- several targets */

static struct fab_dct *another_target(struct bed *b, struct probe_check *c)
{
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = b->pd, .cq = b->far_cq, .srq = b->srq, .access = probe_bed_target_access(b)}};
    int status = base_random_bytes(&dct.dct.dc_key, sizeof dct.dct.dc_key);
    if (status == 0)
        status = probe_bed_call(b, &dct);
    return probe_bed_succeeded(c, "creating a second DC target", status, NULL) ? dct.dct.x : NULL;
}

static void drop_target(struct bed *b, struct fab_dct *dct, struct probe_check *c)
{
    struct fab_ctl ctl = {.kind = FAB_DESTROY_DCT, .dct = {.x = dct}};
    (void)probe_bed_succeeded(c, "destroying the second DC target", probe_bed_call(b, &ctl), NULL);
}

static void take_turns(struct bed *b, const struct bed_path p[2], struct probe_check *c)
{
    struct bed_wr w[WRITES];
    struct ibv_wc wc;
    if (!is_ready(b, &p[0], c))
        return;
    memset(b->far, 0, WRITES * SMALL);
    for (unsigned i = 0; i < WRITES; i++) {
        memset(b->near + i * SMALL, (int)i + 1, SMALL);
        probe_bed_fill(b, &w[i], IBV_WR_RDMA_WRITE, i * SMALL, i * SMALL, SMALL);
        probe_bed_address(b, &p[i % 2], &w[i]);
        w[i].wr.next = i + 1 < WRITES ? &w[i + 1].wr : NULL;
    }
    int status = probe_bed_post(*p[0].qp, &w[0]);
    for (unsigned i = 0; i < WRITES && status == 0; i++) {
        status = probe_bed_wait(b->cq, w[i].wr.wr_id, b->wait_ns, &wc);
        if (status == 0 && wc.status != IBV_WC_SUCCESS)
            break;
    }
    if (!probe_bed_succeeded(c, "a list of WRITEs to two targets in turns", status, &wc))
        return;
    if (memcmp(b->near, b->far, WRITES * SMALL) != 0)
        probe_fail(c, "send this report",
                   "WRITEs to two targets completed, but the bytes are not those sent");
    else
        probe_ok(c, "one initiator serves two targets in turns, in the order of posting");
}

/* ---- the cases */

static void rc_largest(struct bed *b, struct probe_check *c)
{
    const struct bed_path p = rc_path(b);
    check_largest(b, &p, c);
}

static void rc_behind(struct bed *b, struct probe_check *c)
{
    const struct bed_path p = rc_path(b);
    error_behind(b, &p, &p, c);
}

static void dc_largest(struct bed *b, struct probe_check *c)
{
    const struct bed_path p = dc_path(b);
    check_largest(b, &p, c);
}

static void dc_behind(struct bed *b, struct probe_check *c)
{
    const struct bed_path p = dc_path(b);
    error_behind(b, &p, &p, c);
}

static void dc_targets(struct bed *b, struct probe_check *c)
{
    struct bed_path p[2] = {dc_path(b), dc_path(b)};
    p[1].dct = another_target(b, c);
    if (p[1].dct == NULL)
        return;
    take_turns(b, p, c);
    drop_target(b, p[1].dct, c);
}

static void dc_behind_another(struct bed *b, struct probe_check *c)
{
    struct bed_path p[2] = {dc_path(b), dc_path(b)};
    if (b->fab->caps.dci_streams) {
        probe_skip(c, "with streams other targets go on beside an error; Kedge waits for the end "
                      "of all before it repeats anything");
        return;
    }
    p[1].dct = another_target(b, c);
    if (p[1].dct == NULL)
        return;
    error_behind(b, &p[0], &p[1], c);
    drop_target(b, p[1].dct, c);
}

/* Of Kedge's claims, those that one process on one host can show, and those that it cannot. */
static void report_coverage(struct bed *b, struct probe_check *c)
{
    const bool dc = b->dci != NULL && b->dct != NULL;
    const struct probe_check *far = probe_find(b->report, "peer.rc.packets");
    if (far != NULL && far->result != PROBE_SKIPPED) {
        probe_ok(
            c,
            "this run shows, between these two nodes and from this port to itself: "
            "connecting with the agents' settings, MTU and the largest message both ways, what "
            "a refused request leaves behind it%s, and on one node the rest (lists, repair, "
            "leases). It does not show: other nodes, loss and congestion (PFC), several "
            "threads, many queue pairs, deadlines under load, keys that come back%s",
            dc ? ", several targets on one DCI" : "", dc ? ", DCI streams" : ", DC");
        return;
    }
    probe_ok(c,
             "this run shows, from this port to itself: opening, keys that are refused, one-sided "
             "operations%s, lists, errors with others behind them, repair, the bound of a silent "
             "peer. It does not show: packets between nodes (MTU, loss, PFC, partitions, service "
             "level: --peer tries them), requests from several threads, many queue pairs, keys "
             "that come back, "
             "deadlines under load%s",
             dc ? " over RC and DC" : " over RC", dc ? ", DCI streams" : ", DC");
}

void probe_shapes(struct bed *b)
{
    static const struct bed_case rc[] = {{"rc.largest", PROBE_FOR_RC, rc_largest},
                                         {"rc.error_behind", PROBE_FOR_RC, rc_behind}};
    static const struct bed_case dc[] = {
        {"dc.largest", PROBE_FOR_DC, dc_largest},
        {"dc.targets", PROBE_FOR_DC, dc_targets},
        {"dc.error_behind", PROBE_FOR_DC, dc_behind},
        {"dc.error_other_target", PROBE_FOR_DC, dc_behind_another}};
    probe_bed_run(b, rc, sizeof rc / sizeof rc[0]);
    if (b->dci != NULL && b->dct != NULL)
        probe_bed_run(b, dc, sizeof dc / sizeof dc[0]);
}

void probe_coverage(struct bed *b)
{
    static const struct bed_case last = {"coverage", PROBE_FOR_NOTHING, report_coverage};
    probe_bed_run(b, &last, 1);
}
