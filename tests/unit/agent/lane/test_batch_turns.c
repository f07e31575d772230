/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the next piece of a batch is: of tenants, of a near peer and a far one, and in the middle
 * of a pass. */
#include <string.h>

#include "../../check_main.h"
#include "lane_state.h"
#include "schedule/batch_pace.h"
#include "schedule/rounds.h"
#include "session_state.h"
#include "world_batch.h"
#include "world_merge.h"
#include "world_rc.h"

enum {
    BLOCK = 512,
    QUICK = 10000, /* bytes in a microsecond */
    COST = 256     /* a piece counts as so many bytes more */
};

static struct world world;
static struct world *w = &world;
static struct world_mergers m;

static void open_scene(uint32_t workers)
{
    world_mergers_open(w, &m, workers);
}

static void close_scene(void)
{
    ck_assert_uint_eq(w->node[0].lane->batches.pace.out, 0);
    world_mergers_close(w, &m);
}

/* Two batches beside somebody else, to a near peer and to a far one, and a port that carries what
 * is posted one behind the other. */
static struct {
    struct flow to;
    uint64_t trip_ns, bytes, back_ns[64];
    struct wr piece[64];
    bool out[64];
} way[2];
static uint64_t wire_ns;
static uint32_t last; /* who had one last */

static void take_back(struct lane *l, uint32_t k)
{
    for (uint32_t i = 0; i < 64; i++)
        if (way[k].out[i] && way[k].back_ns[i] <= l->now_ns) {
            lane_batch_pace_back(l, &way[k].piece[i], true);
            way[k].out[i] = false;
        }
}

static bool post_one(struct lane *l, uint32_t k)
{
    uint32_t i = 0;
    while (way[k].out[i])
        ck_assert_uint_lt(++i, 64);
    struct wr *piece = &way[k].piece[i];
    *piece =
        (struct wr){.session = &l->sessions[m.worker[0].id], .flow = &way[k].to, .signaled = 1};
    piece->length = lane_batch_pace_piece(l);
    if (!lane_batch_pace_has_room(l, piece))
        return false;
    lane_batch_pace_posted(l, piece);
    wire_ns = (wire_ns > l->now_ns ? wire_ns : l->now_ns) + (piece->length + COST) * 1000 / QUICK;
    way[k].back_ns[i] = wire_ns + way[k].trip_ns;
    way[k].bytes += piece->length + COST;
    way[k].out[i] = true;
    last = k;
    return true;
}

START_TEST(of_a_near_peer_and_a_far_one_each_has_its_half_of_the_port)
{
    enum { STEP_NS = 50, NEAR_NS = 1500, FAR_NS = 8000, BEGIN_NS = 100000, SPAN_NS = 1000000 };
    world_port_rate = QUICK * 1000ull;
    open_scene(1);
    struct lane *l = w->node[0].lane;
    const uint64_t from_ns = l->now_ns;
    uint64_t queued_ns = 0;
    memset(way, 0, sizeof way);
    way[0].to.peer_slot = 1;
    way[1].to.peer_slot = 2;
    way[0].trip_ns = NEAR_NS;
    way[1].trip_ns = FAR_NS;
    wire_ns = 0;
    l->batches.pace.beside_until_ns = UINT64_MAX;
    for (; l->now_ns < from_ns + BEGIN_NS + SPAN_NS; l->now_ns += STEP_NS) {
        if (l->now_ns < from_ns + BEGIN_NS)
            way[0].bytes = way[1].bytes = 0;
        take_back(l, 0);
        take_back(l, 1);
        while (post_one(l, !last) || post_one(l, last)) {
        } /* in turn */
        queued_ns += wire_ns > l->now_ns ? wire_ns - l->now_ns : 0;
    }
    l->now_ns += FAR_NS * 100;
    take_back(l, 0);
    take_back(l, 1);
    const uint64_t all = SPAN_NS / 1000ull * QUICK;
    ck_assert_uint_gt(way[0].bytes, all / 3);
    ck_assert_uint_gt(way[1].bytes, all / 3);
    ck_assert_uint_gt(way[0].bytes + way[1].bytes, all * 6 / 10);
    ck_assert_uint_lt(queued_ns / ((BEGIN_NS + SPAN_NS) / STEP_NS), 4000); /* as a READ beside it */
    ck_assert_uint_eq(l->batches.pace.load, 0);
    l->batches.pace.beside_until_ns = 0;
    l->now_ns = from_ns;
    close_scene();
    world_port_rate = 0;
}
END_TEST

