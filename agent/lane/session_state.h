/* SPDX-License-Identifier: Apache-2.0 */
/* What the lane keeps of a session. Private to agent/lane, and the lane thread's.
 * What is done with it is in request/. */
#ifndef LANE_SESSION_STATE_H
#define LANE_SESSION_STATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/lane.h"
#include "lane_state.h"
#include "lending_state.h"
#include "schedule/fair_queue.h"
#include "session_memory.h"

enum session_state {
    SESSION_NONE,
    SESSION_LIVE,
    SESSION_DOOMED, /* is to end when what is being done is done (session_doom) */
    SESSION_ENDING,
    SESSION_AWAY /* another lane has what it posts (lodgers.h) */
};

/* At what stands at the head of its ring, which says whether it is there (schema/phase.h); at the
 * tail, where the head may be in the middle of a stretch. */
enum session_look { LOOK_SLOT, LOOK_TAIL };

struct session {
    /* Requests in the lane, each of which may need a completion yet. Others read it at any time, so
     * that it is counted down to 0, and never cleared with what follows (session_fill()). */
    _Atomic uint32_t inflight;
    uint8_t state;       /* enum session_state */
    uint8_t active;      /* polled at each pass; else its doorbell flag is set */
    uint8_t dirty;       /* has completions that are not published: enum session_dirty */
    uint8_t exported;    /* peers had a key to its memory */
    uint8_t quarantined; /* its tenant is (quarantine.c) */
    uint8_t look;        /* enum session_look: how its ring is looked at next */
    uint8_t phased;      /* its worker has published by a phase: its library is not of before */
    uint32_t id;
    const struct fab_caps *caps; /* the device's */
    struct schema_session_rw *rw;
    struct schema_session_ro *ro;
    const uint8_t *ring;
    struct schema_cqe *cqes;
    uint32_t sq_mask, cq_mask, room_kept; /* with more in its ring its worker may want room */
    uint32_t cq_head; /* the worker's, as last read: its line is its own until room is short */
    uint32_t sq_head, cq_tail; /* private: what counts */
    uint32_t cq_published;     /* up to here: the ring's tail */
    uint32_t told_head;        /* sq_head, when it was looked at last whether its worker sleeps */
    uint32_t rung_tail;        /* the worker's, when it rang last */
    uint32_t shown_cpu;        /* the lane's, as its worker was told last */
    uint32_t told_armed;       /* rw->armed, when its completion channel was told last */
    uint32_t tenant_slot;
    struct active_tenant *of; /* its tenant */
    struct window *window;    /* its tenant's */
    uint32_t tenant, max_vqps, max_regions, regions_used, grants_used;
    uint32_t wrong_keys; /* of the budget, refilled since wrong_ns */
    uint64_t wrong_ns;
    uint64_t worked_ns;           /* when it last had something for the lane */
    uint64_t turn_ns, turn_bytes; /* the present pass, and what was posted in it */
    uint32_t vqps_high;           /* so many were ever bound */
    uint32_t vqp_places;          /* max_vqps, and behind those the lane's own (LANE_OWN_VQPS) */
    uint32_t arenas;
    struct lane_arena arena[LANE_SESSION_MAX_ARENAS];
    struct wr *free_wr;
    struct vqp *vqps;
    struct region *regions;
    struct grant *grants;
    /* But for withdrawals one control request at a time; nothing more is taken from the ring until
     * it is answered. LANE_CONTROL_WAITS: nor until its turn has come. */
    uint32_t control_op, control_tag;
    uint64_t control_ns; /* since when it waits or is being done */
    struct turn control_turn;
    struct lane_quota *quota;
    struct lane_memory *memory;
    uint32_t registered;  /* regions so far */
    uint64_t lent_places; /* bit i: withdrawals[i] waits for a lease */
    uint32_t fence_tag;   /* of the fence that is under way for withdrawals, or 0 */
    struct {
        struct region *place; /* NULL: no registration is awaited */
        uint32_t tag;
        struct schema_sq_desc asked;
        bool held;          /* until its arena is not among forced_arenas any more */
    } registering;          /* REG_MR that is not answered yet: one at a time */
    uint32_t forced_arenas; /* bit i: arena i is to have another registration (revoke.c) */
    uint32_t deregging;     /* registrations of fenced regions that are asked to go; */
    uint32_t own_withdrawn; /* of those that the worker gave back, those that are not yet */
    /* What the operator withdraws (revoke.c). */
    uint32_t revoke_tag; /* of a fence that is under way for it, or 0 */
    uint64_t revoke_ns;  /* when there is something to do; 0: at once */
    TAILQ_ENTRY(session) by_revoking;
    uint32_t reregistering; /* bit i: reregistration[i] is under way */
    struct {
        uint32_t tag, old_lkey; /* the command's; which is used no more */
        uint64_t old_iova;
        uint32_t fence_tag, stale; /* posted requests that still name it */
        uint32_t last, taken;      /* registered before; live until then */
    } reregistration[LANE_SESSION_MAX_ARENAS];
    struct lending lending;
    TAILQ_ENTRY(session) by_lending;
    /* Of large messages that the lane READs on its own VQP i. */
    struct {
        uint32_t count, bytes; /* bytes: of what is queued and out there */
    } own[LANE_OWN_VQPS];
    uint64_t due_ns; /* when the lease of what was withdrawn first is over; 0: look anew */
    TAILQ_ENTRY(session) by_active; /* of its tenant's, while it is polled */
    TAILQ_ENTRY(session) by_due;
    TAILQ_ENTRY(session) by_stalled; /* of its tenant's */
    STAILQ_ENTRY(session) by_dirty;
    TAILQ_ENTRY(session) by_wake; /* of its tenant's, while its worker is to be woken */
    struct session *next_doomed;
    uint32_t doomed; /* why: enum schema_reason */
    /* ending.c: enum end_stage, and the next VQP or region there; why it ends. */
    uint32_t end_at, ends_for;
    uint8_t end, ends_by_fault, in_endings;
    struct wr_queue flushing; /* of VQPs that were destroyed */
    TAILQ_ENTRY(session) by_ending;
    struct lookup_group *lookup_group; /* with whom its CONNECT waits for a lookup; or NULL */
    TAILQ_ENTRY(session) by_lookup;
    const struct vqp *waits_for; /* whose requests its next one, a BIND, is behind; or NULL */
    /* In which of the lists it is; stalled: it sleeps with requests that have no room for their
     * completions, or wait behind others. */
    uint8_t in_due, in_revoking, stalled, in_wakes;
    uint8_t *touch[LANE_SESSION_MAX_ARENAS]; /* of each arena; NULL: nowhere */
    /* lodgers.c. It is another lane's; nothing more is taken of it, until nothing of it is out, or
     * until leave_ns; why it is to end. */
    uint8_t lodger, leaves;
    uint32_t lodger_fault;
    uint64_t leave_ns;
};

