/* SPDX-License-Identifier: Apache-2.0 */
/* DC in the verbs provider, on a stand-in: finding out that there is DC, DCIs and DCTs, and what
 * queue pairs of all types have in common there. */
#include "../check_main.h"
#include "dc_bed.h"

/* Every operation of fabric.h: SEND and WRITE with and without immediate, READ, the two atomics. */
#define OPS "ops=7f"
#define DCI_UP                                                                                     \
    "dci INIT port=2 pkey=0 access=0\n"                                                            \
    "dci RTR mtu=5 sl=0 tclass=0 label=0\n"
#define DCT_UP(access)                                                                             \
    "dct INIT port=2 pkey=0 access=" access "\n"                                                   \
    "dct RTR mtu=5 rnr=12 global=1 port=2 dlid=0 sgid=3 hops=64 dgid=fd..17 "                      \
    "sl=0 tclass=0 label=0\n"

/* ---- the probe */

START_TEST(a_device_is_asked_for_dc_by_doing_it_and_leaves_nothing_behind)
{
    struct dc_bed b;
    dc_bed_open(&b);
    verbs_dc_probe(b.f);
    expect_trace("create dci " OPS " wr=1 sge=1 inline=512 streams=0/0\n"
                 "create dci " OPS " wr=1 sge=1 inline=256 streams=0/0\n" DCI_UP
                 "dci RTS timeout=14 retry=7 rnr=7 reads=16\n"
                 "create dct key=1\n" DCT_UP("6") "destroy dct\n"
                                                  "destroy dci\n");
    ck_assert_uint_eq(b.f->base.caps.transports, FAB_RC | FAB_UD | FAB_DC);
    ck_assert_uint_eq(b.f->base.caps.max_inline, 256); /* what RC and DC both can */
    ck_assert_uint_eq(b.f->base.caps.max_rd_atomic, 16);
    ck_assert_uint_eq(b.f->base.caps.max_sge, 27); /* of 30, less a READ's address vector */
    ck_assert(!b.f->base.caps.dci_streams);
    ck_assert_str_eq(b.f->base.caps.dc_why, "");
    dc_bed_close(&b);
}
END_TEST

START_TEST(streams_that_nobody_asked_for_are_not_used)
{
    struct dc_bed b;
    dc_bed_open(&b);
    fake.log_streams = 6;
    fake.max_inline = 512;
    verbs_dc_probe(b.f);
    ck_assert_ptr_nonnull(strstr(fake.trace, "streams=0/0\n"));
    ck_assert(!b.f->base.caps.dci_streams);
    dc_bed_close(&b);
}
END_TEST

START_TEST(streams_that_are_asked_for_are_used_where_they_are_offered)
{
    struct dc_bed b;
    dc_bed_open(&b);
    fake.log_streams = 6;
    b.f->dc.wanted_streams = 31;
    fake.max_inline = 512;
    verbs_dc_probe(b.f);
    ck_assert_ptr_nonnull(strstr(fake.trace, "streams=4/0\n"));
    ck_assert(b.f->base.caps.dci_streams);
    ck_assert_int_eq(fake.wrong, 0);
    dc_bed_close(&b);
}
END_TEST

START_TEST(streams_that_are_offered_but_refused_are_done_without)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.max_inline = 0;
    fake.log_streams = 2;
    b.f->dc.wanted_streams = 16;
    fake.refused = "create dci " OPS " wr=1 sge=1 inline=0 streams=2/0";
    fake.refused_errno = EOPNOTSUPP;
    verbs_dc_probe(b.f);
    ck_assert_ptr_nonnull(strstr(fake.trace, "inline=0 streams=0/0\ndci INIT"));
    ck_assert(b.f->base.caps.transports & FAB_DC);
    ck_assert(!b.f->base.caps.dci_streams);
    dc_bed_close(&b);
}
END_TEST

