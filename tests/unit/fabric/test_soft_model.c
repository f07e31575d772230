/* SPDX-License-Identifier: Apache-2.0 */
/* A soft device with a cost model: completions come when the card would have written them, and not
 * before; nothing else changes. */
#include <poll.h>

#include "../check_main.h"
#include "bed_qp.h"
#include "fabric/model.h"

enum { BLOCK = 128 << 10, BLOCK_NS = 39000 /* of a ConnectX-3's wire */, END_MS = 60000 };

struct pair {
    char dir[64];
    struct bed_node a, b;
    struct fab_qp *rc[2];
    struct bed_card to;
};

static void pair_open(struct pair *p, const char *model)
{
    bed_dir_make(p->dir);
    bed_model = model;
    bed_open(&p->a, p->dir);
    bed_model = NULL;
    bed_open(&p->b, p->dir);
    bed_rc_pair(&p->a, &p->b, bed_patient, p->rc);
    p->to = bed_card(&p->b, p->rc[1]);
    memset(p->b.mem.addr, 0x5a, BLOCK);
}

static void pair_close(struct pair *p)
{
    bed_qp_free(p->rc[0]);
    bed_qp_free(p->rc[1]);
    bed_close(&p->a);
    bed_close(&p->b);
    bed_dir_remove(p->dir);
}

/* So many READs of a block, as one list. */
static void post_reads(struct pair *p, uint32_t count, uint32_t bytes)
{
    struct bed_wr w[16];
    struct fab_wr *bad;
    for (uint32_t i = 0; i < count; i++) {
        bed_fill(&w[i], &p->a, &p->to, NULL, IBV_WR_RDMA_READ, 0, 0, bytes);
        w[i].wr.wr_id = i;
        w[i].wr.next = i + 1 < count ? &w[i + 1].wr : NULL;
    }
    ck_assert_int_eq(fab_post_send(p->rc[0], &w[0].wr, &bad), 0);
}

static void take_all(struct pair *p, uint32_t count)
{
    struct ibv_wc wc;
    const uint64_t end = base_clock_ns() + END_MS * BASE_NS_PER_MS;
    for (uint32_t i = 0; i < count; i++) {
        int n;
        while ((n = fab_poll(p->a.cq, 1, &wc)) == 0)
            ck_assert(base_clock_ns() < end);
        ck_assert_int_eq(n, 1);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, i);
    }
}

START_TEST(a_device_without_a_model_has_none)
{
    struct pair p;
    pair_open(&p, NULL);
    ck_assert_ptr_null(p.a.fab->model);
    post_reads(&p, 1, 8);
    take_all(&p, 1);
    pair_close(&p);
}
END_TEST

START_TEST(completions_come_when_the_card_has_written_them)
{
    struct pair p;
    pair_open(&p, "connectx-3");
    ck_assert_str_eq(p.a.fab->model->preset, "connectx-3");
    const uint64_t begun = base_clock_ns();
    post_reads(&p, 16, BLOCK);
    take_all(&p, 16);
    ck_assert_uint_ge(base_clock_ns() - begun, 16 * BLOCK_NS);
    ck_assert_int_eq(memcmp(p.a.mem.addr, p.b.mem.addr, BLOCK), 0);
    const struct fab_model_counters *c = &p.a.fab->model->counters;
    ck_assert_uint_eq(c->work_requests, 16);
    ck_assert_uint_eq(c->doorbells, 1);
    ck_assert_uint_eq(c->bytes, 16 * BLOCK);
    pair_close(&p);
}
END_TEST

/* The request is executed at the doorbell, its completion is not there yet: none is lost, and who
 * sleeps is woken when it is. */
