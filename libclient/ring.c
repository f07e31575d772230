/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"
#include "schema/peers.h"
#include "schema/phase.h"
#include "schema/wake.h"

enum {
    SPIN_NS = 20 * 1000,   /* before a wait for the lane sleeps */
    LOOKS = 64,            /* for each look at the clock */
    IDLE_CALLS = 1u << 16, /* some milliseconds of a worker that spins */
    LANE_CALLS = 1u << 5,  /* calls for each look at the lane, so that the clock costs each of them
                              little, and a worker that polls now and then looks soon enough */
};

/* The first reason is the one that counts, in this call and in all that follow. */
static int say_end(const struct kedge_session *s)
{
    if (s->end_reason == SCHEMA_REASON_NONE && s->ended == -EPROTO)
        return client_fail_text(s->ended, "the agent says what makes no sense, that a receive has "
                                          "ended which was not posted so: open another session");
    if (s->end_reason == SCHEMA_REASON_NONE)
        return client_fail_text(s->ended, "the agent closed the session or is gone: open another");
    return client_fail(s->ended, "the agent ended the session: %s",
                       kedge_reason_str(s->end_reason));
}

bool client_is_taken_back(const struct kedge_session *s)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&s->ro->magic, memory_order_relaxed) != SCHEMA_SESSION_MAGIC;
}

int client_usable(struct kedge_session *s)
{
    if (*s->alive == 0)
        return client_fail_text(-EPERM, "the session belongs to the process that opened it, not to "
                                        "its forked child: open one here");
    if (s->ended != 0)
        return say_end(s);
    uint32_t reason = atomic_load_explicit(&s->ro->ended, memory_order_acquire);
    if (reason == 0 && !client_is_taken_back(s))
        return 0;
    s->ended = reason == 0 ? -EPIPE : client_reason_status(reason);
    s->end_reason = reason;
    return say_end(s);
}

/* A lane on this processor may have answered before the call returns, and nothing is polled for in
 * vain then: it is told where this is before. */
static void ring_doorbell(struct kedge_session *s)
{
    uint64_t one = 1;
    client_say_processor(s);
    ssize_t n = write(s->doorbell, &one, sizeof one);
    (void)n; /* EAGAIN: rung often enough; EINTR does not happen to an eventfd with room */
}

/* How much of the time between two looks counts: where the worker itself stood still for longer, so
 * may have the whole machine. */
static uint64_t slice_ns(const struct kedge_session *s)
{
    uint64_t most = CLIENT_SLICE_MS * BASE_NS_PER_MS;
    return s->patience_ns / 4 < most ? s->patience_ns / 4 : most;
}

int client_look_at_lane(struct kedge_session *s)
{
    if (s->patience_ns == UINT64_MAX)
        return 0;
    uint32_t beat = schema_peers_beat(s->peers);
    uint64_t now = base_clock_ns(), since = now - s->lane.looked_ns, most = slice_ns(s);
    s->lane.looked_ns = now;
    if (beat != s->lane.beat) {
        s->lane.beat = beat;
        s->lane.silent_ns = 0;
        s->lane.rung = false;
        return 0;
    }
    s->lane.silent_ns += since < most ? since : most;
    if (s->lane.silent_ns < s->patience_ns / 2)
        return 0;
    if (!s->lane.rung) { /* it may sleep, and has this much time to show that it does */
        s->lane.rung = true;
        s->lane.silent_ns = s->patience_ns / 2;
        ring_doorbell(s);
        return 0;
    }
    if (s->lane.silent_ns < s->patience_ns)
        return 0;
    return client_fail(
        -EHOSTDOWN,
        "the agent has not moved for %llu ms: it is stopped, or gets no processor (is "
        "kedge-agentd under SIGSTOP, a debugger, or a frozen control group?); the "
        "session goes on when it does",
        (unsigned long long)(s->patience_ns / BASE_NS_PER_MS));
}

int client_look_at_socket(struct kedge_session *s)
{
    int status = client_usable(s);
    if (status != 0)
        return status;
    struct pollfd p = {.fd = s->socket, .events = POLLRDHUP};
    if (poll(&p, 1, 0) <= 0 || (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) == 0)
        return client_look_at_lane(s);
    status = client_usable(s); /* it can have said why before it closed */
    if (status != 0)
        return status;
    s->ended = -EPIPE;
    return say_end(s);
}

