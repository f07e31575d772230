/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to endpoints in use: address handles with DC, connections with RC. */
#include "resolve/path.h"

#include <string.h>

#include "base/assert.h"
#include "schema/peers.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/evict.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "resolve/hybrid.h"
#include "resolve/liveness.h"
#include "resolve/prove.h"
#include "session_state.h"
#include "transmit/lane_events.h"
#include "transmit/inflight_timeout.h"
#include "transmit/initiators.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"

enum { QUARANTINE_PART = 4 /* rc: of the connections, of all tenants in quarantine */ };
static const uint64_t DEAD_NS = 100000000;    /* until a path is asked for again */
static const uint64_t PATIENCE_NS = 20000000; /* with one of several connections of an endpoint */
static const uint64_t DOUBT_NS = 500000000; /* nobody has waited about it for so long: forgotten */

/* ---- connections, with rc */

static const uint8_t path_moves[PATH_STATES][PATH_STATES] = {
    /*             from: NONE  ASKED  STALE  THERE  DRAINS, to the column's */
    [PATH_NONE] = {[PATH_ASKED] = 1},
    [PATH_ASKED] = {[PATH_NONE] = 1, [PATH_STALE] = 1, [PATH_THERE] = 1},
    [PATH_STALE] = {[PATH_NONE] = 1},
    [PATH_THERE] = {[PATH_NONE] = 1, [PATH_DRAINS] = 1},
    [PATH_DRAINS] = {[PATH_NONE] = 1},
};

static void path_move(struct flow *f, enum path_state to)
{
    BASE_ASSERT(path_moves[f->path][to]);
    f->path = (uint8_t)to;
}

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

void lane_flow_lost_link(struct lane *l, struct flow *f)
{
    f->link = NULL;
    f->moved_ns = f->heard_ns; /* not now: who waits for what has ended lets others have it */
    if (f->drains != NULL)
        f->drains->draining--;
    f->drains = NULL;
    path_move(f, PATH_NONE);
    give_link(l, f);
    COUNT(l, links, -1);
    if (f->second)
        lane_hybrid_lost(l, f);
    l->changed = 1;
}

void lane_flow_drop_link(struct lane *l, struct flow *f)
{
    struct physical_qp *p = f->link;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.qp = p->qp});
    lane_physical_qp_close(l, p);
    lane_flow_lost_link(l, f);
}

static void drop_ah(struct lane *l, struct flow *f)
{
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path.ah = f->ah});
    f->ah = NULL;
    f->outdated = 0;
    path_move(f, PATH_NONE);
}

/* What a handle leads to was found out when it was made. The endpoint may have another LID or
 * hardware address since, or be behind another router, in the same life: then it is silent until
 * another handle is made. None goes while something is out, since that may name it. */
static void drop_outdated(struct lane *l, struct flow *f)
{
    if (f->outdated && f->outstanding == 0 && f->ah != NULL && lane_may_tell(l))
        drop_ah(l, f);
}

void lane_flow_failed(struct lane *l, struct flow *f, enum sign sign)
{
    f->outdated |= sign == SIGN_SILENCE;
    lane_flow_heard(l, f, sign);
    drop_outdated(l, f);
}

static void outdate_path(struct lane *l, struct flow *f)
{
    if (f->path == PATH_ASKED && !f->rc)
        path_move(f, PATH_STALE);
    f->outdated = 1;
    drop_outdated(l, f);
}

void lane_flows_outdate(struct lane *l, uint32_t slot)
{
    struct flow *own = l->peers[slot].flow;
    if (own != NULL)
        outdate_path(l, flow_first(own));
    for (struct flow *f = *quarantined_bucket(&l->quarantined, slot); f != NULL;
         f = f->next_quarantined)
        if (f->peer_slot == slot)
            outdate_path(l, f);
}

void lane_flow_drop_path(struct lane *l, struct flow *f)
{
    if (f->link != NULL)
        lane_flow_drop_link(l, f);
    if (f->ah != NULL)
        drop_ah(l, f);
}

