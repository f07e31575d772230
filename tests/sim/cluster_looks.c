/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at beside the processes themselves. */
#include "agent_process.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "ledger.h"
#include "metad_process.h"

enum { DEAD_S = 8 /* behind a lease's end, by when a metaserver has acted on it */ };

void cluster_look_at_dead(struct node *n)
{
    struct meta_node_view v;
    if (n->agent != NULL)
        n->gone_ns = 0;
    else if (n->gone_ns == 0)
        n->gone_ns = play_now_ns();
    if (n->gone_ns == 0 || play_now_ns() - n->gone_ns < (CLUSTER_LEASE_S + DEAD_S) * BASE_NS_PER_S)
        return;
    for (uint32_t i = cluster.settings.nodes; i < cluster.count; i++) {
        const struct play_metad *m = cluster.node[i].metad;
        if (m != NULL && m->ready && m->process->owner.paused_until_ns < play_now_ns() &&
            meta_directory_show(m->service.directory, n->host.name, play_host_now_ns(m->host),
                                &v) == 0 &&
            v.state == META_NODE_LIVE)
            play_violation(m->process->name, "it shows %s, whose agent has been gone for %d s",
                           n->host.name, CLUSTER_LEASE_S + DEAD_S);
    }
}

void cluster_look_at_agents(void)
{
    for (uint32_t i = 0; i < cluster.settings.nodes && play_violated() == NULL; i++) {
        struct play_agent *a = cluster.node[i].agent;
        const char *left = a != NULL ? play_agent_left(a) : NULL;
        if (left != NULL)
            play_violation(a->process->name, "no worker has been there for %d s: %s",
                           CLUSTER_GONE_S, left);
    }
}
