/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/liveness.h"

#include "schema/peers.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "transmit/initiators.h"
#include "transmit/physical_qp.h"
#include "transmit/quarantine.h"
#include "vqp_state.h"

enum { SOON_OPS = 16, SOON_BYTES = 256 * 1024 }; /* which take less than SEEN_NS */

/* Who answers and falls silent in turn would hold up endpoints that answer each time. */
static const uint64_t DISTRUST_NS = 10000000000;

/* What happens to an endpoint. */
enum liveness_event {
    HEARD,    /* a sign of life */
    SILENT,   /* it did not answer */
    OWES,     /* what is out to it is out for too long, or it is to show first that it is alive */
    FORGIVEN, /* its silence is long ago */
    VOUCHED,  /* it has answered on another flow */
    LIVENESS_EVENTS
};

static const uint8_t liveness_moves[LIVENESSES][LIVENESS_EVENTS] = {
    /*                       HEARD, SILENT, OWES, FORGIVEN, VOUCHED */
    [LIVE_UNPROVEN] = {LIVE_PROVEN, LIVE_DISTRUSTED, SUSPECT_UNPROVEN, LIVE_UNPROVEN, LIVE_PROVEN},
    [LIVE_PROVEN] = {LIVE_PROVEN, LIVE_DISTRUSTED, SUSPECT_PROVEN, LIVE_PROVEN, LIVE_PROVEN},
    [LIVE_DISTRUSTED] = {LIVE_DISTRUSTED, LIVE_DISTRUSTED, SUSPECT_DISTRUSTED, LIVE_UNPROVEN,
                         LIVE_DISTRUSTED},
    [SUSPECT_UNPROVEN] = {LIVE_PROVEN, SUSPECT_DISTRUSTED, SUSPECT_UNPROVEN, SUSPECT_UNPROVEN,
                          SUSPECT_PROVEN},
    [SUSPECT_PROVEN] = {LIVE_PROVEN, SUSPECT_DISTRUSTED, SUSPECT_PROVEN, SUSPECT_PROVEN,
                        SUSPECT_PROVEN},
    [SUSPECT_DISTRUSTED] = {LIVE_DISTRUSTED, SUSPECT_DISTRUSTED, SUSPECT_DISTRUSTED,
                            SUSPECT_UNPROVEN, SUSPECT_DISTRUSTED},
};

static void liveness_move(struct lane *l, struct flow *f, enum liveness_event event)
{
    const bool was_suspect = flow_is_suspect(f);
    f->liveness = liveness_moves[f->liveness][event];
    if (flow_is_suspect(f) != was_suspect)
        COUNT(l, suspects, was_suspect ? -1 : 1);
}

/* The least loaded of the ordinary DCIs, beginning with the one it had: a change of target costs a
 * reconnection. Some of them are for endpoints that have not shown that they are alive: a worker
 * that posts to one dead endpoint after the other keeps these busy with retries, and only these. */
static uint32_t find_dci(const struct lane *l, const struct flow *f)
{
    if (f->apart)
        return f->narrow ? lane_initiator_narrow_place(l, f->quarantined || flow_is_suspect(f))
                         : lane_quarantine_dci(l, f);
    uint32_t ordinary = l->narrow.ordinary, unproven = ordinary / 2;
    const bool proven = flow_is_proven(f);
    uint32_t from = proven ? 0 : ordinary - unproven, to = proven ? ordinary - unproven : ordinary;
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
    if (!physical_qp_works(p))
        best = lane_initiator_that_works(l, from, to, best);
    return flow_is_suspect(f) ? l->res.dcis - 1 : best;
}

/* Whether what goes by the initiator that it has is carried out in less time than it would wait
 * before it goes by another: not much is before it there, and that is answered. */
static bool serves_soon(const struct lane *l, const struct flow *f)
{
    const uint32_t unproven = l->narrow.ordinary / 2;
    const struct physical_qp *p = &l->phys[l->dci[f->dci]];
    if (f->apart || !flow_is_proven(f) || flow_is_suspect(f) || !physical_qp_works(p) ||
        f->dci >= l->narrow.ordinary - unproven)
        return false;
    if (p->head == p->tail)
        return true;
    const struct wr *oldest = *ring_at(l, p, p->head);
    return p->tail - p->head <= SOON_OPS && p->bytes <= SOON_BYTES && oldest != NULL &&
           oldest->flow != NULL && l->now_ns - oldest->flow->since_ns < SEEN_NS;
}

/* Nothing is out to it. What has ended long ago is seen, whichever it takes. Behind a WRITE that
 * may not be, what its VQPs post would wait at another one (schedule/unseen_writes.h). */