/* ---- paths */

/* All connections are in use, or all that tenants in quarantine may have: one goes, of theirs then,
 * at once when nothing is out on it; else when all that is has come back, which may take long, so
 * that idle ones go meanwhile. The tenant needs another one. False: not yet. */
static bool evict_link(struct lane *l, struct evictor *evictor, uint32_t tenant_slot)
{
    evictor->hand = &evictor->hands[tenant_slot];
    const uint64_t suspect_ns = l->config.suspect_ns;
    evictor->only_idle = evictor->draining > 0;
    evictor->owing_ns = l->now_ns > suspect_ns ? l->now_ns - suspect_ns : 0;
    struct flow *f = lane_evict_pick(evictor, l->phys, l->phys_room);
    l->changed |= evictor->again && !evictor->only_idle;
    if (f == NULL)
        return false;
    COUNT(l, links_evicted, 1);
    if (f->outstanding == 0) {
        lane_flow_drop_link(l, f);
        return true;
    }
    f->drains = evictor;
    path_move(f, PATH_DRAINS);
    evictor->draining++;
    if (f->second)
        lane_hybrid_leave(l, f, false);
    return false;
}

/* Whether tenants in quarantine have as many connections of their own as they may, so that
 * strangers lose few to them; and that one as many as it may, so that none of them loses all to
 * another. Each that goes rests, where packets of it may come late, while strangers may need one:
 * so they take turns that are as long as that. */
static bool quarantine_have_most(struct lane *l, uint32_t tenant_slot)
{
    const uint32_t part = l->config.max_links / QUARANTINE_PART, tenants = l->tenants_quarantined;
    const uint32_t each = tenants > 0 && part > tenants ? part / tenants : 1;
    const uint64_t rest_ns = l->res.fab->caps.time_wait_ns;
    const bool has_its = l->culprits[tenant_slot].links >= each;
    l->quarantine_evictor.linked_ns = l->now_ns > rest_ns ? l->now_ns - rest_ns : 0;
    l->quarantine_evictor.tenant = has_its ? tenant_slot + 1 : 0;
    return has_its || l->quarantine_links >= (part > 0 ? part : 1);
}

void lane_flow_count_link(struct lane *l, struct flow *f, uint32_t tenant_slot)
{
    l->links++;
    f->made_for = tenant_slot + 1;
    l->culprits[tenant_slot].made++;
    l->quarantine_links += f->quarantined;
    if (f->quarantined)
        l->culprits[f->tenant_slot].links++;
}

static bool take_link(struct lane *l, struct flow *f, uint32_t tenant_slot)
{
    const bool have_most = f->quarantined && quarantine_have_most(l, f->tenant_slot);
    l->evictor.tenant = tenant_slot + 1;
    if ((have_most || l->links == l->config.max_links) &&
        !evict_link(l, have_most ? &l->quarantine_evictor : &l->evictor, tenant_slot))
        return false;
    lane_flow_count_link(l, f, tenant_slot);
    return true;
}

/* Which initiators may send to it: the proof's own READs are of one packet, whatever the MTU. */
static void look_at_mtu(struct lane *l, struct flow *f, const struct peer *p)
{
    f->narrow = !f->rc && p->mtu != 0 && p->mtu < l->config.mtu && f != &l->proof.flow;
    f->apart = f->narrow | f->quarantined;
    if (!f->narrow || !lane_initiators_narrow(l, (enum ibv_mtu)p->mtu))
        return;
    for (uint32_t i = l->narrow.from; i < l->res.dcis; i++)
        lane_physical_qp_rebuild(l, l->phys[l->dci[i]].qp);
}

