/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker may ask for and some device refuses: it never breaks a queue pair, and never keeps
 * the lane from what is behind it. The device is one that dislikes all that any does. */
#include <errno.h>
#include <string.h>

#include "../../check_main.h"
#include "base/random.h"
#include "fabric/provider.h"
#include "world.h"

enum { TENANT = 7, PASSES = 20000, SEEDS = 8, REQUESTS = 400 };
static const uint32_t ALL = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC;
static const uint64_t REST_NS = 50000000; /* so long waits who breaks many */

static struct world world;
static struct world *w = &world;
static struct world_worker owner, k;
static uint32_t vkey;

static void open_pair(struct fault_plan plan)
{
    world_fault = plan;
    vkey = world_pair(w, &owner, &k, TENANT,
                      plan.no_atomics || plan.no_dc_atomics ? SCHEMA_RECORD_READ : ALL);
}

static void close_pair(void)
{
    world_unpair(w, &owner, &k);
    world_fault = (struct fault_plan){0};
}

static struct schema_cqe do_one(struct schema_sq_desc d)
{
    return world_do(w, &k, d, PASSES);
}

/* ---- alignment */

START_TEST(a_region_whose_name_differs_from_its_memory_by_no_multiple_of_8_is_refused)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true});
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_REG_MR,
        .reg_mr = {.offset = 4096, .length = 4096, .vaddr = 0x20004, .access = SCHEMA_RECORD_READ}};
    struct schema_reply reply;
    ck_assert_int_eq(world_ask(w, &owner, d, &reply), -EFAULT);
    ck_assert_uint_eq(reply.reason, SCHEMA_REASON_ALIGNMENT);
    d.reg_mr.access |= SCHEMA_REG_FENCED;
    ck_assert_int_eq(world_ask(w, &owner, d, &reply), -EFAULT);
    d.reg_mr.vaddr = 0x20008;
    d.reg_mr.access = SCHEMA_RECORD_READ;
    ck_assert_int_eq(world_ask(w, &owner, d, &reply), 0);
    close_pair();
}
END_TEST

/* A record of an agent that does not keep to that. */
START_TEST(an_atomic_that_is_misaligned_where_it_lands_never_reaches_a_queue_pair)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true});
    struct schema_mr_record r;
    struct schema_table *t = &w->node[1].mr_table;
    const uint8_t *window = t->slots + (size_t)schema_mr_home(&t->desc, vkey) * SCHEMA_RECORD_BYTES;
    ck_assert_int_eq(schema_mr_find(&t->desc, window, vkey, &r), 0);
    r.vaddr += 4;
    ck_assert_int_ge(schema_table_put(t, &r), 0);
    struct schema_sq_desc d = world_rw(SCHEMA_OP_FAA, 1, 0, 8, vkey, 8);
    struct schema_cqe e = do_one(d);
    ck_assert_uint_eq(e.status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_ALIGNMENT);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}
END_TEST

/* ---- a device that refuses a request for itself */

/* The device of node 0 refuses READs of so many bytes, each time. */
static struct {
    const struct fab_ops *real;
    struct fab_ops ops;
    uint32_t bytes, posts, also; /* also: of so many bytes too */
    int status;
} device;

static int refuse_some(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad)
{
    for (struct fab_wr *at = wr, *last = NULL; at != NULL; last = at, at = at->next) {
        device.posts++;
        if (at->num_sge != 1 ||
            (at->sg_list[0].length != device.bytes && at->sg_list[0].length != device.also))
            continue;
        int status = 0;
        if (last != NULL) {
            last->next = NULL;
            status = device.real->post_send(qp, wr, bad);
            last->next = at;
        }
        if (status != 0)
            return status;
        *bad = at;
        return device.status;
    }
    return device.real->post_send(qp, wr, bad);
}

static void refuse(uint32_t bytes, int status)
{
    device.real = w->node[0].fab->ops;
    device.ops = *device.real;
    device.ops.post_send = refuse_some;
    device.bytes = device.also = bytes;
    device.status = status;
    device.posts = 0;
    w->node[0].fab->ops = &device.ops;
}

