/* SPDX-License-Identifier: Apache-2.0 */
/* What the device says by itself: a queue pair is in ERR, the port went down, the device is gone.
 */
#include "address_change.h"
#include "agent.h"
#include "control/log.h"
#include "device_events.h"
#include "lane_setup.h"
#include "peer_setup.h"
#include "pools.h"

/* Nothing goes on without it, and only a new process gets rid of what is left of it. */
static void give_up(struct agent *a, const char *what)
{
    world_log(a->world, BASE_LOG_ERROR, "the device cannot be used any more", "why=\"%s\"", what);
    a->device_lost = true;
    world_stop(a->world);
}

static void one_event(struct agent *a, const struct fab_event *e)
{
    struct lane_command c = {.kind = LANE_COMMAND_QP_FATAL};
    switch (e->type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        a->qp_events++;
        if (e->qp == NULL) { /* a DC target, which only what is fatal ends */
            if (e->type == IBV_EVENT_QP_FATAL)
                address_retarget(a);
            return;
        }
        /* A responder's is its initiator's to end. The state is asked for here, since that may be
         * a command to the firmware: an event may be of a life that is over. One that is repaired
         * or used again meanwhile is handed to its lane behind this command, by this thread. */
        if (fab_qp_state(e->qp) != IBV_QPS_ERR)
            return;
        c.qp = e->qp; /* the lane that has it knows it */
        for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
            pool_command(p, &c);
        return;
    case IBV_EVENT_PORT_ERR:
        address_port(a, true);
        address_look(a);
        return;
    case IBV_EVENT_PORT_ACTIVE:
        address_port(a, false);
        address_look(a);
        return;
    case IBV_EVENT_DEVICE_FATAL:
        give_up(a, "it was removed, or its driver gave up");
        return;
    case IBV_EVENT_CQ_ERR:
        give_up(a, "a completion queue overflowed or broke");
        return;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        world_log(a->world, BASE_LOG_INFO, "the port's addresses have changed",
                  "device=\"%s\" type=%d", a->config.device, (int)e->type);
        address_look(a);
        return;
    default:
        world_log(a->world, BASE_LOG_INFO, "device event", "type=%d", (int)e->type);
        return;
    }
}

void device_port_changed(struct fab_port_watch *w, enum ibv_mtu before)
{
    struct agent *a = w->user;
    world_log(a->world, BASE_LOG_WARN,
              "the port has another MTU: connections that are made or fail from now on have it",
              "device=\"%s\" mtu=%u before=%u", a->config.device, 128u << w->mtu, 128u << before);
    for (struct pool *p = pools_next(a, NULL); p != NULL; p = pools_next(a, p))
        peer_setup_mtu(p);
}

void device_tick(struct agent *a)
{
    if (!a->device_lost)
        fab_port_watch_tick(&a->port, world_now_ns(a->world));
}

void device_events(struct agent *a)
{
    struct fab_event e;
    while (!a->device_lost && fab_get_event(a->fab, &e))
        one_event(a, &e);
}