START_TEST(fewer_outstanding_reads_than_rc_has_are_found_out)
{
    struct dc_bed b;
    dc_bed_open(&b);
    fake.max_rd_atomic = 4;
    verbs_dc_probe(b.f);
    ck_assert_ptr_nonnull(strstr(fake.trace, "reads=16\ndci RTS timeout=14 retry=7 rnr=7 reads=8\n"
                                             "dci RTS timeout=14 retry=7 rnr=7 reads=4\ncreate"));
    ck_assert_uint_eq(b.f->base.caps.max_rd_atomic, 4);
    dc_bed_close(&b);
}
END_TEST

/* The agent's target is what the one of the probe is: it is not there that atomics are refused.
 * Where targets have none and connected queue pairs do, there is DC without. */
START_TEST(a_target_allows_the_atomics_that_there_are)
{
    for (int i = 0; i < 3; i++) {
        struct dc_bed b;
        dc_bed_open(&b);
        fake.no_atomics = i != 1;
        b.f->base.caps.atomics = i != 0;
        verbs_dc_probe(b.f);
        const char *with = strstr(fake.trace, "dct INIT port=2 pkey=0 access=e\n"),
                   *without = strstr(fake.trace, "dct INIT port=2 pkey=0 access=6\n");
        ck_assert_int_eq(with != NULL, i != 0);
        ck_assert_int_eq(without != NULL, i != 1);
        ck_assert(i != 2 || with < without);
        ck_assert(b.f->base.caps.transports & FAB_DC);
        ck_assert_int_eq(b.f->base.caps.atomics, i != 0);
        ck_assert_int_eq(b.f->base.caps.dc_atomics, i == 1);
        ck_assert_uint_eq(fab_target_access(&b.f->base) & IBV_ACCESS_REMOTE_ATOMIC,
                          i == 1 ? IBV_ACCESS_REMOTE_ATOMIC : 0);
        ck_assert_str_eq(b.f->base.caps.dc_why, "");
        ck_assert_int_eq(fake.wrong, 0);
        dc_bed_close(&b);
    }
}
END_TEST

START_TEST(the_service_is_in_every_address_and_queue_pair_and_in_the_target)
{
    struct dc_bed b;
    struct fake_qp rc = {.ex.qp_base.state = IBV_QPS_INIT};
    struct verbs_qp q = {.base = {.pd = &b.vpd.base, .type = FAB_QP_RC, .qpn = 0x1234},
                         .qp = &rc.ex.qp_base};
    const uint8_t gid[16] = {0xfd, [15] = 1};
    dc_bed_open(&b);
    b.f->base.caps.service = (struct fab_service){
        .service_level = 3, .traffic_class = 104, .flow_label = 77, .pkey_index = 2};
    verbs_dc_probe(b.f);
    ck_assert(b.f->base.caps.transports & FAB_DC);
    ck_assert_ptr_nonnull(strstr(fake.trace, "dci INIT port=2 pkey=2 access=0\n"
                                             "dci RTR mtu=5 sl=3 tclass=104 label=77\n"));
    ck_assert_ptr_nonnull(strstr(fake.trace, "dct INIT port=2 pkey=2 access=6\n"));
    ck_assert_ptr_nonnull(strstr(fake.trace, "dgid=fd..17 sl=3 tclass=104 label=77\n"));
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR, .dest_qp_num = 0x4321, .ah_attr = fab_address(&b.f->base, gid, 0)};
    ck_assert_int_eq(dc_bed_move(&b, &q.base, rtr, IBV_QP_AV | IBV_QP_DEST_QPN), 0);
    ck_assert_uint_eq(fake.last.ah_attr.sl, 3);
    ck_assert_uint_eq(fake.last.ah_attr.grh.traffic_class, 104);
    ck_assert_uint_eq(fake.last.ah_attr.grh.flow_label, 77);
    ck_assert_int_eq(fake.wrong, 0);
    dc_bed_close(&b);
}
END_TEST

