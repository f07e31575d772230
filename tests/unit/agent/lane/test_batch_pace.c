/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a batch is out at a time, alone and beside others, and which requests of it the
 * device completes. */
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "schedule/batch_pace.h"
#include "session_state.h"
#include "world_batch.h"
#include "world_held.h"
#include "world_merge.h"
#include "world_rc.h"

enum {
    PASSES = 400000,
    SETTLE = 20, /* passes, in which all goes that may, and nobody is held to be silent */
    BLOCK = 512,
    BLOCKS = WORLD_ARENA / BLOCK,
    MANY = 2000,
    RATE = 1000, /* bytes in a microsecond */
    QUICK = 10 * RATE,
    COST = 256 /* a piece counts as so many bytes more */
};

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;
static struct schema_batch_entry entry[MANY];

static void open_scene(uint32_t workers)
{
    world_mergers_open(w, &m, workers);
    for (uint32_t b = 0; b < WORLD_ARENA; b++)
        ((uint8_t *)m.worker[0].arena.addr)[b] = (uint8_t)(b / BLOCK + b % 7 + 1);
    memset(m.owner.arena.addr, 0, WORLD_ARENA);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_uint_eq(w->node[0].lane->batches.pace.out, 0);
    world_watch_end();
    world_mergers_close(w, &m);
}

/* WRITEs that go round the arena, one behind the other. */
static struct world_batch make(uint32_t count, uint32_t length)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)i * length % WORLD_ARENA;
        entry[i] = world_entry(at, length, m.vkey, at);
    }
    return world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, count);
}

static void expect_good(const struct world_batch *b, uint32_t count)
{
    const struct schema_cqe e = world_done(w, b->worker, PASSES);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(b)->done, count);
}

static void post_read(void)
{
    const struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, 1, 0, 8, m.vkey, 0);
    world_post(&m.worker[1], &d);
    lane_doorbell(w->node[0].lane, m.worker[1].id);
}

/* ---- how much is out */

/* What the device is given while it completes nothing. */
static uint64_t count_out(uint32_t workers, uint32_t length)
{
    open_scene(workers);
    const struct world_batch b = make(MANY, length);
    if (workers > 1) { /* somebody was here just now */
        post_read();
        ck_assert_uint_eq(world_done(w, &m.worker[1], PASSES).status, IBV_WC_SUCCESS);
    }
    const uint64_t before = posts->bytes;
    world_hold(&w->node[0], NULL);
    world_batch_post(w, &b, 1, 0, 0);
    world_run(w, SETTLE);
    const uint64_t out = posts->bytes - before;
    uint32_t waits[SCHEMA_WAITS];
    lane_waits(m.worker[0].memory, false, waits);
    ck_assert_uint_eq(waits[SCHEMA_WAIT_BATCHES], 1);
    world_held_end();
    expect_good(&b, MANY);
    close_scene();
    return out;
}

START_TEST(of_a_batch_alone_128_kib_are_out_and_beside_others_one_piece)
{
    const uint64_t alone = count_out(1, BLOCK), beside = count_out(2, BLOCK);
    ck_assert_uint_le(alone, 128 * 1024);
    ck_assert_uint_gt(alone, 64 * 1024);
    ck_assert_uint_eq(beside, 1024);
}
END_TEST

START_TEST(where_the_rate_is_known_it_is_what_the_port_carries_in_a_time)
{
    enum { LENGTH = 8192 };
    world_apart = true; /* each is a piece */
    world_port_rate = QUICK * 1000ull;
    const uint64_t alone = count_out(1, LENGTH), beside = count_out(2, BLOCK);
    world_port_rate = RATE * 1000ull;
    const uint64_t slow = count_out(2, BLOCK);
    world_apart = false;
    world_port_rate = 0;
    ck_assert_uint_eq(alone, QUICK * 20 / (LENGTH + COST) * LENGTH);
    ck_assert_uint_eq(beside, QUICK * 2 / (BLOCK + COST) * BLOCK); /* as long as nothing is known */
    ck_assert_uint_eq(slow, RATE * 2 / (BLOCK + COST) * BLOCK);
}
END_TEST

