/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/wait_queue.h"

#include "base/assert.h"
#include "lane_state.h"
#include "resolve/flow.h"
#include "resolve/flow_news.h"
#include "schedule/room.h"
#include "schedule/vqp.h"
#include "schedule/window.h"

void wait_queue_init(struct lane *l)
{
    vqp_list_init(&l->blocked);
    vqp_list_init(&l->served);
    TAILQ_INIT(&l->news);
    TAILQ_INIT(&l->parking);
    TAILQ_INIT(&l->crowd);
}

/* ---- in and out
 * ------------------------------------------------------------------------------------------ */

void wait_queue_join(struct lane *l, struct vqp_list *list, struct vqp *q)
{
    BASE_ASSERT(q->waits == NULL && q->window == NULL && q->room == NULL);
    TAILQ_INSERT_TAIL(&list->vqps, q, waiting);
    list->count++;
    l->waiting++;
    q->waits = list;
    flow_hold(q);
}

static bool is_parked(const struct vqp *q)
{
    return q->flow != NULL && q->waits == &q->flow->parked;
}

void vqp_unblock(struct lane *l, struct vqp *q)
{
    if (q->waits == NULL)
        return;
    TAILQ_REMOVE(&q->waits->vqps, q, waiting);
    q->waits->count--;
    l->waiting--;
    if (l->round_left > l->blocked.count)
        l->round_left = l->blocked.count;
    flow_release(q);
    if (is_parked(q) && q->waits->count == 0)
        TAILQ_REMOVE(&l->parking, q->flow, by_parked);
    q->waits = NULL;
}

void vqp_stop_waiting(struct lane *l, struct vqp *q)
{
    if (q->room != NULL)
        room_quit(l, q);
    windows_desert(l, q);
    vqp_unblock(l, q);
}

void vqp_block(struct lane *l, struct vqp *q)
{
    vqp_stop_waiting(l, q);
    wait_queue_join(l, &l->blocked, q);
}

void vqp_wait(struct lane *l, struct vqp *q)
{
    struct flow *f = q->flow;
    f->felt |= f->broken_by != q->session->tenant_slot + 1;
    vqp_stop_waiting(l, q);
    if (f->parked.count == 0)
        TAILQ_INSERT_TAIL(&l->parking, f, by_parked);
    wait_queue_join(l, &f->parked, q);
}

void vqp_wake(struct lane *l, struct vqp *q)
{
    vqp_wait(l, q);
    flow_notify(l, q->flow);
}
