/* SPDX-License-Identifier: Apache-2.0 */
/* What RC and DC move: READ, WRITE, SEND, atomics, inline, gather and scatter, immediates. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "harness.h"

enum { MOST_INLINE = 512 };

static void fill(uint8_t *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (uint8_t)(i * 7 + seed);
}

START_TEST(a_write_puts_its_bytes_there_and_nothing_beside)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 100, 1000);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 333);
    fill(p.a.bytes, 2000, 1);
    memset(p.b.bytes, 0xee, 2000);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    struct ibv_wc wc = expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_WRITE);
    ck_assert_uint_eq(wc.qp_num, p.l.qp->qpn);
    ck_assert_mem_eq(p.b.bytes + 333, p.a.bytes + 100, 1000);
    ck_assert_uint_eq(p.b.bytes[332], 0xee);
    ck_assert_uint_eq(p.b.bytes[1333], 0xee);
    pair_close(&p);
}
END_TEST

START_TEST(a_read_fetches_the_bytes)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 51, 999);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_READ, &sge, 77);
    fill(p.b.bytes, 2000, 5);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    struct ibv_wc wc = expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_READ);
    ck_assert_mem_eq(p.a.bytes + 51, p.b.bytes + 77, 999);
    ck_assert_uint_eq(p.a.bytes[50], 0);
    ck_assert_uint_eq(p.a.bytes[1050], 0);
    pair_close(&p);
}
END_TEST

START_TEST(large_transfers_arrive_whole)
{
    const uint32_t bytes = NODE_BYTES / 2;
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge out = sge_of(&p.a, 0, bytes), back = sge_of(&p.a, bytes, bytes);
    struct fab_wr write = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &out, 1);
    struct fab_wr read = make_wr(&p.l, 2, IBV_WR_RDMA_READ, &back, 1);
    fill(p.a.bytes, bytes, 9);
    write.next = &read;
    ck_assert_int_eq(link_post(&p.l, &write), 0);
    expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
    expect_wc(p.a.cq, 2, IBV_WC_SUCCESS);
    ck_assert(memcmp(p.a.bytes, p.a.bytes + bytes, bytes) == 0);
    pair_close(&p);
}
END_TEST

START_TEST(several_sges_are_gathered_and_scattered)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    int n = (int)p.l.qp->cap.send_sge < 4 ? (int)p.l.qp->cap.send_sge : 4;
    struct ibv_sge sge[4];
    uint8_t expected[400];
    size_t length = 0;
    fill(p.a.bytes, 4096, 3);
    for (int i = 0; i < n; i++) { /* sizes 7, 0, 21, 28; apart */
        uint32_t size = i == 1 ? 0 : (uint32_t)(i + 1) * 7;
        sge[i] = sge_of(&p.a, (uint64_t)i * 512 + 13, size);
        memcpy(expected + length, p.a.bytes + (size_t)i * 512 + 13, size);
        length += size;
    }
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, sge, 40);
    wr.num_sge = n;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.b.bytes + 40, expected, length);
    for (int i = 0; i < n; i++)
        sge[i].addr += 8192;
    wr.opcode = IBV_WR_RDMA_READ;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    for (int i = 0; i < n; i++)
        ck_assert(
            memcmp(p.a.bytes + 8192 + i * 512 + 13, p.a.bytes + i * 512 + 13, sge[i].length) == 0);
    pair_close(&p);
}
END_TEST

START_TEST(inline_bytes_are_taken_when_posted)
{
    struct pair p;
    uint8_t local[16] = "inline, no key!";
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    if (p.l.qp->cap.inline_bytes >= sizeof local) {
        struct ibv_sge sge = {.addr = (uintptr_t)local, .length = sizeof local};
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &sge, 128);
        wr.send_flags |= IBV_SEND_INLINE;
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
        memset(local, 'x', sizeof local);
        expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
        ck_assert_mem_eq(p.b.bytes + 128, "inline, no key!", 16);
    }
    pair_close(&p);
}
END_TEST

