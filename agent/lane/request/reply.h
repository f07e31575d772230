/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is told: completions, and answers to its control requests. Private to agent/lane,
 * and the lane thread's. */
#ifndef LANE_REPLY_H
#define LANE_REPLY_H

#include "lane_state.h"

/* Of struct session: its worker is told of what there is at the end of the pass; or of whatever it
 * sleeps for. */
enum session_dirty { SESSION_TOLD, SESSION_TELL, SESSION_TELL_NOW };

/* The request is over: its completion, if it has one, into the slot that was reserved for it. */
void lane_session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status,
                           uint32_t vendor_err);
/* A message is in what a RECV named, which is over: with lane_session_has_two_places(). */
void lane_session_deliver(struct lane *l, struct wr *receive, bool with_imm, uint32_t imm,
                          const struct schema_cqe_sender *sender);
/* Whether there is room for one completion more than each that is out may need. */
bool lane_session_has_two_places(struct session *s);
/* To the control request that nothing behind is taken before. secret: 16 bytes, or NULL. */
void lane_session_reply(struct lane *l, struct session *s, int status, uint32_t reason, uint64_t a,
                        uint64_t b, const uint8_t *secret);
/* The same to a CONNECT or a LOOKUP. */
void lane_session_reply_lookup(struct lane *l, struct session *s, const struct lookup_answer *a);
/* To another one. */
void lane_session_answer(struct lane *l, struct session *s, uint32_t tag, int status);
/* A worker that sleeps is woken at the end of the pass, if what it sleeps for is there then; or
 * whatever that is. */
void lane_session_tell(struct lane *l, struct session *s);
void lane_session_tell_now(struct lane *l, struct session *s);
/* What was told of one that is away is no completion: it is woken, whatever it sleeps for. */
void lane_session_wake(struct lane *l, struct session *s);
/* The end of the pass, where somebody was told something, or is still to be woken: workers see what
 * they were told. */
void lane_sessions_publish(struct lane *l);
static inline bool sessions_have_news(const struct lane *l)
{
    return ((uintptr_t)STAILQ_FIRST(&l->dirty) | (uintptr_t)TAILQ_FIRST(&l->wakes)) != 0;
}
/* When that has somebody to wake; NEVER: there is nobody. */
uint64_t lane_wakes_due(const struct lane *l);
/* It ends: its worker is not to be woken any more. */
void lane_session_leave_wakes(struct lane *l, struct session *s);

#endif
