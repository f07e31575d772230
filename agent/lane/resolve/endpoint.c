/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: what the lane knows of them (KRCore's DCCache), and the ways to those in use. */
#include <errno.h>
#include <string.h>

#include "transmit/initiators.h"
#include "internal.h"
#include "transmit/events.h"
#include "schema/peers.h"

enum { APART_PART = 4 /* rc: of the connections, of all who are apart */ };
static const uint64_t DEAD_NS = 100000000; /* until a path is asked for again */
/* Who answers and falls silent in turn would hold up endpoints that answer each time. */
static const uint64_t DISTRUST_NS = 10000000000;
static const uint64_t DOUBT_NS = 500000000; /* nobody has waited about it for so long: forgotten */

struct schema_peer *peer_shared(struct lane *l, uint32_t slot)
{
    const struct schema_peers_header *h = l->res.peers;
    return (struct schema_peer *)((uint8_t *)l->res.peers + h->peers_offset) + slot;
}

/* ---- connections, with rc
 * ------------------------------------------------------------------------------------------- */

static void give_link(struct lane *l, struct flow *f)
{
    l->links--;
    if (f->made_for != 0)
        l->culprits[f->made_for - 1].made--;
    f->made_for = 0;
    if (!f->quarantined)
        return;
    l->quarantine_links--;
    l->culprits[f->tenant_slot].links--;
}

void flow_lost_link(struct lane *l, struct flow *f)
{
    f->link = NULL;
    if (f->drains != NULL)
        f->drains->draining--;
    f->drains = NULL;
    give_link(l, f);
    COUNT(l, links, -1);
    l->changed = 1;
}

void flow_drop_link(struct lane *l, struct flow *f)
{
    struct physical_qp *p = f->link;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.qp = p->qp});
    physical_qp_close(l, p);
    flow_lost_link(l, f);
}

/* ---- paths
 * ------------------------------------------------------------------------------------------- */

/* All connections are in use, or all that those may have who are apart: one goes, of theirs then,
 * at once when nothing is out on it; else when all that is has come back, which may take long, so
 * that idle ones go meanwhile. False: not yet. */
static bool evict_link(struct lane *l, struct evictor *evictor)
{
    const uint64_t suspect_ns = l->config.suspect_ns;
    evictor->only_idle = evictor->draining > 0;
    evictor->owing_ns = l->now_ns > suspect_ns ? l->now_ns - suspect_ns : 0;
    struct flow *f = evict_pick(evictor, l->phys, l->phys_room);
    l->changed |= evictor->again && !evictor->only_idle;
    if (f == NULL)
        return false;
    COUNT(l, links_evicted, 1);
    if (f->outstanding == 0) {
        flow_drop_link(l, f);
        return true;
    }
    f->drains = evictor;
    evictor->draining++;
    return false;
}

/* Whether tenants who are apart have as many connections of their own as they may, so that
 * strangers lose few to them; and that one as many as it may, so that none of them loses all to
 * another. Each that goes rests, where packets of it may come late, while strangers may need one:
 * so they take turns that are as long as that. */
static bool quarantine_have_most(struct lane *l, uint32_t tenant_slot)
{
    const uint32_t part = l->config.max_links / APART_PART, tenants = l->tenants_quarantined;
    const uint32_t each = tenants > 0 && part > tenants ? part / tenants : 1;
    const uint64_t rest_ns = l->res.fab->caps.time_wait_ns;
    const bool has_its = l->culprits[tenant_slot].links >= each;
    l->quarantine_evictor.linked_ns = l->now_ns > rest_ns ? l->now_ns - rest_ns : 0;
    l->quarantine_evictor.tenant = has_its ? tenant_slot + 1 : 0;
    return has_its || l->quarantine_links >= (part > 0 ? part : 1);
}

static bool take_link(struct lane *l, struct flow *f, uint32_t tenant_slot)
{
    const bool have_most = f->quarantined && quarantine_have_most(l, f->tenant_slot);
    l->evictor.tenant = tenant_slot + 1;
    if ((have_most || l->links == l->config.max_links) &&
        !evict_link(l, have_most ? &l->quarantine_evictor : &l->evictor))
        return false;
    l->links++;
    f->made_for = tenant_slot + 1;
    l->culprits[tenant_slot].made++;
    l->quarantine_links += f->quarantined;
    if (f->quarantined)
        l->culprits[f->tenant_slot].links++;
    return true;
}

