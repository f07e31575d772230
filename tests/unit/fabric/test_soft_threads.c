/* SPDX-License-Identifier: Apache-2.0 */
/* The soft provider with several threads in it: regions that go while they are used, atomics of
 * many, shared queues of many senders. Meant for the sanitizers too. */
#include <pthread.h>
#include <stdatomic.h>

#include "../check_main.h"
#include "bed_qp.h"

enum {
    LANES = 3,
    ROUNDS = 300,
    ADDS = 3000,
    SENDS = 2000,
    WHOLE = 1024 /* bytes that soft moves at once */,
    REGION = 1 << 16
};

struct lane {
    pthread_t thread;
    struct bed_node node;
    struct bed_card target;
    struct fab_qp *qp;
    struct fab_ah *ah;
    _Atomic uint64_t *region; /* rkey << 32 | offset in the target's memory; shared by all */
    _Atomic bool *stop;
    uint64_t done, refused;
};

static void lane_open(struct lane *l, const char *dir, const struct bed_node *target)
{
    bed_open(&l->node, dir);
    l->target = bed_card(target, NULL);
    l->qp = bed_qp(&l->node, FAB_QP_DCI, bed_patient);
    l->ah = bed_ah(&l->node, l->target.gid);
}

static void lane_close(struct lane *l)
{
    bed_qp_free(l->qp);
    bed_ah_free(l->ah);
    bed_close(&l->node);
}

static void *write_while_it_lasts(void *arg)
{
    struct lane *l = arg;
    struct bed_wr w;
    while (!atomic_load(l->stop)) {
        uint64_t region = atomic_load(l->region);
        l->target.rkey = (uint32_t)(region >> 32);
        bed_fill(&w, &l->node, &l->target, l->ah,
                 l->done % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 0, REGION);
        w.wr.remote_addr = atomic_load(l->region + 1);
        enum ibv_wc_status status = bed_post_wait(l->qp, &w.wr);
        l->done++;
        if (status == IBV_WC_SUCCESS)
            continue;
        BASE_ASSERT(status == IBV_WC_REM_ACCESS_ERR);
        l->refused++;
        bed_modify(l->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
        bed_connect(l->qp, NULL, bed_patient);
    }
    return NULL;
}

/* What is unmapped after deregistration would be a segmentation fault. */
START_TEST(memory_that_was_deregistered_is_touched_no_more)
{
    char dir[64];
    static struct lane lanes[LANES];
    static _Atomic uint64_t region[2];
    static _Atomic bool stop;
    struct bed_node owner;
    bed_dir_make(dir);
    bed_open(&owner, dir);
    for (int i = 0; i < LANES; i++) {
        lane_open(&lanes[i], dir, &owner);
        lanes[i].region = region;
        lanes[i].stop = &stop;
        ck_assert_int_eq(pthread_create(&lanes[i].thread, NULL, write_while_it_lasts, &lanes[i]),
                         0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct fab_mem mem;
        ck_assert_int_eq(fab_mem_alloc(REGION, "region", &mem), 0);
        struct fab_mr *mr = bed_reg(&owner, &mem, 0, REGION, BED_ALL_ACCESS);
        atomic_store(&region[1], mr->addr);
        atomic_store(&region[0], (uint64_t)mr->rkey << 32);
        usleep(200);
        ck_assert_int_eq(bed_dereg(&owner, mr), 0);
        fab_mem_free(&mem);
    }
    atomic_store(&stop, true);
    uint64_t done = 0, refused = 0;
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i].thread, NULL);
        done += lanes[i].done;
        refused += lanes[i].refused;
        lane_close(&lanes[i]);
    }
    ck_assert_uint_gt(done, refused);
    ck_assert_uint_gt(refused, 0);
    bed_close(&owner);
    bed_dir_remove(dir);
}
END_TEST

