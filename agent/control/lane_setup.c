/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's lane: with what it is made, who steps it, and its end. */
#include <errno.h>
#include <string.h>

#include "address_change.h"
#include "agent.h"
#include "base/clock.h"
#include "dci.h"
#include "dedicated_mrs.h"
#include "fabric/retire.h"
#include "lane_setup.h"
#include "leases.h"
#include "bounds.h"
#include "names.h"
#include "peer_setup.h"
#include "pool_lanes.h"
#include "quotas.h"
#include "relays.h"
#include "session_moves.h"
#include "sessions.h"

/* All on the lane's thread. */
static uint64_t wake_worker(void *world, _Atomic uint32_t *word)
{
    return world_wake(world, word);
}

static void tell_worker(void *pool, uint32_t session)
{
    struct pool *p = pool;
    world_lane_tell(p->world, &p->stepping, session);
}

static int fill_random(void *world, void *bytes, size_t n)
{
    return world_random(world, bytes, n);
}

/* What is out takes so little of the time that a request may be out, at the port's rate, that it is
 * over in time where the network has only a small part of that to give, or lanes share the port. */
static uint64_t most_bytes(const struct agent_device *d)
{
    enum { PART = 32 };
    return d->bound_ns / BASE_NS_PER_MS * d->fab->caps.port_rate / PART;
}

/* As long as the device repeats a READ whose packets are lost. With DC all metaservers are asked
 * through one initiator, so that the next one's answer comes behind that. */
static uint64_t lookup_timeout_ns(const struct pool *p)
{
    const uint64_t least_ns = LOOKUP_TIMEOUT_MS * BASE_NS_PER_MS;
    const uint64_t repeats_ns = p->device.bound_ns / 2;
    const uint64_t all_ns =
        p->device.rc || p->config->metaservers < 2 ? repeats_ns : 2 * repeats_ns;
    return all_ns > least_ns ? all_ns : least_ns;
}

/* As long as a connected queue pair would have repeated a request. */
static uint64_t patience_ns(const struct pool *p)
{
    const uint64_t least_ns = PATH_PATIENCE_MS * BASE_NS_PER_MS,
                   repeats_ns = p->device.bound_ns / 2;
    return repeats_ns > least_ns ? repeats_ns : least_ns;
}

/* A lane that never sleeps hears who posts soonest where it polls him. */
static uint64_t silent_ns(const struct agent_config *c)
{
    return c->polling == POLLING_BUSY ? SILENT_BUSY_MS * BASE_NS_PER_MS
                                      : SILENT_US * BASE_NS_PER_US;
}

/* What the port carries in a tenth of a millisecond: so long is what stands behind a piece of
 * another's request held up by it, and the gap between two pieces is little of that. */
static uint32_t cut_bytes(const struct agent_config *c, const struct agent_device *d)
{
    if (!c->cut)
        return 0;
    const uint64_t bytes = d->fab->caps.port_rate == 0 ? CUT_MOST : d->fab->caps.port_rate / 10;
    return bytes < CUT_LEAST ? CUT_LEAST : bytes > CUT_MOST ? CUT_MOST : (uint32_t)bytes;
}

