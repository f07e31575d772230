/* SPDX-License-Identifier: Apache-2.0 */
/* Who attaches, and what he gets: whose a worker is says the token that it shows, else the socket
 * where it came, else its uid; its session is of its tenant's pool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "connection.h"
#include "daemon.h"

/* Its index, or -EACCES: it has its answer, or will have it. */
static int tenant_by_token(struct connection *c, const struct kedge_control_attach *m)
{
    struct agent *a = c->agent;
    char text[240];
    uint8_t hash[KEDGE_DIGEST_BYTES];
    int tenant = kedge_digest(m->token, hash);
    if (tenant == 0)
        tenant = agentd_tenants_find_token(&a->tenants, hash, kedge_clock_wall_ms());
    if (tenant < 0) {
        connection_refuse_token(c, m->h.tag);
        return -EACCES;
    }
    if (c->at->tenant == 0 || c->at->tenant == (uint32_t)tenant + 1)
        return tenant;
    snprintf(
        text, sizeof text,
        "the token is of tenant %s, and this socket of tenant %s: use that tenant's, or %.100s",
        a->tenants.at[tenant].config.name, a->tenants.at[c->at->tenant - 1].config.name,
        a->config.socket);
    connection_refuse(c, m->h.tag, -EACCES, text);
    return -EACCES;
}

int connection_share(const struct listener *at, uid_t uid, uint32_t *share,
                     struct kedge_errbuf *why)
{
    const struct agent *a = at->agent;
    const int tenant = agentd_tenants_find(&a->tenants, uid);
    if (at->tenant != 0)
        *share = WAITING_SHARE_SOCKETS + at->tenant - 1;
    else if (tenant >= 0)
        *share = WAITING_SHARE_TENANTS + (uint32_t)tenant;
    else if (agentd_tenants_have_tokens(&a->tenants))
        *share = WAITING_SHARE_STRANGERS;
    else
        return kedge_err(
            why, -EACCES,
            "uid %u belongs to no tenant (at the metaserver: rdmactl tenant create NAME "
            "uids=%u; or add it to `uids` of a [tenant] of the agent's file; no "
            "tenant of it has a token that could be shown)",
            (unsigned)uid, (unsigned)uid);
    return 0;
}

/* As tenant_by_token(). */
static int choose_tenant(struct connection *c, const struct kedge_control_attach *m)
{
    char text[240];
    if (m->token[0] != '\0')
        return tenant_by_token(c, m);
    if (c->at->tenant != 0)
        return (int)c->at->tenant - 1;
    int tenant = agentd_tenants_find(&c->agent->tenants, c->peer.uid);
    if (tenant >= 0)
        return tenant;
    snprintf(text, sizeof text,
             "uid %u belongs to no tenant (at the metaserver: rdmactl tenant create NAME uids=%u; "
             "or add it to `uids` of a [tenant] of the agent's file, or set KEDGE_WORKER_TOKEN)",
             (unsigned)c->peer.uid, (unsigned)c->peer.uid);
    connection_refuse(c, m->h.tag, -EACCES, text);
    return -EACCES;
}

/* The pool that a worker gets: its tenant's, and no other. NULL: it has its answer, or will. */
static struct pool *choose_pool(struct connection *c, const struct kedge_control_attach *m)
{
    struct agent *a = c->agent;
    char text[240];
    if (m->pool[0] != '\0' && pools_find(a, m->pool) == NULL) {
        snprintf(text, sizeof text, "there is no pool %.31s on this host (its own is %.31s)",
                 m->pool, a->config.pool);
        connection_refuse(c, m->h.tag, -ENOENT, text);
        return NULL;
    }
    if (node_refuses(a, text, sizeof text)) {
        connection_refuse(c, m->h.tag, -EBUSY, text);
        return NULL;
    }
    int tenant = choose_tenant(c, m);
    if (tenant < 0)
        return NULL;
    c->tenant = (uint32_t)tenant + 1;
    struct pool *p = pools_of_tenant(a, c->tenant, text, sizeof text);
    if (p == NULL) {
        connection_refuse(c, m->h.tag, -EBUSY, text);
        return NULL;
    }
    if (m->pool[0] != '\0' && strcmp(m->pool, p->name) != 0) {
        snprintf(text, sizeof text, "pool %.31s is not that of tenant %s, which has %.31s", m->pool,
                 a->tenants.at[tenant].config.name, p->name);
        connection_refuse(c, m->h.tag, -EACCES, text);
        return NULL;
    }
    return p;
}

