/* SPDX-License-Identifier: Apache-2.0 */
/* Polling and waiting: the hot path. */
#include "receive.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "request.h"
#include "schema/phase.h"

enum {
    GIVE_CALLS = 16, /* polls in vain, for each time that a lane without a processor gets it */
    CQES_AHEAD = 8   /* whose lines are asked for */
};

/* If it makes sense. It may be behind what a phase has said (schema/phase.h). */
static void see_tail(struct kedge_session *s)
{
    const uint32_t tail = atomic_load_explicit(&s->ro->cq_tail, memory_order_acquire);
    const uint32_t places = s->cq_mask + 1;
    if (tail - s->cq_head <= places && tail - s->cq_tail_seen <= places)
        s->cq_tail_seen = tail;
}

/* Whether there is one to look at. */
static bool has_cqe(struct kedge_session *s)
{
    if (s->cq_head != s->cq_tail_seen)
        return true;
    if ((s->features & SCHEMA_FEATURE_PHASES) == 0) { /* an agent of before */
        see_tail(s);
        return s->cq_head != s->cq_tail_seen;
    }
    const uint32_t stretch =
        __atomic_load_n(&s->cq[s->cq_head & s->cq_mask].stretch, __ATOMIC_ACQUIRE);
    const uint32_t count = stretch >> SCHEMA_STRETCH_COUNT;
    if (!schema_stretch_phase_is(stretch, s->cq_head, s->cq_mask) || count - 1 > s->cq_mask)
        return false;
    s->cq_tail_seen = s->cq_head + count;
    return true;
}

/* Of a VQP that still exists. */
static inline struct kedge_vqp *owner_of(struct kedge_session *s, const struct schema_cqe *c)
{
    struct kedge_vqp *q = &s->vqps[c->vqp];
    return c->vqp < s->used_vqps && client_vqp_is_there(q) && q->gen == c->vqp_gen ? q : NULL;
}

static inline void take_wc(struct kedge_session *s, struct kedge_vqp *q, const struct schema_cqe *c,
                           struct ibv_wc *to)
{
    if (q->out > 0) { /* else it failed without a flag */
        q->out--;
        s->processor.out--;
    }
    *to = (struct ibv_wc){.wr_id = c->wr_id,
                          .status = c->status,
                          .opcode = c->opcode,
                          .vendor_err = c->vendor_err,
                          .byte_len = c->byte_len,
                          .qp_num = q->index | (uint32_t)q->gen << 16};
}

static void publish_head(struct kedge_session *s, uint32_t before)
{
    if (s->cq_head != before)
        atomic_store_explicit(&s->rw->cq_head, s->cq_head, memory_order_release);
}

/* Of those that were put aside while messages were asked for. */
static __attribute__((noinline)) int poll_aside(struct kedge_session *s, int n, struct ibv_wc *wc)
{
    struct client_messages *m = s->messages;
    int count = 0;
    while (count < n && m->aside_head != m->aside_tail) {
        const struct schema_cqe *c = &m->aside[m->aside_head++ & s->cq_mask];
        struct kedge_vqp *q = owner_of(s, c);
        if (q != NULL)
            take_wc(s, q, c, &wc[count++]);
    }
    return count;
}

static __attribute__((noinline)) bool take_receive(struct kedge_session *s)
{
    return client_receive_take(s, s->cq_tail_seen - s->cq_head);
}

static int poll_some(struct kedge_session *s, int n, struct ibv_wc *wc)
{
    uint32_t before = s->cq_head;
    int count = 0;
    if (s->messages != NULL && (count = poll_aside(s, n, wc)) > 0)
        return count;
    while (count < n && has_cqe(s)) {
        /* Written already: a line that the lane is still to write is not taken from it. */
        if (s->cq_tail_seen - s->cq_head > CQES_AHEAD)
            __builtin_prefetch(&s->cq[(s->cq_head + CQES_AHEAD) & s->cq_mask]);
        struct schema_cqe c = s->cq[s->cq_head & s->cq_mask];
        if (client_is_receive(&c)) {
            if (!take_receive(s))
                break;
            continue;
        }
        s->cq_head++;
        struct kedge_vqp *q = owner_of(s, &c);
        if (q == NULL)
            continue;
        take_wc(s, q, &c, &wc[count++]);
    }
    if (count > 0 && client_is_taken_back(s)) /* these may be zeros */
        return 0;
    publish_head(s, before);
    return count;
}

