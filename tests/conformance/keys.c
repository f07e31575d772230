/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys open which memory to whom: wrong keys, rights, bounds, PDs, on both sides. */
#include <errno.h>
#include <string.h>

#include "fabric/iova.h"
#include "harness.h"

static const enum ibv_wr_opcode opcodes[] = {
    IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
enum { OPCODES = 4, WHERE = 4096 };

/* The status of an 8-byte operation at a remote address under a key; the link is repaired before.
 */
static enum ibv_wc_status attempt(struct link *l, enum ibv_wr_opcode opcode, uint32_t rkey,
                                  uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = sge_of(l->a, 0, length);
    link_repair(l, NULL);
    memset(l->a->bytes, 0x77, 64);
    struct fab_wr wr = make_atomic(l, 1, opcode, &sge, 0, 0, 0x0101010101010101);
    wr.key.rkey = rkey;
    wr.remote_addr = addr;
    return do_one(l, &wr);
}

static void expect_untouched(const struct node *n)
{
    for (int i = WHERE - 64; i < WHERE + 4096 + 64; i++)
        ck_assert_msg(n->bytes[i] == 0, "byte %d was changed", i);
}

START_TEST(a_key_that_does_not_exist_is_refused)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    const uint32_t key = p.b.mr->rkey;
    const uint32_t wrong[] = {0, key ^ 1, key ^ 0x100, key ^ 0x10000, key ^ 0x80000000, ~key};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
        for (int o = 0; o < OPCODES; o++)
            ck_assert_int_eq(attempt(&p.l, opcodes[o], wrong[k], p.b.mr->addr + WHERE, 8),
                             IBV_WC_REM_ACCESS_ERR);
    expect_untouched(&p.b);
    pair_close(&p);
}
END_TEST

START_TEST(a_region_allows_what_it_was_registered_for_and_no_more)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (unsigned access = 0; access < 16; access++) {
        if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
            !(access & IBV_ACCESS_LOCAL_WRITE))
            continue; /* cannot be registered */
        struct fab_mr *mr = make_mr(p.b.pd, &p.b.mem, WHERE, 64, access);
        for (int o = 0; o < OPCODES; o++) {
            unsigned needed = opcodes[o] == IBV_WR_RDMA_READ    ? IBV_ACCESS_REMOTE_READ
                              : opcodes[o] == IBV_WR_RDMA_WRITE ? IBV_ACCESS_REMOTE_WRITE
                                                                : IBV_ACCESS_REMOTE_ATOMIC;
            enum ibv_wc_status status = attempt(&p.l, opcodes[o], mr->rkey, mr->addr, 8);
            ck_assert_msg(status == (access & needed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR),
                          "access %#x, opcode %d: status %d", access, (int)opcodes[o], (int)status);
            if (!(access & needed))
                expect_untouched(&p.b);
            memset(p.b.bytes + WHERE, 0, 8);
        }
        ck_assert_int_eq(free_mr(mr), 0);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_region_ends_where_it_was_registered_to_end)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    /* Neither begins nor ends at a page; the memory around it belongs to another region. */
    struct fab_mr *mr = make_mr(p.b.pd, &p.b.mem, WHERE + 8, 1001, ALL_ACCESS);
    const struct {
        uint64_t addr;
        uint32_t length;
        bool inside;
    } range[] = {
        {mr->addr, 8, true},         {mr->addr + 993, 8, true},
        {mr->addr, 1001, true},      {mr->addr - 1, 8, false},
        {mr->addr + 994, 8, false},  {mr->addr, 1002, false},
        {mr->addr + 1001, 8, false}, {mr->addr - 8, 8, false},
        {mr->addr + 4096, 8, false}, {0, 8, false},
        {UINT64_MAX - 3, 8, false}, /* wraps to 4 */
        {UINT64_MAX - 7, 8, false}, /* ends at the very end */
        {UINT64_MAX, 1, false},      {mr->addr + (1ull << 63), 8, false},
        {0 - mr->addr, 8, false},
    };
    for (size_t i = 0; i < sizeof range / sizeof range[0]; i++)
        for (int o = 0; o < 2; o++) {
            enum ibv_wc_status status =
                attempt(&p.l, opcodes[o], mr->rkey, range[i].addr, range[i].length);
            ck_assert_msg(status == (range[i].inside ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR),
                          "range %zu, opcode %d: status %d", i, (int)opcodes[o], (int)status);
        }
    for (int i = 0; i < 8; i++) {
        ck_assert_uint_eq(p.b.bytes[WHERE + i], 0);
        ck_assert_uint_eq(p.b.bytes[WHERE + 8 + 1001 + i], 0);
    }
    ck_assert_int_eq(free_mr(mr), 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_region_of_another_protection_domain_is_refused)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct fab_pd *other = make_pd(p.b.fab);
    struct fab_mr *mr = make_mr(other, &p.b.mem, WHERE, 4096, ALL_ACCESS);
    for (int o = 0; o < OPCODES; o++)
        ck_assert_int_eq(attempt(&p.l, opcodes[o], mr->rkey, mr->addr, 8), IBV_WC_REM_ACCESS_ERR);
    expect_untouched(&p.b);
    ck_assert_int_eq(free_mr(mr), 0);
    ck_assert_int_eq(free_pd(other), 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_region_of_another_node_is_refused)
{
    struct pair p;
    struct node c;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    node_open(&c);
    /* On some devices keys of two contexts may be equal: then it is b's own key. */
    if (c.mr->rkey != p.b.mr->rkey)
        for (int o = 0; o < OPCODES; o++)
            ck_assert_int_eq(attempt(&p.l, opcodes[o], c.mr->rkey, c.mr->addr + WHERE, 8),
                             IBV_WC_REM_ACCESS_ERR);
    expect_untouched(&c);
    node_close(&c);
    pair_close(&p);
}
END_TEST

