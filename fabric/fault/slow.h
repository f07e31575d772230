/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations that take time, by the plan: registrations, as pinning memory does, and
 * destroying a DC target, which is drained first. Each kind one after the other, and no other
 * operation waits for them but what frees what they need; where the device hangs all do. Control
 * thread. */
#ifndef FAULT_SLOW_H
#define FAULT_SLOW_H

#include "fabric/fault.h"

struct fault_fab;
struct fault_plan;
struct fault_plan_state;

enum { FAULT_REGISTERS, FAULT_DRAINS, FAULT_HANGS, FAULT_SLOWS };

/* Those of a kind. */
struct fault_slow {
    struct fab_ctl *first, **tail;
    uint64_t due_ns; /* the first is carried out then, as */
    int fd;          /* says, a timer */
};

/* Whether it takes time: then it is kept until it is due. */
bool fault_slow_put(struct fault_fab *f, const struct fault_plan_state *now, struct fab_ctl *ctl);
/* One of the kind (FAULT_REGISTERS, ...) that is due, or NULL. */
struct fab_ctl *fault_slow_take(struct fault_fab *f, const struct fault_plan_state *now, int kind);

/* Whether the device does, as the plan says. Any thread. */
bool fault_hangs(const struct fault_plan *plan);

#endif
