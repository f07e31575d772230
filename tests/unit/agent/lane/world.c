/* SPDX-License-Identifier: Apache-2.0 */
#include "world_batch.h"
#include "world_deaf.h"
#include "world_fenced.h"
#include "world_messages.h"
#include "world_names.h"
#include "world_narrow.h"
#include "world_hybrid.h"
#include "world_rc.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "schema/peers.h"

enum { SQ_DEPTH = WORLD_SQ_DEPTH, POOL = 1, PATIENCE = 200000, SMALLS = 4 };

static void call(struct fab *fab, struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(fab, ctl), 0);
}

static struct fab *open_fab(const struct world *w, uint8_t last)
{
    struct fab_open_attr attr = {.device = w->dir, .gid = {0xfd, [15] = last}};
    struct base_errbuf err = {""};
    struct fab *fab = NULL;
    ck_assert_msg(fab_soft.open(&attr, &fab, &err) == 0, "%s", err.text);
    return fab;
}

static struct fab_pd *make_pd(struct fab *fab)
{
    struct fab_ctl c = {.kind = FAB_ALLOC_PD};
    call(fab, &c);
    return c.pd.x;
}

static struct fab_mr *make_mr(struct fab *fab, struct fab_pd *pd, const struct fab_mem *mem,
                              unsigned access)
{
    struct fab_ctl c = {.kind = FAB_REG_MR,
                        .mr = {.pd = pd, .mem = mem, .length = mem->size, .access = access}};
    call(fab, &c);
    return c.mr.x;
}

struct fab_mr *world_mr(struct world *w, const struct world_worker *k, uint64_t offset,
                        uint64_t length, unsigned access)
{
    const struct world_node *n = &w->node[k->node];
    struct fab_ctl c = {
        .kind = FAB_REG_MR,
        .mr = {
            .pd = n->pd, .mem = &k->arena, .offset = offset, .length = length, .access = access}};
    ck_assert_int_eq(
        fab_iova_take(&w->iova, FAB_IOVA_REGION, &k->arena, offset, length, &c.mr.iova), 0);
    call(n->fab, &c);
    return c.mr.x;
}

static void drop_mr(struct fab *fab, struct fab_mr *mr)
{
    struct fab_ctl c = {.kind = FAB_DEREG_MR, .mr = {.x = mr}};
    call(fab, &c);
}

static struct fab_cq *make_cq(struct fab *fab, uint32_t cqe, struct fab_chan *chan)
{
    struct fab_ctl c = {.kind = FAB_CREATE_CQ, .cq = {.cqe = cqe, .chan = chan}};
    call(fab, &c);
    return c.cq.x;
}

static struct fab_dct *make_dct(struct fab *fab, struct fab_pd *pd, struct fab_cq *cq,
                                struct fab_srq *srq)
{
    struct fab_ctl c = {.kind = FAB_CREATE_DCT,
                        .dct = {.pd = pd, .cq = cq, .srq = srq, .dc_key = 0x1234567890abcdef}};
    c.dct.access = fab_target_access(fab);
    call(fab, &c);
    return c.dct.x;
}

static struct fab_srq *make_srq(struct fab *fab, struct fab_pd *pd)
{
    struct fab_ctl c = {.kind = FAB_CREATE_SRQ, .srq = {.pd = pd, .max_wr = 4, .max_sge = 1}};
    call(fab, &c);
    return c.srq.x;
}

static struct fab_ah *make_ah(struct fab *fab, struct fab_pd *pd, const uint8_t gid[16])
{
    struct fab_ctl c = {.kind = FAB_CREATE_AH, .ah = {.pd = pd}};
    c.ah.attr.is_global = 1;
    c.ah.attr.port_num = 1;
    memcpy(c.ah.attr.grh.dgid.raw, gid, 16);
    call(fab, &c);
    return c.ah.x;
}

