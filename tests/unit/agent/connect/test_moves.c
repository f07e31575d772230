/* SPDX-License-Identifier: Apache-2.0 */
/* InfiniBand: what a subnet manager gives to ports anew, their LIDs and the places of their P_Keys.
 */
#include <check.h>

#include "../../check_main.h"
#include "fabric/fault.h"
#include "world.h"

/* The GID stays when a subnet manager gives a port another LID. */
START_TEST(a_peer_whose_lid_changed_is_written_to_under_that)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    connector_drop(w.node[0].c, w.node[0].event[1].qp, w.now_ns);
    world_run(&w, 20);
    const uint64_t before = stats_of(&w, 0).addresses;
    struct fab *fab = w.node[1].fab;
    fab_set_address(fab, peer_of(&w, 1).gid, fab->caps.sgid_index, 7);
    for (uint32_t tag = 2; tag < 4; tag++) {
        ask(&w, 0, 1, tag);
        ck_assert_int_eq(await(&w, 0, tag), 0);
        ck_assert_uint_eq(stats_of(&w, 0).addresses, before + 1);
    }
    world_close(&w);
}
END_TEST

/* A subnet manager moves the P_Key of all nodes to another place of their ports' tables. */
static void move_pkeys(struct world *w, uint16_t places)
{
    const struct fault_plan plan = {.seed = 1, .pkey_moved = places};
    for (uint32_t i = 0; i < w->nodes; i++) {
        struct node *n = &w->node[i];
        struct fab_ctl where = {.kind = FAB_QUERY_PKEY, .pkey.pkey = n->pd->pkey};
        fault_set_plan(n->fab, &plan);
        ck_assert_int_eq(fab_call(n->fab, &where), 0);
        ck_assert_uint_eq(where.pkey.index, 2 + places);
        fab_set_pkey_index(n->pd, where.pkey.index);
        fab_set_pkey_index(n->system_pd, where.pkey.index);
        connector_repartition(n->c, w->now_ns);
    }
}

START_TEST(when_the_p_key_moves_handshakes_and_new_connections_go_by_its_new_place)
{
    struct world w = {0};
    world_open(&w, 2);
    ask(&w, 0, 1, 1);
    ck_assert_int_eq(await(&w, 0, 1), 0);
    move_pkeys(&w, 3);
    ck_assert_int_eq(read_through(&w, 0, 1, 1), IBV_WC_RETRY_EXC_ERR);
    connector_drop(w.node[0].c, w.node[0].event[1].qp, w.now_ns);
    ask(&w, 0, 1, 2);
    ck_assert_int_eq(await(&w, 0, 2), 0);
    ck_assert_int_eq(read_through(&w, 0, 1, 2), IBV_WC_SUCCESS);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_peer_whose_lid_changed_is_written_to_under_that)                                           \
    T(when_the_p_key_moves_handshakes_and_new_connections_go_by_its_new_place)
KEDGE_CHECK_MAIN("agent.connect.moves", TESTS)
