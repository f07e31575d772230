/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants whose requests break queue pairs that they share with others.
 *
 * A worker can have a device refuse its requests as often as it likes, under records that are true:
 * a friend on another node has a region taken away (fenced, or revoked by force) under READs. No
 * check of ours sees that before, no key was guessed, and each time what strangers have out on the
 * same queue pair is flushed with it. So breaks are counted that strangers felt, by the tenant
 * whose request was refused, since a worker may take a session for each. After a few of them its
 * requests go through queue pairs of their own (flow.c): with RC another connection to each
 * endpoint, with DC one initiator for all in quarantine. Breaks are forgotten with time, also of
 * who is honest and had regions taken away from under him.
 *
 * Nobody is blamed for an error that may be another's (blame.c, "nameless"): where there are many
 * of those, all who had requests out go into quarantine for a while, which with RC costs them
 * nothing but connections, and who it was shows then. Nobody is blamed either for a peer that is
 * silent, or where no stranger felt it: a tenant by itself is never in quarantine. Where strangers'
 * requests go again, or wait for another connection, they are late and not lost: of such breaks
 * many count as one. */
#include "transmit/quarantine.h"

#include "flow_state.h"
#include "lane_state.h"
#include "transmit/lane_events.h"
#include "transmit/initiators.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"
#include "vqp_state.h"
#include "window_state.h"

enum {
    BREAKS_MOST = 4,
    FELT_MOST = 16, /* breaks that count as one, whenever they come and whatever was lost */
    CROWD_FELT = BREAKS_MOST * FELT_MOST, /* by all tenants together */
    UNNAMED_MOST = 6
};
static const uint64_t FORGET_NS = 10000000000;    /* one of them */
static const uint64_t FORGET_FELT_NS = 625000000; /* so that FELT_MOST are in the time of one */
/* A region that goes once can break many queue pairs: each READ of it goes again when its own was
 * flushed with another, and breaks the next, while the owner's record still stands. What comes of
 * it so has come after a few round trips and repairs of queue pairs, milliseconds each. So breaks
 * of one tenant within such a time are one, if they are few. */
static const uint64_t EVENT_NS = 100000000;

/* What is out on a queue pair that broke is back within bound_ns, and repairs take milliseconds.
 * What takes so long besides twice that does not end, and they go on without one. */
static const uint64_t PATIENCE_NS = 1000000000;

/* Who breaks queue pairs of his own goes on so, and each has to be repaired, or rests and is
 * missing to strangers (on SoftRoCE for 0.7 s, of 64). So he waits before his next request; and who
 * is not in quarantine, since nobody else had anything out there, after as many breaks as make one.
 * What all tenants together may break is twice what one may, and then as much as one: each of those
 * who owe something then waits for as many times longer. */
static const uint64_t REST_NS = 50000000;
static const uint64_t FREE_NS = 800000000;        /* FELT_MOST of them */
static const uint64_t CROWD_NS = 1600000000;      /* twice that */
static const uint64_t OWED_MOST_NS = 10000000000; /* not for ever, whatever it had out */

/* ---- who is */

static bool may_be_worker(enum ibv_wc_status status)
{
    return status != IBV_WC_RETRY_EXC_ERR && status != IBV_WC_RESP_TIMEOUT_ERR &&
           status != IBV_WC_FATAL_ERR && status != IBV_WC_GENERAL_ERR;
}

/* What is not lost goes again, and its worker does not notice. */
uint32_t lane_quarantine_who_is_hit(const struct lane *l, const struct physical_qp *p)
{
    uint32_t hit = (uint32_t)HIT_NOBODY;
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w == NULL || w->kind != WR_WORKER || !w->session->vqps[w->vqp].lost)
            continue;
        const uint32_t slot = w->session->tenant_slot;
        hit = hit == (uint32_t)HIT_NOBODY || hit == slot ? slot : (uint32_t)HIT_MANY;
    }
    return hit;
}

/* After an error that had no name, of which this may be the cause, it is who was hit then. */
static bool hits_others(const struct lane *l, const struct physical_qp *p, const struct wr *by)
{
    const uint32_t hit = p->alone > 0 ? p->flow->alone_hit : lane_quarantine_who_is_hit(l, p);
    return hit != (uint32_t)HIT_NOBODY && hit != by->session->tenant_slot;
}

/* Whether a stranger waits for what the last one there took with it (schedule/unseen_writes.h). */
static bool has_others_wait(const struct lane *l, const struct physical_qp *p, uint32_t tenant_slot)
{
    const struct unseen_wait *wait = p->flow != NULL ? &p->flow->waits : NULL;
    for (uint32_t i = 0; i < l->res.dcis && wait == NULL; i++)
        if (&l->phys[l->dci[i]] == p)
            wait = &l->narrow.waits[i];
    return wait != NULL && l->now_ns - wait->ns < SEEN_NS && wait->tenant != tenant_slot;
}