int client_idle(struct kedge_session *s)
{
    if (++s->idle < IDLE_CALLS)
        return s->idle % LANE_CALLS == 0 ? client_look_at_lane(s) : 0;
    s->idle = 0;
    return client_look_at_socket(s);
}

/* ---- submission */

bool client_ring_room(struct kedge_session *s, uint32_t slots)
{
    uint32_t size = s->sq_mask + 1;
    if (size - (s->sq_tail - s->sq_head_seen) >= slots)
        return true;
    uint32_t head = atomic_load_explicit(&s->ro->sq_head, memory_order_acquire);
    if (s->sq_tail - head > size) /* makes no sense: it stays full */
        return false;
    s->sq_head_seen = head;
    if ((int32_t)(s->rung_tail - head) < 0) /* for all times: indices come round again */
        s->rung_tail = head;
    return size - (s->sq_tail - head) >= slots;
}

void client_ring_put(struct kedge_session *s, const void *slot)
{
    memcpy(&s->sq[s->sq_tail & s->sq_mask], slot, sizeof *s->sq);
    s->sq_tail++;
}

/* Whoever posts faster than a lane wakes rings once, and not for each post: what it rang for last
 * is still in the ring, and the lane, which is to take that, goes on to what stands behind it, and
 * looks once more before it sets the doorbell again. But for want of room for completions it leaves
 * some in the ring, and looks at these once in a millisecond: who has made room since rings. */
static bool is_rung(const struct kedge_session *s)
{
    if (s->rung_cq_head != s->cq_head)
        return false;
    const uint32_t head = atomic_load_explicit(&s->ro->sq_head, memory_order_relaxed);
    return (int32_t)(s->rung_tail - head) > 0;
}

/* Held to tests/model/doorbell.pml and phase.pml. */
void client_ring_publish(struct kedge_session *s)
{
    if ((s->features & SCHEMA_FEATURE_PHASES) == 0)
        atomic_store_explicit(&s->rw->sq_tail, s->sq_tail, memory_order_release);
    else if (s->sq_published != s->sq_tail)
        schema_sq_publish(s->rw, s->sq, s->sq_mask, s->sq_published, s->sq_tail);
    s->sq_published = s->sq_tail;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->ro->doorbell, memory_order_relaxed) == 0 || is_rung(s))
        return;
    s->rung_tail = s->sq_tail;
    s->rung_cq_head = s->cq_head;
    ring_doorbell(s);
}

void client_ring_bury(struct kedge_session *s)
{
    bool any = false;
    while (s->dying_vqps != 0 && client_ring_room(s, 1)) {
        struct kedge_vqp *q = &s->vqps[s->dying_vqps - 1];
        struct schema_sq_desc d = {
            .op = SCHEMA_OP_DESTROY, .slots = 1, .vqp = q->index, .vqp_gen = q->gen};
        s->dying_vqps = q->next;
        client_ring_put(s, &d);
        client_vqp_release(s, q);
        any = true;
    }
    if (any)
        client_ring_publish(s);
}

/* ---- waiting */

int client_sleep(struct kedge_session *s, bool (*ready)(struct kedge_session *, uint32_t),
                 uint32_t argument, uint64_t until_ns)
{
    return client_sleep_for(s, 1, ready, argument, until_ns);
}

int client_sleep_for(struct kedge_session *s, uint32_t want,
                     bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument,
                     uint64_t until_ns)
{
    uint64_t now = base_clock_ns(), slice = slice_ns(s);
    if (now >= until_ns) {
        int status = client_look_at_lane(s);
        return status != 0 ? status : -ETIMEDOUT;
    }
    if (until_ns - now < slice)
        slice = until_ns - now;
    client_say_processor(s);
    const int slept = client_sleep_once(s, want, ready, argument, slice);
    return slept == -ETIMEDOUT ? client_look_at_socket(s) : 0;
}

/* Whether it is ready() in the time that a worker spins. What a lane answers within one pass is
 * there before the first look at the clock, which would take a good part of that time. */
