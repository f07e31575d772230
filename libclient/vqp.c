/* SPDX-License-Identifier: Apache-2.0 */
#include "message_tables.h"
#include "request.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "schema/peers.h"

void client_vqp_release(struct kedge_session *s, struct kedge_vqp *q)
{
    if (q->known)
        q->gen++;
    q->state = CLIENT_VQP_FREE;
    q->next = s->free_vqps;
    s->free_vqps = q->index + 1u;
}

int kedge_vqp_create(struct kedge_session *s, void *user, struct kedge_vqp **out)
{
    struct kedge_vqp *q;
    if (client_is_null(s) || client_is_null(out))
        return -EINVAL;
    int status = client_usable(s);
    if (status != 0)
        return status;
    client_ring_bury(s);
    if (s->free_vqps != 0) {
        q = &s->vqps[s->free_vqps - 1];
        s->free_vqps = q->next;
    } else if (s->used_vqps < s->max_vqps) {
        q = &s->vqps[s->used_vqps];
        q->index = (uint16_t)s->used_vqps++;
        q->gen = 0;
    } else {
        return client_fail(-EMFILE, "all %u queue pairs of the session are in use", s->max_vqps);
    }
    *q = (struct kedge_vqp){
        .session = s, .user = user, .index = q->index, .gen = q->gen, .state = CLIENT_VQP_CREATED};
    *out = q;
    return 0;
}

void kedge_vqp_destroy(struct kedge_vqp *q)
{
    if (q == NULL || *q->session->alive == 0)
        return;
    struct kedge_session *s = q->session;
    if (!client_vqp_is_there(q))
        return;
    s->processor.out -= q->out; /* nobody is told of these any more */
    client_receives_forget(q);
    client_sender_forget(q);
    if (!q->known) {
        client_vqp_release(s, q);
        return;
    }
    q->state = CLIENT_VQP_DYING;
    q->next = s->dying_vqps;
    s->dying_vqps = q->index + 1u;
    client_ring_bury(s);
}

uint32_t kedge_vqp_num(const struct kedge_vqp *q)
{
    if (client_is_null(q))
        return 0;
    return q->index | (uint32_t)q->gen << 16;
}

void *kedge_vqp_user(const struct kedge_vqp *q)
{
    return client_is_null(q) ? NULL : q->user;
}

struct kedge_vqp *kedge_vqp_find(const struct kedge_session *s, uint32_t qp_num)
{
    uint32_t index = qp_num & 0xffff;
    if (client_is_null(s))
        return NULL;
    if (index >= s->used_vqps)
        return NULL;
    struct kedge_vqp *q = &s->vqps[index];
    return client_vqp_is_there(q) && q->gen == qp_num >> 16 ? q : NULL;
}

void client_vqp_point(struct kedge_vqp *q, uint32_t slot, uint32_t gen)
{
    q->peer_slot = slot;
    q->peer_gen = gen;
    q->state = CLIENT_VQP_CONNECTED;
    q->bound = false;
}

/* What the lane answers with a number alone, in words. */
static int refuse_gid(const uint8_t gid[16], int status)
{
    char text[BASE_GID_TEXT];
    (void)base_gid_format(gid, text);
    if (status == -ENOENT)
        return client_fail(status,
                           "no node has the GID %s in this session's pool: it is not registered, "
                           "or no longer (rdmactl node list)",
                           text);
    if (status == -ESTALE)
        return client_fail(status,
                           "the metaservers know only an earlier life of the node with the GID %s: "
                           "try again in a moment",
                           text);
    if (status == -ENOSPC)
        return client_fail(status,
                           "the agent has no room to know the node with the GID %s: all that it "
                           "knows are in use (raise max_peers in its file)",
                           text);
    if (status == -EAGAIN)
        return client_fail(status,
                           "the agent looks up as many nodes as it can already, and not the one "
                           "with the GID %s: try again in a moment",
                           text);
    if (status == -EOPNOTSUPP)
        return client_fail(status,
                           "the node with the GID %s is not reached in the way in which this one "
                           "reaches others (transport, DC or RC, in its agent's file)",
                           text);
    return status;
}

int client_vqp_resolve(struct kedge_vqp *q, const uint8_t gid[16], uint16_t pool, uint32_t *slot,
                       uint32_t *gen)
{
    struct kedge_session *s = q->session;
    struct client_reply reply;
    if (schema_peers_find(s->peers, gid, pool, slot, gen) == 0)
        return 0;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .vqp = q->index, .vqp_gen = q->gen, .connect = {.pool = pool}};
    memcpy(d.connect.gid, gid, sizeof d.connect.gid);
    int status = client_request(s, &d, &reply);
    if (status != 0)
        return refuse_gid(gid, status);
    *slot = (uint32_t)reply.value[0];
    *gen = (uint32_t)reply.value[1];
    return 0;
}

int client_vqp_connect(struct kedge_vqp *q, const uint8_t gid[16], uint16_t pool)
{
    uint32_t slot, gen;
    if (q->state == CLIENT_VQP_HEARING)
        return client_fail(-EISCONN,
                           "the queue pair is bound to port %llu, and hears alone: connect another "
                           "one",
                           (unsigned long long)q->to);
    const int status = client_vqp_resolve(q, gid, pool, &slot, &gen);
    if (status != 0)
        return status;
    client_sender_forget(q);
    q->to_kind = 0;
    client_vqp_point(q, slot, gen);
    return 0;
}

int kedge_connect(struct kedge_vqp *q, const uint8_t gid[16])
{
    if (client_is_null(q) || client_is_null(gid))
        return -EINVAL;
    int status = client_usable(q->session);
    return status != 0 ? status : client_vqp_connect(q, gid, q->session->pool);
}

int kedge_connect_node(struct kedge_vqp *q, const char *name)
{
    struct schema_control_resolve ask = {0};
    struct schema_control_resolved answer;
    if (client_is_null(q) || client_is_null(name))
        return -EINVAL;
    const size_t length = strnlen(name, sizeof ask.name);
    int status = client_usable(q->session);
    if (status != 0)
        return status;
    if (length == 0 || length == sizeof ask.name)
        return client_fail(-EINVAL, "a node's name has 1 to %zu bytes", sizeof ask.name - 1);
    memcpy(ask.name, name, length);
    status = client_message(q->session, &ask.h, sizeof ask, SCHEMA_CONTROL_RESOLVE, &answer,
                            sizeof answer, SCHEMA_CONTROL_RESOLVED, NULL);
    if (status == -ENOENT)
        return client_fail(status,
                           "no node is called \"%s\": it is not registered, or no longer (rdmactl "
                           "node list)",
                           name);
    return status != 0 ? status : client_vqp_connect(q, answer.gid, answer.pool);
}
