/* SPDX-License-Identifier: Apache-2.0 */
/* Control operations: each takes its time, and fab_run() tells what is over. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/sim_device.h"

void sim_submit(struct fab *fab, struct fab_ctl *ctl);
int sim_run(struct fab *fab);
/* As fab_wait(): what is due first is carried out now, without time that goes by. */
void sim_wait(struct fab *fab);
/* What is under way is over, with that status; or, at a crash, without a word. */
void sim_control_cancel(struct sim_device *dev, bool tells);

#endif
