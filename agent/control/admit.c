/* SPDX-License-Identifier: Apache-2.0 */
/* Who attaches, and what he gets: whose a worker is says the token that it shows, else the socket
 * where it came, else its uid; its session is of its tenant's pool. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "arenas.h"
#include "base/clock.h"
#include "base/digest.h"
#include "connection.h"
#include "bounds.h"
#include "names.h"
#include "node.h"
#include "pool_lanes.h"
#include "pools.h"
#include "quotas.h"
#include "sessions.h"

enum { RETRY_LEAST_MS = 20, RETRY_MOST_MS = 10000, RETRY_POOL_MS = 100 };

/* Its index, or -EACCES: it has its answer, or will have it. */
static int tenant_by_token(struct connection *c, const struct schema_control_attach *m)
{
    struct agent *a = c->agent;
    char text[240];
    uint8_t hash[BASE_DIGEST_BYTES];
    int tenant = base_digest(m->token, hash);
    if (tenant == 0)
        tenant = agent_tenants_find_token(&a->tenants, hash, world_wall_ms(a->world));
    if (tenant < 0) {
        agent_connection_refuse_token(c, m->h.tag);
        return -EACCES;
    }
    if (c->peer.tenant == 0 || c->peer.tenant == (uint32_t)tenant + 1)
        return tenant;
    snprintf(
        text, sizeof text,
        "the token is of tenant %s, and this socket of tenant %s: use that tenant's, or %.100s",
        a->tenants.at[tenant].config.name, a->tenants.at[c->peer.tenant - 1].config.name,
        a->config.socket);
    agent_connection_refuse(c, m->h.tag, -EACCES, text);
    return -EACCES;
}

/* A uid of no tenant. of_token: what to say of showing one. -EACCES. */
static int refuse_uid(const struct agent *a, uid_t uid, const char *of_token,
                      struct base_errbuf *why)
{
    const int replaced = agent_tenants_find_replaced(&a->tenants, uid);
    if (replaced >= 0)
        return base_err(why, -EACCES,
                        "uid %u belongs to no tenant: [tenant %s] of the agent's file has it, and "
                        "the metaserver's tenant of that name stands in its place without it "
                        "(rdmactl tenant set %s uids=...)",
                        (unsigned)uid, a->tenants.at[replaced].own.name,
                        a->tenants.at[replaced].own.name);
    return base_err(why, -EACCES,
                    "uid %u belongs to no tenant (at the metaserver: rdmactl tenant create NAME "
                    "uids=%u; or add it to `uids` of a [tenant] of the agent's file%s)",
                    (unsigned)uid, (unsigned)uid, of_token);
}

int agent_connection_share(const struct agent *a, const struct attach_peer *peer, uint32_t *share,
                           struct base_errbuf *why)
{
    const int tenant = agent_tenants_find(&a->tenants, peer->uid);
    if (peer->tenant != 0)
        *share = WAITING_SHARE_SOCKETS + peer->tenant - 1;
    else if (tenant >= 0)
        *share = WAITING_SHARE_TENANTS + (uint32_t)tenant;
    else if (agent_tenants_have_tokens(&a->tenants))
        *share = WAITING_SHARE_STRANGERS;
    else
        return refuse_uid(
            a, peer->uid,
            "; KEDGE_WORKER_TOKEN would not help: no tenant of this agent has a token", why);
    return 0;
}

/* As tenant_by_token(). */
static int choose_tenant(struct connection *c, const struct schema_control_attach *m)
{
    struct base_errbuf why;
    if (m->token[0] != '\0')
        return tenant_by_token(c, m);
    if (c->peer.tenant != 0)
        return (int)c->peer.tenant - 1;
    int tenant = agent_tenants_find(&c->agent->tenants, c->peer.uid);
    if (tenant >= 0)
        return tenant;
    (void)refuse_uid(c->agent, c->peer.uid, ", or set KEDGE_WORKER_TOKEN", &why);
    agent_connection_refuse(c, m->h.tag, -EACCES, why.text);
    return -EACCES;
}

/* Its pool may be there soon. */
static uint32_t retry_pool_after(int status)
{
    return status == -EAGAIN ? RETRY_POOL_MS : 0;
}

