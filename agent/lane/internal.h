/* SPDX-License-Identifier: Apache-2.0 */
/* Private to agent/lane: a lane's own structs, and what its files call of each other. All of it is
 * the lane thread's. */
#ifndef LANE_INTERNAL_H
#define LANE_INTERNAL_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "agent/lane.h"
#include "transmit/quarantine.h"
#include "base/spsc.h"
#include "request/control_ops.h"
#include "request/check.h"
#include "resolve/evict.h"
#include "resolve/flow.h"
#include "resolve/lookup.h"
#include "resolve/prove.h"
#include "request/region.h"
#include "schema/peers.h"
#include "transmit/operation.h"
#include "transmit/small.h"
#include "schedule/window.h"

enum {
    LANE_OWN_WRS = 256,
    LANE_SPARES = 2 * LANE_MAX_DCIS + 1,
    LANE_QUARANTINE_DCI = LANE_MAX_DCIS, /* as an index into lane->dci */
    LANE_APART_BUCKETS = 64,
    LANE_BATCH = 32,    /* requests of one session in a pass, */
    LANE_TAKEN = 512,   /* of all, or one of each */
    LANE_RENEWALS = 16, /* of a pass; more of them have time until another */
    OVERDUE_LOOKS = 32, /* for what is out too long, in the time that a request may take */
    LANE_DEREGS = 4,    /* of one session's revoked regions at a time, beside its worker's own */
    LANE_CONTROL_WAITS = 0x100 /* beside the operations of a ring */
};
#define LANE_NEVER UINT64_MAX
enum wr_kind { WR_WORKER, WR_ENDPOINT_READ, WR_MR_READ, WR_PROOF_READ };

/* A request that the lane has taken: a worker's, or its own READ of a table. Copied once from the
 * ring, it holds all it takes to post it again. */
struct wr {
    struct fab_wr fab;
    struct ibv_sge sge[SCHEMA_MAX_SGE];
    struct wr *next;         /* in a VQP's queue, or a free list */
    struct session *session; /* WR_WORKER */
    struct flow *flow;       /* whom it goes to, while posted; NULL: a metaserver */
    const struct operation *op;
    uint64_t wr_id;       /* the worker's */
    uint64_t remote_addr; /* as the region's owner names it */
    uint64_t length;
    uint32_t vkey;
    uint16_t vqp, vqp_gen;
    uint16_t stale; /* bit i: posted with the key of arena i's former registration, which goes */
    uint8_t kind, signaled; /* kind: enum wr_kind */
    uint8_t refused; /* enum schema_reason: completes with an error when all before it are over */
    uint8_t special; /* of enum special */
    uint8_t ended;   /* enum ibv_wc_status, of an error: its queue pair's others are awaited, or it
                      * has returned so */
    uint8_t again;   /* it has returned, and nothing of it was carried out: it goes again; `ended`
                      * says FLUSH_ERR */
    uint32_t index;  /* own READs: of the lookup or the cached region; SPECIAL_COPY: its place */
    uint8_t inline_data[SCHEMA_MAX_INLINE];
};

struct wr_queue {
    struct wr *head, *tail;
    uint32_t count;
};

/* Requests that queue pairs have given back, the first one first (request/returns.h). */
struct returned {
    struct wr *first, **last;
};

enum vqp_state { VQP_FREE, VQP_CONNECTED, VQP_ERROR };

/* A virtual queue pair: requests go to the fabric in order, from `queue`. */
struct vqp {
    uint8_t state;  /* enum vqp_state, moved by vqp_move() alone */
    uint8_t lost;   /* only within break_phys() */
    uint8_t denied; /* enum schema_reason: why the last bind of a free one failed */
    uint8_t begun;  /* something was posted since it was bound */
    uint8_t in;     /* how many windows its head is in, while that waits at the next */
    uint16_t gen;
    uint32_t index;
    uint32_t peer_slot, peer_gen;
    uint32_t outstanding; /* posted, not completed */
    struct flow *flow;    /* its peer's while that says so too (flow_take) */
    struct session *session;
    struct wr_queue queue;
    struct vqp_list *waits; /* where its head waits: the lane's list, or that of its flow */
    TAILQ_ENTRY(vqp) waiting;
    struct window *window;    /* where its head waits, instead */
    struct physical_qp *room; /* where its head waits for room, instead */
    struct turn turn;         /* at either */
    uint64_t wait_ns;         /* since when */
    uint64_t path_ns;         /* since when its head waits for a path; 0: it does not */
    uint64_t wants;           /* bytes */
    uint64_t flowless_ns;     /* since when its head waits for a flow; 0: it does not */
};