/* Three VQPs in one list, the second of which asks for what the device refuses. */
static void refuse_the_second(int status)
{
    static const uint8_t good = IBV_WC_SUCCESS, bad = IBV_WC_LOC_QP_OP_ERR,
                         behind = IBV_WC_WR_FLUSH_ERR;
    const uint8_t expected[] = {good, bad, good, behind};
    const uint8_t reasons[] = {0, SCHEMA_REASON_DEVICE, 0, SCHEMA_REASON_BEHIND};
    uint32_t seen = 0;
    open_pair((struct fault_plan){0});
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    ck_assert_int_eq(world_connect(w, &k, 2, 1), 0);
    ck_assert_uint_eq(do_one(world_rw(SCHEMA_OP_READ, 9, 0, 8, vkey, 0)).status, good);
    refuse(24, status);
    for (uint16_t i = 0; i < 4; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 0, i == 1 ? 24 : 8, vkey, 0);
        d.vqp = i == 3 ? 1 : i;
        world_post(&k, &d);
    }
    for (int i = 0; i < 4; i++) {
        struct schema_cqe e = world_done(w, &k, PASSES);
        ck_assert_uint_eq(e.status, expected[e.wr_id]);
        ck_assert_uint_eq(e.vendor_err, reasons[e.wr_id]);
        seen |= 1u << e.wr_id;
    }
    ck_assert_uint_eq(seen, 15);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 1);
    ck_assert_uint_lt(device.posts, 64);
    world_run(w, 100);
    const uint64_t sleep_until = lane_prepare_sleep(w->node[0].lane, w->now_ns);
    ck_assert_uint_gt(sleep_until, w->now_ns); /* nothing is tried again */
    w->node[0].fab->ops = device.real;
    close_pair();
}

START_TEST(a_request_that_the_device_refuses_ends_at_once_and_the_list_goes_on)
{
    refuse_the_second(-EINVAL);
}
END_TEST

/* libmlx5 says so of a request with too many pieces. */
START_TEST(a_request_that_never_finds_room_in_an_empty_queue_ends_after_some_tries)
{
    refuse_the_second(-ENOMEM);
}
END_TEST

/* Of a list the device takes a WRITE that asks for no completion, and refuses the READ behind it.
 * Nothing else is posted there: the WRITE ends all the same, and so does the READ, and its VQP. */
static void refuse_behind_a_silent_one(uint16_t vqp, bool lanes_too, int status)
{
    open_pair((struct fault_plan){0});
    ck_assert_int_eq(world_connect(w, &k, 1, 1), 0);
    ck_assert_uint_eq(do_one(world_rw(SCHEMA_OP_READ, 9, 0, 8, vkey, 0)).status, IBV_WC_SUCCESS);
    refuse(24, status);
    if (lanes_too)
        device.also = SCHEMA_RECORD_BYTES;
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 8, vkey, 0);
    d.flags &= ~SCHEMA_OP_SIGNALED;
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_READ, 2, 0, 24, vkey, 0);
    d.vqp = vqp;
    world_post(&k, &d);
    struct schema_cqe e = world_done(w, &k, PASSES);
    if (lanes_too) { /* it may have been carried out, and says so */
        ck_assert_uint_eq(e.wr_id, 1);
        ck_assert_uint_eq(e.status, IBV_WC_WR_FLUSH_ERR);
        e = world_done(w, &k, PASSES);
    }
    ck_assert_uint_eq(e.wr_id, 2);
    ck_assert_uint_ne(e.status, IBV_WC_SUCCESS);
    world_run(w, 100);
    ck_assert_uint_eq(world_stats(w, 0).inflight, 0);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, lanes_too);
    ck_assert_uint_lt(device.posts, 64);
    w->node[0].fab->ops = device.real;
    close_pair();
}

START_TEST(what_is_out_unsignalled_before_a_request_that_is_refused_ends)
{
    refuse_behind_a_silent_one(0, false, -EINVAL);
    refuse_behind_a_silent_one(1, false, -EINVAL);
}
END_TEST