/* A port that carries what is posted one behind the other, and then so many passes of 1 us pass
 * until its completion: what was posted after each pass, and when that is back. */
enum { PORT_PASSES = 200 };
static struct {
    uint32_t posted[PORT_PASSES], given, next;
    uint64_t back_ns[PORT_PASSES], free_ns, bytes;
} port;

static void carry(uint32_t pass, uint64_t trip_ns)
{
    const uint64_t bytes = posts->bytes - port.bytes, now_ns = w->node[0].lane->now_ns;
    if (port.free_ns < now_ns)
        port.free_ns = now_ns;
    port.free_ns += bytes * 1000 / QUICK;
    port.bytes = posts->bytes;
    port.posted[pass] = posts->signaled;
    port.back_ns[pass] = port.free_ns + trip_ns;
}

static void give_back(uint32_t pass)
{
    for (; port.next < pass && port.back_ns[port.next] <= w->node[0].lane->now_ns; port.next++) {
        world_give_some((int)(port.posted[port.next] - port.given));
        port.given = port.posted[port.next];
    }
}

/* What the device has of a batch beside somebody who reads, when pieces took so long there and back
 * for a while, and for a time in the middle `queued_ns`. */
static uint64_t count_out_after(uint64_t trip_ns, uint64_t queued_ns)
{
    enum { FROM = 80, TO = 150, LENGTH = 2048 };
    world_bound_ns = 400000000;
    world_port_rate = QUICK * 1000ull;
    world_apart = true;
    open_scene(2);
    post_read();
    ck_assert_uint_eq(world_done(w, &m.worker[1], PASSES).status, IBV_WC_SUCCESS);
    const struct world_batch b = make(MANY, LENGTH);
    const uint64_t before = posts->bytes;
    memset(&port, 0, sizeof port);
    port.bytes = before;
    port.given = posts->signaled;
    world_batch_post(w, &b, 1, 0, 0);
    world_hold(&w->node[0], NULL);
    for (uint32_t i = 0; i < PORT_PASSES; i++) {
        give_back(i);
        world_run(w, 1);
        carry(i, i > FROM && i < TO ? queued_ns : trip_ns);
    }
    world_run(w, SETTLE);
    const uint64_t out = posts->bytes - before - world_batch_shown(&b)->done * (uint64_t)LENGTH;
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 0);
    world_held_end();
    expect_good(&b, MANY);
    close_scene();
    world_apart = false;
    world_port_rate = 0;
    world_bound_ns = 0;
    return out;
}

/* So a READ beside it stands behind what takes as long as the READ itself. A pass, and how long the
 * lane's pieces wait for one, are in what it sees. */
START_TEST(beside_others_as_much_is_out_as_the_port_carries_there_and_back)
{
    const uint64_t near = count_out_after(1500, 1500), far = count_out_after(5000, 5000);
    ck_assert_uint_le(near, 3 * QUICK);
    ck_assert_uint_gt(far, 4 * QUICK);
    ck_assert_uint_le(far, 7 * QUICK);
}
END_TEST

START_TEST(what_takes_longer_for_a_while_has_queued_and_does_not_count)
{
    ck_assert_uint_le(count_out_after(1500, 40000), 4 * QUICK);
}
END_TEST

/* One piece goes, and comes back: how long pieces are then. */
static uint64_t piece_after(struct lane *l, const struct wr *piece, uint64_t at_ns,
                            uint64_t trip_ns, bool well)
{
    l->now_ns = at_ns;
    lane_batch_pace_posted(l, piece);
    l->now_ns += (piece->length + COST) * 1000 / QUICK + trip_ns;
    lane_batch_pace_back(l, piece, well);
    return lane_batch_pace_piece(l);
}