/* Made by the control side, which reads the leases. */
struct lane_memory {
    struct wr *wrs, *free_wr;
    struct vqp *vqps;
    struct region *regions;
    struct grant *grants;
    struct withdrawal withdrawals[SCHEMA_REPLIES];
    _Atomic uint32_t regions_high; /* so many places were ever used */
    uint64_t *regions_taken;       /* bit i: place i is not free */
    /* Places of regions by key, and of grants by what they are: the first of each bucket, and the
     * next of each place, all + 1. */
    uint32_t region_mask, grant_mask;
    uint32_t *region_first, *region_next, *grant_first, *grant_next;
};

struct grant { /* an imported token */
    uint32_t vkey;
    uint8_t secret[16];
};

enum session_state { SESSION_NONE, SESSION_LIVE, SESSION_ENDING };

struct session {
    uint8_t state;       /* enum session_state */
    uint8_t active;      /* polled at each pass; else its doorbell flag is set */
    uint8_t dirty;       /* has completions that are not published */
    uint8_t exported;    /* peers had a key to its memory */
    uint8_t quarantined; /* its tenant is (quarantine.c) */
    uint32_t id;
    const struct fab_caps *caps; /* the device's */
    struct schema_session_rw *rw;
    struct schema_session_ro *ro;
    const uint8_t *ring;
    struct schema_cqe *cqes;
    uint32_t sq_mask, cq_mask;
    uint32_t cq_head; /* the worker's, as last read: its line is its own until room is short */
    uint32_t sq_head, cq_tail; /* private: what counts */
    uint32_t cq_reserved;      /* completions that requests in the lane may still need */
    uint32_t inflight, max_inflight;
    uint32_t tenant_slot;
    struct window *window; /* its tenant's */
    uint32_t tenant, max_vqps, max_regions, regions_used, grants_used;
    uint32_t wrong_keys; /* of the budget, refilled since wrong_ns */
    uint64_t wrong_ns;
    uint64_t worked_ns;           /* when it last had something for the lane */
    uint64_t turn_ns, turn_bytes; /* the present pass, and what was posted in it */
    uint32_t arenas;
    struct lane_arena arena[LANE_SESSION_MAX_ARENAS];
    struct wr *free_wr;
    struct vqp *vqps;
    struct region *regions;
    struct grant *grants;
    /* But for withdrawals one control request at a time; nothing more is taken from the ring until
     * it is answered. LANE_CONTROL_WAITS: nor until its turn has come. */
    uint32_t control_op, control_tag;
    struct turn control_turn;
    struct lane_quota *quota;
    struct lane_memory *memory;
    uint32_t registered;  /* regions so far */
    uint32_t lent_places; /* bit i: withdrawals[i] waits for a lease */
    uint32_t fence_tag;   /* of the fence that is under way for withdrawals, or 0 */
    struct {
        struct region *place; /* NULL: no registration is awaited */
        uint32_t tag;
        struct schema_sq_desc asked;
        bool held;          /* until its arena is not among forced_arenas any more */
    } registering;          /* REG_MR that is not answered yet: one at a time */
    uint32_t forced_arenas; /* bit i: arena i is to have another registration (revoke.c) */
    uint32_t deregging;     /* registrations of fenced regions that are asked to go */
    /* What the operator withdraws (revoke.c). */
    uint32_t revoke_tag; /* of a fence that is under way for it, or 0 */
    uint64_t revoke_ns;  /* when there is something to do; 0: at once */
    struct session *next_revoking;
    uint32_t renewing; /* bit i: arena i got another registration, which is under way: */
    struct {
        uint32_t tag, old_lkey; /* the command's; which is used no more */
        uint64_t old_iova;
        uint32_t fence_tag, stale; /* posted requests that still name it */
        uint32_t last, taken;      /* registered before; live until then */
    } renewal[LANE_SESSION_MAX_ARENAS];
    uint64_t due_ns; /* when the lease of what was withdrawn first is over; 0: look anew */
    struct session *next_dirty, *next_due;
    LIST_ENTRY(session) by_lookup; /* that its CONNECT waits for; le_prev NULL: for none */
    uint8_t in_due, in_revoking,
        stalled; /* stalled: asleep with requests that have no room for their completions */
};