/* Then only the end of its queue pair gives it back. */
START_TEST(so_it_does_where_the_device_takes_nothing_behind_it)
{
    refuse_behind_a_silent_one(0, true, -EINVAL);
    refuse_behind_a_silent_one(1, true, -ENOMEM);
}
END_TEST

/* The lane's own READ of the owner's table. */
START_TEST(a_lane_whose_own_read_is_refused_says_that_the_peer_is_down)
{
    open_pair((struct fault_plan){0});
    refuse(SCHEMA_TABLE_SPAN_BYTES, -EINVAL);
    struct schema_cqe e = do_one(world_rw(SCHEMA_OP_READ, 1, 0, 8, vkey, 0));
    ck_assert_uint_eq(e.status, IBV_WC_RETRY_EXC_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_PEER_DOWN);
    ck_assert_uint_lt(device.posts, 64);
    w->node[0].fab->ops = device.real;
    close_pair();
}
END_TEST

/* ---- lengths, pieces, atomics, fences */

START_TEST(a_request_without_a_byte_completes_in_its_turn_and_never_reaches_a_queue_pair)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true});
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, 1, 0, 64, vkey, 0);
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_WRITE, 2, WORLD_ARENA, 0, vkey, 4096);
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_READ, 3, 0, 0, vkey, 0);
    d.num_sge = 0;
    world_post(&k, &d);
    d = world_rw(SCHEMA_OP_WRITE, 4, 0, 0, vkey, 0);
    d.flags |= SCHEMA_OP_INLINE;
    world_post(&k, &d);
    for (uint64_t i = 1; i <= 4; i++) {
        struct schema_cqe e = world_done(w, &k, PASSES);
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(e.byte_len, i == 1 ? 64 : 0);
    }
    struct schema_cqe e = do_one(world_rw(SCHEMA_OP_READ, 5, 0, 0, vkey, 4097));
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_REMOTE_RANGE);
    ck_assert_uint_eq(world_stats(w, 0).posted, 1);
    close_pair();
}
END_TEST

static void post_pieces(uint64_t id, const uint32_t length[SCHEMA_MAX_SGE])
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, id, 0, 0, vkey, 0);
    struct schema_sq_sges sges = {0};
    for (uint32_t i = 0; i < SCHEMA_MAX_SGE; i++)
        sges.sge[i] = (struct schema_sge){.offset = 8192 + i * 64, .length = length[i]};
    d.num_sge = SCHEMA_MAX_SGE;
    d.slots = 2;
    world_post(&k, &d);
    world_post(&k, (const void *)&sges);
}

START_TEST(pieces_without_a_byte_are_left_away)
{
    const uint32_t some[] = {0, 4, 0, 12}, none[] = {0, 0, 0, 0};
    open_pair((struct fault_plan){.seed = 1, .picky = true});
    memcpy(owner.arena.addr, "abcdefghijklmnop", 16);
    post_pieces(1, some);
    struct schema_cqe e = world_done(w, &k, PASSES);
    ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(e.byte_len, 16);
    ck_assert_mem_eq((uint8_t *)k.arena.addr + 8192 + 64, "abcd", 4);
    ck_assert_mem_eq((uint8_t *)k.arena.addr + 8192 + 192, "efghijklmnop", 12);
    post_pieces(2, none);
    ck_assert_uint_eq(world_done(w, &k, PASSES).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    close_pair();
}
END_TEST

START_TEST(more_pieces_than_the_device_takes_are_refused)
{
    const uint32_t two[] = {8, 0, 8, 0}, three[] = {8, 8, 0, 8};
    open_pair((struct fault_plan){.seed = 1, .picky = true, .max_sge = 2});
    post_pieces(1, two);
    ck_assert_uint_eq(world_done(w, &k, PASSES).status, IBV_WC_SUCCESS);
    post_pieces(2, three);
    struct schema_cqe e = world_done(w, &k, PASSES);
    ck_assert_uint_eq(e.status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_DEVICE);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}
END_TEST

START_TEST(a_device_without_atomics_has_none_here_either)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true, .no_atomics = true});
    struct schema_sq_desc d = {.op = SCHEMA_OP_REG_MR,
                               .reg_mr = {.length = 4096, .vaddr = 0x20000, .access = ALL}};
    struct schema_reply reply;
    ck_assert_int_eq(world_ask(w, &owner, d, &reply), -EOPNOTSUPP);
    ck_assert_uint_eq(reply.reason, SCHEMA_REASON_ATOMICS);
    struct schema_cqe e = do_one(world_rw(SCHEMA_OP_CAS, 1, 0, 8, vkey, 0));
    ck_assert_uint_eq(e.status, IBV_WC_REM_INV_REQ_ERR);
    ck_assert_uint_eq(e.vendor_err, SCHEMA_REASON_ATOMICS);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}
