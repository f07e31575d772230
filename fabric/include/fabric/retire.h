/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that somebody is done with, and does not wait for. Control thread. */
#ifndef FABRIC_RETIRE_H
#define FABRIC_RETIRE_H

#include "fabric/fabric.h"

/* Hands x, if there is one, to the device to destroy (kind: FAB_DESTROY_QP, FAB_FREE_PD, ...), and
 * waits for nothing: *ops counts it until it is over, however it went. Several go in the order of
 * these calls where one needs another: a queue pair before its queues, all before their domain.
 * What the device refuses to destroy is not tried again: it is there until the device is closed,
 * and fab->undestroyed counts it. Of each queue pair that has gone fab->number_gone() hears, before
 * anybody hears of one that was made since. */
void fab_retire(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops);
/* The same of one that there is; then() is called when it is over, and *ops does not count it any
 * more: with what it needed for as long as it was there (memory of a region), which the device may
 * use still unless status is 0. */
void fab_retire_then(struct fab *fab, enum fab_ctl_kind kind, void *x, uint32_t *ops,
                     void (*then)(void *user, int status), void *user);
/* Of all that was handed over so and is not over: the kind that others wait for. 0: nothing is. */
uint32_t fab_retiring(const struct fab *fab);

#endif
