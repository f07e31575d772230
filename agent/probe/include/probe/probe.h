/* SPDX-License-Identifier: Apache-2.0 */
/* Tries on one device everything that Kedge does with it, in this process alone, and reports.
 *
 * Beside a running agent it may run too: on verbs it opens the device a second time, on soft it
 * takes a GID of its own when the configured one is taken. What it makes it destroys. One thread,
 * which it blocks for some seconds; every wait has an end. */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include "probe/report.h"

/* What the agent asks of a device, with one of its transports. */
struct probe_demand {
    uint64_t queue_pairs, send_wr, cqe;
    const char *way_out; /* "lower dcis or spares" */
};

/* What the agent would do with its configuration: what the device is held against. */
struct probe_settings {
    const char *source; /* where they come from, a sentence: "the settings of /etc/x" */
    const char *wrong;  /* what the agent would not start for, though the device can be tried; "" */
    const char *provider;
    struct fab_open_attr attr;
    uint64_t mr_lease_ns;
    uint8_t ack_timeout, ack_retries; /* as for ibv_qp_attr: 4.096 us << timeout */
    const char *transport;            /* auto, dc, rc or hybrid */
    struct probe_demand dc, rc;
    uint32_t sge, inline_bytes, regions;
    uint32_t
        most_sge; /* of a queue pair for requests, where the device has more than `sge`; or 0 */
    uint32_t datagrams_sent, datagrams_taken; /* slots for handshakes */
    uint64_t largest_region;
    uint64_t open_files;  /* that it must be allowed */
    uint64_t start_bytes; /* registered or pinned when it starts */
    uint64_t most_bytes;  /* when all sessions have attached */
    uint64_t lane_cpu;    /* or FAB_ANY_CPU */
    uint64_t wait_ms;     /* the end of every wait; 0: a default */
    const char *peer;     /* where another node's probe serves, HOST:PORT/WORD; NULL: nowhere */
    const char *fault;    /* as the agent's, with a peer; "" or NULL: none */
};

/* Opens the device and runs every check; *out is always whole: probe_report_fini(). */
void probe_run(const struct probe_settings *s, struct probe_report *out);

/* Opens the device and lends it to another node's probe, once: at address, HOST:PORT, which is
 * printed on out with the word that has to be shown there. 0, or -errno and a sentence. */
struct base_errbuf;
int probe_serve(const struct probe_settings *s, const char *address, FILE *out,
                struct base_errbuf *err);

/* The checks of a device that is open already; takes its transports, GID and port. Everything that
 * was made on it is gone afterwards, unless out->stuck. */
void probe_device(struct fab *fab, const struct probe_settings *s, struct probe_report *out);

/* For an agent's start: whether the device keeps to the I/O virtual addresses that regions are
 * registered at (fabric/iova.h). 0; or -EOPNOTSUPP or another -errno with a sentence, also when
 * that could not be tried: nobody knows then who can reach what. Takes some milliseconds; all that
 * is made for it is gone afterwards. */
int probe_addresses(struct fab *fab, struct base_errbuf *err);

/* The check of locked memory alone, for a limit (RLIM_INFINITY: none) that a user may be exempt
 * from; locks: whether the provider locks memory at all. */
void probe_memlock(struct probe_report *r, const struct probe_settings *s, bool locks,
                   uint64_t limit_bytes, bool exempt);

#endif
