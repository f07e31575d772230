/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that find their size: of the device, and of the destinations to which most is out.
 * Private to agent/lane, and the lane thread's.
 *
 * The lane looks each millisecond. While few requests are there nothing is counted, so that one
 * alone pays nothing. What a window is told is how many requests left it, with what bytes, how many
 * are out and how many would be: of a destination of those that are posted, so that what waits for
 * the device is not taken for a slow peer. One window at a time tries sizes, for else each would
 * see what others do. Where one destination has nearly all, its window is the device's. */
#ifndef LANE_WINDOW_FIND_H
#define LANE_WINDOW_FIND_H

#include <stdint.h>

#include "schedule/window_policy.h"

struct lane;
struct window;

enum { WINDOW_SEARCHES = 33 /* of the device, and of so many destinations but one */ };

struct window_search {
    struct window *of; /* NULL: the place is free */
    struct window_finder finder;
    uint64_t done_work, done_ops; /* of its window, until the look before */
    uint64_t idle_looks;          /* one after the other in which little was wanted */
};

struct window_search_all {
    const struct window_policy *policy;
    struct window_search *at; /* WINDOW_SEARCHES of them; the first is of the device */
    uint64_t look_ns;         /* the look before */
    uint64_t idle_looks;
    uint32_t hand; /* of flows: whence those are looked for that have much out */
    uint8_t on;    /* much is wanted: what is found holds */
};

/* A policy, from now on: what was found is forgotten. */
void lane_windows_choose(struct lane *l, enum lane_window_policy policy);
/* In housekeeping, if the policy finds sizes. wanted: requests that were taken and are not over. */
void lane_windows_find(struct lane *l, uint32_t wanted);
/* n is of another endpoint now. */
void lane_window_forget_search(struct lane *l, struct window *n);

#endif
