/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous events: a thread takes them from the device, so that a CQ that overflowed is dead
 * for its lane at once, and keeps them for the control thread. */
#include <errno.h>
#include <sys/stat.h>

#include "verbs/verbs.h"

/* Of a port it says which one; a device's is of all. */
static bool is_ours(const struct verbs_fab *f, const struct ibv_async_event *e)
{
    return e->event_type == IBV_EVENT_DEVICE_FATAL || e->element.port_num == f->base.caps.port_num;
}

int verbs_destroyed(const struct fab *fab, int status)
{
    const struct verbs_fab *f = (const struct verbs_fab *)fab;
    return status == -EIO && atomic_load(&f->removed) ? 0 : status;
}

static void push_removed(struct verbs_fab *f)
{
    atomic_store(&f->removed, true);
    fab_events_push(&f->events, IBV_EVENT_DEVICE_FATAL, NULL);
}

/* What comes behind the device's end may be of an object that is destroyed by now. */
void verbs_events_handle(struct verbs_fab *f, const struct ibv_async_event *e)
{
    struct verbs_cq *cq;
    if (atomic_load(&f->removed))
        return;
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        cq = e->element.cq->cq_context;
        atomic_store(&cq->dead, true);
        fab_events_push(&f->events, e->event_type, &cq->base);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        /* A DCT has none, and is no fab_qp. */
        fab_events_push(&f->events, e->event_type, e->element.qp->qp_context);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        fab_events_push(&f->events, e->event_type, e->element.srq->srq_context);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        push_removed(f);
        break;
    default: /* or of objects that we do not make */
        if (fab_event_is_of_device(e->event_type) && is_ours(f, e))
            fab_events_push(&f->events, e->event_type, NULL);
        break;
    }
}

bool verbs_events_take(struct verbs_fab *f)
{
    struct ibv_async_event e;
    while (ibv_get_async_event(f->context, &e) == 0) {
        verbs_events_handle(f, &e);
        ibv_ack_async_event(&e); /* destroying an object waits for that */
    }
    if (errno == EAGAIN || errno == EINTR)
        return true;
    if (!atomic_load(&f->removed))
        push_removed(f); /* the driver is gone */
    return false;
}

ino_t verbs_events_node(const struct ibv_context *context)
{
    struct stat node;
    return stat(context->device->dev_path, &node) == 0 ? node.st_ino : 0;
}

/* A driver that cannot take a device from its users (rxe, siw) has the removal wait until the last
 * of them closes it, and tells none of them. But its node goes at once; another device may get the
 * name, not the inode. */
bool verbs_events_removed(struct verbs_fab *f)
{
    if (f->node == 0 || verbs_events_node(f->context) == f->node)
        return false;
    if (!atomic_load(&f->removed))
        push_removed(f);
    return true;
}
