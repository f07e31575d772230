/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[512];
static _Thread_local const char *last = "";

int client_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    last = sentence;
    return status;
}

int client_fail_text(int status, const char *literal)
{
    last = literal;
    return status;
}

bool client_say_null(const char *function, const char *what)
{
    client_fail(-EINVAL, "%s: %s is NULL", function, what);
    return true;
}

const char *kedge_last_error(void)
{
    return last;
}

const char *kedge_version(void)
{
    return KEDGE_VERSION;
}

static const struct {
    int status; /* of a session that ends for it */
    const char *text;
} reasons[] = {
    [SCHEMA_REASON_NONE] = {-EPIPE,
                            "nothing beside its status (kedge_wc_status_str() says what that "
                            "means)"},
    [SCHEMA_REASON_DESCRIPTOR] = {-EPROTO, "malformed request"},
    [SCHEMA_REASON_RING] = {-EPROTO, "the submission ring's indices make no sense"},
    [SCHEMA_REASON_LOCAL_RANGE] = {-EPIPE, "local memory outside of the session's arenas, or more "
                                           "than the device can carry at a time"},
    [SCHEMA_REASON_REMOTE_RANGE] = {-EPIPE, "remote memory outside of its region"},
    [SCHEMA_REASON_VKEY] = {-EPIPE, "unknown or withdrawn remote key"},
    [SCHEMA_REASON_ACCESS] = {-EACCES, "the remote region does not permit this operation"},
    [SCHEMA_REASON_ATOMIC] = {-EPIPE, "an atomic's remote address is no multiple of 8"},
    [SCHEMA_REASON_ALIGNMENT] = {-EPIPE,
                                 "a region's address and its place in the arena differ by no "
                                 "multiple of 8: no region of kedge_reg_mr() is so"},
    [SCHEMA_REASON_DEVICE] = {-EPIPE, "this node's device does not take the request as it is: try "
                                      "fewer SGEs (rdmactl doctor says what it takes)"},
    [SCHEMA_REASON_ATOMICS] = {-EOPNOTSUPP, "this node's device has no atomics, or none over "
                                            "DC: use READ and WRITE (rdmactl doctor says what it "
                                            "has)"},
    [SCHEMA_REASON_NOT_CONNECTED] = {-EPIPE, "the queue pair is not connected"},
    [SCHEMA_REASON_STALE_PEER] = {-EPIPE,
                                  "never sent: the peer restarted or was forgotten: connect again"},
    [SCHEMA_REASON_QUOTA] = {-EDQUOT, "a session has 256 regions with remote access at most, and "
                                      "256 imported ones: deregister a region, or give back "
                                      "an imported one (kedge_unimport)"},
    [SCHEMA_REASON_GUESSES] =
        {-EACCES,
         "too many wrong remote keys (64, one is forgiven each second): open another session"},
    [SCHEMA_REASON_PEER_DOWN] = {-EPIPE, "never sent: the peer is down"},
    [SCHEMA_REASON_LOOKUP] = {-EHOSTUNREACH, "no metaserver answered"},
    [SCHEMA_REASON_AWAITED] = {-EHOSTUNREACH,
                               "the metaservers know the node, but its agent has not registered "
                               "with those that could be asked, as after their restart: try again "
                               "(`rdmactl node list` shows it as waiting)"},
    [SCHEMA_REASON_UNADDRESSED] = {-EDESTADDRREQ, "no kedge_connect_port() has said which port "
                                                  "this queue pair's SENDs go to"},
    [SCHEMA_REASON_LONG] = {-EMSGSIZE, "the message is longer than the buffer that was posted for "
                                       "it, or than a message may be"},
    [SCHEMA_REASON_PORT] = {-ECONNREFUSED,
                            "no queue pair of the peer's is bound to that port for this tenant, or "
                            "no counter of its has that token"},
    [SCHEMA_REASON_RECEIVER] = {-EAGAIN, "the receiver has posted no buffer for too long"},
    [SCHEMA_REASON_MESSAGES] = {-EOPNOTSUPP, "this node, or the peer's, carries no messages"},
    [SCHEMA_REASON_BATCH] = {-EINVAL,
                             "never sent: there is no such batch, or it is posted already"},
    [SCHEMA_REASON_CANCELLED] = {-ECANCELED, "the batch was cancelled: kedge_batch_status() says "
                                             "how much of it was carried out"},
    [SCHEMA_REASON_BATCHES] =
        {-EDQUOT, "no room for one more batch: a session has 32, and a tenant half of what is left "
                  "of the agent's memory for them: free some, or prepare smaller ones"},
    [SCHEMA_REASON_DRAIN] = {-EPIPE, "the agent is stopping"},
    [SCHEMA_REASON_DEVICE_LOST] =
        {-EPIPE, "this node's device was removed or broke, and its agent ends: open another "
                 "session when the agent has begun again"},
    [SCHEMA_REASON_CLOSED] = {-EPIPE, "the session was closed"},
    [SCHEMA_REASON_RESTARTED] = {-EPIPE, "the agent has restarted: open another session"},
    [SCHEMA_REASON_TENANT] = {-EACCES, "the operator has taken away the tenant of this user"},
    [SCHEMA_REASON_REVOKED] = {-EACCES, "the operator has revoked the region: deregister it"},
    [SCHEMA_REASON_NODE_DRAINED] = {-EPIPE,
                                    "the operator drains this node, and the time that workers "
                                    "had to end by themselves is over: go to another host"},
    [SCHEMA_REASON_LEASE] =
        {-EPIPE, "never sent: the region's owner has set mr_lease shorter than a request "
                 "may take on this node's device"},
    [SCHEMA_REASON_QUOTA_VQPS] =
        {-EDQUOT, "the tenant's quota of queue pairs (vqps) is used up: destroy some, or have it "
                  "raised where `rdmactl agent status` says that it is from"},
    [SCHEMA_REASON_QUOTA_MRS] = {-EDQUOT, "the tenant's quota of memory regions (mrs) is used up"},
    [SCHEMA_REASON_QUOTA_CONTROL_OPS] = {-EDQUOT,
                                         "the tenant's quota of control operations per "
                                         "second (control_ops_per_s) is used up: try again "
                                         "in a moment"},
    [SCHEMA_REASON_CLOCK] =
        {-EPIPE, "never sent: this host's clock cannot be trusted now, and nothing but time guards "
                 "the region from requests that come late (`rdmactl agent status` says what is "
                 "wrong with the clock; the region's owner may register it without "
                 "KEDGE_MR_LEASE_ONLY)"},
    [SCHEMA_REASON_POOL] = {-EPIPE, "the operator takes the pool away from this node, and the time "
                                    "that workers had to end by themselves is over: go to another "
                                    "host"},
    [SCHEMA_REASON_FENCED_REGIONS] = {-EDQUOT, "all fenced regions that this tenant can have of "
                                               "this agent's are in use (raise "
                                               "fenced_regions in [pool] of its settings, or "
                                               "register without KEDGE_MR_FENCED)"},
    [SCHEMA_REASON_REGISTER] =
        {-ENOMEM, "the device took no further registration: the agent's log "
                  "has the limit (or register with KEDGE_MR_LEASE_ONLY, which takes none)"},
    [SCHEMA_REASON_UNDER_WAY] = {-EPIPE, "it was under way when its connection broke, or when "
                                         "a message before it was refused: it may have been "
                                         "carried out, or not, or in part"},
    [SCHEMA_REASON_BEHIND] = {-EPIPE, "never sent: its queue pair is in error since an earlier "
                                      "request, until it is connected again"},
    [SCHEMA_REASON_ENDPOINTS] = {-EPIPE, "requests are out to as many endpoints as can be at a "
                                         "time, or as the tenant's share is of them: wait for "
                                         "completions, or raise max_peers in [pool] of the agent's "
                                         "settings"},
    [SCHEMA_REASON_MRS] = {-ENOSPC, "all memory regions that this tenant can have of this agent's "
                                    "are in use (raise max_mrs in [pool] of its settings)"},
    [SCHEMA_REASON_FORCED] = {-EAGAIN, "the operator revokes by force what peers reach in this "
                                       "memory, which takes long: try again soon, or use memory of "
                                       "another kedge_alloc()"},
};
enum { REASONS = sizeof reasons / sizeof *reasons };

