/* SPDX-License-Identifier: Apache-2.0 */
#include "request/reply.h"

#include <errno.h>
#include <string.h>

#include "lane_state.h"
#include "resolve/name_lookup.h"
#include "schedule/vqp.h"
#include "request/active.h"
#include "request/handover.h"
#include "request/lists.h"
#include "schema/phase.h"
#include "schema/wake.h"
#include "session_state.h"
#include "transmit/timing.h"
#include "transmit/wr.h"

enum {
    WAKES = 32,
    WAKES_SHARED = 2, /* of a tenant, in a pass */
    WAKE_RESTS = 32   /* times as long as a wake has kept the lane its tenant's next one waits */
};

void lane_session_tell(struct lane *l, struct session *s)
{
    if (s->dirty)
        return;
    s->dirty = SESSION_TELL;
    STAILQ_INSERT_TAIL(&l->dirty, s, by_dirty);
}

void lane_session_tell_now(struct lane *l, struct session *s)
{
    lane_session_tell(l, s);
    s->dirty = SESSION_TELL_NOW;
}

static inline __attribute__((always_inline)) void
write_completion(struct lane *l, struct session *s, const struct wr *w, enum ibv_wc_status status,
                 uint32_t vendor_err, uint8_t opcode)
{
    __builtin_prefetch(&s->cqes[(s->cq_tail + 8) & s->cq_mask], 1);
    s->cqes[s->cq_tail++ & s->cq_mask] = (struct schema_cqe){.wr_id = w->wr_id,
                                                             .byte_len = (uint32_t)w->length,
                                                             .vqp = w->vqp,
                                                             .vqp_gen = w->vqp_gen,
                                                             .status = (uint8_t)status,
                                                             .opcode = opcode,
                                                             .vendor_err = vendor_err};
    lane_session_tell(l, s);
}

static void free_request(struct session *s, struct wr *w)
{
    w->next = s->free_wr;
    s->free_wr = w;
}

/* One of a list has failed. Apart, so that what most requests are is as short as it was. */
static __attribute__((noinline, cold)) void fail_listed(struct lane *l, struct wr *w, bool seen,
                                                        enum ibv_wc_status status, uint32_t reason)
{
    struct session *s = w->session;
    uint8_t opcode = w->op->completion;
    if (seen && lane_list_fail(&s->vqps[w->vqp], w, &status, &reason, &opcode)) {
        lane_session_tell_now(l, s);
        write_completion(l, s, w, status, reason, opcode);
    }
    free_request(s, w);
}

void lane_session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                           uint32_t vendor_err)
{
    struct session *s = w->session;
    bool seen = s->state == SESSION_LIVE && s->vqps[w->vqp].gen == w->vqp_gen;
    session_count(&s->inflight, -1);
    active_count_out(s->of, -1);
    if (status == IBV_WC_SUCCESS) {
        COUNT(l, completed, 1);
    } else {
        COUNT(l, failed, 1);
        if (w->special & SPECIAL_LISTED) {
            fail_listed(l, w, seen, status, vendor_err);
            return;
        }
        if (seen)
            lane_session_tell_now(l, s);
    }
    if (seen && (w->signaled || status != IBV_WC_SUCCESS))
        write_completion(l, s, w, status, vendor_err, w->op->completion);
    free_request(s, w);
}

bool lane_session_has_two_places(struct session *s)
{
    return s->cq_tail - s->cq_head + session_inflight(s) <= s->cq_mask ||
           (session_look_at_cq_head(s) &&
            s->cq_tail - s->cq_head + session_inflight(s) <= s->cq_mask);
}

/* Both places are published together, at the end of the pass. */
void lane_session_deliver(struct lane *l, struct wr *receive, bool with_imm, uint32_t imm,
                          const struct schema_cqe_sender *sender)
{
    struct session *s = receive->session;
    const uint32_t at = s->cq_tail;
    lane_session_complete(l, receive, IBV_WC_SUCCESS, 0);
    if (s->cq_tail == at) /* nobody sees it */
        return;
    struct schema_cqe *e = &s->cqes[at & s->cq_mask];
    e->extra = 1;
    e->with_imm = with_imm;
    e->imm = imm;
    memcpy(&s->cqes[s->cq_tail++ & s->cq_mask], sender, sizeof *sender);
}

static struct schema_reply *reply_of(const struct session *s, uint32_t tag, int status,
                                     uint32_t reason)
{
    struct schema_reply *r = &s->ro->reply[tag % SCHEMA_REPLIES];
    r->status = status;
    r->reason = reason;
    return r;
}