START_TEST(connections_without_a_flow_label_get_one_each_on_ethernet_alone)
{
    struct dc_bed b;
    struct fake_qp rc = {.ex.qp_base.state = IBV_QPS_INIT};
    struct verbs_qp q = {.base = {.pd = &b.vpd.base, .type = FAB_QP_RC, .qpn = 0x1234},
                         .qp = &rc.ex.qp_base};
    const uint8_t gid[16] = {0xfd, [15] = 1};
    dc_bed_open(&b);
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR, .dest_qp_num = 0x4321, .ah_attr = fab_address(&b.f->base, gid, 9)};
    ck_assert_int_eq(dc_bed_move(&b, &q.base, rtr, IBV_QP_AV | IBV_QP_DEST_QPN), 0);
    uint32_t first = fake.last.ah_attr.grh.flow_label;
    ck_assert(first != 0 && first <= 0xfffff);
    rtr.dest_qp_num++;
    ck_assert_int_eq(dc_bed_move(&b, &q.base, rtr, IBV_QP_AV | IBV_QP_DEST_QPN), 0);
    ck_assert_uint_ne(fake.last.ah_attr.grh.flow_label, first);
    b.f->base.caps.is_ethernet = false;
    ck_assert_int_eq(dc_bed_move(&b, &q.base, rtr, IBV_QP_AV | IBV_QP_DEST_QPN), 0);
    ck_assert_uint_eq(fake.last.ah_attr.grh.flow_label, 0);
    dc_bed_close(&b);
}
END_TEST

