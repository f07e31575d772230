/* SPDX-License-Identifier: Apache-2.0 */
/* Several large messages of one VQP under way at a time, to a worker of another node: they are READ
 * together, and each is delivered, refused or fails in its turn. */
#include <stdio.h>
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "message_state.h" /* before a w that they would hide */
#include "receive/large.h"
#include "vqp_state.h"

#include "message_pair.h"
#include "world_rc.h"

enum { LARGE = SCHEMA_MESSAGE_MOST + 1, PLACE = 20000, SLOW = 20, LONG = 300000 };

/* What that device has to say comes so many polls later. */
static void delay_node(uint32_t node, uint32_t polls)
{
    const struct fault_plan plan = {
        .seed = 1, .delay_ppm = polls == 0 ? 0 : 1000000, .delay_polls = polls};
    fault_set_plan(w.node[node].fab, &plan);
}

static void delay(uint32_t polls)
{
    delay_node(0, polls);
    delay_node(1, polls);
}

static void begin_together(void)
{
    world_fault = (struct fault_plan){.seed = 1};
    begin();
    for (uint32_t i = 0; i < WORLD_ARENA; i++) {
        *memory_of(&sender, i) = (uint8_t)(i * 7 + i / 256 + 1);
        *memory_of(&receiver, i) = 0;
    }
}

static void end_together(void)
{
    end();
    world_fault.seed = 0;
}

static void send_large(uint64_t wr_id, uint32_t length)
{
    post(&sender, world_message(SCHEMA_OP_SEND, wr_id, wr_id, length));
}

static struct schema_cqe hear(uint64_t wr_id)
{
    struct schema_cqe e;
    struct schema_cqe_sender from;
    ck_assert(world_hear(&w, &receiver, &e, &from, 10 * PATIENCE));
    ck_assert_uint_eq(e.wr_id, wr_id);
    return e;
}

/* Into the buffer of the same number. */
static void hear_whole(uint64_t wr_id, uint64_t sent, uint32_t length)
{
    const struct schema_cqe e = hear(wr_id);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, length);
    ck_assert_mem_eq(memory_of(&receiver, wr_id % 3 * PLACE), memory_of(&sender, sent), length);
}

static void expect_sent(uint64_t wr_id, enum ibv_wc_status status)
{
    const struct schema_cqe e = world_done(&w, &sender, 100 * PATIENCE);
    ck_assert_uint_eq(e.wr_id, wr_id);
    ck_assert_uint_eq(e.status, status);
}

static void post_buffer(uint64_t wr_id, uint32_t length)
{
    post_receive(wr_id, wr_id % 3 * PLACE, length);
}

/* The stream that is heard. */
static const struct stream_receiver *find_stream(void)
{
    const struct exchange *x = &w.node[1].lane->messages->exchange;
    for (uint32_t i = 0; i < x->config.receivers; i++)
        if (x->receiver[i].name != 0 && !x->receiver[i].ended)
            return &x->receiver[i];
    return NULL;
}

static struct session *find_session(uint32_t node, const struct world_worker *k)
{
    return &w.node[node].lane->sessions[k->id];
}

/* The one that is sent. */
static const struct stream_out *find_out(void)
{
    return &find_session(0, &sender)->vqps[0].messages->sender.out;
}

static uint32_t count_used(void)
{
    const struct large_read *g;
    uint32_t n = 0;
    TAILQ_FOREACH(g, &w.node[1].lane->messages->large_used, by_use)
        n++;
    return n;
}