/* A newer agent may give another one. */
static bool is_known(uint32_t reason)
{
    return reason < REASONS && reasons[reason].text != NULL;
}

int client_reason_status(uint32_t reason)
{
    return is_known(reason) ? reasons[reason].status : -EPIPE;
}

/* The agent gives every other reason to what no device was asked to do, or has certainly not done.
 */
int kedge_never_sent(const struct ibv_wc *wc)
{
    if (client_is_null(wc))
        return 0;
    return wc->status != IBV_WC_SUCCESS && (unsigned)wc->opcode != SCHEMA_WC_BATCH &&
           wc->vendor_err != SCHEMA_REASON_NONE && wc->vendor_err != SCHEMA_REASON_UNDER_WAY &&
           is_known(wc->vendor_err);
}

const char *kedge_reason_str(uint32_t vendor_err)
{
    return is_known(vendor_err) ? reasons[vendor_err].text : "a reason newer than this library";
}

static const char *const wc_statuses[] = {
    [IBV_WC_SUCCESS] = "success",
    [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR: the length is more than the device can carry",
    [IBV_WC_LOC_QP_OP_ERR] =
        "LOC_QP_OP_ERR: this node does not carry it out: its reason says why, and "
        "where it has none the node's device takes it for malformed",
    [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR: the local memory is not the session's",
    [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR: a request before it has failed, and this one may have "
                            "been carried out unless "
                            "its reason says that it was never sent: connect the queue pair again",
    [IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR: the peer's device has answered nonsense",
    [IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR: the local memory does not permit this",
    [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR: the request is one that the agent, or the peer's "
                               "device, does not take",
    [IBV_WC_REM_ACCESS_ERR] =
        "REM_ACCESS_ERR: the remote region does not permit this, or is no more",
    [IBV_WC_REM_OP_ERR] = "REM_OP_ERR: the peer's device could not execute it",
    [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR: the peer does not answer, and may have carried it out "
                             "unless the reason says "
                             "that it was never sent: connect the queue pair again",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR: the peer has no room for it, and may "
                                 "have some yet for what was sent last, unless a reason is given",
    [IBV_WC_FATAL_ERR] = "FATAL_ERR: the device has failed",
    [IBV_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR: the peer's answer did not come in time",
    [IBV_WC_GENERAL_ERR] = "GENERAL_ERR: the device gives no reason",
};

const char *kedge_wc_status_str(enum ibv_wc_status status)
{
    static _Thread_local char unlisted[64];
    const unsigned number = (unsigned)status;
    if (number < sizeof wc_statuses / sizeof *wc_statuses && wc_statuses[number] != NULL)
        return wc_statuses[number];
    snprintf(unlisted, sizeof unlisted, "status %u, with which no request of Kedge ends", number);
    return unlisted;
}
