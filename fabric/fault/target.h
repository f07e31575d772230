/* SPDX-License-Identifier: Apache-2.0 */
/* DC targets, which may break without a word: of mlx5's the kernel passes on that one has drained,
 * and nothing else. Whoever sends to one that is broken so hears nothing, and its time-outs end.
 * For that the inner provider's is destroyed, and its owner keeps ours until he destroys that. All
 * of the control thread. */
#ifndef FAULT_TARGET_H
#define FAULT_TARGET_H

#include <stdbool.h>

#include "fabric/fault.h"

struct fault_fab;

struct fault_dct {
    struct fab_dct base;
    struct fab_dct *inner; /* NULL: it is gone */
    struct fault_fab *fab;
    struct fault_dct *next;
    bool leaves;           /* its owner has it destroyed, or it is silent */
    struct fab_ctl silent; /* by which the inner one goes; no done() of one that is not silent */
    struct fab_ctl *owner; /* that waits for it; NULL: none does */
};

/* The inner provider has made one. */
void fault_dct_made(struct fault_fab *f, struct fault_dct *dct, const struct fab_ctl *inner,
                    struct fab_ctl *outer);
/* Its owner has it destroyed, be it silent: true; else the inner provider is to do it. */
bool fault_dct_leaves(struct fab_ctl *outer);
/* It is gone, and freed here. */
void fault_dct_gone(struct fault_fab *f, struct fault_dct *dct);
/* Those that there are break when the plan's file was made since. */
void fault_dct_look(struct fault_fab *f);

#endif