END_TEST

/* Over RC it has them, and nothing is refused. */
START_TEST(a_device_without_atomics_over_dc_has_none_there_alone)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true, .no_dc_atomics = true});
    struct schema_sq_desc d = {.op = SCHEMA_OP_REG_MR,
                               .reg_mr = {.length = 4096, .vaddr = 0x20000, .access = ALL}};
    struct schema_reply reply;
    const int status = world_ask(w, &owner, d, &reply);
    ck_assert_uint_eq(do_one(world_rw(SCHEMA_OP_READ, 9, 0, 8, vkey, 0)).status, IBV_WC_SUCCESS);
    struct schema_cqe e = do_one(world_rw(SCHEMA_OP_CAS, 1, 0, 8, vkey, 0));
    ck_assert_int_eq(status, w->rc ? 0 : -EOPNOTSUPP);
    ck_assert_uint_eq(e.vendor_err, w->rc ? SCHEMA_REASON_ACCESS : SCHEMA_REASON_ATOMICS);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}
END_TEST

/* SoftRoCE hangs by the flag when it has to send a request again. */
START_TEST(where_a_device_has_no_fences_a_fenced_request_waits_for_those_before_it)
{
    open_pair((struct fault_plan){.seed = 1, .picky = true, .no_fences = true});
    for (uint64_t i = 1; i <= 8; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, i, 8 * i, 8, vkey, 0);
        d.flags |= i % 2 == 0 ? SCHEMA_OP_FENCE : 0;
        world_post(&k, &d);
    }
    for (uint64_t i = 1; i <= 8; i++) {
        struct schema_cqe e = world_done(w, &k, PASSES);
        ck_assert_uint_eq(e.wr_id, i);
        ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
    }
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}
END_TEST

/* ---- inline data beyond the device's */

static void post_inline(uint64_t id, uint32_t length, uint8_t byte, uint64_t at)
{
    struct schema_sq_desc d = world_rw(SCHEMA_OP_WRITE, id, 0, length, vkey, at);
    uint8_t payload[2 * SCHEMA_LINE];
    memset(payload, byte, sizeof payload);
    d.flags |= SCHEMA_OP_INLINE;
    d.slots = (uint8_t)(1 + (length + SCHEMA_LINE - 1) / SCHEMA_LINE);
    world_post(&k, &d);
    for (uint8_t i = 1; i < d.slots; i++)
        world_post(&k, (const void *)(payload + (i - 1) * SCHEMA_LINE));
}

/* More than the lane has places for, of one VQP in a row. */
static void write_inline(uint32_t max_inline)
{
    enum { N = 12 };
    open_pair((struct fault_plan){
        .seed = 1, .picky = true, .less_inline = true, .max_inline = max_inline});
    for (uint8_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < N; i++)
            post_inline(i, SCHEMA_MAX_INLINE - 9 * i, (uint8_t)(round + i), i * SCHEMA_MAX_INLINE);
        for (uint32_t i = 0; i < N; i++) {
            struct schema_cqe e = world_done(w, &k, PASSES);
            ck_assert_uint_eq(e.wr_id, i);
            ck_assert_uint_eq(e.status, IBV_WC_SUCCESS);
            const uint8_t *at = (const uint8_t *)owner.arena.addr + i * SCHEMA_MAX_INLINE;
            for (uint32_t b = 0; b < SCHEMA_MAX_INLINE - 9 * i; b++)
                ck_assert_uint_eq(at[b], round + i);
        }
    }
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    close_pair();
}