/* What the lane knows of an endpoint beside what workers see. */
struct peer {
    uint64_t dc_key, mr_addr, expires_ns;
    struct flow *flow;
    uint32_t dctn, mr_rkey, ud_qpn, ud_qkey;
    uint32_t first_gen; /* of its slot, since it is this endpoint's: one more with each life */
    uint32_t renew_us;  /* so long before it expires whoever uses it has it READ again, and goes on
                           meanwhile */
    uint16_t lid;
    uint8_t mr_log2, used, refreshing;
    uint8_t mtu; /* enum ibv_mtu, of its DC target */
};
static_assert(sizeof(struct peer) == 64, "one cache line for each of many peers");

enum cached_state { CACHED_FREE, CACHED_VALID, CACHED_UNKNOWN };

/* A remote region, by (peer, virtual key). Valid ones may be posted under until post_until_ns. */
struct cached {
    uint8_t state;   /* enum cached_state */
    uint8_t reading; /* the owner's record is being READ: anew, or to renew a valid one */
    uint8_t guessed; /* what was READ last has cost a session of its budget */
    uint8_t tries;
    uint32_t peer_slot, peer_gen;
    uint32_t scratch;
    uint64_t read_ns, post_until_ns;
    uint64_t sure_until_ns; /* until then nothing of this has to be looked at: it is valid, and
                               whoever uses it does not have it READ again yet; else 0 */
    struct fab_key key;     /* of what is posted under it; without a time when the device does
                                     not look at that */
    struct schema_mr_record record;
};

/* Something has been out for too long, and the device was told; the control side wants it anew. */
enum overdue { OVERDUE_NOT, OVERDUE_ENDED, OVERDUE_RENEWED };
enum broken { BROKEN_NOT, BROKEN, BROKEN_FAILING /* not all that is out is back yet */ };

/* A physical queue pair and what is posted on it, oldest first; wr_id of a post is (number << 32 |
 * index). With rc its place is used again for another queue pair; head and tail go on, so that a
 * late completion of the former is told apart. */
struct physical_qp {
    struct fab_qp *qp; /* NULL: the place is free */
    struct wr **ring;  /* sq_depth, a power of two */
    uint32_t head, tail;
    struct fab_wr *chain, *chain_tail; /* linked in this pass, not handed over yet */
    struct physical_qp *next_chained;
    struct flow *flow;       /* rc: whose connection it is; NULL: a metaserver's */
    uint8_t broken, chained; /* broken: enum broken */
    uint8_t overdue;         /* enum overdue: its end was asked for, nothing more is posted */
    uint8_t refusals;        /* of a first request for want of room, with nothing else out */
    uint32_t failing_us;     /* BROKEN_FAILING: since when */
    uint64_t bytes;          /* posted */
    uint64_t pass_bytes;     /* a worker's request goes up to here without another look, */
    uint32_t pass_ops; /* and up to here; 0: while somebody waits for room, or the depth was set
                          (room.c) */
    uint32_t tenants;  /* that wait */
    uint64_t shared_until_ns;          /* two waited not long ago: until then, and until so much */
    uint32_t shared_until;             /* was posted */
    uint32_t depth;                    /* that may be out: sq_depth, and less while `alone` */
    TAILQ_ENTRY(physical_qp) by_crowd; /* in the lane's list while somebody waits */
    uint32_t alone;     /* so many more are posted one at a time (physical_qp.c, "nameless") */
    uint32_t alone_hit; /* quarantine_who_is_hit(), by the error that had no name */
};
static_assert(sizeof(struct physical_qp) == 128, "a shift to find it");
TAILQ_HEAD(phys_list, physical_qp);

