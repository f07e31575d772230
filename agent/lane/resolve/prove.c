/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs: one READ of a metaserver's table, or of another endpoint's MR table, to see whether that
 * is reached. The control side says when and of whom; one is under way at a time.
 *
 * An endpoint that does not answer is in nobody's way: the path is the proof's own, on DC the READ
 * goes out on a spare initiator, which is repaired when that breaks, and with rc on a connection
 * that is made only while there is room for others beside it. A connection that workers use is
 * proven on that. A metaserver's table is READ through the queue pair of lookups, which hear of the
 * answer. What has answered to others' requests not long ago is not asked at all.
 *
 * An error is believed only when the endpoint's record was looked up again after it: it may have
 * restarted, or left. */
#include "resolve/prove.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "lane_state.h"
#include "resolve/endpoint.h"
#include "resolve/flow.h"
#include "resolve/liveness.h"
#include "resolve/lookup.h"
#include "resolve/path.h"
#include "transmit/lane_events.h"
#include "transmit/operation.h"
#include "transmit/own_read.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

enum {
    TRIES = 2,
    ROOM_PART = 8 /* with rc so much of the connections is left for requests */
};
static const uint64_t SEEK_NS = 5 * BASE_NS_PER_S;

/* ---- its end */

static void drop_path(struct lane *l)
{
    struct flow *f = &l->proof.flow;
    lane_flow_drop_path(l, f);
    f->used = 0;
}

static void answer_proof(struct lane *l, int status)
{
    struct proof *p = &l->proof;
    COUNT(l, proofs_failed, status != 0 && status != -EAGAIN && status != -ENOENT);
    drop_path(l);
    p->state = PROOF_IDLE;
    lane_event_push(l, &(struct lane_event){.kind = LANE_EVENT_PROVED,
                                            .proved = {.tag = p->tag, .status = status}});
    l->did++;
}

/* Once more with a record that is looked up now; the second time it is believed. */
static void fail_proof(struct lane *l, int status)
{
    struct proof *p = &l->proof;
    if (p->metaserver != LANE_PROVE_ENDPOINT || ++p->tries == TRIES) {
        answer_proof(l, status);
        return;
    }
    drop_path(l);
    if (lane_peer_is_same(l, p->peer_slot, p->peer_gen) &&
        memcmp(lane_peer_shared(l, p->peer_slot)->gid, p->gid, sizeof p->gid) == 0)
        l->peers[p->peer_slot].expires_ns = l->now_ns;
    p->asked = 0;
    p->state = PROOF_SEEKS;
    p->end_ns = l->now_ns + SEEK_NS;
}

/* ---- the READ */

static bool post_proof(struct lane *l, struct physical_qp *at, struct flow *f, uint32_t lkey,
                       const struct fab_wr *fab)
{
    struct proof *p = &l->proof;
    if (!lane_physical_qp_has_room(at))
        return false;
    const int64_t scratch = lane_scratch_take(l, 0);
    struct wr *w = scratch >= 0 ? lane_own_read_take(l) : NULL;
    if (w == NULL) {
        if (scratch >= 0)
            lane_scratch_give(l, (uint32_t)scratch);
        return false;
    }
    p->scratch = (uint32_t)scratch;
    w->op = operation_of(SCHEMA_OP_READ);
    w->kind = WR_PROOF_READ;
    w->flow = f;
    w->signaled = 1;
    w->sge[0] = (struct ibv_sge){.addr = (uintptr_t)lane_scratch_at(l, p->scratch),
                                 .length = SCHEMA_TABLE_SPAN_BYTES,
                                 .lkey = lkey};
    w->fab = *fab;
    w->fab.sg_list = w->sge;
    w->fab.num_sge = 1;
    w->fab.opcode = w->op->opcode;
    if (f != NULL)
        flow_posted(l, f, 1);
    lane_physical_qp_chain(l, at, w);
    p->state = PROOF_READS;
    COUNT(l, proofs, 1);
    return true;
}

