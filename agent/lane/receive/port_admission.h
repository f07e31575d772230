/* SPDX-License-Identifier: Apache-2.0 */
/* Whose messages a VQP hears, and who pays for what they take here
 * (docs/messages.md#ports-for-other-tenants). Private to agent/lane, and the lane thread's. It is
 * decided by what the sender's agent says of its worker's tenant, and never by what a worker says.
 */
#ifndef LANE_PORT_ADMISSION_H
#define LANE_PORT_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "message_state.h"

struct schema_message;

/* Who pays for the place that a stream has. */
struct admission {
    bool admitted;
    uint32_t share; /* whose part: a tenant's slot + 1; that, and max_tenants more, for those whom
                     * that tenant has let in, together */
    uint32_t guest; /* of that part, as which guest: its place + 1; behind those of guests: as one
                     * who answers, of whom a tenant's count as one guest; 0: as none */
};

/* How many shares there are beside the lane's own. */
static inline uint32_t lane_admission_shares(const struct lane *l)
{
    return 2 * l->config.max_tenants;
}
/* How many guests there are for the exchange: those, and who answers each tenant. */
static inline uint32_t lane_admission_guests(const struct lane *l, uint32_t guests)
{
    return guests + l->config.max_tenants;
}
/* Of a message of that tenant for q, which has messages. q hears its own tenant, those that it has
 * let in, and the one whose port it sends to, which answers. */
struct admission lane_admission_of(const struct lane *l, const struct vqp *q, uint32_t tenant);
/* By what a header says: which VQP of a worker's hears it, and who pays. NULL: none, or none that
 * that tenant may reach: who sends cannot tell which. */
struct vqp *lane_admission_find(struct lane *l, const struct schema_message *m,
                                struct admission *admission);
/* Whether the tenant is another one than q's own. */
bool lane_admission_is_foreign(const struct vqp *q, uint32_t tenant);
/* A message of q's own tenant has found no receive, or no room: those of others wait meanwhile, so
 * that who floods a port that is not its own takes no receive from who wants it there. Where it is
 * receives that it finds none of, though some are posted, no more are set aside for a while. */
void lane_admission_unmet(const struct lane *l, struct vqp *q, bool has_receive);
/* One has, a short while ago. */
bool lane_admission_is_short(const struct lane *l, const struct vqp *q);
bool lane_admission_yields(const struct lane *l, const struct vqp *q, uint32_t tenant);
/* Whether t's VQP has a receive for the next message of r, which comes behind those that are READ:
 * not one that is set aside for others. */
static inline bool lane_admission_has_receive(const struct lane *l, struct vqp_messages *t,
                                              const struct stream_receiver *r)
{
    if (t->aside.all > 0)
        lane_set_aside_go_on(&t->aside, l->now_ns, exchange_step_ns(&l->messages->exchange));
    return lane_set_aside_lets(&t->aside, &r->aside, r->in.next + r->reads) &&
           t->receives.head != NULL;
}
/* Whether one more large message of that tenant may be READ for q's session. Each session has few
 * queue pairs for that: other tenants together have half of them, and one of them a quarter. */
bool lane_admission_has_large(const struct lane *l, const struct vqp *q, uint32_t tenant);

#endif
