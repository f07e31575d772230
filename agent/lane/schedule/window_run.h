/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of posts (request/post_run.c) at windows: looked at once, and counted once. Private to
 * agent/lane, and the lane thread's. Where some window counts. */
#ifndef LANE_WINDOW_RUN_H
#define LANE_WINDOW_RUN_H

#include <stdint.h>

struct lane;
struct vqp;

struct window_room {
    int64_t ops, bytes;
};

/* How many posts of q may go without another look, and with how many bytes. */
struct window_room lane_windows_room(const struct lane *l, const struct vqp *q);
/* They are the last on its queue pair. */
void lane_windows_enter_run(struct lane *l, const struct vqp *q, uint32_t count, uint64_t bytes);

#endif
