/* SPDX-License-Identifier: Apache-2.0 */
#include "transfers.h"

#include <stdbool.h>
#include <string.h>

#include "cluster.h"
#include "events.h"
#include "lane_state.h"
#include "random.h"
#include "resolve/endpoint.h"
#include "resolve/hybrid.h"

enum {
    IDLE_PPM = 200000, /* of passes, of an endpoint to which nothing is out */
    OUT_PPM = 600000,  /* of one to which something is */
    MADE_PPM = 30000,  /* of one whose connection is being made, or drains */
    LOOKS = 8
};

static struct {
    struct play_event *event;
    uint64_t after_ns;
} waits[CLUSTER_NODES];
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

void play_transfers_add(uint64_t more)
{
    transfers += more;
}

/* ---- what waits for one */

void play_transfers_begin(void)
{
    memset(waits, 0, sizeof waits);
}

bool play_transfers_await(uint32_t host, struct play_event *event, uint64_t after_ns)
{
    if (host >= CLUSTER_NODES || waits[host].event != NULL)
        return false;
    waits[host].event = event;
    waits[host].after_ns = after_ns;
    return true;
}

void play_transfers_forget(uint32_t host, const struct play_event *event)
{
    if (host < CLUSTER_NODES && waits[host].event == event)
        waits[host].event = NULL;
}

static void tell_host(uint32_t host)
{
    if (host >= CLUSTER_NODES || waits[host].event == NULL)
        return;
    play_event_after(waits[host].event, waits[host].after_ns);
    waits[host].event = NULL;
}

/* ---- */

/* Any, but one to which something is out if that is found soon. */
static struct flow *choose_flow(struct lane *l, struct base_prng *random)
{
    const uint32_t high = flows_ever(l);
    struct flow *f = NULL;
    for (int i = 0; i < LOOKS && high > 0 && (f == NULL || f->outstanding == 0); i++) {
        struct flow *next = &l->flows[base_prng_below(random, high)];
        if (next->used && !next->quarantined)
            f = next;
    }
    return f;
}

static uint32_t how_often(const struct lane *l, const struct flow *f)
{
    const struct flow *used = l->peers[f->peer_slot].flow;
    if (f->twin != NULL && (used == NULL || !used->second))
        return MADE_PPM;
    return f->outstanding > 0 ? OUT_PPM : IDLE_PPM;
}

void play_transfer(struct lane *l, uint32_t host, struct base_prng *random)
{
    struct flow *f = l->hybrid != NULL && play_transfers_may_be() ? choose_flow(l, random) : NULL;
    if (f == NULL || !play_random_happens(random, how_often(l, f)))
        return;
    if (f->twin == NULL)
        lane_hybrid_begin(l, f, f->tenant_slot);
    else
        lane_hybrid_leave(l, f->second ? f : f->twin, false);
    const uint8_t *gid = lane_peer_shared(l, f->peer_slot)->gid; /* cluster_gid() */
    tell_host(host);
    tell_host(((uint32_t)gid[14] << 8 | gid[15]) - 1);
}