void lane_session_answer(struct lane *l, struct session *s, uint32_t tag, int status)
{
    struct schema_reply *r = reply_of(s, tag, status, 0);
    atomic_store_explicit(&r->tag, tag, memory_order_release);
    lane_session_tell_now(l, s);
}

/* What was asked is answered: it is written, but for the tag. */
static void end_control(struct lane *l, struct session *s, struct schema_reply *r)
{
    atomic_store_explicit(&r->tag, s->control_tag, memory_order_release);
    lane_latency_ended(
        l, s->control_op == SCHEMA_OP_CONNECT ? LANE_LATENCY_CONNECT : LANE_LATENCY_CONTROL,
        s->control_ns);
    session_hold(s, 0);
    lane_session_tell_now(l, s);
    lane_session_activate(l, s); /* what stands behind the question */
}

void lane_session_reply(struct lane *l, struct session *s, int status, uint32_t reason, uint64_t a,
                        uint64_t b, const uint8_t *secret)
{
    struct schema_reply *r = reply_of(s, s->control_tag, status, reason);
    r->value[0] = a;
    r->value[1] = b;
    if (secret != NULL)
        memcpy(r->secret, secret, sizeof r->secret);
    end_control(l, s, r);
}

void lane_session_reply_lookup(struct lane *l, struct session *s, const struct lookup_answer *a)
{
    struct schema_found found = {.vkey = 0};
    int status = a->status;
    if (a->of_name && status == 0)
        status = lane_name_grant(l, s, &a->name, &found);
    const uint32_t reason = status == -EHOSTUNREACH ? SCHEMA_REASON_LOOKUP
                            : status == -EUNATCH    ? SCHEMA_REASON_AWAITED
                            : status == -EDQUOT     ? SCHEMA_REASON_QUOTA
                                                    : 0;
    status = status == -EUNATCH ? -EHOSTUNREACH : status;
    if (!a->of_name) { /* one that failed may have an earlier one's */
        lane_session_reply(l, s, status, reason, status == 0 ? a->slot : 0,
                           status == 0 ? a->gen : 0, NULL);
        return;
    }
    struct schema_reply *r = reply_of(s, s->control_tag, status, reason);
    r->found = found;
    end_control(l, s, r);
}

/* Its worker waits for its completion channel, of which it was not told yet. */
static bool is_armed(const struct session *s)
{
    const uint32_t armed = atomic_load_explicit(&s->rw->armed, memory_order_relaxed);
    return (armed & 1) != 0 && armed != s->told_armed;
}

static bool wants_wake(const struct session *s)
{
    return atomic_load_explicit(&s->rw->want_wake, memory_order_relaxed) != 0;
}

/* It was woken since it began to sleep, and has not run yet: whoever adds to the word wakes it too.
 * Where many wait for a processor a lane comes by some times before one that it has woken gets it.
 * sleeps_on is read first: what `wake` was when the worker wrote that is seen then. */
static bool was_woken(const struct session *s)
{
    const uint32_t on = atomic_load_explicit(&s->rw->sleeps_on, memory_order_acquire);
    return on != 0 &&
           on != schema_wake_word(atomic_load_explicit(&s->ro->wake, memory_order_relaxed));
}

/* Of one that sleeps for an answer, or until there are so many, of completions or of free slots,
 * which is not more than its own word: the indices are its own too. */
static __attribute__((noinline)) bool has_awaited(const struct session *s, uint32_t want,
                                                  uint8_t told)
{
    const uint32_t waiting = session_waiting(s);
    if ((want & SCHEMA_WAKE_ROOM) == 0 && (want & SCHEMA_WAKE_ANSWER) != 0)
        return schema_wake_has_answer(
            want,
            atomic_load_explicit(&s->ro->reply[want % SCHEMA_REPLIES].tag, memory_order_relaxed));
    if (told == SESSION_TELL_NOW)
        return true;
    if ((want & SCHEMA_WAKE_ROOM) != 0)
        return s->sq_mask + 1 - waiting >= (want & ~SCHEMA_WAKE_ROOM);
    return s->cq_tail - atomic_load_explicit(&s->rw->cq_head, memory_order_relaxed) >= want ||
           (session_inflight(s) == 0 && waiting == 0);
}

/* Whether its worker sleeps, and is not to any longer. */
static bool is_awaited(const struct session *s, uint8_t told)
{
    const uint32_t want = atomic_load_explicit(&s->rw->want_wake, memory_order_relaxed);
    return want == 1 || (want != 0 && has_awaited(s, want, told));
}

/* Neither is so of most, which one look at both says. */
static bool may_sleep(const struct session *s)
{
    return (atomic_load_explicit(&s->rw->want_wake, memory_order_relaxed) |
            (atomic_load_explicit(&s->rw->armed, memory_order_relaxed) & 1)) != 0;
}