static bool spin_until(struct kedge_session *s, bool (*ready)(struct kedge_session *, uint32_t),
                       uint32_t argument)
{
    uint64_t begin = 0, now;
    client_say_processor(s);
    if (client_shares_processor(s)) /* it is in the lane's way */
        return ready(s, argument);
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (ready(s, argument))
                return true;
            base_futex_relax();
        }
        now = base_clock_ns();
        begin = begin == 0 ? now : begin;
    } while (now - begin < SPIN_NS);
    return false;
}

/* Waits until ready(): 0, -ETIMEDOUT, -EHOSTDOWN, or why the session ended. */
static int sleep_until(struct kedge_session *s, uint32_t want,
                       bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument,
                       uint64_t until_ns)
{
    for (;;) {
        if (ready(s, argument))
            return 0;
        int status = client_usable(s);
        if (status == 0)
            status = client_sleep_for(s, want, ready, argument, until_ns);
        if (status != 0)
            return ready(s, argument) ? 0 : status;
    }
}

static uint64_t in_time(void)
{
    return base_clock_ns() + CLIENT_TIMEOUT_MS * BASE_NS_PER_MS;
}

/* The same in the time that a request has: 0, -ETIMEDOUT with its sentence, or why the session
 * ended. A lane that does not move is waited for no longer than the session's patience. */
static int wait_until(struct kedge_session *s, uint32_t want,
                      bool (*ready)(struct kedge_session *, uint32_t), uint32_t argument)
{
    if (spin_until(s, ready, argument))
        return 0;
    const int status = sleep_until(s, want, ready, argument, in_time());
    if (status == -ETIMEDOUT)
        return client_fail(-ETIMEDOUT, "the agent did not answer within %d s",
                           CLIENT_TIMEOUT_MS / 1000);
    return status == -EHOSTDOWN ? -ETIMEDOUT : status;
}

static bool has_room(struct kedge_session *s, uint32_t slots)
{
    return client_ring_room(s, slots);
}

static bool is_answered(struct kedge_session *s, uint32_t tag)
{
    return atomic_load_explicit(&s->ro->reply[tag % SCHEMA_REPLIES].tag, memory_order_acquire) ==
           tag;
}

/* Of those that were asked for. */
static bool has_answer(struct kedge_session *s, uint32_t unused)
{
    (void)unused;
    for (uint32_t i = 0; i < SCHEMA_REPLIES; i++)
        if (s->asked[i] != 0 && is_answered(s, s->asked[i]))
            return true;
    return false;
}

/* ---- requests */

static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, reg_mr.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, dereg_mr.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, import.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, import_many.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, lookup.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                  offsetof(struct schema_sq_desc, bind_port.tag),
              "the tag's place");
static_assert(offsetof(struct schema_sq_desc, connect.tag) ==
                      offsetof(struct schema_sq_desc, batch.make.tag) &&
                  offsetof(struct schema_sq_desc, connect.tag) ==
                      offsetof(struct schema_sq_desc, batch.ask.tag),
              "the tag's place");
static_assert(sizeof(struct client_reply) == sizeof(struct schema_found), "all of an answer");

/* -EPROTO instead of what is no status. */
static int status_of(const struct schema_reply *r)
{
    return r->status < -4095 || r->status > 0 ? -EPROTO : r->status;
}

void client_collect(struct kedge_session *s)
{
    for (uint32_t i = 0; i < SCHEMA_REPLIES && s->asks > 0; i++) {
        const uint32_t tag = s->asked[i];
        if (tag == 0 || !is_answered(s, tag))
            continue;
        const int status = status_of(&s->ro->reply[i]);
        if (client_is_taken_back(s))
            return;
        s->asked[i] = 0;
        s->asks--;
        client_withdrawn(s, tag, status);
    }
}

int client_await(struct kedge_session *s, uint64_t until_ns)
{
    return spin_until(s, has_answer, 0) ? 0 : sleep_until(s, 1, has_answer, 0, until_ns);
}

/* A tag whose place is free. */
static int take_tag(struct kedge_session *s, uint32_t *tag)
{
    for (;;) {
        client_collect(s);
        for (uint32_t i = 0; i < SCHEMA_REPLIES; i++) {
            s->tag += s->tag + 1 == 0 ? 2 : 1;
            if (s->asked[s->tag % SCHEMA_REPLIES] != 0)
                continue;
            *tag = s->tag;
            return 0;
        }
        int status = wait_until(s, 1, has_answer, 0);
        if (status != 0)
            return status;
    }
}

