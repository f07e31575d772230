/* SPDX-License-Identifier: Apache-2.0 */
/* Agents without DC: each registers with a queue pair, gets the other end of it, and READs the
 * table through that. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fabric/provider.h"
#include "world.h"

START_TEST(an_agent_without_dc_finds_an_endpoint_with_one_read)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &reply);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).nodes,
                      0); /* nothing happens before it is ready */
    world_settle(&w);
    ck_assert_int_eq(reply.status, 201);
    ck_assert(says(&reply, "\"endpoint\":{\"gid\":\"") && says(&reply, "\",\"rc\":{\"qpn\":"));
    ck_assert(!says(&reply, "dct_number") && !says(&reply, "dc_key") && !says(&reply, "lid"));
    reader_connect(&a, &reply);
    ck_assert(reader_finds(&a, &w, 1));
    ck_assert(!reader_finds(&a, &w, 2));
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    ck_assert_uint_eq(world_readers(&w).spare, META_RESPONDERS_SPARES);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(a_reader_cannot_write)
{
    struct world w;
    struct reader a;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_join(&w, &a, 5, 201);
    enum ibv_wc_status status = reader_try(&a, &w, IBV_WR_RDMA_WRITE, 1);
    /* rxe says the latter. */
    ck_assert(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(where_there_is_dc_both_ways_are_told)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open(&w, 16);
    w.s.endpoint.dct_number = 9;
    w.s.endpoint.dc_key = 0xab;
    w.s.endpoint.lid = 3;
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 201);
    ck_assert(says(&reply, "\"lid\":3,\"dct_number\":9,\"dc_key\":\"00000000000000ab\",\"rc\":{"));
    reader_close(&a);
    world_close(&w);
}
END_TEST

static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    uint32_t connected;
    int mask;
    uint16_t pkey_index;
} spy;

static void submit_and_look(struct fab *fab, struct fab_ctl *ctl)
{
    if (ctl->kind == FAB_MODIFY_QP && ctl->modify.attr.qp_state == IBV_QPS_RTR) {
        spy.connected++;
        spy.mask = ctl->modify.mask;
        spy.pkey_index = ctl->modify.attr.pkey_index;
    }
    spy.real->submit(fab, ctl);
}

/* Those that were made ahead have been given the former place. */
START_TEST(a_queue_pair_is_connected_in_the_place_that_the_pkey_has_now)
{
    const struct fault_plan moved = {.seed = 1, .pkey_moved = 4};
    struct world w;
    struct reader a;
    world_open(&w, 16);
    world_settle(&w);
    spy.real = w.fab->ops;
    spy.ops = *w.fab->ops;
    spy.ops.submit = submit_and_look;
    w.fab->ops = &spy.ops;
    if (w.pd->pkey == 0) /* on SoftRoCE */
        w.pd->pkey = 0xffff;
    const uint16_t now = w.pd->service.pkey_index + moved.pkey_moved;
    fault_set_plan(w.fab, &moved);
    fab_set_pkey_index(w.pd, now);
    reader_open(&a, &w, 1);
    reader_join(&w, &a, 5, 201);
    ck_assert_uint_eq(spy.connected, 1);
    ck_assert(spy.mask & IBV_QP_PKEY_INDEX);
    ck_assert_uint_eq(spy.pkey_index, now);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    w.fab->ops = spy.real;
    world_close(&w);
}
END_TEST

