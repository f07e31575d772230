/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints of which a metaserver that has just begun knows no more than that they are a node's. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "world_names.h"
#include "world_rc.h"
#include "world_trio.h"

enum {
    TENANT = 1,
    LOG2_SLOTS = 8,
    WORLD_AWAITED_NS = 40000000, /* as the world's lanes have it */
    STEP_NS = 100000,
    STEPS = 4 * WORLD_AWAITED_NS / STEP_NS, /* in which whatever comes has come */
    READS = 40 /* that one lookup costs at most, however long an endpoint is awaited */
};

/* A table of endpoints of a second metaserver. */
struct second {
    struct fab_mem memory;
    struct fab_mr *mr;
    struct schema_table table;
};

static struct world world;
static struct world *w = &world;
static struct world_worker k;
static struct second second;

static void open_all(void)
{
    world_fault = (struct fault_plan){.seed = 1};
    world_open(w);
    world_attach(w, &k, 0, 0, TENANT);
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = w->meta_pd, .access = IBV_ACCESS_REMOTE_READ}};
    ck_assert_int_eq(fab_mem_alloc(schema_table_bytes(LOG2_SLOTS), "second", &second.memory), 0);
    c.mr.mem = &second.memory;
    c.mr.length = second.memory.size;
    ck_assert_int_eq(fab_call(w->meta, &c), 0);
    second.mr = c.mr.x;
    schema_table_init(&second.table, SCHEMA_TABLE_ENDPOINTS, second.memory.addr, LOG2_SLOTS, 3, 9);
}

static void close_all(void)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = second.mr}};
    world_detach(w, &k);
    if (second.mr != NULL)
        ck_assert_int_eq(fab_call(w->meta, &c), 0);
    fab_mem_free(&second.memory);
    world_close(w);
    world_fault = (struct fault_plan){0};
}

/* Node 0 asks the one with the second table first, then the world's; or that one first; or that one
 * alone. */
enum { ALONE = 2 };
static void tell_list(uint32_t second_at)
{
    struct lane_command list = {.kind = LANE_COMMAND_METASERVERS,
                                .metaservers.count = second_at == ALONE ? 1 : 2};
    struct world_node *n = &w->node[0];
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_metaserver *m = &list.metaservers.at[second_at == ALONE ? 0 : i != second_at];
        *m = (struct lane_metaserver){.ah = n->metaserver_ah,
                                      .dctn = w->meta_dct->dctn,
                                      .dc_key = w->meta_dct->dc_key,
                                      .number = i};
        world_tables(w, m);
        if (w->rc)
            m->qp = i == 0 ? n->former_qp : n->metaserver_qp;
    }
    if (second_at != ALONE) {
        list.metaservers.at[second_at].table = second.table.desc;
        list.metaservers.at[second_at].table.rkey = second.mr->rkey;
    }
    ck_assert_int_eq(lane_command(n->lane, &list), 0);
    world_run(w, 2);
}

static void tell_two(void)
{
    if (w->rc)
        (void)world_rc_metaserver(w, &w->node[0]);
    tell_list(0);
}

/* The node of that number is awaited by the second metaserver, and by nobody else. */
static void await_second(uint32_t node)
{
    struct schema_endpoint_record r = {.pool = w->node[0].config.pool,
                                       .incarnation = w->node[node].incarnation};
    memcpy(r.gid, w->node[node].fab->caps.gid, sizeof r.gid);
    schema_table_await(&second.table, &r);
}

/* Nobody READs its table any more: it is dead. */
static void kill_second(void)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = second.mr}};
    ck_assert_int_eq(fab_call(w->meta, &c), 0);
    second.mr = NULL;
}

/* What a metaserver has published of a node, which it has no more afterwards. */
static struct schema_endpoint_record take_record(uint32_t node)
{
    struct schema_endpoint_record r;
    const uint8_t *gid = w->node[node].fab->caps.gid;
    const uint16_t pool = w->node[node].config.pool;
    const uint32_t home = schema_endpoint_home(&w->table.desc, gid, pool);
    ck_assert_int_eq(schema_endpoint_find(&w->table.desc,
                                          w->table.slots + (size_t)home * SCHEMA_RECORD_BYTES, gid,
                                          pool, &r),
                     0);
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
    return r;
}

static void ask_for(uint32_t node)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[0].config.pool}};
    memcpy(d.connect.gid, w->node[node].fab->caps.gid, sizeof d.connect.gid);
    d.connect.tag = ++k.tag;
    world_post(&k, &d);
    lane_doorbell(w->node[0].lane, k.id);
}

static const struct schema_reply *reply(void)
{
    return &k.r->reply[k.tag % SCHEMA_REPLIES];
}

