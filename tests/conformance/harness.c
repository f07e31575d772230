/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "deviations.h"

enum { TIMEOUT_MS = 60000, SILENCE_MS = 30, MAX_SKIPS = 256 };

const enum fab_transport conf_reliable[2] = {FAB_RC, FAB_DC};

static const struct conf_provider *chosen;
static const char *chosen_device;
/* Shared with the processes that Check forks. */
static struct {
    atomic_uint count;
    char name[MAX_SKIPS][80];
    atomic_uint transports; /* of the device, and KNOWN; 0: nobody has opened it yet */
} * skips;

#define KNOWN (1u << 31)

void conf_choose(const struct conf_provider *provider, const char *device)
{
    chosen = provider;
    chosen_device = device;
    skips = mmap(NULL, sizeof *skips, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (skips == MAP_FAILED)
        skips = NULL;
}

struct fab *conf_open(void)
{
    struct fab_open_attr attr = {.device = chosen_device};
    struct base_errbuf err = {.text = ""};
    struct fab *fab = NULL;
    int status = chosen->open(&attr, &fab, &err);
    ck_assert_msg(status == 0, "opening %s: %d: %s", chosen->name, status, err.text);
    if (skips != NULL)
        atomic_store(&skips->transports, fab->caps.transports | KNOWN);
    return fab;
}

static void count_skip(const char *test)
{
    ck_assert_ptr_nonnull(skips);
    unsigned i = atomic_fetch_add(&skips->count, 1);
    if (i < MAX_SKIPS)
        snprintf(skips->name[i], sizeof skips->name[i], "%s", test);
}

bool conf_has(const struct fab *fab, uint32_t transports, const char *test)
{
    if ((fab->caps.transports & transports) == transports)
        return true;
    count_skip(test);
    return false;
}

bool conf_lacks(uint32_t transports, const char *test)
{
    const unsigned known = skips != NULL ? atomic_load(&skips->transports) : 0;
    if (!(known & KNOWN) || (known & transports) == transports)
        return false;
    count_skip(test);
    return true;
}

/* Unless all is to run. */
bool conf_is_short(void)
{
    const char *slow = getenv("KEDGE_TEST_SLOW"), *whole = getenv("KEDGE_TEST_LONG");
    return slow != NULL && slow[0] != '\0' && (whole == NULL || whole[0] == '\0');
}

unsigned conf_report_skips(void)
{
    unsigned count = skips != NULL ? atomic_load(&skips->count) : 0;
    for (unsigned i = 0; i < count && i < MAX_SKIPS; i++)
        printf("skipped, the device has no such transport: %s\n", skips->name[i]);
    return count;
}

TCase *conf_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 240);
    suite_add_tcase(suite, tcase);
    return tcase;
}

void conf_add(TCase *tcase, const TTest *test, int start, int end)
{
    if (!deviates(test->name))
        _tcase_add_test(tcase, test, 0, 0, start, end);
}

uint64_t now_ns(void)
{
    return chosen->now_ns != NULL ? chosen->now_ns() : base_clock_ns();
}

uint64_t now_ms(void)
{
    return now_ns() / BASE_NS_PER_MS;
}

bool time_is_free(void)
{
    return chosen->pass != NULL;
}

void pause_us(unsigned us)
{
    if (chosen->pass != NULL)
        (void)chosen->pass(-1, us * BASE_NS_PER_US);
    else
        (void)usleep(us);
}

bool fd_is_readable(int fd, int timeout_ms)
{
    if (chosen->pass != NULL)
        return chosen->pass(fd, (uint64_t)timeout_ms * BASE_NS_PER_MS);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do {
        n = poll(&p, 1, timeout_ms);
    } while (n < 0 && errno == EINTR);
    return n == 1 && (p.revents & POLLIN);
}

void node_open(struct node *n)
{
    *n = (struct node){.fab = conf_open()};
    ck_assert_int_eq(fab_mem_alloc(NODE_BYTES, "conformance", &n->mem), 0);
    n->bytes = n->mem.addr;
    n->pd = make_pd(n->fab);
    n->cq = make_cq(n->fab, NODE_CQE, NULL);
    n->mr = make_mr(n->pd, &n->mem, 0, NODE_BYTES, ALL_ACCESS);
}

void node_close(struct node *n)
{
    ck_assert_int_eq(free_mr(n->mr), 0);
    ck_assert_int_eq(free_cq(n->cq), 0);
    ck_assert_int_eq(free_pd(n->pd), 0);
    ck_assert_int_eq(fab_close(n->fab), 0);
    fab_mem_free(&n->mem);
}

