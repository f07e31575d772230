/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams, which handshakes go by. */
#include <string.h>

#include "base/clock.h"
#include "bed.h"

enum { BYTES = 64, GRH = 40, TRIES = 3 };

static bool make_pair(struct bed *b, struct probe_check *c, uint64_t *ah_ns)
{
    struct bed_steps steps;
    for (int i = 0; i < 2; i++) {
        int status = probe_bed_qp_new(b, BED_DATAGRAMS, NULL, &b->ud[i]);
        if (!probe_bed_succeeded(c, "creating a UD queue pair", status, NULL))
            return false;
        status = probe_bed_raise(b, &b->ud[i], NULL, false, &steps);
        if (!probe_bed_succeeded(c, "bringing a UD queue pair to RTS", status, NULL))
            return false;
    }
    uint64_t start = base_clock_ns();
    int status = b->ah == NULL ? probe_bed_ah_new(b, &b->ah) : 0;
    *ah_ns = base_clock_ns() - start;
    return probe_bed_succeeded(c, "making an address handle", status, NULL);
}

static void ud_send(struct bed *b, struct probe_check *c)
{
    struct bed_times t = {.count = 0};
    struct ibv_wc wc, got;
    struct bed_wr w;
    uint64_t ah_ns;
    unsigned lost = 0;
    if (!make_pair(b, c, &ah_ns))
        return;
    int64_t id = 0;
    for (unsigned i = 0; i < BED_ROUNDS / 2;) {
        memset(b->near, (int)(i + 1), BYTES);
        memset(b->far, 0, GRH + BYTES);
        if (id == 0) /* else that of the one that was lost is there still */
            id = probe_bed_post_recv(b, b->ud[1], 0, GRH + BYTES);
        if (!probe_bed_succeeded(c, "posting a receive", id < 0 ? (int)id : 0, NULL))
            return;
        probe_bed_fill(b, &w, IBV_WR_SEND, 0, 0, BYTES);
        w.wr.ah = b->ah;
        w.wr.dest_qpn = b->ud[1]->qpn;
        w.wr.qkey = BED_QKEY;
        uint64_t start = base_clock_ns();
        int status = probe_bed_do(b, b->ud[0], &w, &wc);
        if (!probe_bed_succeeded(c, "a datagram", status, &wc))
            return;
        status = probe_bed_wait(b->far_cq, (uint64_t)id, b->wait_ns / TRIES, &got);
        if (status != 0 && ++lost < TRIES)
            continue; /* as datagrams may */
        if (!probe_bed_succeeded(c, "its receive", status, &got))
            return;
        probe_bed_time(&t, base_clock_ns() - start);
        if (got.byte_len != GRH + BYTES || memcmp(b->far + GRH, b->near, BYTES) != 0) {
            probe_fail(c, "send this report", "a datagram arrived with other bytes");
            return;
        }
        id = 0;
        i++;
    }
    probe_number(c, "address_handle_ns", ah_ns);
    probe_number(c, "lost", lost);
    probe_bed_tell_times(c, "64 bytes, both completions", &t);
}

void probe_ud(struct bed *b)
{
    static const struct bed_case cases[] = {{"ud.send", PROBE_FOR_RC, ud_send}};
    probe_bed_run(b, cases, 1);
}