START_TEST(small_writes_are_inline_where_the_device_takes_fewer_bytes_so)
{
    write_inline(96);
    write_inline(48);
    write_inline(0);
}
END_TEST

/* Places come back whatever becomes of what was in them: errors, breaks, and posts again. */
START_TEST(small_writes_go_on_after_errors_and_broken_queue_pairs)
{
    uint32_t good = 0, bad = 0;
    open_pair((struct fault_plan){.seed = 3,
                                  .less_inline = true,
                                  .refuse_ppm = 30000,
                                  .post_error_ppm = 100000,
                                  .completion_error_ppm = 30000,
                                  .status = IBV_WC_REM_OP_ERR});
    for (uint32_t i = 0; i < REQUESTS / 4; i++) {
        for (uint32_t n = 0; n < 8; n++)
            post_inline(n, SCHEMA_MAX_INLINE, (uint8_t)n, n * SCHEMA_MAX_INLINE);
        bool failed = false;
        for (uint32_t n = 0; n < 8; n++) {
            const struct schema_cqe e = world_done(w, &k, PASSES);
            failed |= e.status != IBV_WC_SUCCESS;
            good += e.status == IBV_WC_SUCCESS;
            bad += e.status != IBV_WC_SUCCESS;
        }
        if (failed) {
            world_sleep(w, REST_NS);
            ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
        }
    }
    ck_assert_uint_gt(good, REQUESTS / 2);
    ck_assert_uint_gt(bad, 10);
    close_pair();
}
END_TEST

/* ---- all of it */

static uint32_t pick(struct base_prng *prng, const uint32_t *of, uint32_t n)
{
    return of[base_prng_below(prng, n)];
}
#define PICK(prng, ...)                                                                            \
    pick(prng, (const uint32_t[]){__VA_ARGS__},                                                    \
         (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

/* Any request that a library could write: most of them wrong in something. */
static void post_any(struct base_prng *prng, uint64_t id)
{
    const uint32_t lengths[] = {0, 1, 7, 8, 8, 8, 9, 64, 128, 129, 4096, UINT32_MAX};
    struct schema_sq_desc d =
        world_rw((uint8_t)PICK(prng, SCHEMA_OP_READ, SCHEMA_OP_WRITE, SCHEMA_OP_CAS, SCHEMA_OP_FAA),
                 id, PICK(prng, 0, 1, 4, WORLD_ARENA - 8, WORLD_ARENA), pick(prng, lengths, 12),
                 vkey, PICK(prng, 0, 1, 4, 8, 4088, 4092, 4096, 4104));
    struct schema_sq_sges sges = {0};
    uint8_t payload[2 * SCHEMA_LINE] = {0};
    d.num_sge = (uint8_t)PICK(prng, 0, 1, 1, 1, 2, 3, 4);
    d.flags |= (uint8_t)PICK(prng, 0, 0, SCHEMA_OP_FENCE, SCHEMA_OP_INLINE);
    if (d.post.length <= SCHEMA_MAX_INLINE && (d.flags & SCHEMA_OP_INLINE)) {
        d.slots = (uint8_t)(1 + (d.post.length + SCHEMA_LINE - 1) / SCHEMA_LINE);
    } else {
        d.flags &= (uint8_t)~SCHEMA_OP_INLINE;
        d.slots = d.num_sge > 1 ? 2 : 1;
    }
    for (uint32_t i = 0; i < SCHEMA_MAX_SGE; i++)
        sges.sge[i] = (struct schema_sge){.offset = PICK(prng, 0, 1, 4, WORLD_ARENA),
                                          .length = PICK(prng, 0, 1, 8, UINT32_MAX)};
    memcpy(payload, &sges, sizeof sges);
    world_post(&k, &d);
    for (uint8_t i = 1; i < d.slots; i++)
        world_post(&k, (const void *)(payload + (i - 1) * SCHEMA_LINE));
}

static void attack(uint64_t seed, struct fault_plan plan)
{
    struct base_prng prng;
    uint32_t good = 0;
    base_prng_seed(&prng, seed);
    plan.seed = seed;
    plan.picky = true;
    open_pair(plan);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        post_any(&prng, i);
        struct schema_cqe e = world_done(w, &k, PASSES);
        ck_assert_uint_eq(e.wr_id, i);
        good += e.status == IBV_WC_SUCCESS;
        if (e.status != IBV_WC_SUCCESS)
            ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    }
    ck_assert_uint_gt(good, REQUESTS / 20);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    ck_assert_uint_eq(world_stats(w, 0).posts_refused, 0);
    ck_assert_uint_eq(fault_count(w->node[0].fab), 0);
    close_pair();
}

START_TEST(no_request_of_a_worker_is_one_that_a_picky_device_refuses)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        attack(seed, (struct fault_plan){.max_sge = seed % 4});
        attack(seed, (struct fault_plan){.less_inline = true, .max_inline = 12 * seed});
        attack(seed, (struct fault_plan){.no_atomics = true, .no_fences = true});
    }
}
END_TEST

