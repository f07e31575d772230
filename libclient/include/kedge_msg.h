/* SPDX-License-Identifier: Apache-2.0 */
/* libkedge: messages between workers, SEND and RECV. What kedge.h says of threads, pointers, order
 * and results holds here.
 *
 * Who hears binds a VQP to a port and posts receives there; who sends connects a VQP to that port
 * and posts SENDs, which arrive once each and in order. A message comes with a VQP that is
 * connected to its sender, and an answer is a SEND there, for which the sender has posted receives
 * on the VQP that it has sent from:
 *
 *   hears: kedge_bind(), kedge_post_recv(), kedge_pop_msgs(), kedge_post_send() to msg.from
 *   sends: kedge_connect_port(), kedge_post_recv() for the answer, kedge_post_send()
 *
 * Requests end in kedge_poll(), receives in kedge_pop_msgs(), and never the other way round.
 * kedge_wait() and kedge_arm() return 1 for either.
 *
 * Errors are verbs'. Of a SEND: IBV_WC_RNR_RETRY_EXC_ERR: no receive was posted there in time;
 * IBV_WC_REM_INV_REQ_ERR: it was longer than the receive; IBV_WC_REM_OP_ERR: nobody has bound the
 * port, or not for this tenant, or the VQP that it answers is gone; IBV_WC_RETRY_EXC_ERR: the peer
 * is gone. Its VQP is in error then, as after any other request, until it is connected again: what
 * stood behind it is flushed, in order; its receives stay posted until it is destroyed. Who hears
 * is not to blame: of a message that is longer the receive ends with IBV_WC_LOC_LEN_ERR, and its
 * VQP hears on.
 *
 * An agent carries messages where its operator says so (messages in kedge-agent.conf(5)). Else
 * max_recvs (struct kedge_session_info) is 0, and every call here but kedge_tenant_number() is
 * -EOPNOTSUPP and changes nothing. A SEND to a node whose agent carries none is refused
 * (IBV_WC_LOC_QP_OP_ERR).
 */
#ifndef KEDGE_MSG_H
#define KEDGE_MSG_H

#include <kedge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- hearing */

/* What workers of the session's tenant, on any node, send to that port of this host's endpoint is
 * for q from now on, until kedge_vqp_destroy() or the end of the session; of other tenants nobody
 * is heard there but whom kedge_port_grant() lets in. A tenant's ports are its own, any number of
 * 32 bits. A request to the agent, of which no other node hears. Bound to that port already: 0.
 * -EISCONN: q is connected, or bound to another port; -EADDRINUSE: another VQP of the tenant, on
 * this node, has the port; -EDQUOT: as many are bound as may be, or the tenant has used up its
 * control operations; -ENOMEM; -EOPNOTSUPP; -ETIMEDOUT. */
KEDGE_API int kedge_bind(struct kedge_vqp *q, uint32_t port);

/* Workers of that tenant, on any node of the pool, reach q's port too, as those of the session's
 * own do, until kedge_port_revoke(), or as long as q is bound; nobody does without. q is bound
 * (-ENOTCONN). Who sends names the owner (kedge_connect_port_of()), and his agent says of which
 * tenant he is. Whether there is such a tenant nobody says. They share q's receives with the
 * session's tenant, which goes first where there are too few, and at this node they all have
 * together what one tenant may have of the places for streams. Granted already, or the session's
 * own tenant: 0. Requests to the agent, of which no other node hears.
 *
 * After kedge_port_revoke() nothing more of that tenant goes into a receive, but what the session
 * has to pop already; a message that is under way, or sent later, ends with IBV_WC_REM_OP_ERR, as
 * if the port were not bound. A large one stops within a millisecond, behind the pieces that are
 * out by then. It is never refused for a quota.
 *
 * -EINVAL: no tenant's name; -ENOTCONN; -EDQUOT: q has let in KEDGE_PORT_TENANTS, or the tenant as
 * many as it may on this node, or it has used up its control operations; -ENOENT, of revoke: it was
 * not let in; -EOPNOTSUPP, also of an agent of before this; -ETIMEDOUT. */
#define KEDGE_PORT_TENANTS 16 /* of one VQP */
KEDGE_API int kedge_port_grant(struct kedge_vqp *q, const char *tenant);
KEDGE_API int kedge_port_revoke(struct kedge_vqp *q, const char *tenant);

/* Posts a list of receives, as ibv_post_recv: wr_id, next, and 0 to 4 SGEs, each inside one arena,
 * where one message goes. On a VQP that is bound they are for whoever sends to its port; on one
 * that is connected, or will be, for answers to what it sends. On failure *bad is the first that
 * was not posted; those before it were. bad may be NULL, and wr, which posts nothing. -EINVAL:
 * malformed; -ENOMEM: the session has max_recvs of them (struct kedge_session_info), posted or not
 * popped yet: pop first; or the ring is full, or there is no memory; -EOPNOTSUPP. What they name is
 * the agent's to write until they are popped; after kedge_vqp_destroy(), until the session ends, or
 * a request to the agent that was made since has been answered. */