START_TEST(the_least_of_the_last_two_spans_counts_and_then_it_is_forgotten)
{
    enum {
        MS = 1000000,
        NEAR = 1500 * QUICK / 4000 / 64 * 64,
        FAR = 5000 * QUICK / 4000 / 64 * 64
    };
    world_port_rate = QUICK * 1000ull;
    open_scene(1);
    struct lane *l = w->node[0].lane;
    const uint64_t now_ns = l->now_ns;
    struct flow to = {.peer_slot = 1};
    const struct wr piece = {
        .session = &l->sessions[m.worker[0].id], .flow = &to, .length = BLOCK, .signaled = 1};
    ck_assert_uint_eq(piece_after(l, &piece, now_ns, 1500, true), NEAR);
    ck_assert_uint_eq(piece_after(l, &piece, now_ns + 5 * MS, 5000, true), NEAR);
    ck_assert_uint_eq(piece_after(l, &piece, now_ns + 12 * MS, 5000, true), NEAR);
    ck_assert_uint_eq(piece_after(l, &piece, now_ns + 23 * MS, 5000, true), FAR);
    ck_assert_uint_eq(piece_after(l, &piece, now_ns + 24 * MS, 1500, false), FAR); /* it failed */
    l->now_ns = now_ns;
    close_scene();
    world_port_rate = 0;
}
END_TEST

START_TEST(no_more_than_8_us_of_the_port_are_out_beside_others_however_far_the_peer_is)
{
    const uint64_t out = count_out_after(40000, 40000);
    ck_assert_uint_le(out, 8 * QUICK);
    ck_assert_uint_gt(out, 6 * QUICK);
}
END_TEST

/* While one is on its way back the other one is carried: a port of 25 Gb/s carries less than one in
 * 20 us, and would be idle for a round trip behind each. */
START_TEST(two_whole_pieces_are_out_of_a_batch_alone_whatever_the_port_carries)
{
    enum { WHOLE = 64 * 1024, LENGTH = WHOLE / 64 };
    ck_assert_uint_eq(count_out(1, LENGTH), 2 * WHOLE);
    world_port_rate = 3125 * 1000ull;
    const uint64_t out = count_out(1, LENGTH);
    world_port_rate = 0;
    ck_assert_uint_eq(out, 2 * WHOLE);
}
END_TEST

START_TEST(when_a_piece_is_over_the_next_one_goes)
{
    open_scene(2);
    const struct world_batch b = make(MANY, BLOCK);
    world_hold(&w->node[0], NULL);
    world_batch_post(w, &b, 1, 0, 0);
    world_run(w, SETTLE);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t before = posts->requests;
        world_give_some(1);
        world_run(w, 3);
        ck_assert_uint_eq(posts->requests - before, 1);
    }
    world_held_end();
    expect_good(&b, MANY);
    close_scene();
}
END_TEST

/* ---- who goes first */

static void expect_read_is_over(void)
{
    struct schema_cqe e;
    ck_assert(world_poll(w, &m.worker[1], &e, 0));
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
}

/* The device may carry out a piece at its doorbell, and the lane stands still for it. */
START_TEST(a_piece_goes_behind_what_others_had_in_the_pass_when_they_have_been_told)
{
    enum { ROUNDS = 40 };
    open_scene(2);
    const struct world_batch b = make(MANY, BLOCK);
    world_batch_post(w, &b, 1, 0, 0);
    world_run(w, 1);
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t before = posts->requests;
        post_read();
        posts->before = expect_read_is_over; /* at the latest then */
        posts->before_request = before + 2;
        world_run(w, 1);
        ck_assert_ptr_null(posts->before);
        ck_assert_uint_eq(posts->requests - before, 2);
    }
    ck_assert_uint_eq(world_batch_shown(&b)->ended, 0);
    expect_good(&b, MANY);
    close_scene();
}
END_TEST

