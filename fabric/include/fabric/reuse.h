/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair is made ready (INIT) for another life: RESET, INIT. To some devices RESET is final
 * (irdma moves such a queue pair to ERROR and refuses INIT then): it is destroyed there, and
 * another one, with another number, takes its place.
 *
 * Each operation is the caller's to submit, so that it counts them as it counts its others. No
 * memory, no thread; on the control thread. */
#ifndef FABRIC_REUSE_H
#define FABRIC_REUSE_H

#include "fabric/fabric.h"

/* A device gives the numbers of queue pairs that are gone to those that come, and for its
 * time_wait_ns packets for the former one may still come in. Until when one that is made now is
 * not used. gone_ns: when the last one that this process had went, whatever it was for; since_ns:
 * by when those of the process before had. */
uint64_t fab_reuse_rest_ns(const struct fab_caps *caps, uint64_t gone_ns, uint64_t since_ns);

struct fab_reuse {
    struct fab *fab;
    struct fab_qp *qp;       /* in: which, or NULL: there is none, and one is made. After each
                              * operation: the one that there is, or NULL */
    bool in_reset;           /* in: it is new, and so in RESET already */
    bool given_up;           /* in: it is not put to RESET any more, another takes its place */
    struct fab_ctl make;     /* in: FAB_CREATE_QP, as the first one was made */
    struct ibv_qp_attr init; /* in: what it is given in INIT, and the mask of that */
    int mask;
    bool anew;  /* out: qp is another one */
    int status; /* out: 0, and qp is in INIT; or of what failed */
    uint8_t step;
    bool refused; /* INIT was, after RESET */
};

/* Puts the first operation into ctl: its kind and its arguments. */
void fab_reuse_begin(struct fab_reuse *r, struct fab_ctl *ctl);
/* That operation is over. True: the next one is in ctl. False: that was all, see status. */
bool fab_reuse_next(struct fab_reuse *r, struct fab_ctl *ctl);

#endif
