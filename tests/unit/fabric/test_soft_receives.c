/* SPDX-License-Identifier: Apache-2.0 */
/* A receive whose memory is not all there: as much of the message is written as packets of a card
 * would be, each of which it looks at by itself, and both ends hear of it. */
#include "../check_main.h"
#include "bed_qp.h"

enum { REGION = 100, BUFFER = 4096, PART = 40, UNTOUCHED = 0xee };

struct pair {
    char dir[64];
    struct bed_node a, b;
    struct fab_qp *rc[2];
    struct fab_mr *small; /* of b: the first so many bytes */
};

static void pair_open(struct pair *p)
{
    bed_dir_make(p->dir);
    bed_open(&p->a, p->dir);
    bed_open(&p->b, p->dir);
    bed_rc_pair(&p->a, &p->b, bed_hasty, p->rc);
    p->small = bed_reg(&p->b, &p->b.mem, 0, REGION, IBV_ACCESS_LOCAL_WRITE);
    memset(p->b.mem.addr, UNTOUCHED, 2 * BUFFER);
    for (uint32_t i = 0; i < BUFFER; i++)
        ((uint8_t *)p->a.mem.addr)[i] = (uint8_t)(i % 200);
}

static void pair_close(struct pair *p)
{
    bed_qp_free(p->rc[0]);
    bed_qp_free(p->rc[1]);
    ck_assert_int_eq(bed_dereg(&p->b, p->small), 0);
    bed_close(&p->a);
    bed_close(&p->b);
    bed_dir_remove(p->dir);
}

/* b's: so many bytes of memory that is all there, and then more than the small region has. */
static void receive(struct pair *p, uint32_t whole)
{
    struct ibv_sge sge[2] = {
        {.addr = p->b.mr->addr + BUFFER, .length = whole, .lkey = p->b.mr->lkey},
        {.addr = p->small->addr, .length = BUFFER, .lkey = p->small->lkey}};
    struct fab_recv_wr wr = {.wr_id = 7,
                             .sg_list = whole > 0 ? sge : &sge[1],
                             .num_sge = whole > 0 ? 2 : 1},
                       *bad;
    ck_assert_int_eq(fab_post_recv(p->rc[1], &wr, &bad), 0);
}

/* a's, in so many parts of PART bytes. What the sender hears. */
static enum ibv_wc_status send_parts(struct pair *p, int parts)
{
    struct ibv_sge sge[4];
    for (int i = 0; i < parts; i++)
        sge[i] = (struct ibv_sge){
            .addr = p->a.mr->addr + (uint64_t)i * PART, .length = PART, .lkey = p->a.mr->lkey};
    struct fab_wr wr = {.wr_id = 1,
                        .sg_list = sge,
                        .num_sge = parts,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED};
    return bed_post_wait(p->rc[0], &wr);
}

/* Of the message's bytes from `from` on so many stand at the start of the small region, and none
 * behind them. */
static void holds(const struct pair *p, uint32_t from, uint32_t bytes)
{
    const uint8_t *at = p->b.mem.addr, *sent = p->a.mem.addr;
    ck_assert_mem_eq(at, sent + from, bytes);
    for (uint32_t i = bytes; i < 2 * REGION; i++)
        ck_assert_uint_eq(at[i], UNTOUCHED);
}

START_TEST(what_its_region_holds_is_written_and_no_more)
{
    struct pair p;
    pair_open(&p);
    receive(&p, 0);
    ck_assert_int_eq(send_parts(&p, 4), IBV_WC_REM_OP_ERR); /* of 160 bytes 80 in whole parts */
    const struct ibv_wc wc = bed_wait(p.b.cq);
    ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(wc.wr_id, 7);
    holds(&p, 0, 2 * PART);
    ck_assert_int_eq(fab_qp_state(p.rc[1]), IBV_QPS_ERR);
    pair_close(&p);
}
END_TEST

START_TEST(a_message_that_ends_before_its_region_does_is_taken)
{
    struct pair p;
    pair_open(&p);
    receive(&p, 0);
    ck_assert_int_eq(send_parts(&p, 2), IBV_WC_SUCCESS);
    const struct ibv_wc wc = bed_wait(p.b.cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.byte_len, 2 * PART);
    holds(&p, 0, 2 * PART);
    pair_close(&p);
}
END_TEST

/* The parts of the message end elsewhere than those of the receive. */
START_TEST(so_it_is_of_the_second_part_of_a_receive)
{
    struct pair p;
    pair_open(&p);
    receive(&p, 50);
    ck_assert_int_eq(send_parts(&p, 4), IBV_WC_REM_OP_ERR);
    ck_assert_int_eq(bed_wait(p.b.cq).status, IBV_WC_LOC_PROT_ERR);
    ck_assert_mem_eq((uint8_t *)p.b.mem.addr + BUFFER, p.a.mem.addr, 50);
    ck_assert_uint_eq(((uint8_t *)p.b.mem.addr)[BUFFER + 50], UNTOUCHED);
    holds(&p, 50, 3 * PART - 50); /* the fourth would end at 110 */
    pair_close(&p);
}
END_TEST

#define TESTS(T)                                                                                   \
    T(what_its_region_holds_is_written_and_no_more)                                                \
    T(a_message_that_ends_before_its_region_does_is_taken)                                         \
    T(so_it_is_of_the_second_part_of_a_receive)

KEDGE_CHECK_MAIN("fabric.soft_receives", TESTS)
