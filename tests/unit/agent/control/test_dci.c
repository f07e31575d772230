/* SPDX-License-Identifier: Apache-2.0 */
/* DC initiators whose former lives' packets come in late, or may. The device is soft under the
 * layer of faults, and time the test's; whatever is drawn at random is always the same, so that
 * nothing is avoided by luck. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../check_main.h"
#include "agent.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "bounds.h"
#include "dci.h"
#include "dci_repair.h"
#include "device_objects.h"
#include "fabric/fault.h"
#include "fabric/retire.h"
#include "peer_setup.h"
#include "pool.h"
#include "world.h"

enum { DCIS = 2, TARGETS = 3, BYTES = 1 << 20, DEPTH = 64, LIFE_MS = 500, LIVES = 60 };
static const uint64_t LIFE_NS = LIFE_MS * BASE_NS_PER_MS;
static const uint64_t HALF = 1 << 23; /* of all packet numbers */

static struct {
    struct test_world world;
    struct agent agent;
    struct pool pool;
    char dir[64];
    struct fab *fab;
    struct fab_cq *cq, *target_cq;
    struct fab_srq *srq;
    struct fab_dct *target[TARGETS];
    struct fab_ah *ah;
    struct fab_mem mem;
    struct fab_mr *mr;
    struct base_prng random;
    uint32_t ready[8]; /* how often each DCI was said to be */
    uint32_t gone;     /* how often one was said not to come back */
    uint64_t posted[8];
} w;

static uint32_t number_of(const struct fab_qp *qp)
{
    return (uint32_t)(agent_dci_find(&w.pool, qp) - w.pool.device.dci);
}

static void tell_lane(const struct lane_command *command)
{
    if (command->kind == LANE_COMMAND_QP_READY)
        w.ready[number_of(command->ready.qp)]++;
    w.gone += command->kind == LANE_COMMAND_QP_GONE;
}

static void call(struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(w.fab, ctl), 0);
}

static void make_targets(void)
{
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 16}};
    call(&cq);
    w.target_cq = cq.cq.x;
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = w.pool.device.pd, .max_wr = 1, .max_sge = 1}};
    call(&srq);
    w.srq = srq.srq.x;
    for (uint32_t i = 0; i < TARGETS; i++) {
        struct fab_ctl dct = {.kind = FAB_CREATE_DCT,
                              .dct = {.pd = w.pool.device.pd,
                                      .cq = w.target_cq,
                                      .srq = w.srq,
                                      .dc_key = i,
                                      .access = IBV_ACCESS_REMOTE_WRITE}};
        call(&dct);
        w.target[i] = dct.dct.x;
    }
}

static void make_device(void)
{
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    call(&pd);
    w.pool.device.pd = w.pool.device.system_pd = pd.pd.x;
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = 8 * DEPTH}};
    call(&cq);
    w.pool.device.cq = w.cq = cq.cq.x;
    ck_assert_int_eq(fab_mem_alloc(BYTES, "dci", &w.mem), 0);
    struct fab_ctl mr = {.kind = FAB_REG_MR,
                         .mr = {.pd = w.pool.device.pd,
                                .mem = &w.mem,
                                .length = BYTES,
                                .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}};
    call(&mr);
    w.mr = mr.mr.x;
    struct fab_ctl ah = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = w.pool.device.pd, .attr = fab_address(w.fab, w.fab->caps.gid, 0)}};
    call(&ah);
    w.ah = ah.ah.x;
    make_targets();
}