/* When there was a look, last at `last`. */
struct inflight_check_all {
    uint64_t ns[OVERDUE_LOOKS];
    uint32_t last;
};

struct lane_counters {
    _Atomic uint64_t passes, sleeps, posted, completed, failed, refused, doorbells, endpoint_reads,
        mr_reads, mr_renewals, lookups_failed, lookups_compared, shares_compared, proofs,
        proofs_failed, wrong_keys, control_pauses, qp_broken, qp_overdue, posts_refused, reposted,
        retried, sessions, vqps, peers, flows, inflight, mrs, suspects, links, paths_failed,
        links_evicted, quarantined, tenants_quarantined, tenants_resting;
    _Atomic uint64_t window_waits[LANE_WINDOW_SCOPES], window_waited_ns[LANE_WINDOW_SCOPES];
};
#define COUNT(lane, what, n)                                                                       \
    atomic_store_explicit(&(lane)->counters.what,                                                  \
                          atomic_load_explicit(&(lane)->counters.what, memory_order_relaxed) +     \
                              (uint64_t)(n),                                                       \
                          memory_order_relaxed)

struct lane {
    struct lane_config config;
    struct lane_device_objects res;
    uint64_t now_ns;
    uint64_t lease_now_ns; /* the same for leases: NEVER while the clock cannot be trusted, so
                            * that each record is looked at closely */
    uint64_t lease_doubt;  /* what makes it so, or 0 */
    uint32_t did, went;    /* in this pass; requests of those who waited, at: */
    uint64_t went_ns;
    uint8_t changed;            /* something happened that may let the blocked go on */
    uint8_t starved;            /* one of them waits for a queue pair that works */
    uint8_t wanting;            /* one of them waits for something else that the lane has few of */
    _Atomic uint8_t windows_on; /* a limit is set somewhere; else nothing is counted */
    uint64_t retry_ns;          /* when the blocked are tried again anyway */
    uint64_t park_ns;           /* and when some of the parked are */
    uint64_t housekeeping_ns;
    uint64_t look_due_ns;  /* for what is out too long; NEVER: the device keeps deadlines */
    uint64_t await_due_ns; /* for what does not come back from a queue pair that broke */
    uint64_t trust_ns;     /* nobody is suspect before: the lane itself was away */
    struct session *sessions;
    struct session **active;
    uint32_t active_count, stalled_count, batch; /* batch: of each, in a pass */
    struct session *dirty, *due; /* to publish; with a lease or a drain to wait for */
    struct session *revoking;    /* with regions that the operator withdraws */
    /* control_ops.c: tenants with control operations, in turn; those that wait for their budget;
     * whose turn it is, within controls_go_on(). */
    struct fair_queue controls;
    struct control_tenant *control_tenants;
    struct control_list paused;
    struct session *control_session;
    uint32_t control_units;       /* of the operation that is being done: what it costs */
    uint64_t seed;                /* of hashes of what workers choose */
    struct vqp_list blocked;      /* who waits for something that others have */
    struct vqp_list served;       /* those that have had something in this round, */
    uint32_t round_left;          /* in which so many are still to be looked at */
    struct flow_list news;        /* flows: something happened to them */
    struct flow_list parking;     /* flows with parked VQPs */
    uint32_t waiting, news_count; /* VQPs in any of these lists; flows with news */
    struct peer *peers;
    struct flow *flows;
    struct cached *cache;
    uint64_t cache_sets; /* the bits of a hash that say where its set begins (region_cache.c) */
    struct cached *renewal[LANE_RENEWALS]; /* READ again after what workers want in this pass */
    uint32_t renewals;
    struct lookups lookups;
    struct physical_qp *phys, *chained;
    uint32_t phys_room, system_phys, spare_count, peer_hand, phys_free_count, *phys_free;
    struct evictor evictor, quarantine_evictor;
    /* flow.c: those that were ever used, those of them that are free, where to look for an idle
     * one, where to look for one that its peer does not name; and how many tenants have. */
    _Atomic uint32_t flows_high;
    struct flow *free_flow;
    uint32_t flow_hand, flow_broom, *tenant_flows, flow_tenants;
    uint32_t paths_asked;                                /* and not answered */
    uint32_t dci[LANE_MAX_DCIS + 1], spare[LANE_SPARES]; /* indices of phys */
    /* quarantine.c: what is held against each tenant, and all; how often each has rested; how many
     * are apart, and rest; their flows, by endpoint; how many breaks had no name. */
    struct culprit *culprits, together;
    _Atomic uint64_t *rests;
    uint32_t tenants_quarantined, tenants_resting, flows_quarantined, unnamed_breaks;
    uint64_t quarantine_wait_ns; /* since when those wait for a DCI of their own; 0: they do not */
    uint8_t has_quarantine_dci, quarantine_untold;
    uint8_t rejoins; /* some of the culprits are marked so; until the next returns_take() */
    struct flow *quarantine_flows[LANE_APART_BUCKETS];
    uint32_t links, quarantine_links; /* rc: made or asked for; of who is apart */
    struct wr own[LANE_OWN_WRS], *free_own;
    struct returned returned;
    struct flow *lost_links; /* whose connections broke: likewise */
    uint32_t *scratch_free, scratch_count;
    uint32_t *small_free, small_count; /* small.c: places, in units of SCHEMA_MAX_INLINE */
    uint32_t metaservers;
    struct lane_metaserver metaserver[LANE_MAX_METASERVERS];
    struct physical_qp *metaserver_phys[LANE_MAX_METASERVERS]; /* NULL: it broke */
    struct fab_qp *metaserver_lost[LANE_MAX_METASERVERS];      /* those, which are given back */
    struct silence silence[LANE_MAX_METASERVERS];
    struct proof proof;
    /* Commands that are not carried out whole, the next flow of theirs, and what they have lost. */
    uint32_t readdressing, readdress_hand, readdress_lost;
    uint32_t fences;         /* asked for so far */
    struct mr_shares shares; /* of max_mrs */
    struct base_spsc *commands, *events;
    int (*random_fill)(void *user, void *bytes, size_t n);
    void *random_user;
    void (*wake)(void *user, _Atomic uint32_t *word);
    void *wake_user;
    struct window *device_window, *tenant_windows, *flow_windows;
    struct window *rooms;           /* of phys: who waits for room there (room.c) */
    struct phys_list crowd;         /* those where somebody does */
    uint32_t windows_waiting;       /* VQPs, at all of them */
    struct window_list due_windows; /* where somebody may go on */
    struct window *turn_window;     /* only within windows_go_on(): whose turn it is there */
    struct wr *turn_wr;
    /* Only within rooms_go_on(): whose turn it is, where, and for how many requests more. */
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
    /* inflight_timeout.c: the looks at each part of phys, and how far each of phys had posted then;
     * which part is next. */
    struct inflight_check_all *looks;
    uint32_t *seen[OVERDUE_LOOKS];
    uint32_t look_parts, look_part;
    uint32_t looked_parts; /* so many before that one were looked at last */
    struct lane_counters counters;
};