static void choose_dci(struct lane *l, struct flow *f)
{
    if ((f->wrote & BEGUN_WROTE) && l->now_ns - f->heard_ns < SEEN_NS)
        f->wrote_ns = l->now_ns;
    f->wrote = 0;
    const bool unseen = l->now_ns - f->wrote_ns < SEEN_NS;
    if (unseen && serves_soon(l, f))
        return;
    const uint32_t dci = find_dci(l, f);
    if (dci == f->dci)
        return;
    f->dci = (uint16_t)dci;
    if (!unseen)
        return;
    f->moved_ns = l->now_ns;
    physical_qp_join(l, &l->phys[l->dci[dci]]);
}

void lane_flow_suspect(struct lane *l, struct flow *f)
{
    liveness_move(l, f, OWES);
}

void lane_flow_forgive(struct lane *l, struct flow *f)
{
    if (l->now_ns >= f->distrust_ns)
        liveness_move(l, f, FORGIVEN);
}

void lane_flow_vouch(struct lane *l, struct flow *f)
{
    liveness_move(l, f, VOUCHED);
}

void lane_flow_inherit(struct lane *l, struct flow *f, const struct flow *own)
{
    f->distrust_ns = own->distrust_ns;
    if (flow_is_proven(own))
        liveness_move(l, f, VOUCHED);
    else if (flow_is_distrusted(own))
        liveness_move(l, f, SILENT);
    if (!flow_is_proven(f) && !f->rc) /* one request at a time goes there: not to the dead */
        liveness_move(l, f, OWES);
}

/* Asked for before it is used again, and not when its record would lapse. */
void lane_flow_look_up_again(struct lane *l, const struct flow *f)
{
    struct peer *p = &l->peers[f->peer_slot];
    const bool present = f->quarantined || f->twin != NULL || f->lead != NULL
                             ? lane_peer_shared(l, f->peer_slot)->gen == f->peer_gen
                             : p->flow == f;
    if (!present || p->expires_ns <= l->now_ns)
        return;
    p->expires_ns = l->now_ns;
    COUNT(l, lookups_again, 1);
}

void lane_flow_doubt(struct lane *l, struct flow *f, uint64_t dead_ns)
{
    f->doubted = 1;
    f->doubted_ns = l->now_ns;
    f->dead_ns = dead_ns;
    lane_flow_look_up_again(l, f);
}

static void fell_silent(struct lane *l, struct flow *f)
{
    liveness_move(l, f, SILENT);
    f->heard_ns = 0;
    f->distrust_ns = l->now_ns + DISTRUST_NS;
    lane_flow_look_up_again(l, f);
    struct flow *own = f->second ? f->twin : f->quarantined && !f->rc ? f->own : NULL;
    if (own == NULL)
        return;
    liveness_move(l, own, SILENT);
    own->heard_ns = 0;
    own->distrust_ns = f->distrust_ns;
    if (!f->rc)
        liveness_move(l, f, OWES);
}

/* It owes nothing any more. */
static void tell_of_life(struct lane *l, struct flow *f)
{
    if (f->quarantined)
        lane_quarantine_let_rejoin(l, f->tenant_slot);
    lane_flow_notify(l, f);
}

/* Of its own, so that those that end well are the shorter. */
static void completed_badly(struct lane *l, struct flow *f, enum sign sign)
{
    if (sign == SIGN_SILENCE)
        fell_silent(l, f);
    if (f->outstanding > 0)
        return;
    lane_flow_notify(l, f); /* it is not stuck any more */
    if (f->quarantined && flow_is_suspect(f))
        lane_quarantine_let_rejoin(l, f->tenant_slot); /* another one may have its turn */
}

void lane_flow_heard(struct lane *l, struct flow *f, enum sign sign)
{
    if (sign != SIGN_LIFE) {
        completed_badly(l, f, sign);
        return;
    }
    const bool was_suspect = flow_is_suspect(f);
    liveness_move(l, f, HEARD);
    f->doubted = 0;
    f->since_ns = f->heard_ns = l->now_ns;
    if (was_suspect)
        tell_of_life(l, f);
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
    if (!flow_is_suspect(f) && l->now_ns >= l->trust_ns && silent_ns > l->config.suspect_ns &&
        silent_ns > l->config.suspect_ns + transfer_ns(l))
        lane_flow_suspect(l, f);
    return flow_is_suspect(f);
}

bool lane_flow_is_stuck(struct lane *l, struct flow *f)
{
    if (f->rc)
        return false;
    if (f->outstanding > 0)
        return is_silent(l, f);
    choose_dci(l, f);
    return false;
}
