/* SPDX-License-Identifier: Apache-2.0 */
#include "transfers.h"

#include "lane_state.h"
#include "random.h"
#include "resolve/hybrid.h"

enum { TRANSFER_PPM = 200000 };

static uint64_t transfers;

uint64_t play_transfers_take(void)
{
    const uint64_t taken = transfers;
    transfers = 0;
    return taken;
}

uint64_t play_transfers_of(const struct lane *l)
{
    return atomic_load_explicit(&l->counters.transfers, memory_order_relaxed);
}

void play_transfers_count(const struct lane *l, uint64_t before)
{
    transfers += play_transfers_of(l) - before;
}

void play_transfer(struct lane *l, struct base_prng *random)
{
    const uint32_t high = flows_ever(l);
    if (l->hybrid == NULL || high == 0 || !play_random_happens(random, TRANSFER_PPM))
        return;
    struct flow *f = &l->flows[base_prng_below(random, high)];
    if (!f->used || f->quarantined)
        return;
    if (f->twin == NULL)
        lane_hybrid_begin(l, f, f->tenant_slot);
    else
        lane_hybrid_leave(l, f->second ? f : f->twin, false);
}
