/* SPDX-License-Identifier: Apache-2.0 */
/* SENDs of large messages (docs/messages.md#large-messages): what goes is a header that says where
 * the receiver READs the payload. Private to agent/lane, and the lane thread's.
 *
 * Invariant: of a stream nothing but LARGES_TOGETHER large ones at the most goes behind a large one
 * before that is acknowledged; and one that was announced, and failed, completes when nobody can
 * READ it any more. */
#ifndef LANE_LARGE_SENDS_H
#define LANE_LARGE_SENDS_H

#include <assert.h>

#include "lane_state.h"
#include "message_state.h"
#include "schedule/wait.h"

enum { LARGES_TOGETHER = 8 };

/* Of a request with SPECIAL_LARGE, where small ones have their inline bytes. */
struct large_send {
    uint64_t bytes;
    uint64_t since_ns; /* when it was announced first, by the clock of patience; 0: it was not */
    uint32_t
        generation; /* of what was lent then (lending_state.h); 0: nothing that is to be gone */
    uint32_t parts;
    uint32_t status; /* enum ibv_wc_status, of one that the device has failed; else 0 */
    struct schema_sge part[SCHEMA_SEND_SGES];
};
static_assert(sizeof(struct large_send) <= SCHEMA_MAX_INLINE, "it is in their place");

/* w, a SEND that was checked, of so many pieces of the worker's, is a large one. */
void lane_large_send_begin(struct wr *w, const struct schema_sge *pieces, uint32_t count);
/* Whether w, which may go else, has what it needs: what it is READ from is lent. NOTHING; or
 * *reason: it fails. clock_ns: of patience. */
enum vqp_wait lane_large_send_may_post(struct lane *l, struct vqp *q, struct wr *w,
                                       uint64_t clock_ns, uint32_t *reason);
/* It goes: fills in what its header says. Returns how many bytes are behind that, at `behind`. */
uint32_t lane_large_send_write(struct vqp *q, struct wr *w, uint64_t clock_ns,
                               struct schema_message *m, void *behind);
/* So many are announced and not acknowledged before that number, which is the next one. */
static inline uint32_t large_sends_before(const struct vqp_messages *t, uint32_t number)
{
    const struct stream_out *out = &t->sender.out;
    const bool is_begun = (int32_t)(out->first - t->large_first) > 0; /* some are over */
    const int32_t count = (int32_t)(number - (is_begun ? out->first : t->large_first));
    return t->has_larges && count > 0 ? (uint32_t)count : 0;
}
/* Whether w, the next one of its stream, may go behind those. */
static inline bool large_sends_let(const struct vqp_messages *t, const struct wr *w)
{
    const uint32_t before = large_sends_before(t, w->vkey);
    return before == 0 || ((w->special & SPECIAL_LARGE) && before < LARGES_TOGETHER);
}
/* It goes, or some do that are not large. */
static inline void large_sends_note(struct vqp_messages *t, uint32_t number, bool is_large)
{
    if (is_large && !t->has_larges)
        t->large_first = number;
    t->has_larges = is_large;
}
/* Its receiver says for too long that it READs the first of them. One that says nothing is the
 * stream's concern. */
bool lane_large_send_is_late(const struct lane *l, const struct vqp_messages *t, uint64_t clock_ns);
/* Some of its stream are acknowledged: the time of the next one begins. */
static inline void large_sends_progress(struct vqp_messages *t, uint64_t clock_ns)
{
    t->first_ns = clock_ns;
}
/* Whether the first that is not acknowledged is a large one, which its receiver may READ. */
bool lane_large_send_is_first(const struct vqp_messages *t);
/* Its receiver says that its stream has ended: nobody READs it any more. */
void lane_large_send_let_go(struct vqp_messages *t);
/* w is to fail, and may be READ yet: what is lent goes, and it waits for that. */
bool lane_large_send_holds(struct lane *l, struct vqp *q, struct wr *w);
/* The device has failed it: so it completes, when it is not held any more. */
void lane_large_send_fail(struct wr *w, enum ibv_wc_status status);
/* w has failed at its device with that status, and is kept with those before it: those that may be
 * READ yet end before it does. Returns its own status then: that the peer is silent holds for the
 * first of them. */
enum ibv_wc_status lane_large_sends_fail_before(struct vqp_messages *t, const struct wr *w,
                                                enum ibv_wc_status status);
/* How one ends that stands on a queue pair in error. */
enum ibv_wc_status lane_large_send_status(const struct wr *w);
uint32_t lane_large_send_reason(const struct wr *w);
/* Its VQP is destroyed. */
void lane_large_send_end(struct lane *l, struct vqp *q);

static inline struct large_send *large_send_of(const struct wr *w)
{
    return (struct large_send *)(uintptr_t)w->inline_data;
}

#endif
