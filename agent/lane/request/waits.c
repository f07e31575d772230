/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's requests wait for, for whoever asks. VQPs are counted where they begin and end
 * to wait, which costs those nothing that do not; all else is in what the lane and the worker tell
 * each other anyway. */
#include <string.h>

#include "agent/lane_stats.h"
#include "schema/wait_reason.h"
#include "session_state.h"

static uint32_t read_count(const _Atomic uint32_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

/* How far one index is ahead of another: a worker may have written anything. Whoever goes by phases
 * may be ahead of the tail while who publishes has not come to that (schema/phase.h). */
static uint32_t count_between(const _Atomic uint32_t *from, const _Atomic uint32_t *to,
                              uint32_t most)
{
    const uint32_t taken = atomic_load_explicit(from, memory_order_acquire);
    const uint32_t between = read_count(to) - taken, ahead = 0 - between;
    return ahead <= most ? 0 : between < most ? between : most;
}

/* Why nothing more is taken from its ring; what only the lane knows, it says. */
static enum schema_wait find_hold(const struct session_shown *s, uint32_t inflight,
                                  uint32_t unpolled)
{
    const enum schema_wait held = (enum schema_wait)read_count(&s->held);
    if (held != SCHEMA_WAIT_NOTHING)
        return held;
    if (inflight >= s->max_inflight)
        return SCHEMA_WAIT_PLACES;
    return unpolled + inflight >= s->cq_slots ? SCHEMA_WAIT_UNPOLLED : SCHEMA_WAIT_TURN;
}

/* What was taken, and holds back what stands behind it, is in the ring no more. */
static bool is_taken(enum schema_wait hold)
{
    return hold == SCHEMA_WAIT_CONNECT || hold == SCHEMA_WAIT_REGISTER ||
           hold == SCHEMA_WAIT_LOOKUP;
}

static void count_rings(const struct session_shown *s, uint32_t inflight,
                        uint32_t count[SCHEMA_WAITS])
{
    const uint32_t unpolled = count_between(&s->rw->cq_head, &s->ro->cq_tail, s->cq_slots);
    const uint32_t slots = count_between(&s->ro->sq_head, &s->rw->sq_tail, s->sq_slots);
    const enum schema_wait hold = find_hold(s, inflight, unpolled);
    count[hold] = slots + is_taken(hold);
    count[SCHEMA_WAIT_POLL] = unpolled;
}

void lane_waits(const struct lane_memory *memory, bool touch, uint32_t count[SCHEMA_WAITS])
{
    const struct session_shown *s = &memory->shown;
    const _Atomic uint32_t *taken = atomic_load_explicit(&s->inflight, memory_order_acquire);
    memset(count, 0, SCHEMA_WAITS * sizeof count[0]);
    if (taken == NULL)
        return;
    const uint32_t queued = read_count(&s->queued), inflight = read_count(taken);
    for (int why = WAIT_NOTHING + 1; why < VQP_WAITS; why++)
        count[why] = read_count(&s->waits[why]);
    count[SCHEMA_WAIT_ANSWER] = inflight > queued ? inflight - queued : 0;
    /* Of one that has ended nothing more is taken, and nobody polls. */
    if (touch && read_count(&s->ro->ended) == SCHEMA_REASON_NONE)
        count_rings(s, inflight, count);
}

void lane_posted_of(const struct lane_memory *memory, uint64_t *operations, uint64_t *bytes)
{
    *operations = atomic_load_explicit(&memory->shown.operations, memory_order_relaxed);
    *bytes = atomic_load_explicit(&memory->shown.bytes, memory_order_relaxed);
}
