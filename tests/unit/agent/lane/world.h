/* SPDX-License-Identifier: Apache-2.0 */
/* A small world in one process for tests of the lane: a metaserver, nodes with a lane each, and
 * workers' sessions played by the test; the time is the test's. */
#ifndef UNIT_AGENT_LANE_WORLD_H
#define UNIT_AGENT_LANE_WORLD_H

#include "agent/connector.h"
#include "agent/lane.h"
#include "fabric/fault.h"
#include "fabric/iova.h"

enum {
    WORLD_NODES = 3,
    WORLD_ARENA = 64 * 1024,
    WORLD_DCIS = 3,
    WORLD_SPARES = 2,
    WORLD_TENANTS = 4,
    WORLD_LINKS = 2, /* rc */
    WORLD_SQ_DEPTH = 64,
    WORLD_FLOWS = 16, /* that are told from each other */
    WORLD_FENCED = 8, /* regions of a node with registrations of their own */
    WORLD_WORKERS = 136
};

struct world_worker {
    struct lane_memory *memory;
    struct fab_mem rw, ro, arena;
    struct fab_mr *arena_mr;
    struct schema_session_rw *w;
    struct schema_session_ro *r;
    uint32_t sq_tail, sq_published, sq_open, cq_head, tag; /* open: slots a request still lacks */
    uint32_t node, id, overs, by_tail; /* overs: before it, of its place; by_tail: of no phases */
};

/* One of a fenced region's: registered, or asked for. */
struct world_fenced {
    uint32_t session, rkey;
    struct fab_mr *mr; /* NULL: the place is free */
};

struct world_node {
    struct fab *fab;
    struct fab_pd *pd, *system_pd;
    struct fab_chan *chan;
    struct fab_cq *cq, *dct_cq;
    struct fab_srq *srq;
    struct fab_dct *dct;
    struct fab_mem mr_memory, scratch, small;
    struct fab_mr *mr_mr, *scratch_mr, *scratch_system_mr, *small_mr;
    struct fab_ah *metaserver_ah;
    struct connector *connector;                         /* rc */
    struct fab_qp *metaserver_qp, *metaserver_responder; /* rc */
    struct fab_qp *former_qp, *former_responder; /* rc: that another has taken the place of */
    struct fab_qp *silent_qp;                    /* rc: to the one that is silent */
    struct schema_table mr_table;
    void *peers;
    struct lane_device_objects res;
    struct lane_config config;
    struct lane *lane;
    struct lane_quota quota[WORLD_TENANTS]; /* no bound, unless a test sets one */
    struct fab_qp *last_link;               /* rc: of the connections, the last one made */
    uint32_t wanted_flow;                   /* of the last WANT_PATH */
    uint32_t wanted_paths[WORLD_FLOWS];     /* how often each flow has wanted one */
    bool quarantined[WORLD_TENANTS];        /* which tenants are, */
    bool named[WORLD_TENANTS];              /* and are to blame, or were */
    bool no_repairs;                        /* its queue pairs stay broken */
    bool no_metaserver;                     /* it was told to forget it */
    uint32_t overs[WORLD_WORKERS];          /* of sessions that were there */
    uint32_t lefts, lodgers_left, incarnation, over, faults, last_reason, broken, fences, answers;
    struct lane_event left, lodger_left; /* the last ones */
    enum ibv_mtu wanted_mtu;             /* of the last path that was asked for */
    struct lane_event answer;            /* the last one to REVOKE, ARENA_REREGISTER, PROVE ... */
    /* Fenced regions: what was asked for, so often, and waits while the test holds it. */
    struct world_fenced fenced[WORLD_FENCED];
    uint32_t wanted, let_go, held;
    bool hold;
    int refuse; /* -errno that answers the next WANT_MR */
    struct lane_event held_event[WORLD_FENCED];
};

struct world {
    char dir[64];
    bool rc, hybrid; /* KEDGE_TEST_TRANSPORT: nodes reach each other through RC, or both; else DC */
    uint64_t now_ns;
    uint64_t random;
    struct fab_iova iova; /* of what peers reach */
    /* The metaserver: its tables, and a DC target through which they are READ. */
    struct fab *meta;
    struct fab_pd *meta_pd;
    struct fab_cq *meta_cq;
    struct fab_srq *meta_srq;
    struct fab_dct *meta_dct;
    struct fab_mem meta_memory;
    struct fab_mr *meta_mr;
    struct schema_table table;
    struct world_names *names; /* world_names.h */
    struct world_node node[WORLD_NODES];
    struct world_worker *worker[WORLD_WORKERS]; /* attached */
    bool away[WORLD_NODES];                     /* who asks for a path to it gets no answer */
};

/* Of the next world's nodes; 0: 1 ms. */
extern uint64_t world_mr_lease_ns[WORLD_NODES];
/* Of the next world's lanes: how long a request may take; 0: 200 us. */
extern uint64_t world_bound_ns;
/* Of the queue pairs, as verbs count it: 65 us. Of the process's clock, so that a test that a busy
 * host may not disturb chooses more. */