/* ---- requests */

struct ibv_sge sge_of(const struct node *n, uint64_t offset, uint32_t length)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)n->bytes + offset, .length = length, .lkey = n->mr->lkey};
}

struct fab_wr make_wr(const struct link *l, uint64_t wr_id, enum ibv_wr_opcode opcode,
                      struct ibv_sge *sge, uint64_t remote_offset)
{
    struct fab_wr wr = {.wr_id = wr_id,
                        .sg_list = sge,
                        .num_sge = sge != NULL,
                        .opcode = opcode,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = l->b->mr->rkey,
                        .remote_addr = l->b->mr->addr + remote_offset};
    link_address(l, &wr);
    return wr;
}

struct fab_wr make_atomic(const struct link *l, uint64_t wr_id, enum ibv_wr_opcode opcode,
                          struct ibv_sge *sge, uint64_t remote_offset, uint64_t compare_add,
                          uint64_t swap)
{
    struct fab_wr wr = make_wr(l, wr_id, opcode, sge, remote_offset);
    wr.compare_add = compare_add;
    wr.swap = swap;
    return wr;
}

void post_recv(struct fab_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int num_sge)
{
    struct fab_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge}, *bad;
    ck_assert_int_eq(fab_post_recv(qp, &wr, &bad), 0);
}

/* ---- completions */

/* Those of this process that a test has open. */
static const struct pair *both;

void harness_drive(const struct pair *p)
{
    both = p;
}

/* Who waits at one node lets the other go on: a provider may carry requests out when its initiator
 * polls, and need not have begun when they are posted. */
static void drive(const struct fab_cq *cq)
{
    if (both == NULL)
        return;
    if (both->a.cq != cq)
        (void)fab_poll(both->a.cq, 0, NULL);
    if (both->b.cq != cq)
        (void)fab_poll(both->b.cq, 0, NULL);
}

void wait_for(struct fab_cq *cq, int n, struct ibv_wc *wc)
{
    uint64_t deadline = now_ms() + TIMEOUT_MS;
    int got = 0;
    while (got < n) {
        int status = fab_poll(cq, n - got, wc + got);
        ck_assert_int_ge(status, 0);
        ck_assert_int_le(status, n - got);
        got += status;
        if (status == 0)
            drive(cq);
        ck_assert_msg(now_ms() < deadline, "%d of %d completions came", got, n);
    }
}

struct ibv_wc expect_wc(struct fab_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    wait_for(cq, 1, &wc);
    ck_assert_msg(wc.wr_id == wr_id && wc.status == status,
                  "request %llu completed with status %d, and not %llu with %d",
                  (unsigned long long)wc.wr_id, (int)wc.status, (unsigned long long)wr_id,
                  (int)status);
    return wc;
}

enum ibv_wc_status do_one(struct link *l, struct fab_wr *wr)
{
    struct ibv_wc wc;
    ck_assert_int_eq(link_post(l, wr), 0);
    wait_for(l->qp->send_cq, 1, &wc);
    ck_assert_uint_eq(wc.wr_id, wr->wr_id);
    return wc.status;
}

void expect_silence(struct fab_cq *cq)
{
    uint64_t end = now_ms() + SILENCE_MS;
    struct ibv_wc wc;
    while (now_ms() < end)
        ck_assert_int_eq(fab_poll(cq, 1, &wc), 0);
}

void wait_for_err(const struct fab_qp *qp, struct fab_cq *cq)
{
    uint64_t deadline = now_ms() + TIMEOUT_MS;
    while (fab_qp_state(qp) != IBV_QPS_ERR) {
        ck_assert_int_ge(fab_poll(cq, 0, NULL), 0);
        ck_assert_msg(now_ms() < deadline, "the queue pair stays in %d", (int)fab_qp_state(qp));
    }
}

struct fab_event wait_for_event(struct fab *fab, enum ibv_event_type type, struct fab_cq *cq)
{
    uint64_t deadline = now_ms() + TIMEOUT_MS;
    struct fab_event event;
    for (;;) {
        if (cq != NULL)
            (void)fab_poll(cq, 0, NULL);
        if (fd_is_readable(fab_event_fd(fab), 1) && fab_get_event(fab, &event) == 1 &&
            event.type == type)
            return event;
        ck_assert_msg(now_ms() < deadline, "event %d does not come", (int)type);
    }
}
