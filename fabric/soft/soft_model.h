/* SPDX-License-Identifier: Apache-2.0 */
/* A soft device that was opened with a cost model: completions of sends come when the card would
 * have written them, by the clock, and not before they are true. Each device is charged for what it
 * posts, as if nobody else were at its peers: these are other processes.
 *
 * Who waits for such a completion sleeps as ever: the channel becomes readable when it is due.
 * Lanes of one device share a card, and so a lock, which none of them holds for long. */
#ifndef SOFT_MODEL_H
#define SOFT_MODEL_H

#include "soft/soft_qp.h"

struct base_errbuf;
struct model_preset;

/* Opening: 0, or -EINVAL with a sentence when there is no such preset, or -ENOMEM. */
int soft_model_init(struct soft_fab *f, const char *preset, struct base_errbuf *err);
void soft_model_fini(struct soft_fab *f);

/* A queue pair is made, or goes. Nothing on a device without a model. Control thread. */
int soft_model_qp_begin(struct soft_fab *f, struct soft_qp *qp);
void soft_model_qp_end(struct soft_fab *f, struct soft_qp *qp);

/* What such a device has in its operations: as those of poll.h, sendq.h and cq.h. */
int soft_modelled_post(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int soft_modelled_poll(struct fab_cq *cq, int n, struct ibv_wc *wc);
int soft_modelled_arm(struct fab_cq *cq, bool solicited_only);

#endif