START_TEST(a_misaligned_atomic_is_refused)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (int o = 2; o < OPCODES; o++)
        for (uint64_t shift = 1; shift < 8; shift += 3) {
            enum ibv_wc_status status =
                attempt(&p.l, opcodes[o], p.b.mr->rkey, p.b.mr->addr + WHERE + shift, 8);
            ck_assert(status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR);
        }
    expect_untouched(&p.b);
    pair_close(&p);
}
END_TEST

START_TEST(a_queue_pair_allows_peers_what_it_was_told_to)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    for (int o = 0; o < OPCODES; o++) {
        struct ibv_sge sge = sge_of(&p.a, 0, 8);
        struct fab_wr wr = make_atomic(&p.l, 1, opcodes[o], &sge, WHERE, 0, 1);
        const struct rc_options none = {.access = IBV_ACCESS_LOCAL_WRITE};
        link_repair(&p.l, &none);
        enum ibv_wc_status status = do_one(&p.l, &wr);
        ck_assert(status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR);
    }
    expect_untouched(&p.b);
    pair_close(&p);
}
END_TEST

/* ---- addresses of their own */

/* A region of b's at an address where nothing was before. */
static struct fab_mr *make_fresh(struct node *n, struct fab_iova *iova, uint64_t offset)
{
    uint64_t at;
    struct fab_mr *mr;
    ck_assert_int_eq(fab_iova_take(iova, FAB_IOVA_REGION, &n->mem, offset, 4096, &at), 0);
    ck_assert_int_eq(make_mr_at(n->pd, &n->mem, offset, 4096, ALL_ACCESS, at, &mr), 0);
    ck_assert_uint_eq(mr->addr, at);
    return mr;
}

START_TEST(a_region_is_found_at_the_address_that_it_was_given_and_nowhere_else)
{
    struct pair p;
    struct fab_iova iova;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    fab_iova_init(&iova, 0x5eed5eed5eed5eed);
    struct fab_mr *far = make_fresh(&p.b, &iova, WHERE), *near = make_fresh(&p.a, &iova, 3 * WHERE);
    for (int o = 0; o < OPCODES; o++) {
        struct ibv_sge sge = {.addr = near->addr + 128, .length = 8, .lkey = near->lkey};
        memset(p.a.bytes + 3 * WHERE, 0x77, 256);
        struct fab_wr wr = make_atomic(&p.l, 1, opcodes[o], &sge, 0, 0, 1);
        wr.key.rkey = far->rkey;
        wr.remote_addr = far->addr + 64;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        if (opcodes[o] == IBV_WR_RDMA_WRITE)
            ck_assert_uint_eq(p.b.bytes[WHERE + 64], 0x77);
        if (opcodes[o] == IBV_WR_RDMA_READ)
            ck_assert_uint_eq(p.a.bytes[3 * WHERE + 128], 0);
        memset(p.b.bytes + WHERE, 0, 4096);
        /* Not where this process has it. */
        ck_assert_int_eq(attempt(&p.l, opcodes[o], far->rkey, (uintptr_t)p.b.bytes + WHERE + 64, 8),
                         IBV_WC_REM_ACCESS_ERR);
        expect_untouched(&p.b);
        link_repair(&p.l, NULL);
    }
    ck_assert_int_eq(free_mr(far), 0);
    ck_assert_int_eq(free_mr(near), 0);
    pair_close(&p);
}
END_TEST

