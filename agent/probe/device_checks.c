/* SPDX-License-Identifier: Apache-2.0 */
/* What the open device says of itself, against what the agent's configuration asks of it; and for
 * how long it goes on trying, which the leases of memory stand on. */
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "fabric/placement.h"

enum { SILENCE_MS = 60000, SILENCES = 3 };

/* ---- limits */

static void numbers_of_limits(struct probe_check *c, const struct fab_caps *caps)
{
    probe_number(c, "transports", caps->transports);
    probe_number(c, "max_qp", caps->max_qp);
    probe_number(c, "max_qp_wr", caps->max_qp_wr);
    probe_number(c, "max_sge", caps->max_sge);
    probe_number(c, "max_inline_bytes", caps->max_inline);
    probe_number(c, "max_cqe", caps->max_cqe);
    probe_number(c, "max_srq_wr", caps->max_srq_wr);
    probe_number(c, "max_mr", caps->max_mr);
    probe_number(c, "max_mr_bytes", caps->max_mr_size);
    probe_number(c, "max_msg_bytes", caps->max_msg_size);
    probe_number(c, "max_rd_atomic", caps->max_rd_atomic);
    probe_number(c, "ud_payload_bytes", caps->ud_payload);
    probe_number(c, "mtu_bytes", 128u << caps->mtu);
    probe_number(c, "port", caps->port_num);
    probe_number(c, "lid", caps->lid);
    probe_number(c, "sgid_index", caps->sgid_index);
    probe_number(c, "comp_vectors", caps->comp_vectors);
    probe_number(c, "ethernet", caps->is_ethernet);
    probe_number(c, "dci_streams", caps->dci_streams);
    probe_number(c, "deadlines", caps->deadlines);
    probe_number(c, "posts_in_time", caps->posts_in_time);
    probe_number(c, "slack_ns", caps->slack_ns);
}

/* As agentd's device.c chooses. */
bool probe_bed_uses_dc(const struct bed *b)
{
    const char *wanted = b->settings->transport;
    return strcmp(wanted, "dc") == 0 ||
           (strcmp(wanted, "rc") != 0 && (b->fab->caps.transports & FAB_DC) != 0);
}

void probe_transport(struct bed *b)
{
    const uint32_t has = b->fab->caps.transports, both = FAB_RC | FAB_UD;
    struct probe_check *c = probe_begin(b->report, "transport", PROBE_FOR_RC);
    const char *wanted = b->settings->transport;
    bool dc = probe_bed_uses_dc(b);
    probe_number(c, "rc", (has & FAB_RC) != 0);
    probe_number(c, "ud", (has & FAB_UD) != 0);
    probe_number(c, "dc", (has & FAB_DC) != 0);
    if (dc && !(has & FAB_DC))
        probe_fail(c, "set transport = auto in [fabric]",
                   "the settings ask for transport = dc, and there is no DC: %s", b->report->no_dc);
    else if ((has & both) != both)
        probe_fail(c, "use another device", "the device lacks RC or UD");
    else
        probe_ok(c, "the agent would use %s here (transport = %s)", dc ? "DC" : "RC", wanted);
}

void probe_limits(struct bed *b)
{
    struct probe_check *c = probe_begin(b->report, "limits", PROBE_FOR_RC);
    const struct fab_caps *caps = &b->fab->caps;
    const struct probe_settings *s = b->settings;
    const struct probe_demand *d = probe_bed_uses_dc(b) ? &s->dc : &s->rc;
    const struct {
        const char *what, *way_out;
        uint64_t has, needs;
    } limits[] = {
        {"queue pairs", d->way_out, caps->max_qp, d->queue_pairs},
        {"requests in a queue", "use another device", caps->max_qp_wr, d->send_wr},
        {"completions in a queue", d->way_out, caps->max_cqe, d->cqe},
        {"pieces of memory in a request", "use another device", caps->max_sge, s->sge},
        {"memory regions", "lower max_sessions, arenas_ahead", caps->max_mr, s->regions},
        {"bytes in a memory region", "lower arena_bytes", caps->max_mr_size, s->largest_region},
    };
    numbers_of_limits(c, caps);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].has < limits[i].needs) {
            probe_fail(c, "", "the device allows %llu %s, and this configuration needs %llu",
                       (unsigned long long)limits[i].has, limits[i].what,
                       (unsigned long long)limits[i].needs);
            probe_advise(c, "%s in [pool]", limits[i].way_out);
            return;
        }
    if (caps->max_inline < s->inline_bytes) {
        probe_warn(c, "nothing: workers' small writes are copied to registered memory first",
                   "the device takes %u bytes inline, fewer than workers may send so (%u)",
                   caps->max_inline, s->inline_bytes);
        return;
    }
    probe_ok(c,
             "%u queue pairs of %u requests, %u pieces of memory, %u bytes inline, %u regions, %u "
             "READs at a time, MTU %u: enough for this configuration",
             caps->max_qp, caps->max_qp_wr, caps->max_sge, caps->max_inline, caps->max_mr,
             caps->max_rd_atomic, 128u << caps->mtu);
}