START_TEST(an_old_kernel_takes_no_address_of_a_dci_which_has_no_service_level_then)
{
    struct dc_bed b;
    dc_bed_open(&b);
    fake.old_kernel = true;
    verbs_dc_probe(b.f);
    ck_assert(b.f->base.caps.transports & FAB_DC);
    ck_assert_ptr_nonnull(strstr(fake.trace, "dci RTR mtu=5\n"));
    struct fab_qp *qp = dc_bed_dci(&b, 4);
    dc_bed_bring_up(&b, qp);
    b.vpd.base.service.service_level = 3; /* a pool's own: refused as any that a device lacks */
    ck_assert_int_eq(dc_bed_move(&b, qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0), 0);
    ck_assert_int_eq(
        dc_bed_move(&b, qp, fab_init_attr(&b.f->base), IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
    ck_assert_int_eq(
        dc_bed_move(&b, qp,
                    (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = b.f->base.caps.mtu},
                    IBV_QP_PATH_MTU),
        -EINVAL);
    dc_bed_free_dci(&b, qp);
    dc_bed_close(&b);
    dc_bed_open(&b);
    fake.old_kernel = true;
    b.f->base.caps.service.service_level = 3;
    verbs_dc_probe(b.f);
    ck_assert(!(b.f->base.caps.transports & FAB_DC));
    ck_assert_str_eq(b.f->base.caps.dc_why, "the device refuses to move a DCI to RTR with a "
                                            "service level: Invalid argument");
    dc_bed_close(&b);
}
END_TEST

START_TEST(a_flow_label_leads_to_the_udp_port_that_was_asked_for)
{
    for (uint32_t port = 0xc000; port <= 0xffff; port++) {
        uint32_t label = fab_flow_label((uint16_t)port);
        ck_assert(label != 0 && label <= 0xfffff);
        /* As rdma-core's and the kernel's rdma_flow_label_to_udp_sport() make it. */
        ck_assert_uint_eq(0xc000 | ((label & 0x3fff) ^ (label >> 14)), port);
    }
}
END_TEST

START_TEST(a_device_that_is_no_mlx5_has_no_dc_and_says_so)
{
    struct dc_bed b;
    dc_bed_open(&b);
    fake.mlx5 = false;
    verbs_dc_probe(b.f);
    expect_trace("");
    ck_assert(!(b.f->base.caps.transports & FAB_DC));
    ck_assert_ptr_nonnull(strstr(b.f->base.caps.dc_why, "no mlx5 device"));
    ck_assert_uint_eq(b.f->base.caps.max_inline, 512);
    dc_bed_close(&b);
}
END_TEST

START_TEST(whatever_step_is_refused_there_is_no_dc_and_the_step_is_named)
{
    static const struct {
        const char *call;
        int status;
        const char *why;
    } steps[] = {
        {"create dci", EOPNOTSUPP, "the device refuses to create a DCI: Operation not supported"},
        {"dci INIT", EINVAL, "the device refuses to move a DCI to INIT: Invalid argument"},
        {"dci RTR", EINVAL, "the device refuses to move a DCI to RTR: Invalid argument"},
        {"dci RTS", EINVAL, "the device refuses to move a DCI to RTS: Invalid argument"},
        {"create dct", EOPNOTSUPP,
         "the device refuses to create a DCT, or to move it to RTR: Operation not supported"},
        {"dct INIT", EPERM,
         "the device refuses to create a DCT, or to move it to RTR: Operation not permitted"},
        {"dct RTR", ENOMEM,
         "the device refuses to create a DCT, or to move it to RTR: Cannot allocate memory"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct dc_bed b;
        dc_bed_open(&b);
        fake.refused = steps[i].call;
        fake.refused_errno = steps[i].status;
        fake.log_streams = 3;
        b.f->dc.wanted_streams = 16;
        verbs_dc_probe(b.f);
        ck_assert_str_eq(b.f->base.caps.dc_why, steps[i].why);
        ck_assert_uint_eq(b.f->base.caps.transports, FAB_RC | FAB_UD);
        ck_assert(!b.f->base.caps.dci_streams);
        ck_assert_int_eq(fake.wrong, 0);
        dc_bed_close(&b); /* which sees that nothing is left */
    }
}
END_TEST

START_TEST(without_dc_neither_a_dci_nor_a_dct_is_made)
{
    struct dc_bed b;
    dc_bed_open(&b);
    struct fab_ctl dci = {.kind = FAB_CREATE_QP, .qp = {.type = FAB_QP_DCI}};
    struct fab_ctl dct = {.kind = FAB_CREATE_DCT};
    ck_assert_int_eq(verbs_qp_create(b.f, &dci), -EOPNOTSUPP);
    ck_assert_int_eq(verbs_dct_create(b.f, &dct), -EOPNOTSUPP);
    expect_trace("");
    dc_bed_close(&b);
}
END_TEST

START_TEST(libmlx5_is_found_where_it_is_installed_and_missed_in_a_sentence)
{
    struct verbs_dc dc = {.library = NULL};
    char why[128] = "";
    verbs_calls_init(&dc);
    ck_assert_ptr_null(dc.calls.dv_create_qp);
    if (verbs_dc_load(&dc, why, sizeof why) == 0) {
        ck_assert_ptr_nonnull(dc.calls.dv_is_supported);
        ck_assert_ptr_nonnull(dc.calls.dv_query_device);
        ck_assert_ptr_nonnull(dc.calls.dv_create_qp);
        ck_assert_ptr_nonnull(dc.calls.dv_qp_ex);
        ck_assert_str_eq(why, "");
    } else {
        ck_assert_ptr_nonnull(strstr(why, "libmlx5.so.1"));
    }
    verbs_dc_unload(&dc);
    ck_assert_ptr_null(dc.library);
}
END_TEST

/* ---- DCIs and DCTs */

START_TEST(a_dci_is_made_brought_up_and_freed)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.transports |= FAB_DC;
    struct fab_qp *qp = dc_bed_dci(&b, 16);
    ck_assert_uint_eq(qp->qpn, 101);
    ck_assert_uint_eq(qp->cap.send_wr, 16);
    ck_assert_int_eq(verbs_qp_state(qp), IBV_QPS_RESET);
    dc_bed_bring_up(&b, qp);
    ck_assert_int_eq(verbs_qp_state(qp), IBV_QPS_RTS);
    ck_assert_uint_eq(atomic_load(&b.vpd.users), 1);
    ck_assert_uint_eq(atomic_load(&b.vcq.users), 2);
    dc_bed_free_dci(&b, qp);
    expect_trace("create dci " OPS " wr=16 sge=4 inline=64 streams=0/0\n"
                 "dci RESET\n" DCI_UP "dci RTS timeout=14 retry=7 rnr=7 reads=8\n"
                 "destroy dci\n");
    dc_bed_close(&b);
}
END_TEST

START_TEST(a_dct_has_its_number_when_it_is_made_and_keeps_its_parents)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.transports |= FAB_DC;
    struct fab_ctl ctl = {.kind = FAB_CREATE_DCT,
                          .dct = {.pd = &b.vpd.base,
                                  .cq = &b.vcq.base,
                                  .srq = &b.vsrq.base,
                                  .dc_key = 0x1122334455667788,
                                  .access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE}};
    ck_assert_int_eq(dc_bed_make_dct(&b, &ctl), 0);
    ck_assert_uint_eq(ctl.dct.x->dctn, 101);
    ck_assert_uint_eq(ctl.dct.x->dc_key, 0x1122334455667788);
    struct fab_ctl srq = {.kind = FAB_DESTROY_SRQ, .srq = {.x = &b.vsrq.base}};
    struct fab_ctl cq = {.kind = FAB_DESTROY_CQ, .cq = {.x = &b.vcq.base}};
    struct fab_ctl pd = {.kind = FAB_FREE_PD, .pd = {.x = &b.vpd.base}};
    ck_assert_int_eq(verbs_srq_destroy(b.f, &srq), -EBUSY);
    ck_assert_int_eq(verbs_cq_destroy(b.f, &cq), -EBUSY);
    ck_assert_int_eq(verbs_pd_free(&pd), -EBUSY);
    ctl.kind = FAB_DESTROY_DCT;
    ck_assert_int_eq(verbs_dct_destroy(b.f, &ctl), 0);
    free(ctl.dct.x);
    expect_trace("create dct key=1122334455667788\n" DCT_UP("6") "destroy dct\n");
    dc_bed_close(&b);
}
END_TEST

/* The control thread writes the new one while a worker carries out what was submitted before. */
START_TEST(an_operation_has_the_address_and_the_pkey_of_when_it_was_submitted)
{
    struct dc_bed b;
    dc_bed_open(&b);
    struct fab_caps *caps = &b.f->base.caps;
    const struct fab_caps before = *caps;
    caps->transports |= FAB_DC;
    struct fab_ctl rtr = {.kind = FAB_MODIFY_QP,
                          .modify = {.attr = {.qp_state = IBV_QPS_RTR, .path_mtu = caps->mtu},
                                     .mask = IBV_QP_STATE | IBV_QP_PATH_MTU}};
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = &b.vpd.base, .cq = &b.vcq.base, .srq = &b.vsrq.base, .dc_key = 1}};
    struct fab_qp *qp = rtr.modify.x = dc_bed_dci(&b, 4);
    ck_assert_int_eq(
        dc_bed_move(&b, qp, fab_init_attr(&b.f->base), IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
    verbs_own_address(&rtr);
    verbs_own_address(&dct);
    memset(caps->gid, 0xee, sizeof caps->gid / 2);
    fab_set_pkey_index(dct.dct.pd, 5);
    ck_assert_int_eq(verbs_qp_modify(b.f, &rtr), 0);
    ck_assert_mem_eq(fake.last.ah_attr.grh.dgid.raw, before.gid, sizeof before.gid);
    ck_assert_int_eq(verbs_dct_create(b.f, &dct), 0);
    ck_assert_mem_eq(fake.last.ah_attr.grh.dgid.raw, before.gid, sizeof before.gid);
    ck_assert_ptr_nonnull(strstr(fake.trace, "dct INIT port=2 pkey=0 "));
    fab_set_address(&b.f->base, (const uint8_t[16]){0xfd, [15] = 2}, 9, 0);
    verbs_own_address(&rtr);
    ck_assert_uint_eq(rtr.modify.attr.ah_attr.grh.sgid_index, 9);
    ck_assert_uint_eq(rtr.modify.attr.ah_attr.grh.dgid.raw[15], 2);
    ck_assert_int_eq(fake.wrong, 0);
    struct verbs_dct *made = (struct verbs_dct *)dct.dct.x;
    ck_assert_int_eq(verbs_dct_destroy(b.f, &dct), 0);
    free(made); /* the pool's, otherwise */
    dc_bed_free_dci(&b, qp);
    dc_bed_close(&b);
}
END_TEST

START_TEST(a_dct_without_an_srq_is_refused_and_one_that_fails_leaves_nothing)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.transports |= FAB_DC;
    struct fab_ctl ctl = {.kind = FAB_CREATE_DCT, .dct = {.pd = &b.vpd.base, .cq = &b.vcq.base}};
    ck_assert_int_eq(dc_bed_make_dct(&b, &ctl), -EINVAL);
    expect_trace("");
    ctl.dct.srq = &b.vsrq.base;
    fake.refused = "dct RTR";
    fake.refused_errno = ENOSPC;
    ck_assert_int_eq(dc_bed_make_dct(&b, &ctl), -ENOSPC);
    ck_assert_ptr_null(ctl.dct.x);
    dc_bed_close(&b);
}
END_TEST

