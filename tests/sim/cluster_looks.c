/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at beside the processes themselves. */
#include "agent.h"
#include "agent_process.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "ledger.h"
#include "metad_process.h"
#include "metaserver/resources.h"

enum {
    DEAD_S = 8,   /* behind a lease's end, by when a metaserver has acted on it */
    BEHIND_S = 10 /* so long no agent is behind the metaserver that it follows */
};

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

/* Whether its agent has another revision of what operators set than the metaserver that tells it.
 */
static bool is_behind(const struct node *n, uint64_t *is, uint64_t *seen)
{
    const struct play_agent *a = n->agent;
    if (a == NULL || !a->ready || a->agent == NULL || a->agent->follow.call == 0)
        return false;
    const struct follow *f = &a->agent->follow;
    const struct play_metad *m = cluster.node[cluster.settings.nodes + f->metaserver].metad;
    if (m == NULL || !m->ready)
        return false;
    *seen = f->seen;
    *is = meta_resources_revision(m->service.resources);
    return *seen != *is;
}

void cluster_look_at_follower(struct node *n)
{
    uint64_t is = 0, seen = 0;
    if (play_now_ns() < cluster.calm_ns || !is_behind(n, &is, &seen))
        n->behind_ns = 0;
    else if (n->behind_ns == 0)
        n->behind_ns = play_now_ns();
    else if (play_now_ns() - n->behind_ns > BEHIND_S * BASE_NS_PER_S)
        play_violation(n->agent->process->name,
                       "for %d s it has revision %llu of what is set, and the metaserver that it "
                       "follows %llu",
                       BEHIND_S, (unsigned long long)seen, (unsigned long long)is);
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