static bool has_any_cqe(struct kedge_session *s, uint32_t unused)
{
    (void)unused;
    return has_cqe(s);
}

/* Of a call that found nothing, and waits for something that is out. A few on end are what a lane
 * takes that has a processor. */
static void poll_in_vain(struct kedge_session *s, bool out)
{
    if (++s->processor.polls % GIVE_CALLS != 1)
        return;
    client_say_processor(s);
    if (s->processor.polls > 1 && out && client_shares_processor(s))
        client_give_processor(s, has_any_cqe);
}

int kedge_poll(struct kedge_session *s, int n, struct ibv_wc *wc)
{
    if (client_is_null(s) || (n > 0 && client_is_null(wc)))
        return -EINVAL;
    if (*s->alive == 0)
        return client_usable(s);
    if (n < 0)
        return client_fail_text(-EINVAL, "a negative number of completions");
    int count = poll_some(s, n, wc);
    if (count > 0 || n == 0) {
        s->idle = s->processor.polls = 0;
        return count;
    }
    int status = client_usable(s);
    if (status == 0)
        status = client_idle(s);
    if (status == 0) {
        poll_in_vain(s, s->processor.out > 0);
        return 0;
    }
    count = poll_some(s, n, wc); /* what came before the end */
    return count > 0 ? count : status;
}

/* ---- messages */

/* What comes next goes to its kind's place. False: there is no room for it, or it makes no sense.
 */
static bool sort_cqe(struct kedge_session *s)
{
    struct client_messages *m = s->messages;
    const struct schema_cqe c = s->cq[s->cq_head & s->cq_mask];
    if (client_is_receive(&c))
        return take_receive(s);
    if (m->aside_tail - m->aside_head > s->cq_mask || client_is_taken_back(s))
        return false;
    m->aside[m->aside_tail++ & s->cq_mask] = c;
    s->cq_head++;
    return true;
}

static int pop_some(struct kedge_session *s, int n, struct kedge_msg *msgs)
{
    struct client_messages *m = s->messages;
    const uint32_t before = s->cq_head;
    int count = 0;
    if (m == NULL)
        return 0;
    while (m->ended < (uint32_t)n && has_cqe(s) && sort_cqe(s))
        ;
    publish_head(s, before);
    while (count < n && m->ended > 0)
        client_receive_pop(s, &msgs[count++]);
    return count;
}

int kedge_pop_msgs(struct kedge_session *s, int n, struct kedge_msg *msgs)
{
    if (client_is_null(s) || (n > 0 && client_is_null(msgs)))
        return -EINVAL;
    int status = client_messages_check(s);
    const bool ended = status != 0 && s->ended != 0;
    if (status != 0 && !ended)
        return status;
    if (n < 0)
        return client_fail_text(-EINVAL, "a negative number of messages");
    int count = pop_some(s, n, msgs); /* also what came before the end */
    if (count > 0 || n == 0) {
        s->idle = s->processor.polls = 0;
        return count;
    }
    if (status == 0)
        status = client_usable(s);
    if (status == 0)
        status = client_idle(s);
    if (status == 0)
        poll_in_vain(s, s->messages != NULL && s->messages->held > 0);
    return status;
}

/* ---- waiting */

/* Of what was put aside. */
static bool has_aside(struct kedge_session *s)
{
    struct client_messages *m = s->messages;
    while (m->aside_head != m->aside_tail &&
           owner_of(s, &m->aside[m->aside_head & s->cq_mask]) == NULL)
        m->aside_head++;
    return m->ended > 0 || m->aside_head != m->aside_tail;
}

/* Of the next one. What has no VQP any more is taken, and it goes on. */
static bool look_at_cqe(struct kedge_session *s, bool *goes_on)
{
    const struct schema_cqe c = s->cq[s->cq_head & s->cq_mask];
    *goes_on = true;
    if (client_is_receive(&c))
        *goes_on = take_receive(s);
    else if (owner_of(s, &c) != NULL)
        return true;
    else
        s->cq_head++;
    return s->messages != NULL && s->messages->ended > 0;
}

static bool has_completion(struct kedge_session *s, uint32_t unused)
{
    (void)unused;
    uint32_t before = s->cq_head;
    bool found = s->messages != NULL && has_aside(s), goes_on = true;
    while (!found && goes_on && has_cqe(s))
        found = look_at_cqe(s, &goes_on);
    if (found && client_is_taken_back(s))
        return false;
    publish_head(s, before);
    return found;
}

