/* SPDX-License-Identifier: Apache-2.0 */
/* libkedge: what a worker links.
 *
 * A session is a worker's attachment to its host's agent. In it the worker has memory that is
 * registered already (arenas), and virtual queue pairs (VQPs), each of which behaves as a reliable
 * connection once connected: requests execute in order, completions come in order, work requests
 * and completions are verbs' own structs.
 *
 * Threads: a session and everything in it belongs to one thread at a time; several sessions are
 * independent. Fork: a child must not use its parent's session (calls answer -EPERM) but may open
 * one of its own. Signals: no call is async-signal-safe. The library installs no handlers, starts
 * no threads, prints nothing.
 *
 * Order: what is asked of the agent (connecting to a stranger, registering, withdrawing, importing)
 * stands behind the posts of before. While completions that are not polled leave those no room, it
 * waits too, and ends with -ETIMEDOUT after 5 s: poll, then repeat it.
 *
 * All calls return 0 or a count, or -errno; outputs are untouched on failure. Addresses in requests
 * are this process's own for local memory, and the owner's own for remote memory (struct
 * kedge_remote).
 *
 * A pointer may be NULL where that is said here. Any other that is NULL is refused and changes
 * nothing: kedge_last_error() names it, what returns int returns -EINVAL (kedge_never_sent(): 0),
 * what returns something else 0 or NULL. A pointer to what is gone is the worker's own mistake, as
 * in free(). */
#ifndef KEDGE_H
#define KEDGE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h> /* types only: the library does not call or need libibverbs */