START_TEST(an_agent_that_registers_with_another_queue_pair_reads_through_that_one)
{
    struct world w;
    struct reader former, a;
    struct reply reply;
    world_open(&w, 16);
    reader_open(&former, &w, 1);
    reader_open(&a, &w, 2);
    a.node = former.node;
    reader_join(&w, &former, 5, 201);
    ck_assert(reader_finds(&former, &w, 1));
    reader_put(&w, &a, 6, &reply);
    ck_assert(reader_finds(&former, &w, 1)); /* until the new one is ready */
    world_settle(&w);
    ck_assert_int_eq(reply.status, 200);
    reader_connect(&a, &reply);
    ck_assert(reader_finds(&a, &w, 1));
    ck_assert_int_ne(reader_try(&former, &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    ck_assert_uint_eq(world_readers(&w).all, 1 + META_RESPONDERS_SPARES);
    reader_close(&former);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(a_registration_whose_answer_was_lost_may_be_repeated)
{
    struct world w;
    struct reader a;
    struct reply lost, twice, last;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &lost);
    world_settle(&w);
    ck_assert_int_eq(lost.status, 201);
    reader_put(&w, &a, 5, &twice);
    reader_put(&w, &a, 5, &last);
    world_settle(&w);
    ck_assert_int_eq(twice.status, 200);
    ck_assert_int_eq(last.status, 200);
    reader_connect(&a, &last);
    ck_assert(reader_finds(&a, &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(the_last_of_a_nodes_registrations_stays_though_it_was_ready_first)
{
    struct world w;
    struct reader a;
    struct reply first, last;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    world_hold(&w);
    reader_put(&w, &a, 5, &first);
    reader_put(&w, &a, 5, &last);
    world_wait_held(&w);
    ck_assert_int_eq(last.status, META_SERVICE_LATER);
    world_release(&w);
    world_settle(&w);
    ck_assert_int_eq(first.status, 201);
    ck_assert_int_eq(last.status, 200);
    reader_connect(&a, &last);
    ck_assert(reader_finds(&a, &w, 1));
    ck_assert_uint_eq(world_readers(&w).kept, 1);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(a_node_that_goes_takes_its_queue_pair_with_it)
{
    void (*const ways[])(struct world * w) = {world_delete_node, world_expire_node,
                                              world_put_node_without};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct world w;
        struct reader a, other;
        world_open(&w, 16);
        reader_open(&a, &w, 1);
        reader_open(&other, &w, 2);
        reader_join(&w, &a, 5, 201);
        w.now += WORLD_LEASE / 2; /* so that this one outlives the other */
        reader_join(&w, &other, 5, 201);
        w.now -= WORLD_LEASE / 2;
        ways[i](&w);
        world_settle(&w);
        ck_assert_uint_eq(world_readers(&w).kept, 1);
        ck_assert_uint_eq(world_readers(&w).all, 1 + META_RESPONDERS_SPARES);
        ck_assert_int_ne(reader_try(&a, &w, IBV_WR_RDMA_READ, 1), IBV_WC_SUCCESS);
        ck_assert(reader_finds(&other, &w, 2));
        reader_close(&a);
        reader_close(&other);
        world_close(&w);
    }
}
END_TEST

START_TEST(a_node_that_expired_registers_again_and_reads)
{
    struct world w;
    struct reader a;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_join(&w, &a, 5, 201);
    world_expire_node(&w);
    world_settle(&w);
    reader_renew(&a);
    reader_join(&w, &a, 5, 200);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    world_close(&w);
}
END_TEST

/* Nothing that was asked of the device before is to be taken for what is asked now: of what a slow
 * one has done it tells late. */
static void hear_all(struct world *w)
{
    struct pollfd told = {.fd = fab_ctl_fd(w->fab), .events = POLLIN};
    while (poll(&told, 1, 200) == 1)
        (void)fab_run(w->fab);
}

START_TEST(a_refused_registration_changes_no_queue_pair)
{
    struct world w;
    struct reader a, stale;
    struct reply reply;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_open(&stale, &w, 2);
    stale.node = a.node;
    reader_join(&w, &a, 5, 201);
    world_settle(&w);
    hear_all(&w);
    reader_put(&w, &stale, 4, &reply);
    ck_assert_int_eq(reply.status, 409); /* at once */
    ck_assert(says(&reply, "\"known_incarnation\":5"));
    ck_assert_int_eq(fab_run(w.fab), 0);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    reader_close(&stale);
    world_close(&w);
}
END_TEST

START_TEST(what_became_stale_while_it_waited_is_refused)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_join(&w, &a, 4, 201);
    reader_put(&w, &a, 5, &reply);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    world_put_node_without(&w); /* incarnation 6 */
    world_settle(&w);
    ck_assert_int_eq(reply.status, 409);
    ck_assert_uint_eq(world_readers(&w).kept, 0);
    ck_assert_uint_eq(world_readers(&w).all, META_RESPONDERS_SPARES);
    ck_assert_uint_eq(w.s.count.http[409], 1);
    reader_close(&a);
    world_close(&w);
}
END_TEST

/* Its token is looked at when the request comes, and again when the queue pair is ready. */
START_TEST(who_has_lost_its_token_while_it_waited_is_refused)
{
    struct world w;
    struct reader a;
    struct reply reply, other;
    char gid[BASE_GID_TEXT], body[256];
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    const bool same = strcmp(base_gid_format(a.fab->caps.gid, gid), "fd00::1") == 0;
    snprintf(body, sizeof body,
             "{\"scope\":\"agent\",\"node\":\"n1\",\"gids\":[%s\"%s\"],"
             "\"secret\":\"kedge_n1_0123456789012345678901234567890123456789012\"}",
             same ? "" : "\"fd00::1\",", gid);
    world_ask(&w, "PUT", "/v1/tokens/n1", body, &other);
    ck_assert_int_eq(other.status, 201);
    world_hold(&w);
    w.authorization = "Bearer kedge_n1_0123456789012345678901234567890123456789012";
    reader_put(&w, &a, 5, &reply);
    world_wait_held(&w);
    ck_assert_int_eq(reply.status, META_SERVICE_LATER);
    w.authorization = NULL;
    world_ask(&w, "DELETE", "/v1/tokens/n1", "", &other);
    ck_assert_int_eq(other.status, 204);
    world_release(&w);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 401);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).nodes, 0);
    ck_assert_uint_eq(world_readers(&w).kept, 0);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(when_none_is_left_a_new_node_is_refused_and_a_known_one_is_not)
{
    struct world w;
    struct reader a[3];
    struct reply reply;
    world_open(&w, 2);
    for (uint8_t i = 0; i < 3; i++)
        reader_open(&a[i], &w, (uint8_t)(i + 1));
    reader_join(&w, &a[0], 5, 201);
    reader_join(&w, &a[1], 5, 201);
    reader_put(&w, &a[2], 5, &reply);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "urn:kedge:problem:no-queue-pair"));
    ck_assert(says(&reply, "all 2 queue pairs"));
    ck_assert_uint_eq(world_readers(&w).refused, 1);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).nodes, 2);
    reader_renew(&a[1]);
    reader_join(&w, &a[1], 6, 200);
    ck_assert(reader_finds(&a[1], &w, 2));
    world_delete_node(&w);
    reader_join(&w, &a[2], 5, 201);
    ck_assert(reader_finds(&a[2], &w, 3));
    for (int i = 0; i < 3; i++)
        reader_close(&a[i]);
    world_close(&w);
}
END_TEST

