/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this host's clock can be trusted with leases
 * (docs/leases.md#clocks-that-cannot-be-trusted). Decides, and does nothing: no clock, no I/O.
 *
 * The clock of leases is held against two others. The kernel's own, which nobody slews
 * (CLOCK_MONOTONIC_RAW), shows that the clock is being steered. The device's free-running one,
 * where there is one, shows that too, and that the host has stood still without knowing: a
 * hypervisor that stops a machine stops all clocks of its kernel.
 *
 * Both are looked at now and then; a look is compared with those of the last two leases. What is
 * allowed is a thousandth of the time between two looks, or of a lease if that is longer, a
 * millisecond at least, and for the device's crystal one in 10,000 more; three quarters of it (the
 * crystal's apart) while the clock is doubted. Each look says between which two moments it was
 * made, so that whoever stands still while looking sees less, and accuses nobody. */
#ifndef CONTROL_CLOCK_CHECK_H
#define CONTROL_CLOCK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

enum clock_state {
    CLOCK_UNKNOWN, /* no second clock says so for now; the kernel's shows no steering */
    CLOCK_TRUSTED, /* the device's clock agrees */
    CLOCK_DOUBTED  /* it does not, or did not lately */
};

enum clock_lie {
    CLOCK_NO_LIE,
    CLOCK_SLOW, /* less time has gone by than on the device: the host stood still, or is slow */
    CLOCK_FAST, /* more */
    CLOCK_RESTARTED, /* it went back, or has another rate: nobody knows what happened meanwhile */
    CLOCK_STEERED,   /* the kernel slews the clock by more than one in a thousand */
};

enum { CLOCK_LOOKS = 16 };
#define CLOCK_GRACE_NS                                                                             \
    30000000000ull                    /* and four leases: so long a clock must have agreed again,  \
                                       */
#define CLOCK_AGREE_NS  1000000000ull /* and so long at first */
#define CLOCK_SILENT_NS 5000000000ull /* the device has not said its time: it is unknown */
#define CLOCK_BLUR_NS   10000000ull   /* a look that took longer says nothing */

/* One moment on another clock, which lies between two of the host's. */
struct clock_look {
    uint64_t before_ns, after_ns, other_ns;
};

/* The looks at one other clock. */
struct clock_witness {
    struct clock_look look[CLOCK_LOOKS];
    uint32_t count, next;
};

struct clock_check {
    enum clock_state state;
    uint64_t lease_ns; /* the shortest of this node's pools */
    struct clock_witness device, kernel;
    uint64_t ticks, total, hz; /* the device's counter, last; so many since it was seen first */
    uint64_t heard_ns;         /* when it was looked at last; 0: never */
    uint64_t gone_ns;          /* since when it cannot say its time; 0: it can, or was not asked */
    uint64_t agrees_ns;        /* since when it agrees; 0: it does not */
    enum clock_lie lie;        /* the last one, or the device's while its doubt lasts; when the last
                                * of all was; by how much, in how long */
    uint64_t lied_ns, off_ns, over_ns;
    uint64_t lies; /* that began a doubt */
};

/* lease_ns: 1 ms or more; it may be set anew at any time. */
void agent_clock_check_init(struct clock_check *c, uint64_t lease_ns);
/* The device has said its time. */
void agent_clock_check_device(struct clock_check *c, const struct fab_clock *seen);
/* It was asked, and cannot. */
void agent_clock_check_gone(struct clock_check *c, uint64_t now_ns);
/* CLOCK_MONOTONIC before and after CLOCK_MONOTONIC_RAW was read; now_ns: of base_clock_ns(). */
void agent_clock_check_kernel(struct clock_check *c, const struct clock_look *look,
                              uint64_t now_ns);
/* "trusted": a literal. */
const char *agent_clock_check_name(const struct clock_check *c);
/* What the last lie was, and what to do; empty: there was none. */
void agent_clock_check_why(const struct clock_check *c, char *text, size_t size);

#endif
