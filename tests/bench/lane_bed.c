/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_bed.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schema/peers.h"
#include "schema/phase.h"
#include "schema/table.h"

enum {
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
    READS = 16,   /* at a time, of a queue pair */
    TIMEOUT = 18, /* 1 s: what a card is behind with takes long, and nothing is lost */
    SQ_DEPTH = 128,
    POOL = 1,
    INCARNATION = 100,
    VKEY = 0x5000,
    LOG2_SLOTS = 6,
    SCRATCH_BYTES = 64 * LANE_SCRATCH_BYTES,
    PASS_NS = 200, /* that a pass of the lane takes, and each thing that it does in it */
    EACH_NS = 40,
    LOOK_NS = 50000, /* a lane that has nothing to do is looked at as often */
    CONNECT_NS = 50000000
};
static const uint64_t IOVA = 1ull << 40;

static int call(struct fab *fab, struct fab_ctl *ctl, struct base_errbuf *err)
{
    const int status = fab_call(fab, ctl);
    return status == 0
               ? 0
               : base_err(err, status, "%s failed: %s", fab_ctl_name(ctl->kind), strerror(-status));
}

/* ---- devices */

static int open_node(struct lane_bed *bed, uint32_t which, struct base_errbuf *err)
{
    const struct sim_device_attr attr = {.node = which};
    struct lane_bed_node *n = &bed->node[which];
    int status = sim_device_open(bed->net, &attr, &n->fab, err);
    if (status != 0)
        return status;
    struct fab_ctl pd = {.kind = FAB_ALLOC_PD};
    struct fab_ctl cq = {.kind = FAB_CREATE_CQ, .cq = {.cqe = (LANE_BED_LINKS + 1) * SQ_DEPTH}};
    if ((status = call(n->fab, &pd, err)) != 0 || (status = call(n->fab, &cq, err)) != 0)
        return status;
    n->pd = pd.pd.x;
    n->cq = cq.cq.x;
    const uint64_t bytes = 2 * schema_table_bytes(LOG2_SLOTS) + bed->kind.region;
    status = fab_mem_alloc_for(n->fab, bytes, "kedge-perf", &n->mem);
    if (status != 0)
        return base_err(err, status, "memory: %s", strerror(-status));
    struct fab_ctl mr = {.kind = FAB_REG_MR,
                         .mr = {.pd = n->pd,
                                .mem = &n->mem,
                                .length = bytes,
                                .access = ACCESS,
                                .iova = IOVA + ((uint64_t)which << 32)}};
    status = call(n->fab, &mr, err);
    n->mr = mr.mr.x;
    return status;
}

static int modify(struct fab_qp *qp, const struct ibv_qp_attr *attr, int mask,
                  struct base_errbuf *err)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP,
                        .modify = {.x = qp, .attr = *attr, .mask = mask | IBV_QP_STATE}};
    return call(qp->pd->fab, &c, err);
}

static int make_qp(struct lane_bed_node *n, struct fab_qp **out, struct base_errbuf *err)
{
    struct fab_ctl qp = {.kind = FAB_CREATE_QP,
                         .qp = {.pd = n->pd,
                                .type = FAB_QP_RC,
                                .send_cq = n->cq,
                                .recv_cq = n->cq,
                                .cap = {.send_wr = SQ_DEPTH, .send_sge = LANE_MERGE_SGES}}};
    const int status = call(n->fab, &qp, err);
    *out = qp.qp.x;
    return status;
}

static int connect_qp(struct fab_qp *qp, const struct fab_qp *peer, struct base_errbuf *err)
{
    struct ibv_qp_attr a = fab_init_attr(qp->pd->fab);
    a.qp_access_flags = ACCESS;
    int status = modify(qp, &a, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS, err);
    if (status != 0)
        return status;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = qp->pd->fab->caps.mtu,
                             .dest_qp_num = peer->qpn,
                             .max_dest_rd_atomic = READS,
                             .min_rnr_timer = 1,
                             .ah_attr = fab_address(qp->pd->fab, peer->pd->fab->caps.gid, 0)};
    status = modify(qp, &a,
                    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                    err);
    if (status != 0)
        return status;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = TIMEOUT,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = READS};
    return modify(qp, &a,
                  IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC,
                  err);
}