KEDGE_API int kedge_post_recv(struct kedge_vqp *q, struct ibv_recv_wr *wr,
                              struct ibv_recv_wr **bad);

/* A receive that has ended. */
struct kedge_msg {
    /* wr_id: the receive's; qp_num: of the VQP that it was posted on; opcode: IBV_WC_RECV, or
     * IBV_WC_RECV_RDMA_WITH_IMM; byte_len: of the message, or of that WRITE; imm_data where
     * wc_flags has IBV_WC_WITH_IMM; status and vendor_err as of kedge_poll(). */
    struct ibv_wc wc;
    /* Where an answer goes: a VQP that is connected to the one that the message was sent from, made
     * of what the message says, with no lookup and no system call; if this host does not know the
     * sender's endpoint, the first post to it asks the agent, as kedge_connect() does and with its
     * errors. Where the receive was posted on a connected VQP, that one. It is the worker's: all
     * messages of one sender have the same, until the worker destroys it, which it may at any time,
     * or connects it elsewhere. NULL: the session had no VQP left; or there is no message
     * (wc.status). */
    struct kedge_vqp *from;
    uint32_t tenant; /* the sender's, as its agent says: its number (kedge_tenant_number()) */
};

/* The number by which messages and struct kedge_session_info name the tenant of that name: the same
 * on every node, and whether there is such a tenant or not. 0, and kedge_last_error() says why:
 * that is no tenant's name. Any thread, with or without a session; no system call. */
KEDGE_API uint32_t kedge_tenant_number(const char *tenant);

/* Up to n receives of all the session's VQPs that have ended, those of one VQP in the order in
 * which they have: messages of one sender in the order in which they were sent. msgs has room for
 * n, and may be NULL if that is 0. A count, or as kedge_session_status() when nothing is left and
 * the session has ended, or the agent stands still (-EHOSTDOWN). System calls: as kedge_poll().
 * What a worker does not pop keeps its receive: where none is left its senders wait, and are told
 * so in the end (IBV_WC_RNR_RETRY_EXC_ERR). While messages are popped completions of requests are
 * put aside for kedge_poll(), as many as cq_entries; with more than that the next messages wait
 * behind them. -EOPNOTSUPP. */
KEDGE_API int kedge_pop_msgs(struct kedge_session *s, int n, struct kedge_msg *msgs);

/* ---- sending */

/* kedge_connect(), and q's SENDs go to that port of the session's tenant there, which
 * kedge_connect() forgets again. Whether somebody has bound it says the first SEND. Errors: as
 * kedge_connect(); -EISCONN: q is bound; -EOPNOTSUPP.
 *
 * On such a VQP, and on struct kedge_msg's, kedge_post_send() takes IBV_WR_SEND and
 * IBV_WR_SEND_WITH_IMM besides, with the flags that a WRITE has: 0 to 3 SGEs of 1 GiB together at
 * the most (-EMSGSIZE), or 128 bytes inline. One of more than 16 KiB its receiver's agent may
 * READ: nothing behind it goes until that is done, and if it fails it completes when nobody can
 * READ it any more, which may take a lease; after kedge_vqp_destroy() it may be READ for as long.
 * An agent that does not know such has 16 KiB as the most. imm_data arrives as it is. On any other
 * VQP that is -EDESTADDRREQ. A SEND completes when the message is in a receive; what was posted
 * before it on its VQP, a WRITE too, has been carried out when it is heard. READs, WRITEs and
 * atomics behind it are carried out when a receive is posted for it that no other message takes,
 * and not before, as on a queue pair of one's own; but where it fails all the same (it is too long
 * for that receive, the port is gone, the peer is) they may have been, which kedge_never_sent()
 * tells. A SEND's memory is its own until it completes: it may go again when a READ or an atomic
 * behind it has been answered already, and so must not be sent from where that answer goes.
 * IBV_WR_RDMA_WRITE_WITH_IMM is a WRITE, and a message behind it in the same queue pair that says
 * so: it takes a receive, which ends with IBV_WC_RECV_RDMA_WITH_IMM, the immediate, and the
 * WRITE's byte_len, however long the receive is.
 * It has one completion (IBV_WC_RDMA_WRITE), which says how either has failed. Lists of WRITEs that
 * end with a message: kedge_notify.h. */
KEDGE_API int kedge_connect_port(struct kedge_vqp *q, const uint8_t gid[16], uint32_t port);
/* The same, to a port of that tenant's, which has let the session's in (kedge_port_grant()). If it
 * has not, the SEND ends as one does to a port that nobody has bound: IBV_WC_REM_OP_ERR. What that
 * tenant sends to q in answer comes to q, and from no other tenant anything does. -EINVAL: no
 * tenant's name. */
KEDGE_API int kedge_connect_port_of(struct kedge_vqp *q, const uint8_t gid[16], const char *tenant,
                                    uint32_t port);

#ifdef __cplusplus
}
#endif
#endif