/* ---- what all queue pairs have in common */

START_TEST(on_infiniband_the_lid_goes_along_and_must_be_there)
{
    struct dc_bed b;
    struct fake_qp rc = {.ex.qp_base.state = IBV_QPS_INIT};
    struct verbs_qp q = {.base = {.pd = &b.vpd.base, .type = FAB_QP_RC}, .qp = &rc.ex.qp_base};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .ah_attr = {.dlid = 0x1234, .port_num = 2}};
    struct fab_ctl none = {.kind = FAB_CREATE_AH,
                           .ah = {.pd = &b.vpd.base, .attr = {.is_global = 1}}};
    dc_bed_open(&b);
    b.f->base.caps.is_ethernet = false;
    b.f->base.caps.lid = 9;
    ck_assert_int_eq(dc_bed_move(&b, &q.base, attr, IBV_QP_AV), 0);
    ck_assert_uint_eq(fake.last.ah_attr.dlid, 0x1234);
    ck_assert_uint_eq(fake.last.ah_attr.port_num, 2);
    attr.ah_attr.dlid = 0;
    ck_assert_int_eq(dc_bed_move(&b, &q.base, attr, IBV_QP_AV), -EINVAL);
    ck_assert_int_eq(dc_bed_move(&b, &q.base, attr, IBV_QP_PATH_MTU), 0); /* it names nobody */
    dc_bed_free_ah(&b, dc_bed_ah(&b, 1));
    ck_assert_uint_eq(fake.last_ah.dlid, 7);
    ck_assert_int_eq(verbs_ah_create(b.f, &none), -EINVAL);
    b.f->base.caps.is_ethernet = true;
    ck_assert_int_eq(dc_bed_move(&b, &q.base, attr, IBV_QP_AV), 0);
    dc_bed_close(&b);
}
END_TEST