void flow_ask_for_path(struct lane *l, struct flow *f)
{
    const struct peer *p = &l->peers[f->peer_slot];
    const struct schema_peer *shared = peer_shared(l, f->peer_slot);
    struct lane_event event = {
        .kind = LANE_EVENT_WANT_PATH,
        .want_path = {.flow = f == &l->proof.flow ? LANE_PROOF_FLOW : (uint32_t)(f - l->flows),
                      .incarnation = shared->incarnation,
                      .ud_qpn = p->ud_qpn,
                      .ud_qkey = p->ud_qkey,
                      .mtu = (enum ibv_mtu)p->mtu,
                      .lid = p->lid}};
    memcpy(event.want_path.gid, shared->gid, 16);
    f->want_path = 1;
    l->paths_asked++;
    lane_event_push(l, &event);
}

/* Its record was looked up, and it is the same life still: dead, for those who waited for that. A
 * doubt that nobody waited about is forgotten. */
static bool is_confirmed(struct lane *l, struct flow *f)
{
    f->doubted = 0;
    if (l->now_ns - f->doubted_ns > DOUBT_NS)
        return false;
    f->dead_until_ns = l->now_ns + f->dead_ns;
    flow_notify(l, f);
    return true;
}

bool flow_has_path(struct lane *l, struct flow *f, const struct session *s)
{
    if (f->doubted && is_confirmed(l, f))
        return false;
    if (f->ah != NULL || (f->link != NULL && f->drains == NULL))
        return true;
    if (f->want_path || f->link != NULL || l->paths_asked == LANE_PATHS)
        return false;
    if (l->config.rc && !take_link(l, f, s->tenant_slot))
        return false;
    flow_ask_for_path(l, f);
    return false;
}

/* It was begun with this node's former address, and so is of no use; nor does a failure say
 * anything of the peer. Who waits for it asks again. */
static void give_back(struct lane *l, struct flow *f, const struct lane_path *path)
{
    f->stale_path = 0;
    if (l->config.rc)
        give_link(l, f);
    if (path->ah != NULL || path->qp != NULL)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path = *path});
}

void flow_take_path(struct lane *l, struct flow *f, const struct lane_command *c)
{
    const struct lane_path *path = &c->path.path;
    f->want_path = 0;
    l->paths_asked--;
    l->changed |= l->wanting;
    f->used_ns = l->now_ns;
    flow_notify(l, f);
    if (f->stale_path) {
        give_back(l, f, path);
        return;
    }
    if (path->ah == NULL && path->qp == NULL) {
        if (l->config.rc)
            give_link(l, f);
        f->pathless = 1;
        flow_doubt(l, f, DEAD_NS);
        COUNT(l, paths_failed, 1);
        return;
    }
    f->pathless = 0;
    quarantine_look_who_waited(l, f);
    f->ah = path->ah;
    f->linked_ns = l->now_ns;
    f->link = path->qp != NULL ? physical_qp_open(l, path->qp, f) : NULL;
    COUNT(l, links, f->link != NULL);
}

void flow_readdress(struct lane *l, struct flow *f)
{
    f->dead_until_ns = 0; /* it was this node that could not be heard */
    f->doubted = 0;
    f->stale_path = f->want_path;
    if (f->ah != NULL)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.ah = f->ah});
    f->ah = NULL;
    if (f->link != NULL)
        inflight_retire(l, f->link);
    flow_notify(l, f);
}

/* ---- signs of life
 * --------------------------------------------------------------------------------------- */

/* The least loaded of the ordinary DCIs, beginning with the one it had: a change of target costs a
 * reconnection. Some of them are for endpoints that have not shown that they are alive: a worker
 * that posts to one dead endpoint after the other keeps these busy with retries, and only these. */
static void choose_dci(struct lane *l, struct flow *f)
{
    if (f->quarantined) {
        f->dci = quarantine_dci(l, f);
        return;
    }
    uint32_t ordinary = l->res.dcis > 1 ? l->res.dcis - 1 : 1, unproven = ordinary / 2;
    uint32_t from = f->proven ? 0 : ordinary - unproven,
             to = f->proven ? ordinary - unproven : ordinary;
    if (unproven == 0) {
        from = 0;
        to = ordinary;
    }
    uint32_t best = f->dci >= from && f->dci < to ? f->dci : from;
    for (uint32_t i = from; i < to; i++) {
        const struct physical_qp *p = &l->phys[l->dci[i]], *q = &l->phys[l->dci[best]];
        if ((q->broken && !p->broken) || (!p->broken && p->tail - p->head < q->tail - q->head))
            best = i;
    }
    const struct physical_qp *p = &l->phys[l->dci[best]];
    if (p->broken | p->overdue)
        best = initiator_that_works(l, from, to, best);
    f->dci = f->suspect ? l->res.dcis - 1 : best;
}

