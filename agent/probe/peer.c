/* SPDX-License-Identifier: Apache-2.0 */
/* What two nodes can do with each other: this one tries, the other one lends (peer_serve.c). */
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof(array)[0]))
enum { SMALL = 8, MANY = 65536, BEHIND = 3, TURNS = 16, WRONG_KEY = 0x5a5a00 };

/* One run. */
struct visit {
    struct peer_link link;
    struct peer_end own, far;
    enum ibv_mtu mtu; /* that both ports take */
    struct fab_mem mem;
    struct fab_mr *mr;
    uint64_t largest; /* bytes of a message */
    struct fab_qp *qp, *dci;
    struct fab_ah *ah;
    bool met, small[2]; /* RC, DC: messages of one packet arrive */
};
static struct visit v;

/* A way to the other node: its connection, or one of its targets. */
struct way {
    struct fab_qp *qp;
    int target; /* -1: RC */
};

static struct way rc_way(void)
{
    return (struct way){v.qp, -1};
}

static struct way dc_way(int target)
{
    return (struct way){v.dci, target};
}

/* ---- asking */

/* "ok NUMBER", or -errno; a sentence of the other end's in *line. */
static int ask_peer(const char *question, char line[PEER_LINE], uint32_t *number)
{
    int status = probe_peer_say(&v.link, "%s", question);
    if (status == 0)
        status = probe_peer_hear(&v.link, line);
    if (status != 0) {
        snprintf(line, PEER_LINE, "the other node's probe is gone: %s", strerror(-status));
        return status;
    }
    if (strncmp(line, "ok", 2) == 0) {
        *number = 0;
        (void)sscanf(line, "ok %" SCNu32, number);
        return 0;
    }
    if (strncmp(line, "error ", 6) == 0)
        memmove(line, line + 6, strlen(line + 6) + 1);
    return -EIO;
}

/* Everything in RTS, with packets of that size; else the check says why. */
static bool prepare_way(struct bed *b, const struct way *w, enum ibv_mtu mtu, struct probe_check *c)
{
    char line[PEER_LINE], end[PEER_LINE], question[PEER_LINE + 16];
    uint32_t ignored;
    int status;
    if (w->target >= 0) {
        status = probe_peer_raise(b, w->qp, NULL, mtu);
        return probe_bed_succeeded(c, "bringing a DC initiator to RTS", status, NULL);
    }
    v.own.qpn = w->qp->qpn;
    probe_peer_write_end(&v.own, end);
    snprintf(question, sizeof question, "connect %u %s", (unsigned)mtu, end);
    status = ask_peer(question, line, &ignored);
    if (status != 0) {
        probe_fail(c, "look at the other node's report and the kernel's logs (dmesg)", "%.400s",
                   line);
        return false;
    }
    status = probe_peer_raise(b, w->qp, &v.far, mtu);
    return probe_bed_succeeded(c, "connecting a queue pair to the other node's", status, NULL);
}

static void fill_request(struct bed *b, const struct way *w, struct bed_wr *r,
                         enum ibv_wr_opcode opcode, uint64_t at, uint32_t length)
{
    *r = (struct bed_wr){.sge = {.addr = v.mr->addr + at, .length = length, .lkey = v.mr->lkey},
                         .wr = {.wr_id = b->next_id++,
                                .num_sge = 1,
                                .opcode = opcode,
                                .send_flags = IBV_SEND_SIGNALED,
                                .key.rkey = v.far.rkey,
                                .remote_addr = v.far.addr + at}};
    r->wr.sg_list = &r->sge;
    if (w->target < 0)
        return;
    r->wr.ah = v.ah;
    r->wr.dest_qpn = v.far.dctn[w->target];
    r->wr.dc_key = v.far.dc_key[w->target];
}

/* How a message fared. */
struct carried {
    const char *what;
    int status;
    struct ibv_wc wc;
    bool wrong; /* it completed, and the bytes are others */
    char line[PEER_LINE];
};