/* Its own sessions, and behind them other lanes'. */
static inline uint32_t lane_session_places(const struct lane *l)
{
    return l->config.max_sessions + l->config.lodgers;
}

static inline void session_count(_Atomic uint32_t *count, int more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + (uint32_t)more,
                          memory_order_relaxed);
}

static inline void session_count_posted(struct session_shown *shown, uint32_t n, uint64_t bytes)
{
    atomic_store_explicit(&shown->operations,
                          atomic_load_explicit(&shown->operations, memory_order_relaxed) + n,
                          memory_order_relaxed);
    atomic_store_explicit(&shown->bytes,
                          atomic_load_explicit(&shown->bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

/* All of it but what is never cleared. */
static inline void session_fill(struct session *s, const struct session *with)
{
    const size_t from = offsetof(struct session, state);
    memcpy((char *)s + from, (const char *)with + from, sizeof *s - from);
}

static inline uint32_t session_inflight(const struct session *s)
{
    return atomic_load_explicit(&s->inflight, memory_order_relaxed);
}

/* Until control operation `op` (0: none is under way) has its answer nothing more is taken. */
static inline void session_hold(struct session *s, uint32_t op)
{
    const enum schema_wait why = op == LANE_CONTROL_WAITS  ? SCHEMA_WAIT_CONTROL
                                 : op == SCHEMA_OP_CONNECT ? SCHEMA_WAIT_CONNECT
                                 : op == SCHEMA_OP_REG_MR  ? SCHEMA_WAIT_REGISTER
                                 : op == SCHEMA_OP_LOOKUP  ? SCHEMA_WAIT_LOOKUP
                                                           : SCHEMA_WAIT_NOTHING;
    s->control_op = op;
    atomic_store_explicit(&s->memory->shown.held, why, memory_order_relaxed);
}

/* Its end is queued: nothing is taken from it or posted for it from now on. */
static inline void session_doom(struct lane *l, struct session *s, uint32_t reason)
{
    if (s->state != SESSION_LIVE)
        return;
    s->state = SESSION_DOOMED;
    s->doomed = reason;
    s->next_doomed = l->doomed;
    l->doomed = s;
}

#endif