/* RESET to RTS, the way the daemon does it. */
void world_raise_dci(struct fab *fab, struct fab_qp *qp)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                               IBV_QPS_RTS};
    static const int masks[] = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT, IBV_QP_PATH_MTU,
                                IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC};
    for (int i = 0; i < 4; i++) {
        struct fab_ctl c = {.kind = FAB_MODIFY_QP, .modify = {.x = qp}};
        c.modify.attr = (struct ibv_qp_attr){.qp_state = states[i],
                                             .port_num = 1,
                                             .path_mtu = IBV_MTU_4096,
                                             .timeout = world_ack_timeout,
                                             .retry_cnt = 1,
                                             .max_rd_atomic = 16};
        c.modify.mask = IBV_QP_STATE | masks[i];
        call(fab, &c);
    }
}

struct fab_qp *world_make_dci(struct world_node *n, struct fab_pd *pd)
{
    const struct fab_caps *caps = &n->fab->caps;
    struct fab_ctl c = {
        .kind = FAB_CREATE_QP,
        .qp = {.pd = pd,
               .type = FAB_QP_DCI,
               .send_cq = n->cq,
               .recv_cq = n->cq,
               .cap = {.send_wr = SQ_DEPTH,
                       .send_sge = world_least(LANE_MERGE_SGES, caps->max_sge),
                       .inline_bytes = world_least(SCHEMA_MAX_INLINE, caps->max_inline)}}};
    call(n->fab, &c);
    world_raise_dci(n->fab, c.qp.x);
    return c.qp.x;
}

/* ---- nodes */

int world_fill(void *user, void *bytes, size_t count)
{
    struct world *w = user;
    for (size_t i = 0; i < count; i++) {
        w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
        ((uint8_t *)bytes)[i] = (uint8_t)(w->random >> 56);
    }
    return 0;
}

