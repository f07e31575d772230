/* SPDX-License-Identifier: Apache-2.0 */
/* Whether regions are at the I/O virtual addresses that they were registered at, and nowhere else:
 * that, and not new keys, keeps whoever has a former record from reaching what has its place now.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bed.h"

enum { SMALL = 8, AT = 4096, FORMER = 0x11, WRITTEN = 0x22 };
static const char ADVICE[] =
    "do not use this device: who has a former record could reach other memory";

static bool is_refusal(enum ibv_wc_status status)
{
    return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
           status == IBV_WC_REM_INV_REQ_ERR;
}

/* Writes to `addr` under the region's key, and what became of it. */
static int write_to(struct bed *b, const struct fab_mr *mr, uint64_t addr, struct ibv_wc *wc)
{
    struct bed_steps steps;
    struct bed_wr w;
    int status = probe_bed_raise_pair(b, b->rc, false, &steps);
    if (status != 0)
        return status;
    memset(b->near, WRITTEN, SMALL);
    memset(b->far + AT, FORMER, SMALL);
    probe_bed_fill(b, &w, IBV_WR_RDMA_WRITE, 0, 0, SMALL);
    w.wr.key.rkey = mr->rkey;
    w.wr.remote_addr = addr;
    return probe_bed_do(b, b->rc[0], &w, wc);
}

static const char UNTRIED[] = "it could not be tried: a WRITE to an address that is no region's";

/* At its own address it is found, at the former one's and at the process's it is not. */
static void try_both(struct bed *b, struct probe_check *c, const struct fab_mr *mr, uint64_t former)
{
    const uint64_t wrong[] = {former, (uintptr_t)b->far + AT};
    struct ibv_wc wc;
    int status = write_to(b, mr, mr->addr, &wc);
    if (status == 0 && is_refusal(wc.status)) {
        probe_fail(c, ADVICE, "a region is not found at the address that it was registered at");
        return;
    }
    if (!probe_bed_succeeded(c, "it could not be tried: a WRITE to a region at its own address",
                             status, &wc))
        return;
    if (b->far[AT] != WRITTEN) {
        probe_fail(c, ADVICE, "a WRITE to a region at an address of its own went elsewhere");
        return;
    }
    for (int i = 0; i < 2; i++) {
        status = write_to(b, mr, wrong[i], &wc);
        if (!probe_bed_succeeded(c, UNTRIED, status, NULL))
            return;
        if (wc.status == IBV_WC_SUCCESS || b->far[AT] != FORMER) {
            probe_fail(c, ADVICE, "a WRITE to %s was carried out",
                       i == 0 ? "the address of a region that is gone" : "the process's address");
            return;
        }
        if (!is_refusal(wc.status)) { /* silence and errors of its own prove nothing */
            (void)probe_bed_succeeded(c, UNTRIED, 0, &wc);
            return;
        }
    }
    probe_ok(c, "regions are found at the addresses that they were registered at, and those of "
                "regions that are gone lead nowhere");
}

void probe_bed_try_addresses(struct bed *b, struct probe_check *c)
{
    struct fab_mr *mr = NULL;
    if (!b->rc_connects) {
        probe_skip(c, "not tried: queue pairs cannot be connected (rc.connect)");
        return;
    }
    int status = probe_bed_register(b, &b->mem, BED_HALF + AT, AT, probe_bed_access(b), &mr);
    if (!probe_bed_succeeded(c, "registering 4 KiB", status, NULL))
        return;
    const struct fab_mr former = *mr;
    status = probe_bed_deregister(b, mr);
    if (status == 0)
        status = probe_bed_register(b, &b->mem, BED_HALF + AT, AT, probe_bed_access(b), &mr);
    if (!probe_bed_succeeded(c, "registering 4 KiB again", status, NULL))
        return;
    probe_number(c, "key_came_back", mr->rkey == former.rkey);
    try_both(b, c, mr, former.addr);
    if (!b->report->stuck && probe_bed_deregister(b, mr) != 0)
        probe_fail(c, "send this report", "a region could not be deregistered");
}

/* The queue pairs alone, of all that the probe tries with them. */
static void connect_pair(struct bed *b, struct probe_check *c)
{
    struct bed_steps steps = {.now = IBV_QPS_RESET};
    int status = probe_bed_qp_new(b, BED_INITIATOR, NULL, &b->rc[0]);
    if (status == 0)
        status = probe_bed_qp_new(b, BED_RESPONDER, NULL, &b->rc[1]);
    if (status == 0)
        status = probe_bed_raise_pair(b, b->rc, true, &steps);
    b->rc_connects = probe_bed_succeeded(c, "connecting two queue pairs", status, NULL);
    if (b->rc_connects)
        probe_ok(c, "two queue pairs can be connected");
}

int probe_addresses(struct fab *fab, struct base_errbuf *err)
{
    static const struct bed_case cases[] = {
        {"rc.connect", PROBE_FOR_RC, connect_pair},
        {"rc.addresses", PROBE_FOR_RC, probe_bed_try_addresses}};
    const struct probe_settings s = {.provider = ""};
    struct probe_report *r = calloc(1, sizeof *r);
    struct bed *b = calloc(1, sizeof *b);
    int status = r == NULL || b == NULL ? -ENOMEM : 0;
    if (status == 0 && probe_bed_open(b, fab, &s, r))
        probe_bed_run(b, cases, sizeof cases / sizeof cases[0]);
    if (status == 0)
        probe_bed_close(b);
    for (unsigned i = 0; status == 0 && i < r->checks; i++) {
        const struct probe_check *c = &r->check[i];
        if (c->result != PROBE_FAILED)
            continue;
        const char *more = c->advice[0] != '\0' ? "; " : "";
        status = base_err(err, -EOPNOTSUPP, "trying the device's addresses: %.250s%s%.200s",
                          c->found, more, c->advice);
    }
    free(b);
    free(r);
    return status;
}
