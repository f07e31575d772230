/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/window_run.h"

#include "lane_state.h"
#include "resolve/path.h"
#include "schedule/window.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"
#include "vqp_state.h"

static int64_t left_of(uint64_t most, uint64_t used)
{
    return used < most ? (int64_t)(most - used) : 0;
}

struct window_room lane_windows_room(const struct lane *l, const struct vqp *q)
{
    const struct window *const all[] = {q->session->window, q->flow->window, l->device_window};
    struct window_room room = {INT64_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const uint64_t used = WINDOW_GET(all[i]->bytes), most = all[i]->pass_bytes;
        const int64_t bytes = left_of(most, used);
        /* Beside one that is larger than the window none goes, nor one of no bytes. */
        const int64_t ops = used <= most ? left_of(all[i]->pass_ops, WINDOW_GET(all[i]->ops)) : 0;
        room.ops = ops < room.ops ? ops : room.ops;
        room.bytes = bytes < room.bytes ? bytes : room.bytes;
    }
    return room;
}

void lane_windows_enter_run(struct lane *l, const struct vqp *q, uint32_t count, uint64_t bytes)
{
    const struct physical_qp *p = flow_phys(l, q->flow);
    uint64_t ops = 0;
    for (uint32_t i = p->tail - count; i != p->tail; i++)
        ops += !(*ring_at(l, p, i))->rides;
    window_count(q->session->window, bytes, ops);
    window_count(q->flow->window, bytes, ops);
    window_count(l->device_window, bytes, ops);
}
