/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: who hears them, and whose SENDs go there. */
#include "lent.h"
#include "receive.h"
#include "request.h"
#include "schema/record.h"

#include <errno.h>

static int refuse_port(const struct kedge_session *s, uint32_t port, int status)
{
    if (status == -EADDRINUSE)
        return client_fail(
            status,
            "another queue pair of this tenant, on this node, hears port %u: destroy "
            "it, or choose another port",
            port);
    if (client_has_no_room(s, status))
        return client_fail_text(status, "the queue pair is bound to, or this tenant has, as many "
                                        "ports as may be on this node: destroy queue pairs that "
                                        "hear some");
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
        return refuse_port(s, port, status);
    q->state = CLIENT_VQP_HEARING;
    q->to = port;
    return 0;
}

static int connect_port(struct kedge_vqp *q, const uint8_t gid[16], uint32_t tenant, uint32_t port)
{
    const int status = client_vqp_connect(q, gid, q->session->pool);
    if (status != 0)
        return status;
    q->to_kind = SCHEMA_SEND_TO_PORT;
    q->to_tenant = tenant;
    q->to = port;
    return 0;
}

int kedge_connect_port(struct kedge_vqp *q, const uint8_t gid[16], uint32_t port)
{
    if (client_is_null(q) || client_is_null(gid))
        return -EINVAL;
    const int status = client_messages_check(q->session);
    return status != 0 ? status : connect_port(q, gid, 0, port);
}

/* ---- of and for other tenants */

uint32_t kedge_tenant_number(const char *tenant)
{
    return client_is_null(tenant) || client_check_tenant(tenant) != 0
               ? 0
               : schema_tenant_number(tenant);
}

static int check_guests(struct kedge_session *s, const char *tenant)
{
    const int status = client_messages_check(s);
    if (status != 0)
        return status;
    if ((s->features & SCHEMA_FEATURE_GUESTS) == 0)
        return client_fail_text(-EOPNOTSUPP, "this host's agent is of before ports for other "
                                             "tenants: run a newer kedge-agentd");
    return client_check_tenant(tenant);
}

int kedge_connect_port_of(struct kedge_vqp *q, const uint8_t gid[16], const char *tenant,
                          uint32_t port)
{
    if (client_is_null(q) || client_is_null(gid) || client_is_null(tenant))
        return -EINVAL;
    const int status = check_guests(q->session, tenant);
    if (status != 0)
        return status;
    const uint32_t number = schema_tenant_number(tenant);
    return connect_port(q, gid, number != q->session->tenant ? number : 0, port);
}

/* The session's own tenant is let in already. */
static int ask_for_guest(struct kedge_vqp *q, enum schema_op op, const char *tenant)
{
    struct client_reply unused;
    const int status = check_guests(q->session, tenant);
    if (status != 0)
        return status;
    if (q->state != CLIENT_VQP_HEARING)
        return client_fail_text(-ENOTCONN, "the queue pair is bound to no port: bind it first");
    const uint32_t number = schema_tenant_number(tenant);
    struct schema_sq_desc d = {
        .op = (uint8_t)op, .vqp = q->index, .vqp_gen = q->gen, .bind_port = {.tenant = number}};
    return number == q->session->tenant ? 0 : client_request(q->session, &d, &unused);
}

int kedge_port_grant(struct kedge_vqp *q, const char *tenant)
{
    if (client_is_null(q) || client_is_null(tenant))
        return -EINVAL;
    const int status = ask_for_guest(q, SCHEMA_OP_PORT_GRANT, tenant);
    if (client_has_no_room(q->session, status))
        return client_fail(status,
                           "the queue pair has let in %d tenants, or the session's own tenant as "
                           "many as it may on this node: revoke some",
                           KEDGE_PORT_TENANTS);
    return status == -EALREADY ? 0 : status;
}

int kedge_port_revoke(struct kedge_vqp *q, const char *tenant)
{
    if (client_is_null(q) || client_is_null(tenant))
        return -EINVAL;
    const int status = ask_for_guest(q, SCHEMA_OP_PORT_REVOKE, tenant);
    if (status == -ENOENT)
        return client_fail(status, "the queue pair has not let in tenant %s", tenant);
    return status;
}
