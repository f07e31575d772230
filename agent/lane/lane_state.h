/* SPDX-License-Identifier: Apache-2.0 */
/* A lane, as its files share it. Private to agent/lane, and its thread's. A field is the concern of
 * the file that its comment names, and of its folder. */
#ifndef LANE_STATE_H
#define LANE_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "agent/lane.h"
#include "base/spsc.h"
#include "batch_state.h"
#include "handover_state.h"
#include "lane_counters.h"
#include "request/control_ops.h"
#include "request/region.h"
#include "resolve/evict.h"
#include "resolve/flow.h"
#include "resolve/lookup.h"
#include "resolve/peer_room.h"
#include "resolve/prove.h"
#include "resolve/quarantined_flows.h"
#include "schedule/window.h"
#include "transmit/merge.h"
#include "transmit/narrow.h"
#include "transmit/own_read.h"
#include "transmit/quarantine.h"
#include "transmit/wr.h"

struct active_tenant;
struct cached;
struct ending_tenant;
struct inflight_check_all;
struct vqp;

enum {
    LANE_OWN_WRS = 256,
    LANE_QUARANTINE_DCI = LANE_MAX_DCIS, /* as an index into lane->dci */
    LANE_BATCH = 32,                     /* requests of one session in a pass */
    LANE_TAKEN = 512,                    /* in a pass: of a tenant that is alone, or one of each */
    LANE_TAKEN_SHARED = 16,              /* in a pass: of all tenants, where there are several */
    LANE_REFRESHES = 16,                 /* of a pass; more of them have time until another */
    OVERDUE_LOOKS = 32, /* for what is out too long, in the time that a request may take */
    LANE_DEREGS = 4,    /* of one session's revoked regions at a time, beside its worker's own */
    LANE_CONTROL_WAITS = 0x100 /* beside the operations of a ring */
};
#define LANE_NEVER UINT64_MAX
TAILQ_HEAD(phys_list, physical_qp);
TAILQ_HEAD(active_list, active_tenant);
TAILQ_HEAD(ending_list, ending_tenant);
TAILQ_HEAD(session_list, session);

