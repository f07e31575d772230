/* SPDX-License-Identifier: Apache-2.0 */
#include "world_messages.h"

#include <check.h>
#include <stdatomic.h>
#include <string.h>

bool world_messages, world_by_device, world_no_handles, world_no_ud_repairs, world_handshakes;
bool world_mute[WORLD_NODES], world_no_numbers, world_new_uds;
uint32_t world_receives;
uint32_t world_ud_broken, world_handles_wanted, world_handles_dropped, world_numbers_wanted;

static struct fab_mr *memory_mr[WORLD_NODES];
static struct fab_mem memory[WORLD_NODES];
static struct fab_qp *ud[WORLD_NODES];
static struct lane_event unrepaired[WORLD_NODES];
static struct fab_ah *last_handle[WORLD_NODES];

enum { QKEY = 0x1234 };
/* As message_state.h has it: of a datagram that was sent in a life of its queue pair. */
#define ARRIVAL_OF_NO_LIFE ((uint64_t)UINT32_MAX << 32 | 2ull << 30 | 63ull << 24)

static void call(struct fab *fab, struct fab_ctl *ctl)
{
    ck_assert_int_eq(fab_call(fab, ctl), 0);
}

static void destroy(struct fab *fab, enum fab_ctl_kind kind, void *x)
{
    struct fab_ctl c = {.kind = kind};
    c.pd.x = x;
    call(fab, &c);
}

static uint32_t count_receives(void)
{
    return world_receives != 0 ? world_receives : WORLD_RECEIVES;
}

static uint32_t number_of(const struct world_node *n)
{
    return n->fab->caps.gid[15] - 1u;
}

static void raise_ud(struct fab *fab, struct fab_qp *qp)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                               IBV_QPS_RTS};
    static const int masks[] = {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN};
    for (int i = 0; i < 4; i++) {
        struct fab_ctl c = {.kind = FAB_MODIFY_QP, .modify = {.x = qp}};
        c.modify.attr = (struct ibv_qp_attr){.qp_state = states[i], .port_num = 1, .qkey = QKEY};
        c.modify.mask = IBV_QP_STATE | masks[i];
        call(fab, &c);
    }
}

static struct fab_qp *make_ud(struct world_node *n)
{
    struct fab_ctl c = {.kind = FAB_CREATE_QP,
                        .qp = {.pd = n->pd,
                               .type = FAB_QP_UD,
                               .send_cq = n->cq,
                               .recv_cq = n->cq,
                               .cap = {.send_wr = LANE_DATAGRAMS_OUT,
                                       .recv_wr = LANE_DATAGRAMS_IN,
                                       .send_sge = 1,
                                       .recv_sge = 1}}};
    call(n->fab, &c);
    raise_ud(n->fab, c.qp.x);
    return c.qp.x;
}

/* Another target, whose receives complete on the lane's CQ, in the place of the node's. */
void world_messages_open(struct world_node *n)
{
    const uint32_t i = number_of(n);
    if (!world_messages)
        return;
    destroy(n->fab, FAB_DESTROY_DCT, n->dct);
    destroy(n->fab, FAB_DESTROY_SRQ, n->srq);
    struct fab_ctl srq = {.kind = FAB_CREATE_SRQ,
                          .srq = {.pd = n->pd, .max_wr = count_receives(), .max_sge = 1}};
    call(n->fab, &srq);
    n->srq = srq.srq.x;
    struct fab_ctl dct = {
        .kind = FAB_CREATE_DCT,
        .dct = {.pd = n->pd, .cq = n->cq, .srq = n->srq, .dc_key = 0x1234567890abcdef + i}};
    dct.dct.access = fab_target_access(n->fab);
    call(n->fab, &dct);
    n->dct = dct.dct.x;
    ck_assert_int_eq(fab_mem_alloc(lane_messages_bytes(count_receives()), "messages", &memory[i]),
                     0);
    struct fab_ctl mr = {.kind = FAB_REG_MR,
                         .mr = {.pd = n->pd,
                                .mem = &memory[i],
                                .length = memory[i].size,
                                .access = IBV_ACCESS_LOCAL_WRITE}};
    call(n->fab, &mr);
    memory_mr[i] = mr.mr.x;
    ud[i] = make_ud(n);
}

void world_messages_close(struct world_node *n)
{
    const uint32_t i = number_of(n);
    if (!world_messages)
        return;
    destroy(n->fab, FAB_DESTROY_QP, ud[i]);
    destroy(n->fab, FAB_DEREG_MR, memory_mr[i]);
    fab_mem_free(&memory[i]);
}

