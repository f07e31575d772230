/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: what carries requests from workers' rings to the fabric and completions back
 * (docs/lane.md). No I/O of its own, no clock, no randomness, no thread: stepped with the time, it
 * reaches the network through the fabric alone, and sim or daemon own it.
 *
 * One thread steps a lane. The control side talks to it through two bounded rings: commands in,
 * events out; these two calls (lane_command, lane_event) are the control thread's,
 * everything else is the lane thread's. Ownership of what a command carries passes to the lane
 * until the event that answers it.
 *
 * Invariants: a malformed request never reaches a physical queue pair; a physical send queue never
 * overflows; no request is posted under a record whose lease is over; nothing a worker writes is
 * believed before it was copied. */
#ifndef AGENT_LANE_H
#define AGENT_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_command.h"
#include "agent/lane_config.h"
#include "agent/lane_event.h"
#include "agent/lane_quota.h"
#include "agent/lane_stats.h"

struct lane;

/* 0, or -ENOMEM/-EINVAL. config is copied, and so are the resources, whose objects stay the
 * caller's. */
int lane_new(const struct lane_config *config, const struct lane_device_objects *resources,
             struct lane **out);
void lane_free(struct lane *lane);
/* At the end, when no thread steps it any more: one of the address handles that it still holds, or
 * that are in a ring to or from it, for the control side to destroy, or NULL. Of what is in the
 * rings nothing else is left then. */
struct fab_ah *lane_take_ah(struct lane *lane);
/* Where virtual keys and secrets come from: fills bytes; 0 or -errno. Must be set before the first
 * step. */
void lane_set_random(struct lane *lane, int (*fill)(void *user, void *bytes, size_t n), void *user);

/* One pass: commands, completions, rings, posts. now_ns grows. Returns how much it did (0:
 * nothing). Makes no call that can block; of system calls only futex wakes, and those through
 * wake(). */
uint32_t lane_step(struct lane *lane, uint64_t now_ns);
/* Called by the lane to wake a worker that sleeps on its session's `wake` word. Returns for how
 * long that kept the processor, in ns; 0: not longer than it should. */
void lane_set_wake(struct lane *lane, uint64_t (*wake)(void *user, _Atomic uint32_t *word),
                   void *user);
/* Called by the lane, never often for one value of a session's `armed`, where its worker waits in
 * poll() or epoll: its completion channel is to be made readable, soon and by somebody else. Must
 * not wait for anything. */
void lane_set_tell(struct lane *lane, void (*tell)(void *user, uint32_t session), void *user);
/* Before sleeping: sets every session's doorbell flag, fences, arms the CQ, looks once more at all.
 * UINT64_MAX or the time (of now_ns's clock) of the next thing that is due; 0: there is work, do
 * not sleep. */
uint64_t lane_prepare_sleep(struct lane *lane, uint64_t now_ns);
/* Where the thread runs that steps it, as sched_getcpu() has it; -1: it cannot be told, which is so
 * at first. */
void lane_set_cpu(struct lane *lane, int cpu);
/* After a pass that did nothing: whether the thread is to sleep at once, since a worker that was
 * answered runs on its processor. */
bool lane_hands_over(struct lane *lane);
/* It has slept, and was woken by something: for who counts. */
void lane_note_wake(struct lane *lane);
/* The doorbell of a session was rung: it is polled again. False: there is nothing in its ring that
 * was not there when it was rung last, and it is not. */
bool lane_doorbell(struct lane *lane, uint32_t session);

/* ---- control side */

/* 0, or -EAGAIN: the ring is full, try after the lane's next pass. */
int lane_command(struct lane *lane, const struct lane_command *command);
/* 1 and an event, or 0. */
int lane_event(struct lane *lane, struct lane_event *out);
/* Whether there is one: for the thread that steps the lane, so that it wakes the control side. */
bool lane_has_events(const struct lane *lane);

#endif