/* As many as the queue pair was made with, and none more is taken. */
START_TEST(inline_bytes_go_up_to_what_the_queue_pair_has)
{
    struct pair p;
    uint8_t local[MOST_INLINE + 1];
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    const uint32_t most = p.l.qp->cap.inline_bytes;
    ck_assert_uint_le(most, p.a.fab->caps.max_inline);
    for (uint32_t length = 1; length <= most + 1 && length <= sizeof local; length++) {
        struct fab_wr *bad;
        struct ibv_sge sge = {.addr = (uintptr_t)local, .length = length};
        struct fab_wr wr = make_wr(&p.l, length, IBV_WR_RDMA_WRITE, &sge, 128);
        memset(local, (int)length, length);
        wr.send_flags |= IBV_SEND_INLINE;
        link_address(&p.l, &wr);
        if (length > most) {
            ck_assert_int_eq(fab_post_send(p.l.qp, &wr, &bad), -EINVAL);
            continue;
        }
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
        memset(local, 0xee, sizeof local);
        expect_wc(p.a.cq, length, IBV_WC_SUCCESS);
        ck_assert_uint_eq(p.b.bytes[128], length);
        ck_assert_uint_eq(p.b.bytes[128 + length - 1], length);
        ck_assert_uint_eq(p.b.bytes[128 + length], 0);
    }
    pair_close(&p);
}
END_TEST

START_TEST(an_inline_send_that_waits_for_a_receive_keeps_its_bytes)
{
    struct pair p;
    uint8_t local[8] = "waiting";
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    if (p.l.qp->cap.inline_bytes >= sizeof local) {
        struct ibv_sge sge = {.addr = (uintptr_t)local, .length = sizeof local};
        struct ibv_sge in = sge_of(&p.b, 256, 8);
        struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, &sge, 0);
        wr.send_flags |= IBV_SEND_INLINE;
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
        memset(local, 'x', sizeof local);
        memset(&sge, 0, sizeof sge); /* borrowed until posted, no longer */
        link_post_recv(&p.l, 2, &in, 1);
        expect_wc(p.a.cq, 1, IBV_WC_SUCCESS);
        expect_wc(p.b.cq, 2, IBV_WC_SUCCESS);
        ck_assert_mem_eq(p.b.bytes + 256, "waiting", 8);
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_request_without_bytes_touches_nothing_and_completes)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (int i = 0; i < 2; i++) {
        struct fab_wr wr = make_wr(&p.l, 1, opcodes[i], NULL, 0);
        struct ibv_sge empty = sge_of(&p.a, 0, 0);
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        wr.sg_list = &empty;
        wr.num_sge = 1;
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    }
    link_post_recv(&p.l, 2, NULL, 0);
    struct fab_wr send = make_wr(&p.l, 3, IBV_WR_SEND, NULL, 0);
    ck_assert_int_eq(do_one(&p.l, &send), IBV_WC_SUCCESS);
    ck_assert_uint_eq(expect_wc(p.b.cq, 2, IBV_WC_SUCCESS).byte_len, 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_linked_list_is_executed_in_order)
{
    enum { N = 16 };
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge[N];
    struct fab_wr wr[N];
    for (int i = 0; i < N; i++) { /* each overlaps the one before it */
        memset(p.a.bytes + i * 64, 'a' + i, 64);
        sge[i] = sge_of(&p.a, (uint64_t)i * 64, 64);
        wr[i] = make_wr(&p.l, (uint64_t)i, IBV_WR_RDMA_WRITE, &sge[i], (uint64_t)i * 32);
        wr[i].send_flags = i == N - 1 ? IBV_SEND_SIGNALED : 0;
        wr[i].next = i == N - 1 ? NULL : &wr[i + 1];
    }
    ck_assert_int_eq(link_post(&p.l, wr), 0);
    expect_wc(p.a.cq, N - 1, IBV_WC_SUCCESS);
    for (int i = 0; i < N * 32; i++)
        ck_assert_int_eq(p.b.bytes[i], 'a' + i / 32);
    expect_silence(p.a.cq);
    pair_close(&p);
}
END_TEST

START_TEST(a_read_sees_the_write_posted_before_it)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (uint64_t i = 1; i <= 500; i++) {
        struct ibv_sge out = sge_of(&p.a, 0, 8), back = sge_of(&p.a, 64, 8);
        struct fab_wr write = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE, &out, 8);
        struct fab_wr read = make_wr(&p.l, 2, IBV_WR_RDMA_READ, &back, 8);
        uint64_t got;
        memcpy(p.a.bytes, &i, 8);
        write.send_flags = 0;
        write.next = &read;
        ck_assert_int_eq(link_post(&p.l, &write), 0);
        expect_wc(p.a.cq, 2, IBV_WC_SUCCESS);
        memcpy(&got, p.a.bytes + 64, 8);
        ck_assert_uint_eq(got, i);
    }
    pair_close(&p);
}
END_TEST

