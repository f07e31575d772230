/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that all contexts of one soft device share: fixed tables in one sparse file.
 *
 * A context is one open of the device. Every slot of every table has an owner word, claimed and
 * released by one atomic operation, so that there is no lock to be left behind by a process that
 * dies: the next open of the device takes back what contexts without a living process own. A
 * context lives while its process holds the kernel's lock on the context's byte of the file.
 * Untouched slots take no memory, so the tables are as large as they may ever become: never map
 * this file with MAP_POPULATE or under mlockall(MCL_FUTURE). */
#ifndef SOFT_LAYOUT_H
#define SOFT_LAYOUT_H

#include <pthread.h>
#include <stdint.h>

#include "fabric/fabric.h"

#define SOFT_MAGIC   0x4b534f46u /* "KSOF" */
#define SOFT_VERSION 6

enum {
    SOFT_CONTEXTS = 1024,
    SOFT_QPS = 8192, /* DC targets included */
    SOFT_MRS = 65536,
    SOFT_CQS = 2048,
    SOFT_CQE = 65536, /* of one CQ */
    SOFT_RQS = 8192,  /* receive queues of queue pairs, and SRQs */
    SOFT_RQ_WR = 1024,
    SOFT_SGE = 8,
    SOFT_INLINE = 256,
    SOFT_UD_PAYLOAD = 4096,
    SOFT_READS = 128, /* READs and atomics of one queue pair at a time */
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
    _Atomic int32_t pid;
    _Atomic uint64_t started; /* the process's, of /proc/<pid>/stat: pids come back */
    _Atomic uint64_t gid[2];
    /* Its own line: others add 1 after they broke one of this context's queue pairs, so that the
     * next poll looks. */
    _Alignas(64) _Atomic uint32_t attention;
};

enum soft_qp_kind { SOFT_RC = FAB_QP_RC, SOFT_UD = FAB_QP_UD, SOFT_DCI = FAB_QP_DCI, SOFT_DCT };

/* One queue pair or DC target. First line: what an initiator reads at each operation, written by
 * the owner's control thread, and its state by any process that breaks it. Second line: the owning
 * lane's, read by owners that deregister. */
struct soft_qp_shared {
    _Alignas(64) _Atomic soft_owner owner;
    /* qpn << 32 | enum ibv_qp_state, in one word so that nobody breaks the slot's next queue pair
     * by mistake; 0: free. The number is an index and a salt, so that it is not used again soon;
     * a DC target is in RTR. */
    _Atomic uint64_t ident;
    _Atomic uint64_t dc_key;
    _Atomic uint64_t dest_gid[2]; /* RC: the peer's */
    _Atomic uint32_t dest_qpn;    /* RC: the peer's */
    _Atomic uint32_t pd;
    _Atomic uint32_t qkey;
    _Atomic uint8_t access;                /* enum ibv_access_flags: what peers may do */
    _Atomic uint8_t max_dest_reads;        /* READs and atomics of the peer's, at a time */
    _Atomic uint16_t send_cq, recv_cq, rq; /* index + 1 */
    _Atomic uint8_t kind;                  /* enum soft_qp_kind */
    _Atomic uint8_t min_rnr_timer;
    uint16_t salt;
    /* Hazards: the keys of the regions that this queue pair's thread is copying from or to; 0:
     * none. */
    _Alignas(64) _Atomic uint32_t inside;
    _Atomic uint32_t inside_local; /* the initiator's own; SOFT_ANY_KEY: several */
    _Atomic uint32_t left;         /* grows whenever its thread has left them all, for good */
    /* The same of a long request between two pieces, which only QUIESCE_MR waits for; 0: none. */
    _Atomic uint32_t middle, middle_local;
    _Atomic uint64_t middle_until_ns; /* its time, after which it goes no further once its
                                       * region was quiesced; UINT64_MAX: it has none */
    _Atomic uint32_t epoch;           /* grows at RESET: completions of before are dropped */
    _Atomic uint32_t sq_freed;        /* send slots given back, running */
    _Atomic uint32_t cause;           /* enum ibv_event_type + 1: why somebody else broke it */
    _Atomic uint32_t unseen;          /* a hazard too: WRITEs to there are acknowledged alone */
};
#define SOFT_ANY_KEY 0xffffffffu

