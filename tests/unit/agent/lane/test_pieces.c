/* SPDX-License-Identifier: Apache-2.0 */
/* READs and WRITEs that are longer than what goes as one: their pieces, in which order, and what
 * comes of one that fails. */
#include <string.h>

#include "../../check_main.h"
#include "world.h"
#include "world_held.h"
#include "world_merge.h"
#include "world_rc.h"

enum { PASSES = 400000, CUT = 8192, PAGE = 4096, LONG = 40960, PIECES = LONG / CUT, FLAG = 9 };

static struct world world;
static struct world *w = &world;
static struct world_mergers m;
static struct world_posts *posts;

static uint8_t byte_of(uint32_t at, uint32_t seed)
{
    return (uint8_t)(at * 7 + at / 251 + seed);
}

static void fill(void *bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < WORLD_ARENA; i++)
        ((uint8_t *)bytes)[i] = byte_of(i, seed);
}

static void open_scene(uint32_t workers)
{
    world_cut_bytes = CUT;
    world_mergers_open(w, &m, workers);
    world_cut_bytes = 0;
    fill(m.owner.arena.addr, 100);
    for (uint32_t i = 0; i < workers; i++)
        fill(m.worker[i].arena.addr, i);
    posts = world_watch_posts(&w->node[0]);
}

static void close_scene(void)
{
    world_watch_end();
    world_mergers_close(w, &m);
}

static void post(uint32_t worker, struct schema_sq_desc d)
{
    world_post(&m.worker[worker], &d);
}

static struct schema_cqe expect(uint32_t worker, uint64_t id, enum ibv_wc_status status)
{
    const struct schema_cqe e = world_done(w, &m.worker[worker], PASSES);
    ck_assert_uint_eq(e.wr_id, id);
    ck_assert_uint_eq(e.status, status);
    return e;
}

static void expect_none(uint32_t worker)
{
    struct schema_cqe e;
    ck_assert(!world_poll(w, &m.worker[worker], &e, 100));
}

/* `bytes` at `to` are those at `from` of an arena that was filled with that seed. */
static void expect_bytes(const void *arena, uint32_t to, uint32_t from, uint32_t bytes,
                         uint32_t seed)
{
    for (uint32_t i = 0; i < bytes; i++)
        ck_assert_uint_eq(((const uint8_t *)arena)[to + i], byte_of(from + i, seed));
}

START_TEST(a_long_write_goes_in_pieces_and_completes_once)
{
    open_scene(1);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, LONG, m.vkey, 0));
    ck_assert_uint_eq(expect(0, 1, IBV_WC_SUCCESS).byte_len, LONG);
    expect_none(0);
    ck_assert_uint_eq(posts->requests, PIECES);
    ck_assert_uint_eq(world_stats(w, 0).pieces, PIECES - 1);
    expect_bytes(m.owner.arena.addr, 0, 0, LONG, 0);
    expect_bytes(m.owner.arena.addr, LONG, LONG, WORLD_ARENA - LONG, 100);
    close_scene();
}
END_TEST

START_TEST(a_long_read_too)
{
    open_scene(1);
    post(0, world_rw(SCHEMA_OP_READ, 1, 0, LONG, m.vkey, 64));
    ck_assert_uint_eq(expect(0, 1, IBV_WC_SUCCESS).byte_len, LONG);
    ck_assert_uint_eq(posts->requests, PIECES + 1); /* 8128 bytes up to a multiple of 4096 */
    expect_bytes(m.worker[0].arena.addr, 0, 64, LONG, 100);
    expect_bytes(m.worker[0].arena.addr, LONG, LONG, WORLD_ARENA - LONG, 0);
    close_scene();
}
END_TEST

START_TEST(what_is_no_longer_goes_as_one)
{
    open_scene(1);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, CUT, m.vkey, 64));
    ck_assert_uint_eq(expect(0, 1, IBV_WC_SUCCESS).byte_len, CUT);
    ck_assert_uint_eq(posts->requests, 1);
    close_scene();
}
END_TEST