/* bytes of `extra`, in whole slots. */
static void put_extra(struct kedge_session *s, const void *extra, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SCHEMA_LINE) {
        uint64_t slot[SCHEMA_LINE / 8] = {0};
        memcpy(slot, (const uint8_t *)extra + at,
               bytes - at < SCHEMA_LINE ? bytes - at : SCHEMA_LINE);
        client_ring_put(s, slot);
    }
}

/* More than it needs where it has to sleep for that: else who has much to say would sleep for each
 * few slots. */
static int await_room(struct kedge_session *s, uint32_t slots)
{
    const uint32_t many = schema_room_awaited(s->sq_mask + 1);
    return client_ring_room(s, slots) ? 0 : wait_until(s, SCHEMA_WAKE_ROOM | many, has_room, slots);
}

/* With all that stands behind the descriptor, when there is room. */
static int put_request(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                       size_t bytes)
{
    d->slots = (uint8_t)(1 + (bytes + SCHEMA_LINE - 1) / SCHEMA_LINE);
    client_ring_bury(s);
    const int status = await_room(s, d->slots);
    if (status != 0)
        return status;
    client_ring_put(s, d);
    put_extra(s, extra, bytes);
    client_ring_publish(s);
    return 0;
}

int client_tell_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                     size_t bytes)
{
    const int status = client_usable(s);
    return status != 0 ? status : put_request(s, d, extra, bytes);
}

int client_ask_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                    size_t bytes)
{
    uint32_t tag = 0;
    int status = client_usable(s);
    if (status == 0)
        status = take_tag(s, &tag);
    if (status != 0)
        return status;
    d->connect.tag = tag;
    status = put_request(s, d, extra, bytes);
    if (status != 0)
        return status;
    s->asked[tag % SCHEMA_REPLIES] = tag;
    s->asks++;
    return 0;
}

int client_ask(struct kedge_session *s, struct schema_sq_desc *d)
{
    return client_ask_with(s, d, NULL, 0);
}

/* number: of a quota, how much it is; 0 of an agent that does not say. */
static int say_refusal(struct kedge_session *s, int status, uint32_t reason, uint64_t number)
{
    s->refusal = reason;
    const char *text = reason != SCHEMA_REASON_NONE ? kedge_reason_str(reason) : strerror(-status);
    if (number > 0 &&
        (reason == SCHEMA_REASON_QUOTA_MRS || reason == SCHEMA_REASON_QUOTA_CONTROL_OPS))
        return client_fail(status,
                           "the agent refused: %s (the quota is %llu); `rdmactl agent status` says "
                           "where it is set",
                           text, (unsigned long long)number);
    return client_fail(status, "the agent refused: %s", text);
}

int client_request_with(struct kedge_session *s, struct schema_sq_desc *d, const void *extra,
                        size_t bytes, struct client_reply *out)
{
    int status = client_ask_with(s, d, extra, bytes);
    s->refusal = SCHEMA_REASON_NONE;
    if (status != 0)
        return status;
    const uint32_t tag = d->connect.tag;
    /* Answers to what was asked before it, and not waited for, wake nobody. */
    status = wait_until(s, schema_wake_for_answer(tag), is_answered, tag);
    if (status != 0)
        return status;
    const struct schema_reply *at = &s->ro->reply[tag % SCHEMA_REPLIES];
    const struct schema_reply r = {.status = at->status, .reason = at->reason};
    const struct client_reply got = {.found = at->found};
    if (client_is_taken_back(s))
        return client_usable(s);
    s->asked[tag % SCHEMA_REPLIES] = 0;
    s->asks--;
    status = status_of(&r);
    if (status != r.status)
        return client_fail_text(status, "the agent's answer makes no sense");
    if (status != 0)
        return say_refusal(s, status, r.reason, got.value[0]);
    *out = got;
    return 0;
}

int client_request(struct kedge_session *s, struct schema_sq_desc *d, struct client_reply *out)
{
    return client_request_with(s, d, NULL, 0, out);
}

bool client_has_no_room(const struct kedge_session *s, int status)
{
    return status == -EDQUOT && s->end_reason == SCHEMA_REASON_NONE &&
           s->refusal == SCHEMA_REASON_NONE;
}