/* So many pieces had the tenant's place at its last one; what it asks for a piece. */
static enum vqp_wait ask(struct lane *l, uint32_t tenant)
{
    static struct session of[4];
    static struct vqp q;
    of[tenant] = (struct session){.tenant_slot = tenant, .vqps = &q};
    const struct wr piece = {.session = &of[tenant], .length = BLOCK};
    return lane_batch_pace_ask(l, &piece);
}

START_TEST(who_has_to_stand_back_for_another_tenant_is_the_next_one_behind_it)
{
    enum { FIRST = 0, SECOND = 1, LATE = 2 };
    open_scene(1);
    struct lane *l = w->node[0].lane;
    struct batch_pace *p = &l->batches.pace, before = *p;
    uint64_t served[4] = {[FIRST] = 5, [SECOND] = 3, [LATE] = 6};
    p->served = served;
    p->opens = 1;
    p->out = UINT32_MAX;
    ck_assert_int_eq(ask(l, FIRST), WAIT_BATCHES);
    ck_assert_int_eq(ask(l, SECOND), WAIT_BATCHES);
    p->out = 0;
    ck_assert_int_eq(ask(l, LATE), WAIT_BATCHES);
    ck_assert_int_eq(ask(l, SECOND), WAIT_NOTHING);
    ck_assert_int_eq(ask(l, LATE), WAIT_BATCHES);
    ck_assert_int_eq(ask(l, FIRST), WAIT_NOTHING);
    ck_assert_int_eq(ask(l, LATE), WAIT_NOTHING);
    *p = before;
    close_scene();
}
END_TEST

START_TEST(in_the_middle_of_a_pass_a_piece_goes_only_where_it_has_its_turn)
{
    open_scene(1);
    struct lane *l = w->node[0].lane;
    struct session *s = &l->sessions[m.worker[0].id];
    struct wr piece = {.session = s, .length = BLOCK};
    ck_assert_int_eq(lane_batch_pace_ask(l, &piece), WAIT_BATCHES);
    l->turn_wr = &piece; /* at a window */
    ck_assert_int_eq(lane_batch_pace_ask(l, &piece), WAIT_NOTHING);
    l->turn_wr = NULL;
    l->turn_vqp = &s->vqps[0]; /* for room in a queue pair */
    ck_assert_int_eq(lane_batch_pace_ask(l, &piece), WAIT_NOTHING);
    l->turn_vqp = &s->vqps[1];
    ck_assert_int_eq(lane_batch_pace_ask(l, &piece), WAIT_BATCHES);
    l->turn_vqp = NULL;
    close_scene();
}
END_TEST

/* Nothing that comes back would wake the lane for it. */
START_TEST(a_lane_does_not_sleep_while_a_batch_waits_and_nothing_of_any_is_out)
{
    open_scene(1);
    struct lane *l = w->node[0].lane;
    ck_assert_uint_eq(lane_rounds_due(l), LANE_NEVER);
    l->waiting = l->batching.count = 1;
    ck_assert_uint_eq(lane_rounds_due(l), l->now_ns);
    l->batches.pace.out = BLOCK + COST;
    ck_assert_uint_gt(lane_rounds_due(l), l->now_ns);
    l->waiting = l->batching.count = 0;
    l->batches.pace.out = 0;
    close_scene();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(of_a_near_peer_and_a_far_one_each_has_its_half_of_the_port)                                  \
    T(who_has_to_stand_back_for_another_tenant_is_the_next_one_behind_it)                          \
    T(in_the_middle_of_a_pass_a_piece_goes_only_where_it_has_its_turn)                             \
    T(a_lane_does_not_sleep_while_a_batch_waits_and_nothing_of_any_is_out)
KEDGE_CHECK_MAIN("agent.lane.batch_turns", TESTS)
