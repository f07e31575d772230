/* SPDX-License-Identifier: Apache-2.0 */
#include "transmit/lane_events.h"

#include "base/assert.h"
#include "lane_state.h"

void lane_event_push(struct lane *l, const struct lane_event *event)
{
    int status = base_spsc_push(l->events, event);
    BASE_ASSERT(status == 0);
}

int lane_event(struct lane *l, struct lane_event *out)
{
    return base_spsc_pop(l->events, out) == 0;
}

bool lane_has_events(const struct lane *l)
{
    return base_spsc_count(l->events) > 0;
}