static struct lane_config describe_lane(const struct pool *p)
{
    const struct agent_config *c = p->config;
    const struct agent_device *d = &p->device;
    struct lane_config config = {
        .max_sessions = (uint32_t)c->max_sessions,
        .lodgers = agent_lanes_count(p) > 1 ? LANE_LODGERS : 0,
        .max_peers = (uint32_t)c->max_peers,
        .max_flows =
            2 * (uint32_t)c->max_peers, /* whatever others do, one tenant has all of them */
        .max_tenants = AGENT_TENANT_SLOTS,
        .max_mrs = (uint32_t)c->max_mrs,
        .quotas = pool_quota(p, 0),
        .mr_cache = MR_CACHE,
        .batch_bytes = BATCH_MIB * 1024ull * 1024 / agent_lanes_count(p),
        .sq_depth = d->sq_depth,
        .cut_bytes = cut_bytes(c, d),
        .merge_sges = c->merge ? agent_dci_sges(&d->fab->caps) : 0,
        .window_policy = c->window_policy,
        .rc = d->rc,
        .hybrid = d->hybrid,
        .connections_per_peer = d->rc || d->hybrid ? (uint32_t)c->connections_per_peer : 1,
        .max_links = agent_prewarm_connections(p),
        .silent_ns = silent_ns(c),
        .guess_budget = GUESS_BUDGET,
        .max_grants = MAX_GRANTS,
        .suspect_ns = SUSPECT_TIMEOUTS * fab_timeout_ns(&d->fab->caps, (uint8_t)c->ack_timeout),
        .port_rate = d->fab->caps.port_rate,
        .most_bytes = d->fab->caps.deadlines ? 0 : most_bytes(d),
        .lookup_timeout_ns = lookup_timeout_ns(p),
        .path_patience_ns = patience_ns(p),
        .lookup_hedge_ns = LOOKUP_HEDGE_MS * BASE_NS_PER_MS,
        .lookup_awaited_ns = LOOKUP_AWAITED_MS * BASE_NS_PER_MS,
        .node_lease_ns = NODE_BELIEVED_S * BASE_NS_PER_S,
        .mr_lease_ns = p->mr_lease_ns,
        .deadlines = d->fab->caps.deadlines,
        .posts_in_time = d->fab->caps.posts_in_time,
        .end_overdue = !d->fab->caps.deadlines,
        .own_regions = !d->fab->caps.deadlines,
        .clock_doubted = &p->agent->clock.doubted,
        .mtu = d->path_mtu,
        .streams = d->fab->caps.dci_streams,
        .names_culprit = d->fab->caps.names_culprit,
        .writes_in_order = d->fab->caps.writes_in_order,
        .bound_ns = d->bound_ns,
        .slack_ns = d->fab->caps.slack_ns,
        .by_device = !c->messages_near,
        .pool = p->number,
        .incarnation = p->incarnation,
    };
    memcpy(config.gid, d->fab->caps.gid, sizeof config.gid);
    return config;
}

/* What the lane has of the device, all of it made. */
static struct lane_device_objects list_objects(const struct pool *p)
{
    const struct agent_device *d = &p->device;
    struct lane_device_objects r = {
        .fab = d->fab,
        .cq = d->cq,
        .pd = d->pd,
        .dcis = d->rc ? 0 : p->prewarm.dcis,
        .spares = d->rc ? 0 : p->prewarm.spares,
        .max_spares = d->rc ? 0 : d->max_spares,
        .system_dci = d->rc ? NULL : d->dci[0].qp,
        .rest_until_ns = d->rest_until_ns,
        .scratch = d->scratch,
        .scratch_lkey = d->scratch_mr->lkey,
        .scratch_system_lkey = d->scratch_system_mr->lkey,
        .small = d->small,
        .small_iova = d->small_mr != NULL ? d->small_mr->addr : 0,
        .small_lkey = d->small_mr != NULL ? d->small_mr->lkey : 0,
        .peers = p->peers.table,
        .mr_table = &pool_endpoint(p)->device.table->lane[p->lane_number].table,
        .messages = agent_messages_describe(p),
    };
    for (uint32_t i = 0; i < r.dcis; i++)
        r.dci[i] = d->dci[1 + i].qp;
    for (uint32_t i = 0; i < r.spares; i++)
        r.spare[i] = d->dci[1 + r.dcis + i].qp;
    return r;
}

static int make_lane(struct pool *p)
{
    p->device.rest_until_ns = agent_dcis_rest_ns(p);
    const struct lane_config config = describe_lane(p);
    const struct lane_device_objects objects = list_objects(p);
    const int status = lane_new(&config, &objects, &p->lane);
    if (status == 0) {
        lane_set_random(p->lane, fill_random, p->world);
        lane_set_wake(p->lane, wake_worker, p->world);
        lane_set_tell(p->lane, tell_worker, p);
    }
    return status;
}

