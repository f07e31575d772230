/* SPDX-License-Identifier: Apache-2.0 */
/* Making, changing and freeing what control operations name, but for regions and channels:
 * create.c, qp.c, states.c. Control thread.
 *
 * 0 or -errno. -EBUSY: something uses the object. -EINPROGRESS: a sender is inside, to be called
 * again. */
#ifndef SOFT_OBJECTS_H
#define SOFT_OBJECTS_H

#include "soft/soft_qp.h"

int soft_pd_alloc(struct soft_fab *f, struct fab_ctl *ctl);
int soft_pd_free(struct fab_ctl *ctl);
int soft_ah_create(struct fab_ctl *ctl);
int soft_ah_destroy(struct fab_ctl *ctl);
int soft_cq_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_cq_destroy(struct soft_fab *f, struct fab_ctl *ctl);
int soft_srq_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_srq_destroy(struct soft_fab *f, struct fab_ctl *ctl);
int soft_qp_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_qp_destroy(struct soft_fab *f, struct fab_ctl *ctl);
int soft_dct_create(struct soft_fab *f, struct fab_ctl *ctl);
int soft_dct_destroy(struct soft_fab *f, struct fab_ctl *ctl);
/* -EINVAL where verbs refuses the move or an attribute. */
int soft_qp_modify(struct soft_fab *f, struct soft_qp *qp, const struct ibv_qp_attr *attr,
                   int mask);

#endif
