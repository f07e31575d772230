/* SPDX-License-Identifier: Apache-2.0 */
/* Making, changing and freeing what control operations name, but for regions: create.c, modify.c.
 * 0 or -errno; -EBUSY: something uses the object. */
#ifndef SIM_OBJECTS_H
#define SIM_OBJECTS_H

#include "sim/sim_qp.h"

int sim_pd_alloc(struct sim_device *dev, struct fab_ctl *ctl);
int sim_pd_free(struct sim_device *dev, struct fab_ctl *ctl);
int sim_ah_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_ah_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_chan_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_chan_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_cq_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_cq_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_srq_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_srq_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_qp_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_qp_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_dct_create(struct sim_device *dev, struct fab_ctl *ctl);
int sim_dct_destroy(struct sim_device *dev, struct fab_ctl *ctl);
int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int mask);
/* All objects of the device are gone, whatever uses them. */
void sim_objects_drop_all(struct sim_device *dev);

#endif