/* Whether it is answered after so many steps at most; *took_ns. */
static bool run_until_answered(uint32_t steps, uint64_t *took_ns)
{
    const uint64_t since_ns = w->now_ns;
    for (uint32_t i = 0; i < steps && atomic_load(&reply()->tag) != k.tag; i++)
        world_sleep(w, STEP_NS);
    *took_ns = w->now_ns - since_ns;
    return atomic_load(&reply()->tag) == k.tag;
}

START_TEST(who_asks_for_a_node_that_a_metaserver_awaits_is_answered_when_it_comes)
{
    uint64_t took_ns;
    open_all();
    const struct schema_endpoint_record r = take_record(1);
    schema_table_await(&w->table, &r);
    ask_for(1);
    ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_uint_lt(took_ns, WORLD_AWAITED_NS);
    ck_assert_uint_gt(world_stats(w, 0).lookups_awaited, 0);
    close_all();
}
END_TEST

START_TEST(who_asks_for_a_node_that_does_not_come_hears_so_in_time)
{
    uint64_t took_ns;
    open_all();
    const struct schema_endpoint_record r = take_record(1);
    schema_table_await(&w->table, &r);
    const uint64_t before = world_stats(w, 0).endpoint_reads;
    ask_for(1);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, -EHOSTUNREACH);
    ck_assert_uint_eq(reply()->reason, SCHEMA_REASON_AWAITED);
    ck_assert_uint_ge(took_ns, WORLD_AWAITED_NS);
    ck_assert_uint_le(world_stats(w, 0).endpoint_reads - before, READS);
    ck_assert_uint_eq(world_stats(w, 0).lookups_failed, 0); /* its metaserver is not looked at */
    close_all();
}
END_TEST

START_TEST(who_asks_for_a_node_that_expires_meanwhile_hears_that_there_is_none)
{
    uint64_t took_ns;
    open_all();
    const struct schema_endpoint_record r = take_record(1);
    schema_table_await(&w->table, &r);
    ask_for(1);
    ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
    ck_assert_int_ge(schema_table_remove(&w->table, &r), 0);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, -ENOENT);
    close_all();
}
END_TEST

START_TEST(a_node_that_nobody_awaits_is_said_not_to_be_there_at_once)
{
    uint64_t took_ns;
    open_all();
    ck_assert_int_eq(world_connect(w, &k, 0, 2), 0);
    const struct schema_endpoint_record r = take_record(1), other = take_record(2);
    schema_table_await(&w->table, &other);
    (void)r;
    ask_for(1);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, -ENOENT);
    ck_assert(reply()->value[0] == 0 && reply()->value[1] == 0); /* nothing of another endpoint */
    ck_assert_uint_lt(took_ns, WORLD_AWAITED_NS / 4);
    close_all();
}
END_TEST

START_TEST(the_next_metaserver_is_asked_at_once_for_what_the_first_awaits)
{
    uint64_t took_ns;
    open_all();
    await_second(1);
    tell_two();
    ask_for(1);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, 0);
    ck_assert_uint_lt(took_ns, WORLD_AWAITED_NS / 4);
    ck_assert_uint_eq(world_stats(w, 0).endpoint_reads, 2);
    ck_assert_uint_eq(world_stats(w, 0).lookups_awaited, 0);
    close_all();
}
END_TEST

/* One that lies costs a lookup its time, and keeps nobody from another one's record. */
START_TEST(a_metaserver_that_awaits_for_ever_what_another_has_not_yet_keeps_nobody_from_it)
{
    uint64_t took_ns;
    open_all();
    const struct schema_endpoint_record r = take_record(1);
    schema_table_await(&second.table, &r);
    tell_two();
    ask_for(1);
    ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, 0);
    close_all();
}
END_TEST

/* What it said still holds, as nobody who knows better has said anything else. */
START_TEST(what_was_awaited_by_one_that_died_is_never_said_not_to_be_there)
{
    uint64_t took_ns;
    for (uint32_t comes = 0; comes < 2; comes++) {
        open_all();
        const struct schema_endpoint_record r = take_record(1);
        await_second(1);
        tell_two();
        ask_for(1);
        ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 4, &took_ns));
        kill_second();
        ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
        if (comes)
            ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
        ck_assert(run_until_answered(STEPS, &took_ns));
        ck_assert_int_eq(reply()->status, comes ? 0 : -EHOSTUNREACH);
        ck_assert(comes || reply()->reason == SCHEMA_REASON_AWAITED);
        close_all();
    }
}
END_TEST