static inline uint64_t soft_ident(uint32_t qpn, enum ibv_qp_state state)
{
    return (uint64_t)qpn << 32 | state;
}
static inline uint32_t soft_qpn(uint64_t ident)
{
    return (uint32_t)(ident >> 32);
}
static inline enum ibv_qp_state soft_state(uint64_t ident)
{
    return (enum ibv_qp_state)(uint32_t)ident;
}

/* One region. The key is written last and cleared first; while a hazard holds it, nothing else
 * changes. Keys may come back, as a device's do: the identity never does, and says what a mapping
 * is of. Second line: what is looked at when a region is mapped. */
struct soft_mr_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t key; /* salt << 16 | index; 0: not valid */
    uint32_t pd;
    uint16_t access;
    uint16_t salt;
    _Atomic uint64_t identity; /* of soft_shared's count */
    uint64_t addr, length;     /* addr: what peers and SGEs call its first byte */
    _Atomic uint32_t quiesces; /* grows with each that begins */
    uint64_t shift;            /* from that to where its owner's process has it */
    _Alignas(64) int32_t pid;
    int32_t fd; /* the owner's number of the memfd, and the file that it must still be */
    uint32_t dev;
    uint64_t ino;
    uint64_t offset; /* in the file, of the first byte */
};
_Static_assert(sizeof(struct soft_mr_shared) == 128, "two cache lines");

/* A receive's completion on its way. */
struct soft_arrival {
    uint64_t wr_id;
    uint32_t byte_len;
    uint32_t imm_data;
    uint32_t qpn, src_qp;
    uint32_t epoch; /* of the queue pair */
    uint8_t status, opcode;
    uint16_t wc_flags;
};
_Static_assert(sizeof(struct soft_arrival) == 32, "two in a cache line");

/* Receive completions of a CQ: any initiator appends under the robust lock (only ever tried), the
 * owner takes. Lines: the lock's; the appenders'; the owner's. */
struct soft_cq_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t lock_made;
    uint32_t cqe, mask;
    pthread_mutex_t lock;
    _Alignas(64) _Atomic uint32_t tail;
    _Atomic uint32_t overflow;
    _Alignas(64) _Atomic uint32_t head;
    _Atomic uint32_t local_used; /* completions in the owner's private ring */
    _Atomic uint32_t armed;      /* enum soft_armed, and above it how often it was armed */
    _Atomic uint32_t chan;       /* names the FIFO; 0: none */
    _Alignas(64) struct soft_arrival ring[SOFT_CQE];
};
enum soft_armed { SOFT_NOT_ARMED, SOFT_ARMED_SOLICITED, SOFT_ARMED };

struct soft_rqe {
    uint64_t wr_id;
    uint32_t num_sge;
    struct ibv_sge sge[SOFT_SGE];
};

/* A receive queue: the owner appends, initiators take under the robust lock (only ever tried).
 * Lines: the lock's and the takers'; the owner's.
 *
 * Taking a receive and appending its completion are two stores. Between them `taking` says what is
 * under way, and is not 0 only while that CQ's lock is held or its holder has died: the next one
 * that finds the CQ's lock abandoned looks whether the completion got there, and finishes the
 * taking. */
struct soft_rq_shared {
    _Alignas(64) _Atomic soft_owner owner;
    _Atomic uint32_t lock_made;
    uint32_t max_wr, max_sge, mask;
    pthread_mutex_t lock;
    _Alignas(64) _Atomic uint32_t head;
    _Atomic uint32_t taking; /* the CQ's index + 1 */
    uint32_t taking_head, taking_tail;
    _Alignas(64) _Atomic uint32_t tail;
    struct soft_rqe ring[SOFT_RQ_WR];
};

struct soft_shared {
    uint32_t magic, version;
    uint64_t bytes;
    _Atomic uint32_t next_pd;
    _Atomic uint32_t mr_hint;     /* where to look for a free region first */
    _Atomic uint32_t mr_retired;  /* grows with each region that goes: mappings may be stale */
    _Atomic uint64_t mr_identity; /* regions so far */
    _Atomic uint32_t qp_high, mr_high, cq_high, rq_high; /* no slot at or above was ever used */
    struct soft_context_shared context[SOFT_CONTEXTS];
    struct soft_qp_shared qp[SOFT_QPS];
    struct soft_mr_shared mr[SOFT_MRS];
    struct soft_cq_shared cq[SOFT_CQS];
    struct soft_rq_shared rq[SOFT_RQS];
};

#endif
