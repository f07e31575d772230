/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/reuse.h"

#include <errno.h>

uint64_t fab_reuse_rest_ns(const struct fab_caps *caps, uint64_t gone_ns, uint64_t since_ns)
{
    return (gone_ns > since_ns ? gone_ns : since_ns) + caps->time_wait_ns;
}

enum reuse_step { REUSE_RESET, REUSE_INIT, REUSE_DESTROY, REUSE_MAKE, REUSE_NEW_INIT };

static bool set_step(struct fab_reuse *r, struct fab_ctl *ctl, enum reuse_step step)
{
    r->step = (uint8_t)step;
    switch (step) {
    case REUSE_RESET:
        *ctl = (struct fab_ctl){
            .kind = FAB_MODIFY_QP,
            .modify = {.x = r->qp, .attr = {.qp_state = IBV_QPS_RESET}, .mask = IBV_QP_STATE}};
        break;
    case REUSE_INIT:
    case REUSE_NEW_INIT:
        *ctl = (struct fab_ctl){.kind = FAB_MODIFY_QP,
                                .modify = {.x = r->qp, .attr = r->init, .mask = r->mask}};
        break;
    case REUSE_DESTROY:
        *ctl = (struct fab_ctl){.kind = FAB_DESTROY_QP, .qp = {.x = r->qp}};
        break;
    case REUSE_MAKE:
        *ctl = r->make;
        break;
    }
    return true;
}

static bool end_with(struct fab_reuse *r, int status)
{
    r->status = status;
    return false;
}

void fab_reuse_begin(struct fab_reuse *r, struct fab_ctl *ctl)
{
    r->anew = r->refused = false;
    r->status = 0;
    (void)set_step(r, ctl,
                   r->qp == NULL                             ? REUSE_MAKE
                   : r->in_reset                             ? REUSE_INIT
                   : r->fab->resets_are_final || r->given_up ? REUSE_DESTROY
                                                             : REUSE_RESET);
}

bool fab_reuse_next(struct fab_reuse *r, struct fab_ctl *ctl)
{
    const int status = ctl->status;
    switch ((enum reuse_step)r->step) {
    case REUSE_RESET:
        return status == 0 ? set_step(r, ctl, REUSE_INIT) : end_with(r, status);
    case REUSE_INIT:
        r->refused = status == -EINVAL && !r->in_reset;
        return status == -EINVAL ? set_step(r, ctl, REUSE_DESTROY) : end_with(r, status);
    case REUSE_DESTROY:
        if (status != 0)
            return end_with(r, status);
        r->qp = NULL;
        return set_step(r, ctl, REUSE_MAKE);
    case REUSE_MAKE:
        if (status != 0)
            return end_with(r, status);
        r->qp = ctl->qp.x;
        r->anew = true;
        return set_step(r, ctl, REUSE_NEW_INIT);
    case REUSE_NEW_INIT:
        break;
    }
    r->fab->resets_are_final |= status == 0 && r->refused;
    return end_with(r, status);
}
