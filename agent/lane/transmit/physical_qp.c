/* SPDX-License-Identifier: Apache-2.0 */
/* Physical queue pairs: chains of requests behind one doorbell, completions, and what happens when
 * one breaks.
 *
 * KRCore's Algorithm 2: a completion names the request it stands for, and with it all unsignalled
 * ones before; the last of a chain is always signalled, so that slots come back. */
#include "transmit/physical_qp.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "flow_state.h"
#include "lane_state.h"
#include "transmit/blame.h"
#include "transmit/lane_events.h"
#include "transmit/initiators.h"
#include "transmit/merge.h"
#include "transmit/quarantine.h"
#include "transmit/returned.h"
#include "transmit/wr.h"
#include "vqp_state.h"

enum { REFUSALS = 16 /* tries, until a post that finds no room in an empty queue is refused */ };

static uint32_t number_of(const struct lane *l, const struct physical_qp *p)
{
    return (uint32_t)(p - l->phys);
}

/* Of the work request that the one at `index` is in. */
static uint32_t first_index(const struct lane *l, const struct physical_qp *p, uint32_t index)
{
    return index - (*ring_at(l, p, index))->ahead;
}

bool lane_physical_qp_is_silent(const struct lane *l, const struct physical_qp *p)
{
    /* With streams each work request is signalled, and a place whose request has ended before an
     * older one's is empty. */
    return !l->config.streams && p->head != p->tail && p->chain == NULL &&
           p->broken == BROKEN_NOT && p->overdue != OVERDUE_ENDED &&
           !((*ring_at(l, p, first_index(l, p, p->tail - 1)))->fab.send_flags & IBV_SEND_SIGNALED);
}

void lane_physical_qp_chain(struct lane *l, struct physical_qp *p, struct wr *w)
{
    wr_part(w);
    w->fab.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    if (w->signaled | l->config.streams) /* of which each has completions of its own */
        w->fab.send_flags |= IBV_SEND_SIGNALED;
    if (p->chain == NULL) {
        physical_qp_begin_chain(l, p, w);
    } else if (!physical_qp_goes_on(l, p, w) || !lane_merge(l, p, w)) {
        physical_qp_link(l, p, w);
        COUNT(l, chained_behind, 1);
    }
    *ring_at(l, p, p->tail++) = w;
    p->bytes += w->length;
    p->posted += w->length + LANE_POST_BYTES;
    l->did++;
}

/* ---- connections: with rc */

struct physical_qp *lane_physical_qp_open(struct lane *l, struct fab_qp *qp, struct flow *f)
{
    BASE_ASSERT(l->phys_free_count > 0);
    struct physical_qp *p = &l->phys[l->phys_free[--l->phys_free_count]];
    p->qp = qp;
    p->flow = f;
    p->broken = p->overdue = 0;
    p->depth = (uint16_t)l->config.sq_depth;
    p->posted = 0;
    p->alone = 0;
    p->refusals = 0;
    p->connected = qp->type == FAB_QP_RC;
    p->shared_until_ns = 0;
    if (f != NULL && f->alone > 0) {
        p->alone = (uint16_t)f->alone;
        physical_qp_set_depth(p, 1);
        f->alone = 0;
    }
    return p;
}

void lane_physical_qp_close(struct lane *l, struct physical_qp *p)
{
    BASE_ASSERT(p->head == p->tail);
    for (uint32_t i = 0; i < LANE_MAX_METASERVERS; i++)
        if (l->metaserver_phys[i] == p) {
            l->metaserver_phys[i] = NULL;
            l->metaserver_lost[i] = p->qp;
        }
    p->qp = NULL;
    p->flow = NULL;
    p->broken = 1;
    l->phys_free[l->phys_free_count++] = number_of(l, p);
}

/* ---- completions */

/* Nothing of it was carried out. */
static void give_back_again(struct lane *l, struct wr *w)
{
    lane_merge_undo(w);
    w->ended = IBV_WC_WR_FLUSH_ERR;
    w->back = BACK_AGAIN;
    returned_put(l, w);
}

/* ---- breaking */

enum { LOST_BEHIND = 2 /* of a VQP that is lost, more than true: its first has its end */ };

/* A VQP's requests stay in order: one that is lost takes with it all of that VQP. */
static void mark_lost(struct lane *l, struct physical_qp *p, bool mark)
{
    for (uint32_t i = p->head; i != p->tail; i++) {
        struct wr *w = *ring_at(l, p, i);
        struct vqp *q = w != NULL ? vqp_of(w) : NULL;
        if (q != NULL && (!mark || lane_blame_loses(l, p, w)))
            q->lost = mark;
    }
}