START_TEST(beside_others_two_batches_have_as_much_each)
{
    enum { ROUNDS = 200 };
    static struct schema_batch_entry second[MANY];
    open_scene(3);
    const struct world_batch first = make(MANY, BLOCK);
    for (uint32_t i = 0; i < MANY; i++)
        second[i] = world_entry((uint64_t)i * BLOCK % WORLD_ARENA, BLOCK, m.vkey,
                                (uint64_t)i * BLOCK % WORLD_ARENA);
    const struct world_batch other =
        world_batch_make(w, &m.worker[2], SCHEMA_OP_WRITE, second, MANY);
    world_batch_post(w, &first, 1, 0, 0);
    world_batch_post(w, &other, 2, 0, 0);
    world_run(w, 1);
    for (int i = 0; i < ROUNDS; i++) {
        struct schema_cqe e;
        post_read();
        world_run(w, 1);
        ck_assert(world_poll(w, &m.worker[1], &e, 0));
    }
    const uint32_t a = world_batch_shown(&first)->done, b = world_batch_shown(&other)->done;
    ck_assert_uint_lt(a, 2 * b);
    ck_assert_uint_lt(b, 2 * a);
    expect_good(&first, MANY);
    expect_good(&other, MANY);
    close_scene();
}
END_TEST

/* ---- tenants */