/* A WRITE there, a READ back of other bytes, each looked at on the side where it arrives. */
static bool carry_bytes(struct bed *b, const struct way *w, uint32_t length, uint32_t seed,
                        struct carried *out)
{
    char question[80];
    struct bed_wr r;
    uint32_t sum = 0;
    uint8_t *bytes = v.mem.addr;
    *out = (struct carried){.what = "a WRITE", .wc = {.status = IBV_WC_SUCCESS}};
    probe_peer_pattern(bytes, length, seed);
    fill_request(b, w, &r, IBV_WR_RDMA_WRITE, 0, length);
    out->status = probe_bed_do(b, w->qp, &r, &out->wc);
    if (out->status != 0 || out->wc.status != IBV_WC_SUCCESS)
        return false;
    snprintf(question, sizeof question, "sum 0 %" PRIu32, length);
    out->status = ask_peer(question, out->line, &sum);
    out->wrong = out->status == 0 && sum != base_crc32c(0, bytes, length);
    if (out->status != 0 || out->wrong)
        return false;
    out->what = "a READ";
    snprintf(question, sizeof question, "fill 0 %" PRIu32 " %" PRIu32, length, seed + 1);
    out->status = ask_peer(question, out->line, &sum);
    if (out->status != 0)
        return false;
    memset(bytes, 0, length);
    fill_request(b, w, &r, IBV_WR_RDMA_READ, 0, length);
    out->status = probe_bed_do(b, w->qp, &r, &out->wc);
    if (out->status != 0 || out->wc.status != IBV_WC_SUCCESS)
        return false;
    sum = base_crc32c(0, bytes, length);
    probe_peer_pattern(bytes, length, seed + 1);
    out->wrong = sum != base_crc32c(0, bytes, length);
    return !out->wrong;
}

/* Says in the check what kept a message from arriving. */
static void blame_message(struct probe_check *c, const struct carried *m, uint32_t length)
{
    char what[96], size[PROBE_DURATION];
    snprintf(what, sizeof what, "%s of %s to the other node", m->what,
             length < 1024 ? "8 bytes" : probe_size(length, size));
    if (m->wrong)
        probe_fail(c, "do not use this path", "%s completed, but other bytes arrived", what);
    else if (m->status != 0 && m->line[0] != '\0')
        probe_fail(c, "look at the other node's report", "%.400s", m->line);
    else if (probe_bed_succeeded(c, what, m->status, &m->wc))
        probe_fail(c, "send this report", "%s failed", what);
    else if (m->status == 0 && m->wc.status == IBV_WC_RETRY_EXC_ERR)
        probe_advise(c,
                     "can the GIDs reach each other? ping -I, the switch's partition and VLAN; a "
                     "firewall must let UDP port 4791 (RoCE v2) through both ways");
}

/* ---- the checks */

static bool same_settings(struct probe_check *c)
{
    if (v.own.dc != v.far.dc)
        probe_fail(c, "set transport in [fabric] alike on all nodes of a cluster",
                   "this node's agent would use %s and the other one's %s", v.own.dc ? "DC" : "RC",
                   v.far.dc ? "DC" : "RC");
    else if (v.own.dc && v.own.mtu != v.far.mtu) {
        probe_fail(c, "",
                   "with DC a node answers READs in packets of its own port's MTU, and that is %u "
                   "here and %u there",
                   128u << v.own.mtu, 128u << v.far.mtu);
        probe_advise(c, "set mtu = %u in [fabric] of all agents and metaservers", 128u << v.mtu);
    } else if (v.own.service_level != v.far.service_level ||
               v.own.traffic_class != v.far.traffic_class || v.own.pkey != v.far.pkey)
        probe_warn(c,
                   "set service_level, traffic_class and pkey_index in [fabric] alike on all "
                   "nodes (an index of a partition may differ where its P_Key does not)",
                   "service_level, traffic_class and pkey_index are %u, %u, %u here and %u, %u, %u "
                   "there",
                   v.own.service_level, v.own.traffic_class, v.own.pkey, v.far.service_level,
                   v.far.traffic_class, v.far.pkey);
    else
        return true;
    return c->result != PROBE_FAILED;
}

