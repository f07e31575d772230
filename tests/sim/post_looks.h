/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes post for workers, and for whom: so that whoever sees a device access memory can tell
 * on whose behalf. Requests are taken down when they are handed to a device (fab_post_send() is
 * wrapped when kedge-sim is linked), the last POSTS_KEPT of each node; whatever becomes of them,
 * the device may still carry them out. Memory of the request's own side it may touch until the lane
 * completes it (lane_session_complete() is wrapped too) or posts it again, which it does when the
 * device has given it back.
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
/* That node's agent begins another life: none of its requests is out. */
void play_posts_new_life(uint32_t node);
enum play_posted {
    PLAY_POST_NONE,  /* no such request names those bytes */
    PLAY_POST_OUT,   /* one does, which is out */
    PLAY_POST_OVER,  /* which is over, or was posted again */
    PLAY_POST_AGAIN, /* which was carried out already, by another post: of a WRITE or an atomic */
};
/* Of requests of that session, and its own memory: access is not remote. NONE, OUT or OVER. */
enum play_posted play_posts_own(const struct sim_access *access, const void *session);
/* Requests that went in another one's work request. */
uint64_t play_posts_merged(void);
/* Of requests of that tenant's (agent_tenant_id()), and its peer's: access is remote. NONE, OUT or
 * AGAIN. */
enum play_posted play_posts_reach(const struct sim_access *access, uint32_t tenant);
/* When the last of those was posted, whatever became of it; 0: there is none for some of the bytes.
 */
uint64_t play_posts_reach_ns(const struct sim_access *access, uint32_t tenant);

/* What callers of fab_post_send() call instead, and that one. */
int __wrap_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
int __real_fab_post_send(struct fab_qp *qp, struct fab_wr *wr, struct fab_wr **bad);
/* Likewise of lane_merge(): of requests that share a work request each has its own memory. */
struct lane;
struct physical_qp;
struct wr;
bool __wrap_lane_merge(struct lane *l, struct physical_qp *p, struct wr *w);
bool __real_lane_merge(struct lane *l, struct physical_qp *p, struct wr *w);
/* And of lane_session_complete(), and where a piece of a batch ends. */
void __wrap_lane_session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                  uint32_t vendor_err);
void __real_lane_session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                  uint32_t vendor_err);
void __wrap_lane_batch_request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                    uint32_t reason);
void __real_lane_batch_request_over(struct lane *l, struct wr *w, enum ibv_wc_status status,
                                    uint32_t reason);

#endif