/* One batch of each of so many workers of one tenant, and one of another tenant's. */
START_TEST(a_tenant_with_many_batches_leaves_another_ones_a_part)
{
    enum { OWN = 8, OTHERS_ID = 30, OTHER = 2, ROUNDS = 600 };
    struct world_batch many[OWN];
    struct world_worker owner, other;
    uint64_t had, others = 0, bytes;
    world_batch_bytes = 16 << 20;
    open_scene(OWN + 1);
    world_attach(w, &owner, 1, OTHERS_ID, OTHER);
    world_attach(w, &other, 0, OTHERS_ID, OTHER);
    const uint32_t key = world_register(w, &owner, 0, WORLD_ARENA, SCHEMA_RECORD_WRITE);
    ck_assert_int_eq(world_connect(w, &other, 0, 1), 0);
    for (uint32_t i = 0; i < MANY; i++)
        entry[i] = world_entry(0, BLOCK, key, (uint64_t)i * 2 * BLOCK % WORLD_ARENA);
    const struct world_batch one = world_batch_make(w, &other, SCHEMA_OP_WRITE, entry, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        entry[i] = world_entry(0, BLOCK, m.vkey, (uint64_t)i * 2 * BLOCK % WORLD_ARENA);
    for (uint32_t i = 0; i < OWN; i++) {
        struct world_worker *k = &m.worker[i == 0 ? 0 : i + 1];
        many[i] = world_batch_make(w, k, SCHEMA_OP_WRITE, entry, MANY);
        world_batch_post(w, &many[i], 1, 0, 0);
    }
    world_batch_post(w, &one, 1, 0, 0);
    for (int i = 0; i < ROUNDS; i++) {
        post_read();
        ck_assert_uint_eq(world_done(w, &m.worker[1], PASSES).status, IBV_WC_SUCCESS);
    }
    lane_posted_of(other.memory, &had, &bytes);
    for (uint32_t i = 0; i < OWN; i++) {
        uint64_t posted;
        lane_posted_of(many[i].worker->memory, &posted, &bytes);
        others += posted;
    }
    ck_assert_uint_lt(others, 4 * had); /* 14 times as much, where each batch has as much */
    ck_assert_uint_lt(had, 2 * others);
    ck_assert_uint_gt(had + others, ROUNDS / 2);
    for (uint32_t i = 0; i < OWN; i++)
        expect_good(&many[i], MANY);
    expect_good(&one, MANY);
    world_detach(w, &other);
    world_detach(w, &owner);
    close_scene();
    world_batch_bytes = 1 << 20;
}
END_TEST

/* Who waits for the next piece is known, and who for the one after it: else the one with many
 * batches would have every second one. */
START_TEST(of_three_tenants_each_has_a_third_however_many_batches_one_has)
{
    enum { OWN = 8, OTHERS = 2, ROUNDS = 600 };
    struct world_batch many[OWN], one[OTHERS];
    struct world_worker owner[OTHERS], other[OTHERS];
    uint64_t had[OTHERS], own = 0, bytes;
    world_batch_bytes = 16 << 20;
    open_scene(OWN + 1);
    for (uint32_t t = 0; t < OTHERS; t++) {
        world_attach(w, &owner[t], 1, 30 + t, 2 + t);
        world_attach(w, &other[t], 0, 30 + t, 2 + t);
        const uint32_t key = world_register(w, &owner[t], 0, WORLD_ARENA, SCHEMA_RECORD_WRITE);
        ck_assert_int_eq(world_connect(w, &other[t], 0, 1), 0);
        for (uint32_t i = 0; i < MANY; i++)
            entry[i] = world_entry(0, BLOCK, key, (uint64_t)i * 2 * BLOCK % WORLD_ARENA);
        one[t] = world_batch_make(w, &other[t], SCHEMA_OP_WRITE, entry, MANY);
    }
    for (uint32_t i = 0; i < MANY; i++)
        entry[i] = world_entry(0, BLOCK, m.vkey, (uint64_t)i * 2 * BLOCK % WORLD_ARENA);
    for (uint32_t i = 0; i < OWN; i++) {
        many[i] = world_batch_make(w, &m.worker[i == 0 ? 0 : i + 1], SCHEMA_OP_WRITE, entry, MANY);
        world_batch_post(w, &many[i], 1, 0, 0);
    }
    for (uint32_t t = 0; t < OTHERS; t++)
        world_batch_post(w, &one[t], 1, 0, 0);
    for (int i = 0; i < ROUNDS; i++) {
        post_read();
        ck_assert_uint_eq(world_done(w, &m.worker[1], PASSES).status, IBV_WC_SUCCESS);
    }
    for (uint32_t t = 0; t < OTHERS; t++)
        lane_posted_of(other[t].memory, &had[t], &bytes);
    for (uint32_t i = 0; i < OWN; i++) {
        uint64_t posted;
        lane_posted_of(many[i].worker->memory, &posted, &bytes);
        own += posted;
    }
    for (uint32_t t = 0; t < OTHERS; t++) {
        ck_assert_uint_lt(2 * own, 3 * had[t]);
        ck_assert_uint_lt(2 * had[t], 3 * own);
    }
    for (uint32_t i = 0; i < OWN; i++)
        expect_good(&many[i], MANY);
    for (uint32_t t = 0; t < OTHERS; t++) {
        expect_good(&one[t], MANY);
        world_detach(w, &other[t]);
        world_detach(w, &owner[t]);
    }
    close_scene();
    world_batch_bytes = 1 << 20;
}
END_TEST

/* ---- long descriptors */

START_TEST(a_long_descriptor_goes_in_parts_beside_others)
{
    enum { AT = 24, LENGTH = 10000 };
    open_scene(2);
    entry[0] = world_entry(AT, LENGTH, m.vkey, AT);
    entry[1] = world_entry(AT + LENGTH, 8, m.vkey, AT + LENGTH);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, 2);
    const uint32_t before = posts->requests;
    world_batch_post(w, &b, 1, 0, 0);
    expect_good(&b, 2);
    ck_assert_uint_eq(posts->most_bytes, 1024);
    ck_assert_uint_ge(posts->requests - before, LENGTH / 1024);
    ck_assert_int_eq(memcmp((uint8_t *)m.owner.arena.addr + AT,
                            (uint8_t *)m.worker[0].arena.addr + AT, LENGTH + 8),
                     0);
    ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[AT - 1], 0);
    ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[AT + LENGTH + 8], 0);
    close_scene();
}
END_TEST