/* Whether a stranger's request was out, which may go again. */
static bool delays_others(const struct lane *l, const struct physical_qp *p, uint32_t tenant_slot)
{
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w != NULL && w->kind == WR_WORKER && w->session->tenant_slot != tenant_slot)
            return true;
    }
    return has_others_wait(l, p, tenant_slot);
}

static bool is_of_last_event(const struct lane *l, const struct culprit *c)
{
    return c->breaks > 0 && l->now_ns - c->since_ns < EVENT_NS;
}

static void forget_some(const struct lane *l, struct culprit *c)
{
    const uint64_t some = (l->now_ns - c->since_ns) / FORGET_NS;
    c->breaks -= some < c->breaks ? (uint32_t)some : c->breaks;
    c->since_ns = c->breaks == 0 ? l->now_ns : c->since_ns + some * FORGET_NS;
}

/* Later, while the control side has much else to do: its ring has an end. */
static void tell_control(struct lane *l, uint32_t tenant_slot)
{
    struct culprit *c = &l->culprits[tenant_slot];
    if (c->told == c->quarantined)
        return;
    if (!lane_may_tell(l)) {
        l->quarantine_untold = 1;
        return;
    }
    c->told = c->quarantined;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_TENANT_QUARANTINED,
                                            .quarantined = {.tenant = tenant_slot,
                                                            .begins = c->quarantined,
                                                            .named = c->named}});
}

static void set_rest(struct lane *l, struct culprit *c, uint64_t until_ns)
{
    const int change = (until_ns != 0) - (c->rests_ns != 0);
    l->tenants_resting += (uint32_t)change;
    COUNT(l, tenants_resting, change);
    if (change > 0)
        (void)atomic_fetch_add_explicit(&l->rests[c - l->culprits], 1, memory_order_relaxed);
    c->rests_ns = until_ns;
}

static uint64_t owed_ns(const struct lane *l, uint64_t paid_ns)
{
    return paid_ns > l->now_ns ? paid_ns - l->now_ns : 0;
}

static void owe_more(const struct lane *l, uint64_t *paid_ns, uint64_t ns, uint64_t most_ns)
{
    const uint64_t all_ns = owed_ns(l, *paid_ns) + ns;
    *paid_ns = l->now_ns + (all_ns < most_ns ? all_ns : most_ns);
}

/* Tenants that have not paid for all that they have broken. */
static uint32_t count_debtors(const struct lane *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->config.max_tenants; i++)
        count += owed_ns(l, l->culprits[i].paid_ns) > 0;
    return count;
}

/* Each break costs a rest, of which some may be owed by a tenant that is not in quarantine, unless
 * all together owe too much: then all who owe take turns at one rest's rate. */
static void charge_break(struct lane *l, struct culprit *c)
{
    owe_more(l, &l->together.paid_ns, REST_NS, 2 * CROWD_NS);
    owe_more(l, &c->paid_ns, REST_NS, OWED_MOST_NS);
    const bool crowd = owed_ns(l, l->together.paid_ns) > CROWD_NS;
    if (crowd)
        owe_more(l, &c->paid_ns, (count_debtors(l) - 1) * REST_NS, OWED_MOST_NS);
    const uint64_t free_ns = c->quarantined || crowd ? 0 : FREE_NS;
    if (owed_ns(l, c->paid_ns) > free_ns)
        set_rest(l, c, c->paid_ns - free_ns);
}

void lane_quarantine_let_rejoin(struct lane *l, uint32_t tenant_slot)
{
    l->culprits[tenant_slot].rejoins = 1;
    l->rejoins = 1;
}

static void quarantine_tenant(struct lane *l, uint32_t tenant_slot, bool quarantined, bool named)
{
    struct culprit *c = &l->culprits[tenant_slot];
    c->quarantined = quarantined;
    c->named = named;
    set_rest(l, c, 0);
    c->paid_ns = 0;
    c->unnamed = 0;
    l->tenants_quarantined += quarantined ? 1 : UINT32_MAX;
    COUNT(l, quarantined, quarantined);
    COUNT(l, tenants_quarantined, quarantined ? 1 : -1);
    for (uint32_t i = 0; i < lane_session_places(l); i++)
        if (l->sessions[i].tenant_slot == tenant_slot)
            l->sessions[i].quarantined = quarantined;
    lane_quarantine_let_rejoin(l, tenant_slot);
    if (l->tenants_quarantined == 0)
        l->quarantine_wait_ns = 0;
    lane_quarantine_take_dci(l);
    l->changed = 1;
    tell_control(l, tenant_slot);
}

/* Whether strangers have felt so many by all who are not in quarantine that the next one counts for
 * all that its tenant may break. */
