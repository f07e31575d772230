/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that find their size: of the device, and of the destinations to which most is out.
 * Private to agent/lane, and the lane thread's.
 *
 * The lane looks each millisecond. While few requests are there nothing is counted, so that one
 * alone pays nothing. What a window is told is how many requests left it, with what bytes, how many
 * are out and how many would be: of a destination of those that are posted, so that what waits for
 * the device is not taken for a slow peer. One window at a time tries sizes, for else each would
 * see what others do. Where one destination has nearly all, its window is the device's.
 *
 * Where no window gains anything the search rests, and nothing is counted, for half a second and
 * longer each time, 16 s at most; until much more is wanted than then, or what ends is 30 % more or
 * less, which the lane's own counter tells: then not before some time, which is twice as long each
 * time that it comes to that, so that who lets its load swing has no others pay for it. */
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

/* What is seen while a search rests, of looks in which much is wanted. */
struct window_rest {
    uint64_t for_ns, until_ns; /* for 0: it has found sizes, or has not begun */
    uint32_t wanted;           /* when it began */
    uint32_t more;             /* looks, one after the other, in which twice that was */
    uint64_t ns, ended;        /* of the present round, and requests in it */
    uint64_t completed;        /* the lane's counter, at the look before */
    uint64_t rate;             /* requests in a s; 0: of no round yet */
    uint32_t strange;          /* rounds, one after the other, that were unlike it */
    uint32_t hasty;            /* rests that ended for that, of late */
    uint64_t not_before_ns;    /* none ends for that */
    bool more_spent;           /* but once for twice as much, until one has lasted */
};

struct window_search_all {
    const struct window_policy *policy;
    struct window_search *at; /* WINDOW_SEARCHES of them; the first is of the device */
    uint64_t look_ns;         /* the look before */
    uint64_t idle_looks;
    uint32_t hand; /* of flows: whence those are looked for that have much out */
    uint8_t on;    /* much is wanted: what is found holds */
    uint8_t rests; /* it is not on, since no window gains anything */
    struct window_rest rest;
};

/* A policy, from now on: what was found is forgotten. */
void lane_windows_choose(struct lane *l, enum lane_window_policy policy);
/* In housekeeping, if the policy finds sizes. wanted: requests that were taken and are not over. */
void lane_windows_find(struct lane *l, uint32_t wanted);
/* n is of another endpoint now. */
void lane_window_forget_search(struct lane *l, struct window *n);

#endif
