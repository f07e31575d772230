/* SPDX-License-Identifier: Apache-2.0 */
/* The lane of fake_agent.h's agent, as the test plays it on the mapped rings. */
#ifndef TESTS_UNIT_LIBCLIENT_FAKE_LANE_H
#define TESTS_UNIT_LIBCLIENT_FAKE_LANE_H

#include "base/futex.h"
#include "fake_agent.h"
#include "schema/phase.h"

static inline uint32_t fake_lane_waiting(struct fake_agent *a)
{
    return atomic_load(&a->rw->sq_tail) - atomic_load(&a->ro->sq_head);
}

/* The slot that is `n` after the first not taken. */
static inline struct schema_sq_desc *fake_lane_slot(struct fake_agent *a, uint32_t n)
{
    struct schema_sq_desc *ring = (struct schema_sq_desc *)((uint8_t *)a->rw + SCHEMA_SQ_OFFSET);
    return &ring[(atomic_load(&a->ro->sq_head) + n) % SQ_SLOTS];
}

static inline void fake_lane_take(struct fake_agent *a, uint32_t slots)
{
    atomic_fetch_add(&a->ro->sq_head, slots);
}

static inline void fake_lane_wake(struct fake_agent *a)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&a->rw->want_wake) != 0) {
        atomic_fetch_add(&a->ro->wake, 1);
        base_futex_wake(&a->ro->wake, 1);
    }
}

static inline void fake_lane_complete(struct fake_agent *a, uint32_t qp_num, uint64_t wr_id,
                                      uint8_t status)
{
    struct schema_cqe *ring = (struct schema_cqe *)((uint8_t *)a->ro + SCHEMA_CQ_OFFSET);
    uint32_t tail = atomic_load(&a->ro->cq_tail);
    ring[tail % CQ_SLOTS] = (struct schema_cqe){.wr_id = wr_id,
                                                .byte_len = 8,
                                                .vqp = (uint16_t)qp_num,
                                                .vqp_gen = (uint16_t)(qp_num >> 16),
                                                .status = status,
                                                .opcode = IBV_WC_RDMA_READ};
    schema_cq_publish(a->ro, ring, CQ_SLOTS - 1, tail, tail + 1);
    fake_lane_wake(a);
}

static inline void *fake_lane_answer_one(void *argument)
{
    struct fake_agent *a = argument;
    while (fake_lane_waiting(a) == 0)
        usleep(10);
    a->asked = *fake_lane_slot(a, 0);
    a->asked.slots &= SCHEMA_SLOTS_COUNT;
    for (uint32_t i = 1; i < a->asked.slots && i <= SCHEMA_MAX_EXTRA / SCHEMA_LINE; i++)
        memcpy(&a->extra[(i - 1) * SCHEMA_LINE], fake_lane_slot(a, i), SCHEMA_LINE);
    fake_lane_take(a, a->asked.slots);
    usleep((useconds_t)a->delay_us);
    struct schema_reply *r = &a->ro->reply[a->asked.connect.tag % SCHEMA_REPLIES];
    r->status = a->reply.status;
    r->reason = a->reply.reason;
    r->found = a->reply.found;
    atomic_store_explicit(&r->tag, a->asked.connect.tag, memory_order_release);
    fake_lane_wake(a);
    return NULL;
}

/* Answers the next request with a->reply, in a thread that fake_agent_asked() joins. */
static inline void fake_agent_answer(struct fake_agent *a)
{
    ck_assert_int_eq(pthread_create(&a->thread, NULL, fake_lane_answer_one, a), 0);
}

static inline const struct schema_sq_desc *fake_agent_asked(struct fake_agent *a)
{
    pthread_join(a->thread, NULL);
    return &a->asked;
}

#endif