struct lane {
    struct lane_config config;
    struct lane_device_objects res;
    uint64_t now_ns, gone_ns; /* and when a flow went last */
    uint64_t lease_now_ns;    /* the same for leases: NEVER while the clock cannot be trusted, so
                               * that each record is looked at closely */
    uint64_t lease_doubt;     /* what makes it so, or 0 */
    uint32_t did;             /* in this pass */
    /* rounds.c: the pass in which these count; requests of VQPs that had waited, and after how many
     * one of each goes; looks at such VQPs that may follow. */
    uint64_t looks_pass;
    uint32_t went, went_most, looks_left;
    uint8_t changed;            /* something happened that may let the blocked go on */
    uint8_t starved;            /* one of them waits for a queue pair that works */
    uint8_t wanting;            /* one of them waits for something else that the lane has few of */
    _Atomic uint8_t windows_on; /* a limit is set somewhere; else nothing is counted */
    uint64_t retry_ns, park_ns; /* when the blocked, and some of the parked, are tried anyway */
    uint64_t housekeeping_ns, await_due_ns; /* for what a queue pair that broke does not return */
    uint64_t look_due_ns;       /* for what is out too long; NEVER: the device keeps deadlines */
    uint64_t trust_ns, away_ns; /* nobody is suspect before: the lane itself was away, so long */
    struct session *sessions;
    /* active.c: of each tenant; those with sessions that are polled, in turn, how many, and how
     * many sessions. wakes, stalled: those with workers that are to be woken; with sessions that
     * sleep without room for their completions. */
    struct active_tenant *actives;
    struct active_list active_tenants, wakes, stalled;
    uint32_t active_tenant_count, active_count;
    /* intake.c: how many requests this pass lets go from queues; whether one of several active
     * tenants is sparse; how many turns busy ones have had beside such a one. */
    uint32_t lets_go, batch; /* batch: of each session in a pass, of one tenant alone */
    uint8_t has_sparse;
    uint64_t busy_turns;
    STAILQ_HEAD(, session) dirty; /* to publish */
    struct handover handover;
    struct session *doomed; /* to end when what is being done is done */
    /* With a lease or a drain to wait for; with regions that the operator withdraws. */
    struct session_list due, revoking;
    uint32_t due_count, revoking_count;
    struct ending_tenant *endings; /* of each tenant; those with something to be done, in turn */
    struct ending_list ending_tenants;
    /* control_ops.c: tenants with control operations, in turn; those that wait for their budget;
     * whose turn it is, while it has it. */
    struct fair_queue controls;
    struct control_tenant *control_tenants;
    struct control_list paused;
    struct session *control_session;
    uint32_t control_units;  /* of the operation that is being done: what it costs; or 0 */
    uint32_t control_turns;  /* that are left in the pass of the next number */
    uint32_t control_in_row; /* operations that control_session has had in its turn */
    uint64_t control_pass, control_lookups; /* READs of metaservers before that operation */
    uint64_t seed;                          /* of hashes of what workers choose */
    struct vqp_list blocked;                /* VQPs that wait for something that others have */
    struct vqp_list served, batching; /* that have had something in this round; with batches */
    uint64_t round;                   /* the present one, from 1 */
    uint32_t round_left;              /* VQPs that it is still to look at */
    struct flow_list news, parking;   /* flows: something happened; with parked VQPs */
    uint32_t waiting, news_count;     /* VQPs in any of these lists; flows with news */
    struct peer *peers;
    struct peer_room peer_room;
    struct flow *flows;
    struct cached *cache;
    uint64_t cache_sets; /* the bits of a hash that say where its set begins (region_cache.c) */
    struct cached *refresh[LANE_REFRESHES]; /* READ again after what workers want in this pass */
    uint32_t refreshes, *tenant_cached;     /* tenant_cached: how many of cache each tenant has */
    struct lookups lookups;
    struct physical_qp *phys, *chained;
    struct merges merges;
    uint32_t phys_room, system_phys, spare_count, phys_free_count, *phys_free;
    struct evictor evictor, quarantine_evictor;
    /* flow.c: those that were ever used, those of them that are free, where to look for an idle
     * one, where to look for one that its peer does not name; and how many tenants have. */
    _Atomic uint32_t flows_high;
    struct flow *free_flow;
    uint32_t flow_hand, flow_broom, *tenant_flows, flow_tenants;
    uint32_t paths_asked;                                          /* and not answered */
    uint32_t dci[LANE_MAX_DCIS + 1], spare[2 * LANE_MAX_DCIS + 1]; /* indices of phys */
    struct narrow narrow;
    /* quarantine.c: what is held against each tenant, and all; how often each has rested; how many
     * are in quarantine, and rest; how many breaks had no name. */
    struct culprit *culprits, together;
    _Atomic uint64_t *rests;
    uint32_t tenants_quarantined, tenants_resting, unnamed_breaks;
    uint64_t quarantine_wait_ns; /* since when those wait for a DCI of their own; 0: they do not */
    uint8_t has_quarantine_dci, quarantine_untold;
    uint8_t rejoins; /* some of the culprits are marked so, or have flows that are still to look */
    struct quarantined_flows quarantined;
    uint32_t links, quarantine_links; /* rc: made or asked for; of tenants in quarantine */
    struct wr own[LANE_OWN_WRS], *free_own;
    uint8_t silenced; /* a queue pair may be silent (lane_physical_qp_is_silent()) */
    struct returned returned;
    struct flow *lost_links; /* whose connections broke: likewise */
    struct scratch scratch;
    struct batch_pool batches;
    struct messages *messages;                      /* or NULL */
    uint64_t messages_due;                          /* there is something to do for messages */
    uint32_t *small_free, small_count, metaservers; /* small.c: places of SCHEMA_MAX_INLINE */
    struct lane_metaserver metaserver[LANE_MAX_METASERVERS];
    struct physical_qp *metaserver_phys[LANE_MAX_METASERVERS]; /* NULL: it broke */
    struct fab_qp *metaserver_lost[LANE_MAX_METASERVERS];      /* those, which are given back */
    struct silence silence[LANE_MAX_METASERVERS];
    struct proof proof;
    struct hybrid *hybrid; /* or NULL */
    /* Commands that are not carried out whole, the next flow of theirs, and what they have lost;
     * fences that were asked for so far. */
    uint32_t readdressing, readdress_hand, readdress_lost, fences;
    struct mr_shares shares; /* of max_mrs */
    struct base_spsc *commands, *events;
    int (*random_fill)(void *user, void *bytes, size_t n);
    void *random_user, *wake_user, *tell_user;
    uint64_t (*wake)(void *user, _Atomic uint32_t *word);
    void (*tell)(void *user, uint32_t session);
    struct window *device_window, *tenant_windows, *flow_windows;
    struct window *rooms;              /* of phys: VQPs that wait for room there (room.c) */
    struct phys_list crowd;            /* queue pairs where somebody waits for room */
    uint32_t crowded, windows_waiting; /* how many in `crowd`; VQPs, at all windows */
    struct window_list due_windows;    /* where somebody may go on */
    struct window *turn_window;        /* only in a round: whose turn it is there */
    struct wr *turn_wr;
    /* Only in a round: whose turn it is, where, and for how many requests more. */
    struct vqp *turn_vqp;
    struct physical_qp *turn_room;
    uint32_t turn_left;
    uint64_t most_bytes;         /* of a queue pair */
    struct tenant_turn *turns;   /* of all windows */
    struct window_queue *queues; /* of destinations and rooms */
    struct window_queue_list idle_queues;
    void *raw_windows[4];
    struct window_limit destination_limit; /* of each */
    struct own_window *own_windows;        /* of some alone */
    uint32_t own_window_count;
    struct window_search_all search; /* window_find.c */
    /* inflight_timeout.c: the looks at each part of phys, and how far each of phys had posted then;
     * which part is next. */
    struct inflight_check_all *looks;
    uint32_t *seen[OVERDUE_LOOKS];
    uint32_t look_parts, look_part, looked_parts; /* the last: before that one, looked at last */
    struct lane_counters counters;
};

static inline bool lane_is_shared(const struct lane *l)
{
    return l->active_tenant_count > 1;
}
static inline uint32_t flows_ever(const struct lane *l)
{
    return atomic_load_explicit(&l->flows_high, memory_order_relaxed);
}
#endif
