/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: as fab_submit(), from any thread, and fab_run(), on the control thread. */
#ifndef SOFT_CONTROL_H
#define SOFT_CONTROL_H

struct fab;
struct fab_ctl;

void soft_submit(struct fab *fab, struct fab_ctl *ctl);
int soft_run(struct fab *fab);

#endif
