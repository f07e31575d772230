/* SPDX-License-Identifier: Apache-2.0 */
#include "processor.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/futex.h"
#include "internal.h"

enum {
    GIVE_UP_US = 100, /* at a time, unless something comes */
    SURE_US = 10000,  /* likewise, where the last time something did */
    VAIN_MOST = 4     /* times on end in which nothing came, for what was posted last */
};

void client_say_processor(struct kedge_session *s)
{
    const uint32_t cpu = (uint32_t)(sched_getcpu() + 1); /* -1: it cannot be told */
    if (cpu == s->processor.cpu)
        return;
    s->processor.cpu = cpu;
    atomic_store_explicit(&s->rw->cpu, cpu, memory_order_relaxed);
}

bool client_shares_processor(const struct kedge_session *s)
{
    return s->processor.cpu != 0 &&
           atomic_load_explicit(&s->ro->lane_cpu, memory_order_relaxed) == s->processor.cpu;
}

/* For how long. So short a time-out as the first is the kernel's next event, and to set its clock
 * and to set it back cost as much as a hand-over; before the second its tick comes in any case. */
static uint64_t patience_of(const struct kedge_session *s)
{
    return (s->processor.sure ? SURE_US : GIVE_UP_US) * BASE_NS_PER_US;
}

/* The lane cannot go on while this thread runs, and a worker that only yields has the processor
 * again at once as long as it has had less of it than its share (EEVDF). So it sleeps, as one that
 * waits does. It is not the lane that is waited for when that was in vain some times. */
void client_give_processor(struct kedge_session *s, bool (*ready)(struct kedge_session *, uint32_t))
{
    if (s->processor.tail != s->sq_tail)
        s->processor.vain = 0;
    s->processor.tail = s->sq_tail;
    if (s->processor.vain >= VAIN_MOST)
        return;
    const int slept = client_sleep_once(s, 1, ready, 0, patience_of(s));
    s->processor.vain = slept == -ETIMEDOUT ? s->processor.vain + 1 : 0;
    if (slept == 0 || slept == -ETIMEDOUT)
        s->processor.sure = slept == 0;
}
