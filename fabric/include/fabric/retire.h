/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that somebody is done with, and does not wait for. Control thread. */
#ifndef FABRIC_RETIRE_H
#define FABRIC_RETIRE_H

#include "fabric/fabric.h"

/* Hands x, if there is one, to the device to destroy (kind: FAB_DESTROY_QP, FAB_FREE_PD, ...), and
 * waits for nothing: *ops counts it until it is over, however it went. Several go in the order of
 * these calls where one needs another: a queue pair before its queues, all before their domain. */
void fab_retire(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops);

#endif