static bool felt_too_many(struct lane *l)
{
    struct culprit *all = &l->together;
    const uint64_t some = (l->now_ns - all->since_ns) / FORGET_FELT_NS;
    all->felt -= some < all->felt ? (uint32_t)some : all->felt;
    all->since_ns = all->felt == 0 ? l->now_ns : all->since_ns + some * FORGET_FELT_NS;
    if (all->felt == CROWD_FELT)
        return true;
    all->felt++;
    return false;
}

static void count_break(struct lane *l, uint32_t tenant_slot, bool of_crowd)
{
    struct culprit *c = &l->culprits[tenant_slot];
    forget_some(l, c);
    c->since_ns = l->now_ns;
    c->felt = 0;
    c->breaks += c->breaks < BREAKS_MOST;
    c->breaks = of_crowd ? BREAKS_MOST : c->breaks;
    if (c->quarantined) {
        charge_break(l, c);
        c->told &= c->named; /* it is told once more, by whom */
        c->named = 1;
        tell_control(l, tenant_slot);
    } else if (c->breaks == BREAKS_MOST) {
        quarantine_tenant(l, tenant_slot, true, true);
    }
}

void lane_quarantine_blame(struct lane *l, const struct physical_qp *p, const struct wr *w)
{
    if (w->kind != WR_WORKER || !may_be_worker((enum ibv_wc_status)w->ended))
        return;
    const uint32_t tenant_slot = w->session->tenant_slot;
    struct culprit *c = &l->culprits[tenant_slot];
    const bool hits = hits_others(l, p, w), felt = hits || delays_others(l, p, tenant_slot);
    if (!felt && p->flow != NULL) { /* strangers may wait until it has another one */
        p->flow->broken_by = tenant_slot + 1;
        p->flow->felt = 0;
    }
    const bool crowd = felt && !c->quarantined && felt_too_many(l);
    c->felt += felt;
    if (c->quarantined || crowd || c->felt >= FELT_MOST || (hits && !is_of_last_event(l, c)))
        count_break(l, tenant_slot, crowd);
    else if (!felt)
        charge_break(l, c);
}

static void suspect_tenant(struct lane *l, uint32_t tenant_slot)
{
    struct culprit *c = &l->culprits[tenant_slot];
    const uint64_t some = (l->now_ns - c->unnamed_ns) / FORGET_NS;
    if (c->last_unnamed == l->unnamed_breaks) /* by another request */
        return;
    c->last_unnamed = l->unnamed_breaks;
    c->unnamed -= some < c->unnamed ? (uint32_t)some : c->unnamed;
    c->unnamed_ns = l->now_ns;
    if (c->quarantined || ++c->unnamed < UNNAMED_MOST)
        return;
    c->breaks = BREAKS_MOST; /* for as long as one who is to blame */
    c->since_ns = l->now_ns;
    quarantine_tenant(l, tenant_slot, true, false);
}

void lane_quarantine_suspect(struct lane *l, const struct physical_qp *p)
{
    const struct wr *first = *ring_at(l, p, p->head);
    uint32_t one = UINT32_MAX;
    bool several = false;
    if (p->flow == NULL || !may_be_worker((enum ibv_wc_status)first->ended))
        return;
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w->kind != WR_WORKER)
            continue;
        several |= one != UINT32_MAX && one != w->session->tenant_slot;
        one = w->session->tenant_slot;
    }
    if (!several && one != UINT32_MAX && l->culprits[one].quarantined)
        count_break(l, one, false);
    else if (!several && one != UINT32_MAX)
        charge_break(l, &l->culprits[one]);
    if (!several)
        return;
    l->unnamed_breaks++;
    for (uint32_t i = p->head; i != p->tail; i++) {
        const struct wr *w = *ring_at(l, p, i);
        if (w->kind == WR_WORKER)
            suspect_tenant(l, w->session->tenant_slot);
    }
}

void lane_quarantine_look_who_waited(struct lane *l, struct flow *f)
{
    const uint32_t tenant_slot = f->broken_by - 1;
    if (f->broken_by == 0)
        return;
    f->broken_by = 0;
    if (!f->felt)
        return;
    const bool crowd = !l->culprits[tenant_slot].quarantined && felt_too_many(l);
    if (++l->culprits[tenant_slot].felt >= FELT_MOST || crowd)
        count_break(l, tenant_slot, crowd);
}