/* Ends of its SGEs, and of its pieces, anywhere. */
START_TEST(several_sges_are_cut_where_they_are_to_be)
{
    static const uint32_t lengths[][4] = {
        {1, 8191, 8192, 100}, {5000, 5000, 5000, 5000}, {0, 20000, 0, 3}, {8192, 8192, 1, 1}};
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t to = 0; to < 5000; to += 1667) {
            struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, k, 0, 0, m.vkey, 0);
            struct schema_sq_sges sges = {.sge = {{.offset = 0}}};
            uint32_t all = 0;
            open_scene(1);
            d.post.vkey = m.vkey;
            d.post.remote_addr += to;
            d.num_sge = 4;
            d.slots = 2;
            for (uint32_t i = 0; i < 4; i++) {
                sges.sge[i] =
                    (struct schema_sge){.offset = 30000 - 7000 * i + i, .length = lengths[k][i]};
                all += lengths[k][i];
            }
            world_post(&m.worker[0], &d);
            world_post(&m.worker[0], (const void *)&sges);
            ck_assert_uint_eq(expect(0, k, IBV_WC_SUCCESS).byte_len, all);
            for (uint32_t i = 0, at = to; i < 4; at += lengths[k][i++])
                expect_bytes(m.owner.arena.addr, at, 30000 - 7000 * i + i, lengths[k][i], 0);
            expect_bytes(m.owner.arena.addr, to + all, to + all, 1000, 100);
            close_scene();
        }
}
END_TEST

/* Whoever sees the flag finds the data. */
START_TEST(what_is_behind_it_is_posted_behind_its_last_piece)
{
    open_scene(1);
    world_hold(&w->node[0], NULL);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, LONG, m.vkey, 0));
    post(0, world_rw(SCHEMA_OP_WRITE, FLAG, LONG, 8, m.vkey, LONG));
    for (uint32_t piece = 1; piece < PIECES; piece++) {
        world_run(w, 40);
        ck_assert_uint_eq(posts->requests, piece);
        world_give_some(1);
    }
    world_run(w, 40);
    ck_assert_uint_eq(posts->requests, PIECES + 1);
    world_give();
    expect(0, 1, IBV_WC_SUCCESS);
    expect(0, FLAG, IBV_WC_SUCCESS);
    world_held_end();
    close_scene();
}
END_TEST

START_TEST(anothers_request_goes_behind_one_piece)
{
    open_scene(2);
    world_hold(&w->node[0], NULL);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, LONG, m.vkey, 0));
    world_mergers_ring(w, &m);
    world_run(w, 40);
    post(1, world_rw(SCHEMA_OP_READ, 2, 0, 8, m.vkey, LONG + 64));
    world_mergers_ring(w, &m);
    world_run(w, 40);
    ck_assert_uint_eq(posts->requests, 2);
    world_give_some(2);
    expect(1, 2, IBV_WC_SUCCESS); /* of the other's four fifths are still to go */
    world_give();
    expect(0, 1, IBV_WC_SUCCESS);
    expect_bytes(m.owner.arena.addr, 0, 0, LONG, 0);
    world_held_end();
    close_scene();
}
END_TEST

START_TEST(nothing_is_written_of_what_does_not_fit)
{
    open_scene(1);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, LONG, m.vkey, WORLD_ARENA - LONG + 8));
    expect(0, 1, IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(posts->requests, 0);
    expect_bytes(m.owner.arena.addr, 0, 0, WORLD_ARENA, 100);
    close_scene();
}
END_TEST

/* So many pieces are over, and the next one is posted, with what may go behind it. */
static void let_go(uint32_t pieces)
{
    world_run(w, 40);
    for (uint32_t i = 0; i < pieces; i++) {
        world_give_some(1);
        world_run(w, 40);
    }
    ck_assert_uint_eq(posts->requests, pieces + 1 + (pieces == PIECES - 1));
}

static void take_key_away(void)
{
    struct fab_ctl drop = {.kind = FAB_DEREG_MR, .mr = {.x = m.owner.arena_mr}};
    ck_assert_int_eq(fab_call(w->node[1].fab, &drop), 0);
    m.owner.arena_mr = NULL;
}

/* So many of its pieces go well; then the peer refuses the key. It is gone before the device has
 * the next piece, since what soft moves of that at its doorbell depends on the clock. */
static void fail_behind(uint32_t well, uint8_t op)
{
    open_scene(2);
    world_hold(&w->node[0], NULL);
    posts->before = take_key_away;
    posts->before_request = well + 1;
    post(0, world_rw(op, 1, 0, LONG, m.vkey, 0));
    post(0, world_rw(op, 2, LONG, 8, m.vkey, LONG));
    let_go(well);
    ck_assert_ptr_null(m.owner.arena_mr);
    world_give();
    ck_assert_uint_ne(world_done(w, &m.worker[0], PASSES).status, IBV_WC_SUCCESS);
    expect(0, 2, IBV_WC_WR_FLUSH_ERR);
    expect_none(0);
    if (op == SCHEMA_OP_WRITE) {
        expect_bytes(m.owner.arena.addr, 0, 0, well * CUT, 0);
        expect_bytes(m.owner.arena.addr, well * CUT, well * CUT, WORLD_ARENA - well * CUT, 100);
    }
    world_held_end();
    close_scene();
}