START_TEST(inline_bytes_are_where_the_process_has_them)
{
    struct pair p;
    struct fab_iova iova;
    uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    fab_iova_init(&iova, 0x5eed5eed5eed5eed);
    struct fab_mr *near = make_fresh(&p.a, &iova, 0);
    /* The key of an inline SGE says nothing. */
    struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = 8, .lkey = near->lkey};
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, WHERE);
    wr.send_flags |= IBV_SEND_INLINE;
    if (p.l.qp->cap.inline_bytes >= 8) {
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        ck_assert_mem_eq(p.b.bytes + WHERE, bytes, 8);
    }
    ck_assert_int_eq(free_mr(near), 0);
    pair_close(&p);
}
END_TEST

START_TEST(an_address_in_another_place_of_its_page_is_refused)
{
    struct node n;
    struct fab_mr *mr;
    node_open(&n);
    const uint64_t there = 1ull << 48 | ((uintptr_t)n.mem.addr & (2 * 4096 - 1));
    ck_assert_int_eq(make_mr_at(n.pd, &n.mem, 64, 4096, ALL_ACCESS, there + 128, &mr), -EINVAL);
    ck_assert_int_eq(make_mr_at(n.pd, &n.mem, 64, 4096, ALL_ACCESS, there + 64, &mr), 0);
    ck_assert_int_eq(free_mr(mr), 0);
    node_close(&n);
}
END_TEST

/* It would be reached through them where a driver takes such pages for contiguous memory. */
START_TEST(an_address_in_another_place_of_a_larger_page_is_refused)
{
    enum { BYTES = 4 * 4096 };
    struct node n;
    struct fab_mr *mr;
    node_open(&n);
    const uint64_t there = 1ull << 48 | ((uintptr_t)n.mem.addr & (BYTES - 1));
    for (uint64_t off = 4096; off < BYTES; off += 4096)
        ck_assert_int_eq(make_mr_at(n.pd, &n.mem, 0, BYTES, ALL_ACCESS, there ^ off, &mr), -EINVAL);
    ck_assert_int_eq(make_mr_at(n.pd, &n.mem, 0, BYTES, ALL_ACCESS, there, &mr), 0);
    ck_assert_int_eq(free_mr(mr), 0);
    node_close(&n);
}
END_TEST

START_TEST(who_has_a_former_record_does_not_reach_the_region_that_has_its_place)
{
    struct pair p;
    struct fab_iova iova;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    fab_iova_init(&iova, 0x5eed5eed5eed5eed);
    for (int round = 0; round < 20; round++) {
        struct fab_mr *mr = make_fresh(&p.b, &iova, WHERE);
        const struct fab_mr former = *mr;
        ck_assert_int_eq(attempt(&p.l, IBV_WR_RDMA_WRITE, former.rkey, former.addr, 8),
                         IBV_WC_SUCCESS);
        ck_assert_uint_eq(p.b.bytes[WHERE], 0x77);
        memset(p.b.bytes + WHERE, 0, 8);
        ck_assert_int_eq(free_mr(mr), 0);
        mr = make_fresh(&p.b, &iova, WHERE); /* its keys may be the same */
        for (int o = 0; o < OPCODES; o++)
            ck_assert_int_eq(attempt(&p.l, opcodes[o], former.rkey, former.addr, 8),
                             IBV_WC_REM_ACCESS_ERR);
        expect_untouched(&p.b);
        ck_assert_int_eq(attempt(&p.l, IBV_WR_RDMA_WRITE, mr->rkey, mr->addr, 8), IBV_WC_SUCCESS);
        ck_assert_uint_eq(p.b.bytes[WHERE], 0x77);
        memset(p.b.bytes + WHERE, 0, 8);
        ck_assert_int_eq(free_mr(mr), 0);
    }
    pair_close(&p);
}
END_TEST

/* ---- the initiator's side */

/* A WRITE from, or a READ to, this local range. */
static enum ibv_wc_status locally(struct link *l, enum ibv_wr_opcode opcode, struct ibv_sge sge)
{
    link_repair(l, NULL);
    struct fab_wr wr = make_wr(l, 1, opcode, &sge, WHERE);
    return do_one(l, &wr);
}