static int meet_end(const char *peer, struct base_errbuf *err)
{
    char address[256], line[PEER_LINE];
    const char *word = strrchr(peer, '/');
    if (word == NULL || (size_t)(word - peer) >= sizeof address)
        return base_err(err, -EINVAL,
                        "--peer must be what `rdmactl doctor --serve ADDRESS:PORT` prints on the "
                        "other node: HOST:PORT/WORD");
    memcpy(address, peer, (size_t)(word - peer));
    address[word - peer] = '\0';
    int status = probe_peer_dial(address, &v.link, err);
    if (status != 0)
        return status;
    status = probe_peer_say(&v.link, "word %.64s", word + 1);
    if (status == 0)
        status = probe_peer_hear(&v.link, line);
    if (status != 0)
        return base_err(err, status,
                        "whoever serves at %.100s does not let us in: is the word the one that it "
                        "has printed? (%s)",
                        address, strerror(-status));
    status = probe_peer_read_end(line, &v.far);
    return status == 0 ? 0
                       : base_err(err, status, "what answers at %.100s is no probe of this version",
                                  address);
}

/* The memory, queue pair and address that all others use. */
static int make_own(struct bed *b)
{
    const uint64_t most = b->fab->caps.max_msg_size;
    struct fab_ctl ah = {.kind = FAB_CREATE_AH,
                         .ah = {.pd = b->pd, .attr = fab_address(b->fab, v.far.gid, v.far.lid)}};
    v.largest =
        b->settings->largest_region < PEER_MEMORY ? b->settings->largest_region : PEER_MEMORY;
    v.largest = most < v.largest ? most : v.largest;
    v.largest = v.far.bytes < v.largest ? v.far.bytes : v.largest;
    v.largest = v.largest < MANY ? MANY : v.largest;
    int status = fab_mem_alloc(PEER_MEMORY, "kedge-probe-peer", &v.mem);
    if (status == 0)
        status = probe_bed_register(b, &v.mem, 0, PEER_MEMORY, IBV_ACCESS_LOCAL_WRITE, &v.mr);
    if (status == 0)
        status = probe_peer_make_connection(b, &v.qp);
    if (status == 0 && v.own.dc && v.far.dc)
        status = probe_bed_qp_new(b, BED_DCI, NULL, &v.dci);
    if (status == 0 && v.dci != NULL)
        status = probe_bed_call(b, &ah);
    if (status == 0 && v.dci != NULL)
        v.ah = ah.ah.x;
    return status;
}

static void check_meeting(struct bed *b, struct probe_check *c)
{
    struct base_errbuf err = {.text = ""};
    char gid[BASE_GID_TEXT];
    if (meet_end(b->settings->peer, &err) != 0) {
        probe_fail(c,
                   "run `rdmactl doctor --serve ADDRESS:PORT` on the other node, and this with "
                   "what it prints",
                   "%s", err.text);
        return;
    }
    probe_peer_describe(b, &v.own);
    v.mtu = v.own.mtu < v.far.mtu ? v.own.mtu : v.far.mtu;
    if (!probe_bed_succeeded(c, "making queue pairs, an address and memory for the other node",
                             make_own(b), NULL))
        return;
    v.met = true;
    probe_number(c, "own_mtu_bytes", 128u << v.own.mtu);
    probe_number(c, "far_mtu_bytes", 128u << v.far.mtu);
    if (!same_settings(c) || c->result == PROBE_WARNING)
        return;
    probe_ok(c, "the other node has the GID %s, and its agent would use %s as this one's",
             base_gid_format(v.far.gid, gid), v.far.dc ? "DC" : "RC");
}

static bool is_usable(const struct way *w, struct probe_check *c)
{
    if (v.met && w->qp != NULL)
        return true;
    probe_skip(c, "not tried: see peer.meet");
    return false;
}

