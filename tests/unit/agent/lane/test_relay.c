/* SPDX-License-Identifier: Apache-2.0 */
/* A further lane, to which no metaserver has given a queue pair: node 0's here, for which node 2's
 * READs the table, as a pool's first lane does. The test is the control side of both. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"
#include "world_names.h"
#include "world_rc.h"

enum { TENANT = 1, FURTHER = 0, OWNER = 1, FIRST = 2, NUMBER = 5, CROWD = 40, PASSES = 4000 };

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k, crowd[CROWD];
static struct fab_mr *scratch; /* the further lane's, of the first one's device */
static uint32_t refusals;      /* so many are answered that there is no room */
static bool hold;              /* the next ones wait */
static struct lane_event held[CROWD];
static uint32_t held_count, wanted, relayed;
static int last_status; /* of the last one that was relayed */

static void order(uint32_t node, const struct lane_command *c)
{
    ck_assert_int_eq(lane_command(w->node[node].lane, c), 0);
}

static void answer(uint32_t tag, int status)
{
    order(FURTHER, &(struct lane_command){.kind = LANE_COMMAND_RELAY_DONE,
                                          .relayed = {.tag = tag, .status = status}});
}

static void pass_on(const struct lane_event *e)
{
    const uintptr_t memory = (uintptr_t)w->node[FURTHER].scratch.addr;
    order(FIRST, &(struct lane_command){
                     .kind = LANE_COMMAND_RELAY,
                     .relay = {.addr = e->want_relay.addr,
                               .generation = e->want_relay.generation,
                               .local = memory + (uint64_t)e->want_relay.place * LANE_SCRATCH_BYTES,
                               .rkey = e->want_relay.rkey,
                               .lkey = scratch->lkey,
                               .bytes = e->want_relay.bytes,
                               .tag = e->want_relay.tag,
                               .lane = NUMBER,
                               .metaserver = e->want_relay.metaserver}});
}

static void hear(struct world *of, struct world_node *n, const struct lane_event *e)
{
    if (e->kind == LANE_EVENT_RELAYED) {
        ck_assert_ptr_eq(n, &of->node[FIRST]);
        ck_assert_uint_eq(e->relayed.lane, NUMBER);
        relayed++;
        last_status = e->relayed.status;
        answer(e->relayed.tag, e->relayed.status);
        return;
    }
    ck_assert_ptr_eq(n, &of->node[FURTHER]);
    ck_assert_uint_eq(e->want_relay.metaserver, 0);
    wanted++;
    if (hold) {
        ck_assert_uint_lt(held_count, CROWD);
        held[held_count++] = *e;
    } else if (refusals > 0) {
        refusals--;
        answer(e->want_relay.tag, -EAGAIN);
    } else {
        pass_on(e);
    }
}

static struct lane_command list_of(bool is_relayed)
{
    struct lane_command c = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 1};
    world_tables(w, &c.metaservers.at[0]);
    c.metaservers.at[0].relayed = is_relayed;
    return c;
}

static void begin(void)
{
    world_on_relay = hear;
    refusals = held_count = wanted = relayed = 0;
    hold = false;
    world_open(w);
    struct world_node *n = &w->node[FURTHER];
    struct fab_ctl reg = {.kind = FAB_REG_MR,
                          .mr = {.pd = w->node[FIRST].system_pd,
                                 .mem = &n->scratch,
                                 .length = n->scratch.size,
                                 .access = IBV_ACCESS_LOCAL_WRITE}};
    ck_assert_int_eq(fab_call(w->node[FIRST].fab, &reg), 0);
    scratch = reg.mr.x;
    n->no_metaserver = true; /* it loses its queue pair */
    const struct lane_command list = list_of(true);
    order(FURTHER, &list);
    world_run(w, 50);
    ck_assert_ptr_null(n->metaserver_qp);
    ck_assert_ptr_null(n->lane->metaserver_phys[0]); /* nor has it another's place */
    world_attach(w, &k, FURTHER, 0, TENANT);
}

static void end(void)
{
    world_detach(w, &k);
    world_run(w, 50);
    struct fab_ctl dereg = {.kind = FAB_DEREG_MR, .mr = {.x = scratch}};
    ck_assert_int_eq(fab_call(w->node[FIRST].fab, &dereg), 0);
    world_close(w);
    world_on_relay = NULL;
}

/* Its places are free, and the first lane has nothing of it. */
static void expect_nothing_out(void)
{
    const struct lane *further = w->node[FURTHER].lane, *first = w->node[FIRST].lane;
    ck_assert_uint_eq(further->scratch.places.used, 0);
    ck_assert_uint_eq(further->lookups.relays.out, 0);
    for (uint32_t i = 0; i <= further->config.max_tenants; i++)
        ck_assert_uint_eq(further->lookups.relays.of[i], 0);
    for (uint32_t i = 0; i < LANE_RELAYS; i++)
        ck_assert(!first->lookups.relays.at[i].used);
}