/* Runs until so many are READ at a time. */
static void run_until_read(uint32_t count)
{
    for (int i = 0; count_used() < count && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(count_used(), count);
}

/* The first one, after which all that is asked for once is known. */
static void send_first(void)
{
    post_buffer(0, LARGE);
    send_large(0, LARGE);
    hear_whole(0, 0, LARGE);
    expect_sent(0, IBV_WC_SUCCESS);
}

/* Passes of both lanes until all three are there, and their sender knows. */
static uint32_t count_passes(uint32_t at_a_time)
{
    uint32_t passes = 0, sent = 0, known = 0;
    struct schema_cqe e;
    struct schema_cqe_sender from;
    for (uint64_t i = 0; i < 3; i++)
        post_buffer(i, LARGE);
    while (known < 3) {
        while (sent < 3 && sent - known < at_a_time)
            send_large(sent++, LARGE);
        world_run(&w, 1);
        passes++;
        while (world_hear(&w, &receiver, &e, &from, 0))
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        while (world_poll(&w, &sender, &e, 0)) {
            ck_assert_uint_eq(e.wr_id, known++);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        }
        ck_assert_uint_lt(passes, PATIENCE);
    }
    return passes;
}

static uint32_t lower_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

START_TEST(three_take_little_longer_than_one_where_the_way_is_long)
{
    uint32_t apart = UINT32_MAX, together = UINT32_MAX;
    begin_together();
    send_first();
    delay(SLOW);
    for (int i = 0; i < 5; i++) { /* `soft` moves what is long by the clock, and may add some */
        apart = lower_of(apart, count_passes(1));
        together = lower_of(together, count_passes(3));
    }
    printf("%u passes, and %u one at a time\n", together, apart);
    delay(0);
    ck_assert_msg(2 * together < apart, "%u passes for %u", together, apart);
    end_together();
}
END_TEST

START_TEST(several_are_read_at_a_time_and_come_in_their_order)
{
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE + (uint32_t)i);
    run_until_read(3);
    ck_assert_uint_eq(find_stream()->reads, 3);
    delay(0);
    for (uint64_t i = 1; i <= 3; i++)
        hear_whole(i, i, LARGE + (uint32_t)i);
    for (uint64_t i = 1; i <= 3; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(find_stream()->reads, 0);
    end_together();
}
END_TEST

/* The second half of the first is READ behind the next one, which waits for it then. */
START_TEST(one_that_is_here_before_the_one_before_it_comes_behind_it)
{
    const struct schema_sq_sges halves = {
        .sge = {{.offset = 1, .length = 9000}, {.offset = 9001, .length = LARGE - 9000}}};
    struct schema_sq_desc d = world_message(SCHEMA_OP_SEND, 1, 0, 0);
    bool waited = false;
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 2; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    d.num_sge = 2;
    d.slots = 2;
    world_post(&sender, &d);
    world_post(&sender, (const void *)&halves);
    send_large(2, LARGE);
    run_until_read(2);
    const uint64_t since_ns = w.now_ns;
    for (int i = 0; count_used() > 0 && i < PATIENCE; i++) {
        const struct large_read *g = TAILQ_LAST(&w.node[1].lane->messages->large_used, large_list);
        waited |= g->number == find_stream()->in.next + 1 && g->state == LARGE_DELIVERS;
        world_run(&w, 1);
    }
    ck_assert(waited);
    ck_assert_uint_lt(w.now_ns - since_ns, 500000); /* at once, and not when all are looked at */
    for (uint64_t i = 1; i <= 2; i++)
        hear_whole(i, i, LARGE);
    for (uint64_t i = 1; i <= 2; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    delay(0);
    end_together();
}
END_TEST

START_TEST(a_small_one_behind_several_comes_last)
{
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    post_receive(4, 3 * PLACE, 64);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    send_large(4, 8);
    run_until_read(3);
    for (int i = 0; count_used() == 3 && i < PATIENCE; i++) {
        world_run(&w, 1);
        ck_assert_uint_eq(find_stream()->stops, 0); /* and does not come before */
    }
    delay(0);
    for (uint64_t i = 1; i <= 3; i++)
        hear_whole(i, i, LARGE);
    ck_assert_uint_eq(hear(4).status, IBV_WC_SUCCESS);
    ck_assert_mem_eq(memory_of(&receiver, 3 * PLACE), memory_of(&sender, 4), 8);
    for (uint64_t i = 1; i <= 4; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    end_together();
}
END_TEST

/* Who came ahead of a buffer is told so when those before it are over, and comes at once. */
START_TEST(one_without_a_buffer_comes_when_there_is_one)
{
    begin_together();
    send_first();
    post_buffer(1, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    run_until_read(1);
    for (uint32_t i = 0; find_stream()->stops == 0 && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(find_stream()->stops, SCHEMA_NOTE_ANSWER);
    post_buffer(2, PLACE);
    post_buffer(3, PLACE);
    delay(0);
    const uint64_t since_ns = w.now_ns;
    for (uint64_t i = 1; i <= 3; i++)
        hear_whole(i, i, LARGE);
    ck_assert_uint_lt(w.now_ns - since_ns, w.node[0].res.messages.ask_ns);
    for (uint64_t i = 1; i <= 3; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(&w, 0).messages_rnr, 0);
    end_together();
}
END_TEST

START_TEST(one_longer_than_its_buffer_fails_in_its_turn)
{
    begin_together();
    send_first();
    post_buffer(1, PLACE);
    post_buffer(2, LARGE - 1);
    post_buffer(3, PLACE);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    hear_whole(1, 1, LARGE);
    ck_assert_uint_eq(hear(2).status, IBV_WC_LOC_LEN_ERR);
    expect_sent(1, IBV_WC_SUCCESS);
    expect_sent(2, IBV_WC_REM_INV_REQ_ERR);
    const struct schema_cqe e = world_done(&w, &sender, PATIENCE);
    ck_assert_uint_eq(e.wr_id, 3);
    ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_BEHIND); /* nobody takes it any more */
    ck_assert_uint_eq(count_used(), 0);
    end_together();
}
END_TEST

/* How many of ten the device has been given when none of them is over, and that they come. */
START_TEST(no_more_than_eight_are_announced_before_the_first_is_over)
{
    enum { MANY = 10, EIGHT = 8 };
    world_receives = 8 * MANY; /* so that there is credit for all */
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= MANY; i++)
        post_buffer(i, PLACE);
    delay(SLOW * SLOW);
    for (uint64_t i = 1; i <= MANY; i++)
        send_large(i, LARGE);
    world_run(&w, SLOW);
    const struct stream_out *out = find_out();
    ck_assert_uint_eq(out->next - out->first, EIGHT);
    delay(0);
    for (uint64_t i = 1; i <= MANY; i++)
        ck_assert_uint_eq(hear(i).status, IBV_WC_SUCCESS);
    for (uint64_t i = 1; i <= MANY; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    end_together();
    world_receives = 0;
}
END_TEST

/* Its port may be another VQP's by now, of another session even, while they are READ on a VQP of
 * the session that heard the first. */
START_TEST(one_for_another_vqp_is_not_read_with_them)
{
    enum { OTHER = 4 };
    struct schema_sq_desc d = world_message(SCHEMA_OP_RECV, 9, 0, PLACE);
    struct schema_message next = {.parts = 1, .length = LARGE, .from_tenant = TENANT};
    begin_together();
    send_first();
    d.vqp = OTHER;
    post(&receiver, d);
    post_buffer(1, PLACE);
    post_buffer(2, PLACE);
    delay(SLOW);
    send_large(1, LARGE);
    run_until_read(1);
    struct lane *l = w.node[1].lane;
    const struct vqp *vqps = find_session(1, &receiver)->vqps;
    ck_assert(lane_large_may_join(l, find_stream(), &vqps[3], &next));
    ck_assert(!lane_large_may_join(l, find_stream(), &vqps[OTHER], &next));
    next.length = PLACE + 1;
    ck_assert(!lane_large_may_join(l, find_stream(), &vqps[3], &next));
    next = (struct schema_message){.length = 8, .from_tenant = TENANT};
    ck_assert(!lane_large_may_join(l, find_stream(), &vqps[3], &next));
    delay(0);
    hear_whole(1, 1, LARGE);
    expect_sent(1, IBV_WC_SUCCESS);
    end_together();
}
END_TEST

/* With few places left each stream has one alone, so that nobody else's is refused for its sake. */
START_TEST(where_few_places_are_left_one_of_a_stream_is_read)
{
    enum { FEW = 8 };
    begin_together();
    send_first();
    struct messages *all = w.node[1].lane->messages;
    const uint32_t share = find_session(1, &receiver)->tenant_slot + 1;
    const uint32_t taken = lane_places_left(&all->large_places, share) - FEW;
    for (uint32_t i = 0; i < taken; i++)
        ck_assert(lane_places_take(&all->large_places, share));
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    uint32_t most = 0;
    for (int i = 0; i < 20 * SLOW; i++) {
        world_run(&w, 1);
        most = count_used() > most ? count_used() : most;
    }
    ck_assert_uint_eq(most, 1);
    delay(0);
    for (uint64_t i = 1; i <= 3; i++)
        hear_whole(i, i, LARGE);
    for (uint64_t i = 1; i <= 3; i++)
        expect_sent(i, IBV_WC_SUCCESS);
    for (uint32_t i = 0; i < taken; i++)
        lane_places_give(&all->large_places, share);
    end_together();
}
END_TEST

/* Of those that no READ could fetch each goes again, and their buffers are in order before others.
 */
START_TEST(buffers_of_those_that_could_not_be_read_are_posted_in_their_order)
{
    struct schema_cqe e;
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 4; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    run_until_read(3);
    world_take_away(&w, &sender); /* its arena's registration */
    delay(0);
    for (uint64_t i = 1; i <= 3; i++) {
        e = world_done(&w, &sender, 100 * PATIENCE);
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    }
    for (int i = 0; count_used() > 0 && i < 20 * PATIENCE; i++) /* its tenant's requests rest */
        world_run(&w, 1);
    ck_assert_uint_eq(count_used(), 0);
    const struct wr *r = w.node[1].lane->sessions[receiver.id].vqps[3].messages->receives.head;
    for (uint64_t i = 1; i <= 4; i++, r = r->next)
        ck_assert_uint_eq(r->wr_id, i);
    ck_assert_ptr_null(r);
    end_together();
}
END_TEST

/* Those before it may be READ yet: all end in their order, when that is over. */
START_TEST(who_hears_that_its_peer_is_silent_may_use_the_memory_of_all)
{
    struct schema_cqe e;
    begin_together();
    if (w.rc) { /* whose nodes cannot be silenced */
        end_together();
        return;
    }
    send_first();
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 2; i++)
        send_large(i, LARGE);
    run_until_read(2);
    delay_node(0, 0);
    delay_node(1, LONG); /* it READs them until after the lease */
    world_silence_node(&w, 1);
    send_large(3, LARGE);
    uint64_t gone_ns = 0;
    bool ended = false;
    for (int i = 0; i < 100 * PATIENCE && !(ended = world_poll(&w, &sender, &e, 1)); i++)
        if (gone_ns == 0 && world_stats(&w, 0).mrs == 0)
            gone_ns = w.now_ns;
    ck_assert(ended);
    ck_assert_uint_eq(e.wr_id, 1);
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_ne(gone_ns, 0);
    ck_assert_uint_ge(w.now_ns - gone_ns, w.node[0].config.mr_lease_ns);
    expect_sent(2, IBV_WC_WR_FLUSH_ERR);
    expect_sent(3, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(count_used(), 2);
    for (int i = 0; count_used() > 0 && i < 2 * LONG; i++)
        world_run(&w, 1);
    delay(0);
    end_together();
}
END_TEST

START_TEST(a_vqp_that_is_destroyed_takes_back_what_all_of_its_messages_had)
{
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    run_until_read(3);
    post(&sender, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1});
    for (int i = 0; world_stats(&w, 0).mrs > 0 && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(world_stats(&w, 0).mrs, 0);
    delay(0);
    for (int i = 0; count_used() > 0 && i < PATIENCE; i++)
        world_run(&w, 1);
    ck_assert_uint_eq(count_used(), 0);
    const struct session *s = &w.node[1].lane->sessions[receiver.id];
    for (uint32_t i = 0; i < LANE_OWN_VQPS; i++)
        ck_assert_uint_eq(s->own[i].count | s->own[i].bytes, 0);
    end_together();
}
END_TEST

START_TEST(a_receiver_that_dies_leaves_all_of_them_an_error)
{
    begin_together();
    send_first();
    for (uint64_t i = 1; i <= 3; i++)
        post_buffer(i, PLACE);
    delay(SLOW);
    for (uint64_t i = 1; i <= 3; i++)
        send_large(i, LARGE);
    run_until_read(3);
    delay(0);
    post(&receiver, (struct schema_sq_desc){.op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = 3});
    const uint64_t since_ns = w.now_ns;
    expect_sent(1, IBV_WC_REM_OP_ERR);
    ck_assert_uint_lt(w.now_ns - since_ns, w.node[0].res.messages.ask_ns); /* it did not ask */
    expect_sent(2, IBV_WC_WR_FLUSH_ERR);
    expect_sent(3, IBV_WC_WR_FLUSH_ERR);
    end_together();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(three_take_little_longer_than_one_where_the_way_is_long)                                     \
    T(several_are_read_at_a_time_and_come_in_their_order)                                          \
    T(one_that_is_here_before_the_one_before_it_comes_behind_it)                                   \
    T(a_small_one_behind_several_comes_last)                                                       \
    T(one_without_a_buffer_comes_when_there_is_one)                                                \
    T(no_more_than_eight_are_announced_before_the_first_is_over)                                   \
    T(one_for_another_vqp_is_not_read_with_them)                                                   \
    T(where_few_places_are_left_one_of_a_stream_is_read)                                           \
    T(one_longer_than_its_buffer_fails_in_its_turn)                                                \
    T(buffers_of_those_that_could_not_be_read_are_posted_in_their_order)                           \
    T(who_hears_that_its_peer_is_silent_may_use_the_memory_of_all)                                 \
    T(a_vqp_that_is_destroyed_takes_back_what_all_of_its_messages_had)                             \
    T(a_receiver_that_dies_leaves_all_of_them_an_error)
KEDGE_CHECK_MAIN("agent.lane.larges_together", TESTS)
