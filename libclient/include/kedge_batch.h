/* SPDX-License-Identifier: Apache-2.0 */
/* libkedge: batches, which are lists of READs and WRITEs that are prepared once and posted as often
 * as one likes. What kedge.h says of threads, pointers and results holds here.
 *
 * The agent has a copy of the list, so that a post is one entry in the ring, whatever the batch's
 * length, and ends with one completion. Descriptors of a batch are carried out in any order among
 * themselves, and those that go on where the one before ends at the peer are carried out together;
 * all of them behind what the VQP posted before the batch, and before what it posts behind it.
 * Others' requests go in between, as they do between requests that are posted one by one. */
#ifndef KEDGE_BATCH_H
#define KEDGE_BATCH_H

#include <kedge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Descriptors of a batch, and batches of a session, at most. */
#define KEDGE_BATCH_MOST 100000
#define KEDGE_BATCHES    32

/* wc.opcode of a batch. */
#define KEDGE_WC_BATCH 64

struct kedge_batch;

struct kedge_batch_desc {
    enum ibv_wr_opcode opcode; /* IBV_WR_RDMA_READ or IBV_WR_RDMA_WRITE */
    uint32_t rkey;
    struct ibv_sge local; /* in one arena; 1 byte or more, and no more than a message may have */
    uint64_t remote_addr;
};

/* Gives the agent a copy of n descriptors (1 to KEDGE_BATCH_MOST), which the caller may change
 * afterwards. What is local is looked at now, what is remote when it is carried out, each time.
 * Takes a message for each 13, between which others of this host are served. -EINVAL: one
 * of them is none, which the sentence names; -EDQUOT: the session has KEDGE_BATCHES, or the tenant
 * has used its part of the agent's memory for batches: 32 bytes a descriptor, 32 KiB at least, and
 * of what is left half at most; or its control operations; -ENOMEM; -EOPNOTSUPP: the agent is of
 * before this; -ETIMEDOUT. */
KEDGE_API int kedge_batch_prepare(struct kedge_session *s, const struct kedge_batch_desc *descs,
                                  size_t n, struct kedge_batch **out);
/* Posts it on a VQP of its session. Its completion has wr_id, KEDGE_WC_BATCH and byte_len 0, in
 * its order. Of one that fails status and vendor_err are those of the first descriptor that failed;
 * what the device had then is awaited, the rest is not carried out, and the VQP is in error, as
 * after any request. -EBUSY: it is posted, and not over; otherwise as kedge_post_send(). */
KEDGE_API int kedge_batch_post(struct kedge_vqp *q, struct kedge_batch *b, uint64_t wr_id);

struct kedge_batch_state {
    int posted;      /* 1: it is not over yet */
    uint32_t count;  /* descriptors */
    uint32_t done;   /* carried out since it was posted last; while it is posted, at least */
    uint32_t failed; /* the first of those that failed together, or of what was not begun; count if
                      * there is none, or it is posted */
    enum ibv_wc_status status;
    uint32_t vendor_err; /* as in its completion */
};
/* How it stands, and when it is over, how it ended: some loads, no message. 0; or as
 * kedge_session_status(). */
KEDGE_API int kedge_batch_status(struct kedge_batch *b, struct kedge_batch_state *out);
/* What the device does not have of it yet is not carried out. It completes when the rest is over,
 * with IBV_WC_WR_FLUSH_ERR if some was left, and its VQP goes on. A message to the agent. Of one
 * that is not posted: 0. -ETIMEDOUT; or as kedge_session_status(). */
KEDGE_API int kedge_batch_cancel(struct kedge_batch *b);
/* Gives it back: a message to the agent. -EBUSY: it is posted, and still there. After any other
 * result but -EPERM and -ETIMEDOUT it is gone. Those that are left go with the session. */
KEDGE_API int kedge_batch_destroy(struct kedge_batch *b);

#ifdef __cplusplus
}
#endif
#endif