START_TEST(many_at_once_each_get_their_own)
{
    struct world w;
    struct reader a[16];
    struct reply reply[16];
    world_open(&w, 16); /* more than there are spare ones */
    for (uint8_t i = 0; i < 16; i++) {
        reader_open(&a[i], &w, (uint8_t)(i + 1));
        reader_put(&w, &a[i], 5, &reply[i]);
    }
    world_settle(&w);
    for (uint8_t i = 0; i < 16; i++) {
        ck_assert_int_eq(reply[i].status, 201);
        reader_connect(&a[i], &reply[i]);
        ck_assert(reader_finds(&a[i], &w, (uint8_t)(16 - i)));
    }
    ck_assert_uint_eq(world_readers(&w).kept, 16);
    for (int i = 0; i < 16; i++)
        reader_close(&a[i]);
    world_close(&w);
}
END_TEST

START_TEST(no_queue_pair_is_spent_on_a_client_that_has_gone)
{
    struct world w;
    struct reader a;
    struct reply reply[META_RESPONDERS_SPARES + 1];
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    for (int i = 0; i <= META_RESPONDERS_SPARES; i++) {
        reader_put(&w, &a, 5, &reply[i]); /* before the first spare one is ready */
        reply[i].gone = i < META_RESPONDERS_SPARES;
    }
    world_settle(&w);
    for (int i = 0; i < META_RESPONDERS_SPARES; i++)
        ck_assert_int_eq(reply[i].status, 503);
    ck_assert_int_eq(reply[META_RESPONDERS_SPARES].status, 201);
    ck_assert_uint_eq(world_readers(&w).given_up, META_RESPONDERS_SPARES);
    reader_connect(&a, &reply[META_RESPONDERS_SPARES]);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(stopping_answers_what_waits_and_leaves_no_queue_pair)
{
    struct world w;
    struct reader a;
    struct reply kept, waiting[2 * META_RESPONDERS_SPARES], ready, late;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &kept);
    world_settle(&w);
    ck_assert_int_eq(kept.status, 201);
    reader_put(&w, &a, 5, &ready);
    while (fab_run(w.fab) > 0) /* ready, but nobody has taken it */
        ;
    for (int i = 0; i < 2 * META_RESPONDERS_SPARES; i++)
        reader_put(&w, &a, 5, &waiting[i]); /* some on their way, some without a queue pair */
    world_stop(&w);
    ck_assert_uint_eq(world_readers(&w).all, 0);
    ck_assert_int_eq(ready.status, META_SERVICE_LATER);
    meta_service_advance(&w.s, w.now);
    ck_assert_int_eq(ready.status, 503);
    for (int i = 0; i < 2 * META_RESPONDERS_SPARES; i++) {
        ck_assert_int_eq(waiting[i].status, 503);
        ck_assert(says(&waiting[i], "stops"));
    }
    reader_put(&w, &a, 5, &late);
    ck_assert_int_eq(late.status, 503);
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(a_device_that_makes_no_queue_pair_is_told_and_asked_again)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open(&w, 16);
    const struct fault_plan all = {.seed = 1, .control_error_ppm = 1000000}, none = {.seed = 1};
    reader_open(&a, &w, 1);
    fault_set_plan(w.fab, &all);
    reader_put(&w, &a, 5, &reply);
    world_settle(&w); /* and it ends: what fails is not tried for ever */
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "makes no more queue pairs (Input/output error)"));
    ck_assert_uint_eq(meta_directory_count(w.s.directory).nodes, 0);
    ck_assert(world_readers(&w).failed == 1 && world_readers(&w).all == 0);
    fault_set_plan(w.fab, &none);
    reader_join(&w, &a, 5, 201);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    world_close(&w);
}
END_TEST

