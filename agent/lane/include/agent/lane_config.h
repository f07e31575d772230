/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane is made with (agent/lane.h). Times in ns, sizes in bytes. */
#ifndef AGENT_LANE_CONFIG_H
#define AGENT_LANE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/lane_messages.h"
#include "fabric/fabric.h"

struct lane_quota;
struct schema_table;

enum {
    LANE_MAX_DCIS = 32,
    LANE_MERGE_SGES = 7, /* at most: what a work request has room for is taken of each slot of a
                          * queue pair. So many take no more than the inline data there: with irdma
                          * 128 bytes, and 256 from 8 on; of a DC initiator of ConnectX 256, and 512
                          * from 11 on */
    LANE_MAX_METASERVERS = 8,
    LANE_POOL_LANES = 8, /* of one pool, at most: they share its MR table */
    LANE_SESSION_MAX_ARENAS = 16,
    LANE_LODGERS = 64,           /* of a lane: sessions of other lanes, for which it posts */
    LANE_MOVED_VQPS = 256,       /* a session that has had more stays in its lane */
    LANE_MAX_DESTINATIONS = 256, /* that have windows of their own */
    LANE_PATHS = 1024,           /* WANT_PATHs that are not answered, at a time */
    LANE_TENANT_NAME = 31,       /* bytes */
    LANE_SCRATCH_BYTES = 2048,   /* of scratch for one READ: a span of the widest table */
};

/* How large the windows of the device and of each destination are, beside what is set for them. */
enum lane_window_policy {
    LANE_WINDOW_STATIC, /* only what is set */
    LANE_WINDOW_LADDER, /* sizes are tried in turn */
    LANE_WINDOW_DELAY,  /* by how long requests take */
    LANE_WINDOW_POLICIES
};

struct lane_config {
    uint32_t max_sessions;
    uint32_t lodgers;                /* LANE_LODGERS; or 0, of a pool with one lane */
    uint32_t max_peers;              /* known endpoints */
    uint32_t max_flows;              /* endpoints with requests out or waiting at one time */
    uint32_t max_tenants;            /* of all sessions */
    uint32_t max_mrs;                /* regions of all sessions */
    const struct lane_quota *quotas; /* of all max_tenants tenants, borrowed, for max_mrs;
                                      * NULL: no tenant has a reserve of those */
    uint32_t mr_cache;               /* remote regions known at one time, a power of two */
    uint32_t sq_depth;               /* of each DCI */
    uint32_t merge_sges;             /* pieces of a work request of several requests, at most: all
                                      * queue pairs have so many; 0: none are merged */
    uint32_t cut_bytes;    /* a READ or WRITE of more is posted in pieces of so much, from 8192 on;
                            * 0: none is */
    uint32_t guess_budget; /* wrong virtual keys of one session before it ends; one a second more */
    uint32_t max_grants;   /* imports of one session */
    uint64_t batch_bytes;  /* for batches, of all tenants; 0: there are none */
    uint64_t silent_ns;    /* how long a silent session is polled before it goes to sleep: about
                              what a wake-up costs */
    uint64_t suspect_ns;   /* an endpoint that was silent for longer while it had requests is
                              suspect: beside the time for what is out at the port's rate */
    uint64_t port_rate;    /* bytes in a millisecond; 0: not known */
    uint64_t most_bytes;   /* out on all queue pairs at a time, so that what is healthy ends long
                              before bound_ns; 0: no limit. A request that is larger than its queue
                              pair's part goes when nothing else is out there */
    uint64_t lookup_timeout_ns; /* of all metaservers together: at least as long as the device
                                 * repeats a READ */
    uint64_t lookup_hedge_ns;   /* a metaserver that is silent for so long keeps nobody from asking
                                 * the next one beside it */
    uint64_t lookup_awaited_ns; /* one that some metaserver knows, and no metaserver has, may come
                                 * within so long */
    uint64_t path_patience_ns;  /* what is posted waits for a path for at least so long, whoever was
                                 * refused one before it */
    enum lane_window_policy window_policy; /* at first */
    uint64_t node_lease_ns;                /* how long an endpoint record is believed */
    uint64_t mr_lease_ns;                  /* how long an MR record is believed */
    uint64_t bound_ns,
        slack_ns; /* of the lease rule; mr_lease_ns > bound_ns + slack_ns, asserted */
    bool rc;      /* peers are reached through RC connections, one each; else through DC */
    bool hybrid;  /* through DC, and those that this one talks to most through connections; who
                   * has no DC through these alone. Not with rc */
    uint32_t connections_per_peer; /* rc, hybrid: that an endpoint may have, up to 8; 0 is 1 */
    uint32_t max_links;            /* rc, hybrid: connections at a time, of max_flows endpoints */
    bool deadlines;     /* the device keeps to not_after_ns, and now_ns is of the same clock */
    bool posts_in_time; /* else, it looks at that last of all before its doorbell */
    bool end_overdue;   /* it does not keep them: end a queue pair before a request in it is out
                         * for longer than bound_ns; the device's time is now_ns's */
    bool own_regions;   /* the device keeps no deadlines: an ordinary region has a registration of
                         * its own, which goes when its lease is over */
    /* Not 0: this host's clock cannot be trusted, so that only regions which hardware guards are
     * reached, and what was READ before is not believed afterwards. Borrowed, written by the
     * control side at any time; NULL: it always can. */
    const _Atomic uint32_t *clock_doubted;
    enum ibv_mtu mtu; /* DC: that its DCIs are made with; endpoints whose records name a smaller one
                       * have some of their own. 0: they have not */
    bool streams;     /* a DCI serves several targets at a time */
    bool names_culprit, writes_in_order; /* as of the device (fabric.h) */
    bool by_device; /* messages from one worker of this lane to another go by the device, as those
                     * of others do */
    uint8_t gid[16];
    uint16_t pool;
    uint32_t incarnation;
};

