/* SPDX-License-Identifier: Apache-2.0 */
/* This node's address is another: what lives on, and what is made anew. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../check_main.h"
#include "fabric/provider.h"
#include "lane_state.h"
#include "world_trio.h"
#include "world_rc.h"

enum { TENANT = 7, LONG = 200000, LOG2 = 8 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;

enum { LATE = 60 /* polls */, TOO_LATE = 5000 };

static void readdress(uint32_t node, struct schema_table *table)
{
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS,
                             .readdress = {.incarnation = 101, .mr_table = table}};
    const uint32_t answers = w->node[node].answers;
    ck_assert_int_eq(lane_command(w->node[node].lane, &c), 0);
    for (int i = 0; i < 100 && w->node[node].answers == answers; i++)
        world_run(w, 1);
    ck_assert_uint_eq(w->node[node].answers, answers + 1);
    ck_assert_int_eq(w->node[node].answer.kind, LANE_EVENT_READDRESSED);
}

static void read_one(uint32_t vkey, uint64_t wr_id)
{
    struct schema_cqe e;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, wr_id, 64, 8, vkey, 64);
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
    ck_assert(world_poll(w, &k, &e, LONG));
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
}

/* With RC the connection that there was is broken, which nobody sees who waits for nothing. */
START_TEST(paths_are_made_anew_and_what_was_connected_goes_on)
{
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    read_one(vkey, 1);
    const struct lane_stats before = world_stats(w, 0);
    const struct fab_qp *link = w->node[0].last_link;
    readdress(0, NULL);
    for (uint64_t i = 2; i < 10; i++)
        read_one(vkey, i);
    ck_assert_uint_eq(world_stats(w, 0).failed, before.failed);
    if (w->rc)
        ck_assert_ptr_ne(w->node[0].last_link, link);
    world_unpair(w, &owner, &k);
}
END_TEST

static bool has(const struct schema_table *t, uint32_t vkey)
{
    struct schema_mr_record r;
    const uint8_t *window = t->slots + (size_t)schema_mr_home(&t->desc, vkey) * SCHEMA_RECORD_BYTES;
    return schema_mr_find(&t->desc, window, vkey, &r) == 0 && r.vkey == vkey;
}

/* Nobody who READs the former table may renew a lease by it: its regions' withdrawals happen in the
 * new one. */
START_TEST(regions_go_over_to_another_table_with_their_keys_and_leave_the_former)
{
    struct schema_table table;
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    const uint32_t second = world_register(w, &owner, 8192, 4096, ALL);
    struct schema_table *former = w->node[1].res.mr_table;
    void *memory = NULL;
    ck_assert_int_eq(posix_memalign(&memory, 4096, schema_table_bytes(LOG2)), 0);
    ck_assert(has(former, vkey) && has(former, second));
    memset(memory, 0, schema_table_bytes(LOG2));
    schema_table_init(&table, SCHEMA_TABLE_MRS, memory, LOG2, 11, 22);
    readdress(1, &table);
    ck_assert_uint_eq(w->node[1].answer.reason, 0);
    ck_assert(has(&table, vkey) && has(&table, second));
    ck_assert(!has(former, vkey) && !has(former, second));
    const uint32_t third = world_register(w, &owner, 16384, 4096, ALL);
    ck_assert(third != 0 && has(&table, third) && !has(former, third));
    world_detach(w, &owner);
    ck_assert(!has(&table, vkey) && !has(&table, second) && !has(&table, third));
    world_detach(w, &k);
    world_close(w);
    free(memory);
}
END_TEST

/* One that the control side began to make with the former address, and that comes after it is
 * another. */
