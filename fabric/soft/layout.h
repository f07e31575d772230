/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all contexts of one soft device share: fixed tables in one sparse file.
 *
 * A context is one open of the device. Every slot of every table has an owner word, claimed and
 * released by one atomic operation, so that there is no lock to be left behind by a process that
 * dies: whoever opens the device next takes back what contexts without a living process own. A
 * context lives while its process holds the kernel's lock on the context's byte of the file.
 * Untouched slots take no memory. */
#ifndef SOFT_LAYOUT_H
#define SOFT_LAYOUT_H

#include <pthread.h>
#include <stdint.h>

#include "fabric/fabric.h"

#define SOFT_MAGIC   0x4b534f46u /* "KSOF" */
#define SOFT_VERSION 1

enum {
    SOFT_CONTEXTS = 1024,
    SOFT_QPS = 8192, /* DC targets included */
    SOFT_MRS = 65536,
    SOFT_CQS = 1024,
    SOFT_RQS = 2048, /* receive queues of queue pairs, and SRQs */
    SOFT_RQ_WR = 1024,
    SOFT_CQ_REMOTE = 4096, /* receive completions waiting in one CQ */
    SOFT_SGE = 8,
    SOFT_INLINE = 256,
    SOFT_UD_PAYLOAD = 4096,
    SOFT_GRH = 40,
};

/* Bytes of the file that carry no data: a context's byte is locked while it lives, OPEN_LOCK while
 * one opens. */
#define SOFT_LOCK_BASE ((off_t)1 << 50)
#define SOFT_OPEN_LOCK (SOFT_LOCK_BASE + SOFT_CONTEXTS)

/* Owner words: 0 is free. A context's generation grows at each use, so an owner word never comes
 * back. */
typedef uint64_t soft_owner;

struct soft_context_shared {
    _Alignas(64) _Atomic soft_owner owner; /* generation << 32 | index + 1; 0: not open */
    uint32_t generation;
    int32_t pid;
    uint8_t gid[16];
    /* Its own line: others add 1 after they broke one of this context's queue pairs, so that the
     * next poll looks. */
    _Alignas(64) _Atomic uint32_t attention;
};

enum soft_qp_kind {
    SOFT_RC = KEDGE_FAB_QP_RC,
    SOFT_UD = KEDGE_FAB_QP_UD,
    SOFT_DCI = KEDGE_FAB_QP_DCI,
    SOFT_DCT
};

/* One queue pair or DC target. First line: what an initiator reads at each operation; second: what
 * the owner's thread writes. */
struct soft_qp_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t qpn;   /* index and a salt, so that a number is not used again soon; 0: free */
    _Atomic uint32_t state; /* enum ibv_qp_state; a DC target is in RTR */
    uint32_t pd;
    uint16_t access; /* enum ibv_access_flags: what peers may do */
    uint8_t kind;    /* enum soft_qp_kind */
    uint8_t min_rnr_timer;
    uint32_t qkey;
    uint32_t dest_qpn; /* RC: the peer's */
    uint64_t dc_key;
    uint16_t send_cq, recv_cq; /* index + 1 */
    uint16_t rq;               /* index + 1 */
    uint16_t salt;
    /* Hazard: the key of the region that this queue pair's thread is copying from or to, 0: none.
     */
    _Alignas(64) _Atomic uint32_t inside;
    _Atomic uint32_t epoch;    /* grows at RESET: completions of before are dropped */
    _Atomic uint32_t sq_freed; /* send slots given back, running */
    uint8_t dest_gid[16];      /* RC: the peer's */
};

/* One region. The key is written last and cleared first; while a hazard holds it, nothing else
 * changes. */
struct soft_mr_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t key; /* salt << 16 | index; 0: not valid */
    uint32_t pd;
    uint16_t access;
    uint16_t salt;
    int32_t pid;
    int32_t fd; /* the owner's number of the memfd, and the file that it must still be */
    uint32_t reserved;
    uint64_t ino;
    uint64_t offset; /* in the file, of addr */
    uint64_t addr, length;
};
_Static_assert(sizeof(struct soft_mr_shared) == 64, "one cache line");

/* Receive completions of a CQ: any initiator appends under the robust lock (only ever tried), the
 * owner takes. */
struct soft_cq_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t lock_made;
    uint32_t cqe;
    pthread_mutex_t lock;
    _Alignas(64) _Atomic uint32_t tail;
    _Alignas(64) _Atomic uint32_t head;
    _Atomic uint32_t local_used; /* completions in the owner's private ring */
    _Atomic uint32_t armed;      /* enum soft_armed */
    _Atomic uint32_t overflow;
    uint32_t chan; /* names the FIFO; 0: none */
    struct ibv_wc ring[SOFT_CQ_REMOTE];
};
enum soft_armed { SOFT_NOT_ARMED, SOFT_ARMED_SOLICITED, SOFT_ARMED };

struct soft_rqe {
    uint64_t wr_id;
    uint32_t num_sge;
    struct ibv_sge sge[SOFT_SGE];
};

/* A receive queue: the owner appends, initiators take under the robust lock (only ever tried). */
struct soft_rq_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t lock_made;
    uint32_t max_wr;
    pthread_mutex_t lock;
    _Alignas(64) _Atomic uint32_t tail;
    _Alignas(64) _Atomic uint32_t head;
    struct soft_rqe ring[SOFT_RQ_WR];
};

struct soft_shared {
    uint32_t magic, version;
    uint64_t bytes;
    _Atomic uint32_t next_pd, next_chan;
    _Atomic uint32_t qp_high, mr_high, cq_high, rq_high; /* no slot at or above was ever used */
    struct soft_context_shared context[SOFT_CONTEXTS];
    struct soft_qp_shared qp[SOFT_QPS];
    struct soft_mr_shared mr[SOFT_MRS];
    struct soft_cq_shared cq[SOFT_CQS];
    struct soft_rq_shared rq[SOFT_RQS];
};

#endif
