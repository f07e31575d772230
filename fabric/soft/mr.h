/* SPDX-License-Identifier: Apache-2.0 */
/* Memory regions as their owner sees them. Control thread. */
#ifndef SOFT_MR_H
#define SOFT_MR_H

struct fab_ctl;
struct soft_fab;

/* 0; -EINVAL, -ENOMEM, -ENOSPC, or -errno of the memory's file. */
int soft_mr_register(struct soft_fab *f, struct fab_ctl *ctl);
/* 0, or -EINPROGRESS while some thread is inside: to be called again. */
int soft_mr_deregister(struct soft_fab *f, struct fab_ctl *ctl);
/* 0, or -EINPROGRESS while somebody is inside who was when it was first called: to be called
 * again. What it keeps meanwhile is ctl->quiesce.progress, to be freed by free(). */
int soft_mr_quiesce(struct soft_fab *f, struct fab_ctl *ctl);

#endif