/* Of failing_us. */
static inline uint32_t physical_qp_us(uint64_t ns)
{
    return (uint32_t)(ns / 1000);
}

/* So many may be out from now on. What goes next looks at what room there is (schedule/room.c). */
static inline void physical_qp_set_depth(struct physical_qp *p, uint32_t depth)
{
    p->depth = depth;
    p->pass_ops = 0;
}

static inline struct wr **ring_at(const struct lane *l, const struct physical_qp *p, uint32_t index)
{
    return &p->ring[index & (l->config.sq_depth - 1)];
}

static inline struct wr *physical_qp_take_oldest(const struct lane *l, struct physical_qp *p)
{
    struct wr *w = *ring_at(l, p, p->head++);
    p->bytes -= w->length;
    return w;
}

/* How many places for flows were ever used. */
static inline uint32_t flows_ever(const struct lane *l)
{
    return atomic_load_explicit(&l->flows_high, memory_order_relaxed);
}

/* Of a worker's request, or NULL. */
static inline struct vqp *vqp_of(const struct wr *w)
{
    return w->kind == WR_WORKER ? &w->session->vqps[w->vqp] : NULL;
}

/* Where what goes to it is posted. With rc only while it has a path. */
static inline struct physical_qp *flow_phys(struct lane *l, const struct flow *f)
{
    return l->config.rc ? f->link : &l->phys[l->dci[f->dci]];
}

