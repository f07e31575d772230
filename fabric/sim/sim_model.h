/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a net that has a cost model: when what they do is over. Without one (dev->nic is NULL)
 * links and the seed say it. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "sim/sim_qp.h"

/* The requests from `first` to the tail were posted together: when the device has them. */
uint64_t sim_model_posted(struct sim_qp *qp, uint32_t first);
/* The packet is the request's, or what is left of it: it is sent in its turn. */
void sim_model_send(struct sim_qp *qp, const struct sim_wqe *w, struct sim_packet *p);
/* When the request that has come is carried out. */
uint64_t sim_model_serves(struct sim_device *dev, struct model_qp *qp, const struct sim_packet *p);
/* When the answer's last byte leaves. */
uint64_t sim_model_answers(struct sim_device *dev, const struct sim_packet *p);
/* It is over, with that status: when its completion can be seen. */
uint64_t sim_model_over(struct sim_qp *qp, const struct sim_wqe *w, enum ibv_wc_status status);

#endif