/* ---- placement */

/* As agentd's device.c places a lane. */
static void check_placement(struct bed *b, struct probe_check *c)
{
    const struct fab_caps *caps = &b->fab->caps;
    const uint64_t cpu = b->settings->lane_cpu;
    cpu_set_t allowed, beside;
    CPU_ZERO(&allowed);
    (void)sched_getaffinity(0, sizeof allowed, &allowed);
    fab_cpus_of_node(caps->numa_node, &beside);
    const struct fab_placement p = fab_place(&allowed, &beside, cpu, 0, caps->comp_vectors);
    probe_number(c, "cpus", (uint64_t)CPU_COUNT(&beside));
    probe_number(c, "comp_vectors", caps->comp_vectors);
    if (CPU_COUNT(&beside) == 0)
        probe_ok(c, "the device is at no NUMA node of its own: lanes run on any of %d CPUs",
                 CPU_COUNT(&allowed));
    else if (p.beside)
        probe_ok(c,
                 "the device is at NUMA node %d, and lanes run there (%d CPUs); %u completion "
                 "vectors",
                 caps->numa_node, p.bound ? CPU_COUNT(&p.cpus) : CPU_COUNT(&allowed),
                 caps->comp_vectors);
    else if (cpu != FAB_ANY_CPU)
        probe_warn(c, "set lane_cpu in [pool] to a CPU of that node, or to any",
                   "the device is at NUMA node %d, and lane_cpu = %llu is not", caps->numa_node,
                   (unsigned long long)cpu);
    else
        probe_warn(c, "let the agent run there: AllowedCPUs in its unit, or its cpuset",
                   "the device is at NUMA node %d, on none of whose CPUs this process may run",
                   caps->numa_node);
}

void probe_placement(struct bed *b)
{
    static const struct bed_case one = {"placement", PROBE_FOR_NOTHING, check_placement};
    probe_bed_run(b, &one, 1);
}

/* ---- leases */

static uint64_t up_to_ms(uint64_t ns)
{
    return (ns + BASE_NS_PER_MS - 1) / BASE_NS_PER_MS;
}

static void check_lease(struct bed *b, struct probe_check *c)
{
    const struct probe_settings *s = b->settings;
    uint64_t bound = fab_bound_ns(&b->fab->caps, s->ack_timeout, s->ack_retries);
    uint64_t shortest = bound + b->fab->caps.slack_ns;
    char shortest_text[PROBE_DURATION], lease_text[PROBE_DURATION];
    probe_number(c, "bound_ns", bound);
    probe_number(c, "slack_ns", b->fab->caps.slack_ns);
    probe_number(c, "shortest_ns", shortest);
    probe_number(c, "mr_lease_ns", s->mr_lease_ns);
    probe_duration(shortest, shortest_text);
    probe_duration(s->mr_lease_ns, lease_text);
    if (s->mr_lease_ns > shortest) {
        probe_ok(c, "mr_lease is %s; by the time-outs that Kedge sets, more than %s is safe here",
                 lease_text, shortest_text);
        return;
    }
    probe_fail(c, "",
               "mr_lease is %s, but a posted operation may still be executed for %s on this device",
               lease_text, shortest_text);
    probe_advise(c, "set mr_lease in [pool] to %llums or more, the same on every node",
                 (unsigned long long)up_to_ms(shortest + 1));
}

static bool make_lonely(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps;
    int status = probe_bed_qp_new(b, BED_INITIATOR, NULL, &b->lonely);
    if (status == 0)
        status = probe_bed_qp_new(b, BED_RESPONDER, NULL, &b->silent); /* stays in RESET */
    if (!probe_bed_succeeded(c, "creating an RC queue pair", status, NULL))
        return false;
    status = probe_bed_raise(b, &b->lonely, b->silent, true, &steps);
    return probe_bed_succeeded(c, "bringing an RC queue pair to RTS", status, NULL);
}

/* A longer lease alone does not help: an initiator stops posting the bound before its end, and it
 * is the bound that is too short. */
static void advise_times(const struct bed *b, struct probe_check *c, uint64_t measured)
{
    const uint8_t retries = b->settings->ack_retries;
    uint8_t timeout = b->settings->ack_timeout;
    while (timeout < 31 && fab_bound_ns(&b->fab->caps, timeout, retries) < measured)
        timeout++;
    uint64_t shortest = fab_bound_ns(&b->fab->caps, timeout, retries) + b->fab->caps.slack_ns;
    probe_number(c, "ack_timeout_wanted", timeout);
    probe_advise(
        c,
        "set ack_timeout in [fabric] to %u and mr_lease in [pool] to more than %llums, the "
        "same on every node, and run this again on a quiet machine: memory that is given "
        "back may be written to otherwise",
        timeout, (unsigned long long)up_to_ms(shortest));
}

