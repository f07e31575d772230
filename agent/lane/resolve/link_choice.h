/* SPDX-License-Identifier: Apache-2.0 */
/* Which endpoints get a connection beside DC, and which lose theirs (docs/lane.md, "A pool with
 * both"). Decides and does nothing: no I/O, no clock, no randomness; the lane thread's.
 *
 * An endpoint has points: each sample of what is out gives it some, and every HALF_MS half of them
 * is forgotten. One that has LINK_WANTS is worth a connection while there is one to be had.
 * Where there is none, another one goes: one that is idle; else one of the same tenant with half
 * the points; else, for a tenant that has less than its share, one of a tenant that has more. So
 * whatever a tenant samples, it takes no connection in use from one that has no more than a share.
 *
 * A connection belongs to the tenant that brought it up, for as long as that one uses it; then to
 * who does.
 *
 * Invariant: held <= most; tenant_held sums up to held. */
#ifndef LANE_LINK_CHOICE_H
#define LANE_LINK_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LINK_SAMPLE = 16,              /* points of one sample */
    LINK_WANTS = 24 * LINK_SAMPLE, /* so many are worth a connection */
    LINK_IDLE = 2 * LINK_SAMPLE,   /* fewer than that: it is hardly used */
    LINK_POINTS_MOST = 1 << 20,
    LINK_HALF_MS = 256,
    LINK_HELD_MS = 200,     /* no connection goes for another's sake before */
    LINK_UNUSED_MS = 10000, /* one that is idle for so long goes, with nobody wanting it */
    LINK_MAKING = 4,        /* of a lane at a time */
    LINK_LOOKS = 64,        /* at connections, for one that may go */
    LINK_BARRED_MS = 1000,  /* after a failure; after each further one twice as long */
    LINK_BARRED_MOST = 6,   /* doublings at most */
    LINK_NOBODY = 0xffff
};
#define LINK_NONE UINT32_MAX

enum link_state { LINK_FREE, LINK_MADE /* it is being made */, LINK_HELD, LINK_LEAVES };

/* Of one endpoint in use. */
struct link_score {
    uint32_t points, own; /* own: of these, its tenant's */
    uint32_t at_ms;       /* when these were so many */
    uint32_t since_ms;    /* of its state */
    uint32_t idle_ms;     /* since when it is; while it is */
    uint32_t barred_ms;   /* until then none is made */
    uint16_t tenant;      /* its place, or LINK_NOBODY */
    uint8_t state;        /* enum link_state */
    uint8_t fails;        /* in a row */
    uint32_t place;       /* in `holders` */
};

struct link_choice {
    struct link_score *of; /* by the endpoint's place */
    uint32_t *holders;     /* of these, which have one, are to have one, or are about to lose it */
    uint32_t *tenant_held, tenants, endpoints;
    uint32_t most, held, making, hand, idle_hand;
};

/* most: connections at a time. 0 or -ENOMEM. */
int lane_link_choice_init(struct link_choice *c, uint32_t endpoints, uint32_t tenants,
                          uint32_t most);
void lane_link_choice_fini(struct link_choice *c);

/* Something of that tenant is out to the endpoint. weight: so many looks that stands for. */
void lane_link_choice_sample(struct link_choice *c, uint32_t endpoint, uint32_t tenant,
                             uint32_t weight, uint32_t now_ms);
/* Whether one should be made for it now; if only another one has to go first, that is *victim, else
 * LINK_NONE. */
bool lane_link_choice_wants(struct link_choice *c, uint32_t endpoint, uint32_t now_ms,
                            uint32_t *victim);
/* One that nobody has used for long, of a few that are looked at; or LINK_NONE. */
uint32_t lane_link_choice_unused(struct link_choice *c, uint32_t now_ms);

/* What became of it: FREE to MADE, MADE to HELD, HELD to LEAVES; any to FREE. failed: another one
 * is not made for a while. */
void lane_link_choice_begin(struct link_choice *c, uint32_t endpoint, uint32_t now_ms);
void lane_link_choice_linked(struct link_choice *c, uint32_t endpoint, uint32_t now_ms);
void lane_link_choice_leave(struct link_choice *c, uint32_t endpoint, bool failed, uint32_t now_ms);
void lane_link_choice_over(struct link_choice *c, uint32_t endpoint, uint32_t now_ms);
/* The place is another endpoint's from now on. Its state is FREE. */
void lane_link_choice_forget(struct link_choice *c, uint32_t endpoint);

/* How many a tenant may have where all are in use: of those that have some, or want one. */
uint32_t lane_link_choice_share(const struct link_choice *c, uint32_t tenant);

#endif