START_TEST(a_queue_pair_that_cannot_be_connected_is_told_and_goes)
{
    struct world w;
    struct reader a;
    struct reply reply;
    world_open(&w, 16);
    const struct fault_plan all = {.seed = 1, .control_error_ppm = 1000000}, none = {.seed = 1};
    world_settle(&w); /* the spare ones are ready */
    reader_open(&a, &w, 1);
    reader_put(&w, &a, 5, &reply);
    fault_set_plan(w.fab, &all);
    while (fab_run(w.fab) == 0)
        ;
    fault_set_plan(w.fab, &none);
    world_settle(&w);
    ck_assert_int_eq(reply.status, 503);
    ck_assert(says(&reply, "cannot be made ready (Input/output error)"));
    ck_assert_uint_eq(world_readers(&w).failed, 1);
    ck_assert_uint_eq(world_readers(&w).kept, 0);
    ck_assert_uint_eq(world_readers(&w).all, META_RESPONDERS_SPARES);
    reader_join(&w, &a, 5, 201);
    ck_assert(reader_finds(&a, &w, 1));
    reader_close(&a);
    world_close(&w);
}
END_TEST

#define HEAD                                                                                       \
    "{\"incarnation\":5,\"endpoints\":[{\"gid\":\"fd00::1\",\"pool\":0,\"transports\":[\"rc\"],"   \
    "\"ud_qpn\":5,\"ud_qkey\":1,\"mtu\":1024}]"