/* The pool that a worker gets: its tenant's, and no other. NULL: it has its answer, or will. */
static struct pool *choose_pool(struct connection *c, const struct schema_control_attach *m)
{
    struct agent *a = c->agent;
    char text[240];
    struct base_errbuf why;
    struct pool *p;
    if (m->pool[0] != '\0' && agent_pools_find(a, m->pool) == NULL &&
        !agent_pools_pending(a, m->pool)) {
        snprintf(text, sizeof text, "there is no pool %.31s on this host (its own is %.31s)",
                 m->pool, a->config.pool);
        agent_connection_refuse(c, m->h.tag, -ENOENT, text);
        return NULL;
    }
    if (agent_node_refuses(a, text, sizeof text)) {
        agent_connection_refuse(c, m->h.tag, -EBUSY, text);
        return NULL;
    }
    int tenant = choose_tenant(c, m);
    if (tenant < 0)
        return NULL;
    c->tenant = (uint32_t)tenant + 1;
    const int status = agent_pools_of_tenant(a, c->tenant, &p, &why);
    if (status != 0) {
        agent_connection_refuse_for(c, m->h.tag, status, why.text, retry_pool_after(status));
        return NULL;
    }
    if (m->pool[0] != '\0' && strcmp(m->pool, p->name) != 0) {
        snprintf(text, sizeof text, "pool %.31s is not that of tenant %s, which has %.31s", m->pool,
                 a->tenants.at[tenant].config.name, p->name);
        agent_connection_refuse(c, m->h.tag, -EACCES, text);
        return NULL;
    }
    return p;
}

enum {
    FEATURES = SCHEMA_FEATURE_PUBLISH | SCHEMA_FEATURE_LOOKUP | SCHEMA_FEATURE_TENANTS |
               SCHEMA_FEATURE_UNIMPORT | SCHEMA_FEATURE_IMPORT_MANY | SCHEMA_FEATURE_RELAXED |
               SCHEMA_FEATURE_CHANNEL | SCHEMA_FEATURE_BATCHES | SCHEMA_FEATURE_PHASES
};

static uint32_t features_of(const struct pool *p, const struct agent_session *s)
{
    const bool messages = agent_messages_are_for_workers(p) && s->arena[0]->mem.whole;
    const uint32_t more = SCHEMA_FEATURE_MESSAGES | SCHEMA_FEATURE_NOTIFY | SCHEMA_FEATURE_LARGE |
                          SCHEMA_FEATURE_GUESTS;
    return FEATURES | (messages ? more : 0);
}

/* The worker maps what it got while the lane hears of it. */
static void hand_over(struct connection *c, uint32_t tag)
{
    struct pool *p = c->pool;
    const struct agent_config *config = p->config;
    const struct agent_session *s = &p->sessions[c->session];
    struct schema_control_attached out = {.rw_bytes = SCHEMA_SESSION_RW_BYTES(config->sq_slots),
                                          .ro_bytes = SCHEMA_SESSION_RO_BYTES(config->cq_slots),
                                          .peers_bytes = p->peers.bytes,
                                          .arena_bytes = s->arena[0]->mem.size,
                                          .session = c->session,
                                          .tenant = agent_quota_tenant(p->agent, c->tenant)->id,
                                          .features = features_of(p, s)};
    struct base_errbuf why;
    const struct world_lent lent = {
        .rings = &s->rings, .peers = &p->peers, .arena = &s->arena[0]->mem};
    int status = agent_connection_send(c, &out, SCHEMA_CONTROL_ATTACHED, sizeof out, tag, &lent);
    agent_session_begin(p, c->session);
    if (status == 0) {
        agent_unread_sent(c, SCHEMA_FD_COUNT);
        base_latency_record(&p->attach_latency, world_now_ns(p->world) - c->asked_ns);
    } else if (agent_unread_failed(c->agent, status, &why))
        agent_connection_refuse(c, tag, -EAGAIN, why.text);
    else
        agent_connection_close(c);
    agent_sessions_taken(p);
}

/* ---- the queue
 *
 * Sessions and arenas are made by task threads and the device, and never while the control thread
 * waits. Who comes when none is ready waits for one: in turns between tenants, and of one tenant in
 * the order of coming. */

/* Until the socket is closed, also when the session is over; one that only lingers, for its worker
 * to read what it was told, counts to what is unread (attach_unread.c) and not here. */
void agent_connection_note(struct connection *c)
{
    const bool counts = c->at != NULL && !c->lingers && (c->attached || c->turn.waits);
    if (counts == c->counted)
        return;
    c->counted = counts;
    c->agent->connections_of[c->tenant - 1] += counts ? 1 : -1u;
}

static struct connection *queued_at(struct tenant_queue_item *item)
{
    return item != NULL ? TENANT_QUEUE_IN(struct connection, turn, item) : NULL;
}

void agent_connection_leave_queue(struct connection *c)
{
    agent_tenant_queue_leave(&c->pool->queue.by_tenant, &c->turn);
    agent_connection_note(c);
}

/* Who is served before the last of this tenant's. */
static uint32_t count_ahead(const struct pool *p, uint32_t tenant)
{
    const struct tenant_queue_owner *of = p->queue.by_tenant.of;
    uint32_t ahead = 0;
    for (uint32_t i = 1; i < TENANT_QUEUE_OWNERS; i++)
        ahead += of[i].waiting < of[tenant].waiting ? of[i].waiting : of[tenant].waiting;
    return ahead;
}

