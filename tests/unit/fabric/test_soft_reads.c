/* SPDX-License-Identifier: Apache-2.0 */
/* How many READs and atomics a soft device's responder takes at a time. */
#include "../check_main.h"
#include "bed_qp.h"

/* n READs at once by a requester that has so many out, to a peer with that much room. How many
 * succeed before one is refused. */
static int read_at_once(uint8_t out, uint8_t room, int n)
{
    struct bed_patience patience = bed_hasty;
    struct bed_node a, b;
    struct fab_qp *rc[2];
    struct bed_wr w;
    char dir[64];
    int good = 0;
    patience.out = out;
    patience.room = room;
    bed_dir_make(dir);
    bed_open(&a, dir);
    bed_open(&b, dir);
    bed_rc_pair(&a, &b, patience, rc);
    const struct bed_card to = bed_card(&b, rc[1]);
    for (int round = 0; round < 2; round++) { /* what was polled is out no more */
        for (int i = 0; i < n && (round == 1 || i < room); i++) {
            bed_fill(&w, &a, &to, NULL, i % 2 == 0 ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD,
                     0, 0, 8);
            bed_post(rc[0], &w.wr);
        }
        for (int i = 0; i < n && (round == 1 || i < room); i++) {
            const struct ibv_wc wc = bed_wait(a.cq);
            if (wc.status == IBV_WC_SUCCESS && (round == 0 || good == i))
                good += round;
            else
                ck_assert_int_eq(wc.status, round == 1 && good == i ? IBV_WC_REM_INV_REQ_ERR
                                                                    : IBV_WC_WR_FLUSH_ERR);
        }
    }
    ck_assert_int_eq(fab_qp_state(rc[1]), good < n ? IBV_QPS_ERR : IBV_QPS_RTS);
    bed_qp_free(rc[0]);
    bed_qp_free(rc[1]);
    bed_close(&a);
    bed_close(&b);
    bed_dir_remove(dir);
    return good;
}

START_TEST(a_responder_takes_no_more_reads_than_it_was_told)
{
    ck_assert_int_eq(read_at_once(16, 4, 16), 4);
    ck_assert_int_eq(read_at_once(5, 4, 16), 4);
    ck_assert_int_eq(read_at_once(4, 4, 16), 16);
    ck_assert_int_eq(read_at_once(1, 4, 16), 16);
    ck_assert_int_eq(read_at_once(16, 128, 100), 100);
}
END_TEST

#define TESTS(T) T(a_responder_takes_no_more_reads_than_it_was_told)

KEDGE_CHECK_MAIN("fabric.soft_reads", TESTS)