/* Another queue pair takes the broken one's place; with rc, when one is asked for. */
static void replace_qp(struct lane *l, struct physical_qp *p)
{
    struct lane_event event = {.kind = LANE_EVENT_QP_BROKEN,
                               .broken = {.qp = p->qp, .posted = p->posted}};
    if (p->connected) {
        lane_physical_qp_close(l, p);
    } else {
        lane_quarantine_lost_dci(l, p);
        lane_initiator_lost(l, p);
        event.broken.most = lane_initiator_mtu(l, p);
    }
    lane_event_push(l, &event);
}

/* Each that was out may have done it. What goes again does so once; on a connection one request at
 * a time, so that the next error has a name; the records of all are read again, since one may be
 * stale. An initiator has no flow of its own, and its requests go again beside others': the next
 * error may be nameless too, and then READs that went again end with it. Devices with DC (mlx5)
 * name the culprit, so that only doubles are so. */
static void suspect_all(struct lane *l, struct physical_qp *p)
{
    const bool doubt = (*ring_at(l, p, p->head))->ended == IBV_WC_REM_ACCESS_ERR;
    if (p->flow != NULL) {
        p->flow->alone = p->tail - p->head + 1;
        p->flow->alone_hit = lane_quarantine_who_is_hit(l, p);
    }
    lane_quarantine_suspect(l, p);
    for (uint32_t i = p->head; i != p->tail; i++) {
        struct wr *w = *ring_at(l, p, i);
        w->special |= doubt ? SPECIAL_SUSPECT | SPECIAL_DOUBT : SPECIAL_SUSPECT;
    }
}

/* Newest first, so that the oldest ends at the front of its VQP's queue. */
static void give_all_back_again(struct lane *l, struct physical_qp *p)
{
    for (uint32_t i = p->tail; i != p->head; i--) {
        struct wr **at = ring_at(l, p, i - 1), *w = *at;
        struct vqp *q = w != NULL ? vqp_of(w) : NULL;
        if (q == NULL || q->lost)
            continue;
        *at = NULL;
        give_back_again(l, w);
    }
}

/* As on a queue pair of its own: where a peer is silent, or has refused what they were merged into,
 * the first of a VQP says so, and those behind are flushed. */
static enum ibv_wc_status end_of(const struct lane *l, const struct physical_qp *p,
                                 const struct wr *w)
{
    const enum ibv_wc_status status = lane_blame_end_of(l, p, w);
    struct vqp *q = vqp_of(w);
    if (q == NULL)
        return status;
    const bool behind = q->lost == LOST_BEHIND;
    q->lost = LOST_BEHIND;
    return behind && (status == IBV_WC_RETRY_EXC_ERR || wr_is_merged(w)) ? IBV_WC_WR_FLUSH_ERR
                                                                         : status;
}

/* rc: its flow hears of it. */
static void lose_link(struct lane *l, struct flow *f)
{
    if (f == NULL)
        return;
    f->link = NULL;
    f->next_lost = l->lost_links;
    l->lost_links = f;
}

/* All that is out on it has completed, or is given up: each ends, or goes elsewhere. */
static void break_phys(struct lane *l, struct physical_qp *p)
{
    const uint32_t from = p->head, end = p->tail;
    const bool nameless = lane_blame_is_nameless(l, p);
    COUNT(l, qp_broken, 1);
    p->broken = BROKEN;
    p->chain = p->chain_tail = NULL;
    lose_link(l, p->flow);
    mark_lost(l, p, true);
    lane_blame_tenants(l, p);
    for (uint32_t i = from; i != end; i++) { /* before any of them goes */
        struct wr *w = *ring_at(l, p, i);
        if (w != NULL && (vqp_of(w) == NULL || vqp_of(w)->lost))
            w->ended = (uint8_t)end_of(l, p, w);
    }
    if (nameless)
        suspect_all(l, p);
    give_all_back_again(l, p);
    mark_lost(l, p,
              false); /* while every VQP is still as it was; then the lost end, oldest first */
    p->head = end;
    p->bytes = 0;
    replace_qp(l, p);
    for (uint32_t i = from; i != end; i++) {
        struct wr *w = *ring_at(l, p, i);
        if (w == NULL)
            continue;
        if (w->ended == 0)
            w->ended = IBV_WC_WR_FLUSH_ERR;
        returned_put(l, w);
    }
    l->changed = 1;
}

