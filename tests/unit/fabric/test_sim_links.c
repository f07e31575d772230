/* SPDX-License-Identifier: Apache-2.0 */
/* What links do to packets, and what the transports make of it. */
#include "../check_main.h"
#include "sim_link.h"

enum { TIMEOUT_NS = 4096 << BED_TIMEOUT };

static const enum fab_qp_type types[] = {FAB_QP_RC, FAB_QP_DCI};

struct two {
    struct sim_net *net;
    struct bed_node a, b;
    struct bed_link l;
};

static void two_open(struct two *t, uint64_t seed, enum fab_qp_type type)
{
    t->net = sim_net_new(seed, NULL, 0);
    bed_open(&t->a, t->net, 0);
    bed_open(&t->b, t->net, 1);
    bed_link(&t->l, &t->a, &t->b, type);
}

/* The other side moves bytes slowly, so that there is time for what comes twice or in disorder. */
static void two_open_slow(struct two *t, uint64_t seed, const struct sim_hooks *hooks,
                          uint64_t piece_ns)
{
    const struct sim_device_attr slow = {.node = 1, .piece_ns = piece_ns};
    t->net = sim_net_new(seed, hooks, 0);
    bed_open(&t->a, t->net, 0);
    bed_open_with(&t->b, t->net, &slow);
    bed_link(&t->l, &t->a, &t->b, types[seed % 2]);
}

static void two_close(struct two *t)
{
    bed_unlink(&t->l);
    bed_close(&t->a);
    bed_close(&t->b);
    sim_net_free(t->net);
}

/* Lost, repeated and late packets: each atomic counts once, each WRITE is whole, each SEND arrives
 * once and in order. */
static void survive_link(uint64_t seed, enum fab_qp_type type, const struct sim_link *link)
{
    enum { N = 60, BYTES = 3000 };
    struct two t;
    struct ibv_wc wc;
    two_open(&t, seed, type);
    ck_assert_int_eq(sim_link_set(t.net, SIM_ANY_NODE, SIM_ANY_NODE, link), 0);
    for (uint64_t i = 0; i < N; i++) {
        struct fab_recv_wr recv = {.wr_id = 1000 + i}, *bad;
        ck_assert_int_eq(fab_post_srq_recv(t.b.srq, &recv, &bad), 0);
    }
    for (uint64_t i = 0; i < N; i++) {
        struct bed_request r = bed_request(&t.l, i, IBV_WR_RDMA_WRITE, 16384, 32768, BYTES);
        if (i % 3 == 0) {
            r = bed_request(&t.l, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 8 * (uint32_t)i, 0, 8);
            r.wr.compare_add = 1;
        } else if (i % 3 == 1) {
            r = bed_request(&t.l, i, IBV_WR_SEND_WITH_IMM, 0, 0, 0);
            r.wr.imm_data = (uint32_t)i;
        } else {
            memset(t.a.bytes + 16384, (int)i, BYTES);
        }
        ck_assert_int_eq(bed_post(&t.l, &r), 0);
        wc = bed_wait(&t.a);
        ck_assert_msg(wc.wr_id == i && wc.status == IBV_WC_SUCCESS, "%d at %d", (int)wc.status,
                      (int)i);
        if (i % 3 == 2)
            ck_assert(t.b.bytes[32768] == i && t.b.bytes[32768 + BYTES - 1] == i);
    }
    ck_assert_uint_eq(*(uint64_t *)(void *)t.b.bytes, N / 3);
    for (uint64_t i = 0; i < N / 3; i++) {
        ck_assert_uint_eq(*(uint64_t *)(void *)(t.a.bytes + 8 * (3 * i)), i);
        wc = bed_wait(&t.b);
        ck_assert_uint_eq(wc.imm_data, 3 * i + 1);
        ck_assert_uint_eq(wc.wr_id, 1000 + i);
    }
    while (sim_net_step(t.net))
        ;
    ck_assert_int_eq(fab_poll(t.a.cq, 1, &wc), 0);
    ck_assert_int_eq(fab_poll(t.b.cq, 1, &wc), 0);
    two_close(&t);
}