START_TEST(who_is_unknown_is_looked_up_by_the_first_lane)
{
    begin();
    world_attach(w, &owner, OWNER, 0, TENANT);
    const uint32_t vkey = world_register(w, &owner, 0, 4096, SCHEMA_RECORD_READ);
    ck_assert_int_eq(world_connect(w, &k, 0, OWNER), 0);
    ck_assert_uint_eq(wanted, 1);
    ck_assert_uint_eq(relayed, 1);
    ck_assert_uint_eq(world_stats(w, FURTHER).endpoint_reads, 1);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 1);
    ck_assert_uint_eq(world_stats(w, FIRST).endpoint_reads, 0);
    const struct schema_cqe e = world_do(w, &k, world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0), PASSES);
    ck_assert_int_eq(e.status, IBV_WC_SUCCESS);
    world_detach(w, &owner);
    expect_nothing_out();
    end();
}
END_TEST

/* In a moment, as often as that takes. */
START_TEST(one_for_which_there_is_no_room_asks_again)
{
    begin();
    refusals = 2; /* 1 ms each, and it has 5 */
    ck_assert_int_eq(world_connect(w, &k, 0, OWNER), 0);
    ck_assert_uint_eq(wanted, 3);
    ck_assert_uint_eq(world_stats(w, FURTHER).lookups_failed, 0);
    expect_nothing_out();
    end();
}
END_TEST

/* It was started again, and has another: to READ where the former was would break the first lane's
 * queue pair. */
START_TEST(a_table_that_the_first_lane_does_not_have_is_not_read)
{
    begin();
    struct lane_command list;
    for (uint32_t what = 0; what < 2; what++) { /* each alone says that it is another one */
        list = list_of(true);
        list.metaservers.at[0].table.generation += what == 0;
        list.metaservers.at[0].table.rkey ^= what == 0 ? 0 : 0x100;
        order(FURTHER, &list);
        ck_assert_int_eq(world_connect(w, &k, 0, OWNER), -EHOSTUNREACH);
        ck_assert_uint_eq(relayed, what + 1);
        ck_assert_uint_eq(world_stats(w, FIRST).relays, 0);
    }
    ck_assert_uint_eq(world_stats(w, FIRST).qp_broken, 0);
    world_forget_metaserver(w, FIRST);
    list = list_of(true);
    order(FURTHER, &list);
    ck_assert_int_eq(world_connect(w, &k, 0, OWNER), -EHOSTUNREACH);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 0);
    expect_nothing_out();
    end();
}
END_TEST

static void post_connect(struct world_worker *by, uint64_t which)
{
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.pool = w->node[FURTHER].config.pool}};
    memcpy(d.connect.gid, &which, sizeof which);
    d.connect.tag = ++by->tag;
    world_post(by, &d);
    lane_doorbell(w->node[FURTHER].lane, by->id);
}

static int reply_status(const struct world_worker *by)
{
    const struct schema_reply *r = &by->r->reply[by->tag % SCHEMA_REPLIES];
    ck_assert_uint_eq(atomic_load(&r->tag), by->tag);
    return r->status;
}

/* It has no request left to READ with: it says so, and is asked again until it has. */
START_TEST(a_first_lane_without_room_is_asked_again)
{
    struct wr *taken = NULL, *one;
    begin();
    struct lane *first = w->node[FIRST].lane;
    while ((one = lane_own_read_take(first)) != NULL) {
        one->next = taken;
        taken = one;
    }
    hold = true;
    post_connect(&k, 77);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    hold = false;
    pass_on(&held[0]);
    for (uint32_t i = 0; i < 50 && relayed == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(relayed, 1);
    ck_assert_int_eq(last_status, -EAGAIN);
    while ((one = taken) != NULL) {
        taken = one->next;
        lane_own_read_give(first, one);
    }
    world_run(w, PASSES);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 1);
    ck_assert_int_eq(last_status, IBV_WC_SUCCESS);
    ck_assert_int_eq(reply_status(&k), -ENOENT); /* nobody has that GID */
    expect_nothing_out();
    end();
}
END_TEST