static void refuse_for_now(struct connection *c, uint32_t tag, uint32_t ahead, const char *since)
{
    const struct attach_queue *q = &c->pool->queue;
    const uint64_t each = q->each_ns > 0 ? q->each_ns : WAIT_MS * BASE_NS_PER_MS;
    const uint64_t ms = (ahead + 1) * each / BASE_NS_PER_MS + 1;
    const uint32_t retry_ms = ms < RETRY_LEAST_MS  ? RETRY_LEAST_MS
                              : ms > RETRY_MOST_MS ? RETRY_MOST_MS
                                                   : (uint32_t)ms;
    char text[240];
    snprintf(text, sizeof text,
             "the agent makes sessions as fast as it can, and %u workers are before this one%s: "
             "try again in %u ms, or say wait_ms (raise sessions_ahead and arenas_ahead where many "
             "come at once)",
             ahead, since, retry_ms);
    c->agent->deferred++;
    agent_connection_refuse_for(c, tag, -EAGAIN, text, retry_ms);
}

void agent_connection_waited(struct connection *c)
{
    struct pool *p = c->pool;
    const uint32_t ahead = count_ahead(p, c->tenant) - 1;
    agent_connection_leave_queue(c);
    refuse_for_now(c, c->queued_tag, ahead, ", which has waited for as long as it can");
}

/* For how long the worker that has sent it may wait in the queue and still hear of that before it
 * gives up. What it says is believed as far as it can be true: who says nonsense is answered no
 * later than in WAIT_MS, and harms nobody but himself. */
static uint32_t choose_wait(const struct agent *a, const struct schema_control_attach *m)
{
    uint64_t left_ms = m->left_ms;
    const uint64_t unread_ms = (world_now_ns(a->world) - m->sent_ns) / BASE_NS_PER_MS;
    if (unread_ms <= left_ms) /* else it is by another clock, or its worker has gone */
        left_ms -= unread_ms;
    left_ms = left_ms > HEARS_MS ? left_ms - HEARS_MS : 0;
    return left_ms < WAIT_MS ? (uint32_t)left_ms : WAIT_MS;
}

static void join_queue(struct connection *c, const struct schema_control_attach *m)
{
    struct pool *p = c->pool;
    struct attach_queue *q = &p->queue;
    const uint32_t ahead = count_ahead(p, c->tenant);
    c->wait_ms = choose_wait(c->agent, m);
    if (ahead > 0 && ahead * q->each_ns > c->wait_ms * BASE_NS_PER_MS) {
        refuse_for_now(c, m->h.tag, ahead, "");
        return;
    }
    agent_waiting_leave(&c->agent->waiting, &c->waiting);
    c->queued_tag = m->h.tag;
    c->queued_ns = world_now_ns(c->agent->world);
    if (q->by_tenant.waiting == 0)
        q->served_ns = c->queued_ns;
    agent_tenant_queue_join(&q->by_tenant, &c->turn, c->tenant, false);
    agent_connection_note(c);
    p->count.not_ahead++;
    agent_connection_await(c);
    agent_sessions_refill(p);
}

/* A session is ready. */
static void admit_worker(struct connection *c, uint32_t tag)
{
    struct pool *p = c->pool;
    char text[240];
    int status = agent_session_take(p, c->tenant, c->peer.uid, c->peer.pid, c, &c->session);
    if (status != 0) {
        snprintf(text, sizeof text, "the agent cannot lend a session to tenant %s: %s",
                 agent_quota_tenant(c->agent, c->tenant)->name, strerror(-status));
        agent_connection_refuse(c, tag, status, text);
        return;
    }
    c->attached = true;
    agent_connection_note(c);
    agent_waiting_leave(&c->agent->waiting, &c->waiting);
    world_timer_clear(c->agent->world, &c->deadline);
    hand_over(c, tag);
}

/* What it was let wait by may be over: the node takes no new workers, or its tenant has another
 * pool. (Of a tenant that has gone none waits any more.) */
static bool may_still(struct connection *c)
{
    const struct agent *a = c->agent;
    struct base_errbuf why = {.text = "its tenant has another pool now: try again"};
    struct pool *p;
    int status = -EBUSY;
    if (!agent_node_refuses(a, why.text, sizeof why.text)) {
        status = agent_pools_of_tenant(a, c->tenant, &p, &why);
        if (status == 0 && p == pool_endpoint(c->pool))
            return true;
        status = status == 0 ? -EAGAIN : status;
    }
    agent_connection_refuse_for(c, c->queued_tag, status, why.text, retry_pool_after(status));
    return false;
}

/* When what a quota lacks is being given back. */
static uint32_t retry_after(int status)
{
    return status == -EAGAIN ? RETRY_LEAST_MS : 0;
}

