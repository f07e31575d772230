/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's control operations: as fab_submit(), from any thread, and fab_run(). */
#ifndef FAULT_CONTROL_H
#define FAULT_CONTROL_H

#include "fault/layer.h"

void fault_submit(struct fab *fab, struct fab_ctl *ctl);
int fault_run(struct fab *fab);
/* Ends one that is not, or no more, with the inner provider. */
void fault_finish(struct fault_fab *f, struct fab_ctl *outer, int status);
/* What was submitted and not yet taken completes with -ECANCELED. */
void fault_cancel(struct fault_fab *f);

/* One that was destroyed by an operation of this kind after the device was removed (gone.h). */
void fault_free_left(enum fab_ctl_kind kind, void *object);

#endif