/* Whether the queue pair is in ERR and everything in it has been flushed: with streams, each of
 * them; else the last, before which all others were. */
static bool is_drained(const struct lane *l, const struct physical_qp *p, uint32_t completed)
{
    if (!l->config.streams)
        return completed == p->tail - 1;
    for (uint32_t i = p->tail; i != p->head; i--) {
        const struct wr *w = *ring_at(l, p, i - 1);
        if (w != NULL && w->ended == 0)
            return false;
    }
    return true;
}

/* Likewise, of one that fails, and with nothing chained. */
static bool has_all_back(const struct lane *l, const struct physical_qp *p)
{
    return l->config.streams ? is_drained(l, p, 0) : (*ring_at(l, p, p->tail - 1))->ended != 0;
}

void lane_physical_qp_await_longer(struct lane *l, struct physical_qp *p)
{
    const uint64_t due_ns = l->now_ns + physical_qp_await_ns(l);
    p->failing_us = physical_qp_us(l->now_ns);
    if (due_ns < l->await_due_ns)
        l->await_due_ns = due_ns;
}

/* What is out on p, which is in ERR, is back within bound_ns, whatever the device: else p is given
 * up; with streams p is told to end first (inflight_timeout.c). */
void lane_physical_qp_await(struct lane *l, struct physical_qp *p)
{
    if (p->broken == BROKEN_FAILING)
        return;
    p->broken = BROKEN_FAILING;
    lane_physical_qp_await_longer(l, p);
}

void lane_physical_qp_abandon(struct lane *l, struct physical_qp *p)
{
    if (p->head != p->tail) {
        break_phys(l, p);
        return;
    }
    p->broken = 1;
    lose_link(l, p->flow);
    replace_qp(l, p);
}

static void abandon_counted(struct lane *l, struct physical_qp *p)
{
    COUNT(l, qp_broken, p->head == p->tail);
    lane_physical_qp_abandon(l, p);
}

void lane_physical_qp_rebuild(struct lane *l, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < l->phys_room; i++) {
        struct physical_qp *p = &l->phys[i];
        if (p->qp != qp || !physical_qp_works(p))
            continue;
        if (p->head == p->tail)
            lane_physical_qp_abandon(l, p);
        else
            p->overdue = OVERDUE_RENEWED;
    }
}

/* Nothing is out any more, all of it ended well: that may be what its end waits for. One that its
 * endpoint gave up is closed already. */
void lane_physical_qp_emptied(struct lane *l, struct physical_qp *p)
{
    if (p->broken == BROKEN || (p->broken == BROKEN_NOT && p->overdue == OVERDUE_NOT))
        return;
    if (p->overdue == OVERDUE_RENEWED)
        lane_physical_qp_abandon(l, p);
    else
        abandon_counted(l, p);
}

/* Without streams: all up to this one have ended well. */
static void complete_up_to(struct lane *l, struct physical_qp *p, uint32_t end)
{
    while (p->head != end)
        returned_put(l, physical_qp_take_oldest(l, p));
}

/* Whether the oldest that is out has ended with an error, since when all that comes does. A queue
 * pair may be in ERR by the device's word while completions of before are still to be polled. */
static bool has_failed(const struct lane *l, const struct physical_qp *p)
{
    return !l->config.streams && (*ring_at(l, p, p->head))->ended != 0;
}

/* With streams: it has ended well. */
static void take_at(struct lane *l, struct physical_qp *p, uint32_t index)
{
    struct wr **at = ring_at(l, p, index);
    p->bytes -= (*at)->length;
    returned_put(l, *at);
    *at = NULL;
}

/* A completion that does not stand for all before it too: with an error, behind one, or of one
 * stream of several. After an error nothing else is reported or posted again before the device has
 * given back all that is out: until then it may read and write the memory of each. */