/* Its queue pair there is full: likewise. */
START_TEST(a_first_lane_whose_queue_pair_is_full_is_asked_again)
{
    begin();
    struct physical_qp *p = w->node[FIRST].lane->metaserver_phys[0];
    const uint32_t depth = p->depth;
    hold = true;
    post_connect(&k, 77);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    hold = false;
    p->depth = 0;
    pass_on(&held[0]);
    for (uint32_t i = 0; i < 50 && relayed == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(relayed, 1);
    ck_assert_int_eq(last_status, -EAGAIN);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 0);
    p->depth = depth;
    world_run(w, PASSES);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 1);
    ck_assert_int_eq(reply_status(&k), -ENOENT);
    expect_nothing_out();
    end();
}
END_TEST

/* A READ that fails is said to have failed: what is in the memory by then is looked at by nobody,
 * and the first lane knows that its metaserver was silent. */
START_TEST(a_read_that_fails_is_no_answer)
{
    begin();
    hold = true;
    post_connect(&k, 77);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    held[0].want_relay.addr ^= UINT64_C(1) << 60;
    ck_assert_uint_eq(w->node[FIRST].lane->silence[0].until_ns, 0);
    pass_on(&held[0]);
    for (uint32_t i = 0; i < PASSES && relayed == 0; i++)
        world_run(w, 1);
    ck_assert_uint_eq(relayed, 1);
    ck_assert_int_eq(last_status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_ne(w->node[FIRST].lane->silence[0].until_ns, 0);
    world_run(w, 50);
    ck_assert_int_eq(reply_status(&k), -EHOSTUNREACH);
    expect_nothing_out();
    end();
}
END_TEST

/* The table is that one's, and its key says nothing of another. */
START_TEST(a_metaserver_that_the_first_lane_does_not_have_is_not_read)
{
    begin();
    hold = true;
    post_connect(&k, 77);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    held[0].want_relay.metaserver++;
    pass_on(&held[0]);
    world_run(w, 50);
    ck_assert_uint_eq(relayed, 1);
    ck_assert_int_eq(last_status, -ENOTCONN);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 0);
    expect_nothing_out();
    end();
}
END_TEST

/* The first lane has two of them, in another order than that of their numbers. */
static void tell_first_of_two(void)
{
    struct world_node *n = &w->node[FIRST];
    struct lane_command two = {.kind = LANE_COMMAND_METASERVERS, .metaservers.count = 2};
    (void)world_rc_metaserver(w, n);
    for (uint32_t i = 0; i < 2; i++) {
        struct lane_metaserver *m = &two.metaservers.at[i];
        world_tables(w, m);
        m->number = 1 - i;
        m->qp = i == 0 ? n->metaserver_qp : n->former_qp;
    }
    order(FIRST, &two);
    world_run(w, 2);
}

/* What comes back is that one's answer, and the other has said nothing. */
START_TEST(of_two_the_one_that_was_read_is_heard)
{
    begin();
    tell_first_of_two();
    const struct lane *first = w->node[FIRST].lane;
    const struct silence *other = &first->silence[0], *asked = &first->silence[1];
    ck_assert_uint_eq(asked->heard_ns, 0);
    post_connect(&k, 77);
    world_run(w, PASSES);
    ck_assert_int_eq(last_status, IBV_WC_SUCCESS);
    ck_assert_int_eq(reply_status(&k), -ENOENT);
    ck_assert_uint_ne(asked->heard_ns, 0);
    ck_assert_uint_eq(other->heard_ns, 0);

    hold = true;
    post_connect(&k, 78);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    held[0].want_relay.addr ^= UINT64_C(1) << 60;
    pass_on(&held[0]);
    world_run(w, PASSES);
    ck_assert_int_eq(last_status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_ne(asked->last_ns, 0);
    ck_assert_uint_eq(other->last_ns, 0);
    ck_assert_ptr_nonnull(first->metaserver_phys[0]); /* which was not used */
    ck_assert_int_eq(reply_status(&k), -EHOSTUNREACH);
    expect_nothing_out();
    end();
}
END_TEST

static void post_name(struct world_worker *by, const char *text)
{
    struct schema_sq_desc name = {0};
    struct schema_sq_desc d = {.op = SCHEMA_OP_LOOKUP,
                               .slots = 2,
                               .lookup = {.tag = ++by->tag, .length = (uint8_t)strlen(text)}};
    memcpy(&name, text, strlen(text));
    world_post(by, &d);
    world_post(by, &name);
    lane_doorbell(w->node[FURTHER].lane, by->id);
}

/* Names are in a table of their own. */
START_TEST(a_name_is_looked_up_by_the_first_lane)
{
    begin();
    post_name(&k, "nothing");
    world_run(w, PASSES);
    ck_assert_uint_ge(relayed, 1);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, relayed);
    ck_assert_int_eq(last_status, IBV_WC_SUCCESS);
    ck_assert_int_eq(reply_status(&k), -ENOENT);
    expect_nothing_out();
    end();
}
END_TEST