static void check_reach(struct bed *b, struct probe_check *c, const struct way *w)
{
    struct bed_times t = {.count = 0};
    struct carried m;
    struct bed_wr r;
    uint64_t start = base_clock_ns();
    char raised[PROBE_DURATION], median[PROBE_DURATION];
    if (!is_usable(w, c) || !prepare_way(b, w, v.mtu, c))
        return;
    const uint64_t took = base_clock_ns() - start;
    if (!carry_bytes(b, w, SMALL, 7, &m)) {
        blame_message(c, &m, SMALL);
        return;
    }
    for (unsigned i = 0; i < BED_ROUNDS; i++) {
        fill_request(b, w, &r, IBV_WR_RDMA_READ, 0, SMALL);
        start = base_clock_ns();
        m.status = probe_bed_do(b, w->qp, &r, &m.wc);
        probe_bed_time(&t, base_clock_ns() - start);
        if (!probe_bed_succeeded(c, "one READ of many to the other node", m.status, &m.wc))
            return;
    }
    v.small[w->target >= 0] = true;
    probe_number(c, "connect_ns", took);
    probe_number(c, "read_median_ns", probe_bed_median(&t));
    probe_ok(c,
             "WRITEs and READs of 8 bytes arrive; getting ready takes %s, a READ %s (median of %u)",
             probe_duration(took, raised), probe_duration(probe_bed_median(&t), median), t.count);
}

/* With how large packets messages of many arrive; 0: with none. */
static enum ibv_mtu find_mtu(struct bed *b, const struct way *w, struct probe_check *c)
{
    struct carried m;
    for (unsigned mtu = v.mtu - 1; mtu >= IBV_MTU_256; mtu--)
        if (prepare_way(b, w, (enum ibv_mtu)mtu, c) && carry_bytes(b, w, MANY, mtu, &m))
            return (enum ibv_mtu)mtu;
    return 0;
}

static void check_packets(struct bed *b, struct probe_check *c, const struct way *w)
{
    const uint32_t packet = 128u << v.mtu, sizes[] = {packet, packet + 1, 4 * packet, MANY};
    struct carried m;
    enum ibv_mtu fits = v.mtu;
    if (!is_usable(w, c) || !v.small[w->target >= 0]) {
        probe_skip(c, "not tried: messages of one packet do not arrive");
        return;
    }
    if (!prepare_way(b, w, v.mtu, c))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && fits == v.mtu; i++)
        if (!carry_bytes(b, w, sizes[i], (uint32_t)i + 3, &m)) {
            blame_message(c, &m, sizes[i]);
            fits = m.wrong ? v.mtu : find_mtu(b, w, c);
            break;
        }
    if (c->result == PROBE_FAILED && fits == v.mtu)
        return; /* other bytes */
    probe_number(c, "mtu_bytes", packet);
    if (fits == v.mtu)
        probe_ok(c,
                 "messages of many packets of %u bytes arrive, both ways (this port takes %u, the "
                 "other one %u)",
                 packet, 128u << v.own.mtu, 128u << v.far.mtu);
    else if (fits != 0) {
        probe_number(c, "fits_bytes", 128u << fits);
        probe_fail(c, "",
                   "packets of %u bytes, which both ports take, do not arrive, and those of %u do: "
                   "something between the nodes takes less",
                   packet, 128u << fits);
        probe_advise(
            c,
            "raise the MTU of what is between the nodes (switches, VLANs, tunnels), or set "
            "mtu = %u in [fabric] of all agents and metaservers",
            128u << fits);
    } else {
        probe_advise(c, "messages of one packet arrive, and none of several, however small its "
                        "packets: look for loss, flow control (PFC) and firewalls on the way");
    }
}