START_TEST(what_was_awaited_by_one_that_is_in_the_list_no_more_is_awaited_on)
{
    uint64_t took_ns;
    open_all();
    (void)take_record(1);
    await_second(1);
    tell_two();
    ask_for(1);
    ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 4, &took_ns));
    tell_list(ALONE);
    ck_assert(run_until_answered(STEPS, &took_ns));
    ck_assert_int_eq(reply()->status, -EHOSTUNREACH);
    ck_assert_uint_eq(reply()->reason, SCHEMA_REASON_AWAITED);
    close_all();
}
END_TEST

/* It knows what is in its store, of which it has another table; and may have been in no list
 * meanwhile. */
START_TEST(one_that_awaited_it_and_was_started_again_may_say_that_there_is_none)
{
    uint64_t took_ns;
    bool missed = false;
    do {
        open_all();
        (void)take_record(1);
        await_second(1);
        tell_two();
        ask_for(1);
        ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 4, &took_ns));
        if (missed)
            tell_list(ALONE);
        memset(second.memory.addr, 0, second.memory.size);
        schema_table_init(&second.table, SCHEMA_TABLE_ENDPOINTS, second.memory.addr, LOG2_SLOTS, 3,
                          10);
        tell_list(1);
        ck_assert(run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
        ck_assert_int_eq(reply()->status, -ENOENT);
        close_all();
        missed = !missed;
    } while (missed && !w->rc); /* its queue pair would go with it */
}
END_TEST

/* Also when its place in the list is another one by then. */
START_TEST(the_one_that_awaited_it_may_say_that_there_is_none)
{
    uint64_t took_ns;
    for (uint32_t place = 0; place < 2; place++) {
        open_all();
        struct schema_endpoint_record r = take_record(1);
        await_second(1);
        tell_two();
        ask_for(1);
        ck_assert(!run_until_answered(WORLD_AWAITED_NS / STEP_NS / 4, &took_ns));
        ck_assert_int_ge(schema_table_remove(&second.table, &r), 0);
        tell_list(place);
        ck_assert(run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns));
        ck_assert_int_eq(reply()->status, -ENOENT);
        close_all();
    }
}
END_TEST

/* Its metaserver was started again while it was known here. */
START_TEST(what_is_known_goes_on_while_its_own_life_is_awaited_and_not_a_later_one)
{
    uint64_t took_ns;
    for (uint32_t later = 0; later < 2; later++) {
        open_all();
        ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
        struct schema_endpoint_record r = take_record(1), awaited = r;
        awaited.incarnation += later;
        schema_table_await(&w->table, &awaited);
        world_sleep(w, w->node[0].config.node_lease_ns);
        ask_for(1);
        ck_assert_int_eq(run_until_answered(WORLD_AWAITED_NS / STEP_NS / 2, &took_ns), !later);
        r.incarnation += later;
        ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
        ck_assert(run_until_answered(STEPS, &took_ns));
        ck_assert_int_eq(reply()->status, 0);
        close_all();
    }
}
END_TEST

START_TEST(a_session_that_ends_waits_for_nobody_who_is_awaited)
{
    struct world_worker other;
    uint64_t took_ns;
    open_all();
    world_attach(w, &other, 0, 1, TENANT);
    const struct schema_endpoint_record r = take_record(1);
    schema_table_await(&w->table, &r);
    ask_for(1);
    ck_assert(!run_until_answered(10, &took_ns));
    world_detach(w, &k);
    const uint64_t before = world_stats(w, 0).lookups_awaited;
    for (uint32_t i = 0; i < STEPS; i++)
        world_sleep(w, STEP_NS);
    ck_assert_uint_eq(world_stats(w, 0).lookups_awaited, before);
    world_attach(w, &k, 0, 0, TENANT);
    world_detach(w, &other);
    close_all();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_asks_for_a_node_that_a_metaserver_awaits_is_answered_when_it_comes)                      \
    T(who_asks_for_a_node_that_does_not_come_hears_so_in_time)                                     \
    T(who_asks_for_a_node_that_expires_meanwhile_hears_that_there_is_none)                         \
    T(a_node_that_nobody_awaits_is_said_not_to_be_there_at_once)                                   \
    T(the_next_metaserver_is_asked_at_once_for_what_the_first_awaits)                              \
    T(a_metaserver_that_awaits_for_ever_what_another_has_not_yet_keeps_nobody_from_it)             \
    T(what_was_awaited_by_one_that_died_is_never_said_not_to_be_there)                             \
    T(what_was_awaited_by_one_that_is_in_the_list_no_more_is_awaited_on)                           \
    T(one_that_awaited_it_and_was_started_again_may_say_that_there_is_none)                        \
    T(the_one_that_awaited_it_may_say_that_there_is_none)                                          \
    T(what_is_known_goes_on_while_its_own_life_is_awaited_and_not_a_later_one)                     \
    T(a_session_that_ends_waits_for_nobody_who_is_awaited)

KEDGE_CHECK_MAIN("agent.lane.awaited", TESTS)
