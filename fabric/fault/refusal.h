/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations that the device does not take. Control thread. */
#ifndef FAULT_REFUSAL_H
#define FAULT_REFUSAL_H

#include "fault/layer.h"

/* Whether it makes or destroys what the kernel's rdma cgroup counts as an object
 * (drivers/infiniband/core/rdma_core.c, alloc_begin_idr_uobject): a completion channel is a
 * descriptor, and none; an address handle is one where the library has the kernel make it, as
 * libmlx5 does on Ethernet (mlx5_create_ah) and rxe's always. */
bool fault_is_object(enum fab_ctl_kind kind);
/* What the device says to what it does not take, as a change of a queue pair that is over; or 0. */
int fault_refusal_of(const struct fault_fab *f, const struct fault_plan *plan,
                     const struct fab_ctl *ctl);

/* Whether it fails, by the shares of the plan. */
bool fault_fails(struct fault_fab *f, const struct fault_plan_state *now,
                 const struct fab_ctl *ctl);
/* Whether it is for a queue pair that goes to no other state any more, or begins to be one. */
bool fault_is_stuck(struct fault_fab *f, const struct fault_plan_state *now,
                    const struct fab_ctl *ctl);

#endif