void lane_quarantine_forget(struct lane *l, uint32_t tenant_slot)
{
    const uint32_t high = flows_ever(l);
    if (l->culprits[tenant_slot].quarantined)
        quarantine_tenant(l, tenant_slot, false, false);
    set_rest(l, &l->culprits[tenant_slot], 0);
    atomic_store_explicit(&l->rests[tenant_slot], 0, memory_order_relaxed);
    l->culprits[tenant_slot] = (struct culprit){.told = l->culprits[tenant_slot].told,
                                                .rejoins = l->culprits[tenant_slot].rejoins,
                                                .links = l->culprits[tenant_slot].links};
    for (uint32_t i = 0; i < high; i++) {
        struct flow *f = &l->flows[i];
        f->broken_by = f->broken_by == tenant_slot + 1 ? 0 : f->broken_by;
        f->made_for = f->made_for == tenant_slot + 1 ? 0 : f->made_for;
    }
}

uint64_t lane_rests(const struct lane *l, uint32_t tenant_slot)
{
    return atomic_load_explicit(&l->rests[tenant_slot], memory_order_relaxed);
}

/* ---- the initiator */

void lane_quarantine_take_dci(struct lane *l)
{
    if (l->config.rc || l->tenants_quarantined == 0 || l->has_quarantine_dci || l->spare_count == 0)
        return;
    struct physical_qp *p = &l->phys[l->dci[LANE_QUARANTINE_DCI] = l->spare[--l->spare_count]];
    l->has_quarantine_dci = 1;
    l->quarantine_wait_ns = 0;
    physical_qp_set_depth(p, 1);
    physical_qp_join(l, p);
    l->changed = 1;
}

static void leave_dci(struct lane *l)
{
    struct physical_qp *p = &l->phys[l->dci[LANE_QUARANTINE_DCI]];
    l->has_quarantine_dci = 0;
    l->narrow.lost_ns[LANE_QUARANTINE_DCI] = l->now_ns;
    physical_qp_set_depth(p, l->config.sq_depth);
}

/* Once nothing is out on it and nobody waits for room there. */
static void give_dci_back(struct lane *l)
{
    const struct physical_qp *p = &l->phys[l->dci[LANE_QUARANTINE_DCI]];
    if (p->head != p->tail || !physical_qp_works(p) ||
        WINDOW_GET(l->rooms[p - l->phys].waiting) > 0)
        return;
    leave_dci(l);
    (void)lane_initiator_back(l, p); /* where none was left for strangers, it is theirs at once */
    l->changed = 1;
}

/* Not another spare at once, which strangers may need: the repaired one, or whichever is before. */
void lane_quarantine_lost_dci(struct lane *l, const struct physical_qp *p)
{
    if (l->has_quarantine_dci && &l->phys[l->dci[LANE_QUARANTINE_DCI]] == p)
        leave_dci(l);
}

static bool may_probe(struct lane *l, struct flow *f)
{
    struct culprit *c = &l->culprits[f->tenant_slot];
    const struct flow *g = c->probe;
    if (!flow_is_suspect(f))
        return true;
    if (g != NULL && g != f && g->quarantined && g->tenant_slot == f->tenant_slot &&
        flow_is_suspect(g) && g->outstanding > 0)
        return false;
    c->probe = f;
    return true;
}

bool lane_quarantine_waits(struct lane *l, const struct vqp *q)
{
    return l->culprits[q->session->tenant_slot].rests_ns != 0 ||
           (q->session->quarantined && !may_probe(l, q->flow));
}

bool lane_quarantine_is_ready(struct lane *l)
{
    bool repairs = false;
    if (l->config.rc || l->has_quarantine_dci)
        return true;
    for (uint32_t i = 0; i < l->phys_room; i++)
        repairs |= l->phys[i].qp != NULL && l->phys[i].broken;
    if (!repairs || l->quarantine_wait_ns == 0)
        l->quarantine_wait_ns = repairs ? l->now_ns : 0;
    if (!repairs)
        return true;
    if (l->now_ns - l->quarantine_wait_ns <= PATIENCE_NS + 2 * l->config.bound_ns)
        return false;
    lane_quarantine_take_dci(l); /* one that was left for strangers */
    return true;
}

uint32_t lane_quarantine_dci(const struct lane *l, const struct flow *f)
{
    return l->has_quarantine_dci && !flow_is_suspect(f) ? LANE_QUARANTINE_DCI : l->res.dcis - 1;
}

void lane_quarantine_look(struct lane *l)
{
    const bool untold = l->quarantine_untold;
    l->quarantine_untold = 0;
    for (uint32_t i = 0; i < l->config.max_tenants; i++) {
        struct culprit *c = &l->culprits[i];
        if (untold)
            tell_control(l, i);
        if (c->rests_ns != 0 && l->now_ns >= c->rests_ns) {
            set_rest(l, c, 0); /* one that is not in quarantine is looked at in its turn */
            lane_quarantine_let_rejoin(l, i);
        }
        if (!c->quarantined)
            continue;
        forget_some(l, c);
        if (c->breaks == 0)
            quarantine_tenant(l, i, false, false);
    }
    if (l->has_quarantine_dci && l->tenants_quarantined == 0)
        give_dci_back(l);
}
