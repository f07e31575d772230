/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/wait_queue.h"

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "schedule/room.h"
#include "schedule/vqp.h"
#include "schedule/wait.h"
#include "schedule/window.h"

void lane_wait_queue_init(struct lane *l)
{
    vqp_list_init(&l->blocked);
    vqp_list_init(&l->served);
    vqp_list_init(&l->batching);
    TAILQ_INIT(&l->news);
    TAILQ_INIT(&l->parking);
    TAILQ_INIT(&l->crowd);
    l->round = 1;
}

/* ---- in and out */

static struct vqp_list *list_of(struct lane *l, const struct vqp *q)
{
    if (vqp_wait_places[q->wait] == PLACE_ENDPOINT)
        return &q->flow->parked;
    if (q->wait == WAIT_BATCHES)
        return &l->batching;
    return q->served == l->round ? &l->served : &l->blocked;
}

static void join_list(struct lane *l, struct vqp *q, enum vqp_wait why)
{
    lane_vqp_wait_move(q, why);
    struct vqp_list *list = list_of(l, q);
    TAILQ_INSERT_TAIL(&list->vqps, q, waiting);
    list->count++;
    l->waiting++;
    flow_hold(q);
}

void lane_vqp_unblock(struct lane *l, struct vqp *q)
{
    if (!vqp_is_listed(q))
        return;
    struct vqp_list *list = list_of(l, q);
    TAILQ_REMOVE(&list->vqps, q, waiting);
    list->count--;
    l->waiting--;
    if (l->round_left > l->blocked.count)
        l->round_left = l->blocked.count;
    flow_release(q);
    if (vqp_wait_places[q->wait] == PLACE_ENDPOINT && list->count == 0)
        TAILQ_REMOVE(&l->parking, q->flow, by_parked);
    q->served = 0;
    lane_vqp_wait_move(q, WAIT_NOTHING);
}

void lane_wait_queue_serve(struct lane *l, struct vqp *q)
{
    const enum vqp_wait why = (enum vqp_wait)q->wait;
    lane_vqp_unblock(l, q);
    q->served = l->round;
    join_list(l, q, why);
}

void lane_wait_queue_end_round(struct lane *l)
{
    TAILQ_CONCAT(&l->blocked.vqps, &l->served.vqps, waiting);
    l->blocked.count += l->served.count;
    l->served.count = 0;
    l->round++;
}

void lane_vqp_stop_waiting(struct lane *l, struct vqp *q)
{
    if (q->wait == WAIT_ROOM)
        lane_room_quit(l, q);
    lane_windows_desert(l, q);
    lane_vqp_unblock(l, q);
}

static void wait_for_lane(struct lane *l, struct vqp *q, enum vqp_wait why)
{
    l->starved |= why == WAIT_QP;
    l->changed |= why == WAIT_PASS;
    l->wanting |= why != WAIT_QP && why != WAIT_PASS && why != WAIT_BATCHES;
    join_list(l, q, why);
}

static void wait_for_endpoint(struct lane *l, struct vqp *q, enum vqp_wait why)
{
    struct flow *f = q->flow;
    f->felt |= f->broken_by != q->session->tenant_slot + 1;
    if (f->parked.count == 0)
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    join_list(l, q, why);
}

void lane_vqp_wait_for(struct lane *l, struct vqp *q, enum vqp_wait why)
{
    lane_vqp_stop_waiting(l, q);
    if (vqp_wait_places[why] == PLACE_ENDPOINT)
        wait_for_endpoint(l, q, why);
    else
        wait_for_lane(l, q, why);
}

void lane_vqp_wake(struct lane *l, struct vqp *q)
{
    if (!vqp_names_flow(q)) {
        lane_vqp_stop_waiting(l, q);
        vqp_forget_flow(q);
        lane_vqp_wait_for(l, q, WAIT_FLOW);
        return;
    }
    lane_vqp_wait_for(l, q, WAIT_NEWS);
    lane_flow_notify(l, q->flow);
}