static inline bool windows_enter(struct lane *l, struct vqp *q, struct wr *w)
{
    struct window *t = q->session->window, *f = q->flow->window, *d = l->device_window;
    if (!WINDOW_GET(l->windows_on))
        return true;
    if (q->in != 0 || !window_passes(t, w->length) || !window_passes(f, w->length) ||
        !window_passes(d, w->length))
        return windows_enter_slowly(l, q, w);
    window_count(t, w->length);
    window_count(f, w->length);
    window_count(d, w->length);
    return true;
}

/* w, posted before, is over or waits anew. */
static inline void windows_leave(struct lane *l, const struct wr *w)
{
    if (!WINDOW_GET(l->windows_on))
        return;
    window_uncount(w->session->window, w->length);
    window_uncount(w->flow->window, w->length);
    window_uncount(l->device_window, w->length);
    if (l->windows_waiting > 0)
        windows_left(l, w);
}

static inline void queue_push(struct wr_queue *q, struct wr *w)
{
    w->next = NULL;
    q->count++;
    if (q->head == NULL)
        q->head = w;
    else
        q->tail->next = w;
    q->tail = w;
}

static inline void queue_push_front(struct wr_queue *q, struct wr *w)
{
    w->next = q->head;
    q->count++;
    q->head = w;
    if (q->tail == NULL || w->next == NULL)
        q->tail = w;
}

static inline struct wr *queue_pop(struct wr_queue *q)
{
    struct wr *w = q->head;
    q->head = w->next;
    q->count--;
    if (q->head == NULL)
        q->tail = NULL;
    return w;
}

static inline void returned_put(struct lane *l, struct wr *w)
{
    w->next = NULL;
    *l->returned.last = w;
    l->returned.last = &w->next;
}

static inline struct wr *returned_take_all(struct lane *l)
{
    struct wr *first = l->returned.first;
    l->returned = (struct returned){.last = &l->returned.first};
    return first;
}

/* session.c */
int session_add(struct lane *l, const struct lane_session *add);
/* Nothing more is taken from its rings; SESSION_OVER follows. fault: the control side is told. */
void session_end(struct lane *l, struct session *s, uint32_t reason, bool fault);
uint32_t session_poll(struct lane *l, struct session *s);
/* Stops polling it, unless there is something to take: then false. */
bool session_sleep(struct lane *l, struct session *s);
void session_activate(struct lane *l, struct session *s);
/* What is taken of each in a pass, so that those of many do not keep others' waiting: after more
 * are active, and now and then. */
void session_count_batch(struct lane *l);
void session_complete(struct lane *l, struct wr *w, enum ibv_wc_status status, uint32_t vendor_err);
/* To the control request that nothing behind is taken before. */
void session_reply(struct lane *l, struct session *s, int status, uint32_t reason, uint64_t a,
                   uint64_t b, const uint8_t *secret);
/* To another one. */
void session_answer(struct lane *l, struct session *s, uint32_t tag, int status);
/* A worker that sleeps is woken at the end of the pass. */
void session_tell(struct lane *l, struct session *s);
/* Its leases are looked at in the next pass, after what was withdrawn in this one. */
void session_await(struct lane *l, struct session *s);
void sessions_publish(struct lane *l);
void sessions_due(struct lane *l);
/* Registers the region that a REG_MR asks for, and answers, now or later. */
void session_register(struct lane *l, struct session *s, const struct schema_sq_desc *d);
void session_wrong_key(struct lane *l, struct session *s);