static void check_largest(struct bed *b, struct probe_check *c, const struct way *w)
{
    struct carried m;
    char size[PROBE_DURATION];
    if (!is_usable(w, c) || !prepare_way(b, w, v.mtu, c))
        return;
    uint64_t start = base_clock_ns();
    if (!carry_bytes(b, w, (uint32_t)v.largest, 99, &m)) {
        blame_message(c, &m, (uint32_t)v.largest);
        return;
    }
    probe_number(c, "bytes", v.largest);
    probe_number(c, "both_ns", base_clock_ns() - start);
    probe_ok(c,
             "a WRITE and a READ of %s, as much as a worker's arena has (2 MiB are tried at most)",
             probe_size(v.largest, size));
}

/* A WRITE, one with a wrong key, and one behind it, perhaps to another target, with one doorbell.
 * The last one must not have been carried out. */
static void error_behind(struct bed *b, struct probe_check *c, const struct way *w,
                         const struct way *behind)
{
    struct bed_wr r[BEHIND];
    struct ibv_wc wc[BEHIND];
    char line[PEER_LINE];
    uint8_t expected[BEHIND * SMALL], *bytes = v.mem.addr;
    uint32_t sum = 0;
    if (!is_usable(w, c) || !prepare_way(b, w, v.mtu, c))
        return;
    probe_peer_pattern(expected, sizeof expected, 11);
    memset(expected, 2, SMALL);
    int status = ask_peer("fill 0 24 11", line, &sum);
    memset(bytes, 2, sizeof expected);
    for (unsigned i = 0; i < BEHIND; i++) {
        fill_request(b, i == 2 ? behind : w, &r[i], IBV_WR_RDMA_WRITE, (uint64_t)i * SMALL, SMALL);
        r[i].wr.next = i + 1 < BEHIND ? &r[i + 1].wr : NULL;
    }
    r[1].wr.key.rkey ^= WRONG_KEY;
    if (status == 0)
        status = probe_bed_post(w->qp, &r[0]);
    for (unsigned i = 0; i < BEHIND && status == 0; i++)
        status = probe_bed_wait(b->cq, r[i].wr.wr_id, b->wait_ns, &wc[i]);
    if (status == 0)
        status = ask_peer("sum 0 24", line, &sum);
    if (!probe_bed_succeeded(c, "a WRITE, one with a wrong key, and one behind it", status, NULL))
        return;
    probe_number(c, "refused_status", wc[1].status);
    probe_number(c, "behind_status", wc[2].status);
    if (wc[0].status != IBV_WC_SUCCESS)
        probe_fail(c, "send this report", "a WRITE ahead of one that was refused ended with %s",
                   probe_bed_wc_name(wc[0].status));
    else if (wc[1].status == IBV_WC_SUCCESS || wc[2].status == IBV_WC_SUCCESS ||
             sum != base_crc32c(0, expected, sizeof expected))
        probe_fail(c, "do not use these devices",
                   "of a WRITE, one with a wrong key and one behind it, more than the first was "
                   "carried out (they ended with %s and %s): Kedge would execute it twice",
                   probe_bed_wc_name(wc[1].status), probe_bed_wc_name(wc[2].status));
    else
        probe_ok(c, "what stands behind a refused WRITE%s is not carried out: %s",
                 behind->target != w->target ? ", to another target," : "",
                 probe_bed_wc_name(wc[2].status));
}

static void take_turns(struct bed *b, struct probe_check *c)
{
    struct way w[2] = {dc_way(0), dc_way(1)};
    struct bed_wr r[TURNS];
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    char line[PEER_LINE];
    uint32_t sum = 0;
    if (!is_usable(&w[0], c) || !prepare_way(b, &w[0], v.mtu, c))
        return;
    probe_peer_pattern(v.mem.addr, TURNS * SMALL, 21);
    for (unsigned i = 0; i < TURNS; i++) {
        fill_request(b, &w[i % 2], &r[i], IBV_WR_RDMA_WRITE, (uint64_t)i * SMALL, SMALL);
        r[i].wr.next = i + 1 < TURNS ? &r[i + 1].wr : NULL;
    }
    int status = probe_bed_post(v.dci, &r[0]);
    for (unsigned i = 0; i < TURNS && status == 0 && wc.status == IBV_WC_SUCCESS; i++)
        status = probe_bed_wait(b->cq, r[i].wr.wr_id, b->wait_ns, &wc);
    if (status == 0 && wc.status == IBV_WC_SUCCESS)
        status = ask_peer("sum 0 128", line, &sum);
    if (!probe_bed_succeeded(c, "WRITEs to two targets of the other node in turns", status, &wc))
        return;
    if (sum != base_crc32c(0, v.mem.addr, TURNS * SMALL))
        probe_fail(c, "send this report",
                   "WRITEs to two targets completed, but other bytes arrived");
    else
        probe_ok(c, "one initiator serves two targets of the other node in turns");
}

