/* SPDX-License-Identifier: Apache-2.0 */
/* Into windows and out of them, where nobody waits. Private to agent/lane, and the lane thread's.
 */
#ifndef LANE_WINDOW_PASS_H
#define LANE_WINDOW_PASS_H

#include "lane_state.h"
#include "resolve/flow.h"
#include "schedule/vqp.h"
#include "schedule/window.h"

static inline enum vqp_wait windows_enter(struct lane *l, struct vqp *q, struct wr *w)
{
    struct window *t = q->session->window, *f = q->flow->window, *d = l->device_window;
    if (!WINDOW_GET(l->windows_on))
        return WAIT_NOTHING;
    if (q->in != 0 || !window_passes(t, w->length) || !window_passes(f, w->length) ||
        !window_passes(d, w->length))
        return lane_windows_enter_slowly(l, q, w);
    window_count(t, w->length);
    window_count(f, w->length);
    window_count(d, w->length);
    return WAIT_NOTHING;
}

/* w, posted before, is over or waits anew. done: it was carried out, which policies count. */
static inline void windows_leave(struct lane *l, const struct wr *w, bool done)
{
    if (!WINDOW_GET(l->windows_on))
        return;
    window_uncount(w->session->window, w->length);
    window_uncount(w->flow->window, w->length);
    window_uncount(l->device_window, w->length);
    if (done) {
        window_note_done(w->flow->window, w->length);
        window_note_done(l->device_window, w->length);
    }
    if (l->windows_waiting > 0)
        lane_windows_left(l, w);
}

#endif
