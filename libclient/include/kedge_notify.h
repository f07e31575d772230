/* SPDX-License-Identifier: Apache-2.0 */
/* libkedge: WRITEs whose receiver learns that they are there. What kedge.h says of threads,
 * pointers, order and results holds here, and what kedge_msg.h says of who hears and who sends.
 *
 * A list of WRITEs ends with a notification, which is a message. It is heard when all of them are
 * in the receiver's memory, and is not sent when one of them has failed.
 */
#ifndef KEDGE_NOTIFY_H
#define KEDGE_NOTIFY_H

#include <kedge_msg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KEDGE_NOTIFICATION_MOST 1024 /* bytes of one */

/* Posts a list: IBV_WR_RDMA_WRITEs, or none, and last, the notification: IBV_WR_SEND or
 * IBV_WR_SEND_WITH_IMM of KEDGE_NOTIFICATION_MOST bytes at most (-EMSGSIZE), or
 * IBV_WR_RDMA_WRITE_WITH_IMM, which is a WRITE of the list too. q is one that kedge_connect_port()
 * has connected, or struct kedge_msg's (-EDESTADDRREQ). All of the list is posted or nothing: then
 * *bad is the request that is to blame; bad may be NULL.
 *
 * The list has one completion, with the notification's wr_id, where that is IBV_SEND_SIGNALED or
 * something failed. If its opcode is IBV_WC_RDMA_WRITE then, and the notification is none, the
 * status is that of the first WRITE that failed: some of those before it may have been carried out,
 * and the notification was not sent. kedge_never_sent() says so of the request that failed, and not
 * of the list. Where both were under way, so that nobody knows of either, the opcode is the
 * notification's. IBV_SEND_SIGNALED of WRITEs before the notification says nothing.
 *
 * -EINVAL: malformed, or something else than WRITEs before the last; -ENOMEM: the ring is too full
 * for it now; -EMSGSIZE: it is longer than the ring: post kedge_batch_post()'s batch, and a SEND
 * behind it, which is heard after the batch in the same way, and flushed when that failed;
 * -EOPNOTSUPP: the agent has no messages, or is of before this; otherwise as kedge_post_send(). */
KEDGE_API int kedge_post_notify(struct kedge_vqp *q, struct ibv_send_wr *list,
                                struct ibv_send_wr **bad);

/* ---- counters
 *
 * A counter is its creator's; messages of others raise it by 1, each exactly once, also where what
 * carries them repeats or is repaired. It takes no receive, and waits for nobody's. It has 64 bits,
 * begins at 0, and stays at 2^64 - 1. The agent keeps it, and shows it in a page that the worker
 * only reads. */

#define KEDGE_COUNTERS          32 /* of a session */
#define KEDGE_COUNTER_TOKEN_MAX 64 /* bytes, the NUL included */

struct kedge_counter;

/* A request to the agent. -EDQUOT: the session has KEDGE_COUNTERS, or the tenant has used up its
 * control operations; -EAGAIN: the host has no random numbers now; -ENOMEM; -EOPNOTSUPP;
 * -ETIMEDOUT. */
KEDGE_API int kedge_counter_create(struct kedge_session *s, struct kedge_counter **out);
/* Whoever would raise it from now on gets an error (IBV_WC_REM_OP_ERR). A request to the agent.
 * After any result but -EPERM and -ETIMEDOUT the handle is gone; those that are left go with the
 * session. */
KEDGE_API int kedge_counter_destroy(struct kedge_counter *c);
/* The grant: who has the token, of whatever tenant of the pool, raises the counter, until that is
 * destroyed or the session ends. Nobody else does, on any node, who says nothing of it. text has
 * room for size bytes, KEDGE_COUNTER_TOKEN_MAX at least (-ENOSPC). */
KEDGE_API int kedge_counter_export(const struct kedge_counter *c, char *text, size_t size);
/* What it says now: loads alone. 0; or as kedge_session_status(). */
KEDGE_API int kedge_counter_read(const struct kedge_counter *c, uint64_t *value);
/* Sleeps until it says value or more, timeout_ms at most (-1: no limit; 0 only looks), as
 * kedge_wait(): 1: it does; 0: the time is over; or as kedge_wait(). What was written before the
 * message that raised it is there. Who waits for completions too waits with kedge_wait() or
 * kedge_arm(), which return for a counter where kedge_session_notices() was called once
 * (KEDGE_NOTICE_COUNTER). */
KEDGE_API int kedge_counter_wait(struct kedge_counter *c, uint64_t value, int timeout_ms);

/* As kedge_connect(), to the node of the counter with that token, and q's SENDs raise it: an
 * IBV_WR_SEND without a byte and without an immediate each (else -EINVAL), also as the end of a
 * kedge_post_notify(). It completes when it has raised the counter. One that fails has not, unless
 * it was under way (kedge_never_sent()): of one that ends with IBV_WC_RETRY_EXC_ERR nobody knows.
 * IBV_WC_REM_OP_ERR: there is no such counter, any more, or the token is wrong. Errors: as
 * kedge_connect(); -EINVAL: no token; -EXDEV: of another pool; -EISCONN: q is bound;
 * -EOPNOTSUPP. */
KEDGE_API int kedge_connect_counter(struct kedge_vqp *q, const char *text);

#ifdef __cplusplus
}
#endif
#endif