/* quota.c. One more of what the tenant has (its vqps or mrs): false when it has all that it may. */
bool quota_take(struct lane_quota *quota, enum lane_quota_kind which, _Atomic uint32_t *used,
                uint32_t most);
void quota_give(_Atomic uint32_t *used);
/* A control operation that is done in any case: what comes after it waits for the longer, up to a
 * second more. */
void quota_charge(struct lane_quota *quota, uint64_t now_ns);

/* vqp.c: queues of VQPs, and what goes from them to the physical ones. */
void vqp_bind(struct lane *l, struct session *s, struct vqp *q, const struct schema_sq_desc *d);
void vqp_destroy(struct lane *l, struct vqp *q);
/* Takes a checked request; posts it, or queues it. */
void vqp_submit(struct lane *l, struct vqp *q, struct wr *w);
/* Posts what it can of its queue. */
void vqp_go_on(struct lane *l, struct vqp *q);
/* What it had posted, and is out no more, comes before its queue again. */
void vqp_take_back(struct lane *l, struct vqp *q, struct wr *w);
/* What it had posted has failed. */
void vqp_fail(struct lane *l, struct vqp *q, struct wr *w, enum ibv_wc_status status);

/* wait_queue.c: VQPs whose head waits for something other than a window. */
void wait_queue_init(struct lane *l);
/* For something that others have: all of those are tried again when the lane has changed. */
void vqp_block(struct lane *l, struct vqp *q);
/* For news of its own flow, and for nothing else. */
void vqp_wait(struct lane *l, struct vqp *q);
/* Something of its own is over: it waits, and is tried in the next round. */
void vqp_wake(struct lane *l, struct vqp *q);
void vqp_unblock(struct lane *l, struct vqp *q);
/* Something happened to this endpoint: those that are parked there are tried in the next round. */
void flow_notify(struct lane *l, struct flow *f);
/* The flow goes: nobody is parked there. */
void flow_forget_parked(struct lane *l, struct flow *f);
/* A round, while anybody waits: looks at those for whom something may have changed. */
void vqps_retry(struct lane *l);
/* When the next round is needed; LANE_NEVER: nobody waits. */
uint64_t vqps_due(const struct lane *l);

/* physical_qp.c: physical queue pairs. */
bool physical_qp_has_room(const struct physical_qp *p);
void physical_qp_chain(struct lane *l, struct physical_qp *p, struct wr *w);
void physical_qp_ring(struct lane *l);
/* A completion that stands for itself alone, or tells of an error. */
void physical_qp_complete(struct lane *l, struct physical_qp *p, uint32_t index,
                          enum ibv_wc_status status);
/* Nothing is out on it any more, and something about it is not as usual. */
void physical_qp_emptied(struct lane *l, struct physical_qp *p);
/* rc: a place for a connected queue pair; there is one for each that may be. */
struct physical_qp *physical_qp_open(struct lane *l, struct fab_qp *qp, struct flow *f);
/* rc: the place is free; the caller says what becomes of the queue pair. Nothing is out on it. */
void physical_qp_close(struct lane *l, struct physical_qp *p);
/* It takes no more, and what is out on it comes back from the device; not for ever
 * (inflight_timeout.c). */
void physical_qp_await(struct lane *l, struct physical_qp *p);
/* Likewise of one that was awaited already: for another bound_ns. */
void physical_qp_wait(struct lane *l, struct physical_qp *p);
/* The control side gets it back. What the device still has of it, if there is anything, ends or
 * goes elsewhere, although the device may carry it out yet. */
void physical_qp_abandon(struct lane *l, struct physical_qp *p);
/* The device says that this queue pair is in ERR: not waited for until somebody posts. What is out
 * on it comes back first. */