#define CASE(name, call, ...)                                                                      \
    static void name(struct bed *b, struct probe_check *c)                                         \
    {                                                                                              \
        const struct way w = __VA_ARGS__;                                                          \
        call;                                                                                      \
    }
CASE(rc_reach, check_reach(b, c, &w), rc_way())
CASE(rc_packets, check_packets(b, c, &w), rc_way())
CASE(rc_largest, check_largest(b, c, &w), rc_way())
CASE(rc_behind, error_behind(b, c, &w, &w), rc_way())
CASE(dc_reach, check_reach(b, c, &w), dc_way(0))
CASE(dc_packets, check_packets(b, c, &w), dc_way(0))
CASE(dc_largest, check_largest(b, c, &w), dc_way(0))
CASE(dc_behind, error_behind(b, c, &w, &w), dc_way(0))

static void dc_behind_another(struct bed *b, struct probe_check *c)
{
    const struct way w = dc_way(0), other = dc_way(1);
    error_behind(b, c, &w, &other);
}

static void leave_peer(struct bed *b)
{
    struct fab_qp *qp[] = {v.qp, v.dci};
    probe_peer_close(&v.link);
    for (int i = 0; i < 2; i++) {
        struct fab_ctl c = {.kind = FAB_DESTROY_QP, .qp = {.x = qp[i]}};
        if (qp[i] != NULL)
            (void)probe_bed_call(b, &c);
    }
    struct fab_ctl ah = {.kind = FAB_DESTROY_AH, .ah = {.x = v.ah}};
    if (v.ah != NULL)
        (void)probe_bed_call(b, &ah);
    if (v.mr == NULL || probe_bed_deregister(b, v.mr) == 0)
        fab_mem_free(&v.mem);
}

void probe_peer(struct bed *b)
{
    static const struct bed_case first = {"peer.meet", PROBE_FOR_PEER, check_meeting};
    static const struct bed_case rc[] = {{"peer.rc.reach", PROBE_FOR_PEER, rc_reach},
                                         {"peer.rc.packets", PROBE_FOR_PEER, rc_packets},
                                         {"peer.rc.largest", PROBE_FOR_PEER, rc_largest},
                                         {"peer.rc.error_behind", PROBE_FOR_PEER, rc_behind}};
    static const struct bed_case dc[] = {
        {"peer.dc.reach", PROBE_FOR_PEER, dc_reach},
        {"peer.dc.packets", PROBE_FOR_PEER, dc_packets},
        {"peer.dc.largest", PROBE_FOR_PEER, dc_largest},
        {"peer.dc.targets", PROBE_FOR_PEER, take_turns},
        {"peer.dc.error_behind", PROBE_FOR_PEER, dc_behind},
        {"peer.dc.error_other_target", PROBE_FOR_PEER, dc_behind_another}};
    v = (struct visit){.link = {.fd = -1}, .mem = {.fd = -1}};
    probe_bed_run(b, &first, 1);
    if (v.met)
        probe_bed_run(b, rc, COUNT(rc));
    if (v.met && v.dci != NULL)
        probe_bed_run(b, dc, COUNT(dc) - (b->fab->caps.dci_streams ? 1u : 0u));
    leave_peer(b);
}
