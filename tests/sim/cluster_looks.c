/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at beside the processes themselves. */
#include <stdlib.h>

#include "agent.h"
#include "agent_process.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "control/clock_check.h"
#include "ledger.h"
#include "liar.h"
#include "metad_process.h"
#include "metaserver/resources.h"
#include "os.h"

enum {
    DEAD_S = 8,        /* behind a lease's end, by when a metaserver has acted on it */
    BEHIND_S = 10,     /* so long no agent is behind the metaserver that it follows */
    OVERFLOWED_S = 30, /* until a process has ended whose device is of no use any more */
    STOP_MS = 1000,    /* a stop of its clocks that an agent sees by its device's, */
    STOP_SEEN_S = 8,   /* within this, or it hears its device's clock no longer */
    STEER_PPM = 5000,  /* a slewing that it sees by the kernel's clock */
    STEER_SEEN_S = 5,  /* within this */
    DOUBT_TAKES_S = 5, /* until what was posted before is carried out */
    YOUNG_S = 20,      /* in which an agent comes to have what it needs */
    SILENT_S = 80      /* until an agent's DC target that broke is made anew, whatever its device
                        * says: a round of others' proofs, and what it is told of those */
};

void cluster_look_at_dead(struct node *n)
{
    struct meta_node_view v;
    if (n->agent != NULL)
        n->gone_ns = 0;
    else if (n->gone_ns == 0)
        n->gone_ns = play_now_ns();
    if (n->gone_ns == 0)
        return;
    for (uint32_t i = cluster.settings.nodes; i < cluster.count; i++) {
        const struct play_metad *m = cluster.node[i].metad;
        const uint64_t thawed_ns = cluster.node[i].thawed_ns,
                       since_ns = thawed_ns > n->gone_ns ? thawed_ns : n->gone_ns;
        if (play_now_ns() < since_ns + (CLUSTER_LEASE_S + DEAD_S) * BASE_NS_PER_S)
            continue;
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
    const struct play_metad *m = cluster.node[cluster_metaserver_of(n, f->metaserver)].metad;
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

/* Its agent, if it serves and runs, and has run for a second; else NULL. */
static const struct play_agent *running_agent(const struct node *n)
{
    const struct play_agent *a = n->agent;
    const bool runs = a != NULL && a->ready && a->agent != NULL && !a->told_to_stop &&
                      a->process->owner.paused_until_ns + BASE_NS_PER_S < play_now_ns();
    return runs ? a : NULL;
}

static void look_at_overflow(struct node *n)
{
    const struct play_process *p = n->agent != NULL   ? n->agent->process
                                   : n->metad != NULL ? n->metad->process
                                                      : NULL;
    if (n->overflowed_ns == 0 || p == NULL)
        return;
    if (p->owner.paused_until_ns > n->overflowed_ns)
        n->overflowed_ns = p->owner.paused_until_ns;
    if (!p->ended && play_now_ns() > n->overflowed_ns + OVERFLOWED_S * BASE_NS_PER_S)
        play_violation(p->name,
                       "a completion queue of its device overflowed, and %d s later it "
                       "has not ended",
                       OVERFLOWED_S);
}

/* Who has hosts that can say so, and nothing goes wrong with them. */
static bool has_witnesses(void)
{
    const struct play_cluster_settings *s = &cluster.settings;
    return s->nodes > 2 && play_now_ns() + CLUSTER_CALM_S * BASE_NS_PER_S >= s->duration_ns;
}

/* Whether it has made one anew not long ago, so that the next one has to wait. */
static bool has_to_wait(const struct node *n, const struct agent *a)
{
    const struct agent_unreached *u = &a->proofs.unreached;
    return u->wait_ns != 0 && play_host_now_ns(&n->host) < u->anew_ns + u->wait_ns;
}

/* Of the own pool's, which others prove. */
static void look_at_target(struct node *n)
{
    const struct play_agent *a = running_agent(n);
    const struct fab_dct *dct = a != NULL ? a->agent->pools[0]->device.dct : NULL;
    if (dct == NULL || !sim_target_is_silent(dct) || !has_witnesses() || has_to_wait(n, a->agent))
        n->silent_ns = 0;
    else if (n->silent_ns == 0)
        n->silent_ns = play_now_ns();
    else if (play_now_ns() > n->silent_ns + SILENT_S * BASE_NS_PER_S)
        play_violation(a->process->name,
                       "its DC target 0x%x broke, and %d s later there is no other", dct->dctn,
                       SILENT_S);
}

void cluster_look_at_device(struct node *n)
{
    look_at_overflow(n);
    look_at_target(n);
}

void cluster_note_stop(struct node *n, uint64_t until_ns)
{
    const struct play_agent *a = running_agent(n);
    const bool sees = a != NULL && a->agent->clock.check.state == CLOCK_TRUSTED &&
                      until_ns - play_now_ns() >= STOP_MS * BASE_NS_PER_MS;
    n->stop = (struct cluster_stop){.over_ns = sees ? until_ns : 0,
                                    .life = sees ? a->agent->incarnation : 0};
    if (until_ns > n->thawed_ns)
        n->thawed_ns = until_ns;
}

/* Its device's clock went on: who hears that doubts, and who does not hear it trusts nothing. */
static void look_at_stop(struct node *n, const struct play_agent *a)
{
    if (n->stop.over_ns == 0)
        return;
    if (a == NULL || a->agent->incarnation != n->stop.life ||
        a->process->owner.paused_until_ns > n->stop.over_ns) {
        if (play_now_ns() > n->stop.over_ns + 2 * BASE_NS_PER_S)
            n->stop.over_ns = 0;
        return;
    }
    if (play_now_ns() < n->stop.over_ns + STOP_SEEN_S * BASE_NS_PER_S)
        return;
    n->stop.over_ns = 0;
    if (a->agent->clock.check.state == CLOCK_TRUSTED)
        play_violation(a->process->name, "its clock stood still, and %d s later it trusts it",
                       STOP_SEEN_S);
}

static void look_at_steering(struct node *n, const struct play_agent *a)
{
    const bool sees = a != NULL && abs(n->host.steer_ppm) >= STEER_PPM;
    const uint32_t life = sees ? a->agent->incarnation : 0;
    if (!sees)
        n->steered_ns = 0;
    else if (n->steered_ns == 0 || n->steered_life != life) /* it may have begun anew meanwhile */
        n->steered_ns = play_now_ns();
    else if (play_now_ns() > n->steered_ns + STEER_SEEN_S * BASE_NS_PER_S &&
             a->agent->clock.check.state != CLOCK_DOUBTED)
        play_violation(a->process->name, "its clock is slewed by %d ppm, and %d s later it is %s",
                       n->host.steer_ppm, STEER_SEEN_S,
                       agent_clock_check_name(&a->agent->clock.check));
    n->steered_life = life;
}

void cluster_look_at_clock(struct node *n)
{
    const struct play_agent *a = running_agent(n);
    look_at_stop(n, a);
    look_at_steering(n, a);
    if (a == NULL || a->agent->clock.check.state != CLOCK_DOUBTED)
        n->doubted_ns = 0;
    else if (n->doubted_ns == 0)
        n->doubted_ns = play_now_ns();
}

bool cluster_doubts_clock(const struct node *n)
{
    return n->doubted_ns != 0 && play_now_ns() > n->doubted_ns + DOUBT_TAKES_S * BASE_NS_PER_S &&
           n->agent != NULL && n->agent->agent != NULL &&
           n->agent->agent->clock.check.state == CLOCK_DOUBTED;
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

static uint32_t count_pools(const struct play_agent *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; a->agent != NULL && i < POOLS; i++)
        count += a->agent->pools[i] != NULL;
    return count;
}

/* A pool has its own part, whenever it is made. */
void cluster_look_at_memory(struct node *n)
{
    struct cluster_memory *m = &n->memory;
    if (n->agent == NULL || play_liar_is(n->host.number))
        return;
    if (m->of != n->agent)
        *m = (struct cluster_memory){.of = n->agent, .began_ns = play_now_ns()};
    const uint32_t pools = count_pools(n->agent);
    if (pools > m->pools) {
        m->pools = pools;
        m->began_ns = play_now_ns();
    }
    const uint64_t bytes = os_bytes_of(n->agent->process);
    if (play_now_ns() < m->began_ns + YOUNG_S * BASE_NS_PER_S)
        m->bytes = bytes > m->bytes ? bytes : m->bytes;
    else if (bytes > 2 * m->bytes)
        play_violation(n->host.name, "its agent has %llu bytes, and had %llu when it was young",
                       (unsigned long long)bytes, (unsigned long long)m->bytes);
}