static void begin(const struct fault_plan *plan)
{
    struct base_errbuf err = {""};
    struct fab *soft;
    memset(&w, 0, sizeof w);
    test_world_init(&w.world);
    w.world.lane_told = tell_lane;
    snprintf(w.dir, sizeof w.dir, "/dev/shm/kedge-dci-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w.dir));
    const struct fab_open_attr attr = {.device = w.dir};
    ck_assert_msg(fab_soft.open(&attr, &soft, &err) == 0, "%s", err.text);
    struct fault_plan timed = *plan;
    timed.now_ns = &w.world.now_ns;
    ck_assert_int_eq(fault_open(soft, &timed, &w.fab), 0);
    base_prng_seed(&w.random, plan->seed);
    w.agent.world = w.pool.world = &w.world.world;
    w.agent.config.ack_timeout = 14;
    w.agent.started_ns = w.world.now_ns;
    w.pool.agent = &w.agent;
    w.pool.config = &w.agent.config;
    w.pool.lane = (struct lane *)&w; /* there is one */
    w.pool.device.fab = w.agent.fab = w.fab;
    w.pool.device.path_mtu = IBV_MTU_1024;
    w.pool.device.sq_depth = DEPTH;
    make_device();
}

/* What was asked of the device ends; nobody waits for time. */
static void settle_device(void)
{
    while (w.pool.fab_ops > 0) {
        w.world.random = 7; /* as it was before */
        (void)fab_run(w.fab);
    }
}

static void destroy_object(enum fab_ctl_kind kind, void *x)
{
    fab_retire(w.pool.device.fab, kind, x, &w.pool.fab_ops);
    settle_device();
}

static void end(void)
{
    agent_peer_setup_stop(&w.pool);
    settle_device();
    agent_dci_repairs_stop(&w.pool);
    for (uint32_t i = 0; i < w.pool.device.dcis; i++)
        destroy_object(FAB_DESTROY_QP, w.pool.device.dci[i].qp);
    for (uint32_t i = 0; i < TARGETS; i++)
        destroy_object(FAB_DESTROY_DCT, w.target[i]);
    destroy_object(FAB_DESTROY_SRQ, w.srq);
    destroy_object(FAB_DESTROY_AH, w.ah);
    destroy_object(FAB_DEREG_MR, w.mr);
    destroy_object(FAB_DESTROY_CQ, w.cq);
    destroy_object(FAB_DESTROY_CQ, w.target_cq);
    destroy_object(FAB_FREE_PD, w.pool.device.pd);
    ck_assert_int_eq(fab_close(w.fab), 0);
    fab_mem_free(&w.mem);
    char path[96];
    snprintf(path, sizeof path, "%s/device", w.dir);
    (void)unlink(path);
    (void)rmdir(w.dir);
}

static void pass_ms(uint64_t ms)
{
    for (; ms > 0; ms--) {
        test_world_advance(&w.world, BASE_NS_PER_MS);
        agent_dci_repairs_tick(&w.pool);
        settle_device();
    }
}

/* As the daemon makes one at its start: number 0 is the first. */
static void make_dci(uint64_t gone_ns)
{
    struct fab_ctl c = agent_dci_creation(&w.pool, w.pool.device.pd);
    call(&c);
    w.world.random = 7;
    struct agent_dci *d = agent_dci_add(&w.pool, c.qp.x, gone_ns);
    for (uint32_t step = 1;; step++) {
        struct fab_ctl modify = {.status = 0};
        if (!agent_dci_step(&w.pool, d, step, &modify))
            break;
        call(&modify);
    }
}

/* False: it was said to have succeeded, and was not carried out. */
static bool write_once(uint32_t number, uint32_t target, uint32_t length)
{
    uint8_t *bytes = w.mem.addr;
    struct ibv_sge sge = {.addr = w.mr->addr, .length = length, .lkey = w.mr->lkey};
    struct fab_wr wr = {.sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_RDMA_WRITE,
                        .send_flags = IBV_SEND_SIGNALED,
                        .key.rkey = w.mr->rkey,
                        .remote_addr = w.mr->addr + BYTES / 2,
                        .ah = w.ah,
                        .dest_qpn = w.target[target]->dctn,
                        .dc_key = target};
    struct fab_wr *bad;
    struct ibv_wc wc;
    int n;
    bytes[0]++;
    ck_assert_int_eq(fab_post_send(w.pool.device.dci[number].qp, &wr, &bad), 0);
    w.posted[number] += length + LANE_POST_BYTES;
    while ((n = fab_poll(w.cq, 1, &wc)) == 0)
        ;
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    return bytes[BYTES / 2] == bytes[0];
}

static void break_dci(uint32_t number, uint64_t posted)
{
    const struct lane_event e = {.kind = LANE_EVENT_QP_BROKEN,
                                 .broken = {.qp = w.pool.device.dci[number].qp, .posted = posted}};
    w.posted[number] = 0;
    agent_peer_setup_event(&w.pool, &e);
    settle_device();
}

/* ---- one life after the other */

static void live_and_break(uint64_t seed)
{
    const struct fault_plan plan = {.seed = seed, .packet_life_ns = LIFE_NS};
    begin(&plan);
    make_dci(0);
    for (uint32_t life = 0; life < LIVES; life++) {
        const uint32_t requests = 1 + (uint32_t)(base_prng_next(&w.random) % 40);
        for (uint32_t i = 0; i < requests; i++) {
            const uint64_t random = base_prng_next(&w.random);
            ck_assert_msg(
                write_once(0, (uint32_t)(random % TARGETS), 1 + (uint32_t)(random >> 32) % 9000),
                "seed %u, life %u: a late acknowledgement was taken for request %u's",
                (unsigned)seed, life, i);
        }
        break_dci(0, w.posted[0]);
        ck_assert_uint_eq(w.ready[0], life + 1); /* at once */
        pass_ms(base_prng_next(&w.random) % 8);
    }
    end();
}

START_TEST(no_packet_of_a_former_life_is_taken_for_one_of_the_present)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        live_and_break(seed);
}
END_TEST

