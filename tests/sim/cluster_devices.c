/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of a cluster are like. */
#include "base/clock.h"
#include "cluster_state.h"
#include "random.h"

enum {
    DEAF_PPM = 300000 /* queue pairs that never go to ERR, in a quarter of clusters */
};

static const uint64_t SLOW_FLUSH_NS = 2000000, LATE_DOORBELL_NS = 5000000;

/* Each of what devices may have, or not, a quarter of clusters has otherwise than most. */
void cluster_choose_devices(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    struct base_prng r = play_random_of(s->seed, "devices", 0), *c = &cluster.random;
    cluster.device =
        (struct sim_device_attr){.keys_return = base_prng_below(c, 2) == 0,
                                 .numbers_return = true,
                                 .piece_ns = base_prng_below(c, 2) == 0 ? 0 : 50000,
                                 .true_slack_ns = s->slack_ms * BASE_NS_PER_MS,
                                 .flush_ns = base_prng_below(&r, 2) == 0 ? 0 : SLOW_FLUSH_NS,
                                 .deaf_ppm = s->faults && s->seed % 4 == 3 ? DEAF_PPM : 0,
                                 .late_writes = base_prng_below(&r, 2) == 0,
                                 .nameless = cluster.rc && base_prng_below(&r, 3) == 0,
                                 .is_infiniband = base_prng_below(&r, 4) == 0,
                                 .no_atomics = base_prng_below(&r, 4) == 0,
                                 .no_fences = base_prng_below(&r, 4) == 0,
                                 .resets_are_final = base_prng_below(&r, 4) == 0,
                                 .no_clock = base_prng_below(&r, 4) == 0};
    if (base_prng_below(&r, 2) == 0) /* of half of the nodes */
        cluster.device.max_reads = (uint8_t)(1 + base_prng_below(&r, 4));
    if (base_prng_below(&r, 4) == 0)
        cluster.device.slack_ns = LATE_DOORBELL_NS;
    cluster_choose_transports();
}