/* Nothing of one is written whose last byte may not be. */
START_TEST(no_part_goes_of_one_that_is_too_long_for_its_region)
{
    open_scene(2);
    entry[0] = world_entry(0, BLOCK, m.vkey, 0);
    entry[1] = world_entry(BLOCK, 16384, m.vkey, WORLD_ARENA - 16384 + 1);
    const struct world_batch b = world_batch_make(w, &m.worker[0], SCHEMA_OP_WRITE, entry, 2);
    world_batch_post(w, &b, 1, 0, 0);
    ck_assert_uint_ne(world_done(w, b.worker, PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_batch_shown(&b)->done, 1);
    ck_assert_uint_eq(world_batch_shown(&b)->failed, 1);
    for (uint32_t i = BLOCK; i < WORLD_ARENA; i++)
        ck_assert_uint_eq(((uint8_t *)m.owner.arena.addr)[i], 0);
    close_scene();
}
END_TEST

/* ---- what a batch asks of the device, and when it makes more */

/* One in eight of a list, the last of which is one of them. */
START_TEST(of_eight_pieces_of_a_list_one_has_a_completion)
{
    enum { PIECES = 64 };
    world_apart = true;
    open_scene(1);
    const struct world_batch b = make(PIECES, BLOCK);
    const uint32_t requests = posts->requests, signaled = posts->signaled;
    world_batch_post(w, &b, 1, 0, 0);
    expect_good(&b, PIECES);
    ck_assert_uint_eq(posts->requests - requests, PIECES);
    ck_assert_uint_eq(posts->signaled - signaled, PIECES / 8);
    close_scene();
    world_apart = false;
}
END_TEST

START_TEST(more_pieces_are_made_when_half_of_them_are_over)
{
    enum { PIECES = 64, EACH = 8 /* for a completion of the device's */ };
    world_apart = true;
    open_scene(1);
    const struct world_batch b = make(4 * PIECES, BLOCK);
    const uint32_t before = posts->requests;
    world_hold(&w->node[0], NULL);
    world_batch_post(w, &b, 1, 0, 0);
    world_run(w, SETTLE);
    ck_assert_uint_eq(posts->requests - before, PIECES);
    world_give_some(PIECES / 2 / EACH - 1);
    world_run(w, SETTLE);
    ck_assert_uint_eq(posts->requests - before, PIECES);
    world_give_some(1);
    world_run(w, SETTLE);
    ck_assert_uint_eq(posts->requests - before, PIECES + PIECES / 2);
    world_held_end();
    expect_good(&b, 4 * PIECES);
    close_scene();
    world_apart = false;
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_a_batch_alone_128_kib_are_out_and_beside_others_one_piece)                                \
    T(where_the_rate_is_known_it_is_what_the_port_carries_in_a_time)                               \
    T(beside_others_as_much_is_out_as_the_port_carries_there_and_back)                             \
    T(what_takes_longer_for_a_while_has_queued_and_does_not_count)                                 \
    T(the_least_of_the_last_two_spans_counts_and_then_it_is_forgotten)                             \
    T(no_more_than_8_us_of_the_port_are_out_beside_others_however_far_the_peer_is)                 \
    T(two_whole_pieces_are_out_of_a_batch_alone_whatever_the_port_carries)                         \
    T(when_a_piece_is_over_the_next_one_goes)                                                      \
    T(a_piece_goes_behind_what_others_had_in_the_pass_when_they_have_been_told)                    \
    T(beside_others_two_batches_have_as_much_each)                                                 \
    T(a_tenant_with_many_batches_leaves_another_ones_a_part)                                       \
    T(of_three_tenants_each_has_a_third_however_many_batches_one_has)                              \
    T(a_long_descriptor_goes_in_parts_beside_others)                                               \
    T(no_part_goes_of_one_that_is_too_long_for_its_region)                                         \
    T(of_eight_pieces_of_a_list_one_has_a_completion)                                              \
    T(more_pieces_are_made_when_half_of_them_are_over)
KEDGE_CHECK_MAIN("agent.lane.batch_pace", TESTS)
