/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks an RC connection and repairs both of its ends, again and again, on the fabric's own
 * interface: what a worker's wrong key does to its agents. Nothing may be left of a round: neither
 * descriptors nor memory here, nor objects of the device, which whoever stops this (--pause)
 * counts. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "fabric/providers.h"
#include "stress.h"

enum {
    BYTES = 4096,
    BEHIND = 3, /* requests behind the one that breaks the connection */
    SENDS = 16,
    WARM_ROUNDS = 50, /* at most: until allocators and the device have what they keep */
    PATIENCE_MS = 60000,
    GROWTH_KIB = 1024, /* a page in four rounds of a thousand would be seen */
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

/* One end, as an agent of its own has it. */
struct end {
    struct fab *fab;
    struct fab_pd *pd;
    struct fab_cq *cq;
    struct fab_qp *qp;
    struct fab_mem mem;
    struct fab_mr *mr;
    uint64_t events;
};

static void call(struct end *e, struct fab_ctl *ctl, const char *what)
{
    int status = fab_call(e->fab, ctl);
    if (status != 0)
        stress_fail("%s: %s", what, strerror(-status));
}

/* ---- what stays */

static void open_end(const struct stress *s, const char *gid, struct end *e)
{
    struct base_errbuf err;
    struct fab_open_attr attr = {.device = s->device};
    const struct fab_provider *provider = fab_provider_find(s->provider, &err);
    if (provider == NULL)
        stress_fail("%s", err.text);
    if (gid == NULL || base_gid_parse(gid, attr.gid) != 0)
        stress_fail("repair needs a GID for each end: --gid and --peer-gid");
    if (provider->open(&attr, &e->fab, &err) != 0)
        stress_fail("%s", err.text);
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    call(e, &pd, "a protection domain");
    e->pd = pd.pd.x;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 2 * SENDS}};
    call(e, &cq, "a completion queue");
    e->cq = cq.cq.x;
    struct fab_ctl qp = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = e->pd,
               .type = FAB_QP_RC,
               .send_cq = e->cq,
               .recv_cq = e->cq,
               .cap = {.send_wr = SENDS, .recv_wr = 1, .send_sge = 1, .recv_sge = 1}}};
    call(e, &qp, "a queue pair");
    e->qp = qp.qp.x;
    int status = fab_mem_alloc(BYTES, "kedge-repair", &e->mem);
    if (status != 0)
        stress_fail("memory: %s", strerror(-status));
}

static void close_end(struct end *e)
{
    struct fab_ctl qp = {.kind = FAB_DESTROY_QP, .qp = {.x = e->qp}};
    struct fab_ctl cq = {.kind = FAB_DESTROY_CQ, .cq = {.x = e->cq}};
    struct fab_ctl pd = {.kind = FAB_FREE_PD, .pd = {.x = e->pd}};
    call(e, &qp, "destroying the queue pair");
    call(e, &cq, "destroying the completion queue");
    call(e, &pd, "freeing the protection domain");
    fab_mem_free(&e->mem);
    int status = fab_close(e->fab);
    if (status != 0)
        stress_fail("closing the device: %s", strerror(-status));
}

/* ---- what each round makes and frees */

static void register_memory(struct end *e)
{
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = e->pd, .mem = &e->mem, .length = BYTES, .access = ACCESS}};
    call(e, &c, "registering");
    e->mr = c.mr.x;
}

static void deregister(struct end *e)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = e->mr}};
    call(e, &c, "deregistering");
    e->mr = NULL;
}

static void resolve(struct end *e, const struct end *to)
{
    struct fab_ctl c = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = e->pd, .attr = fab_address(e->fab, to->fab->caps.gid, to->fab->caps.lid)}};
    call(e, &c, "an address handle");
    struct fab_ctl d = {.kind = FAB_DESTROY_AH, .ah = {.x = c.ah.x}};
    call(e, &d, "destroying an address handle");
}

static void move(struct end *e, struct ibv_qp_attr attr, int mask, const char *what)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                        .modify = {.x = e->qp, .attr = attr, .mask = mask | IBV_QP_STATE}};
    call(e, &c, what);
}

/* From whatever state to RTS, towards the other end. */
static void repair(struct end *e, const struct end *to, uint32_t psn)
{
    const struct fab_caps *caps = &e->fab->caps;
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = caps->mtu,
                              .dest_qp_num = to->qp->qpn,
                              .rq_psn = psn,
                              .max_dest_rd_atomic = 4,
                              .min_rnr_timer = 12,
                              .ah_attr = fab_address(e->fab, to->fab->caps.gid, to->fab->caps.lid)};
    struct ibv_qp_attr init = fab_init_attr(e->fab);
    init.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    move(e, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0, "to RESET");
    move(e, init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "to INIT");
    move(e, rtr,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         "to RTR");
    move(e,
         (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = 14,
                              .retry_cnt = 7,
                              .rnr_retry = 7,
                              .sq_psn = psn,
                              .max_rd_atomic = 4},
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "to RTS");
    if (fab_qp_state(e->qp) != IBV_QPS_RTS)
        stress_fail("a queue pair that was moved to RTS is in state %d", (int)fab_qp_state(e->qp));
}

/* ---- used and broken */

static void post(struct end *e, uint64_t id, uint64_t addr, uint32_t rkey)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->mem.addr, .length = 64, .lkey = e->mr->lkey};
    struct fab_wr *bad, wr = {.wr_id = id,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_READ,
                              .send_flags = IBV_SEND_SIGNALED,
                              .key.rkey = rkey,
                              .remote_addr = addr};
    int status = fab_post_send(e->qp, &wr, &bad);
    if (status != 0)
        stress_fail("posting: %s", strerror(-status));
}