/* From the lane's node to that one. */
static int make_link(struct lane_bed *bed, uint32_t to, struct fab_qp **out,
                     struct base_errbuf *err)
{
    struct fab_qp *responder = NULL;
    int status = make_qp(&bed->node[0], out, err);
    if (status == 0)
        status = make_qp(&bed->node[to], &responder, err);
    if (status == 0)
        status = connect_qp(responder, *out, err);
    return status != 0 ? status : connect_qp(*out, responder, err);
}

/* ---- tables */

static uint64_t region_at(void)
{
    return 2 * schema_table_bytes(LOG2_SLOTS);
}

static int publish_node(struct lane_bed *bed, uint32_t which, struct base_errbuf *err)
{
    struct lane_bed_node *n = &bed->node[which];
    struct schema_table *t = &bed->regions[which];
    struct schema_endpoint_record e = {.pool = POOL,
                                       .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_RC,
                                       .incarnation = INCARNATION,
                                       .dctn_mtu = (uint32_t)n->fab->caps.mtu << 24,
                                       .udqpn_slots = (uint32_t)LOG2_SLOTS << 24 | 1,
                                       .lid = n->fab->caps.lid,
                                       .mr_table_addr_hi = (uint16_t)(n->mr->addr >> 32),
                                       .mr_table_addr_lo = (uint32_t)n->mr->addr,
                                       .mr_table_rkey = n->mr->rkey};
    memcpy(e.gid, n->fab->caps.gid, sizeof e.gid);
    const struct schema_table_desc d = schema_mr_table_desc(&e);
    schema_table_init(t, SCHEMA_TABLE_MRS, n->mem.addr, LOG2_SLOTS, d.seed, d.generation);
    int64_t placed = which == 0 ? 0 : schema_table_put(&bed->endpoints, &e);
    for (uint32_t tenant = 0; tenant < LANE_BED_TENANTS && placed >= 0; tenant++) {
        const struct schema_mr_record r = {
            .vkey = VKEY + tenant,
            .tenant = tenant,
            .vaddr = LANE_BED_ADDRESS,
            .raddr = n->mr->addr + region_at(),
            .length = bed->kind.region,
            .rkey = n->mr->rkey,
            .pool = POOL,
            .flags = SCHEMA_RECORD_LIVE | SCHEMA_RECORD_READ | SCHEMA_RECORD_WRITE |
                     schema_record_lease_flags(1000 * BASE_NS_PER_S)};
        placed = schema_table_put(t, &r);
    }
    return placed < 0 ? base_err(err, (int)placed, "a table is full") : 0;
}

/* ---- the lane */

static int fill_random(void *user, void *bytes, size_t count)
{
    struct lane_bed *bed = user;
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)base_prng_next(&bed->prng);
    return 0;
}