/* How long a request to a silent peer takes: 0, *ns and *wc. */
static int measure_silence(struct bed *b, struct fab_qp *qp, struct bed_wr *w, uint64_t longest,
                           uint64_t *ns, struct ibv_wc *wc)
{
    const uint64_t start = base_clock_ns();
    int status = probe_bed_post(qp, w);
    if (status == 0)
        status = probe_bed_wait(b->cq, w->wr.wr_id, longest, wc);
    *ns = base_clock_ns() - start;
    return status;
}

/* Devices have a shortest time-out of their own, whatever they are asked for: what they really take
 * is measured, with a peer that keeps silent. A machine that does something else meanwhile makes it
 * longer and never shorter, so that what is too long is measured again, and the least counts. */
void probe_bed_try_silence(struct bed *b, struct probe_check *c, struct fab_qp **qp,
                           const struct fab_qp *peer, struct bed_wr *w)
{
    const struct probe_settings *s = b->settings;
    const uint64_t bound = fab_bound_ns(&b->fab->caps, s->ack_timeout, s->ack_retries);
    const uint64_t longest = s->wait_ms != 0 ? b->wait_ns : SILENCE_MS * BASE_NS_PER_MS;
    const uint64_t least =
        s->ack_timeout == 0 ? 0 : (4096ull << s->ack_timeout) * (s->ack_retries + 1u);
    char took[PROBE_DURATION], assumed[PROBE_DURATION], shortest[PROBE_DURATION];
    struct bed_steps steps;
    struct ibv_wc wc, last;
    uint64_t ns, again;
    uint32_t times = 1;
    int status = measure_silence(b, *qp, w, longest, &ns, &wc);
    for (; status == 0 && wc.status == IBV_WC_RETRY_EXC_ERR && ns > bound && times < SILENCES;
         times++) {
        if (probe_bed_raise(b, qp, peer, true, &steps) != 0 ||
            measure_silence(b, *qp, w, longest, &again, &last) != 0 ||
            last.status != IBV_WC_RETRY_EXC_ERR)
            break; /* it says nothing of silence: what was measured stands */
        ns = again < ns ? again : ns;
    }
    probe_number(c, "times", times);
    probe_duration(ns, took);
    probe_duration(bound, assumed);
    probe_number(c, "least_ns", least);
    probe_number(c, "bound_ns", bound);
    probe_number(c, "measured_ns", ns);
    if (status != 0) {
        (void)probe_bed_succeeded(c, "waiting for a READ to give up on a silent peer", status,
                                  NULL);
        return;
    }
    probe_number(c, "wc_status", wc.status);
    probe_number(c, "vendor_err", wc.status != IBV_WC_SUCCESS ? wc.vendor_err : 0);
    if (wc.status != IBV_WC_RETRY_EXC_ERR)
        probe_warn(c, "send this report",
                   "a READ of a silent peer completed with %s after %s, not with %s",
                   probe_bed_wc_name(wc.status), took, probe_bed_wc_name(IBV_WC_RETRY_EXC_ERR));
    else if (ns < least)
        probe_warn(c,
                   "the device does not keep to ack_timeout of [fabric]: peers that pause for "
                   "longer than it waits are taken for dead, and requests to them fail",
                   "a READ of a silent peer is given up after %s, sooner than ack_timeout says "
                   "(%s)",
                   took, probe_duration(least, shortest));
    else if (ns <= bound)
        probe_ok(c, "a READ of a silent peer is given up after %s; leases allow for %s", took,
                 assumed);
    else {
        probe_warn(c, "",
                   "a READ of a silent peer is given up after %s only, the least of %" PRIu32
                   " times, and leases allow for %s: the device does not keep to ack_timeout, or "
                   "this machine is very busy",
                   took, times, assumed);
        advise_times(b, c, ns);
    }
}

static void check_silence(struct bed *b, struct probe_check *c)
{
    struct bed_wr w;
    if (!b->rc_connects) {
        probe_skip(c, "not tried: queue pairs cannot be connected (rc.connect)");
        return;
    }
    if (!make_lonely(b, c))
        return;
    probe_bed_fill(b, &w, IBV_WR_RDMA_READ, 0, 0, 8);
    probe_bed_try_silence(b, c, &b->lonely, b->silent, &w);
}

void probe_lease(struct bed *b)
{
    static const struct bed_case cases[] = {{"lease", PROBE_FOR_RC, check_lease},
                                            {"rc.silent_peer", PROBE_FOR_NOTHING, check_silence}};
    probe_bed_run(b, cases, 2);
}
