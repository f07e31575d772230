/* SPDX-License-Identifier: Apache-2.0 */
/* Another DC target for the table, when the one that there is broke, or answers from an address or
 * a partition that is not this port's any more: it has both in its context, for good. The new one
 * has another number and the same key; the former goes when the new one stands. The thread of the
 * fabric's control operations. */
#ifndef METASERVER_RETARGET_H
#define METASERVER_RETARGET_H

#include "metaserver/table_endpoint.h"

struct meta_retarget {
    struct meta_table_endpoint *endpoint; /* which has a target */
    void (*done)(void *user);             /* it has another one */
    void *user;
    struct fab_ctl ctl; /* under way: the new one is made, or the former destroyed */
    bool busy, wanted, failed, stopping;
    uint64_t retry_ns; /* after a failure: not before */
};

/* Begins, when what is under way is over. Nothing blocks; whoever runs the fabric goes on with it.
 */
void meta_retarget_want(struct meta_retarget *r);
/* Tries again what has failed, a second later or more. */
void meta_retarget_tick(struct meta_retarget *r, uint64_t now_ns);
uint64_t meta_retarget_due_ns(const struct meta_retarget *r);
/* Blocks until nothing is under way: done() is not called any more. */
void meta_retarget_stop(struct meta_retarget *r);

#endif