/* Every port's table has the default, which is a member of all. */
static void find_pkey(struct dc_bed *b, uint16_t pkey, int index)
{
    struct fab_ctl ctl = {.kind = FAB_QUERY_PKEY, .pkey.pkey = pkey};
    ck_assert_int_eq(verbs_pkey_query(b->f, &ctl), 0);
    ck_assert_int_eq(ctl.pkey.there, index >= 0);
    ck_assert(index < 0 || ctl.pkey.index == index);
}

START_TEST(a_p_key_is_found_by_its_number_and_a_full_membership_first)
{
    struct dc_bed b;
    dc_bed_open(&b);
    static const uint16_t table[] = {0xffff, 0x0007, 0, 0x8007, 0x0009};
    memcpy(fake_pkeys.at, table, sizeof table);
    fake_pkeys.count = 5;
    ck_assert_uint_eq(verbs_pkey_of(b.f, 3), 0); /* Ethernet has one alone */
    b.f->base.caps.is_ethernet = false;
    ck_assert_uint_eq(verbs_pkey_of(b.f, 3), 0x8007);
    find_pkey(&b, 0x8007, 3);
    find_pkey(&b, 0x0007, 3);
    find_pkey(&b, 0x8009, 4);
    find_pkey(&b, 0x8005, -1);
    find_pkey(&b, 0x8000, -1); /* an empty place is none */
    dc_bed_close(&b);
}
END_TEST

