/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the device: making, changing and freeing them, each one control operation. */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include "verbs/verbs.h"

/* objects.c: on a worker. Each is one control operation; 0 or -errno. */
int verbs_pd_alloc(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_pd_free(struct fab_ctl *ctl);
int verbs_mr_register(struct fab_ctl *ctl);
int verbs_mr_deregister(struct fab_ctl *ctl);
int verbs_chan_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_chan_destroy(struct fab_ctl *ctl);
int verbs_cq_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_cq_destroy(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_srq_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_srq_destroy(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_ah_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_ah_destroy(struct verbs_fab *f, struct fab_ctl *ctl);

/* qp.c: on a worker, but for the state. */
int verbs_qp_create(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_qp_modify(struct verbs_fab *f, struct fab_ctl *ctl);
int verbs_qp_destroy(struct verbs_fab *f, struct fab_ctl *ctl);
/* Asks the device: a system call. */
enum ibv_qp_state verbs_qp_state(const struct fab_qp *qp);
/* The most inline bytes that a queue pair can have, found by creating some. 0 or -errno. Blocks. */
int verbs_probe_inline(struct ibv_context *context, uint32_t *bytes);

#endif
