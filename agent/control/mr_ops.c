/* SPDX-License-Identifier: Apache-2.0 */
#include "mr_ops.h"

#include "agent.h"

static const struct tenant_queue_bound BOUND = {
    .of_agent = MR_OPS_OF_ONE, .of_tenant = MR_OPS_OF_ONE, .of_tenants = MR_OPS_OF_TENANTS};

static void begin_ops(struct agent *a)
{
    for (struct tenant_queue_item *item;
         (item = agent_tenant_queue_begin(&a->mr_queue, &BOUND)) != NULL;) {
        struct mr_op *op = TENANT_QUEUE_IN(struct mr_op, turn, item);
        fab_submit(op->pool->device.fab, &op->ctl);
    }
}

/* Its memory may be gone after its done(). */
static void on_done(struct fab_ctl *ctl)
{
    struct mr_op *op = ctl->user;
    struct agent *a = op->pool->agent;
    agent_tenant_queue_end(&a->mr_queue, op->owner);
    op->pool->fab_ops--;
    op->done(op);
    begin_ops(a);
}

void agent_mr_op_submit(struct pool *p, struct mr_op *op)
{
    op->pool = p;
    op->ctl.done = on_done;
    op->ctl.user = op;
    p->fab_ops++;
    agent_tenant_queue_join(&p->agent->mr_queue, &op->turn, op->owner, op->soon);
    begin_ops(p->agent);
}

bool agent_mr_op_cancel(struct mr_op *op)
{
    if (!op->turn.waits)
        return false;
    agent_tenant_queue_leave(&op->pool->agent->mr_queue, &op->turn);
    op->pool->fab_ops--;
    return true;
}