START_TEST(reliable_transports_lose_repeat_and_reorder_nothing)
{
    static const struct sim_link links[] = {
        {.delay_ns = 2000, .loss_ppm = 50000},
        {.delay_ns = 2000, .repeat_ppm = 300000},
        {.delay_ns = 2000, .late_ppm = 300000, .late_ns = 20000},
        {.delay_ns = 2000,
         .jitter_ns = 9000,
         .late_ppm = 30000,
         .late_ns = 100000,
         .loss_ppm = 20000,
         .repeat_ppm = 30000,
         .bytes_per_us = 1000}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        for (uint64_t seed = 0; seed < 20; seed++)
            survive_link(seed, types[seed % 2], &links[i]);
}
END_TEST

/* Batches, so that many are under way when one is lost: what completes is what the other side has.
 * A gap is told of, so that nothing waits for a time-out of 1 ms but the last of a batch. */
START_TEST(a_batch_survives_losses_in_its_middle)
{
    static const struct sim_link link = {.delay_ns = 2000, .loss_ppm = 30000};
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct two t;
        two_open(&t, seed, types[seed % 2]);
        ck_assert_int_eq(sim_link_set(t.net, 0, 1, &link), 0);
        for (uint32_t i = 0; i < 32; i++) {
            struct bed_request r =
                bed_request(&t.l, i, IBV_WR_ATOMIC_FETCH_AND_ADD, 8 * i, 4096, 8);
            r.wr.compare_add = 1;
            ck_assert_int_eq(bed_post(&t.l, &r), 0);
        }
        uint64_t found = 0;
        for (uint32_t i = 0; i < 32; i++) {
            const struct ibv_wc wc = bed_wait(&t.a);
            ck_assert(wc.wr_id == i && wc.status == IBV_WC_SUCCESS);
            found |= 1ull << *(uint64_t *)(void *)(t.a.bytes + 8 * i);
        }
        ck_assert_uint_eq(*(uint64_t *)(void *)(t.b.bytes + 4096), 32);
        ck_assert_uint_eq(found, 0xffffffff); /* each had a turn of its own */
        two_close(&t);
    }
}
END_TEST

static void note_sent_again(void *user, uint32_t node, const char *line)
{
    (void)node;
    *(uint32_t *)user += strstr(line, "sends again") != NULL;
}

static void post_reads(const struct two *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct bed_request r = bed_request(&t->l, i, IBV_WR_RDMA_READ, 64 * i, 64 * i, 64);
        ck_assert_int_eq(bed_post(&t->l, &r), 0);
    }
}

/* What is behind it was asked for already: each answer of that, asked for again, would have all of
 * it asked for again, and more of it each time. */
START_TEST(an_answer_that_is_lost_has_the_rest_asked_for_once)
{
    enum { N = 16 };
    static const struct sim_link link = {.delay_ns = 1000, .loss_ppm = 200000};
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t again = 0;
        struct two t;
        two_open_slow(&t, seed, &(struct sim_hooks){.user = &again, .told = note_sent_again},
                      20000);
        ck_assert_int_eq(sim_link_set(t.net, 1, 0, &link), 0);
        post_reads(&t, N);
        for (uint32_t i = 0; i < N; i++) {
            const struct ibv_wc wc = bed_wait(&t.a);
            ck_assert(wc.wr_id == i && wc.status == IBV_WC_SUCCESS);
        }
        ck_assert_uint_le(again, N);
        two_close(&t);
    }
}
END_TEST

/* Each moves in pieces, of which one is its first bytes. */
static void count_read(void *user, const struct sim_access *access)
{
    *(uint32_t *)user +=
        access->remote && access->kind == SIM_READ && (uintptr_t)access->at % 64 == 0;
}

/* Of what was asked for eight times, and nobody waits for any more, so much is done after the end:
 * what the responder had room for. */
START_TEST(a_responder_has_room_for_as_many_reads_as_it_says)
{
    enum { N = 16 };
    static const struct sim_link cut = {.cut = true};
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t reads = 0;
        struct two t;
        two_open_slow(&t, seed, &(struct sim_hooks){.user = &reads, .accessed = count_read},
                      2000000);
        ck_assert_int_eq(sim_link_set(t.net, 1, 0, &cut), 0);
        post_reads(&t, N);
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_RETRY_EXC_ERR);
        const uint32_t before = reads;
        bed_pass(t.net, 1000000000);
        ck_assert_uint_le(reads - before, N);
        two_close(&t);
    }
}
END_TEST

/* 16 READs and atomics by a requester that has so many out, to a peer with that much room, whose
 * bytes move slowly. How many succeed before one is refused, and with it the rest. */
