/* SPDX-License-Identifier: Apache-2.0 */
/* DC initiators: with what one is created, how it is brought up, and how its packets are told from
 * those of its former lives.
 *
 * A broken one goes on under its own number, and late acknowledgements and READ responses find it.
 * So the packets of its next life have the numbers that follow those which the lives before may
 * have used: late ones are then behind it, as on a queue pair that never broke, and a responder
 * takes late requests for repetitions (IBTA 9.7.1). Nobody says which packets of DC take a number,
 * so that the lane counts as many as there can be. Where these are more than half of all numbers,
 * or nobody has counted, the initiator rests until none is under way any more, as a connected queue
 * pair does (IBTA 12.9.8.5.2, TimeWait).
 *
 * The control thread's. */
#ifndef CONTROL_DCI_H
#define CONTROL_DCI_H

#include "base/text.h"
#include "fabric/fabric.h"

struct dci_op;
struct pool;

/* A DC initiator, and what packets of its former lives may still come in (dci.c). */
struct agent_dci {
    struct fab_qp *qp;      /* NULL: the place of one that was given up, until another is made */
    struct dci_op *raising; /* under way in the device, or NULL (dci_repair.c) */
    enum ibv_mtu mtu;       /* that it was brought up with */
    uint16_t pkey_index;    /* that it was brought up with */
    uint32_t address;       /* which of the device's addresses it was brought up with, as counted */
    uint32_t psn;     /* the first number of its present life's packets, or of the next one's */
    uint64_t behind;  /* packets of former lives have at most that many numbers before psn */
    uint64_t gone_ns; /* from then on no packet of a former life is under way */
};

/* What it takes to create a DCI, in RESET. */
struct fab_ctl agent_dci_creation(const struct pool *p, struct fab_pd *pd);
/* A place for one that was just created, in RESET. Its number may be that of one that is gone, of
 * whose packets the last were sent then. */
struct agent_dci *agent_dci_add(struct pool *p, struct fab_qp *qp, uint64_t gone_ns);
/* The one with that queue pair, which there is. */
struct agent_dci *agent_dci_find(struct pool *p, const struct fab_qp *qp);
/* Its place is free; who has the queue pair destroys it. */
void agent_dci_remove(struct pool *p, const struct fab_qp *qp);
/* Its place is kept for another, as agent_dci_add() does; who has the queue pair destroys it. */
void agent_dci_leave_place(struct pool *p, const struct fab_qp *qp);
/* There is such a place: the system's, or one of others. */
void agent_dci_replace(struct pool *p, bool system, struct fab_qp *qp, uint64_t gone_ns);
/* Whether the completion queue has room for those of one more, beside as many that are out of use
 * and not destroyed. */
bool agent_dcis_have_room(const struct pool *p, uint32_t others);
/* Its life is over, in which it has posted so much (LANE_EVENT_QP_BROKEN). */
void agent_dci_end_life(const struct pool *p, struct agent_dci *d, uint64_t posted);
/* Until when it must not be brought up, since nothing would tell packets of its former lives from
 * its own; 0: it may be. */
uint64_t agent_dci_rests_ns(const struct pool *p, const struct agent_dci *d);
/* The step-th change of state of a DCI from RESET (0) to RTS; false: there is none. */
bool agent_dci_step(const struct pool *p, struct agent_dci *d, uint32_t step, struct fab_ctl *ctl);
/* Until when some must not; 0: none. */
uint64_t agent_dcis_rest_ns(const struct pool *p);
/* Whether what it was brought up with is what the device has now, but for the MTU. */
bool agent_dci_is_of_now(const struct pool *p, const struct agent_dci *d);
/* How many of a pool's must not now. */
uint32_t agent_dcis_resting(const struct pool *p);
/* How many of a pool's have no queue pair: one that was given up, until another is made. */
uint32_t agent_dcis_missing(const struct pool *p);
/* Of the DCIs of lanes: how many rest, and until when the last of them does (0: none); how many are
 * missing, and how often one was given up. */
struct dci_counts {
    uint32_t resting, missing;
    uint64_t until_ns, replaced;
};
/* Adds those of one lane. */
void agent_dcis_count(const struct pool *p, struct dci_counts *sum);
/* As members of an object of the status. */
void agent_dcis_status(const struct dci_counts *sum, uint64_t now_ns, struct base_text *t);
/* Of each request what workers may ask for, or all that the device has: the lane sees to the rest.
 */
uint32_t agent_dci_sges(const struct fab_caps *caps);
uint32_t agent_dci_inline_bytes(const struct fab_caps *caps);

#endif