static void expect(struct end *e, const struct end *to, uint64_t id, enum ibv_wc_status wanted)
{
    const uint64_t end = base_clock_ns() + PATIENCE_MS * BASE_NS_PER_MS;
    struct ibv_wc wc;
    int n;
    while ((n = fab_poll(e->cq, 1, &wc)) == 0) {
        if (base_clock_ns() > end)
            stress_fail("request %llu did not complete", (unsigned long long)id);
        if (fab_poll(to->cq, 1, &wc) != 0) /* a software device moves where it is polled */
            stress_fail("the responder has a completion of nothing");
    }
    if (n < 0 || wc.wr_id != id || wc.status != wanted)
        stress_fail("completion %d: request %llu ended with status %d, not %llu with %d", n,
                    (unsigned long long)wc.wr_id, (int)wc.status, (unsigned long long)id,
                    (int)wanted);
}

static void wait_for_error(const struct end *e, const char *which)
{
    const uint64_t end = base_clock_ns() + PATIENCE_MS * BASE_NS_PER_MS;
    struct ibv_wc wc;
    for (;; (void)usleep(1000)) {
        if (fab_poll(e->cq, 1, &wc) != 0) /* soft says there that it broke */
            stress_fail("the %s has a completion of nothing", which);
        if (fab_qp_state(e->qp) == IBV_QPS_ERR)
            return;
        if (base_clock_ns() > end)
            stress_fail("the %s's queue pair did not break", which);
    }
}

static void read_well(struct end *a, struct end *b, uint64_t number)
{
    memset(b->mem.addr, (int)(number & 0xff) | 1, 64);
    memset(a->mem.addr, 0, 64);
    post(a, number, b->mr->addr, b->mr->rkey);
    expect(a, b, number, IBV_WC_SUCCESS);
    if (memcmp(a->mem.addr, b->mem.addr, 64) != 0)
        stress_fail("round %llu: other bytes were read", (unsigned long long)number);
}

static void break_it(struct end *a, struct end *b, uint64_t number, uint32_t rkey)
{
    for (uint64_t i = 0; i <= BEHIND; i++)
        post(a, number + i, b->mr->addr, i == 0 ? rkey : b->mr->rkey);
    expect(a, b, number, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 1; i <= BEHIND; i++)
        expect(a, b, number + i, IBV_WC_WR_FLUSH_ERR);
    wait_for_error(a, "initiator");
    wait_for_error(b, "responder");
}

static void take_events(struct end *e)
{
    struct fab_event event;
    while (fab_get_event(e->fab, &event))
        e->events++;
}

/* In turn: a key that is nobody's, and the one that the memory had in the round before. */
static void one_round(struct end *a, struct end *b, uint64_t number, uint32_t *key_before)
{
    register_memory(a);
    register_memory(b);
    resolve(a, b);
    resolve(b, a);
    const uint32_t psn = (uint32_t)(number * 0x9e3779b9u) & 0xffffff;
    repair(a, b, psn);
    repair(b, a, psn);
    read_well(a, b, 8 * number);
    const bool stale = number % 2 == 1 && *key_before != b->mr->rkey;
    break_it(a, b, 8 * number + 1, stale ? *key_before : b->mr->rkey ^ 0x55);
    *key_before = b->mr->rkey;
    deregister(a);
    deregister(b);
    take_events(a);
    take_events(b);
}

/* ---- what is left */

struct left {
    uint32_t fds;
    unsigned long long kib; /* the process's own: soft uses its shared slots for regions in turn */
    unsigned long long resident_kib;
};

static struct left count(const struct stress *s)
{
    struct left l = {.fds = 0};
    char line[128];
    DIR *dir = opendir("/proc/self/fd");
    FILE *status = fopen("/proc/self/status", "re");
    if (dir == NULL || status == NULL)
        stress_fail("/proc/self cannot be read");
    while (readdir(dir) != NULL)
        l.fds++;
    while (fgets(line, sizeof line, status) != NULL) {
        (void)sscanf(line, "RssAnon: %llu", &l.kib);
        (void)sscanf(line, "VmRSS: %llu", &l.resident_kib);
    }
    closedir(dir);
    fclose(status);
    if (l.kib == 0)
        stress_fail("/proc/self/status does not say RssAnon");
    if (s->pause)
        raise(SIGSTOP);
    return l;
}

/* Sanitizers keep what was freed, and what they note of each word counts as the process's own. The
 * release build is the one to measure; the address sanitizer finds leaks by itself. */
static bool memory_can_be_compared(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

void stress_repair(struct stress *s)
{
    struct end a = {.events = 0}, b = {.events = 0};
    const uint64_t warm = s->rounds / 2 < WARM_ROUNDS ? s->rounds / 2 : WARM_ROUNDS;
    uint32_t key_before = 0;
    open_end(s, s->gid, &a);
    open_end(s, s->peer_gid, &b);
    uint64_t number = 1;
    for (; number <= warm; number++)
        one_round(&a, &b, number, &key_before);
    const struct left before = count(s);
    for (; number <= warm + s->rounds; number++)
        one_round(&a, &b, number, &key_before);
    const struct left after = count(s);
    close_end(&a);
    close_end(&b);
    printf("repair: %llu rounds of break and repair after %llu, %llu events, %u descriptors "
           "before and %u after, %llu KiB of its own before and %llu after (%llu and %llu KiB "
           "resident)\n",
           (unsigned long long)s->rounds, (unsigned long long)warm,
           (unsigned long long)(a.events + b.events), before.fds, after.fds, before.kib, after.kib,
           before.resident_kib, after.resident_kib);
    if (after.fds != before.fds)
        stress_fail("descriptors are left");
    if (memory_can_be_compared() && after.kib > before.kib + GROWTH_KIB)
        stress_fail("memory is left");
}