static void answer(struct world_node *n, const struct lane_command *c)
{
    ck_assert_int_eq(lane_command(n->lane, c), 0);
}

/* In the place of the one that broke another one, which has another number, or the same again. */
static void repair_ud(struct world_node *n, const struct lane_event *e)
{
    const uint32_t i = number_of(n);
    world_ud_broken++;
    ck_assert_ptr_eq(e->qp, ud[i]);
    if (world_ud_broken % 2 == 1 || world_new_uds) {
        struct fab_qp *former = ud[i];
        ud[i] = make_ud(n);
        destroy(n->fab, FAB_DESTROY_QP, former);
    } else {
        raise_ud(n->fab, ud[i]);
    }
    answer(n, &(struct lane_command){.kind = LANE_COMMAND_UD_READY, .qp = ud[i]});
}

void world_repair_uds(struct world *w)
{
    world_no_ud_repairs = false;
    for (uint32_t i = 0; i < WORLD_NODES; i++)
        if (unrepaired[i].kind == LANE_EVENT_UD_BROKEN) {
            repair_ud(&w->node[i], &unrepaired[i]);
            unrepaired[i] = (struct lane_event){.session = 0};
        }
}

static void ask_number(struct world_node *n, const struct lane_event *e)
{
    struct connector_peer peer = {.incarnation = e->want_number.incarnation,
                                  .ud_qpn = e->want_number.ud_qpn,
                                  .ud_qkey = e->want_number.ud_qkey};
    memcpy(peer.gid, e->want_number.gid, sizeof peer.gid);
    world_numbers_wanted++;
    if (!world_no_numbers)
        connector_ask_messages(n->connector, &peer);
}

/* What its connector has been told; and what it tells others. */
void world_messages_run(struct world_node *n)
{
    struct connector_told t;
    if (n->connector == NULL || !world_messages)
        return;
    connector_set_messages(n->connector, world_mute[number_of(n)] ? 0 : ud[number_of(n)]->qpn,
                           QKEY);
    while (connector_told(n->connector, &t)) {
        struct lane_command c = {
            .kind = LANE_COMMAND_NUMBER,
            .number = {.incarnation = t.incarnation, .qpn = t.qpn, .qkey = t.qkey}};
        memcpy(c.number.gid, t.gid, sizeof c.number.gid);
        answer(n, &c);
    }
}

bool world_messages_event(struct world_node *n, const struct lane_event *e)
{
    struct fab_ctl ah = {.kind = FAB_CREATE_AH, .ah = {.pd = n->pd}};
    if (e->kind == LANE_EVENT_UD_BROKEN) {
        if (world_no_ud_repairs)
            unrepaired[number_of(n)] = *e;
        else
            repair_ud(n, e);
        return true;
    }
    if (e->kind == LANE_EVENT_WANT_NUMBER) {
        ask_number(n, e);
        return true;
    }
    if (e->kind == LANE_EVENT_DROP_PATH && e->path.ah != NULL)
        world_handles_dropped += e->path.ah == last_handle[number_of(n)];
    if (e->kind != LANE_EVENT_WANT_AH)
        return false;
    world_handles_wanted++;
    if (world_no_handles) {
        answer(n, &(struct lane_command){.kind = LANE_COMMAND_AH_READY,
                                         .ah = {.tag = e->want_ah.tag}});
        return true;
    }
    ah.ah.attr.is_global = 1;
    ah.ah.attr.port_num = 1;
    memcpy(ah.ah.attr.grh.dgid.raw, e->want_ah.gid, sizeof e->want_ah.gid);
    call(n->fab, &ah);
    last_handle[number_of(n)] = ah.ah.x;
    answer(n, &(struct lane_command){.kind = LANE_COMMAND_AH_READY,
                                     .ah = {.tag = e->want_ah.tag, .ah = ah.ah.x}});
    return true;
}

struct fab_srq *world_messages_srq(const struct world_node *n)
{
    return world_messages ? n->srq : NULL;
}

void world_messages_fill(struct world_node *n)
{
    const uint32_t i = number_of(n);
    if (!world_messages)
        return;
    n->res.messages = (struct lane_messages){.srq = n->srq,
                                             .ud = ud[i],
                                             .ud_qkey = QKEY,
                                             .receives = count_receives(),
                                             .memory = memory[i],
                                             .iova = memory_mr[i]->addr,
                                             .lkey = memory_mr[i]->lkey,
                                             .peers = 8,
                                             .streams = 32,
                                             .vqps = 32,
                                             .ports = 32,
                                             .ask_ns = 100000,
                                             .questions = 8,
                                             .refused_ns = 20000000,
                                             .asks_numbers = n->connector != NULL};
}