/* Each that the device refuses by chance ends its VQP and nothing else. */
START_TEST(a_device_that_refuses_requests_at_random_breaks_no_queue_pair)
{
    uint32_t failed = 0;
    open_pair((struct fault_plan){.seed = 7, .refuse_ppm = 100000});
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct schema_sq_desc d = world_rw(SCHEMA_OP_READ, REQUESTS + i, 0, 8, vkey, 0);
        d.flags &= ~SCHEMA_OP_SIGNALED;
        world_post(&k, &d); /* which tells of itself when it fails, and then of the one behind it */
        struct schema_cqe e = do_one(world_rw(SCHEMA_OP_READ, i, 0, 8, vkey, 0));
        if (e.wr_id == REQUESTS + i)
            e = world_done(w, &k, PASSES);
        ck_assert_uint_eq(e.wr_id, i);
        failed += e.status != IBV_WC_SUCCESS;
        if (e.status != IBV_WC_SUCCESS)
            ck_assert_int_eq(world_connect(w, &k, 0, 1), 0);
    }
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_eq(world_stats(w, 0).qp_broken, 0);
    close_pair();
}
END_TEST

#define TESTS(T)                                                                                   \
    T(a_region_whose_name_differs_from_its_memory_by_no_multiple_of_8_is_refused)                  \
    T(an_atomic_that_is_misaligned_where_it_lands_never_reaches_a_queue_pair)                      \
    T(a_request_that_the_device_refuses_ends_at_once_and_the_list_goes_on)                         \
    T(a_request_that_never_finds_room_in_an_empty_queue_ends_after_some_tries)                     \
    T(a_lane_whose_own_read_is_refused_says_that_the_peer_is_down)                                 \
    T(what_is_out_unsignalled_before_a_request_that_is_refused_ends)                               \
    T(so_it_does_where_the_device_takes_nothing_behind_it)                                         \
    T(a_request_without_a_byte_completes_in_its_turn_and_never_reaches_a_queue_pair)               \
    T(pieces_without_a_byte_are_left_away)                                                         \
    T(more_pieces_than_the_device_takes_are_refused)                                               \
    T(a_device_without_atomics_has_none_here_either)                                               \
    T(a_device_without_atomics_over_dc_has_none_there_alone)                                       \
    T(where_a_device_has_no_fences_a_fenced_request_waits_for_those_before_it)                     \
    T(small_writes_are_inline_where_the_device_takes_fewer_bytes_so)                               \
    T(small_writes_go_on_after_errors_and_broken_queue_pairs)                                      \
    T(no_request_of_a_worker_is_one_that_a_picky_device_refuses)                                   \
    T(a_device_that_refuses_requests_at_random_breaks_no_queue_pair)
KEDGE_CHECK_MAIN("agent.lane.requests", TESTS)