/* How many rest, and for how long, as the agent's status says it. */
static void status_says(uint32_t resting, uint32_t for_ms)
{
    struct dci_counts sum = {.resting = 0};
    struct base_text t;
    char expected[128];
    agent_dcis_count(&w.pool, &sum);
    base_text_init(&t, 256);
    base_json_object(&t, NULL);
    agent_dcis_status(&sum, world_now_ns(w.pool.world), &t);
    base_json_object_end(&t);
    snprintf(expected, sizeof expected,
             "{\"dcis_resting\":%u,\"dcis_rest_for_ms\":%u,"
             "\"dcis_missing\":0,\"dcis_replaced\":%u}",
             resting, for_ms, w.gone);
    ck_assert_str_eq(base_text_str(&t), expected);
    base_text_fini(&t);
    const struct dci_counts one = sum; /* and of two lanes */
    agent_dcis_count(&w.pool, &sum);
    ck_assert_uint_eq(sum.resting, 2 * resting);
    ck_assert_uint_eq(sum.replaced, 2 * one.replaced);
    ck_assert_uint_eq(sum.until_ns, one.until_ns);
}

/* What it posted may fill more than half of all packet numbers, and would be before it and behind
 * it. */
START_TEST(one_that_has_used_half_of_all_numbers_rests)
{
    const struct fault_plan plan = {.seed = 1, .packet_life_ns = LIFE_NS};
    begin(&plan);
    make_dci(0);
    make_dci(0);
    break_dci(1, HALF / 2 * 1024);
    ck_assert_uint_eq(w.ready[1], 1);
    status_says(0, 0);
    break_dci(0, HALF * 1024);
    status_says(1, LIFE_MS);
    pass_ms(LIFE_MS - 1);
    ck_assert_uint_eq(w.ready[0], 0);
    status_says(1, 1);
    pass_ms(1);
    ck_assert_uint_eq(w.ready[0], 1);
    status_says(0, 0);
    ck_assert(write_once(0, 0, 8));
    end();
}
END_TEST

START_TEST(lives_that_follow_each_other_count_together)
{
    const struct fault_plan plan = {.seed = 1, .packet_life_ns = LIFE_NS};
    begin(&plan);
    make_dci(0);
    for (uint32_t life = 1; life <= 3; life++) {
        break_dci(0, HALF / 4 * 1024);
        ck_assert_uint_eq(w.ready[0], life);
        pass_ms(LIFE_MS / 2);
    }
    break_dci(0, HALF / 4 * 1024);
    ck_assert_uint_eq(w.ready[0], 3);
    pass_ms(LIFE_MS);
    ck_assert_uint_eq(w.ready[0], 4);
    pass_ms(LIFE_MS); /* of none before is anything under way any more */
    break_dci(0, HALF / 2 * 1024);
    ck_assert_uint_eq(w.ready[0], 5);
    end();
}
END_TEST

/* ---- of whose former life nobody knows anything */

/* The process before this one may have had them, an instant ago. */
START_TEST(those_of_a_start_rest_before_they_are_used)
{
    const struct fault_plan plan = {.seed = 1, .packet_life_ns = LIFE_NS, .numbers_return = true};
    struct base_errbuf err;
    begin(&plan);
    for (uint32_t i = 0; i < DCIS; i++)
        make_dci(agent_pool_begun_ns(&w.pool));
    pass_ms(100); /* whatever else a start takes */
    w.pool.device.rest_until_ns = agent_dcis_rest_ns(&w.pool);
    ck_assert_uint_eq(w.pool.device.rest_until_ns, w.agent.started_ns + LIFE_NS);
    status_says(DCIS, LIFE_MS - 100);
    ck_assert_int_eq(agent_peer_setup_start(&w.pool, &err), 0);
    pass_ms(LIFE_MS - 101);
    ck_assert_uint_eq(w.ready[0] + w.ready[1], 0);
    pass_ms(1);
    ck_assert_uint_eq(w.ready[0], 1);
    ck_assert_uint_eq(w.ready[1], 1);
    for (uint32_t i = 0; i < DCIS; i++)
        ck_assert(write_once(i, 0, 8));
    end();
}
END_TEST

START_TEST(and_so_does_a_spare_that_comes_later)
{
    const struct fault_plan plan = {.seed = 1, .packet_life_ns = LIFE_NS, .numbers_return = true};
    begin(&plan);
    make_dci(agent_pool_begun_ns(&w.pool));
    pass_ms(10 * LIFE_MS);
    make_dci(0); /* another one goes, whose number it may have */
    struct fab_qp *gone = w.pool.device.dci[1].qp;
    w.pool.prewarm.spares = w.pool.device.max_spares = 1;
    agent_peer_setup_spare_dropped(&w.pool, gone);
    settle_device();
    w.pool.prewarm.desired.numbers.spares = 1;
    agent_peer_setup_spare(&w.pool, true);
    settle_device();
    ck_assert_uint_eq(w.pool.device.dcis, 2);
    pass_ms(LIFE_MS - 1);
    ck_assert_uint_eq(w.ready[1], 0);
    pass_ms(1);
    ck_assert_uint_eq(w.ready[1], 1);
    ck_assert(write_once(1, 0, 8));
    end();
}
END_TEST