/* Or else something to hear: it is told with that. */
static bool has_something(struct kedge_session *s, uint32_t unused)
{
    return has_completion(s, unused) || client_has_notice(s);
}

bool client_take_something(struct kedge_session *s)
{
    if (has_completion(s, 0))
        return true;
    if (!client_has_notice(s))
        return false;
    client_told(s);
    return true;
}

int kedge_wait(struct kedge_session *s, int timeout_ms)
{
    if (client_is_null(s))
        return -EINVAL;
    uint64_t until =
        timeout_ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
    if (*s->alive == 0)
        return client_usable(s);
    for (;;) {
        if (client_take_something(s))
            return 1;
        int status = client_usable(s);
        if (status == 0)
            status = client_sleep(s, has_something, 0, until);
        if (status == 0)
            continue;
        if (client_take_something(s))
            return 1;
        return status == -ETIMEDOUT ? 0 : status;
    }
}

/* ---- waiting for many */

/* Those up to `to` of the ring, or of those that were put aside, which stay there. */
static void look_at_more(struct kedge_session *s, const struct schema_cqe *ring, uint32_t to)
{
    for (; s->many.looked != to; s->many.looked++) {
        const struct schema_cqe c = ring[s->many.looked & s->cq_mask];
        if (owner_of(s, &c) == NULL)
            continue;
        s->many.found++;
        s->many.failed |= c.status != IBV_WC_SUCCESS;
    }
}

/* How many completions, and receives that have ended, can be taken. Where there may be receives all
 * is sorted first, and counted there. */
static uint32_t count_found(struct kedge_session *s)
{
    struct client_messages *m = s->messages;
    const uint32_t before = s->cq_head;
    if (m == NULL) {
        see_tail(s);
        look_at_more(s, s->cq, s->cq_tail_seen);
        return s->many.found;
    }
    while (has_cqe(s) && sort_cqe(s))
        ;
    publish_head(s, before);
    look_at_more(s, m->aside, m->aside_tail);
    return s->many.found + m->ended;
}

/* So many; or one that failed; or all that there is room to sort; or something to hear. */
static bool has_many(struct kedge_session *s, uint32_t wanted)
{
    const uint32_t found = count_found(s);
    const bool full = s->messages != NULL && found > 0 && s->cq_head != s->cq_tail_seen;
    return (found >= wanted || s->many.failed || full || client_has_notice(s)) &&
           !client_is_taken_back(s);
}

/* How many places of the ring are behind its head when what is missing may be there. */
static uint32_t places_wanted(const struct kedge_session *s, uint32_t wanted)
{
    const uint32_t found = s->many.found + (s->messages != NULL ? s->messages->ended : 0);
    return s->cq_tail_seen - s->cq_head + wanted - found;
}

/* Of those that are out, and of receives; one, where there are none: of nothing that it knows of.
 */
static uint32_t begin_many(struct kedge_session *s, int n)
{
    const struct client_messages *m = s->messages;
    const uint32_t most = s->processor.out + (m != NULL ? m->held : 0);
    s->many.looked = m != NULL ? m->aside_head : s->cq_head;
    s->many.found = 0;
    s->many.failed = false;
    return most == 0 ? 1 : (uint32_t)n < most ? (uint32_t)n : most;
}

int kedge_wait_many(struct kedge_session *s, int n, int timeout_ms)
{
    if (client_is_null(s))
        return -EINVAL;
    if (n < 1)
        return client_fail_text(-EINVAL, "a wait for no completion");
    const uint64_t until =
        timeout_ms < 0 ? UINT64_MAX : base_clock_ns() + (uint64_t)timeout_ms * BASE_NS_PER_MS;
    if (*s->alive == 0)
        return client_usable(s);
    const uint32_t wanted = begin_many(s, n);
    bool there;
    int status = 0;
    while (!(there = has_many(s, wanted)) && status == 0) {
        status = client_usable(s);
        if (status == 0)
            status = client_sleep_for(s, places_wanted(s, wanted), has_many, wanted, until);
    }
    if (status == -ETIMEDOUT && !there)
        return 0;
    if (count_found(s) >
        0) /* what is to be heard is told when these are taken; or before the end */
        return 1;
    if (there)
        client_told(s);
    return there ? 1 : status;
}