void lane_physical_qp_complete(struct lane *l, struct physical_qp *p, uint32_t index,
                               enum ibv_wc_status status)
{
    if (p->broken == BROKEN)
        return; /* of before a break: it was dealt with then */
    if (!l->config.streams && !has_failed(l, p)) {
        complete_up_to(l, p, status == IBV_WC_SUCCESS ? index + 1 : first_index(l, p, index));
        if (status == IBV_WC_SUCCESS) {
            if (p->head == p->tail)
                lane_physical_qp_emptied(l, p);
            return;
        }
    }
    if (*ring_at(l, p, index) == NULL)
        return;
    const uint32_t first = first_index(l, p, index);
    if (status != IBV_WC_SUCCESS) {
        for (uint32_t i = first; i != index + 1; i++)
            (*ring_at(l, p, i))->ended = (uint8_t)status;
        lane_merge_failed(l, p, first, status);
        lane_physical_qp_await(l, p);
    } else if (l->config.streams) {
        for (uint32_t i = first; i != index + 1; i++)
            take_at(l, p, i);
        while (p->head != p->tail && *ring_at(l, p, p->head) == NULL)
            p->head++;
    }
    if (p->broken == BROKEN_FAILING && is_drained(l, p, index))
        break_phys(l, p);
    else if (p->head == p->tail)
        lane_physical_qp_emptied(l, p);
}

/* The event may have come before the completions: of what is out some may have ended well, and what
 * is flushed is the device's until it says so. */
void lane_physical_qp_fatal(struct lane *l, const struct fab_qp *qp)
{
    for (uint32_t i = 0; i < l->phys_room; i++) {
        struct physical_qp *p = &l->phys[i];
        if (p->qp != qp || p->broken)
            continue;
        if (p->head == p->tail)
            abandon_counted(l, p);
        else
            lane_physical_qp_await(l, p);
    }
}

/* ---- doorbells */

/* Whether the device refuses this request, and would each time: not when it came too late, or
 * behind the end of its queue pair, nor when room is short, unless it says so again and again with
 * nothing else to make room for. */
static bool is_for_good(struct physical_qp *p, const struct fab_wr *first, int status)
{
    if (status == -ETIME || p->broken) /* some libraries take nothing more for one in ERR */
        return false;
    if (status != -ENOMEM && status != -EAGAIN)
        return true;
    return physical_qp_first_of(first) == p->head && ++p->refusals > REFUSALS;
}

/* Of what the device did not take nothing was executed. It goes back to its virtual queue pairs and
 * comes again in a later pass, under leases that are looked at anew; but the first of it, if the
 * device does not take that as it is, ends there with an error when all before it is over. One of
 * several requests is none that a worker asked for: these go again apart. */
static __attribute__((noinline)) void take_back(struct lane *l, struct physical_qp *p,
                                                const struct fab_wr *first, int status)
{
    const struct fab_wr *refused = is_for_good(p, first, status) ? first : NULL;
    struct wr *w, *own = NULL;
    if (refused != NULL && ((const struct wr *)(const void *)refused)->behind > 0) {
        lane_merge_failed(l, p, physical_qp_first_of(refused), IBV_WC_LOC_QP_OP_ERR);
        refused = NULL;
        p->refusals = 0;
    }
    COUNT(l, posts_refused, refused != NULL);
    do {
        w = *ring_at(l, p, --p->tail);
        p->bytes -= w->length;
        if (w->kind != WR_WORKER) {
            w->next = own;
            own = w;
            continue;
        }
        if (&w->fab == refused)
            w->refused = SCHEMA_REASON_DEVICE;
        give_back_again(l, w);
    } while (&w->fab != first);
    for (struct wr *next; own != NULL; own = next) {
        next = own->next;
        own->ended = &own->fab == refused ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_WR_FLUSH_ERR;
        returned_put(l, own);
    }
    l->silenced |= lane_physical_qp_is_silent(l, p);
    l->changed = 1;
    /* Its end may wait for nothing else, and no completion will come. */
    if (p->head == p->tail)
        lane_physical_qp_emptied(l, p);
    else if (p->broken == BROKEN_FAILING && has_all_back(l, p))
        break_phys(l, p);
}

void lane_physical_qp_ring(struct lane *l)
{
    struct physical_qp *list = l->chained;
    l->chained = NULL;
    for (struct physical_qp *p = list, *next; p != NULL; p = next) {
        struct fab_wr *bad = NULL;
        next = p->next_chained;
        p->chained = 0;
        if (p->chain == NULL) /* it broke */
            continue;
        if (p->alone > 0 && --p->alone == 0)
            physical_qp_set_depth(p, l->config.sq_depth);
        p->chain_tail->send_flags |= IBV_SEND_SIGNALED;
        struct fab_wr *first = p->chain;
        p->chain = p->chain_tail = NULL;
        COUNT(l, doorbells, 1);
        const int status = fab_post_send(p->qp, first, &bad);
        if (status != 0)
            take_back(l, p, bad, status);
        else
            p->refusals = 0;
    }
}
