/* SPDX-License-Identifier: Apache-2.0 */
/* Into windows and out of them, where nobody waits. Private to agent/lane, and the lane thread's.
 */
#ifndef LANE_WINDOW_PASS_H
#define LANE_WINDOW_PASS_H

#include "lane_state.h"
#include "resolve/path.h"
#include "schedule/vqp.h"
#include "schedule/window.h"
#include "session_state.h"
#include "transmit/physical_qp.h"
#include "transmit/wr.h"

/* w is as it is to be posted. */
static inline enum vqp_wait windows_enter(struct lane *l, struct vqp *q, struct wr *w)
{
    struct window *t = q->session->window, *f = q->flow->window, *d = l->device_window;
    if (!WINDOW_GET(l->windows_on))
        return WAIT_NOTHING;
    if (q->in != 0 || !window_passes(t, w->length) || !window_passes(f, w->length) ||
        !window_passes(d, w->length))
        return lane_windows_enter_slowly(l, q, w);
    const uint64_t ops = !physical_qp_takes_along(l, flow_phys(l, q->flow), w);
    window_count(t, w->length, ops);
    window_count(f, w->length, ops);
    window_count(d, w->length, ops);
    return WAIT_NOTHING;
}

/* w, posted before, is over or waits anew. done: it was carried out, which policies count. */
static inline void windows_leave(struct lane *l, const struct wr *w, bool done)
{
    if (!WINDOW_GET(l->windows_on))
        return;
    const uint64_t ops = !w->rides;
    window_uncount(w->session->window, w->length, ops);
    window_uncount(w->flow->window, w->length, ops);
    window_uncount(l->device_window, w->length, ops);
    if (done) {
        window_note_done(w->flow->window, w->length, ops);
        window_note_done(l->device_window, w->length, ops);
    }
    if (l->windows_waiting > 0)
        lane_windows_left(l, w);
}

#endif
