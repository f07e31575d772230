/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of this node's workers: how they come, and how they go, by their workers' will and by
 * the operator's. Private to agent/lane, and the lane thread's; the leases are shown to others. */
#ifndef LANE_REGION_H
#define LANE_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/lane.h"
#include "schema/record.h"
#include "schema/session.h"

struct schema_sq_desc;
struct schema_table;
struct session;
struct wr;

/* A worker's own, in this node's MR table while it is LIVE. */
struct region {
    struct lane_lease lease;    /* NONE: the place is free */
    uint32_t vkey, rkey;        /* rkey: of the arena that it is in, or its own */
    uint32_t tag;               /* of the fence, or of its registration's end; 0: none yet */
    uint8_t by;                 /* place + 1 of the withdrawal that it is part of; 0: none */
    bool hurried;               /* the end of its registration waits for no lease (any more) */
    _Atomic uint32_t shown_seq; /* odd while a copy of the lease is written for those that ask */
    _Atomic uint64_t shown_word[6]; /* (regions.c) */
    _Atomic uint64_t grant_word[4]; /* likewise; written while the place is shown to be free */
};

/* What all tenants' regions take of the MR table, and what is kept for tenants that have less. */
struct mr_shares {
    uint64_t used, kept;
    uint64_t due_ns; /* when all tenants are looked at again */
};

enum { REGION_ACCESS = SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE | SCHEMA_RECORD_ATOMIC };
/* Beside the access of one that the lane registers itself: it is lent (lending_state.h), and no
 * tenant's. */
#define REGION_LENT    (1u << 18)
#define REGION_NOBODYS 0
/* DEREG_MRs, by their answers' places; and behind these what is lent no more. */
enum { WITHDRAWALS = SCHEMA_REPLIES + 1, WITHDRAWAL_OF_LENT = SCHEMA_REPLIES };

/* Whether the region's end waits for its lease: until that is over, or by force. */
static inline bool region_waits(const struct region *region)
{
    return !region->lease.fenced && !region->hurried;
}

/* Regions that go: a DEREG_MR that is not answered yet, at the place of its answer, or what is lent
 * no more. */
struct withdrawal {
    uint32_t tag;
    int32_t status;
    uint16_t left;   /* regions that are not gone; 0: the place is free */
    uint16_t lent;   /* of these, those whose lease is waited for */
    uint64_t due_ns; /* when that is over; 0: not counted yet */
};

/* Whether a REG_MR gets a registration of its own. */
bool lane_region_has_own(const struct lane *l, const struct schema_sq_desc *d);
/* A free place, which stays free until lane_region_publish(); NULL: there is none. */
struct region *lane_region_place(struct session *s);
/* Peers find it, at its real address and key. d is sound; the tenant's share is given
 * back on failure. */
int lane_region_publish(struct lane *l, struct session *s, struct region *region,
                        const struct schema_sq_desc *d, const struct lane_arena *at, uint32_t *vkey,
                        uint8_t secret[16]);
/* The worker withdraws it, as part of withdrawals[place], whose counts grow, unless no peer could
 * reach it any more: then it is gone. */
void lane_region_remove(struct lane *l, struct session *s, struct region *region, uint32_t place);
/* One that is being withdrawn keeps its key until it is gone. NULL: none has it. */
struct region *lane_region_find(const struct session *s, uint32_t vkey);
/* 0, -EACCES: the operator has revoked it; -ENOENT. */
int lane_region_status(const struct session *s, uint32_t vkey);
/* It goes with its session: no peer finds it from now on. It is shown until it is free; the caller
 * fences. */
void lane_region_end(struct lane *l, struct session *s, struct region *region);
/* When its lease is over then. */
void lane_region_show_end(struct region *region, uint64_t due_ns);
/* All go over to another table. Returns how many it had no room for. */
uint32_t lane_regions_move(struct lane *l, struct schema_table *to);
/* How many places for regions were ever used; the others are free. */
uint32_t lane_region_places(const struct session *s);
/* The record goes; the caller fences. */
void lane_region_withdraw(struct lane *l, struct session *s, struct region *region);
void lane_region_free(struct session *s, struct region *region);
/* After a change of its lease. */
void lane_region_show(struct region *region);
/* How long an owner waits after a withdrawal: the lease, stretched for clocks that drift (1 in
 * 1000). */
uint64_t lane_region_wait_ns(const struct lane *l);

#endif