/* What the lane uses of the fabric; made by the control side, borrowed while the lane lives. All
 * DCIs are in RTS (or rest), complete on `cq`, and have room for sq_depth; the system DCI
 * (metaserver READs) completes on cq too. With hybrid connections come beside them. With rc there
 * are none: connections come with PATH_READY, and one for each metaserver with METASERVERS; they
 * complete on cq and have room for sq_depth too.
 */
struct lane_device_objects {
    struct fab *fab;
    struct fab_caps caps; /* the lane's: of fab, with `atomics` as its transport has them */
    struct fab_cq *cq;    /* room for every send slot of every queue pair below */
    struct fab_pd *pd;
    struct fab_qp *dci[LANE_MAX_DCIS];
    uint32_t dcis; /* in use; the last is the probing one, for suspect endpoints */
    struct fab_qp *spare[LANE_MAX_DCIS];
    uint32_t spares;
    uint32_t max_spares;          /* that there may be at a time: more come with QP_READY */
    struct fab_qp *system_dci;    /* in the system PD; NULL with rc */
    uint64_t rest_until_ns;       /* not 0: no DCI is used before its QP_READY, which comes by then,
                                   * by now_ns's clock */
    struct fab_mem scratch;       /* for what the lane itself READs: LANE_SCRATCH_BYTES each */
    uint32_t scratch_lkey;        /* in pd */
    uint32_t scratch_system_lkey; /* in the system PD */
    /* For inline data beyond the device's max_inline, where that is less than SCHEMA_MAX_INLINE:
     * places of so many bytes, and how pd's queue pairs name the first. */
    struct fab_mem small;
    uint64_t small_iova;
    uint32_t small_lkey;
    struct lane_messages messages;
    void *peers;                   /* formatted: schema/peers.h; max_peers slots */
    struct schema_table *mr_table; /* this node's, registered for remote READ; the lane is its
                                    * writer, or one of those that share it (schema_table_share()),
                                    * with a number up to LANE_POOL_LANES */
};

#endif