START_TEST(the_first_piece_that_fails_is_how_it_fails)
{
    for (uint32_t well = 0; well < PIECES; well++) {
        fail_behind(well, SCHEMA_OP_WRITE);
        fail_behind(well, SCHEMA_OP_READ);
    }
}
END_TEST

/* What was out of a READ goes again. Of a WRITE a part may have been written, and is not again. */
static void break_behind(uint32_t well, uint8_t op)
{
    open_scene(1);
    world_hold(&w->node[0], NULL);
    post(0, world_rw(op, 1, 0, LONG, m.vkey, 0));
    post(0, world_rw(op, 2, LONG, 8, m.vkey, LONG));
    let_go(well);
    world_give();
    if (w->rc)
        world_break(w, 0, w->node[0].last_link);
    for (uint32_t i = 0; i < w->node[0].res.dcis; i++)
        world_break(w, 0, w->node[0].res.dci[i]);
    const struct schema_cqe e = world_done(w, &m.worker[0], PASSES);
    ck_assert_uint_eq(e.wr_id, 1);
    const struct schema_cqe behind = world_done(w, &m.worker[0], PASSES);
    ck_assert_uint_eq(behind.wr_id, 2);
    ck_assert_uint_eq(behind.status,
                      e.status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
    if (op == SCHEMA_OP_READ)
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    if (e.status == IBV_WC_SUCCESS) {
        ck_assert_uint_eq(e.byte_len, LONG);
        if (op == SCHEMA_OP_READ)
            expect_bytes(m.worker[0].arena.addr, 0, 0, LONG, 100);
        else
            expect_bytes(m.owner.arena.addr, 0, 0, LONG, 0);
    }
    expect_none(0);
    world_held_end();
    close_scene();
}

START_TEST(a_queue_pair_that_breaks_meanwhile_loses_no_read)
{
    for (uint32_t well = 0; well < PIECES; well++) {
        break_behind(well, SCHEMA_OP_READ);
        break_behind(well, SCHEMA_OP_WRITE);
    }
}
END_TEST

START_TEST(who_leaves_meanwhile_leaves_nothing_behind)
{
    open_scene(2);
    world_hold(&w->node[0], NULL);
    post(0, world_rw(SCHEMA_OP_WRITE, 1, 0, LONG, m.vkey, 0));
    post(0, world_rw(SCHEMA_OP_WRITE, 2, 0, LONG, m.vkey, 0));
    world_run(w, 40);
    world_give_some(1);
    world_run(w, 40);
    const uint32_t posted = posts->requests;
    world_give();
    world_detach(w, &m.worker[0]);
    m.worker[0].memory = NULL;
    ck_assert_uint_eq(posts->requests, posted);
    post(1, world_rw(SCHEMA_OP_READ, 3, 0, LONG, m.vkey, 0));
    expect(1, 3, IBV_WC_SUCCESS);
    world_held_end();
    close_scene();
}
END_TEST

/* A window of two pieces never has more out. */
START_TEST(a_window_counts_pieces)
{
    struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                             .window = {.scope = LANE_WINDOW_DEVICE, .bytes = 2 * CUT}};
    struct lane_window window;
    open_scene(4);
    ck_assert_int_eq(lane_command(w->node[0].lane, &c), 0);
    world_run(w, 2);
    for (uint32_t i = 0; i < 4; i++)
        post(i, world_rw(SCHEMA_OP_READ, i, 0, LONG, m.vkey, 0));
    world_mergers_ring(w, &m);
    for (uint32_t i = 0; i < 4; i++) {
        expect(i, i, IBV_WC_SUCCESS);
        expect_bytes(m.worker[i].arena.addr, 0, 0, LONG, 100);
    }
    ck_assert(lane_window(w->node[0].lane, LANE_WINDOW_DEVICE, 0, &window));
    ck_assert_uint_eq(window.most_bytes, 2 * CUT);
    ck_assert_uint_eq(window.bytes, 0);
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_long_write_goes_in_pieces_and_completes_once)                                              \
    T(a_long_read_too)                                                                             \
    T(what_is_no_longer_goes_as_one)                                                               \
    T(several_sges_are_cut_where_they_are_to_be)                                                   \
    T(what_is_behind_it_is_posted_behind_its_last_piece)                                           \
    T(anothers_request_goes_behind_one_piece)                                                      \
    T(nothing_is_written_of_what_does_not_fit)                                                     \
    T(the_first_piece_that_fails_is_how_it_fails)                                                  \
    T(a_queue_pair_that_breaks_meanwhile_loses_no_read)                                            \
    T(who_leaves_meanwhile_leaves_nothing_behind)                                                  \
    T(a_window_counts_pieces)
KEDGE_CHECK_MAIN("agent.lane.pieces", TESTS)