extern uint8_t world_ack_timeout;
/* Of the next world's sessions (0: 4), and lanes (0: 16; 8). */
extern uint32_t world_max_mrs, world_max_flows, world_max_peers;
/* Likewise, with rc; 0: WORLD_LINKS, of which there may be one more. */
extern uint32_t world_max_links;
/* Of the next world's lanes, as in their configuration; with DC, until when no initiator is ready,
 * which the test says then. A world begins at 1 s. */
extern uint64_t world_rest_until_ns, world_port_rate, world_most_bytes, world_path_patience_ns;
/* Of the next world's lanes, whose clock is not the device's. */
extern bool world_end_overdue;
/* Of the next world's lanes: the device keeps them, by the real clock, so that the test has to
 * begin its time there. */
extern bool world_deadlines;
/* Of the next world's lanes: tenants have reserves of so many regions. */
extern uint32_t world_capacity;
/* Of the next world's lanes: ordinary regions have registrations of their own. */
extern bool world_own_regions;
/* Whether the host's clock of node 0 cannot be trusted, now. */
extern _Atomic uint32_t world_clock_doubted;
/* Of the next world's lanes: the device looks at them before its doorbell, so they believe. */
extern bool world_posts_in_time;
/* Of the next world's lanes: their DCIs have streams (world_streams.h). */
extern bool world_streams;
/* Of the next world's lanes, with DC: one initiator and no spare, so that all share it. */
extern bool world_one_dci;

/* Of the next world's nodes: a layer over soft, with a seed that is not 0; else none. */
extern struct fault_plan world_fault;

/* On the soft device; each node is registered, and knows the metaserver. Fails on trouble. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Passes of all lanes, and what their control sides do, each 1 us apart. */
void world_run(struct world *w, unsigned passes);
struct fab_qp *world_make_dci(struct world_node *n, struct fab_pd *pd);
/* A DCI from RESET to RTS, the way the daemon does it. */
void world_raise_dci(struct fab *fab, struct fab_qp *qp);
void world_sleep(struct world *w, uint64_t ns);
/* The node comes back as a new incarnation, with a new DC target. */
void world_restart_node(struct world *w, uint32_t node);
/* Nobody reaches the node any more, until it restarts; the metaserver does not know. */
void world_silence_node(struct world *w, uint32_t node);
/* The node's lane knows no metaserver any more. */
void world_forget_metaserver(struct world *w, uint32_t node);

void world_attach(struct world *w, struct world_worker *k, uint32_t node, uint32_t id,
                  uint32_t tenant);
/* Ends the session and frees the memory once it is over. */
void world_detach(struct world *w, struct world_worker *k);
void world_post(struct world_worker *k, const struct schema_sq_desc *d);
/* An event of the device's about that queue pair of the node's, as its control side takes it. */
void world_fatal(struct world *w, uint32_t node, struct fab_qp *qp);
/* The queue pair goes to ERR by itself; what is out on it is flushed. */
void world_break(struct world *w, uint32_t node, struct fab_qp *qp);
/* All its DC initiators break. */
void world_lose_dcis(struct world *w, uint32_t node);
/* A control request and its answer. */
int world_ask(struct world *w, struct world_worker *k, struct schema_sq_desc d,
              struct schema_reply *out);
/* Polls one completion, running the world for up to `passes`. False: none came. */
bool world_poll(struct world *w, struct world_worker *k, struct schema_cqe *out, unsigned passes);
/* The next completion, which comes within so many passes. */
struct schema_cqe world_done(struct world *w, struct world_worker *k, unsigned passes);
/* Posts a request and takes that. */
struct schema_cqe world_do(struct world *w, struct world_worker *k, struct schema_sq_desc d,
                           unsigned passes);
/* The device takes the registration of its arena away, while records of it are still believed. */
void world_take_away(struct world *w, struct world_worker *k);
/* Connects VQP 0, generation 0, to the node. The status. */
int world_connect(struct world *w, struct world_worker *k, uint16_t vqp, uint32_t node);
/* Registers [offset, offset + length) of the arena under vaddr = 0x10000 + offset. The key; 0 on
 * failure. */
uint32_t world_register(struct world *w, struct world_worker *k, uint64_t offset, uint64_t length,
                        uint32_t access);
struct schema_sq_desc world_rw(uint8_t op, uint64_t wr_id, uint64_t offset, uint32_t length,
                               uint32_t vkey, uint64_t remote_offset);
struct lane_stats world_stats(const struct world *w, uint32_t node);
/* Opens a world with an owner on node 1, who has a region of 4 KiB, and a worker on node 0 that is
 * connected to it. The region's key. */
uint32_t world_pair(struct world *w, struct world_worker *owner, struct world_worker *k,
                    uint32_t tenant, uint32_t access);
/* Both go, and the world is closed. */
void world_unpair(struct world *w, struct world_worker *owner, struct world_worker *k);

/* Registers part of a worker's arena on its node, at an address that was never used. */
struct fab_mr *world_mr(struct world *w, const struct world_worker *k, uint64_t offset,
                        uint64_t length, unsigned access);
void world_note_apart(struct world_node *n, const struct lane_event *e);
/* A session is over, or has left its lane, or a lodger has. */
void world_note_end(struct world_node *n, const struct lane_event *e);
void world_note_wanted(struct world_node *n, const struct lane_event *e);

#endif