START_TEST(compare_and_swap_swaps_only_what_it_expects)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    volatile uint64_t *word = (volatile uint64_t *)(void *)(p.b.bytes + 64);
    const uint64_t *before = (const uint64_t *)(const void *)p.a.bytes;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    struct fab_wr wr =
        make_atomic(&p.l, 1, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 64, 41, 0xfedcba9876543210);
    *word = 40;
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*word, 40);
    ck_assert_uint_eq(*before, 40);
    *word = 41;
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    ck_assert_int_eq(expect_wc(p.a.cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
    ck_assert_uint_eq(*word, 0xfedcba9876543210);
    ck_assert_uint_eq(*before, 41);
    pair_close(&p);
}
END_TEST

START_TEST(fetch_and_add_adds_and_returns_what_was_there)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    volatile uint64_t *word = (volatile uint64_t *)(void *)(p.b.bytes + 64);
    const uint64_t *before = (const uint64_t *)(const void *)p.a.bytes;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    *word = UINT64_MAX - 2;
    struct fab_wr wr = make_atomic(&p.l, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 64, 5, 0);
    ck_assert_int_eq(link_post(&p.l, &wr), 0);
    ck_assert_int_eq(expect_wc(p.a.cq, 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
    ck_assert_uint_eq(*before, UINT64_MAX - 2);
    ck_assert_uint_eq(*word, 2);
    pair_close(&p);
}
END_TEST

START_TEST(a_send_lands_in_the_oldest_receive_with_its_length)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    for (uint64_t i = 0; i < 4; i++) {
        struct ibv_sge in = sge_of(&p.b, i * 256, 256);
        link_post_recv(&p.l, 10 + i, &in, 1);
    }
    fill(p.a.bytes, 256, 2);
    for (uint32_t i = 0; i < 4; i++) {
        struct ibv_sge out = sge_of(&p.a, i, 50 + i);
        struct fab_wr wr = make_wr(&p.l, i, IBV_WR_SEND, &out, 0);
        ck_assert_int_eq(link_post(&p.l, &wr), 0);
        ck_assert_int_eq(expect_wc(p.a.cq, i, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
        struct ibv_wc wc = expect_wc(p.b.cq, 10 + i, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
        ck_assert_uint_eq(wc.byte_len, 50 + i);
        ck_assert_uint_eq(wc.wc_flags & IBV_WC_WITH_IMM, 0);
        ck_assert_mem_eq(p.b.bytes + (size_t)i * 256, p.a.bytes + i, 50 + i);
        if (p.l.peer != NULL)
            ck_assert_uint_eq(wc.qp_num, p.l.peer->qpn);
    }
    pair_close(&p);
}
END_TEST

START_TEST(an_immediate_arrives_with_a_send)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 0, 64), out = sge_of(&p.a, 0, 3);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND_WITH_IMM, &out, 0);
    wr.imm_data = htonl(0xcafe1234);
    link_post_recv(&p.l, 2, &in, 1);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    struct ibv_wc wc = expect_wc(p.b.cq, 2, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert(wc.wc_flags & IBV_WC_WITH_IMM);
    ck_assert_uint_eq(ntohl(wc.imm_data), 0xcafe1234);
    ck_assert_uint_eq(wc.byte_len, 3);
    pair_close(&p);
}
END_TEST

START_TEST(a_write_with_immediate_consumes_a_receive_and_writes)
{
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge in = sge_of(&p.b, 0, 64), out = sge_of(&p.a, 0, 100);
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_RDMA_WRITE_WITH_IMM, &out, 4096);
    fill(p.a.bytes, 100, 8);
    wr.imm_data = htonl(99);
    link_post_recv(&p.l, 2, &in, 1);
    ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
    struct ibv_wc wc = expect_wc(p.b.cq, 2, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert(wc.wc_flags & IBV_WC_WITH_IMM);
    ck_assert_uint_eq(ntohl(wc.imm_data), 99);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_mem_eq(p.b.bytes + 4096, p.a.bytes, 100);
    for (int i = 0; i < 64; i++) /* the receive's own buffer is not used */
        ck_assert_uint_eq(p.b.bytes[i], 0);
    pair_close(&p);
}
END_TEST

START_TEST(a_send_is_scattered_over_the_sges_of_a_receive)
{
    struct pair p;
    if (!pair_open(&p, FAB_RC, NULL, NULL, __func__))
        return;
    struct ibv_sge in[3] = {sge_of(&p.b, 0, 10), sge_of(&p.b, 1000, 0), sge_of(&p.b, 2000, 100)};
    struct ibv_sge out[2] = {sge_of(&p.a, 0, 7), sge_of(&p.a, 500, 30)};
    struct fab_wr wr = make_wr(&p.l, 1, IBV_WR_SEND, out, 0);
    uint8_t sent[37];
    fill(p.a.bytes, 1000, 4);
    memcpy(sent, p.a.bytes, 7);
    memcpy(sent + 7, p.a.bytes + 500, 30);
    wr.num_sge = 2;
    if (p.l.peer->cap.recv_sge >= 3 && p.l.qp->cap.send_sge >= 2) {
        link_post_recv(&p.l, 2, in, 3);
        ck_assert_int_eq(do_one(&p.l, &wr), IBV_WC_SUCCESS);
        ck_assert_uint_eq(expect_wc(p.b.cq, 2, IBV_WC_SUCCESS).byte_len, 37);
        ck_assert_mem_eq(p.b.bytes, sent, 10);
        ck_assert_mem_eq(p.b.bytes + 2000, sent + 10, 27);
        ck_assert_uint_eq(p.b.bytes[10], 0);
        ck_assert_uint_eq(p.b.bytes[2027], 0);
    }
    pair_close(&p);
}
END_TEST

START_TEST(completions_come_in_the_order_of_posting)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct pair p;
    if (!pair_open(&p, conf_reliable[_i], NULL, NULL, __func__))
        return;
    struct ibv_sge sge = sge_of(&p.a, 0, 8);
    uint64_t posted = 0, completed = 0;
    while (completed < 600) {
        while (posted < 600 && posted - completed < p.l.qp->cap.send_wr) {
            struct fab_wr wr = make_wr(&p.l, posted, opcodes[posted % 3], &sge, 64);
            ck_assert_int_eq(link_post(&p.l, &wr), 0);
            posted++;
        }
        struct ibv_wc wc[8];
        int n = fab_poll(p.a.cq, 8, wc);
        ck_assert_int_ge(n, 0);
        for (int i = 0; i < n; i++) {
            ck_assert_uint_eq(wc[i].wr_id, completed++);
            ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
        }
    }
    pair_close(&p);
}
END_TEST

START_TEST(a_queue_pair_reaches_a_region_of_its_own_node)
{
    struct node n;
    struct link l;
    if (conf_lacks(conf_reliable[_i], __func__))
        return;
    node_open(&n);
    if (conf_has(n.fab, conf_reliable[_i], __func__)) {
        link_open(&l, conf_reliable[_i], &n, &n, NULL, NULL);
        struct ibv_sge sge = sge_of(&n, 0, 64);
        struct fab_wr wr = make_wr(&l, 1, IBV_WR_RDMA_WRITE, &sge, 4096);
        fill(n.bytes, 64, 6);
        ck_assert_int_eq(do_one(&l, &wr), IBV_WC_SUCCESS);
        ck_assert_mem_eq(n.bytes + 4096, n.bytes, 64);
        link_close(&l);
    }
    node_close(&n);
}
END_TEST

void add_transfers(Suite *suite)
{
    TCase *t = conf_case(suite, "transfers");
    tcase_add_loop_test(t, a_write_puts_its_bytes_there_and_nothing_beside, 0, 2);
    tcase_add_loop_test(t, a_read_fetches_the_bytes, 0, 2);
    tcase_add_loop_test(t, large_transfers_arrive_whole, 0, 2);
    tcase_add_loop_test(t, several_sges_are_gathered_and_scattered, 0, 2);
    tcase_add_loop_test(t, inline_bytes_are_taken_when_posted, 0, 2);
    tcase_add_loop_test(t, inline_bytes_go_up_to_what_the_queue_pair_has, 0, 2);
    tcase_add_loop_test(t, an_inline_send_that_waits_for_a_receive_keeps_its_bytes, 0, 2);
    tcase_add_loop_test(t, a_request_without_bytes_touches_nothing_and_completes, 0, 2);
    tcase_add_loop_test(t, a_linked_list_is_executed_in_order, 0, 2);
    tcase_add_loop_test(t, a_read_sees_the_write_posted_before_it, 0, 2);
    tcase_add_loop_test(t, compare_and_swap_swaps_only_what_it_expects, 0, 2);
    tcase_add_loop_test(t, fetch_and_add_adds_and_returns_what_was_there, 0, 2);
    tcase_add_loop_test(t, a_send_lands_in_the_oldest_receive_with_its_length, 0, 2);
    tcase_add_loop_test(t, an_immediate_arrives_with_a_send, 0, 2);
    tcase_add_loop_test(t, a_write_with_immediate_consumes_a_receive_and_writes, 0, 2);
    tcase_add_test(t, a_send_is_scattered_over_the_sges_of_a_receive);
    tcase_add_loop_test(t, completions_come_in_the_order_of_posting, 0, 2);
    tcase_add_loop_test(t, a_queue_pair_reaches_a_region_of_its_own_node, 0, 2);
}