static void join_wakes(struct lane *l, struct session *s)
{
    struct active_tenant *t = s->of;
    if (s->in_wakes)
        return;
    s->in_wakes = 1;
    if (TAILQ_EMPTY(&t->sleepers))
        TAILQ_INSERT_TAIL(&l->wakes, t, by_wakes);
    TAILQ_INSERT_TAIL(&t->sleepers, s, by_wake);
}

void lane_session_wake(struct lane *l, struct session *s)
{
    atomic_thread_fence(memory_order_seq_cst); /* as before each look at who sleeps */
    if (may_sleep(s))
        join_wakes(l, s);
}

void lane_session_leave_wakes(struct lane *l, struct session *s)
{
    struct active_tenant *t = s->of;
    if (!s->in_wakes)
        return;
    s->in_wakes = 0;
    TAILQ_REMOVE(&t->sleepers, s, by_wake);
    if (TAILQ_EMPTY(&t->sleepers))
        TAILQ_REMOVE(&l->wakes, t, by_wakes);
}

/* Once for each time that it has armed, by whatever it says now: one that says anything else all
 * the time is told as often as its tenant's turns allow. */
static void tell_worker(struct lane *l, struct session *s)
{
    if (s->lodger) { /* its own lane does */
        lane_session_leave_now(l, s);
        return;
    }
    s->told_armed = atomic_load_explicit(&s->rw->armed, memory_order_relaxed);
    l->tell(l->tell_user, s->id);
}

/* To wake a worker is a system call, and each of a tenant's may sleep as often as it likes: of more
 * than a few those that are left come in the next pass, and are not looked at before. It may have
 * the kernel look through all who wait for something else in the same bucket of its table, for some
 * ms: whose wakes are such have a part of the lane's time and no more. */
static void wake_some(struct lane *l, struct active_tenant *t)
{
    if (l->now_ns < t->wakes_rest_ns)
        return;
    for (uint32_t n = lane_is_shared(l) ? WAKES_SHARED : WAKES; n > 0; n--) {
        struct session *s = TAILQ_FIRST(&t->sleepers);
        if (s == NULL)
            return;
        COUNT(l, walked, 1);
        lane_session_leave_wakes(l, s);
        if (is_armed(s))
            tell_worker(l, s);
        if (!wants_wake(s) || was_woken(s))
            continue;
        atomic_fetch_add_explicit(&s->ro->wake, 1, memory_order_release);
        const uint64_t took_ns = l->wake(l->wake_user, &s->ro->wake);
        if (took_ns > 0) {
            t->wakes_rest_ns = l->now_ns + (1 + WAKE_RESTS) * took_ns;
            return;
        }
    }
    l->did += !TAILQ_EMPTY(&t->sleepers);
}

static void wake_workers(struct lane *l)
{
    struct active_tenant *t = TAILQ_FIRST(&l->wakes);
    for (struct active_tenant *next; t != NULL; t = next) {
        next = TAILQ_NEXT(t, by_wakes);
        wake_some(l, t);
    }
}

uint64_t lane_wakes_due(const struct lane *l)
{
    const struct active_tenant *t;
    uint64_t due = LANE_NEVER;
    TAILQ_FOREACH(t, &l->wakes, by_wakes)
        due = t->wakes_rest_ns < due ? t->wakes_rest_ns : due;
    return due;
}

/* The barrier orders them before the look at who sleeps (session.h; held to tests/model/wake.pml
 * and channel.pml). */
void lane_sessions_publish(struct lane *l)
{
    struct session *s = STAILQ_FIRST(&l->dirty);
    if (s != NULL) {
        STAILQ_FOREACH(s, &l->dirty, by_dirty)
            if (s->cq_published != s->cq_tail) {
                schema_cq_publish(s->ro, s->cqes, s->cq_mask, s->cq_published, s->cq_tail);
                s->cq_published = s->cq_tail;
            }
        atomic_thread_fence(memory_order_seq_cst);
        STAILQ_FOREACH(s, &l->dirty, by_dirty) {
            const uint8_t told = s->dirty;
            s->dirty = SESSION_TOLD;
            s->told_head = s->sq_head;
            if (may_sleep(s) && (is_awaited(s, told) || is_armed(s)))
                join_wakes(l, s);
            if (l->handover.cpu != 0)
                lane_handover_answered(l, s);
        }
        STAILQ_INIT(&l->dirty);
    }
    if (!TAILQ_EMPTY(&l->wakes))
        wake_workers(l);
}
