/* SPDX-License-Identifier: Apache-2.0 */
/* What a device keeps count of: its objects, and events that nobody has taken. */
#include "sim/sim_device.h"

#include "fabric/events.h"

void sim_object_add(struct sim_device *dev, struct sim_object *o, enum sim_kind kind, void *self)
{
    o->self = self;
    o->kind = kind;
    dev->count[kind]++;
    LIST_INSERT_HEAD(&dev->objects[kind], o, link);
}

void sim_object_drop(struct sim_device *dev, struct sim_object *o)
{
    dev->count[o->kind]--;
    LIST_REMOVE(o, link);
}

uint32_t sim_device_objects(const struct fab *fab)
{
    const struct sim_device *dev = sim_device_of(fab);
    uint32_t count = 0;
    for (int kind = 0; kind < SIM_KINDS; kind++)
        count += dev->count[kind];
    return count;
}

/* ---- events */

void sim_device_tell(struct sim_device *dev, enum ibv_event_type type, void *object)
{
    /* A place is kept for those of the device. */
    const uint32_t room = SIM_EVENTS - (fab_event_is_of_device(type) ? 0 : FAB_EVENTS_SPARE);
    if (dev->queued_tail - dev->queued_head >= room)
        return;
    struct fab_event *e = &dev->queued[dev->queued_tail++ % SIM_EVENTS];
    e->type = type;
    e->qp = object; /* or cq, srq: one union */
    sim_note(dev->net, 1u << 20 | type);
    sim_ready_set(dev->net, &dev->event, true);
}

void sim_device_forget(struct sim_device *dev, const void *object)
{
    uint32_t to = dev->queued_head;
    for (uint32_t i = dev->queued_head; i != dev->queued_tail; i++) {
        const struct fab_event e = dev->queued[i % SIM_EVENTS];
        if (e.qp != object)
            dev->queued[to++ % SIM_EVENTS] = e;
    }
    dev->queued_tail = to;
    sim_ready_set(dev->net, &dev->event, dev->queued_head != dev->queued_tail);
}
