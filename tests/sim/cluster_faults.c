/* SPDX-License-Identifier: Apache-2.0 */
/* Which faults a cluster has. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "faults.h"

static struct play_fault *plan_faults(const struct play_cluster_settings *s, uint32_t *count)
{
    const uint64_t calm_ns = (CLUSTER_FIRST_S + CLUSTER_CALM_S) * BASE_NS_PER_S;
    *count = 0;
    if (!s->faults || s->duration_ns <= calm_ns)
        return NULL;
    struct play_fault *faults = play_faults_plan(
        s->seed, s->nodes, s->metaservers, s->workers, s->shared, CLUSTER_FIRST_S * BASE_NS_PER_S,
        s->duration_ns - CLUSTER_CALM_S * BASE_NS_PER_S, count);
    BASE_ASSERT(faults != NULL);
    return faults;
}

uint32_t play_cluster_faults(const struct play_cluster_settings *settings)
{
    uint32_t count;
    free(plan_faults(settings, &count));
    return count;
}

void cluster_begin_faults(struct play_cluster_result *result)
{
    const struct play_cluster_settings *s = &cluster.settings;
    struct play_fault *faults = plan_faults(s, &result->planned);
    for (uint32_t i = 0; i < result->planned; i++) {
        faults[i].left_out = s->left_out != NULL && (s->left_out[i / 8] >> i % 8 & 1);
        cluster.suspends |= faults[i].kind == FAULT_SUSPEND_HOST; /* also if it is left out */
    }
    play_faults_begin(faults, result->planned);
    free(faults);
}