void world_publish(struct world *w, struct world_node *n)
{
    struct schema_endpoint_record r = {
        .pool = POOL,
        .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_DC,
        .incarnation = n->incarnation,
        .dctn_mtu = n->dct->dctn | (uint32_t)world_mtu_of(w, n) << 24,
        .udqpn_slots = 10u << 24,
        .dc_key = n->dct->dc_key,
        .mr_table_addr_hi = (uint16_t)((uintptr_t)n->mr_memory.addr >> 32),
        .mr_table_addr_lo = (uint32_t)(uintptr_t)n->mr_memory.addr,
        .mr_table_rkey = n->mr_mr->rkey,
    };
    if (w->rc || world_no_dc[n - w->node])
        r.flags = SCHEMA_RECORD_LIVE;
    if (n->connector != NULL && !world_no_rc[n - w->node]) {
        r.flags |= SCHEMA_RECORD_RC;
        r.udqpn_slots |= connector_ud_qpn(n->connector);
        r.ud_qkey = connector_ud_qkey(n->connector);
    }
    world_messages_publish(n, &r);
    memcpy(r.gid, n->fab->caps.gid, 16);
    memset(n->mr_memory.addr, 0, n->mr_memory.size);
    struct schema_table_desc d = schema_mr_table_desc(&r);
    schema_table_init(&n->mr_table, SCHEMA_TABLE_MRS, n->mr_memory.addr, 10, d.seed, d.generation);
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
}
uint64_t world_mr_lease_ns[WORLD_NODES], world_bound_ns, world_path_patience_ns;
uint8_t world_ack_timeout = 4;
uint32_t world_max_mrs, world_max_flows, world_max_peers = 8, world_capacity;
uint64_t world_port_rate, world_most_bytes, world_rest_until_ns, world_batch_bytes = 1024 * 1024;
bool world_own_regions, world_no_rc[WORLD_NODES], world_no_dc[WORLD_NODES];
_Atomic uint32_t world_clock_doubted = 0;
bool world_end_overdue, world_deadlines, world_posts_in_time, world_streams, world_one_dci;
struct fault_plan world_fault;
static void configure(struct world *w, struct world_node *n)
{
    const uint64_t mr_lease_ns = world_mr_lease_ns[n - w->node];
    for (uint32_t t = 0; t < WORLD_TENANTS; t++)
        n->quota[t].max_vqps = n->quota[t].max_mrs = UINT32_MAX;
    n->config =
        (struct lane_config){.max_sessions = WORLD_WORKERS,
                             .lodgers = LANE_LODGERS,
                             .max_peers = world_max_peers,
                             .max_flows = world_max_flows != 0 ? world_max_flows : 16,
                             .max_tenants = WORLD_TENANTS,
                             .max_mrs = world_capacity,
                             .quotas = world_capacity != 0 ? n->quota : NULL,
                             .mr_cache = 16,
                             .batch_bytes = world_batch_bytes,
                             .sq_depth = SQ_DEPTH,
                             .merge_sges = world_merge_sges(n),
                             .cut_bytes = world_cut_bytes,
                             .by_device = world_by_device,
                             .silent_ns = 20000,
                             .guess_budget = 4,
                             .max_grants = 4,
                             .suspect_ns = 50000,
                             .port_rate = world_port_rate,
                             .most_bytes = world_most_bytes,
                             .lookup_timeout_ns = 5000000,
                             .lookup_awaited_ns = 40000000,
                             .lookup_hedge_ns = 500000,
                             .path_patience_ns = world_path_patience_ns,
                             .node_lease_ns = 1000000000,
                             .mr_lease_ns = mr_lease_ns != 0 ? mr_lease_ns : 1000000,
                             .bound_ns = world_bound_ns != 0 ? world_bound_ns : 200000,
                             .slack_ns = 100000,
                             .own_regions = world_own_regions,
                             .clock_doubted = n == &w->node[0] ? &world_clock_doubted : NULL,
                             .end_overdue = world_end_overdue,
                             .deadlines = world_deadlines,
                             .posts_in_time = world_posts_in_time,
                             .mtu = IBV_MTU_4096,
                             .streams = world_streams,
                             .names_culprit = n->fab->caps.names_culprit,
                             .writes_in_order = n->fab->caps.writes_in_order,
                             .pool = POOL,
                             .incarnation = n->incarnation};
    world_hybrid_configure(w, n);
    memcpy(n->config.gid, n->fab->caps.gid, 16);
    n->res =
        (struct lane_device_objects){.fab = n->fab,
                                     .cq = n->cq,
                                     .pd = n->pd,
                                     .dcis = w->rc ? 0 : (world_one_dci ? 1 : WORLD_DCIS),
                                     .spares = w->rc || world_one_dci ? 0 : WORLD_SPARES,
                                     .system_dci = w->rc ? NULL : world_make_dci(n, n->system_pd),
                                     .rest_until_ns = world_rest_until_ns,
                                     .scratch = n->scratch,
                                     .scratch_lkey = n->scratch_mr->lkey,
                                     .scratch_system_lkey = n->scratch_system_mr->lkey,
                                     .small = n->small,
                                     .peers = n->peers,
                                     .mr_table = &n->mr_table};
    if (n->small_mr != NULL) {
        n->res.small_iova = n->small_mr->addr;
        n->res.small_lkey = n->small_mr->lkey;
    }
    world_messages_fill(n);
    for (uint32_t i = 0; i < n->res.dcis; i++)
        n->res.dci[i] = world_make_dci(n, n->pd);
    for (uint32_t i = 0; i < n->res.spares; i++)
        n->res.spare[i] = world_make_dci(n, n->pd);
    ck_assert_int_eq(lane_new(&n->config, &n->res, &n->lane), 0);
    lane_set_random(n->lane, world_fill, w);
}

