/* SPDX-License-Identifier: Apache-2.0 */
/* How unkind the order of execution is, as KEDGE_SOFT_ORDER says (fabric.h). */
#ifndef SOFT_ORDER_H
#define SOFT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct base_errbuf;
struct fab_wr;
struct soft_qp;

/* The control thread's. */
struct soft_order {
    bool late, writes, unseen;
    uint64_t seed;
    uint32_t queue_pairs; /* so far: each draws from numbers of its own */
};

/* Reads KEDGE_SOFT_ORDER. 0, or -EINVAL with a sentence. */
int soft_order_init(struct soft_order *order, struct base_errbuf *err);
/* A new queue pair gets its own numbers. Control thread. */
void soft_order_begin(struct soft_order *order, struct soft_qp *qp);
/* Whether a request that could be executed at once is held back so that others may overtake it. The
 * owning thread. */
bool soft_order_holds_back(struct soft_qp *qp, const struct fab_wr *wr);
/* Executes the last request that waits in the queue pair, if it may overtake all of them. The
 * owning thread. */
void soft_order_overtake(struct soft_qp *qp);

#endif