void world_messages_publish(const struct world_node *n, struct schema_endpoint_record *r)
{
    if (!world_messages || n->connector != NULL)
        return;
    r->udqpn_slots |= ud[number_of(n)]->qpn;
    r->ud_qkey = QKEY;
    r->flags |= world_handshakes && number_of(n) == 1 ? SCHEMA_RECORD_RC : 0;
}

void world_publish_ud(struct world *w, uint32_t node)
{
    const struct world_node *n = &w->node[node];
    const struct schema_table_desc *d = &w->table.desc;
    const uint32_t home = schema_endpoint_home(d, n->fab->caps.gid, n->config.pool);
    struct schema_endpoint_record r;
    ck_assert_int_eq(schema_endpoint_find(d, w->table.slots + (size_t)home * sizeof r,
                                          n->fab->caps.gid, n->config.pool, &r),
                     0);
    r.udqpn_slots &= ~0xffffffu;
    if (n->connector != NULL)
        r.udqpn_slots |= connector_ud_qpn(n->connector);
    world_messages_publish(n, &r);
    ck_assert_int_ge(schema_table_put(&w->table, &r), 0);
}

bool world_hear(struct world *w, struct world_worker *k, struct schema_cqe *out,
                struct schema_cqe_sender *sender, unsigned passes)
{
    struct schema_cqe next;
    if (!world_poll(w, k, out, passes))
        return false;
    if (out->extra) {
        ck_assert(world_poll(w, k, &next, 0)); /* they were published together */
        memcpy(sender, &next, sizeof *sender);
    }
    return true;
}

int world_bind_port(struct world *w, struct world_worker *k, uint16_t vqp, uint32_t port)
{
    return world_ask(
        w, k,
        (struct schema_sq_desc){.op = SCHEMA_OP_BIND_PORT, .vqp = vqp, .bind_port = {.port = port}},
        NULL);
}

void world_send_to(struct world_worker *k, uint16_t vqp, uint32_t kind, uint64_t to)
{
    const struct schema_sq_desc d = {
        .op = SCHEMA_OP_SEND_TO, .slots = 1, .vqp = vqp, .send_to = {.kind = kind, .to = to}};
    world_post(k, &d);
}

struct schema_sq_desc world_message(uint8_t op, uint64_t wr_id, uint64_t offset, uint32_t length)
{
    return (struct schema_sq_desc){.op = op,
                                   .flags = op == SCHEMA_OP_SEND ? SCHEMA_OP_SIGNALED : 0,
                                   .num_sge = length != 0,
                                   .slots = 1,
                                   .post = {.wr_id = wr_id, .length = length, .offset = offset}};
}

struct fab_qp *world_ud(uint32_t node)
{
    return ud[node];
}

void world_break_ud(struct world *w, uint32_t node)
{
    struct fab_ctl c = {.kind = FAB_MODIFY_QP, .modify = {.x = ud[node]}};
    c.modify.attr.qp_state = IBV_QPS_ERR;
    c.modify.mask = IBV_QP_STATE;
    call(w->node[node].fab, &c);
}

/* By the queue pair of a node, whose lane hears that one of its own was sent, which it ignores. */
void *world_stranger_memory(uint32_t node)
{
    return (void *)(uintptr_t)memory_mr[node]->addr;
}

void world_stranger_says(struct world *w, uint32_t from, uint32_t to, uint32_t bytes)
{
    struct world_node *n = &w->node[from];
    struct fab_ctl ah = {.kind = FAB_CREATE_AH, .ah = {.pd = n->pd}};
    ah.ah.attr.is_global = 1;
    ah.ah.attr.port_num = 1;
    memcpy(ah.ah.attr.grh.dgid.raw, w->node[to].fab->caps.gid, 16);
    call(n->fab, &ah);
    struct ibv_sge sge = {
        .addr = memory_mr[from]->addr, .length = bytes, .lkey = memory_mr[from]->lkey};
    struct fab_wr wr = {.wr_id = ARRIVAL_OF_NO_LIFE,
                        .sg_list = &sge,
                        .num_sge = 1,
                        .opcode = IBV_WR_SEND,
                        .send_flags = IBV_SEND_SIGNALED,
                        .ah = ah.ah.x,
                        .dest_qpn = ud[to]->qpn,
                        .qkey = QKEY},
                  *bad;
    ck_assert_int_eq(fab_post_send(ud[from], &wr, &bad), 0);
    world_run(w, 5);
    destroy(n->fab, FAB_DESTROY_AH, ah.ah.x);
}
