/* SPDX-License-Identifier: Apache-2.0 */
/* Channels: a descriptor that becomes readable when a CQ got a completion, or is due to be polled.
 * Anybody's thread wakes; the control thread makes and frees. */
#ifndef SOFT_CHAN_H
#define SOFT_CHAN_H

#include <stdbool.h>

#include "soft/layout.h"

struct fab_chan;
struct fab_ctl;
struct soft_chan;
struct soft_fab;

/* Control thread. 0 or -errno; -EBUSY while a CQ uses it. */
int soft_chan_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_chan_destroy(struct soft_fab *f, struct fab_ctl *ctl);
/* CQs that use the channel: one more, or less. Control thread. */
void soft_chan_use(struct soft_chan *chan, int by);
/* What soft_cq_shared.chan names it by; never 0. */
uint32_t soft_chan_number(const struct soft_chan *chan);
/* Removes what dead contexts left in the directory. With the open lock held. */
void soft_chan_clean(struct soft_fab *f);

/* A channel of ours becomes readable. */
void soft_chan_wake(struct soft_chan *chan);
/* It does so then (base_clock_ns()), unless another CQ's time comes before. UINT64_MAX: never. */
void soft_chan_set_timer(struct soft_chan *chan, uint64_t due_ns);
void soft_chan_drain(struct fab_chan *chan);
/* Wakes whoever waits for this CQ, anybody's, if it is armed for that. System calls, of which none
 * waits. */
void soft_cq_notify(struct soft_fab *f, struct soft_cq_shared *cq, bool solicited);
/* Wakes everybody who waits: a process died, perhaps just before it would have. */
void soft_wake_all(struct soft_fab *f);

/* What stands in soft_cq_shared.armed: whether such a completion is waited for. */
static inline bool soft_is_wanted(uint32_t armed, bool solicited)
{
    return (armed & 3) == SOFT_ARMED || ((armed & 3) == SOFT_ARMED_SOLICITED && solicited);
}

#endif