/* The same for the initiator's own memory. */
START_TEST(local_memory_that_was_deregistered_is_touched_no_more)
{
    char dir[64];
    static struct lane lane;
    struct bed_node owner;
    struct fab_wr *bad;
    struct ibv_wc wc;
    bed_dir_make(dir);
    bed_open(&owner, dir);
    lane_open(&lane, dir, &owner);
    for (int round = 0; round < 50; round++) {
        struct fab_mem mem;
        struct bed_wr w;
        ck_assert_int_eq(fab_mem_alloc(REGION, "region", &mem), 0);
        struct fab_mr *mr = bed_reg(&lane.node, &mem, 0, REGION, BED_ALL_ACCESS);
        bed_fill(&w, &lane.node, &lane.target, lane.ah, IBV_WR_RDMA_READ, 0, 0, WHOLE);
        w.sge = (struct ibv_sge){.addr = mr->addr, .length = WHOLE, .lkey = mr->lkey};
        w.wr.dc_key ^= round & 1; /* every other one has to wait */
        ck_assert_int_eq(fab_post_send(lane.qp, &w.wr, &bad), 0);
        ck_assert_int_eq(bed_dereg(&lane.node, mr), 0);
        fab_mem_free(&mem);
        int n = fab_poll(lane.node.cq, 1, &wc);
        ck_assert_int_eq(n, 1);
        ck_assert_int_eq(wc.status, round & 1 ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
        if (round & 1) {
            bed_modify(lane.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0);
            bed_connect(lane.qp, NULL, bed_patient);
        }
    }
    lane_close(&lane);
    bed_close(&owner);
    bed_dir_remove(dir);
}
END_TEST

static void *add_ones(void *arg)
{
    struct lane *l = arg;
    struct bed_wr w;
    for (int i = 0; i < ADDS; i++) {
        bed_fill(&w, &l->node, &l->target, l->ah, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
        w.wr.compare_add = 1;
        BASE_ASSERT(bed_post_wait(l->qp, &w.wr) == IBV_WC_SUCCESS);
    }
    return NULL;
}

START_TEST(atomics_of_many_add_up)
{
    char dir[64];
    static struct lane lanes[LANES];
    struct bed_node owner;
    bed_dir_make(dir);
    bed_open(&owner, dir);
    for (int i = 0; i < LANES; i++) {
        lane_open(&lanes[i], dir, &owner);
        ck_assert_int_eq(pthread_create(&lanes[i].thread, NULL, add_ones, &lanes[i]), 0);
    }
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i].thread, NULL);
        lane_close(&lanes[i]);
    }
    ck_assert_uint_eq(*(uint64_t *)owner.mem.addr, LANES * ADDS);
    bed_close(&owner);
    bed_dir_remove(dir);
}
END_TEST

static void *send_numbers(void *arg)
{
    struct lane *l = arg;
    struct bed_wr w;
    for (uint32_t i = 0; i < SENDS; i++) {
        bed_fill(&w, &l->node, &l->target, l->ah, IBV_WR_SEND_WITH_IMM, 0, 0, 64);
        w.wr.imm_data = i;
        BASE_ASSERT(bed_post_wait(l->qp, &w.wr) == IBV_WC_SUCCESS);
    }
    return NULL;
}

START_TEST(a_shared_queue_serves_many_senders_each_in_order)
{
    char dir[64];
    static struct lane lanes[LANES];
    uint32_t next[LANES] = {0};
    struct bed_node owner;
    bed_dir_make(dir);
    bed_open(&owner, dir);
    for (int i = 0; i < LANES; i++)
        lane_open(&lanes[i], dir, &owner);
    for (uint64_t i = 0; i < 16; i++)
        ck_assert_int_eq(bed_recv(&owner, NULL, i, 64 * i, 64), 0);
    for (int i = 0; i < LANES; i++)
        ck_assert_int_eq(pthread_create(&lanes[i].thread, NULL, send_numbers, &lanes[i]), 0);
    for (int got = 0; got < LANES * SENDS; got++) {
        struct ibv_wc wc = bed_wait(owner.cq);
        int from = 0;
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        while (lanes[from].qp->qpn != wc.src_qp)
            ck_assert_int_lt(++from, LANES);
        ck_assert_uint_eq(wc.imm_data, next[from]++);
        ck_assert_int_eq(bed_recv(&owner, NULL, wc.wr_id, 64 * wc.wr_id, 64), 0);
    }
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i].thread, NULL);
        lane_close(&lanes[i]);
    }
    bed_close(&owner);
    bed_dir_remove(dir);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(memory_that_was_deregistered_is_touched_no_more)                                             \
    T(local_memory_that_was_deregistered_is_touched_no_more)                                       \
    T(atomics_of_many_add_up)                                                                      \
    T(a_shared_queue_serves_many_senders_each_in_order)

KEDGE_CHECK_MAIN("fabric.soft_threads", TESTS)
