/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants whose requests break queue pairs that they share with others, again and again: private to
 * agent/lane, and the lane thread's (docs/failures.md#tenants-who-break-queue-pairs). */
#ifndef LANE_QUARANTINE_H
#define LANE_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>

struct flow;
struct lane;
struct physical_qp;
struct vqp;
struct wr;

/* What is held against a tenant; of all together `felt`, `since_ns` and `paid_ns`. */
struct culprit {
    uint32_t breaks;   /* that count; one less with time */
    uint64_t since_ns; /* when the last one was, or was forgotten */
    uint32_t felt;     /* breaks that strangers felt, since so many counted as one */
    uint64_t rests_ns; /* until then it waits, since it has broken another one; 0: it does not */
    uint64_t paid_ns;  /* its breaks are paid for until then, each with a rest */
    uint32_t unnamed;  /* breaks by an unknown tenant, with requests of this one and of others; one
                        * less with time */
    uint64_t unnamed_ns;   /* when the last one was, or was forgotten */
    uint32_t last_unnamed; /* the number of the last such break */
    uint32_t made;         /* rc: connections that were made for it, or are being made; */
    uint32_t links;        /* those of its own alone */
    uint8_t quarantined;   /* its requests go through queue pairs of their own */
    uint8_t named;         /* it is known to have broken some */
    uint8_t told;          /* `quarantined` as the control side knows it */
    uint8_t rejoins;       /* what waits at its flows is to look again (lane->rejoins) */
    struct flow *probe;    /* of its own to suspect endpoints the one that had its turn last */
};

/* p has broken, and w, which is certain to have done it, is still out on it with all others, of
 * which those that end with it are marked as lost. */
void lane_quarantine_blame(struct lane *l, const struct physical_qp *p, const struct wr *w);
/* p has broken, and nobody knows by whose request. Where that happens again and again to several
 * tenants at a time, with rc, each of them goes into quarantine, so that the next one has a name.
 */
void lane_quarantine_suspect(struct lane *l, const struct physical_qp *p);
/* rc: the flow has a connection again after one that broke: the tenants that waited for it have
 * felt that. */
void lane_quarantine_look_who_waited(struct lane *l, struct flow *f);
/* p has broken, and those that end with it are marked as lost: whose they are; or several tenants',
 * or nobody's. */
enum { HIT_NOBODY = -1, HIT_MANY = -2 };
uint32_t lane_quarantine_who_is_hit(const struct lane *l, const struct physical_qp *p);
/* The tenant's place is another's from now on. */
void lane_quarantine_forget(struct lane *l, uint32_t tenant_slot);
/* The tenant is in quarantine, or is so no more, or its flows of its own need not wait: what waits
 * there looks again (resolve/quarantined_flows.h). */
void lane_quarantine_let_rejoin(struct lane *l, uint32_t tenant_slot);
/* Now and then: a tenant that has kept quiet leaves quarantine. */
void lane_quarantine_look(struct lane *l);

/* There is one spare more. With DC one of them is the initiator of tenants in quarantine, on which
 * one request is out at a time: so none is flushed with another. */
void lane_quarantine_take_dci(struct lane *l);
/* p broke: if it was theirs, they wait for the next spare; not for p, which may never come back. */
void lane_quarantine_lost_dci(struct lane *l, const struct physical_qp *p);
/* Whether q's requests wait for news of its flow, which it has: its tenant rests, since it has
 * broken queue pairs; or is in quarantine, and another flow of its asks an endpoint that may be
 * dead. That holds the queue pair of suspect endpoints, which is everybody's, for as long as it is
 * tried. */
bool lane_quarantine_waits(struct lane *l, const struct vqp *q);
/* Whether there is an initiator for tenants in quarantine, or none to be awaited any longer. */
bool lane_quarantine_is_ready(struct lane *l);
/* Its index in lane->dci; where there is no spare for it, or f is suspect, that of suspect
 * endpoints. */
uint32_t lane_quarantine_dci(const struct lane *l, const struct flow *f);

#endif