static uint32_t ask_of(uint64_t seed, uint8_t out, uint8_t room, const struct sim_link *link)
{
    enum { N = 16 };
    const struct sim_device_attr slow = {.node = 1, .piece_ns = 20000};
    const struct bed_ways asks = {7, out, 16}, answers = {7, 16, room};
    uint32_t good = 0;
    struct two t;
    struct fab_event event;
    t.net = sim_net_new(seed, NULL, 0);
    bed_open(&t.a, t.net, 0);
    bed_open_with(&t.b, t.net, &slow);
    bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
    bed_to(t.l.qp, IBV_QPS_RESET);
    bed_to(t.l.peer, IBV_QPS_RESET);
    bed_connect_as(t.l.peer, t.a.fab->caps.gid, t.l.qp->qpn, 100, &answers);
    bed_connect_as(t.l.qp, t.b.fab->caps.gid, t.l.peer->qpn, 100, &asks);
    ck_assert_int_eq(sim_link_set(t.net, SIM_ANY_NODE, SIM_ANY_NODE, link), 0);
    for (uint32_t i = 0; i < N; i++) {
        struct bed_request r = bed_request(
            &t.l, i, i % 3 == 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 64 * i, 0, 8);
        ck_assert_int_eq(bed_post(&t.l, &r), 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        const struct ibv_wc wc = bed_wait(&t.a);
        ck_assert_uint_eq(wc.wr_id, i);
        if (wc.status == IBV_WC_SUCCESS && good == i)
            good++;
        else
            ck_assert_int_eq(wc.status, i == good ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
    }
    if (good < N) {
        ck_assert_int_eq(fab_qp_state(t.l.peer), IBV_QPS_ERR);
        ck_assert_int_eq(fab_get_event(t.b.fab, &event), 1);
        ck_assert_int_eq(event.type, IBV_EVENT_QP_REQ_ERR);
    }
    two_close(&t);
    return good;
}

/* What is asked for twice takes no room of what is new. */
START_TEST(a_responder_takes_no_more_reads_than_it_was_told_and_all_of_those)
{
    static const struct sim_link good = {.delay_ns = 2000}, bad = {.delay_ns = 2000,
                                                                   .late_ppm = 100000,
                                                                   .late_ns = 100000,
                                                                   .loss_ppm = 50000,
                                                                   .repeat_ppm = 100000};
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        ck_assert_uint_eq(ask_of(seed, 16, 0, &good), 0);
        const uint32_t taken = ask_of(seed, 16, 4, &good); /* some were over soon */
        ck_assert_uint_ge(taken, 4);
        refused += taken < 16;
        for (uint8_t room = 1; room <= 4; room++)
            ck_assert_uint_eq(ask_of(seed, room, room, &bad), 16);
    }
    ck_assert_uint_ge(refused, 90);
}
END_TEST

/* What came once is answered, whatever else comes twice between. WRITEs are few: one that comes
 * twice would have another one acknowledged too. */
START_TEST(nobody_sends_again_for_packets_that_came_twice)
{
    static const struct sim_link link = {.delay_ns = 1000, .repeat_ppm = 1000000};
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t again = 0;
        struct two t;
        two_open_slow(&t, seed, &(struct sim_hooks){.user = &again, .told = note_sent_again},
                      20000);
        ck_assert_int_eq(sim_link_set(t.net, 0, 1, &link), 0);
        for (uint32_t i = 0; i < 1000; i++)
            ck_assert_int_eq(
                bed_do(&t.l, i % 100 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 0, 8),
                IBV_WC_SUCCESS);
        ck_assert_uint_eq(again, 0);
        two_close(&t);
    }
}
END_TEST

START_TEST(a_cut_wire_ends_in_a_retry_error_and_says_so_within_its_bound)
{
    static const struct sim_link cut = {.cut = true};
    for (int i = 0; i < 4; i++) {
        struct two t;
        two_open(&t, 3, types[i % 2]);
        const bool answers = i >= 2; /* they are cut, and requests arrive */
        ck_assert_int_eq(sim_link_set(t.net, answers ? 1 : 0, answers ? 0 : 1, &cut), 0);
        const uint64_t begun = sim_net_now(t.net);
        const uint64_t bound = fab_bound_ns(&t.a.fab->caps, BED_TIMEOUT, 7);
        memset(t.a.bytes, 9, 8);
        ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 64, 8), IBV_WC_RETRY_EXC_ERR);
        ck_assert_int_eq(fab_qp_state(t.l.qp), IBV_QPS_ERR);
        ck_assert_uint_le(sim_net_now(t.net) - begun, bound);
        ck_assert_uint_eq(t.b.bytes[64], answers ? 9 : 0);
        two_close(&t);
    }
}
END_TEST

