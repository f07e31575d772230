/* SPDX-License-Identifier: Apache-2.0 */
/* Robust locks in shared memory, of receive queues and of CQs: what other processes take from and
 * append to.
 *
 * Any thread of any process. Nobody ever waits for one: its holder may be a stopped process. Both
 * at once are taken in this order: the receive queue's, the CQ's. */
#ifndef SOFT_LOCKS_H
#define SOFT_LOCKS_H

#include "soft/layout.h"

struct soft_fab;

/* Makes a slot's lock when the slot is used for the first time: 0 or -errno. Whoever has claimed
 * the slot. */
int soft_make_lock(_Atomic uint32_t *made, pthread_mutex_t *lock);
/* Takes the lock: 0, or -EBUSY. What a process that died with it left half done is finished. */
int soft_rq_trylock(struct soft_fab *f, struct soft_rq_shared *rq);
int soft_cq_trylock(struct soft_fab *f, struct soft_cq_shared *cq);
void soft_unlock(pthread_mutex_t *lock);

#endif
