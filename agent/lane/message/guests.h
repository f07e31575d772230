/* SPDX-License-Identifier: Apache-2.0 */
/* Guests: tenants that a VQP hears at its ports beside its own
 * (docs/messages.md#ports-for-other-tenants). Private to agent/lane, and the lane thread's. Pure.
 *
 * A VQP's are a list in one table of the lane: so many in all, and GUESTS_EACH of one VQP, so that
 * a message of another tenant costs no more than that many looks. */
#ifndef LANE_GUESTS_H
#define LANE_GUESTS_H

#include <stdint.h>

enum { GUESTS_EACH = 16 };

struct guest {
    uint32_t tenant; /* its number; 0: the place is free */
    uint32_t next;   /* place + 1: in its VQP's list, or of the next that is free */
};

struct guests {
    struct guest *all;
    uint32_t most, used, free;
};

/* Room for `most`, 1 to 2^20. 0 or -ENOMEM. */
int lane_guests_init(struct guests *g, uint32_t most);
void lane_guests_free(struct guests *g);
/* A list is known by its first place + 1, 0 where it is empty. Tenant: not 0. 0; -EALREADY: it is
 * there; -EDQUOT: the list has GUESTS_EACH, or all places are in use. */
int lane_guest_add(struct guests *g, uint32_t *list, uint32_t tenant);
/* Its place + 1; 0: it is no guest there. */
uint32_t lane_guest_find(const struct guests *g, uint32_t list, uint32_t tenant);
/* 0 or -ENOENT. */
int lane_guest_remove(struct guests *g, uint32_t *list, uint32_t tenant);
/* The list is empty. Returns how many were there. */
uint32_t lane_guests_remove_all(struct guests *g, uint32_t *list);

#endif
