/* SPDX-License-Identifier: Apache-2.0 */
/* Registering and deregistering: what becomes of keys, and that nothing is touched afterwards. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "harness.h"

static int try_register(struct node *n, uint64_t offset, uint64_t length, unsigned access)
{
    struct fab_ctl ctl = {
        .kind = FAB_REG_MR,
        .mr = {.pd = n->pd, .mem = &n->mem, .offset = offset, .length = length, .access = access}};
    int status = fab_call(n->fab, &ctl);
    if (status == 0)
        ck_assert_int_eq(free_mr(ctl.mr.x), 0);
    return status;
}

START_TEST(ranges_outside_of_the_memory_are_not_registered)
{
    struct node n;
    node_open(&n);
    ck_assert_int_eq(try_register(&n, 0, NODE_BYTES, ALL_ACCESS), 0);
    ck_assert_int_eq(try_register(&n, NODE_BYTES - 1, 1, ALL_ACCESS), 0);
    ck_assert_int_eq(try_register(&n, 0, 0, ALL_ACCESS), -EINVAL);
    ck_assert_int_eq(try_register(&n, 0, NODE_BYTES + 1, ALL_ACCESS), -EINVAL);
    ck_assert_int_eq(try_register(&n, 1, NODE_BYTES, ALL_ACCESS), -EINVAL);
    ck_assert_int_eq(try_register(&n, NODE_BYTES, 1, ALL_ACCESS), -EINVAL);
    ck_assert_int_eq(try_register(&n, UINT64_MAX, 2, ALL_ACCESS), -EINVAL);
    ck_assert_int_eq(try_register(&n, 8, UINT64_MAX - 4, ALL_ACCESS), -EINVAL);
    node_close(&n);
}
END_TEST

START_TEST(remote_writing_needs_local_writing)
{
    struct node n;
    node_open(&n);
    ck_assert_int_eq(try_register(&n, 0, 8, IBV_ACCESS_REMOTE_WRITE), -EINVAL);
    ck_assert_int_eq(try_register(&n, 0, 8, IBV_ACCESS_REMOTE_ATOMIC), -EINVAL);
    ck_assert_int_eq(try_register(&n, 0, 8, IBV_ACCESS_REMOTE_READ), 0);
    node_close(&n);
}
END_TEST

START_TEST(a_deregistered_key_is_refused)
{
    enum { ROUNDS = 50 };
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    memset(p.a.bytes, 0xff, 8);
    for (int i = 0; i < ROUNDS; i++) {
        struct fab_mr *mr = make_mr(p.b.pd, &p.b.mem, 4096, 64, ALL_ACCESS);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 4096);
        wr.key.rkey = mr->rkey; /* perhaps the former one's: a device may do that */
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        memset(p.a.bytes, 0xff, 8);
        ck_assert_int_eq(free_mr(mr), 0);
        wr.opcode = IBV_WR_RDMA_WRITE;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_REM_ACCESS_ERR);
        ck_assert_uint_eq(p.b.bytes[4096], 0);
        link_repair(&p.l, NULL);
    }
    pair_close(&p);
}
END_TEST

START_TEST(regions_over_the_same_memory_live_apart)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct fab_mr *one = make_mr(p.b.pd, &p.b.mem, 0, 4096, ALL_ACCESS);
    struct fab_mr *two = make_mr(p.b.pd, &p.b.mem, 0, 4096, IBV_ACCESS_REMOTE_READ);
    ck_assert_uint_ne(one->rkey, two->rkey);
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 0);
    ck_assert_int_eq(free_mr(one), 0);
    wr.key.rkey = two->rkey;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(free_mr(two), 0);
    wr.key.rkey = p.b.mr->rkey;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    pair_close(&p);
}
END_TEST

START_TEST(a_receive_into_a_deregistered_region_is_refused)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct fab_mr *mr = make_mr(p.b.pd, &p.b.mem, 4096, 64, ALL_ACCESS);
    struct ibv_sge in = {mr->addr, 64, mr->lkey}, out = sge_of(&p.a, 0, 8);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &out, 0);
    memset(p.a.bytes, 1, 8);
    link_post_recv(&p.l, 2, &in, 1);
    ck_assert_int_eq(free_mr(mr), 0);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_REM_OP_ERR);
    expect_wc(p.b.cq, 2, IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(p.b.bytes[4096], 0);
    pair_close(&p);
}
END_TEST