void lane_proof_done(struct lane *l, enum ibv_wc_status status)
{
    struct proof *p = &l->proof;
    lane_scratch_give(l, p->scratch);
    if (p->metaserver != LANE_PROVE_ENDPOINT && p->at < l->metaservers &&
        l->metaserver[p->at].number == p->metaserver)
        lane_lookup_heard(l, p->at, status);
    p->result = status == IBV_WC_SUCCESS         ? 0
                : status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT
                : status == IBV_WC_WR_FLUSH_ERR  ? -EAGAIN
                : status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_LOC_PROT_ERR ||
                        status == IBV_WC_LOC_LEN_ERR
                    ? -EIO
                    : -EREMOTEIO;
    p->state = PROOF_ENDS; /* its connection is not closed under the poll */
    l->housekeeping_ns = 0;
}

/* ---- a metaserver */

static void seek_metaserver(struct lane *l)
{
    struct proof *p = &l->proof;
    for (p->at = 0; p->at < l->metaservers; p->at++)
        if (l->metaserver[p->at].number == p->metaserver)
            break;
    if (p->at == l->metaservers) {
        answer_proof(l, -ENOENT);
        return;
    }
    const struct silence *s = &l->silence[p->at];
    if (s->heard_ns != 0 && l->now_ns - s->heard_ns < p->fresh_ns) {
        answer_proof(l, 0);
        return;
    }
    if (!lane_lookup_may_ask(l, p->at)) { /* a lookup has found out just now */
        answer_proof(l, -ETIMEDOUT);
        return;
    }
    const struct lane_metaserver *m = &l->metaserver[p->at];
    struct physical_qp *at = l->config.rc ? l->metaserver_phys[p->at] : &l->phys[l->system_phys];
    const uint32_t home = schema_endpoint_home(&m->table, l->config.gid, l->config.pool);
    const struct fab_wr fab = {.key.rkey = m->table.rkey,
                               .remote_addr = m->table.addr + (uint64_t)home * SCHEMA_RECORD_BYTES,
                               .ah = m->ah,
                               .dest_qpn = m->dctn,
                               .dc_key = m->dc_key};
    (void)post_proof(l, at, NULL, l->res.scratch_system_lkey, &fab);
}

/* ---- an endpoint */

/* 0: its record is known, of whatever age in the first try; -EINPROGRESS: not yet. */
static int seek_record(struct lane *l)
{
    struct proof *p = &l->proof;
    if (lane_lookup_find(l, p->gid, false) != NULL)
        return -EINPROGRESS;
    if (p->asked || p->tries == 0) {
        const bool known = schema_peers_find(l->res.peers, p->gid, l->config.pool, &p->peer_slot,
                                             &p->peer_gen) == 0;
        if (known || p->asked) /* the lookup is over */
            return known ? 0 : lane_lookup_has_whom_to_ask(l) ? -ENOENT : -EAGAIN;
    }
    const int status = lane_peer_connect(l, NULL, p->gid, &p->peer_slot, &p->peer_gen);
    p->asked = status == -EINPROGRESS;
    return status == -EAGAIN ? -EINPROGRESS : status == -EHOSTUNREACH ? -EAGAIN : status;
}

/* Since the path was asked for its place may have become another's. */
static int same_life(const struct lane *l)
{
    const struct proof *p = &l->proof;
    uint32_t slot, gen;
    return schema_peers_find(l->res.peers, p->gid, l->config.pool, &slot, &gen) == 0 &&
                   slot == p->peer_slot && gen == p->peer_gen
               ? 0
               : -EAGAIN;
}

/* Somebody else's that goes to it, or NULL. */
static struct flow *others_flow(const struct lane *l)
{
    struct flow *f = l->peers[l->proof.peer_slot].flow;
    return f != NULL && f->peer_gen == l->proof.peer_gen ? f : NULL;
}

/* A spare initiator; where the pool has none at all, the probing one while nobody uses it. */
static struct physical_qp *find_spare(struct lane *l)
{
    for (uint32_t i = 0; i < l->spare_count; i++) {
        struct physical_qp *at = &l->phys[l->spare[i]];
        if (at->head == at->tail && lane_physical_qp_has_room(at))
            return at;
    }
    struct physical_qp *last = &l->phys[l->dci[l->res.dcis - 1]];
    return l->res.spares == 0 && last->head == last->tail ? last : NULL;
}

static bool has_room_for_link(const struct lane *l)
{
    const uint32_t most = l->config.max_links;
    return l->links + 1 + most / ROOM_PART < most;
}