START_TEST(a_path_that_was_asked_for_before_is_given_back_when_it_comes)
{
    enum { NONE = 999 };
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct world_node *n = &w->node[0];
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 64, 8, vkey, 64);
    w->away[1] = !w->rc;
    n->wanted_flow = NONE;
    world_post(&k, &d);
    lane_doorbell(n->lane, k.id);
    for (int i = 0; i < 10 && n->wanted_flow == NONE; i++)
        world_run(w, 1);
    ck_assert_uint_ne(n->wanted_flow, NONE);
    if (w->rc) { /* the handshake is under way */
        n->wanted_flow = NONE;
        readdress(0, NULL);
        ck_assert_uint_eq(world_done(w, &k, LONG).status, IBV_WC_SUCCESS);
        ck_assert_uint_ne(n->wanted_flow, NONE);
        world_unpair(w, &owner, &k);
        return;
    }
    struct fab_ctl ah = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = n->pd, .attr = fab_address(n->fab, w->node[1].fab->caps.gid, 0)}};
    ck_assert_int_eq(fab_call(n->fab, &ah), 0);
    readdress(0, NULL);
    struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                             .path = {.flow = n->wanted_flow, .path.ah = ah.ah.x}};
    n->wanted_flow = NONE;
    w->away[1] = false;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
    ck_assert_uint_eq(world_done(w, &k, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_ne(n->wanted_flow, NONE); /* asked for anew */
    ck_assert_uint_eq(world_stats(w, 0).paths_failed, 0);
    world_unpair(w, &owner, &k);
}
END_TEST

/* Nor does it say anything of the peer that one could not be made so. */
START_TEST(nor_is_a_failure_of_such_a_one_believed)
{
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct world_node *n = &w->node[0];
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 64, 8, vkey, 64);
    w->away[1] = true;
    world_post(&k, &d);
    lane_doorbell(n->lane, k.id);
    world_run(w, 10);
    readdress(0, NULL);
    struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                             .path = {.flow = n->wanted_flow, .status = -EHOSTUNREACH}};
    w->away[1] = false;
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
    ck_assert_uint_eq(world_done(w, &k, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).paths_failed, 0);
    world_unpair(w, &owner, &k);
}
END_TEST

/* ---- with requests out: on the device's side all is as it was until it says otherwise */

/* It had been carried out: an addition that is told to have an unknown end is made again by who
 * cannot do without, and a READ that goes again may see what came later. */
START_TEST(what_was_carried_out_by_then_is_told_so_and_nothing_goes_again)
{
    struct world_trio b;
    world_trio_open(w, &b);
    const _Atomic uint64_t *counter = b.owner.arena.addr;
    world_delay(w, LATE);
    world_trio_post(w, &b);
    readdress(0, NULL);
    ck_assert_uint_eq(world_done(w, &b.writer, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &b.adder, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_done(w, &b.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*counter, 1);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    world_run(w, LATE);
    ck_assert_uint_eq(w->node[0].broken, w->rc);
    world_delay(w, 0);
    world_warm(w, &b.writer, b.key);
    world_trio_close(w, &b);
}
END_TEST

/* None of it was carried out, which the device has not said yet: it may still write to where the
 * READ goes. */
START_TEST(what_is_out_is_the_devices_until_it_gives_it_back)
{
    struct world_trio b;
    world_trio_open(w, &b);
    if (!w->rc) { /* there nothing breaks */
        world_trio_close(w, &b);
        return;
    }
    world_delay(w, LATE);
    world_break(w, 0, w->node[0].last_link);
    world_trio_post(w, &b);
    readdress(0, NULL);
    world_run(w, LATE / 2);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 3);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 0);
    ck_assert_uint_eq(world_done(w, &b.writer, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &b.adder, LONG).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(world_done(w, &b.reader, LONG).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).reposted, 1);
    world_trio_close(w, &b);
}
END_TEST

START_TEST(what_the_device_never_gives_back_is_given_up_after_so_long_as_a_request_may_take)
{
    struct world_trio b;
    world_trio_open(w, &b);
    if (!w->rc) {
        world_trio_close(w, &b);
        return;
    }
    world_delay(w, TOO_LATE);
    world_trio_post(w, &b);
    readdress(0, NULL);
    const uint64_t begun_ns = w->now_ns;
    ck_assert_uint_eq(world_done(w, &b.writer, TOO_LATE / 2).status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_ge(w->now_ns - begun_ns, w->node[0].config.bound_ns / 2);
    ck_assert_uint_eq(world_done(w, &b.reader, 3 * TOO_LATE).status, IBV_WC_SUCCESS);
    world_warm(w, &b.reader, b.key);
    world_trio_close(w, &b);
}
END_TEST

/* Of the lane's own requests the same holds: the memory that the READ goes to is lent to no other
 * READ before it is back, and what it has brought counts. */
START_TEST(a_read_of_a_metaserver_whose_connection_is_replaced_comes_back_first)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 1};
    struct lane_metaserver *m = &list.metaservers.at[0];
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .slots = 1};
    world_fault = (struct fault_plan){.seed = 1};
    world_open(w);
    struct world_node *n = &w->node[0];
    world_attach(w, &k, 0, 0, TENANT);
    if (!w->rc) {
        world_detach(w, &k);
        world_close(w);
        return;
    }
    world_delay(w, LATE);
    d.connect.pool = n->config.pool;
    memcpy(d.connect.gid, w->node[1].fab->caps.gid, sizeof d.connect.gid);
    d.connect.tag = ++k.tag;
    world_post(&k, &d);
    lane_doorbell(n->lane, k.id);
    world_run(w, 2);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    *m = (struct lane_metaserver){.table = w->table.desc, .qp = world_rc_metaserver(w, n)};
    m->table.rkey = w->meta_mr->rkey;
    ck_assert_int_eq(lane_command(n->lane, &list), 0);
    world_run(w, LATE / 2);
    ck_assert_ptr_nonnull(n->former_qp); /* the device has it yet */
    world_run(w, LATE);
    ck_assert_ptr_null(n->former_qp);
    ck_assert_uint_eq(k.r->reply[k.tag % SCHEMA_REPLIES].tag, k.tag);
    ck_assert_int_eq(k.r->reply[k.tag % SCHEMA_REPLIES].status, 0);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 1);
    world_delay(w, 0);
    ck_assert_int_eq(world_connect(w, &k, 1, 2), 0); /* by the present one */
    world_detach(w, &k);
    world_close(w);
    world_fault = (struct fault_plan){0};
}
END_TEST