void lane_flow_ask_for_path(struct lane *l, struct flow *f)
{
    const struct peer *p = &l->peers[f->peer_slot];
    look_at_mtu(l, f, p);
    const struct schema_peer *shared = lane_peer_shared(l, f->peer_slot);
    struct lane_event event = {
        .kind = LANE_EVENT_WANT_PATH,
        .want_path = {.flow = f == &l->proof.flow ? LANE_PROOF_FLOW : (uint32_t)(f - l->flows),
                      .rc = f->rc,
                      .incarnation = shared->incarnation,
                      .ud_qpn = p->ud_qpn,
                      .ud_qkey = p->ud_qkey,
                      .mtu = (enum ibv_mtu)p->mtu,
                      .lid = p->lid}};
    memcpy(event.want_path.gid, shared->gid, 16);
    path_move(f, PATH_ASKED);
    f->asked_ns = l->now_ns;
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
    lane_flow_notify(l, f);
    return true;
}

/* One of several connections of an endpoint: it would take another's, or its handshake goes on and
 * on. */
static bool is_hopeless(const struct lane *l, const struct flow *f)
{
    return f->path == PATH_NONE ? l->links == l->config.max_links
                                : f->path == PATH_ASKED && l->now_ns - f->asked_ns > PATIENCE_NS;
}

bool lane_flow_has_path(struct lane *l, struct flow *f, const struct session *s)
{
    if (f->doubted && is_confirmed(l, f))
        return false;
    if (f->path == PATH_THERE)
        return true;
    if (f->lead != NULL && is_hopeless(l, f)) {
        lane_flow_bar(l, f);
        return false;
    }
    if (f->path != PATH_NONE || l->paths_asked == LANE_PATHS)
        return false;
    if (f->rc && !take_link(l, f, s->tenant_slot))
        return false;
    lane_flow_ask_for_path(l, f);
    return false;
}

/* It was begun with this node's former address, and so is of no use; nor does a failure say
 * anything of the peer. Who waits for it asks again. */
static void give_back(struct lane *l, struct flow *f, const struct lane_path *path)
{
    if (f->rc)
        give_link(l, f);
    if (path->ah != NULL || path->qp != NULL)
        lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_DROP_PATH, .path = *path});
}

void lane_flow_take_path(struct lane *l, struct flow *f, const struct lane_command *c)
{
    const struct lane_path *path = &c->path.path;
    const bool stale = f->path == PATH_STALE, made = path->ah != NULL || path->qp != NULL;
    path_move(f, made && !stale ? PATH_THERE : PATH_NONE);
    l->paths_asked--;
    l->changed |= l->wanting;
    f->used_ns = l->now_ns;
    lane_flow_notify(l, f);
    if (stale) {
        give_back(l, f, path);
        return;
    }
    if (!made) {
        if (f->rc)
            give_link(l, f);
        COUNT(l, paths_failed, 1);
        if (f->second) { /* which its endpoint goes on without */
            lane_hybrid_leave(l, f, true);
            return;
        }
        if (f->lead != NULL) { /* likewise */
            lane_flow_bar(l, f);
            return;
        }
        f->pathless = 1;
        lane_flow_doubt(l, f, DEAD_NS);
        return;
    }
    f->pathless = f->barred = 0;
    lane_quarantine_look_who_waited(l, f);
    f->ah = path->ah;
    f->outdated = 0;
    f->linked_ns = l->now_ns;
    f->link = path->qp != NULL ? lane_physical_qp_open(l, path->qp, f) : NULL;
    if (f->link != NULL && l->now_ns - f->moved_ns < SEEN_NS)
        physical_qp_join(l, f->link);
    COUNT(l, links, f->link != NULL);
    if (f->second)
        lane_hybrid_linked(l, f);
}

void lane_flow_readdress(struct lane *l, struct flow *f)
{
    f->dead_until_ns = 0; /* it was this node that could not be heard */
    f->doubted = 0;
    if (f->path == PATH_ASKED)
        path_move(f, PATH_STALE);
    if (f->ah != NULL)
        drop_ah(l, f);
    if (f->link != NULL)
        lane_inflight_retire(l, f->link);
    lane_flow_notify(l, f);
}
