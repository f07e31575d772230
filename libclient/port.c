/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: who hears them, and whose SENDs go there. */
#include "receive.h"
#include "request.h"

#include <errno.h>

static int refuse_port(uint32_t port, int status)
{
    if (status == -EADDRINUSE)
        return client_fail(
            status,
            "another queue pair of this tenant, on this node, hears port %u: destroy "
            "it, or choose another port",
            port);
    return status;
}

int kedge_bind(struct kedge_vqp *q, uint32_t port)
{
    struct client_reply reply;
    if (client_is_null(q))
        return -EINVAL;
    struct kedge_session *s = q->session;
    int status = client_messages_check(s);
    if (status == 0)
        status = client_messages_make(s);
    if (status != 0)
        return status;
    if (q->state == CLIENT_VQP_CONNECTED || q->answers)
        return client_fail_text(-EISCONN, "the queue pair is connected: bind another one");
    if (q->state == CLIENT_VQP_HEARING && q->to != port)
        return client_fail(-EISCONN, "the queue pair is bound to port %u: bind another one",
                           (uint32_t)q->to);
    if (q->state == CLIENT_VQP_HEARING)
        return 0;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_BIND_PORT, .vqp = q->index, .vqp_gen = q->gen, .bind_port = {.port = port}};
    q->known = true;
    status = client_request(s, &d, &reply);
    if (status != 0 && status != -EALREADY) /* which was answered too late, in a former call */
        return refuse_port(port, status);
    q->state = CLIENT_VQP_HEARING;
    q->to = port;
    return 0;
}

int kedge_connect_port(struct kedge_vqp *q, const uint8_t gid[16], uint32_t port)
{
    if (client_is_null(q) || client_is_null(gid))
        return -EINVAL;
    int status = client_messages_check(q->session);
    if (status == 0)
        status = client_vqp_connect(q, gid, q->session->pool);
    if (status != 0)
        return status;
    q->to_kind = SCHEMA_SEND_TO_PORT;
    q->to = port;
    return 0;
}