static const struct {
    const char *reader, *field;
    int status;
} wrong[] = {
    {"}", "reader", 422},
    {",\"reader\":[]}", "reader", 400},
    {",\"reader\":null}", "reader", 400},
    {",\"reader\":{}}", "reader.gid", 400},
    {",\"reader\":{\"gid\":\"ff02::1\",\"qpn\":1,\"psn\":0,\"mtu\":256}}", "reader.gid", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"psn\":0,\"mtu\":256}}", "reader.qpn", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":0,\"psn\":0,\"mtu\":256}}", "reader.qpn", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":16777216,\"psn\":0,\"mtu\":256}}", "reader.qpn",
     400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"mtu\":256}}", "reader.psn", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":16777216,\"mtu\":256}}", "reader.psn",
     400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":1500}}", "reader.mtu", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":256,\"lid\":65536}}",
     "reader.lid", 400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":256,\"lane\":8}}", "reader.lane",
     400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":256,\"key\":1}}", "reader.key",
     400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":256,\"pool\":1}}", "reader.pool",
     400},
    {",\"reader\":{\"gid\":\"fd00::1\",\"qpn\":1,\"psn\":0,\"mtu\":256,\"pool\":65536}}",
     "reader.pool", 400},
};

START_TEST(readers_that_are_wrong_or_missing_are_refused_with_the_field)
{
    struct world w;
    struct reply reply;
    char body[512], field[64];
    world_open(&w, 16);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(body, sizeof body, HEAD "%s", wrong[i].reader);
        world_ask(&w, "PUT", "/v1/nodes/n1", body, &reply);
        snprintf(field, sizeof field, "\"field\":\"%s\"}", wrong[i].field);
        ck_assert_msg(reply.status == wrong[i].status && says(&reply, field), "%s: %d %s", body,
                      reply.status, reply.body);
    }
    ck_assert_uint_eq(w.s.count.readerless, 1);
    ck_assert_uint_eq(meta_directory_count(w.s.directory).nodes, 0);
    world_close(&w);
}
END_TEST

START_TEST(metrics_show_the_readers)
{
    struct world w;
    struct reader a;
    struct base_text text;
    world_open(&w, 16);
    reader_open(&a, &w, 1);
    reader_join(&w, &a, 5, 201);
    base_text_init(&text, 1 << 20);
    meta_service_metrics(&w.s, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "\nkedge_metad_table_responders 1\n"));
    ck_assert_ptr_nonnull(strstr(text.data, "\nkedge_metad_table_responders_spare 8\n"));
    ck_assert_ptr_nonnull(
        strstr(text.data, "\nkedge_metad_table_responder_failures_total{why=\"full\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(text.data, "\nkedge_metad_refused_total{why=\"reader\"} 0\n"));
    base_text_fini(&text);
    reader_close(&a);
    world_close(&w);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(an_agent_without_dc_finds_an_endpoint_with_one_read)                                         \
    T(a_reader_cannot_write)                                                                       \
    T(where_there_is_dc_both_ways_are_told)                                                        \
    T(a_queue_pair_is_connected_in_the_place_that_the_pkey_has_now)                                \
    T(an_agent_that_registers_with_another_queue_pair_reads_through_that_one)                      \
    T(a_registration_whose_answer_was_lost_may_be_repeated)                                        \
    T(the_last_of_a_nodes_registrations_stays_though_it_was_ready_first)                           \
    T(a_node_that_goes_takes_its_queue_pair_with_it)                                               \
    T(a_node_that_expired_registers_again_and_reads)                                               \
    T(a_refused_registration_changes_no_queue_pair)                                                \
    T(what_became_stale_while_it_waited_is_refused)                                                \
    T(who_has_lost_its_token_while_it_waited_is_refused)                                           \
    T(when_none_is_left_a_new_node_is_refused_and_a_known_one_is_not)                              \
    T(many_at_once_each_get_their_own)                                                             \
    T(no_queue_pair_is_spent_on_a_client_that_has_gone)                                            \
    T(stopping_answers_what_waits_and_leaves_no_queue_pair)                                        \
    T(a_device_that_makes_no_queue_pair_is_told_and_asked_again)                                   \
    T(a_queue_pair_that_cannot_be_connected_is_told_and_goes)                                      \
    T(readers_that_are_wrong_or_missing_are_refused_with_the_field)                                \
    T(metrics_show_the_readers)
KEDGE_CHECK_MAIN("metaserver readers", TESTS)
