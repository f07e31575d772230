/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is removed while it is open, as the kernel takes one from its users (uverbs:
 * "disassociate"): every command ends with EIO from then on, that which destroys something too, and
 * whoever called it keeps the object; of what is posted nothing is heard. */
#ifndef FAULT_GONE_H
#define FAULT_GONE_H

#include <stdatomic.h>

#include "fabric/fault.h"

struct fault_fab;

struct fault_gone {
    _Atomic uint64_t at_ns; /* then; 0: never */
    _Atomic bool is;        /* it is: once and for all */
    int fd;                 /* a timer, for the event */
    bool told;              /* control thread: which was given */
    struct fault_left {     /* control thread: one that was destroyed since */
        enum fab_ctl_kind kind;
        void *object;
        struct fault_left *next;
    } * left;
};

/* When the layer is opened, and when its plan changes. */
void fault_gone_plan(struct fault_fab *f, const struct fault_plan *plan);
/* Whether it is removed by now. Any thread; without such a plan one load. */
bool fault_is_gone(struct fault_fab *f);
/* The event, once it is due. Control thread. */
bool fault_gone_event(struct fault_fab *f, struct fab_event *out);
/* The inner provider has destroyed an object of ours, of which its owner hears that it was not: he
 * may try again. Control thread, as all below. */
void fault_gone_keep(struct fault_fab *f, enum fab_ctl_kind kind, void *object);
/* Whether that operation is about one of these. */
bool fault_gone_has(const struct fault_fab *f, const struct fab_ctl *ctl);
/* The layer is closed: free_one frees each. */
void fault_gone_fini(struct fault_fab *f, void (*free_one)(enum fab_ctl_kind kind, void *object));

#endif