/* The worker maps what it got while the lane hears of it. */
static void hand_over(struct connection *c, uint32_t tag)
{
    struct pool *p = c->pool;
    const struct agentd_config *config = p->config;
    const struct agent_session *s = &p->sessions[c->session];
    struct kedge_control_attached out = {.rw_bytes = KEDGE_SESSION_RW_BYTES(config->sq_slots),
                                         .ro_bytes = KEDGE_SESSION_RO_BYTES(config->cq_slots),
                                         .peers_bytes = p->peers_bytes,
                                         .arena_bytes = s->arena[0]->mem.size,
                                         .session = c->session,
                                         .tenant = s->ro->tenant};
    int fds[KEDGE_FD_COUNT] = {[KEDGE_FD_RW] = s->rw_fd,
                               [KEDGE_FD_RO] = s->ro_fd,
                               [KEDGE_FD_DOORBELL] = s->doorbell,
                               [KEDGE_FD_PEERS] = p->peers_fd,
                               [KEDGE_FD_ARENA] = s->arena[0]->mem.fd};
    int status =
        connection_send(c->fd, &out, KEDGE_CONTROL_ATTACHED, sizeof out, tag, fds, KEDGE_FD_COUNT);
    session_begin(p, c->session);
    if (status != 0)
        connection_close(c);
    sessions_taken(p);
}

static uint32_t attached_of(const struct agent *a, uint32_t tenant)
{
    uint32_t n = 0;
    for (const struct connection *c = a->connections; c != NULL; c = c->next)
        n += c->attached && c->tenant == tenant;
    return n;
}

void connection_attach(struct connection *c, const struct kedge_control_attach *m)
{
    struct agent *a = c->agent;
    struct kedge_errbuf over;
    char text[240];
    if (c->attached) {
        connection_refuse(c, m->h.tag, -EPROTO,
                          "this connection has a session already: open another one");
        return;
    }
    struct pool *p = choose_pool(c, m);
    if (p == NULL)
        return;
    /* Sockets of sessions that are over count too. */
    if (attached_of(a, c->tenant) >= a->config.max_sessions) {
        snprintf(text, sizeof text, "too many connections of tenant %s are open: close some",
                 a->tenants.at[c->tenant - 1].config.name);
        connection_refuse(c, m->h.tag, -EAGAIN, text);
        return;
    }
    int status = quota_ask(p, c->tenant, &over);
    if (status == 0)
        status = quota_check(p, c->tenant, 1, p->config->arena_bytes, &over);
    if (status != 0) {
        connection_refuse(c, m->h.tag, status, over.text);
        return;
    }
    status = session_take(p, c->tenant, c->peer.uid, c->peer.pid, c, &c->session);
    if (status != 0) {
        const char *why = status == -EAGAIN
                              ? "the agent has no session left for tenant %s (raise max_sessions)"
                              : "the agent cannot make a session for tenant %s: out of memory?";
        snprintf(text, sizeof text, why, a->tenants.at[c->tenant - 1].config.name);
        connection_refuse(c, m->h.tag, status, text);
        return;
    }
    c->pool = p;
    c->attached = true;
    waiting_leave(&a->waiting, &c->waiting);
    if (c->handles > 0)
        uv_timer_stop(&c->deadline);
    hand_over(c, m->h.tag);
}