/* Each event goes to the file that it concerns. */
static void take_event(struct pool *p, const struct lane_event *e)
{
    switch (e->kind) {
    case LANE_EVENT_SESSION_FAULT:
    case LANE_EVENT_SESSION_OVER:
    case LANE_EVENT_ARENA_ADDED:
    case LANE_EVENT_WANT_FENCE:
        agent_sessions_event(p, e);
        return;
    case LANE_EVENT_SESSION_LEFT:
    case LANE_EVENT_LODGER_LEFT:
        return; /* which that has taken */
    case LANE_EVENT_REVOKED:
    case LANE_EVENT_ARENA_REREGISTERED:
        agent_leases_event(p, e);
        return;
    case LANE_EVENT_WANT_MR:
    case LANE_EVENT_WANT_DEREG:
        agent_dedicated_mrs_event(p, e);
        return;
    case LANE_EVENT_READDRESSED:
        agent_address_readdressed(p, e);
        return;
    case LANE_EVENT_TENANT_QUARANTINED:
        agent_quotas_apart(p, e);
        return;
    case LANE_EVENT_SPARE_DROPPED:
        agent_peer_setup_spare_dropped(p, e->qp);
        return;
    case LANE_EVENT_WANT_AH:
        agent_messages_want_ah(p, e);
        return;
    case LANE_EVENT_WANT_NUMBER:
        agent_messages_want_number(p, e);
        return;
    case LANE_EVENT_UD_BROKEN:
        agent_messages_ud_broken(p, e->qp);
        return;
    case LANE_EVENT_WANT_RELAY:
        agent_relays_want(p, e);
        return;
    case LANE_EVENT_RELAYED:
        agent_relays_answer(p, e);
        return;
    case LANE_EVENT_WANT_PATH:
    case LANE_EVENT_DROP_PATH:
    case LANE_EVENT_QP_OVERDUE:
    case LANE_EVENT_QP_RETIRED:
    case LANE_EVENT_QP_BROKEN:
    case LANE_EVENT_PROVED:
        agent_peer_setup_event(p, e);
        return;
    }
}

static void on_news(void *pool)
{
    struct pool *p = pool;
    struct lane_event e;
    while (lane_event(p->lane, &e))
        if (!agent_session_moves_event(p, &e))
            take_event(p, &e);
    agent_peer_setup_step(p);
}

uint64_t agent_lane_cpu(const struct pool *p)
{
    const struct agent_config *c = p->config;
    const bool is_named = pool_is_own(p) && p->lane_number < c->lane_cpu.count;
    return is_named ? c->lane_cpu.at[p->lane_number] : AGENT_ANY_CPU;
}

int agent_pool_start_lane(struct pool *p, struct base_errbuf *err)
{
    for (uint32_t i = 0; i < p->config->metaservers; i++)
        p->registration[i].lane.number = i; /* as the lane is to name it */
    int status = make_lane(p);
    if (status != 0)
        return base_err(err, status, "the lane cannot begin: %s", strerror(-status));
    p->stepping = (struct world_lane){
        .lane = p->lane,
        .chan = p->device.chan,
        .placement = &p->device.placement,
        .cpu = agent_lane_cpu(p),
        .polling = {.mode = p->config->polling, .max_retry = (uint32_t)p->config->max_retry},
        .news = on_news,
        .user = p};
    return world_lane_start(p->world, &p->stepping, err);
}

void agent_pool_stop_lane(struct pool *p)
{
    world_lane_stop(p->world, &p->stepping);
    struct agent_device *d = &p->device;
    struct fab_ah *ah;
    while (p->lane != NULL && (ah = lane_take_ah(p->lane)) != NULL) {
        if (agent_registrations_take_back(p, ah))
            fab_retire(d->fab, FAB_DESTROY_AH, ah, &p->fab_ops);
    }
    for (uint32_t i = 0; i < p->config->metaservers; i++) {
        fab_retire(d->fab, FAB_DESTROY_AH, p->registration[i].lane.ah, &p->fab_ops);
        fab_retire(d->fab, FAB_DESTROY_AH, p->registration[i].before, &p->fab_ops);
        p->registration[i].lane.ah = p->registration[i].before = NULL;
    }
    lane_free(p->lane);
    p->lane = NULL;
}
