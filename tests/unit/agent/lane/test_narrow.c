/* SPDX-License-Identifier: Apache-2.0 */
/* DC: endpoints that take shorter packets than this node's port. Whatever is posted to them goes by
 * initiators that send no longer ones, and the others go on as they are: each post is looked at,
 * with what its initiator was brought up with last. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "world_narrow.h"
#include "world_rc.h"

enum { TENANT = 7, BREAKS = 60, LONG = 200000, QPS = WORLD_DCIS + WORLD_SPARES };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
/* A worker of node 0, and on each other node an owner. */
static struct world_worker k[WORLD_NODES], owner[WORLD_NODES];
static uint32_t key[WORLD_NODES];
static struct fab_ops watched;
static const struct fab_ops *plain;
static struct {
    const struct fab_qp *qp;
    enum ibv_mtu most; /* that it has; 0: 4096 */
} raised[QPS + 1];

static enum ibv_mtu mtu_now(const struct fab_qp *qp)
{
    for (int i = 0; i <= QPS; i++)
        if (raised[i].qp == qp && raised[i].most != 0)
            return raised[i].most;
    return IBV_MTU_4096;
}

static void note_raised(struct fab_qp *qp, enum ibv_mtu most)
{
    int i = 0;
    while (i <= QPS && raised[i].qp != NULL && raised[i].qp != qp)
        i++;
    ck_assert_int_le(i, QPS);
    raised[i].qp = qp;
    raised[i].most = most;
}

static bool refuses; /* the device has no room */

/* The lane's own READs, which go by spares too, are of one packet. */
static int watch_post(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    for (const struct fab_wr *at = wr; at != NULL; at = at->next)
        for (int i = 1; i < WORLD_NODES; i++)
            if (qp->type == FAB_QP_DCI && at->dest_qpn == w->node[i].dct->dctn && world_mtu[i] != 0)
                ck_assert_msg(mtu_now(qp) <= world_mtu[i], "%u bytes in a packet, to node %d",
                              128u << mtu_now(qp), i);
    *bad = wr;
    if (refuses)
        return -ENOMEM;
    return plain->post_send(qp, wr, bad);
}

static void open_all(void)
{
    memset(raised, 0, sizeof raised);
    for (int i = 0; i < WORLD_NODES; i++)
        world_mr_lease_ns[i] = 1000000000;
    world_raised = note_raised;
    world_open(w);
    plain = w->node[0].fab->ops;
    watched = *plain;
    watched.post_send = watch_post;
    w->node[0].fab->ops = &watched;
    for (uint32_t i = 1; i < WORLD_NODES; i++) {
        world_attach(w, &owner[i], i, 0, TENANT);
        world_attach(w, &k[i], 0, i, TENANT);
        key[i] = world_register(w, &owner[i], 0, 4096, ALL);
        ck_assert_int_eq(world_connect(w, &k[i], 0, i), 0);
    }
}

static void close_all(void)
{
    for (uint32_t i = 1; i < WORLD_NODES; i++) {
        world_detach(w, &k[i]);
        world_detach(w, &owner[i]);
    }
    w->node[0].fab->ops = plain;
    world_close(w);
    world_raised = NULL;
    memset(world_mtu, 0, sizeof world_mtu);
}

static void write_to(uint32_t node)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, node, 0, 4096, key[node], 0);
    ck_assert_uint_eq(world_do(w, &k[node], d, LONG).status, IBV_WC_SUCCESS);
}

static void write_to_all(void)
{
    for (uint32_t i = 1; i < WORLD_NODES; i++)
        write_to(i);
}

/* Of those at the lane's places and its spares so many send packets of that many bytes. */
static uint32_t count_with(enum ibv_mtu mtu)
{
    const struct world_node *n = &w->node[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->res.dcis; i++)
        count += mtu_now(n->res.dci[i]) == mtu;
    for (uint32_t i = 0; i < n->res.spares; i++)
        count += mtu_now(n->res.spare[i]) == mtu;
    return count;
}