START_TEST(a_dct_on_infiniband_answers_from_its_lid)
{
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.is_ethernet = false;
    b.f->base.caps.lid = 9;
    struct fab_ctl ctl = {.kind = FAB_CREATE_DCT, .dct = {.pd = &b.vpd.base, .dc_key = 5}};
    verbs_own_address(&ctl);
    struct ibv_qp *dct = verbs_dct_make(b.f, &ctl, &b.pd, &b.cq, &b.srq);
    ck_assert_ptr_nonnull(dct);
    ck_assert_ptr_nonnull(strstr(fake.trace, "dlid=9 sgid=3"));
    ck_assert_int_eq(fake_calls.destroy_qp(dct), 0);
    dc_bed_close(&b);
}
END_TEST

/* Gives an event to the provider and takes one out: 1, or 0 when there is none. */
static int pass(struct dc_bed *b, struct ibv_async_event in, struct fab_event *out)
{
    verbs_events_handle(b->f, &in);
    return fab_events_pop(&b->f->events, out);
}

START_TEST(the_devices_events_reach_the_control_thread)
{
    static const enum ibv_event_type of_port[] = {IBV_EVENT_PORT_ERR,         IBV_EVENT_PORT_ACTIVE,
                                                  IBV_EVENT_LID_CHANGE,       IBV_EVENT_GID_CHANGE,
                                                  IBV_EVENT_PKEY_CHANGE,      IBV_EVENT_SM_CHANGE,
                                                  IBV_EVENT_CLIENT_REREGISTER};
    static const enum ibv_event_type of_qp[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR,
                                                IBV_EVENT_QP_REQ_ERR};
    struct dc_bed b;
    struct fab_event e;
    struct verbs_qp q;
    struct ibv_qp qp = {.qp_context = &q}, dct = {.qp_context = NULL};
    struct ibv_cq cq = {.cq_context = &b.vcq};
    dc_bed_open(&b);
    for (size_t i = 0; i < sizeof of_port / sizeof of_port[0]; i++) {
        struct ibv_async_event in = {.event_type = of_port[i], .element.port_num = 2};
        ck_assert_int_eq(pass(&b, in, &e), 1);
        ck_assert_int_eq(e.type, of_port[i]);
        ck_assert_ptr_null(e.qp);
        in.element.port_num = 1; /* another endpoint's */
        ck_assert_int_eq(pass(&b, in, &e), 0);
    }
    for (size_t i = 0; i < sizeof of_qp / sizeof of_qp[0]; i++) {
        struct ibv_async_event in = {.event_type = of_qp[i], .element.qp = &qp};
        ck_assert_int_eq(pass(&b, in, &e), 1);
        ck_assert_int_eq(e.type, of_qp[i]);
        ck_assert_ptr_eq(e.qp, &q.base);
        in.element.qp = &dct; /* a DCT is no queue pair of fabric.h's */
        ck_assert_int_eq(pass(&b, in, &e), 1);
        ck_assert_int_eq(e.type, of_qp[i]);
        ck_assert_ptr_null(e.qp);
    }
    struct ibv_async_event other = {.event_type = IBV_EVENT_WQ_FATAL}; /* of what we do not make */
    ck_assert_int_eq(pass(&b, other, &e), 0);
    struct ibv_async_event full = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = &cq};
    ck_assert_int_eq(pass(&b, full, &e), 1);
    ck_assert_ptr_eq(e.cq, &b.vcq.base);
    ck_assert_int_eq(verbs_poll(&b.vcq.base, 1, &(struct ibv_wc){0}), -EIO);
    struct ibv_async_event fatal = {.event_type = IBV_EVENT_DEVICE_FATAL};
    ck_assert_int_eq(pass(&b, fatal, &e), 1);
    ck_assert_int_eq(e.type, IBV_EVENT_DEVICE_FATAL);
    dc_bed_close(&b);
}
END_TEST