static int make_lane(struct lane_bed *bed, struct base_errbuf *err)
{
    struct lane_bed_node *n = &bed->node[0];
    struct fab_ctl mr = {
        .kind = FAB_REG_MR,
        .mr = {.pd = n->pd, .mem = &bed->scratch, .access = IBV_ACCESS_LOCAL_WRITE}};
    int status = fab_mem_alloc_for(n->fab, SCRATCH_BYTES, "kedge-perf", &bed->scratch);
    if (status != 0)
        return base_err(err, status, "memory: %s", strerror(-status));
    mr.mr.length = bed->scratch.size;
    if ((status = call(n->fab, &mr, err)) != 0)
        return status;
    struct lane_config c = {.max_sessions = LANE_BED_WORKERS,
                            .max_peers = 64,
                            .max_flows = 64,
                            .max_tenants = LANE_BED_TENANTS,
                            .mr_cache = 64,
                            .sq_depth = SQ_DEPTH,
                            .cut_bytes = bed->kind.cut_bytes,
                            .merge_sges = bed->kind.apart ? 0 : LANE_MERGE_SGES,
                            .window_policy = bed->kind.policy,
                            .silent_ns = 20000,
                            .guess_budget = 4,
                            .max_grants = 4,
                            .suspect_ns = 2 * BASE_NS_PER_S,
                            .lookup_timeout_ns = BASE_NS_PER_S,
                            .lookup_hedge_ns = BASE_NS_PER_S,
                            .path_patience_ns = BASE_NS_PER_S,
                            .node_lease_ns = 100 * BASE_NS_PER_S,
                            .mr_lease_ns = 100 * BASE_NS_PER_S,
                            .bound_ns = 20 * BASE_NS_PER_S,
                            .slack_ns = 100000,
                            .rc = true,
                            .max_links = LANE_BED_LINKS,
                            .connections_per_peer = bed->kind.connections,
                            .mtu = n->fab->caps.mtu,
                            .names_culprit = n->fab->caps.names_culprit,
                            .writes_in_order = n->fab->caps.writes_in_order,
                            .pool = POOL,
                            .incarnation = INCARNATION};
    struct lane_device_objects r = {.fab = n->fab,
                                    .cq = n->cq,
                                    .pd = n->pd,
                                    .scratch = bed->scratch,
                                    .scratch_lkey = mr.mr.x->lkey,
                                    .scratch_system_lkey = mr.mr.x->lkey,
                                    .mr_table = &bed->regions[0]};
    memcpy(c.gid, n->fab->caps.gid, sizeof c.gid);
    bed->peers = calloc(1, schema_peers_bytes(c.max_peers));
    if (bed->peers == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    schema_peers_format(bed->peers, c.max_peers, 7);
    r.peers = bed->peers;
    status = lane_new(&c, &r, &bed->lane);
    if (status != 0)
        return base_err(err, status, "a lane: %s", strerror(-status));
    lane_set_random(bed->lane, fill_random, bed);
    return 0;
}

static int tell_metaserver(struct lane_bed *bed, struct base_errbuf *err)
{
    struct lane_command c = {.kind = LANE_COMMAND_METASERVERS};
    struct lane_metaserver *m = &c.metaservers.at[0];
    c.metaservers.count = 1;
    m->table = bed->endpoints.desc;
    m->table.addr = bed->node[1].mr->addr + schema_table_bytes(LOG2_SLOTS);
    m->table.rkey = bed->node[1].mr->rkey;
    const int status = make_link(bed, 1, &m->qp, err);
    return status != 0 ? status : lane_command(bed->lane, &c);
}

int lane_bed_open(struct lane_bed *bed, const struct model_preset *preset, uint64_t seed,
                  uint32_t nodes, const struct lane_bed_kind *kind, struct base_errbuf *err)
{
    *bed = (struct lane_bed){.net = sim_net_new(seed, NULL, 0), .kind = *kind, .nodes = nodes};
    if (bed->net == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    if (kind->region == 0)
        bed->kind.region = LANE_BED_REGION;
    sim_net_set_model(bed->net, preset);
    if (kind->ring_each)
        sim_net_ring_each(bed->net);
    base_prng_seed(&bed->prng, seed);
    int status = 0;
    for (uint32_t t = 0; t < LANE_BED_TENANTS; t++)
        bed->quota[t].max_vqps = bed->quota[t].max_mrs = UINT32_MAX;
    for (uint32_t i = 0; i <= nodes && status == 0; i++)
        status = open_node(bed, i, err);
    if (status == 0)
        schema_table_init(&bed->endpoints, SCHEMA_TABLE_ENDPOINTS,
                          (uint8_t *)bed->node[1].mem.addr + schema_table_bytes(LOG2_SLOTS),
                          LOG2_SLOTS, 5, 9);
    for (uint32_t i = 0; i <= nodes && status == 0; i++)
        status = publish_node(bed, i, err);
    if (status == 0)
        status = make_lane(bed, err);
    if (status == 0)
        status = tell_metaserver(bed, err);
    if (status != 0)
        lane_bed_close(bed);
    return status;
}

void lane_bed_close(struct lane_bed *bed)
{
    lane_free(bed->lane);
    free(bed->peers);
    for (uint32_t i = 0; i < bed->workers; i++) {
        lane_memory_free(bed->worker[i].memory);
        fab_mem_free(&bed->worker[i].rw);
        fab_mem_free(&bed->worker[i].ro);
    }
    for (uint32_t i = 0; i <= bed->nodes; i++)
        if (bed->node[i].fab != NULL)
            sim_device_crash(bed->node[i].fab);
    sim_net_free(bed->net);
    *bed = (struct lane_bed){.net = NULL};
}

const struct fab_model_counters *lane_bed_counters(const struct lane_bed *bed)
{
    return &bed->node[0].fab->model->counters;
}

uint8_t *lane_bed_region(const struct lane_bed *bed, uint32_t node)
{
    return (uint8_t *)bed->node[node].mem.addr + region_at();
}

/* ---- what goes on */

static int answer_events(struct lane_bed *bed, struct base_errbuf *err)
{
    struct lane_event e;
    while (lane_event(bed->lane, &e)) {
        if (e.kind != LANE_EVENT_WANT_PATH)
            return base_err(err, -EIO, "the lane said something else than was expected: %d",
                            (int)e.kind);
        struct lane_command c = {.kind = LANE_COMMAND_PATH_READY,
                                 .path = {.flow = e.want_path.flow}};
        uint32_t to = 1;
        while (to < bed->nodes && memcmp(bed->node[to].fab->caps.gid, e.want_path.gid, 16) != 0)
            to++;
        const int status = make_link(bed, to, &c.path.path.qp, err);
        if (status != 0)
            return status;
        (void)lane_command(bed->lane, &c);
        bed->linked++;
    }
    return 0;
}

static void put_descriptor(struct lane_bed *bed, struct lane_bed_worker *k,
                           const struct schema_sq_desc *d)
{
    struct schema_session_rw *rw = k->rw.addr;
    struct schema_sq_desc *ring = (void *)((uint8_t *)k->rw.addr + SCHEMA_SQ_OFFSET);
    ring[k->sq_tail & (LANE_BED_SLOTS - 1)] = *d;
    schema_sq_publish(rw, ring, LANE_BED_SLOTS - 1, k->sq_tail, k->sq_tail + 1);
    k->sq_tail++;
    (void)lane_doorbell(bed->lane, k->id);
}

/* Exponential. */
static void begin_work(struct lane_bed *bed, struct lane_bed_worker *k)
{
    const double u = (double)(base_prng_next(&bed->prng) >> 11) * 0x1p-53;
    uint64_t at = sim_net_now(bed->net) + (uint64_t)(-log(1 - u) * (double)k->work_ns);
    const uint64_t since = at - bed->begun_ns, period = k->on_ns + k->off_ns;
    if (k->off_ns > 0 && since % period >= k->on_ns)
        at += period - since % period;
    k->ready = (struct base_heap_node){.key = at, .order = ++bed->serial};
    base_heap_add(&bed->ready, &k->ready);
}

static void submit(struct lane_bed *bed, struct lane_bed_worker *k)
{
    if (k->out == k->depth) {
        k->stopped = true;
        return;
    }
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_WRITE,
        .flags = SCHEMA_OP_SIGNALED,
        .num_sge = 1,
        .slots = 1,
        .post = {.remote_addr = LANE_BED_ADDRESS, .vkey = VKEY + k->tenant, .length = k->size}};
    if (k->choose != NULL)
        k->choose(k, &bed->prng, &d);
    k->out++;
    k->posted_ns[k->sq_tail & (LANE_BED_SLOTS - 1)] = sim_net_now(bed->net);
    put_descriptor(bed, k, &d);
    begin_work(bed, k);
}

static void take_completions(struct lane_bed *bed, struct lane_bed_worker *k)
{
    struct schema_session_rw *rw = k->rw.addr;
    struct schema_session_ro *ro = k->ro.addr;
    const struct schema_cqe *ring = (const void *)((const uint8_t *)k->ro.addr + SCHEMA_CQ_OFFSET);
    const uint32_t tail = atomic_load(&ro->cq_tail);
    if (k->cq_head == tail)
        return;
    for (; k->cq_head != tail; k->cq_head++) {
        const struct schema_cqe *e = &ring[k->cq_head & (LANE_BED_SLOTS - 1)];
        bed->failed += e->status != IBV_WC_SUCCESS;
        k->bytes += e->byte_len;
        if (k->latency != NULL)
            base_hist_record(k->latency,
                             sim_net_now(bed->net) -
                                 k->posted_ns[(k->sq_tail - k->out) & (LANE_BED_SLOTS - 1)]);
        k->requests++;
        k->out--;
    }
    atomic_store(&rw->cq_head, k->cq_head);
    if (k->stopped) {
        k->stopped = false;
        submit(bed, k);
    }
}

/* One pass, and what workers do meanwhile. The time goes on by what it takes, or to what comes
 * next. */
static int go_on(struct lane_bed *bed, struct base_errbuf *err)
{
    const uint64_t now_ns = sim_net_now(bed->net);
    const uint32_t did = lane_step(bed->lane, now_ns);
    const int status = answer_events(bed, err);
    if (status != 0)
        return status;
    for (uint32_t i = 0; i < bed->workers; i++)
        take_completions(bed, &bed->worker[i]);
    const uint64_t rung = lane_bed_counters(bed)->doorbells - bed->rung;
    uint64_t next_ns = now_ns + PASS_NS + (uint64_t)did * EACH_NS + rung * bed->kind.doorbell_ns;
    bed->rung += rung;
    if (did == 0) {
        const uint64_t due_ns = sim_net_next_due(bed->net);
        uint64_t idle_ns = now_ns + LOOK_NS;
        idle_ns = due_ns < idle_ns ? due_ns : idle_ns;
        if (bed->ready.first != NULL && bed->ready.first->key < idle_ns)
            idle_ns = bed->ready.first->key;
        next_ns = idle_ns > next_ns ? idle_ns : next_ns;
    }
    sim_net_run_until(bed->net, next_ns);
    for (struct base_heap_node *f; (f = bed->ready.first) != NULL && f->key <= next_ns;) {
        base_heap_take_out(&bed->ready, f);
        submit(bed, (struct lane_bed_worker *)(void *)((char *)f -
                                                       offsetof(struct lane_bed_worker, ready)));
    }
    return 0;
}

/* ---- workers */

static int attach_worker(struct lane_bed *bed, struct lane_bed_worker *k, struct base_errbuf *err)
{
    const struct lane_bed_node *n = &bed->node[0];
    struct lane_command c = {.kind = LANE_COMMAND_SESSION_ADD, .session = k->id};
    int status = fab_mem_alloc(SCHEMA_SESSION_RW_BYTES(LANE_BED_SLOTS), "rw", &k->rw);
    if (status == 0)
        status = fab_mem_alloc(SCHEMA_SESSION_RO_BYTES(LANE_BED_SLOTS), "ro", &k->ro);
    k->memory = lane_memory_new(4, LANE_BED_SLOTS, 2, 2);
    if (status != 0 || k->memory == NULL)
        return base_err(err, -ENOMEM, "out of memory");
    c.add = (struct lane_session){.id = k->id,
                                  .rw = k->rw.addr,
                                  .ro = k->ro.addr,
                                  .sq_slots = LANE_BED_SLOTS,
                                  .cq_slots = LANE_BED_SLOTS,
                                  .tenant = k->tenant,
                                  .tenant_slot = k->tenant,
                                  .max_vqps = 2,
                                  .max_inflight = LANE_BED_SLOTS,
                                  .max_mrs = 2,
                                  .quota = &bed->quota[k->tenant],
                                  .memory = k->memory,
                                  .arena = {.iova = n->mr->addr + region_at(),
                                            .bytes = bed->kind.region,
                                            .lkey = n->mr->lkey,
                                            .rkey = n->mr->rkey}};
    status = lane_command(bed->lane, &c);
    return status == 0 ? go_on(bed, err) : base_err(err, status, "a session");
}

int lane_bed_join(struct lane_bed *bed, const struct lane_bed_worker *worker,
                  struct base_errbuf *err)
{
    struct lane_bed_worker *k = &bed->worker[bed->workers];
    *k = *worker;
    k->id = bed->workers++;
    int status = attach_worker(bed, k, err);
    if (status != 0)
        return status;
    struct schema_sq_desc d = {
        .op = SCHEMA_OP_CONNECT, .slots = 1, .connect = {.tag = 1, .pool = POOL}};
    const struct schema_session_ro *ro = k->ro.addr;
    const struct schema_reply *reply = &ro->reply[1 % SCHEMA_REPLIES];
    memcpy(d.connect.gid, bed->node[k->node].fab->caps.gid, sizeof d.connect.gid);
    put_descriptor(bed, k, &d);
    const uint64_t until_ns = sim_net_now(bed->net) + CONNECT_NS;
    while (status == 0 && atomic_load(&reply->tag) != 1 && sim_net_now(bed->net) < until_ns)
        status = go_on(bed, err);
    if (status == 0 && (atomic_load(&reply->tag) != 1 || reply->status != 0))
        return base_err(err, -EIO, "a worker could not connect: %d", (int)reply->status);
    const struct schema_sq_desc bind = {
        .op = SCHEMA_OP_BIND,
        .slots = 1,
        .bind = {.peer_slot = (uint32_t)reply->value[0], .peer_gen = (uint32_t)reply->value[1]}};
    put_descriptor(bed, k, &bind);
    return status;
}

static void limit_window(struct lane_bed *bed, enum lane_window_scope scope, uint64_t ops)
{
    const struct lane_command c = {.kind = LANE_COMMAND_WINDOW,
                                   .window = {.scope = scope, .ops = ops}};
    (void)lane_command(bed->lane, &c);
}

void lane_bed_limit(struct lane_bed *bed, uint64_t device_ops, uint64_t destination_ops)
{
    limit_window(bed, LANE_WINDOW_DEVICE, device_ops);
    limit_window(bed, LANE_WINDOW_DESTINATION, destination_ops);
}

static void begin_workers(struct lane_bed *bed)
{
    bed->begun_ns = sim_net_now(bed->net);
    for (uint32_t i = 0; i < bed->workers; i++) {
        struct lane_bed_worker *k = &bed->worker[i];
        k->ready = (struct base_heap_node){.key = bed->begun_ns + k->begins_ns + i,
                                           .order = ++bed->serial};
        base_heap_add(&bed->ready, &k->ready);
    }
}

int lane_bed_run(struct lane_bed *bed, uint64_t ns, struct base_errbuf *err)
{
    int status = 0;
    if (bed->begun_ns == 0)
        begin_workers(bed);
    const uint64_t until_ns = sim_net_now(bed->net) + ns;
    while (status == 0 && sim_net_now(bed->net) < until_ns)
        status = go_on(bed, err);
    if (status == 0 && bed->failed > 0)
        return base_err(err, -EIO, "%llu requests failed", (unsigned long long)bed->failed);
    return status;
}