START_TEST(a_spare_that_goes_is_destroyed_though_the_device_refuses_that_at_first)
{
    const struct fault_plan well = {.seed = 1}, ill = {.seed = 1, .destroy_error_ppm = 1000000};
    begin(&well);
    w.pool.prewarm.dcis = w.pool.device.max_spares = 1;
    make_dci(0);
    make_dci(0);
    fault_set_plan(w.fab, &ill);
    agent_peer_setup_spare_dropped(&w.pool, w.pool.device.dci[1].qp);
    settle_device();
    fault_set_plan(w.fab, &well);
    pass_ms(2 * REPAIR_AGAIN_MS);
    end(); /* with all that there was */
}
END_TEST

/* ---- those that the device does not bring back */

enum { ROOM = 6, BREAKS = 40 };

/* Any other breaks meanwhile, and all have come back or were replaced in the end. */
static void break_and_be_stuck(uint64_t seed, uint32_t stuck_ppm, uint32_t error_ppm)
{
    struct fault_plan plan = {
        .seed = seed, .stuck_ppm = stuck_ppm, .packet_life_ns = LIFE_NS, .numbers_return = true};
    begin(&plan);
    w.pool.prewarm.dcis = DCIS;
    w.pool.device.max_spares = ROOM - DCIS - 1;
    for (uint32_t i = 0; i <= DCIS; i++)
        make_dci(0);
    pass_ms(LIFE_MS);
    plan.control_error_ppm = error_ppm;
    fault_set_plan(w.pool.device.fab, &plan);
    for (uint32_t n = 0; n < BREAKS; n++) {
        const uint32_t number = (uint32_t)(base_prng_next(&w.random) % (DCIS + 1));
        const uint32_t ready = w.ready[number];
        break_dci(number, w.posted[number]);
        for (uint32_t s = 0; s < 20 && w.ready[number] == ready; s++)
            pass_ms(1000);
        ck_assert_msg(w.ready[number] > ready, "seed %u, break %u: none took its place",
                      (unsigned)seed, n);
        for (uint32_t i = 0; i <= DCIS; i++)
            ck_assert(write_once(i, i % TARGETS, 8));
    }
    ck_assert_uint_eq(w.gone, w.pool.repairs.replaced);
    ck_assert(stuck_ppm < 1000000 || w.gone == BREAKS);
    status_says(0, 0);
    plan.control_error_ppm = 0;
    fault_set_plan(w.pool.device.fab, &plan);
    pass_ms(2 * REPAIR_AGAIN_MS);
    ck_assert_uint_eq(w.pool.repairs.ending, 0);
    end();
}

START_TEST(one_that_the_device_does_not_bring_back_is_replaced)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        break_and_be_stuck(seed, 1000000, 0);
        break_and_be_stuck(seed, 300000, 0);
        break_and_be_stuck(seed, 300000, 100000); /* and any operation may fail, or say so */
    }
}
END_TEST

/* Whatever is still to come of one that was given up has its room in the completion queue. */
START_TEST(spares_leave_room_to_one_that_is_not_destroyed_yet)
{
    const struct fault_plan plan = {.seed = 1};
    begin(&plan);
    w.pool.prewarm.dcis = DCIS;
    w.pool.device.max_spares = ROOM - DCIS - 1;
    for (uint32_t i = 0; i <= DCIS; i++)
        make_dci(0);
    w.pool.repairs.ending = 1;
    w.pool.prewarm.desired.numbers.spares = w.pool.device.max_spares;
    agent_peer_setup_spare(&w.pool, true);
    settle_device();
    ck_assert_uint_eq(w.pool.device.dcis + w.pool.repairs.ending, ROOM);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(no_packet_of_a_former_life_is_taken_for_one_of_the_present)                                  \
    T(one_that_has_used_half_of_all_numbers_rests)                                                 \
    T(lives_that_follow_each_other_count_together)                                                 \
    T(those_of_a_start_rest_before_they_are_used)                                                  \
    T(and_so_does_a_spare_that_comes_later)                                                        \
    T(a_spare_that_goes_is_destroyed_though_the_device_refuses_that_at_first)                      \
    T(one_that_the_device_does_not_bring_back_is_replaced)                                         \
    T(spares_leave_room_to_one_that_is_not_destroyed_yet)
KEDGE_CHECK_MAIN("agent.control.dci", TESTS)
