/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes post for workers, and for whom: so that whoever sees a device access memory can tell
 * on whose behalf. Requests are taken down when they are handed to a device (fab_post_send() is
 * wrapped when kedge-sim is linked), the last POSTS_KEPT of each node; whatever becomes of them,
 * the device may still carry them out.
 *
 * A session is known by its read-only page: that is one address for its worker and for its agent,
 * and no later session's. One thread. */
#ifndef SIM_POST_LOOKS_H
#define SIM_POST_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/sim.h"

void play_posts_init(void);
void play_posts_fini(void);
/* Whether a request of that session names those bytes as its own: access is not remote. */
bool play_posts_own(const struct sim_access *access, const void *session);
/* Whether a request of that tenant's (agentd_tenant_id()) asks for those bytes: access is remote.
 */
bool play_posts_reach(const struct sim_access *access, uint32_t tenant);

/* What callers of fab_post_send() call instead, and that one. */
int __wrap_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int __real_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);

#endif
