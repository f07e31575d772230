/* SPDX-License-Identifier: Apache-2.0 */
/* By what agents reach each other. In a hybrid cluster all have both transports, or each has both,
 * DC or RC, whichever it draws when it begins: it may have another one in its next life, as when an
 * operator changes its file. The first host's has both always. */
#include <string.h>

#include "agent_process.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "random.h"
#include "transfers.h"

enum { MIX_BOTH, MIX_FEW, MIX_MOST };

/* How many connections a node has, and takes of others, where all can do without: more are refused.
 * 0: as usual. */
static const uint64_t ROOM[] = {0, 0, 1, 2, 3};

/* And of these that one endpoint may have. */
static const uint64_t EACH[] = {1, 1, 2, 4};

/* Receives of a pool for all of its peers, few of them more often than in earnest: credits are
 * waited for, divided and given back. */
static const uint64_t RECEIVES[] = {16, 24, 32, 64, 256};

void cluster_choose_transports(void)
{
    struct base_prng r = play_random_of(cluster.settings.seed, "transports", 0);
    cluster.mix = (uint32_t)base_prng_below(&r, 4);
    if (cluster.mix > MIX_MOST)
        cluster.mix = MIX_BOTH;
}

bool play_transfers_may_wait(void)
{
    return cluster.settings.hybrid && cluster.mix != MIX_BOTH;
}

uint64_t play_rest_ns(uint64_t since_ns)
{
    const uint64_t rest_ns = 2 * cluster.packet_life_ns;
    return cluster.broke_ns != 0 && cluster.broke_ns + rest_ns >= since_ns ? rest_ns : 0;
}

bool play_transfers_may_be(void)
{
    return cluster.mix == MIX_BOTH ||
           play_now_ns() + CLUSTER_CALM_S * BASE_NS_PER_S < cluster.settings.duration_ns;
}

static const char *draw_transport(struct base_prng *r, uint32_t number)
{
    static const char *const few[] = {"hybrid", "hybrid", "dc", "rc"}, *const most[] = {"hybrid",
                                                                                        "dc", "rc"};
    if (number == 0 || cluster.mix == MIX_BOTH)
        return "hybrid";
    return cluster.mix == MIX_FEW ? few[base_prng_below(r, 4)] : most[base_prng_below(r, 3)];
}

void cluster_give_transport(uint32_t number, struct play_agent_settings *s)
{
    struct base_prng r = play_random_of(cluster.settings.seed, s->node, play_now_ns());
    struct base_prng near = play_random_of(cluster.settings.seed, "near", play_now_ns());
    s->by_device = base_prng_below(&near, 3) == 0;
    s->transport = cluster.rc ? "rc" : "dc";
    if (cluster.settings.messages)
        s->receives = RECEIVES[base_prng_below(&r, sizeof RECEIVES / sizeof RECEIVES[0])];
    if (cluster.settings.hybrid)
        s->transport = draw_transport(&r, number);
    if (cluster.settings.hybrid && cluster.mix == MIX_BOTH) {
        s->connections = ROOM[base_prng_below(&r, sizeof ROOM / sizeof ROOM[0])];
        s->responders = ROOM[base_prng_below(&r, sizeof ROOM / sizeof ROOM[0])];
    }
    if (strcmp(s->transport, "dc") != 0)
        s->connections_per_peer = EACH[base_prng_below(&r, sizeof EACH / sizeof EACH[0])];
}
