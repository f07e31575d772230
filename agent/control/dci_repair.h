/* SPDX-License-Identifier: Apache-2.0 */
/* DC initiators are brought up: new ones, those that rest, those that broke. One that the device
 * does not bring back is given up, and a new one takes its place. Control thread.
 *
 * The lane has reported all that was out on one that broke before it says so, and nothing is posted
 * there before QP_READY: so whoever is given up here has nothing whose end is still to be told.
 * Those that are given up are in the way of nobody: they are destroyed beside the making of others,
 * as far as the completion queue has room for both. */
#ifndef CONTROL_DCI_REPAIR_H
#define CONTROL_DCI_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"

struct dci_op;
struct fab_qp;
struct pool;

/* What a pool has under way of that. */
struct dci_repairs {
    struct dci_op *waiting; /* initiators that rest, or that the device could not repair; new ones
                             * and ends that it refused */
    uint32_t ending;        /* that the pool does not have any more, and not destroyed yet */
    uint32_t making;        /* under way in the device */
    uint32_t replaced;      /* so often one was given up */
};

/* One in RESET, or of any state: to RTS, once it has rested; then QP_READY. */
void agent_dci_raise(struct pool *p, struct fab_qp *qp);
/* QP_BROKEN: it has posted so much, and is to have an MTU of that at most; 0: the pool's. */
void agent_dci_repair(struct pool *p, struct fab_qp *qp, uint64_t posted, enum ibv_mtu most);
/* The pool does not have it any more, nor has the lane. */
void agent_dci_destroy(struct pool *p, struct fab_qp *qp);
/* The lane has it still, with requests out, and the device does not put it to ERR. tried() hears
 * how destroying it went, each time that it is tried: -errno until it is 0. Its place is another's:
 * true: the system's. */
bool agent_dci_destroy_early(struct pool *p, struct fab_qp *qp,
                             void (*tried)(void *user, const struct fab_qp *qp, int status));
/* One is made for that place, which the lane knows nothing in any more: then QP_READY. */
void agent_dci_make_other(struct pool *p, bool system, enum ibv_mtu most);
/* One spare more is made; agent_prewarm_spare() follows. */
void agent_dci_make_spare(struct pool *p);
/* Now and then: what has rested, what is to be tried again, and what does not come back. */
void agent_dci_repairs_tick(struct pool *p);
uint64_t agent_dci_repairs_due_ns(const struct pool *p);
/* Nothing is under way in the device: what waits is given back. */
void agent_dci_repairs_stop(struct pool *p);

#endif