START_TEST(an_endpoint_that_takes_less_lowers_two_initiators_and_no_more)
{
    world_mtu[2] = IBV_MTU_1024;
    open_all();
    if (!w->rc) {
        write_to(1);
        ck_assert_uint_eq(count_with(IBV_MTU_4096), QPS);
        write_to(2);
        write_to_all();
        ck_assert_uint_eq(count_with(IBV_MTU_1024), 2);
        ck_assert_uint_eq(count_with(IBV_MTU_4096), QPS - 2);
        ck_assert_uint_eq(w->node[0].broken, 2);
    }
    close_all();
}
END_TEST

START_TEST(of_several_such_endpoints_what_the_smallest_takes)
{
    world_mtu[1] = IBV_MTU_2048;
    world_mtu[2] = IBV_MTU_512;
    open_all();
    if (!w->rc) {
        write_to(1);
        ck_assert_uint_eq(count_with(IBV_MTU_2048), 2);
        write_to(2);
        write_to(1);
        ck_assert_uint_eq(count_with(IBV_MTU_512), 2);
        ck_assert_uint_eq(count_with(IBV_MTU_4096), QPS - 2);
    }
    close_all();
}
END_TEST

/* Spares take the places of others, and none that is too wide; what comes back too narrow to where
 * it is wanted is brought up once more. */
START_TEST(each_keeps_its_packets_however_initiators_break)
{
    world_mtu[2] = IBV_MTU_1024;
    open_all();
    struct world_node *n = &w->node[0];
    for (uint32_t i = 0; i < BREAKS && !w->rc; i++) {
        uint64_t random;
        (void)world_fill(w, &random, sizeof random);
        struct fab_qp *qp = random % QPS < n->res.dcis ? n->res.dci[random % QPS]
                                                       : n->res.spare[random % QPS - n->res.dcis];
        const bool hold = random >> 32 & 1;
        n->no_repairs = hold;
        world_break(w, 0, qp);
        world_fatal(w, 0, qp);
        world_run(w, 2);
        write_to(1);
        n->no_repairs = false;
        if (hold) {
            const struct lane_command gone = {.kind = LANE_COMMAND_QP_GONE, .qp = qp},
                                      ready = {.kind = LANE_COMMAND_QP_READY, .ready.qp = qp};
            world_raise_dci(n->fab, qp);
            note_raised(qp, 0); /* another one, in the place of one that is gone */
            ck_assert_int_eq(lane_command(n->lane, &gone), 0);
            ck_assert_int_eq(lane_command(n->lane, &ready), 0);
        }
        write_to_all();
        world_run(w, 4);
        ck_assert_uint_eq(count_with(IBV_MTU_1024) + count_with(IBV_MTU_4096), QPS);
    }
    close_all();
}
END_TEST

START_TEST(with_one_initiator_all_have_what_the_smallest_takes)
{
    world_one_dci = true;
    world_mtu[2] = IBV_MTU_1024;
    open_all();
    write_to_all();
    write_to_all();
    if (!w->rc)
        ck_assert_int_eq(mtu_now(w->node[0].res.dci[0]), IBV_MTU_1024);
    close_all();
    world_one_dci = false;
}
END_TEST

/* What was chained there in the same pass is refused, so that nothing comes back for which the
 * initiator could be waited for. */
START_TEST(one_whose_only_requests_the_device_refuses_is_brought_up_too)
{
    world_one_dci = true;
    world_mtu[2] = IBV_MTU_1024;
    open_all();
    write_to(1);
    for (uint32_t i = 1; i < WORLD_NODES; i++) {
        const struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, i, 0, 8, key[i], 0);
        world_post(&k[i], &d);
        lane_doorbell(w->node[0].lane, k[i].id);
    }
    refuses = true;
    world_run(w, 1);
    refuses = false;
    for (uint32_t i = 1; i < WORLD_NODES; i++)
        ck_assert_uint_eq(world_done(w, &k[i], LONG).status, IBV_WC_SUCCESS);
    close_all();
    world_one_dci = false;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_endpoint_that_takes_less_lowers_two_initiators_and_no_more)                               \
    T(of_several_such_endpoints_what_the_smallest_takes)                                           \
    T(each_keeps_its_packets_however_initiators_break)                                             \
    T(one_whose_only_requests_the_device_refuses_is_brought_up_too)                                \
    T(with_one_initiator_all_have_what_the_smallest_takes)
KEDGE_CHECK_MAIN("agent.lane.narrow", TESTS)