/* ---- deregistering under fire */

enum { FIRE_AT = 65536, FIRE_BYTES = 65536 };

struct writer {
    struct link *l;
    uint32_t rkey;
    atomic_bool stop;
    atomic_uint completed;
    enum ibv_wc_status status; /* that ended it */
};

/* WRITEs an ever new pattern all over the region until it is refused. */
static void *write_on(void *arg)
{
    struct writer *w = arg;
    struct ibv_sge sge = sge_of(w->l->a, 0, FIRE_BYTES);
    for (unsigned i = 1; !atomic_load(&w->stop); i++) {
        struct fab_wr wr = make_wr(w->l, i, IBV_WR_RDMA_WRITE, &sge, FIRE_AT), *bad;
        struct ibv_wc wc;
        int n = 0;
        wr.key.rkey = w->rkey;
        memset(w->l->a->bytes, (int)(i | 1) & 0xff, FIRE_BYTES);
        if (fab_post_send(w->l->qp, &wr, &bad) != 0)
            break;
        while (n == 0 && !atomic_load(&w->stop))
            n = fab_poll(w->l->a->cq, 1, &wc);
        if (n != 1 || (w->status = wc.status) != IBV_WC_SUCCESS)
            break;
        atomic_fetch_add(&w->completed, 1);
    }
    return NULL;
}

START_TEST(nothing_touches_memory_after_its_deregistration_is_done)
{
    struct pair p;
    static uint8_t mark[FIRE_BYTES];
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (int round = 0; round < 40; round++) {
        struct fab_mr *mr = make_mr(p.b.pd, &p.b.mem, FIRE_AT, FIRE_BYTES, ALL_ACCESS);
        struct writer w = {.l = &p.l, .rkey = mr->rkey};
        uint64_t deadline = now_ms() + 60000;
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, write_on, &w), 0);
        while (atomic_load(&w.completed) < 3)
            ck_assert(now_ms() < deadline);
        ck_assert_int_eq(free_mr(mr), 0);
        /* From here on the memory is ours alone: whoever writes into it, is late. */
        memset(p.b.bytes + FIRE_AT, 0, FIRE_BYTES);
        for (int i = 0; i < 20; i++)
            ck_assert(memcmp(p.b.bytes + FIRE_AT, mark, FIRE_BYTES) == 0);
        pthread_join(thread, NULL); /* ended by the refusal */
        ck_assert_int_eq(w.status, IBV_WC_REM_ACCESS_ERR);
        ck_assert(memcmp(p.b.bytes + FIRE_AT, mark, FIRE_BYTES) == 0);
        link_repair(&p.l, NULL);
    }
    pair_close(&p);
}
END_TEST

START_TEST(many_regions_can_be_registered_and_keep_apart)
{
    enum { N = 500 };
    struct pair p;
    static struct fab_mr *mr[N];
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (int i = 0; i < N; i++)
        mr[i] = make_mr(p.b.pd, &p.b.mem, (uint64_t)i * 64, 64, ALL_ACCESS);
    for (int i = 0; i < N; i++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, (uint64_t)i * 64);
        uint64_t value = (uint64_t)i + 1;
        memcpy(p.a.bytes, &value, 8);
        wr.key.rkey = mr[i]->rkey;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    }
    for (int i = 0; i < N; i++) {
        uint64_t value;
        memcpy(&value, p.b.bytes + (size_t)i * 64, 8);
        ck_assert_uint_eq(value, (uint64_t)i + 1);
        ck_assert_int_eq(free_mr(mr[i]), 0);
    }
    pair_close(&p);
}
END_TEST

void add_memory(Suite *suite)
{
    TCase *t = conf_case(suite, "memory");
    tcase_add_test(t, ranges_outside_of_the_memory_are_not_registered);
    tcase_add_test(t, remote_writing_needs_local_writing);
    tcase_add_loop_test(t, a_deregistered_key_is_refused, 0, 2);
    tcase_add_loop_test(t, regions_over_the_same_memory_live_apart, 0, 2);
    tcase_add_test(t, a_receive_into_a_deregistered_region_is_refused);
    tcase_add_loop_test(t, nothing_touches_memory_after_its_deregistration_is_done, 0, 2);
    tcase_add_loop_test(t, many_regions_can_be_registered_and_keep_apart, 0, 2);
}