START_TEST(who_sleeps_is_woken_when_it_is_due)
{
    struct pair p;
    struct ibv_wc wc;
    pair_open(&p, "connectx-3");
    for (uint32_t turn = 0; turn < 20; turn++) {
        const uint64_t begun = base_clock_ns();
        post_reads(&p, 8, 4096);
        for (uint32_t taken = 0; taken < 8;) {
            struct pollfd ready = {.fd = p.a.chan->fd, .events = POLLIN};
            ck_assert_int_eq(fab_arm(p.a.cq, false), 0);
            int n = fab_poll(p.a.cq, 1, &wc);
            if (n == 0) {
                ck_assert_int_eq(poll(&ready, 1, END_MS), 1);
                fab_chan_drain(p.a.chan);
                n = fab_poll(p.a.cq, 1, &wc);
            }
            ck_assert(n == 0 || wc.wr_id == taken);
            taken += (uint32_t)n;
        }
        ck_assert_uint_ge(base_clock_ns() - begun, 8 * 1200);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_queue_pair_that_goes_takes_its_completions_along)
{
    struct pair p;
    struct ibv_wc wc;
    pair_open(&p, "connectx-3");
    post_reads(&p, 16, 4096);
    bed_qp_free(p.rc[0]);
    bed_qp_free(p.rc[1]);
    ck_assert_int_eq(fab_poll(p.a.cq, 1, &wc), 0);
    bed_rc_pair(&p.a, &p.b, bed_patient, p.rc);
    p.to = bed_card(&p.b, p.rc[1]);
    post_reads(&p, 2, 8);
    take_all(&p, 2);
    pair_close(&p);
}
END_TEST

START_TEST(a_request_that_fails_says_so)
{
    struct pair p;
    struct ibv_wc wc;
    struct bed_wr w;
    struct fab_wr *bad;
    pair_open(&p, "connectx-4");
    bed_fill(&w, &p.a, &p.to, NULL, IBV_WR_RDMA_READ, 0, BED_MEM, 8);
    ck_assert_int_eq(fab_post_send(p.rc[0], &w.wr, &bad), 0);
    const uint64_t end = base_clock_ns() + END_MS * BASE_NS_PER_MS;
    while (fab_poll(p.a.cq, 1, &wc) == 0)
        ck_assert(base_clock_ns() < end);
    ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
    pair_close(&p);
}
END_TEST

/* No ConnectX-3 has DC, and figures of one come of none. */
START_TEST(a_card_without_dc_offers_none)
{
    static const char *const card[] = {"connectx-3", "connectx-4", "connect-ib"};
    for (size_t i = 0; i < sizeof card / sizeof card[0]; i++) {
        const bool has = i > 0;
        struct bed_node n;
        char dir[64];
        bed_dir_make(dir);
        bed_model = card[i];
        bed_open(&n, dir);
        bed_model = NULL;
        ck_assert_int_eq((n.fab->caps.transports & FAB_DC) != 0, has);
        ck_assert((strstr(n.fab->caps.dc_why, "connectx-3") != NULL) == !has);
        struct fab_ctl ctl = {.kind = FAB_CREATE_QP,
                              .qp = {.type = FAB_QP_DCI,
                                     .pd = n.pd,
                                     .send_cq = n.cq,
                                     .recv_cq = n.cq,
                                     .cap = {.send_wr = 4, .send_sge = 1}}};
        ck_assert_int_eq(fab_call(n.fab, &ctl), has ? 0 : -EOPNOTSUPP);
        if (has)
            bed_qp_free(ctl.qp.x);
        bed_close(&n);
        bed_dir_remove(dir);
    }
}
END_TEST

START_TEST(an_unknown_card_is_refused_with_those_that_are_known)
{
    struct base_errbuf err = {.text = ""};
    struct fab *fab = NULL;
    char dir[64];
    bed_dir_make(dir);
    const struct fab_open_attr attr = {.device = dir, .model = "connectx-99"};
    ck_assert_int_eq(fab_soft.open(&attr, &fab, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "connectx-4"));
    bed_dir_remove(dir);
}
END_TEST

#define TESTS(X)                                                                                   \
    X(a_device_without_a_model_has_none)                                                           \
    X(completions_come_when_the_card_has_written_them)                                             \
    X(who_sleeps_is_woken_when_it_is_due)                                                          \
    X(a_queue_pair_that_goes_takes_its_completions_along)                                          \
    X(a_request_that_fails_says_so)                                                                \
    X(a_card_without_dc_offers_none)                                                               \
    X(an_unknown_card_is_refused_with_those_that_are_known)

KEDGE_CHECK_MAIN("soft model", TESTS)