/* Whether there is a way; else one is asked for, unless *status says why not. */
static bool has_own_path(struct lane *l, int *status)
{
    struct proof *p = &l->proof;
    struct flow *f = &p->flow;
    if (f->used && (f->path == PATH_THERE || f->path == PATH_DRAINS))
        return true;
    if (f->used && flow_path_is_asked(f))
        return false;
    if (f->used) /* it came to nothing, or is gone again */
        *status = p->path_status != 0 ? p->path_status : -EAGAIN;
    else if (peer_needs_link(l, p->peer_slot) && !has_room_for_link(l))
        *status = -EAGAIN;
    else if (l->paths_asked < LANE_PATHS) {
        *f = (struct flow){.used = 1,
                           .rc = peer_needs_link(l, p->peer_slot),
                           .peer_slot = p->peer_slot,
                           .peer_gen = p->peer_gen};
        vqp_list_init(&f->parked);
        p->path_status = 0;
        l->links += f->rc;
        lane_flow_ask_for_path(l, f);
    }
    return false;
}

void lane_proof_path(struct lane *l, int status)
{
    l->proof.path_status = status;
    l->housekeeping_ns = 0;
}

static void read_endpoint(struct lane *l, struct flow *f)
{
    const struct proof *p = &l->proof;
    const struct peer *peer = &l->peers[p->peer_slot];
    const struct fab_wr fab = {.key.rkey = peer->mr_rkey,
                               .remote_addr = peer->mr_addr,
                               .ah = f->ah,
                               .dest_qpn = peer->dctn,
                               .dc_key = peer->dc_key};
    (void)post_proof(l, f->rc ? f->link : find_spare(l), f, l->res.scratch_lkey, &fab);
}

/* A refusal of the other side for want of room, or a step of the handshake that was late, says
 * nothing of the way. */
static int meaning_of_path(int status)
{
    return status == -EBUSY || status == -ESTALE ? -EAGAIN
           : status == -ETIMEDOUT                ? -ETIMEDOUT
           : status == -EAGAIN                   ? -EAGAIN
                                                 : -EHOSTUNREACH;
}

static void seek_endpoint(struct lane *l)
{
    struct proof *p = &l->proof;
    if (flow_path_is_asked(&p->flow))
        return;
    int status = p->flow.used ? same_life(l) : seek_record(l);
    if (status == -EINPROGRESS)
        return;
    if (status == 0 && l->peers[p->peer_slot].mr_log2 == 0) /* it has no MR table to READ */
        status = -EAGAIN;
    if (status != 0) {
        answer_proof(l, status);
        return;
    }
    struct flow *others = others_flow(l);
    if (others != NULL && others->liveness == LIVE_PROVEN && !others->doubted &&
        l->now_ns - others->heard_ns < p->fresh_ns) {
        answer_proof(l, 0);
        return;
    }
    if (others != NULL && others->rc && others->path == PATH_THERE) {
        read_endpoint(l, others);
        return;
    }
    if (has_own_path(l, &status)) {
        read_endpoint(l, &p->flow);
        return;
    }
    if (status == -EAGAIN)
        answer_proof(l, status);
    else if (status != 0)
        fail_proof(l, meaning_of_path(status));
}

/* ---- all of it */

void lane_proof_begin(struct lane *l, const struct lane_command *c)
{
    struct proof *p = &l->proof;
    BASE_ASSERT(p->state == PROOF_IDLE && !p->flow.used);
    p->state = PROOF_SEEKS;
    p->asked = p->tries = 0;
    p->tag = c->prove.tag;
    p->metaserver = c->prove.metaserver;
    memcpy(p->gid, c->prove.gid, sizeof p->gid);
    p->fresh_ns = c->prove.fresh_ns;
    p->end_ns = l->now_ns + SEEK_NS;
    l->housekeeping_ns = 0;
}

bool lane_proof_is_due(const struct lane *l)
{
    return l->proof.state == PROOF_SEEKS || l->proof.state == PROOF_ENDS;
}

void lane_proof_go_on(struct lane *l)
{
    struct proof *p = &l->proof;
    if (p->state == PROOF_ENDS) {
        if (p->result == 0)
            answer_proof(l, 0);
        else
            fail_proof(l, p->result);
        return;
    }
    if (p->metaserver != LANE_PROVE_ENDPOINT)
        seek_metaserver(l);
    else
        seek_endpoint(l);
    if (p->state == PROOF_SEEKS && l->now_ns >= p->end_ns && !flow_path_is_asked(&p->flow))
        answer_proof(l, -EAGAIN);
}