/* ---- handles, with DC: the control side may destroy one as soon as it hears that it is given up,
 * which is before the lane's next doorbell */

/* A control side that takes the lane's events in the moment of the doorbell, and the handles that
 * it has destroyed by then. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    const struct fab_ah *given_up[64];
    uint32_t count, posted, used_after;
    uint32_t refuse; /* so many of the next lists find no room */
} control;

static int post_late(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    struct lane_event e;
    while (lane_event(w->node[0].lane, &e))
        if (e.kind == LANE_EVENT_DROP_PATH && e.path.ah != NULL)
            control.given_up[control.count++] = e.path.ah;
    for (struct fab_wr *at = wr; at != NULL; at = at->next, control.posted++)
        for (uint32_t i = 0; i < control.count; i++)
            control.used_after += at->ah == control.given_up[i];
    if (control.refuse > 0) {
        control.refuse--;
        *bad = wr;
        return -ENOMEM;
    }
    return control.real->post_send(qp, wr, bad);
}

static void watch_handles(void)
{
    memset(&control, 0, sizeof control);
    control.real = w->node[0].fab->ops;
    control.ops = *control.real;
    control.ops.post_send = post_late;
    w->node[0].fab->ops = &control.ops;
}

static void unwatch_handles(void)
{
    struct lane_event e;
    w->node[0].fab->ops = control.real;
    while (lane_event(w->node[0].lane, &e))
        if (e.kind == LANE_EVENT_DROP_PATH && e.path.ah != NULL)
            control.given_up[control.count++] = e.path.ah;
    for (uint32_t i = 0; i < control.count; i++) {
        struct fab_ctl drop = {.kind = FAB_DESTROY_AH,
                               .ah = {.x = (struct fab_ah *)control.given_up[i]}};
        ck_assert_int_eq(fab_call(w->node[0].fab, &drop), 0);
    }
}

/* The READ is chained in the pass in which the address changes. */
START_TEST(a_handle_is_not_used_after_it_was_given_up)
{
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS, .readdress = {.incarnation = 101}};
    read_one(vkey, 1);
    if (w->rc) {
        world_unpair(w, &owner, &k);
        return;
    }
    watch_handles();
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 2, 64, 8, vkey, 64);
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
    (void)lane_step(w->node[0].lane, w->now_ns += 1000);
    ck_assert_uint_gt(control.posted, 0);
    ck_assert_uint_eq(control.used_after, 0);
    unwatch_handles();
    ck_assert_uint_eq(control.count, 1);
    ck_assert_uint_eq(world_done(w, &k, LONG).status, IBV_WC_SUCCESS);
    read_one(vkey, 3);
    world_unpair(w, &owner, &k);
}
END_TEST

/* A handle that is in a ring at that time is nobody's else: the device, which is closed with what
 * the lane gives, would not be. */