void world_tell_metaserver(struct world *w, struct world_node *n)
{
    struct lane_command c = {.kind = LANE_COMMAND_METASERVERS};
    if (n->metaserver_ah == NULL)
        n->metaserver_ah = make_ah(n->fab, n->system_pd, w->meta->caps.gid);
    c.metaservers.count = 1;
    c.metaservers.at[0] = (struct lane_metaserver){
        .ah = n->metaserver_ah, .dctn = w->meta_dct->dctn, .dc_key = w->meta_dct->dc_key};
    world_tables(w, &c.metaservers.at[0]);
    if (w->rc)
        c.metaservers.at[0].qp = world_rc_metaserver(w, n);
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

void world_forget_metaserver(struct world *w, uint32_t node)
{
    struct lane_command none = {.kind = LANE_COMMAND_METASERVERS};
    w->node[node].no_metaserver = true;
    ck_assert_int_eq(lane_command(w->node[node].lane, &none), 0);
}

static void open_node(struct world *w, uint32_t number)
{
    struct world_node *n = &w->node[number];
    struct fab_ctl chan = {.kind = FAB_CREATE_CHAN};
    n->incarnation = 100;
    n->fab = open_fab(w, (uint8_t)(number + 1));
    if (world_fault.seed != 0)
        ck_assert_int_eq(fault_open(n->fab, &world_fault, &n->fab), 0);
    n->pd = make_pd(n->fab);
    n->system_pd = make_pd(n->fab);
    call(n->fab, &chan);
    n->chan = chan.chan.x;
    n->cq = make_cq(n->fab, SQ_DEPTH * (WORLD_DCIS + WORLD_SPARES + WORLD_LINKS * 2 + 2), n->chan);
    n->dct_cq = make_cq(n->fab, 4, NULL);
    n->srq = make_srq(n->fab, n->pd);
    n->dct = make_dct(n->fab, n->pd, n->dct_cq, n->srq);
    world_messages_open(n);
    ck_assert_int_eq(fab_mem_alloc(schema_table_bytes(10), "mr-table", &n->mr_memory), 0);
    ck_assert_int_eq(fab_mem_alloc(64 * LANE_SCRATCH_BYTES, "scratch", &n->scratch), 0);
    n->mr_mr = make_mr(n->fab, n->pd, &n->mr_memory, IBV_ACCESS_REMOTE_READ);
    n->scratch_mr = make_mr(n->fab, n->pd, &n->scratch, IBV_ACCESS_LOCAL_WRITE);
    n->scratch_system_mr = make_mr(n->fab, n->system_pd, &n->scratch, IBV_ACCESS_LOCAL_WRITE);
    if (n->fab->caps.max_inline < SCHEMA_MAX_INLINE) {
        ck_assert_int_eq(fab_mem_alloc(SMALLS * SCHEMA_MAX_INLINE, "small", &n->small), 0);
        n->small.size = (size_t)SMALLS * SCHEMA_MAX_INLINE; /* few, so that they run out */
        n->small_mr = make_mr(n->fab, n->pd, &n->small, 0);
    }
    n->peers = calloc(1, schema_peers_bytes(world_max_peers));
    schema_peers_format(n->peers, world_max_peers, 7);
    if (w->rc || w->hybrid)
        world_rc_open(w, n);
    configure(w, n);
    world_publish(w, n);
    world_tell_metaserver(w, n);
}

void world_open(struct world *w)
{
    const char *transport = getenv("KEDGE_TEST_TRANSPORT");
    *w = (struct world){.now_ns = 1000000000, .random = 1};
    w->rc = transport != NULL && strcmp(transport, "rc") == 0;
    w->hybrid = transport != NULL && strcmp(transport, "hybrid") == 0;
    fab_iova_init(&w->iova, (uint64_t)getpid() << 32);
    /* Not by its pid, which a test that was killed, and left its own, may have had. */
    snprintf(w->dir, sizeof w->dir, "/dev/shm/kedge-world-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w->dir));
    w->meta = open_fab(w, 0xff);
    w->meta_pd = make_pd(w->meta);
    w->meta_cq = make_cq(w->meta, 4, NULL);
    w->meta_srq = make_srq(w->meta, w->meta_pd);
    w->meta_dct = make_dct(w->meta, w->meta_pd, w->meta_cq, w->meta_srq);
    ck_assert_int_eq(fab_mem_alloc(schema_table_bytes(10), "endpoints", &w->meta_memory), 0);
    w->meta_mr = make_mr(w->meta, w->meta_pd, &w->meta_memory, IBV_ACCESS_REMOTE_READ);
    schema_table_init(&w->table, SCHEMA_TABLE_ENDPOINTS, w->meta_memory.addr, 10, 5, 9);
    w->names = world_names_open(w, 9);
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        open_node(w, i);
}

static void destroy(struct fab *fab, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    c.pd.x = x; /* every kind names its object first */
    call(fab, &c);
}

static bool is_away(const struct world *w, const uint8_t gid[16])
{
    for (int i = 0; i < WORLD_NODES; i++)
        if (w->away[i] && memcmp(w->node[i].fab->caps.gid, gid, 16) == 0)
            return true;
    return false;
}

static void handle_event(struct world *w, struct world_node *n, const struct lane_event *e)
{
    struct lane_command c = {0};
    n->broken += e->kind == LANE_EVENT_QP_BROKEN;
    if (e->kind == LANE_EVENT_WANT_PATH)
        world_note_wanted(n, e);
    if ((e->kind == LANE_EVENT_WANT_PATH && is_away(w, e->want_path.gid)) ||
        (e->kind == LANE_EVENT_QP_BROKEN && world_is_destroyed(n, e)))
        return;
    if (world_rc_is_about(e)) {
        world_rc_event(w, n, e);
        return;
    }
    switch (e->kind) {
    case LANE_EVENT_SESSION_OVER:
    case LANE_EVENT_SESSION_LEFT:
    case LANE_EVENT_LODGER_LEFT:
        world_note_end(n, e);
        return;
    case LANE_EVENT_WANT_MR:
    case LANE_EVENT_WANT_DEREG:
        world_fenced_event(w, n, e);
        return;
    case LANE_EVENT_SESSION_FAULT:
        n->faults++;
        n->last_reason = e->reason;
        return;
    case LANE_EVENT_TENANT_QUARANTINED:
        world_note_apart(n, e);
        return;
    case LANE_EVENT_ARENA_ADDED:
    case LANE_EVENT_WANT_AH:
    case LANE_EVENT_WANT_NUMBER:
    case LANE_EVENT_UD_BROKEN:
    case LANE_EVENT_WANT_RELAY:
    case LANE_EVENT_RELAYED:
        return;
    case LANE_EVENT_SPARE_DROPPED:
    case LANE_EVENT_READDRESSED:
    case LANE_EVENT_REVOKED:
    case LANE_EVENT_ARENA_REREGISTERED:
    case LANE_EVENT_PROVED:
        n->answers++;
        n->answer = *e;
        return;
    case LANE_EVENT_WANT_PATH:
        c.kind = LANE_COMMAND_PATH_READY;
        c.path.flow = e->want_path.flow;
        c.path.path.ah = make_ah(n->fab, n->pd, e->want_path.gid);
        break;
    case LANE_EVENT_WANT_FENCE:
        n->fences++;
        c.kind = LANE_COMMAND_FENCED;
        c.session = e->session;
        c.tag = e->fence.tag;
        break;
    case LANE_EVENT_DROP_PATH:
        if (e->path.ah != n->metaserver_ah) /* which goes at the end */
            destroy(n->fab, FAB_DESTROY_AH, e->path.ah);
        return;
    case LANE_EVENT_QP_OVERDUE:
    case LANE_EVENT_QP_RETIRED:
        world_end_qp(w, n, e->qp);
        return;
    case LANE_EVENT_QP_BROKEN:
        if (n->no_repairs)
            return;
        world_bring_back(n, e, &c);
        break;
    }
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
}

void world_run(struct world *w, unsigned passes)
{
    for (unsigned i = 0; i < passes; i++) {
        w->now_ns += 1000;
        for (uint32_t n = 0; n < WORLD_NODES; n++) {
            struct lane_event e;
            (void)lane_step(w->node[n].lane, w->now_ns);
            while (lane_event(w->node[n].lane, &e))
                if (!world_messages_event(&w->node[n], &e))
                    handle_event(w, &w->node[n], &e);
            world_rc_run(w, &w->node[n]);
            world_messages_run(&w->node[n]);
        }
    }
}

void world_sleep(struct world *w, uint64_t ns)
{
    w->now_ns += ns;
    world_run(w, 2);
}

void world_silence_node(struct world *w, uint32_t number)
{
    struct world_node *n = &w->node[number];
    /* Its lane lives on here, and would use them. A daemon's connections end with its lane. */
    ck_assert_msg(world_stats(w, number).links == 0, "node %u has connections of its own", number);
    destroy(n->fab, FAB_DESTROY_DCT, n->dct);
    n->dct = make_dct(n->fab, n->pd, n->dct_cq, n->srq);
    connector_free(n->connector);
    n->connector = NULL;
}

void world_restart_node(struct world *w, uint32_t number)
{
    struct world_node *n = &w->node[number];
    world_silence_node(w, number);
    n->incarnation++;
    if (w->rc || w->hybrid)
        world_rc_open(w, n);
    world_publish(w, n);
}

static void close_node(struct world *w, struct world_node *n)
{
    struct fab_ah *ah;
    while ((ah = lane_take_ah(n->lane)) != NULL)
        destroy(n->fab, FAB_DESTROY_AH, ah);
    lane_free(n->lane);
    destroy(n->fab, FAB_DESTROY_AH, n->metaserver_ah);
    if (w->rc || w->hybrid)
        world_rc_close(w, n);
    if (!w->rc)
        destroy(n->fab, FAB_DESTROY_QP, n->res.system_dci);
    for (uint32_t i = 0; i < n->res.dcis; i++)
        destroy(n->fab, FAB_DESTROY_QP, n->res.dci[i]);
    for (uint32_t i = 0; i < n->res.spares; i++)
        destroy(n->fab, FAB_DESTROY_QP, n->res.spare[i]);
    world_messages_close(n);
    destroy(n->fab, FAB_DESTROY_DCT, n->dct);
    destroy(n->fab, FAB_DESTROY_SRQ, n->srq);
    destroy(n->fab, FAB_DESTROY_CQ, n->cq);
    destroy(n->fab, FAB_DESTROY_CQ, n->dct_cq);
    destroy(n->fab, FAB_DESTROY_CHAN, n->chan);
    drop_mr(n->fab, n->mr_mr);
    drop_mr(n->fab, n->scratch_mr);
    if (n->small_mr != NULL)
        drop_mr(n->fab, n->small_mr);
    fab_mem_free(&n->small);
    drop_mr(n->fab, n->scratch_system_mr);
    destroy(n->fab, FAB_FREE_PD, n->pd);
    destroy(n->fab, FAB_FREE_PD, n->system_pd);
    fab_mem_free(&n->mr_memory);
    fab_mem_free(&n->scratch);
    ck_assert_int_eq(fab_close(n->fab), 0);
    free(n->peers);
}

void world_close(struct world *w)
{
    char command[128];
    for (int i = 0; i < WORLD_WORKERS; i++)
        if (w->worker[i] != NULL)
            world_detach(w, w->worker[i]);
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        close_node(w, &w->node[i]);
    destroy(w->meta, FAB_DESTROY_DCT, w->meta_dct);
    destroy(w->meta, FAB_DESTROY_SRQ, w->meta_srq);
    destroy(w->meta, FAB_DESTROY_CQ, w->meta_cq);
    drop_mr(w->meta, w->meta_mr);
    world_names_close(w, w->names);
    destroy(w->meta, FAB_FREE_PD, w->meta_pd);
    fab_mem_free(&w->meta_memory);
    ck_assert_int_eq(fab_close(w->meta), 0);
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    ck_assert_int_eq(world_run_quietly(command), 0);
}

/* ---- workers */

void world_attach(struct world *w, struct world_worker *k, uint32_t node, uint32_t id,
                  uint32_t tenant)
{
    struct world_node *n = &w->node[node];
    const unsigned all = IBV_ACCESS_LOCAL_WRITE | fab_remote_access(n->fab);
    *k = (struct world_worker){.node = node, .id = id, .overs = n->overs[id]};
    for (int i = 0; i <= WORLD_WORKERS; i++) {
        ck_assert_int_lt(i, WORLD_WORKERS);
        if (w->worker[i] == NULL) {
            w->worker[i] = k;
            break;
        }
    }
    ck_assert_int_eq(fab_mem_alloc(SCHEMA_SESSION_RW_BYTES(64), "rw", &k->rw), 0);
    ck_assert_int_eq(fab_mem_alloc(SCHEMA_SESSION_RO_BYTES(64), "ro", &k->ro), 0);
    ck_assert_int_eq(fab_mem_alloc(WORLD_ARENA, "arena", &k->arena), 0);
    k->arena_mr = world_mr(w, k, 0, WORLD_ARENA, all);
    k->w = k->rw.addr;
    k->r = k->ro.addr;
    const uint32_t mrs = world_max_mrs != 0 ? world_max_mrs : 4;
    k->memory = lane_memory_new(n->config.max_grants, 32, 8, mrs);
    world_name_tenant(k, tenant);
    struct lane_command c = {.kind = LANE_COMMAND_SESSION_ADD,
                             .session = id,
                             .touch = k->arena.addr,
                             .add = {.id = id,
                                     .rw = k->w,
                                     .ro = k->r,
                                     .sq_slots = 64,
                                     .cq_slots = 64,
                                     .tenant = tenant,
                                     .tenant_slot = tenant % WORLD_TENANTS,
                                     .max_vqps = 8,
                                     .max_inflight = 32,
                                     .max_mrs = mrs,
                                     .quota = &n->quota[tenant % WORLD_TENANTS],
                                     .memory = k->memory,
                                     .arena = {.iova = k->arena_mr->addr,
                                               .bytes = WORLD_ARENA,
                                               .lkey = k->arena_mr->lkey,
                                               .rkey = k->arena_mr->rkey}}};
    ck_assert_int_eq(lane_command(n->lane, &c), 0);
    world_run(w, 1);
}

void world_detach(struct world *w, struct world_worker *k)
{
    struct world_node *n = &w->node[k->node];
    const uint64_t part = n->config.mr_lease_ns / 50, step_ns = part > 100000 ? part : 100000;
    struct lane_command c = {
        .kind = LANE_COMMAND_SESSION_END, .session = k->id, .reason = SCHEMA_REASON_CLOSED};
    if (k->r->ended == 0)
        ck_assert_int_eq(lane_command(n->lane, &c), 0);
    for (int i = 0; i < 100 && n->overs[k->id] == k->overs; i++)
        world_sleep(w, step_ns);
    for (int i = 0; i < PATIENCE && n->overs[k->id] == k->overs; i++)
        world_run(w, 1); /* what is out to the dead: the device's time is the real one */
    ck_assert_uint_eq(n->overs[k->id], k->overs + 1);
    if (k->arena_mr != NULL)
        drop_mr(n->fab, k->arena_mr);
    for (int i = 0; i < WORLD_WORKERS; i++)
        if (w->worker[i] == k)
            w->worker[i] = NULL;
    lane_memory_free(k->memory);
    fab_mem_free(&k->rw);
    fab_mem_free(&k->ro);
    fab_mem_free(&k->arena);
}
