/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection as a layer over any provider: errors, delays and losses by a seeded plan.
 *
 * The layer owns no clock and no randomness: the plan holds the seed, and the same plan over the
 * same calls gives the same faults. Rates are per million, 0 = never. */
#ifndef FABRIC_FAULT_H
#define FABRIC_FAULT_H

#include "fabric/fabric.h"

struct kedge_fault_plan {
    uint64_t seed;
    uint32_t post_error_ppm;       /* post_send fails with -ENOMEM before anything is posted */
    uint32_t completion_error_ppm; /* a request completes with `status` and its queue pair goes to
                                    * ERR; it was not executed */
    enum ibv_wc_status status;     /* which; 0: IBV_WC_RETRY_EXC_ERR */
    uint32_t delay_ppm; /* a completion is withheld for `delay_polls` polls, order kept */
    uint32_t delay_polls;
    uint32_t loss_ppm;          /* a UD SEND is completed and dropped */
    uint32_t control_error_ppm; /* a control operation fails with -EIO */
    enum ibv_mtu mtu;  /* of the path, when it is less than the port's: the port says so when it is
                        * asked, and what is longer fails (RETRY_EXC) on queue pairs that were
                        * connected with more; 0: as the inner provider has it */
    bool no_deadlines; /* the device is as one that keeps none. Of the plan that the layer is opened
                        * with */
};

/* Reads a plan as an operator writes it: "loss=5%, seed=7, completion_error=0.01%,
 * mtu=512, deadlines=off"; the shares are loss, completion_error, post_error, control_error. 0, or
 * -EINVAL and what it must be. */
int kedge_fault_plan_parse(const char *text, struct kedge_fault_plan *out,
                           struct kedge_errbuf *must);

/* Wraps inner, which the layer then owns (closing the layer closes it). The plan is copied.
 * -ENOMEM. */
int kedge_fault_open(struct kedge_fab *inner, const struct kedge_fault_plan *plan,
                     struct kedge_fab **out);
/* Replaces the plan, its seed included. On the thread of the data path. */
void kedge_fault_set_plan(struct kedge_fab *fab, const struct kedge_fault_plan *plan);
/* How many faults of all kinds were injected so far. */
uint64_t kedge_fault_count(const struct kedge_fab *fab);

#endif