/* Of a table that is not there only log2_slots says anything. */
START_TEST(names_that_the_first_lane_s_metaserver_has_not_are_not_read)
{
    begin();
    struct lane_command list = list_of(false);
    list.metaservers.at[0].qp = w->node[FIRST].metaserver_qp;
    list.metaservers.at[0].names.log2_slots = 0;
    order(FIRST, &list);
    post_name(&k, "nothing");
    world_run(w, PASSES);
    ck_assert_uint_ge(relayed, 1);
    ck_assert_int_eq(last_status, -ENOTCONN);
    ck_assert_uint_eq(world_stats(w, FIRST).relays, 0);
    ck_assert_int_eq(reply_status(&k), -EHOSTUNREACH);
    expect_nothing_out();
    end();
}
END_TEST

/* Answers that come when nobody waits for them any more: their worker is gone, or the lane has a
 * queue pair of its own again. */
START_TEST(late_answers_harm_nobody)
{
    begin();
    hold = true;
    post_connect(&k, 77);
    world_run(w, 10);
    ck_assert_uint_eq(held_count, 1);
    world_detach(w, &k);
    world_attach(w, &k, FURTHER, 0, TENANT);
    hold = false;
    w->node[FURTHER].no_metaserver = false;
    world_tell_metaserver(w, &w->node[FURTHER]);
    ck_assert_int_eq(world_connect(w, &k, 0, OWNER), 0); /* by its own */
    ck_assert_uint_eq(wanted, 1);
    pass_on(&held[0]);
    world_run(w, 50);
    ck_assert_uint_eq(relayed, 1);
    expect_nothing_out();
    ck_assert_int_eq(world_connect(w, &k, 1, FIRST), 0);
    end();
}
END_TEST

/* While those of one tenant wait, another's are relayed. */
START_TEST(a_tenant_leaves_some_to_others)
{
    begin();
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], FURTHER, i + 1, TENANT);
    hold = true;
    for (uint32_t i = 0; i < CROWD; i++)
        post_connect(&crowd[i], 1000 + i);
    world_run(w, 20);
    ck_assert_uint_gt(held_count, 1);
    ck_assert_uint_lt(held_count, LANE_RELAYS_OF_LANE);
    world_detach(w, &k);
    world_attach(w, &k, FURTHER, 0, TENANT + 1);
    const uint32_t before = held_count;
    post_connect(&k, 2000);
    world_run(w, 20);
    ck_assert_uint_eq(held_count, before + 1);
    hold = false;
    for (uint32_t i = 0; i < held_count; i++)
        pass_on(&held[i]);
    world_run(w, PASSES);
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    expect_nothing_out();
    end();
}
END_TEST

/* The first lane has its own lookups meanwhile. */
START_TEST(many_that_are_unknown_are_asked_for_by_turns)
{
    struct world_worker own;
    begin();
    for (uint32_t i = 0; i < CROWD; i++)
        world_attach(w, &crowd[i], FURTHER, i + 1, 1 + i % WORLD_TENANTS);
    world_attach(w, &own, FIRST, 0, TENANT);
    for (uint32_t i = 0; i < CROWD; i++)
        post_connect(&crowd[i], 1000 + i);
    ck_assert_int_eq(world_connect(w, &own, 0, OWNER), 0);
    world_run(w, PASSES);
    for (uint32_t i = 0; i < CROWD; i++) {
        ck_assert_int_eq(reply_status(&crowd[i]), -ENOENT);
    }
    ck_assert_uint_eq(relayed, CROWD);
    expect_nothing_out();
    for (uint32_t i = 0; i < CROWD; i++)
        world_detach(w, &crowd[i]);
    world_detach(w, &own);
    end();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(who_is_unknown_is_looked_up_by_the_first_lane)                                               \
    T(one_for_which_there_is_no_room_asks_again)                                                   \
    T(a_table_that_the_first_lane_does_not_have_is_not_read)                                       \
    T(a_first_lane_without_room_is_asked_again)                                                    \
    T(a_first_lane_whose_queue_pair_is_full_is_asked_again)                                        \
    T(a_read_that_fails_is_no_answer)                                                              \
    T(a_metaserver_that_the_first_lane_does_not_have_is_not_read)                                  \
    T(of_two_the_one_that_was_read_is_heard)                                                       \
    T(a_name_is_looked_up_by_the_first_lane)                                                       \
    T(names_that_the_first_lane_s_metaserver_has_not_are_not_read)                                 \
    T(late_answers_harm_nobody)                                                                    \
    T(a_tenant_leaves_some_to_others)                                                              \
    T(many_that_are_unknown_are_asked_for_by_turns)
KEDGE_CHECK_MAIN("agent.lane.relay", TESTS)
