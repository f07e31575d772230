/* SPDX-License-Identifier: Apache-2.0 */
/* An error in one stream of the stand-in's DCI, which takes its time to break it. */
#ifndef TESTS_UNIT_FABRIC_DC_STAND_IN_STREAMS_H
#define TESTS_UNIT_FABRIC_DC_STAND_IN_STREAMS_H

#include "dc_stand_in.h"

static void fake_goes_on(struct fake_qp *q)
{
    for (uint32_t i = q->oldest; i != q->head && base_prng_below(&q->prng, 3) != 0; i++) {
        uint32_t before = q->oldest;
        while (before != i && (q->wr[before % FAKE_WRS].over ||
                               q->wr[before % FAKE_WRS].stream != q->wr[i % FAKE_WRS].stream))
            before++;
        if (before != i || q->wr[i % FAKE_WRS].over ||
            q->wr[i % FAKE_WRS].stream == q->failed_stream)
            continue;
        fake_end(q, i, IBV_WC_SUCCESS);
        break;
    }
    if (--q->polls_to_err > 0)
        return;
    q->ex.qp_base.state = IBV_QPS_ERR;
    while (q->oldest != q->head)
        fake_end(q, q->oldest, IBV_WC_WR_FLUSH_ERR);
    fake.failing = NULL;
}

/* Request i fails, in its stream: the others go on, one request a poll at most, until some polls
 * later the DCI is in ERR and the rest is flushed, as rdma-core's test_dc_stream_qp_recovery waits
 * for it. */
static inline void fake_stream_fails(struct ibv_qp *qp, uint32_t i, enum ibv_wc_status status,
                                     uint64_t seed)
{
    struct fake_qp *q = (struct fake_qp *)qp;
    base_prng_seed(&q->prng, seed);
    q->polls_to_err = 1 + (uint32_t)base_prng_below(&q->prng, 8);
    i += q->oldest;
    q->failed_stream = q->wr[i % FAKE_WRS].stream;
    fake_end(q, i, status);
    fake.failing = q;
    fake.goes_on = fake_goes_on;
}

#endif