/* Some devices have a shortest time-out, whatever they are asked for. */
START_TEST(a_device_that_waits_longer_than_it_is_told_to_is_allowed_for)
{
    static const struct sim_link cut = {.cut = true};
    const struct sim_device_attr attr = {.timeout_least_ns = 64 * (4096ull << BED_TIMEOUT)};
    struct two t;
    t.net = sim_net_new(3, NULL, 0);
    bed_open_with(&t.a, t.net, &attr);
    bed_open(&t.b, t.net, 1);
    bed_link(&t.l, &t.a, &t.b, types[0]);
    ck_assert_int_eq(sim_link_set(t.net, 0, 1, &cut), 0);
    const uint64_t begun = sim_net_now(t.net);
    const struct fab_caps *caps = &t.a.fab->caps;
    ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 64, 8), IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ge(sim_net_now(t.net) - begun, 8 * attr.timeout_least_ns);
    ck_assert_uint_le(sim_net_now(t.net) - begun, fab_bound_ns(caps, BED_TIMEOUT, 7));
    ck_assert_uint_eq(fab_timeout_ns(caps, BED_TIMEOUT), attr.timeout_least_ns);
    ck_assert_uint_eq(fab_timeout_ns(caps, 31), 4 * (4096ull << 31)); /* which is longer */
    two_close(&t);
}
END_TEST

START_TEST(what_names_more_nodes_prevails)
{
    static const struct sim_link cut = {.cut = true}, open = {.delay_ns = 5000};
    struct two t;
    two_open(&t, 3, FAB_QP_RC);
    ck_assert_int_eq(sim_link_set(t.net, SIM_ANY_NODE, SIM_ANY_NODE, &cut), 0);
    ck_assert_int_eq(sim_link_set(t.net, 0, 1, &open), 0);
    ck_assert_int_eq(sim_link_set(t.net, SIM_ANY_NODE, 0, &open), 0);
    ck_assert(sim_link_get(t.net, 1, 2).cut);
    ck_assert(!sim_link_get(t.net, 0, 1).cut);
    const uint64_t begun = sim_net_now(t.net);
    ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_READ, 0, 0, 64), IBV_WC_SUCCESS);
    ck_assert_uint_ge(sim_net_now(t.net) - begun, 10000);
    two_close(&t);
}
END_TEST

/* Datagrams are lost, come twice and overtake each other. */
START_TEST(datagrams_have_no_guarantee)
{
    static const struct sim_link link = {.delay_ns = 2000,
                                         .late_ppm = 200000,
                                         .late_ns = 50000,
                                         .loss_ppm = 200000,
                                         .repeat_ppm = 200000};
    uint32_t times[200] = {0}, lost = 0, twice = 0, late = 0, last = 0;
    struct two t;
    struct ibv_wc wc;
    two_open(&t, 5, FAB_QP_UD);
    struct fab_qp *to = bed_qp(&t.b, FAB_QP_UD);
    bed_connect(to, NULL, 0, 0);
    ck_assert_int_eq(sim_link_set(t.net, 0, 1, &link), 0);
    for (uint32_t i = 0; i < 200; i++) {
        struct ibv_sge in = {.addr = t.b.mr->addr, .length = 4096, .lkey = t.b.mr->lkey};
        for (int twofold = 0; twofold < 2; twofold++) {
            struct fab_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *none;
            (void)fab_post_srq_recv(t.b.srq, &recv, &none);
        }
        struct bed_request r = bed_request(&t.l, i, IBV_WR_SEND_WITH_IMM, 0, 0, 8);
        r.wr.imm_data = i;
        r.wr.dest_qpn = to->qpn;
        r.wr.qkey = 0x1234;
        ck_assert_int_eq(bed_post(&t.l, &r), 0);
        ck_assert_int_eq(bed_wait(&t.a).status, IBV_WC_SUCCESS); /* that it was sent */
        while (fab_poll(t.b.cq, 1, &wc) == 1) {
            times[wc.imm_data]++;
            late += wc.imm_data < last;
            last = wc.imm_data;
        }
    }
    while (sim_net_step(t.net))
        ;
    while (fab_poll(t.b.cq, 1, &wc) == 1)
        times[wc.imm_data]++;
    for (uint32_t i = 0; i < 200; i++) {
        lost += times[i] == 0;
        twice += times[i] == 2;
    }
    ck_assert(lost > 10 && lost < 100 && twice > 10 && late > 5);
    bed_free(&t.b, FAB_DESTROY_QP, to);
    two_close(&t);
}
END_TEST

