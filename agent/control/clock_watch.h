/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this host's clock can be trusted. Control thread. */
#ifndef CONTROL_CLOCK_WATCH_H
#define CONTROL_CLOCK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/clock_check.h"
#include "fabric/fabric.h"

struct agent;
struct base_text;

struct clock_watch {
    struct clock_check check;
    _Atomic uint32_t doubted; /* lanes read it */
    bool asked, none;         /* the device is being asked, by ctl; it has no clock */
    struct fab_ctl ctl;
    uint64_t looked_ns; /* last; 0: never */
    uint64_t ask_ns;    /* one that has none: not before */
};

/* Before the first pool is made. */
void agent_clock_watch_init(struct agent *a);
/* Now and then. */
void agent_clock_watch_tick(struct agent *a);
uint64_t agent_clock_watch_due_ns(const struct agent *a);
/* Empty, unless the clock cannot be trusted; a member of the status's object;
 * and metrics. */
void agent_clock_why(const struct agent *a, char *text, size_t size);
void agent_clock_status(const struct agent *a, struct base_text *t);
void agent_clock_metrics(const struct agent *a, struct base_text *t);

#endif
