/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is removed while it is open, as the kernel takes one from its users (uverbs:
 * "disassociate"). Every command ends with EIO from then on, but those which destroy something:
 * each kind of these succeeds or ends with EIO as well, by the seed, as they do from one kernel and
 * from one driver's commands to another (rdma_lookup_get_uobject() lets them pass,
 * uverbs_disassociate_api() takes those of drivers away); then whoever called it keeps the object.
 * A completion channel needs no command: it is destroyed, or is busy (EBUSY) with a completion
 * queue that was kept. What has completed by then may still be polled, as far as the seed has it;
 * of the rest, and of what is posted, nothing is heard. */
#ifndef FAULT_GONE_H
#define FAULT_GONE_H

#include <stdatomic.h>

#include "fabric/fault.h"

struct fault_fab;

struct fault_gone {
    _Atomic uint64_t at_ns; /* then; 0: never, or nobody knows yet */
    _Atomic bool is;        /* it is: once and for all */
    int fd;                 /* a timer, for the event, and to look for the file `when` */
    char when[FAULT_PATH];  /* that file; "": none */
    uint64_t told_after_ns; /* after it is gone the event comes */
    bool told;              /* control thread: which was given */
    uint32_t refused;       /* a bit for each enum fab_ctl_kind that ends with EIO */
    struct fault_left {     /* control thread: one that was destroyed since */
        enum fab_ctl_kind kind;
        void *object;
        int status; /* that its owner hears */
        struct fault_left *next;
    } * left;
};

/* When the layer is opened. */
void fault_gone_init(struct fault_fab *f, const struct fault_plan *plan);
/* When its plan changes. */
void fault_gone_plan(struct fault_fab *f, const struct fault_plan *plan);
/* Whether it is removed by now. Any thread; without such a plan one load. */
bool fault_is_gone(struct fault_fab *f);
/* The event, once it is due. Control thread. */
bool fault_gone_event(struct fault_fab *f, struct fab_event *out);
/* The inner provider has destroyed an object of ours: 0; or what its owner hears why it was not,
 * who may try again, and it is kept here. Control thread, as all below. */
int fault_gone_keep(struct fault_fab *f, const struct fab_ctl *ctl, void *object);
/* What is said of an operation about one of these; 0: it is about none. */
int fault_gone_status(const struct fault_fab *f, const struct fab_ctl *ctl);
/* The layer is closed: free_one frees each. */
void fault_gone_fini(struct fault_fab *f, void (*free_one)(enum fab_ctl_kind kind, void *object));

#endif