/* A queue pair that lives again takes a packet of its former life for its own, if it has its
 * number: whoever does not wait for caps.time_wait_ns learns of it here. */
static uint32_t meet_former_life(uint64_t rest_ns)
{
    static const struct sim_link twice = {.delay_ns = 2000, .repeat_ppm = 1000000};
    uint32_t met = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct two t;
        two_open(&t, seed, FAB_QP_RC);
        ck_assert_int_eq(sim_link_set(t.net, 0, 1, &twice), 0);
        memset(t.a.bytes, 1, 8);
        ck_assert_int_eq(bed_do(&t.l, IBV_WR_RDMA_WRITE, 0, 64, 8), IBV_WC_SUCCESS);
        bed_to(t.l.qp, IBV_QPS_RESET);
        bed_to(t.l.peer, IBV_QPS_RESET);
        bed_pass(t.net, rest_ns);
        bed_link_up(&t.l, 100);
        memset(t.b.bytes + 64, 2, 8);
        while (sim_net_step(t.net))
            ;
        met += t.b.bytes[64] == 1;
        two_close(&t);
    }
    return met;
}

START_TEST(packets_of_a_former_life_come_in_for_the_time_wait)
{
    ck_assert_uint_gt(meet_former_life(0), 5);
    ck_assert_uint_eq(meet_former_life(100000000), 0); /* twice the life of a packet */
}
END_TEST

/* Nothing is tried again by its number, and answers are lost. How often that fails a READ before
 * its time-out, of 400 times: an answer behind one that is missing ends the READ that it is missing
 * of, and not what is before that, which was executed and is known to be. */
static uint32_t fail_by_implied(enum sim_implied implied, uint32_t *again)
{
    static const struct sim_link bad = {.delay_ns = 2000, .loss_ppm = 300000};
    static const struct bed_ways once = {0, 16, 16};
    const struct sim_device_attr attr = {.implied = implied};
    const struct sim_hooks hooks = {.user = again, .told = note_sent_again};
    uint32_t failures = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                     IBV_WR_RDMA_WRITE};
        struct two t = {.net = sim_net_new(seed, &hooks, 0)};
        bed_open_with(&t.a, t.net, &attr);
        bed_open(&t.b, t.net, 1);
        bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
        bed_to(t.l.qp, IBV_QPS_RESET);
        bed_connect_as(t.l.qp, t.b.fab->caps.gid, t.l.peer->qpn, 100, &once);
        ck_assert_int_eq(sim_link_set(t.net, 1, 0, &bad), 0);
        const uint64_t begun_ns = sim_net_now(t.net);
        for (uint32_t i = 0; i < 3; i++) {
            struct bed_request r = bed_request(&t.l, i, opcodes[i], 512 * i, 512 * i, 64);
            ck_assert_int_eq(bed_post(&t.l, &r), 0);
        }
        for (uint32_t i = 0; i < 3; i++) {
            const struct ibv_wc wc = bed_wait(&t.a);
            const bool failed =
                wc.status == IBV_WC_RETRY_EXC_ERR && sim_net_now(t.net) - begun_ns < TIMEOUT_NS;
            ck_assert_uint_eq(wc.wr_id, i);
            ck_assert_msg(!failed || i == 1, "seed %d: request %u", (int)seed, i);
            failures += failed;
        }
        two_close(&t);
    }
    return failures;
}

START_TEST(an_implied_nak_is_a_try_or_none_as_the_device_has_it)
{
    uint32_t again = 0;
    const uint32_t counted = fail_by_implied(SIM_IMPLIED_COUNTS, &again);
    ck_assert_uint_gt(counted, 20);
    ck_assert_uint_eq(again, 0);
    ck_assert_uint_eq(fail_by_implied(SIM_IMPLIED_FREE, &again), 0);
    ck_assert_uint_gt(again, 20);
    const uint32_t some = fail_by_implied(SIM_IMPLIED_BY_SEED, &again);
    ck_assert(some > counted / 4 && some < counted);
}
END_TEST

/* A READ whose answers are lost while WRITEs behind it go on: each answer to one of those, on such
 * a device, has it asked for again, and none is a try. */