START_TEST(a_reset_forgets_what_was_said_of_the_life_before)
{
    struct dc_bed b;
    struct fab_event e;
    dc_bed_open(&b);
    verbs_dc_probe(b.f);
    struct fab_qp *qp = dc_bed_dci(&b, 1);
    struct ibv_async_event in = {.event_type = IBV_EVENT_QP_FATAL,
                                 .element.qp = ((struct verbs_qp *)qp)->qp};
    verbs_events_handle(b.f, &in);
    ck_assert_int_eq(dc_bed_move(&b, qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, 0), 0);
    ck_assert_int_eq(fab_events_pop(&b.f->events, &e), 0);
    dc_bed_free_dci(&b, qp);
    dc_bed_close(&b);
}
END_TEST

/* ---- the stand-in itself */

START_TEST(the_stand_in_refuses_moves_with_other_masks_or_in_another_order)
{
    static const struct {
        enum ibv_qp_state to;
        int mask;
    } moves[] = {
        {IBV_QPS_RTR, IBV_QP_PATH_MTU}, /* from RESET */
        {IBV_QPS_INIT, IBV_QP_PORT},
        {IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS}, /* a DCT's */
        {IBV_QPS_RTS, IBV_QP_SQ_PSN},
    };
    struct dc_bed b;
    dc_bed_open(&b);
    b.f->base.caps.transports |= FAB_DC;
    struct fab_qp *qp = dc_bed_dci(&b, 4);
    for (int i = 0; i < 4; i++) {
        struct ibv_qp_attr attr = {.qp_state = moves[i].to, .port_num = 2};
        ck_assert_int_eq(dc_bed_move(&b, qp, attr, moves[i].mask), -EINVAL);
        ck_assert_int_eq(fake.wrong, i + 1);
        ck_assert_int_eq(verbs_qp_state(qp), IBV_QPS_RESET);
    }
    dc_bed_free_dci(&b, qp);
    dc_bed_close(&b);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_device_is_asked_for_dc_by_doing_it_and_leaves_nothing_behind)                              \
    T(streams_that_nobody_asked_for_are_not_used)                                                  \
    T(streams_that_are_asked_for_are_used_where_they_are_offered)                                  \
    T(streams_that_are_offered_but_refused_are_done_without)                                       \
    T(fewer_outstanding_reads_than_rc_has_are_found_out)                                           \
    T(a_target_allows_the_atomics_that_there_are)                                                  \
    T(the_service_is_in_every_address_and_queue_pair_and_in_the_target)                            \
    T(connections_without_a_flow_label_get_one_each_on_ethernet_alone)                             \
    T(an_old_kernel_takes_no_address_of_a_dci_which_has_no_service_level_then)                     \
    T(a_flow_label_leads_to_the_udp_port_that_was_asked_for)                                       \
    T(a_device_that_is_no_mlx5_has_no_dc_and_says_so)                                              \
    T(whatever_step_is_refused_there_is_no_dc_and_the_step_is_named)                               \
    T(without_dc_neither_a_dci_nor_a_dct_is_made)                                                  \
    T(libmlx5_is_found_where_it_is_installed_and_missed_in_a_sentence)                             \
    T(a_dci_is_made_brought_up_and_freed)                                                          \
    T(a_dct_has_its_number_when_it_is_made_and_keeps_its_parents)                                  \
    T(an_operation_has_the_address_and_the_pkey_of_when_it_was_submitted)                          \
    T(a_dct_without_an_srq_is_refused_and_one_that_fails_leaves_nothing)                           \
    T(on_infiniband_the_lid_goes_along_and_must_be_there)                                          \
    T(a_p_key_is_found_by_its_number_and_a_full_membership_first)                                  \
    T(a_dct_on_infiniband_answers_from_its_lid)                                                    \
    T(the_devices_events_reach_the_control_thread)                                                 \
    T(a_reset_forgets_what_was_said_of_the_life_before)                                            \
    T(the_stand_in_refuses_moves_with_other_masks_or_in_another_order)
KEDGE_CHECK_MAIN("fabric.verbs_dc_control", TESTS)