START_TEST(local_ranges_must_lie_in_a_region_of_the_queue_pairs_domain)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct fab_pd *other = make_pd(p.a.fab);
    struct fab_mr *foreign = make_mr(other, &p.a.mem, 0, 4096, ALL_ACCESS);
    struct fab_mr *part = make_mr(p.a.pd, &p.a.mem, 8, 100, ALL_ACCESS);
    struct fab_mr *gone = make_mr(p.a.pd, &p.a.mem, 0, 4096, ALL_ACCESS);
    uint32_t stale = gone->lkey;
    ck_assert_int_eq(free_mr(gone), 0);
    const struct ibv_sge bad[] = {
        {part->addr - 1, 8, part->lkey},      {part->addr + 93, 8, part->lkey},
        {part->addr, 101, part->lkey},        {part->addr + 100, 1, part->lkey},
        {UINT64_MAX - 3, 8, part->lkey},      {0, 8, part->lkey},
        {foreign->addr, 8, foreign->lkey},    {part->addr, 8, 0},
        {p.a.mr->addr, 8, p.a.mr->lkey ^ 64}, {p.a.mr->addr, 8, stale},
    };
    const struct ibv_sge good = {part->addr + 92, 8, part->lkey};
    memset(p.a.bytes, 0x55, 4096);
    for (int o = 0; o < 2; o++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            ck_assert_msg(locally(&p.l, opcodes[o], bad[i]) == IBV_WC_LOC_PROT_ERR,
                          "range %zu, opcode %d", i, (int)opcodes[o]);
        if (o == 0)
            for (int i = 0; i < 4096; i++)
                ck_assert_uint_eq(p.a.bytes[i], 0x55);
        expect_untouched(&p.b);
    }
    ck_assert_int_eq(locally(&p.l, IBV_WR_RDMA_READ, good), IBV_WC_SUCCESS);
    ck_assert_int_eq(free_mr(part), 0);
    ck_assert_int_eq(free_mr(foreign), 0);
    ck_assert_int_eq(free_pd(other), 0);
    pair_close(&p);
}
END_TEST

START_TEST(reading_into_a_region_without_local_write_is_a_local_error)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct fab_mr *mr = make_mr(p.a.pd, &p.a.mem, 0, 4096, 0);
    const struct ibv_sge sge = {mr->addr, 8, mr->lkey};
    memset(p.b.bytes + WHERE, 9, 8);
    ck_assert_int_eq(locally(&p.l, IBV_WR_RDMA_READ, sge), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(locally(&p.l, IBV_WR_ATOMIC_FETCH_AND_ADD, sge), IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(p.a.bytes[0], 0);
    memset(p.a.bytes, 3, 8);
    ck_assert_int_eq(locally(&p.l, IBV_WR_RDMA_WRITE, sge), IBV_WC_SUCCESS);
    ck_assert_uint_eq(p.b.bytes[WHERE], 3);
    ck_assert_int_eq(free_mr(mr), 0);
    pair_close(&p);
}
END_TEST

START_TEST(one_bad_sge_of_several_fails_the_whole_request)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge[3] = {sge_of(&p.a, 0, 8), sge_of(&p.a, 64, 8), sge_of(&p.a, 128, 8)};
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, sge, WHERE);
    wr.num_sge = 3;
    sge[2].addr = (uintptr_t)p.a.bytes + NODE_BYTES - 4;
    memset(p.a.bytes, 1, 256);
    if (p.l.qp->cap.send_sge >= 3) {
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_LOC_PROT_ERR);
        expect_silence(p.b.cq);
        expect_untouched(&p.b);
    }
    pair_close(&p);
}
END_TEST

void add_keys(Suite *suite)
{
    TCase *t = conf_case(suite, "keys");
    tcase_add_loop_test(t, a_key_that_does_not_exist_is_refused, 0, 2);
    tcase_add_loop_test(t, a_region_allows_what_it_was_registered_for_and_no_more, 0, 2);
    tcase_add_loop_test(t, a_region_ends_where_it_was_registered_to_end, 0, 2);
    tcase_add_loop_test(t, a_region_of_another_protection_domain_is_refused, 0, 2);
    tcase_add_loop_test(t, a_region_of_another_node_is_refused, 0, 2);
    tcase_add_loop_test(t, a_misaligned_atomic_is_refused, 0, 2);
    tcase_add_test(t, a_queue_pair_allows_peers_what_it_was_told_to);
    tcase_add_loop_test(t, a_region_is_found_at_the_address_that_it_was_given_and_nowhere_else, 0,
                        2);
    tcase_add_loop_test(t, inline_bytes_are_where_the_process_has_them, 0, 2);
    tcase_add_test(t, an_address_in_another_place_of_its_page_is_refused);
    tcase_add_test(t, an_address_in_another_place_of_a_larger_page_is_refused);
    tcase_add_loop_test(t, who_has_a_former_record_does_not_reach_the_region_that_has_its_place, 0,
                        2);
    tcase_add_loop_test(t, local_ranges_must_lie_in_a_region_of_the_queue_pairs_domain, 0, 2);
    tcase_add_loop_test(t, reading_into_a_region_without_local_write_is_a_local_error, 0, 2);
    tcase_add_loop_test(t, one_bad_sge_of_several_fails_the_whole_request, 0, 2);
}
