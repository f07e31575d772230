/* SPDX-License-Identifier: Apache-2.0 */
/* A DCI with streams, on a stand-in: requests complete in another order than they were posted in,
 * and libmlx5 takes each completion for the end of all before it. */
#include "../check_main.h"
#include "base/random.h"
#include "dc_bed.h"

enum { ROOM = 8, LOG = 2, TARGETS = 16, FIRST_TARGET = 1000 };

struct bed {
    struct dc_bed b;
    struct fab_qp *qp;
    struct fab_ah *ah;
    struct fake_qp *device;
    uint16_t stream[TARGETS];
};

static int post_one(struct bed *x, uint64_t id, uint32_t target, unsigned flags)
{
    static const struct ibv_sge sge = {.addr = 4096, .length = 8, .lkey = 77};
    struct fab_wr *bad, wr = {.wr_id = id,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = flags,
                              .ah = x->ah,
                              .dest_qpn = FIRST_TARGET + target};
    fake.trace[0] = '\0';
    return fab_post_send(x->qp, &wr, &bad);
}

static int poll(struct bed *x, struct ibv_wc *wc)
{
    return fab_poll(&x->b.vcq.base, ROOM, wc);
}

static void open_bed(struct bed *x)
{
    struct ibv_wc wc[ROOM];
    dc_bed_open(&x->b);
    fake.log_streams = x->b.f->dc.log_streams = LOG;
    x->b.f->base.caps.transports |= FAB_DC;
    x->qp = dc_bed_dci(&x->b, ROOM);
    x->ah = dc_bed_ah(&x->b, 1);
    x->device = (struct fake_qp *)((struct verbs_qp *)x->qp)->qp;
    dc_bed_bring_up(&x->b, x->qp);
    for (uint32_t t = 0; t < TARGETS; t++) {
        ck_assert_int_eq(post_one(x, t, t, IBV_SEND_SIGNALED), 0);
        x->stream[t] = x->device->wr[(x->device->head - 1) % FAKE_WRS].stream;
        fake_completes(&x->device->ex.qp_base, 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(poll(x, wc), 1);
        ck_assert_uint_eq(wc[0].wr_id, t);
    }
}

static void close_bed(struct bed *x)
{
    ck_assert_int_eq(fake.wrong, 0);
    dc_bed_free_ah(&x->b, x->ah);
    dc_bed_free_dci(&x->b, x->qp);
    dc_bed_close(&x->b);
}

static uint32_t target_beside(const struct bed *x, uint32_t target)
{
    uint32_t t = 0;
    while (x->stream[t] == x->stream[target])
        ck_assert_uint_lt(++t, TARGETS);
    return t;
}

START_TEST(what_is_slow_is_not_written_over_while_other_streams_go_on)
{
    struct bed x;
    struct ibv_wc wc[ROOM];
    open_bed(&x);
    const uint32_t other = target_beside(&x, 0), slow = x.device->head;
    ck_assert_int_eq(post_one(&x, 100, 0, IBV_SEND_SIGNALED), 0);
    for (uint64_t i = 1; i < ROOM; i++) {
        ck_assert_int_eq(post_one(&x, 100 + i, other, IBV_SEND_SIGNALED), 0);
        fake_end(x.device, x.device->head - 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(poll(&x, wc), 1);
        ck_assert_uint_eq(wc[0].wr_id, 100 + i);
    }
    ck_assert_int_eq(post_one(&x, 200, other, IBV_SEND_SIGNALED), -ENOMEM);
    fake_end(x.device, slow, IBV_WC_SUCCESS);
    ck_assert_int_eq(poll(&x, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 100);
    for (uint64_t i = 0; i < 3 * ROOM; i++) {
        ck_assert_int_eq(post_one(&x, i, other, IBV_SEND_SIGNALED), 0);
        fake_completes(&x.device->ex.qp_base, 1, IBV_WC_SUCCESS);
        ck_assert_int_eq(poll(&x, wc), 1);
    }
    close_bed(&x);
}
END_TEST

/* One that is the first of its stream among those that are out. */
static void complete_any(struct bed *x, struct base_prng *prng)
{
    const struct fake_qp *q = x->device;
    uint32_t first[ROOM], n = 0;
    for (uint32_t i = q->oldest; i != q->head; i++) {
        uint32_t before = q->oldest;
        while (before != i && (q->wr[before % FAKE_WRS].over ||
                               q->wr[before % FAKE_WRS].stream != q->wr[i % FAKE_WRS].stream))
            before++;
        if (before == i && !q->wr[i % FAKE_WRS].over)
            first[n++] = i;
    }
    if (n > 0)
        fake_end(x->device, first[base_prng_below(prng, n)], IBV_WC_SUCCESS);
}

static void any_order(uint64_t seed)
{
    enum { REQUESTS = 200 };
    struct bed x;
    struct base_prng prng;
    struct ibv_wc wc[ROOM];
    uint8_t heard[REQUESTS] = {0}, wanted[REQUESTS] = {0};
    uint32_t posted = 0;
    base_prng_seed(&prng, seed);
    open_bed(&x);
    for (int steps = 0; posted < REQUESTS || x.device->oldest != x.device->head; steps++) {
        ck_assert_int_lt(steps, 20 * REQUESTS);
        const uint64_t what = base_prng_below(&prng, 4);
        const unsigned flags = base_prng_below(&prng, 4) != 0 ? IBV_SEND_SIGNALED : 0;
        const uint32_t target = (uint32_t)base_prng_below(&prng, TARGETS);
        if (what < 2 && posted < REQUESTS && post_one(&x, posted, target, flags) == 0)
            wanted[posted++] = flags != 0;
        if (what == 2)
            complete_any(&x, &prng);
        for (int n = what == 3 ? poll(&x, wc) : 0; n > 0; n--)
            heard[wc[n - 1].wr_id]++;
        ck_assert_int_eq(fake.wrong, 0);
    }
    for (int n; (n = poll(&x, wc)) > 0;)
        for (int i = 0; i < n; i++)
            heard[wc[i].wr_id]++;
    ck_assert_mem_eq(heard, wanted, sizeof heard);
    close_bed(&x);
}

START_TEST(in_whatever_order_they_complete_each_is_heard_of_once_and_none_written_over)
{
    for (uint64_t seed = 1; seed <= 100; seed++)
        any_order(seed);
}
END_TEST

/* As when its life ends between the device's words and the look at them. */
START_TEST(what_the_device_says_of_a_former_life_is_nobodys)
{
    struct bed x;
    struct ibv_wc wc[ROOM];
    open_bed(&x);
    ck_assert_int_eq(post_one(&x, 5, 0, IBV_SEND_SIGNALED), 0);
    fake_completes(&x.device->ex.qp_base, 1, IBV_WC_SUCCESS);
    const struct ibv_wc late = fake.wc[0];
    dc_bed_bring_up(&x.b, x.qp);
    ck_assert_int_eq(post_one(&x, 6, 0, IBV_SEND_SIGNALED), 0);
    fake_push(x.device, 0, &late);
    ck_assert_int_eq(poll(&x, wc), 0);
    fake_completes(&x.device->ex.qp_base, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(poll(&x, wc), 1);
    ck_assert_uint_eq(wc[0].wr_id, 6);
    close_bed(&x);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_is_slow_is_not_written_over_while_other_streams_go_on)                                  \
    T(in_whatever_order_they_complete_each_is_heard_of_once_and_none_written_over)                 \
    T(what_the_device_says_of_a_former_life_is_nobodys)

KEDGE_CHECK_MAIN("fabric.verbs_dc_streams", TESTS)