START_TEST(what_was_given_up_and_not_heard_of_or_given_and_not_taken_is_there_at_the_end)
{
    const uint32_t vkey = world_pair(w, &owner, &k, TENANT, ALL);
    struct lane_command c = {.kind = LANE_COMMAND_READDRESS, .readdress = {.incarnation = 101}};
    read_one(vkey, 1);
    if (w->rc) {
        world_unpair(w, &owner, &k);
        return;
    }
    world_detach(w, &owner);
    world_detach(w, &k);
    struct world_node *n = &w->node[0];
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
    for (int i = 0; i < 10; i++)
        (void)lane_step(n->lane, w->now_ns += 1000000);
    ck_assert(lane_has_events(n->lane)); /* that nobody hears */
    struct fab_ctl ah = {
        .kind = FAB_CREATE_AH,
        .ah = {.pd = n->pd, .attr = fab_address(n->fab, w->node[1].fab->caps.gid, 0)}};
    ck_assert_int_eq(fab_call(n->fab, &ah), 0);
    c = (struct lane_command){.kind = LANE_COMMAND_PATH_READY, .path.path.ah = ah.ah.x};
    ck_assert_int_eq(lane_command(n->lane, &c), 0); /* that it never takes */
    world_close(w);
}
END_TEST

/* All records of the metaserver's table are being written, or are whole again. */
static void tear_records(bool begin)
{
    for (uint32_t i = 0; i < 1u << w->table.desc.log2_slots; i++) {
        uint32_t *seq = (uint32_t *)(w->table.slots + (size_t)i * SCHEMA_RECORD_BYTES);
        if (*seq != 0)
            *seq = begin ? *seq | 1 : *seq & ~1u;
    }
}

/* A span that was torn is READ again: chained when the poll at the end of a pass has brought it,
 * before the next pass takes the commands. The device may refuse it then. */
static void change_list(uint32_t refuse)
{
    struct schema_sq_desc d = {.op = SCHEMA_OP_CONNECT, .slots = 1};
    world_open(w);
    struct world_node *n = &w->node[0];
    world_attach(w, &k, 0, 0, TENANT);
    if (w->rc) {
        world_detach(w, &k);
        world_close(w);
        return;
    }
    watch_handles();
    const struct fab_ah *listed = n->metaserver_ah;
    tear_records(true);
    d.connect.pool = n->config.pool;
    memcpy(d.connect.gid, w->node[1].fab->caps.gid, sizeof d.connect.gid);
    d.connect.tag = ++k.tag;
    world_post(&k, &d);
    lane_doorbell(n->lane, k.id);
    for (int i = 0; i < 100 && n->lane->chained == NULL; i++)
        (void)lane_step(n->lane, w->now_ns += 1000);
    ck_assert_ptr_nonnull(n->lane->chained);
    tear_records(false);
    n->metaserver_ah = NULL;
    world_tell_metaserver(w, n);
    control.refuse = refuse;
    for (int i = 0; i < 100; i++)
        (void)lane_step(n->lane, w->now_ns += 1000);
    ck_assert_uint_eq(control.refuse, 0);
    ck_assert_ptr_eq(n->lane->metaserver[0].ah, n->metaserver_ah);
    unwatch_handles();
    ck_assert_uint_eq(control.used_after, 0);
    ck_assert_uint_eq(control.count, 1);
    ck_assert_ptr_eq(control.given_up[0], listed);
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    world_detach(w, &k);
    world_close(w);
}

START_TEST(nor_is_that_of_a_metaserver_after_the_lane_has_another_list)
{
    change_list(0);
}
END_TEST

START_TEST(nor_when_the_device_had_no_room_for_what_was_chained)
{
    for (uint32_t refuse = 1; refuse <= 3; refuse++)
        change_list(refuse);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(nor_when_the_device_had_no_room_for_what_was_chained)                                        \
    T(nor_is_that_of_a_metaserver_after_the_lane_has_another_list)                                 \
    T(a_handle_is_not_used_after_it_was_given_up)                                                  \
    T(what_was_given_up_and_not_heard_of_or_given_and_not_taken_is_there_at_the_end)               \
    T(what_was_carried_out_by_then_is_told_so_and_nothing_goes_again)                              \
    T(what_is_out_is_the_devices_until_it_gives_it_back)                                           \
    T(what_the_device_never_gives_back_is_given_up_after_so_long_as_a_request_may_take)            \
    T(a_read_of_a_metaserver_whose_connection_is_replaced_comes_back_first)                        \
    T(paths_are_made_anew_and_what_was_connected_goes_on)                                          \
    T(regions_go_over_to_another_table_with_their_keys_and_leave_the_former)                       \
    T(a_path_that_was_asked_for_before_is_given_back_when_it_comes)                                \
    T(nor_is_a_failure_of_such_a_one_believed)

KEDGE_CHECK_MAIN("agent.lane.readdress", TESTS)
