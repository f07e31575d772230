/* SPDX-License-Identifier: Apache-2.0 */
/* What registers memory and gives registrations back, in turns between tenants. Control thread.
 *
 * A device pins memory for as long as it is large, and takes such operations in the order of their
 * coming: what one tenant's workers ask for would stand before another one's first. So each has few
 * at the device at a time, and all together have few; the rest waits here by tenant. What an
 * operator takes by force waits for nobody, and goes to the device itself (leases.c). */
#ifndef CONTROL_MR_OPS_H
#define CONTROL_MR_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/tenant_queue.h"
#include "fabric/fabric.h"

struct pool;

enum {
    MR_OPS_OF_ONE = 4, /* a tenant's, or the agent's own, at the device at a time; and of all
                        * tenants: more than a provider carries out at once */
    MR_OPS_OF_TENANTS = 8
};

/* Its owner's; it stays where it is until it is done, and counts to the pool's fab_ops. */
struct mr_op {
    struct fab_ctl ctl;             /* registers or deregisters; its done and user are set here */
    uint32_t owner;                 /* whose it is: a tenant's index + 1, or 0: nobody's yet */
    bool soon;                      /* before those of its owner of which this is not so */
    void (*done)(struct mr_op *op); /* from fab_run(): it may be freed */
    void *user;
    struct pool *pool;             /* private */
    struct tenant_queue_item turn; /* private */
};

/* The members that are not private are set, and the others 0. */
void agent_mr_op_submit(struct pool *p, struct mr_op *op);
/* Whether it was still waiting for its turn: it is not under way any more, and done() does not
 * come. */
bool agent_mr_op_cancel(struct mr_op *op);

#endif