void physical_qp_fatal(struct lane *l, const struct fab_qp *qp);
/* Nothing more is posted on it; the control side gets it when nothing is out. */
void physical_qp_rebuild(struct lane *l, const struct fab_qp *qp);

/* inflight_timeout.c. After the queue pairs' places. */
int inflight_new(struct lane *l);
void inflight_free(struct lane *l);
/* With end_overdue, once look_due_ns has come: a device that keeps no deadlines may carry out a
 * request long after its lease, when those before it in the queue pair all but used up their
 * retries: what would be out for longer than one may take ends with its queue pair (design: "MR
 * leases: the rule"). True: some seem to be; the caller posts what is chained, polls all
 * completions, and calls inflight_end_overdue() for what is out still. */
bool inflight_check(struct lane *l);
void inflight_end_overdue(struct lane *l);
/* p is of no use any more. It goes when the device has given back what is out on it, so that
 * nothing is told or done again of which the device may yet tell otherwise. */
void inflight_retire(struct lane *l, struct physical_qp *p);
/* Once await_due_ns has come, and all completions were polled. */
void inflight_give_up(struct lane *l);
/* When a lane that sleeps has to look: NEVER while nothing is out. */
uint64_t inflight_next(const struct lane *l);

/* endpoint.c, lookup.c: endpoints, lookups. */
struct schema_peer *peer_shared(struct lane *l, uint32_t slot);
/* 0 and slot and gen; -EINPROGRESS: session s gets a reply later; else -errno. */
int peer_connect(struct lane *l, struct session *s, const uint8_t gid[16], uint32_t *slot,
                 uint32_t *gen);
void lookups_init(struct lane *l);
void lookup_done(struct lane *l, struct wr *w, enum ibv_wc_status status);
/* The list of metaservers is another one than this, which has room for all that there can be: a
 * READ of one that is not in it any more, or whose table is another now, says nothing. */
void lookups_metaservers(struct lane *l, const struct lane_metaserver *before);
void lookups_due(struct lane *l);
/* When that is to be called; NEVER: nothing is looked up. */
uint64_t lookups_next(const struct lane *l);
void lookups_forget(struct session *s);
/* Whether that endpoint is being looked up. */
bool lookup_is_under_way(struct lane *l, const uint8_t gid[16]);
/* Whether a metaserver may be asked: it has not just been silent, and there is one. */
bool lookup_may_ask(const struct lane *l, uint32_t metaserver);
bool lookup_has_whom_to_ask(const struct lane *l);
/* What an answer of that metaserver to another READ of its table says of it. */
void lookup_heard(struct lane *l, uint32_t metaserver, enum ibv_wc_status answer);
/* Whether the slot was this endpoint's in that generation too: in this life or an earlier one. */
bool peer_is_same(struct lane *l, uint32_t slot, uint32_t gen);
/* Whether the peer's record may be used now; asks for a new one before it is too old. Else
 * peers[slot].refreshing says whether a new one is under way. */
bool peer_is_fresh(struct lane *l, uint32_t slot);
/* readdress.c */
void lane_readdress(struct lane *l, const struct lane_command *c);
void lane_readdress_go_on(struct lane *l);

/* region_cache.c: peers' regions. */
void remote_init(struct lane *l);
enum remote_answer { REMOTE_OK, REMOTE_READING, REMOTE_WAIT, REMOTE_REFUSED };
/* Resolves w's virtual key at flow's peer into w->fab.key and remote_addr. READING: its owner's
 * record is under way; WAIT: there is no room to ask for it. REFUSED: *reason. */
enum remote_answer remote_resolve(struct lane *l, struct flow *f, struct wr *w, uint32_t *reason);
/* READs again what the requests of this pass have asked for. */
void remote_refresh(struct lane *l);
void remote_done(struct lane *l, struct wr *w, enum ibv_wc_status status);
/* The clock can be trusted again: what was READ while it could not, or before, is not believed. */
void remote_clock_is_back(struct lane *l);
/* The owner's device has refused w: its record is not believed any longer. */
void remote_doubt(struct lane *l, const struct wr *w);

#endif