void flow_suspect(struct lane *l, struct flow *f)
{
    if (f->suspect)
        return;
    f->suspect = 1;
    COUNT(l, suspects, 1);
}

void flow_posted(struct lane *l, struct flow *f)
{
    f->used_ns = l->now_ns;
    if (f->outstanding++ == 0)
        f->since_ns = l->now_ns;
}

/* It may have restarted: asked for before it is used again, and not when its record would lapse. */
static void look_up_again(struct lane *l, const struct flow *f)
{
    struct peer *p = &l->peers[f->peer_slot];
    const bool present =
        f->quarantined ? peer_shared(l, f->peer_slot)->gen == f->peer_gen : p->flow == f;
    if (present && p->expires_ns > l->now_ns)
        p->expires_ns = l->now_ns;
}

void flow_doubt(struct lane *l, struct flow *f, uint64_t dead_ns)
{
    f->doubted = 1;
    f->doubted_ns = l->now_ns;
    f->dead_ns = dead_ns;
    look_up_again(l, f);
}

static void fell_silent(struct lane *l, struct flow *f)
{
    f->proven = 0;
    f->heard_ns = 0;
    f->distrusted = 1;
    f->distrust_ns = l->now_ns + DISTRUST_NS;
    look_up_again(l, f);
    if (!f->quarantined || l->config.rc)
        return;
    f->own->proven = 0;
    f->own->heard_ns = 0;
    f->own->distrusted = 1;
    f->own->distrust_ns = f->distrust_ns;
    flow_suspect(l, f);
}

static void is_trusted_again(struct lane *l, struct flow *f)
{
    f->suspect = 0;
    if (f->quarantined)
        flows_rejoin(l, f->tenant_slot);
    flow_notify(l, f);
    COUNT(l, suspects, -1);
}

/* Of its own, so that those that end well are the shorter. */
static void completed_badly(struct lane *l, struct flow *f, enum sign sign)
{
    if (sign == SIGN_SILENCE)
        fell_silent(l, f);
    if (f->outstanding > 0)
        return;
    flow_notify(l, f); /* it is not stuck any more */
    if (f->quarantined && f->suspect)
        flows_rejoin(l, f->tenant_slot); /* another one may have its turn */
}

void flow_completed(struct lane *l, struct flow *f, enum sign sign)
{
    f->outstanding--;
    if (f->drains != NULL && f->outstanding == 0)
        flow_drop_link(l, f);
    if (sign != SIGN_LIFE) {
        completed_badly(l, f, sign);
        return;
    }
    f->proven = !f->distrusted;
    f->doubted = 0;
    f->since_ns = f->heard_ns = l->now_ns;
    if (f->suspect)
        is_trusted_again(l, f);
}

/* How long what is out takes at the port's rate. */
static uint64_t transfer_ns(const struct lane *l)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->phys_room; i++)
        bytes += l->phys[i].bytes;
    return l->config.port_rate == 0 ? 0 : bytes * 1000 / l->config.port_rate * 1000;
}

/* What is out has been silent for longer than it may take to be answered. Apart from its caller,
 * since with few requests out it is not asked. */
static __attribute__((noinline)) bool is_silent(struct lane *l, struct flow *f)
{
    const uint64_t silent_ns = l->now_ns - f->since_ns;
    if (!f->suspect && l->now_ns >= l->trust_ns && silent_ns > l->config.suspect_ns &&
        silent_ns > l->config.suspect_ns + transfer_ns(l))
        flow_suspect(l, f);
    return f->suspect;
}

/* Whether nothing may be posted to it now: it is silent, and what is out already is enough to find
 * out when it speaks again. Picks the DCI where something may be. With rc its connection is its
 * own, and what waits there is in nobody's way. */
bool flow_is_stuck(struct lane *l, struct flow *f)
{
    if (l->config.rc)
        return false;
    if (f->outstanding > 0)
        return is_silent(l, f);
    choose_dci(l, f);
    return false;
}