#ifdef __cplusplus
extern "C" {
#endif

#define KEDGE_API __attribute__((visibility("default")))

#define KEDGE_DEFAULT_SOCKET "/run/kedge/agent.sock"

struct kedge_session;
struct kedge_vqp;
struct kedge_mr;

/* ---- sessions */

struct kedge_open_attr {
    const char *socket; /* NULL: $KEDGE_SOCKET unless empty, else KEDGE_DEFAULT_SOCKET */
    const char *pool;   /* NULL: the tenant's */
    const char *token;  /* NULL: $KEDGE_WORKER_TOKEN; "" or neither: by the socket, else by uid */
    /* How long the agent may stand still before kedge_wait(), kedge_poll() and the others say so,
     * in milliseconds; 0: $KEDGE_AGENT_TIMEOUT_MS (where 0 is no limit), else 3000; negative: no
     * limit. Less than 20 is 20. */
    int agent_timeout_ms;
    /* For how long kedge_open() asks again, whenever the agent says it may, while that answers
     * -EAGAIN, in milliseconds; 0: it does not; negative: no limit. */
    int wait_ms;
    /* NULL; or where -EAGAIN leaves after how many milliseconds to ask again, for those who do not
     * wait in kedge_open(). Nothing else is written there. */
    uint32_t *retry_ms;
};

/* Attaches to the agent. attr may be NULL. Blocks for the attach alone: microseconds; and up to 4 s
 * in the agent's queue, where more workers come at once than it has sessions ready for. The agent
 * answers before the 5 s of this call are over, also where it reads late that one has come.
 * -ENOENT, -ECONNREFUSED: no agent there; -EPROTOTYPE: the socket is another one, such as the
 * agent's admin_socket; -EACCES: this user may not open the socket, or no tenant has this uid, or
 * the token (which is said a second later); -EDQUOT: the tenant's sessions are used up; -EAGAIN:
 * none is ready now, or the tenant's pool is being made, and when to come again the sentence and
 * retry_ms say (wait_ms); -EBUSY: the node is cordoned or drains, or has not, or cannot make, the
 * tenant's pool; -EPROTONOSUPPORT: versions. kedge_last_error() has the sentence. */
KEDGE_API int kedge_open(const struct kedge_open_attr *attr, struct kedge_session **out);
/* Ends the session: VQPs and regions go with it, what is in flight is dropped. Never fails. NULL is
 * allowed. */
KEDGE_API void kedge_close(struct kedge_session *s);

struct kedge_session_info {
    uint8_t gid[16]; /* this host's endpoint */
    uint32_t session, tenant;
    uint32_t max_vqps;
    uint32_t max_inflight; /* posts not yet completed, over all VQPs */
    uint32_t cq_entries;   /* completions that may wait to be polled */
    uint32_t max_recvs;    /* receives posted or not popped yet (kedge_msg.h); 0: no messages */
    size_t arena_bytes;    /* of the first arena */
};
KEDGE_API void kedge_session_query(const struct kedge_session *s, struct kedge_session_info *out);
/* 0 while the agent serves the session; else why it ended, as -errno (-EPIPE: the agent is gone or
 * restarted: open again; -EPROTO: the agent found the rings damaged; -EACCES: too many wrong keys).
 * -EHOSTDOWN: it has not ended, but the agent has stood still for agent_timeout_ms or longer: it is
 * stopped, or gets no processor. When it goes on, so does the session, with all that is in flight.
 */
KEDGE_API int kedge_session_status(const struct kedge_session *s);
/* What there is to hear beside completions. From the first call on, of this or of
 * kedge_dereg_mrs_begin(), kedge_wait() returns early, once, for each that is new. These bits, or
 * 0; or as kedge_session_status(). Costs a few loads. */
enum kedge_notice {
    /* The operator takes this node, or the tenant's pool, away: finish, and close the session. It
     * is ended when the time for that is over. Stays while that is so. */
    KEDGE_NOTICE_DRAIN = 1,
    /* Regions were revoked since the last call: kedge_mr_status() says which. */
    KEDGE_NOTICE_REVOKED = 2,
    /* All that kedge_dereg_mrs_begin() has begun is over: kedge_dereg_mrs_wait() does not wait. */
    KEDGE_NOTICE_WITHDRAWN = 4,
    /* Counters were raised since the last call: kedge_counter_read() says how far. */
    KEDGE_NOTICE_COUNTER = 8,
};
KEDGE_API int kedge_session_notices(struct kedge_session *s);
/* The sentence of this thread's last failure. Borrowed until its next call. Never NULL. */
KEDGE_API const char *kedge_last_error(void);

/* ---- memory */

/* Registered memory from the session's arenas, 64-byte aligned, zeroed when the arena is new. size
 * 1 or more. Asks the agent for another arena when the present ones are full (a message to the
 * agent; else none). -ENOMEM, -EDQUOT. *lkey is for the SGEs that name it. */
KEDGE_API int kedge_alloc(struct kedge_session *s, size_t size, void **addr, uint32_t *lkey);
/* Gives it back. It must not be used by requests in flight or by a region. addr may be NULL. */
KEDGE_API void kedge_free(struct kedge_session *s, void *addr);

/* In kedge_reg_mr()'s access, beside at least one of IBV_ACCESS_REMOTE_*: the region is given back
 * without waiting for the lease. An ordinary one is given back when no peer believes in it any
 * more, which takes the lease's time; a peer whose machine stood still for longer is then kept out
 * by the device, which keeps deadlines (`soft`) or has lost the region's own registration by then
 * (all others). Of a fenced one the registration goes at once, on every device.
 *
 * The registration takes the device microseconds to milliseconds, if none was made ahead, and
 * counts to the agent's limits (fenced_regions, locked memory); the session's later requests wait
 * for it. Any address and length will do. Tell peers before it is deregistered, or before the
 * session ends: one that still uses it then gets IBV_WC_REM_ACCESS_ERR, and its agent has a broken
 * connection to make anew, which may cost others on it the WRITEs and atomics that stood behind. */
#define KEDGE_MR_FENCED (1 << 16)

/* Likewise, and not both: the region gets no registration of its own where every other one has (on
 * devices that keep no deadlines). Then time alone keeps peers out: one whose machine was stopped
 * for longer than the lease, with requests under way, can write there after kedge_dereg_mr() has
 * returned. It saves the registration: for whom regions that come and go by the thousand matter
 * more than that. */
#define KEDGE_MR_LEASE_ONLY (1 << 17)

/* Makes [addr, addr + length), inside memory from kedge_alloc(), a region that peers may use.
 * access: of IBV_ACCESS_REMOTE_READ, _REMOTE_WRITE, _REMOTE_ATOMIC (0: local alone, costs nothing),
 * and KEDGE_MR_FENCED or KEDGE_MR_LEASE_ONLY. -EINVAL: not inside one arena, or access that makes
 * no sense (or an agent of before these two); -EDQUOT; -ENOSPC: the node's MR table is full;
 * -EOPNOTSUPP: _REMOTE_ATOMIC, and the node's device has none. Fenced: -EDQUOT also when the agent
 * has as many as it may. But for soft's ordinary ones and LEASE_ONLY: -ENOMEM: the device takes no
 * more; -ETIMEDOUT: a region that was made too late for this call lasts until the session ends, and
 * nobody has its key. */
KEDGE_API int kedge_reg_mr(struct kedge_session *s, void *addr, size_t length, int access,
                           struct kedge_mr **out);
/* Withdraws it. Returns when no remote operation can touch it any more (the lease has run out, and
 * where the region had a registration of its own that is gone), or -ETIMEDOUT: then the region is
 * still there, and the call is to be repeated. After any other result but -EPERM the handle is
 * gone. */
KEDGE_API int kedge_dereg_mr(struct kedge_mr *mr);
/* The same for n regions of one session, in about the time that one takes: all are withdrawn at
 * once, and wait for the same lease. -ETIMEDOUT: the handles are all still there, and the call is
 * to be repeated with the same ones. After any other result but -EPERM and -EINVAL (NULL, or
 * regions of several sessions) the handles are gone. n 0 is allowed, mrs may be NULL then. */
KEDGE_API int kedge_dereg_mrs(struct kedge_mr *const *mrs, size_t n);
/* The same in two steps. The first returns at once, but for regions with names (kedge_publish()),
 * which the agent is asked to take back before: peers find none of the regions any more, but
 * what they have begun may go on, so that the memory is not free yet and the handles remain.
 * 31 requests of up to 12 regions are under way at a time, and a further one waits for the first of
 * them: give many back in one call. -ETIMEDOUT: some are not withdrawn yet; call it again, what was
 * begun is left alone. The second waits for all that the session has begun so, for timeout_ms at
 * most (-1: no limit; 0 only looks): 0: all are gone with their handles, or the session has ended,
 * and their handles are gone; or how many are left, whose handles, with those of all others that
 * were begun, are still there. From the first call on kedge_wait() returns, without a completion,
 * when there is nothing left to wait for (KEDGE_NOTICE_WITHDRAWN). */
KEDGE_API int kedge_dereg_mrs_begin(struct kedge_mr *const *mrs, size_t n);
KEDGE_API int kedge_dereg_mrs_wait(struct kedge_session *s, int timeout_ms);
/* Whether peers may still use it: 0; -EACCES: the operator has revoked it (peers' requests to it
 * end with IBV_WC_REM_ACCESS_ERR), and it is to be deregistered; -ETIMEDOUT: not known now. The
 * memory stays the session's, for local use and for another region. Two loads, and a question to
 * the agent when something of the session was revoked. */
KEDGE_API int kedge_mr_status(struct kedge_mr *mr);
KEDGE_API uint32_t kedge_mr_lkey(const struct kedge_mr *mr);
KEDGE_API uint32_t
kedge_mr_rkey(const struct kedge_mr *mr); /* virtual, random: 0 without remote access */

/* A region of another worker. rkey goes into wr.rdma.rkey, addr.. into wr.rdma.remote_addr. */
struct kedge_remote {
    uint8_t gid[16];
    uint64_t addr, length;
    uint32_t rkey;
    int access;
};
#define KEDGE_TOKEN_MAX 96
/* The region as printable text, with the right to use it from another tenant. -ENOSPC if size <
 * KEDGE_TOKEN_MAX; -EACCES: kedge_mr_status() has said that it is revoked. */
KEDGE_API int kedge_mr_export(const struct kedge_mr *mr, char *text, size_t size);
/* What a token says; the session may use that region from now on. Does not connect, and sends the
 * agent a request whose answer only calls after the session's first 256 wait for. -EINVAL;
 * -EDQUOT: there are 256 different ones, which last as long as the session, or until
 * kedge_unimport() is called; -EXDEV: the region is of a worker in another pool, which is kept
 * apart. */
KEDGE_API int kedge_import(struct kedge_session *s, const char *text, struct kedge_remote *out);
/* The same of n tokens, with a message for each sixteen: texts and out have room for n, and may be
 * NULL if that is 0. One that is none, or of another pool, is named, and then none is imported;
 * after any other failure some may be. An agent of before this is asked for one after the other. */
KEDGE_API int kedge_import_many(struct kedge_session *s, const char *const *texts, size_t n,
                                struct kedge_remote *out);
/* Gives back what kedge_import(), or kedge_lookup_of(), made: there is room for another one, and
 * requests that are posted from now on are refused as with a key that nobody gave; those that were
 * posted before may go on. By rkey, whatever else is in *remote: what was imported twice is one
 * import, and is gone for both. A message. -ENOENT: the session
 * has imported none with that rkey, as after kedge_lookup() in its own tenant; -EDQUOT: the tenant
 * has used up its control operations; -EOPNOTSUPP: the agent is of before this; -ETIMEDOUT. */
KEDGE_API int kedge_unimport(struct kedge_session *s, const struct kedge_remote *remote);

/* Workers of the session's tenant, on any node, find the region by this name from now on: 1 to
 * KEDGE_NAME_MAX bytes of UTF-8 without control characters. A name is one region's, as long as its
 * owner lives: it is taken back by kedge_unpublish(), with the region (deregistered, or revoked)
 * and with the session, however that ends. A region may have several. Returns when every metaserver
 * that the agent reaches shows it: a message, and milliseconds, 5 s at most. Published again: 0.
 * -EEXIST: another region has the name; -EINVAL: no name, or nothing that others may use; -EACCES:
 * the region was revoked; -EDQUOT: the session, or the tenant, has as many names as it may;
 * -ENOSPC: there is no room for more; -EAGAIN: too many are being published: try again in a second,
 * or the metaservers' store was put back and names wait for who had them, for a lease of nodes at
 * most; -EHOSTUNREACH, -ETIMEDOUT: no metaserver has answered, and the name is nobody's;
 * -EOPNOTSUPP: the agent, or its metaservers, are of before these names. */
#define KEDGE_NAME_MAX 255
KEDGE_API int kedge_publish(struct kedge_mr *mr, const char *name);
/* It is not found by that name any more. -ENOENT: it is not published so; -EHOSTUNREACH: a
 * metaserver has not answered, and may show it until it does. */
KEDGE_API int kedge_unpublish(struct kedge_mr *mr, const char *name);
/* The same for workers of another tenant, which need not be there yet, and for those alone: they
 * find the region as a name of this session's tenant, with kedge_lookup_of(). The region gets a
 * lease of its own for each such name, with another rkey, which counts as a region does. It ends
 * with the name: kedge_unpublish_for() returns when nobody of that tenant can touch the region any
 * more, or -ETIMEDOUT, as kedge_dereg_mr(), which takes all of them back with the region. Names for
 * one tenant and another, and for the session's own, are different names. -EINVAL also: no tenant's
 * name, or the session's own; and as kedge_publish() and kedge_reg_mr(). -EACCES also: the operator
 * has revoked that lease: unpublish it first. */
KEDGE_API int kedge_publish_for(struct kedge_mr *mr, const char *name, const char *tenant);
KEDGE_API int kedge_unpublish_for(struct kedge_mr *mr, const char *name, const char *tenant);
/* Finds the region that a worker of the session's tenant has published under that name: 1 to 255
 * bytes of UTF-8. The agent does one READ of a metaserver's table; the session may use the region
 * from now on. Of one that its owner publishes again, after a restart, that says where it is now.
 * -ENOENT: none is published so, as far as the metaservers that can be asked know; -EXDEV: it is in
 * another pool; -EHOSTUNREACH: no metaserver answers; -EAGAIN: the agent looks up too much for this
 * tenant; -EDQUOT: the tenant has used up its control operations; -EOPNOTSUPP: the agent, or every
 * metaserver, is older than names; -ETIMEDOUT. */
KEDGE_API int kedge_lookup(struct kedge_session *s, const char *name, struct kedge_remote *out);
/* The same of a region that a worker of that tenant has published for this session's
 * (kedge_publish_for()). One that was published for others is not found, and costs as many READs as
 * one that was not. Each counts to the session's 256 imports, until kedge_unimport(): -EDQUOT. Of
 * the session's own tenant it is kedge_lookup(). -EINVAL also: no tenant's name. */
KEDGE_API int kedge_lookup_of(struct kedge_session *s, const char *tenant, const char *name,
                              struct kedge_remote *out);

/* ---- virtual queue pairs */

/* user may be NULL; kedge_vqp_user() returns it. -EMFILE: the session's max_vqps are in use. No
 * message, no system call. */
KEDGE_API int kedge_vqp_create(struct kedge_session *s, void *user, struct kedge_vqp **out);
/* What is in flight gets no completions, and may go on for a while: a READ into its buffer too.
 * NULL is allowed. */
KEDGE_API void kedge_vqp_destroy(struct kedge_vqp *q);
KEDGE_API uint32_t kedge_vqp_num(const struct kedge_vqp *q); /* qp_num in completions */
KEDGE_API void *kedge_vqp_user(const struct kedge_vqp *q);
/* The VQP of a completion's qp_num, or NULL. */
KEDGE_API struct kedge_vqp *kedge_vqp_find(const struct kedge_session *s, uint32_t qp_num);

/* Connects to the endpoint (16 bytes, network order). A peer that this host knows: no system call,
 * no message. An unknown one: its agent does one READ of a metaserver's table. Success promises
 * that the name was resolved, not that the peer lives. Also puts a VQP in error back to use;
 * completions of before come first. -ENOENT: nobody has that GID; -EHOSTUNREACH: no metaserver
 * answers, or they know the node from their store and its agent has registered with none of them
 * within 4 s, as when they have just begun; -ENOSPC: the agent has no room to know one more;
 * -EAGAIN: it looks up too many for this tenant; -EOPNOTSUPP: the node has another transport;
 * -ETIMEDOUT. */
KEDGE_API int kedge_connect(struct kedge_vqp *q, const uint8_t gid[16]);
/* The same by a node's name, which the agent asks of a metaserver: a message, and milliseconds.
 * -EAGAIN: the tenant's workers have asked for too many names in this second. */
KEDGE_API int kedge_connect_node(struct kedge_vqp *q, const char *name);

/* ---- posting and polling */

/* In send_flags, beside libibverbs' own: this READ or WRITE may be carried out together with the
 * one that the VQP posted before it, if it goes on where that one ends at the peer. Then their
 * bytes are READ or written in any order, as those of one request are. The device has fewer
 * requests so; each has its own completion, in its order, as without. */
#define KEDGE_SEND_RELAXED (1u << 16)

/* Posts a list, as ibv_post_send. Opcodes RDMA_READ, RDMA_WRITE, ATOMIC_CMP_AND_SWP,
 * ATOMIC_FETCH_AND_ADD, and those of kedge_msg.h; flags SIGNALED, INLINE (WRITE, 128 bytes), FENCE,
 * KEDGE_SEND_RELAXED; 1 to 4 SGEs (0: no bytes), each inside one arena. A region of one's own may
 * overlap the SGEs: what the destination holds then is not defined, and nothing else is touched. On
 * failure *bad is the first that was not posted; those before it were. bad may be NULL, and wr,
 * which posts nothing. -EINVAL: malformed; -ENOTCONN; -ENOMEM: too much in flight, or completions
 * not polled; -EPIPE and others: as kedge_session_status(). No system call while the agent's lane
 * is awake. */
KEDGE_API int kedge_post_send(struct kedge_vqp *q, struct ibv_send_wr *wr,
                              struct ibv_send_wr **bad);
/* wc has room for n, and may be NULL if that is 0. Up to n completions of requests of all the
 * session's VQPs (wc.qp_num tells which), in order for each; receives' are kedge_msg.h's. Of one
 * that failed kedge_never_sent() says whether it may be repeated. A count, or as
 * kedge_session_status() when nothing is left and the session has ended, or the agent stands still
 * (-EHOSTDOWN). No system call, but for a look at the socket once in 65536 calls in a row that
 * found nothing; and where the agent's lane has no processor but this thread's, one in 16 of such
 * sleeps until it has answered, 0.1 ms at most, four times at most; where the last of these sleeps
 * ended with an answer, the first one 10 ms at most. */
KEDGE_API int kedge_poll(struct kedge_session *s, int n, struct ibv_wc *wc);
/* Sleeps until a completion can be polled, or there is something new in kedge_session_notices(): 1,
 * or 0 after timeout_ms (-1: no limit), or as kedge_session_status(). While the agent stands still,
 * for agent_timeout_ms or longer, it is -EHOSTDOWN, after a tenth of a second at most. */
KEDGE_API int kedge_wait(struct kedge_session *s, int timeout_ms);
/* The same for n completions at once (1 or more), of receives too, so that the worker is woken once
 * for them. 1 when so many can be taken; or fewer, if one of them failed, or no more are out than
 * are there, or there is something new in kedge_session_notices(): take them, and wait for the
 * rest. With nothing out it is kedge_wait(). 0 after timeout_ms, when there may be fewer. -EINVAL:
 * n is less than 1. */
KEDGE_API int kedge_wait_many(struct kedge_session *s, int n, int timeout_ms);
/* To sleep in poll() or epoll instead: a descriptor that becomes readable once for each
 * kedge_arm(), and stays so until the next one. The same one at each call; the first asks the agent
 * for it. It is the session's, which closes it: it is watched for POLLIN, and neither read nor
 * written. Readable for ever, with POLLHUP, when the session is over or the agent gone. Costs this
 * process a descriptor. A forked child has it too, but these calls are the parent's.
 * -EOPNOTSUPP: the agent is of before this; -EAGAIN: those of earlier sessions of the tenant are
 * not closed yet; -EDQUOT: the tenant has used up its control operations; -EMFILE; -ETIMEDOUT; or
 * as kedge_session_status(). */
KEDGE_API int kedge_fd(struct kedge_session *s);
/* As ibv_req_notify_cq(), without its race: 1: there is something that kedge_wait() would return 1
 * for: nothing is armed, poll. 0: there was nothing, and the descriptor becomes readable when there
 * is; or before, where something came and was taken meanwhile: so call kedge_poll() until it finds
 * nothing (and kedge_pop_msgs(), where receives are posted), then this, and sleep only when it is
 * 0. A system call. -EINVAL: kedge_fd() was never
 * called; or as kedge_session_status(): an agent that stands still does not make it readable, so
 * that who has to hear of that sleeps with a time-out and calls this again. */
KEDGE_API int kedge_arm(struct kedge_session *s);

/* ---- odds */

KEDGE_API const char *kedge_version(void);
/* Of a completion with an error. 1: nothing of the request was or will be carried out, and it may
 * be repeated. 0: it was under way, a WRITE or an atomic may have been carried out, a WRITE in
 * part, a message may be taken yet; or it succeeded; or vendor_err is newer than this library. A
 * READ may be repeated in any case. */
KEDGE_API int kedge_never_sent(const struct ibv_wc *wc);
/* What a completion's status means; ibv_wc_status_str() is libibverbs'. Never NULL; for a status
 * without a sentence its number, borrowed until the thread's next call. */
KEDGE_API const char *kedge_wc_status_str(enum ibv_wc_status status);
/* Text of vendor_err in a completion: why the agent refused or ended the request. Never NULL. */
KEDGE_API const char *kedge_reason_str(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif
#endif