static bool has_session(const void *pool, uint32_t tenant)
{
    return agent_session_is_ready(pool, tenant);
}

void agent_attach_serve(struct pool *p)
{
    struct attach_queue *q = &p->queue;
    for (struct connection *c;
         (c = queued_at(agent_tenant_queue_next(&q->by_tenant, has_session, p))) != NULL;) {
        const uint64_t now = world_now_ns(p->world), took = now - q->served_ns;
        struct base_errbuf over;
        agent_tenant_queue_take(&q->by_tenant, &c->turn);
        agent_connection_note(c);
        q->each_ns = q->each_ns == 0 ? took : (7 * q->each_ns + took) / 8;
        q->served_ns = now;
        if (!may_still(c))
            continue;
        int status = agent_quota_check(p, c->tenant, 1, p->config->arena_bytes, &over);
        if (status == 0)
            status = agent_unread_check(p->agent, c->tenant, &over);
        if (status != 0)
            agent_connection_refuse_for(c, c->queued_tag, status, over.text, retry_after(status));
        else
            admit_worker(c, c->queued_tag);
    }
    if (q->by_tenant.waiting > 0)
        agent_sessions_refill(p);
}

static bool is_anybody(const void *pool, uint32_t tenant)
{
    (void)pool, (void)tenant;
    return true;
}

static struct connection *next_queued(const struct pool *p)
{
    return queued_at(agent_tenant_queue_next(&p->queue.by_tenant, is_anybody, p));
}

void agent_attach_failed(struct pool *p, int status)
{
    struct connection *c = next_queued(p);
    char text[240];
    if (c == NULL)
        return;
    snprintf(text, sizeof text,
             "the agent cannot make a session for tenant %s: this host or its device has no room "
             "for one (%s): the agent's log may say of what",
             agent_quota_tenant(c->agent, c->tenant)->name, strerror(-status));
    agent_connection_leave_queue(c);
    agent_connection_refuse(c, c->queued_tag, -ENOMEM, text);
}

void agent_attach_end_tenant(struct pool *p, uint32_t tenant)
{
    for (struct connection *c; (c = queued_at(p->queue.by_tenant.of[tenant].first)) != NULL;) {
        agent_connection_leave_queue(c);
        agent_connection_refuse(c, c->queued_tag, -EACCES,
                                "its tenant is not one of this node any more");
    }
}

void agent_attach_give_up(struct pool *p)
{
    for (struct connection *c; (c = next_queued(p)) != NULL;) {
        agent_connection_leave_queue(c);
        agent_connection_refuse(
            c, c->queued_tag, -EBUSY,
            "the operator takes the pool away from this node: go to another host");
    }
}

/* ---- an ATTACH */

static uint32_t queued_in(const struct agent *a, uint32_t tenant)
{
    uint32_t n = 0;
    for (const struct pool *p = agent_pools_next(a, NULL); p != NULL; p = agent_pools_next(a, p))
        n += p->queue.by_tenant.of[tenant].waiting;
    return n;
}

void agent_connection_attach(struct connection *c, const struct schema_control_attach *m)
{
    struct agent *a = c->agent;
    struct base_errbuf over;
    char text[240];
    if (c->attached || c->turn.waits) {
        agent_connection_refuse(c, m->h.tag, -EPROTO,
                                "this connection has a session already: open another one");
        return;
    }
    c->asked_ns = world_now_ns(a->world);
    struct pool *p = choose_pool(c, m);
    if (p == NULL)
        return;
    if (a->connections_of[c->tenant - 1] >= a->config.max_sessions) {
        snprintf(text, sizeof text, "too many connections of tenant %s are open: close some",
                 a->tenants.at[c->tenant - 1].config.name);
        agent_connection_refuse(c, m->h.tag, -EAGAIN, text);
        return;
    }
    const uint32_t more = 1 + queued_in(a, c->tenant);
    int status = agent_quota_ask(p, c->tenant, &over);
    if (status == 0)
        status = agent_quota_check(p, c->tenant, more, more * p->config->arena_bytes, &over);
    if (status == 0)
        status = agent_unread_check(a, c->tenant, &over);
    bool soon = status == -EAGAIN; /* when what is lacking is being given back */
    if (status == 0)
        status = agent_session_check_room(a, c->tenant, &soon, &over);
    if (status != 0) {
        agent_connection_refuse_for(c, m->h.tag, status, over.text, soon ? RETRY_LEAST_MS : 0);
        return;
    }
    c->pool = p = agent_lanes_choose(p, c->tenant);
    if (p->queue.by_tenant.of[c->tenant].waiting == 0 && agent_session_is_ready(p, c->tenant))
        admit_worker(c, m->h.tag);
    else
        join_queue(c, m);
}