START_TEST(implied_naks_that_are_no_tries_have_no_end)
{
    enum { TRIES = 1, WRITES = 2000 };
    static const struct sim_link bad = {.delay_ns = 2000, .loss_ppm = 950000};
    static const struct bed_ways few = {TRIES, 16, 16};
    const struct sim_device_attr attr = {.implied = SIM_IMPLIED_FREE};
    uint32_t most = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint32_t again = 0;
        const struct sim_hooks hooks = {.user = &again, .told = note_sent_again};
        struct two t = {.net = sim_net_new(seed, &hooks, 0)};
        bed_open_with(&t.a, t.net, &attr);
        bed_open(&t.b, t.net, 1);
        bed_link(&t.l, &t.a, &t.b, FAB_QP_RC);
        bed_to(t.l.qp, IBV_QPS_RESET);
        bed_connect_as(t.l.qp, t.b.fab->caps.gid, t.l.peer->qpn, 100, &few);
        ck_assert_int_eq(sim_link_set(t.net, 1, 0, &bad), 0);
        post_reads(&t, 1);
        for (uint32_t i = 0; i < WRITES && fab_qp_state(t.l.qp) == IBV_QPS_RTS; i++) {
            struct bed_request r = bed_request(&t.l, i, IBV_WR_RDMA_WRITE, 512, 512, 8);
            if (bed_post(&t.l, &r) != 0)
                break;
            bed_pass(t.net, 20000);
        }
        most = again > most ? again : most;
        two_close(&t);
    }
    ck_assert_uint_gt(most, 3 * (TRIES + 1));
}
END_TEST

struct watch {
    bool err;
    uint32_t late, all; /* writes to memory of the requester's: behind the end of its queue pair */
};

static void see_own_memory(void *user, const struct sim_access *x)
{
    struct watch *w = user;
    w->all += x->node == 0 && !x->remote && x->kind == SIM_WRITE;
    w->late += w->err && x->node == 0 && !x->remote && x->kind == SIM_WRITE;
}

/* READs are out, and the queue pair goes to ERR: what is on its way may go to memory until they are
 * flushed, and nothing does afterwards. */
START_TEST(memory_of_a_request_is_the_devices_until_it_is_flushed)
{
    enum { N = 8, BYTES = 4096 };
    uint32_t late = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct watch w = {0};
        const struct sim_hooks hooks = {.user = &w, .accessed = see_own_memory};
        struct two t;
        two_open_slow(&t, seed, &hooks, 0);
        for (uint32_t i = 0; i < N; i++) {
            struct bed_request r =
                bed_request(&t.l, i, IBV_WR_RDMA_READ, BYTES * i, BYTES * i, BYTES);
            ck_assert_int_eq(bed_post(&t.l, &r), 0);
        }
        bed_pass(t.net, 3000 + seed * 20);
        bed_to(t.l.qp, IBV_QPS_ERR);
        w.err = true;
        for (uint32_t i = 0; i < N; i++) {
            const struct ibv_wc wc = bed_wait(&t.a);
            ck_assert_uint_eq(wc.wr_id, i);
            ck_assert(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        }
        const uint32_t until_now = w.all;
        late += w.late;
        while (sim_net_step(t.net))
            ;
        ck_assert_uint_eq(w.all, until_now);
        two_close(&t);
    }
    ck_assert_uint_gt(late, 20);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(reliable_transports_lose_repeat_and_reorder_nothing)                                         \
    T(a_batch_survives_losses_in_its_middle)                                                       \
    T(an_answer_that_is_lost_has_the_rest_asked_for_once)                                          \
    T(a_responder_has_room_for_as_many_reads_as_it_says)                                           \
    T(a_responder_takes_no_more_reads_than_it_was_told_and_all_of_those)                           \
    T(nobody_sends_again_for_packets_that_came_twice)                                              \
    T(a_cut_wire_ends_in_a_retry_error_and_says_so_within_its_bound)                               \
    T(a_device_that_waits_longer_than_it_is_told_to_is_allowed_for)                                \
    T(what_names_more_nodes_prevails)                                                              \
    T(datagrams_have_no_guarantee)                                                                 \
    T(packets_of_a_former_life_come_in_for_the_time_wait)                                          \
    T(an_implied_nak_is_a_try_or_none_as_the_device_has_it)                                        \
    T(implied_naks_that_are_no_tries_have_no_end)                                                  \
    T(memory_of_a_request_is_the_devices_until_it_is_flushed)

KEDGE_CHECK_MAIN("fabric.sim_links", TESTS)
